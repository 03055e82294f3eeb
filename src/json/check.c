/* json/check.c - see check.h. */
#include "json/check.h"

#include <assert.h>

#define MAX_HEADER 1000 /* bytes of dgm_json_ignored */

/* ---- types ------------------------------------------------------------------------------------------------------ */

static const char *check_type_name(unsigned types)
{
    switch (types) {
    case DGM_JSON_TEXT: return "a string";
    case DGM_JSON_INT: return "an integer";
    case DGM_JSON_NUMBER: return "a number";
    case DGM_JSON_BOOL: return "true or false";
    case DGM_JSON_OBJECT: return "an object";
    case DGM_JSON_LIST: return "a list";
    case DGM_JSON_TEXT | DGM_JSON_OBJECT: return "a string or an object";
    default: return "a string or a list";
    }
}

static dgm_code check_type(yyjson_val *v, unsigned types, const dgm_at *at, dgm_err *err)
{
    int64_t n;
    if ((types & DGM_JSON_TEXT && yyjson_is_str(v)) ||
        (types & DGM_JSON_INT && yyjson_is_raw(v) && dgm_json_int(v, &n)) ||
        (types & DGM_JSON_NUMBER && yyjson_is_raw(v)) ||
        (types & DGM_JSON_BOOL && yyjson_is_bool(v)) ||
        (types & DGM_JSON_OBJECT && yyjson_is_obj(v)) ||
        (types & DGM_JSON_LIST && yyjson_is_arr(v)))
        return DGM_OK;
    return dgm_fail(err, DGM_BAD_PARAMS, at, "expected %s, got %s", check_type_name(types),
                    dgm_json_type(v));
}

/* ---- members ----------------------------------------------------------------------------------------------------- */

static dgm_code check_entries(yyjson_val *v, const dgm_json_rule *rule, const dgm_at *at,
                              dgm_err *err)
{
    yyjson_val *e;
    size_t i, n;
    dgm_code rc = DGM_OK;
    yyjson_arr_foreach (v, i, n, e) {
        const dgm_at *here = DGM_AT_I(at, i);
        if (rule->of && (rc = check_type(e, rule->of, here, err)))
            return rc;
        const dgm_json_rule *members = rule->pick ? rule->pick(e) : rule->members;
        if (members && (rc = dgm_json_check(e, members, here, err)))
            return rc;
    }
    return rc;
}

static dgm_code check_all_members(yyjson_val *v, unsigned types, const dgm_at *at, dgm_err *err)
{
    yyjson_val *key, *value;
    size_t i, n;
    dgm_code rc = DGM_OK;
    yyjson_obj_foreach (v, i, n, key, value) {
        if (!yyjson_is_null(value) &&
            (rc = check_type(value, types, DGM_AT(at, dgm_json_str(key)), err)))
            break;
    }
    return rc;
}

/* Index of the row with this name; the length of the table if no row has it. */
static size_t check_row(const dgm_json_rule *rules, dgm_str name)
{
    size_t i = 0;
    while (rules[i].name.p && !dgm_str_eq(rules[i].name, name))
        i++;
    return i;
}

dgm_code dgm_json_check(yyjson_val *v, const dgm_json_rule *rules, const dgm_at *at, dgm_err *err)
{
    yyjson_val *found[DGM_JSON_MAX_RULES], *key, *value;
    size_t i, max, n = 0;
    dgm_code rc = DGM_OK;
    if (!yyjson_is_obj(v))
        return DGM_OK;
    for (; rules[n].name.p; n++)
        found[n] = NULL;
    assert(n <= DGM_JSON_MAX_RULES);
    yyjson_obj_foreach (v, i, max, key, value) {
        size_t row = check_row(rules, dgm_json_str(key));
        if (row < n && !found[row])
            found[row] = value;
    }
    for (i = 0; i < n && !rc; i++) {
        const dgm_json_rule *rule = &rules[i];
        const dgm_at *here = DGM_AT(at, rule->name);
        value = found[i];
        if (!value || yyjson_is_null(value)) {
            if (rule->is_required)
                rc = dgm_fail(err, DGM_BAD_PARAMS, here, "missing: expected %s",
                              check_type_name(rule->types));
            continue;
        }
        if ((rc = check_type(value, rule->types, here, err)))
            break;
        size_t size = yyjson_is_arr(value) ? yyjson_arr_size(value) : yyjson_obj_size(value);
        if (rule->max && size > rule->max)
            rc = dgm_fail(err, DGM_TOO_LARGE, here, "%zu entries, more than the limit %s of %zu",
                          size, rule->limit, rule->max);
        else if (yyjson_is_arr(value))
            rc = check_entries(value, rule, here, err);
        else if (yyjson_is_obj(value) && rule->members)
            rc = dgm_json_check(value, rule->members, here, err);
        else if (yyjson_is_obj(value) && rule->of)
            rc = check_all_members(value, rule->of, here, err);
    }
    return rc;
}

/* ---- ignored members ---------------------------------------------------------------------------------------------- */

static bool is_header_word(dgm_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(c >= '0' && c <= '9') && c != '_' && c != '-' && c != '.')
            return false;
    }
    return s.n > 0 && s.n <= 64;
}

dgm_str dgm_json_ignored(dgm_arena *a, yyjson_val *v, const dgm_json_rule *rules)
{
    yyjson_val *key, *value;
    size_t i, n;
    dgm_buf b;
    dgm_buf_init(&b, MAX_HEADER);
    yyjson_obj_foreach (v, i, n, key, value) {
        dgm_str name = dgm_json_str(key);
        const dgm_json_rule *rule = &rules[check_row(rules, name)];
        if (yyjson_is_null(value) || (rule->name.p && !rule->is_ignored) || !is_header_word(name) ||
            b.n + name.n + 2 > MAX_HEADER)
            continue;
        dgm_buf_add_str(&b, b.n ? DGM_STR(", ") : DGM_STR(""));
        dgm_buf_add_str(&b, name);
    }
    dgm_str names = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return names;
}
