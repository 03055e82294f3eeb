/*
 * dragoman/convert.h - converts between formats: complete texts, streams, single objects.
 *
 * There is no global state: two threads may convert at the same time, each with its own handles.
 * Input text is not retained. Returned strings are NUL-terminated; free them with dgm_free().
 * The same input, options and version produce the same output, including generated ids.
 */
#pragma once

#include <dragoman/base.h>
#include <dragoman/model.h>

#ifdef __cplusplus
extern "C" {
#endif

DGM_API void dgm_free(void *p); /* NULL is fine */

/* ---- formats ----------------------------------------------------------------------------------- */

typedef struct dgm_format_info {
    const char *name;  /* "a2a-1.0" */
    const char *about; /* one line for a person */
    bool envelopes;    /* has JSON-RPC requests and responses */
} dgm_format_info;

/* All formats, in the order they are shown to people. */
DGM_API size_t dgm_formats(const dgm_format_info **ret_formats);

/* Is what comes out in that format bytes (ag-ui-proto), not text? */
DGM_API bool dgm_format_is_binary(const char *name);

/*
 * When a row of dgm_losses() applies to a value that its member leads to. `words` are separated by spaces, and each may
 * end with "*".
 */
typedef enum dgm_loss_when {
    DGM_LOSS_PRESENT,       /* the member is there: not null, not empty */
    DGM_LOSS_NOT_REPORTED,  /* about converting back, or about a member that is absent */
    DGM_LOSS_EMPTY,         /* an empty text, list or object */
    DGM_LOSS_FALSE,         /* false */
    DGM_LOSS_ZERO,          /* the number 0 */
    DGM_LOSS_NOT_TEXT,      /* any value but a text */
    DGM_LOSS_SEVERAL_TEXTS, /* a list with two or more elements that have a text */
    DGM_LOSS_SEVERAL,       /* a list with two or more elements */
    DGM_LOSS_NOT_FIRST,     /* not the first element of its list, or its `index` is not 0 */
    DGM_LOSS_IS,            /* a text that is one of `words` */
    DGM_LOSS_IS_NOT,        /* any other value */
    DGM_LOSS_NAME_IS_NOT,   /* the member's name is not one of `words` */
    DGM_LOSS_TYPE_IS,       /* its member `type` is one of `words` */
    DGM_LOSS_TYPE_IS_NOT,   /* its member `type` is not one of `words` */
    DGM_LOSS_MORE_THAN,     /* its `type` is not one of `words`, or it has other members, too */
    DGM_LOSS_EVENT_IS_NOT,  /* its member `name` is not one of `words` */
    DGM_LOSS_STEP_IS,       /* its member `stepName` is one of `words` */
    DGM_LOSS_OUTCOME_IS,    /* the type of its member `outcome` is one of `words` */
    DGM_LOSS_SOURCE_IS_NOT, /* it has a member `source`, and the type of that is not one of `words` */
    DGM_LOSS_HAS,           /* it has one of the members `words` */
    DGM_LOSS_HAS_OTHERS,    /* it has members besides `words` */
    DGM_LOSS_HAS_NONE,      /* it has not one of the members `words` */
    DGM_LOSS_BESIDE,        /* it is not one of the members `words`, and one of them is beside it */
    DGM_LOSS_NOT_BESIDE,    /* not one of the members `words` is beside it */
    DGM_LOSS_STATE_IS,      /* the member `state` beside it is one of `words` */
    DGM_LOSS_ALONE,         /* the message is not part of a task or of a request */
    DGM_LOSS_STREAMED,      /* it is in a stream */
    DGM_LOSS_ROLE_IS,       /* the role of the message is one of `words` */
    DGM_LOSS_LIST_UNLESS_ROLE, /* a list, and the role of the message is not one of `words` */
    DGM_LOSS_ROLE_IS_NOT       /* the role of the message is not one of `words` */
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
 * between two A2A dialects uses canonical events: with to == NULL the losses of reading `from`, with from == NULL
 * the losses of writing `to`. A pair has both.
 */
DGM_API size_t dgm_losses(const char *from, const char *to, const dgm_loss **ret_losses,
                          size_t max);

/* ---- converting text ------------------------------------------------------------------------------ */

typedef enum dgm_framing {
    DGM_FRAMING_AUTO,  /* as the input: one value, an array, or the target's own stream framing */
    DGM_FRAMING_JSON,  /* one value; several become an array */
    DGM_FRAMING_ARRAY, /* always an array */
    DGM_FRAMING_LINES, /* one value per line */
    DGM_FRAMING_SSE    /* server-sent events */
} dgm_framing;

/*
 * What of a format a text is. A stream gives a stream, a whole response a response, a request a request,
 * messages (an A2A Task too) messages; a format that has no such form gives the nearest it has: events for
 * messages, messages for events.
 */
typedef enum dgm_form {
    DGM_FORM_NONE,
    DGM_FORM_EVENTS,   /* a stream */
    DGM_FORM_RESPONSE, /* the same as one object: chat.completion, response, Task */
    DGM_FORM_MESSAGES, /* a history, or one message of it */
    DGM_FORM_REQUEST   /* a request that starts a run */
} dgm_form;

/* Compaction replaces the chunks of a streamed text, of arguments and of reasoning by the complete value. */
typedef enum dgm_compaction {
    DGM_COMPACT_DOCUMENTS, /* arrays and single objects that are converted to another format */
    DGM_COMPACT_NEVER,
    DGM_COMPACT_ALWAYS /* streams too: they are held in memory until they end, up to the limit object_bytes */
} dgm_compaction;

typedef struct dgm_convert_options {
    const char *from;       /* a format's name; NULL or "auto": detected from the input */
    const char *to;         /* a format's name; NULL: the input's */
    dgm_framing framing;    /* of the output */
    dgm_object_kind object; /* type of each input object; DGM_OBJECT_NONE: detected */
    const char *seed;       /* may be NULL: generated ids depend on it and on the input */
    dgm_form as;            /* kind of output; DGM_FORM_NONE: the kind of the input */
    dgm_compaction compact;
    bool status_is_answer; /* A2A: texts of `working` are the answer, not progress */
    bool losses;           /* count what is lost: see dgm_converter_losses() */
} dgm_convert_options;

/* One text to another. The input may be a value, an array, JSON lines or SSE. */
DGM_API dgm_code dgm_convert(const dgm_convert_options *options, const char *text, size_t n,
                             char **ret_text, size_t *ret_n, dgm_err *err);

/*
 * The same piece by piece: feed bytes as they come, take bytes as they get ready. Memory use is
 * bound by the largest single event, not by the stream. After an error only output, taken and free
 * may be called; output is what was converted before the fault.
 */
typedef struct dgm_converter dgm_converter;

DGM_API dgm_code dgm_converter_new(const dgm_convert_options *options,
                                   dgm_converter **ret_converter, dgm_err *err);
DGM_API void dgm_converter_free(dgm_converter *c); /* NULL is fine */
DGM_API dgm_code dgm_converter_feed(dgm_converter *c, const char *bytes, size_t n, dgm_err *err);
DGM_API dgm_code dgm_converter_end(dgm_converter *c, dgm_err *err);
/* Feeds the complete input and ends it. Same as feed + end, but without buffering a copy. */
DGM_API dgm_code dgm_converter_whole(dgm_converter *c, const char *bytes, size_t n, dgm_err *err);
DGM_API dgm_str dgm_converter_output(const dgm_converter *c); /* valid until the next call on c */
DGM_API void dgm_converter_taken(dgm_converter *c,
                                 size_t n); /* drops the first n bytes of the output */

/* A row of dgm_losses() that applied to the input so far. */
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
 * What was lost or changed in this input, in the order in which it was first seen: returns how many rows. They are
 * valid until the next call on c. Always none without the option `losses`, which costs time for every value. Rows
 * whose condition is DGM_LOSS_NOT_REPORTED are never among them.
 */
DGM_API size_t dgm_converter_losses(const dgm_converter *c, const dgm_loss_seen **ret_losses);

/* ---- single A2A objects as structs ------------------------------------------------------------------ */

/* An object with the memory it lives in. */
typedef struct dgm_document dgm_document;

/* kind may be DGM_OBJECT_NONE: detected from the input. format: an A2A format's name, or "auto". */
DGM_API dgm_code dgm_document_read(const char *format, dgm_object_kind kind, const char *text,
                                   size_t n, dgm_document **ret_document, dgm_err *err);
DGM_API void dgm_document_free(dgm_document *d); /* NULL is fine */
DGM_API dgm_object_kind dgm_document_kind(const dgm_document *d);
/* The struct that DGM_OBJECT_KINDS names for the kind; lives as long as d. */
DGM_API const void *dgm_document_get(const dgm_document *d);
DGM_API dgm_code dgm_document_write(const dgm_document *d, const char *format, char **ret_text,
                                    size_t *ret_n, dgm_err *err);

/* Compact JSON of a value inside a document. */
DGM_API char *dgm_json_text(const dgm_json *value);

/* ---- A2A message to Chat Completions messages, directly ----------------------------------------------- */

typedef struct dgm_openai_messages {
    char *openai_message; /* the user or assistant message; NULL when there are only tool results */
    char **tool_messages; /* one per tool result, in order; in a history they come first */
    size_t n_tool_messages;
} dgm_openai_messages;

DGM_API dgm_code dgm_convert_a2a_message_to_openai(const dgm_message *message,
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
typedef enum dgm_event_spelling {
    DGM_EVENTS_SIMPLE,  /* simple dialect: {"type":"tool-call-start",...}, each complete */
    DGM_EVENTS_OFFICIAL /* AG-UI's: TOOL_CALL_START, TOOL_CALL_ARGS, TOOL_CALL_END */
} dgm_event_spelling;

/*
 * A message, a Task, a status- or artifact-update, or an object that contains one (a send request, a stream
 * response, a JSON-RPC envelope), in any dialect of A2A. One event is returned as an object, several as an
 * array; without events *ret_text is NULL. Events of one message share a parent, so that they can be merged into
 * one message again. A Task is converted to its start, its history, its artifacts and its state. A list of
 * objects is converted to the array of all their events.
 */
DGM_API dgm_code dgm_convert_a2a_message_to_agui_event(const char *text, size_t n,
                                                       dgm_event_spelling spelling, char **ret_text,
                                                       size_t *ret_n, dgm_err *err);
/* The same for a message as a struct. */
DGM_API dgm_code dgm_message_to_agui_event(const dgm_message *message, dgm_event_spelling spelling,
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

/* dgm_convert_a2a_message_to_openai() on text: [openai_message or null, [tool_messages]]. */
DGM_API dgm_code dgm_convert_a2a_text_to_openai(const char *text, size_t n, char **ret_text,
                                                size_t *ret_n, dgm_err *err);

/*
 * A converter for languages that have no structs of ours: its options are a JSON object with the members
 * from, to, framing ("auto", "json", "array", "lines", "sse"), as ("events", "response", "messages",
 * "request"), object ("message", "task", ...), seed, compact (true: always; false: never), answer_source
 * ("auto", "status"). All but `to` may be absent; one that is not listed is refused.
 */
DGM_API dgm_code dgm_converter_open(const char *options, size_t n, dgm_converter **ret_converter,
                                    dgm_err *err);

#ifdef __cplusplus
}
#endif
