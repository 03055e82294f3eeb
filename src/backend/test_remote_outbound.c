/* test_remote_outbound.c - addresses that an agent's server names: refused unless the configuration allows them. */
#include "backend/remote/remote.h"

#include "support/check.h"

#include <signal.h>

/* Nothing listens at port 1: a request that the guard lets through is unreachable. */
#define OWN "http://127.0.0.1:1/agent"
#define OTHER "http://127.0.0.1:2/named-by-a-card"

struct call_test {
    dgm_run run; /* first */
    dgm_remote remote;
    const char *url;
    uv_sem_t ended;
    dgm_fetch_end end;
    char error[300];
};

static bool is_full(const dgm_run *run)
{
    (void)run;
    return false;
}

static const dgm_run_ops ops = {.is_full = is_full};

static void on_item(void *user, const dgm_frames_item *item)
{
    (void)user, (void)item;
}

static void on_end(void *user, const dgm_remote_end *end)
{
    struct call_test *t = user;
    t->end = end->end;
    snprintf(t->error, sizeof t->error, "%s", end->error ? end->error : "");
    uv_sem_post(&t->ended);
}

static void start_call(void *arg)
{
    struct call_test *t = arg;
    dgm_remote_request request = {.method = "GET", .url = t->url};
    dgm_remote_start(&t->remote, &t->run, &request, (dgm_remote_handler){on_item, on_end, t});
}

static void check_call(const char *url, const char *allow, dgm_fetch_end end, const char *error)
{
    dgm_arena *a = dgm_arena_new();
    dgm_loops *loops;
    dgm_err err = {0};
    dgm_address_range range;
    dgm_agent_options options = {.outbound_allow = {&range, allow ? 1 : 0}};
    struct call_test t = {.remote = DGM_REMOTE_DEFAULTS, .url = url};
    signal(SIGPIPE, SIG_IGN);
    if (allow)
        check_ok(dgm_address_parse_range(dgm_str_from(allow), &range, &err), err);
    t.remote.url = DGM_STR(OWN);
    check_ok(dgm_remote_open(&t.remote, &options, a, &err), err);
    check_ok(dgm_loops_new(1, &loops, &err), err);
    check_ok(dgm_loops_start(loops, &err), err);
    uv_sem_init(&t.ended, 0);
    t.run = (dgm_run){.ops = &ops, .loop = dgm_loops_at(loops, 0), .arena = a};
    dgm_loop_post(t.run.loop, start_call, &t);
    uv_sem_wait(&t.ended);
    dgm_loops_stop(loops);
    dgm_loops_free(loops);
    uv_sem_destroy(&t.ended);
    dgm_arena_free(a);
    assert_string_equal(t.error, error);
    assert_int_equal(t.end, end);
}

#define REFUSED_ERROR "127.0.0.1:2 is not connected to: 127.0.0.1 is a loopback address"
#define UNREACHABLE_ERROR(port) "cannot connect to 127.0.0.1:" port ": Connection refused"

static void the_address_of_the_settings_is_not_checked(void **state)
{
    (void)state;
    check_call(OWN, NULL, DGM_FETCH_UNREACHABLE, UNREACHABLE_ERROR("1"));
}

static void another_origin_needs_to_be_allowed(void **state)
{
    (void)state;
    check_call(OTHER, NULL, DGM_FETCH_REFUSED, REFUSED_ERROR);
    check_call(OTHER, "10.0.0.0/8", DGM_FETCH_REFUSED, REFUSED_ERROR);
    check_call(OTHER, "127.0.0.0/8", DGM_FETCH_UNREACHABLE, UNREACHABLE_ERROR("2"));
    check_call(OTHER, "127.0.0.1", DGM_FETCH_UNREACHABLE, UNREACHABLE_ERROR("2"));
}

DGM_TEST_MAIN(dgm_test(the_address_of_the_settings_is_not_checked),
              dgm_test(another_origin_needs_to_be_allowed))
