/* test_worker_pool.c - a pool of worker processes and several loops: many runs at once, calls, services, reload, retire. */
#include "backend/test_worker.h"
#include "backend/worker/worker.h"

#include <stdatomic.h>

#define LOOPS 4

struct pool_test {
    dgm_loops *loops;
    dgm_worker_pool *pool;
    struct worker_lines lines;
    const char *argv[4];
    dgm_agent_options agent;
    _Atomic int n_sessions, n_closed;
};

/* A run, on any loop. */
struct pool_run {
    struct pool_test *t;
    dgm_loop *loop;
    dgm_worker_run *run;
    char thread[20];
    const char *text;
    dgm_buf out; /* the texts of its events, then the status or the fault */
    int n_events;
    uv_sem_t ended;
};

static struct pool_test *pool_open(const char *how, dgm_worker_options o)
{
    struct pool_test *t = dgm_xcalloc(1, sizeof *t);
    static const char *env[2];
    static char path[4096];
    dgm_err err = {0};
    signal(SIGPIPE, SIG_IGN);
    pthread_mutex_init(&t->lines.lock, NULL);
    dgm_buf_init(&t->lines.text, SIZE_MAX);
    t->agent = (dgm_agent_options){
        .id = DGM_STR("tester"), .on_log = worker_on_log, .log_user = &t->lines, .watch = o.watch};
    t->argv[0] = "python3";
    t->argv[1] = worker_path;
    t->argv[2] = how;
    snprintf(path, sizeof path, "PATH=%s", getenv("PATH"));
    env[0] = path;
    o.argv = t->argv;
    o.env = env;
    o.n_env = 1;
    o.agent = &t->agent;
    o.service.user = t;
    t->pool = dgm_worker_pool_open(&o);
    check_ok(dgm_loops_new(LOOPS, &t->loops, &err), err);
    check_ok(dgm_loops_start(t->loops, &err), err);
    return t;
}

static void pool_close(struct pool_test *t)
{
    dgm_loops_free(t->loops);
    dgm_worker_pool_close(t->pool);
    pthread_mutex_destroy(&t->lines.lock);
    dgm_buf_done(&t->lines.text);
    free(t);
}

static bool run_write_params(void *user, const dgm_json *info, dgm_buf *out, const char **ret_safe)
{
    struct pool_run *r = user;
    assert_non_null(dgm_json_get(info, DGM_STR("agents")));
    if (strcmp(r->text, "refused") == 0) {
        *ret_safe = "these params cannot be written";
        return false;
    }
    dgm_buf_add_lit(out, ",\"attempt\":1,\"isResumed\":false,\"message\":{\"parts\":[{\"text\":");
    dgm_json_put_str(out, dgm_str_from(r->text));
    dgm_buf_add_lit(out, "}]}");
    return true;
}

static void run_on_event(void *user, const dgm_worker_event *e)
{
    struct pool_run *r = user;
    yyjson_val *parts = dgm_json_get(
        dgm_json_get(dgm_json_get(e->data, DGM_STR("artifactUpdate")), DGM_STR("artifact")),
        DGM_STR("parts"));
    assert_int_equal(e->seq, r->n_events++);
    assert_ptr_equal(dgm_loop_current(), r->loop);
    dgm_buf_add_str(&r->out, dgm_json_str_member(yyjson_arr_get_first(parts), "text"));
}

static void run_on_result(void *user, const dgm_json *result)
{
    struct pool_run *r = user;
    dgm_buf_printf(&r->out, "|%.*s", DGM_P(dgm_json_str_member(result, "status")));
    r->run = NULL;
    uv_sem_post(&r->ended);
}

static void run_on_error(void *user, const dgm_worker_fault *fault)
{
    struct pool_run *r = user;
    dgm_buf_printf(&r->out, "!%d %.*s", (int)fault->kind, DGM_P(fault->safe));
    r->run = NULL;
    uv_sem_post(&r->ended);
}

static void run_do_start(void *arg)
{
    struct pool_run *r = arg;
    dgm_worker_run_handler h = {.write_params = run_write_params,
                                .on_event = run_on_event,
                                .on_result = run_on_result,
                                .on_error = run_on_error,
                                .user = r};
    r->run = dgm_worker_run_start(r->t->pool, r->loop, dgm_str_from(r->thread), &h);
    assert_true(dgm_str_starts(dgm_worker_run_id(r->run), DGM_STR("r")));
}

static void run_do_drop(void *arg)
{
    struct pool_run *r = arg;
    if (r->run)
        dgm_worker_run_drop(dgm_take(r->run));
    uv_sem_post(&r->ended);
}

static void run_do_cancel(void *arg)
{
    struct pool_run *r = arg;
    if (r->run)
        dgm_worker_run_cancel(r->run);
}

static struct pool_run *run_start(struct pool_test *t, size_t loop, size_t thread, const char *text)
{
    struct pool_run *r = dgm_xcalloc(1, sizeof *r);
    r->t = t;
    r->loop = dgm_loops_at(t->loops, loop % LOOPS);
    r->text = text;
    snprintf(r->thread, sizeof r->thread, "t%zu", thread);
    dgm_buf_init(&r->out, SIZE_MAX);
    uv_sem_init(&r->ended, 0);
    dgm_loop_post(r->loop, run_do_start, r);
    return r;
}

static void run_end_(struct pool_run *r, const char *want, const char *file, int line)
{
    uv_sem_wait(&r->ended);
    check_bytes_(r->out.p, r->out.n, want, strlen(want), file, line);
    dgm_buf_done(&r->out);
    uv_sem_destroy(&r->ended);
    free(r);
}
#define run_end(r, want) run_end_((r), (want), __FILE__, __LINE__)

/* ---- runs -------------------------------------------------------------------------------------------------------------------- */

static void runs_of_all_loops_share_the_processes(void **state)
{
    struct pool_test *t = pool_open("", (dgm_worker_options){.processes = 2});
    struct pool_run *runs[200];
    (void)state;
    dgm_worker_pool_prepare(t->pool, t->loops);
    for (size_t i = 0; i < 200; i++)
        runs[i] = run_start(t, i, i, i % 2 ? "say a;sleep 0.05;say b;say c" : "many 20 3");
    for (size_t i = 0; i < 200; i++)
        run_end(runs[i],
                i % 2 ? "abc|completed"
                      : "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx|completed");
    assert_true(worker_logged(&t->lines, "worker 1: process"));
    assert_true(worker_logged(&t->lines, "worker 2: process"));
    pool_close(t);
}

static void more_runs_than_places_wait(void **state)
{
    struct pool_test *t = pool_open("2", (dgm_worker_options){0});
    struct pool_run *runs[20];
    (void)state;
    for (size_t i = 0; i < 20; i++)
        runs[i] = run_start(t, i, i, "sleep 0.01;say x");
    for (size_t i = 0; i < 20; i++)
        run_end(runs[i], "x|completed");
    pool_close(t);
}

/* The first one waits until it is canceled, so the second one must not start before. */
static void runs_of_one_thread_follow_each_other(void **state)
{
    struct pool_test *t = pool_open("", (dgm_worker_options){.one_run_per_thread = true});
    struct pool_run *first = run_start(t, 0, 7, "say a;wait");
    (void)state;
    worker_wait_log(&t->lines, "is ready");
    usleep(100000);
    struct pool_run *second = run_start(t, 1, 7, "say b"), *other = run_start(t, 1, 8, "say c");
    run_end(other, "c|completed");
    assert_int_not_equal(uv_sem_trywait(&second->ended), 0);
    dgm_loop_post(first->loop, run_do_cancel, first);
    run_end(first, "a|cancelled");
    run_end(second, "b|completed");
    pool_close(t);
}

static void params_that_cannot_be_written_are_a_fault(void **state)
{
    struct pool_test *t = pool_open("", (dgm_worker_options){0});
    (void)state;
    run_end(run_start(t, 0, 1, "refused"), "!2 these params cannot be written");
    run_end(run_start(t, 1, 1, "refused"), "!2 these params cannot be written");
    run_end(run_start(t, 2, 1, "say fine"), "fine|completed");
    pool_close(t);
}

static void a_dropped_run_calls_nothing_back(void **state)
{
    struct pool_test *t = pool_open("", (dgm_worker_options){0});
    (void)state;
    run_end(run_start(t, 0, 1, "say warm"), "warm|completed");
    for (size_t i = 0; i < 8; i++) {
        struct pool_run *r = run_start(t, i, i, "sleep 0.1;say x");
        dgm_loop_post(r->loop, run_do_drop, r);
        run_end(r, "");
    }
    run_end(run_start(t, 3, 1, "sleep 0.2;say last"), "last|completed");
    assert_false(worker_logged(&t->lines, "unknown"));
    pool_close(t);
}

static void the_end_of_a_process_ends_all_of_its_runs(void **state)
{
    struct pool_test *t = pool_open("", (dgm_worker_options){0});
    struct pool_run *runs[10];
    (void)state;
    for (size_t i = 0; i < 10; i++)
        runs[i] = run_start(t, i, i, i == 9 ? "sleep 0.3;kill" : "wait");
    for (size_t i = 0; i < 10; i++)
        run_end(runs[i],
                "!1 the agent's worker process was lost: it was killed by signal 9 (Killed)");
    run_end(run_start(t, 0, 1, "say again"), "again|completed");
    pool_close(t);
}

/* ---- calls --------------------------------------------------------------------------------------------------------------------- */

struct pool_call {
    struct pool_test *t;
    dgm_buf out;
    uint64_t timeout_ms;
    bool is_dropped;
    uv_sem_t ended;
};

static void call_on_answer(void *user, const dgm_json *result, const dgm_worker_fault *fault)
{
    struct pool_call *c = user;
    if (result)
        dgm_json_put(&c->out, result);
    else
        dgm_buf_printf(&c->out, "!%d %.*s", (int)fault->kind, DGM_P(fault->safe));
    uv_sem_post(&c->ended);
}

static void call_do_start(void *arg)
{
    struct pool_call *c = arg;
    dgm_worker_call *call =
        dgm_worker_call_start(c->t->pool, dgm_loop_current(), DGM_STR("t1"), "state",
                              DGM_STR("{\"thread\":\"t1\"}"), c->timeout_ms, call_on_answer, c);
    if (c->is_dropped) {
        dgm_worker_call_drop(call);
        uv_sem_post(&c->ended);
    }
}

static void call_check(struct pool_test *t, size_t loop, uint64_t timeout_ms, bool is_dropped,
                       const char *want)
{
    struct pool_call c = {.t = t, .timeout_ms = timeout_ms, .is_dropped = is_dropped};
    dgm_buf_init(&c.out, SIZE_MAX);
    uv_sem_init(&c.ended, 0);
    dgm_loop_post(dgm_loops_at(t->loops, loop), call_do_start, &c);
    uv_sem_wait(&c.ended);
    check_str(c.out, want);
    dgm_buf_done(&c.out);
    uv_sem_destroy(&c.ended);
}

static void calls_are_answered_on_their_loop(void **state)
{
    struct pool_test *t = pool_open("", (dgm_worker_options){0});
    (void)state;
    for (size_t i = 0; i < LOOPS; i++)
        call_check(t, i, 60000, false, "{\"exists\":true,\"thread\":\"t1\"}");
    for (size_t i = 0; i < LOOPS; i++)
        call_check(t, i, 60000, true, "");
    pool_close(t);
}

static void a_call_that_is_not_answered_ends(void **state)
{
    struct pool_test *t = pool_open("mute", (dgm_worker_options){0});
    (void)state;
    call_check(t, 0, 300, false, "!2 the agent did not answer in time");
    run_end(run_start(t, 1, 1, "say fine"), "fine|completed");
    pool_close(t);
}

/* ---- a service --------------------------------------------------------------------------------------------------------------------- */

static void *service_open(void *user, dgm_loop *home)
{
    struct pool_test *t = user;
    assert_ptr_equal(home, dgm_loop_current());
    t->n_sessions++;
    return t;
}

static bool service_request(void *session, dgm_worker_request *r)
{
    struct pool_test *t = session;
    assert_ptr_equal(r->loop, dgm_loop_current());
    assert_int_equal(t->n_sessions, t->n_closed + 1);
    if (dgm_str_is(r->method, "checkpoint/get"))
        dgm_worker_respond(r, DGM_STR("null"));
    else if (dgm_str_is(r->method, "checkpoint/list")) {
        size_t n = (size_t)9 << 20;
        char *large = dgm_xmalloc(n);
        memset(large, ' ', n);
        dgm_worker_respond(r, (dgm_str){large, n});
        free(large);
    } else if (dgm_str_is(r->method, "blob/write"))
        dgm_worker_respond_error(r, DGM_WORKER_BAD_PARAMS, "missing %s", "data");
    else
        return false;
    return true;
}

static void service_close(void *session)
{
    struct pool_test *t = session;
    t->n_closed++;
}

static void the_service_answers_requests_of_the_worker(void **state)
{
    struct pool_test *t = pool_open("", (dgm_worker_options){.service = {.open = service_open,
                                                                         .request = service_request,
                                                                         .close = service_close}});
    (void)state;
    run_end(run_start(t, 0, 1, "call checkpoint/get"), "null|completed");
    run_end(run_start(t, 1, 1, "call blob/write"),
            "{\"code\": -32602, \"message\": \"missing data\"}|completed");
    run_end(
        run_start(t, 2, 1, "call checkpoint/list"),
        "{\"code\": -32010, \"message\": \"the result is larger than maxLineBytes\"}|completed");
    run_end(run_start(t, 3, 1, "call blob/unknown"),
            "{\"code\": -32601, \"message\": \"unknown method\"}|completed");
    run_end(run_start(t, 0, 1, "kill"),
            "!1 the agent's worker process was lost: it was killed by signal 9 (Killed)");
    run_end(run_start(t, 1, 1, "call checkpoint/get"), "null|completed");
    assert_int_equal(t->n_sessions, 2);
    pool_close(t);
}

/* ---- reload and retire ------------------------------------------------------------------------------------------------------------------ */

static void reload_waits_for_runs_and_new_runs_wait_for_it(void **state)
{
    struct pool_test *t = pool_open("", (dgm_worker_options){0});
    struct pool_run *first = run_start(t, 0, 1, "say a;wait");
    (void)state;
    worker_wait_log(&t->lines, "is ready");
    usleep(100000);
    dgm_worker_pool_reload(t->pool);
    usleep(100000);
    struct pool_run *second = run_start(t, 1, 2, "say b");
    usleep(200000);
    assert_int_not_equal(uv_sem_trywait(&second->ended), 0);
    dgm_loop_post(first->loop, run_do_cancel, first);
    run_end(first, "a|cancelled");
    run_end(second, "b|completed");
    assert_false(worker_logged(&t->lines, "!"));
    pool_close(t);
}

static void a_changed_file_starts_a_new_process(void **state)
{
    char folder[] = "/tmp/dragoman-watch-XXXXXX", file[200], sub[100];
    (void)state;
    assert_non_null(mkdtemp(folder));
    struct pool_test *t = pool_open("", (dgm_worker_options){.watch = folder});
    run_end(run_start(t, 0, 1, "say a"), "a|completed");
    snprintf(sub, sizeof sub, "%s/sub", folder);
    assert_int_equal(mkdir(sub, 0700), 0);
    usleep(500000); /* the new folder is watched, too */
    snprintf(file, sizeof file, "%s/agent.py", sub);
    int fd = open(file, O_CREAT | O_WRONLY, 0600);
    close(fd);
    worker_wait_log(&t->lines, "files of the agent have changed");
    run_end(run_start(t, 0, 1, "say b"), "b|completed");
    assert_false(worker_logged(&t->lines, "!"));
    pool_close(t);
    unlink(file);
    rmdir(sub);
    rmdir(folder);
}

static void retire_ends_the_processes(void **state)
{
    struct pool_test *t = pool_open("", (dgm_worker_options){.processes = 2, .grace = 1});
    (void)state;
    dgm_worker_pool_prepare(t->pool, t->loops);
    worker_wait_log(&t->lines, "worker 1: process");
    worker_wait_log(&t->lines, "worker 2: process");
    struct pool_run *r = run_start(t, 0, 1, "say a;deaf");
    usleep(200000);
    dgm_worker_pool_retire(t->pool, false);
    usleep(100000);
    dgm_worker_pool_retire(t->pool, true); /* the run does not end: its process is killed */
    run_end(r, "a!1 the server is shutting down");
    run_end(run_start(t, 1, 1, "say b"), "!2 the server is shutting down");
    pool_close(t);
}

static void a_retired_pool_still_serves_runs(void **state)
{
    struct pool_test *t = pool_open("", (dgm_worker_options){0});
    (void)state;
    run_end(run_start(t, 0, 1, "say a"), "a|completed");
    dgm_worker_pool_retire(t->pool, false);
    usleep(300000);
    run_end(run_start(t, 1, 1, "say b"), "b|completed");
    pool_close(t);
}

static void loops_stop_while_runs_are_at_work(void **state)
{
    struct pool_test *t = pool_open("", (dgm_worker_options){.processes = 2});
    struct pool_run *runs[8];
    (void)state;
    for (size_t i = 0; i < 8; i++)
        runs[i] = run_start(t, i, i, "say a;wait");
    worker_wait_log(&t->lines, "is ready");
    dgm_loops_free(dgm_take(t->loops));
    for (size_t i = 0; i < 8; i++) { /* each has heard of it, in whatever state it was */
        uv_sem_wait(&runs[i]->ended);
        assert_true(fake_has(&runs[i]->out, "the server is shutting down"));
        dgm_buf_done(&runs[i]->out);
        uv_sem_destroy(&runs[i]->ended);
        free(runs[i]);
    }
    pool_close(t);
}

DGM_TEST_MAIN(dgm_test(runs_of_all_loops_share_the_processes), dgm_test(more_runs_than_places_wait),
              dgm_test(runs_of_one_thread_follow_each_other),
              dgm_test(params_that_cannot_be_written_are_a_fault),
              dgm_test(a_dropped_run_calls_nothing_back),
              dgm_test(the_end_of_a_process_ends_all_of_its_runs),
              dgm_test(calls_are_answered_on_their_loop),
              dgm_test(a_call_that_is_not_answered_ends),
              dgm_test(the_service_answers_requests_of_the_worker),
              dgm_test(reload_waits_for_runs_and_new_runs_wait_for_it),
              dgm_test(a_changed_file_starts_a_new_process), dgm_test(retire_ends_the_processes),
              dgm_test(a_retired_pool_still_serves_runs),
              dgm_test(loops_stop_while_runs_are_at_work))
