/*
 * lib/functions_official.c - one object of A2A as AG-UI's own events.
 *
 * Chunks stay chunks: AG-UI has events for them that need no beginning and no end. Everything else is
 * written as in a stream.
 */
#include "canon/message_content.h"
#include "canon/records_to_events.h"
#include "lib/functions_int.h"
#include "wire/agui/agui.h"

struct writing {
    dgm_functions_out *out;
    dgm_arena *a;
    bool working; /* one step of a run that goes on: that it ends is not known */
};

static dgm_code put_canon(void *arg, const dgm_canon_event *e)
{
    struct writing *k = arg;
    size_t before = k->out->text.n, n = k->out->n;
    if (k->working && e->kind == DGM_CANON_STEP_FINISHED)
        return DGM_OK;
    dgm_writer w = dgm_functions_next(k->out, DGM_FORMAT_AG_UI);
    size_t begin = w.out->n;
    dgm_agui_write_event(&w, e, (dgm_agui_peer){0}, k->a);
    if (w.out->n == begin) { /* it is empty */
        k->out->text.n = before;
        k->out->n = n;
    }
    return DGM_OK;
}

/* Chunks open and close themselves: the ones of several messages are put together by their ids. */
static bool put_chunk(struct writing *k, const dgm_simple_event *e)
{
    dgm_canon_event c = {.kind = DGM_CANON_NONE};
    switch ((int)e->kind) {
    case DGM_SIMPLE_STEP_STARTED:
        c.kind = DGM_CANON_STEP_STARTED;
        c.step.name = e->step_name;
        break;
    case DGM_SIMPLE_TEXT_CHUNK:
        c.kind = DGM_CANON_TEXT_MESSAGE_CHUNK;
        c.text.message_id = e->message_id;
        c.text.role = DGM_CANON_ASSISTANT;
        c.text.delta = e->delta;
        break;
    case DGM_SIMPLE_CALL_ARGS:
        c.kind = DGM_CANON_TOOL_CALL_CHUNK;
        c.call.tool_call_id = e->call.id;
        c.call.name = e->call.name;
        c.call.parent_message_id = e->parent_message_id;
        c.call.delta = dgm_content_arguments(k->a, e->call.arguments);
        break;
    default: return false;
    }
    put_canon(k, &c);
    return true;
}

dgm_code dgm_functions_put_official(dgm_functions_out *out, dgm_arena *a,
                                    const dgm_simple_events *events, const dgm_event *e,
                                    dgm_err *err)
{
    struct writing *k = &(struct writing){.out = out, .a = a};
    bool chunks = false;
    for (size_t i = 0; i < events->n; i++)
        chunks |= events->at[i].kind == DGM_SIMPLE_TEXT_CHUNK ||
                  events->at[i].kind == DGM_SIMPLE_CALL_ARGS;
    if (chunks && e->kind != DGM_EVENT_TASK) {
        for (size_t i = 0; i < events->n; i++)
            put_chunk(k, &events->at[i]);
        return DGM_OK;
    }
    const dgm_records_params params = {
        .fragment = true, .say_history = true, .whole_snapshots = true};
    dgm_auto(dgm_records_to_events_free) dgm_records_to_events *f =
        dgm_records_to_events_new(&params);
    dgm_canon_sink sink = {put_canon, k};
    dgm_code rc;
    k->working = (e->kind == DGM_EVENT_STATUS && e->status->status.state == DGM_STATE_WORKING) ||
                 (e->kind == DGM_EVENT_TASK && e->task->status.state == DGM_STATE_WORKING);
    if ((rc = dgm_records_to_events_feed(f, e, sink, err)))
        return rc;
    return dgm_records_to_events_end(f, sink, err);
}
