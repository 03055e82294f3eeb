/* frontend/a2a/a2a_front.c - what lives on, and where a request begins. */
#include "frontend/a2a/a2a_front_int.h"

#include <stdio.h>
#include <stdlib.h>

#define KEEP_BYTES ((size_t)256 << 10) /* of a loop's buffer, between answers */

dgm_a2a_front *dgm_a2a_front_new(dgm_core *core, const dgm_a2a_options *o)
{
    dgm_a2a_front *f = dgm_xcalloc(1, sizeof *f);
    f->core = core;
    f->o = *o;
    for (size_t i = 0; i < DGM_MAX_LOOPS; i++)
        dgm_buf_init(&f->scratch[i].out, DGM_MAX_OUTPUT_BYTES);
    return f;
}

void dgm_a2a_front_free(dgm_a2a_front *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < DGM_MAX_LOOPS; i++) {
        dgm_buf_done(&f->scratch[i].out);
        dgm_arena_free(f->scratch[i].arena);
    }
    free(f);
}

struct scratch *front_scratch(dgm_a2a_front *f)
{
    dgm_loop *loop = dgm_loop_current();
    struct scratch *s = &f->scratch[loop ? dgm_loop_index(loop) : 0];
    dgm_buf_shrink(&s->out, KEEP_BYTES);
    dgm_buf_clear(&s->out);
    s->out.over = false;
    if (!s->arena)
        s->arena = dgm_arena_new();
    else
        dgm_arena_reset(s->arena);
    return s;
}

static struct op *new_op(dgm_a2a_front *f, dgm_http_exchange *x, const dgm_a2a_caller *who)
{
    dgm_arena *a = dgm_http_arena(x);
    struct op *op = dgm_new(a, struct op);
    op->front = f;
    op->x = x;
    op->arena = a;
    if (who)
        op->who = *who;
    op->extensions = DGM_STR("");
    return op;
}

static void not_that_method(struct op *op, const char *allowed, bool is_options)
{
    dgm_http_header allow = {DGM_STR("Allow"), dgm_str_from(allowed)};
    dgm_err err = {0};
    if (is_options) {
        dgm_http_respond(op->x, 204, (dgm_str){0}, &allow, 1, (dgm_str){0});
        return;
    }
    dgm_fail(&err, DGM_NO_SUCH_METHOD, NULL, "method not allowed: this path supports %s", allowed);
    op_fail_as(op, &err, 405, &allow, 1);
}

bool dgm_a2a_front_take(dgm_a2a_front *f, dgm_http_exchange *x, const dgm_a2a_caller *who,
                        dgm_str path)
{
    const dgm_http_request *r = dgm_http_request_of(x);
    struct route route = route_of(path);
    bool get = dgm_str_is(r->method, "GET"), post = dgm_str_is(r->method, "POST");
    bool head = dgm_str_is(r->method, "HEAD") && route.on_get != DGM_METHOD_SUBSCRIBE;
    dgm_method method = get || head                       ? route.on_get
                        : post                            ? route.on_post
                        : dgm_str_is(r->method, "DELETE") ? route.on_delete
                                                          : DGM_METHOD_NONE;
    if (route.kind == ROUTE_NONE || (!method && (get || head) && dgm_str_is(path, "/")))
        return false; /* a page at "/" is not ours to give */
    struct op *op = new_op(f, x, who);
    op->method = method;
    op->rest = route.kind != ROUTE_RPC;
    op->codec = codec_at(f, &route, r, op->arena);
    dgm_front_note_kind(x,
                        route.kind == ROUTE_CARD  ? DGM_FRONT_CARD
                        : route.kind == ROUTE_RPC ? DGM_FRONT_RPC
                                                  : DGM_FRONT_REST,
                        NULL);
    if (!method)
        not_that_method(op, dgm_a2a_front_allows(path), dgm_str_is(r->method, "OPTIONS"));
    else if (route.kind == ROUTE_CARD)
        card_give(op, r);
    else if (route.kind == ROUTE_RPC)
        rpc_take(op, r);
    else
        rest_take(op, r, &route);
    return true;
}

void dgm_a2a_front_refuse(dgm_a2a_front *f, dgm_http_exchange *x, dgm_str path, const dgm_err *err,
                          const dgm_http_header *headers, size_t n)
{
    const dgm_http_request *r = dgm_http_request_of(x);
    struct route route = route_of(path);
    struct op *op = new_op(f, x, NULL);
    op->rest = route.kind != ROUTE_RPC || !dgm_str_is(r->method, "POST");
    op->codec = codec_at(f, &route, r, op->arena);
    op_fail_as(op, err, dgm_code_http(err->code, f->o.errors_1_0_0), headers, n);
}

const char *dgm_a2a_front_allows(dgm_str path)
{
    struct route route = route_of(path);
    return dgm_str_is(path, "/") ? "GET, HEAD, POST, OPTIONS" : route_allows(&route);
}
