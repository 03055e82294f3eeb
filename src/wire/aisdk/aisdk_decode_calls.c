/* wire/aisdk/aisdk_decode_calls.c - calls and results of a stream. */
#include "base/list.h"
#include "canon/message_content.h"
#include "wire/aisdk/aisdk_int.h"

typedef struct aisdk_decoder D;
typedef struct aisdk_read_call C;

static C *find_call(const D *d, dgm_str id)
{
    size_t *at = dgm_map_get(&d->by_id, id);
    return at ? &d->calls[*at] : NULL;
}

static C *start_call(D *d, dgm_str id, dgm_str name)
{
    d->calls = dgm_list_reserve(d->calls, d->n_calls, &d->cap_calls, sizeof *d->calls);
    C *c = &d->calls[d->n_calls];
    *c = (C){.id = dgm_arena_dup(d->arena, id)};
    dgm_map_put(&d->by_id, c->id, d->n_calls++);
    if (!d->parent.n)
        d->parent = dgm_aisdk_made_id(d, 'm');
    dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_START};
    e.call.tool_call_id = c->id;
    e.call.name = name;
    e.call.parent_message_id = d->parent;
    dgm_aisdk_give(d, &e);
    return c;
}

static void add_arguments(D *d, C *c, dgm_str text, bool whole)
{
    if (!text.n || c->ended)
        return;
    dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_ARGS};
    e.call.tool_call_id = c->id;
    e.call.delta = text;
    e.call.whole = whole;
    c->has_text = true;
    dgm_aisdk_give(d, &e);
}

static void end_call(D *d, C *c)
{
    if (c->ended)
        return;
    if (!c->has_text)
        add_arguments(d, c, DGM_STR("{}"), true);
    c->ended = true;
    dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_END};
    e.call.tool_call_id = c->id;
    dgm_aisdk_give(d, &e);
}

static void result(D *d, C *c, const dgm_json *output, dgm_str error)
{
    dgm_arena *a = d->r->arena;
    end_call(d, c);
    if (c->answered)
        return;
    c->answered = true;
    dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_RESULT};
    e.result.message_id = dgm_aisdk_made_id(d, 'r');
    e.result.tool_call_id = c->id;
    e.result.content =
        (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT,
                            .text = error.p ? error : dgm_content_value_text(a, output)};
    if (error.p)
        e.metadata = dgm_json_parse_trusted(a, DGM_STR("{\"" DGM_META_ERROR "\":true}"));
    else if (!yyjson_is_str((yyjson_val *)(uintptr_t)output))
        e.result.value = output;
    dgm_aisdk_give(d, &e);
}

dgm_code dgm_aisdk_call_chunk(D *d, yyjson_val *v, dgm_str what)
{
    dgm_str id = dgm_json_str_member(v, "toolCallId"), name = dgm_json_str_member(v, "toolName");
    C *c = id.p ? find_call(d, id) : NULL;
    bool input = dgm_str_starts(what, DGM_STR("input-"));
    if (!id.p)
        return dgm_aisdk_bad(d, "toolCallId", "missing: the id of the call");
    if (!c && input && !dgm_str_is(what, "input-delta")) {
        if (!name.p)
            return dgm_aisdk_bad(d, "toolName", "missing: the name of the tool");
        c = start_call(d, id, name);
    }
    if (!c)
        return dgm_aisdk_bad(d, "toolCallId", "unknown call id: no call with this id was started");
    c->by_agent |= yyjson_is_true(dgm_json_get(v, DGM_STR("providerExecuted")));
    dgm_str error = dgm_json_str_member(v, "errorText");
    if (dgm_str_is(what, "input-delta")) {
        add_arguments(d, c, dgm_json_str_member(v, "inputTextDelta"), false);
    } else if (dgm_str_is(what, "input-available") || dgm_str_is(what, "input-error")) {
        if (!c->has_text)
            add_arguments(
                d, c, dgm_content_arguments(d->r->arena, dgm_json_get(v, DGM_STR("input"))), true);
        end_call(d, c);
    } else if (dgm_str_is(what, "output-available")) {
        if (!yyjson_is_true(dgm_json_get(v, DGM_STR("preliminary"))))
            result(d, c, dgm_json_get(v, DGM_STR("output")), (dgm_str){0});
    } else if (dgm_str_is(what, "output-error") || dgm_str_is(what, "output-denied")) {
        result(d, c, NULL, error.p ? error : DGM_STR("The call was denied"));
    }
    return d->rc;
}

void dgm_aisdk_end_calls(D *d)
{
    for (size_t i = 0; i < d->n_calls; i++)
        end_call(d, &d->calls[i]);
}
