/* frontend/turn/test_turn.c - names of agents; the states of a streamed turn. */
#include "frontend/turn/turn_int.h"
#include "support/check.h"

static const dgm_turn_agent agents[] = {{.id = {"hello", 5}}, {.id = {"demo", 4}}};
static const dgm_turns_options options = {.agents = agents, .n_agents = 2, .first = agents};

static const dgm_turn_agent *named(const char *tenant, const char *model)
{
    return dgm_turns_find_agent(&options, dgm_str_from(tenant), dgm_str_from(model));
}

static void an_agent_has_four_names(void **state)
{
    (void)state;
    assert_ptr_equal(named("acme", "demo"), &agents[1]);
    assert_ptr_equal(named("acme", "a2a/demo"), &agents[1]);
    assert_ptr_equal(named("acme", "agent:demo"), &agents[1]);
    assert_ptr_equal(named("acme", "acme/demo"), &agents[1]);
    assert_ptr_equal(named("", "hello"), &agents[0]);
}

static void other_names_are_unknown(void **state)
{
    static const char *const names[] = {"",       "gpt-4o",     "demo2",     "dem",      "a2a/",
                                        "agent:", "other/demo", "a2a/a2a/x", "/demo",    "demo/",
                                        "acme/",  "acme",       "acmedemo",  "DEMO",     "a2a/none",
                                        "a2a",    "acme//demo", "acme/x",    "demo/demo"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_null(named("acme", names[i]));
    assert_null(named("", "/demo"));
    assert_null(named("", "acme/demo"));
}

/* Each state in a row; one character per next state, in the order of enum turn_stream_state. */
static void the_transitions_of_a_streamed_turn(void **state)
{
    static const char *const legal[N_TURN_STREAM_STATES] = {
        [TURN_WAITING] = "-+-+-+", [TURN_REPLAYING] = "--++++", [TURN_LIVE] = "---+++",
        [TURN_CUT] = "----+-",     [TURN_ENDED] = "-----+",     [TURN_CLOSED] = "------",
    };
    const dgm_machine *m = &dgm_turn_stream_machine;
    (void)state;
    assert_null(dgm_machine_fault(m));
    assert_int_equal(m->n, N_TURN_STREAM_STATES);
    assert_true(m->is_of_task);
    for (unsigned from = 0; from < m->n; from++) {
        for (unsigned to = 0; to < m->n; to++)
            assert_int_equal(dgm_machine_allows(m, from, to), legal[from][to] == '+');
    }
}

DGM_TEST_MAIN(dgm_test(the_transitions_of_a_streamed_turn), dgm_test(an_agent_has_four_names),
              dgm_test(other_names_are_unknown))
