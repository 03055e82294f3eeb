/*
 * test_functions_paths.c - map, reduce, map gives what document 001's direct function gives, on every
 * complete message; and of a broken one both say the same.
 */
#include "base/err.h"
#include "base/mint.h"
#include "lib/test_paths.h"
#include "support/check.h"

#include <dragoman/dragoman.h>

/* What a history has of the message: tool messages first, unless it makes calls itself. */
static void put_history(dgm_buf *b, const dgm_openai_messages *m)
{
    bool calls = m->openai_message && strstr(m->openai_message, "\"tool_calls\":[{");
    const char *comma = "";
    dgm_buf_add_char(b, '[');
    if (calls) {
        dgm_buf_printf(b, "%s", m->openai_message);
        comma = ",";
    }
    for (size_t i = 0; i < m->n_tool_messages; i++) {
        dgm_buf_printf(b, "%s%s", comma, m->tool_messages[i]);
        comma = ",";
    }
    if (m->openai_message && !calls)
        dgm_buf_printf(b, "%s%s", comma, m->openai_message);
    dgm_buf_add_char(b, ']');
}

static dgm_code long_path(dgm_str in, char **ret, dgm_err *err)
{
    char *events = NULL, *compact = NULL;
    size_t n = 0;
    dgm_code rc =
        dgm_convert_a2a_message_to_agui_event(in.p, in.n, DGM_EVENTS_SIMPLE, &events, &n, err);
    if (!rc && events)
        rc = dgm_compact_events(events, n, &compact, &n, err);
    if (!rc && compact)
        rc = dgm_convert_agui_event_to_openai_chat(compact, n, ret, &n, err);
    dgm_free(events);
    dgm_free(compact);
    return rc;
}

static dgm_code short_path(dgm_str in, dgm_openai_messages *ret, dgm_err *err)
{
    dgm_document *d = NULL;
    const dgm_convert_options o = {
        .size = sizeof o, .from = DGM_FORMAT_A2A_10, .object = DGM_OBJECT_MESSAGE};
    dgm_code rc = dgm_document_decode(&o, in.p, in.n, &d, err);
    if (!rc)
        rc = dgm_message_to_openai(dgm_document_object(d, 0), ret, err);
    dgm_document_free(d);
    return rc;
}

static void both_paths_agree(void **state)
{
    size_t complete = 0, broken = 0, chunks = 0;
    (void)state;
    for (size_t i = 0; i < 20000; i++) {
        dgm_err err = {0}, long_err = {0};
        dgm_openai_messages direct = {0};
        char *got = NULL;
        dgm_buf b, want;
        seed = i;
        dgm_buf_init(&b, SIZE_MAX);
        dgm_buf_init(&want, SIZE_MAX);
        put_message(&b);
        dgm_code rc = short_path(dgm_buf_str(&b), &direct, &err);
        dgm_code long_rc = long_path(dgm_buf_str(&b), &got, &long_err);
        if (rc) {
            assert_int_equal(rc, long_rc);
            assert_string_equal(err.at, long_err.at);
            broken++;
        } else if (!direct.openai_message && !direct.n_tool_messages) {
            chunks++; /* an intermediate message: the direct function takes complete ones */
        } else {
            check_ok(long_rc, long_err);
            put_history(&want, &direct);
            if (!got || strlen(got) != want.n || memcmp(got, want.p, want.n) != 0)
                print_error("%.*s\n", (int)b.n, b.p);
            assert_non_null(got);
            check_bytes_(got, strlen(got), want.p, want.n, __FILE__, __LINE__);
            complete++;
        }
        dgm_openai_messages_done(&direct);
        dgm_free(got);
        dgm_buf_done(&b);
        dgm_buf_done(&want);
    }
    assert_true(complete > 1000 && broken > 1000 && chunks > 100);
}

DGM_TEST_MAIN(dgm_test_holds(both_paths_agree, "R001-01 R000-28 R000-29 R000-33"))
