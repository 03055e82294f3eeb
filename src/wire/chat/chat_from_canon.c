/* wire/chat/chat_from_canon.c - canonical messages as chat messages. See chat_messages.h for `extra`. */
#include "base/list.h"
#include "canon/media.h"
#include "canon/message_content.h"
#include "wire/chat/chat_messages.h"

/* ---- extra ------------------------------------------------------------------------------------ */

const dgm_extra *dgm_chat_without(dgm_arena *a, const dgm_extra *x, const char *key)
{
    if (!dgm_chat_extra(x, key))
        return x;
    dgm_extra *less = dgm_new(a, dgm_extra);
    *less = (dgm_extra){x->format, dgm_new_n(a, dgm_member, x->n), 0};
    for (size_t i = 0; i < x->n; i++) {
        if (!dgm_str_eq(x->at[i].key, dgm_str_from(key)))
            less->at[less->n++] = x->at[i];
    }
    return less->n ? less : NULL;
}

/* ---- parts --------------------------------------------------------------------------------------------------- */

/* A part that was read here, of a type that we do not know. */
static bool restore(dgm_arena *a, const dgm_canon_part *p, dgm_chat_part *ret)
{
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_CHAT};
    yyjson_val *v = (yyjson_val *)(uintptr_t)dgm_chat_extra(p->extra, "type");
    dgm_chat_part part = {0};
    if (!yyjson_is_obj(v) || dgm_shape_read(&r, &dgm_chat_part_shape, v, NULL, &part))
        return false;
    *ret = part;
    return true;
}

static dgm_part file_of(const dgm_canon_part *p)
{
    return (dgm_part){.kind = p->source.kind == DGM_CANON_SOURCE_DATA ? DGM_PART_RAW : DGM_PART_URL,
                      .content = p->source.value,
                      .media_type = p->source.mime_type,
                      .filename = dgm_json_str_member(p->metadata, "filename")};
}

static dgm_chat_part link_to(dgm_arena *a, const dgm_part *file)
{
    return (dgm_chat_part){.kind = DGM_CHAT_PART_TEXT, .text = dgm_content_file_text(a, file)};
}

static dgm_str address(dgm_arena *a, const dgm_canon_source *s)
{
    return s->kind == DGM_CANON_SOURCE_DATA ? dgm_media_data_url(a, s->mime_type, s->value)
                                            : s->value;
}

static dgm_chat_part file_part(dgm_arena *a, const dgm_canon_part *p, const dgm_part *file)
{
    dgm_chat_part out = {.kind = DGM_CHAT_PART_FILE, .filename = file->filename};
    const dgm_extra *inner = p->source.extra;
    if (p->source.kind == DGM_CANON_SOURCE_FILE) {
        out.file_id = p->source.value;
    } else {
        dgm_str type = dgm_media_type(file);
        out.file_data = dgm_media_data_url(a, type.n ? type : DGM_STR("application/octet-stream"),
                                           p->source.value);
        out.file_id = dgm_chat_extra_text(inner, "file_id");
        if (!out.filename.n && !p->extra && !inner) /* OpenAI wants one */
            out.filename = dgm_arena_printf(a, "file.%s", dgm_media_extension(type));
    }
    out.inner_extra = dgm_chat_without(a, inner, "file_id");
    return out;
}

static dgm_chat_part media_part(dgm_arena *a, const dgm_canon_part *p, dgm_chat_part_kind kind)
{
    return (dgm_chat_part){.kind = kind,
                           .url = address(a, &p->source),
                           .detail = dgm_chat_extra_text(p->source.extra, "detail"),
                           .inner_extra = dgm_chat_without(a, p->source.extra, "detail")};
}

static dgm_chat_part audio_part(const dgm_canon_part *p)
{
    dgm_str type = p->source.mime_type, format = dgm_media_audio_format(type);
    if (!format.n && dgm_media_is(type, DGM_STR("audio/")))
        format = (dgm_str){type.p + 6, type.n - 6};
    return (dgm_chat_part){.kind = DGM_CHAT_PART_AUDIO,
                           .data = p->source.value,
                           .format = format,
                           .inner_extra = p->source.extra};
}

/* Content without a part of its own becomes a text: *own_line. The rules are those of the direct function. */
static dgm_chat_part part_of(dgm_arena *a, const dgm_canon_part *p, bool *own_line)
{
    dgm_part file = file_of(p);
    bool data = p->source.kind == DGM_CANON_SOURCE_DATA;
    bool ours = p->extra || p->source.extra; /* differs from what other formats sent */
    dgm_chat_part out = {.kind = DGM_CHAT_PART_TEXT, .text = p->text};
    *own_line = p->own_line;
    if (p->kind == DGM_CANON_PART_TEXT || p->kind == DGM_CANON_PART_NONE) {
        if (restore(a, p, &out))
            return out;
    } else if (p->source.kind == DGM_CANON_SOURCE_FILE) {
        out = file_part(a, p, &file);
    } else if (p->kind == DGM_CANON_PART_IMAGE) {
        out = media_part(a, p, DGM_CHAT_PART_IMAGE);
    } else if (dgm_str_is(dgm_chat_extra_text(p->extra, "type"), "video_url")) {
        out = media_part(a, p, DGM_CHAT_PART_VIDEO);
    } else if (!data) {
        out = link_to(a, &file);
        *own_line = true;
    } else if (p->kind == DGM_CANON_PART_AUDIO &&
               (ours || dgm_media_audio_format(p->source.mime_type).n)) {
        out = audio_part(p);
    } else {
        out = file_part(a, p, &file);
    }
    if (p->extra && p->extra->format == DGM_FORMAT_CHAT)
        out.extra = dgm_chat_without(a, p->extra, "type");
    return out;
}

/* ---- content -------------------------------------------------------------------------------------------------- */

static dgm_chat_content text_content(dgm_str text)
{
    return (dgm_chat_content){.kind = DGM_CHAT_CONTENT_TEXT, .text = text.p ? text : DGM_STR("")};
}

/* Nothing but texts becomes one text, unless parts have to be kept. */
static dgm_chat_content parts_content(dgm_arena *a, const dgm_canon_parts *from, bool only_text)
{
    dgm_chat_parts parts = {dgm_new_n(a, dgm_chat_part, from->n), from->n};
    dgm_canon_part *pieces = dgm_new_n(a, dgm_canon_part, from->n);
    bool texts = true;
    for (size_t i = 0; i < from->n; i++) {
        dgm_part file = file_of(&from->at[i]);
        parts.at[i] = part_of(a, &from->at[i], &pieces[i].own_line);
        if (only_text && parts.at[i].kind != DGM_CHAT_PART_TEXT) {
            parts.at[i] = link_to(a, &file);
            pieces[i].own_line = true;
        }
        pieces[i].text = parts.at[i].text;
        texts &= parts.at[i].kind == DGM_CHAT_PART_TEXT;
    }
    if (texts)
        return text_content(dgm_content_join(a, pieces, from->n));
    return (dgm_chat_content){.kind = DGM_CHAT_CONTENT_PARTS, .parts = parts};
}

static dgm_chat_content chat_from_canon_content_of(dgm_arena *a, const dgm_canon_message *m)
{
    bool has_parts = m->role == DGM_CANON_USER || m->role == DGM_CANON_TOOL;
    if (m->content.kind == DGM_CANON_CONTENT_PARTS)
        return parts_content(a, &m->content.parts, !has_parts);
    if (m->role == DGM_CANON_TOOL && !m->content.text.n && m->error.n)
        return text_content(m->error);
    return text_content(m->content.text);
}

/* ---- messages ------------------------------------------------------------------------------------------------- */

static void add_calls(dgm_arena *a, const dgm_canon_calls *from, dgm_chat_message *to)
{
    to->tool_calls.at = from->n ? dgm_new_n(a, dgm_chat_call, from->n) : NULL;
    for (size_t i = 0; i < from->n; i++) {
        const dgm_canon_call *c = &from->at[i];
        dgm_str type = dgm_chat_extra_text(c->extra, "type");
        bool ours = c->extra && c->extra->format == DGM_FORMAT_CHAT;
        bool custom = dgm_str_is(type, "custom");
        dgm_chat_call call = {.id = c->id,
                              .kind = custom ? DGM_CHAT_CALL_CUSTOM : DGM_CHAT_CALL_FUNCTION,
                              .name = c->name,
                              .arguments = c->arguments,
                              .extra = ours ? dgm_chat_without(a, c->extra, "type") : NULL,
                              .inner_extra = c->function_extra};
        if (dgm_str_is(type, "function_call") && !to->function_call) {
            call.id = (dgm_str){0};
            to->function_call = dgm_new(a, dgm_chat_call);
            *to->function_call = call;
        } else {
            to->tool_calls.at[to->tool_calls.n++] = call;
        }
    }
    if (!to->tool_calls.n) /* OpenAI refuses an empty list */
        to->tool_calls.at = NULL;
}

static void set_refusal(dgm_arena *a, dgm_chat_message *m)
{
    dgm_str refusal = dgm_chat_extra_text(m->extra, "refusal");
    if (!refusal.p)
        return;
    m->extra = dgm_chat_without(a, m->extra, "refusal");
    m->refusal = refusal;
    if (dgm_str_eq(m->content.text, refusal) && m->content.kind == DGM_CHAT_CONTENT_TEXT)
        m->content = (dgm_chat_content){.kind = DGM_CHAT_CONTENT_NULL};
}

static dgm_chat_message chat_from_canon_message_of(dgm_arena *a, const dgm_canon_message *m)
{
    static const dgm_chat_role roles[DGM_N_CANON_ROLES] = {
        [DGM_CANON_DEVELOPER] = DGM_CHAT_DEVELOPER, [DGM_CANON_SYSTEM] = DGM_CHAT_SYSTEM,
        [DGM_CANON_ASSISTANT] = DGM_CHAT_ASSISTANT, [DGM_CANON_ROLE_NONE] = DGM_CHAT_ASSISTANT,
        [DGM_CANON_USER] = DGM_CHAT_USER,           [DGM_CANON_TOOL] = DGM_CHAT_TOOL,
    };
    dgm_chat_message out = {.role = roles[m->role],
                            .name = m->name,
                            .content = chat_from_canon_content_of(a, m),
                            .tool_call_id = m->tool_call_id};
    if (m->extra && m->extra->format == DGM_FORMAT_CHAT)
        out.extra = m->extra;
    if (dgm_str_is(dgm_chat_extra_text(out.extra, "role"), "function") && m->name.n) {
        out.role = DGM_CHAT_FUNCTION;
        out.tool_call_id = (dgm_str){0};
    }
    out.extra = dgm_chat_without(a, out.extra, "role");
    if (out.role == DGM_CHAT_ASSISTANT) {
        add_calls(a, &m->tool_calls, &out);
        set_refusal(a, &out);
    }
    return out;
}

static dgm_chat_message *chat_from_canon_add(dgm_arena *a, dgm_chat_messages *list)
{
    list->at = dgm_list_grow(a, list->at, list->n, sizeof *list->at);
    return &list->at[list->n++];
}

/* Thoughts of several messages, on their way to the one that follows. */
static dgm_str chat_from_canon_take(dgm_arena *a, dgm_buf *thoughts)
{
    dgm_str text = thoughts->n ? dgm_arena_dup(a, dgm_buf_str(thoughts)) : (dgm_str){0};
    dgm_buf_clear(thoughts);
    return text;
}

/* No message of the assistant follows: they have one of their own. */
static void flush(dgm_arena *a, dgm_chat_messages *list, dgm_buf *thoughts)
{
    if (thoughts->n)
        *chat_from_canon_add(a, list) =
            (dgm_chat_message){.role = DGM_CHAT_ASSISTANT,
                               .content = text_content((dgm_str){0}),
                               .reasoning_content = chat_from_canon_take(a, thoughts)};
}

static void chat_from_canon_add_message(dgm_arena *a, dgm_chat_messages *list,
                                        const dgm_canon_message *m, dgm_buf *thoughts)
{
    if (m->role == DGM_CANON_ACTIVITY)
        return;
    if (m->role == DGM_CANON_REASONING) {
        if (thoughts->n && m->content.text.n)
            dgm_buf_add_lit(thoughts, "\n\n");
        dgm_buf_add_str(thoughts, m->content.text);
        return;
    }
    dgm_chat_message out = chat_from_canon_message_of(a, m);
    if (out.role == DGM_CHAT_ASSISTANT)
        out.reasoning_content = chat_from_canon_take(a, thoughts);
    flush(a, list, thoughts);
    *chat_from_canon_add(a, list) = out;
}

dgm_chat_messages dgm_chat_from_canon(dgm_arena *a, const dgm_canon_messages *messages)
{
    dgm_chat_messages list = {0};
    dgm_buf thoughts;
    dgm_buf_init(&thoughts, SIZE_MAX);
    for (size_t i = 0; i < messages->n; i++)
        chat_from_canon_add_message(a, &list, &messages->at[i], &thoughts);
    flush(a, &list, &thoughts);
    dgm_buf_done(&thoughts);
    return list;
}
