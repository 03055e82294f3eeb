/*
 * test_paths_chat.c - a complete message as canonical ones, and through the codec of Chat Completions: the same
 * chat messages that the direct path gives.
 */
#include "base/limits.h"
#include "canon/message_content.h"
#include "lib/direct.h"
#include "lib/test_paths.h"
#include "model/form.h"
#include "support/check.h"
#include "wire/chat/chat_messages.h"

static void put_list(dgm_buf *b, const dgm_chat_messages *list)
{
    dgm_writer w = {.out = b, .format = DGM_FORMAT_CHAT};
    for (size_t i = 0; i < list->n; i++) {
        dgm_chat_write(&w, &list->at[i]);
        dgm_buf_add_char(b, '\n');
    }
}

static dgm_canon_calls calls_of(dgm_arena *a, const dgm_content *said)
{
    dgm_canon_calls calls = {dgm_new_n(a, dgm_canon_call, said->calls.n), said->calls.n};
    for (size_t i = 0; i < said->calls.n; i++) {
        const dgm_content_call *c = &said->calls.at[i];
        calls.at[i] = (dgm_canon_call){
            .id = c->call_id, .name = c->name, .arguments = dgm_content_arguments(a, c->arguments)};
    }
    return calls;
}

/* What it says, as the messages of a history: results first, unless it makes calls itself. */
static dgm_code over_canon(dgm_arena *a, const dgm_message *m, dgm_buf *out, dgm_err *err)
{
    dgm_content said;
    dgm_code rc = dgm_content_read(a, m, false, NULL, &said, err);
    if (rc)
        return rc;
    dgm_canon_messages list = {dgm_new_n(a, dgm_canon_message, said.results.n + 1), 0};
    dgm_canon_message one = {
        .role = said.role, .content = said.content, .tool_calls = calls_of(a, &said)};
    bool says = said.content.kind != DGM_CANON_CONTENT_ABSENT;
    if (said.calls.n)
        list.at[list.n++] = one;
    for (size_t i = 0; i < said.results.n; i++) {
        dgm_str text = dgm_content_value_text(a, said.results.at[i].output);
        list.at[list.n++] =
            (dgm_canon_message){.role = DGM_CANON_TOOL,
                                .tool_call_id = said.results.at[i].call_id,
                                .content = {.kind = DGM_CANON_CONTENT_TEXT, .text = text}};
    }
    if (!said.calls.n && says)
        list.at[list.n++] = one;
    dgm_chat_messages chat = dgm_chat_from_canon(a, &list);
    put_list(out, &chat);
    return DGM_OK;
}

static void both_paths_agree(void **state)
{
    size_t complete = 0;
    (void)state;
    for (size_t i = 0; i < 20000; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_err err = {0}, canon_err = {0};
        dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10, .err = &err};
        dgm_message m = {0};
        dgm_chat_messages direct = {0};
        yyjson_val *v;
        dgm_buf b, want, got;
        seed = i;
        dgm_buf_init(&b, SIZE_MAX);
        dgm_buf_init(&want, SIZE_MAX);
        dgm_buf_init(&got, SIZE_MAX);
        put_message(&b);
        check_ok(dgm_json_read(a, dgm_buf_str(&b), DGM_MAX_RECORD_BYTES, "", &v, &err), err);
        check_ok(dgm_shape_read(&r, &dgm_form_message, v, NULL, &m), err);
        if (!dgm_direct_message_to_chat(a, &m, NULL, false, &direct, &err) && direct.n) {
            check_ok(over_canon(a, &m, &got, &canon_err), canon_err);
            put_list(&want, &direct);
            if (got.n != want.n || memcmp(got.p, want.p, want.n) != 0)
                print_error("%.*s\n", (int)b.n, b.p);
            check_same(got, want);
            complete++;
        }
        dgm_buf_done(&b);
        dgm_buf_done(&want);
        dgm_buf_done(&got);
    }
    assert_true(complete > 1000);
}

DGM_TEST_MAIN(dgm_test_holds(both_paths_agree, "R000-22 R000-27 R000-29"))
