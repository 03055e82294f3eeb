/*
 * core/live.c - a task in memory: appending, writing, publishing, resting.
 *
 *   LOADING ──► READY ──► FREED (nothing runs, no reader); the store has it
 *      │          └─────► BROKEN: the store refused; readers keep what was published
 *      └──► FREED (not found): every call is refused
 *
 * What must stay true: an answer that speaks of a record goes out when the record is published, and a
 * record is published when the store has it.
 */
#include "base/ids.h"
#include "core/core_int.h"
#include "model/kinds.h"

#include <stdlib.h>

#define BATCH_KEEP_BYTES ((size_t)64 << 10) /* what stays of a list of records to be written */

/* ---- states ---------------------------------------------------------------------------------------------------- */

#define X(state, name, may_become) name,
static const char *const live_state_names[] = {LIVE_STATES(X)};
#undef X
#define X(state, name, may_become) [state] = (may_become),
static const uint16_t live_may_become[] = {LIVE_STATES(X)};
#undef X
const dgm_machine dgm_live_machine = {.name = "loaded-task",
                                      .states = live_state_names,
                                      .may_become = live_may_become,
                                      .n = N_LIVE_STATES,
                                      .is_of_task = true};

void dgm_live_set_state(struct live *l, enum live_state to)
{
    dgm_loop_trace(l->shard->loop, &dgm_live_machine, dgm_trace_task_object(l->id), l->state, to);
    l->state = to;
}

const dgm_machine dgm_live_task_machine = {.name = "task-state",
                                           .states = dgm_state_names,
                                           .may_become = dgm_state_transitions,
                                           .n = DGM_N_STATES,
                                           .is_of_task = true};

void dgm_live_set_task_state(struct live *l, dgm_task_state to)
{
    if (l->task_state != to)
        dgm_loop_trace(l->shard->loop, &dgm_live_task_machine, dgm_trace_task_object(l->id),
                       l->task_state, to);
    l->task_state = to;
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

static uint64_t task_hash(dgm_owner owner, dgm_str id)
{
    return dgm_hash_texts(0, (dgm_str[]){owner.tenant, owner.principal, id}, 3);
}

/* The same hash decides which loop owns what. */
struct shard *dgm_core_shard_of(dgm_core *core, dgm_owner owner, dgm_str key)
{
    if (core->n_shards == 1)
        return core->shards;
    return &core->shards[(task_hash(owner, key) >> 20) % core->n_shards];
}

static bool is_owner(dgm_owner a, dgm_owner b)
{
    return dgm_str_eq(a.tenant, b.tenant) && dgm_str_eq(a.principal, b.principal);
}

static bool is_same(const struct live *l, uint64_t hash, dgm_owner owner, dgm_str id)
{
    return l->node.hash == hash && dgm_str_eq(l->id, id) && is_owner(dgm_live_owner(l), owner);
}

struct live *dgm_live_find(struct shard *s, dgm_owner owner, dgm_str id)
{
    uint64_t hash = task_hash(owner, id);
    dgm_table_node *at = dgm_table_first(&s->lives, hash);
    while (at && !is_same((struct live *)(void *)at, hash, owner, id))
        at = at->next;
    return (struct live *)(void *)at;
}

dgm_str dgm_core_copy_text(char **at, dgm_str s)
{
    char *to = *at;
    if (s.n) { /* *at may be NULL if all texts are empty */
        memcpy(to, s.p, s.n);
        *at += s.n;
    }
    return (dgm_str){to, s.n};
}

static const struct live_rare no_rare;

struct live_rare *dgm_live_rare(struct live *l)
{
    if (l->rare == &no_rare)
        l->rare = dgm_xcalloc(1, sizeof *l->rare);
    return (struct live_rare *)(uintptr_t)l->rare;
}

struct live *dgm_live_alloc(struct shard *s, dgm_owner owner, dgm_str id, size_t context_room)
{
    size_t names = owner.tenant.n + owner.principal.n + id.n;
    struct live *l = dgm_xmalloc(sizeof *l + names + context_room);
    char *at = l->texts;
    *l = (struct live){.shard = s,
                       .tenant_n = (uint32_t)owner.tenant.n,
                       .principal_n = (uint32_t)owner.principal.n,
                       .rare = &no_rare,
                       .context_room = (uint32_t)context_room};
    l->turns.items = &l->turns.first;
    l->turns.cap = 1;
    l->write.flush = (dgm_loop_turn){.fn = dgm_live_flush, .arg = l};
    dgm_core_copy_text(&at, owner.tenant);
    dgm_core_copy_text(&at, owner.principal);
    l->id = dgm_core_copy_text(&at, id);
    l->waiting_end = &l->waiting;
    if (s->core->is_shared)
        dgm_share_open(l);
    dgm_table_add(&s->lives, &l->node, task_hash(owner, id));
    atomic_fetch_add_explicit(&s->core->live, 1, memory_order_relaxed);
    return l;
}

void dgm_live_open(struct live *l, dgm_str context_id, uint64_t first_seq)
{
    bool fits = context_id.n <= l->context_room;
    char *at = fits ? (char *)(uintptr_t)(l->id.p + l->id.n) : dgm_xmalloc(context_id.n);
    l->context_id = dgm_core_copy_text(&at, context_id);
    l->log = dgm_log_new(l->shard->core->o.loops, first_seq);
    dgm_live_reset_fold(l);
}

void dgm_live_reset_fold(struct live *l)
{
    dgm_fold_free(l->fold);
    l->fold = dgm_fold_new((dgm_fold_options){.foreign = l->agent->foreign,
                                              .keep_transitory = l->agent->keep_transitory,
                                              .task_id = l->id,
                                              .context_id = l->context_id});
}

static void live_release(struct live *l)
{
    dgm_resend_drop(l, UINT64_MAX);
    dgm_table_remove(&l->shard->lives, &l->node);
    atomic_fetch_sub_explicit(&l->shard->core->live, 1, memory_order_relaxed);
    dgm_live_clear_names(l);
    if (l->turns.items != &l->turns.first)
        free(l->turns.items);
    free(l->turns.texts);
    if (l->rare->share)
        dgm_share_done(l);
    dgm_fold_free(l->fold);
    dgm_log_unref(l->log);
    if (l->rare != &no_rare) {
        free(l->rare->store_fault);
        free(dgm_live_rare(l));
    }
    if (l->context_id.n > l->context_room)
        free((char *)(uintptr_t)l->context_id.p);
    free(l);
}

void dgm_live_free(struct live *l)
{
    dgm_live_set_state(l, LIVE_FREED);
    live_release(l);
}

/* The loops and their traces may be freed already. */
void dgm_live_drop(struct live *l)
{
    if (l->run)
        dgm_core_run_drop(l->run);
    live_release(l);
}

void dgm_live_free_if_idle(struct live *l)
{
    bool over = l->state == LIVE_BROKEN || dgm_state_is_terminal(l->task_state);
    bool is_cut = l->state == LIVE_BROKEN && !l->shard->core->stopping;
    if (l->state == LIVE_LOADING || l->held || l->run || l->write.n_appends || l->write.n_records ||
        l->waiting || l->rare->queued || l->rare->canceling || l->rare->older_load ||
        l->n_lookups || l->write.flush.next || (l->rare->share && dgm_share_is_busy(l)))
        return; /* it runs, it is being written or read, or a call waits */
    if (l->rare->share && !over)
        is_cut = l->shard->core->draining; /* another server goes on with it */
    if (is_cut)
        dgm_log_cut(l->log); /* of a broken one, there may be more */
    else if (over || l->shard->core->draining)
        dgm_log_close(l->log, l->log->published);
    /* A log of a task that can continue stays while it has readers: they see later records. */
    if (over || !dgm_log_is_shared(l->log))
        dgm_live_free(l);
    else if (l->rare->share)
        dgm_follow_start(l);
}

/* ---- answers that wait ------------------------------------------------------------------------------------------- */

void dgm_live_answer_when_published(struct live *l, struct call *c, uint64_t seq)
{
    c->wait_seq = seq;
    if (l->state == LIVE_BROKEN)
        dgm_call_refuse(c, l->rare->store_fault);
    else if (l->log->published >= seq)
        dgm_call_answer(c);
    else {
        c->next = NULL;
        *l->waiting_end = c;
        l->waiting_end = &c->next;
    }
}

void dgm_live_refuse_ended(struct live *l, struct call *c, const char *msg)
{
    dgm_err err = {0};
    if (!l->rare->share || l->state == LIVE_BROKEN || l->log->published >= l->log->last) {
        dgm_call_refuse_with(c, DGM_TASK_NOT_CANCELABLE, msg);
        return;
    }
    c->code = dgm_fail(&err, DGM_TASK_NOT_CANCELABLE, NULL, "%s", msg);
    c->err = dgm_new(c->arena, dgm_err);
    *c->err = err;
    dgm_live_answer_when_published(l, c, l->log->last);
}

/* ---- writing ------------------------------------------------------------------------------------------------------- */

struct written {
    struct live *live;
    uint64_t last;
    size_t bytes;
    dgm_record *task; /* of a shared store: the readers get it when it is stored */
    uint32_t epoch;
};

void dgm_live_break(struct live *l, const dgm_err *err)
{
    dgm_live_set_state(l, LIVE_BROKEN);
    dgm_live_rare(l)->store_fault = dgm_xmalloc(sizeof *err);
    *l->rare->store_fault = *err;
    err = l->rare->store_fault;
    dgm_resend_drop(l, UINT64_MAX);
    dgm_call_refuse_all(&l->waiting, err);
    l->waiting_end = &l->waiting;
    dgm_call_refuse_all(&dgm_live_rare(l)->queued, err);
    dgm_live_rare(l)->n_queued = 0;
    dgm_call_refuse_all(&dgm_live_rare(l)->canceling, err);
    if (l->run) {
        dgm_core_run_written(l->run, err->code);
        dgm_core_run_cancel(l->run);
    }
}

static void on_written(dgm_code code, const dgm_err *err, void *arg)
{
    struct written *w = arg;
    struct live *l = w->live;
    struct shard *s = l->shard;
    uint64_t last = w->last;
    dgm_record *task = w->task;
    uint32_t epoch = w->epoch;
    l->write.bytes -= w->bytes;
    free(w);
    l->write.n_appends--;
    s->n_writing--;
    l->held++; /* canceling its run may be the last thing it was for */
    if (l->rare->share && dgm_share_is_refused(l, epoch, code, err)) {
        dgm_record_unref(task);
    } else if (code && l->state != LIVE_BROKEN) {
        dgm_record_unref(task);
        dgm_live_break(l, err);
    } else if (!code && l->state != LIVE_BROKEN) {
        if (task)
            l->log->task = task;
        dgm_log_publish(l->log, last);
        if (l->run && l->run->notes)
            dgm_core_run_written(l->run, DGM_OK);
        struct call *c = l->waiting, *next;
        l->waiting = NULL;
        l->waiting_end = &l->waiting;
        for (; c; c = next) {
            next = c->next;
            dgm_live_answer_when_published(l, c, c->wait_seq);
        }
        dgm_resend_drop(l, l->log->published);
    } else {
        dgm_record_unref(task);
    }
    if (l->rare->share)
        dgm_follow_read(l); /* what waited for it */
    l->held--;
    dgm_live_free_if_idle(l);
    if (s->is_draining)
        dgm_drain_check(s);
}

static dgm_turn_row live_last_turn(const struct live *l)
{
    const struct live_turns *t = &l->turns;
    const char *caller_id = t->texts ? t->texts : "", *request = caller_id + t->last.caller_id_n;
    return (dgm_turn_row){.turn = t->last.turn,
                          .first_seq = t->last.first_seq,
                          .last_seq = t->last.last_seq,
                          .protocol = t->last.protocol,
                          .caller_id = {caller_id, t->last.caller_id_n},
                          .request = {request, t->last.request_n},
                          .previous = {request + t->last.request_n, t->last.previous_n}};
}

void dgm_live_flush(void *arg)
{
    struct live *l = arg;
    dgm_record *folded = NULL;
    dgm_turn_row turn;
    dgm_err stopping = {0};
    if (l->shard->core->stopping && l->state != LIVE_BROKEN) {
        dgm_fail(&stopping, DGM_UNAVAILABLE, NULL, "the server is shutting down");
        dgm_live_break(l, &stopping);
    }
    if (l->state == LIVE_BROKEN) { /* what was to be written is not */
        l->write.n_records = 0;
        dgm_live_clear_names(l);
        if (l->rare->share)
            dgm_follow_read(l); /* refuses what waited for it */
        dgm_live_free_if_idle(l);
        return;
    }
    if (l->write.folded)
        folded = dgm_live_snapshot(l);
    bool is_last = folded && dgm_state_is_terminal(l->task_state) && !l->log->task;
    if (is_last && !l->rare->share)
        l->log->task = dgm_record_ref(folded);
    if (l->write.turn)
        turn = live_last_turn(l);
    dgm_append batch = {
        .row = {.owner = dgm_live_owner(l),
                .id = l->id,
                .context_id = l->context_id,
                .agent = l->agent->id,
                .state = l->task_state,
                .created_ms = l->created_ms,
                .status_ms = l->status_ms,
                .last_seq = l->log->last,
                .folded_seq = folded ? folded->head.seq : 0,
                .folded = folded ? dgm_record_bytes(folded) : (dgm_str){0}},
        .records =
            l->write.n_records ? dgm_log_tail(l->log, l->write.n_records, &l->shard->batch) : NULL,
        .n_records = l->write.n_records,
        .turn = l->write.turn ? &turn : NULL,
        .taken = l->write.message,
        .open_calls = l->write.open_calls ? l->write.open_calls->ids : (dgm_strs){0},
        .note = l->shard->note,
        .fence = l->rare->share ? l->rare->share->lease.fence : 0,
        .releases = l->rare->share && dgm_share_releases(l),
        .sync = l->write.sync,
    };
    struct written *w = dgm_xcalloc(1, sizeof *w);
    *w = (struct written){.live = l, .last = l->log->last};
    if (l->rare->share) {
        w->epoch = l->rare->share->epoch;
        w->task = is_last ? dgm_record_ref(folded) : NULL;
    }
    for (size_t i = 0; i < l->write.n_records; i++)
        w->bytes += batch.records[i]->n;
    l->write.n_appends++;
    l->shard->n_writing++;
    dgm_store_append(l->shard->core->o.store, &batch, on_written, w);
    l->shard->note = NULL;
    dgm_buf_shrink(&l->shard->batch, BATCH_KEEP_BYTES);
    dgm_record_unref(folded);
    l->write.n_records = 0;
    dgm_live_clear_names(l);
    l->write.sync = l->write.turn = l->write.folded = false;
}

/* ---- appending ------------------------------------------------------------------------------------------------- */

static void live_add_record(struct live *l, dgm_record *record)
{
    l->write.bytes += record->n;
    l->write.n_records++;
    dgm_log_append(l->log, record);
    atomic_fetch_add_explicit(&l->shard->core->records, 1, memory_order_relaxed);
    dgm_loop_at_turn_end(l->shard->loop, &l->write.flush);
}

dgm_code dgm_live_append(struct live *l, const dgm_event *event, dgm_author author, dgm_err *err)
{
    dgm_record *record;
    dgm_code rc;
    dgm_record_head head = {
        .seq = l->log->last + 1, .time = dgm_loop_unix_ms(), .turn = l->turns.last.turn};
    if ((rc = dgm_record_new(event, head, &l->shard->scratch, &record, err)))
        return rc;
    if ((rc = dgm_fold_add(l->fold, event, author, err))) {
        dgm_record_unref(record);
        return rc;
    }
    /* An event that acknowledges something must be on the disk; text need not. */
    bool is_task = event->kind == DGM_EVENT_TASK;
    l->write.sync |= is_task || (event->kind == DGM_EVENT_INTERNAL &&
                                 event->internal->kind == DGM_INTERNAL_MESSAGE);
    if (is_task || event->kind == DGM_EVENT_STATUS) {
        dgm_live_set_task_state(l, dgm_fold_state(l->fold));
        l->status_ms = head.time;
        l->write.sync |=
            dgm_state_is_terminal(l->task_state) || dgm_state_is_interrupted(l->task_state);
        if (dgm_state_is_interrupted(l->task_state))
            dgm_live_add_open_calls(l, is_task ? event->task->status.message
                                               : event->status->status.message);
    }
    if (author == DGM_BY_AGENT && l->agent->backend->has_threads)
        dgm_live_add_agent_message(l, event);
    live_add_record(l, record);
    return DGM_OK;
}

bool dgm_live_append_next_chunk(struct live *l, const dgm_event *event, int64_t now)
{
    const dgm_record *before = dgm_log_newest(l->log);
    dgm_record_head head = {.seq = l->log->last + 1, .time = now, .turn = l->turns.last.turn};
    dgm_record *record = before ? dgm_record_next_chunk(before, event, head) : NULL;
    if (!record)
        return false;
    const dgm_artifact_update *u = event->artifact;
    if ((u->task_id.n && !dgm_str_eq(u->task_id, l->id)) ||
        (u->context_id.n && !dgm_str_eq(u->context_id, l->context_id)) ||
        !dgm_fold_add_next_chunk(l->fold, u)) {
        dgm_record_unref(record);
        return false;
    }
    live_add_record(l, record);
    return true;
}

dgm_code dgm_live_end_task(struct live *l, dgm_task_state state, const char *error, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_message *why = error ? dgm_error_message(a, dgm_str_from(error)) : NULL;
    if (why) {
        why->message_id = dgm_uuid7_in(a);
        why->context_id = l->context_id;
        why->task_id = l->id;
    }
    dgm_status_update update = {.task_id = l->id,
                                .context_id = l->context_id,
                                .status = {.state = state,
                                           .message = why,
                                           .timestamp = dgm_time_text(a, dgm_loop_unix_ms())},
                                .metadata =
                                    error ? dgm_error_metadata(a, dgm_str_from(error)) : NULL};
    dgm_event event = {.kind = DGM_EVENT_STATUS, .status = &update};
    dgm_code rc = dgm_live_append(l, &event, DGM_BY_SERVER, err);
    if (!rc)
        dgm_live_end_turn(l);
    return rc;
}

dgm_record *dgm_live_snapshot(struct live *l)
{
    dgm_record *record = NULL;
    dgm_event event = {.kind = DGM_EVENT_TASK,
                       .task = (dgm_task *)(uintptr_t)dgm_fold_task(l->fold)};
    dgm_record_head head = {.seq = dgm_live_is_ours(l) ? l->log->last : l->rare->share->folded_to,
                            .time = dgm_loop_unix_ms(),
                            .turn = l->turns.last.turn};
    /* Larger than a record may be: lists and reads then do without, and build it from the log. */
    if (dgm_record_new(&event, head, &l->shard->scratch, &record, NULL))
        return NULL;
    return record;
}

/* How long a send that named no context is known by its message id alone. */
#define NAMELESS_MS ((int64_t)24 * 3600 * 1000)

/* ---- turns -------------------------------------------------------------------------------------------------------- */

dgm_code dgm_live_start_turn(struct live *l, struct call *c, const dgm_event *event, dgm_err *err)
{
    dgm_code rc;
    if (l->write.flush.next && (l->write.turn || l->write.message)) {
        dgm_loop_not_at_turn_end(l->shard->loop, &l->write.flush);
        if (l->rare->share)
            l->rare->share->is_continuing = true;
        dgm_live_flush(l); /* l stays: its caller holds it */
        if (l->rare->share)
            l->rare->share->is_continuing = false;
    }
    l->turns.last.turn++;
    if ((rc = dgm_live_append(l, event, DGM_BY_SERVER, err))) {
        l->turns.last.turn--;
        return rc;
    }
    dgm_live_add_turn(l, c);
    c->turn.number = l->turns.last.turn;
    c->turn.first_seq = l->turns.last.first_seq;
    if (c->send.dedupes) { /* the store remembers the message */
        bool nameless = !c->send.asked_context.n && !c->send.asked_task.n;
        dgm_str id = c->send.message_id, content = dgm_call_content(c);
        dgm_taken *taken = l->write.message = dgm_xmalloc(sizeof *taken + id.n + content.n);
        char *at = (char *)(taken + 1);
        taken->message_id = dgm_core_copy_text(&at, id);
        taken->nameless_until_ms = nameless ? dgm_loop_unix_ms() + NAMELESS_MS : 0;
        taken->content = dgm_core_copy_text(&at, content);
    }
    return DGM_OK;
}

void dgm_live_end_turn(struct live *l)
{
    l->turns.last.last_seq = l->log->last;
    l->write.turn = l->write.folded = true;
    l->write.sync = true;
    dgm_loop_at_turn_end(l->shard->loop, &l->write.flush);
    if (!dgm_state_is_terminal(l->task_state))
        return;
    while (l->rare->canceling) {
        struct call *c = l->rare->canceling;
        dgm_live_rare(l)->canceling = c->next;
        if (l->task_state == DGM_STATE_CANCELED) {
            c->snapshot = dgm_live_snapshot(l);
            dgm_live_answer_when_published(l, c, l->log->last);
        } else {
            dgm_live_refuse_ended(l, c, "the task ended before it was canceled");
        }
    }
}

void dgm_live_run_ended(struct live *l)
{
    l->run = NULL;
    dgm_live_end_turn(l);
    while (l->rare->queued && !l->run && l->state == LIVE_READY &&
           !dgm_state_is_terminal(l->task_state)) {
        struct call *next = l->rare->queued; /* it may be refused: then the one after it */
        dgm_live_rare(l)->queued = next->next;
        dgm_live_rare(l)->n_queued--;
        next->send.queue = NULL;
        dgm_deadline_stop(next); /* it has its turn now, and with it an answer */
        dgm_send_to_task(l, next);
    }
    if (!l->rare->queued || !dgm_state_is_terminal(l->task_state))
        return;
    dgm_err over = {0};
    dgm_fail(&over, DGM_UNSUPPORTED_OPERATION, NULL,
             "the task has ended: send a message without its id, in the same context");
    dgm_call_refuse_all(&dgm_live_rare(l)->queued, &over);
    dgm_live_rare(l)->n_queued = 0;
}
