/*
 * wire/chat/chat_encode.c - canonical events as the chunks of a chat completion, or as the completion.
 *
 * What must stay true: the role comes first, text only grows, one chunk has a finish_reason and behind it
 * is nothing but usage. The first error is stored in rc; from then on nothing is emitted.
 */
#include "wire/chat/chat_encode.h"
#include "base/limits.h"
#include "canon/message_content.h"

#include <stdlib.h>

/* ---- the handle --------------------------------------------------------------------------------------- */

void *dgm_chat_encoder_new(const dgm_stream_params *params, dgm_frame_sink sink)
{
    dgm_chat_encoder *e = dgm_xcalloc(1, sizeof *e);
    e->params = *params;
    e->sink = sink;
    e->arena = dgm_arena_new();
    dgm_buf_init(&e->out, DGM_MAX_OUTPUT_BYTES);
    dgm_buf_init(&e->model, SIZE_MAX);
    dgm_buf_init(&e->thinker, SIZE_MAX);
    dgm_buf_init(&e->progress, SIZE_MAX);
    dgm_buf_init(&e->reasoning, SIZE_MAX);
    dgm_buf_init(&e->task_id, SIZE_MAX);
    dgm_buf_add_str(&e->model, params->model);
    dgm_buf_add_str(&e->task_id, params->task_id);
    dgm_map_init(&e->texts_by_id);
    dgm_map_init(&e->artifacts);
    dgm_map_init(&e->calls_by_id);
    return e;
}

static void forget_run(dgm_chat_encoder *e)
{
    for (size_t i = 0; i < e->n_texts; i++)
        dgm_buf_done(&e->texts[i].text);
    for (size_t i = 0; i < e->n_calls; i++)
        dgm_buf_done(&e->calls[i].arguments);
    dgm_map_done(&e->texts_by_id);
    dgm_map_done(&e->artifacts);
    dgm_map_done(&e->calls_by_id);
    dgm_buf_clear(&e->thinker);
    dgm_buf_clear(&e->progress);
    dgm_buf_clear(&e->reasoning);
    e->n_texts = e->n_calls = e->n_given = e->kept = 0;
    e->n_citations = e->n_chars = 0;
    e->begun = e->finished = e->spoke = e->thought = false;
    e->finish_reason = NULL;
}

void dgm_chat_encoder_free(void *encoder)
{
    dgm_chat_encoder *e = encoder;
    if (!e)
        return;
    forget_run(e);
    free(e->texts);
    free(e->calls);
    free(e->citations);
    dgm_buf_done(&e->thinker);
    dgm_buf_done(&e->progress);
    dgm_buf_done(&e->reasoning);
    dgm_buf_done(&e->model);
    dgm_buf_done(&e->task_id);
    dgm_buf_done(&e->out);
    dgm_arena_free(e->arena);
    free(e);
}

void dgm_chat_emit(dgm_chat_encoder *e)
{
    if (e->rc)
        return;
    if (e->out.over)
        e->rc = dgm_fail(e->err, DGM_TOO_LARGE, NULL,
                         "the chunk becomes longer than the limit output_bytes of %zu",
                         DGM_MAX_OUTPUT_BYTES);
    else
        e->rc = e->sink.on_frame(e->sink.arg, (dgm_str){0}, dgm_buf_str(&e->out));
}

/* ---- the run ------------------------------------------------------------------------------------------ */

static void chat_encode_begin(dgm_chat_encoder *e, const dgm_canon_event *started)
{
    dgm_str id = started ? started->run_started.run_id : (dgm_str){0};
    forget_run(e);
    dgm_map_init(&e->artifacts);
    dgm_map_init(&e->texts_by_id);
    dgm_map_init(&e->calls_by_id);
    dgm_arena_reset(e->arena);
    e->run_id = id.n ? dgm_arena_dup(e->arena, id) : dgm_mint_id(&e->params.mint, e->arena);
    e->thread_id = started ? dgm_arena_dup(e->arena, started->run_started.thread_id) : (dgm_str){0};
    e->begun = true;
    dgm_chat_put_top(e, started);
    if (!e->params.whole)
        dgm_chat_chunk_role(e);
}

static void ensure_begun(dgm_chat_encoder *e)
{
    if (!e->begun)
        chat_encode_begin(e, NULL);
}

/* ---- ends ----------------------------------------------------------------------------------------------- */

static const char *reason_of(const dgm_chat_encoder *e)
{
    return e->n_given ? "tool_calls" : e->finish_reason ? e->finish_reason : "stop";
}

/* NULL: there is no task to name. */
static const char *chat_encode_state_of(const dgm_chat_encoder *e, const dgm_canon_outcome *o)
{
    const dgm_canon_interrupt *asked = o->interrupts.n ? &o->interrupts.at[0] : NULL;
    if (o->kind == DGM_CANON_INTERRUPT)
        return asked && dgm_str_is(asked->reason, "a2a:auth_required") ? "auth-required"
                                                                       : "input-required";
    bool waits = o->pending_tool_call_ids.n && !o->awaits_no_results;
    return !e->task_id.n ? NULL : waits ? "input-required" : "completed";
}

static void chat_encode_finish(dgm_chat_encoder *e, const dgm_canon_outcome *o,
                               const dgm_canon_usages *usages)
{
    if (o->kind != DGM_CANON_INTERRUPT || o->pending_tool_call_ids.n)
        dgm_chat_ask_calls(e, o->pending_tool_call_ids);
    if (e->params.whole) {
        dgm_chat_completion(e, reason_of(e), (dgm_str){0}, chat_encode_state_of(e, o), usages);
        return;
    }
    dgm_chat_say_corrected(e);
    dgm_chat_chunk_finish(e, reason_of(e), chat_encode_state_of(e, o));
    if (e->params.usage)
        dgm_chat_chunk_usage(e, usages);
}

static void chat_encode_refuse(dgm_chat_encoder *e, dgm_str message, const dgm_canon_usages *usages)
{
    const char *state = e->task_id.n ? "rejected" : NULL;
    if (e->params.whole) {
        dgm_chat_completion(e, "stop", message, state, usages);
        return;
    }
    dgm_chat_chunk_text(e, DGM_STR("\"refusal\":\""), false, message);
    dgm_chat_chunk_finish(e, "stop", state);
    if (e->params.usage)
        dgm_chat_chunk_usage(e, usages);
}

static void chat_encode_fail(dgm_chat_encoder *e, dgm_str message, dgm_str code)
{
    bool canceled =
        dgm_str_is(code, "canceled") || dgm_str_is(code, "cancelled") || dgm_str_is(code, "abort");
    dgm_chat_say_corrected(e);
    dgm_chat_put_error(e, message,
                       canceled                     ? DGM_STR("task_canceled")
                       : dgm_str_is(code, "failed") ? DGM_STR("task_failed")
                                                    : code);
}

static void chat_encode_end_run(dgm_chat_encoder *e, const dgm_canon_event *event)
{
    if (event->kind == DGM_CANON_RUN_ERROR && dgm_str_is(event->run_error.code, "rejected"))
        chat_encode_refuse(e, event->run_error.message, &event->run_error.usage);
    else if (event->kind == DGM_CANON_RUN_ERROR)
        chat_encode_fail(e, event->run_error.message, event->run_error.code);
    else if (event->run_finished.outcome.kind == DGM_CANON_CANCELLED)
        chat_encode_fail(e, DGM_STR("The task was canceled"), DGM_STR("canceled"));
    else
        chat_encode_finish(e, &event->run_finished.outcome, &event->run_finished.usage);
    e->finished = true;
}

/* Why the agent's run ended, if its protocol has no member for it. */
static void note(dgm_chat_encoder *e, const dgm_canon_event *event)
{
    if (!dgm_str_is(event->custom.name, DGM_NAME_METADATA))
        return;
    dgm_str reason = dgm_json_str_member(event->custom.value, "finish_reason");
    if (dgm_str_is(reason, "length"))
        e->finish_reason = "length";
    else if (dgm_str_is(reason, "content_filter"))
        e->finish_reason = "content_filter";
}

/* ---- events --------------------------------------------------------------------------------------------- */

static void chat_encode_feed(dgm_chat_encoder *e, const dgm_canon_event *event)
{
    switch (event->kind) {
    case DGM_CANON_RUN_STARTED: chat_encode_begin(e, event); break;
    case DGM_CANON_RUN_FINISHED:
    case DGM_CANON_RUN_ERROR: chat_encode_end_run(e, event); break;
    case DGM_CANON_TEXT_MESSAGE_START: dgm_chat_start_text(e, event); break;
    case DGM_CANON_TEXT_MESSAGE_CONTENT: dgm_chat_add_text(e, event); break;
    case DGM_CANON_TEXT_MESSAGE_END: dgm_chat_end_text(e, event); break;
    case DGM_CANON_TOOL_CALL_START: dgm_chat_start_call(e, event); break;
    case DGM_CANON_TOOL_CALL_ARGS: dgm_chat_add_arguments(e, event); break;
    case DGM_CANON_TOOL_CALL_RESULT: dgm_chat_answer(e, event->result.tool_call_id); break;
    case DGM_CANON_MESSAGES_SNAPSHOT: dgm_chat_correct(e, event); break;
    case DGM_CANON_ACTIVITY_SNAPSHOT: dgm_chat_add_progress(e, event); break;
    case DGM_CANON_REASONING_MESSAGE_CONTENT: dgm_chat_add_reasoning(e, event); break;
    case DGM_CANON_CUSTOM: note(e, event); break;
    case DGM_CANON_ARTIFACT: dgm_chat_add_artifact(e, event); break;
    case DGM_CANON_NONE:
    case DGM_CANON_STEP_STARTED:
    case DGM_CANON_STEP_FINISHED:
    case DGM_CANON_TEXT_MESSAGE_CHUNK:
    case DGM_CANON_TOOL_CALL_END:
    case DGM_CANON_TOOL_CALL_CHUNK:
    case DGM_CANON_STATE_SNAPSHOT:
    case DGM_CANON_STATE_DELTA:
    case DGM_CANON_ACTIVITY_DELTA:
    case DGM_CANON_REASONING_START:
    case DGM_CANON_REASONING_MESSAGE_START:
    case DGM_CANON_REASONING_MESSAGE_END:
    case DGM_CANON_REASONING_MESSAGE_CHUNK:
    case DGM_CANON_REASONING_END:
    case DGM_CANON_REASONING_ENCRYPTED_VALUE:
    case DGM_CANON_SUBAGENT_STARTED:
    case DGM_CANON_SUBAGENT_FINISHED:
    case DGM_CANON_SUBAGENT_ERROR:
    case DGM_CANON_RAW: break; /* no place in a completion */
    }
}

dgm_code dgm_chat_encoder_feed(void *encoder, const dgm_canon_event *event, dgm_err *err)
{
    dgm_chat_encoder *e = encoder;
    e->err = err;
    if (e->rc || (e->finished && event->kind != DGM_CANON_RUN_STARTED))
        return e->rc;
    if (event->kind != DGM_CANON_RUN_STARTED)
        ensure_begun(e);
    chat_encode_feed(e, event);
    return e->rc;
}

dgm_code dgm_chat_encoder_end(void *encoder, dgm_err *err)
{
    static const dgm_canon_outcome none = {0};
    dgm_chat_encoder *e = encoder;
    e->err = err;
    if (e->rc || !e->begun || e->finished)
        return e->rc;
    if (!e->params.fragment) {
        chat_encode_fail(e, DGM_STR("The agent's stream ended before its answer did"),
                         DGM_STR("incomplete"));
    } else if (e->params.whole) {
        chat_encode_finish(e, &none, &(dgm_canon_usages){0});
    } else {
        dgm_chat_ask_calls(e, (dgm_strs){0});
        dgm_chat_say_corrected(e);
    }
    e->finished = true;
    return e->rc;
}
