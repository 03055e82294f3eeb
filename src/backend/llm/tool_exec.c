/*
 * backend/llm/tool_exec.c - a tool that is a program: the arguments as JSON on its stdin, the result from its stdout.
 *
 * It is started without a shell, in its own process group, with the environment that programs of exec agents get.
 */
#include "backend/llm/tool_int.h"
#include "backend/program.h"
#include "base/limits.h"

#include <signal.h>
#include <stdio.h>

#define GRACE_MS 500 /* from SIGTERM to SIGKILL: a canceled call is over within a second */
#define SHOWN_BYTES ((size_t)4000) /* of the output of a program that failed */

struct exec_settings {
    dgm_tool_settings common;
    dgm_program_settings program;
    int64_t max_processes;
};

#define AT(member) offsetof(struct exec_settings, member)
const dgm_setting dgm_tool_exec_settings[] = {
    DGM_TOOL_SETTINGS(struct exec_settings, common),
    {"command", DGM_SETTING_COMMAND, AT(program.command), .required = true,
     .about = "the program and its arguments, as a list. There is no shell"},
    DGM_PROGRAM_SETTINGS(struct exec_settings, program),
    {"max_processes", DGM_SETTING_INT, AT(max_processes), .min = 1, .max = 10000, .def = "64",
     .about = "how many of its processes may run at the same time; further calls fail"},
    {0},
};
#undef AT

/* The data of the tool. */
struct exec_tool {
    dgm_program program;
    size_t max_processes;
    atomic_size_t n_running;
};

/* The data of a call. */
struct exec_call {
    dgm_process *process;
    dgm_buf out, errors;
    dgm_program_tail tail;
};

static void set_folder(dgm_program_settings *s, const dgm_agent_options *options, dgm_arena *a)
{
    if (!options || !options->folder.n || (s->cwd.n && s->cwd.p[0] == '/'))
        return;
    s->cwd = s->cwd.n ? dgm_arena_printf(a, "%.*s/%.*s", DGM_P(options->folder), DGM_P(s->cwd))
                      : options->folder;
}

static dgm_code tool_exec_open(dgm_tool *t, const dgm_json *config,
                               const dgm_agent_options *options, dgm_tool_settings *ret_settings,
                               dgm_err *err)
{
    struct exec_settings s = {.common = *ret_settings, .max_processes = DGM_MAX_PROCESSES};
    struct exec_tool *x = dgm_new(t->arena, struct exec_tool);
    dgm_code rc = dgm_settings_read(config, dgm_tool_exec_settings, &s, err);
    if (rc)
        return rc;
    if (!yyjson_is_arr((yyjson_val *)(uintptr_t)s.program.command))
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "command"),
                        "expected a list, got text: write [date, -u], tools are started without "
                        "a shell");
    set_folder(&s.program, options, t->arena);
    x->max_processes = (size_t)s.max_processes;
    t->data = x;
    *ret_settings = s.common;
    return dgm_program_open(&s.program, options, t->arena, &x->program, err);
}

/* ---- what it writes ---------------------------------------------------------------------------------------- */

static void on_tool_line(void *user, dgm_str line, dgm_line_end end)
{
    dgm_tool_call *c = user;
    struct exec_call *x = c->data;
    if (c->failure.n)
        return;
    dgm_buf_add_str(&x->out, line);
    if (end == DGM_LINE_WHOLE)
        dgm_buf_add_char(&x->out, '\n');
    if (!x->out.over)
        return;
    dgm_tool_set_failure(c,
                         dgm_arena_printf(c->arena,
                                          "The tool wrote more than %zu bytes (the limit "
                                          "tool_output_bytes) and was stopped.",
                                          (size_t)DGM_MAX_TOOL_OUTPUT_BYTES),
                         true);
    dgm_process_kill(x->process);
}

static void on_tool_error_line(void *user, dgm_str line, dgm_line_end end)
{
    dgm_tool_call *c = user;
    dgm_program_add_error_line(&((struct exec_call *)c->data)->errors, line, end);
}

/* ---- how it ends ------------------------------------------------------------------------------------------- */

static dgm_str exec_output(dgm_tool_call *c)
{
    struct exec_call *x = c->data;
    dgm_str text = dgm_program_clean_text(c->arena, &x->tail, dgm_buf_str(&x->out), true);
    while (text.n && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
        text.n--;
    return text;
}

/* The last bytes of a text, from the start of a line if there is one. */
static dgm_str last_bytes(dgm_str text, size_t n)
{
    if (text.n <= n)
        return text;
    text = (dgm_str){text.p + text.n - n, n};
    const char *line = memchr(text.p, '\n', text.n);
    return line ? (dgm_str){line + 1, (size_t)(text.p + text.n - line - 1)} : text;
}

static dgm_str failure_of(dgm_tool_call *c, const dgm_process_exit *how)
{
    struct exec_call *x = c->data;
    dgm_program_tail tail = {.n = 0};
    dgm_str errors = dgm_program_clean_text(c->arena, &tail, dgm_program_errors(&x->errors), true);
    dgm_str output = exec_output(c);
    dgm_str text =
        how->signal
            ? dgm_arena_printf(c->arena, "The tool was killed by signal %d (%s).", how->signal,
                               strsignal(how->signal))
            : dgm_arena_printf(c->arena, "The tool failed with exit status %d.", how->status);
    output = last_bytes(output, SHOWN_BYTES);
    if (errors.n)
        text = dgm_arena_printf(c->arena, "%.*s\nstderr:\n%.*s", DGM_P(text), DGM_P(errors));
    if (output.n)
        text = dgm_arena_printf(c->arena, "%.*s\nstdout:\n%.*s", DGM_P(text), DGM_P(output));
    return text;
}

static void on_tool_exit(void *user, dgm_process_exit how)
{
    dgm_tool_call *c = user;
    const struct exec_tool *tool = c->tool->data;
    struct exec_call *x = c->data;
    x->process = NULL;
    atomic_fetch_sub(&((struct exec_tool *)c->tool->data)->n_running, 1);
    if (!c->failure.n && how.killed) /* the loop stops */
        dgm_tool_set_failure(c, DGM_STR(DGM_SHUTTING_DOWN), true);
    if (!c->failure.n && how.status != 0) {
        dgm_tool_set_failure(c, failure_of(c, &how), how.signal != 0);
        if (tool->program.withheld.n)
            c->detail = dgm_arena_printf(
                c->arena,
                "environment variables that are not passed to it: %s (inherit_env passes them)",
                tool->program.withheld.p);
    }
    if (c->is_canceled)
        dgm_tool_call_end(c);
    else if (c->failure.n)
        dgm_tool_fail(c);
    else
        dgm_tool_finish_text(c, exec_output(c), true);
}

/* ---- starting ---------------------------------------------------------------------------------------------- */

static void free_buf(void *b)
{
    dgm_buf_done(b);
}

static void exec_feed_arguments(dgm_process *p, const dgm_json *arguments)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_json_put(&b, arguments);
    dgm_buf_add_char(&b, '\n');
    dgm_process_write(p, dgm_buf_str(&b));
    dgm_process_end_input(p);
    dgm_buf_done(&b);
}

/* True: the process is counted. */
static bool exec_enter(struct exec_tool *tool)
{
    if (atomic_fetch_add(&tool->n_running, 1) < tool->max_processes)
        return true;
    atomic_fetch_sub(&tool->n_running, 1);
    return false;
}

static void tool_exec_start(dgm_tool_call *c, const dgm_tool_input *input)
{
    struct exec_tool *tool = c->tool->data;
    struct exec_call *x = dgm_new(c->arena, struct exec_call);
    dgm_process_options options = {
        .argv = tool->program.argv,
        .env = dgm_program_env(&tool->program, input->run, input->key, c->arena),
        .cwd = tool->program.cwd,
        .max_line_bytes = DGM_MAX_TEXT_CHUNK_BYTES,
        .grace_ms = GRACE_MS,
    };
    dgm_process_handler handler = {on_tool_line, on_tool_error_line, on_tool_exit, c};
    dgm_err err = {0};
    if (!exec_enter(tool)) {
        dgm_tool_set_failure(
            c, DGM_STR("Too many calls of this tool are running. Try again later."), false);
        dgm_tool_fail_later(c);
        return;
    }
    if (dgm_process_start(c->loop, &options, handler, &x->process, &err)) {
        atomic_fetch_sub(&tool->n_running, 1);
        dgm_tool_set_failure(c, DGM_STR("The program of this tool could not be started."), false);
        c->detail = dgm_arena_dup(c->arena, dgm_str_from(err.msg));
        dgm_tool_fail_later(c);
        return;
    }
    dgm_buf_init(&x->out, DGM_MAX_TOOL_OUTPUT_BYTES);
    dgm_buf_init(&x->errors, SIZE_MAX);
    dgm_arena_defer(c->arena, free_buf, &x->out);
    dgm_arena_defer(c->arena, free_buf, &x->errors);
    c->data = x;
    exec_feed_arguments(x->process, input->arguments);
}

static void exec_stop(dgm_tool_call *c)
{
    struct exec_call *x = c->data;
    dgm_timer_stop(&c->timer);
    if (x->process) /* on_tool_exit follows */
        dgm_process_kill(x->process);
}

const dgm_tool_kind dgm_tool_exec = {
    .name = "exec",
    .settings = dgm_tool_exec_settings,
    .open = tool_exec_open,
    .start = tool_exec_start,
    .cancel = exec_stop,
    .on_timeout = exec_stop,
};
