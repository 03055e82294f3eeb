/*
 * frontend/openai/responses_front_refs.c - references to items of earlier responses.
 *
 * {"type":"item_reference","id":...} stands for an item that a response was given or has made. Its id leads to the
 * response. Each response is read once, for all references to it, and released before the next one is read; only the
 * items are copied. Their sizes are added up as they are found, one per reference, so a request can never become
 * larger than the place where it is stored.
 */
#include "base/list.h"
#include "base/map.h"
#include "frontend/openai/responses_front_int.h"

struct resolving {
    struct responses_op *op;
    yyjson_val **items;
    size_t n, i;
    bool *resolved; /* of n */
    const char *param;
    responses_on_done done;
    void *arg;
    struct responses_room room; /* that remains for items */
    size_t max;                 /* that it was at the start */
    size_t read_bytes;          /* of responses so far */
    dgm_str id;                 /* of the response that is read */
};

/* An item that was copied, by its id. */
struct copied {
    yyjson_val *item;
    size_t bytes;
};

/* The response that is read; everything but what was copied is in scratch. */
struct reading {
    dgm_arena *scratch;
    yyjson_val *input, *output;
    dgm_map by_id; /* places in `copied` */
    struct copied *copied;
    size_t n;
};

static bool is_reference(yyjson_val *item)
{
    yyjson_val *type = dgm_json_non_null(item, "type");
    return type ? yyjson_is_str(type) && dgm_str_is(dgm_json_str(type), "item_reference")
                : !dgm_json_get(item, DGM_STR("role")) && dgm_json_get(item, DGM_STR("id"));
}

static yyjson_val *find_in(yyjson_val *items, dgm_str id)
{
    yyjson_val *e;
    size_t i, n;
    yyjson_arr_foreach (items, i, n, e) {
        if (dgm_str_eq(dgm_json_str_member(e, "id"), id))
            return e;
    }
    return NULL;
}

/* ---- errors ---------------------------------------------------------------------------------------------------------- */

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
    dgm_openai_fail(k->op->x, &e);
}

static void fail_size(struct resolving *k, const char *what, const char *limit, size_t max)
{
    dgm_err err = {0};
    dgm_fail(&err, DGM_TOO_LARGE, DGM_AT(NULL, dgm_str_from(k->param)),
             "%s are larger than the limit %s of %zu bytes: reference fewer items", what, limit,
             max);
    dgm_responses_fail(k->op, &err);
}

/* ---- one response ---------------------------------------------------------------------------------------------------- */

static void read_response(struct resolving *k, const dgm_found_turn *found, struct reading *r)
{
    struct responses_turn turn = dgm_responses_turn_of(r->scratch, k->id, found);
    dgm_str text = dgm_responses_so_far(k->op, &turn, r->scratch);
    r->output = dgm_json_get(dgm_responses_read_text(r->scratch, text), DGM_STR("output"));
    r->input = dgm_json_get(turn.request, DGM_STR("input"));
    k->read_bytes += text.n + found->request.n;
}

/* The item of this id, copied to where it outlives the response; NULL if not found. */
static struct copied *copy_item(struct resolving *k, struct reading *r, dgm_str id)
{
    size_t *at = dgm_map_get(&r->by_id, id);
    if (at)
        return &r->copied[*at];
    yyjson_val *item = find_in(r->output, id);
    if (!item)
        item = find_in(r->input, id);
    if (!item)
        return NULL;
    r->copied = dgm_list_grow(r->scratch, r->copied, r->n, sizeof *r->copied);
    r->copied[r->n] = (struct copied){.bytes = dgm_json_text_in(r->scratch, item).n};
    if (r->copied[r->n].bytes <= k->room.bytes) /* else it is refused */
        r->copied[r->n].item = dgm_json_copy(k->op->arena, item);
    dgm_map_put(&r->by_id, id, r->n);
    return &r->copied[r->n++];
}

/* False: it was answered. */
static bool resolve_one(struct resolving *k, struct reading *r, size_t i, dgm_str id)
{
    struct copied *found = copy_item(k, r, id);
    if (!found) {
        fail_item(k, id);
        return false;
    }
    if (found->bytes > k->room.bytes) {
        fail_size(k, "the referenced items", k->room.limit, k->max);
        return false;
    }
    k->room.bytes -= found->bytes;
    k->items[i] = found->item;
    k->resolved[i] = true;
    return true;
}

/* All references to this response. False: it was answered. */
static bool resolve_all(struct resolving *k, struct reading *r)
{
    for (size_t i = k->i; i < k->n; i++) {
        if (k->resolved[i] || !is_reference(k->items[i]))
            continue;
        dgm_str id = dgm_json_str_member(k->items[i], "id");
        if (dgm_str_eq(dgm_responses_of_item(r->scratch, id), k->id) && !resolve_one(k, r, i, id))
            return false;
    }
    return true;
}

/* ---- all of them ------------------------------------------------------------------------------------------------------- */

static void next(struct resolving *k);

static void on_found(void *arg, const dgm_found_turn *found)
{
    struct resolving *k = arg;
    if (!found) {
        fail_item(k, dgm_json_str_member(k->items[k->i], "id"));
        return;
    }
    dgm_auto(dgm_arena_free) dgm_arena *scratch = dgm_arena_new();
    struct reading r = {.scratch = scratch};
    dgm_map_init(&r.by_id);
    read_response(k, found, &r);
    bool go_on = resolve_all(k, &r);
    dgm_map_done(&r.by_id);
    if (go_on && k->read_bytes > DGM_MAX_OBJECT_BYTES) {
        fail_size(k, "the responses that the references lead to", "object_bytes",
                  DGM_MAX_OBJECT_BYTES);
        return;
    }
    if (go_on)
        next(k);
}

/* Clients refer to a request for approval beside their answer to it. The answer names it, so it is not read. */
static bool resolve_approval(struct resolving *k)
{
    dgm_str id = dgm_json_str_member(k->items[k->i], "id");
    dgm_member members[] = {
        {DGM_STR("type"), dgm_json_make_string(k->op->arena, DGM_STR("mcp_approval_request"))},
        {DGM_STR("id"), dgm_json_make_string(k->op->arena, id)}};
    if (!dgm_responses_is_approval_id(id))
        return false;
    k->items[k->i] = dgm_json_object(k->op->arena, members, 2);
    k->resolved[k->i] = true;
    return true;
}

static void next(struct resolving *k)
{
    while (k->i < k->n &&
           (k->resolved[k->i] || !is_reference(k->items[k->i]) || resolve_approval(k)))
        k->i++;
    if (k->i == k->n) {
        k->done(k->arg);
        return;
    }
    dgm_str id = dgm_json_str_member(k->items[k->i], "id");
    k->id = dgm_responses_of_item(k->op->arena, id);
    if (k->id.n)
        dgm_responses_find(k->op, k->id, on_found, k);
    else
        fail_item(k, id);
}

void dgm_responses_resolve(struct responses_op *op, yyjson_val **items, size_t n, const char *param,
                           struct responses_room room, responses_on_done done, void *arg)
{
    size_t n_references = 0;
    dgm_err err = {0};
    for (size_t i = 0; i < n; i++)
        n_references += is_reference(items[i]);
    if (!n_references) {
        done(arg);
        return;
    }
    if (n_references > DGM_MAX_ITEM_REFERENCES) {
        dgm_fail(&err, DGM_TOO_LARGE, DGM_AT(NULL, dgm_str_from(param)),
                 "%zu item references, more than the limit item_references of %d", n_references,
                 DGM_MAX_ITEM_REFERENCES);
        dgm_responses_fail(op, &err);
        return;
    }
    struct resolving *k = dgm_new(op->arena, struct resolving);
    *k = (struct resolving){.op = op,
                            .items = items,
                            .n = n,
                            .resolved = dgm_new_n(op->arena, bool, n + 1),
                            .param = param,
                            .room = room,
                            .max = room.bytes,
                            .done = done,
                            .arg = arg};
    next(k);
}
