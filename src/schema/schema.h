/*
 * schema/schema.h - checks JSON values against a JSON Schema, draft 2020-12.
 *
 * A schema is compiled once and then checks any number of values, on any number of threads at the same time. All keywords are
 * supported; `format` and the keywords for content are annotations, which are not checked. References stay within the
 * schema (and the draft's own meta-schema): nothing is loaded. Schemas that name an older draft in `$schema` are accepted,
 * too: their `items` lists, `additionalItems`, `dependencies` and `definitions` have their old meaning.
 *
 * Schemas and values may come from a peer. Each schema has limits (base/limits.h: schema_*), and each check has a number of
 * steps, patterns included. A check that would need more fails with DGM_TOO_LARGE.
 */
#pragma once

#include "json/json.h"

typedef struct dgm_schema dgm_schema;

/* The schema is copied. DGM_BAD_PARAMS: err->at points into the schema. */
dgm_code dgm_schema_compile(const dgm_json *schema, dgm_schema **ret_schema, dgm_err *err);
void dgm_schema_free(dgm_schema *s); /* NULL is allowed */
DGM_DEFINE_AUTO(dgm_schema, dgm_schema_free)

/* Mistakes that one check reports: a model corrects them together. */
#define DGM_SCHEMA_MISTAKES 8

typedef struct dgm_schema_mistakes {
    size_t n;
    dgm_err
        items[DGM_SCHEMA_MISTAKES]; /* at: a pointer into the value; msg: `missing member "city"` */
} dgm_schema_mistakes;

/*
 * DGM_OK: the value is valid. DGM_BAD_PARAMS: it is not; err is the first mistake. DGM_TOO_LARGE: unknown, since a limit was
 * reached. ret_mistakes may be NULL; the check then ends at the first mistake.
 */
dgm_code dgm_schema_check(const dgm_schema *s, const dgm_json *value,
                          dgm_schema_mistakes *ret_mistakes, dgm_err *err);

/* The mistakes as lines of text for a person or a language model: `/unit: expected "C" or "F", got "K"`. */
void dgm_schema_explain(const dgm_schema_mistakes *mistakes, dgm_buf *out);
