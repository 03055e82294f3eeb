/*
 * net/process.h - a child process on a loop: a session and a group of its own, three pipes, lines, and
 * an end that always comes. A child with a channel has one end of a socket pair, too: for a protocol in both directions, so that
 * its standard output is free for what people read.
 *
 * When the child ends, whatever it started in its group is killed. When its loop stops, all of them are
 * killed at once, and on_exit comes as always. When we are killed, the child is killed at once by the
 * kernel (PDEATHSIG), and the processes of its group by the guard of process_spawn.c. It is read only while its reader wants more,
 * so one that writes without end fills its pipe and waits. All calls are made on the loop it was
 * started on; callbacks come there, never from inside a call.
 *
 * The program must ignore SIGPIPE: a child may close its input at any time.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "net/loop.h"

#include <limits.h>

typedef struct dgm_process dgm_process;

typedef enum dgm_line_end {
    DGM_LINE_WHOLE, /* a newline followed; it is not part of the line */
    DGM_LINE_CUT,   /* a piece of a line longer than max_line_bytes; the rest follows */
    DGM_LINE_LAST   /* the output ended without a newline */
} dgm_line_end;

typedef struct dgm_process_exit {
    int status;  /* as given to exit(); -1: it was killed */
    int signal;  /* that killed it; 0: none did */
    bool killed; /* dgm_process_kill was called before it ended */
} dgm_process_exit;

/* The descriptor of a channel in the child. */
#define DGM_PROCESS_CHANNEL_FD 3

typedef struct dgm_process_handler {
    /* What it writes to stdout. A line lives until the callback returns. */
    void (*on_line)(void *user, dgm_str line, dgm_line_end end);
    /* The same of stderr, cut at 4 KiB at the latest; NULL: read and dropped. */
    void (*on_error_line)(void *user, dgm_str line, dgm_line_end end);
    /* The last callback: the child is reaped, its output read, its group gone. The process is freed
     * when this returns. */
    void (*on_exit)(void *user, dgm_process_exit how);
    void *user;
    /* Of a child with a channel: what it writes there; then, once, that it has closed it. */
    void (*on_channel_line)(void *user, dgm_str line, dgm_line_end end);
    void (*on_channel_end)(void *user);
} dgm_process_handler;

typedef struct dgm_process_options {
    const char *const *argv; /* ends with NULL; argv[0] is looked up in the PATH of env */
    const char *const *env;  /* "NAME=value", all of it; ends with NULL. NULL: ours */
    const char *cwd;         /* NULL: ours */
    size_t max_line_bytes;   /* 0: DGM_MAX_RECORD_BYTES */
    uint64_t grace_ms;       /* from SIGTERM to SIGKILL */
    /* A line of the channel; 0: it has no channel. A child with a channel has /dev/null as its stdin, and env must name
     * DGM_PROCESS_CHANNEL_FD in some variable. */
    size_t channel_line_bytes;
    bool without_pidfd; /* as on a kernel that has none: look every 20 ms */
} dgm_process_options;

/* A program that cannot be started is an error here: DGM_UNAVAILABLE, with the reason. */
dgm_code dgm_process_start(dgm_loop *loop, const dgm_process_options *options,
                           dgm_process_handler handler, dgm_process **ret_process, dgm_err *err);

/* Where a program is found, as execvp does: a name with a slash is a path, any other one is looked for in
 * the PATH of env (NULL: ours). Relative paths count from cwd (NULL: ours). DGM_UNAVAILABLE: there is no
 * such program, or it may not be run; the message names it and the folder. */
dgm_code dgm_process_find(const char *name, const char *const *env, const char *cwd,
                          char ret_path[PATH_MAX], dgm_err *err);

int dgm_process_pid(const dgm_process *p);

/* To its stdin. The bytes are copied; what a child does not read waits until it is gone. */
void dgm_process_write(dgm_process *p, dgm_str bytes);
void dgm_process_end_input(dgm_process *p); /* once all that was written is through */
size_t dgm_process_backlog(const dgm_process *p);

/* No more of stdout until resumed; lines of what was read already still come. Counts nothing: one
 * resume undoes any number of pauses. */
void dgm_process_pause(dgm_process *p);
void dgm_process_resume(dgm_process *p);

/* The same for the channel. */
void dgm_process_send(dgm_process *p, dgm_str bytes);
size_t dgm_process_channel_backlog(const dgm_process *p);
void dgm_process_pause_channel(dgm_process *p);
void dgm_process_resume_channel(dgm_process *p);
/* The child reads the end of its input there. What it writes is still read. */
void dgm_process_end_channel(dgm_process *p);

/* SIGTERM to its group, SIGKILL after the grace. Any number of times. on_exit comes as always. */
void dgm_process_kill(dgm_process *p);

/* ---- the environment (process_env.c) ------------------------------------------------------------------------------- */

/*
 * Our environment holds secrets: callers' tokens, keys of other services. A program that can be made to show its environment
 * would give them away. So a program gets an allow list of variables, plus `own` and `inherit`. Variables in `secret` are
 * passed only if `inherit` names them: inherit_all does not.
 */
typedef struct dgm_process_env_rule {
    const char *const *own; /* "NAME=value" */
    size_t n_own;
    dgm_strs inherit;
    bool inherit_all;
    dgm_strs secret;
} dgm_process_env_rule;

dgm_str dgm_process_env_name(const char *entry); /* of "NAME=value" */
/* Is a variable of ours passed on, apart from `own`? */
bool dgm_process_env_passes(const dgm_process_env_rule *rule, dgm_str name);
/* The whole environment; ends with NULL. `own` is borrowed. */
const char **dgm_process_env(dgm_arena *a, const dgm_process_env_rule *rule);
