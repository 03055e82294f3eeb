/*
 * store/memory/memory_int.h - what the files of this folder share.
 *
 *   memory.c       the driver, and reading
 *   memory_find.c  tables: a task, a turn by its caller's id, a message id, a call
 *   memory_keep.c  writing
 *   memory_drop.c  forgetting: what ended first, what is old
 *   memory_list.c  pages of tasks
 *   memory_note.c  notes
 *   memory_checkpoint.c  checkpoints of graphs
 *   memory_share.c  several stores on one memory, as servers on one database: for tests
 *
 * Everything that is kept is one block, its texts behind it, one after the other: most tasks have little,
 * and there are many. Seqs fit into 32 bits (dgm_append_check).
 */
#pragma once

#include "base/table.h"
#include "store/store_int.h"
#include "store/store_refused.h"

#include <pthread.h>

/* ---- what is kept ------------------------------------------------------------------------------------- */

struct turn {
    struct turn *next;
    uint32_t turn, first_seq, last_seq;
    uint32_t protocol_n, caller_id_n, request_n, previous_n;
    char texts[];
};

#define MAX_REPLICA 0xFFFFFFu /* servers that share a store in memory are those of a test */
#define FIRST_RECORDS 2       /* submitted, working: a task that waits has no others */

struct task {
    dgm_table_node node;       /* first */
    dgm_table_node in_context; /* beside the others of its context */
    dgm_record **records;      /* from seq `first` on */
    dgm_record *first_records[FIRST_RECORDS];
    struct turn *turns;            /* in order */
    struct taken *taken;           /* the message ids it was sent */
    struct asked *asked;           /* the calls it asked for */
    struct task *later, **to_this; /* that ended next; who points to it, NULL: it has not ended */
    char *folded;
    int64_t created_ms, status_ms;
    uint32_t last_seq, folded_seq, first;
    uint32_t folded_n, n_records, cap_records;
    uint32_t principal_n, id_n, context_id_n;
    uint16_t tenant_n, agent_n; /* names: at most DGM_MAX_ID_BYTES */
    dgm_task_state state : 8;
    uint32_t replica : 24; /* its lease, if the store is shared; at most MAX_REPLICA */
    uint32_t fence;
    char texts[];
};

struct caller {          /* a turn by the id its caller gave it */
    dgm_table_node node; /* first */
    struct task *task;
    uint64_t order; /* the higher, the newer */
    uint32_t turn;
    uint32_t protocol_n, caller_id_n;
    char texts[];
};

struct asked {                     /* a call that a task asked for */
    dgm_table_node node;           /* first */
    struct asked *next, **to_this; /* of the same task */
    struct task *task;
    uint64_t order;
    uint32_t call_id_n;
    char texts[];
};

struct note {
    dgm_table_node node;           /* first */
    struct note *later, **to_this; /* that was put next */
    int64_t expires_ms;
    uint32_t tenant_n, principal_n, kind_n, name_n, text_n;
    char texts[];
};

/* A message id. Owner, agent, context and task are the task's. It is known by the context, and by none if
 * that was not named: two keys, either of which may go before the other. */
enum taken_by { BY_CONTEXT, BY_NONE, N_TAKEN_KEYS };

struct taken {
    struct taken_key {
        dgm_table_node node;
        int64_t expires_ms; /* 0: with the task */
    } keys[N_TAKEN_KEYS];
    struct taken *next, **to_this; /* of the same task */
    struct task *task;
    uint32_t turn;
    uint32_t message_id_n, content_n;
    bool has[N_TAKEN_KEYS];
    char texts[];
};

struct memory_store {
    dgm_store base;
    pthread_mutex_t lock;
    dgm_table tasks, contexts, callers, asked, notes, threads;
    dgm_table taken[N_TAKEN_KEYS];
    struct task *first_ended, **last_ended;     /* in the order they ended */
    struct note *first_note, **last_note;       /* in the order they were put */
    struct thread *first_thread, **last_thread; /* of graphs, in the order of their last changes */
    size_t thread_bytes;
    size_t bytes, note_bytes;     /* of records, folded Tasks and calls; of notes */
    uint64_t order;               /* of the newest caller's id or call */
    struct evp_md_ctx_st *sha256; /* for dgm_content_digest */
    uint32_t replica;             /* that calls now, if the store is shared; 0: it is not */
    dgm_refused refused;          /* if the store is shared */
    dgm_store_stats stats;
};

static inline bool memory_has_lease(const struct memory_store *s, const struct task *t,
                                    uint64_t fence)
{
    return t->replica == s->replica && t->fence == fence;
}

static inline dgm_owner task_owner(const struct task *t)
{
    return (dgm_owner){{t->texts, t->tenant_n}, {t->texts + t->tenant_n, t->principal_n}};
}

static inline dgm_str task_id(const struct task *t)
{
    return (dgm_str){t->texts + t->tenant_n + t->principal_n, t->id_n};
}

static inline dgm_str task_context(const struct task *t)
{
    dgm_str id = task_id(t);
    return (dgm_str){id.p + id.n, t->context_id_n};
}

static inline dgm_str task_agent(const struct task *t)
{
    dgm_str context = task_context(t);
    return (dgm_str){context.p + context.n, t->agent_n};
}

static inline struct task *task_in_context(const dgm_table_node *node)
{
    return (struct task *)(void *)((char *)node - offsetof(struct task, in_context));
}

/* Its lease is that of a store that is not shared. */
static inline dgm_task_row task_row(const struct task *t)
{
    return (dgm_task_row){.owner = task_owner(t),
                          .id = task_id(t),
                          .context_id = task_context(t),
                          .agent = task_agent(t),
                          .state = t->state,
                          .created_ms = t->created_ms,
                          .status_ms = t->status_ms,
                          .last_seq = t->last_seq,
                          .folded_seq = t->folded_seq,
                          .folded = {t->folded, t->folded_n}};
}

static inline dgm_turn_row turn_row(const struct turn *t)
{
    const char *caller_id = t->texts + t->protocol_n, *request = caller_id + t->caller_id_n;
    return (dgm_turn_row){.turn = t->turn,
                          .first_seq = t->first_seq,
                          .last_seq = t->last_seq,
                          .protocol = {t->texts, t->protocol_n},
                          .caller_id = {caller_id, t->caller_id_n},
                          .request = {request, t->request_n},
                          .previous = {request + t->request_n, t->previous_n}};
}

static inline dgm_str asked_call(const struct asked *a)
{
    return (dgm_str){a->texts, a->call_id_n};
}

static inline dgm_str taken_message(const struct taken *d)
{
    return (dgm_str){d->texts, d->message_id_n};
}

static inline enum taken_by taken_by(dgm_str context_id)
{
    return context_id.n ? BY_CONTEXT : BY_NONE;
}

static inline struct taken *taken_of(dgm_table_node *node, enum taken_by by)
{
    return (struct taken *)(void *)((char *)node - by * sizeof(struct taken_key));
}

static inline bool memory_same_owner(dgm_owner a, dgm_owner b)
{
    return dgm_str_eq(a.tenant, b.tenant) && dgm_str_eq(a.principal, b.principal);
}

/* ---- memory_find.c: NULL when it is not there ----------------------------------------------------------- */

uint64_t dgm_memory_task_hash(dgm_owner owner, dgm_str id);
uint64_t dgm_memory_context_hash(dgm_owner owner, dgm_str context_id);
uint64_t dgm_memory_caller_hash(dgm_owner owner, dgm_str protocol, dgm_str caller_id);
uint64_t dgm_memory_message_hash(dgm_owner owner, dgm_str agent, dgm_str context_id,
                                 dgm_str message_id);
/* hash: dgm_memory_task_hash(), dgm_memory_message_hash() of the same key. */
struct task *dgm_memory_find_task(const struct memory_store *s, uint64_t hash, dgm_owner owner,
                                  dgm_str id);
struct taken *dgm_memory_find_message(const struct memory_store *s, uint64_t hash, dgm_owner owner,
                                      dgm_str agent, dgm_str context_id, dgm_str message_id);
/* At an agent; empty: at any, the newest. */
struct caller *dgm_memory_find_caller(const struct memory_store *s, dgm_owner owner, dgm_str agent,
                                      dgm_str protocol, dgm_str caller_id);
uint64_t dgm_memory_call_hash(dgm_owner owner, dgm_str call_id);
struct asked *dgm_memory_find_call(const struct memory_store *s, dgm_owner owner, dgm_str agent,
                                   dgm_str call_id);

/* ---- jobs ------------------------------------------------------------------------------------------------ */

void dgm_memory_append(struct memory_store *s, dgm_job *job);
void dgm_memory_trim(struct memory_store *s, dgm_job *job);
void dgm_memory_list(struct memory_store *s, dgm_job *job);
void dgm_memory_get_context(struct memory_store *s, dgm_job *job);
void dgm_memory_list_unfinished(struct memory_store *s, dgm_job *job);
void dgm_memory_put_note(struct memory_store *s, dgm_job *job);
void dgm_memory_get_note(struct memory_store *s, dgm_job *job);
void dgm_memory_read_checkpoints(struct memory_store *s, dgm_job *job);
void dgm_memory_change_checkpoints(struct memory_store *s, dgm_job *job);

/* ---- memory.c, for memory_share.c --------------------------------------------------------------------------- */

void dgm_memory_init(struct memory_store *s);
void dgm_memory_done(struct memory_store *s);
void dgm_memory_work(struct memory_store *s,
                     dgm_job *job); /* with the lock; not those of shared stores */
struct task *dgm_memory_task_of(const struct memory_store *s, const dgm_job *job);
void dgm_memory_return_task(dgm_job *job, const struct task *t); /* NULL: none */

/* May a write with this fence be made? */
dgm_code dgm_memory_check_fence(const struct memory_store *s, const dgm_fence *f, dgm_err *err);

/* ---- memory_keep.c, memory_drop.c ------------------------------------------------------------------------- */

struct turn *dgm_memory_add_turn(const dgm_turn_row *row);
void dgm_memory_put_text(char **at, dgm_str text); /* copies it there, and goes behind it */
void dgm_memory_drop_message(struct memory_store *s, struct taken *d, enum taken_by by);
void dgm_memory_drop_calls(struct memory_store *s, struct asked *a);
void dgm_memory_note_end(struct memory_store *s, struct task *t);
void dgm_memory_delete_some(struct memory_store *s); /* if there is too much */
void dgm_memory_delete_all(struct memory_store *s);

/* ---- memory_note.c ------------------------------------------------------------------------------------------ */

void dgm_memory_drop_expired_notes(struct memory_store *s);
void dgm_memory_drop_all_notes(struct memory_store *s);

/* ---- memory_checkpoint.c -------------------------------------------------------------------------------------- */

void dgm_memory_drop_old_threads(struct memory_store *s, int64_t before_ms);
void dgm_memory_drop_all_threads(struct memory_store *s);
