/* wire/aisdk/aisdk_decode_parts.c - decodes the parts of a stream that are not text: calls, results, data, files. */
#include "base/list.h"
#include "canon/message_content.h"
#include "wire/aisdk/aisdk_int.h"

typedef struct aisdk_decoder D;
typedef struct aisdk_read_call C;

static C *aisdk_decode_parts_find_call(const D *d, dgm_str id)
{
    size_t *at = dgm_map_get(&d->by_id, id);
    return at ? &d->calls[*at] : NULL;
}

static C *aisdk_decode_parts_start_call(D *d, dgm_str id, dgm_str name)
{
    d->calls = dgm_list_reserve(d->calls, d->n_calls, &d->cap_calls, sizeof *d->calls);
    C *c = &d->calls[d->n_calls];
    *c = (C){.id = dgm_arena_dup(d->arena, id), .name = dgm_arena_dup(d->arena, name)};
    dgm_map_put(&d->by_id, c->id, d->n_calls++);
    if (!d->parent.n)
        d->parent = dgm_aisdk_made_id(d, 'm');
    dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_START};
    e.call.tool_call_id = c->id;
    e.call.name = name;
    e.call.parent_message_id = d->parent;
    dgm_aisdk_emit(d, &e);
    return c;
}

static void aisdk_decode_parts_add_arguments(D *d, C *c, dgm_str text, bool whole)
{
    if (!text.n || c->ended)
        return;
    dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_ARGS};
    e.call.tool_call_id = c->id;
    e.call.delta = text;
    e.call.whole = whole;
    c->has_text = true;
    dgm_aisdk_emit(d, &e);
}

static void aisdk_decode_parts_end_call(D *d, C *c)
{
    if (c->ended)
        return;
    if (!c->has_text)
        aisdk_decode_parts_add_arguments(d, c, DGM_STR("{}"), true);
    c->ended = true;
    dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_END};
    e.call.tool_call_id = c->id;
    dgm_aisdk_emit(d, &e);
}

static void result(D *d, C *c, const dgm_json *output, dgm_str error)
{
    dgm_arena *a = d->r->arena;
    aisdk_decode_parts_end_call(d, c);
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
    dgm_aisdk_emit(d, &e);
}

dgm_code dgm_aisdk_call_chunk(D *d, yyjson_val *v, dgm_str what)
{
    dgm_str id = dgm_json_str_member(v, "toolCallId"), name = dgm_json_str_member(v, "toolName");
    C *c = id.p ? aisdk_decode_parts_find_call(d, id) : NULL;
    bool input = dgm_str_starts(what, DGM_STR("input-"));
    if (!id.p)
        return dgm_aisdk_bad(d, "toolCallId", "missing: the id of the call");
    if (!c && input && !dgm_str_is(what, "input-delta")) {
        if (!name.p)
            return dgm_aisdk_bad(d, "toolName", "missing: the name of the tool");
        c = aisdk_decode_parts_start_call(d, id, name);
    }
    if (!c)
        return dgm_aisdk_bad(d, "toolCallId", "unknown call id: no call with this id was started");
    c->by_agent |= yyjson_is_true(dgm_json_get(v, DGM_STR("providerExecuted")));
    dgm_str error = dgm_json_str_member(v, "errorText");
    if (dgm_str_is(what, "input-delta")) {
        aisdk_decode_parts_add_arguments(d, c, dgm_json_str_member(v, "inputTextDelta"), false);
    } else if (dgm_str_is(what, "input-available") || dgm_str_is(what, "input-error")) {
        dgm_str arguments = dgm_content_arguments(d->r->arena, dgm_json_get(v, DGM_STR("input")));
        if (!c->has_text)
            aisdk_decode_parts_add_arguments(d, c, arguments, true);
        c->arguments = dgm_arena_dup(d->arena, arguments);
        aisdk_decode_parts_end_call(d, c);
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
        aisdk_decode_parts_end_call(d, &d->calls[i]);
}

/* ---- progress, activities, state, artifacts and files ---------------------------------------------------------- */

static void activity(D *d, dgm_str id, dgm_str type, const dgm_json *content)
{
    dgm_canon_event e = {.kind = DGM_CANON_ACTIVITY_SNAPSHOT};
    if (!yyjson_obj_size((yyjson_val *)(uintptr_t)content) || !type.p)
        return;
    e.activity.message_id = id;
    e.activity.activity_type = type;
    e.activity.content = content;
    dgm_aisdk_emit(d, &e);
}

static void aisdk_decode_parts_custom(D *d, dgm_str name, const dgm_json *value)
{
    dgm_canon_event e = {.kind = DGM_CANON_CUSTOM};
    e.custom.name = name;
    e.custom.value = value;
    dgm_canon_artifact_from_custom(d->r->arena, d->r->mint, &e);
    dgm_aisdk_emit(d, &e);
}

/* As AG-UI's event has it, in case that it cannot be read. */
static void data_artifact(D *d, const dgm_json *it)
{
    dgm_member m = {DGM_STR("artifact"), it};
    if (yyjson_is_obj((yyjson_val *)(uintptr_t)it))
        aisdk_decode_parts_custom(d, DGM_STR(DGM_NAME_ARTIFACT),
                                  dgm_json_object(d->r->arena, &m, 1));
}

dgm_code dgm_aisdk_file_chunk(D *d, yyjson_val *v)
{
    dgm_canon_part part;
    dgm_code rc = dgm_aisdk_read_file(d->r, v, NULL, &part);
    dgm_str filename = rc ? (dgm_str){0} : dgm_json_str_member(part.metadata, "filename");
    if (rc)
        return d->rc = rc;
    bool has_bytes = part.source.kind == DGM_CANON_SOURCE_DATA;
    dgm_part file = {.kind = has_bytes ? DGM_PART_RAW : DGM_PART_URL,
                     .content = part.source.value,
                     .media_type = part.source.mime_type,
                     .filename = filename};
    dgm_artifact artifact = {.artifact_id = dgm_aisdk_made_id(d, 'f'), .parts = {&file, 1}};
    dgm_canon_event e = {.kind = DGM_CANON_ARTIFACT, .artifact = {.artifact = &artifact}};
    dgm_aisdk_emit(d, &e);
    return d->rc;
}

void dgm_aisdk_data_chunk(D *d, yyjson_val *v, dgm_str type)
{
    yyjson_val *data = dgm_json_get(v, DGM_STR("data"));
    dgm_canon_event e = {.kind = DGM_CANON_STATE_SNAPSHOT};
    dgm_str name = dgm_json_str_member(data, "name");
    if (dgm_str_is(type, AISDK_STATUS)) {
        activity(d, dgm_arena_printf(d->r->arena, "%.*s-status", DGM_P(d->run_id)),
                 DGM_STR(AISDK_A2A_STATUS), dgm_aisdk_status_content(d->r->arena, data));
    } else if (dgm_str_is(type, AISDK_ACTIVITY)) {
        dgm_str id = dgm_json_str_member(v, "id");
        activity(d, id.p ? id : dgm_aisdk_made_id(d, 'a'),
                 dgm_json_str_member(data, "activityType"), dgm_json_get(data, DGM_STR("content")));
    } else if (dgm_str_is(type, AISDK_STATE)) {
        e.state.snapshot = data;
        dgm_aisdk_emit(d, &e);
    } else if (dgm_str_is(type, AISDK_STATE_DELTA) && yyjson_is_arr(data)) {
        e.kind = DGM_CANON_STATE_DELTA;
        e.state_delta.patch = data;
        dgm_aisdk_emit(d, &e);
    } else if (dgm_str_is(type, AISDK_ARTIFACT)) {
        data_artifact(d, data);
    } else if (dgm_str_is(type, AISDK_CUSTOM) && name.p) {
        aisdk_decode_parts_custom(d, name, dgm_json_get(data, DGM_STR("value")));
    } else {
        d->r->n_unknown++;
    }
}
