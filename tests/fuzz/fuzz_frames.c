/*
 * fuzz_frames.c - texts must not depend on how the bytes were cut, nor on guesses; and no byte of
 * JSON input may get lost. The first byte of the input says how to cut the rest.
 */
#include "fuzz/fuzz.h"
#include "wire/frames/frames.h"
#include "json/json.h"

#include <stdlib.h>

struct result {
    dgm_buf out;
    uint64_t bytes; /* a sum over the texts, white space left out */
    dgm_frames_kind kind;
    bool failed;
};

static bool is_gap(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\x1e';
}

static uint64_t sum_of(uint64_t sum, dgm_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_gap(s.p[i]))
            sum = sum * 31 + (unsigned char)s.p[i] + 1;
    return sum;
}

static bool parses(dgm_arena *a, dgm_str text)
{
    yyjson_val *v;
    dgm_arena_reset(a);
    return dgm_json_read(a, text, DGM_MAX_RECORD_BYTES, "record_bytes", &v, NULL) != DGM_PARSE;
}

/* guesses: believe them when they parse, as convert does; else never */
static void drain(dgm_frames *f, dgm_arena *a, bool guesses, struct result *r)
{
    dgm_frames_item it;
    dgm_err err = {0};
    dgm_code rc;
    while ((rc = dgm_frames_next(f, &it, &err)) == DGM_OK && it.text.p) {
        if (it.guess && !(guesses && parses(a, it.text))) {
            dgm_frames_retry(f);
            continue;
        }
        dgm_buf_printf(&r->out, "%zu:%zu+%zu %d%d %zu %zu %zu ", it.line, it.column, it.margin,
                       it.alone, it.done, it.sse_id.n, it.sse_event.n, it.text.n);
        dgm_buf_add_str(&r->out, it.text);
        r->bytes = sum_of(r->bytes, it.text);
        if (it.line == 0 || it.column == 0 || it.text.n == 0)
            abort();
    }
    if (rc) {
        dgm_buf_printf(&r->out, "%s at %zu:%zu", err.msg, err.line, err.column);
        r->failed = true;
    }
}

/* step 0: in one piece; else in pieces of changing size */
static struct result read_all(const char *p, size_t n, unsigned step, bool at_once, bool guesses)
{
    struct result r = {0};
    dgm_arena *a = dgm_arena_new();
    dgm_frames f;
    dgm_buf_init(&r.out, SIZE_MAX);
    dgm_frames_init(&f, at_once);
    for (size_t at = 0, k = 0; at < n && !r.failed; at += k) {
        k = step ? (at * 7 + step) % (step + 3) : n;
        k = k + 1 > n - at ? n - at : k + 1;
        char *copy = malloc(k); /* so that ASan sees what is used too long */
        if (!copy)
            abort();
        memcpy(copy, p + at, k);
        dgm_frames_feed(&f, copy, k);
        drain(&f, a, guesses, &r);
        free(copy);
    }
    if (!r.failed) {
        dgm_frames_end(&f);
        drain(&f, a, guesses, &r);
    }
    r.kind = dgm_frames_what(&f);
    dgm_frames_done(&f);
    dgm_arena_free(a);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    dgm_str in = {(const char *)data + 1, size - 1};
    bool at_once = data[0] & 1;
    struct result whole = read_all(in.p, in.n, 0, at_once, false);
    struct result cut = read_all(in.p, in.n, 1 + data[0], at_once, data[0] & 2);
    if (whole.kind != cut.kind || whole.failed != cut.failed ||
        !dgm_str_eq(dgm_buf_str(&whole.out), dgm_buf_str(&cut.out)))
        abort();
    if (dgm_str_starts(in, DGM_STR("\xef\xbb\xbf")))
        in = (dgm_str){in.p + 3, in.n - 3};
    if (whole.kind != DGM_FRAMES_SSE && !whole.failed && whole.bytes != sum_of(0, in))
        abort();
    dgm_buf_done(&whole.out);
    dgm_buf_done(&cut.out);
    return 0;
}
