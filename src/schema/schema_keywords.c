/* schema/schema_keywords.c - the table of rules, and how the rules with subschemas are compiled. */
#include "schema/schema_int.h"

static const dgm_schema_node *node_of(dgm_schema_build *b, const dgm_schema_node *node,
                                      const char *name)
{
    const yyjson_val *v = dgm_schema_node_get(node, name);
    return v ? dgm_schema_build_node(b, v) : NULL;
}

/* ---- lists of names ---------------------------------------------------------------------------- */

static dgm_code expect_names(const yyjson_val *list, const dgm_at *at, dgm_err *err)
{
    yyjson_val *item;
    size_t i, n;
    if (!yyjson_is_arr(dgm_schema_plain(list)))
        return dgm_fail(err, DGM_BAD_PARAMS, at, "expected an array of names, got %s",
                        dgm_json_type(list));
    yyjson_arr_foreach (dgm_schema_plain(list), i, n, item) {
        if (!yyjson_is_str(item))
            return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_I(at, i),
                            "expected the name of a member, got %s", dgm_json_type(item));
    }
    return DGM_OK;
}

DGM_SCHEMA_COMPILE(names)
{
    (void)b;
    return expect_names(rule->value, DGM_AT_LIT(node->at, "required"), err);
}

static dgm_code expect_object(const yyjson_val *v, const dgm_at *at, dgm_err *err)
{
    return yyjson_is_obj(dgm_schema_plain(v))
               ? DGM_OK
               : dgm_fail(err, DGM_BAD_PARAMS, at, "expected an object, got %s", dgm_json_type(v));
}

/* dependentRequired, dependentSchemas, and `dependencies` of older drafts, which has both. */
DGM_SCHEMA_COMPILE(dependent)
{
    const dgm_at *at = DGM_AT(node->at, dgm_str_from(rule->keyword->names[0]));
    dgm_arena *a = dgm_schema_build_arena(b);
    yyjson_val *key, *value;
    size_t i, n = yyjson_obj_size(dgm_schema_plain(rule->value));
    dgm_code rc = expect_object(rule->value, at, err);
    if (rc)
        return rc;
    rule->names = dgm_new_n(a, dgm_str, n);
    rule->nodes = dgm_new_n(a, const dgm_schema_node *, n);
    rule->lists = dgm_new_n(a, const yyjson_val *, n);
    yyjson_obj_foreach (dgm_schema_plain(rule->value), i, n, key, value) {
        rule->names[i] = dgm_json_str(key);
        rule->lists[i] = value;
        rule->nodes[i] = dgm_schema_build_node(b, value);
        if (!rule->nodes[i] && (rc = expect_names(value, DGM_AT(at, rule->names[i]), err)))
            return rc;
    }
    rule->n_nodes = n;
    return DGM_OK;
}

/* ---- subschemas -------------------------------------------------------------------------------- */

DGM_SCHEMA_COMPILE(schema)
{
    (void)node;
    (void)err;
    rule->node = dgm_schema_build_node(b, rule->value);
    return DGM_OK;
}

DGM_SCHEMA_COMPILE(schemas)
{
    yyjson_val *item;
    size_t i, n = yyjson_arr_size(dgm_schema_plain(rule->value));
    (void)node;
    (void)err;
    rule->nodes = dgm_new_n(dgm_schema_build_arena(b), const dgm_schema_node *, n);
    yyjson_arr_foreach (dgm_schema_plain(rule->value), i, n, item)
        rule->nodes[i] = dgm_schema_build_node(b, item);
    rule->n_nodes = n;
    return DGM_OK;
}

/* Older drafts: `items` may be a list, and `additionalItems` is for the items behind it. */
DGM_SCHEMA_COMPILE(items)
{
    const yyjson_val *items = dgm_schema_node_get(node, "items");
    bool is_list = yyjson_is_arr(dgm_schema_plain(items));
    rule->value = is_list ? items : dgm_schema_node_get(node, "prefixItems");
    rule->node = node_of(b, node, is_list ? "additionalItems" : "items");
    return rule->value ? dgm_schema_compile_schemas(b, node, rule, err) : DGM_OK;
}

static dgm_code read_count(const dgm_schema_node *node, const char *name, uint64_t *ret_count,
                           dgm_err *err)
{
    static const dgm_schema_keyword min = {.names = {"minContains"}},
                                    max = {.names = {"maxContains"}};
    dgm_schema_rule rule = {.value = dgm_schema_node_get(node, name),
                            .keyword = name[1] == 'i' ? &min : &max};
    dgm_code rc = rule.value ? dgm_schema_compile_count(NULL, node, &rule, err) : DGM_OK;
    if (rule.value && !rc)
        *ret_count = rule.max;
    return rc;
}

DGM_SCHEMA_COMPILE(contains)
{
    dgm_code rc;
    rule->node = dgm_schema_build_node(b, rule->value);
    rule->min = 1;
    rule->max = UINT64_MAX;
    if ((rc = read_count(node, "minContains", &rule->min, err)))
        return rc;
    return read_count(node, "maxContains", &rule->max, err);
}

DGM_SCHEMA_COMPILE(condition)
{
    (void)err;
    rule->node = dgm_schema_build_node(b, rule->value);
    rule->then = node_of(b, node, "then");
    rule->otherwise = node_of(b, node, "else");
    return DGM_OK;
}

/* ---- members ----------------------------------------------------------------------------------- */

static void free_map(void *map)
{
    dgm_map_done(map);
}

static void compile_properties(dgm_schema_build *b, const yyjson_val *object, dgm_schema_rule *rule)
{
    dgm_arena *a = dgm_schema_build_arena(b);
    yyjson_val *key, *value;
    size_t i, n = yyjson_obj_size(dgm_schema_plain(object));
    rule->nodes = dgm_new_n(a, const dgm_schema_node *, n);
    rule->names = dgm_new_n(a, dgm_str, n);
    dgm_arena_defer(a, free_map, &rule->by_name);
    yyjson_obj_foreach (dgm_schema_plain(object), i, n, key, value) {
        rule->names[i] = dgm_json_str(key);
        rule->nodes[i] = dgm_schema_build_node(b, value);
        dgm_map_put(&rule->by_name, rule->names[i], i);
    }
    rule->n_nodes = n;
}

static dgm_code compile_patterns(dgm_schema_build *b, const yyjson_val *object, const dgm_at *at,
                                 dgm_schema_rule *rule, dgm_err *err)
{
    dgm_arena *a = dgm_schema_build_arena(b);
    yyjson_val *key, *value;
    size_t i, n = yyjson_obj_size(dgm_schema_plain(object));
    rule->pattern_nodes = dgm_new_n(a, const dgm_schema_node *, n);
    rule->patterns = dgm_new_n(a, dgm_schema_pattern *, n);
    yyjson_obj_foreach (dgm_schema_plain(object), i, n, key, value) {
        dgm_code rc = dgm_schema_pattern_compile(a, dgm_json_str(key), at, &rule->patterns[i], err);
        if (rc)
            return rc;
        rule->pattern_nodes[i] = dgm_schema_build_node(b, value);
    }
    rule->n_patterns = n;
    return DGM_OK;
}

DGM_SCHEMA_COMPILE(members)
{
    const yyjson_val *patterns = dgm_schema_node_get(node, "patternProperties");
    const dgm_at *at = DGM_AT_LIT(node->at, "patternProperties");
    compile_properties(b, dgm_schema_node_get(node, "properties"), rule);
    rule->node = node_of(b, node, "additionalProperties");
    return patterns ? compile_patterns(b, patterns, at, rule, err) : DGM_OK;
}

/* ---- references -------------------------------------------------------------------------------- */

DGM_SCHEMA_COMPILE(reference)
{
    dgm_str anchor;
    return dgm_schema_build_reference(b, node, rule->value, rule->keyword->names[0], &rule->node,
                                      &anchor, err);
}

DGM_SCHEMA_COMPILE(dynamic_reference)
{
    return dgm_schema_build_reference(b, node, rule->value, "$dynamicRef", &rule->node,
                                      &rule->anchor, err);
}

/* ---- the table --------------------------------------------------------------------------------- */

#define NUMBERS (DGM_SCHEMA_NUMBER | DGM_SCHEMA_INTEGER)
#define ROW(types_, compile_, check_, ...)                                                         \
    {                                                                                              \
        .names = {__VA_ARGS__}, .types = (types_), .compile = dgm_schema_compile_##compile_,       \
        .check = dgm_schema_check_##check_                                                         \
    }

/* clang-format off */
const dgm_schema_keyword dgm_schema_keywords[] = {
    ROW(0,                  type,              type,              "type"),
    ROW(0,                  enum,              enum,              "enum"),
    ROW(0,                  any,               const,             "const"),
    ROW(NUMBERS,            divisor,           multiple_of,       "multipleOf"),
    ROW(NUMBERS,            number,            maximum,           "maximum"),
    ROW(NUMBERS,            number,            exclusive_maximum, "exclusiveMaximum"),
    ROW(NUMBERS,            number,            minimum,           "minimum"),
    ROW(NUMBERS,            number,            exclusive_minimum, "exclusiveMinimum"),
    ROW(DGM_SCHEMA_STRING,  count,             max_length,        "maxLength"),
    ROW(DGM_SCHEMA_STRING,  count,             min_length,        "minLength"),
    ROW(DGM_SCHEMA_STRING,  pattern,           pattern,           "pattern"),
    ROW(DGM_SCHEMA_ARRAY,   count,             max_items,         "maxItems"),
    ROW(DGM_SCHEMA_ARRAY,   count,             min_items,         "minItems"),
    ROW(DGM_SCHEMA_ARRAY,   bool,              unique_items,      "uniqueItems"),
    ROW(DGM_SCHEMA_OBJECT,  count,             max_members,       "maxProperties"),
    ROW(DGM_SCHEMA_OBJECT,  count,             min_members,       "minProperties"),
    ROW(DGM_SCHEMA_OBJECT,  names,             required,          "required"),
    ROW(DGM_SCHEMA_OBJECT,  dependent,         dependent,         "dependentRequired"),
    ROW(0,                  reference,         reference,         "$ref"),
    ROW(0,                  dynamic_reference, dynamic_reference, "$dynamicRef"),
    ROW(DGM_SCHEMA_ARRAY,   items,             items,             "prefixItems", "items"),
    ROW(DGM_SCHEMA_ARRAY,   contains,          contains,          "contains"),
    ROW(DGM_SCHEMA_OBJECT,  members,           members,           "properties", "patternProperties", "additionalProperties"),
    ROW(DGM_SCHEMA_OBJECT,  schema,            member_names,      "propertyNames"),
    ROW(DGM_SCHEMA_OBJECT,  dependent,         dependent,         "dependentSchemas"),
    ROW(DGM_SCHEMA_OBJECT,  dependent,         dependent,         "dependencies"), /* before 2019-09 */
    ROW(0,                  schemas,           all_of,            "allOf"),
    ROW(0,                  schemas,           any_of,            "anyOf"),
    ROW(0,                  schemas,           one_of,            "oneOf"),
    ROW(0,                  schema,            negation,          "not"),
    ROW(0,                  condition,         condition,         "if"),
    {.names = {"unevaluatedItems"}, .types = DGM_SCHEMA_ARRAY, .is_last = true,
     .compile = dgm_schema_compile_schema, .check = dgm_schema_check_unevaluated_items},
    {.names = {"unevaluatedProperties"}, .types = DGM_SCHEMA_OBJECT, .is_last = true,
     .compile = dgm_schema_compile_schema, .check = dgm_schema_check_unevaluated_members},
};
/* clang-format on */
const size_t dgm_schema_n_keywords = sizeof dgm_schema_keywords / sizeof *dgm_schema_keywords;
