/* net/client.c - clients and their fetches: open, close, and the work that is done on the next iteration of the loop. */
#include "net/client_int.h"

#include <stdlib.h>

/* ---- handles of libuv ------------------------------------------------------------------------------------------------------ */

void dgm_client_handle_closed(dgm_client *c)
{
    if (--c->n_handles)
        return;
    void (*on_closed)(void *) = c->on_closed;
    void *arg = c->arg;
    free(c);
    if (on_closed)
        on_closed(arg);
}

void dgm_client_on_timer_closed(uv_handle_t *h)
{
    dgm_client_handle_closed(h->data);
}

/* ---- the end of a fetch ---------------------------------------------------------------------------------------------------- */

static void on_fetch_closed(uv_handle_t *h)
{
    dgm_fetch *f = h->data;
    dgm_client *c = f->client;
    dgm_arena_free(f->arena); /* the fetch lives in it */
    dgm_client_handle_closed(c);
}

void dgm_fetch_free(dgm_fetch *f)
{
    dgm_client *c = f->client;
    if (f->easy)
        dgm_client_pool_release(f->pool, f->easy);
    curl_slist_free_all(f->lines);
    *f->here = f->next;
    if (f->next)
        f->next->here = f->here;
    for (dgm_fetch **at = &c->todo; f->todo && *at; at = &(*at)->todo_next) {
        if (*at == f) {
            *at = f->todo_next;
            break;
        }
    }
    c->n_fetches--;
    f->pool->n_fetches--;
    dgm_client_pool_watch_idle(f->pool);
    uv_close((uv_handle_t *)&f->timer, on_fetch_closed);
}

void dgm_fetch_finish(dgm_fetch *f, dgm_fetch_end end, dgm_str what)
{
    long sent = 0;
    if (f->easy)
        curl_easy_getinfo(f->easy, CURLINFO_REQUEST_SIZE, &sent);
    dgm_fetch_result result = {
        .end = end, .what = what, .may_be_received = sent > 0 && f->body_read == f->o.body.n};
    /* The handler may close the client; the fetch must not be ended twice. */
    f->canceled = true;
    f->handler.on_end(f->handler.user, &result);
    dgm_fetch_free(f);
}

/* ---- what is to do --------------------------------------------------------------------------------------------------------- */

static void run_todo(uv_timer_t *t);

void dgm_fetch_add_todo(dgm_fetch *f, unsigned what)
{
    dgm_client *c = f->client;
    if (!f->todo) {
        f->todo_next = c->todo;
        c->todo = f;
    }
    f->todo |= what;
    if (!c->closing)
        uv_timer_start(&c->todo_timer, run_todo, 0, 0);
}

static void client_free_pools(dgm_client *c)
{
    while (c->first) {
        if (c->first->canceled)
            dgm_fetch_free(c->first);
        else
            dgm_fetch_finish(c->first, DGM_FETCH_STOPPED, DGM_STR("the program is shutting down"));
    }
    dgm_client_pool_close(&c->open);
    dgm_client_pool_close(&c->guarded);
    uv_close((uv_handle_t *)&c->todo_timer, dgm_client_on_timer_closed);
}

static void run_todo(uv_timer_t *t)
{
    dgm_client *c = t->data;
    if (c->closing) {
        client_free_pools(c);
        return;
    }
    while (c->todo) {
        dgm_fetch *f = c->todo;
        unsigned what = f->todo;
        c->todo = f->todo_next;
        f->todo = 0;
        if (what & TODO_CANCEL) {
            dgm_fetch_free(f);
        } else if (what & TODO_FAIL) {
            dgm_fetch_finish(f, f->failed, dgm_str_from(f->failed_what));
        } else if (what & TODO_START) {
            dgm_fetch_watch_time(f);
            curl_multi_add_handle(f->pool->multi, f->easy);
        } else {
            f->active = uv_now(c->loop);
            dgm_fetch_watch_time(f);
            if (!f->paused && !f->canceled)
                curl_easy_pause(f->easy, CURLPAUSE_CONT);
            dgm_client_pool_read_messages(f->pool);
        }
        if (c->closing)
            return; /* a handler closed it: the timer is started again */
    }
}

/* ---- clients --------------------------------------------------------------------------------------------------------------- */

static void init_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

dgm_client *dgm_client_new(uv_loop_t *loop, size_t max_connections)
{
    static uv_once_t once = UV_ONCE_INIT;
    uv_once(&once, init_curl);
    dgm_client *c = dgm_xcalloc(1, sizeof *c);
    c->loop = loop;
    dgm_client_pool_init(c, &c->open, max_connections);
    dgm_client_pool_init(c, &c->guarded, max_connections);
    uv_timer_init(loop, &c->todo_timer);
    c->todo_timer.data = c;
    c->n_handles++;
    return c;
}

void dgm_client_close(dgm_client *c, void (*on_closed)(void *arg), void *arg)
{
    if (c->closing)
        return;
    c->on_closed = on_closed;
    c->arg = arg;
    uv_timer_start(&c->todo_timer, run_todo, 0, 0);
    c->closing = true;
}

static void on_loop_stop(void *arg)
{
    dgm_client_close(arg, NULL, NULL);
}

dgm_client *dgm_client_of_loop(dgm_loop *l)
{
    if (l->stopping)
        return NULL;
    if (!l->client) {
        l->client = dgm_client_new(&l->uv, 0);
        l->client->on_stop = (dgm_loop_stop){.fn = on_loop_stop, .arg = l->client};
        dgm_loop_on_stop(l, &l->client->on_stop);
    }
    return l->client;
}

size_t dgm_client_in_flight(const dgm_client *c)
{
    return c->n_fetches;
}

size_t dgm_client_connections(const dgm_client *c)
{
    return c->open.n_sockets + c->guarded.n_sockets;
}
