/*
 * backend/test_fake.h - a run without a core, for the tests of agents.
 *
 * It keeps what an agent emits: as a trace ("working chunk last completed"), as JSON, as texts, and
 * folded the strict way, where every fault is one. Agents run on a loop of their own; the test looks
 * when the run has ended.
 */
#pragma once

#include "backend/backend_int.h"
#include "model/fold.h"
#include "model/form.h"
#include "model/record.h"
#include "model/stamp.h"
#include "support/check.h"

#include <signal.h>

#define MAX_EVENTS 20000

/* Heads of answers, for scripted servers. */
#define JSON_HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
#define SSE_HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"

struct fake {
    dgm_run run; /* first */
    dgm_run_input input;
    dgm_message message;
    dgm_part part;
    dgm_str tenant, principal; /* of the caller */
    dgm_loops *loops;
    const dgm_backend *backend;
    void *agent;
    dgm_arena *arena;  /* of the run */
    dgm_arena *config; /* of the agent's settings */
    dgm_fold *fold;
    uv_sem_t ended;
    bool has_ended, has_started;
    size_t cancel_at;   /* cancel behind this many events; 0: never */
    uint64_t cancel_ms; /* ... or after this long */
    dgm_timer cancel_timer;
    size_t full_for; /* is_full returns true this many times */
    size_t n_asked_full;
    bool foreign, can_refuse;
    dgm_code refused;
    /* can_store: texts are stored (by scope), from one run to the next */
    bool can_store, is_resumed;
    dgm_buf stored[2];
    size_t n_events_before[2]; /* that were emitted before the text was given to be stored */
    /* what came */
    dgm_buf trace, events, stream, final, indicators, notes;
    size_t n_events, n_text_in_working, n_first, n_last, n_chunks, n_messages;
    bool is_task, has_final, is_open; /* is_open: a text was begun and not closed */
    dgm_task_state state;
    char fault[500]; /* the first one */
    char error[500]; /* given to end */
    uint64_t ms;     /* it took */
};

static inline void fake_word(struct fake *f, const char *word)
{
    if (f->trace.n > 0)
        dgm_buf_add_char(&f->trace, ' ');
    dgm_buf_add_str(&f->trace, dgm_str_from(word));
}

static inline void fake_fault(struct fake *f, const char *what)
{
    if (!f->fault[0])
        snprintf(f->fault, sizeof f->fault, "%s", what);
}

static inline void fake_text(dgm_buf *to, const dgm_parts *parts)
{
    for (size_t i = 0; i < parts->n; i++) {
        if (parts->at[i].kind == DGM_PART_TEXT)
            dgm_buf_add_str(to, parts->at[i].content);
    }
}

static const char *const fake_states[DGM_N_STATES] = {
    "unknown",  "submitted",      "working",  "completed",     "failed",
    "canceled", "input-required", "rejected", "auth-required",
};

static inline void fake_status(struct fake *f, const dgm_status_update *u)
{
    char word[40];
    const dgm_message *m = u->status.message;
    snprintf(word, sizeof word, "%s%s", fake_states[u->status.state],
             u->status.state == DGM_STATE_WORKING && m ? "+" : "");
    fake_word(f, word);
    f->state = u->status.state;
    f->has_final = m && u->status.state != DGM_STATE_WORKING;
    dgm_buf_clear(&f->final);
    if (f->has_final)
        fake_text(&f->final, &m->parts);
    if (m && u->status.state == DGM_STATE_WORKING) {
        for (size_t i = 0; i < m->parts.n; i++) {
            const dgm_part *p = &m->parts.at[i];
            f->n_text_in_working += p->kind == DGM_PART_TEXT;
            if (p->kind == DGM_PART_DATA) {
                if (f->indicators.n)
                    dgm_buf_add_char(&f->indicators, '|');
                dgm_json_put(&f->indicators, p->data);
            }
        }
    }
    if (dgm_state_is_terminal(f->state) && f->is_open)
        fake_fault(f, "a text was left open");
}

static inline void fake_artifact(struct fake *f, const dgm_artifact_update *u)
{
    bool text = u->artifact.parts.n > 0 && u->artifact.parts.at[0].kind == DGM_PART_TEXT;
    bool last = u->last_chunk == DGM_TRUE, append = u->append == DGM_TRUE;
    if (!text) {
        fake_word(f, "artifact");
        return;
    }
    fake_word(f, last ? "last" : "chunk");
    f->n_chunks++;
    f->n_first += !append;
    f->n_last += last;
    if (append != f->is_open)
        fake_fault(f, "first chunk and append do not agree");
    f->is_open = !last;
    fake_text(&f->stream, &u->artifact.parts);
}

static inline dgm_code fake_add(struct fake *f, const dgm_event *e, dgm_author author, dgm_err *err)
{
    dgm_writer w = {.out = &f->events, .format = DGM_FORMAT_A2A_10};
    dgm_code rc = dgm_fold_add(f->fold, e, author, err);
    dgm_form_write_event(&w, e);
    dgm_buf_add_char(&f->events, '\n');
    if (rc && !f->foreign)
        fake_fault(f, err->msg);
    return rc;
}

static inline void fake_begin_task(struct fake *f, dgm_err *err)
{
    dgm_task task = {
        .id = f->input.task_id,
        .context_id = f->input.context_id,
        .status = {.state = DGM_STATE_SUBMITTED, .timestamp = DGM_STR("2026-01-02T03:04:05Z")},
        .history = {&f->message, 1},
    };
    dgm_event e = {.kind = DGM_EVENT_TASK, .task = &task};
    f->is_task = true;
    fake_add(f, &e, DGM_BY_SERVER, err);
}

static void fake_do_cancel(void *arg)
{
    struct fake *f = arg;
    if (f->has_ended || f->run.canceled)
        return;
    f->run.canceled = true;
    f->backend->cancel(f->agent, &f->run);
}

static dgm_code fake_emit(dgm_run *run, const dgm_event *event, dgm_err *err)
{
    struct fake *f = (struct fake *)run;
    dgm_err mine = {0};
    dgm_arena *a = dgm_arena_new();
    dgm_event e = *event;
    dgm_status_update status;
    dgm_artifact_update artifact;
    dgm_message message;
    dgm_internal internal;
    dgm_task task;
    dgm_code rc = DGM_OK;
    err = err ? err : &mine;
    if (f->has_ended)
        fake_fault(f, "an event after the end");
    if (f->is_task && dgm_state_is_terminal(f->state)) {
        fake_word(f, "(late)");
        dgm_arena_free(a);
        return DGM_OK;
    }
    if (f->n_messages > 0) {
        fake_fault(f, "an event after the Message");
        dgm_arena_free(a);
        return dgm_fail(err, DGM_INVALID_AGENT_RESPONSE, NULL, "nothing follows a Message");
    }
    f->n_events++;
    if (event->kind == DGM_EVENT_MESSAGE || event->kind == DGM_EVENT_STATUS) {
        const dgm_message *m =
            event->kind == DGM_EVENT_MESSAGE ? event->message : event->status->status.message;
        if (m) {
            message = *m;
            message.message_id = dgm_arena_printf(a, "m%zu", f->n_events);
            message.context_id = f->input.context_id;
            if (message.role != DGM_ROLE_AGENT)
                fake_fault(f, "a message that is not the agent's");
            if (message.parts.n == 0)
                fake_fault(f, "a message without parts");
            e.message = &message;
        }
    }
    if (event->kind == DGM_EVENT_MESSAGE) {
        fake_word(f, "message");
        f->n_messages++;
        if (f->is_task)
            fake_fault(f, "a message in a task");
        dgm_buf_clear(&f->final);
        fake_text(&f->final, &message.parts);
        f->has_final = true;
        dgm_writer w = {.out = &f->events, .format = DGM_FORMAT_A2A_10};
        dgm_form_write_event(&w, &e);
        dgm_arena_free(a);
        return DGM_OK;
    }
    if (!f->is_task && event->kind != DGM_EVENT_TASK)
        fake_begin_task(f, err);
    if (event->kind == DGM_EVENT_TASK) {
        task = *event->task;
        task.id = f->input.task_id;
        task.context_id = f->input.context_id;
        e.task = &task;
        f->is_task = true;
        f->state = task.status.state;
        fake_word(f, "task");
        rc = fake_add(f, &e, DGM_BY_AGENT, err);
    } else if (event->kind == DGM_EVENT_STATUS) {
        status = *event->status;
        status.task_id = f->input.task_id;
        status.context_id = f->input.context_id;
        if (status.status.message)
            status.status.message = &message;
        status.status.timestamp = DGM_STR("2026-01-02T03:04:05Z");
        e.status = &status;
        if (!(rc = fake_add(f, &e, DGM_BY_AGENT, err)))
            fake_status(f, &status);
    } else if (event->kind == DGM_EVENT_ARTIFACT) {
        artifact = *event->artifact;
        artifact.task_id = f->input.task_id;
        artifact.context_id = f->input.context_id;
        e.artifact = &artifact;
        if (!(rc = fake_add(f, &e, DGM_BY_AGENT, err)))
            fake_artifact(f, &artifact);
    } else if (event->kind == DGM_EVENT_INTERNAL) {
        internal = *event->internal;
        internal.task_id = f->input.task_id;
        e.internal = &internal;
        fake_word(f, "internal");
        rc = fake_add(f, &e, DGM_BY_AGENT, err);
    }
    if (f->cancel_at && f->n_events == f->cancel_at)
        dgm_loop_post(f->run.loop, fake_do_cancel, f);
    dgm_arena_free(a);
    return rc;
}

static void fake_finish(void *arg)
{
    struct fake *f = arg;
    uv_sem_post(&f->ended);
}

static void fake_end(dgm_run *run, const char *error)
{
    struct fake *f = (struct fake *)run;
    if (f->has_ended)
        fake_fault(f, "ended twice");
    f->has_ended = true;
    if (error)
        snprintf(f->error, sizeof f->error, "%s", error);
    if (f->is_task ? !dgm_state_is_terminal(f->state) && !dgm_state_is_interrupted(f->state)
                   : f->n_messages == 0)
        fake_word(f, error ? "(failed)" : run->canceled ? "(canceled)" : "(completed)");
    f->ms = uv_now(&run->loop->uv) - f->ms;
    dgm_timer_close(&f->cancel_timer, fake_finish, f);
}

static bool fake_is_full(const dgm_run *run)
{
    struct fake *f = (struct fake *)(uintptr_t)run;
    f->n_asked_full++;
    if (f->full_for == 0)
        return false;
    f->full_for--;
    return true;
}

static void fake_note(dgm_run *run, dgm_str line)
{
    struct fake *f = (struct fake *)run;
    dgm_buf_add_str(&f->notes, line);
    dgm_buf_add_char(&f->notes, '\n');
}

static void fake_report(dgm_run *run, const dgm_run_fault *fault)
{
    struct fake *f = (struct fake *)run;
    if (f->has_ended)
        fake_fault(f, "a fault after the end");
    dgm_buf_printf(&f->notes, "fault: %.*s; %.*s; %.*s\n", DGM_P(fault->what), DGM_P(fault->detail),
                   DGM_P(fault->output));
}

static void fake_refuse(dgm_run *run, const dgm_err *error)
{
    struct fake *f = (struct fake *)run;
    if (f->n_events)
        fake_fault(f, "refused after an event");
    f->refused = error->code;
    fake_word(f, "(refused)");
    f->is_task = true; /* as far as fake_end is concerned */
    f->state = DGM_STATE_FAILED;
    fake_end(run, error->msg);
    f->is_task = false;
}

static const dgm_run_ops fake_ops = {.emit = fake_emit,
                                     .end = fake_end,
                                     .is_full = fake_is_full,
                                     .note = fake_note,
                                     .fault = fake_report};
static const dgm_run_ops fake_refusing_ops = {.emit = fake_emit,
                                              .end = fake_end,
                                              .is_full = fake_is_full,
                                              .note = fake_note,
                                              .refuse = fake_refuse,
                                              .fault = fake_report};

/* ---- stored texts */

struct fake_answer {
    struct fake *fake;
    dgm_arena *arena; /* of the run: a later run is another one */
    dgm_run_scope scope;
    bool remembers;
    void (*stored)(void *arg, dgm_code code);
    void (*found)(void *arg, dgm_str text);
    void *arg;
};

static void fake_do_answer(void *arg)
{
    struct fake_answer *x = arg;
    struct fake *f = x->fake;
    bool is_over = f->has_ended || f->arena != x->arena;
    if (x->remembers) {
        if (x->stored && !is_over)
            x->stored(x->arg, DGM_OK);
    } else if (!is_over) {
        x->found(x->arg, f->stored[x->scope].n ? dgm_buf_str(&f->stored[x->scope]) : (dgm_str){0});
    }
    free(x);
}

static void fake_remember(dgm_run *run, dgm_run_scope scope, dgm_str text,
                          void (*stored)(void *arg, dgm_code code), void *arg)
{
    struct fake *f = (struct fake *)run;
    struct fake_answer *x = dgm_xcalloc(1, sizeof *x);
    *x = (struct fake_answer){.fake = f,
                              .arena = f->arena,
                              .scope = scope,
                              .remembers = true,
                              .stored = stored,
                              .arg = arg};
    dgm_buf_clear(&f->stored[scope]);
    dgm_buf_add_str(&f->stored[scope], text);
    f->n_events_before[scope] = f->n_events;
    dgm_loop_post(run->loop, fake_do_answer, x);
}

static void fake_recall(dgm_run *run, dgm_run_scope scope, void (*found)(void *arg, dgm_str text),
                        void *arg)
{
    struct fake *f = (struct fake *)run;
    struct fake_answer *x = dgm_xcalloc(1, sizeof *x);
    *x = (struct fake_answer){
        .fake = f, .arena = f->arena, .scope = scope, .found = found, .arg = arg};
    dgm_loop_post(run->loop, fake_do_answer, x);
}

static void fake_commit(dgm_run *run, void (*done)(void *arg, dgm_code code), void *arg)
{
    struct fake *f = (struct fake *)run;
    struct fake_answer *x = dgm_xcalloc(1, sizeof *x);
    *x = (struct fake_answer){
        .fake = f, .arena = f->arena, .remembers = true, .stored = done, .arg = arg};
    dgm_loop_post(run->loop, fake_do_answer, x);
}

/* Records are not stored: the number of events is that of the last record. */
static uint64_t fake_review(dgm_run *run, uint64_t after, const dgm_task **ret_task,
                            void (*on_event)(void *arg, const dgm_event *event), void *arg)
{
    const struct fake *f = (const struct fake *)run;
    (void)after, (void)on_event, (void)arg;
    *ret_task = dgm_fold_task(f->fold);
    return f->n_events;
}

static const dgm_run_ops fake_storing_ops = {.emit = fake_emit,
                                             .end = fake_end,
                                             .is_full = fake_is_full,
                                             .note = fake_note,
                                             .fault = fake_report,
                                             .remember = fake_remember,
                                             .recall = fake_recall,
                                             .commit = fake_commit,
                                             .review = fake_review};

/* ---- messages while it works */

struct fake_message {
    struct fake *fake;
    const char *id, *text;
    bool is_accepted;
    uv_sem_t done;
};

static void fake_do_message(void *arg)
{
    struct fake_message *x = arg;
    struct fake *f = x->fake;
    dgm_part part = {.kind = DGM_PART_TEXT, .content = dgm_str_from(x->text)};
    dgm_message m = {.message_id = dgm_str_from(x->id),
                     .context_id = f->input.context_id,
                     .task_id = f->input.task_id,
                     .role = DGM_ROLE_USER,
                     .parts = {&part, 1}};
    x->is_accepted = !f->has_ended && !f->run.canceled && f->backend->message &&
                     f->backend->message(f->agent, &f->run, &m, NULL);
    uv_sem_post(&x->done);
}

/* Offers a message to the run that works, as the core does. Not from a loop. */
static inline bool fake_offer(struct fake *f, const char *id, const char *text)
{
    struct fake_message x = {.fake = f, .id = id, .text = text};
    uv_sem_init(&x.done, 0);
    dgm_loop_post(f->run.loop, fake_do_message, &x);
    uv_sem_wait(&x.done);
    uv_sem_destroy(&x.done);
    return x.is_accepted;
}

static void fake_do_start(void *arg)
{
    struct fake *f = arg;
    uv_update_time(&f->run.loop->uv);
    f->ms = uv_now(&f->run.loop->uv);
    dgm_timer_init(f->run.loop, &f->cancel_timer, fake_do_cancel, f);
    if (f->cancel_ms)
        dgm_timer_start(&f->cancel_timer, f->cancel_ms);
    f->backend->start(f->agent, &f->run);
}

/* ' becomes ": JSON is easier to read so in a C string. */
static inline void fake_double_quotes(char *text)
{
    for (; *text; text++)
        *text = *text == '\'' ? '"' : *text;
}

/* text: JSON with ' for " */
static inline yyjson_val *fake_json(dgm_arena *a, const char *text)
{
    dgm_str s = dgm_arena_dup(a, dgm_str_from(text));
    fake_double_quotes((char *)(uintptr_t)s.p);
    return dgm_json_parse_trusted(a, s);
}

/* config: JSON with ' for "; options may be NULL */
static inline struct fake *fake_open(const char *type, const char *config,
                                     const dgm_agent_options *options)
{
    struct fake *f = dgm_xcalloc(1, sizeof *f);
    dgm_err err = {0};
    signal(SIGPIPE, SIG_IGN);
    f->config = dgm_arena_new();
    f->backend = dgm_backend_by_type(dgm_str_from(type));
    assert_non_null(f->backend);
    yyjson_val *value = NULL;
    if (config)
        value = fake_json(f->config, config);
    check_ok(f->backend->open(value, options, &f->agent, &err), err);
    check_ok(dgm_loops_new(1, &f->loops, &err), err);
    check_ok(dgm_loops_start(f->loops, &err), err);
    f->foreign = f->backend->foreign;
    f->fold = dgm_fold_new((dgm_fold_options){.foreign = f->foreign});
    uv_sem_init(&f->ended, 0);
    dgm_buf_init(&f->stored[0], SIZE_MAX);
    dgm_buf_init(&f->stored[1], SIZE_MAX);
    return f;
}

/* The next run is that of another task; what is stored of the context remains. */
static inline void fake_new_task(struct fake *f)
{
    dgm_fold_free(f->fold);
    f->fold = dgm_fold_new((dgm_fold_options){.foreign = f->foreign});
    f->has_started = f->is_task = false;
    dgm_buf_clear(&f->stored[DGM_RUN_TASK]);
}

static inline bool fake_has(const dgm_buf *b, const char *text)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    return strstr(dgm_arena_dup(a, dgm_buf_str(b)).p, text);
}

static inline void fake_forget(struct fake *f)
{
    dgm_buf *all[] = {&f->trace, &f->events, &f->stream, &f->final, &f->indicators, &f->notes};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        dgm_buf_done(all[i]);
        dgm_buf_init(all[i], SIZE_MAX);
    }
    f->n_events = f->n_text_in_working = f->n_first = f->n_last = f->n_chunks = f->n_messages = 0;
    f->is_task = f->has_final = f->is_open = f->has_ended = false;
    f->n_asked_full = 0;
    f->fault[0] = f->error[0] = '\0';
}

static inline void fake_prepare(struct fake *f, const char *message_id, const char *text)
{
    dgm_err err = {0};
    const dgm_task *before = f->has_started && f->is_task ? dgm_fold_task(f->fold) : NULL;
    fake_forget(f);
    dgm_arena_free(f->arena);
    f->arena = dgm_arena_new();
    f->part = (dgm_part){.kind = DGM_PART_TEXT, .content = dgm_str_from(text)};
    f->message = (dgm_message){
        .message_id = dgm_str_from(message_id),
        .role = DGM_ROLE_USER,
        .context_id = DGM_STR("ctx-1"),
        .task_id = DGM_STR("task-1"),
        .parts = {&f->part, 1},
    };
    f->input = (dgm_run_input){
        .message = &f->message,
        .task_id = DGM_STR("task-1"),
        .context_id = DGM_STR("ctx-1"),
        .agent = DGM_STR("agent-1"),
        .tenant = f->tenant,
        .principal = f->principal,
        .is_resumed = f->is_resumed,
    };
    memset(f->n_events_before, 0, sizeof f->n_events_before);
    if (before) {
        dgm_buf scratch;
        dgm_record *record;
        dgm_event e = {.kind = DGM_EVENT_TASK, .task = (dgm_task *)(uintptr_t)before};
        dgm_buf_init(&scratch, SIZE_MAX);
        check_ok(dgm_record_new(&e, (dgm_record_head){.seq = 1}, &scratch, &record, &err), err);
        check_ok(dgm_record_event(record, f->arena, &e, &err), err);
        f->input.task = e.task;
        f->state = e.task->status.state;
        f->is_task = true;
        dgm_record_unref(record);
        dgm_buf_done(&scratch);
        dgm_internal said = {.kind = DGM_INTERNAL_MESSAGE, .message = &f->message};
        dgm_event user = {.kind = DGM_EVENT_INTERNAL, .internal = &said};
        check_ok(dgm_fold_add(f->fold, &user, DGM_BY_SERVER, &err), err);
    } else {
        f->state = DGM_STATE_UNKNOWN;
    }
    f->run = (dgm_run){
        .ops = f->can_refuse  ? &fake_refusing_ops
               : f->can_store ? &fake_storing_ops
                              : &fake_ops,
        .input = &f->input,
        .loop = dgm_loops_at(f->loops, 0),
        .arena = f->arena,
    };
    f->has_started = true;
}

/* The run of fake_prepare, to its end. */
static inline void fake_run_prepared(struct fake *f)
{
    dgm_loop_post(f->run.loop, fake_do_start, f);
    uv_sem_wait(&f->ended);
}

/* One run, to its end. A second one on the same fake goes on with its task. */
static inline void fake_run_with(struct fake *f, const char *message_id, const char *text)
{
    fake_prepare(f, message_id, text);
    fake_run_prepared(f);
}

static inline void fake_run(struct fake *f, const char *text)
{
    fake_run_with(f, "msg-1", text);
}

static inline void fake_close(struct fake *f)
{
    dgm_loops_free(f->loops);
    f->backend->close(f->agent);
    fake_forget(f);
    dgm_fold_free(f->fold);
    dgm_arena_free(f->arena);
    dgm_arena_free(f->config);
    uv_sem_destroy(&f->ended);
    dgm_buf_done(&f->stored[0]);
    dgm_buf_done(&f->stored[1]);
    free(f);
}

/* What must hold for every run of every agent of ours. */
static inline void fake_check_(struct fake *f, const char *file, int line)
{
    if (f->fault[0] || f->n_text_in_working || dgm_fold_n_warnings(f->fold) ||
        (f->is_task && f->n_first != f->n_last)) {
        print_error("fault \"%s\", %zu texts in working, %zu first and %zu last chunks, %zu "
                    "warnings (%s)\n%.*s\n",
                    f->fault, f->n_text_in_working, f->n_first, f->n_last,
                    dgm_fold_n_warnings(f->fold), dgm_fold_warning(f->fold)->msg,
                    DGM_P(dgm_buf_str(&f->events)));
        _fail(file, line);
    }
}
#define fake_check(f) fake_check_((f), __FILE__, __LINE__)

/* A text answer, checked in three places: streamed, in the final status, folded in the Task. */
static inline void fake_check_text_(struct fake *f, const char *file, int line)
{
    const dgm_task *task = dgm_fold_task(f->fold);
    dgm_buf folded;
    dgm_buf_init(&folded, SIZE_MAX);
    for (size_t i = 0; task && i < task->artifacts.n; i++)
        fake_text(&folded, &task->artifacts.at[i].parts);
    check_bytes_(f->stream.p, f->stream.n, folded.p, folded.n, file, line);
    check_bytes_(f->final.p, f->final.n, f->stream.p, f->stream.n, file, line);
    dgm_buf_clear(&folded);
    if (task && task->status.message)
        fake_text(&folded, &task->status.message->parts);
    check_bytes_(folded.p, folded.n, f->final.p, f->final.n, file, line);
    dgm_buf_done(&folded);
}
#define fake_check_text(f) fake_check_text_((f), __FILE__, __LINE__)

#define check_trace(f, want) check_str((f)->trace, (want))
