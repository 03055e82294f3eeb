/*
 * app/serve/site.h - what callers meet, made from one config: agents with their cards and frontends.
 *
 * A reload makes another site beside it; requests keep the one they came to until they are answered.
 */
#pragma once

#include "config/agents.h"
#include "config/config.h"
#include "frontend/a2a/a2a_front.h"
#include "frontend/turn/turn.h"

typedef struct dgm_site_agent {
    const dgm_config_agent *config;
    dgm_str path; /* "/agents/ID" */
    dgm_a2a_front *a2a;
    dgm_a2a_card *card, *extended;
    const dgm_turn_agent *turn_agent; /* of turns */
} dgm_site_agent;

typedef struct dgm_site {
    dgm_config *config;
    dgm_site_agent *agents; /* in the config's order */
    size_t n_agents;
    dgm_site_agent *first; /* the one at / */
    dgm_turns *turns;      /* what all but A2A share */
    int64_t made_s;        /* Unix time */
    dgm_arena *arena;
    _Atomic int64_t refs; /* requests that are here, loops that send them */
    bool was_idle;        /* when it was last looked at */
    struct dgm_site *next;
} dgm_site;

/* Takes the config over, if all is well. Agents of the config that do not run are left out. */
dgm_code dgm_site_new(dgm_core *core, const dgm_agents *agents, dgm_config *config, int64_t now_s,
                      dgm_site **ret_site, dgm_err *err);
void dgm_site_free(dgm_site *s); /* NULL is fine */

/* id.p NULL: the default agent. NULL: unknown agent. */
dgm_site_agent *dgm_site_find(const dgm_site *s, dgm_str id);
