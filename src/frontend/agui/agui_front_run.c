/*
 * frontend/agui/agui_front_run.c - a run: known, or new.
 *
 *   known by threadId and runId ──────► streamed again
 *   answers an interrupt that is open ► to the task that asked; a dismissal cancels it
 *   has a new message ────────────────► to the task that waits for it, or a new one (dgm_turn_ask)
 *   has nothing new ──────────────────► the state of the thread, again
 *
 * An interrupt is named after its task, from the task's second turn on with the turn's number appended. It is open as long as
 * the task waits in that turn: a second answer to it is ignored. There are at most DGM_MAX_RESUME_ENTRIES entries
 * (agui_front_input.c), so the header that lists the ignored ones is short.
 */
#include "frontend/agui/agui_front_int.h"

#include <ctype.h>

/* ---- interrupts ---------------------------------------------------------------------------------------------------- */

bool dgm_agui_split_interrupt(dgm_str id, dgm_str *ret_task, uint32_t *ret_turn)
{
    size_t at = id.n;
    uint32_t turn = 0;
    while (at && isdigit((unsigned char)id.p[at - 1]))
        at--;
    size_t digits = id.n - at;
    if (digits == 0 || digits > 9 || at < 2 || id.p[at - 1] != '-' || id.p[at] == '0')
        return false;
    for (size_t i = at; i < id.n; i++)
        turn = turn * 10 + (uint32_t)(id.p[i] - '0');
    *ret_task = (dgm_str){id.p, at - 1};
    *ret_turn = turn;
    return turn > 1;
}

static void agui_ignore_entry(struct agui_op *op, size_t i)
{
    op->ignored = dgm_arena_printf(op->arena, "%.*s%sresume[%zu]", DGM_P(op->ignored),
                                   op->ignored.n ? ", " : "", i);
}

static void next_entry(struct agui_op *op)
{
    agui_ignore_entry(op, op->resume_at++);
    dgm_agui_resolve(op);
}

/* Every turn begins with a message of the caller's. (A task that was read from the store does not say which it is in.) */
static uint32_t turn_of(const dgm_task *task)
{
    uint32_t turn = 0;
    for (size_t i = 0; i < task->history.n; i++)
        turn += task->history.at[i].role == DGM_ROLE_USER;
    return turn;
}

/* Does this task wait, in this turn and thread, for somebody to answer? */
static bool is_open(struct agui_op *op, const dgm_record *snapshot, uint32_t turn)
{
    dgm_auto(dgm_arena_free) dgm_arena *scratch = dgm_arena_new(); /* the task may be large */
    dgm_event event;
    return !dgm_record_event(snapshot, scratch, &event, NULL) && event.kind == DGM_EVENT_TASK &&
           dgm_state_is_interrupted(event.task->status.state) && turn_of(event.task) == turn &&
           dgm_str_eq(event.task->context_id, op->input.thread_id);
}

static void take_entry(struct agui_op *op, dgm_str task_id)
{
    dgm_canon_resume *entry = &op->input.resume.at[op->resume_at];
    for (size_t i = op->resume_at + 1; i < op->input.resume.n; i++)
        agui_ignore_entry(op, i);
    entry->payload = dgm_agui_plain_payload(entry->payload);
    op->input.resume = (dgm_canon_resumes){entry, 1};
    dgm_agui_go_on(op, task_id);
}

static void on_later_turn(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    struct agui_op *op = arg;
    dgm_str task = {0};
    uint32_t turn = 0;
    (void)err;
    dgm_agui_split_interrupt(op->input.resume.at[op->resume_at].interrupt_id, &task, &turn);
    if (code || !is_open(op, snapshot, turn))
        next_entry(op);
    else
        take_entry(op, task);
}

static void on_first_turn(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    struct agui_op *op = arg;
    dgm_str id = op->input.resume.at[op->resume_at].interrupt_id, task;
    uint32_t turn;
    (void)err;
    if (!code && is_open(op, snapshot, 1))
        take_entry(op, id);
    else if (code && dgm_agui_split_interrupt(id, &task, &turn))
        dgm_core_get(op->core, op->q.owner, op->agent->id, task, on_later_turn, op);
    else
        next_entry(op);
}

void dgm_agui_resolve(struct agui_op *op)
{
    if (op->resume_at < op->input.resume.n) {
        dgm_core_get(op->core, op->q.owner, op->agent->id,
                     op->input.resume.at[op->resume_at].interrupt_id, on_first_turn, op);
        return;
    }
    op->input.resume = (dgm_canon_resumes){0};
    dgm_agui_go_on(op, (dgm_str){0});
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
    dgm_turn_output output = dgm_agui_turn_output(op);
    output.messages = op->input.messages;
    output.task_id = sent->task_id;
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
                   .caller_id = op->caller_id};
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
    else if (op->input.resume.at[0].status == DGM_CANON_DISMISSED)
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
