/* wire/a2a/a2a_codec.c - the three codecs: an object or an envelope to a frame, and back. */
#include "wire/a2a/a2a_int.h"
#include "wire/jsonrpc/jsonrpc.h"

/* ---- what makes a dialect ------------------------------------------------------------------------------- */

struct dialect {
    const char *name;
    dgm_format_id format;
    bool v1;
    bool rest;
    dgm_object_kind (*detect)(const yyjson_val *v, bool in_stream);
    const dgm_shape *const
        *shapes; /* by kind. Errors and the empty object are not read by table. */
};

static const struct dialect dialect_10 = {.name = dgm_form_name,
                                          .format = DGM_FORMAT_A2A_10,
                                          .v1 = true,
                                          .detect = dgm_a2a_10_detect,
                                          .shapes = dgm_form_shapes};
static const struct dialect dialect_03 = {.name = dgm_a2a_03_name,
                                          .format = DGM_FORMAT_A2A_03,
                                          .detect = dgm_a2a_03_detect,
                                          .shapes = dgm_a2a_03_shapes};
static const struct dialect dialect_03_rest = {.name = dgm_a2a_03_rest_name,
                                               .format = DGM_FORMAT_A2A_03_REST,
                                               .rest = true,
                                               .detect = dgm_a2a_03_rest_detect,
                                               .shapes = dgm_a2a_03_rest_shapes};

/* ---- methods ---------------------------------------------------------------------------------------------- */

const dgm_a2a_method dgm_a2a_methods[] = {{NULL, NULL, DGM_OBJECT_NONE, DGM_OBJECT_NONE},
#define X(sym, v10, v03, params, result) {v10, v03, DGM_OBJECT_##params, DGM_OBJECT_##result},
                                          DGM_METHODS(X)
#undef X
};
#define N_METHODS (sizeof dgm_a2a_methods / sizeof *dgm_a2a_methods)

dgm_method dgm_a2a_find_method(dgm_str name, bool v10)
{
    for (size_t i = 1; i < N_METHODS; i++) {
        const char *own = v10 ? dgm_a2a_methods[i].v10 : dgm_a2a_methods[i].v03;
        if (own && dgm_str_eq(name, dgm_str_from(own)))
            return (dgm_method)i;
    }
    return DGM_METHOD_NONE;
}

const char *dgm_a2a_method_with(dgm_object_kind params)
{
    for (size_t i = 1; i < N_METHODS; i++) {
        if (dgm_a2a_methods[i].params == params)
            return dgm_a2a_methods[i].v10;
    }
    return NULL;
}

/* ---- decoding ---------------------------------------------------------------------------------------------- */

static inline dgm_code decode_object(const struct dialect *d, dgm_reader *r, dgm_object_kind kind,
                                     yyjson_val *v, const dgm_at *at, dgm_object *ret)
{
    static const dgm_task_request nothing;
    dgm_code rc;
    void *it;
    if (kind == DGM_OBJECT_EMPTY) {
        *ret = (dgm_object){kind, (void *)(uintptr_t)&nothing};
        return DGM_OK;
    }
    if (kind == DGM_OBJECT_ERROR) {
        it = dgm_new(r->arena, dgm_peer_error);
        rc = dgm_a2a_read_rest_error(r, v, at, it);
    } else {
        const dgm_shape *shape = d->shapes[kind];
        if (!shape)
            return dgm_fail(r->err, DGM_UNSUPPORTED_OPERATION, at, "%s has no %s", d->name,
                            dgm_object_kind_name(kind));
        it = dgm_arena_alloc(r->arena, shape->size);
        rc = dgm_shape_read(r, shape, v, at, it);
    }
    if (!rc)
        *ret = (dgm_object){kind, it};
    return rc;
}

/* Results: 0.3 has no wrappers, so a bare task or message there is what 1.0 wraps. */
static dgm_object_kind detect_result(const struct dialect *d, const yyjson_val *v)
{
    dgm_object_kind kind = d->detect(v, true);
    return kind == DGM_OBJECT_SEND_REQUEST ? DGM_OBJECT_STREAM_RESPONSE : kind;
}

static dgm_code not_known(dgm_reader *r, const struct dialect *d, const dgm_at *at)
{
    return dgm_fail(r->err, DGM_BAD_PARAMS, at,
                    "no object of %s looks like this: check the format, or name the object "
                    "(--object)",
                    d->name);
}

static dgm_code decode_request(const struct dialect *d, dgm_reader *r, const dgm_rpc *rpc,
                               dgm_frame *ret)
{
    dgm_code rc;
    yyjson_val *params;
    dgm_method method = dgm_a2a_find_method(rpc->method, d->v1);
    if (!method)
        return dgm_fail(r->err, DGM_NO_SUCH_METHOD, DGM_AT_LIT(NULL, "method"),
                        "\"%.*s\" is not a method of %s",
                        (int)(rpc->method.n < 80 ? rpc->method.n : 80), rpc->method.p, d->name);
    if ((rc = dgm_rpc_params(rpc, method == DGM_METHOD_EXTENDED_CARD, NULL, &params, r->err)))
        return rc;
    *ret = (dgm_frame){.envelope = DGM_ENVELOPE_REQUEST, .id = rpc->id, .method = method};
    if (!params) {
        ret->object =
            (dgm_object){dgm_a2a_methods[method].params, dgm_new(r->arena, dgm_task_request)};
        return DGM_OK;
    }
    return decode_object(d, r, dgm_a2a_methods[method].params, params, DGM_AT_LIT(NULL, "params"),
                         &ret->object);
}

static dgm_code decode_response(const struct dialect *d, dgm_reader *r, const dgm_rpc *rpc,
                                dgm_object_kind kind, dgm_frame *ret)
{
    *ret = (dgm_frame){.envelope = DGM_ENVELOPE_RESPONSE, .id = rpc->id};
    if (rpc->error) {
        dgm_peer_error *e = dgm_new(r->arena, dgm_peer_error);
        ret->object = (dgm_object){DGM_OBJECT_ERROR, e};
        return dgm_a2a_read_rpc_error(r, rpc->error, DGM_AT_LIT(NULL, "error"), e);
    }
    if (!rpc->result && d->v1)
        return dgm_fail(r->err, DGM_BAD_REQUEST, DGM_AT_LIT(NULL, "result"),
                        "missing: a response has a result or an error");
    if (!rpc->result)
        kind = DGM_OBJECT_EMPTY; /* how some 0.3 servers answer a deletion */
    if (!kind)
        kind = detect_result(d, rpc->result);
    if (!kind)
        return not_known(r, d, DGM_AT_LIT(NULL, "result"));
    return decode_object(d, r, kind, rpc->result, DGM_AT_LIT(NULL, "result"), &ret->object);
}

static inline __attribute__((always_inline)) dgm_code decode(const struct dialect *d, dgm_reader *r,
                                                             yyjson_val *v, dgm_object_kind kind,
                                                             bool in_stream, dgm_frame *ret)
{
    dgm_code rc;
    r->format = d->format;
    r->drop_nulls = true;
    r->drop_empties = d->v1 || d->rest;
    /* The usual cases, found by the first member: then the object need not be searched for every member. */
    dgm_object_kind usual = DGM_OBJECT_NONE;
    if (!kind && yyjson_obj_size(v)) {
        yyjson_val *first = unsafe_yyjson_get_first(v);
        dgm_str name = dgm_json_str(first), value = {0};
        if (d->v1 || d->rest) {
            if (yyjson_obj_size(v) == 1 &&
                (dgm_str_is(name, "artifactUpdate") || dgm_str_is(name, "statusUpdate") ||
                 (dgm_str_is(name, "task") && yyjson_is_obj(first + 1))))
                usual = DGM_OBJECT_STREAM_RESPONSE;
        } else if (dgm_str_is(name, "kind") && yyjson_is_str(first + 1)) {
            value = dgm_json_str(first + 1);
            if (dgm_str_is(value, "artifact-update") || dgm_str_is(value, "status-update"))
                usual = DGM_OBJECT_STREAM_RESPONSE;
            else if (dgm_str_is(value, "message"))
                usual = in_stream ? DGM_OBJECT_STREAM_RESPONSE : DGM_OBJECT_MESSAGE;
        }
    }
    if (usual) {
        kind = usual;
    } else if (!d->rest && dgm_rpc_is(v)) {
        dgm_rpc rpc;
        if ((rc = dgm_rpc_read(v, !r->strict, NULL, &rpc, r->err)))
            return rc;
        return rpc.kind == DGM_RPC_REQUEST ? decode_request(d, r, &rpc, ret)
                                           : decode_response(d, r, &rpc, kind, ret);
    }
    *ret = (dgm_frame){0};
    if (!kind && !yyjson_is_obj(v) && !(yyjson_is_arr(v) && !d->v1 && !d->rest))
        return dgm_read_wrong(r, v, NULL, "an object");
    if (!kind)
        kind = d->detect(v, in_stream);
    if (!kind)
        return not_known(r, d, NULL);
    return decode_object(d, r, kind, v, NULL, &ret->object);
}

static bool decode_usual_10(dgm_reader *r, dgm_str text, dgm_frame *ret)
{
    dgm_event *event = dgm_new(r->arena, dgm_event);
    r->format = DGM_FORMAT_A2A_10;
    *ret = (dgm_frame){.object = {DGM_OBJECT_STREAM_RESPONSE, event}};
    return dgm_form_scan_chunk(r, text, event);
}

/* ---- encoding ------------------------------------------------------------------------------------------------- */

static inline dgm_code encode_object(const struct dialect *d, dgm_writer *w, const dgm_frame *f,
                                     dgm_err *err)
{
    const dgm_object *o = &f->object;
    if (o->kind == DGM_OBJECT_EMPTY) {
        /* JSON-RPC answers a deletion with null, REST with {}. */
        if (f->envelope == DGM_ENVELOPE_RESPONSE && !d->rest)
            dgm_buf_add_lit(w->out, "null");
        else
            dgm_buf_add_lit(w->out, "{}");
        return DGM_OK;
    }
    if (o->kind == DGM_OBJECT_ERROR) {
        if (!d->v1)
            dgm_a2a_03_write_error(w, o->it);
        else if (f->envelope == DGM_ENVELOPE_RESPONSE)
            dgm_a2a_10_write_rpc_error(w, o->it);
        else
            dgm_a2a_10_write_rest_error(w, o->it);
        return DGM_OK;
    }
    const dgm_shape *shape = d->shapes[o->kind];
    if (!shape)
        return dgm_fail(err, DGM_UNSUPPORTED_OPERATION, NULL, "%s has no %s", d->name,
                        dgm_object_kind_name(o->kind));
    dgm_shape_write(w, shape, o->it);
    return DGM_OK;
}

static inline __attribute__((always_inline)) dgm_code encode(const struct dialect *d, dgm_writer *w,
                                                             const dgm_frame *f, dgm_err *err)
{
    dgm_code rc;
    w->format = d->format;
    if (d->rest || f->envelope == DGM_ENVELOPE_NONE)
        return encode_object(d, w, f, err);
    if (f->envelope == DGM_ENVELOPE_RESPONSE) {
        if (f->object.kind == DGM_OBJECT_ERROR)
            dgm_rpc_put_error(w->out, f->id);
        else
            dgm_rpc_put_result(w->out, f->id);
    } else {
        const dgm_a2a_method *method = &dgm_a2a_methods[f->method];
        const char *name = d->v1 ? method->v10 : method->v03;
        if (!name)
            return dgm_fail(err, DGM_UNSUPPORTED_OPERATION, DGM_AT_LIT(NULL, "method"),
                            "%s has no %s", d->name,
                            f->method ? dgm_a2a_methods[f->method].v10 : "such method");
        /* 0.3's extended card has no params at all. */
        if (!d->v1 && f->method == DGM_METHOD_EXTENDED_CARD) {
            dgm_rpc_put_bare_request(w->out, f->id, dgm_str_from(name));
            return DGM_OK;
        }
        dgm_rpc_put_request(w->out, f->id, dgm_str_from(name));
    }
    if ((rc = encode_object(d, w, f, err)))
        return rc;
    dgm_rpc_put_tail(w->out);
    return DGM_OK;
}

/* ---- the codecs -------------------------------------------------------------------------------------------------- */

/* Functions of one dialect: decode() and encode() are inlined into them with its table. */
#define CODEC(short_name, name_, format_, usual_)                                                  \
    static dgm_code decode_##short_name(dgm_reader *r, yyjson_val *v, dgm_object_kind kind,        \
                                        bool in_stream, dgm_frame *ret)                            \
    {                                                                                              \
        return decode(&dialect_##short_name, r, v, kind, in_stream, ret);                          \
    }                                                                                              \
    static dgm_code encode_##short_name(dgm_writer *w, const dgm_frame *f, dgm_err *err)           \
    {                                                                                              \
        return encode(&dialect_##short_name, w, f, err);                                           \
    }                                                                                              \
    static void *encoder_new_##short_name(const dgm_stream_params *params, dgm_frame_sink sink)    \
    {                                                                                              \
        return dgm_a2a_encoder_new(&dgm_codec_a2a_##short_name, params, sink);                     \
    }                                                                                              \
    static dgm_code write_messages_##short_name(const dgm_canon_messages *messages,                \
                                                const dgm_stream_params *params,                   \
                                                dgm_frame_sink sink, dgm_err *err)                 \
    {                                                                                              \
        return dgm_a2a_write_messages(&dgm_codec_a2a_##short_name, messages, params, sink, err);   \
    }                                                                                              \
    static dgm_code write_request_##short_name(dgm_writer *w, const dgm_canon_input *input,        \
                                               const dgm_stream_params *params, dgm_err *err)      \
    {                                                                                              \
        return dgm_a2a_write_request(&dgm_codec_a2a_##short_name, w, input, params, err);          \
    }                                                                                              \
    const dgm_codec dgm_codec_a2a_##short_name = {                                                 \
        .name = name_,                                                                             \
        .format = DGM_FORMAT_A2A_##format_,                                                        \
        .own_snapshots = true,                                                                     \
        .has_response = true,                                                                      \
        .recognise = dgm_a2a_##short_name##_recognise,                                             \
        .is_one = dgm_a2a_is_push_list,                                                            \
        .decode = decode_##short_name,                                                             \
        .decode_usual = usual_,                                                                    \
        .encode = encode_##short_name,                                                             \
        .encoder_new = encoder_new_##short_name,                                                   \
        .encoder_feed = dgm_a2a_encoder_feed,                                                      \
        .encoder_end = dgm_a2a_encoder_end,                                                        \
        .encoder_free = dgm_a2a_encoder_free,                                                      \
        .write_messages = write_messages_##short_name,                                             \
        .write_request = write_request_##short_name,                                               \
        .lost_reading = &dgm_a2a_lost_reading,                                                     \
        .lost_writing = &dgm_a2a_lost_writing,                                                     \
    }

CODEC(10, dgm_form_name, 10, decode_usual_10);
CODEC(03, dgm_a2a_03_name, 03, NULL);
CODEC(03_rest, dgm_a2a_03_rest_name, 03_REST, NULL);

const dgm_shape *dgm_a2a_shape(const dgm_codec *codec, dgm_object_kind kind)
{
    return (codec == &dgm_codec_a2a_10   ? dgm_form_shapes
            : codec == &dgm_codec_a2a_03 ? dgm_a2a_03_shapes
                                         : dgm_a2a_03_rest_shapes)[kind];
}
