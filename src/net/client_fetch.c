/* net/client_fetch.c - a request: its options, how it is prepared for libcurl, start, cancel, release, pause. */
#include "net/client_int.h"

#include "base/limits.h"

#include <stdlib.h>
#include <strings.h>

/* The limit for a connection is ours (dgm_fetch_watch_time): on a busy machine libcurl has missed its own. Before there is a
 * socket, while a name is resolved, only libcurl's applies. */
#define LATER_CONNECT_MS 1000L
/* What may follow of an answer that was released: more than this costs more than a new connection. */
#define RELEASED_MS 250
#define RELEASED_BYTES ((size_t)16 << 10)

/* ---- URLs ------------------------------------------------------------------------------------------------------------------ */

bool dgm_client_url_parse(const char *text, struct client_url *ret_url)
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

void dgm_client_url_done(struct client_url *u)
{
    curl_free(u->scheme);
    curl_free(u->host);
    curl_free(u->port);
}

bool dgm_url_is_same_origin(const char *a, const char *b)
{
    struct client_url x = {0}, y = {0};
    bool same = dgm_client_url_parse(a, &x) && dgm_client_url_parse(b, &y) &&
                strcmp(x.scheme, y.scheme) == 0 && strcasecmp(x.host, y.host) == 0 &&
                strcmp(x.port, y.port) == 0;
    dgm_client_url_done(&x);
    dgm_client_url_done(&y);
    return same;
}

/* ---- options --------------------------------------------------------------------------------------------------------------- */

static bool has_line_end(dgm_str s)
{
    return s.n && (memchr(s.p, '\r', s.n) || memchr(s.p, '\n', s.n) || memchr(s.p, '\0', s.n));
}

void dgm_fetch_prepare(dgm_fetch *f)
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
                     1L);     /* a name server that hangs does not stop the loop */
    if (o->limits.connect_ms) /* 0: libcurl's default, 5 minutes */
        curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS,
                         (long)o->limits.connect_ms + LATER_CONNECT_MS);
    curl_easy_setopt(e, CURLOPT_MAXAGE_CONN, MAX_IDLE_S);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, f->why);
    dgm_fetch_set_callbacks(f);
    if (o->tls.ca_file)
        curl_easy_setopt(e, CURLOPT_CAINFO, o->tls.ca_file);
    if (o->tls.cert_file)
        curl_easy_setopt(e, CURLOPT_SSLCERT, o->tls.cert_file);
    if (o->tls.key_file)
        curl_easy_setopt(e, CURLOPT_SSLKEY, o->tls.key_file);
    if (o->body.p) {
        curl_easy_setopt(e, CURLOPT_POST, 1L);
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)o->body.n);
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
            dgm_fetch_fail(f, DGM_FETCH_BAD_URL,
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
    struct client_pool *pool = f->pool;
    struct client_url url = {0};
    if (pool->last_url && strcmp(pool->last_url, f->o.url) == 0) {
        f->target = dgm_arena_dup(f->arena, dgm_str_from(pool->last_target)).p;
        return;
    }
    if (dgm_client_url_parse(f->o.url, &url)) {
        dgm_str target = dgm_arena_printf(f->arena, "%s:%s", url.host, url.port);
        f->target = target.p;
        free(pool->last_url);
        free(pool->last_target);
        pool->last_url = client_copy(dgm_str_from(f->o.url));
        pool->last_target = client_copy(target);
    } else {
        dgm_fetch_fail(f, DGM_FETCH_BAD_URL, DGM_STR("it is not an http or https URL"));
    }
    dgm_client_url_done(&url);
}

/* ---- fetches --------------------------------------------------------------------------------------------------------------- */

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
        f->easy = dgm_client_pool_acquire(f->pool);
        dgm_fetch_prepare(f);
    }
    dgm_fetch_add_todo(f, f->failed ? TODO_FAIL : TODO_START);
    return f;
}

void dgm_fetch_cancel(dgm_fetch *f)
{
    f->canceled = true;
    dgm_fetch_add_todo(f, TODO_CANCEL);
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
    else
        dgm_fetch_watch_time_within(f, RELEASED_MS);
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
    dgm_fetch_add_todo(f, TODO_RESUME);
}
