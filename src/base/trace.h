/*
 * base/trace.h - state machines: a table of legal transitions, and a ring of the transitions that happened last.
 *
 * Each machine has one state variable and one function that writes it. That function checks the transition against the
 * machine's table and adds it to the ring of its event loop (dgm_loop_trace in net/loop.h). One thread writes a ring, any
 * thread may read it. Adding costs a few stores; names and times become text only when somebody reads.
 */
#pragma once

#include "base/str.h"

#include <stdatomic.h>

#define DGM_TRACE_ENTRIES 1024 /* per event loop, 24 KiB: about the last 100 requests */

typedef struct dgm_machine {
    const char *name;           /* "connection" */
    const char *const *states;  /* the name of each state */
    const uint16_t *may_become; /* of each state: one bit per legal next state */
    unsigned n;                 /* states */
    bool is_of_task;            /* its objects are named by dgm_trace_task_object() */
} dgm_machine;

static inline bool dgm_machine_allows(const dgm_machine *m, unsigned from, unsigned to)
{
    return from < m->n && to < m->n && m->may_become[from] >> to & 1;
}

/* NULL: the table is well formed. Else the reason: a state without a name, one that state 0 cannot reach, a
 * transition to a state that does not exist, or no final state. */
const char *dgm_machine_fault(const dgm_machine *m);

/* The last characters of a task's id, which differ for each task and can be searched for in a log. */
static inline uint64_t dgm_trace_task_object(dgm_str task_id)
{
    uint64_t object = 0;
    size_t n = task_id.n < sizeof object ? task_id.n : sizeof object;
    if (n)
        memcpy(&object, task_id.p + task_id.n - n, n);
    return object;
}

typedef struct dgm_transition {
    const dgm_machine *machine;
    uint64_t object;
    uint64_t ms; /* of the clock of the writer */
    uint8_t from, to;
} dgm_transition;

typedef struct dgm_trace {
    _Atomic uint64_t n; /* entries ever added; entry i is in slot i % DGM_TRACE_ENTRIES */
    struct {
        _Atomic uint64_t machine, object, when; /* when: ms << 16 | from << 8 | to */
    } slots[DGM_TRACE_ENTRIES];
} dgm_trace;

static inline void dgm_trace_add(dgm_trace *t, const dgm_machine *m, uint64_t object, uint64_t ms,
                                 unsigned from, unsigned to)
{
    uint64_t n = atomic_load_explicit(&t->n, memory_order_relaxed), i = n % DGM_TRACE_ENTRIES;
    atomic_store_explicit(&t->slots[i].machine, (uintptr_t)m, memory_order_relaxed);
    atomic_store_explicit(&t->slots[i].object, object, memory_order_relaxed);
    atomic_store_explicit(&t->slots[i].when, ms << 16 | from << 8 | to, memory_order_relaxed);
    atomic_store_explicit(&t->n, n + 1, memory_order_release);
}

/* Copies the entries, oldest first, and returns their number; ret_entries has room for DGM_TRACE_ENTRIES. Entries that
 * are overwritten meanwhile are left out. */
size_t dgm_trace_read(const dgm_trace *t, dgm_transition *ret_entries);
