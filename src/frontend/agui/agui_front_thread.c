/*
 * frontend/agui/agui_front_thread.c - existing runs and threads, streamed again.
 *
 * Three ask for it: who comes back to a run (agui_attach), who comes back to a thread (agui_connect), and who has nothing
 * new to say (agui_stand). All three read the log of a turn from its first record; agui_again makes of it what they need.
 */
#include "base/map.h"
#include "frontend/agui/agui_front_int.h"
#include "wire/agui/agui_codec.h"
#include "wire/sse/sse.h"
#include "json/json.h"

/* ---- messages ------------------------------------------------------------------------------------------------------ */

/* The index of the same message with the same text; n: it is not in the list. */
static size_t first_time(dgm_arena *a, const dgm_canon_messages *list, const dgm_map *ids,
                         const dgm_canon_message *m)
{
    size_t *at = m->role == DGM_CANON_USER ? dgm_map_get(ids, m->id) : NULL;
    if (!at || *at >= list->n || !dgm_str_eq(list->at[*at].id, m->id))
        return list->n;
    bool same = dgm_str_eq(dgm_canon_content_text(a, &list->at[*at].content),
                           dgm_canon_content_text(a, &m->content));
    return same ? *at : list->n;
}

dgm_canon_messages dgm_agui_shown(dgm_arena *a, const dgm_canon_messages *all)
{
    dgm_canon_messages shown = {dgm_new_n(a, dgm_canon_message, all->n), 0};
    dgm_map ids;
    dgm_map_init(&ids);
    for (size_t i = 0; i < all->n; i++) {
        const dgm_canon_message *m = &all->at[i];
        if (m->role == DGM_CANON_ACTIVITY)
            continue;
        shown.n = first_time(a, &shown, &ids, m);
        dgm_map_put(&ids, m->id, shown.n);
        shown.at[shown.n++] = *m;
    }
    dgm_map_done(&ids);
    return shown;
}

size_t dgm_agui_cut(const dgm_canon_messages *messages, dgm_str message_id, dgm_str run_id)
{
    for (size_t i = messages->n; message_id.n && i-- > 0;) {
        if (dgm_str_eq(messages->at[i].id, message_id))
            return i + 1;
    }
    for (size_t i = 0; run_id.n && i < messages->n; i++) {
        dgm_str id = messages->at[i].id;
        if (dgm_str_starts(id, run_id) && id.n > run_id.n && id.p[run_id.n] == '-')
            return i;
    }
    return messages->n;
}

/* ---- a run without a turn ----------------------------------------------------------------------------------------------- */

struct frames {
    dgm_buf out;
    bool binary;
};

static dgm_code put_frame(void *arg, dgm_str name, dgm_str payload)
{
    struct frames *f = arg;
    (void)name;
    if (f->binary) {
        dgm_buf_add_str(&f->out, payload);
        return DGM_OK;
    }
    size_t data = dgm_sse_start(&f->out, (dgm_str){0}, (dgm_str){0});
    dgm_buf_add_str(&f->out, payload);
    dgm_sse_end_data(&f->out, data, true);
    return DGM_OK;
}

void dgm_agui_answer(struct agui_op *op, const dgm_canon_messages *messages,
                     dgm_canon_outcome outcome)
{
    dgm_agui_begun(op);
    dgm_turn_output output = dgm_agui_turn_output(op);
    dgm_http_header headers[1 + AGUI_MAX_HEADERS] = {{{"Cache-Control", 13}, {"no-cache", 8}}};
    struct frames frames = {.binary = op->binary};
    dgm_canon_event e = {.kind = DGM_CANON_RUN_STARTED};
    dgm_buf_init(&frames.out, DGM_MAX_OUTPUT_BYTES);
    for (size_t i = 0; i < output.n_headers; i++)
        headers[1 + i] = output.headers[i];
    void *encoder = output.codec->encoder_new(&output.params, (dgm_frame_sink){put_frame, &frames});
    e.run_started.thread_id = op->input.thread_id;
    e.run_started.run_id = op->input.run_id;
    e.run_started.protocol_version = DGM_STR(DGM_AGUI_VERSION);
    output.codec->encoder_feed(encoder, &e, NULL);
    if (messages) {
        e = (dgm_canon_event){.kind = DGM_CANON_MESSAGES_SNAPSHOT};
        e.snapshot.messages = *messages;
        output.codec->encoder_feed(encoder, &e, NULL);
    }
    e = (dgm_canon_event){.kind = DGM_CANON_RUN_FINISHED};
    e.run_finished.thread_id = op->input.thread_id;
    e.run_finished.run_id = op->input.run_id;
    e.run_finished.outcome = outcome;
    output.codec->encoder_feed(encoder, &e, NULL);
    output.codec->encoder_free(encoder);
    dgm_turn_respond_held(
        op->x, output.content_type.n ? output.content_type : DGM_STR("text/event-stream"), headers,
        1 + output.n_headers, &frames.out, dgm_take(op->hold));
    dgm_buf_done(&frames.out);
}

/* ---- streamed again ------------------------------------------------------------------------------------------------------ */

static void agui_stream_again(struct agui_op *op, const agui_again_params *params)
{
    dgm_agui_begun(op);
    agui_again *again = dgm_http_alloc(op->x, sizeof *again);
    dgm_turn_output output = dgm_agui_turn_output(op);
    dgm_log *log = dgm_take(op->log);
    dgm_agui_again_init(again, params);
    again->params.interrupts = op->q.turns->o.agui_interrupts;
    output.messages = params->before;
    output.task_id = op->task_id;
    output.on_event = dgm_agui_again_on_event;
    output.on_pause = dgm_agui_again_on_pause;
    output.on_release = dgm_agui_again_release;
    output.hold = dgm_take(op->hold);
    output.arg = again;
    dgm_front_note_task(op->x, op->task_id, 0);
    dgm_turn_stream(op->x, &output, log, op->first_seq);
    dgm_log_unref(log);
}

static void ignore(void *arg)
{
    (void)arg;
}

/* The id of the caller's message that a turn begins with; empty: it cannot be read. */
static dgm_str agui_front_thread_message_of(dgm_arena *a, const dgm_record *first)
{
    dgm_event e;
    if (dgm_record_event(first, a, &e, NULL))
        return (dgm_str){0};
    if (e.kind == DGM_EVENT_TASK && e.task->history.n)
        return e.task->history.at[e.task->history.n - 1].message_id;
    if (e.kind == DGM_EVENT_INTERNAL && e.internal->kind == DGM_INTERNAL_MESSAGE &&
        e.internal->message)
        return e.internal->message->message_id;
    return (dgm_str){0};
}

static void find_message(struct agui_op *op)
{
    dgm_log_reader *reader = dgm_log_reader_open(op->log, op->first_seq - 1, ignore, NULL);
    dgm_record *first = dgm_log_reader_next(reader);
    if (first)
        op->message_id = agui_front_thread_message_of(op->arena, first);
    dgm_log_reader_close(reader);
}

static dgm_canon_messages until(dgm_canon_messages list, size_t n)
{
    return (dgm_canon_messages){list.at, n};
}

/* ---- a known run --------------------------------------------------------------------------------------------------------- */

static void attach_behind(struct agui_op *op, const dgm_canon_messages *messages)
{
    size_t n = dgm_agui_cut(messages, op->message_id, op->input.run_id);
    agui_stream_again(op, &(agui_again_params){.before = until(*messages, n),
                                               .held = op->input.messages,
                                               .parent_run_id = op->input.parent_run_id});
}

static void on_history_of_run(dgm_code code, const dgm_turn_history *history, const dgm_err *err,
                              void *arg)
{
    struct agui_op *op = arg;
    if (code) {
        dgm_agui_fail(op, err);
        return;
    }
    op->hold = dgm_turn_take_hold(history);
    dgm_canon_messages shown = dgm_agui_shown(op->arena, &history->messages);
    attach_behind(op, &shown);
}

/* before: the messages that the client has. */
static void attach_at(struct agui_op *op, dgm_canon_messages before, uint64_t cursor)
{
    dgm_turn_output output = dgm_agui_turn_output(op);
    dgm_log *log = dgm_take(op->log);
    output.messages = before;
    output.task_id = op->task_id;
    output.after_seq = cursor;
    dgm_agui_follow(op, &output);
    dgm_front_note_task(op->x, op->task_id, 0);
    dgm_turn_stream(op->x, &output, log, op->first_seq);
    dgm_log_unref(log);
}

void dgm_agui_attach(struct agui_op *op, const dgm_found_turn *turn)
{
    uint64_t cursor;
    dgm_agui_begun(op);
    dgm_front_note_operation(op->x, "attach");
    op->log = dgm_log_ref(turn->log);
    op->first_seq = turn->first_seq;
    op->task_id = dgm_arena_dup(op->arena, turn->task_id);
    op->turn = turn->turn;
    find_message(op);
    bool has_cursor = dgm_agui_cursor_of(dgm_http_request_of(op->x), &cursor);
    if (has_cursor && (!cursor || cursor + 1 >= op->first_seq) && cursor <= op->log->published)
        attach_at(op, op->input.messages, cursor); /* 0: all events of the run */
    else if (op->input.messages.n)
        attach_behind(op, &op->input.messages);
    else
        dgm_turn_get_whole_history(op->q.turns, op->arena, op->q.owner, op->agent->id,
                                   op->input.thread_id, on_history_of_run, op);
}

/* The client that began the run had the messages before it. */
static void agui_on_history_of_replay(dgm_code code, const dgm_turn_history *history,
                                      const dgm_err *err, void *arg)
{
    struct agui_op *op = arg;
    if (code) {
        op->tap->on_close(op->tap->arg);
        dgm_log_unref(dgm_take(op->log));
        op->q.reporter->refuse(&op->q, err, NULL, 0);
        return;
    }
    dgm_canon_messages shown = dgm_agui_shown(op->arena, &history->messages);
    size_t n = dgm_agui_cut(&shown, op->message_id, op->input.run_id);
    attach_at(op, dgm_agui_note_messages(op, until(shown, n)), 0);
}

void dgm_agui_replay(const dgm_turn_replay *replay)
{
    const dgm_task_turn *turn = &replay->turn;
    dgm_arena *a = dgm_http_arena(replay->q->x);
    struct agui_op *op = dgm_new(a, struct agui_op);
    *op = (struct agui_op){.q = *replay->q,
                           .x = replay->q->x,
                           .arena = a,
                           .core = replay->q->turns->o.core,
                           .agent = replay->agent,
                           .input.thread_id = replay->context_id,
                           .log = dgm_log_ref(replay->log),
                           .first_seq = turn->first_seq,
                           .task_id = replay->task_id,
                           .tap = replay->tap};
    if (turn->caller_id.n > replay->context_id.n)
        op->input.run_id = (dgm_str){turn->caller_id.p + replay->context_id.n + 1,
                                     turn->caller_id.n - replay->context_id.n - 1};
    dgm_agui_note_read(op, turn->request);
    find_message(op);
    dgm_turn_get_whole_history(op->q.turns, a, op->q.owner, op->agent->id, op->input.thread_id,
                               agui_on_history_of_replay, op);
}

/* ---- a thread ----------------------------------------------------------------------------------------------------------- */

/* A thread that is streamed, while its newest task is read. */
struct thread {
    struct agui_op *op;
    dgm_canon_messages messages;
    bool is_at_rest;  /* it was, when they were put together */
    bool no_messages; /* the client has them */
};

/* Where the last turn begins, and whether it is over. */
static bool find_last_turn(struct agui_op *op)
{
    dgm_log_reader *reader = dgm_log_reader_open(op->log, op->log->first_seq - 1, ignore, NULL);
    dgm_record *r;
    uint32_t turn = 0;
    bool is_over = false;
    while ((r = dgm_log_reader_next(reader))) {
        if (r->head.turn != turn || !op->first_seq) {
            op->message_id = agui_front_thread_message_of(op->arena, r);
            op->first_seq = r->head.seq;
            turn = r->head.turn;
            is_over = false;
        }
        if (r->head.kind == DGM_EVENT_STATUS || r->head.kind == DGM_EVENT_TASK)
            is_over =
                dgm_state_is_terminal(r->head.state) || dgm_state_is_interrupted(r->head.state);
    }
    dgm_log_reader_close(reader);
    op->turn = turn;
    return is_over;
}

static void on_subscribed(dgm_code code, dgm_log *log, uint64_t after, dgm_record *snapshot,
                          const dgm_err *err, void *arg)
{
    struct thread *t = arg;
    struct agui_op *op = t->op;
    (void)after, (void)snapshot;
    if (code == DGM_RATE_LIMITED || code == DGM_UNAVAILABLE) {
        dgm_agui_fail(op, err);
        return;
    }
    if (!code)
        op->log = dgm_log_ref(log);
    bool is_at_rest = !code && find_last_turn(op) && t->is_at_rest;
    if (code || !op->first_seq) { /* nothing of it is kept any more */
        if (op->log)
            dgm_log_unref(dgm_take(op->log));
        dgm_agui_answer(op, t->no_messages ? NULL : &t->messages, (dgm_canon_outcome){0});
        return;
    }
    size_t n =
        is_at_rest ? t->messages.n : dgm_agui_cut(&t->messages, op->message_id, (dgm_str){0});
    agui_stream_again(op, &(agui_again_params){.before = until(t->messages, n),
                                               .held = op->input.messages,
                                               .only_before = is_at_rest,
                                               .no_messages = t->no_messages && is_at_rest,
                                               .ends_well = is_at_rest,
                                               .parent_run_id = op->input.parent_run_id});
}

static void agui_stream_thread(struct agui_op *op, const dgm_turn_history *history,
                               bool no_messages)
{
    struct thread *t = dgm_new(op->arena, struct thread);
    dgm_task_state state = history->state;
    *t = (struct thread){.op = op,
                         .messages = dgm_agui_shown(op->arena, &history->messages),
                         .is_at_rest =
                             dgm_state_is_terminal(state) || dgm_state_is_interrupted(state),
                         .no_messages = no_messages};
    op->task_id = dgm_arena_dup(op->arena, history->task_id);
    op->hold = dgm_turn_take_hold(history);
    dgm_core_subscribe(op->core, op->q.owner, op->agent->id, op->task_id, 0, on_subscribed, t);
}

static void on_history_of_thread(dgm_code code, const dgm_turn_history *history, const dgm_err *err,
                                 void *arg)
{
    struct agui_op *op = arg;
    if (code)
        dgm_agui_fail(op, err);
    else if (!history->task_id.n) /* only the client may have messages */
        dgm_agui_answer(op, NULL, (dgm_canon_outcome){0});
    else
        agui_stream_thread(op, history, false);
}

void dgm_agui_connect(struct agui_op *op)
{
    dgm_turn_get_whole_history(op->q.turns, op->arena, op->q.owner, op->agent->id,
                               op->input.thread_id, on_history_of_thread, op);
}

/* ---- nothing new ----------------------------------------------------------------------------------------------------------- */

static void on_history_of_nothing(dgm_code code, const dgm_turn_history *history,
                                  const dgm_err *err, void *arg)
{
    struct agui_op *op = arg;
    if (code)
        dgm_agui_fail(op, err);
    else if (history->task_id.n && !dgm_state_is_terminal(history->state))
        agui_stream_thread(op, history, true);
    else if (op->had_resume) /* an answer that came before */
        dgm_agui_answer(op, NULL, (dgm_canon_outcome){0});
    else
        dgm_agui_fail_with(
            op, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "messages"),
            "there is nothing to answer: the last message must be the user's or a tool's");
}

void dgm_agui_stand(struct agui_op *op)
{
    dgm_turn_get_whole_history(op->q.turns, op->arena, op->q.owner, op->agent->id,
                               op->input.thread_id, on_history_of_nothing, op);
}

/* ---- its messages as JSON ------------------------------------------------------------------------------------------------- */

static dgm_code agui_front_thread_put_message(void *arg, dgm_str name, dgm_str payload)
{
    dgm_buf *b = arg;
    (void)name;
    if (b->p[b->n - 1] != '[')
        dgm_buf_add_char(b, ',');
    dgm_buf_add_str(b, payload);
    return DGM_OK;
}

static void on_history_asked(dgm_code code, const dgm_turn_history *history, const dgm_err *err,
                             void *arg)
{
    struct agui_op *op = arg;
    dgm_stream_params params = {0};
    dgm_buf b;
    if (code) {
        dgm_agui_fail(op, err);
        return;
    }
    dgm_buf_init(&b, DGM_MAX_OUTPUT_BYTES);
    dgm_buf_add_lit(&b, "{\"threadId\":");
    dgm_json_put_str(&b, op->input.thread_id);
    dgm_buf_add_lit(&b, ",\"messages\":[");
    dgm_canon_messages messages = dgm_agui_shown(op->arena, &history->messages);
    dgm_codec_agui.write_messages(&messages, &params,
                                  (dgm_frame_sink){agui_front_thread_put_message, &b}, NULL);
    dgm_buf_add_lit(&b, "]");
    if (history->cut)
        dgm_buf_add_lit(&b, ",\"truncated\":true");
    dgm_buf_add_char(&b, '}');
    if (b.over)
        dgm_agui_fail_with(op, DGM_TOO_LARGE, NULL,
                           "the thread's messages are larger than the limit output_bytes");
    else
        dgm_turn_respond_held(op->x, DGM_STR("application/json"), NULL, 0, &b,
                              dgm_turn_take_hold(history));
    dgm_buf_done(&b);
}

void dgm_agui_messages(struct agui_op *op, dgm_str thread_id)
{
    op->input.thread_id = thread_id;
    dgm_turn_get_whole_history(op->q.turns, op->arena, op->q.owner, op->agent->id, thread_id,
                               on_history_asked, op);
}
