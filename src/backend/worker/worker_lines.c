/*
 * backend/worker/worker_lines.c - the lines that a worker writes: responses, events, requests.
 *
 * A line that is too long or is not a JSON object ends the process: what follows it cannot be trusted. Anything else that is
 * wrong concerns one run, or nothing but the operator's log.
 */
#include "backend/worker/worker_int.h"
#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_ID 100 /* bytes of a JSON-RPC id */

/* "r12" to 12; 0: it is not the id of a run */
static uint64_t lines_run_number(dgm_str run)
{
    uint64_t n = 0;
    if (run.n < 2 || run.n > 20 || run.p[0] != 'r')
        return 0;
    for (size_t i = 1; i < run.n; i++) {
        if (run.p[i] < '0' || run.p[i] > '9')
            return 0;
        n = n * 10 + (uint64_t)(run.p[i] - '0');
    }
    return n;
}

static struct worker_item *lines_find_run(struct worker_slot *s, dgm_str run)
{
    struct worker_item *i = dgm_worker_queue_find(s, lines_run_number(run));
    return i && i->kind == WORKER_RUN ? i : NULL;
}

/* Faults that a worker may repeat with every line. */
static bool lines_may_log(struct worker_slot *s)
{
    return s->n_logged++ < DGM_MAX_WORKER_LOG_LINES;
}

/* ---- events ----------------------------------------------------------------------------------------------------------------- */

static bool lines_check_seq(struct worker_slot *s, struct worker_item *i, const dgm_json *params,
                            const dgm_worker_event *e)
{
    const dgm_json *v = dgm_json_get(params, DGM_STR("seq"));
    int64_t seq = -1;
    char detail[160];
    bool is_number = v && !yyjson_is_str((yyjson_val *)(uintptr_t)v) && dgm_json_int(v, &seq);
    if (is_number && seq >= 0 && (uint64_t)seq == i->next_seq && e->type.n) {
        i->next_seq++;
        return true;
    }
    if (e->type.n)
        snprintf(detail, sizeof detail, "event of run r%llu: expected seq %llu, got %lld",
                 (unsigned long long)i->number, (unsigned long long)i->next_seq, (long long)seq);
    else
        snprintf(detail, sizeof detail, "event of run r%llu: type is missing",
                 (unsigned long long)i->number);
    dgm_worker_log(s, true, "%s; the run fails", detail);
    dgm_worker_queue_fail_item(s, i, DGM_WORKER_ERROR,
                               "the agent's worker process sent an invalid event", detail);
    return false;
}

/* To the loop of the run. The line's arena goes with it. */
static void lines_pass_on(struct worker_slot *s, struct worker_delivery *d, size_t bytes)
{
    struct worker_item *i = d->item;
    d->bytes = bytes;
    atomic_fetch_add(&i->n_held, bytes);
    atomic_fetch_add(&i->refs, 1);
    dgm_worker_deliver(d, true);
    dgm_worker_queue_check_room(s, i);
    dgm_worker_item_unref(i);
}

static void lines_on_event(struct worker_slot *s, const dgm_json *params, size_t bytes)
{
    dgm_str run = dgm_json_str_member(params, "run");
    struct worker_item *i = lines_find_run(s, run);
    dgm_worker_event e = {.type = dgm_json_str_member(params, "type"),
                          .ns = dgm_json_get(params, DGM_STR("ns")),
                          .data = dgm_json_get(params, DGM_STR("data")),
                          .arena = s->arena};
    if (!i) {
        if (lines_may_log(s))
            dgm_worker_log(s, true, "event of an unknown run \"%.*s\" is ignored",
                           (int)(run.n < 40 ? run.n : 40), run.p ? run.p : "");
        return;
    }
    if (i->is_ignored || !lines_check_seq(s, i, params, &e))
        return;
    e.seq = i->next_seq - 1;
    atomic_fetch_add(&i->refs, 1);
    bool is_received = i->loop == s->home && !atomic_load(&i->n_held) &&
                       dgm_worker_run_receive_at_once((dgm_worker_run *)(void *)i, &e);
    if (!is_received) {
        struct worker_delivery *d = dgm_worker_delivery_new(i, dgm_take(s->arena), WORKER_ON_EVENT);
        d->event = e;
        lines_pass_on(s, d, bytes);
    }
    dgm_worker_item_unref(i);
}

static void lines_on_log(struct worker_slot *s, const dgm_json *params, size_t bytes)
{
    dgm_str text = dgm_json_str_member(params, "text"),
            level = dgm_json_str_member(params, "level");
    struct worker_item *i = lines_find_run(s, dgm_json_str_member(params, "run"));
    if (!text.n || !lines_may_log(s))
        return;
    if (!i || i->is_ignored || !((dgm_worker_run *)(void *)i)->handler.on_log) {
        dgm_worker_log_text(s, dgm_str_is(level, "warning") || dgm_str_is(level, "error"), text);
        return;
    }
    struct worker_delivery *d = dgm_worker_delivery_new(i, dgm_take(s->arena), WORKER_ON_LOG);
    d->event.type = level;
    d->fault.message = text;
    lines_pass_on(s, d, bytes);
}

static void lines_on_notification(struct worker_slot *s, dgm_str method, const dgm_json *params,
                                  size_t bytes)
{
    if (dgm_str_is(method, "event"))
        lines_on_event(s, params, bytes);
    else if (dgm_str_is(method, "log"))
        lines_on_log(s, params, bytes);
    else if (lines_may_log(s))
        dgm_worker_log(s, false, "unknown notification \"%.*s\" is ignored",
                       (int)(method.n < 60 ? method.n : 60), method.p);
}

/* ---- requests ----------------------------------------------------------------------------------------------------------------- */

static void lines_on_request(struct worker_slot *s, const dgm_json *line, size_t bytes)
{
    const dgm_worker_service *service = &s->pool->options.service;
    dgm_worker_request *r = dgm_worker_request_new(s, dgm_take(s->arena), line);
    struct worker_item *i = lines_find_run(s, r->run);
    bool is_service = dgm_str_starts(r->method, DGM_STR("checkpoint/")) ||
                      dgm_str_starts(r->method, DGM_STR("blob/"));
    if (s->n_requests > DGM_MAX_WORKER_REQUESTS) {
        dgm_worker_respond_error(r, DGM_WORKER_INTERNAL,
                                 "more than %d requests are not answered yet (limit "
                                 "worker_requests)",
                                 DGM_MAX_WORKER_REQUESTS);
    } else if (is_service && service->request) {
        if (!service->request(s->session, r))
            dgm_worker_respond_error(r, DGM_WORKER_NO_METHOD, "unknown method");
    } else if (i && !i->is_ignored) {
        struct worker_delivery *d = dgm_worker_delivery_new(i, NULL, WORKER_ON_REQUEST);
        d->request = r;
        lines_pass_on(s, d, bytes);
    } else if (r->run.n) {
        dgm_worker_respond_error(r, DGM_WORKER_BAD_PARAMS, "unknown run");
    } else {
        dgm_worker_respond_error(r, DGM_WORKER_NO_METHOD, "unknown method");
    }
}

/* ---- responses ---------------------------------------------------------------------------------------------------------------- */

static void lines_on_response(struct worker_slot *s, const dgm_json *id, const dgm_json *line)
{
    int64_t number = 0;
    bool is_number = !yyjson_is_str((yyjson_val *)(uintptr_t)id) && dgm_json_int(id, &number);
    struct worker_item *i =
        is_number && number > 0 ? dgm_worker_queue_find(s, (uint64_t)number) : NULL;
    if (is_number && number > 0 && (uint64_t)number == s->init_number) {
        s->init_number = 0;
        dgm_worker_slot_on_init(s, line);
    } else if (is_number && number > 0 && (uint64_t)number == s->ping_number) {
        s->ping_number = 0;
        if (s->n_missed >= 3)
            dgm_worker_log(s, false, "it answers again");
        s->n_missed = 0;
        dgm_worker_queue_pump(s);
    } else if (i) {
        dgm_worker_queue_finish(s, i, line);
    } else if (!(is_number && number > 0 && (uint64_t)number == s->stop_number) &&
               lines_may_log(s)) {
        dgm_worker_log(s, true, "a response to an unknown request is ignored");
    }
}

static bool lines_is_id(const dgm_json *id)
{
    yyjson_val *v = (yyjson_val *)(uintptr_t)id;
    return v && (yyjson_is_str(v) || yyjson_is_raw(v) || yyjson_is_num(v)) &&
           dgm_json_str(id).n <= MAX_ID;
}

static void lines_dispatch(struct worker_slot *s, const dgm_json *v, size_t bytes)
{
    dgm_str method = dgm_json_str_member(v, "method");
    const dgm_json *id = dgm_json_get(v, DGM_STR("id"));
    if (id && !lines_is_id(id))
        dgm_worker_slot_kill(s, "it wrote a message with an invalid id");
    else if (method.n && id)
        lines_on_request(s, v, bytes);
    else if (method.n)
        lines_on_notification(s, method, dgm_json_get(v, DGM_STR("params")), bytes);
    else if (id)
        lines_on_response(s, id, v);
    else
        dgm_worker_slot_kill(s, "it wrote a line that is not a JSON-RPC message");
}

void dgm_worker_on_line(void *slot, dgm_str line, dgm_line_end end)
{
    struct worker_slot *s = slot;
    yyjson_val *v = NULL;
    dgm_err err = {0};
    if (s->state == WORKER_KILLED || s->state == WORKER_DOWN)
        return;
    if (end == DGM_LINE_CUT) {
        dgm_worker_slot_kill(s,
                             "it wrote a line that is longer than the limit worker_line_bytes of "
                             "%zu",
                             DGM_WORKER_LINE_BYTES);
        return;
    }
    s->line_ms = uv_now(&s->home->uv);
    s->is_suspect = false;
    line = dgm_text_trim(line);
    if (!line.n || end == DGM_LINE_LAST) /* last: the process ended in the middle of a line */
        return;
    if (!s->arena)
        s->arena = dgm_arena_new();
    if (dgm_json_read(s->arena, line, DGM_WORKER_LINE_BYTES, "worker_line_bytes", &v, &err))
        dgm_worker_slot_kill(s, "it wrote a line that is not JSON (%s), in: %.*s", err.msg,
                             (int)(line.n < 80 ? line.n : 80), line.p);
    else if (!yyjson_is_obj(v))
        dgm_worker_slot_kill(s, "it wrote a line that is not a JSON-RPC message, but %s",
                             dgm_json_type(v));
    else
        lines_dispatch(s, v, line.n);
    if (s->arena)
        dgm_arena_reset(s->arena);
}
