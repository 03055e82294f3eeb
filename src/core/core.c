/* core/core.c - calls: to the loop that owns the task, and home with the answer. */
#include "core/core_int.h"

#include <openssl/evp.h>
#include <stdlib.h>

/* First blocks of arenas: for the ids of a call; for the marks of a message; at most. */
#define CALL_ROOM 200
#define GIVEN_ROOM 80
#define GIVEN_MOST ((size_t)8 << 10)

/* ---- life ---------------------------------------------------------------------------------------------------- */

static const dgm_core_limits default_limits = {.log_bytes = DGM_MAX_LOG_BYTES,
                                               .log_records = DGM_MAX_LOG_RECORDS,
                                               .queued_messages = DGM_MAX_QUEUED_MESSAGES,
                                               .subscribers = DGM_MAX_SUBSCRIBERS};

dgm_code dgm_core_new(const dgm_core_options *o, dgm_core **ret_core, dgm_err *err)
{
    if (!o->n_agents || o->n_agents > DGM_MAX_AGENTS)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "a server needs 1 to %d agents", DGM_MAX_AGENTS);
    dgm_core *core = dgm_xcalloc(1, sizeof *core);
    core->o = *o;
    core->o.agents = NULL; /* copied below */
    core->retention_ms = o->retention_ms;
    core->keep_tasks_ms = o->keep_tasks_ms;
    core->agents = dgm_xcalloc(DGM_MAX_AGENTS, sizeof *core->agents);
    core->first_agents = dgm_xcalloc(o->n_agents, sizeof *core->first_agents);
    memcpy(core->first_agents, o->agents, o->n_agents * sizeof *core->first_agents);
    for (size_t i = 0; i < o->n_agents; i++)
        core->agents[i] = &core->first_agents[i];
    core->n_agents = o->n_agents;
    core->is_shared = dgm_store_is_shared(o->store);
    core->n_shards = o->loops->n;
    core->shards = dgm_xcalloc(core->n_shards, sizeof *core->shards);
    for (size_t i = 0; i < core->n_shards; i++) {
        core->shards[i].core = core;
        core->shards[i].loop = dgm_loops_at(o->loops, i);
        core->shards[i].limits = o->limits ? *o->limits : default_limits;
        dgm_buf_init(&core->shards[i].scratch, SIZE_MAX);
        dgm_buf_init(&core->shards[i].batch, SIZE_MAX);
        core->shards[i].spare = dgm_arena_new();
    }
    dgm_retention_start(core);
    *ret_core = core;
    return DGM_OK;
}

struct change {
    struct shard *shard;
    dgm_core_limits limits;
};

static void shard_set_limits(void *arg)
{
    struct change *c = arg;
    c->shard->limits = c->limits;
    free(c);
}

void dgm_core_set_limits(dgm_core *core, const dgm_core_limits *limits)
{
    for (size_t i = 0; i < core->n_shards; i++) {
        struct change *c = dgm_xcalloc(1, sizeof *c);
        *c = (struct change){&core->shards[i], *limits};
        dgm_loop_post(core->shards[i].loop, shard_set_limits, c);
    }
}

dgm_code dgm_core_set_agent(dgm_core *core, const dgm_core_agent *agent, dgm_err *err)
{
    size_t i = 0, n = core->n_agents;
    while (i < n && !dgm_str_eq(core->agents[i]->id, agent->id))
        i++;
    if (i == DGM_MAX_AGENTS)
        return dgm_fail(err, DGM_TOO_LARGE, NULL,
                        "more than %d agents since the start: restart the server", DGM_MAX_AGENTS);
    core->agents[i] = agent;
    if (i == n)
        core->n_agents = n + 1; /* after the slot: loops read it in this order */
    if (i == n && core->is_shared)
        dgm_share_set_agents(core);
    return DGM_OK;
}

void dgm_core_stop(dgm_core *core)
{
    core->stopping = true;
}

void dgm_core_free(dgm_core *core)
{
    if (!core)
        return;
    for (size_t i = 0; i < core->n_shards; i++) {
        struct shard *s = &core->shards[i];
        for (size_t b = 0; b < s->lives.cap; b++) {
            while (s->lives.slots[b])
                dgm_live_drop((struct live *)(void *)s->lives.slots[b]);
        }
        dgm_table_done(&s->lives);
        dgm_resend_drop_all(s);
        dgm_core_invoked_free_all(s);
        dgm_buf_done(&s->scratch);
        dgm_buf_done(&s->batch);
        dgm_arena_free(s->spare);
        EVP_MD_CTX_free(s->sha256);
    }
    dgm_retention_free(core);
    free(core->shards);
    free(core->first_agents);
    free((void *)core->agents);
    free(core);
}

dgm_core_stats dgm_core_stats_of(dgm_core *core)
{
    return (dgm_core_stats){.sends = core->sends,
                            .resends = core->resends,
                            .runs = core->runs,
                            .messages = core->messages,
                            .tasks = core->tasks,
                            .records = core->records,
                            .warnings = core->warnings,
                            .live = core->live,
                            .running = core->running,
                            .taken_over = core->taken_over,
                            .lost = core->lost,
                            .forwarded = core->forwarded,
                            .followed = core->followed,
                            .lag = core->lag};
}

/* ---- answers --------------------------------------------------------------------------------------------------- */

static void call_deliver(void *arg)
{
    struct call *c = arg;
    switch (c->kind) {
    case CALL_SEND: {
        dgm_sent sent = {.log = c->log,
                         .after = c->after,
                         .snapshot = c->snapshot,
                         .task_id = c->task_id,
                         .context_id = c->turn.context_id,
                         .first_seq = c->turn.first_seq,
                         .turn = c->turn.number,
                         .is_message = c->send.is_message,
                         .is_resend = c->send.is_resend};
        c->on.sent(c->code, c->code ? NULL : &sent, c->err, c->arg);
        break;
    }
    case CALL_GET:
    case CALL_SETTLE:
    case CALL_CANCEL: c->on.task(c->code, c->code ? NULL : c->snapshot, c->err, c->arg); break;
    case CALL_SUBSCRIBE:
        c->on.subscribed(c->code, c->code ? NULL : c->log, c->after, c->snapshot, c->err, c->arg);
        break;
    case CALL_TURN: {
        dgm_found_turn found = {.log = c->log,
                                .first_seq = c->turn.first_seq,
                                .last_seq = c->turn.last_seq,
                                .turn = c->turn.number,
                                .agent = c->agent ? c->agent->id : (dgm_str){0},
                                .task_id = c->task_id,
                                .context_id = c->turn.context_id,
                                .request = c->turn.request,
                                .previous = c->turn.previous};
        c->on.turn(c->code, c->code ? NULL : &found, c->err, c->arg);
        break;
    }
    case CALL_GONE: break;
    }
    dgm_record_unref(c->snapshot);
    dgm_log_unref(c->log);
    if (c->kind == CALL_SEND)
        dgm_arena_free(c->send.given);
    dgm_arena_free(c->arena); /* the call lives in it */
}

void dgm_call_answer(struct call *c)
{
    if (c->kind == CALL_SEND && c->send.deadline)
        dgm_deadline_stop(c);
    dgm_loop_post(c->home, call_deliver, c);
}

void dgm_call_reset(struct call *c)
{
    dgm_record_unref(dgm_take(c->snapshot));
    dgm_log_unref(dgm_take(c->log));
    c->after = 0;
    c->code = DGM_OK;
    c->err = NULL;
    if (c->kind == CALL_SEND)
        c->turn.number = 0;
    c->turn.first_seq = c->turn.last_seq = 0;
}

void dgm_call_refuse_all(struct call **list, const dgm_err *err)
{
    while (*list) {
        struct call *c = *list;
        *list = c->next;
        dgm_call_refuse(c, err);
    }
}

void dgm_call_refuse(struct call *c, const dgm_err *err)
{
    if (c->kind == CALL_SEND)
        dgm_call_refuse_all(&c->send.copies, err);
    c->code = err->code;
    c->err = dgm_new(c->arena, dgm_err);
    *c->err = *err;
    dgm_call_answer(c);
}

void dgm_call_refuse_with(struct call *c, dgm_code code, const char *msg)
{
    dgm_err err = {0};
    dgm_fail(&err, code, NULL, "%s", msg);
    dgm_call_refuse(c, &err);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

struct call *dgm_call_new(dgm_core *core, enum call_kind kind, dgm_owner owner)
{
    size_t size = offsetof(struct call, send) +
                  (kind == CALL_SEND ? sizeof(struct call_send) : sizeof(uint64_t));
    dgm_arena *a = dgm_arena_new_small(size + CALL_ROOM);
    struct call *c = dgm_arena_alloc(a, size);
    c->kind = kind;
    c->core = core;
    c->home = dgm_loop_current();
    c->arena = a;
    c->owner = (dgm_owner){dgm_arena_dup(a, owner.tenant), dgm_arena_dup(a, owner.principal)};
    return c;
}

/* While the server drains, existing tasks can still be read; nothing new starts. */
static bool is_refused(struct call *c)
{
    bool begins = c->kind == CALL_SEND || c->kind == CALL_SUBSCRIBE;
    bool refused = c->core->stopping || (c->core->draining && begins);
    if (refused)
        dgm_call_refuse_with(c, DGM_UNAVAILABLE, "the server is shutting down");
    return refused;
}

static void call_handle_at_task(void *arg)
{
    struct call *c = arg;
    if (is_refused(c))
        return;
    dgm_live_load_and_handle(dgm_core_shard_of(c->core, c->owner, c->task_id), c);
}

void dgm_call_post_to_task(struct call *c)
{
    dgm_loop_post(dgm_core_shard_of(c->core, c->owner, c->task_id)->loop, call_handle_at_task, c);
}

const dgm_core_agent *dgm_core_find_agent(dgm_core *core, dgm_str id)
{
    for (size_t i = 0, n = core->n_agents; i < n; i++) {
        const dgm_core_agent *agent = core->agents[i];
        if (dgm_str_eq(agent->id, id))
            return agent;
    }
    return NULL;
}

dgm_str dgm_core_describe_agent(dgm_core *core, dgm_str id, dgm_arena *a)
{
    const dgm_core_agent *agent = dgm_core_find_agent(core, id);
    bool can = agent && agent->backend->describe;
    return can ? agent->backend->describe(agent->agent, a) : (dgm_str){0};
}

const dgm_core_agent *dgm_core_find_agent_or_default(dgm_core *core, dgm_str id)
{
    return id.n ? dgm_core_find_agent(core, id) : core->agents[0];
}

/* To the task's own loop, if there is an agent whose task it can be. */
static void post_with_agent(struct call *c, dgm_str agent, dgm_str task_id, void *arg)
{
    c->task_id = dgm_arena_dup(c->arena, task_id);
    c->arg = arg;
    if ((c->agent = dgm_core_find_agent_or_default(c->core, agent)))
        dgm_call_post_to_task(c);
    else
        dgm_call_refuse_with(c, DGM_TASK_NOT_FOUND, "Task not found");
}

void dgm_core_get(dgm_core *core, dgm_owner owner, dgm_str agent, dgm_str task_id,
                  dgm_on_task on_task, void *arg)
{
    struct call *c = dgm_call_new(core, CALL_GET, owner);
    c->on.task = on_task;
    post_with_agent(c, agent, task_id, arg);
}

void dgm_core_cancel(dgm_core *core, dgm_owner owner, dgm_str agent, dgm_str task_id,
                     dgm_on_task on_task, void *arg)
{
    struct call *c = dgm_call_new(core, CALL_CANCEL, owner);
    c->on.task = on_task;
    post_with_agent(c, agent, task_id, arg);
}

void dgm_core_subscribe(dgm_core *core, dgm_owner owner, dgm_str agent, dgm_str task_id,
                        uint64_t cursor, dgm_on_subscribed on_subscribed, void *arg)
{
    struct call *c = dgm_call_new(core, CALL_SUBSCRIBE, owner);
    c->cursor = cursor;
    c->on.subscribed = on_subscribed;
    post_with_agent(c, agent, task_id, arg);
}

void dgm_core_read_log(dgm_core *core, dgm_owner owner, dgm_str task_id, uint64_t cursor,
                       dgm_on_subscribed on_subscribed, void *arg)
{
    struct call *c = dgm_call_new(core, CALL_SUBSCRIBE, owner);
    c->cursor = cursor;
    c->on.subscribed = on_subscribed;
    c->arg = arg;
    c->task_id = dgm_arena_dup(c->arena, task_id);
    dgm_call_post_to_task(c);
}

void dgm_core_disconnected(dgm_core *core, dgm_owner owner, dgm_str agent, dgm_str task_id,
                           uint32_t turn, uint64_t grace_ms)
{
    struct call *c = dgm_call_new(core, CALL_GONE, owner);
    c->turn.number = turn;
    c->grace_ms = grace_ms;
    post_with_agent(c, agent, task_id, NULL);
}

void dgm_core_settle(dgm_core *core, dgm_owner owner, dgm_str task_id, dgm_on_task on_task,
                     void *arg)
{
    struct call *c = dgm_call_new(core, CALL_SETTLE, owner);
    c->task_id = dgm_arena_dup(c->arena, task_id);
    c->on.task = on_task;
    c->arg = arg;
    dgm_call_post_to_task(c); /* of whichever agent */
}

static void call_handle_send(void *arg)
{
    struct call *c = arg;
    if (is_refused(c))
        return;
    struct shard *s = c->shard = &c->core->shards[dgm_loop_current()->index];
    if (c->send.answer_ms)
        dgm_deadline_start(s, c);
    if (c->send.dedupes)
        dgm_resend_or_start(s, c);
    else
        dgm_core_adopt_or_start(s, c);
}

/* Copies: the caller's may go when this returns. The message has an arena of its own, which the run takes
 * over. */
static dgm_code call_copy_send(struct call *c, const dgm_send *send, dgm_err *err)
{
    const dgm_message *m = send->message;
    /* Can it be a record, in a Task? Only a large request can be too large: encoded by us, a message is
     * hardly longer than it was. */
    if (!send->bytes || send->bytes >= DGM_MAX_RECORD_BYTES / 2) {
        dgm_buf *scratch = &c->core->shards[c->home->index].scratch;
        dgm_event event = {.kind = DGM_EVENT_MESSAGE, .message = (dgm_message *)(uintptr_t)m};
        dgm_record *record;
        dgm_code rc = dgm_record_new(&event, (dgm_record_head){.seq = 1}, scratch, &record, err);
        if (rc)
            return rc;
        dgm_record_unref(record);
    }
    /* roughly the bytes of its copy */
    size_t bytes = sizeof *m + m->message_id.n + m->context_id.n + m->task_id.n + GIVEN_ROOM;
    for (size_t i = 0; i < m->parts.n && bytes < GIVEN_MOST; i++)
        bytes += sizeof(dgm_part) + m->parts.at[i].content.n + 16;
    dgm_arena *a = c->send.given = dgm_arena_new_small(bytes < GIVEN_MOST ? bytes : GIVEN_MOST);
    dgm_guard guard = {.may_set = send->may_set};
    dgm_message clean = *m;
    if (!send->is_ours)
        dgm_guard_content(&guard, a, &clean.metadata, &clean.parts);
    c->send.message = dgm_new(a, dgm_message);
    *c->send.message = dgm_message_copy(a, &clean);
    c->send.metadata = dgm_json_copy(
        a, send->is_ours ? send->metadata : dgm_guard_metadata(&guard, a, send->metadata, false));
    if (send->accepted_output_modes.n)
        c->send.accepted_output_modes.at = dgm_new_n(a, dgm_str, send->accepted_output_modes.n);
    for (size_t i = 0; i < send->accepted_output_modes.n; i++)
        c->send.accepted_output_modes.at[i] = dgm_arena_dup(a, send->accepted_output_modes.at[i]);
    c->send.accepted_output_modes.n = send->accepted_output_modes.n;
    c->send.message_id = dgm_arena_dup(c->arena, m->message_id);
    c->turn.context_id = dgm_arena_dup(c->arena, m->context_id);
    c->task_id = dgm_arena_dup(c->arena, m->task_id);
    c->send.asked_context = c->turn.context_id;
    c->send.asked_task = c->task_id;
    c->turn.protocol = dgm_arena_dup(c->arena, send->protocol);
    c->turn.caller_id = dgm_arena_dup(c->arena, send->caller_id);
    if (send->request.n)
        c->turn.request = dgm_arena_dup(c->arena, send->request);
    if (send->previous.n)
        c->turn.previous = dgm_arena_dup(c->arena, send->previous);
    c->send.keep_turn = send->keep_turn && send->caller_id.n;
    c->send.answer_ms = send->answer_ms;
    c->send.joins_run = send->joins_run;
    c->send.dedupes = (c->agent->dedupe || send->dedupes || c->agent->backend->has_threads) &&
                      c->send.message_id.n && !send->always_new;
    return DGM_OK;
}

static uint64_t core_send(dgm_core *core, const dgm_send *send, bool is_forwarded,
                          dgm_str forward_id, dgm_on_sent on_sent, void *arg)
{
    struct call *c = dgm_call_new(core, CALL_SEND, send->owner);
    dgm_err err = {0};
    c->is_forwarded = is_forwarded;
    c->on.sent = on_sent;
    c->arg = arg;
    uint64_t n = atomic_fetch_add_explicit(&core->sends, 1, memory_order_relaxed);
    if (!(c->agent = dgm_core_find_agent_or_default(core, send->agent))) {
        dgm_call_refuse_with(c, DGM_BAD_PARAMS, "unknown agent");
        return 0;
    }
    if (call_copy_send(c, send, &err)) {
        dgm_call_refuse(c, &err);
        return 0;
    }
    if (forward_id.n) {
        c->send.message_id = dgm_arena_dup(c->arena, forward_id);
        c->send.dedupes = c->send.has_forward_id = true;
    }
    if (c->task_id.n) {
        dgm_call_post_to_task(c);
        return 0; /* there is a task: nothing to leave */
    }
    /* All copies of a message meet on one loop. If the message names nothing, its context will be one of this loop. */
    struct shard *s = c->turn.context_id.n ? dgm_core_shard_of(core, c->owner, c->turn.context_id)
                      : c->send.dedupes    ? dgm_core_shard_of(core, c->owner, c->send.message_id)
                                           : &core->shards[c->home->index];
    uint64_t number = c->send.number = (n + 1) * DGM_MAX_LOOPS + (uint64_t)(s - core->shards);
    dgm_loop_post(s->loop, call_handle_send, c);
    return number;
}

uint64_t dgm_core_send(dgm_core *core, const dgm_send *send, dgm_on_sent on_sent, void *arg)
{
    return core_send(core, send, false, (dgm_str){0}, on_sent, arg);
}

void dgm_core_send_forwarded(dgm_core *core, const dgm_send *send, dgm_str forward_id,
                             dgm_on_sent on_sent, void *arg)
{
    core_send(core, send, true, forward_id, on_sent, arg);
}
