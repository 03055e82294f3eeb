/* app/serve/pages.c - see pages.h. */
#include "app/serve/pages.h"
#include "app/serve/router.h"
#include "app/serve/routes.h"
#include "base/limits.h"
#include "frontend/cached.h"
#include "frontend/web/web.h"
#include "model/stamp.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- operations --------------------------------------------------------------------------------------------------- */

void dgm_pages_respond(dgm_http_exchange *x, int status, dgm_str json)
{
    static const dgm_http_header not_kept = {{"Cache-Control", 13}, {"no-store", 8}};
    dgm_http_respond(x, status, DGM_STR("application/json"), &not_kept, 1, json);
}

static void pages_handle_health(const dgm_front_request *q)
{
    dgm_pages_respond(q->x, 200, DGM_STR("{\"status\":\"ok\"}"));
}

static void pages_handle_ready(const dgm_front_request *q)
{
    dgm_str why;
    dgm_buf b;
    if (dgm_router_is_ready(dgm_router_of(q->x), dgm_http_arena(q->x), &why)) {
        dgm_pages_respond(q->x, 200, DGM_STR("{\"status\":\"ready\"}"));
        return;
    }
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"status\":\"not ready\",\"reason\":");
    dgm_json_put_str(&b, why);
    dgm_buf_add_char(&b, '}');
    dgm_pages_respond(q->x, 503, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

static void pages_handle_metrics(const dgm_front_request *q)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_router_put_metrics(dgm_router_of(q->x), dgm_http_arena(q->x), &b);
    dgm_http_respond(q->x, 200, DGM_STR("text/plain; version=0.0.4; charset=utf-8"), NULL, 0,
                     dgm_buf_str(&b));
    dgm_buf_done(&b);
}

void dgm_pages_refuse_method(const dgm_front_request *q, const char *allow)
{
    dgm_http_header header = {DGM_STR("Allow"), dgm_str_from(allow)};
    dgm_http_respond(q->x, 405, DGM_STR("application/json"), &header, 1, DGM_STR("{}"));
}

/* ---- unknown agents ----------------------------------------------------------------------------------------------- */

const char *dgm_pages_unknown_agent(const dgm_site *s, dgm_arena *a, dgm_str id)
{
    dgm_str all = DGM_STR("");
    if (id.n > DGM_MAX_QUOTED_BYTES)
        id.n = DGM_MAX_QUOTED_BYTES;
    while (dgm_utf8_check(id) != id.n)
        id.n--;
    for (size_t i = 0; i < s->n_agents; i++) {
        if (all.n > DGM_MAX_QUOTED_BYTES) {
            all = dgm_arena_printf(a, "%.*s, ... (%zu in all)", DGM_P(all), s->n_agents);
            break;
        }
        all = dgm_arena_printf(a, "%.*s%s%.*s", DGM_P(all), i ? ", " : "",
                               DGM_P(s->agents[i].config->id));
    }
    return dgm_arena_printf(a, "unknown agent '%.*s'; agents on this server: %.*s", DGM_P(id),
                            DGM_P(all))
        .p;
}

/* ---- the index ---------------------------------------------------------------------------------------------------- */

static void index_put_agents(dgm_buf *b, const dgm_site *s, dgm_str address)
{
    int width = 0;
    for (size_t i = 0; i < s->n_agents; i++) {
        int n = (int)s->agents[i].config->id.n;
        width = n > width ? n : width;
    }
    dgm_buf_add_lit(b, "Agents\n");
    for (size_t i = 0; i < s->n_agents; i++) {
        const dgm_site_agent *f = &s->agents[i];
        dgm_str id = f->config->id;
        dgm_buf_printf(b, "  %.*s%*s  %.*s%.*s/%s\n", DGM_P(id), width - (int)id.n, "",
                       DGM_P(address), DGM_P(f->path),
                       f == s->first ? " (default: also at /)" : "");
    }
    dgm_buf_add_char(b, '\n');
}

static void index_put_bases(dgm_buf *b, dgm_str base)
{
    dgm_buf_add_lit(b, "Base URLs\n");
    for (size_t i = 0; dgm_frontends[i]; i++) {
        if (dgm_frontends[i]->title)
            dgm_buf_printf(b, "  %-6s  %.*s%s\n", dgm_frontends[i]->title, DGM_P(base),
                           dgm_frontends[i]->base);
    }
}

/* With the list of agents, or one agent's addresses. f NULL: no agent has the id that the path names. */
static void index_respond(const dgm_site *s, const dgm_site_agent *f, const dgm_front_request *r)
{
    static const dgm_http_header headers[] = {{{"Cache-Control", 13}, {"no-cache", 8}},
                                              {{"Vary", 4}, {"Accept, Origin", 14}}};
    dgm_arena *a = dgm_http_arena(r->x);
    dgm_str address = dgm_front_address(a, dgm_http_request_of(r->x), s->config->public_url);
    bool is_one = f && r->agent_id.p;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX); /* bounded by the configuration */
    dgm_buf_printf(&b, "Dragoman " DGM_VERSION "\n\n");
    if (!f)
        dgm_buf_printf(&b, "%s\n\n", dgm_pages_unknown_agent(s, a, r->agent_id));
    if (is_one)
        dgm_buf_printf(&b, "Agent %.*s\n\n", DGM_P(f->config->id));
    else
        index_put_agents(&b, s, address);
    index_put_bases(&b, is_one ? dgm_arena_printf(a, "%.*s%.*s", DGM_P(address), DGM_P(f->path))
                               : address);
    if (!is_one)
        dgm_buf_add_lit(&b, "\nThe same paths exist below the address of each agent.\n");
    dgm_http_respond(r->x, f ? 200 : 404, DGM_STR("text/plain; charset=utf-8"), headers,
                     sizeof headers / sizeof *headers, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

/* ---- the page and the catalog ------------------------------------------------------------------------------------- */

static void pages_handle_index(const dgm_front_request *q)
{
    const dgm_site *s = dgm_router_site_of(q->x);
    const dgm_site_agent *f = dgm_site_find(s, q->agent_id);
    if (!dgm_web_send_page(q->x, f ? 0 : 404))
        index_respond(s, f, q);
}

/* An address of the page that other clients have no use for. */
static void pages_handle_view(const dgm_front_request *q)
{
    if (!dgm_web_send_page(q->x, 0))
        dgm_router_refuse_path(q);
}

static void pages_handle_file(const dgm_front_request *q)
{
    if (!dgm_web_send_file(q->x, q->params[0]))
        dgm_router_refuse_path(q);
}

static void pages_handle_licenses(const dgm_front_request *q)
{
    if (!dgm_web_send_file(q->x, DGM_STR("licenses.txt")))
        dgm_router_refuse_path(q);
}

static void pages_handle_catalog(const dgm_front_request *q)
{
    const dgm_site *s = dgm_router_site_of(q->x);
    dgm_arena *a = dgm_http_arena(q->x);
    dgm_web_agent *list = dgm_new_n(a, dgm_web_agent, s->n_agents);
    for (size_t i = 0; i < s->n_agents; i++) {
        const dgm_agent_card *card =
            dgm_a2a_card_for(s->agents[i].card, a, dgm_http_request_of(q->x));
        list[i] = (dgm_web_agent){s->agents[i].config->id, card->name, card->description,
                                  s->agents[i].path};
    }
    dgm_web_send_catalog(q->x, list, s->n_agents, s->config->public_url, s->made_s);
}

/* ---- routes ------------------------------------------------------------------------------------------------------- */

/* clang-format off */
#define ROUTE(pattern, operation, handle, scope) {DGM_ROUTE_GET, pattern, operation, DGM_ACCESS_PUBLIC, DGM_BODY_SMALL, handle, 0, DGM_SCOPE_##scope}
static const dgm_route operations_routes[] = {
    ROUTE("/healthz", "health",    pages_handle_health,  SERVER),
    ROUTE("/readyz",  "readiness", pages_handle_ready,   SERVER),
    ROUTE("/metrics", "metrics",   pages_handle_metrics, SERVER),
};
static const dgm_route page_routes[] = {
    ROUTE("/",               "index", pages_handle_index, ANY),
    ROUTE("/agents[/]",      "index", pages_handle_index, SERVER),
    ROUTE("/inspect[/]",     "view", pages_handle_view,  SERVER),
    ROUTE("/inspect/{task}", "view", pages_handle_view,  SERVER),
    ROUTE("/compare[/]",     "view", pages_handle_view,  SERVER),
    ROUTE("/operate[/]",     "view", pages_handle_view,  SERVER),
    ROUTE("/licenses",       "licenses", pages_handle_licenses, SERVER),
    ROUTE("/web/{file...}",  "file", pages_handle_file,  SERVER),
};
static const dgm_route catalog_routes[] = {
    ROUTE("/.well-known/ai-catalog.json", "catalog", pages_handle_catalog, SERVER),
};
/* clang-format on */

const dgm_frontend dgm_front_operations = {.name = "ops",
                                           DGM_ROUTES(operations_routes),
                                           .serves_early = true,
                                           .is_probe = true,
                                           .refuse_method = dgm_pages_refuse_method};
const dgm_frontend dgm_front_page = {.name = "page", DGM_ROUTES(page_routes)};
const dgm_frontend dgm_front_catalog = {.name = "catalog", DGM_ROUTES(catalog_routes)};

#define MAX_LOGGED 4096 /* lines; more would not fit into the logger's buffer */

static dgm_str debug_time_text(int64_t unix_ms, char room[40])
{
    dgm_arena *a = dgm_arena_new();
    dgm_str text = dgm_time_text(a, unix_ms);
    size_t n = text.n < 40 ? text.n : 40;
    memcpy(room, text.p, n);
    dgm_arena_free(a);
    return (dgm_str){room, n};
}

static void debug_put_task(dgm_buf *b, dgm_loops *loops, dgm_str task_id)
{
    dgm_transition *all;
    size_t n = dgm_loops_read_trace(loops, &all), n_put = 0;
    uint64_t object = dgm_trace_task_object(task_id);
    char room[40];
    dgm_buf_add_lit(b, "{\"task\":");
    dgm_json_put_str(b, task_id);
    dgm_buf_add_lit(b, ",\"transitions\":[");
    for (size_t i = 0; i < n; i++) {
        const dgm_transition *t = &all[i];
        if (!t->machine->is_of_task || t->object != object)
            continue;
        dgm_buf_printf(b, "%s{\"time\":\"%.*s\",\"machine\":\"%s\",\"from\":\"%s\",\"to\":\"%s\"}",
                       n_put++ ? "," : "", DGM_P(debug_time_text((int64_t)t->ms, room)),
                       t->machine->name, t->machine->states[t->from], t->machine->states[t->to]);
    }
    dgm_buf_add_lit(b, "]}");
    free(all);
}

static void debug_handle_trace(const dgm_front_request *q)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX); /* bounded by the size of the traces */
    debug_put_task(&b, dgm_router_loops(dgm_router_of(q->x)), q->params[0]);
    dgm_pages_respond(q->x, 200, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

/* clang-format off */
static const dgm_route debug_routes[] = {
    {DGM_ROUTE_GET, "/debug/tasks/{id}/trace", "trace", DGM_ACCESS_OPERATOR, DGM_BODY_SMALL, debug_handle_trace, 0, DGM_SCOPE_SERVER},
};
/* clang-format on */

const dgm_frontend dgm_front_debug = {
    .name = "debug", DGM_ROUTES(debug_routes), .refuse_method = dgm_pages_refuse_method};

/* Tasks are named by the end of their id, connections and exchanges by a number. */
static dgm_str debug_object_text(const dgm_transition *t, char room[24])
{
    if (t->machine->is_of_task) {
        memcpy(room, &t->object, sizeof t->object);
        return (dgm_str){room, strnlen(room, sizeof t->object)};
    }
    int n = snprintf(room, 24, "%llu", (unsigned long long)t->object);
    return (dgm_str){room, (size_t)n};
}

void dgm_debug_log_trace(dgm_loops *loops, dgm_logger *logger)
{
    dgm_transition *all;
    size_t n = dgm_loops_read_trace(loops, &all);
    char time[40], object[24];
    for (size_t i = n > MAX_LOGGED ? n - MAX_LOGGED : 0; i < n; i++) {
        const dgm_transition *t = &all[i];
        dgm_logger_says(logger, DGM_LOG_INFO, "trace",
                        {"at", debug_time_text((int64_t)t->ms, time), 0},
                        {"machine", dgm_str_from(t->machine->name), 0},
                        {"object", debug_object_text(t, object), 0},
                        {"from", dgm_str_from(t->machine->states[t->from]), 0},
                        {"to", dgm_str_from(t->machine->states[t->to]), 0});
    }
    free(all);
    dgm_logger_says(logger, DGM_LOG_INFO, "end of the trace", {"transitions", {0}, (double)n});
}
