/*
 * wire/responses/responses_events.c - what canonical events become in a response: texts, calls, thoughts, files.
 *
 * A message is closed when something else follows, not when its text ends: the next text belongs to the same
 * answer and goes on in it, behind a blank line, because clients join items without one; and a final text may
 * still turn out to be another.
 *
 * A call is held back until it shows whose it is: with a result it was the agent's, at the end of the run it
 * is the caller's. Where the run says which tools the caller has, calls of those are emitted as they come.
 */
#include "canon/media.h"
#include "model/form.h"
#include "wire/responses/responses_out.h"

#define NONE DGM_RESPONSES_NONE

static struct responses_item *item_of(const struct responses_encoder *e, const dgm_map *map,
                                      dgm_str id)
{
    size_t *at = dgm_map_get(map, id);
    return at ? &e->items[*at] : NULL;
}

static bool is_ended(const struct responses_encoder *e, const struct responses_item *it)
{
    return e->pieces[it->last].ended;
}

/* The message that could have gone on does not. */
static void settle(struct responses_encoder *e)
{
    if (e->message == NONE || !is_ended(e, &e->items[e->message]))
        return;
    dgm_responses_close_message(e, &e->items[e->message], "completed");
    e->message = NONE;
}

void dgm_responses_close_reasoning(struct responses_encoder *e, struct responses_item *it)
{
    for (size_t i = it->first; i != NONE; i = e->pieces[i].next)
        dgm_responses_end_thought(e, i);
    dgm_responses_close(e, it, "completed");
}

/* ---- text --------------------------------------------------------------------------------------------------- */

/* The item of a text is known when its first character arrives. */
static void attach(struct responses_encoder *e, size_t piece)
{
    struct responses_piece *p = &e->pieces[piece];
    bool goes_on = e->message != NONE && is_ended(e, &e->items[e->message]);
    if (goes_on) {
        struct responses_item *it = &e->items[e->message];
        e->pieces[it->last].next = piece;
        it->last = piece;
    } else {
        struct responses_item *it = dgm_responses_new_item(e, RESPONSES_MESSAGE);
        it->first = it->last = piece;
        /* what goes on is glued, as clients do it */
        it->follows = e->has_message && (p->earlier == NONE || p->earlier != e->said);
        e->message = (size_t)(it - e->items);
    }
    p->item = e->message;
    e->said = piece;
}

static void responses_events_start_text(struct responses_encoder *e, const dgm_canon_event *event)
{
    size_t *known = dgm_map_get(&e->texts, event->text.message_id);
    bool agent = !event->text.role || event->text.role == DGM_CANON_ASSISTANT;
    if (!agent)
        return; /* a response is what the assistant says */
    if (known && (e->pieces[*known].item == NONE ||
                  (e->pieces[*known].item == e->message && e->said == *known))) {
        e->pieces[*known].ended = false; /* the same goes on */
        e->current = *known;
        return;
    }
    size_t earlier = known ? *known : NONE;
    e->current = dgm_responses_new_piece(e, event->text.message_id);
    e->pieces[e->current].earlier = earlier;
    dgm_map_put(&e->texts, e->pieces[e->current].id, e->current);
}

/* A delta, or the end. */
static void responses_events_continue_text(struct responses_encoder *e,
                                           const dgm_canon_event *event)
{
    dgm_str id = event->text.message_id;
    if (e->current == NONE || !dgm_str_eq(e->pieces[e->current].id, id)) {
        size_t *known = dgm_map_get(&e->texts, id);
        if (!known)
            return;
        e->current = *known;
    }
    struct responses_piece *p = &e->pieces[e->current];
    if (event->kind == DGM_CANON_TEXT_MESSAGE_END) {
        p->ended = true;
        if (p->item != NONE && p->item != e->message) /* others have begun since */
            dgm_responses_close_message(e, &e->items[p->item], "completed");
    } else if (event->text.delta.n) {
        if (p->item == NONE)
            attach(e, e->current);
        if (e->items[p->item].state != RESPONSES_DONE)
            dgm_responses_say(e, e->current, event->text.delta);
    }
}

static void say_line(struct responses_encoder *e, dgm_str text)
{
    size_t piece = dgm_responses_new_piece(e, (dgm_str){0});
    attach(e, piece);
    dgm_responses_say(e, piece, text);
    e->pieces[piece].ended = true;
    e->current = NONE;
}

/* Where the text began it is as it should be; where it went on there is nothing more. */
static void replace(struct responses_encoder *e, size_t piece, dgm_str text)
{
    for (; e->pieces[piece].earlier != NONE; piece = e->pieces[piece].earlier) {
        dgm_buf_clear(&e->pieces[piece].text);
        e->pieces[piece].moved = true;
    }
    dgm_buf_clear(&e->pieces[piece].text);
    if (e->pieces[piece].item != NONE && dgm_responses_keep(e, text.n))
        dgm_json_put_chars(&e->pieces[piece].text, text);
}

/* Has the item any text besides this piece? */
static bool has_other_text(const struct responses_encoder *e, const struct responses_item *it,
                           size_t piece)
{
    for (size_t i = it->first; i != NONE; i = e->pieces[i].next) {
        if (i != piece && e->pieces[i].text.n)
            return true;
    }
    return false;
}

/* The text starts again, and its deltas follow: its item ends without it, as incomplete, and another one has the deltas. */
static void restart_text(struct responses_encoder *e, size_t piece, dgm_str id, dgm_str text)
{
    struct responses_item *it = &e->items[e->pieces[piece].item];
    bool follows = it->follows || has_other_text(e, it, piece);
    dgm_buf_clear(&e->pieces[piece].text);
    dgm_responses_close_message(e, it, "incomplete");
    e->message = NONE;
    /* without this id: an item whose id starts with that of another one continues its text */
    size_t again = dgm_responses_new_piece(e, (dgm_str){0});
    dgm_map_put(&e->texts, dgm_arena_dup(e->arena, id), again);
    e->current = again;
    attach(e, again);
    e->items[e->message].follows = follows;
    dgm_responses_say(e, again, text);
}

/* Is the text at the end of an open message? */
static bool can_restart(const struct responses_encoder *e, size_t piece)
{
    const struct responses_piece *p = &e->pieces[piece];
    return p->item != NONE && p->item == e->message && e->said == piece && p->earlier == NONE &&
           e->items[p->item].state == RESPONSES_OPEN;
}

/* A text differs from its deltas: all later frames of it have the right one. */
static void responses_events_correct(struct responses_encoder *e, const dgm_canon_event *event)
{
    size_t *known = dgm_map_get(&e->texts, event->snapshot.changed);
    for (size_t i = 0; known && i < event->snapshot.messages.n; i++) {
        const dgm_canon_message *m = &event->snapshot.messages.at[i];
        if (!dgm_str_eq(m->id, event->snapshot.changed))
            continue;
        if (e->pieces[*known].item == NONE && e->pieces[*known].earlier == NONE &&
            m->content.text.n) {
            attach(e, *known);
            dgm_responses_say(e, *known, m->content.text);
        } else if (event->snapshot.restarts && m->content.text.n && can_restart(e, *known)) {
            restart_text(e, *known, m->id, m->content.text);
        } else {
            replace(e, *known, m->content.text);
        }
    }
}

/* ---- calls ---------------------------------------------------------------------------------------------------- */

static void responses_events_start_call(struct responses_encoder *e, const dgm_canon_event *event)
{
    if (dgm_map_get(&e->calls, event->call.tool_call_id))
        return; /* it goes on */
    struct responses_item *it = dgm_responses_new_item(e, RESPONSES_FUNCTION);
    it->call_id = dgm_arena_dup(e->arena, event->call.tool_call_id);
    it->name = dgm_arena_dup(e->arena, event->call.name);
    dgm_map_put(&e->calls, it->call_id, (size_t)(it - e->items));
    if (dgm_map_get(&e->client_tools, it->name)) {
        settle(e);
        dgm_responses_open_call(e, it);
    }
}

static void responses_events_add_arguments(struct responses_encoder *e,
                                           const dgm_canon_event *event)
{
    struct responses_item *it = item_of(e, &e->calls, event->call.tool_call_id);
    if (it && it->state != RESPONSES_DONE && event->call.delta.n)
        dgm_responses_append_arguments(e, it, event->call.delta);
}

static void responses_events_end_call(struct responses_encoder *e, const dgm_canon_event *event)
{
    struct responses_item *it = item_of(e, &e->calls, event->call.tool_call_id);
    if (it && it->state == RESPONSES_OPEN)
        dgm_responses_close_call(e, it, "completed");
}

static void responses_events_add_result(struct responses_encoder *e, const dgm_canon_event *event)
{
    struct responses_item *it = item_of(e, &e->calls, event->result.tool_call_id);
    const dgm_canon_content *c = &event->result.content;
    if (!it || it->state != RESPONSES_HELD)
        return; /* of an earlier response, or the caller's own */
    settle(e);
    it->kind = RESPONSES_MCP;
    it->answered = true;
    it->failed = yyjson_is_true(dgm_json_get(event->metadata, DGM_STR(DGM_META_ERROR)));
    for (size_t i = 0; c->kind == DGM_CANON_CONTENT_PARTS && i < c->parts.n; i++) {
        if (dgm_responses_keep(e, c->parts.at[i].text.n))
            dgm_json_put_chars(&it->output, c->parts.at[i].text);
    }
    if (c->kind == DGM_CANON_CONTENT_TEXT && dgm_responses_keep(e, c->text.n))
        dgm_json_put_chars(&it->output, c->text);
    dgm_responses_open_call(e, it);
    dgm_responses_close_call(e, it, it->failed ? "failed" : "completed");
}

/* ---- reasoning -------------------------------------------------------------------------------------------------- */

static size_t begin_reasoning(struct responses_encoder *e, dgm_str id)
{
    settle(e);
    struct responses_item *it = dgm_responses_new_item(e, RESPONSES_REASONING);
    dgm_responses_add(e, it, "rs_", id);
    return (size_t)(it - e->items);
}

static size_t add_thought(struct responses_encoder *e, size_t item, dgm_str id)
{
    size_t piece = dgm_responses_new_piece(e, id);
    struct responses_item *it = &e->items[item];
    e->pieces[piece].item = item;
    e->pieces[piece].index = it->last == NONE ? 0 : e->pieces[it->last].index + 1;
    if (it->last == NONE)
        it->first = piece;
    else
        e->pieces[it->last].next = piece;
    it->last = piece;
    return piece;
}

/* There is no text yet: the item gets its place with the first one. */
static void start_span(struct responses_encoder *e, dgm_str id)
{
    e->span = dgm_arena_dup(e->arena, id);
    dgm_map_put(&e->spans, e->span, NONE);
}

static size_t begin_span(struct responses_encoder *e, dgm_str id, size_t *span)
{
    if (*span == NONE) {
        size_t item = begin_reasoning(e, id);
        *span = item;
    }
    return *span;
}

/* The item of a thought: the span of its name, or the one that was begun last, unless another
 * thought is being thought there. */
static size_t span_of(struct responses_encoder *e, dgm_str id)
{
    size_t *span = dgm_map_get(&e->spans, id);
    if (!span && (span = dgm_map_get(&e->spans, e->span)))
        id = e->span;
    if (!span || (*span != NONE && e->items[*span].state != RESPONSES_OPEN))
        return NONE;
    size_t item = begin_span(e, id, span), last = e->items[item].last;
    return last == NONE || e->pieces[last].ended ? item : NONE;
}

static void think(struct responses_encoder *e, const dgm_canon_event *event)
{
    dgm_str id = event->text.message_id;
    size_t *known = dgm_map_get(&e->thoughts, id);
    if (!event->text.delta.n)
        return;
    if (!known || e->pieces[*known].ended) {
        size_t span = span_of(e, id), item = span == NONE ? begin_reasoning(e, id) : span;
        size_t piece = add_thought(e, item, id);
        e->items[item].alone = span == NONE;
        dgm_map_put(&e->thoughts, e->pieces[piece].id, piece);
        known = dgm_map_get(&e->thoughts, id);
    }
    dgm_responses_append_reasoning(e, *known, event->text.delta);
}

static void end_thought(struct responses_encoder *e, dgm_str id)
{
    size_t *known = dgm_map_get(&e->thoughts, id);
    if (!known || e->pieces[*known].ended)
        return;
    dgm_responses_end_thought(e, *known);
    struct responses_item *it = &e->items[e->pieces[*known].item];
    if (it->alone && it->state == RESPONSES_OPEN)
        dgm_responses_close(e, it, "completed");
}

static void end_span(struct responses_encoder *e, dgm_str id)
{
    size_t *span = dgm_map_get(&e->spans, id);
    if (span && *span != NONE && e->items[*span].state == RESPONSES_OPEN)
        dgm_responses_close_reasoning(e, &e->items[*span]);
    if (dgm_str_eq(id, e->span))
        e->span = (dgm_str){0};
}

static void responses_store_encrypted_value(struct responses_encoder *e,
                                            const dgm_canon_event *event)
{
    dgm_str id = event->encrypted.entity_id;
    size_t *span = dgm_map_get(&e->spans, id), *thought = dgm_map_get(&e->thoughts, id);
    size_t item = thought ? e->pieces[*thought].item : span ? begin_span(e, id, span) : NONE;
    if (item != NONE && dgm_responses_keep(e, event->encrypted.encrypted_value.n))
        e->items[item].encrypted = dgm_arena_dup(e->arena, event->encrypted.encrypted_value);
}

/* Progress: complete thoughts. The message that is open stays open. */
static void progress(struct responses_encoder *e, const dgm_canon_event *event)
{
    dgm_str text = dgm_json_str_member(event->activity.content, "text");
    if (!dgm_str_is(event->activity.activity_type, "a2a-status") || !text.n ||
        dgm_str_eq(text, e->progress) || !dgm_responses_keep(e, text.n))
        return;
    e->progress = dgm_arena_dup(e->arena, text);
    struct responses_item *it = dgm_responses_new_item(e, RESPONSES_REASONING);
    size_t item = (size_t)(it - e->items);
    dgm_responses_add(e, it, "rs_", dgm_arena_printf(e->scratch, "status-%u", e->n_given));
    size_t piece = add_thought(e, item, (dgm_str){0});
    dgm_responses_append_reasoning(e, piece, text);
    dgm_responses_close_reasoning(e, &e->items[item]);
}

/* ---- what else an agent makes ------------------------------------------------------------------------------------ */

static void responses_emit_file(struct responses_encoder *e, const dgm_part *p)
{
    bool image = dgm_media_is(dgm_media_type(p), DGM_STR("image/"));
    if (p->kind == DGM_PART_DATA) {
        say_line(e, dgm_content_spaced_json(e->scratch, p->data));
    } else if (p->kind != DGM_PART_RAW || !image) {
        say_line(e, dgm_content_file_text(e->scratch, p));
    } else if (dgm_responses_keep(e, p->content.n)) {
        settle(e);
        struct responses_item *it = dgm_responses_new_item(e, RESPONSES_IMAGE);
        dgm_buf_add_str(&it->text, p->content);
        dgm_responses_add(e, it, "ig_", dgm_arena_printf(e->scratch, "%u", e->n_given));
        dgm_responses_close(e, it, "completed");
    }
}

static void responses_add_artifact(struct responses_encoder *e, const dgm_parts *parts)
{
    for (size_t i = 0; i < parts->n; i++) {
        if (parts->at[i].kind != DGM_PART_TEXT)
            responses_emit_file(e, &parts->at[i]);
    }
}

static void responses_events_custom(struct responses_encoder *e, const dgm_canon_event *event)
{
    const dgm_json *value = event->custom.value;
    if (dgm_str_is(event->custom.name, DGM_NAME_METADATA)) {
        dgm_str why = dgm_json_str_member(value, DGM_RESPONSES_FINISH);
        if (dgm_str_is(why, "length"))
            e->early = "max_output_tokens";
        else if (dgm_str_is(why, "content_filter"))
            e->early = "content_filter";
    } else if (dgm_str_is(event->custom.name, DGM_RESPONSES_ITEM) &&
               yyjson_is_obj((yyjson_val *)(uintptr_t)value)) {
        settle(e);
        struct responses_item *it = dgm_responses_new_item(e, RESPONSES_OTHER);
        dgm_json_put(&it->text, value);
        dgm_responses_keep(e, it->text.n);
        dgm_responses_add(e, it, "", dgm_json_str_member(value, "id"));
        dgm_responses_close(e, it, "completed");
    }
}

/* ---- events -------------------------------------------------------------------------------------------------------- */

void dgm_responses_within_run(struct responses_encoder *e, const dgm_canon_event *event)
{
    switch (event->kind) {
    case DGM_CANON_TEXT_MESSAGE_START: responses_events_start_text(e, event); break;
    case DGM_CANON_TEXT_MESSAGE_CONTENT:
    case DGM_CANON_TEXT_MESSAGE_END: responses_events_continue_text(e, event); break;
    case DGM_CANON_TOOL_CALL_START: responses_events_start_call(e, event); break;
    case DGM_CANON_TOOL_CALL_ARGS: responses_events_add_arguments(e, event); break;
    case DGM_CANON_TOOL_CALL_END: responses_events_end_call(e, event); break;
    case DGM_CANON_TOOL_CALL_RESULT: responses_events_add_result(e, event); break;
    case DGM_CANON_MESSAGES_SNAPSHOT: responses_events_correct(e, event); break;
    case DGM_CANON_ACTIVITY_SNAPSHOT: progress(e, event); break;
    case DGM_CANON_REASONING_START: start_span(e, event->text.message_id); break;
    case DGM_CANON_REASONING_MESSAGE_CONTENT: think(e, event); break;
    case DGM_CANON_REASONING_MESSAGE_END: end_thought(e, event->text.message_id); break;
    case DGM_CANON_REASONING_END: end_span(e, event->text.message_id); break;
    case DGM_CANON_REASONING_ENCRYPTED_VALUE: responses_store_encrypted_value(e, event); break;
    case DGM_CANON_CUSTOM: responses_events_custom(e, event); break;
    case DGM_CANON_ARTIFACT: responses_add_artifact(e, &event->artifact.artifact->parts); break;
    case DGM_CANON_NONE:
    case DGM_CANON_RUN_STARTED:
    case DGM_CANON_RUN_FINISHED:
    case DGM_CANON_RUN_ERROR:               /* the response's own */
    case DGM_CANON_REASONING_MESSAGE_START: /* no content yet */
    case DGM_CANON_TEXT_MESSAGE_CHUNK:
    case DGM_CANON_TOOL_CALL_CHUNK:
    case DGM_CANON_REASONING_MESSAGE_CHUNK:
    case DGM_CANON_STEP_STARTED:
    case DGM_CANON_STEP_FINISHED:
    case DGM_CANON_STATE_SNAPSHOT:
    case DGM_CANON_STATE_DELTA:
    case DGM_CANON_ACTIVITY_DELTA:
    case DGM_CANON_SUBAGENT_STARTED:
    case DGM_CANON_SUBAGENT_FINISHED:
    case DGM_CANON_SUBAGENT_ERROR:
    case DGM_CANON_RAW: break; /* no such thing in a response */
    }
}
