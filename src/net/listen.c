/* net/listen.c - addresses, the probe, socket files without a listener. */
#include "net/listen.h"

#include "base/arena.h"
#include "base/limits.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

_Static_assert(sizeof((dgm_listeners){0}.fds) / sizeof(int) == DGM_MAX_LOOPS, "one per loop");

#define BACKLOG 4096 /* the kernel cuts it to net.core.somaxconn */

static dgm_code fail_errno(dgm_err *err, const char *address, int e)
{
    switch (e) {
    case EADDRINUSE:
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "%s is already in use: stop the program that listens there, or choose "
                        "another address",
                        address);
    case EACCES:
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "no permission to listen on %s: choose a port above 1023, or a folder you "
                        "may write to",
                        address);
    case EADDRNOTAVAIL:
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "cannot listen on %s: this machine does not have this address", address);
    default:
        return dgm_fail(err, DGM_UNAVAILABLE, NULL, "cannot listen on %s: %s", address,
                        strerror(e));
    }
}

/* ---- TCP -------------------------------------------------------------------------------------------------- */

/* Splits "host:port" and "[host]:port" into two texts in `text`, a copy. */
static bool split(char *text, char **ret_host, char **ret_port)
{
    char *colon = strrchr(text, ':');
    if (!colon || colon == text)
        return false;
    *colon = 0;
    *ret_port = colon + 1;
    *ret_host = text;
    if (text[0] == '[' && colon[-1] == ']') {
        colon[-1] = 0;
        *ret_host = text + 1;
    } else if (strchr(text, ':')) {
        return false;
    }
    char *end;
    unsigned long port = strtoul(*ret_port, &end, 10);
    return **ret_port >= '0' && **ret_port <= '9' && !*end && port <= 65535;
}

static dgm_code resolve(const char *address, struct sockaddr_storage *ret_addr, socklen_t *ret_n,
                        dgm_err *err)
{
    char text[300], *host, *port;
    struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM}, *found;
    int rc;
    if (strlen(address) >= sizeof text || !split(strcpy(text, address), &host, &port))
        return dgm_fail(
            err, DGM_BAD_PARAMS, NULL,
            "\"%.100s\" is not an address to listen on: write 127.0.0.1:8484, [::1]:8484 or "
            "unix:/path",
            address);
    if ((rc = getaddrinfo(host, port, &hints, &found)) != 0)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL, "cannot find the address of %s: %s", host,
                        gai_strerror(rc));
    memcpy(ret_addr, found->ai_addr, found->ai_addrlen);
    *ret_n = found->ai_addrlen;
    freeaddrinfo(found);
    return DGM_OK;
}

static int bound(const struct sockaddr_storage *a, socklen_t n, bool share)
{
    int fd = socket(a->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
    if (fd < 0)
        return -1;
    /* without SO_REUSEADDR the connections of the last run keep the port for a minute */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        (share && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) ||
        bind(fd, (const struct sockaddr *)a, n) != 0) {
        int e = errno;
        close(fd);
        errno = e;
        return -1;
    }
    return fd;
}

static in_port_t *port_of(struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)a)->sin6_port
                                    : &((struct sockaddr_in *)a)->sin_port;
}

static bool is_free(const struct sockaddr_storage *a, socklen_t n)
{
    int fd = bound(a, n, false);
    bool is = fd >= 0 && listen(fd, 1) == 0; /* the clash of two that share shows only here */
    int e = errno;
    if (fd >= 0)
        close(fd);
    errno = e;
    return is;
}

static dgm_code listen_tcp(const char *address, size_t n, dgm_listeners *l, dgm_err *err)
{
    struct sockaddr_storage a;
    socklen_t size;
    dgm_code rc = resolve(address, &a, &size, err);
    if (rc)
        return rc;
    if (*port_of(&a) != 0 && !is_free(&a, size))
        return fail_errno(err, address, errno);
    for (l->n = 0; l->n < n; l->n++) {
        int fd = bound(&a, size, n > 1);
        if (fd < 0 || listen(fd, BACKLOG) != 0 ||
            (l->n == 0 && getsockname(fd, (struct sockaddr *)&a, &size) != 0)) {
            int e = errno;
            if (fd >= 0)
                close(fd);
            while (l->n)
                close(l->fds[--l->n]);
            return fail_errno(err, address, e);
        }
        l->fds[l->n] = fd;
    }
    l->port = ntohs(*port_of(&a));
    return DGM_OK;
}

/* ---- unix ------------------------------------------------------------------------------------------------ */

/* A socket file whose program is gone? */
static bool is_stale(const struct sockaddr_un *a)
{
    struct stat st;
    if (lstat(a->sun_path, &st) != 0 || !S_ISSOCK(st.st_mode))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool stale =
        fd >= 0 && connect(fd, (const struct sockaddr *)a, sizeof *a) != 0 && errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return stale;
}

static dgm_code listen_unix(const char *address, dgm_listeners *l, dgm_err *err)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const char *path = address + strlen("unix:");
    struct stat st;
    int fd, rc;
    if (!*path || strlen(path) >= sizeof a.sun_path)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                        "the path of a unix socket has 1 to %zu bytes, this one %zu",
                        sizeof a.sun_path - 1, strlen(path));
    strcpy(a.sun_path, path);
    if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "cannot listen on %s: a file with this name exists and is not a socket",
                        address);
    if ((fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) < 0)
        return fail_errno(err, address, errno);
    rc = bind(fd, (struct sockaddr *)&a, sizeof a);
    if (rc != 0 && errno == EADDRINUSE && is_stale(&a) && unlink(path) == 0)
        rc = bind(fd, (struct sockaddr *)&a, sizeof a);
    else if (rc != 0 && errno != EACCES)
        errno = lstat(path, &st) == 0 ? EADDRINUSE : errno;
    if (rc != 0 || listen(fd, BACKLOG) != 0) {
        int e = errno;
        close(fd);
        return fail_errno(err, address, e);
    }
    l->fds[0] = fd;
    l->n = 1;
    l->path = memcpy(dgm_xmalloc(strlen(path) + 1), path, strlen(path) + 1);
    return DGM_OK;
}

dgm_code dgm_listen(const char *address, size_t n, dgm_listeners *ret_listeners, dgm_err *err)
{
    dgm_listeners l = {0};
    dgm_code rc = strncmp(address, "unix:", 5) == 0 ? listen_unix(address, &l, err)
                                                    : listen_tcp(address, n, &l, err);
    if (rc == DGM_OK)
        *ret_listeners = l;
    return rc;
}
