/* wire/responses/responses_items_write.c - messages as items; items of requests with all their members;
 * pages of items. */
#include "base/limits.h"
#include "base/list.h"
#include "wire/responses/responses_int.h"

#define LIT(lit) dgm_buf_add_lit(w->out, lit)

/* A text member, unless the item has its own. */
static void put_status(dgm_writer *w, const dgm_extra *extra)
{
    if (!dgm_responses_extra(extra, DGM_STR("status")))
        LIT(",\"status\":\"completed\"");
}

/* The start of an item. has_id: requests have it, too. */
static void put_head(dgm_responses_items *to, dgm_str type, const char *prefix, dgm_str id,
                     bool has_id)
{
    dgm_writer *w = to->w;
    if (to->list) {
        bool has_prefix = dgm_str_starts(id, dgm_str_from(prefix));
        to->id = dgm_arena_join(to->list, dgm_str_from(has_prefix ? "" : prefix), id);
        LIT("{\"id\":");
        dgm_json_put_str(w->out, to->id);
        LIT(",\"type\":");
    } else {
        LIT("{\"type\":");
    }
    dgm_json_put_str(w->out, type);
    if (has_id && !to->list) {
        LIT(",\"id\":");
        dgm_responses_put_id(w->out, prefix, id);
    }
}

static void put_assistant(dgm_responses_items *to, const dgm_canon_message *m)
{
    static const char *const but[] = {"content", NULL};
    const dgm_json *content = dgm_responses_extra(m->extra, DGM_STR("content"));
    dgm_writer *w = to->w;
    put_head(to, DGM_STR("message"), "msg_", m->id, true);
    LIT(",\"role\":\"assistant\",\"content\":");
    if (content) {
        dgm_json_put(w->out, content);
    } else {
        LIT("[{\"type\":\"output_text\",\"text\":\"");
        dgm_json_put_chars(w->out, m->content.text);
        for (size_t i = 0; m->content.kind == DGM_CANON_CONTENT_PARTS && i < m->content.parts.n;
             i++)
            dgm_json_put_chars(w->out, m->content.parts.at[i].text);
        LIT("\",\"annotations\":[],\"logprobs\":[]}]");
    }
    put_status(w, m->extra);
    dgm_responses_put_rest(w, m->extra, but);
    dgm_buf_add_char(w->out, '}');
}

static void put_input(dgm_responses_items *to, const dgm_canon_message *m)
{
    static const char *const but[] = {"content", NULL};
    const dgm_json *content = dgm_responses_extra(m->extra, DGM_STR("content"));
    dgm_writer *w = to->w;
    put_head(to, DGM_STR("message"), "msg_", m->id, false);
    if (to->list)
        put_status(w, m->extra);
    LIT(",\"role\":\"");
    dgm_buf_add_str(w->out, m->role == DGM_CANON_SYSTEM      ? DGM_STR("system")
                            : m->role == DGM_CANON_DEVELOPER ? DGM_STR("developer")
                                                             : DGM_STR("user"));
    LIT("\",");
    if (!to->list && dgm_str_starts(m->id, DGM_STR("msg_"))) { /* OpenAI accepts only its own */
        LIT("\"id\":");
        dgm_json_put_str(w->out, m->id);
        dgm_buf_add_char(w->out, ',');
    }
    LIT("\"content\":");
    if (content)
        dgm_json_put(w->out, content);
    else
        dgm_responses_put_content(w, &m->content);
    dgm_responses_put_rest(w, m->extra, but);
    dgm_buf_add_char(w->out, '}');
}

static void responses_items_put_call(dgm_responses_items *to, const dgm_canon_call *c)
{
    static const char *const but[] = {"type", NULL}, *const but_id[] = {"type", "id", NULL};
    const dgm_json *type = dgm_responses_extra(c->extra, DGM_STR("type"));
    const dgm_json *id = dgm_responses_extra(c->extra, DGM_STR("id"));
    bool custom = type && dgm_str_is(dgm_json_str(type), "custom_tool_call");
    dgm_writer *w = to->w;
    put_head(to, custom ? DGM_STR("custom_tool_call") : DGM_STR("function_call"),
             id       ? ""
             : custom ? "ctc_"
                      : "fc_",
             id ? dgm_json_str(id) : c->id, !id);
    LIT(",\"call_id\":");
    dgm_json_put_str(w->out, c->id);
    LIT(",\"name\":");
    dgm_json_put_str(w->out, c->name);
    if (custom)
        LIT(",\"input\":");
    else
        LIT(",\"arguments\":");
    dgm_json_put_str(w->out, c->arguments.n ? c->arguments : DGM_STR("{}"));
    put_status(w, c->extra);
    dgm_responses_put_rest(w, c->extra, to->list ? but_id : but);
    dgm_buf_add_char(w->out, '}');
}

static void put_output(dgm_responses_items *to, const dgm_canon_message *m)
{
    static const char *const but[] = {"type", NULL};
    const dgm_json *type = dgm_responses_extra(m->extra, DGM_STR("type"));
    bool has_id = dgm_str_starts(m->id, DGM_STR("fc"));
    dgm_writer *w = to->w;
    put_head(to, type ? dgm_json_str(type) : DGM_STR("function_call_output"), has_id ? "" : "fco_",
             has_id ? m->id : m->tool_call_id, has_id);
    LIT(",\"call_id\":");
    dgm_json_put_str(w->out, m->tool_call_id);
    LIT(",\"output\":");
    if (m->content.kind == DGM_CANON_CONTENT_PARTS)
        dgm_responses_put_content(w, &m->content);
    else
        dgm_json_put_str(w->out, m->content.text.n ? m->content.text : m->error);
    dgm_responses_put_rest(w, m->extra, but);
    dgm_buf_add_char(w->out, '}');
}

static void put_reasoning(dgm_responses_items *to, const dgm_canon_message *m)
{
    dgm_writer *w = to->w;
    put_head(to, DGM_STR("reasoning"), "rs_", m->id, true);
    if (!dgm_responses_extra(m->extra, DGM_STR("summary"))) {
        LIT(",\"summary\":[");
        if (m->content.text.n) {
            LIT("{\"type\":\"summary_text\",\"text\":");
            dgm_json_put_str(w->out, m->content.text);
            dgm_buf_add_char(w->out, '}');
        }
        dgm_buf_add_char(w->out, ']');
    }
    if (m->encrypted_value.n) {
        LIT(",\"encrypted_content\":");
        dgm_json_put_str(w->out, m->encrypted_value);
    }
    dgm_responses_put_rest(w, m->extra, NULL);
    dgm_buf_add_char(w->out, '}');
}

static dgm_code write_assistant(const dgm_canon_message *m, dgm_responses_items *to)
{
    dgm_code rc = DGM_OK;
    bool has_content = m->content.text.n || m->content.kind == DGM_CANON_CONTENT_PARTS ||
                       dgm_responses_extra(m->extra, DGM_STR("content")) || !m->tool_calls.n;
    if (has_content) {
        put_assistant(to, m);
        rc = to->on_item(to->arg);
    }
    for (size_t i = 0; !rc && i < m->tool_calls.n; i++) {
        responses_items_put_call(to, &m->tool_calls.at[i]);
        rc = to->on_item(to->arg);
    }
    return rc;
}

dgm_code dgm_responses_write_items(const dgm_canon_messages *messages, dgm_responses_items *to)
{
    dgm_code rc = DGM_OK;
    for (size_t i = 0; !rc && i < messages->n; i++) {
        const dgm_canon_message *m = &messages->at[i];
        switch (m->role) {
        case DGM_CANON_ROLE_NONE:
        case DGM_CANON_ASSISTANT: rc = write_assistant(m, to); continue;
        case DGM_CANON_DEVELOPER:
        case DGM_CANON_SYSTEM:
        case DGM_CANON_USER: put_input(to, m); break;
        case DGM_CANON_TOOL: put_output(to, m); break;
        case DGM_CANON_REASONING: put_reasoning(to, m); break;
        case DGM_CANON_ACTIVITY:
            if (!dgm_str_is(m->activity_type, DGM_RESPONSES_ITEM))
                continue; /* progress */
            dgm_json_put(to->w->out, m->content.object);
            to->id = dgm_json_str_member(m->content.object, "id");
            break;
        }
        rc = to->on_item(to->arg);
    }
    return rc;
}

/* ---- items of requests ------------------------------------------------------------------------------------------- */

static const char *const item_id_prefixes[][2] = {
    {"message", "msg_"},
    {"function_call", "fc_"},
    {"reasoning", "rs_"},
    {"mcp_call", "mcp_"},
    {"mcp_approval_response", "mcpar_"},
    {"function_call_output", "fco_"},
    {"custom_tool_call", "ctc_"},
    {"custom_tool_call_output", "ctco_"},
    {NULL, "item_"},
};

void dgm_responses_build_item(dgm_json_build *b, const char *key, const yyjson_val *item,
                              dgm_str scope, const char *tag, size_t n)
{
    yyjson_obj_iter it = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)item);
    dgm_str type = dgm_json_str_member(item, "type");
    bool is_message = !type.n || dgm_str_is(type, "message");
    yyjson_val *text = is_message ? dgm_json_get(item, DGM_STR("content")) : NULL, *name;
    if (!type.n)
        type = DGM_STR("message");
    if (!yyjson_is_str(text))
        text = NULL;
    dgm_json_build_object(b, key);
    if (dgm_json_str_member(item, "id").n) {
        dgm_json_build_value(b, "id", dgm_json_get(item, DGM_STR("id")));
    } else {
        const char *const(*row)[2] = item_id_prefixes;
        while ((*row)[0] && !dgm_str_eq(type, dgm_str_from((*row)[0])))
            row++;
        dgm_json_build_lit(b, "id", dgm_responses_scoped_id(b->arena, (*row)[1], scope, tag, n).p);
    }
    dgm_json_build_str(b, "type", type);
    if (is_message && !dgm_json_get(item, DGM_STR("status")))
        dgm_json_build_lit(b, "status", "completed");
    if (text) { /* as the list of parts that it abbreviates */
        bool assistant = dgm_str_is(dgm_json_str_member(item, "role"), "assistant");
        dgm_json_build_array(b, "content");
        dgm_json_build_object(b, NULL);
        dgm_json_build_lit(b, "type", assistant ? "output_text" : "input_text");
        if (assistant) {
            dgm_json_build_array(b, "annotations");
            dgm_json_build_close(b);
            dgm_json_build_array(b, "logprobs");
            dgm_json_build_close(b);
        }
        dgm_json_build_value(b, "text", text);
        dgm_json_build_close(b);
        dgm_json_build_close(b);
    }
    while ((name = yyjson_obj_iter_next(&it))) {
        dgm_str member = dgm_json_str(name);
        if (!dgm_str_is(member, "id") && !dgm_str_is(member, "type") &&
            !(text && dgm_str_is(member, "content")))
            dgm_json_build_member(b, member, yyjson_obj_iter_get_val(name));
    }
    dgm_json_build_close(b);
}

yyjson_val *dgm_responses_build_items(dgm_arena *a, yyjson_val *const *items, size_t n,
                                      dgm_str scope)
{
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_array(&b, NULL);
    for (size_t i = 0; i < n; i++)
        dgm_responses_build_item(&b, NULL, items[i], scope, "i", i);
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

#define DEFAULT_LIMIT 20
#define MAX_LIMIT 100

static void list_add(dgm_arena *a, dgm_responses_list *list, dgm_str text, dgm_str id)
{
    list->items = dgm_list_grow(a, list->items, list->n, sizeof *list->items);
    list->ids = dgm_list_grow(a, list->ids, list->n, sizeof *list->ids);
    list->items[list->n] = text;
    list->ids[list->n++] = id;
}

void dgm_responses_list_add(dgm_arena *a, dgm_responses_list *list, const yyjson_val *item)
{
    list_add(a, list, dgm_json_text_in(a, item), dgm_json_str_member(item, "id"));
}

struct listing {
    dgm_responses_items items; /* its arena is that of the list */
    dgm_responses_list *list;
};

static dgm_code list_item(void *arg)
{
    struct listing *l = arg;
    dgm_buf *text = l->items.w->out;
    if (!text->over)
        list_add(l->items.list, l->list, dgm_arena_dup(l->items.list, dgm_buf_str(text)),
                 l->items.id);
    dgm_buf_clear(text);
    text->over = false;
    return DGM_OK;
}

void dgm_responses_list_message(dgm_arena *a, dgm_responses_list *list,
                                const dgm_canon_message *message)
{
    dgm_canon_messages one = {(dgm_canon_message *)(uintptr_t)message, 1};
    dgm_buf text;
    dgm_writer w = {.out = &text, .format = DGM_FORMAT_RESPONSES};
    struct listing l = {{.w = &w, .on_item = list_item, .list = a}, list};
    l.items.arg = &l;
    dgm_buf_init(&text, DGM_MAX_OUTPUT_BYTES);
    dgm_responses_write_items(&one, &l.items);
    dgm_buf_done(&text);
}

dgm_code dgm_responses_read_page(dgm_str limit, dgm_str order, dgm_str after,
                                 dgm_responses_page *ret, dgm_err *err)
{
    dgm_responses_page page = {.limit = DEFAULT_LIMIT, .after = after};
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
static size_t page_index(const dgm_responses_list *list, const dgm_responses_page *page, size_t i)
{
    return page->ascending ? i : list->n - 1 - i;
}

static void put_page_id(dgm_buf *b, const char *name, dgm_str id)
{
    dgm_buf_printf(b, ",\"%s\":", name);
    if (id.p)
        dgm_json_put_str(b, id);
    else
        dgm_buf_add_lit(b, "null");
}

dgm_code dgm_responses_put_page(dgm_buf *b, const dgm_responses_list *list,
                                const dgm_responses_page *page, dgm_err *err)
{
    size_t from = 0, n;
    while (page->after.n && from < list->n &&
           !dgm_str_eq(list->ids[page_index(list, page, from)], page->after))
        from++;
    if (page->after.n && from++ == list->n)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "after"),
                        "unknown item id: the list does not have it");
    n = list->n - from < page->limit ? list->n - from : page->limit;
    dgm_buf_add_lit(b, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < n; i++) {
        if (i && b->n + list->items[page_index(list, page, from + i)].n > DGM_MAX_PAGE_BYTES) {
            n = i; /* has_more is true then */
            break;
        }
        if (i)
            dgm_buf_add_char(b, ',');
        dgm_buf_add_str(b, list->items[page_index(list, page, from + i)]);
    }
    dgm_buf_add_char(b, ']');
    put_page_id(b, "first_id", n ? list->ids[page_index(list, page, from)] : (dgm_str){0});
    put_page_id(b, "last_id", n ? list->ids[page_index(list, page, from + n - 1)] : (dgm_str){0});
    dgm_buf_printf(b, ",\"has_more\":%s}", from + n < list->n ? "true" : "false");
    if (b->over)
        return dgm_fail(err, DGM_TOO_LARGE, DGM_AT_LIT(NULL, "limit"),
                        "the page is longer than the limit output_bytes of %zu: ask for fewer",
                        DGM_MAX_OUTPUT_BYTES);
    return DGM_OK;
}
