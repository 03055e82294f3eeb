/*
 * core/test_stress.c - everything at once: actors on several loops send, read, are cut and come back, answer,
 * cancel, find each other's turns, until time is up; then the server ends in order.
 *
 * Every reader checks that it sees each record once and in order; at the end no task is left in the
 * middle. Made for ThreadSanitizer (tests/tsan), right everywhere. DRAGOMAN_STRESS_S: how long, in all.
 */
#include "backend/backend.h"
#include "core/core.h"
#include "store/store.h"
#include "support/check.h"

#include <semaphore.h>
#include <time.h>

enum { LOOPS = 4, ACTORS = 48, CHUNKS = 60, KNOWN = 64 };

static _Atomic unsigned long n_steps, n_wrong, n_cuts, n_resends, n_found;
static char wrong[200]; /* the last one, for a person */

static void fault(const char *what, uint64_t a, uint64_t b)
{
    snprintf(wrong, sizeof wrong, "%s: %llu, %llu", what, (unsigned long long)a,
             (unsigned long long)b);
    n_wrong++;
}

/* ---- an agent -------------------------------------------------------------------------------------------- */

static void emit_status(dgm_run *run, dgm_task_state state)
{
    dgm_status_update u = {.status = {.state = state}};
    dgm_event e = {.kind = DGM_EVENT_STATUS, .status = &u};
    run->ops->emit(run, &e, NULL);
}

static dgm_code emit_chunk(dgm_run *run, bool first, bool last)
{
    dgm_part part = {.kind = DGM_PART_TEXT, .content = DGM_STR("some words of an answer")};
    dgm_artifact_update u = {.artifact = {.artifact_id = DGM_STR("a"), .parts = {&part, 1}},
                             .append = first ? DGM_FALSE : DGM_TRUE,
                             .last_chunk = last ? DGM_TRUE : DGM_FALSE};
    dgm_event e = {.kind = DGM_EVENT_ARTIFACT, .artifact = &u};
    return run->ops->emit(run, &e, NULL);
}

struct talk {
    dgm_run *run;
    int said;
};

static void talk_on(void *arg)
{
    struct talk *t = arg;
    for (int i = 0; i < 3 && t->said < CHUNKS && !t->run->ops->is_full(t->run); i++, t->said++)
        emit_chunk(t->run, t->said == 0, t->said == CHUNKS - 1);
    if (t->run->canceled || t->said == CHUNKS)
        t->run->ops->end(t->run, NULL);
    else
        dgm_loop_post(t->run->loop, talk_on, t);
}

static void agent_start(void *agent, dgm_run *run)
{
    dgm_str said = run->input->message->parts.at[0].content;
    (void)agent;
    for (size_t i = 0; i < run->input->history.n; i++) {
        if (dgm_str_eq(run->input->history.at[i].message_id, run->input->message->message_id))
            fault("its own message is in the history", i, run->input->history.n);
    }
    if (dgm_str_is(said, "message")) {
        dgm_part part = {.kind = DGM_PART_TEXT, .content = DGM_STR("hello")};
        dgm_message m = {.role = DGM_ROLE_AGENT, .parts = {&part, 1}};
        dgm_event e = {.kind = DGM_EVENT_MESSAGE, .message = &m};
        run->ops->emit(run, &e, NULL);
        run->ops->end(run, NULL);
        return;
    }
    emit_status(run, DGM_STATE_WORKING);
    if (dgm_str_is(said, "ask")) {
        emit_status(run, DGM_STATE_INPUT_REQUIRED);
        run->ops->end(run, NULL);
    } else if (!dgm_str_is(said, "hold")) {
        struct talk *t = dgm_new(run->arena, struct talk);
        *t = (struct talk){.run = run};
        run->agent_data = t;
        dgm_loop_post(run->loop, talk_on, t);
    }
}

static void agent_cancel(void *agent, dgm_run *run)
{
    (void)agent;
    if (!run->agent_data) /* what talks sees it by itself */
        run->ops->end(run, NULL);
}

static const dgm_backend scripted = {
    .type = "scripted", .start = agent_start, .cancel = agent_cancel};

/* ---- actors ------------------------------------------------------------------------------------------------ */

struct env {
    dgm_loops *loops;
    dgm_store *store;
    dgm_core *core;
    struct timespec end;
    _Atomic int n_acting;
    sem_t done;
};

struct actor {
    struct env *env;
    uint64_t random;
    dgm_owner owner;
    char task[64], id[64], caller[16];
    dgm_log *log;
    dgm_log_reader *reader;
    uint64_t seq, cut_at;
    bool cancels;
};

static unsigned long pick(struct actor *a, unsigned long n)
{
    a->random = a->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned long)(a->random >> 33) % n;
}

static void next_step(void *arg);

static void go_on(struct actor *a)
{
    struct timespec now;
    dgm_log_unref(a->log);
    a->log = NULL;
    n_steps++;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > a->env->end.tv_sec ||
        (now.tv_sec == a->env->end.tv_sec && now.tv_nsec > a->env->end.tv_nsec)) {
        if (--a->env->n_acting == 0)
            sem_post(&a->env->done);
    } else {
        dgm_loop_post(dgm_loop_current(), next_step, a);
    }
}

static void on_task(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    (void)err;
    if (!code && snapshot->head.kind != DGM_EVENT_TASK)
        fault("no task", (uint64_t)code, 0);
    if (code && code != DGM_TASK_NOT_FOUND && code != DGM_TASK_NOT_CANCELABLE)
        fault("get or cancel", (uint64_t)code, 0);
    go_on(arg);
}

static void follow(struct actor *a, dgm_log *log, uint64_t after);

static void on_subscribed(dgm_code code, dgm_log *log, uint64_t after, dgm_record *snapshot,
                          const dgm_err *err, void *arg)
{
    struct actor *a = arg;
    (void)err;
    if (code)
        fault("subscribe", (uint64_t)code, a->seq);
    else if (snapshot || after != a->seq)
        fault("a cursor was not good", after, a->seq);
    if (code || snapshot)
        go_on(a);
    else
        follow(a, log, after);
}

static void stop_reading(struct actor *a)
{
    dgm_log_reader_close(a->reader);
    a->reader = NULL;
    dgm_log_unref(a->log);
    a->log = NULL;
}

static void on_ready(void *arg)
{
    struct actor *a = arg;
    dgm_record *r;
    bool over = false;
    while (!over && (r = dgm_log_reader_next(a->reader))) {
        if (r->head.seq != a->seq + 1)
            fault("out of order", r->head.seq, a->seq);
        a->seq = r->head.seq;
        over = r->head.state == DGM_STATE_INPUT_REQUIRED;
        if (a->seq == a->cut_at &&
            !over) { /* the connection is gone; it comes back with its cursor */
            stop_reading(a);
            n_cuts++;
            dgm_core_subscribe(a->env->core, a->owner, (dgm_str){0}, dgm_str_from(a->task), a->seq,
                               on_subscribed, a);
            return;
        }
    }
    if (over || dgm_log_reader_is_over(a->reader)) {
        stop_reading(a);
        go_on(a);
    } else if (a->cancels && a->seq > 1) {
        a->cancels = false;
        stop_reading(a);
        dgm_core_cancel(a->env->core, a->owner, (dgm_str){0}, dgm_str_from(a->task), on_task, a);
    }
}

static void follow(struct actor *a, dgm_log *log, uint64_t after)
{
    a->log = dgm_log_ref(log);
    a->seq = after;
    a->cut_at = after + 1 + pick(a, CHUNKS);
    a->reader = dgm_log_reader_open(log, after, on_ready, a);
}

static void on_sent(dgm_code code, const dgm_sent *sent, const dgm_err *err, void *arg)
{
    struct actor *a = arg;
    (void)err;
    if (code) { /* to a task that ended meanwhile, or that many wait for */
        if (code != DGM_UNSUPPORTED_OPERATION && code != DGM_TASK_NOT_FOUND)
            fault("send", (uint64_t)code, 0);
        go_on(a);
        return;
    }
    n_resends += sent->is_resend;
    if (sent->is_message) {
        go_on(a);
        return;
    }
    snprintf(a->task, sizeof a->task, "%.*s", DGM_P(sent->task_id));
    follow(a, sent->log, sent->after);
}

static void send_text(struct actor *a, const char *text, const char *task, const char *id)
{
    dgm_part part = {.kind = DGM_PART_TEXT, .content = dgm_str_from(text)};
    dgm_message m = {.message_id = dgm_str_from(id),
                     .role = DGM_ROLE_USER,
                     .parts = {&part, 1},
                     .task_id = dgm_str_from(task)};
    /* Some have a context, which is read before the agent starts. All copies of a message have the same one. */
    if (!task && strlen(id) % 2)
        m.context_id = id[strlen(id) - 1] % 2 ? DGM_STR("one") : DGM_STR("two");
    dgm_send s = {.owner = a->owner,
                  .message = &m,
                  .protocol = DGM_STR("ag-ui"),
                  .caller_id = dgm_str_from(a->caller),
                  .always_new = pick(a, 4) == 0};
    dgm_core_send(a->env->core, &s, on_sent, a);
}

static void on_turn(dgm_code code, const dgm_found_turn *turn, const dgm_err *err, void *arg)
{
    struct actor *a = arg;
    (void)err;
    if (code) {
        if (code != DGM_TASK_NOT_FOUND)
            fault("find", (uint64_t)code, 0);
        go_on(a);
        return;
    }
    n_found++;
    if (turn->log->first_seq > turn->first_seq || turn->log->published < turn->first_seq)
        fault("a turn is not in its log", turn->first_seq, turn->log->published);
    snprintf(a->task, sizeof a->task, "%.*s", DGM_P(turn->task_id));
    follow(a, turn->log, turn->first_seq - 1);
}

static void next_step(void *arg)
{
    static const char *const texts[] = {"talk", "talk", "ask", "message", "hold"};
    struct actor *a = arg;
    unsigned long what = pick(a, 11);
    a->cancels = false;
    snprintf(a->id, sizeof a->id, "%llx", (unsigned long long)a->random);
    snprintf(a->caller, sizeof a->caller, "turn %lu", pick(a, KNOWN));
    if (what < 5) {
        a->cancels = what == 4 || pick(a, 8) == 0;
        send_text(a, texts[what], NULL, a->id);
    } else if (what < 7) { /* many send the same */
        snprintf(a->id, sizeof a->id, "the same %lu", pick(a, KNOWN));
        send_text(a, "talk", NULL, a->id);
    } else if (what == 7 && *a->task) {
        a->cancels = true; /* whatever its task does now */
        send_text(a, pick(a, 2) ? "talk" : "ask", a->task, a->id);
    } else if (what == 8 && *a->task) {
        dgm_core_cancel(a->env->core, a->owner, (dgm_str){0}, dgm_str_from(a->task), on_task, a);
    } else if (what == 9) {
        dgm_core_find_turn(a->env->core, a->owner, (dgm_str){0}, DGM_STR("ag-ui"),
                           dgm_str_from(a->caller), on_turn, a);
    } else {
        dgm_core_get(a->env->core, a->owner, (dgm_str){0}, dgm_str_from(a->task), on_task, a);
    }
}

/* ---- the test ------------------------------------------------------------------------------------------------ */

static void on_drained(void *arg)
{
    struct env *e = arg;
    sem_post(&e->done);
}

static void on_unfinished(dgm_code code, const dgm_task_row *rows, size_t n, bool more,
                          size_t total, const dgm_err *err, void *arg)
{
    struct env *e = arg;
    (void)rows, (void)more, (void)total, (void)err;
    if (code || n)
        fault("tasks left in the middle", (uint64_t)code, n);
    sem_post(&e->done);
}

static void look_for_unfinished(void *arg)
{
    struct env *e = arg;
    dgm_store_list_unfinished(e->store, 10, NULL, on_unfinished, e);
}

static void stress(const char *url, double seconds)
{
    static const dgm_core_agent agent = {
        .id = {"a", 1},
        .backend = &scripted,
        .dedupe = true,
        .history = {.messages = 20, .bytes = 65536, .tools = true}};
    static const dgm_str principals[] = {{"alice", 5}, {"bob", 3}};
    static struct actor actors[ACTORS];
    struct env e = {.n_acting = ACTORS};
    dgm_err err = {0};
    sem_init(&e.done, 0, 0);
    n_steps = n_wrong = n_cuts = n_resends = n_found = 0;
    check_ok(dgm_loops_new(LOOPS, &e.loops, &err), err);
    check_ok(dgm_store_open(url, &e.store, &err), err);
    dgm_core_options o = {.loops = e.loops, .store = e.store, .agents = &agent, .n_agents = 1};
    check_ok(dgm_core_new(&o, &e.core, &err), err);
    check_ok(dgm_loops_start(e.loops, &err), err);
    clock_gettime(CLOCK_MONOTONIC, &e.end);
    e.end.tv_nsec += (long)((seconds - (double)(long)seconds) * 1e9);
    e.end.tv_sec += (long)seconds + e.end.tv_nsec / 1000000000;
    e.end.tv_nsec %= 1000000000;
    for (size_t i = 0; i < ACTORS; i++) {
        actors[i] = (struct actor){
            .env = &e, .random = i * 7919 + 1, .owner = {.principal = principals[i % 2]}};
        dgm_loop_post(dgm_loops_at(e.loops, i % LOOPS), next_step, &actors[i]);
    }
    sem_wait(&e.done);
    dgm_core_drain(e.core, 200, on_drained, &e);
    sem_wait(&e.done);
    dgm_loop_post(dgm_loops_at(e.loops, 0), look_for_unfinished, &e);
    sem_wait(&e.done);
    dgm_core_stats stats = dgm_core_stats_of(e.core);
    print_message("# %s %lu steps, %lu cuts, %lu resends, %lu found, %llu tasks, %llu records\n",
                  url, (unsigned long)n_steps, (unsigned long)n_cuts, (unsigned long)n_resends,
                  (unsigned long)n_found, (unsigned long long)stats.tasks,
                  (unsigned long long)stats.records);
    dgm_loops_stop(e.loops);
    dgm_core_stop(e.core);
    dgm_store_close(e.store);
    dgm_loops_free(e.loops);
    dgm_core_free(e.core);
    sem_destroy(&e.done);
    if (n_wrong)
        fail_msg("%lu faults, the last: %s", (unsigned long)n_wrong, wrong);
    assert_int_equal(stats.running, 0);
}

static double seconds_for_each(void)
{
    const char *all = getenv("DRAGOMAN_STRESS_S");
    return (all ? atof(all) : 6) / 2;
}

static void everything_at_once_in_memory(void **state)
{
    (void)state;
    stress("memory:", seconds_for_each());
}

static void everything_at_once_on_sqlite(void **state)
{
    char dir[] = "/tmp/dgm-stress-XXXXXX", url[64], rm[64];
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(url, sizeof url, "sqlite:%s/db", dir);
    snprintf(rm, sizeof rm, "rm -r %s", dir);
    stress(url, seconds_for_each());
    assert_int_equal(system(rm), 0);
}

DGM_TEST_MAIN(dgm_test(everything_at_once_in_memory), dgm_test(everything_at_once_on_sqlite))
