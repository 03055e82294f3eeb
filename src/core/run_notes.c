/*
 * core/run_notes.c - texts that agents store for later runs (remember, recall).
 *
 * A text is a note of its owner. The name of the note has the agent and the task or the context, so that a contextId that
 * another caller or another agent uses is another note. A run need not have a task: its task id is drawn before it starts.
 *
 * Agents hold memory of their run in `arg`, so no callback comes after the run has ended: the requests of a run are in
 * a list, and the end of the run takes the run out of all of them.
 */
#include "core/core_int.h"

#include <stdlib.h>

#define RUN_NOTE_KIND_TASK "run/task"
#define RUN_NOTE_KIND_CONTEXT "run/context"
/* A task may wait for its caller this much longer than tasks are stored after their end. */
#define RUN_NOTE_WAIT_MS ((int64_t)30 * 24 * 3600 * 1000)

struct run_note {
    struct run *run; /* NULL: it has ended */
    struct run_note *next;
    void (*stored)(void *arg, dgm_code code);
    void (*found)(void *arg, dgm_str text);
    void *arg;
};

static struct run_note *run_note_new(struct run *r, void *arg)
{
    struct run_note *n = dgm_xcalloc(1, sizeof *n);
    n->run = r;
    n->arg = arg;
    n->next = r->notes;
    r->notes = n;
    return n;
}

/* The run, if it has not ended; the request is not in its list any more. */
static struct run *run_note_release(struct run_note *n)
{
    struct run *r = n->run;
    if (!r)
        return NULL;
    struct run_note **at = &r->notes;
    while (*at != n)
        at = &(*at)->next;
    *at = n->next;
    return r;
}

void dgm_core_run_forget_notes(struct run *r)
{
    for (struct run_note *n = r->notes; n; n = n->next)
        n->run = NULL;
    r->notes = NULL;
}

/* Of the run's owner: in the arena. */
static dgm_note run_note_of(const struct run *r, dgm_arena *a, dgm_run_scope scope)
{
    bool is_of_task = scope == DGM_RUN_TASK;
    dgm_str id = is_of_task ? r->input.task_id : r->input.context_id;
    return (dgm_note){.owner = {r->input.tenant, r->input.principal},
                      .kind =
                          is_of_task ? DGM_STR(RUN_NOTE_KIND_TASK) : DGM_STR(RUN_NOTE_KIND_CONTEXT),
                      .name = dgm_arena_join(a, dgm_arena_join(a, r->agent->id, DGM_STR("/")), id)};
}

static void on_run_note_stored(dgm_code code, const dgm_err *err, void *arg)
{
    struct run_note *n = arg;
    (void)err;
    if (run_note_release(n) && n->stored)
        n->stored(n->arg, code);
    free(n);
}

void dgm_core_run_remember(dgm_run *base, dgm_run_scope scope, dgm_str text,
                           void (*stored)(void *arg, dgm_code code), void *arg)
{
    struct run *r = (struct run *)(void *)base;
    dgm_core *core = r->shard->core;
    int64_t keep_ms = atomic_load(&core->keep_tasks_ms);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_note note = run_note_of(r, a, scope);
    struct run_note *n = run_note_new(r, arg);
    r->has_no_note[scope] = false;
    note.text = text;
    note.expires_ms = keep_ms ? dgm_loop_unix_ms() + keep_ms + RUN_NOTE_WAIT_MS : 0;
    n->stored = stored;
    dgm_core_put_note(core, &note, on_run_note_stored, n);
}

static void on_run_note_found(dgm_code code, dgm_str text, const dgm_err *err, void *arg)
{
    struct run_note *n = arg;
    (void)err;
    if (run_note_release(n))
        n->found(n->arg, code ? (dgm_str){0} : text);
    free(n);
}

/* The store need not be asked. */
static void on_run_note_absent(void *arg)
{
    on_run_note_found(DGM_OK, (dgm_str){0}, NULL, arg);
}

void dgm_core_run_recall(dgm_run *base, dgm_run_scope scope, void (*found)(void *arg, dgm_str text),
                         void *arg)
{
    struct run *r = (struct run *)(void *)base;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct run_note *n = run_note_new(r, arg);
    n->found = found;
    if (r->has_no_note[scope]) {
        dgm_loop_post(r->shard->loop, on_run_note_absent, n);
        return;
    }
    dgm_note note = run_note_of(r, a, scope);
    dgm_core_get_note(r->shard->core, note.owner, note.kind, note.name, on_run_note_found, n);
}
