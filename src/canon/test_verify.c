/*
 * test_verify.c - the order of events: each rule broken once, and random agents who never break one.
 */
#include "base/limits.h"
#include "canon/events_to_messages.h"
#include "canon/records_to_events.h"
#include "canon/test_stories.h"
#include "canon/verify.h"

/* ---- each rule ------------------------------------------------------------------------------------------ */

#define K(kind) DGM_CANON_##kind
struct step {
    dgm_canon_kind kind;
    const char *id, *who, *parent;
};
#define RUN                                                                                        \
    {                                                                                              \
        K(RUN_STARTED)                                                                             \
    }
#define MAX_STEPS 6

static const struct {
    dgm_order_rule rule; /* broken by the last step */
    struct step steps[MAX_STEPS];
} rows[] = {
    {DGM_ORDER_FIRST, {{K(TEXT_MESSAGE_START), "m"}}},
    {DGM_ORDER_FINE, {{K(RUN_ERROR)}}},
    {DGM_ORDER_AFTER_ERROR, {RUN, {K(RUN_ERROR)}, {K(RUN_ERROR)}}},
    {DGM_ORDER_AFTER_ERROR, {RUN, {K(RUN_ERROR)}, {K(RUN_FINISHED)}}},
    {DGM_ORDER_AFTER_FINISH, {RUN, {K(RUN_FINISHED)}, {K(CUSTOM)}}},
    {DGM_ORDER_FINE, {RUN, {K(RUN_FINISHED)}, {K(RUN_ERROR)}}},
    {DGM_ORDER_FINE, {RUN, {K(RUN_FINISHED)}, RUN, {K(RUN_FINISHED)}}},
    {DGM_ORDER_SECOND_RUN, {RUN, RUN}},
    {DGM_ORDER_TEXT_OPEN, {RUN, {K(TEXT_MESSAGE_START), "m"}, {K(TEXT_MESSAGE_START), "m"}}},
    {DGM_ORDER_TEXT_CLOSED, {RUN, {K(TEXT_MESSAGE_CONTENT), "m"}}},
    {DGM_ORDER_TEXT_CLOSED, {RUN, {K(TEXT_MESSAGE_END), "m"}}},
    {DGM_ORDER_FINE,
     {RUN,
      {K(TEXT_MESSAGE_START), "m"},
      {K(TEXT_MESSAGE_END), "m"},
      {K(TEXT_MESSAGE_START), "m"},
      {K(TEXT_MESSAGE_CONTENT), "m"}}},
    {DGM_ORDER_CALL_OPEN, {RUN, {K(TOOL_CALL_START), "c"}, {K(TOOL_CALL_START), "c"}}},
    {DGM_ORDER_CALL_CLOSED, {RUN, {K(TOOL_CALL_ARGS), "c"}}},
    {DGM_ORDER_CALL_CLOSED,
     {RUN, {K(TOOL_CALL_START), "c"}, {K(TOOL_CALL_END), "c"}, {K(TOOL_CALL_END), "c"}}},
    {DGM_ORDER_STEP_OPEN, {RUN, {K(STEP_STARTED), "s"}, {K(STEP_STARTED), "s"}}},
    {DGM_ORDER_FINE, {RUN, {K(STEP_STARTED), "s"}, {K(STEP_STARTED), "s", "a"}}},
    {DGM_ORDER_STEP_CLOSED, {RUN, {K(STEP_STARTED), "s"}, {K(STEP_FINISHED), "s", "a"}}},
    {DGM_ORDER_SPAN, {RUN, {K(REASONING_START), "r"}, {K(REASONING_START), "r"}}},
    {DGM_ORDER_SPAN, {RUN, {K(REASONING_MESSAGE_START), "r"}, {K(REASONING_END), "r"}}},
    {DGM_ORDER_REASONING, {RUN, {K(REASONING_START), "r"}, {K(REASONING_MESSAGE_CONTENT), "r"}}},
    {DGM_ORDER_REASONING, {RUN, {K(REASONING_MESSAGE_END), "r"}}},
    {DGM_ORDER_OPEN_AT_FINISH, {RUN, {K(STEP_STARTED), "s"}, {K(RUN_FINISHED)}}},
    {DGM_ORDER_OPEN_AT_FINISH, {RUN, {K(TEXT_MESSAGE_START), "m"}, {K(RUN_FINISHED)}}},
    {DGM_ORDER_OPEN_AT_FINISH, {RUN, {K(REASONING_START), "m"}, {K(RUN_FINISHED)}}},
    {DGM_ORDER_OPEN_AT_FINISH, {RUN, {K(TOOL_CALL_START), "c"}, {K(RUN_FINISHED)}}},
    {DGM_ORDER_OPEN_AT_FINISH, {RUN, {K(SUBAGENT_STARTED), NULL, "a"}, {K(RUN_FINISHED)}}},
    {DGM_ORDER_FINE, {RUN, {K(TOOL_CALL_START), "c"}, {K(RUN_ERROR)}}},
    {DGM_ORDER_SUBAGENT_START,
     {RUN, {K(SUBAGENT_STARTED), NULL, "a"}, {K(SUBAGENT_STARTED), NULL, "a"}}},
    {DGM_ORDER_SUBAGENT_START,
     {RUN,
      {K(SUBAGENT_STARTED), NULL, "a"},
      {K(SUBAGENT_FINISHED), NULL, "a"},
      {K(SUBAGENT_STARTED), NULL, "a"}}},
    {DGM_ORDER_SUBAGENT_START, {RUN, {K(SUBAGENT_STARTED), NULL, "a", "b"}}},
    {DGM_ORDER_SUBAGENT_END, {RUN, {K(SUBAGENT_ERROR), NULL, "a"}}},
    {DGM_ORDER_OWNER,
     {RUN, {K(TEXT_MESSAGE_START), "m", "a"}, {K(TEXT_MESSAGE_CONTENT), "m", "b"}}},
    {DGM_ORDER_OWNER, {RUN, {K(TEXT_MESSAGE_START), "m"}, {K(TEXT_MESSAGE_END), "m", "b"}}},
    {DGM_ORDER_FINE, {RUN, {K(TEXT_MESSAGE_START), "m", "a"}, {K(TEXT_MESSAGE_CONTENT), "m"}}},
    {DGM_ORDER_OWNER,
     {RUN, {K(TEXT_MESSAGE_START), "m", "a"}, {K(TOOL_CALL_START), "c", "b", "m"}}},
};

static dgm_canon_event event_of(const struct step *s)
{
    dgm_canon_event e = {.kind = s->kind, .subagent_run_id = dgm_str_from(s->who)};
    dgm_str id = dgm_str_from(s->id);
    if (s->kind == K(STEP_STARTED) || s->kind == K(STEP_FINISHED)) {
        e.step.name = id;
    } else if (s->kind >= K(TOOL_CALL_START) && s->kind <= K(TOOL_CALL_CHUNK)) {
        e.call.tool_call_id = id;
        e.call.parent_message_id = dgm_str_from(s->parent);
    } else if (s->kind == K(SUBAGENT_STARTED)) {
        e.subagent.parent_subagent_run_id = dgm_str_from(s->parent);
    } else if (s->id) {
        e.text.message_id = id;
    }
    return e;
}

static void every_rule_is_held(void **state)
{
    bool seen[DGM_ORDER_NO_END + 1] = {false};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_verify_free) dgm_verify *v = dgm_verify_new();
        for (size_t k = 0; k < MAX_STEPS && rows[i].steps[k].kind; k++) {
            bool last = k + 1 == MAX_STEPS || !rows[i].steps[k + 1].kind;
            dgm_canon_event e = event_of(&rows[i].steps[k]);
            dgm_err err = {0};
            dgm_order_rule rule = dgm_verify_feed(v, &e, &err);
            if (rule != (last ? rows[i].rule : DGM_ORDER_FINE))
                fail_msg("row %zu, step %zu: rule %d: %s", i, k, (int)rule, err.msg);
            assert_true(!rule == !err.msg[0]);
        }
        seen[rows[i].rule] = true;
    }
    for (int r = DGM_ORDER_FIRST; r <= DGM_ORDER_OWNER; r++)
        assert_true(seen[r]);
    dgm_auto(dgm_verify_free) dgm_verify *v = dgm_verify_new();
    dgm_err err = {0};
    dgm_canon_event run = {.kind = K(RUN_STARTED)};
    assert_int_equal(dgm_verify_feed(v, &run, &err), DGM_ORDER_FINE);
    assert_int_equal(dgm_verify_end(v, &err), DGM_ORDER_NO_END);
}

/* ---- random agents --------------------------------------------------------------------------------------- */

/* Everything that a reader sees, verified, folded and written down. */
struct reader {
    dgm_verify *verify;
    dgm_canon_fold *fold;
    struct dump dump;
    size_t n_terminal;
};

static dgm_code read_event(void *arg, const dgm_canon_event *e)
{
    struct reader *r = arg;
    dgm_err err = {0};
    dump_event(&r->dump, e);
    if (dgm_verify_feed(r->verify, e, &err)) {
        print_error("%s\n%.*s", err.msg, (int)r->dump.b.n, r->dump.b.p);
        fail();
    }
    dgm_canon_fold_add(r->fold, e);
    r->n_terminal += dgm_canon_is_terminal(e->kind);
    return DGM_OK;
}

static void one_run(dgm_records_params p, const dgm_event *events, size_t n, struct reader *r)
{
    dgm_auto(dgm_records_to_events_free) dgm_records_to_events *f = dgm_records_to_events_new(&p);
    dgm_canon_sink sink = {read_event, r};
    dgm_err err = {0};
    *r = (struct reader){.verify = dgm_verify_new(), .fold = dgm_canon_fold_new(SIZE_MAX / 2)};
    dgm_buf_init(&r->dump.b, SIZE_MAX);
    for (size_t i = 0; i < n; i++)
        check_ok(dgm_records_to_events_feed(f, &events[i], sink, &err), err);
    check_ok(dgm_records_to_events_end(f, sink, &err), err);
    assert_int_equal(dgm_verify_end(r->verify, &err), DGM_ORDER_FINE);
    assert_true(p.many_turns ? r->n_terminal > 0 : r->n_terminal == 1);
    assert_true(dgm_records_to_events_is_over(f));
}

static void done(struct reader *r)
{
    dgm_verify_free(r->verify);
    dgm_canon_fold_free(r->fold);
    dgm_buf_done(&r->dump.b);
}

static void random_agents_keep_the_order(void **state)
{
    (void)state;
    for (size_t story = 0; story < 10000; story++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_event events[16];
        struct reader one, two;
        seed = story;
        size_t n = roll(16);
        dgm_records_params p = {.answer_source = roll(2) ? DGM_ANSWER_AUTO : DGM_ANSWER_STATUS,
                                .status_texts = (dgm_status_texts)roll(3),
                                .say_history = roll(2),
                                .whole_snapshots = roll(2),
                                .many_turns = roll(2)};
        tell_story(a, events, n);
        one_run(p, events, n, &one);
        one_run(p, events, n, &two);
        check_same(two.dump.b, one.dump.b); /* the same again */
        done(&one);
        done(&two);
    }
}

/* ---- the final text ------------------------------------------------------------------------------------------ */

static void add_unblanked(dgm_buf *b, dgm_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!strchr(" \t\r\n", s.p[i]))
            dgm_buf_add_char(b, s.p[i]);
    }
}

static const char *const pieces[] = {"ha", "haha", "Hello", " ", "\\n\\n", "é", "!", "h"};

static void put_pieces(dgm_buf *b)
{
    for (size_t n = roll(4); n > 0; n--)
        dgm_buf_add_str(b, dgm_str_from(PICK(pieces)));
}

/* Texts by artifacts and by chunks, whole or in pieces; at last the one that counts. */
static void put_text_event(dgm_buf *b, bool last)
{
    bool artifact = !last && roll(2);
    if (artifact)
        dgm_buf_printf(
            b,
            "{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\"%s%s,\"artifact\":{"
            "\"artifactId\":\"a%zu\",\"parts\":[{\"text\":\"",
            roll(2) ? ",\"append\":true" : "", roll(3) ? "" : ",\"lastChunk\":true", roll(2));
    else
        dgm_buf_printf(
            b,
            "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":"
            "\"TASK_STATE_%s\",\"message\":{\"messageId\":\"m%zu\",\"role\":\"ROLE_AGENT\","
            "\"metadata\":{\"canonical_type\":\"%s\"},\"parts\":[{\"text\":\"",
            last ? "COMPLETED" : "WORKING", roll(3),
            last || !roll(4) ? "TextMessageEndEvent" : "TextMessageChunkEvent");
    put_pieces(b);
    dgm_buf_add_str(b, dgm_str_from(artifact ? "\"}]}}}" : "\"}]}}}}"));
}

static void the_final_text_is_what_a_reader_has(void **state)
{
    (void)state;
    for (size_t story = 0; story < 3000; story++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_event events[10];
        dgm_mint mint = {0};
        struct reader r;
        dgm_buf want, got;
        seed = story;
        size_t n = 1 + roll(10);
        for (size_t i = 0; i < n; i++) {
            dgm_buf b;
            dgm_buf_init(&b, SIZE_MAX);
            put_text_event(&b, i + 1 == n);
            read_record(a, &mint, dgm_arena_dup(a, dgm_buf_str(&b)), &events[i]);
            dgm_buf_done(&b);
        }
        one_run((dgm_records_params){.whole_snapshots = true}, events, n, &r);
        dgm_buf_init(&want, SIZE_MAX);
        dgm_buf_init(&got, SIZE_MAX);
        dgm_canon_messages list = dgm_canon_fold_messages(r.fold, a);
        for (size_t i = 0; i < list.n; i++)
            add_unblanked(&got, list.at[i].content.text);
        add_unblanked(&want, events[n - 1].status->status.message->parts.at[0].content);
        dgm_buf_add_char(&got, 0);
        dgm_buf_add_char(&want, 0);
        if (!strstr(got.p, want.p))
            fail_msg("story %zu: \"%s\" is not in\n%.*s", story, want.p, (int)r.dump.b.n,
                     r.dump.b.p);
        dgm_buf_done(&want);
        dgm_buf_done(&got);
        done(&r);
    }
}

/* ---- long runs --------------------------------------------------------------------------------------------- */

static dgm_order_rule say(dgm_verify *v, dgm_canon_kind kind, size_t i)
{
    char id[40];
    int n = snprintf(id, sizeof id, "m-%zu", i);
    dgm_canon_event e = {.kind = kind, .text = {.message_id = {id, (size_t)n}}};
    return dgm_verify_feed(v, &e, NULL);
}

static void a_long_run_is_judged_to_its_end(void **state)
{
    dgm_auto(dgm_verify_free) dgm_verify *v = dgm_verify_new();
    (void)state;
    assert_int_equal(say(v, K(RUN_STARTED), 0), DGM_ORDER_FINE);
    assert_int_equal(say(v, K(TEXT_MESSAGE_START), 0), DGM_ORDER_FINE);
    for (size_t i = 1; i < 3 * DGM_MAX_LINT_ITEMS; i++) {
        assert_int_equal(say(v, K(TEXT_MESSAGE_START), i), DGM_ORDER_FINE);
        assert_int_equal(say(v, K(TEXT_MESSAGE_END), i), DGM_ORDER_FINE);
    }
    assert_int_equal(say(v, K(TEXT_MESSAGE_CONTENT), 1), DGM_ORDER_TEXT_CLOSED);
    assert_int_equal(say(v, K(TEXT_MESSAGE_CONTENT), 0), DGM_ORDER_FINE);
    assert_int_equal(say(v, K(RUN_FINISHED), 0), DGM_ORDER_OPEN_AT_FINISH);
}

static void a_run_with_too_much_open_is_not_judged(void **state)
{
    dgm_auto(dgm_verify_free) dgm_verify *v = dgm_verify_new();
    (void)state;
    assert_int_equal(say(v, K(RUN_STARTED), 0), DGM_ORDER_FINE);
    for (size_t i = 0; i < DGM_MAX_LINT_ITEMS; i++)
        assert_int_equal(say(v, K(TEXT_MESSAGE_START), i), DGM_ORDER_FINE);
    assert_int_equal(say(v, K(TEXT_MESSAGE_START), 7),
                     DGM_ORDER_FINE); /* one past it: all is given up */
    assert_int_equal(say(v, K(TEXT_MESSAGE_CONTENT), 7), DGM_ORDER_FINE);
    assert_int_equal(say(v, K(RUN_FINISHED), 0), DGM_ORDER_FINE);
    assert_int_equal(say(v, K(CUSTOM), 0), DGM_ORDER_AFTER_FINISH);
    assert_int_equal(say(v, K(RUN_STARTED), 0), DGM_ORDER_FINE);
    assert_int_equal(say(v, K(TEXT_MESSAGE_CONTENT), 7), DGM_ORDER_TEXT_CLOSED);
}

DGM_TEST_MAIN(dgm_test(every_rule_is_held), dgm_test_holds(random_agents_keep_the_order, "R000-01"),
              dgm_test_holds(the_final_text_is_what_a_reader_has, "R004-04"),
              dgm_test(a_long_run_is_judged_to_its_end),
              dgm_test(a_run_with_too_much_open_is_not_judged))
