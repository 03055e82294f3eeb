/*
 * app/serve/init.h - a first server to look at and to change: `dragoman init KIND [FOLDER]`.
 */
#pragma once

#include "base/err.h"

typedef struct dgm_init_file {
    const char *name;
    const char *text; /* NULL: the JSON Schema of the configuration */
    bool is_program;
} dgm_init_file;

/* What can be asked for. */
typedef struct dgm_init_kind {
    const char *name;           /* "exec" */
    const char *about;          /* a phrase */
    const dgm_init_file *files; /* ends with a row of zeros; the first is the configuration */
    const char *type; /* of its agent; NULL: the name */
    const char *todo; /* a sentence: what must be changed before it works; NULL: nothing */
} dgm_init_kind;

extern const dgm_init_kind dgm_init_kinds[]; /* ends with a row of zeros */
const dgm_init_kind *dgm_init_kind_find(dgm_str name);

/* Writes the files into the folder, which is created if it is missing. All or none: if a file exists, it is not
 * changed, and err names it. */
dgm_code dgm_init_write(const dgm_init_kind *kind, const char *folder, dgm_err *err);
