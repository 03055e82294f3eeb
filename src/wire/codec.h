/*
 * wire/codec.h - the whole surface of a format that speaks A2A.
 *
 * A codec is pure: bytes to model structs in the caller's arena, and back. It touches no socket,
 * clock or global. Two formats never meet here; converting is one's decode and the other's encode.
 */
#pragma once

#include "json/shape.h"

#include <dragoman/convert.h>

/* One object: its kind and the struct DGM_OBJECT_KINDS names for it. */
typedef struct dgm_object {
    dgm_object_kind kind;
    void *it;
} dgm_object;

/* What an A2A operation is called in every binding. */
#define DGM_METHODS(X) /* symbol, 1.0, 0.3 (or NULL), params, result */                            \
    X(SEND, "SendMessage", "message/send", SEND_REQUEST, SEND_RESPONSE)                            \
    X(STREAM, "SendStreamingMessage", "message/stream", SEND_REQUEST, STREAM_RESPONSE)             \
    X(GET, "GetTask", "tasks/get", GET_TASK_REQUEST, TASK)                                         \
    X(LIST, "ListTasks", NULL, LIST_TASKS_REQUEST, LIST_TASKS_RESPONSE)                            \
    X(CANCEL, "CancelTask", "tasks/cancel", CANCEL_REQUEST, TASK)                                  \
    X(SUBSCRIBE, "SubscribeToTask", "tasks/resubscribe", SUBSCRIBE_REQUEST, STREAM_RESPONSE)       \
    X(PUSH_CREATE, "CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set",         \
      PUSH_CONFIG, PUSH_CONFIG)                                                                    \
    X(PUSH_GET, "GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get",               \
      PUSH_GET_REQUEST, PUSH_CONFIG)                                                               \
    X(PUSH_LIST, "ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list",           \
      PUSH_LIST_REQUEST, PUSH_CONFIG_LIST)                                                         \
    X(PUSH_DELETE, "DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete",      \
      PUSH_DELETE_REQUEST, EMPTY)                                                                  \
    X(EXTENDED_CARD, "GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard",                 \
      EXTENDED_CARD_REQUEST, CARD)

typedef enum dgm_method {
    DGM_METHOD_NONE,
#define X(sym, v1, v03, params, result) DGM_METHOD_##sym,
    DGM_METHODS(X)
#undef X
} dgm_method;

typedef enum dgm_envelope_kind {
    DGM_ENVELOPE_NONE,
    DGM_ENVELOPE_REQUEST,
    DGM_ENVELOPE_RESPONSE
} dgm_envelope_kind;

/* One thing on the wire: an object, alone or in a JSON-RPC envelope. */
typedef struct dgm_frame {
    dgm_envelope_kind envelope;
    const dgm_json *id; /* of the envelope, with its JSON type; NULL: none */
    dgm_method method;  /* requests only */
    dgm_object object;
} dgm_frame;

typedef struct dgm_codec {
    const char *name;     /* in configs, logs, the names of vectors */
    dgm_format_id format; /* tags unknown members */
    const char *about;
    bool envelopes;
    /* How likely is it that a peer of this format wrote v? 0: it did not; more: it could have. */
    int (*recognise)(const yyjson_val *v);
    /* kind: what v (or the result in it) is; NONE: tell by its shape. in_stream: one of several. */
    dgm_code (*decode)(dgm_reader *r, yyjson_val *v, dgm_object_kind kind, bool in_stream,
                       dgm_frame *ret_frame);
    /* Straight from the text of an event of a stream, if that is of the usual kind; false: it is not, it is
     * for decode(). What is made borrows from the text. NULL: the format has no such short way. */
    bool (*decode_usual)(dgm_reader *r, dgm_str text, dgm_frame *ret_frame);
    dgm_code (*encode)(dgm_writer *w, const dgm_frame *frame, dgm_err *err);
} dgm_codec;
