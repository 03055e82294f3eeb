/* test_text_streams.c - the rows of support/text_streams.h as canonical events. */
#include "canon/events_to_messages.h"
#include "canon/message_content.h"
#include "canon/records_to_events.h"
#include "support/check.h"
#include "support/text_streams.h"

struct reader {
    dgm_canon_fold *fold;
    bool taken_back;
};

static dgm_code on_event(void *arg, const dgm_canon_event *e)
{
    struct reader *r = arg;
    r->taken_back |= e->kind == DGM_CANON_MESSAGES_SNAPSHOT;
    dgm_canon_fold_add(r->fold, e);
    return DGM_OK;
}

static void feed(dgm_records_to_events *f, struct reader *r, dgm_task_state state, dgm_str id,
                 dgm_str text, const char *type)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_member mark = {DGM_STR("canonical_type"),
                       type ? dgm_json_make_string(a, dgm_str_from(type)) : NULL};
    dgm_part part = {.kind = DGM_PART_TEXT, .content = text};
    dgm_message m = {.message_id = id,
                     .role = DGM_ROLE_AGENT,
                     .parts = {&part, 1},
                     .metadata = type ? dgm_json_object(a, &mark, 1) : NULL};
    dgm_status_update u = {.task_id = DGM_STR("t"),
                           .context_id = DGM_STR("c"),
                           .status = {.state = state, .message = text.p ? &m : NULL}};
    dgm_event event = {.kind = DGM_EVENT_STATUS, .status = &u};
    dgm_err err = {0};
    check_ok(dgm_records_to_events_feed(f, &event, (dgm_canon_sink){on_event, r}, &err), err);
}

static void the_stream_adds_up(void **state)
{
    const struct text_stream *row = *state;
    const dgm_records_params params = {.whole_snapshots = true};
    dgm_auto(dgm_records_to_events_free) dgm_records_to_events *f =
        dgm_records_to_events_new(&params);
    dgm_auto(dgm_canon_fold_free) dgm_canon_fold *fold = dgm_canon_fold_new(SIZE_MAX / 2);
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct reader r = {.fold = fold};
    const char *at = row->pieces;
    dgm_str id, text, final = dgm_str_from(row->final);
    dgm_buf all;
    bool end;
    while (text_stream_next(&at, &end, &id, &text))
        feed(f, &r, DGM_STATE_WORKING, id, text,
             end ? "TextMessageEndEvent" : "TextMessageChunkEvent");
    feed(f, &r, DGM_STATE_COMPLETED, DGM_STR("final"), final.n ? final : (dgm_str){0}, NULL);
    dgm_canon_messages list = dgm_canon_fold_messages(fold, a);
    dgm_buf_init(&all, SIZE_MAX);
    for (size_t i = 0; i < list.n; i++) {
        if (all.n)
            dgm_buf_add_lit(&all, "\n\n");
        dgm_buf_add_str(&all, list.at[i].content.text);
    }
    check_str(all, row->answer);
    assert_int_equal(r.taken_back, !row->streamable);
    dgm_buf_done(&all);
}

int main(void)
{
    struct CMUnitTest tests[N_TEXT_STREAMS];
    static char names[N_TEXT_STREAMS][120];
    for (size_t i = 0; i < N_TEXT_STREAMS; i++) {
        snprintf(names[i], sizeof names[i], "%s [R000-40]", text_streams[i].name);
        tests[i] = (struct CMUnitTest){names[i], the_stream_adds_up, NULL, NULL,
                                       (void *)(uintptr_t)&text_streams[i]};
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
