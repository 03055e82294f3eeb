/* frontend/a2a/a2a_front_tools.c - the caller's tools in a message: data {"tools": [{name, description, parameters}]}. */
#include "base/limits.h"
#include "frontend/a2a/a2a_front_int.h"
#include "frontend/list_limits.h"
#include "model/calls.h"
#include "model/guard.h"
#include "json/build.h"

static dgm_code check_tool(yyjson_val *tool, const dgm_at *at, dgm_err *err)
{
    yyjson_val *name = dgm_json_get(tool, DGM_STR("name"));
    yyjson_val *description = dgm_json_non_null(tool, "description");
    yyjson_val *parameters = dgm_json_non_null(tool, "parameters");
    if (!yyjson_is_str(name) || !yyjson_get_len(name) || yyjson_get_len(name) > DGM_MAX_ID_BYTES)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "name"),
                        "expected the name of a tool, a string of 1 to %d bytes", DGM_MAX_ID_BYTES);
    if (description && !yyjson_is_str(description))
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "description"),
                        "expected a string, got %s", dgm_json_type(description));
    if (parameters && !yyjson_is_obj(parameters))
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "parameters"),
                        "expected an object (JSON Schema), got %s", dgm_json_type(parameters));
    return DGM_OK;
}

static dgm_code check_tools(const dgm_json *tools, size_t part, dgm_err *err)
{
    const dgm_at *parts = DGM_AT_LIT(DGM_AT_LIT(NULL, "message"), "parts");
    const dgm_at *at = DGM_AT_LIT(DGM_AT_LIT(DGM_AT_I(parts, part), "data"), "tools");
    yyjson_val *list = (yyjson_val *)(uintptr_t)tools, *tool;
    dgm_code rc =
        dgm_check_list(yyjson_arr_size(list), DGM_MAX_REQUEST_TOOLS, "request_tools", at, err);
    size_t i, n;
    yyjson_arr_foreach (list, i, n, tool) {
        if (!rc)
            rc = check_tool(tool, DGM_AT_I(at, i), err);
    }
    return rc;
}

/* Tools in the message are the caller's, as other protocols have them. The server's metadata that the caller has no right to set is
 * removed here then, before ours is added. False: they are invalid, and the call is answered. */
bool dgm_a2a_set_tools(struct op *op, dgm_send *send)
{
    size_t part;
    const dgm_json *tools = dgm_message_tools(send->message, &part);
    dgm_guard guard = {.may_set = send->may_set};
    dgm_err err = {0};
    if (!tools)
        return true;
    if (check_tools(tools, part, &err)) {
        dgm_op_fail(op, &err);
        return false;
    }
    dgm_message *clean = dgm_new(op->arena, dgm_message);
    *clean = *send->message;
    dgm_guard_content(&guard, op->arena, &clean->metadata, &clean->parts);
    send->message = clean;
    const dgm_json *metadata = dgm_guard_metadata(&guard, op->arena, send->metadata, false);
    dgm_json_build b = dgm_json_build_start(op->arena);
    dgm_json_build_object(&b, NULL);
    if (metadata)
        dgm_json_build_members_of(&b, metadata);
    dgm_json_build_value(&b, DGM_META_TOOLS, tools);
    dgm_json_build_close(&b);
    send->metadata = dgm_json_build_end(&b);
    send->is_ours = true;
    return true;
}
