/*
 * test_responses_random.c - random agents through Responses and back: the order of events holds, the stream and
 * the response have the same content, and the decoded events are equal to the encoded ones.
 */
#include "canon/records_to_events.h"
#include "canon/test_stories.h"
#include "wire/responses/test_responses_streams.h"

#define STORIES 3000

static void stories_there_and_back(void **state)
{
    (void)state;
    for (unsigned i = 0; i < STORIES; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_records_params params = {.answer_source = i % 3 ? DGM_ANSWER_AUTO : DGM_ANSWER_STATUS};
        dgm_auto(dgm_records_to_events_free) dgm_records_to_events *from =
            dgm_records_to_events_new(&params);
        dgm_event events[30];
        struct both_ways both;
        dgm_err err = {0};
        seed = i;
        size_t n = 1 + roll(30);
        tell_story(a, events, n);
        both_open(&both, a);
        dgm_canon_sink sink = {both_feed, &both};
        for (size_t k = 0; k < n; k++)
            check_ok(dgm_records_to_events_feed(from, &events[k], sink, &err), err);
        check_ok(dgm_records_to_events_end(from, sink, &err), err);
        both_check(&both, a);
    }
}

/* ---- events of any maker ------------------------------------------------------------------------------------------ */

static const char *const words[] = {"ha",
                                    "\"q\" \\ ",
                                    "\n",
                                    "Z\xc3\xbcrich",
                                    "{}",
                                    "\t",
                                    "\xf0\x9f\x98\x80",
                                    "a longer piece of text",
                                    "\x01",
                                    "/"};

struct maker {
    dgm_canon_sink sink;
    dgm_arena *a;
    dgm_str open[8]; /* "m1", "c2", "t3": texts, calls, thoughts */
    size_t n_open, n_made;
    dgm_strs pending;
};

static void emit(struct maker *m, dgm_canon_kind kind, dgm_str id, dgm_str delta)
{
    dgm_canon_event e = {.kind = kind};
    if (id.n && id.p[0] == 'c') {
        e.call.tool_call_id = id;
        e.call.delta = delta;
        if (kind == DGM_CANON_TOOL_CALL_START)
            e.call.name = id.p[id.n - 1] % 2 ? DGM_STR("client") : DGM_STR("own");
    } else {
        e.text.message_id = id;
        e.text.delta = delta;
    }
    assert_false(dgm_canon_emit(m->sink, &e));
}

static void open_one(struct maker *m)
{
    static const char kinds[] = "mct";
    if (m->n_open == 8)
        return;
    dgm_str id = dgm_arena_printf(m->a, "%c%zu", kinds[roll(3)], ++m->n_made);
    m->open[m->n_open++] = id;
    if (id.p[0] == 't')
        emit(m, DGM_CANON_REASONING_START, id, (dgm_str){0});
    emit(m,
         id.p[0] == 'm'   ? DGM_CANON_TEXT_MESSAGE_START
         : id.p[0] == 'c' ? DGM_CANON_TOOL_CALL_START
                          : DGM_CANON_REASONING_MESSAGE_START,
         id, (dgm_str){0});
}

static void go_on(struct maker *m)
{
    if (!m->n_open)
        return;
    dgm_str id = m->open[roll(m->n_open)];
    emit(m,
         id.p[0] == 'm'   ? DGM_CANON_TEXT_MESSAGE_CONTENT
         : id.p[0] == 'c' ? DGM_CANON_TOOL_CALL_ARGS
                          : DGM_CANON_REASONING_MESSAGE_CONTENT,
         id, dgm_str_from(PICK(words)));
}

static void close_one(struct maker *m)
{
    if (!m->n_open)
        return;
    size_t i = roll(m->n_open);
    dgm_str id = m->open[i];
    m->open[i] = m->open[--m->n_open];
    if (id.p[0] == 'm') {
        emit(m, DGM_CANON_TEXT_MESSAGE_END, id, (dgm_str){0});
    } else if (id.p[0] == 't') {
        emit(m, DGM_CANON_REASONING_MESSAGE_END, id, (dgm_str){0});
        emit(m, DGM_CANON_REASONING_END, id, (dgm_str){0});
    } else {
        emit(m, DGM_CANON_TOOL_CALL_END, id, (dgm_str){0});
        bool client = id.p[id.n - 1] % 2;
        if (client) {
            m->pending.at[m->pending.n++] = id;
        } else {
            dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_RESULT};
            e.result.tool_call_id = id;
            e.result.content = (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT,
                                                   .text = dgm_str_from(PICK(words))};
            assert_false(dgm_canon_emit(m->sink, &e));
        }
    }
}

/* tools: the run names the caller's tools, so their calls are emitted as they come. */
static void make_run(struct maker *m, bool tools)
{
    dgm_canon_tool client = {.name = DGM_STR("client")};
    dgm_canon_input input = {.tools = {&client, 1}};
    dgm_canon_event e = {.kind = DGM_CANON_RUN_STARTED};
    e.run_started.run_id = DGM_STR("r");
    e.run_started.thread_id = DGM_STR("th");
    e.run_started.protocol_version = DGM_STR("1.0");
    e.run_started.input = tools ? &input : NULL;
    assert_false(dgm_canon_emit(m->sink, &e));
    for (size_t n = roll(60); n; n--) {
        size_t what = roll(5);
        if (what == 0)
            open_one(m);
        else if (what == 1)
            close_one(m);
        else
            go_on(m);
    }
    while (m->n_open)
        close_one(m);
    e = (dgm_canon_event){.kind = DGM_CANON_RUN_FINISHED};
    if (m->pending.n)
        e.run_finished.outcome =
            (dgm_canon_outcome){.kind = DGM_CANON_SUCCESS, .pending_tool_call_ids = m->pending};
    assert_false(dgm_canon_emit(m->sink, &e));
}

static void mixed_items_there_and_back(void **state)
{
    (void)state;
    for (unsigned i = 0; i < STORIES; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        struct both_ways both;
        both_open(&both, a);
        struct maker m = {
            .sink = {both_feed, &both}, .a = a, .pending = {.at = dgm_new_n(a, dgm_str, 100)}};
        seed = i;
        make_run(&m, i % 2);
        both_check(&both, a);
    }
}

DGM_TEST_MAIN(dgm_test(stories_there_and_back), dgm_test(mixed_items_there_and_back))
