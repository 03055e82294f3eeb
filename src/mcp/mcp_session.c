/*
 * mcp/mcp_session.c - the life of a session, and who waits for it.
 *
 * Lists and calls wait until the session has its tools. Its timer limits the start (PROBING, INITIALIZING), closes it when
 * it is idle (READY), ends a program that does not end (CLOSING), and waits before the next start or frees it (DOWN).
 */
#include "mcp/mcp_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_PAUSE_MS 100
#define MAX_PAUSE_MS 30000
#define LONG_LIFE_MS 60000 /* a program that ran this long is started again without a pause */

static uint64_t session_now(const struct mcp_session *s)
{
    return uv_now(&s->loop->uv);
}

/* ---- who waits ---------------------------------------------------------------------------------------- */

static void session_free_if_unused(struct mcp_session *s);

void dgm_mcp_session_soon(struct mcp_session *s)
{
    session_free_if_unused(s); /* a loop that stops may have no further turn */
    if (!s->is_freeing)
        dgm_loop_at_turn_end(s->loop, &s->turn);
}

void dgm_mcp_wait(struct mcp_session *s, struct mcp_waiter *w)
{
    w->session = s;
    w->next = NULL;
    w->is_refused = s->n_waiters >= DGM_MAX_MCP_WAITING;
    *s->last_waiter = w;
    s->last_waiter = &w->next;
    s->n_waiters++;
    s->n_refused += w->is_refused;
    dgm_mcp_session_soon(s);
}

static void session_unlink(struct mcp_session *s, struct mcp_waiter *w)
{
    struct mcp_waiter **at = &s->waiters;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    if (s->last_waiter == &w->next)
        s->last_waiter = at;
    s->n_waiters--;
    s->n_refused -= w->is_refused;
}

void dgm_mcp_leave(struct mcp_waiter *w)
{
    struct mcp_session *s = w->session;
    if (!s)
        return;
    session_unlink(s, w);
    w->session = NULL;
    dgm_mcp_session_soon(s);
}

/* The waiter may free itself. It sees its session until on_ready returns, and must not use it afterwards. */
static void session_serve_one(struct mcp_session *s, struct mcp_waiter *w,
                              const dgm_mcp_error *error)
{
    session_unlink(s, w);
    w->on_ready(w, error);
}

void dgm_mcp_fail_waiters(struct mcp_session *s, const dgm_mcp_error *error)
{
    while (s->waiters)
        session_serve_one(s, s->waiters, error);
}

static struct mcp_waiter *session_next_waiter(const struct mcp_session *s)
{
    struct mcp_waiter *w = s->waiters;
    while (w && w->is_call && s->n_calls >= s->mcp->config.max_calls)
        w = w->next;
    return w;
}

static void session_refuse(struct mcp_session *s)
{
    dgm_mcp_error error = {.code = DGM_RATE_LIMITED,
                           .message = DGM_STR("too many calls wait for this MCP server")};
    while (s->n_refused) {
        struct mcp_waiter *w = s->waiters;
        while (!w->is_refused)
            w = w->next;
        session_serve_one(s, w, &error);
    }
}

/* ---- the end ------------------------------------------------------------------------------------------ */

static void session_free(void *arg)
{
    struct mcp_session *s = arg;
    dgm_mcp *m = s->mcp;
    dgm_mcp_drop_tools(s);
    free(s->url);
    free(s->session_id);
    free((char *)(uintptr_t)s->key.p);
    free(s);
    dgm_mcp_unref(m);
}

static void session_free_if_unused(struct mcp_session *s)
{
    size_t i = s->loop->index;
    if (s->is_freeing || !s->is_ended || s->state != MCP_DOWN || s->process || s->requests ||
        s->waiters || s->posts)
        return;
    s->is_freeing = true;
    dgm_loop_not_at_turn_end(s->loop, &s->turn);
    dgm_loop_off_stop(s->loop, &s->stop);
    struct mcp_session **at = &s->mcp->sessions[i];
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    pthread_mutex_lock(&s->mcp->lock);
    if (!s->mcp->sessions[i])
        s->mcp->loops[i] = NULL;
    pthread_mutex_unlock(&s->mcp->lock);
    dgm_timer_close(&s->stream_timer, NULL, NULL);
    dgm_timer_close(&s->timer, session_free, s);
}

void dgm_mcp_session_exited(struct mcp_session *s)
{
    s->state = MCP_DOWN;
    dgm_timer_stop(&s->timer);
    if (!s->waiters && !s->n_failures)
        s->is_ended = true;
    if (s->is_ended)
        session_free_if_unused(s);
    else if (s->waiters)
        dgm_mcp_session_soon(s);
    else
        dgm_timer_start(&s->timer,
                        s->mcp->config.idle_ms); /* the failures are remembered so long */
}

/* Ends the transport: `exited` follows. */
static void session_stop(struct mcp_session *s, bool at_once)
{
    s->state = MCP_CLOSING;
    dgm_timer_stop(&s->timer);
    dgm_timer_stop(&s->stream_timer);
    dgm_mcp_drop_tools(s);
    if (dgm_mcp_is_stdio(s) && s->process) {
        dgm_mcp_stdio_stop(s, at_once);
        if (!at_once)
            dgm_timer_start(&s->timer, s->mcp->config.grace_ms);
        return;
    }
    dgm_mcp_http_stop(s, at_once);
}

void dgm_mcp_session_fail(struct mcp_session *s, dgm_code code, const char *fmt, ...)
{
    char message[400];
    va_list args;
    bool was_ready = s->state == MCP_READY;
    if (s->state == MCP_DOWN || s->state == MCP_CLOSING)
        return;
    int n = snprintf(message, sizeof message, "MCP server %.*s: ", DGM_P(s->mcp->config.name));
    va_start(args, fmt);
    vsnprintf(message + n, sizeof message - (size_t)n, fmt, args);
    va_end(args);
    dgm_mcp_log(s->mcp, "%s", message);
    if (was_ready && session_now(s) - s->started_at > LONG_LIFE_MS)
        s->n_failures = 0;
    uint64_t pause = (uint64_t)FIRST_PAUSE_MS << (s->n_failures < 10 ? s->n_failures : 10);
    s->n_failures++;
    s->retry_at = session_now(s) + (pause < MAX_PAUSE_MS ? pause : MAX_PAUSE_MS);
    session_stop(s, true);
    dgm_mcp_fail_requests(s, code, dgm_str_from(message));
    if (!was_ready || s->is_ended)
        dgm_mcp_fail_waiters(s, &(dgm_mcp_error){.code = code, .message = dgm_str_from(message)});
    if (!s->process)
        dgm_mcp_session_exited(s);
}

void dgm_mcp_session_end(struct mcp_session *s)
{
    dgm_str why = DGM_STR("the connection to the MCP server was closed");
    bool was_open = s->state != MCP_DOWN && s->state != MCP_CLOSING;
    if (s->is_ended && s->state == MCP_DOWN)
        return;
    s->is_ended = true;
    s->n_failures = 0;
    if (was_open)
        session_stop(s, s->loop->stopping);
    dgm_mcp_fail_requests(s, DGM_UNAVAILABLE, why);
    dgm_mcp_fail_waiters(s, &(dgm_mcp_error){.code = DGM_UNAVAILABLE, .message = why});
    if (!s->process)
        dgm_mcp_session_exited(s);
}

void dgm_mcp_session_restart(struct mcp_session *s)
{
    if (s->state != MCP_READY)
        return;
    free(s->session_id);
    s->session_id = NULL;
    session_stop(s, true);
    dgm_mcp_fail_requests(s, DGM_UNAVAILABLE, DGM_STR("the MCP server ended its session"));
    s->state = MCP_DOWN;
    dgm_mcp_session_soon(s);
}

void dgm_mcp_session_worked(struct mcp_session *s)
{
    s->n_failures = 0;
}

static void session_on_stop(void *arg)
{
    dgm_mcp_session_end(arg);
}

/* ---- work --------------------------------------------------------------------------------------------- */

void dgm_mcp_session_ready(struct mcp_session *s)
{
    s->state = MCP_READY;
    dgm_timer_stop(&s->timer);
    dgm_mcp_session_soon(s);
}

static void session_serve(struct mcp_session *s)
{
    struct mcp_waiter *w;
    if (!s->has_new_tools && !dgm_mcp_tools_are_fresh(s)) {
        if (s->tools_state != MCP_TOOLS_LOADING)
            dgm_mcp_load_tools(s);
        return;
    }
    s->has_new_tools = false;
    while (s->state == MCP_READY && (w = session_next_waiter(s)))
        session_serve_one(s, w, NULL);
}

static void session_on_turn(void *arg)
{
    struct mcp_session *s = arg;
    if (s->loop->stopping) {
        dgm_mcp_session_end(s);
        return;
    }
    session_refuse(s);
    if (s->state == MCP_DOWN && s->waiters) {
        uint64_t now = session_now(s);
        if (now < s->retry_at) {
            dgm_timer_start(&s->timer, s->retry_at - now);
            return;
        }
        dgm_timer_stop(&s->timer);
        s->started_at = now;
        dgm_mcp_start(s);
    } else if (s->state == MCP_READY && s->waiters) {
        dgm_timer_stop(&s->timer);
        session_serve(s);
    }
    if (s->state == MCP_READY && !s->waiters && !s->n_calls &&
        s->tools_state != MCP_TOOLS_LOADING && !s->timer.place)
        dgm_timer_start(&s->timer, s->mcp->config.idle_ms);
    session_free_if_unused(s);
}

static void session_on_timer(void *arg)
{
    struct mcp_session *s = arg;
    switch (s->state) {
    case MCP_PROBING:
    case MCP_INITIALIZING: dgm_mcp_start_late(s); break;
    case MCP_READY:
        if (s->waiters || s->n_calls)
            break;
        s->n_failures = 0;
        session_stop(s, false);
        dgm_mcp_fail_requests(s, DGM_UNAVAILABLE, DGM_STR("the session was idle"));
        if (!s->process)
            dgm_mcp_session_exited(s);
        break;
    case MCP_CLOSING: dgm_mcp_stdio_stop(s, true); break;
    case MCP_DOWN:
        if (!s->waiters)
            s->is_ended = true;
        dgm_mcp_session_soon(s);
        break;
    }
}

/* ---- finding ------------------------------------------------------------------------------------------ */

static struct mcp_session *session_new(dgm_mcp *m, dgm_loop *loop, dgm_str key)
{
    struct mcp_session *s = dgm_xcalloc(1, sizeof *s);
    char *copy = dgm_xmalloc(key.n + 1);
    if (key.n)
        memcpy(copy, key.p, key.n);
    copy[key.n] = '\0';
    s->mcp = m;
    s->loop = loop;
    s->key = (dgm_str){copy, key.n};
    s->last_waiter = &s->waiters;
    s->turn = (dgm_loop_turn){.fn = session_on_turn, .arg = s};
    s->stop = (dgm_loop_stop){.fn = session_on_stop, .arg = s};
    dgm_timer_init(loop, &s->timer, session_on_timer, s);
    dgm_timer_init(loop, &s->stream_timer, dgm_mcp_http_on_stream_timer, s);
    atomic_fetch_add(&m->refs, 1);
    dgm_loop_on_stop(loop, &s->stop);
    s->next = m->sessions[loop->index];
    m->sessions[loop->index] = s;
    pthread_mutex_lock(&m->lock);
    m->loops[loop->index] = loop;
    pthread_mutex_unlock(&m->lock);
    return s;
}

struct mcp_session *dgm_mcp_session_find(dgm_mcp *m, dgm_loop *loop, dgm_str key)
{
    struct mcp_session *s = m->sessions[loop->index];
    while (s && (s->is_ended || !dgm_str_eq(s->key, key)))
        s = s->next;
    return s ? s : session_new(m, loop, key);
}
