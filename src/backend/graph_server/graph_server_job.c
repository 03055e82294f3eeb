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
#include "wire/server_error.h"

#include <stdio.h>
#include <stdlib.h>

#define SCHEMA_MS 60000 /* how long the keys of a graph count as known */
#define NO_V2_MS 600000 /* how long a server counts as one without Protocol v2 */

static void job_step(struct gserver_job *j, enum gserver_step step);
static void job_after_call(struct gserver_job *j, const dgm_remote_end *end);
static void job_handle_status(struct gserver_job *j, dgm_str status);

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

static void job_finish(struct gserver_job *j, const char *error)
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
    job_finish(j, NULL);
}

/* detail: for the operator. */
static void job_fail_with(struct gserver_job *j, const char *what, dgm_str detail)
{
    dgm_run_report(j->run, &(dgm_run_fault){.what = dgm_str_from(what), .detail = detail});
    job_settle(j, DGM_STATE_FAILED, what);
}

static void job_fail(struct gserver_job *j, const char *what)
{
    job_fail_with(j, what, DGM_STR(""));
}

static void job_on_stop(void *arg)
{
    job_finish(arg, DGM_SHUTTING_DOWN);
}

/* ---- events of ours ------------------------------------------------------------------------------------------------------------ */

static void job_emit(void *arg, const dgm_event *event)
{
    struct gserver_job *j = arg;
    dgm_err err = {0};
    if (!j->emit_error && j->run->ops->emit(j->run, event, &err))
        j->emit_error =
            dgm_arena_printf(j->arena, "%s%s%s", err.msg, err.at[0] ? " at " : "", err.at).p;
}

static void job_note_line(void *arg, dgm_str line)
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

static void job_remember(struct gserver_job *j)
{
    j->note.turn = j->turn;
    j->note.is_v2 = j->is_v2;
    j->note.resume = j->plan.resume;
    if (j->run->ops->remember && !j->is_canceling)
        j->run->ops->remember(j->run, DGM_RUN_TASK, dgm_gserver_write_note(j->arena, &j->note),
                              job_on_stored, j);
}

static void job_cancel_remote(struct gserver_job *j);

/* The server has created our run. False: the job has gone on with something else. */
static bool job_learn_run(struct gserver_job *j, dgm_str id)
{
    if (!id.n || id.n > DGM_MAX_ID_BYTES || dgm_str_eq(id, j->note.run))
        return true;
    j->note.run = dgm_arena_dup(j->arena, id);
    j->frames.run_id = j->note.run;
    job_remember(j);
    if (!j->is_canceling)
        return true;
    job_cancel_remote(j);
    return false;
}

/* ---- canceling ------------------------------------------------------------------------------------------------------------------ */

static void job_settle_canceled(struct gserver_job *j)
{
    if (j->failure)
        job_fail(j, j->failure);
    else
        job_settle(j, DGM_STATE_CANCELED, NULL);
}

static void job_cancel_remote(struct gserver_job *j)
{
    job_drop_calls(j);
    dgm_timer_start(&j->limit, GSERVER_CANCEL_MS);
    job_step(j, GSERVER_CANCEL);
}

void dgm_gserver_cancel(void *agent, dgm_run *run)
{
    struct gserver_job *j = run->agent_data;
    (void)agent;
    if (!j)
        return;
    if (run->suspended) { /* the run goes on there, and the next process follows it */
        job_finish(j, NULL);
        return;
    }
    j->is_canceling = true;
    j->failure = NULL;
    if (j->step == GSERVER_CANCEL)
        return;
    if (j->note.run.n)
        job_cancel_remote(j);
    else if (j->step == GSERVER_SEND || j->step == GSERVER_FIND || run->input->is_resumed)
        dgm_timer_start(&j->limit, GSERVER_CANCEL_MS); /* until its run is known */
    else
        job_settle_canceled(j);
}

static void job_on_limit(void *arg)
{
    struct gserver_job *j = arg;
    if (j->is_canceling || j->step == GSERVER_CANCEL) {
        job_settle_canceled(j);
        return;
    }
    j->failure = dgm_arena_printf(j->arena, "the agent took longer than %g seconds",
                                  j->agent->set.remote.timeout)
                     .p;
    if (j->note.run.n)
        job_cancel_remote(j);
    else
        job_fail(j, j->failure);
}

/* ---- waiting -------------------------------------------------------------------------------------------------------------------- */

static void job_wait(struct gserver_job *j, enum gserver_step next)
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
    job_step(j, j->next);
}

/* The server was not reached: tries again for a while. */
static void job_lost(struct gserver_job *j, const char *why, enum gserver_step next)
{
    uint64_t now = uv_now(&j->run->loop->uv);
    if (!j->lost_since)
        j->lost_since = now ? now : 1;
    if ((double)(now - j->lost_since) >= j->agent->set.reconnect_timeout * 1000)
        job_fail(
            j,
            dgm_arena_printf(j->arena, "the connection to the agent's server was lost: %s", why).p);
    else
        job_wait(j, next);
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
    job_after_call(j, &end);
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
    if (!j->note.run.n && !job_learn_run(j, j->frames.metadata_run))
        return;
    if (j->is_over)
        job_end_stream(j);
}

static void job_on_head(void *user, const dgm_fetch_head *head)
{
    struct gserver_job *j = user;
    if (j->step == GSERVER_SEND && !j->is_v2 && head->status >= 200 && head->status < 300)
        (void)job_learn_run(j,
                            dgm_gserver_run_of_path(dgm_fetch_header_of(head, "content-location")));
}

static void job_on_end(void *user, const dgm_remote_end *end)
{
    struct gserver_job *j = user;
    j->call = NULL;
    if (job_streams(j) && end->error && j->n_frames)
        j->is_lossy = true;
    if (end->end == DGM_FETCH_STOPPED)
        job_finish(j, DGM_SHUTTING_DOWN);
    else
        job_after_call(j, end);
}

/* ---- requests --------------------------------------------------------------------------------------------------------------------- */

static void job_reconnect(struct gserver_job *j)
{
    if (j->n_frames || j->has_reconnected || j->run->input->is_resumed)
        j->has_reconnected = true;
    dgm_gserver_seen_reconnect(&j->frames.seen);
    j->frames.is_started = j->frames.gap_seq > 0;
}

static void job_step(struct gserver_job *j, enum gserver_step step)
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
        job_fail(j, error);
    else
        job_restart_quiet(j);
}

/* The body of an answer as JSON; NULL: it has none. Valid until the run ends. */
static const dgm_json *job_answer(struct gserver_job *j)
{
    yyjson_val *v = NULL;
    if (!j->answer.n || dgm_json_read(j->arena, dgm_arena_dup(j->arena, dgm_buf_str(&j->answer)),
                                      DGM_MAX_OBJECT_BYTES, "object_bytes", &v, NULL))
        return NULL;
    return v;
}

/* "status 404: there is nothing at this URL: Assistant 'x' not found" */
static const char *job_error(struct gserver_job *j, const dgm_remote_end *end)
{
    dgm_str words = end->status >= 300 ? dgm_server_error_text(j->arena, end->body) : (dgm_str){0};
    if (!words.n)
        return dgm_arena_dup(j->arena, dgm_str_from(end->error)).p;
    words = dgm_remote_clean_error(&j->agent->set.remote, j->arena, words);
    return dgm_arena_printf(j->arena, "%s: %.*s", end->error, DGM_P(words)).p;
}

static bool is_refusal(const dgm_remote_end *end)
{
    return end->status >= 400 && end->status < 500 && end->status != 408 && end->status != 425 &&
           end->status != 429;
}

/* ---- the message ------------------------------------------------------------------------------------------------------------------ */

static bool job_may_use_v2(const struct gserver_job *j)
{
    return j->agent->set.protocol == GSERVER_V2 &&
           dgm_loop_unix_ms() >= atomic_load(&j->agent->no_v2_until);
}

/* Is one of the questions that the message answers still open? thread: as the server has it. */
static bool job_is_pending(const struct gserver_job *j, const dgm_json *thread)
{
    yyjson_val *pending = dgm_json_get(thread, DGM_STR("interrupts")), *key, *list, *entry;
    size_t i, n, k, m;
    if (!yyjson_is_obj(pending))
        return true; /* the server does not say */
    yyjson_obj_foreach (pending, i, n, key, list) {
        yyjson_arr_foreach (list, k, m, entry) {
            dgm_str id = dgm_json_str_member(entry, "id");
            if (!id.n) /* older servers */
                id = dgm_json_str_member(entry, "interrupt_id");
            if (!id.n || dgm_json_get(j->plan.resume, id))
                return true;
        }
    }
    return false;
}

static void job_send_plan(struct gserver_job *j, const dgm_json *thread)
{
    bool is_interrupted = dgm_str_is(dgm_json_str_member(thread, "status"), "interrupted");
    switch (j->plan.kind) {
    case DGM_GRAPH_NOTHING: job_fail(j, dgm_arena_dup(j->arena, j->plan.why).p); return;
    case DGM_GRAPH_ASK_AGAIN:
        dgm_graph_out_ask(j->out, &j->graph_turn, j->plan.why);
        job_finish(j, j->emit_error);
        return;
    case DGM_GRAPH_RESUME:
        if (!job_is_pending(j, thread)) {
            job_fail(j, "the question of the agent is no longer open on its server");
            return;
        }
        break;
    case DGM_GRAPH_INPUT:
    case DGM_GRAPH_CONTINUE: break;
    }
    /* Protocol v2 takes the input of a thread that waits for an answer as that answer. */
    j->is_v2 = job_may_use_v2(j) && !(is_interrupted && j->plan.kind != DGM_GRAPH_RESUME);
    if (!j->run->input->is_resumed && !j->n_resent)
        job_emit(j, &(dgm_event){.kind = DGM_EVENT_STATUS,
                                 .status =
                                     &(dgm_status_update){.status = {.state = DGM_STATE_WORKING}}});
    job_remember(j);
    job_step(j, GSERVER_SEND);
}

static const dgm_json *job_keys(struct gserver_job *j)
{
    int keys = atomic_load(&j->agent->keys);
    if (!(keys & GSERVER_KNOWN))
        return NULL;
    dgm_str text = dgm_arena_printf(j->arena, "[%s%s%s\"\"]",
                                    keys & GSERVER_HAS_MESSAGES ? "\"messages\"," : "",
                                    keys & GSERVER_HAS_INBOX ? "\"a2a_inbox\"," : "",
                                    keys & GSERVER_HAS_OUTBOX ? "\"a2a_outbox\"," : "");
    return dgm_json_parse_trusted(j->arena, text);
}

/* The thread exists. */
static void job_plan(struct gserver_job *j, const dgm_json *thread)
{
    const dgm_run_input *in = j->run->input;
    int keys = atomic_load(&j->agent->keys);
    const dgm_json *tools = dgm_graph_tools(in->message, in->metadata);
    j->graph_turn = (dgm_graph_turn){.message = in->message,
                                     .task = in->task,
                                     .metadata = dgm_run_metadata(j->arena, in),
                                     .task_id = in->task_id,
                                     .context_id = in->context_id,
                                     .keys = job_keys(j),
                                     .is_v10 = j->agent->set.a2a_dialect == 1};
    j->plan = dgm_graph_plan_turn(j->arena, &j->graph_turn);
    if (j->note
            .resume) { /* of a run that goes on, the question is not the status of the task any more */
        j->plan.kind = DGM_GRAPH_RESUME;
        j->plan.resume = j->note.resume;
    }
    j->frames.message_id = j->plan.human_id;
    dgm_graph_options o = {.task_id = in->task_id,
                           .context_id = in->context_id,
                           .message = in->message,
                           .task = in->task,
                           .tools = tools,
                           .has_messages = !(keys & GSERVER_KNOWN) || (keys & GSERVER_HAS_MESSAGES),
                           .is_rerun = in->is_resumed};
    dgm_mint_seed(&o.mint, j->turn);
    j->out = dgm_graph_out_new(&o, (dgm_graph_sink){job_emit, job_note_line, j});
    if (!in->is_resumed) {
        job_send_plan(j, thread);
    } else if (j->note.run.n) {
        j->is_v2 = j->note.is_v2;
        j->frames.run_id = j->note.run;
        if (j->is_canceling)
            job_cancel_remote(j);
        else
            job_step(j, GSERVER_FOLLOW);
    } else {
        j->is_v2 = job_may_use_v2(j);
        job_step(j, GSERVER_FIND);
    }
}

/* ---- after a call ------------------------------------------------------------------------------------------------------------------- */

/* The first requests. False: the server is not there, or does not let us in. */
static bool job_is_reached(struct gserver_job *j, const dgm_remote_end *end)
{
    if (end->error && !end->status && j->run->input->is_resumed)
        job_lost(j, job_error(j, end), j->step); /* both may have been restarted */
    else if (end->error && (!end->status || end->status == 401 || end->status == 403))
        job_fail(j, job_error(j, end));
    else
        return true;
    return false;
}

static void job_after_assistant(struct gserver_job *j, const dgm_remote_end *end)
{
    if (!job_is_reached(j, end))
        return;
    yyjson_val *list = (yyjson_val *)(uintptr_t)job_answer(j);
    dgm_str id = dgm_json_str_member(yyjson_arr_get_first(list), "assistant_id");
    if (yyjson_is_arr(list) && !id.n) {
        job_fail(j, dgm_arena_printf(
                        j->arena,
                        "the agent's server has no graph \"%.*s\": check the setting assistant",
                        DGM_P(j->agent->set.assistant))
                        .p);
    } else if (dgm_gserver_is_uuid(id)) {
        j->assistant = dgm_arena_dup(j->arena, id);
        job_step(j, GSERVER_SCHEMA);
    } else {
        job_step(j, GSERVER_THREAD); /* the keys of its state remain unknown */
    }
}

static void job_after_schema(struct gserver_job *j, const dgm_remote_end *end)
{
    if (!job_is_reached(j, end))
        return;
    if (end->status == 404) {
        job_fail(j, job_error(j, end));
        return;
    }
    int keys = end->error ? 0 : dgm_gserver_read_schemas(job_answer(j));
    atomic_store(&j->agent->keys, keys);
    atomic_store(&j->agent->keys_until, dgm_loop_unix_ms() + SCHEMA_MS);
    job_step(j, GSERVER_THREAD);
}

static void job_after_thread(struct gserver_job *j, const dgm_remote_end *end)
{
    if (!end->error)
        job_plan(j, job_answer(j));
    else if (j->run->input->is_resumed && !is_refusal(end))
        job_lost(j, job_error(j, end), GSERVER_THREAD);
    else
        job_fail(j, job_error(j, end));
}

/* The request may have arrived: its run is searched, and the message is sent again if it is not found. */
static void job_doubt(struct gserver_job *j, const char *why)
{
    if (j->n_resent++ >= (unsigned)j->agent->set.remote.retries)
        job_fail(j, why);
    else
        job_wait(j, GSERVER_FIND);
}

static void job_use_runs(struct gserver_job *j)
{
    atomic_store(&j->agent->no_v2_until, dgm_loop_unix_ms() + NO_V2_MS);
    j->is_v2 = false;
    job_step(j, GSERVER_SEND);
}

static void job_after_command(struct gserver_job *j, const dgm_remote_end *end)
{
    const dgm_json *answer = job_answer(j);
    dgm_str type = dgm_json_str_member(answer, "type"),
            error = dgm_json_str_member(answer, "error");
    if (end->status == 404 || end->status == 405 || end->status == 501 ||
        dgm_str_is(error, "unsupported") || dgm_str_is(error, "not_supported") ||
        dgm_str_is(error, "unknown_command")) {
        job_use_runs(j);
    } else if (end->error && is_refusal(end)) {
        job_fail(j, job_error(j, end));
    } else if (end->error || !dgm_str_is(type, "success")) {
        dgm_str words = dgm_remote_clean_error(&j->agent->set.remote, j->arena,
                                               dgm_json_str_member(answer, "message"));
        if (end->error)
            job_doubt(j, job_error(j, end));
        else
            job_fail(j, dgm_arena_printf(j->arena,
                                         "the agent's server rejected the message: %.*s%s%.*s",
                                         DGM_P(error), words.n ? ": " : "", DGM_P(words))
                            .p);
    } else {
        yyjson_val *result = dgm_json_get(answer, DGM_STR("result"));
        if (!job_learn_run(j, dgm_json_str_member(result, "run_id")))
            return;
        job_step(j, j->note.run.n ? GSERVER_FOLLOW : GSERVER_FIND); /* input.respond names no run */
    }
}

static void job_after_send(struct gserver_job *j, const dgm_remote_end *end)
{
    if (j->note.run.n)
        job_step(j, GSERVER_CHECK);
    else if (!end->error)
        job_doubt(j, "the agent's server ended its answer before its first event");
    else if (is_refusal(end))
        job_fail(j, job_error(j, end));
    else
        job_doubt(j, job_error(j, end));
}

static void job_after_find(struct gserver_job *j, const dgm_remote_end *end)
{
    if (end->error && !is_refusal(end)) {
        job_lost(j, job_error(j, end), GSERVER_FIND);
        return;
    }
    dgm_str run = end->error ? (dgm_str){0} : dgm_gserver_find_run(job_answer(j), j->turn);
    if (!job_learn_run(j, run))
        return;
    if (run.n)
        job_step(j, GSERVER_FOLLOW);
    else if (j->is_canceling)
        job_settle_canceled(j);
    else if (j->n_resent++ > (unsigned)j->agent->set.remote.retries)
        job_fail(j, "the agent's server does not create a run for the message");
    else
        job_send_plan(j, NULL);
}

/* The run has ended: its result, or its failure. */
static void job_result(struct gserver_job *j)
{
    const dgm_json *result =
        dgm_gserver_frames_result(&j->frames, j->arena, j->result_status, j->state_next);
    if (!result) {
        job_fail(j, "the state of the graph is larger than the limit object_bytes");
        return;
    }
    j->sync = dgm_graph_out_result(j->out, j->arena, result);
    if (j->emit_error)
        job_fail(
            j,
            dgm_arena_printf(j->arena, "the agent's answer cannot be used: %s", j->emit_error).p);
    else if (j->sync && strcmp(j->result_status, "completed") == 0)
        job_step(j, GSERVER_SYNC);
    else {
        dgm_graph_out_finish(j->out);
        job_finish(j, j->emit_error);
    }
}

static void job_graph_failed(struct gserver_job *j)
{
    const struct gserver_frames *f = &j->frames;
    dgm_str type = dgm_remote_clean_error(&j->agent->set.remote, j->arena, f->error_type);
    dgm_str text = dgm_remote_clean_error(&j->agent->set.remote, j->arena, f->error_text);
    dgm_str detail = dgm_arena_printf(j->arena, "%.*s%s%.*s", DGM_P(type),
                                      type.n && text.n ? ": " : "", DGM_P(text));
    const char *what = "the graph failed on its server";
    if (dgm_str_is(type, "GraphRecursionError") ||
        dgm_gserver_find_text(text, DGM_STR("Recursion limit")))
        what = "the graph reached its recursion limit";
    else if (j->agent->set.expose_errors && detail.n)
        what = dgm_arena_printf(j->arena, "%s: %.*s", what, DGM_P(detail)).p;
    job_fail_with(j, what, detail);
}

/* The status of the run, as the server has it. */
static void job_handle_status(struct gserver_job *j, dgm_str status)
{
    const struct gserver_frames *f = &j->frames;
    if (dgm_str_is(status, "pending") || dgm_str_is(status, "running")) {
        job_wait(j, GSERVER_FOLLOW);
        return;
    }
    if (dgm_str_is(status, "timeout")) {
        job_fail(j, "the run took longer than its server allows");
        return;
    }
    if (dgm_str_is(status, "error")) {
        if (f->error_text.n || f->error_type.n)
            job_graph_failed(j);
        else {
            j->result_status = NULL;
            job_step(j, GSERVER_STATE);
        }
        return;
    }
    bool is_interrupted = dgm_str_is(status, "interrupted") || f->n_interrupts || f->is_interrupted;
    j->result_status = is_interrupted ? "interrupted" : "completed";
    /* v2 ends at the first of several questions; after a reconnection the state decides */
    if (f->is_complete && !j->has_reconnected && !j->is_lossy && !f->has_error &&
        (!is_interrupted || (f->n_interrupts && !j->is_v2)))
        job_result(j);
    else
        job_step(j, GSERVER_STATE);
}

static void job_after_check(struct gserver_job *j, const dgm_remote_end *end)
{
    if (end->error && end->status == 404)
        job_fail(j, "the agent's server no longer has the run of this message");
    else if (end->error && is_refusal(end))
        job_fail(j, job_error(j, end));
    else if (end->error)
        job_lost(j, job_error(j, end), GSERVER_CHECK);
    else
        job_handle_status(j, dgm_json_str_member(job_answer(j), "status"));
}

static void job_after_state(struct gserver_job *j, const dgm_remote_end *end)
{
    const dgm_json *state = end->error ? NULL : job_answer(j);
    if (end->error && !is_refusal(end)) {
        job_lost(j, job_error(j, end), GSERVER_STATE);
        return;
    }
    if (!state && !j->frames.values.n && j->result_status) {
        job_fail(j,
                 end->error ? job_error(j, end) : "the state of the agent's thread cannot be read");
        return;
    }
    if (state)
        dgm_gserver_frames_state(&j->frames, state, &j->state_next, j->arena);
    if (j->result_status &&
        (j->frames.n_interrupts || yyjson_arr_size((yyjson_val *)(uintptr_t)j->state_next)))
        j->result_status = "interrupted";
    if (j->result_status)
        job_result(j);
    else
        job_graph_failed(j);
}

static void job_after_sync(struct gserver_job *j, const dgm_remote_end *end)
{
    if (end->error)
        dgm_run_note(j->run, "the state of the graph did not get the outbound messages: %s",
                     job_error(j, end));
    dgm_graph_out_finish(j->out);
    job_finish(j, j->emit_error);
}

static void job_after_call(struct gserver_job *j, const dgm_remote_end *end)
{
    if (j->step == GSERVER_CANCEL || (j->is_canceling && j->step != GSERVER_SEND &&
                                      j->step != GSERVER_FIND && !j->run->input->is_resumed)) {
        job_settle_canceled(j);
        return;
    }
    if (j->bad) {
        job_fail(j, j->bad);
        return;
    }
    switch (j->step) {
    case GSERVER_ASSISTANT: job_after_assistant(j, end); break;
    case GSERVER_SCHEMA: job_after_schema(j, end); break;
    case GSERVER_THREAD: job_after_thread(j, end); break;
    case GSERVER_SEND:
        if (j->is_v2)
            job_after_command(j, end);
        else
            job_after_send(j, end);
        break;
    case GSERVER_FIND: job_after_find(j, end); break;
    case GSERVER_FOLLOW:
        if (j->frames.gap_seq > 0 && j->is_over)
            job_wait(j, GSERVER_FOLLOW);
        else
            job_step(j, GSERVER_CHECK);
        break;
    case GSERVER_CHECK: job_after_check(j, end); break;
    case GSERVER_STATE: job_after_state(j, end); break;
    case GSERVER_SYNC: job_after_sync(j, end); break;
    case GSERVER_CANCEL:
    case GSERVER_RECALL:
    case GSERVER_WAIT:
    case GSERVER_ENDED: break;
    }
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
    job_handle_status(j, status);
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
        job_step(j, GSERVER_FOLLOW);
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
        job_step(j, GSERVER_THREAD);
    } else if (dgm_gserver_is_uuid(j->agent->set.assistant)) {
        j->assistant = j->agent->set.assistant;
        job_step(j, GSERVER_SCHEMA);
    } else {
        job_step(j, GSERVER_ASSISTANT);
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
