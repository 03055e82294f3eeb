/*
 * lib/agent/agent_stream.c - one execute or resume: the log of a task, read by the loop thread, for the caller's thread.
 *
 *   loop thread:      core ─► reader of the log ─► queue of records (at most DGM_AGENT_QUEUE) ─┐
 *   caller's thread:  on_event ◄── struct and JSON ◄───────────────────────────────────────────┘
 *
 * A full queue makes the loop thread wait, not the agent: the log is in memory and in the store. The caller's thread posts a job
 * when there is room again.
 */
#include "lib/agent/agent_int.h"
#include "store/store.h"
#include "wire/formats.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

/* ---- life ---------------------------------------------------------------------------------------------------- */

static void stream_unref(dgm_agent_stream *s)
{
    if (atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    for (size_t i = 0; i < s->n; i++)
        dgm_record_unref(s->queue[(s->first + i) % DGM_AGENT_QUEUE]);
    pthread_cond_destroy(&s->ready);
    pthread_mutex_destroy(&s->lock);
    dgm_buf_done(&s->json);
    dgm_arena_free(s->event_arena);
    dgm_arena_free(s->arena);
    free(s);
}

static dgm_agent_stream *stream_new(dgm_agent_loop *loop, dgm_agent_request request)
{
    dgm_agent_stream *s = dgm_xcalloc(1, sizeof *s);
    pthread_condattr_t attr;
    s->loop = loop;
    s->request = request;
    s->arena = dgm_arena_new();
    s->refs = 1;
    dgm_buf_init(&s->json, SIZE_MAX); /* a record has a limit */
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->ready, &attr);
    pthread_condattr_destroy(&attr);
    return s;
}

/* Runs fn(s) on the loop thread; fn releases the reference. */
static void stream_post(dgm_agent_stream *s, dgm_loop_fn fn)
{
    atomic_fetch_add(&s->refs, 1);
    dgm_loop_post(dgm_loops_at(s->loop->engine.loops, 0), fn, s);
}

/* ---- the loop thread ----------------------------------------------------------------------------------------- */

/* Ends it, once; it may be freed by this. */
static void stream_end(dgm_agent_stream *s, dgm_code code, const dgm_err *err)
{
    if (s->is_ended) /* only this thread sets it */
        return;
    dgm_log_reader_close(dgm_take(s->reader));
    if (s->link) {
        *s->link = s->next;
        if (s->next)
            s->next->link = s->link;
        s->link = NULL;
    }
    pthread_mutex_lock(&s->lock);
    s->is_ended = true;
    s->code = code;
    if (code && err)
        s->err = *err;
    pthread_cond_broadcast(&s->ready);
    pthread_mutex_unlock(&s->lock);
    stream_unref(s);
}

static void stream_fail(dgm_agent_stream *s, dgm_code code, const char *why)
{
    dgm_err err = {0};
    dgm_fail(&err, code, NULL, "%s", why);
    stream_end(s, code, &err);
}

/* Takes over a reference. The queue has room. */
static void stream_add(dgm_agent_stream *s, dgm_record *r)
{
    pthread_mutex_lock(&s->lock);
    s->queue[(s->first + s->n++) % DGM_AGENT_QUEUE] = r;
    pthread_cond_signal(&s->ready);
    pthread_mutex_unlock(&s->lock);
}

static bool stream_has_room(dgm_agent_stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->is_full = s->n == DGM_AGENT_QUEUE;
    bool has_room = !s->is_full;
    pthread_mutex_unlock(&s->lock);
    return has_room;
}

static bool ends_turn(const dgm_record *r)
{
    return r->head.kind == DGM_EVENT_MESSAGE ||
           (r->head.kind == DGM_EVENT_STATUS &&
            (dgm_state_is_terminal(r->head.state) || dgm_state_is_interrupted(r->head.state)));
}

/* The reader has more, or the queue has room again. */
static void stream_read(void *arg)
{
    dgm_agent_stream *s = arg;
    dgm_record *r;
    while (stream_has_room(s)) {
        if (!(r = dgm_log_reader_next(s->reader))) {
            if (dgm_log_reader_is_over(s->reader))
                stream_fail(s, DGM_UNAVAILABLE, "the agent loop was closed before the task ended");
            return;
        }
        if (s->request == DGM_AGENT_RESUME && r->head.kind == DGM_EVENT_TASK)
            continue;
        bool is_last = ends_turn(r);
        stream_add(s, dgm_record_ref(r));
        if (is_last) {
            stream_end(s, DGM_OK, NULL);
            return;
        }
    }
}

static void stream_open(dgm_agent_stream *s, dgm_log *log, uint64_t after)
{
    s->reader = dgm_log_reader_open(log, after, stream_read, s);
    stream_read(s);
}

/* An answer of the core. False: the stream has ended. */
static bool stream_answered(dgm_agent_stream *s, dgm_code code, const dgm_err *err)
{
    s->is_waiting = false;
    if (s->is_discarded || s->loop->is_closing)
        stream_fail(s, DGM_UNAVAILABLE, "the agent loop was closed");
    else if (code)
        stream_end(s, code, err);
    else
        return true;
    return false;
}

static void stream_on_sent(dgm_code code, const dgm_sent *sent, const dgm_err *err, void *arg)
{
    dgm_agent_stream *s = arg;
    if (!stream_answered(s, code, err))
        return;
    if (sent->snapshot)
        stream_add(s, dgm_record_ref(sent->snapshot));
    stream_open(s, sent->log, sent->after);
}

/* ---- resume -------------------------------------------------------------------------------------------------- */

static void stream_on_log(dgm_code code, dgm_log *log, uint64_t after, dgm_record *snapshot,
                          const dgm_err *err, void *arg)
{
    (void)snapshot; /* resume has no second `task` */
    if (stream_answered(arg, code, err))
        stream_open(arg, log, after);
}

/* The status of a task that does not work, as the event that reported it. */
static dgm_code status_of_task(const dgm_record *task, dgm_record **ret, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_event event;
    dgm_buf scratch;
    dgm_code rc = dgm_record_event(task, a, &event, err);
    if (rc)
        return rc;
    dgm_status_update status = {.task_id = event.task->id,
                                .context_id = event.task->context_id,
                                .status = event.task->status,
                                .metadata = event.task->metadata};
    event = (dgm_event){.kind = DGM_EVENT_STATUS, .status = &status};
    dgm_buf_init(&scratch, SIZE_MAX); /* a record has a limit */
    rc = dgm_record_new(&event, task->head, &scratch, ret, err);
    dgm_buf_done(&scratch);
    return rc;
}

static void stream_on_task(dgm_code code, dgm_record *task, const dgm_err *err, void *arg)
{
    dgm_agent_stream *s = arg;
    dgm_record *status = NULL;
    dgm_err fault = {0};
    if (!stream_answered(s, code, err))
        return;
    if (!dgm_state_is_terminal(task->head.state) && !dgm_state_is_interrupted(task->head.state)) {
        s->is_waiting = true;
        dgm_core_read_log(s->loop->engine.core, (dgm_owner){0}, s->task_id, task->head.seq,
                          stream_on_log, s);
        return;
    }
    if (!(code = status_of_task(task, &status, &fault)))
        stream_add(s, status);
    stream_end(s, code, &fault);
}

static void stream_start_resume(dgm_agent_stream *s)
{
    dgm_agent_loop *loop = s->loop;
    size_t *last = dgm_map_get(&loop->resumable, s->task_id);
    if (last && *last) {
        uint64_t cursor = *last - 1;
        *last = 0;
        dgm_core_read_log(loop->engine.core, (dgm_owner){0}, s->task_id, cursor, stream_on_log, s);
    } else {
        dgm_core_get(loop->engine.core, (dgm_owner){0}, loop->agent, s->task_id, stream_on_task, s);
    }
}

/* ---- start and end -------------------------------------------------------------------------------------------- */

static void stream_start(void *arg)
{
    dgm_agent_stream *s = arg;
    dgm_agent_loop *loop = s->loop;
    if (loop->is_closing) {
        stream_fail(s, DGM_UNAVAILABLE, "the agent loop was closed");
        return;
    }
    s->next = loop->streams;
    s->link = &loop->streams;
    if (s->next)
        s->next->link = &s->next;
    loop->streams = s;
    s->is_waiting = true;
    if (s->request == DGM_AGENT_RESUME) {
        stream_start_resume(s);
        return;
    }
    dgm_send send = {.agent = loop->agent,
                     .message = s->message,
                     .protocol = DGM_STR("a2a"),
                     .dedupes = false};
    s->sent = dgm_core_send(loop->engine.core, &send, stream_on_sent, s);
}

static void stream_discard(void *arg)
{
    dgm_agent_stream *s = arg;
    s->is_discarded = true;
    if (!s->is_waiting)
        stream_end(s, DGM_OK, NULL);
    else if (s->request == DGM_AGENT_EXECUTE)
        dgm_core_caller_left(s->loop->engine.core, s->sent);
    stream_unref(s);
}

static void stream_read_on(void *arg)
{
    dgm_agent_stream *s = arg;
    if (s->reader)
        stream_read(s);
    stream_unref(s);
}

void dgm_agent_end_streams(dgm_agent_loop *loop)
{
    for (dgm_agent_stream *s = loop->streams, *next; s; s = next) {
        next = s->next;
        if (!s->is_waiting) /* the others end when the core answers */
            stream_fail(s, DGM_UNAVAILABLE, "the agent loop was closed");
    }
}

/* ---- the caller's thread --------------------------------------------------------------------------------------- */

static dgm_code missing_argument(dgm_err *err)
{
    return dgm_fail(err, DGM_BAD_PARAMS, NULL, "missing argument");
}

dgm_code dgm_agent_stream_execute(dgm_agent_loop *loop, dgm_str prompt,
                                  const dgm_agent_execute_options *options,
                                  dgm_agent_stream **ret_stream, dgm_err *err)
{
    dgm_agent_execute_options o = {.size = sizeof o};
    dgm_code rc = DGM_OK;
    if (!loop || !ret_stream)
        return missing_argument(err);
    if (options && (rc = dgm_options_copy(&o, sizeof o, options, err)))
        return rc;
    dgm_agent_stream *s = stream_new(loop, DGM_AGENT_EXECUTE);
    if ((rc = dgm_agent_make_message(s->arena, prompt, &o, &s->message, err))) {
        stream_unref(s);
        return rc;
    }
    stream_post(s, stream_start); /* that reference is the loop's */
    *ret_stream = s;
    return DGM_OK;
}

dgm_code dgm_agent_stream_resume(dgm_agent_loop *loop, dgm_str task_id,
                                 dgm_agent_stream **ret_stream, dgm_err *err)
{
    dgm_code rc;
    if (!loop || !ret_stream)
        return missing_argument(err);
    if ((rc = dgm_agent_check_id(task_id, "task_id", err)))
        return rc;
    dgm_agent_stream *s = stream_new(loop, DGM_AGENT_RESUME);
    s->task_id = dgm_arena_dup(s->arena, task_id);
    stream_post(s, stream_start);
    *ret_stream = s;
    return DGM_OK;
}

static dgm_code stream_decode(dgm_agent_stream *s, const dgm_record *r, dgm_err *err)
{
    dgm_code rc;
    dgm_arena_free(s->event_arena);
    s->event_arena = dgm_arena_new();
    if ((rc = dgm_record_event(r, s->event_arena, &s->event, err)))
        return rc;
    s->given = (dgm_agent_event){.event = &s->event,
                                 .is_internal = r->head.kind == DGM_EVENT_INTERNAL,
                                 .is_last = ends_turn(r)};
    dgm_buf_clear(&s->json);
    if (s->given.is_internal) {
        dgm_buf_add_str(&s->json, dgm_record_bytes(r));
    } else {
        const dgm_codec *codec = dgm_codec_by_id(DGM_FORMAT_A2A_03, NULL);
        dgm_frame frame = {.object = {DGM_OBJECT_STREAM_RESPONSE, &s->event}};
        dgm_writer w = {.out = &s->json, .format = DGM_FORMAT_A2A_03};
        if ((rc = codec->encode(&w, &frame, err)))
            return rc;
    }
    size_t n = s->json.n;
    dgm_buf_add_char(&s->json, '\0');
    s->given.json = (dgm_str){s->json.p, n};
    return DGM_OK;
}

/* The time on the clock of `ready`. */
static struct timespec time_in(int64_t ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)(ms / 1000);
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

/* Takes the first record out of the queue; NULL: there is none. */
static dgm_record *stream_take(dgm_agent_stream *s, int64_t timeout_ms)
{
    struct timespec until = time_in(timeout_ms < 0 ? 0 : timeout_ms);
    dgm_record *r = NULL;
    int rc = 0;
    pthread_mutex_lock(&s->lock);
    while (!s->n && !s->is_ended && rc != ETIMEDOUT)
        rc = timeout_ms < 0 ? pthread_cond_wait(&s->ready, &s->lock)
                            : pthread_cond_timedwait(&s->ready, &s->lock, &until);
    if (s->n) {
        r = s->queue[s->first];
        s->first = (s->first + 1) % DGM_AGENT_QUEUE;
        s->n--;
    }
    if (s->is_full && !s->is_ended && s->n <= DGM_AGENT_QUEUE / 2) {
        s->is_full = false;
        stream_post(s, stream_read_on);
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

dgm_agent_next dgm_agent_stream_next(dgm_agent_stream *s, int64_t timeout_ms,
                                     const dgm_agent_event **ret_event, dgm_err *err)
{
    if (!s || !ret_event) {
        missing_argument(err);
        return DGM_AGENT_FAILED;
    }
    dgm_record *r = stream_take(s, timeout_ms);
    if (r) {
        dgm_code rc = stream_decode(s, r, err);
        dgm_record_unref(r);
        *ret_event = rc ? NULL : &s->given;
        return rc ? DGM_AGENT_FAILED : DGM_AGENT_EVENT;
    }
    pthread_mutex_lock(&s->lock);
    bool is_over = s->is_ended && !s->n;
    dgm_code code = s->code;
    pthread_mutex_unlock(&s->lock);
    if (is_over && code && err)
        *err = s->err; /* not changed after is_ended */
    return !is_over ? DGM_AGENT_TIMEOUT : code ? DGM_AGENT_FAILED : DGM_AGENT_END;
}

void dgm_agent_stream_free(dgm_agent_stream *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    if (!s->is_ended)
        stream_post(s, stream_discard);
    pthread_mutex_unlock(&s->lock);
    stream_unref(s);
}

/* ---- with a callback ------------------------------------------------------------------------------------------- */

static dgm_code stream_run(dgm_agent_stream *s, dgm_agent_on_event on_event, void *arg,
                           dgm_err *err)
{
    const dgm_agent_event *event;
    dgm_err fault = {0};
    dgm_agent_next next;
    while ((next = dgm_agent_stream_next(s, -1, &event, &fault)) == DGM_AGENT_EVENT) {
        if (on_event && !on_event(arg, event))
            break;
    }
    dgm_agent_stream_free(s);
    if (next != DGM_AGENT_FAILED)
        return DGM_OK;
    if (err)
        *err = fault;
    return fault.code;
}

dgm_code dgm_agent_loop_execute(dgm_agent_loop *loop, dgm_str prompt,
                                const dgm_agent_execute_options *options,
                                dgm_agent_on_event on_event, void *arg, dgm_err *err)
{
    dgm_agent_stream *s = NULL;
    dgm_code rc = dgm_agent_stream_execute(loop, prompt, options, &s, err);
    return rc ? rc : stream_run(s, on_event, arg, err);
}

dgm_code dgm_agent_loop_resume(dgm_agent_loop *loop, dgm_str task_id, dgm_agent_on_event on_event,
                               void *arg, dgm_err *err)
{
    dgm_agent_stream *s = NULL;
    dgm_code rc = dgm_agent_stream_resume(loop, task_id, &s, err);
    return rc ? rc : stream_run(s, on_event, arg, err);
}
