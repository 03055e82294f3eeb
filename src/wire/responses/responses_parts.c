/* wire/responses/responses_parts.c - the content of messages: text, or parts of many kinds. */
#include "base/limits.h"
#include "canon/media.h"
#include "wire/responses/responses_int.h"

/* ---- what the files of Responses share ----------------------------------------------------------------------- */

const dgm_json *dgm_responses_extra(const dgm_extra *extra, dgm_str name)
{
    for (size_t i = 0; extra && extra->format == DGM_FORMAT_RESPONSES && i < extra->n; i++) {
        if (dgm_str_eq(extra->at[i].key, name))
            return extra->at[i].value;
    }
    return NULL;
}

const dgm_extra *dgm_responses_rest(dgm_arena *a, yyjson_val *v, const char *const *known)
{
    yyjson_obj_iter it = yyjson_obj_iter_with(v);
    yyjson_val *key;
    dgm_extra *extra = NULL;
    while ((key = yyjson_obj_iter_next(&it))) {
        size_t i = 0;
        while (known[i] && !dgm_str_eq(dgm_str_from(known[i]), dgm_json_str(key)))
            i++;
        if (known[i] || (extra && extra->n == DGM_MAX_UNKNOWN_MEMBERS))
            continue;
        if (!extra) {
            extra = dgm_new(a, dgm_extra);
            extra->format = DGM_FORMAT_RESPONSES;
            extra->at = dgm_new_n(a, dgm_member, yyjson_obj_size(v));
        }
        extra->at[extra->n++] = (dgm_member){dgm_json_str(key), yyjson_obj_iter_get_val(key)};
    }
    return extra;
}

void dgm_responses_put_rest(dgm_writer *w, const dgm_extra *extra, const char *const *but)
{
    for (size_t i = 0; extra && extra->format == DGM_FORMAT_RESPONSES && i < extra->n; i++) {
        size_t k = 0;
        while (but && but[k] && !dgm_str_eq(dgm_str_from(but[k]), extra->at[i].key))
            k++;
        if (but && but[k])
            continue;
        dgm_put_comma(w);
        dgm_json_put_str(w->out, extra->at[i].key);
        dgm_buf_add_char(w->out, ':');
        dgm_json_put(w->out, extra->at[i].value);
    }
}

void dgm_responses_put_id(dgm_buf *b, const char *prefix, dgm_str id)
{
    dgm_buf_add_char(b, '"');
    if (!dgm_str_starts(id, dgm_str_from(prefix)))
        dgm_buf_add_str(b, dgm_str_from(prefix));
    dgm_json_put_chars(b, id);
    dgm_buf_add_char(b, '"');
}

dgm_str dgm_responses_scoped_id(dgm_arena *a, const char *prefix, dgm_str scope, const char *tag,
                                size_t n)
{
    char end[32], *digits = end + sizeof end;
    do
        *--digits = (char)('0' + n % 10);
    while (n /= 10);
    dgm_str parts[] = {dgm_str_from(prefix),
                       scope,
                       DGM_STR("_"),
                       dgm_str_from(tag),
                       {digits, (size_t)(end + sizeof end - digits)}};
    char *id = dgm_arena_alloc_raw(a, parts[0].n + scope.n + parts[3].n + sizeof end + 2);
    size_t size = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; size += parts[i++].n)
        memcpy(id + size, parts[i].p ? parts[i].p : "", parts[i].n);
    id[size] = 0;
    return (dgm_str){id, size};
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static void set_name(dgm_reader *r, dgm_canon_part *p, yyjson_val *filename)
{
    dgm_member m = {DGM_STR("filename"), filename};
    if (yyjson_is_str(filename))
        p->metadata = dgm_json_object(r->arena, &m, 1);
}

/* data:image/png;base64,AAAA; anything else is an address. */
static void set_address(dgm_reader *r, dgm_canon_source *s, dgm_str url)
{
    const char *comma = dgm_str_starts(url, DGM_STR("data:")) ? memchr(url.p, ',', url.n) : NULL;
    static const char base64[] = ";base64";
    size_t head = comma ? (size_t)(comma - url.p) : 0;
    *s = (dgm_canon_source){.kind = DGM_CANON_SOURCE_URL, .value = url};
    if (head < 5 + sizeof base64 - 1 ||
        memcmp(comma - (sizeof base64 - 1), base64, sizeof base64 - 1) != 0)
        return;
    dgm_str data = {comma + 1, url.n - head - 1}, normal;
    if (!dgm_base64_normalise(r->arena, data, &normal))
        return;
    dgm_str type = {url.p + 5, head - 5 - (sizeof base64 - 1)};
    *s = (dgm_canon_source){.kind = DGM_CANON_SOURCE_DATA,
                            .value = normal,
                            .mime_type = type.n ? type : DGM_STR("application/octet-stream")};
}

static bool set_file_id(dgm_canon_source *s, yyjson_val *id)
{
    if (!yyjson_is_str(id))
        return false;
    *s = (dgm_canon_source){
        .kind = DGM_CANON_SOURCE_FILE, .value = dgm_json_str(id), .provider = DGM_STR("openai")};
    return true;
}

static dgm_code read_image(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_canon_part *p)
{
    yyjson_val *url = dgm_json_get(v, DGM_STR("image_url"));
    if (yyjson_is_obj(url)) /* as Chat Completions has it */
        url = dgm_json_get(url, DGM_STR("url"));
    p->kind = DGM_CANON_PART_IMAGE;
    if (yyjson_is_str(url))
        set_address(r, &p->source, dgm_json_str(url));
    else if (!set_file_id(&p->source, dgm_json_get(v, DGM_STR("file_id"))))
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "image_url"),
                        "missing: an image has image_url or file_id");
    return DGM_OK;
}

static dgm_code responses_parts_read_file(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                          dgm_canon_part *p)
{
    yyjson_val *data = dgm_json_get(v, DGM_STR("file_data")),
               *url = dgm_json_get(v, DGM_STR("file_url"));
    yyjson_val *filename = dgm_json_get(v, DGM_STR("filename"));
    dgm_str name = yyjson_is_str(filename) ? dgm_json_str(filename) : (dgm_str){0}, normal;
    p->kind = DGM_CANON_PART_DOCUMENT;
    set_name(r, p, filename);
    if (yyjson_is_str(data)) {
        set_address(r, &p->source, dgm_json_str(data));
        if (p->source.kind == DGM_CANON_SOURCE_URL &&
            dgm_base64_normalise(r->arena, p->source.value, &normal)) { /* the bytes alone */
            dgm_str type = dgm_media_type_of_name(name);
            p->source.kind = DGM_CANON_SOURCE_DATA;
            p->source.value = normal;
            p->source.mime_type = type.n ? type : DGM_STR("application/octet-stream");
        }
    } else if (yyjson_is_str(url)) {
        set_address(r, &p->source, dgm_json_str(url));
    } else if (!set_file_id(&p->source, dgm_json_get(v, DGM_STR("file_id")))) {
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "file_data"),
                        "missing: a file has file_data, file_url or file_id");
    }
    return DGM_OK;
}

static dgm_code read_audio(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_canon_part *p)
{
    yyjson_val *audio = dgm_json_get(v, DGM_STR("input_audio"));
    dgm_str format = dgm_json_str_member(audio, "format");
    const dgm_at *here = DGM_AT_LIT(at, "input_audio");
    p->kind = DGM_CANON_PART_AUDIO;
    p->source.kind = DGM_CANON_SOURCE_DATA;
    p->source.mime_type = dgm_str_is(format, "mp3") ? DGM_STR("audio/mpeg") : DGM_STR("audio/wav");
    return dgm_read_base64(r, dgm_json_get(audio, DGM_STR("data")), DGM_AT_LIT(here, "data"),
                           &p->source.value);
}

/* Of a type that we know? Strangers are left out. */
static dgm_code read_part(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_canon_part *p)
{
    static const char *const known[] = {"type",      "text",        "refusal", "image_url",
                                        "file_data", "file_url",    "file_id", "filename",
                                        "logprobs",  "input_audio", NULL};
    dgm_str type = dgm_json_str_member(v, "type");
    bool is_refusal = dgm_str_is(type, "refusal");
    yyjson_val *text = dgm_json_get(v, is_refusal ? DGM_STR("refusal") : DGM_STR("text"));
    *p = (dgm_canon_part){.extra = dgm_responses_rest(r->arena, v, known)};
    if (dgm_str_is(type, "input_image"))
        return read_image(r, v, at, p);
    if (dgm_str_is(type, "input_file"))
        return responses_parts_read_file(r, v, at, p);
    if (dgm_str_is(type, "input_audio"))
        return read_audio(r, v, at, p);
    p->kind = DGM_CANON_PART_TEXT;
    if (yyjson_is_str(text))
        p->text = dgm_json_str(text);
    else if (type.p)
        p->kind = DGM_CANON_PART_NONE;
    else
        return dgm_read_wrong(r, v, at, "a part (an object with a type)");
    return DGM_OK;
}

dgm_code dgm_responses_read_content(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                    dgm_canon_content *ret)
{
    dgm_canon_content c = {.kind = DGM_CANON_CONTENT_PARTS};
    yyjson_val *part;
    size_t i, n = yyjson_arr_size(v);
    dgm_code rc;
    if (yyjson_is_str(v)) {
        *ret = (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT, .text = dgm_json_str(v)};
        return DGM_OK;
    }
    if (!yyjson_is_arr(v))
        return dgm_read_wrong(r, v, at, "a string or an array of parts");
    if (n > DGM_MAX_LIST_ITEMS)
        return dgm_fail(r->err, DGM_TOO_LARGE, at,
                        "%zu entries, more than the limit list_items of %d: send fewer at once", n,
                        DGM_MAX_LIST_ITEMS);
    c.parts.at = dgm_new_n(r->arena, dgm_canon_part, n);
    yyjson_arr_foreach (v, i, n, part) {
        dgm_canon_part *p = &c.parts.at[c.parts.n];
        if ((rc = read_part(r, part, DGM_AT_I(at, i), p)))
            return rc;
        if (p->kind == DGM_CANON_PART_NONE)
            r->n_unknown++;
        else
            c.parts.n++;
    }
    if (c.parts.n == 1 && c.parts.at[0].kind == DGM_CANON_PART_TEXT && !c.parts.at[0].extra)
        c = (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT, .text = c.parts.at[0].text};
    *ret = c;
    return DGM_OK;
}

/* ---- writing ------------------------------------------------------------------------------------------------------- */

static void put_data_url(dgm_writer *w, const dgm_canon_source *s)
{
    dgm_buf_add_lit(w->out, "\"data:");
    dgm_json_put_chars(w->out, s->mime_type);
    dgm_buf_add_lit(w->out, ";base64,");
    dgm_json_put_chars(w->out, s->value);
    dgm_buf_add_char(w->out, '"');
}

static void put_image(dgm_writer *w, const dgm_canon_part *p)
{
    dgm_buf_add_lit(w->out, "{\"type\":\"input_image\",");
    if (p->source.kind == DGM_CANON_SOURCE_FILE) {
        dgm_buf_add_lit(w->out, "\"file_id\":");
        dgm_json_put_str(w->out, p->source.value);
        return;
    }
    dgm_buf_add_lit(w->out, "\"image_url\":");
    if (p->source.kind == DGM_CANON_SOURCE_DATA)
        put_data_url(w, &p->source);
    else
        dgm_json_put_str(w->out, p->source.value);
}

static void put_file(dgm_writer *w, const dgm_canon_part *p)
{
    dgm_str name = dgm_json_str_member(p->metadata, "filename");
    dgm_buf_add_lit(w->out, "{\"type\":\"input_file\",");
    switch (p->source.kind) {
    case DGM_CANON_SOURCE_DATA:
        dgm_buf_add_lit(w->out, "\"file_data\":");
        put_data_url(w, &p->source);
        break;
    case DGM_CANON_SOURCE_FILE:
        dgm_buf_add_lit(w->out, "\"file_id\":");
        dgm_json_put_str(w->out, p->source.value);
        break;
    case DGM_CANON_SOURCE_NONE:
    case DGM_CANON_SOURCE_URL:
        dgm_buf_add_lit(w->out, "\"file_url\":");
        dgm_json_put_str(w->out, p->source.value);
        break;
    }
    if (name.n) {
        dgm_buf_add_lit(w->out, ",\"filename\":");
        dgm_json_put_str(w->out, name);
    } else if (p->source.kind == DGM_CANON_SOURCE_DATA) { /* bytes need a name there */
        dgm_buf_printf(w->out, ",\"filename\":\"file.%s\"",
                       dgm_media_extension(p->source.mime_type));
    }
}

static void put_audio(dgm_writer *w, const dgm_canon_part *p)
{
    bool wav = dgm_media_is(p->source.mime_type, DGM_STR("audio/wav")) ||
               dgm_media_is(p->source.mime_type, DGM_STR("audio/x-wav"));
    bool mp3 = dgm_media_is(p->source.mime_type, DGM_STR("audio/mpeg")) ||
               dgm_media_is(p->source.mime_type, DGM_STR("audio/mp3"));
    if (p->source.kind != DGM_CANON_SOURCE_DATA || (!wav && !mp3)) {
        put_file(w, p);
        return;
    }
    dgm_buf_add_lit(w->out, "{\"type\":\"input_audio\",\"input_audio\":{\"data\":");
    dgm_json_put_str(w->out, p->source.value);
    dgm_buf_printf(w->out, ",\"format\":\"%s\"}", wav ? "wav" : "mp3");
}

static void responses_parts_put_text(dgm_writer *w, dgm_str text)
{
    dgm_buf_add_lit(w->out, "{\"type\":\"input_text\",\"text\":");
    dgm_json_put_str(w->out, text);
}

void dgm_responses_put_content(dgm_writer *w, const dgm_canon_content *c)
{
    dgm_buf_add_char(w->out, '[');
    if (c->kind == DGM_CANON_CONTENT_TEXT) {
        responses_parts_put_text(w, c->text);
        dgm_buf_add_char(w->out, '}');
    }
    for (size_t i = 0; c->kind == DGM_CANON_CONTENT_PARTS && i < c->parts.n; i++) {
        const dgm_canon_part *p = &c->parts.at[i];
        dgm_put_comma(w);
        switch (p->kind) {
        case DGM_CANON_PART_NONE:
        case DGM_CANON_PART_TEXT: responses_parts_put_text(w, p->text); break;
        case DGM_CANON_PART_IMAGE: put_image(w, p); break;
        case DGM_CANON_PART_AUDIO: put_audio(w, p); break;
        case DGM_CANON_PART_VIDEO:
        case DGM_CANON_PART_DOCUMENT: put_file(w, p); break;
        }
        dgm_responses_put_rest(w, p->extra, NULL);
        dgm_buf_add_char(w->out, '}');
    }
    dgm_buf_add_char(w->out, ']');
}
