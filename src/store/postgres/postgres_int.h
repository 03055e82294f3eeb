/*
 * store/postgres/postgres_int.h - what the files of this driver share.
 *
 *   postgres.c             a store, its part on every loop: queues, lanes, answers in order, life
 *   postgres_keeper.c      a thread: connections for the loops, retention, health
 *   postgres_share.c       a thread: what this server and the others send to each other
 *   postgres_lease.c       its row, its life; tasks of servers that died
 *   postgres_follow.c      who follows which task
 *   postgres_conn.c        conninfo without secrets, connections, faults as sentences
 *   postgres_pipe.c        a connection of a loop: statements in a pipeline, results
 *   postgres_schema.c      the tables, and how those of earlier versions become them
 *   postgres_args.c        parameters of statements, arrays among them; columns of results
 *   postgres_batch.c       one batch of appends and notes: what is in it
 *   postgres_batch_rows.c  its statement, its rows as parameters
 *   postgres_write.c       it is sent, and its results are answers
 *   postgres_read.c        every read, but of checkpoints
 *   postgres_checkpoint.c, postgres_checkpoint_read.c   checkpoints of graphs
 *   postgres_trim.c        what goes when it is old
 *   postgres_copy.c        as source and target of `dragoman db copy`
 */
#pragma once

#include "base/buf.h"
#include "base/limits.h"
#include "base/table.h"
#include "store/store_frame.h"
#include "store/store_int.h"
#include "store/store_known.h" /* dgm_scope */
#include "store/store_refused.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>

typedef struct pg_store pg_store;
typedef struct pg_loop pg_loop;
typedef struct pg_pipe pg_pipe;

/* ---- statements ------------------------------------------------------------------------------------ */

#define DGM_PG_STATEMENTS(X)                                                                       \
    X(BATCH)                                                                                       \
    X(TASK)                                                                                        \
    X(RECORDS)                                                                                     \
    X(TURNS)                                                                                       \
    X(FIND_TURN)                                                                                   \
    X(FIND_DEDUPE)                                                                                 \
    X(FIND_CALL)                                                                                   \
    X(CONTEXT)                                                                                     \
    X(UNFINISHED)                                                                                  \
    X(NOTE)                                                                                        \
    X(ACQUIRE)                                                                                     \
    X(RELEASE)                                                                                     \
    X(PART)                                                                                        \
    X(FENCE)                                                                                       \
    X(PUT)                                                                                         \
    X(PUT_END)                                                                                     \
    X(WRITES)                                                                                      \
    X(DELETE_THREADS)                                                                              \
    X(DELETE_RUNS)                                                                                 \
    X(COPY_CLEAR)                                                                                  \
    X(COPY)                                                                                        \
    X(KEEP_LATEST)

typedef enum pg_sql {
#define X(name) PG_SQL_##name,
    DGM_PG_STATEMENTS(X)
#undef X
        PG_N_SQL
} pg_sql;

/* The texts, by number. postgres_batch_rows.c, postgres_read.c and postgres_checkpoint*.c have them. */
const char *dgm_pg_sql_text(pg_sql which);
const char *dgm_pg_sql_name(pg_sql which); /* as which it is prepared */
extern const char dgm_pg_sql_batch[];
extern const char *const dgm_pg_sql_reads[PG_N_SQL], *const dgm_pg_sql_changes[PG_N_SQL];

/* ---- parameters and columns ------------------------------------------------------------------------ */

#define PG_MAX_ARGS 72

/* Bytes and numbers in the binary form of the protocol. Bytes that are not copied live until the statement is sent. */
typedef struct pg_args {
    dgm_buf bytes;
    int n;
    Oid types[PG_MAX_ARGS];
    struct {
        size_t at, n;  /* in bytes */
        const char *p; /* not NULL: there, not in bytes */
    } args[PG_MAX_ARGS];
    size_t array; /* where the array that is being written begins */
    uint32_t n_elements;
} pg_args;

void dgm_pg_args_init(pg_args *a);
void dgm_pg_args_clear(pg_args *a); /* the memory stays, unless it is much */
void dgm_pg_args_done(pg_args *a);
void dgm_pg_arg_str(pg_args *a, dgm_str s); /* not copied; absent: empty */
void dgm_pg_arg_int(pg_args *a, int64_t v);
void dgm_pg_array_begin(pg_args *a, bool of_numbers);
void dgm_pg_array_str(pg_args *a, dgm_str s); /* copied; absent: NULL */
void dgm_pg_array_int(pg_args *a, int64_t v);
void dgm_pg_array_end(pg_args *a);
void dgm_pg_args_move_first(pg_args *a); /* the first parameter becomes the last one */
/* A statement into a pipeline: prepared, or a text. What cannot be sent fails the operation. */
void dgm_pg_send(pg_pipe *p, pg_sql which, const pg_args *a);
void dgm_pg_send_text(pg_pipe *p, const char *sql, const pg_args *a);
void dgm_pg_send_sync(pg_pipe *p);
/* On a blocking connection. A server that has not answered after ms is given up: the connection is lost then. NULL: nothing
 * was sent. */
PGresult *dgm_pg_exec(PGconn *c, const char *sql, const pg_args *a, uint64_t ms);
PGresult *dgm_pg_exec_text(PGconn *c, const char *sql,
                           uint64_t ms);                      /* statements without arguments */
PGresult *dgm_pg_await(PGconn *c, int was_sent, uint64_t ms); /* the last result of what was sent */
#define PG_ANSWER_MS 10000 /* of a small statement, on a connection that has no lease to extend */

dgm_str dgm_pg_str(const PGresult *r, int row, int column); /* NULL: absent */
int64_t dgm_pg_int(const PGresult *r, int row, int column);
static inline dgm_str pg_text(dgm_job *job, const PGresult *r, int row, int column)
{
    dgm_str s = dgm_pg_str(r, row, column);
    return s.p ? dgm_arena_dup(job->arena, s) : (dgm_str){"", 0};
}

/* ---- connections ----------------------------------------------------------------------------------- */

/* What `postgres:` is followed by, checked: a secret in it is refused. */
typedef struct pg_target {
    char *conninfo;
    bool relaxed;    /* deltas are not waited for: synchronous_commit=off */
    char shown[200]; /* host, port, dbname, user: for messages */
} pg_target;

dgm_code dgm_pg_target_parse(const char *conninfo, pg_target *ret_target, dgm_err *err);
void dgm_pg_target_done(pg_target *t);

typedef enum pg_role { PG_CONTROL, PG_WRITER, PG_READER } pg_role;

/* Blocks, at most some seconds. A writer or reader is in pipeline mode and has its statements prepared. */
dgm_code dgm_pg_connect(const pg_target *t, pg_role role, PGconn **ret_conn, dgm_err *err);
/* Likewise, to the server that another connection has: not to others of the connection string first, which may be away. */
dgm_code dgm_pg_connect_like(const pg_target *t, pg_role role, const PGconn *like,
                             PGconn **ret_conn, dgm_err *err);

/* A fault of the server's (a result) or of the connection (r NULL) as a sentence. Without secrets. */
dgm_code dgm_pg_fault(PGconn *c, const PGresult *r, bool reading, dgm_err *err);
/* Would the same statement fail again, for its own sake? False: the connection or the server, or a conflict. */
bool dgm_pg_is_odd(const PGresult *r);
bool dgm_pg_is_ending(const PGresult *r);   /* the server ends the session: was it committed? */
bool dgm_pg_is_conflict(const PGresult *r); /* with another transaction: again */
/* A division by zero, which statements make on purpose: a lease is lost, a message came twice. */
bool dgm_pg_is_refused(const PGresult *r);

/* ---- schema ---------------------------------------------------------------------------------------- */

#define DGM_PG_SCHEMA_VERSION 1
dgm_code dgm_pg_migrate(PGconn *c, const pg_target *t, dgm_err *err);

/* ---- work on a connection of a loop ------------------------------------------------------------------ */

/* What is in a pipeline between two syncs: one transaction. */
typedef struct pg_op {
    struct pg_op *next;
    dgm_job *job;   /* of a read, or a chain of writes by next */
    bool by_row;    /* its results come one by one */
    bool is_by_row; /* that was set */
    bool failed;    /* `err` says why; what comes behind it is not executed */
    bool odd;       /* see dgm_pg_is_odd */
    bool conflict;
    bool refused; /* see dgm_pg_is_refused */
    dgm_code code;
    dgm_err err;
} pg_op;

typedef struct pg_pipe_use {
    void (*on_result)(pg_loop *l, pg_op *op, const PGresult *r); /* rows */
    void (*on_done)(pg_loop *l, pg_op *op);                      /* committed, or op->failed */
    bool (*send_more)(pg_loop *l, pg_op *op); /* the last op: its next statement; false: no more */
    void (*on_lost)(pg_loop *l, pg_pipe *p, const dgm_err *why); /* its ops are p->first on */
} pg_pipe_use;

struct pg_pipe {
    pg_loop *loop;
    const pg_pipe_use *use;
    PGconn *conn; /* NULL: none */
    uv_poll_t *poll;
    int fd;     /* of poll: a copy, as libpq closes its own when it finds the connection lost, and
                 * other threads may get the same number before poll is stopped */
    int events; /* that poll waits for */
    pg_op *first, *last;
    size_t n;
    size_t n_out;               /* statements and syncs that are not answered */
    bool sending;               /* the last op is not sent completely */
    bool refused;               /* a statement could not be sent */
    struct pg_request *request; /* the keeper connects for it */
    uint64_t waits_ms;          /* since when jobs wait for a connection; 0: they do not */
    uint64_t heard_ms;          /* when it last made progress, or got work while idle */
};

void dgm_pg_pipe_attach(pg_pipe *p, PGconn *conn);
void dgm_pg_pipe_detach(pg_pipe *p);     /* closes the connection; ops are forgotten */
void dgm_pg_pipe_leave_loop(pg_pipe *p); /* it is run by its owner from now on */
/* sending: send_more() sends its statements; else they were sent. */
void dgm_pg_pipe_add(pg_pipe *p, pg_op *op, bool sending);
void dgm_pg_pipe_run(pg_pipe *p, bool can_read); /* sends and receives what is possible at once */
int dgm_pg_pipe_socket(const pg_pipe *p, bool *ret_write);

/* ---- several servers --------------------------------------------------------------------------------- */

typedef struct pg_queue {
    dgm_job *first, *last;
    size_t n, bytes;
} pg_queue;

/* Texts of a task's key and a time, for tables and queues. */
typedef struct pg_followed {
    dgm_table_node
        node; /* first; of both tables: by the hash of the task, which is the same in all servers */
    uint64_t until_ms; /* uv_hrtime */
    int64_t replica;   /* of the owner's table: who follows; of the follower's: whose task it is */
    int64_t last_seq;  /* of the follower's: that it was woken for; -1: not yet */
    bool is_asked;     /* of the follower's: the owner knows */
    dgm_owner owner;   /* of the follower's; the texts are behind it */
    dgm_str task_id;
} pg_followed;

/* A wake-up of another server that is to be sent: hashes of tasks. */
typedef struct pg_wakeup {
    struct pg_wakeup *next;
    int64_t replica;
    int64_t since_us; /* Unix time of the first commit in it */
    uint64_t *hashes;
    size_t n, cap;
} pg_wakeup;

#define PG_MOST_ASIDE 256

/* Another thread, with a connection of its own: neither names that are resolved nor retention may delay the life of a
 * server. */
typedef struct pg_share {
    /* of the open; never changed */
    uint32_t lease_ms;
    bool polls;
    /* under the lock of this */
    pthread_mutex_t lock;
    dgm_share_port *port;
    dgm_table followed;  /* by other servers */
    dgm_table following; /* by this one */
    pg_wakeup *wakeups;
    pg_queue sending; /* commands that are to be stored */
    pg_queue answers; /* likewise */
    dgm_job *waiting; /* commands that were stored, and have no answer; by lane_next */
    size_t n_waiting;
    bool has_orphans; /* this server gave up tasks that work */
    bool is_new;      /* there is a core to call now */
    bool has_new_agents;
    dgm_arena *agents_arena; /* NULL: set_agents was not called */
    const dgm_str *agents;   /* whose orphans are taken */
    size_t n_agents;
    struct
    { /* ids of tasks that could not be loaded here: they are taken with the next beat, not before */
        dgm_arena *arena;
        dgm_str ids[PG_MOST_ASIDE];
        size_t n;
        bool is_full; /* there were more: no task is taken before the next beat */
    } aside;
    bool stopping;
    int64_t last_command;
    _Atomic size_t n_followed; /* of `followed`: appends look at it without the lock */
    _Atomic uint64_t
        until_ms; /* of the life of this server, by dgm_pg_lease_now: at least until then */
    _Atomic bool is_paused; /* test: as if the process were stopped */
    _Atomic bool is_dead;   /* its row was not there any more: it registers again */
    /* the thread's */
    PGconn *conn;
    pthread_t thread;
    bool has_thread;
    uint64_t beat_ms, poll_ms, sweep_ms, owned_ms; /* when it is next due */
    uint64_t extended_ms;                          /* when its life was extended last */
    uint64_t steady_ms; /* the first of the extensions without a gap; 0: none since the last gap */
    bool owned_is_open; /* the cursor of dgm_pg_lease_read_owned */
    bool look;          /* for commands and answers, now */
    bool take;          /* tasks of dead servers, now */
    uint64_t take_ms, skipped_ms; /* or then: so long after a page in which some were locked */
    uint64_t search_ms; /* until then at most the core waits for the first search; 0: it does not */
    int wake[2];
} pg_share;

/* ---- a store --------------------------------------------------------------------------------------- */

#define PG_LANES 256

typedef struct pg_lane {
    dgm_job *first, *last;
    size_t n_writes, n_waiting;
    size_t
        n_fenced; /* notes and checkpoints that are not done, with the fence of a task of this lane */
} pg_lane;

/* What a store has on a loop. Only its thread touches it, but for `store` and is_stopped. */
struct pg_loop {
    pg_store *store;
    dgm_loop *loop;
    pg_pipe writer, reader, lister;
    pg_queue writes, reads, lists;
    size_t alone;   /* so many of the next writes are a batch each */
    bool had_doubt; /* appends were given up that may be stored: see pg_write */
    size_t pending, waiting;
    pg_lane lanes[PG_LANES];
    dgm_job *answers, *last_answer; /* to be posted */
    dgm_loop_turn turn;
    dgm_loop_stop stop;
    dgm_timer tick;
    struct pg_batch *batch;
    bool blocking; /* the loop has stopped: jobs are done at once */
    bool running;  /* within pg_loop_run */
    _Atomic bool is_stopped;
};

typedef struct pg_request {
    struct pg_request *next;
    dgm_loop *loop;
    _Atomic bool is_canceled; /* no pipe waits for it: who meets it frees it */
    pg_pipe *pipe;
    pg_role role;
    PGconn *conn;
} pg_request;

struct pg_store {
    dgm_store base;
    pg_target target;
    _Atomic size_t n_queued; /* appends that are not answered */
    pthread_mutex_t lock;    /* of what follows */
    pthread_cond_t changed;
    pg_loop *loops[DGM_MAX_LOOPS];
    dgm_store_stats stats;
    dgm_err fault; /* code DGM_OK: none */
    pg_request *requests;
    dgm_refused refused; /* tasks whose first append was not stored here */
    pg_queue trims;
    size_t n_trims;
    bool stopping;
    /* the keeper's */
    PGconn *control;
    pthread_t keeper;
    bool has_keeper;
    int wake[2];
    pg_share share;
};

void dgm_pg_store_fault(pg_store *s, const dgm_err *err); /* NULL: it is well again */

/* keeper */
/* A number from one row, on a blocking connection. */
int64_t dgm_pg_ask(PGconn *c, const char *sql, dgm_code *ret_code, dgm_err *err);
dgm_code dgm_pg_keeper_open(pg_store *s, dgm_err *err);
void dgm_pg_keeper_stop(pg_store *s); /* ends the thread */
void dgm_pg_keeper_close(pg_store *s);
void dgm_pg_keeper_wake(pg_store *s);
void dgm_pg_keeper_ask(pg_store *s, pg_pipe *p, pg_role role);
void dgm_pg_keeper_trim(pg_store *s, dgm_job *job);
void dgm_pg_loop_connected(void *request); /* on its loop */

/* One job is answered: in the order of its lane. */
void dgm_pg_loop_done(pg_loop *l, dgm_job *job);
void dgm_pg_loop_fail(pg_loop *l, dgm_job *job, const dgm_err *err);

/* ---- postgres_write.c, postgres_batch.c -------------------------------------------------------------- */

typedef struct pg_batch pg_batch;
void dgm_pg_batch_free(pg_batch *b);
/* Takes the first jobs of the queue, sends them. The writer is connected and idle. */
void dgm_pg_write_next(pg_loop *l);
bool dgm_pg_write_more(pg_loop *l, pg_op *op);
void dgm_pg_write_result(pg_loop *l, pg_op *op, const PGresult *r);
void dgm_pg_write_done(pg_loop *l, pg_op *op);
void dgm_pg_write_lost(pg_loop *l);                    /* what was sent is sent again */
void dgm_pg_write_requeue(pg_loop *l, dgm_job *chain); /* to the front of the queue */

/* ---- postgres_read.c, postgres_checkpoint_read.c ----------------------------------------------------- */

void dgm_pg_read_send(pg_pipe *p, dgm_job *job);
void dgm_pg_read_result(pg_store *s, dgm_job *job, const PGresult *r);
bool dgm_pg_read_is_stale(const dgm_job *job); /* it is read again */
void dgm_pg_read_reset(dgm_job *job); /* what it got so far is thrown away: it is asked for again */
void dgm_pg_checkpoints_send(pg_pipe *p, dgm_job *job);
void dgm_pg_checkpoints_result(dgm_job *job, const PGresult *r);

/* ---- postgres_checkpoint.c --------------------------------------------------------------------------- */

/* A change is sent statement by statement: parts of large values first. */
typedef struct pg_change pg_change;
/* may_be_new: see dgm_fence.is_new; false: its task must be stored. */
pg_change *dgm_pg_change_new(dgm_job *job, int64_t replica, bool may_be_new);
void dgm_pg_change_free(pg_change *c);
bool dgm_pg_change_send(pg_change *c,
                        pg_pipe *p); /* the next statement; false: that was the last */
void dgm_pg_change_result(pg_change *c, const PGresult *r);
void dgm_pg_thread_key(dgm_str agent, dgm_str thread, unsigned char *ret_key);
void dgm_pg_checkpoint_key(dgm_str ns, dgm_str id, unsigned char *ret_key);

/* ---- postgres_share.c -------------------------------------------------------------------------------- */

dgm_code dgm_pg_share_open(pg_store *s, const dgm_store_options *options, dgm_err *err);
void dgm_pg_share_stop(pg_store *s);  /* ends the thread; this server is dead for the others */
void dgm_pg_share_close(pg_store *s); /* when nothing is called any more */
void dgm_pg_share_wake(pg_store *s);
void dgm_pg_share_submit(pg_store *s, dgm_job *job);       /* COMMAND and ANSWER */
void dgm_pg_share_set_aside(pg_store *s, dgm_str task_id); /* before a RELEASE that has failed */
uint64_t dgm_pg_share_ms(const pg_store *s); /* what a statement on its connection may take */
/* A statement on its connection; NULL: it failed, the connection is closed if it is lost. */
PGresult *dgm_pg_share_exec(pg_store *s, const char *sql, const pg_args *a);
void dgm_pg_share_tell_all(pg_store *s, const char *what); /* a notification to every server */
extern const dgm_share_driver dgm_pg_share_driver;

/* ---- postgres_follow.c ------------------------------------------------------------------------------- */

/* After a commit, on its loop. is_orphan: the task works, and was given up. */
void dgm_pg_share_grown(pg_store *s, dgm_owner owner, dgm_str task_id, bool is_orphan);
uint64_t dgm_pg_follow_hash(dgm_owner owner, dgm_str task_id);
void dgm_pg_follow(dgm_store *base, dgm_owner owner, dgm_str task_id, int64_t owner_replica);
bool dgm_pg_is_followed(dgm_store *base, dgm_owner owner, dgm_str task_id);
void dgm_pg_follow_send(pg_store *s); /* wake-ups and wishes, on the share connection */
void dgm_pg_follow_heard(pg_store *s, const char *text); /* what another server sent */
#define PG_FOLLOW_COMMAND "follow"    /* with such a text as its body; not for the core */
void dgm_pg_follow_poll(pg_store *s); /* reads how far the tasks are that it follows */
bool dgm_pg_follow_is_busy(pg_store *s);
void dgm_pg_follow_expire(pg_store *s);
void dgm_pg_follow_done(pg_share *h);

/* ---- postgres_lease.c -------------------------------------------------------------------------------- */

/* Milliseconds of a clock that also goes on while the machine is suspended, as that of the database does: of everything that
 * is compared with a lease. */
uint64_t dgm_pg_lease_now(void);
/* The row of this server: another id. On a blocking connection. */
dgm_code dgm_pg_lease_register(pg_store *s, PGconn *c, dgm_err *err);
bool dgm_pg_lease_extend(
    pg_store *s); /* false: this server was declared dead, or the database failed */
void dgm_pg_lease_bury(pg_store *s); /* declares the dead dead, and forgets those without tasks */
/* Servers that are forgotten, but have tasks: a first append came later than KEEP_DEAD, and its server has ended. */
void dgm_pg_lease_add_unknown(pg_store *s);
void dgm_pg_lease_take(pg_store *s);       /* tasks without an owner that lives */
void dgm_pg_lease_read_owned(pg_store *s); /* a page of the tasks that this server has */
void dgm_pg_lease_end(pg_store *s);        /* this server ends */
/* The right to do a job that one server does, on a connection; *ret_may false: another one does it. */
dgm_code dgm_pg_lease_job(pg_store *s, PGconn *c, dgm_str name, bool *ret_may, dgm_err *err);
/* Is a server at work on the database? */
dgm_code dgm_pg_lease_check_unused(PGconn *c, const pg_target *t, dgm_err *err);

/* ---- postgres_trim.c --------------------------------------------------------------------------------- */

/* One step of a job, on a blocking connection; *ret_more: there are others. */
dgm_code dgm_pg_trim_step(PGconn *c, dgm_job *job, bool *ret_more, dgm_err *err);
