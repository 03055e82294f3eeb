/*
 * canon/simple.h - document 000's events: eleven kinds, each whole.
 *
 * They share names with AG-UI's and mean more: a TextMessageEndEvent carries the text, a
 * ToolCallStartEvent all arguments. Each is one message or one state of A2A, so they are made of those,
 * and can be made into those again.
 */
#pragma once

#include "base/err.h"
#include "base/mint.h"
#include "canon/canon.h"

#define DGM_SIMPLE_KINDS(X) /* symbol, canonical_type, type in the dialect */                      \
    X(RUN_STARTED, "RunStartedEvent", "run-started")                                               \
    X(STEP_STARTED, "StepStartedEvent", "step-started")                                            \
    X(TEXT_CONTENT, "TextMessageContentEvent", "text-message-content")                             \
    X(TEXT_CHUNK, "TextMessageChunkEvent", "text-message-chunk")                                   \
    X(TEXT_END, "TextMessageEndEvent", "text-message-end")                                         \
    X(CALL_ARGS, "ToolCallArgsEvent", "tool-call-args")                                            \
    X(CALL_START, "ToolCallStartEvent", "tool-call-start")                                         \
    X(CALL_RESULT, "ToolCallResultEvent", "tool-call-result")                                      \
    X(STEP_FINISHED, "StepFinishedEvent", "step-finished")                                         \
    X(RUN_FINISHED, "RunFinishedEvent", "run-finished")                                            \
    X(RUN_ERROR, "RunErrorEvent", "run-error")

typedef enum dgm_simple_kind {
    DGM_SIMPLE_NONE,
#define X(sym, canonical, name) DGM_SIMPLE_##sym,
    DGM_SIMPLE_KINDS(X)
#undef X
} dgm_simple_kind;
#define DGM_N_SIMPLE_KINDS 12 /* with NONE */

typedef struct dgm_simple_call {
    dgm_str id;
    dgm_str name;
    const dgm_json *arguments; /* an object, or text; NULL: none */
    const dgm_json *type;      /* of a tool that is no function ("custom"); mostly NULL */
    const dgm_extra *extra;
} dgm_simple_call;

typedef struct dgm_simple_message {
    dgm_canon_role role;
    dgm_canon_content content;
    const dgm_extra *extra;
} dgm_simple_message;

typedef struct dgm_simple_event {
    dgm_simple_kind kind;
    dgm_str thread_id, run_id;   /* RUN_STARTED, RUN_FINISHED */
    dgm_str step_name;           /* STEP_* */
    dgm_str message_id;          /* TEXT_CHUNK, TEXT_END */
    dgm_str parent_message_id;   /* CALL_*: of calls that are not their message's only event */
    dgm_simple_message message;  /* TEXT_CONTENT, TEXT_END */
    dgm_str delta;               /* TEXT_CHUNK */
    dgm_simple_call call;        /* CALL_ARGS, CALL_START */
    dgm_str tool_call_id;        /* CALL_RESULT */
    const dgm_json *result;      /* CALL_RESULT; NULL is null */
    dgm_str error_message, code; /* RUN_ERROR */
    /* For dgm_compactor: the message that the event was made of, and which of its calls. Never encoded. */
    size_t source, nth;
    const dgm_extra *extra;
} dgm_simple_event;

typedef struct dgm_simple_events {
    dgm_simple_event *at;
    size_t n;
} dgm_simple_events;

/* "RunStartedEvent", "run-started"; "" for NONE. */
const char *dgm_simple_canonical_type(dgm_simple_kind kind);
const char *dgm_simple_type(dgm_simple_kind kind);
dgm_simple_kind dgm_simple_by_type(dgm_str type); /* NONE when there is no such */

/*
 * convert_a2a_message_to_agui_event(): none, one or several. Text goes before calls, results before
 * text. Where there are several, calls carry their message's id as parent, so that they become one
 * message again. No id is made up: a message without one gives events without.
 */
dgm_code dgm_simple_from_message(dgm_arena *a, const dgm_message *m, bool trusted, const dgm_at *at,
                                 dgm_simple_events *ret_events, dgm_err *err);

/* What an event stands for: a Task, a status-update, or a message. Ids come from the mint where the
 * event has none; ids: the run it belongs to. */
typedef struct dgm_simple_run {
    dgm_str thread_id, run_id;
} dgm_simple_run;
void dgm_simple_to_model(dgm_arena *a, const dgm_simple_event *e, dgm_simple_run ids,
                         dgm_mint *mint, dgm_event *ret_event);

/* ---- a stream of canonical events ---------------------------------------------------------------------- */

typedef struct dgm_simple_encoder dgm_simple_encoder;

/* Where events go; they live until this returns. */
typedef dgm_code (*dgm_on_simple)(void *arg, const dgm_simple_event *event);

dgm_simple_encoder *dgm_simple_encoder_new(dgm_on_simple on_event, void *arg);
void dgm_simple_encoder_free(dgm_simple_encoder *s); /* NULL is fine */
/* Text and arguments are kept until they are whole, up to the limit record_bytes each. */
dgm_code dgm_simple_encoder_feed(dgm_simple_encoder *s, const dgm_canon_event *event, dgm_err *err);
dgm_code dgm_simple_encoder_end(dgm_simple_encoder *s, dgm_err *err);

DGM_DEFINE_AUTO(dgm_simple_encoder, dgm_simple_encoder_free)
