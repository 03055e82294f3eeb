/* backend/exec/exec_int.h - what the files of this folder share. */
#pragma once

#include "backend/backend_int.h"
#include "backend/program.h"
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

/* exec_text.c */

/* What goes to the program: one line of JSON, or the text. */
void dgm_exec_write_input(const dgm_run *run, enum exec_form form, dgm_buf *out);

/* One line of JSON to an event: A2A 1.0, 0.3 or an internal event. A taskId or contextId that the line
 * leaves out is empty in the event: the core fills it in, and its rules must not see an invented one. */
dgm_code dgm_exec_read_event(dgm_arena *a, dgm_mint *mint, int64_t now_ms, dgm_str line,
                             dgm_event *ret_event, dgm_err *err);
