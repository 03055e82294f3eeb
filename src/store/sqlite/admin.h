/*
 * store/sqlite/admin.h - what `dragoman db` does with a database, without a store or a loop.
 *
 * All of it blocks. check, backup and export look at one moment of the database and may run beside a
 * server; restore and vacuum want it alone and say who has it otherwise.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

typedef struct dgm_db_counts {
    uint64_t tasks, records, turns;
    uint64_t checkpoints, checkpoint_bytes; /* of graphs, with their writes */
    uint64_t faults;                        /* how often `say` was called */
} dgm_db_counts;

/* SQLite's own check, then ours: checksums, records that can be read, seqs without a gap up to the
 * task's last_seq, turns and folded Tasks within the log, checkpoints with all their values. Every fault is reported; DGM_OK means that the
 * check could run, counts->faults is the number of faults. */
typedef void (*dgm_db_say)(const char *fault, void *arg);
dgm_code dgm_db_check(const char *path, dgm_db_say say, void *arg, dgm_db_counts *ret_counts,
                      dgm_err *err);

/* A copy of the moment it began. `to` must not exist; it appears when it is complete. */
dgm_code dgm_db_backup(const char *path, const char *to, dgm_err *err);

/* Puts a backup in place. What was there is kept as PATH.before-restore. */
dgm_code dgm_db_restore(const char *path, const char *from, dgm_err *err);

/* Gives free pages back to the disk. Sizes in bytes. */
dgm_code dgm_db_vacuum(const char *path, int64_t *ret_before, int64_t *ret_after, dgm_err *err);

/* One JSON object per record, by task, then seq: {"tenant","principal","task","context","agent","seq",
 * "turn","time","event"}. The line has no newline; DGM_OK from write goes on. */
typedef dgm_code (*dgm_db_write)(dgm_str line, void *arg, dgm_err *err);
dgm_code dgm_db_export(const char *path, dgm_db_write write, void *arg, dgm_err *err);
