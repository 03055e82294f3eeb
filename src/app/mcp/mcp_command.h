/*
 * app/mcp/mcp_command.h - `dragoman mcp list|call`, and two hidden commands: `mcp-conformance` for the official conformance
 * tests and `mcp-demo`, a small MCP server.
 */
#pragma once

#include "app/cli/cli.h"

int dgm_mcp_command(const dgm_cli_line *line);
int dgm_mcp_conformance(const dgm_cli_line *line);
int dgm_mcp_demo(const dgm_cli_line *line);
