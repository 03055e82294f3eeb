/* store/store_copy.c - all rows of one database into another: table after table, row by row. */
#include "store/store_copy.h"

#include "base/str.h"

static const dgm_copy_driver *const copy_drivers[] = {&dgm_copy_sqlite, &dgm_copy_postgres};

const char *const dgm_copy_columns[DGM_N_COPY] = {
    [DGM_COPY_TASKS] = "sssssiiiiin",   [DGM_COPY_LOG] = "sssiis",
    [DGM_COPY_TURNS] = "sssiiiissss",   [DGM_COPY_MESSAGES] = "sssisisiss",
    [DGM_COPY_CALLS] = "sssss",         [DGM_COPY_NOTES] = "ssssis",
    [DGM_COPY_THREADS] = "ssi",         [DGM_COPY_CHECKPOINTS] = "ssssiiisssiissiis",
    [DGM_COPY_WRITES] = "sssssisssiis", [DGM_COPY_VALUES] = "ssiis",
};

const char *dgm_copy_table_name(dgm_copy_table t)
{
    static const char *const names[] = {
#define X(name, text) text,
        DGM_COPY_TABLES(X)
#undef X
    };
    return names[t];
}

struct copying {
    const dgm_copy_driver *driver;
    dgm_copy_end *to;
    dgm_copy_table table;
    uint64_t n;
};

static dgm_code copy_row(const dgm_copy_value *row, void *arg, dgm_err *err)
{
    struct copying *c = arg;
    c->n++;
    return c->driver->write(c->to, c->table, row, err);
}

static dgm_code open_end(const char *url, bool as_target, const dgm_copy_driver **ret_driver,
                         dgm_copy_end **ret_end, dgm_err *err)
{
    for (size_t i = 0; i < sizeof copy_drivers / sizeof *copy_drivers; i++) {
        size_t n = strlen(copy_drivers[i]->scheme);
        if (strncmp(url, copy_drivers[i]->scheme, n) != 0 || url[n] != ':')
            continue;
        *ret_driver = copy_drivers[i];
        return (*ret_driver)->open(url + n + 1, as_target, ret_end, err);
    }
    return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                    "invalid database for a copy: write sqlite:PATH or postgres:CONNINFO");
}

dgm_code dgm_db_copy(const char *from_url, const char *to_url, dgm_copy_counts *ret_counts,
                     dgm_err *err)
{
    const dgm_copy_driver *source = NULL, *target = NULL;
    dgm_copy_end *from = NULL, *to = NULL;
    dgm_code code = open_end(from_url, false, &source, &from, err);
    if (!code)
        code = open_end(to_url, true, &target, &to, err);
    for (dgm_copy_table t = 0; t < DGM_N_COPY && !code; t++) {
        struct copying c = {.driver = target, .to = to, .table = t};
        code = source->read(from, t, copy_row, &c, err);
        if (!code)
            code = target->end_table(to, t, err);
        ret_counts->rows[t] = c.n;
    }
    if (!code)
        code = target->commit(to, err);
    if (source)
        source->close(from);
    if (target)
        target->close(to);
    return code;
}
