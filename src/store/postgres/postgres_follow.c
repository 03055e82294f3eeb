/*
 * store/postgres/postgres_follow.c - the followers of tasks, and wake-ups.
 *
 * A server that follows a task of another server sends the hash of the task to it, again every DGM_FOLLOW_MS. The owner stores
 * the hash in memory until it expires. After a commit the loop stores the hashes of the tasks that have grown, per follower;
 * the share thread sends all of them in one NOTIFY. The NOTIFY is not part of the transaction of the append, because
 * PostgreSQL commits transactions with NOTIFY one after the other. A lost wake-up only delays readers: the follower also reads
 * the state of its tasks regularly, and more often without NOTIFY. Without NOTIFY the owner sends no wake-ups, but it must not
 * cancel a run that another server reads: the follower informs it by a command.
 *
 *   "f REPLICA HASH..."   REPLICA follows these tasks          "g MICROSECONDS HASH..."   these tasks have grown since then
 */
#include "postgres_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Somewhat longer than the time after which a follower asks again. */
#define FOLLOW_EXPIRES_MS (DGM_FOLLOW_MS + DGM_FOLLOW_MS / 2)
#define MAX_HASHES 440 /* of one NOTIFY, which is shorter than 8000 bytes */
#define POLL_PAGE 2000

static uint64_t follow_now_ms(void)
{
    return uv_hrtime() / 1000000;
}

static int64_t unix_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

uint64_t dgm_pg_follow_hash(dgm_owner owner, dgm_str task_id)
{
    return dgm_scope(owner, task_id, (dgm_str){0}); /* the same in every process */
}

/* ---- tasks that others follow ------------------------------------------------------------------------- */

static pg_wakeup *wakeup_for(pg_share *h, int64_t replica)
{
    pg_wakeup *w = h->wakeups;
    while (w && w->replica != replica)
        w = w->next;
    if (w)
        return w;
    w = dgm_xcalloc(1, sizeof *w);
    w->replica = replica;
    w->since_us = unix_us();
    w->next = h->wakeups;
    h->wakeups = w;
    return w;
}

static void wakeup_add(pg_share *h, int64_t replica, uint64_t hash)
{
    pg_wakeup *w = wakeup_for(h, replica);
    for (size_t i = w->n < 64 ? 0 : w->n - 64; i < w->n; i++) {
        if (w->hashes[i] == hash)
            return;
    }
    if (w->n == w->cap) {
        w->cap = w->cap ? w->cap * 2 : 16;
        w->hashes = dgm_xrealloc(w->hashes, w->cap * sizeof *w->hashes);
    }
    w->hashes[w->n++] = hash;
}

void dgm_pg_share_grown(pg_store *s, dgm_owner owner, dgm_str task_id, bool is_orphan)
{
    pg_share *h = &s->share;
    bool wake = is_orphan, has_readers = h->n_followed && !h->polls;
    if (!has_readers && !is_orphan)
        return;
    uint64_t hash = dgm_pg_follow_hash(owner, task_id), now = follow_now_ms();
    pthread_mutex_lock(&h->lock);
    h->has_orphans |= is_orphan;
    dgm_table_node *at = has_readers ? dgm_table_first(&h->followed, hash) : NULL;
    for (; at; at = at->next) {
        const pg_followed *f = (const pg_followed *)at;
        if (at->hash != hash || f->until_ms < now)
            continue;
        wakeup_add(h, f->replica, hash);
        wake = true;
    }
    pthread_mutex_unlock(&h->lock);
    if (wake)
        dgm_pg_share_wake(s);
}

bool dgm_pg_is_followed(dgm_store *base, dgm_owner owner, dgm_str task_id)
{
    pg_share *h = &((pg_store *)base)->share;
    bool is = false;
    if (!h->n_followed)
        return false;
    uint64_t hash = dgm_pg_follow_hash(owner, task_id), now = follow_now_ms();
    pthread_mutex_lock(&h->lock);
    for (dgm_table_node *at = dgm_table_first(&h->followed, hash); at; at = at->next)
        is = is || (at->hash == hash && ((const pg_followed *)at)->until_ms >= now);
    pthread_mutex_unlock(&h->lock);
    return is;
}

/* With the lock. */
static void followed_add(pg_share *h, int64_t replica, uint64_t hash)
{
    pg_followed *f = NULL;
    for (dgm_table_node *at = dgm_table_first(&h->followed, hash); at && !f; at = at->next) {
        if (at->hash == hash && ((pg_followed *)at)->replica == replica)
            f = (pg_followed *)at;
    }
    if (!f && h->followed.n >= DGM_MAX_FOLLOWED)
        return; /* it reads how far the task is */
    if (!f) {
        f = dgm_xcalloc(1, sizeof *f);
        f->replica = replica;
        dgm_table_add(&h->followed, &f->node, hash);
        h->n_followed++;
    }
    f->until_ms = follow_now_ms() + FOLLOW_EXPIRES_MS;
}

/* ---- tasks that this server follows -------------------------------------------------------------------- */

static bool follow_is_of(const pg_followed *f, dgm_owner owner, dgm_str task_id)
{
    return dgm_str_eq(f->task_id, task_id) && dgm_str_eq(f->owner.principal, owner.principal) &&
           dgm_str_eq(f->owner.tenant, owner.tenant);
}

static void follow_put(char **at, dgm_str *ret, dgm_str s)
{
    if (s.n)
        memcpy(*at, s.p, s.n);
    *ret = (dgm_str){*at, s.n};
    *at += s.n;
}

static pg_followed *following_new(dgm_owner owner, dgm_str task_id)
{
    pg_followed *f = dgm_xcalloc(1, sizeof *f + owner.tenant.n + owner.principal.n + task_id.n);
    char *at = (char *)(f + 1);
    f->last_seq = -1;
    follow_put(&at, &f->owner.tenant, owner.tenant);
    follow_put(&at, &f->owner.principal, owner.principal);
    follow_put(&at, &f->task_id, task_id);
    return f;
}

void dgm_pg_follow(dgm_store *base, dgm_owner owner, dgm_str task_id, int64_t owner_replica)
{
    pg_store *s = (pg_store *)base;
    pg_share *h = &s->share;
    uint64_t hash = dgm_pg_follow_hash(owner, task_id);
    pg_followed *f = NULL;
    pthread_mutex_lock(&h->lock);
    for (dgm_table_node *at = dgm_table_first(&h->following, hash); at && !f; at = at->next) {
        if (at->hash == hash && follow_is_of((pg_followed *)at, owner, task_id))
            f = (pg_followed *)at;
    }
    if (!f) {
        f = following_new(owner, task_id);
        dgm_table_add(&h->following, &f->node, hash);
    }
    f->replica = owner_replica;
    f->is_requested = !owner_replica;
    f->until_ms = follow_now_ms() + FOLLOW_EXPIRES_MS;
    pthread_mutex_unlock(&h->lock);
    dgm_pg_share_wake(s);
}

bool dgm_pg_follow_is_busy(pg_store *s)
{
    pthread_mutex_lock(&s->share.lock);
    bool is = s->share.following.n > 0;
    pthread_mutex_unlock(&s->share.lock);
    return is;
}

/* Of a table; all: also those whose time is not over. With the lock. */
static void follow_drop(dgm_table *t, bool all)
{
    uint64_t now = follow_now_ms();
    for (size_t i = 0; i < t->cap; i++) {
        for (dgm_table_node *at = t->slots[i], *next; at; at = next) {
            next = at->next;
            if (!all && ((pg_followed *)at)->until_ms >= now)
                continue;
            dgm_table_remove(t, at);
            free(at);
        }
    }
}

void dgm_pg_follow_expire(pg_store *s)
{
    pg_share *h = &s->share;
    pthread_mutex_lock(&h->lock);
    follow_drop(&h->followed, false);
    follow_drop(&h->following, false);
    h->n_followed = h->followed.n;
    pthread_mutex_unlock(&h->lock);
}

static void wakeups_free(pg_wakeup *w)
{
    for (pg_wakeup *next; w; w = next) {
        next = w->next;
        free(w->hashes);
        free(w);
    }
}

void dgm_pg_follow_done(pg_share *h)
{
    follow_drop(&h->followed, true);
    follow_drop(&h->following, true);
    dgm_table_done(&h->followed);
    dgm_table_done(&h->following);
    wakeups_free(h->wakeups);
    h->wakeups = NULL;
}

/* ---- sending ------------------------------------------------------------------------------------------- */

/* NOTIFYs, or commands, that are sent with one statement: two arrays, one after the other. */
struct notifying {
    pg_args args;
    dgm_buf payloads;
    size_t n, cap;
    struct {
        int64_t replica;
        size_t at, n;
    } * items;
};

static void notifying_add(struct notifying *x, int64_t replica, char kind, int64_t number,
                          const uint64_t *hashes, size_t n)
{
    char text[40];
    if (x->n == x->cap) {
        x->cap = x->cap ? x->cap * 2 : 16;
        x->items = dgm_xrealloc(x->items, x->cap * sizeof *x->items);
    }
    size_t from = x->payloads.n;
    dgm_buf_add(&x->payloads, text,
                (size_t)snprintf(text, sizeof text, "%c %" PRId64, kind, number));
    for (size_t i = 0; i < n; i++)
        dgm_buf_add(&x->payloads, text,
                    (size_t)snprintf(text, sizeof text, " %" PRIx64, hashes[i]));
    x->items[x->n].replica = replica;
    x->items[x->n].at = from;
    x->items[x->n++].n = x->payloads.n - from;
}

static void notifying_add_wakeup(struct notifying *x, const pg_wakeup *w, char kind, int64_t number)
{
    for (size_t i = 0; i < w->n; i += MAX_HASHES)
        notifying_add(x, w->replica, kind, number, w->hashes + i,
                      w->n - i < MAX_HASHES ? w->n - i : MAX_HASHES);
}

static void notifying_put_payloads(const struct notifying *x, pg_args *a)
{
    dgm_pg_array_begin(a, false);
    for (size_t i = 0; i < x->n; i++)
        dgm_pg_array_str(a, (dgm_str){x->payloads.p + x->items[i].at, x->items[i].n});
    dgm_pg_array_end(a);
}

static void notifying_send(pg_store *s, struct notifying *x)
{
    static const char sql[] =
        "SELECT pg_notify(convert_from(x.channel,'UTF8'),convert_from(x.payload,'UTF8'))"
        " FROM unnest($1::bytea[],$2::bytea[]) AS x(channel,payload)";
    char channel[40];
    pg_args *a = &x->args;
    dgm_pg_args_init(a);
    dgm_pg_array_begin(a, false);
    for (size_t i = 0; i < x->n; i++) {
        int n = snprintf(channel, sizeof channel, "dragoman_%" PRId64, x->items[i].replica);
        dgm_pg_array_str(a, (dgm_str){channel, (size_t)n});
    }
    dgm_pg_array_end(a);
    notifying_put_payloads(x, a);
    PQclear(dgm_pg_share_exec(s, sql, a));
    dgm_pg_args_done(a);
}

/* To servers that are not listening: dgm_pg_follow_receive gets the same texts. */
static void notifying_command(pg_store *s, struct notifying *x)
{
    static const char sql[] =
        "INSERT INTO dragoman.commands(replica,sender,id,tenant,principal,task,kind,body,until)"
        " SELECT x.replica,$3::bigint,$4::bigint+x.k,'','','','" PG_FOLLOW_COMMAND "',x.payload,"
        "clock_timestamp()+$5::bigint*interval '1 millisecond'"
        " FROM unnest($1::bigint[],$2::bytea[]) WITH ORDINALITY AS x(replica,payload,k)"
        " JOIN dragoman.replicas r ON r.id=x.replica WHERE NOT r.dead";
    pg_share *h = &s->share;
    pg_args a;
    pthread_mutex_lock(&h->lock);
    int64_t last = h->last_command;
    h->last_command += (int64_t)x->n;
    pthread_mutex_unlock(&h->lock);
    dgm_pg_args_init(&a);
    dgm_pg_array_begin(&a, true);
    for (size_t i = 0; i < x->n; i++)
        dgm_pg_array_int(&a, x->items[i].replica);
    dgm_pg_array_end(&a);
    notifying_put_payloads(x, &a);
    dgm_pg_arg_int(&a, s->base.replica);
    dgm_pg_arg_int(&a, last);
    dgm_pg_arg_int(&a, FOLLOW_EXPIRES_MS);
    PQclear(dgm_pg_share_exec(s, sql, &a));
    dgm_pg_args_done(&a);
}

/* Those whose owners do not know it yet, as wake-ups by owner. With the lock. */
static pg_wakeup *following_unasked(pg_share *h)
{
    pg_share asked = {0};
    for (size_t i = 0; i < h->following.cap; i++) {
        for (dgm_table_node *at = h->following.slots[i]; at; at = at->next) {
            pg_followed *f = (pg_followed *)at;
            if (!f->is_requested)
                wakeup_add(&asked, f->replica, at->hash);
            f->is_requested = true;
        }
    }
    return asked.wakeups;
}

void dgm_pg_follow_send(pg_store *s)
{
    pg_share *h = &s->share;
    struct notifying x = {0};
    dgm_buf_init(&x.payloads, (size_t)1 << 30);
    pthread_mutex_lock(&h->lock);
    pg_wakeup *grown = h->wakeups, *asked = following_unasked(h);
    h->wakeups = NULL;
    pthread_mutex_unlock(&h->lock);
    for (pg_wakeup *w = asked; w; w = w->next)
        notifying_add_wakeup(&x, w, 'f', s->base.replica);
    for (pg_wakeup *w = grown; w; w = w->next)
        notifying_add_wakeup(&x, w, 'g', w->since_us);
    if (x.n && h->polls)
        notifying_command(s, &x);
    else if (x.n)
        notifying_send(s, &x);
    wakeups_free(grown);
    wakeups_free(asked);
    free(x.items);
    dgm_buf_done(&x.payloads);
}

/* ---- receiving ------------------------------------------------------------------------------------------- */

/* With the lock. */
static void receive_grown(pg_share *h, uint64_t hash)
{
    for (dgm_table_node *at = dgm_table_first(&h->following, hash); at && h->port; at = at->next) {
        const pg_followed *f = (const pg_followed *)at;
        if (at->hash == hash)
            dgm_share_port_grown(h->port, f->owner, f->task_id);
    }
}

static void count_wakeup(pg_store *s, int64_t since_us)
{
    int64_t took = unix_us() - since_us; /* by two clocks, if the servers are on two machines */
    size_t bound = 0;
    took = took < 0 ? 0 : took;
    while (bound < DGM_N_COMMIT_BOUNDS && took > (int64_t)dgm_store_commit_bounds[bound])
        bound++;
    pthread_mutex_lock(&s->lock);
    s->stats.wakeup_took[bound]++;
    s->stats.wakeup_ns += (uint64_t)took * 1000;
    pthread_mutex_unlock(&s->lock);
}

void dgm_pg_follow_receive(pg_store *s, const char *text)
{
    pg_share *h = &s->share;
    char kind = *text, *end = NULL;
    int64_t number = *text ? strtoll(text + 1, &end, 10) : 0;
    if (kind == 'g')
        count_wakeup(s, number);
    pthread_mutex_lock(&h->lock);
    while (end && *end == ' ') {
        uint64_t hash = strtoull(end + 1, &end, 16);
        if (kind == 'g')
            receive_grown(h, hash);
        else if (kind == 'f')
            followed_add(h, number, hash);
    }
    pthread_mutex_unlock(&h->lock);
}

/* ---- reading how far they are ------------------------------------------------------------------------------ */

/* Entries of `following` from *slot on. Only this thread removes them. */
static size_t poll_page(pg_share *h, size_t *slot, pg_followed **page)
{
    size_t n = 0;
    pthread_mutex_lock(&h->lock);
    for (; *slot < h->following.cap && n < POLL_PAGE / 2; ++*slot) {
        for (dgm_table_node *at = h->following.slots[*slot]; at && n < POLL_PAGE; at = at->next)
            page[n++] = (pg_followed *)at;
    }
    pthread_mutex_unlock(&h->lock);
    return n;
}

static void poll_results(pg_store *s, pg_followed **page, const PGresult *r)
{
    pg_share *h = &s->share;
    pthread_mutex_lock(&h->lock);
    for (int i = 0; i < PQntuples(r); i++) {
        pg_followed *f = page[dgm_pg_int(r, i, 0) - 1];
        int64_t last_seq = dgm_pg_int(r, i, 1), owner = dgm_pg_int(r, i, 2);
        bool is_new = f->last_seq != last_seq || f->replica != owner;
        f->last_seq = last_seq;
        f->replica = owner;
        if (is_new && h->port)
            dgm_share_port_grown(h->port, f->owner, f->task_id);
    }
    pthread_mutex_unlock(&h->lock);
}

void dgm_pg_follow_poll(pg_store *s)
{
    static const char sql[] =
        "SELECT x.k,t.last_seq,t.owner FROM unnest($1::bytea[],$2::bytea[],$3::bytea[])"
        " WITH ORDINALITY AS x(tenant,principal,id,k) JOIN dragoman.tasks t"
        " ON t.tenant=x.tenant AND t.principal=x.principal AND t.id=x.id";
    pg_followed **page = dgm_xmalloc(POLL_PAGE * sizeof *page);
    size_t slot = 0, n;
    pg_args a;
    dgm_pg_args_init(&a);
    while ((n = poll_page(&s->share, &slot, page)) > 0) {
        dgm_pg_args_clear(&a);
        for (int column = 0; column < 3; column++) {
            dgm_pg_array_begin(&a, false);
            for (size_t i = 0; i < n; i++)
                dgm_pg_array_str(&a, column == 0   ? page[i]->owner.tenant
                                     : column == 1 ? page[i]->owner.principal
                                                   : page[i]->task_id);
            dgm_pg_array_end(&a);
        }
        PGresult *r = dgm_pg_share_exec(s, sql, &a);
        if (!r)
            break;
        poll_results(s, page, r);
        PQclear(r);
    }
    dgm_pg_args_done(&a);
    free(page);
}
