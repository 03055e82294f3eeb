/*
 * frontend/aisdk/aisdk_front_before.c - what a UI message had before the turn that goes on with it.
 *
 * Turns that only bring results of the caller's tools go on with the message of the turn before. Who comes back
 * wants all of it, so the records of those turns are told in front, as parts of the one message.
 */
#include "base/map.h"
#include "canon/message_content.h"
#include "frontend/aisdk/aisdk_front_int.h"

struct before {
    dgm_log_reader *reader;
    dgm_arena *scratch;
    dgm_map results; /* ids of calls that the caller has answered */
    dgm_canon_sink next;
};

static const dgm_message *callers(const dgm_event *e)
{
    bool is = e->kind == DGM_EVENT_INTERNAL && e->internal->kind == DGM_INTERNAL_MESSAGE &&
              e->internal->message && e->internal->message->role == DGM_ROLE_USER;
    return is ? e->internal->message : NULL;
}

/* Does a UI message begin behind this? Not behind what brings nothing but results. */
static bool begins_message(const dgm_event *e)
{
    const dgm_message *m = callers(e);
    for (size_t i = 0; m && i < m->parts.n; i++) {
        if (!dgm_content_data_member(&m->parts.at[i], DGM_DATA_RESULTS))
            return true;
    }
    return e->kind == DGM_EVENT_TASK;
}

/* The next record up to `last`; NULL: there is none. */
static dgm_record *next_record(struct before *b, uint64_t last)
{
    dgm_arena_reset(b->scratch);
    return dgm_log_reader_seq(b->reader) < last ? dgm_log_reader_next(b->reader) : NULL;
}

static bool read_event(struct before *b, const dgm_record *r, dgm_event *ret)
{
    return !dgm_record_event(r, b->scratch, ret, NULL);
}

static void on_ready(void *arg)
{
    (void)arg; /* all of it is there */
}

static uint64_t find_beginning(struct before *b, dgm_log *log, uint64_t last)
{
    uint64_t found = last;
    dgm_record *r;
    dgm_event e;
    b->reader = dgm_log_reader_open(log, dgm_log_first(log) - 1, on_ready, NULL);
    while ((r = next_record(b, last))) {
        bool may_be = r->head.kind == DGM_EVENT_TASK || r->head.kind == DGM_EVENT_INTERNAL;
        if (may_be && read_event(b, r, &e) && begins_message(&e))
            found = r->head.seq;
    }
    dgm_log_reader_close(b->reader);
    return found;
}

/* Calls that the caller has answered were its own to make. Runs begin and end only once in the message, and
 * progress is of the moment. */
static dgm_code on_event(void *arg, const dgm_canon_event *event)
{
    const struct before *b = arg;
    dgm_canon_event own = *event;
    if (event->kind == DGM_CANON_RUN_STARTED || dgm_canon_is_terminal(event->kind) ||
        event->kind == DGM_CANON_ACTIVITY_SNAPSHOT)
        return DGM_OK;
    if (event->kind == DGM_CANON_TOOL_CALL_START)
        own.call.pending = dgm_map_get(&b->results, event->call.tool_call_id) != NULL;
    return dgm_canon_emit(b->next, &own);
}

dgm_code aisdk_say_before(dgm_log *log, uint64_t first_seq, const struct aisdk_note *note,
                          dgm_answer_source source, dgm_canon_sink next)
{
    dgm_auto(dgm_arena_free) dgm_arena *scratch = dgm_arena_new();
    struct before b = {.scratch = scratch, .next = next};
    dgm_auto(dgm_records_to_events_free) dgm_records_to_events *from =
        dgm_records_to_events_new(&(dgm_records_params){.run_id = note->message_id,
                                                        .answer_source = source,
                                                        .say_history = true,
                                                        .many_turns = true,
                                                        .trusted = true});
    dgm_map_init(&b.results);
    for (size_t i = 0; i < note->results.n; i++)
        dgm_map_put(&b.results, note->results.at[i], i);
    uint64_t begin = find_beginning(&b, log, first_seq);
    dgm_code rc = DGM_OK;
    dgm_record *r;
    dgm_event e;
    b.reader = dgm_log_reader_open(log, begin - 1, on_ready, NULL);
    while (!rc && (r = next_record(&b, first_seq)) && read_event(&b, r, &e)) {
        if (r->head.seq == first_seq && !callers(&e))
            break; /* it is told as part of the turn */
        if (callers(&e))
            e = (dgm_event){.kind = DGM_EVENT_MESSAGE, .message = e.internal->message};
        rc = dgm_records_to_events_feed(from, &e, (dgm_canon_sink){on_event, &b}, NULL);
    }
    dgm_log_reader_close(b.reader);
    dgm_map_done(&b.results);
    return rc;
}
