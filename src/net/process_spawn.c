/*
 * net/process_spawn.c - starts a child in its own session that is killed when we are.
 *
 * Not fork: it copies the page tables, which stops the loop for milliseconds per GiB. The child borrows
 * our memory until it calls exec (CLONE_VM | CLONE_VFORK, as posix_spawn does), on a stack of its own.
 * So it makes system calls only: a libc function, or a sanitizer's version of it, could change our state.
 *
 * Not uv_spawn or posix_spawn: they have no place for PR_SET_PDEATHSIG, and uv_spawn reaps at once, while
 * a group may be signalled safely only as long as its leader's number cannot be reused.
 *
 * The guard: PR_SET_PDEATHSIG reaches a program that we started, not the processes that the program started. So one
 * small process, a shell, reads from a pipe which groups there are. When it reads the end of the pipe, this process has
 * ended, and it kills the remaining groups. It is started with the first program, in a session of its own, and ends
 * after us. A group is removed before its leader is reaped: until then its number cannot be that of another group.
 */
#define _GNU_SOURCE /* clone */
#include "base/arena.h"
#include "net/process_int.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- finding the program -------------------------------------------------------------------------------- */

static const char *env_value(const char *const *env, const char *name)
{
    size_t n = strlen(name);
    for (; env && *env; env++) {
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return *env + n + 1;
    }
    return NULL;
}

/* 0, or the errno of running this file. A relative path counts from cwd. */
static int program_fault(const char *cwd, const char *path)
{
    char joined[PATH_MAX];
    struct stat st;
    if (cwd && path[0] != '/') {
        int n = snprintf(joined, sizeof joined, "%s/%s", cwd, path);
        if (n < 0 || (size_t)n >= sizeof joined)
            return ENAMETOOLONG;
        path = joined;
    }
    if (stat(path, &st) < 0)
        return errno;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    return access(path, X_OK) < 0 ? errno : 0;
}

/* As execvp does: the first one that can be run; EACCES if there are only ones that cannot. */
static int search_path(const char *name, const char *path, const char *cwd, char *ret_path)
{
    int why = ENOENT;
    for (const char *p = path;; p++) {
        size_t n = strcspn(p, ":");
        int length = snprintf(ret_path, PATH_MAX, "%.*s%s%s", (int)n, p, n ? "/" : "", name);
        int fault = length > 0 && length < PATH_MAX ? program_fault(cwd, ret_path) : ENAMETOOLONG;
        if (!fault)
            return 0;
        if (fault == EACCES)
            why = EACCES;
        p += n;
        if (!*p)
            return why;
    }
}

dgm_code dgm_process_find(const char *name, const char *const *env, const char *cwd,
                          char ret_path[PATH_MAX], dgm_err *err)
{
    struct stat st;
    int why;
    const char *in = cwd ? " in " : "", *where = cwd ? cwd : "";
    if (cwd && (stat(cwd, &st) < 0 || (!S_ISDIR(st.st_mode) && (errno = ENOTDIR))))
        return dgm_fail(err, DGM_UNAVAILABLE, NULL, "cannot run \"%s\" in the folder %s: %s", name,
                        cwd, strerror(errno));
    if (strchr(name, '/')) {
        snprintf(ret_path, PATH_MAX, "%s", name);
        why = strlen(name) < PATH_MAX ? program_fault(cwd, name) : ENAMETOOLONG;
    } else {
        const char *path = env_value(env ? env : (const char *const *)environ, "PATH");
        path = path ? path : "/bin:/usr/bin"; /* as execvp has it */
        why = search_path(name, path, cwd, ret_path);
        if (why == ENOENT)
            return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                            "cannot find the program \"%s\" in PATH (%.200s); a program in the "
                            "folder of the configuration is named with ./",
                            name, path);
    }
    if (why == EACCES)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "cannot run the program \"%s\"%s%s: it is not executable (chmod +x)", name,
                        in, where);
    if (why)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL, "cannot run the program \"%s\"%s%s: %s", name,
                        in, where, strerror(why));
    return DGM_OK;
}

/* ---- the child ------------------------------------------------------------------------------------------- */

#define STACK_BYTES 16384       /* the child calls one function deep */
#define KERNEL_SIGSET_BYTES 8   /* of rt_sigaction and rt_sigprocmask */
#define KERNEL_SIGACTION_ROOM 8 /* words; larger than struct sigaction of any kernel */

struct child {
    const struct dgm_process_spawn *spawn;
    const char **sh_argv; /* for a script without #!, as execvp does */
    const char *path;
    char *const *env;
    pid_t parent;
    int why; /* errno; 0: exec has succeeded */
};

/* TSan's version of clone() treats the child as a fork, in memory that is still ours, and loses track of our threads.
 * glibc exports the function under this name, too. */
#ifdef __SANITIZE_THREAD__
int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);
#define clone __clone
#endif

#define IN_CHILD __attribute__((no_sanitize("address", "thread", "undefined"), noinline))

IN_CHILD static int run_child(void *arg)
{
    struct child *c = arg;
    const struct dgm_process_spawn *s = c->spawn;
    unsigned long zeros[KERNEL_SIGACTION_ROOM] = {0}; /* SIG_DFL; an empty set */
    syscall(SYS_setsid);
    if (!s->outlives_us) {
        syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (syscall(SYS_getppid) != c->parent)
            syscall(SYS_exit_group, 127); /* we were orphaned before we could ask not to be */
    }
    for (int i = 1; i < NSIG; i++) /* exec resets handlers, but not what is ignored */
        syscall(SYS_rt_sigaction, i, zeros, NULL, KERNEL_SIGSET_BYTES);
    for (int i = 0; i < 3; i++) {
        if (syscall(SYS_dup3, s->stdio[i], i, 0) < 0)
            goto failed;
    }
    if (s->channel && syscall(SYS_dup3, s->channel, DGM_PROCESS_CHANNEL_FD, 0) < 0)
        goto failed;
#ifdef SYS_close_range
    syscall(SYS_close_range, s->channel ? DGM_PROCESS_CHANNEL_FD + 1u : 3u, ~0u,
            4u /* CLOSE_RANGE_CLOEXEC: whoever forgot it */);
#endif
    if (s->cwd && syscall(SYS_chdir, s->cwd) < 0)
        goto failed;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, zeros, NULL, KERNEL_SIGSET_BYTES);
    syscall(SYS_execve, c->path, s->argv, c->env);
    if (errno == ENOEXEC)
        syscall(SYS_execve, "/bin/sh", c->sh_argv, c->env);
failed:
    c->why = errno;
    syscall(SYS_exit_group, 127);
    return 127;
}

/* Signals wait meanwhile: a handler of ours must not run in the child. */
static pid_t clone_child(struct child *c)
{
    alignas(16) char stack[STACK_BYTES];
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pid_t pid = clone(run_child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, c);
    int why = pid < 0 ? errno : c->why;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid >= 0 && why) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    errno = why;
    return why ? -1 : pid;
}

dgm_code dgm_process_spawn(const struct dgm_process_spawn *s, pid_t *ret_pid, dgm_err *err)
{
    char path[PATH_MAX];
    size_t n = 0;
    dgm_code rc = dgm_process_find(s->argv[0], s->env, s->cwd, path, err);
    if (rc)
        return rc;
    while (s->argv[n])
        n++;
    const char **sh_argv = dgm_xcalloc(n + 2, sizeof *sh_argv);
    sh_argv[0] = "/bin/sh";
    sh_argv[1] = path;
    memcpy(sh_argv + 2, s->argv + 1, (n - 1) * sizeof *sh_argv);
    struct child c = {.spawn = s,
                      .sh_argv = sh_argv,
                      .path = path,
                      .env = s->env ? (char *const *)(uintptr_t)s->env : environ,
                      .parent = getpid()};
    pid_t pid = clone_child(&c);
    int why = errno;
    free(sh_argv);
    if (pid < 0)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL, "cannot start \"%s\"%s%s: %s", s->argv[0],
                        s->cwd ? " in " : "", s->cwd ? s->cwd : "", strerror(why));
    *ret_pid = pid;
    return DGM_OK;
}

/* ---- pipes ----------------------------------------------------------------------------------------------- */

/* The child's ends of the pipes must not be 0, 1 or 2: dup3 would replace them. */
static int above(int last, int fd)
{
    if (fd < 0 || fd > last)
        return fd;
    int higher = fcntl(fd, F_DUPFD_CLOEXEC, last + 1);
    int saved = errno;
    close(fd);
    errno = saved;
    return higher;
}

bool dgm_process_open_pipe(int ends[2])
{
    int fds[2];
    int rc = uv_pipe(fds, 0, 0); /* blocking, and closed by exec */
    if (rc < 0) {
        errno = -rc;
        return false;
    }
    ends[0] = above(2, fds[0]);
    ends[1] = above(2, fds[1]);
    return ends[0] >= 0 && ends[1] >= 0;
}

bool dgm_process_open_channel(int ends[2])
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return false;
    ends[0] = above(2, fds[0]);
    ends[1] = above(DGM_PROCESS_CHANNEL_FD, fds[1]);
    return ends[0] >= 0 && ends[1] >= 0;
}

void dgm_process_close_all(int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
}

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
