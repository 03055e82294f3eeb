/*
 * config_int.h - between the files of the config: the document that was read, and the table.
 */
#pragma once

#include "config.h"

/* ---- a document, and where its values were (config_yaml.c) --------------------------------------------- */

typedef struct dgm_config_mark {
    uint32_t line, column; /* 0: not known */
    bool env;              /* a ${NAME} was replaced in it: the text may be of any type */
    bool plain;            /* and it was without quotes */
    bool broken;           /* it could not be replaced, which was reported: it is null */
} dgm_config_mark;

typedef struct dgm_config_doc {
    dgm_str file;     /* or the option it came from */
    dgm_str folder;   /* relative paths count from here; empty: where the program runs */
    yyjson_val *root; /* NULL: nothing could be read */
    dgm_config_mark
        *marks; /* yyjson keeps a document's keys and values in one row, in the order of the
                             * text: the mark of v is marks[v - root]. NULL: none */
    size_t n_marks;
    dgm_strs
        secret_env; /* variables that were used in tokens, or in a top-level x-... for aliases */
    size_t secret_env_cap;
} dgm_config_doc;

/* Where findings go. */
typedef struct dgm_config_findings {
    dgm_arena *arena;
    dgm_config_finding *at;
    size_t n, cap, n_errors;
} dgm_config_findings;

typedef struct dgm_config_said {
    const dgm_config_doc *doc; /* NULL: it is not set */
    size_t line, column;
    const dgm_at *at;
    bool is_warning;
} dgm_config_said;

void dgm_config_find(dgm_config_findings *f, dgm_config_said where, dgm_str todo, const char *what,
                     ...) DGM_PRINTF(4, 5);

/* The i-th element of a list, which may be written as an object; NULL: no such element. */
yyjson_val *dgm_config_item(yyjson_val *list, size_t i);

/* Where v of this document is. */
dgm_config_said dgm_config_said_by(const dgm_config_doc *doc, const yyjson_val *v,
                                   const dgm_at *at);
const dgm_config_mark *dgm_config_mark_of(const dgm_config_doc *doc, const yyjson_val *v);

/* Reads text as YAML or JSON. env NULL: ${NAME} is not replaced. */
void dgm_config_doc_read(dgm_config_doc *doc, dgm_arena *a, dgm_str text, bool is_json,
                         const char *(*env)(const char *name), dgm_config_findings *f);

/* The name of v's type for a person: "text", "a number", ... */
const char *dgm_config_type(const yyjson_val *v);

/* Is it what a JSON number looks like? */
bool dgm_config_is_number(dgm_str s);

/* ---- the table (config_table.c) -------------------------------------------------------------------------- */

typedef enum dgm_config_kind {
    DGM_CONFIG_SWITCH, /* bool */
    DGM_CONFIG_INT,    /* int64_t: min..max */
    DGM_CONFIG_TEXT,   /* dgm_str */
    DGM_CONFIG_TEXTS,  /* dgm_strs */
    DGM_CONFIG_NAME,   /* an enum: index into values */
    DGM_CONFIG_NAMES,  /* unsigned: bits by index; at least one */
    DGM_CONFIG_OBJECT, /* its rows' offsets count in the same struct */
    DGM_CONFIG_LIST,   /* struct { T *at; size_t n; } */
    DGM_CONFIG_SHAPED, /* const dgm_json *: an object that is checked by `of`, kept as JSON */
    DGM_CONFIG_JSON,   /* const dgm_json *: an object of somebody else's */
    DGM_CONFIG_ARRAY   /* const dgm_json *: an array of somebody else's */
} dgm_config_kind;

/* What a text has to look like. */
typedef struct dgm_config_format {
    const char *
        pattern; /* for the schema, a regular expression that POSIX and ECMA both read; may be NULL */
    const char *want; /* "an address like 127.0.0.1:8484, ..." */
    bool (*is)(dgm_str s);
    /* A short form that has one obvious meaning, written out; absent: it is not one. May be NULL. */
    dgm_str (*write_out)(dgm_arena *a, dgm_str s);
    /* The exact value to write instead of one that is refused; absent: unknown. May be NULL. */
    dgm_str (*suggest)(dgm_arena *a, dgm_str s);
    bool is_path;  /* counts from the file's folder */
    bool is_store; /* likewise, behind sqlite: */
} dgm_config_format;

enum {
    DGM_CONFIG_REQUIRED = 1,
    DGM_CONFIG_LIVE = 2,   /* a reload takes it over */
    DGM_CONFIG_SECRET = 4, /* printed as "***" */
    DGM_CONFIG_NUMBER = 8, /* a number is taken for its text: 1.0 */
    DGM_CONFIG_COMPAT = 16 /* few people need it: docs list it among the compatibility switches */
};

typedef struct dgm_config_shape dgm_config_shape;

typedef struct dgm_config_row {
    const char *name;
    dgm_config_kind kind;
    unsigned offset;
    const char *def;           /* JSON; NULL: none */
    const char *const *values; /* NAME, NAMES: ends with NULL */
    int64_t min, max;          /* INT; LIST, TEXTS: the fewest and the most */
    const dgm_config_shape *of;
    const dgm_config_format *format;
    unsigned flags;
    const char *about;                          /* `code` in backticks */
    const char *unknown_value, *allowed_values; /* the words of its error; NULL: the usual ones */
    /* OBJECT: a value that is not an object is this member of it. LIST: an object is the list of its values, and their
     * keys are this member. NULL: neither. */
    const char *lead;
} dgm_config_row;

struct dgm_config_shape {
    const char *title; /* for docs */
    const char *about;
    const dgm_config_row *rows; /* ends with a row of zeros */
    size_t size;                /* of an element, when it is a list's */
    /* An element begins as this leaves it; NULL: as its defaults say. */
    void (*prepare)(const dgm_config *c, void *element);
};

extern const dgm_config_shape dgm_config_root;
/* `history` of an agent, which may also be in its settings; offsets count in dgm_config_manner. */
extern const dgm_config_row *const dgm_config_history_row;

typedef struct dgm_config_profile_row {
    const char *name;
    const char *about;
    const char *json;
} dgm_config_profile_row;
extern const dgm_config_profile_row dgm_config_profiles[]; /* ends with a row of zeros */
const dgm_config_profile_row *dgm_config_profile_find(dgm_str name);

/* Names no tenant may have: they are paths. NULL after the last. */
extern const char *const dgm_config_reserved_tenants[];
bool dgm_config_is_reserved_tenant(dgm_str name);
bool dgm_config_store_has_secret(dgm_str store);

/* ---- reading by the table (config_read.c) ------------------------------------------------------------------ */

/* Fills c from the layers, first to last. */
void dgm_config_read_layers(dgm_config *c, dgm_config_doc *const *layers, size_t n,
                            dgm_config_findings *f);
/* Reads one value of this document by a row, whose offset counts in `base`. false: it is wrong, which was reported. */
bool dgm_config_read_value(dgm_config *c, const dgm_config_doc *doc, const dgm_config_row *row,
                           yyjson_val *v, void *base, const dgm_at *at, dgm_config_findings *f);

/* The nearest of these names to a typed one; NULL: none is near. */
const char *dgm_config_nearest(dgm_str typed, const char *(*name)(const void *names, size_t i),
                               const void *names);

/* ---- the default database (config_store.c) ------------------------------------------------------------------ */

/* folder: of the file. ret_is_state: its folder may have to be created. */
dgm_str dgm_config_default_store(dgm_arena *a, const dgm_config_source *s, dgm_str folder,
                                 bool *ret_is_state);

/* ---- settings of agent types (config_settings.c) ----------------------------------------------------------- */

/* Reports every mistake in an agent's settings; true: no mistakes. written: the agent in this document. */
bool dgm_config_check_settings(const dgm_config_agent *a, const dgm_config_doc *doc,
                               yyjson_val *written, const dgm_at *at, dgm_config_findings *f);
/* The settings as JSON, values of environment variables as "***": they may be keys. Writes
 * nothing without settings. */
void dgm_config_put_settings(dgm_buf *b, const dgm_config_agent *a);
/* A property of the JSON Schema. */
void dgm_config_put_property(dgm_buf *b, const dgm_config_row *row);
/* For the JSON Schema: `$defs` of the types' settings, and the rules of an agent that refer to them. Both
 * start with a comma. */
void dgm_config_put_settings_defs(dgm_buf *b);
void dgm_config_put_settings_rules(dgm_buf *b);
/* The table of a type's settings for docs/agents.md; false: it has none. */
bool dgm_config_put_settings_docs(dgm_buf *b, dgm_str type);

/* ---- writing by the table (config_write.c) ----------------------------------------------------------------- */

/* One setting of a struct as JSON. */
void dgm_config_put_value(dgm_buf *b, const dgm_config_row *row, const void *base, bool secrets);

/* JSON with two spaces per level; lists of scalars on one line. */
void dgm_config_put_pretty(dgm_buf *b, yyjson_val *v, size_t level);
