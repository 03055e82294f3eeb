/*
 * backend/graph_server/graph_server_v2.c - events of Protocol v2, see graph_server_frames.h.
 *
 * A connection replays all runs of its thread, and events do not name their run. The first event of a run is `lifecycle` with
 * `running` for the graph itself; its event_id contains the id of the run.
 *
 * Messages come as content blocks. The deltas of a block do not say which message they belong to: it is the one that was started
 * last in their namespace. The block's end repeats its text, so that a delta that was lost is found.
 */
#include "backend/graph_server/graph_server_frames.h"
#include "backend/graph_server/graph_server_int.h"

#include "base/limits.h"

#include <stdio.h>

/* The message that streams in a namespace. */
struct gserver_open_message {
    uint64_t ns;   /* hash of the namespace */
    dgm_str id;    /* of the message; empty: it is not an answer of a model */
    int64_t index; /* of the block that streams */
    dgm_sum sum;   /* the text of this block so far */
};

static struct gserver_open_message *v2_open(struct gserver_frames *f, uint64_t ns)
{
    for (size_t i = 0; i < f->n_open; i++) {
        if (f->open[i].ns == ns)
            return &f->open[i];
    }
    if (!f->open)
        f->open = dgm_new_n(f->arena, struct gserver_open_message, GSERVER_MAX_OPEN);
    size_t i = f->n_open < GSERVER_MAX_OPEN ? f->n_open++ : 0; /* the oldest goes */
    f->open[i] = (struct gserver_open_message){.ns = ns, .index = -1};
    return &f->open[i];
}

/* A chunk of a message, or a complete one. content: a string, or a list of blocks. */
static dgm_code v2_emit(struct gserver_frames *f, const struct gserver_open_message *m,
                        const dgm_json *content, bool is_chunk, dgm_err *err)
{
    dgm_arena *a = f->scratch;
    dgm_member members[] = {
        {DGM_STR("type"), dgm_json_make_string(a, DGM_STR("ai"))},
        {DGM_STR("content"), content},
        {DGM_STR("id"), dgm_json_make_string(a, m->id)},
        {DGM_STR("chunk"), dgm_json_parse_trusted(a, DGM_STR("true"))},
    };
    const dgm_json *message = dgm_json_object(a, members, is_chunk ? 4 : 3);
    return dgm_gserver_frames_emit_message(f, NULL, message, m->id, NULL, m->id, err);
}

static dgm_code v2_emit_text(struct gserver_frames *f, struct gserver_open_message *m, dgm_str text,
                             dgm_err *err)
{
    if (!text.n)
        return DGM_OK;
    dgm_sum_add(&m->sum, text);
    return v2_emit(f, m, dgm_json_make_string(f->scratch, text), true, err);
}

static dgm_code v2_emit_reasoning(struct gserver_frames *f, struct gserver_open_message *m,
                                  dgm_str text, dgm_err *err)
{
    dgm_buf b;
    if (!text.n)
        return DGM_OK;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "[{\"type\":\"reasoning\",\"reasoning\":");
    dgm_json_put_str(&b, text);
    dgm_buf_add_lit(&b, "}]");
    const dgm_json *content =
        dgm_json_parse_trusted(f->scratch, dgm_arena_dup(f->scratch, dgm_buf_str(&b)));
    dgm_buf_done(&b);
    return v2_emit(f, m, content, true, err);
}

/* The text of a block or of a delta: text, or reasoning. */
static dgm_code v2_block(struct gserver_frames *f, struct gserver_open_message *m,
                         const dgm_json *block, dgm_err *err)
{
    dgm_str type = dgm_json_str_member(block, "type");
    if (dgm_str_is(type, "text") || dgm_str_is(type, "text-delta"))
        return v2_emit_text(f, m, dgm_json_str_member(block, "text"), err);
    if (dgm_str_is(type, "reasoning") || dgm_str_is(type, "reasoning-delta"))
        return v2_emit_reasoning(f, m, dgm_json_str_member(block, "reasoning"), err);
    return DGM_OK;
}

/* The block is complete: a part of its text that did not arrive is emitted now. */
static dgm_code v2_block_end(struct gserver_frames *f, struct gserver_open_message *m,
                             const dgm_json *block, dgm_err *err)
{
    dgm_str text = dgm_json_str_member(block, "text");
    if (!dgm_str_is(dgm_json_str_member(block, "type"), "text") || text.n == m->sum.n)
        return DGM_OK;
    if (text.n > m->sum.n && dgm_sum_is_prefix(&m->sum, text))
        return v2_emit_text(f, m, (dgm_str){text.p + m->sum.n, text.n - m->sum.n}, err);
    return v2_emit(f, m, dgm_json_make_string(f->scratch, text), false, err);
}

static dgm_code v2_message(struct gserver_frames *f, uint64_t ns, const dgm_json *data,
                           dgm_err *err)
{
    struct gserver_open_message *m = v2_open(f, ns);
    dgm_str event = dgm_json_str_member(data, "event");
    yyjson_val *content = dgm_json_get(data, DGM_STR("content"));
    int64_t index = 0;
    dgm_json_int(dgm_json_get(data, DGM_STR("index")), &index);
    if (dgm_str_is(event, "message-start")) {
        dgm_str role = dgm_json_str_member(data, "role"), id = dgm_json_str_member(data, "id");
        if (!id.n)
            id = dgm_json_str_member(data, "message_id");
        bool is_answer = !role.n || dgm_str_is(role, "ai") || dgm_str_is(role, "assistant");
        m->id = is_answer && id.n <= DGM_MAX_ID_BYTES
                    ? dgm_arena_dup(f->arena, id.n ? id : DGM_STR("message"))
                    : (dgm_str){0};
        m->index = -1;
        m->sum = (dgm_sum){0};
        return DGM_OK;
    }
    if (!m->id.n)
        return DGM_OK;
    if (dgm_str_is(event, "message-finish")) {
        dgm_str id = m->id;
        m->id = (dgm_str){0};
        return dgm_gserver_frames_emit_nodes(f, NULL, &id, 1,
                                             err); /* its node is its id, see v2_emit */
    }
    if (m->index != index) {
        m->index = index;
        m->sum = (dgm_sum){0};
    }
    if (dgm_str_is(event, "content-block-finish"))
        return v2_block_end(f, m, content, err);
    if (dgm_str_is(event, "content-block-delta") && dgm_json_get(data, DGM_STR("delta")))
        content = dgm_json_get(data, DGM_STR("delta"));
    return v2_block(f, m, content, err);
}

/* ---- events ------------------------------------------------------------------------------------------------------------------ */

/* Is this the first event of our run? Servers whose event ids do not name runs: of the first run behind `since`. */
static bool v2_is_start(const struct gserver_frames *f, dgm_str event_id)
{
    return !dgm_str_starts(event_id, DGM_STR("synth:")) ||
           dgm_gserver_find_text(event_id, f->run_id);
}

static enum gserver_frame_end v2_lifecycle(struct gserver_frames *f, dgm_str event_id,
                                           const dgm_json *data)
{
    dgm_str event = dgm_json_str_member(data, "event");
    if (dgm_str_is(event, "running"))
        return v2_is_start(f, event_id) ? GSERVER_GOES_ON : GSERVER_OTHER_RUN;
    if (dgm_str_is(event, "failed")) {
        f->has_error = true;
        f->error_text = dgm_arena_dup(f->arena, dgm_json_str_member(data, "error"));
        return GSERVER_OVER;
    }
    f->is_interrupted = dgm_str_is(event, "interrupted");
    return f->is_interrupted || dgm_str_is(event, "completed") ? GSERVER_OVER : GSERVER_GOES_ON;
}

/* The value that the graph wrote: {payload}, with a name if it comes from a transformer of the graph. */
static dgm_code v2_custom(struct gserver_frames *f, const dgm_json *data, dgm_err *err)
{
    yyjson_val *payload = dgm_json_get(data, DGM_STR("payload"));
    bool is_wrapped = payload && yyjson_obj_size((yyjson_val *)(uintptr_t)data) == 1;
    return f->on_event(f->arg, DGM_STR("custom"), NULL, is_wrapped ? payload : data, err);
}

static dgm_code v2_event(struct gserver_frames *f, dgm_str method, const dgm_json *params,
                         dgm_err *err)
{
    yyjson_val *ns = dgm_json_get(params, DGM_STR("namespace"));
    yyjson_val *data = dgm_json_get(params, DGM_STR("data"));
    bool is_root = yyjson_arr_size(ns) == 0;
    if (dgm_str_is(method, "messages")) {
        dgm_str text = dgm_json_text_in(f->scratch, ns);
        return v2_message(f, dgm_hash(1, text.p, text.n), data, err);
    }
    if (dgm_str_is(method, "custom"))
        return v2_custom(f, data, err);
    if (dgm_str_is(method, "updates")) {
        dgm_str node = dgm_json_str_member(params, "node");
        return node.n ? dgm_gserver_frames_emit_nodes(f, ns, &node, 1, err) : DGM_OK;
    }
    if (dgm_str_is(method, "values") && is_root) {
        dgm_gserver_frames_values(f, data, dgm_json_text_in(f->scratch, data));
    } else if (dgm_str_is(method, "input.requested")) {
        dgm_str text = dgm_arena_printf(f->scratch, "[%s]", dgm_json_text_in(f->scratch, data).p);
        dgm_gserver_frames_add_interrupts(f, dgm_json_parse_trusted(f->scratch, text));
    }
    return DGM_OK;
}

static enum gserver_frame_end v2_error(struct gserver_frames *f, const dgm_json *frame)
{
    dgm_str error = dgm_json_str_member(frame, "error");
    if (dgm_str_is(error, "resume_gap")) {
        f->gap_seq = 0;
        dgm_json_int(dgm_json_get(frame, DGM_STR("min_available_seq")), &f->gap_seq);
        return GSERVER_GAP;
    }
    dgm_gserver_frames_error(f, frame);
    return GSERVER_OVER;
}

dgm_code dgm_gserver_frames_add_v2(struct gserver_frames *f, const dgm_frames_item *item,
                                   enum gserver_frame_end *ret_end, dgm_err *err)
{
    yyjson_val *frame;
    int64_t seq = -1;
    dgm_code rc;
    *ret_end = GSERVER_GOES_ON;
    dgm_arena_reset(f->scratch);
    if ((rc = dgm_json_read(f->scratch, item->text, DGM_MAX_RECORD_BYTES, "record_bytes", &frame,
                            err)))
        return rc;
    dgm_str method = dgm_json_str_member(frame, "method");
    yyjson_val *params = dgm_json_get(frame, DGM_STR("params"));
    if (dgm_str_is(dgm_json_str_member(frame, "type"), "error") ||
        dgm_str_is(item->sse_event, "error")) {
        *ret_end = v2_error(f, frame);
        return DGM_OK;
    }
    bool is_lifecycle = dgm_str_is(method, "lifecycle") &&
                        yyjson_arr_size(dgm_json_get(params, DGM_STR("namespace"))) == 0;
    dgm_str event_id = dgm_json_str_member(frame, "event_id");
    yyjson_val *data = dgm_json_get(params, DGM_STR("data"));
    dgm_json_int(dgm_json_get(frame, DGM_STR("seq")), &seq);
    if (!f->is_started) {
        if (!is_lifecycle || !dgm_str_is(dgm_json_str_member(data, "event"), "running") ||
            !v2_is_start(f, event_id))
            return DGM_OK; /* of an earlier run */
        f->is_started = true;
        if (f->first_seq < 0)
            f->first_seq = seq;
        *ret_end = GSERVER_STARTED;
    }
    f->last_seq = seq > f->last_seq ? seq : f->last_seq;
    if (dgm_gserver_seen_event(&f->seen, method, params))
        return DGM_OK;
    f->is_complete = f->is_complete && is_lifecycle;
    if (!is_lifecycle)
        return v2_event(f, method, params, err);
    enum gserver_frame_end end = v2_lifecycle(f, event_id, data);
    if (end != GSERVER_GOES_ON)
        *ret_end = end;
    return DGM_OK;
}
