/*
 * backend/worker/worker_run.c - on the loop of a run: its callbacks in order, back-pressure, time limits.
 *
 * Events that come while the run is full wait here, in order, and everything that follows them waits behind them: the result,
 * too. The home loop counts their bytes (n_held) and stops reading the process for a moment when there are too many.
 */
#include "backend/worker/worker_int.h"
#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>

#define ROOM_MS 5 /* how soon we check again whether there is room */
/* How long a run waits for a process that is ready and has no room: as long as an answer may take. */
#define WAIT_MS DGM_MAX_ANSWER_MS

static dgm_worker_run *run_of(struct worker_item *i)
{
    return (dgm_worker_run *)(void *)i;
}

/* ---- deliveries ------------------------------------------------------------------------------------------------------------ */

struct worker_delivery *dgm_worker_delivery_new(struct worker_item *i, dgm_arena *a,
                                                enum worker_delivery_kind kind)
{
    struct worker_delivery *d = dgm_xcalloc(1, sizeof *d);
    d->kind = kind;
    d->item = i;
    d->arena = a;
    atomic_fetch_add(&i->refs, 1);
    return d;
}

static void delivery_free(struct worker_delivery *d)
{
    struct worker_item *i = d->item;
    atomic_fetch_sub(&i->n_held, d->bytes);
    if (d->kind == WORKER_ON_REQUEST && d->request)
        dgm_worker_respond_error(d->request, DGM_WORKER_BAD_PARAMS, "the run has ended");
    dgm_worker_info_unref(d->info);
    dgm_arena_free(d->arena);
    free(d);
    dgm_worker_item_unref(i);
}

/* ---- the end ----------------------------------------------------------------------------------------------------------------- */

static void run_on_closed(void *arg)
{
    dgm_worker_run *r = arg;
    dgm_worker_item_unref(&r->item);
}

/* No callback follows. The reference of the owner is released when the timers are closed. */
static void run_close(dgm_worker_run *r)
{
    if (r->item.is_over)
        return;
    r->item.is_over = true;
    dgm_timer_stop(&r->room);
    dgm_timer_stop(&r->limit);
    while (r->first) {
        struct worker_delivery *d = r->first;
        r->first = d->next;
        delivery_free(d);
    }
    r->last = NULL;
    dgm_timer_close(&r->room, NULL, NULL);
    dgm_timer_close(&r->limit, run_on_closed, r);
}

void dgm_worker_item_free(struct worker_item *i)
{
    if (i->kind == WORKER_RUN)
        free(run_of(i));
    else
        free((dgm_worker_call *)(void *)i);
}

/* The owner may start another run in here, but it must not touch this one any more. */
static void run_report_fault(dgm_worker_run *r, const dgm_worker_fault *fault)
{
    dgm_worker_run_handler h = r->handler;
    run_close(r);
    h.on_error(h.user, fault);
}

/* ---- params ------------------------------------------------------------------------------------------------------------------- */

/* A fault that is found on this loop; it is reported later. */
static void run_fail_later(dgm_worker_run *r, const char *safe)
{
    dgm_arena *a = dgm_arena_new_small(512);
    struct worker_delivery *d = dgm_worker_delivery_new(&r->item, a, WORKER_ON_FAULT);
    d->fault = (dgm_worker_fault){.kind = DGM_WORKER_UNAVAILABLE,
                                  .safe = dgm_arena_dup(a, dgm_str_from(safe))};
    dgm_worker_deliver(d, false);
}

/* The line of the request. False: a fault is on its way. */
static bool run_write_line(dgm_worker_run *r, const struct worker_info *info, dgm_buf *b)
{
    const char *safe = "the message cannot be sent to the agent";
    dgm_buf_printf(b,
                   "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"run\",\"params\":{\"run\":\"%s\"",
                   (unsigned long long)r->item.number, r->id);
    r->can_input = info->can_input;
    bool is_written = r->handler.write_params(r->handler.user, info->result, b, &safe);
    dgm_buf_add_lit(b, "}}\n");
    if (b->over)
        safe = "the message and its conversation are larger than the limit worker_line_bytes of 8 "
               "MiB";
    if (!is_written || b->over)
        run_fail_later(r, safe);
    return is_written && !b->over;
}

static void run_on_ready(dgm_worker_run *r, const struct worker_info *info)
{
    dgm_buf b;
    dgm_buf_init(&b, DGM_WORKER_LINE_BYTES);
    if (run_write_line(r, info, &b))
        dgm_worker_go_home(&r->item, dgm_worker_item_set_line, dgm_buf_str(&b));
    else
        dgm_worker_go_home(&r->item, dgm_worker_item_drop, (dgm_str){0});
    dgm_buf_done(&b);
}

/* ---- receiving -------------------------------------------------------------------------------------------------------------------- */

static void run_on_request(dgm_worker_run *r, struct worker_delivery *d)
{
    dgm_worker_request *request = dgm_take(d->request);
    request->loop = r->item.loop;
    if (!r->handler.on_request || !r->handler.on_request(r->handler.user, request))
        dgm_worker_respond_error(request, DGM_WORKER_NO_METHOD, "unknown method \"%.*s\"",
                                 DGM_P(request->method));
}

static void run_receive(dgm_worker_run *r, struct worker_delivery *d)
{
    dgm_worker_run_handler h = r->handler;
    switch (d->kind) {
    case WORKER_ON_READY: run_on_ready(r, d->info); break;
    case WORKER_ON_EVENT:
        d->event.arena = d->arena;
        h.on_event(h.user, &d->event);
        break;
    case WORKER_ON_LOG: h.on_log(h.user, d->event.type, d->fault.message); break;
    case WORKER_ON_REQUEST: run_on_request(r, d); break;
    case WORKER_ON_RESULT:
        run_close(r);
        h.on_result(h.user, d->result);
        break;
    case WORKER_ON_FAULT: run_report_fault(r, &d->fault); break;
    }
}

static bool run_is_full(const dgm_worker_run *r)
{
    return !r->is_canceled && r->handler.is_full && r->handler.is_full(r->handler.user);
}

static void run_on_room(void *arg)
{
    dgm_worker_run *r = arg;
    atomic_fetch_add(&r->item.refs, 1);
    while (r->first && !r->item.is_over && !run_is_full(r)) {
        struct worker_delivery *d = r->first;
        r->first = d->next;
        if (!r->first)
            r->last = NULL;
        run_receive(r, d);
        delivery_free(d);
    }
    if (r->first && !r->item.is_over)
        dgm_timer_start(&r->room, ROOM_MS);
    dgm_worker_item_unref(&r->item);
}

static void run_accept(dgm_worker_run *r, struct worker_delivery *d)
{
    bool waits = r->first || (d->kind != WORKER_ON_READY && run_is_full(r));
    if (waits) {
        d->next = NULL;
        if (r->last)
            r->last->next = d;
        else
            r->first = d;
        r->last = d;
        if (!r->room.place)
            dgm_timer_start(&r->room, ROOM_MS);
        return;
    }
    run_receive(r, d);
    delivery_free(d);
}

static void delivery_arrive(void *arg)
{
    struct worker_delivery *d = arg;
    if (d->item->is_over)
        delivery_free(d);
    else if (d->item->kind == WORKER_RUN)
        run_accept(run_of(d->item), d);
    else {
        dgm_worker_call_receive((dgm_worker_call *)(void *)d->item, d);
        delivery_free(d);
    }
}

void dgm_worker_deliver(struct worker_delivery *d, bool is_direct)
{
    if (is_direct && dgm_loop_current() == d->item->loop)
        delivery_arrive(d);
    else
        dgm_loop_post(d->item->loop, delivery_arrive, d);
}

bool dgm_worker_run_receive_at_once(dgm_worker_run *r, const dgm_worker_event *event)
{
    if (r->item.is_over)
        return true; /* dropped */
    if (r->first || run_is_full(r))
        return false;
    r->handler.on_event(r->handler.user, event);
    return true;
}

/* ---- time limits ------------------------------------------------------------------------------------------------------------------------ */

static void run_end_with(dgm_worker_run *r, dgm_worker_fault_kind kind, const char *safe)
{
    dgm_worker_go_home(&r->item, dgm_worker_item_drop, (dgm_str){0});
    run_report_fault(r, &(dgm_worker_fault){.kind = kind, .safe = dgm_str_from(safe)});
}

static void run_on_limit(void *arg)
{
    dgm_worker_run *r = arg;
    uint64_t waited = uv_now(&r->item.loop->uv) - r->started_ms;
    if (r->is_canceled) {
        run_end_with(r, DGM_WORKER_IGNORED, "the agent did not stop in time");
        return;
    }
    if (r->item.is_sent)
        return;
    struct worker_info *info = dgm_worker_info_get(r->item.slot);
    bool is_ready = info != NULL;
    dgm_worker_info_unref(info);
    if (is_ready && waited < WAIT_MS)
        dgm_timer_start(&r->limit, WAIT_MS - waited);
    else if (is_ready)
        run_end_with(r, DGM_WORKER_BUSY, "the agent is busy, try again later");
    else
        run_end_with(r, DGM_WORKER_UNAVAILABLE, "the agent did not become ready in time");
}

/* ---- from outside -------------------------------------------------------------------------------------------------------------------------- */

dgm_worker_run *dgm_worker_run_start(dgm_worker_pool *p, dgm_loop *loop, dgm_str thread,
                                     const dgm_worker_run_handler *handler)
{
    dgm_worker_run *r = dgm_xcalloc(1, sizeof *r);
    dgm_worker_item_init(&r->item, WORKER_RUN, p, loop, thread);
    r->handler = *handler;
    r->item.fence = dgm_worker_fence_copy(&handler->fence);
    snprintf(r->id, sizeof r->id, "r%llu", (unsigned long long)r->item.number);
    r->started_ms = uv_now(&loop->uv);
    dgm_timer_init(loop, &r->room, run_on_room, r);
    dgm_timer_init(loop, &r->limit, run_on_limit, r);
    dgm_timer_start(&r->limit, p->start_ms);
    struct worker_info *info = dgm_worker_info_get(r->item.slot);
    dgm_buf b;
    dgm_buf_init(&b, DGM_WORKER_LINE_BYTES);
    if (!info || run_write_line(r, info, &b))
        dgm_worker_go_home(&r->item, dgm_worker_item_enqueue, dgm_buf_str(&b));
    dgm_buf_done(&b);
    dgm_worker_info_unref(info);
    return r;
}

dgm_str dgm_worker_run_id(const dgm_worker_run *r)
{
    return dgm_str_from(r->id);
}

void dgm_worker_run_cancel(dgm_worker_run *r)
{
    if (r->is_canceled || r->item.is_over)
        return;
    r->is_canceled = true;
    dgm_timer_start(&r->limit, DGM_WORKER_CANCEL_MS);
    if (r->first)
        dgm_timer_start(&r->room, 0); /* what waits is delivered now */
    dgm_worker_go_home(&r->item, dgm_worker_item_cancel, (dgm_str){0});
}

bool dgm_worker_run_input(dgm_worker_run *r, dgm_str message)
{
    dgm_buf b;
    if (!r->can_input || r->item.is_over || r->is_canceled)
        return false;
    dgm_buf_init(&b, DGM_WORKER_LINE_BYTES);
    dgm_buf_printf(
        &b,
        "{\"jsonrpc\":\"2.0\",\"method\":\"input\",\"params\":{\"run\":\"%s\",\"message\":", r->id);
    dgm_buf_add_str(&b, message);
    dgm_buf_add_lit(&b, "}}\n");
    bool fits = !b.over;
    if (fits)
        dgm_worker_go_home(&r->item, dgm_worker_item_input, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return fits;
}

void dgm_worker_run_drop(dgm_worker_run *r)
{
    dgm_worker_go_home(&r->item, dgm_worker_item_drop, (dgm_str){0});
    run_close(r);
}
