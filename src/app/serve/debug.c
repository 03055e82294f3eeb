/* app/serve/debug.c - the traces of state machines, as JSON and as log lines. */
#include "app/serve/debug.h"
#include "app/serve/pages.h"
#include "app/serve/router.h"
#include "model/stamp.h"

#include <stdio.h>
#include <stdlib.h>

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
