/*
 * model/kinds.h - the lists behind the enums of dragoman/model.h: names, and how many there are.
 *
 * The numbers of the public enums never change, so each list has the order of its enum; new rows go at the end.
 */
#pragma once

#include <dragoman/model.h>

#define DGM_N_STATES 9
/* Legal transitions between the states of a task: bit `to` of entry `from`. */
extern const uint16_t dgm_state_transitions[DGM_N_STATES];
extern const char *const dgm_state_names[DGM_N_STATES]; /* "input-required", ... */
#define DGM_N_INTERNAL_KINDS 10

#define DGM_FORMAT_IDS(X) /* symbol, name */                                                       \
    X(A2A_10, "a2a-1.0")                                                                           \
    X(A2A_03, "a2a-0.3")                                                                           \
    X(A2A_03_REST, "a2a-0.3-rest")                                                                 \
    X(CHAT, "openai-chat")                                                                         \
    X(RESPONSES, "openai-responses")                                                               \
    X(AG_UI, "ag-ui")                                                                              \
    X(AG_UI_0, "ag-ui-0")                                                                          \
    X(AG_UI_PROTO, "ag-ui-proto")                                                                  \
    X(AI_SDK, "ai-sdk")                                                                            \
    X(LANGCHAIN, "langchain")                                                                      \
    X(AG_UI_SIMPLE, "ag-ui-simple")                                                                \
    X(RESPONSES_SIMPLE, "responses-simple")

#define DGM_OBJECT_KINDS(X) /* symbol, name on the command line, struct */                         \
    X(MESSAGE, "message", dgm_message)                                                             \
    X(TASK, "task", dgm_task)                                                                      \
    X(STATUS_UPDATE, "status-update", dgm_status_update)                                           \
    X(ARTIFACT_UPDATE, "artifact-update", dgm_artifact_update)                                     \
    X(STREAM_RESPONSE, "stream-response", dgm_event)                                               \
    X(SEND_RESPONSE, "send-response", dgm_event)                                                   \
    X(INTERNAL_EVENT, "internal-event", dgm_internal)                                              \
    X(PART, "part", dgm_part)                                                                      \
    X(ARTIFACT, "artifact", dgm_artifact)                                                          \
    X(STATUS, "status", dgm_status)                                                                \
    X(SEND_REQUEST, "send-request", dgm_send_request)                                              \
    X(GET_TASK_REQUEST, "get-task-request", dgm_task_request)                                      \
    X(LIST_TASKS_REQUEST, "list-tasks-request", dgm_list_tasks_request)                            \
    X(LIST_TASKS_RESPONSE, "list-tasks-response", dgm_list_tasks_result)                           \
    X(CANCEL_REQUEST, "cancel-request", dgm_task_request)                                          \
    X(SUBSCRIBE_REQUEST, "subscribe-request", dgm_task_request)                                    \
    X(PUSH_CONFIG, "push-config", dgm_push_config)                                                 \
    X(PUSH_CONFIG_LIST, "push-config-list", dgm_push_config_list)                                  \
    X(PUSH_GET_REQUEST, "push-get-request", dgm_task_request)                                      \
    X(PUSH_LIST_REQUEST, "push-list-request", dgm_task_request)                                    \
    X(PUSH_DELETE_REQUEST, "push-delete-request", dgm_task_request)                                \
    X(CARD, "card", dgm_agent_card)                                                                \
    X(EXTENDED_CARD_REQUEST, "extended-card-request", dgm_task_request)                            \
    X(ERROR, "error", dgm_peer_error)                                                              \
    X(EMPTY, "empty", char) /* has no struct */
