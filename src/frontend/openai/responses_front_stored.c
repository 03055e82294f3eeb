/* frontend/openai/responses_front_stored.c - responses by their ids: GET, cancel, DELETE, input_items. */
#include "frontend/openai/responses_front_int.h"

/* ---- finding --------------------------------------------------------------------------------------------------------- */

struct search {
    struct responses_op *op;
    dgm_str id;
    responses_on_found on_found;
    void *arg;
};

static void responses_front_stored_on_turn(dgm_code code, const dgm_found_turn *turn,
                                           const dgm_err *err, void *arg)
{
    struct search *s = arg;
    if (code && code != DGM_TASK_NOT_FOUND)
        dgm_responses_fail(s->op, err);
    else
        s->on_found(s->arg, code ? NULL : turn);
}

static void on_deleted(dgm_code code, dgm_str text, const dgm_err *err, void *arg)
{
    struct search *s = arg;
    const dgm_turn_agent *agent = s->op->q.agent;
    if (code)
        dgm_responses_fail(s->op, err);
    else if (text.p)
        s->on_found(s->arg, NULL);
    else
        dgm_core_find_turn(s->op->core, s->op->q.owner, agent ? agent->id : (dgm_str){0},
                           DGM_STR(RESPONSES_PROTOCOL), s->id, responses_front_stored_on_turn, s);
}

void dgm_responses_find(struct responses_op *op, dgm_str id, responses_on_found on_found, void *arg)
{
    struct search *s = dgm_new(op->arena, struct search);
    *s = (struct search){op, id, on_found, arg};
    dgm_core_get_note(op->core, op->q.owner, DGM_STR(RESPONSES_DELETED), id, on_deleted, s);
}

/* The one that the path names; false: it was answered. */
static bool is_there(struct responses_op *op, const dgm_found_turn *found)
{
    if (found)
        return true;
    dgm_responses_fail_missing(op, "Response", op->id);
    return false;
}

/* ---- GET --------------------------------------------------------------------------------------------------------------- */

/* How many events are known: one more than the number of the last. */
static bool read_starting_after(struct responses_op *op, uint64_t *ret)
{
    dgm_str text = dgm_turn_query(op->x, "starting_after");
    uint64_t n = 0;
    *ret = 0;
    if (!text.p)
        return true;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9' || n > UINT32_MAX) {
            dgm_openai_fail_param(op->x, "invalid_value", "starting_after",
                                  "starting_after: expected the sequence_number of an event");
            return false;
        }
        n = n * 10 + (uint64_t)(text.p[i] - '0');
    }
    *ret = n + 1;
    return true;
}

static void retrieve(void *arg, const dgm_found_turn *found)
{
    struct responses_op *op = arg;
    uint64_t after;
    if (!is_there(op, found))
        return;
    struct responses_turn turn = dgm_responses_turn_of(op->arena, op->id, found);
    dgm_front_note_task(op->x, turn.task_id, found->turn);
    if (!dgm_str_is(dgm_turn_query(op->x, "stream"), "true"))
        dgm_responses_send_state(op, &turn, (dgm_str){0});
    else if (read_starting_after(op, &after))
        dgm_responses_stream(op, &turn, after, 0, (dgm_str){0});
}

void dgm_responses_retrieve(const dgm_front_request *q)
{
    struct responses_op *op = dgm_responses_new_op(q);
    dgm_responses_find(op, op->id, retrieve, op);
}

/* ---- input_items --------------------------------------------------------------------------------------------------------- */

void dgm_responses_send_page(struct responses_op *op, const dgm_responses_list *list,
                             dgm_turn_hold *hold)
{
    dgm_responses_page page = {0};
    dgm_err err = {0};
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_OUTPUT_BYTES);
    if (dgm_responses_read_page(dgm_turn_query(op->x, "limit"), dgm_turn_query(op->x, "order"),
                                dgm_turn_query(op->x, "after"), &page, &err) ||
        dgm_responses_put_page(&b, list, &page, &err)) {
        dgm_turn_release_hold(hold);
        dgm_responses_fail(op, &err);
    } else {
        dgm_turn_respond_held(op->x, DGM_STR("application/json"), NULL, 0, &b, hold);
    }
    dgm_buf_done(&b);
}

static void list_input(void *arg, const dgm_found_turn *found)
{
    struct responses_op *op = arg;
    if (!is_there(op, found))
        return;
    struct responses_turn turn = dgm_responses_turn_of(op->arena, op->id, found);
    dgm_responses_list list = {0};
    yyjson_val *item;
    size_t i, n;
    yyjson_arr_foreach (dgm_json_get(turn.request, DGM_STR("input")), i, n, item)
        dgm_responses_list_add(op->arena, &list, item);
    dgm_responses_send_page(op, &list, NULL);
}

void dgm_responses_input_items(const dgm_front_request *q)
{
    struct responses_op *op = dgm_responses_new_op(q);
    dgm_responses_find(op, op->id, list_input, op);
}

/* ---- DELETE ---------------------------------------------------------------------------------------------------------------- */

static void on_noted(dgm_code code, const dgm_err *err, void *arg)
{
    struct responses_op *op = arg;
    dgm_buf b;
    if (code) {
        dgm_responses_fail(op, err);
        return;
    }
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"id\":");
    dgm_json_put_str(&b, op->id);
    dgm_buf_add_lit(&b, ",\"object\":\"response\",\"deleted\":true}");
    dgm_responses_respond(op, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

static void delete_found(void *arg, const dgm_found_turn *found)
{
    struct responses_op *op = arg;
    dgm_note note = {.owner = op->q.owner,
                     .kind = DGM_STR(RESPONSES_DELETED),
                     .name = op->id,
                     .text = DGM_STR("{}")};
    if (is_there(op, found))
        dgm_core_put_note(op->core, &note, on_noted, op);
}

/* It cannot be found any more. Its task is shared with other responses: it stays. */
void dgm_responses_delete(const dgm_front_request *q)
{
    struct responses_op *op = dgm_responses_new_op(q);
    dgm_responses_find(op, op->id, delete_found, op);
}

/* ---- cancel ---------------------------------------------------------------------------------------------------------------- */

static void on_canceled(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    struct responses_op *op = arg;
    (void)snapshot;
    if (code && code != DGM_TASK_NOT_CANCELABLE) /* it has ended meanwhile */
        dgm_responses_fail(op, err);
    else
        dgm_responses_find(op, op->id, retrieve, op);
}

static void cancel_found(void *arg, const dgm_found_turn *found)
{
    struct responses_op *op = arg;
    if (!is_there(op, found))
        return;
    struct responses_turn turn = dgm_responses_turn_of(op->arena, op->id, found);
    if (!yyjson_is_true(dgm_json_get(turn.request, DGM_STR("background")))) {
        dgm_openai_fail_param(op->x, "invalid_value", "response_id",
                              "Only responses that were created with background=true can be "
                              "cancelled.");
        return;
    }
    if (found->last_seq) /* idempotent: the response as it ended */
        retrieve(op, found);
    else
        dgm_core_cancel(op->core, op->q.owner, found->agent, found->task_id, on_canceled, op);
}

void dgm_responses_cancel(const dgm_front_request *q)
{
    struct responses_op *op = dgm_responses_new_op(q);
    dgm_responses_find(op, op->id, cancel_found, op);
}
