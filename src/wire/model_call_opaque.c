/* wire/model_call_opaque.c - see model_call_int.h: the values that a model's server wants back. */
#include "base/limits.h"
#include "wire/model_call_int.h"

void dgm_model_opaque_init(dgm_model_opaque *o)
{
    *o = (dgm_model_opaque){0};
    dgm_buf_init(&o->reasoning, DGM_MAX_FINAL_TEXT_BYTES);
    dgm_buf_init(&o->details, DGM_MAX_FINAL_TEXT_BYTES);
    dgm_buf_init(&o->items, DGM_MAX_FINAL_TEXT_BYTES);
    dgm_buf_init(&o->calls, DGM_MAX_FINAL_TEXT_BYTES);
}

void dgm_model_opaque_done(dgm_model_opaque *o)
{
    dgm_buf_done(&o->reasoning);
    dgm_buf_done(&o->details);
    dgm_buf_done(&o->items);
    dgm_buf_done(&o->calls);
}

static void opaque_next(dgm_buf *list)
{
    if (list->n)
        dgm_buf_add_char(list, ',');
}

/* Only encrypted ones are needed: OpenRouter's providers check them, and a text alone is not checked. */
static bool opaque_is_signed(const yyjson_val *detail)
{
    return dgm_json_non_null(detail, "data") || dgm_json_non_null(detail, "signature");
}

void dgm_model_opaque_add_details(dgm_model_opaque *o, const yyjson_val *value)
{
    yyjson_val *choice = yyjson_arr_get_first(dgm_json_get(value, DGM_STR("choices"))), *e;
    yyjson_val *delta = dgm_json_non_null(choice, "delta");
    size_t i, n;
    if (!delta)
        delta = dgm_json_non_null(choice, "message");
    yyjson_val *details = dgm_json_get(delta, DGM_STR("reasoning_details"));
    yyjson_arr_foreach (details, i, n, e) {
        o->has_encrypted |= opaque_is_signed(e);
        opaque_next(&o->details);
        dgm_json_put(&o->details, e);
    }
}

void dgm_model_opaque_add_item(dgm_model_opaque *o, const yyjson_val *item)
{
    dgm_str type = dgm_json_str_member(item, "type");
    bool is_call = dgm_str_is(type, "function_call") || dgm_str_is(type, "custom_tool_call");
    bool is_encrypted = dgm_json_str_member(item, "encrypted_content").n > 0;
    dgm_str phase = dgm_json_str_member(item, "phase");
    o->n_items++;
    if (!is_call && !is_encrypted && !dgm_str_is(type, "message"))
        return;
    opaque_next(&o->items);
    if (is_encrypted) {
        o->has_encrypted = true;
        dgm_json_put(&o->items, item);
    } else if (is_call) {
        dgm_buf_add_lit(&o->items, "{\"call\":");
        dgm_json_put_str(&o->items, dgm_json_str_member(item, "call_id"));
        dgm_buf_printf(&o->items, ",\"index\":%zu}", o->n_call_items++);
    } else {
        dgm_buf_add_lit(&o->items, "{\"message\":true");
        if (phase.n) {
            o->has_phase = true;
            dgm_buf_add_lit(&o->items, ",\"phase\":");
            dgm_json_put_str(&o->items, phase);
        }
        dgm_buf_add_char(&o->items, '}');
    }
}

/* Items in order: of the events, or, of a server that sends no events for items, of the response. */
void dgm_model_opaque_add_items(dgm_model_opaque *o, const yyjson_val *value)
{
    yyjson_val *response = dgm_json_get(value, DGM_STR("response")), *e;
    size_t i, n;
    if (dgm_str_is(dgm_json_str_member(value, "type"), "response.output_item.done"))
        dgm_model_opaque_add_item(o, dgm_json_get(value, DGM_STR("item")));
    if (o->n_items)
        return;
    yyjson_val *output = dgm_json_get(response ? response : value, DGM_STR("output"));
    yyjson_arr_foreach (output, i, n, e)
        dgm_model_opaque_add_item(o, e);
}

void dgm_model_opaque_add_call(dgm_model_opaque *o, dgm_str id, bool is_custom,
                               const dgm_json *extra)
{
    size_t index = o->n_calls++;
    if (!is_custom && !extra)
        return;
    opaque_next(&o->calls);
    dgm_buf_add_lit(&o->calls, "{\"id\":");
    dgm_json_put_str(&o->calls, id);
    dgm_buf_printf(&o->calls, ",\"index\":%zu", index);
    if (is_custom)
        dgm_buf_add_lit(&o->calls, ",\"custom\":true");
    if (extra) {
        dgm_buf_add_lit(&o->calls, ",\"extra\":");
        dgm_json_put(&o->calls, extra);
    }
    dgm_buf_add_char(&o->calls, '}');
}

static void opaque_put_list(dgm_buf *b, const char *name, const dgm_buf *elements)
{
    if (!elements->n || elements->over)
        return;
    dgm_buf_printf(b, ",\"%s\":[", name);
    dgm_buf_add_str(b, dgm_buf_str(elements));
    dgm_buf_add_char(b, ']');
}

dgm_str dgm_model_opaque_text(const dgm_model_opaque *o, dgm_model_api api, dgm_str source,
                              dgm_arena *a)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_printf(&b, "{\"api\":\"%s\"", dgm_model_api_names[api]);
    if (source.n) {
        dgm_buf_add_lit(&b, ",\"source\":");
        dgm_json_put_str(&b, source);
    }
    size_t empty = b.n;
    if (o->reasoning.n && !o->reasoning.over) {
        dgm_buf_add_lit(&b, ",\"reasoning\":");
        dgm_json_put_str(&b, dgm_buf_str(&o->reasoning));
    }
    if (o->has_encrypted)
        opaque_put_list(&b, "details", &o->details);
    if (o->has_encrypted || o->has_phase)
        opaque_put_list(&b, "items", &o->items);
    opaque_put_list(&b, "calls", &o->calls);
    dgm_str text = {0};
    if (b.n > empty) {
        dgm_buf_add_char(&b, '}');
        text = dgm_arena_dup(a, dgm_buf_str(&b));
    }
    dgm_buf_done(&b);
    return text;
}
