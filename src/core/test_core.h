/*
 * core/test_core.h - a core in a test: an agent that does what the message asks for, and callers on several loops.
 *
 * Every test runs on both stores: ON_BOTH.
 */
#pragma once

#include "backend/backend.h"
#include "core/core.h"
#include "core/core_int.h"
#include "model/form.h"
#include "store/store.h"
#include "support/check.h"

#include <sched.h>
#include <semaphore.h>

#define N_LOOPS 3

/* ---- an agent that does what the message asks for ----------------------------------------------------- */

static dgm_run *_Atomic held; /* by "hold", until the test lets it go */
static _Atomic int n_started, n_canceled;

static inline void status(dgm_run *run, dgm_task_state state, const char *text)
{
    dgm_part part = {.kind = DGM_PART_TEXT, .content = dgm_str_from(text)};
    dgm_message message = {.role = DGM_ROLE_AGENT, .parts = {&part, 1}};
    dgm_status_update u = {.task_id = DGM_STR("not mine to say"),
                           .status = {.state = state, .message = text ? &message : NULL}};
    dgm_event e = {.kind = DGM_EVENT_STATUS, .status = &u};
    dgm_err err = {0};
    if (run->ops->emit(run, &e, &err))
        fail_msg("emit: %s", err.msg);
}

static inline dgm_code chunk(dgm_run *run, const char *text, bool append, bool last)
{
    dgm_part part = {.kind = DGM_PART_TEXT, .content = dgm_str_from(text)};
    dgm_artifact_update u = {.artifact = {.artifact_id = DGM_STR("a"), .parts = {&part, 1}},
                             .append = append ? DGM_TRUE : DGM_FALSE,
                             .last_chunk = last ? DGM_TRUE : DGM_FALSE};
    dgm_event e = {.kind = DGM_EVENT_ARTIFACT, .artifact = &u};
    return run->ops->emit(run, &e, NULL);
}

/* Asks for n calls: this id, or for several this id and a number. */
static inline void ask_for_calls(dgm_run *run, dgm_task_state state, dgm_str id, int n)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_record *record = NULL;
    dgm_event e;
    dgm_buf b;
    dgm_buf_init(&b, (size_t)1 << 20);
    dgm_buf_add_lit(&b,
                    "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":"
                    "\"TASK_STATE_INPUT_REQUIRED\",\"message\":{\"messageId\":\"q\",\"role\":"
                    "\"ROLE_AGENT\",\"parts\":[{\"data\":{\"tool_calls\":[");
    for (int i = 0; i < n; i++)
        dgm_buf_printf(&b, "%s{\"call_id\":\"%.*s%.0d\",\"name\":\"f\"}", i ? "," : "", DGM_P(id),
                       i);
    dgm_buf_add_lit(&b, "]}}]}}}}");
    dgm_record_head head = {.seq = 1, .kind = DGM_EVENT_STATUS};
    assert_int_equal(dgm_record_from_bytes(head, dgm_buf_str(&b), &record, NULL), DGM_OK);
    assert_int_equal(dgm_record_event(record, a, &e, NULL), DGM_OK);
    e.status->status.state = state;
    assert_int_equal(run->ops->emit(run, &e, NULL), DGM_OK);
    dgm_record_unref(record);
    dgm_buf_done(&b);
}

static inline void agent_start(void *agent, dgm_run *run)
{
    dgm_str said = run->input->message->parts.at[0].content;
    (void)agent;
    n_started++;
    if (dgm_str_is(said, "message")) {
        dgm_part part = {.kind = DGM_PART_TEXT, .content = DGM_STR("hello")};
        dgm_message m = {.role = DGM_ROLE_AGENT, .parts = {&part, 1}};
        dgm_event e = {.kind = DGM_EVENT_MESSAGE, .message = &m};
        assert_int_equal(run->ops->emit(run, &e, NULL), DGM_OK);
        run->ops->end(run, NULL);
    } else if (said.n > 4 && strncmp(said.p, "call", 4) == 0) { /* "call x", "calls x" */
        bool many = said.p[4] == 's';
        dgm_str id = {said.p + 5 + many, said.n - 5 - many};
        ask_for_calls(run, many ? DGM_STATE_AUTH_REQUIRED : DGM_STATE_INPUT_REQUIRED, id,
                      many ? DGM_MAX_OPEN_CALLS + 1 : 1);
        run->ops->end(run, NULL);
    } else if (dgm_str_is(said, "chunks")) {
        status(run, DGM_STATE_WORKING, NULL);
        for (int i = 0; i < 200; i++)
            chunk(run, i ? "b" : "a", i > 0, i == 199);
        status(run, DGM_STATE_COMPLETED, "done");
        run->ops->end(run, NULL);
    } else if (dgm_str_is(said, "ask")) {
        status(run, DGM_STATE_INPUT_REQUIRED, "which one?");
        run->ops->end(run, NULL);
    } else if (dgm_str_is(said, "answer")) {
        assert_non_null(run->input->task);
        assert_int_equal(run->input->task->status.state, DGM_STATE_INPUT_REQUIRED);
        status(run, DGM_STATE_COMPLETED, "that one");
        run->ops->end(run, NULL);
    } else if (dgm_str_is(said, "fail")) {
        status(run, DGM_STATE_WORKING, NULL);
        run->ops->end(run, "it broke");
    } else if (dgm_str_is(said, "silent")) {
        run->ops->end(run, NULL);
    } else if (dgm_str_is(said, "flood")) {
        int n = 0;
        while (!chunk(run, "0123456789012345678901234567890123456789", n > 0, false))
            n++;
        run->ops->end(run, NULL);
    } else if (dgm_str_is(said, "refuse")) {
        dgm_err why = {0};
        dgm_fail(&why, DGM_CONTENT_TYPE_NOT_SUPPORTED, NULL, "I read no such thing");
        run->ops->note(run, DGM_STR("somebody tried"));
        run->ops->refuse(run, &why);
    } else if (dgm_str_is(said, "wordless")) { /* fails, and does not say why */
        status(run, DGM_STATE_FAILED, NULL);
        run->ops->end(run, NULL);
    } else if (dgm_str_is(said, "badly")) {
        status(run, DGM_STATE_WORKING, "is this the answer?");
        status(run, DGM_STATE_WORKING, "or this?");
        chunk(run, "x", true, false);
        chunk(run, "x", false, true);
        chunk(run, "x", true, true);
        status(run, DGM_STATE_COMPLETED, NULL);
        chunk(run, "x", true, true);
        run->ops->end(run, NULL);
    } else if (dgm_str_is(said, "quiet")) { /* emits nothing until the test lets it */
        held = run;
    } else if (dgm_str_is(said, "read")) { /* has read it before its first word */
        run->ops->has_read(run);
        status(run, DGM_STATE_WORKING, NULL);
        assert_null(run->input->message);
        assert_int_equal(run->input->task_id.n, 36);
        status(run, DGM_STATE_COMPLETED, "done");
        run->ops->end(run, NULL);
    } else { /* hold */
        status(run, DGM_STATE_WORKING, NULL);
        held = run;
    }
}

static inline void agent_cancel(void *agent, dgm_run *run)
{
    (void)agent;
    n_canceled++;
    held = NULL;
    run->ops->end(run, NULL);
}

static const dgm_backend scripted = {
    .type = "scripted", .start = agent_start, .cancel = agent_cancel};

/* ---- a server in a test ------------------------------------------------------------------------------------ */

struct env {
    dgm_loops *loops;
    dgm_store *store;
    dgm_core *core;
};

/* *state of a test says which store: memory, or a new database. */
static char dir[64];

static inline void store_url(void **state, char *url, size_t size)
{
    *dir = 0;
    if (strcmp(*state, "memory") == 0) {
        snprintf(url, size, "memory:");
        return;
    }
    snprintf(dir, sizeof dir, "/tmp/dgm-core-test-XXXXXX");
    if (!mkdtemp(dir))
        fail_msg("no folder for the database");
    snprintf(url, size, "sqlite:%s/db", dir);
}

static dgm_core_limits limits;
static size_t max_records, max_subscribers; /* 0: many */
static int64_t retention_ms;                /* 0: for ever */
static _Atomic int n_warned, n_notes;
static char last_rule[64];

static inline void on_warning(void *user, dgm_str task_id, const char *rule, const dgm_err *what)
{
    (void)user;
    assert_true(task_id.n == 36 && what->msg[0]);
    snprintf(last_rule, sizeof last_rule, "%s", rule);
    n_warned++;
}

static inline void on_note(void *user, dgm_str agent, dgm_str task_id, dgm_str line)
{
    (void)user, (void)task_id;
    assert_true(dgm_str_is(agent, "one") && line.n);
    n_notes++;
}

static const dgm_backend *backend_of_agents = &scripted;
static dgm_history_limits history_of_agents;
static int64_t keep_tasks_ms;

static inline void start_core(struct env *e, size_t max_log_bytes)
{
    const dgm_core_agent agents[] = {
        {.id = {"one", 3},
         .backend = backend_of_agents,
         .dedupe = true,
         .history = history_of_agents},
        {.id = {"two", 3}, .backend = backend_of_agents, .history = history_of_agents}};
    dgm_err err = {0};
    dgm_core_options o = {.loops = e->loops,
                          .store = e->store,
                          .agents = agents,
                          .n_agents = 2,
                          .limits = &limits,
                          .retention_ms = retention_ms,
                          .keep_tasks_ms = keep_tasks_ms,
                          .on_warning = on_warning,
                          .on_note = on_note};
    limits = (dgm_core_limits){max_log_bytes ? max_log_bytes : DGM_MAX_LOG_BYTES,
                               max_records ? max_records : DGM_MAX_LOG_RECORDS,
                               DGM_MAX_QUEUED_MESSAGES, max_subscribers ? max_subscribers : 1000};
    assert_int_equal(dgm_core_new(&o, &e->core, &err), DGM_OK);
}

static inline void start_env(struct env *e, void **state, size_t max_log_bytes)
{
    char url[96];
    dgm_err err = {0};
    *e = (struct env){0};
    n_started = n_canceled = n_warned = n_notes = 0;
    held = NULL;
    assert_int_equal(dgm_loops_new(N_LOOPS, &e->loops, &err), DGM_OK);
    store_url(state, url, sizeof url);
    if (dgm_store_open(url, &e->store, &err))
        fail_msg("%s", err.msg);
    start_core(e, max_log_bytes);
    assert_int_equal(dgm_loops_start(e->loops, &err), DGM_OK);
}

static inline void stop_env(struct env *e)
{
    dgm_loops_stop(e->loops);
    dgm_core_stop(e->core);
    dgm_store_close(e->store);
    dgm_loops_free(e->loops); /* what was still on its way is answered here */
    dgm_core_free(e->core);
    if (*dir) {
        char rm[80];
        snprintf(rm, sizeof rm, "rm -r %s", dir);
        assert_int_equal(system(rm), 0);
    }
}

/* As after a crash: the store is all that is left. A database is closed before the loops go, which its threads answer
 * to; the memory store answers from inside the call, and stays. */
static inline void restart(struct env *e)
{
    dgm_err err = {0};
    char url[96];
    dgm_loops_stop(e->loops);
    dgm_core_stop(e->core);
    if (*dir)
        dgm_store_close(e->store);
    dgm_loops_free(e->loops);
    if (*dir) {
        snprintf(url, sizeof url, "sqlite:%s/db", dir);
        if (dgm_store_open(url, &e->store, &err))
            fail_msg("%s", err.msg);
    }
    dgm_core_free(e->core);
    assert_int_equal(dgm_loops_new(N_LOOPS, &e->loops, &err), DGM_OK);
    start_core(e, 0);
    assert_int_equal(dgm_loops_start(e->loops, &err), DGM_OK);
}

/* Runs a function on a loop and waits for a callback to say that it is done. */
struct step {
    struct env *e;
    sem_t done;
    void (*fn)(struct step *s);
    /* what goes in */
    dgm_owner owner;
    dgm_str text, task_id, context_id, message_id, agent;
    dgm_str protocol, caller_id, request, previous;
    bool always_new, keep_turn;
    uint64_t answer_ms;
    _Atomic uint64_t number; /* of the send */
    uint64_t cursor;
    /* what comes out; texts in the step's own memory */
    dgm_code code;
    dgm_err err;
    char task[64], context[64];
    dgm_log *log;
    uint64_t after, first_seq;
    uint32_t turn;
    dgm_record *snapshot;
    bool is_message, is_resend;
    dgm_log_reader *reader;
    dgm_record *records[4096];
    size_t n;
    bool until_question;
};

static inline void run_fn(void *arg)
{
    struct step *s = arg;
    s->fn(s);
}

static inline void post_step(struct env *e, struct step *s, size_t loop, void (*fn)(struct step *))
{
    s->e = e;
    s->fn = fn;
    sem_init(&s->done, 0, 0);
    dgm_loop_post(dgm_loops_at(e->loops, loop % N_LOOPS), run_fn, s);
}

static inline void do_step(struct env *e, struct step *s, size_t loop, void (*fn)(struct step *))
{
    post_step(e, s, loop, fn);
    sem_wait(&s->done);
}

static inline void clear(struct step *s)
{
    dgm_log_unref(s->log);
    dgm_record_unref(s->snapshot);
    for (size_t i = 0; i < s->n; i++)
        dgm_record_unref(s->records[i]);
    free(s);
}

static inline struct step *new_step(void)
{
    return calloc(1, sizeof(struct step));
}

static inline void on_sent(dgm_code code, const dgm_sent *sent, const dgm_err *err, void *arg)
{
    struct step *s = arg;
    s->code = code;
    if (code) {
        s->err = *err;
    } else {
        s->log = dgm_log_ref(sent->log);
        s->after = sent->after;
        s->first_seq = sent->first_seq;
        s->turn = sent->turn;
        s->snapshot = sent->snapshot ? dgm_record_ref(sent->snapshot) : NULL;
        s->is_message = sent->is_message;
        s->is_resend = sent->is_resend;
        snprintf(s->task, sizeof s->task, "%.*s", DGM_P(sent->task_id));
        snprintf(s->context, sizeof s->context, "%.*s", DGM_P(sent->context_id));
        assert_true(sent->log->published > sent->after || sent->snapshot);
    }
    sem_post(&s->done);
}

static inline void send_it(struct step *s)
{
    dgm_part part = {.kind = DGM_PART_TEXT, .content = s->text};
    dgm_message m = {.message_id = s->message_id,
                     .role = DGM_ROLE_USER,
                     .parts = {&part, 1},
                     .task_id = s->task_id,
                     .context_id = s->context_id};
    dgm_send send = {.owner = s->owner,
                     .agent = s->agent,
                     .message = &m,
                     .protocol = s->protocol.n ? s->protocol : DGM_STR("a2a"),
                     .caller_id = s->caller_id,
                     .request = s->request,
                     .previous = s->previous,
                     .keep_turn = s->keep_turn,
                     .answer_ms = s->answer_ms,
                     .always_new = s->always_new};
    s->number = dgm_core_send(s->e->core, &send, on_sent, s);
}

static inline struct step *send_text(struct env *e, const char *text, const char *task,
                                     const char *context)
{
    static _Atomic int n;
    struct step *s = new_step();
    char id[32];
    snprintf(id, sizeof id, "m-%d", ++n);
    s->text = dgm_str_from(text);
    s->task_id = dgm_str_from(task);
    s->context_id = dgm_str_from(context);
    s->message_id = dgm_str_from(id);
    do_step(e, s, (size_t)n, send_it);
    return s;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static inline void on_ready(void *arg)
{
    struct step *s = arg;
    dgm_record *r;
    bool asked = false;
    while ((r = dgm_log_reader_next(s->reader))) {
        s->records[s->n++] = dgm_record_ref(r);
        asked = asked || r->head.state == DGM_STATE_INPUT_REQUIRED;
    }
    if (dgm_log_reader_is_over(s->reader) || (asked && s->until_question)) {
        dgm_log_reader_close(s->reader);
        sem_post(&s->done);
    }
}

static inline void open_it(struct step *s)
{
    s->reader = dgm_log_reader_open(s->log, s->after, on_ready, s);
}

static inline void read_all(struct env *e, struct step *s, size_t loop)
{
    do_step(e, s, loop, open_it);
}

static inline dgm_task read_task(dgm_arena *a, const dgm_record *snapshot)
{
    dgm_event e;
    dgm_err err = {0};
    assert_non_null(snapshot);
    if (dgm_record_event(snapshot, a, &e, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(e.kind, DGM_EVENT_TASK);
    return *e.task;
}

static inline void on_task(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    struct step *s = arg;
    s->code = code;
    if (code)
        s->err = *err;
    else
        s->snapshot = dgm_record_ref(snapshot);
    sem_post(&s->done);
}

static inline void get_it(struct step *s)
{
    dgm_core_get(s->e->core, s->owner, s->agent, s->task_id, on_task, s);
}

static inline void cancel_it(struct step *s)
{
    dgm_core_cancel(s->e->core, s->owner, s->agent, s->task_id, on_task, s);
}

static inline void on_recovered(dgm_code code, const dgm_err *err, void *arg)
{
    struct step *s = arg;
    s->code = code;
    if (code)
        s->err = *err;
    sem_post(&s->done);
}

static inline void recover_it(struct step *s)
{
    dgm_core_recover(s->e->core, on_recovered, s);
}

/* After restart(): settles or resumes the tasks that the restart interrupted. */
static inline void recover_tasks(struct env *e)
{
    struct step *s = new_step();
    do_step(e, s, 0, recover_it);
    check_ok(s->code, s->err);
    clear(s);
}

static inline void on_subscribed(dgm_code code, dgm_log *log, uint64_t after, dgm_record *snapshot,
                                 const dgm_err *err, void *arg)
{
    struct step *s = arg;
    s->code = code;
    if (code) {
        s->err = *err;
    } else {
        s->log = dgm_log_ref(log);
        s->after = after;
        s->snapshot = snapshot ? dgm_record_ref(snapshot) : NULL;
    }
    sem_post(&s->done);
}

static inline void subscribe_it(struct step *s)
{
    dgm_core_subscribe(s->e->core, s->owner, s->agent, s->task_id, s->cursor, on_subscribed, s);
}

static inline struct step *ask(struct env *e, const char *task, const char *principal,
                               void (*fn)(struct step *), uint64_t cursor)
{
    static size_t n;
    struct step *s = new_step();
    s->task_id = dgm_str_from(task);
    s->owner.principal = dgm_str_from(principal);
    s->cursor = cursor;
    do_step(e, s, ++n, fn);
    return s;
}

static inline void let_it_ask(void *arg)
{
    dgm_run *run = arg;
    held = NULL;
    status(run, DGM_STATE_INPUT_REQUIRED, "what now?");
    run->ops->end(run, NULL);
}

/* The one that holds asks a question and ends: what waits for it goes on. */
static inline void release(void)
{
    dgm_run *run = held;
    assert_non_null(run);
    dgm_loop_post(run->loop, let_it_ask, run);
}

static inline struct step *say(struct env *e, const char *id, const char *text, const char *task)
{
    static size_t n;
    struct step *s = new_step();
    s->text = dgm_str_from(text);
    s->message_id = dgm_str_from(id);
    s->task_id = dgm_str_from(task);
    do_step(e, s, ++n, send_it);
    return s;
}

/* ---- the program ----------------------------------------------------------------------------------------------- */

#define ON_BOTH(fn)                                                                                \
    dgm_test_with("memory: " #fn, fn, "memory"), dgm_test_with("sqlite: " #fn, fn, "sqlite")
#define ON_BOTH_HOLDS(fn, ids)                                                                     \
    dgm_test_with("memory: " #fn " [" ids "]", fn, "memory"),                                      \
        dgm_test_with("sqlite: " #fn " [" ids "]", fn, "sqlite")
