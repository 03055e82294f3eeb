/* app/admin/admin.c - `dragoman db ACTION [FILE]` (store/sqlite/admin.h) and `dragoman init KIND [FOLDER]`. */
#include "app/admin/admin.h"
#include "app/serve/init.h"
#include "config/config.h"
#include "store/sqlite/admin.h"
#include "store/store_copy.h"

#include <inttypes.h>
#include <string.h>

static int admin_fail(const dgm_err *err)
{
    dgm_cli_complain("%s", err->msg);
    return DGM_CLI_FAILED;
}

static void say_fault(const char *fault, void *path)
{
    dgm_cli_complain("%s: %s", (const char *)path, fault);
}

static int check(const char *path)
{
    dgm_db_counts n = {0};
    dgm_err err = {0};
    if (dgm_db_check(path, say_fault, (void *)(uintptr_t)path, &n, &err))
        return admin_fail(&err);
    printf("%" PRIu64 " tasks, %" PRIu64 " turns, %" PRIu64 " records, ", n.tasks, n.turns,
           n.records);
    if (n.checkpoints)
        printf("%" PRIu64 " checkpoints of graphs (%" PRIu64 " bytes), ", n.checkpoints,
               n.checkpoint_bytes);
    printf("%" PRIu64 " faults\n", n.faults);
    if (n.faults)
        dgm_cli_hint("stop the server and put a backup in place: dragoman db restore FILE");
    return n.faults ? DGM_CLI_FAILED : DGM_CLI_OK;
}

static int vacuum(const char *path)
{
    int64_t before, after;
    dgm_err err = {0};
    if (dgm_db_vacuum(path, &before, &after, &err))
        return admin_fail(&err);
    printf("%" PRId64 " bytes before, %" PRId64 " after\n", before, after);
    return DGM_CLI_OK;
}

static dgm_code write_line(dgm_str line, void *arg, dgm_err *err)
{
    dgm_cli_output *out = arg;
    if (dgm_cli_output_write(out, line.p, line.n) && dgm_cli_output_write(out, "\n", 1))
        return DGM_OK;
    return dgm_fail(err, DGM_UNAVAILABLE, NULL, "standard output was closed");
}

static int export(const char *path)
{
    dgm_cli_output out;
    dgm_err err = {0};
    if (!dgm_cli_output_open(&out, NULL))
        return DGM_CLI_FAILED;
    return dgm_db_export(path, write_line, &out, &err) ? admin_fail(&err) : DGM_CLI_OK;
}

static int copy(const char *from, const char *to)
{
    dgm_copy_counts n = {0};
    dgm_err err = {0};
    if (dgm_db_copy(from, to, &n, &err))
        return admin_fail(&err);
    for (dgm_copy_table t = 0; t < DGM_N_COPY; t++)
        printf("%" PRIu64 " %s\n", n.rows[t], dgm_copy_table_name(t));
    return DGM_CLI_OK;
}

/* The database that `dragoman serve` would use here. NULL: no database; the reason was reported. */
static const char *database_of_server(const dgm_cli_line *line, dgm_config **ret_config)
{
    const char *file = dgm_cli_get(line, "config");
    dgm_config *c = dgm_config_load(
        &(dgm_config_source){.file = file ? file : dgm_config_default_file(), .no_files = true});
    dgm_buf b;
    *ret_config = c;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < c->n_findings; i++) {
        if (c->findings[i].is_warning)
            continue;
        dgm_buf_clear(&b);
        dgm_config_finding_put(&b, &c->findings[i]);
        dgm_cli_complain("%.*s", DGM_P(dgm_buf_str(&b)));
    }
    dgm_buf_done(&b);
    if (!c->n_errors && dgm_str_starts(c->store, DGM_STR("sqlite:")))
        return c->store.p;
    if (!c->n_errors && dgm_str_starts(c->store, DGM_STR("postgres:")))
        dgm_cli_complain("the store is PostgreSQL: use its own tools, pg_dump and psql");
    else if (!c->n_errors)
        dgm_cli_complain("%s: store is %s, which is not a database file", c->file.p, c->store.p);
    dgm_cli_hint("--database PATH names the database");
    return NULL;
}

int dgm_admin_db(const dgm_cli_line *line)
{
    const char *action = line->args[0], *file = line->n_args > 1 ? line->args[1] : NULL;
    const char *path = dgm_cli_get(line, "database");
    bool copies = strcmp(action, "backup") == 0 || strcmp(action, "restore") == 0;
    dgm_err err = {0};
    dgm_auto(dgm_config_free) dgm_config *c = NULL;
    if (strcmp(action, "copy") == 0) {
        if (line->n_args != 3 || path)
            return dgm_cli_refuse(line, "copy needs two databases: FROM and TO");
        return copy(line->args[1], line->args[2]);
    }
    if (line->n_args > 2)
        return dgm_cli_refuse(line, "%s accepts only one file", action);
    if (path && strncmp(path, "postgres:", 9) == 0) {
        dgm_cli_complain("the store is PostgreSQL: use its own tools, pg_dump and psql");
        return DGM_CLI_FAILED;
    }
    if (!path && !(path = database_of_server(line, &c)))
        return DGM_CLI_FAILED;
    if (strncmp(path, "sqlite:", 7) == 0)
        path += 7;
    if (copies && !file)
        return dgm_cli_refuse(line, "%s needs FILE", action);
    if (!copies && file)
        return dgm_cli_refuse(line, "%s needs no FILE; --database names the database", action);
    switch (action[0]) { /* one of the table's words: the parser saw to it */
    case 'c': return check(path);
    case 'v': return vacuum(path);
    case 'e': return export(path);
    case 'b': return dgm_db_backup(path, file, &err) ? admin_fail(&err) : DGM_CLI_OK;
    default: return dgm_db_restore(path, file, &err) ? admin_fail(&err) : DGM_CLI_OK;
    }
}

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
    if (kind->todo)
        printf("\n%s\n", kind->todo);
    printf("\nTry:\n  ");
    if (line->n_args > 1)
        printf("cd %s && ", folder);
    printf("dragoman serve\n");
    return DGM_CLI_OK;
}
