/*
 * backend/exec/exec_worker.c - mode: worker: a run in a long-lived process (backend/worker), kind `events`.
 *
 *   start ── recall the journal ── run ── events ... ── result ──► end
 *                                   ▲──── the process was lost, or drained ────┘   at most max_attempts times
 *
 * The note that is stored for the task has one line of JSON, {"attempt":2,"message":"<messageId>","journal":true,"records":7}, and
 * then the journal of the worker. The attempts count across restarts of the server, so that a message that ends the process every
 * time is not repeated without limit. A run whose first attempt succeeds stores nothing. `records` is the number of the last record
 * before the journal was stored: a run that is started again gets the number of events after it, so that it does not send
 * them a second time.
 */
#include "backend/exec/exec_int.h"
#include "base/limits.h"
#include "model/form.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_DRAINED 10   /* times that one run is interrupted by reloads */
#define MAX_ACCEPTED 100 /* messages to one run while it works */

/* A journal/put that is being stored. */
struct exec_put {
    struct exec_put *next;
    struct exec_job *job;
    dgm_worker_request *request;
};

struct exec_job {
    dgm_run *run;
    struct exec *exec;
    dgm_worker_run *worker; /* NULL: it is not started, or has ended */
    struct exec_events events;
    dgm_timer timeout;
    dgm_str thread;
    unsigned attempt, n_drained;
    bool is_resumed, is_ended, has_journal;
    dgm_buf journal, parts; /* parts: of the next journal */
    uint64_t records;       /* of the task's log, when the journal was stored */
    dgm_strs accepted;      /* as JSON, in the run's arena */
    size_t n_events;
    struct exec_put *puts;
};

static void job_begin(struct exec_job *j);

/* ---- the end ----------------------------------------------------------------------------------------------------------------- */

static void job_on_closed(void *arg)
{
    struct exec_job *j = arg;
    dgm_buf_done(&j->journal);
    dgm_buf_done(&j->parts);
    free(j);
}

static void job_end(struct exec_job *j)
{
    dgm_run *run = j->run;
    if (j->worker)
        dgm_worker_run_drop(dgm_take(j->worker));
    while (j->puts) { /* what is stored after the end of a run is not reported */
        struct exec_put *put = j->puts;
        j->puts = put->next;
        dgm_worker_respond_error(put->request, DGM_WORKER_BAD_PARAMS, "the run has ended");
        free(put);
    }
    j->is_ended = true;
    run->agent_data = NULL;
    dgm_timer_stop(&j->timeout);
    dgm_timer_close(&j->timeout, job_on_closed, j);
    run->ops->end(run, NULL); /* the result was emitted before */
}

static void job_finish(struct exec_job *j, dgm_task_state state)
{
    dgm_exec_events_settle(&j->events, j->run->canceled ? DGM_STATE_CANCELED : state, NULL);
    job_end(j);
}

static void job_fail(struct exec_job *j, dgm_str safe, dgm_str detail, dgm_str output)
{
    if (!j->run->canceled)
        dgm_run_report(j->run, &(dgm_run_fault){safe, detail, output});
    if (j->run->canceled)
        dgm_exec_events_settle(&j->events, DGM_STATE_CANCELED, NULL);
    else
        dgm_exec_events_settle(&j->events, DGM_STATE_FAILED, dgm_arena_dup(j->run->arena, safe).p);
    job_end(j);
}

static bool job_has_answer(const struct exec_job *j)
{
    return j->events.settled || dgm_state_is_interrupted(j->events.state);
}

static void job_on_timeout(void *arg)
{
    struct exec_job *j = arg;
    if (j->events.settled) { /* it was to answer after its last event */
        job_end(j);
        return;
    }
    dgm_str safe =
        dgm_arena_printf(j->run->arena, "the agent took longer than %g seconds", j->exec->timeout);
    job_fail(j, safe, (dgm_str){0}, (dgm_str){0});
}

/* ---- events -------------------------------------------------------------------------------------------------------------------- */

static void job_on_event(void *user, const dgm_worker_event *e)
{
    struct exec_job *j = user;
    dgm_event event;
    dgm_err err = {0};
    char safe[120];
    j->n_events++;
    if (j->events.settled)
        return;
    if (!dgm_str_is(e->type, "a2a")) {
        dgm_run_note(j->run, "event of the unknown type \"%.*s\" is ignored",
                     (int)(e->type.n < 60 ? e->type.n : 60), e->type.p);
        return;
    }
    if (dgm_exec_read_event_value(e->arena, &j->events.mint, dgm_loop_unix_ms(),
                                  (yyjson_val *)(uintptr_t)e->data, &event, &err)) {
        snprintf(safe, sizeof safe, "event %zu of the agent is not an A2A event", j->n_events);
        dgm_str detail =
            dgm_arena_printf(j->run->arena, "%s%s%s", err.at, *err.at ? ": " : "", err.msg);
        job_fail(j, dgm_str_from(safe), detail, (dgm_str){0});
    } else if (j->run->ops->emit(j->run, &event, &err)) {
        snprintf(safe, sizeof safe, "event %zu of the agent is an invalid event", j->n_events);
        job_fail(j, dgm_str_from(safe), dgm_str_from(err.msg), (dgm_str){0});
    } else {
        dgm_exec_events_note(&j->events, &event);
        if (j->events.settled)
            dgm_timer_start(&j->timeout, (uint64_t)(j->exec->grace * 1000) + 1);
    }
}

static bool job_is_full(void *user)
{
    const struct exec_job *j = user;
    return !j->events.settled && j->run->ops->is_full(j->run);
}

static void job_on_log(void *user, dgm_str level, dgm_str text)
{
    const struct exec_job *j = user;
    dgm_run_note(j->run, "%.*s%s%.*s", DGM_P(level), level.n ? ": " : "",
                 (int)(text.n < 900 ? text.n : 900), text.p);
}

/* ---- the journal ----------------------------------------------------------------------------------------------------------------- */

/* The note as it is stored. False: it is too large. */
static bool job_remember(struct exec_job *j, void (*stored)(void *arg, dgm_code code), void *arg)
{
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_RUN_NOTE_BYTES);
    dgm_buf_printf(&b, "{\"attempt\":%u,\"message\":", j->attempt);
    dgm_json_put_str(&b, j->run->input->message->message_id);
    dgm_buf_printf(&b, ",\"journal\":%s,\"records\":%llu}\n", j->has_journal ? "true" : "false",
                   (unsigned long long)j->records);
    dgm_buf_add_str(&b, dgm_buf_str(&j->journal));
    bool fits = !b.over;
    if (fits && j->run->ops->remember)
        j->run->ops->remember(j->run, DGM_RUN_TASK, dgm_buf_str(&b), stored, arg);
    dgm_buf_done(&b);
    return fits;
}

static void job_on_stored(void *arg, dgm_code code)
{
    struct exec_put *put = arg, **at = &put->job->puts;
    while (*at != put)
        at = &(*at)->next;
    *at = put->next;
    if (code)
        dgm_worker_respond_error(put->request, DGM_WORKER_INTERNAL,
                                 "the journal could not be stored");
    else
        dgm_worker_respond(put->request, DGM_STR("{}"));
    free(put);
}

static void job_store(struct exec_job *j, dgm_worker_request *r)
{
    const dgm_task *task;
    struct exec_put *put = dgm_xcalloc(1, sizeof *put);
    *put = (struct exec_put){.next = j->puts, .job = j, .request = r};
    j->puts = put;
    if (j->run->ops->review)
        j->records = j->run->ops->review(j->run, 0, &task, NULL, NULL);
    bool fits = job_remember(j, job_on_stored, put);
    if (!fits || !j->run->ops->remember)
        job_on_stored(put, fits ? DGM_OK : DGM_TOO_LARGE);
}

/* journal/put: the text, or a part of it that others follow (`more`). */
static void job_put_journal(struct exec_job *j, dgm_worker_request *r)
{
    yyjson_val *text = dgm_json_get(r->params, DGM_STR("text"));
    if (!yyjson_is_str(text)) {
        dgm_worker_respond_error(r, DGM_WORKER_BAD_PARAMS, "expected a string as params.text");
        return;
    }
    dgm_buf_add_str(&j->parts, dgm_json_str(text));
    bool has_more = yyjson_is_true(dgm_json_get(r->params, DGM_STR("more")));
    if (has_more && !j->parts.over) {
        dgm_worker_respond(r, DGM_STR("{}"));
    } else if (j->parts.over) {
        dgm_worker_respond_error(r, DGM_WORKER_BAD_PARAMS,
                                 "the journal has more than %zu bytes, the limit journal_bytes",
                                 DGM_MAX_JOURNAL_BYTES);
    } else {
        dgm_buf stored = j->journal;
        j->journal = j->parts;
        j->parts = stored;
        j->has_journal = true;
        job_store(j, r);
    }
    if (!has_more) {
        dgm_buf_clear(&j->parts);
        j->parts.over = false;
    }
}

/* journal/get: a part from an offset in bytes. Parts end at a character. */
static void job_get_journal(const struct exec_job *j, dgm_worker_request *r)
{
    const dgm_json *number = dgm_json_get(r->params, DGM_STR("offset"));
    dgm_str text = dgm_buf_str(&j->journal);
    int64_t offset = 0;
    dgm_buf b;
    if (!number || !dgm_json_int(number, &offset) || offset < 0 || (uint64_t)offset > text.n) {
        dgm_worker_respond_error(r, DGM_WORKER_BAD_PARAMS, "expected an offset from 0 to %zu",
                                 text.n);
        return;
    }
    size_t start = (size_t)offset, end = text.n;
    if (end - start > DGM_JOURNAL_PART_BYTES) {
        end = start + DGM_JOURNAL_PART_BYTES;
        while (end > start && ((unsigned char)text.p[end] & 0xc0) == 0x80)
            end--;
    }
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"text\":");
    dgm_json_put_str(&b, (dgm_str){text.p + start, end - start});
    dgm_buf_printf(&b, ",\"next\":%zu,\"more\":%s}", end, end < text.n ? "true" : "false");
    dgm_worker_respond(r, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

static bool job_on_request(void *user, dgm_worker_request *r)
{
    struct exec_job *j = user;
    if (dgm_str_is(r->method, "journal/put"))
        job_put_journal(j, r);
    else if (dgm_str_is(r->method, "journal/get"))
        job_get_journal(j, r);
    else
        return false;
    return true;
}

/* ---- the result ------------------------------------------------------------------------------------------------------------------- */

/* The same message again, in a new process. */
static void job_run_again(struct exec_job *j, const char *why)
{
    j->is_resumed = true;
    dgm_run_note(j->run, "%s: the run is started again (attempt %u)", why, j->attempt);
    job_begin(j);
}

static void job_on_result(void *user, const dgm_json *result)
{
    struct exec_job *j = user;
    dgm_str status = dgm_json_str_member(result, "status");
    dgm_err err = {0};
    j->worker = NULL;
    if (job_has_answer(j)) {
        job_end(j); /* if it asked: the next message starts it again */
    } else if (dgm_str_is(status, "completed")) {
        job_finish(j, DGM_STATE_COMPLETED);
    } else if (dgm_str_is(status, "cancelled")) {
        job_finish(j, DGM_STATE_CANCELED);
    } else if (dgm_str_is(status, "interrupted")) {
        if (dgm_run_status(j->run, DGM_STATE_INPUT_REQUIRED, (dgm_str){0}, &err))
            dgm_run_note(j->run, "the last status was rejected: %s", err.msg);
        job_end(j);
    } else if (dgm_str_is(status, "drained") && j->n_drained++ < MAX_DRAINED) {
        job_run_again(j, "the worker was stopped between two steps");
    } else {
        job_fail(j, DGM_STR("the agent's worker process ended the run with an unknown status"),
                 status, (dgm_str){0});
    }
}

static void job_reject(struct exec_job *j, dgm_str why)
{
    dgm_err err = {0};
    if (dgm_run_status(j->run, DGM_STATE_REJECTED, why, &err))
        dgm_run_note(j->run, "the last status was rejected: %s", err.msg);
    j->events.settled = true;
    job_end(j);
}

static void job_on_error(void *user, const dgm_worker_fault *fault)
{
    struct exec_job *j = user;
    bool is_lost = fault->kind == DGM_WORKER_LOST && !j->run->canceled && !job_has_answer(j);
    j->worker = NULL;
    if (is_lost && j->attempt < j->exec->max_attempts) {
        j->attempt++;
        job_remember(j, NULL, NULL);
        job_run_again(j, "the worker process was lost");
    } else if (job_has_answer(j)) {
        dgm_run_report(j->run, &(dgm_run_fault){DGM_STR("the agent failed after its answer"),
                                                fault->detail.n ? fault->detail : fault->safe,
                                                fault->output});
        job_end(j);
    } else if (fault->kind == DGM_WORKER_ERROR && fault->code == DGM_WORKER_REJECTED &&
               !j->run->canceled) {
        job_reject(j, fault->safe);
    } else {
        job_fail(j, fault->safe, fault->detail, fault->output);
    }
}

/* ---- params ------------------------------------------------------------------------------------------------------------------------- */

/* Events that a function counts: all internal ones, and progress. Texts and files are compared with the Task instead. */
struct exec_count {
    dgm_str working_message; /* is added by the server, in the first one */
    size_t n;
};

static bool is_working_message(const dgm_message *m, dgm_str text)
{
    const dgm_part *p = m->parts.at;
    return text.n && m->parts.n == 1 && p->kind == DGM_PART_DATA &&
           dgm_str_eq(dgm_json_str_member(p->data, "text"), text);
}

static void count_event(void *arg, const dgm_event *e)
{
    struct exec_count *c = arg;
    if (e->kind == DGM_EVENT_INTERNAL) {
        c->n += e->internal->kind != DGM_INTERNAL_MESSAGE;
    } else if (e->kind == DGM_EVENT_STATUS) {
        const dgm_status *s = &e->status->status;
        c->n += s->state == DGM_STATE_WORKING && s->message &&
                !is_working_message(s->message, c->working_message);
    }
}

/* The output of a lost process: the Task, and the number of events after the journal. */
static const dgm_task *job_review(const struct exec_job *j, dgm_buf *out)
{
    const dgm_task *task = NULL;
    struct exec_count count = {.working_message = j->exec->working_message};
    if (!j->is_resumed || !j->run->ops->review)
        return j->run->input->task;
    j->run->ops->review(j->run, j->records, &task, count_event, &count);
    dgm_buf_printf(out, ",\"emitted\":%zu", count.n);
    return task;
}

static bool job_write_params(void *user, const dgm_json *info, dgm_buf *out, const char **ret_safe)
{
    struct exec_job *j = user;
    const dgm_json *agent = dgm_worker_find_agent(info, j->exec->id);
    dgm_str id = dgm_json_str_member(agent, "id");
    if (dgm_str_is(dgm_json_str_member(agent, "kind"), "graph")) {
        *ret_safe = "the agent's worker serves graphs: its type must be langgraph";
        return false;
    }
    dgm_worker_put_common(out, j->run, id.n ? id : j->exec->id, j->thread, j->is_resumed,
                          j->attempt);
    const dgm_task *task = job_review(j, out);
    dgm_exec_put_run(j->run, task, j->accepted,
                     j->has_journal ? dgm_buf_str(&j->journal) : (dgm_str){0}, out);
    return true;
}

/* ---- the start ------------------------------------------------------------------------------------------------------------------------ */

static void job_begin(struct exec_job *j)
{
    static const dgm_worker_run_handler handler = {.write_params = job_write_params,
                                                   .on_event = job_on_event,
                                                   .on_result = job_on_result,
                                                   .on_error = job_on_error,
                                                   .on_request = job_on_request,
                                                   .on_log = job_on_log,
                                                   .is_full = job_is_full};
    dgm_worker_run_handler h = handler;
    h.user = j;
    h.fence = dgm_worker_fence_of(j->run);
    j->worker = dgm_worker_run_start(j->exec->pool, j->run->loop, j->thread, &h);
}

/* How often this message was tried before; the journal follows the first line. */
static void job_read_note(struct exec_job *j, dgm_str note)
{
    const char *newline = note.n ? memchr(note.p, '\n', note.n) : NULL;
    yyjson_val *head = NULL;
    int64_t attempt = 1;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    if (!newline || dgm_json_read(a, (dgm_str){note.p, (size_t)(newline - note.p)},
                                  DGM_MAX_RECORD_BYTES, "record_bytes", &head, NULL))
        head = NULL;
    j->has_journal = yyjson_is_true(dgm_json_get(head, DGM_STR("journal")));
    if (j->has_journal)
        dgm_buf_add(&j->journal, newline + 1, (size_t)(note.p + note.n - newline - 1));
    const dgm_json *records = dgm_json_get(head, DGM_STR("records"));
    int64_t n_records = 0;
    if (records && dgm_json_int(records, &n_records) && n_records > 0)
        j->records = (uint64_t)n_records;
    if (!j->run->input->is_resumed)
        return;
    const dgm_json *number = dgm_json_get(head, DGM_STR("attempt"));
    bool is_same =
        dgm_str_eq(dgm_json_str_member(head, "message"), j->run->input->message->message_id);
    if (is_same && number && (!dgm_json_int(number, &attempt) || attempt < 0 || attempt > 1000))
        attempt = 1;
    j->attempt = (unsigned)(is_same ? attempt : 1) + 1;
}

static void job_on_recalled(void *arg, dgm_str note)
{
    struct exec_job *j = arg;
    job_read_note(j, note);
    if (j->attempt > j->exec->max_attempts) {
        dgm_str safe = dgm_arena_printf(
            j->run->arena, "the agent was started %u times for this message and did not finish",
            j->exec->max_attempts);
        job_fail(j, safe, DGM_STR("max_attempts"), (dgm_str){0});
        return;
    }
    if (j->run->input->is_resumed)
        job_remember(j, NULL, NULL);
    job_begin(j);
}

void dgm_exec_worker_start(struct exec *x, dgm_run *run)
{
    struct exec_job *j = dgm_xcalloc(1, sizeof *j);
    j->run = run;
    j->exec = x;
    j->attempt = 1;
    j->is_resumed = run->input->is_resumed;
    j->thread = dgm_worker_thread(run->arena, run->input);
    dgm_buf_init(&j->journal, DGM_MAX_JOURNAL_BYTES);
    dgm_buf_init(&j->parts, DGM_MAX_JOURNAL_BYTES);
    dgm_exec_events_init(&j->events, run, (uint64_t)(uintptr_t)j);
    run->agent_data = j;
    dgm_timer_init(run->loop, &j->timeout, job_on_timeout, j);
    dgm_timer_start(&j->timeout, (uint64_t)(x->timeout * 1000));
    if ((run->input->task || run->input->is_resumed) && run->ops->recall)
        run->ops->recall(run, DGM_RUN_TASK, job_on_recalled, j);
    else
        job_on_recalled(j, (dgm_str){0});
}

void dgm_exec_worker_cancel(dgm_run *run)
{
    struct exec_job *j = run->agent_data;
    if (!j)
        return;
    if (run->suspended) { /* the next server goes on with it; a stop that was asked for is not a failed attempt */
        j->attempt--;
        job_remember(j, NULL, NULL);
        job_end(j);
    } else if (!j->worker)
        job_finish(j, DGM_STATE_CANCELED);
    else
        dgm_worker_run_cancel(j->worker);
}

bool dgm_exec_worker_message(dgm_run *run, const dgm_message *message)
{
    struct exec_job *j = run->agent_data;
    dgm_buf b;
    if (!j || !j->worker || job_has_answer(j) || j->accepted.n >= MAX_ACCEPTED)
        return false;
    dgm_buf_init(&b, DGM_WORKER_LINE_BYTES);
    dgm_writer w = {.out = &b, .format = DGM_FORMAT_A2A_10};
    dgm_shape_write(&w, &dgm_form_message, message);
    bool is_accepted = !b.over && dgm_worker_run_input(j->worker, dgm_buf_str(&b));
    if (is_accepted) {
        if (!j->accepted.at)
            j->accepted.at = dgm_new_n(run->arena, dgm_str, MAX_ACCEPTED);
        j->accepted.at[j->accepted.n++] = dgm_arena_dup(run->arena, dgm_buf_str(&b));
    }
    dgm_buf_done(&b);
    return is_accepted;
}
