/* store/memory/memory_list.c - pages of tasks: the first rows in order, found in one walk: of all, or of a context. */
#include "base/limits.h"
#include "store/memory/memory_int.h"

#include <stdlib.h>

static int newest_first(const struct task *a, int64_t status_ms, dgm_str id)
{
    if (a->status_ms != status_ms)
        return a->status_ms > status_ms ? -1 : 1;
    return -dgm_str_order(task_id(a), id);
}

static int created_last_first(const struct task *a, const struct task *b)
{
    if (a->created_ms != b->created_ms)
        return a->created_ms > b->created_ms ? -1 : 1;
    return -dgm_str_order(task_id(a), task_id(b)); /* ids of tasks ascend */
}

static int by_owner(const struct task *a, dgm_owner owner, dgm_str id)
{
    dgm_owner of_a = task_owner(a);
    int order = dgm_str_order(of_a.tenant, owner.tenant);
    if (order == 0)
        order = dgm_str_order(of_a.principal, owner.principal);
    return order ? order : dgm_str_order(task_id(a), id);
}

static bool matches(const struct task *t, const dgm_list_query *q)
{
    return memory_same_owner(task_owner(t), q->owner) &&
           (!q->agent.n || dgm_str_eq(task_agent(t), q->agent)) &&
           (!q->context_id.n || dgm_str_eq(task_context(t), q->context_id)) &&
           (!q->state.set || (int)t->state == q->state.value) &&
           (!q->status_from_ms || t->status_ms >= q->status_from_ms);
}

/* A walk meets few tasks that go in front of those it has. */
struct page {
    const struct task **tasks; /* sorted; room for one more than the page */
    size_t n, max;
    enum { BY_STATUS, BY_OWNER, BY_CREATION } sorted;
};

static int order(const struct page *p, const struct task *a, const struct task *b)
{
    switch (p->sorted) {
    case BY_OWNER: return by_owner(a, task_owner(b), task_id(b));
    case BY_CREATION: return created_last_first(a, b);
    case BY_STATUS: break;
    }
    return newest_first(a, b->status_ms, task_id(b));
}

static void offer(struct page *p, const struct task *t)
{
    size_t low = 0, high = p->n;
    if (p->n == p->max && order(p, t, p->tasks[p->n - 1]) > 0)
        return;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (order(p, p->tasks[middle], t) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (p->n < p->max)
        p->n++;
    memmove(&p->tasks[low + 1], &p->tasks[low], (p->n - 1 - low) * sizeof(struct task *));
    p->tasks[low] = t;
}

static struct page page_of(const struct memory_store *s, size_t size, int sorted)
{
    size_t max = size < s->tasks.n ? size + 1 : s->tasks.n;
    return (struct page){
        .tasks = dgm_xmalloc(max * sizeof(struct task *)), .max = max, .sorted = sorted};
}

static void take_page(dgm_job *job, struct page *p, size_t size, size_t max_bytes)
{
    size_t bytes = 0, i = 0;
    job->got.rows.at = dgm_new_n(dgm_job_arena(job), dgm_task_row, p->n);
    for (; i < p->n && i < size && bytes < max_bytes; i++) {
        dgm_task_row *row = &job->got.rows.at[i];
        *row = task_row(p->tasks[i]);
        if (job->kind == DGM_JOB_UNFINISHED)
            row->folded = (dgm_str){0};
        dgm_task_row_keep(job->arena, row);
        bytes += row->folded.n;
    }
    job->got.rows.n = i;
    job->got.rows.more = i < p->n;
    free(p->tasks);
}

static void look_at(dgm_job *job, struct page *p, const struct task *t)
{
    const dgm_list_query *q = &job->list;
    if (!matches(t, q))
        return;
    job->got.rows.total++;
    if (!q->after_id.n || newest_first(t, q->after_status_ms, q->after_id) > 0)
        offer(p, t);
}

void dgm_memory_list(struct memory_store *s, dgm_job *job)
{
    const dgm_list_query *q = &job->list;
    struct page page = page_of(s, q->page_size, BY_STATUS);
    dgm_table_node *at;
    if (q->context_id.n) { /* every request of some frontends asks for its context's newest */
        at = dgm_table_first(&s->contexts, dgm_memory_context_hash(q->owner, q->context_id));
        for (; at; at = at->next)
            look_at(job, &page, task_in_context(at));
    } else {
        for (size_t i = 0; i < s->tasks.cap; i++) {
            for (at = s->tasks.slots[i]; at; at = at->next)
                look_at(job, &page, (struct task *)at);
        }
    }
    take_page(job, &page, q->page_size, DGM_MAX_STORE_PAGE_BYTES);
}

void dgm_memory_list_unfinished(struct memory_store *s, dgm_job *job)
{
    const dgm_task_row *after = job->unfinished.has_after ? &job->unfinished.after : NULL;
    struct page page = page_of(s, job->unfinished.page_size, BY_OWNER);
    for (size_t i = 0; i < s->tasks.cap; i++) {
        for (dgm_table_node *at = s->tasks.slots[i]; at; at = at->next) {
            const struct task *t = (struct task *)at;
            if (dgm_state_is_unfinished(t->state) &&
                (!after || by_owner(t, after->owner, after->id) > 0))
                offer(&page, t);
        }
    }
    take_page(job, &page, job->unfinished.page_size, DGM_MAX_STORE_PAGE_BYTES);
}

void dgm_memory_get_context(struct memory_store *s, dgm_job *job)
{
    dgm_owner owner = job->context.owner;
    dgm_str context_id = job->context.context_id;
    struct page page = page_of(s, job->context.max, BY_CREATION);
    dgm_table_node *at = dgm_table_first(&s->contexts, dgm_memory_context_hash(owner, context_id));
    for (; at; at = at->next) {
        const struct task *t = task_in_context(at);
        if (memory_same_owner(task_owner(t), owner) &&
            dgm_str_eq(task_agent(t), job->context.agent) &&
            dgm_str_eq(task_context(t), context_id))
            offer(&page, t);
    }
    take_page(job, &page, job->context.max, job->context.max_bytes);
}
