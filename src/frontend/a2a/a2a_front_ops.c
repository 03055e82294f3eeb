/* frontend/a2a/a2a_front_ops.c - what each operation asks of the core, and makes of its answer. */
#include "frontend/a2a/a2a_front_int.h"

#define FIRST_EVENT_MS 1000 /* a non-blocking send answers by then */
#define BLOCKING_MS (5 * 60 * 1000)

static void fail_with(struct op *op, dgm_code code, const char *msg)
{
    dgm_err err = {0};
    dgm_fail(&err, code, NULL, "%s", msg);
    op_fail(op, &err);
}

/* ---- sending -------------------------------------------------------------------------------------------------- */

static void on_task(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    struct op *op = arg;
    if (code)
        op_fail(op, err);
    else
        op_give_task(op, snapshot, op->method == DGM_METHOD_SEND);
}

static void give_task_now(struct op *op)
{
    dgm_reader_close(op->reader);
    op->reader = NULL;
    dgm_timer_stop(op->timer);
    dgm_core_get(op->front->core, op->owner, op->agent, op->task_id, on_task, op);
}

static void waited_enough(void *arg)
{
    give_task_now(arg);
}

/* A blocking send has its answer at the end or at a question, another one at the first event past the
 * task itself. */
static bool is_answer(const struct op *op, const dgm_record *r)
{
    if (op->return_immediately)
        return r->head.kind != DGM_EVENT_TASK && r->head.kind != DGM_EVENT_INTERNAL;
    return (r->head.kind == DGM_EVENT_STATUS || r->head.kind == DGM_EVENT_TASK) &&
           (dgm_state_is_terminal(r->head.state) || dgm_state_is_interrupted(r->head.state));
}

static void on_ready(void *arg)
{
    struct op *op = arg;
    dgm_record *r;
    while ((r = dgm_reader_next(op->reader))) {
        if (is_answer(op, r)) {
            give_task_now(op);
            return;
        }
    }
    if (dgm_reader_is_over(op->reader))
        give_task_now(op);
}

static void give_message(struct op *op, const dgm_sent *sent)
{
    dgm_event *event = dgm_new(op->arena, dgm_event);
    dgm_err err = {0};
    dgm_reader *reader = dgm_reader_open(sent->log, 0, on_ready, op);
    dgm_record *r = dgm_reader_next(reader);
    dgm_code rc = dgm_record_event(r, op->arena, event, &err);
    dgm_reader_close(reader);
    if (rc)
        op_fail(op, &err);
    else
        op_answer(op, (dgm_object){DGM_OBJECT_SEND_RESPONSE, event});
}

static void on_sent(dgm_code code, const dgm_sent *sent, const dgm_err *err, void *arg)
{
    struct op *op = arg;
    uint64_t wait = op->front->o.blocking_ms ? op->front->o.blocking_ms : BLOCKING_MS;
    if (code) {
        op_fail(op, err);
        return;
    }
    op->task_id = dgm_arena_dup(op->arena, sent->task_id);
    if (op->method == DGM_METHOD_STREAM) {
        op_stream(op, sent->log, sent->after, sent->snapshot);
        return;
    }
    if (sent->is_message) {
        give_message(op, sent);
        return;
    }
    op->log = dgm_log_ref(sent->log);
    op_after(op, op->return_immediately ? FIRST_EVENT_MS : wait, waited_enough);
    op->reader = dgm_reader_open(sent->log, sent->after, on_ready, op);
}

static void run_send(struct op *op, const dgm_send_request *q)
{
    const dgm_send_configuration *c = q->configuration;
    dgm_send send = {.owner = op->owner,
                     .agent = op->agent,
                     .message = q->message,
                     .metadata = q->metadata,
                     .protocol = DGM_STR("a2a")};
    if (c) {
        op->history_length = c->history_length;
        op->return_immediately = c->return_immediately == DGM_TRUE;
        send.accepted_output_modes = c->accepted_output_modes;
        if (c->push_config) {
            fail_with(op, DGM_PUSH_NOT_SUPPORTED, "Push Notification is not supported");
            return;
        }
    }
    if (op->history_length.set && op->history_length.value < 0)
        fail_with(op, DGM_BAD_PARAMS, "historyLength must not be negative");
    else
        dgm_core_send(op->front->core, &send, on_sent, op);
}

/* ---- the others ---------------------------------------------------------------------------------------------------- */

static void on_subscribed(dgm_code code, dgm_log *log, uint64_t after, dgm_record *snapshot,
                          const dgm_err *err, void *arg)
{
    struct op *op = arg;
    if (code)
        op_fail(op, err);
    else
        op_stream(op, log, after, snapshot);
}

/* Last-Event-ID: the number of the last frame that arrived. */
static uint64_t cursor_of(struct op *op)
{
    dgm_str text = dgm_http_header_of(dgm_http_request_of(op->x), DGM_STR("last-event-id"));
    uint64_t n = 0;
    if (!text.n || text.n > 18)
        return DGM_NO_CURSOR;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9')
            return DGM_NO_CURSOR;
        n = n * 10 + (uint64_t)(text.p[i] - '0');
    }
    return n;
}

void op_run(struct op *op, const dgm_frame *frame)
{
    const dgm_task_request *q = frame->object.it;
    op->method = frame->method;
    switch (frame->method) {
    case DGM_METHOD_SEND:
    case DGM_METHOD_STREAM: run_send(op, frame->object.it); return;
    case DGM_METHOD_GET:
        op->history_length = q->history_length;
        if (q->history_length.set && q->history_length.value < 0)
            fail_with(op, DGM_BAD_PARAMS, "historyLength must not be negative");
        else
            dgm_core_get(op->front->core, op->owner, op->agent, q->task_id, on_task, op);
        return;
    case DGM_METHOD_CANCEL:
        dgm_core_cancel(op->front->core, op->owner, op->agent, q->task_id, on_task, op);
        return;
    case DGM_METHOD_SUBSCRIBE:
        dgm_core_subscribe(op->front->core, op->owner, op->agent, q->task_id, cursor_of(op),
                           on_subscribed, op);
        return;
    case DGM_METHOD_PUSH_CREATE:
    case DGM_METHOD_PUSH_GET:
    case DGM_METHOD_PUSH_LIST:
    case DGM_METHOD_PUSH_DELETE:
        fail_with(op, DGM_PUSH_NOT_SUPPORTED, "Push Notification is not supported");
        return;
    case DGM_METHOD_EXTENDED_CARD:
        fail_with(op,
                  op->codec == &dgm_codec_a2a_10 ? DGM_UNSUPPORTED_OPERATION
                                                 : DGM_EXTENDED_CARD_NOT_CONFIGURED,
                  "there is no extended card");
        return;
    case DGM_METHOD_LIST:
    case DGM_METHOD_NONE: break;
    }
    fail_with(op, DGM_UNSUPPORTED_OPERATION, "This operation is not supported");
}
