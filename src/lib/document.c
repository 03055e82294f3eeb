/* lib/document.c - single A2A objects as structs, with the memory they live in. */
#include "base/limits.h"
#include "wire/formats.h"

#include <stdlib.h>

struct dgm_document {
    dgm_arena *arena;
    dgm_frame frame;
};

DGM_DEFINE_AUTO(dgm_document, dgm_document_free)

static const dgm_codec *a2a_codec(const char *format, const yyjson_val *v, dgm_err *err)
{
    const dgm_codec *f;
    if (format && strcmp(format, "auto") != 0)
        f = dgm_codec_by_name(format, err);
    else if (!(f = dgm_codec_detect(v, NULL, NULL)))
        dgm_fail(err, DGM_BAD_PARAMS, NULL, "cannot detect the format: set it");
    if (f && !f->decode) {
        dgm_fail(err, DGM_BAD_REQUEST, NULL, "%s is not an A2A format", f->name);
        return NULL;
    }
    return f;
}

dgm_code dgm_document_read(const char *format, dgm_object_kind kind, const char *text, size_t n,
                           dgm_document **ret_document, dgm_err *err)
{
    dgm_auto(dgm_document_free) dgm_document *d = dgm_xcalloc(1, sizeof *d);
    yyjson_val *value;
    dgm_code rc;
    dgm_err fault = {0};
    d->arena = dgm_arena_new();
    if (!(rc = dgm_json_read(d->arena, (dgm_str){text, n}, DGM_MAX_OBJECT_BYTES, "object_bytes",
                             &value, &fault))) {
        const dgm_codec *codec = a2a_codec(format, value, &fault);
        dgm_mint none = {0}, mint = dgm_mint_for(&none, 0, (dgm_str){text, n});
        dgm_reader r = {.arena = d->arena, .mint = &mint, .err = &fault};
        rc = codec ? codec->decode(&r, value, kind, false, &d->frame) : fault.code;
    }
    if (rc) {
        if (err)
            *err = fault;
        return rc;
    }
    *ret_document = dgm_take(d);
    return DGM_OK;
}

void dgm_document_free(dgm_document *d)
{
    if (!d)
        return;
    dgm_arena_free(d->arena);
    free(d);
}

dgm_object_kind dgm_document_kind(const dgm_document *d)
{
    return d->frame.object.kind;
}

const void *dgm_document_get(const dgm_document *d)
{
    return d->frame.object.it;
}

dgm_code dgm_document_write(const dgm_document *d, const char *format, char **ret_text,
                            size_t *ret_n, dgm_err *err)
{
    dgm_err fault = {0};
    const dgm_codec *f = dgm_codec_by_name(format, &fault);
    if (f && !f->decode) {
        dgm_fail(&fault, DGM_BAD_REQUEST, NULL, "%s is not an A2A format", f->name);
        f = NULL;
    }
    dgm_code rc = fault.code;
    if (f) {
        dgm_buf out;
        dgm_buf_init(&out, DGM_MAX_OUTPUT_BYTES);
        dgm_writer w = {.out = &out};
        rc = f->encode(&w, &d->frame, &fault);
        if (!rc && out.over)
            rc = dgm_fail(&fault, DGM_TOO_LARGE, NULL,
                          "becomes more than the limit output_bytes of %zu", DGM_MAX_OUTPUT_BYTES);
        if (!rc) {
            out.max = SIZE_MAX;
            *ret_text = dgm_buf_steal(&out, ret_n);
        }
        dgm_buf_done(&out);
    }
    if (rc && err)
        *err = fault;
    return rc;
}

char *dgm_json_text(const dgm_json *value)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_json_put(&b, value);
    return dgm_buf_steal(&b, NULL);
}

void dgm_free(void *p)
{
    free(p);
}

const char *dgm_version(void)
{
    return DGM_VERSION;
}
