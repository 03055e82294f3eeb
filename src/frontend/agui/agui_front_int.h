/*
 * frontend/agui/agui_front_int.h - one request on its way.
 *
 *   agui_front.c         paths, methods, refusals; what the agent can do
 *   agui_front_input.c   the body: a RunAgentInput, and what of it counts here
 *   agui_front_run.c     a new run: what it answers, and the sending
 *   agui_front_thread.c  existing runs and threads, streamed again
 *   agui_again.c         how a run is streamed to a client that connects in the middle of it
 */
#pragma once

#include "base/limits.h"
#include "frontend/agui/agui_again.h"
#include "frontend/agui/agui_front.h"

#define AGUI_PROTOCOL "ag-ui"
#define AGUI_MAX_HEADERS 3 /* of a stream: see dgm_agui_turn_output */

/* Lives in the exchange's arena, until the response or the stream starts. */
struct agui_op {
    dgm_front_request q;
    dgm_http_exchange *x;
    dgm_arena *arena;
    dgm_core *core;
    const dgm_turn_agent *agent;
    dgm_canon_input input;
    dgm_str caller_id;  /* of the run: "threadId/runId" */
    dgm_turn_once once; /* a run that is looked for */
    bool is_beginning;
    bool old_peer;           /* of before 1.0 */
    const dgm_turn_tap *tap; /* of a replay; NULL: a client */
    /* of a replay: the messages that the client had. n: SIZE_MAX, not known; at NULL: their ids are not known */
    struct {
        dgm_str *at;
        size_t n;
    } had;
    bool binary;     /* it asked for protobuf */
    bool had_resume; /* and some of it may be left */
    dgm_str ignored; /* entries of `resume` that no task waits for, as the header lists them */
    dgm_turn_resolving resolving;
    dgm_turn_hold *hold; /* of a thread's messages, until they are sent; NULL: none */
    /* the run that is streamed again */
    dgm_log *log; /* a reference */
    uint64_t first_seq;
    dgm_str task_id, message_id; /* message_id: what began it */
    uint32_t turn;               /* of the task; 0: not known yet */
};

/* ---- agui_front.c -------------------------------------------------------------------------------------------- */

void dgm_agui_fail(struct agui_op *op, const dgm_err *err);
void dgm_agui_fail_with(struct agui_op *op, dgm_code code, const dgm_at *at, const char *why);

/* ---- agui_front_input.c -------------------------------------------------------------------------------------- */

/* False: it is invalid, and the exchange has its response. */
bool dgm_agui_read(struct agui_op *op);
/* Is there a word of the user's, or the result of a call, behind the agent's last? */
bool dgm_agui_has_news(const dgm_canon_messages *messages);
/* {"text": "..."} and nothing else is that text. */
const dgm_json *dgm_agui_plain_payload(const dgm_json *payload);
/* 1.0 or 0.x? False: neither, a protocol that we do not speak. */
bool dgm_agui_peer_of(dgm_str version, bool *ret_old);
/* The format of the stream for this caller. */
dgm_turn_output dgm_agui_turn_output(const struct agui_op *op);
/* Sets the hook of a run that is followed without a prelude (agui_again.h has the other). */
void dgm_agui_follow(const struct agui_op *op, dgm_turn_output *output);
/* What is stored with a run, so that its stream can be repeated; empty: it is like most others. */
dgm_str dgm_agui_note_text(const struct agui_op *op);
void dgm_agui_note_read(struct agui_op *op, dgm_str text);
/* The messages of the client, as far as they are stored here: the last of the thread, with the ids that the client sent. */
dgm_canon_messages dgm_agui_note_messages(const struct agui_op *op, dgm_canon_messages thread);
/* The request has the header X-Dragoman-On-Disconnect: continue. The run then goes on without its reader. */
bool dgm_agui_continues(const dgm_http_request *r);
/* Of the header Last-Event-ID; false if there is no such header or its value is not a number. */
bool dgm_agui_cursor_of(const dgm_http_request *r, uint64_t *ret);

/* ---- agui_front_run.c ------------------------------------------------------------------------------------------- */

void dgm_agui_run(struct agui_op *op);
/* The run has begun, or will not: copies of its request may go on. Before it is answered. */
void dgm_agui_begun(struct agui_op *op);
/* Finds the task that the entries of `resume` answer, then goes on with agui_go_on. */
void dgm_agui_resolve(struct agui_op *op);
/* task_id: the task that waits for the answers in input.resume; empty: none does. */
void dgm_agui_go_on(struct agui_op *op, dgm_str task_id);
void dgm_agui_send(struct agui_op *op, dgm_str task_id);

/* ---- agui_front_thread.c ---------------------------------------------------------------------------------------- */

/* A known run. What `turn` points to is copied. */
void dgm_agui_attach(struct agui_op *op, const dgm_found_turn *turn);
void dgm_agui_connect(struct agui_op *op);
/* A request with nothing new in it: the state of the thread, again. */
void dgm_agui_stand(struct agui_op *op);
void dgm_agui_messages(struct agui_op *op, dgm_str thread_id);
/* A run without a turn: it begins and ends, that is all. */
void dgm_agui_answer(struct agui_op *op, const dgm_canon_messages *messages,
                     dgm_canon_outcome outcome);

/* ---- agui_front_thread.c: messages ---------------------------------------------------------------------------------------------- */

/* Without activities: how things went is of no use when they are over, and clients do not send it, either. What the user
 * asked again (the same message, sent once more) stands for what was answered the first time, and all that followed. */
dgm_canon_messages dgm_agui_shown(dgm_arena *a, const dgm_canon_messages *all);
/* How many of the messages come before a run that message_id began, and whose own are called "<run_id>-...". */
size_t dgm_agui_cut(const dgm_canon_messages *messages, dgm_str message_id, dgm_str run_id);
