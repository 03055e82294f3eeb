/* base/trace.c - checks tables of transitions and reads rings. */
#include "base/trace.h"

const char *dgm_machine_fault(const dgm_machine *m)
{
    unsigned reached = 1, before = 0;
    bool has_final = false;
    if (!m->n || m->n > 16)
        return "the number of states is not within 1 to 16";
    for (unsigned i = 0; i < m->n; i++) {
        if (!m->states[i] || !*m->states[i])
            return "a state has no name";
        if (m->may_become[i] >> m->n)
            return "a transition leads to a state that does not exist";
        has_final |= !m->may_become[i];
    }
    while (reached != before) {
        before = reached;
        for (unsigned i = 0; i < m->n; i++)
            reached |= before >> i & 1 ? m->may_become[i] : 0;
    }
    if (reached != (1u << m->n) - 1)
        return "a state cannot be reached";
    return has_final ? NULL : "no state is final";
}

size_t dgm_trace_read(const dgm_trace *t, dgm_transition *ret_entries)
{
    uint64_t end = atomic_load_explicit(&t->n, memory_order_acquire);
    uint64_t first = end > DGM_TRACE_ENTRIES ? end - DGM_TRACE_ENTRIES : 0;
    for (uint64_t i = first; i < end; i++) {
        size_t slot = i % DGM_TRACE_ENTRIES;
        uint64_t when = atomic_load_explicit(&t->slots[slot].when, memory_order_acquire);
        ret_entries[i - first] = (dgm_transition){
            .machine = (const dgm_machine *)(uintptr_t)atomic_load_explicit(&t->slots[slot].machine,
                                                                            memory_order_acquire),
            .object = atomic_load_explicit(&t->slots[slot].object, memory_order_acquire),
            .ms = when >> 16,
            .from = (uint8_t)(when >> 8),
            .to = (uint8_t)when};
    }
    /* The writer may have gone on, and may be writing up to two slots whose number is not visible yet. */
    uint64_t now = atomic_load_explicit(&t->n, memory_order_acquire);
    uint64_t valid = now + 2 > DGM_TRACE_ENTRIES ? now + 2 - DGM_TRACE_ENTRIES : 0;
    if (valid <= first)
        return end - first;
    if (valid >= end)
        return 0;
    memmove(ret_entries, ret_entries + (valid - first), (end - valid) * sizeof *ret_entries);
    return end - valid;
}
