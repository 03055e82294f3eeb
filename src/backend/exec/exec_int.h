/* backend/exec/exec_int.h - what the files of this folder share. */
#pragma once

#include "backend/backend_int.h"
#include "base/mint.h"

#include <stdatomic.h>

enum exec_form { EXEC_JSON, EXEC_TEXT };

/* An agent: a program and how it is run. */
struct exec {
    dgm_arena *arena;
    const char **argv, **env; /* both end with NULL */
    size_t n_env;
    const char *cwd;
    int input, output; /* enum exec_form */
    double timeout, grace, max_processes;
    atomic_int running;
};

/* exec_config.c */
dgm_code exec_open(const dgm_json *config, void **ret_agent, dgm_err *err);
void exec_close(void *agent);

/* exec_text.c */

/* What goes to the program: one line of JSON, or the text. */
void exec_write_input(const dgm_run *run, enum exec_form form, dgm_buf *out);

/* One line of JSON to an event: A2A 1.0, 0.3 or an internal event. A taskId or contextId that the line
 * leaves out is empty in the event: the core fills it in, and its rules must not see an invented one. */
dgm_code exec_read_event(dgm_arena *a, dgm_mint *mint, int64_t now_ms, dgm_str line,
                         dgm_event *ret_event, dgm_err *err);

/* Bytes to UTF-8: what is none becomes U+FFFD. A character cut off at the end is kept in `tail` for
 * the next call, unless it is the last. The result is borrowed from bytes or lives in the arena. */
struct exec_tail {
    char p[4];
    size_t n;
};
dgm_str exec_clean_text(dgm_arena *a, struct exec_tail *tail, dgm_str bytes, bool last);
