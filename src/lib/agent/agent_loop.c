/*
 * lib/agent/agent_loop.c - opens and closes a loop; cancels tasks.
 *
 *   open:  engine ─► threads ─► list of unfinished tasks ─► recovery, which resumes them
 *   free:  drain: runs are suspended, their tasks stay in the store ─► streams end ─► engine stops
 */
#include "backend/backend.h"
#include "lib/agent/agent_int.h"
#include "store/store.h"

#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>

#define PAGE 100
#define MAX_RESUMABLE 10000 /* tasks whose first event after the restart is remembered */

/* ---- the log -------------------------------------------------------------------------------------------------- */

static void log_on_line(void *user, dgm_str line)
{
    const dgm_agent_loop *loop = user;
    if (loop->on_log)
        loop->on_log(loop->log_user, line);
}

static void log_on_agent_line(void *user, dgm_str agent, bool is_fault, dgm_str line)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)is_fault;
    log_on_line(user, dgm_arena_printf(a, "agent %.*s: %.*s", DGM_P(agent), DGM_P(line)));
}

static void log_on_warning(void *user, dgm_str task_id, const char *rule, const dgm_err *what)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    log_on_line(user, dgm_arena_printf(a, "task %.*s: %s: %s", DGM_P(task_id), rule, what->msg));
}

static void log_on_note(void *user, dgm_str agent, dgm_str task_id, dgm_str line)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)agent;
    log_on_line(user, dgm_arena_printf(a, "task %.*s: %.*s", DGM_P(task_id), DGM_P(line)));
}

static void log_on_fault(void *user, dgm_str agent, dgm_str task_id, const dgm_run_fault *fault)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)agent;
    log_on_line(user, dgm_arena_printf(a, "task %.*s: the agent failed: %.*s%s%.*s%s%.*s",
                                       DGM_P(task_id), DGM_P(fault->what),
                                       fault->detail.n ? ": " : "", DGM_P(fault->detail),
                                       fault->output.n ? "\n" : "", DGM_P(fault->output)));
}

static void log_on_trim_failed(void *user, const dgm_err *why)
{
    log_on_line(user, dgm_str_from(why->msg));
}

/* ---- unfinished tasks ------------------------------------------------------------------------------------------- */

/* A call on the loop thread that another thread waits for. */
struct agent_wait {
    dgm_agent_loop *loop;
    dgm_str task_id;
    sem_t done;
    dgm_code code;
    dgm_err err;
    dgm_task_row after; /* its texts are in the loop's arena */
};

static dgm_code wait_for(struct agent_wait *w, dgm_loop_fn fn, dgm_err *err)
{
    sem_init(&w->done, 0, 0);
    dgm_loop_post(dgm_loops_at(w->loop->engine.loops, 0), fn, w);
    while (sem_wait(&w->done) != 0) /* a signal */
        continue;
    sem_destroy(&w->done);
    if (w->code && err)
        *err = w->err;
    return w->code;
}

static void answer_wait(struct agent_wait *w, dgm_code code, const dgm_err *err)
{
    w->code = code;
    if (code)
        w->err = *err;
    sem_post(&w->done);
}

static void on_unfinished(dgm_code code, const dgm_task_row *rows, size_t n, bool more,
                          size_t total, const dgm_err *err, void *arg)
{
    struct agent_wait *w = arg;
    dgm_agent_loop *loop = w->loop;
    (void)total;
    for (size_t i = 0; !code && i < n && loop->resumable.n < MAX_RESUMABLE; i++) {
        w->after = (dgm_task_row){.owner = {dgm_arena_dup(loop->arena, rows[i].owner.tenant),
                                            dgm_arena_dup(loop->arena, rows[i].owner.principal)},
                                  .id = dgm_arena_dup(loop->arena, rows[i].id)};
        if (!rows[i].owner.tenant.n && !rows[i].owner.principal.n) /* the owner of a loop */
            dgm_map_put(&loop->resumable, w->after.id, (size_t)rows[i].last_seq + 1);
    }
    if (!code && more && n && loop->resumable.n < MAX_RESUMABLE)
        dgm_store_list_unfinished(loop->engine.store, PAGE, &w->after, on_unfinished, w);
    else
        answer_wait(w, code, err);
}

static void list_unfinished(void *arg)
{
    struct agent_wait *w = arg;
    dgm_store_list_unfinished(w->loop->engine.store, PAGE, NULL, on_unfinished, w);
}

/* ---- opening and closing ---------------------------------------------------------------------------------------- */

static dgm_code loop_open(dgm_agent_loop *loop, const dgm_config *c, dgm_err *err)
{
    dgm_engine_observer observer = {.on_warning = log_on_warning,
                                    .on_note = log_on_note,
                                    .on_fault = log_on_fault,
                                    .on_trim_failed = log_on_trim_failed,
                                    .on_mcp_log = log_on_line,
                                    .on_agent_log = log_on_agent_line,
                                    .user = loop};
    dgm_code rc;
    if ((rc = dgm_engine_open(&loop->engine, c, &observer, err)) ||
        (rc = dgm_loops_start(loop->engine.loops, err)) ||
        (rc = wait_for(&(struct agent_wait){.loop = loop}, list_unfinished, err)))
        return rc;
    return dgm_engine_recover(&loop->engine, err);
}

static void loop_close(dgm_agent_loop *loop)
{
    dgm_engine_stop(&loop->engine);
    dgm_engine_free(&loop->engine);
    dgm_map_done(&loop->resumable);
    dgm_arena_free(loop->arena);
    free(loop);
}

dgm_code dgm_agent_loop_new(const dgm_agent_loop_options *options, dgm_agent_loop **ret_loop,
                            dgm_err *err)
{
    dgm_agent_loop_options o;
    dgm_config *config = NULL;
    sigset_t all, before;
    dgm_code rc;
    if (!options || !ret_loop)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "missing argument");
    if ((rc = dgm_options_copy(&o, sizeof o, options, err)) ||
        (rc = dgm_agent_load_config(&o, &config, err)))
        return rc;
    dgm_agent_loop *loop = dgm_xcalloc(1, sizeof *loop);
    loop->arena = dgm_arena_new();
    loop->agent = o.agent ? dgm_arena_dup(loop->arena, dgm_str_from(o.agent)) : DGM_STR("");
    loop->on_log = o.on_log;
    loop->log_user = o.log_user;
    dgm_map_init(&loop->resumable);
    /* Threads inherit the mask: signals are for the threads of the program, and SIGPIPE for none. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = loop_open(loop, config, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    dgm_config_free(config);
    if (rc)
        loop_close(loop);
    else
        *ret_loop = loop;
    return rc;
}

static void loop_end_streams(void *arg)
{
    struct agent_wait *w = arg;
    w->loop->is_closing = true;
    dgm_agent_end_streams(w->loop);
    answer_wait(w, DGM_OK, NULL);
}

void dgm_agent_loop_free(dgm_agent_loop *loop)
{
    if (!loop)
        return;
    dgm_engine_suspend(&loop->engine);
    wait_for(&(struct agent_wait){.loop = loop}, loop_end_streams, NULL);
    loop_close(loop);
}

/* ---- cancel ----------------------------------------------------------------------------------------------------- */

static void cancel_on_task(dgm_code code, dgm_record *task, const dgm_err *err, void *arg)
{
    (void)task;
    answer_wait(arg, code, err);
}

static void cancel_on_loop(void *arg)
{
    struct agent_wait *w = arg;
    dgm_core_cancel(w->loop->engine.core, (dgm_owner){0}, w->loop->agent, w->task_id,
                    cancel_on_task, w);
}

dgm_code dgm_agent_loop_cancel(dgm_agent_loop *loop, dgm_str task_id, dgm_err *err)
{
    dgm_code rc;
    if (!loop)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "missing argument");
    if ((rc = dgm_agent_check_id(task_id, "task_id", err)))
        return rc;
    struct agent_wait w = {.loop = loop, .task_id = task_id};
    return wait_for(&w, cancel_on_loop, err);
}
