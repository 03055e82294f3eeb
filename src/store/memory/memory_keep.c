/* store/memory/memory_keep.c - writing. */
#include "store/memory/memory_int.h"

#include <stdlib.h>

void dgm_memory_put_text(char **at, dgm_str text)
{
    if (text.n)
        memcpy(*at, text.p, text.n);
    *at += text.n;
}

static struct task *make_task(struct memory_store *s, const dgm_task_row *row, uint64_t hash)
{
    size_t n =
        row->owner.tenant.n + row->owner.principal.n + row->id.n + row->context_id.n + row->agent.n;
    struct task *t = dgm_xmalloc(sizeof *t + n);
    char *at = t->texts;
    *t = (struct task){.created_ms = row->created_ms,
                       .first = 1,
                       .tenant_n = (uint16_t)row->owner.tenant.n,
                       .principal_n = (uint32_t)row->owner.principal.n,
                       .id_n = (uint32_t)row->id.n,
                       .context_id_n = (uint32_t)row->context_id.n,
                       .agent_n = (uint16_t)row->agent.n,
                       .cap_records = FIRST_RECORDS};
    t->records = t->first_records;
    dgm_memory_put_text(&at, row->owner.tenant);
    dgm_memory_put_text(&at, row->owner.principal);
    dgm_memory_put_text(&at, row->id);
    dgm_memory_put_text(&at, row->context_id);
    dgm_memory_put_text(&at, row->agent);
    dgm_table_add(&s->tasks, &t->node, hash);
    dgm_table_add(&s->contexts, &t->in_context,
                  dgm_memory_context_hash(row->owner, row->context_id));
    return t;
}

static void keep_caller(struct memory_store *s, struct task *t, const dgm_turn_row *row)
{
    if (row->caller_id.n == 0)
        return;
    struct caller *c =
        dgm_memory_find_caller(s, task_owner(t), task_agent(t), row->protocol, row->caller_id);
    if (!c) {
        c = dgm_xmalloc(sizeof *c + row->protocol.n + row->caller_id.n);
        char *at = c->texts;
        *c = (struct caller){.protocol_n = (uint32_t)row->protocol.n,
                             .caller_id_n = (uint32_t)row->caller_id.n};
        dgm_memory_put_text(&at, row->protocol);
        dgm_memory_put_text(&at, row->caller_id);
        dgm_table_add(&s->callers, &c->node,
                      dgm_memory_caller_hash(task_owner(t), row->protocol, row->caller_id));
    }
    c->task = t;
    c->turn = row->turn;
    c->order = ++s->order;
}

struct turn *dgm_memory_add_turn(const dgm_turn_row *row)
{
    size_t size = offsetof(struct turn, texts) + row->protocol.n + row->caller_id.n +
                  row->request.n + row->previous.n;
    struct turn *t = dgm_xmalloc(size > sizeof *t ? size : sizeof *t);
    char *at = t->texts;
    *t = (struct turn){.turn = row->turn,
                       .first_seq = (uint32_t)row->first_seq,
                       .last_seq = (uint32_t)row->last_seq,
                       .protocol_n = (uint32_t)row->protocol.n,
                       .caller_id_n = (uint32_t)row->caller_id.n,
                       .request_n = (uint32_t)row->request.n,
                       .previous_n = (uint32_t)row->previous.n};
    dgm_memory_put_text(&at, row->protocol);
    dgm_memory_put_text(&at, row->caller_id);
    dgm_memory_put_text(&at, row->request);
    dgm_memory_put_text(&at, row->previous);
    return t;
}

static void keep_turn(struct memory_store *s, struct task *t, const dgm_turn_row *row)
{
    struct turn **at = &t->turns, *made = dgm_memory_add_turn(row), *old;
    while ((old = *at) && old->turn < row->turn)
        at = &old->next;
    made->next = old;
    if (old && old->turn == row->turn) {
        made->next = old->next;
        free(old);
    } else { /* one that ends later is not newer than those that began meanwhile */
        keep_caller(s, t, row);
    }
    *at = made;
}

/* ---- message ids --------------------------------------------------------------------------------------- */

static struct taken *make_taken(struct task *t, const dgm_taken *from, uint32_t turn)
{
    struct taken *d = dgm_xmalloc(sizeof *d + from->message_id.n + from->content.n);
    char *at = d->texts;
    *d = (struct taken){.next = t->taken,
                        .to_this = &t->taken,
                        .task = t,
                        .turn = turn,
                        .message_id_n = (uint32_t)from->message_id.n,
                        .content_n = (uint32_t)from->content.n};
    dgm_memory_put_text(&at, from->message_id);
    dgm_memory_put_text(&at, from->content);
    if (d->next)
        d->next->to_this = &d->next;
    t->taken = d;
    return d;
}

/* In place of who had it. */
static void memory_keep_put_key(struct memory_store *s, struct taken *d, dgm_str context_id,
                                int64_t expires_ms)
{
    dgm_owner owner = task_owner(d->task);
    dgm_str agent = task_agent(d->task), message_id = taken_message(d);
    enum taken_by by = taken_by(context_id);
    uint64_t hash = dgm_memory_message_hash(owner, agent, context_id, message_id);
    struct taken *old = dgm_memory_find_message(s, hash, owner, agent, context_id, message_id);
    if (old)
        dgm_memory_drop_message(s, old, by);
    d->has[by] = true;
    d->keys[by].expires_ms = expires_ms;
    dgm_table_add(&s->taken[by], &d->keys[by].node, hash);
}

static void keep_taken(struct memory_store *s, struct task *t, const dgm_append *b)
{
    struct taken *d = make_taken(t, b->taken, b->turn->turn);
    if (t->context_id_n)
        memory_keep_put_key(s, d, task_context(t), 0);
    if (b->taken->nameless_until_ms || !t->context_id_n)
        memory_keep_put_key(s, d, (dgm_str){0}, b->taken->nameless_until_ms);
}

/* ---- calls --------------------------------------------------------------------------------------------- */

/* In place of whoever of this agent's asked for it. */
static void keep_asked(struct memory_store *s, struct task *t, dgm_str call_id)
{
    struct asked *a = dgm_memory_find_call(s, task_owner(t), task_agent(t), call_id);
    if (a)
        dgm_memory_drop_calls(s, a);
    a = dgm_xmalloc(sizeof *a + call_id.n);
    char *at = a->texts;
    *a = (struct asked){.next = t->asked,
                        .to_this = &t->asked,
                        .task = t,
                        .order = ++s->order,
                        .call_id_n = (uint32_t)call_id.n};
    dgm_memory_put_text(&at, call_id);
    if (a->next)
        a->next->to_this = &a->next;
    t->asked = a;
    dgm_table_add(&s->asked, &a->node, dgm_memory_call_hash(task_owner(t), call_id));
    s->bytes += sizeof *a + call_id.n;
}

/* ---- appends ------------------------------------------------------------------------------------------- */

static void keep_folded(struct memory_store *s, struct task *t, const dgm_task_row *row)
{
    s->bytes = s->bytes - t->folded_n + row->folded.n;
    t->folded = dgm_xrealloc(t->folded, row->folded.n + 1);
    memcpy(t->folded, row->folded.p, row->folded.n);
    t->folded[row->folded.n] = 0;
    t->folded_n = (uint32_t)row->folded.n;
    t->folded_seq = (uint32_t)row->folded_seq;
}

static void keep_records(struct task *t, dgm_record **records, size_t n)
{
    size_t all = t->n_records + n;
    if (all > t->cap_records) { /* just enough at first: many tasks are written once or twice */
        bool is_first = t->records == t->first_records;
        t->cap_records = (uint32_t)(t->n_records ? all * 2 : all);
        t->records =
            dgm_xrealloc(is_first ? NULL : t->records, t->cap_records * sizeof *t->records);
        if (is_first)
            memcpy(t->records, t->first_records, t->n_records * sizeof *t->records);
    }
    for (size_t i = 0; i < n; i++)
        t->records[t->n_records++] = dgm_record_ref(records[i]);
}

/* Its row with this key is of another task and of the same content: another server was first. */
static bool keep_is_taken(struct memory_store *s, const dgm_append *b, dgm_str context_id)
{
    unsigned char mine[DGM_DIGEST_BYTES], other[DGM_DIGEST_BYTES];
    dgm_owner owner = b->row.owner;
    dgm_str agent = b->row.agent, id = b->taken->message_id;
    uint64_t hash = dgm_memory_message_hash(owner, agent, context_id, id);
    const struct taken *d = dgm_memory_find_message(s, hash, owner, agent, context_id, id);
    int64_t expires_ms = d ? d->keys[taken_by(context_id)].expires_ms : 0;
    if (!d || (expires_ms && expires_ms <= dgm_loop_unix_ms()) ||
        dgm_str_eq(task_id(d->task), b->row.id))
        return false;
    dgm_content_digest(&s->sha256, b->taken->content, mine);
    dgm_content_digest(&s->sha256, (dgm_str){d->texts + d->message_id_n, d->content_n}, other);
    return memcmp(mine, other, sizeof mine) == 0;
}

static bool keep_is_duplicate(struct memory_store *s, const dgm_append *b)
{
    dgm_str context_id = b->row.context_id;
    if (!b->taken)
        return false;
    return (context_id.n && keep_is_taken(s, b, context_id)) ||
           ((b->taken->nameless_until_ms || !context_id.n) && keep_is_taken(s, b, (dgm_str){0}));
}

dgm_code dgm_memory_check_fence(const struct memory_store *s, const dgm_fence *f, dgm_err *err)
{
    if (!s->replica || !f->task_id.n)
        return DGM_OK;
    uint64_t hash = dgm_memory_task_hash(f->owner, f->task_id);
    const struct task *t = dgm_memory_find_task(s, hash, f->owner, f->task_id);
    bool is_ours = t ? memory_has_lease(s, t, f->fence)
                     : f->is_new && !dgm_refused_has(&s->refused, f->owner, f->task_id);
    return is_ours ? DGM_OK : dgm_append_lost(f->task_id, err);
}

static dgm_code keep_check_append(struct memory_store *s, const dgm_append *b, const struct task *t,
                                  dgm_err *err)
{
    uint64_t last = t ? t->last_seq : 0;
    dgm_code code = dgm_append_check(b, err);
    if (code)
        return code;
    if (s->replica && t && !memory_has_lease(s, t, b->fence))
        return dgm_append_lost(b->row.id, err);
    if (last + 1 != dgm_append_first(b))
        return dgm_append_misfit(b, t ? &last : NULL, err);
    if (s->replica && keep_is_duplicate(s, b))
        return dgm_append_duplicate(b, err);
    return DGM_OK;
}

void dgm_memory_append(struct memory_store *s, dgm_job *job)
{
    const dgm_append *b = &job->append.batch;
    uint64_t hash = dgm_memory_task_hash(b->row.owner, b->row.id);
    struct task *t = dgm_memory_find_task(s, hash, b->row.owner, b->row.id);
    if ((job->code = keep_check_append(s, b, t, &job->err))) {
        if (s->replica && dgm_append_first(b) == 1)
            dgm_refused_add(&s->refused, b->row.owner, b->row.id);
        return;
    }
    if (!t) {
        t = make_task(s, &b->row, hash);
        t->fence = s->replica > 0;
    }
    t->replica = b->releases ? 0 : s->replica & MAX_REPLICA;
    t->state = b->row.state;
    t->status_ms = b->row.status_ms;
    t->last_seq = (uint32_t)b->row.last_seq;
    if (b->row.folded.p)
        keep_folded(s, t, &b->row);
    keep_records(t, b->records, b->n_records);
    if (b->turn)
        keep_turn(s, t, b->turn);
    if (b->turn && b->taken)
        keep_taken(s, t, b);
    for (size_t i = 0; i < b->open_calls.n; i++)
        keep_asked(s, t, b->open_calls.at[i]);
    s->bytes += job->append.bytes;
    dgm_memory_note_end(s, t);
    dgm_memory_delete_some(s);
    s->stats.appends++;
    s->stats.commits++;
    s->stats.records += b->n_records;
    s->stats.bytes += job->append.bytes;
}
