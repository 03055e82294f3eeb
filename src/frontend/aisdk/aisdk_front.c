/* frontend/aisdk/aisdk_front.c - paths and refusals. */
#include "frontend/aisdk/aisdk_front_int.h"
#include "frontend/words.h"

/* ---- refusals ---------------------------------------------------------------------------------------------- */

static int aisdk_front_status_of(dgm_code code)
{
    return code == DGM_CONTENT_TYPE_NOT_SUPPORTED ? 415 : dgm_code_http(code, false);
}

void dgm_aisdk_refuse(dgm_http_exchange *x, const dgm_err *err, const dgm_http_header *headers,
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
    dgm_http_respond(x, aisdk_front_status_of(err->code), DGM_STR("text/plain; charset=utf-8"),
                     headers, n, text);
}

void dgm_aisdk_send_nothing(dgm_http_exchange *x)
{
    static const dgm_http_header not_kept = {{"Cache-Control", 13}, {"no-store", 8}};
    dgm_http_respond(x, 204, (dgm_str){0}, &not_kept, 1, (dgm_str){0});
}

static void aisdk_refuse_method(const dgm_front_request *q, const char *allow)
{
    dgm_http_header header = {DGM_STR("Allow"), dgm_str_from(allow)};
    dgm_http_respond(q->x, 405, DGM_STR("text/plain; charset=utf-8"), &header, 1,
                     dgm_arena_printf(dgm_http_arena(q->x), "this address takes %s", allow));
}

static void aisdk_refuse_request(const dgm_front_request *q, const dgm_err *err,
                                 const dgm_http_header *headers, size_t n)
{
    dgm_aisdk_refuse(q->x, err, headers, n);
}

/* ---- requests ---------------------------------------------------------------------------------------------- */

/* NULL: the path is invalid, and the request was refused. */
static struct aisdk_ask *aisdk_new_ask(const dgm_front_request *q)
{
    dgm_arena *a = dgm_http_arena(q->x);
    struct aisdk_ask *ask = dgm_new(a, struct aisdk_ask);
    dgm_err err = {0};
    ask->q = *q;
    if (!ask->q.agent)
        ask->q.agent = q->turns->o.first;
    if (!q->params[0].n || dgm_percent_decode(a, q->params[0], false, &ask->chat))
        return ask;
    dgm_fail(&err, DGM_BAD_PARAMS, NULL, "invalid chat id in the path: percent-encode its UTF-8");
    dgm_aisdk_refuse(q->x, &err, NULL, 0);
    return NULL;
}

#define AISDK_HANDLER(name)                                                                        \
    static void name##_request(const dgm_front_request *q)                                         \
    {                                                                                              \
        struct aisdk_ask *ask = aisdk_new_ask(q);                                                  \
        if (ask)                                                                                   \
            dgm_##name(ask);                                                                       \
    }
AISDK_HANDLER(aisdk_chat)
AISDK_HANDLER(aisdk_stream)
AISDK_HANDLER(aisdk_cancel)
AISDK_HANDLER(aisdk_messages)

/* clang-format off */
static const dgm_route aisdk_routes[] = {
    {DGM_ROUTE_POST,   "/ai-sdk",                 "Chat",         DGM_ACCESS_CALLER, DGM_BODY_MESSAGES, aisdk_chat_request,     0, DGM_SCOPE_AGENT},
    {DGM_ROUTE_STREAM, "/ai-sdk/{chat}/stream",   "ResumeChat",   DGM_ACCESS_CALLER, DGM_BODY_SMALL,    aisdk_stream_request,   0, DGM_SCOPE_AGENT},
    {DGM_ROUTE_DELETE, "/ai-sdk/{chat}/stream",   "CancelChat",   DGM_ACCESS_CALLER, DGM_BODY_SMALL,    aisdk_cancel_request,   0, DGM_SCOPE_AGENT},
    {DGM_ROUTE_POST,   "/ai-sdk/{chat}/cancel",   "CancelChat",   DGM_ACCESS_CALLER, DGM_BODY_SMALL,    aisdk_cancel_request,   0, DGM_SCOPE_AGENT},
    {DGM_ROUTE_GET,    "/ai-sdk/{chat}/messages", "ChatMessages", DGM_ACCESS_CALLER, DGM_BODY_SMALL,    aisdk_messages_request, 0, DGM_SCOPE_AGENT},
};
/* clang-format on */

const dgm_frontend dgm_front_aisdk = {.name = "ai-sdk",
                                      .title = "AI SDK",
                                      .base = "/ai-sdk",
                                      DGM_ROUTES(aisdk_routes),
                                      .lists_options = true,
                                      .refuse = aisdk_refuse_request,
                                      .refuse_method = aisdk_refuse_method};
