/*
 * lib/convert_pieces.c - A2A messages that were streamed in pieces: compacted before they are converted.
 *
 * An array of messages is a history. It is compacted as compact_events() compacts its events (canon/compact.h),
 * and then converted as an array of complete messages. So is the history of a Task.
 */
#include "canon/compact.h"
#include "lib/convert_int.h"

static const dgm_message *message_in(const dgm_object *o)
{
    const dgm_event *event = o->it;
    if (o->kind == DGM_OBJECT_MESSAGE)
        return o->it;
    return (o->kind == DGM_OBJECT_STREAM_RESPONSE || o->kind == DGM_OBJECT_SEND_RESPONSE) &&
                   event->kind == DGM_EVENT_MESSAGE
               ? event->message
               : NULL;
}

static const dgm_task *task_in(const dgm_object *o)
{
    const dgm_event *event = o->it;
    if (o->kind == DGM_OBJECT_TASK)
        return o->it;
    return (o->kind == DGM_OBJECT_STREAM_RESPONSE || o->kind == DGM_OBJECT_SEND_RESPONSE) &&
                   event->kind == DGM_EVENT_TASK
               ? event->task
               : NULL;
}

/* ---- arrays ------------------------------------------------------------------------------------------------ */

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
        rc = dgm_convert_frame(c, &one, r);
    }
    return rc;
}

/* Are all elements A2A's? The array is read twice, because nothing may be written before that is known. */
static bool is_all_a2a(dgm_converter *c, yyjson_val *array)
{
    yyjson_val *e;
    size_t i, n;
    yyjson_arr_foreach (array, i, n, e) {
        const dgm_format *found = c->from_any ? dgm_format_recognise(e, c->from) : c->from;
        if (!found || !found->a2a)
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
    dgm_loss_watch_a2a(c->losses,
                       c->to->a2a                     ? DGM_LOSS_A2A
                       : dgm_convert_is_direct(c, in) ? DGM_LOSS_DIRECT
                                                      : DGM_LOSS_READING,
                       c->from, c->to, in->value, frame);
    dgm_loss_watch_below(c->losses, NULL);
}

/* ret_compactor: a run of neighbouring messages that is still open; NULL: there is none. */
static dgm_code convert_element(dgm_converter *c, struct input *in, dgm_reader *r,
                                dgm_compactor **compactor)
{
    dgm_frame frame;
    dgm_code rc;
    const dgm_at *wrapped = DGM_AT_LIT(NULL, "message");
    if (c->from_any)
        c->from = dgm_format_recognise(in->value, c->from);
    if ((rc = dgm_convert_decode(c, in, r, &frame)))
        return rc;
    const dgm_message *m = message_in(&frame.object);
    if (m) {
        watch_message(c, in, &frame);
        if (!*compactor)
            *compactor = dgm_compactor_new(r->arena, true);
        if ((rc = dgm_compactor_add(*compactor, m, wrapped, r->err)))
            dgm_convert_respell(r->err, &frame, c->from->a2a);
        return rc;
    }
    if (*compactor && (rc = write_compacted(c, in, *compactor, r)))
        return rc;
    *compactor = NULL;
    struct input one = *in;
    one.frame = &frame;
    return dgm_convert_frame(c, &one, r);
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
    if (c->between_a2a)
        return false; /* from one dialect of A2A to another every message stays */
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

/* ---- tasks ------------------------------------------------------------------------------------------------- */

bool dgm_convert_compact_a2a(dgm_converter *c, const struct input *in, dgm_reader *r,
                             dgm_code *ret_rc)
{
    dgm_frame frame;
    dgm_task whole;
    if (!c->from->a2a || !c->to->a2a || c->as || c->compact != DGM_COMPACT_ALWAYS || in->in_stream)
        return false;
    if ((*ret_rc = dgm_convert_decode(c, in, r, &frame)))
        return true;
    const dgm_task *task = task_in(&frame.object);
    if (!task && !message_in(&frame.object))
        return false;
    if (task) {
        const dgm_at *at = DGM_AT_LIT(NULL, "task");
        if ((*ret_rc = dgm_compact_task(r->arena, task, true, at, &whole, r->err))) {
            dgm_convert_respell(r->err, &frame, c->from->a2a);
            return true;
        }
        frame.object = (dgm_object){DGM_OBJECT_TASK, &whole};
    }
    if (c->losses)
        dgm_loss_watch_a2a(c->losses, DGM_LOSS_A2A, c->from, c->to, in->value, &frame);
    *ret_rc = dgm_convert_write_a2a(c, in, &frame, r->err);
    return true;
}
