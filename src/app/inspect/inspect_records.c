/*
 * app/inspect/inspect_records.c - GET /debug/tasks/{id}/records: the log of a task as it is stored, internal records included.
 *
 *   log ─► {"seq":7,"turn":1,"time":"...","record":{...}} ─► a line of JSON, or a server-sent event with the id 7
 *
 * It starts behind a cursor (`after`, or Last-Event-ID) and follows the task until it ends. Operators may name the owner of
 * the task. Other callers read tasks of their own, if the setting `inspect` allows it.
 */
#include "app/inspect/inspect_int.h"
#include "frontend/words.h"
#include "model/stamp.h"
#include "wire/sse/sse.h"

#define BACKLOG_BYTES (2 * DGM_HTTP_BACKLOG_MARK) /* then wait for room */

/* Lives as long as the exchange. */
struct records {
    dgm_http_exchange *x;
    dgm_log_reader *reader;     /* NULL: not found yet */
    const dgm_front_request *q; /* in the arena: until the stream starts */
    uint64_t turn;              /* the only one that is wanted; 0: all */
    bool is_sse;
    bool follows;
    bool is_draining;
};

/* ---- records ---------------------------------------------------------------------------------------------------- */

static void records_put(const struct records *k, const dgm_record *r, dgm_arena *a, dgm_buf *out)
{
    dgm_str time = dgm_time_text(a, r->head.time);
    dgm_buf line;
    if (k->turn && r->head.turn != k->turn)
        return;
    dgm_buf_init(&line, SIZE_MAX); /* a record has a limit */
    dgm_buf_printf(&line, "{\"seq\":%llu,\"turn\":%u,\"time\":\"%.*s\",\"record\":",
                   (unsigned long long)r->head.seq, r->head.turn, DGM_P(time));
    dgm_buf_add_str(&line, dgm_record_bytes(r));
    dgm_buf_add_char(&line, '}');
    if (k->is_sse) {
        dgm_sse_put_json(out, (dgm_str){0}, dgm_buf_str(&line));
        dgm_buf_printf(out, "id: %llu\n\n", (unsigned long long)r->head.seq);
    } else {
        dgm_buf_add_str(out, dgm_buf_str(&line));
        dgm_buf_add_char(out, '\n');
    }
    dgm_buf_done(&line);
}

static void records_deliver(void *arg)
{
    struct records *k = arg;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    const dgm_record *r = NULL;
    bool has_room;
    dgm_buf out;
    dgm_buf_init(&out, SIZE_MAX); /* bounded by the backlog */
    while ((has_room = dgm_http_backlog(k->x) + out.n < BACKLOG_BYTES) &&
           (r = dgm_log_reader_next(k->reader)))
        records_put(k, r, a, &out);
    if (out.n)
        dgm_http_write(k->x, dgm_buf_str(&out));
    dgm_buf_done(&out);
    bool is_cut = k->follows && dgm_log_reader_is_cut(k->reader);
    if (k->is_draining || (has_room && !k->follows) || dgm_log_reader_is_over(k->reader)) {
        dgm_log_reader_close(k->reader);
        (is_cut ? dgm_http_cut : dgm_http_end)(k->x); /* which frees k */
    }
}

static void records_on_gone(void *arg)
{
    struct records *k = arg;
    dgm_log_reader_close(k->reader);
    dgm_http_end(k->x);
}

static void records_on_drain(void *arg)
{
    ((struct records *)arg)->is_draining = true;
    records_deliver(arg);
}

static void records_on_found(dgm_code code, dgm_log *log, uint64_t after, dgm_record *snapshot,
                             const dgm_err *err, void *arg)
{
    struct records *k = arg;
    static const dgm_http_watcher sse = {.on_room = records_deliver,
                                         .on_gone = records_on_gone,
                                         .on_drain = records_on_drain,
                                         .ping = {": ping\n\n", 8}};
    static const dgm_http_watcher lines = {
        .on_room = records_deliver, .on_gone = records_on_gone, .on_drain = records_on_drain};
    dgm_buf first;
    if (code) {
        dgm_inspect_refuse(k->q, code, err->msg);
        return;
    }
    dgm_inspect_start_lines(k->x,
                            k->is_sse ? DGM_STR("text/event-stream") : DGM_STR(DGM_INSPECT_LINES));
    if (snapshot) { /* the first records were trimmed: the Task that they came to */
        dgm_buf_init(&first, SIZE_MAX);
        records_put(k, snapshot, dgm_http_arena(k->x), &first);
        dgm_http_write(k->x, dgm_buf_str(&first));
        dgm_buf_done(&first);
    }
    k->reader = dgm_log_observer_open(log, after, records_deliver, k);
    dgm_http_watch(k->x, k->is_sse ? &sse : &lines, k);
    dgm_http_forget_request(k->x);
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

static bool wants_events(dgm_str accept)
{
    dgm_str type = DGM_STR("text/event-stream");
    for (size_t i = 0; i + type.n <= accept.n; i++) {
        if (dgm_str_eq_nocase((dgm_str){accept.p + i, type.n}, type))
            return true;
    }
    return false;
}

void dgm_inspect_records(const dgm_front_request *q)
{
    const dgm_http_request *r = dgm_http_request_of(q->x);
    dgm_owner owner;
    if (!dgm_inspect_owner(q, &owner))
        return;
    uint64_t after = dgm_inspect_number(dgm_turn_query(q->x, "after"), DGM_NO_CURSOR);
    if (after == DGM_NO_CURSOR)
        after = dgm_inspect_number(dgm_http_header_of(r, DGM_STR("last-event-id")), 0);
    struct records *k = dgm_http_alloc(q->x, sizeof *k);
    k->x = q->x;
    k->q = q;
    k->is_sse = wants_events(dgm_http_header_of(r, DGM_STR("accept")));
    k->follows = dgm_inspect_follows(q->x);
    k->turn = dgm_inspect_number(dgm_turn_query(q->x, "turn"), 0);
    dgm_front_note_task(q->x, q->params[0], 0);
    dgm_core_read_log(q->turns->o.core, owner, q->params[0], after, records_on_found, k);
}
