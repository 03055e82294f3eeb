/*
 * frontend/turn/turn_history.c - all that was said in a context.
 *
 * A page of tasks after the other, the newest first; then each as messages, in the order they were begun: ids
 * of tasks ascend.
 */
#include "canon/copy.h"
#include "canon/messages.h"
#include "frontend/turn/turn_int.h"

#include <stdlib.h>

#define PAGE 100

struct looking {
    dgm_core *core;
    dgm_arena *arena;
    dgm_list_query query;
    dgm_record **tasks;
    size_t n;
    bool cut;
    dgm_on_history on_history;
    void *arg;
};

static void fail(struct looking *l, const dgm_err *err)
{
    for (size_t i = 0; i < l->n; i++)
        dgm_record_unref(l->tasks[i]);
    l->on_history(err->code, NULL, err, l->arg);
}

/* ---- messages ------------------------------------------------------------------------------------------------------ */

static dgm_code on_event(void *arg, const dgm_canon_event *event)
{
    dgm_canon_fold_add(arg, event);
    return DGM_OK;
}

/* What a task holds that cannot be read is left out: the others can. */
static void add_task(dgm_canon_fold *fold, dgm_arena *scratch, const dgm_record *r)
{
    dgm_canon_sink sink = {on_event, fold};
    dgm_err err = {0};
    dgm_event event;
    dgm_from_params params = {.say_history = true, .trusted = true};
    if (dgm_record_event(r, scratch, &event, &err))
        return;
    dgm_auto(dgm_from_records_free) dgm_from_records *from = dgm_from_records_new(&params);
    if (!dgm_from_records_feed(from, &event, sink, &err))
        dgm_from_records_end(from, sink, &err);
}

struct named { /* a task, by its id, which is in its bytes */
    dgm_record *record;
    dgm_str id;
};

static int by_id(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    size_t n = x->id.n < y->id.n ? x->id.n : y->id.n;
    int order = n ? memcmp(x->id.p, y->id.p, n) : 0;
    return order ? order : (x->id.n > y->id.n) - (x->id.n < y->id.n);
}

static struct named name_of(dgm_arena *a, dgm_arena *scratch, dgm_record *r)
{
    dgm_event event;
    struct named n = {.record = r};
    if (!dgm_record_event(r, scratch, &event, NULL) && event.kind == DGM_EVENT_TASK)
        n.id = dgm_arena_dup(a, event.task->id);
    dgm_arena_reset(scratch);
    return n;
}

static void give(struct looking *l)
{
    dgm_auto(dgm_arena_free) dgm_arena *scratch = dgm_arena_new();
    dgm_auto(dgm_canon_fold_free) dgm_canon_fold *fold = dgm_canon_fold_new(DGM_MAX_OUTPUT_BYTES);
    struct named *tasks = dgm_new_n(l->arena, struct named, l->n + 1);
    dgm_turn_history history = {.cut = l->cut};
    for (size_t i = 0; i < l->n; i++)
        tasks[i] = name_of(l->arena, scratch, l->tasks[i]);
    if (l->n) { /* the list was sorted by the time of the last change */
        history.task_id = tasks[0].id;
        history.state = tasks[0].record->head.state;
    }
    qsort(tasks, l->n, sizeof *tasks, by_id);
    for (size_t i = 0; i < l->n; i++) {
        add_task(fold, scratch, tasks[i].record);
        dgm_arena_reset(scratch);
        dgm_record_unref(tasks[i].record);
    }
    dgm_canon_event all = {.kind = DGM_CANON_MESSAGES_SNAPSHOT};
    all.snapshot.messages = dgm_canon_fold_messages(fold, l->arena);
    history.messages = dgm_canon_copy_event(l->arena, &all).snapshot.messages;
    l->on_history(DGM_OK, &history, NULL, l->arg);
}

/* ---- tasks ---------------------------------------------------------------------------------------------------------- */

static void on_listed(dgm_code code, const dgm_listed *listed, const dgm_err *err, void *arg)
{
    struct looking *l = arg;
    if (code) {
        fail(l, err);
        return;
    }
    for (size_t i = 0; i < listed->n && l->n < DGM_MAX_HISTORY_TASKS; i++)
        l->tasks[l->n++] = dgm_record_ref(listed->tasks[i]);
    if (listed->more && l->n < DGM_MAX_HISTORY_TASKS) {
        l->query.after_status_ms = listed->last_status_ms;
        l->query.after_id = dgm_arena_dup(l->arena, listed->last_id);
        dgm_core_list(l->core, &l->query, on_listed, l);
        return;
    }
    l->cut = listed->more;
    give(l);
}

void dgm_turn_get_history(dgm_turns *turns, dgm_arena *a, dgm_owner owner, dgm_str agent,
                          dgm_str context_id, dgm_on_history on_history, void *arg)
{
    struct looking *l = dgm_new(a, struct looking);
    *l = (struct looking){
        .core = turns->o.core,
        .arena = a,
        .query = {.owner = owner, .agent = agent, .context_id = context_id, .page_size = PAGE},
        .tasks = dgm_new_n(a, dgm_record *, DGM_MAX_HISTORY_TASKS),
        .on_history = on_history,
        .arg = arg};
    dgm_core_list(l->core, &l->query, on_listed, l);
}
