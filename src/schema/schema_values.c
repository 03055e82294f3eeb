/* schema/schema_values.c - rules about one value: its type, number, text, and how many items or members it has. */
#include "schema/schema_int.h"

#include <inttypes.h>

static const struct {
    unsigned type;
    const char *name, *phrase;
} types[] = {
    {DGM_SCHEMA_NULL, "null", "null"},
    {DGM_SCHEMA_BOOLEAN, "boolean", "a boolean"},
    {DGM_SCHEMA_INTEGER, "integer", "an integer"},
    {DGM_SCHEMA_NUMBER, "number", "a number"},
    {DGM_SCHEMA_STRING, "string", "a string"},
    {DGM_SCHEMA_ARRAY, "array", "an array"},
    {DGM_SCHEMA_OBJECT, "object", "an object"},
};
#define N_TYPES (sizeof types / sizeof *types)

/* ---- type, enum, const ------------------------------------------------------------------------- */

static dgm_code add_type(dgm_schema_rule *rule, const yyjson_val *name, const dgm_at *at,
                         dgm_err *err)
{
    for (size_t i = 0; yyjson_is_str(dgm_schema_plain(name)) && i < N_TYPES; i++) {
        if (dgm_str_eq(dgm_json_str(name), dgm_str_from(types[i].name))) {
            rule->types |= types[i].type;
            return DGM_OK;
        }
    }
    return dgm_fail(
        err, DGM_BAD_PARAMS, at,
        "unknown type. Allowed values: null, boolean, integer, number, string, array, object");
}

DGM_SCHEMA_COMPILE(type)
{
    const dgm_at *at = DGM_AT_LIT(node->at, "type");
    yyjson_val *item;
    size_t i, n;
    dgm_code rc;
    (void)b;
    if (!yyjson_is_arr(dgm_schema_plain(rule->value)))
        return add_type(rule, rule->value, at, err);
    yyjson_arr_foreach (dgm_schema_plain(rule->value), i, n, item) {
        if ((rc = add_type(rule, item, DGM_AT_I(at, i), err)))
            return rc;
    }
    return DGM_OK;
}

DGM_SCHEMA_CHECK(type)
{
    unsigned type = dgm_schema_type_of(visit->value);
    dgm_str allowed[N_TYPES];
    size_t n = 0;
    if (type & rule->types)
        return true;
    for (size_t i = 0; i < N_TYPES; i++) {
        if (rule->types & types[i].type)
            allowed[n++] = dgm_str_from(types[i].phrase);
    }
    dgm_str list = dgm_schema_join(run, allowed, n, N_TYPES);
    const char *got = dgm_json_type(visit->value);
    if (type == DGM_SCHEMA_NUMBER || (type && yyjson_is_bool(dgm_schema_plain(visit->value)))) {
        dgm_str value = dgm_schema_quote(run, visit->value);
        return dgm_schema_mistake(run, visit->at, "expected %.*s, got %s %.*s", DGM_P(list),
                                  type == DGM_SCHEMA_NUMBER ? "the number" : "the boolean",
                                  DGM_P(value));
    }
    return dgm_schema_mistake(run, visit->at, "expected %.*s, got %s", DGM_P(list), got);
}

DGM_SCHEMA_COMPILE(any)
{
    (void)b;
    (void)node;
    (void)rule;
    (void)err;
    return DGM_OK;
}

DGM_SCHEMA_COMPILE(enum)
{
    (void)b;
    if (!yyjson_is_arr(dgm_schema_plain(rule->value)))
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(node->at, "enum"),
                        "expected an array, got %s", dgm_json_type(rule->value));
    return DGM_OK;
}

#define SHOWN_VALUES 12 /* of an enum, in a mistake */

DGM_SCHEMA_CHECK(enum)
{
    dgm_str shown[SHOWN_VALUES];
    yyjson_val *item;
    size_t i, n;
    yyjson_arr_foreach (dgm_schema_plain(rule->value), i, n, item) {
        if (dgm_schema_equal(run, item, visit->value))
            return true;
    }
    if (!dgm_schema_wants_more(run))
        return false;
    yyjson_arr_foreach (dgm_schema_plain(rule->value), i, n, item) {
        if (i < SHOWN_VALUES)
            shown[i] = dgm_schema_quote(run, item);
    }
    dgm_str list = dgm_schema_join(run, shown, n, SHOWN_VALUES);
    dgm_str got = dgm_schema_quote(run, visit->value);
    return dgm_schema_mistake(run, visit->at, "expected %.*s, got %.*s", DGM_P(list), DGM_P(got));
}

DGM_SCHEMA_CHECK(const)
{
    if (dgm_schema_equal(run, rule->value, visit->value))
        return true;
    dgm_str want = dgm_schema_quote(run, rule->value), got = dgm_schema_quote(run, visit->value);
    return dgm_schema_mistake(run, visit->at, "expected %.*s, got %.*s", DGM_P(want), DGM_P(got));
}

/* ---- numbers ----------------------------------------------------------------------------------- */

DGM_SCHEMA_COMPILE(number)
{
    (void)b;
    if (!yyjson_is_raw(dgm_schema_plain(rule->value)))
        return dgm_fail(err, DGM_BAD_PARAMS,
                        DGM_AT(node->at, dgm_str_from(rule->keyword->names[0])),
                        "expected a number, got %s", dgm_json_type(rule->value));
    rule->number = dgm_schema_number_read(dgm_json_str(rule->value));
    return DGM_OK;
}

DGM_SCHEMA_COMPILE(divisor)
{
    dgm_code rc = dgm_schema_compile_number(b, node, rule, err);
    if (!rc && (!rule->number.n || rule->number.is_negative))
        rc = dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(node->at, "multipleOf"),
                      "expected a number above 0, got %.*s", DGM_P(dgm_json_str(rule->value)));
    return rc;
}

static bool compare_number(dgm_schema_run *run, const dgm_schema_rule *rule,
                           const dgm_schema_visit *visit, int allowed, bool may_be_equal,
                           const char *words)
{
    dgm_str text = dgm_json_str(visit->value);
    if (!dgm_schema_spend(run, text.n / 16))
        return false;
    dgm_schema_number n = dgm_schema_number_read(text);
    int order = dgm_schema_number_compare(&n, &rule->number);
    if (order == allowed || (order == 0 && may_be_equal))
        return true;
    dgm_str limit = dgm_schema_quote(run, rule->value), got = dgm_schema_quote(run, visit->value);
    return dgm_schema_mistake(run, visit->at, "expected a number %s %.*s, got %.*s", words,
                              DGM_P(limit), DGM_P(got));
}

DGM_SCHEMA_CHECK(maximum)
{
    return compare_number(run, rule, visit, -1, true, "of at most");
}

DGM_SCHEMA_CHECK(exclusive_maximum)
{
    return compare_number(run, rule, visit, -1, false, "below");
}

DGM_SCHEMA_CHECK(minimum)
{
    return compare_number(run, rule, visit, 1, true, "of at least");
}

DGM_SCHEMA_CHECK(exclusive_minimum)
{
    return compare_number(run, rule, visit, 1, false, "above");
}

DGM_SCHEMA_CHECK(multiple_of)
{
    dgm_schema_number n = dgm_schema_number_read(dgm_json_str(visit->value));
    if (!dgm_schema_spend(run, dgm_schema_number_multiple_cost(&n, &rule->number)))
        return false;
    if (dgm_schema_number_is_multiple(&n, &rule->number))
        return true;
    dgm_str step = dgm_schema_quote(run, rule->value), got = dgm_schema_quote(run, visit->value);
    return dgm_schema_mistake(run, visit->at, "expected a multiple of %.*s, got %.*s", DGM_P(step),
                              DGM_P(got));
}

/* ---- lengths ----------------------------------------------------------------------------------- */

DGM_SCHEMA_COMPILE(count)
{
    dgm_code rc = dgm_schema_compile_number(b, node, rule, err);
    if (!rc && (rule->number.is_negative || !dgm_schema_number_is_integer(&rule->number)))
        rc = dgm_fail(err, DGM_BAD_PARAMS, DGM_AT(node->at, dgm_str_from(rule->keyword->names[0])),
                      "expected an integer of at least 0, got %.*s",
                      DGM_P(dgm_json_str(rule->value)));
    if (!rc)
        rule->min = rule->max = dgm_schema_number_count(&rule->number);
    return rc;
}

static bool check_count(dgm_schema_run *run, const dgm_schema_rule *rule,
                        const dgm_schema_visit *visit, size_t n, bool is_max, const char *unit)
{
    if (is_max ? n <= rule->max : n >= rule->min)
        return true;
    return dgm_schema_mistake(run, visit->at, "expected at %s %" PRIu64 " %s, got %zu",
                              is_max ? "most" : "least", rule->max, unit, n);
}

static size_t count_characters(dgm_schema_run *run, dgm_str text)
{
    size_t n = 0;
    if (!dgm_schema_spend(run, text.n / 16))
        return 0;
    for (size_t i = 0; i < text.n; i++)
        n += ((unsigned char)text.p[i] & 0xC0) != 0x80;
    return n;
}

DGM_SCHEMA_CHECK(max_length)
{
    return check_count(run, rule, visit, count_characters(run, dgm_json_str(visit->value)), true,
                       "characters");
}

DGM_SCHEMA_CHECK(min_length)
{
    return check_count(run, rule, visit, count_characters(run, dgm_json_str(visit->value)), false,
                       "characters");
}

DGM_SCHEMA_CHECK(max_items)
{
    return check_count(run, rule, visit, yyjson_arr_size(dgm_schema_plain(visit->value)), true,
                       "items");
}

DGM_SCHEMA_CHECK(min_items)
{
    return check_count(run, rule, visit, yyjson_arr_size(dgm_schema_plain(visit->value)), false,
                       "items");
}

DGM_SCHEMA_CHECK(max_members)
{
    return check_count(run, rule, visit, yyjson_obj_size(dgm_schema_plain(visit->value)), true,
                       "members");
}

DGM_SCHEMA_CHECK(min_members)
{
    return check_count(run, rule, visit, yyjson_obj_size(dgm_schema_plain(visit->value)), false,
                       "members");
}

/* ---- patterns and equal items ------------------------------------------------------------------ */

DGM_SCHEMA_COMPILE(pattern)
{
    dgm_arena *a = dgm_schema_build_arena(b);
    const dgm_at *at = DGM_AT_LIT(node->at, "pattern");
    if (!yyjson_is_str(dgm_schema_plain(rule->value)))
        return dgm_fail(err, DGM_BAD_PARAMS, at, "expected a string, got %s",
                        dgm_json_type(rule->value));
    rule->patterns = dgm_new(a, dgm_schema_pattern *);
    return dgm_schema_pattern_compile(a, dgm_json_str(rule->value), at, rule->patterns, err);
}

DGM_SCHEMA_CHECK(pattern)
{
    if (dgm_schema_pattern_matches(run, rule->patterns[0], dgm_json_str(visit->value)))
        return true;
    dgm_str pattern = dgm_schema_quote(run, rule->value);
    dgm_str got = dgm_schema_quote(run, visit->value);
    return dgm_schema_mistake(run, visit->at,
                              "expected text that matches the pattern %.*s, got %.*s",
                              DGM_P(pattern), DGM_P(got));
}

DGM_SCHEMA_COMPILE(bool)
{
    (void)b;
    if (!yyjson_is_bool(dgm_schema_plain(rule->value)))
        return dgm_fail(err, DGM_BAD_PARAMS,
                        DGM_AT(node->at, dgm_str_from(rule->keyword->names[0])),
                        "expected a boolean, got %s", dgm_json_type(rule->value));
    return DGM_OK;
}

DGM_SCHEMA_CHECK(unique_items)
{
    size_t first, second;
    if (!yyjson_get_bool(dgm_schema_plain(rule->value)) ||
        !dgm_schema_duplicate(run, visit->value, &first, &second))
        return !run->stop;
    return dgm_schema_mistake(run, visit->at,
                              "the items %zu and %zu are equal; every item must be different",
                              first, second);
}
