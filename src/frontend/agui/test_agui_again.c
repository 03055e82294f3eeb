/* frontend/agui/test_agui_again.c - whoever comes in the middle of a run ends up with what the others have. */
#include "base/list.h"
#include "canon/copy.h"
#include "canon/records_to_events.h"
#include "canon/test_stories.h"
#include "canon/verify.h"
#include "frontend/agui/agui_again.h"

/* ---- a client --------------------------------------------------------------------------------------------------------- */

struct client {
    dgm_canon_fold *fold;
    dgm_verify *verify;
    struct dump said;
};

static struct client new_client(void)
{
    struct client c = {dgm_canon_fold_new(DGM_MAX_SNAPSHOT_BYTES), dgm_verify_new(), {{0}}};
    dgm_buf_init(&c.said.b, SIZE_MAX);
    return c;
}

static void free_client(struct client *c)
{
    dgm_canon_fold_free(c->fold);
    dgm_verify_free(c->verify);
    dgm_buf_done(&c->said.b);
}

static dgm_code see(void *arg, const dgm_canon_event *e)
{
    struct client *c = arg;
    dgm_err err = {0};
    dgm_canon_fold_add(c->fold, e);
    if (dgm_verify_feed(c->verify, e, &err))
        fail_msg("%s: %s\n%.*s", dgm_canon_kind_name(e->kind), err.msg,
                 DGM_P(dgm_buf_str(&c->said.b)));
    return dump_event(&c->said, e);
}

/* Its messages as text, without activities: their position is that of their last event. */
static dgm_str messages_of(struct client *c, dgm_arena *a)
{
    dgm_canon_messages all = dgm_canon_fold_messages(c->fold, a), some = {all.at, 0};
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < all.n; i++) {
        if (all.at[i].role != DGM_CANON_ACTIVITY)
            some.at[some.n++] = all.at[i];
    }
    dump_messages(&b, &some);
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

/* ---- a run ---------------------------------------------------------------------------------------------------------------- */

struct run {
    dgm_arena *a;
    dgm_canon_event *at;
    size_t n;
};

static dgm_code keep(void *arg, const dgm_canon_event *e)
{
    struct run *r = arg;
    r->at = dgm_list_grow(r->a, r->at, r->n, sizeof *r->at);
    r->at[r->n++] = dgm_canon_copy_event(r->a, e);
    return DGM_OK;
}

static struct run run_of(dgm_arena *a, const dgm_event *events, size_t n)
{
    struct run r = {.a = a};
    dgm_err err = {0};
    dgm_records_params params = {
        .thread_id = DGM_STR("th"), .run_id = DGM_STR("r"), .whole_snapshots = true};
    dgm_records_to_events *f = dgm_records_to_events_new(&params);
    dgm_code rc = DGM_OK;
    for (size_t i = 0; i < n && !rc; i++)
        rc = dgm_records_to_events_feed(f, &events[i], (dgm_canon_sink){keep, &r}, &err);
    if (!rc)
        dgm_records_to_events_end(f, (dgm_canon_sink){keep, &r}, &err);
    dgm_records_to_events_free(f);
    return r;
}

static struct run run_of_lines(dgm_arena *a, const char *const *lines, size_t n)
{
    dgm_event *events = dgm_new_n(a, dgm_event, n);
    dgm_mint mint = {.count = 0};
    for (size_t i = 0; i < n; i++)
        read_record(a, &mint, dgm_str_from(lines[i]), &events[i]);
    return run_of(a, events, n);
}

/* Sends the run to a client that connects after the first k events. */
static struct client tell_from(const struct run *r, size_t k, const agui_again_params *params)
{
    struct client c = new_client();
    agui_again again;
    dgm_agui_again_init(&again, params);
    for (size_t i = 0; i < r->n; i++) {
        if (i == k)
            assert_int_equal(dgm_agui_again_on_pause(&again, (dgm_canon_sink){see, &c}), DGM_OK);
        assert_int_equal(dgm_agui_again_on_event(&again, &r->at[i], (dgm_canon_sink){see, &c}),
                         DGM_OK);
    }
    dgm_agui_again_on_pause(&again, (dgm_canon_sink){see, &c});
    assert_null(again.arena); /* nothing is left to free */
    return c;
}

/* ---- stories --------------------------------------------------------------------------------------------------------------- */

static const char *const told[] = {
    "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_SUBMITTED\"},"
    "\"history\":[{\"messageId\":"
    "\"u1\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"Hi\"}]}]}}",
    "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_"
    "WORKING\"}}}",
    "{\"kind\":\"internal:state\",\"taskId\":\"t\",\"timestamp\":\"2026-01-01T00:00:00Z\","
    "\"value\":{\"n\":1}}",
    "{\"kind\":\"internal:state\",\"taskId\":\"t\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"name\":"
    "\"n\",\"value\":2}",
    "{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":{\"artifactId\":\"a\","
    "\"parts\":[{\"text\":"
    "\"Hel\"}]}}}",
    "{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":{\"artifactId\":\"a\","
    "\"parts\":[{\"text\":"
    "\"lo\"}]},\"append\":true,\"lastChunk\":true}}",
    "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_"
    "COMPLETED\"}}}",
};

static dgm_canon_message message(dgm_canon_role role, const char *id, const char *text)
{
    return (dgm_canon_message){
        .role = role,
        .id = dgm_str_from(id),
        .content = {.kind = DGM_CANON_CONTENT_TEXT, .text = dgm_str_from(text)}};
}

static void in_the_middle_of_a_message(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct run r = run_of_lines(a, told, sizeof told / sizeof *told);
    dgm_canon_message held[] = {message(DGM_CANON_USER, "u1", "Hi"),
                                message(DGM_CANON_ASSISTANT, "r-m1", "H")};
    (void)state;
    struct client c =
        tell_from(&r, 6, &(agui_again_params){.before = {held, 1}, .held = {held, 2}});
    check_str(c.said.b,
              "RUN_STARTED th r\n"
              "MESSAGES_SNAPSHOT {user u1 \"Hi\"} {assistant r-m1 \"Hel\"}\n"
              "STATE_SNAPSHOT {\"n\":1}\n"
              "STATE_DELTA [{\"op\":\"add\",\"path\":\"/n\",\"value\":2}]\n"
              "STEP_STARTED working\n"
              "TEXT_MESSAGE_START r-m1 metadata={\"dragoman:artifact\":{\"artifactId\":\"a\"}}\n"
              "TEXT_MESSAGE_CONTENT r-m1 \"lo\"\n"
              "TEXT_MESSAGE_END r-m1\n"
              "STEP_FINISHED working\n"
              "RUN_FINISHED th r\n");
    free_client(&c);
}

static void when_all_is_over(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct run r = run_of_lines(a, told, sizeof told / sizeof *told);
    dgm_canon_message before[] = {message(DGM_CANON_USER, "u1", "Hi")};
    (void)state;
    struct client c = tell_from(&r, r.n, &(agui_again_params){.before = {before, 1}});
    check_str(c.said.b, "RUN_STARTED th r\n"
                        "MESSAGES_SNAPSHOT {user u1 \"Hi\"} {assistant r-m1 \"Hello\"}\n"
                        "STATE_SNAPSHOT {\"n\":1}\n"
                        "STATE_DELTA [{\"op\":\"add\",\"path\":\"/n\",\"value\":2}]\n"
                        "RUN_FINISHED th r\n");
    free_client(&c);
}

static void a_client_with_other_ids_starts_again(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct run r = run_of_lines(a, told, sizeof told / sizeof *told);
    dgm_canon_message before[] = {message(DGM_CANON_USER, "u1", "Hi"),
                                  message(DGM_CANON_ASSISTANT, "x", "Hello")};
    dgm_canon_message held[] = {before[0], message(DGM_CANON_ASSISTANT, "r-m1", "Hello")};
    (void)state;
    struct client c = tell_from(
        &r, r.n,
        &(agui_again_params){.before = {before, 2}, .held = {held, 2}, .only_before = true});
    check_str(c.said.b, "RUN_STARTED th r\n"
                        "MESSAGES_SNAPSHOT\n"
                        "MESSAGES_SNAPSHOT {user u1 \"Hi\"} {assistant x \"Hello\"}\n"
                        "STATE_SNAPSHOT {\"n\":1}\n"
                        "STATE_DELTA [{\"op\":\"add\",\"path\":\"/n\",\"value\":2}]\n"
                        "RUN_FINISHED th r\n");
    free_client(&c);
}

static void a_thread_whose_last_run_failed_is_in_order(void **state)
{
    static const char *const failed[] = {"{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{"
                                         "\"state\":\"TASK_STATE_SUBMITTED\"}}}",
                                         "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\","
                                         "\"status\":{\"state\":\"TASK_STATE_FAILED\"}}}"};
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct run r = run_of_lines(a, failed, 2);
    (void)state;
    struct client c =
        tell_from(&r, r.n, &(agui_again_params){.ends_well = true, .no_messages = true});
    check_str(c.said.b, "RUN_STARTED th r\nRUN_FINISHED th r\n");
    free_client(&c);
    c = tell_from(&r, r.n, &(agui_again_params){.no_messages = true});
    check_str(c.said.b, "RUN_STARTED th r\nRUN_ERROR failed \"The task failed\"\n");
    free_client(&c);
}

static void too_much_to_say_again_is_an_error(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct client c = new_client();
    agui_again again;
    char *big = dgm_arena_alloc(a, DGM_MAX_SNAPSHOT_BYTES + 1);
    dgm_canon_event e = {.kind = DGM_CANON_RUN_STARTED};
    dgm_canon_sink next = {see, &c};
    (void)state;
    memset(big, 'x', DGM_MAX_SNAPSHOT_BYTES);
    dgm_agui_again_init(&again, &(agui_again_params){0});
    e.run_started.thread_id = e.run_started.run_id = DGM_STR("r");
    dgm_agui_again_on_event(&again, &e, next);
    e = (dgm_canon_event){.kind = DGM_CANON_TEXT_MESSAGE_START};
    e.text.message_id = DGM_STR("m");
    dgm_agui_again_on_event(&again, &e, next);
    e.kind = DGM_CANON_TEXT_MESSAGE_CONTENT;
    e.text.delta = (dgm_str){big, DGM_MAX_SNAPSHOT_BYTES};
    dgm_agui_again_on_event(&again, &e, next);
    assert_int_equal(dgm_agui_again_on_pause(&again, next), DGM_TOO_LARGE);
    e = (dgm_canon_event){.kind = DGM_CANON_RUN_ERROR}; /* the caller emits it then */
    dgm_agui_again_on_event(&again, &e, next);
    assert_non_null(strstr(dgm_arena_dup(a, dgm_buf_str(&c.said.b)).p, "RUN_ERROR too_large"));
    free_client(&c);
}

/* ---- all of them ------------------------------------------------------------------------------------------------------------ */

static void wherever_one_comes_in(void **state)
{
    (void)state;
    for (seed = 1; seed < 400; seed += 1) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        uint64_t story = seed;
        size_t n = 2 + roll(14);
        dgm_event *events = dgm_new_n(a, dgm_event, n);
        tell_story(a, events, n);
        struct run r = run_of(a, events, n);
        struct client whole = new_client();
        for (size_t i = 0; i < r.n; i++)
            see(&whole, &r.at[i]);
        dgm_str want = messages_of(&whole, a);
        for (size_t k = 1; k <= r.n; k++) {
            struct client c = tell_from(&r, k, &(agui_again_params){0});
            check_str(messages_of(&c, a), want.p);
            free_client(&c);
        }
        free_client(&whole);
        seed = story;
    }
}

DGM_TEST_MAIN(dgm_test(in_the_middle_of_a_message), dgm_test(when_all_is_over),
              dgm_test(a_client_with_other_ids_starts_again),
              dgm_test(a_thread_whose_last_run_failed_is_in_order),
              dgm_test(too_much_to_say_again_is_an_error), dgm_test(wherever_one_comes_in))
