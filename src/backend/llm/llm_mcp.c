/*
 * backend/llm/llm_mcp.c - calls of tools of MCP servers.
 *
 * A question of a server ends the turn of the task, and the answer comes with the next turn, in another run. Until then the
 * call waits in the agent's list of its loop (`parked`), since the connection may be needed. After a restart the call is
 * started again from the state that the server gave with its question; without a state its outcome is unknown.
 */
#include "backend/llm/llm_tools_int.h"
#include "base/limits.h"
#include "json/build.h"

#define MAX_PARKED 256 /* on one loop, of one agent: each holds a call of a session */

dgm_str dgm_llm_mcp_share_key(struct llm_job *j, const dgm_mcp *server, dgm_arena *a)
{
    const dgm_run_input *in = j->run->input;
    switch (dgm_mcp_share_of(server)) {
    case DGM_MCP_SHARE_SERVER: return (dgm_str){0};
    case DGM_MCP_SHARE_PRINCIPAL:
        return dgm_arena_printf(a, "%.*s\n%.*s", DGM_P(in->tenant), DGM_P(in->principal));
    case DGM_MCP_SHARE_CONTEXT: break;
    }
    return dgm_arena_printf(a, "%.*s\n%.*s\n%.*s", DGM_P(in->tenant), DGM_P(in->principal),
                            DGM_P(in->context_id));
}

/* ---- calls that wait for an answer ------------------------------------------------------------------------------------ */

static struct llm_tool_call **parked_list(const struct llm_tool_call *c)
{
    return &c->agent->parked[dgm_loop_current()->index];
}

static void unpark(struct llm_tool_call *c)
{
    struct llm_tool_call **at = parked_list(c);
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    c->next = NULL;
}

static bool park(struct llm_tool_call *c)
{
    size_t n = 0;
    for (struct llm_tool_call *p = *parked_list(c); p; p = p->next)
        n++;
    if (n >= MAX_PARKED)
        return false;
    c->job = NULL;
    c->next = *parked_list(c);
    *parked_list(c) = c;
    return true;
}

struct llm_tool_call *dgm_llm_mcp_find_parked(struct llm_job *j, dgm_str key)
{
    struct llm_tool_call *c = j->agent->parked[j->run->loop->index];
    while (c && !dgm_str_eq(c->key, key))
        c = c->next;
    if (c)
        unpark(c);
    return c;
}

/* ---- the server's side -------------------------------------------------------------------------------------------------- */

static void mcp_on_result(void *user, const dgm_mcp_result *result, const dgm_mcp_error *error)
{
    struct llm_tool_call *c = user;
    dgm_llm_event event = {.kind = DGM_LLM_TOOL_DONE};
    c->mcp = NULL;
    if (!c->job) { /* it waited for an answer that has not come */
        unpark(c);
        dgm_arena_free(c->arena);
        return;
    }
    if (error && error->is_outcome_unknown) {
        event.kind = DGM_LLM_TOOL_UNKNOWN;
        event.call_id = c->id;
    } else if (error) {
        event.result = (dgm_llm_result){.call_id = c->id, .is_error = true, .text = error->message};
    } else {
        event.result = (dgm_llm_result){.call_id = c->id, .is_error = result->is_error};
        dgm_llm_set_result_parts(c, result->parts, &event.result);
    }
    dgm_llm_tool_finish(c, &event);
}

static void mcp_on_state(void *user, dgm_str state)
{
    struct llm_tool_call *c = user;
    c->mcp_state = dgm_arena_dup(c->arena, state);
}

/* The answer as the form wants it: the data of the message, or its text as the only member of the form. */
static const dgm_json *form_content(dgm_arena *a, const dgm_json *form, dgm_str text,
                                    const dgm_json *value)
{
    yyjson_val *properties = dgm_json_get(form, DGM_STR("properties")), *parsed = NULL;
    dgm_err err = {0};
    if (yyjson_is_obj((yyjson_val *)(uintptr_t)value))
        return value;
    if (!dgm_json_read(a, text, DGM_MAX_OBJECT_BYTES, "object_bytes", &parsed, &err) &&
        yyjson_is_obj(parsed))
        return parsed;
    if (yyjson_obj_size(properties) != 1)
        return NULL;
    yyjson_obj_iter it = yyjson_obj_iter_with(properties);
    yyjson_val *key = yyjson_obj_iter_next(&it), *schema = yyjson_obj_iter_get_val(key);
    bool is_text = !dgm_json_str_member(schema, "type").n ||
                   dgm_str_is(dgm_json_str_member(schema, "type"), "string");
    dgm_member member = {dgm_json_str(key),
                         is_text || !parsed ? dgm_json_make_string(a, text) : parsed};
    return dgm_json_object(a, &member, 1);
}

static void mcp_answer(struct llm_tool_call *c, dgm_llm_answer_kind kind, dgm_str text,
                       const dgm_json *value)
{
    const dgm_json *content = c->form ? form_content(c->arena, c->form, text, value) : NULL;
    if (kind == DGM_LLM_DECLINED)
        dgm_mcp_answer(c->mcp, DGM_MCP_DECLINE, NULL);
    else if (c->form && !content)
        dgm_mcp_answer(c->mcp, DGM_MCP_CANCEL, NULL); /* not an answer to this form */
    else
        dgm_mcp_answer(c->mcp, DGM_MCP_ACCEPT, content);
}

static const dgm_json *question_state(struct llm_tool_call *c)
{
    dgm_json_build b = dgm_json_build_start(c->arena);
    if (!c->mcp_state.n)
        return NULL;
    dgm_json_build_object(&b, NULL);
    dgm_json_build_str(&b, "mcp", c->mcp_state);
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

static void mcp_on_ask(void *user, const dgm_mcp_ask *ask)
{
    struct llm_tool_call *c = user;
    c->form =
        ask->kind == DGM_MCP_ASK_FORM && ask->schema ? dgm_json_copy(c->arena, ask->schema) : NULL;
    if (c->has_answer) { /* to this question, which was asked before a restart */
        c->has_answer = false;
        mcp_answer(c, c->answer_kind, c->answer_text, c->answer_value);
        return;
    }
    c->is_asking = true;
    dgm_llm_job_step(c->job, &(dgm_llm_event){.kind = DGM_LLM_TOOL_ASKS,
                                              .question = {.call_id = c->id,
                                                           .text = ask->message,
                                                           .schema = c->form,
                                                           .url = ask->url,
                                                           .state = question_state(c)}});
}

/* ---- ours ------------------------------------------------------------------------------------------------------------------ */

static void mcp_call(struct llm_tool_call *c, const dgm_json *arguments, dgm_str state)
{
    struct llm_job *j = c->job;
    dgm_mcp_call_options options = {
        .share_key = dgm_llm_mcp_share_key(j, c->setting->mcp, c->arena),
        .tool = c->name,
        .arguments = arguments,
        .call_id = c->key,
        .fence = j->run->input->fence,
        .traceparent = dgm_run_traceparent(c->arena, j->run->input->task_id, c->id),
        .state = state};
    c->mcp = dgm_mcp_call_start(
        c->setting->mcp, j->run->loop, &options,
        (dgm_mcp_call_handler){
            .on_result = mcp_on_result, .on_ask = mcp_on_ask, .on_state = mcp_on_state, .user = c});
}

void dgm_llm_mcp_start(struct llm_tool_call *c, const dgm_llm_tool_run *run)
{
    mcp_call(c, run->arguments, (dgm_str){0});
}

void dgm_llm_mcp_answer(struct llm_tool_call *c, const dgm_llm_answer *answer)
{
    dgm_str state = dgm_json_str_member(answer->state, "mcp");
    if (c->is_asking) {
        c->is_asking = false;
        mcp_answer(c, answer->kind, answer->text, answer->value);
    } else if (state.n) {
        c->has_answer = true;
        c->answer_kind = answer->kind;
        c->answer_text = dgm_arena_dup(c->arena, answer->text);
        c->answer_value = answer->value ? dgm_json_copy(c->arena, answer->value) : NULL;
        mcp_call(c, answer->arguments, state);
    } else {
        dgm_llm_job_tool_unknown(c->job, c->id);
    }
}

bool dgm_llm_mcp_stop(struct llm_tool_call *c)
{
    if (c->mcp && c->is_asking && !c->job->run->canceled && park(c))
        return false;
    if (c->mcp)
        dgm_mcp_call_cancel(c->mcp);
    c->mcp = NULL;
    return true;
}
