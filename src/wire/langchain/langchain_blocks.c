/*
 * wire/langchain/langchain_blocks.c - content: text, or blocks of many kinds.
 *
 * Supported: LangChain's standard blocks with the member names of Python and of JavaScript, the older data blocks,
 * and the usual blocks of providers. Other blocks are left out and counted.
 */
#include "base/limits.h"
#include "base/list.h"
#include "canon/media.h"
#include "canon/message_content.h"
#include "wire/langchain/langchain_int.h"

/* The first of these members that is a text. */
static dgm_str langchain_blocks_text_of(const yyjson_val *v, const char *a, const char *b,
                                        const char *c)
{
    dgm_str s = dgm_json_str_member(v, a);
    if (!s.p && b)
        s = dgm_json_str_member(v, b);
    return s.p || !c ? s : dgm_json_str_member(v, c);
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

static void langchain_blocks_add_part(dgm_arena *a, lc_content *c, dgm_canon_part part)
{
    c->parts.at = dgm_list_grow(a, c->parts.at, c->parts.n, sizeof *c->parts.at);
    c->parts.at[c->parts.n++] = part;
    c->has_files |= part.kind != DGM_CANON_PART_TEXT;
}

static void langchain_blocks_add_text(dgm_arena *a, lc_content *c, dgm_str text)
{
    langchain_blocks_add_part(a, c, (dgm_canon_part){.kind = DGM_CANON_PART_TEXT, .text = text});
}

static void langchain_blocks_add_reasoning(dgm_arena *a, lc_content *c, dgm_str text)
{
    if (!text.n)
        return;
    c->reasoning.at = dgm_list_grow(a, c->reasoning.at, c->reasoning.n, sizeof *c->reasoning.at);
    c->reasoning.at[c->reasoning.n++] = text;
}

/* reasoning, thinking, reasoning_content.text, summary[].text */
static void read_reasoning(dgm_arena *a, lc_content *c, const yyjson_val *v)
{
    yyjson_val *summary = dgm_json_get(v, DGM_STR("summary")), *one;
    dgm_str text = langchain_blocks_text_of(v, "reasoning", "thinking", NULL);
    size_t i, n;
    if (!text.p)
        text = dgm_json_str_member(dgm_json_get(v, DGM_STR("reasoning_content")), "text");
    langchain_blocks_add_reasoning(a, c, text);
    if (!yyjson_is_arr(summary))
        return;
    yyjson_arr_foreach (summary, i, n, one)
        langchain_blocks_add_reasoning(a, c, dgm_json_str_member(one, "text"));
}

static void langchain_blocks_read_call(dgm_arena *a, lc_content *c, const yyjson_val *v)
{
    c->calls.at = dgm_list_grow(a, c->calls.at, c->calls.n, sizeof *c->calls.at);
    c->calls.at[c->calls.n++] =
        (dgm_canon_call){.id = dgm_json_str_member(v, "id"),
                         .name = dgm_json_str_member(v, "name"),
                         .arguments = dgm_content_arguments(a, dgm_json_get(v, DGM_STR("args")))};
}

static bool is_file_type(dgm_str type)
{
    return dgm_str_is(type, "image") || dgm_str_is(type, "audio") || dgm_str_is(type, "video") ||
           dgm_str_is(type, "file") || dgm_str_is(type, "text-plain");
}

static dgm_canon_part_kind langchain_blocks_kind_of(dgm_str type, dgm_str media_type)
{
    return dgm_str_is(type, "image")   ? DGM_CANON_PART_IMAGE
           : dgm_str_is(type, "audio") ? DGM_CANON_PART_AUDIO
           : dgm_str_is(type, "video") ? DGM_CANON_PART_VIDEO
                                       : dgm_media_kind(media_type);
}

static dgm_code add_file(dgm_reader *r, lc_content *c, dgm_canon_part part, const yyjson_val *v,
                         const dgm_at *at)
{
    dgm_canon_source *s = &part.source;
    dgm_str filename = dgm_json_str_member(dgm_json_get(v, DGM_STR("extras")), "filename");
    if (!filename.p)
        filename = langchain_blocks_text_of(v, "filename", "name", NULL);
    if (s->kind == DGM_CANON_SOURCE_DATA) {
        if (!dgm_base64_normalise(r->arena, s->value, &s->value))
            return dgm_fail(r->err, DGM_BAD_PARAMS, at,
                            "the data of the block is not base64 (RFC 4648)");
        if (!s->mime_type.n)
            s->mime_type = DGM_STR("application/octet-stream");
    }
    if (filename.n) {
        dgm_member m = {DGM_STR("filename"), dgm_json_make_string(r->arena, filename)};
        part.metadata = dgm_json_object(r->arena, &m, 1);
    }
    langchain_blocks_add_part(r->arena, c, part);
    return DGM_OK;
}

/* {"type":"image","url"|"base64"|"data"|"file_id"|"fileId":...,"mime_type"|"mimeType":...} */
static dgm_code langchain_blocks_read_file(dgm_reader *r, lc_content *c, yyjson_val *v,
                                           const dgm_at *at)
{
    dgm_str type = dgm_json_str_member(v, "type"), url = dgm_json_str_member(v, "url");
    dgm_str data = langchain_blocks_text_of(v, "base64", "data", NULL),
            id = langchain_blocks_text_of(v, "file_id", "fileId", NULL);
    dgm_str media_type = langchain_blocks_text_of(v, "mime_type", "mimeType", NULL);
    dgm_canon_part part = {.kind = langchain_blocks_kind_of(type, media_type)};
    if (dgm_str_is(dgm_json_str_member(v, "source_type"), "text") &&
        dgm_json_str_member(v, "text").p) {
        langchain_blocks_add_text(r->arena, c, dgm_json_str_member(v, "text"));
        return DGM_OK;
    }
    if (dgm_str_is(dgm_json_str_member(v, "source_type"), "id") && !id.p)
        id = dgm_json_str_member(v, "id");
    part.source = (dgm_canon_source){.mime_type = media_type.n ? media_type : (dgm_str){0}};
    if (data.p) {
        part.source.kind = DGM_CANON_SOURCE_DATA;
        part.source.value = data;
    } else if (url.p || id.p) {
        part.source.kind = url.p ? DGM_CANON_SOURCE_URL : DGM_CANON_SOURCE_FILE;
        part.source.value = url.p ? url : id;
    } else if (dgm_json_str_member(v, "text").p) { /* text-plain */
        langchain_blocks_add_text(r->arena, c, dgm_json_str_member(v, "text"));
        return DGM_OK;
    } else {
        return dgm_fail(r->err, DGM_BAD_PARAMS, at,
                        "a block of type %.*s has url, base64 or file_id", DGM_P(type));
    }
    return add_file(r, c, part, v, at);
}

/* OpenAI's: {"type":"image_url","image_url":{"url":...}}, with a data URL or another. */
static dgm_code read_image_url(dgm_reader *r, lc_content *c, yyjson_val *v, const dgm_at *at)
{
    yyjson_val *holder = dgm_json_get(v, DGM_STR("image_url"));
    dgm_str url = yyjson_is_str(holder) ? dgm_json_str(holder) : dgm_json_str_member(holder, "url");
    const char *comma = url.n ? memchr(url.p, ',', url.n) : NULL;
    const char *semicolon = url.n ? memchr(url.p, ';', url.n) : NULL;
    dgm_canon_part part = {.kind = DGM_CANON_PART_IMAGE};
    if (!url.n)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "image_url"),
                        "missing: the block has an address in it");
    part.source = (dgm_canon_source){.kind = DGM_CANON_SOURCE_URL, .value = url};
    if (dgm_str_starts(url, DGM_STR("data:")) && comma && semicolon && semicolon < comma &&
        dgm_str_is(((dgm_str){semicolon, (size_t)(comma - semicolon)}), ";base64")) {
        part.source.kind = DGM_CANON_SOURCE_DATA;
        part.source.mime_type = (dgm_str){url.p + 5, (size_t)(semicolon - url.p) - 5};
        part.source.value = (dgm_str){comma + 1, url.n - (size_t)(comma - url.p) - 1};
    }
    return add_file(r, c, part, v, at);
}

static dgm_code read_block(dgm_reader *r, yyjson_val *v, const dgm_at *at, lc_content *c)
{
    dgm_str type = dgm_json_str_member(v, "type");
    if (yyjson_is_str(v))
        langchain_blocks_add_text(r->arena, c, dgm_json_str(v));
    else if (!yyjson_is_obj(v))
        return dgm_read_wrong(r, v, at, "a text or an object (content block)");
    else if (dgm_str_is(type, "text") || (!type.p && dgm_json_str_member(v, "text").p))
        langchain_blocks_add_text(r->arena, c, langchain_blocks_text_of(v, "text", NULL, NULL));
    else if (dgm_str_is(type, "reasoning") || dgm_str_is(type, "thinking") ||
             dgm_str_is(type, "reasoning_content"))
        read_reasoning(r->arena, c, v);
    else if (is_file_type(type))
        return langchain_blocks_read_file(r, c, v, at);
    else if (dgm_str_is(type, "image_url"))
        return read_image_url(r, c, v, at);
    else if (dgm_str_is(type, "tool_call"))
        langchain_blocks_read_call(r->arena, c, v);
    else if (!dgm_str_is(type, "tool_use") && !dgm_str_is(type, "tool_call_chunk"))
        r->n_unknown++; /* those two are in tool_calls as well */
    return DGM_OK;
}

dgm_code dgm_lc_read_content(dgm_reader *r, yyjson_val *v, const dgm_at *at, lc_content *ret)
{
    size_t i, n;
    yyjson_val *block;
    dgm_code rc;
    *ret = (lc_content){0};
    if (!v || yyjson_is_null(v))
        return DGM_OK;
    if (yyjson_is_str(v)) {
        langchain_blocks_add_text(r->arena, ret, dgm_json_str(v));
        return DGM_OK;
    }
    if (!yyjson_is_arr(v))
        return dgm_read_wrong(r, v, at, "a text or an array of blocks");
    if (yyjson_arr_size(v) > DGM_MAX_LIST_ITEMS)
        return dgm_fail(r->err, DGM_TOO_LARGE, at,
                        "%zu entries, more than the limit list_items of %d: send fewer at once",
                        yyjson_arr_size(v), DGM_MAX_LIST_ITEMS);
    yyjson_arr_foreach (v, i, n, block) {
        if ((rc = read_block(r, block, DGM_AT_I(at, i), ret)))
            return rc;
    }
    return DGM_OK;
}

dgm_canon_content dgm_lc_content_of(dgm_arena *a, const lc_content *c)
{
    if (c->has_files)
        return (dgm_canon_content){.kind = DGM_CANON_CONTENT_PARTS, .parts = c->parts};
    return (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT,
                               .text = c->parts.n ? dgm_content_join(a, c->parts.at, c->parts.n)
                                                  : DGM_STR("")};
}

dgm_str dgm_lc_answer_of(dgm_arena *a, const lc_content *c)
{
    dgm_canon_part *pieces = dgm_new_n(a, dgm_canon_part, c->parts.n + 1);
    for (size_t i = 0; i < c->parts.n; i++) {
        const dgm_canon_part *p = &c->parts.at[i];
        bool text = p->kind == DGM_CANON_PART_TEXT;
        dgm_part file = {.kind =
                             p->source.kind == DGM_CANON_SOURCE_DATA ? DGM_PART_RAW : DGM_PART_URL,
                         .content = p->source.value,
                         .filename = dgm_json_str_member(p->metadata, "filename"),
                         .media_type = p->source.mime_type};
        pieces[i] = (dgm_canon_part){.kind = DGM_CANON_PART_TEXT,
                                     .text = text ? p->text : dgm_content_file_text(a, &file),
                                     .own_line = !text};
    }
    return c->parts.n ? dgm_content_join(a, pieces, c->parts.n) : DGM_STR("");
}

/* ---- writing -------------------------------------------------------------------------------------------------- */

static void put_block(dgm_buf *b, const dgm_canon_part *p)
{
    static const char *const types[DGM_N_CANON_PART_KINDS] = {"text",  "text",  "image",
                                                              "audio", "video", "file"};
    static const char *const keys[] = {"\"url\"", "\"base64\"", "\"url\"", "\"file_id\""};
    dgm_str filename = dgm_json_str_member(p->metadata, "filename");
    dgm_buf_printf(b, "%s{\"type\":\"%s\"", b->p[b->n - 1] == '[' ? "" : ",", types[p->kind]);
    if (p->kind == DGM_CANON_PART_TEXT) {
        dgm_lc_put_member(b, "\"text\"", p->text);
    } else {
        dgm_lc_put_member(b, keys[p->source.kind], p->source.value);
        if (p->source.mime_type.n)
            dgm_lc_put_member(b, "\"mime_type\"", p->source.mime_type);
    }
    if (filename.n) {
        dgm_buf_add_lit(b, ",\"extras\":{\"filename\":");
        dgm_json_put_str(b, filename);
        dgm_buf_add_char(b, '}');
    }
    dgm_buf_add_char(b, '}');
}

void dgm_lc_put_content(dgm_buf *b, const dgm_canon_content *c, const dgm_strs *reasoning)
{
    bool blocks = c->kind == DGM_CANON_CONTENT_PARTS || (reasoning && reasoning->n);
    if (!blocks) {
        dgm_json_put_str(b, c->text);
        return;
    }
    dgm_buf_add_char(b, '[');
    for (size_t i = 0; reasoning && i < reasoning->n; i++) {
        dgm_buf_add_str(b, i ? DGM_STR(",") : DGM_STR(""));
        dgm_buf_add_lit(b, "{\"type\":\"reasoning\",\"reasoning\":");
        dgm_json_put_str(b, reasoning->at[i]);
        dgm_buf_add_char(b, '}');
    }
    if (c->kind == DGM_CANON_CONTENT_TEXT && c->text.n)
        put_block(b, &(dgm_canon_part){.kind = DGM_CANON_PART_TEXT, .text = c->text});
    for (size_t i = 0; c->kind == DGM_CANON_CONTENT_PARTS && i < c->parts.n; i++)
        put_block(b, &c->parts.at[i]);
    dgm_buf_add_char(b, ']');
}
