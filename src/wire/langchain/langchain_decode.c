/*
 * wire/langchain/langchain_decode.c - chunks and whole messages of a stream as canonical events.
 *
 * Chunks of one message have its id, or a placeholder for the run until the provider has sent the id; LangGraph
 * also sends their node. Chunks of several messages may be interleaved: a text is closed when a chunk of another
 * message arrives, and continues later. tool_calls of a chunk are parsed from incomplete arguments, so only
 * tool_call_chunks are read.
 */
#include "base/list.h"
#include "canon/message_content.h"
#include "canon/messages_to_events.h"
#include "model/reconcile.h"
#include "wire/langchain/langchain_int.h"

#include <stdlib.h>

struct lc_call {
    dgm_str id;
    size_t owner; /* index in texts */
    int64_t index;
    bool open, answered;
};

/* The text that chunks with one id have sent. */
struct lc_text {
    dgm_str id;
    dgm_str placeholder; /* that of its run, once there was one */
    dgm_str node;        /* of LangGraph, with the task that it runs as */
    bool loose;          /* the id is a placeholder, or ours: another may follow */
    bool done;
    dgm_sum text;
};

typedef struct lc_decoder {
    dgm_arena *arena;
    dgm_mint mint;
    dgm_reader *r;
    dgm_canon_sink sink;
    dgm_code rc;
    dgm_str thread_id, run_id;
    /* the message that chunks add to; n_said == 0: none was begun */
    size_t current;
    bool has_current, text_open;
    dgm_str reasoning; /* the id of the one that is open */
    struct lc_text *text_list;
    size_t n_texts, cap_texts;
    struct lc_call *calls;
    size_t n_calls, cap_calls, first_open; /* before it none is */
    dgm_map texts, by_id, by_node;         /* texts by id, calls by id, the last text of a node */
    dgm_canon_usage usage;
    dgm_str error, error_code;
    dgm_canon_interrupts interrupts;
    bool fragment, begun, cancelled;
    unsigned n_made;
} lc_decoder;

static void lc_emit(lc_decoder *d, const dgm_canon_event *e)
{
    if (!d->rc)
        d->rc = dgm_canon_emit(d->sink, e);
}

static void langchain_decode_begin(lc_decoder *d, dgm_str thread_id)
{
    if (d->begun)
        return;
    d->begun = true;
    d->thread_id =
        thread_id.n ? dgm_arena_dup(d->arena, thread_id) : dgm_mint_id(&d->mint, d->arena);
    d->run_id = dgm_mint_id(&d->mint, d->arena);
    dgm_canon_event e = {.kind = DGM_CANON_RUN_STARTED};
    e.run_started.thread_id = d->thread_id;
    e.run_started.run_id = d->run_id;
    e.run_started.protocol_version = DGM_STR(DGM_AGUI_VERSION);
    if (!d->fragment)
        lc_emit(d, &e);
}

/* ---- texts ----------------------------------------------------------------------------------------------------------- */

static void text_event(lc_decoder *d, dgm_canon_kind kind, dgm_str id, dgm_str delta)
{
    dgm_canon_event e = {.kind = kind};
    e.text.message_id = id;
    e.text.delta = delta;
    if (kind == DGM_CANON_TEXT_MESSAGE_START)
        e.text.role = DGM_CANON_ASSISTANT;
    if (kind == DGM_CANON_REASONING_MESSAGE_START)
        e.text.role = DGM_CANON_REASONING;
    lc_emit(d, &e);
}

static void end_reasoning(lc_decoder *d)
{
    if (!d->reasoning.p)
        return;
    text_event(d, DGM_CANON_REASONING_MESSAGE_END, d->reasoning, (dgm_str){0});
    text_event(d, DGM_CANON_REASONING_END, d->reasoning, (dgm_str){0});
    d->reasoning = (dgm_str){0};
}

static void langchain_decode_add_reasoning(lc_decoder *d, dgm_str text)
{
    if (!d->reasoning.p) {
        d->reasoning =
            dgm_arena_printf(d->arena, "%.*s-t%u", DGM_P(d->text_list[d->current].id), ++d->n_made);
        text_event(d, DGM_CANON_REASONING_START, d->reasoning, (dgm_str){0});
        text_event(d, DGM_CANON_REASONING_MESSAGE_START, d->reasoning, (dgm_str){0});
    }
    text_event(d, DGM_CANON_REASONING_MESSAGE_CONTENT, d->reasoning, text);
}

static void langchain_decode_end_text(lc_decoder *d)
{
    if (d->text_open)
        text_event(d, DGM_CANON_TEXT_MESSAGE_END, d->text_list[d->current].id, (dgm_str){0});
    d->text_open = false;
}

static void langchain_decode_add_text(lc_decoder *d, dgm_str text)
{
    struct lc_text *s = &d->text_list[d->current];
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

static void call_event(lc_decoder *d, dgm_canon_kind kind, const struct lc_call *c, dgm_str text)
{
    dgm_canon_event e = {.kind = kind};
    e.call.tool_call_id = c->id;
    if (kind == DGM_CANON_TOOL_CALL_START) {
        e.call.name = text;
        e.call.parent_message_id = d->text_list[d->current].id;
    } else if (kind == DGM_CANON_TOOL_CALL_ARGS) {
        e.call.delta = text;
    }
    lc_emit(d, &e);
}

/* The open call with that index; the last one if the chunk has no index. */
static struct lc_call *langchain_decode_find_call(const lc_decoder *d, bool has_index,
                                                  int64_t index)
{
    for (size_t i = d->n_calls; i > d->first_open; i--) {
        struct lc_call *c = &d->calls[i - 1];
        if (c->open && c->owner == d->current && (!has_index || c->index == index))
            return c;
    }
    return NULL;
}

static void langchain_decode_end_call(lc_decoder *d, struct lc_call *c)
{
    if (c->open)
        call_event(d, DGM_CANON_TOOL_CALL_END, c, (dgm_str){0});
    c->open = false;
    while (d->first_open < d->n_calls && !d->calls[d->first_open].open)
        d->first_open++;
}

static void read_call_chunk(lc_decoder *d, yyjson_val *v, const dgm_at *at)
{
    dgm_str id = dgm_json_str_member(v, "id"), name = dgm_json_str_member(v, "name"),
            args = dgm_json_str_member(v, "args");
    yyjson_val *number = dgm_json_get(v, DGM_STR("index"));
    int64_t index = 0;
    bool has_index = yyjson_is_raw(number) && dgm_json_int(number, &index);
    struct lc_call *c = langchain_decode_find_call(d, has_index, index);
    if (!c || (id.n && !dgm_str_eq(id, c->id))) {
        if (!name.p) {
            d->rc = dgm_fail(d->r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "name"),
                             "missing: the first chunk of a call names its tool");
            return;
        }
        langchain_decode_end_text(d);
        end_reasoning(d);
        d->calls = dgm_list_reserve(d->calls, d->n_calls, &d->cap_calls, sizeof *d->calls);
        c = &d->calls[d->n_calls];
        *c = (struct lc_call){.id = id.n ? dgm_arena_dup(d->arena, id)
                                         : dgm_mint_id(&d->mint, d->arena),
                              .owner = d->current,
                              .index = index,
                              .open = true};
        dgm_map_put(&d->by_id, c->id, d->n_calls++);
        call_event(d, DGM_CANON_TOOL_CALL_START, c, name);
    }
    if (args.n)
        call_event(d, DGM_CANON_TOOL_CALL_ARGS, c, args);
}

/* ---- the message that a chunk belongs to ----------------------------------------------------------------------- */

/* Closes the text and the reasoning of the current message: another message follows. */
static void lc_leave_current(lc_decoder *d)
{
    if (!d->has_current)
        return;
    langchain_decode_end_text(d);
    end_reasoning(d);
    d->has_current = false;
}

/*
 * The id is not enough: a stream may have the provider's id and the placeholder of its run for one message. Two
 * placeholders are two runs, and two nodes of LangGraph are two messages, whatever the ids are.
 */

/* Can a chunk with this id, of this node, be a piece of it? */
static bool goes_on(const struct lc_text *s, dgm_str id, dgm_str node)
{
    if (node.n && s->node.n && !dgm_str_eq(node, s->node))
        return false;
    if (!id.n || dgm_str_eq(id, s->id))
        return true;
    if (dgm_lc_is_placeholder(id))
        return !s->placeholder.n || dgm_str_eq(id, s->placeholder);
    return s->loose;
}

static size_t lc_add_text(lc_decoder *d, dgm_str id)
{
    d->text_list = dgm_list_reserve(d->text_list, d->n_texts, &d->cap_texts, sizeof *d->text_list);
    d->text_list[d->n_texts] =
        (struct lc_text){.id = id.n ? dgm_arena_dup(d->arena, id) : dgm_mint_id(&d->mint, d->arena),
                         .loose = !id.n || dgm_lc_is_placeholder(id)};
    dgm_map_put(&d->texts, d->text_list[d->n_texts].id, d->n_texts);
    return d->n_texts++;
}

/* The message of a chunk that does not belong to the current one. */
static size_t lc_find_text(lc_decoder *d, dgm_str id, dgm_str node)
{
    size_t *known = id.n ? dgm_map_get(&d->texts, id) : NULL;
    if (known)
        return *known;
    known = node.n ? dgm_map_get(&d->by_node, node) : NULL;
    if (known && !d->text_list[*known].done && goes_on(&d->text_list[*known], id, node))
        return *known;
    return lc_add_text(d, id);
}

static void note_names(lc_decoder *d, struct lc_text *s, dgm_str id, dgm_str node)
{
    if (!s->placeholder.n && dgm_lc_is_placeholder(id))
        s->placeholder = dgm_str_eq(id, s->id) ? s->id : dgm_arena_dup(d->arena, id);
    if (!node.n)
        return;
    if (!s->node.n)
        s->node = dgm_arena_dup(d->arena, node);
    size_t *last = dgm_map_get(&d->by_node, node);
    if (last)
        *last = d->current;
    else
        dgm_map_put(&d->by_node, s->node, d->current);
}

static void lc_open_current(lc_decoder *d, dgm_str id, dgm_str node)
{
    if (!d->has_current || !goes_on(&d->text_list[d->current], id, node)) {
        lc_leave_current(d);
        d->current = lc_find_text(d, id, node);
        d->has_current = true;
    }
    note_names(d, &d->text_list[d->current], id, node);
}

/* ---- the outcome of a run: usage, errors, questions, pending calls --------------------------------------------- */

static void add_interrupt(lc_decoder *d, dgm_str id, dgm_str question)
{
    dgm_canon_interrupts *list = &d->interrupts;
    for (size_t i = 0; i < list->n; i++) {
        if (dgm_str_eq(list->at[i].id, id))
            return; /* the modes updates and values repeat the same message */
    }
    list->at = dgm_list_grow(d->arena, list->at, list->n, sizeof *list->at);
    list->at[list->n++] =
        (dgm_canon_interrupt){.id = dgm_arena_dup(d->arena, id),
                              .reason = DGM_STR("input_required"),
                              .message = question.p ? dgm_arena_dup(d->arena, question) : question};
}

/* LangGraph's: a text, or an object that mostly has one. */
static void lc_read_interrupts(lc_decoder *d, yyjson_val *list)
{
    static const char *const names[] = {"message", "question", "prompt", "text"};
    yyjson_val *v;
    size_t i, n;
    yyjson_arr_foreach (list, i, n, v) {
        yyjson_val *value = dgm_json_get(v, DGM_STR("value"));
        dgm_str question = yyjson_is_str(value) ? dgm_json_str(value) : (dgm_str){0};
        for (size_t k = 0; !question.n && k < sizeof names / sizeof *names; k++)
            question = dgm_json_str_member(value, names[k]);
        if (!question.n && value)
            question = dgm_content_value_text(d->arena, value);
        dgm_str id = dgm_json_str_member(v, "id");
        add_interrupt(d, id.n ? id : d->run_id, question);
    }
}

/* The outcome of a run, in the words of our encoder and of most providers. */
static void lc_read_outcome(lc_decoder *d, const yyjson_val *data)
{
    const yyjson_val *metadata = dgm_json_get(data, DGM_STR("response_metadata"));
    const yyjson_val *error = dgm_json_get(metadata, DGM_STR("error"));
    dgm_str model = dgm_json_str_member(metadata, "model_name"),
            reason = dgm_json_str_member(metadata, "finish_reason");
    dgm_lc_add_usage(&d->usage, data);
    if (model.n && !d->usage.model.n)
        d->usage.model = dgm_arena_dup(d->arena, model);
    if (dgm_str_is(reason, "cancelled"))
        d->cancelled = true;
    if (dgm_str_is(reason, "interrupt") && !d->interrupts.n)
        add_interrupt(d, d->run_id, (dgm_str){0});
    if (dgm_str_is(reason, "error") && dgm_json_str_member(error, "message").p) {
        d->error = dgm_arena_dup(d->arena, dgm_json_str_member(error, "message"));
        d->error_code = dgm_json_str_member(error, "code");
        if (d->error_code.p)
            d->error_code = dgm_arena_dup(d->arena, d->error_code);
    }
}

static bool has_usage(const dgm_canon_usage *u)
{
    return u->input_tokens.set || u->output_tokens.set || u->total_tokens.set;
}

static void lc_end_run(lc_decoder *d)
{
    dgm_canon_usages usage = {&d->usage, has_usage(&d->usage)};
    dgm_canon_event e = {.kind = DGM_CANON_RUN_FINISHED};
    dgm_strs pending = {dgm_new_n(d->arena, dgm_str, d->n_calls + 1), 0};
    if (d->error.p) {
        e.kind = DGM_CANON_RUN_ERROR;
        e.run_error.message = d->error;
        e.run_error.code = d->error_code;
        e.run_error.usage = usage;
        lc_emit(d, &e);
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
    else if (d->interrupts.n)
        e.run_finished.outcome =
            (dgm_canon_outcome){.kind = DGM_CANON_INTERRUPT, .interrupts = d->interrupts};
    else if (pending.n)
        e.run_finished.outcome =
            (dgm_canon_outcome){.kind = DGM_CANON_SUCCESS, .pending_tool_call_ids = pending};
    lc_emit(d, &e);
}

/* ---- chunks ---------------------------------------------------------------------------------------------------------- */

/* The message is complete. */
static void close_message(lc_decoder *d, size_t text_list)
{
    if (d->has_current && d->current == text_list)
        lc_leave_current(d);
    d->text_list[text_list].done = true;
    for (size_t i = d->first_open; i < d->n_calls; i++) {
        if (d->calls[i].owner == text_list)
            langchain_decode_end_call(d, &d->calls[i]);
    }
}

static void feed_chunk(lc_decoder *d, const lc_opened *o, dgm_str node)
{
    const dgm_at *at = o->key ? DGM_AT(NULL, dgm_str_from(o->key)) : NULL;
    yyjson_val *chunks = dgm_json_get(o->data, DGM_STR("tool_call_chunks")), *v;
    lc_content content;
    size_t i, n;
    if ((d->rc = dgm_lc_read_content(d->r, dgm_json_get(o->data, DGM_STR("content")),
                                     DGM_AT_LIT(at, "content"), &content)))
        return;
    lc_open_current(d, dgm_json_str_member(o->data, "id"), node);
    for (i = 0; i < content.reasoning.n; i++)
        langchain_decode_add_reasoning(d, content.reasoning.at[i]);
    langchain_decode_add_text(d, dgm_lc_answer_of(d->r->arena, &content));
    for (i = 0, n = yyjson_arr_size(chunks), v = n ? yyjson_arr_get_first(chunks) : NULL; i < n;
         i++, v = unsafe_yyjson_get_next(v)) {
        if (!d->rc)
            read_call_chunk(d, v, DGM_AT_I(DGM_AT_LIT(at, "tool_call_chunks"), i));
    }
    if (dgm_str_is(dgm_json_str_member(o->data, "chunk_position"), "last"))
        close_message(d, d->current);
}

/* ---- whole messages -------------------------------------------------------------------------------------------------- */

/* Emits the parts of a complete message that its chunks did not contain. A different text gets another id. */
static void reconcile(lc_decoder *d, dgm_canon_message *m)
{
    size_t *at = dgm_map_get(&d->texts, m->id);
    if (m->role != DGM_CANON_ASSISTANT || !at)
        return;
    dgm_str text = m->content.text;
    struct lc_text *s = &d->text_list[*at];
    for (size_t i = 0; i < m->tool_calls.n; i++) {
        size_t *call = dgm_map_get(&d->by_id, m->tool_calls.at[i].id);
        if (call) /* now it is whole */
            langchain_decode_end_call(d, &d->calls[*call]);
    }
    if (!dgm_sum_is_prefix(&s->text, text)) {
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

/* A result ends its call; calls in complete messages are complete. */
static void note_calls(lc_decoder *d, const dgm_canon_message *m)
{
    size_t *at = dgm_map_get(&d->by_id, m->tool_call_id);
    if (m->role == DGM_CANON_TOOL && at) {
        d->calls[*at].answered = true;
        langchain_decode_end_call(d, &d->calls[*at]);
    }
    for (size_t i = 0; i < m->tool_calls.n; i++) {
        d->calls = dgm_list_reserve(d->calls, d->n_calls, &d->cap_calls, sizeof *d->calls);
        d->calls[d->n_calls] = (struct lc_call){
            .id = dgm_arena_dup(d->arena, m->tool_calls.at[i].id), .owner = SIZE_MAX};
        dgm_map_put(&d->by_id, d->calls[d->n_calls].id, d->n_calls);
        d->n_calls++;
    }
}

static void feed_message(lc_decoder *d, yyjson_val *v)
{
    dgm_canon_messages list = {0};
    dgm_mint *kept = d->r->mint;
    if (!kept)
        d->r->mint = &d->mint; /* calls and messages without ids */
    d->rc = dgm_lc_read_message(d->r, v, NULL, &list);
    d->r->mint = kept;
    if (d->rc)
        return;
    lc_leave_current(d);
    for (size_t i = 0; i < list.n; i++) {
        reconcile(d, &list.at[i]);
        note_calls(d, &list.at[i]);
    }
    if (!d->rc)
        d->rc = dgm_messages_to_events(d->r->arena, &list, &d->mint, false, d->sink);
}

/* ---- the handle -------------------------------------------------------------------------------------------------------- */

static void feed_value(lc_decoder *d, yyjson_val *v, dgm_str node)
{
    lc_opened o;
    bool opened = dgm_lc_open(v, &o);
    if (opened)
        lc_read_outcome(d, o.data);
    if (opened && o.chunk && o.kind == LC_AI)
        feed_chunk(d, &o, node);
    else
        feed_message(d, v);
}

dgm_code dgm_lc_decoder_feed(void *decoder, dgm_reader *r, yyjson_val *v, dgm_canon_sink sink)
{
    lc_decoder *d = decoder;
    lc_element e = {.message = v};
    d->r = r;
    d->sink = sink;
    r->format = DGM_FORMAT_LANGCHAIN;
    bool inside = dgm_lc_open_element(v, &e);
    if (e.message || e.interrupts)
        langchain_decode_begin(d, dgm_json_str_member(e.metadata, "thread_id"));
    lc_read_interrupts(d, e.interrupts);
    if (!d->rc && e.message)
        feed_value(d, e.message, dgm_json_str_member(e.metadata, "langgraph_checkpoint_ns"));
    else if (!d->rc)
        r->n_unknown++;
    if (d->rc && inside && r->err) {
        const dgm_at *outer = e.in_data    ? DGM_AT_LIT(NULL, "data")
                              : e.in_array ? DGM_AT_I(NULL, e.in_array)
                                           : NULL;
        dgm_err_below(DGM_AT_I(outer, 0), r->err);
    }
    return d->rc;
}

dgm_code dgm_lc_decoder_end(void *decoder, dgm_canon_sink sink, dgm_err *err)
{
    lc_decoder *d = decoder;
    d->sink = sink;
    (void)err;
    lc_leave_current(d);
    for (size_t i = d->first_open; i < d->n_calls; i++)
        langchain_decode_end_call(d, &d->calls[i]);
    if (d->begun && !d->fragment)
        lc_end_run(d);
    return d->rc;
}

void *dgm_lc_decoder_new(const dgm_stream_params *params)
{
    lc_decoder *d = dgm_xcalloc(1, sizeof *d);
    d->arena = dgm_arena_new();
    d->mint = params->mint;
    d->fragment = params->fragment;
    dgm_map_init(&d->texts);
    dgm_map_init(&d->by_id);
    dgm_map_init(&d->by_node);
    return d;
}

void dgm_lc_decoder_free(void *decoder)
{
    lc_decoder *d = decoder;
    if (!d)
        return;
    dgm_map_done(&d->texts);
    dgm_map_done(&d->by_id);
    dgm_map_done(&d->by_node);
    free(d->text_list);
    free(d->calls);
    dgm_arena_free(d->arena);
    free(d);
}
