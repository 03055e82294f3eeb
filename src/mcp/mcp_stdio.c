/*
 * mcp/mcp_stdio.c - the transport to a program: one JSON-RPC message per line.
 *
 * The program is not trusted to behave: lines have a limit, so has what it does not read, and it is ended by SIGTERM and
 * SIGKILL if it stays after the end of its input.
 */
#include "mcp/mcp_int.h"

static void stdio_on_line(void *user, dgm_str line, dgm_line_end end)
{
    struct mcp_session *s = user;
    if (s->state == MCP_DOWN || s->state == MCP_CLOSING)
        return;
    if (end == DGM_LINE_CUT) {
        dgm_mcp_session_fail(s, DGM_TOO_LARGE,
                             "it wrote a line that is longer than the limit record_bytes");
        return;
    }
    while (line.n && (line.p[line.n - 1] == '\r' || line.p[line.n - 1] == ' '))
        line.n--;
    if (!line.n)
        return;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new_small(line.n < 8192 ? 8192 : 65536);
    if (dgm_mcp_receive(s, a, line, NULL, 0))
        return;
    if (++s->n_bad_lines > DGM_MAX_MCP_BAD_LINES)
        dgm_mcp_session_fail(s, DGM_UNAVAILABLE,
                             "it wrote more than %d lines that are not JSON-RPC messages",
                             DGM_MAX_MCP_BAD_LINES);
    else
        dgm_mcp_log(s->mcp, "MCP server %.*s: a line of its output is not a JSON-RPC message: %.*s",
                    DGM_P(s->mcp->config.name), (int)(line.n < 200 ? line.n : 200), line.p);
}

static void stdio_on_error_line(void *user, dgm_str line, dgm_line_end end)
{
    struct mcp_session *s = user;
    (void)end;
    if (line.n && s->n_error_lines++ < DGM_MAX_STDERR_LINES)
        dgm_mcp_log(s->mcp, "MCP server %.*s: stderr: %.*s", DGM_P(s->mcp->config.name),
                    (int)(line.n < 800 ? line.n : 800), line.p);
}

static void stdio_on_exit(void *user, dgm_process_exit how)
{
    struct mcp_session *s = user;
    s->process = NULL;
    if (s->state != MCP_CLOSING) { /* its own decision: what it had in hand is lost */
        if (how.signal)
            dgm_mcp_session_fail(s, DGM_UNAVAILABLE, "the program was ended by signal %d",
                                 how.signal);
        else
            dgm_mcp_session_fail(s, DGM_UNAVAILABLE, "the program ended with exit status %d",
                                 how.status);
        return;
    }
    dgm_mcp_session_exited(s);
}

dgm_code dgm_mcp_stdio_start(struct mcp_session *s, dgm_err *err)
{
    const dgm_mcp_config *c = &s->mcp->config;
    dgm_process_options options = {
        .argv = c->argv,
        .env = c->env,
        .cwd = c->cwd,
        .max_line_bytes = DGM_MAX_RECORD_BYTES,
        .grace_ms = c->grace_ms,
    };
    s->n_bad_lines = s->n_error_lines = 0;
    return dgm_process_start(
        s->loop, &options,
        (dgm_process_handler){stdio_on_line, stdio_on_error_line, stdio_on_exit, s}, &s->process,
        err);
}

void dgm_mcp_stdio_write(struct mcp_session *s, dgm_str message)
{
    if (!s->process)
        return;
    dgm_process_write(s->process, message);
    dgm_process_write(s->process, DGM_STR("\n"));
    if (dgm_process_backlog(s->process) > DGM_MAX_MCP_UNREAD_BYTES)
        dgm_mcp_session_fail(s, DGM_UNAVAILABLE,
                             "it does not read its input (limit mcp_unread_bytes)");
}

void dgm_mcp_stdio_stop(struct mcp_session *s, bool at_once)
{
    if (!s->process)
        return;
    if (at_once)
        dgm_process_kill(s->process);
    else
        dgm_process_end_input(s->process);
}
