/*
 * core/find.c - other names of tasks: the turns of their callers, the calls that they ask for.
 *
 * The store has the names. A call that has found its task goes to the loop that owns the task, like any other.
 */
#include "core/core_int.h"
#include "model/calls.h"

#include <stdlib.h>

/* ---- turns ------------------------------------------------------------------------------------------------------ */

void dgm_live_set_turn_texts(struct live *l, const dgm_turn_row *turn)
{
    /* What most turns are begun by need not be kept with each of them. */
    static const dgm_str known[] = {
        {"a2a", 3}, {"ag-ui", 5}, {"openai-chat", 11}, {"openai-responses", 16}, {"ai-sdk", 6}};
    dgm_str protocol = {0};
    for (size_t i = 0; i < sizeof known / sizeof *known && !protocol.n; i++) {
        if (dgm_str_eq(known[i], turn->protocol))
            protocol = known[i];
    }
    size_t n = turn->caller_id.n + turn->request.n + turn->previous.n +
               (protocol.n ? 0 : turn->protocol.n);
    free(l->turns.texts);
    char *at = l->turns.texts = n ? dgm_xmalloc(n) : NULL;
    l->turns.last.caller_id_n = (uint32_t)dgm_core_copy_text(&at, turn->caller_id).n;
    l->turns.last.request_n = (uint32_t)dgm_core_copy_text(&at, turn->request).n;
    l->turns.last.previous_n = (uint32_t)dgm_core_copy_text(&at, turn->previous).n;
    l->turns.last.protocol = protocol.n ? protocol : dgm_core_copy_text(&at, turn->protocol);
}

void dgm_live_add_turn(struct live *l, const struct call *c)
{
    dgm_live_set_turn_texts(l, &(dgm_turn_row){.protocol = c->turn.protocol,
                                               .caller_id = c->turn.caller_id,
                                               .request = c->turn.request,
                                               .previous = c->turn.previous});
    l->turns.last.first_seq = l->log->last;
    l->turns.last.last_seq = 0;
    dgm_live_push_turn(l);
    l->write.turn = true;
}

void dgm_live_push_turn(struct live *l)
{
    if (l->turns.n == l->turns.cap) {
        bool is_first = l->turns.items == &l->turns.first;
        l->turns.cap *= 2;
        l->turns.items =
            dgm_xrealloc(is_first ? NULL : l->turns.items, l->turns.cap * sizeof *l->turns.items);
        if (is_first)
            *l->turns.items = l->turns.first;
    }
    l->turns.items[l->turns.n++] =
        (struct turn_at){.first_seq = l->turns.last.first_seq, .turn = l->turns.last.turn};
}

const struct turn_at *dgm_live_find_turn(const struct live *l, uint32_t turn)
{
    for (size_t i = l->turns.n; i-- > 0;) {
        if (l->turns.items[i].turn == turn)
            return &l->turns.items[i];
    }
    return NULL;
}

uint32_t dgm_live_n_joined(const struct live *l)
{
    uint32_t n = 0;
    while (n < l->turns.n && l->turns.items[l->turns.n - 1 - n].is_joined)
        n++;
    return n;
}

bool dgm_live_turn_runs(const struct live *l, uint32_t turn)
{
    bool runs = dgm_live_is_ours(l)
                    ? l->run != NULL
                    : l->rare->share->lease.holder == DGM_LEASE_OTHER || !dgm_live_is_at_rest(l);
    return runs && turn <= l->turns.last.turn && l->turns.last.turn - turn <= dgm_live_n_joined(l);
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

static struct open_calls *live_open_calls(struct live *l)
{
    dgm_arena *a = l->write.open_calls ? l->write.open_calls->arena : dgm_arena_new();
    if (!l->write.open_calls) {
        l->write.open_calls = dgm_new(a, struct open_calls);
        l->write.open_calls->arena = a;
    }
    return l->write.open_calls;
}

static void open_calls_add(struct open_calls *to, dgm_strs ids)
{
    dgm_strs *all = &to->ids;
    all->at = dgm_arena_realloc(to->arena, all->at, all->n * sizeof(dgm_str),
                                (all->n + ids.n) * sizeof(dgm_str));
    for (size_t i = 0; i < ids.n; i++)
        all->at[all->n++] = dgm_arena_dup(to->arena, ids.at[i]);
}

/* The calls that a question asks its caller to make: the task is found by them. */
void dgm_live_add_open_calls(struct live *l, const dgm_message *m)
{
    if (!m || !dgm_message_has(m, DGM_CALLS))
        return;
    struct open_calls *to = live_open_calls(l);
    open_calls_add(to, dgm_message_call_ids(to->arena, m, DGM_MAX_OPEN_CALLS));
}

dgm_str dgm_core_agent_message_key(dgm_arena *a, dgm_str context_id, dgm_str message_id)
{
    return dgm_arena_printf(a, "message %.*s %.*s", DGM_P(context_id), DGM_P(message_id));
}

static bool has_text_part(const dgm_message *m)
{
    for (size_t i = 0; i < m->parts.n; i++) {
        if (m->parts.at[i].kind == DGM_PART_TEXT)
            return true;
    }
    return false;
}

/* A caller that uses the id of an agent's message would replace it in the thread: its task is found by it, like by a call. */
void dgm_live_add_agent_message(struct live *l, const dgm_event *event)
{
    const dgm_message *m = event->kind == DGM_EVENT_STATUS     ? event->status->status.message
                           : event->kind == DGM_EVENT_INTERNAL ? event->internal->message
                                                               : NULL;
    if (!m || m->role != DGM_ROLE_AGENT || !m->message_id.n || !has_text_part(m))
        return;
    struct open_calls *to = live_open_calls(l);
    dgm_str key = dgm_core_agent_message_key(to->arena, l->context_id, m->message_id);
    open_calls_add(to, (dgm_strs){&key, 1});
}

void dgm_live_clear_names(struct live *l)
{
    free(l->write.message);
    l->write.message = NULL;
    if (l->write.open_calls)
        dgm_arena_free(l->write.open_calls->arena); /* it lives in it */
    l->write.open_calls = NULL;
}

/* ---- finding tasks ----------------------------------------------------------------------------------------------- */

static void not_found(struct call *c)
{
    dgm_call_refuse_with(c, DGM_TASK_NOT_FOUND, "Task not found");
}

/* Whose the task has to be; false: there is no such agent, or the server ends, and the call was refused. */
static bool find_is_allowed(struct call *c, dgm_str agent)
{
    if (agent.p && !(c->agent = dgm_core_find_agent_or_default(c->core, agent))) {
        not_found(c);
        return false;
    }
    if (c->core->stopping) {
        dgm_call_refuse_with(c, DGM_UNAVAILABLE, "the server is shutting down");
        return false;
    }
    return true;
}

static dgm_str agent_id_or_none(const dgm_core_agent *agent)
{
    return agent ? agent->id : (dgm_str){0};
}

/* ---- turns ------------------------------------------------------------------------------------------------------ */

static void on_turn_row(dgm_code code, const dgm_turn_row *turn, dgm_str task_id,
                        const dgm_err *err, void *arg)
{
    struct call *c = arg;
    if (code) {
        dgm_call_refuse(c, err);
    } else if (!turn) {
        dgm_message_turn_find(c);
    } else {
        c->turn.number = turn->turn;
        c->turn.request = dgm_arena_dup(c->arena, turn->request);
        c->turn.previous = dgm_arena_dup(c->arena, turn->previous);
        c->task_id = dgm_arena_dup(c->arena, task_id);
        dgm_call_post_to_task(c);
    }
}

/* A turn ends before the first record of the next one, but not before its run. */
static uint64_t last_of(const struct live *l, const struct turn_at *at)
{
    if (dgm_live_turn_runs(l, at->turn))
        return 0;
    return at->turn == l->turns.last.turn ? l->turns.last.last_seq : at[1].first_seq - 1;
}

void dgm_live_handle_turn(struct live *l, struct call *c)
{
    const struct turn_at *at = dgm_live_find_turn(l, c->turn.number);
    if (!at) {
        not_found(c);
        return;
    }
    if (dgm_live_has_max_readers(l, c) || dgm_live_load_older(l, c, at->first_seq))
        return;
    if (at->first_seq < l->log->first_seq) { /* was trimmed since */
        not_found(c);
        return;
    }
    c->agent = l->agent;
    c->turn.context_id = dgm_arena_dup(c->arena, l->context_id);
    c->turn.first_seq = at->first_seq;
    c->turn.last_seq = last_of(l, at);
    c->log = dgm_log_ref(l->log);
    dgm_live_answer_when_published(l, c, c->turn.first_seq);
}

void dgm_core_find_turn(dgm_core *core, dgm_owner owner, dgm_str agent, dgm_str protocol,
                        dgm_str caller_id, dgm_on_turn on_turn, void *arg)
{
    struct call *c = dgm_call_new(core, CALL_TURN, owner);
    c->on.turn = on_turn;
    c->arg = arg;
    c->turn.protocol = dgm_arena_dup(c->arena, protocol);
    c->turn.caller_id = dgm_arena_dup(c->arena, caller_id);
    if (find_is_allowed(c, agent))
        dgm_store_find_turn(core->o.store, c->owner, agent_id_or_none(c->agent), protocol,
                            caller_id, on_turn_row, c);
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

static void on_call_row(dgm_code code, const dgm_task_row *row, const dgm_err *err, void *arg)
{
    struct call *c = arg;
    if (code) {
        dgm_call_refuse(c, err);
    } else if (!row || !(c->agent = dgm_core_find_agent(c->core, row->agent))) {
        not_found(c);
    } else {
        c->task_id = dgm_arena_dup(c->arena, row->id);
        dgm_call_post_to_task(c);
    }
}

void dgm_core_find_call(dgm_core *core, dgm_owner owner, dgm_str agent, dgm_str call_id,
                        dgm_on_task on_task, void *arg)
{
    struct call *c = dgm_call_new(core, CALL_GET, owner);
    c->on.task = on_task;
    c->arg = arg;
    if (find_is_allowed(c, agent))
        dgm_store_find_call(core->o.store, c->owner, agent_id_or_none(c->agent), call_id,
                            on_call_row, c);
}
