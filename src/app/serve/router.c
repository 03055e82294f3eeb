/* app/serve/router.c - past the gate, then by path. */
#include "app/serve/router.h"
#include "app/serve/debug.h"
#include "app/serve/fronts.h"
#include "app/serve/gate.h"
#include "app/serve/index.h"
#include "app/serve/metrics.h"
#include "base/limits.h"
#include "frontend/frontend.h"
#include "frontend/web/web.h"

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
    r->metrics = dgm_metrics_new(dgm_loops_count(o->loops));
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
    size_t n = dgm_loops_count(r->o.loops);
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

/* ---- operations ---------------------------------------------------------------------------------------------------- */

static void say(dgm_http_exchange *x, int status, dgm_str body)
{
    static const dgm_http_header not_kept = {{"Cache-Control", 13}, {"no-store", 8}};
    dgm_http_respond(x, status, DGM_STR("application/json"), &not_kept, 1, body);
}

static bool is_ready(dgm_router *r, dgm_arena *a, dgm_str *ret_why)
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

static void give_ready(dgm_router *r, dgm_http_exchange *x)
{
    dgm_arena *a = dgm_http_arena(x);
    dgm_str why;
    dgm_buf b;
    if (is_ready(r, a, &why)) {
        say(x, 200, DGM_STR("{\"status\":\"ready\"}"));
        return;
    }
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"status\":\"not ready\",\"reason\":");
    dgm_json_put_str(&b, why);
    dgm_buf_add_char(&b, '}');
    say(x, 503, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

static void give_metrics(dgm_router *r, dgm_http_exchange *x)
{
    dgm_str why;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_metrics_put(r->metrics, &b, r->o.core, r->o.store, is_ready(r, dgm_http_arena(x), &why));
    dgm_http_respond(x, 200, DGM_STR("text/plain; version=0.0.4; charset=utf-8"), NULL, 0,
                     dgm_buf_str(&b));
    dgm_buf_done(&b);
}

static bool is_operations(dgm_str path)
{
    return dgm_str_is(path, "/healthz") || dgm_str_is(path, "/readyz") ||
           dgm_str_is(path, "/metrics");
}

static bool take_operations(dgm_router *r, dgm_http_exchange *x, const dgm_http_request *q)
{
    bool healthz = dgm_str_is(q->path, "/healthz"), readyz = dgm_str_is(q->path, "/readyz");
    if (!is_operations(q->path))
        return false;
    dgm_front_note_kind(x, DGM_FRONT_OPS, NULL);
    if (!dgm_str_is(q->method, "GET") && !dgm_str_is(q->method, "HEAD")) {
        static const dgm_http_header allow = {{"Allow", 5}, {"GET, HEAD", 9}};
        dgm_http_respond(x, 405, DGM_STR("application/json"), &allow, 1, DGM_STR("{}"));
    } else if (healthz) {
        say(x, 200, DGM_STR("{\"status\":\"ok\"}"));
    } else if (readyz) {
        give_ready(r, x);
    } else {
        give_metrics(r, x);
    }
    return true;
}

/* ---- the page and the catalog ---------------------------------------------------------------------------------------- */

static void give_catalog(const dgm_site *s, dgm_http_exchange *x)
{
    dgm_arena *a = dgm_http_arena(x);
    dgm_web_agent *list = dgm_new_n(a, dgm_web_agent, s->n_agents);
    for (size_t i = 0; i < s->n_agents; i++) {
        const dgm_agent_card *card = dgm_a2a_card_for(s->agents[i].card, a, dgm_http_request_of(x));
        list[i] = (dgm_web_agent){s->agents[i].config->id, card->name, card->description,
                                  s->agents[i].path};
    }
    dgm_web_give_catalog(x, list, s->n_agents, s->config->public_url, s->made_s);
}

static bool take_web(const dgm_site *s, dgm_http_exchange *x, const dgm_http_request *q)
{
    bool looks = dgm_str_is(q->method, "GET") || dgm_str_is(q->method, "HEAD");
    dgm_str path = q->path;
    if (looks && dgm_str_is(path, "/.well-known/ai-catalog.json")) {
        give_catalog(s, x);
        return true;
    }
    if (dgm_web_give_file(x, path))
        return true;
    const dgm_site_agent *f = dgm_index_is_list(path) ? s->first : dgm_site_find(s, &path);
    if (!looks || !(dgm_str_is(path, "/") || dgm_index_is_list(path)))
        return false;
    if (f && dgm_web_wants_page(q))
        dgm_web_give_page(x);
    else
        dgm_index_give(s, f, x);
    return true;
}

/* ---- agents ------------------------------------------------------------------------------------------------------------- */

/* Who asks, and at which agent's address. */
struct guest {
    dgm_a2a_caller who;
    dgm_site_agent *agent; /* NULL: there is no such agent */
    dgm_str path;          /* below the agent's address */
    dgm_gate_word word;
};

static void refuse(const dgm_site *s, dgm_http_exchange *x, dgm_code code, const char *why,
                   const dgm_http_header *more, size_t n)
{
    dgm_str path = dgm_http_request_of(x)->path;
    const dgm_site_agent *f = dgm_site_find(s, &path);
    static const dgm_http_header later = {{"Retry-After", 11}, {"1", 1}};
    dgm_err err = {0};
    dgm_fail(&err, code, NULL, "%s", why);
    for (size_t i = 0; dgm_fronts[i]; i++) {
        if (dgm_fronts[i]->refuse(x, path, &err, more, n))
            return; /* these say themselves when to come again */
    }
    if (!n && (code == DGM_UNAVAILABLE || code == DGM_RATE_LIMITED)) {
        more = &later;
        n = 1;
    }
    dgm_a2a_front_refuse((f ? f : s->first)->a2a, x, path, &err, more, n);
}

static bool is_card(dgm_str path, const dgm_http_request *q)
{
    return dgm_str_is(path, "/.well-known/agent-card.json") && !dgm_str_is(q->method, "POST");
}

/* All but A2A. */
static bool take_turn(const dgm_site *s, const dgm_site_agent *f, dgm_http_exchange *x,
                      dgm_owner owner, dgm_str path)
{
    bool is_named = path.n != dgm_http_request_of(x)->path.n; /* /agents/ID was taken off */
    dgm_turn_request q = {.turns = s->turns,
                          .x = x,
                          .owner = owner,
                          .agent = is_named ? f->turn_agent : NULL,
                          .path = path};
    for (size_t i = 0; dgm_fronts[i]; i++) {
        if (dgm_fronts[i]->take(&q))
            return true;
    }
    return false;
}

/* True: it has no credentials, or unknown ones, and was answered so. */
static bool refuse_stranger(const dgm_site *s, dgm_http_exchange *x, const struct guest *g)
{
    if (g->word != DGM_GATE_MISSING && g->word != DGM_GATE_WRONG)
        return false;
    dgm_http_header ask = {DGM_STR("WWW-Authenticate"),
                           dgm_gate_challenge(dgm_http_arena(x), s->config, g->word)};
    refuse(s, x, DGM_UNAUTHENTICATED,
           g->word == DGM_GATE_WRONG ? "unknown token or key" : "missing token or key", &ask, 1);
    return true;
}

static void refuse_path(const dgm_site *s, dgm_http_exchange *x, const struct guest *g)
{
    refuse(s, x, DGM_NO_SUCH_METHOD,
           g->agent ? "unknown path; GET / lists the paths of this server"
                    : dgm_index_unknown_agent(s, dgm_http_arena(x), dgm_http_request_of(x)->path),
           NULL, 0);
}

static void take_agent(const dgm_site *s, dgm_http_exchange *x, const struct guest *g)
{
    dgm_site_agent *f = g->agent;
    if (!is_card(g->path, dgm_http_request_of(x)) && refuse_stranger(s, x, g))
        return;
    if (!f || !(dgm_a2a_front_take(f->a2a, x, &g->who, g->path) ||
                take_turn(s, f, x, g->who.owner, g->path)))
        refuse_path(s, x, g);
}

/* False: not a path below /debug/. */
static bool handle_debug(const dgm_router *r, const dgm_site *s, dgm_http_exchange *x,
                         const dgm_http_request *q, const struct guest *g)
{
    if (!dgm_debug_is_path(q->path))
        return false;
    if (refuse_stranger(s, x, g))
        return true;
    if (!dgm_gate_is_operator(s->config, q))
        refuse(s, x, DGM_FORBIDDEN,
               s->config->tokens.n ? "this path needs a token with `role: operator`"
                                   : "on a server without tokens this path is for local callers",
               NULL, 0);
    else if (!dgm_debug_handle(r->o.loops, x, q))
        refuse_path(s, x, g);
    return true;
}

/* ---- memory ------------------------------------------------------------------------------------------------------------- */

/* Requests that bring messages. Everything else needs a few words at most. */
static bool brings_messages(dgm_str path)
{
    static const char *const whole[] = {"/",
                                        "/a2a",
                                        "/a2a/",
                                        "/api/a2a",
                                        "/api/a2a/",
                                        "/ag-ui",
                                        "/ag-ui/",
                                        "/ag-ui/connect",
                                        "/v1/chat/completions",
                                        "/v1/responses",
                                        "/v1/conversations",
                                        "/ai-sdk",
                                        "/simple/ag-ui",
                                        "/simple/responses"};
    static const char *const ends[] = {"/message:send", "/message:stream", "/items"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (dgm_str_eq(path, dgm_str_from(whole[i])))
            return true;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t n = strlen(ends[i]);
        if (path.n >= n && memcmp(path.p + path.n - n, ends[i], n) == 0)
            return true;
    }
    return false;
}

/* Could any frontend have this path? If not, its body is not read. */
static bool may_be_known(dgm_str path)
{
    static const char *const starts[] = {"/v1/", "/ag-ui", "/ai-sdk", "/simple/"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (dgm_str_starts(path, dgm_str_from(starts[i])))
            return true;
    return dgm_a2a_front_allows(path) != NULL;
}

static size_t max_body_of(const dgm_site *s, const dgm_http_request *q, const struct guest *g)
{
    size_t most = (size_t)s->config->limits.http_body_bytes;
    bool is_large = g->agent && dgm_str_is(q->method, "POST") && brings_messages(g->path);
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

static void refuse_body(const dgm_site *s, dgm_http_exchange *x, dgm_http_refusal refusal)
{
    if (refusal == DGM_HTTP_TOO_LARGE)
        refuse(s, x, DGM_TOO_LARGE,
               "the body is too large (limit http_body_bytes; at addresses that take no messages "
               "small_body_bytes): send less at once",
               NULL, 0);
    else if (refusal == DGM_HTTP_CALLER_FULL)
        refuse(s, x, DGM_RATE_LIMITED,
               "your requests in progress hold too many bytes (limit "
               "in_flight_bytes_per_principal): wait for one of them to end, then try again",
               NULL, 0);
    else
        refuse(s, x, DGM_UNAVAILABLE,
               "the requests in progress hold too many bytes (limit in_flight_bytes): try again "
               "later",
               NULL, 0);
}

/* False: the body is more than its address takes, or more than is decoded at once, and the request was answered. */
static bool check_body(const dgm_site *s, dgm_http_exchange *x, const dgm_http_request *q,
                       const struct guest *g)
{
    size_t n = q->body.n;
    if (n <= DGM_MAX_SMALL_BODY_BYTES)
        return true;
    if (n > max_body_of(s, q, g)) {
        refuse_body(s, x, DGM_HTTP_TOO_LARGE);
        return false;
    }
    if (n / 2 < DGM_MAX_JSON_VALUES || /* it cannot have as many */
        dgm_json_count_values(q->body, DGM_MAX_JSON_VALUES) <= DGM_MAX_JSON_VALUES)
        return true;
    refuse(s, x, DGM_TOO_LARGE,
           "the body has more JSON values than the limit json_values of " TEXT_OF(
               DGM_MAX_JSON_VALUES) ": send less at once, or send it as a file",
           NULL, 0);
    return false;
}

/* ---- requests ------------------------------------------------------------------------------------------------------------ */

/* Ids that callers send to find their request again; what would not fit into a line of a log is not one. */
static void take_request_id(struct visit *v, dgm_http_exchange *x, const dgm_http_request *q)
{
    dgm_str id = dgm_http_header_of(q, DGM_STR("x-request-id"));
    if (id.n > MAX_REQUEST_ID)
        return;
    for (size_t i = 0; i < id.n; i++)
        if (id.p[i] <= ' ' || id.p[i] > '~' || id.p[i] == '"' || id.p[i] == '\\')
            return;
    if (id.n)
        v->request_id = dgm_http_keep_text(x, id);
}

static struct visit *new_visit(dgm_router *r, struct lane *lane, dgm_http_exchange *x,
                               const dgm_http_request *q)
{
    struct visit *v = dgm_http_alloc(x, sizeof *v);
    v->note.n_streams = dgm_metrics_streams(r->metrics);
    v->site = lane->site;
    v->began_ns = uv_hrtime();
    v->bytes_in = q->body.n;
    v->number = ++lane->n_requests;
    take_request_id(v, x, q);
    if (v->site)
        atomic_fetch_add_explicit(&v->site->refs, 1, memory_order_relaxed);
    dgm_http_set_tag(x, v);
    return v;
}

static void add_headers(dgm_http_exchange *x, const dgm_http_request *q, const struct visit *v)
{
    dgm_arena *a = dgm_http_arena(x);
    if (!v->request_id && !dgm_http_header_of(q, DGM_STR("origin")).n)
        return;
    dgm_http_header *also = dgm_new_n(a, dgm_http_header, 4);
    size_t n = dgm_gate_cors(a, q, also);
    if (v->request_id)
        also[n++] = (dgm_http_header){DGM_STR("X-Request-Id"), dgm_str_from(v->request_id)};
    dgm_http_add_headers(x, also, n);
}

/* Operations, the page, the index, the catalog, cards and preflights need no token. */
static bool is_public(const dgm_http_request *q, const struct guest *g)
{
    dgm_str path = q->path;
    if (dgm_gate_is_preflight(q) || is_card(g->path, q) || is_operations(path))
        return true;
    if (dgm_str_is(q->method, "POST"))
        return false;
    return dgm_str_is(path, "/.well-known/ai-catalog.json") ||
           dgm_str_starts(path, DGM_STR("/web/")) || dgm_str_is(g->path, "/") ||
           dgm_index_is_list(path);
}

/* Host and Origin are checked before anything else, and the caller is looked up. NULL: the request has its answer. */
static struct visit *check_head(dgm_router *r, dgm_http_exchange *x, const dgm_http_request *q,
                                struct guest *ret_guest)
{
    struct visit *v = dgm_http_tag(x);
    struct guest *g = ret_guest;
    bool is_new = !v;
    if (is_new)
        v = new_visit(r, &r->lanes[dgm_loop_index(dgm_http_loop(x))], x, q);
    v->bytes_in = q->body.n;
    const dgm_site *s = v->site;
    *g = (struct guest){.path = q->path};
    if (!s)
        return v;
    if (is_new) {
        const char *no = dgm_gate_refuses(s->config, q);
        if (no) {
            refuse(s, x, DGM_FORBIDDEN, no, NULL, 0);
            return NULL;
        }
        add_headers(x, q, v);
    }
    if (is_operations(q->path))
        return v; /* public, and of no agent: the caller does not matter */
    g->agent = dgm_site_find(s, &g->path);
    g->who.any_tenant = !s->config->tokens.n;
    g->word = dgm_gate_owner(s->config, q, &g->who.owner);
    g->who.may_set = dgm_gate_may_set(s->config, q);
    return v;
}

static void give_starting(dgm_http_exchange *x)
{
    say(x, 503,
        DGM_STR("{\"error\":{\"code\":503,\"status\":\"UNAVAILABLE\",\"message\":"
                "\"the server is starting\"}}"));
}

/* The body has not arrived: what is refused here is not waited for. */
static void on_head(void *user, dgm_http_exchange *x, const dgm_http_request *q)
{
    dgm_router *r = user;
    struct guest g;
    struct visit *v = check_head(r, x, q, &g);
    if (!v)
        return;
    const dgm_site *s = v->site;
    if (!s && !is_operations(q->path)) {
        give_starting(x);
    } else if (!s) {
        dgm_http_set_max_body(x, DGM_MAX_SMALL_BODY_BYTES);
    } else if (!is_public(q, &g) && refuse_stranger(s, x, &g)) {
        return;
    } else if (!is_public(q, &g) && !(g.agent && may_be_known(g.path)) &&
               !dgm_debug_is_path(q->path)) {
        refuse_path(s, x, &g);
    } else {
        dgm_http_budget *b = budget_of(r, x, g.who.owner, s->config->tokens.n);
        dgm_http_set_max_body(x, max_body_of(s, q, &g));
        if (b)
            dgm_http_set_budget(x, b);
    }
}

static void on_body_refused(void *user, dgm_http_exchange *x, const dgm_http_request *q,
                            dgm_http_refusal refusal)
{
    struct guest g;
    struct visit *v = check_head(user, x, q, &g);
    if (v && !v->site)
        give_starting(x);
    else if (v && (is_public(q, &g) || !refuse_stranger(v->site, x, &g)))
        refuse_body(v->site, x, refusal);
}

static void on_request(void *user, dgm_http_exchange *x, const dgm_http_request *q)
{
    dgm_router *r = user;
    struct guest g;
    struct visit *v = check_head(r, x, q, &g);
    if (!v)
        return;
    const dgm_site *s = v->site;
    if (take_operations(r, x, q))
        return;
    if (!s) {
        give_starting(x);
        return;
    }
    if (dgm_gate_is_preflight(q)) {
        dgm_http_header headers[3];
        size_t n = dgm_gate_preflight(dgm_http_arena(x), s->config, q, headers);
        dgm_http_respond(x, 204, (dgm_str){0}, headers, n, (dgm_str){0});
        return;
    }
    if (!handle_debug(r, s, x, q, &g) && !take_web(s, x, q) && check_body(s, x, q, &g))
        take_agent(s, x, &g);
}

static void log_visit(dgm_router *r, dgm_http_exchange *x, const struct visit *v, int status,
                      uint64_t ns, uint64_t bytes)
{
    dgm_config_log_level level = status >= 500                   ? DGM_LOG_WARN
                                 : v->note.kind == DGM_FRONT_OPS ? DGM_LOG_DEBUG /* probes */
                                                                 : DGM_LOG_INFO;
    char number[40];
    if (!dgm_logger_wants(r->o.logger, level))
        return;
    const dgm_http_request *q = dgm_http_request_of(x);
    snprintf(number, sizeof number, "%zu-%llu", dgm_loop_index(dgm_http_loop(x)),
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
    struct visit *v = dgm_http_tag(x);
    uint64_t ns = uv_hrtime() - v->began_ns;
    dgm_metrics_count(r->metrics, dgm_loop_index(dgm_http_loop(x)), &v->note, status, ns,
                      v->bytes_in, bytes);
    log_visit(r, x, v, status, ns, bytes);
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
