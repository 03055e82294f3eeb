/*
 * store/store_copy.h - `dragoman db copy`: all rows of one database into another one of any driver, without a store.
 *
 * The copy is one transaction: either all rows are written, or none. All rows of the source are read from one snapshot, while a
 * server may use it; the target must be empty, and no server may use it.
 */
#pragma once

#include "base/err.h"

#define DGM_COPY_TABLES(X)                                                                         \
    X(TASKS, "tasks")                                                                              \
    X(LOG, "log rows")                                                                             \
    X(TURNS, "turns")                                                                              \
    X(MESSAGES, "message ids")                                                                     \
    X(CALLS, "calls")                                                                              \
    X(NOTES, "notes")                                                                              \
    X(THREADS, "threads of graphs")                                                                \
    X(CHECKPOINTS, "checkpoints")                                                                  \
    X(WRITES, "writes of checkpoints")                                                             \
    X(VALUES, "parts of values")

typedef enum dgm_copy_table {
#define X(name, text) DGM_COPY_##name,
    DGM_COPY_TABLES(X)
#undef X
        DGM_N_COPY
} dgm_copy_table;

/* Rows read and rows written, by table. Both are counted in the databases. */
typedef struct dgm_copy_counts {
    uint64_t rows[DGM_N_COPY];
} dgm_copy_counts;

const char *dgm_copy_table_name(dgm_copy_table t);

dgm_code dgm_db_copy(const char *from_url, const char *to_url, dgm_copy_counts *ret_counts,
                     dgm_err *err);

/* ---- for drivers ------------------------------------------------------------------------------------- */

typedef struct dgm_copy_value {
    bool is_number;
    int64_t number;
    dgm_str text; /* absent: NULL */
} dgm_copy_value;

/*
 * The columns of a row, by table; letters: i a number, s bytes, n bytes or NULL.
 *
 *   TASKS        tenant principal id context agent state created_ms status_ms last_seq folded_seq folded
 *   LOG          tenant principal task first_seq n bytes
 *   TURNS        tenant principal task turn first_seq last_seq ended_ms protocol caller request previous
 *   MESSAGES     tenant principal task turn message scope digest expires_ms agent context
 *   CALLS        tenant principal call agent task
 *   NOTES        tenant principal kind name expires_ms text
 *   THREADS      agent thread touched_ms
 *   CHECKPOINTS  agent thread ns id is_stored writes writes_bytes parent run type size number body
 *                meta_type meta_size meta_number meta_body
 *   WRITES       agent thread ns id task idx channel path type size number body
 *   VALUES       agent thread number part bytes
 *
 * MESSAGES: a message that was sent without a context has a row in the scope without one, with expires_ms, and may have
 * another in that of its task, behind it or not.
 */
#define DGM_COPY_MAX_COLUMNS 17
extern const char *const dgm_copy_columns[DGM_N_COPY];

typedef struct dgm_copy_end dgm_copy_end; /* a database, as source or target */
typedef dgm_code (*dgm_copy_row)(const dgm_copy_value *row, void *arg, dgm_err *err);

typedef struct dgm_copy_driver {
    const char *scheme;
    dgm_code (*open)(const char *rest, bool as_target, dgm_copy_end **ret_end, dgm_err *err);
    void (*close)(dgm_copy_end *e); /* rolls back what was not committed; NULL is allowed */
    dgm_code (*read)(dgm_copy_end *e, dgm_copy_table t, dgm_copy_row on_row, void *arg,
                     dgm_err *err);
    /* Rows of one table after the other, in the order of the tables. */
    dgm_code (*write)(dgm_copy_end *e, dgm_copy_table t, const dgm_copy_value *row, dgm_err *err);
    dgm_code (*end_table)(dgm_copy_end *e, dgm_copy_table t, dgm_err *err);
    dgm_code (*commit)(dgm_copy_end *e, dgm_err *err);
} dgm_copy_driver;

extern const dgm_copy_driver dgm_copy_sqlite, dgm_copy_postgres;
