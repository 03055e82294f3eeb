/* mcp/mcp_result.c - the content of a tool's result as parts. */
#include "mcp/mcp_int.h"

#include "json/shape.h"

static dgm_str last_segment(dgm_str uri)
{
    size_t i = uri.n;
    while (i && uri.p[i - 1] != '/')
        i--;
    return (dgm_str){uri.p + i, uri.n - i};
}

static dgm_str copy_member(dgm_arena *a, const yyjson_val *v, const char *key)
{
    dgm_str s = dgm_json_str_member(v, key);
    return s.n ? dgm_arena_dup(a, s) : (dgm_str){0};
}

static bool read_bytes(dgm_arena *a, const yyjson_val *v, const char *key, dgm_part *p)
{
    dgm_str bytes = dgm_json_str_member(v, key);
    p->kind = DGM_PART_RAW;
    return bytes.n && dgm_base64_normalise(a, bytes, &p->content);
}

static bool read_resource(dgm_arena *a, const yyjson_val *v, dgm_part *p)
{
    dgm_str text = dgm_json_str_member(v, "text");
    p->media_type = copy_member(a, v, "mimeType");
    p->filename = dgm_arena_dup(a, last_segment(dgm_json_str_member(v, "uri")));
    if (!text.p)
        return read_bytes(a, v, "blob", p);
    p->kind = DGM_PART_TEXT;
    p->content = dgm_arena_dup(a, text);
    return true;
}

/* False: the kind is unknown, or the item is broken. */
static bool read_content(dgm_arena *a, const yyjson_val *v, dgm_part *p)
{
    dgm_str type = dgm_json_str_member(v, "type");
    if (dgm_str_is(type, "text")) {
        p->kind = DGM_PART_TEXT;
        p->content = dgm_arena_dup(a, dgm_json_str_member(v, "text"));
        return true;
    }
    if (dgm_str_is(type, "image") || dgm_str_is(type, "audio")) {
        p->media_type = copy_member(a, v, "mimeType");
        return read_bytes(a, v, "data", p);
    }
    if (dgm_str_is(type, "resource"))
        return read_resource(a, dgm_json_get(v, DGM_STR("resource")), p);
    if (dgm_str_is(type, "resource_link")) {
        p->kind = DGM_PART_URL;
        p->content = copy_member(a, v, "uri");
        p->filename = copy_member(a, v, "name");
        p->media_type = copy_member(a, v, "mimeType");
        return p->content.n > 0;
    }
    return false;
}

/* Content that this client does not know reaches the model as it is. */
static void read_unknown(dgm_arena *a, const yyjson_val *v, dgm_part *p)
{
    *p = (dgm_part){.kind = DGM_PART_DATA, .data = dgm_json_copy(a, v)};
}

dgm_code dgm_mcp_read_result(dgm_arena *a, const yyjson_val *result, dgm_mcp_result *ret_result,
                             dgm_err *err)
{
    yyjson_val *list = dgm_json_get(result, DGM_STR("content")), *item;
    yyjson_val *structured = dgm_json_get(result, DGM_STR("structuredContent"));
    size_t i, n = yyjson_arr_size(list);
    bool has_text = false;
    if (!yyjson_is_obj(dgm_mcp_plain(result)))
        return dgm_fail(err, DGM_UNAVAILABLE, NULL, "the result of the tool is not an object");
    if (n > DGM_MAX_MCP_CONTENT)
        return dgm_fail(err, DGM_TOO_LARGE, NULL,
                        "the result has more parts than the limit mcp_content");
    dgm_mcp_result r = {.is_error = yyjson_is_true(dgm_json_get(result, DGM_STR("isError")))};
    r.parts.at = dgm_new_n(a, dgm_part, n + 1);
    yyjson_arr_foreach (list, i, n, item) {
        dgm_part *p = &r.parts.at[r.parts.n++];
        if (!read_content(a, item, p))
            read_unknown(a, item, p);
        has_text |= p->kind == DGM_PART_TEXT;
    }
    if (structured) {
        r.structured = dgm_json_copy(a, structured);
        if (!has_text)
            r.parts.at[r.parts.n++] = (dgm_part){.kind = DGM_PART_DATA, .data = r.structured};
    }
    *ret_result = r;
    return DGM_OK;
}
