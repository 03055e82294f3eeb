/* backend/exec/exec_int.h - what the files of this folder share. */
#pragma once

#include "backend/backend_int.h"
#include "backend/program.h"
#include "backend/worker/worker.h"
#include "base/mint.h"

#include <pthread.h>

enum exec_form { EXEC_JSON, EXEC_TEXT };

/* An agent: a program and how it is run. */
struct exec {
    dgm_arena *arena;
    dgm_program program;
    int input, output; /* enum exec_form */
    double timeout, grace;
    size_t max_processes, max_processes_per_principal;
    dgm_worker_pool *pool; /* mode: worker; else NULL */
    unsigned max_attempts; /* of one run, in mode: worker */
    dgm_str id;            /* of the agent */
    dgm_str working_message;
    pthread_mutex_t lock; /* of the two below */
    size_t n_running;
    struct exec_share *shares; /* of principals that have programs running */
};

/* exec_config.c */
extern const dgm_setting dgm_exec_settings[];
dgm_code dgm_exec_open(const dgm_json *config, const dgm_agent_options *options, void **ret_agent,
                       dgm_err *err);
void dgm_exec_close(void *agent);

/* exec_share.c: how many programs run, and for whom. From any thread. */

enum exec_room { EXEC_ROOM, EXEC_AGENT_BUSY, EXEC_CALLER_BUSY };
/* EXEC_ROOM: one more is counted; ret_share is for dgm_exec_share_leave. */
enum exec_room dgm_exec_share_enter(struct exec *x, const dgm_run_input *in,
                                    struct exec_share **ret_share);
void dgm_exec_share_leave(struct exec *x, struct exec_share *share);

/* exec_events.c: what a run has emitted */

struct exec_text; /* a text that was opened */
struct exec_events {
    dgm_run *run;
    dgm_mint mint;        /* ids of messages that have none */
    dgm_task_state state; /* as it was emitted */
    bool settled;         /* a terminal state or a Message was emitted: nothing may follow */
    struct exec_text *texts;
};
void dgm_exec_events_init(struct exec_events *e, dgm_run *run, uint64_t salt);
void dgm_exec_events_open_text(struct exec_events *e, dgm_str artifact_id);
void dgm_exec_events_note(struct exec_events *e, const dgm_event *event); /* it was emitted */
/* Closes open texts and emits the last status. error: of DGM_STATE_FAILED. A no-op if it is settled. */
void dgm_exec_events_settle(struct exec_events *e, dgm_task_state state, const char *error);
/* The agent failed before it was started. Ends the run. */
void dgm_exec_refuse(dgm_run *run, const char *safe, const char *detail);

/* exec_worker.c: a run in mode: worker */

void dgm_exec_worker_start(struct exec *x, dgm_run *run);
void dgm_exec_worker_cancel(dgm_run *run);
bool dgm_exec_worker_message(dgm_run *run, const dgm_message *message);

/* exec_text.c */

/* What goes to the program: one line of JSON, or the text. */
void dgm_exec_write_input(const dgm_run *run, enum exec_form form, dgm_buf *out);

/* One line of JSON to an event: A2A 1.0, 0.3 or an internal event. A taskId or contextId that the line
 * leaves out is empty in the event: the core fills it in, and its rules must not see an invented one. */
dgm_code dgm_exec_read_event(dgm_arena *a, dgm_mint *mint, int64_t now_ms, dgm_str line,
                             dgm_event *ret_event, dgm_err *err);
/* The same of a value, in the arena that the event is decoded into. */
dgm_code dgm_exec_read_event_value(dgm_arena *a, dgm_mint *mint, int64_t now_ms, yyjson_val *v,
                                   dgm_event *ret_event, dgm_err *err);
/* Members of `run` for workers of kind `events`, each with a comma in front. task: `currentTask`; may be NULL.
 * journal.p NULL: the task has no journal. A long one is only announced: the worker reads it with journal/get. */
void dgm_exec_put_run(const dgm_run *run, const dgm_task *task, dgm_strs accepted, dgm_str journal,
                      dgm_buf *out);
