/*
 * dragoman/convert.h - converts between formats: complete texts and streams.
 *
 * There is no global state: two threads may convert at the same time, each with its own handles.
 * Input text is not retained. Returned strings are NUL-terminated; free them with dgm_free().
 * The same input, options and version produce the same output, including generated ids.
 *
 * Structs of options start with their size, and structs of information are returned by pointer, one at a time, so
 * that later versions can add members at the end: write `dgm_convert_options o = {.size = sizeof o, ...}`.
 */
#pragma once

#include <dragoman/base.h>
#include <dragoman/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- formats ----------------------------------------------------------------------------------- */

typedef struct dgm_format_info {
    dgm_format_id id;
    const char *name;  /* "a2a-1.0" */
    const char *about; /* one line for people */
    bool envelopes;    /* has JSON-RPC requests and responses */
    bool binary;       /* output in this format is bytes (ag-ui-proto), not text */
} dgm_format_info;

/* All formats, in the order in which they are shown to people. NULL: index is too large. */
DGM_API const dgm_format_info *dgm_format_at(size_t index);
DGM_API size_t dgm_format_count(void);

/*
 * When a row of dgm_format_losses() applies to a value that its member leads to. `words` are separated by spaces, and each may
 * end with "*".
 */
typedef enum dgm_loss_when {
    DGM_LOSS_PRESENT = 0,       /* the member is there: not null, not empty */
    DGM_LOSS_NOT_REPORTED = 1,  /* about converting back, or about a member that is absent */
    DGM_LOSS_EMPTY = 2,         /* an empty text, list or object */
    DGM_LOSS_FALSE = 3,         /* false */
    DGM_LOSS_ZERO = 4,          /* the number 0 */
    DGM_LOSS_NOT_TEXT = 5,      /* any value but a text */
    DGM_LOSS_SEVERAL_TEXTS = 6, /* a list with two or more elements that have a text */
    DGM_LOSS_SEVERAL = 7,       /* a list with two or more elements */
    DGM_LOSS_NOT_FIRST = 8,     /* not the first element of its list, or its `index` is not 0 */
    DGM_LOSS_IS = 9,            /* a text that is one of `words` */
    DGM_LOSS_IS_NOT = 10,       /* any other value */
    DGM_LOSS_NAME_IS_NOT = 11,  /* the member's name is not one of `words` */
    DGM_LOSS_TYPE_IS = 12,      /* its member `type` is one of `words` */
    DGM_LOSS_TYPE_IS_NOT = 13,  /* its member `type` is not one of `words` */
    DGM_LOSS_MORE_THAN = 14,    /* its `type` is not one of `words`, or it has other members, too */
    DGM_LOSS_EVENT_IS_NOT = 15, /* its member `name` is not one of `words` */
    DGM_LOSS_STEP_IS = 16,      /* its member `stepName` is one of `words` */
    DGM_LOSS_OUTCOME_IS = 17,   /* the type of its member `outcome` is one of `words` */
    DGM_LOSS_SOURCE_IS_NOT =
        18,            /* it has a member `source`, and the type of that is not one of `words` */
    DGM_LOSS_HAS = 19, /* it has one of the members `words` */
    DGM_LOSS_HAS_OTHERS = 20, /* it has members besides `words` */
    DGM_LOSS_HAS_NONE = 21,   /* it has not one of the members `words` */
    DGM_LOSS_BESIDE = 22, /* it is not one of the members `words`, and one of them is beside it */
    DGM_LOSS_NOT_BESIDE = 23,       /* not one of the members `words` is beside it */
    DGM_LOSS_STATE_IS = 24,         /* the member `state` beside it is one of `words` */
    DGM_LOSS_ALONE = 25,            /* the message is not part of a task or of a request */
    DGM_LOSS_STREAMED = 26,         /* it is in a stream */
    DGM_LOSS_ROLE_IS = 27,          /* the role of the message is one of `words` */
    DGM_LOSS_LIST_UNLESS_ROLE = 28, /* a list, and the role of the message is not one of `words` */
    DGM_LOSS_ROLE_IS_NOT = 29       /* the role of the message is not one of `words` */
} dgm_loss_when;

/* What a conversion loses or changes. */
typedef struct dgm_loss {
    const char *object; /* an object kind's name, or "any" */
    /* JSON pointer with names of the format it is lost from; "*" is any step. Of events their type, of messages
     * their role, alone or with a pointer behind it; a name may end with "*". */
    const char *member;
    const char *what; /* a sentence: what happens to it */
    dgm_loss_when when;
    const char *words; /* for `when`; NULL: it needs none */
} dgm_loss;

/*
 * Writes up to max pointers to static rows; returns how many rows there are. A conversion that is not
 * between two A2A dialects uses canonical events: with `to` NONE the losses of reading `from`, with `from` NONE
 * the losses of writing `to`. A pair has both.
 */
DGM_API size_t dgm_format_losses(dgm_format_id from, dgm_format_id to, const dgm_loss **ret_losses,
                                 size_t max);

/* ---- converting text ------------------------------------------------------------------------------ */

typedef enum dgm_framing {
    DGM_FRAMING_AUTO =
        0, /* as the input: one value, an array, or the target's own stream framing */
    DGM_FRAMING_JSON = 1,  /* one value; several become an array */
    DGM_FRAMING_ARRAY = 2, /* always an array */
    DGM_FRAMING_LINES = 3, /* one value per line */
    DGM_FRAMING_SSE = 4    /* server-sent events */
} dgm_framing;

/*
 * What of a format a text is. A stream gives a stream, a whole response a response, a request a request,
 * messages (an A2A Task too) messages; a format that has no such form gives the nearest it has: events for
 * messages, messages for events.
 */
typedef enum dgm_form {
    DGM_FORM_NONE = 0,
    DGM_FORM_EVENTS = 1,   /* a stream */
    DGM_FORM_RESPONSE = 2, /* the same as one object: chat.completion, response, Task */
    DGM_FORM_MESSAGES = 3, /* a history, or one message of it */
    DGM_FORM_REQUEST = 4   /* a request that starts a run */
} dgm_form;

/* Compaction replaces the chunks of a streamed text, of arguments and of reasoning by the complete value. */
typedef enum dgm_compaction {
    DGM_COMPACT_DOCUMENTS = 0, /* arrays and single objects that are converted to another format */
    DGM_COMPACT_NEVER = 1,
    DGM_COMPACT_ALWAYS =
        2 /* streams too: they are held in memory until they end, up to the limit object_bytes */
} dgm_compaction;

typedef struct dgm_convert_options {
    size_t size;            /* sizeof(dgm_convert_options) */
    dgm_format_id from;     /* DGM_FORMAT_NONE: detected from the input */
    dgm_format_id to;       /* DGM_FORMAT_NONE: the input's */
    dgm_framing framing;    /* of the output */
    dgm_object_kind object; /* type of each input object; DGM_OBJECT_NONE: detected */
    const char *seed;       /* may be NULL: generated ids depend on it and on the input */
    dgm_form as;            /* kind of output; DGM_FORM_NONE: the kind of the input */
    dgm_compaction compact;
    bool status_is_answer; /* A2A: texts of `working` are the answer, not progress */
    bool losses;           /* count what is lost: see dgm_converter_loss_at() */
} dgm_convert_options;

/* One text to another. The input may be a value, an array, JSON lines or SSE. */
DGM_API dgm_code dgm_convert(const dgm_convert_options *options, const char *text, size_t n,
                             char **ret_text, size_t *ret_n, dgm_err *err);

/*
 * The same piece by piece: feed bytes as they arrive, read the output that is ready. Memory use is
 * bound by the largest single event, not by the stream. After an error only output, consume and free
 * may be called; output is what was converted before the fault.
 */
typedef struct dgm_converter dgm_converter;

DGM_API dgm_code dgm_converter_new(const dgm_convert_options *options,
                                   dgm_converter **ret_converter, dgm_err *err);
DGM_API void dgm_converter_free(dgm_converter *c); /* NULL is allowed */
DGM_API dgm_code dgm_converter_feed(dgm_converter *c, const char *bytes, size_t n, dgm_err *err);
DGM_API dgm_code dgm_converter_end(dgm_converter *c, dgm_err *err);
/* Feeds the complete input and ends it. Same as feed + end, but without buffering a copy. */
DGM_API dgm_code dgm_converter_feed_all(dgm_converter *c, const char *bytes, size_t n,
                                        dgm_err *err);
DGM_API dgm_str dgm_converter_output(const dgm_converter *c); /* valid until the next call on c */
/* Drops the first n bytes of the output. */
DGM_API void dgm_converter_consume(dgm_converter *c, size_t n);

/* A row of dgm_format_losses() that applied to the input so far. */
typedef struct dgm_loss_seen {
    const dgm_loss *loss;
    /* The row's names are AG-UI's, because the loss happened between canonical events and the target. */
    bool canonical;
    size_t count;        /* how many times */
    size_t line, column; /* of the first time, 1-based; 0: not known */
    /* JSON pointer to the first one, within its value of the input; "": the whole value, or not known */
    char at[256];
} dgm_loss_seen;

/*
 * What was lost or changed in this input, in the order in which it was first seen. NULL: index is too large. A row
 * is valid until the next call on c. There is no row without the option `losses`, which costs time for every value.
 * Rows whose condition is DGM_LOSS_NOT_REPORTED are never among them.
 */
DGM_API const dgm_loss_seen *dgm_converter_loss_at(const dgm_converter *c, size_t index);
DGM_API size_t dgm_converter_loss_count(const dgm_converter *c);

/* ---- A2A message to Chat Completions messages, directly ----------------------------------------------- */

typedef struct dgm_openai_messages {
    char *openai_message; /* the user or assistant message; NULL when there are only tool results */
    char **tool_messages; /* one per tool result, in order; in a history they come first */
    size_t n_tool_messages;
} dgm_openai_messages;

DGM_API dgm_code dgm_message_to_openai(const dgm_message *message,
                                       dgm_openai_messages *ret_messages, dgm_err *err);
DGM_API void dgm_openai_messages_done(dgm_openai_messages *m);

/* ---- functions on JSON text ------------------------------------------------------------ */

/*
 * Three functions that convert a history through events (map, reduce, map), and a direct one. Each reads and
 * returns JSON, so that any language can use them without our structs. The events are those of the simple
 * dialect unless the official events of AG-UI are requested; both kinds are accepted as input. The functions
 * have no state: use a converter for live streams.
 *
 *     history --convert_a2a_message_to_agui_event--> events --compact_events--> events
 *             --convert_agui_event_to_openai_chat--> messages
 *
 * Errors have a JSON pointer into the input text, and the line and column of that position.
 */
typedef enum dgm_event_dialect {
    DGM_EVENTS_SIMPLE = 0,  /* simple dialect: {"type":"tool-call-start",...}, each complete */
    DGM_EVENTS_OFFICIAL = 1 /* AG-UI's: TOOL_CALL_START, TOOL_CALL_ARGS, TOOL_CALL_END */
} dgm_event_dialect;

/*
 * A message, a Task, a status- or artifact-update, or an object that contains one (a send request, a stream
 * response, a JSON-RPC envelope), in any dialect of A2A. One event is returned as an object, several as an
 * array; without events *ret_text is NULL. Events of one message share a parent, so that they can be merged into
 * one message again. A Task is converted to its start, its history, its artifacts and its state. A list of
 * objects is converted to the array of all their events.
 */
DGM_API dgm_code dgm_convert_a2a_message_to_agui_event(const char *text, size_t n,
                                                       dgm_event_dialect dialect, char **ret_text,
                                                       size_t *ret_n, dgm_err *err);
/* The same for a message as a struct. */
DGM_API dgm_code dgm_message_to_agui_event(const dgm_message *message, dgm_event_dialect dialect,
                                           char **ret_text, size_t *ret_n, dgm_err *err);

/*
 * Compacts an array of events; the result is always an array. Chunks of a text are removed if its End
 * follows, otherwise they are merged into one End; chunks of arguments are merged into their call. null in
 * the array is ignored and a nested array is flattened, so the results of the function above for each
 * message of a history can be passed unchanged. DGM_BAD_PARAMS names a call whose merged chunks are not
 * valid arguments and that has no final event.
 */
DGM_API dgm_code dgm_compact_events(const char *text, size_t n, char **ret_text, size_t *ret_n,
                                    dgm_err *err);

/*
 * One event: its message of Chat Completions, or *ret_text NULL if it has none (chunks, runs, steps).
 * An array of events: always an array of messages; calls that share a parent become one message, together
 * with the text of that parent.
 */
DGM_API dgm_code dgm_convert_agui_event_to_openai_chat(const char *text, size_t n, char **ret_text,
                                                       size_t *ret_n, dgm_err *err);

/* dgm_message_to_openai() on text: [openai_message or null, [tool_messages]]. */
DGM_API dgm_code dgm_convert_a2a_message_to_openai(const char *text, size_t n, char **ret_text,
                                                   size_t *ret_n, dgm_err *err);

/* ---- functions on values ------------------------------------------------------------------------- */

/*
 * The same functions without JSON text, for bindings whose language has objects of its own: the binding writes an object
 * as a flat list of values (dgm_value) and builds an object from the list that is returned. Such a call takes a fraction of
 * the time. Results, generated ids included, are those of the functions on text, for the text that has no spaces and no escapes
 * that JSON does not require. Errors have no line and no column.
 */
typedef enum dgm_function {
    DGM_FUNCTION_A2A_MESSAGE_TO_AGUI_EVENT = 0, /* events of the simple dialect */
    DGM_FUNCTION_A2A_MESSAGE_TO_OFFICIAL_EVENT = 1,
    DGM_FUNCTION_COMPACT_EVENTS = 2,
    DGM_FUNCTION_AGUI_EVENT_TO_OPENAI_CHAT = 3,
    DGM_FUNCTION_A2A_MESSAGE_TO_OPENAI = 4
} dgm_function;

/* The memory of results. It can be used for many calls, by one thread at a time. */
typedef struct dgm_values dgm_values;

DGM_API dgm_values *dgm_values_new(void);
DGM_API void dgm_values_free(dgm_values *v); /* NULL is allowed */

/*
 * values: one value with everything in it; n: how long the list is. *ret_n is 0 if the function has no result (NULL in
 * the functions on text). The result is valid until the next call on v, and as long as the texts of the input, which it may
 * borrow. Limits are those of JSON text.
 */
DGM_API dgm_code dgm_values_convert(dgm_values *v, dgm_function function, const dgm_value *values,
                                    size_t n, const dgm_value **ret_values, size_t *ret_n,
                                    dgm_err *err);

/*
 * A converter for languages that have no structs of ours: its options are a JSON object with the members
 * from, to, framing ("auto", "json", "array", "lines", "sse"), as ("events", "response", "messages",
 * "request"), object ("message", "task", ...), seed, compact (true: always; false: never), answer_source
 * ("auto", "status"). All but `to` may be absent; an unknown option is an error.
 */
DGM_API dgm_code dgm_converter_new_json(const char *options, size_t n,
                                        dgm_converter **ret_converter, dgm_err *err);

#ifdef __cplusplus
}
#endif
