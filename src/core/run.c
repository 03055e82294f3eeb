/*
 * core/run.c - one execution of an agent for one turn.
 *
 *   undecided ── message ──► a Message answer: one record in a log of its own, no task, nothing stored
 *       └────── any other ─► a Task: made, told, stored; from here on every event is a record of its log
 *
 * The first event decides, and nothing is told or stored before it. A run of a task that exists is
 * decided when it starts.
 */
#include "base/ids.h"
#include "base/limits.h"
#include "core/core_int.h"

#include <assert.h>
#include <stdlib.h>

struct run {
    dgm_run base; /* first: agents hold a pointer to it */
    struct shard *shard;
    const dgm_core_agent *agent;
    struct live *live; /* NULL while undecided, and for a Message answer */
    struct call *send; /* to be answered when the turn has its first record; then NULL */
    dgm_run_input input;
    dgm_message *message;
    dgm_record *task_before; /* what input.task was decoded from */
    dgm_arena *arena;        /* of the run */
    dgm_arena *scratch;      /* of one event */
    dgm_log *answer;         /* a Message answer's */
    bool starting;           /* within start(): an end is finished when that returns */
    bool ended;
    const char *error;
};

static struct run *run_of(dgm_run *base)
{
    return (struct run *)(void *)base;
}

/* ---- what agents leave to us ----------------------------------------------------------------------------------- */

/* Ids of a message that an agent sends. Shallow: what it points to is only read. */
static dgm_message *fill_message(struct run *r, const dgm_message *m, bool in_task)
{
    if (!m)
        return NULL;
    dgm_message *filled = dgm_new(r->scratch, dgm_message);
    *filled = *m;
    if (!filled->message_id.n)
        filled->message_id = dgm_uuid7_in(r->scratch);
    filled->context_id = r->input.context_id;
    filled->task_id = in_task ? r->input.task_id : (dgm_str){0};
    if (filled->role == DGM_ROLE_UNSPECIFIED)
        filled->role = DGM_ROLE_AGENT;
    return filled;
}

static void fill_status(struct run *r, dgm_status *s)
{
    s->message = fill_message(r, s->message, true);
    /* While it works, what it says is progress unless the agent itself marks it as its answer: a
     * stamp of ours would make it that. */
    if (s->message && s->state != DGM_STATE_WORKING && s->state != DGM_STATE_SUBMITTED)
        dgm_message_stamp(r->scratch, s->message);
    if (!s->timestamp.n)
        s->timestamp = dgm_time_text(r->scratch, dgm_loop_unix_ms());
}

/* The event as it goes into the log: our ids whatever the agent wrote there. */
static dgm_event fill_event(struct run *r, const dgm_event *e)
{
    dgm_event filled = {.kind = e->kind};
    switch (e->kind) {
    case DGM_EVENT_TASK: {
        dgm_task *t = dgm_new(r->scratch, dgm_task);
        *t = *e->task;
        t->id = r->input.task_id;
        t->context_id = r->input.context_id;
        fill_status(r, &t->status);
        filled.task = t;
        break;
    }
    case DGM_EVENT_STATUS: {
        dgm_status_update *u = dgm_new(r->scratch, dgm_status_update);
        *u = *e->status;
        u->task_id = r->input.task_id;
        u->context_id = r->input.context_id;
        fill_status(r, &u->status);
        filled.status = u;
        break;
    }
    case DGM_EVENT_ARTIFACT: {
        dgm_artifact_update *u = dgm_new(r->scratch, dgm_artifact_update);
        *u = *e->artifact;
        u->task_id = r->input.task_id;
        u->context_id = r->input.context_id;
        if (!u->artifact.artifact_id.n)
            u->artifact.artifact_id = dgm_uuid7_in(r->scratch);
        filled.artifact = u;
        break;
    }
    case DGM_EVENT_INTERNAL: {
        dgm_internal *i = dgm_new(r->scratch, dgm_internal);
        *i = *e->internal;
        i->task_id = r->input.task_id;
        i->message = fill_message(r, i->message, true);
        if (!i->timestamp.n)
            i->timestamp = dgm_time_text(r->scratch, dgm_loop_unix_ms());
        filled.internal = i;
        break;
    }
    case DGM_EVENT_MESSAGE:
        filled.message = fill_message(r, e->message, r->live != NULL);
        dgm_message_stamp(r->scratch, filled.message);
        break;
    case DGM_EVENT_NONE: break;
    }
    return filled;
}

/* ---- deciding ----------------------------------------------------------------------------------------------------- */

/* One record in a log that nobody stores. */
static dgm_code answer_with_message(struct run *r, const dgm_event *event, dgm_err *err)
{
    dgm_record *record;
    dgm_code rc =
        dgm_record_new(event, (dgm_record_head){.seq = 1, .time = dgm_loop_unix_ms(), .turn = 1},
                       &r->shard->scratch, &record, err);
    if (rc)
        return rc;
    r->answer = dgm_log_new(r->shard->core->o.loops, 1);
    dgm_log_append(r->answer, record);
    dgm_log_close(r->answer);
    struct call *c = r->send;
    r->send = NULL;
    c->log = dgm_log_ref(r->answer);
    c->after = 0;
    c->turn = 1;
    c->is_message = true;
    c->task_id = (dgm_str){0};
    atomic_fetch_add_explicit(&r->shard->core->messages, 1, memory_order_relaxed);
    send_decided(r->shard, c, NULL);
    core_answer(c);
    return DGM_OK;
}

/* The `task` event of a new task: submitted, with the caller's message as its history. */
static dgm_code begin_task(struct run *r, const dgm_task *like, dgm_err *err)
{
    struct call *c = r->send;
    struct live *l = live_new(r->shard, c->owner, r->agent, r->input.task_id, r->input.context_id);
    dgm_task task = {0};
    dgm_code rc;
    if (like)
        task = *like;
    task.id = l->id;
    task.context_id = l->context_id;
    if (!like)
        task.status = (dgm_status){.state = DGM_STATE_SUBMITTED,
                                   .timestamp = dgm_time_text(r->scratch, dgm_loop_unix_ms())};
    task.history = (dgm_messages){r->message, 1};
    dgm_event event = {.kind = DGM_EVENT_TASK, .task = &task};
    l->run = r;
    r->live = l;
    l->turn = (dgm_turn_row){.turn = 1,
                             .first_seq = 1,
                             .protocol = dgm_arena_dup(l->arena, c->protocol),
                             .caller_id = dgm_arena_dup(l->arena, c->caller_id)};
    l->write_turn = l->write_folded = true;
    send_remember(l, c);
    if ((rc = live_append(l, &event, DGM_BY_SERVER, err)))
        return rc;
    r->send = NULL;
    c->log = dgm_log_ref(l->log);
    c->after = 0;
    c->turn = 1;
    c->task_id = dgm_arena_dup(c->arena, l->id);
    send_decided(r->shard, c, l);
    live_answer_when_published(l, c, 1);
    return DGM_OK;
}

static dgm_code decide(struct run *r, const dgm_event *event, dgm_err *err)
{
    dgm_code rc;
    if (event->kind == DGM_EVENT_MESSAGE)
        return answer_with_message(r, event, err);
    if ((rc = begin_task(r, event->kind == DGM_EVENT_TASK ? event->task : NULL, err)))
        return rc;
    return event->kind == DGM_EVENT_TASK ? DGM_OK : live_append(r->live, event, DGM_BY_AGENT, err);
}

/* ---- what agents call ------------------------------------------------------------------------------------------------ */

/* A task's stream has no messages: what an agent says to one ends it with these words. */
static dgm_event as_completed(struct run *r, const dgm_message *m)
{
    dgm_status_update *u = dgm_new(r->scratch, dgm_status_update);
    u->task_id = r->input.task_id;
    u->context_id = r->input.context_id;
    u->status = (dgm_status){.state = DGM_STATE_COMPLETED,
                             .message = (dgm_message *)(uintptr_t)m,
                             .timestamp = dgm_time_text(r->scratch, dgm_loop_unix_ms())};
    return (dgm_event){.kind = DGM_EVENT_STATUS, .status = u};
}

static dgm_code log_is_full(struct run *r, dgm_err *err)
{
    dgm_status_update u = {.task_id = r->input.task_id,
                           .context_id = r->input.context_id,
                           .status = {.state = DGM_STATE_FAILED,
                                      .timestamp = dgm_time_text(r->scratch, dgm_loop_unix_ms())},
                           .metadata = dgm_error_metadata(r->scratch, DGM_STR("log_limit"))};
    dgm_event failed = {.kind = DGM_EVENT_STATUS, .status = &u};
    live_append(r->live, &failed, DGM_BY_SERVER, NULL);
    return dgm_fail(err, DGM_TOO_LARGE, NULL, "more than the limit log_bytes: the task has failed");
}

static dgm_code emit(dgm_run *base, const dgm_event *event, dgm_err *err)
{
    struct run *r = run_of(base);
    size_t max = r->shard->core->o.max_log_bytes;
    assert(!r->ended);
    if (event->kind == DGM_EVENT_NONE)
        return dgm_fail(err, DGM_INVALID_AGENT_RESPONSE, NULL, "an event without a kind");
    dgm_arena_reset(r->scratch);
    if (r->answer)
        return dgm_fail(err, DGM_INVALID_AGENT_RESPONSE, NULL, "nothing follows a Message answer");
    dgm_event filled = fill_event(r, event);
    if (!r->live)
        return decide(r, &filled, err);
    if (dgm_state_is_terminal(r->live->state))
        return DGM_OK; /* too late, and of no consequence */
    if (dgm_log_bytes(r->live->log) > (max ? max : DGM_MAX_LOG_BYTES))
        return log_is_full(r, err);
    if (filled.kind == DGM_EVENT_MESSAGE)
        filled = as_completed(r, filled.message);
    return live_append(r->live, &filled, DGM_BY_AGENT, err);
}

static bool is_full(const dgm_run *base)
{
    const struct run *r = (const struct run *)(const void *)base;
    return r->live && r->live->n_pending + r->live->n_writing > 256;
}

static void free_run(struct run *r)
{
    dgm_record_unref(r->task_before);
    dgm_log_unref(r->answer);
    dgm_arena_free(r->scratch);
    dgm_arena_free(r->arena); /* r lives in it */
}

/* The state that says how it went, if the agent has not said so itself. */
static void settle(struct run *r)
{
    dgm_err err = {0};
    dgm_arena_reset(r->scratch);
    if (!r->live) {
        if (r->answer)
            return;
        if (begin_task(r, NULL, &err)) { /* it ended without a word: that is a task, too */
            struct call *c = r->send;
            r->send = NULL;
            send_decided(r->shard, c, NULL);
            core_refuse(c, &err);
            return;
        }
    }
    struct live *l = r->live;
    if (dgm_state_is_terminal(l->state) ||
        (dgm_state_is_interrupted(l->state) && !r->error && !r->base.canceled))
        return;
    dgm_status_update u = {.task_id = l->id,
                           .context_id = l->context_id,
                           .status = {.state = r->error           ? DGM_STATE_FAILED
                                               : r->base.canceled ? DGM_STATE_CANCELED
                                                                  : DGM_STATE_COMPLETED,
                                      .timestamp = dgm_time_text(r->scratch, dgm_loop_unix_ms())}};
    if (r->error)
        u.metadata = dgm_error_metadata(r->scratch, dgm_str_from(r->error));
    dgm_event event = {.kind = DGM_EVENT_STATUS, .status = &u};
    live_append(l, &event, DGM_BY_SERVER, &err);
}

static void finish(struct run *r)
{
    settle(r);
    if (r->live)
        live_run_ended(r->live);
    free_run(r);
}

static void end(dgm_run *base, const char *error)
{
    struct run *r = run_of(base);
    assert(!r->ended);
    r->ended = true;
    if (error)
        r->error = dgm_arena_dup(r->arena, dgm_str_from(error)).p;
    if (!r->starting)
        finish(r);
}

static const dgm_run_ops ops = {emit, end, is_full};

/* ---- starting and stopping --------------------------------------------------------------------------------------------- */

/* Ids that this loop owns: the hash of what is drawn decides, so draw until it fits. */
static dgm_str draw_id(struct shard *s, dgm_arena *a, dgm_owner owner)
{
    char id[DGM_UUID_CHARS + 1];
    do {
        dgm_uuid7(id);
    } while (core_shard_of(s->core, owner, (dgm_str){id, DGM_UUID_CHARS}) != s);
    return dgm_arena_dup(a, (dgm_str){id, DGM_UUID_CHARS});
}

void run_start(struct shard *s, struct call *send, struct live *live, const dgm_message *message)
{
    dgm_arena *a = dgm_arena_new();
    struct run *r = dgm_new(a, struct run);
    dgm_err err = {0};
    r->arena = a;
    r->scratch = dgm_arena_new();
    r->shard = s;
    r->agent = send->agent;
    r->live = live;
    r->base = (dgm_run){.ops = &ops, .input = &r->input, .loop = s->loop, .arena = a};
    r->input.context_id = live                 ? dgm_arena_dup(a, live->context_id)
                          : send->context_id.n ? dgm_arena_dup(a, send->context_id)
                                               : draw_id(s, a, send->owner);
    r->input.task_id = live ? dgm_arena_dup(a, live->id) : draw_id(s, a, send->owner);
    send->context_id = dgm_arena_dup(send->arena, r->input.context_id);
    /* the message, with a life of its own */
    dgm_event event = {0};
    if (message)
        event.message = (dgm_message *)(uintptr_t)message;
    else
        dgm_record_event(send->message, a, &event, &err); /* it was made from a message just now */
    r->message = dgm_new(a, dgm_message);
    *r->message = *event.message;
    r->message->context_id = r->input.context_id;
    r->message->task_id = r->input.task_id;
    dgm_message_stamp(a, r->message);
    r->input.message = r->message;
    r->input.metadata = dgm_value_keep(a, send->metadata);
    r->input.accepted_output_modes.at = dgm_new_n(a, dgm_str, send->accepted_output_modes.n);
    for (size_t i = 0; i < send->accepted_output_modes.n; i++)
        r->input.accepted_output_modes.at[i] = dgm_arena_dup(a, send->accepted_output_modes.at[i]);
    r->input.accepted_output_modes.n = send->accepted_output_modes.n;
    if (live) {
        live->run = r;
        if ((r->task_before = live_snapshot(live)) &&
            !dgm_record_event(r->task_before, a, &event, &err))
            r->input.task = event.task;
    } else {
        r->send = send;
    }
    atomic_fetch_add_explicit(&s->core->runs, 1, memory_order_relaxed);
    r->starting = true;
    r->agent->backend->start(r->agent->agent, &r->base);
    r->starting = false;
    if (r->ended)
        finish(r);
}

void run_drop(struct run *r)
{
    free_run(r);
}

void run_cancel(struct run *r)
{
    if (r->base.canceled)
        return;
    r->base.canceled = true;
    if (r->ended)
        return;
    if (r->agent->backend->cancel)
        r->agent->backend->cancel(r->agent->agent, &r->base);
    else
        end(&r->base, NULL);
}
