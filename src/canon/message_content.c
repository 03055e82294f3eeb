/* canon/message_content.c - see message_content.h. */
#include "canon/message_content.h"
#include "base/limits.h"
#include "canon/media.h"
#include "model/approval.h"
#include "model/calls.h"
#include "json/shape.h"

/* ---- values ------------------------------------------------------------------------------------------ */

static bool is_text(const dgm_json *v)
{
    return yyjson_is_str((yyjson_val *)(uintptr_t)v);
}

dgm_str dgm_content_spaced_json(dgm_arena *a, const dgm_json *v)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_json_put_spaced(&b, v);
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

dgm_str dgm_content_value_text(dgm_arena *a, const dgm_json *value)
{
    if (!value)
        return (dgm_str){0};
    return is_text(value) ? dgm_json_str(value) : dgm_content_spaced_json(a, value);
}

dgm_str dgm_content_arguments(dgm_arena *a, const dgm_json *arguments)
{
    return arguments ? dgm_content_value_text(a, arguments) : DGM_STR("{}");
}

const dgm_json *dgm_content_arguments_value(dgm_arena *a, dgm_str text)
{
    yyjson_val *v;
    if (text.n && text.p[0] == '{' &&
        !dgm_json_read(a, text, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, NULL) &&
        yyjson_is_obj(v) && dgm_str_eq(dgm_content_spaced_json(a, v), text))
        return v;
    return dgm_json_make_string(a, text);
}

/* ---- calls and results in data ---------------------------------------------------------------------------- */

static dgm_code read_arguments(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    if (!yyjson_is_obj(v) && !yyjson_is_str(v))
        return dgm_read_wrong(r, v, at, "an object or its text");
    ((dgm_content_call *)object)->arguments = v;
    return DGM_OK;
}
static const dgm_custom arguments = {read_arguments, NULL};

static dgm_code read_name(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    (void)r, (void)at;
    if (yyjson_is_str(v)) /* a result does not need it: a value of another type is ignored */
        ((dgm_content_result *)object)->name = dgm_json_str(v);
    return DGM_OK;
}
static const dgm_custom name_of_result = {read_name, NULL};

static const dgm_field call_fields[] = {
    DGM_F(dgm_content_call, call_id, "call_id", STR, DGM_REQUIRED | DGM_NONEMPTY),
    DGM_F(dgm_content_call, name, "name", STR, DGM_REQUIRED | DGM_NONEMPTY),
    DGM_F_CUSTOM("arguments", 0, &arguments),
    DGM_F(dgm_content_call, type, "type", JSON, 0),
};
static const dgm_shape call_shape = {
    .what = "tool call",
    .size = sizeof(dgm_content_call),
    DGM_FIELDS(call_fields),
    .extra_at = DGM_NOWHERE,
    .tag_at = DGM_NOWHERE,
};

static const dgm_field result_fields[] = {
    DGM_F(dgm_content_result, call_id, "call_id", STR, DGM_REQUIRED | DGM_NONEMPTY),
    DGM_F_CUSTOM("name", 0, &name_of_result),
    DGM_F(dgm_content_result, output, "output", JSON, 0),
};
static const dgm_shape result_shape = {
    .what = "tool result",
    .size = sizeof(dgm_content_result),
    DGM_FIELDS(result_fields),
    .extra_at = DGM_NOWHERE,
    .tag_at = DGM_NOWHERE,
};

static const dgm_field tool_fields[] = {
    DGM_F_OF(dgm_content_tools, results, DGM_DATA_RESULTS, LIST, 0, &result_shape),
    DGM_F_OF(dgm_content_tools, calls, DGM_DATA_CALLS, LIST, 0, &call_shape),
};
static const dgm_shape agent_data = {
    .what = "data of tools",
    .size = sizeof(dgm_content_tools),
    DGM_FIELDS(tool_fields),
    .extra_at = DGM_NOWHERE,
    .tag_at = DGM_NOWHERE,
};
static const dgm_shape user_data = {
    .what = "data of tools",
    .size = sizeof(dgm_content_tools),
    .fields = tool_fields,
    .n_fields = 1,
    .extra_at = DGM_NOWHERE,
    .tag_at = DGM_NOWHERE,
};

dgm_code dgm_content_read_tools(dgm_arena *a, const dgm_part *p, dgm_role role, const dgm_at *at,
                                dgm_content_tools *ret_tools, dgm_err *err)
{
    dgm_reader r = {.arena = a, .err = err};
    return dgm_shape_read(&r, role == DGM_ROLE_AGENT ? &agent_data : &user_data,
                          (yyjson_val *)(uintptr_t)p->data, at, ret_tools);
}

yyjson_val *dgm_content_data_member(const dgm_part *p, const char *name)
{
    yyjson_val *v = p->kind == DGM_PART_DATA ? dgm_json_get(p->data, dgm_str_from(name)) : NULL;
    return yyjson_is_null(v) ? NULL : v;
}

/* ---- what a message is being made of -------------------------------------------------------------------------- */

struct reading {
    dgm_arena *a;
    const dgm_message *m;
    dgm_err *err;
    dgm_content *said;
    const dgm_part *part; /* being read */
    bool other;           /* the message has content, or an empty list of calls */
};

static dgm_canon_part *message_content_add_piece(struct reading *k, dgm_canon_part_kind kind,
                                                 bool own_line)
{
    dgm_content *s = k->said;
    s->piece_from = dgm_list_grow(k->a, s->piece_from, s->pieces.n, sizeof *s->piece_from);
    s->pieces.at = dgm_list_grow(k->a, s->pieces.at, s->pieces.n, sizeof *s->pieces.at);
    s->piece_from[s->pieces.n] = k->part;
    dgm_canon_part *p = &s->pieces.at[s->pieces.n++];
    p->kind = kind;
    p->own_line = own_line;
    k->other = true;
    return p;
}

/* ---- files ----------------------------------------------------------------------------------------------------- */

/* A name in brackets must not end them, an address in parentheses neither. */
static void put_link(dgm_buf *b, dgm_str name, dgm_str url)
{
    static const char hex[] = "0123456789ABCDEF";
    dgm_buf_add_char(b, '[');
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] && strchr("[]\\", name.p[i]))
            dgm_buf_add_char(b, '\\');
        dgm_buf_add_char(b, name.p[i] == '\n' || name.p[i] == '\r' ? ' ' : name.p[i]);
    }
    dgm_buf_add_lit(b, "](");
    for (size_t i = 0; i < url.n; i++) {
        unsigned char c = (unsigned char)url.p[i];
        if (c <= ' ' || c == '(' || c == ')' || c == '<' || c == '>') {
            dgm_buf_add_char(b, '%');
            dgm_buf_add_char(b, hex[c >> 4]);
            dgm_buf_add_char(b, hex[c & 15]);
        } else {
            dgm_buf_add_char(b, url.p[i]);
        }
    }
    dgm_buf_add_char(b, ')');
}

static size_t decoded_size(dgm_str base64)
{
    size_t n = base64.n / 4 * 3;
    for (size_t i = base64.n; i && base64.n - i < 2 && base64.p[i - 1] == '='; i--)
        n--;
    return n;
}

dgm_str dgm_content_file_text(dgm_arena *a, const dgm_part *p)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_str media_type = dgm_media_type(p);
    if (p->kind == DGM_PART_RAW) {
        dgm_buf_add_char(&b, '[');
        dgm_buf_add_str(&b, p->filename.n ? p->filename : DGM_STR("file"));
        dgm_buf_add_lit(&b, " (");
        dgm_buf_add_str(&b, media_type.n ? media_type : DGM_STR("application/octet-stream"));
        dgm_buf_printf(&b, ", %zu bytes)]", decoded_size(p->content));
    } else if (dgm_media_is(media_type, DGM_STR("image/"))) {
        dgm_buf_add_char(&b, '!');
        put_link(&b, p->filename, p->content);
    } else if (p->filename.n) {
        put_link(&b, p->filename, p->content);
    } else {
        dgm_buf_add_str(&b, p->content);
    }
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static void add_file(struct reading *k, const dgm_part *p)
{
    dgm_str media_type = dgm_media_type(p);
    if (k->m->role == DGM_ROLE_AGENT) {
        message_content_add_piece(k, DGM_CANON_PART_TEXT, true)->text =
            dgm_content_file_text(k->a, p);
        return;
    }
    dgm_canon_part *part = message_content_add_piece(k, dgm_media_kind(media_type), false);
    bool raw = p->kind == DGM_PART_RAW;
    part->source.kind = raw ? DGM_CANON_SOURCE_DATA : DGM_CANON_SOURCE_URL;
    part->source.value = p->content;
    part->source.mime_type = media_type.n ? media_type
                             : raw        ? DGM_STR("application/octet-stream")
                                          : (dgm_str){0};
    if (p->filename.n) {
        dgm_member m = {DGM_STR("filename"), dgm_json_make_string(k->a, p->filename)};
        part->metadata = dgm_json_object(k->a, &m, 1);
    }
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

/* A user's calls, beside results: the rest of that data becomes text. */
static void add_calls_as_text(struct reading *k, yyjson_val *calls)
{
    dgm_member m = {DGM_STR(DGM_DATA_CALLS), calls};
    message_content_add_piece(k, DGM_CANON_PART_TEXT, true)->text =
        dgm_content_spaced_json(k->a, dgm_json_object(k->a, &m, 1));
}

static dgm_code add_tools(struct reading *k, const dgm_part *p, const dgm_at *at)
{
    dgm_content_tools tools = {0};
    bool agent = k->m->role == DGM_ROLE_AGENT;
    dgm_content *s = k->said;
    dgm_code rc;
    if ((rc = dgm_content_read_tools(k->a, p, k->m->role, DGM_AT_LIT(at, "data"), &tools, k->err)))
        return rc;
    for (size_t i = 0; i < tools.calls.n; i++) {
        s->calls.at = dgm_list_grow(k->a, s->calls.at, s->calls.n, sizeof *s->calls.at);
        s->calls.at[s->calls.n] = tools.calls.at[i];
        s->calls.at[s->calls.n++].part = p;
    }
    for (size_t i = 0; i < tools.results.n; i++) {
        s->results.at = dgm_list_grow(k->a, s->results.at, s->results.n, sizeof *s->results.at);
        s->results.at[s->results.n] = tools.results.at[i];
        s->results.at[s->results.n++].part = p;
    }
    yyjson_val *calls = dgm_content_data_member(p, DGM_DATA_CALLS);
    if (agent && calls)
        k->other = true; /* an empty list, too: the agent stated that it makes no calls */
    else if (calls)
        add_calls_as_text(k, calls);
    return DGM_OK;
}

/* A decision of the caller, in words that a Chat client would write. False: the part is something else. */
static bool add_decision(struct reading *k, const dgm_part *p)
{
    dgm_approval decision;
    if (!dgm_str_is(dgm_json_str_member(p->data, "type"), DGM_TYPE_APPROVAL) ||
        !dgm_approval_read(p->data, &decision))
        return false;
    dgm_str text = decision.decision == DGM_APPROVED ? DGM_STR("yes") : DGM_STR("no");
    if (decision.reason.n)
        text = dgm_arena_printf(k->a, "%.*s: %.*s", DGM_P(text), DGM_P(decision.reason));
    if (decision.arguments)
        text = dgm_arena_printf(k->a, "%.*s, with %.*s", DGM_P(text),
                                DGM_P(dgm_json_text_in(k->a, decision.arguments)));
    message_content_add_piece(k, DGM_CANON_PART_TEXT, true)->text = text;
    return true;
}

static dgm_code message_content_add_part(struct reading *k, const dgm_part *p, const dgm_at *at)
{
    k->part = p;
    switch (p->kind) {
    case DGM_PART_TEXT:
        message_content_add_piece(k, DGM_CANON_PART_TEXT, false)->text = p->content;
        return DGM_OK;
    case DGM_PART_RAW:
    case DGM_PART_URL: add_file(k, p); return DGM_OK;
    case DGM_PART_DATA:
        if (dgm_content_data_member(p, DGM_DATA_RESULTS) ||
            (k->m->role == DGM_ROLE_AGENT && dgm_content_data_member(p, DGM_DATA_CALLS)))
            return add_tools(k, p, at);
        if (k->m->role == DGM_ROLE_USER && dgm_part_is_tools(p))
            return DGM_OK; /* of the request, not of the conversation */
        if (k->m->role == DGM_ROLE_USER && add_decision(k, p))
            return DGM_OK;
        message_content_add_piece(k, DGM_CANON_PART_TEXT, true)->text =
            dgm_content_spaced_json(k->a, p->data);
        return DGM_OK;
    case DGM_PART_NONE: break;
    }
    return dgm_fail(k->err, DGM_BAD_PARAMS, at, "a part holds text, a file or data; this is empty");
}

/* ---- the message ---------------------------------------------------------------------------------------------------- */

dgm_str dgm_content_join(dgm_arena *a, const dgm_canon_part *pieces, size_t n)
{
    if (n == 1)
        return pieces->text.p ? pieces->text : DGM_STR("");
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < n; i++) {
        dgm_str text = pieces[i].text;
        bool apart = i && (pieces[i].own_line || pieces[i - 1].own_line);
        if (apart && b.n && b.p[b.n - 1] != '\n' && text.n && text.p[0] != '\n')
            dgm_buf_add_char(&b, '\n');
        dgm_buf_add_str(&b, text);
    }
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static dgm_canon_content message_content_of(const struct reading *k)
{
    const dgm_canon_parts *pieces = &k->said->pieces;
    bool only_text = true, empty = true;
    for (size_t i = 0; i < pieces->n; i++) {
        bool text = pieces->at[i].kind == DGM_CANON_PART_TEXT;
        only_text &= text;
        empty &= text && !pieces->at[i].text.n;
    }
    if (!k->other && k->m->parts.n)
        return (dgm_canon_content){0};
    if (empty && k->said->results.n && !k->said->calls.n)
        return (dgm_canon_content){0}; /* empty texts beside results are no message */
    if (only_text)
        return (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT,
                                   .text = dgm_content_join(k->a, pieces->at, pieces->n)};
    return (dgm_canon_content){.kind = DGM_CANON_CONTENT_PARTS, .parts = *pieces};
}

bool dgm_content_is_chunk(const dgm_message *m)
{
    dgm_str type = dgm_json_str_member(m->metadata, "canonical_type");
    bool calls = false, results = false;
    if (m->role != DGM_ROLE_AGENT || !type.n)
        return false;
    for (size_t i = 0; i < m->parts.n; i++) {
        calls |= yyjson_arr_size(dgm_content_data_member(&m->parts.at[i], DGM_DATA_CALLS)) > 0;
        results |= yyjson_arr_size(dgm_content_data_member(&m->parts.at[i], DGM_DATA_RESULTS)) > 0;
    }
    return calls ? dgm_str_is(type, "ToolCallArgsEvent")
                 : dgm_str_is(type, "TextMessageChunkEvent") && !results;
}

dgm_code dgm_content_read(dgm_arena *a, const dgm_message *m, bool trusted, const dgm_at *at,
                          dgm_content *ret_said, dgm_err *err)
{
    dgm_content said = {.role = m->role == DGM_ROLE_AGENT ? DGM_CANON_ASSISTANT : DGM_CANON_USER};
    struct reading k = {.a = a, .m = m, .err = err, .said = &said};
    const dgm_at *parts = DGM_AT_LIT(at, "parts");
    dgm_code rc;
    if (m->role == DGM_ROLE_AGENT) /* requests for approval are shown as a question */
        k.m = m = dgm_message_as_shown(a, m);
    if (m->role != DGM_ROLE_USER && m->role != DGM_ROLE_AGENT)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "role"),
                        "missing: a message is a user's or an agent's");
    if (trusted && m->role == DGM_ROLE_USER && m->metadata) { /* roles that A2A does not have */
        dgm_str mark = dgm_json_str_member(m->metadata, DGM_META_ROLE);
        if (dgm_str_is(mark, "system") || dgm_str_is(mark, "developer"))
            said.role = mark.p[0] == 's' ? DGM_CANON_SYSTEM : DGM_CANON_DEVELOPER;
    }
    for (size_t i = 0; i < m->parts.n; i++) {
        if ((rc = message_content_add_part(&k, &m->parts.at[i], DGM_AT_I(parts, i))))
            return rc;
    }
    said.content = message_content_of(&k);
    said.delta = dgm_content_is_chunk(m);
    *ret_said = said;
    return DGM_OK;
}

dgm_str dgm_content_text(dgm_arena *a, const dgm_parts *parts, bool *ret_others)
{
    size_t n = 0, texts = 0;
    dgm_str only = {0};
    *ret_others = false;
    for (size_t i = 0; i < parts->n; i++) {
        if (parts->at[i].kind != DGM_PART_TEXT) {
            *ret_others = true;
            continue;
        }
        only = parts->at[i].content;
        n += only.n;
        texts++;
    }
    if (texts < 2)
        return only;
    char *p = dgm_arena_alloc_raw(a, n + 1);
    dgm_str all = {p, n};
    for (size_t i = 0; i < parts->n; i++) {
        if (parts->at[i].kind == DGM_PART_TEXT && parts->at[i].content.n) {
            memcpy(p, parts->at[i].content.p, parts->at[i].content.n);
            p += parts->at[i].content.n;
        }
    }
    return all;
}
