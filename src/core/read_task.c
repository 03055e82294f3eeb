/*
 * core/read_task.c - a task with its log and its turns, for readers that show them; the tasks in memory, for operators.
 *
 *   the log, from the loop that owns the task ─► the row of the task ─► the rows of its turns
 *
 * The log comes first: a turn whose first record can be read is stored, so the rows have it.
 */
#include "core/core_int.h"

#include "base/list.h"

struct reading {
    dgm_core *core;
    dgm_arena *arena;
    dgm_owner owner;
    dgm_str task_id;
    dgm_task_log task;
    dgm_on_task_log on_task_log;
    void *arg;
};

static void reading_answer(struct reading *r, dgm_code code, const dgm_err *err)
{
    r->on_task_log(code, code ? NULL : &r->task, err, r->arg);
    if (r->task.log)
        dgm_log_unref(r->task.log);
    dgm_record_unref(r->task.snapshot);
    dgm_arena_free(r->arena);
}

/* True: the store must not be used any more, and the caller has its answer. */
static bool reading_is_stopped(struct reading *r)
{
    dgm_err err = {0};
    if (!r->core->stopping)
        return false;
    reading_answer(r, dgm_fail(&err, DGM_UNAVAILABLE, NULL, "the server is shutting down"), &err);
    return true;
}

static void reading_on_turns(dgm_code code, const dgm_turn_row *rows, size_t n, const dgm_err *err,
                             void *arg)
{
    struct reading *r = arg;
    if (code) {
        reading_answer(r, code, err);
        return;
    }
    dgm_task_turn *turns = dgm_new_n(r->arena, dgm_task_turn, n + 1);
    for (size_t i = 0; i < n; i++) {
        turns[i] = (dgm_task_turn){.turn = rows[i].turn,
                                   .first_seq = rows[i].first_seq,
                                   .last_seq = rows[i].last_seq,
                                   .protocol = rows[i].protocol,
                                   .caller_id = rows[i].caller_id,
                                   .request = rows[i].request};
        if (!turns[i].last_seq && i + 1 < n)
            turns[i].last_seq = rows[i + 1].first_seq - 1;
    }
    r->task.turns = turns;
    r->task.n_turns = n;
    reading_answer(r, DGM_OK, NULL);
}

static void reading_on_row(dgm_code code, const dgm_task_row *row, const dgm_err *err, void *arg)
{
    struct reading *r = arg;
    dgm_err missing = {0};
    if (!code && !row) {
        code = dgm_fail(&missing, DGM_TASK_NOT_FOUND, NULL, "Task not found");
        err = &missing;
    }
    if (code) {
        reading_answer(r, code, err);
        return;
    }
    r->task.agent = dgm_arena_dup(r->arena, row->agent);
    r->task.context_id = dgm_arena_dup(r->arena, row->context_id);
    r->task.state = row->state;
    if (!reading_is_stopped(r))
        dgm_store_get_turns(r->core->o.store, r->owner, r->task_id, reading_on_turns, r);
}

static void reading_on_log(dgm_code code, dgm_log *log, uint64_t after, dgm_record *snapshot,
                           const dgm_err *err, void *arg)
{
    struct reading *r = arg;
    if (code) {
        reading_answer(r, code, err);
        return;
    }
    r->task.log = dgm_log_ref(log);
    r->task.after = after;
    r->task.snapshot = snapshot ? dgm_record_ref(snapshot) : NULL;
    if (!reading_is_stopped(r))
        dgm_store_get_task(r->core->o.store, r->owner, r->task_id, reading_on_row, r);
}

void dgm_core_read_task(dgm_core *core, dgm_owner owner, dgm_str task_id,
                        dgm_on_task_log on_task_log, void *arg)
{
    dgm_arena *a = dgm_arena_new();
    struct reading *r = dgm_new(a, struct reading);
    *r = (struct reading){
        .core = core,
        .arena = a,
        .owner = {dgm_arena_dup(a, owner.tenant), dgm_arena_dup(a, owner.principal)},
        .task_id = dgm_arena_dup(a, task_id),
        .on_task_log = on_task_log,
        .arg = arg};
    dgm_core_read_log(core, r->owner, r->task_id, 0, reading_on_log, r);
}

/* ---- tasks in memory --------------------------------------------------------------------------------------------- */

struct live_listing {
    dgm_core *core;
    dgm_arena *arena;
    dgm_loop *home;
    size_t shard, max;
    dgm_live_task *tasks;
    size_t n;
    bool more;
    dgm_on_live_tasks on_tasks;
    void *arg;
};

static void live_listing_add(struct live_listing *k, const struct live *l)
{
    dgm_owner owner = dgm_live_owner(l);
    k->tasks = dgm_list_grow(k->arena, k->tasks, k->n, sizeof *k->tasks);
    k->tasks[k->n++] = (dgm_live_task){
        .owner = {dgm_arena_dup(k->arena, owner.tenant), dgm_arena_dup(k->arena, owner.principal)},
        .id = dgm_arena_dup(k->arena, l->id),
        .context_id = dgm_arena_dup(k->arena, l->context_id),
        .agent = l->agent->id,
        .state = l->task_state,
        .runs = l->run != NULL,
        .created_ms = l->created_ms,
        .status_ms = l->status_ms};
}

static void live_listing_report(void *arg)
{
    struct live_listing *k = arg;
    k->on_tasks(k->tasks, k->n, k->more, k->arg);
    dgm_arena_free(k->arena);
}

/* On the loop of the shard; then on that of the next one. */
static void live_listing_step(void *arg)
{
    struct live_listing *k = arg;
    const struct shard *s = &k->core->shards[k->shard];
    for (size_t i = 0; i < s->lives.cap && !k->more; i++) {
        for (const dgm_table_node *at = s->lives.slots[i]; at && !k->more; at = at->next) {
            const struct live *l = (const struct live *)(const void *)at;
            if (l->state != LIVE_READY)
                continue;
            if (k->n < k->max)
                live_listing_add(k, l);
            else
                k->more = true;
        }
    }
    if (++k->shard < k->core->n_shards && !k->more)
        dgm_loop_post(k->core->shards[k->shard].loop, live_listing_step, k);
    else
        dgm_loop_post(k->home, live_listing_report, k);
}

void dgm_core_list_live(dgm_core *core, size_t max, dgm_on_live_tasks on_tasks, void *arg)
{
    dgm_arena *a = dgm_arena_new();
    struct live_listing *k = dgm_new(a, struct live_listing);
    *k = (struct live_listing){.core = core,
                               .arena = a,
                               .home = dgm_loop_current(),
                               .max = max,
                               .on_tasks = on_tasks,
                               .arg = arg};
    dgm_loop_post(core->shards[0].loop, live_listing_step, k);
}
