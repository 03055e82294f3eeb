/*
 * frontend/turn/turn_stream.c - streams a turn from its first record on.
 *
 *   log ─► record ─► dgm_stream (wire/stream.h), with the frontend's hook ─► frames ─► socket
 *
 * Nothing here depends on the time or the client: ids are made of the task's and the turn's, times are the
 * records'. A client that reconnects gets the same frames without those that it has. Everything that exists is
 * written once per turn of the loop; a caller who does not keep up is waited for.
 */
#include "canon/copy.h"
#include "frontend/turn/turn_int.h"
#include "wire/sse/sse.h"
#include "wire/stream.h"

#include <stdlib.h>

#define BACKLOG_BYTES (2 * DGM_HTTP_BACKLOG_MARK) /* then wait for room */

/* Lives as long as the exchange, and owns everything that it points to: the request is released while it runs. */
struct turn_stream {
    dgm_http_exchange *x;
    dgm_turn_output
        t; /* its strings are copies (dgm_http_keep_text); its messages are in `before` */
    dgm_arena *before; /* until the encoder has copied them; NULL if absent */
    dgm_log_reader *reader;
    dgm_stream *stream;      /* NULL: no record was read yet */
    struct scratch *scratch; /* while frames are put */
    dgm_buf whole;
    dgm_timer *timer; /* of its own memory: closing it takes longer than the exchange lives */
    uint64_t seq;     /* of the current record */
    int64_t time;     /* its; Unix milliseconds */
    uint64_t n_frames;
    dgm_err err;        /* of a record; zeroed once: clearing it for every record takes long */
    bool frame_is_open; /* its blank line is still to come: an id may go before it */
    enum turn_stream_state state;
};

#define X(state, name, may_become) name,
static const char *const turn_state_names[] = {TURN_STREAM_STATES(X)};
#undef X
#define X(state, name, may_become) [state] = (may_become),
static const uint16_t turn_may_become[] = {TURN_STREAM_STATES(X)};
#undef X
const dgm_machine dgm_turn_stream_machine = {.name = "stream",
                                             .states = turn_state_names,
                                             .may_become = turn_may_become,
                                             .n = N_TURN_STREAM_STATES,
                                             .is_of_task = true};

static void turn_set_state(struct turn_stream *g, enum turn_stream_state to) /* the only writer */
{
    dgm_loop_trace(dgm_loop_current(), &dgm_turn_stream_machine,
                   dgm_trace_task_object(g->t.task_id), g->state, to);
    g->state = to;
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static void close_frame(struct turn_stream *g)
{
    dgm_buf *out = &g->scratch->out;
    if (!g->frame_is_open)
        return;
    if (g->t.seq_ids) {
        dgm_buf_add_lit(out, "id: ");
        dgm_json_put_int(out, (int64_t)g->seq);
        dgm_buf_add_char(out, '\n');
    }
    dgm_buf_add_char(out, '\n');
    g->frame_is_open = false;
}

static dgm_code put_frame(void *arg, dgm_str name, dgm_str payload)
{
    struct turn_stream *g = arg;
    dgm_buf *out = &g->scratch->out;
    bool was_sent = g->n_frames++ < g->t.after_frames || g->seq <= g->t.after_seq;
    if (g->t.as == DGM_OUTPUT_WHOLE) {
        dgm_buf_add_str(&g->whole, payload);
    } else if (g->t.as == DGM_OUTPUT_SSE && !was_sent) {
        if (g->frame_is_open)
            dgm_buf_add_char(out, '\n');
        dgm_sse_put_json(out, name, payload);
        g->frame_is_open = true;
    } else if (!was_sent) {
        dgm_buf_add_str(out, payload);
        if (g->t.as == DGM_OUTPUT_LINES)
            dgm_buf_add_char(out, '\n');
    }
    return DGM_OK;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static dgm_code turn_stream_on_event(void *arg, const dgm_canon_event *event, dgm_canon_sink next)
{
    struct turn_stream *g = arg;
    dgm_canon_event timed;
    if (event->kind == DGM_CANON_RUN_STARTED || dgm_canon_is_terminal(event->kind)) {
        timed = *event;
        if (!timed.timestamp.set)
            timed.timestamp = (dgm_opt_long){true, g->time};
        event = &timed;
    }
    if (g->state == TURN_CUT && event->kind == DGM_CANON_RUN_ERROR) {
        timed.run_error.code = DGM_STR("server_shutdown");
        timed.run_error.message = DGM_STR("the server is shutting down");
    }
    return g->t.on_event ? g->t.on_event(g->t.arg, event, next) : dgm_canon_emit(next, event);
}

/* An event of the agent cannot be encoded (a call without a name, ...): the run ends here for this client. */
static void turn_end_with_error(struct turn_stream *g)
{
    dgm_canon_event e = {.kind = DGM_CANON_RUN_ERROR};
    e.run_error.message = g->err.msg[0] ? dgm_str_from(g->err.msg) : DGM_STR("internal error");
    e.run_error.code = DGM_STR("failed");
    turn_stream_on_event(g, &e, dgm_stream_encoder(g->stream));
    turn_set_state(g, TURN_ENDED);
}

static void open_stream(struct turn_stream *g, const dgm_record *first)
{
    dgm_stream_params params = g->t.params;
    dgm_str identity = g->t.task_id; /* that ids are derived from */
    dgm_event event;
    char turn[24];
    int n = snprintf(turn, sizeof turn, "/%u", first->head.turn);
    if (first->head.kind == DGM_EVENT_MESSAGE && /* an answer without a task */
        !dgm_record_event(first, g->scratch->arena, &event, NULL))
        identity = event.message->message_id;
    params.now = first->head.time;
    params.task_id = g->t.task_id;
    params.no_task = first->head.kind == DGM_EVENT_MESSAGE;
    params.mint = (dgm_mint){{0}, 0, {0}};
    dgm_mint_seed(&params.mint, identity);
    dgm_mint_seed(&params.mint, (dgm_str){turn, (size_t)n});
    g->stream = dgm_stream_new(&(dgm_stream_options){
        .to = g->t.codec,
        .form = g->t.as == DGM_OUTPUT_WHOLE ? DGM_FORM_RESPONSE : DGM_FORM_EVENTS,
        .params = params,
        .records = {.thread_id = g->t.thread_id,
                    .run_id = g->t.run_id,
                    .answer_source = g->t.answer_in_status ? DGM_ANSWER_STATUS : DGM_ANSWER_AUTO,
                    .messages = g->t.messages,
                    .turn = first->head.turn,
                    .say_history = g->t.say_caller,
                    .trusted = true},
        .sink = {put_frame, g},
        .on_event = turn_stream_on_event,
        .arg = g});
    g->t.messages = (dgm_canon_messages){0}; /* dgm_stream_new has copied them */
    dgm_arena_free(g->before);
    g->before = NULL;
}

static void turn_stream_record(struct turn_stream *g, const dgm_record *r)
{
    dgm_event event = {0};
    g->seq = r->head.seq;
    g->time = r->head.time;
    if (g->state == TURN_WAITING) {
        open_stream(g, r);
        turn_set_state(g, TURN_REPLAYING);
    }
    dgm_arena_reset(g->scratch->arena);
    dgm_code rc = dgm_record_event(r, g->scratch->arena, &event, &g->err);
    const dgm_internal *internal = event.kind == DGM_EVENT_INTERNAL ? event.internal : NULL;
    bool is_callers = !rc && internal && internal->kind == DGM_INTERNAL_MESSAGE &&
                      internal->message && internal->message->role == DGM_ROLE_USER;
    if (is_callers) { /* the message that starts a later turn: most frontends leave it out */
        event = (dgm_event){.kind = DGM_EVENT_MESSAGE, .message = internal->message};
        dgm_stream_set_turn(g->stream, r->head.turn);
    }
    if (!rc && event.kind == DGM_EVENT_TASK && g->t.say_caller)
        dgm_turn_drop_transcripts(event.task);
    if (!rc && (!is_callers || g->t.say_caller))
        rc = dgm_stream_record(g->stream, &event, &g->err);
    if (rc)
        turn_end_with_error(g);
    else if (dgm_stream_is_over(g->stream))
        turn_set_state(g, TURN_ENDED);
}

/* ---- taps -------------------------------------------------------------------------------------------------------- */

/* What was put behind `from` belongs to this record. NULL: to the end of the stream. */
static void turn_tap_frames(struct turn_stream *g, const dgm_record *r, size_t from)
{
    dgm_buf *out = &g->scratch->out;
    if (!g->t.tap)
        return;
    dgm_arena_reset(g->scratch->arena);
    dgm_str frames = dgm_arena_dup(g->scratch->arena, (dgm_str){out->p + from, out->n - from});
    out->n = from;
    g->t.tap->on_frames(g->t.tap->arg, r, frames, out);
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

/* Releases everything that the stream owns, except `whole`: before the exchange ends, or another function responds. */
static void turn_close(struct turn_stream *g)
{
    turn_set_state(g, TURN_CLOSED);
    dgm_log_reader_close(g->reader);
    dgm_stream_free(g->stream);
    dgm_arena_free(g->before);
    if (g->timer)
        dgm_timer_close(g->timer, free, g->timer);
    if (g->t.on_release)
        g->t.on_release(g->t.arg);
    if (g->t.tap)
        g->t.tap->on_close(g->t.tap->arg);
    if (g->t.hold)
        dgm_turn_release_hold(g->t.hold);
}

static void on_left(void *arg)
{
    struct turn_stream *g = arg;
    const dgm_turn_output *t = &g->t;
    turn_close(g); /* first: dgm_core_disconnected counts the readers */
    if (t->leave.cancel && t->turn)
        dgm_core_disconnected(t->turns->o.core, t->owner, t->agent, t->task_id, t->turn,
                              t->leave.grace_ms);
    dgm_buf_done(&g->whole);
    dgm_http_end(g->x);
}

static void fail_whole(struct turn_stream *g, dgm_code code, const char *why)
{
    dgm_err err = {0};
    dgm_fail(&err, code, NULL, "%s", why);
    turn_close(g);
    dgm_buf_done(&g->whole);
    dgm_http_watch(g->x, NULL, NULL);
    g->t.on_fault(g->t.arg, &err);
}

static void turn_on_timeout(void *arg)
{
    fail_whole(arg, DGM_UPSTREAM_TIMEOUT,
               "the agent is still at work: ask for a stream, or look at its task later");
}

static void turn_send_whole(struct turn_stream *g)
{
    if (!g->whole.n || g->whole.over) {
        fail_whole(g, g->whole.over ? DGM_TOO_LARGE : DGM_INTERNAL,
                   g->whole.over ? "the answer is larger than the limit output_bytes: stream it"
                                 : "the turn cannot be encoded");
        return;
    }
    dgm_buf payload = g->whole;
    turn_close(g);
    dgm_http_watch(g->x, NULL, NULL);
    g->t.on_whole(g->t.arg, dgm_buf_str(&payload));
    dgm_buf_done(&payload);
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

/* The records that existed when the stream was opened were sent. */
static void turn_go_live(struct turn_stream *g)
{
    turn_set_state(g, TURN_LIVE);
    if (g->t.on_pause && g->t.on_pause(g->t.arg, dgm_stream_encoder(g->stream)))
        turn_end_with_error(g);
    close_frame(g);
}

static void turn_write(struct turn_stream *g)
{
    dgm_buf *out = &g->scratch->out;
    if (out->n && g->t.hold)
        dgm_turns_write_held(g->x, out, dgm_take(g->t.hold));
    else if (out->n)
        dgm_http_write(g->x, dgm_buf_str(out));
    dgm_buf_clear(out);
}

/* The log is over here, and the task is not: it goes on at another server, or the store has failed. The client must not see an
 * end; it comes back, and reads on. */
static void turn_cut(struct turn_stream *g)
{
    if (g->t.as == DGM_OUTPUT_WHOLE) {
        fail_whole(g, DGM_UNAVAILABLE,
                   "the server can no longer follow the task, which has not ended: get the "
                   "task later, or send the message again");
        return;
    }
    turn_write(g);
    turn_close(g);
    dgm_http_cut(g->x); /* g goes with it */
}

static void deliver(void *arg)
{
    struct turn_stream *g = arg;
    dgm_record *r = NULL;
    bool has_room;
    g->scratch = dgm_turns_scratch(g->t.turns);
    dgm_buf *out = &g->scratch->out;
    while ((has_room = dgm_http_backlog(g->x) + out->n < BACKLOG_BYTES) && g->state < TURN_CUT &&
           (r = dgm_log_reader_next(g->reader))) {
        size_t from = out->n;
        turn_stream_record(g, r);
        close_frame(g);
        turn_tap_frames(g, r, from);
    }
    if (has_room && g->state == TURN_REPLAYING)
        turn_go_live(g);
    size_t end = out->n;
    bool is_cut = g->state < TURN_CUT && dgm_log_reader_is_cut(g->reader);
    if (is_cut && (!g->t.tap || g->t.tap->follows)) {
        turn_cut(g);
        return;
    }
    if (g->state < TURN_CUT && !is_cut && dgm_log_reader_is_over(g->reader)) {
        turn_set_state(g, TURN_CUT);
        if (g->stream)
            dgm_stream_end_input(g->stream, NULL);
        turn_set_state(g, TURN_ENDED);
    }
    bool has_ended = g->state == TURN_ENDED;
    if (has_ended && g->stream)
        dgm_stream_end_output(g->stream, NULL);
    if (has_ended && g->t.as == DGM_OUTPUT_WHOLE) {
        turn_send_whole(g);
        return;
    }
    if (has_ended) {
        close_frame(g);
        if (g->t.codec->stream_end && g->t.as == DGM_OUTPUT_SSE) {
            dgm_sse_put_json(out, (dgm_str){0}, dgm_str_from(g->t.codec->stream_end));
            dgm_buf_add_char(out, '\n');
        }
        turn_tap_frames(g, NULL, end);
    }
    has_ended = has_ended || (has_room && g->t.tap && !g->t.tap->follows);
    turn_write(g);
    if (has_ended) {
        turn_close(g);
        dgm_http_end(g->x); /* g goes with it */
    }
}

/* Only codecs that build messages need them, and only until the first record. */
static void copy_messages(struct turn_stream *g, const dgm_canon_messages *messages)
{
    dgm_canon_event all = {.kind = DGM_CANON_MESSAGES_SNAPSHOT};
    g->before = dgm_arena_new();
    all.snapshot.messages = *messages;
    g->t.messages = dgm_canon_copy_event(g->before, &all).snapshot.messages;
}

void dgm_turn_stream(dgm_http_exchange *x, const dgm_turn_output *t, dgm_log *log,
                     uint64_t first_seq)
{
    struct turn_stream *g = dgm_http_alloc(x, sizeof *g);
    /* copies everything that it needs: nothing in it points into the exchange's arena afterwards */
    g->x = x;
    g->t = *t;
    g->t.thread_id = dgm_turn_copy(x, t->thread_id);
    g->t.run_id = dgm_turn_copy(x, t->run_id);
    g->t.agent = dgm_turn_copy(x, t->agent);
    g->t.task_id = dgm_turn_copy(x, t->task_id);
    g->t.owner =
        (dgm_owner){dgm_turn_copy(x, t->owner.tenant), dgm_turn_copy(x, t->owner.principal)};
    g->t.params.model = dgm_turn_copy(x, t->params.model);
    g->t.params.task_id = (dgm_str){0}; /* open_stream sets it */
    g->t.headers = NULL;
    g->t.n_headers = 0;
    g->t.content_type = (dgm_str){0};
    g->t.messages = (dgm_canon_messages){0};
    if (t->messages.n && t->codec->builds_messages)
        copy_messages(g, &t->messages);
    dgm_buf_init(&g->whole, t->max_bytes ? t->max_bytes : DGM_MAX_OUTPUT_BYTES);
    g->reader = t->tap ? dgm_log_observer_open(log, first_seq - 1, deliver, g)
                       : dgm_log_reader_open(log, first_seq - 1, deliver, g);
    if (g->t.as == DGM_OUTPUT_WHOLE) {
        static const dgm_http_watcher waits = {.on_gone = on_left};
        dgm_http_watch(x, &waits, g);
        g->timer = dgm_xcalloc(1, sizeof *g->timer);
        dgm_timer_init(dgm_loop_current(), g->timer, turn_on_timeout, g);
        dgm_timer_start(g->timer, DGM_MAX_ANSWER_MS);
    } else {
        dgm_http_header *headers = dgm_new_n(dgm_http_arena(x), dgm_http_header, t->n_headers + 2);
        headers[0] = (dgm_http_header){DGM_STR("Cache-Control"), DGM_STR("no-cache")};
        headers[1] = (dgm_http_header){DGM_STR("X-Accel-Buffering"), DGM_STR("no")};
        for (size_t i = 0; i < t->n_headers; i++)
            headers[2 + i] = t->headers[i];
        dgm_str type = t->tap                      ? t->tap->content_type
                       : t->content_type.n         ? t->content_type
                       : t->as == DGM_OUTPUT_LINES ? DGM_STR("application/x-ndjson")
                       : t->as == DGM_OUTPUT_BYTES ? DGM_STR("application/octet-stream")
                                                   : DGM_STR("text/event-stream");
        dgm_front_note_stream(x);
        dgm_http_begin(x, 200, type, headers, t->n_headers + 2);
        static const dgm_http_watcher streams = {.on_room = deliver, .on_gone = on_left};
        static const dgm_http_watcher streams_sse = {
            .on_room = deliver, .on_gone = on_left, .ping = {": ping\n\n", 8}};
        dgm_http_watch(x, t->as == DGM_OUTPUT_SSE && !t->tap ? &streams_sse : &streams, g);
    }
    deliver(g);
    if (g->state < TURN_CUT) /* it may take long */
        dgm_http_forget_request(x);
}

static void nothing(void *arg)
{
    (void)arg; /* what comes later is not waited for */
}

dgm_str dgm_turn_so_far(const dgm_turn_output *output, dgm_log *log, uint64_t first_seq,
                        dgm_arena *a)
{
    struct turn_stream g = {.t = *output, .scratch = dgm_turns_scratch(output->turns)};
    dgm_str payload = {0};
    dgm_record *r;
    g.t.as = DGM_OUTPUT_WHOLE;
    dgm_buf_init(&g.whole, output->max_bytes ? output->max_bytes : DGM_MAX_OUTPUT_BYTES);
    g.reader = dgm_log_reader_open(log, first_seq - 1, nothing, NULL);
    while (g.state < TURN_CUT && !g.whole.over && (r = dgm_log_reader_next(g.reader)))
        turn_stream_record(&g, r);
    if (g.stream)
        dgm_stream_end_output(g.stream, NULL);
    if (!g.whole.over && g.whole.n)
        payload = dgm_arena_dup(a, dgm_buf_str(&g.whole));
    turn_close(&g);
    dgm_buf_done(&g.whole);
    return payload;
}
