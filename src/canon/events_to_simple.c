/*
 * canon/events_to_simple.c - a stream of canonical events as document 000's.
 *
 * What is open is kept until it is whole: there an End carries the text, a Start all arguments. A call
 * whose message has no other content is held back until the next event shows whether a second call of the
 * same message follows: only then do they need a parent.
 */
#include "base/buf.h"
#include "base/limits.h"
#include "base/map.h"
#include "canon/message_content.h"
#include "canon/simple.h"
#include "json/json.h"

#include <stdlib.h>

/* A text message or a call. */
struct item {
    dgm_str id, name, parent;
    dgm_canon_role role;
    dgm_buf text;
    dgm_canon_parts parts; /* instead of the text */
    bool ended;
};

struct dgm_simple_encoder {
    dgm_on_simple on_event;
    void *arg;
    dgm_err *err;
    dgm_code rc;
    dgm_arena *arena;   /* names of items */
    dgm_arena *scratch; /* of this event */
    struct item *items;
    size_t n, cap;
    size_t last_text;     /* the text that ended last: it may still go on, or turn out another */
    dgm_map texts, calls; /* id -> item */
    dgm_str last_parent;  /* of the call that was given last */
    dgm_arena *held_arena;
    dgm_simple_event held; /* kind NONE: nothing */
    dgm_str held_parent;
};

dgm_simple_encoder *dgm_simple_encoder_new(dgm_on_simple on_event, void *arg)
{
    dgm_simple_encoder *s = dgm_xcalloc(1, sizeof *s);
    s->on_event = on_event;
    s->arg = arg;
    s->arena = dgm_arena_new();
    s->scratch = dgm_arena_new();
    s->held_arena = dgm_arena_new();
    dgm_map_init(&s->texts);
    dgm_map_init(&s->calls);
    return s;
}

void dgm_simple_encoder_free(dgm_simple_encoder *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++)
        dgm_buf_done(&s->items[i].text);
    free(s->items);
    dgm_map_done(&s->texts);
    dgm_map_done(&s->calls);
    dgm_arena_free(s->arena);
    dgm_arena_free(s->scratch);
    dgm_arena_free(s->held_arena);
    free(s);
}

/* ---- giving ---------------------------------------------------------------------------------------------- */

static void to_simple_give(dgm_simple_encoder *s, const dgm_simple_event *e)
{
    if (!s->rc)
        s->rc = s->on_event(s->arg, e);
}

/* with_parent: another call of the same message comes. */
static void release(dgm_simple_encoder *s, bool with_parent)
{
    if (s->held.kind == DGM_SIMPLE_NONE)
        return;
    if (with_parent)
        s->held.parent_message_id = s->held_parent;
    to_simple_give(s, &s->held);
    s->held.kind = DGM_SIMPLE_NONE;
    dgm_arena_reset(s->held_arena);
}

/* ---- items ------------------------------------------------------------------------------------------------ */

static struct item *to_simple_find(const dgm_simple_encoder *s, const dgm_map *map, dgm_str id)
{
    size_t *at = dgm_map_get(map, id);
    return at ? &s->items[*at] : NULL;
}

static struct item *open_item(dgm_simple_encoder *s, dgm_map *map, dgm_str id)
{
    struct item *it = to_simple_find(s, map, id);
    if (it) /* it goes on */
        return it;
    s->items = dgm_list_reserve(s->items, s->n, &s->cap, sizeof *s->items);
    it = &s->items[s->n];
    *it = (struct item){.id = dgm_arena_dup(s->arena, id)};
    dgm_buf_init(&it->text, DGM_MAX_RECORD_BYTES);
    dgm_map_put(map, it->id, s->n++);
    return it;
}

static void to_simple_add_text(dgm_simple_encoder *s, struct item *it, dgm_str text)
{
    dgm_buf_add_str(&it->text, text);
    if (it->text.over && !s->rc)
        s->rc = dgm_fail(s->err, DGM_TOO_LARGE, NULL,
                         "\"%.*s\" becomes longer than the limit record_bytes of %zu",
                         (int)(it->id.n < 60 ? it->id.n : 60), it->id.p, DGM_MAX_RECORD_BYTES);
}

/* ---- text ------------------------------------------------------------------------------------------------- */

static void to_simple_start_text(dgm_simple_encoder *s, const dgm_canon_event *e)
{
    struct item *it = open_item(s, &s->texts, e->text.message_id);
    it->role = e->text.role ? e->text.role : DGM_CANON_ASSISTANT;
    it->ended = false;
    if (s->last_text < s->n && s->items[s->last_text].ended)
        dgm_buf_done(&s->items[s->last_text].text);
}

static void add_delta(dgm_simple_encoder *s, const dgm_canon_event *e)
{
    struct item *it = to_simple_find(s, &s->texts, e->text.message_id);
    if (!it || (!e->text.delta.n && !e->text.parts.n))
        return;
    to_simple_add_text(s, it, e->text.delta);
    if (e->text.parts.n)
        it->parts = dgm_canon_copy_parts(s->arena, e->text.parts);
    if (it->role != DGM_CANON_ASSISTANT || e->text.whole)
        return;
    dgm_simple_event out = {
        .kind = DGM_SIMPLE_TEXT_CHUNK, .message_id = it->id, .delta = e->text.delta};
    to_simple_give(s, &out);
}

static void to_simple_end_text(dgm_simple_encoder *s, dgm_str id)
{
    struct item *it = to_simple_find(s, &s->texts, id);
    if (!it)
        return;
    bool agent = it->role == DGM_CANON_ASSISTANT;
    dgm_simple_event out = {.kind = agent ? DGM_SIMPLE_TEXT_END : DGM_SIMPLE_TEXT_CONTENT};
    if (agent)
        out.message_id = it->id;
    out.message.role = it->role;
    out.message.content =
        (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT, .text = dgm_buf_str(&it->text)};
    if (it->parts.n)
        out.message.content =
            (dgm_canon_content){.kind = DGM_CANON_CONTENT_PARTS, .parts = it->parts};
    to_simple_give(s, &out);
    it->ended = true;
    s->last_text = (size_t)(it - s->items);
}

/* Replaces a text that differs from the streamed one. If its End was emitted before, another End follows. */
static void to_simple_correct(dgm_simple_encoder *s, const dgm_canon_event *e)
{
    struct item *it = to_simple_find(s, &s->texts, e->snapshot.changed);
    for (size_t i = 0; it && i < e->snapshot.messages.n; i++) {
        const dgm_canon_message *m = &e->snapshot.messages.at[i];
        if (!dgm_str_eq(m->id, it->id))
            continue;
        dgm_buf_clear(&it->text);
        it->text.over = false;
        to_simple_add_text(s, it, m->content.text);
        if (it->ended)
            to_simple_end_text(s, it->id);
    }
}

/* ---- calls ------------------------------------------------------------------------------------------------ */

static void to_simple_start_call(dgm_simple_encoder *s, const dgm_canon_event *e)
{
    struct item *it = open_item(s, &s->calls, e->call.tool_call_id);
    it->name = dgm_arena_dup(s->arena, e->call.name);
    it->parent = e->call.parent_message_id.n ? dgm_arena_dup(s->arena, e->call.parent_message_id)
                                             : (dgm_str){0};
    release(s, it->parent.n && dgm_str_eq(it->parent, s->held_parent));
}

/* Does its message say something else, so that a parent is needed? */
static bool has_company(const dgm_simple_encoder *s, const struct item *it)
{
    return it->parent.n &&
           (to_simple_find(s, &s->texts, it->parent) || dgm_str_eq(s->last_parent, it->parent));
}

static void to_simple_add_arguments(dgm_simple_encoder *s, const dgm_canon_event *e)
{
    struct item *it = to_simple_find(s, &s->calls, e->call.tool_call_id);
    if (!it)
        return;
    if (e->call.delta.n)
        to_simple_add_text(s, it, e->call.delta);
    if (e->call.whole || (!e->call.increment && !e->call.delta.n))
        return;
    dgm_simple_event out = {.kind = DGM_SIMPLE_CALL_ARGS, .call = {.id = it->id, .name = it->name}};
    out.call.arguments =
        e->call.increment ? e->call.increment : dgm_json_make_string(s->scratch, e->call.delta);
    if (has_company(s, it))
        out.parent_message_id = it->parent;
    to_simple_give(s, &out);
}

static void to_simple_end_call(dgm_simple_encoder *s, const dgm_canon_event *e)
{
    struct item *it = to_simple_find(s, &s->calls, e->call.tool_call_id);
    if (!it)
        return;
    dgm_simple_event out = {.kind = DGM_SIMPLE_CALL_START,
                            .call = {.id = it->id, .name = it->name}};
    dgm_str text = dgm_buf_str(&it->text);
    bool hold = it->parent.n && !has_company(s, it);
    out.call.arguments = dgm_content_arguments_value(hold ? s->held_arena : s->scratch,
                                                     text.n ? text : DGM_STR("{}"));
    if (hold) {
        s->held = out;
        s->held_parent = it->parent;
    } else {
        out.parent_message_id = it->parent;
        to_simple_give(s, &out);
    }
    s->last_parent = it->parent;
    dgm_buf_done(&it->text);
}

static void to_simple_add_result(dgm_simple_encoder *s, const dgm_canon_event *e)
{
    dgm_simple_event out = {.kind = DGM_SIMPLE_CALL_RESULT, .tool_call_id = e->result.tool_call_id};
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    const dgm_canon_content *c = &e->result.content;
    for (size_t i = 0; c->kind == DGM_CANON_CONTENT_PARTS && i < c->parts.n; i++)
        dgm_buf_add_str(&b, c->parts.at[i].text);
    if (c->kind == DGM_CANON_CONTENT_TEXT)
        dgm_buf_add_str(&b, c->text);
    out.result =
        e->result.value ? e->result.value : dgm_json_make_string(s->scratch, dgm_buf_str(&b));
    to_simple_give(s, &out);
    dgm_buf_done(&b);
}

/* ---- runs ------------------------------------------------------------------------------------------------- */

static void to_simple_finish(dgm_simple_encoder *s, const dgm_canon_event *e)
{
    const dgm_canon_outcome *o = &e->run_finished.outcome;
    dgm_simple_event out = {.kind = DGM_SIMPLE_RUN_FINISHED,
                            .thread_id = e->run_finished.thread_id,
                            .run_id = e->run_finished.run_id};
    if (o->kind == DGM_CANON_INTERRUPT || o->pending_tool_call_ids.n) {
        out.kind = DGM_SIMPLE_STEP_FINISHED;
        out.step_name = DGM_STR("working");
    } else if (o->kind == DGM_CANON_CANCELLED) {
        out.kind = DGM_SIMPLE_RUN_ERROR;
        out.error_message = DGM_STR("The task was canceled");
        out.code = DGM_STR("canceled");
    }
    to_simple_give(s, &out);
}

static void step(dgm_simple_encoder *s, const dgm_canon_event *e)
{
    bool starts = e->kind == DGM_CANON_STEP_STARTED;
    dgm_simple_event out = {.kind = starts ? DGM_SIMPLE_STEP_STARTED : DGM_SIMPLE_STEP_FINISHED,
                            .thread_id = e->step.thread_id,
                            .run_id = e->step.run_id,
                            .step_name = e->step.name};
    /* The next event shows that `working` is over; a step end here would mean that input is required. */
    if (starts || !dgm_str_is(e->step.name, "working"))
        to_simple_give(s, &out);
}

static void run_event(dgm_simple_encoder *s, const dgm_canon_event *e)
{
    dgm_simple_event out = {.kind = DGM_SIMPLE_RUN_STARTED};
    if (e->kind == DGM_CANON_RUN_STARTED) {
        out.thread_id = e->run_started.thread_id;
        out.run_id = e->run_started.run_id;
    } else {
        out.kind = DGM_SIMPLE_RUN_ERROR;
        out.error_message = e->run_error.message;
        out.code = e->run_error.code;
        out.thread_id = e->run_error.thread_id;
        out.run_id = e->run_error.run_id;
    }
    to_simple_give(s, &out);
}

dgm_code dgm_simple_encoder_feed(dgm_simple_encoder *s, const dgm_canon_event *e, dgm_err *err)
{
    s->err = err;
    if (e->kind != DGM_CANON_TOOL_CALL_START)
        release(s, false);
    switch (e->kind) {
    case DGM_CANON_RUN_STARTED:
    case DGM_CANON_RUN_ERROR: run_event(s, e); break;
    case DGM_CANON_RUN_FINISHED: to_simple_finish(s, e); break;
    case DGM_CANON_STEP_STARTED:
    case DGM_CANON_STEP_FINISHED: step(s, e); break;
    case DGM_CANON_TEXT_MESSAGE_START: to_simple_start_text(s, e); break;
    case DGM_CANON_TEXT_MESSAGE_CONTENT: add_delta(s, e); break;
    case DGM_CANON_TEXT_MESSAGE_END: to_simple_end_text(s, e->text.message_id); break;
    case DGM_CANON_TOOL_CALL_START: to_simple_start_call(s, e); break;
    case DGM_CANON_TOOL_CALL_ARGS: to_simple_add_arguments(s, e); break;
    case DGM_CANON_TOOL_CALL_END: to_simple_end_call(s, e); break;
    case DGM_CANON_TOOL_CALL_RESULT: to_simple_add_result(s, e); break;
    case DGM_CANON_MESSAGES_SNAPSHOT: to_simple_correct(s, e); break;
    case DGM_CANON_NONE:
    case DGM_CANON_TEXT_MESSAGE_CHUNK:
    case DGM_CANON_TOOL_CALL_CHUNK:
    case DGM_CANON_REASONING_MESSAGE_CHUNK:
    case DGM_CANON_STATE_SNAPSHOT:
    case DGM_CANON_STATE_DELTA:
    case DGM_CANON_ACTIVITY_SNAPSHOT:
    case DGM_CANON_ACTIVITY_DELTA:
    case DGM_CANON_REASONING_START:
    case DGM_CANON_REASONING_MESSAGE_START:
    case DGM_CANON_REASONING_MESSAGE_CONTENT:
    case DGM_CANON_REASONING_MESSAGE_END:
    case DGM_CANON_REASONING_END:
    case DGM_CANON_REASONING_ENCRYPTED_VALUE:
    case DGM_CANON_SUBAGENT_STARTED:
    case DGM_CANON_SUBAGENT_FINISHED:
    case DGM_CANON_SUBAGENT_ERROR:
    case DGM_CANON_RAW:
    case DGM_CANON_CUSTOM:
    case DGM_CANON_ARTIFACT: break; /* no such event in the dialect */
    }
    dgm_arena_reset(s->scratch);
    return s->rc;
}

dgm_code dgm_simple_encoder_end(dgm_simple_encoder *s, dgm_err *err)
{
    s->err = err;
    release(s, false);
    return s->rc;
}
