/*
 * lib/convert_pieces.c - A2A messages that were streamed in pieces: compacted before they are converted.
 *
 * An array of messages is a history. It is compacted as compact_events() compacts its events (canon/compact.h),
 * and then converted as an array of complete messages.
 */
#include "canon/compact.h"
#include "lib/convert_int.h"

static dgm_code write_compacted(dgm_converter *c, struct input *in, dgm_compactor *compactor,
                                dgm_reader *r)
{
    dgm_compacted_list list;
    dgm_code rc = dgm_compactor_end(compactor, &list, r->err);
    for (size_t i = 0; !rc && i < list.n; i++) {
        const dgm_frame frame = {.object = {DGM_OBJECT_MESSAGE, &list.at[i].message}};
        struct input one = *in;
        one.frame = &frame;
        one.value = NULL;
        one.at = NULL;
        rc = dgm_convert_value(c, &one, r);
    }
    return rc;
}

/* Are all elements A2A's? The array is read twice, because nothing may be written before that is known. */
static bool is_all_a2a(dgm_converter *c, yyjson_val *array)
{
    yyjson_val *e;
    size_t i, n;
    yyjson_arr_foreach (array, i, n, e) {
        const dgm_codec *found = c->from_any ? dgm_codec_detect(e, c->from, NULL) : c->from;
        if (!found || !found->decode)
            return false;
        c->from = found;
    }
    return true;
}

/* The messages that are written are others, so the losses of these are found here. */
static void watch_message(dgm_converter *c, const struct input *in, const dgm_frame *frame)
{
    if (!c->losses)
        return;
    dgm_loss_watch_below(c->losses, in->at);
    enum dgm_path path = dgm_convert_path(c, in, &frame->object, DGM_FORM_NONE);
    dgm_loss_watch_a2a(c->losses,
                       path == DGM_PATH_OBJECTS  ? DGM_LOSS_A2A
                       : path == DGM_PATH_DIRECT ? DGM_LOSS_DIRECT
                                                 : DGM_LOSS_READING,
                       c->from, c->to, in->value, frame);
    dgm_loss_watch_below(c->losses, NULL);
}

/* ret_compactor: a run of neighbouring messages that is still open; NULL if no run is open. */
static dgm_code convert_element(dgm_converter *c, struct input *in, dgm_reader *r,
                                dgm_compactor **compactor)
{
    dgm_frame frame;
    dgm_code rc;
    const dgm_at *wrapped = DGM_AT_LIT(NULL, "message");
    if (c->from_any)
        c->from = dgm_codec_detect(in->value, c->from, NULL);
    if ((rc = c->from->decode(r, in->value, in->kind, in->in_stream, &frame)))
        return rc;
    const dgm_message *m = dgm_a2a_message_in(&frame.object);
    if (m) {
        watch_message(c, in, &frame);
        if (!*compactor)
            *compactor = dgm_compactor_new(r->arena, true);
        if ((rc = dgm_compactor_add(*compactor, m, wrapped, r->err)))
            dgm_a2a_name_pointer(c->from, &frame, r->err);
        return rc;
    }
    if (*compactor && (rc = write_compacted(c, in, *compactor, r)))
        return rc;
    *compactor = NULL;
    struct input one = *in;
    one.frame = &frame;
    one.at = NULL;
    return dgm_convert_value(c, &one, r);
}

bool dgm_convert_pieces(dgm_converter *c, struct input *in, dgm_reader *r, dgm_code *ret_rc)
{
    yyjson_val *array = in->value;
    dgm_compactor *compactor = NULL;
    size_t i, n;
    if (!is_all_a2a(c, array))
        return false;
    if (!c->settled && (*ret_rc = dgm_convert_settle_target(c, r->err)))
        return true;
    if (c->between_objects)
        return false; /* from one dialect of A2A to another every message stays */
    in->compacted = true;
    yyjson_arr_foreach (array, i, n, in->value) {
        in->at = DGM_AT_I(NULL, i);
        if ((*ret_rc = convert_element(c, in, r, &compactor))) {
            if (r->err)
                dgm_err_below(in->at, r->err);
            return true;
        }
    }
    if (compactor)
        *ret_rc = write_compacted(c, in, compactor, r);
    return true;
}
