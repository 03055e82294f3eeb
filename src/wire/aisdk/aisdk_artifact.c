/* wire/aisdk/aisdk_artifact.c - artifacts that are no text: in the stream and in messages they look alike. */
#include "canon/media.h"
#include "canon/message_content.h"
#include "model/form.h"
#include "wire/aisdk/aisdk_int.h"

static bool is_file(const dgm_part *p)
{
    return p->kind == DGM_PART_RAW || p->kind == DGM_PART_URL;
}

bool dgm_aisdk_put_artifact_file(dgm_buf *b, dgm_arena *scratch, const dgm_part *p)
{
    dgm_str media_type = dgm_media_type(p);
    dgm_canon_part part = {.kind = dgm_media_kind(media_type)};
    if (!is_file(p))
        return false;
    part.source = (dgm_canon_source){.kind = p->kind == DGM_PART_RAW ? DGM_CANON_SOURCE_DATA
                                                                     : DGM_CANON_SOURCE_URL,
                                     .value = p->content,
                                     .mime_type = media_type};
    if (p->filename.n) {
        dgm_member m = {DGM_STR("filename"), dgm_json_make_string(scratch, p->filename)};
        part.metadata = dgm_json_object(scratch, &m, 1);
    }
    return dgm_aisdk_put_file(b, &part);
}

bool dgm_aisdk_put_artifact_data(dgm_buf *b, dgm_arena *scratch, const dgm_canon_event *event)
{
    const dgm_artifact *artifact = event->artifact.artifact;
    dgm_artifact a = *artifact;
    a.parts = (dgm_parts){dgm_new_n(scratch, dgm_part, artifact->parts.n), 0};
    for (size_t i = 0; i < artifact->parts.n; i++) {
        if (!is_file(&artifact->parts.at[i]))
            a.parts.at[a.parts.n++] = artifact->parts.at[i];
    }
    if (!a.parts.n)
        return false;
    dgm_buf_add_lit(b, "{\"type\":\"" AISDK_ARTIFACT "\"");
    if (!event->artifact.append)
        dgm_aisdk_put_member(b, "\"id\"", a.artifact_id);
    dgm_buf_add_lit(b, ",\"data\":");
    dgm_shape_write(&(dgm_writer){.out = b}, &dgm_form_artifact, &a);
    dgm_buf_add_char(b, '}');
    return true;
}
