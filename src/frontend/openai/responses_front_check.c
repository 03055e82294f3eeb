/*
 * frontend/openai/responses_front_check.c - is a request what the API says it is?
 *
 * The codec reads what peers of all kinds send and takes a wrong type for something that is not there. A server
 * that did so would run an agent on half of what its caller meant: here every member that we know has its type,
 * and whatever is wrong is named. Members that we do not know are left alone.
 */
#include "frontend/openai/responses_front_int.h"
#include "frontend/openai/responses_front_rules.h"

#include <stdio.h>

/* ---- checking ---------------------------------------------------------------------------------------------------- */

static unsigned kind_of(yyjson_val *v)
{
    int64_t n;
    if (yyjson_is_raw(v))
        return dgm_json_int(v, &n) ? INT | NUM : NUM;
    return yyjson_is_str(v)    ? STR
           : yyjson_is_bool(v) ? BOOL
           : yyjson_is_arr(v)  ? LIST
           : yyjson_is_obj(v)  ? OBJ
                               : NIL;
}

static const char *name_of(unsigned kinds)
{
    switch (kinds & ~(unsigned)NIL) {
    case STR: return "a string";
    case INT: return "an integer";
    case NUM: return "a number";
    case BOOL: return "true or false";
    case LIST: return "an array";
    case OBJ: return "an object";
    case STR | LIST: return "a string or an array";
    default: return "a string or an object";
    }
}

static dgm_code wrong(dgm_err *err, const dgm_at *at, unsigned kinds, yyjson_val *v)
{
    return dgm_fail(err, DGM_BAD_PARAMS, at, "expected %s, got %s", name_of(kinds),
                    dgm_json_type(v));
}

static dgm_code check_object(yyjson_val *v, const struct rules *rules, const dgm_at *at,
                             dgm_err *err);

static dgm_code check_list(yyjson_val *v, const struct rule *r, const dgm_at *at, dgm_err *err)
{
    yyjson_val *e;
    size_t i, n;
    dgm_code rc = DGM_OK;
    if (yyjson_arr_size(v) > DGM_MAX_LIST_ITEMS)
        return dgm_fail(err, DGM_TOO_LARGE, at,
                        "%zu entries, more than the limit list_items of %d: send fewer at once",
                        yyjson_arr_size(v), DGM_MAX_LIST_ITEMS);
    yyjson_arr_foreach (v, i, n, e) {
        if (!(kind_of(e) & r->each))
            rc = wrong(err, DGM_AT_I(at, i), r->each, e);
        else if (r->of)
            rc = check_object(e, r->of, DGM_AT_I(at, i), err);
        if (rc)
            break;
    }
    return rc;
}

static dgm_code check_member(yyjson_val *v, const struct rule *r, const dgm_at *at, dgm_err *err)
{
    if (!v || (yyjson_is_null(v) && r->is & NIL))
        return r->use == MUST
                   ? dgm_fail(err, DGM_BAD_PARAMS, at, "missing: expected %s", name_of(r->is))
                   : DGM_OK;
    if (!(kind_of(v) & r->is))
        return wrong(err, at, r->is, v);
    if (yyjson_is_arr(v))
        return check_list(v, r, at, err);
    return r->of && yyjson_is_obj(v) ? check_object(v, r->of, at, err) : DGM_OK;
}

static dgm_code check_object(yyjson_val *v, const struct rules *rules, const dgm_at *at,
                             dgm_err *err)
{
    dgm_code rc = DGM_OK;
    if (rules->pick)
        rules = rules->pick(v);
    for (size_t i = 0; !rc && i < rules->n; i++) {
        dgm_str name = dgm_str_from(rules->at[i].name);
        rc = check_member(dgm_json_get(v, name), &rules->at[i], DGM_AT(at, name), err);
    }
    return rc;
}

/* OpenAI's own limits: clients rely on being told. */
#define MAX_METADATA 16
#define MAX_METADATA_KEY 64
#define MAX_METADATA_VALUE 512

static dgm_code check_metadata(yyjson_val *v, dgm_err *err)
{
    const dgm_at *at = DGM_AT_LIT(NULL, "metadata");
    yyjson_obj_iter it = yyjson_obj_iter_with(v);
    yyjson_val *key, *value;
    if (yyjson_obj_size(v) > MAX_METADATA)
        return dgm_fail(err, DGM_BAD_PARAMS, at, "%zu pairs: there may be %d", yyjson_obj_size(v),
                        MAX_METADATA);
    while ((key = yyjson_obj_iter_next(&it))) {
        value = yyjson_obj_iter_get_val(key);
        const dgm_at *here = DGM_AT(at, dgm_json_str(key));
        if (dgm_json_str(key).n > MAX_METADATA_KEY)
            return dgm_fail(err, DGM_BAD_PARAMS, at, "a key is longer than %d characters",
                            MAX_METADATA_KEY);
        if (!yyjson_is_str(value))
            return wrong(err, here, STR, value);
        if (dgm_json_str(value).n > MAX_METADATA_VALUE)
            return dgm_fail(err, DGM_BAD_PARAMS, here, "longer than %d characters",
                            MAX_METADATA_VALUE);
    }
    return DGM_OK;
}

/* What is kept of it and told again stands deeper than here, and has to be read once more. */
#define MAX_DEPTH (DGM_MAX_JSON_DEPTH - 16)

static dgm_code check(yyjson_val *body, const struct rules *rules, dgm_err *err)
{
    if (!yyjson_is_obj(body))
        return wrong(err, NULL, OBJ, body);
    if (dgm_json_deeper_than(body, MAX_DEPTH))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "nested deeper than %d levels", MAX_DEPTH);
    dgm_code rc = check_object(body, rules, NULL, err);
    return rc ? rc : check_metadata(dgm_json_get(body, DGM_STR("metadata")), err);
}

dgm_code responses_check_request(yyjson_val *body, dgm_err *err)
{
    return check(body, &responses_request_rules, err);
}

dgm_code responses_check_conversation(yyjson_val *body, dgm_err *err)
{
    return check(body, &conversation_rules, err);
}

dgm_code responses_check_items(yyjson_val *body, dgm_err *err)
{
    return check(body, &conversation_items_rules, err);
}

/* ---- what is taken and does nothing ------------------------------------------------------------------------------- */

static void name_ignored(dgm_buf *b, const char *name)
{
    if (b->n)
        dgm_buf_add_lit(b, ", ");
    dgm_buf_add_str(b, dgm_str_from(name));
}

dgm_str responses_ignored(dgm_arena *a, yyjson_val *body)
{
    const struct rules *rules = &responses_request_rules;
    yyjson_val *tools = dgm_json_get(body, DGM_STR("tools")), *e;
    size_t i, n;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (i = 0; i < rules->n; i++) {
        yyjson_val *v = dgm_json_get(body, dgm_str_from(rules->at[i].name));
        if (rules->at[i].use == UNUSED && v && !yyjson_is_null(v))
            name_ignored(&b, rules->at[i].name);
    }
    yyjson_arr_foreach (tools, i, n, e) { /* those that OpenAI runs itself */
        char name[40];
        if (dgm_str_is(dgm_said_mark(e, "type"), "function") || b.n > 1000)
            continue;
        snprintf(name, sizeof name, "tools[%zu]", i);
        name_ignored(&b, name);
    }
    dgm_str names = b.n ? dgm_arena_dup(a, dgm_buf_str(&b)) : (dgm_str){0};
    dgm_buf_done(&b);
    return names;
}
