/* wire/aisdk/aisdk_parts.c - parts that streams and messages share: files, arguments, results, progress, artifacts. */
#include "base/limits.h"
#include "canon/media.h"
#include "canon/message_content.h"
#include "model/form.h"
#include "wire/aisdk/aisdk_int.h"

const char dgm_aisdk_name[] = "ai-sdk";

bool dgm_aisdk_is_instead(const yyjson_val *part)
{
    const yyjson_val *ours =
        dgm_json_get(dgm_json_get(part, DGM_STR("providerMetadata")), DGM_STR("dragoman"));
    return yyjson_is_true(dgm_json_get(ours, DGM_STR("instead")));
}

dgm_str dgm_aisdk_tool_of(dgm_str type)
{
    return type.n > 5 && dgm_str_starts(type, DGM_STR("tool-")) ? (dgm_str){type.p + 5, type.n - 5}
                                                                : (dgm_str){0};
}

void dgm_aisdk_put_member(dgm_buf *b, const char *quoted_key, dgm_str value)
{
    dgm_buf_add_char(b, ',');
    dgm_buf_add_str(b, dgm_str_from(quoted_key));
    dgm_buf_add_char(b, ':');
    dgm_json_put_str(b, value);
}

/* ---- files ------------------------------------------------------------------------------------------------ */

/* The SDK requires a media type for every file. */
static dgm_str media_type_of(const dgm_canon_part *p)
{
    if (p->source.mime_type.n)
        return p->source.mime_type;
    switch ((int)p->kind) {
    case DGM_CANON_PART_IMAGE: return DGM_STR("image/*");
    case DGM_CANON_PART_AUDIO: return DGM_STR("audio/*");
    case DGM_CANON_PART_VIDEO: return DGM_STR("video/*");
    default: return DGM_STR("application/octet-stream");
    }
}

bool dgm_aisdk_put_file(dgm_buf *b, const dgm_canon_part *p)
{
    dgm_str filename = dgm_json_str_member(p->metadata, "filename"), media_type = media_type_of(p);
    if (p->source.kind == DGM_CANON_SOURCE_FILE)
        return false;
    dgm_buf_add_lit(b, "{\"type\":\"file\"");
    dgm_aisdk_put_member(b, "\"mediaType\"", media_type);
    if (filename.n)
        dgm_aisdk_put_member(b, "\"filename\"", filename);
    dgm_buf_add_lit(b, ",\"url\":");
    if (p->source.kind == DGM_CANON_SOURCE_DATA) {
        dgm_buf_add_lit(b, "\"data:");
        dgm_json_put_chars(b, media_type);
        dgm_buf_add_lit(b, ";base64,");
        dgm_json_put_chars(b, p->source.value);
        dgm_buf_add_char(b, '"');
    } else {
        dgm_json_put_str(b, p->source.value);
    }
    dgm_buf_add_char(b, '}');
    return true;
}

/* data:image/png;base64,aGk= */
static bool is_base64_url(dgm_str url, dgm_str *ret_type, dgm_str *ret_data)
{
    const char *comma = url.n ? memchr(url.p, ',', url.n) : NULL;
    static const char mark[] = ";base64";
    if (!comma || !dgm_str_starts(url, DGM_STR("data:")))
        return false;
    size_t head = (size_t)(comma - url.p);
    if (head < 5 + sizeof mark - 1 || memcmp(comma - (sizeof mark - 1), mark, sizeof mark - 1) != 0)
        return false;
    *ret_type = (dgm_str){url.p + 5, head - 5 - (sizeof mark - 1)};
    *ret_data = (dgm_str){comma + 1, url.n - head - 1};
    return true;
}

struct file {
    dgm_str media_type, url, filename;
};
static const dgm_custom ignored = {NULL, NULL};
static const dgm_field file_fields[] = {
    DGM_F_CUSTOM("type", 0, &ignored),
    DGM_F(struct file, media_type, "mediaType", STR, 0),
    DGM_F(struct file, url, "url", STR, DGM_REQUIRED | DGM_NONEMPTY),
    DGM_F(struct file, filename, "filename", STR, 0),
};
static const dgm_shape file_shape = {
    .what = "file part",
    .size = sizeof(struct file),
    DGM_FIELDS(file_fields),
    .extra_at = DGM_NOWHERE,
    .tag_at = DGM_NOWHERE,
};

dgm_code dgm_aisdk_read_file(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_canon_part *ret)
{
    struct file f = {0};
    dgm_str type, data;
    dgm_code rc;
    if ((rc = dgm_shape_read(r, &file_shape, v, at, &f)))
        return rc;
    bool inside = is_base64_url(f.url, &type, &data);
    if (!f.media_type.n)
        f.media_type = inside && type.n ? type : dgm_media_type_of_name(f.filename);
    *ret = (dgm_canon_part){.kind = dgm_media_kind(f.media_type)};
    ret->source = (dgm_canon_source){.kind = DGM_CANON_SOURCE_URL, .value = f.url};
    if (inside) {
        ret->source.kind = DGM_CANON_SOURCE_DATA;
        if (!dgm_base64_normalise(r->arena, data, &ret->source.value))
            return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "url"),
                            "the data after ;base64, is not base64 (RFC 4648)");
        if (!f.media_type.n)
            f.media_type = DGM_STR("application/octet-stream");
    }
    ret->source.mime_type = f.media_type.n ? f.media_type : (dgm_str){0};
    if (f.filename.n) {
        dgm_member m = {DGM_STR("filename"), dgm_json_make_string(r->arena, f.filename)};
        ret->metadata = dgm_json_object(r->arena, &m, 1);
    }
    return DGM_OK;
}

dgm_str dgm_aisdk_file_text(dgm_arena *a, const dgm_canon_part *p)
{
    dgm_part part = {.kind = p->source.kind == DGM_CANON_SOURCE_DATA ? DGM_PART_RAW : DGM_PART_URL,
                     .content = p->source.value,
                     .filename = dgm_json_str_member(p->metadata, "filename"),
                     .media_type = p->source.mime_type};
    return dgm_content_file_text(a, &part);
}

/* ---- calls and results -------------------------------------------------------------------------------------- */

bool dgm_aisdk_put_input(dgm_buf *b, dgm_arena *scratch, dgm_str arguments)
{
    yyjson_val *v;
    if (!arguments.n) {
        dgm_buf_add_lit(b, "{}");
        return true;
    }
    if (dgm_json_read(scratch, arguments, DGM_MAX_RECORD_BYTES, "record_bytes", &v, NULL))
        return false;
    dgm_json_put(b, v);
    return true;
}

static void put_output_part(dgm_buf *b, const dgm_canon_part *p)
{
    size_t before = b->n;
    if (before && b->p[before - 1] != '[')
        dgm_buf_add_char(b, ',');
    if (p->kind == DGM_CANON_PART_TEXT) {
        dgm_buf_add_lit(b, "{\"type\":\"text\"");
        dgm_aisdk_put_member(b, "\"text\"", p->text);
        dgm_buf_add_char(b, '}');
    } else if (!dgm_aisdk_put_file(b, p)) {
        b->n = before;
    }
}

void dgm_aisdk_put_output(dgm_buf *b, const dgm_canon_content *content, const dgm_json *value)
{
    if (value) {
        dgm_json_put(b, value);
    } else if (content->kind == DGM_CANON_CONTENT_PARTS) {
        dgm_buf_add_char(b, '[');
        for (size_t i = 0; i < content->parts.n; i++)
            put_output_part(b, &content->parts.at[i]);
        dgm_buf_add_char(b, ']');
    } else {
        dgm_json_put_str(b, content->text);
    }
}

dgm_str dgm_aisdk_content_text(dgm_arena *a, const dgm_canon_content *content)
{
    dgm_buf b;
    if (content->kind != DGM_CANON_CONTENT_PARTS)
        return content->text;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < content->parts.n; i++)
        dgm_buf_add_str(&b, content->parts.at[i].text);
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

/* ---- progress ------------------------------------------------------------------------------------------------ */

/* {"state":"working", and the members of the status}. */
static void aisdk_put_status(dgm_buf *b, const dgm_json *content)
{
    dgm_buf_add_lit(b, "{\"state\":\"working\"");
    yyjson_val *key, *value;
    yyjson_val *object = (yyjson_val *)(uintptr_t)content;
    for (yyjson_obj_iter it = yyjson_obj_iter_with(object); (key = yyjson_obj_iter_next(&it));) {
        value = yyjson_obj_iter_get_val(key);
        if (dgm_str_is(dgm_json_str(key), "state"))
            continue;
        dgm_buf_add_char(b, ',');
        dgm_json_put_str(b, dgm_json_str(key));
        dgm_buf_add_char(b, ':');
        dgm_json_put(b, value);
    }
    dgm_buf_add_char(b, '}');
}

const dgm_json *dgm_aisdk_status_content(dgm_arena *a, yyjson_val *data)
{
    dgm_member *members = dgm_new_n(a, dgm_member, yyjson_obj_size(data) + 1);
    size_t n_members = 0;
    yyjson_val *key;
    for (yyjson_obj_iter it = yyjson_obj_iter_with(data); (key = yyjson_obj_iter_next(&it));) {
        if (!dgm_str_is(dgm_json_str(key), "state"))
            members[n_members++] = (dgm_member){dgm_json_str(key), yyjson_obj_iter_get_val(key)};
    }
    return dgm_json_object(a, members, n_members);
}

void dgm_aisdk_put_activity(dgm_buf *b, dgm_str id, dgm_str type, const dgm_json *content)
{
    if (dgm_str_is(type, AISDK_A2A_STATUS)) {
        dgm_buf_add_lit(b,
                        "{\"type\":\"" AISDK_STATUS "\",\"id\":\"" AISDK_STATUS_ID "\",\"data\":");
        aisdk_put_status(b, content);
    } else {
        dgm_buf_add_lit(b, "{\"type\":\"" AISDK_ACTIVITY "\"");
        dgm_aisdk_put_member(b, "\"id\"", id);
        dgm_buf_add_lit(b, ",\"data\":{\"activityType\":");
        dgm_json_put_str(b, type);
        dgm_buf_add_lit(b, ",\"content\":");
        dgm_json_put(b, content);
        dgm_buf_add_char(b, '}');
    }
    dgm_buf_add_char(b, '}');
}

/* ---- artifacts that are not text: the same in streams and in messages ------------------------------------------ */

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
