/* canon/canon.c - the events' names, copies of parts. */
#include "canon/canon.h"
#include "model/form.h"
#include "json/json.h"

const char *dgm_canon_kind_name(dgm_canon_kind kind)
{
    switch (kind) {
    case DGM_CANON_NONE: break;
#define X(sym)                                                                                     \
    case DGM_CANON_##sym: return #sym;
        DGM_CANON_KINDS(X)
#undef X
    case DGM_CANON_ARTIFACT: return "ARTIFACT";
    }
    return "";
}

/* ---- artifacts --------------------------------------------------------------------------------------------- */

void dgm_canon_put_artifact(dgm_buf *out, const dgm_canon_event *event)
{
    dgm_writer w = {.out = out};
    if (event->artifact.value) {
        dgm_json_put(out, event->artifact.value);
        return;
    }
    dgm_buf_add_lit(out, "{\"artifact\":");
    dgm_shape_write(&w, &dgm_form_artifact, event->artifact.artifact);
    if (event->artifact.append)
        dgm_buf_add_lit(out, ",\"append\":true");
    if (event->artifact.last_chunk)
        dgm_buf_add_lit(out, ",\"lastChunk\":true");
    if (event->artifact.has_text)
        dgm_buf_add_lit(out, ",\"text\":true");
    dgm_buf_add_char(out, '}');
}

const dgm_json *dgm_canon_artifact_value(dgm_arena *a, const dgm_canon_event *event)
{
    dgm_buf b;
    if (event->artifact.value)
        return event->artifact.value;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_canon_put_artifact(&b, event);
    const dgm_json *value = dgm_json_parse_trusted(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return value;
}

void dgm_canon_artifact_from_custom(dgm_arena *a, dgm_mint *mint, dgm_canon_event *event)
{
    const dgm_json *value = event->custom.value;
    yyjson_val *v;
    if (!dgm_str_is(event->custom.name, DGM_NAME_ARTIFACT) ||
        !(v = dgm_json_get(value, DGM_STR("artifact"))))
        return;
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10, .mint = mint};
    dgm_artifact *artifact = dgm_new(a, dgm_artifact);
    if (dgm_shape_read(&r, &dgm_form_artifact, v, NULL, artifact))
        return;
    event->kind = DGM_CANON_ARTIFACT;
    event->artifact.artifact = artifact;
    event->artifact.append = yyjson_is_true(dgm_json_get(value, DGM_STR("append")));
    event->artifact.last_chunk = yyjson_is_true(dgm_json_get(value, DGM_STR("lastChunk")));
    event->artifact.has_text = yyjson_is_true(dgm_json_get(value, DGM_STR("text")));
    event->artifact.value = value;
}

/* ---- parts ------------------------------------------------------------------------------------------------- */

static dgm_str canon_keep(dgm_arena *a, dgm_str s)
{
    return s.p ? dgm_arena_dup(a, s) : (dgm_str){0};
}

dgm_canon_parts dgm_canon_copy_parts(dgm_arena *a, dgm_canon_parts from)
{
    dgm_canon_parts to = {dgm_new_n(a, dgm_canon_part, from.n), from.n};
    for (size_t i = 0; i < from.n; i++) {
        to.at[i] = from.at[i];
        to.at[i].text = canon_keep(a, from.at[i].text);
        to.at[i].source.value = canon_keep(a, from.at[i].source.value);
        to.at[i].source.mime_type = canon_keep(a, from.at[i].source.mime_type);
        to.at[i].source.provider = canon_keep(a, from.at[i].source.provider);
        to.at[i].id = canon_keep(a, from.at[i].id);
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
