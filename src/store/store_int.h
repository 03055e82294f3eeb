/*
 * store/store_int.h - what drivers implement: jobs in, answers out.
 *
 * store.c makes a job of every call: inputs copied, the calling loop noted. A driver does the work on
 * whatever thread it likes, writes code, err and the answer (in the job's arena), and posts the job;
 * its callback then runs on the loop, and the job goes.
 */
#pragma once

#include "store/share.h"

#include <stdatomic.h>

typedef enum dgm_job_kind {
    DGM_JOB_APPEND,
    DGM_JOB_TASK,
    DGM_JOB_RECORDS,
    DGM_JOB_TURNS,
    DGM_JOB_ACQUIRE,
    DGM_JOB_RELEASE, /* up to here about one task, and up to the next comment about one thread: answered in order */
    DGM_JOB_CHECKPOINTS,
    DGM_JOB_CHANGE,
    /* of no task or thread */
    DGM_JOB_FIND_TURN,
    DGM_JOB_FIND_DEDUPE,
    DGM_JOB_FIND_CALL,
    DGM_JOB_LIST,
    DGM_JOB_CONTEXT,
    DGM_JOB_UNFINISHED,
    DGM_JOB_GET_NOTE,
    DGM_JOB_PUT_NOTE,
    DGM_JOB_TRIM,
    /* of a shared store */
    DGM_JOB_COMMAND,
    DGM_JOB_ANSWER
} dgm_job_kind;

/* What is looked for; a kind of look-up has its own members. */
typedef struct dgm_find {
    dgm_owner owner;
    dgm_str agent;
    dgm_str protocol, caller_id;    /* of a turn */
    dgm_str context_id, message_id; /* of a message */
    dgm_str call_id;
} dgm_find;

typedef struct dgm_job {
    struct dgm_job *next;       /* in its queue, or in the chain that is posted */
    struct dgm_job *lane_next;  /* the next one in its lane */
    struct dgm_job *group_next; /* the next append to the same task in one commit */
    struct dgm_job *pair; /* of an append: a note that is in the same commit; submitted with it */
    dgm_loop *loop;
    dgm_job_kind kind;
    uint64_t hash;      /* of the task it is about; its lane */
    size_t held;        /* bytes that count for the limit of its queue */
    bool waiting, done; /* for an append before it; with the work: of drivers with lanes */
    bool is_again;      /* postgres: the next batch has it */
    bool in_doubt;      /* postgres: it was sent, and no answer came: it may be stored */
    void *state;        /* postgres: of an answer that comes in parts; in the arena */

    union { /* what was asked for; lives in the job's own block */
        struct {
            dgm_append batch; /* turn, taken and open_calls point into the block */
            size_t bytes;     /* of its records */
            int64_t ended_ms; /* sqlite: when the turn ended, if it did */
        } append;
        struct {
            dgm_owner owner;
            dgm_str task_id;
            uint64_t seq;
            size_t max, max_bytes;
            uint64_t fence;  /* of RELEASE */
            bool has_failed; /* likewise: see dgm_store_release_failed */
        } task;
        dgm_find find;
        struct {
            dgm_str agent;
            dgm_checkpoint_query query;
        } checkpoints;
        struct {
            dgm_str agent;
            dgm_checkpoint_change
                change;   /* row.writes and names.at are in the block; bytes are referenced */
            size_t bytes; /* of its values */
        } change;
        dgm_note note; /* to be put; of one that is looked for: owner, kind, name */
        dgm_list_query list;
        struct {
            dgm_owner owner;
            dgm_str agent, context_id;
            size_t max, max_bytes;
        } context;
        struct {
            size_t page_size;
            dgm_task_row after;
            bool has_after;
        } unfinished;
        struct {
            dgm_retention keep;
            int64_t from; /* sqlite: where its next step begins */
            int stage;    /* and of what */
        } trim;
        struct {
            dgm_command is; /* its id is the driver's, and `from` */
            int64_t to;
            uint64_t ms;
        } command;
        struct {
            int64_t command, to;
            dgm_code code;
            const dgm_err *err; /* NULL: code is DGM_OK */
            dgm_str body;
        } answer;
    };

    union { /* the answer */
        dgm_task_row *row;
        struct {
            dgm_record **at;
            size_t n;
        } records; /* references that the job holds */
        struct {
            dgm_turn_row *at;
            size_t n;
            dgm_str task_id;
        } turns;
        dgm_dedupe_row *dedupe;
        dgm_str note; /* absent: none; of a command: the body of its answer */
        struct {
            dgm_task_row *at;
            size_t n;
            bool more;
            size_t total;
        } rows;
        struct {
            dgm_checkpoint *at; /* their bytes are references that the job holds */
            size_t n;
            bool more;
        } checkpoints;
    } got;
    dgm_arena *arena; /* of the answer: dgm_job_arena() */
    dgm_code code;
    dgm_err err; /* written only when code is not DGM_OK */

    union {
        dgm_store_done done;
        dgm_store_got_task task;
        dgm_store_got_records records;
        dgm_store_got_turns turns;
        dgm_store_got_turn turn;
        dgm_store_got_dedupe dedupe;
        dgm_store_got_list list;
        dgm_store_got_note note;
        dgm_checkpoints_got checkpoints;
        dgm_command_answered answered;
    } call;
    void *arg;
} dgm_job;

typedef struct dgm_store_driver {
    const char *scheme; /* "memory": in URLs */
    dgm_code (*open)(const char *rest, const dgm_store_options *options, dgm_store **ret_store,
                     dgm_err *err);
    void (*show)(const char *rest, char *out, size_t size); /* NULL: all of it may be shown */
    void (*close)(dgm_store *s);
    void (*submit)(dgm_store *s, dgm_job *job); /* takes it over; answers it later */
    bool (*is_unknown)(dgm_store *s, dgm_owner owner, dgm_str agent, dgm_str context_id,
                       dgm_str message_id);
    bool (*is_healthy)(dgm_store *s, dgm_err *ret_why);
    dgm_store_stats (*stats)(dgm_store *s);
} dgm_store_driver;

/* Of drivers whose stores are shared: store/share.h. Commands and leases are jobs. */
typedef struct dgm_share_driver {
    void (*share)(dgm_store *s, dgm_loop *loop, const dgm_share_handlers *handlers);
    void (*follow)(dgm_store *s, dgm_owner owner, dgm_str task_id, int64_t owner_replica);
    bool (*is_followed)(dgm_store *s, dgm_owner owner, dgm_str task_id);
    void (*set_agents)(dgm_store *s, const dgm_str *agents, size_t n);
} dgm_share_driver;

/* The head of every driver's store. */
struct dgm_store {
    const dgm_store_driver *driver;
    const dgm_share_driver
        *share; /* NULL: it is not shared; ACQUIRE and later kinds of jobs do not come then */
    _Atomic int64_t replica; /* its id; another one after it was declared dead */
    char replica_name[DGM_MAX_REPLICA_NAME_BYTES + 1];
};

extern const dgm_store_driver dgm_store_memory, dgm_store_memory_shared, dgm_store_sqlite,
    dgm_store_postgres;

/* ---- for drivers ----------------------------------------------------------------------------------- */

dgm_arena *dgm_job_arena(dgm_job *job);

/* Answers a chain of jobs (by next) of one loop. */
void dgm_job_on_answers(void *chain);

/* Copies the strings of a row that is returned to the caller. */
void dgm_task_row_keep(dgm_arena *a, dgm_task_row *row);
void dgm_turn_row_keep(dgm_arena *a, dgm_turn_row *row);
void dgm_dedupe_row_keep(dgm_arena *a, dgm_dedupe_row *row);

/* The seq an append begins with. */
static inline uint64_t dgm_append_first(const dgm_append *b)
{
    return b->n_records ? b->records[0]->head.seq : b->row.last_seq + 1;
}

/* Is the append sound in itself? */
dgm_code dgm_append_check(const dgm_append *b, dgm_err *err);
/* The refusal of one that does not begin where the log ends; last NULL: there is no such task. */
dgm_code dgm_append_misfit(const dgm_append *b, const uint64_t *last, dgm_err *err);
/* The refusals of a shared store: dgm_store_is_lost, dgm_store_is_duplicate. */
dgm_code dgm_append_lost(dgm_str task_id, dgm_err *err);
dgm_code dgm_append_duplicate(const dgm_append *b, dgm_err *err);
/* Why a command has no answer; ms 0: its replica is dead. */
dgm_code dgm_command_unanswered(uint64_t ms, dgm_err *err);

/* The next name of a server, if the options have none: that of the host. */
void dgm_store_set_name(dgm_store *s, dgm_str name);

/* Where a driver sends what the core is called with: to its loop, from any thread. Closed: what is still on the way is not
 * called any more. */
typedef struct dgm_share_port dgm_share_port;
dgm_share_port *dgm_share_port_new(dgm_loop *loop, const dgm_share_handlers *handlers);
void dgm_share_port_close(dgm_share_port *p); /* NULL is fine; frees it, later */
void dgm_share_port_orphans(dgm_share_port *p, const dgm_task_row *rows, size_t n);
void dgm_share_port_searched(dgm_share_port *p);
void dgm_share_port_owned(dgm_share_port *p, const dgm_task_row *rows, size_t n);
void dgm_share_port_renewed(dgm_share_port *p);
void dgm_share_port_grown(dgm_share_port *p, dgm_owner owner, dgm_str task_id);
void dgm_share_port_command(dgm_share_port *p, const dgm_command *command);

static inline bool dgm_job_is_write(const dgm_job *job)
{
    return job->kind == DGM_JOB_APPEND || job->kind == DGM_JOB_CHANGE ||
           job->kind == DGM_JOB_PUT_NOTE || job->kind == DGM_JOB_TRIM;
}

static inline bool dgm_job_has_lane(const dgm_job *job)
{
    return job->kind <= DGM_JOB_CHANGE;
}

static inline size_t dgm_value_size(const dgm_checkpoint_value *v)
{
    return v->bytes ? v->bytes->n : 0;
}

/* The next text in the order of bytes. */
dgm_str dgm_str_just_behind(dgm_arena *a, dgm_str s);

/* The refusal of writes that a checkpoint has no room for; n: how many it has then, bytes: of all its values. */
dgm_code dgm_checkpoint_check_room(const dgm_checkpoint *c, size_t n, size_t bytes, dgm_err *err);

static inline bool dgm_note_has_expired(int64_t expires_ms)
{
    return expires_ms && expires_ms <= dgm_loop_unix_ms();
}

static inline bool dgm_state_is_unfinished(dgm_task_state s)
{
    return !dgm_state_is_terminal(s) && !dgm_state_is_interrupted(s);
}
