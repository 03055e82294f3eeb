/*
 * frontend/turn/turn_history.c - all messages of a context.
 *
 * A page of tasks after the other, the newest first, until there are DGM_MAX_HISTORY_BYTES of them; then each as messages,
 * the newest first, until there is too much of it. A task is released when its messages were read. They are given
 * in the order the tasks were begun: ids of tasks ascend. A Task has the messages; its log also has how the agent came
 * to it: calls, results, thoughts. Each is put together by itself: ids of messages and calls are its own.
 */
#include "canon/copy.h"
#include "canon/events_to_messages.h"
#include "canon/message_content.h"
#include "frontend/turn/turn_int.h"
#include "model/conversation.h"

#include <stdio.h>
#include <stdlib.h>

#define PAGE 100
#define STEP_BYTES                                                                                 \
    ((size_t)1                                                                                     \
     << 20) /* of messages that were read: then other requests of the loop are served first */

struct named { /* a task, by its id */
    dgm_record *record;
    dgm_str id;
    dgm_canon_messages messages;
};

/* One of the few requests of a principal that are worked on. Its memory is its own: the exchange's may go first. */
struct history_place {
    dgm_turn_once once;
    dgm_turns *turns;
    char name[];
};

struct looking {
    struct history_place *place;
    dgm_core *core;
    dgm_arena *arena, *scratch;
    dgm_list_query query;
    struct named *tasks;
    size_t n, left;      /* left: of them, to be put together */
    size_t record_bytes; /* of tasks */
    size_t bytes;        /* of messages */
    size_t step_bytes;   /* of them, read since the loop served others */
    dgm_turn_history history;
    bool whole;     /* logs, too */
    bool artifacts; /* those that are no text, too */
    bool no_transcripts;
    bool is_answered, is_later; /* of the log at `at`: here it is; it was not at once */
    dgm_on_history on_history;
    void *arg;
};

static void release_record(struct named *task)
{
    dgm_record_unref(task->record);
    task->record = NULL;
}

static void done(struct looking *l)
{
    for (size_t i = 0; i < l->n; i++)
        release_record(&l->tasks[i]);
    dgm_arena_free(l->scratch);
}

/* Answers, and lets the next request of this principal begin. */
static void history_answer(struct looking *l, dgm_code code, const dgm_turn_history *history,
                           const dgm_err *err)
{
    struct history_place *place = l->place;
    dgm_turn_hold *hold = NULL;
    dgm_err no_room = {0};
    done(l);
    if (!code && (code = dgm_turns_hold(place->turns, l->query.owner, l->bytes, &hold, &no_room)))
        err = &no_room;
    l->history.hold = &hold;
    l->on_history(code, code ? NULL : history, err, l->arg); /* l may be gone */
    dgm_turn_release_hold(hold);
    dgm_turn_begun(place->turns, &place->once);
    free(place);
}

/* ---- messages ------------------------------------------------------------------------------------------------------ */

/* A text that turned out to be another comes as a snapshot of that message alone: the others stay. */
static void turn_history_correct(dgm_canon_fold *fold, const dgm_canon_messages *changed)
{
    for (size_t i = 0; i < changed->n; i++) {
        if (!dgm_canon_fold_set_text(fold, changed->at[i].id, changed->at[i].content.text))
            dgm_canon_fold_add_message(fold, &changed->at[i]);
    }
}

static dgm_code turn_history_on_event(void *arg, const dgm_canon_event *event)
{
    if (event->kind == DGM_CANON_MESSAGES_SNAPSHOT)
        turn_history_correct(arg, &event->snapshot.messages);
    else
        dgm_canon_fold_add(arg, event);
    return DGM_OK;
}

/* Files and data are between the messages, as activities of that name. */
static dgm_code on_event_or_artifact(void *arg, const dgm_canon_event *event)
{
    if (event->kind != DGM_CANON_ARTIFACT)
        return turn_history_on_event(arg, event);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_canon_message m = {.role = DGM_CANON_ACTIVITY,
                           .activity_type = DGM_STR(DGM_NAME_ARTIFACT),
                           .content = {.kind = DGM_CANON_CONTENT_OBJECT,
                                       .object = dgm_canon_artifact_value(a, event)}};
    dgm_canon_fold_add_message(arg, &m);
    return DGM_OK;
}

/* The first part of a message may be the conversation before it (turn_message.c). As text it is left out. */
static void drop_transcript(dgm_message *m)
{
    if (m->parts.n &&
        dgm_str_is(dgm_json_str_member(m->parts.at[0].metadata, DGM_META_PART), "transcript"))
        m->parts = (dgm_parts){m->parts.at + 1, m->parts.n - 1};
}

void dgm_turn_drop_transcripts(const dgm_task *task)
{
    for (size_t i = 0; i < task->history.n; i++)
        drop_transcript(&task->history.at[i]);
}

/* A transcript that the agent got as its history is what the conversation was then: older tasks are not read. Only the
 * first message of a task has one. */
static void show_transcript(struct looking *l, dgm_task *task)
{
    dgm_messages before = {0};
    if (!l->no_transcripts && task->history.n && dgm_message_has_transcript(&task->history.at[0])) {
        before = dgm_message_transcript(l->scratch, &task->history.at[0]);
        l->left = 0;
    }
    dgm_turn_drop_transcripts(task);
    if (!before.n)
        return;
    size_t n = before.n + task->history.n;
    dgm_messages all = {dgm_new_n(l->scratch, dgm_message, n), n};
    memcpy(all.at, before.at, before.n * sizeof *all.at);
    memcpy(all.at + before.n, task->history.at, task->history.n * sizeof *all.at);
    task->history = all;
}

/* What a task holds that cannot be read is left out: the others can. */
static void read_task(struct looking *l, const dgm_record *r, dgm_canon_fold *fold)
{
    dgm_canon_sink sink = {l->artifacts ? on_event_or_artifact : turn_history_on_event, fold};
    dgm_err err = {0};
    dgm_event event;
    dgm_records_params params = {.say_history = true, .trusted = true};
    if (dgm_record_event(r, l->scratch, &event, &err))
        return;
    if (event.kind == DGM_EVENT_TASK)
        show_transcript(l, event.task);
    dgm_auto(dgm_records_to_events_free) dgm_records_to_events *from =
        dgm_records_to_events_new(&params);
    if (!dgm_records_to_events_feed(from, &event, sink, &err))
        dgm_records_to_events_end(from, sink, &err);
}

/* In the logs of later turns the caller's message is an internal one, whose text is not streamed. */
static dgm_event as_said(struct looking *l, const dgm_event *e)
{
    bool said = e->kind == DGM_EVENT_INTERNAL && e->internal->kind == DGM_INTERNAL_MESSAGE &&
                e->internal->message && e->internal->message->role == DGM_ROLE_USER;
    if (e->kind == DGM_EVENT_TASK)
        show_transcript(l, e->task);
    if (!said)
        return *e;
    drop_transcript(e->internal->message);
    return (dgm_event){.kind = DGM_EVENT_MESSAGE, .message = e->internal->message};
}

static void ignore(void *arg)
{
    (void)arg;
}

static void read_log(struct looking *l, dgm_log *log, dgm_canon_fold *fold)
{
    dgm_canon_sink sink = {l->artifacts ? on_event_or_artifact : turn_history_on_event, fold};
    dgm_err err = {0};
    dgm_event event;
    dgm_records_params params = {.say_history = true, .trusted = true, .many_turns = true};
    dgm_auto(dgm_records_to_events_free) dgm_records_to_events *from =
        dgm_records_to_events_new(&params);
    dgm_log_reader *reader = dgm_log_reader_open(log, 0, ignore, NULL);
    dgm_record *r;
    dgm_code rc = DGM_OK;
    while (!rc && (r = dgm_log_reader_next(reader))) {
        if (dgm_record_event(r, l->scratch, &event, &err))
            continue;
        event = as_said(l, &event);
        rc = dgm_records_to_events_feed(from, &event, sink, &err);
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

/* The next, from its log if there is one. If that is too much it is left out, with all before it. */
static void add_next(struct looking *l, dgm_log *log)
{
    size_t room = l->bytes < DGM_MAX_HISTORY_BYTES ? DGM_MAX_HISTORY_BYTES - l->bytes : 0;
    dgm_auto(dgm_canon_fold_free) dgm_canon_fold *fold = dgm_canon_fold_new(room);
    struct named *task = &l->tasks[--l->left];
    dgm_canon_event all = {.kind = DGM_CANON_MESSAGES_SNAPSHOT};
    if (log)
        read_log(l, log, fold);
    else
        read_task(l, task->record, fold);
    release_record(task);
    all.snapshot.messages = dgm_canon_fold_messages(fold, l->scratch);
    task->messages = dgm_canon_copy_event(l->arena, &all).snapshot.messages;
    dgm_arena_reset(l->scratch);
    l->bytes += dgm_canon_fold_bytes(fold);
    l->step_bytes += dgm_canon_fold_bytes(fold);
    if (dgm_canon_fold_is_over(fold)) {
        l->history.cut = true;
        l->left = 0;
    }
}

static void turn_history_report(struct looking *l)
{
    dgm_canon_messages *all = &l->history.messages;
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        n += l->tasks[i].messages.n;
    all->at = dgm_new_n(l->arena, dgm_canon_message, n);
    for (size_t i = 0; i < l->n; i++) {
        for (size_t k = 0; k < l->tasks[i].messages.n; k++)
            all->at[all->n++] = l->tasks[i].messages.at[k];
    }
    history_answer(l, DGM_OK, &l->history, NULL);
}

/* ---- logs ----------------------------------------------------------------------------------------------------------- */

static void read_on(struct looking *l);

static void on_log(dgm_code code, dgm_log *log, uint64_t after, dgm_record *snapshot,
                   const dgm_err *err, void *arg)
{
    struct looking *l = arg;
    bool is_kept = !code && !snapshot && log->first_seq == 1;
    (void)after, (void)err;
    add_next(l, is_kept ? log : NULL);
    l->is_answered = true;
    if (l->is_later)
        read_on(l);
}

static void on_next_step(void *arg)
{
    read_on(arg);
}

/* In a loop, not one call inside the other: there may be many, and all at hand. */
static void read_on(struct looking *l)
{
    for (;;) {
        if (l->step_bytes >= STEP_BYTES) {
            l->step_bytes = 0;
            dgm_loop_post(dgm_loop_current(), on_next_step, l);
            return;
        }
        if (!l->left)
            break;
        if (!l->whole) {
            add_next(l, NULL);
            continue;
        }
        l->is_answered = l->is_later = false;
        dgm_core_subscribe(l->core, l->query.owner, l->query.agent, l->tasks[l->left - 1].id, 0,
                           on_log, l);
        if (!l->is_answered) {
            l->is_later = true;
            return;
        }
    }
    turn_history_report(l);
}

/* ---- tasks ---------------------------------------------------------------------------------------------------------- */

static void put_together(struct looking *l)
{
    if (l->n) { /* the list was sorted by the time of the last change */
        l->history.task_id = l->tasks[0].id;
        l->history.state = l->tasks[0].record->head.state;
    }
    qsort(l->tasks, l->n, sizeof *l->tasks, by_id);
    l->left = l->n;
    read_on(l);
}

/* The newest come first: listing stops at the first one that does not fit. */
static bool has_room_for(const struct looking *l, const dgm_record *task)
{
    return l->n < DGM_MAX_HISTORY_TASKS &&
           (!l->n || l->record_bytes + task->n <= DGM_MAX_HISTORY_BYTES);
}

static void turn_history_on_listed(dgm_code code, const dgm_listed *listed, const dgm_err *err,
                                   void *arg)
{
    struct looking *l = arg;
    if (code) {
        history_answer(l, code, NULL, err);
        return;
    }
    size_t i = 0;
    while (i < listed->n && has_room_for(l, listed->tasks[i])) {
        l->record_bytes += listed->tasks[i]->n;
        l->tasks[l->n++] = (struct named){.record = dgm_record_ref(listed->tasks[i]),
                                          .id = dgm_arena_dup(l->arena, listed->ids[i])};
        i++;
    }
    bool is_full = i < listed->n;
    if (listed->more && !is_full && l->n < DGM_MAX_HISTORY_TASKS) {
        l->query.after_status_ms = listed->last_status_ms;
        l->query.after_id = dgm_arena_dup(l->arena, listed->last_id);
        dgm_core_list(l->core, &l->query, turn_history_on_listed, l);
        return;
    }
    l->history.cut = listed->more || is_full;
    put_together(l);
}

static void start_listing(void *arg)
{
    struct looking *l = arg;
    dgm_core_list(l->core, &l->query, turn_history_on_listed, l);
}

/* Requests for the same context always share a place, others may. */
static struct history_place *new_place(dgm_turns *turns, const dgm_list_query *q, struct looking *l)
{
    unsigned at = (unsigned)(dgm_hash(0, q->context_id.p, q->context_id.n) % DGM_MAX_HISTORY_READS);
    size_t n = q->owner.tenant.n + q->owner.principal.n + 64;
    struct history_place *place = dgm_xcalloc(1, sizeof *place + n);
    int length = snprintf(place->name, n, "history %u\n%.*s\n%.*s", at, DGM_P(q->owner.tenant),
                          DGM_P(q->owner.principal));
    place->turns = turns;
    place->once =
        (dgm_turn_once){.name = {place->name, (size_t)length}, .go_on = start_listing, .arg = l};
    return place;
}

struct looking_for {
    bool whole, artifacts, no_transcripts;
};

static void look(dgm_turns *turns, dgm_arena *a, dgm_list_query query, struct looking_for what,
                 dgm_on_history on_history, void *arg)
{
    struct looking *l = dgm_new(a, struct looking);
    *l = (struct looking){.core = turns->o.core,
                          .arena = a,
                          .scratch = dgm_arena_new(),
                          .query = query,
                          .tasks = dgm_new_n(a, struct named, DGM_MAX_HISTORY_TASKS),
                          .whole = what.whole,
                          .artifacts = what.artifacts,
                          .no_transcripts = what.no_transcripts,
                          .on_history = on_history,
                          .arg = arg};
    l->query.page_size = PAGE;
    l->place = new_place(turns, &query, l);
    if (dgm_turn_begin(turns, &l->place->once))
        start_listing(l);
}

void dgm_turn_get_history(dgm_turns *turns, dgm_arena *a, dgm_owner owner, dgm_str agent,
                          dgm_str context_id, dgm_on_history on_history, void *arg)
{
    dgm_list_query q = {.owner = owner, .agent = agent, .context_id = context_id};
    look(turns, a, q, (struct looking_for){0}, on_history, arg);
}

void dgm_turn_get_sent_history(dgm_turns *turns, dgm_arena *a, dgm_owner owner, dgm_str agent,
                               dgm_str context_id, dgm_on_history on_history, void *arg)
{
    dgm_list_query q = {.owner = owner, .agent = agent, .context_id = context_id};
    look(turns, a, q, (struct looking_for){.no_transcripts = true}, on_history, arg);
}

void dgm_turn_get_whole_history(dgm_turns *turns, dgm_arena *a, dgm_owner owner, dgm_str agent,
                                dgm_str context_id, dgm_on_history on_history, void *arg)
{
    dgm_list_query q = {.owner = owner, .agent = agent, .context_id = context_id};
    look(turns, a, q, (struct looking_for){.whole = true}, on_history, arg);
}

void dgm_turn_get_shown_history(dgm_turns *turns, dgm_arena *a, dgm_owner owner, dgm_str agent,
                                dgm_str context_id, dgm_on_history on_history, void *arg)
{
    dgm_list_query q = {.owner = owner, .agent = agent, .context_id = context_id};
    look(turns, a, q, (struct looking_for){.whole = true, .artifacts = true}, on_history, arg);
}
