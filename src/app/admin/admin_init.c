/* app/admin/admin_init.c - `dragoman init KIND [FOLDER]`. */
#include "app/admin/admin.h"
#include "app/serve/init.h"

int dgm_admin_init(const dgm_cli_line *line)
{
    const dgm_init_kind *kind = dgm_init_kind_find(dgm_str_from(line->args[0]));
    const char *folder = line->n_args > 1 ? line->args[1] : ".";
    dgm_err err = {0};
    if (!kind)
        return dgm_cli_refuse(line, "unknown kind of agent '%s'", line->args[0]);
    if (dgm_init_write(kind, folder, &err)) {
        dgm_cli_complain("%s", err.msg);
        return DGM_CLI_FAILED;
    }
    for (const dgm_init_file *f = kind->files; f->name; f++)
        printf("wrote %s/%s\n", folder, f->name);
    printf("\nTry:\n  ");
    if (line->n_args > 1)
        printf("cd %s && ", folder);
    printf("dragoman serve\n");
    return DGM_CLI_OK;
}
