/*
 * app/inspect/inspect_remote.c - sends requests of operators to another A2A server: POST /debug/remote/card, .../send.
 *
 * Only for operators, and only if `inspect_remote` allows it. The address is checked when it is connected to (net/address.h),
 * as for the tools of agents. Status, media type and bytes of the answer pass unchanged; no other header does.
 */
#include "app/inspect/inspect_int.h"
#include "base/limits.h"
#include "net/client.h"
#include "json/json.h"

#define BACKLOG_BYTES (2 * DGM_HTTP_BACKLOG_MARK) /* then the other server waits */
#define CARD_PATH "/.well-known/agent-card.json"
#define MAX_HEADERS 8

/* Lives as long as the exchange. */
struct remote_view {
    dgm_front_request q;
    dgm_http_exchange *x;
    dgm_fetch *fetch; /* NULL: it has ended */
    bool has_begun, is_paused;
};

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static void view_on_room(void *arg)
{
    struct remote_view *v = arg;
    if (v->fetch && v->is_paused)
        dgm_fetch_resume(v->fetch);
    v->is_paused = false;
}

/* The client has disconnected, or this server ends. */
static void view_on_gone(void *arg)
{
    struct remote_view *v = arg;
    if (v->fetch)
        dgm_fetch_cancel(dgm_take(v->fetch));
    dgm_http_end(v->x);
}

static void view_on_drain(void *arg)
{
    struct remote_view *v = arg;
    if (v->has_begun)
        view_on_gone(v);
}

static const dgm_http_watcher view_watcher = {
    .on_room = view_on_room, .on_gone = view_on_gone, .on_drain = view_on_drain};

/* The header distinguishes an answer of the other server from one of this server. A browser must not show it as a page of this server. */
static void view_on_head(void *user, const dgm_fetch_head *head)
{
    const dgm_http_header headers[] = {
        {DGM_STR("Cache-Control"), DGM_STR("no-store")},
        {DGM_STR("X-Accel-Buffering"), DGM_STR("no")},
        {DGM_STR("X-Dragoman-Remote"), DGM_STR("1")},
        {DGM_STR("X-Content-Type-Options"), DGM_STR("nosniff")},
        {DGM_STR("Content-Security-Policy"), DGM_STR("sandbox")},
    };
    struct remote_view *v = user;
    dgm_str type = head->content_type.n ? head->content_type : DGM_STR("application/octet-stream");
    v->has_begun = true;
    dgm_front_note_stream(v->x);
    dgm_http_begin(v->x, head->status, type, headers, sizeof headers / sizeof *headers);
}

static void view_on_body(void *user, dgm_str bytes)
{
    struct remote_view *v = user;
    dgm_http_write(v->x, bytes);
    if (dgm_http_backlog(v->x) > BACKLOG_BYTES && !v->is_paused) {
        v->is_paused = true;
        dgm_fetch_pause(v->fetch);
    }
}

static dgm_code view_code_of(dgm_fetch_end end)
{
    switch (end) {
    case DGM_FETCH_BAD_URL: return DGM_BAD_PARAMS;
    case DGM_FETCH_REFUSED: return DGM_FORBIDDEN;
    case DGM_FETCH_TIMEOUT: return DGM_UPSTREAM_TIMEOUT;
    case DGM_FETCH_TOO_LARGE: return DGM_TOO_LARGE;
    case DGM_FETCH_STOPPED: return DGM_UNAVAILABLE;
    case DGM_FETCH_OK:
    case DGM_FETCH_NO_ADDRESS:
    case DGM_FETCH_UNREACHABLE:
    case DGM_FETCH_TLS:
    case DGM_FETCH_CUT:
    case DGM_FETCH_REDIRECT:
    case DGM_FETCH_INVALID: break;
    }
    return DGM_INVALID_AGENT_RESPONSE;
}

static void view_on_end(void *user, const dgm_fetch_result *result)
{
    struct remote_view *v = user;
    dgm_err err = {0};
    v->fetch = NULL;
    if (v->has_begun && result->end == DGM_FETCH_OK) {
        dgm_http_end(v->x);
        return;
    }
    if (v->has_begun) {
        dgm_http_cut(v->x); /* else the part would be a complete answer to the caller */
        return;
    }
    dgm_http_watch(v->x, NULL, NULL);
    dgm_fail(&err, view_code_of(result->end), NULL, "%.*s", DGM_P(result->what));
    dgm_inspect_refuse(&v->q, err.code, err.msg);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static void view_fetch(const dgm_front_request *q, const dgm_fetch_options *options)
{
    struct remote_view *v = dgm_http_alloc(q->x, sizeof *v);
    dgm_client *client = dgm_client_of_loop(dgm_loop_current());
    dgm_fetch_options o = *options;
    if (!client) {
        dgm_inspect_refuse(q, DGM_UNAVAILABLE, "the server is shutting down");
        return;
    }
    o.is_guarded = true;
    o.allowed = q->allowed_addresses;
    o.limits = (dgm_fetch_limits){.body_bytes = DGM_MAX_OUTPUT_BYTES,
                                  .connect_ms = 10000,
                                  .first_byte_ms = 120000,
                                  .silence_ms = 300000,
                                  .total_ms = DGM_MAX_ANSWER_MS};
    *v = (struct remote_view){.q = *q, .x = q->x};
    dgm_http_watch(q->x, &view_watcher, v);
    v->fetch = dgm_fetch_start(client, &o,
                               (dgm_fetch_handler){view_on_head, view_on_body, view_on_end, v});
}

/* The body, an object with a URL. False: the request was refused. */
static bool view_read(const dgm_front_request *q, yyjson_val **ret_body, dgm_str *ret_url)
{
    dgm_err err = {0};
    if (!q->may_call_remote) {
        dgm_inspect_refuse(
            q, DGM_FORBIDDEN,
            "calls to other servers are not allowed; the setting `inspect_remote: true` "
            "allows them for operators");
        return false;
    }
    if (dgm_turn_body(q->x, ret_body, &err)) {
        dgm_inspect_refuse(q, err.code, err.msg);
        return false;
    }
    *ret_url = dgm_json_str_member(*ret_body, "url");
    if (ret_url->n && ret_url->n <= DGM_MAX_REMOTE_URL_BYTES && !memchr(ret_url->p, 0, ret_url->n))
        return true;
    dgm_inspect_refuse(q, DGM_BAD_PARAMS, "url: expected an http or https URL");
    return false;
}

/* The URL of a card, or of the server that has it. */
void dgm_inspect_remote_card(const dgm_front_request *q)
{
    dgm_arena *a = dgm_http_arena(q->x);
    dgm_fetch_header accept = {DGM_STR("Accept"), DGM_STR("application/json")};
    yyjson_val *body;
    dgm_str url, ending = DGM_STR(".json");
    if (!view_read(q, &body, &url))
        return;
    bool is_card = url.n > ending.n && !memcmp(url.p + url.n - ending.n, ending.p, ending.n);
    while (!is_card && url.n && url.p[url.n - 1] == '/')
        url.n--;
    url = dgm_arena_printf(a, "%.*s%s", DGM_P(url), is_card ? "" : CARD_PATH);
    view_fetch(
        q, &(dgm_fetch_options){
               .method = "GET", .url = url.p, .headers = &accept, .n_headers = 1, .follows = true});
}

/* Headers of the request that the other server gets. False: it may not have this one. */
static bool view_add_header(dgm_fetch_header *headers, size_t *n, dgm_str name, yyjson_val *value)
{
    static const char *const allowed[] = {"Authorization",  "X-API-Key",        "A2A-Version",
                                          "A2A-Extensions", "X-A2A-Extensions", "Last-Event-ID"};
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        if (dgm_str_eq_nocase(name, dgm_str_from(allowed[i])) && yyjson_is_str(value) &&
            *n < MAX_HEADERS) {
            headers[(*n)++] = (dgm_fetch_header){dgm_str_from(allowed[i]), dgm_json_str(value)};
            return true;
        }
    }
    return false;
}

void dgm_inspect_remote_send(const dgm_front_request *q)
{
    dgm_arena *a = dgm_http_arena(q->x);
    dgm_fetch_header headers[MAX_HEADERS] = {
        {DGM_STR("Accept"), DGM_STR("application/json, text/event-stream")},
        {DGM_STR("Content-Type"), DGM_STR("application/json")}};
    yyjson_val *body, *key, *value;
    size_t i, max, n = 2;
    dgm_str url;
    if (!view_read(q, &body, &url))
        return;
    yyjson_val *request = dgm_json_get(body, DGM_STR("body"));
    if (!yyjson_is_obj(request)) {
        dgm_inspect_refuse(q, DGM_BAD_PARAMS, "body: expected a JSON-RPC request");
        return;
    }
    yyjson_obj_foreach (dgm_json_get(body, DGM_STR("headers")), i, max, key, value) {
        if (!view_add_header(headers, &n, dgm_json_str(key), value)) {
            dgm_inspect_refuse(
                q, DGM_BAD_PARAMS,
                "headers: expected strings; allowed names: Authorization, X-API-Key, "
                "A2A-Version, A2A-Extensions, X-A2A-Extensions, Last-Event-ID");
            return;
        }
    }
    view_fetch(q, &(dgm_fetch_options){.method = "POST",
                                       .url = dgm_arena_dup(a, url).p,
                                       .headers = headers,
                                       .n_headers = n,
                                       .body = dgm_json_text_in(a, request)});
}
