/*
 * net/process_guard.c - kills the programs' process groups when the server was killed.
 *
 * PR_SET_PDEATHSIG reaches a program that we started, not the processes that the program started. So one
 * small process, a shell, reads from a pipe which groups there are. When it reads the end of the pipe, we
 * are gone, however that happened, and it kills the groups that are left. It is started with the first
 * program, in a session of its own, and ends after us.
 *
 * A group is removed before its leader is reaped: until then its number cannot be that of another group.
 */
#include "net/process_int.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char script[] = "trap '' INT TERM HUP QUIT PIPE\n"
                             "groups=\n"
                             "while read -r op group; do\n"
                             "  case $op in\n"
                             "  +) groups=\"$groups $group \" ;;\n"
                             "  -) case $groups in\n"
                             "     *\" $group \"*) groups=\"${groups%%\" $group \"*}${groups#*\" "
                             "$group \"}\" ;;\n"
                             "     esac ;;\n"
                             "  esac\n"
                             "done\n"
                             "for group in $groups; do kill -s KILL -- \"-$group\"; done\n";

static struct {
    pthread_mutex_t lock;
    pid_t owner; /* the process that started it: a fork of that needs its own */
    pid_t pid;
    int fd; /* the write end of its stdin; only if owner is us */
} guard = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool guard_is_ours(void)
{
    return guard.owner == getpid();
}

static void guard_start(void)
{
    static const char *const argv[] = {"/bin/sh", "-c", script, "dragoman-guard", NULL};
    static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
    int ends[2] = {-1, -1};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int away = null >= 0 ? fcntl(null, F_DUPFD_CLOEXEC, 3) : -1; /* above stdio */
    if (dgm_process_open_pipe(ends) && away >= 0) {
        struct dgm_process_spawn s = {.argv = argv,
                                      .env = env,
                                      .cwd = "/",
                                      .stdio = {ends[0], away, away},
                                      .outlives_us = true};
        dgm_err err = {0};
        fcntl(ends[1], F_SETFL, O_NONBLOCK);
        if (!dgm_process_spawn(&s, &guard.pid, &err)) {
            guard.owner = getpid();
            guard.fd = ends[1];
            ends[1] = -1;
        }
    }
    dgm_process_close_all((int[]){ends[0], ends[1], null, away}, 4);
}

/* It is gone, or so far behind that it may kill a group that is not ours any more: it must not. */
static void guard_stop(void)
{
    kill(guard.pid, SIGKILL);
    close(guard.fd);
    while (waitpid(guard.pid, NULL, 0) < 0 && errno == EINTR)
        ;
    guard.owner = 0;
}

static void guard_write(char op, pid_t group)
{
    char line[32];
    int n = snprintf(line, sizeof line, "%c %ld\n", op, (long)group);
    if (guard_is_ours() && write(guard.fd, line, (size_t)n) != n)
        guard_stop();
}

void dgm_process_guard_add(pid_t group)
{
    pthread_mutex_lock(&guard.lock);
    if (!guard_is_ours())
        guard_start();
    guard_write('+', group);
    pthread_mutex_unlock(&guard.lock);
}

void dgm_process_guard_remove(pid_t group)
{
    pthread_mutex_lock(&guard.lock);
    guard_write('-', group);
    pthread_mutex_unlock(&guard.lock);
}
