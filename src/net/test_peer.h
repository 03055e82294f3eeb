/*
 * net/test_peer.h - a server for the tests of clients: threads that answer connections with prepared bytes.
 *
 * A request is answered by the first script that was not used yet and whose `on` occurs in it; when all of those are used, by
 * the last of them.
 */
#pragma once

#include "base/buf.h"
#include "support/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { HOLD = 1, RESET = 2, KEEP = 4, NO_READ = 8, ENDLESS = 16 };

struct script {
    const char *bytes; /* what a request is answered with; NULL: nothing */
    unsigned
        how; /* HOLD: the connection stays open, KEEP: for the next request, ENDLESS: the last byte is repeated */
    const char *on; /* NULL: any request */
    size_t n;       /* of bytes; 0: all of them */
};

#define MAX_SCRIPTS 16

static struct server {
    int listener, port;
    const struct script *scripts;
    size_t n;
    bool used[MAX_SCRIPTS];
    pthread_t thread;
    atomic_size_t connections, requests, serving;
    atomic_bool stop;
    pthread_mutex_t lock; /* of the rest */
    char last[65536];     /* the last request */
    dgm_buf log;          /* all of them */
} server;

/* Reads one request. */
static bool server_read(int fd, char *to, size_t size)
{
    size_t n = 0, want = 0;
    while (n < size - 1) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 20) == 0) {
            if (atomic_load(&server.stop))
                return false;
            continue;
        }
        ssize_t got = read(fd, to + n, size - 1 - n);
        if (got <= 0)
            return false;
        n += (size_t)got;
        to[n] = '\0';
        char *end = strstr(to, "\r\n\r\n"), *length = strstr(to, "Content-Length: ");
        if (end && !want)
            want = (size_t)(end + 4 - to) + (length ? strtoul(length + 16, NULL, 10) : 0);
        if (want && n >= want)
            return true;
    }
    return false;
}

static const struct script *server_choose(const char *request)
{
    const struct script *last = NULL;
    for (size_t i = 0; i < server.n; i++) {
        const struct script *s = &server.scripts[i];
        if (s->on && !strstr(request, s->on))
            continue;
        last = s;
        if (i < MAX_SCRIPTS && !server.used[i]) {
            server.used[i] = true;
            break;
        }
    }
    return last;
}

static void server_hold(int fd)
{
    char byte;
    while (!atomic_load(&server.stop)) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 20) == 1 && read(fd, &byte, 1) <= 0)
            return;
    }
}

static bool server_answer(int fd, const struct script *s)
{
    bool more = true;
    if (s->n)
        more = write(fd, s->bytes, s->n) > 0;
    if (s->how & ENDLESS) {
        char many[4096];
        memset(many, 'x', sizeof many);
        while (write(fd, many, sizeof many) > 0 && !atomic_load(&server.stop))
            ;
    }
    if (s->how & RESET) {
        struct linger now = {1, 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    if (s->how & HOLD)
        server_hold(fd);
    return more && s->how & KEEP;
}

static void *server_serve(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char *request = calloc(1, sizeof server.last);
    bool more = true;
    while (more) {
        pthread_mutex_lock(&server.lock);
        bool reads = !(server.scripts[0].how & NO_READ);
        pthread_mutex_unlock(&server.lock);
        if (reads && !server_read(fd, request, sizeof server.last))
            break;
        pthread_mutex_lock(&server.lock);
        const struct script *chosen = server_choose(request);
        struct script s = chosen ? *chosen : (struct script){0};
        char *bytes = NULL; /* a copy: the test may go on and change them */
        if (s.bytes) {
            s.n = s.n ? s.n : strlen(s.bytes);
            s.bytes = bytes = memcpy(malloc(s.n + 1), s.bytes, s.n);
        }
        memcpy(server.last, request, sizeof server.last);
        dgm_buf_add_str(&server.log, dgm_str_from(request));
        dgm_buf_add_char(&server.log, '\n');
        pthread_mutex_unlock(&server.lock);
        atomic_fetch_add(&server.requests, 1);
        more = chosen && server_answer(fd, &s);
        free(bytes);
    }
    close(fd);
    free(request);
    atomic_fetch_sub(&server.serving, 1);
    return NULL;
}

static void *server_accept(void *arg)
{
    (void)arg;
    while (!atomic_load(&server.stop)) {
        struct pollfd p = {.fd = server.listener, .events = POLLIN};
        pthread_t thread;
        if (poll(&p, 1, 20) != 1)
            continue;
        int fd = accept(server.listener, NULL, NULL);
        atomic_fetch_add(&server.connections, 1);
        atomic_fetch_add(&server.serving, 1);
        pthread_create(&thread, NULL, server_serve, (void *)(intptr_t)fd);
        pthread_detach(thread);
    }
    while (atomic_load(&server.serving))
        usleep(1000);
    return NULL;
}

/* Other answers from now on. */
static inline void server_script(const struct script *scripts, size_t n)
{
    assert_true(n <= MAX_SCRIPTS);
    pthread_mutex_lock(&server.lock);
    server.scripts = scripts;
    server.n = n;
    memset(server.used, 0, sizeof server.used);
    dgm_buf_clear(&server.log);
    pthread_mutex_unlock(&server.lock);
}

/* How many requests had this in them? */
static inline size_t server_count(const char *what)
{
    size_t n = 0;
    pthread_mutex_lock(&server.lock);
    dgm_buf_add_char(&server.log, '\0');
    for (const char *p = server.log.p; (p = strstr(p, what)); p++)
        n++;
    server.log.n--;
    pthread_mutex_unlock(&server.lock);
    return n;
}

static void server_start(const struct script *scripts, size_t n)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    memset(&server, 0, sizeof server);
    signal(SIGPIPE, SIG_IGN);
    pthread_mutex_init(&server.lock, NULL);
    dgm_buf_init(&server.log, SIZE_MAX);
    server_script(scripts, n);
    server.listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(server.listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(server.listener, 64), 0);
    getsockname(server.listener, (struct sockaddr *)&at, &size);
    server.port = ntohs(at.sin_port);
    pthread_create(&server.thread, NULL, server_accept, NULL);
}

static void server_stop(void)
{
    atomic_store(&server.stop, true);
    pthread_join(server.thread, NULL);
    close(server.listener);
    dgm_buf_done(&server.log);
    pthread_mutex_destroy(&server.lock);
}
