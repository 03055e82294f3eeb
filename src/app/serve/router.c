/*
 * app/serve/router.c - Host and Origin, tokens, then the path: operations, agents, frontends.
 *
 * On loopback a foreign Host or Origin is refused: a page in the user's browser must not be able to
 * speak to the user's agents (DNS rebinding, plain cross-site posts).
 */
#include "app/serve/router.h"
#include "frontend/a2a/a2a_front.h"

#include <dragoman/convert.h>
#include <openssl/crypto.h>
#include <stdatomic.h>
#include <stdlib.h>

struct agent_front {
    const dgm_config_agent *config;
    dgm_a2a_front *a2a;
    char *card_10, *card_03;
    dgm_a2a_extension *extensions;
    dgm_arena *arena; /* of its media types */
};

struct router {
    dgm_core *core;
    dgm_store *store;
    const dgm_config *config;
    struct agent_front *agents; /* as in the config */
    size_t n_agents;
    struct agent_front *first; /* the default */
    _Atomic bool ready;
    _Atomic uint64_t requests, refused;
};

/* ---- cards ---------------------------------------------------------------------------------------------------- */

static void put_member(dgm_buf *b, const yyjson_val *own, const yyjson_val *type, const char *name,
                       const char *otherwise)
{
    const yyjson_val *v = dgm_json_get(own, dgm_str_from(name));
    if (!v)
        v = dgm_json_get(type, dgm_str_from(name));
    dgm_buf_printf(b, ",\"%s\":", name);
    if (v)
        dgm_json_put(b, v);
    else
        dgm_buf_add_str(b, dgm_str_from(otherwise));
}

static void put_interfaces(dgm_buf *b, const dgm_config_agent *a, const char *url)
{
    dgm_buf_add_lit(b, "\"supportedInterfaces\":[");
    if (a->a2a.versions & DGM_A2A_VERSION_10)
        dgm_buf_printf(b,
                       "{\"url\":\"%s\",\"protocolBinding\":\"JSONRPC\",\"protocolVersion\":"
                       "\"1.0\"}",
                       url);
    if (a->a2a.versions & DGM_A2A_VERSION_03)
        dgm_buf_printf(b,
                       "%s{\"url\":\"%s\",\"protocolBinding\":\"JSONRPC\",\"protocolVersion\":"
                       "\"0.3\"}",
                       a->a2a.versions & DGM_A2A_VERSION_10 ? "," : "", url);
    dgm_buf_add_char(b, ']');
}

/* What the config says over what the agent's type says over what every server can say. */
static dgm_code make_cards(struct router *r, struct agent_front *f, const char *base, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *arena = dgm_arena_new();
    const dgm_config_agent *a = f->config;
    const dgm_backend *backend = dgm_backend_by_type(a->type);
    const yyjson_val *own = a->card;
    const yyjson_val *type =
        backend->card ? dgm_json_made(arena, dgm_str_from(backend->card)) : NULL;
    char url[512];
    dgm_buf b;
    dgm_code rc;
    snprintf(url, sizeof url, f == r->first ? "%s/" : "%s/agents/%.*s/", base, DGM_P(a->id));
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_char(&b, '{');
    put_interfaces(&b, a, url);
    put_member(&b, own, type, "name", "\"Dragoman agent\"");
    put_member(&b, own, type, "description", "\"An agent behind Dragoman\"");
    put_member(&b, own, type, "version", "\"" DGM_VERSION "\"");
    dgm_buf_printf(&b, ",\"capabilities\":{\"streaming\":%s,\"pushNotifications\":false}",
                   a->a2a.streaming ? "true" : "false");
    put_member(&b, own, type, "defaultInputModes", "[\"text/plain\"]");
    put_member(&b, own, type, "defaultOutputModes", "[\"text/plain\"]");
    put_member(&b, own, type, "skills", "[]");
    dgm_buf_add_char(&b, '}');
    dgm_convert_options to_10 = {.from = "a2a-1.0", .to = "a2a-1.0", .object = DGM_OBJECT_CARD};
    dgm_convert_options to_03 = {.from = "a2a-1.0", .to = "a2a-0.3", .object = DGM_OBJECT_CARD};
    rc = dgm_convert(&to_10, b.p, b.n, &f->card_10, NULL, err);
    if (!rc && a->a2a.versions & DGM_A2A_VERSION_03 && a->a2a.card_headerless == DGM_CARD_HYBRID)
        rc = dgm_convert(&to_03, b.p, b.n, &f->card_03, NULL, err);
    dgm_buf_done(&b);
    return rc;
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

dgm_code router_new(dgm_core *core, const dgm_config *config, dgm_store *store,
                    struct router **ret_router, dgm_err *err)
{
    struct router *r = dgm_xcalloc(1, sizeof *r);
    (void)err;
    r->core = core;
    r->store = store;
    r->config = config;
    r->n_agents = config->agents.n;
    r->agents = dgm_xcalloc(r->n_agents, sizeof *r->agents);
    for (size_t i = 0; i < r->n_agents; i++) {
        r->agents[i].config = &config->agents.at[i];
        if (config->agents.at[i].is_default)
            r->first = &r->agents[i];
    }
    *ret_router = r;
    return DGM_OK;
}

/* What the card says of them; none: it says nothing. */
static dgm_strs media_types(struct agent_front *f, const char *name)
{
    const dgm_backend *backend = dgm_backend_by_type(f->config->type);
    yyjson_val *list = dgm_json_get(f->config->card, dgm_str_from(name)), *v;
    size_t i, n;
    if (!list && backend->card)
        list =
            dgm_json_get(dgm_json_made(f->arena, dgm_str_from(backend->card)), dgm_str_from(name));
    dgm_strs types = {dgm_new_n(f->arena, dgm_str, yyjson_arr_size(list) + 1), 0};
    yyjson_arr_foreach (list, i, n, v)
        types.at[types.n++] = dgm_json_str(v);
    return types;
}

dgm_code router_set_port(struct router *r, int port, dgm_err *err)
{
    char base[300];
    if (r->config->public_url.n)
        snprintf(base, sizeof base, "%.*s", DGM_P(r->config->public_url));
    else
        snprintf(base, sizeof base, "%s://127.0.0.1:%d", r->config->tls_cert.n ? "https" : "http",
                 port);
    for (size_t i = 0; i < r->n_agents; i++) {
        struct agent_front *f = &r->agents[i];
        const dgm_config_a2a *a2a = &f->config->a2a;
        dgm_code rc = make_cards(r, f, base, err);
        if (rc)
            return rc;
        f->arena = dgm_arena_new();
        f->extensions = dgm_new_n(f->arena, dgm_a2a_extension, a2a->extensions.n);
        for (size_t k = 0; k < a2a->extensions.n; k++)
            f->extensions[k] =
                (dgm_a2a_extension){a2a->extensions.at[k].uri, a2a->extensions.at[k].required};
        dgm_a2a_options o = {
            .agent = f->config->id,
            .errors_1_0_0 = a2a->error_table == DGM_ERROR_TABLE_100,
            .lenient_version = a2a->version_mode == DGM_VERSION_LENIENT,
            .no_10 = !(a2a->versions & DGM_A2A_VERSION_10),
            .no_03 = !(a2a->versions & DGM_A2A_VERSION_03),
            .no_streaming = !a2a->streaming,
            .no_canonical_type = !a2a->canonical_type,
            .rest_media = (dgm_a2a_media)a2a->rest_media_type,
            .tenants = r->config->tenants,
            .extensions = f->extensions,
            .n_extensions = a2a->extensions.n,
            .keep_open_at_question = a2a->stream_at_input_required == DGM_STREAM_OPEN,
            .blocking_ms = (uint64_t)a2a->blocking_limit_s * 1000,
            .card_10 = dgm_str_from(f->card_10),
            .card_03 = dgm_str_from(f->card_03),
        };
        if (a2a->media_types == DGM_MEDIA_ENFORCE) {
            o.input_modes = media_types(f, "defaultInputModes");
            o.output_modes = media_types(f, "defaultOutputModes");
        }
        f->a2a = dgm_a2a_front_new(r->core, &o);
    }
    r->ready = true;
    return DGM_OK;
}

void router_free(struct router *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n_agents; i++) {
        dgm_a2a_front_free(r->agents[i].a2a);
        dgm_free(r->agents[i].card_10);
        dgm_free(r->agents[i].card_03);
        dgm_arena_free(r->agents[i].arena);
    }
    free(r->agents);
    free(r);
}

/* ---- who is it? ---------------------------------------------------------------------------------------------------- */

static bool is_loopback_name(dgm_str host)
{
    const char *colon;
    if (host.n && host.p[0] == '[')
        return dgm_str_starts(host, DGM_STR("[::1]"));
    colon = host.n ? memchr(host.p, ':', host.n) : NULL;
    dgm_str name = {host.p, colon ? (size_t)(colon - host.p) : host.n};
    return dgm_str_eq_nocase(name, DGM_STR("localhost")) || dgm_str_is(name, "127.0.0.1");
}

static bool is_listed(dgm_strs list, dgm_str what)
{
    for (size_t i = 0; i < list.n; i++) {
        if (dgm_str_eq_nocase(list.at[i], what) || dgm_str_is(list.at[i], "*"))
            return true;
    }
    return false;
}

static bool may_come_from(const struct router *r, const dgm_http_request *q)
{
    dgm_str host = dgm_http_header_of(q, DGM_STR("host"));
    dgm_str origin = dgm_http_header_of(q, DGM_STR("origin"));
    if (r->config->is_loopback && host.n && !is_loopback_name(host) &&
        !is_listed(r->config->hosts, host))
        return false;
    if (!origin.n || is_listed(r->config->cors_origins, origin))
        return true;
    const char *slashes = origin.n > 3 ? memchr(origin.p, ':', origin.n - 2) : NULL;
    if (!slashes || memcmp(slashes, "://", 3) != 0)
        return false; /* "null" and the like */
    size_t skip = (size_t)(slashes + 3 - origin.p);
    return is_loopback_name((dgm_str){origin.p + skip, origin.n - skip});
}

static bool is_secret(dgm_str given, dgm_str secret)
{
    return given.n == secret.n && secret.n && CRYPTO_memcmp(given.p, secret.p, secret.n) == 0;
}

/* Lower case, in the exchange's arena: how header names come. */
static dgm_str lower(dgm_arena *a, dgm_str s)
{
    char *p = dgm_arena_alloc_raw(a, s.n + 1);
    for (size_t i = 0; i < s.n; i++)
        p[i] = s.p[i] >= 'A' && s.p[i] <= 'Z' ? (char)(s.p[i] + 32) : s.p[i];
    p[s.n] = 0;
    return (dgm_str){p, s.n};
}

/* Without tokens there is one owner, who has no name. */
static bool find_owner(const struct router *r, dgm_http_exchange *x, dgm_owner *ret_owner)
{
    const dgm_http_request *q = dgm_http_request_of(x);
    dgm_str auth = dgm_http_header_of(q, DGM_STR("authorization"));
    dgm_str bearer = {0};
    if (!r->config->tokens.n) {
        *ret_owner = (dgm_owner){DGM_STR(""), DGM_STR("")};
        return true;
    }
    if (auth.n > 7 && dgm_str_eq_nocase((dgm_str){auth.p, 7}, DGM_STR("bearer ")))
        bearer = (dgm_str){auth.p + 7, auth.n - 7};
    for (size_t i = 0; i < r->config->tokens.n; i++) {
        const dgm_config_token *t = &r->config->tokens.at[i];
        dgm_str given = t->kind == DGM_TOKEN_BEARER
                            ? bearer
                            : dgm_http_header_of(q, lower(dgm_http_arena(x), t->header));
        if (is_secret(given, t->secret)) {
            *ret_owner = (dgm_owner){t->tenant, t->principal};
            return true;
        }
    }
    return false;
}

/* ---- what is it? ----------------------------------------------------------------------------------------------------- */

static void say(dgm_http_exchange *x, int status, const char *body)
{
    dgm_http_respond(x, status, DGM_STR("application/json"), NULL, 0, dgm_str_from(body));
}

static bool take_operations(struct router *r, dgm_http_exchange *x, dgm_str path)
{
    dgm_err why = {0};
    if (dgm_str_is(path, "/healthz")) {
        say(x, 200, "{\"status\":\"ok\"}");
    } else if (dgm_str_is(path, "/readyz")) {
        if (r->ready && dgm_store_is_healthy(r->store, &why))
            say(x, 200, "{\"status\":\"ready\"}");
        else
            say(x, 503, "{\"status\":\"not ready\"}");
    } else if (dgm_str_is(path, "/metrics")) {
        dgm_core_stats c = dgm_core_stats_of(r->core);
        dgm_store_stats s = dgm_store_stats_of(r->store);
        dgm_str text = dgm_arena_printf(
            dgm_http_arena(x),
            "dragoman_http_requests_total %llu\ndragoman_http_refused_total %llu\n"
            "dragoman_sends_total %llu\ndragoman_resends_total %llu\ndragoman_runs_total %llu\n"
            "dragoman_messages_total %llu\ndragoman_tasks_total %llu\n"
            "dragoman_records_total %llu\ndragoman_warnings_total %llu\ndragoman_live_tasks %llu\n"
            "dragoman_store_commits_total %llu\ndragoman_store_queued %llu\n",
            (unsigned long long)r->requests, (unsigned long long)r->refused,
            (unsigned long long)c.sends, (unsigned long long)c.resends, (unsigned long long)c.runs,
            (unsigned long long)c.messages, (unsigned long long)c.tasks,
            (unsigned long long)c.records, (unsigned long long)c.warnings,
            (unsigned long long)c.live, (unsigned long long)s.commits,
            (unsigned long long)s.queued);
        dgm_http_respond(x, 200, DGM_STR("text/plain; version=0.0.4"), NULL, 0, text);
    } else {
        return false;
    }
    return true;
}

/* /agents/ID/... is that agent's, everything else the default's. */
static struct agent_front *find_agent(struct router *r, dgm_str *path)
{
    dgm_str prefix = DGM_STR("/agents/");
    if (!dgm_str_starts(*path, prefix))
        return r->first;
    dgm_str rest = {path->p + prefix.n, path->n - prefix.n};
    const char *slash = rest.n ? memchr(rest.p, '/', rest.n) : NULL;
    dgm_str id = {rest.p, slash ? (size_t)(slash - rest.p) : rest.n};
    for (size_t i = 0; i < r->n_agents; i++) {
        if (dgm_str_eq(r->agents[i].config->id, id)) {
            *path = slash ? (dgm_str){slash, rest.n - id.n} : DGM_STR("/");
            return &r->agents[i];
        }
    }
    return NULL;
}

static void on_request(void *user, dgm_http_exchange *x, const dgm_http_request *q)
{
    struct router *r = user;
    dgm_owner owner;
    dgm_err err = {0};
    struct agent_front *f;
    dgm_str path = q->path;
    atomic_fetch_add_explicit(&r->requests, 1, memory_order_relaxed);
    if (!may_come_from(r, q)) {
        say(x, 403,
            "{\"error\":{\"code\":403,\"status\":\"PERMISSION_DENIED\",\"message\":"
            "\"this server does not answer to that Host or Origin\"}}");
        return;
    }
    if (take_operations(r, x, path))
        return;
    if (!r->ready) {
        say(x, 503,
            "{\"error\":{\"code\":503,\"status\":\"UNAVAILABLE\",\"message\":"
            "\"the server is starting\"}}");
        return;
    }
    dgm_str card_path = DGM_STR("/.well-known/agent-card.json");
    bool card = path.n >= card_path.n &&
                memcmp(path.p + path.n - card_path.n, card_path.p, card_path.n) == 0;
    if (!find_owner(r, x, &owner)) {
        static const dgm_http_header headers[] = {{{"WWW-Authenticate", 16}, {"Bearer", 6}}};
        if (!card) {
            f = find_agent(r, &path);
            dgm_fail(&err, DGM_UNAUTHENTICATED, NULL, "send a token");
            dgm_a2a_front_refuse((f ? f : r->first)->a2a, x, path, &err, headers, 1);
            return;
        }
        owner = (dgm_owner){DGM_STR(""), DGM_STR("")};
    }
    f = find_agent(r, &path);
    dgm_a2a_caller who = {.owner = owner, .any_tenant = !r->config->tokens.n};
    if (f && dgm_a2a_front_take(f->a2a, x, &who, path))
        return;
    dgm_fail(&err, DGM_NO_SUCH_METHOD, NULL, "there is nothing at this address");
    dgm_a2a_front_refuse((f ? f : r->first)->a2a, x, path, &err, NULL, 0);
}

static void on_refused(void *user, int status, const char *why)
{
    struct router *r = user;
    (void)status;
    (void)why;
    atomic_fetch_add_explicit(&r->refused, 1, memory_order_relaxed);
}

dgm_http_handler router_handler(struct router *r)
{
    return (dgm_http_handler){.on_request = on_request, .on_refused = on_refused, .user = r};
}
