/* test_state.c - every pair of states, and what each state is. */
#include "base/str.h"
#include "model/kinds.h"
#include "support/check.h"

static const char *const names[DGM_N_STATES] = {"unknown",        "submitted", "working",
                                                "completed",      "failed",    "canceled",
                                                "input-required", "rejected",  "auth-required"};

/* Row: the state a task is in. Column: what it reports next. In the order of the enum:
 * unknown submitted working completed failed canceled input-required rejected auth-required */
static const char *const table[DGM_N_STATES] = {
    /* unknown        */ "yyyyyyyyy", /* has no meaning, forbids nothing */
    /* submitted      */ "yyyyyyyyy",
    /* working        */ "y-yyyyyyy", /* never back to submitted */
    /* completed      */ "---------",
    /* failed         */ "---------",
    /* canceled       */ "---------",
    /* input-required */ "y-yyyyyyy",
    /* rejected       */ "---------",
    /* auth-required  */ "y-yyyyyyy",
};

static void every_pair_of_states(void **state)
{
    (void)state;
    for (int from = 0; from < DGM_N_STATES; from++) {
        assert_int_equal(strlen(table[from]), DGM_N_STATES);
        for (int to = 0; to < DGM_N_STATES; to++) {
            if (dgm_state_may_become((dgm_task_state)from, (dgm_task_state)to) !=
                (table[from][to] == 'y'))
                fail_msg("%s to %s", names[from], names[to]);
        }
    }
}

static void every_state_has_its_class(void **state)
{
    static const struct {
        bool terminal, interrupted, final_03;
    } rows[DGM_N_STATES] = {
        [DGM_STATE_UNKNOWN] = {false, false, false},
        [DGM_STATE_SUBMITTED] = {false, false, false},
        [DGM_STATE_WORKING] = {false, false, false},
        [DGM_STATE_COMPLETED] = {true, false, true},
        [DGM_STATE_FAILED] = {true, false, true},
        [DGM_STATE_CANCELED] = {true, false, true},
        [DGM_STATE_INPUT_REQUIRED] = {false, true, true},
        [DGM_STATE_REJECTED] = {true, false, true},
        [DGM_STATE_AUTH_REQUIRED] = {false, true, false},
    };
    (void)state;
    for (int s = 0; s < DGM_N_STATES; s++) {
        assert_int_equal(dgm_state_is_terminal((dgm_task_state)s), rows[s].terminal);
        assert_int_equal(dgm_state_is_interrupted((dgm_task_state)s), rows[s].interrupted);
        assert_int_equal(dgm_state_is_final_03((dgm_task_state)s), rows[s].final_03);
    }
}

static void the_numbers_are_those_of_the_protocol(void **state)
{
    (void)state;
    assert_int_equal(DGM_STATE_SUBMITTED, 1);
    assert_int_equal(DGM_STATE_WORKING, 2);
    assert_int_equal(DGM_STATE_COMPLETED, 3);
    assert_int_equal(DGM_STATE_FAILED, 4);
    assert_int_equal(DGM_STATE_CANCELED, 5);
    assert_int_equal(DGM_STATE_INPUT_REQUIRED, 6);
    assert_int_equal(DGM_STATE_REJECTED, 7);
    assert_int_equal(DGM_STATE_AUTH_REQUIRED, 8);
    assert_int_equal(DGM_ROLE_USER, 1);
    assert_int_equal(DGM_ROLE_AGENT, 2);
}

static void kinds_of_objects_have_names(void **state)
{
    (void)state;
#define X(sym, name, type)                                                                         \
    assert_string_equal(dgm_object_kind_name(DGM_OBJECT_##sym), name);                             \
    assert_int_equal(dgm_object_kind_by_name(DGM_STR(name)), DGM_OBJECT_##sym);
    DGM_OBJECT_KINDS(X)
#undef X
    assert_string_equal(dgm_object_kind_name(DGM_OBJECT_NONE), "");
    assert_string_equal(dgm_object_kind_name((dgm_object_kind)999), "");
    assert_int_equal(dgm_object_kind_by_name(DGM_STR("")), DGM_OBJECT_NONE);
    assert_int_equal(dgm_object_kind_by_name(DGM_STR("messages")), DGM_OBJECT_NONE);
    assert_int_equal(dgm_object_kind_by_name((dgm_str){0}), DGM_OBJECT_NONE);
}

DGM_TEST_MAIN(dgm_test_holds(every_pair_of_states, "R004-02 R002-07"),
              dgm_test_holds(every_state_has_its_class, "R002-06"),
              dgm_test(the_numbers_are_those_of_the_protocol),
              dgm_test(kinds_of_objects_have_names))
