/*
 * mcp/mcp_start.c - finds out which revision a server speaks.
 *
 * server/discover is asked first. A result, or an error that only revision 2026-07-28 has, means that revision. Anything
 * else, and for a program no answer at all, means an older one: then initialize. Older servers answer unknown requests with
 * any code, so no single code decides.
 */
#include "mcp/mcp_int.h"

static const char *const legacy_versions[] = {DGM_MCP_LEGACY, "2025-06-18", "2025-03-26",
                                              "2024-11-05", NULL};

/* The list's entry that we speak too; NULL: none. */
static const char *find_legacy(dgm_str version)
{
    for (size_t i = 0; legacy_versions[i]; i++) {
        if (dgm_str_eq(version, dgm_str_from(legacy_versions[i])))
            return legacy_versions[i];
    }
    return NULL;
}

struct versions {
    bool has_modern, has_legacy;
    char names[120];
};

static struct versions read_versions(const yyjson_val *list)
{
    struct versions found = {0};
    yyjson_val *item;
    size_t i, n, used = 0;
    yyjson_arr_foreach (dgm_mcp_plain(list), i, n, item) {
        if (!yyjson_is_str(item))
            continue;
        dgm_str name = dgm_json_str(item);
        found.has_modern |= dgm_str_is(name, DGM_MCP_MODERN);
        found.has_legacy |= find_legacy(name) != NULL;
        if (name.n < 20 && used + name.n + 3 < sizeof found.names)
            used += (size_t)snprintf(found.names + used, sizeof found.names - used, "%s%.*s",
                                     used ? ", " : "", DGM_P(name));
    }
    return found;
}

static void start_fail_versions(struct mcp_session *s, const struct versions *v)
{
    dgm_mcp_session_fail(s, DGM_VERSION_NOT_SUPPORTED,
                         "it supports the revisions %s; this client supports " DGM_MCP_MODERN
                         " and " DGM_MCP_LEGACY,
                         *v->names ? v->names : "(none)");
}

static void read_capabilities(struct mcp_session *s, const yyjson_val *result)
{
    yyjson_val *tools = dgm_json_non_null(dgm_json_get(result, DGM_STR("capabilities")), "tools");
    yyjson_val *changes = dgm_json_get(tools, DGM_STR("listChanged"));
    s->has_tools = tools != NULL;
    s->has_list_changes = yyjson_is_true(changes);
}

/* ---- 2025-11-25 --------------------------------------------------------------------------------------- */

static void start_on_initialized(void *user, const struct mcp_reply *reply)
{
    struct mcp_session *s = user;
    if (s->state != MCP_INITIALIZING)
        return;
    if (!reply->result) {
        dgm_mcp_session_fail(s, reply->error.code ? reply->error.code : DGM_UNAVAILABLE,
                             "initialize failed: %.*s", DGM_P(reply->error.message));
        return;
    }
    dgm_str version = dgm_json_str_member(reply->result, "protocolVersion");
    const char *known = find_legacy(version);
    if (!known) {
        struct versions v = {0};
        snprintf(v.names, sizeof v.names, "%.*s", (int)(version.n < 20 ? version.n : 20),
                 version.n ? version.p : "");
        start_fail_versions(s, &v);
        return;
    }
    snprintf(s->version, sizeof s->version, "%s", known);
    read_capabilities(s, reply->result);
    if (!dgm_mcp_is_stdio(s)) {
        dgm_mcp_http_initialized(s); /* requests on other connections must not overtake it */
        return;
    }
    dgm_mcp_notify(s, "notifications/initialized", (dgm_str){0});
    if (s->state == MCP_INITIALIZING)
        dgm_mcp_session_ready(s);
}

void dgm_mcp_start_initialized(struct mcp_session *s)
{
    if (s->state != MCP_INITIALIZING)
        return;
    dgm_mcp_http_listen(s); /* then it is ready */
}

static void start_initialize(struct mcp_session *s)
{
    dgm_buf params;
    s->state = MCP_INITIALIZING;
    s->is_modern = false;
    s->version[0] = '\0'; /* it is not known yet: no header */
    dgm_timer_start(&s->timer, s->mcp->config.start_ms);
    dgm_buf_init(&params, 4096);
    dgm_buf_add_lit(&params, "\"protocolVersion\":\"" DGM_MCP_LEGACY
                             "\",\"capabilities\":{\"elicitation\":{\"form\":{},\"url\":{}}},"
                             "\"clientInfo\":{\"name\":\"dragoman\",\"version\":");
    dgm_json_put_str(&params, dgm_str_from(s->mcp->config.client_version));
    dgm_buf_add_char(&params, '}');
    dgm_mcp_send(s, &(struct mcp_send){.method = "initialize",
                                       .params = dgm_buf_str(&params),
                                       .on_reply = start_on_initialized,
                                       .user = s});
    dgm_buf_done(&params);
}

/* ---- 2026-07-28 --------------------------------------------------------------------------------------- */

/* The server ends the subscription, or does not have it: the list is then as old as its time to live. */
static void start_on_listen_end(void *user, const struct mcp_reply *reply)
{
    (void)user;
    (void)reply;
}

static void start_modern(struct mcp_session *s, const yyjson_val *result)
{
    s->is_modern = true;
    snprintf(s->version, sizeof s->version, "%s", DGM_MCP_MODERN);
    read_capabilities(s, result);
    if (s->has_list_changes)
        dgm_mcp_send(s, &(struct mcp_send){
                            .method = "subscriptions/listen",
                            .params = DGM_STR("\"notifications\":{\"toolsListChanged\":true}"),
                            .on_reply = start_on_listen_end,
                            .user = s,
                            .is_stream = true});
    if (s->state == MCP_PROBING || s->state == MCP_INITIALIZING)
        dgm_mcp_session_ready(s);
}

/* A program that was slow to start answers server/discover after we have sent initialize. */
static void start_cancel_initialize(struct mcp_session *s)
{
    for (struct mcp_request *r = s->requests; r; r = r->next) {
        if (r->on_reply == start_on_initialized) {
            dgm_mcp_request_cancel(r, false);
            return;
        }
    }
}

static void start_discover(struct mcp_session *s);

static void start_on_error(struct mcp_session *s, const struct mcp_reply *reply)
{
    struct versions v;
    switch (reply->error.rpc_code) {
    case DGM_MCP_UNSUPPORTED_VERSION:
        v = read_versions(dgm_json_get(reply->data, DGM_STR("supported")));
        if (v.has_modern && s->last_id < 2) /* it names what we sent: once more */
            start_discover(s);
        else if (v.has_legacy)
            start_initialize(s);
        else
            start_fail_versions(s, &v);
        return;
    case DGM_MCP_HEADER_MISMATCH:
    case DGM_MCP_MISSING_CAPABILITY:
        dgm_mcp_session_fail(s, DGM_UNAVAILABLE, "%.*s", DGM_P(reply->error.message));
        return;
    default: break;
    }
    bool has_answer = reply->error.rpc_code || (reply->status >= 400 && reply->status < 500);
    bool is_forbidden = reply->status == 401 || reply->status == 403;
    if (has_answer && !is_forbidden)
        start_initialize(s);
    else
        dgm_mcp_session_fail(s, reply->error.code, "%.*s", DGM_P(reply->error.message));
}

static void start_on_discovered(void *user, const struct mcp_reply *reply)
{
    struct mcp_session *s = user;
    bool is_late = s->state == MCP_INITIALIZING;
    if (s->state != MCP_PROBING && !is_late)
        return;
    if (!reply->result) {
        if (!is_late)
            start_on_error(s, reply);
        return;
    }
    yyjson_val *list = dgm_json_get(reply->result, DGM_STR("supportedVersions"));
    struct versions v = read_versions(list);
    bool is_legacy = v.has_legacy || !yyjson_is_arr(list); /* some answer every request */
    if (v.has_modern) {
        if (is_late)
            start_cancel_initialize(s);
        start_modern(s, reply->result);
    } else if (is_legacy && !is_late) {
        start_initialize(s);
    } else if (!is_late) {
        start_fail_versions(s, &v);
    }
}

static void start_discover(struct mcp_session *s)
{
    dgm_mcp_send(s, &(struct mcp_send){
                        .method = "server/discover", .on_reply = start_on_discovered, .user = s});
}

void dgm_mcp_start(struct mcp_session *s)
{
    const dgm_mcp_config *c = &s->mcp->config;
    dgm_err err = {0};
    s->state = MCP_PROBING;
    s->is_modern = true;
    s->last_id = 0;
    snprintf(s->version, sizeof s->version, "%s", DGM_MCP_MODERN);
    if (dgm_mcp_is_stdio(s) && dgm_mcp_stdio_start(s, &err)) {
        dgm_mcp_session_fail(s, DGM_UNAVAILABLE, "it could not be started: %s", err.msg);
        return;
    }
    if (!dgm_mcp_is_stdio(s) && !s->url)
        s->url = strdup(c->url);
    dgm_timer_start(&s->timer, dgm_mcp_is_stdio(s) ? c->start_ms / 2 + 1 : c->start_ms);
    start_discover(s);
}

void dgm_mcp_start_late(struct mcp_session *s)
{
    if (s->state == MCP_PROBING && dgm_mcp_is_stdio(s))
        start_initialize(s);
    else
        dgm_mcp_session_fail(s, DGM_UPSTREAM_TIMEOUT, "it did not answer within %g seconds",
                             (double)s->mcp->config.start_ms / 1000);
}
