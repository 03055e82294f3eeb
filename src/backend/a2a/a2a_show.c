/*
 * backend/a2a/a2a_show.c - events of the remote task to events of ours, each one once.
 *
 * After a lost connection the agent repeats: a Task with everything so far, or events again from some point on. Of each
 * artifact the length and a hash of what was emitted are known (dgm_sum), so the part that is new can be found without
 * storing the text. A snapshot that has less than what was emitted is an old one: nothing is taken back.
 *
 * Some agents (LangGraph's server) stream their answer in `working` statuses, each with the whole text so far, then send it
 * again as an artifact. Such a text is emitted as an artifact of its own that grows; the agent's artifact continues or
 * replaces it. One text that is followed by one that extends it shows this. Until then it may be progress, so the first one
 * is held back for a moment.
 */
#include "backend/a2a/a2a_int.h"

#include "base/limits.h"
#include "model/fold.h"
#include "model/form.h"
#include "model/stamp.h"

#include <stdio.h>
#include <stdlib.h>

#define HOLD_MS 300
#define KNOWN_HOLD_MS 3000 /* of an agent that is known to repeat its text */
#define LIVE_ID "status-text"

/* ---- parts as one text ----------------------------------------------------------------------------------------------------- */

static bool show_is_text(dgm_parts parts)
{
    for (size_t i = 0; i < parts.n; i++) {
        if (parts.at[i].kind != DGM_PART_TEXT)
            return false;
    }
    return parts.n > 0;
}

/* Texts as they are, however they are cut into parts; other parts as JSON between two bytes that no text has. */
static void show_put_part(dgm_buf *b, const dgm_part *part)
{
    dgm_writer w = {.out = b, .format = DGM_FORMAT_A2A_10};
    if (part->kind == DGM_PART_TEXT) {
        dgm_buf_add_str(b, part->content);
        return;
    }
    dgm_buf_add_char(b, '\xff');
    dgm_shape_write(&w, &dgm_form_part, part);
    dgm_buf_add_char(b, '\xff');
}

static void show_add_parts(dgm_sum *sum, dgm_parts parts)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < parts.n; i++) {
        if (parts.at[i].kind == DGM_PART_TEXT) {
            dgm_sum_add(sum, parts.at[i].content);
            continue;
        }
        dgm_buf_clear(&b);
        show_put_part(&b, &parts.at[i]);
        dgm_sum_add(sum, dgm_buf_str(&b));
    }
    dgm_buf_done(&b);
}

static void show_put_parts(dgm_buf *b, dgm_parts parts)
{
    for (size_t i = 0; i < parts.n; i++)
        show_put_part(b, &parts.at[i]);
}

/* The parts behind the first n bytes of their text. */
static dgm_parts parts_behind(dgm_arena *a, dgm_parts parts, size_t n)
{
    dgm_parts rest = {dgm_new_n(a, dgm_part, parts.n + 1), 0};
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < parts.n; i++) {
        const dgm_part *part = &parts.at[i];
        dgm_buf_clear(&b);
        show_put_part(&b, part);
        if (b.n > n || (b.n == 0 && n == 0)) {
            rest.at[rest.n] = *part;
            if (n && part->kind == DGM_PART_TEXT)
                rest.at[rest.n].content = (dgm_str){part->content.p + n, part->content.n - n};
            rest.n++;
        }
        n -= n < b.n ? n : b.n;
    }
    dgm_buf_done(&b);
    return rest;
}

/* ---- artifacts ------------------------------------------------------------------------------------------------------------- */

static struct a2a_shown *shown_find(struct a2a_show *s, dgm_str id)
{
    size_t *i = dgm_map_get(&s->by_id, id);
    return i ? &s->artifacts[*i] : NULL;
}

static struct a2a_shown *shown_add(struct a2a_show *s, dgm_str id)
{
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 4;
        s->artifacts = dgm_xrealloc(s->artifacts, cap * sizeof *s->artifacts);
        s->cap = cap;
    }
    struct a2a_shown *a = &s->artifacts[s->n];
    *a = (struct a2a_shown){.id = dgm_arena_dup(s->arena, id), .round = s->round};
    dgm_map_put(&s->by_id, a->id, s->n++);
    return a;
}

static dgm_code emit_artifact(struct a2a_show *s, struct a2a_shown *a, const dgm_artifact_update *u,
                              dgm_err *err)
{
    dgm_artifact_update own = *u;
    dgm_event event = {.kind = DGM_EVENT_ARTIFACT, .artifact = &own};
    own.task_id = own.context_id = (dgm_str){0};
    own.artifact.artifact_id = a->id;
    if (own.append != DGM_TRUE) {
        a->sum = (dgm_sum){0};
        a->is_sealed = false;
    }
    show_add_parts(&a->sum, u->artifact.parts);
    if (own.append != DGM_TRUE)
        a->first = a->sum;
    a->is_before = false;
    a->is_sealed = a->is_sealed || own.last_chunk == DGM_TRUE;
    a->is_open = !a->is_sealed && (show_is_text(u->artifact.parts) || a->is_open);
    a->round = s->round;
    return s->run->ops->emit(s->run, &event, err);
}

/* The whole artifact again: emits what is new of it. */
static dgm_code show_whole(struct a2a_show *s, struct a2a_shown *a, const dgm_artifact_update *u,
                           dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *scratch = dgm_arena_new();
    dgm_artifact_update own = *u;
    bool ends = u->last_chunk == DGM_TRUE && !a->is_sealed;
    dgm_buf b;
    dgm_code rc = DGM_OK;
    dgm_buf_init(&b, SIZE_MAX);
    show_put_parts(&b, u->artifact.parts);
    a->round = s->round;
    a->is_again = false;
    if (dgm_sum_is_prefix(&a->sum, dgm_buf_str(&b))) {
        own.append = DGM_TRUE;
        own.artifact.parts = parts_behind(scratch, u->artifact.parts, a->sum.n);
        dgm_part empty = {.kind = DGM_PART_TEXT, .content = DGM_STR("")};
        bool has_more = own.artifact.parts.n;
        if (!has_more)
            own.artifact.parts = (dgm_parts){&empty, 1};
        if (has_more || (ends && a->is_open))
            rc = emit_artifact(s, a, &own, err);
    } else if (b.n >= a->sum.n || a->is_before) {
        own.append = DGM_FALSE;
        rc = emit_artifact(s, a, &own, err);
    } else { /* an old one: the updates between it and what was emitted follow */
        a->is_again = true;
        a->again = (dgm_sum){0};
        dgm_sum_add(&a->again, dgm_buf_str(&b));
    }
    dgm_buf_done(&b);
    return rc;
}

/* Parts that were emitted before the connection was lost are dropped. */
static dgm_code show_again(struct a2a_show *s, struct a2a_shown *a, const dgm_artifact_update *u,
                           dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *scratch = dgm_arena_new();
    dgm_sum with = a->again;
    dgm_artifact_update own = *u;
    a->round = s->round;
    show_add_parts(&with, u->artifact.parts);
    if (with.n <= a->sum.n) {
        a->again = with;
        a->is_again = with.n < a->sum.n;
        return DGM_OK;
    }
    own.append = DGM_TRUE;
    own.artifact.parts = parts_behind(scratch, u->artifact.parts, a->sum.n - a->again.n);
    a->is_again = false;
    return emit_artifact(s, a, &own, err);
}

/* An update of an artifact that the agent starts, or starts over. */
static dgm_code show_start(struct a2a_show *s, struct a2a_shown *a, const dgm_artifact_update *u,
                           dgm_err *err)
{
    if (a->round == s->round)
        return emit_artifact(s, a, u, err);
    dgm_sum sum = {0};
    show_add_parts(&sum, u->artifact.parts);
    if (sum.n >= a->sum.n)
        return show_whole(s, a, u, err);
    if (!sum.n || !dgm_sum_eq(&sum, &a->first))
        return emit_artifact(s, a, u, err);
    a->again = (dgm_sum){0};
    return show_again(s, a, u, err);
}

/* ---- answers in statuses --------------------------------------------------------------------------------------------------- */

static dgm_code live_chunk(struct a2a_show *s, dgm_str text, bool append, bool last, dgm_err *err)
{
    dgm_part part = {.kind = DGM_PART_TEXT, .content = text};
    dgm_artifact_update u = {.artifact = {.parts = {&part, 1}},
                             .append = append ? DGM_TRUE : DGM_FALSE,
                             .last_chunk = last ? DGM_TRUE : DGM_FALSE};
    return emit_artifact(s, &s->artifacts[s->live], &u, err);
}

static dgm_code live_start(struct a2a_show *s, dgm_str text, dgm_err *err)
{
    char id[40];
    do {
        snprintf(id, sizeof id, LIVE_ID "-%zu", ++s->n_live);
    } while (shown_find(s, dgm_str_from(id)));
    atomic_store_explicit(s->cumulative, true, memory_order_relaxed);
    s->live = (size_t)(shown_add(s, dgm_str_from(id)) - s->artifacts);
    s->artifacts[s->live].is_live = true;
    return live_chunk(s, text, false, false, err);
}

static dgm_code live_end(struct a2a_show *s, dgm_err *err)
{
    dgm_code rc = DGM_OK;
    if (s->live != SIZE_MAX && s->artifacts[s->live].is_open)
        rc = live_chunk(s, DGM_STR(""), true, true, err);
    s->live = SIZE_MAX;
    return rc;
}

/* The text of statuses that the agent now sends as an artifact: they are one. NULL: it is another text. */
static struct a2a_shown *live_of(struct a2a_show *s, const dgm_artifact *artifact)
{
    struct a2a_shown *found = NULL;
    if (!show_is_text(artifact->parts))
        return NULL;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str text = dgm_parts_text(artifact->parts, a);
    for (size_t i = s->n; i-- > 0 && !found;) {
        if (s->artifacts[i].is_live &&
            (i == s->live || dgm_sum_is_prefix(&s->artifacts[i].sum, text)))
            found = &s->artifacts[i];
    }
    if (!found)
        return NULL;
    dgm_map_put(&s->by_id, dgm_arena_dup(s->arena, artifact->artifact_id),
                (size_t)(found - s->artifacts));
    s->live = SIZE_MAX;
    return found;
}

static bool extends(dgm_str text, dgm_str before)
{
    return text.n > before.n && memcmp(text.p, before.p, before.n) == 0;
}

/* ---- statuses -------------------------------------------------------------------------------------------------------------- */

dgm_message dgm_a2a_show_clean(const dgm_message *m)
{
    dgm_message own = *m;
    own.task_id = own.context_id = (dgm_str){0};
    own.reference_task_ids = (dgm_strs){0};
    own.role = DGM_ROLE_AGENT;
    return own;
}

/* Was this message in a status before? Then it is repeated. */
static bool is_seen(struct a2a_show *s, dgm_task_state state, const dgm_message *m, bool adds)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str text = dgm_parts_text(m->parts, a);
    uint64_t hash = dgm_hash_seed() + (uint64_t)state;
    if (state != DGM_STATE_WORKING || !text.n) /* of progress the text is enough: some have no id */
        hash = dgm_hash(hash, m->message_id.p, m->message_id.n);
    hash = dgm_hash(hash, text.p, text.n);
    for (size_t i = 0; i < A2A_MESSAGES_SEEN && i < s->n_seen; i++) {
        if (s->seen[i] == hash)
            return true;
    }
    if (adds && !s->seen)
        s->seen = dgm_new_n(s->arena, uint64_t, A2A_MESSAGES_SEEN);
    if (adds)
        s->seen[s->n_seen++ % A2A_MESSAGES_SEEN] = hash;
    return false;
}

/* A new task: as the core would create it, so that it is not reported twice that it is submitted. */
static dgm_code emit_submitted(struct a2a_show *s, const dgm_status_update *u, dgm_err *err)
{
    dgm_task task = {.status.state = DGM_STATE_SUBMITTED, .metadata = u->metadata};
    dgm_event event = {.kind = DGM_EVENT_TASK, .task = &task};
    s->state = DGM_STATE_SUBMITTED;
    return s->run->ops->emit(s->run, &event, err);
}

static dgm_code emit_status(struct a2a_show *s, const dgm_status_update *u, dgm_err *err)
{
    dgm_status_update own = {.status = {.state = u->status.state}, .metadata = u->metadata};
    dgm_event event = {.kind = DGM_EVENT_STATUS, .status = &own};
    dgm_message message;
    if (!s->state && u->status.state == DGM_STATE_SUBMITTED && !u->status.message)
        return emit_submitted(s, u, err);
    if (u->status.message && u->status.message->parts.n) {
        message = dgm_a2a_show_clean(u->status.message);
        own.status.message = &message;
        is_seen(s, own.status.state, &message, true);
    }
    /* many agents have the reason only in the message */
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new_small(256);
    if (own.status.state == DGM_STATE_FAILED && own.status.message && !own.metadata &&
        show_is_text(message.parts))
        own.metadata = dgm_error_metadata(a, dgm_parts_text(message.parts, a));
    s->state = own.status.state;
    return s->run->ops->emit(s->run, &event, err);
}

dgm_code dgm_a2a_show_flush(struct a2a_show *s, dgm_err *err)
{
    if (!s->is_held)
        return DGM_OK;
    s->is_held = false;
    dgm_timer_stop(&s->hold);
    return emit_status(s, &s->held, err);
}

static void show_on_hold(void *arg)
{
    dgm_err err = {0};
    if (dgm_a2a_show_flush(arg, &err)) /* the next event fails likewise, and is reported */
        ((struct a2a_show *)arg)->has_prior = false;
}

static void hold_back(struct a2a_show *s, const dgm_status_update *u, dgm_str text)
{
    dgm_arena_reset(s->held_arena);
    dgm_message *m = dgm_new(s->held_arena, dgm_message);
    *m = dgm_message_copy(s->held_arena, u->status.message);
    s->held = (dgm_status_update){
        .status = {.state = DGM_STATE_WORKING, .message = m},
        .metadata = u->metadata ? dgm_json_copy(s->held_arena, u->metadata) : NULL};
    s->is_held = s->has_prior = true;
    dgm_buf_clear(&s->prior);
    dgm_buf_add_str(&s->prior, text);
    dgm_timer_start(&s->hold, atomic_load_explicit(s->cumulative, memory_order_relaxed)
                                  ? KNOWN_HOLD_MS
                                  : HOLD_MS);
}

/* A working status that has only text. */
static dgm_code show_text(struct a2a_show *s, const dgm_status_update *u, dgm_str text,
                          dgm_err *err)
{
    dgm_code rc;
    if (s->live != SIZE_MAX) {
        const dgm_sum *sum = &s->artifacts[s->live].sum;
        if (dgm_sum_is_prefix(sum, text)) {
            dgm_str rest = {text.p + sum->n, text.n - sum->n};
            return rest.n ? live_chunk(s, rest, true, false, err) : DGM_OK;
        }
        if (s->round && text.n < sum->n)
            return DGM_OK; /* sent again after a lost connection */
        if ((rc = live_end(s, err)))
            return rc;
    }
    if (s->has_prior && extends(text, dgm_buf_str(&s->prior))) {
        s->is_held = s->has_prior = false;
        dgm_timer_stop(&s->hold);
        return live_start(s, text, err);
    }
    if (s->is_held && dgm_str_eq(text, dgm_buf_str(&s->prior))) {
        dgm_timer_start(&s->hold, HOLD_MS);
        return DGM_OK;
    }
    if ((rc = dgm_a2a_show_flush(s, err)))
        return rc;
    hold_back(s, u, text);
    return DGM_OK;
}

/* Text that may be an answer: see above. Messages that say what they are pass as they are. */
static bool may_be_live(const struct a2a_show *s, const dgm_status *status)
{
    const dgm_message *m = status->message;
    return status->state == DGM_STATE_WORKING && m && !s->answer_in_status &&
           show_is_text(m->parts) && !dgm_json_get(m->metadata, DGM_STR("canonical_type"));
}

static dgm_code show_status(struct a2a_show *s, const dgm_status_update *u, bool is_snapshot,
                            dgm_err *err)
{
    const dgm_message *m =
        u->status.message && u->status.message->parts.n ? u->status.message : NULL;
    dgm_task_state state = u->status.state;
    dgm_code rc = DGM_OK;
    if (s->state && !dgm_state_may_become(s->state, state))
        return DGM_OK; /* back to submitted */
    bool ends = dgm_state_is_terminal(state) || dgm_state_is_interrupted(state);
    if (m && !ends && (is_snapshot || s->round) && is_seen(s, state, m, false))
        return DGM_OK;
    if (may_be_live(s, &u->status)) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_str text = dgm_parts_text(m->parts, a);
        if (text.n)
            return show_text(s, u, text, err);
    }
    if (!m && state == s->state && (!u->metadata || is_snapshot))
        return DGM_OK;
    if (!m && state == DGM_STATE_WORKING && s->is_held)
        return DGM_OK; /* what is held back reports the same */
    if ((rc = dgm_a2a_show_flush(s, err)))
        return rc;
    if (dgm_state_is_terminal(state))
        rc = dgm_a2a_show_close_texts(s, err);
    else if (dgm_state_is_interrupted(state))
        rc = live_end(s, err);
    if (rc)
        return rc;
    return emit_status(s, u, err);
}

/* ---- updates and snapshots ------------------------------------------------------------------------------------------------ */

/* A progress text that turns out to be the beginning of the artifact is not emitted. */
static dgm_code drop_or_flush(struct a2a_show *s, const dgm_artifact *artifact, dgm_err *err)
{
    if (!s->is_held)
        return DGM_OK;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str text = dgm_parts_text(artifact->parts, a), prior = dgm_buf_str(&s->prior);
    if (!dgm_str_eq(text, prior) && !extends(text, prior))
        return dgm_a2a_show_flush(s, err);
    s->is_held = false;
    dgm_timer_stop(&s->hold);
    return DGM_OK;
}

static dgm_code show_artifact(struct a2a_show *s, const dgm_artifact_update *u, dgm_err *err)
{
    struct a2a_shown *a = shown_find(s, u->artifact.artifact_id);
    dgm_code rc = drop_or_flush(s, &u->artifact, err);
    if (rc)
        return rc;
    if (!a && (a = live_of(s, &u->artifact)))
        return show_whole(s, a, u, err);
    if (!a) {
        dgm_artifact_update own = *u;
        own.append = DGM_FALSE; /* of an artifact that was never started: this is its start */
        return emit_artifact(s, shown_add(s, u->artifact.artifact_id), &own, err);
    }
    if (u->append != DGM_TRUE)
        return show_start(s, a, u, err);
    if (a->is_again)
        return show_again(s, a, u, err);
    return emit_artifact(s, a, u, err);
}

/* The answer of agents that neither have an artifact nor a last message. */
static dgm_message *last_message(const dgm_task *task)
{
    for (size_t i = task->history.n; i-- > 0;) {
        dgm_message *m = &task->history.at[i];
        if (m->role == DGM_ROLE_USER)
            return NULL;
        if (m->parts.n)
            return m;
    }
    return NULL;
}

static dgm_code show_snapshot(struct a2a_show *s, const dgm_task *task, dgm_err *err)
{
    bool is_over = dgm_state_is_terminal(task->status.state);
    dgm_status_update last = {.status = task->status, .metadata = task->metadata};
    dgm_code rc = DGM_OK;
    /* a task is working before it has results */
    dgm_status_update working = {.status.state = DGM_STATE_WORKING};
    if (task->artifacts.n && s->state < DGM_STATE_WORKING)
        rc = emit_status(s, &working, err);
    for (size_t i = 0; i < task->artifacts.n && !rc; i++) {
        dgm_artifact_update u = {.artifact = task->artifacts.at[i],
                                 .append = DGM_FALSE,
                                 .last_chunk = is_over ? DGM_TRUE : DGM_FALSE};
        struct a2a_shown *a = shown_find(s, u.artifact.artifact_id);
        if ((rc = drop_or_flush(s, &u.artifact, err)))
            break;
        if (a || (a = live_of(s, &u.artifact)))
            rc = show_whole(s, a, &u, err);
        else
            rc = emit_artifact(s, shown_add(s, u.artifact.artifact_id), &u, err);
    }
    if (task->status.state == DGM_STATE_COMPLETED && !task->status.message && !task->artifacts.n &&
        !s->n)
        last.status.message = last_message(task);
    return rc ? rc : show_status(s, &last, true, err);
}

dgm_code dgm_a2a_show_event(struct a2a_show *s, const dgm_event *event, dgm_err *err)
{
    switch (event->kind) {
    case DGM_EVENT_TASK: return show_snapshot(s, event->task, err);
    case DGM_EVENT_STATUS: return show_status(s, event->status, false, err);
    case DGM_EVENT_ARTIFACT: return show_artifact(s, event->artifact, err);
    case DGM_EVENT_NONE:
    case DGM_EVENT_MESSAGE:
    case DGM_EVENT_INTERNAL: break;
    }
    return DGM_OK;
}

dgm_code dgm_a2a_show_close_texts(struct a2a_show *s, dgm_err *err)
{
    dgm_part empty = {.kind = DGM_PART_TEXT, .content = DGM_STR("")};
    dgm_artifact_update u = {
        .artifact = {.parts = {&empty, 1}}, .append = DGM_TRUE, .last_chunk = DGM_TRUE};
    dgm_code rc = dgm_a2a_show_flush(s, err);
    for (size_t i = 0; i < s->n && !rc; i++) {
        if (s->artifacts[i].is_open)
            rc = emit_artifact(s, &s->artifacts[i], &u, err);
    }
    return rc;
}

void dgm_a2a_show_reconnected(struct a2a_show *s)
{
    s->round++;
    dgm_timer_stop(&s->hold); /* the next event shows what is held back, however late it is */
}

/* ---- the whole --------------------------------------------------------------------------------------------------------------- */

void dgm_a2a_show_init(struct a2a_show *s, dgm_run *run, dgm_arena *a,
                       const struct a2a_agent *agent)
{
    const dgm_task *before = run->input->task;
    *s = (struct a2a_show){.run = run,
                           .arena = a,
                           .cumulative = (atomic_bool *)(uintptr_t)&agent->cumulative,
                           .answer_in_status = agent->answer_in_status,
                           .held_arena = dgm_arena_new_small(512),
                           .live = SIZE_MAX};
    dgm_map_init(&s->by_id);
    dgm_buf_init(&s->prior, DGM_MAX_RECORD_BYTES);
    dgm_timer_init(run->loop, &s->hold, show_on_hold, s);
    for (size_t i = 0; before && i < before->artifacts.n; i++) {
        const dgm_artifact *from = &before->artifacts.at[i];
        struct a2a_shown *to = shown_add(s, from->artifact_id);
        show_add_parts(&to->sum, from->parts);
        to->is_before = !run->input->is_resumed;
        to->is_live = dgm_str_starts(from->artifact_id, DGM_STR(LIVE_ID "-"));
    }
    if (!before)
        return;
    s->state = DGM_STATE_WORKING;
    if (before->status.message)
        is_seen(s, before->status.state, before->status.message, true);
}

void dgm_a2a_show_done(struct a2a_show *s)
{
    dgm_map_done(&s->by_id);
    dgm_buf_done(&s->prior);
    dgm_arena_free(s->held_arena);
    free(s->artifacts);
}
