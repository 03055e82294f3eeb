/*
 * net/http_timer.c - who waited too long: one list per kind, since all of a kind wait equally long, and one
 * timer of libuv per loop.
 */
#include "net/http_int.h"

static uint64_t wait_of(const http_shard *s, enum http_timer kind)
{
    const dgm_http_times *t = &s->server->times;
    switch (kind) {
    case T_HEADERS: return t->headers_ms;
    case T_BODY: return t->body_ms;
    case T_IDLE: return t->idle_ms;
    case T_WRITE: return t->write_ms;
    case T_LINGER: return t->linger_ms;
    case T_PING: return t->ping_ms;
    case T_NONE:
    case N_TIMERS: break;
    }
    return 0;
}

static void arm(http_shard *s, uint64_t when)
{
    uint64_t now = uv_now(dgm_loop_uv(s->loop));
    if (when >= s->armed || s->closing)
        return;
    s->armed = when;
    dgm_timer_start(&s->tick, when > now ? when - now : 1);
}

void dgm_http_conn_set_timer(http_conn *c, enum http_timer kind)
{
    http_shard *s = c->shard;
    if (c->timer == kind && !c->restart)
        return;
    c->restart = false;
    if (c->timer) {
        struct http_timers *t = &s->timers[c->timer];
        *(c->t_prev ? &c->t_prev->t_next : &t->first) = c->t_next;
        *(c->t_next ? &c->t_next->t_prev : &t->last) = c->t_prev;
    }
    c->timer = kind;
    if (kind) {
        struct http_timers *t = &s->timers[kind];
        c->deadline = uv_now(dgm_loop_uv(s->loop)) + wait_of(s, kind);
        c->t_prev = t->last;
        c->t_next = NULL;
        *(t->last ? &t->last->t_next : &t->first) = c;
        t->last = c;
        arm(s, c->deadline);
    }
}

void dgm_http_on_tick(void *arg)
{
    http_shard *s = arg;
    uint64_t now = uv_now(dgm_loop_uv(s->loop)), next = UINT64_MAX;
    s->armed = UINT64_MAX;
    for (enum http_timer kind = T_HEADERS; kind < N_TIMERS; kind++) {
        http_conn *c;
        while ((c = s->timers[kind].first) && c->deadline <= now) {
            if ((kind == T_HEADERS || kind == T_BODY) && c->x) {
                dgm_http_conn_refuse(c, 408,
                                     kind == T_BODY
                                         ? "timeout: the body of the request is incomplete"
                                         : "timeout: the head of the request is incomplete");
                dgm_http_conn_set_timer(c, T_WRITE);
            } else if (kind == T_PING) {
                dgm_http_conn_set_timer(c, T_NONE); /* the end of the turn starts it again */
                if (c->x) /* else it ended a moment ago, and that turn end comes */
                    dgm_http_write(c->x, (dgm_str){c->x->ping, c->x->ping_n});
            } else {
                dgm_http_conn_lost(c);
            }
        }
        if (c && c->deadline < next)
            next = c->deadline;
    }
    arm(s, next);
}
