/*
 * store/memory/memory_share.c - several stores on one memory, as servers on one database: for tests.
 *
 * A call is executed under the lock of the memory, for the store that was called. Callbacks of other stores are
 * posted. A thread answers commands whose deadline has passed.
 */
#include "store/memory/memory_share.h"
#include "store/memory/memory_int.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

struct replica {
    dgm_store base; /* first; base.replica is its id */
    struct replica *next;
    struct shared_memory *memory;
    dgm_share_port *port; /* NULL: the core is not called */
    int n_fails;          /* appends that are answered with a failure */
    bool fails_are_stored;
    int n_read_fails;
    dgm_arena *agents_arena; /* NULL: set_agents was not called */
    const dgm_str *agents;   /* whose orphans it takes */
    size_t n_agents;
};

struct followed {
    struct followed *next;
    struct replica *by;
    struct timespec until;
    dgm_arena *arena; /* has this */
    dgm_owner owner;
    dgm_str task_id;
};

struct sent { /* a command that waits for an answer */
    struct sent *next;
    dgm_job *job;
    struct timespec until;
};

struct shared_memory {
    struct memory_store store; /* its lock is for all of this */
    struct shared_memory *next;
    char *name;
    struct replica *replicas;
    struct followed *followed;
    struct sent *sent;
    uint32_t last_replica;
    int64_t last_command;
    int64_t trims; /* the replica that takes away what is old; 0: none yet */
    pthread_t clock;
    pthread_cond_t changed;
    bool stopping;
};

static pthread_mutex_t memories_lock = PTHREAD_MUTEX_INITIALIZER;
static struct shared_memory *memories;

/* ---- time ------------------------------------------------------------------------------------------------ */

static struct timespec share_in_ms(uint64_t ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)(ms / 1000);
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

static bool share_is_before(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

static struct replica *share_find(const struct shared_memory *m, int64_t id)
{
    struct replica *r = id ? m->replicas : NULL;
    while (r && r->base.replica != id)
        r = r->next;
    return r;
}

/* ---- commands --------------------------------------------------------------------------------------------- */

/* The command that *at is, with an error in job->code or an answer. */
static void share_answer(struct sent **at)
{
    struct sent *c = *at;
    *at = c->next;
    dgm_loop_post(c->job->loop, dgm_job_on_answers, c->job);
    free(c);
}

static void *share_clock(void *arg)
{
    struct shared_memory *m = arg;
    pthread_mutex_lock(&m->store.lock);
    while (!m->stopping) {
        struct timespec now = share_in_ms(0), next = share_in_ms(60000);
        for (struct sent **at = &m->sent; *at;) {
            dgm_job *job = (*at)->job;
            if (share_is_before(now, (*at)->until)) {
                if (share_is_before((*at)->until, next))
                    next = (*at)->until;
                at = &(*at)->next;
                continue;
            }
            job->code = dgm_command_unanswered(job->command.ms, &job->err);
            share_answer(at);
        }
        pthread_cond_timedwait(&m->changed, &m->store.lock, &next);
    }
    pthread_mutex_unlock(&m->store.lock);
    return NULL;
}

/* Those to and from a replica that died. */
static void share_fail_commands(struct shared_memory *m, int64_t replica)
{
    for (struct sent **at = &m->sent; *at;) {
        dgm_job *job = (*at)->job;
        if (job->command.to == replica || job->command.is.from == replica) {
            job->code = dgm_command_unanswered(0, &job->err);
            share_answer(at);
        } else {
            at = &(*at)->next;
        }
    }
}

static void share_command(struct shared_memory *m, struct replica *from, dgm_job *job)
{
    const struct replica *to = share_find(m, job->command.to);
    job->command.is.id = ++m->last_command;
    job->command.is.from = from->base.replica;
    if (to && to->port)
        dgm_share_port_command(to->port, &job->command.is);
    else
        job->code = dgm_command_unanswered(0, &job->err);
    if (job->code || !job->call.answered) {
        dgm_loop_post(job->loop, dgm_job_on_answers, job);
        return;
    }
    struct sent *c = dgm_xcalloc(1, sizeof *c);
    c->job = job;
    c->until = share_in_ms(job->command.ms);
    c->next = m->sent;
    m->sent = c;
    pthread_cond_signal(&m->changed);
}

static void share_remove_answer(struct shared_memory *m, struct replica *from, dgm_job *answer)
{
    for (struct sent **at = &m->sent; *at; at = &(*at)->next) {
        dgm_job *job = (*at)->job;
        if (job->command.is.id != answer->answer.command || job->command.to != from->base.replica)
            continue;
        job->code = answer->answer.code;
        if (job->code)
            job->err = *answer->answer.err;
        else if (answer->answer.body.p)
            job->got.note = dgm_arena_dup(dgm_job_arena(job), answer->answer.body);
        share_answer(at);
        break;
    }
}

/* ---- following -------------------------------------------------------------------------------------------- */

static void share_forget(struct followed **at)
{
    struct followed *f = *at;
    *at = f->next;
    dgm_arena_free(f->arena);
}

/* Of a replica; NULL: of all whose time is over. */
static void share_forget_followed(struct shared_memory *m, const struct replica *by)
{
    struct timespec now = share_in_ms(0);
    for (struct followed **at = &m->followed; *at;) {
        if (by ? (*at)->by == by : share_is_before((*at)->until, now))
            share_forget(at);
        else
            at = &(*at)->next;
    }
}

static bool share_is_of(const struct followed *f, dgm_owner owner, dgm_str task_id)
{
    return dgm_str_eq(f->task_id, task_id) && memory_same_owner(f->owner, owner);
}

static void share_grown(struct shared_memory *m, const struct replica *by, dgm_owner owner,
                        dgm_str task_id)
{
    share_forget_followed(m, NULL);
    for (struct followed *f = m->followed; f; f = f->next) {
        if (f->by != by && f->by->port && share_is_of(f, owner, task_id))
            dgm_share_port_grown(f->by->port, owner, task_id);
    }
}

static void shared_follow(dgm_store *base, dgm_owner owner, dgm_str task_id, int64_t owner_replica)
{
    struct replica *r = (struct replica *)base;
    struct shared_memory *m = r->memory;
    (void)owner_replica; /* whoever it is then */
    pthread_mutex_lock(&m->store.lock);
    for (struct followed **at = &m->followed; *at; at = &(*at)->next) {
        if ((*at)->by == r && share_is_of(*at, owner, task_id)) {
            share_forget(at);
            break;
        }
    }
    dgm_arena *a = dgm_arena_new();
    struct followed *f = dgm_new(a, struct followed);
    *f = (struct followed){
        .next = m->followed,
        .by = r,
        .until = share_in_ms(DGM_FOLLOW_MS),
        .arena = a,
        .owner = {dgm_arena_dup(a, owner.tenant), dgm_arena_dup(a, owner.principal)},
        .task_id = dgm_arena_dup(a, task_id)};
    m->followed = f;
    pthread_mutex_unlock(&m->store.lock);
}

static bool shared_is_followed(dgm_store *base, dgm_owner owner, dgm_str task_id)
{
    struct replica *r = (struct replica *)base;
    bool is = false;
    pthread_mutex_lock(&r->memory->store.lock);
    share_forget_followed(r->memory, NULL);
    for (const struct followed *f = r->memory->followed; f; f = f->next)
        is = is || (f->by != r && share_is_of(f, owner, task_id));
    pthread_mutex_unlock(&r->memory->store.lock);
    return is;
}

/* ---- leases ----------------------------------------------------------------------------------------------- */

static void share_set_lease(const struct replica *r, const struct task *t, dgm_lease *lease)
{
    bool is_live = share_find(r->memory, t->replica);
    lease->holder = t->replica == r->base.replica ? DGM_LEASE_OURS
                    : is_live                     ? DGM_LEASE_OTHER
                                                  : DGM_LEASE_NONE;
    lease->replica = is_live ? t->replica : 0;
    lease->fence = t->fence;
}

static void share_set_owner(struct replica *r, struct task *t)
{
    t->replica = (uint32_t)r->base.replica & MAX_REPLICA;
    t->fence++;
    share_grown(r->memory, r, task_owner(t), task_id(t));
}

static bool share_accepts(const struct replica *r, const struct task *t)
{
    for (size_t i = 0; r->port && i < r->n_agents; i++) {
        if (dgm_str_eq(r->agents[i], task_agent(t)))
            return true;
    }
    return false;
}

/* The next replica in turn whose core takes the task; not `last`, unless there is no other. */
static struct replica *share_next_heir(struct shared_memory *m, struct replica *last,
                                       struct replica *after, const struct task *t)
{
    for (struct replica *r = after ? after->next : NULL; r; r = r->next) {
        if (r != last && share_accepts(r, t))
            return r;
    }
    for (struct replica *r = m->replicas; r; r = r->next) {
        if (r != last && share_accepts(r, t))
            return r;
    }
    return last && share_accepts(last, t) ? last : NULL;
}

/* Tasks that work and have no owner go to those that live; last: who had them. */
static void share_orphans(struct shared_memory *m, struct replica *last)
{
    struct memory_store *s = &m->store;
    struct replica *heir = NULL, *before = NULL;
    for (size_t i = 0; i < s->tasks.cap; i++) {
        for (dgm_table_node *at = s->tasks.slots[i]; at; at = at->next) {
            struct task *t = (struct task *)at;
            if (!dgm_state_is_unfinished(t->state) || share_find(m, t->replica))
                continue;
            if (!(heir = share_next_heir(m, last, before, t)))
                continue;
            before = heir;
            share_set_owner(heir, t);
            dgm_task_row row = task_row(t);
            share_set_lease(heir, t, &row.lease);
            dgm_share_port_orphans(heir->port, &row, 1);
            m->store.stats.taken_over++;
        }
    }
}

static void share_acquire(struct replica *r, dgm_job *job)
{
    struct task *t = dgm_memory_task_of(&r->memory->store, job);
    if (t && !share_find(r->memory, t->replica))
        share_set_owner(r, t);
    dgm_memory_return_task(job, t);
    if (t)
        share_set_lease(r, t, &job->got.row->lease);
}

static void share_release(struct replica *r, dgm_job *job)
{
    struct task *t = dgm_memory_task_of(&r->memory->store, job);
    if (!t || !memory_has_lease(&r->memory->store, t, job->task.fence)) {
        job->code = dgm_append_lost(job->task.task_id, &job->err);
        return;
    }
    t->replica = 0;
    if (!job->task.has_failed) /* otherwise another release or death is what comes later */
        share_orphans(r->memory, r);
    share_grown(r->memory, r, job->task.owner, job->task.task_id);
}

/* ---- calls ------------------------------------------------------------------------------------------------ */

static void share_work(struct replica *r, dgm_job *job)
{
    struct shared_memory *m = r->memory;
    struct memory_store *s = &m->store;
    const dgm_task_row *row = &job->append.batch.row;
    bool is_read =
        job->kind == DGM_JOB_ACQUIRE || job->kind == DGM_JOB_RELEASE || job->kind == DGM_JOB_TASK;
    if (is_read && r->n_read_fails) {
        r->n_read_fails--;
        job->code = dgm_fail(&job->err, DGM_UNAVAILABLE, NULL, "the memory cannot be reached");
        return;
    }
    if (job->kind == DGM_JOB_ACQUIRE) {
        share_acquire(r, job);
        return;
    }
    if (job->kind == DGM_JOB_RELEASE) {
        share_release(r, job);
        return;
    }
    if (job->kind == DGM_JOB_ANSWER) {
        share_remove_answer(m, r, job);
        return;
    }
    if (job->kind == DGM_JOB_TRIM && m->trims != r->base.replica) {
        if (share_find(m, m->trims))
            return;
        m->trims = r->base.replica;
    }
    bool fails = job->kind == DGM_JOB_APPEND && r->n_fails;
    if (!fails || r->fails_are_stored)
        dgm_memory_work(s, job);
    if (job->kind == DGM_JOB_APPEND && !job->code && (!fails || r->fails_are_stored)) {
        if (job->append.batch.releases && dgm_state_is_unfinished(row->state))
            share_orphans(m, r);
        share_grown(m, r, row->owner, row->id);
    }
    if (fails) {
        r->n_fails--;
        job->code = dgm_fail(&job->err, DGM_UNAVAILABLE, NULL, "the memory cannot be reached");
    }
    bool is_task = job->kind == DGM_JOB_TASK || job->kind == DGM_JOB_FIND_CALL;
    if (is_task && job->got.row) {
        dgm_task_row *got = job->got.row;
        uint64_t hash = dgm_memory_task_hash(got->owner, got->id);
        share_set_lease(r, dgm_memory_find_task(s, hash, got->owner, got->id), &got->lease);
    }
}

static void shared_submit(dgm_store *base, dgm_job *job)
{
    struct replica *r = (struct replica *)base;
    struct memory_store *s = &r->memory->store;
    dgm_job *pair = job->pair;
    pthread_mutex_lock(&s->lock);
    s->replica = (uint32_t)base->replica;
    if (job->kind == DGM_JOB_COMMAND) {
        share_command(r->memory, r, job);
        pthread_mutex_unlock(&s->lock);
        return;
    }
    share_work(r, job);
    if (pair && job->code) {
        pair->code = job->code;
        pair->err = job->err;
    } else if (pair) {
        share_work(r, pair);
    }
    dgm_loop_post(job->loop, dgm_job_on_answers, job); /* with the lock: the order of the calls */
    if (pair)
        dgm_loop_post(pair->loop, dgm_job_on_answers, pair);
    pthread_mutex_unlock(&s->lock);
}

static bool shared_is_unknown(dgm_store *base, dgm_owner owner, dgm_str agent, dgm_str context_id,
                              dgm_str message_id)
{
    (void)base, (void)owner, (void)agent, (void)context_id, (void)message_id;
    return false; /* as with a database: only a read knows what the others stored */
}

/* ---- life ------------------------------------------------------------------------------------------------- */

static void shared_share(dgm_store *base, dgm_loop *loop, const dgm_share_handlers *handlers)
{
    struct replica *r = (struct replica *)base;
    pthread_mutex_lock(&r->memory->store.lock);
    dgm_share_port_close(r->port);
    r->port = handlers ? dgm_share_port_new(loop, handlers) : NULL;
    if (r->port) {
        share_orphans(r->memory, NULL);
        dgm_share_port_searched(r->port);
    }
    pthread_mutex_unlock(&r->memory->store.lock);
}

static void shared_set_agents(dgm_store *base, const dgm_str *agents, size_t n)
{
    struct replica *r = (struct replica *)base;
    dgm_arena *a = dgm_arena_new();
    dgm_str *copies = dgm_new_n(a, dgm_str, n + 1);
    for (size_t i = 0; i < n; i++)
        copies[i] = dgm_arena_dup(a, agents[i]);
    pthread_mutex_lock(&r->memory->store.lock);
    dgm_arena_free(r->agents_arena);
    r->agents_arena = a;
    r->agents = copies;
    r->n_agents = n;
    if (r->port && n)
        share_orphans(r->memory, NULL);
    pthread_mutex_unlock(&r->memory->store.lock);
}

/* It has the next id then: what the old one had is without an owner. */
static void share_renew(struct replica *r)
{
    int64_t old = r->base.replica;
    r->base.replica = ++r->memory->last_replica;
    share_fail_commands(r->memory, old);
    share_orphans(r->memory, r);
}

void dgm_store_memory_kill(dgm_store *s)
{
    struct replica *r = (struct replica *)s;
    pthread_mutex_lock(&r->memory->store.lock);
    share_renew(r);
    pthread_mutex_unlock(&r->memory->store.lock);
}

void dgm_store_memory_notice(dgm_store *s)
{
    struct replica *r = (struct replica *)s;
    pthread_mutex_lock(&r->memory->store.lock);
    if (r->port)
        dgm_share_port_renewed(r->port);
    pthread_mutex_unlock(&r->memory->store.lock);
}

void dgm_store_memory_report_owned(dgm_store *s)
{
    struct replica *r = (struct replica *)s;
    const dgm_table *tasks = &r->memory->store.tasks;
    pthread_mutex_lock(&r->memory->store.lock);
    for (size_t i = 0; r->port && i < tasks->cap; i++) {
        for (dgm_table_node *at = tasks->slots[i]; at; at = at->next) {
            const struct task *t = (const struct task *)at;
            if (t->replica != r->base.replica || !dgm_state_is_unfinished(t->state))
                continue;
            dgm_task_row row = {.owner = task_owner(t), .id = task_id(t)};
            share_set_lease(r, t, &row.lease);
            dgm_share_port_owned(r->port, &row, 1);
        }
    }
    pthread_mutex_unlock(&r->memory->store.lock);
}

static struct shared_memory *share_open_memory(const char *name)
{
    struct shared_memory *m = memories;
    pthread_condattr_t monotonic;
    while (m && strcmp(m->name, name) != 0)
        m = m->next;
    if (m)
        return m;
    m = dgm_xcalloc(1, sizeof *m);
    dgm_memory_init(&m->store);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&m->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&m->clock, NULL, share_clock, m))
        abort(); /* of a test */
    m->name = strdup(name);
    m->next = memories;
    memories = m;
    return m;
}

static void share_free_memory(struct shared_memory *m)
{
    struct shared_memory **at = &memories;
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    pthread_mutex_lock(&m->store.lock);
    m->stopping = true;
    pthread_cond_signal(&m->changed);
    pthread_mutex_unlock(&m->store.lock);
    pthread_join(m->clock, NULL);
    pthread_cond_destroy(&m->changed);
    dgm_memory_done(&m->store);
    free(m->name);
    free(m);
}

extern const dgm_store_driver dgm_store_memory_shared;
static const dgm_share_driver memory_share_driver = {.share = shared_share,
                                                     .follow = shared_follow,
                                                     .is_followed = shared_is_followed,
                                                     .set_agents = shared_set_agents};

static dgm_code open_shared(const char *rest, const dgm_store_options *options,
                            dgm_store **ret_store, dgm_err *err)
{
    if (!*rest)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                        "memory-shared: the name is missing: write memory-shared:NAME");
    struct replica *r = dgm_xcalloc(1, sizeof *r);
    r->base.driver = &dgm_store_memory_shared;
    r->base.share = &memory_share_driver;
    dgm_store_set_name(&r->base, options->replica_name);
    pthread_mutex_lock(&memories_lock);
    struct shared_memory *m = r->memory = share_open_memory(rest);
    pthread_mutex_lock(&m->store.lock);
    r->base.replica = ++m->last_replica;
    r->next = m->replicas;
    m->replicas = r;
    pthread_mutex_unlock(&m->store.lock);
    pthread_mutex_unlock(&memories_lock);
    *ret_store = &r->base;
    return DGM_OK;
}

static void close_shared(dgm_store *base)
{
    struct replica *r = (struct replica *)base, **at;
    struct shared_memory *m = r->memory;
    pthread_mutex_lock(&memories_lock);
    pthread_mutex_lock(&m->store.lock);
    dgm_share_port_close(r->port);
    for (at = &m->replicas; *at != r; at = &(*at)->next)
        ;
    *at = r->next;
    share_forget_followed(m, r);
    share_fail_commands(m, base->replica);
    share_orphans(m, NULL);
    bool is_last = !m->replicas;
    pthread_mutex_unlock(&m->store.lock);
    if (is_last)
        share_free_memory(m);
    pthread_mutex_unlock(&memories_lock);
    dgm_arena_free(r->agents_arena);
    free(r);
}

static bool shared_is_healthy(dgm_store *base, dgm_err *ret_why)
{
    (void)base, (void)ret_why;
    return true;
}

static dgm_store_stats shared_stats(dgm_store *base)
{
    struct memory_store *s = &((struct replica *)base)->memory->store;
    pthread_mutex_lock(&s->lock);
    dgm_store_stats copy = s->stats;
    pthread_mutex_unlock(&s->lock);
    return copy;
}

const dgm_store_driver dgm_store_memory_shared = {
    .scheme = "memory-shared",
    .open = open_shared,
    .close = close_shared,
    .submit = shared_submit,
    .is_unknown = shared_is_unknown,
    .is_healthy = shared_is_healthy,
    .stats = shared_stats,
};

void dgm_store_memory_fail(dgm_store *s, int n, bool is_stored)
{
    struct replica *r = (struct replica *)s;
    pthread_mutex_lock(&r->memory->store.lock);
    r->n_fails = n;
    r->fails_are_stored = is_stored;
    pthread_mutex_unlock(&r->memory->store.lock);
}

void dgm_store_memory_fail_reads(dgm_store *s, int n)
{
    struct replica *r = (struct replica *)s;
    pthread_mutex_lock(&r->memory->store.lock);
    r->n_read_fails = n;
    pthread_mutex_unlock(&r->memory->store.lock);
}

int dgm_store_memory_fails_left(dgm_store *s)
{
    struct replica *r = (struct replica *)s;
    pthread_mutex_lock(&r->memory->store.lock);
    int n = r->n_read_fails;
    pthread_mutex_unlock(&r->memory->store.lock);
    return n;
}
