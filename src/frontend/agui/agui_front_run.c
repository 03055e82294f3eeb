/*
 * frontend/agui/agui_front_run.c - a run: known, or new.
 *
 *   known by threadId and runId ──────► streamed again
 *   answers an interrupt that is open ► to the task that asked; a dismissal cancels it
 *   has a new message ────────────────► to the task that waits for it, or a new one (dgm_turn_ask)
 *   has nothing new ──────────────────► the state of the thread, again
 *
 * turn_resume.c finds the task that an answer is for.
 */
#include "frontend/agui/agui_front_int.h"

/* ---- interrupts ---------------------------------------------------------------------------------------------------- */

static void agui_on_resolved(void *arg)
{
    struct agui_op *op = arg;
    dgm_turn_resolving *r = &op->resolving;
    for (size_t i = 0; i < r->resume.n; i++)
        r->resume.at[i].payload = dgm_agui_plain_payload(r->resume.at[i].payload);
    op->input.resume = r->resume;
    op->ignored = r->ignored;
    dgm_agui_go_on(op, r->task_id);
}

void dgm_agui_resolve(struct agui_op *op)
{
    op->resolving = (dgm_turn_resolving){.arena = op->arena,
                                         .core = op->core,
                                         .owner = op->q.owner,
                                         .agent = op->agent->id,
                                         .context_id = op->input.thread_id,
                                         .resume = op->input.resume,
                                         .on_resolved = agui_on_resolved,
                                         .arg = op};
    dgm_turn_resolve(&op->resolving);
}

/* ---- sending ------------------------------------------------------------------------------------------------------------- */

static const dgm_json *metadata_of(const struct agui_op *op)
{
    dgm_member member = {DGM_STR(DGM_META_FORWARDED_PROPS), op->input.forwarded_props};
    yyjson_val *props = (yyjson_val *)(uintptr_t)op->input.forwarded_props;
    bool empty = !props || (yyjson_is_obj(props) && !yyjson_obj_size(props));
    return empty ? NULL : dgm_json_object(op->arena, &member, 1);
}

static void agui_front_run_on_sent(dgm_code code, const dgm_sent *sent, const dgm_err *err,
                                   void *arg)
{
    struct agui_op *op = arg;
    if (code) {
        dgm_agui_fail(op, err);
        return;
    }
    dgm_agui_begun(op);
    op->task_id = dgm_arena_dup(op->arena, sent->task_id);
    op->turn = sent->turn;
    dgm_turn_output output = dgm_agui_turn_output(op);
    output.messages = op->input.messages;
    output.task_id = sent->task_id;
    if (!dgm_agui_continues(dgm_http_request_of(op->x)))
        output.leave = op->q.turns->o.leave[DGM_LEAVE_AGUI];
    output.turn = sent->turn;
    dgm_agui_follow(op, &output);
    dgm_front_note_task(op->x, sent->task_id, sent->turn);
    dgm_turn_stream(op->x, &output, sent->log, sent->first_seq);
}

void dgm_agui_send(struct agui_op *op, dgm_str task_id)
{
    dgm_ask ask = {.x = op->x,
                   .turns = op->q.turns,
                   .owner = op->q.owner,
                   .agent = op->agent,
                   .input = &op->input,
                   .context_id = op->input.thread_id,
                   .task_id = task_id,
                   .replace_on_difference = true,
                   .calls_of_context = true,
                   .metadata = metadata_of(op),
                   .protocol = DGM_STR(AGUI_PROTOCOL),
                   .caller_id = op->caller_id,
                   .request = dgm_agui_note_text(op)};
    dgm_turn_ask(&ask, agui_front_run_on_sent, op);
}

/* ---- what it is about ------------------------------------------------------------------------------------------------------- */

static void go_on_without(struct agui_op *op)
{
    if (dgm_agui_has_news(&op->input.messages))
        dgm_agui_send(op, (dgm_str){0});
    else
        dgm_agui_stand(op);
}

/* A client of before 1.0 would take `cancelled` for an error, and the interrupt for open still. */
static void on_canceled(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    struct agui_op *op = arg;
    (void)snapshot;
    bool is_over = !code || code == DGM_TASK_NOT_CANCELABLE;
    op->input.resume = (dgm_canon_resumes){0};
    if (!is_over)
        dgm_agui_fail(op, err);
    else if (dgm_agui_has_news(&op->input.messages))
        dgm_agui_send(op, (dgm_str){0});
    else
        dgm_agui_answer(op, NULL,
                        (dgm_canon_outcome){.kind = op->old_peer ? DGM_CANON_OUTCOME_NONE
                                                                 : DGM_CANON_CANCELLED});
}

void dgm_agui_go_on(struct agui_op *op, dgm_str task_id)
{
    if (!task_id.n)
        go_on_without(op);
    else if (op->resolving.is_dismissed)
        dgm_core_cancel(op->core, op->q.owner, op->agent->id, task_id, on_canceled, op);
    else
        dgm_agui_send(op, task_id);
}

/* Ids of threads may hold a slash, so the name alone does not tell whose run it is. */
static void on_found(dgm_code code, const dgm_found_turn *turn, const dgm_err *err, void *arg)
{
    struct agui_op *op = arg;
    if (code && code != DGM_TASK_NOT_FOUND)
        dgm_agui_fail(op, err);
    else if (!code && dgm_str_eq(turn->context_id, op->input.thread_id))
        dgm_agui_attach(op, turn);
    else
        dgm_agui_resolve(op);
}

static void look_for_it(void *arg)
{
    struct agui_op *op = arg;
    dgm_core_find_turn(op->core, op->q.owner, op->agent->id, DGM_STR(AGUI_PROTOCOL), op->caller_id,
                       on_found, op);
}

void dgm_agui_begun(struct agui_op *op)
{
    if (op->is_beginning)
        dgm_turn_begun(op->q.turns, &op->once);
    op->is_beginning = false;
}

void dgm_agui_run(struct agui_op *op)
{
    dgm_str name =
        dgm_arena_printf(op->arena, "%.*s\n%.*s\n%.*s\n%.*s", DGM_P(op->q.owner.tenant),
                         DGM_P(op->q.owner.principal), DGM_P(op->agent->id), DGM_P(op->caller_id));
    op->once = (dgm_turn_once){.name = name, .go_on = look_for_it, .arg = op};
    op->is_beginning = true;
    if (dgm_turn_begin(op->q.turns, &op->once))
        look_for_it(op);
}
