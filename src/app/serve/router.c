/* app/serve/router.c - past the gate, then by path. */
#include "app/serve/router.h"
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

/* What is remembered of a request until it has its answer. */
struct visit {
    dgm_front_note note; /* first: frontends know only this */
    dgm_site *site;
    uint64_t began_ns;
    uint64_t bytes_in;
    uint64_t number;
    const char *request_id; /* the caller's; NULL: none */
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
};

/* ---- life ---------------------------------------------------------------------------------------------------- */

dgm_router *dgm_router_new(const dgm_router_options *o)
{
    dgm_router *r = dgm_xcalloc(1, sizeof *r);
    r->o = *o;
    r->metrics = dgm_metrics_new(dgm_loops_count(o->loops));
    r->reason = "it is starting";
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

dgm_code dgm_router_use(dgm_router *r, dgm_config *config, dgm_err *err)
{
    dgm_site *site;
    size_t n = dgm_loops_count(r->o.loops);
    dgm_code rc =
        dgm_site_new(r->o.core, r->o.agents, config, dgm_loop_unix_ms() / 1000, &site, err);
    if (rc)
        return rc;
    sweep(r);
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

static bool take_operations(dgm_router *r, dgm_http_exchange *x, const dgm_http_request *q)
{
    bool healthz = dgm_str_is(q->path, "/healthz"), readyz = dgm_str_is(q->path, "/readyz");
    bool metrics = dgm_str_is(q->path, "/metrics");
    if (!healthz && !readyz && !metrics)
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

static void refuse(const dgm_site *s, dgm_http_exchange *x, dgm_code code, const char *why,
                   const dgm_http_header *more, size_t n)
{
    dgm_str path = dgm_http_request_of(x)->path;
    const dgm_site_agent *f = dgm_site_find(s, &path);
    dgm_err err = {0};
    dgm_fail(&err, code, NULL, "%s", why);
    for (size_t i = 0; dgm_fronts[i]; i++) {
        if (dgm_fronts[i]->refuse(x, path, &err, more, n))
            return;
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

static void take_agent(const dgm_site *s, dgm_http_exchange *x, const dgm_http_request *q)
{
    dgm_str path = q->path;
    dgm_site_agent *f = dgm_site_find(s, &path);
    dgm_a2a_caller who = {.any_tenant = !s->config->tokens.n};
    dgm_gate_word word = dgm_gate_owner(s->config, q, &who.owner);
    if ((word == DGM_GATE_MISSING || word == DGM_GATE_WRONG) && !is_card(path, q)) {
        dgm_http_header ask = {DGM_STR("WWW-Authenticate"),
                               dgm_gate_challenge(dgm_http_arena(x), s->config, word)};
        refuse(s, x, DGM_UNAUTHENTICATED,
               word == DGM_GATE_WRONG ? "unknown token or key" : "missing token or key", &ask, 1);
        return;
    }
    if (!f)
        refuse(s, x, DGM_NO_SUCH_METHOD, dgm_index_unknown_agent(s, dgm_http_arena(x), q->path),
               NULL, 0);
    else if (!dgm_a2a_front_take(f->a2a, x, &who, path) && !take_turn(s, f, x, who.owner, path))
        refuse(s, x, DGM_NO_SUCH_METHOD, "unknown path; GET / lists the paths of this server", NULL,
               0);
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
    struct visit *v = dgm_http_keep(x, sizeof *v);
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
    dgm_http_also(x, also, n);
}

static void on_request(void *user, dgm_http_exchange *x, const dgm_http_request *q)
{
    dgm_router *r = user;
    struct lane *lane = &r->lanes[dgm_loop_index(dgm_http_loop(x))];
    struct visit *v = new_visit(r, lane, x, q);
    const dgm_site *s = v->site;
    const char *no = s ? dgm_gate_refuses(s->config, q) : NULL;
    if (no) {
        refuse(s, x, DGM_FORBIDDEN, no, NULL, 0);
        return;
    }
    add_headers(x, q, v);
    if (take_operations(r, x, q))
        return;
    if (!s) {
        say(x, 503,
            DGM_STR("{\"error\":{\"code\":503,\"status\":\"UNAVAILABLE\",\"message\":"
                    "\"the server is starting\"}}"));
        return;
    }
    if (dgm_gate_is_preflight(q)) {
        dgm_http_header headers[3];
        size_t n = dgm_gate_preflight(dgm_http_arena(x), s->config, q, headers);
        dgm_http_respond(x, 204, (dgm_str){0}, headers, n, (dgm_str){0});
        return;
    }
    if (!take_web(s, x, q))
        take_agent(s, x, q);
}

/* In the words of whose address it is. */
static void on_too_large(void *user, dgm_http_exchange *x, const dgm_http_request *q,
                         const char *why)
{
    dgm_router *r = user;
    struct lane *lane = &r->lanes[dgm_loop_index(dgm_http_loop(x))];
    struct visit *v = new_visit(r, lane, x, q);
    if (!v->site) {
        say(x, 413, DGM_STR("{}"));
        return;
    }
    add_headers(x, q, v);
    refuse(v->site, x, DGM_TOO_LARGE, why, NULL, 0);
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
                              .on_too_large = on_too_large,
                              .on_refused = on_refused,
                              .on_answered = on_answered,
                              .user = r};
}
