/*
 * backend/test_service.h - a service of the test's own: a thread that answers each request with prepared bytes.
 *
 * Requests are answered in order, one per connection; the last answer is repeated. What was received is stored.
 */
#pragma once

#include "base/buf.h"
#include "support/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { SERVICE_HOLD = 1 };

struct service_answer {
    const char *bytes; /* NULL: none */
    size_t n;          /* 0: all of it */
    unsigned how;      /* HOLD: the connection stays open */
};

#define SERVICE_MAX_REQUESTS 8

static struct service {
    int listener, port;
    const struct service_answer *answers;
    size_t n_answers;
    pthread_t thread;
    atomic_size_t n_requests;
    atomic_bool stop;
    char *requests[SERVICE_MAX_REQUESTS]; /* the first ones, head and body */
    char url[64];
} service;

static inline bool service_read_request(int fd, char **ret_text)
{
    dgm_buf b;
    size_t want = 0;
    dgm_buf_init(&b, SIZE_MAX);
    while (!want || b.n < want) {
        char bytes[65536];
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 20) == 0 && !atomic_load(&service.stop))
            continue;
        ssize_t got = atomic_load(&service.stop) ? 0 : read(fd, bytes, sizeof bytes);
        if (got <= 0) {
            dgm_buf_done(&b);
            return false;
        }
        dgm_buf_add(&b, bytes, (size_t)got);
        dgm_buf_add_char(&b, '\0');
        b.n--;
        const char *end = strstr(b.p, "\r\n\r\n"), *length = strstr(b.p, "Content-Length: ");
        if (end && !want)
            want = (size_t)(end + 4 - b.p) + (length ? strtoul(length + 16, NULL, 10) : 0);
    }
    *ret_text = strndup(b.p, b.n);
    dgm_buf_done(&b);
    return true;
}

static inline void service_hold(int fd)
{
    char byte;
    while (!atomic_load(&service.stop)) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 5) == 1 && read(fd, &byte, 1) <= 0)
            return;
    }
}

static inline void service_serve_one(int fd)
{
    char *text;
    if (!service_read_request(fd, &text))
        return;
    size_t i = atomic_load(&service.n_requests);
    if (i < SERVICE_MAX_REQUESTS)
        service.requests[i] = text;
    else
        free(text);
    atomic_fetch_add(&service.n_requests, 1);
    /* a copy: the test goes on when it has the last byte */
    struct service_answer a = service.answers[i < service.n_answers ? i : service.n_answers - 1];
    if (a.bytes && write(fd, a.bytes, a.n ? a.n : strlen(a.bytes)) < 0)
        return;
    if (a.how & SERVICE_HOLD)
        service_hold(fd);
}

static void *service_serve(void *arg)
{
    (void)arg;
    while (!atomic_load(&service.stop)) {
        struct pollfd p = {.fd = service.listener, .events = POLLIN};
        if (poll(&p, 1, 20) != 1)
            continue;
        int fd = accept(service.listener, NULL, NULL);
        service_serve_one(fd);
        close(fd);
    }
    return NULL;
}

static inline void service_forget(void)
{
    for (size_t i = 0; i < SERVICE_MAX_REQUESTS; i++) {
        free(service.requests[i]);
        service.requests[i] = NULL;
    }
    atomic_store(&service.n_requests, 0);
}

/* Not while a request is being served. */
static inline void service_set(const struct service_answer *answers, size_t n)
{
    service_forget();
    service.answers = answers;
    service.n_answers = n;
}
#define SERVICE_SET(list) service_set((list), sizeof(list) / sizeof *(list))

static inline void service_open(void)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof in;
    memset(&service, 0, sizeof service);
    service.listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(service.listener, (struct sockaddr *)&in, size), 0);
    assert_int_equal(listen(service.listener, 64), 0);
    assert_int_equal(getsockname(service.listener, (struct sockaddr *)&in, &size), 0);
    service.port = ntohs(in.sin_port);
    snprintf(service.url, sizeof service.url, "http://127.0.0.1:%d/run", service.port);
    assert_int_equal(pthread_create(&service.thread, NULL, service_serve, NULL), 0);
}

static inline void service_close(void)
{
    atomic_store(&service.stop, true);
    pthread_join(service.thread, NULL);
    close(service.listener);
    service_forget();
}

/* The body of a request; "": it was not received. */
static inline const char *service_body(size_t i)
{
    const char *end = service.requests[i] ? strstr(service.requests[i], "\r\n\r\n") : NULL;
    return end ? end + 4 : "";
}

/* A sentence in which HOST is the address of the service. Valid until the next call. */
static inline const char *service_placed(const char *sentence)
{
    static char text[400];
    const char *host = strstr(sentence, "HOST");
    if (!host)
        return sentence;
    snprintf(text, sizeof text, "%.*s127.0.0.1:%d%s", (int)(host - sentence), sentence,
             service.port, host + 4);
    return text;
}
