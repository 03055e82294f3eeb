/* lib/test_api_document.c - dragoman/document.h and agui.h: structs that a caller builds, in every format and back. */
#include "base/err.h"
#include "support/check.h"

#include <dragoman/dragoman.h>

/* ---- a document with one of each ------------------------------------------------------------------ */

static const dgm_json *dgm_make_metadata(dgm_document *d)
{
    const dgm_json *v = NULL;
    dgm_json_builder *b = dgm_json_builder_new(d);
    dgm_json_builder_object(b, NULL);
    dgm_json_builder_number(b, "n", DGM_STR("1.0"));
    dgm_json_builder_close(b);
    assert_int_equal(dgm_json_builder_end(b, &v, NULL), DGM_OK);
    return v;
}

static dgm_parts make_parts(dgm_document *d)
{
    dgm_part *p = dgm_document_alloc(d, 4 * sizeof *p);
    p[0] = (dgm_part){
        .kind = DGM_PART_TEXT, .content = DGM_STR("Hi"), .metadata = dgm_make_metadata(d)};
    p[1] = (dgm_part){.kind = DGM_PART_RAW,
                      .content = DGM_STR("aGk="),
                      .filename = DGM_STR("a.txt"),
                      .media_type = DGM_STR("text/plain")};
    p[2] = (dgm_part){.kind = DGM_PART_URL, .content = DGM_STR("https://example.org/a.png")};
    p[3] = (dgm_part){.kind = DGM_PART_DATA, .data = dgm_make_metadata(d)};
    return (dgm_parts){p, 4};
}

static dgm_message dgm_make_message(dgm_document *d, dgm_role role)
{
    return (dgm_message){.message_id = DGM_STR("m"),
                         .context_id = DGM_STR("c"),
                         .role = role,
                         .parts = make_parts(d),
                         .metadata = dgm_make_metadata(d)};
}

static void fill(dgm_document *d, dgm_object_kind kind, void *it)
{
    dgm_message *m = dgm_document_alloc(d, sizeof *m);
    dgm_artifact *a = dgm_document_alloc(d, sizeof *a);
    *m = dgm_make_message(d, DGM_ROLE_AGENT);
    *a =
        (dgm_artifact){.artifact_id = DGM_STR("a"), .name = DGM_STR("map"), .parts = make_parts(d)};
    const dgm_status status = {
        .state = DGM_STATE_WORKING, .message = m, .timestamp = DGM_STR("2026-01-05T09:30:02Z")};
    if (kind == DGM_OBJECT_MESSAGE)
        *(dgm_message *)it = dgm_make_message(d, DGM_ROLE_USER);
    if (kind == DGM_OBJECT_TASK)
        *(dgm_task *)it = (dgm_task){.id = DGM_STR("t"),
                                     .context_id = DGM_STR("c"),
                                     .status = status,
                                     .artifacts = {a, 1},
                                     .history = {m, 1},
                                     .metadata = dgm_make_metadata(d)};
    if (kind == DGM_OBJECT_STATUS_UPDATE)
        *(dgm_status_update *)it = (dgm_status_update){
            .task_id = DGM_STR("t"), .context_id = DGM_STR("c"), .status = status};
    if (kind == DGM_OBJECT_ARTIFACT_UPDATE)
        *(dgm_artifact_update *)it = (dgm_artifact_update){.task_id = DGM_STR("t"),
                                                           .context_id = DGM_STR("c"),
                                                           .artifact = *a,
                                                           .append = DGM_TRUE,
                                                           .last_chunk = DGM_TRUE};
}

static const dgm_object_kind kinds[] = {DGM_OBJECT_MESSAGE, DGM_OBJECT_TASK,
                                        DGM_OBJECT_STATUS_UPDATE, DGM_OBJECT_ARTIFACT_UPDATE};
#define N_KINDS (sizeof kinds / sizeof *kinds)

static char *encode(const dgm_document *d, dgm_format_id to)
{
    const dgm_convert_options o = {.size = sizeof o, .to = to};
    dgm_err err = {0};
    char *text = NULL;
    check_ok(dgm_document_encode(d, &o, &text, NULL, &err), err);
    return text;
}

static dgm_document *decode(const char *text, size_t n, dgm_format_id from, dgm_format_id to)
{
    const dgm_convert_options o = {.size = sizeof o, .from = from, .to = to};
    dgm_document *d = NULL;
    dgm_err err = {0};
    check_ok(dgm_document_decode(&o, text, n, &d, &err), err);
    return d;
}

/* ---- A2A ------------------------------------------------------------------------------------------ */

static void built_objects_come_back_from_every_dialect(void **state)
{
    static const dgm_format_id dialects[] = {DGM_FORMAT_A2A_10, DGM_FORMAT_A2A_03,
                                             DGM_FORMAT_A2A_03_REST};
    (void)state;
    for (size_t k = 0; k < N_KINDS; k++) {
        dgm_document *d = dgm_document_new();
        fill(d, kinds[k], dgm_document_add(d, kinds[k]));
        char *want = encode(d, DGM_FORMAT_A2A_10);
        for (size_t i = 0; i < 3; i++) {
            char *text = encode(d, dialects[i]);
            const dgm_convert_options o = {
                .size = sizeof o, .from = dialects[i], .object = kinds[k]};
            dgm_document *again = NULL;
            dgm_err err = {0};
            check_ok(dgm_document_decode(&o, text, strlen(text), &again, &err), err);
            assert_int_equal(dgm_document_count(again), 1);
            assert_int_equal(dgm_document_kind(again, 0), kinds[k]);
            char *got = encode(again, DGM_FORMAT_A2A_10);
            /* a decoded object is written without the end of line that a converter writes */
            assert_int_equal(strncmp(got, want, strlen(got)), 0);
            assert_true(strlen(want) - strlen(got) <= 1);
            dgm_free(got);
            dgm_free(text);
            dgm_document_free(again);
        }
        dgm_free(want);
        dgm_document_free(d);
    }
}

static void built_objects_are_encoded_as_convert_would(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_KINDS; k++) {
        dgm_document *d = dgm_document_new();
        fill(d, kinds[k], dgm_document_add(d, kinds[k]));
        char *a2a = encode(d, DGM_FORMAT_A2A_10);
        for (size_t i = 0; i < dgm_format_count(); i++) {
            const dgm_convert_options o = {.size = sizeof o,
                                           .from = DGM_FORMAT_A2A_10,
                                           .to = dgm_format_at(i)->id,
                                           .object = kinds[k]};
            char *got = NULL, *want = NULL;
            size_t n = 0, n_want = 0;
            dgm_err err = {0};
            check_ok(dgm_convert(&o, a2a, strlen(a2a), &want, &n_want, &err), err);
            check_ok(dgm_document_encode(d, &o, &got, &n, &err), err);
            check_bytes_(got, n, want, n_want, __FILE__, __LINE__);
            dgm_free(got);
            dgm_free(want);
        }
        dgm_free(a2a);
        dgm_document_free(d);
    }
}

static void several_objects_are_a_stream(void **state)
{
    dgm_document *d = dgm_document_new();
    (void)state;
    for (size_t k = 1; k < N_KINDS; k++)
        fill(d, kinds[k], dgm_document_add(d, kinds[k]));
    dgm_status_update *end = dgm_document_add(d, DGM_OBJECT_STATUS_UPDATE);
    *end = (dgm_status_update){
        .task_id = DGM_STR("t"), .context_id = DGM_STR("c"), .status.state = DGM_STATE_COMPLETED};
    char *sse = encode(d, DGM_FORMAT_A2A_03);
    assert_int_equal(strncmp(sse, "data: {\"kind\":\"task\"", 20), 0);
    dgm_document *again = decode(sse, strlen(sse), DGM_FORMAT_NONE, DGM_FORMAT_NONE);
    assert_int_equal(dgm_document_count(again), 4);
    for (size_t i = 0; i < 4; i++) {
        const dgm_event *e = dgm_document_object(again, i);
        static const dgm_event_kind want[] = {DGM_EVENT_TASK, DGM_EVENT_STATUS, DGM_EVENT_ARTIFACT,
                                              DGM_EVENT_STATUS};
        assert_int_equal(dgm_document_kind(again, i), DGM_OBJECT_STREAM_RESPONSE);
        assert_int_equal(e->kind, want[i]);
    }
    char *chat = encode(d, DGM_FORMAT_CHAT);
    assert_non_null(strstr(chat, "chat.completion.chunk"));
    dgm_free(chat);

    /* one by one into a converter: the same bytes */
    const dgm_convert_options o = {
        .size = sizeof o, .from = DGM_FORMAT_A2A_03, .to = DGM_FORMAT_A2A_03};
    dgm_converter *c = NULL;
    dgm_err err = {0};
    check_ok(dgm_converter_new(&o, &c, &err), err);
    for (size_t i = 0; i < dgm_document_count(d); i++)
        check_ok(
            dgm_converter_feed_object(c, dgm_document_kind(d, i), dgm_document_object(d, i), &err),
            err);
    check_ok(dgm_converter_end(c, &err), err);
    check_str(dgm_converter_output(c), sse);
    dgm_converter_free(c);
    dgm_free(sse);
    dgm_document_free(again);
    dgm_document_free(d);
}

static void other_formats_are_decoded_as_a2a_objects(void **state)
{
    static const char chat[] = "{\"role\":\"user\",\"content\":\"Hi\"}";
    dgm_document *d = decode(chat, sizeof chat - 1, DGM_FORMAT_CHAT, DGM_FORMAT_NONE);
    (void)state;
    assert_int_equal(dgm_document_count(d), 1);
    assert_int_equal(dgm_document_kind(d, 0), DGM_OBJECT_MESSAGE);
    const dgm_message *m = dgm_document_object(d, 0);
    assert_int_equal(m->role, DGM_ROLE_USER);
    check_str(m->parts.at[0].content, "Hi");
    char *again = encode(d, DGM_FORMAT_CHAT);
    assert_int_equal(strncmp(again, chat, sizeof chat - 1), 0);
    dgm_free(again);
    dgm_document_free(d);
}

static void unknown_members_and_envelopes_stay(void **state)
{
    static const char text[] =
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"kind\":\"task\",\"id\":\"t\",\"contextId\":"
        "\"c\",\"status\":{\"state\":\"working\"},\"own\":1.0}}";
    dgm_document *d = decode(text, sizeof text - 1, DGM_FORMAT_A2A_03, DGM_FORMAT_NONE);
    (void)state;
    char *again = encode(d, DGM_FORMAT_A2A_03);
    assert_string_equal(again, text);
    dgm_free(again);
    dgm_document_free(d);
}

/* ---- AG-UI ---------------------------------------------------------------------------------------- */

static void events_are_built_encoded_and_decoded(void **state)
{
    dgm_document *d = dgm_document_new();
    (void)state;
    *dgm_document_add_agui(d) = (dgm_agui_event){
        .type = DGM_AGUI_RUN_STARTED, .thread_id = DGM_STR("th"), .run_id = DGM_STR("r")};
    *dgm_document_add_agui(d) = (dgm_agui_event){.type = DGM_AGUI_TEXT_MESSAGE_START,
                                                 .message_id = DGM_STR("m"),
                                                 .role = DGM_STR("assistant")};
    *dgm_document_add_agui(d) = (dgm_agui_event){
        .type = DGM_AGUI_TEXT_MESSAGE_CONTENT, .message_id = DGM_STR("m"), .delta = DGM_STR("Hi")};
    *dgm_document_add_agui(d) =
        (dgm_agui_event){.type = DGM_AGUI_TEXT_MESSAGE_END, .message_id = DGM_STR("m")};
    *dgm_document_add_agui(d) = (dgm_agui_event){
        .type = DGM_AGUI_CUSTOM, .name = DGM_STR("own"), .value = dgm_make_metadata(d)};
    *dgm_document_add_agui(d) = (dgm_agui_event){
        .type = DGM_AGUI_RUN_FINISHED, .thread_id = DGM_STR("th"), .run_id = DGM_STR("r")};
    assert_null(dgm_document_add(d, DGM_OBJECT_TASK));
    assert_null(dgm_document_object(d, 0));
    char *agui = encode(d, DGM_FORMAT_AG_UI);
    dgm_document *again = decode(agui, strlen(agui), DGM_FORMAT_NONE, DGM_FORMAT_AG_UI);
    assert_int_equal(dgm_document_count(again), 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(dgm_document_agui(again, i)->type, dgm_document_agui(d, i)->type);
    check_str(dgm_document_agui(again, 2)->delta, "Hi");
    assert_true(
        dgm_json_is_equal(dgm_document_agui(again, 4)->value, dgm_document_agui(d, 4)->value));
    char *twice = encode(again, DGM_FORMAT_AG_UI);
    assert_string_equal(twice, agui);
    for (size_t i = 0; i < dgm_format_count(); i++)
        dgm_free(encode(d, dgm_format_at(i)->id));
    dgm_free(twice);
    dgm_free(agui);
    dgm_document_free(again);
    dgm_document_free(d);
}

static void members_without_a_field_are_in_others(void **state)
{
    static const char text[] =
        "{\"type\":\"STATE_DELTA\",\"delta\":[{\"op\":\"remove\",\"path\":\"/a\"}]}\n"
        "{\"type\":\"RUN_ERROR\",\"message\":\"no\",\"code\":\"x\"}\n";
    dgm_document *d = decode(text, sizeof text - 1, DGM_FORMAT_AG_UI, DGM_FORMAT_AG_UI);
    const dgm_agui_event *e = NULL;
    (void)state;
    for (size_t i = 0; i < dgm_document_count(d); i++) {
        if (dgm_document_agui(d, i)->type == DGM_AGUI_STATE_DELTA)
            e = dgm_document_agui(d, i);
    }
    assert_non_null(e);
    assert_null(e->delta.p);
    assert_int_equal(dgm_json_kind_of(dgm_json_member(e->others, "delta")), DGM_JSON_KIND_ARRAY);
    dgm_document_free(d);
}

/* ---- wrong arguments -------------------------------------------------------------------------------- */

static void check_invalid(const dgm_document *d, dgm_format_id to, const char *at)
{
    const dgm_convert_options o = {.size = sizeof o, .to = to};
    dgm_err err = {0};
    char *text = NULL;
    check_fails(dgm_document_encode(d, &o, &text, NULL, &err), DGM_BAD_PARAMS, err, at);
    assert_null(text);
}

static void invalid_structs_are_errors(void **state)
{
    dgm_document *d = dgm_document_new();
    dgm_task *t = dgm_document_add(d, DGM_OBJECT_TASK);
    (void)state;
    for (int i = 0; i < 2; i++) {
        const dgm_format_id to = i ? DGM_FORMAT_CHAT : DGM_FORMAT_A2A_03;
        fill(d, DGM_OBJECT_TASK, t);
        t->status.state = (dgm_task_state)99;
        check_invalid(d, to, "/status/state");
        fill(d, DGM_OBJECT_TASK, t);
        t->history.at[0].role = (dgm_role)-1;
        check_invalid(d, to, "/status/message/role");
        fill(d, DGM_OBJECT_TASK, t);
        t->artifacts.at[0].parts.at[2].kind = (dgm_part_kind)77;
        check_invalid(d, to, "/artifacts/0/parts/2");
        fill(d, DGM_OBJECT_TASK, t);
        t->id = DGM_STR("\xff\xfe");
        check_invalid(d, to, "");
    }
    dgm_document_free(d);

    d = dgm_document_new();
    dgm_event *e = dgm_document_add(d, DGM_OBJECT_STREAM_RESPONSE);
    check_invalid(d, DGM_FORMAT_A2A_10, "");
    e->kind = DGM_EVENT_TASK; /* without a task */
    check_invalid(d, DGM_FORMAT_A2A_10, "");
    e->kind = (dgm_event_kind)50;
    check_invalid(d, DGM_FORMAT_AG_UI, "");
    dgm_document_free(d);

    d = dgm_document_new();
    dgm_document_add(d, DGM_OBJECT_MESSAGE); /* empty: the decoder finds what is missing */
    const dgm_convert_options o = {.size = sizeof o, .to = DGM_FORMAT_A2A_10};
    char *text = NULL;
    assert_int_not_equal(dgm_document_encode(d, &o, &text, NULL, NULL), DGM_OK);
    dgm_document_free(d);

    d = dgm_document_new();
    dgm_document_add_agui(d)->type = (dgm_agui_type)99;
    check_invalid(d, DGM_FORMAT_CHAT, "/type");
    dgm_document_free(d);
}

static void missing_and_unknown_arguments_are_errors(void **state)
{
    dgm_convert_options o = {.size = sizeof o, .to = DGM_FORMAT_A2A_10};
    dgm_convert_options none = {0};
    dgm_lint_options lint = {.size = sizeof lint, .from = (dgm_format_id)99};
    dgm_document *d = dgm_document_new();
    dgm_converter *c = NULL;
    dgm_linter *l = NULL;
    dgm_openai_messages chat;
    dgm_message m = {0};
    char *text = NULL;
    (void)state;
    assert_null(dgm_document_add(d, DGM_OBJECT_NONE));
    assert_null(dgm_document_add(d, DGM_OBJECT_EMPTY));
    assert_null(dgm_document_add(d, (dgm_object_kind)1000));
    assert_null(dgm_document_add(d, (dgm_object_kind)-1));
    assert_null(dgm_document_add(NULL, DGM_OBJECT_TASK));
    assert_null(dgm_document_add_agui(NULL));
    assert_null(dgm_document_alloc(NULL, 1));
    assert_null(dgm_document_object(d, 0));
    assert_null(dgm_document_agui(NULL, 0));
    assert_int_equal(dgm_document_kind(NULL, 0), DGM_OBJECT_NONE);
    assert_int_equal(dgm_document_count(NULL), 0);
    dgm_document_free(NULL);
    assert_int_equal(dgm_document_encode(d, &o, &text, NULL, NULL), DGM_BAD_PARAMS); /* empty */
    assert_int_equal(dgm_document_encode(NULL, &o, &text, NULL, NULL), DGM_BAD_PARAMS);
    assert_int_equal(dgm_document_encode(d, NULL, &text, NULL, NULL), DGM_BAD_REQUEST);
    assert_int_equal(dgm_document_encode(d, &none, &text, NULL, NULL), DGM_BAD_REQUEST);
    assert_int_equal(dgm_document_decode(&o, "{}", 2, NULL, NULL), DGM_BAD_PARAMS);
    assert_int_equal(dgm_document_decode(&none, "{}", 2, &d, NULL), DGM_BAD_REQUEST);
    assert_int_equal(dgm_convert(NULL, "", 0, &text, NULL, NULL), DGM_BAD_REQUEST);
    assert_int_equal(dgm_convert(&o, "", 0, NULL, NULL, NULL), DGM_BAD_PARAMS);
    assert_int_equal(dgm_converter_new(&none, &c, NULL), DGM_BAD_REQUEST);
    assert_int_equal(dgm_converter_new(&o, NULL, NULL), DGM_BAD_PARAMS);
    for (int i = 0; i < 5; i++) {
        dgm_convert_options wrong = o;
        if (i == 0)
            wrong.from = (dgm_format_id)99;
        if (i == 1)
            wrong.framing = (dgm_framing)9;
        if (i == 2)
            wrong.as = (dgm_form)-1;
        if (i == 3)
            wrong.compact = (dgm_compaction)9;
        if (i == 4)
            wrong.object = (dgm_object_kind)99;
        assert_int_equal(dgm_converter_new(&wrong, &c, NULL), DGM_BAD_REQUEST);
    }
    assert_null(c);
    assert_int_equal(dgm_converter_feed(NULL, "", 0, NULL), DGM_BAD_PARAMS);
    assert_int_equal(dgm_converter_feed_all(NULL, "", 0, NULL), DGM_BAD_PARAMS);
    assert_int_equal(dgm_converter_end(NULL, NULL), DGM_BAD_PARAMS);
    assert_int_equal(dgm_converter_output(NULL).n, 0);
    dgm_converter_consume(NULL, 1);
    assert_int_equal(dgm_converter_loss_count(NULL), 0);
    assert_null(dgm_converter_loss_at(NULL, 0));
    assert_int_equal(dgm_converter_feed_object(NULL, DGM_OBJECT_TASK, &m, NULL), DGM_BAD_PARAMS);
    assert_int_equal(dgm_converter_feed_agui(NULL, NULL, NULL), DGM_BAD_PARAMS);
    assert_int_equal(dgm_converter_new(&o, &c, NULL), DGM_OK);
    assert_int_equal(dgm_converter_feed(c, NULL, 1, NULL), DGM_BAD_PARAMS);
    assert_int_equal(dgm_converter_feed_object(c, DGM_OBJECT_MESSAGE, &m, NULL), DGM_BAD_REQUEST);
    dgm_converter_consume(c, 100);
    dgm_converter_free(c);
    assert_int_equal(dgm_converter_new_json(NULL, 1, &c, NULL), DGM_BAD_PARAMS);
    assert_int_equal(dgm_message_to_openai(NULL, &chat, NULL), DGM_BAD_PARAMS);
    assert_int_equal(dgm_message_to_agui_event(NULL, DGM_EVENTS_SIMPLE, &text, NULL, NULL),
                     DGM_BAD_PARAMS);
    dgm_openai_messages_done(NULL);
    assert_int_equal(dgm_compact_events(NULL, 1, &text, NULL, NULL), DGM_BAD_PARAMS);
    assert_int_equal(dgm_convert_agui_event_to_openai_chat("[]", 2, NULL, NULL, NULL),
                     DGM_BAD_PARAMS);
    assert_int_equal(dgm_convert_a2a_message_to_openai(NULL, 1, &text, NULL, NULL), DGM_BAD_PARAMS);
    assert_int_equal(
        dgm_convert_a2a_message_to_agui_event(NULL, 1, DGM_EVENTS_SIMPLE, &text, NULL, NULL),
        DGM_BAD_PARAMS);
    assert_int_equal(dgm_linter_new(&lint, &l, NULL), DGM_BAD_REQUEST);
    assert_int_equal(dgm_linter_new(NULL, &l, NULL), DGM_BAD_REQUEST);
    dgm_linter_feed(NULL, "", 0);
    dgm_linter_end(NULL);
    assert_int_equal(dgm_linter_count(NULL, DGM_SEVERITY_ERROR), 0);
    assert_string_equal(dgm_severity_name((dgm_severity)9), "");
    assert_null(dgm_lint_rule_at(dgm_lint_rule_count()));
    assert_string_equal(dgm_object_kind_name((dgm_object_kind)-5), "");
    assert_string_equal(dgm_format_id_name((dgm_format_id)-5), "");
    assert_int_equal(dgm_format_id_by_name(NULL), DGM_FORMAT_NONE);
    assert_string_equal(dgm_agui_type_name((dgm_agui_type)-5), "");
    assert_false(dgm_state_is_terminal((dgm_task_state)99) ||
                 dgm_state_is_interrupted((dgm_task_state)-1) ||
                 dgm_state_is_final_03((dgm_task_state)9) ||
                 dgm_state_may_become((dgm_task_state)99, (dgm_task_state)-1));
    dgm_document_free(d);
}

/* A program that was built with an older or a newer header. */
static void options_of_another_size_are_read(void **state)
{
    struct {
        dgm_convert_options o;
        char added[16];
    } newer = {.o = {.size = sizeof newer, .to = DGM_FORMAT_A2A_10}};
    dgm_convert_options older = {
        .size = offsetof(dgm_convert_options, seed), .to = DGM_FORMAT_A2A_10, .losses = true};
    dgm_converter *c = NULL;
    (void)state;
    assert_int_equal(dgm_converter_new(&newer.o, &c, NULL), DGM_OK);
    dgm_converter_free(c);
    newer.added[3] = 1;
    assert_int_equal(dgm_converter_new(&newer.o, &c, NULL), DGM_BAD_REQUEST);
    assert_int_equal(dgm_converter_new(&older, &c, NULL), DGM_OK);
    dgm_converter_free(c);
}

DGM_TEST_MAIN(dgm_test(built_objects_come_back_from_every_dialect),
              dgm_test(built_objects_are_encoded_as_convert_would),
              dgm_test(several_objects_are_a_stream),
              dgm_test(other_formats_are_decoded_as_a2a_objects),
              dgm_test(unknown_members_and_envelopes_stay),
              dgm_test(events_are_built_encoded_and_decoded),
              dgm_test(members_without_a_field_are_in_others), dgm_test(invalid_structs_are_errors),
              dgm_test(missing_and_unknown_arguments_are_errors),
              dgm_test(options_of_another_size_are_read))
