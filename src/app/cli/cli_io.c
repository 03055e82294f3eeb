/*
 * cli_io.c - reads and writes bytes: complete writes, files that are created complete or not at all.
 *
 * No stdio here: a reader at the other end of a pipe sees each piece when it is written.
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reading and writing --------------------------------------------------------------------------- */

/* A descriptor we share may be non-blocking (a pipe of node's is): wait as if it were not. */
static bool try_again(int fd, short events)
{
    if (errno == EINTR)
        return true;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
        return false;
    struct pollfd p = {.fd = fd, .events = events};
    return poll(&p, 1, -1) >= 0 || errno == EINTR;
}

long dgm_cli_read(int fd, char *to, size_t n)
{
    ssize_t got;
    while ((got = read(fd, to, n)) < 0) {
        if (!try_again(fd, POLLIN))
            return -1;
    }
    return (long)got;
}

bool dgm_cli_output_write(dgm_cli_output *o, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t put = write(o->fd, p, n);
        if (put < 0) {
            if (try_again(o->fd, POLLOUT))
                continue;
            if (errno == EPIPE)
                dgm_cli_end_by_sigpipe();
            dgm_cli_complain("cannot write to %s: %s", o->name, strerror(errno));
            return false;
        }
        o->empty = false;
        o->last = p[put - 1];
        p += put;
        n -= (size_t)put;
    }
    return true;
}

/* ---- a file that is not left behind ----------------------------------------------------------------- */

static const int deadly[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGXFSZ};
#define N_DEADLY (sizeof deadly / sizeof *deadly)

static char doomed[PATH_MAX]; /* what to remove when a signal ends us; "": nothing */

static void on_deadly_signal(int sig)
{
    unlink(doomed);
    signal(sig, SIG_DFL);
    raise(sig);
}

static void set_signals(bool watch)
{
    struct sigaction action = {.sa_handler = watch ? on_deadly_signal : SIG_DFL}, old;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < N_DEADLY; i++) {
        if (sigaction(deadly[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(deadly[i], &action, NULL);
    }
}

/* A new file in the folder of `target`, so that it can be renamed to it. */
static int create_beside(const char *target, mode_t mode, char **ret_path)
{
    const char *slash = strrchr(target, '/');
    size_t folder = slash ? (size_t)(slash - target) + 1 : 0, max = folder + 64;
    char *path = malloc(max);
    int fd = -1;
    if (!path)
        return -1;
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(path, max, "%.*s.dragoman-%ld-%u.tmp", (int)folder, target, (long)getpid(), i);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0 || errno != EEXIST)
            break;
    }
    if (fd < 0) {
        int why = errno;
        free(path);
        errno = why;
        return -1;
    }
    *ret_path = path;
    return fd;
}

static bool open_regular(dgm_cli_output *o, const char *path, const struct stat *old)
{
    /* a link stays a link: what it points to is replaced */
    o->target = old ? realpath(path, NULL) : strdup(path);
    o->fd = o->target ? create_beside(o->target, 0666, &o->temporary) : -1;
    if (o->fd < 0) {
        dgm_cli_complain("cannot create %s: %s", path, strerror(errno));
        return false;
    }
    snprintf(doomed, sizeof doomed, "%s", o->temporary);
    set_signals(true);
    if (old && fchmod(o->fd, old->st_mode & 07777) != 0) {
        dgm_cli_complain("cannot copy the file mode to the new %s: %s", path, strerror(errno));
        return false;
    }
    return true;
}

bool dgm_cli_output_open(dgm_cli_output *o, const char *path)
{
    struct stat st;
    bool exists;
    *o = (dgm_cli_output){.fd = STDOUT_FILENO, .name = "standard output", .empty = true};
    if (!path || strcmp(path, "-") == 0)
        return true;
    o->name = *path ? path : "a file without a name";
    o->owns_fd = true;
    exists = stat(path, &st) == 0;
    if (*path && (!exists || S_ISREG(st.st_mode))) {
        if (open_regular(o, path, exists ? &st : NULL))
            return true;
        dgm_cli_output_abandon(o);
        return false;
    }
    o->fd = open(path, O_WRONLY | O_CLOEXEC);
    if (o->fd < 0)
        dgm_cli_complain("cannot write to %s: %s", o->name, strerror(errno));
    return o->fd >= 0;
}

bool dgm_cli_output_commit(dgm_cli_output *o)
{
    int rc = 0;
    if (!o->owns_fd)
        return true;
    /* data before name: after a power cut there is the old file or the new, not an empty one */
    if (o->target)
        rc = fsync(o->fd) != 0 && errno != EINVAL && errno != EROFS ? -1 : 0;
    if (close(o->fd) != 0 && errno != EINTR)
        rc = -1;
    o->fd = -1;
    if (rc == 0 && o->target)
        rc = rename(o->temporary, o->target);
    if (rc != 0)
        dgm_cli_complain("cannot write %s: %s", o->name, strerror(errno));
    if (rc == 0)
        doomed[0] = '\0';
    dgm_cli_output_abandon(o);
    return rc == 0;
}

void dgm_cli_output_abandon(dgm_cli_output *o)
{
    if (!o->owns_fd)
        return;
    if (o->fd >= 0)
        close(o->fd);
    if (o->temporary && doomed[0])
        unlink(o->temporary);
    doomed[0] = '\0';
    if (o->temporary)
        set_signals(false);
    free(o->temporary);
    free(o->target);
    *o = (dgm_cli_output){.fd = -1};
}

/* ---- the process -------------------------------------------------------------------------------------- */

void dgm_cli_end_by_sigpipe(void)
{
    sigset_t set;
    if (doomed[0])
        unlink(doomed);
    signal(SIGPIPE, SIG_DFL); /* whoever started us may have it ignored or blocked */
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(SIGPIPE);
    _exit(128 + SIGPIPE);
}
