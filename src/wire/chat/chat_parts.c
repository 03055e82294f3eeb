/*
 * wire/chat/chat_parts.c - the tables of content parts: text, files, refusals, and unknown ones.
 */
#include "wire/chat/chat.h"

/* ---- names --------------------------------------------------------------------------------------------- */

static const char *const part_names[DGM_N_CHAT_PART_KINDS] = {
    [DGM_CHAT_PART_TEXT] = "text",         [DGM_CHAT_PART_IMAGE] = "image_url",
    [DGM_CHAT_PART_AUDIO] = "input_audio", [DGM_CHAT_PART_FILE] = "file",
    [DGM_CHAT_PART_VIDEO] = "video_url",   [DGM_CHAT_PART_REFUSAL] = "refusal",
};
/* What clients that also speak the Responses API call a text. */
static const dgm_enum_alias part_aliases[] = {
    {"input_text", DGM_CHAT_PART_TEXT}, {"output_text", DGM_CHAT_PART_TEXT}, {NULL, 0}};
static const dgm_enum_names part_types = {.what = "type of a content part",
                                          .names = part_names,
                                          .n = DGM_N_CHAT_PART_KINDS,
                                          .aliases = part_aliases};

const char *dgm_chat_part_name(dgm_chat_part_kind kind)
{
    return part_names[kind];
}

/* The value of a name; 0: unknown. */
static int named(const dgm_enum_names *names, const yyjson_val *v)
{
    dgm_reader quiet = {0};
    int value = 0;
    if (yyjson_is_str((yyjson_val *)(uintptr_t)v))
        dgm_read_enum(&quiet, names, (yyjson_val *)(uintptr_t)v, NULL, &value);
    return value;
}

/* ---- parts ---------------------------------------------------------------------------------------------- */

/* Some clients write the address where an object with the address belongs. */
static dgm_code read_bare_url(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    return dgm_read_str(r, v, at, &((dgm_chat_part *)object)->url);
}
static const dgm_shape bare_url = {.what = "address", .read_instead = read_bare_url};

static const dgm_shape *pick_image(dgm_reader *r, yyjson_val *v, const dgm_at *at);
static const dgm_shape *pick_video(dgm_reader *r, yyjson_val *v, const dgm_at *at);

static const dgm_field image_fields[] = {
    DGM_F(dgm_chat_part, url, "url", STR, DGM_REQUIRED),
    DGM_F(dgm_chat_part, detail, "detail", STR, 0),
};
static const dgm_shape image = {
    .what = "image_url",
    .size = sizeof(dgm_chat_part),
    DGM_FIELDS(image_fields),
    .extra_at = offsetof(dgm_chat_part, inner_extra),
    .tag_at = DGM_NOWHERE,
};
static const dgm_shape image_or_url = {
    .what = "image_url",
    .size = sizeof(dgm_chat_part),
    DGM_FIELDS(image_fields),
    .extra_at = offsetof(dgm_chat_part, inner_extra),
    .tag_at = DGM_NOWHERE,
    .pick_read = pick_image,
};

static const dgm_field video_fields[] = {
    DGM_F(dgm_chat_part, url, "url", STR, DGM_REQUIRED),
};
static const dgm_shape video = {
    .what = "video_url",
    .size = sizeof(dgm_chat_part),
    DGM_FIELDS(video_fields),
    .extra_at = offsetof(dgm_chat_part, inner_extra),
    .tag_at = DGM_NOWHERE,
};
static const dgm_shape video_or_url = {
    .what = "video_url",
    .size = sizeof(dgm_chat_part),
    DGM_FIELDS(video_fields),
    .extra_at = offsetof(dgm_chat_part, inner_extra),
    .tag_at = DGM_NOWHERE,
    .pick_read = pick_video,
};

static const dgm_shape *pick_image(dgm_reader *r, yyjson_val *v, const dgm_at *at)
{
    (void)r;
    (void)at;
    return yyjson_is_str(v) ? &bare_url : &image;
}

static const dgm_shape *pick_video(dgm_reader *r, yyjson_val *v, const dgm_at *at)
{
    (void)r;
    (void)at;
    return yyjson_is_str(v) ? &bare_url : &video;
}

static const dgm_field audio_fields[] = {
    DGM_F(dgm_chat_part, data, "data", STR, DGM_REQUIRED),
    DGM_F(dgm_chat_part, format, "format", STR, 0),
};
static const dgm_shape audio = {
    .what = "input_audio",
    .size = sizeof(dgm_chat_part),
    DGM_FIELDS(audio_fields),
    .extra_at = offsetof(dgm_chat_part, inner_extra),
    .tag_at = DGM_NOWHERE,
};

static const dgm_field file_fields[] = {
    DGM_F(dgm_chat_part, filename, "filename", STR, 0),
    DGM_F(dgm_chat_part, file_data, "file_data", STR, 0),
    DGM_F(dgm_chat_part, file_id, "file_id", STR, 0),
};
static const dgm_shape file = {
    .what = "file",
    .size = sizeof(dgm_chat_part),
    DGM_FIELDS(file_fields),
    .extra_at = offsetof(dgm_chat_part, inner_extra),
    .tag_at = DGM_NOWHERE,
};

#define TYPE_OF_PART DGM_F_OF(dgm_chat_part, kind, "type", ENUM, 0, &part_types)
static const dgm_field text_part_fields[] = {TYPE_OF_PART,
                                             DGM_F(dgm_chat_part, text, "text", STR, DGM_REQUIRED)};
static const dgm_field image_part_fields[] = {TYPE_OF_PART,
                                              DGM_F_NEST("image_url", DGM_REQUIRED, &image_or_url)};
static const dgm_field audio_part_fields[] = {TYPE_OF_PART,
                                              DGM_F_NEST("input_audio", DGM_REQUIRED, &audio)};
static const dgm_field file_part_fields[] = {TYPE_OF_PART, DGM_F_NEST("file", DGM_REQUIRED, &file)};
static const dgm_field video_part_fields[] = {TYPE_OF_PART,
                                              DGM_F_NEST("video_url", DGM_REQUIRED, &video_or_url)};
static const dgm_field refusal_part_fields[] = {
    TYPE_OF_PART, DGM_F(dgm_chat_part, text, "refusal", STR, DGM_REQUIRED)};

/* A part may come without a type: then its one member shows it, and pick_part has read it. */
static dgm_chat_part_kind kind_of_part(yyjson_val *v)
{
    yyjson_val *type = dgm_json_get(v, DGM_STR("type"));
    if (type && !yyjson_is_null(type))
        return (dgm_chat_part_kind)named(&part_types, type);
    for (int kind = 1; kind < DGM_N_CHAT_PART_KINDS; kind++) {
        if (dgm_json_get(v, dgm_str_from(part_names[kind])))
            return (dgm_chat_part_kind)kind;
    }
    return DGM_CHAT_PART_OTHER;
}

static dgm_code set_kind_of_part(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    (void)r;
    (void)at;
    ((dgm_chat_part *)object)->kind = kind_of_part(v);
    return DGM_OK;
}

static dgm_code read_other_part(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_chat_part *part = object;
    if (yyjson_is_str(v)) {
        *part = (dgm_chat_part){.kind = DGM_CHAT_PART_TEXT, .text = dgm_json_str(v)};
        return DGM_OK;
    }
    if (!yyjson_is_obj(v))
        return dgm_read_wrong(r, v, at, "an object (content part)");
    if (!yyjson_is_str(dgm_json_get(v, DGM_STR("type"))))
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "type"),
                        "missing: a content part needs it");
    part->value = v;
    return DGM_OK;
}

static void write_other_part(dgm_writer *w, const void *object)
{
    dgm_json_put(w->out, ((const dgm_chat_part *)object)->value);
}

#define PART_SHAPE(name, fields_)                                                                  \
    {                                                                                              \
        .what = (name), .size = sizeof(dgm_chat_part), DGM_FIELDS(fields_),                        \
        .extra_at = offsetof(dgm_chat_part, extra), .tag_at = DGM_NOWHERE,                         \
        .after_read = set_kind_of_part                                                             \
    }
static const dgm_shape part_shapes[DGM_N_CHAT_PART_KINDS] = {
    [DGM_CHAT_PART_OTHER] = {.what = "content part",
                             .size = sizeof(dgm_chat_part),
                             .read_instead = read_other_part,
                             .write_instead = write_other_part},
    [DGM_CHAT_PART_TEXT] = PART_SHAPE("text part", text_part_fields),
    [DGM_CHAT_PART_IMAGE] = PART_SHAPE("image_url part", image_part_fields),
    [DGM_CHAT_PART_AUDIO] = PART_SHAPE("input_audio part", audio_part_fields),
    [DGM_CHAT_PART_FILE] = PART_SHAPE("file part", file_part_fields),
    [DGM_CHAT_PART_VIDEO] = PART_SHAPE("video_url part", video_part_fields),
    [DGM_CHAT_PART_REFUSAL] = PART_SHAPE("refusal part", refusal_part_fields),
};

static const dgm_shape *chat_parts_pick_part(dgm_reader *r, yyjson_val *v, const dgm_at *at)
{
    (void)r;
    (void)at;
    return &part_shapes[kind_of_part(v)];
}

static dgm_picked pick_part_to_write(const void *object)
{
    return (dgm_picked){&part_shapes[((const dgm_chat_part *)object)->kind], object};
}

const dgm_shape dgm_chat_part_shape = {
    .what = "content part",
    .size = sizeof(dgm_chat_part),
    .extra_at = DGM_NOWHERE,
    .tag_at = DGM_NOWHERE,
    .pick_read = chat_parts_pick_part,
    .pick_write = pick_part_to_write,
};
