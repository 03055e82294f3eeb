/*
 * app/client/client_http.c - one request at a time over libcurl; streams are passed on as they arrive.
 *
 * The multi interface is used for its poll: it also wakes for Ctrl-C, which a signal handler reports through a
 * pipe, and for the spinner.
 */
#include "app/client/client_int.h"
#include "base/limits.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#define TICK_MS 100
#define CONNECT_S 15L

/* ---- libcurl ------------------------------------------------------------------------------------------ */

/* libcurl loads about thirty other libraries. The server and the converter do not need them, and would
 * start three times slower with them, so only the commands that call other servers open it. */

#define CURL_FUNCTIONS(X)                                                                          \
    X(global_init)                                                                                 \
    X(global_cleanup)                                                                              \
    X(easy_init)                                                                                   \
    X(easy_cleanup)                                                                                \
    X(easy_reset)                                                                                  \
    X(easy_setopt)                                                                                 \
    X(easy_getinfo)                                                                                \
    X(easy_strerror)                                                                               \
    X(slist_append)                                                                                \
    X(slist_free_all)                                                                              \
    X(multi_init)                                                                                  \
    X(multi_cleanup)                                                                               \
    X(multi_add_handle)                                                                            \
    X(multi_remove_handle)                                                                         \
    X(multi_perform)                                                                               \
    X(multi_poll)                                                                                  \
    X(multi_info_read)

struct curl_library {
#define X(name) __typeof__(&curl_##name) name;
    CURL_FUNCTIONS(X)
#undef X
};

static const struct {
    const char *symbol;
    size_t at;
} functions[] = {
#define X(name) {"curl_" #name, offsetof(struct curl_library, name)},
    CURL_FUNCTIONS(X)
#undef X
};

/* NULL: err has the reason. Once open it stays open. */
static const struct curl_library *client_curl_open(dgm_err *err)
{
    static struct curl_library library;
    static void *handle;
    if (handle)
        return &library;
    if (!(handle = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL))) {
        dgm_fail(err, DGM_UNAVAILABLE, NULL, "%s: install it (Debian: libcurl4)", dlerror());
        return NULL;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(handle, functions[i].symbol);
        if (!found) {
            dgm_fail(err, DGM_UNAVAILABLE, NULL, "libcurl.so.4 is too old: it has no %s",
                     functions[i].symbol);
            return NULL;
        }
        memcpy((char *)&library + functions[i].at, &found, sizeof found);
    }
    return &library;
}

static const struct curl_library *curl; /* set by dgm_client_http_new() */

struct http {
    CURLM *multi;
    CURL *easy;
    long timeout_s;
    const char *ca_file;
    char why[CURL_ERROR_SIZE];
};

/* ---- Ctrl-C --------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;
static int wake[2] = {-1, -1};

static void on_interrupt(int sig)
{
    ssize_t unheard;
    (void)sig;
    interrupted = 1;
    unheard = write(wake[1], "", 1);
    (void)unheard; /* a full pipe wakes as well */
}

void dgm_client_http_catch_interrupt(void)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    if (wake[0] < 0 && pipe(wake) == 0) {
        fcntl(wake[0], F_SETFD, FD_CLOEXEC);
        fcntl(wake[1], F_SETFD, FD_CLOEXEC);
        fcntl(wake[1], F_SETFL, O_NONBLOCK);
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
    }
}

bool dgm_client_http_was_interrupted(void)
{
    return interrupted;
}

void dgm_client_http_release_interrupt(void)
{
    char byte;
    interrupted = 0;
    while (fcntl(wake[0], F_SETFL, O_NONBLOCK) == 0 && read(wake[0], &byte, 1) > 0)
        ;
}

/* ---- handles --------------------------------------------------------------------------------------------- */

struct http *dgm_client_http_new(long timeout_s, const char *ca_file, dgm_err *err)
{
    struct http *h;
    if (!(curl = client_curl_open(err)))
        return NULL;
    h = dgm_xcalloc(1, sizeof *h);
    signal(SIGPIPE, SIG_IGN); /* standard output is written by functions that look themselves */
    curl->global_init(CURL_GLOBAL_DEFAULT);
    h->multi = curl->multi_init();
    h->easy = curl->easy_init();
    h->timeout_s = timeout_s;
    h->ca_file = ca_file;
    return h;
}

void dgm_client_http_free(struct http *h)
{
    if (!h)
        return;
    curl->easy_cleanup(h->easy);
    curl->multi_cleanup(h->multi);
    curl->global_cleanup();
    free(h);
}

void dgm_client_http_response_done(struct http_answer *a)
{
    dgm_buf_done(&a->body);
}

/* ---- a call ------------------------------------------------------------------------------------------------ */

struct call {
    struct http *h;
    const struct http_request *q;
    struct http_answer *a;
    bool looked; /* at the head */
    bool enough; /* the reader wants no more */
};

static void read_response_head(struct call *c)
{
    char *type = NULL;
    curl->easy_getinfo(c->h->easy, CURLINFO_RESPONSE_CODE, &c->a->status);
    curl->easy_getinfo(c->h->easy, CURLINFO_CONTENT_TYPE, &type);
    c->a->is_stream = type && strncasecmp(type, "text/event-stream", 17) == 0;
    c->looked = true;
}

static size_t on_bytes(char *p, size_t size, size_t n, void *arg)
{
    struct call *c = arg;
    n *= size;
    if (!c->looked)
        read_response_head(c);
    if (c->a->is_stream && c->q->on_stream) {
        c->enough = !c->q->on_stream(p, n, c->q->arg);
        return c->enough ? CURL_WRITEFUNC_ERROR : n;
    }
    dgm_buf_add(&c->a->body, p, n);
    return c->a->body.over ? CURL_WRITEFUNC_ERROR : n;
}

static bool is_loopback(const char *url)
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    return strncmp(host, "127.", 4) == 0 || strncmp(host, "localhost", 9) == 0 ||
           strncmp(host, "[::1]", 5) == 0;
}

static void prepare(struct call *c, struct curl_slist *headers)
{
    CURL *e = c->h->easy;
    const struct http_request *q = c->q;
    curl->easy_reset(e);
    curl->easy_setopt(e, CURLOPT_URL, q->url);
    curl->easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl->easy_setopt(e, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl->easy_setopt(e, CURLOPT_FOLLOWLOCATION, q->follows ? 1L : 0L);
    curl->easy_setopt(e, CURLOPT_MAXREDIRS, 5L);
    curl->easy_setopt(e, CURLOPT_HTTPHEADER, headers);
    curl->easy_setopt(e, CURLOPT_USERAGENT, "dragoman/" DGM_VERSION);
    curl->easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(e, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
    curl->easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl->easy_setopt(e, CURLOPT_LOW_SPEED_TIME, c->h->timeout_s);
    curl->easy_setopt(e, CURLOPT_TCP_NODELAY, 1L);
    curl->easy_setopt(e, CURLOPT_ERRORBUFFER, c->h->why);
    curl->easy_setopt(e, CURLOPT_WRITEFUNCTION, on_bytes);
    curl->easy_setopt(e, CURLOPT_WRITEDATA, c);
    if (c->h->ca_file)
        curl->easy_setopt(e, CURLOPT_CAINFO, c->h->ca_file);
    if (is_loopback(q->url))
        curl->easy_setopt(e, CURLOPT_PROXY, ""); /* no proxy can reach this machine's own servers */
    if (q->body.p) {
        curl->easy_setopt(e, CURLOPT_POSTFIELDS, q->body.p);
        curl->easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body.n);
    }
    curl->easy_setopt(e, CURLOPT_CUSTOMREQUEST, q->follows ? NULL : q->method);
}

static CURLcode perform(struct call *c)
{
    CURLM *m = c->h->multi;
    CURLcode result = CURLE_OK;
    int running = 1, left;
    curl->multi_add_handle(m, c->h->easy);
    while (!interrupted) {
        struct curl_waitfd wakes = {.fd = wake[0], .events = CURL_WAIT_POLLIN};
        int ready = 0;
        if (curl->multi_perform(m, &running) || !running)
            break;
        curl->multi_poll(m, &wakes, wake[0] >= 0, TICK_MS, &ready);
        if (c->q->on_tick && !ready)
            c->q->on_tick(c->q->arg);
    }
    for (CURLMsg *msg; (msg = curl->multi_info_read(m, &left));) {
        if (msg->msg == CURLMSG_DONE)
            result = msg->data.result;
    }
    if (running)
        result = CURLE_ABORTED_BY_CALLBACK;
    if (!c->looked)
        read_response_head(c);
    curl->multi_remove_handle(m, c->h->easy);
    return result;
}

dgm_code dgm_client_http_call(struct http *h, const struct http_request *q,
                              struct http_answer *ret_answer, dgm_err *err)
{
    struct call c = {.h = h, .q = q, .a = ret_answer};
    struct curl_slist *headers = NULL;
    CURLcode rc;
    *ret_answer = (struct http_answer){0};
    dgm_buf_init(&ret_answer->body, DGM_MAX_OBJECT_BYTES);
    for (const char *const *line = q->headers; *line; line++)
        headers = curl->slist_append(headers, *line);
    h->why[0] = '\0';
    prepare(&c, headers);
    rc = perform(&c);
    curl->slist_free_all(headers);
    if (interrupted)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL, "interrupted");
    if (rc == CURLE_OK || c.enough)
        return DGM_OK;
    if (ret_answer->body.over)
        return dgm_fail(err, DGM_TOO_LARGE, NULL, "the response from %s is larger than %zu bytes",
                        q->url, DGM_MAX_OBJECT_BYTES);
    if (rc == CURLE_OPERATION_TIMEDOUT && ret_answer->status)
        return dgm_fail(err, DGM_UPSTREAM_TIMEOUT, NULL, "timeout: no data from %s for %ld s",
                        q->url, h->timeout_s);
    if (rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_SSL_CACERT_BADFILE)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL, "cannot trust %s: %s", q->url,
                        h->why[0] ? h->why : curl->easy_strerror(rc));
    if (rc == CURLE_SSL_CONNECT_ERROR && strstr(h->why, "wrong version number"))
        return dgm_fail(err, DGM_UNAVAILABLE, NULL, "the server at %s does not use TLS", q->url);
    return dgm_fail(err, DGM_UNAVAILABLE, NULL, "cannot reach %s: %s", q->url,
                    h->why[0] ? h->why : curl->easy_strerror(rc));
}
