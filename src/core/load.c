/*
 * core/load.c - from the store: a task, and older records of one that is here.
 *
 *   the row with the folded Task ─► its turns ─► the records behind the folded Task ─► ready
 *
 * Records before the folded Task are loaded when somebody reads on from there, and put in front.
 */
#include "base/ids.h"
#include "core/core_int.h"

#include <assert.h>
#include <stdlib.h>

#define PAGE_RECORDS 4096
#define PAGE_BYTES ((size_t)8 << 20)

/* ---- a task ------------------------------------------------------------------------------------------------- */

static void load_failed(struct live *l, dgm_code code, const dgm_err *err)
{
    dgm_err missing = {0};
    if (!code)
        dgm_fail(&missing, DGM_TASK_NOT_FOUND, NULL, "Task not found");
    dgm_call_refuse_all(&dgm_live_rare(l)->loading, code ? err : &missing);
    if (l->rare->share)
        dgm_follow_refuse_all(l, code ? err : &missing);
    if (l->rare->share &&
        l->rare->share->lease.holder == DGM_LEASE_OURS) /* it is an orphan from then on */
        dgm_store_release_failed(l->shard->core->o.store, dgm_live_owner(l), l->id,
                                 l->rare->share->lease.fence);
    dgm_live_free(l);
}

/* They were put in front: the first that came is taken first. */
void dgm_live_handle_all(struct live *l, struct call **list)
{
    struct call *c, *in_order = NULL;
    while ((c = *list)) {
        *list = c->next;
        c->next = in_order;
        in_order = c;
    }
    l->held++; /* each of them may be the last to need it */
    while ((c = in_order)) {
        in_order = c->next;
        dgm_live_handle(l, c);
    }
    l->held--;
    dgm_live_free_if_idle(l);
}

static void load_finished(struct live *l)
{
    dgm_live_set_state(l, LIVE_READY);
    l->held++;
    if (l->rare->share)
        dgm_share_settle(l);
    dgm_live_handle_all(l, &dgm_live_rare(l)->loading);
    if (l->rare->share) /* for calls that came while it was loaded */
        dgm_follow_read(l);
    l->held--;
    dgm_live_free_if_idle(l);
}

/* A run ends in a state that is terminal or waits. A message in another state was accepted by the run that worked. */
static void find_joined_turn(struct live *l, const dgm_record *record, const dgm_event *event)
{
    dgm_task_state state = dgm_fold_state(l->fold);
    if (event->kind != DGM_EVENT_INTERNAL || event->internal->kind != DGM_INTERNAL_MESSAGE ||
        dgm_state_is_terminal(state) || dgm_state_is_interrupted(state))
        return;
    for (size_t i = l->turns.n; i-- > 1;) {
        if (l->turns.items[i].first_seq == record->head.seq)
            l->turns.items[i].is_joined = true;
    }
}

/* The fold takes up what the log says; a log that cannot be read is the store's fault. */
dgm_code dgm_live_fold_record(struct live *l, const dgm_record *record, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_event event;
    dgm_code rc = dgm_record_event(record, a, &event, err);
    if (!rc)
        find_joined_turn(l, record, &event);
    if (!rc && dgm_fold_add(l->fold, &event, DGM_BY_SERVER, err) && !l->agent->foreign)
        rc = DGM_INTERNAL; /* what another maker's agent got away with then it does again */
    return rc;
}

static void load_more(struct live *l);

/* The store is gone, or will be in a moment. */
static bool load_is_stopped(struct live *l)
{
    dgm_err err = {0};
    if (!l->shard->core->stopping)
        return false;
    dgm_fail(&err, DGM_UNAVAILABLE, NULL, "the server is shutting down");
    load_failed(l, DGM_UNAVAILABLE, &err);
    return true;
}

static void on_records(dgm_code code, dgm_record **records, size_t n, const dgm_err *err, void *arg)
{
    struct live *l = arg;
    uint64_t last_seq = l->turns.last.last_seq; /* that of the row, see on_task_row */
    dgm_err fault = {0};
    if (load_is_stopped(l))
        return;
    if (code) {
        load_failed(l, code, err);
        return;
    }
    /* Up to the row: its state and its lease are not those of what another server has stored since. */
    for (size_t i = 0; i < n && l->log->last < last_seq; i++) {
        if (records[i]->head.seq != l->log->last + 1)
            code = dgm_fail(&fault, DGM_INTERNAL, NULL, "the log of the task has a gap");
        if (code || (code = dgm_live_fold_record(l, records[i], &fault))) {
            load_failed(l, code, &fault);
            return;
        }
        dgm_log_append(l->log, dgm_record_ref(records[i]));
    }
    dgm_log_publish(l->log, l->log->last);
    if (n && l->log->last < last_seq)
        load_more(l);
    else
        load_finished(l);
}

static void load_more(struct live *l)
{
    dgm_store_get_records(l->shard->core->o.store, dgm_live_owner(l), l->id, l->log->last + 1,
                          PAGE_RECORDS, PAGE_BYTES, on_records, l);
}

/* Turns whose records were trimmed are only there for their number. */
static bool has_records(const dgm_turn_row *t)
{
    return !t->last_seq || t->first_seq <= t->last_seq;
}

void dgm_live_set_turns(struct live *l, const dgm_turn_row *turns, size_t n)
{
    if (l->turns.items != &l->turns.first)
        free(l->turns.items);
    l->turns.items = dgm_xcalloc(n + 1, sizeof *l->turns.items);
    l->turns.cap = (uint32_t)n + 1;
    l->turns.n = 0;
    for (size_t i = 0; i < n; i++) {
        if (has_records(&turns[i]))
            l->turns.items[l->turns.n++] =
                (struct turn_at){.first_seq = turns[i].first_seq, .turn = turns[i].turn};
    }
    if (n) {
        dgm_live_set_turn_texts(l, &turns[n - 1]);
        l->turns.last.turn = turns[n - 1].turn;
        l->turns.last.first_seq = turns[n - 1].first_seq;
    }
}

static void on_turn_rows(dgm_code code, const dgm_turn_row *turns, size_t n, const dgm_err *err,
                         void *arg)
{
    struct live *l = arg;
    uint64_t last_seq = l->turns.last.last_seq;
    if (load_is_stopped(l))
        return;
    if (code) {
        load_failed(l, code, err);
        return;
    }
    l->kept_first = n ? turns[0].first_seq : last_seq + 1;
    dgm_live_set_turns(l, turns, n);
    l->turns.last.last_seq = last_seq;
    if (l->log->last < last_seq)
        load_more(l);
    else
        load_finished(l);
}

dgm_code dgm_live_fold_row(struct live *l, const dgm_task_row *row, dgm_err *err)
{
    dgm_record *record = NULL;
    dgm_record_head head = {.seq = row->folded_seq, .kind = DGM_EVENT_TASK, .state = row->state};
    if (!row->folded_seq)
        return DGM_OK;
    dgm_code rc = dgm_record_from_bytes(head, row->folded, &record, err);
    if (!rc)
        rc = dgm_live_fold_record(l, record, err);
    dgm_record_unref(record);
    return rc;
}

/* All who wait only look, and the row says all there is: they get that, and no task is made of it. */
static bool answer_from_row(struct live *l, const dgm_task_row *row)
{
    dgm_record *task;
    dgm_record_head head = {.seq = row->folded_seq, .kind = DGM_EVENT_TASK, .state = row->state};
    struct call *c;
    if (!row->folded_seq || row->folded_seq != row->last_seq ||
        (l->rare->share && l->rare->share->waiting))
        return false;
    for (c = l->rare->loading; c; c = c->next) {
        if (c->kind != CALL_GET || (c->agent && !dgm_str_eq(c->agent->id, l->agent->id)))
            return false;
    }
    if (dgm_record_from_bytes(head, row->folded, &task, NULL))
        return false;
    while ((c = l->rare->loading)) {
        dgm_live_rare(l)->loading = c->next;
        c->snapshot = dgm_record_ref(task);
        dgm_call_answer(c);
    }
    dgm_record_unref(task);
    dgm_live_free(l);
    return true;
}

static void on_task_row(dgm_code code, const dgm_task_row *row, const dgm_err *err, void *arg)
{
    struct live *l = arg;
    dgm_core *core = l->shard->core;
    dgm_err fault = {0};
    if (load_is_stopped(l))
        return;
    if (!code && row && l->rare->share)
        l->rare->share->lease = row->lease;
    if (code || !row || !(l->agent = dgm_core_find_agent(core, row->agent))) {
        load_failed(l, code, err); /* others have the agent, perhaps */
        return;
    }
    if (answer_from_row(l, row))
        return;
    dgm_live_set_task_state(l, row->state);
    l->created_ms = row->created_ms;
    l->status_ms = row->status_ms;
    l->turns.last.last_seq = row->last_seq;
    dgm_live_open(l, row->context_id, row->folded_seq + 1);
    if ((code = dgm_live_fold_row(l, row, &fault)))
        load_failed(l, code, &fault);
    else
        dgm_store_get_turns(core->o.store, dgm_live_owner(l), l->id, on_turn_rows, l);
}

/* Now and then somebody has stopped reading a task that rests: look at a few when there is work. */
static void sweep(struct shard *s)
{
    if (!s->lives.cap)
        return;
    s->sweep = (s->sweep + 1) & (s->lives.cap - 1);
    for (dgm_table_node *at = s->lives.slots[s->sweep], *next; at; at = next) {
        next = at->next;
        dgm_live_free_if_idle((struct live *)(void *)at);
    }
}

/* ---- a task that rests --------------------------------------------------------------------------------------- */

/* One that is only looked at need not be loaded: the store has it as it is. */
static void on_resting_row(dgm_code code, const dgm_task_row *row, const dgm_err *err, void *arg)
{
    struct call *c = arg;
    dgm_err fault = {0};
    if (code) {
        dgm_call_refuse(c, err);
    } else if (!row || !c->agent || !dgm_str_eq(row->agent, c->agent->id)) {
        dgm_call_refuse_with(c, DGM_TASK_NOT_FOUND, "Task not found");
    } else if (!row->folded_seq || row->folded_seq != row->last_seq) {
        c->is_looked_up = true; /* it ran when the server ended, or runs by now */
        dgm_live_load_and_handle(c->shard, c);
    } else {
        dgm_record_head head = {.seq = row->folded_seq,
                                .time = row->status_ms,
                                .kind = DGM_EVENT_TASK,
                                .state = row->state};
        if (dgm_record_from_bytes(head, row->folded, &c->snapshot, &fault))
            dgm_call_refuse(c, &fault);
        else
            dgm_call_answer(c);
    }
}

void dgm_live_load_and_handle(struct shard *s, struct call *c)
{
    sweep(s);
    struct live *l = dgm_live_find(s, c->owner, c->task_id);
    if (l && l->rare->share &&
        (l->state == LIVE_LOADING || !dgm_live_is_ours(l) || l->rare->share->is_releasing) &&
        l->state != LIVE_BROKEN) { /* others may have changed it since it was read */
        dgm_follow_then_handle(l, c);
        return;
    }
    if (l && l->rare->share && dgm_share_is_doubtful(l) && !s->core->stopping) {
        dgm_share_verify(l, c);
        return;
    }
    if (l && l->state != LIVE_LOADING) {
        dgm_live_handle(l, c);
        return;
    }
    if (!l && c->kind == CALL_GONE) {
        if (s->core->is_shared && !s->core->stopping)
            dgm_forward_disconnected(s, c);
        else /* nothing of it runs */
            dgm_call_answer(c);
        return;
    }
    if (!l && c->kind == CALL_GET && !c->is_looked_up && !s->core->stopping) {
        c->shard = s;
        dgm_store_get_task(s->core->o.store, c->owner, c->task_id, on_resting_row, c);
        return;
    }
    bool first = !l;
    if (first && s->core->stopping) {
        dgm_call_refuse_with(c, DGM_UNAVAILABLE, "the server is shutting down");
        return;
    }
    if (first)
        l = dgm_live_alloc(s, c->owner, c->task_id, DGM_UUID_CHARS);
    c->next = l->rare->loading;
    dgm_live_rare(l)->loading = c;
    if (!first)
        return;
    bool writes = (c->kind == CALL_SEND && !c->send.is_resend) || c->kind == CALL_CANCEL;
    if (l->rare->share && writes)
        dgm_store_acquire(s->core->o.store, dgm_live_owner(l), l->id, on_task_row, l);
    else
        dgm_store_get_task(s->core->o.store, dgm_live_owner(l), l->id, on_task_row, l);
}

/* ---- older records ---------------------------------------------------------------------------------------------- */

/* What was found so far; those that came meanwhile and want more are served by another one. */
struct older_load {
    struct live *live;
    struct call *calls;
    uint64_t next, end; /* from next on is still to come, up to what the log has */
    dgm_record **records;
    size_t n, cap;
};

static void older_page(struct older_load *o);
static void load_older(struct live *l);

static void end_older(struct older_load *o, bool found)
{
    struct live *l = o->live;
    struct call *calls = o->calls;
    if (found)
        dgm_log_prepend(l->log, o->records, o->n);
    else /* they were trimmed, or the store has a fault: only the Task itself remains */
        l->kept_first = l->log->first_seq;
    for (size_t i = 0; !found && i < o->n; i++)
        dgm_record_unref(o->records[i]);
    free(o->records);
    free(o);
    dgm_live_rare(l)->older_load = NULL;
    l->held++;
    if (l->rare->loading)
        load_older(l);
    dgm_live_handle_all(l, &calls);
    l->held--;
    dgm_live_free_if_idle(l);
}

/* Refuses the calls that need the records and not only the Task. */
static void refuse_turns(struct call **list, const dgm_err *err)
{
    while (*list) {
        struct call *c = *list;
        if (c->kind != CALL_TURN) {
            list = &c->next;
            continue;
        }
        *list = c->next;
        dgm_call_refuse(c, err);
    }
}

static void on_older_records(dgm_code code, dgm_record **records, size_t n, const dgm_err *err,
                             void *arg)
{
    struct older_load *o = arg;
    if (code)
        refuse_turns(&o->calls, err);
    if (code || !n || o->live->shard->core->stopping) {
        end_older(o, false);
        return;
    }
    for (size_t i = 0; i < n && o->next < o->end; i++) {
        if (records[i]->head.seq != o->next) { /* the first of them were trimmed */
            end_older(o, false);
            return;
        }
        if (o->n == o->cap) {
            o->cap = o->cap ? 2 * o->cap : 64;
            o->records = dgm_xrealloc(o->records, o->cap * sizeof(dgm_record *));
        }
        o->records[o->n++] = dgm_record_ref(records[i]);
        o->next++;
    }
    if (o->next == o->end)
        end_older(o, true);
    else
        older_page(o);
}

static void older_page(struct older_load *o)
{
    struct live *l = o->live;
    size_t want = (size_t)(o->end - o->next);
    dgm_store_get_records(l->shard->core->o.store, dgm_live_owner(l), l->id, o->next,
                          want < PAGE_RECORDS ? want : PAGE_RECORDS, PAGE_BYTES, on_older_records,
                          o);
}

static void load_older(struct live *l)
{
    struct older_load *o = dgm_xcalloc(1, sizeof *o);
    *o = (struct older_load){.live = l, .calls = l->rare->loading, .end = l->log->first_seq};
    o->next = o->end;
    for (const struct call *c = l->rare->loading; c; c = c->next)
        o->next = c->cursor + 1 < o->next ? c->cursor + 1 : o->next;
    dgm_live_rare(l)->loading = NULL;
    dgm_live_rare(l)->older_load = o;
    if (o->next == o->end)
        end_older(o, true); /* they have what they want by now */
    else if (l->shard->core->stopping)
        end_older(o, false);
    else
        older_page(o);
}

bool dgm_live_load_older(struct live *l, struct call *c, uint64_t seq)
{
    if (seq >= l->log->first_seq || seq < l->kept_first || l->state == LIVE_BROKEN)
        return false;
    assert(seq > 0);
    c->cursor = seq - 1;
    c->next = l->rare->loading;
    dgm_live_rare(l)->loading = c;
    if (!l->rare->older_load)
        load_older(l);
    return true;
}
