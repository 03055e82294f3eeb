/*
 * backend/llm/tool_http.c - a tool that is one HTTP request.
 *
 * The operator writes the URL, so its address is allowed whatever it is. The model fills only placeholders behind the host, whose
 * values are percent-encoded: it can change neither the host nor the steps of the path. Requests are not repeated, and redirects
 * stay within the origin.
 */
#include "backend/llm/tool_int.h"
#include "backend/remote/remote.h"
#include "base/limits.h"
#include "base/list.h"

#include <openssl/evp.h>
#include <stdio.h>

struct http_settings {
    dgm_tool_settings common;
    dgm_remote remote;
    int method;
};

#define METHODS "GET|POST|PUT|PATCH|DELETE"
static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
#define POST 1

const dgm_setting dgm_tool_http_settings[] = {
    DGM_TOOL_SETTINGS(struct http_settings, common),
    {"url", DGM_SETTING_STR, offsetof(struct http_settings, remote.url), .required = true,
     .about = "an http or https URL. `{name}` in its path or query is replaced by the argument"},
    {"method", DGM_SETTING_CHOICE, offsetof(struct http_settings, method), .choices = METHODS,
     .def = "POST",
     .about =
         "the other arguments are sent as a JSON object; with `GET` and `DELETE` in the query"},
    {"token_env", DGM_SETTING_STR, offsetof(struct http_settings, remote.token_env), .def = "",
     .about = "the environment variable that has its bearer token or API key"},
    DGM_REMOTE_HEADER_SETTINGS(struct http_settings, remote),
    DGM_REMOTE_TLS_SETTINGS(struct http_settings, remote),
    {0},
};

/* The data of the tool. */
struct http_tool {
    dgm_remote remote; /* its url has x for every placeholder */
    const char *method;
    bool in_query;    /* arguments are sent in the query */
    dgm_str template; /* the URL */
    size_t host_end;  /* of the template: placeholders are behind it */
};

/* The data of a call. */
struct http_call {
    dgm_fetch *fetch;
    dgm_buf body;
    int status;
    dgm_str type;
};

static yyjson_val *tool_http_plain(const dgm_json *v) /* yyjson's readers do not say const */
{
    return (yyjson_val *)(uintptr_t)v;
}

/* ---- opening ----------------------------------------------------------------------------------------------- */

/* The next {name} from `from` on; false: there is no more. ret_end: behind it. */
static bool next_placeholder(dgm_str text, size_t from, size_t *ret_start, size_t *ret_end)
{
    const char *open = from < text.n ? memchr(text.p + from, '{', text.n - from) : NULL;
    const char *close = open ? memchr(open, '}', (size_t)(text.p + text.n - open)) : NULL;
    if (!close)
        return false;
    *ret_start = (size_t)(open - text.p);
    *ret_end = (size_t)(close - text.p) + 1;
    return true;
}

static dgm_code url_fail(dgm_err *err, const char *what)
{
    return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "url"), "%s", what);
}

/* Finds the end of the host, and the URL with x for every placeholder. */
static dgm_code read_template(struct http_tool *x, dgm_arena *a, dgm_str *ret_sample, dgm_err *err)
{
    dgm_str t = x->template;
    const char *host = strstr(t.p, "://");
    size_t start, end, from = 0;
    dgm_str sample = {0};
    x->host_end = host ? (size_t)(host - t.p) + 3 + strcspn(host + 3, "/?#") : 0;
    if (strchr(t.p, '#'))
        return url_fail(err, "a fragment (#) is not sent to servers: remove it");
    while (next_placeholder(t, from, &start, &end)) {
        if (start < x->host_end)
            return url_fail(err,
                            "a placeholder can be in the path or in the query, not in the host");
        if (end - start == 2)
            return url_fail(err, "a placeholder has no name: write {name}");
        sample = dgm_arena_printf(a, "%.*s%.*sx", DGM_P(sample), (int)(start - from), t.p + from);
        from = end;
    }
    *ret_sample = dgm_arena_printf(a, "%.*s%s", DGM_P(sample), t.p + from);
    return DGM_OK;
}

static dgm_code tool_http_open(dgm_tool *t, const dgm_json *config,
                               const dgm_agent_options *options, dgm_tool_settings *ret_settings,
                               dgm_err *err)
{
    struct http_settings s = {
        .common = *ret_settings, .remote = DGM_REMOTE_DEFAULTS, .method = POST};
    struct http_tool *x = dgm_new(t->arena, struct http_tool);
    dgm_code rc = dgm_settings_read(config, dgm_tool_http_settings, &s, err);
    if (rc)
        return rc;
    x->template = dgm_arena_dup(t->arena, s.remote.url);
    if ((rc = read_template(x, t->arena, &s.remote.url, err)) ||
        (rc = dgm_remote_open(&s.remote, options, t->arena, err)))
        return rc;
    x->remote = s.remote;
    x->method = methods[s.method];
    x->in_query = strcmp(x->method, "GET") == 0 || strcmp(x->method, "DELETE") == 0;
    t->data = x;
    *ret_settings = s.common;
    return DGM_OK;
}

/* ---- the request ------------------------------------------------------------------------------------------- */

static void put_encoded(dgm_buf *b, dgm_str text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        bool is_plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
                        c == '-' || c == '_' || c == '~' || c == '.';
        if (is_plain)
            dgm_buf_add_char(b, (char)c);
        else
            dgm_buf_printf(b, "%%%02X", c);
    }
}

static dgm_str argument_text(dgm_arena *a, const dgm_json *v)
{
    return yyjson_is_str(tool_http_plain(v)) ? dgm_json_str(v) : dgm_json_text_in(a, v);
}

static dgm_str name_at(dgm_str template, size_t start, size_t end)
{
    return (dgm_str){template.p + start + 1, end - start - 2};
}

static bool is_in_url(const struct http_tool *x, dgm_str name)
{
    size_t start, end, from = 0;
    for (; next_placeholder(x->template, from, &start, &end); from = end) {
        if (dgm_str_eq(name_at(x->template, start, end), name))
            return true;
    }
    return false;
}

/* A step of the path must be one: an empty one, "." and ".." would lead to another resource. */
static bool has_bad_step(dgm_str path)
{
    for (size_t i = 0; i < path.n; i++) {
        size_t end = i + 1;
        while (end < path.n && path.p[end] != '/')
            end++;
        dgm_str step = {path.p + i + 1, end - i - 1};
        if (dgm_str_is(step, ".") || dgm_str_is(step, ".."))
            return true;
        i = end - 1;
    }
    return false;
}

static const char *fill_placeholders(dgm_tool_call *c, const dgm_json *arguments, dgm_buf *url)
{
    const struct http_tool *x = c->tool->data;
    dgm_str t = x->template;
    const char *question = memchr(t.p, '?', t.n);
    size_t start, end, from = 0, path_end;
    for (; next_placeholder(t, from, &start, &end); from = end) {
        dgm_str name = name_at(t, start, end);
        const dgm_json *v = dgm_json_get(arguments, name);
        dgm_str text = v ? argument_text(c->arena, v) : (dgm_str){0};
        bool is_list = yyjson_is_ctn(tool_http_plain(v)) || yyjson_is_null(tool_http_plain(v));
        bool is_in_path = !question || t.p + start < question;
        if (!v || is_list || (is_in_path && !text.n))
            return dgm_arena_printf(c->arena,
                                    "The argument \"%.*s\" is needed: a text that is not empty, a "
                                    "number or a boolean.",
                                    DGM_P(name))
                .p;
        dgm_buf_add(url, t.p + from, start - from);
        put_encoded(url, text);
    }
    dgm_buf_add(url, t.p + from, t.n - from);
    if (url->over)
        return NULL;
    path_end = url->n > x->host_end ? x->host_end : url->n;
    while (path_end < url->n && url->p[path_end] != '?')
        path_end++;
    return has_bad_step((dgm_str){url->p + x->host_end, path_end - x->host_end})
               ? "An argument of the URL is \".\" or \"..\", which is not allowed."
               : NULL;
}

static void put_query_value(dgm_tool_call *c, dgm_buf *url, dgm_str name, const dgm_json *v)
{
    if (yyjson_is_null(tool_http_plain(v)))
        return;
    dgm_buf_add_char(url, memchr(url->p, '?', url->n) ? '&' : '?');
    put_encoded(url, name);
    dgm_buf_add_char(url, '=');
    put_encoded(url, argument_text(c->arena, v));
}

/* Lists of simple values are repeated: a=1&a=2. */
static void put_query(dgm_tool_call *c, const dgm_json *arguments, dgm_buf *url)
{
    yyjson_val *key, *value, *item;
    size_t i, n, k, m;
    yyjson_obj_foreach (tool_http_plain(arguments), i, n, key, value) {
        dgm_str name = dgm_json_str(key);
        if (url->over || is_in_url(c->tool->data, name))
            continue;
        if (!yyjson_is_arr(value)) {
            put_query_value(c, url, name, value);
            continue;
        }
        yyjson_arr_foreach (value, k, m, item) {
            put_query_value(c, url, name, item);
        }
    }
}

static dgm_str http_body(dgm_tool_call *c, const dgm_json *arguments)
{
    yyjson_val *key, *value;
    size_t i, n, count = 0;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    yyjson_obj_foreach (tool_http_plain(arguments), i, n, key, value) {
        if (is_in_url(c->tool->data, dgm_json_str(key)))
            continue;
        dgm_buf_add_char(&b, count++ ? ',' : '{');
        dgm_json_put_str(&b, dgm_json_str(key));
        dgm_buf_add_char(&b, ':');
        dgm_json_put(&b, value);
    }
    if (!count)
        dgm_buf_add_char(&b, '{');
    dgm_buf_add_char(&b, '}');
    dgm_str text = dgm_arena_dup(c->arena, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

/* The URL, in the arena; NULL: the arguments cannot be sent, and c->failure says why. */
static const char *http_url(dgm_tool_call *c, const dgm_json *arguments)
{
    const struct http_tool *x = c->tool->data;
    dgm_buf url;
    dgm_buf_init(&url, DGM_MAX_TOOL_URL_BYTES);
    const char *why = fill_placeholders(c, arguments, &url);
    if (!why && x->in_query)
        put_query(c, arguments, &url);
    if (!why && url.over)
        why = "The arguments are too long for a URL (the limit tool_url_bytes is 8192).";
    dgm_str text = dgm_arena_dup(c->arena, dgm_buf_str(&url));
    dgm_buf_done(&url);
    if (!why && !dgm_url_is_same_origin(x->remote.url.p, text.p))
        why = "The arguments would change the server of the request.";
    if (why)
        dgm_tool_set_failure(c, dgm_str_from(why), false);
    return why ? NULL : text.p;
}

/* ---- the response ------------------------------------------------------------------------------------------ */

static void on_tool_head(void *user, const dgm_fetch_head *head)
{
    dgm_tool_call *c = user;
    struct http_call *x = c->data;
    x->status = head->status;
    x->type = dgm_arena_dup(c->arena, head->content_type);
}

static void on_tool_body(void *user, dgm_str bytes)
{
    dgm_tool_call *c = user;
    dgm_buf_add_str(&((struct http_call *)c->data)->body, bytes);
}

static bool type_ends_with(dgm_str type, dgm_str end)
{
    return type.n >= end.n && dgm_str_eq_nocase((dgm_str){type.p + type.n - end.n, end.n}, end);
}

static bool type_starts_with(dgm_str type, dgm_str start)
{
    return type.n >= start.n && dgm_str_eq_nocase((dgm_str){type.p, start.n}, start);
}

static void finish_bytes(dgm_tool_call *c)
{
    struct http_call *x = c->data;
    char *out = dgm_arena_alloc_raw(c->arena, x->body.n / 3 * 4 + 8);
    int n = EVP_EncodeBlock((unsigned char *)out, (const unsigned char *)x->body.p, (int)x->body.n);
    dgm_part part = {.kind = DGM_PART_RAW,
                     .content = {out, (size_t)n},
                     .media_type = x->type.n ? x->type : DGM_STR("application/octet-stream")};
    dgm_tool_finish(c, &part);
}

static void finish_response(dgm_tool_call *c)
{
    struct http_call *x = c->data;
    dgm_str body = dgm_buf_str(&x->body);
    bool is_json =
        type_ends_with(x->type, DGM_STR("/json")) || type_ends_with(x->type, DGM_STR("+json"));
    bool is_text = is_json || type_starts_with(x->type, DGM_STR("text/")) || !x->type.n ||
                   type_ends_with(x->type, DGM_STR("/xml"));
    if (body.n && (!is_text || dgm_utf8_check(body) != body.n))
        finish_bytes(c);
    else
        dgm_tool_finish_text(c, body, is_json || !x->type.n);
}

static void fail_with_status(dgm_tool_call *c)
{
    const struct http_tool *tool = c->tool->data;
    struct http_call *x = c->data;
    dgm_str body = dgm_buf_str(&x->body);
    bool is_text = body.n && dgm_utf8_check(body) == body.n;
    dgm_str words = is_text ? dgm_remote_clean_error(&tool->remote, c->arena, body) : (dgm_str){0};
    bool is_redirect = x->status / 100 == 3;
    dgm_str why =
        dgm_arena_printf(c->arena, "The tool's server answered with status %d%s%s%.*s", x->status,
                         is_redirect ? " (a redirect, which is not followed)" : "",
                         words.n ? ": " : ".", DGM_P(words));
    dgm_tool_set_failure(c, why, false);
    dgm_tool_fail(c);
}

static void on_tool_end(void *user, const dgm_fetch_result *result)
{
    dgm_tool_call *c = user;
    struct http_call *x = c->data;
    x->fetch = NULL;
    dgm_timer_stop(&c->timer);
    if (result->end != DGM_FETCH_OK) {
        dgm_str why =
            dgm_arena_printf(c->arena, "The tool's request failed: %.*s", DGM_P(result->what));
        dgm_tool_set_failure(c, why, result->may_be_received);
        dgm_tool_fail(c);
    } else if (x->status / 100 != 2) {
        fail_with_status(c);
    } else {
        finish_response(c);
    }
}

/* ---- starting ---------------------------------------------------------------------------------------------- */

#define MAX_OWN_HEADERS 5

/* Ids of models are any text; a header has visible ASCII. */
static dgm_str header_text(dgm_arena *a, dgm_str text)
{
    char *p = dgm_arena_alloc_raw(a, text.n + 1);
    for (size_t i = 0; i < text.n; i++)
        p[i] = text.p[i] > ' ' && text.p[i] < 0x7f ? text.p[i] : '_';
    return (dgm_str){p, text.n};
}

static size_t http_headers(dgm_tool_call *c, const dgm_tool_input *input, bool has_body,
                           dgm_fetch_header *headers)
{
    const struct http_tool *x = c->tool->data;
    size_t n = 0;
    headers[n++] =
        (dgm_fetch_header){DGM_STR("Accept"), DGM_STR("application/json, text/*;q=0.9, */*;q=0.5")};
    if (has_body)
        headers[n++] = (dgm_fetch_header){DGM_STR("Content-Type"), DGM_STR("application/json")};
    if (input->key.n)
        headers[n++] =
            (dgm_fetch_header){DGM_STR("Idempotency-Key"), header_text(c->arena, input->key)};
    if (input->run && input->run->fence)
        headers[n++] = (dgm_fetch_header){
            DGM_STR("Dragoman-Fence"),
            dgm_arena_printf(c->arena, "%llu", (unsigned long long)input->run->fence)};
    if (input->traceparent.n)
        headers[n++] = (dgm_fetch_header){DGM_STR("traceparent"), input->traceparent};
    memcpy(headers + n, x->remote.all_headers, x->remote.n_headers * sizeof *headers);
    return n + x->remote.n_headers;
}

static const char *or_null(dgm_str text)
{
    return text.n ? text.p : NULL;
}

static void free_body(void *b)
{
    dgm_buf_done(b);
}

static void http_send(dgm_tool_call *c, dgm_client *client, const dgm_tool_input *input,
                      const char *url)
{
    const struct http_tool *tool = c->tool->data;
    const dgm_remote *r = &tool->remote;
    struct http_call *x = dgm_new(c->arena, struct http_call);
    dgm_fetch_header *headers =
        dgm_new_n(c->arena, dgm_fetch_header, r->n_headers + MAX_OWN_HEADERS);
    dgm_fetch_options options = {
        .method = tool->method,
        .url = url,
        .headers = headers,
        .n_headers = http_headers(c, input, !tool->in_query, headers),
        .body = tool->in_query ? (dgm_str){0} : http_body(c, input->arguments),
        .tls = {or_null(r->ca_file), or_null(r->client_cert), or_null(r->client_key)},
        .proxy = or_null(r->proxy),
        .follows = strcmp(tool->method, "GET") == 0,
        .limits = {.body_bytes = DGM_MAX_TOOL_OUTPUT_BYTES,
                   .connect_ms = (uint64_t)(r->connect_timeout * 1000)},
    };
    dgm_buf_init(&x->body, DGM_MAX_TOOL_OUTPUT_BYTES);
    dgm_arena_defer(c->arena, free_body, &x->body);
    c->data = x;
    x->fetch = dgm_fetch_start(client, &options,
                               (dgm_fetch_handler){on_tool_head, on_tool_body, on_tool_end, c});
}

static void tool_http_start(dgm_tool_call *c, const dgm_tool_input *input)
{
    dgm_client *client = dgm_client_of_loop(c->loop);
    const char *url = http_url(c, input->arguments);
    if (!client)
        dgm_tool_set_failure(c, DGM_STR(DGM_SHUTTING_DOWN), false);
    if (c->failure.n)
        dgm_tool_fail_later(c);
    else
        http_send(c, client, input, url);
}

static void tool_http_cancel(dgm_tool_call *c)
{
    struct http_call *x = c->data;
    if (x->fetch)
        dgm_fetch_cancel(x->fetch);
    dgm_tool_call_end(c);
}

static void tool_http_timeout(dgm_tool_call *c)
{
    struct http_call *x = c->data;
    dgm_fetch_cancel(x->fetch);
    x->fetch = NULL;
    dgm_tool_fail(c);
}

const dgm_tool_kind dgm_tool_http = {
    .name = "http",
    .settings = dgm_tool_http_settings,
    .open = tool_http_open,
    .start = tool_http_start,
    .cancel = tool_http_cancel,
    .on_timeout = tool_http_timeout,
};
