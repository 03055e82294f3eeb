/*
 * dragoman/model.h - A2A's objects and events as C structs.
 *
 * They do not depend on the version: A2A 1.0 and 0.3 are two dialects of them. A struct borrows everything
 * it points to; its creator (a dgm_document, an arena) owns the memory. Absent text is {NULL, 0}, absent
 * objects are NULL, empty lists have n == 0.
 */
#pragma once

#include <dragoman/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A JSON value as it was read, numbers as their text. Look inside with dgm_json_text(). */
typedef struct yyjson_val dgm_json;

/* Formats by id; new ones are added at the end. */
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

typedef enum dgm_format_id {
    DGM_FORMAT_NONE,
#define X(sym, name) DGM_FORMAT_##sym,
    DGM_FORMAT_IDS(X)
#undef X
} dgm_format_id;

DGM_API const char *dgm_format_id_name(dgm_format_id id); /* "a2a-1.0"; "" for NONE */

/* Unknown members: those that a format has no name for. Only the same format writes them back. */
typedef struct dgm_member {
    dgm_str key;
    const dgm_json *value;
} dgm_member;

typedef struct dgm_extra {
    dgm_format_id format; /* that they were read from */
    dgm_member *at;
    size_t n;
} dgm_extra;

typedef enum dgm_opt_bool { DGM_UNSET, DGM_FALSE, DGM_TRUE } dgm_opt_bool;

typedef struct dgm_opt_int {
    bool set;
    int32_t value;
} dgm_opt_int;

/* ---- messages -------------------------------------------------------------------------------- */

typedef enum dgm_role { DGM_ROLE_UNSPECIFIED, DGM_ROLE_USER, DGM_ROLE_AGENT } dgm_role;

typedef enum dgm_part_kind {
    DGM_PART_NONE,
    DGM_PART_TEXT,
    DGM_PART_RAW, /* a file by its bytes */
    DGM_PART_URL, /* a file by its address */
    DGM_PART_DATA /* any JSON value */
} dgm_part_kind;

typedef struct dgm_part {
    dgm_part_kind kind;
    dgm_str content;      /* the text, the bytes in standard base64, or the address */
    const dgm_json *data; /* DGM_PART_DATA only; may be JSON null */
    dgm_str filename;
    dgm_str media_type;
    const dgm_json *metadata;
    const dgm_extra *extra;
    const dgm_extra *nested_extra; /* 0.3: unknown members of the object inside the part */
} dgm_part;

typedef struct dgm_parts {
    dgm_part *at;
    size_t n;
} dgm_parts;

typedef struct dgm_message {
    dgm_str message_id;
    dgm_str context_id;
    dgm_str task_id;
    dgm_role role;
    dgm_parts parts;
    const dgm_json *metadata;
    dgm_strs extensions;
    dgm_strs reference_task_ids;
    const dgm_extra *extra;
} dgm_message;

typedef struct dgm_messages {
    dgm_message *at;
    size_t n;
} dgm_messages;

/* ---- tasks ----------------------------------------------------------------------------------- */

/* The numbers are those of A2A's protobuf enum. */
typedef enum dgm_task_state {
    DGM_STATE_UNKNOWN,
    DGM_STATE_SUBMITTED,
    DGM_STATE_WORKING,
    DGM_STATE_COMPLETED,
    DGM_STATE_FAILED,
    DGM_STATE_CANCELED,
    DGM_STATE_INPUT_REQUIRED,
    DGM_STATE_REJECTED,
    DGM_STATE_AUTH_REQUIRED
} dgm_task_state;
#define DGM_N_STATES 9

typedef struct dgm_status {
    dgm_task_state state;
    dgm_message *message;
    dgm_str timestamp; /* RFC 3339 in UTC, ends in Z */
    const dgm_extra *extra;
} dgm_status;

typedef struct dgm_artifact {
    dgm_str artifact_id;
    dgm_str name;
    dgm_str description;
    dgm_parts parts;
    const dgm_json *metadata;
    dgm_strs extensions;
    const dgm_extra *extra;
} dgm_artifact;

typedef struct dgm_artifacts {
    dgm_artifact *at;
    size_t n;
} dgm_artifacts;

typedef struct dgm_task {
    dgm_str id;
    dgm_str context_id;
    dgm_status status;
    dgm_artifacts artifacts;
    dgm_messages history;
    const dgm_json *metadata;
    const dgm_extra *extra;
} dgm_task;

typedef struct dgm_tasks {
    dgm_task *at;
    size_t n;
} dgm_tasks;

/* ---- stream events --------------------------------------------------------------------------- */

typedef struct dgm_status_update {
    dgm_str task_id;
    dgm_str context_id;
    dgm_status status;
    const dgm_json *metadata;
    const dgm_extra *extra;
} dgm_status_update;

typedef struct dgm_artifact_update {
    dgm_str task_id;
    dgm_str context_id;
    dgm_artifact artifact;
    dgm_opt_bool append;     /* unset reads as false */
    dgm_opt_bool last_chunk; /* unset reads as false */
    const dgm_json *metadata;
    const dgm_extra *extra;
} dgm_artifact_update;

/*
 * Events that an agent sends to the server and an A2A client never sees. The members of each kind are listed
 * behind it.
 */
typedef enum dgm_internal_kind {
    DGM_INTERNAL_LLM_CALL,      /* taskId, iteration, timestamp */
    DGM_INTERNAL_TOOL_START,    /* taskId, toolName, toolCallId, timestamp (+ arguments) */
    DGM_INTERNAL_TOOL_COMPLETE, /* taskId, toolCallId, success, timestamp (+ result or error) */
    DGM_INTERNAL_CHECKPOINT,    /* taskId, iteration, timestamp */
    DGM_INTERNAL_MESSAGE,       /* taskId, message, timestamp: history only */
    DGM_INTERNAL_REASONING,     /* taskId, text, timestamp */
    DGM_INTERNAL_STATE,         /* taskId, value, timestamp */
    DGM_INTERNAL_STEP,          /* taskId, name, timestamp, success once it is over */
    DGM_INTERNAL_USAGE,         /* taskId, value, timestamp */
    DGM_INTERNAL_CUSTOM         /* taskId, name, value, timestamp */
} dgm_internal_kind;
#define DGM_N_INTERNAL_KINDS 10

typedef struct dgm_internal {
    dgm_internal_kind kind;
    dgm_str task_id;
    dgm_opt_int iteration;
    dgm_str tool_name;
    dgm_str tool_call_id;
    const dgm_json *arguments;
    dgm_opt_bool success;
    const dgm_json *result;
    dgm_str error;
    dgm_message *message;
    dgm_str text;
    dgm_str name;
    const dgm_json *value;
    dgm_str timestamp;
    const dgm_extra *extra;
} dgm_internal;

typedef enum dgm_event_kind {
    DGM_EVENT_NONE,
    DGM_EVENT_TASK,
    DGM_EVENT_MESSAGE,
    DGM_EVENT_STATUS,
    DGM_EVENT_ARTIFACT,
    DGM_EVENT_INTERNAL
} dgm_event_kind;

typedef struct dgm_event {
    dgm_event_kind kind;
    union {
        dgm_task *task;
        dgm_message *message;
        dgm_status_update *status;
        dgm_artifact_update *artifact;
        dgm_internal *internal;
        void *any;
    };
    const dgm_extra *extra;
} dgm_event;

/* ---- what may follow what ----------------------------------------------------------------------- */

DGM_API bool dgm_state_is_terminal(dgm_task_state s);    /* completed failed canceled rejected */
DGM_API bool dgm_state_is_interrupted(dgm_task_state s); /* input-required auth-required */

/* May a task in state `from` report `to` next? Terminal states are frozen for ever. */
DGM_API bool dgm_state_may_become(dgm_task_state from, dgm_task_state to);

/* A2A 0.3's `final` flag, a function of the state alone: terminal, or input-required. */
DGM_API bool dgm_state_is_final_03(dgm_task_state s);

/* ---- requests and results -------------------------------------------------------------------- */

typedef struct dgm_push_auth {
    dgm_strs schemes; /* A2A 1.0 has room for the first alone */
    dgm_str credentials;
    const dgm_extra *extra;
} dgm_push_auth;

typedef struct dgm_push_config {
    dgm_str tenant;
    dgm_str id;
    dgm_str task_id;
    dgm_str url;
    dgm_str token;
    dgm_push_auth *authentication;
    const dgm_extra *extra;
    const dgm_extra *outer_extra; /* 0.3: unknown members beside the nested configuration */
} dgm_push_config;

typedef struct dgm_push_configs {
    dgm_push_config *at;
    size_t n;
} dgm_push_configs;

typedef struct dgm_send_configuration {
    dgm_strs accepted_output_modes;
    dgm_push_config *push_config;
    dgm_opt_int history_length;
    dgm_opt_bool return_immediately;
    const dgm_extra *extra;
} dgm_send_configuration;

typedef struct dgm_send_request {
    dgm_str tenant;
    dgm_message *message;
    dgm_send_configuration *configuration;
    const dgm_json *metadata;
    const dgm_extra *extra;
} dgm_send_request;

/* GetTask, CancelTask, SubscribeToTask, and the four on push configurations but Create. */
typedef struct dgm_task_request {
    dgm_str tenant;
    dgm_str task_id;
    dgm_str config_id; /* push configuration requests only */
    dgm_opt_int history_length;
    dgm_opt_int page_size;
    dgm_str page_token;
    const dgm_json *metadata;
    const dgm_extra *extra;
} dgm_task_request;

typedef struct dgm_list_tasks_request {
    dgm_str tenant;
    dgm_str context_id;
    dgm_opt_int status; /* a dgm_task_state */
    dgm_opt_int page_size;
    dgm_str page_token;
    dgm_opt_int history_length;
    dgm_str status_timestamp_after;
    dgm_opt_bool include_artifacts;
    const dgm_extra *extra;
} dgm_list_tasks_request;

typedef struct dgm_list_tasks_result {
    dgm_tasks tasks;
    dgm_str next_page_token;
    int32_t page_size;
    int32_t total_size;
    const dgm_extra *extra;
} dgm_list_tasks_result;

typedef struct dgm_push_config_list {
    dgm_push_configs configs;
    dgm_str next_page_token;
    const dgm_extra *extra;
} dgm_push_config_list;

/* ---- agent cards --------------------------------------------------------------------------------- */

typedef struct dgm_agent_interface {
    dgm_str url;
    dgm_str protocol_binding;
    dgm_str tenant;
    dgm_str protocol_version;
    const dgm_extra *extra;
} dgm_agent_interface;

typedef struct dgm_agent_interfaces {
    dgm_agent_interface *at;
    size_t n;
} dgm_agent_interfaces;

typedef struct dgm_agent_provider {
    dgm_str url;
    dgm_str organization;
    const dgm_extra *extra;
} dgm_agent_provider;

typedef struct dgm_agent_extension {
    dgm_str uri;
    dgm_str description;
    dgm_opt_bool required;
    const dgm_json *params;
    const dgm_extra *extra;
} dgm_agent_extension;

typedef struct dgm_agent_extensions {
    dgm_agent_extension *at;
    size_t n;
} dgm_agent_extensions;

typedef struct dgm_agent_capabilities {
    dgm_opt_bool streaming;
    dgm_opt_bool push_notifications;
    dgm_opt_bool state_transition_history; /* 0.3 only */
    dgm_opt_bool extended_agent_card;
    dgm_agent_extensions extensions;
    const dgm_extra *extra;
} dgm_agent_capabilities;

typedef struct dgm_named_text {
    dgm_str name;
    dgm_str text;
} dgm_named_text;

typedef struct dgm_named_texts {
    dgm_named_text *at;
    size_t n;
} dgm_named_texts;

typedef enum dgm_oauth_flow_kind {
    DGM_FLOW_NONE,
    DGM_FLOW_AUTHORIZATION_CODE,
    DGM_FLOW_CLIENT_CREDENTIALS,
    DGM_FLOW_IMPLICIT,
    DGM_FLOW_PASSWORD,
    DGM_FLOW_DEVICE_CODE
} dgm_oauth_flow_kind;

typedef struct dgm_oauth_flow {
    dgm_oauth_flow_kind kind;
    dgm_str authorization_url;
    dgm_str device_authorization_url;
    dgm_str token_url;
    dgm_str refresh_url;
    dgm_named_texts scopes;
    dgm_opt_bool pkce_required;
    const dgm_extra *extra;
} dgm_oauth_flow;

typedef struct dgm_oauth_flows {
    dgm_oauth_flow *at; /* A2A 1.0 has room for one */
    size_t n;
} dgm_oauth_flows;

typedef enum dgm_scheme_kind {
    DGM_SCHEME_NONE,
    DGM_SCHEME_API_KEY,
    DGM_SCHEME_HTTP,
    DGM_SCHEME_OAUTH2,
    DGM_SCHEME_OPENID,
    DGM_SCHEME_MTLS
} dgm_scheme_kind;

typedef struct dgm_security_scheme {
    dgm_str name; /* its key in the card */
    dgm_scheme_kind kind;
    dgm_str description;
    dgm_str location; /* api key: query, header or cookie */
    dgm_str key_name; /* api key: the header's, parameter's or cookie's name */
    dgm_str scheme;   /* http */
    dgm_str bearer_format;
    dgm_oauth_flows flows;
    dgm_str oauth2_metadata_url;
    dgm_str openid_connect_url;
    const dgm_extra *extra;
    const dgm_extra *outer_extra; /* 1.0: unknown members beside the one that names the kind */
    const dgm_extra *flows_extra; /* oauth2: unknown members beside the flows */
} dgm_security_scheme;

typedef struct dgm_security_schemes {
    dgm_security_scheme *at;
    size_t n;
} dgm_security_schemes;

typedef struct dgm_required_scheme {
    dgm_str name;
    dgm_strs scopes;
    const dgm_extra *extra;
} dgm_required_scheme;

typedef struct dgm_required_schemes {
    dgm_required_scheme *at;
    size_t n;
} dgm_required_schemes;

/* All of its schemes together; the card's list of these is an "or". */
typedef struct dgm_security_requirement {
    dgm_required_schemes schemes;
    const dgm_extra *extra;
} dgm_security_requirement;

typedef struct dgm_security_requirements {
    dgm_security_requirement *at;
    size_t n;
} dgm_security_requirements;

typedef struct dgm_agent_skill {
    dgm_str id;
    dgm_str name;
    dgm_str description;
    dgm_strs tags;
    dgm_strs examples;
    dgm_strs input_modes;
    dgm_strs output_modes;
    dgm_security_requirements security_requirements;
    const dgm_extra *extra;
} dgm_agent_skill;

typedef struct dgm_agent_skills {
    dgm_agent_skill *at;
    size_t n;
} dgm_agent_skills;

typedef struct dgm_card_signature {
    dgm_str protected_header; /* base64url */
    dgm_str signature;        /* base64url */
    const dgm_json *header;
    const dgm_extra *extra;
} dgm_card_signature;

typedef struct dgm_card_signatures {
    dgm_card_signature *at;
    size_t n;
} dgm_card_signatures;

typedef struct dgm_agent_card {
    dgm_str name;
    dgm_str description;
    dgm_agent_interfaces interfaces; /* in order of preference */
    dgm_agent_provider *provider;
    dgm_str version;
    dgm_str documentation_url;
    dgm_str icon_url;
    dgm_agent_capabilities capabilities;
    dgm_security_schemes security_schemes;
    dgm_security_requirements security_requirements;
    dgm_strs default_input_modes;
    dgm_strs default_output_modes;
    dgm_agent_skills skills;
    dgm_card_signatures signatures;
    const dgm_extra *extra;
} dgm_agent_card;

/* ---- errors as peers send them ------------------------------------------------------------------- */

typedef struct dgm_error {
    dgm_code code;       /* DGM_OK when no code of ours fits: then only the members below tell */
    int32_t rpc_code;    /* 0: not given */
    int32_t http_status; /* 0: not given */
    dgm_str status;      /* the gRPC status name of a REST error */
    dgm_str message;
    const dgm_json *details; /* `data` or `details` unchanged; NULL if absent */
    const dgm_extra *extra;
} dgm_error;

/* ---- any of them ----------------------------------------------------------------------------------- */

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
    X(ERROR, "error", dgm_error)                                                                   \
    X(EMPTY, "empty", void)

typedef enum dgm_object_kind {
    DGM_OBJECT_NONE,
#define X(sym, name, type) DGM_OBJECT_##sym,
    DGM_OBJECT_KINDS(X)
#undef X
} dgm_object_kind;

DGM_API const char *dgm_object_kind_name(dgm_object_kind kind); /* "message"; "" for NONE */
DGM_API dgm_object_kind dgm_object_kind_by_name(dgm_str name);  /* NONE when there is no such */

#ifdef __cplusplus
}
#endif
