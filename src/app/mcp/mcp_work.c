/* app/mcp/mcp_work.c - see mcp_work.h. */
#include "app/mcp/mcp_work.h"

#include <signal.h>
#include <stdio.h>

dgm_code dgm_mcp_work_start(dgm_mcp_work *w, dgm_mcp *mcp, dgm_err *err)
{
    dgm_code rc;
    signal(SIGPIPE, SIG_IGN); /* a program may close its input at any time */
    w->mcp = mcp;
    w->arena = dgm_arena_new();
    uv_sem_init(&w->done, 0);
    if ((rc = dgm_loops_new(1, &w->loops, err)) || (rc = dgm_loops_start(w->loops, err)))
        dgm_mcp_work_stop(w);
    return rc;
}

void dgm_mcp_work_stop(dgm_mcp_work *w)
{
    dgm_mcp_close(w->mcp);
    dgm_loops_free(w->loops);
    uv_sem_destroy(&w->done);
    dgm_arena_free(w->arena);
}

static void work_fail(dgm_mcp_work *w, const dgm_mcp_error *error)
{
    w->error = *error;
    w->error.message = dgm_arena_dup(w->arena, error->message);
}

/* ---- lists -------------------------------------------------------------------------------------------- */

static void work_on_tools(void *user, const dgm_mcp_tools *tools, const dgm_mcp_error *error)
{
    dgm_mcp_work *w = user;
    if (error) {
        work_fail(w, error);
    } else {
        dgm_mcp_tool *copy = dgm_new_n(w->arena, dgm_mcp_tool, tools->n);
        for (size_t i = 0; i < tools->n; i++) {
            copy[i] = tools->at[i];
            copy[i].name = dgm_arena_dup(w->arena, copy[i].name);
            copy[i].own_name = dgm_arena_dup(w->arena, copy[i].own_name);
            copy[i].title = dgm_arena_dup(w->arena, copy[i].title);
            copy[i].description = dgm_arena_dup(w->arena, copy[i].description);
            copy[i].input_schema = dgm_json_copy(w->arena, copy[i].input_schema);
            copy[i].output_schema = NULL;
        }
        w->tools = (dgm_mcp_tools){copy, tools->n, tools->version};
    }
    uv_sem_post(&w->done);
}

static void work_list(void *arg)
{
    dgm_mcp_work *w = arg;
    dgm_mcp_list(w->mcp, dgm_loops_at(w->loops, 0), (dgm_str){0},
                 (dgm_mcp_tools_handler){work_on_tools, w});
}

bool dgm_mcp_work_list(dgm_mcp_work *w)
{
    w->error = (dgm_mcp_error){0};
    w->tools = (dgm_mcp_tools){0};
    dgm_loop_post(dgm_loops_at(w->loops, 0), work_list, w);
    uv_sem_wait(&w->done);
    return !w->error.code;
}

/* ---- calls -------------------------------------------------------------------------------------------- */

static void work_on_result(void *user, const dgm_mcp_result *result, const dgm_mcp_error *error)
{
    dgm_mcp_work *w = user;
    if (error) {
        work_fail(w, error);
    } else {
        dgm_part *parts = dgm_new_n(w->arena, dgm_part, result->parts.n);
        for (size_t i = 0; i < result->parts.n; i++) {
            parts[i] = result->parts.at[i];
            parts[i].content = dgm_arena_dup(w->arena, parts[i].content);
            parts[i].media_type = dgm_arena_dup(w->arena, parts[i].media_type);
            parts[i].filename = dgm_arena_dup(w->arena, parts[i].filename);
            parts[i].data = parts[i].data ? dgm_json_copy(w->arena, parts[i].data) : NULL;
        }
        w->result = (dgm_mcp_result){
            .parts = {parts, result->parts.n},
            .structured = result->structured ? dgm_json_copy(w->arena, result->structured) : NULL,
            .is_error = result->is_error,
        };
    }
    uv_sem_post(&w->done);
}

static void work_on_ask(void *user, const dgm_mcp_ask *ask)
{
    dgm_mcp_work *w = user;
    const char *answer = w->on_ask ? w->on_ask(w->user, ask) : NULL;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    yyjson_val *content = NULL;
    dgm_err err = {0};
    if (answer && dgm_json_read(a, dgm_str_from(answer), DGM_MAX_RECORD_BYTES, "record_bytes",
                                &content, &err)) {
        fprintf(stderr, "dragoman: the answer is not JSON: %s\n", err.msg);
        answer = NULL;
    }
    dgm_mcp_answer(w->call, answer ? DGM_MCP_ACCEPT : DGM_MCP_DECLINE, content);
}

static void work_on_progress(void *user, const dgm_mcp_progress *p)
{
    dgm_mcp_work *w = user;
    if (w->shows_progress && p->message.n)
        fprintf(stderr, "%.*s\n", DGM_P(p->message));
    else if (w->shows_progress && p->total > 0)
        fprintf(stderr, "%g of %g\n", p->done, p->total);
}

static void work_call(void *arg)
{
    dgm_mcp_work *w = arg;
    w->call = dgm_mcp_call_start(w->mcp, dgm_loops_at(w->loops, 0), &w->options,
                                 (dgm_mcp_call_handler){.on_result = work_on_result,
                                                        .on_ask = work_on_ask,
                                                        .on_progress = work_on_progress,
                                                        .user = w});
}

bool dgm_mcp_work_call(dgm_mcp_work *w, dgm_str tool, const dgm_json *arguments)
{
    w->error = (dgm_mcp_error){0};
    w->result = (dgm_mcp_result){0};
    w->options = (dgm_mcp_call_options){.tool = tool, .arguments = arguments};
    dgm_loop_post(dgm_loops_at(w->loops, 0), work_call, w);
    uv_sem_wait(&w->done);
    return !w->error.code;
}
