/*
 * wire/jsonrpc/jsonrpc.c - reading and writing the envelope.
 *
 * The members are found in one pass; the rules look at what was found.
 */
#include "wire/jsonrpc/jsonrpc.h"

#define MEMBERS(X)                                                                                 \
    X(JSONRPC, "jsonrpc")                                                                          \
    X(ID, "id")                                                                                    \
    X(METHOD, "method")                                                                            \
    X(PARAMS, "params")                                                                            \
    X(RESULT, "result")                                                                            \
    X(ERROR, "error")

enum member {
#define X(sym, name) sym,
    MEMBERS(X)
#undef X
        N_MEMBERS
};

struct found {
    yyjson_val *at[N_MEMBERS]; /* the first of each name */
    int doubled;               /* a member that is there twice, or -1 */
    size_t n_others;
};

static const dgm_str member_names[] = {
#define X(sym, name) {name, sizeof(name) - 1},
    MEMBERS(X)
#undef X
};

static void find_members(const yyjson_val *object, struct found *f)
{
    yyjson_val *key, *v;
    size_t i, n;
    *f = (struct found){.doubled = -1};
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)object, i, n, key, v) {
        dgm_str text = dgm_json_str(key);
        int m = -1;
#define X(sym, name) m = dgm_str_is(text, name) ? sym : m;
        MEMBERS(X)
#undef X
        if (m < 0)
            f->n_others++;
        else if (f->at[m])
            f->doubled = m;
        else
            f->at[m] = v;
    }
}

/* ---- ids ------------------------------------------------------------------------------------- */

/* A string, null or an integer. Numbers are stored as text: an integer has neither fraction nor exponent. */
static bool is_valid_id(yyjson_val *v)
{
    if (!unsafe_yyjson_is_raw(v))
        return unsafe_yyjson_is_str(v) || unsafe_yyjson_is_null(v) || unsafe_yyjson_is_int(v);
    dgm_str text = dgm_json_str(v);
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] == '.' || text.p[i] == 'e' || text.p[i] == 'E')
            return false;
    return true;
}

/* ---- reading --------------------------------------------------------------------------------- */

bool dgm_rpc_is(const yyjson_val *v)
{
    struct found f;
    if (!yyjson_is_obj((yyjson_val *)(uintptr_t)v))
        return false;
    find_members(v, &f);
    if (f.at[JSONRPC])
        return true;
    if (f.n_others)
        return false;
    return (f.at[METHOD] && (f.at[PARAMS] || f.at[ID])) ||
           (f.at[ID] && (f.at[RESULT] || f.at[ERROR]));
}

yyjson_val *dgm_rpc_id_of(const yyjson_val *v)
{
    yyjson_val *id = dgm_json_get(v, DGM_STR("id"));
    return id && is_valid_id(id) ? id : NULL;
}

static dgm_code bad(dgm_err *err, const dgm_at *at, const char *key, const char *msg)
{
    return dgm_fail(err, DGM_BAD_REQUEST, DGM_AT(at, dgm_str_from(key)), "%s", msg);
}

static dgm_code read_request(const struct found *f, const dgm_at *at, dgm_rpc *rpc, dgm_err *err)
{
    yyjson_val *method = f->at[METHOD];
    if (f->at[RESULT] || f->at[ERROR])
        return bad(err, at, "method", "a request has neither result nor error");
    if (!yyjson_is_str(method))
        return dgm_fail(err, DGM_BAD_REQUEST, DGM_AT_LIT(at, "method"), "expected a string, got %s",
                        dgm_json_type(method));
    rpc->kind = DGM_RPC_REQUEST;
    rpc->method = dgm_json_str(method);
    rpc->params = f->at[PARAMS];
    if (!rpc->method.n)
        return bad(err, at, "method", "the name of a method is needed, got an empty string");
    return DGM_OK;
}

static dgm_code read_response(const struct found *f, bool lenient, const dgm_at *at, dgm_rpc *rpc,
                              dgm_err *err)
{
    yyjson_val *result = f->at[RESULT], *error = f->at[ERROR];
    if (lenient && result && error) {
        if (yyjson_is_null(error))
            error = NULL;
        else if (yyjson_is_null(result))
            result = NULL;
    }
    if (result && error)
        return bad(err, at, "error", "a response has either a result or an error, not both");
    if (error && !yyjson_is_obj(error))
        return dgm_fail(err, DGM_BAD_REQUEST, DGM_AT_LIT(at, "error"), "expected an object, got %s",
                        dgm_json_type(error));
    if (!f->at[ID] && !lenient)
        return bad(err, at, "id", "a response needs the id of its request, or null");
    rpc->kind = DGM_RPC_RESPONSE;
    rpc->result = result;
    rpc->error = error;
    return DGM_OK;
}

dgm_code dgm_rpc_read(yyjson_val *v, bool lenient, const dgm_at *at, dgm_rpc *ret_rpc, dgm_err *err)
{
    struct found f;
    dgm_rpc rpc = {0};
    dgm_code rc;
    if (yyjson_is_arr(v))
        return dgm_fail(err, DGM_BAD_REQUEST, at,
                        "batches are not supported: send one request at a time");
    if (!yyjson_is_obj(v))
        return dgm_fail(err, DGM_BAD_REQUEST, at, "expected a JSON-RPC object, got %s",
                        dgm_json_type(v));
    find_members(v, &f);
    yyjson_val *version = f.at[JSONRPC], *id = f.at[ID];
    if (!version && !lenient)
        return bad(err, at, "jsonrpc", "missing: a JSON-RPC message has \"jsonrpc\": \"2.0\"");
    if (version && !(yyjson_is_str(version) && dgm_str_is(dgm_json_str(version), "2.0")))
        return bad(err, at, "jsonrpc", "expected \"2.0\"");
    if (id && !is_valid_id(id))
        return dgm_fail(err, DGM_BAD_REQUEST, DGM_AT_LIT(at, "id"),
                        "expected a string, an integer or null, got %s",
                        unsafe_yyjson_is_raw(id) ? "a fraction" : dgm_json_type(id));
    if (f.doubled >= 0)
        return bad(err, at, member_names[f.doubled].p, "there twice: which one counts?");
    if (f.at[METHOD])
        rc = read_request(&f, at, &rpc, err);
    else if (f.at[RESULT] || f.at[ERROR] || (lenient && version && id))
        rc = read_response(&f, lenient, at, &rpc, err);
    else
        rc =
            bad(err, at, "method", "missing: a request has a method, a response a result or error");
    if (rc)
        return rc;
    *ret_rpc = rpc;
    ret_rpc->id = id;
    return DGM_OK;
}

dgm_code dgm_rpc_params(const dgm_rpc *rpc, bool optional, const dgm_at *at,
                        yyjson_val **ret_params, dgm_err *err)
{
    yyjson_val *params = rpc->params;
    const dgm_at *here = DGM_AT_LIT(at, "params");
    if (optional && (!params || yyjson_is_null(params))) {
        *ret_params = NULL;
        return DGM_OK;
    }
    if (!params)
        return dgm_fail(err, DGM_BAD_PARAMS, here, "missing: this method needs params");
    if (!yyjson_is_obj(params))
        return dgm_fail(err, DGM_BAD_PARAMS, here, "expected an object, got %s",
                        dgm_json_type(params));
    if (dgm_json_get(params, DGM_STR("")))
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(here, ""), "a member needs a name");
    *ret_params = params;
    return DGM_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

#define HEAD "{\"jsonrpc\":\"2.0\""
#define ID_KEY ",\"id\":"

static void put_request_head(dgm_buf *b, const yyjson_val *id, dgm_str method)
{
    dgm_buf_add_lit(b, HEAD);
    if (id) {
        dgm_buf_add_lit(b, ID_KEY);
        dgm_json_put(b, id);
    }
    dgm_buf_add_lit(b, ",\"method\":");
    dgm_json_put_str(b, method);
}

void dgm_rpc_put_request(dgm_buf *b, const yyjson_val *id, dgm_str method)
{
    put_request_head(b, id, method);
    dgm_buf_add_lit(b, ",\"params\":");
}

void dgm_rpc_put_result(dgm_buf *b, const yyjson_val *id)
{
    dgm_buf_add_lit(b, HEAD ID_KEY);
    dgm_json_put(b, id);
    dgm_buf_add_lit(b, ",\"result\":");
}

void dgm_rpc_put_error(dgm_buf *b, const yyjson_val *id)
{
    dgm_buf_add_lit(b, HEAD ID_KEY);
    dgm_json_put(b, id);
    dgm_buf_add_lit(b, ",\"error\":");
}

void dgm_rpc_put_bare_request(dgm_buf *b, const yyjson_val *id, dgm_str method)
{
    put_request_head(b, id, method);
    dgm_rpc_put_tail(b);
}
