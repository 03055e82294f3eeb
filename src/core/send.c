/*
 * core/send.c - a message comes in: was it here before, whose is it, may it be taken?
 *
 * A message is known by (owner, agent, context or none, message id) and by what it says. While its
 * first copy is not in the store yet, others of the same name wait for it here, on the one loop that
 * all of them are carried to.
 */
#include "core/core_int.h"
#include "model/form.h"

#include <openssl/sha.h>
#include <stdlib.h>

/* How long a send that named no context is known by its message id alone. */
#define NAMELESS_MS ((int64_t)24 * 3600 * 1000)

/* From the moment its first copy is here until the store knows it. */
struct inflight {
    struct inflight *next;
    dgm_arena *arena;
    dgm_owner owner;
    dgm_str agent, context_id, message_id;
    unsigned char digest[32];
    struct call *first; /* whose turn it will be; NULL once that is decided */
    struct live *live;  /* the task it became */
    uint64_t after;     /* where its turn begins there */
    uint32_t turn;
    struct call *waiting; /* copies that came meanwhile */
};

/* Role and parts, as the record form spells them. */
void send_digest(const dgm_message *m, dgm_buf *scratch, unsigned char digest[32])
{
    dgm_message said = {.message_id = DGM_STR("-"), .role = m->role, .parts = m->parts};
    dgm_buf_clear(scratch);
    dgm_writer w = {.out = scratch, .format = dgm_form_name};
    dgm_shape_write(&w, &dgm_form_message, &said);
    SHA256((const unsigned char *)scratch->p, scratch->n, digest);
}

/* ---- messages that are not in the store yet ----------------------------------------------------------------------- */

static bool is_named(const struct inflight *f, const struct call *c)
{
    return dgm_str_eq(f->message_id, c->message_id) && dgm_str_eq(f->agent, c->agent->id) &&
           dgm_str_eq(f->context_id, c->asked_context) &&
           dgm_str_eq(f->owner.tenant, c->owner.tenant) &&
           dgm_str_eq(f->owner.principal, c->owner.principal) &&
           memcmp(f->digest, c->digest, sizeof c->digest) == 0;
}

static struct inflight *find_inflight(struct shard *s, const struct call *c)
{
    struct inflight *f = s->inflight;
    while (f && !is_named(f, c))
        f = f->next;
    return f;
}

static void add_inflight(struct shard *s, struct call *c)
{
    dgm_arena *a = dgm_arena_new();
    struct inflight *f = dgm_new(a, struct inflight);
    f->arena = a;
    f->first = c;
    f->owner = (dgm_owner){dgm_arena_dup(a, c->owner.tenant), dgm_arena_dup(a, c->owner.principal)};
    f->agent = c->agent->id;
    f->context_id = dgm_arena_dup(a, c->asked_context);
    f->message_id = dgm_arena_dup(a, c->message_id);
    memcpy(f->digest, c->digest, sizeof f->digest);
    f->next = s->inflight;
    s->inflight = f;
}

static struct inflight *of_first(struct shard *s, const struct call *first)
{
    struct inflight *f = s->inflight;
    while (f && f->first != first)
        f = f->next;
    return f;
}

static void remove_inflight(struct shard *s, struct inflight *f)
{
    struct inflight **at = &s->inflight;
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    dgm_arena_free(f->arena);
}

/* The same turn for one that came later. */
static void answer_copy(const struct inflight *f, struct call *c)
{
    struct live *l = f->live;
    c->is_resend = true;
    c->log = dgm_log_ref(l->log);
    c->after = f->after;
    c->turn = f->turn;
    c->task_id = dgm_arena_dup(c->arena, l->id);
    c->context_id = dgm_arena_dup(c->arena, l->context_id);
    atomic_fetch_add_explicit(&c->core->resends, 1, memory_order_relaxed);
    live_answer_when_published(l, c, f->after + 1);
}

void send_decided(struct shard *s, struct call *first, struct live *live)
{
    struct inflight *f = of_first(s, first);
    struct call *c;
    if (!f)
        return;
    f->first = NULL;
    f->live = live;
    f->after = first->after;
    f->turn = first->turn;
    while ((c = f->waiting)) {
        f->waiting = c->next;
        if (live)
            answer_copy(f, c);
        else
            run_start(s, c, NULL, NULL); /* a Message answer is everybody's own */
    }
    if (live)
        live->inflight = f; /* until the store has it */
    else
        remove_inflight(s, f);
}

void send_is_stored(struct live *l)
{
    if (l->inflight)
        remove_inflight(l->shard, l->inflight);
    l->inflight = NULL;
}

void send_forget_all(struct shard *s)
{
    while (s->inflight)
        remove_inflight(s, s->inflight);
}

void send_remember(struct live *l, const struct call *c)
{
    if (!l->agent->dedupe || !c->message_id.n)
        return;
    dgm_dedupe_row row = {.owner = l->owner,
                          .agent = l->agent->id,
                          .context_id = l->context_id,
                          .message_id = dgm_arena_dup(l->arena, c->message_id),
                          .task_id = l->id,
                          .turn = l->turn.turn};
    memcpy(row.digest, c->digest, sizeof row.digest);
    l->dedupe[l->n_dedupe++] = row;
    if (!c->asked_context.n && !c->asked_task.n) {
        row.context_id = (dgm_str){0};
        row.expires_ms = dgm_loop_unix_ms() + NAMELESS_MS;
        l->dedupe[l->n_dedupe++] = row;
    }
}

/* ---- a message without a task ------------------------------------------------------------------------------------------- */

static void take_resend(void *arg)
{
    struct call *c = arg;
    live_with(core_shard_of(c->core, c->owner, c->task_id), c);
}

/* It was here before: its turn is in that task. */
static void go_to_task(struct call *c, const dgm_dedupe_row *row)
{
    c->is_resend = true;
    c->turn = row->turn;
    c->task_id = dgm_arena_dup(c->arena, row->task_id);
    atomic_fetch_add_explicit(&c->core->resends, 1, memory_order_relaxed);
    dgm_loop_post(core_shard_of(c->core, c->owner, c->task_id)->loop, take_resend, c);
}

static void got_dedupe(dgm_code code, const dgm_dedupe_row *row, const dgm_err *err, void *arg)
{
    struct call *first = arg, *c;
    struct shard *s = first->shard;
    struct inflight *f = of_first(s, first);
    if (!code && !(row && memcmp(row->digest, first->digest, sizeof first->digest) == 0)) {
        run_start(s, first, NULL, NULL);
        return;
    }
    first->next = f->waiting;
    while ((c = first)) {
        first = c->next;
        if (code)
            core_refuse(c, err);
        else
            go_to_task(c, row);
    }
    remove_inflight(s, f);
}

void send_start(struct shard *s, struct call *c)
{
    c->shard = s;
    if (!c->agent->dedupe || !c->message_id.n) {
        run_start(s, c, NULL, NULL);
        return;
    }
    struct inflight *f = find_inflight(s, c);
    if (f && f->live) {
        answer_copy(f, c);
    } else if (f) {
        c->next = f->waiting;
        f->waiting = c;
    } else {
        add_inflight(s, c);
        dgm_store_find_dedupe(c->core->o.store, c->owner, c->agent->id, c->asked_context,
                              c->message_id, got_dedupe, c);
    }
}

/* ---- a message to a task ---------------------------------------------------------------------------------------------------- */

/* Its turn is the last one, or one before: then only the task as it is can be given. */
static void give_resend(struct live *l, struct call *c)
{
    c->log = dgm_log_ref(l->log);
    c->context_id = dgm_arena_dup(c->arena, l->context_id);
    if (c->turn == l->turn.turn && l->turn.first_seq >= dgm_log_first(l->log)) {
        c->after = l->turn.first_seq - 1;
        live_answer_when_published(l, c, c->after + 1);
        return;
    }
    c->snapshot = live_snapshot(l);
    c->after = dgm_log_last(l->log);
    live_answer_when_published(l, c, c->after);
}

static const char *why_not(const struct live *l, const struct call *c, dgm_code *ret_code)
{
    *ret_code = DGM_BAD_PARAMS;
    if (c->asked_context.n && !dgm_str_eq(c->asked_context, l->context_id))
        return "the task belongs to another context: leave contextId out, or send the task's";
    *ret_code = DGM_UNSUPPORTED_OPERATION;
    if (dgm_state_is_terminal(l->state))
        return "the task has ended: send a message without its id, in the same context";
    if (l->run && l->n_queued >= DGM_MAX_QUEUED_MESSAGES)
        return "the task is working and 16 messages wait for it: send it later";
    return NULL;
}

static void begin_turn(struct live *l, struct call *c)
{
    dgm_err err = {0};
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_event event = {0};
    c->snapshot = live_snapshot(l);
    dgm_record_event(c->message, a, &event, &err);
    dgm_message *m = event.message;
    m->context_id = l->context_id;
    m->task_id = l->id;
    dgm_message_stamp(a, m);
    l->turn = (dgm_turn_row){.turn = l->turn.turn + 1,
                             .first_seq = dgm_log_last(l->log) + 1,
                             .protocol = dgm_arena_dup(l->arena, c->protocol),
                             .caller_id = dgm_arena_dup(l->arena, c->caller_id)};
    l->write_turn = true;
    send_remember(l, c);
    dgm_internal accepted = {.kind = DGM_INTERNAL_MESSAGE,
                             .task_id = l->id,
                             .message = m,
                             .timestamp = dgm_time_text(a, dgm_loop_unix_ms())};
    dgm_event taken = {.kind = DGM_EVENT_INTERNAL, .internal = &accepted};
    if (live_append(l, &taken, DGM_BY_SERVER, &err)) {
        core_refuse(c, &err);
        return;
    }
    c->turn = l->turn.turn;
    c->log = dgm_log_ref(l->log);
    c->after = l->turn.first_seq - 1;
    run_start(l->shard, c, l, m);
    live_answer_when_published(l, c, c->after + 1);
}

void send_to_task(struct live *l, struct call *c)
{
    dgm_code code;
    if (c->is_resend) {
        give_resend(l, c);
        return;
    }
    const char *why = l->is == LIVE_BROKEN ? l->store_fault.msg : why_not(l, c, &code);
    if (l->is == LIVE_BROKEN)
        code = l->store_fault.code;
    if (why) {
        core_refuse_with(c, code, why);
        live_settle_down(l);
        return;
    }
    if (!l->run) {
        begin_turn(l, c);
        return;
    }
    struct call **at = &l->queued;
    while (*at)
        at = &(*at)->next;
    c->next = NULL;
    *at = c;
    l->n_queued++;
}
