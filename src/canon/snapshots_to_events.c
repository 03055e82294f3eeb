/* canon/snapshots_to_events.c - see snapshots.h. */
#include "canon/snapshots_to_events.h"
#include "base/list.h"
#include "base/map.h"
#include "canon/interrupts.h"
#include "canon/messages_to_events.h"
#include "model/reconcile.h"

#include <stdlib.h>

struct dgm_snapshots {
    dgm_mint mint;
    bool asks_approvals;
    dgm_arena *arena; /* of this run: ids */
    dgm_map texts;    /* ids of messages: index of sums */
    dgm_sum *sums;
    size_t n_sums, cap_sums;
    dgm_map calls, results; /* ids of calls that were made, and answered */
    dgm_map old;            /* ids of messages that were there before the run */
    dgm_map whole;          /* texts that ended: the bytes of their sums */
};

/* Where what a snapshot adds goes. */
struct hearing {
    dgm_snapshots *s;
    dgm_canon_sink sink;
};

dgm_snapshots *dgm_snapshots_new(dgm_mint mint, bool asks_approvals)
{
    dgm_snapshots *s = dgm_xcalloc(1, sizeof *s);
    s->mint = mint;
    s->asks_approvals = asks_approvals;
    s->arena = dgm_arena_new();
    return s; /* maps are empty when they are zero */
}

static void from_snapshots_forget(dgm_snapshots *s)
{
    dgm_map_done(&s->texts);
    dgm_map_done(&s->calls);
    dgm_map_done(&s->results);
    dgm_map_done(&s->old);
    dgm_map_done(&s->whole);
    s->n_sums = 0;
}

void dgm_snapshots_free(dgm_snapshots *s)
{
    if (!s)
        return;
    from_snapshots_forget(s);
    free(s->sums);
    dgm_arena_free(s->arena);
    free(s);
}

/* ---- emitted texts --------------------------------------------------------------------------------------------- */

static void note(dgm_snapshots *s, dgm_map *ids, dgm_str id)
{
    if (id.n && !dgm_map_get(ids, id))
        dgm_map_put(ids, dgm_arena_dup(s->arena, id), 0);
}

static dgm_sum *sum_of(dgm_snapshots *s, dgm_str id)
{
    size_t *known = dgm_map_get(&s->texts, id);
    if (known)
        return &s->sums[*known];
    s->sums = dgm_list_reserve(s->sums, s->n_sums, &s->cap_sums, sizeof *s->sums);
    s->sums[s->n_sums] = (dgm_sum){0};
    dgm_map_put(&s->texts, dgm_arena_dup(s->arena, id), s->n_sums);
    return &s->sums[s->n_sums++];
}

/* Sums of the same text are the same, however it was cut. */
static dgm_str bytes_of(const dgm_sum *sum)
{
    return (dgm_str){(const char *)sum, sizeof *sum};
}

static void from_snapshots_begin(dgm_snapshots *s, const dgm_canon_input *input)
{
    from_snapshots_forget(s);
    dgm_arena_reset(s->arena);
    for (size_t i = 0; input && i < input->messages.n; i++)
        note(s, &s->old, input->messages.at[i].id);
}

static void listen(dgm_snapshots *s, const dgm_canon_event *e)
{
    switch (e->kind) {
    case DGM_CANON_RUN_STARTED: from_snapshots_begin(s, e->run_started.input); break;
    case DGM_CANON_TEXT_MESSAGE_START:
    case DGM_CANON_REASONING_START:
    case DGM_CANON_REASONING_MESSAGE_START: sum_of(s, e->text.message_id); break;
    case DGM_CANON_TEXT_MESSAGE_CONTENT:
    case DGM_CANON_REASONING_MESSAGE_CONTENT:
        dgm_sum_add(sum_of(s, e->text.message_id), e->text.delta);
        break;
    case DGM_CANON_TEXT_MESSAGE_END:
    case DGM_CANON_REASONING_MESSAGE_END:
        note(s, &s->whole, bytes_of(sum_of(s, e->text.message_id)));
        break;
    case DGM_CANON_TOOL_CALL_START: note(s, &s->calls, e->call.tool_call_id); break;
    case DGM_CANON_TOOL_CALL_RESULT: note(s, &s->results, e->result.tool_call_id); break;
    case DGM_CANON_ACTIVITY_SNAPSHOT: sum_of(s, e->activity.message_id); break;
    default: break; /* nothing that a message has */
    }
}

/* ---- what a snapshot adds -------------------------------------------------------------------------------------- */

static dgm_code on_said(void *arg, const dgm_canon_event *event)
{
    const struct hearing *h = arg;
    listen(h->s, event);
    return dgm_canon_emit(h->sink, event);
}

static dgm_code from_snapshots_say(dgm_snapshots *s, dgm_arena *a, dgm_canon_message *m,
                                   dgm_canon_sink sink)
{
    struct hearing h = {s, sink};
    dgm_canon_messages one = {m, 1};
    return dgm_messages_to_events(a, &one, &s->mint, false, (dgm_canon_sink){on_said, &h});
}

static dgm_code say_instead(dgm_snapshots *s, dgm_canon_message *m, dgm_str text,
                            dgm_canon_sink sink)
{
    dgm_canon_event e = {.kind = DGM_CANON_MESSAGES_SNAPSHOT};
    dgm_sum *sum = sum_of(s, m->id);
    *sum = (dgm_sum){0};
    dgm_sum_add(sum, text);
    m->content = (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT, .text = text};
    m->tool_calls.n = 0;
    e.snapshot.messages = (dgm_canon_messages){m, 1};
    e.snapshot.changed = m->id;
    return dgm_canon_emit(sink, &e);
}

/* Some agents have other ids in their snapshots than in their streams. */
static bool was_said(const dgm_snapshots *s, dgm_str text)
{
    dgm_sum sum = {0};
    dgm_sum_add(&sum, text);
    return dgm_map_get(&s->whole, bytes_of(&sum));
}

/* Removes the calls that were emitted before from the message. */
static void leave_new_calls(const dgm_snapshots *s, dgm_arena *a, dgm_canon_message *m)
{
    dgm_canon_calls all = m->tool_calls;
    m->tool_calls = (dgm_canon_calls){dgm_new_n(a, dgm_canon_call, all.n), 0};
    for (size_t i = 0; i < all.n; i++) {
        if (!dgm_map_get(&s->calls, all.at[i].id))
            m->tool_calls.at[m->tool_calls.n++] = all.at[i];
    }
}

static dgm_code from_snapshots_add_message(dgm_snapshots *s, dgm_arena *a, dgm_canon_message m,
                                           dgm_canon_sink sink)
{
    dgm_str text = dgm_canon_content_text(a, &m.content);
    bool known = m.id.n && dgm_map_get(&s->texts, m.id);
    dgm_code rc = DGM_OK;
    if (m.role == DGM_CANON_TOOL)
        return dgm_map_get(&s->results, m.tool_call_id) ? DGM_OK
                                                        : from_snapshots_say(s, a, &m, sink);
    if (m.role == DGM_CANON_ACTIVITY)
        return known ? DGM_OK : from_snapshots_say(s, a, &m, sink);
    leave_new_calls(s, a, &m);
    const dgm_sum *sum = known ? &s->sums[*dgm_map_get(&s->texts, m.id)] : NULL;
    if (text.n &&
        (was_said(s, text) || (sum && sum->n == text.n && dgm_sum_is_prefix(sum, text)))) {
        m.content = (dgm_canon_content){0};
    } else if (known && m.role == DGM_CANON_ASSISTANT && text.n) {
        dgm_canon_message changed = m;
        rc = say_instead(s, &changed, text, sink);
        m.content = (dgm_canon_content){0};
    }
    bool says = m.tool_calls.n || (!known && m.content.kind != DGM_CANON_CONTENT_ABSENT);
    return rc || !says ? rc : from_snapshots_say(s, a, &m, sink);
}

static dgm_code open_up(dgm_snapshots *s, const dgm_canon_messages *all, dgm_canon_sink sink)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    size_t first = 0;
    dgm_code rc = DGM_OK;
    for (size_t i = 0; i < all->n; i++) {
        if (all->at[i].role == DGM_CANON_USER)
            first = i + 1; /* before it nothing is of this run */
    }
    for (size_t i = first; !rc && i < all->n; i++) {
        if (!dgm_map_get(&s->old, all->at[i].id))
            rc = from_snapshots_add_message(s, a, all->at[i], sink);
    }
    return rc;
}

/* Who takes no interrupts would never hear what he is asked. */
static dgm_code say_questions(dgm_snapshots *s, const dgm_canon_outcome *o, dgm_canon_sink sink)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_code rc = DGM_OK;
    for (size_t i = 0; !rc && i < o->interrupts.n; i++) {
        dgm_canon_message m = {.role = DGM_CANON_ASSISTANT};
        if (s->asks_approvals && dgm_interrupt_is_only_approval(a, &o->interrupts.at[i]))
            continue;
        m.content = (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT,
                                        .text = o->interrupts.at[i].message};
        if (m.content.text.n && !was_said(s, m.content.text))
            rc = from_snapshots_say(s, a, &m, sink);
    }
    return rc;
}

dgm_code dgm_snapshots_feed(dgm_snapshots *s, const dgm_canon_event *event, dgm_canon_sink sink)
{
    if (event->kind == DGM_CANON_MESSAGES_SNAPSHOT && !event->snapshot.changed.n)
        return open_up(s, &event->snapshot.messages, sink);
    if (event->kind == DGM_CANON_RUN_FINISHED) {
        dgm_code rc = say_questions(s, &event->run_finished.outcome, sink);
        if (rc)
            return rc;
    }
    listen(s, event);
    return dgm_canon_emit(sink, event);
}
