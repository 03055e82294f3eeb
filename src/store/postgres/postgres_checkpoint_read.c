/*
 * store/postgres/postgres_checkpoint_read.c - checkpoints of graphs: reading.
 *
 * One statement reads one snapshot of the database: the rows of a page, each followed by its writes, then by the parts of its large
 * values. Its results come one by one, so that a part is in memory once.
 */
#include "postgres_int.h"

#include <stdio.h>

/* Columns. Of kind 0, a row: THREAD to META_BODY. Of kind 1, a write, and 2, a part: others with the same types. */
enum { KIND, PLACE, S1, S2, S3, S4, S5, S6, S7, N1, N2, N3, N4, N5, B1, B2, IS_MORE };

/* Behind every id: ids are UTF-8. */
#define BEHIND "\xff"

void dgm_pg_checkpoints_send(pg_pipe *p, dgm_job *job)
{
    static const char sql[] =
        "WITH p AS MATERIALIZED (SELECT q.*,row_number() OVER w AS k,coalesce(sum(q.size+"
        "q.meta_size+q.writes_bytes) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),0)"
        " AS before FROM (SELECT h.thread,c.* FROM %s WHERE h.agent=$1 %s AND c.id>=$5 AND c.id<$6"
        " AND (c.id<>$7 OR (c.ns,h.thread)>($8,$9)) AND c.is_stored=1"
        " AND ($10::bigint=1 OR c.ns=$4) AND ($2::bytea='' OR h.thread_key=$3)"
        " ORDER BY c.id DESC,c.ns,h.thread LIMIT $11::bigint+1) q"
        " WINDOW w AS (ORDER BY q.id DESC,q.ns,q.thread)),"
        "page AS MATERIALIZED (SELECT * FROM p WHERE k<=$11::bigint AND (k=1 OR before<"
        "$12::bigint)),"
        "w AS MATERIALIZED (SELECT page.k,w.task,w.path,w.channel,w.type,w.idx,w.size,w.number,"
        "w.body,w.thread_key FROM page JOIN dragoman.checkpoint_writes w"
        " ON w.thread_key=page.thread_key AND w.checkpoint_key=page.checkpoint_key"
        " WHERE page.writes>0),"
        "o AS MATERIALIZED (SELECT k,thread_key,number FROM page UNION ALL SELECT k,thread_key,"
        "meta_number FROM page UNION ALL SELECT k,thread_key,number FROM w)"
        "SELECT a.*,(SELECT count(*) FROM p)>(SELECT count(*) FROM page) FROM ("
        "SELECT 0::bigint AS kind,k,thread AS s1,ns AS s2,id AS s3,parent AS s4,run AS s5,"
        "type AS s6,meta_type AS s7,size AS n1,number AS n2,meta_size AS n3,meta_number AS n4,"
        "writes AS n5,body AS b1,meta_body AS b2 FROM page UNION ALL "
        "SELECT 1,k,task,path,channel,type,'','','',idx,size,number,0,0,body,'' FROM w UNION ALL "
        "SELECT 2,o.k,'','','','','','','',v.number,v.part,0,0,0,v.bytes,'' FROM o"
        " JOIN dragoman.checkpoint_values v ON v.thread_key=o.thread_key AND v.number=o.number"
        " WHERE o.number<>0) a ORDER BY k,kind,s2,s1,n1,n2";
    const dgm_checkpoint_query *q = &job->checkpoints.query;
    bool in_ns = q->thread.n && !q->any_ns;
    unsigned char key[DGM_DIGEST_BYTES];
    char text[4000];
    dgm_arena *arena = dgm_job_arena(job);
    dgm_str until = DGM_STR(BEHIND);
    if (q->id.n)
        until = dgm_str_just_behind(arena, q->id);
    if (q->before.n && dgm_str_order(q->before, until) < 0)
        until = q->before;
    if (q->after.id.n) { /* in one namespace of a thread an id is there once */
        dgm_str end = in_ns ? q->after.id : dgm_str_just_behind(arena, q->after.id);
        until = dgm_str_order(end, until) < 0 ? end : until;
    }
    snprintf(text, sizeof text, sql,
             "dragoman.threads h JOIN dragoman.checkpoints c ON c.thread_key=h.thread_key",
             q->thread.n ? "AND c.thread_key=$3" : "");
    pg_args a;
    dgm_pg_args_init(&a);
    dgm_pg_thread_key(job->checkpoints.agent, q->thread, key);
    dgm_pg_arg_str(&a, job->checkpoints.agent);
    dgm_pg_arg_str(&a, q->thread);
    dgm_pg_arg_str(&a, (dgm_str){(const char *)key, sizeof key});
    dgm_pg_arg_str(&a, q->ns);
    dgm_pg_arg_str(&a, q->id);
    dgm_pg_arg_str(&a, until);
    dgm_pg_arg_str(&a, q->after.id);
    dgm_pg_arg_str(&a, q->after.ns);
    dgm_pg_arg_str(&a, q->after.thread);
    dgm_pg_arg_int(&a, q->any_ns);
    dgm_pg_arg_int(&a, (int64_t)q->limit);
    dgm_pg_arg_int(&a, (int64_t)DGM_MAX_STORE_PAGE_BYTES);
    dgm_pg_send_text(p, text, &a);
    dgm_pg_args_done(&a);
}

/* ---- results ------------------------------------------------------------------------------------------- */

/* A large value that is being filled. */
struct pg_filling {
    int64_t number;
    dgm_bytes *to;
    size_t n;
};

struct pg_page {
    struct pg_filling *fills; /* of the last row */
    size_t n_fills, cap_fills;
    size_t cap_writes;
    struct pg_filling *last;
};

static void checkpoint_damaged(dgm_job *job, dgm_str id)
{
    job->code = dgm_fail(
        &job->err, DGM_INTERNAL, NULL,
        "the database is damaged: checkpoint %.*s cannot be read: restore a backup", DGM_P(id));
}

static dgm_checkpoint *last_row(dgm_job *job)
{
    size_t n = job->got.checkpoints.n;
    return n ? &job->got.checkpoints.at[n - 1] : NULL;
}

/* Are the parts of the last row complete? */
static void check_row(dgm_job *job, const struct pg_page *page)
{
    const dgm_checkpoint *row = last_row(job);
    if (!row)
        return; /* parts belong to a row */
    bool ok = row->n_writes == page->cap_writes;
    for (size_t i = 0; i < page->n_fills; i++)
        ok &= page->fills[i].n == page->fills[i].to->n;
    if (!ok && !job->code)
        checkpoint_damaged(job, row->id);
}

static dgm_checkpoint_value pg_take_value(dgm_job *job, struct pg_page *page, dgm_str type,
                                          int64_t size, int64_t number, dgm_str body)
{
    dgm_checkpoint_value v = {.type = dgm_arena_dup(job->arena, type)};
    if (size < 0 || (size_t)size > DGM_MAX_CHECKPOINT_BYTES ||
        (!number && body.n != (size_t)size)) {
        checkpoint_damaged(job, last_row(job)->id);
        return v;
    }
    if (!number) {
        v.bytes = dgm_bytes_copy(body);
        return v;
    }
    v.bytes = dgm_bytes_new((size_t)size);
    if (page->n_fills == page->cap_fills) {
        size_t cap = page->cap_fills ? page->cap_fills * 2 : 16;
        page->fills =
            dgm_arena_realloc(job->arena, page->fills, page->n_fills * sizeof *page->fills,
                              cap * sizeof *page->fills);
        page->cap_fills = cap;
    }
    page->fills[page->n_fills++] = (struct pg_filling){number, v.bytes, 0};
    return v;
}

static void take_row_of(dgm_job *job, struct pg_page *page, const PGresult *r, int i)
{
    dgm_arena *a = job->arena;
    check_row(job, page);
    if (job->code || job->got.checkpoints.n == job->checkpoints.query.limit)
        return;
    page->n_fills = 0;
    page->last = NULL;
    page->cap_writes = (size_t)dgm_pg_int(r, i, N5);
    dgm_checkpoint *row = &job->got.checkpoints.at[job->got.checkpoints.n++];
    *row = (dgm_checkpoint){.thread = pg_text(job, r, i, S1),
                            .ns = pg_text(job, r, i, S2),
                            .id = pg_text(job, r, i, S3),
                            .parent = pg_text(job, r, i, S4),
                            .run = pg_text(job, r, i, S5)};
    if (page->cap_writes > DGM_MAX_CHECKPOINT_WRITES) {
        checkpoint_damaged(job, row->id);
        return;
    }
    row->writes = dgm_new_n(a, dgm_checkpoint_write, page->cap_writes + 1);
    row->checkpoint = pg_take_value(job, page, dgm_pg_str(r, i, S6), dgm_pg_int(r, i, N1),
                                    dgm_pg_int(r, i, N2), dgm_pg_str(r, i, B1));
    if (!job->code)
        row->metadata = pg_take_value(job, page, dgm_pg_str(r, i, S7), dgm_pg_int(r, i, N3),
                                      dgm_pg_int(r, i, N4), dgm_pg_str(r, i, B2));
}

static void take_write(dgm_job *job, struct pg_page *page, const PGresult *r, int i)
{
    dgm_checkpoint *row = last_row(job);
    if (!row || row->n_writes == page->cap_writes) {
        checkpoint_damaged(job, row ? row->id : (dgm_str){"", 0});
        return;
    }
    dgm_checkpoint_write *w = (dgm_checkpoint_write *)(uintptr_t)&row->writes[row->n_writes++];
    w->task = pg_text(job, r, i, S1);
    w->path = pg_text(job, r, i, S2);
    w->channel = pg_text(job, r, i, S3);
    w->idx = dgm_pg_int(r, i, N1);
    w->value = pg_take_value(job, page, dgm_pg_str(r, i, S4), dgm_pg_int(r, i, N2),
                             dgm_pg_int(r, i, N3), dgm_pg_str(r, i, B1));
}

static void take_part(dgm_job *job, struct pg_page *page, const PGresult *r, int i)
{
    int64_t number = dgm_pg_int(r, i, N1);
    dgm_str part = dgm_pg_str(r, i, B1);
    struct pg_filling *f = page->last;
    for (size_t k = 0; (!f || f->number != number) && k < page->n_fills; k++)
        f = &page->fills[k];
    if (!f || f->number != number || part.n > f->to->n - f->n) {
        checkpoint_damaged(job, last_row(job) ? last_row(job)->id : (dgm_str){"", 0});
        return;
    }
    memcpy(f->to->p + f->n, part.p, part.n);
    f->n += part.n;
    page->last = f;
}

/* A result is a row of the answer, or some; the last one has another status. */
void dgm_pg_checkpoints_result(dgm_job *job, const PGresult *r)
{
    static void (*const takes[])(dgm_job *, struct pg_page *, const PGresult *,
                                 int) = {take_row_of, take_write, take_part};
    struct pg_page *page = job->state;
    if (!page) {
        page = job->state = dgm_new(job->arena, struct pg_page);
        job->got.checkpoints.at =
            dgm_new_n(job->arena, dgm_checkpoint, job->checkpoints.query.limit);
    }
    for (int i = 0; i < PQntuples(r) && !job->code; i++) {
        takes[dgm_pg_int(r, i, KIND)](job, page, r, i);
        job->got.checkpoints.more = dgm_pg_int(r, i, IS_MORE);
    }
    if (PQresultStatus(r) == PGRES_TUPLES_OK && !job->code)
        check_row(job, page);
}
