/*
 * store/memory/memory_checkpoint.c - checkpoints of graphs.
 *
 * A thread has a list of its checkpoints in the order of answers: the greatest id first, then by ns. New ones are nearly always
 * the first, and nearly every question is about one of the first. A checkpoint whose writes came before it is in the list, and
 * is not shown. Values are shared with callers and between copies.
 */
#include "base/limits.h"
#include "store/memory/memory_int.h"
#include "store/store_job.h"

#include <stdlib.h>

struct write {
    struct write *next;
    dgm_checkpoint_write row; /* its texts are behind it */
    size_t size;              /* with its value */
};

struct checkpoint {
    struct checkpoint *next;
    struct write *writes; /* by (path, task, idx) */
    size_t n_writes;
    size_t writes_bytes;
    bool is_stored; /* false: only its writes */
    dgm_checkpoint
        row; /* ns and id are behind it, the other texts in `texts`. Without thread and writes */
    char *texts;
    size_t size; /* of this without its writes */
};

struct thread {
    dgm_table_node node;             /* first */
    struct thread *later, **to_this; /* that was changed next */
    struct checkpoint *first;
    int64_t changed_ms;
    size_t bytes;
    dgm_str agent, name; /* behind it */
};

/* ---- threads --------------------------------------------------------------------------------------------- */

static uint64_t thread_hash(dgm_str agent, dgm_str name)
{
    dgm_str key[] = {agent, name};
    return dgm_hash_texts(7, key, 2);
}

static struct thread *thread_find(const struct memory_store *s, dgm_str agent, dgm_str name)
{
    uint64_t hash = thread_hash(agent, name);
    for (dgm_table_node *at = dgm_table_first(&s->threads, hash); at; at = at->next) {
        struct thread *t = (struct thread *)at;
        if (at->hash == hash && dgm_str_eq(t->name, name) && dgm_str_eq(t->agent, agent))
            return t;
    }
    return NULL;
}

static void thread_unlink(struct memory_store *s, struct thread *t)
{
    *t->to_this = t->later;
    if (t->later)
        t->later->to_this = t->to_this;
    else
        s->last_thread = t->to_this;
}

static void thread_link_last(struct memory_store *s, struct thread *t)
{
    t->later = NULL;
    t->to_this = s->last_thread;
    *s->last_thread = t;
    s->last_thread = &t->later;
    t->changed_ms = dgm_loop_unix_ms();
}

static void thread_count(struct memory_store *s, struct thread *t, size_t more, size_t less)
{
    t->bytes += more - less;
    s->thread_bytes += more - less;
}

/* The one that was changed last from now on. */
static struct thread *thread_touch(struct memory_store *s, dgm_str agent, dgm_str name)
{
    struct thread *t = thread_find(s, agent, name);
    if (t) {
        thread_unlink(s, t);
    } else {
        size_t size = sizeof *t + dgm_room(agent) + dgm_room(name);
        t = dgm_xcalloc(1, size);
        struct dgm_block b = {(char *)(t + 1)};
        t->agent = agent;
        t->name = name;
        dgm_put(&b, &t->agent);
        dgm_put(&b, &t->name);
        dgm_table_add(&s->threads, &t->node, thread_hash(agent, name));
        thread_count(s, t, size, 0);
    }
    thread_link_last(s, t);
    return t;
}

/* ---- checkpoints ----------------------------------------------------------------------------------------- */

static void write_free(struct write *w)
{
    dgm_bytes_unref(w->row.value.bytes);
    free(w);
}

static void checkpoint_forget_values(struct checkpoint *c)
{
    dgm_bytes_unref(c->row.checkpoint.bytes);
    dgm_bytes_unref(c->row.metadata.bytes);
    free(c->texts);
    c->texts = NULL;
}

static size_t checkpoint_bytes(const struct checkpoint *c)
{
    return c->size + c->writes_bytes;
}

static void checkpoint_drop(struct memory_store *s, struct thread *t, struct checkpoint **at)
{
    struct checkpoint *c = *at;
    *at = c->next;
    thread_count(s, t, 0, checkpoint_bytes(c));
    for (struct write *w = c->writes, *next; w; w = next) {
        next = w->next;
        write_free(w);
    }
    checkpoint_forget_values(c);
    free(c);
}

static void thread_drop(struct memory_store *s, struct thread *t)
{
    while (t->first)
        checkpoint_drop(s, t, &t->first);
    thread_count(s, t, 0, t->bytes);
    thread_unlink(s, t);
    dgm_table_remove(&s->threads, &t->node);
    free(t);
}

/* The order of answers: negative: a comes first. */
static int checkpoint_order(const dgm_checkpoint *a, dgm_str id, dgm_str ns)
{
    int by_id = dgm_str_order(id, a->id);
    return by_id ? by_id : dgm_str_order(a->ns, ns);
}

/* Where it is, or would be. */
static struct checkpoint **checkpoint_place(struct thread *t, dgm_str id, dgm_str ns,
                                            bool *ret_found)
{
    struct checkpoint **at = &t->first;
    int order = -1;
    while (*at && (order = checkpoint_order(&(*at)->row, id, ns)) < 0)
        at = &(*at)->next;
    *ret_found = *at && order == 0;
    return at;
}

/* Finds it, or creates one without a value. */
static struct checkpoint *checkpoint_open(struct memory_store *s, struct thread *t,
                                          const dgm_checkpoint *key)
{
    bool found;
    struct checkpoint **at = checkpoint_place(t, key->id, key->ns, &found);
    if (found)
        return *at;
    size_t size = sizeof(struct checkpoint) + dgm_room(key->ns) + dgm_room(key->id);
    struct checkpoint *c = dgm_xcalloc(1, size);
    struct dgm_block b = {(char *)(c + 1)};
    c->row = (dgm_checkpoint){.ns = key->ns, .id = key->id};
    dgm_put(&b, &c->row.ns);
    dgm_put(&b, &c->row.id);
    c->size = size;
    c->next = *at;
    *at = c;
    thread_count(s, t, size, 0);
    return c;
}

static void checkpoint_store(struct memory_store *s, struct thread *t, const dgm_checkpoint *from)
{
    struct checkpoint *c = checkpoint_open(s, t, from);
    size_t was = c->size;
    size_t texts = dgm_room(from->parent) + dgm_room(from->run) + dgm_room(from->checkpoint.type) +
                   dgm_room(from->metadata.type);
    checkpoint_forget_values(c);
    c->texts = dgm_xmalloc(texts + 1);
    struct dgm_block b = {c->texts};
    dgm_str ns = c->row.ns, id = c->row.id;
    c->row = *from;
    c->row.thread = (dgm_str){0};
    c->row.ns = ns;
    c->row.id = id;
    c->row.writes = NULL;
    c->row.n_writes = 0;
    dgm_put(&b, &c->row.parent);
    dgm_put(&b, &c->row.run);
    dgm_put(&b, &c->row.checkpoint.type);
    dgm_put(&b, &c->row.metadata.type);
    dgm_bytes_ref(c->row.checkpoint.bytes);
    dgm_bytes_ref(c->row.metadata.bytes);
    c->is_stored = true;
    c->size = sizeof *c + dgm_room(ns) + dgm_room(id) + texts + dgm_value_size(&from->checkpoint) +
              dgm_value_size(&from->metadata);
    thread_count(s, t, c->size, was);
}

static int write_order(const dgm_checkpoint_write *a, const dgm_checkpoint_write *b)
{
    int order = dgm_str_order(a->path, b->path);
    if (!order)
        order = dgm_str_order(a->task, b->task);
    return order ? order : (a->idx > b->idx) - (a->idx < b->idx);
}

static void write_drop(struct memory_store *s, struct thread *t, struct checkpoint *c,
                       struct write **at)
{
    struct write *w = *at;
    *at = w->next;
    c->n_writes--;
    c->writes_bytes -= w->size;
    thread_count(s, t, 0, w->size);
    write_free(w);
}

static void checkpoint_write(struct memory_store *s, struct thread *t, struct checkpoint *c,
                             const dgm_checkpoint_write *from)
{
    struct write **at = &c->writes, *w;
    while ((w = *at) && !(w->row.idx == from->idx && dgm_str_eq(w->row.task, from->task)))
        at = &w->next;
    if (w && from->idx >= 0)
        return;
    if (w)
        write_drop(s, t, c, at);
    at = &c->writes;
    while ((w = *at) && write_order(&w->row, from) < 0)
        at = &w->next;
    size_t texts = dgm_room(from->task) + dgm_room(from->path) + dgm_room(from->channel) +
                   dgm_room(from->value.type);
    w = dgm_xmalloc(sizeof *w + texts);
    struct dgm_block b = {(char *)(w + 1)};
    *w = (struct write){.next = *at, .row = *from, .size = sizeof *w + texts};
    dgm_put(&b, &w->row.task);
    dgm_put(&b, &w->row.path);
    dgm_put(&b, &w->row.channel);
    dgm_put(&b, &w->row.value.type);
    dgm_bytes_ref(w->row.value.bytes);
    w->size += dgm_value_size(&from->value);
    *at = w;
    c->n_writes++;
    c->writes_bytes += w->size;
    thread_count(s, t, w->size, 0);
}

/* ---- changes ----------------------------------------------------------------------------------------------- */

/* Threads that were changed first go, until there is room. Not this one: a run uses it. */
static dgm_code make_room(struct memory_store *s, const struct thread *t, size_t more, dgm_err *err)
{
    struct thread *first;
    while ((first = s->first_thread) && first != t &&
           (s->threads.n > DGM_MAX_MEMORY_THREADS ||
            s->thread_bytes + more > DGM_MAX_MEMORY_CHECKPOINT_BYTES))
        thread_drop(s, first);
    if (s->thread_bytes + more <= DGM_MAX_MEMORY_CHECKPOINT_BYTES)
        return DGM_OK;
    return dgm_fail(
        err, DGM_TOO_LARGE, NULL,
        "the checkpoints of this thread need more than %zu bytes, the limit of the store "
        "memory: : use the store sqlite:PATH",
        DGM_MAX_MEMORY_CHECKPOINT_BYTES);
}

static void change_put(struct memory_store *s, dgm_job *job)
{
    const dgm_checkpoint *row = &job->change.change.row;
    struct thread *t = thread_touch(s, job->change.agent, row->thread);
    bool found;
    struct checkpoint **at = checkpoint_place(t, row->id, row->ns, &found);
    size_t bytes = job->change.bytes + (found ? (*at)->writes_bytes : 0);
    job->code = dgm_checkpoint_check_room(row, 0, bytes, &job->err);
    if (!job->code)
        job->code = make_room(s, t, job->change.bytes, &job->err);
    if (!job->code)
        checkpoint_store(s, t, row);
}

static void change_writes(struct memory_store *s, dgm_job *job)
{
    const dgm_checkpoint *row = &job->change.change.row;
    struct thread *t = thread_touch(s, job->change.agent, row->thread);
    struct checkpoint *c = checkpoint_open(s, t, row);
    job->code = dgm_checkpoint_check_room(row, c->n_writes + row->n_writes,
                                          checkpoint_bytes(c) + job->change.bytes, &job->err);
    if (!job->code)
        job->code = make_room(s, t, job->change.bytes, &job->err);
    for (size_t i = 0; i < row->n_writes && !job->code; i++)
        checkpoint_write(s, t, c, &row->writes[i]);
}

static void change_delete_threads(struct memory_store *s, dgm_job *job)
{
    dgm_strs names = job->change.change.names;
    for (size_t i = 0; i < names.n; i++) {
        struct thread *t = thread_find(s, job->change.agent, names.at[i]);
        if (t)
            thread_drop(s, t);
    }
}

static bool names_have(dgm_strs names, dgm_str name)
{
    for (size_t i = 0; name.n && i < names.n; i++) {
        if (dgm_str_eq(names.at[i], name))
            return true;
    }
    return false;
}

static void change_delete_runs(struct memory_store *s, dgm_job *job)
{
    for (struct thread *t = s->first_thread; t; t = t->later) {
        struct checkpoint **at = &t->first;
        while (*at && dgm_str_eq(t->agent, job->change.agent)) {
            if (names_have(job->change.change.names, (*at)->row.run))
                checkpoint_drop(s, t, at);
            else
                at = &(*at)->next;
        }
    }
}

/* Is there a later one of the same ns? */
static bool has_later(const struct thread *t, const struct checkpoint *c)
{
    for (const struct checkpoint *at = t->first; at && at != c; at = at->next) {
        if (at->is_stored && dgm_str_eq(at->row.ns, c->row.ns) &&
            !dgm_str_eq(at->row.id, c->row.id))
            return true;
    }
    return false;
}

static void change_keep_latest(struct memory_store *s, dgm_job *job)
{
    dgm_strs names = job->change.change.names;
    for (size_t i = 0; i < names.n; i++) {
        struct thread *t = thread_find(s, job->change.agent, names.at[i]);
        struct checkpoint **at = t ? &t->first : NULL;
        while (at && *at) {
            if (has_later(t, *at))
                checkpoint_drop(s, t, at);
            else
                at = &(*at)->next;
        }
    }
}

static void copy_checkpoint(struct memory_store *s, struct thread *to, const struct checkpoint *c)
{
    bool found;
    struct checkpoint **at = checkpoint_place(to, c->row.id, c->row.ns, &found);
    if (found)
        checkpoint_drop(s, to, at);
    struct checkpoint *copy = checkpoint_open(s, to, &c->row);
    if (c->is_stored)
        checkpoint_store(s, to, &c->row);
    for (const struct write *w = c->writes; w; w = w->next)
        checkpoint_write(s, to, copy, &w->row);
}

static void change_copy(struct memory_store *s, dgm_job *job)
{
    dgm_str agent = job->change.agent;
    struct thread *from = thread_find(s, agent, job->change.change.row.thread);
    if (!from || !from->first || dgm_str_eq(from->name, job->change.change.to))
        return;
    thread_unlink(s, from);
    thread_link_last(s, from); /* make_room() drops the first ones */
    size_t more = from->bytes;
    if ((job->code = make_room(s, from, more, &job->err)))
        return;
    struct thread *to = thread_touch(s, agent, job->change.change.to);
    for (const struct checkpoint *c = from->first; c; c = c->next)
        copy_checkpoint(s, to, c);
}

void dgm_memory_change_checkpoints(struct memory_store *s, dgm_job *job)
{
    static void (*const changes[])(struct memory_store *, dgm_job *) = {
        [DGM_CHECKPOINT_PUT] = change_put,
        [DGM_CHECKPOINT_WRITES] = change_writes,
        [DGM_CHECKPOINT_DELETE_THREADS] = change_delete_threads,
        [DGM_CHECKPOINT_DELETE_RUNS] = change_delete_runs,
        [DGM_CHECKPOINT_COPY] = change_copy,
        [DGM_CHECKPOINT_KEEP_LATEST] = change_keep_latest,
    };
    job->code = dgm_memory_check_fence(s, &job->change.change.fence, &job->err);
    if (!job->code)
        changes[job->change.change.kind](s, job);
    s->stats.commits++;
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

struct found {
    const struct thread *thread;
    const struct checkpoint *checkpoint;
};

/* Of all threads that match; the first ones in the order of answers are found by sorting. */
struct matches {
    struct found *items;
    size_t n, cap;
};

static int found_order(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    int order = checkpoint_order(&x->checkpoint->row, y->checkpoint->row.id, y->checkpoint->row.ns);
    return order ? order : dgm_str_order(x->thread->name, y->thread->name);
}

static bool is_match(const dgm_checkpoint_query *q, const struct thread *t,
                     const struct checkpoint *c)
{
    if (!c->is_stored || (!q->any_ns && !dgm_str_eq(c->row.ns, q->ns)) ||
        (q->id.n && !dgm_str_eq(c->row.id, q->id)) ||
        (q->before.n && dgm_str_order(c->row.id, q->before) >= 0))
        return false;
    if (!q->after.id.n)
        return true;
    int order = checkpoint_order(&c->row, q->after.id, q->after.ns);
    return order > 0 || (order == 0 && dgm_str_order(t->name, q->after.thread) > 0);
}

/* One thread is in order: no more than `enough` are needed. */
static void find_in_thread(const struct thread *t, const dgm_checkpoint_query *q, size_t enough,
                           struct matches *m)
{
    size_t from = m->n;
    for (const struct checkpoint *c = t->first; c && m->n - from < enough; c = c->next) {
        if (!is_match(q, t, c))
            continue;
        if (m->n == m->cap) {
            m->cap = m->cap ? m->cap * 2 : 16;
            m->items = dgm_xrealloc(m->items, m->cap * sizeof *m->items);
        }
        m->items[m->n++] = (struct found){t, c};
    }
}

static dgm_checkpoint_value value_out(dgm_arena *a, const dgm_checkpoint_value *v)
{
    return (dgm_checkpoint_value){dgm_arena_dup(a, v->type), dgm_bytes_ref(v->bytes)};
}

static dgm_checkpoint checkpoint_out(dgm_arena *a, const struct found *f)
{
    const struct checkpoint *c = f->checkpoint;
    dgm_checkpoint_write *writes = dgm_new_n(a, dgm_checkpoint_write, c->n_writes + 1);
    size_t n = 0;
    for (const struct write *w = c->writes; w; w = w->next)
        writes[n++] = (dgm_checkpoint_write){.task = dgm_arena_dup(a, w->row.task),
                                             .path = dgm_arena_dup(a, w->row.path),
                                             .idx = w->row.idx,
                                             .channel = dgm_arena_dup(a, w->row.channel),
                                             .value = value_out(a, &w->row.value)};
    return (dgm_checkpoint){.thread = dgm_arena_dup(a, f->thread->name),
                            .ns = dgm_arena_dup(a, c->row.ns),
                            .id = dgm_arena_dup(a, c->row.id),
                            .parent = dgm_arena_dup(a, c->row.parent),
                            .run = dgm_arena_dup(a, c->row.run),
                            .checkpoint = value_out(a, &c->row.checkpoint),
                            .metadata = value_out(a, &c->row.metadata),
                            .writes = writes,
                            .n_writes = n};
}

void dgm_memory_read_checkpoints(struct memory_store *s, dgm_job *job)
{
    const dgm_checkpoint_query *q = &job->checkpoints.query;
    struct matches m = {0};
    size_t bytes = 0, n = 0;
    if (q->thread.n) {
        const struct thread *t = thread_find(s, job->checkpoints.agent, q->thread);
        if (t)
            find_in_thread(t, q, q->limit + 1, &m);
    } else {
        for (const struct thread *t = s->first_thread; t; t = t->later) {
            if (dgm_str_eq(t->agent, job->checkpoints.agent))
                find_in_thread(t, q, q->limit + 1, &m);
        }
        if (m.n)
            qsort(m.items, m.n, sizeof *m.items, found_order);
    }
    job->got.checkpoints.at = dgm_new_n(dgm_job_arena(job), dgm_checkpoint, q->limit);
    for (; n < m.n && n < q->limit && (n == 0 || bytes < DGM_MAX_STORE_PAGE_BYTES); n++) {
        bytes += checkpoint_bytes(m.items[n].checkpoint);
        job->got.checkpoints.at[n] = checkpoint_out(job->arena, &m.items[n]);
    }
    job->got.checkpoints.n = n;
    job->got.checkpoints.more = n < m.n;
    free(m.items);
}

/* ---- deleting -------------------------------------------------------------------------------------------------- */

void dgm_memory_drop_old_threads(struct memory_store *s, int64_t before_ms)
{
    while (s->first_thread && s->first_thread->changed_ms < before_ms)
        thread_drop(s, s->first_thread);
}

void dgm_memory_drop_all_threads(struct memory_store *s)
{
    while (s->first_thread)
        thread_drop(s, s->first_thread);
    dgm_table_done(&s->threads);
}
