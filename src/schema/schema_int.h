/*
 * schema/schema_int.h - the compiled form of a schema, and one check of a value.
 *
 * Every subschema is a node with a list of rules. A rule holds one keyword, or keywords that depend on each other
 * (properties, patternProperties and additionalProperties). Everything is in the schema's arena and constant once it is compiled.
 */
#pragma once

#include "base/map.h"
#include "schema/schema.h"

static inline yyjson_val *
dgm_schema_plain(const yyjson_val *v) /* yyjson's readers do not say const */
{
    return (yyjson_val *)(uintptr_t)v;
}

/* ---- numbers: exact decimals ------------------------------------------------------------------ */

/* digits x 10^exponent. There are no zeros at either end of the digits; zero has none. The digits are those of the text, with a
 * point behind `point` of them. */
typedef struct dgm_schema_number {
    const char *digits;
    size_t n, point;
    int64_t exponent;
    bool is_negative;
} dgm_schema_number;

dgm_schema_number dgm_schema_number_read(dgm_str text); /* of a JSON number */
int dgm_schema_number_compare(const dgm_schema_number *a, const dgm_schema_number *b);
static inline bool dgm_schema_number_is_integer(const dgm_schema_number *a)
{
    return a->exponent >= 0;
}
/* by is above 0. */
bool dgm_schema_number_is_multiple(const dgm_schema_number *a, const dgm_schema_number *by);
/* About how many steps dgm_schema_number_is_multiple() takes. */
size_t dgm_schema_number_multiple_cost(const dgm_schema_number *a, const dgm_schema_number *by);
uint64_t dgm_schema_number_hash(const dgm_schema_number *a, uint64_t seed);
/* UINT64_MAX if it does not fit. a is an integer and not negative. */
uint64_t dgm_schema_number_count(const dgm_schema_number *a);

/* ---- URIs -------------------------------------------------------------------------------------- */

/* ref resolved against base (RFC 3986, section 5.2), without its fragment. Both may be relative or empty. */
dgm_str dgm_schema_uri_resolve(dgm_arena *a, dgm_str base, dgm_str ref);
/* The part behind `#`, with its percent codes decoded; absent without `#`. */
dgm_str dgm_schema_uri_fragment(dgm_arena *a, dgm_str ref);

/* ---- nodes and rules --------------------------------------------------------------------------- */

typedef struct dgm_schema_node dgm_schema_node;
typedef struct dgm_schema_rule dgm_schema_rule;
typedef struct dgm_schema_run dgm_schema_run;
typedef struct dgm_schema_visit dgm_schema_visit;
typedef struct dgm_schema_pattern dgm_schema_pattern;
typedef struct dgm_schema_build dgm_schema_build;

typedef struct dgm_schema_anchor {
    dgm_str name;
    const dgm_schema_node *node;
} dgm_schema_anchor;

/* A subschema with an $id, or the root. */
typedef struct dgm_schema_resource {
    dgm_str uri;
    const yyjson_val *root;
    dgm_schema_anchor *dynamic; /* its $dynamicAnchors */
    size_t n_dynamic;
} dgm_schema_resource;

typedef struct dgm_schema_keyword {
    const char *names[4]; /* the rule exists if the subschema has one of them */
    unsigned types;       /* of values that it applies to; 0: all */
    bool is_last;         /* reads what the other rules of the node have evaluated */
    dgm_code (*compile)(dgm_schema_build *b, const dgm_schema_node *node, dgm_schema_rule *rule,
                        dgm_err *err);
    bool (*check)(dgm_schema_run *run, const dgm_schema_rule *rule, const dgm_schema_visit *visit);
} dgm_schema_keyword;

extern const dgm_schema_keyword dgm_schema_keywords[]; /* in the order of checking */
extern const size_t dgm_schema_n_keywords;

struct dgm_schema_rule {
    const dgm_schema_keyword *keyword;
    const yyjson_val *value; /* of the first of its names that the subschema has */
    dgm_schema_number number;
    uint64_t min, max;
    unsigned types;
    const dgm_schema_node *node, *then, *otherwise;
    const dgm_schema_node **nodes; /* of a list, or by name */
    size_t n_nodes;
    dgm_str *names; /* one per node */
    dgm_map by_name;
    dgm_schema_pattern **patterns;
    const dgm_schema_node **pattern_nodes;
    size_t n_patterns;
    const yyjson_val **lists; /* one per name: the members that this one needs */
    dgm_str anchor;           /* of a $dynamicRef to a $dynamicAnchor */
};

struct dgm_schema_node {
    const yyjson_val *value;
    const dgm_at *at;
    const dgm_schema_resource *resource;
    dgm_schema_rule *rules;
    size_t n_rules;
    bool is_old;          /* of a draft before 2020-12 */
    bool has_unevaluated; /* a rule needs to know which members or items were evaluated */
};

/* ---- patterns ---------------------------------------------------------------------------------- */

/* ECMA-262 syntax, by PCRE2. The pattern is freed with the arena. */
dgm_code dgm_schema_pattern_compile(dgm_arena *a, dgm_str text, const dgm_at *at,
                                    dgm_schema_pattern **ret_pattern, dgm_err *err);
bool dgm_schema_pattern_matches(dgm_schema_run *run, const dgm_schema_pattern *p, dgm_str text);

/* ---- one check --------------------------------------------------------------------------------- */

/* Which members of an object, or items of an array, were evaluated. */
typedef struct dgm_schema_seen {
    uint64_t *bits;
    size_t n;
} dgm_schema_seen;

/* The resources that the check has entered, the innermost first. */
typedef struct dgm_schema_scope {
    const struct dgm_schema_scope *up;
    const dgm_schema_resource *resource;
} dgm_schema_scope;

struct dgm_schema_run {
    dgm_arena *arena; /* for this check only */
    uint64_t steps;   /* that are left */
    size_t depth;
    dgm_code stop; /* not DGM_OK: the check cannot be completed, and err says why */
    dgm_err *err;
    dgm_err *mistakes; /* NULL: only whether the value is valid */
    size_t n_mistakes, max_mistakes;
    void *match; /* of PCRE2, once a pattern was used */
    void *match_context;
};

struct dgm_schema_visit {
    const dgm_schema_node *node;
    const yyjson_val *value;
    const dgm_at *at;
    const dgm_schema_scope *scope;
    dgm_schema_seen *seen; /* NULL: not needed */
};

bool dgm_schema_visit_node(dgm_schema_run *run, const dgm_schema_node *node, const yyjson_val *v,
                           const dgm_at *at, const dgm_schema_scope *scope, dgm_schema_seen *seen);
/* The same for another value at the same position of the schema; not for the value of the visit itself. */
static inline bool dgm_schema_visit_child(dgm_schema_run *run, const dgm_schema_node *node,
                                          const dgm_schema_visit *visit, const yyjson_val *v,
                                          const dgm_at *at)
{
    return dgm_schema_visit_node(run, node, v, at, visit->scope, NULL);
}

/* false: no steps are left; run->stop is set. */
bool dgm_schema_spend(dgm_schema_run *run, uint64_t steps);
/* Both return false, so that `return` reads well. */
bool dgm_schema_mistake(dgm_schema_run *run, const dgm_at *at, const char *fmt, ...)
    DGM_PRINTF(3, 4) __attribute__((cold));
bool dgm_schema_stop(dgm_schema_run *run, const dgm_at *at, const char *fmt, ...) DGM_PRINTF(3, 4)
    __attribute__((cold));
/* Is another mistake of the same rule of use? */
static inline bool dgm_schema_wants_more(const dgm_schema_run *run)
{
    return !run->stop && run->mistakes && run->n_mistakes < run->max_mistakes;
}

dgm_schema_seen *dgm_schema_seen_new(dgm_schema_run *run, const yyjson_val *v);
static inline void dgm_schema_seen_add(dgm_schema_seen *seen, size_t i)
{
    if (seen && i / 64 < seen->n)
        seen->bits[i / 64] |= (uint64_t)1 << i % 64;
}
static inline bool dgm_schema_seen_has(const dgm_schema_seen *seen, size_t i)
{
    return i / 64 < seen->n && seen->bits[i / 64] >> i % 64 & 1;
}
void dgm_schema_seen_merge(dgm_schema_seen *into, const dgm_schema_seen *from);

/* A value as it is quoted in a mistake: JSON text, cut at DGM_MAX_QUOTED_BYTES. */
dgm_str dgm_schema_quote(dgm_schema_run *run, const yyjson_val *v);
/* "a, b or c" with at most `most` entries. */
dgm_str dgm_schema_join(dgm_schema_run *run, const dgm_str *texts, size_t n, size_t most);

/* Equal as JSON Schema defines it: 1 and 1.0 are equal, and members have no order. */
bool dgm_schema_equal(dgm_schema_run *run, const yyjson_val *a, const yyjson_val *b);
/* Finds two equal items. */
bool dgm_schema_duplicate(dgm_schema_run *run, const yyjson_val *array, size_t *ret_first,
                          size_t *ret_second);

enum { /* types of values; an integer is a number, too */
       DGM_SCHEMA_NULL = 1,
       DGM_SCHEMA_BOOLEAN = 2,
       DGM_SCHEMA_INTEGER = 4,
       DGM_SCHEMA_NUMBER = 8,
       DGM_SCHEMA_STRING = 16,
       DGM_SCHEMA_ARRAY = 32,
       DGM_SCHEMA_OBJECT = 64
};
unsigned dgm_schema_type_of(const yyjson_val *v);

/* ---- compiling --------------------------------------------------------------------------------- */

struct dgm_schema {
    dgm_arena *arena;
    const dgm_schema_node *root;
};

dgm_arena *dgm_schema_build_arena(dgm_schema_build *b);
/* The node of a subschema that the walk has found. NULL: the value is not a subschema. */
const dgm_schema_node *dgm_schema_build_node(dgm_schema_build *b, const yyjson_val *value);
dgm_code dgm_schema_build_reference(dgm_schema_build *b, const dgm_schema_node *from,
                                    const yyjson_val *ref, const char *keyword,
                                    const dgm_schema_node **ret_node, dgm_str *ret_anchor,
                                    dgm_err *err);
static inline const yyjson_val *dgm_schema_node_get(const dgm_schema_node *node, const char *name)
{
    return yyjson_obj_get((yyjson_val *)(uintptr_t)node->value, name);
}

/* Our own statement of the rules for schemas, under the URI of the draft's meta-schema. */
extern const char dgm_schema_meta_uri[];
extern const char dgm_schema_meta_text[];

/* Compile and check functions of the table in schema_keywords.c. */
#define DGM_SCHEMA_COMPILE(name)                                                                   \
    dgm_code dgm_schema_compile_##name(dgm_schema_build *b, const dgm_schema_node *node,           \
                                       dgm_schema_rule *rule, dgm_err *err)
#define DGM_SCHEMA_CHECK(name)                                                                     \
    bool dgm_schema_check_##name(dgm_schema_run *run, const dgm_schema_rule *rule,                 \
                                 const dgm_schema_visit *visit)
DGM_SCHEMA_COMPILE(type);
DGM_SCHEMA_COMPILE(any);
DGM_SCHEMA_COMPILE(enum);
DGM_SCHEMA_COMPILE(number);
DGM_SCHEMA_COMPILE(divisor);
DGM_SCHEMA_COMPILE(count);
DGM_SCHEMA_COMPILE(bool);
DGM_SCHEMA_COMPILE(pattern);
DGM_SCHEMA_COMPILE(names);
DGM_SCHEMA_COMPILE(dependent);
DGM_SCHEMA_COMPILE(schema);
DGM_SCHEMA_COMPILE(schemas);
DGM_SCHEMA_COMPILE(members);
DGM_SCHEMA_COMPILE(items);
DGM_SCHEMA_COMPILE(contains);
DGM_SCHEMA_COMPILE(condition);
DGM_SCHEMA_COMPILE(reference);
DGM_SCHEMA_COMPILE(dynamic_reference);
DGM_SCHEMA_CHECK(type);
DGM_SCHEMA_CHECK(enum);
DGM_SCHEMA_CHECK(const);
DGM_SCHEMA_CHECK(multiple_of);
DGM_SCHEMA_CHECK(maximum);
DGM_SCHEMA_CHECK(exclusive_maximum);
DGM_SCHEMA_CHECK(minimum);
DGM_SCHEMA_CHECK(exclusive_minimum);
DGM_SCHEMA_CHECK(max_length);
DGM_SCHEMA_CHECK(min_length);
DGM_SCHEMA_CHECK(pattern);
DGM_SCHEMA_CHECK(max_items);
DGM_SCHEMA_CHECK(min_items);
DGM_SCHEMA_CHECK(unique_items);
DGM_SCHEMA_CHECK(max_members);
DGM_SCHEMA_CHECK(min_members);
DGM_SCHEMA_CHECK(required);
DGM_SCHEMA_CHECK(dependent);
DGM_SCHEMA_CHECK(reference);
DGM_SCHEMA_CHECK(dynamic_reference);
DGM_SCHEMA_CHECK(items);
DGM_SCHEMA_CHECK(contains);
DGM_SCHEMA_CHECK(members);
DGM_SCHEMA_CHECK(member_names);
DGM_SCHEMA_CHECK(all_of);
DGM_SCHEMA_CHECK(any_of);
DGM_SCHEMA_CHECK(one_of);
DGM_SCHEMA_CHECK(negation);
DGM_SCHEMA_CHECK(condition);
DGM_SCHEMA_CHECK(unevaluated_items);
DGM_SCHEMA_CHECK(unevaluated_members);
