/*
 * net/client.c - see client.h. libcurl's multi interface, driven by libuv.
 *
 * libcurl says which sockets to watch (on_socket) and when to call it again (on_curl_timer); its callbacks for a request are
 * on_header_line, on_bytes and on_read. From inside them libcurl allows nothing that concerns requests. So what a handler
 * asks for is written down in its fetch and done by run_todo, on the next iteration of the loop.
 *
 * Requests to guarded addresses have a connection pool of their own: one that was opened for the operator's URL could lead
 * to an address that a guarded request must not reach.
 */
#include "net/client.h"

#include "base/arena.h"
#include "base/limits.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

/* A kept connection may be closed by its server at any time, and a POST is not repeated if that happens while it is sent: a
 * connection that was idle for longer than this is not used again. Servers keep theirs for 5 s and more. */
#define MAX_IDLE_S 4L
/* libcurl closes such a connection only when it opens another one: see pool_sweep. At most once per second. */
#define SWEEP_MS 1500
#define MAX_REDIRECTS 3
/* What may follow of an answer that was released: more than this costs more than a new connection. */
#define RELEASED_MS 250
#define RELEASED_BYTES ((size_t)16 << 10)
/* Connections that wait for the next request, per pool. */
#define MAX_KEPT 64L
/* Handles of libcurl likewise: making one takes as long as reading a hundred events. */
#define MAX_SPARE 16

/* CURLE_TOO_LARGE, which older headers do not have: a header line over libcurl's own limit, 100 kB. */
#define TOO_LARGE_SINCE_8_6 100

struct pool {
    dgm_client *client;
    CURLM *multi;
    uv_timer_t timer;
    uv_timer_t sweep_timer;
    CURL *sweep; /* NULL: no sweep is under way */
    size_t n_fetches, n_sockets;
    CURL *spare[MAX_SPARE]; /* of requests that have ended, for the next ones */
    size_t n_spare;
    char *last_url, *last_target; /* of the last request: the next one often has the same */
};

struct dgm_client {
    uv_loop_t *loop;
    struct pool open, guarded;
    uv_timer_t todo_timer;
    dgm_fetch *first, *todo;
    size_t n_fetches;
    size_t n_handles; /* of libuv, not closed yet */
    bool closing;
    dgm_loop_stop on_stop; /* of the loop that it is the client of */
    void (*on_closed)(void *arg);
    void *arg;
};

enum todo { TODO_START = 1, TODO_RESUME = 2, TODO_CANCEL = 4, TODO_FAIL = 8 };

struct dgm_fetch {
    dgm_client *client;
    struct pool *pool;
    dgm_fetch *next, **here; /* all of the client's */
    dgm_fetch *todo_next;
    unsigned todo; /* of enum todo; 0: it is not in the list */
    CURL *easy;
    dgm_arena *arena;
    dgm_fetch_handler handler;
    dgm_fetch_options o;
    struct curl_slist *lines;
    uv_timer_t timer;
    uint64_t started, active; /* by uv_now */
    size_t body_read, body_n, head_n;
    const char *target; /* "host:port", for sentences */
    dgm_fetch_header *headers;
    size_t n_headers, headers_room;
    int status;
    unsigned redirects;
    bool has_head, is_redirect;
    bool is_untrusted; /* there is no secure connection because of the server's certificate */
    bool paused;
    bool canceled;
    dgm_fetch_end failed; /* found by us, not by libcurl; DGM_FETCH_OK: nothing was */
    const char *failed_what;
    char why[CURL_ERROR_SIZE];
};

struct watch {
    uv_poll_t poll;
    struct pool *pool;
    curl_socket_t fd;
    int events; /* that libcurl waits for */
};

/* ---- handles of libuv ------------------------------------------------------------------------------------------ */

static void client_handle_closed(dgm_client *c)
{
    if (--c->n_handles)
        return;
    void (*on_closed)(void *) = c->on_closed;
    void *arg = c->arg;
    free(c);
    if (on_closed)
        on_closed(arg);
}

static void client_on_timer_closed(uv_handle_t *h)
{
    client_handle_closed(h->data);
}

static void on_watch_closed(uv_handle_t *h)
{
    struct watch *w = h->data;
    dgm_client *c = w->pool->client;
    free(w);
    client_handle_closed(c);
}

static void on_fetch_closed(uv_handle_t *h)
{
    dgm_fetch *f = h->data;
    dgm_client *c = f->client;
    dgm_arena_free(f->arena); /* the fetch lives in it */
    client_handle_closed(c);
}

/* ---- URLs ---------------------------------------------------------------------------------------------------------- */

struct url {
    char *scheme, *host, *port;
};

static bool url_parse(const char *text, struct url *ret_url)
{
    CURLU *u = curl_url();
    bool ok = !curl_url_set(u, CURLUPART_URL, text, 0) &&
              !curl_url_get(u, CURLUPART_SCHEME, &ret_url->scheme, 0) &&
              !curl_url_get(u, CURLUPART_HOST, &ret_url->host, 0) &&
              !curl_url_get(u, CURLUPART_PORT, &ret_url->port, CURLU_DEFAULT_PORT) &&
              (strcmp(ret_url->scheme, "http") == 0 || strcmp(ret_url->scheme, "https") == 0);
    curl_url_cleanup(u);
    return ok;
}

static void url_done(struct url *u)
{
    curl_free(u->scheme);
    curl_free(u->host);
    curl_free(u->port);
}

/* ---- the end of a fetch ------------------------------------------------------------------------------------------ */

static void pool_watch_idle(struct pool *pool);

/* As new: options, and what libcurl knows of the request. Connections are those of the pool. */
static void easy_release(struct pool *pool, CURL *easy)
{
    curl_multi_remove_handle(pool->multi, easy);
    if (pool->n_spare == MAX_SPARE) {
        curl_easy_cleanup(easy);
        return;
    }
    curl_easy_reset(easy);
    pool->spare[pool->n_spare++] = easy;
}

static void fetch_free(dgm_fetch *f)
{
    dgm_client *c = f->client;
    if (f->easy)
        easy_release(f->pool, f->easy);
    curl_slist_free_all(f->lines);
    *f->here = f->next;
    if (f->next)
        f->next->here = f->here;
    for (dgm_fetch **at = &c->todo; f->todo && *at; at = &(*at)->todo_next) {
        if (*at == f) {
            *at = f->todo_next;
            break;
        }
    }
    c->n_fetches--;
    f->pool->n_fetches--;
    pool_watch_idle(f->pool);
    uv_close((uv_handle_t *)&f->timer, on_fetch_closed);
}

static void fetch_end(dgm_fetch *f, dgm_fetch_end end, dgm_str what)
{
    long sent = 0;
    if (f->easy)
        curl_easy_getinfo(f->easy, CURLINFO_REQUEST_SIZE, &sent);
    dgm_fetch_result result = {
        .end = end, .what = what, .may_be_received = sent > 0 && f->body_read == f->o.body.n};
    /* The handler may close the client; the fetch must not be ended twice. */
    f->canceled = true;
    f->handler.on_end(f->handler.user, &result);
    fetch_free(f);
}

static dgm_fetch_end fetch_end_of(CURLcode code)
{
    if ((int)code == TOO_LARGE_SINCE_8_6)
        return DGM_FETCH_TOO_LARGE;
    switch (code) {
    case CURLE_OK: return DGM_FETCH_OK;
    case CURLE_URL_MALFORMAT: return DGM_FETCH_BAD_URL;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY: return DGM_FETCH_NO_ADDRESS;
    case CURLE_COULDNT_CONNECT: return DGM_FETCH_UNREACHABLE;
    case CURLE_OUT_OF_MEMORY:
        return DGM_FETCH_TOO_LARGE; /* a header line over libcurl's own limit */
    case CURLE_OPERATION_TIMEDOUT: return DGM_FETCH_TIMEOUT;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_ENGINE_INITFAILED: return DGM_FETCH_TLS;
    case CURLE_UNSUPPORTED_PROTOCOL: /* of the answer: HTTP/0.9 */
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING: return DGM_FETCH_INVALID;
    default: return DGM_FETCH_CUT;
    }
}

/* What happened, for people. libcurl's own text is used only where it cannot contain the URL. */
static dgm_str fetch_sentence(dgm_fetch *f, dgm_fetch_end end)
{
    long os_error = 0;
    curl_easy_getinfo(f->easy, CURLINFO_OS_ERRNO, &os_error);
    const char *reason = os_error ? strerror((int)os_error) : "the connection failed";
    const char *at = f->target;
    switch (end) {
    case DGM_FETCH_OK: return DGM_STR("");
    case DGM_FETCH_BAD_URL: return DGM_STR("the URL cannot be used");
    case DGM_FETCH_NO_ADDRESS:
        return dgm_arena_printf(f->arena, "no address is known for %s: the name cannot be resolved",
                                at);
    case DGM_FETCH_UNREACHABLE:
        return dgm_arena_printf(f->arena, "cannot connect to %s: %s", at, reason);
    case DGM_FETCH_TLS:
        if (strstr(f->why, "wrong version number"))
            return dgm_arena_printf(f->arena, "the server at %s does not use TLS", at);
        return dgm_arena_printf(f->arena,
                                f->is_untrusted ? "the certificate of %s is not trusted: %s"
                                                : "no secure connection to %s: %s",
                                at, f->why);
    case DGM_FETCH_TIMEOUT:
        return dgm_arena_printf(f->arena, "no connection to %s within %.3g s", at,
                                (double)f->o.limits.connect_ms / 1000);
    case DGM_FETCH_TOO_LARGE:
        return dgm_arena_printf(
            f->arena, "the headers of the answer of %s are larger than %zu bytes or more than %d",
            at, f->o.limits.head_bytes, DGM_MAX_HTTP_HEADERS);
    case DGM_FETCH_INVALID: return dgm_arena_printf(f->arena, "the answer of %s is not HTTP", at);
    default:
        return dgm_arena_printf(f->arena,
                                f->has_head ? "%s closed the connection in the middle of its answer"
                                            : "%s closed the connection without an answer",
                                at);
    }
}

static void fetch_prepare(dgm_fetch *f);

static const char *fetch_redirect_refusal(dgm_fetch *f, const char *to)
{
    struct url url = {0};
    const char *what = "redirects to another origin, which is not followed";
    if (to && url_parse(to, &url))
        what = dgm_arena_printf(f->arena,
                                "redirects to another origin, which is not followed: %s://%s:%s",
                                url.scheme, url.host, url.port)
                   .p;
    url_done(&url);
    return what;
}

/* A redirect is followed within its origin; NULL: it is. Otherwise why not. */
static const char *fetch_redirect(dgm_fetch *f)
{
    const char *to = NULL;
    curl_easy_getinfo(f->easy, CURLINFO_REDIRECT_URL, &to);
    if (!to || !dgm_url_is_same_origin(f->o.url, to))
        return fetch_redirect_refusal(f, to);
    if (++f->redirects > MAX_REDIRECTS)
        return "redirects too often";
    f->o.url = dgm_arena_dup(f->arena, dgm_str_from(to)).p;
    f->head_n = f->body_n = 0;
    f->is_redirect = false;
    fetch_prepare(f);
    curl_multi_add_handle(f->pool->multi, f->easy);
    return NULL;
}

static void fetch_done(dgm_fetch *f, CURLcode code)
{
    dgm_fetch_end end = f->failed ? f->failed : fetch_end_of(code);
    curl_multi_remove_handle(f->pool->multi, f->easy);
    f->is_untrusted = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
    if (f->canceled)
        return; /* it is in the list of what is to do */
    if (end == DGM_FETCH_OK && !f->has_head && !f->is_redirect)
        end = DGM_FETCH_CUT; /* libcurl is content with half a head */
    dgm_str what = f->failed ? dgm_str_from(f->failed_what) : fetch_sentence(f, end);
    if (end == DGM_FETCH_OK && f->is_redirect) {
        const char *why = fetch_redirect(f);
        if (!why)
            return;
        end = DGM_FETCH_REDIRECT;
        what = dgm_arena_printf(f->arena, "%s %s", f->target, why);
    }
    fetch_end(f, end, what);
}

/* A limit or a rule of ours: libcurl stops, for this reason. */
static void fetch_fail(dgm_fetch *f, dgm_fetch_end end, dgm_str what)
{
    if (f->failed)
        return;
    f->failed = end;
    f->failed_what = what.p;
}

static void on_deadline(uv_timer_t *t);

/* ---- what libcurl calls for a request ---------------------------------------------------------------------------- */

static size_t on_read(char *to, size_t size, size_t n, void *arg)
{
    dgm_fetch *f = arg;
    size_t left = f->o.body.n - f->body_read;
    n = size * n < left ? size * n : left;
    memcpy(to, f->o.body.p + f->body_read, n);
    f->body_read += n;
    return n;
}

/* libcurl wants to send the body again, on a new connection. */
static int on_seek(void *arg, curl_off_t offset, int origin)
{
    dgm_fetch *f = arg;
    (void)offset, (void)origin;
    return f->body_read ? CURL_SEEKFUNC_FAIL : CURL_SEEKFUNC_OK;
}

static void add_header(dgm_fetch *f, dgm_str line)
{
    const char *colon = memchr(line.p, ':', line.n);
    if (!colon)
        return;
    dgm_fetch_header h = {.name = {line.p, (size_t)(colon - line.p)}};
    const char *p = colon + 1, *end = line.p + line.n;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    while (end > p && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r' || end[-1] == '\n'))
        end--;
    h.value = (dgm_str){p, (size_t)(end - p)};
    if (f->n_headers == f->headers_room) {
        size_t room = f->headers_room ? f->headers_room * 2 : 16;
        f->headers =
            dgm_arena_realloc(f->arena, f->headers, f->headers_room * sizeof h, room * sizeof h);
        f->headers_room = room;
    }
    h.name = dgm_arena_dup(f->arena, h.name);
    h.value = dgm_arena_dup(f->arena, h.value);
    f->headers[f->n_headers++] = h;
}

static void head_complete(dgm_fetch *f)
{
    long status = 0;
    curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200)
        return; /* another one follows */
    dgm_fetch_head head = {.status = (int)status, .headers = f->headers, .n_headers = f->n_headers};
    dgm_str type = dgm_fetch_header_of(&head, "content-type");
    const char *semicolon = type.n ? memchr(type.p, ';', type.n) : NULL;
    if (semicolon)
        type.n = (size_t)(semicolon - type.p);
    while (type.n && type.p[type.n - 1] == ' ')
        type.n--;
    head.content_type = type;
    f->status = (int)status;
    if (status >= 300 && status < 400 && f->o.follows && dgm_fetch_header_of(&head, "location").n) {
        f->is_redirect = true;
        return;
    }
    f->has_head = true;
    f->active = uv_now(f->client->loop);
    if (!uv_is_active((uv_handle_t *)&f->timer) ||
        uv_timer_get_due_in(&f->timer) > f->o.limits.silence_ms)
        uv_timer_start(&f->timer, on_deadline, f->o.limits.silence_ms,
                       0); /* no limit: looks once, for nothing */
    if (f->handler.on_head)
        f->handler.on_head(f->handler.user, &head);
}

static size_t on_header_line(char *p, size_t size, size_t n, void *arg)
{
    dgm_fetch *f = arg;
    n *= size;
    f->head_n += n;
    if (f->head_n > f->o.limits.head_bytes || f->n_headers > DGM_MAX_HTTP_HEADERS) {
        fetch_fail(f, DGM_FETCH_TOO_LARGE, fetch_sentence(f, DGM_FETCH_TOO_LARGE));
        return 0;
    }
    if (f->has_head)
        return n; /* a trailer */
    if (n > 5 && memcmp(p, "HTTP/", 5) == 0) {
        f->n_headers = 0;
        return n;
    }
    if (n && *p != '\r' && *p != '\n')
        add_header(f, (dgm_str){p, n});
    else
        head_complete(f);
    return f->canceled ? 0 : n;
}

static size_t on_bytes(char *p, size_t size, size_t n, void *arg)
{
    dgm_fetch *f = arg;
    n *= size;
    if (f->paused)
        return CURL_WRITEFUNC_PAUSE;
    f->body_n += n;
    if (f->o.limits.body_bytes && f->body_n > f->o.limits.body_bytes) {
        fetch_fail(f, DGM_FETCH_TOO_LARGE,
                   dgm_arena_printf(f->arena, "the answer of %s is larger than %zu bytes",
                                    f->target, f->o.limits.body_bytes));
        return CURL_WRITEFUNC_ERROR;
    }
    f->active = uv_now(f->client->loop);
    if (!f->is_redirect && f->handler.on_body)
        f->handler.on_body(f->handler.user, (dgm_str){p, n});
    return f->canceled ? CURL_WRITEFUNC_ERROR : n;
}

static curl_socket_t on_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
    dgm_fetch *f = arg;
    (void)purpose;
    bool is_checked = f->o.is_guarded && (!f->o.proxy || f->o.no_proxy);
    const char *refusal = is_checked ? dgm_address_refusal(&a->addr, f->o.allowed) : NULL;
    if (refusal) {
        char text[64];
        dgm_address_text(&a->addr, text, sizeof text);
        fetch_fail(f, DGM_FETCH_REFUSED,
                   dgm_arena_printf(f->arena, "%s is not connected to: %s is %s", f->target, text,
                                    refusal));
        return CURL_SOCKET_BAD;
    }
    int fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
    f->pool->n_sockets += fd >= 0;
    return fd;
}

/* Also of connections whose fetch has ended. */
static int on_close_socket(void *arg, curl_socket_t fd)
{
    struct pool *pool = arg;
    pool->n_sockets--;
    return close(fd);
}

/* A host with several addresses, some of them refused: the refusal counts only if none could be connected to. */
static int on_connected(void *arg, curl_socket_t fd, curlsocktype purpose)
{
    dgm_fetch *f = arg;
    (void)fd, (void)purpose;
    if (f->failed == DGM_FETCH_REFUSED)
        f->failed = DGM_FETCH_OK;
    return CURL_SOCKOPT_OK;
}

/* ---- libcurl on libuv ---------------------------------------------------------------------------------------------- */

static void pool_end_sweep(struct pool *pool)
{
    if (!pool->sweep)
        return;
    curl_multi_remove_handle(pool->multi, pool->sweep);
    curl_easy_cleanup(pool->sweep);
    pool->sweep = NULL;
}

static void read_messages(struct pool *pool)
{
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(pool->multi, &left));) {
        dgm_fetch *f = NULL;
        if (m->msg != CURLMSG_DONE)
            continue;
        CURLcode code = m->data.result;
        if (m->easy_handle == pool->sweep) {
            pool_end_sweep(pool);
            pool_watch_idle(pool);
            continue;
        }
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&f);
        fetch_done(f, code);
    }
}

/* A socket with an error (the other side has reset the connection) may still have bytes to read, and only reading or writing
 * shows libcurl which error it is: a kept connection that ended meanwhile is replaced. libuv has stopped watching it then. */
static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct watch *w = poll->data;
    struct pool *pool = w->pool;
    int running, what = 0;
    if (status < 0)
        events = w->events;
    what |= events & UV_READABLE ? CURL_CSELECT_IN : 0;
    what |= events & UV_WRITABLE ? CURL_CSELECT_OUT : 0;
    curl_multi_socket_action(pool->multi, w->fd, what, &running);
    if (status < 0 && !uv_is_closing((uv_handle_t *)poll) && w->events)
        uv_poll_start(poll, w->events, on_ready);
    read_messages(pool);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
    struct pool *pool = arg;
    struct watch *w = known;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (w) {
            curl_multi_assign(pool->multi, fd, NULL);
            uv_poll_stop(&w->poll);
            uv_close((uv_handle_t *)&w->poll, on_watch_closed);
        }
        return 0;
    }
    if (!w) {
        w = dgm_xcalloc(1, sizeof *w);
        w->pool = pool;
        w->fd = fd;
        w->poll.data = w;
        if (uv_poll_init_socket(pool->client->loop, &w->poll, fd) != 0) {
            free(w);
            return -1;
        }
        pool->client->n_handles++;
        curl_multi_assign(pool->multi, fd, w);
    }
    w->events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
    uv_poll_start(&w->poll, w->events, on_ready);
    return 0;
}

static void on_curl_timeout(uv_timer_t *t)
{
    dgm_client *c = t->data;
    struct pool *pool = t == &c->open.timer ? &c->open : &c->guarded;
    int running;
    curl_multi_socket_action(pool->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    read_messages(pool);
}

static int on_curl_timer(CURLM *multi, long ms, void *arg)
{
    struct pool *pool = arg;
    (void)multi;
    if (pool->client->closing)
        return 0;
    if (ms < 0)
        uv_timer_stop(&pool->timer);
    else
        uv_timer_start(&pool->timer, on_curl_timeout, (uint64_t)ms, 0);
    return 0;
}

/* ---- idle connections ------------------------------------------------------------------------------------------------ */

static curl_socket_t on_sweep_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
    (void)arg, (void)purpose, (void)a;
    return CURL_SOCKET_BAD;
}

/* libcurl looks for connections that are too old or were closed by their server when it is about to open one. So it gets a
 * request whose connection is refused at that point, by us. */
static void pool_sweep(uv_timer_t *t)
{
    dgm_client *c = t->data;
    struct pool *pool = t == &c->open.sweep_timer ? &c->open : &c->guarded;
    if (c->closing || pool->sweep)
        return;
    CURL *e = pool->sweep = curl_easy_init();
    curl_easy_setopt(e, CURLOPT_URL, "http://127.0.0.1:1/");
    curl_easy_setopt(e, CURLOPT_PROXY, "");
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(e, CURLOPT_MAXAGE_CONN, MAX_IDLE_S);
    curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, on_sweep_socket);
    curl_multi_add_handle(pool->multi, e);
}

/* As long as there may be idle connections. */
static void pool_watch_idle(struct pool *pool)
{
    if (!pool->client->closing && pool->n_sockets > pool->n_fetches && !pool->sweep &&
        !uv_is_active((uv_handle_t *)&pool->sweep_timer))
        uv_timer_start(&pool->sweep_timer, pool_sweep, SWEEP_MS, 0);
}

/* ---- limits in time ------------------------------------------------------------------------------------------------ */

static void fetch_watch_time(dgm_fetch *f);

static void on_deadline(uv_timer_t *t)
{
    fetch_watch_time(t->data);
}

/* Ends the fetch if one of its limits has passed, else looks again when the next one would. */
static void fetch_watch_time(dgm_fetch *f)
{
    const dgm_fetch_limits *limits = &f->o.limits;
    uint64_t now = uv_now(f->client->loop), next = UINT64_MAX;
    struct {
        uint64_t since, ms;
        const char *what;
    } rows[] = {
        {f->started, limits->total_ms, "%s did not finish its answer within %.3g s"},
        {f->started, f->has_head ? 0 : limits->first_byte_ms, "no answer from %s within %.3g s"},
        {f->active, f->has_head && !f->paused ? limits->silence_ms : 0,
         "%s sent nothing for %.3g s"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t at = rows[i].since + rows[i].ms;
        if (!rows[i].ms)
            continue;
        if (at <= now) {
            char what[200];
            snprintf(what, sizeof what, rows[i].what, f->target, (double)rows[i].ms / 1000);
            fetch_fail(f, DGM_FETCH_TIMEOUT, dgm_arena_dup(f->arena, dgm_str_from(what)));
            fetch_done(f, CURLE_OPERATION_TIMEDOUT);
            return;
        }
        next = at < next ? at : next;
    }
    if (next != UINT64_MAX)
        uv_timer_start(&f->timer, on_deadline, next - now, 0);
}

/* ---- what is to do --------------------------------------------------------------------------------------------------- */

static void run_todo(uv_timer_t *t);

static void fetch_todo(dgm_fetch *f, unsigned what)
{
    dgm_client *c = f->client;
    if (!f->todo) {
        f->todo_next = c->todo;
        c->todo = f;
    }
    f->todo |= what;
    if (!c->closing)
        uv_timer_start(&c->todo_timer, run_todo, 0, 0);
}

static void client_free_pools(dgm_client *c)
{
    struct pool *pools[] = {&c->open, &c->guarded};
    while (c->first) {
        if (c->first->canceled)
            fetch_free(c->first);
        else
            fetch_end(c->first, DGM_FETCH_STOPPED, DGM_STR("the program is shutting down"));
    }
    for (size_t i = 0; i < 2; i++) {
        pool_end_sweep(pools[i]);
        while (pools[i]->n_spare)
            curl_easy_cleanup(pools[i]->spare[--pools[i]->n_spare]);
        free(pools[i]->last_url);
        free(pools[i]->last_target);
        curl_multi_cleanup(pools[i]->multi);
        uv_close((uv_handle_t *)&pools[i]->timer, client_on_timer_closed);
        uv_close((uv_handle_t *)&pools[i]->sweep_timer, client_on_timer_closed);
    }
    uv_close((uv_handle_t *)&c->todo_timer, client_on_timer_closed);
}

static void run_todo(uv_timer_t *t)
{
    dgm_client *c = t->data;
    if (c->closing) {
        client_free_pools(c);
        return;
    }
    while (c->todo) {
        dgm_fetch *f = c->todo;
        unsigned what = f->todo;
        c->todo = f->todo_next;
        f->todo = 0;
        if (what & TODO_CANCEL) {
            fetch_free(f);
        } else if (what & TODO_FAIL) {
            fetch_end(f, f->failed, dgm_str_from(f->failed_what));
        } else if (what & TODO_START) {
            fetch_watch_time(f);
            curl_multi_add_handle(f->pool->multi, f->easy);
        } else {
            f->active = uv_now(c->loop);
            fetch_watch_time(f);
            if (!f->paused && !f->canceled)
                curl_easy_pause(f->easy, CURLPAUSE_CONT);
            read_messages(f->pool);
        }
        if (c->closing)
            return; /* a handler closed it: the timer is started again */
    }
}

/* ---- clients ---------------------------------------------------------------------------------------------------------- */

static void pool_init(dgm_client *c, struct pool *pool, size_t max_connections)
{
    pool->client = c;
    pool->multi = curl_multi_init();
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_MAXCONNECTS, MAX_KEPT);
    curl_multi_setopt(pool->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)max_connections);
    uv_timer_init(c->loop, &pool->timer);
    uv_timer_init(c->loop, &pool->sweep_timer);
    uv_unref((uv_handle_t *)&pool->sweep_timer); /* a loop with nothing else to do may end */
    pool->timer.data = pool->sweep_timer.data = c;
    c->n_handles += 2;
}

static void init_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

dgm_client *dgm_client_new(uv_loop_t *loop, size_t max_connections)
{
    static uv_once_t once = UV_ONCE_INIT;
    uv_once(&once, init_curl);
    dgm_client *c = dgm_xcalloc(1, sizeof *c);
    c->loop = loop;
    pool_init(c, &c->open, max_connections);
    pool_init(c, &c->guarded, max_connections);
    uv_timer_init(loop, &c->todo_timer);
    c->todo_timer.data = c;
    c->n_handles++;
    return c;
}

void dgm_client_close(dgm_client *c, void (*on_closed)(void *arg), void *arg)
{
    if (c->closing)
        return;
    c->on_closed = on_closed;
    c->arg = arg;
    uv_timer_start(&c->todo_timer, run_todo, 0, 0);
    c->closing = true;
}

static void on_loop_stop(void *arg)
{
    dgm_client_close(arg, NULL, NULL);
}

dgm_client *dgm_client_of_loop(dgm_loop *l)
{
    if (l->stopping)
        return NULL;
    if (!l->client) {
        l->client = dgm_client_new(&l->uv, 0);
        l->client->on_stop = (dgm_loop_stop){.fn = on_loop_stop, .arg = l->client};
        dgm_loop_on_stop(l, &l->client->on_stop);
    }
    return l->client;
}

size_t dgm_client_in_flight(const dgm_client *c)
{
    return c->n_fetches;
}

size_t dgm_client_connections(const dgm_client *c)
{
    return c->open.n_sockets + c->guarded.n_sockets;
}

/* ---- fetches ------------------------------------------------------------------------------------------------------------ */

dgm_str dgm_fetch_header_of(const dgm_fetch_head *head, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < head->n_headers; i++) {
        if (head->headers[i].name.n == n && strncasecmp(head->headers[i].name.p, name, n) == 0)
            return head->headers[i].value;
    }
    return (dgm_str){0};
}

bool dgm_url_is_same_origin(const char *a, const char *b)
{
    struct url x = {0}, y = {0};
    bool same = url_parse(a, &x) && url_parse(b, &y) && strcmp(x.scheme, y.scheme) == 0 &&
                strcasecmp(x.host, y.host) == 0 && strcmp(x.port, y.port) == 0;
    url_done(&x);
    url_done(&y);
    return same;
}

static bool has_line_end(dgm_str s)
{
    return s.n && (memchr(s.p, '\r', s.n) || memchr(s.p, '\n', s.n) || memchr(s.p, '\0', s.n));
}

static void fetch_prepare(dgm_fetch *f)
{
    CURL *e = f->easy;
    const dgm_fetch_options *o = &f->o;
    curl_easy_setopt(e, CURLOPT_URL, o->url);
    curl_easy_setopt(e, CURLOPT_PRIVATE, f);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_PROXY, o->proxy ? o->proxy : "");
    curl_easy_setopt(e, CURLOPT_NOPROXY, o->no_proxy ? o->no_proxy : "");
    curl_easy_setopt(e, CURLOPT_HTTPHEADER, f->lines);
    curl_easy_setopt(e, CURLOPT_USERAGENT, "dragoman/" DGM_VERSION);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_QUICK_EXIT,
                     1L); /* a name server that hangs does not stop the loop */
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)o->limits.connect_ms);
    curl_easy_setopt(e, CURLOPT_MAXAGE_CONN, MAX_IDLE_S);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, f->why);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header_line);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, f);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, f);
    curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, f);
    curl_easy_setopt(e, CURLOPT_CLOSESOCKETFUNCTION, on_close_socket);
    curl_easy_setopt(e, CURLOPT_CLOSESOCKETDATA, f->pool);
    curl_easy_setopt(e, CURLOPT_SOCKOPTFUNCTION, on_connected);
    curl_easy_setopt(e, CURLOPT_SOCKOPTDATA, f);
    if (o->tls.ca_file)
        curl_easy_setopt(e, CURLOPT_CAINFO, o->tls.ca_file);
    if (o->tls.cert_file)
        curl_easy_setopt(e, CURLOPT_SSLCERT, o->tls.cert_file);
    if (o->tls.key_file)
        curl_easy_setopt(e, CURLOPT_SSLKEY, o->tls.key_file);
    if (o->body.p) {
        curl_easy_setopt(e, CURLOPT_POST, 1L);
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)o->body.n);
        curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read);
        curl_easy_setopt(e, CURLOPT_READDATA, f);
        curl_easy_setopt(e, CURLOPT_SEEKFUNCTION, on_seek);
        curl_easy_setopt(e, CURLOPT_SEEKDATA, f);
    }
    curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, o->method);
}

static void fetch_copy(dgm_fetch *f, const dgm_fetch_options *o)
{
    dgm_arena *a = f->arena;
    f->o = *o;
    f->o.headers = NULL;
    f->o.method = dgm_arena_dup(a, dgm_str_from(o->method)).p;
    f->o.url = dgm_arena_dup(a, dgm_str_from(o->url)).p;
    f->o.follows = o->follows && !o->body.p;
    if (o->body.p)
        f->o.body = dgm_arena_dup(a, o->body);
    const char **files[] = {&f->o.tls.ca_file, &f->o.tls.cert_file, &f->o.tls.key_file, &f->o.proxy,
                            &f->o.no_proxy};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (*files[i])
            *files[i] = dgm_arena_dup(a, dgm_str_from(*files[i])).p;
    }
    dgm_address_range *allowed = dgm_new_n(a, dgm_address_range, o->allowed.n + 1);
    if (o->allowed.n)
        memcpy(allowed, o->allowed.at, o->allowed.n * sizeof *allowed);
    f->o.allowed.at = allowed;
    if (!f->o.limits.head_bytes)
        f->o.limits.head_bytes = DGM_MAX_HTTP_HEADER_BYTES;
    f->lines = curl_slist_append(f->lines, "Expect:"); /* no waiting for 100 */
    for (size_t i = 0; i < o->n_headers; i++) {
        const dgm_fetch_header *h = &o->headers[i];
        dgm_str name = dgm_arena_join(a, h->name, h->value.n ? DGM_STR(": ") : DGM_STR(";"));
        if (!h->name.n || has_line_end(h->name) || has_line_end(h->value))
            fetch_fail(f, DGM_FETCH_BAD_URL,
                       DGM_STR("a header of the request has a line end or no name"));
        else
            f->lines = curl_slist_append(f->lines, dgm_arena_join(a, name, h->value).p);
    }
}

static char *client_copy(dgm_str text)
{
    return memcpy(dgm_xmalloc(text.n + 1), text.p, text.n + 1);
}

static void fetch_set_target(dgm_fetch *f)
{
    struct pool *pool = f->pool;
    struct url url = {0};
    if (pool->last_url && strcmp(pool->last_url, f->o.url) == 0) {
        f->target = dgm_arena_dup(f->arena, dgm_str_from(pool->last_target)).p;
        return;
    }
    if (url_parse(f->o.url, &url)) {
        dgm_str target = dgm_arena_printf(f->arena, "%s:%s", url.host, url.port);
        f->target = target.p;
        free(pool->last_url);
        free(pool->last_target);
        pool->last_url = client_copy(dgm_str_from(f->o.url));
        pool->last_target = client_copy(target);
    } else {
        fetch_fail(f, DGM_FETCH_BAD_URL, DGM_STR("it is not an http or https URL"));
    }
    url_done(&url);
}

dgm_fetch *dgm_fetch_start(dgm_client *c, const dgm_fetch_options *options,
                           dgm_fetch_handler handler)
{
    dgm_arena *a = dgm_arena_new_small(1024);
    dgm_fetch *f = dgm_new(a, dgm_fetch);
    f->arena = a;
    f->client = c;
    f->pool = options->is_guarded ? &c->guarded : &c->open;
    f->handler = handler;
    f->here = &c->first;
    f->next = c->first;
    if (c->first)
        c->first->here = &f->next;
    c->first = f;
    c->n_fetches++;
    f->pool->n_fetches++;
    c->n_handles++;
    uv_timer_init(c->loop, &f->timer);
    f->timer.data = f;
    f->started = f->active = uv_now(c->loop);
    fetch_copy(f, options);
    fetch_set_target(f);
    if (!f->failed) {
        f->easy = f->pool->n_spare ? f->pool->spare[--f->pool->n_spare] : curl_easy_init();
        fetch_prepare(f);
    }
    fetch_todo(f, f->failed ? TODO_FAIL : TODO_START);
    return f;
}

void dgm_fetch_cancel(dgm_fetch *f)
{
    f->canceled = true;
    fetch_todo(f, TODO_CANCEL);
}

static void release_on_end(void *user, const dgm_fetch_result *result)
{
    (void)user;
    (void)result;
}

void dgm_fetch_release(dgm_fetch *f)
{
    dgm_fetch_limits *limits = &f->o.limits;
    uint64_t total = uv_now(f->client->loop) - f->started + RELEASED_MS;
    size_t most = f->body_n + RELEASED_BYTES;
    if (!f->has_head || f->failed) {
        dgm_fetch_cancel(f);
        return;
    }
    f->handler = (dgm_fetch_handler){.on_end = release_on_end};
    if (!limits->total_ms || limits->total_ms > total)
        limits->total_ms = total;
    if (!limits->body_bytes || limits->body_bytes > most)
        limits->body_bytes = most;
    if (f->paused)
        dgm_fetch_resume(f); /* which looks at the limits, too */
    else if (!uv_is_active((uv_handle_t *)&f->timer) ||
             uv_timer_get_due_in(&f->timer) > RELEASED_MS)
        uv_timer_start(&f->timer, on_deadline, RELEASED_MS, 0);
}

void dgm_fetch_pause(dgm_fetch *f)
{
    f->paused = true;
}

void dgm_fetch_resume(dgm_fetch *f)
{
    if (!f->paused)
        return;
    f->paused = false;
    fetch_todo(f, TODO_RESUME);
}
