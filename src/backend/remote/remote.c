/* backend/remote/remote.c - see remote.h. */
#include "backend/remote/remote.h"

#include "base/limits.h"
#include "wire/model_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#define FULL_MS 5          /* how soon we look again whether the log has room */
#define MAX_RETRY_AFTER 60 /* seconds */
#define MAX_ERROR_BYTES ((size_t)64 << 10)
#define MAX_ERROR_TEXT ((size_t)1000)
#define MIN_TOKEN_BYTES 4
#define MIN_SECRET_BYTES 8 /* shorter values of other headers (`2`, `prod`) are not credentials */
#define MAX_SECRET_BYTES 4096 /* of a key in a file: the keys of all providers are shorter */

/* ---- settings --------------------------------------------------------------------------------------------------------- */

static dgm_code remote_fail(dgm_err *err, const char *setting, const char *what)
{
    return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT(NULL, dgm_str_from(setting)), "%s", what);
}

/* Replaces ${NAME} by the variable. */
static dgm_code expand(dgm_arena *a, dgm_str value, dgm_str *ret_value, dgm_err *err)
{
    dgm_buf b;
    dgm_code rc = DGM_OK;
    dgm_buf_init(&b, DGM_MAX_HTTP_HEADER_BYTES);
    for (size_t i = 0; i < value.n && !rc; i++) {
        const char *end = value.p[i] == '$' && i + 1 < value.n && value.p[i + 1] == '{'
                              ? memchr(value.p + i, '}', value.n - i)
                              : NULL;
        if (!end) {
            dgm_buf_add_char(&b, value.p[i]);
            continue;
        }
        dgm_str name =
            dgm_arena_dup(a, (dgm_str){value.p + i + 2, (size_t)(end - value.p) - i - 2});
        const char *found = getenv(name.p);
        if (!found)
            rc = dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "headers"),
                          "the environment variable %s is not set", name.p);
        else
            dgm_buf_add_str(&b, dgm_str_from(found));
        i = (size_t)(end - value.p);
    }
    if (!rc && b.over)
        rc = remote_fail(err, "headers", "a value is larger than the limit http_header_bytes");
    if (!rc)
        *ret_value = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return rc;
}

static const char *remote_setting(const char *own, const char *usual)
{
    return own ? own : usual;
}

/* The first line of a file; absent: it cannot be read, or it is empty. */
static dgm_str read_secret_file(dgm_arena *a, const char *path)
{
    char line[MAX_SECRET_BYTES + 2];
    FILE *f = fopen(path, "re");
    char *got = f ? fgets(line, sizeof line, f) : NULL;
    if (f)
        fclose(f);
    dgm_str text = got ? dgm_arena_dup(a, dgm_text_trim(dgm_str_from(line))) : (dgm_str){0};
    explicit_bzero(line, sizeof line);
    return text;
}

static dgm_code read_token(dgm_remote *r, dgm_arena *a, dgm_err *err)
{
    const char *token = r->token_env.n ? getenv(r->token_env.p) : NULL;
    if (r->token_env.n && (!token || !*token))
        return dgm_fail(
            err, DGM_BAD_PARAMS,
            DGM_AT(NULL, dgm_str_from(remote_setting(r->token_env_setting, "token_env"))),
            "the environment variable %s is not set", r->token_env.p);
    if (r->token_file.n) {
        const char *setting = remote_setting(r->token_file_setting, "token_file");
        dgm_str secret = read_secret_file(a, r->token_file.p);
        if (token)
            return remote_fail(err, setting, "the key is set twice: remove one of them");
        if (!secret.n || secret.n > MAX_SECRET_BYTES)
            return remote_fail(err, setting,
                               "the file cannot be read, or its first line is empty or too long");
        token = secret.p;
    }
    if (!token)
        return DGM_OK;
    dgm_str name = r->token_header.n ? r->token_header : DGM_STR("Authorization");
    bool bearer =
        name.n == 13 && strncasecmp(name.p, "Authorization", 13) == 0 && !strchr(token, ' ');
    r->all_headers[r->n_headers++] =
        (dgm_fetch_header){name, dgm_arena_printf(a, "%s%s", bearer ? "Bearer " : "", token)};
    r->n_credentials++;
    r->has_token = true;
    return DGM_OK;
}

/* A value that comes from the environment is a credential: it goes only to the origin of the settings. So is every header
 * of the settings, since they were written for this service. */
static dgm_code read_headers(dgm_remote *r, dgm_arena *a, dgm_err *err)
{
    yyjson_val *headers = (yyjson_val *)(uintptr_t)r->headers, *key, *value;
    size_t i, n;
    dgm_code rc = DGM_OK;
    r->all_headers = dgm_new_n(a, dgm_fetch_header, yyjson_obj_size(headers) + 1);
    yyjson_obj_foreach (headers, i, n, key, value) {
        dgm_str name = dgm_arena_dup(a, dgm_json_str(key)), text;
        dgm_str plain = yyjson_is_str(value) ? dgm_json_str(value) : dgm_json_text_in(a, value);
        if ((rc = expand(a, plain, &text, err)))
            return rc;
        for (const char *p = name.p; *p; p++) {
            if (*p <= ' ' || *p == ':' || *p == 0x7f)
                return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT(DGM_AT_LIT(NULL, "headers"), name),
                                "invalid name of a header");
        }
        r->all_headers[r->n_headers++] = (dgm_fetch_header){name, text};
        r->n_credentials++;
    }
    return read_token(r, a, err);
}

dgm_code dgm_remote_open(dgm_remote *r, const dgm_agent_options *options, dgm_arena *a,
                         dgm_err *err)
{
    if (options)
        r->allowed = options->outbound_allow;
    dgm_str *texts[] = {&r->url,     &r->token_env,   &r->token_file, &r->token_header,
                        &r->ca_file, &r->client_cert, &r->client_key, &r->proxy};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = dgm_arena_dup(a, *texts[i]);
    if (!dgm_url_is_same_origin(r->url.p, r->url.p))
        return remote_fail(err, remote_setting(r->url_setting, "url"),
                           "it is not an http or https URL, as in https://agent.example.com/run");
    const struct {
        const char *name;
        dgm_str path;
    } files[] = {
        {"ca_file", r->ca_file}, {"client_cert", r->client_cert}, {"client_key", r->client_key}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (files[i].path.n && access(files[i].path.p, R_OK) != 0)
            return remote_fail(err, files[i].name, "the file cannot be read");
    }
    return read_headers(r, a, err);
}

/* ---- errors ----------------------------------------------------------------------------------------------------------- */

static void hide_secret(char *text, dgm_str secret, size_t min_bytes)
{
    if (secret.n < min_bytes)
        return;
    for (char *at = text; (at = strstr(at, secret.p)); at += secret.n)
        memset(at, '*', secret.n);
}

dgm_str dgm_remote_clean_error(const dgm_remote *r, dgm_arena *a, dgm_str text)
{
    dgm_str all = dgm_text_trim(text);
    char *p = dgm_arena_alloc_raw(a, all.n + 1);
    for (size_t i = 0; i < all.n; i++)
        p[i] = (unsigned char)all.p[i] < ' ' || all.p[i] == 0x7f ? ' ' : all.p[i];
    p[all.n] = '\0';
    for (size_t i = 0; i < r->n_headers; i++) {
        dgm_str value = r->all_headers[i].value;
        bool is_token = r->has_token && i + 1 == r->n_headers;
        size_t min_bytes = is_token ? MIN_TOKEN_BYTES : MIN_SECRET_BYTES;
        const char *word = memchr(value.p, ' ', value.n); /* behind `Bearer` */
        hide_secret(p, value, min_bytes);
        if (word)
            hide_secret(p, (dgm_str){word + 1, value.n - (size_t)(word + 1 - value.p)}, min_bytes);
    }
    size_t n = all.n;
    if (n <= MAX_ERROR_TEXT)
        return (dgm_str){p, n};
    n = MAX_ERROR_TEXT;
    while (n && ((unsigned char)p[n] & 0xc0) == 0x80) /* not within a character */
        n--;
    return dgm_arena_printf(a, "%.*s...", (int)n, p);
}

/* ---- one call ------------------------------------------------------------------------------------------------------------ */

struct dgm_remote_call {
    const dgm_remote *remote;
    dgm_run *run;
    dgm_arena *arena;
    dgm_remote_handler handler;
    dgm_remote_request request;
    dgm_fetch *fetch; /* NULL: none runs */
    dgm_timer timer;  /* waits for room in the log, or until the request may be repeated */
    dgm_frames frames;
    dgm_buf error_body;
    int64_t retries;
    int status;
    double retry_after; /* seconds; < 0: absent */
    const char *wrong;  /* the answer cannot be used: why */
    bool is_error, is_stream, canceled, waits_for_room;
};

static void remote_on_timer_closed(void *arg)
{
    struct dgm_remote_call *c = arg;
    dgm_frames_done(&c->frames);
    dgm_buf_done(&c->error_body);
    dgm_arena_free(c->arena); /* the call lives in it */
}

static void remote_free(dgm_remote_call *c)
{
    dgm_timer_close(&c->timer, remote_on_timer_closed, c);
}

static void remote_end(dgm_remote_call *c, dgm_remote_end end)
{
    end.status = c->status;
    end.is_stream = c->is_stream;
    end.body = dgm_buf_str(&c->error_body);
    c->handler.on_end(c->handler.user, &end);
    remote_free(c);
}

static void remote_send(dgm_remote_call *c);

/* HOST:PORT of the request; a URL may have a name and a password in front of it. */
static const char *remote_place(dgm_remote_call *c)
{
    const char *begin = strstr(c->request.url, "://"), *end;
    bool has_port = false;
    begin = begin ? begin + 3 : c->request.url;
    end = begin + strcspn(begin, "/?#");
    for (const char *p = begin; p < end; p++) {
        if (*p == '@')
            begin = p + 1;
        if (*p == ':')
            has_port = true;
        else if (*p == '@' || *p == ']') /* of an IPv6 address: its colons are no ports */
            has_port = false;
    }
    const char *usual = strncasecmp(c->request.url, "https", 5) == 0 ? ":443" : ":80";
    return dgm_arena_printf(c->arena, "%.*s%s", (int)(end - begin), begin, has_port ? "" : usual).p;
}

/* "503 Service Unavailable": a sentence with the service's own words, if it has any. */
static const char *sentence_of_status(dgm_remote_call *c)
{
    const char *meaning = c->status == 401   ? "it wants other credentials"
                          : c->status == 403 ? "it forbids this"
                          : c->status == 404 ? "there is nothing at this URL"
                          : c->status == 405 ? "it does not take this method at this URL"
                          : c->status == 429 ? "it gets too many requests"
                          : c->status >= 500 ? "it failed"
                          : c->status >= 400 ? "it rejects the request"
                                             : "it redirects, which is not followed";
    return dgm_arena_printf(c->arena, "the agent's server at %s answered with status %d: %s",
                            remote_place(c), c->status, meaning)
        .p;
}

static void remote_wants_more(void *arg)
{
    dgm_remote_call *c = arg;
    if (c->wrong) {
        remote_end(c, (dgm_remote_end){
                          .error = c->wrong, .end = DGM_FETCH_INVALID, .may_be_received = true});
    } else if (!c->waits_for_room) {
        remote_send(c);
    } else if (c->run->ops->is_full(c->run) && !c->run->canceled) {
        dgm_timer_start(&c->timer, FULL_MS);
    } else {
        c->waits_for_room = false;
        if (c->fetch)
            dgm_fetch_resume(c->fetch);
    }
}

/* The rest of the answer is not read. */
static void remote_fail_with(dgm_remote_call *c, const char *what)
{
    c->wrong = what;
    if (c->fetch)
        dgm_fetch_cancel(c->fetch);
    c->fetch = NULL;
    dgm_timer_start(&c->timer, 0);
}

/* Passes on the values that are complete. */
static void pass_items(dgm_remote_call *c)
{
    dgm_frames_item item;
    dgm_err err = {0};
    while (!c->canceled && !c->wrong) {
        if (dgm_frames_next(&c->frames, &item, &err)) {
            remote_fail_with(
                c, dgm_arena_printf(c->arena, "the answer of the agent's server cannot be read: %s",
                                    err.msg)
                       .p);
            return;
        }
        if (!item.text.p)
            return;
        c->handler.on_item(c->handler.user, &item);
    }
}

static void remote_on_head(void *user, const dgm_fetch_head *head)
{
    dgm_remote_call *c = user;
    dgm_str type = head->content_type, after = dgm_fetch_header_of(head, "retry-after");
    bool is_json = (type.n == 16 && strncasecmp(type.p, "application/json", 16) == 0) ||
                   (type.n > 5 && strncasecmp(type.p + type.n - 5, "+json", 5) == 0) ||
                   (type.n >= 20 && strncasecmp(type.p, "application/x-ndjson", 20) == 0);
    c->status = head->status;
    c->is_stream = type.n == 17 && strncasecmp(type.p, "text/event-stream", 17) == 0;
    c->is_error = head->status < 200 || head->status > 299;
    int64_t wait_ms = dgm_model_retry_after(after, (dgm_str){0}, dgm_loop_unix_ms());
    c->retry_after = wait_ms < 0 ? -1 : (double)wait_ms / 1000;
    if (c->handler.on_head)
        c->handler.on_head(c->handler.user, head);
    if (c->canceled || c->is_error || is_json || c->is_stream || head->status == 204)
        return;
    remote_fail_with(
        c,
        type.n == 0
            ? dgm_arena_printf(c->arena,
                               "the agent's server at %s answered without a content type: "
                               "expected JSON or an event stream",
                               remote_place(c))
                  .p
            : dgm_arena_printf(
                  c->arena,
                  "the agent's server at %s answered with %.*s: expected JSON or an event stream%s",
                  remote_place(c), (int)(type.n < 60 ? type.n : 60), type.p,
                  type.n == 9 && strncasecmp(type.p, "text/html", 9) == 0
                      ? " (this is a web page: check the URL)"
                      : "")
                  .p);
}

static void remote_on_body(void *user, dgm_str bytes)
{
    dgm_remote_call *c = user;
    if (c->is_error) {
        dgm_buf_add_str(&c->error_body, bytes);
        return;
    }
    dgm_frames_feed(&c->frames, bytes.p, bytes.n);
    pass_items(c);
    if (c->fetch && !c->canceled && !c->waits_for_room && c->run->ops->is_full(c->run)) {
        c->waits_for_room = true;
        dgm_fetch_pause(c->fetch);
        dgm_timer_start(&c->timer, FULL_MS);
    }
}

static void remote_on_fetched(void *user, const dgm_fetch_result *result)
{
    dgm_remote_call *c = user;
    dgm_remote_end end = {.end = result->end, .may_be_received = result->may_be_received};
    c->fetch = NULL;
    dgm_timer_stop(&c->timer);
    c->waits_for_room = false;
    if ((c->status == 429 || c->status == 503) && c->retry_after >= 0 &&
        c->retry_after <= MAX_RETRY_AFTER && c->retries < c->remote->retries && !c->run->canceled) {
        c->retries++;
        dgm_timer_start(&c->timer, (uint64_t)(c->retry_after * 1000));
        return;
    }
    if (!c->is_error && !c->wrong) {
        dgm_frames_end(&c->frames);
        if (c->is_stream ? !c->handler.complete_events_only : result->end == DGM_FETCH_OK)
            pass_items(c);
        if (c->canceled)
            return;
    }
    end.is_cut = c->status && !c->is_error && !c->wrong && result->end != DGM_FETCH_OK;
    if (c->wrong)
        end.error = c->wrong;
    else if (result->end != DGM_FETCH_OK)
        end.error = dgm_arena_dup(c->arena, result->what).p;
    else if (c->is_error)
        end.error = sentence_of_status(c);
    remote_end(c, end);
}

/* Most requests go to the origin of the settings, written as there: then nothing has to be parsed. */
static bool remote_is_own(const dgm_remote *r, const char *url)
{
    const char *host = strstr(url, "://");
    size_t n = host ? (size_t)(host - url) + 3 + strcspn(host + 3, "/?#") : 0;
    if (n && strncmp(r->url.p, url, n) == 0 && strchr("/?#", r->url.p[n]))
        return true;
    return dgm_url_is_same_origin(r->url.p, url);
}

static void remote_send(dgm_remote_call *c)
{
    const dgm_remote *r = c->remote;
    const dgm_remote_request *q = &c->request;
    bool is_own = remote_is_own(r, q->url);
    dgm_fetch_header *headers =
        dgm_new_n(c->arena, dgm_fetch_header, q->n_headers + r->n_headers + 1);
    size_t n = 0;
    for (size_t i = 0; i < q->n_headers; i++)
        headers[n++] = q->headers[i];
    for (size_t i = 0; is_own && i < r->n_headers; i++)
        headers[n++] = r->all_headers[i];
    double answer = q->answer_timeout > 0 ? q->answer_timeout : r->answer_timeout;
    dgm_fetch_options o = {
        .method = q->method,
        .url = q->url,
        .headers = headers,
        .n_headers = n,
        .body = q->body,
        .tls = {r->ca_file.n ? r->ca_file.p : NULL,
                is_own && r->client_cert.n ? r->client_cert.p : NULL,
                is_own && r->client_key.n ? r->client_key.p : NULL},
        .proxy = r->proxy.n ? r->proxy.p : NULL,
        .is_guarded = !is_own,
        .allowed = r->allowed,
        .follows = q->follows,
        .limits = {.connect_ms = (uint64_t)(r->connect_timeout * 1000),
                   .first_byte_ms = (uint64_t)(answer * 1000),
                   .body_bytes = q->max_bytes,
                   .silence_ms = (uint64_t)(r->silence_timeout * 1000),
                   .total_ms = (uint64_t)(r->timeout * 1000)},
    };
    dgm_client *client = dgm_client_of_loop(c->run->loop);
    c->status = 0;
    c->is_error = c->is_stream = false;
    c->error_body.n = 0;
    c->wrong = NULL;
    if (!client) {
        remote_end(c, (dgm_remote_end){.error = DGM_SHUTTING_DOWN, .end = DGM_FETCH_STOPPED});
        return;
    }
    c->fetch = dgm_fetch_start(
        client, &o, (dgm_fetch_handler){remote_on_head, remote_on_body, remote_on_fetched, c});
}

static void remote_copy_request(dgm_remote_call *c, const dgm_remote_request *request)
{
    dgm_remote_request *q = &c->request;
    *q = *request;
    q->url = dgm_arena_dup(c->arena, q->url ? dgm_str_from(q->url) : c->remote->url).p;
    if (q->body.p)
        q->body = dgm_arena_dup(c->arena, q->body);
    for (size_t i = 0; i < q->n_headers; i++)
        q->headers[i] = (dgm_fetch_header){dgm_arena_dup(c->arena, q->headers[i].name),
                                           dgm_arena_dup(c->arena, q->headers[i].value)};
}

dgm_remote_call *dgm_remote_start(const dgm_remote *r, dgm_run *run,
                                  const dgm_remote_request *request, dgm_remote_handler handler)
{
    dgm_arena *a = dgm_arena_new_small(2048);
    dgm_remote_call *c = dgm_new(a, dgm_remote_call);
    c->arena = a;
    c->remote = r;
    c->run = run;
    c->handler = handler;
    dgm_timer_init(run->loop, &c->timer, remote_wants_more, c);
    dgm_frames_init(&c->frames, false);
    dgm_buf_init(&c->error_body, MAX_ERROR_BYTES);
    remote_copy_request(c, request);
    /* also when the client is gone: callbacks never come from inside this */
    dgm_timer_start(&c->timer, 0);
    return c;
}

static void remote_leave(dgm_remote_call *c, void (*leave)(dgm_fetch *f))
{
    c->canceled = true;
    if (c->fetch)
        leave(c->fetch);
    dgm_timer_stop(&c->timer);
    remote_free(c);
}

void dgm_remote_cancel(dgm_remote_call *c)
{
    remote_leave(c, dgm_fetch_cancel);
}

void dgm_remote_release(dgm_remote_call *c)
{
    remote_leave(c, dgm_fetch_release);
}
