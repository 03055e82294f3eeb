/* backend/graph_server/graph_server_after.c - one run on a LangGraph server: what follows the answer to a request. */
#include "backend/graph_server/graph_server_int.h"

#include "base/limits.h"
#include "wire/server_error.h"

#define SCHEMA_MS 60000 /* how long the keys of a graph count as known */
#define NO_V2_MS 600000 /* how long a server counts as one without Protocol v2 */

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
    case DGM_GRAPH_NOTHING: dgm_gserver_job_fail(j, dgm_arena_dup(j->arena, j->plan.why).p); return;
    case DGM_GRAPH_ASK_AGAIN:
        dgm_graph_out_ask(j->out, &j->graph_turn, j->plan.why);
        dgm_gserver_job_finish(j, j->emit_error);
        return;
    case DGM_GRAPH_RESUME:
        if (!job_is_pending(j, thread)) {
            dgm_gserver_job_fail(j, "the question of the agent is no longer open on its server");
            return;
        }
        break;
    case DGM_GRAPH_INPUT:
    case DGM_GRAPH_CONTINUE: break;
    }
    /* Protocol v2 takes the input of a thread that waits for an answer as that answer. */
    j->is_v2 = job_may_use_v2(j) && !(is_interrupted && j->plan.kind != DGM_GRAPH_RESUME);
    if (!j->run->input->is_resumed && !j->n_resent)
        dgm_gserver_job_emit(j, &(dgm_event){.kind = DGM_EVENT_STATUS,
                                             .status = &(dgm_status_update){
                                                 .status = {.state = DGM_STATE_WORKING}}});
    dgm_gserver_job_remember(j);
    dgm_gserver_job_step(j, GSERVER_SEND);
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

/* Does the newest AI message of the thread call a tool that has no result? */
static bool thread_has_open_call(const dgm_json *thread)
{
    const dgm_json *values = dgm_json_get(thread, DGM_STR("values"));
    yyjson_val *messages = dgm_json_get(values, DGM_STR("messages")), *message;
    size_t n_calls = 0, n_results = 0, i, n;
    yyjson_arr_foreach (messages, i, n, message) {
        dgm_str type = dgm_json_str_member(message, "type");
        if (dgm_str_is(type, "ai")) {
            n_calls = yyjson_arr_size(dgm_json_get(message, DGM_STR("tool_calls")));
            n_results = 0;
        } else if (dgm_str_is(type, "tool")) {
            n_results++;
        }
    }
    return n_results < n_calls;
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
                                     .is_v10 = j->agent->set.a2a_dialect == 1,
                                     .has_open_call = thread_has_open_call(thread)};
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
    j->out =
        dgm_graph_out_new(&o, (dgm_graph_sink){dgm_gserver_job_emit, dgm_gserver_job_note_line, j});
    if (!in->is_resumed) {
        job_send_plan(j, thread);
    } else if (j->note.run.n) {
        j->is_v2 = j->note.is_v2;
        j->frames.run_id = j->note.run;
        if (j->is_canceling)
            dgm_gserver_job_cancel_remote(j);
        else
            dgm_gserver_job_step(j, GSERVER_FOLLOW);
    } else {
        j->is_v2 = job_may_use_v2(j);
        dgm_gserver_job_step(j, GSERVER_FIND);
    }
}

/* ---- after a call ------------------------------------------------------------------------------------------------------------------- */

/* The first requests. False: the server is not there, or does not let us in. */
static bool job_is_reached(struct gserver_job *j, const dgm_remote_end *end)
{
    if (end->error && !end->status && j->run->input->is_resumed)
        dgm_gserver_job_lost(j, job_error(j, end), j->step); /* both may have been restarted */
    else if (end->error && (!end->status || end->status == 401 || end->status == 403))
        dgm_gserver_job_fail(j, job_error(j, end));
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
        dgm_gserver_job_fail(
            j,
            dgm_arena_printf(
                j->arena, "the agent's server has no graph \"%.*s\": check the setting assistant",
                DGM_P(j->agent->set.assistant))
                .p);
    } else if (dgm_gserver_is_uuid(id)) {
        j->assistant = dgm_arena_dup(j->arena, id);
        dgm_gserver_job_step(j, GSERVER_SCHEMA);
    } else {
        dgm_gserver_job_step(j, GSERVER_THREAD); /* the keys of its state remain unknown */
    }
}

static void job_after_schema(struct gserver_job *j, const dgm_remote_end *end)
{
    if (!job_is_reached(j, end))
        return;
    if (end->status == 404) {
        dgm_gserver_job_fail(j, job_error(j, end));
        return;
    }
    int keys = end->error ? 0 : dgm_gserver_read_schemas(job_answer(j));
    atomic_store(&j->agent->keys, keys);
    atomic_store(&j->agent->keys_until, dgm_loop_unix_ms() + SCHEMA_MS);
    dgm_gserver_job_step(j, GSERVER_THREAD);
}

static void job_after_thread(struct gserver_job *j, const dgm_remote_end *end)
{
    if (!end->error)
        job_plan(j, job_answer(j));
    else if (j->run->input->is_resumed && !is_refusal(end))
        dgm_gserver_job_lost(j, job_error(j, end), GSERVER_THREAD);
    else
        dgm_gserver_job_fail(j, job_error(j, end));
}

/* The request may have arrived: its run is searched, and the message is sent again if it is not found. */
static void job_doubt(struct gserver_job *j, const char *why)
{
    if (j->n_resent++ >= (unsigned)j->agent->set.remote.retries)
        dgm_gserver_job_fail(j, why);
    else
        dgm_gserver_job_wait(j, GSERVER_FIND);
}

static void job_use_runs(struct gserver_job *j)
{
    atomic_store(&j->agent->no_v2_until, dgm_loop_unix_ms() + NO_V2_MS);
    j->is_v2 = false;
    dgm_gserver_job_step(j, GSERVER_SEND);
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
        dgm_gserver_job_fail(j, job_error(j, end));
    } else if (end->error || !dgm_str_is(type, "success")) {
        dgm_str words = dgm_remote_clean_error(&j->agent->set.remote, j->arena,
                                               dgm_json_str_member(answer, "message"));
        if (end->error)
            job_doubt(j, job_error(j, end));
        else
            dgm_gserver_job_fail(
                j, dgm_arena_printf(j->arena, "the agent's server rejected the message: %.*s%s%.*s",
                                    DGM_P(error), words.n ? ": " : "", DGM_P(words))
                       .p);
    } else {
        yyjson_val *result = dgm_json_get(answer, DGM_STR("result"));
        if (!dgm_gserver_job_learn_run(j, dgm_json_str_member(result, "run_id")))
            return;
        dgm_gserver_job_step(j, j->note.run.n ? GSERVER_FOLLOW
                                              : GSERVER_FIND); /* input.respond names no run */
    }
}

static void job_after_send(struct gserver_job *j, const dgm_remote_end *end)
{
    if (j->note.run.n)
        dgm_gserver_job_step(j, GSERVER_CHECK);
    else if (!end->error)
        job_doubt(j, "the agent's server ended its answer before its first event");
    else if (is_refusal(end))
        dgm_gserver_job_fail(j, job_error(j, end));
    else
        job_doubt(j, job_error(j, end));
}

static void job_after_find(struct gserver_job *j, const dgm_remote_end *end)
{
    if (end->error && !is_refusal(end)) {
        dgm_gserver_job_lost(j, job_error(j, end), GSERVER_FIND);
        return;
    }
    dgm_str run = end->error ? (dgm_str){0} : dgm_gserver_find_run(job_answer(j), j->turn);
    if (!dgm_gserver_job_learn_run(j, run))
        return;
    if (run.n)
        dgm_gserver_job_step(j, GSERVER_FOLLOW);
    else if (j->is_canceling)
        dgm_gserver_job_settle_canceled(j);
    else if (j->n_resent++ > (unsigned)j->agent->set.remote.retries)
        dgm_gserver_job_fail(j, "the agent's server does not create a run for the message");
    else
        job_send_plan(j, NULL);
}

/* The run has ended: its result, or its failure. */
static void job_result(struct gserver_job *j)
{
    const dgm_json *result =
        dgm_gserver_frames_result(&j->frames, j->arena, j->result_status, j->state_next);
    if (!result) {
        dgm_gserver_job_fail(j, "the state of the graph is larger than the limit object_bytes");
        return;
    }
    j->sync = dgm_graph_out_result(j->out, j->arena, result);
    if (j->emit_error)
        dgm_gserver_job_fail(
            j,
            dgm_arena_printf(j->arena, "the agent's answer cannot be used: %s", j->emit_error).p);
    else if (j->sync && strcmp(j->result_status, "completed") == 0)
        dgm_gserver_job_step(j, GSERVER_SYNC);
    else {
        dgm_graph_out_finish(j->out);
        dgm_gserver_job_finish(j, j->emit_error);
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
    dgm_gserver_job_fail_with(j, what, detail);
}

/* The status of the run, as the server has it. */
void dgm_gserver_job_handle_status(struct gserver_job *j, dgm_str status)
{
    const struct gserver_frames *f = &j->frames;
    if (dgm_str_is(status, "pending") || dgm_str_is(status, "running")) {
        dgm_gserver_job_wait(j, GSERVER_FOLLOW);
        return;
    }
    if (j->is_cut && j->n_reread++ < GSERVER_MAX_REREADS) { /* artifacts are not in the state */
        dgm_gserver_job_step(j, GSERVER_FOLLOW);
        return;
    }
    if (dgm_str_is(status, "timeout")) {
        dgm_gserver_job_fail(j, "the run took longer than its server allows");
        return;
    }
    if (dgm_str_is(status, "error")) {
        if (f->error_text.n || f->error_type.n)
            job_graph_failed(j);
        else {
            j->result_status = NULL;
            dgm_gserver_job_step(j, GSERVER_STATE);
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
        dgm_gserver_job_step(j, GSERVER_STATE);
}

static void job_after_check(struct gserver_job *j, const dgm_remote_end *end)
{
    if (end->error && end->status == 404)
        dgm_gserver_job_fail(j, "the agent's server no longer has the run of this message");
    else if (end->error && is_refusal(end))
        dgm_gserver_job_fail(j, job_error(j, end));
    else if (end->error)
        dgm_gserver_job_lost(j, job_error(j, end), GSERVER_CHECK);
    else
        dgm_gserver_job_handle_status(j, dgm_json_str_member(job_answer(j), "status"));
}

static void job_after_state(struct gserver_job *j, const dgm_remote_end *end)
{
    const dgm_json *state = end->error ? NULL : job_answer(j);
    if (end->error && !is_refusal(end)) {
        dgm_gserver_job_lost(j, job_error(j, end), GSERVER_STATE);
        return;
    }
    if (!state && !j->frames.values.n && j->result_status) {
        dgm_gserver_job_fail(j, end->error ? job_error(j, end)
                                           : "the state of the agent's thread cannot be read");
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
    dgm_gserver_job_finish(j, j->emit_error);
}

void dgm_gserver_job_after_call(struct gserver_job *j, const dgm_remote_end *end)
{
    if (j->step == GSERVER_CANCEL || (j->is_canceling && j->step != GSERVER_SEND &&
                                      j->step != GSERVER_FIND && !j->run->input->is_resumed)) {
        dgm_gserver_job_settle_canceled(j);
        return;
    }
    if (j->bad) {
        dgm_gserver_job_fail(j, j->bad);
        return;
    }
    if (j->step == GSERVER_FOLLOW || j->step == GSERVER_SEND)
        j->is_cut = end->error && !is_refusal(end);
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
            dgm_gserver_job_wait(j, GSERVER_FOLLOW);
        else
            dgm_gserver_job_step(j, GSERVER_CHECK);
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
