/* Tables of transitions and rings of them (base/trace.h). */
#include "base/trace.h"
#include "support/check.h"

#include <stdlib.h>

enum { OPEN, BUSY, SHUT };
static const char *const names[] = {"open", "busy", "shut"};
static const uint16_t legal[] = {
    [OPEN] = 1u << BUSY | 1u << SHUT, [BUSY] = 1u << OPEN | 1u << SHUT, [SHUT] = 0};
static const dgm_machine door = {.name = "door", .states = names, .may_become = legal, .n = 3};

static void illegal_transitions_are_detected(void **state)
{
    (void)state;
    assert_true(dgm_machine_allows(&door, OPEN, BUSY));
    assert_false(dgm_machine_allows(&door, SHUT, OPEN));
    assert_false(dgm_machine_allows(&door, OPEN, OPEN));
    assert_false(dgm_machine_allows(&door, 3, OPEN));
    assert_false(dgm_machine_allows(&door, OPEN, 3));
}

static void faults_of_tables_are_found(void **state)
{
    const uint16_t unreachable[] = {1u << SHUT, 1u << OPEN, 0};
    const uint16_t unknown[] = {1u << BUSY, 1u << 3, 0};
    const uint16_t endless[] = {1u << BUSY, 1u << SHUT, 1u << OPEN};
    const char *const nameless[] = {"open", "", "shut"};
    dgm_machine m = door;
    (void)state;
    assert_null(dgm_machine_fault(&m));
    m.may_become = unreachable;
    assert_string_equal(dgm_machine_fault(&m), "a state cannot be reached");
    m.may_become = unknown;
    assert_string_equal(dgm_machine_fault(&m), "a transition leads to a state that does not exist");
    m.may_become = endless;
    assert_string_equal(dgm_machine_fault(&m), "no state is final");
    m = door;
    m.states = nameless;
    assert_string_equal(dgm_machine_fault(&m), "a state has no name");
}

static void a_ring_holds_the_last_entries(void **state)
{
    dgm_trace *t = calloc(1, sizeof *t);
    dgm_transition *all = calloc(DGM_TRACE_ENTRIES, sizeof *all);
    (void)state;
    assert_int_equal(dgm_trace_read(t, all), 0);
    for (unsigned i = 0; i < 10; i++)
        dgm_trace_add(t, &door, i, 1000 + i, OPEN, BUSY);
    assert_int_equal(dgm_trace_read(t, all), 10);
    assert_ptr_equal(all[9].machine, &door);
    assert_int_equal(all[9].object, 9);
    assert_int_equal(all[9].ms, 1009);
    assert_int_equal(all[9].from, OPEN);
    assert_int_equal(all[9].to, BUSY);
    for (unsigned i = 10; i < 2 * DGM_TRACE_ENTRIES; i++)
        dgm_trace_add(t, &door, i, 1000 + i, OPEN, BUSY);
    size_t n = dgm_trace_read(t, all);
    assert_in_range(n, DGM_TRACE_ENTRIES - 2, DGM_TRACE_ENTRIES);
    assert_int_equal(all[n - 1].object, 2 * DGM_TRACE_ENTRIES - 1);
    assert_int_equal(all[0].object, 2 * DGM_TRACE_ENTRIES - n);
    free(all);
    free(t);
}

static void tasks_are_named_by_the_end_of_their_id(void **state)
{
    uint64_t object = dgm_trace_task_object(DGM_STR("0190-abcdefgh"));
    (void)state;
    assert_memory_equal(&object, "abcdefgh", 8);
    assert_int_not_equal(dgm_trace_task_object(DGM_STR("ab")), dgm_trace_task_object(DGM_STR("b")));
    assert_int_equal(dgm_trace_task_object(DGM_STR("")), 0);
}

DGM_TEST_MAIN(dgm_test(illegal_transitions_are_detected), dgm_test(faults_of_tables_are_found),
              dgm_test(a_ring_holds_the_last_entries),
              dgm_test(tasks_are_named_by_the_end_of_their_id))
