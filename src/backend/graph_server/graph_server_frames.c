/* backend/graph_server/graph_server_frames.c - see graph_server_frames.h: the runs stream, the state, the result. */
#include "backend/graph_server/graph_server_frames.h"
#include "backend/graph_server/graph_server_int.h"

#include "base/limits.h"

#include <stdlib.h>

void dgm_gserver_frames_init(struct gserver_frames *f, gserver_on_event on_event, void *arg)
{
    *f = (struct gserver_frames){.on_event = on_event, .arg = arg, .first_seq = -1, .last_seq = -1};
    f->arena = dgm_arena_new();
    f->scratch = dgm_arena_new();
    dgm_gserver_seen_init(&f->seen);
    dgm_buf_init(&f->values, DGM_MAX_OBJECT_BYTES);
    dgm_buf_init(&f->interrupts, DGM_MAX_RECORD_BYTES);
    dgm_map_init(&f->old_ids);
    dgm_map_init(&f->interrupt_ids);
}

void dgm_gserver_frames_done(struct gserver_frames *f)
{
    dgm_gserver_seen_done(&f->seen);
    dgm_buf_done(&f->values);
    dgm_buf_done(&f->interrupts);
    dgm_map_done(&f->old_ids);
    dgm_map_done(&f->interrupt_ids);
    dgm_arena_free(f->scratch);
    dgm_arena_free(f->arena);
}

/* ---- state ----------------------------------------------------------------------------------------------------------------- */

void dgm_gserver_frames_add_interrupts(struct gserver_frames *f, const dgm_json *list)
{
    yyjson_val *entry;
    size_t i, n;
    yyjson_arr_foreach ((yyjson_val *)(uintptr_t)list, i, n, entry) {
        dgm_str id = dgm_json_str_member(entry, "id");
        if (!id.n)
            id = dgm_json_str_member(entry, "interrupt_id");
        if (!id.n || id.n > DGM_MAX_ID_BYTES || f->n_interrupts == GSERVER_MAX_INTERRUPTS ||
            dgm_map_get(&f->interrupt_ids, id))
            continue;
        yyjson_val *value = dgm_json_get(entry, DGM_STR("value"));
        if (!value)
            value = dgm_json_get(entry, DGM_STR("payload"));
        dgm_map_put(&f->interrupt_ids, dgm_arena_dup(f->arena, id), f->n_interrupts);
        if (f->n_interrupts++)
            dgm_buf_add_char(&f->interrupts, ',');
        dgm_buf_add_lit(&f->interrupts, "{\"id\":");
        dgm_json_put_str(&f->interrupts, id);
        dgm_buf_add_lit(&f->interrupts, ",\"value\":");
        dgm_json_put(&f->interrupts, value);
        dgm_buf_add_char(&f->interrupts, '}');
    }
}

static void frames_read_old_ids(struct gserver_frames *f, const dgm_json *values)
{
    yyjson_val *message;
    size_t i, n;
    yyjson_arr_foreach (dgm_json_get(values, DGM_STR("messages")), i, n, message) {
        dgm_str id = dgm_json_str_member(message, "id");
        if (id.n && i < DGM_MAX_LIST_ITEMS && !dgm_map_get(&f->old_ids, id))
            dgm_map_put(&f->old_ids, dgm_arena_dup(f->arena, id), i);
    }
    f->has_old = true;
}

void dgm_gserver_frames_values(struct gserver_frames *f, const dgm_json *values, dgm_str text)
{
    yyjson_val *interrupts = dgm_json_get(values, DGM_STR("__interrupt__"));
    dgm_gserver_frames_add_interrupts(f, interrupts);
    /* JavaScript's last state at an interrupt is the interrupt alone */
    if (!yyjson_is_obj((yyjson_val *)(uintptr_t)values) ||
        (interrupts && yyjson_obj_size((yyjson_val *)(uintptr_t)values) == 1))
        return;
    f->is_complete = true;
    if (!f->has_old)
        frames_read_old_ids(f, values);
    dgm_buf_clear(&f->values);
    dgm_buf_add_str(&f->values, text);
}

/* ---- one frame of a runs stream ---------------------------------------------------------------------------------------------- */

static bool is_ai_chunk(const dgm_json *message, dgm_str type)
{
    /* JavaScript's chunks have the type of complete messages */
    return dgm_str_is(type, "AIMessageChunk") || dgm_json_get(message, DGM_STR("tool_call_chunks"));
}

/* The message in the form of the worker protocol: `type` is ai, tool, human, ..., and chunks have `chunk`. */
static const dgm_json *frames_flat(dgm_arena *a, const dgm_json *message)
{
    yyjson_val *v = (yyjson_val *)(uintptr_t)message, *key, *value;
    dgm_str type = dgm_json_str_member(v, "type");
    bool is_chunk = is_ai_chunk(v, type);
    size_t i, n, count = 0;
    static const dgm_str suffix = DGM_STR("MessageChunk");
    dgm_member *members = dgm_new_n(a, dgm_member, yyjson_obj_size(v) + 2);
    if (dgm_str_is(type, "AIMessageChunk"))
        type = DGM_STR("ai");
    else if (type.n > suffix.n &&
             dgm_str_eq((dgm_str){type.p + type.n - suffix.n, suffix.n}, suffix))
        type = DGM_STR("other"); /* chunks of other roles are not part of an answer */
    yyjson_obj_foreach (v, i, n, key, value) {
        dgm_str name = dgm_json_str(key);
        if (!dgm_str_is(name, "type") && !dgm_str_is(name, "chunk"))
            members[count++] = (dgm_member){name, value};
    }
    members[count++] = (dgm_member){DGM_STR("type"), dgm_json_make_string(a, type)};
    if (is_chunk)
        members[count++] =
            (dgm_member){DGM_STR("chunk"), dgm_json_parse_trusted(a, DGM_STR("true"))};
    return dgm_json_object(a, members, count);
}

dgm_code dgm_gserver_frames_emit_message(struct gserver_frames *f, const dgm_json *ns,
                                         const dgm_json *message, dgm_str node,
                                         const dgm_json *step, dgm_str src, dgm_err *err)
{
    dgm_arena *a = f->scratch;
    dgm_member members[4] = {
        {DGM_STR("message"), message},
        {DGM_STR("node"), dgm_json_make_string(a, node)},
        {DGM_STR("src"), dgm_json_make_string(a, src)},
        {DGM_STR("step"), step},
    };
    return f->on_event(f->arg, DGM_STR("messages"), ns, dgm_json_object(a, members, step ? 4 : 3),
                       err);
}

/* "a:1|b:2" as a list; NULL: the graph itself. */
static const dgm_json *frames_ns(dgm_arena *a, dgm_str path)
{
    dgm_buf b;
    if (!path.n)
        return NULL;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t at = 0; at <= path.n;) {
        const char *bar = at < path.n ? memchr(path.p + at, '|', path.n - at) : NULL;
        size_t n = bar ? (size_t)(bar - path.p) - at : path.n - at;
        dgm_buf_add_char(&b, at ? ',' : '[');
        dgm_json_put_str(&b, (dgm_str){path.p + at, n});
        at += n + 1;
    }
    dgm_buf_add_char(&b, ']');
    const dgm_json *ns = dgm_json_parse_trusted(a, dgm_arena_dup(a, dgm_buf_str(&b)));
    dgm_buf_done(&b);
    return ns;
}

/* The path of the graph whose node has this path. JavaScript's events name the node's, Python's the graph's. */
static dgm_str graph_of_node(dgm_str path)
{
    size_t n = path.n;
    while (n && path.p[n - 1] != '|')
        n--;
    return (dgm_str){path.p, n ? n - 1 : 0};
}

/* [message, metadata] */
static dgm_code frames_message(struct gserver_frames *f, const dgm_json *data, dgm_err *err)
{
    yyjson_val *pair = (yyjson_val *)(uintptr_t)data;
    yyjson_val *message = yyjson_arr_get(pair, 0), *metadata = yyjson_arr_get(pair, 1);
    if (!yyjson_is_obj(message))
        return DGM_OK;
    dgm_str src = dgm_json_str_member(metadata, "langgraph_checkpoint_ns");
    if (!src.n)
        src = dgm_json_str_member(metadata, "checkpoint_ns");
    return dgm_gserver_frames_emit_message(
        f, frames_ns(f->scratch, graph_of_node(src)), frames_flat(f->scratch, message),
        dgm_json_str_member(metadata, "langgraph_node"),
        dgm_json_get(metadata, DGM_STR("langgraph_step")), src, err);
}

dgm_code dgm_gserver_frames_emit_nodes(struct gserver_frames *f, const dgm_json *ns,
                                       const dgm_str *nodes, size_t n, dgm_err *err)
{
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_RECORD_BYTES);
    dgm_buf_add_lit(&b, "{\"nodes\":[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            dgm_buf_add_char(&b, ',');
        dgm_json_put_str(&b, nodes[i]);
    }
    dgm_buf_add_lit(&b, "]}");
    dgm_str text = b.over ? DGM_STR("{\"nodes\":[]}") : dgm_buf_str(&b);
    const dgm_json *data = dgm_json_parse_trusted(f->scratch, dgm_arena_dup(f->scratch, text));
    dgm_buf_done(&b);
    return f->on_event(f->arg, DGM_STR("updates"), ns, data, err);
}

/* {node: its update} */
static dgm_code frames_updates(struct gserver_frames *f, dgm_str path, const dgm_json *data,
                               dgm_err *err)
{
    yyjson_val *v = (yyjson_val *)(uintptr_t)data, *key, *value;
    dgm_str *nodes = dgm_new_n(f->scratch, dgm_str, yyjson_obj_size(v) + 1);
    size_t i, max, n = 0;
    yyjson_obj_foreach (v, i, max, key, value) {
        dgm_str node = dgm_json_str(key);
        if (dgm_str_is(node, "__interrupt__")) {
            f->is_interrupted = true; /* also at a breakpoint, whose list is empty */
            dgm_gserver_frames_add_interrupts(f, value);
        } else if (!dgm_str_starts(node, DGM_STR("__"))) {
            nodes[n++] = node;
        }
    }
    return n ? dgm_gserver_frames_emit_nodes(f, frames_ns(f->scratch, path), nodes, n, err)
             : DGM_OK;
}

void dgm_gserver_frames_error(struct gserver_frames *f, const dgm_json *data)
{
    dgm_str text = dgm_json_str_member(data, "message");
    if (!text.n)
        text = dgm_json_str_member(data, "detail");
    f->has_error = true;
    f->error_type = dgm_arena_dup(f->arena, dgm_json_str_member(data, "error"));
    f->error_text = dgm_arena_dup(f->arena, text);
}

/* The mode of an event name, and the path of its graph, empty for the graph itself: `values`, `values|node:id`. */
static dgm_str event_mode(dgm_str event, dgm_str *ret_path)
{
    const char *bar = event.n ? memchr(event.p, '|', event.n) : NULL;
    size_t n = bar ? (size_t)(bar - event.p) : event.n;
    *ret_path = bar ? (dgm_str){bar + 1, event.n - n - 1} : (dgm_str){0};
    return (dgm_str){event.p, n};
}

dgm_code dgm_gserver_frames_add(struct gserver_frames *f, const dgm_frames_item *item,
                                enum gserver_frame_end *ret_end, dgm_err *err)
{
    dgm_str path, mode = event_mode(item->sse_event, &path);
    yyjson_val *data;
    dgm_code rc = DGM_OK;
    *ret_end = GSERVER_GOES_ON;
    if (dgm_str_is(mode, "end") && !item->sse_id.n) {
        *ret_end = GSERVER_OVER;
        return DGM_OK;
    }
    if (dgm_gserver_seen_frame(&f->seen, item))
        return DGM_OK;
    dgm_arena_reset(f->scratch);
    f->is_complete = false;
    if ((rc = dgm_json_read(f->scratch, item->text, DGM_MAX_RECORD_BYTES, "record_bytes", &data,
                            err)))
        return rc;
    if (dgm_str_is(mode, "messages")) {
        rc = frames_message(f, data, err);
    } else if (dgm_str_is(mode, "custom")) {
        rc = f->on_event(f->arg, DGM_STR("custom"), frames_ns(f->scratch, path), data, err);
    } else if (dgm_str_is(mode, "updates")) {
        rc = frames_updates(f, path, data, err);
    } else if (dgm_str_is(mode, "values") && !path.n) {
        dgm_gserver_frames_values(f, data, item->text);
    } else if (dgm_str_is(mode, "values")) { /* of a subgraph: only its questions count */
        dgm_gserver_frames_add_interrupts(f, dgm_json_get(data, DGM_STR("__interrupt__")));
    } else if (dgm_str_is(mode, "metadata") && !f->metadata_run.n) {
        f->metadata_run = dgm_arena_dup(f->arena, dgm_json_str_member(data, "run_id"));
    } else if (dgm_str_is(mode, "error")) {
        dgm_gserver_frames_error(f, data);
        *ret_end = GSERVER_OVER;
    }
    return rc;
}

/* ---- the end ----------------------------------------------------------------------------------------------------------------- */

void dgm_gserver_frames_state(struct gserver_frames *f, const dgm_json *state,
                              const dgm_json **ret_next, dgm_arena *a)
{
    yyjson_val *task, *values = dgm_json_get(state, DGM_STR("values"));
    size_t i, n;
    dgm_buf_clear(&f->interrupts);
    dgm_map_done(&f->interrupt_ids);
    dgm_map_init(&f->interrupt_ids);
    f->n_interrupts = 0;
    dgm_gserver_frames_add_interrupts(f, dgm_json_get(state, DGM_STR("interrupts")));
    yyjson_arr_foreach (dgm_json_get(state, DGM_STR("tasks")), i, n, task) {
        dgm_str error = dgm_json_str_member(task, "error");
        dgm_gserver_frames_add_interrupts(f, dgm_json_get(task, DGM_STR("interrupts")));
        if (error.n && !f->error_text.n)
            f->error_text = dgm_arena_dup(f->arena, error);
    }
    if (yyjson_is_obj(values)) {
        dgm_buf_clear(&f->values);
        dgm_json_put(&f->values, values);
    }
    *ret_next = dgm_json_copy(a, dgm_json_get(state, DGM_STR("next")));
}

/* The index of the first message that this run has added, if the first state of the run is not known. */
static size_t first_new_message(const struct gserver_frames *f, yyjson_val *messages)
{
    yyjson_val *message;
    size_t i, n, first = 0;
    yyjson_arr_foreach (messages, i, n, message) {
        if (f->message_id.n && dgm_str_eq(dgm_json_str_member(message, "id"), f->message_id))
            return i + 1;
        if (dgm_str_is(dgm_json_str_member(message, "type"), "human"))
            first = i + 1;
    }
    return first;
}

static void result_put_messages(const struct gserver_frames *f, dgm_buf *b, yyjson_val *messages,
                                dgm_arena *a)
{
    yyjson_val *message;
    size_t i, n, count = 0;
    size_t first = f->has_old ? 0 : first_new_message(f, messages);
    yyjson_arr_foreach (messages, i, n, message) {
        dgm_str id = dgm_json_str_member(message, "id");
        if (i < first || !yyjson_is_obj(message) ||
            (f->has_old && id.n && dgm_map_get(&f->old_ids, id)))
            continue;
        if (count++)
            dgm_buf_add_char(b, ',');
        dgm_json_put(b, frames_flat(a, message));
    }
}

const dgm_json *dgm_gserver_frames_result(struct gserver_frames *f, dgm_arena *a,
                                          const char *status, const dgm_json *next)
{
    dgm_buf b;
    yyjson_val *values = NULL, *outbox;
    const dgm_json *result = NULL;
    if (f->values.over || f->interrupts.over ||
        (f->values.n && dgm_json_read(a, dgm_buf_str(&f->values), DGM_MAX_OBJECT_BYTES,
                                      "object_bytes", &values, NULL)))
        return NULL;
    outbox = dgm_json_non_null(values, "a2a_outbox");
    dgm_buf_init(&b, DGM_MAX_OUTPUT_BYTES);
    dgm_buf_printf(&b, "{\"status\":\"%s\",\"interrupts\":[", status);
    dgm_buf_add_str(&b, dgm_buf_str(&f->interrupts));
    dgm_buf_printf(&b, "],\"hasOutbox\":%s,\"outbox\":", outbox ? "true" : "false");
    dgm_json_put(&b, outbox);
    dgm_buf_add_lit(&b, ",\"next\":");
    if (next)
        dgm_json_put(&b, next);
    else
        dgm_buf_add_lit(&b, "[]");
    dgm_buf_add_lit(&b, ",\"messages\":[");
    result_put_messages(f, &b, dgm_json_get(values, DGM_STR("messages")), a);
    dgm_buf_add_lit(&b, "]}");
    if (!b.over)
        result = dgm_json_parse_trusted(a, dgm_arena_dup(a, dgm_buf_str(&b)));
    dgm_buf_done(&b);
    return result;
}
