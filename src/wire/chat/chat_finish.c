/* wire/chat/chat_finish.c - how a completion that is being read ends, and what it cost. */
#include "canon/message_content.h"
#include "wire/chat/chat_decode.h"

/* ---- usage ----------------------------------------------------------------------------------------------- */

static dgm_opt_long count(yyjson_val *v, const char *in, const char *name)
{
    dgm_opt_long n = {0};
    if (in)
        v = dgm_json_get(v, dgm_str_from(in));
    v = dgm_json_get(v, dgm_str_from(name));
    n.set = v && dgm_json_int(v, &n.value) && n.value >= 0;
    return n.set ? n : (dgm_opt_long){0};
}

/* The last one counts: some servers send it with every chunk. */
void dgm_chat_read_usage(dgm_chat_decoder *d, yyjson_val *v)
{
    d->usage = (dgm_canon_usage){
        .input_tokens = count(v, NULL, "prompt_tokens"),
        .output_tokens = count(v, NULL, "completion_tokens"),
        .total_tokens = count(v, NULL, "total_tokens"),
        .reasoning_tokens = count(v, "completion_tokens_details", "reasoning_tokens"),
        .cached_input_tokens = count(v, "prompt_tokens_details", "cached_tokens"),
        .cache_write_input_tokens = count(v, NULL, "cache_creation_input_tokens"),
    };
    d->has_usage =
        d->usage.input_tokens.set || d->usage.output_tokens.set || d->usage.total_tokens.set;
}

static dgm_canon_usages usages(dgm_chat_decoder *d)
{
    if (d->model.n)
        d->usage.model = d->model;
    return d->has_usage ? (dgm_canon_usages){&d->usage, 1} : (dgm_canon_usages){0};
}

/* ---- closing ----------------------------------------------------------------------------------------------- */

static void chat_finish_end_text(dgm_chat_decoder *d)
{
    dgm_canon_event e = {.kind = DGM_CANON_TEXT_MESSAGE_END};
    e.text.message_id = d->message_id;
    if (d->text_open)
        dgm_chat_out(d, &e);
    d->text_open = false;
}

/* A refusal beside an answer is part of it. */
static void say_refusal(dgm_chat_decoder *d)
{
    dgm_canon_event e = {.kind = DGM_CANON_TEXT_MESSAGE_START};
    e.text.message_id = dgm_arena_printf(d->arena, "%.*s-m2", DGM_P(d->run_id));
    e.text.role = DGM_CANON_ASSISTANT;
    dgm_chat_out(d, &e);
    e.kind = DGM_CANON_TEXT_MESSAGE_CONTENT;
    e.text.role = DGM_CANON_ROLE_NONE;
    e.text.delta = dgm_buf_str(&d->refusal);
    e.text.whole = true;
    dgm_chat_out(d, &e);
    e.kind = DGM_CANON_TEXT_MESSAGE_END;
    e.text.delta = (dgm_str){0};
    e.text.whole = false;
    dgm_chat_out(d, &e);
}

static bool close_all(dgm_chat_decoder *d)
{
    dgm_chat_end_reasoning(d);
    chat_finish_end_text(d);
    return dgm_chat_end_calls(d);
}

/* ---- ends ------------------------------------------------------------------------------------------------------ */

static void chat_emit_finished(dgm_chat_decoder *d, const dgm_canon_outcome *outcome)
{
    dgm_canon_event e = {.kind = DGM_CANON_RUN_FINISHED};
    e.run_finished.thread_id = e.run_finished.run_id = d->run_id;
    e.run_finished.outcome = *outcome;
    e.run_finished.usage = usages(d);
    dgm_chat_out(d, &e);
}

static void chat_emit_failed(dgm_chat_decoder *d, dgm_str message, dgm_str code)
{
    dgm_canon_event e = {.kind = DGM_CANON_RUN_ERROR};
    if (d->params.fragment)
        return;
    e.run_error.message = message;
    e.run_error.code = code;
    e.run_error.usage = usages(d);
    dgm_chat_out(d, &e);
}

void dgm_chat_fail_run(dgm_chat_decoder *d, dgm_str message, dgm_str code)
{
    close_all(d);
    d->failed = true;
    if (dgm_str_is(code, "task_canceled") && !d->params.fragment)
        chat_emit_finished(d, &(dgm_canon_outcome){.kind = DGM_CANON_CANCELLED});
    else
        chat_emit_failed(d, message, dgm_str_is(code, "task_failed") ? DGM_STR("failed") : code);
}

/* Why it was cut, where canonical events have no word for it. */
static void note_finish(dgm_chat_decoder *d)
{
    dgm_canon_event e = {.kind = DGM_CANON_CUSTOM};
    if (!dgm_str_is(d->finish, "length") && !dgm_str_is(d->finish, "content_filter"))
        return;
    dgm_member reason = {DGM_STR("finish_reason"), dgm_json_make_string(d->arena, d->finish)};
    e.custom.name = DGM_STR(DGM_NAME_METADATA);
    e.custom.value = dgm_json_object(d->arena, &reason, 1);
    dgm_chat_out(d, &e);
}

static void finish_well(dgm_chat_decoder *d)
{
    dgm_canon_outcome outcome = {0};
    bool auth = dgm_str_is(d->state, "auth-required");
    dgm_canon_interrupt asked = {
        .id = d->run_id, .reason = auth ? DGM_STR("a2a:auth_required") : DGM_STR("input_required")};
    if (d->n_calls) {
        outcome.kind = DGM_CANON_SUCCESS;
        outcome.pending_tool_call_ids.at = dgm_new_n(d->arena, dgm_str, d->n_calls);
        for (size_t i = 0; i < d->n_calls; i++)
            outcome.pending_tool_call_ids.at[outcome.pending_tool_call_ids.n++] = d->calls[i].id;
    } else if (auth || dgm_str_is(d->state, "input-required")) {
        outcome.kind = DGM_CANON_INTERRUPT;
        outcome.interrupts = (dgm_canon_interrupts){&asked, 1};
    }
    note_finish(d);
    chat_emit_finished(d, &outcome);
}

void dgm_chat_finish_run(dgm_chat_decoder *d)
{
    bool named = close_all(d), silent = !d->spoke && !d->n_calls;
    bool filtered = dgm_str_is(d->finish, "content_filter");
    if (d->refusal.n && (!silent || d->params.fragment))
        say_refusal(d);
    if (d->params.fragment)
        return;
    if (!named)
        chat_emit_failed(d, DGM_STR("The model called a tool without naming it"),
                         DGM_STR("invalid_tool_call"));
    else if (silent && d->refusal.n)
        chat_emit_failed(d, dgm_buf_str(&d->refusal), DGM_STR("rejected"));
    else if (silent && filtered && !d->params.one_run)
        chat_emit_failed(d, DGM_STR("The answer was withheld by a content filter"),
                         DGM_STR("rejected"));
    else if (dgm_str_is(d->finish, "length") && dgm_chat_is_cut(d))
        chat_emit_failed(d, DGM_STR("The answer was cut off within the arguments of a call"),
                         DGM_STR("length"));
    else if (dgm_str_is(d->finish, "error"))
        chat_emit_failed(d, DGM_STR("The model ended with an error"), DGM_STR("failed"));
    else if (!d->finish.n && !d->done && !d->has_usage)
        chat_emit_failed(d, DGM_STR("The stream ended before the answer did"),
                         DGM_STR("incomplete"));
    else
        finish_well(d);
}
