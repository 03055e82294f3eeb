/*
 * app/client/client.h - `dragoman send`, `task`, `card` and `connect`: a client of other servers; `dragoman try`.
 *
 * Calls block, one request at a time: the user waits for the answer.
 */
#pragma once

#include "app/cli/cli.h"

int dgm_client_send(const dgm_cli_line *line);
int dgm_client_task(const dgm_cli_line *line);
int dgm_client_card(const dgm_cli_line *line);
int dgm_client_connect(const dgm_cli_line *line);
int dgm_client_try(const dgm_cli_line *line); /* an agent file, without a server */
int dgm_client_lint(const dgm_cli_line *line); /* of a server's address */
