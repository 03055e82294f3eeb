/* wire/responses/responses_in.c - items that are read, as canonical events; see responses_in.h. */
#include "wire/responses/responses_in.h"
#include "base/limits.h"
#include "base/list.h"

typedef struct responses_in_item item;
typedef struct responses_decoder decoder;

static dgm_str responses_in_text_of(const yyjson_val *v, const char *name)
{
    return dgm_json_str_member(v, name);
}

/* ---- which item ---------------------------------------------------------------------------------------------- */

/* Our own ids get back what they were before they became OpenAI's. */
static dgm_str canonical(decoder *d, dgm_str id, const char *prefix)
{
    size_t n = strlen(prefix);
    if (d->ours && id.n > n && memcmp(id.p, prefix, n) == 0)
        id = (dgm_str){id.p + n, id.n - n};
    return dgm_arena_dup(d->arena, id);
}

static item *new_item(decoder *d)
{
    if (d->n_items >= DGM_MAX_LIST_ITEMS) {
        d->rc = dgm_fail(d->r->err, DGM_TOO_LARGE, NULL,
                         "more items than the limit list_items of %d", DGM_MAX_LIST_ITEMS);
        return NULL;
    }
    d->items = dgm_list_reserve(d->items, d->n_items, &d->cap_items, sizeof *d->items);
    d->last = d->n_items;
    d->items[d->n_items] =
        (item){.kind = RESPONSES_IN_OTHER, .part = -1, .origin = d->n_items, .speaker = d->n_items};
    return &d->items[d->n_items++];
}

static dgm_str index_key(decoder *d, yyjson_val *index)
{
    int64_t n;
    if (!yyjson_is_raw(index) || !dgm_json_int(index, &n))
        return (dgm_str){0};
    return dgm_arena_printf(d->r->arena, "#%lld", (long long)n);
}

/* Can an event about an item of this kind, with an id that is not known, be about `it`, which has the same index? */
static bool is_same_item(const item *it, enum responses_in_kind kind, enum responses_in_place place)
{
    if (!it->wire_id.n)
        return true;
    if (place == RESPONSES_IN_STARTS || (place == RESPONSES_IN_GOES_ON && it->done))
        return false;
    bool is_call = it->kind == RESPONSES_IN_CALL || it->kind == RESPONSES_IN_MCP;
    return it->kind == kind || (kind == RESPONSES_IN_CALL && is_call) ||
           (kind == RESPONSES_IN_OTHER && place == RESPONSES_IN_GOES_ON);
}

item *dgm_responses_in_find(decoder *d, yyjson_val *id, yyjson_val *index,
                            enum responses_in_kind kind, enum responses_in_place place)
{
    dgm_str wire_id = yyjson_is_str(id) ? dgm_json_str(id) : (dgm_str){0};
    if (d->rc)
        return NULL;
    if (wire_id.n && d->last < d->n_items && dgm_str_eq(d->items[d->last].wire_id, wire_id))
        return &d->items[d->last];
    dgm_str key = wire_id.n ? wire_id : index_key(d, index);
    size_t *known = key.n ? dgm_map_get(&d->ids, key) : NULL;
    if (!known && wire_id.n && (key = index_key(d, index)).n) {
        known = dgm_map_get(&d->ids, key); /* the index alone is right at some servers */
        if (known && !is_same_item(&d->items[*known], kind, place))
            known = NULL;
    }
    if (known) {
        d->last = *known;
        return &d->items[*known];
    }
    item *it = new_item(d);
    if (!it)
        return NULL;
    key = index_key(d, index);
    if (wire_id.n) {
        it->wire_id = dgm_arena_dup(d->arena, wire_id);
        dgm_map_put(&d->ids, it->wire_id, d->last);
    }
    if (key.n)
        dgm_map_put(&d->ids, dgm_arena_dup(d->arena, key), d->last);
    return it;
}

/* ---- beginning ------------------------------------------------------------------------------------------------- */

static dgm_str made_id(decoder *d, const char *letter)
{
    return dgm_arena_printf(d->arena, "%.*s-%s%u", DGM_P(d->run_id), letter, ++d->n_made);
}

dgm_str dgm_responses_in_id(decoder *d, char kind, dgm_str id)
{
    const char letter[] = {kind, 0};
    dgm_str key = dgm_arena_printf(d->arena, "%c%.*s", kind, DGM_P(id));
    while (!id.n || dgm_map_get(&d->taken, key)) {
        id = made_id(d, letter);
        key = dgm_arena_printf(d->arena, "%c%.*s", kind, DGM_P(id));
    }
    dgm_map_put(&d->taken, key, 0);
    return id;
}

static void begin_message(decoder *d, item *it)
{
    if (it->id.n)
        return;
    it->kind = RESPONSES_IN_MESSAGE;
    it->id = dgm_responses_in_id(d, 'm', canonical(d, it->wire_id, "msg_"));
    it->leads = d->ours && d->n_messages;
    it->lead = it->leads ? 2 : 0;
    d->n_messages++;
}

void dgm_responses_in_reasoning(decoder *d, item *it)
{
    if (it->id.n)
        return;
    it->kind = RESPONSES_IN_REASONING;
    it->id = dgm_responses_in_id(d, 't', canonical(d, it->wire_id, "rs_"));
}

/* Calls that follow one another belong to one message, until a result comes. */
static void begin_call(decoder *d, item *it, yyjson_val *v, bool mcp)
{
    dgm_str call_id = responses_in_text_of(v, "call_id"), name = responses_in_text_of(v, "name");
    if (it->was_started || !name.n)
        return;
    it->kind = mcp ? RESPONSES_IN_MCP : RESPONSES_IN_CALL;
    it->id = dgm_responses_in_id(d, 'c',
                                 call_id.n ? dgm_arena_dup(d->arena, call_id)
                                           : canonical(d, it->wire_id, mcp ? "mcp_" : "fc_"));
    if (d->after_result || !d->parent.n)
        d->parent = made_id(d, "m");
    d->after_result = false;
    dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_START};
    e.call.tool_call_id = it->id;
    e.call.name = name;
    e.call.parent_message_id = d->parent;
    it->open = it->was_started = d->said_anything = true;
    dgm_member type = {DGM_STR("type"), dgm_json_get(v, DGM_STR("type"))};
    dgm_extra custom = {DGM_FORMAT_RESPONSES, &type, 1};
    if (dgm_str_is(responses_in_text_of(v, "type"), "custom_tool_call"))
        e.extra = &custom;
    dgm_responses_in_out(d, &e);
}

static bool is_call(dgm_str type)
{
    return dgm_str_is(type, "function_call") || dgm_str_is(type, "custom_tool_call");
}

static enum responses_in_kind kind_of(yyjson_val *v)
{
    dgm_str type = responses_in_text_of(v, "type");
    return dgm_str_is(type, "message")     ? RESPONSES_IN_MESSAGE
           : dgm_str_is(type, "reasoning") ? RESPONSES_IN_REASONING
           : is_call(type)                 ? RESPONSES_IN_CALL
           : dgm_str_is(type, "mcp_call")  ? RESPONSES_IN_MCP
                                           : RESPONSES_IN_OTHER;
}

item *dgm_responses_in_item(decoder *d, yyjson_val *v, yyjson_val *index,
                            enum responses_in_place place)
{
    enum responses_in_kind kind = kind_of(v);
    item *it;
    if (kind ==
        RESPONSES_IN_OTHER) /* nothing of it was emitted: it is enough that it is complete */
        place = RESPONSES_IN_STARTS;
    it = dgm_responses_in_find(d, dgm_json_get(v, DGM_STR("id")), index, kind, place);
    dgm_str call_id = responses_in_text_of(v, "call_id");
    bool is_other_call = it && kind == RESPONSES_IN_CALL && it->was_started && call_id.n &&
                         !dgm_str_eq(it->id, call_id);
    if (is_other_call && place == RESPONSES_IN_RESPONSE && it->done)
        it = dgm_responses_in_find(d, dgm_json_get(v, DGM_STR("id")), index, kind,
                                   RESPONSES_IN_STARTS);
    return it;
}

void dgm_responses_in_begin(decoder *d, item *it, yyjson_val *v)
{
    dgm_str type = responses_in_text_of(v, "type");
    if (dgm_str_is(type, "message"))
        begin_message(d, it);
    else if (dgm_str_is(type, "reasoning"))
        dgm_responses_in_reasoning(d, it);
    else if (is_call(type) || dgm_str_is(type, "mcp_call"))
        begin_call(d, it, v, dgm_str_is(type, "mcp_call"));
}

/* ---- texts ------------------------------------------------------------------------------------------------------ */

/* Messages behind the first begin with a blank line, if we wrote them; or they go on with the one before. */
static void join(decoder *d, item *it, dgm_str text)
{
    bool fresh = !it->was_started && it->lead == 2 && text.n && text.p[0] != '\n';
    if (fresh && d->message < d->n_items && !d->items[d->message].open &&
        !d->items[d->message].is_withdrawn) {
        it->goes_on = true;
        it->lead = 0;
        it->id = d->items[d->message].id;
        it->origin = d->items[d->message].origin;
    }
}

static dgm_str whole_without_lead(decoder *d, item *it, dgm_str text)
{
    join(d, it, text);
    it->lead = 0;
    return it->leads && !it->goes_on && dgm_str_starts(text, DGM_STR("\n\n"))
               ? (dgm_str){text.p + 2, text.n - 2}
               : text;
}

static dgm_str without_lead(decoder *d, item *it, dgm_str text)
{
    join(d, it, text);
    while (it->lead && text.n && text.p[0] == '\n') {
        it->lead--;
        text = (dgm_str){text.p + 1, text.n - 1};
    }
    if (text.n)
        it->lead = 0;
    return text;
}

static void responses_in_say(decoder *d, item *it, dgm_str text)
{
    dgm_canon_event e = {.kind = DGM_CANON_TEXT_MESSAGE_START};
    if (!text.n)
        return;
    e.text.message_id = it->id;
    if (!it->open) {
        size_t *speaker = &d->items[it->origin].speaker; /* one at a time, in one message */
        if (d->items[*speaker].kind == RESPONSES_IN_MESSAGE)
            dgm_responses_in_close(d, &d->items[*speaker]);
        *speaker = (size_t)(it - d->items);
        e.text.role = DGM_CANON_ASSISTANT;
        dgm_responses_in_out(d, &e);
        d->parent = it->id;
        d->message = (size_t)(it - d->items);
        d->after_result = false;
        it->open = it->was_started = d->said_anything = true;
    }
    e.kind = DGM_CANON_TEXT_MESSAGE_CONTENT;
    e.text.role = DGM_CANON_ROLE_NONE;
    e.text.delta = text;
    dgm_sum_add(&it->said, text);
    dgm_responses_in_out(d, &e);
}

static int64_t index_of(yyjson_val *v)
{
    int64_t n;
    return yyjson_is_raw(v) && dgm_json_int(v, &n) ? n : 0;
}

void dgm_responses_in_part(item *it, yyjson_val *index)
{
    int64_t n = index_of(index);
    if (n != it->part)
        it->said_of_part = (dgm_sum){0};
    it->part = n;
}

void dgm_responses_in_text(decoder *d, item *it, dgm_str delta)
{
    begin_message(d, it);
    if (it->kind != RESPONSES_IN_MESSAGE)
        return;
    delta = without_lead(d, it, delta);
    if (!delta.n)
        return;
    dgm_sum_add(&it->said_of_part, delta);
    responses_in_say(d, it, delta);
}

void dgm_responses_in_whole_part(decoder *d, item *it, yyjson_val *index, dgm_str text)
{
    if (it->part >= 0 && index_of(index) < it->part)
        return; /* the item will tell */
    begin_message(d, it);
    dgm_responses_in_part(it, index);
    if (!it->part)
        text = whole_without_lead(d, it, text);
    if (dgm_sum_is_prefix(&it->said_of_part, text))
        dgm_responses_in_text(d, it, dgm_responses_in_rest(text, it->said_of_part.n));
}

/* The item's text differs from the deltas. */
static void responses_in_correct(decoder *d, item *it, dgm_str text)
{
    dgm_canon_message m = {.role = DGM_CANON_ASSISTANT,
                           .id = it->id,
                           .content = {.kind = DGM_CANON_CONTENT_TEXT, .text = text}};
    dgm_canon_event e = {.kind = DGM_CANON_MESSAGES_SNAPSHOT};
    e.snapshot.messages = (dgm_canon_messages){&m, 1};
    e.snapshot.changed = it->id;
    it->said = (dgm_sum){0};
    it->is_withdrawn = !text.n;
    dgm_sum_add(&it->said, text);
    dgm_responses_in_out(d, &e);
}

void dgm_responses_in_message(decoder *d, item *it, yyjson_val *v)
{
    yyjson_val *content = dgm_json_get(v, DGM_STR("content")), *part;
    size_t i, n;
    dgm_buf b;
    bool says = yyjson_is_str(content);
    begin_message(d, it);
    if (it->kind != RESPONSES_IN_MESSAGE)
        return;
    dgm_buf_init(&b, SIZE_MAX);
    if (says)
        dgm_buf_add_str(&b, dgm_json_str(content));
    yyjson_arr_foreach (content, i, n, part) {
        dgm_str refusal = responses_in_text_of(part, "refusal");
        if (dgm_str_is(responses_in_text_of(part, "type"), "refusal"))
            dgm_responses_in_refusal(d, it, refusal, true);
        else
            dgm_buf_add_str(&b, responses_in_text_of(part, "text"));
        says |= dgm_str_is(responses_in_text_of(part, "type"), "output_text");
    }
    dgm_str text = whole_without_lead(d, it, dgm_buf_str(&b));
    if (says && dgm_sum_is_prefix(&it->said, text))
        responses_in_say(d, it, dgm_responses_in_rest(text, it->said.n));
    else if (says && !it->goes_on)
        responses_in_correct(d, it, text);
    dgm_buf_done(&b);
}

void dgm_responses_in_refusal(decoder *d, item *it, dgm_str text, bool whole)
{
    size_t at = (size_t)(it - d->items);
    begin_message(d, it);
    if (it->kind != RESPONSES_IN_MESSAGE)
        return;
    if (whole && d->refused == at)
        dgm_buf_clear(&d->refusal);
    d->refused = at;
    dgm_buf_add_str(&d->refusal, text);
    if (d->refusal.over && !d->rc)
        d->rc = dgm_fail(d->r->err, DGM_TOO_LARGE, NULL,
                         "a refusal that is longer than the limit record_bytes of %zu",
                         DGM_MAX_RECORD_BYTES);
}

void dgm_responses_in_say_refusal(decoder *d)
{
    if (!d->refusal.n || d->refused >= d->n_items)
        return;
    item *it = &d->items[d->refused];
    responses_in_say(d, it, dgm_buf_str(&d->refusal));
    dgm_buf_clear(&d->refusal);
    dgm_responses_in_close(d, it);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

void dgm_responses_in_arguments(decoder *d, item *it, dgm_str text, bool whole)
{
    dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_ARGS};
    if (!it->open || (it->kind != RESPONSES_IN_CALL && it->kind != RESPONSES_IN_MCP))
        return; /* its name is not known yet: the item will tell all */
    if (whole && !dgm_sum_is_prefix(&it->said, text))
        return;
    if (whole)
        text = dgm_responses_in_rest(text, it->said.n);
    if (!text.n)
        return;
    e.call.tool_call_id = it->id;
    e.call.delta = text;
    dgm_sum_add(&it->said, text);
    dgm_responses_in_out(d, &e);
}

static void responses_emit_result(decoder *d, dgm_str call_id, dgm_str output, bool failed)
{
    dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_RESULT};
    dgm_member mark = {DGM_STR(DGM_META_ERROR), NULL};
    e.result.message_id = made_id(d, "r");
    e.result.tool_call_id = call_id;
    e.result.role = DGM_STR("tool");
    e.result.content = (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT,
                                           .text = output.p ? output : DGM_STR("")};
    if (failed) {
        mark.value = dgm_json_parse_trusted(d->r->arena, DGM_STR("true"));
        e.metadata = dgm_json_object(d->r->arena, &mark, 1);
    }
    dgm_responses_in_out(d, &e);
    d->after_result = true;
}

void dgm_responses_in_call(decoder *d, item *it, yyjson_val *v, bool mcp)
{
    yyjson_val *arguments = dgm_json_get(v, DGM_STR("arguments"));
    yyjson_val *output = dgm_json_non_null(v, "output"), *error = dgm_json_non_null(v, "error");
    if (!arguments)
        arguments = dgm_json_get(v, DGM_STR("input"));
    begin_call(d, it, v, mcp);
    if (arguments && !yyjson_is_null(arguments))
        dgm_responses_in_arguments(d, it, dgm_content_value_text(d->r->arena, arguments), true);
    dgm_responses_in_close(d, it);
    bool failed = error;
    if (it->kind == RESPONSES_IN_MCP && it->was_started && !it->answered && (failed || output)) {
        it->answered = true;
        responses_emit_result(d, it->id,
                              dgm_content_value_text(d->r->arena, failed ? error : output), failed);
    }
}

/* Servers that run tools themselves show it in this way. */
void dgm_responses_in_output(decoder *d, yyjson_val *v)
{
    dgm_str call_id = responses_in_text_of(v, "call_id");
    for (size_t i = 0; i < d->n_items; i++) {
        if (d->items[i].kind != RESPONSES_IN_CALL || d->items[i].answered ||
            !dgm_str_eq(d->items[i].id, call_id))
            continue;
        d->items[i].answered = true;
        responses_emit_result(
            d, d->items[i].id,
            dgm_content_value_text(d->r->arena, dgm_json_get(v, DGM_STR("output"))), false);
    }
}
