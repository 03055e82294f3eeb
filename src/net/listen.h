/* net/listen.h - from the text of an address to sockets that listen. */
#pragma once

#include "base/err.h"

typedef struct dgm_listeners {
    int fds[64]; /* DGM_MAX_LOOPS */
    size_t n;    /* as many as were asked for; one for a unix socket */
    int port;    /* 0 for a unix socket */
    char *path;  /* of a unix socket, malloc'ed; NULL: TCP */
} dgm_listeners;

/* "127.0.0.1:8484", "[::1]:0", "localhost:8484", "unix:/run/x.sock". n sockets on the same address share its
 * connections (SO_REUSEPORT), after a probe without that: an address in use is an error. A socket file
 * is replaced if no process listens on it. */
dgm_code dgm_listen(const char *address, size_t n, dgm_listeners *ret_listeners, dgm_err *err);
