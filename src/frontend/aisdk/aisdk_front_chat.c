/*
 * frontend/aisdk/aisdk_front_chat.c - turns of a chat: started, streamed, streamed again, canceled.
 *
 * A turn is found by its chat: the newest is the one that runs, or none does. The client that comes back
 * forgets what it has of the UI message, so it is streamed from the message's start; if the message went on
 * with results of the caller's tools, that is before the turn's.
 */
#include "frontend/aisdk/aisdk_front_int.h"

static dgm_core *core_of(const struct aisdk_ask *ask)
{
    return ask->q.turns->o.core;
}

/* ---- streams ----------------------------------------------------------------------------------------------- */

/* What is sent beside the turn. Lives as long as the exchange; it owns its log and its note. */
struct beside {
    dgm_canon_tools tools;
    dgm_strs decided; /* calls that the client has, and that the user decided about */
    bool *is_denied;  /* for each */
    dgm_log *
        log; /* a reference; NULL: the turn starts its message, or the part before it was streamed */
    uint64_t first_seq;
    dgm_arena *arena; /* of the note */
    struct aisdk_note note;
    dgm_answer_source source;
};

static void aisdk_release_beside(void *arg)
{
    struct beside *b = arg;
    if (b->log)
        dgm_log_unref(dgm_take(b->log));
    dgm_arena_free(b->arena);
    b->arena = NULL;
}

static void aisdk_own_before(struct beside *b, dgm_log *log, uint64_t first_seq,
                             const struct aisdk_note *note)
{
    b->log = dgm_log_ref(log);
    b->first_seq = first_seq;
    b->arena = dgm_arena_new();
    b->note.message_id = dgm_arena_dup(b->arena, note->message_id);
    b->note.results.at = dgm_new_n(b->arena, dgm_str, note->results.n);
    for (size_t i = 0; i < note->results.n; i++)
        b->note.results.at[b->note.results.n++] = dgm_arena_dup(b->arena, note->results.at[i]);
}

/* The client has these calls: their results go to the parts that it has. */
static dgm_code say_decided(const struct beside *b, dgm_canon_sink next)
{
    dgm_code rc = DGM_OK;
    for (size_t i = 0; !rc && i < b->decided.n; i++) {
        dgm_canon_event start = {.kind = DGM_CANON_TOOL_CALL_START};
        start.call.tool_call_id = b->decided.at[i];
        start.call.is_seen = true;
        start.call.is_denied = b->is_denied[i];
        rc = dgm_canon_emit(next, &start);
    }
    return rc;
}

static dgm_code aisdk_front_chat_on_event(void *arg, const dgm_canon_event *event,
                                          dgm_canon_sink next)
{
    struct beside *b = arg;
    dgm_canon_event start = *event;
    dgm_canon_input input = {.tools = b->tools};
    dgm_code rc;
    if (event->kind != DGM_CANON_RUN_STARTED)
        return dgm_canon_emit(next, event);
    if (!start.run_started.input && input.tools.n)
        start.run_started.input = &input;
    rc = dgm_canon_emit(next, &start);
    if (!rc)
        rc = say_decided(b, next);
    if (!rc && b->log)
        rc = dgm_aisdk_say_before(b->log, b->first_seq, &b->note, b->source, next);
    aisdk_release_beside(b);
    return rc;
}

static struct beside *new_beside(dgm_http_exchange *x, const struct aisdk_note *note)
{
    struct beside *b = dgm_http_alloc(x, sizeof *b);
    b->tools.at = note->tools.n ? dgm_http_alloc(x, note->tools.n * sizeof *b->tools.at) : NULL;
    for (size_t i = 0; i < note->tools.n; i++) {
        dgm_str name = note->tools.at[i];
        b->tools.at[b->tools.n++].name = (dgm_str){dgm_http_keep_text(x, name), name.n};
    }
    return b;
}

static bool has_id(const dgm_strs *ids, dgm_str id)
{
    for (size_t i = 0; i < ids->n; i++) {
        if (dgm_str_eq(ids->at[i], id))
            return true;
    }
    return false;
}

static void own_decided(dgm_http_exchange *x, struct beside *b, const struct aisdk_note *note)
{
    size_t n = note->decided.n;
    if (!n)
        return;
    b->decided.at = dgm_http_alloc(x, n * sizeof *b->decided.at);
    b->is_denied = dgm_http_alloc(x, n * sizeof *b->is_denied);
    for (size_t i = 0; i < n; i++) {
        dgm_str id = note->decided.at[i];
        b->is_denied[i] = has_id(&note->denied, id);
        b->decided.at[b->decided.n++] = (dgm_str){dgm_http_keep_text(x, id), id.n};
    }
}

struct turn {
    dgm_log *log;
    uint64_t first_seq;
    uint32_t turn; /* that this caller began; 0: somebody did */
    dgm_str task_id;
    struct aisdk_note note;
    bool again;              /* the client has forgotten the parts of the message */
    const dgm_turn_tap *tap; /* of a replay; NULL: a client */
};

/* Where a client that keeps count has read to. */
static uint64_t last_seen(dgm_http_exchange *x)
{
    dgm_str id = dgm_http_header_of(dgm_http_request_of(x), DGM_STR("last-event-id"));
    uint64_t seq = 0;
    for (size_t i = 0; i < id.n; i++) {
        if (id.p[i] < '0' || id.p[i] > '9' || seq > UINT64_MAX / 10 - 1)
            return 0;
        seq = seq * 10 + (uint64_t)(id.p[i] - '0');
    }
    return seq;
}

static void aisdk_stream_turn(struct aisdk_ask *ask, const struct turn *t)
{
    static const dgm_http_header header = {{"x-vercel-ai-ui-message-stream", 29}, {"v1", 2}};
    dgm_http_exchange *x = ask->q.x;
    struct beside *b = new_beside(x, &t->note);
    if (t->again && (t->note.results.n || t->note.is_approval))
        aisdk_own_before(b, t->log, t->first_seq, &t->note);
    if (!t->again)
        own_decided(x, b, &t->note);
    b->source = ask->q.agent->answer_in_status ? DGM_ANSWER_STATUS : DGM_ANSWER_AUTO;
    dgm_front_note_task(x, t->task_id, t->turn);
    dgm_turn_stream(x,
                    &(dgm_turn_output){.codec = &dgm_codec_aisdk,
                                       .params = {.task_id = t->task_id},
                                       .thread_id = ask->chat,
                                       .run_id = t->note.message_id,
                                       .as = DGM_OUTPUT_SSE,
                                       .seq_ids = true,
                                       .after_seq = t->turn || t->tap ? 0 : last_seen(x),
                                       .headers = &header,
                                       .n_headers = 1,
                                       .on_event = aisdk_front_chat_on_event,
                                       .on_release = aisdk_release_beside,
                                       .arg = b,
                                       .turns = ask->q.turns,
                                       .owner = ask->q.owner,
                                       .agent = ask->q.agent->id,
                                       .task_id = t->task_id,
                                       .leave = ask->q.turns->o.leave[DGM_LEAVE_AISDK],
                                       .answer_in_status = ask->q.agent->answer_in_status,
                                       .turn = t->turn,
                                       .tap = t->tap},
                    t->log, t->first_seq);
}

void dgm_aisdk_replay(const dgm_turn_replay *replay)
{
    dgm_arena *a = dgm_http_arena(replay->q->x);
    struct aisdk_ask *ask = dgm_new(a, struct aisdk_ask);
    ask->q = *replay->q;
    ask->q.agent = replay->agent;
    ask->chat = replay->context_id;
    aisdk_stream_turn(ask, &(struct turn){.log = replay->log,
                                          .first_seq = replay->turn.first_seq,
                                          .task_id = replay->task_id,
                                          .note = dgm_aisdk_note_read(a, replay->turn.request),
                                          .tap = replay->tap});
}

/* ---- asking ------------------------------------------------------------------------------------------------ */

struct asked {
    struct aisdk_ask *ask;
    struct aisdk_request *q;
    struct aisdk_note note;
    dgm_ask *to;
    dgm_turn_resolving approvals; /* the user's decisions */
};

static void aisdk_front_chat_on_sent(dgm_code code, const dgm_sent *sent, const dgm_err *err,
                                     void *arg)
{
    struct asked *a = arg;
    dgm_err gone = {0};
    if (!code && !sent->first_seq) /* of a message that was sent before */
        code = dgm_fail(
            &gone, DGM_TASK_NOT_FOUND, NULL,
            "this message was answered, but the answer is no longer stored: read the chat's "
            "messages");
    if (code) {
        dgm_aisdk_refuse(a->ask->q.x, gone.code ? &gone : err, NULL, 0);
        return;
    }
    aisdk_stream_turn(a->ask, &(struct turn){.log = sent->log,
                                             .first_seq = sent->first_seq,
                                             .turn = sent->is_resend ? 0 : sent->turn,
                                             .task_id = sent->task_id,
                                             .note = a->note});
}

/* A decision that its task waits for is not the result of a call, too. */
static void drop_decided(struct aisdk_request *q, struct aisdk_note *note)
{
    dgm_canon_messages *list = &q->input.messages;
    size_t from = list->n, n = 0;
    while (from && list->at[from - 1].role == DGM_CANON_TOOL)
        from--;
    for (size_t i = n = from; i < list->n; i++) {
        if (!has_id(&q->decided, list->at[i].tool_call_id))
            list->at[n++] = list->at[i];
    }
    list->n = n;
    n = 0;
    for (size_t i = 0; i < note->results.n; i++) {
        if (!has_id(&q->decided, note->results.at[i]))
            note->results.at[n++] = note->results.at[i];
    }
    note->results.n = n;
}

/* What the turn goes on with. */
static void aisdk_note_decided(struct asked *a)
{
    const struct aisdk_request *q = a->q;
    a->note.decided = q->decided;
    a->note.denied = (dgm_strs){dgm_new_n(a->approvals.arena, dgm_str, q->decided.n + 1), 0};
    for (size_t i = 0; i < q->decided.n; i++) {
        if (q->is_denied[i])
            a->note.denied.at[a->note.denied.n++] = q->decided.at[i];
    }
}

/* Decisions that no task waits for are results of calls, if the page runs those. */
static void aisdk_on_approvals(void *arg)
{
    struct asked *a = arg;
    dgm_err err = {0};
    a->q->input.resume = a->approvals.resume;
    a->note.is_approval = a->approvals.task_id.n > 0;
    if (!a->note.is_approval && !a->q->note.results.n) {
        dgm_fail(
            &err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "messages"),
            "no open request for approval has this approval id: it was answered before, or its "
            "task has ended");
        dgm_aisdk_refuse(a->ask->q.x, &err, NULL, 0);
        return;
    }
    if (a->note.is_approval) {
        drop_decided(a->q, &a->note);
        aisdk_note_decided(a);
    }
    a->to->task_id = a->approvals.task_id;
    a->to->request = dgm_aisdk_note_text(a->approvals.arena, &a->note);
    dgm_turn_ask(a->to, aisdk_front_chat_on_sent, a);
}

void dgm_aisdk_chat(struct aisdk_ask *ask)
{
    dgm_http_exchange *x = ask->q.x;
    dgm_arena *arena = dgm_http_arena(x);
    dgm_err err = {0};
    dgm_reader r = dgm_turn_reader(x, NULL, &err); /* the page names chat and messages */
    struct aisdk_request *q = dgm_new(arena, struct aisdk_request);
    yyjson_val *body;
    if (dgm_turn_body(x, &body, &err) || dgm_aisdk_read_request(&r, body, q)) {
        dgm_aisdk_refuse(x, &err, NULL, 0);
        return;
    }
    ask->chat = q->input.thread_id;
    struct asked *asked = dgm_new(arena, struct asked);
    dgm_ask *a = dgm_new(arena, dgm_ask);
    *asked = (struct asked){.ask = ask, .q = q, .note = q->note, .to = a};
    *a = (dgm_ask){.x = x,
                   .turns = ask->q.turns,
                   .owner = ask->q.owner,
                   .agent = ask->q.agent,
                   .input = &q->input,
                   .context_id = ask->chat,
                   .context_has_history = true,
                   .replace_on_difference = true,
                   .protocol = DGM_STR(AISDK_PROTOCOL),
                   .caller_id = ask->chat,
                   .request = dgm_aisdk_note_text(arena, &q->note),
                   .dedupe = !q->again};
    if (!q->input.resume.n) {
        dgm_turn_ask(a, aisdk_front_chat_on_sent, asked);
        return;
    }
    asked->approvals = (dgm_turn_resolving){.arena = arena,
                                            .core = core_of(ask),
                                            .owner = ask->q.owner,
                                            .agent = ask->q.agent->id,
                                            .context_id = ask->chat,
                                            .resume = q->input.resume,
                                            .on_resolved = aisdk_on_approvals,
                                            .arg = asked};
    dgm_turn_resolve(&asked->approvals);
}

/* ---- again ------------------------------------------------------------------------------------------------- */

static bool runs(dgm_code code, const dgm_found_turn *turn)
{
    return !code && !turn->last_seq;
}

static void aisdk_front_chat_on_turn(dgm_code code, const dgm_found_turn *turn, const dgm_err *err,
                                     void *arg)
{
    struct aisdk_ask *ask = arg;
    dgm_http_exchange *x = ask->q.x;
    dgm_arena *a = dgm_http_arena(x);
    if (code && code != DGM_TASK_NOT_FOUND) {
        dgm_aisdk_refuse(x, err, NULL, 0);
        return;
    }
    if (!runs(code, turn)) {
        dgm_aisdk_send_nothing(x);
        return;
    }
    aisdk_stream_turn(ask, &(struct turn){.log = turn->log,
                                          .first_seq = turn->first_seq,
                                          .task_id = dgm_arena_dup(a, turn->task_id),
                                          .note = dgm_aisdk_note_read(a, turn->request),
                                          .again = true});
}

void dgm_aisdk_stream(struct aisdk_ask *ask)
{
    dgm_core_find_turn(core_of(ask), ask->q.owner, ask->q.agent->id, DGM_STR(AISDK_PROTOCOL),
                       ask->chat, aisdk_front_chat_on_turn, ask);
}

/* ---- canceling --------------------------------------------------------------------------------------------- */

static void on_canceled(dgm_code code, dgm_record *task, const dgm_err *err, void *arg)
{
    struct aisdk_ask *ask = arg;
    dgm_http_exchange *x = ask->q.x;
    dgm_buf b;
    if (code == DGM_TASK_NOT_CANCELABLE || code == DGM_TASK_NOT_FOUND) { /* it ended meanwhile */
        dgm_aisdk_send_nothing(x);
        return;
    }
    if (code) {
        dgm_aisdk_refuse(x, err, NULL, 0);
        return;
    }
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"id\":");
    dgm_json_put_str(&b, ask->chat);
    dgm_buf_add_str(&b, task->head.state == DGM_STATE_CANCELED ? DGM_STR(",\"canceled\":true}")
                                                               : DGM_STR(",\"canceled\":false}"));
    dgm_http_respond(x, 200, DGM_STR("application/json"), NULL, 0, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

static void on_turn_to_cancel(dgm_code code, const dgm_found_turn *turn, const dgm_err *err,
                              void *arg)
{
    struct aisdk_ask *ask = arg;
    dgm_http_exchange *x = ask->q.x;
    if (code && code != DGM_TASK_NOT_FOUND) {
        dgm_aisdk_refuse(x, err, NULL, 0);
    } else if (!runs(code, turn)) {
        dgm_aisdk_send_nothing(x);
    } else {
        dgm_str task = dgm_arena_dup(dgm_http_arena(x), turn->task_id);
        dgm_front_note_task(x, task, turn->turn);
        dgm_core_cancel(core_of(ask), ask->q.owner, ask->q.agent->id, task, on_canceled, ask);
    }
}

void dgm_aisdk_cancel(struct aisdk_ask *ask)
{
    dgm_core_find_turn(core_of(ask), ask->q.owner, ask->q.agent->id, DGM_STR(AISDK_PROTOCOL),
                       ask->chat, on_turn_to_cancel, ask);
}
