/*
 * backend/langgraph/graph_map.h - A2A to LangGraph and back (document 003), as pure functions: no socket, no clock, no process.
 *
 *   message, task, metadata ── dgm_graph_plan() ──► the members `input` and `resume` of `run`
 *   `event` ..., the result ── dgm_graph_out_...() ──► A2A events, and the messages for `state/update`
 *
 * The same calls with the same arguments give the same events. Ids that have to be made up come from a mint.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/mint.h"
#include "json/json.h"

#include <dragoman/model.h>

/* ---- in ------------------------------------------------------------------------------------------------------------- */

typedef enum dgm_graph_kind {
    DGM_GRAPH_INPUT,  /* a new turn: `input` is an object */
    DGM_GRAPH_RESUME, /* the answer to interrupts: `resume`, and `input` as an update of the state */
    DGM_GRAPH_CONTINUE, /* behind a breakpoint: `input` is null */
    DGM_GRAPH_ASK_AGAIN, /* the message does not answer the question: `why` is shown, the task waits */
    DGM_GRAPH_NOTHING    /* the message has nothing that the graph could get: `why` is the error */
} dgm_graph_kind;

typedef struct dgm_graph_turn {
    const dgm_message *message; /* the caller's */
    const dgm_task *task;       /* before this turn; NULL in the first turn of a task */
    const dgm_json *metadata;   /* of the request, as the graph gets it; may be NULL */
    dgm_str task_id, context_id;
    const dgm_json
        *keys;   /* of the graph's state: a list of texts; NULL: unknown, then all are set */
    bool is_v10; /* a2a_inbox in the form of A2A 1.0, not 0.3 */
    bool
        is_small; /* a2a_inbox.task without its history and artifacts: the complete one does not fit into a line */
    /* The newest AI message of the thread calls a tool and has no result yet. The text of an answer does not enter state.messages then:
     * models refuse a message between a call and its result. A worker checks this itself. */
    bool has_open_call;
} dgm_graph_turn;

typedef struct dgm_graph_plan {
    dgm_graph_kind kind;
    const dgm_json *input;  /* an object, or NULL for null */
    const dgm_json *resume; /* an object {interruptId: value}, or NULL */
    dgm_str why;
    /* The id of the message that this turn adds to state.messages; empty: it adds none. */
    dgm_str human_id;
} dgm_graph_plan;

/* Everything in the arena, or borrowed from the turn. */
dgm_graph_plan dgm_graph_plan_turn(dgm_arena *a, const dgm_graph_turn *turn);
/* Has the message a conversation that the thread cannot have (model/conversation.h)? Then the thread is a new one. */
bool dgm_graph_has_transcript(const dgm_message *m);
/* The caller's tools: the request's, or those of a part of the message. NULL: none. */
const dgm_json *dgm_graph_tools(const dgm_message *m, const dgm_json *metadata);

/* ---- out ------------------------------------------------------------------------------------------------------------ */

typedef struct dgm_graph_out dgm_graph_out;

typedef struct dgm_graph_sink {
    void (*emit)(void *arg, const dgm_event *event); /* the event is valid until it returns */
    void (*note)(void *arg, dgm_str line);           /* for the operator's log */
    void *arg;
} dgm_graph_sink;

typedef struct dgm_graph_options {
    dgm_str task_id, context_id;
    const dgm_message *message; /* the caller's; borrowed for the call that gets it */
    const dgm_task *task;       /* before this turn, or so far if it is resumed; likewise */
    const dgm_json *tools;      /* the caller's: [{name, ...}]; copied */
    bool has_messages;          /* the graph's state has `messages` */
    /* The run may have emitted events before, in a process that was lost: what is emitted a second time is recognised. */
    bool is_rerun;
    dgm_mint mint;
} dgm_graph_options;

dgm_graph_out *dgm_graph_out_new(const dgm_graph_options *options, dgm_graph_sink sink);
void dgm_graph_out_free(dgm_graph_out *o); /* NULL is allowed */

/* The state of the graph has `messages`, or not: known when its worker is. */
void dgm_graph_out_set_messages(dgm_graph_out *o, bool has_messages);
void dgm_graph_out_set_tools(dgm_graph_out *o, const dgm_json *tools);

/* An `event` of the worker. */
void dgm_graph_out_event(dgm_graph_out *o, dgm_str type, const dgm_json *ns, const dgm_json *data);
/* The worker was lost, and the run starts again: what is open restarts. */
void dgm_graph_out_restart(dgm_graph_out *o);

/*
 * The result of `run`: status completed or interrupted. Emits everything up to the last status. Returns the messages for
 * `state/update`, a list that is not empty; NULL: the state needs no update. Then dgm_graph_out_finish() emits the last status.
 */
const dgm_json *dgm_graph_out_result(dgm_graph_out *o, dgm_arena *a, const dgm_json *result);
void dgm_graph_out_finish(dgm_graph_out *o);
/* The result that the state of a thread implies whose run had ended (the answer of `state` with its values): in the arena. since: the
 * id of the message that started the run; empty: unknown. */
const dgm_json *dgm_graph_result_of_state(dgm_arena *a, const dgm_json *state, dgm_str since);

/* Instead of result and finish. text: safe for callers. */
void dgm_graph_out_fail(dgm_graph_out *o, dgm_task_state state, dgm_str text);
void dgm_graph_out_ask(dgm_graph_out *o, const dgm_graph_turn *turn,
                       dgm_str why); /* DGM_GRAPH_ASK_AGAIN */
