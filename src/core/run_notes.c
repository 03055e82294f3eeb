/*
 * core/run_notes.c - texts that agents store for later runs (remember, recall), durability of their events (commit), and reading
 * the events of the task (review).
 *
 * A text is a note of its owner. The name of the note has the agent and the task or the context, so that a contextId that
 * another caller or another agent uses is another note. A run need not have a task: its task id is drawn before it starts.
 *
 * A text is stored after the events that were emitted before it: events that are not yet stored are in one commit with
 * the text, and the store makes the writes of a loop in order. A commit is an append that is synced. It is done when that append has answered, and all
 * texts that were put before it.
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
    /* Of a commit: */
    uint32_t n_appends, n_notes; /* that the store has to answer before it is done */
    bool is_commit;              /* it waits for them; no callback that is on its way has it */
    bool is_put;                 /* a text that the store has not answered */
    dgm_code code;
};

static struct run_note *run_note_new(struct run *r, void *arg)
{
    struct run_note *n = dgm_xcalloc(1, sizeof *n);
    n->run = r;
    n->arg = arg;
    struct run_note **at = &r->notes; /* the oldest first: commits are reported in order */
    while (*at)
        at = &(*at)->next;
    *at = n;
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
    for (struct run_note *n = r->notes, *next; n; n = next) {
        next = n->next;
        n->run = NULL;
        if (n->is_commit)
            free(n);
    }
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

/* ---- commits ------------------------------------------------------------------------------------------------------ */

static void on_commit_done(void *arg)
{
    struct run_note *n = arg;
    if (run_note_release(n))
        n->stored(n->arg, n->code);
    free(n);
}

/* Later, and not in here: the agent may end its run then. */
static void commit_report(struct run *r, struct run_note *n)
{
    n->is_commit = false;
    dgm_loop_post(r->shard->loop, on_commit_done, n);
}

void dgm_core_run_written(struct run *r, dgm_code code)
{
    for (struct run_note *n = r->notes; n; n = n->next) {
        if (!n->is_commit || !n->n_appends)
            continue;
        n->n_appends--;
        if (code) { /* the store has failed: no append of the task is answered after this */
            n->n_appends = n->n_notes = 0;
            n->code = code;
        }
        if (!n->n_appends && !n->n_notes)
            commit_report(r, n);
    }
}

/* A note that a commit may wait for was stored. */
static void commits_count_note(struct run *r, dgm_code code)
{
    for (struct run_note *n = r->notes; n; n = n->next) {
        if (!n->is_commit || !n->n_notes)
            continue;
        n->n_notes--;
        n->code = n->code ? n->code : code;
        if (!n->n_appends && !n->n_notes)
            commit_report(r, n);
    }
}

static uint32_t count_unstored(const struct run *r)
{
    uint32_t count = 0;
    for (const struct run_note *n = r->notes; n; n = n->next)
        count += n->is_put;
    return count;
}

void dgm_core_run_commit(dgm_run *base, void (*done)(void *arg, dgm_code code), void *arg)
{
    struct run *r = (struct run *)(void *)base;
    struct live *l = r->live;
    struct run_note *n = run_note_new(r, arg);
    n->stored = done;
    n->n_notes = count_unstored(r);
    if (r->is_detached) {
        n->code = DGM_UNAVAILABLE;
        commit_report(r, n);
    } else if (l && l->state == LIVE_BROKEN) {
        n->code = l->rare->store_fault->code;
        commit_report(r, n);
    } else if (l) {
        n->is_commit = true;
        n->n_appends = l->write.n_appends + 1;
        l->write.sync = true;
        dgm_loop_at_turn_end(l->shard->loop, &l->write.flush);
    } else if (n->n_notes) { /* nothing was emitted yet */
        n->is_commit = true;
    } else {
        commit_report(r, n);
    }
}

/* ---- texts -------------------------------------------------------------------------------------------------------- */

static void on_run_note_stored(dgm_code code, const dgm_err *err, void *arg)
{
    struct run_note *n = arg;
    struct run *r = run_note_release(n);
    (void)err;
    if (r)
        commits_count_note(r, code);
    if (r && n->stored)
        n->stored(n->arg, code); /* may end the run */
    free(n);
}

static void on_note_refused(void *arg)
{
    on_run_note_stored(DGM_UNAVAILABLE, NULL, arg);
}

/* The events before the text are stored in one commit with it. False: no event waits, and the text was not passed on. */
static bool flush_with_note(const struct run *r, const dgm_append_note *note)
{
    struct live *l = r->live;
    struct shard *s = r->shard;
    if (!l || !l->write.flush.next || l->state != LIVE_READY || s->core->stopping)
        return false; /* if the store is not asked any more, the text is refused, too */
    dgm_loop_not_at_turn_end(s->loop, &l->write.flush);
    s->note = note;
    dgm_live_flush(l);
    bool is_passed = !s->note;
    s->note = NULL;
    return is_passed;
}

void dgm_core_run_remember(dgm_run *base, dgm_run_scope scope, dgm_str text,
                           void (*stored)(void *arg, dgm_code code), void *arg)
{
    struct run *r = (struct run *)(void *)base;
    dgm_core *core = r->shard->core;
    int64_t keep_ms = atomic_load(&core->keep_tasks_ms);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct run_note *n = run_note_new(r, arg);
    dgm_append_note put = {.note = run_note_of(r, a, scope), .done = on_run_note_stored, .arg = n};
    r->has_no_note[scope] = false;
    n->is_put = true;
    n->stored = stored;
    put.note.text = text;
    put.note.max_bytes = DGM_MAX_RUN_NOTE_BYTES;
    put.note.fence = dgm_share_fence(r->live);
    put.note.expires_ms = keep_ms ? dgm_loop_unix_ms() + keep_ms + RUN_NOTE_WAIT_MS : 0;
    if (r->is_detached) {
        dgm_loop_post(r->shard->loop, on_note_refused, n);
        return;
    }
    if (!flush_with_note(r, &put))
        dgm_core_put_note(core, &put.note, on_run_note_stored, n);
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

/* ---- what the task has ---------------------------------------------------------------------------------------------- */

uint64_t dgm_core_run_review(dgm_run *base, uint64_t after, const dgm_task **ret_task,
                             void (*on_event)(void *arg, const dgm_event *event), void *arg)
{
    struct run *r = (struct run *)(void *)base;
    struct live *l = r->live;
    *ret_task = l ? dgm_fold_task(l->fold) : NULL;
    if (!l)
        return 0;
    uint64_t first = l->log->first_seq > after ? l->log->first_seq : after + 1;
    size_t n = on_event && first <= l->log->last ? (size_t)(l->log->last - first + 1) : 0;
    dgm_record **records = n ? dgm_log_tail(l->log, n, &r->shard->batch) : NULL;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    for (size_t i = 0; i < n; i++) {
        dgm_event event;
        if (!dgm_record_event(records[i], a, &event, NULL))
            on_event(arg, &event);
        dgm_arena_reset(a);
    }
    return l->log->last;
}
