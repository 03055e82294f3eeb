/*
 * frontend/a2a/a2a_front_stream.c - a reader of the log that writes server-sent events.
 *
 * Every frame carries the record's number as its id; internal records are passed over. In 1.0 the
 * payload is the record's own bytes. All that is there is written once per turn; a caller who does not
 * keep up is waited for, the log is patient.
 *
 * A stream may be idle for hours: it keeps what it needs and nothing of the request.
 */
#include "frontend/a2a/a2a_front_int.h"
#include "wire/sse/sse.h"

#include <stdlib.h>

#define BACKLOG_BYTES (2 * DGM_HTTP_BACKLOG_MARK) /* then wait for room */
#define SHARED_BYTES ((size_t)4 << 10)            /* what is larger is not copied */
#define PING_MS 15000

struct stream {
    dgm_a2a_front *front;
    dgm_http_exchange *x;
    dgm_reader *reader;
    dgm_timer timer;
    struct view view;
    bool ends_at_question;
    bool has_tail; /* of an envelope */
    size_t head_n;
    char head[]; /* of an envelope; up to the result */
};

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static void put_frame_head(const struct stream *s, const dgm_record *r, dgm_buf *out)
{
    dgm_buf_add_lit(out, "id: ");
    dgm_json_put_int(out, (int64_t)r->head.seq);
    dgm_buf_add_lit(out, "\ndata: ");
    dgm_buf_add(out, s->head, s->head_n);
}

static void put_frame_tail(const struct stream *s, dgm_buf *out)
{
    if (s->has_tail)
        dgm_buf_add_char(out, '}');
    dgm_buf_add_lit(out, "\n\n");
}

static void release(void *arg)
{
    dgm_record_unref(arg);
}

static void flush(struct stream *s, dgm_buf *out)
{
    if (out->n)
        dgm_http_write(s->x, dgm_buf_str(out));
    dgm_buf_clear(out);
}

/* What dgm_sse_escape_line_ends would change. */
static bool has_line_ends(dgm_str s)
{
    for (size_t i = 0; i + 1 < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i], next = (unsigned char)s.p[i + 1];
        if ((c == 0xC2 && next == 0x85) || (c == 0xE2 && next == 0x80))
            return true;
    }
    return false;
}

/* Large and as it is: the socket gets the record's own bytes. */
static bool put_shared(struct stream *s, dgm_record *r, dgm_buf *out)
{
    if (r->n <= SHARED_BYTES || !view_is_plain(&s->view, r) || has_line_ends(dgm_record_bytes(r)))
        return false;
    put_frame_head(s, r, out);
    flush(s, out);
    dgm_http_write_shared(s->x, dgm_record_bytes(r), release, dgm_record_ref(r));
    put_frame_tail(s, out);
    return true;
}

static void put_record(struct stream *s, dgm_record *r, struct scratch *scratch)
{
    dgm_buf *out = &scratch->out;
    size_t before = out->n;
    if (r->head.kind == DGM_EVENT_INTERNAL || put_shared(s, r, out))
        return;
    put_frame_head(s, r, out);
    size_t from = out->n;
    dgm_arena_reset(scratch->arena);
    if (!view_put(&s->view, r, DGM_OBJECT_STREAM_RESPONSE, scratch->arena, out)) {
        out->n = before;
        return;
    }
    dgm_sse_escape_line_ends(out, from);
    put_frame_tail(s, out);
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

static void finish(struct stream *s)
{
    dgm_http_end(s->x);
    dgm_reader_close(s->reader);
    dgm_timer_close(&s->timer, free, s);
}

static bool ends_stream(const struct stream *s, const dgm_record *r)
{
    if (r->head.kind == DGM_EVENT_MESSAGE)
        return true;
    return r->head.kind == DGM_EVENT_STATUS &&
           (dgm_state_is_terminal(r->head.state) ||
            (r->head.state == DGM_STATE_INPUT_REQUIRED && s->ends_at_question));
}

static void on_ready(void *arg)
{
    struct stream *s = arg;
    struct scratch *scratch = front_scratch(s->front);
    dgm_record *r;
    bool end = false, any = false;
    while (!end && dgm_http_backlog(s->x) + scratch->out.n < BACKLOG_BYTES &&
           (r = dgm_reader_next(s->reader))) {
        put_record(s, r, scratch);
        end = ends_stream(s, r);
        any = true;
    }
    flush(s, &scratch->out);
    if (end || dgm_reader_is_over(s->reader))
        finish(s);
    else if (any)
        dgm_timer_start(&s->timer, PING_MS);
}

static void on_gone(void *arg)
{
    finish(arg);
}

static void ping(void *arg)
{
    struct stream *s = arg;
    dgm_http_write(s->x, DGM_STR(": ping\n\n"));
    dgm_timer_start(&s->timer, PING_MS);
}

static void begin(struct op *op)
{
    dgm_http_header headers[3] = {{{"Cache-Control", 13}, {"no-cache", 8}},
                                  {{"X-Accel-Buffering", 17}, {"no", 2}}};
    if (op->extensions.n)
        headers[2] = op_extensions_header(op);
    dgm_http_begin(op->x, 200, DGM_STR("text/event-stream"), headers, op->extensions.n ? 3 : 2);
}

static struct stream *new_stream(struct op *op)
{
    struct scratch *scratch = front_scratch(op->front);
    op_put_head(op, &scratch->out);
    struct stream *s = dgm_xcalloc(1, sizeof *s + scratch->out.n);
    s->front = op->front;
    s->x = op->x;
    s->view = op_view(op);
    s->ends_at_question = op->method == DGM_METHOD_STREAM && !op->front->o.keep_open_at_question;
    s->has_tail = !op->rest;
    s->head_n = scratch->out.n;
    if (s->head_n)
        memcpy(s->head, scratch->out.p, s->head_n);
    return s;
}

void op_stream(struct op *op, dgm_log *log, uint64_t after, dgm_record *snapshot)
{
    struct stream *s = new_stream(op);
    dgm_loop *loop = dgm_http_loop(op->x);
    begin(op);
    if (snapshot) {
        struct scratch *scratch = front_scratch(op->front);
        put_record(s, snapshot, scratch);
        flush(s, &scratch->out);
    }
    if (!log) {
        dgm_http_end(op->x);
        free(s);
        return;
    }
    dgm_http_watch(op->x, on_ready, on_gone, s);
    dgm_timer_init(loop, &s->timer, ping, s);
    dgm_timer_start(&s->timer, PING_MS);
    s->reader = dgm_reader_open(log, after, on_ready, s);
}

void op_stream_error(struct op *op, const dgm_err *err)
{
    struct scratch *s = front_scratch(op->front);
    dgm_buf_add_lit(&s->out, "event: error\ndata: ");
    op_put_error(op, err, 200, &s->out);
    dgm_buf_add_lit(&s->out, "\n\n");
    begin(op);
    dgm_http_write(op->x, dgm_buf_str(&s->out));
    dgm_http_end(op->x);
}
