/* config/mcp_servers.h - opens the MCP servers of a configuration. */
#pragma once

#include "config.h"
#include "mcp/mcp.h"

/* No process is started and no connection made. on_log may be NULL. DGM_BAD_PARAMS: err->at names the setting. */
dgm_code dgm_mcp_server_open(const dgm_config *c, const dgm_config_mcp *server,
                             void (*on_log)(void *user, dgm_str line), void *log_user,
                             dgm_mcp **ret_mcp, dgm_err *err);
