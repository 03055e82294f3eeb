/*
 * lib/direct_from.c - from chat messages to A2A messages.
 *
 * What must stay true: one message in, one out; the way back through direct.c gives the same chat
 * message again, except for the rows of direct_losses.c. It cannot fail: what has no better place
 * becomes a data part that holds it as it was.
 */
#include "base/limits.h"
#include "lib/direct_int.h"
#include "model/stamp.h"

/* ---- JSON that is made --------------------------------------------------------------------------------- */

/*
 * Values that we put inside others end deeper than they were: past this they stay text. The rest of
 * json_depth is for the message, task and envelope around them.
 */
#define MAX_DEPTH (DGM_MAX_JSON_DEPTH - 32)

static size_t depth_of(yyjson_val *v)
{
    size_t deepest = 0, i, n;
    yyjson_val *key, *e;
    if (yyjson_is_arr(v)) {
        yyjson_arr_foreach (v, i, n, e) {
            size_t d = depth_of(e);
            deepest = d > deepest ? d : deepest;
        }
        return deepest + 1;
    }
    if (yyjson_is_obj(v)) {
        yyjson_obj_foreach (v, i, n, key, e) {
            size_t d = depth_of(e);
            deepest = d > deepest ? d : deepest;
        }
        return deepest + 1;
    }
    return 0;
}

static yyjson_val *made(dgm_arena *a, dgm_buf *b)
{
    yyjson_val *v = dgm_json_parse_trusted(a, dgm_buf_str(b));
    dgm_buf_done(b);
    return v;
}

static void direct_from_put_key(dgm_buf *b, const char *key)
{
    if (b->n && b->p[b->n - 1] != '{')
        dgm_buf_add_char(b, ',');
    dgm_json_put_str(b, dgm_str_from(key));
    dgm_buf_add_char(b, ':');
}

/* Nothing when the text is absent. */
static void direct_from_put_text(dgm_buf *b, const char *key, dgm_str text)
{
    if (!text.p)
        return;
    direct_from_put_key(b, key);
    dgm_json_put_str(b, text);
}

/* Marks of a part: pairs of key and text, absent ones left out; NULL without marks. */
static const dgm_json *marks(dgm_arena *a, dgm_str part, dgm_str detail, dgm_str file_id)
{
    dgm_buf b;
    if (!part.p && !detail.p && !file_id.p)
        return NULL;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_char(&b, '{');
    direct_from_put_text(&b, DGM_META_PART, part);
    direct_from_put_text(&b, DGM_META_DETAIL, detail);
    direct_from_put_text(&b, DGM_META_FILE_ID, file_id);
    dgm_buf_add_char(&b, '}');
    return made(a, &b);
}

static const dgm_json *mark(dgm_arena *a, const char *part)
{
    return marks(a, dgm_str_from(part), (dgm_str){0}, (dgm_str){0});
}

/* ---- content parts --------------------------------------------------------------------------------------- */

/* Must not be read as anything else: not as too deep, not as calls or results. */
static bool can_be_data(const yyjson_val *v)
{
    return v && depth_of((yyjson_val *)(uintptr_t)v) <= MAX_DEPTH &&
           !dgm_json_get(v, DGM_STR(DGM_DATA_CALLS)) && !dgm_json_get(v, DGM_STR(DGM_DATA_RESULTS));
}

/* A part with no place in A2A, as it is, or as its text. */
static dgm_part other_part(dgm_arena *a, const dgm_chat_part *from)
{
    dgm_part p = {.kind = DGM_PART_DATA, .data = from->value, .metadata = mark(a, "other")};
    if (can_be_data(p.data))
        return p;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_writer w = {.out = &b, .format = DGM_FORMAT_CHAT};
    dgm_shape_write(&w, &dgm_chat_part_shape, from);
    p.data = dgm_json_parse_trusted(a, dgm_buf_str(&b));
    if (!can_be_data(p.data)) {
        dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
        dgm_buf_clear(&b);
        dgm_json_put_str(&b, text);
        p.data = dgm_json_parse_trusted(a, dgm_buf_str(&b));
    }
    dgm_buf_done(&b);
    return p;
}

/* image_url and video_url. An address seldom tells its media type: "image/" plus "*" then says at
 * least what it is. */
static dgm_part media_part(dgm_arena *a, const dgm_chat_part *from, dgm_str prefix, dgm_str any)
{
    dgm_part p = {.kind = DGM_PART_RAW};
    if (dgm_media_read_data_url(a, from->url, &p.media_type, &p.content))
        return p;
    p = (dgm_part){.kind = DGM_PART_URL, .content = from->url};
    p.media_type = dgm_media_type_of_name(from->url);
    if (!dgm_media_is(p.media_type, prefix))
        p.media_type = any;
    return p;
}

static dgm_part part_from(dgm_arena *a, const dgm_chat_part *from, dgm_role role)
{
    dgm_part p = {0};
    switch (from->kind) {
    case DGM_CHAT_PART_TEXT: return (dgm_part){.kind = DGM_PART_TEXT, .content = from->text};
    case DGM_CHAT_PART_REFUSAL:
        return (dgm_part){
            .kind = DGM_PART_TEXT, .content = from->text, .metadata = mark(a, "refusal")};
    case DGM_CHAT_PART_IMAGE: p = media_part(a, from, DGM_STR("image/"), DGM_STR("image/*")); break;
    case DGM_CHAT_PART_VIDEO: p = media_part(a, from, DGM_STR("video/"), DGM_STR("video/*")); break;
    case DGM_CHAT_PART_AUDIO:
    case DGM_CHAT_PART_FILE:
        p = (dgm_part){.kind = DGM_PART_RAW, .filename = from->filename};
        if (!dgm_chat_part_bytes(a, from, &p.content, &p.media_type))
            return other_part(a, from);
        break;
    case DGM_CHAT_PART_OTHER: return other_part(a, from);
    }
    /* Marked where the way back would take it for something else, or give the file a name. */
    bool odd = dgm_direct_part_kind(&p, role) != from->kind ||
               (from->kind == DGM_CHAT_PART_FILE && !from->filename.n);
    dgm_str kind = odd ? dgm_str_from(dgm_chat_part_name(from->kind)) : (dgm_str){0};
    p.metadata = marks(a, kind, from->detail, from->file_id);
    return p;
}

/* ---- calls and results ------------------------------------------------------------------------------------- */

/*
 * An object where its text is what we would write for it, so that the way back gives the same bytes;
 * otherwise the text. What models write by themselves is mostly compact, and stays text.
 */
static void put_arguments(dgm_arena *a, dgm_buf *b, dgm_str text)
{
    yyjson_val *v = NULL;
    bool same = false;
    if (text.n && text.p[0] == '{' &&
        !dgm_json_read(a, text, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, NULL) &&
        depth_of(v) <= MAX_DEPTH) {
        dgm_buf again;
        dgm_buf_init(&again, SIZE_MAX);
        dgm_json_put_spaced(&again, v);
        same = dgm_str_eq(dgm_buf_str(&again), text);
        dgm_buf_done(&again);
    }
    if (same)
        dgm_json_put(b, v);
    else
        dgm_json_put_str(b, text);
}

static void direct_from_put_call(dgm_arena *a, dgm_buf *b, const dgm_chat_call *call, dgm_str id)
{
    dgm_buf_add_char(b, '{');
    direct_from_put_text(b, "call_id", id);
    direct_from_put_text(b, "name", call->name);
    direct_from_put_key(b, "arguments");
    if (call->kind == DGM_CHAT_CALL_CUSTOM) {
        dgm_json_put_str(b, call->arguments);
        direct_from_put_text(b, "type", DGM_STR("custom"));
    } else {
        put_arguments(a, b, call->arguments);
    }
    dgm_buf_add_char(b, '}');
}

static dgm_part calls_part(dgm_arena *a, const dgm_chat_message *m)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"" DGM_DATA_CALLS "\":[");
    for (size_t i = 0; i < m->tool_calls.n; i++) {
        if (i)
            dgm_buf_add_char(&b, ',');
        direct_from_put_call(a, &b, &m->tool_calls.at[i], m->tool_calls.at[i].id);
    }
    dgm_buf_add_lit(&b, "]}");
    return (dgm_part){.kind = DGM_PART_DATA, .data = made(a, &b)};
}

/* The legacy call has no id; its result is found by the name, so the name is the id of both. */
static dgm_part legacy_call_part(dgm_arena *a, const dgm_chat_call *call)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"" DGM_DATA_CALLS "\":[");
    direct_from_put_call(a, &b, call, call->name);
    dgm_buf_add_lit(&b, "]}");
    return (dgm_part){
        .kind = DGM_PART_DATA, .data = made(a, &b), .metadata = mark(a, "function_call")};
}

/* Text that parts of nothing but text make together; false when there are others. */
static bool joined(const dgm_chat_content *c, dgm_buf *b)
{
    if (c->kind == DGM_CHAT_CONTENT_TEXT)
        dgm_buf_add_str(b, c->text);
    for (size_t i = 0; c->kind == DGM_CHAT_CONTENT_PARTS && i < c->parts.n; i++) {
        if (c->parts.at[i].kind != DGM_CHAT_PART_TEXT)
            return false;
        dgm_buf_add_str(b, c->parts.at[i].text);
    }
    return true;
}

static void put_parts(dgm_buf *b, const dgm_chat_parts *parts)
{
    dgm_writer w = {.out = b, .format = DGM_FORMAT_CHAT};
    dgm_buf_add_char(b, '[');
    for (size_t i = 0; i < parts->n; i++) {
        if (i)
            dgm_buf_add_char(b, ',');
        dgm_shape_write(&w, &dgm_chat_part_shape, &parts->at[i]);
    }
    dgm_buf_add_char(b, ']');
}

static dgm_part result_part(dgm_arena *a, const dgm_chat_message *m)
{
    dgm_buf b, text;
    dgm_part p = {.kind = DGM_PART_DATA};
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_init(&text, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"" DGM_DATA_RESULTS "\":[{");
    direct_from_put_text(&b, "call_id", m->role == DGM_CHAT_FUNCTION ? m->name : m->tool_call_id);
    direct_from_put_text(&b, "name", m->name);
    direct_from_put_key(&b, "output");
    if (joined(&m->content, &text)) {
        dgm_json_put_str(&b, dgm_buf_str(&text));
    } else {
        dgm_buf_clear(&text);
        put_parts(&text, &m->content.parts);
        yyjson_val *list = dgm_json_parse_trusted(a, dgm_buf_str(&text));
        if (depth_of(list) <= MAX_DEPTH) {
            dgm_json_put(&b, list);
            p.metadata = mark(a, "content");
        } else {
            dgm_json_put_str(&b, dgm_buf_str(&text));
        }
    }
    dgm_buf_add_lit(&b, "}]}");
    dgm_buf_done(&text);
    p.data = made(a, &b);
    return p;
}

/* ---- messages ------------------------------------------------------------------------------------------------ */

static void direct_from_add_content(dgm_arena *a, const dgm_chat_message *m, dgm_message *out)
{
    const dgm_chat_content *c = &m->content;
    for (size_t i = 0; c->kind == DGM_CHAT_CONTENT_PARTS && i < c->parts.n; i++)
        out->parts.at[out->parts.n++] = part_from(a, &c->parts.at[i], out->role);
    if (c->kind == DGM_CHAT_CONTENT_TEXT && c->text.n)
        out->parts.at[out->parts.n++] = (dgm_part){.kind = DGM_PART_TEXT, .content = c->text};
}

static const dgm_json *metadata_of(dgm_arena *a, const dgm_chat_message *m, const char *type)
{
    bool foreign =
        m->role == DGM_CHAT_SYSTEM || m->role == DGM_CHAT_DEVELOPER || m->role == DGM_CHAT_FUNCTION;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_char(&b, '{');
    direct_from_put_text(&b, DIRECT_CANONICAL_TYPE, dgm_str_from(type));
    if (foreign)
        direct_from_put_text(&b, DGM_META_ROLE, dgm_str_from(dgm_chat_role_name(m->role)));
    direct_from_put_text(&b, DGM_META_NAME, m->name);
    direct_from_put_text(&b, DGM_META_REASONING, m->reasoning_content);
    dgm_buf_add_char(&b, '}');
    return made(a, &b);
}

void dgm_direct_from_chat(dgm_arena *a, const dgm_chat_message *m, dgm_mint *mint,
                          dgm_message *ret_message)
{
    /* text or refusal alone, calls, the legacy call: at most four beside the list of parts */
    size_t room = 4 + (m->content.kind == DGM_CHAT_CONTENT_PARTS ? m->content.parts.n : 0);
    dgm_message out = {
        .message_id = dgm_mint_id(mint, a),
        .role = m->role == DGM_CHAT_ASSISTANT ? DGM_ROLE_AGENT : DGM_ROLE_USER,
        .parts = {dgm_new_n(a, dgm_part, room), 0},
    };
    if (m->role == DGM_CHAT_TOOL || m->role == DGM_CHAT_FUNCTION)
        out.parts.at[out.parts.n++] = result_part(a, m);
    else
        direct_from_add_content(a, m, &out);
    if (m->refusal.p)
        out.parts.at[out.parts.n++] = (dgm_part){
            .kind = DGM_PART_TEXT, .content = m->refusal, .metadata = mark(a, "message_refusal")};
    if (m->tool_calls.n)
        out.parts.at[out.parts.n++] = calls_part(a, m);
    if (m->function_call)
        out.parts.at[out.parts.n++] = legacy_call_part(a, m->function_call);
    if (!out.parts.n) /* A2A has no message without parts */
        out.parts.at[out.parts.n++] = (dgm_part){.kind = DGM_PART_TEXT, .content = DGM_STR("")};
    out.metadata = metadata_of(a, m, dgm_message_canonical_type(&out));
    *ret_message = out;
}
