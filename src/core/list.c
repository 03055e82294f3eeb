/*
 * core/list.c - pages of tasks.
 *
 * The store decides which tasks and in what order. The row of a task that rests has the complete task. One that has
 * changed since is requested from its loop, so that a list shows the same as dgm_core_get.
 */
#include "core/core_int.h"

struct page {
    dgm_core *core;
    dgm_arena *arena;
    dgm_record **tasks; /* NULL where the answer is still to come, or never will */
    dgm_str *ids;
    size_t n, n_asked;
    bool more;
    size_t total;
    int64_t last_status_ms;
    dgm_str last_id;
    dgm_on_listed on_listed;
    void *arg;
};

/* One row whose task was asked for. */
struct asked {
    struct page *page;
    size_t i;
};

static void page_answer(struct page *p)
{
    dgm_listed listed = {.tasks = p->tasks,
                         .ids = p->ids,
                         .more = p->more,
                         .total = p->total,
                         .last_status_ms = p->last_status_ms,
                         .last_id = p->last_id};
    for (size_t i = 0; i < p->n; i++) { /* what was gone when it was asked for leaves no hole */
        if (p->tasks[i]) {
            p->ids[listed.n] = p->ids[i];
            p->tasks[listed.n++] = p->tasks[i];
        }
    }
    p->on_listed(DGM_OK, &listed, NULL, p->arg);
    for (size_t i = 0; i < listed.n; i++)
        dgm_record_unref(p->tasks[i]);
    dgm_arena_free(p->arena); /* p lives in it */
}

static void on_page_task(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    struct asked *a = arg;
    struct page *p = a->page;
    (void)err;
    if (!code)
        p->tasks[a->i] = dgm_record_ref(snapshot);
    if (--p->n_asked == 0)
        page_answer(p);
}

static void page_add_row(struct page *p, size_t i, const dgm_task_row *row)
{
    dgm_record_head head = {.seq = row->folded_seq, .kind = DGM_EVENT_TASK, .state = row->state};
    if (row->folded_seq == row->last_seq && row->folded.n &&
        !dgm_record_from_bytes(head, row->folded, &p->tasks[i], NULL))
        return;
    struct asked *a = dgm_new(p->arena, struct asked);
    *a = (struct asked){p, i};
    p->n_asked++;
    dgm_core_get(p->core, row->owner, row->agent, row->id, on_page_task, a);
}

static void on_page_rows(dgm_code code, const dgm_task_row *rows, size_t n, bool more, size_t total,
                         const dgm_err *err, void *arg)
{
    struct page *p = arg;
    if (code) {
        p->on_listed(code, NULL, err, p->arg);
        dgm_arena_free(p->arena);
        return;
    }
    p->tasks = dgm_new_n(p->arena, dgm_record *, n);
    p->ids = dgm_new_n(p->arena, dgm_str, n);
    p->n = n;
    p->more = more;
    p->total = total;
    if (n) {
        p->last_status_ms = rows[n - 1].status_ms;
        p->last_id = dgm_arena_dup(p->arena, rows[n - 1].id);
    }
    for (size_t i = 0; i < n; i++)
        p->ids[i] = dgm_arena_dup(p->arena, rows[i].id);
    for (size_t i = 0; i < n; i++)
        page_add_row(p, i, &rows[i]); /* answers come later, never from inside */
    if (!p->n_asked)
        page_answer(p);
}

static void page_refuse(void *arg)
{
    struct page *p = arg;
    dgm_err err = {0};
    dgm_fail(&err, DGM_UNAVAILABLE, NULL, "the server is shutting down");
    p->on_listed(DGM_UNAVAILABLE, NULL, &err, p->arg);
    dgm_arena_free(p->arena);
}

void dgm_core_list(dgm_core *core, const dgm_list_query *q, dgm_on_listed on_listed, void *arg)
{
    dgm_arena *a = dgm_arena_new();
    struct page *p = dgm_new(a, struct page);
    p->core = core;
    p->arena = a;
    p->on_listed = on_listed;
    p->arg = arg;
    if (core->stopping)
        dgm_loop_post(dgm_loop_current(), page_refuse, p);
    else
        dgm_store_list(core->o.store, q, on_page_rows, p);
}
