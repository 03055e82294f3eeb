/*
 * store/postgres/postgres_checkpoint.c - checkpoints of graphs: changes.
 *
 * A change is a transaction of its own: first the parts of large values, one statement each, then the statement that
 * decides whether there is room, and writes the rows. Parts that no row refers to afterwards are deleted at the end. A value
 * is found by a random number within its thread.
 *
 * The fence is checked last, and all that locks rows which other servers need is sent at once with the end of the transaction:
 * a process that is stopped in between would hold these locks, and its tasks could not be taken over.
 */
#include "base/ids.h"
#include "postgres_int.h"

#include <openssl/evp.h>
#include <stdlib.h>

/* A value up to this size is in its row. */
#define INLINE_BYTES 1024
#define PART_BYTES ((size_t)1 << 20)

#define OF_KEY " WHERE thread_key=$1 AND checkpoint_key=$2"
#define TOUCH(key, agent, thread, now)                                                             \
    "touch AS (INSERT INTO dragoman.threads AS h(thread_key,agent,thread,touched_ms)"              \
    " SELECT " key "::bytea," agent "::bytea," thread "::bytea," now                               \
    "::bigint ON CONFLICT (thread_key) DO UPDATE SET touched_ms=excluded.touched_ms"               \
    " WHERE excluded.touched_ms NOT BETWEEN h.touched_ms AND h.touched_ms+60000)"
/* Of the checkpoints c: their writes and the values of both, then themselves. */
#define DELETE_THEM                                                                                \
    "v AS (DELETE FROM dragoman.checkpoint_values x USING (SELECT c.thread_key,c.number FROM c"    \
    " UNION ALL SELECT c.thread_key,c.meta_number FROM c UNION ALL SELECT w.thread_key,w.number"   \
    " FROM c JOIN dragoman.checkpoint_writes w ON w.thread_key=c.thread_key"                       \
    " AND w.checkpoint_key=c.checkpoint_key) o WHERE o.number<>0"                                  \
    " AND x.thread_key=o.thread_key AND x.number=o.number),"                                       \
    "w AS (DELETE FROM dragoman.checkpoint_writes x USING c WHERE x.thread_key=c.thread_key"       \
    " AND x.checkpoint_key=c.checkpoint_key),"                                                     \
    "d AS (DELETE FROM dragoman.checkpoints x USING c WHERE x.thread_key=c.thread_key"             \
    " AND x.checkpoint_key=c.checkpoint_key)"
#define ALL_COLUMNS                                                                                \
    "checkpoint_key,ns,id,is_stored,writes,writes_bytes,parent,run,type,size,number,body,"         \
    "meta_type,meta_size,meta_number,meta_body"

const char *const dgm_pg_sql_changes[PG_N_SQL] = {
    /* A division by zero unless this server has the lease, which no other server takes until the end of the transaction. $6: 1
     * if the task may not be stored yet: then this server must not have been declared dead. */
    [PG_SQL_FENCE] = "WITH held AS MATERIALIZED (SELECT t.owner=$4::bigint AND t.fence=$5::bigint"
                     " AS ok FROM dragoman.tasks t"
                     " WHERE t.tenant=$1 AND t.principal=$2 AND t.id=$3 FOR SHARE)"
                     "SELECT 1/coalesce((SELECT ok::int FROM held),$6::bigint*(SELECT count(*)"
                     " FROM dragoman.replicas r WHERE r.id=$4::bigint AND NOT r.dead))",
    [PG_SQL_PART] = "INSERT INTO dragoman.checkpoint_values(thread_key,number,part,bytes)"
                    " VALUES($1,$2::bigint,$3::bigint,$4)",
    [PG_SQL_PUT] =
        "WITH was AS MATERIALIZED (SELECT writes,writes_bytes,number,meta_number"
        " FROM dragoman.checkpoints" OF_KEY "),"
        "room AS MATERIALIZED (SELECT coalesce((SELECT writes_bytes FROM was),0)+$18::bigint"
        "<=$19::bigint AS ok),"
        "gone AS (DELETE FROM dragoman.checkpoint_values v USING was WHERE (SELECT ok FROM room)"
        " AND v.thread_key=$1 AND v.number IN (was.number,was.meta_number) AND v.number<>0)," TOUCH(
            "$1", "$15", "$16",
            "$17") ","
                   "put AS (INSERT INTO dragoman.checkpoints(thread_key," ALL_COLUMNS ")"
                   " SELECT "
                   "$1::bytea,$2::bytea,$3::bytea,$4::bytea,1,0,0,$5::bytea,$6::bytea,$7::bytea,"
                   "$8::bigint,$9::bigint,$10::bytea,$11::bytea,$12::bigint,$13::bigint,$14::bytea"
                   " WHERE (SELECT ok FROM room) ON CONFLICT (thread_key,checkpoint_key) DO UPDATE "
                   "SET"
                   " parent=excluded.parent,run=excluded.run,type=excluded.type,size=excluded.size,"
                   "number=excluded.number,body=excluded.body,meta_type=excluded.meta_type,"
                   "meta_size=excluded.meta_size,meta_number=excluded.meta_number,"
                   "meta_body=excluded.meta_body,is_stored=1)"
                   "SELECT coalesce((SELECT writes FROM was),0),coalesce((SELECT writes_bytes FROM "
                   "was),0),"
                   "0::bigint",
    [PG_SQL_PUT_END] =
        "DELETE FROM dragoman.checkpoint_values v WHERE v.thread_key=$1"
        " AND v.number=ANY($3::bigint[]) AND NOT EXISTS (SELECT 1 FROM dragoman.checkpoints" OF_KEY
        " AND (number=v.number OR meta_number=v.number)) AND NOT EXISTS (SELECT 1"
        " FROM dragoman.checkpoint_writes" OF_KEY " AND number=v.number)",
    [PG_SQL_WRITES] =
        "WITH was AS MATERIALIZED (SELECT writes,writes_bytes,size+meta_size AS bytes"
        " FROM dragoman.checkpoints" OF_KEY "),"
        "room AS MATERIALIZED (SELECT coalesce((SELECT writes FROM was),0)+$8::bigint<=$10::bigint"
        " AND coalesce((SELECT writes_bytes+bytes FROM was),0)+$9::bigint<=$11::bigint AS ok),"
        "x AS MATERIALIZED (SELECT * FROM unnest($12::bytea[],$13::bigint[],$14::bytea[],"
        "$15::bytea[],$16::bytea[],$17::bigint[],$18::bigint[],$19::bytea[])"
        " AS x(task,idx,channel,path,type,size,number,body) WHERE (SELECT ok FROM room)),"
        "old AS MATERIALIZED (SELECT w.task,w.idx,w.size,w.number,x.size AS new_size FROM x"
        " JOIN dragoman.checkpoint_writes w ON w.thread_key=$1 AND w.checkpoint_key=$2"
        " AND w.task=x.task AND w.idx=x.idx),"
        "gone AS (DELETE FROM dragoman.checkpoint_values v USING old WHERE old.idx<0"
        " AND old.number<>0 AND v.thread_key=$1 AND v.number=old.number),"
        "put AS (INSERT INTO dragoman.checkpoint_writes(thread_key,checkpoint_key,task,idx,"
        "channel,path,type,size,number,body) SELECT $1::bytea,$2::bytea,x.task,x.idx,x.channel,"
        "x.path,x.type,x.size,x.number,x.body FROM x"
        " ON CONFLICT (thread_key,checkpoint_key,task,idx) DO UPDATE SET"
        " channel=excluded.channel,path=excluded.path,type=excluded.type,size=excluded.size,"
        "number=excluded.number,body=excluded.body WHERE excluded.idx<0),"
        "more AS MATERIALIZED (SELECT (SELECT count(*) FROM x)-(SELECT count(*) FROM old) AS n,"
        "coalesce((SELECT sum(size) FROM x),0)-coalesce((SELECT sum(CASE WHEN idx<0 THEN size"
        " ELSE new_size END) FROM old),0) AS bytes)," TOUCH(
            "$1", "$5", "$6",
            "$7") ","
                  "put_row AS (INSERT INTO dragoman.checkpoints AS c(thread_key," ALL_COLUMNS ")"
                  " SELECT "
                  "$1::bytea,$2::bytea,$3::bytea,$4::bytea,0,more.n,more.bytes,'','','',0,0,'','',"
                  "0,0,'' FROM more WHERE (SELECT ok FROM room) ON CONFLICT "
                  "(thread_key,checkpoint_key)"
                  " DO UPDATE SET writes=c.writes+excluded.writes,"
                  "writes_bytes=c.writes_bytes+excluded.writes_bytes)"
                  "SELECT coalesce((SELECT writes FROM was),0),coalesce((SELECT writes_bytes FROM "
                  "was),0),"
                  "coalesce((SELECT bytes FROM was),0)",
    [PG_SQL_DELETE_THREADS] =
        "WITH v AS (DELETE FROM dragoman.checkpoint_values WHERE thread_key=ANY($1::bytea[])),"
        "w AS (DELETE FROM dragoman.checkpoint_writes WHERE thread_key=ANY($1::bytea[])),"
        "c AS (DELETE FROM dragoman.checkpoints WHERE thread_key=ANY($1::bytea[]))"
        "DELETE FROM dragoman.threads WHERE thread_key=ANY($1::bytea[])",
    [PG_SQL_DELETE_RUNS] =
        "WITH c AS MATERIALIZED (SELECT c.thread_key,c.checkpoint_key,c.number,c.meta_number"
        " FROM dragoman.checkpoints c JOIN dragoman.threads h ON h.thread_key=c.thread_key"
        " WHERE c.run=ANY($1::bytea[]) AND c.run<>'' AND h.agent=$2)," DELETE_THEM
        "SELECT count(*) FROM c",
    [PG_SQL_COPY_CLEAR] =
        "WITH c AS MATERIALIZED (SELECT c.thread_key,c.checkpoint_key,c.number,c.meta_number"
        " FROM dragoman.checkpoints f JOIN dragoman.checkpoints c ON c.thread_key=$2"
        " AND c.checkpoint_key=f.checkpoint_key WHERE f.thread_key=$1)," DELETE_THEM
        "SELECT count(*) FROM c",
    [PG_SQL_COPY] =
        "WITH h AS MATERIALIZED (SELECT 1 FROM dragoman.threads WHERE thread_key=$1),"
        "touch AS (INSERT INTO dragoman.threads(thread_key,agent,thread,touched_ms)"
        " SELECT $2::bytea,$3::bytea,$4::bytea,$5::bigint FROM h ON CONFLICT (thread_key)"
        " DO UPDATE SET touched_ms=excluded.touched_ms),"
        "c AS (INSERT INTO dragoman.checkpoints(thread_key," ALL_COLUMNS
        ") SELECT $2::bytea," ALL_COLUMNS " FROM dragoman.checkpoints WHERE thread_key=$1),"
        "w AS (INSERT INTO dragoman.checkpoint_writes(thread_key,checkpoint_key,task,idx,channel,"
        "path,type,size,number,body) SELECT $2::bytea,checkpoint_key,task,idx,channel,path,type,"
        "size,number,body FROM dragoman.checkpoint_writes WHERE thread_key=$1)"
        "INSERT INTO dragoman.checkpoint_values(thread_key,number,part,bytes)"
        " SELECT $2::bytea,number,part,bytes FROM dragoman.checkpoint_values WHERE thread_key=$1",
    [PG_SQL_KEEP_LATEST] =
        "WITH c AS MATERIALIZED (SELECT c.thread_key,c.checkpoint_key,c.number,c.meta_number"
        " FROM dragoman.checkpoints c WHERE c.thread_key=ANY($1::bytea[]) AND c.id<(SELECT x.id"
        " FROM dragoman.checkpoints x WHERE x.thread_key=c.thread_key AND x.ns=c.ns"
        " AND x.is_stored=1 ORDER BY x.id DESC LIMIT 1))," DELETE_THEM "SELECT count(*) FROM c",
};

/* ---- keys -------------------------------------------------------------------------------------------- */

static void pg_key(dgm_str a, dgm_str b, unsigned char *ret_key)
{
    unsigned char length[4] = {(unsigned char)(a.n >> 24), (unsigned char)(a.n >> 16),
                               (unsigned char)(a.n >> 8), (unsigned char)a.n};
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    if (!c || !EVP_DigestInit_ex(c, EVP_sha256(), NULL) ||
        !EVP_DigestUpdate(c, length, sizeof length) || !EVP_DigestUpdate(c, a.p, a.n) ||
        !EVP_DigestUpdate(c, b.p, b.n) || !EVP_DigestFinal_ex(c, ret_key, NULL))
        abort(); /* there is no server without it */
    EVP_MD_CTX_free(c);
}

void dgm_pg_thread_key(dgm_str agent, dgm_str thread, unsigned char *ret_key)
{
    pg_key(agent, thread, ret_key);
}

void dgm_pg_checkpoint_key(dgm_str ns, dgm_str id, unsigned char *ret_key)
{
    pg_key(ns, id, ret_key);
}

/* ---- a change ------------------------------------------------------------------------------------------ */

/* A value that is sent: in parts if it is large. */
struct pg_value {
    const dgm_checkpoint_value *value;
    int64_t number; /* 0: it is in the row */
};

struct pg_change {
    dgm_job *job;
    int64_t replica;
    bool may_be_new;
    unsigned char thread_key[DGM_DIGEST_BYTES], to_key[DGM_DIGEST_BYTES],
        checkpoint_key[DGM_DIGEST_BYTES];
    struct pg_value *values;
    size_t n_values;
    bool *skipped; /* of writes: another one of the change with the same key counts */
    size_t value;  /* the next part: of which value, from where */
    size_t from;
    pg_args args;
};

static dgm_str pg_key_str(const unsigned char *key)
{
    return (dgm_str){(const char *)key, DGM_DIGEST_BYTES};
}

static void add_value(pg_change *c, const dgm_checkpoint_value *v)
{
    c->values[c->n_values++] =
        (struct pg_value){v, dgm_value_size(v) > INLINE_BYTES ? dgm_random_id() : 0};
}

/* Of two writes with one key: the last one if they replace, else the first one. */
static void skip_equal_writes(pg_change *c)
{
    const dgm_checkpoint *row = &c->job->change.change.row;
    size_t cap = 64, n = row->n_writes;
    while (cap < n * 2)
        cap *= 2;
    uint32_t *slots = dgm_xcalloc(cap, sizeof *slots);
    c->skipped = dgm_xcalloc(n + 1, sizeof *c->skipped);
    for (size_t i = 0; i < n; i++) {
        const dgm_checkpoint_write *w = &row->writes[i];
        size_t at = dgm_hash((uint64_t)w->idx, w->task.p, w->task.n) & (cap - 1);
        for (; slots[at]; at = (at + 1) & (cap - 1)) {
            const dgm_checkpoint_write *other = &row->writes[slots[at] - 1];
            if (other->idx == w->idx && dgm_str_eq(other->task, w->task))
                break;
        }
        if (slots[at])
            c->skipped[w->idx < 0 ? slots[at] - 1 : i] = true;
        if (!slots[at] || w->idx < 0)
            slots[at] = (uint32_t)i + 1;
    }
    free(slots);
}

pg_change *dgm_pg_change_new(dgm_job *job, int64_t replica, bool may_be_new)
{
    const dgm_checkpoint_change *change = &job->change.change;
    pg_change *c = dgm_xcalloc(1, sizeof *c);
    c->job = job;
    c->replica = replica;
    c->may_be_new = may_be_new;
    dgm_pg_args_init(&c->args);
    dgm_pg_thread_key(job->change.agent, change->row.thread, c->thread_key);
    dgm_pg_thread_key(job->change.agent, change->to, c->to_key);
    dgm_pg_checkpoint_key(change->row.ns, change->row.id, c->checkpoint_key);
    c->values = dgm_xcalloc(change->row.n_writes + 2, sizeof *c->values);
    if (change->kind == DGM_CHECKPOINT_PUT) {
        add_value(c, &change->row.checkpoint);
        add_value(c, &change->row.metadata);
    } else if (change->kind == DGM_CHECKPOINT_WRITES) {
        skip_equal_writes(c);
        for (size_t i = 0; i < change->row.n_writes; i++)
            add_value(c, &change->row.writes[i].value);
    }
    return c;
}

void dgm_pg_change_free(pg_change *c)
{
    if (!c)
        return;
    dgm_pg_args_done(&c->args);
    free(c->values);
    free(c->skipped);
    free(c);
}

/* ---- sending ------------------------------------------------------------------------------------------- */

static bool is_skipped(const pg_change *c, size_t i)
{
    return c->skipped && c->skipped[i];
}

/* The next part; false: all are sent. */
static bool send_part(pg_change *c, pg_pipe *p)
{
    while (c->value < c->n_values && (!c->values[c->value].number || is_skipped(c, c->value)))
        c->value++;
    if (c->value == c->n_values)
        return false;
    const struct pg_value *v = &c->values[c->value];
    const dgm_bytes *b = v->value->bytes;
    size_t n = b->n - c->from < PART_BYTES ? b->n - c->from : PART_BYTES;
    dgm_pg_args_clear(&c->args);
    dgm_pg_arg_str(&c->args, pg_key_str(c->thread_key));
    dgm_pg_arg_int(&c->args, v->number);
    dgm_pg_arg_int(&c->args, (int64_t)(c->from / PART_BYTES));
    dgm_pg_arg_str(&c->args, (dgm_str){b->p + c->from, n});
    dgm_pg_send(p, PG_SQL_PART, &c->args);
    c->from += n;
    if (c->from == b->n) {
        c->value++;
        c->from = 0;
    }
    return true;
}

static dgm_str body_of(const struct pg_value *v)
{
    size_t n = v->number ? 0 : dgm_value_size(v->value);
    return (dgm_str){n ? v->value->bytes->p : "", n};
}

static void arg_value(pg_args *a, const struct pg_value *v)
{
    dgm_pg_arg_str(a, v->value->type);
    dgm_pg_arg_int(a, (int64_t)dgm_value_size(v->value));
    dgm_pg_arg_int(a, v->number);
    dgm_pg_arg_str(a, body_of(v));
}

static void arg_key(pg_change *c)
{
    dgm_pg_args_clear(&c->args);
    dgm_pg_arg_str(&c->args, pg_key_str(c->thread_key));
    dgm_pg_arg_str(&c->args, pg_key_str(c->checkpoint_key));
}

static void send_put(pg_change *c, pg_pipe *p)
{
    const dgm_checkpoint *row = &c->job->change.change.row;
    pg_args *a = &c->args;
    arg_key(c);
    dgm_pg_arg_str(a, row->ns);
    dgm_pg_arg_str(a, row->id);
    dgm_pg_arg_str(a, row->parent);
    dgm_pg_arg_str(a, row->run);
    arg_value(a, &c->values[0]);
    arg_value(a, &c->values[1]);
    dgm_pg_arg_str(a, c->job->change.agent);
    dgm_pg_arg_str(a, row->thread);
    dgm_pg_arg_int(a, dgm_loop_unix_ms());
    dgm_pg_arg_int(a, (int64_t)c->job->change.bytes);
    dgm_pg_arg_int(a, (int64_t)DGM_MAX_CHECKPOINT_TOTAL_BYTES);
    dgm_pg_send(p, PG_SQL_PUT, a);
}

enum { W_TASK, W_IDX, W_CHANNEL, W_PATH, W_TYPE, W_SIZE, W_NUMBER, W_BODY, W_N };

static void write_column(pg_change *c, int column)
{
    const dgm_checkpoint *row = &c->job->change.change.row;
    pg_args *a = &c->args;
    bool numbers = column == W_IDX || column == W_SIZE || column == W_NUMBER;
    dgm_pg_array_begin(a, numbers);
    for (size_t i = 0; i < row->n_writes; i++) {
        const dgm_checkpoint_write *w = &row->writes[i];
        const dgm_str texts[W_N] = {[W_TASK] = w->task,
                                    [W_CHANNEL] = w->channel,
                                    [W_PATH] = w->path,
                                    [W_TYPE] = w->value.type,
                                    [W_BODY] = body_of(&c->values[i])};
        const int64_t ints[W_N] = {[W_IDX] = w->idx,
                                   [W_SIZE] = (int64_t)dgm_value_size(&w->value),
                                   [W_NUMBER] = c->values[i].number};
        if (is_skipped(c, i))
            continue;
        if (numbers)
            dgm_pg_array_int(a, ints[column]);
        else
            dgm_pg_array_str(a, texts[column].p ? texts[column] : (dgm_str){"", 0});
    }
    dgm_pg_array_end(a);
}

static void send_writes(pg_change *c, pg_pipe *p)
{
    const dgm_checkpoint *row = &c->job->change.change.row;
    pg_args *a = &c->args;
    arg_key(c);
    dgm_pg_arg_str(a, row->ns);
    dgm_pg_arg_str(a, row->id);
    dgm_pg_arg_str(a, c->job->change.agent);
    dgm_pg_arg_str(a, row->thread);
    dgm_pg_arg_int(a, dgm_loop_unix_ms());
    dgm_pg_arg_int(a, (int64_t)row->n_writes);
    dgm_pg_arg_int(a, (int64_t)c->job->change.bytes);
    dgm_pg_arg_int(a, DGM_MAX_CHECKPOINT_WRITES);
    dgm_pg_arg_int(a, (int64_t)DGM_MAX_CHECKPOINT_TOTAL_BYTES);
    for (int column = 0; column < W_N; column++)
        write_column(c, column);
    dgm_pg_send(p, PG_SQL_WRITES, a);
}

static void send_end(pg_change *c, pg_pipe *p)
{
    arg_key(c);
    dgm_pg_array_begin(&c->args, true);
    for (size_t i = 0; i < c->n_values; i++) {
        if (c->values[i].number)
            dgm_pg_array_int(&c->args, c->values[i].number);
    }
    dgm_pg_array_end(&c->args);
    if (c->args.n_elements)
        dgm_pg_send(p, PG_SQL_PUT_END, &c->args);
}

/* The same change was sent before, and its statements may have run beside these: each of them saw the rows without the other.
 * Then writes were counted twice, and values of rows that were replaced are left. */
static void send_repair(pg_change *c, pg_pipe *p)
{
    static const char count[] =
        "UPDATE dragoman.checkpoints c SET writes=w.n,writes_bytes=w.bytes FROM (SELECT count(*)"
        " AS n,coalesce(sum(size),0)::bigint AS bytes FROM dragoman.checkpoint_writes" OF_KEY
        ") w WHERE c.thread_key=$1 AND c.checkpoint_key=$2";
    static const char tidy[] =
        "DELETE FROM dragoman.checkpoint_values v WHERE v.thread_key=$1 AND v.number NOT IN"
        " (SELECT number FROM dragoman.checkpoints WHERE thread_key=$1 UNION ALL SELECT meta_number"
        " FROM dragoman.checkpoints WHERE thread_key=$1 UNION ALL SELECT number"
        " FROM dragoman.checkpoint_writes WHERE thread_key=$1)";
    arg_key(c);
    dgm_pg_send_text(p, count, &c->args);
    dgm_pg_args_clear(&c->args);
    dgm_pg_arg_str(&c->args, pg_key_str(c->thread_key));
    dgm_pg_send_text(p, tidy, &c->args);
}

/* Threads by their keys; runs as they are. */
static void send_names(pg_change *c, pg_pipe *p, pg_sql which)
{
    const dgm_checkpoint_change *change = &c->job->change.change;
    unsigned char key[DGM_DIGEST_BYTES];
    dgm_pg_args_clear(&c->args);
    dgm_pg_array_begin(&c->args, false);
    for (size_t i = 0; i < change->names.n; i++) {
        dgm_str name = change->names.at[i];
        if (which != PG_SQL_DELETE_RUNS)
            dgm_pg_thread_key(c->job->change.agent, name, key);
        dgm_pg_array_str(&c->args, which == PG_SQL_DELETE_RUNS ? (name.p ? name : (dgm_str){"", 0})
                                                               : pg_key_str(key));
    }
    dgm_pg_array_end(&c->args);
    if (which == PG_SQL_DELETE_RUNS)
        dgm_pg_arg_str(&c->args, c->job->change.agent);
    dgm_pg_send(p, which, &c->args);
}

static void send_copy(pg_change *c, pg_pipe *p)
{
    const dgm_checkpoint_change *change = &c->job->change.change;
    if (dgm_str_eq(change->row.thread, change->to))
        return;
    dgm_pg_args_clear(&c->args);
    dgm_pg_arg_str(&c->args, pg_key_str(c->thread_key));
    dgm_pg_arg_str(&c->args, pg_key_str(c->to_key));
    dgm_pg_send(p, PG_SQL_COPY_CLEAR, &c->args);
    dgm_pg_arg_str(&c->args, c->job->change.agent);
    dgm_pg_arg_str(&c->args, change->to);
    dgm_pg_arg_int(&c->args, dgm_loop_unix_ms());
    dgm_pg_send(p, PG_SQL_COPY, &c->args);
}

static void send_fence(pg_change *c, pg_pipe *p)
{
    const dgm_fence *f = &c->job->change.change.fence;
    dgm_pg_args_clear(&c->args);
    dgm_pg_arg_str(&c->args, f->owner.tenant);
    dgm_pg_arg_str(&c->args, f->owner.principal);
    dgm_pg_arg_str(&c->args, f->task_id);
    dgm_pg_arg_int(&c->args, c->replica);
    dgm_pg_arg_int(&c->args, (int64_t)f->fence);
    dgm_pg_arg_int(&c->args, f->is_new && c->may_be_new);
    dgm_pg_send(p, PG_SQL_FENCE, &c->args);
}

bool dgm_pg_change_send(pg_change *c, pg_pipe *p)
{
    dgm_checkpoint_change_kind kind = c->job->change.change.kind;
    if (send_part(c, p))
        return true;
    switch (kind) {
    case DGM_CHECKPOINT_PUT: send_put(c, p); break;
    case DGM_CHECKPOINT_WRITES: send_writes(c, p); break;
    case DGM_CHECKPOINT_DELETE_THREADS: send_names(c, p, PG_SQL_DELETE_THREADS); break;
    case DGM_CHECKPOINT_DELETE_RUNS: send_names(c, p, PG_SQL_DELETE_RUNS); break;
    case DGM_CHECKPOINT_COPY: send_copy(c, p); break;
    case DGM_CHECKPOINT_KEEP_LATEST: send_names(c, p, PG_SQL_KEEP_LATEST); break;
    }
    if (kind == DGM_CHECKPOINT_PUT || kind == DGM_CHECKPOINT_WRITES)
        send_end(c, p);
    if (c->job->in_doubt && (kind == DGM_CHECKPOINT_PUT || kind == DGM_CHECKPOINT_WRITES))
        send_repair(c, p);
    if (c->job->change.change.fence.task_id.n)
        send_fence(c, p);
    return false;
}

/* Was there room? The statement has decided in the same way. */
void dgm_pg_change_result(pg_change *c, const PGresult *r)
{
    dgm_job *job = c->job;
    const dgm_checkpoint *row = &job->change.change.row;
    if (PQnfields(r) != 3 || PQntuples(r) != 1)
        return;
    size_t writes = (size_t)dgm_pg_int(r, 0, 0),
           bytes = (size_t)(dgm_pg_int(r, 0, 1) + dgm_pg_int(r, 0, 2));
    if (job->change.change.kind == DGM_CHECKPOINT_WRITES)
        writes += row->n_writes;
    job->code = dgm_checkpoint_check_room(row, writes, bytes + job->change.bytes, &job->err);
}
