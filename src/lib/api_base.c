/* lib/api_base.c - implements dragoman/base.h: errors as opaque objects, memory, the version. */
#include "base/arena.h"
#include "base/err.h"

#include <stdlib.h>

dgm_err *dgm_err_new(void)
{
    return dgm_xcalloc(1, sizeof(dgm_err));
}

void dgm_err_free(dgm_err *err)
{
    free(err);
}

dgm_code dgm_err_code(const dgm_err *err)
{
    return err ? err->code : DGM_OK;
}

const char *dgm_err_message(const dgm_err *err)
{
    return err ? err->msg : "";
}

const char *dgm_err_pointer(const dgm_err *err)
{
    return err ? err->at : "";
}

size_t dgm_err_line(const dgm_err *err)
{
    return err ? err->line : 0;
}

size_t dgm_err_column(const dgm_err *err)
{
    return err ? err->column : 0;
}

void dgm_free(void *p)
{
    free(p);
}

const char *dgm_version(void)
{
    return DGM_VERSION;
}
