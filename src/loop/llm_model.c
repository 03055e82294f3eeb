/* loop/llm_model.c - one model call of the agent loop: its text, its retries, its end. */
#include "loop/llm_loop_int.h"

#include <stdio.h>

/* ---- the call ---------------------------------------------------------------------------------------------------- */

void dgm_llm_name_artifact(dgm_llm_loop *l)
{
    snprintf(l->artifact_id, sizeof l->artifact_id, "answer-%u", l->iteration);
}

static void llm_clear_call(dgm_llm_loop *l)
{
    dgm_buf_clear(&l->text);
    l->n_raw = 0;
    l->raw = NULL;
    l->is_open = false;
}

void dgm_llm_send_call(dgm_llm_loop *l)
{
    dgm_llm_action action = {.kind = DGM_LLM_CALL_MODEL};
    action.model =
        (dgm_llm_model){.upstream = l->upstream,
                        .attempt = l->attempt,
                        .iteration = l->iteration,
                        .is_summary = l->is_summary,
                        .may_call = !l->is_summary,
                        .id = dgm_llm_id(l, l->is_summary ? "summary" : "call", l->iteration, -1),
                        .messages = l->messages};
    llm_clear_call(l);
    l->is_calling = true;
    if (l->is_summary) {
        dgm_part ask = dgm_llm_text_part(DGM_STR(
            "Summarize the conversation so far, for yourself: another message with your summary "
            "will replace it. Preserve what the user wants, all facts, names, numbers, "
            "decisions and results of tools that are still needed, and what remains to be done. "
            "Answer with the summary only."));
        size_t n = l->summary_cut;
        dgm_message *list = dgm_new_n(l->scratch, dgm_message, n + 1);
        memcpy(list, l->messages.at, n * sizeof *list);
        list[n] = (dgm_message){.message_id = dgm_llm_id(l, "ask", l->iteration, -1),
                                .role = DGM_ROLE_USER,
                                .parts = {&ask, 1}};
        action.model.messages = (dgm_messages){list, n + 1};
        dgm_llm_act(l, action);
        return;
    }
    dgm_llm_act(l, action);
}

void dgm_llm_call_model(dgm_llm_loop *l)
{
    l->phase = LLM_MODEL;
    l->tried = l->attempt = 0;
    l->is_summary = false;
    dgm_llm_name_artifact(l);
    if (dgm_llm_compact(l, false))
        return;
    dgm_llm_emit_counted(l, DGM_INTERNAL_LLM_CALL);
    dgm_llm_send_call(l);
}

static void llm_flush_queue(dgm_llm_loop *l)
{
    for (size_t i = 0; i < l->queued.n; i++)
        dgm_llm_add_message(l, &l->queued.at[i]);
    l->queued = (dgm_messages){0};
}

void dgm_llm_next_iteration(dgm_llm_loop *l)
{
    const dgm_llm_limits *x = &l->options.limits;
    llm_flush_queue(l);
    dgm_llm_emit_counted(l, DGM_INTERNAL_CHECKPOINT);
    if (l->iteration + 1 - l->turn_first >= x->iterations) {
        dgm_llm_fail(l, "The limit of %u model calls was reached before the answer was complete.",
                     x->iterations);
        return;
    }
    if (x->tokens && l->tokens >= x->tokens) {
        dgm_llm_fail(l, "The limit of %llu tokens was reached before the answer was complete.",
                     (unsigned long long)x->tokens);
        return;
    }
    l->iteration++;
    l->calls = NULL;
    l->n_calls = 0;
    llm_clear_call(l);
    dgm_arena_reset(l->turn);
    l->was_compacted = false;
    l->phase = LLM_MODEL;
    if (dgm_llm_save_now(l))
        dgm_llm_call_model(l);
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

void dgm_llm_on_text(dgm_llm_loop *l, dgm_str text)
{
    size_t max = l->options.limits.output_bytes;
    bool is_over = l->answer.n + l->text.n + text.n > max;
    if (!text.n || (l->is_summary && is_over))
        return;
    if (is_over) {
        dgm_llm_fail(l, "The answer exceeds the limit of %zu bytes.", max);
        return;
    }
    dgm_buf_add_str(&l->text, text);
    if (l->is_summary)
        return;
    dgm_llm_emit_chunk(l, text, l->is_open, false);
    l->is_open = l->has_output = true;
}

void dgm_llm_on_reasoning(dgm_llm_loop *l, dgm_str text)
{
    dgm_internal it = {.kind = DGM_INTERNAL_REASONING, .text = text};
    if (text.n && !l->is_summary)
        dgm_llm_emit_internal(l, &it);
}

void dgm_llm_on_call(dgm_llm_loop *l, const dgm_llm_call *call)
{
    bool is_long = call->arguments.n > l->options.limits.output_bytes;
    if (l->is_summary || l->n_raw == LLM_MAX_CALLS)
        return;
    l->raw = dgm_list_grow(l->turn, l->raw, l->n_raw, sizeof *l->raw);
    l->raw[l->n_raw++] = (dgm_llm_call){
        .id = call->id.n <= DGM_MAX_ID_BYTES ? dgm_arena_dup(l->turn, call->id) : (dgm_str){0},
        .name = dgm_arena_dup(l->turn, dgm_llm_cut(l->turn, call->name, DGM_MAX_ID_BYTES)),
        .arguments = is_long ? (dgm_str){0} : dgm_arena_dup(l->turn, call->arguments),
        .is_custom = call->is_custom};
}

/* A text that another process has streamed before is replaced by nothing if this call has none. If this call does not come
 * to its end, it is replaced by itself: whether it was closed is not known. */
void dgm_llm_close_text(dgm_llm_loop *l, bool has_ended)
{
    if (l->is_open)
        dgm_llm_emit_chunk(l, DGM_STR(""), true, true);
    else if (l->is_stale)
        dgm_llm_emit_chunk(l, has_ended ? DGM_STR("") : l->stale_text, false, true);
    l->is_open = l->is_stale = false;
}

static void llm_complete(dgm_llm_loop *l, const dgm_llm_end *end)
{
    const dgm_json *metadata = NULL;
    dgm_part part = dgm_llm_text_part(dgm_buf_str(&l->text));
    dgm_message m = {.message_id = dgm_llm_id(l, "m", l->iteration, -1),
                     .context_id = l->context_id,
                     .task_id = l->task_id,
                     .role = DGM_ROLE_AGENT,
                     .parts = {&part, 1}};
    if (l->answer_texts > 1 && l->text.n)
        dgm_llm_emit_history(l, &m); /* the others are there: together they are the final text */
    dgm_llm_emit_counted(l, DGM_INTERNAL_CHECKPOINT);
    if (end->finish == DGM_LLM_LENGTH)
        metadata = dgm_json_parse_trusted(l->scratch, DGM_STR("{\"finish_reason\":\"length\"}"));
    l->phase = LLM_OVER;
    m.message_id = dgm_llm_id(l, "end", l->iteration, -1);
    part = dgm_llm_text_part(dgm_buf_str(&l->answer));
    dgm_llm_emit_status(l, DGM_STATE_COMPLETED, l->answer.n ? &m : NULL, metadata);
    dgm_llm_act(l, (dgm_llm_action){.kind = DGM_LLM_END, .state = DGM_STATE_COMPLETED});
}

static void llm_count_usage(dgm_llm_loop *l, const dgm_llm_end *end)
{
    uint64_t sum = end->input_tokens + end->output_tokens;
    dgm_internal it = {.kind = DGM_INTERNAL_USAGE, .value = end->usage};
    l->tokens += end->total_tokens > sum ? end->total_tokens : sum;
    if (!l->is_summary)
        l->input_tokens = end->input_tokens;
    if (end->usage)
        dgm_llm_emit_internal(l, &it);
}

static void llm_on_filter(dgm_llm_loop *l)
{
    if (l->has_output)
        dgm_llm_fail(l, "The content filter of the model stopped the answer.");
    else
        dgm_llm_terminate(l, DGM_STATE_REJECTED,
                          DGM_STR("The content filter of the model rejected the request."));
}

static void llm_add_answer(dgm_llm_loop *l)
{
    if (!l->text.n)
        return;
    if (l->answer.n)
        dgm_buf_add_lit(&l->answer, "\n\n");
    dgm_buf_add_str(&l->answer, dgm_buf_str(&l->text));
    l->answer_texts++;
}

void dgm_llm_on_end(dgm_llm_loop *l, const dgm_llm_end *end)
{
    l->is_calling = false;
    llm_count_usage(l, end);
    if (l->is_summary) {
        dgm_llm_on_summary(l, end->finish != DGM_LLM_CONTENT_FILTER && l->text.n > 0);
        return;
    }
    if (end->refusal.n && !l->n_raw)
        dgm_llm_on_text(l, end->refusal);
    if (l->phase == LLM_OVER)
        return;
    if (end->finish == DGM_LLM_CONTENT_FILTER) {
        llm_on_filter(l);
        return;
    }
    dgm_llm_close_text(l, true);
    llm_add_answer(l);
    l->phase = LLM_TOOLS;
    if (l->n_raw || l->queued.n)
        dgm_llm_check_calls(l, end);
    else
        llm_complete(l, end);
}

/* ---- retries ----------------------------------------------------------------------------------------------------- */

/* Tasks that fail at the same moment do not come back at the same moment: half of the wait depends on the task. */
static uint64_t llm_wait_ms(const dgm_llm_loop *l, int64_t retry_after_ms)
{
    uint64_t base = l->options.retry_base_ms, cap = l->options.retry_cap_ms;
    uint64_t ms = base << (l->attempt < 16 ? l->attempt : 16);
    ms = ms < cap ? ms : cap;
    ms -= dgm_hash(l->attempt + 1, l->task_id.p, l->task_id.n) % (ms / 2 + 1);
    return retry_after_ms > 0 && (uint64_t)retry_after_ms > ms ? (uint64_t)retry_after_ms : ms;
}

static bool llm_retry(dgm_llm_loop *l, const dgm_llm_failure *f)
{
    if (!f->is_retryable || l->attempt >= l->options.retries ||
        f->retry_after_ms > (int64_t)l->options.retry_cap_ms)
        return false;
    uint64_t ms = llm_wait_ms(l, f->retry_after_ms);
    l->attempt++;
    l->phase = LLM_RETRY;
    llm_clear_call(l);
    dgm_llm_act(l, (dgm_llm_action){.kind = DGM_LLM_WAIT, .wait_ms = ms});
    return true;
}

static bool llm_fail_over(dgm_llm_loop *l, const dgm_llm_failure *f)
{
    if (++l->tried >= l->options.upstreams)
        return false;
    dgm_llm_note(l, "upstream %u failed, the next one is tried: %.*s", l->upstream,
                 DGM_P(f->message));
    l->upstream = (l->upstream + 1) % l->options.upstreams;
    l->attempt = 0;
    dgm_llm_send_call(l);
    return true;
}

void dgm_llm_on_failed(dgm_llm_loop *l, const dgm_llm_failure *f)
{
    bool is_shown = l->is_open;
    l->is_calling = false;
    if (!l->is_summary && f->is_content_filter) {
        llm_on_filter(l);
        return;
    }
    if (!is_shown && !l->is_summary && f->is_too_long && dgm_llm_compact(l, true))
        return;
    if (!is_shown && (llm_retry(l, f) || llm_fail_over(l, f)))
        return;
    if (l->is_summary) {
        dgm_llm_note(l, "the conversation could not be summarized: %.*s", DGM_P(f->message));
        dgm_llm_on_summary(l, false);
        return;
    }
    dgm_llm_terminate(l, DGM_STATE_FAILED,
                      f->message.n ? f->message : DGM_STR("The model could not be reached."));
}
