/*
 * app/admin/admin.h - `dragoman db`, `dragoman init` and `dragoman worker`: files of a server, without a server.
 */
#pragma once

#include "app/cli/cli.h"

int dgm_admin_db(const dgm_cli_line *line);
int dgm_admin_init(const dgm_cli_line *line);
int dgm_admin_worker(const dgm_cli_line *line);
