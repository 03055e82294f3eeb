/*
 * frontend/a2a/a2a_front_stream.c - a reader of the log that writes server-sent events.
 *
 * Every frame carries the record's number as its id; internal records are passed over. In 1.0 the
 * payload is the record's own bytes. All that is there is written once per turn; a caller who does not
 * keep up is waited for, the log is patient.
 */
#include "frontend/a2a/a2a_front_int.h"
#include "wire/sse/sse.h"

#define BACKLOG_BYTES ((size_t)1 << 20) /* then wait for room */
#define PING_MS 15000

static void put_payload(struct op *op, const dgm_record *r, dgm_event *event)
{
    dgm_frame frame = {.envelope = op->rest ? DGM_ENVELOPE_NONE : DGM_ENVELOPE_RESPONSE,
                       .id = op->id,
                       .object = {DGM_OBJECT_STREAM_RESPONSE, event}};
    size_t from = op->out.n;
    dgm_writer w = {.out = &op->out};
    (void)r;
    op->codec->encode(&w, &frame, NULL);
    dgm_sse_escape_line_ends(&op->out, from);
}

static void put_record(struct op *op, const dgm_record *r)
{
    dgm_event event;
    if (r->head.kind == DGM_EVENT_INTERNAL)
        return;
    dgm_arena_reset(op->scratch);
    if (dgm_record_event(r, op->scratch, &event, NULL))
        return; /* it was readable when it was written: a damaged store has said so elsewhere */
    dgm_buf_printf(&op->out, "id: %llu\ndata: ", (unsigned long long)r->head.seq);
    put_payload(op, r, &event);
    dgm_buf_add_lit(&op->out, "\n\n");
}

static void finish(struct op *op)
{
    dgm_http_end(op->x);
    op_over(op);
}

static bool ends_stream(const struct op *op, const dgm_record *r)
{
    if (r->head.kind == DGM_EVENT_MESSAGE)
        return true;
    if (r->head.kind != DGM_EVENT_STATUS)
        return false;
    return dgm_state_is_terminal(r->head.state) ||
           (r->head.state == DGM_STATE_INPUT_REQUIRED && op->method == DGM_METHOD_STREAM &&
            !op->front->o.keep_open_at_question);
}

static void on_ready(void *arg)
{
    struct op *op = arg;
    dgm_record *r;
    bool end = false;
    dgm_buf_clear(&op->out);
    while (!end && dgm_http_backlog(op->x) + op->out.n < BACKLOG_BYTES &&
           (r = dgm_reader_next(op->reader))) {
        put_record(op, r);
        end = ends_stream(op, r);
    }
    if (op->out.n) {
        dgm_http_write(op->x, dgm_buf_str(&op->out));
        dgm_timer_start(op->timer, PING_MS);
    }
    if (end || dgm_reader_is_over(op->reader))
        finish(op);
}

static void on_gone(void *arg)
{
    struct op *op = arg;
    op->gone = true;
    finish(op);
}

static void ping(void *arg)
{
    struct op *op = arg;
    dgm_http_write(op->x, DGM_STR(": ping\n\n"));
    dgm_timer_start(op->timer, PING_MS);
}

void op_stream(struct op *op, dgm_log *log, uint64_t after, dgm_record *snapshot)
{
    static const dgm_http_header headers[] = {{{"Cache-Control", 13}, {"no-cache", 8}},
                                              {{"X-Accel-Buffering", 17}, {"no", 2}}};
    op->streaming = true;
    op->log = dgm_log_ref(log);
    op->scratch = dgm_arena_new();
    dgm_buf_init(&op->out, SIZE_MAX);
    dgm_http_begin(op->x, 200, DGM_STR("text/event-stream"), headers, 2);
    dgm_http_watch(op->x, on_ready, on_gone, op);
    op_after(op, PING_MS, ping);
    if (snapshot) {
        put_record(op, snapshot);
        dgm_http_write(op->x, dgm_buf_str(&op->out));
    }
    op->reader = dgm_reader_open(log, after, on_ready, op);
}
