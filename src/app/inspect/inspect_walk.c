/*
 * app/inspect/inspect_walk.c - reads many records in steps; the Task after a record; findings of lint.
 *
 * A log may have a million records. After a step the loop does its other work.
 */
#include "app/inspect/inspect_int.h"
#include "model/fold.h"

#define STEP_RECORDS 512
#define STEP_BYTES ((size_t)512 << 10)

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* Lives as long as the exchange. A step is always posted: nothing else frees it. */
struct walking {
    struct inspect_walk w;
    dgm_log_reader *reader;
    bool has_left; /* the client */
};

static void walk_ignore(void *arg)
{
    (void)arg; /* what comes later is not waited for */
}

static void walk_on_gone(void *arg)
{
    ((struct walking *)arg)->has_left = true;
}

static void walk_end(struct walking *k)
{
    struct inspect_walk w = k->w;
    dgm_log_reader_close(k->reader);
    dgm_log_unref(w.log);
    dgm_http_watch(w.x, NULL, NULL);
    if (k->has_left)
        dgm_http_end(w.x);
    else
        w.on_end(w.arg);
    w.on_free(w.arg);
}

static void walk_step(void *arg)
{
    struct walking *k = arg;
    const dgm_record *r = NULL;
    size_t n = 0, bytes = 0;
    bool goes_on = !k->has_left;
    while (goes_on && n < STEP_RECORDS && bytes < STEP_BYTES) {
        r = dgm_log_reader_seq(k->reader) < k->w.last ? dgm_log_reader_next(k->reader) : NULL;
        goes_on = r && k->w.on_record(k->w.arg, r);
        bytes += r ? r->n : 0;
        n++;
    }
    if (goes_on)
        dgm_loop_post(dgm_loop_current(), walk_step, k);
    else
        walk_end(k);
}

void dgm_inspect_walk(const struct inspect_walk *walk)
{
    static const dgm_http_watcher watcher = {.on_gone = walk_on_gone};
    struct walking *k = dgm_http_alloc(walk->x, sizeof *k);
    k->w = *walk;
    k->w.log = dgm_log_ref(walk->log);
    k->reader = dgm_log_observer_open(k->w.log, walk->after, walk_ignore, NULL);
    dgm_http_watch(walk->x, &watcher, k);
    dgm_loop_post(dgm_loop_current(), walk_step, k);
}

/* ---- the Task after a record ------------------------------------------------------------------------------------- */

struct folding {
    struct inspect *t;
    dgm_fold *fold;
    dgm_arena *scratch;
    uint64_t seq; /* folded so far */
    uint64_t last;
    bool is_turn, was_asked;
    dgm_inspect_on_task on_task;
    void *arg;
};

static bool folding_add(struct folding *f, const dgm_record *r)
{
    dgm_event event;
    dgm_arena_reset(f->scratch);
    if (dgm_record_event(r, f->scratch, &event, NULL))
        return false;
    dgm_fold_add(f->fold, &event, DGM_BY_SERVER,
                 NULL); /* what a third-party agent must not send is ignored */
    f->seq = r->head.seq;
    return true;
}

static bool folding_on_record(void *arg, const dgm_record *r)
{
    struct folding *f = arg;
    if (f->is_turn && r->head.seq == f->last) {
        f->was_asked = dgm_state_is_interrupted(dgm_fold_state(f->fold));
        return folding_add(f, r) && f->was_asked;
    }
    if (r->head.seq > f->last && (!f->was_asked || r->head.kind != DGM_EVENT_STATUS))
        return false;
    return folding_add(f, r) && r->head.seq < f->last;
}

static void folding_on_end(void *arg)
{
    struct folding *f = arg;
    dgm_event event = {.kind = DGM_EVENT_TASK,
                       .task = (dgm_task *)(uintptr_t)dgm_fold_task(f->fold)};
    dgm_record *task = NULL;
    dgm_buf room;
    dgm_buf_init(&room, SIZE_MAX); /* a record has a limit */
    if (event.task && f->seq >= f->last)
        dgm_record_new(&event, (dgm_record_head){.seq = f->seq}, &room, &task, NULL);
    dgm_buf_done(&room);
    f->on_task(f->arg, task);
    dgm_record_unref(task);
}

static void folding_free(void *arg)
{
    struct folding *f = arg;
    dgm_fold_free(f->fold);
    dgm_arena_free(f->scratch);
    dgm_inspect_close(f->t);
}

void dgm_inspect_fold(struct inspect *t, uint64_t seq, bool is_turn, dgm_inspect_on_task on_task,
                      void *arg)
{
    struct folding *f = dgm_new(t->arena, struct folding);
    *f = (struct folding){.t = t,
                          .fold = dgm_fold_new((dgm_fold_options){.foreign = true}),
                          .scratch = dgm_arena_new(),
                          .last = seq,
                          .is_turn = is_turn,
                          .on_task = on_task,
                          .arg = arg};
    if (t->snapshot && folding_add(f, t->snapshot))
        f->seq = t->after;
    dgm_inspect_walk(&(struct inspect_walk){.x = t->q.x,
                                            .log = t->log,
                                            .after = t->after,
                                            .last = seq + is_turn,
                                            .on_record = folding_on_record,
                                            .on_end = folding_on_end,
                                            .on_free = folding_free,
                                            .arg = f});
}

/* ---- GET /debug/tasks/{id}/fold ---------------------------------------------------------------------------------- */

/* The record is {"task":{...}}. */
void dgm_inspect_respond_task(dgm_http_exchange *x, const dgm_record *task)
{
    dgm_str head = DGM_STR("{\"task\":"), bytes = dgm_record_bytes(task);
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX); /* a record has a limit */
    dgm_buf_add(&b, bytes.p + head.n, bytes.n - head.n - 1);
    dgm_inspect_respond(x, &b);
    dgm_buf_done(&b);
}

static void folded_respond(void *arg, dgm_record *task)
{
    const struct inspect *t = arg;
    if (task)
        dgm_inspect_respond_task(t->q.x, task);
    else
        dgm_inspect_refuse(&t->q, DGM_TOO_LARGE,
                           "the Task cannot be shown: it is larger than the limit record_bytes");
}

static void folded_open(struct inspect *t)
{
    uint64_t most = t->log->published,
             seq = dgm_inspect_number(dgm_turn_query(t->q.x, "seq"), most);
    if (!seq || seq > most || seq < t->after) {
        dgm_inspect_refuse(&t->q, DGM_BAD_PARAMS,
                           "seq: unknown record of the task, or the record was removed");
        dgm_inspect_close(t);
        return;
    }
    dgm_inspect_fold(t, seq, false, folded_respond, t);
}

void dgm_inspect_folded(const dgm_front_request *q)
{
    dgm_inspect_open(q, folded_open);
}

/* ---- GET /debug/tasks/{id}/findings ------------------------------------------------------------------------------ */

struct linting {
    struct inspect *t;
    struct inspect_lint lint;
};

/* Clients of A2A never see internal records. */
static bool linting_on_record(void *arg, const dgm_record *r)
{
    struct linting *l = arg;
    if (r->head.kind == DGM_EVENT_INTERNAL)
        return true;
    dgm_inspect_lint_feed(&l->lint, r->head.seq, dgm_record_bytes(r));
    dgm_linter_feed(l->lint.linter, "\n", 1);
    return true;
}

static void linting_on_end(void *arg)
{
    struct linting *l = arg;
    dgm_inspect_respond(l->t->q.x, dgm_inspect_lint_end(&l->lint));
}

static void linting_free(void *arg)
{
    struct linting *l = arg;
    dgm_inspect_lint_done(&l->lint);
    dgm_inspect_close(l->t);
}

static void findings_open(struct inspect *t)
{
    struct linting *l = dgm_new(t->arena, struct linting);
    bool is_one = t->names_turn && t->turn->first_seq > t->after;
    l->t = t;
    dgm_inspect_lint_start(&l->lint, DGM_FORMAT_A2A_10);
    dgm_inspect_walk(&(struct inspect_walk){.x = t->q.x,
                                            .log = t->log,
                                            .after = is_one ? t->turn->first_seq - 1 : t->after,
                                            .last = is_one && t->turn->last_seq ? t->turn->last_seq
                                                                                : t->log->published,
                                            .on_record = linting_on_record,
                                            .on_end = linting_on_end,
                                            .on_free = linting_free,
                                            .arg = l});
}

void dgm_inspect_findings(const dgm_front_request *q)
{
    dgm_inspect_open(q, findings_open);
}
