/*
 * backend/worker/worker_queue.c - on the home loop: runs and calls that wait for the process, and those that it works on.
 *
 *   enqueue ─► WAITING ── params are written, the process is ready and has room ──► SENT ── response, or its end ──► gone
 *
 * A run that its owner has dropped stays in the table until the worker has answered it: the worker still works on it, and its
 * events are not those of an unknown run.
 */
#include "backend/worker/worker_int.h"
#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>

#define PAUSE_CHECK_MS 5
#define PAUSE_MAX_MS 2000 /* other runs of the process wait, too */
#define MISSES 3          /* pings: no more runs */

/* ---- items ----------------------------------------------------------------------------------------------------------------- */

void dgm_worker_item_init(struct worker_item *i, enum worker_item_kind kind, dgm_worker_pool *p,
                          dgm_loop *loop, dgm_str thread)
{
    i->refs = 1;
    i->kind = kind;
    i->loop = loop;
    i->thread = dgm_worker_thread_hash(thread);
    i->number = atomic_fetch_add(&p->n_numbers, 1) + 1;
    i->slot = dgm_worker_slot_for(p, loop, i->thread);
}

dgm_fence *dgm_worker_fence_copy(const dgm_fence *from)
{
    if (!from || !from->task_id.n)
        return NULL;
    dgm_fence *to =
        dgm_xmalloc(sizeof *to + from->owner.tenant.n + from->owner.principal.n + from->task_id.n);
    dgm_str texts[] = {from->owner.tenant, from->owner.principal, from->task_id};
    char *at = (char *)(to + 1);
    for (size_t i = 0; i < 3; i++) {
        if (texts[i].n)
            memcpy(at, texts[i].p, texts[i].n);
        texts[i].p = at;
        at += texts[i].n;
    }
    *to = (dgm_fence){{texts[0], texts[1]}, texts[2], from->fence, from->is_new};
    return to;
}

void dgm_worker_item_unref(struct worker_item *i)
{
    if (atomic_fetch_sub(&i->refs, 1) > 1)
        return;
    while (i->inputs) {
        struct worker_input *first = i->inputs;
        i->inputs = first->next;
        free(first);
    }
    free(i->line);
    free(i->fence);
    dgm_worker_item_free(i);
}

static void queue_forget_line(struct worker_item *i)
{
    i->slot->waiting_bytes -= i->n_line;
    free(dgm_take(i->line));
    i->n_line = 0;
}

/* Out of the list or the table. The reference of the home loop is the caller's now. */
static void queue_remove(struct worker_item *i)
{
    struct worker_slot *s = i->slot;
    if (i->place == WORKER_WAITING) {
        struct worker_item **at = &s->waiting;
        while (*at != i)
            at = &(*at)->next;
        *at = i->next;
        s->n_waiting--;
        queue_forget_line(i);
    } else if (i->place == WORKER_SENT) {
        dgm_table_remove(&s->sent, &i->node);
        s->n_runs -= i->kind == WORKER_RUN;
    }
    i->place = WORKER_NOWHERE;
}

struct worker_item *dgm_worker_queue_find(struct worker_slot *s, uint64_t number)
{
    dgm_table_node *n = dgm_table_first(&s->sent, number);
    while (n && n->hash != number)
        n = n->next;
    return n ? (struct worker_item *)(void *)((char *)n - offsetof(struct worker_item, node))
             : NULL;
}

/* ---- faults ------------------------------------------------------------------------------------------------------------------ */

static void queue_report(struct worker_item *i, dgm_worker_fault_kind kind, const char *safe,
                         const char *detail)
{
    dgm_arena *a = dgm_arena_new_small(1024);
    struct worker_delivery *d = dgm_worker_delivery_new(i, a, WORKER_ON_FAULT);
    d->fault = (dgm_worker_fault){.kind = kind,
                                  .code = kind == DGM_WORKER_ERROR ? DGM_WORKER_INTERNAL : 0,
                                  .safe = dgm_arena_dup(a, dgm_str_from(safe)),
                                  .detail = dgm_arena_dup(a, dgm_str_from(detail)),
                                  .output = dgm_worker_tail(i->slot, a)};
    dgm_worker_deliver(d, false);
}

/* It leaves the queue with a fault. */
static void queue_fail(struct worker_item *i, dgm_worker_fault_kind kind, const char *safe,
                       const char *detail)
{
    queue_remove(i);
    if (!i->is_ignored)
        queue_report(i, kind, safe, detail);
    dgm_worker_item_unref(i);
}

static void queue_notify_cancel(struct worker_item *i)
{
    char line[120];
    int n = snprintf(line, sizeof line,
                     "{\"jsonrpc\":\"2.0\",\"method\":\"cancel\",\"params\":{\"run\":\"r%llu\"}}\n",
                     (unsigned long long)i->number);
    if (i->is_canceled || i->kind != WORKER_RUN)
        return;
    i->is_canceled = true;
    dgm_worker_slot_send(i->slot, (dgm_str){line, (size_t)n});
}

void dgm_worker_queue_fail_item(struct worker_slot *s, struct worker_item *i,
                                dgm_worker_fault_kind kind, const char *safe, const char *detail)
{
    (void)s;
    i->is_ignored = true;
    queue_report(i, kind, safe, detail);
    queue_notify_cancel(i);
}

void dgm_worker_queue_fail_waiting(struct worker_slot *s, const char *safe, const char *detail)
{
    while (s->waiting)
        queue_fail(s->waiting, DGM_WORKER_UNAVAILABLE, safe, detail);
}

void dgm_worker_queue_lose_sent(struct worker_slot *s, const char *safe, const char *detail)
{
    for (size_t i = 0; i < s->sent.cap; i++) {
        while (s->sent.slots[i]) {
            struct worker_item *item =
                (struct worker_item *)(void *)((char *)s->sent.slots[i] -
                                               offsetof(struct worker_item, node));
            queue_fail(item, DGM_WORKER_LOST, safe, detail);
        }
    }
}

/* ---- sending ------------------------------------------------------------------------------------------------------------------- */

static bool queue_thread_is_busy(const struct worker_slot *s, uint64_t thread)
{
    for (size_t i = 0; i < s->sent.cap; i++) {
        for (dgm_table_node *n = s->sent.slots[i]; n; n = n->next) {
            const struct worker_item *item =
                (const struct worker_item *)(void *)((char *)n -
                                                     offsetof(struct worker_item, node));
            if (item->kind == WORKER_RUN && item->thread == thread)
                return true;
        }
    }
    return false;
}

static bool queue_can_send(const struct worker_slot *s, const struct worker_item *i)
{
    if (!i->line || s->is_deaf)
        return false;
    if (i->kind == WORKER_CALL)
        return true;
    return !s->wants_reload && s->n_missed < MISSES && s->n_runs < s->max_runs &&
           !(s->pool->options.one_run_per_thread && queue_thread_is_busy(s, i->thread));
}

static void queue_send(struct worker_slot *s, struct worker_item *i)
{
    i->place = WORKER_SENT;
    i->is_sent = true;
    dgm_table_add(&s->sent, &i->node, i->number);
    s->n_runs += i->kind == WORKER_RUN;
    if (s->pool->options.service.on_thread)
        s->pool->options.service.on_thread(s->session, i->thread, i->fence);
    dgm_worker_slot_send(s, (dgm_str){i->line, i->n_line});
    queue_forget_line(i);
    while (i->inputs) {
        struct worker_input *first = i->inputs;
        i->inputs = first->next;
        dgm_worker_slot_send(s, (dgm_str){first->line, first->n});
        free(first);
    }
}

void dgm_worker_queue_pump(struct worker_slot *s)
{
    struct worker_item **at = &s->waiting;
    while (*at && s->state == WORKER_READY) {
        struct worker_item *i = *at;
        if (!queue_can_send(s, i)) {
            at = &i->next;
            continue;
        }
        *at = i->next;
        s->n_waiting--;
        queue_send(s, i);
    }
}

static void queue_request_params(struct worker_item *i, struct worker_info *info)
{
    struct worker_delivery *d =
        dgm_worker_delivery_new(i, dgm_arena_new_small(512), WORKER_ON_READY);
    i->is_requested = true;
    d->info = info;
    atomic_fetch_add(&info->refs, 1);
    dgm_worker_deliver(d, false);
}

void dgm_worker_queue_ready(struct worker_slot *s, struct worker_info *info)
{
    for (struct worker_item *i = s->waiting; i; i = i->next) {
        if (!i->line && !i->is_requested)
            queue_request_params(i, info);
    }
    dgm_worker_queue_pump(s);
}

static void queue_put_line(struct worker_item *i, dgm_str line)
{
    i->line = dgm_xmalloc(line.n + 1);
    memcpy(i->line, line.p, line.n);
    i->n_line = line.n;
    i->slot->waiting_bytes += line.n;
}

static void queue_append(struct worker_item *i)
{
    struct worker_item **at = &i->slot->waiting;
    while (*at)
        at = &(*at)->next;
    *at = i;
    i->next = NULL;
    i->place = WORKER_WAITING;
    i->slot->n_waiting++;
}

void dgm_worker_item_enqueue(struct worker_item *i, dgm_str line)
{
    struct worker_slot *s = i->slot;
    dgm_worker_slot_open(s);
    atomic_fetch_add(&i->refs, 1); /* of the home loop */
    if (s->is_closing) {
        queue_fail(i, DGM_WORKER_UNAVAILABLE, DGM_SHUTTING_DOWN, "");
    } else if (s->unavailable) {
        queue_fail(i, DGM_WORKER_UNAVAILABLE, s->unavailable, s->why);
    } else if (s->n_waiting >= DGM_MAX_WORKER_WAITING ||
               s->waiting_bytes + line.n > DGM_MAX_WORKER_WAITING_BYTES) {
        queue_fail(i, DGM_WORKER_BUSY, "the agent is busy, try again later",
                   "more than the limit worker_waiting wait for its worker process");
    } else {
        if (line.n)
            queue_put_line(i, line);
        queue_append(i);
        dgm_worker_slot_start(s);
        if (i->place == WORKER_WAITING && !i->line && s->state == WORKER_READY)
            queue_request_params(i, s->info);
        dgm_worker_queue_pump(s);
    }
}

void dgm_worker_item_set_line(struct worker_item *i, dgm_str line)
{
    if (i->place != WORKER_WAITING)
        return; /* it has failed meanwhile */
    queue_put_line(i, line);
    dgm_worker_queue_pump(i->slot);
}

/* ---- by its owner ----------------------------------------------------------------------------------------------------------------- */

void dgm_worker_item_cancel(struct worker_item *i, dgm_str unused)
{
    (void)unused;
    if (i->place == WORKER_SENT) {
        queue_notify_cancel(i);
    } else if (i->place == WORKER_WAITING) {
        dgm_arena *a = dgm_arena_new_small(512);
        struct worker_delivery *d = dgm_worker_delivery_new(i, a, WORKER_ON_RESULT);
        d->result = dgm_json_parse_trusted(a, DGM_STR("{\"status\":\"cancelled\"}"));
        queue_remove(i);
        dgm_worker_deliver(d, false);
        dgm_worker_item_unref(i);
    }
}

void dgm_worker_item_drop(struct worker_item *i, dgm_str unused)
{
    (void)unused;
    if (i->place == WORKER_WAITING) {
        queue_remove(i);
        dgm_worker_item_unref(i);
    } else if (i->place == WORKER_SENT) {
        i->is_ignored = true;
        queue_notify_cancel(i);
    }
}

void dgm_worker_item_input(struct worker_item *i, dgm_str line)
{
    if (i->place == WORKER_SENT) {
        dgm_worker_slot_send(i->slot, line);
        return;
    }
    struct worker_input **at = &i->inputs;
    while (*at)
        at = &(*at)->next;
    *at = dgm_xmalloc(sizeof **at + line.n);
    **at = (struct worker_input){.n = line.n};
    memcpy((*at)->line, line.p, line.n);
}

/* ---- its end ------------------------------------------------------------------------------------------------------------------------ */

static const char *queue_safe_text(int code)
{
    switch (code) {
    case DGM_WORKER_RAISED: return "the agent failed: its code raised an error";
    case DGM_WORKER_RECURSION: return "the agent reached its limit of steps";
    case DGM_WORKER_THREAD_BUSY:
        return "the agent still works on another message of this conversation";
    case DGM_WORKER_AT_MAX_RUNS: return "the agent is busy, try again later";
    case DGM_WORKER_BAD_LINE:
        return "the agent produced a value that is too large or cannot be written as JSON";
    default: return "the agent failed";
    }
}

static dgm_worker_fault queue_read_error(const dgm_json *error)
{
    int64_t code = 0;
    const dgm_json *number = dgm_json_get(error, DGM_STR("code"));
    const dgm_json *data = dgm_json_get(error, DGM_STR("data"));
    if (number)
        dgm_json_int(number, &code);
    dgm_worker_fault f = {.kind = DGM_WORKER_ERROR,
                          .code = code >= INT32_MIN && code < 0 ? (int)code : DGM_WORKER_INTERNAL,
                          .message = dgm_json_str_member(error, "message"),
                          .data = data,
                          .output = dgm_json_str_member(data, "traceback")};
    f.safe = dgm_str_from(queue_safe_text(f.code));
    if (f.code == DGM_WORKER_REJECTED && f.message.n)
        f.safe = f.message;
    f.detail = f.message;
    return f;
}

void dgm_worker_queue_finish(struct worker_slot *s, struct worker_item *i, const dgm_json *response)
{
    const dgm_json *error = dgm_json_get(response, DGM_STR("error"));
    queue_remove(i);
    if (!i->is_ignored) {
        struct worker_delivery *d = dgm_worker_delivery_new(
            i, dgm_take(s->arena), error ? WORKER_ON_FAULT : WORKER_ON_RESULT);
        if (error)
            d->fault = queue_read_error(error);
        else
            d->result = dgm_json_get(response, DGM_STR("result"));
        dgm_worker_deliver(d, true);
    }
    dgm_worker_item_unref(i);
    dgm_worker_queue_pump(s);
    dgm_worker_slot_check_idle(s);
}

/* ---- events that come too fast ---------------------------------------------------------------------------------------------------------- */

void dgm_worker_queue_end_pause(struct worker_slot *s)
{
    struct worker_item *i = dgm_take(s->paused_for);
    dgm_timer_stop(&s->pause_timer);
    if (!i)
        return;
    s->line_ms = uv_now(&s->home->uv); /* it could not be read */
    if (s->process)
        dgm_process_resume_channel(s->process);
    dgm_worker_item_unref(i);
}

void dgm_worker_queue_on_pause(void *slot)
{
    struct worker_slot *s = slot;
    struct worker_item *i = s->paused_for;
    bool is_late = uv_now(&s->home->uv) - s->paused_ms > PAUSE_MAX_MS;
    if (!i)
        return;
    if (is_late)
        i->is_slow = true;
    if (is_late || atomic_load(&i->n_held) < DGM_WORKER_PAUSE_BYTES / 2)
        dgm_worker_queue_end_pause(s);
    else
        dgm_timer_start(&s->pause_timer, PAUSE_CHECK_MS);
}

void dgm_worker_queue_check_room(struct worker_slot *s, struct worker_item *i)
{
    size_t held = atomic_load(&i->n_held);
    if (held < DGM_WORKER_PAUSE_BYTES / 2)
        i->is_slow = false;
    if (held > DGM_MAX_WORKER_HELD_BYTES && !i->is_ignored) {
        dgm_worker_queue_fail_item(s, i, DGM_WORKER_TOO_FAST,
                                   "the agent wrote its answer faster than it could be stored",
                                   "limit worker_held_bytes");
    } else if (held > DGM_WORKER_PAUSE_BYTES && !i->is_slow && !s->paused_for && s->process) {
        atomic_fetch_add(&i->refs, 1);
        s->paused_for = i;
        s->paused_ms = uv_now(&s->home->uv);
        dgm_process_pause_channel(s->process);
        dgm_timer_start(&s->pause_timer, PAUSE_CHECK_MS);
    }
}
