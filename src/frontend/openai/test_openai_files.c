/* frontend/openai/test_openai_files.c - ids of files. */
#include "frontend/openai/openai_files.h"
#include "support/check.h"

#define S(text) DGM_STR(text)

static void ids_lead_back(void **state)
{
    static const struct openai_file files[] = {
        {{"demo", 4}, {"01a1df35-9ede-7004-b6ab-5bb241826128", 36}, {"file-1", 6}, 0},
        {{"a", 1}, {"t", 1}, {"two\nlines, \xc3\xa4 and /+=", 21}, 17},
        {{"", 0}, {"t", 1}, {"x", 1}, 999999},
    };
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct openai_file back = {0};
        dgm_str id = dgm_openai_file_id(a, &files[i]);
        assert_true(dgm_str_starts(id, S("file-")));
        for (size_t k = 0; k < id.n; k++)
            assert_non_null(strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                   "-_",
                                   id.p[k]));
        assert_true(dgm_openai_file_read_id(a, id, &back));
        assert_true(dgm_str_eq(back.agent, files[i].agent));
        assert_true(dgm_str_eq(back.task_id, files[i].task_id));
        assert_true(dgm_str_eq(back.artifact_id, files[i].artifact_id));
        assert_int_equal(back.index, files[i].index);
    }
}

static void invalid_file_ids(void **state)
{
    /* a\nt\n0\n, a\nt\nx\ny, a\nt, a\n\n0\nx, \xff, a\nt\n1234567\nx */
    static const char *const bad[] = {
        "",          "file-",         "file-!",  "file-YQp0CjAK",          "YQp0", "file-YQp0Cngke",
        "file-YQp0", "file-YQoKMAp4", "file-_w", "file-YQp0CjEyMzQ1NjcKeA"};
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct openai_file f;
    char longer[5000] = "file-";
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(dgm_openai_file_read_id(a, dgm_str_from(bad[i]), &f));
    memset(longer + 5, 'A', sizeof longer - 6);
    assert_false(dgm_openai_file_read_id(a, dgm_str_from(longer), &f));
    f = (struct openai_file){S("a"), S("t"), {longer, 4000}, 0};
    assert_null(dgm_openai_file_id(a, &f).p);
}

static void parts_with_bytes_are_counted(void **state)
{
    dgm_part parts[] = {{.kind = DGM_PART_TEXT, .content = S("t")},
                        {.kind = DGM_PART_RAW, .content = S("AAAA")},
                        {.kind = DGM_PART_URL, .content = S("http://x")},
                        {.kind = DGM_PART_RAW, .content = S("BBBB")}};
    dgm_artifact artifacts[] = {{.artifact_id = S("o")},
                                {.artifact_id = S("x"), .parts = {parts, 4}}};
    dgm_task task = {.artifacts = {artifacts, 2}};
    struct openai_file f = {S("a"), S("t"), S("x"), 0};
    (void)state;
    assert_ptr_equal(dgm_openai_file_of(&task, &f), &parts[1]);
    f.index = 1;
    assert_ptr_equal(dgm_openai_file_of(&task, &f), &parts[3]);
    f.index = 2;
    assert_null(dgm_openai_file_of(&task, &f));
    f.artifact_id = S("o");
    assert_null(dgm_openai_file_of(&task, &f));
    f.artifact_id = S("y");
    assert_null(dgm_openai_file_of(&task, &f));
}

static void active_types_are_bytes(void **state)
{
    static const char *const active[] = {
        "text/html",
        "TEXT/HTML; charset=utf-8",
        "application/xhtml+xml",
        "text/javascript",
        "application/x-javascript",
        "Text/ECMAScript",
        "text/jscript",
        "image/svg+xml",
        "IMAGE/SVG+XML",
        "text/xml",
        "application/xml; charset=utf-8",
        "application/rss+xml",
        "text/css",
        "application/wasm",
        "multipart/x-mixed-replace",
        "no type",
        "",
        "text/pl\nain",
    };
    static const char *const passive[] = {
        "image/png",
        "text/plain",
        "text/plain; charset=utf-8",
        "application/pdf",
        "application/json",
        "audio/mpeg",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    };
    (void)state;
    for (size_t i = 0; i < sizeof active / sizeof *active; i++) {
        dgm_str served = dgm_openai_file_type(dgm_str_from(active[i]));
        assert_true(dgm_str_is(served, "application/octet-stream"));
    }
    for (size_t i = 0; i < sizeof passive / sizeof *passive; i++) {
        dgm_str served = dgm_openai_file_type(dgm_str_from(passive[i]));
        assert_true(dgm_str_eq(served, dgm_str_from(passive[i])));
    }
}

DGM_TEST_MAIN(dgm_test(ids_lead_back), dgm_test(invalid_file_ids),
              dgm_test(parts_with_bytes_are_counted), dgm_test(active_types_are_bytes))
