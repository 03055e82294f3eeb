/* lib/convert_a2a.c - one spelling of A2A to another; complete messages to Chat Completions and back. */
#include "lib/convert_int.h"
#include "lib/direct.h"
#include "wire/a2a/a2a.h"

dgm_code dgm_convert_decode(dgm_converter *c, const struct input *in, dgm_reader *r,
                            dgm_frame *ret_frame)
{
    if (!in->frame)
        return c->from->a2a->decode(r, in->value, in->kind, in->in_stream, ret_frame);
    *ret_frame = *in->frame;
    return DGM_OK;
}

dgm_code dgm_convert_write_a2a(dgm_converter *c, const struct input *in, const dgm_frame *frame,
                               dgm_err *err)
{
    /* The observability of agents is for nobody's eyes but ours. */
    if (frame->object.kind == DGM_OBJECT_INTERNAL_EVENT) {
        settle_framing(c, in->item->alone, true);
        return DGM_OK;
    }
    settle_framing(c, in->item->alone, in->in_list);
    /* A2A names no events but the error that ends a stream. */
    begin_value(c, in->item->sse_id,
                dgm_str_is(in->item->sse_event, "error") ? in->item->sse_event : (dgm_str){0});
    dgm_writer w = {.out = &c->out};
    dgm_code rc = c->to->a2a->encode(&w, frame, err);
    end_value(c);
    return rc;
}

static void write_chat(dgm_converter *c, const struct input *in, const dgm_chat_messages *messages,
                       bool list)
{
    settle_framing(c, in->item->alone, list || in->in_list || messages->n != 1);
    for (size_t i = 0; i < messages->n; i++) {
        begin_value(c, in->item->sse_id, (dgm_str){0});
        dgm_writer w = {.out = &c->out, .format = DGM_FORMAT_CHAT};
        dgm_chat_write(&w, &messages->at[i]);
        end_value(c);
    }
}

bool dgm_convert_is_direct(const dgm_converter *c, const struct input *in)
{
    dgm_form form = DGM_FORM_NONE;
    if (!(c->from->direct && (c->to->a2a || c->to->direct)) && !(c->from->a2a && c->to->direct))
        return false;
    if (c->as)
        return c->as == DGM_FORM_MESSAGES && !in->in_stream;
    if (c->from->a2a)
        return !in->in_stream;
    return !c->from->canon->recognise(in->value, &form) || form != DGM_FORM_EVENTS;
}

/* An element of an array is written when it has been read: the next one may have its memory. In an array of a
 * megabyte that is a third of the time. */
static dgm_reader reader_of(dgm_converter *c, const struct input *in, const dgm_reader *r)
{
    dgm_reader each = *r;
    if (in->in_list) {
        dgm_arena_reset(c->scratch);
        each.arena = c->scratch;
    }
    return each;
}

dgm_code dgm_convert_chat(dgm_converter *c, const struct input *in, dgm_reader *all)
{
    dgm_reader mine = reader_of(c, in, all), *r = &mine;
    dgm_chat_messages messages;
    dgm_code rc;
    if (c->losses)
        dgm_loss_watch_chat(c->losses, c->from, c->to, in->value);
    if ((rc = dgm_chat_read(r, in->value, in->at, &messages)))
        return rc;
    bool list = !dgm_chat_is_message(in->value);
    if (!c->to->a2a) {
        write_chat(c, in, &messages, list);
        return DGM_OK;
    }
    struct input each = *in;
    each.in_list = in->in_list || list;
    if (!messages.n)
        settle_framing(c, in->item->alone, true);
    for (size_t i = 0; i < messages.n; i++) {
        dgm_message m = {0};
        dgm_direct_from_chat(r->arena, &messages.at[i], r->mint, &m);
        dgm_frame frame = {.object = {DGM_OBJECT_MESSAGE, &m}};
        if ((rc = dgm_convert_write_a2a(c, &each, &frame, r->err)))
            return rc;
    }
    return DGM_OK;
}

dgm_code dgm_convert_to_chat(dgm_converter *c, const struct input *in, const dgm_frame *frame,
                             dgm_reader *r)
{
    dgm_chat_messages messages;
    dgm_code rc;
    bool list;
    dgm_direct_spelling spelling = c->from->a2a == &dgm_codec_a2a_10   ? DGM_DIRECT_WRAPPED
                                   : c->from->a2a == &dgm_codec_a2a_03 ? DGM_DIRECT_BARE
                                                                       : DGM_DIRECT_REST;
    const dgm_at *at = frame->envelope == DGM_ENVELOPE_NONE      ? NULL
                       : frame->envelope == DGM_ENVELOPE_REQUEST ? DGM_AT_LIT(NULL, "params")
                                                                 : DGM_AT_LIT(NULL, "result");
    if ((rc = dgm_direct_object_to_chat(r->arena, &frame->object, at, spelling, true, &messages,
                                        &list, r->err)))
        return rc;
    write_chat(c, in, &messages, list);
    return DGM_OK;
}

dgm_code dgm_convert_a2a(dgm_converter *c, const struct input *in, dgm_reader *all)
{
    dgm_reader mine = reader_of(c, in, all), *r = &mine;
    dgm_frame frame;
    dgm_code rc = dgm_convert_decode(c, in, r, &frame);
    if (rc)
        return rc;
    if (c->losses && in->value)
        dgm_loss_watch_a2a(c->losses, c->to->a2a ? DGM_LOSS_A2A : DGM_LOSS_DIRECT, c->from, c->to,
                           in->value, &frame);
    return c->to->a2a ? dgm_convert_write_a2a(c, in, &frame, r->err)
                      : dgm_convert_to_chat(c, in, &frame, r);
}
