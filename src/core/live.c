/*
 * core/live.c - a task in memory: loading, appending, writing, publishing, resting.
 *
 *   LOADING ──► READY ──► (rests: nothing runs, nobody reads) gone; the store has it
 *      │          └─────► BROKEN: the store refused; readers keep what was published
 *      └──► not there: every call is told so
 *
 * What must stay true: an answer that speaks of a record goes out when the record is published, and a
 * record is published when the store has it.
 */
#include "base/limits.h"
#include "core/core_int.h"

#include <stdlib.h>

static void flush(void *arg);

/* ---- life ------------------------------------------------------------------------------------------------------ */

static struct live *make(struct shard *s, dgm_owner owner, dgm_str id)
{
    dgm_arena *a = dgm_arena_new();
    struct live *l = dgm_new(a, struct live);
    l->arena = a;
    l->shard = s;
    l->owner = (dgm_owner){dgm_arena_dup(a, owner.tenant), dgm_arena_dup(a, owner.principal)};
    l->id = dgm_arena_dup(a, id);
    l->flush = (dgm_loop_turn){.fn = flush, .arg = l};
    table_add(s, l);
    return l;
}

struct live *live_new(struct shard *s, dgm_owner owner, const dgm_core_agent *agent, dgm_str id,
                      dgm_str context_id)
{
    struct live *l = make(s, owner, id);
    l->is = LIVE_READY;
    l->agent = agent;
    l->context_id = dgm_arena_dup(l->arena, context_id);
    l->log = dgm_log_new(s->core->o.loops, 1);
    l->fold = dgm_fold_new(
        (dgm_fold_options){.foreign = agent->foreign, .keep_transitory = agent->keep_transitory});
    l->created_ms = dgm_loop_unix_ms();
    atomic_fetch_add_explicit(&s->core->tasks, 1, memory_order_relaxed);
    return l;
}

static void free_live(struct live *l)
{
    table_remove(l->shard, l);
    for (size_t i = 0; i < l->n_pending; i++)
        dgm_record_unref(l->pending[i]);
    free(l->pending);
    dgm_fold_free(l->fold);
    dgm_log_unref(l->log);
    dgm_arena_free(l->arena); /* l lives in it */
}

void live_drop(struct live *l)
{
    if (l->run)
        run_drop(l->run);
    free_live(l);
}

/* Nothing runs, nothing is being written, nobody waits. */
static bool is_idle(const struct live *l)
{
    return l->is != LIVE_LOADING && !l->held && !l->run && !l->n_writing && !l->n_pending &&
           !l->waiting && !l->queued && !l->canceling && !l->flush.queued;
}

void live_settle_down(struct live *l)
{
    bool over = l->is == LIVE_BROKEN || dgm_state_is_terminal(l->state);
    if (!is_idle(l))
        return;
    if (over)
        dgm_log_close(l->log);
    /* Whoever holds the log of a task that may go on must see how it does: then it stays. */
    if (over || !dgm_log_is_shared(l->log))
        free_live(l);
}

/* ---- answers that wait ------------------------------------------------------------------------------------------- */

void live_answer_when_published(struct live *l, struct call *c, uint64_t seq)
{
    if (l->is == LIVE_BROKEN) {
        core_refuse(c, &l->store_fault);
        return;
    }
    if (dgm_log_published(l->log) >= seq) {
        core_answer(c);
        return;
    }
    c->wait_seq = seq;
    struct call **at = &l->waiting;
    while (*at)
        at = &(*at)->next;
    c->next = NULL;
    *at = c;
}

static void answer_published(struct live *l)
{
    uint64_t published = dgm_log_published(l->log);
    struct call **at = &l->waiting;
    while (*at) {
        struct call *c = *at;
        if (c->wait_seq > published) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        core_answer(c);
    }
}

static void refuse_all(struct call **list, const dgm_err *err)
{
    while (*list) {
        struct call *c = *list;
        *list = c->next;
        core_refuse(c, err);
    }
}

/* ---- writing ------------------------------------------------------------------------------------------------------- */

struct written {
    struct live *live;
    uint64_t last;
};

static void broke(struct live *l, const dgm_err *err)
{
    send_is_stored(l);
    l->is = LIVE_BROKEN;
    l->store_fault = *err;
    refuse_all(&l->waiting, err);
    refuse_all(&l->queued, err);
    l->n_queued = 0;
    refuse_all(&l->canceling, err);
    if (l->run)
        run_cancel(l->run);
}

static void on_written(dgm_code code, const dgm_err *err, void *arg)
{
    struct written *w = arg;
    struct live *l = w->live;
    uint64_t last = w->last;
    free(w);
    l->n_writing--;
    if (code && l->is != LIVE_BROKEN) {
        broke(l, err);
    } else if (!code && l->is != LIVE_BROKEN) {
        dgm_log_publish(l->log, last);
        answer_published(l);
        send_is_stored(l);
    }
    live_settle_down(l);
}

static void flush(void *arg)
{
    struct live *l = arg;
    dgm_record *folded = NULL;
    dgm_err stopping = {0};
    if (l->shard->core->stopping && l->is != LIVE_BROKEN) {
        dgm_fail(&stopping, DGM_UNAVAILABLE, NULL, "the server is shutting down");
        broke(l, &stopping);
    }
    if (l->is == LIVE_BROKEN) {
        for (size_t i = 0; i < l->n_pending; i++)
            dgm_record_unref(l->pending[i]);
        l->n_pending = 0;
        live_settle_down(l);
        return;
    }
    if (l->write_folded)
        folded = live_snapshot(l);
    dgm_append batch = {
        .row = {.owner = l->owner,
                .id = l->id,
                .context_id = l->context_id,
                .agent = l->agent->id,
                .state = l->state,
                .created_ms = l->created_ms,
                .status_ms = l->status_ms,
                .last_seq = dgm_log_last(l->log),
                .folded_seq = folded ? folded->head.seq : 0,
                .folded = folded ? dgm_record_bytes(folded) : (dgm_str){0}},
        .records = l->pending,
        .n_records = l->n_pending,
        .turn = l->write_turn ? &l->turn : NULL,
        .dedupe = l->dedupe,
        .n_dedupe = l->n_dedupe,
        .sync = l->sync,
    };
    if (folded)
        l->folded_seq = folded->head.seq;
    struct written *w = dgm_xcalloc(1, sizeof *w);
    *w = (struct written){l, dgm_log_last(l->log)};
    l->n_writing++;
    dgm_store_append(l->shard->core->o.store, &batch, on_written, w);
    for (size_t i = 0; i < l->n_pending; i++)
        dgm_record_unref(l->pending[i]);
    dgm_record_unref(folded);
    l->n_pending = 0;
    l->n_dedupe = 0;
    l->sync = l->write_turn = l->write_folded = false;
}

static void write_soon(struct live *l)
{
    dgm_loop_at_turn_end(l->shard->loop, &l->flush);
}

/* What acknowledges something must be on the disk; text need not. */
static bool acknowledges(const dgm_event *e, dgm_task_state state)
{
    if (e->kind == DGM_EVENT_TASK)
        return true;
    if (e->kind == DGM_EVENT_STATUS)
        return dgm_state_is_terminal(state) || dgm_state_is_interrupted(state);
    return e->kind == DGM_EVENT_INTERNAL && e->internal->kind == DGM_INTERNAL_MESSAGE;
}

static void warn_of(struct live *l, size_t n_before)
{
    dgm_core *core = l->shard->core;
    size_t n = dgm_fold_n_warnings(l->fold);
    if (n == n_before)
        return;
    atomic_fetch_add_explicit(&core->warnings, n - n_before, memory_order_relaxed);
    if (core->o.on_warning)
        core->o.on_warning(core->o.user, l->id, dgm_fold_warning(l->fold));
}

dgm_code live_append(struct live *l, const dgm_event *event, dgm_author author, dgm_err *err)
{
    dgm_record *record;
    dgm_code rc;
    size_t n_warnings = dgm_fold_n_warnings(l->fold);
    dgm_record_head head = {
        .seq = dgm_log_last(l->log) + 1, .time = dgm_loop_unix_ms(), .turn = l->turn.turn};
    if ((rc = dgm_record_new(event, head, &l->shard->scratch, &record, err)))
        return rc;
    if ((rc = dgm_fold_add(l->fold, event, author, err))) {
        dgm_record_unref(record);
        return rc;
    }
    warn_of(l, n_warnings);
    if (event->kind == DGM_EVENT_TASK || event->kind == DGM_EVENT_STATUS) {
        l->state = dgm_fold_task(l->fold)->status.state;
        l->status_ms = head.time;
    }
    l->sync = l->sync || acknowledges(event, l->state);
    if (l->n_pending == l->pending_cap) {
        l->pending_cap = l->pending_cap ? 2 * l->pending_cap : 8;
        l->pending = dgm_xrealloc(l->pending, l->pending_cap * sizeof *l->pending);
    }
    l->pending[l->n_pending++] = dgm_record_ref(record);
    dgm_log_append(l->log, record);
    atomic_fetch_add_explicit(&l->shard->core->records, 1, memory_order_relaxed);
    write_soon(l);
    return DGM_OK;
}

dgm_record *live_snapshot(struct live *l)
{
    dgm_record *record = NULL;
    dgm_event event = {.kind = DGM_EVENT_TASK,
                       .task = (dgm_task *)(uintptr_t)dgm_fold_task(l->fold)};
    dgm_record_head head = {
        .seq = dgm_log_last(l->log), .time = dgm_loop_unix_ms(), .turn = l->turn.turn};
    /* Larger than a record may be: lists and reads then do without, and build it from the log. */
    if (dgm_record_new(&event, head, &l->shard->scratch, &record, NULL))
        return NULL;
    return record;
}

/* ---- when a run is over ----------------------------------------------------------------------------------------------- */

static void answer_cancels(struct live *l)
{
    while (l->canceling) {
        struct call *c = l->canceling;
        l->canceling = c->next;
        if (l->state == DGM_STATE_CANCELED) {
            c->snapshot = live_snapshot(l);
            live_answer_when_published(l, c, dgm_log_last(l->log));
        } else {
            core_refuse_with(c, DGM_TASK_NOT_CANCELABLE, "the task ended before it was canceled");
        }
    }
}

void live_rest(struct live *l)
{
    l->turn.last_seq = dgm_log_last(l->log);
    l->write_turn = l->write_folded = true;
    l->sync = true;
    write_soon(l);
}

void live_run_ended(struct live *l)
{
    dgm_err over = {0};
    l->run = NULL;
    live_rest(l);
    if (!dgm_state_is_terminal(l->state)) {
        struct call *next = l->queued;
        if (next && l->is == LIVE_READY) {
            l->queued = next->next;
            l->n_queued--;
            send_to_task(l, next);
        }
        return;
    }
    answer_cancels(l);
    dgm_fail(&over, DGM_UNSUPPORTED_OPERATION, NULL,
             "the task has ended: send a message without its id, in the same context");
    refuse_all(&l->queued, &over);
    l->n_queued = 0;
}

/* ---- loading ---------------------------------------------------------------------------------------------------------- */

static void not_there(struct live *l, dgm_code code, const dgm_err *err)
{
    dgm_err missing = {0};
    if (!code)
        dgm_fail(&missing, DGM_TASK_NOT_FOUND, NULL, "Task not found");
    refuse_all(&l->loading, code ? err : &missing);
    free_live(l);
}

static void loaded(struct live *l)
{
    struct call *c, *in_order = NULL;
    l->is = LIVE_READY;
    while ((c = l->loading)) { /* they were put in front */
        l->loading = c->next;
        c->next = in_order;
        in_order = c;
    }
    l->held = true; /* each of them may be the last to need it */
    while ((c = in_order)) {
        in_order = c->next;
        live_take(l, c);
    }
    l->held = false;
    live_settle_down(l);
}

/* The fold takes up what the log says; a log that cannot be read is the store's fault. */
static dgm_code take_record(struct live *l, dgm_record *record, bool in_log, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_event event;
    if (in_log && record->head.seq <= l->folded_seq) { /* folded already: here for a cursor */
        dgm_log_append(l->log, dgm_record_ref(record));
        return DGM_OK;
    }
    dgm_code rc = dgm_record_event(record, a, &event, err);
    if (!rc && dgm_fold_add(l->fold, &event, DGM_BY_SERVER, err) && !l->agent->foreign)
        rc =
            DGM_INTERNAL; /* what another maker's agent got away with the first time it does again */
    if (!rc && in_log)
        dgm_log_append(l->log, dgm_record_ref(record));
    return rc;
}

static void load_more(struct live *l);

/* The store is gone, or will be in a moment. */
static bool gave_up(struct live *l)
{
    dgm_err err = {0};
    if (!l->shard->core->stopping)
        return false;
    dgm_fail(&err, DGM_UNAVAILABLE, NULL, "the server is shutting down");
    not_there(l, DGM_UNAVAILABLE, &err);
    return true;
}

static void got_records(dgm_code code, dgm_record **records, size_t n, const dgm_err *err,
                        void *arg)
{
    struct live *l = arg;
    dgm_err fault = {0};
    if (gave_up(l))
        return;
    if (code) {
        not_there(l, code, err);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if ((code = take_record(l, records[i], true, &fault))) {
            not_there(l, code, &fault);
            return;
        }
    }
    dgm_log_publish(l->log, dgm_log_last(l->log));
    if (n && dgm_log_last(l->log) < l->turn.last_seq) /* last_seq of the row, see got_task */
        load_more(l);
    else
        loaded(l);
}

static void load_more(struct live *l)
{
    dgm_store_get_records(l->shard->core->o.store, l->owner, l->id, dgm_log_last(l->log) + 1, 4096,
                          (size_t)8 << 20, got_records, l);
}

static const dgm_core_agent *agent_of(dgm_core *core, dgm_str id)
{
    for (size_t i = 0; i < core->o.n_agents; i++) {
        if (dgm_str_eq(core->agents[i].id, id))
            return &core->agents[i];
    }
    return NULL;
}

static void got_turns(dgm_code code, const dgm_turn_row *turns, size_t n, const dgm_err *err,
                      void *arg)
{
    struct live *l = arg;
    uint64_t last_seq = l->turn.last_seq;
    if (gave_up(l))
        return;
    if (code) {
        not_there(l, code, err);
        return;
    }
    if (n) {
        const dgm_turn_row *t = &turns[n - 1];
        l->turn = (dgm_turn_row){.turn = t->turn,
                                 .first_seq = t->first_seq,
                                 .protocol = dgm_arena_dup(l->arena, t->protocol),
                                 .caller_id = dgm_arena_dup(l->arena, t->caller_id),
                                 .request = dgm_arena_dup(l->arena, t->request),
                                 .previous = dgm_arena_dup(l->arena, t->previous)};
    }
    l->turn.last_seq = last_seq;
    if (dgm_log_last(l->log) < last_seq)
        load_more(l);
    else
        loaded(l);
}

/* What is folded need not be loaded, unless somebody reads on from there. */
static uint64_t first_wanted(const struct live *l, uint64_t first)
{
    for (const struct call *c = l->loading; c; c = c->next) {
        if (c->kind == CALL_SUBSCRIBE && c->cursor < first)
            first = c->cursor + 1;
    }
    return first;
}

static void got_task(dgm_code code, const dgm_task_row *row, const dgm_err *err, void *arg)
{
    struct live *l = arg;
    dgm_core *core = l->shard->core;
    if (gave_up(l))
        return;
    if (code || !row || !(l->agent = agent_of(core, row->agent))) {
        not_there(l, code, err);
        return;
    }
    l->context_id = dgm_arena_dup(l->arena, row->context_id);
    l->state = row->state;
    l->created_ms = row->created_ms;
    l->status_ms = row->status_ms;
    l->folded_seq = row->folded_seq;
    l->turn.last_seq = row->last_seq;
    l->fold = dgm_fold_new((dgm_fold_options){.foreign = l->agent->foreign,
                                              .keep_transitory = l->agent->keep_transitory});
    l->log = dgm_log_new(core->o.loops, first_wanted(l, row->folded_seq + 1));
    if (row->folded_seq) {
        dgm_record *record = NULL;
        dgm_err fault = {0};
        dgm_record_head head = {
            .seq = row->folded_seq, .kind = DGM_EVENT_TASK, .state = row->state};
        dgm_code rc = dgm_record_from_bytes(head, row->folded, &record, &fault);
        if (!rc)
            rc = take_record(l, record, false, &fault);
        dgm_record_unref(record);
        if (rc) {
            not_there(l, rc, &fault);
            return;
        }
    }
    dgm_store_get_turns(core->o.store, l->owner, l->id, got_turns, l);
}

/* Now and then somebody has stopped reading a task that rests: look at a few when there is work. */
static void sweep(struct shard *s)
{
    if (!s->n_buckets)
        return;
    s->sweep = (s->sweep + 1) & (s->n_buckets - 1);
    for (struct live *l = s->buckets[s->sweep], *next; l; l = next) {
        next = l->next;
        live_settle_down(l);
    }
}

void live_with(struct shard *s, struct call *c)
{
    sweep(s);
    struct live *l = table_find(s, c->owner, c->task_id);
    if (l && l->is != LIVE_LOADING) {
        live_take(l, c);
        return;
    }
    bool first = !l;
    if (first)
        l = make(s, c->owner, c->task_id);
    c->next = l->loading;
    l->loading = c;
    if (first)
        dgm_store_get_task(s->core->o.store, l->owner, l->id, got_task, l);
}

/* ---- what is asked of a task --------------------------------------------------------------------------------------------- */

static void take_subscribe(struct live *l, struct call *c)
{
    uint64_t last = dgm_log_last(l->log);
    bool has_cursor = c->cursor != DGM_NO_CURSOR;
    if (!has_cursor && dgm_state_is_terminal(l->state)) {
        core_refuse_with(c, DGM_UNSUPPORTED_OPERATION, "the task has ended: get it instead");
        live_settle_down(l);
        return;
    }
    c->log = dgm_log_ref(l->log);
    if (has_cursor && c->cursor + 1 >= dgm_log_first(l->log) && c->cursor <= last) {
        c->after = c->cursor;
    } else {
        c->snapshot = live_snapshot(l);
        c->after = last;
    }
    live_answer_when_published(l, c, c->snapshot ? last : 0);
    live_settle_down(l);
}

struct cancel_wait {
    dgm_timer timer;
    dgm_loop_stop stop;
    struct shard *shard;
    dgm_arena *arena;
    dgm_owner owner;
    dgm_str id;
};

static void free_wait(void *arg)
{
    struct cancel_wait *w = arg;
    dgm_arena_free(w->arena);
}

static void end_wait(void *arg)
{
    struct cancel_wait *w = arg;
    dgm_loop_off_stop(w->shard->loop, &w->stop);
    dgm_timer_close(&w->timer, free_wait, w);
}

/* The agent takes its time: say how the task stands. */
static void cancel_timed_out(void *arg)
{
    struct cancel_wait *w = arg;
    struct live *l = table_find(w->shard, w->owner, w->id);
    while (l && l->canceling) {
        struct call *c = l->canceling;
        l->canceling = c->next;
        c->snapshot = live_snapshot(l);
        live_answer_when_published(l, c, dgm_log_last(l->log));
    }
    end_wait(w);
}

static void wait_for_cancel(struct live *l)
{
    dgm_arena *a = dgm_arena_new();
    struct cancel_wait *w = dgm_new(a, struct cancel_wait);
    w->arena = a;
    w->shard = l->shard;
    w->owner = (dgm_owner){dgm_arena_dup(a, l->owner.tenant), dgm_arena_dup(a, l->owner.principal)};
    w->id = dgm_arena_dup(a, l->id);
    dgm_timer_init(l->shard->loop, &w->timer, cancel_timed_out, w);
    dgm_timer_start(&w->timer, DGM_CANCEL_WAIT_MS);
    w->stop = (dgm_loop_stop){.fn = end_wait, .arg = w};
    dgm_loop_on_stop(l->shard->loop, &w->stop);
}

/* By the server's own word, when nothing runs. */
static dgm_code end_task(struct live *l, dgm_task_state state, const char *error, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_status_update update = {
        .task_id = l->id,
        .context_id = l->context_id,
        .status = {.state = state, .timestamp = dgm_time_text(a, dgm_loop_unix_ms())},
        .metadata = error ? dgm_error_metadata(a, dgm_str_from(error)) : NULL};
    dgm_event event = {.kind = DGM_EVENT_STATUS, .status = &update};
    dgm_code rc = live_append(l, &event, DGM_BY_SERVER, err);
    if (!rc)
        live_rest(l);
    return rc;
}

static void take_cancel(struct live *l, struct call *c)
{
    dgm_err err = {0};
    if (l->state == DGM_STATE_CANCELED) {
        c->snapshot = live_snapshot(l);
        live_answer_when_published(l, c, dgm_log_last(l->log));
        live_settle_down(l);
        return;
    }
    if (dgm_state_is_terminal(l->state)) {
        core_refuse_with(c, DGM_TASK_NOT_CANCELABLE, "the task has ended");
        live_settle_down(l);
        return;
    }
    c->next = l->canceling;
    l->canceling = c;
    if (l->run) {
        bool first = !c->next;
        if (first)
            wait_for_cancel(l);
        run_cancel(l->run);
        return;
    }
    if (end_task(l, DGM_STATE_CANCELED, NULL, &err)) {
        l->canceling = c->next;
        core_refuse(c, &err);
        return;
    }
    answer_cancels(l);
}

static void take_settle(struct live *l, struct call *c)
{
    dgm_err err = {0};
    bool unfinished = !l->run && !dgm_state_is_terminal(l->state) &&
                      !dgm_state_is_interrupted(l->state) && !l->agent->backend->can_resume;
    if (unfinished &&
        end_task(l, DGM_STATE_FAILED, "the server was stopped while the agent was working", &err)) {
        core_refuse(c, &err);
        return;
    }
    live_answer_when_published(l, c, dgm_log_last(l->log));
    live_settle_down(l);
}

void live_take(struct live *l, struct call *c)
{
    if (c->agent && c->agent != l->agent) { /* at another agent's address there is no such task */
        core_refuse_with(c, DGM_TASK_NOT_FOUND, "Task not found");
        live_settle_down(l);
        return;
    }
    switch (c->kind) {
    case CALL_SEND: send_to_task(l, c); return;
    case CALL_SUBSCRIBE: take_subscribe(l, c); return;
    case CALL_CANCEL: take_cancel(l, c); return;
    case CALL_SETTLE: take_settle(l, c); return;
    case CALL_GET:
        if ((c->snapshot = live_snapshot(l)))
            live_answer_when_published(l, c, dgm_log_last(l->log));
        else
            core_refuse_with(c, DGM_TOO_LARGE, "the task is larger than the limit record_bytes");
        live_settle_down(l);
        return;
    }
}
