/* store/store_checkpoint.c - calls about checkpoints of graphs become jobs; sizes are checked before anything is copied. */
#include "base/limits.h"
#include "store/store_job.h"

#include <assert.h>

/* ---- limits ------------------------------------------------------------------------------------------ */

static dgm_code check_name(dgm_str s, const char *what, dgm_err *err)
{
    if (s.n <= DGM_MAX_CHECKPOINT_NAME_BYTES)
        return DGM_OK;
    return dgm_fail(err, DGM_TOO_LARGE, NULL,
                    "%s of %zu bytes, the limit checkpoint_name_bytes is %d", what, s.n,
                    DGM_MAX_CHECKPOINT_NAME_BYTES);
}

static dgm_code check_value(const dgm_checkpoint_value *v, const char *what, dgm_err *err)
{
    dgm_code code = check_name(v->type, "a type", err);
    if (code || dgm_value_size(v) <= DGM_MAX_CHECKPOINT_BYTES)
        return code;
    return dgm_fail(
        err, DGM_TOO_LARGE, NULL,
        "%s of %zu bytes, the limit checkpoint_bytes is %zu: store large data elsewhere "
        "and only its name in the state of the graph",
        what, dgm_value_size(v), DGM_MAX_CHECKPOINT_BYTES);
}

static dgm_code check_key(const dgm_checkpoint *c, dgm_err *err)
{
    dgm_code code = check_name(c->thread, "a thread", err);
    if (!code)
        code = check_name(c->ns, "a namespace", err);
    if (!code)
        code = check_name(c->id, "the id of a checkpoint", err);
    if (!code)
        code = check_name(c->parent, "the id of a parent", err);
    return code ? code : check_name(c->run, "a run", err);
}

dgm_code dgm_checkpoint_check_room(const dgm_checkpoint *c, size_t n, size_t bytes, dgm_err *err)
{
    if (n > DGM_MAX_CHECKPOINT_WRITES)
        return dgm_fail(err, DGM_TOO_LARGE, NULL,
                        "%zu writes of checkpoint %.*s, the limit checkpoint_writes is %d", n,
                        DGM_P(c->id), DGM_MAX_CHECKPOINT_WRITES);
    if (bytes > DGM_MAX_CHECKPOINT_TOTAL_BYTES)
        return dgm_fail(err, DGM_TOO_LARGE, NULL,
                        "checkpoint %.*s with its writes has %zu bytes, the limit "
                        "checkpoint_total_bytes is %zu",
                        DGM_P(c->id), bytes, DGM_MAX_CHECKPOINT_TOTAL_BYTES);
    return DGM_OK;
}

dgm_str dgm_str_just_behind(dgm_arena *a, dgm_str s)
{
    char *p = dgm_arena_alloc(a, s.n + 1);
    if (s.n)
        memcpy(p, s.p, s.n);
    return (dgm_str){p, s.n + 1};
}

static dgm_code check_change(const dgm_checkpoint_change *c, size_t *ret_bytes, dgm_err *err)
{
    const dgm_checkpoint *row = &c->row;
    dgm_code code = check_key(row, err);
    size_t bytes = dgm_value_size(&row->checkpoint) + dgm_value_size(&row->metadata);
    if (!code)
        code = check_name(c->to, "a thread", err);
    if (!code)
        code = check_value(&row->checkpoint, "a checkpoint", err);
    if (!code)
        code = check_value(&row->metadata, "metadata of a checkpoint", err);
    for (size_t i = 0; i < row->n_writes && !code; i++) {
        const dgm_checkpoint_write *w = &row->writes[i];
        bytes += dgm_value_size(&w->value);
        code = check_name(w->task, "a task", err);
        if (!code)
            code = check_name(w->path, "the path of a task", err);
        if (!code)
            code = check_name(w->channel, "a channel", err);
        if (!code)
            code = check_value(&w->value, "a write", err);
    }
    if (!code)
        code = dgm_checkpoint_check_room(row, row->n_writes, bytes, err);
    if (!code && c->names.n > DGM_MAX_CHECKPOINT_NAMES)
        code = dgm_fail(err, DGM_TOO_LARGE, NULL,
                        "%zu threads or runs, the limit checkpoint_names is %d: send several "
                        "requests",
                        c->names.n, DGM_MAX_CHECKPOINT_NAMES);
    for (size_t i = 0; i < c->names.n && !code; i++)
        code = check_name(c->names.at[i], "a thread or run", err);
    *ret_bytes = bytes;
    return code;
}

/* ---- jobs -------------------------------------------------------------------------------------------- */

void dgm_job_unref_values(dgm_job *job)
{
    const dgm_checkpoint *rows = NULL;
    size_t n = 0;
    if (job->kind == DGM_JOB_CHECKPOINTS) {
        rows = job->got.checkpoints.at;
        n = job->got.checkpoints.n;
    } else if (job->kind == DGM_JOB_CHANGE) {
        rows = &job->change.change.row;
        n = 1;
    }
    for (size_t i = 0; i < n; i++) {
        dgm_bytes_unref(rows[i].checkpoint.bytes);
        dgm_bytes_unref(rows[i].metadata.bytes);
        for (size_t k = 0; k < rows[i].n_writes; k++)
            dgm_bytes_unref(rows[i].writes[k].value.bytes);
    }
}

static size_t room_of_change(const dgm_checkpoint_change *c)
{
    const dgm_checkpoint *row = &c->row;
    size_t n = dgm_room(row->thread) + dgm_room(row->ns) + dgm_room(row->id) +
               dgm_room(row->parent) + dgm_room(row->run) + dgm_room(row->checkpoint.type) +
               dgm_room(row->metadata.type) + dgm_room(c->to) + dgm_room_of_fence(&c->fence);
    for (size_t i = 0; i < row->n_writes; i++) {
        const dgm_checkpoint_write *w = &row->writes[i];
        n += sizeof *w + dgm_room(w->task) + dgm_room(w->path) + dgm_room(w->channel) +
             dgm_room(w->value.type);
    }
    for (size_t i = 0; i < c->names.n; i++)
        n += sizeof(dgm_str) + dgm_room(c->names.at[i]);
    return n;
}

/* The structs first: what is before them is aligned. */
static void put_change(struct dgm_block *b, dgm_checkpoint_change *c)
{
    dgm_checkpoint_write *writes = (void *)b->at;
    dgm_str *names = (void *)(writes + c->row.n_writes);
    b->at = (char *)(names + c->names.n);
    if (c->row.n_writes)
        memcpy(writes, c->row.writes, c->row.n_writes * sizeof *writes);
    if (c->names.n)
        memcpy(names, c->names.at, c->names.n * sizeof *names);
    for (size_t i = 0; i < c->row.n_writes; i++) {
        dgm_put(b, &writes[i].task);
        dgm_put(b, &writes[i].path);
        dgm_put(b, &writes[i].channel);
        dgm_put(b, &writes[i].value.type);
        dgm_bytes_ref(writes[i].value.bytes);
    }
    for (size_t i = 0; i < c->names.n; i++)
        dgm_put(b, &names[i]);
    c->row.writes = writes;
    c->names.at = names;
    dgm_bytes_ref(c->row.checkpoint.bytes);
    dgm_bytes_ref(c->row.metadata.bytes);
    dgm_put(b, &c->row.checkpoint.type);
    dgm_put(b, &c->row.metadata.type);
    dgm_put(b, &c->row.thread);
    dgm_put(b, &c->row.ns);
    dgm_put(b, &c->row.id);
    dgm_put(b, &c->row.parent);
    dgm_put(b, &c->row.run);
    dgm_put(b, &c->to);
    dgm_put_fence(b, &c->fence);
}

void dgm_store_change_checkpoints(dgm_store *s, dgm_str agent, const dgm_checkpoint_change *change,
                                  dgm_store_done done, void *arg)
{
    struct dgm_block b;
    dgm_err err = {0};
    size_t bytes = 0;
    dgm_code code = check_change(change, &bytes, &err);
    dgm_checkpoint_change none = {.kind = change->kind};
    const dgm_checkpoint_change *from = code ? &none : change;
    dgm_job *job = dgm_job_new(DGM_JOB_CHANGE, dgm_room(agent) + room_of_change(from), &b, arg);
    job->call.done = done;
    job->change.agent = agent;
    job->change.change = *from;
    job->change.bytes = code ? 0 : bytes;
    put_change(&b, &job->change.change);
    dgm_put(&b, &job->change.agent);
    if (!code) {
        s->driver->submit(s, job);
        return;
    }
    job->code = code;
    job->err = err;
    dgm_loop_post(job->loop, dgm_job_on_answers, job);
}

void dgm_store_read_checkpoints(dgm_store *s, dgm_str agent, const dgm_checkpoint_query *q,
                                dgm_checkpoints_got got, void *arg)
{
    struct dgm_block b;
    dgm_job *job = dgm_job_new(DGM_JOB_CHECKPOINTS,
                               dgm_room(agent) + dgm_room(q->thread) + dgm_room(q->ns) +
                                   dgm_room(q->id) + dgm_room(q->before) + dgm_room(q->after.id) +
                                   dgm_room(q->after.ns) + dgm_room(q->after.thread),
                               &b, arg);
    assert(q->limit > 0 && q->limit <= DGM_MAX_CHECKPOINT_PAGE);
    job->call.checkpoints = got;
    job->checkpoints.agent = agent;
    job->checkpoints.query = *q;
    dgm_checkpoint_query *to = &job->checkpoints.query;
    dgm_put(&b, &job->checkpoints.agent);
    dgm_put(&b, &to->thread);
    dgm_put(&b, &to->ns);
    dgm_put(&b, &to->id);
    dgm_put(&b, &to->before);
    dgm_put(&b, &to->after.id);
    dgm_put(&b, &to->after.ns);
    dgm_put(&b, &to->after.thread);
    s->driver->submit(s, job);
}
