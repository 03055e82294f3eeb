/* net/client_pool.c - the connections of a client: libcurl's multi interface, driven by libuv; connections that are idle. */
#include "net/client_int.h"

#include <stdlib.h>

/* libcurl closes a connection that was idle for too long only when it opens another one: see pool_sweep. At most once per
 * second. */
#define SWEEP_MS 1500
/* Connections that wait for the next request, per pool. */
#define MAX_KEPT 64L

struct watch {
    uv_poll_t poll;
    struct client_pool *pool;
    curl_socket_t fd;
    int events; /* that libcurl waits for */
};

/* ---- handles of libcurl ---------------------------------------------------------------------------------------------------- */

CURL *dgm_client_pool_acquire(struct client_pool *pool)
{
    return pool->n_spare ? pool->spare[--pool->n_spare] : curl_easy_init();
}

/* As new: options, and what libcurl knows of the request. Connections are those of the pool. */
void dgm_client_pool_release(struct client_pool *pool, CURL *easy)
{
    curl_multi_remove_handle(pool->multi, easy);
    if (pool->n_spare == MAX_SPARE) {
        curl_easy_cleanup(easy);
        return;
    }
    curl_easy_reset(easy);
    pool->spare[pool->n_spare++] = easy;
}

/* ---- libcurl on libuv ------------------------------------------------------------------------------------------------------ */

static void pool_end_sweep(struct client_pool *pool)
{
    if (!pool->sweep)
        return;
    curl_multi_remove_handle(pool->multi, pool->sweep);
    curl_easy_cleanup(pool->sweep);
    pool->sweep = NULL;
}

void dgm_client_pool_read_messages(struct client_pool *pool)
{
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(pool->multi, &left));) {
        dgm_fetch *f = NULL;
        if (m->msg != CURLMSG_DONE)
            continue;
        CURLcode code = m->data.result;
        if (m->easy_handle == pool->sweep) {
            pool_end_sweep(pool);
            dgm_client_pool_watch_idle(pool);
            continue;
        }
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&f);
        dgm_fetch_done(f, code);
    }
}

static void on_watch_closed(uv_handle_t *h)
{
    struct watch *w = h->data;
    dgm_client *c = w->pool->client;
    free(w);
    dgm_client_handle_closed(c);
}

/* A socket with an error (the other side has reset the connection) may still have bytes to read, and only reading or writing
 * shows libcurl which error it is: a kept connection that ended meanwhile is replaced. libuv has stopped watching it then. */
static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct watch *w = poll->data;
    struct client_pool *pool = w->pool;
    int running, what = 0;
    if (status < 0)
        events = w->events;
    what |= events & UV_READABLE ? CURL_CSELECT_IN : 0;
    what |= events & UV_WRITABLE ? CURL_CSELECT_OUT : 0;
    curl_multi_socket_action(pool->multi, w->fd, what, &running);
    if (status < 0 && !uv_is_closing((uv_handle_t *)poll) && w->events)
        uv_poll_start(poll, w->events, on_ready);
    dgm_client_pool_read_messages(pool);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
    struct client_pool *pool = arg;
    struct watch *w = known;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (w) {
            curl_multi_assign(pool->multi, fd, NULL);
            uv_poll_stop(&w->poll);
            uv_close((uv_handle_t *)&w->poll, on_watch_closed);
        }
        return 0;
    }
    if (!w) {
        w = dgm_xcalloc(1, sizeof *w);
        w->pool = pool;
        w->fd = fd;
        w->poll.data = w;
        if (uv_poll_init_socket(pool->client->loop, &w->poll, fd) != 0) {
            free(w);
            return -1;
        }
        pool->client->n_handles++;
        curl_multi_assign(pool->multi, fd, w);
    }
    w->events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
    uv_poll_start(&w->poll, w->events, on_ready);
    return 0;
}

static void on_curl_timeout(uv_timer_t *t)
{
    dgm_client *c = t->data;
    struct client_pool *pool = t == &c->open.timer ? &c->open : &c->guarded;
    int running;
    curl_multi_socket_action(pool->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    dgm_client_pool_read_messages(pool);
}

static int on_curl_timer(CURLM *multi, long ms, void *arg)
{
    struct client_pool *pool = arg;
    (void)multi;
    if (pool->client->closing)
        return 0;
    if (ms < 0)
        uv_timer_stop(&pool->timer);
    else
        uv_timer_start(&pool->timer, on_curl_timeout, (uint64_t)ms, 0);
    return 0;
}

/* ---- idle connections ------------------------------------------------------------------------------------------------------ */

static curl_socket_t on_sweep_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
    (void)arg, (void)purpose, (void)a;
    return CURL_SOCKET_BAD;
}

/* libcurl looks for connections that are too old or were closed by their server when it is about to open one. So it gets a
 * request whose connection is refused at that point, by us. */
static void pool_sweep(uv_timer_t *t)
{
    dgm_client *c = t->data;
    struct client_pool *pool = t == &c->open.sweep_timer ? &c->open : &c->guarded;
    if (c->closing || pool->sweep)
        return;
    CURL *e = pool->sweep = curl_easy_init();
    curl_easy_setopt(e, CURLOPT_URL, "http://127.0.0.1:1/");
    curl_easy_setopt(e, CURLOPT_PROXY, "");
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(e, CURLOPT_MAXAGE_CONN, MAX_IDLE_S);
    curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, on_sweep_socket);
    curl_multi_add_handle(pool->multi, e);
}

void dgm_client_pool_watch_idle(struct client_pool *pool)
{
    if (!pool->client->closing && pool->n_sockets > pool->n_fetches && !pool->sweep &&
        !uv_is_active((uv_handle_t *)&pool->sweep_timer))
        uv_timer_start(&pool->sweep_timer, pool_sweep, SWEEP_MS, 0);
}

/* ---- pools ----------------------------------------------------------------------------------------------------------------- */

void dgm_client_pool_init(dgm_client *c, struct client_pool *pool, size_t max_connections)
{
    pool->client = c;
    pool->multi = curl_multi_init();
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_MAXCONNECTS, MAX_KEPT);
    curl_multi_setopt(pool->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)max_connections);
    uv_timer_init(c->loop, &pool->timer);
    uv_timer_init(c->loop, &pool->sweep_timer);
    uv_unref((uv_handle_t *)&pool->sweep_timer); /* a loop with nothing else to do may end */
    pool->timer.data = pool->sweep_timer.data = c;
    c->n_handles += 2;
}

void dgm_client_pool_close(struct client_pool *pool)
{
    pool_end_sweep(pool);
    while (pool->n_spare)
        curl_easy_cleanup(pool->spare[--pool->n_spare]);
    free(pool->last_url);
    free(pool->last_target);
    curl_multi_cleanup(pool->multi);
    uv_close((uv_handle_t *)&pool->timer, dgm_client_on_timer_closed);
    uv_close((uv_handle_t *)&pool->sweep_timer, dgm_client_on_timer_closed);
}
