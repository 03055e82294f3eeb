/* net/client_answer.c - the response to a request: the callbacks of libcurl, limits in time, redirects, results. */
#include "net/client_int.h"

#include "base/limits.h"

#include <strings.h>
#include <unistd.h>

#define MAX_REDIRECTS 3
/* CURLE_TOO_LARGE, which older headers do not have: a header line over libcurl's own limit, 100 kB. */
#define TOO_LARGE_SINCE_8_6 100

/* ---- results --------------------------------------------------------------------------------------------------------------- */

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
    case DGM_FETCH_TIMEOUT: /* libcurl's own limit; ours begins with the socket */
        return dgm_arena_printf(f->arena,
                                f->connecting
                                    ? "no connection to %s in time"
                                    : "no address is known for %s: the name server does not answer",
                                at);
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

/* A limit or a rule of ours: libcurl stops, for this reason. */
void dgm_fetch_fail(dgm_fetch *f, dgm_fetch_end end, dgm_str what)
{
    if (f->failed)
        return;
    f->failed = end;
    f->failed_what = what.p;
}

/* ---- redirects ------------------------------------------------------------------------------------------------------------- */

static const char *fetch_redirect_refusal(dgm_fetch *f, const char *to)
{
    struct client_url url = {0};
    const char *what = "redirects to another origin, which is not followed";
    if (to && dgm_client_url_parse(to, &url))
        what = dgm_arena_printf(f->arena,
                                "redirects to another origin, which is not followed: %s://%s:%s",
                                url.scheme, url.host, url.port)
                   .p;
    dgm_client_url_done(&url);
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
    dgm_fetch_prepare(f);
    curl_multi_add_handle(f->pool->multi, f->easy);
    return NULL;
}

void dgm_fetch_done(dgm_fetch *f, CURLcode code)
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
    dgm_fetch_finish(f, end, what);
}

/* ---- limits in time -------------------------------------------------------------------------------------------------------- */

static void on_deadline(uv_timer_t *t)
{
    dgm_fetch_watch_time(t->data);
}

void dgm_fetch_watch_time(dgm_fetch *f)
{
    const dgm_fetch_limits *limits = &f->o.limits;
    uint64_t now = uv_now(f->client->loop), next = UINT64_MAX;
    struct {
        uint64_t since, ms;
        const char *what;
    } rows[] = {
        {f->started, limits->total_ms, "%s did not finish its answer within %.3g s"},
        {f->connecting, f->connecting ? limits->connect_ms : 0,
         "no connection to %s within %.3g s"},
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
            dgm_fetch_fail(f, DGM_FETCH_TIMEOUT, dgm_arena_dup(f->arena, dgm_str_from(what)));
            dgm_fetch_done(f, CURLE_OPERATION_TIMEDOUT);
            return;
        }
        next = at < next ? at : next;
    }
    if (next != UINT64_MAX)
        uv_timer_start(&f->timer, on_deadline, next - now, 0);
}

void dgm_fetch_watch_time_within(dgm_fetch *f, uint64_t ms)
{
    if (!uv_is_active((uv_handle_t *)&f->timer) || uv_timer_get_due_in(&f->timer) > ms)
        uv_timer_start(&f->timer, on_deadline, ms, 0);
}

/* ---- what libcurl calls for a request -------------------------------------------------------------------------------------- */

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

dgm_str dgm_fetch_header_of(const dgm_fetch_head *head, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < head->n_headers; i++) {
        if (head->headers[i].name.n == n && strncasecmp(head->headers[i].name.p, name, n) == 0)
            return head->headers[i].value;
    }
    return (dgm_str){0};
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
    dgm_fetch_watch_time_within(f, f->o.limits.silence_ms); /* no limit: looks once, for nothing */
    if (f->handler.on_head)
        f->handler.on_head(f->handler.user, &head);
}

static size_t on_header_line(char *p, size_t size, size_t n, void *arg)
{
    dgm_fetch *f = arg;
    n *= size;
    if (f->canceled) /* and not removed yet: its user may be gone */
        return 0;
    f->head_n += n;
    if (f->head_n > f->o.limits.head_bytes || f->n_headers > DGM_MAX_HTTP_HEADERS) {
        dgm_fetch_fail(f, DGM_FETCH_TOO_LARGE, fetch_sentence(f, DGM_FETCH_TOO_LARGE));
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

/* libcurl takes "101 Switching Protocols" for a final answer: bytes follow, and handlers have seen no head. */
static void fetch_fail_without_head(dgm_fetch *f)
{
    long status = 0;
    curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
    dgm_fetch_fail(f, DGM_FETCH_INVALID,
                   dgm_arena_printf(f->arena,
                                    "the answer of %s has status %ld: expected 200 to 599",
                                    f->target, status));
}

static size_t on_bytes(char *p, size_t size, size_t n, void *arg)
{
    dgm_fetch *f = arg;
    n *= size;
    if (f->canceled)
        return CURL_WRITEFUNC_ERROR;
    if (!f->has_head && !f->is_redirect) {
        fetch_fail_without_head(f);
        return CURL_WRITEFUNC_ERROR;
    }
    if (f->paused)
        return CURL_WRITEFUNC_PAUSE;
    f->body_n += n;
    if (f->o.limits.body_bytes && f->body_n > f->o.limits.body_bytes) {
        dgm_fetch_fail(f, DGM_FETCH_TOO_LARGE,
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
        dgm_fetch_fail(f, DGM_FETCH_REFUSED,
                       dgm_arena_printf(f->arena, "%s is not connected to: %s is %s", f->target,
                                        text, refusal));
        return CURL_SOCKET_BAD;
    }
    int fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
    f->pool->n_sockets += fd >= 0;
    if (!f->connecting) {
        f->connecting = uv_now(f->client->loop);
        dgm_fetch_watch_time_within(f, f->o.limits.connect_ms);
    }
    return fd;
}

/* Also of connections whose fetch has ended. */
static int on_close_socket(void *arg, curl_socket_t fd)
{
    struct client_pool *pool = arg;
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

/* There is a connection, TLS included: the request is about to be sent. */
static int on_before_request(void *arg, char *ip, char *local_ip, int port, int local_port)
{
    dgm_fetch *f = arg;
    (void)ip, (void)local_ip, (void)port, (void)local_port;
    f->connecting = 0;
    return CURL_PREREQFUNC_OK;
}

void dgm_fetch_set_callbacks(dgm_fetch *f)
{
    CURL *e = f->easy;
    curl_easy_setopt(e, CURLOPT_PREREQFUNCTION, on_before_request);
    curl_easy_setopt(e, CURLOPT_PREREQDATA, f);
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
    if (f->o.body.p) {
        curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read);
        curl_easy_setopt(e, CURLOPT_READDATA, f);
        curl_easy_setopt(e, CURLOPT_SEEKFUNCTION, on_seek);
        curl_easy_setopt(e, CURLOPT_SEEKDATA, f);
    }
}
