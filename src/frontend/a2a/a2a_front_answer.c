/*
 * frontend/a2a/a2a_front_answer.c - results in the caller's dialect.
 *
 * A 1.0 caller without special requests gets the record's own bytes: a `task` record is
 * {"task":{...}}, which is a SendMessageResponse, and what is inside is the Task of GetTask.
 */
#define _GNU_SOURCE /* memmem */
#include "frontend/a2a/a2a_front_int.h"
#include "wire/jsonrpc/jsonrpc.h"

/* ---- how a caller sees it ---------------------------------------------------------------------------------------- */

struct view dgm_op_view(const struct op *op)
{
    return (struct view){.codec = op->codec,
                         .history_length = op->history_length,
                         .no_canonical_type = op->front->o.no_canonical_type};
}

bool dgm_view_is_plain(const struct view *v, const dgm_record *r)
{
    return v->codec == &dgm_codec_a2a_10 &&
           !(v->history_length.set && r->head.kind == DGM_EVENT_TASK) &&
           !(v->no_canonical_type && memmem(r->bytes, r->n, "canonical_type", 14));
}

/* The last n messages; 0: none; unset: all. */
static void cut_history(dgm_task *task, dgm_opt_int n)
{
    if (!n.set || (size_t)n.value >= task->history.n)
        return;
    task->history.at += task->history.n - (size_t)n.value;
    task->history.n = (size_t)n.value;
    if (!n.value)
        task->history.at = NULL;
}

/* metadata without canonical_type; NULL when nothing is left. */
static const dgm_json *without_type(dgm_arena *a, const dgm_json *metadata)
{
    dgm_str name = DGM_STR("canonical_type");
    yyjson_val *object = (yyjson_val *)(uintptr_t)metadata, *key, *value;
    size_t i, max, n = 0;
    if (!dgm_json_get(metadata, name))
        return metadata;
    dgm_member *members = dgm_new_n(a, dgm_member, yyjson_obj_size(object));
    yyjson_obj_foreach (object, i, max, key, value) {
        if (!dgm_str_eq(dgm_json_str(key), name))
            members[n++] = (dgm_member){dgm_json_str(key), value};
    }
    return n ? dgm_json_object(a, members, n) : NULL;
}

static void drop_types(dgm_arena *a, dgm_event *e)
{
    dgm_message *m = e->kind == DGM_EVENT_MESSAGE  ? e->message
                     : e->kind == DGM_EVENT_TASK   ? e->task->status.message
                     : e->kind == DGM_EVENT_STATUS ? e->status->status.message
                                                   : NULL;
    if (m)
        m->metadata = without_type(a, m->metadata);
    if (e->kind != DGM_EVENT_TASK)
        return;
    for (size_t i = 0; i < e->task->history.n; i++) {
        m = &e->task->history.at[i];
        m->metadata = without_type(a, m->metadata);
    }
}

bool dgm_view_event(const struct view *v, const dgm_record *r, dgm_arena *a, dgm_event *ret_event)
{
    if (dgm_record_event(r, a, ret_event, NULL))
        return false; /* it was readable when it was written: a damaged store was reported elsewhere */
    if (ret_event->kind == DGM_EVENT_TASK)
        cut_history(ret_event->task, v->history_length);
    if (v->no_canonical_type)
        drop_types(a, ret_event);
    return true;
}

bool dgm_view_put(const struct view *v, const dgm_record *r, dgm_object_kind as, dgm_arena *scratch,
                  dgm_buf *out)
{
    dgm_event event;
    dgm_writer w = {.out = out};
    dgm_str wrapper = as == DGM_OBJECT_TASK ? DGM_STR("{\"task\":") : DGM_STR("{");
    dgm_str bytes = dgm_record_bytes(r);
    if (dgm_view_is_plain(v, r) && dgm_str_starts(bytes, wrapper)) {
        if (as == DGM_OBJECT_TASK)
            bytes = (dgm_str){bytes.p + wrapper.n, bytes.n - wrapper.n - 1};
        dgm_buf_add_str(out, bytes);
        return true;
    }
    if (!dgm_view_event(v, r, scratch, &event))
        return false;
    dgm_frame frame = {.object = {as, as == DGM_OBJECT_TASK ? event.any : &event}};
    return !v->codec->encode(&w, &frame, NULL);
}

/* ---- answering -------------------------------------------------------------------------------------------------------- */

void dgm_op_respond(struct op *op, int status, dgm_str type, dgm_str body,
                    const dgm_http_header *more, size_t n)
{
    dgm_http_header headers[4];
    if (n > 3)
        n = 3;
    for (size_t i = 0; i < n; i++)
        headers[i] = more[i];
    if (op->extensions.n)
        headers[n++] = dgm_op_extensions_header(op);
    dgm_http_respond(op->x, status, type, headers, n, body);
}

dgm_http_header dgm_op_extensions_header(const struct op *op)
{
    return (dgm_http_header){op_is_10(op) ? DGM_STR("A2A-Extensions") : DGM_STR("X-A2A-Extensions"),
                             op->extensions};
}

void dgm_op_put_head(const struct op *op, dgm_buf *out)
{
    if (!op->rest)
        dgm_rpc_put_result(out, op->id);
}

void dgm_op_put_tail(const struct op *op, dgm_buf *out)
{
    if (!op->rest)
        dgm_rpc_put_tail(out);
}

void dgm_op_send(struct op *op, const dgm_buf *out)
{
    if (out->over)
        dgm_op_fail_with(op, DGM_TOO_LARGE, "the answer is larger than the limit output_bytes");
    else
        dgm_op_respond(op, 200, op->rest ? dgm_rest_type(op) : DGM_STR("application/json"),
                       dgm_buf_str(out), NULL, 0);
}

void dgm_op_send_record(struct op *op, const dgm_record *r)
{
    struct scratch *s = dgm_front_scratch(op->front);
    struct view view = dgm_op_view(op);
    dgm_object_kind as = op->method == DGM_METHOD_SEND ? DGM_OBJECT_SEND_RESPONSE : DGM_OBJECT_TASK;
    dgm_op_put_head(op, &s->out);
    if (!dgm_view_put(&view, r, as, s->arena, &s->out)) {
        dgm_op_fail_with(op, DGM_INTERNAL, "the task cannot be read");
        return;
    }
    dgm_op_put_tail(op, &s->out);
    dgm_op_send(op, &s->out);
}
