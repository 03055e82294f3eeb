/* test_agent_loop.c - include/dragoman/agent.h, with the scripted model; the compliance test of document 002. */
#include "base/arena.h"
#include "json/json.h"
#include "support/check.h"

#include <dragoman/agent.h>
#include <pthread.h>
#include <unistd.h>

#define SETTINGS                                                                                   \
    "{\"base_url\":\"mock:\",\"ask_user\":true,\"tools\":[{\"exec\":{\"name\":\"now\",\"command\":[\"echo\",\"noon\"]," \
    "\"description\":\"the time\"}}]}"

#define FLOW                                                                                       \
    "task=submitted status-update=working "                                                        \
    "internal:llm-call internal:usage internal:message internal:tool-start internal:tool-complete " \
    "internal:message internal:checkpoint "                                                        \
    "internal:llm-call artifact-update internal:usage artifact-update internal:checkpoint "        \
    "status-update=completed"

/* ---- what a call delivered ------------------------------------------------------------------------------------- */

#define MAX_SEEN 2000

struct seen {
    dgm_arena *arena;
    yyjson_val *events[MAX_SEEN]; /* their JSON */
    size_t n;
    size_t n_structs_differ; /* the struct of the event is another than its JSON */
    bool had_last;
    char task_id[64];
    /* what on_event does */
    dgm_agent_loop *loop;
    const char *cancel_at; /* kind: cancels the task there */
    const char *stop_at;   /* kind: returns false there */
    dgm_code cancel_code;
};

static dgm_str kind_of(const struct seen *s, size_t i)
{
    return dgm_json_str_member(s->events[i], "kind");
}

static dgm_str state_of(const struct seen *s, size_t i)
{
    return dgm_json_str_member(dgm_json_get(s->events[i], DGM_STR("status")), "state");
}

static bool is_final(const struct seen *s, size_t i)
{
    return yyjson_is_true(dgm_json_get(s->events[i], DGM_STR("final")));
}

static dgm_str struct_kind(const dgm_event *e)
{
    return e->kind == DGM_EVENT_TASK       ? DGM_STR("task")
           : e->kind == DGM_EVENT_STATUS   ? DGM_STR("status-update")
           : e->kind == DGM_EVENT_ARTIFACT ? DGM_STR("artifact-update")
                                           : DGM_STR("internal:");
}

static bool collect(void *arg, const dgm_agent_event *event)
{
    struct seen *s = arg;
    assert_true(s->n < MAX_SEEN);
    assert_false(s->had_last);
    s->had_last = event->is_last;
    s->events[s->n] = dgm_json_parse_trusted(s->arena, dgm_arena_dup(s->arena, event->json));
    dgm_str kind = kind_of(s, s->n);
    s->n_structs_differ += !dgm_str_starts(kind, struct_kind(event->event));
    s->n_structs_differ += event->is_internal != dgm_str_starts(kind, DGM_STR("internal:"));
    if (event->event->kind == DGM_EVENT_TASK)
        snprintf(s->task_id, sizeof s->task_id, "%.*s", DGM_P(event->event->task->id));
    s->n++;
    if (s->cancel_at && dgm_str_eq(kind, dgm_str_from(s->cancel_at))) {
        s->cancel_at = NULL;
        s->cancel_code = dgm_agent_loop_cancel(s->loop, dgm_str_from(s->task_id), NULL);
    }
    return !s->stop_at || !dgm_str_eq(kind, dgm_str_from(s->stop_at));
}

static void seen_clear(struct seen *s)
{
    dgm_arena_free(s->arena);
    *s = (struct seen){.arena = dgm_arena_new(), .loop = s->loop};
}

static struct seen *seen_new(dgm_agent_loop *loop)
{
    struct seen *s = dgm_xcalloc(1, sizeof *s);
    s->loop = loop;
    seen_clear(s);
    return s;
}

static void seen_free(struct seen *s)
{
    dgm_arena_free(s->arena);
    free(s);
}

/* The text of all artifacts: append false replaces. Only for one artifact at a time. */
static void put_text(const struct seen *s, dgm_buf *b)
{
    for (size_t i = 0; i < s->n; i++) {
        if (!dgm_str_is(kind_of(s, i), "artifact-update"))
            continue;
        yyjson_val *parts = dgm_json_get(dgm_json_get(s->events[i], DGM_STR("artifact")),
                                         DGM_STR("parts"));
        if (!yyjson_is_true(dgm_json_get(s->events[i], DGM_STR("append"))))
            dgm_buf_clear(b);
        for (size_t k = 0; k < yyjson_arr_size(parts); k++)
            dgm_buf_add_str(b, dgm_json_str_member(yyjson_arr_get(parts, k), "text"));
    }
}

static void check_text(const struct seen *s, const char *want)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    put_text(s, &b);
    check_str(dgm_buf_str(&b), want);
    dgm_buf_done(&b);
}

static void check_last(const struct seen *s, const char *state, bool final)
{
    assert_true(s->n > 0);
    assert_true(s->had_last);
    check_str(kind_of(s, s->n - 1), "status-update");
    check_str(state_of(s, s->n - 1), state);
    assert_int_equal(is_final(s, s->n - 1), final);
    assert_int_equal(s->n_structs_differ, 0);
}

/* The kinds in order; statuses with their state; equal neighbours once. */
static void check_flow(const struct seen *s, const char *want)
{
    dgm_buf b;
    dgm_str before = {0};
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < s->n; i++) {
        dgm_str kind = kind_of(s, i), state = state_of(s, i);
        if (dgm_str_eq(kind, before) && !state.n)
            continue;
        dgm_buf_printf(&b, "%s%.*s%s%.*s", b.n ? " " : "", DGM_P(kind), state.n ? "=" : "",
                       DGM_P(state));
        before = kind;
    }
    check_str(dgm_buf_str(&b), want);
    dgm_buf_done(&b);
}

static dgm_agent_loop *open_loop(const char *settings, const char *store)
{
    dgm_agent_loop_options o = {
        .size = sizeof o, .settings = dgm_str_from(settings), .store = store};
    dgm_agent_loop *loop = NULL;
    dgm_err err = {0};
    if (dgm_agent_loop_new(&o, &loop, &err))
        fail_msg("dgm_agent_loop_new: %s at %s", err.msg, err.at);
    return loop;
}

static void run(struct seen *s, const char *prompt, const dgm_agent_execute_options *o)
{
    dgm_err err = {0};
    if (dgm_agent_loop_execute(s->loop, dgm_str_from(prompt), o, collect, s, &err))
        fail_msg("execute: %s", err.msg);
}

/* ---- execute ------------------------------------------------------------------------------------------------------ */

/* Document 002, "Testing": internal events are filtered, the rest has the three kinds, `task` first, a final status last. */
static void the_compliance_test_of_document_002(void **state)
{
    dgm_agent_loop *loop = open_loop(SETTINGS, NULL);
    struct seen *s = seen_new(loop);
    size_t first = SIZE_MAX, last = 0;
    (void)state;
    run(s, "Test prompt", NULL);
    for (size_t i = 0; i < s->n; i++) {
        if (dgm_str_starts(kind_of(s, i), DGM_STR("internal:")))
            continue;
        assert_true(dgm_str_is(kind_of(s, i), "task") ||
                    dgm_str_is(kind_of(s, i), "status-update") ||
                    dgm_str_is(kind_of(s, i), "artifact-update"));
        first = first == SIZE_MAX ? i : first;
        last = i;
    }
    assert_int_equal(first, 0);
    check_str(kind_of(s, 0), "task");
    check_str(kind_of(s, last), "status-update");
    assert_true(is_final(s, last));
    check_last(s, "completed", true);
    seen_free(s);
    dgm_agent_loop_free(loop);
}

static void the_flow_of_an_execution_with_a_tool(void **state)
{
    dgm_agent_loop *loop = open_loop(SETTINGS, NULL);
    struct seen *s = seen_new(loop);
    (void)state;
    run(s, "call now {} then echo It is noon.", NULL);
    check_flow(s, FLOW);
    check_last(s, "completed", true);
    check_text(s, "It is noon.");
    seen_free(s);
    dgm_agent_loop_free(loop);
}

static void a_context_is_continued(void **state)
{
    dgm_agent_loop *loop = open_loop(SETTINGS, NULL);
    struct seen *s = seen_new(loop);
    dgm_agent_execute_options o = {.size = sizeof o, .context_id = DGM_STR("ctx-456")};
    (void)state;
    run(s, "echo one", &o);
    check_str(dgm_json_str_member(s->events[0], "contextId"), "ctx-456");
    check_last(s, "completed", true);
    seen_clear(s);
    run(s, "echo two", &o);
    check_str(dgm_json_str_member(s->events[0], "contextId"), "ctx-456");
    check_text(s, "two");
    seen_free(s);
    dgm_agent_loop_free(loop);
}

static void a_question_is_answered(void **state)
{
    dgm_agent_loop *loop = open_loop(SETTINGS, NULL);
    struct seen *s = seen_new(loop);
    char task_id[64];
    (void)state;
    run(s, "ask Which color?", NULL);
    check_last(s, "input-required", true);
    strcpy(task_id, s->task_id);
    seen_clear(s);
    dgm_agent_execute_options o = {.size = sizeof o, .task_id = dgm_str_from(task_id)};
    run(s, "blue", &o);
    check_str(kind_of(s, 0), "task");
    check_str(dgm_str_from(s->task_id), task_id);
    check_last(s, "completed", true);
    seen_free(s);
    dgm_agent_loop_free(loop);
}

static void an_approval_is_a_message(void **state)
{
    dgm_agent_loop *loop = open_loop("{\"base_url\":\"mock:\",\"model\":\"m\",\"approve\":\"always\",\"tools\":[{\"exec\":{\"name\":"
                                     "\"now\",\"command\":[\"echo\",\"noon\"]}}]}",
                                     NULL);
    struct seen *s = seen_new(loop);
    char task_id[64], message[300];
    (void)state;
    run(s, "call now {}", NULL);
    check_last(s, "input-required", true);
    strcpy(task_id, s->task_id);
    yyjson_val *asked = dgm_json_get(dgm_json_get(s->events[s->n - 1], DGM_STR("status")),
                                     DGM_STR("message"));
    yyjson_val *parts = dgm_json_get(asked, DGM_STR("parts"));
    dgm_str id = {0};
    for (size_t i = 0; i < yyjson_arr_size(parts) && !id.n; i++)
        id = dgm_json_str_member(dgm_json_get(yyjson_arr_get(parts, i), DGM_STR("data")), "id");
    snprintf(message, sizeof message,
             "{\"kind\":\"message\",\"role\":\"user\",\"parts\":[{\"kind\":\"data\",\"data\":{"
             "\"type\":\"approval\",\"id\":\"%.*s\",\"approved\":true}}]}",
             DGM_P(id));
    seen_clear(s);
    dgm_agent_execute_options o = {.size = sizeof o,
                                   .task_id = dgm_str_from(task_id),
                                   .message = dgm_str_from(message)};
    run(s, NULL, &o);
    check_last(s, "completed", true);
    size_t n_tools = 0;
    for (size_t i = 0; i < s->n; i++)
        n_tools += dgm_str_is(kind_of(s, i), "internal:tool-complete");
    assert_int_equal(n_tools, 1);
    seen_free(s);
    dgm_agent_loop_free(loop);
}

static void a_model_that_fails_is_an_event(void **state)
{
    dgm_agent_loop *loop = open_loop(SETTINGS, NULL);
    struct seen *s = seen_new(loop);
    (void)state;
    run(s, "error 400 no", NULL);
    check_last(s, "failed", true);
    assert_true(dgm_json_str_member(
                    dgm_json_get(s->events[s->n - 1], DGM_STR("metadata")), "error")
                    .n > 0);
    seen_free(s);
    dgm_agent_loop_free(loop);
}

static void a_slow_reader_gets_every_event(void **state)
{
    dgm_agent_loop *loop = open_loop(SETTINGS, NULL);
    struct seen *s = seen_new(loop);
    dgm_agent_stream *stream = NULL;
    const dgm_agent_event *event;
    dgm_err err = {0};
    (void)state;
    check_ok(dgm_agent_stream_execute(loop, DGM_STR("long 600"), NULL, &stream, &err), err);
    usleep(200 * 1000); /* the queue is full by now, or it will be */
    while (dgm_agent_stream_next(stream, -1, &event, &err) == DGM_AGENT_EVENT)
        collect(s, event);
    assert_int_equal(dgm_agent_stream_next(stream, 0, &event, &err), DGM_AGENT_END);
    dgm_agent_stream_free(stream);
    check_last(s, "completed", true);
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    put_text(s, &b);
    size_t n_words = 0;
    for (size_t i = 0; i < b.n; i++)
        n_words += b.p[i] != ' ' && (i + 1 == b.n || b.p[i + 1] == ' ');
    assert_int_equal(n_words, 600);
    dgm_buf_done(&b);
    seen_free(s);
    dgm_agent_loop_free(loop);
}

static void a_wait_has_a_timeout(void **state)
{
    dgm_agent_loop *loop = open_loop(SETTINGS, NULL);
    dgm_agent_stream *stream = NULL;
    const dgm_agent_event *event;
    dgm_err err = {0};
    dgm_agent_next next;
    (void)state;
    check_ok(dgm_agent_stream_execute(loop, DGM_STR("hang"), NULL, &stream, &err), err);
    while ((next = dgm_agent_stream_next(stream, 300, &event, &err)) == DGM_AGENT_EVENT)
        continue;
    assert_int_equal(next, DGM_AGENT_TIMEOUT);
    dgm_agent_stream_free(stream); /* the task goes on */
    dgm_agent_loop_free(loop);
}

/* ---- cancel ------------------------------------------------------------------------------------------------------ */

static void on_event_may_cancel(void **state)
{
    dgm_agent_loop *loop = open_loop(SETTINGS, NULL);
    struct seen *s = seen_new(loop);
    (void)state;
    s->cancel_at = "internal:llm-call";
    s->cancel_code = DGM_INTERNAL;
    run(s, "hang", NULL);
    check_last(s, "canceled", true);
    assert_int_equal(s->cancel_code, DGM_OK);
    dgm_err err = {0};
    assert_int_equal(dgm_agent_loop_cancel(loop, DGM_STR("unknown"), &err), DGM_TASK_NOT_FOUND);
    seen_clear(s);
    run(s, "echo done", NULL);
    assert_int_equal(dgm_agent_loop_cancel(loop, dgm_str_from(s->task_id), &err),
                     DGM_TASK_NOT_CANCELABLE);
    seen_free(s);
    dgm_agent_loop_free(loop);
}

struct in_thread {
    dgm_agent_loop *loop;
    const char *prompt;
    _Atomic(char *) task_id; /* of the task, when it is known */
    dgm_code code;
    size_t n_completed;
};

static bool report_task(void *arg, const dgm_agent_event *event)
{
    struct in_thread *t = arg;
    if (event->event->kind == DGM_EVENT_TASK && !t->task_id)
        t->task_id = strndup(event->event->task->id.p, event->event->task->id.n);
    return true;
}

static void *execute_in_thread(void *arg)
{
    struct in_thread *t = arg;
    t->code = dgm_agent_loop_execute(t->loop, dgm_str_from(t->prompt), NULL, report_task, t, NULL);
    return NULL;
}

static void wait_for_task(struct in_thread *t)
{
    for (int i = 0; i < 6000 && !t->task_id; i++)
        usleep(10 * 1000);
    assert_non_null(t->task_id);
}

static void another_thread_cancels(void **state)
{
    struct in_thread t = {.loop = open_loop(SETTINGS, NULL), .prompt = "hang"};
    pthread_t thread;
    (void)state;
    pthread_create(&thread, NULL, execute_in_thread, &t);
    wait_for_task(&t);
    dgm_err err = {0};
    check_ok(dgm_agent_loop_cancel(t.loop, dgm_str_from(t.task_id), &err), err);
    pthread_join(thread, NULL);
    assert_int_equal(t.code, DGM_OK);
    free(t.task_id);
    dgm_agent_loop_free(t.loop);
}

static void a_loop_that_is_freed_ends_its_streams(void **state)
{
    struct in_thread t = {.loop = open_loop(SETTINGS, NULL), .prompt = "hang"};
    dgm_agent_stream *stream = NULL;
    const dgm_agent_event *event;
    dgm_err err = {0};
    pthread_t thread;
    (void)state;
    check_ok(dgm_agent_stream_execute(t.loop, DGM_STR("hang"), NULL, &stream, &err), err);
    pthread_create(&thread, NULL, execute_in_thread, &t);
    wait_for_task(&t);
    dgm_agent_loop_free(t.loop);
    pthread_join(thread, NULL);
    assert_int_equal(t.code, DGM_UNAVAILABLE);
    dgm_agent_next next;
    while ((next = dgm_agent_stream_next(stream, 0, &event, &err)) == DGM_AGENT_EVENT)
        continue;
    assert_int_equal(next, DGM_AGENT_FAILED);
    assert_int_equal(err.code, DGM_UNAVAILABLE);
    dgm_agent_stream_free(stream);
    free(t.task_id);
}

static bool count_completed(void *arg, const dgm_agent_event *event)
{
    struct in_thread *t = arg;
    t->n_completed += event->is_last && event->event->kind == DGM_EVENT_STATUS &&
                      event->event->status->status.state == DGM_STATE_COMPLETED;
    return true;
}

static void *execute_many(void *arg)
{
    struct in_thread *t = arg;
    for (int i = 0; i < 20; i++)
        dgm_agent_loop_execute(t->loop, DGM_STR("call now {} then echo hi"), NULL, count_completed,
                               t, NULL);
    return NULL;
}

static void many_threads_execute(void **state)
{
    dgm_agent_loop *loop = open_loop(SETTINGS, NULL);
    struct in_thread t[6];
    pthread_t threads[6];
    (void)state;
    for (int i = 0; i < 6; i++) {
        t[i] = (struct in_thread){.loop = loop};
        pthread_create(&threads[i], NULL, execute_many, &t[i]);
    }
    for (int i = 0; i < 6; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(t[i].n_completed, 20);
    }
    dgm_agent_loop_free(loop);
}

/* ---- resume ------------------------------------------------------------------------------------------------------ */

static void resume_of_a_finished_task_reports_its_status(void **state)
{
    dgm_agent_loop *loop = open_loop(SETTINGS, NULL);
    struct seen *s = seen_new(loop);
    char task_id[64];
    dgm_err err = {0};
    (void)state;
    run(s, "echo done", NULL);
    strcpy(task_id, s->task_id);
    seen_clear(s);
    check_ok(dgm_agent_loop_resume(loop, dgm_str_from(task_id), collect, s, &err), err);
    assert_int_equal(s->n, 1);
    check_last(s, "completed", true);
    check_str(dgm_json_str_member(s->events[0], "taskId"), task_id);
    assert_int_equal(dgm_agent_loop_resume(loop, DGM_STR("unknown"), collect, s, &err),
                     DGM_TASK_NOT_FOUND);
    seen_free(s);
    dgm_agent_loop_free(loop);
}

static void resume_follows_a_task_that_works(void **state)
{
    dgm_agent_loop *loop = open_loop(SETTINGS, NULL);
    struct seen *s = seen_new(loop);
    char task_id[64];
    dgm_err err = {0};
    (void)state;
    s->stop_at = "artifact-update";
    run(s, "slow 60 one two three four five six", NULL);
    strcpy(task_id, s->task_id);
    seen_clear(s);
    check_ok(dgm_agent_loop_resume(loop, dgm_str_from(task_id), collect, s, &err), err);
    for (size_t i = 0; i < s->n; i++)
        assert_false(dgm_str_is(kind_of(s, i), "task"));
    check_last(s, "completed", true);
    seen_free(s);
    dgm_agent_loop_free(loop);
}

static void resume_after_a_restart_ends_in_completed(void **state)
{
    char folder[] = "/tmp/dgm-agent-XXXXXX", store[100], task_id[64];
    dgm_err err = {0};
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(store, sizeof store, "sqlite:%s/tasks.db", folder);
    struct seen *s = seen_new(open_loop(SETTINGS, store));
    s->stop_at = "artifact-update";
    run(s, "call now {} then slow 100 one two three four five six seven eight", NULL);
    strcpy(task_id, s->task_id);
    dgm_agent_loop_free(s->loop);

    s->loop = open_loop(SETTINGS, store);
    seen_clear(s);
    usleep(100 * 1000); /* it runs without being asked */
    check_ok(dgm_agent_loop_resume(s->loop, dgm_str_from(task_id), collect, s, &err), err);
    assert_true(s->n > 1);
    for (size_t i = 0; i < s->n; i++) {
        assert_false(dgm_str_is(kind_of(s, i), "task"));
        assert_false(dgm_str_is(kind_of(s, i), "internal:tool-start")); /* it was done */
    }
    check_last(s, "completed", true);
    check_text(s, "one two three four five six seven eight");
    seen_clear(s);
    check_ok(dgm_agent_loop_resume(s->loop, dgm_str_from(task_id), collect, s, &err), err);
    assert_int_equal(s->n, 1);
    check_last(s, "completed", true);
    dgm_agent_loop_free(s->loop);
    seen_free(s);
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

/* ---- invalid arguments -------------------------------------------------------------------------------------------- */

static void check_refused(const dgm_agent_loop_options *o, const char *message, const char *pointer)
{
    dgm_agent_loop *loop = NULL;
    dgm_err err = {0};
    assert_int_not_equal(dgm_agent_loop_new(o, &loop, &err), DGM_OK);
    assert_null(loop);
    if (!strstr(err.msg, message))
        fail_msg("expected \"%s\", got \"%s\"", message, err.msg);
    assert_string_equal(err.at, pointer);
}

static void invalid_options_are_refused(void **state)
{
    dgm_agent_loop_options o = {.size = sizeof o};
    (void)state;
    check_refused(&o, "exactly one of settings, config and config_file", "");
    o.settings = DGM_STR("{\"base_url\":\"mock:\",\"model\":\"m\"}");
    o.config = DGM_STR("agents: []");
    check_refused(&o, "exactly one of settings, config and config_file", "");
    o.config = (dgm_str){0};
    o.settings = DGM_STR("{\"base_url\":\"mock:\",\"model\":\"m\",\"modle\":1}");
    check_refused(&o, "modle", "/modle");
    o.settings = DGM_STR("[1]");
    check_refused(&o, "expected a JSON object", "");
    o.settings = DGM_STR("{");
    check_refused(&o, "", "");
    o.settings = DGM_STR("{\"base_url\":\"mock:\",\"model\":\"m\"}");
    o.agent = "other";
    check_refused(&o, "unknown agent \"other\"", "");
    o.agent = NULL;
    o.store = "sqlite:/nowhere/at/all/tasks.db";
    check_refused(&o, "/nowhere", "");
    o.size = 4;
    check_refused(&o, "", "");
}

static void a_configuration_is_read(void **state)
{
    dgm_agent_loop_options o = {
        .size = sizeof o,
        .config = DGM_STR("agents:\n- {id: hello, type: hello, default: true}\n"
                          "- {id: m, type: llm, settings: {base_url: 'mock:', model: m}}\n"),
        .agent = "m"};
    dgm_agent_loop *loop = NULL;
    dgm_err err = {0};
    (void)state;
    check_ok(dgm_agent_loop_new(&o, &loop, &err), err);
    struct seen *s = seen_new(loop);
    run(s, "echo from m", NULL);
    check_text(s, "from m");
    seen_free(s);
    dgm_agent_loop_free(loop);
    o.config = DGM_STR("agents:\n- {id: m, type: llm, settings: {base_url: 'mock:', model: m, histroy: 3}}\n");
    assert_int_equal(dgm_agent_loop_new(&o, &loop, &err), DGM_BAD_PARAMS);
    assert_string_equal(err.at, "/agents/0/settings/histroy");
    assert_int_equal(err.line, 2);
}

static void invalid_prompts_are_refused(void **state)
{
    dgm_agent_loop *loop = open_loop(SETTINGS, NULL);
    dgm_agent_execute_options o = {.size = sizeof o, .task_id = DGM_STR("unknown")};
    dgm_err err = {0};
    size_t n = (size_t)5 << 20;
    char *large = dgm_xcalloc(1, n);
    (void)state;
    memset(large, 'x', n);
    assert_int_equal(dgm_agent_loop_execute(loop, (dgm_str){large, n}, NULL, NULL, NULL, &err),
                     DGM_TOO_LARGE);
    free(large);
    assert_int_equal(dgm_agent_loop_execute(loop, DGM_STR("\xff"), NULL, NULL, NULL, &err),
                     DGM_PARSE);
    assert_int_equal(dgm_agent_loop_execute(loop, (dgm_str){0}, NULL, NULL, NULL, &err),
                     DGM_BAD_PARAMS);
    assert_int_equal(dgm_agent_loop_execute(loop, DGM_STR("hi"), &o, NULL, NULL, &err),
                     DGM_TASK_NOT_FOUND);
    o.task_id = DGM_STR("");
    assert_int_equal(dgm_agent_loop_execute(loop, DGM_STR("hi"), &o, NULL, NULL, &err),
                     DGM_BAD_PARAMS);
    o = (dgm_agent_execute_options){.size = sizeof o, .message = DGM_STR("{\"id\":1}")};
    assert_int_not_equal(dgm_agent_loop_execute(loop, (dgm_str){0}, &o, NULL, NULL, &err), DGM_OK);
    assert_int_equal(dgm_agent_loop_execute(NULL, DGM_STR("hi"), NULL, NULL, NULL, NULL),
                     DGM_BAD_PARAMS);
    assert_int_equal(dgm_agent_loop_resume(loop, DGM_STR(""), NULL, NULL, NULL), DGM_BAD_PARAMS);
    dgm_agent_loop_free(loop);
    dgm_agent_loop_free(NULL);
    dgm_agent_stream_free(NULL);
}

DGM_TEST_MAIN(dgm_test_holds(the_compliance_test_of_document_002, "R002-30 R002-31 R002-35"),
              dgm_test_holds(the_flow_of_an_execution_with_a_tool, "R002-29"),
              dgm_test(a_context_is_continued), dgm_test(a_question_is_answered),
              dgm_test(an_approval_is_a_message),
              dgm_test_holds(a_model_that_fails_is_an_event, "R002-10"),
              dgm_test(a_slow_reader_gets_every_event), dgm_test(a_wait_has_a_timeout),
              dgm_test(on_event_may_cancel), dgm_test(another_thread_cancels),
              dgm_test(a_loop_that_is_freed_ends_its_streams), dgm_test(many_threads_execute),
              dgm_test(resume_of_a_finished_task_reports_its_status),
              dgm_test(resume_follows_a_task_that_works),
              dgm_test_holds(resume_after_a_restart_ends_in_completed, "R002-32 R002-37"),
              dgm_test(invalid_options_are_refused), dgm_test(a_configuration_is_read),
              dgm_test(invalid_prompts_are_refused))
