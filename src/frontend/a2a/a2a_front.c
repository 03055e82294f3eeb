/* frontend/a2a/a2a_front.c - which dialect is it, and what does it ask for? */
#include "base/limits.h"
#include "frontend/a2a/a2a_front_int.h"
#include "wire/jsonrpc/jsonrpc.h"

#include <stdlib.h>

dgm_a2a_front *dgm_a2a_front_new(dgm_core *core, const dgm_a2a_options *o)
{
    dgm_a2a_front *f = dgm_xcalloc(1, sizeof *f);
    *f = (dgm_a2a_front){.core = core, .o = *o};
    return f;
}

void dgm_a2a_front_free(dgm_a2a_front *f)
{
    free(f);
}

/* ---- versions --------------------------------------------------------------------------------------------------- */

enum version { VERSION_03, VERSION_10, VERSION_NONE };

/* The header, else the query parameter; nothing is 0.3. Patch numbers do not count. */
static enum version version_of(const dgm_http_request *r)
{
    dgm_str v = dgm_http_header_of(r, DGM_STR("a2a-version"));
    dgm_str name = DGM_STR("A2A-Version=");
    for (size_t i = 0; !v.n && i + name.n <= r->query.n; i++) {
        if ((i == 0 || r->query.p[i - 1] == '&') && memcmp(r->query.p + i, name.p, name.n) == 0) {
            v = (dgm_str){r->query.p + i + name.n, r->query.n - i - name.n};
            const char *end = memchr(v.p, '&', v.n);
            v.n = end ? (size_t)(end - v.p) : v.n;
        }
    }
    while (v.n && (v.p[0] == ' ' || v.p[0] == '\t'))
        v = (dgm_str){v.p + 1, v.n - 1};
    while (v.n && (v.p[v.n - 1] == ' ' || v.p[v.n - 1] == '\t'))
        v.n--;
    if (!v.n || dgm_str_is(v, "0.3") || dgm_str_starts(v, DGM_STR("0.3.")))
        return VERSION_03;
    if (dgm_str_is(v, "1.0") || dgm_str_starts(v, DGM_STR("1.0.")))
        return VERSION_10;
    return VERSION_NONE;
}

static bool is_json(dgm_str type)
{
    const char *end = type.n ? memchr(type.p, ';', type.n) : NULL;
    dgm_str media = {type.p, end ? (size_t)(end - type.p) : type.n};
    while (media.n && media.p[media.n - 1] == ' ')
        media.n--;
    return !type.n || dgm_str_eq_nocase(media, DGM_STR("application/json")) ||
           dgm_str_eq_nocase(media, DGM_STR("application/a2a+json"));
}

static struct op *new_op(dgm_a2a_front *f, dgm_http_exchange *x, dgm_owner owner, dgm_str agent)
{
    dgm_arena *a = dgm_http_arena(x);
    struct op *op = dgm_new(a, struct op);
    op->front = f;
    op->x = x;
    op->arena = a;
    op->owner = owner;
    op->agent = agent;
    return op;
}

static void fail_with(struct op *op, dgm_code code, const char *msg)
{
    dgm_err err = {0};
    dgm_fail(&err, code, NULL, "%s", msg);
    op_fail(op, &err);
}

/* ---- JSON-RPC ---------------------------------------------------------------------------------------------------- */

/* Names with a slash are 0.3's, all others 1.0's; the header has to agree. */
static void take_rpc(struct op *op, const dgm_http_request *r)
{
    enum version asked = version_of(r);
    yyjson_val *v;
    dgm_rpc rpc;
    dgm_frame frame;
    dgm_err err = {0};
    op->codec =
        asked == VERSION_03 && !op->front->o.only_10 ? &dgm_codec_a2a_03 : &dgm_codec_a2a_10;
    if (!is_json(dgm_http_header_of(r, DGM_STR("content-type")))) {
        fail_with(op, DGM_CONTENT_TYPE_NOT_SUPPORTED, "send application/json");
        return;
    }
    if (dgm_json_read(op->arena, r->body, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, &err)) {
        op_fail(op, &err);
        return;
    }
    op->id = dgm_rpc_id_of(v);
    if (asked == VERSION_NONE) {
        fail_with(op, DGM_VERSION_NOT_SUPPORTED, "this server speaks A2A 1.0 and 0.3");
        return;
    }
    if (dgm_rpc_read(v, false, NULL, &rpc, &err) ||
        (rpc.kind != DGM_RPC_REQUEST &&
         dgm_fail(&err, DGM_BAD_REQUEST, NULL, "expected a request, got a response"))) {
        op_fail(op, &err);
        return;
    }
    bool named_10 = !memchr(rpc.method.p, '/', rpc.method.n) && rpc.method.n &&
                    rpc.method.p[0] >= 'A' && rpc.method.p[0] <= 'Z';
    if (named_10 && asked == VERSION_03) {
        if (!op->front->o.lenient_version) {
            op->codec = &dgm_codec_a2a_10;
            fail_with(op, DGM_VERSION_NOT_SUPPORTED,
                      "methods of A2A 1.0 need the header A2A-Version: 1.0");
            return;
        }
        op->codec = &dgm_codec_a2a_10;
    }
    dgm_reader reader = {.arena = op->arena, .strict = true, .drop_unknown = true, .err = &err};
    if (op->codec->decode(&reader, v, DGM_OBJECT_NONE, false, &frame))
        op_fail(op, &err);
    else
        op_run(op, &frame);
}

/* ---- the card ------------------------------------------------------------------------------------------------------ */

static void give_card(struct op *op, const dgm_http_request *r)
{
    const dgm_a2a_options *o = &op->front->o;
    dgm_str card = version_of(r) == VERSION_03 && o->card_03.n ? o->card_03 : o->card_10;
    char tag[32];
    snprintf(tag, sizeof tag, "\"%016llx\"", (unsigned long long)dgm_hash(7, card.p, card.n));
    dgm_http_header headers[] = {{DGM_STR("ETag"), dgm_str_from(tag)},
                                 {DGM_STR("Cache-Control"), DGM_STR("public, max-age=300")},
                                 {DGM_STR("Vary"), DGM_STR("A2A-Version")}};
    dgm_str known = dgm_http_header_of(r, DGM_STR("if-none-match"));
    if (known.n && dgm_str_eq(known, dgm_str_from(tag)))
        dgm_http_respond(op->x, 304, (dgm_str){0}, headers, 3, (dgm_str){0});
    else
        dgm_http_respond(op->x, 200, DGM_STR("application/json"), headers, 3, card);
    op_over(op);
}

bool dgm_a2a_front_take(dgm_a2a_front *f, dgm_http_exchange *x, dgm_owner owner, dgm_str agent,
                        dgm_str path)
{
    const dgm_http_request *r = dgm_http_request_of(x);
    bool post = dgm_str_is(r->method, "POST");
    bool get = dgm_str_is(r->method, "GET") || dgm_str_is(r->method, "HEAD");
    if (get && dgm_str_is(path, "/.well-known/agent-card.json")) {
        give_card(new_op(f, x, owner, agent), r);
        return true;
    }
    if (post && (dgm_str_is(path, "/") || dgm_str_is(path, "/a2a") || dgm_str_is(path, "/a2a/") ||
                 dgm_str_is(path, "/api/a2a") || dgm_str_is(path, "/api/a2a/"))) {
        take_rpc(new_op(f, x, owner, agent), r);
        return true;
    }
    return false;
}
