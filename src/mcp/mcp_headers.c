/* mcp/mcp_headers.c - HTTP headers that repeat parts of a request (2026-07-28, streamable HTTP, "Request Metadata"). */
#include "mcp/mcp_int.h"

#include <openssl/evp.h>
#include <stdlib.h>

#define MAX_PARAMS 32
#define MAX_SAFE_INTEGER 9007199254740991

/* ---- values ------------------------------------------------------------------------------------------- */

static bool is_plain_value(dgm_str s)
{
    static const dgm_str start = {"=?base64?", 9};
    if (s.n && (s.p[0] == ' ' || s.p[0] == '\t' || s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if ((s.p[i] < ' ' && s.p[i] != '\t') || s.p[i] > '~') /* char may be signed: both cases */
            return false;
    }
    return !(dgm_str_starts(s, start) && s.n >= 11 && memcmp(s.p + s.n - 2, "?=", 2) == 0);
}

dgm_str dgm_mcp_header_value(dgm_arena *a, dgm_str text)
{
    if (is_plain_value(text))
        return dgm_arena_dup(a, text);
    unsigned char *out = dgm_arena_alloc(a, (text.n + 2) / 3 * 4 + 1);
    int n = EVP_EncodeBlock(out, (const unsigned char *)text.p, (int)text.n);
    return dgm_arena_printf(a, "=?base64?%.*s?=", n, (const char *)out);
}

/* ---- annotations -------------------------------------------------------------------------------------- */

static bool is_token(dgm_str s)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool is_alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_alnum && (!c || !strchr(others, c)))
            return false;
    }
    return s.n > 0;
}

struct finder {
    dgm_arena *arena;
    struct mcp_tool *tool;
    dgm_err *err;
};

static dgm_code headers_invalid(struct finder *f, const char *what)
{
    return dgm_fail(f->err, DGM_BAD_PARAMS, NULL, "x-mcp-header %s", what);
}

static dgm_code add_param(struct finder *f, const yyjson_val *schema, const yyjson_val *name,
                          const dgm_str *path, size_t n_path)
{
    struct mcp_tool *t = f->tool;
    dgm_str type = dgm_json_str_member(schema, "type");
    if (!yyjson_is_str(dgm_mcp_plain(name)) || !is_token(dgm_json_str(name)))
        return headers_invalid(f, "is not the name of a header");
    if (!dgm_str_is(type, "string") && !dgm_str_is(type, "integer") && !dgm_str_is(type, "boolean"))
        return headers_invalid(f, "is allowed for string, integer and boolean only");
    dgm_str header = dgm_arena_printf(f->arena, "Mcp-Param-%.*s", DGM_P(dgm_json_str(name)));
    for (size_t i = 0; i < t->n_params; i++) {
        if (dgm_str_eq_nocase(t->params[i].header, header))
            return headers_invalid(f, "occurs twice with the same name");
    }
    if (t->n_params == MAX_PARAMS || header.n > 200)
        return headers_invalid(f, "occurs too often, or its name is too long");
    if (!t->params)
        t->params = dgm_new_n(f->arena, struct mcp_param, MAX_PARAMS);
    struct mcp_param *p = &t->params[t->n_params++];
    *p = (struct mcp_param){.header = header, .n_path = n_path};
    p->path = dgm_new_n(f->arena, dgm_str, n_path);
    for (size_t i = 0; i < n_path; i++)
        p->path[i] = dgm_arena_dup(f->arena, path[i]);
    return DGM_OK;
}

/* Is there one anywhere below v? */
static bool has_annotation(const yyjson_val *v, size_t depth)
{
    yyjson_val *key, *item;
    size_t i, n;
    if (depth > DGM_MAX_JSON_DEPTH)
        return true;
    yyjson_obj_foreach (dgm_mcp_plain(v), i, n, key, item) {
        if (dgm_str_is(dgm_json_str(key), "x-mcp-header") || has_annotation(item, depth + 1))
            return true;
    }
    if (yyjson_is_arr(dgm_mcp_plain(v))) {
        yyjson_arr_foreach (dgm_mcp_plain(v), i, n, item) {
            if (has_annotation(item, depth + 1))
                return true;
        }
    }
    return false;
}

/* path[n_path] is a name below `properties`, and so on down. Anywhere else the annotation is forbidden. */
static dgm_code find_params(struct finder *f, const yyjson_val *schema, dgm_str *path,
                            size_t n_path)
{
    yyjson_val *key, *item, *name, *member;
    size_t i, n, k, n_members;
    dgm_code rc = DGM_OK;
    yyjson_obj_foreach (dgm_mcp_plain(schema), i, n, key, item) {
        dgm_str word = dgm_json_str(key);
        if (dgm_str_is(word, "x-mcp-header")) {
            if (!n_path)
                return headers_invalid(f, "is not at a property");
            if ((rc = add_param(f, schema, item, path, n_path)))
                return rc;
        } else if (dgm_str_is(word, "properties") && n_path < DGM_MAX_JSON_DEPTH) {
            yyjson_obj_foreach (item, k, n_members, name, member) {
                path[n_path] = dgm_json_str(name);
                if ((rc = find_params(f, member, path, n_path + 1)))
                    return rc;
            }
        } else if (!dgm_str_is(word, "default") && !dgm_str_is(word, "examples") &&
                   !dgm_str_is(word, "const") && !dgm_str_is(word, "enum") &&
                   has_annotation(item, 0)) {
            return headers_invalid(f, "is only allowed at properties that are always there");
        }
    }
    return DGM_OK;
}

dgm_code dgm_mcp_read_params(dgm_arena *a, const yyjson_val *schema, struct mcp_tool *t,
                             dgm_err *err)
{
    dgm_str path[DGM_MAX_JSON_DEPTH + 1];
    if (!has_annotation(schema, 0))
        return DGM_OK;
    return find_params(&(struct finder){a, t, err}, schema, path, 0);
}

/* ---- the headers of a call ---------------------------------------------------------------------------- */

/* Absent: the argument has no value, or one that the schema does not allow; then the server judges it. */
static dgm_str text_of_argument(const yyjson_val *v)
{
    yyjson_val *value = dgm_mcp_plain(v);
    int64_t n;
    if (!value || yyjson_is_null(value) || yyjson_is_ctn(value))
        return (dgm_str){0};
    if (yyjson_is_bool(value))
        return yyjson_get_bool(value) ? DGM_STR("true") : DGM_STR("false");
    if (!yyjson_is_str(value) &&
        (!dgm_json_int(value, &n) || n > MAX_SAFE_INTEGER || n < -MAX_SAFE_INTEGER))
        return (dgm_str){0};
    return dgm_json_str(value).n ? dgm_json_str(value) : (dgm_str){"", 0};
}

size_t dgm_mcp_param_headers(dgm_arena *a, const struct mcp_tool *t, const yyjson_val *arguments,
                             dgm_fetch_header **ret_headers)
{
    size_t n = 0;
    dgm_fetch_header *headers = dgm_new_n(a, dgm_fetch_header, t->n_params);
    for (size_t i = 0; i < t->n_params; i++) {
        const yyjson_val *v = arguments;
        for (size_t k = 0; k < t->params[i].n_path; k++)
            v = dgm_json_get(v, t->params[i].path[k]);
        dgm_str text = text_of_argument(v);
        if (text.p)
            headers[n++] = (dgm_fetch_header){t->params[i].header, dgm_mcp_header_value(a, text)};
    }
    *ret_headers = headers;
    return n;
}
