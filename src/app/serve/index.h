/*
 * app/serve/index.h - which agents there are and where: for curl, for probes, for a mistyped path.
 */
#pragma once

#include "app/serve/site.h"

/* Responds to GET and HEAD of "/", "/agents/" and "/agents/ID/" with a few lines of text. f: the agent that the path
 * names; NULL: no agent has this id, and the status is 404. */
void dgm_index_give(const dgm_site *s, const dgm_site_agent *f, dgm_http_exchange *x);

/* The sentence for a path below "/agents/" whose agent does not exist. It lists the agents. In the arena. */
const char *dgm_index_unknown_agent(const dgm_site *s, dgm_arena *a, dgm_str path);

/* "/agents" and "/agents/" name no agent and show the list. */
bool dgm_index_is_list(dgm_str path);
