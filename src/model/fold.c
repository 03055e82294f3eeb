/*
 * model/fold.c - the rules by which events add up to a Task.
 *
 * Every add checks first and changes afterwards: a refused event leaves no trace.
 */
#include "model/fold.h"
#include "base/limits.h"
#include "model/fold_int.h"
#include "model/form.h"
#include "model/stamp.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- what few Tasks need ------------------------------------------------------------------------------- */

static const struct rare no_rare;

struct rare *dgm_fold_rare(dgm_fold *f)
{
    if (f->rare == &no_rare)
        f->rare = dgm_xcalloc(1, sizeof *f->rare);
    return (struct rare *)(uintptr_t)f->rare;
}

static void free_rare(dgm_fold *f)
{
    if (f->rare == &no_rare)
        return;
    struct rare *x = dgm_fold_rare(f);
    dgm_map_done(&x->messages);
    free(x->stale);
    free(x->passed);
    free(x->warning);
    free(x);
}

/* ---- faults ----------------------------------------------------------------------------------------- */

void dgm_fold_warn(dgm_fold *f, const dgm_at *at, const char *text)
{
    struct rare *x = dgm_fold_rare(f);
    x->n_warnings++;
    if (!x->warning)
        x->warning = dgm_xcalloc(1, sizeof *x->warning);
    dgm_fail(x->warning, DGM_INVALID_AGENT_RESPONSE, at, "%s", text);
}

/* A fault of the agent: an error, or of a foreign agent a warning. */
static dgm_code fault(dgm_fold *f, dgm_author author, dgm_err *err, const dgm_at *at,
                      const char *text)
{
    if (!f->foreign || author == DGM_BY_SERVER)
        return dgm_fail(err, DGM_INVALID_AGENT_RESPONSE, at, "%s", text);
    dgm_fold_warn(f, at, text);
    return DGM_OK;
}

static dgm_code check_room(size_t have, size_t more, const dgm_at *at, dgm_err *err)
{
    if (have + more > DGM_MAX_LIST_ITEMS)
        return dgm_fail(err, DGM_TOO_LARGE, at,
                        "makes %zu entries, more than the limit list_items of %d", have + more,
                        DGM_MAX_LIST_ITEMS);
    return DGM_OK;
}

/* All events of a task carry its ids; an empty id is not compared. task_key: the member that has the task's id. */
static dgm_code check_ids(dgm_fold *f, dgm_author author, dgm_str task_id, dgm_str context_id,
                          const dgm_at *at, dgm_str task_key, dgm_err *err)
{
    const dgm_str ours[] = {f->task.id, f->task.context_id}, theirs[] = {task_id, context_id};
    const dgm_str keys[] = {task_key, DGM_STR("contextId")};
    dgm_code rc = DGM_OK;
    char text[300];
    for (int i = 0; i < 2 && !rc && f->has_task; i++) {
        if (!ours[i].n || !theirs[i].n || dgm_str_eq(ours[i], theirs[i]))
            continue;
        snprintf(text, sizeof text,
                 "\"%.*s\" in the log of \"%.*s\": all events of a task carry the same",
                 (int)(theirs[i].n < 100 ? theirs[i].n : 100), theirs[i].p,
                 (int)(ours[i].n < 100 ? ours[i].n : 100), ours[i].p);
        rc = fault(f, author, err, DGM_AT(at, keys[i]), text);
    }
    return rc;
}

static dgm_code frozen(dgm_fold *f, dgm_author author, const dgm_at *at, dgm_err *err)
{
    char text[100];
    snprintf(text, sizeof text, "nothing may follow %s",
             dgm_form_states.names[f->task.status.state]);
    return fault(f, author, err, at, text);
}

/* ---- events ------------------------------------------------------------------------------------------------ */

static bool is_transitory(const dgm_fold *f, dgm_str id)
{
    return !f->keep_transitory && dgm_str_is(id, DGM_STREAM_DELTA_ID);
}

static const char no_task[] = "the first event of a task is the task itself";

static dgm_code check_state(dgm_fold *f, dgm_author author, dgm_task_state to, const dgm_at *status,
                            bool *ret_legal, dgm_err *err)
{
    char text[120];
    dgm_task_state from = f->task.status.state;
    *ret_legal = !f->has_task || dgm_state_may_become(from, to);
    if (*ret_legal)
        return DGM_OK;
    snprintf(text, sizeof text, "%s may not follow %s", dgm_form_states.names[to],
             dgm_form_states.names[from]);
    return fault(f, author, err, DGM_AT_LIT(status, "state"), text);
}

static dgm_code add_status(dgm_fold *f, const dgm_status_update *u, dgm_author author, dgm_err *err)
{
    const dgm_at *at = DGM_AT_LIT(NULL, "statusUpdate");
    bool legal;
    dgm_code rc;
    if ((!f->has_task && (rc = fault(f, author, err, at, no_task))) ||
        (rc = check_ids(f, author, u->task_id, u->context_id, at, DGM_STR("taskId"), err)) ||
        (rc = check_state(f, author, u->status.state, DGM_AT_LIT(at, "status"), &legal, err)) ||
        !legal || (rc = check_room(f->task.history.n, f->task.status.message != NULL, at, err)))
        return rc;
    dgm_fold_learn_ids(f, u->task_id, u->context_id);
    dgm_fold_set_status(f, &u->status);
    if (u->metadata)
        dgm_fold_merge(f, &f->metadata, u->metadata,
                       author == DGM_BY_SERVER ? NULL : DGM_AT_LIT(at, "metadata"));
    return DGM_OK;
}

static dgm_code add_artifact(dgm_fold *f, const dgm_artifact_update *u, dgm_author author,
                             dgm_err *err)
{
    const dgm_at *at = DGM_AT_LIT(NULL, "artifactUpdate");
    const dgm_at *artifact_at = DGM_AT_LIT(at, "artifact");
    dgm_code rc;
    if ((!f->has_task && (rc = fault(f, author, err, at, no_task))) ||
        (rc = check_ids(f, author, u->task_id, u->context_id, at, DGM_STR("taskId"), err)))
        return rc;
    if (dgm_state_is_terminal(f->task.status.state))
        return frozen(f, author, at, err);
    bool transitory = is_transitory(f, u->artifact.artifact_id);
    size_t *found = transitory ? NULL : dgm_map_get(&f->artifacts, u->artifact.artifact_id);
    size_t i = found ? *found : f->task.artifacts.n;
    const dgm_artifact *x = found ? &f->task.artifacts.at[i] : NULL;
    bool known = transitory ? f->delta.open : found != NULL;
    bool sealed = transitory ? f->delta.sealed : found && f->slots[i].sealed;
    /* limits first: no warning is reported for an event that is refused */
    bool adds = x && (u->append == DGM_TRUE || !u->artifact.parts.n);
    if (!transitory && ((rc = check_room(i, 1, artifact_at, err)) ||
                        (rc = check_room(adds ? x->parts.n : 0, u->artifact.parts.n,
                                         DGM_AT_LIT(artifact_at, "parts"), err)) ||
                        (rc = check_room(adds ? x->extensions.n : 0, u->artifact.extensions.n,
                                         DGM_AT_LIT(artifact_at, "extensions"), err))))
        return rc;
    /* What the event means for the artifact: does it continue the parts that are there? */
    const dgm_at *id_at = DGM_AT_LIT(artifact_at, "artifactId");
    bool append = u->append == DGM_TRUE;
    if (append && !known &&
        (rc = fault(f, author, err, id_at,
                    "appends to an artifact that is not there: its first chunk has append:false")))
        return rc;
    if (known && sealed)
        dgm_fold_warn(f, id_at, "an update after the artifact's last chunk");
    if (known && !append && !u->artifact.parts.n) {
        dgm_fold_warn(f, DGM_AT_LIT(artifact_at, "parts"),
                      "replaces an artifact by nothing: taken as an addition to it");
        append = true;
    }
    dgm_fold_learn_ids(f, u->task_id, u->context_id);
    bool is_last = u->last_chunk == DGM_TRUE;
    if (transitory) {
        f->delta.open = true;
        f->delta.sealed = is_last;
        return DGM_OK;
    }
    if (!known)
        i = dgm_fold_open_artifact(f, u->artifact.artifact_id);
    else if (!append)
        dgm_fold_clear_artifact(f, i);
    dgm_fold_add_to_artifact(f, i, &u->artifact);
    f->slots[i].sealed = is_last;
    return DGM_OK;
}

static dgm_code fold_add_message(dgm_fold *f, const dgm_message *m, dgm_author author,
                                 const dgm_at *at, dgm_err *err)
{
    dgm_code rc = check_ids(f, author, m->task_id, m->context_id, at, DGM_STR("taskId"), err);
    if (rc)
        return rc;
    if (dgm_state_is_terminal(f->task.status.state))
        return frozen(f, author, at, err);
    if ((rc = check_room(f->task.history.n, 1 + (f->task.status.message != NULL), at, err)))
        return rc;
    if (f->task.status.message)
        dgm_fold_retire_status_message(f);
    dgm_fold_add_message(f, m);
    return DGM_OK;
}

static dgm_code add_internal(dgm_fold *f, const dgm_internal *e, dgm_author author, dgm_err *err)
{
    dgm_code rc = check_ids(f, author, e->task_id, (dgm_str){0}, NULL, DGM_STR("taskId"), err);
    if (rc || e->kind != DGM_INTERNAL_MESSAGE || !e->message)
        return rc;
    return fold_add_message(f, e->message, author, DGM_AT_LIT(NULL, "message"), err);
}

static bool has_message(dgm_messages list, dgm_str id)
{
    for (size_t i = 0; i < list.n; i++) {
        if (dgm_str_eq(list.at[i].message_id, id))
            return true;
    }
    return false;
}

/* A snapshot follows the message of the status. */
static void settle_status_message(dgm_fold *f, const dgm_task *t)
{
    const dgm_message *old = f->task.status.message, *new = t->status.message;
    if (dgm_state_is_terminal(f->task.status.state) && !new)
        return; /* the last word of a task that ended: a snapshot without it changes nothing */
    /* If the snapshot has it in its history it goes there with it, else before what is new. */
    if (dgm_status_content_of(f->task.status.state, old) != DGM_STATUS_PASSING &&
        has_message(t->history, old->message_id))
        dgm_fold_drop_status_message(f);
    else if (!new || !dgm_str_eq(new->message_id, old->message_id))
        dgm_fold_retire_status_message(f);
}

static dgm_code add_task(dgm_fold *f, const dgm_task *t, dgm_author author, dgm_err *err)
{
    const dgm_at *at = DGM_AT_LIT(NULL, "task"), *parts_at = DGM_AT_LIT(at, "artifacts");
    bool legal = true;
    dgm_code rc;
    if ((rc = check_ids(f, author, t->id, t->context_id, at, DGM_STR("id"), err)))
        return rc;
    if ((!f->has_task || t->status.state != f->task.status.state) &&
        (rc = check_state(f, author, t->status.state, DGM_AT_LIT(at, "status"), &legal, err)))
        return rc;
    if (!legal && dgm_state_is_terminal(f->task.status.state))
        return DGM_OK; /* a warning was given */
    if ((rc = check_room(f->task.history.n, t->history.n + 1, DGM_AT_LIT(at, "history"), err)) ||
        (rc = check_room(f->task.artifacts.n, t->artifacts.n, parts_at, err)))
        return rc;
    for (size_t i = 0; i < t->artifacts.n; i++) {
        const dgm_at *x = DGM_AT_I(parts_at, i);
        if ((rc = check_room(0, t->artifacts.at[i].parts.n, DGM_AT_LIT(x, "parts"), err)) ||
            (rc = check_room(0, t->artifacts.at[i].extensions.n, DGM_AT_LIT(x, "extensions"), err)))
            return rc;
    }
    dgm_fold_learn_ids(f, t->id, t->context_id);
    if (legal && f->task.status.message)
        settle_status_message(f, t);
    /* Messages whose id we have are those we have: a snapshot's history is the same conversation. */
    for (size_t i = 0, before = f->task.history.n; i < t->history.n; i++) {
        const dgm_message *m = &t->history.at[i];
        if ((!before || dgm_fold_find_message(f, m->message_id) >= before) &&
            !(f->rare->n_passed && dgm_fold_has_passed(f, m)))
            dgm_fold_add_message(f, m);
    }
    if (legal)
        dgm_fold_set_status(f, &t->status);
    if (t->metadata)
        dgm_fold_merge(f, &f->metadata, t->metadata,
                       author == DGM_BY_SERVER ? NULL : DGM_AT_LIT(at, "metadata"));
    for (size_t i = 0; i < t->artifacts.n; i++) {
        const dgm_artifact *from = &t->artifacts.at[i];
        if (is_transitory(f, from->artifact_id)) {
            f->delta.open = true;
            continue;
        }
        size_t *found = dgm_map_get(&f->artifacts, from->artifact_id);
        size_t to = found ? *found : dgm_fold_open_artifact(f, from->artifact_id);
        dgm_fold_clear_artifact(f, to);
        dgm_fold_add_to_artifact(f, to, from);
    }
    if (t->extra)
        dgm_fold_set_extra(f, t->extra);
    return DGM_OK;
}

/* ---- from outside ---------------------------------------------------------------------------------------------- */

dgm_fold *dgm_fold_new(dgm_fold_options options)
{
    dgm_fold *f = dgm_xcalloc(1, sizeof *f);
    f->foreign = options.foreign;
    f->keep_transitory = options.keep_transitory;
    f->task.id = options.task_id;
    f->task.context_id = options.context_id;
    f->has_lent_id = f->has_lent_context = options.task_id.n > 0;
    f->arena = dgm_arena_new_small(DGM_FOLD_FIRST_BYTES);
    f->rare = &no_rare;
    return f;
}

void dgm_fold_free(dgm_fold *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->task.artifacts.n; i++) {
        free(f->task.artifacts.at[i].parts.at);
        free(f->task.artifacts.at[i].extensions.at);
        dgm_fold_free_members(f->slots[i].metadata);
        dgm_map_done(&f->slots[i].extensions);
    }
    free(f->task.artifacts.at);
    free(f->slots);
    free(f->task.history.at);
    free_rare(f);
    dgm_fold_free_members(f->metadata);
    dgm_map_done(&f->artifacts);
    dgm_arena_free(f->arena);
    free(f);
}

dgm_code dgm_fold_add(dgm_fold *f, const dgm_event *event, dgm_author author, dgm_err *err)
{
    size_t before = dgm_arena_used(f->arena);
    dgm_code rc = DGM_OK;
    f->grown = 0;
    switch (event->kind) {
    case DGM_EVENT_TASK: rc = add_task(f, event->task, author, err); break;
    case DGM_EVENT_MESSAGE:
        rc = fold_add_message(f, event->message, author, DGM_AT_LIT(NULL, "message"), err);
        break;
    case DGM_EVENT_STATUS: rc = add_status(f, event->status, author, err); break;
    case DGM_EVENT_ARTIFACT: rc = add_artifact(f, event->artifact, author, err); break;
    case DGM_EVENT_INTERNAL: rc = add_internal(f, event->internal, author, err); break;
    case DGM_EVENT_NONE: rc = fault(f, author, err, NULL, "an event without content"); break;
    }
    f->cost.copied += dgm_arena_used(f->arena) - before - f->grown;
    if (f->garbage >= DGM_FOLD_GARBAGE_FLOOR)
        dgm_fold_tidy(f);
    return rc;
}

dgm_task_state dgm_fold_state(const dgm_fold *f)
{
    return f->task.status.state;
}

const dgm_message *dgm_fold_message(const dgm_fold *f, dgm_str message_id)
{
    size_t i = dgm_fold_find_message(f, message_id);
    return i < f->task.history.n ? &f->task.history.at[i] : NULL;
}

dgm_fold_artifact dgm_fold_artifact_of(const dgm_fold *f, dgm_str artifact_id)
{
    size_t *i = dgm_map_get(&f->artifacts, artifact_id);
    bool transitory = is_transitory(f, artifact_id);
    if (transitory ? !f->delta.open : !i)
        return DGM_ARTIFACT_NEW;
    return (transitory ? f->delta.sealed : f->slots[*i].sealed) ? DGM_ARTIFACT_SEALED
                                                                : DGM_ARTIFACT_OPEN;
}

size_t dgm_fold_n_warnings(const dgm_fold *f)
{
    return f->rare->n_warnings;
}

const dgm_err *dgm_fold_warning(const dgm_fold *f)
{
    static const dgm_err none = {0};
    return f->rare->warning ? f->rare->warning : &none;
}

dgm_fold_cost dgm_fold_cost_of(const dgm_fold *f)
{
    return f->cost;
}
