/*
 * store/postgres/postgres_read.c - all reads except those of checkpoints.
 *
 * The database limits a page: it does not send rows after max_bytes.
 */
#include "model/kinds.h"
#include "postgres_int.h"
#include "store/store_job.h"

#include <stdio.h>

#define TASK_COLUMNS                                                                               \
    "t.tenant,t.principal,t.id,t.context,t.agent,t.state,t.created_ms,t.status_ms,t.last_seq"
/* owner, fence, does the owner live */
#define LEASE_COLUMNS                                                                              \
    ",t.owner,t.fence,(SELECT count(*) FROM dragoman.replicas r WHERE r.id=t.owner AND NOT r.dead" \
    " AND r.until>now())"
/* Of rows p, with k, their place from 1: the folded Tasks of the first ones, up to $max bytes. */
#define PAGE(max_rows, max_bytes)                                                                  \
    "SELECT p.tenant,p.principal,p.id,p.context,p.agent,p.state,p.created_ms,p.status_ms,"         \
    "p.last_seq,p.folded_seq,CASE WHEN p.k<=" max_rows " AND p.before<" max_bytes                  \
    " THEN p.folded END,p.k<=" max_rows " AND p.before<" max_bytes
#define BEFORE                                                                                     \
    "row_number() OVER w AS k,coalesce(sum(octet_length(q.folded)) OVER (w ROWS BETWEEN"           \
    " UNBOUNDED PRECEDING AND 1 PRECEDING),0) AS before"

const char *const dgm_pg_sql_reads[PG_N_SQL] = {
    [PG_SQL_TASK] = "SELECT " TASK_COLUMNS ",t.folded_seq,t.folded" LEASE_COLUMNS
                    " FROM dragoman.tasks t WHERE t.tenant=$1 AND t.principal=$2 AND t.id=$3",
    /* If another server is faster, the row is that from before: it is read again. */
    [PG_SQL_ACQUIRE] =
        "WITH upd AS (UPDATE dragoman.tasks t SET owner=$4::bigint,fence=t.fence+1"
        " WHERE t.tenant=$1 AND t.principal=$2 AND t.id=$3 AND t.owner<>$4::bigint"
        " AND (t.owner=0 OR NOT EXISTS (SELECT 1 FROM dragoman.replicas r WHERE r.id=t.owner"
        " AND NOT r.dead AND r.until>now())) RETURNING t.*)"
        "SELECT " TASK_COLUMNS ",t.folded_seq,t.folded,t.owner,t.fence,1 FROM upd t UNION ALL"
        " SELECT " TASK_COLUMNS ",t.folded_seq,t.folded" LEASE_COLUMNS " FROM dragoman.tasks t"
        " WHERE t.tenant=$1 AND t.principal=$2 AND t.id=$3 AND NOT EXISTS (SELECT 1 FROM upd)",
    [PG_SQL_RELEASE] = "UPDATE dragoman.tasks t SET owner=0 WHERE t.tenant=$1 AND t.principal=$2"
                       " AND t.id=$3 AND t.owner=$4::bigint AND t.fence=$5::bigint"
                       " RETURNING (t.state<3)::int",
    [PG_SQL_RECORDS] =
        "SELECT p.first_seq,p.bytes FROM (SELECT q.first_seq,q.bytes,row_number() OVER w AS k,"
        "coalesce(sum(octet_length(q.bytes)) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING"
        " AND 1 PRECEDING),0) AS before FROM (SELECT l.first_seq,l.bytes FROM dragoman.log l"
        " WHERE l.tenant=$1 AND l.principal=$2 AND l.task=$3 AND l.first_seq>=coalesce("
        "(SELECT max(f.first_seq) FROM dragoman.log f WHERE f.tenant=$1 AND f.principal=$2"
        " AND f.task=$3 AND f.first_seq<=$4::bigint),0) ORDER BY l.first_seq"
        " LIMIT $5::bigint+1) q WINDOW w AS (ORDER BY q.first_seq)) p"
        " WHERE p.k<=2 OR p.before<$6::bigint ORDER BY p.k",
    [PG_SQL_TURNS] = "SELECT r.turn,r.first_seq,r.last_seq,r.protocol,r.caller,r.request,r.previous"
                     " FROM dragoman.turns r WHERE r.tenant=$1 AND r.principal=$2 AND r.task=$3"
                     " AND (r.last_seq=0 OR r.first_seq<=r.last_seq OR r.turn=(SELECT max(x.turn)"
                     " FROM dragoman.turns x WHERE x.tenant=$1 AND x.principal=$2 AND x.task=$3"
                     " AND x.last_seq>0 AND x.first_seq>x.last_seq)) ORDER BY r.turn",
    [PG_SQL_FIND_TURN] =
        "SELECT r.turn,r.first_seq,r.last_seq,r.protocol,r.caller,r.request,r.previous,t.id"
        " FROM dragoman.turns r JOIN dragoman.tasks t ON t.tenant=r.tenant"
        " AND t.principal=r.principal AND t.id=r.task WHERE r.tenant=$1 AND r.principal=$2"
        " AND r.caller=$4 AND r.protocol=$3 AND r.caller<>'' AND ($5::bytea='' OR "
        "t.agent=$5::bytea)"
        " ORDER BY t.n DESC,r.turn DESC LIMIT 1",
    [PG_SQL_FIND_DEDUPE] = "SELECT m.task,m.turn,m.digest,m.expires_ms FROM dragoman.messages m"
                           " WHERE m.tenant=$1 AND m.principal=$2 AND m.message=$3"
                           " AND m.scope=$4::bigint",
    [PG_SQL_FIND_CALL] =
        "SELECT " TASK_COLUMNS ",t.folded_seq,t.folded" LEASE_COLUMNS " FROM dragoman.calls c"
        " JOIN dragoman.tasks t ON t.tenant=c.tenant AND t.principal=c.principal AND t.id=c.task"
        " WHERE c.tenant=$1 AND c.principal=$2 AND c.call=$3 AND ($4::bytea='' OR "
        "c.agent=$4::bytea)"
        " ORDER BY c.n DESC LIMIT 1",
    [PG_SQL_CONTEXT] = PAGE(
        "$5::bigint",
        "$6::bigint") " FROM (SELECT q.*," BEFORE " FROM (SELECT " TASK_COLUMNS
                      ",t.folded_seq,t.folded,t.n FROM dragoman.tasks t WHERE t.tenant=$1 AND "
                      "t.principal=$2"
                      " AND t.agent=$3 AND t.context=$4 ORDER BY t.created_ms DESC,t.n DESC"
                      " LIMIT $5::bigint+1) q WINDOW w AS (ORDER BY q.created_ms DESC,q.n DESC)) p"
                      " ORDER BY p.k",
    [PG_SQL_UNFINISHED] = "SELECT " TASK_COLUMNS ",0::bigint,NULL::bytea,true FROM dragoman.tasks t"
                          " WHERE t.state<3 AND (t.tenant,t.principal,t.id)>($1,$2,$3)"
                          " ORDER BY t.tenant,t.principal,t.id LIMIT $4::bigint+1",
    [PG_SQL_NOTE] = "SELECT n.text,n.expires_ms FROM dragoman.notes n WHERE n.tenant=$1"
                    " AND n.principal=$2 AND n.kind=$3 AND n.name=$4",
};

/* ---- sending --------------------------------------------------------------------------------------- */

static void add_owner(pg_args *a, dgm_owner owner)
{
    dgm_pg_arg_str(a, owner.tenant);
    dgm_pg_arg_str(a, owner.principal);
}

static int64_t bounded(size_t n)
{
    return n < ((size_t)1 << 40) ? (int64_t)n : (int64_t)1 << 40;
}

/* Its filters differ: not prepared. Page and total are of one moment. */
static void send_list(pg_pipe *p, pg_args *a, const dgm_list_query *q)
{
    char where[200], sql[2000];
    add_owner(a, q->owner);
    dgm_pg_arg_str(a, q->agent);
    dgm_pg_arg_str(a, q->context_id);
    dgm_pg_arg_int(a, q->state.value);
    dgm_pg_arg_int(a, q->status_from_ms);
    dgm_pg_arg_int(a, q->after_status_ms);
    dgm_pg_arg_str(a, q->after_id);
    dgm_pg_arg_int(a, bounded(q->page_size));
    dgm_pg_arg_int(a, (int64_t)DGM_MAX_STORE_PAGE_BYTES);
    snprintf(where, sizeof where, "t.tenant=$1 AND t.principal=$2%s%s%s%s",
             q->agent.n ? " AND t.agent=$3" : "", q->context_id.n ? " AND t.context=$4" : "",
             q->state.set ? " AND t.state=$5" : "",
             q->status_from_ms ? " AND t.status_ms>=$6" : "");
    snprintf(
        sql, sizeof sql,
        /* every parameter has a use */
        "WITH own AS (SELECT $3::bytea,$4::bytea,$5::bigint,$6::bigint,$7::bigint,$8::bytea)," //
        "total AS (SELECT count(*) AS n FROM dragoman.tasks t WHERE %s) "                      //
        PAGE("$9::bigint",
             "$10::bigint") ",total.n FROM total LEFT JOIN (SELECT q.*," BEFORE
                            " FROM (SELECT " TASK_COLUMNS
                            ",t.folded_seq,t.folded FROM dragoman.tasks t WHERE %s%s"
                            " ORDER BY t.status_ms DESC,t.id DESC LIMIT $9::bigint+1) q"
                            " WINDOW w AS (ORDER BY q.status_ms DESC,q.id DESC)) p ON true ORDER "
                            "BY p.k",
        where, where, q->after_id.n ? " AND (t.status_ms,t.id)<($7,$8)" : "");
    dgm_pg_send_text(p, sql, a);
}

static void send_read(pg_pipe *p, pg_args *a, dgm_job *job)
{
    const dgm_find *f = &job->find;
    switch (job->kind) {
    case DGM_JOB_TASK:
    case DGM_JOB_TURNS:
        add_owner(a, job->task.owner);
        dgm_pg_arg_str(a, job->task.task_id);
        dgm_pg_send(p, job->kind == DGM_JOB_TASK ? PG_SQL_TASK : PG_SQL_TURNS, a);
        break;
    case DGM_JOB_ACQUIRE:
    case DGM_JOB_RELEASE:
        add_owner(a, job->task.owner);
        dgm_pg_arg_str(a, job->task.task_id);
        dgm_pg_arg_int(a, p->loop->store->base.replica);
        if (job->kind == DGM_JOB_RELEASE)
            dgm_pg_arg_int(a, (int64_t)job->task.fence);
        dgm_pg_send(p, job->kind == DGM_JOB_ACQUIRE ? PG_SQL_ACQUIRE : PG_SQL_RELEASE, a);
        break;
    case DGM_JOB_RECORDS:
        add_owner(a, job->task.owner);
        dgm_pg_arg_str(a, job->task.task_id);
        dgm_pg_arg_int(a, job->task.seq > UINT32_MAX ? INT64_MAX : (int64_t)job->task.seq);
        dgm_pg_arg_int(a,
                       job->task.seq > UINT32_MAX ? -1 : bounded(job->task.max) - !job->task.max);
        dgm_pg_arg_int(a, bounded(job->task.max_bytes));
        dgm_pg_send(p, PG_SQL_RECORDS, a);
        break;
    case DGM_JOB_FIND_TURN:
        add_owner(a, f->owner);
        dgm_pg_arg_str(a, f->protocol);
        dgm_pg_arg_str(a, f->caller_id);
        dgm_pg_arg_str(a, f->agent);
        dgm_pg_send(p, PG_SQL_FIND_TURN, a);
        break;
    case DGM_JOB_FIND_DEDUPE:
        add_owner(a, f->owner);
        dgm_pg_arg_str(a, f->message_id);
        dgm_pg_arg_int(a, (int64_t)dgm_scope(f->owner, f->agent, f->context_id));
        dgm_pg_send(p, PG_SQL_FIND_DEDUPE, a);
        break;
    case DGM_JOB_FIND_CALL:
        add_owner(a, f->owner);
        dgm_pg_arg_str(a, f->call_id);
        dgm_pg_arg_str(a, f->agent);
        dgm_pg_send(p, PG_SQL_FIND_CALL, a);
        break;
    case DGM_JOB_CONTEXT:
        add_owner(a, job->context.owner);
        dgm_pg_arg_str(a, job->context.agent);
        dgm_pg_arg_str(a, job->context.context_id);
        dgm_pg_arg_int(a, bounded(job->context.max));
        dgm_pg_arg_int(a, bounded(job->context.max_bytes));
        dgm_pg_send(p, PG_SQL_CONTEXT, a);
        break;
    case DGM_JOB_UNFINISHED:
        add_owner(a, job->unfinished.after.owner);
        dgm_pg_arg_str(a, job->unfinished.after.id);
        dgm_pg_arg_int(a, bounded(job->unfinished.page_size));
        dgm_pg_send(p, PG_SQL_UNFINISHED, a);
        break;
    case DGM_JOB_GET_NOTE:
        add_owner(a, job->note.owner);
        dgm_pg_arg_str(a, job->note.kind);
        dgm_pg_arg_str(a, job->note.name);
        dgm_pg_send(p, PG_SQL_NOTE, a);
        break;
    case DGM_JOB_LIST: send_list(p, a, &job->list); break;
    default: break;
    }
}

void dgm_pg_read_send(pg_pipe *p, dgm_job *job)
{
    pg_args a;
    if (job->kind == DGM_JOB_CHECKPOINTS) {
        dgm_pg_checkpoints_send(p, job);
        return;
    }
    dgm_pg_args_init(&a);
    send_read(p, &a, job);
    dgm_pg_args_done(&a);
}

/* ---- results --------------------------------------------------------------------------------------- */

static dgm_task_row pg_task_row(dgm_job *job, const PGresult *r, int i)
{
    dgm_task_row row = {
        .owner = {pg_text(job, r, i, 0), pg_text(job, r, i, 1)},
        .id = pg_text(job, r, i, 2),
        .context_id = pg_text(job, r, i, 3),
        .agent = pg_text(job, r, i, 4),
        .state = (dgm_task_state)dgm_pg_int(r, i, 5),
        .created_ms = dgm_pg_int(r, i, 6),
        .status_ms = dgm_pg_int(r, i, 7),
        .last_seq = (uint64_t)dgm_pg_int(r, i, 8),
        .folded_seq = (uint64_t)dgm_pg_int(r, i, 9),
    };
    if (dgm_pg_str(r, i, 10).p)
        row.folded = pg_text(job, r, i, 10);
    if ((unsigned)row.state >= DGM_N_STATES)
        job->code = dgm_fail(&job->err, DGM_INTERNAL, NULL,
                             "the database is damaged: task %.*s is in state %d: restore a backup",
                             DGM_P(row.id), (int)row.state);
    return row;
}

/* Rows of which a column says whether they are in the page: what is behind is only to know that there is more. */
static void take_rows(dgm_job *job, const PGresult *r, size_t max)
{
    int n = PQntuples(r);
    bool is_list = job->kind == DGM_JOB_LIST;
    if (is_list && n)
        job->got.rows.total = (size_t)dgm_pg_int(r, 0, 12);
    if (is_list && n == 1 && !dgm_pg_str(r, 0, 2).p)
        n = 0; /* only the total */
    job->got.rows.at = dgm_new_n(job->arena, dgm_task_row, (size_t)n + 1);
    for (int i = 0; i < n && !job->code; i++) {
        if (job->got.rows.n == max || !dgm_pg_int(r, i, 11)) {
            job->got.rows.more = true;
            break;
        }
        job->got.rows.at[job->got.rows.n++] = pg_task_row(job, r, i);
    }
}

static void take_log(dgm_job *job, const PGresult *r)
{
    dgm_log_page page = {0};
    for (int i = 0; i < PQntuples(r); i++) {
        if (!dgm_job_add_log_row(job, &page, dgm_pg_str(r, i, 1), (uint64_t)dgm_pg_int(r, i, 0),
                                 "restore a backup"))
            return;
    }
}

static void take_turns(dgm_job *job, const PGresult *r)
{
    size_t n = (size_t)PQntuples(r);
    dgm_turn_row *turns = dgm_new_n(job->arena, dgm_turn_row, n + 1);
    for (int i = 0; i < (int)n; i++) {
        turns[i] = (dgm_turn_row){
            .turn = (uint32_t)dgm_pg_int(r, i, 0),
            .first_seq = (uint64_t)dgm_pg_int(r, i, 1),
            .last_seq = (uint64_t)dgm_pg_int(r, i, 2),
            .protocol = pg_text(job, r, i, 3),
            .caller_id = pg_text(job, r, i, 4),
            .request = pg_text(job, r, i, 5),
            .previous = pg_text(job, r, i, 6),
        };
        if (job->kind == DGM_JOB_FIND_TURN)
            job->got.turns.task_id = pg_text(job, r, i, 7);
    }
    job->got.turns.at = turns;
    job->got.turns.n = n;
}

static void take_message(dgm_job *job, const PGresult *r)
{
    bool nameless = job->find.context_id.n == 0;
    if (!PQntuples(r) || (nameless && dgm_pg_int(r, 0, 3) <= dgm_loop_unix_ms()))
        return;
    dgm_dedupe_row *row = dgm_new(job->arena, dgm_dedupe_row);
    *row = (dgm_dedupe_row){.owner = job->find.owner, /* the job lives as long as its answer */
                            .agent = job->find.agent,
                            .context_id = job->find.context_id,
                            .message_id = job->find.message_id,
                            .task_id = pg_text(job, r, 0, 0),
                            .turn = (uint32_t)dgm_pg_int(r, 0, 1),
                            .expires_ms = nameless ? dgm_pg_int(r, 0, 3) : 0};
    dgm_str digest = dgm_pg_str(r, 0, 2);
    if (digest.n == sizeof row->digest)
        memcpy(row->digest, digest.p, sizeof row->digest);
    else
        job->code =
            dgm_fail(&job->err, DGM_INTERNAL, NULL,
                     "the database is damaged: a message id has a digest of %zu bytes", digest.n);
    job->got.dedupe = row;
}

/* owner, fence and life from a column on. */
static dgm_lease pg_lease_of(const pg_store *s, const PGresult *r, int row, int column)
{
    dgm_lease lease = {.holder = DGM_LEASE_NONE, .fence = (uint64_t)dgm_pg_int(r, row, column + 1)};
    int64_t owner = dgm_pg_int(r, row, column);
    if (owner == s->base.replica)
        lease.holder = DGM_LEASE_OURS;
    else if (owner && dgm_pg_int(r, row, column + 2))
        lease.holder = DGM_LEASE_OTHER;
    lease.replica = lease.holder == DGM_LEASE_NONE ? 0 : owner;
    return lease;
}

/* Another server was faster: is the row one that we do not see yet? */
bool dgm_pg_read_is_stale(const dgm_job *job)
{
    return job->kind == DGM_JOB_ACQUIRE && !job->code && job->got.row &&
           job->got.row->lease.holder == DGM_LEASE_NONE;
}

static void take_release(pg_store *s, dgm_job *job, const PGresult *r)
{
    if (!PQntuples(r))
        job->code = dgm_append_lost(job->task.task_id, &job->err);
    else
        dgm_pg_share_grown(s, job->task.owner, job->task.task_id,
                           dgm_pg_int(r, 0, 0) && !job->task.has_failed);
}

void dgm_pg_read_result(pg_store *s, dgm_job *job, const PGresult *r)
{
    dgm_job_arena(job);
    switch (job->kind) {
    case DGM_JOB_TASK:
    case DGM_JOB_FIND_CALL:
    case DGM_JOB_ACQUIRE:
        if (PQntuples(r)) {
            job->got.row = dgm_new(job->arena, dgm_task_row);
            *job->got.row = pg_task_row(job, r, 0);
            job->got.row->lease = pg_lease_of(s, r, 0, 11);
        }
        break;
    case DGM_JOB_RELEASE: take_release(s, job, r); break;
    case DGM_JOB_RECORDS: take_log(job, r); break;
    case DGM_JOB_TURNS:
    case DGM_JOB_FIND_TURN: take_turns(job, r); break;
    case DGM_JOB_FIND_DEDUPE: take_message(job, r); break;
    case DGM_JOB_GET_NOTE:
        if (PQntuples(r) && !dgm_note_has_expired(dgm_pg_int(r, 0, 1)))
            job->got.note = pg_text(job, r, 0, 0);
        break;
    case DGM_JOB_LIST: take_rows(job, r, job->list.page_size); break;
    case DGM_JOB_CONTEXT: take_rows(job, r, job->context.max); break;
    case DGM_JOB_UNFINISHED: take_rows(job, r, job->unfinished.page_size); break;
    case DGM_JOB_CHECKPOINTS: dgm_pg_checkpoints_result(job, r); break;
    default: break;
    }
}

void dgm_pg_read_reset(dgm_job *job)
{
    for (size_t i = 0; job->kind == DGM_JOB_RECORDS && i < job->got.records.n; i++)
        dgm_record_unref(job->got.records.at[i]);
    if (job->kind == DGM_JOB_CHECKPOINTS)
        dgm_job_unref_values(job);
    memset(&job->got, 0, sizeof job->got);
    job->state = NULL;
    if (job->arena)
        dgm_arena_reset(job->arena);
    job->code = DGM_OK;
}
