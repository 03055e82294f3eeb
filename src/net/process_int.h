/* net/process_int.h - starting a child process, for process.c. */
#pragma once

#include "net/process.h"

#include <sys/types.h>

/* Returns 0 when it runs, else an errno. fds: in, out, err, report, each a read end and a write end; they
 * are the caller's to close, whatever becomes of it (-1: closed). */
int process_spawn(const dgm_process_options *o, int fds[8], pid_t *ret_pid);
void process_close_all(int *fds, size_t n);
