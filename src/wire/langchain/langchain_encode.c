/*
 * wire/langchain/langchain_encode.c - canonical events as a stream of chunks and messages.
 *
 * Text and calls of the assistant are chunks with the id of their message; the last one is marked as the last.
 * Texts of other roles and results are complete messages. The response_metadata of the last chunk has the
 * outcome of the run.
 */
#include "base/limits.h"
#include "base/list.h"
#include "wire/langchain/langchain_int.h"

#include <stdlib.h>

/* A message that chunks add to. */
struct open {
    dgm_buf id;
    unsigned n_calls;
    bool text; /* its text is open */
    size_t calls_open;
};

struct call {
    dgm_str id, parent;
    unsigned index;
    bool open;
};

struct encoder {
    dgm_frame_sink sink;
    dgm_err *err;
    dgm_code rc;
    dgm_buf out;
    dgm_arena *arena, *scratch;
    struct open *open;
    size_t n_open, cap_open;
    struct call *calls;
    size_t n_calls, cap_calls;
    dgm_map by_id;
    dgm_canon_role role; /* of the open text, if it is not the assistant's */
    dgm_buf run_id;
    bool started, over, fragment;
};
typedef struct encoder E;

/* ---- frames ------------------------------------------------------------------------------------------------------------ */

static void send(E *e)
{
    if (e->rc)
        return;
    e->rc = e->out.over ? dgm_fail(e->err, DGM_TOO_LARGE, NULL,
                                   "the chunk becomes longer than the limit output_bytes of %zu",
                                   DGM_MAX_OUTPUT_BYTES)
                        : e->sink.on_frame(e->sink.arg, (dgm_str){0}, dgm_buf_str(&e->out));
}

/* {"type":...,"data":{"content": ; then the content, end_chunk, more members, send_chunk. */
static void begin_chunk(E *e, const char *type)
{
    dgm_buf_clear(&e->out);
    dgm_buf_printf(&e->out, "{\"type\":\"%s\",\"data\":{\"content\":", type);
}

/* Readers treat LangChain's own ids as placeholders, which chunks of any message may have. */
static dgm_str wire_id(E *e, dgm_str id)
{
    return dgm_lc_is_placeholder(id) ? dgm_arena_printf(e->scratch, "id-%.*s", DGM_P(id)) : id;
}

static void end_chunk(E *e, const char *type, dgm_str id)
{
    dgm_buf_printf(&e->out, ",\"type\":\"%s\"", type);
    dgm_lc_put_member(&e->out, "\"id\"", wire_id(e, id));
}

static void send_chunk(E *e)
{
    dgm_buf_add_lit(&e->out, "}}");
    send(e);
}

#define AI "AIMessageChunk"

/* ---- ends --------------------------------------------------------------------------------------------------------------- */

static dgm_str reason_of(const dgm_canon_event *end)
{
    const dgm_canon_outcome *o = &end->run_finished.outcome;
    if (end->kind == DGM_CANON_RUN_ERROR)
        return DGM_STR("error");
    if (o->kind == DGM_CANON_CANCELLED)
        return DGM_STR("cancelled");
    if (o->kind == DGM_CANON_INTERRUPT)
        return DGM_STR("interrupt");
    return o->pending_tool_call_ids.n ? DGM_STR("tool_calls") : DGM_STR("stop");
}

static void put_end(E *e, const dgm_canon_event *end)
{
    bool failed = end->kind == DGM_CANON_RUN_ERROR;
    dgm_buf_add_lit(&e->out, ",\"response_metadata\":{\"finish_reason\":");
    dgm_json_put_str(&e->out, reason_of(end));
    if (failed) {
        dgm_buf_add_lit(&e->out, ",\"error\":{\"message\":");
        dgm_json_put_str(&e->out, end->run_error.message);
        if (end->run_error.code.n)
            dgm_lc_put_member(&e->out, "\"code\"", end->run_error.code);
        dgm_buf_add_char(&e->out, '}');
    }
    dgm_buf_add_char(&e->out, '}');
    dgm_lc_put_usage(&e->out, failed ? &end->run_error.usage : &end->run_finished.usage);
}

/* ---- messages of the assistant ------------------------------------------------------------------------------------------ */

static struct open *langchain_encode_find_open(const E *e, dgm_str id)
{
    for (size_t i = 0; i < e->n_open; i++) {
        if (dgm_str_eq(dgm_buf_str(&e->open[i].id), id))
            return &e->open[i];
    }
    return NULL;
}

/* The last chunk of a message; at the end of the run it has the outcome. */
static void last_chunk(E *e, dgm_str id, const dgm_canon_event *end)
{
    begin_chunk(e, AI);
    dgm_buf_add_lit(&e->out, "\"\"");
    end_chunk(e, AI, id);
    if (end)
        put_end(e, end);
    dgm_buf_add_lit(&e->out, ",\"chunk_position\":\"last\"");
    send_chunk(e);
}

static void close_message(E *e, struct open *o, const dgm_canon_event *end)
{
    last_chunk(e, dgm_buf_str(&o->id), end);
    dgm_buf_done(&o->id);
    *o = e->open[--e->n_open];
}

/* Completes the messages that have no open text and no open call. */
static void close_idle(E *e, dgm_str but)
{
    for (size_t i = e->n_open; i > 0; i--) {
        struct open *o = &e->open[i - 1];
        if (!o->text && !o->calls_open && !dgm_str_eq(dgm_buf_str(&o->id), but))
            close_message(e, o, NULL);
    }
}

static struct open *open_message(E *e, dgm_str id)
{
    struct open *o = langchain_encode_find_open(e, id);
    if (o)
        return o;
    close_idle(e, id);
    e->open = dgm_list_reserve(e->open, e->n_open, &e->cap_open, sizeof *e->open);
    o = &e->open[e->n_open++];
    *o = (struct open){.n_calls = 0};
    dgm_buf_init(&o->id, SIZE_MAX);
    dgm_buf_add_str(&o->id, id);
    return o;
}

/* ---- texts -------------------------------------------------------------------------------------------------------------- */

static const char *chunk_type(dgm_canon_role role)
{
    return role == DGM_CANON_USER ? "HumanMessageChunk" : "SystemMessageChunk";
}

static bool langchain_encode_is_answer(dgm_canon_role role)
{
    return role == DGM_CANON_ROLE_NONE || role == DGM_CANON_ASSISTANT;
}

static void langchain_encode_start_text(E *e, const dgm_canon_event *event)
{
    e->role = event->text.role;
    if (langchain_encode_is_answer(e->role))
        open_message(e, event->text.message_id)->text = true;
}

/* Texts of other roles are collected and written as one message. */
static void others_text(E *e, const dgm_canon_event *event)
{
    const char *type = chunk_type(e->role);
    dgm_canon_message m = {.role = e->role,
                           .id = event->text.message_id,
                           .content = {.kind = DGM_CANON_CONTENT_TEXT, .text = event->text.delta}};
    if (event->text.parts.n)
        m.content =
            (dgm_canon_content){.kind = DGM_CANON_CONTENT_PARTS, .parts = event->text.parts};
    if (event->text.whole) {
        dgm_buf_clear(&e->out);
        dgm_lc_put_message(&e->out, e->scratch, &m, NULL);
        send(e);
        return;
    }
    begin_chunk(e, type);
    dgm_json_put_str(&e->out, event->text.delta);
    end_chunk(e, type, event->text.message_id);
    send_chunk(e);
}

static void langchain_encode_add_text(E *e, const dgm_canon_event *event)
{
    struct open *o = langchain_encode_find_open(e, event->text.message_id);
    if (!langchain_encode_is_answer(e->role) && (!o || !o->text)) {
        others_text(e, event);
        return;
    }
    if (!o || !event->text.delta.n)
        return;
    begin_chunk(e, AI);
    dgm_json_put_str(&e->out, event->text.delta);
    end_chunk(e, AI, event->text.message_id);
    send_chunk(e);
}

static void langchain_encode_add_reasoning(E *e, const dgm_canon_event *event)
{
    if (!event->text.delta.n)
        return;
    open_message(e, event->text.message_id);
    begin_chunk(e, AI);
    dgm_buf_add_lit(&e->out, "[{\"type\":\"reasoning\",\"reasoning\":");
    dgm_json_put_str(&e->out, event->text.delta);
    dgm_buf_add_lit(&e->out, ",\"index\":0}]");
    end_chunk(e, AI, event->text.message_id);
    send_chunk(e);
}

/* Chunks cannot be revoked: a complete message with the same id replaces their text. */
static void instead(E *e, const dgm_canon_event *event)
{
    for (size_t i = 0; event->snapshot.changed.n && i < event->snapshot.messages.n; i++) {
        dgm_canon_message m = event->snapshot.messages.at[i];
        if (!dgm_str_eq(m.id, event->snapshot.changed))
            continue;
        m.id = wire_id(e, m.id);
        dgm_buf_clear(&e->out);
        dgm_lc_put_message(&e->out, e->scratch, &m, NULL);
        send(e);
        return;
    }
}

/* ---- calls -------------------------------------------------------------------------------------------------------------- */

static struct call *langchain_encode_find_call(const E *e, dgm_str id)
{
    size_t *at = dgm_map_get(&e->by_id, id);
    return at ? &e->calls[*at] : NULL;
}

static void call_chunk(E *e, const struct call *c, dgm_str name, dgm_str args)
{
    begin_chunk(e, AI);
    dgm_buf_add_lit(&e->out, "\"\"");
    end_chunk(e, AI, c->parent);
    dgm_buf_add_lit(&e->out, ",\"tool_call_chunks\":[{\"name\":");
    if (name.p) {
        dgm_json_put_str(&e->out, name);
        dgm_lc_put_member(&e->out, "\"id\"", c->id);
    } else { /* LangChain joins what it finds here */
        dgm_buf_add_lit(&e->out, "null,\"id\":null");
    }
    dgm_lc_put_member(&e->out, "\"args\"", args);
    dgm_buf_printf(&e->out, ",\"index\":%u,\"type\":\"tool_call_chunk\"}]", c->index);
    send_chunk(e);
}

static void langchain_encode_start_call(E *e, const dgm_canon_event *event)
{
    dgm_str parent = event->call.parent_message_id;
    if (langchain_encode_find_call(e, event->call.tool_call_id))
        return;
    e->calls = dgm_list_reserve(e->calls, e->n_calls, &e->cap_calls, sizeof *e->calls);
    struct call *c = &e->calls[e->n_calls];
    *c = (struct call){.id = dgm_arena_dup(e->arena, event->call.tool_call_id), .open = true};
    c->parent = parent.n ? dgm_arena_dup(e->arena, parent) : c->id;
    dgm_map_put(&e->by_id, c->id, e->n_calls++);
    struct open *o = open_message(e, c->parent);
    c->index = o->n_calls++;
    o->calls_open++;
    call_chunk(e, c, event->call.name.p ? event->call.name : DGM_STR(""), DGM_STR(""));
}

static void langchain_encode_end_call(E *e, dgm_str id)
{
    struct call *c = langchain_encode_find_call(e, id);
    struct open *o = c && c->open ? langchain_encode_find_open(e, c->parent) : NULL;
    if (o && o->calls_open)
        o->calls_open--;
    if (c)
        c->open = false;
}

static void result(E *e, const dgm_canon_event *event)
{
    bool failed = yyjson_is_true(dgm_json_get(event->metadata, DGM_STR(DGM_META_ERROR)));
    dgm_canon_message m = {.role = DGM_CANON_TOOL,
                           .id = event->result.message_id,
                           .tool_call_id = event->result.tool_call_id,
                           .content = event->result.content,
                           .error = failed ? DGM_STR("") : (dgm_str){0}};
    langchain_encode_end_call(e, event->result.tool_call_id); /* later arguments are ignored */
    close_idle(e, (dgm_str){0});
    dgm_buf_clear(&e->out);
    dgm_lc_put_message(&e->out, e->scratch, &m, NULL);
    send(e);
}

static void langchain_encode_end_run(E *e, const dgm_canon_event *event)
{
    while (e->n_open > 1)
        close_message(e, &e->open[0], NULL);
    if (e->n_open)
        close_message(e, &e->open[0], event);
    else
        last_chunk(e, dgm_buf_str(&e->run_id), event);
    e->over = true;
}

/* ---- the handle ----------------------------------------------------------------------------------------------------------- */

static void langchain_encode_feed(E *e, const dgm_canon_event *event)
{
    struct open *o;
    switch ((int)event->kind) {
    case DGM_CANON_TEXT_MESSAGE_START: langchain_encode_start_text(e, event); break;
    case DGM_CANON_TEXT_MESSAGE_CONTENT: langchain_encode_add_text(e, event); break;
    case DGM_CANON_TEXT_MESSAGE_END:
        if ((o = langchain_encode_find_open(e, event->text.message_id)))
            o->text = false;
        e->role = DGM_CANON_ROLE_NONE;
        break;
    case DGM_CANON_REASONING_MESSAGE_CONTENT: langchain_encode_add_reasoning(e, event); break;
    case DGM_CANON_TOOL_CALL_START: langchain_encode_start_call(e, event); break;
    case DGM_CANON_TOOL_CALL_ARGS: {
        const struct call *c = langchain_encode_find_call(e, event->call.tool_call_id);
        if (c && c->open && event->call.delta.n)
            call_chunk(e, c, (dgm_str){0}, event->call.delta);
        break;
    }
    case DGM_CANON_TOOL_CALL_END: langchain_encode_end_call(e, event->call.tool_call_id); break;
    case DGM_CANON_TOOL_CALL_RESULT: result(e, event); break;
    case DGM_CANON_MESSAGES_SNAPSHOT: instead(e, event); break;
    case DGM_CANON_RUN_FINISHED:
    case DGM_CANON_RUN_ERROR: langchain_encode_end_run(e, event); break;
    default: break; /* see the losses */
    }
}

void *dgm_lc_encoder_new(const dgm_stream_params *params, dgm_frame_sink sink)
{
    E *e = dgm_xcalloc(1, sizeof *e);
    e->sink = sink;
    e->fragment = params->fragment;
    e->arena = dgm_arena_new();
    e->scratch = dgm_arena_new();
    dgm_buf_init(&e->out, DGM_MAX_OUTPUT_BYTES);
    dgm_buf_init(&e->run_id, SIZE_MAX);
    dgm_map_init(&e->by_id);
    return e;
}

dgm_code dgm_lc_encoder_feed(void *encoder, const dgm_canon_event *event, dgm_err *err)
{
    E *e = encoder;
    e->err = err;
    if (event->kind == DGM_CANON_RUN_STARTED) {
        e->started = true;
        e->over = false;
        dgm_buf_clear(&e->run_id);
        dgm_buf_add_str(&e->run_id, event->run_started.run_id);
    } else if (!e->over) {
        langchain_encode_feed(e, event);
    }
    dgm_arena_reset(e->scratch);
    return e->rc;
}

dgm_code dgm_lc_encoder_end(void *encoder, dgm_err *err)
{
    E *e = encoder;
    dgm_canon_event cut = {.kind = DGM_CANON_RUN_ERROR};
    cut.run_error.message = DGM_STR("The stream ended before the run did");
    cut.run_error.code = DGM_STR("incomplete");
    e->err = err;
    if (e->started && !e->over && !e->fragment)
        langchain_encode_end_run(e, &cut);
    while (e->n_open)
        close_message(e, &e->open[0], NULL);
    return e->rc;
}

void dgm_lc_encoder_free(void *encoder)
{
    E *e = encoder;
    if (!e)
        return;
    while (e->n_open)
        dgm_buf_done(&e->open[--e->n_open].id);
    free(e->open);
    free(e->calls);
    dgm_map_done(&e->by_id);
    dgm_buf_done(&e->run_id);
    dgm_buf_done(&e->out);
    dgm_arena_free(e->arena);
    dgm_arena_free(e->scratch);
    free(e);
}
