/*
 * app/load/load_run.c - all connections on one epoll: warm-up, then the measured time.
 *
 * With a rate, requests have times at which they should begin, whether a connection is free or not, and
 * latencies count from there: a server that stalls is not spared the requests it kept waiting.
 */
#include "app/load/load_int.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS 256
#define GIVE_UP_NS 30000000000u /* nothing at all came for so long */

struct runner {
    struct load *l;
    struct conn *conns;
    int epoll;
    struct conn **idle; /* with a rate: those that wait for their turn */
    size_t n_idle;
    uint64_t begun, next_ns, step_ns; /* with a rate */
    uint64_t warm_until, until, last_news;
    size_t n_held;
    bool stopping;
};

/* ---- requests -------------------------------------------------------------------------------------------- */

static void watch(struct runner *r, struct conn *c, bool added, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = c};
    epoll_ctl(r->epoll, added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, &e);
}

static bool reopen(struct runner *r, struct conn *c)
{
    struct load *l = r->l;
    dgm_load_conn_close(c);
    l->reconnects++;
    if (!dgm_load_conn_open(c, l))
        return false;
    watch(r, c, false, EPOLLIN | EPOLLOUT | EPOLLET);
    return true;
}

static bool may_begin(const struct runner *r)
{
    return !r->stopping &&
           !(r->l->max_requests && r->l->measuring && r->begun >= r->l->max_requests);
}

static void broken(struct runner *r, struct conn *c)
{
    if (r->stopping || r->l->errors > 1000 || !reopen(r, c))
        dgm_load_conn_close(c);
}

static void load_run_begin(struct runner *r, struct conn *c, uint64_t now)
{
    if (!may_begin(r)) {
        c->state = CONN_IDLE;
        return;
    }
    if (r->step_ns) {
        c->state = CONN_IDLE;
        r->idle[r->n_idle++] = c;
        return;
    }
    r->begun++;
    dgm_load_conn_start(c, now);
    if (dgm_load_conn_write(c) == CONN_BROKEN)
        broken(r, c);
}

static void begin_due(struct runner *r, uint64_t now)
{
    while (r->step_ns && r->n_idle && r->next_ns <= now && may_begin(r)) {
        struct conn *c = r->idle[--r->n_idle];
        dgm_load_conn_start(c, r->next_ns);
        r->begun++;
        r->next_ns += r->step_ns;
        if (dgm_load_conn_write(c) == CONN_BROKEN)
            broken(r, c);
    }
}

static void answered(struct runner *r, struct conn *c, uint64_t now)
{
    struct load *l = r->l;
    bool good = dgm_load_conn_check(c);
    if (good && l->measuring) {
        l->requests++;
        dgm_load_hist_add(&l->latencies, now - c->began);
    }
    if (!c->keeps_open) {
        broken(r, c);
        return;
    }
    load_run_begin(r, c, now);
}

static void load_run_on_event(struct runner *r, struct conn *c, uint32_t events)
{
    enum conn_news news = CONN_GOES_ON;
    uint64_t now;
    if (c->state == CONN_CLOSED)
        return;
    if (c->state == CONN_CONNECTING) {
        int why = 0;
        socklen_t n = sizeof why;
        if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
            return;
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &why, &n);
        if (why) {
            dgm_load_fail(r->l, "cannot connect to %s: %s", r->l->url, strerror(why));
            dgm_load_conn_close(c);
            return;
        }
        load_run_begin(r, c, dgm_load_now_ns());
        return;
    }
    if (c->state == CONN_SENDING && (events & EPOLLOUT))
        news = dgm_load_conn_write(c);
    if (news == CONN_GOES_ON && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) &&
        (c->state == CONN_HEAD || c->state == CONN_BODY)) {
        uint64_t events_before = c->n_events;
        news = dgm_load_conn_read(c);
        if (r->l->mode == MODE_HOLD && events_before < 2 && c->n_events >= 2)
            r->n_held++;
    }
    now = dgm_load_now_ns();
    r->last_news = now;
    if (news == CONN_ANSWERED)
        answered(r, c, now);
    else if (news == CONN_BROKEN)
        broken(r, c);
}

/* ---- turns ------------------------------------------------------------------------------------------------- */

static int wait_ms(const struct runner *r, uint64_t now)
{
    uint64_t until = r->l->measuring ? r->until : r->warm_until;
    if (r->step_ns && r->n_idle && r->next_ns < until)
        until = r->next_ns;
    if (until <= now)
        return 0;
    uint64_t ms = (until - now + 999999) / 1000000;
    return ms > 1000 ? 1000 : (int)ms;
}

static bool turn(struct runner *r, int ms)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(r->epoll, events, EVENTS, ms);
    if (n < 0 && errno != EINTR)
        return false;
    for (int i = 0; i < n; i++)
        load_run_on_event(r, events[i].data.ptr, events[i].events);
    return true;
}

static bool all_closed(const struct runner *r)
{
    for (size_t i = 0; i < r->l->n_connections; i++) {
        if (r->conns[i].state != CONN_CLOSED)
            return false;
    }
    return true;
}

static void start_measuring(struct runner *r, uint64_t now)
{
    struct load *l = r->l;
    l->measuring = true;
    l->began_ns = now;
    l->own_cpu = dgm_load_own_cpu_ns();
    l->server_cpu = dgm_load_cpu_ns(l->pid);
    l->bytes = 0;
    r->begun = 0;
    r->until = now + (uint64_t)(l->seconds * 1e9);
    if (l->max_requests)
        r->until = UINT64_MAX;
}

static void stop_measuring(struct load *l)
{
    l->ended_ns = dgm_load_now_ns();
    l->own_cpu = dgm_load_own_cpu_ns() - l->own_cpu;
    l->server_cpu = l->pid ? dgm_load_cpu_ns(l->pid) - l->server_cpu : 0;
    l->measuring = false;
}

static bool is_done(const struct runner *r, uint64_t now)
{
    const struct load *l = r->l;
    if (now >= r->until || all_closed(r))
        return true;
    return l->max_requests && l->requests + l->errors >= l->max_requests;
}

static void run_load(struct runner *r)
{
    struct load *l = r->l;
    uint64_t now = dgm_load_now_ns();
    r->last_news = now;
    r->warm_until = now + (uint64_t)(l->warmup * 1e9);
    r->next_ns = now;
    for (;;) {
        now = dgm_load_now_ns();
        if (!l->measuring && now >= r->warm_until)
            start_measuring(r, now);
        if (l->measuring && is_done(r, now))
            break;
        if (now - r->last_news > GIVE_UP_NS && now > r->last_news) {
            dgm_load_fail(l, "no data from %s for 30 seconds", l->url);
            break;
        }
        begin_due(r, now);
        if (!turn(r, wait_ms(r, now)))
            break;
    }
    r->stopping = true;
    stop_measuring(l);
}

/* Opens streams in small groups, so that no queue of pending connections overflows; then looks. */
static void run_hold(struct runner *r)
{
    struct load *l = r->l;
    uint64_t patience;
    for (size_t i = 0; i < l->n_connections; i++) {
        if (!dgm_load_conn_open(&r->conns[i], l))
            return;
        watch(r, &r->conns[i], false, EPOLLIN | EPOLLOUT | EPOLLET);
        patience = dgm_load_now_ns() + GIVE_UP_NS;
        while (i + 1 - r->n_held > 64 && dgm_load_now_ns() < patience && !l->errors)
            turn(r, 100);
    }
    patience = dgm_load_now_ns() + GIVE_UP_NS;
    while (r->n_held < l->n_connections && dgm_load_now_ns() < patience && !l->errors)
        turn(r, 100);
    if (r->n_held < l->n_connections)
        dgm_load_fail(l, "%zu of %zu streams have started", r->n_held, l->n_connections);
    l->began_ns = dgm_load_now_ns();
    l->own_cpu = dgm_load_own_cpu_ns();
    l->server_cpu = dgm_load_cpu_ns(l->pid);
    patience = dgm_load_now_ns() + (uint64_t)(l->seconds * 1e9);
    while (dgm_load_now_ns() < patience && !l->errors)
        turn(r, 100);
    l->rss_after = dgm_load_rss_anon_bytes(l->pid);
    for (size_t i = 0; i < l->n_connections; i++) {
        l->requests += r->conns[i].state == CONN_BODY;
        l->events += r->conns[i].n_events;
    }
    stop_measuring(l);
}

bool dgm_load_run(struct load *l)
{
    struct runner r = {.l = l,
                       .conns = dgm_xcalloc(l->n_connections, sizeof *r.conns),
                       .idle = dgm_xcalloc(l->n_connections, sizeof *r.idle),
                       .epoll = epoll_create1(EPOLL_CLOEXEC),
                       .step_ns = l->rate > 0 ? (uint64_t)(1e9 / l->rate) : 0};
    bool good = r.epoll >= 0;
    l->rss_before = dgm_load_rss_anon_bytes(l->pid);
    for (size_t i = 0; good && i < l->n_connections; i++)
        r.conns[i].fd = -1;
    if (good && l->mode == MODE_HOLD) {
        run_hold(&r);
    } else if (good) {
        for (size_t i = 0; i < l->n_connections && !l->errors; i++) {
            if (dgm_load_conn_open(&r.conns[i], l))
                watch(&r, &r.conns[i], false, EPOLLIN | EPOLLOUT | EPOLLET);
        }
        run_load(&r);
    }
    for (size_t i = 0; i < l->n_connections; i++) {
        if (r.conns[i].fd >= 0)
            dgm_load_conn_close(&r.conns[i]);
    }
    if (r.epoll >= 0)
        close(r.epoll);
    free(r.conns);
    free(r.idle);
    return good;
}

/* ---- one request ----------------------------------------------------------------------------------------------- */

bool dgm_load_request_once(struct load *l, int wait, dgm_buf *ret_body)
{
    struct conn c;
    uint64_t until = dgm_load_now_ns() + (uint64_t)wait * 1000000u;
    enum conn_news news = CONN_GOES_ON;
    bool good = false, is_open = dgm_load_conn_open(&c, l);
    while (is_open && news == CONN_GOES_ON && dgm_load_now_ns() < until) {
        bool out = c.state == CONN_CONNECTING || c.state == CONN_SENDING;
        struct pollfd p = {.fd = c.fd, .events = out ? POLLOUT : POLLIN};
        if (poll(&p, 1, 100) <= 0)
            continue;
        if (c.state == CONN_CONNECTING)
            dgm_load_conn_start(&c, dgm_load_now_ns());
        news = c.state == CONN_SENDING ? dgm_load_conn_write(&c) : dgm_load_conn_read(&c);
    }
    if (news == CONN_ANSWERED)
        good = dgm_load_conn_check(&c);
    else if (is_open && news == CONN_GOES_ON)
        dgm_load_fail(l, "timeout: no response from %s in %d ms", l->url, wait);
    if (good && ret_body)
        dgm_buf_add(ret_body, c.in.p, c.in.n);
    if (is_open)
        dgm_load_conn_close(&c);
    return good;
}
