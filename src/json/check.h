/*
 * json/check.h - are the members of a JSON value of the types that a table says?
 *
 * A decoder that reads what many peers send skips what it does not use. A server reports what is wrong, also in members
 * that it does not use: a caller that sends a temperature as a string has made a mistake. A table has a row per known
 * member. Unknown members are not checked.
 */
#pragma once

#include "json/json.h"

enum dgm_json_types {
    DGM_JSON_TEXT = 1,
    DGM_JSON_INT = 2,
    DGM_JSON_NUMBER = 4, /* integers, too */
    DGM_JSON_BOOL = 8,
    DGM_JSON_OBJECT = 16,
    DGM_JSON_LIST = 32,
    DGM_JSON_ANY = 63
};

/* A member. null counts as absent, except in a list. */
typedef struct dgm_json_rule {
    dgm_str name; /* absent: the last row */
    unsigned types;
    const struct dgm_json_rule *members; /* of it; of the objects in it, if it is a list */
    unsigned of; /* the types of all members of an object, or of the entries of a list; 0: any */
    bool is_ignored; /* accepted, without effect */
    bool is_required;
    const struct dgm_json_rule *(*pick)(yyjson_val *entry); /* of lists, instead of `members` */
    size_t max;        /* entries of a list, members of an object; 0: no limit */
    const char *limit; /* the name of max in base/limits.h */
} dgm_json_rule;

/* A row; more members follow by their names. */
#define DGM_JSON_RULE(name_, types_, ...)                                                          \
    {                                                                                              \
        .name = {name_, sizeof(name_) - 1}, .types = (types_), __VA_ARGS__                         \
    }
#define DGM_JSON_RULES_END                                                                         \
    {                                                                                              \
        .name = { NULL, 0 }                                                                        \
    }
#define DGM_JSON_MAX_RULES 64 /* of a table */

/* The first fault in the order of the table: DGM_BAD_PARAMS; DGM_TOO_LARGE for too many entries. */
dgm_code dgm_json_check(yyjson_val *v, const dgm_json_rule *rules, const dgm_at *at, dgm_err *err);

/* The members of v that have no effect, unknown ones too, for a response header: "seed, stop". Empty if all have an effect. */
dgm_str dgm_json_ignored(dgm_arena *a, yyjson_val *v, const dgm_json_rule *rules);
