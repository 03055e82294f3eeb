/*
 * frontend/agui/agui_front_resume.c - which of the interrupts that a request names are open.
 *
 * An interrupt is called as its task, from the task's second turn on with the turn's number behind it. It is open as long as
 * the task waits in that turn: an answer that comes twice finds nobody who waits for it the second time. There are at most
 * DGM_MAX_RESUME_ENTRIES entries (agui_front_input.c), so the header that lists the ignored ones is short.
 */
#include "frontend/agui/agui_front_int.h"

#include <ctype.h>

bool agui_split_interrupt(dgm_str id, dgm_str *ret_task, uint32_t *ret_turn)
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
    agui_resolve(op);
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
    entry->payload = agui_plain_payload(entry->payload);
    op->input.resume = (dgm_canon_resumes){entry, 1};
    agui_go_on(op, task_id);
}

static void on_later_turn(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    struct agui_op *op = arg;
    dgm_str task = {0};
    uint32_t turn = 0;
    (void)err;
    agui_split_interrupt(op->input.resume.at[op->resume_at].interrupt_id, &task, &turn);
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
    else if (code && agui_split_interrupt(id, &task, &turn))
        dgm_core_get(op->core, op->q.owner, op->agent->id, task, on_later_turn, op);
    else
        next_entry(op);
}

void agui_resolve(struct agui_op *op)
{
    if (op->resume_at < op->input.resume.n) {
        dgm_core_get(op->core, op->q.owner, op->agent->id,
                     op->input.resume.at[op->resume_at].interrupt_id, on_first_turn, op);
        return;
    }
    op->input.resume = (dgm_canon_resumes){0};
    agui_go_on(op, (dgm_str){0});
}
