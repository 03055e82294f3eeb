/* store/store_read.c - calls that read, and notes. */
#include "base/limits.h"
#include "store/store_job.h"

/* ---- reading --------------------------------------------------------------------------------------- */

dgm_job *dgm_job_new_task(dgm_job_kind kind, dgm_owner owner, dgm_str task_id, void *arg)
{
    struct dgm_block b;
    dgm_job *job = dgm_job_new(
        kind, dgm_room(owner.tenant) + dgm_room(owner.principal) + dgm_room(task_id), &b, arg);
    job->task.owner = owner;
    job->task.task_id = task_id;
    dgm_put(&b, &job->task.owner.tenant);
    dgm_put(&b, &job->task.owner.principal);
    dgm_put(&b, &job->task.task_id);
    return job;
}

void dgm_store_get_task(dgm_store *s, dgm_owner owner, dgm_str task_id, dgm_store_got_task got,
                        void *arg)
{
    dgm_job *job = dgm_job_new_task(DGM_JOB_TASK, owner, task_id, arg);
    job->call.task = got;
    s->driver->submit(s, job);
}

void dgm_store_get_records(dgm_store *s, dgm_owner owner, dgm_str task_id, uint64_t seq, size_t max,
                           size_t max_bytes, dgm_store_got_records got, void *arg)
{
    dgm_job *job = dgm_job_new_task(DGM_JOB_RECORDS, owner, task_id, arg);
    job->task.seq = seq;
    job->task.max = max;
    job->task.max_bytes = max_bytes;
    job->call.records = got;
    s->driver->submit(s, job);
}

void dgm_store_get_turns(dgm_store *s, dgm_owner owner, dgm_str task_id, dgm_store_got_turns got,
                         void *arg)
{
    dgm_job *job = dgm_job_new_task(DGM_JOB_TURNS, owner, task_id, arg);
    job->call.turns = got;
    s->driver->submit(s, job);
}

static dgm_job *find_job(dgm_job_kind kind, const dgm_find *f, void *arg)
{
    struct dgm_block b;
    size_t more = dgm_room(f->owner.tenant) + dgm_room(f->owner.principal) + dgm_room(f->agent) +
                  dgm_room(f->protocol) + dgm_room(f->caller_id) + dgm_room(f->context_id) +
                  dgm_room(f->message_id) + dgm_room(f->call_id);
    dgm_job *job = dgm_job_new(kind, more, &b, arg);
    job->find = *f;
    dgm_put(&b, &job->find.owner.tenant);
    dgm_put(&b, &job->find.owner.principal);
    dgm_put(&b, &job->find.agent);
    dgm_put(&b, &job->find.protocol);
    dgm_put(&b, &job->find.caller_id);
    dgm_put(&b, &job->find.context_id);
    dgm_put(&b, &job->find.message_id);
    dgm_put(&b, &job->find.call_id);
    return job;
}

void dgm_store_find_turn(dgm_store *s, dgm_owner owner, dgm_str agent, dgm_str protocol,
                         dgm_str caller_id, dgm_store_got_turn got, void *arg)
{
    dgm_find find = {.owner = owner, .agent = agent, .protocol = protocol, .caller_id = caller_id};
    dgm_job *job = find_job(DGM_JOB_FIND_TURN, &find, arg);
    job->call.turn = got;
    s->driver->submit(s, job);
}

void dgm_store_find_dedupe(dgm_store *s, dgm_owner owner, dgm_str agent, dgm_str context_id,
                           dgm_str message_id, dgm_store_got_dedupe got, void *arg)
{
    dgm_find find = {
        .owner = owner, .agent = agent, .context_id = context_id, .message_id = message_id};
    dgm_job *job = find_job(DGM_JOB_FIND_DEDUPE, &find, arg);
    job->call.dedupe = got;
    s->driver->submit(s, job);
}

void dgm_store_find_call(dgm_store *s, dgm_owner owner, dgm_str agent, dgm_str call_id,
                         dgm_store_got_task got, void *arg)
{
    dgm_find find = {.owner = owner, .agent = agent, .call_id = call_id};
    dgm_job *job = find_job(DGM_JOB_FIND_CALL, &find, arg);
    job->call.task = got;
    s->driver->submit(s, job);
}

bool dgm_store_is_unknown(dgm_store *s, dgm_owner owner, dgm_str agent, dgm_str context_id,
                          dgm_str message_id)
{
    return s->driver->is_unknown(s, owner, agent, context_id, message_id);
}

void dgm_store_list(dgm_store *s, const dgm_list_query *q, dgm_store_got_list got, void *arg)
{
    struct dgm_block b;
    dgm_job *job =
        dgm_job_new(DGM_JOB_LIST,
                    dgm_room(q->owner.tenant) + dgm_room(q->owner.principal) + dgm_room(q->agent) +
                        dgm_room(q->context_id) + dgm_room(q->after_id),
                    &b, arg);
    job->list = *q;
    dgm_put(&b, &job->list.owner.tenant);
    dgm_put(&b, &job->list.owner.principal);
    dgm_put(&b, &job->list.agent);
    dgm_put(&b, &job->list.context_id);
    dgm_put(&b, &job->list.after_id);
    job->call.list = got;
    s->driver->submit(s, job);
}

void dgm_store_get_context(dgm_store *s, dgm_owner owner, dgm_str agent, dgm_str context_id,
                           size_t max, size_t max_bytes, dgm_store_got_list got, void *arg)
{
    struct dgm_block b;
    dgm_job *job = dgm_job_new(DGM_JOB_CONTEXT,
                               dgm_room(owner.tenant) + dgm_room(owner.principal) +
                                   dgm_room(agent) + dgm_room(context_id),
                               &b, arg);
    job->context.owner = owner;
    job->context.agent = agent;
    job->context.context_id = context_id;
    job->context.max = max;
    job->context.max_bytes = max_bytes;
    dgm_put(&b, &job->context.owner.tenant);
    dgm_put(&b, &job->context.owner.principal);
    dgm_put(&b, &job->context.agent);
    dgm_put(&b, &job->context.context_id);
    job->call.list = got;
    s->driver->submit(s, job);
}

void dgm_store_list_unfinished(dgm_store *s, size_t page_size, const dgm_task_row *after,
                               dgm_store_got_list got, void *arg)
{
    struct dgm_block b;
    dgm_task_row from = after ? *after : (dgm_task_row){0};
    from.folded = (dgm_str){0};
    dgm_job *job = dgm_job_new(DGM_JOB_UNFINISHED, dgm_room_of_row(&from), &b, arg);
    job->unfinished.page_size = page_size;
    job->unfinished.has_after = after;
    job->unfinished.after = from;
    dgm_put_row(&b, &job->unfinished.after);
    job->call.list = got;
    s->driver->submit(s, job);
}

/* ---- notes ----------------------------------------------------------------------------------------- */

static dgm_job *note_job(dgm_job_kind kind, const dgm_note *n, void *arg)
{
    struct dgm_block b;
    dgm_job *job =
        dgm_job_new(kind,
                    dgm_room(n->owner.tenant) + dgm_room(n->owner.principal) + dgm_room(n->kind) +
                        dgm_room(n->name) + dgm_room(n->text) + dgm_room_of_fence(&n->fence),
                    &b, arg);
    job->note = *n;
    dgm_put(&b, &job->note.owner.tenant);
    dgm_put(&b, &job->note.owner.principal);
    dgm_put(&b, &job->note.kind);
    dgm_put(&b, &job->note.name);
    dgm_put(&b, &job->note.text);
    dgm_put_fence(&b, &job->note.fence);
    return job;
}

dgm_job *dgm_job_new_note(const dgm_note *note, dgm_store_done done, void *arg)
{
    dgm_note small = *note;
    size_t max = note->max_bytes ? note->max_bytes : DGM_MAX_NOTE_BYTES;
    bool too_large = note->text.n > max;
    if (too_large)
        small.text = (dgm_str){0};
    dgm_job *job = note_job(DGM_JOB_PUT_NOTE, &small, arg);
    job->call.done = done;
    if (too_large)
        job->code = dgm_fail(&job->err, DGM_TOO_LARGE, NULL,
                             "%zu bytes to store, more than the limit %s of %zu: send less",
                             note->text.n, note->max_bytes ? "run_note_bytes" : "note_bytes", max);
    return job;
}

void dgm_store_put_note(dgm_store *s, const dgm_note *note, dgm_store_done done, void *arg)
{
    dgm_job *job = dgm_job_new_note(note, done, arg);
    if (job->code)
        dgm_loop_post(job->loop, dgm_job_on_answers, job);
    else
        s->driver->submit(s, job);
}

void dgm_store_get_note(dgm_store *s, dgm_owner owner, dgm_str kind, dgm_str name,
                        dgm_store_got_note got, void *arg)
{
    dgm_job *job =
        note_job(DGM_JOB_GET_NOTE, &(dgm_note){.owner = owner, .kind = kind, .name = name}, arg);
    job->call.note = got;
    s->driver->submit(s, job);
}
