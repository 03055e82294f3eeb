/*
 * backend/graph_server/graph_server_job.c - one run on a LangGraph server: which request follows which.
 *
 *   recall ─► assistant, schemas (cached) ─► thread ─► send ──► events ... ─► check the run ─► (state) ─► (sync) ─► the end
 *                                   │ restart        │ lost            │ it still runs
 *                                   └─► find ◄───────┘  follow ◄───────┘
 *
 * The metadata of a run of the server name the message that it serves (`turn`), so a message whose request may have arrived is never sent
 * a second time: its run is searched first. The id of the run is stored before any client sees an event of it; a run that goes on after a
 * restart of Dragoman is followed from its first event, and the mapping recognises what was emitted before.
 */
#include "backend/graph_server/graph_server_int.h"

#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the end ----------------------------------------------------------------------------------------------------------------- */

static void job_on_timer_closed(void *arg)
{
    struct gserver_job *j = arg;
    if (--j->n_closing)
        return;
    dgm_graph_out_free(j->out);
    dgm_gserver_frames_done(&j->frames);
    dgm_buf_done(&j->answer);
    dgm_arena_free(j->arena); /* j lives in it */
}

static void job_drop_calls(struct gserver_job *j)
{
    if (j->call)
        dgm_remote_cancel(j->call);
    if (j->probe)
        dgm_remote_cancel(j->probe);
    j->call = j->probe = NULL;
    dgm_timer_stop(&j->timer);
    dgm_timer_stop(&j->quiet);
}

static void job_remember_context(struct gserver_job *j)
{
    dgm_str text = dgm_arena_printf(j->arena, "{\"thread\":%lld,\"since\":%lld}",
                                    (long long)j->thread_number, (long long)j->since);
    if (j->run->ops->remember)
        j->run->ops->remember(j->run, DGM_RUN_CONTEXT, text, NULL, NULL);
}

void dgm_gserver_job_finish(struct gserver_job *j, const char *error)
{
    dgm_run *run = j->run;
    job_drop_calls(j);
    if (j->is_v2 && j->frames.last_seq > j->since && !run->canceled) {
        j->since = j->frames.last_seq; /* the next turn need not read the events of this one */
        job_remember_context(j);
    }
    j->step = GSERVER_ENDED;
    dgm_loop_off_stop(run->loop, &j->stop);
    j->n_closing = 3;
    dgm_timer_close(&j->timer, job_on_timer_closed, j);
    dgm_timer_close(&j->limit, job_on_timer_closed, j);
    dgm_timer_close(&j->quiet, job_on_timer_closed, j);
    run->agent_data = NULL;
    run->ops->end(run, error);
}

/* A state of ours that ends the task. text: absent unless it is failed. */
static void job_settle(struct gserver_job *j, dgm_task_state state, const char *text)
{
    dgm_err err = {0};
    dgm_str sentence = dgm_str_from(text);
    if (j->out)
        dgm_graph_out_fail(j->out, state, sentence);
    else if (state == DGM_STATE_FAILED)
        dgm_run_fail(j->run, sentence, &err);
    else
        dgm_run_status(j->run, state, (dgm_str){0}, &err);
    dgm_gserver_job_finish(j, NULL);
}

/* detail: for the operator. */
void dgm_gserver_job_fail_with(struct gserver_job *j, const char *what, dgm_str detail)
{
    dgm_run_report(j->run, &(dgm_run_fault){.what = dgm_str_from(what), .detail = detail});
    job_settle(j, DGM_STATE_FAILED, what);
}

void dgm_gserver_job_fail(struct gserver_job *j, const char *what)
{
    dgm_gserver_job_fail_with(j, what, DGM_STR(""));
}

static void job_on_stop(void *arg)
{
    dgm_gserver_job_finish(arg, DGM_SHUTTING_DOWN);
}

/* ---- events of ours ------------------------------------------------------------------------------------------------------------ */

void dgm_gserver_job_emit(void *arg, const dgm_event *event)
{
    struct gserver_job *j = arg;
    dgm_err err = {0};
    if (!j->emit_error && j->run->ops->emit(j->run, event, &err))
        j->emit_error =
            dgm_arena_printf(j->arena, "%s%s%s", err.msg, err.at[0] ? " at " : "", err.at).p;
}

void dgm_gserver_job_note_line(void *arg, dgm_str line)
{
    dgm_run_note(((struct gserver_job *)arg)->run, "%.*s", DGM_P(line));
}

static dgm_code job_on_graph_event(void *arg, dgm_str type, const dgm_json *ns,
                                   const dgm_json *data, dgm_err *err)
{
    struct gserver_job *j = arg;
    dgm_graph_out_event(j->out, type, ns, data);
    return j->emit_error ? dgm_fail(err, DGM_INVALID_AGENT_RESPONSE, NULL, "%s", j->emit_error)
                         : DGM_OK;
}

static void job_on_stored(void *arg, dgm_code code)
{
    struct gserver_job *j = arg;
    if (code)
        dgm_run_note(j->run, "the id of the run on the server could not be stored");
}

void dgm_gserver_job_remember(struct gserver_job *j)
{
    j->note.turn = j->turn;
    j->note.is_v2 = j->is_v2;
    j->note.resume = j->plan.resume;
    if (j->run->ops->remember && !j->is_canceling)
        j->run->ops->remember(j->run, DGM_RUN_TASK, dgm_gserver_write_note(j->arena, &j->note),
                              job_on_stored, j);
}

/* The server has created our run. False: the job has gone on with something else. */
bool dgm_gserver_job_learn_run(struct gserver_job *j, dgm_str id)
{
    if (!id.n || id.n > DGM_MAX_ID_BYTES || dgm_str_eq(id, j->note.run))
        return true;
    j->note.run = dgm_arena_dup(j->arena, id);
    j->frames.run_id = j->note.run;
    dgm_gserver_job_remember(j);
    if (!j->is_canceling)
        return true;
    dgm_gserver_job_cancel_remote(j);
    return false;
}

/* ---- canceling ------------------------------------------------------------------------------------------------------------------ */

void dgm_gserver_job_settle_canceled(struct gserver_job *j)
{
    if (j->failure)
        dgm_gserver_job_fail(j, j->failure);
    else
        job_settle(j, DGM_STATE_CANCELED, NULL);
}

void dgm_gserver_job_cancel_remote(struct gserver_job *j)
{
    job_drop_calls(j);
    dgm_timer_start(&j->limit, GSERVER_CANCEL_MS);
    dgm_gserver_job_step(j, GSERVER_CANCEL);
}

void dgm_gserver_cancel(void *agent, dgm_run *run)
{
    struct gserver_job *j = run->agent_data;
    (void)agent;
    if (!j)
        return;
    if (run->suspended) { /* the run goes on there, and the next process follows it */
        dgm_gserver_job_finish(j, NULL);
        return;
    }
    j->is_canceling = true;
    j->failure = NULL;
    if (j->step == GSERVER_CANCEL)
        return;
    if (j->note.run.n)
        dgm_gserver_job_cancel_remote(j);
    else if (j->step == GSERVER_SEND || j->step == GSERVER_FIND || run->input->is_resumed)
        dgm_timer_start(&j->limit, GSERVER_CANCEL_MS); /* until its run is known */
    else
        dgm_gserver_job_settle_canceled(j);
}

static void job_on_limit(void *arg)
{
    struct gserver_job *j = arg;
    if (j->is_canceling || j->step == GSERVER_CANCEL) {
        dgm_gserver_job_settle_canceled(j);
        return;
    }
    j->failure = dgm_arena_printf(j->arena, "the agent took longer than %g seconds",
                                  j->agent->set.remote.timeout)
                     .p;
    if (j->note.run.n)
        dgm_gserver_job_cancel_remote(j);
    else
        dgm_gserver_job_fail(j, j->failure);
}

/* ---- waiting -------------------------------------------------------------------------------------------------------------------- */

void dgm_gserver_job_wait(struct gserver_job *j, enum gserver_step next)
{
    j->step = GSERVER_WAIT;
    j->next = next;
    dgm_timer_start(&j->timer, j->wait_ms);
    j->wait_ms =
        j->wait_ms * 8 / 5 < GSERVER_WAIT_MAX_MS ? j->wait_ms * 8 / 5 : GSERVER_WAIT_MAX_MS;
}

static void job_on_timer(void *arg)
{
    struct gserver_job *j = arg;
    dgm_gserver_job_step(j, j->next);
}

/* The server was not reached: tries again for a while. */
void dgm_gserver_job_lost(struct gserver_job *j, const char *why, enum gserver_step next)
{
    uint64_t now = uv_now(&j->run->loop->uv);
    if (!j->lost_since)
        j->lost_since = now ? now : 1;
    if ((double)(now - j->lost_since) >= j->agent->set.reconnect_timeout * 1000)
        dgm_gserver_job_fail(
            j,
            dgm_arena_printf(j->arena, "the connection to the agent's server was lost: %s", why).p);
    else
        dgm_gserver_job_wait(j, next);
}

/* ---- frames ---------------------------------------------------------------------------------------------------------------------- */

static void job_restart_quiet(struct gserver_job *j)
{
    if (j->is_v2 && j->step == GSERVER_FOLLOW)
        dgm_timer_start(&j->quiet, j->quiet_ms);
}

static void job_on_frame(struct gserver_job *j, const dgm_frames_item *item)
{
    enum gserver_frame_end end = GSERVER_GOES_ON;
    dgm_err err = {0};
    bool is_v2 = j->is_v2;
    dgm_code rc = is_v2 ? dgm_gserver_frames_add_v2(&j->frames, item, &end, &err)
                        : dgm_gserver_frames_add(&j->frames, item, &end, &err);
    j->n_frames++;
    j->lost_since = 0;
    j->wait_ms = GSERVER_WAIT_MIN_MS;
    j->quiet_ms = GSERVER_QUIET_MIN_MS;
    job_restart_quiet(j);
    if (rc) {
        j->bad = dgm_arena_printf(j->arena, "the answer of the agent's server cannot be %s: %s",
                                  j->emit_error ? "used" : "read", err.msg)
                     .p;
        j->is_over = true;
    }
    if (end == GSERVER_GAP) {
        j->is_lossy = true;
        j->frames.is_started = true;
    }
    if (end == GSERVER_OVER || end == GSERVER_OTHER_RUN || end == GSERVER_GAP)
        j->is_over = true;
}

/* From inside a callback of the call: it must not be dropped before the callback has returned for the last time. */
static void job_end_stream(struct gserver_job *j)
{
    dgm_remote_end end = {.status = 200, .is_stream = true};
    job_drop_calls(j);
    dgm_gserver_job_after_call(j, &end);
}

static bool job_streams(const struct gserver_job *j)
{
    return j->step == GSERVER_FOLLOW || (j->step == GSERVER_SEND && !j->is_v2);
}

static void job_on_item(void *user, const dgm_frames_item *item)
{
    struct gserver_job *j = user;
    if (j->step == GSERVER_ENDED || item->done)
        return;
    if (!job_streams(j) || item->alone) {
        dgm_buf_clear(&j->answer);
        dgm_buf_add_str(&j->answer, item->text);
        return;
    }
    if (j->is_over)
        return;
    job_on_frame(j, item);
    if (!j->note.run.n && !dgm_gserver_job_learn_run(j, j->frames.metadata_run))
        return;
    if (j->is_over)
        job_end_stream(j);
}

static void job_on_head(void *user, const dgm_fetch_head *head)
{
    struct gserver_job *j = user;
    if (j->step == GSERVER_SEND && !j->is_v2 && head->status >= 200 && head->status < 300)
        (void)dgm_gserver_job_learn_run(
            j, dgm_gserver_run_of_path(dgm_fetch_header_of(head, "content-location")));
}

static void job_on_end(void *user, const dgm_remote_end *end)
{
    struct gserver_job *j = user;
    j->call = NULL;
    if (job_streams(j) && end->error && j->n_frames)
        j->is_lossy = true;
    if (end->end == DGM_FETCH_STOPPED)
        dgm_gserver_job_finish(j, DGM_SHUTTING_DOWN);
    else
        dgm_gserver_job_after_call(j, end);
}

/* ---- requests --------------------------------------------------------------------------------------------------------------------- */

static void job_reconnect(struct gserver_job *j)
{
    if (j->n_frames || j->has_reconnected || j->run->input->is_resumed)
        j->has_reconnected = true;
    dgm_gserver_seen_reconnect(&j->frames.seen);
    j->frames.is_started = j->frames.gap_seq > 0;
}

void dgm_gserver_job_step(struct gserver_job *j, enum gserver_step step)
{
    j->step = step;
    j->is_over = false;
    j->bad = NULL;
    dgm_buf_clear(&j->answer);
    if (step == GSERVER_FOLLOW)
        job_reconnect(j);
    j->n_frames = 0;
    const char *error = dgm_gserver_request(
        j, step, (dgm_remote_handler){job_on_item, job_on_end, j, job_on_head, true}, &j->call);
    if (error)
        dgm_gserver_job_fail(j, error);
    else
        job_restart_quiet(j);
}

/* ---- v2: no event for a while: is the run over? ----------------------------------------------------------------------------------- */

static void probe_on_item(void *user, const dgm_frames_item *item)
{
    struct gserver_job *j = user;
    yyjson_val *v;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    if (!dgm_json_read(a, item->text, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, NULL))
        j->probe_status = dgm_arena_dup(j->arena, dgm_json_str_member(v, "status"));
}

static void probe_on_end(void *user, const dgm_remote_end *end)
{
    struct gserver_job *j = user;
    dgm_str status = end->error ? (dgm_str){0} : j->probe_status;
    j->probe = NULL;
    if (!status.n || dgm_str_is(status, "pending") || dgm_str_is(status, "running")) {
        job_restart_quiet(j);
        return;
    }
    j->is_lossy = true; /* its last event did not arrive */
    job_drop_calls(j);
    dgm_gserver_job_handle_status(j, status);
}

static void job_on_quiet(void *arg)
{
    struct gserver_job *j = arg;
    if (j->step != GSERVER_FOLLOW || j->probe)
        return;
    j->quiet_ms = j->quiet_ms * 2 < GSERVER_QUIET_MAX_MS ? j->quiet_ms * 2 : GSERVER_QUIET_MAX_MS;
    if (!j->frames.is_started &&
        j->since > 0) { /* the server counts from 1 again: it was restarted */
        j->since = 0;
        job_drop_calls(j);
        dgm_gserver_job_step(j, GSERVER_FOLLOW);
        return;
    }
    j->probe_status = (dgm_str){0};
    (void)dgm_gserver_request(
        j, GSERVER_CHECK,
        (dgm_remote_handler){.on_item = probe_on_item, .on_end = probe_on_end, .user = j},
        &j->probe);
}

/* ---- the start ---------------------------------------------------------------------------------------------------------------------- */

static void gserver_job_begin(struct gserver_job *j)
{
    j->thread = dgm_gserver_thread_id(j->arena, j->run->input, j->thread_number);
    if (atomic_load(&j->agent->keys_until) > dgm_loop_unix_ms()) {
        dgm_gserver_job_step(j, GSERVER_THREAD);
    } else if (dgm_gserver_is_uuid(j->agent->set.assistant)) {
        j->assistant = j->agent->set.assistant;
        dgm_gserver_job_step(j, GSERVER_SCHEMA);
    } else {
        dgm_gserver_job_step(j, GSERVER_ASSISTANT);
    }
}

/* The note of the context: {"thread": number, "since": number}. A conversation that the thread cannot have starts the next one. */
static void job_on_context(void *arg, dgm_str text)
{
    struct gserver_job *j = arg;
    yyjson_val *note = NULL;
    if (text.n && !dgm_json_read(j->arena, dgm_arena_dup(j->arena, text), DGM_MAX_NOTE_BYTES,
                                 "note_bytes", &note, NULL)) {
        (void)dgm_json_int(dgm_json_get(note, DGM_STR("thread")), &j->thread_number);
        (void)dgm_json_int(dgm_json_get(note, DGM_STR("since")), &j->since);
    }
    if (dgm_graph_has_transcript(j->run->input->message) && !j->note.turn.n) {
        j->thread_number++;
        j->since = 0;
        job_remember_context(j);
    }
    gserver_job_begin(j);
}

static void job_recall_context(struct gserver_job *j)
{
    if (j->run->ops->recall)
        j->run->ops->recall(j->run, DGM_RUN_CONTEXT, job_on_context, j);
    else
        job_on_context(j, (dgm_str){0});
}

static void job_on_note(void *arg, dgm_str text)
{
    struct gserver_job *j = arg;
    struct gserver_note note = dgm_gserver_read_note(j->arena, text);
    if (dgm_str_eq(note.turn, j->turn))
        j->note = note;
    job_recall_context(j);
}

void dgm_gserver_start(void *agent, dgm_run *run)
{
    dgm_arena *a = dgm_arena_new();
    struct gserver_job *j = dgm_new(a, struct gserver_job);
    j->arena = a;
    j->run = run;
    j->agent = agent;
    j->wait_ms = GSERVER_WAIT_MIN_MS;
    j->quiet_ms = GSERVER_QUIET_MIN_MS;
    j->turn = dgm_gserver_turn_id(a, run->input);
    dgm_buf_init(&j->answer, DGM_MAX_OBJECT_BYTES);
    dgm_gserver_frames_init(&j->frames, job_on_graph_event, j);
    run->agent_data = j;
    dgm_timer_init(run->loop, &j->timer, job_on_timer, j);
    dgm_timer_init(run->loop, &j->limit, job_on_limit, j);
    dgm_timer_init(run->loop, &j->quiet, job_on_quiet, j);
    j->stop = (dgm_loop_stop){.fn = job_on_stop, .arg = j};
    dgm_loop_on_stop(run->loop, &j->stop);
    dgm_timer_start(&j->limit, (uint64_t)(j->agent->set.remote.timeout * 1000));
    if (run->input->is_resumed && run->ops->recall)
        run->ops->recall(run, DGM_RUN_TASK, job_on_note, j);
    else
        job_recall_context(j);
}
