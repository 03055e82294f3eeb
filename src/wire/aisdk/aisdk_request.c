/* wire/aisdk/aisdk_request.c - what useChat posts: {id, messages, trigger, messageId, ...}. */
#include "wire/aisdk/aisdk_int.h"

static dgm_code read_messages(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    if (!yyjson_is_arr(v))
        return dgm_read_wrong(r, v, at, "an array of UI messages");
    return dgm_aisdk_read_messages(r, v, at, &((dgm_canon_input *)object)->messages);
}

struct list {
    dgm_buf *out;
};
static dgm_code add_message(void *arg, dgm_str name, dgm_str payload)
{
    dgm_buf *out = ((struct list *)arg)->out;
    (void)name;
    if (out->n && out->p[out->n - 1] != '[')
        dgm_buf_add_char(out, ',');
    dgm_buf_add_str(out, payload);
    return DGM_OK;
}
static void write_nothing(dgm_writer *w, const dgm_field *f, const void *object)
{
    (void)w, (void)f, (void)object; /* see dgm_aisdk_write_request: it can fail */
}
static const dgm_custom messages = {read_messages, write_nothing};

/* The chat is the conversation. trigger, messageId and what the application adds are for the same format. */
static const dgm_field request_fields[] = {
    DGM_F(dgm_canon_input, thread_id, "id", STR, DGM_REQUIRED | DGM_MINTED),
    DGM_F_CUSTOM("messages", DGM_REQUIRED, &messages),
};
static const dgm_shape request_shape = {
    .what = "UI request",
    .size = sizeof(dgm_canon_input),
    DGM_FIELDS(request_fields),
    .extra_at = offsetof(dgm_canon_input, extra),
    .tag_at = DGM_NOWHERE,
};

dgm_code dgm_aisdk_read_request(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                dgm_canon_input *ret)
{
    dgm_canon_input input = {0};
    dgm_code rc;
    r->format = DGM_FORMAT_AI_SDK;
    if ((rc = dgm_shape_read(r, &request_shape, v, at, &input)))
        return rc;
    if (r->mint)
        input.run_id = dgm_mint_id(r->mint, r->arena);
    *ret = input;
    return DGM_OK;
}

static bool has_trigger(const dgm_canon_input *input)
{
    const dgm_extra *x = input->extra;
    for (size_t i = 0; x && x->format == DGM_FORMAT_AI_SDK && i < x->n; i++) {
        if (dgm_str_is(x->at[i].key, "trigger"))
            return true;
    }
    return false;
}

dgm_code dgm_aisdk_write_request(dgm_writer *w, const dgm_canon_input *input,
                                 const dgm_stream_params *params, dgm_err *err)
{
    struct list list = {w->out};
    dgm_shape_write(&(dgm_writer){.out = w->out, .format = DGM_FORMAT_AI_SDK}, &request_shape,
                    input);
    w->out->n--; /* the brace */
    if (!has_trigger(input))
        dgm_aisdk_put_member(w->out, "\"trigger\"", DGM_STR("submit-message"));
    dgm_buf_add_lit(w->out, ",\"messages\":[");
    dgm_code rc = dgm_aisdk_write_messages(&input->messages, params,
                                           (dgm_frame_sink){add_message, &list}, err);
    dgm_buf_add_lit(w->out, "]}");
    return rc;
}
