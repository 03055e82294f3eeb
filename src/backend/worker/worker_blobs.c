/* backend/worker/worker_blobs.c - see worker_blobs.h. */
#include "backend/worker/worker_blobs.h"

#include "base/arena.h"
#include "base/limits.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

_Static_assert(sizeof((dgm_worker_blobs *)0)->uploads / sizeof(struct worker_upload) ==
                   DGM_MAX_WORKER_BLOBS,
               "one place each");

struct worker_download {
    dgm_table_node node; /* first; hash: its number */
    dgm_bytes *bytes;
};

/* ---- base64 ---------------------------------------------------------------------------------------------- */

static size_t base64_room(dgm_str base64) /* that decoding writes to */
{
    return base64.n / 4 * 3;
}

/* Standard base64 with padding. out has base64_room(). */
static bool base64_decode(dgm_str base64, char *out, size_t *ret_n)
{
    size_t padding = 0;
    *ret_n = 0;
    if (!base64.n)
        return true;
    while (padding < 2 && base64.n > padding && base64.p[base64.n - 1 - padding] == '=')
        padding++;
    if (base64.n % 4 || memchr(base64.p, '=', base64.n - padding))
        return false;
    int n = EVP_DecodeBlock((unsigned char *)out, (const unsigned char *)base64.p, (int)base64.n);
    *ret_n = base64_room(base64) - padding;
    return n >= 0 && (size_t)n == base64_room(base64); /* it skips white space */
}

static void base64_put(dgm_buf *out, const char *p, size_t n)
{
    if (!dgm_buf_room(out, (n + 2) / 3 * 4 + 1))
        return;
    out->n +=
        (size_t)EVP_EncodeBlock((unsigned char *)out->p + out->n, (const unsigned char *)p, (int)n);
}

/* ---- uploads --------------------------------------------------------------------------------------------- */

static struct worker_upload *upload_find(dgm_worker_blobs *b, dgm_str name)
{
    for (size_t i = 0; i < DGM_MAX_WORKER_BLOBS; i++) {
        struct worker_upload *u = &b->uploads[i];
        if (u->bytes && dgm_str_eq(dgm_str_from(u->name), name))
            return u;
    }
    return NULL;
}

static dgm_code upload_open(dgm_worker_blobs *b, dgm_str name, struct worker_upload **ret_upload,
                            dgm_err *err)
{
    struct worker_upload *u = upload_find(b, name);
    if (!name.n || name.n >= sizeof u->name || memchr(name.p, 0, name.n))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "blob: expected a name of 1 to %zu bytes",
                        sizeof u->name - 1);
    for (size_t i = 0; !u && i < DGM_MAX_WORKER_BLOBS; i++) {
        if (b->uploads[i].bytes)
            continue;
        u = &b->uploads[i];
        u->bytes = dgm_bytes_new(0);
        u->cap = 0;
        memcpy(u->name, name.p, name.n);
        u->name[name.n] = 0;
    }
    if (!u)
        return dgm_fail(err, DGM_TOO_LARGE, NULL,
                        "%d blobs are open: use them in a request or close them first",
                        DGM_MAX_WORKER_BLOBS);
    *ret_upload = u;
    return DGM_OK;
}

static void upload_make_room(struct worker_upload *u, size_t more)
{
    size_t cap = u->bytes->n + more;
    if (cap <= u->cap)
        return;
    if (cap < u->cap * 2)
        cap = u->cap * 2 < DGM_MAX_CHECKPOINT_BYTES + 3 ? u->cap * 2 : DGM_MAX_CHECKPOINT_BYTES + 3;
    u->bytes = dgm_xrealloc(u->bytes, sizeof *u->bytes + cap + 1); /* it has one reference */
    u->cap = cap;
}

dgm_code dgm_worker_blobs_write(dgm_worker_blobs *b, const dgm_json *params, dgm_err *err)
{
    struct worker_upload *u = NULL;
    dgm_str data = dgm_json_str_member(params, "data");
    size_t n;
    dgm_code code = upload_open(b, dgm_json_str_member(params, "blob"), &u, err);
    if (code)
        return code;
    if (!data.p)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "data: expected base64 text");
    if (u->bytes->n + base64_room(data) > DGM_MAX_CHECKPOINT_BYTES + 2)
        return dgm_fail(err, DGM_TOO_LARGE, NULL,
                        "blob %s: more than %zu bytes, the limit checkpoint_bytes", u->name,
                        DGM_MAX_CHECKPOINT_BYTES);
    upload_make_room(u, base64_room(data));
    if (!base64_decode(data, u->bytes->p + u->bytes->n, &n))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "data: invalid base64");
    u->bytes->n += n;
    u->bytes->p[u->bytes->n] = 0;
    return DGM_OK;
}

/* ---- downloads ------------------------------------------------------------------------------------------- */

/* "s12" */
static struct worker_download *download_find(const dgm_worker_blobs *b, dgm_str name)
{
    uint64_t number = 0;
    if (name.n < 2 || name.n > 20 || name.p[0] != 's')
        return NULL;
    for (size_t i = 1; i < name.n; i++) {
        if (name.p[i] < '0' || name.p[i] > '9')
            return NULL;
        number = number * 10 + (uint64_t)(name.p[i] - '0');
    }
    dgm_table_node *at = dgm_table_first(&b->downloads, number);
    while (at && at->hash != number)
        at = at->next;
    return (struct worker_download *)at;
}

static void download_drop(dgm_worker_blobs *b, struct worker_download *d)
{
    dgm_table_remove(&b->downloads, &d->node);
    b->held -= d->bytes->n;
    dgm_bytes_unref(d->bytes);
    free(d);
}

dgm_code dgm_worker_blobs_read(dgm_worker_blobs *b, const dgm_json *params, dgm_buf *out,
                               dgm_err *err)
{
    dgm_str name = dgm_json_str_member(params, "blob");
    const struct worker_download *d = download_find(b, name);
    int64_t offset = 0, max = (int64_t)DGM_WORKER_INLINE_BYTES;
    const dgm_json *at = dgm_json_non_null(params, "offset"),
                   *most = dgm_json_non_null(params, "max");
    if (!d)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "unknown blob \"%.*s\"",
                        (int)(name.n < 40 ? name.n : 40), name.p ? name.p : "");
    if ((at && (!dgm_json_int(at, &offset) || offset < 0 || (uint64_t)offset > d->bytes->n)) ||
        (most && (!dgm_json_int(most, &max) || max < 1)))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                        "expected an offset from 0 to %zu and max of at least 1", d->bytes->n);
    size_t n = d->bytes->n - (size_t)offset;
    if (n > (uint64_t)max)
        n = (size_t)max;
    if (n > DGM_WORKER_INLINE_BYTES)
        n = DGM_WORKER_INLINE_BYTES;
    dgm_buf_add_lit(out, "{\"data\":\"");
    base64_put(out, d->bytes->p + offset, n);
    dgm_buf_printf(out, "\",\"last\":%s}", (size_t)offset + n == d->bytes->n ? "true" : "false");
    return DGM_OK;
}

void dgm_worker_blobs_close(dgm_worker_blobs *b, const dgm_json *params)
{
    dgm_str name = dgm_json_str_member(params, "blob");
    struct worker_upload *u = upload_find(b, name);
    struct worker_download *d = u ? NULL : download_find(b, name);
    if (u) {
        dgm_bytes_unref(u->bytes);
        u->bytes = NULL;
    }
    if (d)
        download_drop(b, d);
}

void dgm_worker_blobs_done(dgm_worker_blobs *b)
{
    for (size_t i = 0; i < DGM_MAX_WORKER_BLOBS; i++)
        dgm_bytes_unref(b->uploads[i].bytes);
    for (size_t i = 0; i < b->downloads.cap; i++) {
        while (b->downloads.slots[i])
            download_drop(b, (struct worker_download *)b->downloads.slots[i]);
    }
    dgm_table_done(&b->downloads);
    *b = (dgm_worker_blobs){0};
}

/* ---- values ---------------------------------------------------------------------------------------------- */

static dgm_code read_inline(dgm_str base64, const char *what, dgm_bytes **ret_bytes, dgm_err *err)
{
    dgm_bytes *bytes = dgm_bytes_new(base64_room(base64)); /* the line is within its limit */
    if (!base64_decode(base64, bytes->p, &bytes->n)) {
        dgm_bytes_unref(bytes);
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "%s: invalid base64", what);
    }
    bytes->p[bytes->n] = 0;
    *ret_bytes = bytes;
    return DGM_OK;
}

dgm_code dgm_worker_value_read(dgm_worker_blobs *b, const dgm_json *v, const char *what,
                               dgm_checkpoint_value *ret_value, dgm_err *err)
{
    yyjson_val *array = (yyjson_val *)(uintptr_t)v;
    const dgm_json *type = yyjson_arr_get(array, 0), *body = yyjson_arr_get(array, 1);
    if (yyjson_arr_size(array) != 2 || !yyjson_is_str((yyjson_val *)(uintptr_t)type))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                        "%s: expected [\"type\", \"base64\"] or [\"type\", {\"blob\": \"name\"}], "
                        "got %s",
                        what, v ? dgm_json_type(v) : "nothing");
    dgm_bytes *bytes = NULL;
    if (yyjson_is_str((yyjson_val *)(uintptr_t)body)) {
        dgm_code code = read_inline(dgm_json_str(body), what, &bytes, err);
        if (code)
            return code;
    } else {
        dgm_str name = dgm_json_str_member(body, "blob");
        struct worker_upload *u = name.n ? upload_find(b, name) : NULL;
        if (!u)
            return dgm_fail(err, DGM_BAD_PARAMS, NULL, "%s: unknown blob \"%.*s\"", what,
                            (int)(name.n < 40 ? name.n : 40), name.p ? name.p : "");
        bytes = dgm_take(u->bytes);
    }
    *ret_value = (dgm_checkpoint_value){dgm_json_str(type), bytes};
    return DGM_OK;
}

static dgm_code put_blob(dgm_worker_blobs *b, dgm_buf *out, dgm_bytes *bytes, dgm_err *err)
{
    if (b->held + bytes->n > DGM_MAX_WORKER_READ_BYTES ||
        b->downloads.n >= DGM_MAX_WORKER_READ_BLOBS)
        return dgm_fail(
            err, DGM_TOO_LARGE, NULL,
            "%zu blobs with %zu bytes are open: close those that were read (blob/close)",
            b->downloads.n, b->held);
    struct worker_download *d = dgm_xcalloc(1, sizeof *d);
    d->bytes = dgm_bytes_ref(bytes);
    b->held += bytes->n;
    dgm_table_add(&b->downloads, &d->node, ++b->n_named);
    dgm_buf_printf(out, "{\"blob\":\"s%llu\",\"bytes\":%zu}]", (unsigned long long)b->n_named,
                   bytes->n);
    return DGM_OK;
}

dgm_code dgm_worker_value_put(dgm_worker_blobs *b, dgm_buf *out, const dgm_checkpoint_value *v,
                              size_t *left, dgm_err *err)
{
    size_t n = v->bytes ? v->bytes->n : 0;
    dgm_buf_add_char(out, '[');
    dgm_json_put_str(out, v->type);
    dgm_buf_add_char(out, ',');
    if (n > *left)
        return put_blob(b, out, v->bytes, err);
    *left -= n;
    dgm_buf_add_char(out, '"');
    if (n)
        base64_put(out, v->bytes->p, n);
    dgm_buf_add_lit(out, "\"]");
    return DGM_OK;
}
