/* wire/chat/chat_to_canon.c - chat messages as canonical ones. See chat_messages.h for `extra`. */
#include "base/list.h"
#include "canon/media.h"
#include "canon/message_content.h"
#include "wire/chat/chat_messages.h"

/* ---- extra ------------------------------------------------------------------------------------ */

const dgm_json *dgm_chat_extra(const dgm_extra *x, const char *key)
{
    for (size_t i = 0; x && x->format == DGM_FORMAT_CHAT && i < x->n; i++) {
        if (dgm_str_eq(x->at[i].key, dgm_str_from(key)))
            return x->at[i].value;
    }
    return NULL;
}

dgm_str dgm_chat_extra_text(const dgm_extra *x, const char *key)
{
    const dgm_json *v = dgm_chat_extra(x, key);
    return yyjson_is_str((yyjson_val *)(uintptr_t)v) ? dgm_json_str(v) : (dgm_str){0};
}

const dgm_extra *dgm_chat_with(dgm_arena *a, const dgm_extra *x, const char *key,
                               const dgm_json *value)
{
    if (!value)
        return x;
    size_t n = x ? x->n : 0;
    dgm_extra *more = dgm_new(a, dgm_extra);
    *more = (dgm_extra){DGM_FORMAT_CHAT, dgm_new_n(a, dgm_member, n + 1), n + 1};
    if (n)
        memcpy(more->at, x->at, n * sizeof *x->at);
    more->at[n] = (dgm_member){dgm_str_from(key), value};
    return more;
}

static const dgm_extra *with_text(dgm_arena *a, const dgm_extra *x, const char *key, dgm_str text)
{
    return text.p ? dgm_chat_with(a, x, key, dgm_json_make_string(a, text)) : x;
}

/* ---- files ------------------------------------------------------------------------------------------------- */

static const dgm_json *named(dgm_arena *a, dgm_str filename)
{
    if (!filename.n)
        return NULL;
    dgm_member m = {DGM_STR("filename"), dgm_json_make_string(a, filename)};
    return dgm_json_object(a, &m, 1);
}

static dgm_canon_source from_url(dgm_arena *a, dgm_str url)
{
    dgm_canon_source s = {.kind = DGM_CANON_SOURCE_DATA};
    if (dgm_media_read_data_url(a, url, &s.mime_type, &s.value)) {
        if (!s.mime_type.n)
            s.mime_type = DGM_STR("application/octet-stream");
        return s;
    }
    return (dgm_canon_source){
        .kind = DGM_CANON_SOURCE_URL, .value = url, .mime_type = dgm_media_type_of_name(url)};
}

bool dgm_chat_part_bytes(dgm_arena *a, const dgm_chat_part *p, dgm_str *ret_base64,
                         dgm_str *ret_media_type)
{
    dgm_str bytes = p->kind == DGM_CHAT_PART_AUDIO ? p->data : p->file_data, base64, type = {0};
    if (!bytes.p)
        return false;
    bool is_url = dgm_media_read_data_url(a, bytes, &type, &base64);
    if (!is_url && !dgm_base64_normalise(a, bytes, &base64))
        return false;
    if (p->kind != DGM_CHAT_PART_AUDIO)
        *ret_media_type = is_url ? type : dgm_media_type_of_name(p->filename);
    else if (dgm_str_is(p->format, "mp3"))
        *ret_media_type = DGM_STR("audio/mpeg");
    else if (p->format.n)
        *ret_media_type = dgm_arena_join(a, DGM_STR("audio/"), p->format);
    *ret_base64 = base64;
    return true;
}

static bool from_file(dgm_arena *a, const dgm_chat_part *p, dgm_canon_source *ret)
{
    dgm_canon_source s = {.kind = DGM_CANON_SOURCE_DATA};
    if (!p->file_data.p && p->file_id.n) {
        *ret = (dgm_canon_source){
            .kind = DGM_CANON_SOURCE_FILE, .value = p->file_id, .provider = DGM_STR("openai")};
        return true;
    }
    if (!dgm_chat_part_bytes(a, p, &s.value, &s.mime_type))
        return false;
    if (!s.mime_type.n)
        s.mime_type = DGM_STR("application/octet-stream");
    s.extra = with_text(a, NULL, "file_id", p->file_id);
    *ret = s;
    return true;
}

/* ---- parts --------------------------------------------------------------------------------------------------- */

/* Unknown to other formats: they get its JSON as a line of text. */
static dgm_canon_part stranger(dgm_arena *a, const dgm_chat_part *p)
{
    const dgm_json *value = p->value;
    if (!value) {
        dgm_buf b;
        dgm_buf_init(&b, SIZE_MAX);
        dgm_writer w = {.out = &b, .format = DGM_FORMAT_CHAT};
        dgm_shape_write(&w, &dgm_chat_part_shape, p);
        value = dgm_json_parse_trusted(a, dgm_buf_str(&b));
        dgm_buf_done(&b);
    }
    return (dgm_canon_part){.kind = DGM_CANON_PART_TEXT,
                            .text = dgm_content_spaced_json(a, value),
                            .own_line = true,
                            .extra = dgm_chat_with(a, NULL, "type", value)};
}

static dgm_canon_part part_of(dgm_arena *a, const dgm_chat_part *p)
{
    dgm_canon_part out = {.extra = p->extra};
    switch (p->kind) {
    case DGM_CHAT_PART_TEXT:
        out.kind = DGM_CANON_PART_TEXT;
        out.text = p->text;
        return out;
    case DGM_CHAT_PART_IMAGE:
        out.kind = DGM_CANON_PART_IMAGE;
        out.source = from_url(a, p->url);
        out.source.extra = with_text(a, p->inner_extra, "detail", p->detail);
        return out;
    case DGM_CHAT_PART_VIDEO:
        out.kind = DGM_CANON_PART_VIDEO;
        out.source = from_url(a, p->url);
        out.source.extra = p->inner_extra;
        out.extra = with_text(a, p->extra, "type", DGM_STR("video_url"));
        return out;
    case DGM_CHAT_PART_AUDIO:
        out.kind = DGM_CANON_PART_AUDIO;
        out.source =
            (dgm_canon_source){.kind = DGM_CANON_SOURCE_DATA, .mime_type = DGM_STR("audio/wav")};
        if (!dgm_chat_part_bytes(a, p, &out.source.value, &out.source.mime_type))
            return stranger(a, p);
        out.source.extra = p->inner_extra;
        return out;
    case DGM_CHAT_PART_FILE:
        out.kind = DGM_CANON_PART_DOCUMENT;
        if (!from_file(a, p, &out.source))
            return stranger(a, p);
        if (!out.source.extra)
            out.source.extra = p->inner_extra;
        out.metadata = named(a, p->filename);
        return out;
    case DGM_CHAT_PART_REFUSAL:
    case DGM_CHAT_PART_OTHER: break;
    }
    return stranger(a, p);
}

static dgm_canon_parts parts_of(dgm_arena *a, const dgm_chat_parts *parts)
{
    dgm_canon_parts out = {dgm_new_n(a, dgm_canon_part, parts->n), parts->n};
    for (size_t i = 0; i < parts->n; i++)
        out.at[i] = part_of(a, &parts->at[i]);
    return out;
}

static dgm_canon_content chat_to_canon_content_of(dgm_arena *a, const dgm_chat_message *m)
{
    const dgm_chat_content *c = &m->content;
    bool has_parts = m->role == DGM_CHAT_USER || m->role == DGM_CHAT_TOOL;
    dgm_canon_content out = {.kind = DGM_CANON_CONTENT_TEXT, .text = c->text};
    switch (c->kind) {
    case DGM_CHAT_CONTENT_ABSENT:
    case DGM_CHAT_CONTENT_NULL:
        out.text = DGM_STR("");
        if (m->role == DGM_CHAT_ASSISTANT)
            out.kind = DGM_CANON_CONTENT_ABSENT;
        return out;
    case DGM_CHAT_CONTENT_TEXT: return out;
    case DGM_CHAT_CONTENT_PARTS: break;
    }
    out.parts = parts_of(a, &c->parts);
    if (has_parts) {
        out.kind = DGM_CANON_CONTENT_PARTS;
        return out;
    }
    /* other roles have only texts: other content has a line of its own */
    for (size_t i = 0; i < out.parts.n; i++) {
        dgm_canon_part *p = &out.parts.at[i];
        if (c->parts.at[i].kind == DGM_CHAT_PART_REFUSAL)
            *p = (dgm_canon_part){.kind = DGM_CANON_PART_TEXT, .text = c->parts.at[i].text};
        else if (p->kind != DGM_CANON_PART_TEXT)
            *p = stranger(a, &c->parts.at[i]);
    }
    out.text = dgm_content_join(a, out.parts.at, out.parts.n);
    out.parts = (dgm_canon_parts){0};
    return out;
}

/* ---- calls --------------------------------------------------------------------------------------------------- */

static dgm_canon_call call_of(dgm_arena *a, const dgm_chat_call *c, bool legacy)
{
    dgm_canon_call out = {.id = legacy ? c->name : c->id,
                          .name = c->name,
                          .arguments = c->arguments.p ? c->arguments : DGM_STR(""),
                          .extra = c->extra,
                          .function_extra = c->inner_extra};
    if (legacy)
        out.extra = with_text(a, c->extra, "type", DGM_STR("function_call"));
    else if (c->kind == DGM_CHAT_CALL_CUSTOM)
        out.extra = with_text(a, c->extra, "type", DGM_STR("custom"));
    return out;
}

static dgm_canon_calls calls_of(dgm_arena *a, const dgm_chat_message *m)
{
    dgm_canon_calls out = {dgm_new_n(a, dgm_canon_call, m->tool_calls.n + 1), 0};
    for (size_t i = 0; i < m->tool_calls.n; i++)
        out.at[out.n++] = call_of(a, &m->tool_calls.at[i], false);
    if (m->function_call)
        out.at[out.n++] = call_of(a, m->function_call, true);
    return out.n ? out : (dgm_canon_calls){0};
}

/* ---- messages -------------------------------------------------------------------------------------------------- */

static dgm_str new_id(dgm_reader *r)
{
    return r->mint ? dgm_mint_id(r->mint, r->arena) : (dgm_str){0};
}

static dgm_canon_message chat_to_canon_message_of(dgm_reader *r, const dgm_chat_message *m)
{
    static const dgm_canon_role roles[DGM_N_CHAT_ROLES] = {
        [DGM_CHAT_SYSTEM] = DGM_CANON_SYSTEM, [DGM_CHAT_DEVELOPER] = DGM_CANON_DEVELOPER,
        [DGM_CHAT_USER] = DGM_CANON_USER,     [DGM_CHAT_ASSISTANT] = DGM_CANON_ASSISTANT,
        [DGM_CHAT_TOOL] = DGM_CANON_TOOL,     [DGM_CHAT_FUNCTION] = DGM_CANON_TOOL,
    };
    dgm_canon_message out = {.role = roles[m->role],
                             .id = new_id(r),
                             .name = m->name,
                             .content = chat_to_canon_content_of(r->arena, m),
                             .tool_calls = calls_of(r->arena, m),
                             .tool_call_id = m->tool_call_id,
                             .extra = m->extra};
    if (m->role == DGM_CHAT_FUNCTION) {
        out.tool_call_id = m->name;
        out.extra = with_text(r->arena, out.extra, "role", DGM_STR("function"));
    } else if (m->role != DGM_CHAT_TOOL) {
        out.tool_call_id = (dgm_str){0};
    }
    if (m->refusal.p) {
        out.extra = with_text(r->arena, out.extra, "refusal", m->refusal);
        if (out.content.kind == DGM_CANON_CONTENT_ABSENT)
            out.content = (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT, .text = m->refusal};
    }
    return out;
}

dgm_code dgm_chat_read_messages(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                dgm_canon_messages *ret)
{
    dgm_chat_messages list;
    dgm_canon_messages out = {0};
    dgm_code rc;
    if ((rc = dgm_chat_read(r, v, at, &list)))
        return rc;
    for (size_t i = 0; i < list.n; i++) {
        const dgm_chat_message *m = &list.at[i];
        if (m->reasoning_content.n) {
            out.at = dgm_list_grow(r->arena, out.at, out.n, sizeof *out.at);
            out.at[out.n++] = (dgm_canon_message){
                .role = DGM_CANON_REASONING,
                .id = new_id(r),
                .content = {.kind = DGM_CANON_CONTENT_TEXT, .text = m->reasoning_content}};
        }
        out.at = dgm_list_grow(r->arena, out.at, out.n, sizeof *out.at);
        out.at[out.n++] = chat_to_canon_message_of(r, m);
    }
    *ret = out;
    return DGM_OK;
}
