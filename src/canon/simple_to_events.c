/* canon/simple_to_events.c - events of the simple dialect to canonical events. */
#include "canon/simple_to_events.h"
#include "canon/compact.h"
#include "canon/records_to_events.h"

#include <stdlib.h>

struct dgm_simple_to_events {
    dgm_records_to_events *to;
    dgm_arena *arena; /* the run's ids */
    dgm_simple_run run;
    dgm_mint mint;
    dgm_arena *collected_arena; /* NULL: without compact */
    dgm_simple_events collected;
};

dgm_simple_to_events *dgm_simple_to_events_new(bool fragment, bool compact, dgm_mint mint)
{
    dgm_simple_to_events *d = dgm_xcalloc(1, sizeof *d);
    dgm_records_params params = {
        .fragment = fragment, .say_history = true, .many_turns = true, .many_messages = true};
    d->to = dgm_records_to_events_new(&params);
    d->arena = dgm_arena_new();
    d->mint = mint;
    d->collected_arena = compact ? dgm_arena_new() : NULL;
    return d;
}

void dgm_simple_to_events_free(dgm_simple_to_events *d)
{
    if (!d)
        return;
    dgm_records_to_events_free(d->to);
    dgm_arena_free(d->arena);
    dgm_arena_free(d->collected_arena);
    free(d);
}

void dgm_simple_to_events_set_run(dgm_simple_to_events *d, dgm_str run_id, dgm_str thread_id)
{
    if (run_id.n && !dgm_str_eq(run_id, d->run.run_id))
        d->run.run_id = dgm_arena_dup(d->arena, run_id);
    if (thread_id.n && !dgm_str_eq(thread_id, d->run.thread_id))
        d->run.thread_id = dgm_arena_dup(d->arena, thread_id);
}

static dgm_code convert_simple(dgm_simple_to_events *d, dgm_arena *a, const dgm_simple_event *e,
                               dgm_canon_sink sink, dgm_err *err)
{
    dgm_event event;
    dgm_simple_to_events_set_run(d, e->run_id, e->thread_id);
    dgm_simple_to_model(a, e, d->run, &d->mint, &event);
    if (event.kind == DGM_EVENT_MESSAGE) /* a message of a run does not end the run */
        event.message->task_id = d->run.run_id;
    return dgm_records_to_events_feed(d->to, &event, sink, err);
}

dgm_code dgm_simple_to_events_feed(dgm_simple_to_events *d, dgm_arena *a, const dgm_simple_event *e,
                                   dgm_canon_sink sink, dgm_err *err)
{
    return d->collected_arena ? dgm_simple_append_copy(d->collected_arena, &d->collected, e, err)
                              : convert_simple(d, a, e, sink, err);
}

dgm_code dgm_simple_to_events_end(dgm_simple_to_events *d, dgm_canon_sink sink, dgm_err *err)
{
    dgm_simple_events *list = &d->collected;
    dgm_code rc = DGM_OK;
    if (d->collected_arena && (rc = dgm_compact_simple(d->collected_arena, list, list, err)))
        return rc;
    for (size_t i = 0; !rc && i < list->n; i++)
        rc = convert_simple(d, d->collected_arena, &list->at[i], sink, err);
    return rc ? rc : dgm_records_to_events_end(d->to, sink, err);
}
