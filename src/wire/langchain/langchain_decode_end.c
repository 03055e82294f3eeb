/* wire/langchain/langchain_decode_end.c - how a run went: usage, errors, questions, calls that wait. */
#include "base/list.h"
#include "canon/message_content.h"
#include "wire/langchain/langchain_decode.h"

static void add_interrupt(lc_decoder *d, dgm_str id, dgm_str question)
{
    dgm_canon_interrupts *list = &d->interrupts;
    for (size_t i = 0; i < list->n; i++) {
        if (dgm_str_eq(list->at[i].id, id))
            return; /* the modes updates and values repeat the same message */
    }
    list->at = dgm_list_grow(d->arena, list->at, list->n, sizeof *list->at);
    list->at[list->n++] =
        (dgm_canon_interrupt){.id = dgm_arena_dup(d->arena, id),
                              .reason = DGM_STR("input_required"),
                              .message = question.p ? dgm_arena_dup(d->arena, question) : question};
}

/* LangGraph's: a text, or an object that mostly has one. */
void dgm_lc_read_interrupts(lc_decoder *d, yyjson_val *list)
{
    static const char *const names[] = {"message", "question", "prompt", "text"};
    yyjson_val *v;
    size_t i, n;
    yyjson_arr_foreach (list, i, n, v) {
        yyjson_val *value = dgm_json_get(v, DGM_STR("value"));
        dgm_str question = yyjson_is_str(value) ? dgm_json_str(value) : (dgm_str){0};
        for (size_t k = 0; !question.n && k < sizeof names / sizeof *names; k++)
            question = dgm_json_str_member(value, names[k]);
        if (!question.n && value)
            question = dgm_content_value_text(d->arena, value);
        dgm_str id = dgm_json_str_member(v, "id");
        add_interrupt(d, id.n ? id : d->run_id, question);
    }
}

/* How a run went, in the words of our encoder and of most providers. */
void dgm_lc_look_at_end(lc_decoder *d, const yyjson_val *data)
{
    const yyjson_val *metadata = dgm_json_get(data, DGM_STR("response_metadata"));
    const yyjson_val *error = dgm_json_get(metadata, DGM_STR("error"));
    dgm_str model = dgm_json_str_member(metadata, "model_name"),
            reason = dgm_json_str_member(metadata, "finish_reason");
    dgm_lc_add_usage(&d->usage, data);
    if (model.n && !d->usage.model.n)
        d->usage.model = dgm_arena_dup(d->arena, model);
    if (dgm_str_is(reason, "cancelled"))
        d->cancelled = true;
    if (dgm_str_is(reason, "interrupt") && !d->interrupts.n)
        add_interrupt(d, d->run_id, (dgm_str){0});
    if (dgm_str_is(reason, "error") && dgm_json_str_member(error, "message").p) {
        d->error = dgm_arena_dup(d->arena, dgm_json_str_member(error, "message"));
        d->error_code = dgm_json_str_member(error, "code");
        if (d->error_code.p)
            d->error_code = dgm_arena_dup(d->arena, d->error_code);
    }
}

static bool has_usage(const dgm_canon_usage *u)
{
    return u->input_tokens.set || u->output_tokens.set || u->total_tokens.set;
}

void dgm_lc_end_run(lc_decoder *d)
{
    dgm_canon_usages usage = {&d->usage, has_usage(&d->usage)};
    dgm_canon_event e = {.kind = DGM_CANON_RUN_FINISHED};
    dgm_strs pending = {dgm_new_n(d->arena, dgm_str, d->n_calls + 1), 0};
    if (d->error.p) {
        e.kind = DGM_CANON_RUN_ERROR;
        e.run_error.message = d->error;
        e.run_error.code = d->error_code;
        e.run_error.usage = usage;
        dgm_lc_give(d, &e);
        return;
    }
    for (size_t i = 0; i < d->n_calls; i++) {
        if (!d->calls[i].answered)
            pending.at[pending.n++] = d->calls[i].id;
    }
    e.run_finished.thread_id = d->thread_id;
    e.run_finished.run_id = d->run_id;
    e.run_finished.usage = usage;
    if (d->cancelled)
        e.run_finished.outcome.kind = DGM_CANON_CANCELLED;
    else if (d->interrupts.n)
        e.run_finished.outcome =
            (dgm_canon_outcome){.kind = DGM_CANON_INTERRUPT, .interrupts = d->interrupts};
    else if (pending.n)
        e.run_finished.outcome =
            (dgm_canon_outcome){.kind = DGM_CANON_SUCCESS, .pending_tool_call_ids = pending};
    dgm_lc_give(d, &e);
}
