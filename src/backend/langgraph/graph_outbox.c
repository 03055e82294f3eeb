/*
 * backend/langgraph/graph_outbox.c - a2a_outbox: a Message or a Task of A2A 1.0 or 0.3.
 *
 * Ids of task and context, roles and routing metadata are the server's. A Task is a patch: messages with a known messageId
 * are skipped, artifacts with a known artifactId are replaced, metadata merges, null removes a key.
 */
#include "backend/langgraph/graph_int.h"
#include "base/limits.h"
#include "model/calls.h"
#include "model/fold.h"
#include "model/guard.h"
#include "wire/a2a/a2a_peer.h"

/* ---- reading -------------------------------------------------------------------------------------------------------------------- */

static yyjson_val *object_member(const dgm_json *v, const char *name)
{
    yyjson_val *found = dgm_json_get(v, dgm_str_from(name));
    return yyjson_is_obj(found) ? found : NULL;
}

static bool has_any_member(const dgm_json *v, const char *const *names)
{
    for (; *names; names++) {
        if (dgm_json_non_null(v, *names))
            return true;
    }
    return false;
}

/* The Message or the Task of an outbox; wrapped as 1.0 and A2AOutbox have it, or bare. NULL: it is neither. */
static const dgm_json *outbox_noun(const dgm_json *outbox, bool *ret_is_task)
{
    static const char *const of_message[] = {"parts", "messageId", "message_id", NULL};
    static const char *const of_task[] = {"status", "artifacts", "history", NULL};
    dgm_str kind = dgm_json_str_member(outbox, "kind");
    const dgm_json *inner = object_member(outbox, "task");
    *ret_is_task = inner != NULL;
    if (!kind.n && (inner || (inner = object_member(outbox, "message"))))
        return inner;
    *ret_is_task = dgm_str_is(kind, "task") || (!kind.n && has_any_member(outbox, of_task));
    if (*ret_is_task || dgm_str_is(kind, "message") ||
        (!kind.n && has_any_member(outbox, of_message)))
        return outbox;
    return NULL;
}

/* The members that a reader requires and a patch may leave out are added. */
static dgm_str outbox_text(dgm_graph_out *o, const dgm_json *noun, bool is_task)
{
    yyjson_val *key, *value;
    size_t i, n;
    bool has_id = false, has_status = false;
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_OBJECT_BYTES);
    dgm_buf_add_str(&b, is_task ? DGM_STR("{\"task\":{") : DGM_STR("{\"message\":{"));
    yyjson_obj_foreach (graph_val(noun), i, n, key, value) {
        dgm_str name = dgm_json_str(key);
        if (yyjson_is_null(value))
            continue;
        has_id |= dgm_str_is(name, "id");
        has_status |= dgm_str_is(name, "status");
        dgm_json_put_str(&b, name);
        dgm_buf_add_char(&b, ':');
        dgm_json_put(&b, value);
        dgm_buf_add_char(&b, ',');
    }
    if (is_task && !has_id)
        dgm_buf_add_lit(&b, "\"id\":\"patch\",");
    if (is_task && !has_status)
        dgm_buf_add_lit(&b, "\"status\":{\"state\":\"TASK_STATE_COMPLETED\"},");
    if (!is_task && !dgm_json_non_null(noun, "role"))
        dgm_buf_add_lit(&b, "\"role\":\"ROLE_AGENT\",");
    if (b.n && b.p[b.n - 1] == ',')
        b.n--;
    dgm_buf_add_lit(&b, "}}");
    dgm_str text = dgm_arena_dup(o->scratch, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static bool read_outbox(dgm_graph_out *o, const dgm_json *outbox, dgm_a2a_answer *ret)
{
    bool is_task;
    dgm_err err = {0};
    const dgm_json *noun = outbox_noun(outbox, &is_task);
    if (!yyjson_is_obj(graph_val(noun))) {
        dgm_graph_note(o, "a2a_outbox is neither a Message nor a Task: ignored");
        return false;
    }
    dgm_str text = outbox_text(o, noun, is_task);
    const dgm_codec *codec =
        dgm_json_get(noun, DGM_STR("kind")) ? &dgm_codec_a2a_03 : &dgm_codec_a2a_10;
    if (dgm_a2a_read_answer(o->scratch, codec, &o->mint, text, ret, &err) || ret->error) {
        dgm_graph_note(o, "a2a_outbox is not a valid %s: %s%s%s; ignored",
                       is_task ? "Task" : "Message", err.at, *err.at ? ": " : "", err.msg);
        return false;
    }
    return ret->event.kind == (is_task ? DGM_EVENT_TASK : DGM_EVENT_MESSAGE);
}

/* ---- the messages that the state gets ------------------------------------------------------------------------------------------------ */

static dgm_str message_text(dgm_arena *a, const dgm_message *m)
{
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_RECORD_BYTES);
    for (size_t i = 0; i < m->parts.n; i++) {
        if (m->parts.at[i].kind == DGM_PART_TEXT)
            dgm_buf_add_str(&b, m->parts.at[i].content);
    }
    dgm_str text = b.n ? dgm_arena_dup(a, dgm_buf_str(&b)) : DGM_STR("");
    dgm_buf_done(&b);
    return text;
}

static dgm_str call_id_of(const yyjson_val *call)
{
    dgm_str id = dgm_json_str_member(call, "call_id");
    return id.n ? id : dgm_json_str_member(call, "id");
}

static void sync_open(dgm_buf *b, const char *type)
{
    if (b->n)
        dgm_buf_add_char(b, ',');
    dgm_buf_printf(b, "{\"type\":\"%s\",\"content\":", type);
}

static void sync_results(dgm_buf *b, const dgm_message *m, const dgm_part *part)
{
    yyjson_val *list = dgm_json_get(part->data, DGM_STR(DGM_DATA_RESULTS)), *result;
    size_t i, n;
    yyjson_arr_foreach (list, i, n, result) {
        const yyjson_val *output = dgm_json_get(result, DGM_STR("output"));
        sync_open(b, "tool");
        if (yyjson_is_str(graph_val(output))) {
            dgm_json_put(b, output);
        } else { /* the content of a ToolMessage is text */
            dgm_buf text;
            dgm_buf_init(&text, DGM_MAX_RECORD_BYTES);
            dgm_json_put(&text, output);
            dgm_json_put_str(b, dgm_buf_str(&text));
            dgm_buf_done(&text);
        }
        dgm_buf_add_lit(b, ",\"tool_call_id\":");
        dgm_json_put_str(b, call_id_of(result));
        dgm_buf_add_lit(b, ",\"id\":\"");
        dgm_json_put_chars(b, m->message_id);
        dgm_buf_printf(b, "-%zu\"}", i + 1);
    }
}

static void sync_calls(dgm_arena *a, dgm_buf *b, const dgm_message *m)
{
    yyjson_val *call;
    size_t i, n, count = 0;
    for (size_t k = 0; k < m->parts.n; k++) {
        if (m->parts.at[k].kind != DGM_PART_DATA)
            continue;
        yyjson_val *list = dgm_json_get(m->parts.at[k].data, DGM_STR(DGM_DATA_CALLS));
        yyjson_arr_foreach (list, i, n, call) {
            const yyjson_val *args = dgm_json_get(call, DGM_STR("arguments"));
            if (!args)
                args = dgm_json_get(call, DGM_STR("args"));
            dgm_buf_add_str(b, count++ ? DGM_STR(",") : DGM_STR(",\"tool_calls\":["));
            dgm_buf_add_lit(b, "{\"type\":\"tool_call\",\"id\":");
            dgm_json_put_str(b, call_id_of(call));
            dgm_buf_add_lit(b, ",\"name\":");
            dgm_json_put_str(b, dgm_json_str_member(call, "name"));
            dgm_buf_add_lit(b, ",\"args\":");
            args = dgm_graph_arguments(a, args);
            if (yyjson_is_obj(graph_val(args)))
                dgm_json_put(b, args);
            else
                dgm_buf_add_lit(b, "{}");
            dgm_buf_add_char(b, '}');
        }
    }
    if (count)
        dgm_buf_add_char(b, ']');
}

void dgm_graph_put_flat(dgm_arena *a, dgm_buf *b, const dgm_message *m)
{
    dgm_str text = message_text(a, m);
    bool is_agent = m->role == DGM_ROLE_AGENT;
    if (text.n || (is_agent && dgm_message_has(m, DGM_CALLS))) {
        sync_open(b, is_agent ? "ai" : "human");
        dgm_json_put_str(b, text);
        dgm_buf_add_lit(b, ",\"id\":");
        dgm_json_put_str(b, m->message_id);
        if (is_agent)
            sync_calls(a, b, m);
        dgm_buf_add_char(b, '}');
    }
    for (size_t i = 0; i < m->parts.n; i++) {
        if (m->parts.at[i].kind == DGM_PART_DATA)
            sync_results(b, m, &m->parts.at[i]);
    }
}

/* AIMessage with the text and the calls, then a ToolMessage for each result. */
static void sync_message(dgm_graph_out *o, dgm_buf *b, const dgm_message *m)
{
    if (o->has_messages && m->role == DGM_ROLE_AGENT)
        dgm_graph_put_flat(o->scratch, b, m);
}

/* ---- applying ------------------------------------------------------------------------------------------------------------------------ */

/* The server's ids and keys. */
static void own_message(dgm_graph_out *o, dgm_message *m)
{
    dgm_guard guard = {0};
    m->task_id = (dgm_str){0};
    m->context_id = (dgm_str){0};
    if (!m->message_id.n || m->message_id.n > DGM_MAX_ID_BYTES)
        m->message_id = dgm_mint_id(&o->mint, o->scratch);
    dgm_guard_content(&guard, o->scratch, &m->metadata, &m->parts);
}

/* The message becomes that of the last status. */
static void set_final(dgm_graph_out *o, const dgm_message *m)
{
    o->final = dgm_message_copy(o->arena, m);
    o->has_final = true;
}

static void apply_message(dgm_graph_out *o, dgm_message *m, bool is_end, dgm_buf *sync)
{
    m->role = DGM_ROLE_AGENT;
    if (dgm_graph_knows(o, m->message_id) &&
        !(o->has_emitted && dgm_str_eq(o->emitted.message_id, m->message_id)))
        m->message_id = (dgm_str){0}; /* an id of this task's history: another message */
    own_message(o, m);
    if (!m->parts.n)
        return;
    sync_message(o, sync, m);
    if (is_end)
        set_final(o, m);
    else
        dgm_graph_emit_message(o, m);
}

static void emit_history(dgm_graph_out *o, dgm_message *m)
{
    dgm_graph_emit_internal(o, (dgm_internal){.kind = DGM_INTERNAL_MESSAGE, .message = m});
    dgm_graph_add_known(o, m->message_id);
}

/* The last message of the agent is the answer, unless the status has one. */
static void apply_history(dgm_graph_out *o, dgm_messages history, bool has_answer, dgm_buf *sync)
{
    dgm_message *answer = NULL;
    for (size_t i = 0; i < history.n; i++) {
        dgm_message *m = &history.at[i];
        if (!m->parts.n || (m->message_id.n && dgm_graph_knows(o, m->message_id)))
            continue;
        own_message(o, m);
        sync_message(o, sync, m);
        if (answer)
            dgm_graph_emit_message(o, answer);
        answer = m->role == DGM_ROLE_AGENT ? m : NULL;
        if (!answer)
            emit_history(o, m);
    }
    if (answer && has_answer)
        dgm_graph_emit_message(o, answer);
    else if (answer)
        set_final(o, answer);
}

static void apply_artifacts(dgm_graph_out *o, dgm_artifacts artifacts)
{
    for (size_t i = 0; i < artifacts.n; i++) {
        dgm_artifact *x = &artifacts.at[i];
        dgm_guard guard = {0};
        if (dgm_str_is(x->artifact_id, DGM_STREAM_DELTA_ID) || !x->parts.n)
            continue;
        dgm_guard_content(&guard, o->scratch, &x->metadata, &x->parts);
        dgm_graph_emit_artifact(o, x, false, true);
    }
}

static bool may_set_state(dgm_task_state state)
{
    return state == DGM_STATE_COMPLETED || state == DGM_STATE_FAILED ||
           state == DGM_STATE_REJECTED || dgm_state_is_interrupted(state);
}

static void apply_task(dgm_graph_out *o, dgm_task *t, bool is_end, dgm_buf *sync)
{
    dgm_message *said = t->status.message;
    bool has_answer = said && said->parts.n;
    apply_history(o, t->history, has_answer || !is_end, sync);
    apply_artifacts(o, t->artifacts);
    if (has_answer)
        apply_message(o, said, is_end, sync);
    const dgm_json *metadata = dgm_graph_clean(o, t->metadata);
    o->final_metadata = metadata ? dgm_json_copy(o->arena, metadata) : NULL;
    if (is_end && may_set_state(t->status.state))
        o->state = t->status.state;
    else if (is_end && t->status.state != DGM_STATE_WORKING &&
             t->status.state != DGM_STATE_SUBMITTED)
        dgm_graph_note(
            o, "the state of the Task in a2a_outbox was ignored: states that a graph may set: "
               "completed, failed, rejected, input-required, auth-required");
}

bool dgm_graph_apply_outbox(dgm_graph_out *o, dgm_arena *a, const dgm_json *outbox, bool is_end,
                            dgm_buf *sync)
{
    dgm_a2a_answer answer = {0};
    (void)a;
    if (!read_outbox(o, outbox, &answer))
        return false;
    if (answer.event.kind == DGM_EVENT_TASK)
        apply_task(o, answer.event.task, is_end, sync);
    else
        apply_message(o, answer.event.message, is_end, sync);
    return true;
}
