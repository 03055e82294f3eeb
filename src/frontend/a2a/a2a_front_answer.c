/* frontend/a2a/a2a_front_answer.c - results and errors in the caller's dialect. */
#include "base/limits.h"
#include "frontend/a2a/a2a_front_int.h"

#include <stdlib.h>

#define JSON_TYPE DGM_STR("application/json")

static void respond(struct op *op, int status, const dgm_frame *frame)
{
    dgm_buf out;
    dgm_err err = {0};
    dgm_buf_init(&out, DGM_MAX_OUTPUT_BYTES);
    dgm_writer w = {.out = &out};
    if (op->codec->encode(&w, frame, &err) || out.over) {
        dgm_buf_clear(&out);
        dgm_buf_add_lit(&out, "{\"error\":{\"code\":500,\"status\":\"INTERNAL\",\"message\":"
                              "\"the answer cannot be written\"}}");
        status = 500;
    }
    if (!op->gone)
        dgm_http_respond(op->x, status, JSON_TYPE, NULL, 0, dgm_buf_str(&out));
    dgm_buf_done(&out);
    op_over(op);
}

void op_over(struct op *op)
{
    if (op->over)
        return;
    op->over = true;
    dgm_reader_close(op->reader);
    dgm_log_unref(op->log);
    dgm_arena_free(op->scratch);
    dgm_buf_done(&op->out);
    if (op->timer)
        dgm_timer_close(op->timer, free, op->timer);
}

void op_after(struct op *op, uint64_t ms, dgm_loop_fn fn)
{
    if (!op->timer) {
        op->timer = dgm_xcalloc(1, sizeof *op->timer);
        dgm_timer_init(dgm_http_loop(op->x), op->timer, fn, op);
    }
    dgm_timer_start(op->timer, ms);
}

static dgm_frame framed(const struct op *op, dgm_object object)
{
    return (dgm_frame){.envelope = op->rest ? DGM_ENVELOPE_NONE : DGM_ENVELOPE_RESPONSE,
                       .id = op->id,
                       .object = object};
}

void op_fail(struct op *op, const dgm_err *err)
{
    bool old = op->front->o.errors_1_0_0;
    dgm_error e = {.code = err->code,
                   .rpc_code = dgm_code_rpc(err->code),
                   .http_status = dgm_code_http(err->code, old),
                   .status = dgm_str_from(dgm_grpc_status_name(dgm_code_grpc(err->code, old))),
                   .message = dgm_str_from(err->msg)};
    if (err->at[0])
        e.message = dgm_arena_printf(op->arena, "%s (at %s)", err->msg, err->at);
    dgm_frame frame = framed(op, (dgm_object){DGM_OBJECT_ERROR, &e});
    /* JSON-RPC says it in the body; what the transport refuses keeps its status there too. */
    bool transport = err->code >= DGM_UNAUTHENTICATED;
    respond(op, op->rest || transport ? e.http_status : 200, &frame);
}

void op_answer(struct op *op, dgm_object object)
{
    dgm_frame frame = framed(op, object);
    respond(op, 200, &frame);
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

void op_give_task(struct op *op, dgm_record *snapshot, bool wrapped)
{
    dgm_event event;
    dgm_err err = {0};
    if (dgm_record_event(snapshot, op->arena, &event, &err)) {
        op_fail(op, &err);
        return;
    }
    cut_history(event.task, op->history_length);
    if (wrapped)
        op_answer(op, (dgm_object){DGM_OBJECT_SEND_RESPONSE, &event});
    else
        op_answer(op, (dgm_object){DGM_OBJECT_TASK, event.task});
}
