/* core/run_fill.c - what agents leave to us: ids, times, marks; and what they must not set: the server's metadata. */
#include "core/core_int.h"

#include "base/ids.h"

/* Ids of a message that an agent sends. Shallow: what it points to is only read. */
static dgm_message *fill_message(struct run *r, const dgm_message *m, bool in_task)
{
    if (!m)
        return NULL;
    dgm_message *filled = dgm_new(r->scratch, dgm_message);
    *filled = *m;
    if (!filled->message_id.n)
        filled->message_id = dgm_uuid7_in(r->scratch);
    filled->context_id = r->input.context_id;
    filled->task_id = in_task ? r->input.task_id : (dgm_str){0};
    if (filled->role == DGM_ROLE_UNSPECIFIED)
        filled->role = DGM_ROLE_AGENT;
    dgm_guard_message(&r->guard, r->scratch, filled, 0);
    return filled;
}

static void fill_status(struct run *r, dgm_status *s)
{
    s->message = fill_message(r, s->message, true);
    /* While it works, what it says is progress unless the agent itself marks it as its answer: a
     * stamp of ours would make it that. */
    if (s->message && s->state != DGM_STATE_WORKING && s->state != DGM_STATE_SUBMITTED)
        dgm_message_stamp(r->scratch, s->message);
    if (!s->timestamp.n)
        s->timestamp = dgm_time_text(r->scratch, dgm_loop_unix_ms());
}

/* Every failure says why, in metadata.error: in the agent's words if it has any. */
static const dgm_json *with_error(struct run *r, const dgm_status *s, const dgm_json *metadata)
{
    dgm_str why = DGM_STR("the agent failed and did not say why");
    if (s->state != DGM_STATE_FAILED || dgm_metadata_error(metadata).n)
        return metadata;
    for (size_t i = 0; s->message && i < s->message->parts.n; i++) {
        const dgm_part *part = &s->message->parts.at[i];
        if (part->kind == DGM_PART_TEXT && part->content.n) {
            why = part->content;
            break;
        }
    }
    return dgm_metadata_with_error(r->scratch, metadata, why);
}

static dgm_task *fill_task(struct run *r, const dgm_task *from)
{
    dgm_task *t = dgm_new(r->scratch, dgm_task);
    *t = *from;
    t->id = r->input.task_id;
    t->context_id = r->input.context_id;
    fill_status(r, &t->status);
    dgm_guard_task(&r->guard, r->scratch, t);
    t->metadata = with_error(r, &t->status, t->metadata);
    return t;
}

static dgm_status_update *fill_status_update(struct run *r, const dgm_status_update *from)
{
    dgm_status_update *u = dgm_new(r->scratch, dgm_status_update);
    *u = *from;
    u->task_id = r->input.task_id;
    u->context_id = r->input.context_id;
    fill_status(r, &u->status);
    u->metadata = dgm_guard_event_metadata(&r->guard, r->scratch, u->metadata);
    u->metadata = with_error(r, &u->status, u->metadata);
    return u;
}

static dgm_artifact_update *fill_artifact_update(struct run *r, const dgm_artifact_update *from)
{
    dgm_artifact_update *u = dgm_new(r->scratch, dgm_artifact_update);
    *u = *from;
    u->task_id = r->input.task_id;
    u->context_id = r->input.context_id;
    if (!u->artifact.artifact_id.n)
        u->artifact.artifact_id = dgm_uuid7_in(r->scratch);
    dgm_guard_artifact(&r->guard, r->scratch, &u->artifact);
    u->metadata = dgm_guard_event_metadata(&r->guard, r->scratch, u->metadata);
    return u;
}

static dgm_internal *fill_internal(struct run *r, const dgm_internal *from)
{
    dgm_internal *i = dgm_new(r->scratch, dgm_internal);
    *i = *from;
    i->task_id = r->input.task_id;
    i->message = fill_message(r, i->message, true);
    if (!i->timestamp.n)
        i->timestamp = dgm_time_text(r->scratch, dgm_loop_unix_ms());
    return i;
}

/* The event as it goes into the log: our ids whatever the agent wrote there. */
dgm_event run_fill(struct run *r, const dgm_event *e)
{
    dgm_event filled = {.kind = e->kind};
    switch (e->kind) {
    case DGM_EVENT_TASK: filled.task = fill_task(r, e->task); break;
    case DGM_EVENT_STATUS: filled.status = fill_status_update(r, e->status); break;
    case DGM_EVENT_ARTIFACT: filled.artifact = fill_artifact_update(r, e->artifact); break;
    case DGM_EVENT_INTERNAL: filled.internal = fill_internal(r, e->internal); break;
    case DGM_EVENT_MESSAGE:
        filled.message = fill_message(r, e->message, r->live || r->send->as_task);
        dgm_message_stamp(r->scratch, filled.message);
        break;
    case DGM_EVENT_NONE: break;
    }
    return filled;
}
