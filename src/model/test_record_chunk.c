/* test_record_chunk.c - pieces of text: the short way and the parser read the same, or the short way is not taken. */
#include "model/form.h"
#include "model/record_int.h"
#include "support/check.h"

#define UPDATE(parts, more)                                                                        \
    "{\"artifactUpdate\":{\"taskId\":\"task-1\",\"contextId\":\"c\",\"artifact\":{\"artifactId\":" \
    "\"answer\",\"parts\":[" parts "]}" more "}}"

static const char *const short_ways[] = {
    UPDATE("{\"text\":\"1 \"}", ""),
    UPDATE("{\"text\":\"a longer piece of the text, by far\"}", ",\"append\":true"),
    UPDATE("{\"text\":\"gr\u00fc\u00df \u4f60\u597d \U0001f642\"}",
           ",\"append\":true,\"lastChunk\":true"),
    UPDATE("{\"text\":\"/ \x7f\"}", ",\"lastChunk\":true"),
};

static const char *const long_ways[] = {
    UPDATE("{\"text\":\"\"}", ""),
    UPDATE("{\"text\":\"a\\nb\"}", ""),
    UPDATE("{\"text\":\"a\"},{\"text\":\"b\"}", ""),
    UPDATE("{\"text\":\"a\",\"mediaType\":\"text/plain\"}", ""),
    UPDATE("{\"data\":1}", ""),
    UPDATE("{\"text\":\"a\"}", ",\"append\":false"),
    UPDATE("{\"text\":\"a\"}", ",\"append\":true,\"lastChunk\":false"),
    UPDATE("{\"text\":\"a\"}", ",\"append\":true,\"metadata\":{\"k\":1}"),
    UPDATE("{\"text\":\"a\"}", ",\"append\":true,\"append\":true"),
    UPDATE("{\"text\":\"a\"}", ",\"else\":1"),
    UPDATE("{\"text\":\"a\"}", "") " ",
    UPDATE("{\"text\":\"a\xff\"}", ""),
    UPDATE("{\"text\":\"a\tb\"}", ""),
};

static bool parse(dgm_arena *a, dgm_str bytes, dgm_event *ret)
{
    yyjson_val *root;
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10, .err = &err};
    return !dgm_json_read(a, bytes, SIZE_MAX, "record_bytes", &root, &err) &&
           !dgm_form_read_event(&r, root, NULL, ret);
}

static void same_str(dgm_str a, dgm_str b)
{
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.p, b.p, a.n);
}

/* Where the short way is taken, it gives what the parser gives. */
static bool same_or_not_taken(const char *text, size_t n)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_event got, want;
    char *exact = dgm_xmalloc(n); /* so that reading past its end is seen */
    memcpy(exact, text, n);
    bool taken = dgm_record_chunk((dgm_str){exact, n}, a, &got);
    free(exact);
    if (!taken)
        return false;
    assert_true(parse(a, (dgm_str){text, n}, &want));
    assert_int_equal(got.kind, want.kind);
    assert_null(want.extra);
    const dgm_artifact_update *g = got.artifact, *w = want.artifact;
    same_str(g->task_id, w->task_id);
    same_str(g->context_id, w->context_id);
    same_str(g->artifact.artifact_id, w->artifact.artifact_id);
    assert_int_equal(g->append, w->append);
    assert_int_equal(g->last_chunk, w->last_chunk);
    assert_int_equal(w->artifact.parts.n, 1);
    assert_int_equal(g->artifact.parts.n, 1);
    assert_int_equal(g->artifact.parts.at->kind, w->artifact.parts.at->kind);
    same_str(g->artifact.parts.at->content, w->artifact.parts.at->content);
    assert_true(!w->metadata && !w->extra && !w->artifact.extra && !w->artifact.parts.at->extra);
    return true;
}

static void plain_text_takes_the_short_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof short_ways / sizeof *short_ways; i++)
        assert_true(same_or_not_taken(short_ways[i], strlen(short_ways[i])));
}

static void all_else_is_left_to_the_parser(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof long_ways / sizeof *long_ways; i++)
        assert_false(same_or_not_taken(long_ways[i], strlen(long_ways[i])));
}

/* Every byte replaced, every length: what is damaged is never understood otherwise than by the parser. */
static void damage_is_seen(void **state)
{
    static const char bytes[] = "\"\\{}[],:tx \n\0\x80\xc3\xff";
    (void)state;
    for (size_t i = 0; i < sizeof short_ways / sizeof *short_ways; i++) {
        size_t n = strlen(short_ways[i]);
        char *text = dgm_xmalloc(n);
        for (size_t cut = 0; cut < n; cut++)
            assert_false(same_or_not_taken(short_ways[i], cut));
        for (size_t at = 0; at < n; at++) {
            for (size_t k = 0; k < sizeof bytes - 1; k++) {
                memcpy(text, short_ways[i], n);
                text[at] = bytes[k];
                same_or_not_taken(text, n);
            }
        }
        free(text);
    }
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
        dgm_record_unref(r);
    }
    dgm_buf_done(&scratch);
    dgm_buf_done(&slow);
}

DGM_TEST_MAIN(dgm_test(written_chunks_are_those_of_the_tables),
              dgm_test(plain_text_takes_the_short_way), dgm_test(all_else_is_left_to_the_parser),
              dgm_test(damage_is_seen))
