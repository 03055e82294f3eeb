/*
 * canon/compact_messages.c - a list of A2A messages, compacted: see compact.h.
 *
 * Each message becomes its events, dgm_compact_simple() compacts them, and the events that remain become
 * messages again. Events of one group (a message id, which calls have as their parent) are one message, as
 * convert_agui_event_to_openai_chat() makes one chat message of them.
 */
#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "canon/compact.h"
#include "canon/message_content.h"
#include "model/stamp.h"

/* A message that was added. */
struct source {
    const dgm_message *message;
    bool piece;
    size_t placed; /* 1 + index of the result that it is in; 0: not yet */
    size_t starts; /* 1 + index of the first Start that was made of it; 0 if no Start was made */
};

struct result {
    bool has_text;
    bool owns_parts; /* the list of parts is the result's own and may grow */
};

struct dgm_compactor {
    dgm_arena *a;
    bool trusted;
    struct source *sources;
    size_t n_sources;
    dgm_simple_events events;
    size_t *next_start; /* of an event: 1 + index of the next Start of its message */
    dgm_compacted_list out;
    struct result *results; /* one for each of out */
    dgm_map groups;         /* message id -> index of the result that it is in */
};

bool dgm_message_is_piece(const dgm_message *m)
{
    dgm_str type = dgm_json_str_member(m->metadata, "canonical_type");
    return m->role == DGM_ROLE_AGENT &&
           (dgm_str_is(type, "TextMessageChunkEvent") || dgm_str_is(type, "ToolCallArgsEvent"));
}

bool dgm_messages_have_pieces(const dgm_messages *list)
{
    for (size_t i = 0; i < list->n; i++) {
        if (dgm_message_is_piece(&list->at[i]))
            return true;
    }
    return false;
}

dgm_compactor *dgm_compactor_new(dgm_arena *a, bool trusted)
{
    dgm_compactor *c = dgm_new(a, dgm_compactor);
    c->a = a;
    c->trusted = trusted;
    return c;
}

dgm_code dgm_compactor_add(dgm_compactor *c, const dgm_message *m, const dgm_at *at, dgm_err *err)
{
    dgm_simple_events events;
    dgm_code rc;
    if ((rc = dgm_simple_from_message(c->a, m, c->trusted, at, &events, err)))
        return rc;
    bool piece = false;
    for (size_t i = 0; i < events.n; i++) {
        piece |=
            events.at[i].kind == DGM_SIMPLE_TEXT_CHUNK || events.at[i].kind == DGM_SIMPLE_CALL_ARGS;
        c->events.at = dgm_list_grow(c->a, c->events.at, c->events.n, sizeof *c->events.at);
        c->events.at[c->events.n] = events.at[i];
        c->events.at[c->events.n++].source = c->n_sources;
    }
    if (!events.n) { /* an empty message is no event, but stays where it is */
        c->events.at = dgm_list_grow(c->a, c->events.at, c->events.n, sizeof *c->events.at);
        c->events.at[c->events.n++] =
            (dgm_simple_event){.kind = DGM_SIMPLE_STEP_FINISHED, .source = c->n_sources};
    }
    c->sources = dgm_list_grow(c->a, c->sources, c->n_sources, sizeof *c->sources);
    c->sources[c->n_sources++] = (struct source){.message = m, .piece = piece};
    return DGM_OK;
}

/* ---- results ------------------------------------------------------------------------------------------- */

static dgm_compacted *compacted_new(dgm_compactor *c, size_t source)
{
    c->out.at = dgm_list_grow(c->a, c->out.at, c->out.n, sizeof *c->out.at);
    c->results = dgm_list_grow(c->a, c->results, c->out.n, sizeof *c->results);
    dgm_compacted *x = &c->out.at[c->out.n++];
    *x = (dgm_compacted){.source = source};
    return x;
}

static void compacted_push(dgm_compactor *c, dgm_parts *list, const dgm_part *part)
{
    list->at = dgm_list_grow(c->a, list->at, list->n, sizeof *list->at);
    list->at[list->n++] = *part;
}

static void compacted_add_parts(dgm_compactor *c, size_t at, const dgm_parts *parts)
{
    dgm_parts *list = &c->out.at[at].message.parts;
    if (!c->results[at].owns_parts) {
        dgm_parts before = *list;
        *list = (dgm_parts){0};
        for (size_t i = 0; i < before.n; i++)
            compacted_push(c, list, &before.at[i]);
        c->results[at].owns_parts = true;
    }
    for (size_t i = 0; i < parts->n; i++)
        compacted_push(c, list, &parts->at[i]);
}

/* The message's own members with another canonical_type, where it says one. */
static const dgm_json *with_type(dgm_compactor *c, const dgm_json *metadata, const char *type)
{
    yyjson_val *all = (yyjson_val *)(uintptr_t)metadata;
    dgm_member *members = dgm_new_n(c->a, dgm_member, yyjson_obj_size(all) + 1);
    yyjson_obj_iter it = yyjson_obj_iter_with(all);
    yyjson_val *key;
    size_t n = 0;
    while ((key = yyjson_obj_iter_next(&it))) {
        bool is_type = dgm_str_is(dgm_json_str(key), "canonical_type");
        members[n++] =
            (dgm_member){dgm_json_str(key), is_type ? dgm_json_make_string(c->a, dgm_str_from(type))
                                                    : yyjson_obj_iter_get_val(key)};
    }
    return n ? dgm_json_object(c->a, members, n) : NULL;
}

/* ---- calls whose arguments were merged ------------------------------------------------------------------- */

/* The data with other arguments for its calls; first: the number of the first one in its message. */
static const dgm_json *data_with(dgm_compactor *c, const dgm_part *p, size_t source, size_t first,
                                 size_t *ret_n)
{
    yyjson_val *calls = dgm_content_data_member(p, DGM_DATA_CALLS), *call;
    size_t i, n = yyjson_arr_size(calls);
    const dgm_json **arguments = dgm_new_n(c->a, const dgm_json *, n);
    bool any = false;
    *ret_n = n;
    for (i = c->sources[source].starts; i; i = c->next_start[i - 1]) {
        const dgm_simple_event *e = &c->events.at[i - 1];
        if (e->nth >= first && e->nth < first + n)
            arguments[e->nth - first] = e->call.arguments;
    }
    yyjson_arr_foreach (calls, i, n, call)
        any |= arguments[i] && arguments[i] != dgm_json_get(call, DGM_STR("arguments"));
    if (!any)
        return p->data;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_char(&b, '[');
    yyjson_arr_foreach (calls, i, n, call) {
        dgm_member *members = dgm_new_n(c->a, dgm_member, yyjson_obj_size(call) + 1);
        yyjson_obj_iter it = yyjson_obj_iter_with(call);
        yyjson_val *key;
        size_t k = 0;
        while ((key = yyjson_obj_iter_next(&it))) {
            if (!arguments[i] || !dgm_str_is(dgm_json_str(key), "arguments"))
                members[k++] = (dgm_member){dgm_json_str(key), yyjson_obj_iter_get_val(key)};
        }
        if (arguments[i])
            members[k++] = (dgm_member){DGM_STR("arguments"), arguments[i]};
        if (i)
            dgm_buf_add_char(&b, ',');
        dgm_json_put(&b, dgm_json_object(c->a, members, k));
    }
    dgm_buf_add_char(&b, ']');
    const dgm_json *merged = dgm_json_parse_trusted(c->a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    yyjson_obj_iter it = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)p->data);
    dgm_member *members = dgm_new_n(c->a, dgm_member, yyjson_obj_size(it.obj));
    yyjson_val *key;
    size_t k = 0;
    while ((key = yyjson_obj_iter_next(&it)))
        members[k++] = (dgm_member){dgm_json_str(key), dgm_str_is(dgm_json_str(key), DGM_DATA_CALLS)
                                                           ? merged
                                                           : yyjson_obj_iter_get_val(key)};
    return dgm_json_object(c->a, members, k);
}

static dgm_parts parts_of_complete(dgm_compactor *c, size_t source)
{
    const dgm_message *m = c->sources[source].message;
    dgm_parts parts = m->parts;
    size_t first = 0, n;
    for (size_t i = 0; m->role == DGM_ROLE_AGENT && i < m->parts.n; i++) {
        if (m->parts.at[i].kind != DGM_PART_DATA ||
            !dgm_content_data_member(&m->parts.at[i], DGM_DATA_CALLS))
            continue;
        const dgm_json *data = data_with(c, &m->parts.at[i], source, first, &n);
        first += n;
        if (data == m->parts.at[i].data)
            continue;
        if (parts.at == m->parts.at) {
            parts.at = dgm_new_n(c->a, dgm_part, parts.n);
            memcpy(parts.at, m->parts.at, parts.n * sizeof *parts.at);
        }
        parts.at[i].data = data;
    }
    return parts;
}

/* ---- events become messages ------------------------------------------------------------------------------ */

static dgm_compacted *result_of_group(dgm_compactor *c, dgm_str id, bool is_text)
{
    size_t *at = id.n ? dgm_map_get(&c->groups, id) : NULL;
    return at && !(is_text && c->results[*at].has_text) ? &c->out.at[*at] : NULL;
}

static void compact_messages_place(dgm_compactor *c, const dgm_simple_event *e)
{
    struct source *from = &c->sources[e->source];
    bool text = e->kind == DGM_SIMPLE_TEXT_END, call = e->kind == DGM_SIMPLE_CALL_START;
    dgm_str group = text ? e->message_id : call ? e->parent_message_id : (dgm_str){0};
    if (from->placed && !from->piece)
        return; /* a complete message is where its first event is */
    dgm_compacted *x = result_of_group(c, group, text);
    bool is_new = !x;
    if (is_new)
        x = compacted_new(c, e->source);
    size_t at = (size_t)(x - c->out.at);
    if (group.n)
        dgm_map_put(&c->groups, group, at);
    from->placed = at + 1;
    dgm_parts parts = from->message->parts;
    if (from->piece) {
        dgm_event model;
        dgm_mint none = {0};
        dgm_simple_to_model(c->a, e, (dgm_simple_run){0}, &none, &model);
        parts = model.message->parts;
    } else {
        parts = parts_of_complete(c, e->source);
    }
    bool takes_over = is_new || (c->sources[x->source].piece && !from->piece);
    if (takes_over) {
        dgm_parts before = x->message.parts;
        x->message = *from->message;
        x->message.parts = before;
        x->source = e->source;
        if (from->piece)
            x->message.metadata =
                with_type(c, from->message->metadata, dgm_simple_canonical_type(e->kind));
    }
    if (is_new && !from->piece)
        x->message.parts = parts;
    else
        compacted_add_parts(c, at, &parts);
    for (size_t i = 0; i < parts.n; i++)
        c->results[at].has_text |= parts.at[i].kind == DGM_PART_TEXT && parts.at[i].content.n;
}

dgm_code dgm_compactor_end(dgm_compactor *c, dgm_compacted_list *ret_list, dgm_err *err)
{
    dgm_code rc;
    if ((rc = dgm_compact_simple(c->a, &c->events, &c->events, err)))
        return rc;
    dgm_map_init(&c->groups);
    c->next_start = dgm_new_n(c->a, size_t, c->events.n);
    for (size_t i = c->events.n; i; i--) {
        const dgm_simple_event *e = &c->events.at[i - 1];
        if (e->kind != DGM_SIMPLE_CALL_START)
            continue;
        c->next_start[i - 1] = c->sources[e->source].starts;
        c->sources[e->source].starts = i;
    }
    for (size_t i = 0; i < c->events.n; i++)
        compact_messages_place(c, &c->events.at[i]);
    dgm_map_done(&c->groups);
    *ret_list = c->out;
    return DGM_OK;
}

/* ---- tasks ------------------------------------------------------------------------------------------------- */

/* Does the status message belong to the conversation, as a complete message? */
static bool is_final_status(const dgm_status *s)
{
    if (!s->message)
        return false;
    if (s->state != DGM_STATE_SUBMITTED && s->state != DGM_STATE_WORKING &&
        s->state != DGM_STATE_UNKNOWN)
        return true;
    return dgm_str_is(dgm_json_str_member(s->message->metadata, "canonical_type"),
                      "TextMessageEndEvent");
}

static dgm_code add_artifacts(dgm_compactor *c, const dgm_task *t, const dgm_at *at, dgm_err *err)
{
    dgm_message *messages = dgm_new_n(c->a, dgm_message, t->artifacts.n);
    dgm_code rc = DGM_OK;
    for (size_t i = 0; !rc && i < t->artifacts.n; i++) {
        messages[i] = (dgm_message){.message_id = t->artifacts.at[i].artifact_id,
                                    .role = DGM_ROLE_AGENT,
                                    .parts = t->artifacts.at[i].parts};
        rc = dgm_compactor_add(c, &messages[i], DGM_AT_I(at, i), err);
    }
    return rc;
}

dgm_code dgm_compact_task(dgm_arena *a, const dgm_task *t, bool trusted, const dgm_at *at,
                          dgm_task *ret_task, dgm_err *err)
{
    dgm_task out = *t;
    dgm_compactor *c = dgm_compactor_new(a, trusted);
    dgm_compacted_list list;
    dgm_message *final = dgm_new(a, dgm_message);
    const dgm_at *history = DGM_AT_LIT(at, "history"), *artifacts = DGM_AT_LIT(at, "artifacts");
    const dgm_at *status = DGM_AT_LIT(at, "status"), *message = DGM_AT_LIT(status, "message");
    dgm_code rc = DGM_OK;
    if (!dgm_messages_have_pieces(&t->history)) {
        *ret_task = *t;
        return DGM_OK;
    }
    for (size_t i = 0; !rc && i < t->history.n; i++)
        rc = dgm_compactor_add(c, &t->history.at[i], DGM_AT_I(history, i), err);
    if (rc || (rc = add_artifacts(c, t, artifacts, err)))
        return rc;
    if (is_final_status(&t->status)) {
        *final = *t->status.message;
        if (dgm_message_is_piece(final)) /* it is complete, whatever it says of itself */
            final->metadata = NULL;
        if ((rc = dgm_compactor_add(c, final, message, err)))
            return rc;
    }
    if ((rc = dgm_compactor_end(c, &list, err)))
        return rc;
    out.history = (dgm_messages){dgm_new_n(a, dgm_message, list.n), 0};
    for (size_t i = 0; i < list.n; i++) {
        if (list.at[i].source < t->history.n)
            out.history.at[out.history.n++] = list.at[i].message;
        else if (list.at[i].source == t->history.n + t->artifacts.n)
            out.status.message = &list.at[i].message;
    }
    *ret_task = out;
    return DGM_OK;
}
