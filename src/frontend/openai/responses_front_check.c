/*
 * frontend/openai/responses_front_check.c - is a request what the API says it is?
 *
 * The codec reads what peers of all kinds send and takes a wrong type for something that is not there. A server
 * that did so would run an agent on half of what its caller meant: every member that we know has its type
 * (responses_front_rules.c), and whatever is wrong is named.
 */
#include "frontend/list_limits.h"
#include "frontend/openai/responses_front_int.h"

/* What is kept of it and told again stands deeper than here, and has to be read once more. */
#define MAX_DEPTH (DGM_MAX_JSON_DEPTH - 16)

/* OpenAI's own limits: clients rely on being told. */
#define MAX_METADATA 16
#define MAX_METADATA_KEY 64
#define MAX_METADATA_VALUE 512

static dgm_code check_metadata(yyjson_val *v, dgm_err *err)
{
    const dgm_at *at = DGM_AT_LIT(NULL, "metadata");
    yyjson_val *key, *value;
    size_t i, n;
    if (!yyjson_is_obj(v))
        return DGM_OK; /* absent, or null */
    if (yyjson_obj_size(v) > MAX_METADATA)
        return dgm_fail(err, DGM_BAD_PARAMS, at, "%zu pairs: there may be %d", yyjson_obj_size(v),
                        MAX_METADATA);
    yyjson_obj_foreach (v, i, n, key, value) {
        const dgm_at *here = DGM_AT(at, dgm_json_str(key));
        if (dgm_json_str(key).n > MAX_METADATA_KEY)
            return dgm_fail(err, DGM_BAD_PARAMS, at, "a key is longer than %d characters",
                            MAX_METADATA_KEY);
        if (!yyjson_is_str(value))
            return dgm_fail(err, DGM_BAD_PARAMS, here, "expected a string, got %s",
                            dgm_json_type(value));
        if (dgm_json_str(value).n > MAX_METADATA_VALUE)
            return dgm_fail(err, DGM_BAD_PARAMS, here, "longer than %d characters",
                            MAX_METADATA_VALUE);
    }
    return DGM_OK;
}

static dgm_code check(yyjson_val *body, const struct openai_rule *rules, dgm_err *err)
{
    if (!yyjson_is_obj(body))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "expected an object, got %s",
                        dgm_json_type(body));
    dgm_code rc = dgm_check_lists(body, dgm_list_limits_responses, err);
    if (rc)
        return rc;
    if (dgm_json_deeper_than(body, MAX_DEPTH))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "nested deeper than %d levels", MAX_DEPTH);
    rc = openai_check(body, rules, NULL, err);
    return rc ? rc : check_metadata(responses_get(body, "metadata"), err);
}

dgm_code responses_check_request(yyjson_val *body, dgm_err *err)
{
    return check(body, responses_request_rules, err);
}

dgm_code responses_check_conversation(yyjson_val *body, dgm_err *err)
{
    return check(body, conversation_rules, err);
}

dgm_code responses_check_items(yyjson_val *body, dgm_err *err)
{
    return check(body, conversation_items_rules, err);
}

/* ---- what is taken and does nothing ------------------------------------------------------------------------------- */

#define MAX_NAMED 1000 /* bytes of a header */

dgm_str responses_ignored(dgm_arena *a, yyjson_val *body)
{
    dgm_str names = openai_ignored(a, body, responses_request_rules);
    yyjson_val *e;
    size_t i, n;
    yyjson_arr_foreach (responses_get(body, "tools"), i, n, e) { /* those that OpenAI runs itself */
        if (!dgm_str_is(dgm_json_str_member(e, "type"), "function") && names.n < MAX_NAMED)
            names = dgm_arena_printf(a, "%.*s%stools[%zu]", DGM_P(names), names.n ? ", " : "", i);
    }
    return names;
}
