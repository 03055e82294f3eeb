/*
 * frontend/turn/turn.h - what the frontends of AG-UI, OpenAI and the AI SDK share.
 *
 *   a request ── codec ──► canonical input ── dgm_turn_ask ──► a turn of a task      (turn_ask.c, turn_message.c)
 *   a turn's records ──► canonical events ── codec ──► frames ──► the caller         (turn_stream.c)
 *   a context's tasks ──► messages                                                   (turn_history.c)
 *
 * A turn is a row beside its task's log: it is streamed from its first record on, the same way every time, to
 * every caller. So nothing here runs an agent or stores an answer; a frontend has its paths, its errors, its names.
 */
#pragma once

#include "canon/records_to_events.h"
#include "core/core.h"
#include "frontend/frontend.h"
#include "wire/codec.h"

/* ---- what lives on ----------------------------------------------------------------------------------------- */

/* What these frontends know of an agent. Strings are borrowed from the site, which outlives all requests. */
typedef struct dgm_turn_agent {
    dgm_str id;
    dgm_str name, description, version; /* as its card has them */
    dgm_str organization;               /* who provides it; may be empty */
    const char *type;                   /* of backend */
    int64_t created_s;
    bool answer_in_status;     /* answer_source: status */
    bool gets_history;         /* a transcript is its history, not a text in front of a message */
    struct dgm_a2a_front *a2a; /* its settings for A2A */
} dgm_turn_agent;

/* Runs that no client waits for: what happens to them, per protocol (config: on_disconnect). */
typedef struct dgm_turn_leave {
    bool cancel;
    uint64_t grace_ms;
} dgm_turn_leave;
enum { DGM_LEAVE_AGUI, DGM_LEAVE_CHAT, DGM_LEAVE_RESPONSES, DGM_LEAVE_AISDK, DGM_N_LEAVES };

typedef struct dgm_turns_options {
    dgm_core *core;
    const dgm_turn_agent *agents; /* in the order of the config */
    size_t n_agents;
    const dgm_turn_agent *first; /* the default */
    dgm_str public_url;          /* for links; empty: as the request names us */
    dgm_turn_leave leave[DGM_N_LEAVES];
    bool agui_interrupts;   /* ag-ui.questions: interrupt, also for a question that is only text */
    bool openai_by_id_only; /* openai.continue_questions: off */
} dgm_turns_options;

/* One per site. What the options point to is borrowed. */
typedef struct dgm_turns {
    dgm_turns_options o;
    struct turns_state *state; /* turn_int.h */
} dgm_turns;
dgm_turns *dgm_turns_new(const dgm_turns_options *o);
void dgm_turns_free(dgm_turns *t); /* NULL is fine */
/* The agent that a caller of this tenant names: `x`, `a2a/x`, `agent:x`, `TENANT/x` are the agent x. NULL: unknown. */
const dgm_turn_agent *dgm_turns_find_agent(const dgm_turns_options *o, dgm_str tenant,
                                           dgm_str name);

typedef dgm_front_request dgm_turn_request;

/* ---- reading requests ----------------------------------------------------------------------------------------- */

/* The body as JSON: DGM_CONTENT_TYPE_NOT_SUPPORTED for another media type (any web page could send
 * it), DGM_PARSE and so on for invalid JSON. In the exchange's arena. */
dgm_code dgm_turn_body(dgm_http_exchange *x, yyjson_val **ret_body, dgm_err *err);

/* A reader as the server reads: what is missing is refused; what is unknown is kept, for formats whose
 * requests say most of it there. mint: for ids that a request
 * may leave out; seeded from the clock and random bits. */
dgm_reader dgm_turn_reader(dgm_http_exchange *x, dgm_mint *mint, dgm_err *err);
dgm_mint dgm_turn_mint(void);

/* A copy that lives as long as the exchange; for what outlives the request. */
dgm_str dgm_turn_copy(dgm_http_exchange *x, dgm_str s);

/* A query parameter, decoded; absent if it was not sent. */
dgm_str dgm_turn_query(dgm_http_exchange *x, const char *name);

/* ---- asking ------------------------------------------------------------------------------------------------------ */

typedef struct dgm_ask {
    dgm_http_exchange *x;
    dgm_turns *turns;
    dgm_owner owner;
    const dgm_turn_agent *agent;
    const dgm_canon_input
        *input; /* messages, tools, resume, state, context; run and thread ids are not looked at */
    dgm_str context_id; /* where it goes on; empty: nowhere, a context is made */
    dgm_str task_id;    /* that it answers, if the frontend knows; empty: found by itself */
    /* The context has what came before the last answer, so only what follows it is sent. Else all of the
     * messages are: earlier ones as a transcript in front. */
    bool context_has_history;
    /* If the messages before the last turn are not what the context holds, the context is left alone, and this
     * is another one (chat: the history was edited). Only with a context_id. */
    bool fork_on_difference;
    /* The same for protocols whose clients know the context by its id: it stays, and the messages of the request replace
     * what the context held before, for agents that get a history. Only with a context_id. */
    bool replace_on_difference;
    /* Results belong to calls of this context, whoever else has calls of such ids. */
    bool calls_of_context;
    dgm_str message_id;       /* of what is sent; empty: that of the last message, or a new one */
    const dgm_json *metadata; /* of the request; tools, state and so on are added; NULL: none */
    dgm_strs accepted_output_modes;
    dgm_str protocol, caller_id, request, previous; /* of the turn: see dgm_send */
    bool
        dedupe; /* a message of this id that was taken before is that turn again; else a new turn */
} dgm_ask;

/*
 * Finds where it goes and sends it. Members that only some protocols have are in the request's metadata, under the names
 * of backend.h. Results of calls go to the task that waits for them, wherever it is (the
 * open calls' index); an answer to a question to the newest task of the context, if that waits; anything else
 * begins a task there. What the ask points to lives until the answer: in the exchange's arena.
 * on_sent: the records of this turn start at sent->first_seq. Errors are those of dgm_core_send; DGM_BAD_PARAMS if the
 * request has no content to send.
 */
void dgm_turn_ask(const dgm_ask *ask, dgm_on_sent on_sent, void *arg);

/* ---- answers to questions by name ------------------------------------------------------------------------------- */

/* Answers that name their interrupts (canon/interrupts.h): AG-UI's resume, approvals of Responses and the AI SDK. An interrupt is
 * open as long as its task waits in that turn: a second answer to it is ignored. In the exchange's arena. */
typedef struct dgm_turn_resolving {
    dgm_arena *arena;
    dgm_core *core;
    dgm_owner owner;
    dgm_str agent;
    dgm_str context_id; /* of the task; empty: any */
    /* Before: all answers. Afterwards: those to the task; answers to requests for approval have the data of an answer
     * (model/approval.h) as payload. */
    dgm_canon_resumes resume;
    void (*on_resolved)(void *arg);
    void *arg;
    /* The result: */
    dgm_str task_id, task_context; /* the task that waits for them; empty: no task does */
    bool
        is_dismissed; /* the question was dismissed; requests for approval are rejected then, and it is false */
    dgm_str ignored; /* the others: "resume[1], resume[3]" */
    /* While it works: */
    size_t at, n, n_reads, n_ignored;
    dgm_str name;      /* of the question that is open, without a number */
    dgm_strs requests; /* ids of its requests for approval */
    bool *decided;     /* one for each */
} dgm_turn_resolving;
void dgm_turn_resolve(dgm_turn_resolving *r);

/* ---- one after the other ------------------------------------------------------------------------------------------- */

/* Turns whose callers name them begin one after the other, so that two copies of a request are one turn. The caller's
 * memory, until it has begun. */
typedef struct dgm_turn_once {
    dgm_str name; /* whose turn at whose agent it is included */
    dgm_loop_fn go_on;
    void *arg;
    dgm_loop *loop; /* set by dgm_turn_begin */
    struct dgm_turn_once *next, *behind, *last;
} dgm_turn_once;

/* True: go on. False: another of that name is at it; go_on(arg) comes on this loop when it has begun. */
bool dgm_turn_begin(dgm_turns *t, dgm_turn_once *once);
/* It can be found by its name now, or will not be: the next may go on. Once for every dgm_turn_begin. */
void dgm_turn_begun(dgm_turns *t, dgm_turn_once *once);

/* ---- streams ------------------------------------------------------------------------------------------------------ */

typedef enum dgm_turn_output_as {
    DGM_OUTPUT_SSE,   /* `event:` where the codec names frames */
    DGM_OUTPUT_LINES, /* a payload per line */
    DGM_OUTPUT_BYTES, /* payloads as they are (protobuf) */
    DGM_OUTPUT_WHOLE  /* one payload: params.whole is set */
} dgm_turn_output_as;

/* Gets the frames of a stream record by record, and writes something else in their place: for the inspector. */
typedef struct dgm_turn_tap {
    /* frames: the frames of the record, may be empty. record NULL: the end of the stream, after the last record; not called
     * for it if the stream ends because `follows` is false. */
    void (*on_frames)(void *arg, const dgm_record *record, dgm_str frames, dgm_buf *out);
    /* Called once at the end: the stream has ended, or its client has disconnected. */
    void (*on_close)(void *arg);
    void *arg;            /* lives as long as the exchange */
    dgm_str content_type; /* of the response; static */
    bool follows;         /* further records are waited for */
} dgm_turn_tap;

/* How a turn is streamed. */
struct dgm_turn_hold;
typedef struct dgm_turn_output {
    const dgm_codec *codec;
    dgm_stream_params params; /* mint and now are set by the turn: the same every time */
    dgm_str thread_id,
        run_id; /* as the protocol calls context and turn; empty: the context, the task */
    dgm_turn_output_as as;
    bool seq_ids;          /* SSE: `id:` on the last frame of a record is the record's number */
    uint64_t after_seq;    /* frames of records up to this were sent before: they are left out */
    uint64_t after_frames; /* so many frames were sent before */
    bool say_caller;       /* the caller's message of this turn is streamed, too */
    dgm_canon_messages messages;    /* that the caller has already, for complete snapshots */
    const dgm_http_header *headers; /* of the answer, beside its own */
    size_t n_headers;
    dgm_str content_type; /* empty: by `as` */
    size_t max_bytes;     /* of WHOLE; 0: DGM_MAX_OUTPUT_BYTES */
    /* Gets every event before the codec; passes it, changed or not, to `next`, or others, or none. NULL: all are passed. */
    dgm_code (*on_event)(void *arg, const dgm_canon_event *event, dgm_canon_sink next);
    /* Streams: the records that existed when the stream was opened were passed to on_event; once, unless the turn ended
     * before. A hook that held events back emits their replacement. NULL: none are held back. */
    dgm_code (*on_pause)(void *arg, dgm_canon_sink next);
    /* WHOLE: the payload. Answers the exchange. */
    void (*on_whole)(void *arg, dgm_str payload);
    /* WHOLE, instead: there will be none (it took too long, the log cannot be read). Answers the exchange. Streams
     * end with what the codec makes of RUN_ERROR. */
    void (*on_fault)(void *arg, const dgm_err *err);
    /* Frees the memory and references that arg owns: once, when the stream has ended or its client has disconnected,
     * and before on_whole or on_fault. NULL: arg owns nothing. */
    void (*on_release)(void *arg);
    void *
        arg; /* of the five; lives as long as the exchange (dgm_http_alloc), and points to nothing in its arena */
    /* Whose turn it is, for on_disconnect; turn 0: whoever leaves leaves it alone. */
    dgm_turns *turns;
    dgm_owner owner;
    dgm_str agent, task_id;
    dgm_turn_leave leave;
    bool answer_in_status;
    uint32_t turn;
    const dgm_turn_tap *tap; /* as long as the exchange; NULL: the client gets the frames */
    /* Of a history in `messages` or behind `arg`: released when the bytes of the first write were sent. NULL: none. */
    struct dgm_turn_hold *hold;
} dgm_turn_output;

/* Streams the turn that begins at first_seq, until it ends or the client disconnects. Owns the exchange from here on.
 * Everything that `output` points to, except `arg`, is copied before the first record is read, whatever happens later.
 * So the request and the exchange's arena are always released: nothing may use them after this call. */
void dgm_turn_stream(dgm_http_exchange *x, const dgm_turn_output *output, dgm_log *log,
                     uint64_t first_seq);

/* A stored turn that its protocol streams again, as for the client that began it. */
typedef struct dgm_turn_replay {
    const dgm_front_request *q; /* its owner is that of the task */
    const dgm_turn_agent *agent;
    dgm_log *log; /* a reference of the caller's: until the function returns */
    dgm_str task_id, context_id;
    dgm_task_turn turn; /* its texts are in the exchange's arena, like the two above */
    const dgm_turn_tap *tap;
} dgm_turn_replay;

/* What WHOLE would be by now, at once and without an exchange: with params.so_far the codec knows that it may not have
 * ended. In the arena; absent: there is nothing yet, or too much. */
dgm_str dgm_turn_so_far(const dgm_turn_output *output, dgm_log *log, uint64_t first_seq,
                        dgm_arena *a);

/* ---- a context's messages ------------------------------------------------------------------------------------------- */

/* The bytes of a history that is on its way to a client: they are counted until the kernel has them. */
typedef struct dgm_turn_hold dgm_turn_hold;

typedef struct dgm_turn_history {
    dgm_canon_messages messages; /* of all its tasks, in order; ids as A2A has them */
    dgm_str task_id;             /* the newest; empty without tasks */
    dgm_task_state state;        /* its */
    /* Released when the callback returns, unless it was taken: by the one that sends the messages to a client. */
    dgm_turn_hold **hold;
    bool cut; /* the oldest are left out: more than history_tasks or history_bytes */
} dgm_turn_history;

/* NULL: there are few bytes. */
dgm_turn_hold *dgm_turn_take_hold(const dgm_turn_history *history);
void dgm_turn_release_hold(dgm_turn_hold *hold); /* NULL is fine */
/* 200 with this body, which is emptied; the hold, which may be NULL, is released when it was sent. */
void dgm_turn_respond_held(dgm_http_exchange *x, dgm_str type, const dgm_http_header *headers,
                           size_t n, dgm_buf *body, dgm_turn_hold *hold);

/* In the arena, which lives until the answer. An unknown context has no messages. agent.p NULL: with any agent. */
typedef void (*dgm_on_history)(dgm_code code, const dgm_turn_history *history, const dgm_err *err,
                               void *arg);
void dgm_turn_get_history(dgm_turns *turns, dgm_arena *a, dgm_owner owner, dgm_str agent,
                          dgm_str context_id, dgm_on_history on_history, void *arg);
/* The same without the transcripts that came with messages: for a context whose earlier messages are stored elsewhere. */
void dgm_turn_get_sent_history(dgm_turns *turns, dgm_arena *a, dgm_owner owner, dgm_str agent,
                               dgm_str context_id, dgm_on_history on_history, void *arg);
/* The same from the logs, as far as they are kept: with the agents' calls, their results and thoughts. Takes longer;
 * for those who show it. agent is needed. */
void dgm_turn_get_whole_history(dgm_turns *turns, dgm_arena *a, dgm_owner owner, dgm_str agent,
                                dgm_str context_id, dgm_on_history on_history, void *arg);
/* And with artifacts that are not text: activities of the type DGM_NAME_ARTIFACT, with the value of AG-UI's CUSTOM
 * event of that name. */
void dgm_turn_get_shown_history(dgm_turns *turns, dgm_arena *a, dgm_owner owner, dgm_str agent,
                                dgm_str context_id, dgm_on_history on_history, void *arg);
