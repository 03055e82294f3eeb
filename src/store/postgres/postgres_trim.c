/*
 * store/postgres/postgres_trim.c - retention: deletes finished turns, whole tasks, expired notes and message ids, and threads of
 * graphs. It works in steps, each a transaction of some hundred rows, so that appends are executed between them.
 */
#include "model/kinds.h"
#include "postgres_int.h"

#include <stdio.h>

#define STEP "200"
#define STEP_ROWS 200
#define STEP_MS 300000 /* rows of threads may be large */

#define SAME_TASK(x, y)                                                                            \
    x ".tenant=" y ".tenant AND " x ".principal=" y ".principal AND " x ".task=" y ".task"

/* What was trimmed has no end any more, and is not met again. */
static const char trim_turns[] =
    "WITH c AS MATERIALIZED (SELECT r.tenant,r.principal,r.task,r.turn,r.last_seq"
    " FROM dragoman.turns r JOIN dragoman.tasks t ON t.tenant=r.tenant"
    " AND t.principal=r.principal AND t.id=r.task WHERE r.ended_ms>0 AND r.ended_ms<$1"
    " AND r.first_seq<=r.last_seq AND r.last_seq<=t.folded_seq AND NOT EXISTS (SELECT 1"
    " FROM dragoman.turns p WHERE " SAME_TASK(
        "p",
        "r") " AND p.turn<r.turn AND (p.last_seq=0"
             " OR (p.first_seq<=p.last_seq AND (p.ended_ms>=$1 OR p.last_seq>t.folded_seq))))"
             " ORDER BY r.ended_ms LIMIT " STEP "),"
             "m AS MATERIALIZED (SELECT tenant,principal,task,max(turn) AS turn,max(last_seq) AS "
             "last_seq"
             " FROM c GROUP BY 1,2,3),"
             "l AS (DELETE FROM dragoman.log l USING m WHERE " SAME_TASK(
                 "l",
                 "m") " AND l.first_seq+l.n-1<=m.last_seq),"
                      "d AS (DELETE FROM dragoman.turns r USING m WHERE " SAME_TASK(
                          "r",
                          "m") " AND r.turn<=m.turn AND EXISTS (SELECT 1 FROM dragoman.turns p "
                               "WHERE " SAME_TASK(
                                   "p", "r") " AND p.turn>r.turn)),"
                                             "u AS (UPDATE dragoman.turns r SET "
                                             "first_seq=r.last_seq+1,ended_ms=0,protocol="
                                             "'',caller='',"
                                             "request='',previous='' FROM m "
                                             "WHERE " SAME_TASK(
                                                 "r", "m") " AND r.turn=m.turn"
                                                           " AND NOT EXISTS (SELECT 1 FROM "
                                                           "dragoman.turns p WHERE " SAME_TASK(
                                                               "p", "r") " AND p.turn>r.turn))"
                                                                         "SELECT count(*) FROM c";

static const char trim_tasks[] =
    "WITH m AS MATERIALIZED (SELECT tenant,principal,id AS task FROM dragoman.tasks"
    " WHERE state>=3 AND status_ms<$1 AND state=ANY($2::bigint[]) ORDER BY status_ms"
    " LIMIT " STEP "),"
    "l AS (DELETE FROM dragoman.log x USING m WHERE " SAME_TASK(
        "x", "m") "),"
                  "r AS (DELETE FROM dragoman.turns x USING m WHERE " SAME_TASK(
                      "x",
                      "m") "),"
                           "i AS (DELETE FROM dragoman.messages x USING m WHERE " SAME_TASK(
                               "x",
                               "m") "),"
                                    "c AS (DELETE FROM dragoman.calls x USING m WHERE " SAME_TASK(
                                        "x", "m") "),"
                                                  "t AS (DELETE FROM dragoman.tasks x USING m "
                                                  "WHERE x.tenant=m.tenant"
                                                  " AND x.principal=m.principal AND x.id=m.task)"
                                                  "SELECT count(*) FROM m";

static const char trim_notes[] =
    "WITH m AS MATERIALIZED (SELECT tenant,principal,kind,name FROM dragoman.notes"
    " WHERE expires_ms>0 AND expires_ms<=$1 ORDER BY expires_ms LIMIT " STEP "),"
    "d AS (DELETE FROM dragoman.notes x USING m WHERE x.tenant=m.tenant"
    " AND x.principal=m.principal AND x.kind=m.kind AND x.name=m.name AND x.expires_ms>0"
    " AND x.expires_ms<=$1)"
    "SELECT count(*) FROM m";

static const char trim_messages[] =
    "WITH m AS MATERIALIZED (SELECT tenant,principal,message,scope FROM dragoman.messages"
    " WHERE expires_ms>0 AND expires_ms<=$1 ORDER BY expires_ms LIMIT " STEP "),"
    "d AS (DELETE FROM dragoman.messages x USING m WHERE x.tenant=m.tenant"
    " AND x.principal=m.principal AND x.message=m.message AND x.scope=m.scope"
    " AND x.expires_ms>0 AND x.expires_ms<=$1)"
    "SELECT count(*) FROM m";

/* A thread may be large: few at a time. */
static const char trim_threads[] =
    "WITH m AS MATERIALIZED (SELECT thread_key FROM dragoman.threads WHERE touched_ms<$1"
    " ORDER BY touched_ms LIMIT 4),"
    "v AS (DELETE FROM dragoman.checkpoint_values x USING m WHERE x.thread_key=m.thread_key),"
    "w AS (DELETE FROM dragoman.checkpoint_writes x USING m WHERE x.thread_key=m.thread_key),"
    "c AS (DELETE FROM dragoman.checkpoints x USING m WHERE x.thread_key=m.thread_key),"
    "h AS (DELETE FROM dragoman.threads x USING m WHERE x.thread_key=m.thread_key)"
    "SELECT count(*) FROM m";

static const char *const stages[] = {trim_turns, trim_tasks, trim_notes, trim_messages,
                                     trim_threads};
enum { TURNS, TASKS, NOTES, MESSAGES, THREADS, N_STAGES };

static int64_t before_ms(const dgm_job *job)
{
    switch (job->trim.stage) {
    case TURNS: return job->trim.keep.turns_before_ms;
    case NOTES:
    case MESSAGES: return dgm_loop_unix_ms();
    default: return job->trim.keep.tasks_before_ms;
    }
}

dgm_code dgm_pg_trim_step(PGconn *c, dgm_job *job, bool *ret_more, dgm_err *err)
{
    pg_args a;
    dgm_code code = DGM_OK;
    int64_t n = 0, before = before_ms(job);
    dgm_pg_args_init(&a);
    dgm_pg_arg_int(&a, before);
    if (job->trim.stage == TASKS) {
        dgm_pg_array_begin(&a, true);
        for (int state = 0; state < DGM_N_STATES; state++) {
            if (dgm_state_is_terminal((dgm_task_state)state))
                dgm_pg_array_int(&a, state);
        }
        dgm_pg_array_end(&a);
    }
    if (before) {
        PGresult *r = dgm_pg_exec(c, stages[job->trim.stage], &a, STEP_MS);
        if (PQresultStatus(r) == PGRES_TUPLES_OK)
            n = dgm_pg_int(r, 0, 0);
        else if (dgm_pg_is_conflict(r))
            n = STEP_ROWS; /* with an append: again */
        else
            code = dgm_pg_fault(c, r, false, err);
        PQclear(r);
    }
    dgm_pg_args_done(&a);
    if (n < (job->trim.stage == THREADS ? 4 : STEP_ROWS))
        job->trim.stage++;
    *ret_more = !code && job->trim.stage < N_STAGES;
    return code;
}
