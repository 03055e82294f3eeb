/*
 * test_form_scan.c - the short way from text to structs (json/shape_scan.c) never says anything but what the
 * long way says: what it takes, that takes too, and both write the same.
 */
#include "model/form.h"
#include "support/check.h"

#define HEAD "{\"artifactUpdate\":{\"taskId\":\"t-1\",\"contextId\":\"c-1\",\"artifact\":{"
#define EVENT(text)                                                                                \
    HEAD "\"artifactId\":\"a\",\"name\":\"answer\",\"parts\":[{\"text\":\"" text                   \
         "\"}]},\"append\":true,\"lastChunk\":false}}"

static bool scan(dgm_arena *a, dgm_str text, dgm_event *ret)
{
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10};
    return dgm_form_scan_chunk(&r, text, ret);
}

static bool read_long(dgm_arena *a, dgm_str text, dgm_event *ret)
{
    dgm_reader r = {
        .arena = a, .format = DGM_FORMAT_A2A_10, .drop_nulls = true, .drop_empties = true};
    yyjson_val *v;
    return !dgm_json_read(a, text, SIZE_MAX, "none", &v, NULL) &&
           !dgm_shape_read(&r, &dgm_form_stream_response, v, NULL, ret);
}

/* The bytes are copied to memory of exactly their length, so that a sanitizer detects a read past them. */
static bool is_taken(const char *bytes, size_t n)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    char *exact = dgm_xmalloc(n);
    memcpy(exact, bytes, n);
    dgm_str text = {exact, n};
    dgm_event quick = {0}, slow = {0};
    bool taken = scan(a, text, &quick);
    if (taken) {
        dgm_buf one, other;
        dgm_writer w = {.out = &one, .format = DGM_FORMAT_A2A_10};
        dgm_buf_init(&one, SIZE_MAX);
        dgm_buf_init(&other, SIZE_MAX);
        if (!read_long(a, text, &slow))
            fail_msg("taken, but nothing that can be read: %.*s", DGM_P(text));
        dgm_shape_write(&w, &dgm_form_stream_response, &quick);
        w.out = &other;
        dgm_shape_write(&w, &dgm_form_stream_response, &slow);
        check_same(one, dgm_buf_str(&other));
        dgm_buf_done(&one);
        dgm_buf_done(&other);
    }
    free(exact);
    return taken;
}

#define TAKEN(text) assert_true(is_taken((text), sizeof(text) - 1))
#define LEFT(text) assert_false(is_taken((text), sizeof(text) - 1))

static void usual_events_are_taken(void **state)
{
    (void)state;
    TAKEN(EVENT("Hello"));
    TAKEN(EVENT("two lines\\nand \\\"quotes\\\" \\\\ \\/ \\b\\f\\r\\t"));
    TAKEN(EVENT("\\n"));
    TAKEN(EVENT("Z\xc3\xbcrich, \xe2\x82\xac, \xf0\x9f\x98\x80 and more than sixteen bytes of it"));
    TAKEN(HEAD "\"artifactId\":\"a\",\"parts\":[{\"text\":\"x\"}]}}}");
    /* another order than the table's */
    TAKEN("{\"artifactUpdate\":{\"append\":true,\"artifact\":{\"parts\":[{\"url\":\"https://e\"}],"
          "\"artifactId\":\"a\"},\"contextId\":\"c\",\"taskId\":\"t\"}}");
    TAKEN(HEAD "\"artifactId\":\"a\",\"parts\":[{\"text\":\"x\",\"mediaType\":\"text/plain\"}]}}}");
}

static void all_else_goes_the_long_way(void **state)
{
    (void)state;
    LEFT("");
    LEFT("}");
    LEFT("{}");
    LEFT("{\"artifactUpdate\":{}}");
    LEFT(EVENT("")); /* what is empty has rules of its own */
    LEFT(EVENT("\\u00e9"));
    LEFT(EVENT("a\nb")); /* no JSON */
    LEFT(EVENT("a\tb"));
    LEFT(EVENT("\\x"));
    LEFT(EVENT("\xc3"));         /* no UTF-8 */
    LEFT(EVENT("\xed\xa0\x80")); /* half of a pair */
    LEFT(EVENT("x") " ");
    LEFT(" " EVENT("x"));
    LEFT(EVENT("x") "}");
    LEFT(HEAD "\"artifactId\":\"a\", \"parts\":[{\"text\":\"x\"}]}}}");
    LEFT(HEAD "\"artifactId\":\"a\",\"parts\":[]}}}");
    LEFT(HEAD "\"artifactId\":\"a\",\"parts\":[{\"text\":\"x\"},{\"text\":\"y\"}]}}}");
    LEFT(HEAD "\"artifactId\":\"a\",\"parts\":[{\"text\":\"x\",\"url\":\"y\"}]}}}");
    LEFT(HEAD "\"artifactId\":\"a\",\"parts\":[{\"mediaType\":\"x\"}]}}}");
    LEFT(HEAD "\"artifactId\":\"a\",\"parts\":[{\"data\":1}]}}}");
    LEFT(HEAD "\"artifactId\":\"a\",\"artifactId\":\"b\",\"parts\":[{\"text\":\"x\"}]}}}");
    LEFT(HEAD "\"parts\":[{\"text\":\"x\"}]}}}"); /* an id is missing */
    LEFT(HEAD "\"artifactId\":null,\"parts\":[{\"text\":\"x\"}]}}}");
    LEFT(HEAD "\"artifactId\":1,\"parts\":[{\"text\":\"x\"}]}}}");
    LEFT(HEAD "\"artifactId\":\"a\",\"unknown\":\"b\",\"parts\":[{\"text\":\"x\"}]}}}");
    LEFT(HEAD "\"artifact_id\":\"a\",\"parts\":[{\"text\":\"x\"}]}}}");
    LEFT(HEAD "\"artifactId\":\"a\",\"parts\":[{\"text\":\"x\"}]},\"metadata\":{}}}");
    LEFT(HEAD "\"artifactId\":\"a\",\"parts\":[{\"text\":\"x\"}]},\"append\":tru}}");
}

static void a_cut_text_is_never_taken(void **state)
{
    static const char text[] = EVENT("two lines\\nand \\\"quotes\\\" }}}} {[, Z\xc3\xbcrich");
    (void)state;
    for (size_t n = 0; n < sizeof text - 1; n++)
        assert_false(is_taken(text, n));
    TAKEN(EVENT("two lines\\nand \\\"quotes\\\" }}}} {[, Z\xc3\xbcrich"));
}

/* One or two bytes changed, dropped or doubled, anywhere. */
static void what_is_taken_of_broken_texts_is_read_the_same(void **state)
{
    static const char usual[] = EVENT("one \\\"two\\\" three\\n Z\xc3\xbcrich \xf0\x9f\x98\x80");
    static const char bytes[] = "\"\\{}[],:tfn u0/\n\t\x01\x7f\x80\xc3\xbc\xf0\xff";
    uint64_t seed = 1;
    size_t n_taken = 0;
    (void)state;
    for (int round = 0; round < 200000; round++) {
        char text[sizeof usual + 4];
        size_t n = sizeof usual - 1;
        memcpy(text, usual, n);
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        for (int change = 0; change <= (int)(seed >> 60 & 1); change++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            size_t at = (size_t)(seed >> 33) % n, what = seed >> 20 & 3;
            if (what == 0) {
                memmove(text + at, text + at + 1, --n - at);
            } else if (what == 1) {
                memmove(text + at + 1, text + at, n++ - at);
            } else {
                text[at] = bytes[(seed >> 24) % (sizeof bytes - 1)];
            }
        }
        n_taken += is_taken(text, n);
    }
    assert_in_range(n_taken, 10000, 190000); /* or this has shown nothing */
}

DGM_TEST_MAIN(dgm_test(usual_events_are_taken), dgm_test(all_else_goes_the_long_way),
              dgm_test(a_cut_text_is_never_taken),
              dgm_test(what_is_taken_of_broken_texts_is_read_the_same))
