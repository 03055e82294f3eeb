/*
 * loop/test_llm.h - a driver of the agent loop in a test: every action becomes a line of text, every event goes into a fold.
 *
 *     struct bench b = bench_new((dgm_llm_options){0});
 *     feed_start(&b, "hi");
 *     check_lines(&b, "working", "llm-call 1", "MODEL 0/0: user hi");
 *
 * JSON is written with ' for ". The text of every SAVE is loaded and saved again: it must not change.
 */
#pragma once

#include "base/limits.h"
#include "loop/llm_loop.h"
#include "model/fold.h"
#include "model/form.h"
#include "support/check.h"

struct bench {
    dgm_llm_options options;
    dgm_llm_loop *loop;
    dgm_fold *fold;
    dgm_arena *arena;
    dgm_buf lines, saved;
    dgm_err err;
    int messages; /* so far, for their ids */
};

static inline void bench_fold(struct bench *b, const dgm_event *event)
{
    check_ok(dgm_fold_add(b->fold, event, DGM_BY_AGENT, &b->err), b->err);
}

/* What was saved can be loaded, and nothing is lost by it. */
static inline void check_round_trip(const dgm_llm_options *options, dgm_str text)
{
    dgm_llm_loop *copy = NULL;
    dgm_err err = {0};
    dgm_buf again;
    dgm_buf_init(&again, SIZE_MAX);
    check_ok(dgm_llm_loop_load(text, options, &copy, &err), err);
    dgm_llm_loop_save(copy, &again);
    check_same(again, text);
    dgm_buf_done(&again);
    dgm_llm_loop_free(copy);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static inline void put_parts(dgm_buf *b, dgm_parts parts)
{
    for (size_t i = 0; i < parts.n; i++) {
        const dgm_part *p = &parts.at[i];
        dgm_buf_add_char(b, ' ');
        if (p->kind == DGM_PART_DATA)
            dgm_json_put(b, p->data);
        else if (p->kind == DGM_PART_TEXT)
            dgm_buf_add_str(b, p->content);
        else
            dgm_buf_printf(b, "<%.*s>", DGM_P(p->content));
    }
}

static inline void put_message(dgm_buf *b, const dgm_message *m)
{
    dgm_buf_add_str(b, m->role == DGM_ROLE_USER ? DGM_STR("user") : DGM_STR("agent"));
    put_parts(b, m->parts);
    if (m->metadata)
        dgm_buf_add_lit(b, " +metadata");
}

static inline dgm_str state_name(dgm_task_state state)
{
    static const char *const names[] = {[DGM_STATE_WORKING] = "working",
                                        [DGM_STATE_COMPLETED] = "completed",
                                        [DGM_STATE_FAILED] = "failed",
                                        [DGM_STATE_CANCELED] = "canceled",
                                        [DGM_STATE_REJECTED] = "rejected",
                                        [DGM_STATE_INPUT_REQUIRED] = "input-required",
                                        [DGM_STATE_AUTH_REQUIRED] = "auth-required"};
    return dgm_str_from(names[state]);
}

static inline void put_internal(dgm_buf *b, const dgm_internal *it)
{
    dgm_buf_add_str(b, dgm_str_from(dgm_internal_kind_name(it->kind) + strlen("internal:")));
    if (it->iteration.set)
        dgm_buf_printf(b, " %d", it->iteration.value);
    if (it->tool_name.n)
        dgm_buf_printf(b, " %.*s", DGM_P(it->tool_name));
    if (it->tool_call_id.n)
        dgm_buf_printf(b, " %.*s", DGM_P(it->tool_call_id));
    if (it->success != DGM_UNSET)
        dgm_buf_printf(b, it->success == DGM_TRUE ? " ok" : " failed");
    const dgm_json *values[] = {it->arguments, it->result, it->value};
    for (size_t i = 0; i < 3; i++) {
        if (!values[i])
            continue;
        dgm_buf_add_char(b, ' ');
        dgm_json_put(b, values[i]);
    }
    if (it->error.n)
        dgm_buf_printf(b, " %.*s", DGM_P(it->error));
    if (it->text.n)
        dgm_buf_printf(b, " %.*s", DGM_P(it->text));
    if (it->message) {
        dgm_buf_add_char(b, ' ');
        put_message(b, it->message);
    }
}

static inline void put_event(dgm_buf *b, const dgm_event *e)
{
    if (e->kind == DGM_EVENT_INTERNAL) {
        put_internal(b, e->internal);
    } else if (e->kind == DGM_EVENT_ARTIFACT) {
        const dgm_artifact_update *u = e->artifact;
        dgm_buf_printf(b, "%.*s %s", DGM_P(u->artifact.artifact_id),
                       u->append == DGM_TRUE ? "+" : "=");
        put_parts(b, u->artifact.parts);
        if (u->last_chunk == DGM_TRUE)
            dgm_buf_add_lit(b, " last");
    } else {
        dgm_buf_add_str(b, state_name(e->status->status.state));
        if (e->status->status.message)
            put_parts(b, e->status->status.message->parts);
        if (e->status->metadata) {
            dgm_buf_add_lit(b, " metadata ");
            dgm_json_put(b, e->status->metadata);
        }
    }
}

static inline void put_model(dgm_buf *b, const dgm_llm_model *m)
{
    dgm_buf_printf(b, "%s %u/%u:", m->is_summary ? "SUMMARY" : "MODEL", m->upstream, m->attempt);
    for (size_t i = 0; i < m->messages.n; i++) {
        dgm_buf_add_str(b, i ? DGM_STR(" | ") : DGM_STR(" "));
        put_message(b, &m->messages.at[i]);
    }
}

static inline void put_action(struct bench *t, const dgm_llm_action *x)
{
    dgm_buf *b = &t->lines;
    switch (x->kind) {
    case DGM_LLM_EMIT: put_event(b, x->event); break;
    case DGM_LLM_CALL_MODEL: put_model(b, &x->model); break;
    case DGM_LLM_STOP_MODEL: dgm_buf_add_lit(b, "STOP MODEL"); break;
    case DGM_LLM_RUN_TOOL:
        dgm_buf_printf(b, "RUN %.*s %.*s%s ", DGM_P(x->tool.name), DGM_P(x->tool.key),
                       x->tool.is_repeated ? " again" : "");
        dgm_json_put(b, x->tool.arguments);
        break;
    case DGM_LLM_ANSWER_TOOL:
        dgm_buf_printf(b, "ANSWER %.*s %s %.*s ", DGM_P(x->answer.call_id),
                       x->answer.kind == DGM_LLM_ACCEPTED ? "yes" : "no", DGM_P(x->answer.text));
        dgm_json_put(b, x->answer.value);
        dgm_buf_add_char(b, ' ');
        dgm_json_put(b, x->answer.state);
        break;
    case DGM_LLM_STOP_TOOL: dgm_buf_printf(b, "STOP %.*s", DGM_P(x->call_id)); break;
    case DGM_LLM_SAVE: dgm_buf_add_lit(b, "SAVE"); break;
    case DGM_LLM_COMMIT: dgm_buf_add_lit(b, "COMMIT"); break;
    case DGM_LLM_WAIT: dgm_buf_printf(b, "WAIT %llu", (unsigned long long)x->wait_ms); break;
    case DGM_LLM_NOTE: dgm_buf_printf(b, "NOTE %.*s", DGM_P(x->text)); break;
    case DGM_LLM_END: dgm_buf_printf(b, "END %.*s", DGM_P(state_name(x->state))); break;
    }
    dgm_buf_add_char(b, '\n');
}

static inline void on_bench_action(void *arg, const dgm_llm_action *x)
{
    struct bench *b = arg;
    put_action(b, x);
    if (x->kind == DGM_LLM_EMIT)
        bench_fold(b, x->event);
    if (x->kind != DGM_LLM_SAVE)
        return;
    check_round_trip(&b->options, x->text);
    dgm_buf_clear(&b->saved);
    dgm_buf_add_str(&b->saved, x->text);
}

/* ---- the bench --------------------------------------------------------------------------------------------------- */

static inline struct bench bench_new(dgm_llm_options options)
{
    struct bench b = {.options = options, .arena = dgm_arena_new()};
    dgm_task task = {
        .id = DGM_STR("t"), .context_id = DGM_STR("c"), .status.state = DGM_STATE_SUBMITTED};
    b.loop = dgm_llm_loop_new(&options);
    b.fold = dgm_fold_new((dgm_fold_options){0});
    dgm_buf_init(&b.lines, SIZE_MAX);
    dgm_buf_init(&b.saved, SIZE_MAX);
    bench_fold(&b, &(dgm_event){.kind = DGM_EVENT_TASK, .task = &task}); /* the core's */
    return b;
}

static inline void bench_done(struct bench *b)
{
    dgm_llm_loop_free(b->loop);
    dgm_fold_free(b->fold);
    dgm_buf_done(&b->lines);
    dgm_buf_done(&b->saved);
    dgm_arena_free(b->arena);
}

static inline dgm_str unquote(struct bench *b, const char *quoted)
{
    dgm_str text = dgm_arena_dup(b->arena, dgm_str_from(quoted));
    for (char *p = (char *)(uintptr_t)text.p; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    return text;
}

/* All lines since the last check. */
static inline void check_lines_(struct bench *b, const char *const *want, size_t n,
                                const char *file, int line)
{
    dgm_buf text;
    dgm_buf_init(&text, SIZE_MAX);
    for (size_t i = 0; i < n; i++) {
        dgm_buf_add_str(&text, dgm_str_from(want[i]));
        dgm_buf_add_char(&text, '\n');
    }
    for (size_t i = 0; i < b->lines.n; i++)
        b->lines.p[i] = (char)(b->lines.p[i] == '"' ? '\'' : b->lines.p[i]);
    check_bytes_(b->lines.p, b->lines.n, text.p, text.n, file, line);
    dgm_buf_done(&text);
    dgm_buf_clear(&b->lines);
}

#define check_lines(b, ...)                                                                        \
    check_lines_((b), (const char *const[]){__VA_ARGS__},                                          \
                 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), __FILE__, __LINE__)
#define check_nothing(b) check_lines_((b), NULL, 0, __FILE__, __LINE__)
#define skip_lines(b) dgm_buf_clear(&(b)->lines)

static inline bool has_line(struct bench *b, const char *quoted)
{
    dgm_buf_add_char(&b->lines, '\0');
    b->lines.n--;
    return strstr(b->lines.p, unquote(b, quoted).p) != NULL;
}

static inline void step(struct bench *b, dgm_llm_event e)
{
    dgm_llm_sink sink = {on_bench_action, b};
    assert_int_equal(dgm_llm_loop_step(b->loop, &e, sink), DGM_OK);
    assert_int_equal(dgm_fold_n_warnings(b->fold), 0);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* data: JSON. */
static inline dgm_message *new_message(dgm_arena *a, int number, const char *text, dgm_str data)
{
    dgm_message *m = dgm_new(a, dgm_message);
    dgm_part *parts = dgm_new_n(a, dgm_part, 2);
    *m = (dgm_message){.message_id = dgm_arena_printf(a, "m-%d", number),
                       .role = DGM_ROLE_USER,
                       .parts = {parts, 0}};
    if (text)
        parts[m->parts.n++] = (dgm_part){.kind = DGM_PART_TEXT, .content = dgm_str_from(text)};
    if (data.p)
        parts[m->parts.n++] =
            (dgm_part){.kind = DGM_PART_DATA, .data = dgm_json_parse_trusted(a, data)};
    return m;
}

static inline dgm_message *user_message(struct bench *b, const char *text, const char *data)
{
    return new_message(b->arena, ++b->messages, text, data ? unquote(b, data) : (dgm_str){0});
}

static inline dgm_llm_start start_of(struct bench *b, dgm_message *m)
{
    (void)b;
    return (dgm_llm_start){.task_id = DGM_STR("t"), .context_id = DGM_STR("c"), .message = m};
}

static inline void feed_start(struct bench *b, const char *text)
{
    step(b,
         (dgm_llm_event){.kind = DGM_LLM_START, .start = start_of(b, user_message(b, text, NULL))});
}

/* Another process: the loop is loaded from the last saved text. */
static inline void kill_and_resume(struct bench *b, dgm_message *m)
{
    dgm_llm_event e = {.kind = DGM_LLM_RESUMED, .start = start_of(b, m)};
    dgm_llm_loop_free(b->loop);
    b->loop = NULL;
    check_ok(dgm_llm_loop_load(dgm_buf_str(&b->saved), &b->options, &b->loop, &b->err), b->err);
    e.start.task = dgm_fold_task(b->fold);
    step(b, e);
}

static inline void feed_message(struct bench *b, const char *text, const char *data)
{
    step(b, (dgm_llm_event){.kind = DGM_LLM_MESSAGE, .message = user_message(b, text, data)});
}

static inline void feed_text(struct bench *b, const char *text)
{
    step(b, (dgm_llm_event){.kind = DGM_LLM_MODEL_TEXT, .text = dgm_str_from(text)});
}

static inline void feed_call(struct bench *b, const char *id, const char *name, const char *args)
{
    step(b,
         (dgm_llm_event){.kind = DGM_LLM_MODEL_CALL,
                         .call = {dgm_str_from(id), dgm_str_from(name), unquote(b, args), false}});
}

static inline void feed_end(struct bench *b, dgm_llm_end end)
{
    step(b, (dgm_llm_event){.kind = DGM_LLM_MODEL_END, .end = end});
}

static inline void feed_stop(struct bench *b)
{
    feed_end(b, (dgm_llm_end){0});
}

static inline void feed_failed(struct bench *b, const char *text, bool is_retryable, int64_t after)
{
    step(b, (dgm_llm_event){.kind = DGM_LLM_MODEL_FAILED,
                            .failure = {.message = dgm_str_from(text),
                                        .is_retryable = is_retryable,
                                        .retry_after_ms = after}});
}

static inline void feed(struct bench *b, dgm_llm_event_kind kind)
{
    step(b, (dgm_llm_event){.kind = kind});
}

static inline void feed_done(struct bench *b, const char *id, const char *text)
{
    step(b, (dgm_llm_event){.kind = DGM_LLM_TOOL_DONE,
                            .result = {.call_id = dgm_str_from(id), .text = dgm_str_from(text)}});
}
