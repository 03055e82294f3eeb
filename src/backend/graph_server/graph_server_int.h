/*
 * backend/graph_server/graph_server_int.h - shared by the files of the type langgraph-server.
 *
 *   graph_server_agent.c    settings, the type
 *   graph_server_job.c      one run: its start, its end, its events
 *   graph_server_after.c    which request follows which
 *   graph_server_request.c  the requests, and what is stored about a run of the server
 *   graph_server_frames.c   frames of the server to events of the worker protocol; graph_server_v2.c: those of Protocol v2
 *   graph_server_seen.c     each frame once
 * The mapping of these events to A2A is that of the type langgraph (backend/langgraph/graph_map.h).
 */
#pragma once

#include "backend/graph_server/graph_server_frames.h"
#include "backend/langgraph/graph_map.h"
#include "backend/remote/remote.h"

#include <stdatomic.h>

/* ---- the agent --------------------------------------------------------------------------------------------------------- */

enum gserver_protocol { GSERVER_RUNS, GSERVER_V2 };

struct gserver_settings {
    dgm_remote remote;
    dgm_str assistant;
    int protocol, a2a_dialect, expose_errors; /* indexes of their choices */
    int64_t recursion_limit;                  /* 0: the server's */
    const dgm_json *configurable;
    double reconnect_timeout;
};

/* What the state of the graph has; bits of gserver_agent.keys. */
enum { GSERVER_HAS_MESSAGES = 1, GSERVER_HAS_INBOX = 2, GSERVER_HAS_OUTBOX = 4, GSERVER_KNOWN = 8 };

struct gserver_agent {
    struct gserver_settings set;
    dgm_arena *arena;
    dgm_str base;             /* the URL, without a slash at its end */
    atomic_int keys;          /* 0: not known yet */
    atomic_llong keys_until;  /* Unix milliseconds */
    atomic_llong no_v2_until; /* likewise: the server has no Protocol v2 */
};

/* ---- one run ------------------------------------------------------------------------------------------------------------ */

enum gserver_step {
    GSERVER_RECALL,
    GSERVER_ASSISTANT, /* POST /assistants/search: the id of the graph's assistant */
    GSERVER_SCHEMA,    /* GET /assistants/{id}/schemas: what the state of the graph has */
    GSERVER_THREAD,    /* POST /threads */
    GSERVER_FIND,      /* GET /threads/{id}/runs: was our run created? */
    GSERVER_SEND,      /* the message: POST .../runs/stream or .../commands */
    GSERVER_FOLLOW,    /* the events of a run: GET .../runs/{id}/stream or POST .../stream/events */
    GSERVER_CHECK,     /* GET .../runs/{id}: has it ended? */
    GSERVER_STATE,     /* GET .../state */
    GSERVER_SYNC,      /* POST .../state: messages that the graph sent as an outbox */
    GSERVER_CANCEL,    /* POST .../runs/{id}/cancel */
    GSERVER_WAIT,      /* until the next request */
    GSERVER_ENDED
};

/* What is stored about a run of the server; in the job's arena. */
struct gserver_note {
    dgm_str run;  /* its id there; empty: not known */
    dgm_str turn; /* the turn that it serves: see gserver_job.turn */
    bool is_v2;
    const dgm_json *resume; /* the answers to questions that it was started with; NULL: none */
};

struct gserver_job {
    dgm_run *run;
    struct gserver_agent *agent;
    dgm_arena *arena;
    enum gserver_step step, next;  /* next: after GSERVER_WAIT */
    dgm_remote_call *call, *probe; /* probe: GSERVER_CHECK while v2 events are followed */
    dgm_timer timer, limit, quiet; /* quiet: v2: no event for a while */
    dgm_loop_stop stop;
    unsigned n_closing; /* timers */
    dgm_str thread;     /* its UUID there */
    dgm_str assistant;  /* the UUID, if it is known */
    dgm_str turn; /* names this message in the metadata of its run: the same after a restart */
    struct gserver_note note;
    bool is_v2; /* of the run that is followed */
    /* of the context: how many threads it had before this one; v2: the number of the last event of the thread */
    int64_t thread_number, since;

    dgm_graph_turn graph_turn;
    dgm_graph_plan plan;
    dgm_graph_out *out;
    struct gserver_frames frames;
    const char *emit_error; /* an event was refused: why */

    /* of the current call */
    dgm_buf answer; /* a JSON body */
    bool is_over;   /* a frame has ended the run */
    bool is_bad;    /* ... or cannot be read: `bad` */
    const char *bad;
    size_t n_frames;
    /* of the probe */
    dgm_str probe_status;

    bool has_reconnected; /* events may be missing */
    bool is_lossy;        /* ... are missing: the state decides */
    bool is_cut;          /* the connection was lost while events were read */
    unsigned n_reread;    /* how often it was joined again although it had ended */
    const dgm_json *state_next;
    const char *result_status; /* completed or interrupted: the run has ended */
    const dgm_json *sync;      /* messages for the state */
    unsigned n_resent;
    uint64_t lost_since; /* ms of the loop; 0: not lost */
    uint64_t wait_ms, quiet_ms;
    const char *failure; /* the task fails with this after GSERVER_CANCEL; NULL: it is canceled */
    bool is_canceling;
};

#define GSERVER_WAIT_MIN_MS 100
#define GSERVER_WAIT_MAX_MS 5000
#define GSERVER_QUIET_MIN_MS 2000
#define GSERVER_QUIET_MAX_MS 15000
/* Below DGM_CANCEL_WAIT_MS, so that a cancel is answered with a canceled task. */
#define GSERVER_CANCEL_MS 4500
/* The events of a run that has ended are read again so often. */
#define GSERVER_MAX_REREADS 3

extern const dgm_setting dgm_gserver_settings[];
void dgm_gserver_start(void *agent, dgm_run *run);
void dgm_gserver_cancel(void *agent, dgm_run *run);

/* ---- graph_server_job.c --------------------------------------------------------------------------------------------------- */

/* Starts the request of a step. */
void dgm_gserver_job_step(struct gserver_job *j, enum gserver_step step);
/* The same after a while; each time it is longer. */
void dgm_gserver_job_wait(struct gserver_job *j, enum gserver_step next);
/* The server was not reached: tries again for a while. */
void dgm_gserver_job_lost(struct gserver_job *j, const char *why, enum gserver_step next);
/* The end of the run. error: see dgm_run_ops.end. */
void dgm_gserver_job_finish(struct gserver_job *j, const char *error);
/* The task fails. detail: for the operator. */
void dgm_gserver_job_fail(struct gserver_job *j, const char *what);
void dgm_gserver_job_fail_with(struct gserver_job *j, const char *what, dgm_str detail);
void dgm_gserver_job_settle_canceled(struct gserver_job *j);
void dgm_gserver_job_cancel_remote(struct gserver_job *j);
/* Stores the note of the task. */
void dgm_gserver_job_remember(struct gserver_job *j);
/* The server has created our run. False: the job has gone on with something else. */
bool dgm_gserver_job_learn_run(struct gserver_job *j, dgm_str id);
void dgm_gserver_job_emit(void *arg, const dgm_event *event);
void dgm_gserver_job_note_line(void *arg, dgm_str line);

/* ---- graph_server_after.c --------------------------------------------------------------------------------------------------- */

void dgm_gserver_job_after_call(struct gserver_job *j, const dgm_remote_end *end);
/* The status of the run, as the server has it. */
void dgm_gserver_job_handle_status(struct gserver_job *j, dgm_str status);

/* ---- requests (graph_server_request.c) ------------------------------------------------------------------------------------ */

/* A UUID that is the same for the same tenant, principal, agent, context and number, and no other. */
dgm_str dgm_gserver_thread_id(dgm_arena *a, const dgm_run_input *in, int64_t number);
/* 32 hex digits for this message of this task. */
dgm_str dgm_gserver_turn_id(dgm_arena *a, const dgm_run_input *in);
/* Starts the request of a step. Returns NULL, or why it cannot be written. */
const char *dgm_gserver_request(struct gserver_job *j, enum gserver_step step,
                                dgm_remote_handler handler, dgm_remote_call **ret_call);
dgm_str dgm_gserver_write_note(dgm_arena *a, const struct gserver_note *note);
struct gserver_note dgm_gserver_read_note(dgm_arena *a, dgm_str text);
/* The bits of the keys that a schema of the assistant names. */
int dgm_gserver_read_schemas(const dgm_json *schemas);
bool dgm_gserver_is_uuid(dgm_str text);
const char *dgm_gserver_find_text(dgm_str text, dgm_str part); /* NULL: not there, or it is empty */
/* The id of the run with this turn in its metadata, in a list of runs; absent: none. */
dgm_str dgm_gserver_find_run(const dgm_json *runs, dgm_str turn);
/* The run of a path as in Content-Location: /threads/{id}/runs/{id}; absent: none. */
dgm_str dgm_gserver_run_of_path(dgm_str path);

/* ---- for graph_server_v2.c (graph_server_frames.c) -------------------------------------------------------------------------- */

void dgm_gserver_frames_values(struct gserver_frames *f, const dgm_json *values, dgm_str text);
dgm_code dgm_gserver_frames_emit_message(struct gserver_frames *f, const dgm_json *ns,
                                         const dgm_json *message, dgm_str node,
                                         const dgm_json *step, dgm_str src, dgm_err *err);
dgm_code dgm_gserver_frames_emit_nodes(struct gserver_frames *f, const dgm_json *ns,
                                       const dgm_str *nodes, size_t n, dgm_err *err);
void dgm_gserver_frames_error(struct gserver_frames *f, const dgm_json *data);
