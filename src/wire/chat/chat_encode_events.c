/*
 * wire/chat/chat_encode_events.c - the content of a run: text, reasoning, progress, calls.
 *
 * Chunks are emitted as soon as their kind is known. A call is the client's when the run says that it is pending, or when
 * it has no answer at the end of the run; until then it waits.
 */
#include "base/limits.h"
#include "base/list.h"
#include "canon/message_content.h"
#include "wire/chat/chat_encode.h"

void dgm_chat_keep(dgm_chat_encoder *e, dgm_buf *b, dgm_str text)
{
    e->kept += text.n;
    if (e->kept > DGM_MAX_OUTPUT_BYTES && !e->rc)
        e->rc = dgm_fail(e->err, DGM_TOO_LARGE, NULL,
                         "the text to store until the end of the answer is longer than the limit "
                         "output_bytes of %zu",
                         DGM_MAX_OUTPUT_BYTES);
    if (!e->rc)
        dgm_buf_add_str(b, text);
}

/* ---- text --------------------------------------------------------------------------------------------- */

struct chat_text *dgm_chat_text_of(dgm_chat_encoder *e, dgm_str id)
{
    if (e->spoke && dgm_str_eq(e->texts[e->speaker].id, id))
        return &e->texts[e->speaker];
    size_t *at = dgm_map_get(&e->texts_by_id, id);
    if (at)
        return &e->texts[*at];
    e->texts = dgm_list_reserve(e->texts, e->n_texts, &e->cap_texts, sizeof *e->texts);
    struct chat_text *t = &e->texts[e->n_texts];
    *t = (struct chat_text){.id = dgm_arena_dup(e->arena, id)};
    dgm_buf_init(&t->text, SIZE_MAX);
    dgm_map_put(&e->texts_by_id, t->id, e->n_texts++);
    return t;
}

void dgm_chat_start_text(dgm_chat_encoder *e, const dgm_canon_event *event)
{
    dgm_canon_role role = event->text.role;
    struct chat_text *t = dgm_chat_text_of(e, event->text.message_id);
    t->foreign = role != DGM_CANON_ROLE_NONE && role != DGM_CANON_ASSISTANT;
    t->open = true;
    t->artifact = dgm_json_get(event->metadata, DGM_STR(DGM_NAME_ARTIFACT));
}

/* Deltas of a chat completion are one text. One that begins while another is open waits for its end. */
static bool must_wait(const dgm_chat_encoder *e, const struct chat_text *t)
{
    const struct chat_text *speaker = e->spoke ? &e->texts[e->speaker] : NULL;
    return speaker && speaker != t && speaker->open && !speaker->artifact;
}

void dgm_chat_say(dgm_chat_encoder *e, const struct chat_text *t, dgm_str text)
{
    size_t i = (size_t)(t - e->texts);
    bool apart = e->spoke && (e->speaker != i || t->instead);
    dgm_chat_chunk_text(e, DGM_STR("\"content\":\""), apart, text);
    dgm_chat_place_citations(e, i, apart ? 2 : 0, text);
    e->speaker = i;
    e->spoke = true;
}

void dgm_chat_add_text(dgm_chat_encoder *e, const dgm_canon_event *event)
{
    struct chat_text *t = dgm_chat_text_of(e, event->text.message_id);
    if (t->foreign || !event->text.delta.n)
        return;
    if (!e->params.whole && !t->instead && !t->waits && must_wait(e, t)) {
        t->waits = true;
        e->n_waiting++;
    }
    if (e->params.whole || t->instead || t->waits)
        dgm_chat_keep(e, &t->text, event->text.delta);
    else
        dgm_chat_say(e, t, event->text.delta);
}

void dgm_chat_say_waiting(dgm_chat_encoder *e, bool all)
{
    for (size_t i = 0; e->n_waiting && i < e->n_texts; i++) {
        struct chat_text *t = &e->texts[i];
        const struct chat_text *speaker = e->spoke ? &e->texts[e->speaker] : NULL;
        if (!all && speaker && speaker->open && !speaker->artifact)
            return;
        if (!t->waits)
            continue;
        t->waits = false;
        e->n_waiting--;
        if (t->text.n)
            dgm_chat_say(e, t, dgm_buf_str(&t->text));
        e->kept -= t->text.n;
        dgm_buf_clear(&t->text);
    }
}

void dgm_chat_end_text(dgm_chat_encoder *e, const dgm_canon_event *event)
{
    struct chat_text *t = dgm_chat_text_of(e, event->text.message_id);
    t->open = false;
    if (!e->params.whole)
        dgm_chat_say_waiting(e, false);
}

/*
 * A text is not what was streamed. That cannot be taken back, and an agent may change its mind many times:
 * the final text is emitted once, at the end.
 */
void dgm_chat_correct(dgm_chat_encoder *e, const dgm_canon_event *event)
{
    const dgm_canon_messages *list = &event->snapshot.messages;
    for (size_t i = 0; event->snapshot.changed.n && i < list->n; i++) {
        const dgm_canon_message *m = &list->at[i];
        if (!dgm_str_eq(m->id, event->snapshot.changed))
            continue;
        struct chat_text *t = dgm_chat_text_of(e, m->id);
        if (t->foreign)
            continue;
        e->kept -= t->text.n;
        dgm_buf_clear(&t->text);
        t->instead = !e->params.whole && !t->waits;
        dgm_chat_keep(e, &t->text, m->content.text);
    }
}

void dgm_chat_say_corrected(dgm_chat_encoder *e)
{
    dgm_chat_say_waiting(e, true);
    for (size_t i = 0; i < e->n_texts; i++) {
        struct chat_text *t = &e->texts[i];
        if (!t->instead || !t->text.n)
            continue;
        dgm_chat_say(e, t, dgm_buf_str(&t->text));
    }
}

/* ---- reasoning and progress ------------------------------------------------------------------------------- */

static void think(dgm_chat_encoder *e, bool apart, dgm_str text)
{
    apart &= e->thought;
    e->thought = true;
    if (!e->params.whole) {
        dgm_chat_chunk_text(e, DGM_STR("\"reasoning_content\":\""), apart, text);
        return;
    }
    if (apart)
        dgm_chat_keep(e, &e->reasoning, DGM_STR("\n\n"));
    dgm_chat_keep(e, &e->reasoning, text);
}

void dgm_chat_add_reasoning(dgm_chat_encoder *e, const dgm_canon_event *event)
{
    dgm_str id = event->text.message_id;
    bool same = e->thinker.n && dgm_str_eq(dgm_buf_str(&e->thinker), id);
    if (!event->text.delta.n)
        return;
    think(e, !same, event->text.delta);
    if (same)
        return;
    dgm_buf_clear(&e->thinker);
    dgm_buf_add_str(&e->thinker, id);
}

void dgm_chat_add_progress(dgm_chat_encoder *e, const dgm_canon_event *event)
{
    dgm_str last = dgm_buf_str(&e->progress),
            text = dgm_json_str_member(event->activity.content, "text");
    if (!dgm_str_is(event->activity.activity_type, "a2a-status") || !text.n ||
        dgm_str_eq(text, last))
        return;
    /* a line that grows is not emitted again */
    bool grows = last.n && !e->thinker.n && dgm_str_starts(text, last);
    think(e, !grows, grows ? (dgm_str){text.p + last.n, text.n - last.n} : text);
    dgm_buf_clear(&e->thinker);
    dgm_buf_clear(&e->progress);
    dgm_buf_add_str(&e->progress, text);
}

/* ---- calls ---------------------------------------------------------------------------------------------- */

static struct chat_call *call_of(const dgm_chat_encoder *e, dgm_str id)
{
    size_t *at = dgm_map_get(&e->calls_by_id, id);
    return at ? &e->calls[*at] : NULL;
}

static void chat_emit_call(dgm_chat_encoder *e, struct chat_call *c)
{
    c->given = c->asked = true;
    c->index = e->n_given++;
    dgm_chat_chunk_call(e, c);
}

void dgm_chat_start_call(dgm_chat_encoder *e, const dgm_canon_event *event)
{
    if (call_of(e, event->call.tool_call_id))
        return;
    e->calls = dgm_list_reserve(e->calls, e->n_calls, &e->cap_calls, sizeof *e->calls);
    struct chat_call *c = &e->calls[e->n_calls];
    *c = (struct chat_call){.id = dgm_arena_dup(e->arena, event->call.tool_call_id),
                            .name = dgm_arena_dup(e->arena, event->call.name)};
    dgm_buf_init(&c->arguments, SIZE_MAX);
    dgm_map_put(&e->calls_by_id, c->id, e->n_calls++);
    if (event->call.pending && !e->params.whole)
        chat_emit_call(e, c);
}

void dgm_chat_add_arguments(dgm_chat_encoder *e, const dgm_canon_event *event)
{
    struct chat_call *c = call_of(e, event->call.tool_call_id);
    if (!c || !event->call.delta.n)
        return;
    if (c->given)
        dgm_chat_chunk_arguments(e, c, event->call.delta);
    else
        dgm_chat_keep(e, &c->arguments, event->call.delta);
}

void dgm_chat_answer(dgm_chat_encoder *e, dgm_str call_id)
{
    struct chat_call *c = call_of(e, call_id);
    if (!c || c->answered)
        return;
    c->answered = true;
    e->kept -= c->arguments.n;
    dgm_buf_done(&c->arguments);
}

void dgm_chat_ask_calls(dgm_chat_encoder *e, dgm_strs pending)
{
    for (size_t i = 0; i < pending.n; i++) {
        struct chat_call *c = call_of(e, pending.at[i]);
        if (c)
            c->asked = !c->answered;
    }
    for (size_t i = 0; i < e->n_calls; i++) {
        struct chat_call *c = &e->calls[i];
        if (!pending.n)
            c->asked |= !c->answered;
        if (c->asked && !c->given) {
            if (e->params.whole)
                e->n_given++;
            else
                chat_emit_call(e, c);
        }
    }
}
