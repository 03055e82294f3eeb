/*
 * lib/direct.c - from an A2A message to chat messages (document 001).
 *
 * What must stay true: results become tool messages of their own, in order; calls of all parts become
 * one list; text stands beside calls; nothing that a part says is left out without a row in
 * direct_losses.c.
 */
#include "base/limits.h"
#include "lib/direct_int.h"

#include <stdlib.h>

/* ---- calls and results in data --------------------------------------------------------------------- */

static bool has_calls(const dgm_message *m)
{
    for (size_t i = 0; m->role == DGM_ROLE_AGENT && i < m->parts.n; i++) {
        if (yyjson_arr_size(dgm_content_data_member(&m->parts.at[i], DGM_DATA_CALLS)))
            return true;
    }
    return false;
}

static bool has_results(const dgm_message *m)
{
    for (size_t i = 0; i < m->parts.n; i++) {
        if (yyjson_arr_size(dgm_content_data_member(&m->parts.at[i], DGM_DATA_RESULTS)))
            return true;
    }
    return false;
}

/* One of a stream of messages; a complete one follows. A type that contradicts the parts is none. */
static bool is_intermediate(const dgm_message *m)
{
    dgm_str type = dgm_json_str_member(m->metadata, DIRECT_CANONICAL_TYPE);
    if (m->role != DGM_ROLE_AGENT || !type.n)
        return false;
    return has_calls(m) ? dgm_str_is(type, "ToolCallArgsEvent")
                        : dgm_str_is(type, "TextMessageChunkEvent") && !has_results(m);
}

/* ---- what a message is being made of ------------------------------------------------------------------ */

struct piece {
    dgm_chat_part part;
    bool own_line; /* JSON or a link: never glued to the text around it */
};

struct making {
    dgm_arena *a;
    const dgm_message *m;
    dgm_direct_how how;
    dgm_err *err;
    struct piece *pieces;
    size_t n_pieces;
    dgm_chat_call *calls;
    size_t n_calls;
    dgm_chat_message *tools;
    size_t n_tools;
    dgm_chat_call *function_call;
    dgm_str refusal;
    bool only_results; /* so far */
};

static dgm_chat_part *add_piece(struct making *k, dgm_chat_part_kind kind, bool own_line)
{
    k->pieces = dgm_list_grow(k->a, k->pieces, k->n_pieces, sizeof *k->pieces);
    struct piece *p = &k->pieces[k->n_pieces++];
    p->own_line = own_line;
    p->part.kind = kind;
    k->only_results = false;
    return &p->part;
}

static dgm_str mark_of_part(const struct making *k, const dgm_part *p, const char *key)
{
    return k->how.trusted ? dgm_json_str_member(p->metadata, key) : (dgm_str){0};
}

/* ---- files ----------------------------------------------------------------------------------------------- */

/* The mark's kind where the part can be that, else the part's own. */
static dgm_chat_part_kind kind_of_file(const struct making *k, const dgm_part *p)
{
    dgm_str mark = mark_of_part(k, p, DGM_META_PART);
    if (dgm_str_is(mark, "image_url"))
        return DGM_CHAT_PART_IMAGE;
    if (dgm_str_is(mark, "video_url"))
        return DGM_CHAT_PART_VIDEO;
    if (dgm_str_is(mark, "input_audio") && p->kind == DGM_PART_RAW)
        return DGM_CHAT_PART_AUDIO;
    if (dgm_str_is(mark, "file") && p->kind == DGM_PART_RAW)
        return DGM_CHAT_PART_FILE;
    return dgm_direct_part_kind(p, k->m->role);
}

static void add_file(struct making *k, const dgm_part *p)
{
    dgm_str media_type = dgm_media_type(p), mark = mark_of_part(k, p, DGM_META_PART);
    dgm_chat_part_kind kind = kind_of_file(k, p);
    dgm_chat_part *part = add_piece(k, kind, kind == DGM_CHAT_PART_TEXT);
    switch (kind) {
    case DGM_CHAT_PART_IMAGE:
    case DGM_CHAT_PART_VIDEO:
        part->url =
            p->kind == DGM_PART_URL ? p->content : dgm_media_data_url(k->a, media_type, p->content);
        part->detail = mark_of_part(k, p, DGM_META_DETAIL);
        return;
    case DGM_CHAT_PART_AUDIO:
        part->data = p->content;
        part->format = dgm_media_audio_format(media_type);
        if (!part->format.n && dgm_media_is(media_type, DGM_STR("audio/")))
            part->format = (dgm_str){media_type.p + 6, media_type.n - 6};
        return;
    case DGM_CHAT_PART_FILE:
        part->file_data = dgm_media_data_url(
            k->a, media_type.n ? media_type : DGM_STR("application/octet-stream"), p->content);
        part->filename = p->filename;
        part->file_id = mark_of_part(k, p, DGM_META_FILE_ID);
        if (!part->filename.n && !mark.n) /* OpenAI wants one */
            part->filename = dgm_arena_printf(k->a, "file.%s", dgm_media_extension(media_type));
        return;
    case DGM_CHAT_PART_TEXT:
    case DGM_CHAT_PART_REFUSAL:
    case DGM_CHAT_PART_OTHER: part->text = dgm_content_file_text(k->a, p); return;
    }
}

/* ---- data -------------------------------------------------------------------------------------------------- */

static void add_call(struct making *k, const dgm_content_call *from, bool legacy)
{
    dgm_chat_call *call;
    if (legacy) {
        call = k->function_call = dgm_new(k->a, dgm_chat_call);
    } else {
        k->calls = dgm_list_grow(k->a, k->calls, k->n_calls, sizeof *k->calls);
        call = &k->calls[k->n_calls++];
    }
    bool is_custom = yyjson_is_str((yyjson_val *)(uintptr_t)from->type) &&
                     dgm_str_is(dgm_json_str(from->type), "custom");
    *call = (dgm_chat_call){
        .id = from->call_id,
        .kind = is_custom ? DGM_CHAT_CALL_CUSTOM : DGM_CHAT_CALL_FUNCTION,
        .name = from->name,
        .arguments =
            from->arguments ? dgm_content_value_text(k->a, from->arguments) : DGM_STR("{}"),
    };
    k->only_results = false;
}

/* A chat part that we kept as it was. Whoever wrote it down, it must be one. */
static bool read_part(dgm_arena *a, yyjson_val *v, dgm_chat_part *ret)
{
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_CHAT};
    dgm_chat_part part = {0};
    if (yyjson_is_str(v) && /* no good as a value: kept as its text */
        dgm_json_read(a, dgm_json_str(v), DGM_MAX_OBJECT_BYTES, "object_bytes", &v, NULL))
        return false;
    if (!yyjson_is_obj(v) || dgm_shape_read(&r, &dgm_chat_part_shape, v, NULL, &part))
        return false;
    *ret = part;
    return true;
}

static bool read_parts(dgm_arena *a, yyjson_val *list, dgm_chat_content *ret)
{
    size_t i, n = yyjson_arr_size(list);
    if (!yyjson_is_arr(list) || n > DGM_MAX_LIST_ITEMS)
        return false;
    dgm_chat_parts parts = {dgm_new_n(a, dgm_chat_part, n), n};
    yyjson_val *e;
    yyjson_arr_foreach (list, i, n, e) {
        if (!read_part(a, e, &parts.at[i]))
            return false;
    }
    *ret = (dgm_chat_content){.kind = DGM_CHAT_CONTENT_PARTS, .parts = parts};
    return true;
}

static void add_result(struct making *k, const dgm_content_result *from, bool list)
{
    k->tools = dgm_list_grow(k->a, k->tools, k->n_tools, sizeof *k->tools);
    dgm_chat_message *tool = &k->tools[k->n_tools++];
    dgm_str name =
        k->how.trusted ? dgm_json_str_member(k->m->metadata, DGM_META_NAME) : (dgm_str){0};
    bool legacy = k->how.trusted &&
                  dgm_str_is(dgm_json_str_member(k->m->metadata, DGM_META_ROLE), "function");
    yyjson_val *output = (yyjson_val *)(uintptr_t)from->output;
    tool->role = legacy ? DGM_CHAT_FUNCTION : DGM_CHAT_TOOL;
    if (!legacy)
        tool->tool_call_id = from->call_id;
    tool->name = legacy && !name.n ? from->call_id : name;
    if (!list || !read_parts(k->a, output, &tool->content))
        tool->content =
            (dgm_chat_content){.kind = DGM_CHAT_CONTENT_TEXT,
                               .text = output ? dgm_content_value_text(k->a, output) : DGM_STR("")};
}

/* A user's calls, beside results: the rest of that data becomes text. */
static void add_calls_as_text(struct making *k, yyjson_val *calls)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"" DGM_DATA_CALLS "\": ");
    dgm_json_put_spaced(&b, calls);
    dgm_buf_add_char(&b, '}');
    add_piece(k, DGM_CHAT_PART_TEXT, true)->text = dgm_arena_dup(k->a, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

static dgm_code add_tools(struct making *k, const dgm_part *p, const dgm_at *at)
{
    dgm_content_tools tools = {0};
    bool agent = k->m->role == DGM_ROLE_AGENT;
    dgm_str mark = mark_of_part(k, p, DGM_META_PART);
    dgm_code rc;
    const dgm_at *data = DGM_AT_LIT(at, "data"), *inner = DGM_AT_LIT(data, "data");
    at = k->how.spelling == DGM_DIRECT_REST ? inner : data;
    if ((rc = dgm_content_read_tools(k->a, p, k->m->role, at, &tools, k->err)))
        return rc;
    bool legacy = dgm_str_is(mark, "function_call") && tools.calls.n == 1 && !k->function_call;
    for (size_t i = 0; i < tools.calls.n; i++)
        add_call(k, &tools.calls.at[i], legacy);
    for (size_t i = 0; i < tools.results.n; i++)
        add_result(k, &tools.results.at[i], dgm_str_is(mark, "content"));
    yyjson_val *calls = dgm_content_data_member(p, DGM_DATA_CALLS);
    if (agent && calls)
        k->only_results = false; /* an empty list, too: the agent said that it calls nothing */
    else if (calls)
        add_calls_as_text(k, calls);
    return DGM_OK;
}

static dgm_code add_data(struct making *k, const dgm_part *p, const dgm_at *at)
{
    if (dgm_content_data_member(p, DGM_DATA_RESULTS) ||
        (k->m->role == DGM_ROLE_AGENT && dgm_content_data_member(p, DGM_DATA_CALLS)))
        return add_tools(k, p, at);
    dgm_chat_part part;
    if (dgm_str_is(mark_of_part(k, p, DGM_META_PART), "other") &&
        read_part(k->a, (yyjson_val *)(uintptr_t)p->data, &part)) {
        *add_piece(k, part.kind, false) = part;
        return DGM_OK;
    }
    add_piece(k, DGM_CHAT_PART_TEXT, true)->text = dgm_content_spaced_json(k->a, p->data);
    return DGM_OK;
}

/* ---- parts -------------------------------------------------------------------------------------------------- */

static void add_text(struct making *k, const dgm_part *p)
{
    dgm_str mark = mark_of_part(k, p, DGM_META_PART);
    if (dgm_str_is(mark, "message_refusal") && !k->refusal.p) {
        k->refusal = p->content.p ? p->content : DGM_STR("");
        k->only_results = false;
        return;
    }
    bool refusal = dgm_str_is(mark, "refusal");
    add_piece(k, refusal ? DGM_CHAT_PART_REFUSAL : DGM_CHAT_PART_TEXT, false)->text = p->content;
}

static dgm_code add_part(struct making *k, const dgm_part *p, const dgm_at *at)
{
    switch (p->kind) {
    case DGM_PART_TEXT: add_text(k, p); return DGM_OK;
    case DGM_PART_RAW:
    case DGM_PART_URL: add_file(k, p); return DGM_OK;
    case DGM_PART_DATA: return add_data(k, p, at);
    case DGM_PART_NONE: break;
    }
    return dgm_fail(k->err, DGM_BAD_PARAMS, at, "a part holds text, a file or data; this is empty");
}

/* ---- the message ------------------------------------------------------------------------------------------- */

static dgm_str join(dgm_arena *a, const struct piece *pieces, size_t n)
{
    if (n == 1)
        return pieces->part.text.p ? pieces->part.text : DGM_STR("");
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < n; i++) {
        dgm_str text = pieces[i].part.text;
        bool apart = i && (pieces[i].own_line || pieces[i - 1].own_line);
        if (apart && b.n && b.p[b.n - 1] != '\n' && text.n && text.p[0] != '\n')
            dgm_buf_add_char(&b, '\n');
        dgm_buf_add_str(&b, text);
    }
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static dgm_chat_content content_of(const struct making *k)
{
    bool only_text = true;
    for (size_t i = 0; i < k->n_pieces; i++)
        only_text &= k->pieces[i].part.kind == DGM_CHAT_PART_TEXT;
    if (!k->n_pieces && k->refusal.p && k->m->role == DGM_ROLE_AGENT)
        return (dgm_chat_content){.kind = DGM_CHAT_CONTENT_NULL};
    if (only_text)
        return (dgm_chat_content){.kind = DGM_CHAT_CONTENT_TEXT,
                                  .text = join(k->a, k->pieces, k->n_pieces)};
    dgm_chat_content c = {.kind = DGM_CHAT_CONTENT_PARTS,
                          .parts = {dgm_new_n(k->a, dgm_chat_part, k->n_pieces), k->n_pieces}};
    for (size_t i = 0; i < k->n_pieces; i++)
        c.parts.at[i] = k->pieces[i].part;
    return c;
}

/* Empty texts beside results are no message. */
static bool says_nothing(const struct making *k)
{
    for (size_t i = 0; i < k->n_pieces; i++) {
        if (k->pieces[i].part.kind != DGM_CHAT_PART_TEXT || k->pieces[i].part.text.n)
            return false;
    }
    return !k->n_calls && !k->function_call && !k->refusal.p;
}

static dgm_chat_role role_of(const dgm_message *m, bool trusted)
{
    dgm_str mark = trusted ? dgm_json_str_member(m->metadata, DGM_META_ROLE) : (dgm_str){0};
    if (m->role == DGM_ROLE_AGENT)
        return DGM_CHAT_ASSISTANT;
    if (dgm_str_is(mark, "system"))
        return DGM_CHAT_SYSTEM;
    return dgm_str_is(mark, "developer") ? DGM_CHAT_DEVELOPER : DGM_CHAT_USER;
}

dgm_code dgm_direct_make(dgm_arena *a, const dgm_message *m, const dgm_at *at, dgm_direct_how how,
                         dgm_direct_pair *ret_pair, dgm_err *err)
{
    struct making k = {.a = a, .m = m, .how = how, .err = err, .only_results = m->parts.n > 0};
    dgm_code rc;
    if (m->role != DGM_ROLE_USER && m->role != DGM_ROLE_AGENT)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "role"),
                        "missing: a message is a user's or an agent's");
    if (is_intermediate(m)) {
        *ret_pair = (dgm_direct_pair){0};
        return DGM_OK;
    }
    const dgm_at *parts =
        how.spelling == DGM_DIRECT_REST ? DGM_AT_LIT(at, "content") : DGM_AT_LIT(at, "parts");
    for (size_t i = 0; i < m->parts.n; i++) {
        if ((rc = add_part(&k, &m->parts.at[i], DGM_AT_I(parts, i))))
            return rc;
    }
    *ret_pair = (dgm_direct_pair){.tool_messages = {k.tools, k.n_tools}};
    if (k.only_results || (k.n_tools && says_nothing(&k)))
        return DGM_OK;
    dgm_chat_message *out = dgm_new(a, dgm_chat_message);
    out->role = role_of(m, how.trusted);
    out->content = content_of(&k);
    out->refusal = k.refusal;
    out->tool_calls = (dgm_chat_calls){k.calls, k.n_calls};
    out->function_call = k.function_call;
    if (how.trusted) {
        out->name = dgm_json_str_member(m->metadata, DGM_META_NAME);
        out->reasoning_content = dgm_json_str_member(m->metadata, DGM_META_REASONING);
    }
    ret_pair->openai_message = out;
    return DGM_OK;
}

dgm_code dgm_direct_to_chat(dgm_arena *a, const dgm_message *m, const dgm_at *at, bool trusted,
                            dgm_direct_pair *ret_pair, dgm_err *err)
{
    return dgm_direct_make(a, m, at, (dgm_direct_how){.trusted = trusted}, ret_pair, err);
}

/* ---- the public function ----------------------------------------------------------------------------------- */

static dgm_code text_of_message(const dgm_chat_message *m, char **ret_text, dgm_err *err)
{
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_OUTPUT_BYTES);
    dgm_writer w = {.out = &b, .format = DGM_FORMAT_CHAT};
    dgm_chat_write(&w, m);
    if (b.over) {
        dgm_buf_done(&b);
        return dgm_fail(err, DGM_TOO_LARGE, NULL,
                        "the message becomes longer than the limit output_bytes of %zu",
                        DGM_MAX_OUTPUT_BYTES);
    }
    *ret_text = dgm_buf_steal(&b, NULL);
    return DGM_OK;
}

dgm_code dgm_convert_a2a_message_to_openai(const dgm_message *message,
                                           dgm_openai_messages *ret_messages, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_direct_pair pair = {0};
    dgm_openai_messages out = {0};
    dgm_code rc;
    /* The message may be a stranger's: what it says about itself under our names is not believed. */
    if ((rc = dgm_direct_to_chat(a, message, NULL, false, &pair, err)))
        return rc;
    if (pair.openai_message)
        rc = text_of_message(pair.openai_message, &out.openai_message, err);
    if (pair.tool_messages.n)
        out.tool_messages = dgm_xcalloc(pair.tool_messages.n, sizeof *out.tool_messages);
    for (size_t i = 0; !rc && i < pair.tool_messages.n; i++) {
        if (!(rc = text_of_message(&pair.tool_messages.at[i], &out.tool_messages[i], err)))
            out.n_tool_messages++;
    }
    if (rc)
        dgm_openai_messages_done(&out);
    else
        *ret_messages = out;
    return rc;
}

void dgm_openai_messages_done(dgm_openai_messages *m)
{
    for (size_t i = 0; i < m->n_tool_messages; i++)
        free(m->tool_messages[i]);
    free(m->tool_messages);
    free(m->openai_message);
    *m = (dgm_openai_messages){0};
}
