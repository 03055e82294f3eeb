/*
 * backend/test_tool.h - calls of configured tools on a loop, and their results as text.
 */
#pragma once

#include "backend/llm/tool.h"
#include "net/loop.h"
#include "support/check.h"
#include "json/json.h"

#include <signal.h>

struct tool_test {
    dgm_loops *loops;
    dgm_tool *tool;
    dgm_arena *arena;
    dgm_run_input run;
    dgm_tool_input input;
    dgm_tool_call *call;
    uv_sem_t done;
    /* the result */
    size_t n_done, n_parts;
    bool is_error, is_outcome_unknown,
        was_inside; /* was_inside: on_done came from inside of the start */
    bool is_starting;
    dgm_part_kind kind;
    char text[20000], media_type[64], detail[4000];
};

/* Quotes are written as ' in the tests. */
static inline yyjson_val *tool_json(dgm_arena *a, const char *text)
{
    char *copy = (char *)(uintptr_t)dgm_arena_dup(a, dgm_str_from(text)).p;
    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    return dgm_json_parse_trusted(a, dgm_str_from(copy));
}

static inline void tool_test_init(struct tool_test *t)
{
    dgm_err err = {0};
    memset(t, 0, sizeof *t);
    signal(SIGPIPE, SIG_IGN);
    t->arena = dgm_arena_new();
    t->run = (dgm_run_input){.task_id = DGM_STR("task-1"),
                             .context_id = DGM_STR("context-1"),
                             .agent = DGM_STR("assistant"),
                             .tenant = DGM_STR("acme"),
                             .principal = DGM_STR("ann")};
    uv_sem_init(&t->done, 0);
    assert_int_equal(dgm_loops_new(1, &t->loops, &err), DGM_OK);
    assert_int_equal(dgm_loops_start(t->loops, &err), DGM_OK);
}

static inline void tool_test_open(struct tool_test *t, const char *entry,
                                  const dgm_agent_options *options)
{
    dgm_err err = {0};
    if (dgm_tool_open(tool_json(t->arena, entry), options, &t->tool, &err))
        fail_msg("%s: %s", err.at, err.msg);
}

static inline void tool_test_done(struct tool_test *t)
{
    dgm_tool_close(t->tool);
    dgm_loops_stop(t->loops);
    dgm_loops_free(t->loops);
    dgm_arena_free(t->arena);
    uv_sem_destroy(&t->done);
}

static void tool_on_done(void *user, const dgm_tool_result *r)
{
    struct tool_test *t = user;
    t->n_done++;
    t->was_inside |= t->is_starting;
    t->is_error = r->is_error;
    t->is_outcome_unknown = r->is_outcome_unknown;
    t->n_parts = r->parts.n;
    t->text[0] = t->media_type[0] = '\0';
    snprintf(t->detail, sizeof t->detail, "%.*s", DGM_P(r->detail));
    if (r->parts.n) {
        const dgm_part *p = &r->parts.at[0];
        dgm_arena *a = dgm_arena_new();
        dgm_str text = p->kind == DGM_PART_DATA ? dgm_json_text_in(a, p->data) : p->content;
        t->kind = p->kind;
        snprintf(t->text, sizeof t->text, "%.*s", DGM_P(text));
        snprintf(t->media_type, sizeof t->media_type, "%.*s", DGM_P(p->media_type));
        dgm_arena_free(a);
    }
    uv_sem_post(&t->done);
}

static void tool_do_start(void *arg)
{
    struct tool_test *t = arg;
    t->is_starting = true;
    t->call = dgm_tool_start(t->tool, &t->input, dgm_loops_at(t->loops, 0),
                             (dgm_tool_handler){tool_on_done, t});
    t->is_starting = false;
}

static void tool_do_cancel(void *arg)
{
    struct tool_test *t = arg;
    dgm_tool_cancel(t->call);
    uv_sem_post(&t->done);
}

static inline void tool_post_start(struct tool_test *t, const char *arguments)
{
    t->input = (dgm_tool_input){.call_id = DGM_STR("call-7"),
                                .key = DGM_STR("task-1.call-7"),
                                .arguments = arguments ? tool_json(t->arena, arguments) : NULL,
                                .run = &t->run,
                                .traceparent = DGM_STR("00-11-22-01")};
    dgm_loop_post(dgm_loops_at(t->loops, 0), tool_do_start, t);
}

static inline void tool_run(struct tool_test *t, const char *arguments)
{
    tool_post_start(t, arguments);
    uv_sem_wait(&t->done);
    assert_false(t->was_inside);
}

/* One call of a tool that is opened and closed for it. */
static inline void tool_run_once(struct tool_test *t, const char *entry, const char *arguments)
{
    tool_test_init(t);
    tool_test_open(t, entry, NULL);
    tool_run(t, arguments);
    tool_test_done(t);
    assert_int_equal(t->n_done, 1);
}

static inline void check_refused(const char *entry, const char *at, const char *what)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_tool *tool = NULL;
    dgm_err err = {0};
    assert_int_equal(dgm_tool_open(tool_json(a, entry), NULL, &tool, &err), DGM_BAD_PARAMS);
    assert_null(tool);
    assert_string_equal(err.at, at);
    if (!strstr(err.msg, what))
        fail_msg("%s: %s", err.at, err.msg);
}
