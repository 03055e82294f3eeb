/*
 * backend/worker/worker_pool.c - the pool: its processes, starting and ending all of them.
 *
 * A slot gets its home loop once: from dgm_worker_pool_prepare, which spreads the slots over the loops, or from the first
 * run that needs the slot.
 */
#include "backend/worker/worker_int.h"
#include "base/limits.h"
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define START_S 120
#define HANG_S 120
#define GRACE_S 5
#define PING_MS 10000
#define KILL_MS 3000 /* what net/process needs after the grace: SIGTERM, SIGKILL */

/* ---- information of the handshake -------------------------------------------------------------------------------------- */

void dgm_worker_info_unref(struct worker_info *info)
{
    if (info && atomic_fetch_sub(&info->refs, 1) == 1)
        dgm_arena_free(info->arena);
}

struct worker_info *dgm_worker_info_get(struct worker_slot *s)
{
    pthread_mutex_lock(&s->pool->lock);
    struct worker_info *info = s->info;
    if (info)
        atomic_fetch_add(&info->refs, 1);
    pthread_mutex_unlock(&s->pool->lock);
    return info;
}

void dgm_worker_slot_set_info(struct worker_slot *s, struct worker_info *info)
{
    pthread_mutex_lock(&s->pool->lock);
    struct worker_info *before = s->info, *described = NULL;
    s->info = info;
    if (info) {
        described = s->pool->described;
        s->pool->described = info;
        atomic_fetch_add(&info->refs, 1);
    }
    pthread_mutex_unlock(&s->pool->lock);
    dgm_worker_info_unref(before);
    dgm_worker_info_unref(described);
}

void dgm_worker_slot_set_alive(struct worker_slot *s, bool is_alive)
{
    pthread_mutex_lock(&s->pool->lock);
    s->is_alive = is_alive;
    pthread_cond_broadcast(&s->pool->changed);
    pthread_mutex_unlock(&s->pool->lock);
}

/* ---- between the loops --------------------------------------------------------------------------------------------------- */

struct worker_slot *dgm_worker_slot_for(dgm_worker_pool *p, dgm_loop *loop, uint64_t thread)
{
    struct worker_slot *s = &p->slots[thread % p->n_slots];
    pthread_mutex_lock(&p->lock);
    if (!s->home)
        s->home = loop;
    pthread_mutex_unlock(&p->lock);
    return s;
}

/* A call of a function on the home loop. */
struct worker_trip {
    struct worker_item *item;
    void (*fn)(struct worker_item *item, dgm_str text);
    size_t n;
    char text[];
};

static void trip_arrive(void *arg)
{
    struct worker_trip *t = arg;
    t->fn(t->item, (dgm_str){t->text, t->n});
    dgm_worker_item_unref(t->item);
    free(t);
}

void dgm_worker_go_home(struct worker_item *item,
                        void (*fn)(struct worker_item *item, dgm_str text), dgm_str text)
{
    if (dgm_loop_current() == item->slot->home) {
        fn(item, text);
        return;
    }
    struct worker_trip *t = dgm_xmalloc(sizeof *t + text.n);
    *t = (struct worker_trip){.item = item, .fn = fn, .n = text.n};
    if (text.n)
        memcpy(t->text, text.p, text.n);
    atomic_fetch_add(&item->refs, 1);
    dgm_loop_post(item->slot->home, trip_arrive, t);
}

/* ---- opening --------------------------------------------------------------------------------------------------------------- */

static const char **pool_env(dgm_arena *a, const dgm_worker_options *o)
{
    const char **env = dgm_new_n(a, const char *, o->n_env + 2);
    for (size_t i = 0; i < o->n_env; i++)
        env[i] = o->env[i];
    env[o->n_env] = dgm_arena_printf(a, "DRAGOMAN_FD=%d", DGM_PROCESS_CHANNEL_FD).p;
    return env;
}

static uint64_t pool_ms(double seconds, double otherwise)
{
    return (uint64_t)((seconds > 0 ? seconds : otherwise) * 1000);
}

dgm_worker_pool *dgm_worker_pool_open(const dgm_worker_options *o)
{
    dgm_worker_pool *p = dgm_xcalloc(1, sizeof *p);
    p->arena = dgm_arena_new();
    p->options = *o;
    if (o->agent)
        p->agent = *o->agent;
    p->agent.id = dgm_arena_dup(p->arena, p->agent.id);
    p->agent.folder = dgm_arena_dup(p->arena, p->agent.folder);
    p->options.agent = &p->agent;
    p->options.initialize = dgm_arena_dup(p->arena, o->initialize);
    p->options.watch = o->watch ? dgm_arena_dup(p->arena, dgm_str_from(o->watch)).p : NULL;
    p->env = pool_env(p->arena, o);
    p->start_ms = pool_ms(o->start_timeout, START_S);
    p->hang_ms = pool_ms(o->hang_timeout, HANG_S);
    p->grace_ms = pool_ms(o->grace, GRACE_S);
    p->ping_ms = p->hang_ms / 2 < PING_MS ? p->hang_ms / 2 : PING_MS;
    p->n_slots = o->processes ? o->processes : 1;
    p->slots = dgm_new_n(p->arena, struct worker_slot, p->n_slots);
    for (size_t i = 0; i < p->n_slots; i++) {
        p->slots[i].pool = p;
        p->slots[i].index = i;
    }
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    return p;
}

void dgm_worker_pool_close(dgm_worker_pool *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n_slots; i++) {
        dgm_worker_info_unref(p->slots[i].info);
        dgm_arena_free(p->slots[i].arena);
        dgm_table_done(&p->slots[i].sent);
        dgm_worker_tail_clear(&p->slots[i]);
    }
    dgm_worker_info_unref(p->described);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->changed);
    dgm_arena_free(p->arena);
    free(p);
}

/* ---- starting and ending all of them ---------------------------------------------------------------------------------------- */

static void pool_start_slot(void *slot)
{
    struct worker_slot *s = slot;
    dgm_worker_slot_open(s);
    dgm_worker_slot_start(s);
}

void dgm_worker_pool_prepare(dgm_worker_pool *p, dgm_loops *loops)
{
    p->is_retired = false; /* a reload may bring an agent back */
    uint64_t first =
        dgm_hash(1, p->agent.id.p, p->agent.id.n); /* agents differ in their first loop */
    for (size_t i = 0; i < p->n_slots; i++) {
        struct worker_slot *s = &p->slots[i];
        pthread_mutex_lock(&p->lock);
        if (!s->home)
            s->home = dgm_loops_at(loops, (size_t)((first + i) % loops->n));
        pthread_mutex_unlock(&p->lock);
        dgm_loop_post(s->home, pool_start_slot, s);
    }
}

static void pool_reload_slot(void *slot)
{
    dgm_worker_slot_reload(slot);
}

static void pool_retire_slot(void *slot)
{
    dgm_worker_slot_check_idle(slot);
}

static void pool_close_slot(void *slot)
{
    dgm_worker_slot_close(slot);
}

static void pool_post_all(dgm_worker_pool *p, dgm_loop_fn fn)
{
    for (size_t i = 0; i < p->n_slots; i++) {
        pthread_mutex_lock(&p->lock);
        dgm_loop *home = p->slots[i].home;
        pthread_mutex_unlock(&p->lock);
        if (home)
            dgm_loop_post(home, fn, &p->slots[i]);
    }
}

void dgm_worker_pool_reload(dgm_worker_pool *p)
{
    pool_post_all(p, pool_reload_slot);
}

static bool pool_is_alive(const dgm_worker_pool *p)
{
    for (size_t i = 0; i < p->n_slots; i++) {
        if (p->slots[i].is_alive)
            return true;
    }
    return false;
}

static void pool_wait(dgm_worker_pool *p)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t ms = p->grace_ms + KILL_MS + (uint64_t)(until.tv_nsec / 1000000);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec = (long)(ms % 1000) * 1000000;
    pthread_mutex_lock(&p->lock);
    while (pool_is_alive(p) && pthread_cond_timedwait(&p->changed, &p->lock, &until) != ETIMEDOUT)
        continue;
    pthread_mutex_unlock(&p->lock);
}

/* Twice at the end of the server: without waiting, so that the processes of all pools end at the same time, and with. */
void dgm_worker_pool_retire(dgm_worker_pool *p, bool wait)
{
    p->is_retired = true;
    pool_post_all(p, wait ? pool_close_slot : pool_retire_slot);
    if (wait)
        pool_wait(p);
}
