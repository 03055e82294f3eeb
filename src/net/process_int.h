/* net/process_int.h - starting a child process, for process.c. */
#pragma once

#include "net/process.h"

#include <sys/types.h>

/* ---- process_spawn.c */

struct dgm_process_spawn {
    const char *const *argv; /* ends with NULL; argv[0] is looked up in the PATH of env */
    const char *const *env;  /* all of it; NULL: ours */
    const char *cwd;         /* NULL: ours */
    int stdio[3];            /* above 2 */
    int channel;             /* above DGM_PROCESS_CHANNEL_FD; 0: none */
    bool outlives_us;
};

dgm_code dgm_process_spawn(const struct dgm_process_spawn *s, pid_t *ret_pid, dgm_err *err);
/* A read end and a write end, both above 2 and closed by exec. False: errno says why. */
bool dgm_process_open_pipe(int ends[2]);
/* A socket pair: ours, then the child's, which is above DGM_PROCESS_CHANNEL_FD. Both are closed by exec. */
bool dgm_process_open_channel(int ends[2]);
void dgm_process_close_all(int *fds, size_t n); /* -1: not open */

/* A group of processes that has to end when we are killed, and one that has ended. From any thread. */
void dgm_process_guard_add(pid_t group);
void dgm_process_guard_remove(pid_t group);
