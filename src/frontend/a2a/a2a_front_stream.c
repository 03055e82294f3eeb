/*
 * frontend/a2a/a2a_front_stream.c - a reader of the log that writes server-sent events.
 *
 * Every frame carries the record's number as its id; internal records are passed over. In 1.0 the
 * payload is the record's own bytes, in other dialects what they became is shared by all readers. All
 * that is there is written once per turn; a caller who does not keep up is waited for, the log is
 * patient.
 *
 * A stream may be idle for hours: it keeps what it needs and nothing of the request.
 */
#include "frontend/a2a/a2a_front_int.h"
#include "wire/jsonrpc/jsonrpc.h"
#include "wire/sse/sse.h"

#define BACKLOG_BYTES (2 * DGM_HTTP_BACKLOG_MARK) /* then wait for room */
#define SHARED_BYTES ((size_t)4 << 10)            /* what is larger is not copied */

/* Of a stream for the inspector: a turn that is stored. */
struct a2a_replay {
    const dgm_turn_tap *tap;
    dgm_record *snapshot; /* a reference; NULL: the turn starts with its first record */
    uint64_t last_seq;    /* 0: the turn runs */
    dgm_task_state state; /* so far */
};

/* Lives as long as the exchange. */
struct stream {
    dgm_a2a_front *front;
    struct began *began;
    dgm_http_exchange *x;
    dgm_log_reader *reader;
    struct view view;
    struct a2a_replay *replay; /* NULL: a client */
    uint32_t head_n;
    bool ends_at_question;
    bool is_draining;
    bool has_tail; /* of an envelope */
    char head[];   /* of an envelope, up to the result; right behind it: there are many streams */
};

/* ---- payloads ------------------------------------------------------------------------------------------------------ */

/* Line readers of some peers end lines at these too; dgm_sse_escape_line_ends writes them as escapes. */
static bool has_line_ends(dgm_str s)
{
    const char *end = s.p + s.n, *p = s.p;
    while (p < end && (p = memchr(p, 0xE2, (size_t)(end - p)))) {
        if (p + 1 < end && (unsigned char)p[1] == 0x80)
            return true;
        p++;
    }
    p = s.p;
    while (p < end && (p = memchr(p, 0xC2, (size_t)(end - p)))) {
        if (p + 1 < end && (unsigned char)p[1] == 0x85)
            return true;
        p++;
    }
    return false;
}

static dgm_code encode(const dgm_record *r, dgm_buf *out, void *arg)
{
    struct stream *s = arg;
    size_t from = out->n;
    /* a scratch arena of its own: front_scratch would empty the buffer that is being filled */
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    if (!dgm_view_put(&s->view, r, DGM_OBJECT_STREAM_RESPONSE, a, out))
        return DGM_INTERNAL;
    dgm_sse_escape_line_ends(out, from);
    return DGM_OK;
}

/* Which of the dialects that are kept beside a record; 0: what this caller sees is its own. */
static unsigned shared_dialect(const struct stream *s, const dgm_record *r)
{
    if (s->view.history_length.set && r->head.kind == DGM_EVENT_TASK)
        return 0;
    return (s->view.codec == &dgm_codec_a2a_10   ? 1u
            : s->view.codec == &dgm_codec_a2a_03 ? 2u
                                                 : 3u) +
           (s->view.no_canonical_type ? 8 : 0);
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static void release(void *arg)
{
    dgm_record_unref(arg);
}

static void put_record(struct stream *s, dgm_record *r, struct scratch *scratch)
{
    dgm_buf *out = &scratch->out;
    size_t before = out->n;
    dgm_str payload = {0};
    unsigned dialect;
    if (r->head.kind == DGM_EVENT_INTERNAL)
        return;
    dgm_buf_add_lit(out, "id: ");
    dgm_json_put_int(out, (int64_t)r->head.seq);
    dgm_buf_add_lit(out, "\ndata: ");
    dgm_buf_add(out, s->head, s->head_n);
    /* The record's own bytes, or shared ones, if that is what this caller sees. */
    if (dgm_view_is_plain(&s->view, r) && (r->is_ascii || !has_line_ends(dgm_record_bytes(r))))
        payload = dgm_record_bytes(r);
    else if (s->reader && dgm_log_n_readers(dgm_log_reader_log(s->reader)) > 1 &&
             (dialect = shared_dialect(s, r)))
        dgm_record_payload(r, dialect, encode, s, &payload);
    if (!payload.p) {
        if (encode(r, out, s)) {
            out->n = before;
            return;
        }
    } else if (payload.n <= SHARED_BYTES || s->replay) {
        dgm_buf_add_str(out, payload);
    } else { /* the socket gets the record's own */
        dgm_http_write(s->x, dgm_buf_str(out));
        dgm_buf_clear(out);
        dgm_http_write_shared(s->x, payload, release, dgm_record_ref(r));
    }
    if (s->has_tail)
        dgm_buf_add_char(out, '}');
    dgm_buf_add_lit(out, "\n\n");
}

/* ---- replays ------------------------------------------------------------------------------------------------------ */

static void a2a_replay_put(struct stream *s, dgm_record *r, struct scratch *scratch)
{
    struct a2a_replay *p = s->replay;
    dgm_buf *out = &scratch->out;
    size_t from = out->n;
    if (!p->snapshot || r->head.seq > p->snapshot->head.seq)
        put_record(s, r, scratch);
    else if (r->head.seq == p->snapshot->head.seq)
        put_record(s, p->snapshot, scratch);
    dgm_arena_reset(scratch->arena);
    dgm_str frames = dgm_arena_dup(scratch->arena, (dgm_str){out->p + from, out->n - from});
    out->n = from;
    p->tap->on_frames(p->tap->arg, r, frames, out);
}

/* The turn has ended. If its task still works, its run has accepted the message of the next turn, and streams go on. */
static bool a2a_replay_is_over(struct a2a_replay *p, const dgm_record *r)
{
    if (r->head.kind == DGM_EVENT_STATUS || r->head.kind == DGM_EVENT_TASK)
        p->state = r->head.state;
    return p->last_seq && r->head.seq >= p->last_seq &&
           (dgm_state_is_terminal(p->state) || dgm_state_is_interrupted(p->state));
}

static void a2a_replay_close(struct a2a_replay *p)
{
    if (!p)
        return;
    dgm_record_unref(p->snapshot);
    p->tap->on_close(p->tap->arg);
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

/* Sends the records that exist, as long as there is room. */
static void deliver(void *arg)
{
    struct stream *s = arg;
    struct scratch *scratch = dgm_front_scratch(s->front);
    dgm_record *r;
    struct a2a_replay *p = s->replay;
    bool end = false, has_room;
    while ((has_room = dgm_http_backlog(s->x) + scratch->out.n < BACKLOG_BYTES) && !end &&
           (r = dgm_log_reader_next(s->reader))) {
        if (p)
            a2a_replay_put(s, r, scratch);
        else
            put_record(s, r, scratch);
        end = (p && a2a_replay_is_over(p, r)) || r->head.kind == DGM_EVENT_MESSAGE ||
              (r->head.kind == DGM_EVENT_STATUS &&
               (dgm_state_is_terminal(r->head.state) ||
                (r->head.state == DGM_STATE_INPUT_REQUIRED && s->ends_at_question)));
    }
    bool is_cut = p && !end && dgm_log_reader_is_cut(s->reader);
    end = end || dgm_log_reader_is_over(s->reader);
    if (end && p && !is_cut)
        p->tap->on_frames(p->tap->arg, NULL, (dgm_str){0}, &scratch->out);
    dgm_http_write(s->x, dgm_buf_str(&scratch->out));
    if (end || s->is_draining || (has_room && p && !p->tap->follows)) {
        dgm_log_reader_close(s->reader);
        a2a_replay_close(p);
        (is_cut && p->tap->follows ? dgm_http_cut : dgm_http_end)(s->x); /* which frees s */
    }
}

static void on_gone(void *arg)
{
    struct stream *s = arg;
    a2a_replay_close(s->replay);
    dgm_log_reader_close(s->reader); /* before it is asked who reads */
    dgm_began_gone(s->began);
    dgm_http_end(s->x); /* which frees s */
}

/* The server shuts down: published records are sent, and the client may reconnect with its cursor. */
static void on_drain(void *arg)
{
    ((struct stream *)arg)->is_draining = true;
    deliver(arg);
}

static void a2a_stream_begin(struct op *op)
{
    dgm_http_header headers[3] = {{{"Cache-Control", 13}, {"no-cache", 8}},
                                  {{"X-Accel-Buffering", 17}, {"no", 2}}};
    if (op->extensions.n)
        headers[2] = dgm_op_extensions_header(op);
    dgm_front_note_stream(op->x);
    dgm_http_begin(op->x, 200, DGM_STR("text/event-stream"), headers, op->extensions.n ? 3 : 2);
}

void dgm_op_stream(struct op *op, dgm_log *log, uint64_t after, dgm_record *snapshot)
{
    struct scratch *scratch = dgm_front_scratch(op->front);
    dgm_op_put_head(op, &scratch->out);
    size_t size = offsetof(struct stream, head) + scratch->out.n;
    struct stream *s = dgm_http_alloc(op->x, size > sizeof *s ? size : sizeof *s);
    s->front = op->front;
    s->x = op->x;
    s->view = dgm_op_view(op);
    s->began = dgm_began_by(op);
    s->ends_at_question = op->method == DGM_METHOD_STREAM && !op->front->o.keep_open_at_question;
    s->has_tail = !op->rest;
    s->head_n = (uint32_t)scratch->out.n;
    if (s->head_n)
        memcpy(s->head, scratch->out.p, s->head_n);
    a2a_stream_begin(op);
    if (snapshot) {
        scratch = dgm_front_scratch(s->front);
        put_record(s, snapshot, scratch);
        dgm_http_write(s->x, dgm_buf_str(&scratch->out));
    }
    if (!log) {
        dgm_http_end(s->x);
        return;
    }
    static const dgm_http_watcher streams = {
        .on_room = deliver, .on_gone = on_gone, .on_drain = on_drain, .ping = {": ping\n\n", 8}};
    dgm_http_watch(s->x, &streams, s);
    s->reader = dgm_log_reader_open(log, after, deliver, s);
    dgm_http_forget_request(s->x); /* op with it */
}

void dgm_a2a_replay(const dgm_turn_replay *replay, const dgm_a2a_binding *binding,
                    dgm_record *snapshot)
{
    static const dgm_http_watcher watcher = {
        .on_room = deliver, .on_gone = on_gone, .on_drain = on_drain};
    static const dgm_http_header headers[2] = {{{"Cache-Control", 13}, {"no-store", 8}},
                                               {{"X-Accel-Buffering", 17}, {"no", 2}}};
    dgm_http_exchange *x = replay->q->x;
    dgm_a2a_front *front = replay->agent->a2a;
    struct scratch *scratch = dgm_front_scratch(front);
    if (binding->id)
        dgm_rpc_put_result(&scratch->out, binding->id);
    struct stream *s = dgm_http_alloc(x, sizeof *s + scratch->out.n);
    s->front = front;
    s->x = x;
    s->view = (struct view){.codec = !binding->is_03 ? &dgm_codec_a2a_10
                                     : binding->id   ? &dgm_codec_a2a_03
                                                     : &dgm_codec_a2a_03_rest,
                            .no_canonical_type = front->o.no_canonical_type};
    s->ends_at_question = !front->o.keep_open_at_question;
    s->has_tail = binding->id != NULL;
    s->head_n = (uint32_t)scratch->out.n;
    if (s->head_n)
        memcpy(s->head, scratch->out.p, s->head_n);
    s->replay = dgm_http_alloc(x, sizeof *s->replay);
    *s->replay = (struct a2a_replay){.tap = replay->tap,
                                     .snapshot = snapshot ? dgm_record_ref(snapshot) : NULL,
                                     .last_seq = replay->turn.last_seq};
    dgm_front_note_stream(x);
    dgm_http_begin(x, 200, replay->tap->content_type, headers, 2);
    dgm_http_watch(x, &watcher, s);
    s->reader = dgm_log_observer_open(replay->log, replay->turn.first_seq - 1, deliver, s);
    dgm_http_forget_request(x);
    deliver(s);
}

void dgm_op_stream_error(struct op *op, const dgm_err *err)
{
    struct scratch *s = dgm_front_scratch(op->front);
    /* without a name: a2a-sdk 1.3 has no type for a named error of a 0.3 server */
    size_t data = dgm_sse_start(&s->out, (dgm_str){0}, (dgm_str){0});
    dgm_op_put_error(op, err, 200, &s->out);
    dgm_sse_end_data(&s->out, data, true);
    a2a_stream_begin(op);
    dgm_http_write(op->x, dgm_buf_str(&s->out));
    dgm_http_end(op->x);
}
