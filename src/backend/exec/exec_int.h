/* backend/exec/exec_int.h - what the files of this folder share. */
#pragma once

#include "backend/backend_int.h"
#include "base/mint.h"

#include <pthread.h>

enum exec_form { EXEC_JSON, EXEC_TEXT };

/* An agent: a program and how it is run. */
struct exec {
    dgm_arena *arena;
    const char **argv;    /* ends with NULL */
    const char **own_env; /* "NAME=value", as the settings have them */
    size_t n_own_env;
    dgm_strs inherit_env;
    bool inherit_all_env;
    const char **env; /* the program's, but for what each run adds; ends with NULL */
    size_t n_env;
    dgm_str withheld; /* names of variables that it does not get */
    const char *cwd;
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

/* exec_env.c */

/* Fills env and withheld. options may be NULL. */
void dgm_exec_env_open(struct exec *x, const dgm_agent_options *options);
const char **dgm_exec_env_of_run(const struct exec *x, const dgm_run *run); /* in the run's arena */
/* A key for what a program stores of a context: unique over tenants, principals and agents. */
dgm_str dgm_exec_context_key(dgm_arena *a, const dgm_run_input *in);

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

/* Bytes to UTF-8: invalid bytes become U+FFFD. A character cut off at the end is kept in `tail` for
 * the next call, unless it is the last. The result is borrowed from bytes or lives in the arena. */
struct exec_tail {
    char p[4];
    size_t n;
};
dgm_str dgm_exec_clean_text(dgm_arena *a, struct exec_tail *tail, dgm_str bytes, bool last);
