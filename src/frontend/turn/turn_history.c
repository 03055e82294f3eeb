/*
 * frontend/turn/turn_history.c - all that was said in a context.
 *
 * A page of tasks after the other, the newest first; then each as messages, in the order they were begun: ids
 * of tasks ascend. A Task has what was said; its log also has how the agent came to it: calls, results, thoughts.
 */
#include "canon/copy.h"
#include "canon/messages.h"
#include "canon/said.h"
#include "frontend/turn/turn_int.h"

#include <stdlib.h>

#define PAGE 100

struct named { /* a task, by its id, which is in its bytes */
    dgm_record *record;
    dgm_str id;
};

struct looking {
    dgm_core *core;
    dgm_arena *arena, *scratch;
    dgm_list_query query;
    struct named *tasks;
    size_t n, at;
    dgm_canon_fold *fold;
    dgm_turn_history history;
    bool whole;                 /* logs, too */
    bool is_answered, is_later; /* of the log at `at`: here it is; it was not at once */
    dgm_on_history on_history;
    void *arg;
};

static void done(struct looking *l)
{
    for (size_t i = 0; i < l->n; i++)
        dgm_record_unref(l->tasks[i].record);
    dgm_canon_fold_free(l->fold);
    dgm_arena_free(l->scratch);
}

/* ---- messages ------------------------------------------------------------------------------------------------------ */

/* A text that turned out to be another comes as a snapshot of that message alone: the others stay. */
static void correct(dgm_canon_fold *fold, const dgm_canon_messages *changed)
{
    for (size_t i = 0; i < changed->n; i++) {
        if (!dgm_canon_fold_set_text(fold, changed->at[i].id, changed->at[i].content.text))
            dgm_canon_fold_add_message(fold, &changed->at[i]);
    }
}

static dgm_code on_event(void *arg, const dgm_canon_event *event)
{
    if (event->kind == DGM_CANON_MESSAGES_SNAPSHOT)
        correct(arg, &event->snapshot.messages);
    else
        dgm_canon_fold_add(arg, event);
    return DGM_OK;
}

/* What a message repeats of others, in its first part (turn_message.c), was said there. */
static void drop_transcripts(const dgm_task *task)
{
    for (size_t i = 0; i < task->history.n; i++) {
        dgm_parts *parts = &task->history.at[i].parts;
        if (parts->n &&
            dgm_str_is(dgm_said_mark(parts->at[0].metadata, DGM_META_PART), "transcript"))
            *parts = (dgm_parts){parts->at + 1, parts->n - 1};
    }
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
    if (event.kind == DGM_EVENT_TASK)
        drop_transcripts(event.task);
    dgm_auto(dgm_from_records_free) dgm_from_records *from = dgm_from_records_new(&params);
    if (!dgm_from_records_feed(from, &event, sink, &err))
        dgm_from_records_end(from, sink, &err);
}

/* What the caller said stands in later turns' logs as an internal message, of which the text is not told. */
static dgm_event as_said(const dgm_event *e)
{
    bool said = e->kind == DGM_EVENT_INTERNAL && e->internal->kind == DGM_INTERNAL_MESSAGE &&
                e->internal->message && e->internal->message->role == DGM_ROLE_USER;
    return said ? (dgm_event){.kind = DGM_EVENT_MESSAGE, .message = e->internal->message} : *e;
}

static void ignore(void *arg)
{
    (void)arg;
}

static void add_log(struct looking *l, dgm_log *log)
{
    dgm_canon_sink sink = {on_event, l->fold};
    dgm_err err = {0};
    dgm_event event;
    dgm_from_params params = {.say_history = true, .trusted = true, .many_turns = true};
    dgm_auto(dgm_from_records_free) dgm_from_records *from = dgm_from_records_new(&params);
    dgm_log_reader *reader = dgm_log_reader_open(log, 0, ignore, NULL);
    dgm_record *r;
    dgm_code rc = DGM_OK;
    while (!rc && (r = dgm_log_reader_next(reader))) {
        if (dgm_record_event(r, l->scratch, &event, &err))
            continue;
        event = as_said(&event);
        rc = dgm_from_records_feed(from, &event, sink, &err);
        dgm_arena_reset(l->scratch);
    }
    dgm_log_reader_close(reader);
}

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
    dgm_canon_event all = {.kind = DGM_CANON_MESSAGES_SNAPSHOT};
    all.snapshot.messages = dgm_canon_fold_messages(l->fold, l->arena);
    l->history.messages = dgm_canon_copy_event(l->arena, &all).snapshot.messages;
    done(l);
    l->on_history(DGM_OK, &l->history, NULL, l->arg);
}

/* ---- logs ----------------------------------------------------------------------------------------------------------- */

static void read_on(struct looking *l);

static void on_log(dgm_code code, dgm_log *log, uint64_t after, dgm_record *snapshot,
                   const dgm_err *err, void *arg)
{
    struct looking *l = arg;
    (void)after, (void)err;
    if (!code && !snapshot && dgm_log_first(log) == 1)
        add_log(l, log);
    else /* it is not kept any more, or not now */
        add_task(l->fold, l->scratch, l->tasks[l->at].record);
    dgm_arena_reset(l->scratch);
    l->at++;
    l->is_answered = true;
    if (l->is_later)
        read_on(l);
}

/* In a loop, not one call inside the other: there may be many, and all at hand. */
static void read_on(struct looking *l)
{
    while (l->at < l->n) {
        l->is_answered = l->is_later = false;
        dgm_core_subscribe(l->core, l->query.owner, l->query.agent, l->tasks[l->at].id, 0, on_log,
                           l);
        if (!l->is_answered) {
            l->is_later = true;
            return;
        }
    }
    give(l);
}

/* ---- tasks ---------------------------------------------------------------------------------------------------------- */

static void put_together(struct looking *l)
{
    if (l->n) { /* the list was sorted by the time of the last change */
        l->history.task_id = l->tasks[0].id;
        l->history.state = l->tasks[0].record->head.state;
    }
    qsort(l->tasks, l->n, sizeof *l->tasks, by_id);
    for (; !l->whole && l->at < l->n; l->at++) {
        add_task(l->fold, l->scratch, l->tasks[l->at].record);
        dgm_arena_reset(l->scratch);
    }
    read_on(l);
}

static void on_listed(dgm_code code, const dgm_listed *listed, const dgm_err *err, void *arg)
{
    struct looking *l = arg;
    if (code) {
        done(l);
        l->on_history(code, NULL, err, l->arg);
        return;
    }
    for (size_t i = 0; i < listed->n && l->n < DGM_MAX_HISTORY_TASKS; i++)
        l->tasks[l->n++] = name_of(l->arena, l->scratch, dgm_record_ref(listed->tasks[i]));
    if (listed->more && l->n < DGM_MAX_HISTORY_TASKS) {
        l->query.after_status_ms = listed->last_status_ms;
        l->query.after_id = dgm_arena_dup(l->arena, listed->last_id);
        dgm_core_list(l->core, &l->query, on_listed, l);
        return;
    }
    l->history.cut = listed->more;
    put_together(l);
}

static void look(dgm_turns *turns, dgm_arena *a, dgm_list_query query, bool whole,
                 dgm_on_history on_history, void *arg)
{
    struct looking *l = dgm_new(a, struct looking);
    *l = (struct looking){.core = turns->o.core,
                          .arena = a,
                          .scratch = dgm_arena_new(),
                          .query = query,
                          .tasks = dgm_new_n(a, struct named, DGM_MAX_HISTORY_TASKS),
                          .fold = dgm_canon_fold_new(DGM_MAX_OUTPUT_BYTES),
                          .whole = whole,
                          .on_history = on_history,
                          .arg = arg};
    l->query.page_size = PAGE;
    dgm_core_list(l->core, &l->query, on_listed, l);
}

void dgm_turn_get_history(dgm_turns *turns, dgm_arena *a, dgm_owner owner, dgm_str agent,
                          dgm_str context_id, dgm_on_history on_history, void *arg)
{
    dgm_list_query q = {.owner = owner, .agent = agent, .context_id = context_id};
    look(turns, a, q, false, on_history, arg);
}

void dgm_turn_get_whole_history(dgm_turns *turns, dgm_arena *a, dgm_owner owner, dgm_str agent,
                                dgm_str context_id, dgm_on_history on_history, void *arg)
{
    dgm_list_query q = {.owner = owner, .agent = agent, .context_id = context_id};
    look(turns, a, q, true, on_history, arg);
}
