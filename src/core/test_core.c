/*
 * core/test_core.c - sends, reads, cancels against the memory store, with an agent that does as it is
 * told and callers on several loops.
 */
#include "core/core.h"
#include "core/core_int.h"
#include "model/form.h"
#include "support/check.h"

#include <sched.h>
#include <semaphore.h>

#define N_LOOPS 3

/* ---- an agent that does as it is told ------------------------------------------------------------------ */

static dgm_run *_Atomic held; /* by "hold", until the test lets it go */
static _Atomic int n_started, n_canceled;

static void status(dgm_run *run, dgm_task_state state, const char *text)
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

static dgm_code chunk(dgm_run *run, const char *text, bool append, bool last)
{
    dgm_part part = {.kind = DGM_PART_TEXT, .content = dgm_str_from(text)};
    dgm_artifact_update u = {.artifact = {.artifact_id = DGM_STR("a"), .parts = {&part, 1}},
                             .append = append ? DGM_TRUE : DGM_FALSE,
                             .last_chunk = last ? DGM_TRUE : DGM_FALSE};
    dgm_event e = {.kind = DGM_EVENT_ARTIFACT, .artifact = &u};
    return run->ops->emit(run, &e, NULL);
}

static void agent_start(void *agent, dgm_run *run)
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
    } else { /* hold */
        status(run, DGM_STATE_WORKING, NULL);
        held = run;
    }
}

static void agent_cancel(void *agent, dgm_run *run)
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

/* test_core_sqlite.c runs the same tests on a file. */
#ifndef STORE_URL
#define STORE_URL store_url
static const char *store_url(void)
{
    return "memory:";
}
#endif

static dgm_core_limits limits;
static size_t max_records, max_subscribers; /* 0: many */
static _Atomic int n_warned, n_notes;
static char last_rule[64];

static void on_warning(void *user, dgm_str task_id, const char *rule, const dgm_err *what)
{
    (void)user;
    assert_true(task_id.n == 36 && what->msg[0]);
    snprintf(last_rule, sizeof last_rule, "%s", rule);
    n_warned++;
}

static void on_note(void *user, dgm_str agent, dgm_str task_id, dgm_str line)
{
    (void)user, (void)task_id;
    assert_true(dgm_str_is(agent, "one") && line.n);
    n_notes++;
}

static void start_core(struct env *e, size_t max_log_bytes)
{
    static const dgm_core_agent agents[] = {
        {.id = {"one", 3}, .backend = &scripted, .dedupe = true},
        {.id = {"two", 3}, .backend = &scripted}};
    dgm_err err = {0};
    dgm_core_options o = {.loops = e->loops,
                          .store = e->store,
                          .agents = agents,
                          .n_agents = 2,
                          .limits = &limits,
                          .on_warning = on_warning,
                          .on_note = on_note};
    limits = (dgm_core_limits){max_log_bytes ? max_log_bytes : DGM_MAX_LOG_BYTES,
                               max_records ? max_records : DGM_MAX_LOG_RECORDS,
                               DGM_MAX_QUEUED_MESSAGES, max_subscribers ? max_subscribers : 1000};
    assert_int_equal(dgm_core_new(&o, &e->core, &err), DGM_OK);
}

static void start_env(struct env *e, size_t max_log_bytes)
{
    dgm_err err = {0};
    *e = (struct env){0};
    n_started = n_canceled = n_warned = n_notes = 0;
    held = NULL;
    assert_int_equal(dgm_loops_new(N_LOOPS, &e->loops, &err), DGM_OK);
    if (dgm_store_open(store_url(), &e->store, &err))
        fail_msg("%s", err.msg);
    start_core(e, max_log_bytes);
    assert_int_equal(dgm_loops_start(e->loops, &err), DGM_OK);
}

static void stop_env(struct env *e)
{
    dgm_loops_stop(e->loops);
    dgm_core_stop(e->core);
    dgm_store_close(e->store);
    dgm_loops_free(e->loops); /* what was still on its way is answered here */
    dgm_core_free(e->core);
}

/* Runs a function on a loop and waits for a callback to say that it is done. */
struct step {
    struct env *e;
    sem_t done;
    void (*fn)(struct step *s);
    /* what goes in */
    dgm_owner owner;
    dgm_str text, task_id, context_id, message_id, agent;
    uint64_t cursor;
    /* what comes out; texts in the step's own memory */
    dgm_code code;
    dgm_err err;
    char task[64], context[64];
    dgm_log *log;
    uint64_t after;
    dgm_record *snapshot;
    bool is_message, is_resend;
    dgm_reader *reader;
    dgm_record *records[4096];
    size_t n;
    bool until_question;
};

static void run_fn(void *arg)
{
    struct step *s = arg;
    s->fn(s);
}

static void post_step(struct env *e, struct step *s, size_t loop, void (*fn)(struct step *))
{
    s->e = e;
    s->fn = fn;
    sem_init(&s->done, 0, 0);
    dgm_loop_post(dgm_loops_at(e->loops, loop % N_LOOPS), run_fn, s);
}

static void do_step(struct env *e, struct step *s, size_t loop, void (*fn)(struct step *))
{
    post_step(e, s, loop, fn);
    sem_wait(&s->done);
}

static void clear(struct step *s)
{
    dgm_log_unref(s->log);
    dgm_record_unref(s->snapshot);
    for (size_t i = 0; i < s->n; i++)
        dgm_record_unref(s->records[i]);
    free(s);
}

static struct step *new_step(void)
{
    return calloc(1, sizeof(struct step));
}

static void on_sent(dgm_code code, const dgm_sent *sent, const dgm_err *err, void *arg)
{
    struct step *s = arg;
    s->code = code;
    if (code) {
        s->err = *err;
    } else {
        s->log = dgm_log_ref(sent->log);
        s->after = sent->after;
        s->snapshot = sent->snapshot ? dgm_record_ref(sent->snapshot) : NULL;
        s->is_message = sent->is_message;
        s->is_resend = sent->is_resend;
        snprintf(s->task, sizeof s->task, "%.*s", DGM_P(sent->task_id));
        snprintf(s->context, sizeof s->context, "%.*s", DGM_P(sent->context_id));
        assert_true(dgm_log_published(sent->log) > sent->after || sent->snapshot);
    }
    sem_post(&s->done);
}

static void send_it(struct step *s)
{
    dgm_part part = {.kind = DGM_PART_TEXT, .content = s->text};
    dgm_message m = {.message_id = s->message_id,
                     .role = DGM_ROLE_USER,
                     .parts = {&part, 1},
                     .task_id = s->task_id,
                     .context_id = s->context_id};
    dgm_send send = {
        .owner = s->owner, .agent = s->agent, .message = &m, .protocol = DGM_STR("a2a")};
    dgm_core_send(s->e->core, &send, on_sent, s);
}

static struct step *send_text(struct env *e, const char *text, const char *task,
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

static void on_ready(void *arg)
{
    struct step *s = arg;
    dgm_record *r;
    bool asked = false;
    while ((r = dgm_reader_next(s->reader))) {
        s->records[s->n++] = dgm_record_ref(r);
        asked = asked || r->head.state == DGM_STATE_INPUT_REQUIRED;
    }
    if (dgm_reader_is_over(s->reader) || (asked && s->until_question)) {
        dgm_reader_close(s->reader);
        sem_post(&s->done);
    }
}

static void open_it(struct step *s)
{
    s->reader = dgm_reader_open(s->log, s->after, on_ready, s);
}

static void read_all(struct env *e, struct step *s, size_t loop)
{
    do_step(e, s, loop, open_it);
}

static dgm_task read_task(dgm_arena *a, const dgm_record *snapshot)
{
    dgm_event e;
    dgm_err err = {0};
    assert_non_null(snapshot);
    if (dgm_record_event(snapshot, a, &e, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(e.kind, DGM_EVENT_TASK);
    return *e.task;
}

static void on_task(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    struct step *s = arg;
    s->code = code;
    if (code)
        s->err = *err;
    else
        s->snapshot = dgm_record_ref(snapshot);
    sem_post(&s->done);
}

static void get_it(struct step *s)
{
    dgm_core_get(s->e->core, s->owner, s->agent, s->task_id, on_task, s);
}

static void cancel_it(struct step *s)
{
    dgm_core_cancel(s->e->core, s->owner, s->agent, s->task_id, on_task, s);
}

static void on_subscribed(dgm_code code, dgm_log *log, uint64_t after, dgm_record *snapshot,
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

static void subscribe_it(struct step *s)
{
    dgm_core_subscribe(s->e->core, s->owner, s->agent, s->task_id, s->cursor, on_subscribed, s);
}

static struct step *ask(struct env *e, const char *task, const char *principal,
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

/* ---- tests --------------------------------------------------------------------------------------------------------- */

static void a_message_answer_leaves_nothing_behind(void **state)
{
    struct env e;
    (void)state;
    start_env(&e, 0);
    struct step *s = send_text(&e, "message", NULL, NULL);
    assert_int_equal(s->code, DGM_OK);
    assert_true(s->is_message);
    assert_string_equal(s->task, "");
    assert_int_equal(strlen(s->context), 36);
    read_all(&e, s, 1);
    assert_int_equal(s->n, 1);
    assert_int_equal(s->records[0]->head.kind, DGM_EVENT_MESSAGE);
    assert_non_null(strstr(s->records[0]->bytes, s->context));
    assert_int_equal(dgm_core_stats_of(e.core).tasks, 0);
    clear(s);
    stop_env(&e);
}

static void a_task_is_told_from_its_first_record(void **state)
{
    struct env e;
    (void)state;
    start_env(&e, 0);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct step *s = send_text(&e, "chunks", NULL, "mine");
    assert_int_equal(s->code, DGM_OK);
    assert_string_equal(s->context, "mine");
    read_all(&e, s, 2);
    assert_int_equal(s->n, 203);
    dgm_task first = read_task(a, s->records[0]);
    check_str(first.id, s->task);
    assert_int_equal(first.status.state, DGM_STATE_SUBMITTED);
    assert_true(first.status.timestamp.n > 0);
    assert_int_equal(first.history.n, 1);
    check_str(first.history.at[0].task_id, s->task);
    check_str(first.history.at[0].context_id, "mine");
    assert_non_null(strstr(s->records[0]->bytes, "\"canonical_type\":\"TextMessageContentEvent\""));
    for (size_t i = 0; i < s->n; i++) {
        assert_int_equal(s->records[i]->head.seq, i + 1);
        assert_non_null(strstr(s->records[i]->bytes, s->task));
        assert_null(strstr(s->records[i]->bytes, "not mine to say"));
    }
    assert_int_equal(s->records[1]->head.state, DGM_STATE_WORKING);
    assert_int_equal(s->records[202]->head.state, DGM_STATE_COMPLETED);
    struct step *got = ask(&e, s->task, NULL, get_it, 0);
    dgm_task task = read_task(a, got->snapshot);
    assert_int_equal(task.status.state, DGM_STATE_COMPLETED);
    assert_int_equal(task.artifacts.at[0].parts.n, 200);
    check_str(task.status.message->parts.at[0].content, "done");
    clear(got);
    clear(s);
    stop_env(&e);
}

static void a_question_is_answered_in_the_same_task(void **state)
{
    struct env e;
    (void)state;
    start_env(&e, 0);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct step *first = send_text(&e, "ask", NULL, NULL);
    first->until_question = true;
    read_all(&e, first, 0);
    /* somebody who watches from before sees the second turn, too */
    struct step *watch = ask(&e, first->task, NULL, subscribe_it, DGM_NO_CURSOR);
    assert_int_equal(watch->code, DGM_OK);
    assert_int_equal(read_task(a, watch->snapshot).status.state, DGM_STATE_INPUT_REQUIRED);
    post_step(&e, watch, 1, open_it);
    struct step *second = send_text(&e, "answer", first->task, NULL);
    if (second->code)
        fail_msg("%s", second->err.msg);
    assert_string_equal(second->task, first->task);
    assert_string_equal(second->context, first->context);
    dgm_task seen =
        read_task(a, second->snapshot); /* with the answer in it, before anything else */
    assert_int_equal(seen.status.state, DGM_STATE_INPUT_REQUIRED);
    assert_int_equal(seen.history.n, 3);
    check_str(seen.history.at[2].parts.at[0].content, "answer");
    assert_int_equal(second->after, second->snapshot->head.seq);
    read_all(&e, second, 2);
    assert_int_equal(second->records[0]->head.kind, DGM_EVENT_STATUS);
    assert_int_equal(second->records[second->n - 1]->head.state, DGM_STATE_COMPLETED);
    assert_int_equal(second->records[0]->head.turn, 2);
    sem_wait(&watch->done);
    assert_int_equal(watch->records[watch->n - 1]->head.seq,
                     second->records[second->n - 1]->head.seq);
    struct step *got = ask(&e, first->task, NULL, get_it, 0);
    dgm_task task = read_task(a, got->snapshot);
    assert_int_equal(task.status.state, DGM_STATE_COMPLETED);
    assert_int_equal(task.history.n, 3); /* the ask, the question, the answer */
    clear(got);
    clear(watch);
    clear(second);
    clear(first);
    stop_env(&e);
}

static void ids_decide_who_may_send_where(void **state)
{
    struct env e;
    (void)state;
    start_env(&e, 0);
    struct step *asked = send_text(&e, "ask", NULL, NULL),
                *done = send_text(&e, "chunks", NULL, NULL);
    read_all(&e, done, 0);
    static const struct {
        const char *which, *context, *principal, *agent;
        dgm_code want;
    } rows[] = {
        {"nobody's", NULL, NULL, NULL, DGM_TASK_NOT_FOUND},
        {"asked", "other", NULL, NULL, DGM_BAD_PARAMS},
        {"asked", NULL, "mallory", NULL, DGM_TASK_NOT_FOUND},
        {"asked", NULL, NULL, "two", DGM_TASK_NOT_FOUND},
        {"asked", NULL, NULL, "three", DGM_BAD_PARAMS},
        {"done", NULL, NULL, NULL, DGM_UNSUPPORTED_OPERATION},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct step *s = new_step();
        s->text = DGM_STR("answer");
        s->message_id = DGM_STR("x");
        s->task_id = dgm_str_from(strcmp(rows[i].which, "asked") == 0  ? asked->task
                                  : strcmp(rows[i].which, "done") == 0 ? done->task
                                                                       : rows[i].which);
        s->context_id = dgm_str_from(rows[i].context);
        s->owner.principal = dgm_str_from(rows[i].principal);
        s->agent = dgm_str_from(rows[i].agent);
        do_step(&e, s, i, send_it);
        if (s->code != rows[i].want)
            fail_msg("row %zu: %s", i, dgm_code_name(s->code));
        clear(s);
    }
    struct step *other = ask(&e, asked->task, "mallory", get_it, 0);
    assert_int_equal(other->code, DGM_TASK_NOT_FOUND);
    clear(other);
    clear(asked);
    clear(done);
    stop_env(&e);
}

static void cancel_ends_what_runs_and_nothing_else(void **state)
{
    struct env e;
    (void)state;
    start_env(&e, 0);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct step *running = send_text(&e, "hold", NULL, NULL);
    struct step *c = ask(&e, running->task, NULL, cancel_it, 0);
    assert_int_equal(c->code, DGM_OK);
    assert_int_equal(read_task(a, c->snapshot).status.state, DGM_STATE_CANCELED);
    assert_int_equal(n_canceled, 1);
    clear(c);
    c = ask(&e, running->task, NULL, cancel_it, 0); /* canceled again is canceled */
    assert_int_equal(c->code, DGM_OK);
    clear(c);
    struct step *asked = send_text(&e, "ask", NULL, NULL);
    c = ask(&e, asked->task, NULL, cancel_it, 0); /* nothing runs, but it is not over */
    assert_int_equal(c->code, DGM_OK);
    assert_int_equal(read_task(a, c->snapshot).status.state, DGM_STATE_CANCELED);
    clear(c);
    struct step *done = send_text(&e, "chunks", NULL, NULL);
    read_all(&e, done, 0);
    c = ask(&e, done->task, NULL, cancel_it, 0);
    assert_int_equal(c->code, DGM_TASK_NOT_CANCELABLE);
    clear(c);
    c = ask(&e, "nobody's", NULL, cancel_it, 0);
    assert_int_equal(c->code, DGM_TASK_NOT_FOUND);
    clear(c);
    clear(running);
    clear(asked);
    clear(done);
    stop_env(&e);
}

static void messages_to_a_working_task_wait_16_of_them(void **state)
{
    enum { SENT = DGM_MAX_QUEUED_MESSAGES + 1 };
    struct env e;
    struct step *s[SENT];
    static char ids[SENT][16];
    size_t refused = SENT;
    (void)state;
    start_env(&e, 0);
    struct step *running = send_text(&e, "hold", NULL, NULL);
    for (size_t i = 0; i < SENT; i++) {
        s[i] = new_step();
        s[i]->text = DGM_STR("hold");
        snprintf(ids[i], sizeof ids[i], "q-%zu", i); /* of one id they would be one message */
        s[i]->message_id = dgm_str_from(ids[i]);
        s[i]->task_id = dgm_str_from(running->task);
        post_step(&e, s[i], i, send_it);
    }
    for (size_t i = 0; refused == SENT; i = (i + 1) % SENT) { /* whichever comes last has no room */
        if (sem_trywait(&s[i]->done) == 0)
            refused = i;
    }
    assert_int_equal(s[refused]->code, DGM_UNSUPPORTED_OPERATION);
    assert_non_null(strstr(s[refused]->err.msg, "16 messages"));
    struct step *c = ask(&e, running->task, NULL, cancel_it, 0);
    assert_int_equal(c->code, DGM_OK);
    for (size_t i = 0; i < SENT; i++) {
        if (i != refused) {
            sem_wait(&s[i]->done);
            assert_int_equal(s[i]->code, DGM_UNSUPPORTED_OPERATION);
            assert_non_null(strstr(s[i]->err.msg, "has ended"));
        }
        clear(s[i]);
    }
    assert_int_equal(n_started, 1);
    clear(c);
    clear(running);
    stop_env(&e);
}

static void copies_of_a_message_start_the_agent_once(void **state)
{
    enum { COPIES = 300 };
    struct env e;
    static struct step *s[COPIES];
    (void)state;
    start_env(&e, 0);
    for (int i = 0; i < COPIES; i++) {
        s[i] = new_step();
        s[i]->text = DGM_STR("chunks");
        s[i]->message_id = DGM_STR("the-same");
        post_step(&e, s[i], (size_t)i, send_it);
    }
    size_t n_first = 0;
    for (int i = 0; i < COPIES; i++) {
        sem_wait(&s[i]->done);
        if (s[i]->code)
            fail_msg("%s", s[i]->err.msg);
        assert_string_equal(s[i]->task, s[0]->task);
        n_first += !s[i]->is_resend;
    }
    assert_int_equal(n_first, 1);
    assert_int_equal(n_started, 1);
    /* and much later, from the store */
    struct step *late = new_step();
    late->text = DGM_STR("chunks");
    late->message_id = DGM_STR("the-same");
    do_step(&e, late, 1, send_it);
    assert_true(late->is_resend);
    assert_string_equal(late->task, s[0]->task);
    /* the same id with other words is another message */
    struct step *other = new_step();
    other->text = DGM_STR("ask");
    other->message_id = DGM_STR("the-same");
    do_step(&e, other, 2, send_it);
    assert_false(other->is_resend);
    assert_string_not_equal(other->task, s[0]->task);
    assert_int_equal(n_started, 2);
    for (int i = 0; i < COPIES; i++)
        clear(s[i]);
    clear(late);
    clear(other);
    stop_env(&e);
}

static void however_a_run_ends_its_task_does(void **state)
{
    struct env e;
    (void)state;
    start_env(&e, 0);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct step *failed = send_text(&e, "fail", NULL, NULL),
                *silent = send_text(&e, "silent", NULL, NULL);
    read_all(&e, failed, 0);
    assert_int_equal(failed->records[failed->n - 1]->head.state, DGM_STATE_FAILED);
    assert_non_null(strstr(failed->records[failed->n - 1]->bytes, "\"error\":\"it broke\""));
    read_all(&e, silent, 1);
    assert_int_equal(silent->n, 2);
    assert_int_equal(silent->records[1]->head.state, DGM_STATE_COMPLETED);
    clear(failed);
    clear(silent);
    stop_env(&e);
}

static void a_log_over_its_limit_fails_the_task(void **state)
{
    struct env e;
    (void)state;
    start_env(&e, 100000);
    struct step *s = send_text(&e, "flood", NULL, NULL);
    read_all(&e, s, 0);
    assert_int_equal(s->records[s->n - 1]->head.state, DGM_STATE_FAILED);
    assert_non_null(strstr(s->records[s->n - 1]->bytes, "log_limit"));
    clear(s);
    stop_env(&e);
}

static void a_cursor_gives_what_is_missing_also_after_the_end(void **state)
{
    struct env e;
    (void)state;
    start_env(&e, 0);
    struct step *s = send_text(&e, "chunks", NULL, NULL);
    read_all(&e, s, 0);
    for (uint64_t cursor = 1; cursor <= s->n; cursor += 17) {
        struct step *r = ask(&e, s->task, NULL, subscribe_it, cursor);
        if (r->code)
            fail_msg("%s", r->err.msg);
        assert_null(r->snapshot);
        read_all(&e, r, (size_t)cursor);
        assert_int_equal(r->n, s->n - cursor);
        for (size_t i = 0; i < r->n; i++)
            assert_string_equal(r->records[i]->bytes, s->records[cursor + i]->bytes);
        clear(r);
    }
    struct step *none = ask(&e, s->task, NULL, subscribe_it, DGM_NO_CURSOR);
    assert_int_equal(none->code, DGM_UNSUPPORTED_OPERATION);
    struct step *beyond = ask(&e, s->task, NULL, subscribe_it, 100000);
    assert_int_equal(beyond->code, DGM_OK);
    assert_non_null(beyond->snapshot);
    clear(beyond);
    clear(none);
    clear(s);
    stop_env(&e);
}

/* The first of them may be the last to need the task, were it not for the others. */
static void many_calls_wait_for_one_load(void **state)
{
    enum { CALLS = 60 };
    struct env e;
    static struct step *calls[CALLS];
    static void (*const kinds[])(struct step *) = {get_it, subscribe_it, cancel_it, send_it};
    (void)state;
    start_env(&e, 0);
    struct step *done = send_text(&e, "chunks", NULL, NULL);
    read_all(&e, done, 0);
    for (int round = 0; round < 5; round++) {
        for (size_t i = 0; i < CALLS; i++) {
            calls[i] = new_step();
            calls[i]->task_id = dgm_str_from(done->task);
            calls[i]->text = DGM_STR("answer");
            calls[i]->message_id = DGM_STR("late");
            calls[i]->cursor = DGM_NO_CURSOR;
            post_step(&e, calls[i], 0, kinds[i % 4]);
        }
        static const dgm_code want[] = {DGM_OK, DGM_UNSUPPORTED_OPERATION, DGM_TASK_NOT_CANCELABLE,
                                        DGM_UNSUPPORTED_OPERATION};
        for (size_t i = 0; i < CALLS; i++) {
            sem_wait(&calls[i]->done);
            assert_int_equal(calls[i]->code, want[i % 4]);
            clear(calls[i]);
        }
    }
    clear(done);
    stop_env(&e);
}

/* At another agent's address it does not exist. */
static void a_task_belongs_to_its_agent(void **state)
{
    static void (*const kinds[])(struct step *) = {get_it, subscribe_it, cancel_it, send_it};
    static const char *const agents[] = {"two", "nobody"};
    struct env e;
    (void)state;
    start_env(&e, 0);
    struct step *asked = send_text(&e, "ask", NULL, NULL);
    for (size_t agent = 0; agent < 2; agent++) {
        for (size_t i = 0; i < 4; i++) {
            struct step *s = new_step();
            s->agent = dgm_str_from(agents[agent]);
            s->task_id = dgm_str_from(asked->task);
            s->text = DGM_STR("answer");
            s->message_id = DGM_STR("m");
            s->cursor = DGM_NO_CURSOR;
            do_step(&e, s, i, kinds[i]);
            assert_int_equal(s->code, agent == 1 && i == 3 ? DGM_BAD_PARAMS : DGM_TASK_NOT_FOUND);
            clear(s);
        }
    }
    struct step *got = ask(&e, asked->task, NULL, get_it, 0);
    assert_int_equal(got->code, DGM_OK);
    clear(got);
    clear(asked);
    stop_env(&e);
}

static void on_recovered(dgm_code code, const dgm_err *err, void *arg)
{
    struct step *s = arg;
    s->code = code;
    if (code)
        s->err = *err;
    sem_post(&s->done);
}

static void recover_it(struct step *s)
{
    dgm_core_recover(s->e->core, on_recovered, s);
}

static void what_a_crash_left_unfinished_is_settled(void **state)
{
    enum { RUNNING = 250 }; /* more than a page */
    struct env e;
    dgm_err err = {0};
    static struct step *s[RUNNING];
    (void)state;
    start_env(&e, 0);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    for (int i = 0; i < RUNNING; i++)
        s[i] = send_text(&e, "hold", NULL, NULL);
    struct step *asked = send_text(&e, "ask", NULL, NULL),
                *done = send_text(&e, "chunks", NULL, NULL);
    asked->until_question = true;
    read_all(&e, asked, 0);
    read_all(&e, done, 0);
    /* the process is gone; the store is all that is left */
    dgm_loops_stop(e.loops);
    dgm_core_stop(e.core);
    dgm_loops_free(e.loops);
    dgm_core_free(e.core);
    assert_int_equal(dgm_loops_new(N_LOOPS, &e.loops, &err), DGM_OK);
    start_core(&e, 0);
    assert_int_equal(dgm_loops_start(e.loops, &err), DGM_OK);
    struct step *r = new_step();
    do_step(&e, r, 0, recover_it);
    if (r->code)
        fail_msg("%s", r->err.msg);
    for (int i = 0; i < RUNNING; i++) {
        struct step *got = ask(&e, s[i]->task, NULL, get_it, 0);
        dgm_task task = read_task(a, got->snapshot);
        assert_int_equal(task.status.state, DGM_STATE_FAILED);
        assert_non_null(strstr(got->snapshot->bytes, "\"error\":\"the server was stopped"));
        clear(got);
        clear(s[i]);
    }
    struct step *got = ask(&e, asked->task, NULL, get_it, 0);
    assert_int_equal(read_task(a, got->snapshot).status.state, DGM_STATE_INPUT_REQUIRED);
    clear(got);
    struct step *answer = send_text(&e, "answer", asked->task, NULL); /* and it goes on */
    assert_int_equal(answer->code, DGM_OK);
    read_all(&e, answer, 1);
    assert_int_equal(answer->records[answer->n - 1]->head.state, DGM_STATE_COMPLETED);
    clear(answer);
    clear(asked);
    clear(done);
    clear(r);
    stop_env(&e);
}

static void let_it_ask(void *arg)
{
    dgm_run *run = arg;
    held = NULL;
    status(run, DGM_STATE_INPUT_REQUIRED, "what now?");
    run->ops->end(run, NULL);
}

/* The one that holds asks a question and ends: what waits for it goes on. */
static void release(void)
{
    dgm_run *run = held;
    assert_non_null(run);
    dgm_loop_post(run->loop, let_it_ask, run);
}

static struct step *say(struct env *e, const char *id, const char *text, const char *task)
{
    static size_t n;
    struct step *s = new_step();
    s->text = dgm_str_from(text);
    s->message_id = dgm_str_from(id);
    s->task_id = dgm_str_from(task);
    do_step(e, s, ++n, send_it);
    return s;
}

static void restart(struct env *e)
{
    dgm_err err = {0};
    dgm_loops_stop(e->loops);
    dgm_core_stop(e->core);
    dgm_loops_free(e->loops);
    dgm_core_free(e->core);
    assert_int_equal(dgm_loops_new(N_LOOPS, &e->loops, &err), DGM_OK);
    start_core(e, 0);
    assert_int_equal(dgm_loops_start(e->loops, &err), DGM_OK);
}

static void a_resend_to_a_finished_task_is_given_all_of_it(void **state)
{
    struct env e;
    (void)state;
    start_env(&e, 0);
    struct step *first = say(&e, "the-message", "chunks", NULL);
    read_all(&e, first, 0);
    for (int round = 0; round < 3; round++) {
        struct step *again = say(&e, "the-message", "chunks", NULL);
        if (again->code)
            fail_msg("%s", again->err.msg);
        assert_true(again->is_resend);
        assert_string_equal(again->task, first->task);
        assert_string_equal(again->context, first->context);
        assert_null(again->snapshot);
        assert_int_equal(again->after, 0);
        read_all(&e, again, (size_t)round);
        assert_int_equal(again->n, first->n);
        for (size_t i = 0; i < first->n; i++)
            assert_string_equal(again->records[i]->bytes, first->records[i]->bytes);
        clear(again);
        if (round == 1)
            restart(&e);
    }
    assert_int_equal(n_started, 1);
    clear(first);
    stop_env(&e);
}

static void a_resent_answer_is_not_a_second_answer(void **state)
{
    struct env e;
    (void)state;
    start_env(&e, 0);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct step *first = say(&e, "the-first", "ask", NULL);
    for (int round = 0; round < 4; round++) { /* the same question again and again */
        struct step *more = say(&e, "again", "ask", first->task);
        if (more->code)
            fail_msg("%s", more->err.msg);
        assert_int_equal(more->is_resend, round > 0);
        assert_string_equal(more->task, first->task);
        more->until_question = true;
        if (round) { /* that turn is over: nothing will follow */
            assert_int_equal(read_task(a, more->snapshot).status.state, DGM_STATE_INPUT_REQUIRED);
            read_all(&e, more, 0);
            assert_int_equal(more->n, 0);
        }
        clear(more);
        if (round == 2)
            restart(&e);
    }
    assert_int_equal(n_started, 2);
    struct step *other = say(&e, "again", "answer", first->task); /* other words: another message */
    assert_false(other->is_resend);
    read_all(&e, other, 1);
    struct step *late = say(&e, "again", "answer", first->task); /* known also after the end */
    assert_int_equal(late->code, DGM_OK);
    assert_true(late->is_resend);
    assert_int_equal(read_task(a, late->snapshot).status.state, DGM_STATE_COMPLETED);
    struct step *too_late = say(&e, "new", "answer", first->task);
    assert_int_equal(too_late->code, DGM_UNSUPPORTED_OPERATION);
    assert_int_equal(n_started, 3);
    clear(too_late);
    clear(late);
    clear(other);
    clear(first);
    stop_env(&e);
}

static void copies_of_a_message_that_waits_are_one_message(void **state)
{
    enum { COPIES = 40, WAITING = 10 };
    struct env e;
    static struct step *s[WAITING][COPIES];
    static char ids[WAITING][16];
    (void)state;
    start_env(&e, 0);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct step *running = send_text(&e, "hold", NULL, NULL);
    for (size_t k = 0; k < COPIES; k++) {
        for (size_t i = 0; i < WAITING; i++) {
            s[i][k] = new_step();
            snprintf(ids[i], sizeof ids[i], "w-%zu", i);
            s[i][k]->message_id = dgm_str_from(ids[i]);
            s[i][k]->text = DGM_STR("ask");
            s[i][k]->task_id = dgm_str_from(running->task);
            post_step(&e, s[i][k], k, send_it);
        }
    }
    struct step *settled = ask(&e, running->task, NULL, get_it, 0); /* some of them are there */
    release();
    for (size_t i = 0; i < WAITING; i++) {
        size_t n_first = 0;
        for (size_t k = 0; k < COPIES; k++) {
            sem_wait(&s[i][k]->done);
            if (s[i][k]->code)
                fail_msg("%s", s[i][k]->err.msg);
            n_first += !s[i][k]->is_resend;
            clear(s[i][k]);
        }
        assert_int_equal(n_first, 1);
    }
    assert_int_equal(n_started, 1 + WAITING);
    struct step *got = ask(&e, running->task, NULL, get_it, 0);
    assert_int_equal(read_task(a, got->snapshot).history.n, 1 + 2 * WAITING);
    clear(settled);
    clear(got);
    clear(running);
    stop_env(&e);
}

/* Somebody reads it on, so it is in memory, but not from its beginning. */
static void an_old_cursor_of_a_task_that_rests_is_good(void **state)
{
    struct env e;
    (void)state;
    start_env(&e, 0);
    struct step *first = send_text(&e, "ask", NULL, NULL);
    first->until_question = true;
    read_all(&e, first, 0);
    restart(&e);
    struct step *watch = ask(&e, first->task, NULL, subscribe_it, DGM_NO_CURSOR);
    post_step(&e, watch, 1, open_it);
    for (uint64_t cursor = 0; cursor <= first->n; cursor++) {
        struct step *r = ask(&e, first->task, NULL, subscribe_it, cursor);
        assert_int_equal(r->code, DGM_OK);
        assert_null(r->snapshot);
        assert_int_equal(r->after, cursor);
        clear(r);
    }
    struct step *answer = send_text(&e, "answer", first->task, NULL);
    assert_int_equal(answer->code, DGM_OK);
    sem_wait(&watch->done);
    struct step *all = ask(&e, first->task, NULL, subscribe_it, 0);
    read_all(&e, all, 2);
    assert_int_equal(all->n, first->n + watch->n);
    for (size_t i = 0; i < all->n; i++)
        assert_int_equal(all->records[i]->head.seq, i + 1);
    clear(all);
    clear(answer);
    clear(watch);
    clear(first);
    stop_env(&e);
}

static void log_records_is_a_limit(void **state)
{
    struct env e;
    (void)state;
    max_records = 100;
    start_env(&e, 0);
    struct step *s = send_text(&e, "flood", NULL, NULL);
    read_all(&e, s, 0);
    assert_int_equal(s->n, 100);
    assert_int_equal(s->records[99]->head.state, DGM_STATE_FAILED);
    assert_non_null(strstr(s->records[99]->bytes, "log_limit"));
    clear(s);
    stop_env(&e);
    max_records = 0;
}

static void subscribers_is_a_limit(void **state)
{
    enum { MAX = 3 };
    struct env e;
    struct step *s[MAX];
    (void)state;
    max_subscribers = MAX;
    start_env(&e, 0);
    struct step *running = send_text(&e, "hold", NULL, NULL);
    for (size_t i = 0; i < MAX; i++) {
        s[i] = ask(&e, running->task, NULL, subscribe_it, DGM_NO_CURSOR);
        assert_int_equal(s[i]->code, DGM_OK);
        post_step(&e, s[i], i, open_it);
    }
    while (dgm_log_n_readers(s[0]->log) < MAX)
        sched_yield();
    struct step *more = ask(&e, running->task, NULL, subscribe_it, DGM_NO_CURSOR);
    assert_int_equal(more->code, DGM_RATE_LIMITED);
    struct step *c = ask(&e, running->task, NULL, cancel_it, 0);
    for (size_t i = 0; i < MAX; i++) {
        sem_wait(&s[i]->done);
        clear(s[i]);
    }
    clear(c);
    clear(more);
    clear(running);
    stop_env(&e);
    max_subscribers = 0;
}

static void an_agent_may_refuse(void **state)
{
    struct env e;
    (void)state;
    start_env(&e, 0);
    struct step *s = send_text(&e, "refuse", NULL, NULL);
    assert_int_equal(s->code, DGM_CONTENT_TYPE_NOT_SUPPORTED);
    assert_string_equal(s->err.msg, "I read no such thing");
    assert_int_equal(dgm_core_stats_of(e.core).tasks, 0);
    assert_int_equal(n_notes, 1);
    struct step *asked = send_text(&e, "ask", NULL, NULL);
    struct step *late = send_text(&e, "refuse", asked->task, NULL); /* there is a task already */
    assert_int_equal(late->code, DGM_OK);
    read_all(&e, late, 0);
    assert_int_equal(late->records[late->n - 1]->head.state, DGM_STATE_FAILED);
    assert_non_null(strstr(late->records[late->n - 1]->bytes, "I read no such thing"));
    clear(late);
    clear(asked);
    clear(s);
    stop_env(&e);
}

static void every_failure_says_why(void **state)
{
    struct env e;
    (void)state;
    start_env(&e, 0);
    struct step *s = send_text(&e, "wordless", NULL, NULL);
    read_all(&e, s, 0);
    assert_int_equal(s->records[s->n - 1]->head.state, DGM_STATE_FAILED);
    assert_non_null(strstr(s->records[s->n - 1]->bytes, "\"error\":\"the agent failed"));
    clear(s);
    stop_env(&e);
}

static uint64_t broken(struct env *e, const char *name)
{
    const char *rule, *about;
    uint64_t n;
    for (size_t i = 0; dgm_core_rule(e->core, i, &rule, &about, &n); i++) {
        if (strcmp(rule, name) == 0)
            return n;
    }
    fail_msg("there is no rule %s", name);
    return 0;
}

static void rules_are_told_once_per_run(void **state)
{
    struct env e;
    (void)state;
    start_env(&e, 0);
    for (uint64_t n = 1; n <= 2; n++) {
        struct step *s = send_text(&e, "badly", NULL, NULL);
        read_all(&e, s, 0);
        assert_int_equal(s->records[s->n - 1]->head.state, DGM_STATE_COMPLETED);
        while (dgm_core_stats_of(e.core).running)
            sched_yield();
        assert_int_equal(broken(&e, "ids"), n);
        assert_int_equal(broken(&e, "status-text"), n);
        assert_int_equal(broken(&e, "append-to-nothing"), n);
        assert_int_equal(broken(&e, "after-last-chunk"), n);
        assert_int_equal(broken(&e, "after-end"), n);
        assert_int_equal(broken(&e, "transition"), 0);
        assert_int_equal(dgm_core_stats_of(e.core).warnings, n_warned);
        clear(s);
    }
    assert_string_equal(last_rule, "after-end");
    stop_env(&e);
}

static void on_drained(void *arg)
{
    struct step *s = arg;
    sem_post(&s->done);
}

static void the_end_of_the_server_leaves_nothing_in_the_middle(void **state)
{
    enum { RUNNING = 20 };
    struct env e;
    struct step *run[RUNNING], *wait[RUNNING];
    (void)state;
    start_env(&e, 0);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct step *asked = send_text(&e, "ask", NULL, NULL);
    struct step *watch = ask(&e, asked->task, NULL, subscribe_it, DGM_NO_CURSOR);
    post_step(&e, watch, 1, open_it);
    for (size_t i = 0; i < RUNNING; i++) {
        run[i] = send_text(&e, "hold", NULL, NULL);
        post_step(&e, run[i], i, open_it);
        wait[i] = new_step(); /* a message that waits for it */
        wait[i]->text = DGM_STR("ask");
        wait[i]->message_id = DGM_STR("waits");
        wait[i]->task_id = dgm_str_from(run[i]->task);
        post_step(&e, wait[i], i, send_it);
    }
    struct step *drain = new_step();
    sem_init(&drain->done, 0, 0);
    dgm_core_drain(e.core, 300, on_drained, drain);
    sem_wait(&watch->done); /* what rests is let go at once, and may go on later */
    struct step *refused = send_text(&e, "message", NULL, NULL);
    assert_int_equal(refused->code, DGM_UNAVAILABLE);
    struct step *got = ask(&e, asked->task, NULL, get_it, 0); /* what is there is still told */
    assert_int_equal(got->code, DGM_OK);
    sem_wait(&drain->done);
    for (size_t i = 0; i < RUNNING; i++) { /* what runs has an end that its readers see */
        sem_wait(&run[i]->done);
        assert_int_equal(run[i]->records[run[i]->n - 1]->head.state, DGM_STATE_FAILED);
        assert_non_null(strstr(run[i]->records[run[i]->n - 1]->bytes, "the server was stopped"));
        sem_wait(&wait[i]->done);
        assert_int_equal(wait[i]->code, DGM_UNAVAILABLE);
        clear(wait[i]);
    }
    assert_int_equal(n_canceled, RUNNING);
    assert_int_equal(dgm_core_stats_of(e.core).running, 0);
    restart(&e);
    for (size_t i = 0; i < RUNNING; i++) { /* and it is in the store */
        struct step *again = ask(&e, run[i]->task, NULL, get_it, 0);
        assert_int_equal(read_task(a, again->snapshot).status.state, DGM_STATE_FAILED);
        clear(again);
        clear(run[i]);
    }
    struct step *answer = send_text(&e, "answer", asked->task, NULL);
    assert_int_equal(answer->code, DGM_OK);
    clear(answer);
    clear(got);
    clear(refused);
    clear(drain);
    clear(watch);
    clear(asked);
    stop_env(&e);
}

static void disconnect_it(struct step *s)
{
    dgm_core_disconnected(s->e->core, s->owner, s->agent, s->task_id, 1, s->cursor);
    sem_post(&s->done);
}

static void a_run_nobody_reads_can_be_given_up(void **state)
{
    struct env e;
    (void)state;
    start_env(&e, 0);
    struct step *read = send_text(&e, "hold", NULL, NULL);
    post_step(&e, read, 1, open_it);
    while (dgm_log_n_readers(read->log) < 1)
        sched_yield();
    clear(ask(&e, read->task, NULL, disconnect_it, 0));
    struct step *alone = send_text(&e, "hold", NULL, NULL);
    clear(ask(&e, alone->task, NULL, disconnect_it, 1));
    clear(ask(&e, "nobody's", NULL, disconnect_it, 0));
    while (n_canceled < 1)
        sched_yield();
    struct step *c = ask(&e, read->task, NULL, get_it, 0);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    assert_int_equal(read_task(a, c->snapshot).status.state, DGM_STATE_WORKING);
    clear(c);
    c = ask(&e, read->task, NULL, cancel_it, 0);
    sem_wait(&read->done);
    clear(c);
    clear(alone);
    clear(read);
    stop_env(&e);
}

DGM_TEST_MAIN(dgm_test_holds(a_message_answer_leaves_nothing_behind, "R004-21"),
              dgm_test_holds(a_task_is_told_from_its_first_record, "R002-04 R000-02"),
              dgm_test(a_question_is_answered_in_the_same_task),
              dgm_test(ids_decide_who_may_send_where),
              dgm_test(cancel_ends_what_runs_and_nothing_else),
              dgm_test(messages_to_a_working_task_wait_16_of_them),
              dgm_test_holds(copies_of_a_message_start_the_agent_once, "R003-08"),
              dgm_test(however_a_run_ends_its_task_does),
              dgm_test(a_log_over_its_limit_fails_the_task),
              dgm_test(a_cursor_gives_what_is_missing_also_after_the_end),
              dgm_test_holds(a_resend_to_a_finished_task_is_given_all_of_it, "R003-08"),
              dgm_test_holds(a_resent_answer_is_not_a_second_answer, "R003-08"),
              dgm_test_holds(copies_of_a_message_that_waits_are_one_message, "R003-08"),
              dgm_test(an_old_cursor_of_a_task_that_rests_is_good),
              dgm_test(log_records_is_a_limit), dgm_test(subscribers_is_a_limit),
              dgm_test(an_agent_may_refuse), dgm_test_holds(every_failure_says_why, "R002-10"),
              dgm_test(rules_are_told_once_per_run),
              dgm_test(the_end_of_the_server_leaves_nothing_in_the_middle),
              dgm_test(a_run_nobody_reads_can_be_given_up), dgm_test(many_calls_wait_for_one_load),
              dgm_test(a_task_belongs_to_its_agent),
              dgm_test_holds(what_a_crash_left_unfinished_is_settled, "R002-10"))
