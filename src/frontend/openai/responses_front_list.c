/* frontend/openai/responses_front_list.c - pages of items. */
#include "base/list.h"
#include "frontend/openai/responses_front_int.h"

#define DEFAULT_LIMIT 20
#define MAX_LIMIT 100

void responses_list_add(dgm_arena *a, struct responses_list *list, dgm_str item, dgm_str id)
{
    list->items = dgm_list_grow(a, list->items, list->n, sizeof *list->items);
    list->ids = dgm_list_grow(a, list->ids, list->n, sizeof *list->ids);
    list->items[list->n] = item;
    list->ids[list->n++] = id;
}

struct responses_list responses_list_of(dgm_arena *a, yyjson_val *items)
{
    struct responses_list list = {0};
    yyjson_val *e;
    size_t i, n;
    yyjson_arr_foreach (items, i, n, e)
        responses_list_add(a, &list, dgm_json_text_in(a, e), dgm_json_str_member(e, "id"));
    return list;
}

dgm_code responses_read_page(dgm_str limit, dgm_str order, dgm_str after,
                             struct responses_page *ret, dgm_err *err)
{
    struct responses_page page = {.limit = DEFAULT_LIMIT, .after = after};
    if (limit.p) {
        page.limit = 0;
        for (size_t i = 0; i < limit.n && i < 4; i++) {
            if (limit.p[i] < '0' || limit.p[i] > '9' || page.limit > MAX_LIMIT) {
                page.limit = 0;
                break;
            }
            page.limit = page.limit * 10 + (size_t)(limit.p[i] - '0');
        }
        if (!page.limit || page.limit > MAX_LIMIT)
            return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "limit"), "expected 1 to %d",
                            MAX_LIMIT);
    }
    page.ascending = dgm_str_is(order, "asc");
    if (order.p && !page.ascending && !dgm_str_is(order, "desc"))
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "order"),
                        "expected \"asc\" or \"desc\"");
    *ret = page;
    return DGM_OK;
}

/* The place of an item in the order of the page. */
static size_t place(const struct responses_list *list, const struct responses_page *page, size_t i)
{
    return page->ascending ? i : list->n - 1 - i;
}

static void put_id(dgm_buf *b, const char *name, dgm_str id)
{
    dgm_buf_printf(b, ",\"%s\":", name);
    if (id.p)
        dgm_json_put_str(b, id);
    else
        dgm_buf_add_lit(b, "null");
}

dgm_code responses_put_page(dgm_buf *b, const struct responses_list *list,
                            const struct responses_page *page, dgm_err *err)
{
    size_t from = 0, n;
    while (page->after.n && from < list->n &&
           !dgm_str_eq(list->ids[place(list, page, from)], page->after))
        from++;
    if (page->after.n && from++ == list->n)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "after"),
                        "unknown item id: the list does not have it");
    n = list->n - from < page->limit ? list->n - from : page->limit;
    dgm_buf_add_lit(b, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < n; i++) {
        if (i && b->n + list->items[place(list, page, from + i)].n > DGM_MAX_PAGE_BYTES) {
            n = i; /* has_more is true then */
            break;
        }
        if (i)
            dgm_buf_add_char(b, ',');
        dgm_buf_add_str(b, list->items[place(list, page, from + i)]);
    }
    dgm_buf_add_char(b, ']');
    put_id(b, "first_id", n ? list->ids[place(list, page, from)] : (dgm_str){0});
    put_id(b, "last_id", n ? list->ids[place(list, page, from + n - 1)] : (dgm_str){0});
    dgm_buf_printf(b, ",\"has_more\":%s}", from + n < list->n ? "true" : "false");
    if (b->over)
        return dgm_fail(err, DGM_TOO_LARGE, DGM_AT_LIT(NULL, "limit"),
                        "the page is longer than the limit output_bytes of %zu: ask for fewer",
                        DGM_MAX_OUTPUT_BYTES);
    return DGM_OK;
}

void responses_give_page(struct responses_op *op, const struct responses_list *list,
                         dgm_turn_hold *hold)
{
    struct responses_page page = {0};
    dgm_err err = {0};
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_OUTPUT_BYTES);
    if (responses_read_page(dgm_turn_query(op->x, "limit"), dgm_turn_query(op->x, "order"),
                            dgm_turn_query(op->x, "after"), &page, &err) ||
        responses_put_page(&b, list, &page, &err)) {
        dgm_turn_release_hold(hold);
        responses_fail(op, &err);
    } else {
        dgm_turn_respond_held(op->x, DGM_STR("application/json"), NULL, 0, &b, hold);
    }
    dgm_buf_done(&b);
}
