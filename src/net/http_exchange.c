/* net/http_exchange.c - a request and its answer. */
#include "net/http_int.h"

#include "base/spare.h"

#include <assert.h>
#include <stdlib.h>

#define REQUEST_BYTES ((size_t)3008) /* a message of a few words, read and answered */
#define SMALL_ARENA_BYTES                                                                          \
    ((size_t)496)                /* the first block of the arena after a request was forgotten */
#define MORE_BYTES ((size_t)176) /* likewise of allocations that `room` is too small for */
#define COPY_BYTES ((size_t)4 << 10) /* up to here a copy is cheaper than a part of its own */

/* ---- states ------------------------------------------------------------------------------------------------- */

#define X(state, name, may_become) name,
static const char *const exchange_state_names[] = {HTTP_EXCHANGE_STATES(X)};
#undef X
#define X(state, name, may_become) [state] = (may_become),
static const uint16_t exchange_may_become[] = {HTTP_EXCHANGE_STATES(X)};
#undef X
const dgm_machine dgm_http_exchange_machine = {.name = "exchange",
                                               .states = exchange_state_names,
                                               .may_become = exchange_may_become,
                                               .n = HTTP_N_EXCHANGE_STATES};

/* The only writer of x->state. */
static void exchange_set_state(dgm_http_exchange *x, enum http_exchange_state to)
{
    dgm_loop_trace(x->shard->loop, &dgm_http_exchange_machine, x->number, x->state, to);
    x->state = (uint8_t)to;
}

/* ---- exchanges: being read ------------------------------------------------------------------------------------ */

static const dgm_http_watcher watches_nothing;

void dgm_http_exchange_new(http_conn *c)
{
    http_shard *s = c->shard;
    dgm_http_exchange *x = dgm_spare_alloc_zeroed(sizeof *x);
    x->arena = dgm_arena_new_small(REQUEST_BYTES);
    x->watcher = &watches_nothing;
    x->shard = s;
    x->c = c;
    x->number = c->number;
    x->turn = (dgm_loop_turn){.fn = dgm_http_exchange_turn_end, .arg = x};
    x->in = dgm_arena_alloc_raw(x->arena, sizeof *x->in);
    dgm_http1_init(x->in, x->arena, s->server->max_body);
    x->in->stops_at_head = true;
    c->x = x;
}

void dgm_http_exchange_free(dgm_http_exchange *x)
{
    dgm_arena_free(x->retired);
    dgm_arena_free(x->arena);
    if (x->charged)
        dgm_http_uncharge(x);
    dgm_arena_free(x->more);
    dgm_spare_free(x, sizeof *x);
}

void dgm_http_exchange_drop(dgm_http_exchange *x, int status)
{
    const dgm_http_handler *h = &x->shard->server->handler;
    if (x->state == EXCHANGE_OFFERED && h->on_answered)
        h->on_answered(h->user, x, status, 0);
    exchange_set_state(x, EXCHANGE_ENDED);
    dgm_http_exchange_free(x);
}

/* An exchange that has ended is freed at the end of the turn, so that whoever ended it may still read it, and not before
 * the kernel has the bytes that it borrowed. */
void dgm_http_exchange_turn_end(void *arg)
{
    dgm_http_exchange *x = arg;
    const dgm_http_watcher *w = x->watcher;
    if (x->retired && !x->borrowed) {
        dgm_arena_free(x->retired);
        x->retired = NULL;
        if (x->charged)
            dgm_http_uncharge(x);
    }
    if (x->state == EXCHANGE_ENDED) {
        if (!x->borrowed)
            dgm_http_exchange_free(x);
    } else if (!x->c) {
        if (w->on_gone && !x->reported_gone) {
            x->reported_gone = true;
            w->on_gone(x->arg);
        }
    } else if (w->on_fin && x->c->eof && !x->reported_fin) {
        x->reported_fin = true;
        w->on_fin(x->arg);
    } else if (w->on_drain && x->shard->draining && !x->reported_drain) {
        x->reported_drain = true;
        w->on_drain(x->arg);
    }
}

static void on_piece_dropped(void *arg)
{
    dgm_http_exchange *x = arg;
    if (--x->borrowed == 0 && (x->state == EXCHANGE_ENDED || x->forgotten))
        dgm_loop_at_turn_end(x->shard->loop, &x->turn);
}

static void exchange_end(dgm_http_exchange *x)
{
    const dgm_http_handler *h = &x->shard->server->handler;
    http_conn *c = x->c;
    if (h->on_answered)
        h->on_answered(h->user, x, x->status, x->sent);
    exchange_set_state(x, EXCHANGE_ENDED);
    x->watcher = &watches_nothing;
    if (c) {
        x->c = NULL;
        c->x = NULL;
        c->restart = true;
        dgm_http_conn_set_state(c, x->keep_alive && !c->shard->draining ? CONN_IDLE : CONN_CLOSING);
        dgm_loop_at_turn_end(c->shard->loop, &c->turn);
    }
    dgm_loop_at_turn_end(x->shard->loop, &x->turn);
}

void dgm_http_report_refusal(http_shard *s, int status, const char *why)
{
    if (s->server->handler.on_refused)
        s->server->handler.on_refused(s->server->handler.user, status, why);
}

/* Answers a connection that goes no further; there may be no request. */
void dgm_http_conn_refuse(http_conn *c, int status, const char *why)
{
    dgm_str text = dgm_str_from(why);
    if (!c->x || c->x->state == EXCHANGE_READING)
        dgm_http_report_refusal(c->shard, status, why);
    dgm_http_put_head(c, &(struct http_head){.status = status,
                                             .type = DGM_STR("text/plain; charset=utf-8"),
                                             .framing = BY_LENGTH,
                                             .length = text.n + 1,
                                             .connection = "close"});
    dgm_out_add(&c->out, text);
    dgm_out_add(&c->out, DGM_STR("\n"));
    if (c->x)
        dgm_http_exchange_drop(c->x, status);
    c->x = NULL;
    dgm_http_conn_set_state(c, CONN_CLOSING);
    dgm_loop_at_turn_end(c->shard->loop, &c->turn);
}

/* The handler gets it in this state. */
static dgm_http_exchange *exchange_show(http_conn *c, enum http_exchange_state state)
{
    dgm_http_exchange *x = c->x;
    x->in->request.is_loopback = c->is_loopback;
    x->in->request.is_tls = c->tls;
    x->sent = 0;
    x->is_head = x->in->parser.method == HTTP_HEAD;
    x->is_http10 = x->in->is_http10;
    x->keep_alive = x->in->keep_alive;
    exchange_set_state(x, state);
    return x;
}

/* A request that stays counts with the memory that it really takes. */
void dgm_http_exchange_deliver(http_conn *c)
{
    const dgm_http_handler *h = &c->shard->server->handler;
    dgm_http_exchange *x = exchange_show(c, EXCHANGE_OPEN);
    dgm_http_conn_set_state(c, CONN_BUSY);
    h->on_request(h->user, x, &x->in->request);
    if (x->state != EXCHANGE_ENDED && !x->forgotten)
        dgm_http_charge_actual(x);
}

void dgm_http_exchange_queue(http_conn *c)
{
    http_shard *s = c->shard;
    dgm_http_conn_set_state(c, CONN_QUEUED);
    if (!s->large)
        dgm_timer_start(&s->next_large, 1);
    c->x->queued = NULL;
    *s->large_end = c->x;
    s->large_end = &c->x->queued;
}

void dgm_http_exchange_unqueue(dgm_http_exchange *x)
{
    http_shard *s = x->shard;
    dgm_http_exchange **at = &s->large;
    while (*at != x)
        at = &(*at)->queued;
    *at = x->queued;
    if (s->large_end == &x->queued)
        s->large_end = at;
}

void dgm_http_on_next_large(void *arg)
{
    http_shard *s = arg;
    uint64_t began = uv_hrtime();
    while (s->large && uv_hrtime() - began < LARGE_NS) {
        dgm_http_exchange *x = s->large;
        dgm_http_exchange_unqueue(x);
        /* for what follows from the response, and for the bytes behind the request */
        dgm_loop_at_turn_end(s->loop, &x->c->turn);
        dgm_http_exchange_deliver(x->c);
    }
    if (s->large)
        dgm_timer_start(&s->next_large, 1);
}

void dgm_http_refuse_body(http_conn *c, dgm_http_refusal refusal, const char *why)
{
    const dgm_http_handler *h = &c->shard->server->handler;
    if (!h->on_body_refused) {
        dgm_http_conn_refuse(c, refusal == DGM_HTTP_TOO_LARGE ? 413 : 503, why);
        return;
    }
    dgm_http_exchange *x = exchange_show(c, EXCHANGE_OPEN);
    dgm_http_conn_set_state(c, CONN_BUSY);
    x->keep_alive = false; /* what comes next is its body */
    x->in->request.body = (dgm_str){0};
    h->on_body_refused(h->user, x, &x->in->request, refusal);
}

bool dgm_http_exchange_admit(http_conn *c)
{
    const dgm_http_handler *h = &c->shard->server->handler;
    dgm_http_exchange *x = c->x;
    if (h->on_head) {
        exchange_show(c, EXCHANGE_OFFERED);
        x->keep_alive = false; /* the bytes that come next are its body */
        h->on_head(h->user, x, &x->in->request);
        if (x->state == EXCHANGE_ENDED)
            return false;
        assert(x->state == EXCHANGE_OFFERED);
    }
    if (!dgm_http1_set_max_body(x->in, x->in->max_body)) {
        dgm_http_refuse_body(c, DGM_HTTP_TOO_LARGE, "the body is too large (http_body_bytes)");
        return false;
    }
    return dgm_http_charge_body(c);
}

/* ---- public: answering ---------------------------------------------------------------------------------------------- */

static dgm_arena *exchange_more(dgm_http_exchange *x)
{
    if (!x->more)
        x->more = dgm_arena_new_small(MORE_BYTES);
    return x->more;
}

dgm_arena *dgm_http_arena(dgm_http_exchange *x)
{
    if (!x->arena)
        x->arena = dgm_arena_new_small(SMALL_ARENA_BYTES);
    return x->arena;
}

void *dgm_http_alloc(dgm_http_exchange *x, size_t n)
{
    size_t size = (n + KEEP_ALIGN - 1) & ~(size_t)(KEEP_ALIGN - 1);
    if (n > KEEP_BYTES || size > (size_t)KEEP_BYTES - x->kept - x->kept_texts)
        return dgm_arena_alloc(exchange_more(x), n);
    void *p = x->room + x->kept;
    x->kept = (uint16_t)(x->kept + size);
    return p;
}

const char *dgm_http_keep_text(dgm_http_exchange *x, dgm_str text)
{
    if (text.n >= (size_t)KEEP_BYTES - x->kept - x->kept_texts)
        return text.n ? dgm_arena_dup(exchange_more(x), text).p : "";
    x->kept_texts = (uint16_t)(x->kept_texts + text.n + 1);
    char *p = x->room + KEEP_BYTES - x->kept_texts; /* all of room is zeroed */
    return text.n ? memcpy(p, text.p, text.n) : p;
}

/* ---- public: requests ----------------------------------------------------------------------------------------------- */

static dgm_http_request *exchange_rebuild_request(dgm_http_exchange *x)
{
    struct http_left *l = x->left;
    if (l->request)
        return l->request;
    l->request = dgm_new(exchange_more(x), dgm_http_request);
    *l->request = (dgm_http_request){
        .method = dgm_str_from(l->method),
        .target = {l->target, l->target_n},
        .path = l->has_path ? (dgm_str){l->target + l->path_at, l->path_n} : DGM_STR("/"),
        .query = {l->has_query ? l->target + l->query_at : NULL, l->query_n},
        .body = DGM_STR(""),
        .is_loopback = l->is_loopback,
        .is_tls = l->is_tls};
    return l->request;
}

const dgm_http_request *dgm_http_request_of(dgm_http_exchange *x)
{
    return x->forgotten ? exchange_rebuild_request(x) : &x->in->request;
}

/* Headers that were added for a response that has not been sent are in the arena, too. */
static void exchange_copy_headers(dgm_http_exchange *x)
{
    dgm_http_header *all = x->n_also ? dgm_http_alloc(x, x->n_also * sizeof *all) : NULL;
    for (size_t i = 0; i < x->n_also; i++) {
        dgm_str name = x->also[i].name, value = x->also[i].value;
        all[i] = (dgm_http_header){{dgm_http_keep_text(x, name), name.n},
                                   {dgm_http_keep_text(x, value), value.n}};
    }
    x->also = all;
}

static void exchange_free_arena(void *arena)
{
    dgm_arena_free(arena);
}

void dgm_http_forget_request(dgm_http_exchange *x)
{
    assert(x->state != EXCHANGE_ENDED);
    if (!x->forgotten) {
        const dgm_http_request *r = &x->in->request;
        if (x->state < EXCHANGE_RESPONDING && x->n_also)
            exchange_copy_headers(x);
        _Static_assert(DGM_MAX_HTTP_HEADER_BYTES <= UINT16_MAX, "a target has more bytes");
        size_t size = offsetof(struct http_left, target) + r->target.n;
        struct http_left *l = dgm_http_alloc(x, size > sizeof *l ? size : sizeof *l);
        *l = (struct http_left){.method = r->method.p, /* llhttp's own */
                                .target_n = (uint16_t)r->target.n,
                                .is_loopback = r->is_loopback,
                                .is_tls = r->is_tls};
        memcpy(l->target, r->target.p, r->target.n);
        /* the path of a target without one is not in it */
        l->has_path = (uintptr_t)r->path.p - (uintptr_t)r->target.p <= r->target.n;
        l->path_at = l->has_path ? (uint16_t)(r->path.p - r->target.p) : 0;
        l->path_n = (uint16_t)r->path.n;
        l->has_query = r->query.p;
        l->query_at = l->has_query ? (uint16_t)(r->query.p - r->target.p) : 0;
        l->query_n = (uint16_t)r->query.n;
        x->left = l;
        x->forgotten = true;
    }
    if (x->retired && x->arena) { /* twice in a turn */
        dgm_arena_defer(x->retired, exchange_free_arena, x->arena);
    } else if (x->arena) {
        x->retired = x->arena;
    }
    x->arena = NULL;
    dgm_loop_at_turn_end(x->shard->loop, &x->turn);
}

/* ---- public: answers ------------------------------------------------------------------------------------------------ */

void dgm_http_add_headers(dgm_http_exchange *x, const dgm_http_header *headers, size_t n)
{
    assert(x->state < EXCHANGE_RESPONDING);
    if (x->n_also) {
        dgm_http_header *all = dgm_new_n(dgm_http_arena(x), dgm_http_header, x->n_also + n);
        memcpy(all, x->also, x->n_also * sizeof *all);
        memcpy(all + x->n_also, headers, n * sizeof *all);
        headers = all;
        n += x->n_also;
    }
    x->also = headers;
    x->n_also = (uint16_t)n;
}

void *dgm_http_user(const dgm_http_exchange *x)
{
    return x->shard->server->handler.user;
}

void **dgm_http_tag(dgm_http_exchange *x)
{
    return &x->tag;
}

static void exchange_start_response(dgm_http_exchange *x, int status, dgm_str type,
                                    const dgm_http_header *headers, size_t n,
                                    enum http_framing framing, size_t length)
{
    assert(status >= 200 && status <= 999);
    exchange_set_state(x, EXCHANGE_RESPONDING);
    x->status = (uint16_t)status;
    x->no_body = x->is_head || status == 204 || status == 304;
    x->keep_alive &= framing != BY_CLOSE && !x->shard->draining;
    x->chunked = framing == BY_CHUNKS && !x->no_body;
    if (x->c)
        dgm_http_put_head(
            x->c, &(struct http_head){.status = status,
                                      .type = type,
                                      .framing = x->no_body && !x->is_head ? NO_BODY : framing,
                                      .length = length,
                                      .connection = !x->keep_alive ? "close"
                                                    : x->is_http10 ? "keep-alive"
                                                                   : NULL,
                                      .headers = {{x->also, x->n_also}, {headers, n}}});
}

void dgm_http_respond(dgm_http_exchange *x, int status, dgm_str content_type,
                      const dgm_http_header *headers, size_t n, dgm_str body)
{
    exchange_start_response(x, status, content_type, headers, n, BY_LENGTH, body.n);
    if (x->c && !x->no_body) {
        dgm_out_add(&x->c->out, body);
        x->sent = body.n;
    }
    exchange_end(x);
}

void dgm_http_respond_shared(dgm_http_exchange *x, int status, dgm_str content_type,
                             const dgm_http_header *headers, size_t n, dgm_str body,
                             dgm_loop_fn release, void *arg)
{
    bool is_sent = x->c && !x->is_head && body.n > COPY_BYTES;
    if (!is_sent) {
        dgm_http_respond(x, status, content_type, headers, n, body);
        release(arg);
        return;
    }
    exchange_start_response(x, status, content_type, headers, n, BY_LENGTH, body.n);
    x->borrowed++;
    dgm_out_share(&x->c->out, body, release, arg, on_piece_dropped, x);
    x->sent = body.n;
    exchange_end(x);
}

void dgm_http_begin(dgm_http_exchange *x, int status, dgm_str content_type,
                    const dgm_http_header *headers, size_t n)
{
    exchange_start_response(x, status, content_type, headers, n,
                            x->is_http10 ? BY_CLOSE : BY_CHUNKS, 0);
    if (x->c)
        dgm_loop_at_turn_end(x->shard->loop, &x->c->turn);
}

void dgm_http_write(dgm_http_exchange *x, dgm_str bytes)
{
    assert(x->state == EXCHANGE_RESPONDING);
    if (!x->c || x->no_body || !bytes.n)
        return;
    if (x->chunked)
        dgm_out_open_chunk(&x->c->out);
    dgm_out_add(&x->c->out, bytes);
    x->sent += bytes.n;
    x->above |= dgm_http_conn_backlog(x->c) > DGM_HTTP_BACKLOG_MARK;
    dgm_loop_at_turn_end(x->shard->loop, &x->c->turn);
}

void dgm_http_exchange_probe(dgm_http_exchange *x)
{
    if (!x->c || !x->c->eof || x->c->was_probed || !x->watcher->ping.n)
        return;
    x->c->was_probed = true;
    dgm_http_write(x, x->watcher->ping);
}

void dgm_http_write_shared(dgm_http_exchange *x, dgm_str bytes, dgm_loop_fn release, void *arg)
{
    if (!x->c || x->no_body || bytes.n <= COPY_BYTES) {
        dgm_http_write(x, bytes);
        if (release)
            release(arg);
        return;
    }
    assert(x->state == EXCHANGE_RESPONDING);
    if (x->chunked)
        dgm_out_open_chunk(&x->c->out);
    x->borrowed++;
    dgm_out_share(&x->c->out, bytes, release, arg, on_piece_dropped, x);
    x->sent += bytes.n;
    x->above |= dgm_http_conn_backlog(x->c) > DGM_HTTP_BACKLOG_MARK;
    dgm_loop_at_turn_end(x->shard->loop, &x->c->turn);
}

void dgm_http_end(dgm_http_exchange *x)
{
    assert(x->state != EXCHANGE_ENDED);
    if (x->state != EXCHANGE_RESPONDING && x->c) {
        dgm_http_respond(x, 500, DGM_STR("text/plain; charset=utf-8"), NULL, 0,
                         DGM_STR("no answer\n"));
        return;
    }
    if (x->c && x->chunked) {
        dgm_out_close_chunk(&x->c->out);
        dgm_out_add(&x->c->out, DGM_STR("0\r\n\r\n"));
    }
    exchange_end(x);
}

void dgm_http_cut(dgm_http_exchange *x)
{
    assert(x->state == EXCHANGE_RESPONDING);
    if (x->c && x->chunked)
        dgm_out_close_chunk(&x->c->out);
    x->keep_alive = false;
    exchange_end(x);
}

size_t dgm_http_backlog(const dgm_http_exchange *x)
{
    return x->c ? dgm_http_conn_backlog(x->c) : 0;
}

void dgm_http_watch(dgm_http_exchange *x, const dgm_http_watcher *w, void *arg)
{
    x->watcher = w = w ? w : &watches_nothing;
    x->arg = arg;
    x->reported_gone = x->reported_fin = x->reported_drain = false;
    if (!x->c ? w->on_gone != NULL
              : (w->on_fin && x->c->eof) || (w->on_drain && x->shard->draining))
        dgm_loop_at_turn_end(x->shard->loop, &x->turn);
    if (x->c && w->ping.n)
        dgm_loop_at_turn_end(x->shard->loop, &x->c->turn); /* which sets the timer */
    dgm_http_exchange_probe(x);
}
