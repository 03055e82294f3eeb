/*
 * fuzz_http.c - requests must not depend on how the bytes were cut. The first byte of the input says how
 * to cut the rest; requests follow each other as on a connection, until one is refused.
 */
#include "fuzz/fuzz.h"
#include "net/http1.h"

#include <stdlib.h>

static void note(dgm_buf *out, const dgm_http1 *h)
{
    const dgm_http_request *r = &h->request;
    dgm_buf_printf(out, "%.*s %.*s|%.*s|%.*s %d %d %zu\n", DGM_P(r->method), DGM_P(r->target),
                   DGM_P(r->path), DGM_P(r->query), h->keep_alive, h->is_http10, r->body.n);
    for (size_t i = 0; i < r->n_headers; i++)
        dgm_buf_printf(out, "%.*s: %.*s\n", DGM_P(r->headers[i].name), DGM_P(r->headers[i].value));
    dgm_buf_add_str(out, r->body);
}

/* step 0: in one piece; else in pieces of changing size */
static dgm_buf read_all(const char *p, size_t n, unsigned step)
{
    dgm_arena *a = dgm_arena_new();
    dgm_http1 *h = NULL;
    dgm_buf out;
    dgm_buf_init(&out, SIZE_MAX);
    for (size_t at = 0, k = 0; at < n; at += k) {
        k = step ? (at * 7 + step) % (step + 3) : n;
        k = k + 1 > n - at ? n - at : k + 1;
        char *copy = malloc(k); /* so that ASan sees what is used too long */
        if (!copy)
            abort();
        memcpy(copy, p + at, k);
        for (size_t used = 0, took; used < k; used += took) {
            if (!h) {
                h = dgm_new(a, dgm_http1);
                dgm_http1_init(h, a, 5000);
            }
            dgm_http1_step s = dgm_http1_feed(h, copy + used, k - used, &took);
            if (took > k - used ||
                ((s == DGM_HTTP1_MORE || s == DGM_HTTP1_CONTINUE) && took != k - used))
                abort();
            if (s == DGM_HTTP1_REFUSED) {
                /* not with which status: of two faults in one line, a cut decides which is met first */
                dgm_buf_add_lit(&out, "refused");
                at = n;
                break;
            }
            if (s == DGM_HTTP1_REQUEST) {
                bool on = h->keep_alive;
                note(&out, h);
                dgm_arena_reset(a);
                h = NULL;
                if (!on) {
                    at = n;
                    break;
                }
            }
        }
        free(copy);
    }
    dgm_arena_free(a);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const char *p = (const char *)data + 1;
    dgm_buf whole = read_all(p, size - 1, 0);
    dgm_buf cut = read_all(p, size - 1, data[0] + 1u);
    if (whole.n != cut.n || (whole.n && memcmp(whole.p, cut.p, whole.n) != 0))
        abort();
    dgm_buf_done(&whole);
    dgm_buf_done(&cut);
    return 0;
}
