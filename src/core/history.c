/*
 * core/history.c - the conversation that an agent gets with a run.
 *
 *   the tasks of the context, from the store ─► those that have changed since, from their loops ─► messages ─► the run starts
 *
 * The run exists while its history is read: it can be canceled, its caller can leave, it can get its task. Nothing is read
 * for agents that want no history, for a context that this send creates, and for a message that brings its transcript.
 */
#include "core/core_int.h"
#include "model/conversation.h"

#include <stdlib.h>

/* Bytes of folded Tasks beyond those of the messages: ids, artifacts that a status repeats. */
#define TASKS_MORE_BYTES ((size_t)1 << 20)

struct run_history {
    struct run *run; /* NULL: it has ended */
    dgm_core *core;
    dgm_arena *arena;
    dgm_record *
        *tasks; /* the newest first; NULL where the answer is still to come, or never will */
    size_t n, n_asked;
};

/* One row whose task was asked for. */
struct asked_task {
    struct run_history *history;
    size_t i;
};

static void history_free(struct run_history *h)
{
    for (size_t i = 0; i < h->n; i++)
        dgm_record_unref(h->tasks[i]);
    if (h->run)
        h->run->reading = NULL;
    dgm_arena_free(h->arena); /* h lives in it */
}

void dgm_core_history_forget(struct run *r)
{
    if (r->reading)
        r->reading->run = NULL;
    r->reading = NULL;
}

/* ---- the messages ------------------------------------------------------------------------------------------------ */

static void add_record(dgm_conversation *c, const dgm_record *task, dgm_str until)
{
    dgm_event event;
    dgm_auto(dgm_arena_free) dgm_arena *scratch = dgm_arena_new();
    if (task && !dgm_record_event(task, scratch, &event, NULL) && event.kind == DGM_EVENT_TASK)
        dgm_conversation_add_task(c, event.task, until);
}

/* The earlier turns of the run's own task are the newest. */
static void history_set(struct run *r, const struct run_history *h)
{
    dgm_conversation c;
    r->past = dgm_arena_new();
    dgm_conversation_init(&c, r->past, r->agent->history);
    if (dgm_message_has_transcript(r->message))
        dgm_conversation_add_transcript(&c, r->message);
    else if (r->input.task)
        dgm_conversation_add_task(&c, r->input.task, r->message->message_id);
    for (size_t i = 0; h && i < h->n && !c.is_full; i++)
        add_record(&c, h->tasks[i], r->message->message_id);
    r->input.history = dgm_conversation_end(&c, r->message);
}

/* A transcript is shown as history, not as a part of the message. */
static void hide_transcript(struct run *r)
{
    dgm_message *m = dgm_new(r->given, dgm_message);
    *m = *r->message;
    m->parts = (dgm_parts){m->parts.at + 1, m->parts.n - 1};
    r->input.message = m;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* If the server ends, calls that wait for the run are answered, and nothing is written: a task is settled at the next
 * start. */
static void history_fail(struct run_history *h, const dgm_err *err)
{
    struct run *r = h->run;
    history_free(h);
    if (r->caller || !r->shard->core->stopping)
        r->base.ops->refuse(&r->base, err);
}

static void history_finish(struct run_history *h)
{
    struct run *r = h->run;
    dgm_err stopping = {0};
    if (r && h->core->stopping) {
        dgm_fail(&stopping, DGM_UNAVAILABLE, NULL, "the server is shutting down");
        history_fail(h, &stopping);
        return;
    }
    if (r)
        history_set(r, h);
    history_free(h);
    if (r)
        dgm_core_run_begin(r);
}

static void on_history_task(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    struct asked_task *a = arg;
    struct run_history *h = a->history;
    (void)err;
    if (!code)
        h->tasks[a->i] = dgm_record_ref(snapshot);
    if (--h->n_asked == 0)
        history_finish(h);
}

static void history_add_row(struct run_history *h, size_t i, const dgm_task_row *row)
{
    dgm_record_head head = {.seq = row->folded_seq, .kind = DGM_EVENT_TASK, .state = row->state};
    if (dgm_str_eq(row->id, h->run->input.task_id))
        return;
    if (row->folded_seq == row->last_seq && row->folded.n &&
        !dgm_record_from_bytes(head, row->folded, &h->tasks[i], NULL))
        return;
    struct asked_task *a = dgm_new(h->arena, struct asked_task);
    *a = (struct asked_task){h, i};
    h->n_asked++;
    dgm_core_get(h->core, row->owner, row->agent, row->id, on_history_task, a);
}

static void on_history_rows(dgm_code code, const dgm_task_row *rows, size_t n, bool more,
                            size_t total, const dgm_err *err, void *arg)
{
    struct run_history *h = arg;
    dgm_err stopping = {0};
    (void)more, (void)total;
    if (!h->run) {
        history_free(h);
        return;
    }
    if (!code && h->core->stopping) {
        err = &stopping;
        code = dgm_fail(&stopping, DGM_UNAVAILABLE, NULL, "the server is shutting down");
    }
    if (code) {
        history_fail(h, err);
        return;
    }
    h->tasks = dgm_new_n(h->arena, dgm_record *, n);
    h->n = n;
    for (size_t i = 0; i < n; i++)
        history_add_row(h, i, &rows[i]); /* answers come later, never from inside */
    if (!h->n_asked)
        history_finish(h);
}

static void history_read(struct run *r)
{
    dgm_arena *a = dgm_arena_new();
    struct run_history *h = dgm_new(a, struct run_history);
    *h = (struct run_history){.run = r, .core = r->shard->core, .arena = a};
    r->reading = h;
    dgm_store_get_context(h->core->o.store, (dgm_owner){r->input.tenant, r->input.principal},
                          r->agent->id, r->input.context_id, r->agent->history.messages,
                          r->agent->history.bytes + TASKS_MORE_BYTES, on_history_rows, h);
}

bool dgm_core_history_is_ready(struct run *r, bool is_new_context)
{
    if (!r->agent->history.messages)
        return true;
    bool has_transcript = dgm_message_has_transcript(r->message);
    if (has_transcript)
        hide_transcript(r);
    if (has_transcript || is_new_context || r->shard->core->stopping) {
        if (has_transcript || r->input.task)
            history_set(r, NULL);
        return true;
    }
    history_read(r);
    return false;
}
