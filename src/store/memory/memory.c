/*
 * store/memory/memory.c - a store that forgets: for tests, benchmarks, and servers that need no more.
 *
 * The work is done at once, under one lock, on the calling thread; only the answer comes later. So
 * answers are in order by themselves, and `sync` has no meaning.
 */
#include "base/limits.h"
#include "store/store_int.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

/* ---- tables ---------------------------------------------------------------------------------------- */

/* Chained, doubled when full. What is looked up embeds a node as its first member. */
struct node {
    struct node *next;
    uint64_t hash;
};

struct table {
    struct node **slots;
    size_t n, cap; /* cap is a power of two, or 0 */
};

static struct node **slot_of(const struct table *t, uint64_t hash)
{
    return &t->slots[hash & (t->cap - 1)];
}

static struct node *first_of(const struct table *t, uint64_t hash)
{
    return t->cap ? *slot_of(t, hash) : NULL;
}

static void table_put(struct table *t, struct node *node)
{
    if (t->n >= t->cap) {
        struct table wide = {.cap = t->cap ? t->cap * 2 : 64, .n = t->n};
        wide.slots = dgm_xcalloc(wide.cap, sizeof(struct node *));
        for (size_t i = 0; i < t->cap; i++) {
            for (struct node *at = t->slots[i], *next; at; at = next) {
                next = at->next;
                at->next = *slot_of(&wide, at->hash);
                *slot_of(&wide, at->hash) = at;
            }
        }
        free(t->slots);
        *t = wide;
    }
    node->next = *slot_of(t, node->hash);
    *slot_of(t, node->hash) = node;
    t->n++;
}

static void table_drop(struct table *t, struct node *node)
{
    struct node **at = slot_of(t, node->hash);
    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    t->n--;
}

/* ---- what is kept ---------------------------------------------------------------------------------- */

/* What is kept is one block each, its texts behind it: most tasks have little, and there are many. */
static void put_text(char **at, dgm_str *text)
{
    if (text->n)
        memcpy(*at, text->p, text->n);
    text->p = *at;
    *at += text->n;
}

struct turn {
    struct turn *next;
    uint64_t first_seq, last_seq;
    uint32_t turn;
    uint32_t protocol_n, caller_id_n, request_n, previous_n;
    char texts[]; /* one behind the other */
};

struct task {
    struct node node;
    dgm_task_row row;     /* folded: a block of its own */
    dgm_record **records; /* from seq `first` on */
    uint32_t n_records, cap_records;
    uint64_t first;
    struct turn *turns;            /* in order */
    struct taken *taken;           /* the message ids it was sent */
    struct task *later, **to_this; /* that ended next; who points to it, NULL: it has not ended */
    char texts[];                  /* of the row */
};

struct caller { /* a turn by the id its caller gave it */
    struct node node;
    struct task *task;
    uint32_t turn;
    dgm_str protocol, caller_id;
    char texts[];
};

struct taken { /* a message id; owner, agent and task are those of the task */
    struct node node;
    struct taken *next, **to_this; /* of the same task */
    struct task *task;
    int64_t expires_ms;
    unsigned char digest[32];
    uint32_t turn;
    uint32_t message_id_n, context_id_n;
    char texts[];
};

static dgm_turn_row turn_row(const struct turn *t)
{
    const char *caller_id = t->texts + t->protocol_n, *request = caller_id + t->caller_id_n;
    return (dgm_turn_row){.turn = t->turn,
                          .first_seq = t->first_seq,
                          .last_seq = t->last_seq,
                          .protocol = {t->texts, t->protocol_n},
                          .caller_id = {caller_id, t->caller_id_n},
                          .request = {request, t->request_n},
                          .previous = {request + t->request_n, t->previous_n}};
}

static dgm_str taken_message(const struct taken *d)
{
    return (dgm_str){d->texts, d->message_id_n};
}

static dgm_str taken_context(const struct taken *d)
{
    return (dgm_str){d->texts + d->message_id_n, d->context_id_n};
}

struct memory_store {
    dgm_store base;
    pthread_mutex_t lock;
    struct table tasks, callers, dedupe;
    struct task *first_ended, **last_ended; /* in the order they ended */
    size_t bytes;                           /* of records and folded Tasks */
    dgm_store_stats stats;
};

static uint64_t hash_of(uint64_t seed, const dgm_str *texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        seed = dgm_hash(seed, texts[i].p, texts[i].n);
    return seed;
}

static bool same_owner(dgm_owner a, dgm_owner b)
{
    return dgm_str_eq(a.tenant, b.tenant) && dgm_str_eq(a.principal, b.principal);
}

static uint64_t task_hash(dgm_owner owner, dgm_str id)
{
    return hash_of(1, (dgm_str[]){owner.tenant, owner.principal, id}, 3);
}

static struct task *find_task(struct memory_store *s, dgm_owner owner, dgm_str id)
{
    uint64_t hash = task_hash(owner, id);
    for (struct node *at = first_of(&s->tasks, hash); at; at = at->next) {
        struct task *t = (struct task *)at;
        if (at->hash == hash && same_owner(t->row.owner, owner) && dgm_str_eq(t->row.id, id))
            return t;
    }
    return NULL;
}

static uint64_t caller_hash(dgm_owner owner, dgm_str protocol, dgm_str caller_id)
{
    return hash_of(2, (dgm_str[]){owner.tenant, owner.principal, protocol, caller_id}, 4);
}

static struct caller *find_caller(struct memory_store *s, dgm_owner owner, dgm_str protocol,
                                  dgm_str caller_id)
{
    uint64_t hash = caller_hash(owner, protocol, caller_id);
    for (struct node *at = first_of(&s->callers, hash); at; at = at->next) {
        struct caller *c = (struct caller *)at;
        if (at->hash == hash && same_owner(c->task->row.owner, owner) &&
            dgm_str_eq(c->protocol, protocol) && dgm_str_eq(c->caller_id, caller_id))
            return c;
    }
    return NULL;
}

static uint64_t dedupe_hash(dgm_owner owner, dgm_str agent, dgm_str context_id, dgm_str message_id)
{
    dgm_str key[] = {owner.tenant, owner.principal, agent, context_id, message_id};
    return hash_of(3, key, 5);
}

static struct taken *find_taken(struct memory_store *s, dgm_owner owner, dgm_str agent,
                                dgm_str context_id, dgm_str message_id)
{
    uint64_t hash = dedupe_hash(owner, agent, context_id, message_id);
    for (struct node *at = first_of(&s->dedupe, hash); at; at = at->next) {
        struct taken *d = (struct taken *)at;
        if (at->hash == hash && same_owner(d->task->row.owner, owner) &&
            dgm_str_eq(d->task->row.agent, agent) && dgm_str_eq(taken_context(d), context_id) &&
            dgm_str_eq(taken_message(d), message_id))
            return d;
    }
    return NULL;
}

static void drop_caller(struct memory_store *s, struct caller *c)
{
    table_drop(&s->callers, &c->node);
    free(c);
}

static void drop_taken(struct memory_store *s, struct taken *d)
{
    table_drop(&s->dedupe, &d->node);
    *d->to_this = d->next;
    if (d->next)
        d->next->to_this = d->to_this;
    free(d);
}

/* ---- writing --------------------------------------------------------------------------------------- */

static struct task *make_task(struct memory_store *s, const dgm_task_row *row)
{
    size_t n =
        row->owner.tenant.n + row->owner.principal.n + row->id.n + row->context_id.n + row->agent.n;
    struct task *t = dgm_xmalloc(sizeof *t + n);
    char *at = t->texts;
    *t = (struct task){.row = *row, .first = 1};
    t->row.folded = (dgm_str){0};
    t->row.folded_seq = 0;
    put_text(&at, &t->row.owner.tenant);
    put_text(&at, &t->row.owner.principal);
    put_text(&at, &t->row.id);
    put_text(&at, &t->row.context_id);
    put_text(&at, &t->row.agent);
    t->node.hash = task_hash(t->row.owner, t->row.id);
    table_put(&s->tasks, &t->node);
    return t;
}

static void keep_caller(struct memory_store *s, struct task *t, const dgm_turn_row *row)
{
    if (row->caller_id.n == 0)
        return;
    struct caller *c = find_caller(s, t->row.owner, row->protocol, row->caller_id);
    if (!c) {
        c = dgm_xmalloc(sizeof *c + row->protocol.n + row->caller_id.n);
        char *at = c->texts;
        *c = (struct caller){.protocol = row->protocol, .caller_id = row->caller_id};
        put_text(&at, &c->protocol);
        put_text(&at, &c->caller_id);
        c->node.hash = caller_hash(t->row.owner, row->protocol, row->caller_id);
        table_put(&s->callers, &c->node);
    }
    c->task = t;
    c->turn = row->turn;
}

static struct turn *make_turn(const dgm_turn_row *row)
{
    dgm_turn_row texts = *row;
    struct turn *t = dgm_xmalloc(sizeof *t + row->protocol.n + row->caller_id.n + row->request.n +
                                 row->previous.n);
    char *at = t->texts;
    *t = (struct turn){.turn = row->turn,
                       .first_seq = row->first_seq,
                       .last_seq = row->last_seq,
                       .protocol_n = (uint32_t)row->protocol.n,
                       .caller_id_n = (uint32_t)row->caller_id.n,
                       .request_n = (uint32_t)row->request.n,
                       .previous_n = (uint32_t)row->previous.n};
    put_text(&at, &texts.protocol);
    put_text(&at, &texts.caller_id);
    put_text(&at, &texts.request);
    put_text(&at, &texts.previous);
    return t;
}

static void keep_turn(struct memory_store *s, struct task *t, const dgm_turn_row *row)
{
    struct turn **at = &t->turns, *made = make_turn(row), *old;
    while ((old = *at) && old->turn < row->turn)
        at = &old->next;
    made->next = old;
    if (old && old->turn == row->turn) {
        made->next = old->next;
        free(old);
    }
    *at = made;
    keep_caller(s, t, row);
}

static void keep_taken(struct memory_store *s, struct task *t, const dgm_dedupe_row *row)
{
    dgm_str message_id = row->message_id, context_id = row->context_id;
    struct taken *d = find_taken(s, row->owner, row->agent, context_id, message_id);
    assert(same_owner(row->owner, t->row.owner) && dgm_str_eq(row->agent, t->row.agent) &&
           dgm_str_eq(row->task_id, t->row.id));
    if (d)
        drop_taken(s, d);
    d = dgm_xmalloc(sizeof *d + message_id.n + context_id.n);
    char *at = d->texts;
    *d = (struct taken){.task = t,
                        .expires_ms = row->expires_ms,
                        .turn = row->turn,
                        .message_id_n = (uint32_t)message_id.n,
                        .context_id_n = (uint32_t)context_id.n};
    memcpy(d->digest, row->digest, sizeof d->digest);
    put_text(&at, &message_id);
    put_text(&at, &context_id);
    d->node.hash = dedupe_hash(row->owner, row->agent, context_id, message_id);
    table_put(&s->dedupe, &d->node);
    d->next = t->taken;
    d->to_this = &t->taken;
    if (d->next)
        d->next->to_this = &d->next;
    t->taken = d;
}

static void keep_message(struct memory_store *s, struct task *t, const dgm_append *b)
{
    dgm_dedupe_row row = {.owner = t->row.owner,
                          .agent = t->row.agent,
                          .context_id = t->row.context_id,
                          .message_id = b->taken->message_id,
                          .task_id = t->row.id,
                          .turn = b->turn->turn};
    memcpy(row.digest, b->taken->digest, sizeof row.digest);
    keep_taken(s, t, &row);
    if (!b->taken->nameless_until_ms)
        return;
    row.context_id = (dgm_str){0};
    row.expires_ms = b->taken->nameless_until_ms;
    keep_taken(s, t, &row);
}

static void keep_folded(struct memory_store *s, struct task *t, const dgm_task_row *row)
{
    char *copy = dgm_xmalloc(row->folded.n + 1);
    memcpy(copy, row->folded.p, row->folded.n);
    copy[row->folded.n] = 0;
    free((char *)(uintptr_t)t->row.folded.p);
    s->bytes = s->bytes - t->row.folded.n + row->folded.n;
    t->row.folded = (dgm_str){copy, row->folded.n};
    t->row.folded_seq = row->folded_seq;
}

/* ---- forgetting ------------------------------------------------------------------------------------ */

static void note_end(struct memory_store *s, struct task *t)
{
    if (t->to_this || !dgm_state_is_terminal(t->row.state))
        return;
    t->to_this = s->last_ended;
    *s->last_ended = t;
    s->last_ended = &t->later;
}

static void drop_caller_of(struct memory_store *s, const struct task *t, const struct turn *turn)
{
    dgm_turn_row row = turn_row(turn);
    struct caller *c = find_caller(s, t->row.owner, row.protocol, row.caller_id);
    if (c && c->task == t && c->turn == turn->turn)
        drop_caller(s, c);
}

static void free_task(struct task *t);

static void forget_first_ended(struct memory_store *s)
{
    struct task *t = s->first_ended;
    s->first_ended = t->later;
    if (t->later)
        t->later->to_this = &s->first_ended;
    else
        s->last_ended = &s->first_ended;
    while (t->taken)
        drop_taken(s, t->taken);
    for (const struct turn *turn = t->turns; turn; turn = turn->next)
        drop_caller_of(s, t, turn);
    for (size_t i = 0; i < t->n_records; i++)
        s->bytes -= t->records[i]->n;
    s->bytes -= t->row.folded.n;
    table_drop(&s->tasks, &t->node);
    free_task(t);
}

static void forget_some(struct memory_store *s)
{
    /* the one that ended last may still be written to */
    while (s->first_ended && s->first_ended->later &&
           (s->tasks.n > DGM_MAX_MEMORY_TASKS || s->bytes > DGM_MAX_MEMORY_BYTES))
        forget_first_ended(s);
}

/* Just enough at first: many tasks are written once, and then when they end. */
static uint32_t grown(uint32_t cap, size_t n)
{
    return (uint32_t)(cap ? n * 2 : n);
}

static void do_append(struct memory_store *s, dgm_job *job)
{
    const dgm_append *b = &job->append.batch;
    uint64_t first = dgm_append_first(b);
    struct task *t = find_task(s, b->row.owner, b->row.id);
    if ((job->code = dgm_append_check(b, &job->err)))
        return;
    if (t ? t->row.last_seq + 1 != first : first != 1) {
        job->code = dgm_append_misfit(b, t ? &t->row.last_seq : NULL, &job->err);
        return;
    }
    if (!t)
        t = make_task(s, &b->row);
    t->row.state = b->row.state;
    t->row.status_ms = b->row.status_ms;
    t->row.last_seq = b->row.last_seq;
    if (b->row.folded.p)
        keep_folded(s, t, &b->row);
    if (t->n_records + b->n_records > t->cap_records) {
        t->cap_records = grown(t->cap_records, t->n_records + b->n_records);
        t->records = dgm_xrealloc(t->records, t->cap_records * sizeof *t->records);
    }
    for (size_t i = 0; i < b->n_records; i++)
        t->records[t->n_records++] = dgm_record_ref(b->records[i]);
    if (b->turn)
        keep_turn(s, t, b->turn);
    if (b->taken)
        keep_message(s, t, b);
    s->bytes += job->append.bytes;
    note_end(s, t);
    forget_some(s);
    s->stats.appends++;
    s->stats.commits++;
    s->stats.records += b->n_records;
    s->stats.bytes += job->append.bytes;
}

static bool is_emptied(const struct turn *t)
{
    return t->last_seq && t->first_seq > t->last_seq;
}

/* Only its number is left, and that only while there is no later one. */
static void empty_first_turn(struct memory_store *s, struct task *t)
{
    struct turn *turn = t->turns;
    uint64_t last = turn->last_seq;
    uint32_t gone = (uint32_t)(last - t->first + 1);
    for (size_t i = 0; i < gone; i++) {
        s->bytes -= t->records[i]->n;
        dgm_record_unref(t->records[i]);
    }
    memmove(t->records, t->records + gone, (t->n_records - gone) * sizeof(dgm_record *));
    t->n_records -= gone;
    t->first = last + 1;
    drop_caller_of(s, t, turn);
    t->turns =
        make_turn(&(dgm_turn_row){.turn = turn->turn, .first_seq = last + 1, .last_seq = last});
    t->turns->next = turn->next;
    free(turn);
}

/* The first turns of a log, as long as they are finished, old enough, and in the folded Task. */
static void trim_task(struct memory_store *s, struct task *t, int64_t older_than_ms)
{
    struct turn *turn;
    while ((turn = t->turns)) {
        uint64_t last = turn->last_seq;
        if (!is_emptied(turn)) {
            if (last == 0 || last > t->row.folded_seq || last - t->first >= t->n_records ||
                t->records[last - t->first]->head.time >= older_than_ms)
                return;
            empty_first_turn(s, t);
            turn = t->turns;
        }
        if (!turn->next)
            return;
        t->turns = turn->next;
        free(turn);
    }
}

static void do_trim(struct memory_store *s, dgm_job *job)
{
    int64_t now = dgm_loop_unix_ms();
    for (size_t i = 0; i < s->tasks.cap; i++) {
        for (struct node *at = s->tasks.slots[i]; at; at = at->next)
            trim_task(s, (struct task *)at, job->trim.older_than_ms);
    }
    for (size_t i = 0; i < s->dedupe.cap; i++) {
        for (struct node *at = s->dedupe.slots[i], *next; at; at = next) {
            struct taken *d = (struct taken *)at;
            next = at->next;
            if (d->expires_ms && d->expires_ms <= now)
                drop_taken(s, d);
        }
    }
}

/* ---- reading --------------------------------------------------------------------------------------- */

static void get_task(struct memory_store *s, dgm_job *job)
{
    struct task *t = find_task(s, job->task.owner, job->task.task_id);
    if (!t)
        return;
    job->got.row = dgm_new(dgm_job_arena(job), dgm_task_row);
    *job->got.row = t->row;
    dgm_task_row_keep(job->arena, job->got.row);
}

static void get_records(struct memory_store *s, dgm_job *job)
{
    struct task *t = find_task(s, job->task.owner, job->task.task_id);
    uint64_t from = !t || job->task.seq > t->first ? job->task.seq : t->first;
    if (!t || from - t->first >= t->n_records)
        return;
    size_t at = (size_t)(from - t->first), n = 0, bytes = 0;
    while (at + n < t->n_records && n < job->task.max && (n == 0 || bytes < job->task.max_bytes))
        bytes += t->records[at + n++]->n;
    job->got.records.at = dgm_new_n(dgm_job_arena(job), dgm_record *, n);
    for (; job->got.records.n < n; job->got.records.n++)
        job->got.records.at[job->got.records.n] =
            dgm_record_ref(t->records[at + job->got.records.n]);
}

static void get_turns(struct memory_store *s, dgm_job *job)
{
    struct task *t = find_task(s, job->task.owner, job->task.task_id);
    size_t n = 0;
    for (const struct turn *turn = t ? t->turns : NULL; turn; turn = turn->next)
        n++;
    if (!n)
        return;
    job->got.turns.at = dgm_new_n(dgm_job_arena(job), dgm_turn_row, n);
    for (const struct turn *turn = t->turns; turn; turn = turn->next) {
        dgm_turn_row *row = &job->got.turns.at[job->got.turns.n++];
        *row = turn_row(turn);
        dgm_turn_row_keep(job->arena, row);
    }
}

static void find_turn(struct memory_store *s, dgm_job *job)
{
    struct caller *c = find_caller(s, job->find.owner, job->find.protocol, job->find.caller_id);
    for (const struct turn *turn = c ? c->task->turns : NULL; turn; turn = turn->next) {
        if (turn->turn != c->turn)
            continue;
        job->got.turns.at = dgm_new(dgm_job_arena(job), dgm_turn_row);
        job->got.turns.n = 1;
        *job->got.turns.at = turn_row(turn);
        dgm_turn_row_keep(job->arena, job->got.turns.at);
        job->got.turns.task_id = dgm_arena_dup(job->arena, c->task->row.id);
    }
}

static void find_dedupe(struct memory_store *s, dgm_job *job)
{
    struct taken *d =
        find_taken(s, job->find.owner, job->find.agent, job->find.context_id, job->find.message_id);
    if (!d || (d->expires_ms && d->expires_ms <= dgm_loop_unix_ms()))
        return;
    dgm_dedupe_row *row = job->got.dedupe = dgm_new(dgm_job_arena(job), dgm_dedupe_row);
    *row = (dgm_dedupe_row){.owner = d->task->row.owner,
                            .agent = d->task->row.agent,
                            .context_id = taken_context(d),
                            .message_id = taken_message(d),
                            .task_id = d->task->row.id,
                            .turn = d->turn,
                            .expires_ms = d->expires_ms};
    memcpy(row->digest, d->digest, sizeof row->digest);
    dgm_dedupe_row_keep(job->arena, row);
}

static bool is_unknown(dgm_store *base, dgm_owner owner, dgm_str agent, dgm_str context_id,
                       dgm_str message_id)
{
    struct memory_store *s = (struct memory_store *)base;
    pthread_mutex_lock(&s->lock);
    bool unknown = !find_taken(s, owner, agent, context_id, message_id);
    pthread_mutex_unlock(&s->lock);
    return unknown;
}

/* ---- lists ----------------------------------------------------------------------------------------- */

static int compare(dgm_str a, dgm_str b) /* as SQLite compares text */
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n ? memcmp(a.p, b.p, n) : 0;
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

static int newest_first(const dgm_task_row *a, int64_t status_ms, dgm_str id)
{
    if (a->status_ms != status_ms)
        return a->status_ms > status_ms ? -1 : 1;
    return -compare(a->id, id);
}

static int by_owner(const dgm_task_row *a, const dgm_task_row *b)
{
    int order = compare(a->owner.tenant, b->owner.tenant);
    if (order == 0)
        order = compare(a->owner.principal, b->owner.principal);
    return order ? order : compare(a->id, b->id);
}

static bool matches(const dgm_task_row *r, const dgm_list_query *q)
{
    return same_owner(r->owner, q->owner) && (!q->agent.n || dgm_str_eq(r->agent, q->agent)) &&
           (!q->context_id.n || dgm_str_eq(r->context_id, q->context_id)) &&
           (!q->state.set || (int)r->state == q->state.value) &&
           (!q->status_from_ms || r->status_ms >= q->status_from_ms);
}

/* The first rows in order, found in one walk: a walk meets few rows that go in front of those it has. */
struct page {
    const dgm_task_row **rows; /* sorted; room for one more than the page */
    size_t n, max;
    bool by_owner;
};

static int order(const struct page *p, const dgm_task_row *a, const dgm_task_row *b)
{
    return p->by_owner ? by_owner(a, b) : newest_first(a, b->status_ms, b->id);
}

static void offer(struct page *p, const dgm_task_row *row)
{
    size_t low = 0, high = p->n;
    if (p->n == p->max && order(p, row, p->rows[p->n - 1]) > 0)
        return;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (order(p, p->rows[middle], row) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (p->n < p->max)
        p->n++;
    memmove(&p->rows[low + 1], &p->rows[low], (p->n - 1 - low) * sizeof(dgm_task_row *));
    p->rows[low] = row;
}

static struct page page_of(const struct memory_store *s, size_t size, bool sorted_by_owner)
{
    size_t max = size < s->tasks.n ? size + 1 : s->tasks.n;
    return (struct page){
        .rows = dgm_xmalloc(max * sizeof(dgm_task_row *)), .max = max, .by_owner = sorted_by_owner};
}

static void take_page(dgm_job *job, struct page *p, size_t size)
{
    size_t bytes = 0, i = 0;
    job->got.rows.at = dgm_new_n(dgm_job_arena(job), dgm_task_row, p->n);
    for (; i < p->n && i < size && bytes < DGM_MAX_STORE_PAGE_BYTES; i++) {
        job->got.rows.at[i] = *p->rows[i];
        if (job->kind == DGM_JOB_UNFINISHED)
            job->got.rows.at[i].folded = (dgm_str){0};
        dgm_task_row_keep(job->arena, &job->got.rows.at[i]);
        bytes += job->got.rows.at[i].folded.n;
    }
    job->got.rows.n = i;
    job->got.rows.more = i < p->n;
    free(p->rows);
}

static void list(struct memory_store *s, dgm_job *job)
{
    const dgm_list_query *q = &job->list;
    struct page page = page_of(s, q->page_size, false);
    for (size_t i = 0; i < s->tasks.cap; i++) {
        for (struct node *at = s->tasks.slots[i]; at; at = at->next) {
            const dgm_task_row *r = &((struct task *)at)->row;
            if (!matches(r, q))
                continue;
            job->got.rows.total++;
            if (!q->after_id.n || newest_first(r, q->after_status_ms, q->after_id) > 0)
                offer(&page, r);
        }
    }
    take_page(job, &page, q->page_size);
}

static void list_unfinished(struct memory_store *s, dgm_job *job)
{
    struct page page = page_of(s, job->unfinished.page_size, true);
    for (size_t i = 0; i < s->tasks.cap; i++) {
        for (struct node *at = s->tasks.slots[i]; at; at = at->next) {
            const dgm_task_row *r = &((struct task *)at)->row;
            if (dgm_state_is_unfinished(r->state) &&
                (!job->unfinished.has_after || by_owner(r, &job->unfinished.after) > 0))
                offer(&page, r);
        }
    }
    take_page(job, &page, job->unfinished.page_size);
}

/* ---- the driver ------------------------------------------------------------------------------------ */

static void submit(dgm_store *base, dgm_job *job)
{
    static void (*const work[])(struct memory_store *, dgm_job *) = {
        [DGM_JOB_APPEND] = do_append,    [DGM_JOB_TASK] = get_task,
        [DGM_JOB_RECORDS] = get_records, [DGM_JOB_TURNS] = get_turns,
        [DGM_JOB_FIND_TURN] = find_turn, [DGM_JOB_FIND_DEDUPE] = find_dedupe,
        [DGM_JOB_LIST] = list,           [DGM_JOB_UNFINISHED] = list_unfinished,
        [DGM_JOB_TRIM] = do_trim,
    };
    struct memory_store *s = (struct memory_store *)base;
    pthread_mutex_lock(&s->lock);
    work[job->kind](s, job);
    if (job->kind != DGM_JOB_APPEND && job->kind != DGM_JOB_TRIM)
        s->stats.reads++;
    pthread_mutex_unlock(&s->lock);
    dgm_job_post(job);
}

static dgm_code open_memory(const char *rest, dgm_store **ret_store, dgm_err *err)
{
    if (*rest)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                        "the store memory: has no path, but \"%.200s\" follows", rest);
    struct memory_store *s = dgm_xcalloc(1, sizeof *s);
    s->base.driver = &dgm_store_memory;
    s->last_ended = &s->first_ended;
    pthread_mutex_init(&s->lock, NULL);
    *ret_store = &s->base;
    return DGM_OK;
}

static void free_task(struct task *t)
{
    for (size_t i = 0; i < t->n_records; i++)
        dgm_record_unref(t->records[i]);
    for (struct turn *turn = t->turns, *next; turn; turn = next) {
        next = turn->next;
        free(turn);
    }
    free(t->records);
    free((char *)(uintptr_t)t->row.folded.p);
    free(t);
}

static void close_memory(dgm_store *base)
{
    struct memory_store *s = (struct memory_store *)base;
    for (size_t i = 0; i < s->callers.cap; i++) {
        while (s->callers.slots[i])
            drop_caller(s, (struct caller *)s->callers.slots[i]);
    }
    for (size_t i = 0; i < s->dedupe.cap; i++) {
        while (s->dedupe.slots[i])
            drop_taken(s, (struct taken *)s->dedupe.slots[i]);
    }
    for (size_t i = 0; i < s->tasks.cap; i++) {
        for (struct node *at = s->tasks.slots[i], *next; at; at = next) {
            next = at->next;
            free_task((struct task *)at);
        }
    }
    free(s->callers.slots);
    free(s->dedupe.slots);
    free(s->tasks.slots);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static bool is_healthy(dgm_store *base, dgm_err *ret_why)
{
    (void)base, (void)ret_why;
    return true;
}

static dgm_store_stats stats(dgm_store *base)
{
    struct memory_store *s = (struct memory_store *)base;
    pthread_mutex_lock(&s->lock);
    dgm_store_stats copy = s->stats;
    pthread_mutex_unlock(&s->lock);
    return copy;
}

const dgm_store_driver dgm_store_memory = {
    .scheme = "memory",
    .open = open_memory,
    .close = close_memory,
    .submit = submit,
    .is_unknown = is_unknown,
    .is_healthy = is_healthy,
    .stats = stats,
};
