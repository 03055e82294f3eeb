/* frontend/turn/test_turn_agents.c - names of agents. */
#include "frontend/turn/turn.h"
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

DGM_TEST_MAIN(dgm_test(an_agent_has_four_names), dgm_test(other_names_are_unknown))
