/*
 * test_model_call_same.c - the fast path for chunks that differ only in their text (model_call_answer.c) against the slow one.
 *
 * A value with a name (`event: chunk`) is never read by the fast path: the same values without names must have the same result.
 */
#include "wire/model_call.h"

#include "support/check.h"
#include "json/same_text.h"

#define HEAD "{'id':'c-1','object':'chat.completion.chunk','created':1,'model':'m','choices':["
#define DELTA(members) HEAD "{'index':0,'delta':{" members "},'finish_reason':null}]}"
#define TEXT(text) DELTA("'content':'" text "'")

static dgm_arena *arena;

static int open_arena(void **state)
{
    (void)state;
    arena = dgm_arena_new();
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    dgm_arena_free(arena);
    return 0;
}

static dgm_str with_quotes(const char *text)
{
    dgm_str s = dgm_arena_dup(arena, dgm_str_from(text));
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\'')
            ((char *)(uintptr_t)s.p)[i] = '"';
    }
    return s;
}

/* ---- both paths --------------------------------------------------------------------------------------------------- */

static dgm_code add_text(void *arg, dgm_str delta)
{
    dgm_buf_printf(arg, "t(%.*s)", DGM_P(delta));
    return DGM_OK;
}

static dgm_code add_reasoning(void *arg, dgm_str delta)
{
    dgm_buf_printf(arg, "r(%.*s)", DGM_P(delta));
    return DGM_OK;
}

static dgm_code add_call(void *arg, const dgm_model_call *call)
{
    dgm_buf_printf(arg, "c(%.*s %.*s)", DGM_P(call->name), DGM_P(call->arguments));
    return DGM_OK;
}

static void read_values(const dgm_str *values, size_t n, dgm_str name, dgm_buf *out)
{
    dgm_model_handler handler = {
        .on_text = add_text, .on_reasoning = add_reasoning, .on_call = add_call, .arg = out};
    dgm_model_answer *m = dgm_model_answer_new(DGM_MODEL_CHAT, &handler, 1);
    for (size_t i = 0; i < n; i++) {
        /* a copy of just that size: reading past it, or later, is seen by ASan */
        char *copy = dgm_xmalloc(values[i].n ? values[i].n : 1);
        memcpy(copy, values[i].p, values[i].n);
        dgm_frames_item item = {.text = {copy, values[i].n}, .sse_event = name};
        dgm_buf_printf(out, "%d;", dgm_model_answer_feed(m, &item, NULL));
        free(copy);
    }
    dgm_buf_printf(out, "%d;", dgm_model_answer_end(m, NULL));
    const dgm_model_result *r = dgm_model_answer_result(m);
    dgm_buf_printf(out, "%d %.*s %.*s %.*s %lld", r->finish, DGM_P(r->refusal),
                   DGM_P(r->error.message), DGM_P(r->opaque),
                   (long long)r->usage.total_tokens.value);
    dgm_model_answer_free(m);
}

static void check_values(const dgm_str *values, size_t n)
{
    dgm_buf fast, slow;
    dgm_buf_init(&fast, SIZE_MAX);
    dgm_buf_init(&slow, SIZE_MAX);
    read_values(values, n, (dgm_str){0}, &fast);
    read_values(values, n, DGM_STR("chunk"), &slow);
    if (!dgm_str_eq(dgm_buf_str(&fast), dgm_buf_str(&slow)))
        fail_msg("behind %.*s:\n%.*s\nfast %.*s\nslow %.*s", DGM_P(values[n - 3]),
                 DGM_P(values[n - 2]), DGM_P(dgm_buf_str(&fast)), DGM_P(dgm_buf_str(&slow)));
    dgm_buf_done(&fast);
    dgm_buf_done(&slow);
}

/* With the text open before `before` comes, without it, and behind reasoning. */
static void check_next(dgm_str before, dgm_str next)
{
    dgm_str values[] = {
        with_quotes(DELTA("'role':'assistant','content':''")),
        with_quotes(TEXT("first")),
        before,
        next,
        before,
        next,
        with_quotes(HEAD "{'index':0,'delta':{},'finish_reason':'stop'}]}"),
    };
    size_t n = sizeof values / sizeof *values;
    check_values(values, n);
    check_values(values + 2, n - 2); /* it opens the text */
    values[1] = with_quotes(DELTA("'reasoning_content':'why'"));
    check_values(values + 1, n - 1);
}

/* ---- tests ---------------------------------------------------------------------------------------------------------- */

static void every_pair_of_values_is_read_alike(void **state)
{
    static const char *const texts[] = {
        TEXT("a"),
        TEXT("b c"),
        TEXT(""),
        TEXT("m"), /* two strings with this value */
        TEXT("x\\n"),
        TEXT("\\u006d"), /* m */
        TEXT("\xc3\xa4"),
        TEXT("\xc3"),
        TEXT("a','refusal':'no"),
        TEXT("a','refusal':null,'role':'assistant"),
        TEXT("a','reasoning_content':'why"),
        TEXT("a','reasoning_details':[{'type':'x'}],'x':'y"),
        TEXT("a','tool_calls':[{'index':0,'id':'k','function':{'name':'f','arguments':'{}'}}],'x':"
             "'"),
        DELTA("'content':null"),
        DELTA("'content':[{'type':'text','text':'a'}]"),
        DELTA("'content':'a','refusal':'no'"),
        DELTA("'reasoning_content':'why'"),
        DELTA("'tool_calls':[{'index':0,'function':{'arguments':'{'}}]"),
        DELTA("'content':'a','tool_calls':[{'index':0,'function':{'name':'f','arguments':'{'}}]"),
        HEAD "{'index':0,'delta':{'content':'a'},'finish_reason':'length'}]}",
        HEAD "{'index':1,'delta':{'content':'a'},'finish_reason':null}]}",
        HEAD "{'index':0,'delta':{'content':'a'}},{'index':0,'delta':{'content':'b'}}]}",
        HEAD "{'index':0,'delta':{'content':'a'}}],'usage':{'total_tokens':7}}",
        HEAD "{'index':0,'delta':{'content':'a'}}],'usage':null}",
        HEAD "{'index':0,'delta':{'content':'a'}}],'error':{'message':'no'}}",
        HEAD "{'index':0,'message':{'content':'a'}}]}",
        "{'error':{'message':'no'}}",
        "[",
        "",
    };
    size_t n = sizeof texts / sizeof *texts;
    (void)state;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++)
            check_next(with_quotes(texts[i]), with_quotes(texts[k]));
    }
}

/* Every byte of a chunk changed, removed and doubled. */
static void changed_chunks_are_read_alike(void **state)
{
    static const char bytes[] = "\"\\{}[],: x0\n\xc3\x80";
    dgm_str before = with_quotes(TEXT("hello"));
    (void)state;
    for (size_t at = 0; at < before.n; at++) {
        check_next(before, dgm_arena_join(arena, (dgm_str){before.p, at},
                                          (dgm_str){before.p + at + 1, before.n - at - 1}));
        check_next(before, dgm_arena_join(arena, (dgm_str){before.p, at + 1},
                                          (dgm_str){before.p + at, before.n - at}));
        for (size_t k = 0; k < sizeof bytes - 1; k++) {
            dgm_str other = dgm_arena_dup(arena, before);
            ((char *)(uintptr_t)other.p)[at] = bytes[k];
            check_next(before, other);
        }
    }
}

/* What the fast path recognises, and what it must not. */
static void another_text_is_found(void **state)
{
    static const struct {
        const char *json, *value, *next, *found; /* found: NULL: none */
    } rows[] = {
        {"{'a':'x','b':1}", "x", "{'a':'yes','b':1}", "yes"},
        {"{'a':'x','b':1}", "x", "{'a':'\xc3\xa4','b':1}", "\xc3\xa4"},
        {"{'a':'x','b':1}", "x", "{'a':'\xc3','b':1}", NULL},
        {"{'a':'x','b':1}", "x", "{'a':'','b':1}", NULL},
        {"{'a':'x','b':1}", "x", "{'a':'y\\n','b':1}", NULL},
        {"{'a':'x','b':1}", "x", "{'a':'y','b':2}", NULL},
        {"{'a':'x','b':1}", "x", "{'a':'y','b':'z','b':1}", NULL},
        {"{'a':'x','b':'x'}", "x", "{'a':'y','b':'x'}", NULL},
        {"{'a':'\\u0062','b':1}", "b", "{'a':'\\u0062','c':1}", NULL},
        {"{'a':'','b':1}", "", "{'a':'x','b':1}", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_same_text s;
        dgm_str found = {0};
        dgm_same_text_set(&s, with_quotes(rows[i].json), dgm_str_from(rows[i].value));
        bool is_found = dgm_same_text_read(&s, with_quotes(rows[i].next), &found);
        if (is_found != (rows[i].found != NULL) ||
            (is_found && !dgm_str_eq(found, dgm_str_from(rows[i].found))))
            fail_msg("%s: %.*s", rows[i].next, DGM_P(found));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_pair_of_values_is_read_alike, open_arena,
                                        close_arena),
        cmocka_unit_test_setup_teardown(changed_chunks_are_read_alike, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(another_text_is_found, open_arena, close_arena),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
