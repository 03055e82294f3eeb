/*
 * store/postgres/postgres_int.h - what the files of this driver share.
 *
 *   postgres.c             a store, its part on every loop: queues, lanes, answers in order, life
 *   postgres_keeper.c      a thread: connections for the loops, retention, health
 *   postgres_share.c       a thread: the lease of this server, commands from and to other servers
 *   postgres_lease.c       the row of this server and its lease; tasks of dead servers
 *   postgres_follow.c      followers of tasks, wake-ups
 *   postgres_conn.c        conninfo without secrets, connections, faults as sentences
 *   postgres_pipe.c        a connection of a loop: statements in a pipeline, results
 *   postgres_schema.c      the tables, and their migrations
 *   postgres_args.c        parameters of statements, arrays among them; columns of results
 *   postgres_batch.c       one batch of appends and notes: selects its jobs
 *   postgres_batch_rows.c  its statement, its rows as parameters
 *   postgres_write.c       sends it, and answers its jobs
 *   postgres_read.c        all reads except those of checkpoints
 *   postgres_checkpoint.c, postgres_checkpoint_read.c   checkpoints of graphs
 *   postgres_trim.c        retention
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

/* The texts, by number. They are defined in postgres_batch_rows.c, postgres_read.c and postgres_checkpoint*.c. */
const char *dgm_pg_sql_text(pg_sql which);
const char *dgm_pg_sql_name(pg_sql which); /* the name of the prepared statement */
extern const char dgm_pg_sql_batch[];
extern const char *const dgm_pg_sql_reads[PG_N_SQL], *const dgm_pg_sql_changes[PG_N_SQL];

/* ---- parameters and columns ------------------------------------------------------------------------ */

#define PG_MAX_ARGS 72

/* Bytes and numbers in the binary form of the protocol. Bytes that are not copied must be valid until the statement is sent. */
typedef struct pg_args {
    dgm_buf bytes;
    int n;
    Oid types[PG_MAX_ARGS];
    struct {
        size_t at, n;  /* in bytes */
        const char *p; /* the text, if it is not in `bytes`; else NULL */
    } args[PG_MAX_ARGS];
    size_t array; /* offset of the array that is being written */
    uint32_t n_elements;
} pg_args;

void dgm_pg_args_init(pg_args *a);
void dgm_pg_args_clear(pg_args *a); /* small buffers are reused, large ones are freed */
void dgm_pg_args_done(pg_args *a);
void dgm_pg_arg_str(pg_args *a, dgm_str s); /* not copied; absent: empty */
void dgm_pg_arg_int(pg_args *a, int64_t v);
void dgm_pg_array_begin(pg_args *a, bool of_numbers);
void dgm_pg_array_str(pg_args *a, dgm_str s); /* copied; absent: NULL */
void dgm_pg_array_int(pg_args *a, int64_t v);
void dgm_pg_array_end(pg_args *a);
void dgm_pg_args_move_first(pg_args *a); /* the first parameter becomes the last one */
/* Sends a statement in a pipeline: a prepared one, or a text. If it cannot be sent, the operation fails. */
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

/* The connection string after `postgres:`. One that contains a secret is refused. */
typedef struct pg_target {
    char *conninfo;
    bool relaxed;    /* deltas are committed with synchronous_commit=off */
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

/* Reports a fault of the server (a result) or of the connection (r NULL). The message contains no secret. */
dgm_code dgm_pg_fault(PGconn *c, const PGresult *r, bool reading, dgm_err *err);
/* True: the data of the statement is invalid, so it would fail again. False: a fault of the connection or of the server, or a
 * conflict. */
bool dgm_pg_is_odd(const PGresult *r);
bool dgm_pg_is_ending(
    const PGresult *r); /* the server ends the session: the commit may have succeeded */
bool dgm_pg_is_conflict(const PGresult *r); /* with another transaction: try it again */
/* A division by zero, which our statements use to report that a lease is lost or a message was stored twice. */
bool dgm_pg_is_refused(const PGresult *r);

/* ---- schema ---------------------------------------------------------------------------------------- */

#define DGM_PG_SCHEMA_VERSION 1
dgm_code dgm_pg_migrate(PGconn *c, const pg_target *t, dgm_err *err);

/* ---- work on a connection of a loop ------------------------------------------------------------------ */

/* The statements of a pipeline between two syncs: one transaction. */
typedef struct pg_op {
    struct pg_op *next;
    dgm_job *job;   /* of a read, or a chain of writes by next */
    bool by_row;    /* its results come one by one */
    bool is_by_row; /* libpq has switched to this mode */
    bool failed;    /* `err` has the reason; the following statements are not executed */
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
    size_t n_out;               /* statements and syncs without an answer */
    bool sending;               /* the last op is not sent completely */
    bool refused;               /* a statement could not be sent */
    struct pg_request *request; /* the keeper connects for it */
    uint64_t waits_ms;          /* start of the wait for a connection; 0: no job waits */
    uint64_t progress_ms; /* time of the last progress, or of the first job after it was idle */
};

void dgm_pg_pipe_attach(pg_pipe *p, PGconn *conn);
void dgm_pg_pipe_detach(pg_pipe *p);     /* closes the connection and drops its ops */
void dgm_pg_pipe_leave_loop(pg_pipe *p); /* from now on its owner runs it */
/* sending: send_more() will send its statements. False: they were sent. */
void dgm_pg_pipe_add(pg_pipe *p, pg_op *op, bool sending);
void dgm_pg_pipe_run(pg_pipe *p, bool can_read); /* sends and receives without blocking */
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
    int64_t replica;   /* in the owner's table: the follower; in the follower's table: the owner */
    int64_t last_seq;  /* in the follower's table: of the last wake-up; -1: no wake-up yet */
    bool is_requested; /* in the follower's table: the owner was informed */
    dgm_owner owner;   /* in the follower's table; the texts follow this struct */
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

/* A separate thread with its own connection: the resolution of names and retention must not delay the extension of the
 * lease. */
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
    pg_queue sending; /* commands to store */
    pg_queue answers; /* answers to store */
    dgm_job *waiting; /* stored commands without an answer; linked by lane_next */
    size_t n_waiting;
    bool has_orphans; /* this server released working tasks */
    bool is_new;      /* the callbacks of the core were set */
    bool has_new_agents;
    dgm_arena *agents_arena; /* NULL: set_agents was not called */
    const dgm_str *agents;   /* this server acquires orphans of these agents */
    size_t n_agents;
    struct
    { /* ids of tasks that could not be loaded here: they are acquired at the next heartbeat, not before */
        dgm_arena *arena;
        dgm_str ids[PG_MOST_ASIDE];
        size_t n;
        bool is_full; /* the list is full: no task is acquired before the next heartbeat */
    } aside;
    bool stopping;
    int64_t last_command;
    _Atomic size_t n_followed; /* of `followed`: appends read it without the lock */
    _Atomic uint64_t until_ms; /* end of the lease of this server or earlier, by dgm_pg_lease_now */
    _Atomic bool is_paused;    /* for tests: the thread acts as if the process were stopped */
    _Atomic bool is_dead;      /* its row was deleted: it registers again */
    /* used by the thread only */
    PGconn *conn;
    pthread_t thread;
    bool has_thread;
    uint64_t beat_ms, poll_ms, sweep_ms, owned_ms; /* next times */
    uint64_t extended_ms;                          /* last extension of the lease */
    uint64_t steady_ms; /* the first extension since the last gap; 0: no extension since then */
    bool owned_is_open; /* the cursor of dgm_pg_lease_read_owned */
    bool look;          /* read commands and answers now */
    bool take;          /* acquire tasks of dead servers now */
    uint64_t take_ms, skipped_ms; /* or at this time: the delay after a page with locked tasks */
    uint64_t search_ms; /* deadline of the core's wait for the first search; 0: it does not wait */
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

/* The part of a store on one loop. Only the thread of the loop uses it, except `store` and is_stopped. */
struct pg_loop {
    pg_store *store;
    dgm_loop *loop;
    pg_pipe writer, reader, lister;
    pg_queue writes, reads, lists;
    size_t alone;   /* number of the next writes that are a batch each */
    bool had_doubt; /* appends have failed that may be stored: see pg_write */
    size_t pending, waiting;
    pg_lane lanes[PG_LANES];
    dgm_job *answers, *last_answer; /* to be posted */
    dgm_loop_turn turn;
    dgm_loop_stop stop;
    dgm_timer tick;
    struct pg_batch *batch;
    bool blocking; /* the loop has stopped: jobs are executed at once */
    bool running;  /* pg_loop_run is active */
    _Atomic bool is_stopped;
};

typedef struct pg_request {
    struct pg_request *next;
    dgm_loop *loop;
    _Atomic bool is_canceled; /* no pipe waits for it: the thread that finds it frees it */
    pg_pipe *pipe;
    pg_role role;
    PGconn *conn;
} pg_request;

struct pg_store {
    dgm_store base;
    pg_target target;
    _Atomic size_t n_queued; /* appends that are not answered */
    pthread_mutex_t lock;    /* for the members below */
    pthread_cond_t changed;
    pg_loop *loops[DGM_MAX_LOOPS];
    dgm_store_stats stats;
    dgm_err fault; /* code DGM_OK: no fault */
    pg_request *requests;
    dgm_refused refused; /* tasks whose first append was not stored here */
    pg_queue trims;
    size_t n_trims;
    bool stopping;
    /* used by the keeper only */
    PGconn *control;
    pthread_t keeper;
    bool has_keeper;
    int wake[2];
    pg_share share;
};

void dgm_pg_store_fault(pg_store *s, const dgm_err *err); /* NULL: the fault has ended */

/* keeper */
/* A number from one row, on a blocking connection. */
int64_t dgm_pg_query_int(PGconn *c, const char *sql, dgm_code *ret_code, dgm_err *err);
dgm_code dgm_pg_keeper_open(pg_store *s, dgm_err *err);
void dgm_pg_keeper_stop(pg_store *s); /* ends the thread */
void dgm_pg_keeper_close(pg_store *s);
void dgm_pg_keeper_wake(pg_store *s);
void dgm_pg_keeper_connect(pg_store *s, pg_pipe *p, pg_role role);
void dgm_pg_keeper_trim(pg_store *s, dgm_job *job);
void dgm_pg_loop_connected(void *request); /* on its loop */

/* One job is answered: in the order of its lane. */
void dgm_pg_loop_done(pg_loop *l, dgm_job *job);
void dgm_pg_loop_fail(pg_loop *l, dgm_job *job, const dgm_err *err);

/* ---- postgres_write.c, postgres_batch.c -------------------------------------------------------------- */

typedef struct pg_batch pg_batch;
void dgm_pg_batch_free(pg_batch *b);
/* Removes the first jobs from the queue and sends them. The writer is connected and idle. */
void dgm_pg_write_next(pg_loop *l);
bool dgm_pg_write_more(pg_loop *l, pg_op *op);
void dgm_pg_write_result(pg_loop *l, pg_op *op, const PGresult *r);
void dgm_pg_write_done(pg_loop *l, pg_op *op);
void dgm_pg_write_lost(pg_loop *l); /* unanswered statements will be sent again */
void dgm_pg_write_requeue(pg_loop *l, dgm_job *chain); /* to the front of the queue */

/* ---- postgres_read.c, postgres_checkpoint_read.c ----------------------------------------------------- */

void dgm_pg_read_send(pg_pipe *p, dgm_job *job);
void dgm_pg_read_result(pg_store *s, dgm_job *job, const PGresult *r);
bool dgm_pg_read_is_stale(const dgm_job *job); /* true: read it again */
void dgm_pg_read_reset(dgm_job *job); /* drops the partial result; the read is sent again */
void dgm_pg_checkpoints_send(pg_pipe *p, dgm_job *job);
void dgm_pg_checkpoints_result(dgm_job *job, const PGresult *r);

/* ---- postgres_checkpoint.c --------------------------------------------------------------------------- */

/* A change is sent statement by statement: parts of large values first. */
typedef struct pg_change pg_change;
/* may_be_new: see dgm_fence.is_new; false: its task must be stored. */
pg_change *dgm_pg_change_new(dgm_job *job, int64_t replica, bool may_be_new);
void dgm_pg_change_free(pg_change *c);
bool dgm_pg_change_send(pg_change *c,
                        pg_pipe *p); /* sends the next statement; false: it was the last one */
void dgm_pg_change_result(pg_change *c, const PGresult *r);
void dgm_pg_thread_key(dgm_str agent, dgm_str thread, unsigned char *ret_key);
void dgm_pg_checkpoint_key(dgm_str ns, dgm_str id, unsigned char *ret_key);

/* ---- postgres_share.c -------------------------------------------------------------------------------- */

dgm_code dgm_pg_share_open(pg_store *s, const dgm_store_options *options, dgm_err *err);
void dgm_pg_share_stop(pg_store *s);  /* ends the thread; other servers then see this one as dead */
void dgm_pg_share_close(pg_store *s); /* when no callback can be called any more */
void dgm_pg_share_wake(pg_store *s);
void dgm_pg_share_submit(pg_store *s, dgm_job *job);       /* COMMAND and ANSWER */
void dgm_pg_share_set_aside(pg_store *s, dgm_str task_id); /* before a RELEASE with has_failed */
uint64_t dgm_pg_share_ms(const pg_store *s); /* time limit of a statement on its connection */
/* Executes a statement on its connection. NULL: it failed; a lost connection was closed. */
PGresult *dgm_pg_share_exec(pg_store *s, const char *sql, const pg_args *a);
void dgm_pg_share_notify_all(pg_store *s, const char *what); /* a notification to every server */
extern const dgm_share_driver dgm_pg_share_driver;

/* ---- postgres_follow.c ------------------------------------------------------------------------------- */

/* After a commit, on its loop. is_orphan: the task works, and its lease was released. */
void dgm_pg_share_grown(pg_store *s, dgm_owner owner, dgm_str task_id, bool is_orphan);
uint64_t dgm_pg_follow_hash(dgm_owner owner, dgm_str task_id);
void dgm_pg_follow(dgm_store *base, dgm_owner owner, dgm_str task_id, int64_t owner_replica);
bool dgm_pg_is_followed(dgm_store *base, dgm_owner owner, dgm_str task_id);
void dgm_pg_follow_send(
    pg_store *s); /* sends wake-ups and follow requests on the share connection */
void dgm_pg_follow_receive(pg_store *s,
                           const char *text); /* handles a notification of another server */
#define PG_FOLLOW_COMMAND "follow"    /* its body is such a text; it is not passed to the core */
void dgm_pg_follow_poll(pg_store *s); /* reads last_seq and owner of the tasks that it follows */
bool dgm_pg_follow_is_busy(pg_store *s);
void dgm_pg_follow_expire(pg_store *s);
void dgm_pg_follow_done(pg_share *h);

/* ---- postgres_lease.c -------------------------------------------------------------------------------- */

/* Milliseconds of a clock that continues while the machine is suspended, like that of the database. Use it for all times that
 * are compared with a lease. */
uint64_t dgm_pg_lease_now(void);
/* Inserts a row for this server with a new id. On a blocking connection. */
dgm_code dgm_pg_lease_register(pg_store *s, PGconn *c, dgm_err *err);
bool dgm_pg_lease_extend(
    pg_store *s); /* false: this server was declared dead, or the database failed */
/* Marks servers with an expired lease as dead; deletes dead servers without tasks. */
void dgm_pg_lease_declare_dead(pg_store *s);
/* Adds rows for servers that were deleted but own tasks: a first append came later than DEAD_ROW_TIME, and its server has ended. */
void dgm_pg_lease_add_unknown(pg_store *s);
void dgm_pg_lease_take_over(pg_store *s);  /* acquires tasks without a living owner */
void dgm_pg_lease_read_owned(pg_store *s); /* reads a page of the tasks that this server owns */
void dgm_pg_lease_end(pg_store *s);        /* ends the lease: this server is closed */
/* Acquires a job that only one server may execute. *ret_may false: another server executes it. */
dgm_code dgm_pg_lease_job(pg_store *s, PGconn *c, dgm_str name, bool *ret_may, dgm_err *err);
/* Fails if a server uses the database. */
dgm_code dgm_pg_lease_check_unused(PGconn *c, const pg_target *t, dgm_err *err);

/* ---- postgres_trim.c --------------------------------------------------------------------------------- */

/* Executes one step of a job, on a blocking connection; *ret_more: further steps are required. */
dgm_code dgm_pg_trim_step(PGconn *c, dgm_job *job, bool *ret_more, dgm_err *err);
