/*
 * lint/test_lint.c - tests that vectors cannot express: limits, several streams, options, memory for repeated texts.
 * The rules themselves are in tests/lint.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "support/check.h"

#include <dragoman/lint.h>
#include <stdio.h>

struct heard {
    size_t n;
    char last[100]; /* rule of the last finding */
    char all[2000];
};

static void count_finding(void *arg, const dgm_finding *f)
{
    struct heard *h = arg;
    size_t used = strlen(h->all);
    h->n++;
    snprintf(h->last, sizeof h->last, "%s", f->rule->id);
    snprintf(h->all + used, sizeof h->all - used, "%s%s", used ? " " : "", f->rule->id);
}

static dgm_linter *begin(struct heard *h, const char *from)
{
    dgm_lint_options o = {.size = sizeof o,
                          .from = dgm_format_id_by_name(from),
                          .on_finding = count_finding,
                          .arg = h};
    dgm_linter *l;
    *h = (struct heard){.n = 0};
    assert_int_equal(dgm_linter_new(&o, &l, NULL), DGM_OK);
    return l;
}

static void feed(dgm_linter *l, const char *text)
{
    dgm_linter_feed(l, text, strlen(text));
}

static void lint(struct heard *h, const char *text)
{
    dgm_linter *l = begin(h, NULL);
    feed(l, text);
    dgm_linter_end(l);
    dgm_linter_free(l);
}

#define IDS(t) "\"taskId\":\"" t "\",\"contextId\":\"c\""
#define TASK(t)                                                                                    \
    "{\"task\":{\"id\":\"" t                                                                       \
    "\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_WORKING\"}}}\n"
#define DONE(t) "{\"statusUpdate\":{" IDS(t) ",\"status\":{\"state\":\"TASK_STATE_COMPLETED\"}}}\n"

/* ---- options ------------------------------------------------------------------------------------------------- */

static void a_format_that_lint_does_not_know_is_refused(void **state)
{
    dgm_lint_options o = {.size = sizeof o, .from = DGM_FORMAT_CHAT};
    dgm_linter *l = NULL;
    dgm_err err = {0};
    (void)state;
    assert_int_equal(dgm_linter_new(&o, &l, &err), DGM_BAD_REQUEST);
    assert_non_null(strstr(err.msg, "openai-chat"));
    assert_null(l);
    dgm_linter_free(NULL);
}

static void the_callback_is_optional(void **state)
{
    dgm_lint_options o = {.size = sizeof o, .from = DGM_FORMAT_NONE};
    dgm_linter *l;
    (void)state;
    assert_int_equal(dgm_linter_new(&o, &l, NULL), DGM_OK);
    feed(l, DONE("t") DONE("u"));
    dgm_linter_end(l);
    assert_int_equal(dgm_linter_count(l, DGM_SEVERITY_ERROR),
                     3); /* first event, id, after the end */
    dgm_linter_free(l);
}

static void a_linter_that_gave_up_reports_nothing_more(void **state)
{
    struct heard h;
    dgm_linter *l = begin(&h, NULL);
    (void)state;
    feed(l, TASK("t") "{\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n{\"task");
    dgm_linter_free(l);
    assert_int_equal(h.n, 0);
}

/* ---- streams --------------------------------------------------------------------------------------------------- */

static void several_streams_in_a_row_are_several(void **state)
{
    struct heard h;
    (void)state;
    lint(&h, TASK("t") DONE("t") TASK("u") DONE("u"));
    assert_string_equal(h.all, "");
    lint(&h, TASK("t") TASK("u") DONE("u"));
    assert_string_equal(h.all, "changing-ids second-task changing-ids");
    /* a request begins the next, too */
    lint(
        &h,
        TASK(
            "t") "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{\"message\":"
                 "{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"x\"}]}}}"
                 "\n" TASK("u") DONE("u"));
    assert_string_equal(h.all, "missing-final");
}

static void an_error_ends_a_stream(void **state)
{
    struct heard h;
    (void)state;
    lint(&h, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" TASK(
                 "t") "data: }\n\n"
                      "data: "
                      "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":"
                      "\"broken\"}}\n\n");
    assert_string_equal(h.all, "");
}

static void one_value_alone_has_no_order(void **state)
{
    struct heard h;
    (void)state;
    lint(&h, "{\"statusUpdate\":{" IDS("t") ",\"status\":{\"state\":\"TASK_STATE_WORKING\"}}}");
    assert_string_equal(h.all, "");
    lint(&h, "{\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"m\"}");
    assert_string_equal(h.all, "");
}

static void store_place(void *arg, const dgm_finding *f)
{
    char *all = arg;
    size_t n = strlen(all);
    snprintf(all + n, 200 - n, "%zu:%zu%s ", f->line, f->column, f->at);
}

static void places_in_an_array_are_those_of_the_text(void **state)
{
    static const char text[] =
        "[ {\"a_b\":1,\"url\":\"u\",\"taskId\":\"t\"},\n\n{\"url\":\"u\",\"taskId\":\"[,\"},"
        " {\"url\":\"u\",\n \"taskId\":null, \"token\":\"x\"}\n, 7 ]\n";
    char all[200] = "";
    dgm_lint_options o = {
        .size = sizeof o, .from = DGM_FORMAT_A2A_10, .on_finding = store_place, .arg = all};
    dgm_linter *l;
    (void)state;
    assert_int_equal(dgm_linter_new(&o, &l, NULL), DGM_OK);
    feed(l, text);
    dgm_linter_end(l);
    assert_string_equal(all, "1:10/0/a_b 4:11/2/taskId 5:3/3 ");
    dgm_linter_free(l);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static void put_chunk(dgm_linter *l, size_t artifact, bool append)
{
    char text[300];
    snprintf(
        text, sizeof text,
        "{\"artifactUpdate\":{" IDS("t") ",\"append\":%s,\"artifact\":{\"artifactId\":\"a-%zu\","
                                         "\"parts\":[{\"data\":%zu}]}}}\n",
        append ? "true" : "false", artifact, artifact);
    feed(l, text);
}

static void lint_items_is_a_limit(void **state)
{
    struct heard h;
    dgm_linter *l = begin(&h, NULL);
    (void)state;
    feed(l, TASK("t"));
    for (size_t i = 0; i < DGM_MAX_LINT_ITEMS; i++)
        put_chunk(l, i, false);
    put_chunk(l, DGM_MAX_LINT_ITEMS + 7, true);
    assert_string_equal(h.all, "unknown-artifact-append");
    put_chunk(l, DGM_MAX_LINT_ITEMS,
              false); /* one too many: from now on an artifact may be one of those */
    put_chunk(l, DGM_MAX_LINT_ITEMS + 8, true);
    put_chunk(l, 0, true);
    assert_int_equal(h.n, 1);
    dgm_linter_free(l);
}

static void lint_findings_is_a_limit(void **state)
{
    enum { MORE = DGM_MAX_LINT_FINDINGS + 1 };
    struct heard h;
    char text[2000] = "{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"x\"}]";
    (void)state;
    for (size_t i = 0; i < MORE; i++) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, ",\"a_%zu\":%zu", i, i);
    }
    strcat(text, "}\n");
    lint(&h, text);
    assert_int_equal(h.n, DGM_MAX_LINT_FINDINGS);
    size_t n = strlen(text);
    memcpy(text + n, text, n); /* of each value */
    text[2 * n] = 0;
    lint(&h, text);
    assert_int_equal(h.n, 2 * DGM_MAX_LINT_FINDINGS);
}

static void put_text(dgm_linter *l, size_t artifact, size_t text)
{
    char line[300];
    snprintf(line, sizeof line,
             "{\"artifactUpdate\":{" IDS("t") ",\"artifact\":{\"artifactId\":\"a-%zu\","
                                              "\"parts\":[{\"text\":\"the text number %zu\"}]}}}\n",
             artifact, text);
    feed(l, line);
}

static void lint_texts_is_a_limit(void **state)
{
    struct heard h;
    dgm_linter *l = begin(&h, NULL);
    (void)state;
    feed(l, TASK("t"));
    for (size_t i = 0; i < DGM_MAX_LINT_TEXTS; i++)
        put_text(l, i, i);
    put_text(l, 1000, 1); /* the last that is still known beside it */
    assert_string_equal(h.all, "final-text-twice");
    put_text(l, 1001, 0); /* forgotten */
    assert_int_equal(h.n, 1);
    dgm_linter_free(l);
}

static void a_value_over_the_limit_is_reported_and_ends_the_check(void **state)
{
    struct heard h;
    dgm_linter *l = begin(&h, NULL);
    char piece[1 << 16];
    (void)state;
    memset(piece, 'x', sizeof piece);
    feed(l, TASK("t") "{\"task\":\"");
    for (size_t n = 0; n <= DGM_MAX_RECORD_BYTES; n += sizeof piece)
        dgm_linter_feed(l, piece, sizeof piece);
    feed(l, "\"}\n" TASK("t"));
    dgm_linter_end(l);
    assert_string_equal(h.all, "limit missing-final");
    dgm_linter_free(l);
}

static void ids_of_any_length_are_held_against_each_other_or_not_at_all(void **state)
{
    struct heard h;
    char id[2 * DGM_MAX_ID_BYTES], text[3 * DGM_MAX_ID_BYTES];
    (void)state;
    for (size_t n = DGM_MAX_ID_BYTES; n <= DGM_MAX_ID_BYTES + 1; n++) {
        dgm_linter *l = begin(&h, NULL);
        memset(id, 'x', n);
        id[n] = 0;
        snprintf(text, sizeof text,
                 "{\"task\":{\"id\":\"%s\",\"status\":{\"state\":\"TASK_STATE_WORKING\"}}}\n", id);
        feed(l, text);
        feed(l, DONE("t"));
        dgm_linter_end(l);
        assert_string_equal(h.all, n == DGM_MAX_ID_BYTES ? "changing-ids" : "");
        dgm_linter_free(l);
    }
}

DGM_TEST_MAIN(dgm_test(a_format_that_lint_does_not_know_is_refused),
              dgm_test(the_callback_is_optional),
              dgm_test(a_linter_that_gave_up_reports_nothing_more),
              dgm_test(several_streams_in_a_row_are_several), dgm_test(an_error_ends_a_stream),
              dgm_test(one_value_alone_has_no_order),
              dgm_test(places_in_an_array_are_those_of_the_text),
              dgm_test(lint_findings_is_a_limit), dgm_test(lint_items_is_a_limit),
              dgm_test(lint_texts_is_a_limit),
              dgm_test(a_value_over_the_limit_is_reported_and_ends_the_check),
              dgm_test(ids_of_any_length_are_held_against_each_other_or_not_at_all))
