/*
 * frontend/turn/turn_resume.c - the task that answers to interrupts are for, and what they decide.
 *
 *   entry ─► its name is a task in its first turn ─────┐
 *         └► "<task>-<turn>" ───────────────────────────┴─► does it wait in that turn? Then the entry answers its question,
 *                                                           or with ".<number>" one of its requests for approval
 *
 * All entries that are taken answer the same question: that of the first entry whose question is open.
 */
#include "canon/interrupts.h"
#include "frontend/turn/turn_int.h"
#include "json/json.h"

#define MAX_LISTED 16 /* entries in a header */

static dgm_canon_resume *resolving_entry(const dgm_turn_resolving *r)
{
    return &r->resume.at[r->at];
}

static void resolving_ignore(dgm_turn_resolving *r)
{
    if (r->n_ignored++ < MAX_LISTED)
        r->ignored = dgm_arena_printf(r->arena, "%.*s%sresume[%zu]", DGM_P(r->ignored),
                                      r->ignored.n ? ", " : "", r->at);
    r->at++;
}

/* The decision becomes the data of an answer. False: it was decided before, or there is no such request. */
static bool resolving_decide(dgm_turn_resolving *r, dgm_canon_resume *entry, size_t number)
{
    dgm_approval approval = dgm_approval_of_resume(entry);
    size_t index = number ? number - 1 : 0;
    bool for_all = !number && r->requests.n > 1;
    if (index >= r->requests.n || r->decided[index])
        return false;
    for (size_t i = 0; i < r->requests.n; i++)
        r->decided[i] |= for_all || i == index;
    approval.id = for_all ? (dgm_str){0} : r->requests.at[index];
    entry->status = DGM_CANON_RESOLVED;
    if (approval.decision) /* else the agent asks again */
        entry->payload = dgm_approval_data(r->arena, &approval);
    return true;
}

/* An entry for the open question. */
static void resolving_take(dgm_turn_resolving *r, size_t number)
{
    dgm_canon_resume *entry = resolving_entry(r);
    bool is_first = r->n == 0;
    if (r->requests.n ? !resolving_decide(r, entry, number) : number || !is_first) {
        resolving_ignore(r);
        return;
    }
    if (!r->requests.n)
        r->is_dismissed = entry->status == DGM_CANON_DISMISSED;
    r->resume.at[r->n++] = *entry;
    r->at++;
}

/* Every turn begins with a message of the caller's. (A task that was read from the store does not say which it is in.) */
static uint32_t resolving_turn_of(const dgm_task *task)
{
    uint32_t turn = 0;
    for (size_t i = 0; i < task->history.n; i++)
        turn += task->history.at[i].role == DGM_ROLE_USER;
    return turn;
}

static void resolving_open(dgm_turn_resolving *r, const dgm_task *task, dgm_str name)
{
    dgm_approval_requests requests = dgm_message_approval_requests(r->arena, task->status.message);
    r->name = name;
    r->task_id = dgm_arena_dup(r->arena, task->id);
    r->task_context = dgm_arena_dup(r->arena, task->context_id);
    r->requests = (dgm_strs){dgm_new_n(r->arena, dgm_str, requests.n + 1), requests.n};
    r->decided = dgm_new_n(r->arena, bool, requests.n + 1);
    for (size_t i = 0; i < requests.n; i++)
        r->requests.at[i] = dgm_arena_dup(r->arena, requests.at[i].id);
}

/* Does this task wait, in this turn and context, for somebody to answer? Then its question is open. */
static bool resolving_is_open(dgm_turn_resolving *r, const dgm_record *snapshot, uint32_t turn,
                              dgm_str name)
{
    dgm_auto(dgm_arena_free) dgm_arena *scratch = dgm_arena_new(); /* the task may be large */
    dgm_event event;
    if (dgm_record_event(snapshot, scratch, &event, NULL) || event.kind != DGM_EVENT_TASK ||
        !dgm_state_is_interrupted(event.task->status.state) ||
        resolving_turn_of(event.task) != turn ||
        (r->context_id.n && !dgm_str_eq(event.task->context_id, r->context_id)))
        return false;
    resolving_open(r, event.task, name);
    return true;
}

static void resolving_on_later_turn(dgm_code code, dgm_record *snapshot, const dgm_err *err,
                                    void *arg)
{
    dgm_turn_resolving *r = arg;
    dgm_interrupt_place place = dgm_interrupt_place_of(resolving_entry(r)->interrupt_id);
    (void)err;
    if (code || !resolving_is_open(r, snapshot, place.turn, place.id))
        resolving_ignore(r);
    dgm_turn_resolve(r);
}

static void resolving_on_first_turn(dgm_code code, dgm_record *snapshot, const dgm_err *err,
                                    void *arg)
{
    dgm_turn_resolving *r = arg;
    dgm_interrupt_place place = dgm_interrupt_place_of(resolving_entry(r)->interrupt_id);
    (void)err;
    if (code && place.task_id.n) {
        dgm_core_get(r->core, r->owner, r->agent, place.task_id, resolving_on_later_turn, r);
        return;
    }
    if (code || !resolving_is_open(r, snapshot, 1, place.id))
        resolving_ignore(r);
    dgm_turn_resolve(r);
}

void dgm_turn_resolve(dgm_turn_resolving *r)
{
    while (r->at < r->resume.n) {
        dgm_interrupt_place place = dgm_interrupt_place_of(resolving_entry(r)->interrupt_id);
        if (r->name.n && dgm_str_eq(r->name, place.id)) {
            resolving_take(r, place.number);
        } else if (r->name.n || r->n_reads == DGM_MAX_RESUME_READS || !place.id.n) {
            resolving_ignore(r);
        } else {
            r->n_reads++;
            dgm_core_get(r->core, r->owner, r->agent, place.id, resolving_on_first_turn, r);
            return;
        }
    }
    r->resume.n = r->n;
    if (!r->n)
        r->task_id = r->task_context = (dgm_str){0};
    r->on_resolved(r->arg);
}
