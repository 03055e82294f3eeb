/*
 * wire/langchain/langchain_decode.c - chunks and whole messages of a stream as canonical events.
 *
 * Chunks of one message have its id, or the placeholder of a run until the provider has told one. Those of
 * several may come interleaved: a text is closed when another message speaks, and goes on later. Their
 * tool_calls are guesses at half of the arguments: only tool_call_chunks count.
 */
#include "canon/list.h"
#include "canon/reconcile.h"
#include "canon/say.h"
#include "wire/langchain/langchain_int.h"

#include <stdlib.h>

struct call {
    dgm_str id;
    size_t owner; /* said */
    int64_t index;
    bool open, answered;
};

/* What chunks have said under an id. */
struct said {
    dgm_str id;
    dgm_sum text;
};

struct decoder {
    dgm_arena *arena;
    dgm_mint mint;
    dgm_reader *r;
    dgm_canon_sink sink;
    dgm_code rc;
    dgm_str thread_id, run_id;
    /* the message that chunks add to; n_said == 0: none was begun */
    size_t current;
    bool has_current, text_open, placeholder;
    dgm_str reasoning; /* the id of the one that is open */
    struct said *said;
    size_t n_said, cap_said;
    struct call *calls;
    size_t n_calls, cap_calls, first_open; /* before it none is */
    dgm_map texts, by_id;
    dgm_canon_usage usage;
    dgm_str error, error_code;
    bool fragment, begun, cancelled;
    unsigned n_made;
};

static void give(struct decoder *d, const dgm_canon_event *e)
{
    if (!d->rc)
        d->rc = dgm_canon_emit(d->sink, e);
}

static void begin(struct decoder *d)
{
    if (d->begun)
        return;
    d->begun = true;
    d->thread_id = dgm_mint_id(&d->mint, d->arena);
    d->run_id = dgm_mint_id(&d->mint, d->arena);
    dgm_canon_event e = {.kind = DGM_CANON_RUN_STARTED};
    e.run_started.thread_id = d->thread_id;
    e.run_started.run_id = d->run_id;
    e.run_started.protocol_version = DGM_STR(DGM_AGUI_VERSION);
    if (!d->fragment)
        give(d, &e);
}

/* ---- texts ----------------------------------------------------------------------------------------------------------- */

static void text_event(struct decoder *d, dgm_canon_kind kind, dgm_str id, dgm_str delta)
{
    dgm_canon_event e = {.kind = kind};
    e.text.message_id = id;
    e.text.delta = delta;
    if (kind == DGM_CANON_TEXT_MESSAGE_START)
        e.text.role = DGM_CANON_ASSISTANT;
    if (kind == DGM_CANON_REASONING_MESSAGE_START)
        e.text.role = DGM_CANON_REASONING;
    give(d, &e);
}

static void end_reasoning(struct decoder *d)
{
    if (!d->reasoning.p)
        return;
    text_event(d, DGM_CANON_REASONING_MESSAGE_END, d->reasoning, (dgm_str){0});
    text_event(d, DGM_CANON_REASONING_END, d->reasoning, (dgm_str){0});
    d->reasoning = (dgm_str){0};
}

static void add_reasoning(struct decoder *d, dgm_str text)
{
    if (!d->reasoning.p) {
        d->reasoning =
            dgm_arena_printf(d->arena, "%.*s-t%u", DGM_P(d->said[d->current].id), ++d->n_made);
        text_event(d, DGM_CANON_REASONING_START, d->reasoning, (dgm_str){0});
        text_event(d, DGM_CANON_REASONING_MESSAGE_START, d->reasoning, (dgm_str){0});
    }
    text_event(d, DGM_CANON_REASONING_MESSAGE_CONTENT, d->reasoning, text);
}

static void end_text(struct decoder *d)
{
    if (d->text_open)
        text_event(d, DGM_CANON_TEXT_MESSAGE_END, d->said[d->current].id, (dgm_str){0});
    d->text_open = false;
}

static void add_text(struct decoder *d, dgm_str text)
{
    struct said *s = &d->said[d->current];
    if (!text.n)
        return;
    end_reasoning(d);
    if (!d->text_open)
        text_event(d, DGM_CANON_TEXT_MESSAGE_START, s->id, (dgm_str){0});
    d->text_open = true;
    text_event(d, DGM_CANON_TEXT_MESSAGE_CONTENT, s->id, text);
    dgm_sum_add(&s->text, text);
}

/* ---- calls ----------------------------------------------------------------------------------------------------------- */

static void call_event(struct decoder *d, dgm_canon_kind kind, const struct call *c, dgm_str text)
{
    dgm_canon_event e = {.kind = kind};
    e.call.tool_call_id = c->id;
    if (kind == DGM_CANON_TOOL_CALL_START) {
        e.call.name = text;
        e.call.parent_message_id = d->said[d->current].id;
    } else if (kind == DGM_CANON_TOOL_CALL_ARGS) {
        e.call.delta = text;
    }
    give(d, &e);
}

/* The open call of that index; of those that tell none the last one. */
static struct call *find_call(const struct decoder *d, bool has_index, int64_t index)
{
    for (size_t i = d->n_calls; i > d->first_open; i--) {
        struct call *c = &d->calls[i - 1];
        if (c->open && c->owner == d->current && (!has_index || c->index == index))
            return c;
    }
    return NULL;
}

static void end_call(struct decoder *d, struct call *c)
{
    if (c->open)
        call_event(d, DGM_CANON_TOOL_CALL_END, c, (dgm_str){0});
    c->open = false;
    while (d->first_open < d->n_calls && !d->calls[d->first_open].open)
        d->first_open++;
}

static void read_call_chunk(struct decoder *d, yyjson_val *v, const dgm_at *at)
{
    dgm_str id = dgm_lc_text(v, "id"), name = dgm_lc_text(v, "name"), args = dgm_lc_text(v, "args");
    yyjson_val *number = dgm_json_get(v, DGM_STR("index"));
    int64_t index = 0;
    bool has_index = yyjson_is_raw(number) && dgm_json_int(number, &index);
    struct call *c = find_call(d, has_index, index);
    if (!c || (id.n && !dgm_str_eq(id, c->id))) {
        if (!name.p) {
            d->rc = dgm_fail(d->r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "name"),
                             "missing: the first chunk of a call names its tool");
            return;
        }
        end_text(d);
        end_reasoning(d);
        d->calls = dgm_list_room(d->calls, d->n_calls, &d->cap_calls, sizeof *d->calls);
        c = &d->calls[d->n_calls];
        *c = (struct call){.id =
                               id.n ? dgm_arena_dup(d->arena, id) : dgm_mint_id(&d->mint, d->arena),
                           .owner = d->current,
                           .index = index,
                           .open = true};
        dgm_map_put(&d->by_id, c->id, d->n_calls++);
        call_event(d, DGM_CANON_TOOL_CALL_START, c, name);
    }
    if (args.n)
        call_event(d, DGM_CANON_TOOL_CALL_ARGS, c, args);
}

/* ---- chunks ---------------------------------------------------------------------------------------------------------- */

/* Another message speaks. */
static void leave_current(struct decoder *d)
{
    if (!d->has_current)
        return;
    end_text(d);
    end_reasoning(d);
    d->has_current = false;
}

/* Nothing more comes of it. */
static void close_message(struct decoder *d, size_t said)
{
    if (d->has_current && d->current == said)
        leave_current(d);
    for (size_t i = d->first_open; i < d->n_calls; i++) {
        if (d->calls[i].owner == said)
            end_call(d, &d->calls[i]);
    }
}

static void open_current(struct decoder *d, dgm_str id)
{
    bool placeholder = !id.n || dgm_lc_is_placeholder(id);
    if (d->has_current && (placeholder || d->placeholder || dgm_str_eq(id, d->said[d->current].id)))
        return;
    leave_current(d);
    size_t *known = id.n ? dgm_map_get(&d->texts, id) : NULL;
    d->has_current = true;
    d->placeholder = placeholder;
    d->current = known ? *known : d->n_said;
    if (known)
        return;
    d->said = dgm_list_room(d->said, d->n_said, &d->cap_said, sizeof *d->said);
    d->said[d->n_said] =
        (struct said){.id = id.n ? dgm_arena_dup(d->arena, id) : dgm_mint_id(&d->mint, d->arena)};
    dgm_map_put(&d->texts, d->said[d->n_said].id, d->n_said);
    d->n_said++;
}

/* How a run went, in the words of our encoder and of most providers. */
static void look_at_end(struct decoder *d, const yyjson_val *data)
{
    const yyjson_val *metadata = dgm_json_get(data, DGM_STR("response_metadata"));
    const yyjson_val *error = dgm_json_get(metadata, DGM_STR("error"));
    dgm_str model = dgm_lc_text(metadata, "model_name"),
            reason = dgm_lc_text(metadata, "finish_reason");
    dgm_lc_add_usage(&d->usage, data);
    if (model.n && !d->usage.model.n)
        d->usage.model = dgm_arena_dup(d->arena, model);
    if (dgm_str_is(reason, "cancelled"))
        d->cancelled = true;
    if (dgm_str_is(reason, "error") && dgm_lc_text(error, "message").p) {
        d->error = dgm_arena_dup(d->arena, dgm_lc_text(error, "message"));
        d->error_code = dgm_lc_text(error, "code");
        if (d->error_code.p)
            d->error_code = dgm_arena_dup(d->arena, d->error_code);
    }
}

static void feed_chunk(struct decoder *d, const lc_opened *o)
{
    const dgm_at *at = o->key ? DGM_AT(NULL, dgm_str_from(o->key)) : NULL;
    yyjson_val *chunks = dgm_json_get(o->data, DGM_STR("tool_call_chunks")), *v;
    lc_content content;
    size_t i, n;
    if ((d->rc = dgm_lc_read_content(d->r, dgm_json_get(o->data, DGM_STR("content")),
                                     DGM_AT_LIT(at, "content"), &content)))
        return;
    open_current(d, dgm_lc_text(o->data, "id"));
    for (i = 0; i < content.reasoning.n; i++)
        add_reasoning(d, content.reasoning.at[i]);
    add_text(d, dgm_lc_answer_of(d->r->arena, &content));
    for (i = 0, n = yyjson_arr_size(chunks), v = n ? yyjson_arr_get_first(chunks) : NULL; i < n;
         i++, v = unsafe_yyjson_get_next(v)) {
        if (!d->rc)
            read_call_chunk(d, v, DGM_AT_I(DGM_AT_LIT(at, "tool_call_chunks"), i));
    }
    if (dgm_str_is(dgm_lc_text(o->data, "chunk_position"), "last"))
        close_message(d, d->current);
}

/* ---- whole messages -------------------------------------------------------------------------------------------------- */

/* Of a message that chunks have told: what they have not. A text that is another goes by another id. */
static void reconcile(struct decoder *d, dgm_canon_message *m)
{
    size_t *at = dgm_map_get(&d->texts, m->id);
    if (m->role != DGM_CANON_ASSISTANT || !at)
        return;
    dgm_str text = m->content.text;
    struct said *s = &d->said[*at];
    for (size_t i = 0; i < m->tool_calls.n; i++) {
        size_t *call = dgm_map_get(&d->by_id, m->tool_calls.at[i].id);
        if (call) /* now it is whole */
            end_call(d, &d->calls[*call]);
    }
    if (!dgm_sum_begins(&s->text, text)) {
        m->id = dgm_arena_printf(d->arena, "%.*s-%u", DGM_P(m->id), ++d->n_made + 1);
    } else if (s->text.n == text.n) {
        m->content = (dgm_canon_content){0};
    } else {
        m->content.text = (dgm_str){text.p + s->text.n, text.n - s->text.n};
        dgm_sum_add(&s->text, m->content.text);
    }
    size_t kept = 0; /* in place: the list is ours */
    for (size_t i = 0; i < m->tool_calls.n; i++) {
        if (!dgm_map_get(&d->by_id, m->tool_calls.at[i].id))
            m->tool_calls.at[kept++] = m->tool_calls.at[i];
    }
    m->tool_calls.n = kept;
}

/* A result ends its call; calls of whole messages are whole. */
static void note_calls(struct decoder *d, const dgm_canon_message *m)
{
    size_t *at = dgm_map_get(&d->by_id, m->tool_call_id);
    if (m->role == DGM_CANON_TOOL && at) {
        d->calls[*at].answered = true;
        end_call(d, &d->calls[*at]);
    }
    for (size_t i = 0; i < m->tool_calls.n; i++) {
        d->calls = dgm_list_room(d->calls, d->n_calls, &d->cap_calls, sizeof *d->calls);
        d->calls[d->n_calls] =
            (struct call){.id = dgm_arena_dup(d->arena, m->tool_calls.at[i].id), .owner = SIZE_MAX};
        dgm_map_put(&d->by_id, d->calls[d->n_calls].id, d->n_calls);
        d->n_calls++;
    }
}

static void feed_message(struct decoder *d, yyjson_val *v)
{
    dgm_canon_messages list = {0};
    dgm_mint *kept = d->r->mint;
    if (!kept)
        d->r->mint = &d->mint; /* calls and messages without ids */
    d->rc = dgm_lc_read_message(d->r, v, NULL, &list);
    d->r->mint = kept;
    if (d->rc)
        return;
    leave_current(d);
    for (size_t i = 0; i < list.n; i++) {
        reconcile(d, &list.at[i]);
        note_calls(d, &list.at[i]);
    }
    if (!d->rc)
        d->rc = dgm_canon_say(d->r->arena, &list, &d->mint, false, d->sink);
}

/* ---- the handle -------------------------------------------------------------------------------------------------------- */

dgm_code dgm_lc_decoder_feed(void *decoder, dgm_reader *r, yyjson_val *v, dgm_canon_sink sink)
{
    struct decoder *d = decoder;
    lc_opened o;
    d->r = r;
    d->sink = sink;
    r->format = dgm_langchain_name;
    if (yyjson_arr_size(v) == 2) /* LangGraph's: the message, and what is known of its node */
        v = yyjson_arr_get_first(v);
    begin(d);
    bool opened = dgm_lc_open(v, &o);
    if (opened)
        look_at_end(d, o.data);
    if (!d->rc && opened && o.chunk && o.kind == LC_AI)
        feed_chunk(d, &o);
    else if (!d->rc)
        feed_message(d, v);
    return d->rc;
}

static bool has_usage(const dgm_canon_usage *u)
{
    return u->input_tokens.set || u->output_tokens.set || u->total_tokens.set;
}

static void end_run(struct decoder *d, dgm_arena *a)
{
    dgm_canon_usages usage = {&d->usage, has_usage(&d->usage)};
    dgm_canon_event e = {.kind = DGM_CANON_RUN_FINISHED};
    dgm_strs pending = {dgm_new_n(a, dgm_str, d->n_calls + 1), 0};
    if (d->error.p) {
        e.kind = DGM_CANON_RUN_ERROR;
        e.run_error.message = d->error;
        e.run_error.code = d->error_code;
        e.run_error.usage = usage;
        give(d, &e);
        return;
    }
    for (size_t i = 0; i < d->n_calls; i++) {
        if (!d->calls[i].answered)
            pending.at[pending.n++] = d->calls[i].id;
    }
    e.run_finished.thread_id = d->thread_id;
    e.run_finished.run_id = d->run_id;
    e.run_finished.usage = usage;
    if (d->cancelled)
        e.run_finished.outcome.kind = DGM_CANON_CANCELLED;
    else if (pending.n)
        e.run_finished.outcome =
            (dgm_canon_outcome){.kind = DGM_CANON_SUCCESS, .pending_tool_call_ids = pending};
    give(d, &e);
}

dgm_code dgm_lc_decoder_end(void *decoder, dgm_canon_sink sink, dgm_err *err)
{
    struct decoder *d = decoder;
    d->sink = sink;
    (void)err;
    leave_current(d);
    for (size_t i = d->first_open; i < d->n_calls; i++)
        end_call(d, &d->calls[i]);
    if (d->begun && !d->fragment)
        end_run(d, d->arena);
    return d->rc;
}

void *dgm_lc_decoder_new(const dgm_stream_params *params)
{
    struct decoder *d = dgm_xcalloc(1, sizeof *d);
    d->arena = dgm_arena_new();
    d->mint = params->mint;
    d->fragment = params->fragment;
    dgm_map_init(&d->texts);
    dgm_map_init(&d->by_id);
    return d;
}

void dgm_lc_decoder_free(void *decoder)
{
    struct decoder *d = decoder;
    if (!d)
        return;
    dgm_map_done(&d->texts);
    dgm_map_done(&d->by_id);
    free(d->said);
    free(d->calls);
    dgm_arena_free(d->arena);
    free(d);
}
