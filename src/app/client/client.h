/*
 * app/client/client.h - `dragoman send`, `task` and `card`: a client of any A2A server.
 *
 * Blocking, one request at a time: a person waits for it.
 */
#pragma once

#include "app/cli/cli.h"

int dgm_client_send(const dgm_cli_line *line);
int dgm_client_task(const dgm_cli_line *line);
int dgm_client_card(const dgm_cli_line *line);
int dgm_client_lint(const dgm_cli_line *line); /* of a server's address */
