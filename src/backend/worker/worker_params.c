/* backend/worker/worker_params.c - members that every `run` has. Pure. */
#include "backend/worker/worker_int.h"
#include "model/calls.h"

dgm_str dgm_worker_thread(dgm_arena *a, const dgm_run_input *in)
{
    return dgm_program_context_key(a, in);
}

static void params_put_key(dgm_buf *out, const char *key)
{
    dgm_buf_add_lit(out, ",\"");
    dgm_buf_add_str(out, dgm_str_from(key));
    dgm_buf_add_lit(out, "\":");
}

static void params_put_str(dgm_buf *out, const char *key, dgm_str text)
{
    params_put_key(out, key);
    dgm_json_put_str(out, text.p ? text : DGM_STR(""));
}

/* The request's, and a traceparent that names the task, unless the caller has sent one. */
static void params_put_metadata(dgm_buf *out, const dgm_run *run)
{
    size_t i, n;
    yyjson_val *key, *value, *metadata = (yyjson_val *)(uintptr_t)run->input->metadata;
    bool is_first = true;
    params_put_key(out, "metadata");
    dgm_buf_add_char(out, '{');
    if (!yyjson_is_obj(metadata))
        metadata = NULL;
    yyjson_obj_foreach (metadata, i, n, key, value) {
        if (!is_first)
            dgm_buf_add_char(out, ',');
        is_first = false;
        dgm_json_put_str(out, dgm_json_str(key));
        dgm_buf_add_char(out, ':');
        dgm_json_put(out, value);
    }
    if (!dgm_json_get(metadata, DGM_STR("traceparent"))) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new_small(512);
        dgm_buf_add_str(out, is_first ? DGM_STR("") : DGM_STR(","));
        dgm_buf_add_lit(out, "\"traceparent\":");
        dgm_json_put_str(out, dgm_run_traceparent(a, run->input->task_id, run->input->task_id));
    }
    dgm_buf_add_char(out, '}');
}

/* The caller's: those of the request, or a part of the message that lists them. */
static void params_put_tools(dgm_buf *out, const dgm_run *run)
{
    size_t part;
    const dgm_json *tools = dgm_json_get(run->input->metadata, DGM_STR(DGM_META_TOOLS));
    if (!yyjson_is_arr((yyjson_val *)(uintptr_t)tools))
        tools = dgm_message_tools(run->input->message, &part);
    params_put_key(out, "tools");
    if (tools)
        dgm_json_put(out, tools);
    else
        dgm_buf_add_lit(out, "[]");
}

void dgm_worker_put_common(dgm_buf *out, const dgm_run *run, dgm_str agent, dgm_str thread,
                           bool is_resumed, unsigned attempt)
{
    const dgm_run_input *in = run->input;
    params_put_str(out, "agent", agent);
    params_put_str(out, "thread", thread);
    params_put_str(out, "task", in->task_id);
    params_put_str(out, "context", in->context_id);
    if (in->fence) {
        params_put_key(out, "fence");
        dgm_json_put_int(out, (int64_t)in->fence);
    }
    if (in->principal.n)
        params_put_str(out, "principal", in->principal);
    if (in->tenant.n)
        params_put_str(out, "tenant", in->tenant);
    params_put_key(out, "isResumed");
    dgm_buf_add_str(out, is_resumed ? DGM_STR("true") : DGM_STR("false"));
    params_put_metadata(out, run);
    params_put_key(out, "acceptedOutputModes");
    dgm_buf_add_char(out, '[');
    for (size_t i = 0; i < in->accepted_output_modes.n; i++) {
        if (i > 0)
            dgm_buf_add_char(out, ',');
        dgm_json_put_str(out, in->accepted_output_modes.at[i]);
    }
    dgm_buf_add_char(out, ']');
    params_put_tools(out, run);
    params_put_key(out, "attempt");
    dgm_json_put_int(out, attempt);
}
