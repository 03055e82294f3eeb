/*
 * core/invoke.c - an agent invokes another agent of this server (dgm_run_ops.invoke).
 *
 *   the run ── a send like any other ──► the invoked task, on its own loop
 *           ◄── its log, read from the first record on the loop of the run ── on_event ... on_end
 *
 * The invoked task belongs to the same owner. It is found again by the id of its message: the same invocation after a
 * restart is a resend, and follows the same task. Its message has the id of the task that invoked it and the number of tasks
 * above it. That number has a limit, so agents cannot invoke each other for ever.
 *
 * An invocation is in a list of its loop. The run may end while the send is on its way, or inside a callback: then the
 * invocation has no run any more, and is freed when it is not in use.
 */
#include "core/core_int.h"

#include <stdlib.h>

struct dgm_run_invoked {
    dgm_run_invoked *next, **prev; /* of the loop */
    struct run *run;               /* NULL: it has ended */
    struct shard *shard;
    dgm_run_invoked_handler handler;
    dgm_arena *arena; /* of this and its texts */
    dgm_owner owner;
    dgm_str agent, message_id;
    dgm_str task_id;        /* once it has one */
    uint64_t sent;          /* see dgm_core_send */
    dgm_log_reader *reader; /* NULL: it is not answered yet */
    dgm_loop_stop stop;
    bool is_sent;     /* the send was answered */
    bool is_canceled; /* the task is to be canceled */
    bool is_in_use;   /* by a function that calls the agent */
};

/* ---- life ------------------------------------------------------------------------------------------------------- */

static void invoked_close_reader(dgm_run_invoked *v)
{
    dgm_loop_off_stop(v->shard->loop, &v->stop);
    dgm_log_reader_close(v->reader);
    v->reader = NULL;
}

static void invoked_at_stop(void *arg)
{
    invoked_close_reader(arg);
}

static void invoked_free(dgm_run_invoked *v)
{
    if (v->reader)
        invoked_close_reader(v);
    *v->prev = v->next;
    if (v->next)
        v->next->prev = v->prev;
    dgm_arena_free(v->arena); /* v lives in it */
}

void dgm_core_invoked_free_all(struct shard *s)
{
    while (s->invoked)
        invoked_free(s->invoked);
}

/* The invoked tasks go on. */
void dgm_core_invoked_forget(struct run *r)
{
    for (dgm_run_invoked *v = r->shard->invoked, *next; v; v = next) {
        next = v->next;
        if (v->run != r)
            continue;
        v->run = NULL;
        if (v->is_sent && !v->is_in_use)
            invoked_free(v);
    }
}

/* ---- canceling -------------------------------------------------------------------------------------------------- */

static void on_invoked_canceled(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    (void)code, (void)snapshot, (void)err, (void)arg; /* its log shows how it ended */
}

static void invoked_cancel(dgm_run_invoked *v)
{
    dgm_core *core = v->shard->core;
    if (v->is_canceled)
        return;
    v->is_canceled = true;
    if (v->task_id.n)
        dgm_core_cancel(core, v->owner, v->agent, v->task_id, on_invoked_canceled, NULL);
    else if (!v->is_sent)
        dgm_core_caller_left(core, v->sent); /* if it gets a task all the same: on_invoked_sent */
}

void dgm_core_run_cancel_invoked(dgm_run_invoked *v)
{
    invoked_cancel(v);
}

void dgm_core_invoked_cancel_all(struct run *r)
{
    for (dgm_run_invoked *v = r->shard->invoked; v; v = v->next) {
        if (v->run == r)
            invoked_cancel(v);
    }
}

/* ---- children that wait ------------------------------------------------------------------------------------------ */

/* Tasks that a canceled task has invoked and that wait for an answer. Its runs that knew them have ended. */
struct child_search {
    dgm_core *core;
    dgm_arena *arena;
    dgm_str parent;
    unsigned n_open; /* lists that the store has not answered */
};

static bool is_invoked_by(const dgm_task_row *row, dgm_str parent)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_record_head head = {.seq = row->folded_seq, .kind = DGM_EVENT_TASK, .state = row->state};
    dgm_record *record = NULL;
    dgm_event event;
    if (!row->folded.n || dgm_record_from_bytes(head, row->folded, &record, NULL))
        return false;
    bool is_child =
        !dgm_record_event(record, a, &event, NULL) && event.kind == DGM_EVENT_TASK &&
        event.task->history.n &&
        dgm_str_eq(dgm_json_str_member(event.task->history.at[0].metadata, DGM_META_PARENT_TASK),
                   parent);
    dgm_record_unref(record);
    return is_child;
}

static void on_waiting_tasks(dgm_code code, const dgm_task_row *rows, size_t n, bool more,
                             size_t total, const dgm_err *err, void *arg)
{
    struct child_search *s = arg;
    (void)more, (void)total, (void)err;
    for (size_t i = 0; !code && i < n && !s->core->stopping; i++) {
        if (is_invoked_by(&rows[i], s->parent))
            dgm_core_cancel(s->core, rows[i].owner, rows[i].agent, rows[i].id, on_invoked_canceled,
                            NULL);
    }
    if (--s->n_open == 0)
        dgm_arena_free(s->arena); /* s lives in it */
}

/* Its children are in its context or, if the agent has invoked itself, in one that has the id of the task: context_for(). */
void dgm_core_cancel_waiting_children(const struct live *l)
{
    static const dgm_task_state states[] = {DGM_STATE_INPUT_REQUIRED, DGM_STATE_AUTH_REQUIRED};
    dgm_str contexts[] = {l->context_id, l->id};
    if (!l->agent->backend->invokes_agents || l->shard->core->stopping)
        return;
    dgm_arena *a = dgm_arena_new_small(sizeof(struct child_search) + 64);
    struct child_search *s = dgm_new(a, struct child_search);
    *s = (struct child_search){l->shard->core, a, dgm_arena_dup(a, l->id), 4};
    for (size_t i = 0; i < 4; i++)
        dgm_store_list(s->core->o.store,
                       &(dgm_list_query){.owner = dgm_live_owner(l),
                                         .context_id = contexts[i / 2],
                                         .state = {true, (int32_t)states[i % 2]},
                                         .page_size = DGM_MAX_INVOKED},
                       on_waiting_tasks, s);
}

/* ---- following -------------------------------------------------------------------------------------------------- */

static void invoked_end(dgm_run_invoked *v, dgm_task_state state, const dgm_err *err)
{
    dgm_run_invoked_handler on = v->handler;
    bool has_run = v->run;
    invoked_free(v);
    if (has_run)
        on.on_end(on.arg, state, err);
}

static bool ends_turn(const dgm_record *r)
{
    return r->head.kind == DGM_EVENT_MESSAGE ||
           ((r->head.kind == DGM_EVENT_TASK || r->head.kind == DGM_EVENT_STATUS) &&
            (dgm_state_is_terminal(r->head.state) || dgm_state_is_interrupted(r->head.state)));
}

/* False: the invocation has ended, and is freed. */
static bool invoked_report(dgm_run_invoked *v, const dgm_record *record)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_event event;
    dgm_err err = {0};
    if (dgm_record_event(record, a, &event, &err)) {
        invoked_end(v, DGM_STATE_UNKNOWN, &err);
        return false;
    }
    v->is_in_use = true;
    v->handler.on_event(v->handler.arg, &event); /* may end the run */
    v->is_in_use = false;
    if (!v->run)
        invoked_free(v);
    else if (ends_turn(record))
        invoked_end(
            v, record->head.kind == DGM_EVENT_MESSAGE ? DGM_STATE_COMPLETED : record->head.state,
            NULL);
    else
        return true;
    return false;
}

static void on_invoked_records(void *arg)
{
    dgm_run_invoked *v = arg;
    const dgm_record *r;
    dgm_err err = {0};
    while ((r = dgm_log_reader_next(v->reader))) {
        if (!invoked_report(v, r))
            return;
    }
    if (!dgm_log_reader_is_over(v->reader) || v->shard->core->draining)
        return; /* if the server shuts down, this run is suspended, too, or ends */
    dgm_fail(&err, DGM_UNAVAILABLE, NULL, "the log of the invoked task cannot be stored");
    invoked_end(v, DGM_STATE_UNKNOWN, &err);
}

static void on_invoked_sent(dgm_code code, const dgm_sent *sent, const dgm_err *err, void *arg)
{
    dgm_run_invoked *v = arg;
    v->is_sent = true;
    if (!code)
        v->task_id = dgm_arena_dup(v->arena, sent->task_id);
    if (!code && v->is_canceled && v->task_id.n)
        dgm_core_cancel(v->shard->core, v->owner, v->agent, v->task_id, on_invoked_canceled, NULL);
    if (code || !v->run || v->shard->core->stopping) {
        if (v->shard->core->stopping)
            v->run = NULL; /* it is not called any more */
        invoked_end(v, DGM_STATE_UNKNOWN, err);
        return;
    }
    if (sent->snapshot && !invoked_report(v, sent->snapshot))
        return;
    v->reader = dgm_log_reader_open(sent->log, sent->after, on_invoked_records, v);
    v->stop = (dgm_loop_stop){.fn = invoked_at_stop, .arg = v};
    dgm_loop_on_stop(v->shard->loop, &v->stop);
}

/* ---- invoking --------------------------------------------------------------------------------------------------- */

static int64_t depth_of_message(const dgm_message *m)
{
    const dgm_json *depth = dgm_json_get(m->metadata, DGM_STR(DGM_META_DEPTH));
    int64_t n = 0;
    return depth && dgm_json_int(depth, &n) && n > 0 ? n : 0;
}

/* How many tasks are above this run: the messages that it was sent name the number. */
static int64_t depth_of_run(const struct run *r)
{
    const dgm_task *task = r->live ? dgm_fold_task(r->live->fold) : NULL;
    int64_t depth = r->message ? depth_of_message(r->message) : 0;
    for (size_t i = 0; task && i < task->history.n; i++) {
        int64_t n =
            task->history.at[i].role == DGM_ROLE_USER ? depth_of_message(&task->history.at[i]) : 0;
        depth = n > depth ? n : depth;
    }
    return depth;
}

static dgm_code check_invocation(const struct run *r, const dgm_run_invocation *what, int64_t depth,
                                 dgm_err *err)
{
    size_t n = 0;
    if (r->base.canceled)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL, "the run was canceled: it invokes no agent");
    if (!dgm_core_find_agent(r->shard->core, what->agent))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "unknown agent \"%.*s\"", DGM_P(what->agent));
    if (!what->message->message_id.n)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "the message has no messageId");
    if (depth > DGM_MAX_INVOKE_DEPTH)
        return dgm_fail(err, DGM_UNSUPPORTED_OPERATION, NULL,
                        "%d tasks have invoked each other, the limit invoke_depth: agent \"%.*s\" "
                        "is not invoked",
                        DGM_MAX_INVOKE_DEPTH, DGM_P(what->agent));
    for (const dgm_run_invoked *v = r->shard->invoked; v; v = v->next) {
        n += v->run == r;
        if (v->run == r && dgm_str_eq(v->agent, what->agent) &&
            dgm_str_eq(v->message_id, what->message->message_id))
            return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                            "the run has invoked the agent with this messageId already");
    }
    if (n >= DGM_MAX_INVOKED)
        return dgm_fail(err, DGM_RATE_LIMITED, NULL,
                        "the run has invoked %d agents that have not ended, the limit invoked",
                        DGM_MAX_INVOKED);
    return DGM_OK;
}

static dgm_run_invoked *invoked_new(struct run *r, const dgm_run_invocation *what,
                                    const dgm_run_invoked_handler *handler)
{
    dgm_arena *a = dgm_arena_new_small(sizeof(dgm_run_invoked) + 128);
    dgm_run_invoked *v = dgm_new(a, dgm_run_invoked);
    *v = (dgm_run_invoked){
        .run = r,
        .shard = r->shard,
        .handler = *handler,
        .arena = a,
        .owner = {dgm_arena_dup(a, r->input.tenant), dgm_arena_dup(a, r->input.principal)},
        .agent = dgm_arena_dup(a, what->agent),
        .message_id = dgm_arena_dup(a, what->message->message_id),
        .next = r->shard->invoked,
        .prev = &r->shard->invoked};
    if (v->next)
        v->next->prev = &v->next;
    r->shard->invoked = v;
    return v;
}

/* An agent that invokes itself must not get the conversation that it is in the middle of. */
static dgm_str context_for(const struct run *r, const dgm_run_invocation *what)
{
    if (what->message->context_id.n || what->message->task_id.n)
        return what->message->context_id;
    return dgm_str_eq(what->agent, r->agent->id) ? r->input.task_id : r->input.context_id;
}

dgm_code dgm_core_run_invoke(dgm_run *base, const dgm_run_invocation *what,
                             const dgm_run_invoked_handler *handler, dgm_run_invoked **ret_invoked,
                             dgm_err *err)
{
    struct run *r = (struct run *)(void *)base;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    int64_t depth = depth_of_run(r) + 1;
    dgm_code rc = check_invocation(r, what, depth, err);
    if (rc)
        return rc;
    dgm_run_invoked *v = invoked_new(r, what, handler);
    dgm_message message = *what->message;
    message.context_id = context_for(r, what);
    message.metadata = dgm_metadata_with_text(a, message.metadata, DGM_STR(DGM_META_PARENT_TASK),
                                              r->input.task_id);
    message.metadata = dgm_metadata_with_text(a, message.metadata, DGM_STR(DGM_META_DEPTH),
                                              dgm_arena_printf(a, "%lld", (long long)depth));
    dgm_send send = {.owner = v->owner,
                     .agent = v->agent,
                     .message = &message,
                     .metadata = what->metadata,
                     .is_ours = true,
                     .dedupes = true,
                     .protocol = DGM_STR("invoke")};
    *ret_invoked = v;
    v->sent = dgm_core_send(r->shard->core, &send, on_invoked_sent, v); /* answered later */
    return DGM_OK;
}
