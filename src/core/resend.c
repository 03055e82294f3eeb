/*
 * core/resend.c - was this message here before?
 *
 * A message is known by (owner, agent, context or none, message id) and by what it says. From the moment
 * its first copy is here until the store knows it, it is on its way: others of the same name wait for it
 * here, on the one loop that all of them are carried to. Later the store is asked.
 */
#include "core/core_int.h"

#include <stdlib.h>

struct inflight {
    dgm_table_node node; /* first */
    struct inflight *next_of_live;
    dgm_arena *arena;
    dgm_owner owner;
    dgm_str agent, context_id, message_id;
    struct call *first; /* copy, until it is decided how it is answered */
    dgm_str content;    /* from then on */
    struct live *live;  /* the task it became; NULL: not decided */
    uint64_t first_seq; /* where its turn begins there */
    uint32_t turn;
    struct call *waiting; /* copies that came before that */
};

/* ---- the table ------------------------------------------------------------------------------------------------- */

static uint64_t inflight_hash(const struct call *c, dgm_str context_id)
{
    dgm_str key[] = {c->agent->id, c->owner.tenant, c->owner.principal, context_id,
                     c->send.message_id};
    return dgm_hash_texts(0, key, 5);
}

/* A content is a text or a digest. The content of an answer that is not stored is always a digest. */
static bool is_same_content(dgm_str stored, struct call *c)
{
    unsigned char digest[DGM_DIGEST_BYTES];
    dgm_str content = dgm_call_content(c);
    if (stored.n != DGM_DIGEST_BYTES || content.n == DGM_DIGEST_BYTES)
        return dgm_str_eq(stored, content);
    dgm_content_digest(&c->core->shards[dgm_loop_current()->index].sha256, content, digest);
    return memcmp(stored.p, digest, sizeof digest) == 0;
}

static bool has_same_content(const struct inflight *f, struct call *c)
{
    return dgm_str_eq(f->message_id, c->send.message_id) &&
           is_same_content(f->first ? dgm_call_content(f->first) : f->content, c);
}

static bool is_named(const struct inflight *f, struct call *c)
{
    return dgm_str_eq(f->agent, c->agent->id) && dgm_str_eq(f->context_id, c->send.asked_context) &&
           dgm_str_eq(f->owner.tenant, c->owner.tenant) &&
           dgm_str_eq(f->owner.principal, c->owner.principal) &&
           dgm_str_eq(f->message_id, c->send.message_id) &&
           (c->agent->backend->has_threads || has_same_content(f, c));
}

/* The task that the first copy is, or will be. */
static dgm_str inflight_task(const struct inflight *f)
{
    if (f->live)
        return f->live->id;
    return f->first && f->first->send.run ? f->first->send.run->input.task_id : DGM_STR("");
}

/* hash: inflight_hash() of the call and the context. */
static struct inflight *inflight_add(struct shard *s, struct call *c, dgm_str context_id,
                                     uint64_t hash)
{
    size_t texts = c->owner.tenant.n + c->owner.principal.n + context_id.n + c->send.message_id.n +
                   4 + DGM_CONTENT_BYTES + 1;
    dgm_arena *a = dgm_arena_new_small(sizeof(struct inflight) + texts);
    struct inflight *f = dgm_new(a, struct inflight);
    f->arena = a;
    f->owner = (dgm_owner){dgm_arena_dup(a, c->owner.tenant), dgm_arena_dup(a, c->owner.principal)};
    f->agent = c->agent->id;
    f->context_id = dgm_arena_dup(a, context_id);
    f->message_id = dgm_arena_dup(a, c->send.message_id);
    f->first = c;
    dgm_table_add(&s->inflights, &f->node, hash);
    return f;
}

static void inflight_drop(struct shard *s, struct inflight *f)
{
    dgm_table_remove(&s->inflights, &f->node);
    dgm_arena_free(f->arena); /* f lives in it */
}

void dgm_resend_drop_all(struct shard *s)
{
    for (size_t i = 0; i < s->inflights.cap; i++) {
        while (s->inflights.slots[i])
            inflight_drop(s, (struct inflight *)(void *)s->inflights.slots[i]);
    }
    dgm_table_done(&s->inflights);
}

/* ---- what a copy is given ----------------------------------------------------------------------------------------- */

/* The task as it is; what follows, if that turn still runs. */
static void resend_answer_with_snapshot(struct live *l, struct call *c, const struct turn_at *at)
{
    c->snapshot = dgm_live_snapshot(l);
    c->after = l->log->last;
    if (dgm_live_turn_runs(l, c->turn.number)) {
        c->log = dgm_log_ref(l->log);
        if (at && at->first_seq >= l->log->first_seq)
            c->turn.first_seq = at->first_seq;
    } else {
        c->log = dgm_log_new(l->shard->core->o.loops, c->after + 1);
        dgm_log_close(c->log, c->log->last);
    }
    dgm_live_answer_when_published(l, c, c->after);
}

void dgm_resend_answer(struct live *l, struct call *c)
{
    const struct turn_at *at = dgm_live_find_turn(l, c->turn.number);
    bool whole = at && at->turn == 1; /* a first turn begins with its task */
    if (whole && dgm_live_load_older(l, c, at->first_seq))
        return;
    atomic_fetch_add_explicit(&c->core->resends, 1, memory_order_relaxed);
    c->turn.context_id = dgm_arena_dup(c->arena, l->context_id);
    if (!whole || at->first_seq < l->log->first_seq) {
        resend_answer_with_snapshot(l, c, at);
        return;
    }
    c->log = dgm_log_ref(l->log);
    c->turn.first_seq = at->first_seq;
    c->after = at->first_seq - 1;
    dgm_live_answer_when_published(l, c, at->first_seq);
}

static void resend_answer_copy(const struct inflight *f, struct call *c)
{
    struct live *l = f->live;
    c->send.is_resend = true;
    c->turn.number = f->turn;
    c->task_id = dgm_arena_dup(c->arena, l->id);
    dgm_resend_answer(l, c);
}

/* ---- the first copy ------------------------------------------------------------------------------------------------ */

void dgm_resend_decided(struct shard *s, struct call *first, struct live *live)
{
    struct inflight *f = first->send.inflight;
    struct call *c, *waiting, *copies = first->send.copies;
    first->send.inflight = NULL;
    first->send.copies = NULL;
    if (!f && live && first->send.dedupes)
        f = inflight_add(s, first, live->context_id, inflight_hash(first, live->context_id));
    if (!f)
        return;
    waiting = f->waiting;
    f->waiting = NULL;
    f->first = NULL;
    if (live) {
        f->content = dgm_arena_dup(f->arena, dgm_call_content(first));
        f->live = live;
        f->first_seq = first->turn.first_seq;
        f->turn = first->turn.number;
        f->next_of_live = live->inflights;
        live->inflights = f; /* until the store has it */
    } else {
        inflight_drop(s, f);
    }
    while ((c = waiting)) {
        waiting = c->next;
        c->send.waits_for = NULL;
        if (live)
            resend_answer_copy(f, c);
        else
            dgm_core_run_start(s, c, NULL, NULL); /* a Message answer is everybody's own */
    }
    while ((c = copies)) {
        copies = c->next;
        c->send.queue = NULL;
        resend_answer_copy(f, c);
    }
}

struct call *dgm_resend_copies_of(const struct call *first)
{
    return first->send.inflight ? first->send.inflight->waiting : NULL;
}

struct call *dgm_resend_first_of(const struct inflight *f)
{
    return f->first;
}

struct call *dgm_resend_find(struct shard *s, uint64_t number, struct call **ret_first)
{
    for (size_t i = 0; i < s->inflights.cap; i++) {
        for (dgm_table_node *at = s->inflights.slots[i]; at; at = at->next) {
            const struct inflight *f = (struct inflight *)(void *)at;
            *ret_first = f->first;
            if (f->first && f->first->send.number == number)
                return f->first;
            for (struct call *c = f->waiting; c; c = c->next) {
                if (c->send.number == number)
                    return c;
            }
        }
    }
    return NULL;
}

void dgm_resend_drop(struct live *l, uint64_t up_to)
{
    struct inflight **at = &l->inflights, *f;
    while ((f = *at)) {
        if (f->first_seq > up_to) {
            at = &f->next_of_live;
            continue;
        }
        *at = f->next_of_live;
        inflight_drop(l->shard, f);
    }
}

/* ---- without a task -------------------------------------------------------------------------------------------------- */

static void resend_handle(void *arg)
{
    struct call *c = arg;
    dgm_live_load_and_handle(dgm_core_shard_of(c->core, c->owner, c->task_id), c);
}

/* It was here before: its turn is in that task. */
static void resend_to_task(struct call *c, const dgm_dedupe_row *row)
{
    dgm_deadline_stop(c);
    c->send.is_resend = true;
    c->turn.number = row->turn;
    c->task_id = dgm_arena_dup(c->arena, row->task_id);
    dgm_loop_post(dgm_core_shard_of(c->core, c->owner, c->task_id)->loop, resend_handle, c);
}

static bool is_row_of(const dgm_dedupe_row *row, struct call *c)
{
    unsigned char digest[DGM_DIGEST_BYTES];
    if (!row)
        return false;
    struct shard *s = &c->core->shards[dgm_loop_current()->index];
    dgm_content_digest(&s->sha256, dgm_call_content(c), digest);
    return memcmp(row->digest, digest, sizeof digest) == 0;
}

static void got_row_of_first(dgm_code code, const dgm_dedupe_row *row, const dgm_err *err,
                             void *arg)
{
    struct call *c = arg;
    if (code)
        dgm_call_refuse(c, err);
    else if (!is_row_of(row, c))
        dgm_call_refuse_with(c, DGM_UNAVAILABLE,
                             "another server has accepted the message, but its turn was not found: "
                             "send it again");
    else
        resend_to_task(c, row);
}

void dgm_resend_find_first(struct call *c, dgm_str context_id)
{
    dgm_call_reset(c);
    if (c->core->stopping)
        dgm_call_refuse_with(c, DGM_UNAVAILABLE, "the server is shutting down");
    else
        dgm_store_find_dedupe(c->core->o.store, c->owner, c->agent->id, context_id,
                              c->send.message_id, got_row_of_first, c);
}

/* Agents that have threads would replace the stored message. */
static dgm_code check_not_changed(const struct call *c, dgm_str task_id, dgm_err *err)
{
    if (!c->agent->backend->has_threads)
        return DGM_OK;
    return dgm_fail(
        err, DGM_BAD_PARAMS, DGM_AT_LIT(DGM_AT_LIT(NULL, "message"), "messageId"),
        "the messageId was used before with another content, in task %.*s: send a new messageId",
        DGM_P(task_id));
}

/* Removes the entry of the message. `next` of its first call then lists the calls that waited for it. */
static void inflight_detach_calls(struct shard *s, struct call *first)
{
    struct inflight *f = first->send.inflight;
    first->send.inflight = NULL;
    first->next = f ? f->waiting : NULL;
    if (f)
        inflight_drop(s, f);
    for (struct call *c = first; c; c = c->next)
        c->send.waits_for = NULL;
}

void dgm_resend_refuse(struct shard *s, struct call *first, dgm_str task_id)
{
    struct call *c;
    dgm_err changed = {0};
    (void)check_not_changed(first, task_id, &changed);
    inflight_detach_calls(s, first);
    while ((c = first)) {
        first = c->next;
        dgm_deadline_stop(c);
        dgm_call_refuse(c, &changed);
    }
}

void dgm_resend_to_waiting_task(struct shard *s, struct call *first, dgm_str task_id)
{
    struct call *c;
    inflight_detach_calls(s, first);
    while ((c = first)) {
        first = c->next;
        dgm_deadline_stop(c);
        c->task_id = dgm_arena_dup(c->arena, task_id);
        dgm_loop_post(dgm_core_shard_of(c->core, c->owner, c->task_id)->loop, resend_handle, c);
    }
}

static void got_row(dgm_code code, const dgm_dedupe_row *row, const dgm_err *err, void *arg)
{
    struct call *first = arg, *c;
    struct shard *s = first->shard;
    dgm_err changed = {0};
    if (!code && row && !is_row_of(row, first) &&
        (code = check_not_changed(first, row->task_id, &changed)))
        err = &changed;
    if (!code && !is_row_of(row, first)) {
        dgm_core_adopt_or_start(s, first);
        return;
    }
    inflight_detach_calls(s, first);
    while ((c = first)) {
        first = c->next;
        if (code)
            dgm_call_refuse(c, err);
        else
            resend_to_task(c, row);
    }
}

void dgm_resend_or_start(struct shard *s, struct call *c)
{
    uint64_t hash = inflight_hash(c, c->send.asked_context);
    dgm_table_node *at = dgm_table_first(&s->inflights, hash);
    dgm_err changed = {0};
    while (at && !is_named((struct inflight *)(void *)at, c))
        at = at->next;
    struct inflight *f = (struct inflight *)(void *)at;
    if (f && !has_same_content(f, c) && check_not_changed(c, inflight_task(f), &changed)) {
        dgm_call_refuse(c, &changed);
    } else if (f && f->live) {
        resend_answer_copy(f, c);
    } else if (f) {
        c->next = f->waiting;
        f->waiting = c;
        c->send.waits_for = f;
    } else {
        c->send.inflight = inflight_add(s, c, c->send.asked_context, hash);
        if (dgm_store_is_unknown(c->core->o.store, c->owner, c->agent->id, c->send.asked_context,
                                 c->send.message_id))
            dgm_core_adopt_or_start(s, c);
        else
            dgm_store_find_dedupe(c->core->o.store, c->owner, c->agent->id, c->send.asked_context,
                                  c->send.message_id, got_row, c);
    }
}

/* ---- to a task -------------------------------------------------------------------------------------------------------- */

/* The store is asked. The lease may be lost meanwhile, and what the fold has with it. */
static void resend_start_lookup(struct live *l, struct call *c)
{
    c->is_looked_up = true;
    c->send.live = l;
    c->send.epoch = l->rare->share ? l->rare->share->epoch : 0;
    l->n_lookups++;
}

static void got_row_of_task(dgm_code code, const dgm_dedupe_row *row, const dgm_err *err, void *arg)
{
    struct call *c = arg;
    struct live *l = c->send.live;
    l->n_lookups--;
    l->held++;
    dgm_err changed = {0};
    c->is_looked_up = !l->rare->share || l->rare->share->epoch == c->send.epoch;
    c->send.is_resend = !code && is_row_of(row, c) && dgm_str_eq(row->task_id, l->id);
    if (c->send.is_resend)
        c->turn.number = row->turn;
    else if (!code && c->is_looked_up && !c->send.has_forward_id &&
             (code = check_not_changed(c, row ? row->task_id : l->id, &changed)))
        err = &changed;
    if (code)
        dgm_call_refuse(c, err);
    else
        dgm_live_handle(l, c);
    l->held--;
    dgm_live_free_if_idle(l);
}

/* It is the id of a message of the agent, in this context. */
static void got_agent_message(dgm_code code, const dgm_task_row *row, const dgm_err *err, void *arg)
{
    struct call *c = arg;
    struct live *l = c->send.live;
    dgm_err changed = {0};
    l->n_lookups--;
    l->held++;
    c->is_looked_up = !l->rare->share || l->rare->share->epoch == c->send.epoch;
    if (!code && row && (code = check_not_changed(c, row->id, &changed)))
        err = &changed;
    if (code)
        dgm_call_refuse(c, err);
    else
        dgm_live_handle(l, c);
    l->held--;
    dgm_live_free_if_idle(l);
}

static void find_agent_message(struct live *l, struct call *c)
{
    dgm_str key = dgm_core_agent_message_key(c->arena, l->context_id, c->send.message_id);
    resend_start_lookup(l, c);
    dgm_store_find_call(c->core->o.store, c->owner, l->agent->id, key, got_agent_message, c);
}

bool dgm_resend_attach(struct live *l, struct call *c)
{
    if (!c->send.dedupes)
        return false;
    dgm_err changed = {0};
    for (const struct inflight *f = l->inflights; f; f = f->next_of_live) {
        if (has_same_content(f, c)) {
            resend_answer_copy(f, c);
            return true;
        }
        if (dgm_str_eq(f->message_id, c->send.message_id) &&
            check_not_changed(c, l->id, &changed)) {
            dgm_call_refuse(c, &changed);
            return true;
        }
    }
    for (struct call *q = l->rare->queued; q; q = q->next) {
        if (q->send.dedupes && dgm_str_eq(q->send.message_id, c->send.message_id) &&
            dgm_str_eq(dgm_call_content(q), dgm_call_content(c))) {
            c->next = q->send.copies;
            q->send.copies = c;
            c->send.queue = l;
            dgm_deadline_start(l->shard, c);
            return true;
        }
    }
    /* Its history has all that a task was sent: only an id that is there may have been here before. That of a forward is not
     * in it. */
    if (c->is_looked_up || l->shard->core->stopping)
        return false;
    if (!c->send.has_forward_id && !dgm_fold_message(l->fold, c->send.message_id)) {
        if (!l->agent->backend->has_threads)
            return false;
        find_agent_message(l, c);
        return true;
    }
    resend_start_lookup(l, c);
    dgm_store_find_dedupe(c->core->o.store, c->owner, l->agent->id, l->context_id,
                          c->send.message_id, got_row_of_task, c);
    return true;
}
