/*
 * app/inspect/inspect_columns.c - GET /debug/tasks/{id}/columns/{format}: a turn in one format, a line per record.
 *
 *   the turn came by this protocol, or the format is A2A ─► its frontend streams it again, through a tap ─┐
 *   else ─► the converter of the library, like `dragoman convert` on the exported records ─────────────────┴─► lines
 *
 * A second converter finds the losses of a replayed turn; its output is dropped. Internal events are losses of A2A 1.0,
 * too: it is the format of the records, but no client of it gets these events.
 */
#include "app/inspect/inspect_int.h"
#include "frontend/a2a/a2a_front.h"
#include "frontend/agui/agui_front.h"
#include "frontend/aisdk/aisdk_front.h"
#include "frontend/openai/openai_front.h"
#include "json/json.h"

#define BACKLOG_BYTES (2 * DGM_HTTP_BACKLOG_MARK) /* then wait for room */

/* Lives as long as the exchange. */
struct column {
    dgm_http_exchange *x;
    struct inspect_losses losses;
    dgm_format_id to;
    bool answer_in_status, is_started;
    dgm_converter *converter; /* NULL: not started, or the conversion has failed */
    dgm_turn_tap tap;
    /* of a converted turn */
    dgm_log_reader *reader;
    uint64_t last_seq; /* 0: it runs */
    dgm_err err;       /* of the conversion */
    bool follows, is_draining;
};

/* With the first record: a column that no record is written of owns nothing. */
static void column_start(struct column *k)
{
    dgm_convert_options o = {.size = sizeof o,
                             .from = DGM_FORMAT_A2A_10,
                             .to = k->to,
                             .framing = DGM_FRAMING_SSE,
                             .status_is_answer = k->answer_in_status,
                             .losses = true};
    if (!k->is_started)
        dgm_converter_new(&o, &k->converter, &k->err);
    k->is_started = true;
}

/* Feeds a record as a line. False: the conversion has failed, and err says why. */
static bool column_feed(struct column *k, const dgm_record *r)
{
    dgm_str bytes = dgm_record_bytes(r);
    return !dgm_converter_feed(k->converter, bytes.p, bytes.n, &k->err) &&
           !dgm_converter_feed(k->converter, "\n", 1, &k->err);
}

static void column_drop_converter(struct column *k)
{
    dgm_converter_free(dgm_take(k->converter));
}

static void column_close(void *arg)
{
    struct column *k = arg;
    column_drop_converter(k);
    dgm_inspect_losses_done(&k->losses);
}

/* ---- replayed ---------------------------------------------------------------------------------------------------- */

static void column_on_frames(void *arg, const dgm_record *r, dgm_str frames, dgm_buf *out)
{
    struct column *k = arg;
    if (!r) {
        dgm_inspect_put_line(0, frames, &k->losses, NULL, NULL, out);
        return;
    }
    column_start(k);
    if (k->converter && !column_feed(k, r))
        column_drop_converter(k);
    if (k->converter)
        dgm_converter_consume(k->converter, dgm_converter_output(k->converter).n);
    dgm_inspect_put_line(r->head.seq, frames, &k->losses, k->converter, NULL, out);
}

/* `binding=rest`, or the id of the JSON-RPC request (`id=`, JSON; 1 if it is absent). False: the request was refused. */
static bool column_read_binding(const struct inspect *t, dgm_format_id id, dgm_a2a_binding *ret)
{
    dgm_str binding = dgm_turn_query(t->q.x, "binding"), text = dgm_turn_query(t->q.x, "id");
    yyjson_val *rpc_id = NULL;
    *ret = (dgm_a2a_binding){.is_03 = id == DGM_FORMAT_A2A_03};
    if (dgm_str_is(binding, "rest"))
        return true;
    if (dgm_json_read(t->arena, text.n ? text : DGM_STR("1"), DGM_MAX_ID_BYTES, "id_bytes", &rpc_id,
                      NULL) ||
        (!yyjson_is_str(rpc_id) && !yyjson_is_raw(rpc_id) && !yyjson_is_num(rpc_id))) {
        dgm_inspect_refuse(&t->q, DGM_BAD_PARAMS, "id: expected a JSON string or number");
        return false;
    }
    ret->id = rpc_id;
    return true;
}

/* True: a frontend streams it. */
static bool column_replay(struct inspect *t, const struct inspect_format *format, struct column *k)
{
    dgm_turn_replay replay = {.q = &t->q,
                              .agent = t->agent,
                              .log = t->log,
                              .task_id = t->task_id,
                              .context_id = t->context_id,
                              .turn = *t->turn,
                              .tap = &k->tap};
    switch ((int)format->id) {
    case DGM_FORMAT_AG_UI: dgm_agui_replay(&replay); return true;
    case DGM_FORMAT_AI_SDK: dgm_aisdk_replay(&replay); return true;
    case DGM_FORMAT_CHAT: return dgm_chat_replay(&replay);
    case DGM_FORMAT_RESPONSES: return dgm_responses_replay(&replay);
    default: return false;
    }
}

/* ---- A2A --------------------------------------------------------------------------------------------------------- */

struct a2a_column {
    struct inspect *t;
    struct column *k;
    dgm_a2a_binding binding;
};

static void column_stream_a2a(void *arg, dgm_record *snapshot)
{
    struct a2a_column *c = arg;
    struct inspect *t = c->t;
    dgm_turn_replay replay = {.q = &t->q,
                              .agent = t->agent,
                              .log = t->log,
                              .task_id = t->task_id,
                              .context_id = t->context_id,
                              .turn = *t->turn,
                              .tap = &c->k->tap};
    dgm_log *log = dgm_take(t->log); /* t goes with the request */
    dgm_record *task = dgm_take(t->snapshot);
    dgm_a2a_replay(&replay, &c->binding, snapshot);
    dgm_log_unref(log);
    dgm_record_unref(task);
}

/* A send to an existing task is answered with the Task first. */
static void column_open_a2a(struct inspect *t, struct column *k, const dgm_a2a_binding *binding)
{
    struct a2a_column *c = dgm_new(t->arena, struct a2a_column);
    *c = (struct a2a_column){t, k, *binding};
    if (t->turn->turn > 1 && dgm_str_is(t->turn->protocol, "a2a"))
        dgm_inspect_fold(t, t->turn->first_seq, true, column_stream_a2a, c);
    else
        column_stream_a2a(c, NULL);
}

/* ---- converted --------------------------------------------------------------------------------------------------- */

static void column_put_converted(struct column *k, const dgm_record *r, dgm_buf *out)
{
    bool is_good = column_feed(k, r);
    dgm_inspect_put_line(r->head.seq, dgm_converter_output(k->converter), &k->losses, k->converter,
                         is_good ? NULL : k->err.msg, out);
    dgm_converter_consume(k->converter, dgm_converter_output(k->converter).n);
    if (!is_good)
        column_drop_converter(k);
}

static void column_put_end(struct column *k, dgm_buf *out)
{
    dgm_err err = {0};
    bool is_good = k->converter && !dgm_converter_end(k->converter, &err);
    dgm_str frames = is_good ? dgm_converter_output(k->converter) : (dgm_str){0};
    const char *why = is_good ? NULL : err.msg[0] ? err.msg : k->err.msg;
    dgm_inspect_put_line(0, frames, &k->losses, NULL, why, out);
}

static bool column_is_last(const struct column *k, const dgm_record *r)
{
    if (k->last_seq)
        return r->head.seq >= k->last_seq;
    return (r->head.kind == DGM_EVENT_STATUS || r->head.kind == DGM_EVENT_TASK) &&
           (dgm_state_is_terminal(r->head.state) || dgm_state_is_interrupted(r->head.state));
}

/* end: dgm_http_end, or dgm_http_cut if there is more that this server cannot read. It frees k. */
static void column_finish(struct column *k, void (*end)(dgm_http_exchange *x))
{
    dgm_log_reader_close(k->reader);
    column_close(k);
    end(k->x);
}

static void column_deliver(void *arg)
{
    struct column *k = arg;
    const dgm_record *r = NULL;
    bool is_over = false, is_cut, has_room;
    dgm_buf out;
    dgm_buf_init(&out, SIZE_MAX); /* bounded by the backlog and the size of one record's frames */
    while ((has_room = dgm_http_backlog(k->x) + out.n < BACKLOG_BYTES) && !is_over &&
           (r = dgm_log_reader_next(k->reader))) {
        column_start(k);
        if (k->converter)
            column_put_converted(k, r, &out);
        is_over = !k->converter || column_is_last(k, r);
    }
    is_cut = !is_over && dgm_log_reader_is_cut(k->reader);
    is_over = is_over || (!is_cut && dgm_log_reader_is_over(k->reader));
    if (is_over)
        column_put_end(k, &out);
    if (out.n)
        dgm_http_write(k->x, dgm_buf_str(&out));
    dgm_buf_done(&out);
    if (is_over || is_cut || k->is_draining || (has_room && !k->follows))
        column_finish(k, is_cut && k->follows ? dgm_http_cut : dgm_http_end);
}

static void column_on_gone(void *arg)
{
    column_finish(arg, dgm_http_end);
}

static void column_on_drain(void *arg)
{
    ((struct column *)arg)->is_draining = true;
    column_deliver(arg);
}

static void column_convert(struct inspect *t, struct column *k)
{
    static const dgm_http_watcher watcher = {
        .on_room = column_deliver, .on_gone = column_on_gone, .on_drain = column_on_drain};
    k->last_seq = t->turn->last_seq;
    dgm_inspect_start_lines(k->x, DGM_STR(DGM_INSPECT_LINES));
    k->reader = dgm_log_observer_open(t->log, t->turn->first_seq - 1, column_deliver, k);
    dgm_inspect_close(t);
    dgm_http_watch(k->x, &watcher, k);
    dgm_http_forget_request(k->x);
    column_deliver(k);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static void column_open(struct inspect *t)
{
    const struct inspect_format *format = dgm_inspect_format_of(&t->q, t->q.params[1]);
    dgm_http_exchange *x = t->q.x;
    dgm_a2a_binding binding = {0};
    bool is_replayed = format && t->turn && dgm_inspect_is_replayed(t, t->turn, format);
    bool is_a2a = is_replayed && !format->protocol;
    if (format && (!t->turn || t->turn->first_seq < t->log->first_seq)) {
        dgm_inspect_refuse(&t->q, DGM_TASK_NOT_FOUND, "the records of this turn were removed");
        format = NULL;
    }
    if (!format || (is_a2a && !column_read_binding(t, format->id, &binding))) {
        dgm_inspect_close(t);
        return;
    }
    struct column *k = dgm_http_alloc(x, sizeof *k);
    *k = (struct column){.x = x, .follows = dgm_inspect_follows(x)};
    k->tap = (dgm_turn_tap){.on_frames = column_on_frames,
                            .on_close = column_close,
                            .arg = k,
                            .content_type = DGM_STR(DGM_INSPECT_LINES),
                            .follows = k->follows};
    k->to = format->id;
    k->answer_in_status = t->agent && t->agent->answer_in_status;
    dgm_log *log = t->log;
    if (is_a2a) {
        column_open_a2a(t, k, &binding);
    } else if (is_replayed) {
        dgm_record *snapshot = dgm_take(t->snapshot);
        t->log = log;
        bool is_streamed = column_replay(t, format, k);
        if (is_streamed)
            dgm_log_unref(log);
        else
            column_convert(t, k);
        dgm_record_unref(snapshot);
    } else {
        column_convert(t, k);
    }
}

void dgm_inspect_columns(const dgm_front_request *q)
{
    dgm_inspect_open(q, column_open);
}
