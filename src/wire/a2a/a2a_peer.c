/* wire/a2a/a2a_peer.c - cards, interfaces and requests, for those who call agents. */
#include "wire/a2a/a2a_peer.h"

#include "base/limits.h"
#include "wire/a2a/a2a_card.h"

#include <ctype.h>
#include <stdio.h>

#define CARD_PATH "/.well-known/agent-card.json"

/* ---- the card ------------------------------------------------------------------------------------------------------ */

static bool names_json_file(const char *url)
{
    size_t n = strcspn(url, "?#");
    return n > 5 && memcmp(url + n - 5, ".json", 5) == 0;
}

const char *dgm_a2a_card_url(dgm_arena *a, const char *url, size_t index)
{
    size_t n = strcspn(url, "?#");
    const char *host = strstr(url, "://"), *slash;
    if (index > 1 || !host)
        return NULL;
    if (names_json_file(url))
        return index == 0 ? dgm_arena_dup(a, dgm_str_from(url)).p : NULL;
    if (index == 1) {
        slash = strchr(host + 3, '/');
        /* the card of the host would be that of another agent */
        if (!slash || !slash[1] || strstr(host + 3, "/agents/"))
            return NULL;
        n = (size_t)(slash - url);
    }
    while (n && url[n - 1] == '/')
        n--;
    return dgm_arena_printf(a, "%.*s" CARD_PATH, (int)n, url).p;
}

dgm_code dgm_a2a_read_card(dgm_arena *a, dgm_str text, const yyjson_val **ret_json,
                           const dgm_agent_card **ret_card, dgm_err *err)
{
    yyjson_val *v;
    dgm_frame frame;
    dgm_mint mint = {{0}, 0, {0}};
    dgm_reader r = {.arena = a, .mint = &mint, .err = err};
    dgm_code rc =
        dgm_json_read(a, dgm_arena_dup(a, text), DGM_MAX_OBJECT_BYTES, "object_bytes", &v, err);
    if (rc)
        return rc;
    const dgm_codec *codec = dgm_a2a_card_is_03_rest(v) ? &dgm_codec_a2a_03_rest
                             : dgm_a2a_card_is_03(v)    ? &dgm_codec_a2a_03
                                                        : &dgm_codec_a2a_10;
    if ((rc = codec->decode(&r, v, DGM_OBJECT_CARD, false, &frame)))
        return rc;
    if (ret_json)
        *ret_json = v;
    *ret_card = frame.object.it;
    return DGM_OK;
}

/* ---- interfaces ----------------------------------------------------------------------------------------------------- */

/* 0.3 and what follows it is 0.3; without a version it is 1.0. ANY_VERSION: neither. */
static dgm_a2a_version version_of(dgm_str v)
{
    if (dgm_str_starts(v, DGM_STR("1.")) || dgm_str_is(v, "1") || !v.n)
        return DGM_A2A_VERSION_10;
    return dgm_str_starts(v, DGM_STR("0.")) && v.n >= 3 && v.p[2] >= '3' ? DGM_A2A_VERSION_03
                                                                         : DGM_A2A_ANY_VERSION;
}

static dgm_a2a_binding binding_of(dgm_str name)
{
    if (dgm_str_eq_nocase(name, DGM_STR("JSONRPC")))
        return DGM_A2A_JSONRPC;
    return dgm_str_eq_nocase(name, DGM_STR("HTTP+JSON")) || dgm_str_eq_nocase(name, DGM_STR("REST"))
               ? DGM_A2A_REST
               : DGM_A2A_ANY_BINDING;
}

dgm_a2a_peer dgm_a2a_peer_at(dgm_str url, dgm_str tenant, bool is_rest, bool is_v1)
{
    return (dgm_a2a_peer){.url = url,
                          .tenant = tenant,
                          .is_rest = is_rest,
                          .is_v1 = is_v1,
                          .codec = is_v1     ? &dgm_codec_a2a_10
                                   : is_rest ? &dgm_codec_a2a_03_rest
                                             : &dgm_codec_a2a_03};
}

/* Does `newer` replace an interface that is listed: the same address, with 0.3? */
static bool replace_older(dgm_a2a_peer *peers, size_t n, const dgm_a2a_peer *newer)
{
    for (size_t i = 0; i < n; i++) {
        if (peers[i].is_rest != newer->is_rest || !dgm_str_eq(peers[i].url, newer->url))
            continue;
        if (newer->is_v1 && !peers[i].is_v1)
            peers[i] = *newer;
        return true;
    }
    return false;
}

size_t dgm_a2a_interfaces(const dgm_agent_card *card, dgm_a2a_version version,
                          dgm_a2a_binding binding, dgm_a2a_peer *peers, size_t max)
{
    size_t n = 0;
    for (size_t k = 0; k < card->interfaces.n; k++) {
        const dgm_agent_interface *i = &card->interfaces.at[k];
        dgm_a2a_version v = version_of(i->protocol_version);
        dgm_a2a_binding b = binding_of(i->protocol_binding);
        if (!v || !b || (version && v != version) || (binding && b != binding) ||
            !dgm_str_starts(i->url, DGM_STR("http")))
            continue;
        dgm_a2a_peer peer =
            dgm_a2a_peer_at(i->url, i->tenant, b == DGM_A2A_REST, v == DGM_A2A_VERSION_10);
        if (!replace_older(peers, n, &peer) && n < max)
            peers[n++] = peer;
    }
    return n;
}

bool dgm_a2a_choose_interface(const dgm_agent_card *card, dgm_a2a_version version,
                              dgm_a2a_binding binding, dgm_a2a_peer *ret_peer)
{
    return dgm_a2a_interfaces(card, version, binding, ret_peer, 1) == 1;
}

void dgm_a2a_list_interfaces(const dgm_agent_card *card, dgm_buf *to)
{
    for (size_t k = 0; k < card->interfaces.n; k++) {
        const dgm_agent_interface *i = &card->interfaces.at[k];
        dgm_buf_printf(to, "%s%.*s %.*s", k ? ", " : "", DGM_P(i->protocol_binding),
                       DGM_P(i->protocol_version));
    }
}

/* ---- requests --------------------------------------------------------------------------------------------------------- */

static void put_escaped(dgm_buf *b, dgm_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (isalnum(c) || strchr("-._~", c))
            dgm_buf_add_char(b, (char)c);
        else
            dgm_buf_printf(b, "%%%02X", c);
    }
}

static void put_query(dgm_buf *b, char *mark, const char *name, dgm_str value)
{
    if (!value.n)
        return;
    dgm_buf_add_char(b, *mark);
    dgm_buf_add_str(b, dgm_str_from(name));
    dgm_buf_add_char(b, '=');
    put_escaped(b, value);
    *mark = '&';
}

static void put_query_int(dgm_buf *b, char *mark, const char *name, dgm_opt_int n)
{
    char text[16];
    snprintf(text, sizeof text, "%d", n.value);
    put_query(b, mark, name, n.set ? dgm_str_from(text) : (dgm_str){0});
}

static void put_list_query(dgm_buf *b, const dgm_list_tasks_request *l)
{
    static const char *const states[] = {
        "TASK_STATE_UNSPECIFIED",    "TASK_STATE_SUBMITTED", "TASK_STATE_WORKING",
        "TASK_STATE_COMPLETED",      "TASK_STATE_FAILED",    "TASK_STATE_CANCELED",
        "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_REJECTED",  "TASK_STATE_AUTH_REQUIRED"};
    char mark = '?';
    put_query(b, &mark, "contextId", l->context_id);
    if (l->status.set)
        put_query(b, &mark, "status", dgm_str_from(states[l->status.value]));
    put_query_int(b, &mark, "pageSize", l->page_size);
    put_query(b, &mark, "pageToken", l->page_token);
    put_query_int(b, &mark, "historyLength", l->history_length);
}

static void put_base(const dgm_a2a_peer *p, dgm_buf *url)
{
    dgm_str base = p->url;
    while (base.n && base.p[base.n - 1] == '/')
        base.n--;
    dgm_buf_add_str(url, base);
    if (!p->is_v1 && !(base.n > 3 && memcmp(base.p + base.n - 3, "/v1", 3) == 0))
        dgm_buf_add_lit(url, "/v1");
    if (p->tenant.n) {
        dgm_buf_add_char(url, '/');
        put_escaped(url, p->tenant);
    }
}

static const char *put_task_route(dgm_method method, const dgm_task_request *task, dgm_buf *url)
{
    char mark = '?';
    dgm_buf_add_lit(url, "/tasks/");
    put_escaped(url, task->task_id);
    if (method == DGM_METHOD_CANCEL) {
        dgm_buf_add_lit(url, ":cancel");
        return "POST";
    }
    if (method == DGM_METHOD_SUBSCRIBE)
        dgm_buf_add_lit(url, ":subscribe");
    else
        put_query_int(url, &mark, "historyLength", task->history_length);
    return "GET";
}

const char *dgm_a2a_put_route(const dgm_a2a_peer *p, dgm_method method, const void *params,
                              dgm_buf *url)
{
    if (!p->is_rest) {
        dgm_buf_add_str(url, p->url);
        return "POST";
    }
    put_base(p, url);
    switch (method) {
    case DGM_METHOD_SEND: dgm_buf_add_lit(url, "/message:send"); return "POST";
    case DGM_METHOD_STREAM: dgm_buf_add_lit(url, "/message:stream"); return "POST";
    case DGM_METHOD_LIST:
        dgm_buf_add_lit(url, "/tasks");
        put_list_query(url, params);
        return "GET";
    case DGM_METHOD_EXTENDED_CARD:
        dgm_buf_add_str(url, p->is_v1 ? DGM_STR("/extendedAgentCard") : DGM_STR("/card"));
        return "GET";
    default: return put_task_route(method, params, url);
    }
}

dgm_code dgm_a2a_put_body(const dgm_a2a_peer *p, dgm_method method, void *params, dgm_arena *a,
                          dgm_buf *body, dgm_err *err)
{
    dgm_frame frame = {.envelope = p->is_rest ? DGM_ENVELOPE_NONE : DGM_ENVELOPE_REQUEST,
                       .id = dgm_json_parse_trusted(a, DGM_STR("1")),
                       .method = method,
                       .object = {dgm_a2a_methods[method].params, params}};
    dgm_writer w = {.out = body};
    if (p->is_rest && method == DGM_METHOD_CANCEL) {
        dgm_buf_add_lit(body, "{}");
        return DGM_OK;
    }
    dgm_code rc = p->codec->encode(&w, &frame, err);
    if (!rc && body->over)
        rc = dgm_fail(err, DGM_TOO_LARGE, NULL, "the message is larger than %zu bytes", body->max);
    return rc;
}
