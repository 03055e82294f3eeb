/* test_a2a_dialect.c - dgm_a2a_find_dialect() finds what the codecs recognise, and its kind is the one that they detect. */
#include "support/check.h"
#include "wire/a2a/a2a_int.h"

static uint64_t seed;

static size_t dialect_roll(size_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % n;
}
#define PICK(list) ((list)[dialect_roll(sizeof(list) / sizeof *(list))])

/* Members of messages, and now and then one of another object. */
static const char *const members[] = {
    "\"role\":\"user\"",
    "\"role\":\"agent\"",
    "\"role\":\"ROLE_USER\"",
    "\"role\":\"ROLE_AGENT\"",
    "\"role\":\"other\"",
    "\"role\":null",
    "\"parts\":[{\"kind\":\"text\",\"text\":\"a\"}]",
    "\"parts\":[{\"text\":\"a\"}]",
    "\"parts\":[{\"type\":\"text\",\"text\":\"a\"}]",
    "\"parts\":[{\"raw\":\"aGk=\"},{\"kind\":\"text\"}]",
    "\"parts\":[{\"data\":{\"data\":{}}}]",
    "\"parts\":[{\"file\":{\"fileWithUri\":\"u\"}}]",
    "\"parts\":[]",
    "\"parts\":null",
    "\"parts\":{}",
    "\"messageId\":\"m\"",
    "\"messageId\":\"m\"",
    "\"message_id\":\"m\"",
    "\"message_id\":null",
    "\"contextId\":\"c\"",
    "\"context_id\":\"c\"",
    "\"taskId\":\"t\"",
    "\"task_id\":\"t\"",
    "\"metadata\":{\"a\":1}",
    "\"extensions\":[\"u\"]",
    "\"referenceTaskIds\":[\"t\"]",
    "\"kind\":\"message\"",
    "\"kind\":\"message\"",
    "\"kind\":\"task\"",
    "\"kind\":\"internal:x\"",
    "\"kind\":7",
    "\"kind\":null",
};
static const char *const others[] = {
    "\"content\":\"a\"",
    "\"content\":[{\"text\":\"a\"}]",
    "\"status\":{\"state\":\"working\"}",
    "\"id\":\"t\"",
    "\"jsonrpc\":\"2.0\"",
    "\"url\":\"u\"",
    "\"unknown\":1",
    "\"message\":{\"role\":\"user\"}",
    "\"final\":true",
    "\"skills\":[]",
};

static const dgm_codec *best_of(const yyjson_val *v)
{
    const dgm_codec *const codecs[] = {&dgm_codec_a2a_10, &dgm_codec_a2a_03,
                                       &dgm_codec_a2a_03_rest},
                           *found = NULL;
    int best = 0;
    for (size_t i = 0; i < 3; i++) {
        dgm_form form;
        int score = codecs[i]->recognise(v, &form);
        if (score > best) {
            best = score;
            found = codecs[i];
        }
    }
    return found;
}

static void put_object(dgm_buf *b)
{
    size_t n = dialect_roll(6);
    dgm_buf_add_char(b, '{');
    for (size_t i = 0; i < n; i++)
        dgm_buf_printf(b, "%s%s", i ? "," : "", dialect_roll(12) ? PICK(members) : PICK(others));
    dgm_buf_add_char(b, '}');
}

static void the_dialect_is_the_one_that_recognises_best(void **state)
{
    size_t messages = 0;
    (void)state;
    for (size_t i = 0; i < 100000; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        yyjson_val *v = NULL;
        dgm_object_kind kind;
        dgm_buf b;
        seed = i;
        dgm_buf_init(&b, SIZE_MAX);
        put_object(&b);
        assert_int_equal(dgm_json_read(a, dgm_buf_str(&b), SIZE_MAX, "none", &v, NULL), DGM_OK);
        const dgm_codec *found = dgm_a2a_find_dialect(v, &kind);
        if (found != best_of(v))
            print_error("%.*s\n", (int)b.n, b.p);
        assert_ptr_equal(found, best_of(v));
        if (kind) {
            messages++;
            assert_int_equal(kind, DGM_OBJECT_MESSAGE);
            assert_int_equal(dgm_a2a_10_detect(v, false), kind);
            assert_int_equal(dgm_a2a_03_detect(v, false), kind);
            assert_int_equal(dgm_a2a_03_rest_detect(v, false), kind);
        }
        dgm_buf_done(&b);
    }
    assert_true(messages > 1000);
}

DGM_TEST_MAIN(dgm_test(the_dialect_is_the_one_that_recognises_best))
