/*
 * backend/langgraph/graph_input.c - a turn as the input of a graph: messages, a2a_inbox, answers to interrupts.
 *
 * A key that the state of the graph does not have is not set. The message of the caller is one HumanMessage of all its text;
 * its id is the messageId, so that the same message twice is one.
 */
#include "backend/langgraph/graph_int.h"
#include "base/limits.h"
#include "model/approval.h"
#include "model/calls.h"
#include "model/conversation.h"
#include "model/names.h"
#include "wire/a2a/a2a.h"
#include "json/build.h"

/* ---- parts ----------------------------------------------------------------------------------------------------------------------- */

bool dgm_graph_has_transcript(const dgm_message *m)
{
    return dgm_message_has_transcript(m);
}

const dgm_json *dgm_graph_tools(const dgm_message *m, const dgm_json *metadata)
{
    size_t part;
    const dgm_json *tools = dgm_json_get(metadata, DGM_STR(DGM_META_TOOLS));
    return tools ? tools : dgm_message_tools(m, &part);
}

/* The message without its transcript and its list of tools, which are not for the graph. */
static dgm_message own_parts(dgm_arena *a, const dgm_message *m)
{
    dgm_message own = *m;
    size_t tools = SIZE_MAX, first = dgm_message_has_transcript(m) ? 1 : 0;
    if (!dgm_message_tools(m, &tools))
        tools = SIZE_MAX;
    own.parts = (dgm_parts){dgm_new_n(a, dgm_part, m->parts.n), 0};
    for (size_t i = first; i < m->parts.n; i++) {
        if (i != tools)
            own.parts.at[own.parts.n++] = m->parts.at[i];
    }
    return own;
}

static dgm_str turn_text(dgm_arena *a, const dgm_message *m)
{
    dgm_str text = DGM_STR("");
    for (size_t i = 0; i < m->parts.n; i++) {
        if (m->parts.at[i].kind == DGM_PART_TEXT)
            text =
                text.n ? dgm_arena_join(a, text, m->parts.at[i].content) : m->parts.at[i].content;
    }
    return text;
}

static bool has_key(const dgm_json *keys, const char *name)
{
    yyjson_val *key;
    size_t i, n;
    if (!yyjson_is_arr(graph_val(keys)))
        return true;
    yyjson_arr_foreach (graph_val(keys), i, n, key) {
        if (yyjson_is_str(key) && dgm_str_eq(dgm_json_str(key), dgm_str_from(name)))
            return true;
    }
    return false;
}

/* ---- a2a_inbox ---------------------------------------------------------------------------------------------------------------------- */

static void put_inbox_object(const dgm_graph_turn *t, dgm_buf *b, dgm_object_kind kind,
                             const void *it)
{
    const dgm_codec *codec = t->is_v10 ? &dgm_codec_a2a_10 : &dgm_codec_a2a_03;
    dgm_writer w = {.out = b, .format = codec->format};
    dgm_frame frame = {.object = {kind, (void *)(uintptr_t)it}};
    dgm_err err = {0};
    size_t before = b->n;
    if (codec->encode(&w, &frame, &err)) {
        b->n = before;
        dgm_buf_add_lit(b, "null");
    }
}

static const dgm_json *message_value(dgm_arena *a, const dgm_graph_turn *t, const dgm_message *m)
{
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_OBJECT_BYTES);
    put_inbox_object(t, &b, DGM_OBJECT_MESSAGE, m);
    const dgm_json *v = dgm_json_parse_trusted(a, dgm_arena_dup(a, dgm_buf_str(&b)));
    dgm_buf_done(&b);
    return v;
}

static void put_inbox(const dgm_graph_turn *t, const dgm_message *m, dgm_buf *b)
{
    dgm_message first = *m;
    dgm_task task = {.id = t->task_id,
                     .context_id = t->context_id,
                     .status.state = DGM_STATE_SUBMITTED,
                     .history = {&first, 1}};
    if (t->task)
        task = *t->task;
    if (t->is_small) {
        task.history = (dgm_messages){0};
        task.artifacts = (dgm_artifacts){0};
    }
    dgm_buf_add_lit(b, "{\"task\":");
    put_inbox_object(t, b, DGM_OBJECT_TASK, &task);
    dgm_buf_add_lit(b, ",\"message\":");
    put_inbox_object(t, b, DGM_OBJECT_MESSAGE, m);
    dgm_buf_add_lit(b, ",\"metadata\":");
    if (t->metadata)
        dgm_json_put(b, t->metadata);
    else
        dgm_buf_add_lit(b, "{}");
    dgm_buf_add_char(b, '}');
}

/* ---- messages ------------------------------------------------------------------------------------------------------------------------- */

static bool skips_text(const dgm_graph_turn *t)
{
    return t->has_open_call && dgm_graph_pending(t->task);
}

/* The conversation before, then results of calls, then the text. */
static void put_messages(dgm_arena *a, const dgm_graph_turn *t, const dgm_message *m, dgm_str text,
                         dgm_buf *b)
{
    dgm_messages before = {0};
    dgm_message results = *m;
    dgm_buf list;
    dgm_buf_init(&list, DGM_MAX_OBJECT_BYTES);
    if (dgm_message_has_transcript(t->message))
        before = dgm_message_transcript(a, t->message);
    for (size_t i = 0; i < before.n; i++)
        dgm_graph_put_flat(a, &list, &before.at[i]);
    results.parts = (dgm_parts){dgm_new_n(a, dgm_part, m->parts.n), 0};
    for (size_t i = 0; i < m->parts.n; i++) {
        if (m->parts.at[i].kind == DGM_PART_DATA)
            results.parts.at[results.parts.n++] = m->parts.at[i];
    }
    dgm_graph_put_flat(a, &list, &results);
    if (text.n && !skips_text(t)) {
        dgm_buf_add_str(&list, list.n ? DGM_STR(",{\"role\":\"user\",\"content\":")
                                      : DGM_STR("{\"role\":\"user\",\"content\":"));
        dgm_json_put_str(&list, text);
        dgm_buf_add_lit(&list, ",\"id\":");
        dgm_json_put_str(&list, m->message_id);
        dgm_buf_add_char(&list, '}');
    }
    if (list.n)
        dgm_buf_printf(b, "\"messages\":[%.*s],", DGM_P(dgm_buf_str(&list)));
    dgm_buf_done(&list);
}

/* NULL: there is nothing that the graph could get. */
static const dgm_json *turn_input(dgm_arena *a, const dgm_graph_turn *t, const dgm_message *m,
                                  dgm_str text)
{
    bool has_inbox = has_key(t->keys, "a2a_inbox");
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_OBJECT_BYTES);
    dgm_buf_add_char(&b, '{');
    if (has_key(t->keys, "messages"))
        put_messages(a, t, m, text, &b);
    bool is_empty = b.n == 1 && !has_inbox;
    if (has_inbox) {
        dgm_buf_add_lit(&b, "\"a2a_inbox\":");
        put_inbox(t, m, &b);
        dgm_buf_add_char(&b, ',');
    }
    if (has_key(t->keys, "a2a_outbox"))
        dgm_buf_add_lit(&b, "\"a2a_outbox\":null,");
    if (b.p[b.n - 1] == ',')
        b.n--;
    dgm_buf_add_char(&b, '}');
    const dgm_json *v =
        is_empty ? NULL : dgm_json_parse_trusted(a, dgm_arena_dup(a, dgm_buf_str(&b)));
    dgm_buf_done(&b);
    return v;
}

/* ---- answers to interrupts --------------------------------------------------------------------------------------------------------------- */

const dgm_json *dgm_graph_pending(const dgm_task *task)
{
    const dgm_message *m =
        task && dgm_state_is_interrupted(task->status.state) ? task->status.message : NULL;
    for (size_t i = 0; m && i < m->parts.n; i++) {
        if (dgm_part_interrupts(&m->parts.at[i]))
            return m->parts.at[i].data;
    }
    return NULL;
}

static bool is_pending(const dgm_json *interrupts, dgm_str id)
{
    yyjson_val *it;
    size_t i, n;
    yyjson_arr_foreach (graph_val(interrupts), i, n, it) {
        if (dgm_str_eq(dgm_json_str_member(it, "id"), id))
            return true;
    }
    return false;
}

/* Are all members named after pending interrupts? */
static bool is_id_map(const dgm_json *interrupts, const dgm_json *map)
{
    yyjson_val *key, *value;
    size_t i, n;
    yyjson_obj_foreach (graph_val(map), i, n, key, value) {
        if (!is_pending(interrupts, dgm_json_str(key)))
            return false;
    }
    return yyjson_obj_size(graph_val(map)) > 0;
}

static const dgm_json *resume_one(dgm_arena *a, const dgm_json *interrupts, const dgm_json *value)
{
    dgm_str id = dgm_json_str_member(yyjson_arr_get_first(graph_val(interrupts)), "id");
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_object(&b, NULL);
    if (value)
        dgm_json_build_member(&b, id, value);
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

/* {"resume": ...} and nothing else. */
static const dgm_json *resume_member(const dgm_json *data)
{
    return yyjson_is_obj(graph_val(data)) && yyjson_obj_size(graph_val(data)) == 1
               ? dgm_json_get(data, DGM_STR("resume"))
               : NULL;
}

static const dgm_json *answer_one(dgm_arena *a, const dgm_graph_turn *t, const dgm_json *interrupts,
                                  const dgm_message *m)
{
    const dgm_part *only = m->parts.n == 1 ? m->parts.at : NULL;
    const dgm_json *inner;
    if (only && only->kind == DGM_PART_TEXT)
        return resume_one(a, interrupts, dgm_json_make_string(a, only->content));
    if (only && only->kind == DGM_PART_DATA) {
        inner = resume_member(only->data);
        return resume_one(a, interrupts, inner ? inner : only->data);
    }
    return resume_one(a, interrupts, message_value(a, t, m));
}

/* A part that maps the ids of interrupts to answers. */
static const dgm_json *answer_map(const dgm_json *interrupts, const dgm_message *m)
{
    for (size_t i = 0; i < m->parts.n; i++) {
        if (m->parts.at[i].kind != DGM_PART_DATA)
            continue;
        const dgm_json *data = m->parts.at[i].data, *inner = dgm_json_get(data, DGM_STR("resume"));
        if (is_id_map(interrupts, inner))
            return inner;
        if (is_id_map(interrupts, data))
            return data;
    }
    return NULL;
}

static dgm_str explain_answers(dgm_arena *a, const dgm_json *interrupts)
{
    yyjson_val *it;
    size_t i, n;
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_FINAL_TEXT_BYTES);
    dgm_buf_printf(&b, "%zu questions are open. Answer with a data part {\"resume\": {",
                   yyjson_arr_size(graph_val(interrupts)));
    yyjson_arr_foreach (graph_val(interrupts), i, n, it) {
        dgm_str id = dgm_json_str_member(it, "id");
        dgm_buf_printf(&b, "%s\"%.*s\": ...", i ? ", " : "", DGM_P(id));
    }
    dgm_buf_add_lit(&b, "}}.");
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static void plan_answer(dgm_arena *a, const dgm_graph_turn *t, const dgm_json *pending,
                        const dgm_message *m, dgm_graph_plan *plan)
{
    const dgm_json *interrupts = dgm_json_get(pending, DGM_STR(DGM_DATA_INTERRUPTS));
    size_t count = yyjson_arr_size(graph_val(interrupts));
    plan->kind = DGM_GRAPH_RESUME;
    if (!count) {
        plan->kind = DGM_GRAPH_CONTINUE;
        plan->input = NULL;
        plan->human_id = (dgm_str){0};
    } else if (!(plan->resume = answer_map(interrupts, m)) && count == 1) {
        plan->resume = answer_one(a, t, interrupts, m);
    } else if (!plan->resume) {
        plan->kind = DGM_GRAPH_ASK_AGAIN;
        plan->why = explain_answers(a, interrupts);
    }
}

/* ---- the turn ------------------------------------------------------------------------------------------------------------------------------ */

dgm_graph_plan dgm_graph_plan_turn(dgm_arena *a, const dgm_graph_turn *turn)
{
    dgm_graph_plan plan = {.kind = DGM_GRAPH_INPUT};
    dgm_message m = own_parts(a, turn->message);
    dgm_str text = turn_text(a, &m);
    const dgm_json *pending = dgm_graph_pending(turn->task);
    plan.input = turn_input(a, turn, &m, text);
    if (text.n && has_key(turn->keys, "messages") && !skips_text(turn))
        plan.human_id = m.message_id;
    if (pending) {
        plan_answer(a, turn, pending, &m, &plan);
    } else if (!plan.input) {
        plan.kind = DGM_GRAPH_NOTHING;
        plan.why =
            DGM_STR("this agent accepts only text: its graph has no a2a_inbox for other content");
    }
    return plan;
}
