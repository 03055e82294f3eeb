/* test_record.c - events as immutable bytes. */
#include "base/limits.h"
#include "model/form.h"
#include "model/record.h"
#include "support/check.h"

#include <pthread.h>

static const dgm_record_head head = {.seq = 7, .time = 1767323045678, .turn = 2};

static dgm_event event_of(dgm_arena *a, const char *text)
{
    dgm_event event;
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10, .err = &err};
    check_ok(dgm_form_read_event(&r, dgm_json_parse_trusted(a, dgm_str_from(text)), NULL, &event),
             err);
    return event;
}

static dgm_code record_of(dgm_arena *a, const char *text, dgm_record **ret, dgm_err *err)
{
    dgm_event event = event_of(a, text);
    dgm_buf scratch;
    dgm_buf_init(&scratch, 0);
    dgm_code rc = dgm_record_new(&event, head, &scratch, ret, err);
    dgm_buf_done(&scratch);
    return rc;
}

static const struct row {
    const char *text;
    dgm_event_kind kind;
    dgm_task_state state;
} rows[] = {
    {"{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_SUBMITTED\"}}"
     "}",
     DGM_EVENT_TASK, DGM_STATE_SUBMITTED},
    {"{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"hi\"}]}}",
     DGM_EVENT_MESSAGE, DGM_STATE_UNKNOWN},
    {"{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_"
     "INPUT_REQUIRED\",\"timestamp\":\"2026-01-02T03:04:05.678Z\"}}}",
     DGM_EVENT_STATUS, DGM_STATE_INPUT_REQUIRED},
    {"{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":{\"artifactId\":\"a\","
     "\"parts\":[{\"data\":{\"n\":[1.0,-0,1e400]}}]},\"append\":true}}",
     DGM_EVENT_ARTIFACT, DGM_STATE_UNKNOWN},
    {"{\"kind\":\"internal:llm-call\",\"taskId\":\"t\",\"iteration\":1,\"timestamp\":\"2026-01-"
     "02T03:04:05Z\"}",
     DGM_EVENT_INTERNAL, DGM_STATE_UNKNOWN},
};

static void its_bytes_are_the_1_0_stream_response(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_auto(dgm_record_unref) dgm_record *r = NULL;
        dgm_err err = {0};
        check_ok(record_of(a, rows[i].text, &r, &err), err);
        check_str(dgm_record_bytes(r), rows[i].text);
        assert_int_equal(r->bytes[r->n], 0);
        assert_int_equal(r->head.seq, 7);
        assert_int_equal(r->head.time, 1767323045678);
        assert_int_equal(r->head.turn, 2);
        assert_int_equal(r->head.kind, rows[i].kind);
        assert_int_equal(r->head.state, rows[i].state);
    }
}

static void what_a_store_kept_is_the_event_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_auto(dgm_record_unref) dgm_record *first = NULL, *stored = NULL;
        dgm_err err = {0};
        dgm_event event = {0};
        check_ok(record_of(a, rows[i].text, &first, &err), err);
        check_ok(dgm_record_from_bytes(first->head, dgm_record_bytes(first), &stored, &err), err);
        dgm_record_unref(dgm_take(first));
        check_ok(dgm_record_event(stored, a, &event, &err), err);
        assert_int_equal(event.kind, rows[i].kind);
        dgm_buf b;
        dgm_writer w = {.out = &b, .format = DGM_FORMAT_A2A_10};
        dgm_buf_init(&b, 10000);
        dgm_form_write_event(&w, &event);
        check_str(b, rows[i].text);
        dgm_buf_done(&b);
    }
}

static void a_decoded_event_outlives_its_record(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_record *r = NULL;
    dgm_err err = {0};
    dgm_event event = {0};
    (void)state;
    check_ok(record_of(a, rows[1].text, &r, &err), err);
    check_ok(dgm_record_event(r, a, &event, &err), err);
    dgm_record_unref(r);
    check_str(event.message->parts.at[0].content, "hi");
}

static void unknown_members_stay_in_the_bytes(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_auto(dgm_record_unref) dgm_record *r = NULL;
    dgm_err err = {0};
    static const char text[] =
        "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":"
        "[{\"text\":\"hi\",\"x\":{\"y\":1.0}}],\"z\":null},\"w\":[]}";
    (void)state;
    check_ok(record_of(a, text, &r, &err), err);
    check_str(dgm_record_bytes(r), text);
}

/* ---- limits ---------------------------------------------------------------------------------------- */

static dgm_code record_with_text(size_t n, dgm_record **ret, dgm_err *err)
{
    char *text = malloc(n ? n : 1);
    memset(text, 'x', n);
    dgm_part part = {.kind = DGM_PART_TEXT, .content = {text, n}};
    dgm_message m = {.message_id = DGM_STR("m"), .role = DGM_ROLE_AGENT, .parts = {&part, 1}};
    dgm_event event = {.kind = DGM_EVENT_MESSAGE, .message = &m};
    dgm_buf scratch;
    dgm_buf_init(&scratch, 0);
    dgm_code rc = dgm_record_new(&event, head, &scratch, ret, err);
    dgm_buf_done(&scratch);
    free(text);
    return rc;
}

static void record_bytes_is_exact(void **state)
{
    dgm_record *r = NULL;
    dgm_err err = {0};
    (void)state;
    check_ok(record_with_text(0, &r, &err), err);
    size_t around = r->n;
    dgm_record_unref(r);
    for (size_t less = 0; less < 40; less += 13) {
        check_ok(record_with_text(DGM_MAX_RECORD_BYTES - around - less, &r, &err), err);
        assert_int_equal(r->n, DGM_MAX_RECORD_BYTES - less);
        if (!less) { /* the largest can be read back */
            dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
            dgm_event event;
            check_ok(dgm_record_event(r, a, &event, &err), err);
        }
        dgm_record_unref(r);
    }
    for (size_t more = 1; more < 2000; more += 111) {
        check_fails(record_with_text(DGM_MAX_RECORD_BYTES - around + more, &r, &err), DGM_TOO_LARGE,
                    err, "");
        assert_non_null(strstr(err.msg, "record_bytes of 8388608"));
    }
    char *bytes = calloc(1, DGM_MAX_RECORD_BYTES + 1);
    dgm_record_head kept = {.seq = 1, .kind = DGM_EVENT_MESSAGE};
    check_fails(dgm_record_from_bytes(kept, (dgm_str){bytes, DGM_MAX_RECORD_BYTES + 1}, &r, &err),
                DGM_TOO_LARGE, err, "");
    free(bytes);
}

/* A data part whose value is n arrays deep. */
static dgm_code record_nested(size_t n, dgm_record **ret, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    char text[512];
    memset(text, '[', n);
    memset(text + n, ']', n);
    dgm_part part = {.kind = DGM_PART_DATA,
                     .data = dgm_json_parse_trusted(a, (dgm_str){text, 2 * n})};
    dgm_message m = {.message_id = DGM_STR("m[[[[["), .role = DGM_ROLE_AGENT, .parts = {&part, 1}};
    dgm_event event = {.kind = DGM_EVENT_MESSAGE, .message = &m};
    dgm_buf scratch;
    dgm_buf_init(&scratch, 0);
    dgm_code rc = dgm_record_new(&event, head, &scratch, ret, err);
    dgm_buf_done(&scratch);
    return rc;
}

static void what_could_not_be_read_back_is_refused(void **state)
{
    /* A value may be as deep as json_depth where it was read; inside a record it is deeper. */
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_record *r = NULL;
    dgm_err err = {0};
    dgm_event event;
    (void)state;
    check_ok(record_nested(124, &r, &err), err); /* 4 around it: the record, message, parts, part */
    check_ok(dgm_record_event(r, a, &event, &err), err);
    dgm_record_unref(r);
    assert_int_equal(record_nested(125, &r, &err), DGM_TOO_LARGE);
    assert_non_null(strstr(err.msg, "json_depth of 128"));
    assert_int_equal(strncmp(err.at, "/message/parts/0/data/0/0", 25), 0);
    assert_int_equal(record_nested(125, &r, NULL), DGM_TOO_LARGE);
}

static void nothing_is_no_event(void **state)
{
    dgm_event event = {0};
    dgm_buf scratch;
    dgm_record *r = NULL;
    dgm_err err = {0};
    (void)state;
    dgm_buf_init(&scratch, 0);
    check_fails(dgm_record_new(&event, head, &scratch, &r, &err), DGM_INVALID_AGENT_RESPONSE, err,
                "");
    assert_null(r);
    dgm_buf_done(&scratch);
}

static void scratch_memory_is_used_again(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_buf scratch;
    dgm_err err = {0};
    (void)state;
    dgm_buf_init(&scratch, 0);
    char *memory = NULL;
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            dgm_event event = event_of(a, rows[i].text);
            dgm_record *r = NULL;
            check_ok(dgm_record_new(&event, head, &scratch, &r, &err), err);
            check_str(dgm_record_bytes(r), rows[i].text);
            dgm_record_unref(r);
        }
        if (round)
            assert_ptr_equal(memory, scratch.p);
        memory = scratch.p;
    }
    dgm_buf_done(&scratch);
}

/* ---- damage ------------------------------------------------------------------------------------------ */

static void damage_is_internal_and_named(void **state)
{
    static const struct {
        dgm_event_kind kind;
        const char *bytes, *at, *says;
    } damaged[] = {
        {DGM_EVENT_STATUS, "", "", "record 9 is damaged: expected JSON"},
        {DGM_EVENT_STATUS, "{\"statusUpdate\":{\"taskId\":", "/statusUpdate/taskId", "not JSON"},
        {DGM_EVENT_STATUS, "{\"statusUpdate\":{\"taskId\":\"t\"}}", "/statusUpdate/contextId",
         "missing"},
        {DGM_EVENT_STATUS,
         "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"\"}]}}",
         "", "an event of kind 2 under a header of kind 3"},
        {DGM_EVENT_INTERNAL, "{\"kind\":\"internal:nap\"}", "/kind", "internal:nap"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_auto(dgm_record_unref) dgm_record *r = NULL;
        dgm_err err = {0};
        dgm_event event;
        dgm_record_head kept = {.seq = 9, .kind = damaged[i].kind};
        check_ok(dgm_record_from_bytes(kept, dgm_str_from(damaged[i].bytes), &r, &err), err);
        check_fails(dgm_record_event(r, a, &event, &err), DGM_INTERNAL, err, damaged[i].at);
        if (!strstr(err.msg, damaged[i].says))
            fail_msg("%s does not say %s", err.msg, damaged[i].says);
        assert_int_equal(dgm_record_event(r, a, &event, NULL), DGM_INTERNAL);
    }
}

static void an_invalid_header_is_refused(void **state)
{
    dgm_record *r = NULL;
    dgm_err err = {0};
    (void)state;
    check_fails(
        dgm_record_from_bytes((dgm_record_head){.kind = DGM_EVENT_NONE}, DGM_STR("{}"), &r, &err),
        DGM_INTERNAL, err, "");
    check_fails(dgm_record_from_bytes((dgm_record_head){.kind = (dgm_event_kind)6}, DGM_STR("{}"),
                                      &r, &err),
                DGM_INTERNAL, err, "");
    check_fails(
        dgm_record_from_bytes((dgm_record_head){.kind = DGM_EVENT_TASK, .state = (dgm_task_state)9},
                              DGM_STR("{}"), &r, &err),
        DGM_INTERNAL, err, "");
    assert_null(r);
}

/* ---- references --------------------------------------------------------------------------------------- */

static void *reader(void *arg)
{
    dgm_record *r = arg;
    size_t sum = 0;
    for (int i = 0; i < 20000; i++) {
        dgm_record *mine = dgm_record_ref(r);
        sum += (size_t)mine->bytes[i % (int)mine->n];
        dgm_record_unref(mine);
    }
    dgm_record_unref(r);
    return (void *)sum;
}

static void readers_on_other_threads_hold_it(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_record *r = NULL;
    dgm_err err = {0};
    pthread_t threads[4];
    (void)state;
    check_ok(record_of(a, rows[0].text, &r, &err), err);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reader, dgm_record_ref(r)), 0);
    dgm_record_unref(r); /* the maker goes first; ASan sees a free too many or too few */
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    dgm_record_unref(NULL);
}

static _Atomic int n_encoded;

static dgm_code encode(const dgm_record *r, dgm_buf *out, void *arg)
{
    if (!arg)
        return DGM_INTERNAL;
    n_encoded++;
    dgm_buf_printf(out, "%s of %llu", (const char *)arg, (unsigned long long)r->head.seq);
    return DGM_OK;
}

struct asker {
    pthread_t thread;
    dgm_record *record;
    unsigned dialect;
    dgm_str got;
};

static void *ask(void *arg)
{
    static char names[][8] = {"one", "two", "three"};
    struct asker *q = arg;
    if (dgm_record_payload(q->record, q->dialect, encode, names[q->dialect], &q->got))
        q->got = (dgm_str){0};
    return NULL;
}

static void a_dialect_is_encoded_once_for_all(void **state)
{
    enum { N = 12 };
    static const char *const want[] = {"one of 7", "two of 7", "three of 7"};
    struct asker askers[N];
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_auto(dgm_record_unref) dgm_record *r = NULL;
    dgm_err err = {0};
    dgm_str got;
    (void)state;
    check_ok(record_of(a, rows[0].text, &r, &err), err);
    assert_int_equal(dgm_record_payload(r, 0, encode, NULL, &got), DGM_INTERNAL); /* not kept */
    for (unsigned i = 0; i < N; i++) {
        askers[i] = (struct asker){.record = r, .dialect = i % 3};
        pthread_create(&askers[i].thread, NULL, ask, &askers[i]);
    }
    for (unsigned i = 0; i < N; i++) {
        pthread_join(askers[i].thread, NULL);
        check_str(askers[i].got, want[i % 3]);
        assert_ptr_equal(askers[i].got.p, askers[i % 3].got.p);
    }
    int so_far = n_encoded;
    check_ok(dgm_record_payload(r, 2, encode, NULL, &got), err);
    check_str(got, "three of 7");
    assert_int_equal(n_encoded, so_far);
}

/* A record that this process wrote is decoded like its copy from a store, which has no offsets. */
static void check_read_back(const dgm_record *r)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_auto(dgm_record_unref) dgm_record *stored = NULL;
    dgm_event fast = {0}, slow = {0};
    dgm_buf texts[2];
    assert_int_equal(dgm_record_from_bytes(r->head, dgm_record_bytes(r), &stored, NULL), DGM_OK);
    dgm_code rc = dgm_record_event(stored, a, &slow, NULL);
    assert_int_equal(dgm_record_event(r, a, &fast, NULL), rc);
    if (rc)
        return;
    assert_int_equal(fast.artifact->append, slow.artifact->append);
    assert_int_equal(fast.artifact->last_chunk, slow.artifact->last_chunk);
    for (int i = 0; i < 2; i++) {
        dgm_buf_init(&texts[i], SIZE_MAX);
        dgm_writer w = {.out = &texts[i], .format = DGM_FORMAT_A2A_10};
        dgm_form_write_event(&w, i ? &slow : &fast);
    }
    assert_int_equal(texts[0].n, texts[1].n);
    assert_memory_equal(texts[0].p, texts[1].p, texts[0].n);
    dgm_buf_done(&texts[0]);
    dgm_buf_done(&texts[1]);
}

/* With one member at a time that the fast path does not write. */
static void written_chunks_are_those_of_the_tables(void **state)
{
    static const dgm_str texts[] = {
        {"1 ", 2},        {"", 0},           {"a\n\"b\\\t\x01\x7f/", 10},
        {"a\xff\xc3", 3}, {"gr\xc3\xbc", 4}, {"\xf0\x9f\x99\x82", 4}};
    static dgm_str extension = {"e", 1};
    dgm_buf scratch, slow;
    (void)state;
    dgm_buf_init(&scratch, SIZE_MAX);
    dgm_buf_init(&slow, SIZE_MAX);
    for (int i = 0; i < 6 * 9 * 10; i++) {
        int other = i / 54;
        dgm_part parts[] = {{.kind = DGM_PART_TEXT, .content = texts[i % 6]},
                            {.kind = DGM_PART_TEXT, .content = texts[0]}};
        dgm_artifact_update u = {.task_id = DGM_STR("t\n"),
                                 .context_id = DGM_STR("c"),
                                 .artifact = {.artifact_id = texts[i % 6], .parts = {parts, 1}},
                                 .append = (dgm_opt_bool)(i / 6 % 3),
                                 .last_chunk = (dgm_opt_bool)(i / 18 % 3)};
        dgm_event e = {.kind = DGM_EVENT_ARTIFACT, .artifact = &u};
        if (other == 1)
            u.artifact.name = DGM_STR("n");
        if (other == 2)
            u.artifact.description = DGM_STR("d");
        if (other == 3)
            u.artifact.extensions = (dgm_strs){&extension, 1};
        if (other == 4)
            u.artifact.parts.n = 2;
        if (other == 5)
            parts[0].filename = DGM_STR("f");
        if (other == 6)
            parts[0].media_type = DGM_STR("text/plain");
        if (other == 7)
            parts[0].kind = DGM_PART_URL;
        if (other == 8)
            u.artifact.parts.n = 0;
        if (other == 9)
            parts[0].media_type = u.artifact.name = DGM_STR("");
        dgm_record *r;
        assert_int_equal(dgm_record_new(&e, (dgm_record_head){.seq = 1}, &scratch, &r, NULL),
                         DGM_OK);
        dgm_buf_clear(&slow);
        dgm_writer w = {.out = &slow, .format = DGM_FORMAT_A2A_10};
        dgm_form_write_event(&w, &e);
        assert_int_equal(r->n, slow.n);
        assert_memory_equal(r->bytes, slow.p, slow.n);
        check_read_back(r);
        u.task_id = DGM_STR("t");
        dgm_record *next = dgm_record_next_chunk(r, &e, (dgm_record_head){.seq = 2});
        if (next)
            check_read_back(next);
        dgm_record_unref(next);
        dgm_record_unref(r);
        assert_int_equal(dgm_record_new(&e, (dgm_record_head){.seq = 1}, &scratch, &r, NULL),
                         DGM_OK);
        check_read_back(r); /* most ids have no escapes */
        if ((next = dgm_record_next_chunk(r, &e, (dgm_record_head){.seq = 2})))
            check_read_back(next);
        dgm_record_unref(next);
        dgm_record_unref(r);
    }
    dgm_buf_done(&scratch);
    dgm_buf_done(&slow);
}

DGM_TEST_MAIN(dgm_test(written_chunks_are_those_of_the_tables),
              dgm_test(a_dialect_is_encoded_once_for_all),
              dgm_test_holds(its_bytes_are_the_1_0_stream_response, "R002-01"),
              dgm_test_holds(what_a_store_kept_is_the_event_again, "R002-19 R002-33"),
              dgm_test(a_decoded_event_outlives_its_record),
              dgm_test(unknown_members_stay_in_the_bytes), dgm_test(record_bytes_is_exact),
              dgm_test(what_could_not_be_read_back_is_refused), dgm_test(nothing_is_no_event),
              dgm_test(scratch_memory_is_used_again), dgm_test(damage_is_internal_and_named),
              dgm_test(an_invalid_header_is_refused), dgm_test(readers_on_other_threads_hold_it))
