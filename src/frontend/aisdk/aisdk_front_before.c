/*
 * frontend/aisdk/aisdk_front_before.c - the messages of a chat before the current turn.
 *
 * Turns that only bring results of the caller's tools continue the UI message of the turn before. A client that reconnects
 * needs all of it, so the records of those turns are streamed first, as parts of the one message.
 */
#include "base/map.h"
#include "canon/message_content.h"
#include "frontend/aisdk/aisdk_front_int.h"
#include "model/approval.h"

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

/* Does a UI message begin behind this? Not behind what brings nothing but results and approvals. */
static bool begins_message(const dgm_event *e)
{
    const dgm_message *m = callers(e);
    for (size_t i = 0; m && i < m->parts.n; i++) {
        dgm_approval approval;
        const dgm_part *p = &m->parts.at[i];
        bool is_approval = p->kind == DGM_PART_DATA && dgm_approval_read(p->data, &approval);
        if (!is_approval && !dgm_content_data_member(p, DGM_DATA_RESULTS))
            return true;
    }
    return e->kind == DGM_EVENT_TASK;
}

/* The next record up to `last`; NULL at the end. */
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
    b->reader = dgm_log_reader_open(log, log->first_seq - 1, on_ready, NULL);
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
static dgm_code aisdk_front_before_on_event(void *arg, const dgm_canon_event *event)
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

dgm_code dgm_aisdk_say_before(dgm_log *log, uint64_t first_seq, const struct aisdk_note *note,
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
            break; /* it is streamed as part of the turn */
        if (callers(&e))
            e = (dgm_event){.kind = DGM_EVENT_MESSAGE, .message = e.internal->message};
        rc = dgm_records_to_events_feed(from, &e, (dgm_canon_sink){aisdk_front_before_on_event, &b},
                                        NULL);
    }
    dgm_log_reader_close(b.reader);
    dgm_map_done(&b.results);
    return rc;
}

/* ---- the messages of a chat, as its page shows them ---------------------------------------------------------------- */

static void drop_behind(dgm_canon_messages *list, const dgm_map *users, dgm_str id)
{
    size_t *at = dgm_map_get(users, id);
    /* that entry may have been dropped before, and another one may have its index now */
    if (at && *at < list->n && dgm_str_eq(list->at[*at].id, id))
        list->n = *at;
}

dgm_canon_messages dgm_aisdk_as_seen(dgm_arena *a, const dgm_canon_messages *messages)
{
    dgm_canon_messages list = {dgm_new_n(a, dgm_canon_message, messages->n), 0};
    dgm_map users;
    dgm_str answer = {0};
    dgm_map_init(&users);
    for (size_t i = 0; i < messages->n; i++) {
        dgm_canon_message m = messages->at[i];
        if (m.role == DGM_CANON_USER) {
            drop_behind(&list, &users, m.id);
            dgm_map_put(&users, m.id, list.n);
            answer = dgm_aisdk_answer_id(a, m.id);
        } else if (m.role == DGM_CANON_ASSISTANT || m.role == DGM_CANON_TOOL ||
                   m.role == DGM_CANON_REASONING) {
            m.id = answer.n ? answer : m.id;
        }
        list.at[list.n++] = m;
    }
    dgm_map_done(&users);
    return list;
}

/* ---- the route --------------------------------------------------------------------------------------------- */

static dgm_code aisdk_front_before_add_message(void *arg, dgm_str name, dgm_str payload)
{
    dgm_buf *out = arg;
    (void)name;
    if (out->n > 1)
        dgm_buf_add_char(out, ',');
    dgm_buf_add_str(out, payload);
    return DGM_OK;
}

static void aisdk_front_before_on_history(dgm_code code, const dgm_turn_history *history,
                                          const dgm_err *err, void *arg)
{
    static const dgm_http_header not_kept = {{"Cache-Control", 13}, {"no-store", 8}};
    struct aisdk_ask *ask = arg;
    dgm_http_exchange *x = ask->q.x;
    dgm_err fault = {0};
    dgm_buf out;
    if (code) {
        dgm_aisdk_refuse(x, err, NULL, 0);
        return;
    }
    dgm_canon_messages seen = dgm_aisdk_as_seen(dgm_http_arena(x), &history->messages);
    dgm_buf_init(&out, DGM_MAX_OUTPUT_BYTES);
    dgm_buf_add_char(&out, '[');
    code = dgm_codec_aisdk.write_messages(&seen, &(dgm_stream_params){0},
                                          (dgm_frame_sink){aisdk_front_before_add_message, &out},
                                          &fault);
    dgm_buf_add_char(&out, ']');
    if (!code && out.over)
        code =
            dgm_fail(&fault, DGM_TOO_LARGE, NULL,
                     "the chat is longer than the limit output_bytes of %zu", DGM_MAX_OUTPUT_BYTES);
    if (code)
        dgm_aisdk_refuse(x, &fault, NULL, 0);
    else
        dgm_turn_respond_held(x, DGM_STR("application/json"), &not_kept, 1, &out,
                              dgm_turn_take_hold(history));
    dgm_buf_done(&out);
}

void dgm_aisdk_messages(struct aisdk_ask *ask)
{
    dgm_turn_get_shown_history(ask->q.turns, dgm_http_arena(ask->q.x), ask->q.owner,
                               ask->q.agent->id, ask->chat, aisdk_front_before_on_history, ask);
}
