/*
 * frontend/turn/turn_ask.c - where a request goes: to the task that waits for it, or to a new one.
 *
 *   results of calls ──► whose task asked for them? ──► it waits: there
 *   a context ─────────► its newest task ─────────────► it waits: there; it works: to its run, if that accepts messages;
 *                                                       else: a new task beside it
 *   neither ───────────► a new task in a new context
 */
#include "frontend/turn/turn_int.h"

struct asking {
    dgm_ask ask;
    struct cut cut;
    dgm_arena *arena;
    dgm_message message;
    dgm_str context_id, task_id; /* where it goes; empty: a new one */
    dgm_str newest;              /* of the context, if it does not wait */
    dgm_str working;             /* the same, if it works: its run may accept the message */
    struct cut news;             /* what the task that works has not got */
    bool is_offered;             /* to that run, which has not answered yet */
    dgm_str asked_by, asked_in;  /* the task that waits for these results, and its context */
    bool knows;                  /* the context has what came before */
    uint64_t sent;               /* the number of its send, for dgm_core_caller_left */
    dgm_on_sent on_sent;
    void *arg;
};

static void turn_ask_fail(struct asking *k, const dgm_err *err)
{
    k->on_sent(err->code, NULL, err, k->arg);
}

/* ---- sending ------------------------------------------------------------------------------------------------------- */

static void send_it(struct asking *k);

/* No client can stop a run without a task: it does not go on without its caller. Here a FIN is enough. */
static void on_left(void *arg)
{
    struct asking *k = arg;
    dgm_core_caller_left(k->ask.turns->o.core, k->sent);
}

/* The task that waited has ended meanwhile: then it is a new one's. */
static void turn_ask_on_sent(dgm_code code, const dgm_sent *sent, const dgm_err *err, void *arg)
{
    struct asking *k = arg;
    dgm_http_watch(k->ask.x, NULL, NULL); /* whoever answers watches for itself */
    bool is_gone = code == DGM_UNSUPPORTED_OPERATION || code == DGM_TASK_NOT_FOUND;
    if (is_gone && k->is_offered) {
        k->is_offered = false;
        send_it(k);
        return;
    }
    if (is_gone && k->task_id.n && !k->ask.task_id.n) {
        k->newest = k->task_id;
        k->task_id = (dgm_str){0};
        send_it(k);
        return;
    }
    k->on_sent(code, sent, err, k->arg);
}

static void send_it(struct asking *k)
{
    const dgm_ask *ask = &k->ask;
    dgm_err err = {0};
    k->is_offered = k->working.n && !k->task_id.n;
    if (dgm_make_message(k->arena, ask, k->is_offered ? &k->news : &k->cut,
                         !k->knows && !k->is_offered, &k->message, &err)) {
        turn_ask_fail(k, &err);
        return;
    }
    k->message.task_id = k->is_offered ? k->working : k->task_id;
    k->working = (dgm_str){0};
    k->message.context_id = k->context_id;
    if (!k->message.task_id.n && k->newest.n)
        k->message.reference_task_ids = (dgm_strs){&k->newest, 1};
    dgm_send send = {.owner = ask->owner,
                     .agent = ask->agent->id,
                     .message = &k->message,
                     .metadata = dgm_make_metadata(k->arena, ask),
                     .is_ours = true,
                     .accepted_output_modes = ask->accepted_output_modes,
                     .protocol = ask->protocol,
                     .caller_id = ask->caller_id,
                     .request = ask->request,
                     .previous = ask->previous,
                     .bytes = dgm_http_request_of(ask->x)->body.n,
                     .keep_turn =
                         dgm_str_is(ask->protocol, "openai-responses"), /* if it has an id */
                     .joins_run = k->is_offered,
                     .always_new = !ask->dedupe};
    k->sent = dgm_core_send(ask->turns->o.core, &send, turn_ask_on_sent, k);
    static const dgm_http_watcher waits = {.on_gone = on_left, .on_fin = on_left};
    dgm_http_watch(ask->x, &waits, k);
}

/* ---- looking ---------------------------------------------------------------------------------------------------------- */

static bool waits(dgm_task_state state)
{
    return state == DGM_STATE_INPUT_REQUIRED || state == DGM_STATE_AUTH_REQUIRED;
}

/* The newest task of the context, and its state. */
static void take_newest(struct asking *k, dgm_str id, dgm_task_state state)
{
    k->knows = true;
    if (waits(state))
        k->task_id = id;
    else
        k->newest = id;
}

/* Clients send all messages since the last answer. Those that the context has are no news to the task that works. Without
 * news, or with results of calls, the request is not for its run. */
static void take_working(struct asking *k, dgm_str id, dgm_task_state state, struct known known)
{
    const dgm_canon_input *input = k->ask.input;
    if (dgm_state_is_terminal(state) || waits(state) || k->cut.results.n || input->resume.n)
        return;
    k->news = k->cut;
    k->news.tail = dgm_find_news(k->arena, &input->messages, k->cut.tail, &known,
                                 !k->ask.context_has_history || k->ask.fork_on_difference);
    if (k->news.tail < input->messages.n)
        k->working = id;
}

/* No task waits in the context, but one elsewhere asked for these results. */
static void send_where_it_is_due(struct asking *k)
{
    if (!k->task_id.n && k->asked_by.n) {
        k->task_id = k->asked_by;
        k->context_id = k->asked_in;
        k->knows = true;
    }
    send_it(k);
}

static void turn_ask_on_history(dgm_code code, const dgm_turn_history *history, const dgm_err *err,
                                void *arg)
{
    struct asking *k = arg;
    if (code) {
        turn_ask_fail(k, err);
        return;
    }
    bool differs =
        !history->cut && /* else its beginning is not there to be compared */
        !dgm_extends_history(k->arena, &k->ask.input->messages, &k->cut, &history->messages);
    if (history->task_id.n)
        take_newest(k, history->task_id, history->state);
    if (history->task_id.n && !(differs && k->ask.fork_on_difference))
        take_working(k, history->task_id, history->state,
                     dgm_known_of_messages(k->arena, &history->messages));
    if (differs && k->ask.fork_on_difference) {
        k->context_id =
            (dgm_str){0}; /* a new context starts, which names the task of the old one */
        k->knows = false;
        k->newest = history->task_id;
        k->task_id = (dgm_str){0};
    } else if (differs && !k->task_id.n) {
        k->knows = false;
    }
    send_where_it_is_due(k);
}

static void turn_ask_on_listed(dgm_code code, const dgm_listed *listed, const dgm_err *err,
                               void *arg)
{
    struct asking *k = arg;
    dgm_event event;
    if (code) {
        turn_ask_fail(k, err);
        return;
    }
    if (listed->n && !dgm_record_event(listed->tasks[0], k->arena, &event, NULL) &&
        event.kind == DGM_EVENT_TASK) {
        take_newest(k, event.task->id, event.task->status.state);
        take_working(k, event.task->id, event.task->status.state,
                     dgm_known_of_task(k->arena, event.task));
    }
    send_where_it_is_due(k);
}

static void look_in_context(struct asking *k)
{
    const dgm_ask *ask = &k->ask;
    dgm_list_query q = {.owner = ask->owner,
                        .agent = ask->agent->id,
                        .context_id = ask->context_id,
                        .page_size = 1};
    if (!ask->context_id.n)
        send_it(k);
    else if (k->cut.has_assistant &&
             (ask->fork_on_difference || (ask->replace_on_difference && ask->agent->gets_history)))
        dgm_turn_get_history(ask->turns, k->arena, ask->owner, ask->agent->id, ask->context_id,
                             turn_ask_on_history, k);
    else
        dgm_core_list(ask->turns->o.core, &q, turn_ask_on_listed, k);
}

/* Does the task wait, where calls are looked for? */
static bool is_wanted(const struct asking *k, const dgm_task *task)
{
    return waits(task->status.state) &&
           (!k->ask.calls_of_context || dgm_str_eq(task->context_id, k->ask.context_id));
}

static void on_call_found(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    struct asking *k = arg;
    dgm_event event;
    if (code && code != DGM_TASK_NOT_FOUND) {
        turn_ask_fail(k, err);
        return;
    }
    if (code || dgm_record_event(snapshot, k->arena, &event, NULL) ||
        event.kind != DGM_EVENT_TASK || !is_wanted(k, event.task)) {
        look_in_context(k);
        return;
    }
    k->asked_by = event.task->id;
    k->asked_in = event.task->context_id;
    /* ids of calls are the agents' own: two conversations may have the same, then this one's counts */
    if (k->context_id.n && !dgm_str_eq(k->context_id, k->asked_in))
        look_in_context(k);
    else
        send_where_it_is_due(k);
}

void dgm_turn_ask(const dgm_ask *ask, dgm_on_sent on_done, void *arg)
{
    struct asking *k = dgm_new(dgm_http_arena(ask->x), struct asking);
    k->ask = *ask;
    k->arena = dgm_http_arena(ask->x);
    k->cut = dgm_cut_messages(k->arena, &ask->input->messages);
    k->context_id = ask->context_id;
    k->task_id = ask->task_id;
    k->knows = ask->context_has_history || ask->task_id.n;
    k->on_sent = on_done;
    k->arg = arg;
    if (ask->task_id.n || (!ask->context_id.n && !k->cut.results.n))
        send_it(k);
    else if (k->cut.results.n)
        dgm_core_find_call(ask->turns->o.core, ask->owner, ask->agent->id, k->cut.results.at[0],
                           on_call_found, k);
    else
        look_in_context(k);
}
