/*
 * fuzz_sse.c - events must not depend on how the bytes were cut, and what is written must read back.
 * The first byte of the input says how to cut the rest.
 */
#include "base/err.h"
#include "fuzz/fuzz.h"
#include "wire/sse/sse.h"

#include <stdlib.h>

static void drain(dgm_sse *s, dgm_buf *out, dgm_buf *again)
{
    dgm_sse_event e;
    dgm_err err = {0};
    dgm_code rc;
    while ((rc = dgm_sse_next(s, &e, &err)) == DGM_OK && e.data.p) {
        dgm_buf_printf(out, "%zu %zu %zu %zu %zu ", e.line, e.column, e.id.n, e.event.n, e.data.n);
        dgm_buf_add_str(out, e.id);
        dgm_buf_add_str(out, e.event);
        dgm_buf_add_str(out, e.data);
        if (again)
            dgm_sse_put(again, e.id, e.event, e.data);
    }
    if (rc)
        dgm_buf_printf(out, "%s at %zu", err.msg, err.line);
}

/* step 0: in one piece; else in pieces of changing size */
static dgm_buf read_all(const char *p, size_t n, unsigned step, dgm_buf *again)
{
    dgm_sse s;
    dgm_buf out;
    dgm_buf_init(&out, SIZE_MAX);
    dgm_sse_init(&s);
    for (size_t at = 0, k = 0; at < n && !s.fault; at += k) {
        k = step ? (at * 7 + step) % (step + 3) : n;
        k = k + 1 > n - at ? n - at : k + 1;
        char *copy = malloc(k); /* so that ASan sees what is used too long */
        if (!copy)
            abort();
        memcpy(copy, p + at, k);
        dgm_sse_feed(&s, copy, k);
        drain(&s, &out, again);
        free(copy);
    }
    if (!s.fault) {
        dgm_sse_end(&s);
        drain(&s, &out, again);
    }
    dgm_sse_done(&s);
    return out;
}

static void put_text(dgm_buf *out, dgm_str s)
{
    if (s.p) {
        dgm_buf_printf(out, "%zu ", s.n);
        dgm_buf_add_str(out, s);
    } else {
        dgm_buf_add_char(out, '-');
    }
}

/* Without the places, which writing changes: data alone, counted and in order. */
static dgm_buf texts(const char *p, size_t n)
{
    dgm_sse s;
    dgm_sse_event e;
    dgm_buf out;
    dgm_buf_init(&out, SIZE_MAX);
    dgm_sse_init(&s);
    dgm_sse_feed(&s, p, n);
    dgm_sse_end(&s);
    while (dgm_sse_next(&s, &e, NULL) == DGM_OK && e.data.p) {
        put_text(&out, e.id);
        put_text(&out, e.event);
        put_text(&out, e.data);
    }
    dgm_sse_done(&s);
    return out;
}

static void must_be_same(dgm_buf a, dgm_buf b)
{
    if (!dgm_str_eq(dgm_buf_str(&a), dgm_buf_str(&b)))
        abort();
    dgm_buf_done(&a);
    dgm_buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    const char *p = (const char *)data + 1;
    size_t n = size - 1;
    dgm_buf again;
    dgm_buf_init(&again, SIZE_MAX);
    must_be_same(read_all(p, n, 0, &again), read_all(p, n, 1 + data[0], NULL));
    must_be_same(texts(p, n), texts(dgm_buf_str(&again).p, again.n));
    dgm_buf_done(&again);
    return 0;
}
