/*
 * loop.c - an agent loop in your own program: a language model with a tool, its events as they happen.
 *
 *     cc -std=c17 loop.c $(pkg-config --cflags --libs dragoman-agent) -o loop
 *
 * The model is the scripted one, which needs no key. For another, set base_url, model and api_key_env in the settings.
 */
#include <dragoman/agent.h>
#include <stdio.h>

static const char settings[] = "{\"base_url\": \"mock:\", \"tools\": [{\"exec\": {\"name\": "
                               "\"sales\", \"command\": [\"echo\", "
                               "\"15%\"], \"description\": \"growth of the sales\"}}]}";

static void print_text(const char *what, const dgm_parts *parts)
{
    for (size_t i = 0; i < parts->n; i++) {
        if (parts->at[i].kind == DGM_PART_TEXT && parts->at[i].content.n)
            printf("%s: %.*s\n", what, DGM_P(parts->at[i].content));
    }
}

/* Events are A2A events: a server sends `json` to its clients as it is, unless is_internal. */
static bool on_event(void *arg, const dgm_agent_event *event)
{
    const dgm_event *e = event->event;
    (void)arg;
    switch (e->kind) {
    case DGM_EVENT_TASK: printf("Task created in %.*s\n", DGM_P(e->task->context_id)); break;
    case DGM_EVENT_STATUS:
        if (e->status->status.state == DGM_STATE_COMPLETED && e->status->status.message)
            print_text("Result", &e->status->status.message->parts);
        break;
    case DGM_EVENT_ARTIFACT: print_text("Content chunk", &e->artifact->artifact.parts); break;
    case DGM_EVENT_INTERNAL: /* for debugging, metrics and tracing */
        if (e->internal->kind == DGM_INTERNAL_TOOL_START)
            printf("(calls the tool %.*s)\n", DGM_P(e->internal->tool_name));
        break;
    default: break;
    }
    return true; /* false: stop reading; the task goes on */
}

int main(void)
{
    dgm_agent_loop_options options = {.size = sizeof options,
                                      .settings = {settings, sizeof settings - 1}};
    dgm_agent_execute_options how = {.size = sizeof how, .context_id = DGM_STR("ctx-456")};
    dgm_agent_loop *loop = NULL;
    dgm_err *err = dgm_err_new();
    dgm_code rc = dgm_agent_loop_new(&options, &loop, err);
    if (!rc)
        rc = dgm_agent_loop_execute(
            loop, DGM_STR("call sales {} then echo Based on the analysis, sales increased 15%"),
            &how, on_event, NULL, err);
    if (rc)
        fprintf(stderr, "%s: %s\n", dgm_code_name(rc), dgm_err_message(err));
    dgm_agent_loop_free(loop);
    dgm_err_free(err);
    return rc ? 1 : 0;
}
