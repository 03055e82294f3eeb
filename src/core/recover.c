/*
 * core/recover.c - after a crash: what ran then runs no more, and is told so.
 *
 * Tasks that are neither over nor waiting for somebody are looked up page by page, each on the loop that
 * owns it, and settled as failed. Those of agents that can go on where they stopped are left alone.
 */
#include "core/core_int.h"

#include <stdlib.h>

#define PAGE 100

struct recovery {
    dgm_core *core;
    dgm_loop *home;
    dgm_store_done done;
    void *arg;
    dgm_arena *last; /* holds the row the next page begins behind */
    dgm_task_row after;
    size_t open; /* calls of this page that are not answered yet */
    bool more;
    dgm_code code;
    dgm_err err;
};

static void recovery_next_page(struct recovery *r);

static void recovery_finish(struct recovery *r)
{
    r->done(r->code, r->code ? &r->err : NULL, r->arg);
    dgm_arena_free(r->last);
    free(r);
}

static void on_settled(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    struct recovery *r = arg;
    (void)snapshot;
    /* An agent that is not configured any more has nobody to settle its tasks: they stay as they are. */
    if (code && code != DGM_TASK_NOT_FOUND && !r->code) {
        r->code = code;
        r->err = *err;
    }
    if (--r->open == 0) {
        if (r->more && !r->code)
            recovery_next_page(r);
        else
            recovery_finish(r);
    }
}

static void got_page(dgm_code code, const dgm_task_row *rows, size_t n, bool more, size_t total,
                     const dgm_err *err, void *arg)
{
    struct recovery *r = arg;
    (void)total;
    r->more = more;
    if (code || !n) {
        r->code = code;
        if (code)
            r->err = *err;
        recovery_finish(r);
        return;
    }
    dgm_arena *a = dgm_arena_new();
    const dgm_task_row *last = &rows[n - 1];
    r->after = (dgm_task_row){
        .owner = {dgm_arena_dup(a, last->owner.tenant), dgm_arena_dup(a, last->owner.principal)},
        .id = dgm_arena_dup(a, last->id)};
    dgm_arena_free(r->last);
    r->last = a;
    r->open = n;
    for (size_t i = 0; i < n; i++)
        dgm_core_settle(r->core, rows[i].owner, rows[i].id, on_settled, r);
}

static void recovery_next_page(struct recovery *r)
{
    dgm_store_list_unfinished(r->core->o.store, PAGE, r->last ? &r->after : NULL, got_page, r);
}

void dgm_core_recover(dgm_core *core, dgm_store_done done, void *arg)
{
    struct recovery *r = dgm_xcalloc(1, sizeof *r);
    *r = (struct recovery){.core = core, .home = dgm_loop_current(), .done = done, .arg = arg};
    recovery_next_page(r);
}
