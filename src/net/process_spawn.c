/*
 * net/process_spawn.c - fork and exec: a child in its own group that dies with us.
 *
 * Not uv_spawn: that has no place for PR_SET_PDEATHSIG, and it reaps at once, while the group may be
 * signalled safely only as long as its leader's number is not free for others.
 */
#include "net/process_int.h"

#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* In the child: only what is safe after a fork in a program with threads. Never returns. */
static void become(const dgm_process_options *o, char **env, const int fds[3], pid_t parent,
                   int report)
{
    sigset_t none;
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127); /* we were orphaned before we could ask not to be */
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int i = 0; i < 3; i++) {
        if (dup2(fds[i], i) < 0)
            goto failed;
    }
#ifdef SYS_close_range
    syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC: whoever forgot it */);
#endif
    if (o->cwd && chdir(o->cwd) < 0)
        goto failed;
    environ = env;
    execvp(o->argv[0], (char *const *)(uintptr_t)o->argv);
failed:;
    int why = errno;
    while (write(report, &why, sizeof why) < 0 && errno == EINTR)
        ;
    _exit(127);
}

static bool names_same(const char *a, const char *b) /* two "NAME=value" */
{
    size_t n = strcspn(a, "=");
    return strcspn(b, "=") == n && memcmp(a, b, n) == 0;
}

static char **merged_env(const char *const *more)
{
    size_t n = 0, n_more = 0, k = 0;
    while (environ && environ[n])
        n++;
    while (more && more[n_more])
        n_more++;
    char **env = dgm_xcalloc(n + n_more + 1, sizeof *env);
    for (size_t i = 0; i < n; i++) {
        size_t j = 0;
        while (j < n_more && !names_same(environ[i], more[j]))
            j++;
        if (j == n_more)
            env[k++] = environ[i];
    }
    for (size_t j = 0; j < n_more; j++)
        env[k++] = (char *)(uintptr_t)more[j];
    return env;
}

/* All signals wait while there are two of us in one memory image. */
static pid_t fork_quietly(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pid_t pid = fork();
    if (pid != 0) {
        int saved = errno;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        errno = saved;
    }
    return pid;
}

/* The child's ends of the pipes must not be 0, 1 or 2: dup2 would trample on them. */
static int above_stdio(int fd)
{
    if (fd < 0 || fd > 2)
        return fd;
    int higher = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int saved = errno;
    close(fd);
    errno = saved;
    return higher;
}

static bool open_pipe(int ends[2])
{
    int fds[2];
    int rc = uv_pipe(fds, 0, 0); /* blocking, and closed by exec */
    if (rc < 0) {
        errno = -rc;
        return false;
    }
    ends[0] = above_stdio(fds[0]);
    ends[1] = above_stdio(fds[1]);
    return ends[0] >= 0 && ends[1] >= 0;
}

void process_close_all(int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
}

int process_spawn(const dgm_process_options *o, int fds[8], pid_t *ret_pid)
{
    int why = 0;
    for (size_t i = 0; i < 4; i++) {
        if (!open_pipe(fds + 2 * i))
            return errno;
    }
    char **env = merged_env(o->env);
    pid_t parent = getpid(), pid = fork_quietly();
    if (pid == 0)
        become(o, env, (int[]){fds[0], fds[3], fds[5]}, parent, fds[7]);
    free(env);
    if (pid < 0)
        return errno;
    close(fds[7]);
    fds[7] = -1;
    ssize_t n;
    while ((n = read(fds[6], &why, sizeof why)) < 0 && errno == EINTR)
        ;
    if (n <= 0) { /* closed by exec: it runs */
        *ret_pid = pid;
        return 0;
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return why;
}
