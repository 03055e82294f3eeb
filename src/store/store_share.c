/* store/store_share.c - makes jobs of the calls of store/share.h; posts answers and events to the loop of the core. */
#include "base/limits.h"
#include "store/share.h"
#include "store/store_job.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool dgm_store_is_shared(const dgm_store *s)
{
    return s->share;
}

dgm_replica dgm_store_replica(const dgm_store *s)
{
    return (dgm_replica){s->replica, dgm_str_from(s->replica_name)};
}

void dgm_store_set_name(dgm_store *s, dgm_str name)
{
    size_t n = name.n < sizeof s->replica_name ? name.n : sizeof s->replica_name - 1;
    if (n)
        memcpy(s->replica_name, name.p, n);
    else if (gethostname(s->replica_name, sizeof s->replica_name - 1))
        snprintf(s->replica_name, sizeof s->replica_name, "unnamed");
}

/* ---- leases ------------------------------------------------------------------------------------------ */

void dgm_store_acquire(dgm_store *s, dgm_owner owner, dgm_str task_id, dgm_store_got_task got,
                       void *arg)
{
    dgm_job_kind kind = s->share ? DGM_JOB_ACQUIRE : DGM_JOB_TASK;
    dgm_job *job = dgm_job_new_task(kind, owner, task_id, arg);
    job->call.task = got;
    s->driver->submit(s, job);
}

void dgm_store_release(dgm_store *s, dgm_owner owner, dgm_str task_id, uint64_t fence,
                       dgm_store_done done, void *arg)
{
    dgm_job *job = dgm_job_new_task(DGM_JOB_RELEASE, owner, task_id, arg);
    job->task.fence = fence;
    job->call.done = done;
    if (s->share)
        s->driver->submit(s, job);
    else
        dgm_loop_post(job->loop, dgm_job_on_answers, job);
}

void dgm_store_release_failed(dgm_store *s, dgm_owner owner, dgm_str task_id, uint64_t fence)
{
    if (!s->share)
        return;
    dgm_job *job = dgm_job_new_task(DGM_JOB_RELEASE, owner, task_id, NULL);
    job->task.fence = fence;
    job->task.has_failed = true;
    job->call.done = NULL;
    s->driver->submit(s, job);
}

void dgm_store_set_agents(dgm_store *s, const dgm_str *agents, size_t n)
{
    if (s->share)
        s->share->set_agents(s, agents, n);
}

/* ---- following --------------------------------------------------------------------------------------- */

void dgm_store_share(dgm_store *s, dgm_loop *loop, const dgm_share_handlers *handlers)
{
    if (s->share)
        s->share->share(s, loop, handlers);
}

void dgm_store_follow(dgm_store *s, dgm_owner owner, dgm_str task_id, int64_t owner_replica)
{
    if (s->share && owner_replica != s->replica)
        s->share->follow(s, owner, task_id, owner_replica);
}

bool dgm_store_is_followed(dgm_store *s, dgm_owner owner, dgm_str task_id)
{
    return s->share && s->share->is_followed(s, owner, task_id);
}

/* How long a command without an answer may be on its way. */
#define UNANSWERED_MS 60000

/* ---- commands ---------------------------------------------------------------------------------------- */

dgm_code dgm_command_unanswered(uint64_t ms, dgm_err *err)
{
    if (!ms)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                        "the server that owns this task has ended: try again");
    return dgm_fail(
        err, DGM_UNAVAILABLE, NULL,
        "timeout: the server that owns this task did not answer within %llu ms: try again",
        (unsigned long long)ms);
}

void dgm_store_command(dgm_store *s, int64_t to_replica, dgm_owner owner, dgm_str task_id,
                       dgm_str kind, dgm_str body, uint64_t ms, dgm_command_answered answered,
                       void *arg)
{
    struct dgm_block b;
    bool too_large = body.n > DGM_MAX_COMMAND_BYTES;
    size_t size = body.n;
    if (too_large)
        body = (dgm_str){0};
    dgm_job *job = dgm_job_new(DGM_JOB_COMMAND,
                               dgm_room(owner.tenant) + dgm_room(owner.principal) +
                                   dgm_room(task_id) + dgm_room(kind) + dgm_room(body),
                               &b, arg);
    dgm_command *c = &job->command.is;
    *c = (dgm_command){.from = s->replica, .owner = owner, .task_id = task_id, .kind = kind};
    c->body = body;
    dgm_put(&b, &c->owner.tenant);
    dgm_put(&b, &c->owner.principal);
    dgm_put(&b, &c->task_id);
    dgm_put(&b, &c->kind);
    dgm_put(&b, &c->body);
    job->command.to = to_replica;
    job->command.ms = ms || answered ? ms : UNANSWERED_MS;
    job->call.answered = answered;
    if (too_large)
        job->code =
            dgm_fail(&job->err, DGM_TOO_LARGE, NULL,
                     "the request to another server has %zu bytes, the limit command_bytes is "
                     "%zu: send less",
                     size, DGM_MAX_COMMAND_BYTES);
    else if (!s->share)
        job->code = dgm_command_unanswered(0, &job->err);
    if (job->code)
        dgm_loop_post(job->loop, dgm_job_on_answers, job);
    else
        s->driver->submit(s, job);
}

void dgm_store_answer(dgm_store *s, const dgm_command *command, dgm_code code, const dgm_err *err,
                      dgm_str body)
{
    struct dgm_block b;
    dgm_job *job = dgm_job_new(DGM_JOB_ANSWER, sizeof *err + dgm_room(body), &b, NULL);
    dgm_err *copy = (void *)b.at; /* behind the job, so it is aligned */
    b.at += sizeof *err;
    job->answer.command = command->id;
    job->answer.to = command->from;
    job->answer.code = code;
    job->answer.body = body;
    job->call.done = NULL;
    if (code) {
        *copy = err ? *err : (dgm_err){.code = code};
        job->answer.err = copy;
    }
    dgm_put(&b, &job->answer.body);
    if (s->share)
        s->driver->submit(s, job);
    else
        dgm_loop_post(job->loop, dgm_job_on_answers, job);
}

/* ---- to the core --------------------------------------------------------------------------------------- */

struct dgm_share_port {
    dgm_loop *loop;
    dgm_share_handlers handlers;
    _Atomic size_t refs;
    _Atomic bool is_open;
};

/* What is on its way, in an arena. */
struct share_event {
    dgm_share_port *port;
    dgm_arena *arena;
    enum {
        EVENT_ORPHANS,
        EVENT_SEARCHED,
        EVENT_OWNED,
        EVENT_RENEWED,
        EVENT_GROWN,
        EVENT_COMMAND
    } kind;
    dgm_task_row *rows;
    size_t n;
    dgm_command command; /* of EVENT_GROWN: its owner and task */
};

dgm_share_port *dgm_share_port_new(dgm_loop *loop, const dgm_share_handlers *handlers)
{
    dgm_share_port *p = dgm_xcalloc(1, sizeof *p);
    p->loop = loop;
    p->handlers = *handlers;
    p->refs = 1;
    p->is_open = true;
    return p;
}

static void share_port_unref(dgm_share_port *p)
{
    if (atomic_fetch_sub(&p->refs, 1) == 1)
        free(p);
}

void dgm_share_port_close(dgm_share_port *p)
{
    if (!p)
        return;
    p->is_open = false;
    share_port_unref(p);
}

static void share_on_event(void *arg)
{
    struct share_event *e = arg;
    const dgm_share_handlers *h = &e->port->handlers;
    if (e->port->is_open) {
        switch (e->kind) {
        case EVENT_ORPHANS: h->on_orphans(h->user, e->rows, e->n); break;
        case EVENT_SEARCHED: h->on_searched(h->user); break;
        case EVENT_OWNED: h->on_owned(h->user, e->rows, e->n); break;
        case EVENT_RENEWED: h->on_renewed(h->user); break;
        case EVENT_GROWN: h->on_grown(h->user, e->command.owner, e->command.task_id); break;
        case EVENT_COMMAND: h->on_command(h->user, &e->command); break;
        }
    }
    share_port_unref(e->port);
    dgm_arena_free(e->arena);
}

static struct share_event *share_event_new(dgm_share_port *p, int kind)
{
    dgm_arena *a = dgm_arena_new();
    struct share_event *e = dgm_new(a, struct share_event);
    *e = (struct share_event){.port = p, .arena = a, .kind = kind};
    p->refs++;
    return e;
}

static void share_post_rows(dgm_share_port *p, int kind, const dgm_task_row *rows, size_t n)
{
    struct share_event *e = share_event_new(p, kind);
    e->rows = dgm_new_n(e->arena, dgm_task_row, n);
    e->n = n;
    for (size_t i = 0; i < n; i++) {
        e->rows[i] = rows[i];
        e->rows[i].folded = (dgm_str){0};
        dgm_task_row_keep(e->arena, &e->rows[i]);
    }
    dgm_loop_post(p->loop, share_on_event, e);
}

void dgm_share_port_searched(dgm_share_port *p)
{
    dgm_loop_post(p->loop, share_on_event, share_event_new(p, EVENT_SEARCHED));
}

void dgm_share_port_orphans(dgm_share_port *p, const dgm_task_row *rows, size_t n)
{
    share_post_rows(p, EVENT_ORPHANS, rows, n);
}

void dgm_share_port_owned(dgm_share_port *p, const dgm_task_row *rows, size_t n)
{
    share_post_rows(p, EVENT_OWNED, rows, n);
}

void dgm_share_port_renewed(dgm_share_port *p)
{
    dgm_loop_post(p->loop, share_on_event, share_event_new(p, EVENT_RENEWED));
}

void dgm_share_port_grown(dgm_share_port *p, dgm_owner owner, dgm_str task_id)
{
    struct share_event *e = share_event_new(p, EVENT_GROWN);
    e->command.owner.tenant = dgm_arena_dup(e->arena, owner.tenant);
    e->command.owner.principal = dgm_arena_dup(e->arena, owner.principal);
    e->command.task_id = dgm_arena_dup(e->arena, task_id);
    dgm_loop_post(p->loop, share_on_event, e);
}

void dgm_share_port_command(dgm_share_port *p, const dgm_command *command)
{
    struct share_event *e = share_event_new(p, EVENT_COMMAND);
    e->command = *command;
    e->command.owner.tenant = dgm_arena_dup(e->arena, command->owner.tenant);
    e->command.owner.principal = dgm_arena_dup(e->arena, command->owner.principal);
    e->command.task_id = dgm_arena_dup(e->arena, command->task_id);
    e->command.kind = dgm_arena_dup(e->arena, command->kind);
    e->command.body = dgm_arena_dup(e->arena, command->body);
    dgm_loop_post(p->loop, share_on_event, e);
}
