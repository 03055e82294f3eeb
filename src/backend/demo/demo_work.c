/*
 * backend/demo/demo_work.c - scripts that show how an agent works: tools, state, thoughts, helpers, costs.
 *
 * A2A's clients see their answers, and the indicators; what is internal reaches those whose protocols have
 * words for it.
 */
#include "backend/demo/demo_int.h"

#include <ctype.h>

#define LLM_CALL                                                                                   \
    {                                                                                              \
        .op = DEMO_TELL, .kind = DGM_INTERNAL_LLM_CALL                                             \
    }
#define TOOL_START(id, tool, arguments)                                                            \
    {                                                                                              \
        .op = DEMO_TELL, .kind = DGM_INTERNAL_TOOL_START, .call_id = (id), .name = (tool),         \
        .text = (arguments)                                                                        \
    }
#define TOOL_COMPLETE(id, tool, result)                                                            \
    {                                                                                              \
        .op = DEMO_TELL, .wait = 200, .kind = DGM_INTERNAL_TOOL_COMPLETE, .call_id = (id),         \
        .name = (tool), .text = (result)                                                           \
    }

/* ---- tools ----------------------------------------------------------------------------------------------- */

const struct demo_step dgm_demo_tools[] = {
    {.op = DEMO_WORKING},
    LLM_CALL,
    TOOL_START("call-weather", "get_weather", "{\"location\":\"Oakland\"}"),
    TOOL_COMPLETE("call-weather", "get_weather", "\"Sunny, 72°F\""),
    LLM_CALL,
    {.op = DEMO_TEXT, .wait = 40, .text = "It is sunny in Oakland, 72°F."},
    {.op = DEMO_END},
};

const struct demo_step dgm_demo_parallel_tools[] = {
    {.op = DEMO_WORKING},
    LLM_CALL,
    TOOL_START("call-weather", "get_weather", "{\"location\":\"Oakland\"}"),
    TOOL_START("call-time", "get_time", "{\"zone\":\"America/Los_Angeles\",\"seconds\":false}"),
    /* the second is done first */
    TOOL_COMPLETE("call-time", "get_time", "{\"time\":\"09:41\"}"),
    TOOL_COMPLETE("call-weather", "get_weather", "\"Sunny, 72°F\""),
    LLM_CALL,
    {.op = DEMO_TEXT, .wait = 40, .text = "It is 09:41 in Oakland, sunny, 72°F."},
    {.op = DEMO_END},
};

const struct demo_step dgm_demo_client_tool[] = {
    {.op = DEMO_WORKING},
    {.op = DEMO_CALL,
     .wait = 100,
     .call_id = "call-weather",
     .name = "get_weather",
     .text = "{\"location\":\"Oakland\"}"},
};

static yyjson_val *first_of(const dgm_parts *parts, const char *member)
{
    for (size_t i = 0; i < parts->n; i++) {
        yyjson_val *list = parts->at[i].kind == DGM_PART_DATA
                               ? dgm_json_get(parts->at[i].data, dgm_str_from(member))
                               : NULL;
        if (yyjson_is_arr(list) && yyjson_arr_size(list))
            return yyjson_arr_get_first(list);
    }
    return NULL;
}

bool dgm_demo_requested_tool(const dgm_task *task)
{
    return task->status.message && first_of(&task->status.message->parts, "tool_calls");
}

dgm_str dgm_demo_after_client_tool(const dgm_run *run, dgm_str rest)
{
    yyjson_val *result = first_of(&run->input->message->parts, "tool_results");
    yyjson_val *output = result ? dgm_json_get(result, DGM_STR("output")) : NULL;
    if (yyjson_is_str(output))
        return dgm_arena_printf(run->arena, "Your tool says: %.*s", DGM_P(dgm_json_str(output)));
    if (!output)
        return dgm_arena_printf(run->arena, "You ran no tool, but you say: %.*s", DGM_P(rest));
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_json_put(&b, output);
    dgm_str text = dgm_arena_printf(run->arena, "Your tool says: %.*s", DGM_P(dgm_buf_str(&b)));
    dgm_buf_done(&b);
    return text;
}

/* Another in every task: within a conversation a call is known by its id. */
static dgm_str call_id(const dgm_run *run, const char *name)
{
    dgm_str task = run->input->task_id;
    size_t n = task.n < 12 ? task.n : 12;
    return dgm_arena_printf(run->arena, "%s-%.*s", name, (int)n, task.p + task.n - n);
}

dgm_code dgm_demo_call(dgm_run *run, const struct demo_step *step, dgm_err *err)
{
    dgm_str data = dgm_arena_printf(
        run->arena, "{\"tool_calls\":[{\"call_id\":\"%.*s\",\"name\":\"%s\",\"arguments\":%s}]}",
        DGM_P(call_id(run, step->call_id)), step->name, step->text);
    dgm_part part = {.kind = DGM_PART_DATA, .data = dgm_json_parse_trusted(run->arena, data)};
    dgm_message message = {.role = DGM_ROLE_AGENT, .parts = {&part, 1}};
    dgm_status_update update = {.status = {.state = DGM_STATE_INPUT_REQUIRED, .message = &message}};
    dgm_event event = {.kind = DGM_EVENT_STATUS, .status = &update};
    return run->ops->emit(run, &event, err);
}

/* ---- what others see of the work ---------------------------------------------------------------------------- */

#define STATE(key, value)                                                                          \
    {                                                                                              \
        .op = DEMO_TELL, .wait = 200, .kind = DGM_INTERNAL_STATE, .name = (key), .text = (value)   \
    }

const struct demo_step dgm_demo_state[] = {
    {.op = DEMO_WORKING},
    STATE(NULL, "{\"recipe\":\"pancakes\",\"servings\":2,\"steps\":[]}"),
    STATE("servings", "4"),
    STATE("steps", "[\"mix\",\"bake\"]"),
    {.op = DEMO_TEXT, .wait = 40, .text = "The recipe is for four now, and has two steps."},
    {.op = DEMO_END},
};

#define THINK(words)                                                                               \
    {                                                                                              \
        .op = DEMO_TELL, .wait = 40, .kind = DGM_INTERNAL_REASONING, .text = (words)               \
    }

const struct demo_step dgm_demo_reasoning[] = {
    {.op = DEMO_WORKING},
    THINK("The user wants to see me think. "),
    THINK("So I think of something: "),
    THINK("17 is prime, because 2, 3 and 4 do not divide it."),
    {.op = DEMO_TEXT, .wait = 40, .text = "17 is a prime number."},
    {.op = DEMO_END},
};

const struct demo_step dgm_demo_usage[] = {
    {.op = DEMO_WORKING},
    {.op = DEMO_TEXT, .wait = 40, .text = "This answer cost 12 tokens in and 9 out."},
    {.op = DEMO_TELL,
     .kind = DGM_INTERNAL_USAGE,
     .text = "{\"provider\":\"demo\",\"model\":\"demo-1\",\"inputTokens\":12,\"outputTokens\":9,"
             "\"totalTokens\":21,\"reasoningTokens\":3,\"cachedInputTokens\":4}"},
    {.op = DEMO_END},
};

const struct demo_step dgm_demo_subagent[] = {
    {.op = DEMO_WORKING},
    {.op = DEMO_INVOKE, .name = "researcher", .text = "Asking the researcher"},
    {.op = DEMO_INVOKE, .wait = 300, .name = "researcher", .text = "The researcher has answered"},
    {.op = DEMO_TEXT, .wait = 40, .text = "The researcher says that all is well."},
    {.op = DEMO_END},
};

dgm_code dgm_demo_emit(dgm_run *run, const struct demo_step *step, dgm_err *err)
{
    dgm_internal it = {.kind = step->kind, .tool_call_id = {0}};
    dgm_str text = step->text ? dgm_str_from(step->text) : (dgm_str){0};
    const dgm_json *value = NULL;
    if (step->kind == DGM_INTERNAL_REASONING)
        it.text = text;
    else if (text.p)
        value = dgm_json_parse_trusted(run->arena, text);
    if (step->call_id)
        it.tool_call_id = call_id(run, step->call_id);
    switch (step->kind) {
    case DGM_INTERNAL_TOOL_START:
        it.tool_name = dgm_str_from(step->name);
        it.arguments = value;
        break;
    case DGM_INTERNAL_TOOL_COMPLETE:
        it.success = DGM_TRUE;
        it.result = value;
        break;
    case DGM_INTERNAL_LLM_CALL: it.iteration = (dgm_opt_int){true, 1}; break;
    default:
        it.name = step->name ? dgm_str_from(step->name) : (dgm_str){0};
        it.value = value;
        break;
    }
    dgm_event event = {.kind = DGM_EVENT_INTERNAL, .internal = &it};
    return run->ops->emit(run, &event, err);
}

dgm_code dgm_demo_invoke(dgm_run *run, const struct demo_step *step, dgm_err *err)
{
    dgm_str data = dgm_arena_printf(
        run->arena,
        "{\"type\":\"status-indicator\",\"text\":\"%s\",\"displayAs\":\"loading\",\"agent\":"
        "{\"name\":\"%s\",\"url\":\"https://example.com/%s\"}}",
        step->text, step->name, step->name);
    dgm_part part = {.kind = DGM_PART_DATA, .data = dgm_json_parse_trusted(run->arena, data)};
    dgm_message message = {.role = DGM_ROLE_AGENT, .parts = {&part, 1}};
    dgm_status_update update = {.status = {.state = DGM_STATE_WORKING, .message = &message}};
    dgm_event event = {.kind = DGM_EVENT_STATUS, .status = &update};
    return run->ops->emit(run, &event, err);
}

/* ---- approval --------------------------------------------------------------------------------------------------- */

const char dgm_demo_interrupt_question[] = "May I delete the file old.txt? Answer yes or no.";

const struct demo_step dgm_demo_interrupt[] = {
    {.op = DEMO_WORKING},
    {.op = DEMO_APPROVE, .wait = 100, .text = dgm_demo_interrupt_question, .name = "delete_file"},
};

dgm_code dgm_demo_approve(dgm_run *run, const struct demo_step *step, dgm_err *err)
{
    dgm_str data = dgm_arena_printf(run->arena,
                                    "{\"type\":\"approval-request\",\"id\":\"approval-1\","
                                    "\"tool\":\"%s\",\"arguments\":{\"path\":\"old.txt\"}}",
                                    step->name);
    dgm_part parts[] = {
        {.kind = DGM_PART_TEXT, .content = dgm_str_from(step->text)},
        {.kind = DGM_PART_DATA, .data = dgm_json_parse_trusted(run->arena, data)},
    };
    dgm_message message = {.role = DGM_ROLE_AGENT, .parts = {parts, 2}};
    dgm_status_update update = {.status = {.state = DGM_STATE_INPUT_REQUIRED, .message = &message}};
    dgm_event event = {.kind = DGM_EVENT_STATUS, .status = &update};
    return run->ops->emit(run, &event, err);
}

/* Words, or data {"approved": true} as forms send it. */
dgm_str dgm_demo_after_interrupt(const dgm_run *run, dgm_str rest)
{
    const dgm_parts *parts = &run->input->message->parts;
    bool yes = rest.n >= 3 && dgm_str_eq_nocase((dgm_str){rest.p, 3}, DGM_STR("yes")) &&
               (rest.n == 3 || !isalpha((unsigned char)rest.p[3]));
    for (size_t i = 0; i < parts->n; i++) {
        if (parts->at[i].kind == DGM_PART_DATA &&
            yyjson_is_true(dgm_json_get(parts->at[i].data, DGM_STR("approved"))))
            yes = true;
    }
    return yes ? DGM_STR("You said yes. Consider the file old.txt deleted.")
               : DGM_STR("You did not say yes. The file old.txt stays.");
}

/* ---- files of the user ------------------------------------------------------------------------------------------- */

const struct demo_step dgm_demo_files[] = {
    {.op = DEMO_WORKING},
    {.op = DEMO_RETURN, .wait = 100},
    {.op = DEMO_TEXT, .wait = 40},
    {.op = DEMO_END},
};

static bool is_file(const dgm_part *p)
{
    return p->kind == DGM_PART_RAW || p->kind == DGM_PART_URL;
}

dgm_str dgm_demo_files_text(const dgm_run *run, dgm_str rest)
{
    const dgm_parts *parts = &run->input->message->parts;
    size_t n = 0;
    dgm_buf b;
    (void)rest;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < parts->n; i++) {
        const dgm_part *p = &parts->at[i];
        if (!is_file(p))
            continue;
        dgm_buf_printf(&b, "\n%zu. %.*s (%.*s)", ++n,
                       DGM_P(p->filename.n ? p->filename : DGM_STR("a file without a name")),
                       DGM_P(p->media_type.n ? p->media_type : DGM_STR("of unknown type")));
    }
    dgm_str text = n ? dgm_arena_printf(run->arena, "Files that came with your message: %zu.%.*s",
                                        n, DGM_P(dgm_buf_str(&b)))
                     : DGM_STR("No file came with your message.");
    dgm_buf_done(&b);
    return text;
}

dgm_code dgm_demo_return(dgm_run *run, dgm_err *err)
{
    const dgm_parts *parts = &run->input->message->parts;
    dgm_code rc = DGM_OK;
    for (size_t i = 0, n = 0; !rc && i < parts->n; i++) {
        dgm_part part = parts->at[i];
        if (!is_file(&part))
            continue;
        dgm_str id = dgm_arena_printf(run->arena, "file-%zu", ++n);
        rc = dgm_run_artifact(run, id, part.filename, (dgm_parts){&part, 1}, err);
    }
    return rc;
}
