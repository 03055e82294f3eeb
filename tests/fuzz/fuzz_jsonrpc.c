/* fuzz_jsonrpc.c - what is read strictly reads leniently too, and comes back when it is written. */
#include "base/limits.h"
#include "fuzz/fuzz.h"
#include "wire/jsonrpc/jsonrpc.h"

#include <stdlib.h>

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void write(dgm_buf *b, const dgm_rpc *rpc)
{
    if (rpc->kind == DGM_RPC_REQUEST && !rpc->params) {
        dgm_rpc_put_bare_request(b, rpc->id, rpc->method);
        return;
    }
    if (rpc->kind == DGM_RPC_REQUEST)
        dgm_rpc_put_request(b, rpc->id, rpc->method);
    else if (rpc->error)
        dgm_rpc_put_error(b, rpc->id);
    else
        dgm_rpc_put_result(b, rpc->id);
    dgm_json_put(b, rpc->kind == DGM_RPC_REQUEST ? rpc->params
                    : rpc->error                 ? rpc->error
                                                 : rpc->result);
    dgm_rpc_put_tail(b);
}

static void comes_back(dgm_arena *a, const dgm_rpc *rpc)
{
    dgm_rpc back;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    write(&b, rpc);
    must(dgm_rpc_read(dgm_json_parse_trusted(a, dgm_buf_str(&b)), false, NULL, &back, NULL) ==
         DGM_OK);
    must(back.kind == rpc->kind && dgm_str_eq(back.method, rpc->method));
    must(dgm_json_equal(back.id, rpc->id) && dgm_json_equal(back.params, rpc->params));
    must(dgm_json_equal(back.result, rpc->result) && dgm_json_equal(back.error, rpc->error));
    dgm_buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_arena *a = dgm_arena_new();
    dgm_str text = {(const char *)data, size};
    yyjson_val *v, *params;
    dgm_rpc strict, lenient;
    dgm_err err = {0};
    if (dgm_json_read(a, text, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, NULL) == DGM_OK) {
        dgm_code lenient_rc = dgm_rpc_read(v, true, NULL, &lenient, NULL);
        if (dgm_rpc_read(v, false, DGM_AT_I(NULL, 1), &strict, &err) == DGM_OK) {
            must(lenient_rc == DGM_OK && dgm_rpc_is(v));
            must(lenient.kind == strict.kind && dgm_rpc_id_of(v) == strict.id);
            if (strict.kind == DGM_RPC_REQUEST &&
                dgm_rpc_params(&strict, true, NULL, &params, &err) == DGM_OK)
                must(!params || yyjson_is_obj(params));
            comes_back(a, &strict);
        } else {
            must(err.code == DGM_BAD_REQUEST && err.msg[0] && strncmp(err.at, "/1", 2) == 0);
        }
    }
    dgm_arena_free(a);
    return 0;
}
