/*
 * wire/codec.h - the contract of a format: one struct, filled once per format and listed in wire/formats.c.
 *
 * A codec is pure: it touches no socket, clock or global, and generated ids come from its parameters. It includes no
 * other format. Framing (SSE, lines, an array) is the caller's.
 *
 * A format has up to five kinds of values; a member that is NULL means that the format does not have the kind:
 *
 *   objects   A2A only: the values are structs of the model. decode() and encode() convert one value, and two formats with
 *             objects need nothing else. Everything else converts through canonical events (wire/stream.h)
 *   events    a stream: chunks, server-sent events. A decoder gets its values and emits canonical events; an encoder
 *             gets those and emits frames
 *   response  the same as one object (chat.completion, response), with the same handles. A decoder detects it; an
 *             encoder that gets params.whole emits one frame, at the end
 *   messages  a history, or one message of it
 *   request   starts a run: messages, tools, settings
 */
#pragma once

#include "canon/canon.h"
#include "json/shape.h"

#include <dragoman/convert.h>

/* ---- objects of A2A ---------------------------------------------------------------------------------------- */

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

/* Values that canonical events have no word for, as they are. openai-responses: an item is the value of a CUSTOM event of this
 * name, and the content of an activity of this type. ai-sdk: a part of a message is the content of an activity, which is only
 * written. */
#define DGM_RESPONSES_ITEM "openai:item"
#define DGM_AISDK_PART "ai-sdk:part"

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

/* ---- streams ----------------------------------------------------------------------------------------------- */

/* One payload, with the name of its server-sent event; empty: none. Both are valid until this returns. */
typedef struct dgm_frame_sink {
    dgm_code (*on_frame)(void *arg, dgm_str name, dgm_str payload);
    void *arg;
} dgm_frame_sink;

typedef struct dgm_stream_params {
    bool old_peer; /* ag-ui: a client older than 1.0 */
    bool alone;    /* a2a: a message is written by itself, not as an event of a stream */
    bool fragment; /* not a complete run: start and end nothing that is not in the input */
    bool whole;    /* encoders: the response, not its events */
    /* Decoders of OpenAI's formats: the input is the answer to one request. Another id does not start another run, and an
     * answer that a filter withheld is empty, not an error. */
    bool one_run;
    /* Decoders of ag-ui-simple and responses-simple: all events are compacted before they are decoded. */
    bool compact;
    bool usage;  /* openai-chat: the chunk with the usage was requested */
    bool so_far; /* openai-responses, whole: a run that has not ended is in progress */
    /* openai-responses: ids of items are the id of the response and a number, so that the response can be found */
    bool scoped_ids;
    /* openai-chat: JSON was requested as the answer: data is written as it is, not as a block of code */
    bool json;
    dgm_str model; /* the agent, in OpenAI's formats; absent: "dragoman" */
    /* openai, ai-sdk: every answer names this task; absent: as the format does, in chat only of a task that waits */
    dgm_str task_id;
    bool no_task; /* the answer is a Message: there is no task and no state */
    int64_t now;  /* Unix milliseconds, for values that need a time and have none */
    dgm_mint mint;
} dgm_stream_params;

/* Rows for docs/internals/losses.md. object is the form's name, or "any"; member a pointer, or of events the type and of
 * messages the role, with a pointer behind it or without; a name may end with "*". */
typedef struct dgm_loss_rows {
    const dgm_loss *at;
    size_t n;
} dgm_loss_rows;

/* What only AG-UI has a place for, of events: rows of all others. */
#define DGM_LOST_BY_ALL_OTHERS                                                                     \
    {"events", "/rawEvent", "left out"},                                                           \
        {"events", "/subagentRunId",                                                               \
         "left out: the text of a subagent is written as text of the agent"},                      \
        {"events", "SUBAGENT_*", "left out"}, {"events", "RAW", "left out"},                       \
        {"events", "ACTIVITY_DELTA", "left out"},                                                  \
        {"events", "TEXT_MESSAGE_START/name", "left out"},                                         \
    {                                                                                              \
        "events", "/*", "members that AG-UI 1.0 does not know are left out"                        \
    }

/* Rows that both simple dialects have when they are written. */
#define DGM_LOST_BY_SIMPLE_DIALECTS                                                                \
    {"events", "MESSAGES_SNAPSHOT",                                                                \
     "messages that were not streamed are appended; a final text that differs from the streamed "  \
     "text is written again"},                                                                     \
        {"events", "TEXT_MESSAGE_CONTENT/delta",                                                   \
         "a text that changed is written again, followed by the question of an interrupt",         \
         DGM_LOSS_NOT_REPORTED},                                                                   \
        {"events", "/messageId", "left out for user messages and for results",                     \
         DGM_LOSS_NOT_REPORTED},                                                                   \
        {"events", "/role", "system and developer become user; the role of a result is left out",  \
         DGM_LOSS_IS, "system developer tool"},                                                    \
    {                                                                                              \
        "events", "/parentMessageId",                                                              \
            "left out for calls that are the only event of their message", DGM_LOSS_NOT_REPORTED   \
    }

/* ---- the contract ------------------------------------------------------------------------------------------ */

typedef struct dgm_codec {
    const char *name;     /* in configs, logs, the names of vectors */
    dgm_format_id format; /* tags unknown members */
    /* The payload of the frame that ends a stream ("[DONE]"); NULL: the format has no such frame. */
    const char *stream_end;
    /* Its readers build messages from events: snapshots must be complete (dgm_records_params). */
    bool builds_messages;
    bool own_snapshots; /* its encoder handles snapshots itself */
    /* Its frames are bytes, one after the other: not JSON, without another framing. */
    bool binary;
    /* Its streams hold complete messages beside their chunks: there they are events. */
    bool streams_messages;
    bool has_response; /* its encoder knows params.whole */
    /* Complete messages from and to objects do not pass through events (lib/direct.h). */
    bool direct;

    /* How likely is it that v is of this format? 0: it is not; 1: possible; 2 and more: it has the marks of the format.
     * ret_form: the kind of value; not set by formats with objects. */
    int (*recognise)(const yyjson_val *v, dgm_form *ret_form);
    /* Is the array one value of the format, not a list of them? NULL: never. */
    bool (*is_one)(const yyjson_val *array);

    /* Objects. kind: that of v, or of the result in it; NONE: detect it. in_stream: v is an event of a stream. */
    dgm_code (*decode)(dgm_reader *r, yyjson_val *v, dgm_object_kind kind, bool in_stream,
                       dgm_frame *ret_frame);
    /* A fast path for the most frequent event of a stream: decodes its text without JSON values in between. The result
     * borrows from the text. false: another event, for decode(). NULL: none. */
    bool (*decode_usual)(dgm_reader *r, dgm_str text, dgm_frame *ret_frame);
    dgm_code (*encode)(dgm_writer *w, const dgm_frame *frame, dgm_err *err);

    /* Events and responses. The decoder retains neither v nor an event after it returns. */
    void *(*decoder_new)(const dgm_stream_params *params);
    dgm_code (*decoder_feed)(void *decoder, dgm_reader *r, yyjson_val *v, dgm_canon_sink sink);
    /* The frame that ends a stream was read (stream_end). NULL: the decoder does not need it. */
    void (*decoder_done)(void *decoder);
    dgm_code (*decoder_end)(void *decoder, dgm_canon_sink sink, dgm_err *err);
    void (*decoder_free)(void *decoder);

    void *(*encoder_new)(const dgm_stream_params *params, dgm_frame_sink sink);
    dgm_code (*encoder_feed)(void *encoder, const dgm_canon_event *event, dgm_err *err);
    dgm_code (*encoder_end)(void *encoder, dgm_err *err);
    void (*encoder_free)(void *encoder);

    /* Messages. v: one message, or a list. Writing emits a frame for each element of the format's list; their number may
     * differ from the number of messages. */
    dgm_code (*read_messages)(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                              dgm_canon_messages *ret_messages);
    dgm_code (*write_messages)(const dgm_canon_messages *messages, const dgm_stream_params *params,
                               dgm_frame_sink sink, dgm_err *err);

    /* Requests. Members that only this format has are stored in the input's `extra`. */
    dgm_code (*read_request)(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                             dgm_canon_input *ret_input);
    dgm_code (*write_request)(dgm_writer *w, const dgm_canon_input *input,
                              const dgm_stream_params *params, dgm_err *err);

    /* What the format loses when it becomes canonical events, and what those lose in the format. NULL: nothing. */
    const dgm_loss_rows *lost_reading, *lost_writing;
} dgm_codec;
