/* frontend/a2a/a2a_front_ops.c - what each operation asks of the core, and makes of its answer. */
#include "base/limits.h"
#include "frontend/a2a/a2a_front_int.h"
#include "frontend/list_limits.h"

#include <stdlib.h>

#define FIRST_EVENT_MS 1000 /* a non-blocking send answers by then */
#define BLOCKING_MS ((uint64_t)5 * 60 * 1000)
#define SMALL_REQUEST_BYTES ((size_t)4 << 10)

/* ---- may it be asked for? ------------------------------------------------------------------------------------------- */

bool dgm_op_is_offered(struct op *op)
{
    switch (op->method) {
    case DGM_METHOD_STREAM:
    case DGM_METHOD_SUBSCRIBE:
        if (!op->front->o.no_streaming)
            return true;
        dgm_op_fail_with(op, DGM_UNSUPPORTED_OPERATION, "this agent does not stream");
        return false;
    case DGM_METHOD_PUSH_CREATE:
    case DGM_METHOD_PUSH_GET:
    case DGM_METHOD_PUSH_LIST:
    case DGM_METHOD_PUSH_DELETE:
        dgm_op_fail_with(op, DGM_PUSH_NOT_SUPPORTED, "Push Notification is not supported");
        return false;
    case DGM_METHOD_EXTENDED_CARD:
        if (op->front->o.extended_card)
            return true;
        dgm_op_fail_with(
            op, op_is_10(op) ? DGM_UNSUPPORTED_OPERATION : DGM_EXTENDED_CARD_NOT_CONFIGURED,
            "this agent has no extended card");
        return false;
    case DGM_METHOD_SEND:
    case DGM_METHOD_GET:
    case DGM_METHOD_LIST:
    case DGM_METHOD_CANCEL:
    case DGM_METHOD_NONE: break;
    }
    return true;
}

/* The error does not show whether the tenant or the task is unknown. */
static void fail_tenant(struct op *op)
{
    if (op->task_id.n)
        dgm_op_fail_with(op, DGM_TASK_NOT_FOUND, "Task not found");
    else
        dgm_op_fail_with(op, op->rest ? DGM_NO_SUCH_METHOD : DGM_BAD_PARAMS, "unknown tenant");
}

static bool set_tenant(struct op *op, dgm_str tenant)
{
    const dgm_strs *there = &op->front->o.tenants;
    bool known = !there->n;
    if (!tenant.n)
        return true;
    for (size_t i = 0; !known && i < there->n; i++)
        known = dgm_str_eq(there->at[i], tenant);
    if (op->any_tenant ? known : dgm_str_eq(tenant, op->owner.tenant)) {
        op->owner.tenant = tenant;
        return true;
    }
    fail_tenant(op);
    return false;
}

static bool is_length(struct op *op, dgm_opt_int n, const dgm_at *at)
{
    dgm_err err = {0};
    op->history_length = n;
    if (!n.set || n.value >= 0)
        return true;
    dgm_fail(&err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "historyLength"), "must not be negative");
    dgm_op_fail(op, &err);
    return false;
}

/* Last-Event-ID. */
static uint64_t read_cursor(const dgm_http_request *q)
{
    dgm_str cursor = dgm_http_header_of(q, DGM_STR("last-event-id"));
    uint64_t after = cursor.n && cursor.n <= 18 ? 0 : DGM_NO_CURSOR;
    for (size_t i = 0; i < cursor.n && after != DGM_NO_CURSOR; i++) {
        bool is_digit = cursor.p[i] >= '0' && cursor.p[i] <= '9';
        after = is_digit ? after * 10 + (uint64_t)(cursor.p[i] - '0') : DGM_NO_CURSOR;
    }
    return after;
}

/* A caller can make the request as large as http_body_bytes, and the answer may take minutes. A small request that gets
 * one answer is kept: a copy of what the answer needs would cost more time than it saves memory. */
struct op *dgm_op_release_request(struct op *op)
{
    const dgm_http_request *q = dgm_http_request_of(op->x);
    struct op *kept = op;
    if (op->method != DGM_METHOD_SEND ||
        dgm_arena_used(op->arena) + q->body.n > SMALL_REQUEST_BYTES) {
        dgm_str media = op->rest ? dgm_rest_type(op) : op->media;
        uint64_t cursor = read_cursor(q);
        dgm_http_forget_request(
            op->x); /* goes at the end of this turn: until then it can be read */
        dgm_arena *a = dgm_http_arena(op->x);
        kept = dgm_new(a, struct op);
        *kept = *op;
        kept->arena = a;
        kept->media = media;
        kept->cursor = cursor;
        kept->id = dgm_json_copy(a, op->id);
        kept->task_id = dgm_arena_dup(a, op->task_id);
        kept->extensions = dgm_arena_dup(a, op->extensions);
    }
    /* texts of the configuration, which may be loaded again */
    kept->owner = (dgm_owner){dgm_arena_dup(kept->arena, op->owner.tenant),
                              dgm_arena_dup(kept->arena, op->owner.principal)};
    kept->may_set = (dgm_strs){0};
    return kept;
}

/* ---- lost connections -------------------------------------------------------------------------------------------- */

/* Runs belong to tasks, not to connections. But a server may be configured to cancel a run when the caller that started
 * it has disconnected and no other client reads (on_disconnect: cancel). */
/* Lives as long as the exchange: the request may be forgotten before. */
struct began {
    dgm_a2a_front *front;
    uint32_t turn;
    dgm_str tenant, principal, task_id;
    char room[];
};

struct began *dgm_began_by(struct op *op)
{
    dgm_owner owner = op->owner;
    if (!op->front->o.cancel_on_disconnect || !op->turn)
        return NULL;
    struct began *b =
        dgm_http_alloc(op->x, sizeof *b + owner.tenant.n + owner.principal.n + op->task_id.n);
    char *room = b->room;
    dgm_str texts[] = {owner.tenant, owner.principal, op->task_id};
    dgm_str *copies[] = {&b->tenant, &b->principal, &b->task_id};
    b->front = op->front;
    b->turn = op->turn;
    for (size_t i = 0; i < 3; room += texts[i++].n) {
        *copies[i] = (dgm_str){room, texts[i].n};
        if (texts[i].n)
            memcpy(room, texts[i].p, texts[i].n);
    }
    return b;
}

void dgm_began_gone(const struct began *b)
{
    if (b)
        dgm_core_disconnected(b->front->core, (dgm_owner){b->tenant, b->principal},
                              b->front->o.agent, b->task_id, b->turn, b->front->o.grace_ms);
}

/* ---- sending ---------------------------------------------------------------------------------------------------------- */

static void end_wait(struct op *op)
{
    dgm_log_reader_close(op->reader);
    op->reader = NULL;
    if (op->timer)
        dgm_timer_close(op->timer, free, op->timer);
    op->timer = NULL;
}

static void a2a_ops_on_task(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    struct op *op = arg;
    if (code)
        dgm_op_fail(op, err);
    else
        dgm_op_send_record(op, snapshot);
}

static void send_task_now(struct op *op)
{
    dgm_record *task = dgm_log_reader_task(op->reader); /* how it ended, if it did */
    if (task)
        dgm_record_ref(task);
    end_wait(op);
    dgm_http_watch(op->x, NULL, NULL);
    if (task)
        dgm_op_send_record(op, task);
    else
        dgm_core_get(op->front->core, op->owner, op->front->o.agent, op->task_id, a2a_ops_on_task,
                     op);
    dgm_record_unref(task);
}

static void waited_enough(void *arg)
{
    send_task_now(arg);
}

/* A blocking send has its answer at the end or at a question, another one at the first event past the
 * task itself. */
static bool a2a_ops_is_answer(const struct op *op, const dgm_record *r)
{
    if (op->return_immediately)
        return r->head.kind != DGM_EVENT_TASK && r->head.kind != DGM_EVENT_INTERNAL;
    return (r->head.kind == DGM_EVENT_STATUS || r->head.kind == DGM_EVENT_TASK) &&
           (dgm_state_is_terminal(r->head.state) || dgm_state_is_interrupted(r->head.state));
}

static bool is_answered(struct op *op)
{
    dgm_record *r;
    while ((r = dgm_log_reader_next(op->reader))) {
        if (a2a_ops_is_answer(op, r))
            return true;
    }
    return dgm_log_reader_is_over(op->reader);
}

static void on_ready(void *arg)
{
    if (is_answered(arg))
        send_task_now(arg);
}

/* The client has disconnected. */
static void on_gone(void *arg)
{
    struct op *op = arg;
    end_wait(op);
    dgm_began_gone(op->began);
    dgm_http_end(op->x);
}

/* How long the answer may still take. */
static uint64_t ms_left(const struct op *op)
{
    uint64_t limit = op->front->o.blocking_ms ? op->front->o.blocking_ms : BLOCKING_MS;
    uint64_t waited = uv_now(&dgm_loop_current()->uv) - op->sent_at;
    if (op->return_immediately)
        limit = FIRST_EVENT_MS;
    return waited < limit ? limit - waited : 0;
}

static void wait_for_answer(struct op *op, const dgm_sent *sent)
{
    op->reader = dgm_log_reader_open(sent->log, sent->after, on_ready, op);
    if (is_answered(op)) {
        send_task_now(op);
        return;
    }
    static const dgm_http_watcher waits = {.on_gone = on_gone};
    op->began = dgm_began_by(op);
    dgm_http_watch(op->x, &waits, op);
    op->timer = dgm_xcalloc(1, sizeof *op->timer);
    dgm_timer_init(dgm_loop_current(), op->timer, waited_enough, op);
    dgm_timer_start(op->timer, ms_left(op));
}

/* The transient log holds this one record. */
static void give_message(struct op *op, const dgm_sent *sent)
{
    op->reader = dgm_log_reader_open(sent->log, 0, on_ready, op);
    dgm_op_send_record(op, dgm_log_reader_next(op->reader));
    end_wait(op);
}

static void a2a_ops_on_sent(dgm_code code, const dgm_sent *sent, const dgm_err *err, void *arg)
{
    struct op *op = arg;
    dgm_http_watch(op->x, NULL, NULL); /* whoever answers watches for itself */
    if (code) {
        dgm_op_fail(op, err);
        return;
    }
    op->task_id = sent->task_id.n ? dgm_arena_dup(op->arena, sent->task_id) : (dgm_str){0};
    if (sent->task_id.n)
        dgm_front_note_task(op->x, sent->task_id, sent->turn);
    op->turn = sent->is_message || sent->is_resend ? 0 : sent->turn;
    if (op->method == DGM_METHOD_STREAM) {
        /* a client that sends again because the connection broke may name the last event that it has */
        bool resumes = sent->is_resend && op->cursor != DGM_NO_CURSOR && op->cursor > sent->after &&
                       op->cursor <= sent->log->published;
        dgm_op_stream(op, sent->log, resumes ? op->cursor : sent->after,
                      resumes ? NULL : sent->snapshot);
    } else if (sent->is_message) {
        give_message(op, sent);
    } else {
        wait_for_answer(op, sent);
    }
}

/* No client can stop a run without a task: it does not go on without its caller. Here a FIN is enough. */
static void on_left(void *arg)
{
    struct op *op = arg;
    dgm_core_caller_left(op->front->core, op->sent);
}

/* The card says what comes in and what may come out. */
static bool has_good_types(struct op *op, const dgm_send_request *q)
{
    const dgm_a2a_options *o = &op->front->o;
    const dgm_parts *parts = &q->message->parts;
    dgm_err err = {0};
    for (size_t i = 0; o->input_modes.n && i < parts->n; i++) {
        dgm_str type = parts->at[i].media_type;
        if (dgm_takes_media_type(o->input_modes, type))
            continue;
        dgm_fail(&err, DGM_CONTENT_TYPE_NOT_SUPPORTED,
                 DGM_AT_I(DGM_AT_LIT(DGM_AT_LIT(NULL, "message"), "parts"), i),
                 "the agent does not take %.*s: its card lists defaultInputModes",
                 (int)(type.n < 80 ? type.n : 80), type.p);
        dgm_op_fail(op, &err);
        return false;
    }
    dgm_strs accepted = q->configuration ? q->configuration->accepted_output_modes : (dgm_strs){0};
    bool any = !accepted.n || !o->output_modes.n;
    for (size_t i = 0; !any && i < o->output_modes.n; i++)
        any = dgm_takes_media_type(accepted, o->output_modes.at[i]);
    for (size_t i = 0; !any && i < accepted.n; i++) /* either side may say image/ and a star */
        any = dgm_takes_media_type(o->output_modes, accepted.at[i]);
    if (!any)
        dgm_op_fail_with(op, DGM_CONTENT_TYPE_NOT_SUPPORTED,
                         "the agent supports no type of acceptedOutputModes: its card lists "
                         "defaultOutputModes");
    return any;
}

static bool has_extensions(struct op *op)
{
    const char *missing = dgm_missing_extension(op);
    dgm_err err = {0};
    if (!missing)
        return true;
    dgm_fail(&err, DGM_EXTENSION_REQUIRED, NULL, "list %s in the header %s", missing,
             op_is_10(op) ? "A2A-Extensions" : "X-A2A-Extensions");
    dgm_op_fail(op, &err);
    return false;
}

static bool has_good_lists(struct op *op, const dgm_send_request *q)
{
    const dgm_at *message = DGM_AT_LIT(NULL, "message");
    const dgm_at *setting = DGM_AT_LIT(NULL, "configuration");
    const dgm_message *m = q->message;
    size_t modes = q->configuration ? q->configuration->accepted_output_modes.n : 0;
    size_t words = DGM_MAX_REQUEST_WORDS;
    dgm_err err = {0};
    if (!dgm_check_list(m->parts.n, DGM_MAX_REQUEST_PARTS, "request_parts",
                        DGM_AT_LIT(message, "parts"), &err) &&
        !dgm_check_list(m->extensions.n, words, "request_words", DGM_AT_LIT(message, "extensions"),
                        &err) &&
        !dgm_check_list(m->reference_task_ids.n, words, "request_words",
                        DGM_AT_LIT(message, "referenceTaskIds"), &err) &&
        !dgm_check_list(modes, words, "request_words", DGM_AT_LIT(setting, "acceptedOutputModes"),
                        &err))
        return true;
    dgm_op_fail(op, &err);
    return false;
}

static void run_send(struct op *op, const dgm_send_request *q)
{
    const dgm_send_configuration *c = q->configuration;
    dgm_send send = {.agent = op->front->o.agent,
                     .message = q->message,
                     .metadata = q->metadata,
                     .may_set = op->may_set,
                     .protocol = DGM_STR("a2a"),
                     .bytes = dgm_http_request_of(op->x)->body.n};
    if (!has_good_lists(op, q) || !dgm_a2a_set_tools(op, &send))
        return;
    if (c) {
        if (!is_length(op, c->history_length, DGM_AT_LIT(NULL, "configuration")))
            return;
        if (c->push_config) {
            dgm_op_fail_with(op, DGM_PUSH_NOT_SUPPORTED, "Push Notification is not supported");
            return;
        }
        op->return_immediately = c->return_immediately == DGM_TRUE;
        send.accepted_output_modes = c->accepted_output_modes;
    }
    op->task_id = q->message->task_id;
    if ((op->front->o.n_extensions && !has_extensions(op)) || !has_good_types(op, q) ||
        (q->tenant.n && !set_tenant(op, q->tenant)))
        return;
    send.owner = op->owner;
    if (op->return_immediately)
        send.answer_ms = FIRST_EVENT_MS;
    struct op *kept = dgm_op_release_request(op);
    kept->sent_at = uv_now(&dgm_loop_current()->uv);
    kept->sent = dgm_core_send(op->front->core, &send, a2a_ops_on_sent, kept);
    static const dgm_http_watcher waits = {.on_gone = on_left, .on_fin = on_left};
    dgm_http_watch(kept->x, &waits, kept);
}

/* ---- the others --------------------------------------------------------------------------------------------------------- */

static void on_ended(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    struct op *op = arg;
    if (code)
        dgm_op_fail(op, err);
    else
        dgm_op_stream(op, NULL, 0, snapshot);
}

static void on_subscribed(dgm_code code, dgm_log *log, uint64_t after, dgm_record *snapshot,
                          const dgm_err *err, void *arg)
{
    struct op *op = arg;
    if (!code)
        dgm_op_stream(op, log, after, snapshot);
    else if (code == DGM_UNSUPPORTED_OPERATION && !op_is_10(op)) /* 0.3 sends the Task and ends */
        dgm_core_get(op->front->core, op->owner, op->front->o.agent, op->task_id, on_ended, op);
    else
        dgm_op_fail(op, err);
}

static void run_on_task(struct op *op, const dgm_task_request *q)
{
    dgm_core *core = op->front->core;
    dgm_str agent = op->front->o.agent;
    op->task_id = q->task_id;
    dgm_front_note_task(op->x, q->task_id, 0);
    if (!is_length(op, q->history_length, NULL) || !set_tenant(op, q->tenant))
        return;
    op = dgm_op_release_request(op);
    if (op->method == DGM_METHOD_GET)
        dgm_core_get(core, op->owner, agent, op->task_id, a2a_ops_on_task, op);
    else if (op->method == DGM_METHOD_CANCEL)
        dgm_core_cancel(core, op->owner, agent, op->task_id, a2a_ops_on_task, op);
    else
        dgm_core_subscribe(core, op->owner, agent, op->task_id, op->cursor, on_subscribed, op);
}

static void run_list(struct op *op, const dgm_list_tasks_request *q)
{
    if (is_length(op, q->history_length, NULL) && set_tenant(op, q->tenant))
        dgm_op_list(op, q);
}

void dgm_op_run(struct op *op, void *request)
{
    /* the name of 1.0, for every binding */
    dgm_front_note_operation(op->x, dgm_a2a_methods[op->method].v10);
    switch (op->method) {
    case DGM_METHOD_SEND:
    case DGM_METHOD_STREAM: run_send(op, request); return;
    case DGM_METHOD_GET:
    case DGM_METHOD_CANCEL:
    case DGM_METHOD_SUBSCRIBE: run_on_task(op, request); return;
    case DGM_METHOD_LIST: run_list(op, request); return;
    case DGM_METHOD_EXTENDED_CARD: dgm_card_send_extended(op); return;
    case DGM_METHOD_PUSH_CREATE: /* not offered */
    case DGM_METHOD_PUSH_GET:
    case DGM_METHOD_PUSH_LIST:
    case DGM_METHOD_PUSH_DELETE:
    case DGM_METHOD_NONE: break;
    }
    dgm_op_fail_with(op, DGM_UNSUPPORTED_OPERATION, "This operation is not supported");
}
