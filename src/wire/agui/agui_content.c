/*
 * wire/agui/agui_content.c - numbers, and the content of messages: text, or parts of many kinds.
 *
 * Unknown parts of a list are left out, as the official client does, so that a newer peer causes no
 * errors.
 */
#include "base/limits.h"
#include "wire/agui/agui_int.h"

/* ---- values ---------------------------------------------------------------------------------------- */

#define MAX_SAFE ((int64_t)1 << 53)

dgm_code dgm_agui_read_long(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_opt_long *ret)
{
    int64_t n;
    if (!yyjson_is_raw(v) || !dgm_json_int(v, &n))
        return dgm_read_wrong(r, v, at, "a whole number");
    if (n > MAX_SAFE || n < -MAX_SAFE)
        return dgm_fail(r->err, DGM_BAD_PARAMS, at, "%lld is beyond 2^53", (long long)n);
    *ret = (dgm_opt_long){true, n};
    return DGM_OK;
}

void dgm_agui_write_long(dgm_writer *w, const dgm_field *f, const void *object)
{
    const dgm_opt_long *n = (const void *)((const char *)object + f->at);
    if (!n->set)
        return;
    dgm_put_key(w, f);
    dgm_json_put_int(w->out, n->value);
}

bool dgm_agui_is_name(const dgm_enum_names *names, dgm_str s)
{
    for (int i = 0; i < names->n; i++) {
        if (names->names[i] && dgm_str_eq(dgm_str_from(names->names[i]), s))
            return true;
    }
    return false;
}

/* ---- content --------------------------------------------------------------------------------------- */

static const char *const source_names[] = {NULL, "data", "url", "file"};
static const dgm_enum_names sources = {.what = "kind of source", .names = source_names, .n = 4};

static dgm_code check_source(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    dgm_canon_source *s = object;
    (void)v;
    if (s->kind == DGM_CANON_SOURCE_DATA && !dgm_base64_normalise(r->arena, s->value, &s->value))
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "value"), "not base64 (RFC 4648)");
    if (s->kind == DGM_CANON_SOURCE_DATA && !s->mime_type.n)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "mimeType"),
                        "missing: data does not say what it is");
    return DGM_OK;
}

static const dgm_field source_fields[] = {
    DGM_F_OF(dgm_canon_source, kind, "type", ENUM, DGM_REQUIRED, &sources),
    DGM_F(dgm_canon_source, value, "value", STR, DGM_REQUIRED),
    DGM_F(dgm_canon_source, mime_type, "mimeType", STR, OPT),
    DGM_F(dgm_canon_source, provider, "provider", STR, OPT),
};
static const dgm_shape source_shape = {
    .what = "source",
    .size = sizeof(dgm_canon_source),
    DGM_FIELDS(source_fields),
    .extra_at = offsetof(dgm_canon_source, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
    .after_read = check_source,
};

static const char *const part_names[DGM_N_CANON_PART_KINDS] = {NULL,    "text",  "image",
                                                               "audio", "video", "document"};
static const dgm_enum_names part_kinds = {
    .what = "kind of part", .names = part_names, .n = DGM_N_CANON_PART_KINDS};

static dgm_code finish_part(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    (void)r, (void)v, (void)at;
    dgm_agui_drop_null(&((dgm_canon_part *)object)->metadata);
    return DGM_OK;
}

static const dgm_field text_part_fields[] = {
    DGM_F_OF(dgm_canon_part, kind, "type", ENUM, DGM_REQUIRED, &part_kinds),
    DGM_F(dgm_canon_part, text, "text", STR, DGM_REQUIRED),
    DGM_F(dgm_canon_part, id, "id", STR, OPT),
    DGM_F(dgm_canon_part, metadata, "metadata", JSON, 0),
};
static const dgm_shape text_part_shape = {
    .what = "text part",
    .size = sizeof(dgm_canon_part),
    DGM_FIELDS(text_part_fields),
    .extra_at = offsetof(dgm_canon_part, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
    .after_read = finish_part,
};
static const dgm_field media_part_fields[] = {
    DGM_F_OF(dgm_canon_part, kind, "type", ENUM, DGM_REQUIRED, &part_kinds),
    DGM_F_OF(dgm_canon_part, source, "source", INLINE, DGM_REQUIRED, &source_shape),
    DGM_F(dgm_canon_part, id, "id", STR, OPT),
    DGM_F(dgm_canon_part, metadata, "metadata", JSON, 0),
};
static const dgm_shape media_part_shape = {
    .what = "media part",
    .size = sizeof(dgm_canon_part),
    DGM_FIELDS(media_part_fields),
    .extra_at = offsetof(dgm_canon_part, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
    .after_read = finish_part,
};

/* What clients sent before there were media parts. */
struct binary {
    dgm_str mime_type, data, url, id, filename;
};
static const dgm_field binary_fields[] = {
    DGM_F_CONST("type", "binary"),
    DGM_F(struct binary, mime_type, "mimeType", STR, DGM_REQUIRED | DGM_NONEMPTY),
    DGM_F(struct binary, data, "data", BASE64, 0),
    DGM_F(struct binary, url, "url", STR, 0),
    DGM_F(struct binary, id, "id", STR, 0),
    DGM_F(struct binary, filename, "filename", STR, 0),
};
static const dgm_shape binary_shape = {
    .what = "binary part",
    .size = sizeof(struct binary),
    DGM_FIELDS(binary_fields),
    .extra_at = DGM_NOWHERE,
    .tag_at = DGM_NOWHERE,
    .proto = true,
};

static dgm_canon_part_kind kind_of_media(dgm_str mime_type)
{
    if (dgm_str_starts(mime_type, DGM_STR("image/")))
        return DGM_CANON_PART_IMAGE;
    if (dgm_str_starts(mime_type, DGM_STR("audio/")))
        return DGM_CANON_PART_AUDIO;
    return dgm_str_starts(mime_type, DGM_STR("video/")) ? DGM_CANON_PART_VIDEO
                                                        : DGM_CANON_PART_DOCUMENT;
}

static dgm_code read_binary(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_canon_part *ret)
{
    struct binary b = {0};
    dgm_code rc;
    if ((rc = dgm_shape_read(r, &binary_shape, v, at, &b)))
        return rc;
    if (!b.data.n && !b.url.n && !b.id.n)
        return dgm_fail(r->err, DGM_BAD_PARAMS, at, "a binary part has data, url or id");
    ret->kind = kind_of_media(b.mime_type);
    ret->source.kind = b.data.n  ? DGM_CANON_SOURCE_DATA
                       : b.url.n ? DGM_CANON_SOURCE_URL
                                 : DGM_CANON_SOURCE_FILE;
    ret->source.value = b.data.n ? b.data : b.url.n ? b.url : b.id;
    ret->source.mime_type = b.mime_type;
    if (b.filename.n) {
        dgm_member m = {DGM_STR("filename"), dgm_json_get(v, DGM_STR("filename"))};
        ret->metadata = dgm_json_object(r->arena, &m, 1);
    }
    return DGM_OK;
}

/* Are its type and its source known? Unknown ones are not an error. */
static bool is_known_part(yyjson_val *v)
{
    dgm_str type = dgm_json_str_member(v, "type");
    yyjson_val *source = dgm_json_get(v, DGM_STR("source"));
    dgm_str from = dgm_json_str_member(source, "type");
    if (type.p && !dgm_str_is(type, "binary") && !dgm_agui_is_name(&part_kinds, type))
        return false;
    return !from.p || dgm_agui_is_name(&sources, from);
}

static dgm_code read_part(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_canon_part *ret)
{
    dgm_str type = dgm_json_str_member(v, "type");
    if (dgm_str_is(type, "binary"))
        return read_binary(r, v, at, ret);
    return dgm_shape_read(
        r, type.p && !dgm_str_is(type, "text") ? &media_part_shape : &text_part_shape, v, at, ret);
}

dgm_code dgm_agui_list_room(dgm_reader *r, yyjson_val *v, const dgm_at *at)
{
    if (!yyjson_is_arr(v))
        return dgm_read_wrong(r, v, at, "an array");
    if (yyjson_arr_size(v) > DGM_MAX_LIST_ITEMS)
        return dgm_fail(r->err, DGM_TOO_LARGE, at,
                        "%zu entries, more than the limit list_items of %d: send fewer at once",
                        yyjson_arr_size(v), DGM_MAX_LIST_ITEMS);
    return DGM_OK;
}

static dgm_code read_parts(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_canon_parts *ret)
{
    dgm_code rc;
    if ((rc = dgm_agui_list_room(r, v, at)))
        return rc;
    dgm_canon_parts parts = {dgm_new_n(r->arena, dgm_canon_part, yyjson_arr_size(v)), 0};
    size_t i, n;
    yyjson_val *e;
    yyjson_arr_foreach (v, i, n, e) {
        if (!is_known_part(e))
            r->n_unknown++;
        else if ((rc = read_part(r, e, DGM_AT_I(at, i), &parts.at[parts.n++])))
            return rc;
    }
    *ret = parts;
    return DGM_OK;
}

dgm_code dgm_agui_read_content(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                               dgm_canon_content *ret)
{
    dgm_code rc;
    if (yyjson_is_str(v)) {
        *ret = (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT, .text = dgm_json_str(v)};
        return DGM_OK;
    }
    if (yyjson_is_obj(v)) {
        *ret = (dgm_canon_content){.kind = DGM_CANON_CONTENT_OBJECT, .object = v};
        return DGM_OK;
    }
    if (!yyjson_is_arr(v))
        return dgm_read_wrong(r, v, at, "a string or an array of parts");
    if ((rc = read_parts(r, v, at, &ret->parts)))
        return rc;
    ret->kind = DGM_CANON_CONTENT_PARTS;
    return DGM_OK;
}

void dgm_agui_put_content(dgm_writer *w, const dgm_canon_content *c)
{
    switch (c->kind) {
    case DGM_CANON_CONTENT_ABSENT: break;
    case DGM_CANON_CONTENT_TEXT: dgm_json_put_str(w->out, c->text); break;
    case DGM_CANON_CONTENT_OBJECT: dgm_json_put(w->out, c->object); break;
    case DGM_CANON_CONTENT_PARTS:
        dgm_buf_add_char(w->out, '[');
        for (size_t i = 0; i < c->parts.n; i++) {
            bool text = c->parts.at[i].kind == DGM_CANON_PART_TEXT;
            if (i)
                dgm_buf_add_char(w->out, ',');
            dgm_shape_write(w, text ? &text_part_shape : &media_part_shape, &c->parts.at[i]);
        }
        dgm_buf_add_char(w->out, ']');
        break;
    }
}
