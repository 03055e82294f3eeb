/*
 * frontend/openai/responses_front_refs.c - references to items of earlier responses.
 *
 * {"type":"item_reference","id":...} stands for an item that a response was given or has made. Its id leads to the
 * response; several of one response, which is how clients send them, are found by one look.
 */
#include "frontend/openai/responses_front_int.h"

struct resolving {
    struct responses_op *op;
    yyjson_val **items;
    size_t n, i;
    const char *param;
    responses_on_done done;
    void *arg;
    dgm_str id;                 /* of the response that was looked at last */
    yyjson_val *input, *output; /* its items */
};

static bool is_reference(yyjson_val *item)
{
    yyjson_val *type = responses_given(item, "type");
    return type ? yyjson_is_str(type) && dgm_str_is(dgm_json_str(type), "item_reference")
                : !responses_get(item, "role") && responses_get(item, "id");
}

static yyjson_val *find_in(yyjson_val *items, dgm_str id)
{
    yyjson_val *e;
    size_t i, n;
    yyjson_arr_foreach (items, i, n, e) {
        if (dgm_str_eq(dgm_said_mark(e, "id"), id))
            return e;
    }
    return NULL;
}

static void fail_item(struct resolving *k, dgm_str id)
{
    struct openai_error e = {
        .http = 404,
        .type = "invalid_request_error",
        .param = dgm_str_from(k->param),
        .message = dgm_arena_printf(k->op->arena,
                                    "Item with id '%.*s' not found. Items are not persisted when "
                                    "`store` is set to false.",
                                    (int)(id.n < 200 ? id.n : 200), id.p)};
    openai_fail(k->op->x, &e);
}

static void next(struct resolving *k);

static void on_found(void *arg, const dgm_found_turn *found)
{
    struct resolving *k = arg;
    dgm_arena *a = k->op->arena;
    if (!found) {
        fail_item(k, dgm_said_mark(k->items[k->i], "id"));
        return;
    }
    struct responses_turn turn = responses_turn_of(k->id, found);
    k->output = responses_get(responses_read_text(a, responses_so_far(k->op, &turn)), "output");
    k->input = found->request.n
                   ? responses_get(dgm_json_made(a, dgm_arena_dup(a, found->request)), "input")
                   : NULL;
    next(k);
}

/* False: it is not among those that are known. */
static bool replace(struct resolving *k, dgm_str id)
{
    yyjson_val *item = find_in(k->output, id);
    if (!item)
        item = find_in(k->input, id);
    if (item)
        k->items[k->i] = item;
    return item;
}

static void next(struct resolving *k)
{
    for (; k->i < k->n; k->i++) {
        if (!is_reference(k->items[k->i]))
            continue;
        dgm_str id = dgm_said_mark(k->items[k->i], "id");
        dgm_str response = responses_of_item(k->op->arena, id);
        bool known = response.n && dgm_str_eq(response, k->id);
        if (known && replace(k, id))
            continue;
        if (known || !response.n) {
            fail_item(k, id);
            return;
        }
        k->id = response;
        responses_find(k->op, response, on_found, k);
        return;
    }
    k->done(k->arg);
}

void responses_resolve(struct responses_op *op, yyjson_val **items, size_t n, const char *param,
                       responses_on_done done, void *arg)
{
    struct resolving *k = dgm_new(op->arena, struct resolving);
    *k = (struct resolving){
        .op = op, .items = items, .n = n, .param = param, .done = done, .arg = arg};
    next(k);
}
