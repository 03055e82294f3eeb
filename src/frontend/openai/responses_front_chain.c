/*
 * frontend/openai/responses_front_chain.c - where a request goes on.
 *
 *   previous_response_id ──► that response is the last of its context: there
 *                        └─► others came after it, or the agent is another: a new context, and the items up to
 *                            it goes along, from the first response of the chain
 *   conversation ─────────► the context of that id; what was put into it since goes along
 *   a session key ────────► the context of that name
 */
#include "base/list.h"
#include "frontend/openai/responses_front_int.h"

struct looking {
    struct responses_op *op;
    const struct responses_asked *asked;
    const dgm_turn_agent *agent;
    responses_on_place on_place;
    void *arg;
    struct responses_place place;
    dgm_str task_id; /* of the previous response */
    bool is_last;    /* no turn of its task came after it */
    dgm_str id;      /* of the response that is looked at */
    struct link *chain;
    size_t n_links;
    size_t bytes; /* of its items */
    const struct conversation *conversation;
};

/* What one response of the chain was given and has made. */
struct link {
    yyjson_val *input, *output;
};

static void fail_previous(struct looking *k)
{
    struct openai_error e = {
        .http = 400,
        .type = "invalid_request_error",
        .code = DGM_STR("previous_response_not_found"),
        .param = DGM_STR("previous_response_id"),
        .message = dgm_arena_printf(k->op->arena, "Previous response with id '%.*s' not found.",
                                    (int)(k->id.n < 200 ? k->id.n : 200), k->id.p)};
    dgm_openai_fail(k->op->x, &e);
}

/* ---- the chain ------------------------------------------------------------------------------------------------------ */

static void add_item(struct looking *k, yyjson_val *item)
{
    struct responses_place *p = &k->place;
    p->items = dgm_list_grow(k->op->arena, p->items, p->n_items, sizeof *p->items);
    p->items[p->n_items++] = item;
}

static void add_items(struct looking *k, yyjson_val *items)
{
    yyjson_val *e;
    size_t i, n;
    yyjson_arr_foreach (items, i, n, e)
        add_item(k, e);
}

static void send_chain(struct looking *k)
{
    while (k->n_links--) { /* the newest was found first */
        add_items(k, k->chain[k->n_links].input);
        add_items(k, k->chain[k->n_links].output);
    }
    k->on_place(k->arg, &k->place);
}

static yyjson_val *copy_list(struct looking *k, dgm_arena *scratch, yyjson_val *list)
{
    k->bytes += list ? dgm_json_text_in(scratch, list).n : 0;
    return k->bytes <= DGM_MAX_RECORD_BYTES ? dgm_json_copy(k->op->arena, list) : NULL;
}

/* Only the items are copied: the response itself is released at once. */
static void add_link(struct looking *k, const dgm_found_turn *found)
{
    dgm_auto(dgm_arena_free) dgm_arena *scratch = dgm_arena_new();
    struct responses_turn turn = dgm_responses_turn_of(scratch, k->id, found);
    dgm_str text = dgm_responses_so_far(k->op, &turn, scratch);
    yyjson_val *response = dgm_responses_read_text(scratch, text);
    k->chain = dgm_list_grow(k->op->arena, k->chain, k->n_links, sizeof *k->chain);
    k->chain[k->n_links++] =
        (struct link){copy_list(k, scratch, dgm_json_get(turn.request, DGM_STR("input"))),
                      copy_list(k, scratch, dgm_json_get(response, DGM_STR("output")))};
}

static void fail_chain(struct looking *k)
{
    dgm_err err = {0};
    dgm_fail(&err, DGM_TOO_LARGE, DGM_AT_LIT(NULL, "previous_response_id"),
             "the items of the responses before are larger than the limit record_bytes of %zu",
             DGM_MAX_RECORD_BYTES);
    dgm_responses_fail(k->op, &err);
}

static void on_link(void *arg, const dgm_found_turn *found)
{
    struct looking *k = arg;
    if (!found) { /* it is not stored any more */
        send_chain(k);
        return;
    }
    add_link(k, found);
    if (k->bytes > DGM_MAX_RECORD_BYTES) {
        fail_chain(k);
        return;
    }
    k->id = dgm_arena_dup(k->op->arena, found->previous);
    if (k->id.n && k->n_links < DGM_MAX_HISTORY_TASKS)
        dgm_responses_find(k->op, k->id, on_link, k);
    else
        send_chain(k);
}

/* ---- previous_response_id --------------------------------------------------------------------------------------------- */

static void on_newest(dgm_code code, const dgm_listed *listed, const dgm_err *err, void *arg)
{
    struct looking *k = arg;
    dgm_event event;
    if (code) {
        dgm_responses_fail(k->op, err);
        return;
    }
    bool is_newest = listed->n && !dgm_record_event(listed->tasks[0], k->op->arena, &event, NULL) &&
                     event.kind == DGM_EVENT_TASK && dgm_str_eq(event.task->id, k->task_id);
    if (is_newest) {
        dgm_task_state state = event.task->status.state;
        k->place.has_history = true;
        if (state == DGM_STATE_INPUT_REQUIRED || state == DGM_STATE_AUTH_REQUIRED)
            k->place.task_id = k->task_id; /* that asked: not another that asks for the same */
        k->on_place(k->arg, &k->place);
        return;
    }
    k->place.context_id = (dgm_str){0};
    dgm_responses_find(k->op, k->id, on_link, k);
}

static void on_previous(void *arg, const dgm_found_turn *found)
{
    struct looking *k = arg;
    dgm_arena *a = k->op->arena;
    if (!found) {
        fail_previous(k);
        return;
    }
    bool is_last = !found->last_seq || found->log->published <= found->last_seq;
    if (!is_last || !dgm_str_eq(found->agent, k->agent->id)) {
        on_link(k, found);
        return;
    }
    k->task_id = dgm_arena_dup(a, found->task_id);
    k->place.context_id = dgm_arena_dup(a, found->context_id);
    dgm_list_query newest = {.owner = k->op->q.owner,
                             .agent = k->agent->id,
                             .context_id = k->place.context_id,
                             .page_size = 1};
    dgm_core_list(k->op->core, &newest, on_newest, k);
}

/* ---- conversation -------------------------------------------------------------------------------------------------------- */

static void responses_front_chain_on_history(dgm_code code, const dgm_turn_history *history,
                                             const dgm_err *err, void *arg)
{
    struct looking *k = arg;
    if (code) {
        dgm_responses_fail(k->op, err);
        return;
    }
    const dgm_canon_messages *said = &history->messages;
    k->place.has_history = history->task_id.n;
    dgm_conversation_added_since(k->op->arena, k->conversation,
                                 said->n ? said->at[said->n - 1].id : (dgm_str){0}, &k->place.items,
                                 &k->place.n_items);
    k->on_place(k->arg, &k->place);
}

static void on_conversation(void *arg, const struct conversation *c)
{
    struct looking *k = arg;
    k->place.context_id = c->id;
    k->conversation = c;
    if (yyjson_arr_size(c->added)) {
        dgm_turn_get_sent_history(k->op->q.turns, k->op->arena, k->op->q.owner, (dgm_str){0}, c->id,
                                  responses_front_chain_on_history, k);
        return;
    }
    k->place.has_history = true;
    k->on_place(k->arg, &k->place);
}

void dgm_responses_find_place(struct responses_op *op, const struct responses_asked *asked,
                              const dgm_turn_agent *agent, responses_on_place on_place, void *arg)
{
    struct looking *k = dgm_new(op->arena, struct looking);
    dgm_err err = {0};
    *k = (struct looking){
        .op = op, .asked = asked, .agent = agent, .on_place = on_place, .arg = arg};
    if (asked->previous.n) {
        k->id = asked->previous;
        dgm_responses_find(op, asked->previous, on_previous, k);
        return;
    }
    if (asked->conversation.n) {
        dgm_conversation_find(op, asked->conversation, "conversation", on_conversation, k);
        return;
    }
    if (dgm_openai_session(dgm_http_request_of(op->x), dgm_json_non_null(op->body, "metadata"),
                           &k->place.context_id, &err)) {
        dgm_responses_fail(op, &err);
        return;
    }
    k->place.has_history = k->place.may_fork = k->place.context_id.n;
    k->on_place(k->arg, &k->place);
}
