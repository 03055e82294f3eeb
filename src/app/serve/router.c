/* app/serve/router.c - checks the head of a request, then calls the handler of its route. */
#include "app/serve/router.h"
#include "app/serve/gate.h"
#include "app/serve/metrics.h"
#include "app/serve/pages.h"
#include "app/serve/routes.h"
#include "base/limits.h"

#include <stdatomic.h>
#include <stdlib.h>

#define MAX_REQUEST_ID 63 /* characters */
#define TEXT_OF(x) TEXT_OF_(x)
#define TEXT_OF_(x) #x

/* What is remembered of a request until it has its answer. */
struct visit {
    dgm_front_note note; /* first: frontends know only this */
    dgm_site *site;
    uint64_t began_ns;
    uint64_t bytes_in;
    uint64_t number;
    const char *request_id; /* the caller's; NULL: none */
    struct head *head;      /* in the arena, so only until a handler has the request */
};

/* What the head of a request decides. */
struct head {
    dgm_front_request q;
    const dgm_site_agent *agent; /* NULL: there is no such agent */
    dgm_gate_word word;
    bool is_preflight;
};

/* Bytes that the requests of a principal hold. It stays as long as the router: requests of an old config and of a
 * new one count together. */
struct principal {
    dgm_str tenant, name;
    dgm_http_budget budget;
    struct principal *next;
};

struct lane { /* of one loop */
    dgm_site *site;
    uint64_t n_requests;
    char pad[48]; /* of two loops never in one cache line */
};

struct dgm_router {
    dgm_router_options o;
    dgm_metrics *metrics;
    _Atomic int64_t *open_streams; /* of the metrics */
    dgm_route_tree *routes;
    struct lane lanes[DGM_MAX_LOOPS];
    _Atomic(const char *) reason;
    dgm_site *sites; /* all there are, the newest first: of the thread that reloads */
    _Atomic(struct principal *) principals; /* only added to, by the thread that reloads */
    dgm_http_budget *peers;                 /* DGM_HTTP_PEERS, for servers without tokens */
    dgm_arena *arena;                       /* of the principals */
};

/* ---- life ---------------------------------------------------------------------------------------------------- */

dgm_router *dgm_router_new(const dgm_router_options *o)
{
    dgm_router *r = dgm_xcalloc(1, sizeof *r);
    r->o = *o;
    r->metrics = dgm_metrics_new(o->loops->n);
    r->open_streams = dgm_metrics_streams(r->metrics);
    r->routes = dgm_route_tree_new(dgm_frontends);
    r->reason = "it is starting";
    r->peers = dgm_xcalloc(DGM_HTTP_PEERS, sizeof *r->peers);
    r->arena = dgm_arena_new();
    return r;
}

void dgm_router_free(dgm_router *r)
{
    if (!r)
        return;
    while (r->sites) {
        dgm_site *s = r->sites;
        r->sites = s->next;
        dgm_site_free(s);
    }
    dgm_metrics_free(r->metrics);
    dgm_route_tree_free(r->routes);
    dgm_arena_free(r->arena);
    free(r->peers);
    free(r);
}

void dgm_router_set_reason(dgm_router *r, const char *why_not_ready)
{
    r->reason = why_not_ready;
}

const dgm_config *dgm_router_config(const dgm_router *r)
{
    return r->sites->config;
}

/* ---- another config --------------------------------------------------------------------------------------------- */

struct change {
    struct lane *lane;
    dgm_site *site;
};

static void take_site(void *arg)
{
    struct change *c = arg;
    if (c->lane->site)
        atomic_fetch_sub(&c->lane->site->refs, 1);
    c->lane->site = c->site;
    free(c);
}

/* Sites without requests go, but only when they had none at the last reload either: whoever left it last
 * may still be on its way out. */
static void sweep(dgm_router *r)
{
    for (dgm_site **at = &r->sites; *at;) {
        dgm_site *s = *at;
        bool idle = atomic_load(&s->refs) == 0;
        if (idle && s->was_idle) {
            *at = s->next;
            dgm_site_free(s);
        } else {
            s->was_idle = idle;
            at = &s->next;
        }
    }
}

static struct principal *principal_of(dgm_router *r, dgm_owner owner)
{
    struct principal *p = atomic_load_explicit(&r->principals, memory_order_acquire);
    while (p && !(dgm_str_eq(p->name, owner.principal) && dgm_str_eq(p->tenant, owner.tenant)))
        p = p->next;
    return p;
}

static void set_budgets(dgm_router *r, const dgm_config *c)
{
    size_t limit = (size_t)c->limits.in_flight_bytes_per_principal;
    for (size_t i = 0; i < c->tokens.n; i++) {
        const dgm_config_token *t = &c->tokens.at[i];
        if (principal_of(r, (dgm_owner){t->tenant, t->principal}))
            continue;
        struct principal *p = dgm_new(r->arena, struct principal);
        p->tenant = dgm_arena_dup(r->arena, t->tenant);
        p->name = dgm_arena_dup(r->arena, t->principal);
        p->next = r->principals;
        atomic_store_explicit(&r->principals, p, memory_order_release);
    }
    for (struct principal *p = r->principals; p; p = p->next)
        p->budget.limit = limit;
    for (size_t i = 0; i < DGM_HTTP_PEERS; i++)
        r->peers[i].limit = limit;
}

dgm_code dgm_router_use(dgm_router *r, dgm_config *config, dgm_err *err)
{
    dgm_site *site;
    size_t n = r->o.loops->n;
    dgm_code rc =
        dgm_site_new(r->o.core, r->o.agents, config, dgm_loop_unix_ms() / 1000, &site, err);
    if (rc)
        return rc;
    sweep(r);
    set_budgets(r, config);
    site->refs = (int64_t)n;
    site->next = r->sites;
    r->sites = site;
    for (size_t i = 0; i < n; i++) {
        struct change *c = dgm_xcalloc(1, sizeof *c);
        *c = (struct change){&r->lanes[i], site};
        dgm_loop_post(dgm_loops_at(r->o.loops, i), take_site, c);
    }
    return DGM_OK;
}

/* ---- for pages ------------------------------------------------------------------------------------------------------ */

dgm_router *dgm_router_of(dgm_http_exchange *x)
{
    return dgm_http_user(x);
}

dgm_loops *dgm_router_loops(const dgm_router *r)
{
    return r->o.loops;
}

const dgm_site *dgm_router_site_of(dgm_http_exchange *x)
{
    return ((struct visit *)*dgm_http_tag(x))->site;
}

bool dgm_router_is_ready(dgm_router *r, dgm_arena *a, dgm_str *ret_why)
{
    const char *reason = atomic_load(&r->reason);
    dgm_err why = {0};
    if (reason)
        *ret_why = dgm_str_from(reason);
    else if (!dgm_store_is_healthy(r->o.store, &why))
        *ret_why = dgm_arena_printf(a, "the store: %s", why.msg);
    else
        return true;
    return false;
}

void dgm_router_put_metrics(dgm_router *r, dgm_arena *a, dgm_buf *out)
{
    dgm_str why;
    dgm_metrics_put(r->metrics, out, r->o.core, r->o.store, dgm_router_is_ready(r, a, &why));
}

/* ---- refusals ------------------------------------------------------------------------------------------------------- */

static void router_refuse(const struct head *h, dgm_code code, const char *why,
                          const dgm_http_header *headers, size_t n)
{
    dgm_err err = {0};
    dgm_fail(&err, code, NULL, "%s", why);
    h->q.reporter->refuse(&h->q, &err, headers, n);
}

static void refuse_stranger(const dgm_site *s, const struct head *h)
{
    dgm_http_header ask = {DGM_STR("WWW-Authenticate"),
                           dgm_gate_challenge(dgm_http_arena(h->q.x), s->config, h->word)};
    router_refuse(h, DGM_UNAUTHENTICATED,
                  h->word == DGM_GATE_WRONG ? "unknown token or key" : "missing token or key", &ask,
                  1);
}

/* True: the caller may not use this route, and the request was refused. */
static bool refuse_caller(const dgm_site *s, const struct head *h)
{
    if (h->q.access == DGM_ACCESS_PUBLIC)
        return false;
    if (h->word == DGM_GATE_MISSING || h->word == DGM_GATE_WRONG) {
        refuse_stranger(s, h);
        return true;
    }
    bool may_inspect =
        h->q.access == DGM_ACCESS_INSPECTOR && dgm_config_lets_owners_inspect(s->config);
    if (h->q.access == DGM_ACCESS_CALLER || may_inspect ||
        dgm_gate_is_operator(s->config, dgm_http_request_of(h->q.x)))
        return false;
    router_refuse(h, DGM_FORBIDDEN,
                  s->config->tokens.n ? "this path needs a token with `role: operator`"
                                      : "on a server without tokens this path is for local callers",
                  NULL, 0);
    return true;
}

static void refuse_path(const dgm_site *s, const struct head *h)
{
    const dgm_frontend *f = h->q.reporter;
    router_refuse(h, DGM_NO_SUCH_METHOD,
                  !h->agent ? dgm_pages_unknown_agent(s, dgm_http_arena(h->q.x), h->q.agent_id)
                  : f->unknown_path ? f->unknown_path
                                    : "unknown path; GET / lists the paths of this server",
                  NULL, 0);
}

void dgm_router_refuse_with(dgm_http_exchange *x, dgm_code code, const char *why)
{
    const struct visit *v = *dgm_http_tag(x);
    router_refuse(v->head, code, why, NULL, 0);
}

void dgm_router_refuse_path(const dgm_front_request *q)
{
    struct visit *v = *dgm_http_tag(q->x);
    if (v->head->word == DGM_GATE_MISSING || v->head->word == DGM_GATE_WRONG)
        refuse_stranger(v->site, v->head);
    else
        refuse_path(v->site, v->head);
}

/* ---- memory ------------------------------------------------------------------------------------------------------------- */

static size_t max_body_of(const dgm_site *s, const struct head *h)
{
    size_t most = (size_t)s->config->limits.http_body_bytes;
    bool is_large = h->agent && h->q.route && h->q.route->body != DGM_BODY_SMALL;
    return is_large || most < DGM_MAX_SMALL_BODY_BYTES ? most : DGM_MAX_SMALL_BODY_BYTES;
}

/* Without tokens all local callers are one; others count by their address. */
static dgm_http_budget *budget_of(dgm_router *r, const dgm_http_exchange *x, dgm_owner owner,
                                  bool has_tokens)
{
    size_t peer = dgm_http_peer(x);
    struct principal *p = has_tokens ? principal_of(r, owner) : NULL;
    return p ? &p->budget : !has_tokens && peer < DGM_HTTP_PEERS ? &r->peers[peer] : NULL;
}

static void refuse_body(const struct head *h, dgm_http_refusal refusal)
{
    if (refusal == DGM_HTTP_TOO_LARGE)
        router_refuse(
            h, DGM_TOO_LARGE,
            "the body is too large (limit http_body_bytes; for paths that accept no messages "
            "small_body_bytes): send less at once",
            NULL, 0);
    else if (refusal == DGM_HTTP_CALLER_FULL)
        router_refuse(h, DGM_RATE_LIMITED,
                      "your requests in progress hold too many bytes (limit "
                      "in_flight_bytes_per_principal): wait for one of them to end, then try again",
                      NULL, 0);
    else
        router_refuse(
            h, DGM_UNAVAILABLE,
            "the requests in progress hold too many bytes (limit in_flight_bytes): try again "
            "later",
            NULL, 0);
}

/* False: the body is larger than its path allows, or has more values than are decoded at once, and the request was
 * answered. Only for bodies above DGM_MAX_SMALL_BODY_BYTES. */
static bool check_body(const dgm_site *s, const struct head *h, const dgm_http_request *q)
{
    size_t n = q->body.n;
    if (n > max_body_of(s, h)) {
        refuse_body(h, DGM_HTTP_TOO_LARGE);
        return false;
    }
    if (n / 2 < DGM_MAX_JSON_VALUES || /* it cannot have as many */
        (h->q.route && h->q.route->body == DGM_BODY_STREAM) ||
        dgm_json_count_values(q->body, DGM_MAX_JSON_VALUES) <= DGM_MAX_JSON_VALUES)
        return true;
    router_refuse(h, DGM_TOO_LARGE,
                  "the body has more JSON values than the limit json_values of " TEXT_OF(
                      DGM_MAX_JSON_VALUES) ": send less at once, or send it as a file",
                  NULL, 0);
    return false;
}

/* ---- requests ------------------------------------------------------------------------------------------------------------ */

/* What the caller of a frontend with needs_role may do. */
static void set_role(const dgm_config *c, const dgm_http_request *r, dgm_front_request *q)
{
    q->is_operator = dgm_gate_is_operator(c, r);
    q->may_inspect = q->is_operator || dgm_config_lets_owners_inspect(c);
    q->may_call_remote = q->is_operator && c->inspect_remote;
    if (q->may_call_remote)
        q->allowed_addresses = dgm_agents_allowed_addresses(dgm_http_arena(q->x), c);
}

/* Finds the route and the caller. A request that comes in two pieces, head and body, gets here twice. */
static struct visit *visit_of(dgm_router *r, dgm_http_exchange *x, const dgm_http_request *q,
                              bool *ret_is_new)
{
    struct visit *v = *dgm_http_tag(x);
    *ret_is_new = !v;
    if (v) {
        v->bytes_in = q->body.n;
        return v;
    }
    struct lane *lane = &r->lanes[dgm_loop_current()->index];
    v = *dgm_http_tag(x) = dgm_http_alloc(x, sizeof *v);
    v->note.n_streams = r->open_streams;
    v->site = lane->site;
    v->began_ns = uv_hrtime();
    v->bytes_in = q->body.n;
    v->number = ++lane->n_requests;
    if (v->site)
        atomic_fetch_add_explicit(&v->site->refs, 1, memory_order_relaxed);

    /* Callers send an id to find their request again. One that does not fit into a line of a log is ignored. */
    dgm_str id = dgm_http_header_of(q, DGM_STR("x-request-id"));
    size_t i = 0;
    while (i < id.n && id.p[i] > ' ' && id.p[i] <= '~' && id.p[i] != '"' && id.p[i] != '\\')
        i++;
    if (id.n && i == id.n && id.n <= MAX_REQUEST_ID)
        v->request_id = dgm_http_keep_text(x, id);

    struct head *h = v->head = dgm_new(dgm_http_arena(x), struct head);
    h->q.x = x;
    dgm_route_match(r->routes, q->method, q->path, &h->q);
    v->note.front = h->q.front;
    if (h->q.route)
        v->note.operation = h->q.route->operation;
    if (!v->site)
        return v;
    h->q.turns = v->site->turns;
    if (h->q.front && h->q.front->serves_early)
        return v; /* no agent, and any caller */
    dgm_site_agent *agent = dgm_site_find(v->site, h->q.agent_id);
    h->agent = agent;
    if (h->q.agent_id.p && agent)
        h->q.agent = agent->turn_agent;
    h->q.any_tenant = !v->site->config->tokens.n;
    h->word = dgm_gate_owner(v->site->config, q, &h->q.owner, &h->q.may_set);
    if (h->q.front && h->q.front->needs_role)
        set_role(v->site->config, q, &h->q);
    /* Browsers ask before they send a request of another origin; operations are not for pages. */
    h->is_preflight = dgm_str_is(q->method, "OPTIONS") && dgm_gate_is_preflight(q);
    return v;
}

static void respond_starting(dgm_http_exchange *x)
{
    dgm_pages_respond(x, 503,
                      DGM_STR("{\"error\":{\"code\":503,\"status\":\"UNAVAILABLE\",\"message\":"
                              "\"the server is starting\"}}"));
}

/* True: the request has its answer. Host and Origin are checked before anything else. */
static bool refuse_head(struct visit *v, const dgm_http_request *q, bool is_new)
{
    const struct head *h = v->head;
    const char *no = v->site && is_new ? dgm_gate_refuses(v->site->config, q) : NULL;
    if (no) {
        router_refuse(h, DGM_FORBIDDEN, no, NULL, 0);
        return true;
    }
    if (v->site && is_new && (v->request_id || dgm_http_header_of(q, DGM_STR("origin")).n)) {
        dgm_http_header *also = dgm_new_n(dgm_http_arena(h->q.x), dgm_http_header, 4);
        size_t n = dgm_gate_cors(q, also);
        if (v->request_id)
            also[n++] = (dgm_http_header){DGM_STR("X-Request-Id"), dgm_str_from(v->request_id)};
        dgm_http_add_headers(h->q.x, also, n);
    }
    if (v->site || (h->q.front && h->q.front->serves_early))
        return false;
    respond_starting(h->q.x);
    return true;
}

/* The body has not arrived: what is refused here is not waited for. */
static void on_head(void *user, dgm_http_exchange *x, const dgm_http_request *q)
{
    dgm_router *r = user;
    bool is_new;
    struct visit *v = visit_of(r, x, q, &is_new);
    const struct head *h = v->head;
    const dgm_site *s = v->site;
    if (refuse_head(v, q, is_new))
        return;
    if (!s) {
        dgm_http_set_max_body(x, DGM_MAX_SMALL_BODY_BYTES);
        return;
    }
    if (!h->is_preflight && h->q.access != DGM_ACCESS_PUBLIC) {
        if (refuse_caller(s, h))
            return;
        if (!h->agent || !h->q.allow) {
            refuse_path(s, h);
            return;
        }
    }
    dgm_http_budget *b = budget_of(r, x, h->q.owner, s->config->tokens.n);
    dgm_http_set_max_body(x, max_body_of(s, h));
    if (b)
        dgm_http_set_budget(x, b);
}

static void on_body_refused(void *user, dgm_http_exchange *x, const dgm_http_request *q,
                            dgm_http_refusal refusal)
{
    bool is_new;
    struct visit *v = visit_of(user, x, q, &is_new);
    if (refuse_head(v, q, is_new))
        return;
    if (!v->site)
        respond_starting(x);
    else if (v->head->is_preflight || !refuse_caller(v->site, v->head))
        refuse_body(v->head, refusal);
}

static void on_request(void *user, dgm_http_exchange *x, const dgm_http_request *q)
{
    bool is_new;
    struct visit *v = visit_of(user, x, q, &is_new);
    const struct head *h = v->head;
    const dgm_site *s = v->site;
    if (refuse_head(v, q, is_new))
        return;
    if (h->is_preflight) {
        dgm_http_header headers[3];
        size_t n = dgm_gate_preflight(dgm_http_arena(x), s->config, q, headers);
        dgm_http_respond(x, 204, (dgm_str){0}, headers, n, (dgm_str){0});
        return;
    }
    if (s &&
        ((q->body.n > DGM_MAX_SMALL_BODY_BYTES && !check_body(s, h, q)) || refuse_caller(s, h)))
        return;
    if (h->q.route && (h->agent || h->q.route->scope != DGM_SCOPE_AGENT))
        h->q.route->handle(&h->q);
    else if (!h->q.route && h->q.allow && (h->agent || h->q.front->serves_early))
        h->q.front->refuse_method(&h->q, h->q.allow);
    else
        refuse_path(s, h);
}

static void log_visit(dgm_router *r, dgm_http_exchange *x, const struct visit *v, int status,
                      uint64_t ns, uint64_t bytes, dgm_config_log_level level)
{
    char number[40];
    const dgm_http_request *q = dgm_http_request_of(x);
    snprintf(number, sizeof number, "%zu-%llu", dgm_loop_current()->index,
             (unsigned long long)v->number);
    dgm_log_field fields[] = {
        {"method", q->method, 0},
        {"path", q->path, 0},
        {"status", {0}, status ? status : 499},
        {"ms", {0}, (double)ns / 1e6},
        {"bytes", {0}, (double)bytes},
        {"operation", dgm_str_from(v->note.operation ? v->note.operation : ""), 0},
        {"task", dgm_str_from(v->note.task ? v->note.task : ""), 0},
        {"request",
         dgm_str_from(v->request_id     ? v->request_id
                      : v->note.request ? v->note.request
                                        : number),
         0},
        {"turn", {0}, v->note.turn},
    };
    dgm_logger_say(r->o.logger, level, v->note.is_stream ? "stream" : "request", fields,
                   sizeof fields / sizeof *fields - !v->note.turn);
}

static void on_answered(void *user, dgm_http_exchange *x, int status, uint64_t bytes)
{
    dgm_router *r = user;
    struct visit *v = *dgm_http_tag(x);
    uint64_t ns = uv_hrtime() - v->began_ns;
    dgm_metrics_count(r->metrics, dgm_loop_current()->index, &v->note, status, ns, v->bytes_in,
                      bytes);
    dgm_config_log_level level = status >= 500                              ? DGM_LOG_WARN
                                 : v->note.front && v->note.front->is_probe ? DGM_LOG_DEBUG
                                                                            : DGM_LOG_INFO;
    if (dgm_logger_wants(r->o.logger, level))
        log_visit(r, x, v, status, ns, bytes, level);
    if (v->site)
        atomic_fetch_sub_explicit(&v->site->refs, 1, memory_order_release);
}

static void on_refused(void *user, int status, const char *why)
{
    dgm_router *r = user;
    dgm_metrics_refused(r->metrics, status);
    dgm_logger_says(r->o.logger, DGM_LOG_INFO, "refused", {"status", {0}, status},
                    {"why", dgm_str_from(why), 0});
}

dgm_http_handler dgm_router_handler(dgm_router *r)
{
    return (dgm_http_handler){.on_request = on_request,
                              .on_head = on_head,
                              .on_body_refused = on_body_refused,
                              .on_refused = on_refused,
                              .on_answered = on_answered,
                              .user = r};
}
