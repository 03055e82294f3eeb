/* app/admin/admin_worker.c - `dragoman worker FILE`: becomes the worker process of an agent file. */
#include "app/admin/admin.h"
#include "config/agent_file.h"

int dgm_admin_worker(const dgm_cli_line *line)
{
    dgm_err err = {0};
    if (dgm_agent_file_exec(line->args[0], dgm_cli_get(line, "interpreter"), &err))
        dgm_cli_complain("%s", err.msg);
    return DGM_CLI_FAILED;
}
