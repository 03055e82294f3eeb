/*
 * canon/events_to_records_items.c - texts, calls and results on their way to A2A: artifacts and internal events within
 * a run, messages without one.
 */
#include "base/limits.h"
#include "canon/events_to_records_int.h"

/* ---- items ------------------------------------------------------------------------------------------------ */

struct to_item *dgm_to_find(const dgm_events_to_records *m, const dgm_map *map, dgm_str id)
{
    size_t *at = dgm_map_get(map, id);
    return at ? &m->items[*at] : NULL;
}

struct to_item *dgm_to_open(dgm_events_to_records *m, dgm_map *map, dgm_str id)
{
    struct to_item *it = dgm_to_find(m, map, id);
    bool is_over = it && map == &m->calls && it->sealed; /* the same id again is another call */
    if (it && !is_over)
        return it;
    m->items = dgm_list_reserve(m->items, m->n_items, &m->cap_items, sizeof *m->items);
    it = &m->items[m->n_items];
    *it = (struct to_item){.id = dgm_arena_dup(m->arena, id)};
    it->artifact_id = it->id;
    /* A longer text is not repeated in the final status: see final_text_bytes. */
    dgm_buf_init(&it->text,
                 map == &m->texts && m->in_run ? DGM_MAX_FINAL_TEXT_BYTES : DGM_MAX_RECORD_BYTES);
    dgm_map_put(map, it->id, m->n_items++);
    return it;
}

/* ---- messages without a run ----------------------------------------------------------------------------------- */

void dgm_to_flush(dgm_events_to_records *m)
{
    if (!m->waiting)
        return;
    dgm_part parts[2];
    dgm_message out = {.message_id = m->waiting_id.n ? m->waiting_id
                                                     : dgm_mint_id(&m->params.mint, m->scratch),
                       .role = m->waiting_results.n ? DGM_ROLE_USER : DGM_ROLE_AGENT,
                       .parts = {parts, 0}};
    if (m->waiting_text.n)
        parts[out.parts.n++] =
            (dgm_part){.kind = DGM_PART_TEXT, .content = dgm_buf_str(&m->waiting_text)};
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    if (m->waiting_calls.n) {
        dgm_buf_add_lit(&b, "{\"tool_calls\":[");
        for (size_t i = 0; i < m->waiting_calls.n; i++) {
            const struct to_item *it = &m->items[m->waiting_calls.at[i]];
            if (i)
                dgm_buf_add_char(&b, ',');
            dgm_to_put_call(&b, m->scratch, it->id, it->name, dgm_buf_str(&it->text));
        }
        dgm_buf_add_lit(&b, "]}");
    } else if (m->waiting_results.n) {
        dgm_buf_add_lit(&b, "{\"tool_results\":[");
        dgm_buf_add_str(&b, dgm_buf_str(&m->waiting_results));
        dgm_buf_add_lit(&b, "]}");
    }
    if (b.n)
        parts[out.parts.n++] = (dgm_part){
            .kind = DGM_PART_DATA, .data = dgm_json_parse_trusted(m->scratch, dgm_buf_str(&b))};
    dgm_buf_done(&b);
    if (!out.parts.n) /* an empty text */
        parts[out.parts.n++] = (dgm_part){.kind = DGM_PART_TEXT, .content = DGM_STR("")};
    dgm_to_out(m, &(dgm_event){.kind = DGM_EVENT_MESSAGE, .message = &out});
    m->waiting = false;
    m->waiting_id = (dgm_str){0};
    m->waiting_calls.n = 0;
    m->waiting_calls.at = NULL;
    dgm_buf_clear(&m->waiting_text);
    dgm_buf_clear(&m->waiting_results);
}

/* ---- text ----------------------------------------------------------------------------------------------------- */

/* replaces: the text replaces the parts that the artifact has. */
static void chunk(dgm_events_to_records *m, struct to_item *it, dgm_str text, bool last,
                  bool replaces)
{
    bool append = !replaces && dgm_map_get(&m->artifacts, it->artifact_id);
    dgm_part part = {.kind = DGM_PART_TEXT, .content = text.p ? text : DGM_STR("")};
    dgm_artifact_update u = {
        .task_id = m->task_id,
        .context_id = m->context_id,
        .artifact = {.artifact_id = it->artifact_id, .name = it->name, .parts = {&part, 1}},
        .append = append ? DGM_TRUE : DGM_FALSE,
        .last_chunk = last ? DGM_TRUE : DGM_FALSE};
    it->begun = true;
    it->sealed = last;
    dgm_map_put(&m->artifacts, it->artifact_id, 0);
    dgm_to_work(m);
    dgm_to_out(m, &(dgm_event){.kind = DGM_EVENT_ARTIFACT, .artifact = &u});
}

/* False, with an error, if the text exceeded its limit: it cannot be emitted whole. */
static bool is_whole(dgm_events_to_records *m, const struct to_item *it)
{
    if (it->text.over && !m->rc)
        m->rc = dgm_fail(m->err, DGM_TOO_LARGE, NULL,
                         "\"%.*s\" becomes longer than the limit record_bytes of %zu",
                         (int)(it->id.n < 60 ? it->id.n : 60), it->id.p, DGM_MAX_RECORD_BYTES);
    return !it->text.over;
}

void dgm_to_start_text(dgm_events_to_records *m, const dgm_canon_event *e)
{
    struct to_item *it = dgm_to_open(m, &m->texts, e->text.message_id);
    it->role = e->text.role ? e->text.role : DGM_CANON_ASSISTANT;
    const dgm_json *artifact = dgm_json_get(e->metadata, DGM_STR(DGM_NAME_ARTIFACT));
    dgm_str id = dgm_json_str_member(artifact, "artifactId"),
            name = dgm_json_str_member(artifact, "name");
    if (id.n)
        it->artifact_id = dgm_arena_dup(m->arena, id);
    if (name.n)
        it->name = dgm_arena_dup(m->arena, name);
    if (it->role == DGM_CANON_ASSISTANT)
        m->last_text = (size_t)(it - m->items);
}

void dgm_to_add_text(dgm_events_to_records *m, const dgm_canon_event *e)
{
    struct to_item *it = dgm_to_find(m, &m->texts, e->text.message_id);
    if (!it || (!e->text.delta.n && !e->text.parts.n))
        return;
    dgm_buf_add_str(&it->text, e->text.delta);
    if (e->text.parts.n)
        it->parts = dgm_canon_copy_parts(m->arena, e->text.parts);
    if (m->in_run && it->role == DGM_CANON_ASSISTANT)
        chunk(m, it, e->text.delta, e->text.whole, false);
}

static dgm_canon_message to_records_message_of(const struct to_item *it)
{
    bool parts = it->parts.n > 0;
    return (dgm_canon_message){
        .role = it->role,
        .id = it->id,
        .content = {.kind = parts ? DGM_CANON_CONTENT_PARTS : DGM_CANON_CONTENT_TEXT,
                    .text = dgm_buf_str(&it->text),
                    .parts = it->parts}};
}

static void end_message(dgm_events_to_records *m, struct to_item *it)
{
    dgm_canon_message whole = to_records_message_of(it);
    dgm_message out;
    if (!is_whole(m, it))
        return;
    if (it->role == DGM_CANON_ASSISTANT) {
        dgm_to_flush(m);
        m->waiting = true; /* for calls that it makes */
        m->waiting_id = it->id;
        dgm_buf_add_str(&m->waiting_text, dgm_buf_str(&it->text));
    } else if (dgm_to_message(m->scratch, &whole, &m->params.mint, &out)) {
        dgm_to_flush(m);
        dgm_to_out(m, &(dgm_event){.kind = DGM_EVENT_MESSAGE, .message = &out});
    }
    dgm_buf_clear(&it->text);
}

void dgm_to_end_text(dgm_events_to_records *m, const dgm_canon_event *e)
{
    struct to_item *it = dgm_to_find(m, &m->texts, e->text.message_id);
    if (!it)
        return;
    if (!m->in_run) {
        end_message(m, it);
    } else if (it->role == DGM_CANON_ASSISTANT) {
        if (it->begun && !it->sealed)
            chunk(m, it, (dgm_str){0}, true, false);
    } else {
        dgm_canon_message whole = to_records_message_of(it);
        dgm_message message;
        dgm_internal internal = {.kind = DGM_INTERNAL_MESSAGE, .message = &message};
        if (dgm_to_message(m->scratch, &whole, &m->params.mint, &message))
            dgm_to_internal(m, &internal);
    }
}

/* ---- calls ---------------------------------------------------------------------------------------------------- */

void dgm_to_start_call(dgm_events_to_records *m, const dgm_canon_event *e)
{
    struct to_item *it = dgm_to_open(m, &m->calls, e->call.tool_call_id);
    it->name = dgm_arena_dup(m->arena, e->call.name);
    it->parent = dgm_arena_dup(m->arena, e->call.parent_message_id);
}

void dgm_to_add_arguments(dgm_events_to_records *m, const dgm_canon_event *e)
{
    struct to_item *it = dgm_to_find(m, &m->calls, e->call.tool_call_id);
    if (it)
        dgm_buf_add_str(&it->text, e->call.delta);
}

/* Joins the message of its parent, or begins one. */
static void join_message(dgm_events_to_records *m, struct to_item *it)
{
    bool fits = m->waiting && !m->waiting_results.n && it->parent.n &&
                dgm_str_eq(m->waiting_id, it->parent);
    if (!fits) {
        dgm_to_flush(m);
        m->waiting = true;
        m->waiting_id = it->parent;
    }
    m->waiting_calls.at = dgm_list_grow(m->arena, m->waiting_calls.at, m->waiting_calls.n,
                                        sizeof *m->waiting_calls.at);
    m->waiting_calls.at[m->waiting_calls.n++] = (size_t)(it - m->items);
}

void dgm_to_end_call(dgm_events_to_records *m, const dgm_canon_event *e)
{
    struct to_item *it = dgm_to_find(m, &m->calls, e->call.tool_call_id);
    if (!it || !is_whole(m, it))
        return;
    it->sealed = true;
    if (!m->in_run) {
        join_message(m, it);
        return;
    }
    dgm_str text = dgm_buf_str(&it->text);
    dgm_internal internal = {
        .kind = DGM_INTERNAL_TOOL_START,
        .tool_name = it->name,
        .tool_call_id = it->id,
        .arguments = dgm_content_arguments_value(m->scratch, text.n ? text : DGM_STR("{}"))};
    dgm_to_work(m);
    dgm_to_internal(m, &internal);
}

const dgm_json *dgm_to_call_data(dgm_events_to_records *m, const dgm_strs *ids)
{
    dgm_buf b;
    bool any = false;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"tool_calls\":[");
    for (size_t i = 0; i < ids->n; i++) {
        const struct to_item *it = dgm_to_find(m, &m->calls, ids->at[i]);
        if (!it)
            continue;
        if (any)
            dgm_buf_add_char(&b, ',');
        dgm_to_put_call(&b, m->scratch, it->id, it->name, dgm_buf_str(&it->text));
        any = true;
    }
    dgm_buf_add_lit(&b, "]}");
    const dgm_json *v = any ? dgm_json_parse_trusted(m->scratch, dgm_buf_str(&b)) : NULL;
    dgm_buf_done(&b);
    return v;
}

/* ---- results ---------------------------------------------------------------------------------------------------- */

static const dgm_json *output_of(dgm_events_to_records *m, const dgm_canon_event *e)
{
    const dgm_canon_content *c = &e->result.content;
    if (e->result.value)
        return e->result.value;
    if (c->kind != DGM_CANON_CONTENT_PARTS)
        return dgm_json_make_string(m->scratch, c->text.p ? c->text : DGM_STR(""));
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < c->parts.n; i++)
        dgm_buf_add_str(&b, c->parts.at[i].text);
    const dgm_json *v = dgm_json_make_string(m->scratch, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return v;
}

void dgm_to_result(dgm_events_to_records *m, const dgm_canon_event *e)
{
    const dgm_json *output = output_of(m, e);
    bool failed = yyjson_is_true(dgm_json_get(e->metadata, DGM_STR(DGM_META_ERROR)));
    if (m->in_run) {
        dgm_internal internal = {.kind = DGM_INTERNAL_TOOL_COMPLETE,
                                 .tool_call_id = e->result.tool_call_id,
                                 .success = failed ? DGM_FALSE : DGM_TRUE};
        if (failed)
            internal.error = dgm_content_value_text(m->scratch, output);
        else
            internal.result = output;
        dgm_to_internal(m, &internal);
        return;
    }
    if (m->waiting && !m->waiting_results.n)
        dgm_to_flush(m);
    m->waiting = true;
    dgm_buf *b = &m->waiting_results;
    if (b->n)
        dgm_buf_add_char(b, ',');
    dgm_buf_add_lit(b, "{\"call_id\":");
    dgm_json_put_str(b, e->result.tool_call_id);
    const struct to_item *call = dgm_to_find(m, &m->calls, e->result.tool_call_id);
    if (call && call->name.n) {
        dgm_buf_add_lit(b, ",\"name\":");
        dgm_json_put_str(b, call->name);
    }
    dgm_buf_add_lit(b, ",\"output\":");
    dgm_json_put(b, output);
    dgm_buf_add_char(b, '}');
}

/* ---- snapshots --------------------------------------------------------------------------------------------------- */

static void say_anew(dgm_events_to_records *m, struct to_item *it, dgm_str text)
{
    if (!it->text.over && dgm_str_eq(dgm_buf_str(&it->text), text))
        return;
    dgm_buf_clear(&it->text);
    it->text.over = false;
    dgm_buf_add_str(&it->text, text);
    chunk(m, it, text, it->sealed, true);
}

void dgm_to_snapshot(dgm_events_to_records *m, const dgm_canon_messages *list)
{
    for (size_t i = 0; m->in_run && i < list->n; i++) {
        const dgm_canon_message *from = &list->at[i];
        struct to_item *it = dgm_to_find(m, &m->texts, from->id);
        if (from->role != DGM_CANON_ASSISTANT || (!it && !from->content.text.n) ||
            dgm_map_get(&m->known, from->id))
            continue;
        if (!it) { /* only the snapshot has it */
            it = dgm_to_open(m, &m->texts, from->id);
            it->role = DGM_CANON_ASSISTANT;
            it->sealed = true;
            m->last_text = (size_t)(it - m->items);
        }
        say_anew(m, it, from->content.text);
    }
}

void dgm_to_close_items(dgm_events_to_records *m)
{
    for (size_t i = 0; i < m->n_items; i++) {
        if (m->items[i].begun && !m->items[i].sealed)
            chunk(m, &m->items[i], (dgm_str){0}, true, false);
    }
}
