/*
 * canon/canon.h - AG-UI 1.0's events as C structs: the pivot between all formats that are not A2A.
 *
 * Canonical events are derived, never stored: from the records of a turn (records_to_events.h) or from the
 * input of a peer that uses another format (wire). The structs have the content of AG-UI's events, without
 * their JSON encoding: that is in wire/agui. They borrow everything they point to, as those of the model do: absent text is
 * {NULL, 0}, absent objects are NULL, empty lists have n == 0, opaque JSON keeps numbers as text.
 *
 * Whoever makes events says START, CONTENT, END; chunks (TEXT_MESSAGE_CHUNK, ...) are only read, and
 * expanded (chunks_to_events.h) before anybody else sees them.
 *
 * Nothing here is random and nothing reads the clock: an absent id is replaced by one made of the run's id
 * and a number, so the same records give the same events again.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/mint.h"
#include "model/names.h"

#include <dragoman/model.h>

#define DGM_AGUI_VERSION "1.0"

typedef struct dgm_opt_long {
    bool set;
    int64_t value;
} dgm_opt_long;

/* ---- messages -------------------------------------------------------------------------------- */

typedef enum dgm_canon_role {
    DGM_CANON_ROLE_NONE, /* where it may be left out: assistant */
    DGM_CANON_DEVELOPER,
    DGM_CANON_SYSTEM,
    DGM_CANON_ASSISTANT,
    DGM_CANON_USER,
    DGM_CANON_TOOL,
    DGM_CANON_REASONING,
    DGM_CANON_ACTIVITY
} dgm_canon_role;
#define DGM_N_CANON_ROLES 8

typedef enum dgm_canon_part_kind {
    DGM_CANON_PART_NONE,
    DGM_CANON_PART_TEXT,
    DGM_CANON_PART_IMAGE,
    DGM_CANON_PART_AUDIO,
    DGM_CANON_PART_VIDEO,
    DGM_CANON_PART_DOCUMENT
} dgm_canon_part_kind;
#define DGM_N_CANON_PART_KINDS 6

typedef enum dgm_canon_source_kind {
    DGM_CANON_SOURCE_NONE,
    DGM_CANON_SOURCE_DATA, /* base64 */
    DGM_CANON_SOURCE_URL,
    DGM_CANON_SOURCE_FILE /* a handle that only its provider understands */
} dgm_canon_source_kind;

typedef struct dgm_canon_source {
    dgm_canon_source_kind kind;
    dgm_str value;
    dgm_str mime_type;
    dgm_str provider; /* FILE only */
    const dgm_extra *extra;
} dgm_canon_source;

typedef struct dgm_canon_part {
    dgm_canon_part_kind kind;
    dgm_str text;
    dgm_canon_source source; /* all but text */
    dgm_str id;
    const dgm_json *metadata; /* any value but null: file names go here */
    bool own_line; /* JSON or a link: never glued to the text around it; never leaves us */
    const dgm_extra *extra;
} dgm_canon_part;

typedef struct dgm_canon_parts {
    dgm_canon_part *at;
    size_t n;
} dgm_canon_parts;

typedef enum dgm_canon_content_kind {
    DGM_CANON_CONTENT_ABSENT,
    DGM_CANON_CONTENT_TEXT,
    DGM_CANON_CONTENT_PARTS,
    DGM_CANON_CONTENT_OBJECT /* of an activity */
} dgm_canon_content_kind;

typedef struct dgm_canon_content {
    dgm_canon_content_kind kind;
    dgm_str text;
    dgm_canon_parts parts;
    const dgm_json *object;
} dgm_canon_content;

typedef struct dgm_canon_call {
    dgm_str id;
    dgm_str name;
    dgm_str arguments; /* text: mostly, not always, a JSON object */
    dgm_str encrypted_value;
    const dgm_json *metadata;
    const dgm_extra *extra;
    const dgm_extra *function_extra;
} dgm_canon_call;

typedef struct dgm_canon_calls {
    dgm_canon_call *at;
    size_t n;
} dgm_canon_calls;

typedef struct dgm_canon_message {
    dgm_canon_role role;
    dgm_str id;
    dgm_str name;
    dgm_canon_content content;
    dgm_canon_calls tool_calls; /* assistant */
    dgm_str tool_call_id;       /* tool */
    dgm_str error;              /* tool */
    dgm_str activity_type;      /* activity */
    dgm_str encrypted_value;
    dgm_str subagent_run_id;
    const dgm_json *metadata;
    const dgm_extra *extra;
} dgm_canon_message;

typedef struct dgm_canon_messages {
    dgm_canon_message *at;
    size_t n;
} dgm_canon_messages;

/* ---- a request --------------------------------------------------------------------------------- */

typedef struct dgm_canon_tool {
    dgm_str name;
    dgm_str description;
    const dgm_json *parameters; /* JSON Schema */
    const dgm_json *metadata;
    const dgm_extra *extra;
} dgm_canon_tool;

typedef struct dgm_canon_tools {
    dgm_canon_tool *at;
    size_t n;
} dgm_canon_tools;

typedef struct dgm_canon_context {
    dgm_str description;
    dgm_str value;
    const dgm_extra *extra;
} dgm_canon_context;

typedef struct dgm_canon_contexts {
    dgm_canon_context *at;
    size_t n;
} dgm_canon_contexts;

typedef enum dgm_canon_answer {
    DGM_CANON_ANSWER_NONE,
    DGM_CANON_RESOLVED,
    DGM_CANON_DISMISSED /* "cancelled" */
} dgm_canon_answer;

typedef struct dgm_canon_resume {
    dgm_str interrupt_id;
    dgm_canon_answer status;
    const dgm_json *payload;
    const dgm_json *metadata;
    const dgm_extra *extra;
} dgm_canon_resume;

typedef struct dgm_canon_resumes {
    dgm_canon_resume *at;
    size_t n;
} dgm_canon_resumes;

/* RunAgentInput. */
typedef struct dgm_canon_input {
    dgm_str thread_id;
    dgm_str run_id;
    dgm_str protocol_version; /* absent: an older peer (before AG-UI 1.0) */
    dgm_str parent_run_id;
    const dgm_json *state;
    dgm_canon_messages messages;
    dgm_canon_tools tools;
    dgm_canon_contexts context;
    const dgm_json *forwarded_props;
    dgm_canon_resumes resume;
    const dgm_extra *extra;
} dgm_canon_input;

/* ---- how a run ends ------------------------------------------------------------------------------ */

typedef struct dgm_canon_interrupt {
    dgm_str id;
    dgm_str reason; /* input_required, tool_call, confirmation, or vendor:name */
    dgm_str message;
    dgm_str tool_call_id;
    dgm_str expires_at;
    const dgm_json *response_schema;
    const dgm_json *metadata;
    dgm_str subagent_run_id;
    bool text_only; /* the question is `message` and nothing else; formats do not write it */
    const dgm_extra *extra;
} dgm_canon_interrupt;

typedef struct dgm_canon_interrupts {
    dgm_canon_interrupt *at;
    size_t n;
} dgm_canon_interrupts;

typedef enum dgm_canon_outcome_kind {
    DGM_CANON_OUTCOME_NONE, /* reads as success */
    DGM_CANON_SUCCESS,
    DGM_CANON_INTERRUPT,
    DGM_CANON_CANCELLED,
    DGM_CANON_SUSPENDED /* of a subagent */
} dgm_canon_outcome_kind;

typedef struct dgm_canon_outcome {
    dgm_canon_outcome_kind kind;
    dgm_strs pending_tool_call_ids;  /* SUCCESS */
    bool awaits_no_results;          /* of those calls: the task is over; formats do not write it */
    dgm_canon_interrupts interrupts; /* INTERRUPT */
    dgm_strs interrupt_ids;          /* SUSPENDED */
    const dgm_extra *extra;
} dgm_canon_outcome;

/* Input and output are totals; the others are parts of them. Not reported is not zero. */
typedef struct dgm_canon_usage {
    dgm_str provider;
    dgm_str model;
    dgm_opt_long input_tokens;
    dgm_opt_long output_tokens;
    dgm_opt_long total_tokens;
    dgm_opt_long reasoning_tokens;
    dgm_opt_long cached_input_tokens;
    dgm_opt_long cache_write_input_tokens;
    const dgm_extra *extra;
} dgm_canon_usage;

typedef struct dgm_canon_usages {
    dgm_canon_usage *at;
    size_t n;
} dgm_canon_usages;

/* ---- events -------------------------------------------------------------------------------------- */

/* AG-UI's. */
#define DGM_CANON_KINDS(X)                                                                         \
    X(RUN_STARTED)                                                                                 \
    X(RUN_FINISHED)                                                                                \
    X(RUN_ERROR)                                                                                   \
    X(STEP_STARTED)                                                                                \
    X(STEP_FINISHED)                                                                               \
    X(TEXT_MESSAGE_START)                                                                          \
    X(TEXT_MESSAGE_CONTENT)                                                                        \
    X(TEXT_MESSAGE_END)                                                                            \
    X(TEXT_MESSAGE_CHUNK)                                                                          \
    X(TOOL_CALL_START)                                                                             \
    X(TOOL_CALL_ARGS)                                                                              \
    X(TOOL_CALL_END)                                                                               \
    X(TOOL_CALL_CHUNK)                                                                             \
    X(TOOL_CALL_RESULT)                                                                            \
    X(STATE_SNAPSHOT)                                                                              \
    X(STATE_DELTA)                                                                                 \
    X(MESSAGES_SNAPSHOT)                                                                           \
    X(ACTIVITY_SNAPSHOT)                                                                           \
    X(ACTIVITY_DELTA)                                                                              \
    X(REASONING_START)                                                                             \
    X(REASONING_MESSAGE_START)                                                                     \
    X(REASONING_MESSAGE_CONTENT)                                                                   \
    X(REASONING_MESSAGE_END)                                                                       \
    X(REASONING_MESSAGE_CHUNK)                                                                     \
    X(REASONING_END)                                                                               \
    X(REASONING_ENCRYPTED_VALUE)                                                                   \
    X(SUBAGENT_STARTED)                                                                            \
    X(SUBAGENT_FINISHED)                                                                           \
    X(SUBAGENT_ERROR)                                                                              \
    X(RAW)                                                                                         \
    X(CUSTOM)

typedef enum dgm_canon_kind {
    DGM_CANON_NONE,
#define X(sym) DGM_CANON_##sym,
    DGM_CANON_KINDS(X)
#undef X
        DGM_CANON_ARTIFACT, /* not AG-UI's: there it is CUSTOM "dragoman:artifact" */
} dgm_canon_kind;
#define DGM_N_CANON_KINDS 33 /* with NONE */

/*
 * Members without a comment are the wire's. `whole`, `parts` of a text, `increment`, `pending`, `changed`
 * never leave us: they tell encoders of other formats what AG-UI's events have no words for.
 */
typedef struct dgm_canon_event {
    dgm_canon_kind kind;
    dgm_opt_long timestamp;    /* Unix milliseconds */
    const dgm_json *raw_event; /* any value but null */
    const dgm_json *metadata;  /* an object */
    dgm_str subagent_run_id;   /* who speaks; of SUBAGENT_* who it is about */
    const dgm_extra *extra;
    union {
        struct {
            dgm_str thread_id, run_id, protocol_version, parent_run_id;
            dgm_canon_input *input;
        } run_started;
        struct {
            dgm_str thread_id, run_id;
            const dgm_json *result;
            dgm_canon_outcome outcome;
            dgm_canon_usages usage;
        } run_finished;
        struct {
            dgm_str message, code;
            dgm_canon_usages usage;
            dgm_str thread_id, run_id; /* for formats that repeat them; AG-UI does not */
        } run_error;
        struct {
            dgm_str name;
            dgm_str thread_id, run_id; /* likewise */
        } step;
        /* TEXT_MESSAGE_*, REASONING_MESSAGE_*, REASONING_START, REASONING_END */
        struct {
            dgm_str message_id;
            dgm_str delta; /* CONTENT, CHUNK */
            dgm_canon_role role;
            dgm_str name;
            bool whole; /* CONTENT: the complete text; START precedes it and END follows it */
            /* CONTENT, whole: the message has parts that a delta cannot hold; these are all of them. */
            dgm_canon_parts parts;
        } text;
        /* TOOL_CALL_START, _ARGS, _END, _CHUNK */
        struct {
            dgm_str tool_call_id, name, parent_message_id;
            dgm_str delta; /* ARGS, CHUNK */
            bool whole;    /* ARGS: as for text */
            bool pending;  /* START: the caller makes this call; this run has no result for it */
            /* START: the reader has this call from an earlier run; only its result is new. denied: it will not be made. */
            bool is_seen, is_denied;
            /* ARGS: arguments that came as an object, to be merged with others by key. Has no delta:
             * the merged text follows, whole, before END. */
            const dgm_json *increment;
        } call;
        struct {
            dgm_str message_id, tool_call_id;
            dgm_canon_content content;
            dgm_str role; /* "tool" or absent */
            const dgm_json
                *value; /* what the text was made of, if it was no text; never leaves us */
        } result;
        struct {
            const dgm_json *snapshot; /* NULL is null */
        } state;
        struct {
            const dgm_json *patch; /* RFC 6902 */
        } state_delta;
        struct {
            dgm_canon_messages messages;
            dgm_str changed; /* id of the one whose text is not what was streamed */
            bool restarts;   /* that text was started again, and more of it follows; never leaves us */
        } snapshot;
        struct {
            dgm_str message_id, activity_type;
            const dgm_json *content;
            dgm_opt_bool replace;
            const dgm_json *patch; /* ACTIVITY_DELTA */
        } activity;
        struct {
            dgm_str subtype, entity_id, encrypted_value;
        } encrypted;
        struct {
            dgm_str name, description, parent_subagent_run_id, parent_tool_call_id,
                parent_message_id;
            const dgm_json *result;
            dgm_canon_outcome outcome;
            dgm_str message, code;
        } subagent;
        struct {
            const dgm_json *event; /* NULL is null */
            dgm_str source;
        } raw;
        struct {
            dgm_str name;
            const dgm_json *value; /* NULL is null */
        } custom;
        /* Files and data of an artifact; its text is a text message. */
        struct {
            const dgm_artifact *artifact; /* without its text parts */
            bool append, last_chunk;
            bool has_text;         /* the artifact has text, too */
            const dgm_json *value; /* what a decoder read; AG-UI's encoder writes it unchanged */
        } artifact;
    };
} dgm_canon_event;

/* "RUN_STARTED"; "" for NONE. */
const char *dgm_canon_kind_name(dgm_canon_kind kind);

/*
 * ARTIFACT as the value of AG-UI's CUSTOM event: {"artifact":{...},"append":true,"lastChunk":true,"text":true}.
 * from_custom: a CUSTOM event named "dragoman:artifact" whose value is one becomes ARTIFACT; others stay as they are.
 */
void dgm_canon_put_artifact(dgm_buf *out, const dgm_canon_event *event);
const dgm_json *dgm_canon_artifact_value(dgm_arena *a, const dgm_canon_event *event);
void dgm_canon_artifact_from_custom(dgm_arena *a, dgm_mint *mint, dgm_canon_event *event);

/* RUN_FINISHED, RUN_ERROR. */
static inline bool dgm_canon_is_terminal(dgm_canon_kind kind)
{
    return kind == DGM_CANON_RUN_FINISHED || kind == DGM_CANON_RUN_ERROR;
}

/* A deep copy. It shares no memory with the original; unknown members are not copied. */
dgm_canon_parts dgm_canon_copy_parts(dgm_arena *a, dgm_canon_parts from);

/* The text of a content; of parts, their texts one behind the other. */
dgm_str dgm_canon_content_text(dgm_arena *a, const dgm_canon_content *c);

/* Where events go. What an event points to lives until this returns. A code other than DGM_OK stops
 * the maker and is returned by it; err is the maker's. */
typedef dgm_code (*dgm_on_canon)(void *arg, const dgm_canon_event *event);

typedef struct dgm_canon_sink {
    dgm_on_canon on_event;
    void *arg;
} dgm_canon_sink;

static inline dgm_code dgm_canon_emit(dgm_canon_sink sink, const dgm_canon_event *event)
{
    return sink.on_event(sink.arg, event);
}
