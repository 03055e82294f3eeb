/* backend/exec/exec_events.c - what a run of a program has emitted, and the status that ends it. */
#include "backend/exec/exec_int.h"

struct exec_text {
    struct exec_text *next;
    dgm_str id;
    bool open;
};

void dgm_exec_events_init(struct exec_events *e, dgm_run *run, uint64_t salt)
{
    e->run = run;
    /* ids of messages that have none: other ones in every run */
    e->mint.seed[0] = dgm_hash(1, run->input->task_id.p, run->input->task_id.n);
    e->mint.seed[1] = uv_hrtime() ^ salt;
}

static struct exec_text *events_add_text(struct exec_events *e, dgm_str id)
{
    struct exec_text *t = dgm_new(e->run->arena, struct exec_text);
    *t = (struct exec_text){.next = e->texts, .id = dgm_arena_dup(e->run->arena, id), .open = true};
    e->texts = t;
    return t;
}

void dgm_exec_events_open_text(struct exec_events *e, dgm_str artifact_id)
{
    events_add_text(e, artifact_id);
    e->state = DGM_STATE_WORKING;
}

static void events_watch_text(struct exec_events *e, const dgm_artifact_update *u)
{
    struct exec_text *t = e->texts;
    bool text = u->artifact.parts.n > 0;
    for (size_t i = 0; i < u->artifact.parts.n; i++)
        text = text && u->artifact.parts.at[i].kind == DGM_PART_TEXT;
    while (t && !dgm_str_eq(t->id, u->artifact.artifact_id))
        t = t->next;
    if (!t && text && u->last_chunk != DGM_TRUE)
        t = events_add_text(e, u->artifact.artifact_id);
    if (t)
        t->open = text && u->last_chunk != DGM_TRUE;
}

void dgm_exec_events_note(struct exec_events *e, const dgm_event *event)
{
    if (event->kind == DGM_EVENT_STATUS)
        e->state = event->status->status.state;
    else if (event->kind == DGM_EVENT_TASK)
        e->state = event->task->status.state;
    else if (event->kind == DGM_EVENT_ARTIFACT)
        events_watch_text(e, event->artifact);
    e->settled = event->kind == DGM_EVENT_MESSAGE || dgm_state_is_terminal(e->state);
}

/* Before a state of ours that ends the task: readers of a text get its last chunk. */
static dgm_code events_close_texts(struct exec_events *e, dgm_err *err)
{
    dgm_code rc = DGM_OK;
    for (struct exec_text *t = e->texts; t && !rc; t = t->next) {
        if (t->open)
            rc = dgm_run_chunk(e->run, t->id, (dgm_str){0}, DGM_STR(""), true, true, err);
        t->open = false;
    }
    return rc;
}

void dgm_exec_events_settle(struct exec_events *e, dgm_task_state state, const char *error)
{
    dgm_err err = {0};
    dgm_code rc;
    if (e->settled)
        return;
    if (!(rc = events_close_texts(e, &err))) {
        if (state == DGM_STATE_FAILED)
            rc = dgm_run_fail(e->run, dgm_str_from(error), &err);
        else
            rc = dgm_run_status(e->run, state, (dgm_str){0}, &err);
    }
    if (rc)
        dgm_run_note(e->run, "the last status was rejected: %s", err.msg);
    e->settled = true;
    e->state = state;
}

void dgm_exec_refuse(dgm_run *run, const char *safe, const char *detail)
{
    dgm_err err = {0};
    dgm_code rc = dgm_run_fail(run, dgm_str_from(safe), &err);
    dgm_run_report(run, &(dgm_run_fault){dgm_str_from(safe), dgm_str_from(detail), {0}});
    run->ops->end(run, rc ? err.msg : NULL);
}
