/*
 * frontend/openai/conversations_front_items.c - the items of a conversation.
 *
 * The messages of its tasks, as items. An item that was added by hand follows the message that was the last one then.
 */
#include "base/map.h"
#include "frontend/openai/responses_front_int.h"

/* ---- what was put in by hand --------------------------------------------------------------------------------------------- */

void dgm_conversation_items_of(dgm_arena *a, yyjson_val *body, yyjson_val ***ret_items,
                               size_t *ret_n)
{
    yyjson_val *list = dgm_json_non_null(body, "items"), *e;
    size_t i, n;
    *ret_items = dgm_new_n(a, yyjson_val *, yyjson_arr_size(list) + 1);
    *ret_n = 0;
    yyjson_arr_foreach (list, i, n, e)
        (*ret_items)[(*ret_n)++] = e;
}

bool dgm_conversation_can_take(struct responses_op *op, yyjson_val *const *items, size_t n)
{
    dgm_err err = {0};
    dgm_reader r = dgm_turn_reader(op->x, NULL, &err); /* every item has an id */
    dgm_canon_messages messages;
    yyjson_val *list = dgm_responses_build_items(op->arena, items, n, DGM_STR("added"));
    if (!dgm_codec_responses.read_messages(&r, list, DGM_AT_LIT(NULL, "items"), &messages))
        return true;
    dgm_responses_fail(op, &err);
    return false;
}

yyjson_val *dgm_conversation_with(dgm_arena *a, yyjson_val *added, yyjson_val **items,
                                  size_t n_items, dgm_str last_message)
{
    dgm_str scope = dgm_responses_new_scope(a);
    dgm_json_build b = dgm_json_build_start(a);
    yyjson_val *e;
    size_t i, n;
    dgm_json_build_array(&b, NULL);
    yyjson_arr_foreach (added, i, n, e)
        dgm_json_build_value(&b, NULL, e);
    for (i = 0; i < n_items; i++) {
        dgm_json_build_object(&b, NULL);
        dgm_json_build_str(&b, "after", last_message);
        dgm_responses_build_item(&b, "item", items[i], scope, "c", i);
        dgm_json_build_close(&b);
    }
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

void dgm_conversation_added_since(dgm_arena *a, const struct conversation *c, dgm_str last_message,
                                  yyjson_val ***ret_items, size_t *ret_n)
{
    yyjson_val *e;
    size_t i, n;
    dgm_map gone;
    dgm_map_init(&gone);
    yyjson_arr_foreach (c->gone, i, n, e)
        dgm_map_put(&gone, dgm_json_str(e), 0);
    *ret_items = dgm_new_n(a, yyjson_val *, yyjson_arr_size(c->added) + 1);
    *ret_n = 0;
    yyjson_arr_foreach (c->added, i, n, e) {
        yyjson_val *item = dgm_json_get(e, DGM_STR("item"));
        if (dgm_str_eq(dgm_json_str_member(e, "after"), last_message) &&
            !dgm_map_get(&gone, dgm_json_str_member(item, "id")))
            (*ret_items)[(*ret_n)++] = item;
    }
    dgm_map_done(&gone);
}

/* ---- all of them ---------------------------------------------------------------------------------------------------------- */

struct listing {
    dgm_arena *arena;
    dgm_map gone;          /* ids of items */
    dgm_map places;        /* of messages, from 1 */
    yyjson_arr_iter added; /* by hand */
    yyjson_val *next;      /* of it; NULL: no more */
    dgm_responses_list list;
};

/* Items from that index on, except deleted ones. */
static void remove_deleted(struct listing *l, size_t from)
{
    dgm_responses_list *list = &l->list;
    size_t n = from;
    for (size_t i = from; i < list->n; i++) {
        if (dgm_map_get(&l->gone, list->ids[i]))
            continue;
        list->ids[n] = list->ids[i];
        list->items[n++] = list->items[i];
    }
    list->n = n;
}

/* Items that were added after a message of this place or before it, or after one that is unknown. */
static void add_added(struct listing *l, size_t place)
{
    for (; l->next; l->next = yyjson_arr_iter_next(&l->added)) {
        size_t *at = dgm_map_get(&l->places, dgm_json_str_member(l->next, "after"));
        if (at && *at > place)
            return;
        dgm_responses_list_add(l->arena, &l->list, dgm_json_get(l->next, DGM_STR("item")));
        remove_deleted(l, l->list.n - 1);
    }
}

dgm_responses_list dgm_conversation_items(dgm_arena *a, const struct conversation *c,
                                          const dgm_canon_messages *said)
{
    struct listing l = {.arena = a, .added = yyjson_arr_iter_with(c->added)};
    yyjson_val *e;
    size_t i, n;
    dgm_map_init(&l.gone);
    dgm_map_init(&l.places);
    yyjson_arr_foreach (c->gone, i, n, e)
        dgm_map_put(&l.gone, dgm_json_str(e), 0);
    for (i = 0; i < said->n; i++)
        dgm_map_put(&l.places, said->at[i].id, i + 1);
    l.next = yyjson_arr_iter_next(&l.added);
    add_added(&l, 0);
    for (i = 0; i < said->n; i++) {
        n = l.list.n;
        dgm_responses_list_message(a, &l.list, &said->at[i]);
        remove_deleted(&l, n);
        add_added(&l, i + 1);
    }
    dgm_map_done(&l.gone);
    dgm_map_done(&l.places);
    return l.list;
}

/* ---- operations ------------------------------------------------------------------------------------------------------------ */

struct looking {
    struct responses_op *op;
    struct conversation c;
    const dgm_turn_history *history; /* while `then` is called */
    void (*then)(struct looking *k, const dgm_canon_messages *said);
    yyjson_val **items; /* to be added */
    size_t n;
};

static void conversation_items_on_history(dgm_code code, const dgm_turn_history *history,
                                          const dgm_err *err, void *arg)
{
    struct looking *k = arg;
    if (code) {
        dgm_responses_fail(k->op, err);
    } else {
        k->history = history;
        k->then(k, &history->messages);
    }
}

static void on_found(void *arg, const struct conversation *c)
{
    struct looking *k = arg;
    k->c = *c;
    dgm_turn_get_sent_history(k->op->q.turns, k->op->arena, k->op->q.owner, (dgm_str){0}, c->id,
                              conversation_items_on_history, k);
}

static void look(struct responses_op *op,
                 void (*then)(struct looking *, const dgm_canon_messages *))
{
    struct looking *k = dgm_new(op->arena, struct looking);
    k->op = op;
    k->then = then;
    dgm_conversation_find(op, op->id, NULL, on_found, k);
}

static void list_found(struct looking *k, const dgm_canon_messages *said)
{
    dgm_responses_list list = dgm_conversation_items(k->op->arena, &k->c, said);
    dgm_responses_send_page(k->op, &list, dgm_turn_take_hold(k->history));
}

void dgm_conversation_list_items(const dgm_front_request *q)
{
    struct responses_op *op = dgm_responses_new_op(q);
    look(op, list_found);
}

/* The last n of those that were added, as they are now. */
static void respond_added(void *arg)
{
    struct looking *k = arg;
    dgm_responses_list list = {0};
    dgm_responses_page page = {.limit = SIZE_MAX, .ascending = true};
    size_t n = yyjson_arr_size(k->c.added);
    dgm_err err = {0};
    dgm_buf b;
    for (size_t i = n - k->n; i < n; i++) {
        yyjson_val *item = dgm_json_get(yyjson_arr_get(k->c.added, i), DGM_STR("item"));
        dgm_responses_list_add(k->op->arena, &list, item);
    }
    dgm_buf_init(&b, SIZE_MAX);
    dgm_responses_put_page(&b, &list, &page, &err);
    dgm_responses_respond(k->op, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

static void add_found(struct looking *k, const dgm_canon_messages *said)
{
    k->c.added = dgm_conversation_with(k->op->arena, k->c.added, k->items, k->n,
                                       said->n ? said->at[said->n - 1].id : (dgm_str){0});
    dgm_conversation_keep(k->op, &k->c, respond_added, k);
}

static void on_resolved(void *arg)
{
    struct looking *k = arg;
    if (dgm_conversation_can_take(k->op, k->items, k->n))
        dgm_conversation_find(k->op, k->op->id, NULL, on_found, k);
}

void dgm_conversation_add_items(const dgm_front_request *q)
{
    struct responses_op *op = dgm_responses_new_op(q);
    struct looking *k = dgm_new(op->arena, struct looking);
    if (!dgm_responses_read_body(op, dgm_responses_conversation_items_rules))
        return;
    k->op = op;
    k->then = add_found;
    dgm_conversation_items_of(op->arena, op->body, &k->items, &k->n);
    struct responses_room room = {DGM_MAX_NOTE_BYTES, "note_bytes"};
    dgm_responses_resolve(op, k->items, k->n, "items", room, on_resolved, k);
}

/* Its place in the list; the length: it is missing, and the exchange has its response. */
static size_t find_item(struct responses_op *op, const dgm_responses_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        if (dgm_str_eq(list->ids[i], op->item))
            return i;
    }
    dgm_responses_fail_missing(op, "Item", op->item);
    return list->n;
}

static void give_found(struct looking *k, const dgm_canon_messages *said)
{
    dgm_responses_list list = dgm_conversation_items(k->op->arena, &k->c, said);
    size_t i = find_item(k->op, &list);
    if (i < list.n)
        dgm_responses_respond(k->op, list.items[i]);
}

void dgm_conversation_get_item(const dgm_front_request *q)
{
    struct responses_op *op = dgm_responses_new_op(q);
    look(op, give_found);
}

static void respond_deleted(void *arg)
{
    struct looking *k = arg;
    dgm_conversation_respond(k->op, &k->c);
}

static void delete_found(struct looking *k, const dgm_canon_messages *said)
{
    dgm_responses_list list = dgm_conversation_items(k->op->arena, &k->c, said);
    dgm_json_build b = dgm_json_build_start(k->op->arena);
    yyjson_val *e;
    size_t at = find_item(k->op, &list), i, n;
    if (at == list.n)
        return;
    dgm_json_build_array(&b, NULL);
    yyjson_arr_foreach (k->c.gone, i, n, e)
        dgm_json_build_value(&b, NULL, e);
    dgm_json_build_str(&b, NULL, list.ids[at]);
    dgm_json_build_close(&b);
    k->c.gone = dgm_json_build_end(&b);
    dgm_conversation_keep(k->op, &k->c, respond_deleted, k);
}

/* It is not listed any more. */
void dgm_conversation_delete_item(const dgm_front_request *q)
{
    struct responses_op *op = dgm_responses_new_op(q);
    look(op, delete_found);
}
