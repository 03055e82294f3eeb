/*
 * lib/functions_chat.c - convert_agui_event_to_openai_chat(): events to messages of Chat Completions.
 *
 * Intermediate events (chunks, pieces of arguments) and events without a message (runs, steps) give
 * nothing. Calls that share a parent become one message at the position of its first event: chat wants
 * them together, whatever came in between.
 */
#include "base/limits.h"
#include "base/map.h"
#include "canon/events_to_messages.h"
#include "canon/message_content.h"
#include "lib/direct.h"
#include "lib/functions_int.h"
#include "wire/a2a/a2a.h"

#include <stdlib.h>

struct making {
    dgm_arena *a;
    dgm_chat_messages list;
    dgm_map by_parent; /* id of a message of the agent -> where it is in the list */
    dgm_err *err;
};

static dgm_chat_message *functions_chat_add(struct making *k, dgm_chat_role role)
{
    k->list.at = dgm_list_grow(k->a, k->list.at, k->list.n, sizeof *k->list.at);
    dgm_chat_message *m = &k->list.at[k->list.n++];
    m->role = role;
    return m;
}

/* ---- document 000's events ------------------------------------------------------------------------------------ */

static dgm_chat_role role_of(dgm_canon_role role)
{
    switch ((int)role) {
    case DGM_CANON_SYSTEM: return DGM_CHAT_SYSTEM;
    case DGM_CANON_DEVELOPER: return DGM_CHAT_DEVELOPER;
    case DGM_CANON_USER: return DGM_CHAT_USER;
    default: return DGM_CHAT_ASSISTANT;
    }
}

/* Which of its parts chat has parts for is known to document 001's function. */
static dgm_code functions_chat_content_of(struct making *k, const dgm_simple_event *e,
                                          dgm_chat_content *ret)
{
    const dgm_canon_content *c = &e->message.content;
    dgm_mint none = {0};
    dgm_event said;
    dgm_direct_pair pair;
    dgm_code rc;
    if (c->kind != DGM_CANON_CONTENT_PARTS) {
        *ret = (dgm_chat_content){.kind = DGM_CHAT_CONTENT_TEXT,
                                  .text = c->text.p ? c->text : DGM_STR("")};
        return DGM_OK;
    }
    dgm_simple_to_model(k->a, e, (dgm_simple_run){0}, &none, &said);
    if ((rc = dgm_direct_to_chat(k->a, said.message, NULL, false, &pair, k->err)))
        return rc;
    *ret = pair.openai_message->content;
    return DGM_OK;
}

static dgm_chat_message *functions_chat_message_of(struct making *k, dgm_str id)
{
    size_t *at = id.n ? dgm_map_get(&k->by_parent, id) : NULL;
    return at ? &k->list.at[*at] : NULL;
}

static dgm_code functions_chat_add_text(struct making *k, const dgm_simple_event *e)
{
    dgm_chat_role role = role_of(e->message.role);
    dgm_str id = role == DGM_CHAT_ASSISTANT ? e->message_id : (dgm_str){0};
    dgm_chat_message *m = functions_chat_message_of(k, id);
    dgm_chat_content content = {0};
    dgm_code rc;
    if ((rc = functions_chat_content_of(k, e, &content)))
        return rc;
    if (!m || m->content.text.n) { /* not the text of a message with earlier calls */
        if (id.n)
            dgm_map_put(&k->by_parent, id, k->list.n);
        m = functions_chat_add(k, role);
    }
    m->content = content;
    return DGM_OK;
}

static void functions_chat_add_call(struct making *k, const dgm_simple_event *e)
{
    dgm_str parent = e->parent_message_id;
    dgm_chat_message *m = functions_chat_message_of(k, parent);
    if (!m) {
        if (parent.n)
            dgm_map_put(&k->by_parent, parent, k->list.n);
        m = functions_chat_add(k, DGM_CHAT_ASSISTANT);
        m->content = (dgm_chat_content){.kind = DGM_CHAT_CONTENT_TEXT, .text = DGM_STR("")};
    }
    m->tool_calls.at =
        dgm_list_grow(k->a, m->tool_calls.at, m->tool_calls.n, sizeof *m->tool_calls.at);
    m->tool_calls.at[m->tool_calls.n++] = (dgm_chat_call){
        .id = e->call.id,
        .kind = e->call.type ? DGM_CHAT_CALL_CUSTOM : DGM_CHAT_CALL_FUNCTION,
        .name = e->call.name,
        .arguments = dgm_content_arguments(k->a, e->call.arguments),
    };
}

static void functions_chat_add_result(struct making *k, const dgm_simple_event *e)
{
    dgm_chat_message *m = functions_chat_add(k, DGM_CHAT_TOOL);
    dgm_str text = dgm_content_value_text(k->a, e->result);
    m->tool_call_id = e->tool_call_id;
    m->content = (dgm_chat_content){.kind = DGM_CHAT_CONTENT_TEXT, .text = text};
}

static dgm_code add_events(struct making *k, const dgm_simple_events *events)
{
    dgm_code rc = DGM_OK;
    for (size_t i = 0; !rc && i < events->n; i++) {
        const dgm_simple_event *e = &events->at[i];
        switch (e->kind) {
        case DGM_SIMPLE_TEXT_CONTENT:
        case DGM_SIMPLE_TEXT_END: rc = functions_chat_add_text(k, e); break;
        case DGM_SIMPLE_CALL_START: functions_chat_add_call(k, e); break;
        case DGM_SIMPLE_CALL_RESULT: functions_chat_add_result(k, e); break;
        case DGM_SIMPLE_NONE:
        case DGM_SIMPLE_RUN_STARTED:
        case DGM_SIMPLE_STEP_STARTED:
        case DGM_SIMPLE_TEXT_CHUNK:
        case DGM_SIMPLE_CALL_ARGS:
        case DGM_SIMPLE_STEP_FINISHED:
        case DGM_SIMPLE_RUN_FINISHED:
        case DGM_SIMPLE_RUN_ERROR: break; /* no message, or an incomplete one */
        }
    }
    return rc;
}

/* ---- AG-UI's own -------------------------------------------------------------------------------------------- */

/* Texts and calls that were begun and not ended. */
static void note_open(dgm_map *open, dgm_arena *a, const dgm_canon_event *e)
{
    bool text = e->kind == DGM_CANON_TEXT_MESSAGE_START || e->kind == DGM_CANON_TEXT_MESSAGE_END;
    bool call = e->kind == DGM_CANON_TOOL_CALL_START || e->kind == DGM_CANON_TOOL_CALL_END;
    if (!text && !call)
        return;
    dgm_str id = text ? e->text.message_id : e->call.tool_call_id;
    bool starts = e->kind == DGM_CANON_TEXT_MESSAGE_START || e->kind == DGM_CANON_TOOL_CALL_START;
    dgm_map_put(open, dgm_arena_printf(a, "%c%.*s", text ? 't' : 'c', DGM_P(id)), starts);
}

static bool is_open(const dgm_map *open, dgm_arena *a, char kind, dgm_str id)
{
    size_t *at = dgm_map_get(open, dgm_arena_printf(a, "%c%.*s", kind, DGM_P(id)));
    return at && *at;
}

static dgm_simple_event *one_more(dgm_arena *a, dgm_simple_events *list, dgm_simple_kind kind)
{
    list->at = dgm_list_grow(a, list->at, list->n, sizeof *list->at);
    list->at[list->n].kind = kind;
    return &list->at[list->n++];
}

static void add_assistant(dgm_arena *a, const dgm_canon_message *m, const dgm_map *open,
                          dgm_simple_events *list)
{
    bool says = m->content.kind == DGM_CANON_CONTENT_TEXT && !is_open(open, a, 't', m->id) &&
                (m->content.text.n || !m->tool_calls.n);
    if (says) {
        dgm_simple_event *e = one_more(a, list, DGM_SIMPLE_TEXT_END);
        e->message_id = m->id;
        e->message = (dgm_simple_message){.role = m->role, .content = m->content};
    }
    for (size_t i = 0; i < m->tool_calls.n; i++) {
        const dgm_canon_call *call = &m->tool_calls.at[i];
        if (is_open(open, a, 'c', call->id))
            continue;
        dgm_simple_event *e = one_more(a, list, DGM_SIMPLE_CALL_START);
        e->parent_message_id = m->id;
        e->call = (dgm_simple_call){
            .id = call->id,
            .name = call->name,
            .arguments = call->arguments.n ? dgm_json_make_string(a, call->arguments) : NULL,
        };
    }
}

static void add_tool(dgm_arena *a, const dgm_canon_message *m, dgm_simple_events *list)
{
    dgm_simple_event *e = one_more(a, list, DGM_SIMPLE_CALL_RESULT);
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_str(&b, m->content.text);
    for (size_t i = 0; i < m->content.parts.n; i++)
        dgm_buf_add_str(&b, m->content.parts.at[i].text);
    e->tool_call_id = m->tool_call_id;
    e->result = dgm_json_make_string(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

/* The messages that AG-UI's events add up to, as document 000's events: one path to chat for both. */
static dgm_code fold(dgm_arena *a, const dgm_canon_events *events, dgm_canon_fold *f,
                     dgm_simple_events *ret, dgm_err *err)
{
    dgm_map open;
    dgm_map_init(&open);
    for (size_t i = 0; i < events->n; i++) {
        dgm_canon_fold_add(f, &events->at[i]);
        note_open(&open, a, &events->at[i]);
    }
    dgm_canon_messages messages = dgm_canon_fold_messages(f, a);
    for (size_t i = 0; i < messages.n; i++) {
        const dgm_canon_message *m = &messages.at[i];
        switch (m->role) {
        case DGM_CANON_ASSISTANT: add_assistant(a, m, &open, ret); break;
        case DGM_CANON_TOOL: add_tool(a, m, ret); break;
        case DGM_CANON_DEVELOPER:
        case DGM_CANON_SYSTEM:
        case DGM_CANON_USER:
            if (is_open(&open, a, 't', m->id))
                break;
            one_more(a, ret, DGM_SIMPLE_TEXT_CONTENT)->message =
                (dgm_simple_message){.role = m->role, .content = m->content};
            break;
        case DGM_CANON_ROLE_NONE:
        case DGM_CANON_REASONING:
        case DGM_CANON_ACTIVITY: break; /* nothing of the conversation */
        }
    }
    dgm_map_done(&open);
    if (dgm_canon_fold_is_over(f))
        return dgm_fail(err, DGM_TOO_LARGE, NULL, "becomes more than the limit output_bytes of %zu",
                        DGM_MAX_OUTPUT_BYTES);
    return DGM_OK;
}

/* ---- the functions --------------------------------------------------------------------------------------------- */

static void put_chat(dgm_functions_out *out, const dgm_chat_message *m)
{
    if (dgm_functions_flatten(out, &dgm_chat_message_shape, m))
        return;
    dgm_writer w = dgm_functions_next(out, DGM_FORMAT_CHAT);
    dgm_chat_write(&w, m);
}

static void free_fold(void *f)
{
    dgm_canon_fold_free(f);
}

/* Texts of the messages are in the fold: it is freed with the arena. */
static dgm_code fold_official(dgm_arena *a, dgm_functions_events *events, dgm_err *err)
{
    dgm_canon_fold *f = dgm_canon_fold_new(DGM_MAX_OUTPUT_BYTES);
    dgm_arena_defer(a, free_fold, f);
    return fold(a, &events->canon, f, &events->simple, err);
}

dgm_code dgm_functions_event_to_chat(dgm_functions_in *in, dgm_functions_out *out, dgm_err *err)
{
    dgm_functions_events events;
    struct making k = {.a = in->a, .err = err};
    dgm_map_init(&k.by_parent);
    dgm_code rc = dgm_functions_read_events(in, &events, err);
    if (!rc && events.official && !events.chunk)
        rc = fold_official(in->a, &events, err);
    if (!rc)
        rc = add_events(&k, &events.simple);
    for (size_t i = 0; !rc && i < k.list.n; i++)
        put_chat(out, &k.list.at[i]);
    out->is_list = events.is_list;
    dgm_map_done(&k.by_parent);
    return rc;
}

dgm_code dgm_convert_agui_event_to_openai_chat(const char *text, size_t n, char **ret_text,
                                               size_t *ret_n, dgm_err *err)
{
    return dgm_functions_on_text(dgm_functions_event_to_chat, (dgm_str){text, n}, ret_text, ret_n,
                                 err);
}

/* [openai_message or null,[tool_messages]] */
static void put_pair(dgm_buf *b, const dgm_direct_pair *pair)
{
    dgm_writer w = {.out = b, .format = DGM_FORMAT_CHAT};
    dgm_buf_add_char(b, '[');
    if (pair->openai_message)
        dgm_chat_write(&w, pair->openai_message);
    else
        dgm_buf_add_lit(b, "null");
    dgm_buf_add_lit(b, ",[");
    for (size_t i = 0; i < pair->tool_messages.n; i++) {
        if (i)
            dgm_buf_add_char(b, ',');
        dgm_chat_write(&w, &pair->tool_messages.at[i]);
    }
    dgm_buf_add_lit(b, "]]");
}

/* The same as a flat list; false: it cannot be. */
static bool flatten_pair(dgm_functions_out *out, const dgm_direct_pair *pair)
{
    dgm_flat *flat = out->flat;
    const dgm_chat_messages *tools = &pair->tool_messages;
    if (!flat)
        return false;
    size_t start = flat->n;
    dgm_flat_add(flat, DGM_JSON_KIND_ARRAY, 2, NULL);
    bool done = true;
    if (pair->openai_message)
        done = dgm_shape_flatten(flat, &dgm_chat_message_shape, pair->openai_message);
    else
        dgm_flat_add(flat, DGM_JSON_KIND_NULL, 0, NULL);
    dgm_flat_add(flat, DGM_JSON_KIND_ARRAY, tools->n, NULL);
    for (size_t i = 0; done && i < tools->n; i++)
        done = dgm_shape_flatten(flat, &dgm_chat_message_shape, &tools->at[i]);
    if (done)
        out->n_flat++;
    else
        flat->n = start;
    return done;
}

dgm_code dgm_functions_message_to_chat(dgm_functions_in *in, dgm_functions_out *out, dgm_err *err)
{
    dgm_functions_object o;
    dgm_direct_pair pair;
    const dgm_message *m = NULL;
    dgm_code rc;
    if (!in->text.p)
        in->text = DGM_STR(""); /* ids are not part of the result */
    if ((rc = dgm_functions_read_object(in, in->root, 0, &o, err)))
        return rc;
    m = o.frame.object.kind == DGM_OBJECT_SEND_REQUEST
            ? ((const dgm_send_request *)o.frame.object.it)->message
            : dgm_a2a_message_in(&o.frame.object);
    if (!m)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                        "this is a %s: only a message becomes messages of Chat Completions",
                        dgm_object_kind_name(o.frame.object.kind));
    if ((rc = dgm_direct_to_chat(in->a, m, DGM_AT_LIT(NULL, "message"), false, &pair, err))) {
        dgm_a2a_name_pointer(o.codec, &o.frame, err);
        return rc;
    }
    if (!flatten_pair(out, &pair))
        put_pair(dgm_functions_next(out, DGM_FORMAT_NONE).out, &pair);
    return DGM_OK;
}

dgm_code dgm_convert_a2a_message_to_openai(const char *text, size_t n, char **ret_text,
                                           size_t *ret_n, dgm_err *err)
{
    return dgm_functions_on_text(dgm_functions_message_to_chat, (dgm_str){text, n}, ret_text, ret_n,
                                 err);
}
