/*
 * core/forward.c - sends calls to a task of another server as commands, and handles their answers (dgm_store_command).
 *
 *   send    {"event":{"message":...},"metadata":{...},"agent":...,"protocol":...,...} ─► {"turn":2,"first_seq":9,"after":10}
 *   cancel  {} ─► {}
 *   disconnected  {"turn":1,"grace_ms":5000}, without an answer
 *
 * The answer contains positions in the log. The records for the caller are read from the store, like those of a followed task.
 * The owner executes a command like a call of its own; if it no longer owns the task, it refuses it (DGM_UNAVAILABLE).
 *
 * A command without an answer may have been executed. It is sent again to the owner at that time, so a cancel may be executed
 * twice. A message that was accepted is in the log, after the earlier records; it is found by its id. While the message waits
 * for a run, and when it arrives late, the owner finds it by its id. A message that is always new (`dedupe: false`) gets an id
 * for this purpose with its first command (forward_id): every server then handles it as a message with dedupe and this id.
 */
#include "base/ids.h"
#include "core/core_int.h"
#include "model/form.h"

#include <stdlib.h>

/* A command that is refused at once is sent again for this time: in it a dead server is detected, and its tasks are acquired. */
#define FORWARD_AGAIN_MS 30000
/* How long a message may wait for the run of another server, before it is sent again. */
#define SEND_MS 60000
/* The time of an answer in addition to the wait of the owner. */
#define ANSWER_MS 5000

struct forward {
    uint64_t sent_at;
    uint64_t again_until; /* 0: it was not refused yet */
    uint64_t from_seq;    /* the log had so many records when it was sent first */
    bool is_handled;
    bool is_resend;
    uint64_t first_seq, after;
    uint32_t turn;
};

/* ---- the body ------------------------------------------------------------------------------------------------------ */

static void body_add(dgm_buf *b, const char *key, dgm_str text)
{
    if (!text.n)
        return;
    dgm_buf_printf(b, ",\"%s\":", key);
    dgm_json_put_str(b, text);
}

static void body_add_flag(dgm_buf *b, const char *key, bool flag)
{
    if (flag)
        dgm_buf_printf(b, ",\"%s\":true", key);
}

static dgm_code body_of_send(struct live *l, struct call *c, dgm_buf *b, dgm_err *err)
{
    dgm_event event = {.kind = DGM_EVENT_MESSAGE, .message = c->send.message};
    dgm_record *record;
    dgm_code rc =
        dgm_record_new(&event, (dgm_record_head){.seq = 1}, &l->shard->scratch, &record, err);
    if (rc)
        return rc;
    dgm_buf_add_lit(b, "{\"event\":");
    dgm_buf_add_str(b, dgm_record_bytes(record));
    dgm_record_unref(record);
    if (c->send.metadata) {
        dgm_buf_add_lit(b, ",\"metadata\":");
        dgm_json_put(b, c->send.metadata);
    }
    if (c->send.accepted_output_modes.n) {
        dgm_buf_add_lit(b, ",\"modes\":[");
        for (size_t i = 0; i < c->send.accepted_output_modes.n; i++) {
            if (i)
                dgm_buf_add_lit(b, ",");
            dgm_json_put_str(b, c->send.accepted_output_modes.at[i]);
        }
        dgm_buf_add_lit(b, "]");
    }
    body_add(b, "agent", c->agent->id);
    body_add(b, "protocol", c->turn.protocol);
    body_add(b, "caller_id", c->turn.caller_id);
    body_add(b, "request", c->turn.request);
    body_add(b, "previous", c->turn.previous);
    if (c->send.has_forward_id)
        body_add(b, "forward_id", c->send.message_id);
    else
        body_add_flag(b, "dedupes", c->send.dedupes);
    body_add_flag(b, "joins_run", c->send.joins_run);
    dgm_buf_printf(b, ",\"answer_ms\":%llu}", (unsigned long long)c->send.answer_ms);
    if (dgm_buf_str(b).n > DGM_MAX_COMMAND_BYTES)
        rc = dgm_fail(err, DGM_TOO_LARGE, NULL,
                      "the request with the message has more bytes than the limit "
                      "command_bytes (%zu), and its task runs on another server: send it later",
                      DGM_MAX_COMMAND_BYTES);
    return rc;
}

static bool body_flag(const yyjson_val *v, const char *key)
{
    return yyjson_is_true(dgm_json_get(v, dgm_str_from(key)));
}

static uint64_t body_number(const yyjson_val *v, const char *key)
{
    const yyjson_val *member = dgm_json_get(v, dgm_str_from(key));
    int64_t n = 0;
    return member && dgm_json_int(member, &n) && n > 0 ? (uint64_t)n : 0;
}

/* ---- sending ------------------------------------------------------------------------------------------------------- */

struct forwarding {
    struct live *live;
    struct call *call;
};

static uint64_t forward_now(const struct live *l)
{
    return uv_now(&l->shard->loop->uv);
}

/* An answer that did not come, or a server that does not own the task any more. */
static void forward_again(struct live *l, struct call *c, const dgm_err *err)
{
    struct forward *f = c->forward;
    uint64_t now = forward_now(l);
    if (!f->again_until || now - f->sent_at >= ANSWER_MS)
        f->again_until = now + FORWARD_AGAIN_MS;
    if (now >= f->again_until)
        dgm_call_refuse(c, err);
    else
        dgm_follow_delay(l, c);
}

static void forward_read_answer(struct forward *f, dgm_str body)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    yyjson_val *v = NULL;
    f->is_handled = true;
    if (dgm_json_read(a, body, DGM_MAX_COMMAND_BYTES, "command_bytes", &v, NULL))
        return;
    f->turn = (uint32_t)body_number(v, "turn");
    f->first_seq = body_number(v, "first_seq");
    f->after = body_number(v, "after");
    f->is_resend = body_flag(v, "is_resend");
}

static void on_forwarded(dgm_code code, dgm_str body, const dgm_err *err, void *arg)
{
    struct forwarding *x = arg;
    struct live *l = x->live;
    struct call *c = x->call;
    free(x);
    l->n_lookups--;
    l->held++;
    if (l->shard->core->stopping) {
        dgm_call_refuse_with(c, DGM_UNAVAILABLE, "the server is shutting down");
    } else if (!code) {
        forward_read_answer(c->forward, body);
        dgm_follow_then_handle(l, c);
    } else if (code == DGM_UNAVAILABLE && l->state == LIVE_READY) {
        forward_again(l, c, err);
    } else {
        dgm_call_refuse(c, err);
    }
    l->held--;
    dgm_live_free_if_idle(l);
}

static void forward_send(struct live *l, struct call *c, const char *kind, dgm_str body,
                         uint64_t ms)
{
    struct forwarding *x = dgm_xcalloc(1, sizeof *x);
    *x = (struct forwarding){l, c};
    l->n_lookups++;
    c->forward->sent_at = forward_now(l);
    atomic_fetch_add_explicit(&l->shard->core->forwarded, 1, memory_order_relaxed);
    dgm_store_command(l->shard->core->o.store, l->rare->share->lease.replica, dgm_live_owner(l),
                      l->id, dgm_str_from(kind), body, ms, on_forwarded, x);
}

static void forward_message(struct live *l, struct call *c)
{
    dgm_buf b;
    dgm_err err = {0};
    dgm_buf_init(&b, SIZE_MAX);
    if (body_of_send(l, c, &b, &err))
        dgm_call_refuse(c, &err);
    else
        forward_send(l, c, "send", dgm_buf_str(&b),
                     c->send.answer_ms ? c->send.answer_ms + ANSWER_MS : SEND_MS);
    dgm_buf_done(&b);
}

static void forward_disconnect(dgm_core *core, int64_t replica, struct call *c)
{
    char body[80];
    snprintf(body, sizeof body, "{\"turn\":%u,\"grace_ms\":%llu}", c->turn.number,
             (unsigned long long)c->grace_ms);
    dgm_store_command(core->o.store, replica, c->owner, c->task_id, DGM_STR("disconnected"),
                      dgm_str_from(body), ANSWER_MS, NULL, NULL);
    dgm_call_answer(c);
}

void dgm_forward(struct live *l, struct call *c)
{
    const struct live_share *x = l->rare->share;
    if (c->is_forwarded && c->kind != CALL_GONE) {
        dgm_call_refuse_with(c, DGM_UNAVAILABLE, "another server owns the task now: try again");
        return;
    }
    if (c->kind == CALL_GONE && (x->lease.holder != DGM_LEASE_OTHER || c->is_forwarded)) {
        dgm_call_answer(c); /* nothing of it runs, or there is no caller that waits */
        return;
    }
    if (c->kind == CALL_GONE) {
        forward_disconnect(l->shard->core, x->lease.replica, c);
        return;
    }
    if (!c->forward) {
        c->forward = dgm_new(c->arena, struct forward);
        c->forward->from_seq = l->log->last;
        if (c->kind == CALL_SEND && !c->send.dedupes) {
            c->send.message_id = dgm_uuid7_in(c->arena);
            c->send.dedupes = c->send.has_forward_id = true;
        }
    }
    if (c->kind == CALL_SEND)
        forward_message(l, c);
    else
        forward_send(l, c, "cancel", DGM_STR("{}"), DGM_CANCEL_WAIT_MS + ANSWER_MS);
}

static void on_row_of_disconnected(dgm_code code, const dgm_task_row *row, const dgm_err *err,
                                   void *arg)
{
    struct call *c = arg;
    (void)err;
    if (!code && row && row->lease.holder == DGM_LEASE_OTHER && !c->is_forwarded &&
        !c->core->stopping)
        forward_disconnect(c->core, row->lease.replica, c);
    else
        dgm_call_answer(c);
}

void dgm_forward_disconnected(struct shard *s, struct call *c)
{
    dgm_store_get_task(s->core->o.store, c->owner, c->task_id, on_row_of_disconnected, c);
}

/* ---- the answer to the caller ---------------------------------------------------------------------------------------- */

static bool is_record_of(const dgm_record *r, dgm_str message_id)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_event event;
    return r->head.kind == DGM_EVENT_INTERNAL && !dgm_record_event(r, a, &event, NULL) &&
           event.internal->kind == DGM_INTERNAL_MESSAGE && event.internal->message &&
           event.internal->message->role == DGM_ROLE_USER &&
           dgm_str_eq(event.internal->message->message_id, message_id);
}

/* Was the message accepted by a server that did not answer? */
static void forward_find_message(struct live *l, struct call *c)
{
    struct forward *f = c->forward;
    uint64_t from = f->from_seq + 1 > l->log->first_seq ? f->from_seq + 1 : l->log->first_seq;
    if (c->send.has_forward_id || l->log->last < from) /* the store knows that id, not the log */
        return;
    size_t n = (size_t)(l->log->last - from + 1);
    dgm_record **records = dgm_log_tail(l->log, n, &l->shard->batch);
    for (size_t i = 0; i < n && !f->is_handled; i++) {
        if (!is_record_of(records[i], c->send.message_id))
            continue;
        f->is_handled = true;
        f->turn = records[i]->head.turn;
        f->first_seq = f->after = records[i]->head.seq;
        if (i + 1 < n && records[i + 1]->head.kind == DGM_EVENT_STATUS &&
            records[i + 1]->head.state == DGM_STATE_WORKING)
            f->after++; /* the question that it answers has ended */
    }
}

/* As of the owner: the task with the message, and what follows. */
static void forward_answer_send(struct live *l, struct call *c)
{
    const struct forward *f = c->forward;
    dgm_err err = {0};
    if (f->is_resend) {
        c->turn.number = f->turn;
        c->send.is_resend = true;
        if (dgm_follow_fold(l, UINT64_MAX, &err))
            dgm_call_refuse(c, &err);
        else
            dgm_resend_answer(l, c);
        return;
    }
    if (dgm_follow_fold(l, f->turn ? f->after : UINT64_MAX, &err)) {
        dgm_call_refuse(c, &err);
        return;
    }
    c->turn.context_id = dgm_arena_dup(c->arena, l->context_id);
    c->turn.number = f->turn;
    c->turn.first_seq = f->first_seq;
    c->log = dgm_log_ref(l->log);
    c->snapshot = dgm_live_snapshot(l);
    c->after = c->snapshot ? c->snapshot->head.seq
               : f->turn   ? f->first_seq - 1
                           : l->log->first_seq - 1;
    dgm_live_answer_when_published(l, c, c->after);
}

static void forward_answer_cancel(struct live *l, struct call *c)
{
    dgm_err err = {0};
    if (dgm_follow_fold(l, UINT64_MAX, &err)) {
        dgm_call_refuse(c, &err);
        return;
    }
    if (!(c->snapshot = dgm_live_snapshot(l)))
        dgm_call_refuse_with(c, DGM_TOO_LARGE, "the task is larger than the limit task_bytes");
    else
        dgm_live_answer_when_published(l, c, l->log->last);
}

bool dgm_forward_finish(struct live *l, struct call *c)
{
    if (l->state != LIVE_READY)
        return false;
    if (!c->forward->is_handled && c->kind == CALL_SEND)
        forward_find_message(l, c);
    if (!c->forward->is_handled)
        return false;
    if (c->kind == CALL_SEND)
        forward_answer_send(l, c);
    else
        forward_answer_cancel(l, c);
    return true;
}

/* ---- commands of other servers ----------------------------------------------------------------------------------------- */

struct commanded {
    dgm_core *core;
    dgm_arena *arena;
    dgm_command command; /* without its body */
};

static void command_answer(struct commanded *x, dgm_code code, const dgm_err *err, dgm_str body)
{
    if (!x->core->stopping)
        dgm_store_answer(x->core->o.store, &x->command, code, err, body);
    dgm_arena_free(x->arena); /* x lives in it */
}

static void on_command_sent(dgm_code code, const dgm_sent *sent, const dgm_err *err, void *arg)
{
    struct commanded *x = arg;
    char body[200] = "";
    if (!code)
        snprintf(body, sizeof body,
                 "{\"turn\":%u,\"first_seq\":%llu,\"after\":%llu,\"is_resend\":%s}", sent->turn,
                 (unsigned long long)sent->first_seq, (unsigned long long)sent->after,
                 sent->is_resend ? "true" : "false");
    command_answer(x, code, err, dgm_str_from(body));
}

static void on_command_canceled(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    (void)snapshot;
    command_answer(arg, code, err, DGM_STR("{}"));
}

static dgm_code command_send(struct commanded *x, const yyjson_val *v, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_reader reader = {.arena = a, .format = DGM_FORMAT_A2A_10, .err = err};
    dgm_event event = {0};
    yyjson_val *modes = dgm_json_get(v, DGM_STR("modes")), *mode;
    yyjson_val *written = dgm_json_get(v, DGM_STR("event"));
    size_t i, max, n = 0;
    dgm_code rc = written ? dgm_form_read_event(&reader, written, NULL, &event)
                          : dgm_fail(err, DGM_BAD_PARAMS, NULL, "a command without a message");
    if (rc)
        return rc;
    if (event.kind != DGM_EVENT_MESSAGE)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "a command without a message");
    event.message->task_id = x->command.task_id;
    dgm_str *texts = dgm_new_n(a, dgm_str, yyjson_arr_size(modes) + 1);
    yyjson_arr_foreach (modes, i, max, mode)
        texts[n++] = dgm_json_str(mode);
    dgm_send send = {.owner = x->command.owner,
                     .agent = dgm_json_str_member(v, "agent"),
                     .message = event.message,
                     .metadata = dgm_json_get(v, DGM_STR("metadata")),
                     .is_ours = true,
                     .accepted_output_modes = {texts, n},
                     .protocol = dgm_json_str_member(v, "protocol"),
                     .caller_id = dgm_json_str_member(v, "caller_id"),
                     .request = dgm_json_str_member(v, "request"),
                     .previous = dgm_json_str_member(v, "previous"),
                     .bytes = 1, /* the message was checked where it came in */
                     .answer_ms = body_number(v, "answer_ms"),
                     .joins_run = body_flag(v, "joins_run"),
                     .dedupes = body_flag(v, "dedupes"),
                     .always_new = !body_flag(v, "dedupes")};
    dgm_core_send_forwarded(x->core, &send, dgm_json_str_member(v, "forward_id"), on_command_sent,
                            x);
    return DGM_OK;
}

static struct call *command_call(struct commanded *x, enum call_kind kind)
{
    struct call *c = dgm_call_new(x->core, kind, x->command.owner);
    c->is_forwarded = true;
    c->task_id = dgm_arena_dup(c->arena, x->command.task_id);
    return c;
}

static void command_cancel(struct commanded *x)
{
    struct call *c = command_call(x, CALL_CANCEL);
    c->on.task = on_command_canceled;
    c->arg = x;
    dgm_call_post_to_task(c);
}

static void command_disconnected(struct commanded *x, const yyjson_val *v)
{
    struct call *c = command_call(x, CALL_GONE);
    c->turn.number = (uint32_t)body_number(v, "turn");
    c->grace_ms = body_number(v, "grace_ms");
    dgm_call_post_to_task(c);
    dgm_arena_free(x->arena); /* no answer is expected */
}

void dgm_forward_handle(dgm_core *core, const dgm_command *command)
{
    dgm_arena *a = dgm_arena_new();
    struct commanded *x = dgm_new(a, struct commanded);
    yyjson_val *v = NULL;
    dgm_err err = {0};
    *x = (struct commanded){.core = core, .arena = a, .command = *command};
    x->command.owner = (dgm_owner){dgm_arena_dup(a, command->owner.tenant),
                                   dgm_arena_dup(a, command->owner.principal)};
    x->command.task_id = dgm_arena_dup(a, command->task_id);
    x->command.kind = dgm_arena_dup(a, command->kind);
    x->command.body = (dgm_str){0};
    dgm_code rc = dgm_json_read(a, command->body, DGM_MAX_COMMAND_BYTES, "command_bytes", &v, &err);
    if (!rc && dgm_str_is(command->kind, "send")) {
        rc = command_send(x, v, &err);
    } else if (!rc && dgm_str_is(command->kind, "cancel")) {
        command_cancel(x);
    } else if (!rc && dgm_str_is(command->kind, "disconnected")) {
        command_disconnected(x, v);
    } else if (!rc) {
        rc = dgm_fail(&err, DGM_UNSUPPORTED_OPERATION, NULL,
                      "the server that runs the task has another version: try again later");
    }
    if (rc)
        command_answer(x, rc, &err, (dgm_str){0});
}
