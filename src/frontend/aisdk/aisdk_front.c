/* frontend/aisdk/aisdk_front.c - paths and refusals. */
#include "frontend/aisdk/aisdk_front_int.h"
#include "frontend/words.h"

/* ---- paths ------------------------------------------------------------------------------------------------- */

struct aisdk_path aisdk_path_of(dgm_str path)
{
    static const struct {
        dgm_str end;
        enum aisdk_route route;
    } ends[] = {{{"/stream", 7}, AISDK_STREAM},
                {{"/cancel", 7}, AISDK_CANCEL},
                {{"/messages", 9}, AISDK_MESSAGES}};
    struct aisdk_path none = {0};
    if (dgm_str_is(path, "/ai-sdk"))
        return (struct aisdk_path){.route = AISDK_CHAT};
    if (!dgm_str_starts(path, DGM_STR("/ai-sdk/")))
        return none;
    path = (dgm_str){path.p + 8, path.n - 8};
    const char *slash = path.n ? memchr(path.p, '/', path.n) : NULL;
    size_t n = slash ? (size_t)(slash - path.p) : 0;
    for (size_t i = 0; n && i < sizeof ends / sizeof *ends; i++) {
        if (dgm_str_eq((dgm_str){path.p + n, path.n - n}, ends[i].end))
            return (struct aisdk_path){ends[i].route, {path.p, n}};
    }
    return none;
}

/* ---- refusals ---------------------------------------------------------------------------------------------- */

static int status_of(dgm_code code)
{
    return code == DGM_CONTENT_TYPE_NOT_SUPPORTED ? 415 : dgm_code_http(code, false);
}

void aisdk_refuse(dgm_http_exchange *x, const dgm_err *err, const dgm_http_header *headers,
                  size_t n)
{
    static const dgm_http_header later = {{"Retry-After", 11}, {"1", 1}};
    dgm_str text = dgm_str_from(err->msg[0] ? err->msg : dgm_code_message(err->code));
    if (err->at[0])
        text = dgm_arena_printf(dgm_http_arena(x), "%.*s (at %s)", DGM_P(text), err->at);
    if (!n && (err->code == DGM_UNAVAILABLE || err->code == DGM_RATE_LIMITED)) {
        headers = &later;
        n = 1;
    }
    dgm_http_respond(x, status_of(err->code), DGM_STR("text/plain; charset=utf-8"), headers, n,
                     text);
}

void aisdk_give_nothing(dgm_http_exchange *x)
{
    static const dgm_http_header not_kept = {{"Cache-Control", 13}, {"no-store", 8}};
    dgm_http_respond(x, 204, (dgm_str){0}, &not_kept, 1, (dgm_str){0});
}

static void refuse_method(dgm_http_exchange *x, const char *allow)
{
    dgm_http_header header = {DGM_STR("Allow"), dgm_str_from(allow)};
    dgm_http_respond(x, 405, DGM_STR("text/plain; charset=utf-8"), &header, 1,
                     dgm_arena_printf(dgm_http_arena(x), "this address takes %s", allow));
}

static bool refuse(dgm_http_exchange *x, dgm_str path, const dgm_err *err,
                   const dgm_http_header *headers, size_t n)
{
    if (aisdk_path_of(path).route == AISDK_NONE)
        return false;
    dgm_front_note_kind(x, DGM_FRONT_AISDK, NULL);
    aisdk_refuse(x, err, headers, n);
    return true;
}

/* ---- requests ---------------------------------------------------------------------------------------------- */

struct way {
    const char *allow;
    const char *operation; /* for logs */
    void (*take)(struct aisdk_ask *ask);
};

/* take NULL: the path does not take the method. */
static struct way way_of(enum aisdk_route route, dgm_str method)
{
    static const struct way ways[] = {
        [AISDK_CHAT] = {"POST, OPTIONS", "Chat", aisdk_chat},
        [AISDK_STREAM] = {"GET, DELETE, OPTIONS", "ResumeChat", aisdk_stream},
        [AISDK_CANCEL] = {"POST, OPTIONS", "CancelChat", aisdk_cancel},
        [AISDK_MESSAGES] = {"GET, HEAD, OPTIONS", "ChatMessages", aisdk_messages},
    };
    bool get = dgm_str_is(method, "GET"), post = dgm_str_is(method, "POST");
    struct way way = ways[route];
    if (route == AISDK_STREAM && dgm_str_is(method, "DELETE"))
        way = ways[AISDK_CANCEL];
    else if (route == AISDK_MESSAGES ? !get && !dgm_str_is(method, "HEAD")
                                     : !(route == AISDK_STREAM ? get : post))
        way.take = NULL;
    return way;
}

static bool take(const dgm_turn_request *q)
{
    struct aisdk_path path = aisdk_path_of(q->path);
    if (path.route == AISDK_NONE)
        return false;
    dgm_arena *a = dgm_http_arena(q->x);
    struct aisdk_ask *ask = dgm_new(a, struct aisdk_ask);
    struct way way = way_of(path.route, dgm_http_request_of(q->x)->method);
    ask->q = *q;
    if (!ask->q.agent)
        ask->q.agent = dgm_turns_options_of(q->turns)->first;
    dgm_front_note_kind(q->x, DGM_FRONT_AISDK, way.operation);
    if (!way.take) {
        refuse_method(q->x, way.allow);
    } else if (path.chat.n && !dgm_percent_decode(a, path.chat, false, &ask->chat)) {
        dgm_err err = {0};
        dgm_fail(&err, DGM_BAD_PARAMS, NULL,
                 "invalid chat id in the path: percent-encode its UTF-8");
        aisdk_refuse(q->x, &err, NULL, 0);
    } else {
        way.take(ask);
    }
    return true;
}

const dgm_turn_front dgm_front_aisdk = {.name = "ai-sdk", .take = take, .refuse = refuse};
