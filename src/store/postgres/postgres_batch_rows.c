/*
 * store/postgres/postgres_batch_rows.c - the statement of a batch, and its rows as parameters.
 *
 * A group is one log row (more when it grows large; a new one for every turn, so that turns can be trimmed by whole rows). The
 * statement takes all rows as arrays. It changes a task only if the group starts at the end of the task's log and this server has the
 * lease. It writes no row of other groups, and returns them.
 */
#include "postgres_batch_int.h"

#include "base/table.h"

#include <assert.h>

const char dgm_pg_sql_batch[] =
    "WITH g AS MATERIALIZED (SELECT * FROM unnest($1::bytea[],$2::bytea[],$3::bytea[],"
    "$4::bytea[],$5::bytea[],$6::bigint[],$7::bigint[],$8::bigint[],$9::bigint[],$10::bigint[],"
    "$11::bigint[],$12::bigint[],$13::bigint[],$14::bytea[],$15::bigint[],$58::bigint[],"
    "$59::bigint[]) AS g(tenant,principal,"
    "id,context,agent,state,created_ms,status_ms,first_seq,last_seq,record_ms,tail,folded_seq,"
    "folded,i,fence,owner)),"
    "messages AS MATERIALIZED (SELECT * FROM unnest($36::bigint[],"
    "$37::bytea[],$38::bytea[],$39::bytea[],$40::bigint[],$41::bytea[],$42::bigint[],"
    "$43::bytea[],$44::bigint[]) AS x(g,tenant,principal,message,scope,task,turn,digest,"
    "expires_ms)),"
    /* messages that another server stored for a task of its own */
    "dup AS MATERIALIZED (SELECT x.g FROM messages x JOIN dragoman.messages m"
    " ON m.tenant=x.tenant AND m.principal=x.principal AND m.message=x.message"
    " AND m.scope=x.scope WHERE m.task<>x.task AND m.digest=x.digest"
    " AND (m.expires_ms=0 OR m.expires_ms>$60::bigint)),"
    "notes AS MATERIALIZED (SELECT * FROM unnest($51::bytea[],$52::bytea[],$53::bytea[],"
    "$54::bytea[],$55::bigint[],$56::bytea[],$61::bigint[],$62::bytea[],$63::bytea[],"
    "$64::bytea[],$65::bigint[]) WITH ORDINALITY AS x(tenant,principal,kind,name,expires_ms,"
    "text,g,of_tenant,of_principal,of_task,fence,k)),"
    /* notes whose fence is good: their tasks are locked until the end, so that no other server takes them meanwhile */
    "held AS MATERIALIZED (SELECT x.k FROM notes x JOIN dragoman.tasks t ON t.tenant=x.of_tenant"
    " AND t.principal=x.of_principal AND t.id=x.of_task WHERE x.fence>=0"
    " AND t.owner=$57::bigint AND t.fence=x.fence FOR SHARE OF t),"
    "upd AS (UPDATE dragoman.tasks t SET last_seq=g.last_seq,state=g.state,status_ms=g.status_ms,"
    "record_ms=CASE WHEN g.record_ms=0 THEN t.record_ms ELSE g.record_ms END,"
    "tail=CASE WHEN g.record_ms=0 THEN t.tail ELSE g.tail END,"
    "folded_seq=CASE WHEN g.folded IS NULL THEN t.folded_seq ELSE g.folded_seq END,"
    "folded=coalesce(g.folded,t.folded),owner=g.owner FROM g WHERE t.tenant=g.tenant"
    " AND t.principal=g.principal AND t.id=g.id AND t.last_seq=g.first_seq-1"
    " AND t.owner=$57::bigint AND t.fence=g.fence AND g.i NOT IN (SELECT d.g FROM dup d)"
    " AND (SELECT count(*) FROM held)>=0" /* that is first: rows that this changes cannot be locked */
    " RETURNING g.i),"
    "ins AS (INSERT INTO dragoman.tasks(tenant,principal,id,context,agent,state,created_ms,"
    "status_ms,last_seq,record_ms,tail,folded_seq,folded,owner,fence) SELECT "
    "g.tenant,g.principal,g.id,"
    "g.context,g.agent,g.state,g.created_ms,g.status_ms,g.last_seq,g.record_ms,g.tail,"
    "CASE WHEN g.folded IS NULL THEN 0 ELSE g.folded_seq END,g.folded,g.owner,1 FROM g"
    " WHERE g.first_seq=1 AND g.fence=1 AND g.i NOT IN (SELECT d.g FROM dup d) ORDER BY g.i ON "
    "CONFLICT DO NOTHING RETURNING tenant,principal,id),"
    "bad AS MATERIALIZED (SELECT g.i,g.tenant,g.principal,g.id FROM g"
    " WHERE g.i NOT IN (SELECT i FROM upd) AND (g.tenant,g.principal,g.id) NOT IN"
    " (SELECT tenant,principal,id FROM ins)),"
    "put_log AS (INSERT INTO dragoman.log(tenant,principal,task,first_seq,n,bytes)"
    " SELECT x.tenant,x.principal,x.task,x.first_seq,x.n,x.bytes FROM unnest($16::bigint[],"
    "$17::bytea[],$18::bytea[],$19::bytea[],$20::bigint[],$21::bigint[],$22::bytea[])"
    " AS x(g,tenant,principal,task,first_seq,n,bytes) WHERE x.g NOT IN (SELECT i FROM bad)),"
    "put_turns AS (INSERT INTO dragoman.turns(tenant,principal,task,turn,first_seq,last_seq,"
    "ended_ms,protocol,caller,request,previous) SELECT x.tenant,x.principal,x.task,x.turn,"
    "x.first_seq,x.last_seq,CASE WHEN x.ended_ms<0 THEN coalesce((SELECT t.record_ms"
    " FROM dragoman.tasks t WHERE t.tenant=x.tenant AND t.principal=x.principal AND t.id=x.task),"
    "x.status_ms) ELSE x.ended_ms END,x.protocol,x.caller,x.request,x.previous"
    " FROM unnest($23::bigint[],$24::bytea[],$25::bytea[],$26::bytea[],$27::bigint[],"
    "$28::bigint[],$29::bigint[],$30::bigint[],$31::bigint[],$32::bytea[],$33::bytea[],"
    "$34::bytea[],$35::bytea[]) AS x(g,tenant,principal,task,turn,first_seq,last_seq,ended_ms,"
    "status_ms,protocol,caller,request,previous) WHERE x.g NOT IN (SELECT i FROM bad)"
    " ON CONFLICT (tenant,principal,task,turn) DO UPDATE SET first_seq=excluded.first_seq,"
    "last_seq=excluded.last_seq,ended_ms=excluded.ended_ms,protocol=excluded.protocol,"
    "caller=excluded.caller,request=excluded.request,previous=excluded.previous),"
    /* One that was stored since the statement began is a division by zero: the statement is made again, and sees it. */
    "put_messages AS (INSERT INTO dragoman.messages AS m(tenant,principal,message,scope,task,turn,"
    "digest,expires_ms) SELECT x.tenant,x.principal,x.message,x.scope,x.task,x.turn,x.digest,"
    "x.expires_ms FROM messages x WHERE x.g NOT IN (SELECT i FROM bad)"
    " ORDER BY x.tenant,x.principal,x.message,x.scope"
    " ON CONFLICT (tenant,principal,message,scope) DO UPDATE SET task=excluded.task,"
    "turn=excluded.turn/CASE WHEN m.task<>excluded.task AND m.digest=excluded.digest"
    " AND (m.expires_ms=0 OR m.expires_ms>$60::bigint) THEN 0 ELSE 1 END,"
    "digest=excluded.digest,expires_ms=excluded.expires_ms),"
    "put_calls AS (INSERT INTO dragoman.calls(tenant,principal,call,agent,task)"
    " SELECT x.tenant,x.principal,x.call,x.agent,x.task FROM unnest($45::bigint[],$46::bytea[],"
    "$47::bytea[],$48::bytea[],$49::bytea[],$50::bytea[]) AS x(g,tenant,principal,call,agent,"
    "task) WHERE x.g NOT IN (SELECT i FROM bad) ON CONFLICT (tenant,principal,call,agent)"
    " DO UPDATE SET task=excluded.task,n=excluded.n),"
    "ok_notes AS MATERIALIZED (SELECT * FROM notes x WHERE x.g NOT IN (SELECT i FROM bad)"
    " AND (x.fence<0 OR x.k IN (SELECT k FROM held))),"
    "put_notes AS (INSERT INTO dragoman.notes(tenant,principal,kind,name,expires_ms,text)"
    " SELECT x.tenant,x.principal,x.kind,x.name,x.expires_ms,x.text FROM ok_notes x"
    " WHERE x.text IS NOT NULL ON CONFLICT (tenant,principal,kind,name) DO UPDATE SET"
    " expires_ms=excluded.expires_ms,text=excluded.text),"
    "del_notes AS (DELETE FROM dragoman.notes n USING ok_notes x WHERE x.text IS NULL"
    " AND n.tenant=x.tenant AND n.principal=x.principal AND n.kind=x.kind AND n.name=x.name)"
    "SELECT b.i,t.last_seq,t.tail,t.owner,t.fence,(b.i IN (SELECT d.g FROM dup d))::int,false::int"
    " FROM bad b LEFT JOIN dragoman.tasks t ON t.tenant=b.tenant"
    " AND t.principal=b.principal AND t.id=b.id"
    " UNION ALL SELECT x.k-1,NULL,NULL,NULL,NULL,0,1 FROM notes x"
    " WHERE x.fence>=0 AND x.k NOT IN (SELECT k FROM held)";

/* ---- rows ------------------------------------------------------------------------------------------ */

/* Of its last record; with the time, so that two are never taken for one. Stored: never change how it is made. */
int64_t dgm_pg_tail_of(const dgm_append *a)
{
    if (!a->n_records)
        return 0;
    const dgm_record *r = a->records[a->n_records - 1];
    return (int64_t)dgm_hash((uint64_t)r->head.time ^ r->head.seq << 40, r->bytes, r->n);
}

static void note_log_row(pg_batch *b, size_t group, uint64_t first_seq, size_t n)
{
    if (b->n_log == b->cap_log) {
        b->cap_log = b->cap_log ? b->cap_log * 2 : 64;
        b->log = dgm_xrealloc(b->log, b->cap_log * sizeof *b->log);
    }
    b->log[b->n_log++] = (struct log_row){group, first_seq, n};
    dgm_frame_end(&b->row);
    dgm_pg_array_str(&b->args, dgm_buf_str(&b->row));
    dgm_buf_clear(&b->row);
}

/* The bytes of all log rows, as an array; where each begins is noted. */
static void add_log_bytes(pg_batch *b)
{
    b->n_log = 0;
    for (size_t g = 0; g < b->n_groups; g++) {
        uint64_t first = 0;
        uint32_t turn = 0;
        size_t n = 0;
        for (const dgm_job *job = b->groups[g].first; job; job = job->group_next) {
            for (size_t i = 0; i < job->append.batch.n_records; i++) {
                const dgm_record *r = job->append.batch.records[i];
                if (n && (r->head.turn != turn || b->row.n + r->n > DGM_LOG_ROW_BYTES)) {
                    note_log_row(b, g, first, n);
                    n = 0;
                }
                if (!n++) {
                    first = r->head.seq;
                    turn = r->head.turn;
                }
                dgm_frame_add(&b->row, r);
            }
        }
        if (n)
            note_log_row(b, g, first, n);
    }
    dgm_buf_shrink(&b->row, DGM_LOG_ROW_BYTES);
}

/* When the turn ended: the time of its last record; -1: that is stored. */
static int64_t find_end(const struct group *g, uint64_t seq)
{
    for (const dgm_job *job = seq ? g->first : NULL; job; job = job->group_next) {
        const dgm_append *a = &job->append.batch;
        uint64_t first = dgm_append_first(a);
        if (seq >= first && seq - first < a->n_records)
            return a->records[seq - first]->head.time;
    }
    return seq ? -1 : 0;
}

static void note_turn(pg_batch *b, size_t g, size_t from, const dgm_turn_row *turn)
{
    size_t i = from;
    while (i < b->n_turns && b->turns[i].row->turn != turn->turn)
        i++;
    if (i == b->n_turns)
        b->n_turns++;
    b->turns[i] = (struct turn_put){g, turn, find_end(&b->groups[g], turn->last_seq)};
}

static void note_message_id(pg_batch *b, size_t g, const dgm_append *a)
{
    const dgm_task_row *row = &a->row;
    struct message_put *m = &b->messages[b->n_messages++];
    assert(a->turn); /* a message that is taken starts a turn */
    m->group = g;
    m->taken = a->taken;
    m->turn = a->turn->turn;
    m->scope = dgm_scope(row->owner, row->agent, row->context_id);
    m->expires_ms = 0;
    dgm_content_digest(&b->sha256, a->taken->content, m->digest);
    if (!a->taken->nameless_until_ms)
        return;
    uint64_t nameless = dgm_scope(row->owner, row->agent, (dgm_str){0});
    if (nameless == m->scope) {
        m->expires_ms = a->taken->nameless_until_ms;
        return;
    }
    b->messages[b->n_messages++] = *m;
    m[1].scope = nameless;
    m[1].expires_ms = a->taken->nameless_until_ms;
}

static void note_rows(pg_batch *b)
{
    b->n_turns = b->n_messages = 0;
    for (size_t g = 0; g < b->n_groups; g++) {
        struct group *group = &b->groups[g];
        size_t from = b->n_turns;
        for (const dgm_job *job = group->first; job; job = job->group_next) {
            const dgm_append *a = &job->append.batch;
            if (a->row.folded.p) {
                group->folded = a->row.folded;
                group->folded_seq = a->row.folded_seq;
            }
            if (a->turn)
                note_turn(b, g, from, a->turn);
            if (a->taken)
                note_message_id(b, g, a);
        }
    }
}

/* ---- parameters: a column at a time ------------------------------------------------------------------ */

static dgm_str present(dgm_str s)
{
    return s.p ? s : (dgm_str){"", 0};
}

#define STRINGS(n, expr)                                                                           \
    do {                                                                                           \
        dgm_pg_array_begin(a, false);                                                              \
        for (size_t i = 0; i < (n); i++)                                                           \
            dgm_pg_array_str(a, present(expr));                                                    \
        dgm_pg_array_end(a);                                                                       \
    } while (0)
#define NUMBERS(n, expr)                                                                           \
    do {                                                                                           \
        dgm_pg_array_begin(a, true);                                                               \
        for (size_t i = 0; i < (n); i++)                                                           \
            dgm_pg_array_int(a, (int64_t)(expr));                                                  \
        dgm_pg_array_end(a);                                                                       \
    } while (0)
/* group, tenant, principal */
#define GROUP_OF(rows, n)                                                                          \
    NUMBERS(n, (rows)[i].group);                                                                   \
    STRINGS(n, pg_row_of(b, (rows)[i].group)->owner.tenant);                                       \
    STRINGS(n, pg_row_of(b, (rows)[i].group)->owner.principal)

static int64_t record_ms_of(const struct group *g)
{
    int64_t ms = 0;
    for (const dgm_job *job = g->first; job; job = job->group_next) {
        const dgm_append *x = &job->append.batch;
        if (x->n_records)
            ms = x->records[x->n_records - 1]->head.time;
    }
    return ms;
}

static int64_t tail_of_group(const struct group *g)
{
    int64_t tail = 0;
    for (const dgm_job *job = g->first; job; job = job->group_next) {
        if (job->append.batch.n_records)
            tail = dgm_pg_tail_of(&job->append.batch);
    }
    return tail;
}

static void put_groups(pg_batch *b, pg_args *a)
{
    size_t n = b->n_groups;
    STRINGS(n, pg_row_of(b, i)->owner.tenant);
    STRINGS(n, pg_row_of(b, i)->owner.principal);
    STRINGS(n, pg_row_of(b, i)->id);
    STRINGS(n, b->groups[i].first->append.batch.row.context_id);
    STRINGS(n, b->groups[i].first->append.batch.row.agent);
    NUMBERS(n, pg_row_of(b, i)->state);
    NUMBERS(n, b->groups[i].first->append.batch.row.created_ms);
    NUMBERS(n, pg_row_of(b, i)->status_ms);
    NUMBERS(n, dgm_append_first(&b->groups[i].first->append.batch));
    NUMBERS(n, pg_row_of(b, i)->last_seq);
    NUMBERS(n, record_ms_of(&b->groups[i]));
    NUMBERS(n, tail_of_group(&b->groups[i]));
    NUMBERS(n, b->groups[i].folded_seq);
    dgm_pg_array_begin(a, false);
    for (size_t i = 0; i < n; i++)
        dgm_pg_array_str(a, b->groups[i].folded);
    dgm_pg_array_end(a);
    NUMBERS(n, i);
}

/* The bytes were added first, as the first parameter: see dgm_pg_batch_put. */
static void put_log(pg_batch *b, pg_args *a)
{
    GROUP_OF(b->log, b->n_log);
    STRINGS(b->n_log, pg_row_of(b, b->log[i].group)->id);
    NUMBERS(b->n_log, b->log[i].first_seq);
    NUMBERS(b->n_log, b->log[i].n);
}

static void put_turns(pg_batch *b, pg_args *a)
{
    size_t n = b->n_turns;
    GROUP_OF(b->turns, n);
    STRINGS(n, pg_row_of(b, b->turns[i].group)->id);
    NUMBERS(n, b->turns[i].row->turn);
    NUMBERS(n, b->turns[i].row->first_seq);
    NUMBERS(n, b->turns[i].row->last_seq);
    NUMBERS(n, b->turns[i].ended_ms);
    NUMBERS(n, pg_row_of(b, b->turns[i].group)->status_ms);
    STRINGS(n, b->turns[i].row->protocol);
    STRINGS(n, b->turns[i].row->caller_id);
    STRINGS(n, b->turns[i].row->request);
    STRINGS(n, b->turns[i].row->previous);
}

static void put_message_ids(pg_batch *b, pg_args *a)
{
    size_t n = b->n_messages;
    GROUP_OF(b->messages, n);
    STRINGS(n, b->messages[i].taken->message_id);
    NUMBERS(n, b->messages[i].scope);
    STRINGS(n, pg_row_of(b, b->messages[i].group)->id);
    NUMBERS(n, b->messages[i].turn);
    STRINGS(n, ((dgm_str){(const char *)b->messages[i].digest, DGM_DIGEST_BYTES}));
    NUMBERS(n, b->messages[i].expires_ms);
}

/* A column of the calls of all groups; an id that an append has twice is one. */
static void put_call_column(pg_batch *b, pg_args *a, int column)
{
    dgm_pg_array_begin(a, column == 0);
    for (size_t g = 0; g < b->n_groups; g++) {
        for (const dgm_job *job = b->groups[g].first; job; job = job->group_next) {
            const dgm_strs *calls = &job->append.batch.open_calls;
            const dgm_task_row *row = &job->append.batch.row;
            for (size_t i = 0; i < calls->n; i++) {
                bool again = false;
                for (size_t k = 0; k < i && !again; k++)
                    again = dgm_str_eq(calls->at[k], calls->at[i]);
                if (again)
                    continue;
                const dgm_str columns[] = {{0},          row->owner.tenant, row->owner.principal,
                                           calls->at[i], row->agent,        row->id};
                if (column == 0)
                    dgm_pg_array_int(a, (int64_t)g);
                else
                    dgm_pg_array_str(a, present(columns[column]));
            }
        }
    }
    dgm_pg_array_end(a);
}

enum {
    NOTE_TENANT,
    NOTE_PRINCIPAL,
    NOTE_KIND,
    NOTE_NAME,
    NOTE_EXPIRES,
    NOTE_TEXT,
    NOTE_GROUP, /* of its append; -1: none */
    NOTE_OF_TENANT,
    NOTE_OF_PRINCIPAL,
    NOTE_OF_TASK,
    NOTE_FENCE, /* -1: none is checked */
    N_NOTE_COLUMNS
};

/* Of the append that a note belongs to. Groups are few, and appends with notes fewer. */
static int64_t group_of_note(const pg_batch *b, const dgm_job *note)
{
    const dgm_job *append = note->state;
    for (size_t g = 0; append && g < b->n_groups; g++) {
        if (pg_is_task(&b->groups[g].first->append.batch.row, &append->append.batch.row))
            return (int64_t)g;
    }
    return -1;
}

static void put_note_column(const pg_batch *b, const dgm_job *chain, pg_args *a, int column)
{
    bool numbers = column == NOTE_EXPIRES || column == NOTE_GROUP || column == NOTE_FENCE;
    dgm_pg_array_begin(a, numbers);
    for (const dgm_job *job = chain; job; job = job->next) {
        if (!pg_is_in_batch(job))
            continue;
        const dgm_note *n = &job->note;
        const dgm_fence *f = &n->fence;
        const dgm_str texts[N_NOTE_COLUMNS] = {[NOTE_TENANT] = present(n->owner.tenant),
                                               [NOTE_PRINCIPAL] = present(n->owner.principal),
                                               [NOTE_KIND] = present(n->kind),
                                               [NOTE_NAME] = present(n->name),
                                               [NOTE_TEXT] = n->text,
                                               [NOTE_OF_TENANT] = present(f->owner.tenant),
                                               [NOTE_OF_PRINCIPAL] = present(f->owner.principal),
                                               [NOTE_OF_TASK] = present(f->task_id)};
        if (column == NOTE_EXPIRES)
            dgm_pg_array_int(a, n->expires_ms);
        else if (column == NOTE_GROUP)
            dgm_pg_array_int(a, group_of_note(b, job));
        else if (column == NOTE_FENCE)
            dgm_pg_array_int(a, f->task_id.n && !job->state ? (int64_t)f->fence : -1);
        else
            dgm_pg_array_str(a, texts[column]);
    }
    dgm_pg_array_end(a);
}

static void put_leases(const pg_batch *b, pg_args *a)
{
    NUMBERS(b->n_groups, b->groups[i].fence);
    NUMBERS(b->n_groups, b->groups[i].releases ? 0 : b->replica);
}

void dgm_pg_batch_put(pg_batch *b)
{
    pg_args *a = &b->args;
    dgm_pg_args_clear(a);
    note_rows(b);
    /* The bytes are framed once, before the columns that they decide; then the parameters get their order. */
    dgm_pg_array_begin(a, false);
    add_log_bytes(b);
    dgm_pg_array_end(a);
    put_groups(b, a);
    put_log(b, a);
    dgm_pg_args_move_first(a);
    put_turns(b, a);
    put_message_ids(b, a);
    for (int column = 0; column < 6; column++)
        put_call_column(b, a, column);
    for (int column = 0; column < N_NOTE_COLUMNS; column++) {
        if (column == NOTE_GROUP) { /* those that a lease needs came later */
            dgm_pg_arg_int(a, b->replica);
            put_leases(b, a);
            dgm_pg_arg_int(a, dgm_loop_unix_ms());
        }
        put_note_column(b, b->op.job, a, column);
    }
}
