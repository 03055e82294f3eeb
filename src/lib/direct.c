/*
 * lib/direct.c - from an A2A message to chat messages (document 001).
 *
 * The content is read as everywhere else (canon/message_content.h), without events in between. Results become tool
 * messages of their own, in order; the calls of all parts become one list, beside the text. Everything that is left out
 * has a row in direct_losses.c.
 */
#include "base/limits.h"
#include "lib/direct_int.h"

#include <stdlib.h>

/* The message that is made, and its parts so far. `texts` has the same elements, for dgm_content_join(). */
struct chat_making {
    dgm_arena *a;
    const dgm_message *m;
    const dgm_content *content;
    bool trusted;
    dgm_chat_parts parts;
    dgm_canon_part *texts;
    dgm_str refusal;
};

static dgm_str chat_mark(const struct chat_making *k, const dgm_part *p, const char *key)
{
    return k->trusted ? dgm_json_str_member(p->metadata, key) : (dgm_str){0};
}

/* ---- files ----------------------------------------------------------------------------------------------- */

dgm_chat_part_kind dgm_direct_part_kind(const dgm_part *p, dgm_role role)
{
    bool is_file = p->kind == DGM_PART_RAW || p->kind == DGM_PART_URL;
    if (!is_file || role == DGM_ROLE_AGENT)
        return DGM_CHAT_PART_TEXT; /* an assistant has no other parts */
    dgm_str media_type = dgm_media_type(p);
    if (dgm_media_is(media_type, DGM_STR("image/")))
        return DGM_CHAT_PART_IMAGE;
    if (p->kind == DGM_PART_URL)
        return DGM_CHAT_PART_TEXT; /* a file part cannot hold an address */
    return dgm_media_audio_format(media_type).n ? DGM_CHAT_PART_AUDIO : DGM_CHAT_PART_FILE;
}

/* The kind that the mark names, if the part can be of this kind, else the part's own. */
static dgm_chat_part_kind chat_file_kind(const struct chat_making *k, const dgm_part *p)
{
    dgm_str mark = chat_mark(k, p, DGM_META_PART);
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

static void chat_make_file(struct chat_making *k, const dgm_part *p, dgm_chat_part *part)
{
    dgm_str media_type = dgm_media_type(p), mark = chat_mark(k, p, DGM_META_PART);
    part->kind = chat_file_kind(k, p);
    switch (part->kind) {
    case DGM_CHAT_PART_IMAGE:
    case DGM_CHAT_PART_VIDEO:
        part->url =
            p->kind == DGM_PART_URL ? p->content : dgm_media_data_url(k->a, media_type, p->content);
        part->detail = chat_mark(k, p, DGM_META_DETAIL);
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
        part->file_id = chat_mark(k, p, DGM_META_FILE_ID);
        if (!part->filename.n && !mark.n) /* OpenAI wants one */
            part->filename = dgm_arena_printf(k->a, "file.%s", dgm_media_extension(media_type));
        return;
    case DGM_CHAT_PART_TEXT:
    case DGM_CHAT_PART_REFUSAL:
    case DGM_CHAT_PART_OTHER: part->text = dgm_content_file_text(k->a, p); return;
    }
}

/* ---- parts ------------------------------------------------------------------------------------------------- */

/* A chat part that is stored as it came. The metadata may be forged, so it is checked. */
static bool chat_read_part(dgm_arena *a, yyjson_val *v, dgm_chat_part *ret)
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

static bool chat_read_parts(dgm_arena *a, yyjson_val *list, dgm_chat_content *ret)
{
    size_t i, n = yyjson_arr_size(list);
    if (!yyjson_is_arr(list) || n > DGM_MAX_LIST_ITEMS)
        return false;
    dgm_chat_parts parts = {dgm_new_n(a, dgm_chat_part, n), n};
    yyjson_val *e;
    yyjson_arr_foreach (list, i, n, e) {
        if (!chat_read_part(a, e, &parts.at[i]))
            return false;
    }
    *ret = (dgm_chat_content){.kind = DGM_CHAT_CONTENT_PARTS, .parts = parts};
    return true;
}

/* A piece of the content as a chat part: texts and data are read already, files and marked parts are chat's own. */
static void chat_add_piece(struct chat_making *k, const dgm_canon_part *piece, const dgm_part *from)
{
    dgm_str mark = chat_mark(k, from, DGM_META_PART);
    if (from->kind == DGM_PART_TEXT && dgm_str_is(mark, "message_refusal") && !k->refusal.p) {
        k->refusal = from->content.p ? from->content : DGM_STR("");
        return;
    }
    dgm_chat_part *part = &k->parts.at[k->parts.n];
    dgm_canon_part *text = &k->texts[k->parts.n++];
    *part = (dgm_chat_part){.kind = DGM_CHAT_PART_TEXT, .text = piece->text};
    text->own_line = piece->own_line;
    if (from->kind == DGM_PART_TEXT && dgm_str_is(mark, "refusal")) {
        part->kind = DGM_CHAT_PART_REFUSAL;
    } else if (from->kind == DGM_PART_RAW || from->kind == DGM_PART_URL) {
        chat_make_file(k, from, part);
        text->own_line = part->kind == DGM_CHAT_PART_TEXT;
    } else if (from->kind == DGM_PART_DATA && dgm_str_is(mark, "other") &&
               chat_read_part(k->a, (yyjson_val *)(uintptr_t)from->data, part)) {
        text->own_line = false;
    }
    text->text = part->text;
}

static dgm_chat_content chat_make_content(const struct chat_making *k)
{
    bool only_text = true;
    for (size_t i = 0; i < k->parts.n; i++)
        only_text &= k->parts.at[i].kind == DGM_CHAT_PART_TEXT;
    if (!k->parts.n && k->refusal.p && k->m->role == DGM_ROLE_AGENT)
        return (dgm_chat_content){.kind = DGM_CHAT_CONTENT_NULL};
    if (only_text)
        return (dgm_chat_content){.kind = DGM_CHAT_CONTENT_TEXT,
                                  .text = dgm_content_join(k->a, k->texts, k->parts.n)};
    return (dgm_chat_content){.kind = DGM_CHAT_CONTENT_PARTS, .parts = k->parts};
}

/* ---- calls and results ------------------------------------------------------------------------------------- */

static void chat_add_calls(const struct chat_making *k, dgm_chat_message *out)
{
    const dgm_content_calls *calls = &k->content->calls;
    for (size_t i = 0; i < calls->n; i++) {
        const dgm_content_call *from = &calls->at[i];
        bool only = (!i || calls->at[i - 1].part != from->part) &&
                    (i + 1 == calls->n || calls->at[i + 1].part != from->part);
        bool legacy = only && !out->function_call &&
                      dgm_str_is(chat_mark(k, from->part, DGM_META_PART), "function_call");
        bool is_custom = yyjson_is_str((yyjson_val *)(uintptr_t)from->type) &&
                         dgm_str_is(dgm_json_str(from->type), "custom");
        dgm_chat_calls *list = &out->tool_calls;
        if (legacy)
            out->function_call = dgm_new(k->a, dgm_chat_call);
        else
            list->at = dgm_list_grow(k->a, list->at, list->n, sizeof *list->at);
        *(legacy ? out->function_call : &list->at[list->n++]) = (dgm_chat_call){
            .id = from->call_id,
            .kind = is_custom ? DGM_CHAT_CALL_CUSTOM : DGM_CHAT_CALL_FUNCTION,
            .name = from->name,
            .arguments = dgm_content_arguments(k->a, from->arguments),
        };
    }
}

static void chat_make_result(const struct chat_making *k, const dgm_content_result *from,
                             dgm_chat_message *tool)
{
    dgm_str name = k->trusted ? dgm_json_str_member(k->m->metadata, DGM_META_NAME) : (dgm_str){0};
    bool legacy =
        k->trusted && dgm_str_is(dgm_json_str_member(k->m->metadata, DGM_META_ROLE), "function");
    bool list = dgm_str_is(chat_mark(k, from->part, DGM_META_PART), "content");
    yyjson_val *output = (yyjson_val *)(uintptr_t)from->output;
    tool->role = legacy ? DGM_CHAT_FUNCTION : DGM_CHAT_TOOL;
    if (!legacy)
        tool->tool_call_id = from->call_id;
    tool->name = legacy && !name.n ? from->call_id : name;
    if (!list || !chat_read_parts(k->a, output, &tool->content))
        tool->content =
            (dgm_chat_content){.kind = DGM_CHAT_CONTENT_TEXT,
                               .text = output ? dgm_content_value_text(k->a, output) : DGM_STR("")};
}

/* ---- the message ------------------------------------------------------------------------------------------- */

dgm_code dgm_direct_to_chat(dgm_arena *a, const dgm_message *m, const dgm_at *at, bool trusted,
                            dgm_direct_pair *ret_pair, dgm_err *err)
{
    static const dgm_chat_role roles[] = {[DGM_CANON_ASSISTANT] = DGM_CHAT_ASSISTANT,
                                          [DGM_CANON_SYSTEM] = DGM_CHAT_SYSTEM,
                                          [DGM_CANON_DEVELOPER] = DGM_CHAT_DEVELOPER,
                                          [DGM_CANON_USER] = DGM_CHAT_USER};
    dgm_content content;
    struct chat_making k = {.a = a, .m = m, .content = &content, .trusted = trusted};
    dgm_code rc;
    *ret_pair = (dgm_direct_pair){0};
    if (dgm_content_is_chunk(m)) /* its calls may be incomplete, so they are not read */
        return DGM_OK;
    if ((rc = dgm_content_read(a, m, trusted, at, &content, err)))
        return rc;
    k.parts.at = dgm_new_n(a, dgm_chat_part, content.pieces.n);
    k.texts = dgm_new_n(a, dgm_canon_part, content.pieces.n);
    for (size_t i = 0; i < content.pieces.n; i++)
        chat_add_piece(&k, &content.pieces.at[i], content.piece_from[i]);
    ret_pair->tool_messages =
        (dgm_chat_messages){dgm_new_n(a, dgm_chat_message, content.results.n), content.results.n};
    for (size_t i = 0; i < content.results.n; i++)
        chat_make_result(&k, &content.results.at[i], &ret_pair->tool_messages.at[i]);
    if (content.content.kind == DGM_CANON_CONTENT_ABSENT && !k.refusal.p)
        return DGM_OK;
    dgm_chat_message *out = dgm_new(a, dgm_chat_message);
    out->role = roles[content.role];
    out->content = chat_make_content(&k);
    out->refusal = k.refusal;
    chat_add_calls(&k, out);
    if (trusted) {
        out->name = dgm_json_str_member(m->metadata, DGM_META_NAME);
        out->reasoning_content = dgm_json_str_member(m->metadata, DGM_META_REASONING);
    }
    ret_pair->openai_message = out;
    return DGM_OK;
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

dgm_code dgm_message_to_openai(const dgm_message *message, dgm_openai_messages *ret_messages,
                               dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_direct_pair pair = {0};
    dgm_openai_messages out = {0};
    dgm_code rc;
    if (!message || !ret_messages)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "missing argument");
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
    if (!m)
        return;
    for (size_t i = 0; i < m->n_tool_messages; i++)
        free(m->tool_messages[i]);
    free(m->tool_messages);
    free(m->openai_message);
    *m = (dgm_openai_messages){0};
}
