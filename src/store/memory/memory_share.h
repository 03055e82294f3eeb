/* store/memory/memory_share.h - for tests: servers that share one memory. */
#pragma once

#include "store/share.h"

/*
 * Every store that is opened as "memory-shared:NAME" in one process is a server of its own on one memory, with all of
 * store/share.h. Leases do not end by time, but by this: the store is declared dead as if its process had been stopped for longer
 * than a lease. Its tasks go to the others. It has a new id when it goes on, and its old leases are lost.
 */
void dgm_store_memory_kill(dgm_store *s);
/* The next n appends of this server are answered as if the database could not be reached; is_stored: they are stored all the
 * same. */
void dgm_store_memory_fail(dgm_store *s, int n, bool is_stored);
/* Likewise the next n reads, acquisitions and releases of tasks, which are not done. */
void dgm_store_memory_fail_reads(dgm_store *s, int n);
int dgm_store_memory_fails_left(dgm_store *s); /* of these */
/* This server finds that it was declared dead: on_renewed. */
void dgm_store_memory_notice(dgm_store *s);
/* Reports the tasks that work and that this server owns: on_owned. */
void dgm_store_memory_report_owned(dgm_store *s);
