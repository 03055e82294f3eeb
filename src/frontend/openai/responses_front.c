/* frontend/openai/responses_front.c - requests for responses and conversations: errors, responses, ids, settings. */
#include "base/ids.h"
#include "frontend/openai/responses_front_int.h"
#include "frontend/words.h"

/* ---- answers ------------------------------------------------------------------------------------------------------- */

void dgm_responses_fail(struct responses_op *op, const dgm_err *err)
{
    dgm_err fault = *err;
    if (!strcmp(fault.at, "/messages")) /* what turns call it */
        memcpy(fault.at, "/input", sizeof "/input");
    dgm_openai_fail_err(op->x, &fault, op->body);
}

void dgm_responses_fail_missing(struct responses_op *op, const char *what, dgm_str id)
{
    struct openai_error e = {.http = 404,
                             .type = "invalid_request_error",
                             .message =
                                 dgm_arena_printf(op->arena, "%s with id '%.*s' not found.", what,
                                                  (int)(id.n < 200 ? id.n : 200), id.p)};
    dgm_openai_fail(op->x, &e);
}

void dgm_responses_respond(struct responses_op *op, dgm_str json)
{
    dgm_http_respond(op->x, 200, DGM_STR("application/json"), NULL, 0, json);
}

bool dgm_responses_read_body(struct responses_op *op, const dgm_json_rule *rules)
{
    dgm_err err = {0};
    if (!dgm_turn_body(op->x, &op->body, &err) && !dgm_responses_check(op->body, rules, &err))
        return true;
    dgm_responses_fail(op, &err);
    return false;
}

/* ---- requests ------------------------------------------------------------------------------------------------------ */

struct responses_op *dgm_responses_new_op(const dgm_front_request *q)
{
    dgm_openai_name_request(q->x);
    struct responses_op *op = dgm_new(dgm_http_arena(q->x), struct responses_op);
    *op = (struct responses_op){
        .q = *q, .x = q->x, .arena = dgm_http_arena(q->x), .core = q->turns->o.core};
    /* with an invalid percent code it is not an id of ours either */
    if (q->params[0].n && !dgm_percent_decode(op->arena, q->params[0], false, &op->id))
        op->id = q->params[0];
    if (q->params[1].n && !dgm_percent_decode(op->arena, q->params[1], false, &op->item))
        op->item = q->params[1];
    return op;
}

/* ---- ids ----------------------------------------------------------------------------------------------------------- */

#define SCOPE_CHARS 32

dgm_str dgm_responses_new_scope(dgm_arena *a)
{
    dgm_str uuid = dgm_uuid7_in(a);
    char *scope = dgm_arena_alloc(a, SCOPE_CHARS + 1);
    size_t n = 0;
    for (size_t i = 0; i < uuid.n; i++) {
        if (uuid.p[i] != '-')
            scope[n++] = uuid.p[i];
    }
    return (dgm_str){scope, n};
}

static bool is_hex(dgm_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f')))
            return false;
    }
    return true;
}

dgm_str dgm_responses_of_item(dgm_arena *a, dgm_str item_id)
{
    const char *at = item_id.n ? memchr(item_id.p, '_', item_id.n) : NULL;
    size_t left = at ? item_id.n - (size_t)(at - item_id.p) - 1 : 0;
    if (left < SCOPE_CHARS + 2 || at[1 + SCOPE_CHARS] != '_')
        return (dgm_str){0};
    dgm_str scope = {at + 1, SCOPE_CHARS};
    return is_hex(scope) ? dgm_arena_printf(a, "resp_%.*s", DGM_P(scope)) : (dgm_str){0};
}

/* ---- reading --------------------------------------------------------------------------------------------------------- */

dgm_code dgm_responses_read_asked(dgm_arena *a, yyjson_val *body, struct responses_asked *ret,
                                  dgm_err *err)
{
    yyjson_val *conversation = dgm_json_non_null(body, "conversation");
    struct responses_asked asked = {
        .model = dgm_json_str_member(body, "model"),
        .previous = dgm_json_str_member(body, "previous_response_id"),
        .conversation = yyjson_is_str(conversation) ? dgm_json_str(conversation)
                                                    : dgm_json_str_member(conversation, "id"),
        .stream = yyjson_is_true(dgm_json_non_null(body, "stream")),
        .background = yyjson_is_true(dgm_json_non_null(body, "background")),
        .store = !yyjson_is_false(dgm_json_non_null(body, "store")),
        .scope = dgm_responses_new_scope(a)};
    yyjson_val *input = dgm_json_non_null(body, "input"), *e;
    size_t i, n;
    dgm_code rc;
    if (asked.background && !asked.store)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "background"),
                        "a response in the background has to be stored: leave store out");
    if ((rc = dgm_responses_read_output_form(a, body, &asked.form, err)))
        return rc;
    asked.id = dgm_arena_join(a, DGM_STR("resp_"), asked.scope);
    asked.items = dgm_new_n(a, yyjson_val *, yyjson_arr_size(input) + 1);
    yyjson_arr_foreach (input, i, n, e)
        asked.items[asked.n_items++] = e;
    if (yyjson_is_str(input)) { /* the user's message */
        dgm_member members[] = {{DGM_STR("role"), dgm_json_make_string(a, DGM_STR("user"))},
                                {DGM_STR("content"), input}};
        asked.items[asked.n_items++] = dgm_json_object(a, members, 2);
    }
    *ret = asked;
    return DGM_OK;
}
