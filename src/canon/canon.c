/* canon/canon.c - the events' names, copies of parts. */
#include "canon/canon.h"
#include "base/buf.h"
#include "json/json.h"

const char *dgm_canon_kind_name(dgm_canon_kind kind)
{
    switch (kind) {
    case DGM_CANON_NONE: break;
#define X(sym)                                                                                     \
    case DGM_CANON_##sym: return #sym;
        DGM_CANON_KINDS(X)
#undef X
    }
    return "";
}

static dgm_str keep(dgm_arena *a, dgm_str s)
{
    return s.p ? dgm_arena_dup(a, s) : (dgm_str){0};
}

dgm_canon_parts dgm_canon_copy_parts(dgm_arena *a, dgm_canon_parts from)
{
    dgm_canon_parts to = {dgm_new_n(a, dgm_canon_part, from.n), from.n};
    for (size_t i = 0; i < from.n; i++) {
        to.at[i] = from.at[i];
        to.at[i].text = keep(a, from.at[i].text);
        to.at[i].source.value = keep(a, from.at[i].source.value);
        to.at[i].source.mime_type = keep(a, from.at[i].source.mime_type);
        to.at[i].source.provider = keep(a, from.at[i].source.provider);
        to.at[i].id = keep(a, from.at[i].id);
        to.at[i].metadata = dgm_json_copy(a, from.at[i].metadata);
        to.at[i].extra = to.at[i].source.extra = NULL;
    }
    return to;
}

dgm_str dgm_canon_content_text(dgm_arena *a, const dgm_canon_content *c)
{
    if (c->kind != DGM_CANON_CONTENT_PARTS)
        return c->text;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < c->parts.n; i++)
        dgm_buf_add_str(&b, c->parts.at[i].text);
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}
