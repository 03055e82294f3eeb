/* backend/worker/worker_call.c - other requests to the worker; answers to requests of the worker. */
#include "backend/worker/worker_int.h"
#include "base/limits.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- to the worker ---------------------------------------------------------------------------------------------------------- */

static void call_on_closed(void *arg)
{
    dgm_worker_call *c = arg;
    dgm_worker_item_unref(&c->item);
}

static void call_close(dgm_worker_call *c)
{
    if (c->item.is_over)
        return;
    c->item.is_over = true;
    dgm_timer_stop(&c->limit);
    dgm_timer_close(&c->limit, call_on_closed, c);
}

void dgm_worker_call_receive(dgm_worker_call *c, const struct worker_delivery *d)
{
    if (d->kind != WORKER_ON_RESULT && d->kind != WORKER_ON_FAULT)
        return;
    call_close(c);
    c->on_answer(c->user, d->kind == WORKER_ON_RESULT ? d->result : NULL,
                 d->kind == WORKER_ON_FAULT ? &d->fault : NULL);
}

static void call_on_limit(void *arg)
{
    dgm_worker_call *c = arg;
    dgm_worker_fault fault = {.kind = DGM_WORKER_UNAVAILABLE,
                              .safe = DGM_STR("the agent did not answer in time")};
    dgm_worker_go_home(&c->item, dgm_worker_item_drop, (dgm_str){0});
    call_close(c);
    c->on_answer(c->user, NULL, &fault);
}

static void call_refuse(dgm_worker_call *c)
{
    dgm_arena *a = dgm_arena_new_small(512);
    struct worker_delivery *d = dgm_worker_delivery_new(&c->item, a, WORKER_ON_FAULT);
    d->fault = (dgm_worker_fault){
        .kind = DGM_WORKER_UNAVAILABLE,
        .safe = DGM_STR("the request is larger than the limit worker_line_bytes")};
    dgm_worker_deliver(d, false);
}

dgm_worker_call *dgm_worker_call_start(dgm_worker_pool *p, dgm_loop *loop, dgm_str thread,
                                       const char *method, dgm_str params, uint64_t timeout_ms,
                                       dgm_worker_on_answer on_answer, void *user)
{
    dgm_worker_call *c = dgm_xcalloc(1, sizeof *c);
    dgm_buf b;
    dgm_worker_item_init(&c->item, WORKER_CALL, p, loop, thread);
    c->on_answer = on_answer;
    c->user = user;
    dgm_timer_init(loop, &c->limit, call_on_limit, c);
    dgm_timer_start(&c->limit, timeout_ms);
    dgm_buf_init(&b, DGM_WORKER_LINE_BYTES);
    dgm_buf_printf(&b, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"%s\",\"params\":",
                   (unsigned long long)c->item.number, method);
    dgm_buf_add_str(&b, params);
    dgm_buf_add_lit(&b, "}\n");
    if (b.over)
        call_refuse(c);
    else
        dgm_worker_go_home(&c->item, dgm_worker_item_enqueue, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return c;
}

void dgm_worker_call_drop(dgm_worker_call *c)
{
    dgm_worker_go_home(&c->item, dgm_worker_item_drop, (dgm_str){0});
    call_close(c);
}

/* ---- requests of the worker --------------------------------------------------------------------------------------------------- */

struct worker_request {
    dgm_worker_request head; /* first: its handler has a pointer to it */
    struct worker_slot *slot;
    uint64_t generation; /* of the process that waits for the answer */
    dgm_str id;          /* as JSON */
};

/* An answer on its way to the home loop. */
struct worker_answer {
    struct worker_slot *slot;
    uint64_t generation;
    dgm_buf line;
};

dgm_worker_request *dgm_worker_request_new(struct worker_slot *s, dgm_arena *a,
                                           const dgm_json *line)
{
    struct worker_request *r = dgm_new(a, struct worker_request);
    r->head.method = dgm_json_str_member(line, "method");
    r->head.params = dgm_json_get(line, DGM_STR("params"));
    r->head.run = dgm_json_str_member(r->head.params, "run");
    r->head.arena = a;
    r->head.loop = s->home;
    r->slot = s;
    r->generation = s->generation;
    r->id = dgm_json_text_in(a, dgm_json_get(line, DGM_STR("id")));
    s->n_requests++;
    return &r->head;
}

static void answer_arrive(void *arg)
{
    struct worker_answer *w = arg;
    struct worker_slot *s = w->slot;
    if (w->generation == s->generation) {
        s->n_requests--;
        dgm_worker_slot_send(s, dgm_buf_str(&w->line));
    }
    dgm_buf_done(&w->line);
    free(w);
}

static struct worker_answer *answer_new(const struct worker_request *r)
{
    struct worker_answer *w = dgm_xcalloc(1, sizeof *w);
    w->slot = r->slot;
    w->generation = r->generation;
    dgm_buf_init(&w->line, DGM_WORKER_LINE_BYTES);
    dgm_buf_add_lit(&w->line, "{\"jsonrpc\":\"2.0\",\"id\":");
    dgm_buf_add_str(&w->line, r->id);
    return w;
}

static void answer_send(struct worker_request *r, struct worker_answer *w)
{
    struct worker_slot *s = r->slot;
    dgm_buf_add_lit(&w->line, "}\n");
    dgm_arena_free(r->head.arena); /* the request is in it */
    if (dgm_loop_current() == s->home)
        answer_arrive(w);
    else
        dgm_loop_post(s->home, answer_arrive, w);
}

static void answer_put_error(dgm_buf *b, int code, const char *message)
{
    dgm_buf_printf(b, ",\"error\":{\"code\":%d,\"message\":", code);
    dgm_json_put_str(b, dgm_str_from(message));
    dgm_buf_add_char(b, '}');
}

void dgm_worker_respond(dgm_worker_request *request, dgm_str result)
{
    struct worker_request *r = (struct worker_request *)(void *)request;
    struct worker_answer *w = answer_new(r);
    size_t n = w->line.n;
    dgm_buf_add_lit(&w->line, ",\"result\":");
    dgm_buf_add_str(&w->line, result);
    if (w->line.over || w->line.n + 2 > w->line.max) {
        w->line.over = false;
        w->line.n = n;
        answer_put_error(&w->line, DGM_WORKER_BAD_LINE, "the result is larger than maxLineBytes");
    }
    answer_send(r, w);
}

void dgm_worker_respond_error(dgm_worker_request *request, int code, const char *fmt, ...)
{
    struct worker_request *r = (struct worker_request *)(void *)request;
    struct worker_answer *w = answer_new(r);
    char message[500];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    answer_put_error(&w->line, code, message);
    answer_send(r, w);
}
