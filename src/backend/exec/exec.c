/*
 * backend/exec/exec.c - any program as an agent: the message goes to its stdin, events come from its
 * stdout, its exit status says how it went.
 *
 * A program is not trusted to behave. It may crash, hang, write garbage or write without end, not read,
 * leave children behind: each of these ends as a failed task with a sentence safe for callers; what
 * exactly happened goes to the operator's log. The run ends when the process is gone, never before.
 */
#include "backend/exec/exec_int.h"
#include "base/limits.h"
#include "net/process.h"

#include <stdio.h>
#include <stdlib.h>

static const char card[] =
    "{\"name\":\"Program\",\"description\":\"A program that answers "
    "messages.\",\"skills\":[{\"id\":"
    "\"answer\",\"name\":\"Answer\",\"description\":\"Answers what is written to it.\",\"tags\":["
    "\"exec\"]}]}";

#define FULL_MS 5 /* how soon we look again whether the log has room */

struct job {
    dgm_run *run;
    struct exec *exec;
    struct exec_share *share;
    dgm_process *process;
    dgm_timer timeout, room;
    dgm_arena *scratch; /* of one line */
    struct exec_events events;
    size_t n_lines, n_error_lines;
    dgm_buf error_tail;          /* the end of stderr, up to twice DGM_MAX_STDERR_TAIL_BYTES */
    dgm_str fault, fault_detail; /* the first one, in the run's arena; reported when all is read */
    /* output: text */
    dgm_program_tail tail;
    bool in_text, owes_newline;
};

/* ---- reporting ------------------------------------------------------------------------------------------- */

static void store_fault(struct job *j, const char *what, const char *detail)
{
    if (j->fault.n)
        return;
    j->fault = dgm_arena_dup(j->run->arena, dgm_str_from(what));
    j->fault_detail = dgm_arena_dup(j->run->arena, dgm_str_from(detail));
}

/* The program did something wrong: safe goes to callers, detail to the log. */
static void exec_fail(struct job *j, const char *safe, const char *detail)
{
    if (!j->events.settled)
        store_fault(j, safe, detail);
    dgm_exec_events_settle(&j->events, DGM_STATE_FAILED, safe);
    if (j->process)
        dgm_process_kill(j->process);
}

static uint64_t ms(double seconds)
{
    return (uint64_t)(seconds * 1000);
}

/* ---- what it writes -------------------------------------------------------------------------------------- */

static void wait_for_room(struct job *j)
{
    if (j->events.settled || !j->run->ops->is_full(j->run))
        return;
    dgm_process_pause(j->process);
    dgm_timer_start(&j->room, FULL_MS);
}

static void on_room(void *arg)
{
    struct job *j = arg;
    if (!j->events.settled && !j->run->canceled && j->run->ops->is_full(j->run))
        dgm_timer_start(&j->room, FULL_MS);
    else
        dgm_process_resume(j->process);
}

/* Its output is complete: it has this long to exit. */
static void check_settled(struct job *j)
{
    if (j->events.settled)
        dgm_timer_start(&j->timeout, ms(j->exec->grace) + 1);
}

static void on_json(struct job *j, dgm_str line, dgm_line_end end)
{
    dgm_event event;
    dgm_err err = {0};
    char safe[200];
    if (end == DGM_LINE_CUT) {
        exec_fail(j, "the agent wrote a line longer than the limit record_bytes", "");
        return;
    }
    j->n_lines++;
    if (dgm_text_trim(line).n == 0)
        return;
    if (dgm_exec_read_event(j->scratch, &j->events.mint, dgm_loop_unix_ms(), line, &event, &err)) {
        char detail[800];
        bool is_object = dgm_text_trim(line).p[0] == '{', is_json = err.code != DGM_PARSE;
        snprintf(detail, sizeof detail, "%s%s%s, in: %.*s", err.at, *err.at ? ": " : "", err.msg,
                 (int)(line.n < 200 ? line.n : 200), line.p);
        snprintf(safe, sizeof safe, "line %zu of the agent's output is not %s", j->n_lines,
                 is_json && is_object ? "an A2A event"
                 : is_json            ? "a JSON object (if it writes plain text, set output: text)"
                                      : "JSON (if it writes plain text, set output: text)");
        exec_fail(j, safe, detail);
    } else if (j->run->ops->emit(j->run, &event, &err)) {
        snprintf(safe, sizeof safe, "line %zu of the agent's output is an invalid event",
                 j->n_lines);
        exec_fail(j, safe, err.msg);
    } else {
        dgm_exec_events_note(&j->events, &event);
        check_settled(j);
    }
}

static void on_text(struct job *j, dgm_str line, dgm_line_end end)
{
    dgm_err err = {0};
    dgm_code rc = DGM_OK;
    dgm_str text = dgm_program_clean_text(j->scratch, &j->tail, line, end != DGM_LINE_CUT);
    /* a newline is emitted with the text that follows it, so that an answer does not end with one */
    if (j->owes_newline)
        text = dgm_arena_printf(j->scratch, "\n%.*s", DGM_P(text));
    j->owes_newline = end == DGM_LINE_WHOLE;
    if (text.n == 0)
        return;
    if (!j->in_text)
        rc = dgm_run_status(j->run, DGM_STATE_WORKING, (dgm_str){0}, &err);
    if (!rc)
        rc = dgm_run_chunk(j->run, DGM_STR(DGM_ANSWER_ID), (dgm_str){0}, text, j->in_text, false,
                           &err);
    if (rc) {
        exec_fail(j, "the agent's answer cannot be used", err.msg);
        return;
    }
    if (!j->in_text)
        dgm_exec_events_open_text(&j->events, DGM_STR(DGM_ANSWER_ID));
    j->in_text = true;
}

static void on_line(void *user, dgm_str line, dgm_line_end end)
{
    struct job *j = user;
    if (j->events.settled)
        return;
    dgm_arena_reset(j->scratch);
    if (j->exec->output == EXEC_TEXT)
        on_text(j, line, end);
    else
        on_json(j, line, end);
    wait_for_room(j);
}

static void on_error_line(void *user, dgm_str line, dgm_line_end end)
{
    struct job *j = user;
    dgm_program_add_error_line(&j->error_tail, line, end);
    if (++j->n_error_lines < DGM_MAX_STDERR_LINES)
        dgm_run_note(j->run, "stderr: %.*s", (int)(line.n < 900 ? line.n : 900), line.p);
    else if (j->n_error_lines == DGM_MAX_STDERR_LINES)
        dgm_run_note(j->run, "stderr: more than the limit stderr_lines of %d, the rest is dropped",
                     DGM_MAX_STDERR_LINES);
}

/* ---- how it ends ----------------------------------------------------------------------------------------- */

static void on_room_closed(void *arg)
{
    struct job *j = arg;
    dgm_arena_free(j->scratch);
    free(j);
}

static void on_timeout_closed(void *arg)
{
    struct job *j = arg;
    dgm_timer_close(&j->room, on_room_closed, j);
}

static void exec_finish(struct job *j)
{
    dgm_run *run = j->run;
    dgm_exec_share_leave(j->exec, j->share);
    if (j->fault.n)
        dgm_run_report(
            run, &(dgm_run_fault){j->fault, j->fault_detail, dgm_program_errors(&j->error_tail)});
    dgm_buf_done(&j->error_tail);
    dgm_timer_stop(&j->room);
    dgm_timer_close(&j->timeout, on_timeout_closed, j);
    run->ops->end(run, NULL); /* the result was emitted before */
}

static void on_exit_(void *user, dgm_process_exit how)
{
    struct job *j = user;
    char safe[120], late[160];
    const char *withheld = "";
    j->process = NULL;
    if (j->exec->program.withheld.n) /* a program that lacks one of them often fails */
        withheld =
            dgm_arena_printf(
                j->run->arena,
                "environment variables that are not passed to it: %s (inherit_env passes them)",
                j->exec->program.withheld.p)
                .p;
    if (how.signal)
        snprintf(safe, sizeof safe, "the agent was killed by signal %d (%s)", how.signal,
                 strsignal(how.signal));
    else
        snprintf(safe, sizeof safe, "the agent ended with exit status %d", how.status);
    bool has_answer = j->events.settled || dgm_state_is_interrupted(j->events.state);
    if (has_answer && how.status != 0 && !how.killed) {
        snprintf(late, sizeof late, "%s, after its answer", safe);
        store_fault(j, late, withheld);
    }
    if (j->run->canceled)
        dgm_exec_events_settle(&j->events, DGM_STATE_CANCELED, NULL);
    else if (has_answer)
        ; /* if it asked: the next message starts it again */
    else if (how.status == 0)
        dgm_exec_events_settle(&j->events, DGM_STATE_COMPLETED, NULL);
    else
        exec_fail(j, how.killed ? DGM_SHUTTING_DOWN : safe, how.killed ? "" : withheld);
    exec_finish(j);
}

static void on_timeout(void *arg)
{
    struct job *j = arg;
    char safe[80];
    snprintf(safe, sizeof safe, "the agent took longer than %g seconds", j->exec->timeout);
    exec_fail(j, safe, ""); /* settled: it only has to go */
}

/* ---- starting -------------------------------------------------------------------------------------------- */

static void exec_feed(struct job *j)
{
    dgm_buf in;
    dgm_buf_init(&in, SIZE_MAX);
    dgm_exec_write_input(j->run, (enum exec_form)j->exec->input, &in);
    dgm_process_write(j->process, dgm_buf_str(&in));
    dgm_process_end_input(j->process);
    dgm_buf_done(&in);
    dgm_run_has_read(j->run);
}

/* A program that reads text cannot get a file: the caller has to know. True: the run has ended. */
static bool reject_files(dgm_run *run)
{
    dgm_parts parts = run->input->message->parts;
    dgm_err err = {0};
    for (size_t i = 0; i < parts.n; i++) {
        const dgm_part *p = &parts.at[i];
        if (p->kind != DGM_PART_RAW && p->kind != DGM_PART_URL)
            continue;
        dgm_str name = p->filename.n ? p->filename : DGM_STR("the file");
        dgm_str type = p->media_type.n ? p->media_type : DGM_STR("unknown type");
        dgm_str why = dgm_arena_printf(
            run->arena, "this agent accepts only text, not files: %.*s (%.*s) was not read",
            DGM_P(name), DGM_P(type));
        dgm_code rc = dgm_run_status(run, DGM_STATE_REJECTED, why, &err);
        run->ops->end(run, rc ? err.msg : NULL);
        return true;
    }
    return false;
}

static void refuse_busy(const struct exec *x, dgm_run *run, enum exec_room room)
{
    char detail[120];
    if (room == EXEC_AGENT_BUSY) {
        snprintf(detail, sizeof detail, "max_processes: %zu of its programs are running",
                 x->max_processes);
        dgm_exec_refuse(run, "the agent is busy, try again later", detail);
        return;
    }
    snprintf(detail, sizeof detail,
             "max_processes_per_principal: %zu of its programs are running for this caller",
             x->max_processes_per_principal);
    dgm_exec_refuse(
        run,
        "too many tasks of yours are running on this agent: wait for one to end, or cancel one",
        detail);
}

static void exec_start(void *agent, dgm_run *run)
{
    struct exec *x = agent;
    struct exec_share *share;
    dgm_err err = {0};
    if (x->pool) {
        dgm_exec_worker_start(x, run);
        return;
    }
    if (x->input == EXEC_TEXT && reject_files(run))
        return;
    enum exec_room room = dgm_exec_share_enter(x, run->input, &share);
    if (room != EXEC_ROOM) {
        refuse_busy(x, run, room);
        return;
    }
    struct job *j = dgm_xcalloc(1, sizeof *j);
    dgm_process_options options = {
        .argv = x->program.argv,
        .env = dgm_program_env(&x->program, run->input, (dgm_str){0}, run->arena),
        .cwd = x->program.cwd,
        .max_line_bytes = x->output == EXEC_TEXT ? DGM_MAX_TEXT_CHUNK_BYTES : DGM_MAX_RECORD_BYTES,
        .grace_ms = ms(x->grace),
    };
    j->run = run;
    j->exec = x;
    j->share = share;
    if (dgm_process_start(run->loop, &options,
                          (dgm_process_handler){on_line, on_error_line, on_exit_, j}, &j->process,
                          &err)) {
        dgm_exec_share_leave(x, share);
        free(j);
        dgm_exec_refuse(run, "the agent could not be started", err.msg);
        return;
    }
    j->scratch = dgm_arena_new();
    dgm_buf_init(&j->error_tail, SIZE_MAX);
    dgm_exec_events_init(&j->events, run, (uint64_t)dgm_process_pid(j->process) << 40);
    run->agent_data = j;
    dgm_timer_init(run->loop, &j->timeout, on_timeout, j);
    dgm_timer_init(run->loop, &j->room, on_room, j);
    dgm_timer_start(&j->timeout, ms(x->timeout));
    exec_feed(j);
}

static void exec_cancel(void *agent, dgm_run *run)
{
    struct job *j = run->agent_data;
    if (((struct exec *)agent)->pool) {
        dgm_exec_worker_cancel(run);
        return;
    }
    dgm_process_kill(j->process);
    dgm_process_resume(j->process); /* what it still has to say before it goes */
}

static bool exec_message(void *agent, dgm_run *run, const dgm_message *message,
                         const dgm_json *metadata)
{
    (void)metadata;
    return ((struct exec *)agent)->pool && dgm_exec_worker_message(run, message);
}

static void exec_prepare(void *agent, dgm_loops *loops)
{
    struct exec *x = agent;
    if (x->pool)
        dgm_worker_pool_prepare(x->pool, loops);
}

static void exec_retire(void *agent, bool wait)
{
    struct exec *x = agent;
    if (x->pool)
        dgm_worker_pool_retire(x->pool, wait);
}

/* A program of its own per message has no way to know how far the one before it came. */
static bool exec_resumes(void *agent)
{
    const struct exec *x = agent;
    return x->pool && x->max_attempts > 1;
}

static dgm_str exec_describe(void *agent, dgm_arena *a)
{
    const struct exec *x = agent;
    return x->pool ? dgm_worker_pool_describe(x->pool, x->id, a) : (dgm_str){0};
}

static const dgm_inner inner = {
    .open = dgm_exec_open,
    .close = dgm_exec_close,
    .start = exec_start,
    .cancel = exec_cancel,
    .message = exec_message,
    .prepare = exec_prepare,
    .retire = exec_retire,
    .resumes = exec_resumes,
    .describe = exec_describe,
    .lacks_final_text = true,
};
DGM_SHAPED_OPEN(open_shaped, inner)

const dgm_backend dgm_backend_exec = {
    .type = "exec",
    .settings = dgm_exec_settings,
    .about = "any program: the message on its stdin, events or text from its stdout",
    .can_resume = true, /* in mode: worker */
    .foreign = true,
    .wants_history = true,
    .reply = DGM_REPLY_TASK,
    .card = card,
    DGM_SHAPED(open_shaped),
};
