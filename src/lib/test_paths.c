/*
 * test_paths.c - two paths from an A2A message: document 001's direct function, and canonical events. On every
 * complete message they say the same: text, calls, results, and what is wrong with it.
 */
#include "lib/test_paths.h"
#include "base/limits.h"
#include "canon/message_content.h"
#include "lib/direct.h"
#include "model/form.h"
#include "support/check.h"

static void check_calls(dgm_arena *a, const dgm_content *said, const dgm_chat_message *chat)
{
    assert_int_equal(said->calls.n, chat ? chat->tool_calls.n : 0);
    for (size_t i = 0; chat && i < said->calls.n; i++) {
        check_same(said->calls.at[i].call_id, chat->tool_calls.at[i].id);
        check_same(said->calls.at[i].name, chat->tool_calls.at[i].name);
        dgm_str arguments = dgm_content_arguments(a, said->calls.at[i].arguments);
        check_same(arguments, chat->tool_calls.at[i].arguments);
    }
}

static void check_results(dgm_arena *a, const dgm_content *said, const dgm_chat_messages *tools)
{
    assert_int_equal(said->results.n, tools->n);
    for (size_t i = 0; i < tools->n; i++) {
        dgm_str text = dgm_content_value_text(a, said->results.at[i].output);
        check_same(said->results.at[i].call_id, tools->at[i].tool_call_id);
        check_same(text, tools->at[i].content.text);
    }
}

static void check_content(const dgm_content *said, const dgm_chat_message *chat)
{
    assert_true((said->content.kind == DGM_CANON_CONTENT_ABSENT) == !chat);
    if (!chat)
        return;
    /* Chat has no parts for files at an address: it says them in the text, where canon still has parts. */
    if (said->content.kind == DGM_CANON_CONTENT_TEXT) {
        assert_int_equal(chat->content.kind, DGM_CHAT_CONTENT_TEXT);
        check_same(said->content.text, chat->content.text);
    } else if (chat->content.kind == DGM_CHAT_CONTENT_PARTS) {
        assert_int_equal(said->content.parts.n, chat->content.parts.n);
        for (size_t i = 0; i < said->content.parts.n; i++) {
            if (said->content.parts.at[i].kind == DGM_CANON_PART_TEXT)
                check_same(said->content.parts.at[i].text, chat->content.parts.at[i].text);
        }
    }
    assert_true((said->role == DGM_CANON_ASSISTANT) == (chat->role == DGM_CHAT_ASSISTANT));
}

static void both_paths_agree(void **state)
{
    size_t complete = 0, broken = 0;
    (void)state;
    for (size_t i = 0; i < 20000; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_err err = {0}, direct_err = {0}, said_err = {0};
        dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10, .err = &err};
        dgm_message m = {0};
        dgm_direct_pair pair = {0};
        dgm_content said;
        yyjson_val *v;
        dgm_buf b;
        seed = i;
        dgm_buf_init(&b, SIZE_MAX);
        put_message(&b);
        check_ok(dgm_json_read(a, dgm_buf_str(&b), DGM_MAX_RECORD_BYTES, "", &v, &err), err);
        check_ok(dgm_shape_read(&r, &dgm_form_message, v, NULL, &m), err);
        dgm_code direct = dgm_direct_to_chat(a, &m, NULL, false, &pair, &direct_err);
        dgm_code canon = dgm_content_read(a, &m, false, NULL, &said, &said_err);
        bool chunk = !direct && !pair.openai_message && !pair.tool_messages.n;
        if (direct || (canon && !chunk)) {
            assert_int_equal(direct, canon);
            assert_string_equal(direct_err.at, said_err.at);
            broken++;
        } else if (!canon && !said.delta) {
            check_results(a, &said, &pair.tool_messages);
            check_content(&said, pair.openai_message);
            check_calls(a, &said, pair.openai_message);
            complete++;
        } else {
            assert_true(chunk); /* an intermediate message: no chat message */
        }
        dgm_buf_done(&b);
    }
    assert_true(complete > 1000 && broken > 1000);
}

DGM_TEST_MAIN(dgm_test_holds(both_paths_agree, "R000-22 R000-27 R000-29"))
