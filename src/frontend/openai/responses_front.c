/* frontend/openai/responses_front.c - requests for responses and conversations, and how they are answered. */
#include "frontend/openai/responses_front_int.h"
#include "frontend/words.h"

/* ---- answers ------------------------------------------------------------------------------------------------------- */

void responses_fail(struct responses_op *op, const dgm_err *err)
{
    dgm_err told = *err;
    if (!strcmp(told.at, "/messages")) /* what turns call it */
        memcpy(told.at, "/input", sizeof "/input");
    openai_fail_err(op->x, &told, op->body);
}

void responses_fail_missing(struct responses_op *op, const char *what, dgm_str id)
{
    struct openai_error e = {.http = 404,
                             .type = "invalid_request_error",
                             .message =
                                 dgm_arena_printf(op->arena, "%s with id '%.*s' not found.", what,
                                                  (int)(id.n < 200 ? id.n : 200), id.p)};
    openai_fail(op->x, &e);
}

void responses_respond(struct responses_op *op, dgm_str json)
{
    dgm_http_respond(op->x, 200, DGM_STR("application/json"), NULL, 0, json);
}

bool responses_read_body(struct responses_op *op, const dgm_json_rule *rules)
{
    dgm_err err = {0};
    if (!dgm_turn_body(op->x, &op->body, &err) && !dgm_responses_check(op->body, rules, &err))
        return true;
    responses_fail(op, &err);
    return false;
}

/* ---- requests ------------------------------------------------------------------------------------------------------ */

struct responses_op *responses_new_op(const dgm_front_request *q)
{
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
