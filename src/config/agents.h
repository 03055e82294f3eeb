/*
 * config/agents.h - the agents of a server: opened from a configuration, added and replaced by a reload.
 *
 * An agent that a reload changes or removes stays open until the server ends, because its runs may go on. So nothing
 * here is freed before dgm_agents_free, and the configuration may be freed at any time: its texts are copied.
 */
#pragma once

#include "backend/backend.h"
#include "config/config.h"
#include "core/core.h"

typedef struct dgm_agents dgm_agents;

/* on_log: lines of MCP servers for the operator, from any thread; may be NULL. */
dgm_agents *dgm_agents_new(void (*on_log)(void *user, dgm_str line), void *user);
/* Lines of agents that belong to no run, from any thread (dgm_agent_options.on_log). Before dgm_agents_open. */
void dgm_agents_set_log(dgm_agents *s,
                        void (*on_agent_log)(void *user, dgm_str agent, bool is_fault,
                                             dgm_str line),
                        void *user);
/* Where the checkpoints of graphs are stored; open until no agent calls it any more. Before dgm_agents_open. */
void dgm_agents_set_store(dgm_agents *s, dgm_store *store);
/* Starts the long-lived programs of agents that are new, and ends those of agents that were replaced, or that c (may be
 * NULL) does not have. The loops run. From one thread. */
void dgm_agents_prepare(dgm_agents *s, const dgm_config *c, dgm_loops *loops);
/* Ends the long-lived programs of all agents; blocks, with a time limit. Before the loops stop. */
void dgm_agents_retire(dgm_agents *s);
/* Stops the MCP servers. Before the loops stop. */
void dgm_agents_close_mcp(dgm_agents *s);
void dgm_agents_free(dgm_agents *s); /* NULL is fine; no run is left. Closes all */

/* `outbound.allow`: addresses that are not public, to which connections are allowed. In the arena. */
dgm_address_ranges dgm_agents_allowed_addresses(dgm_arena *a, const dgm_config *c);

/* The options that all agents of a server share: secret_env, outbound_allow, peers, and the names of the MCP servers. Copied into
 * the arena. */
dgm_agent_options dgm_agents_server_options(dgm_arena *a, const dgm_config *c);
/* Opens one agent of a configuration, for dgm_agents_open and to check its settings. */
dgm_code dgm_agents_open_one(const dgm_config_agent *a, const dgm_agent_options *server,
                             const dgm_backend *backend, void **ret_agent, dgm_err *err);

/* Opens an agent and closes it again: check_agent of dgm_config_source, for --check and for the mistakes that are reported all at
 * once. */
dgm_code dgm_agents_check(const dgm_config *c, const dgm_config_agent *a, void *user, dgm_err *err);

/* Opens the agents of the configuration that are new or that changed, and adds them to the core (NULL: there is
 * no core yet). On an error nothing has changed. From one thread. */
dgm_code dgm_agents_open(dgm_agents *s, const dgm_config *c, dgm_core *core, dgm_err *err);
/* Adds an agent that the caller opened and closes itself, for tests that bring their own. */
void dgm_agents_add(dgm_agents *s, const dgm_core_agent *agent);
/* Undoes the last dgm_agents_open: the agents before it are the current ones again. */
void dgm_agents_undo(dgm_agents *s, dgm_core *core);

/* The current agents, the configuration's default first: for dgm_core_new. The caller frees the list. */
dgm_core_agent *dgm_agents_list(const dgm_agents *s, const dgm_config *c, size_t *ret_n);

/* The type of the current agent of this id; NULL: unknown agent. */
const dgm_backend *dgm_agents_backend(const dgm_agents *s, dgm_str id);
