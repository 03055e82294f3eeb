/* frontend/openai/openai_check.c - types of a request's members, by table. */
#include "frontend/openai/openai_check.h"

#define MAX_HEADER 1000 /* of the names of what was ignored: more help nobody */

/* ---- types ------------------------------------------------------------------------------------------------------ */

static bool is_int(yyjson_val *v)
{
    int64_t n;
    return yyjson_is_raw(v) && dgm_json_int(v, &n);
}

static bool is_one_of(yyjson_val *v, unsigned types)
{
    return (types & OPENAI_TEXT && yyjson_is_str(v)) || (types & OPENAI_INT && is_int(v)) ||
           (types & OPENAI_NUMBER && yyjson_is_raw(v)) ||
           (types & OPENAI_BOOL && yyjson_is_bool(v)) ||
           (types & OPENAI_OBJECT && yyjson_is_obj(v)) || (types & OPENAI_LIST && yyjson_is_arr(v));
}

static const char *name_of(unsigned types)
{
    switch (types) {
    case OPENAI_TEXT: return "a string";
    case OPENAI_INT: return "an integer";
    case OPENAI_NUMBER: return "a number";
    case OPENAI_BOOL: return "true or false";
    case OPENAI_OBJECT: return "an object";
    case OPENAI_LIST: return "a list";
    case OPENAI_TEXT | OPENAI_OBJECT: return "a string or an object";
    default: return "a string or a list";
    }
}

static dgm_code check_type(yyjson_val *v, unsigned types, const dgm_at *at, dgm_err *err)
{
    if (is_one_of(v, types))
        return DGM_OK;
    return dgm_fail(err, DGM_BAD_PARAMS, at, "expected %s, got %s", name_of(types),
                    dgm_json_type(v));
}

/* ---- members ----------------------------------------------------------------------------------------------------- */

static dgm_code check_list(yyjson_val *v, const struct openai_rule *rule, const dgm_at *at,
                           dgm_err *err)
{
    yyjson_val *e;
    size_t i, n;
    dgm_code rc = DGM_OK;
    yyjson_arr_foreach (v, i, n, e) {
        const dgm_at *here = DGM_AT_I(at, i);
        if (rule->of && (rc = check_type(e, rule->of, here, err)))
            return rc;
        const struct openai_rule *members = rule->pick ? rule->pick(e) : rule->members;
        if (members && (rc = openai_check(e, members, here, err)))
            return rc;
    }
    return rc;
}

static dgm_code check_values(yyjson_val *v, unsigned types, const dgm_at *at, dgm_err *err)
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

static dgm_code check_member(yyjson_val *v, const struct openai_rule *rule, const dgm_at *at,
                             dgm_err *err)
{
    dgm_code rc = check_type(v, rule->types, at, err);
    if (rc)
        return rc;
    if (yyjson_is_arr(v))
        return check_list(v, rule, at, err);
    if (yyjson_is_obj(v) && rule->members)
        return openai_check(v, rule->members, at, err);
    return yyjson_is_obj(v) && rule->of ? check_values(v, rule->of, at, err) : DGM_OK;
}

dgm_code openai_check(yyjson_val *v, const struct openai_rule *rules, const dgm_at *at,
                      dgm_err *err)
{
    dgm_code rc = DGM_OK;
    if (!yyjson_is_obj(v))
        return DGM_OK;
    for (const struct openai_rule *rule = rules; !rc && rule->name; rule++) {
        dgm_str name = dgm_str_from(rule->name);
        yyjson_val *member = dgm_json_get(v, name);
        if (member && !yyjson_is_null(member))
            rc = check_member(member, rule, DGM_AT(at, name), err);
        else if (rule->must)
            rc = dgm_fail(err, DGM_BAD_PARAMS, DGM_AT(at, name), "missing: expected %s",
                          name_of(rule->types));
    }
    return rc;
}

/* ---- what is ignored ---------------------------------------------------------------------------------------------- */

static const struct openai_rule *rule_of(const struct openai_rule *rules, dgm_str name)
{
    for (; rules->name; rules++) {
        if (dgm_str_eq(dgm_str_from(rules->name), name))
            return rules;
    }
    return NULL;
}

/* A word that can stand in a header. */
static bool is_word(dgm_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(c >= '0' && c <= '9') && c != '_' && c != '-' && c != '.')
            return false;
    }
    return s.n > 0 && s.n <= 64;
}

dgm_str openai_ignored(dgm_arena *a, yyjson_val *body, const struct openai_rule *rules)
{
    yyjson_val *key, *value;
    size_t i, n;
    dgm_buf b;
    dgm_buf_init(&b, MAX_HEADER);
    yyjson_obj_foreach (body, i, n, key, value) {
        dgm_str name = dgm_json_str(key);
        const struct openai_rule *rule = rule_of(rules, name);
        if (yyjson_is_null(value) || (rule && !rule->ignored) || !is_word(name) ||
            b.n + name.n + 2 > MAX_HEADER)
            continue;
        dgm_buf_add_str(&b, b.n ? DGM_STR(", ") : DGM_STR(""));
        dgm_buf_add_str(&b, name);
    }
    dgm_str names = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return names;
}
