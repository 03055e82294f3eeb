/*
 * backend/langgraph/graph_stream.c - `messages` and `updates`: what models write while the graph runs.
 *
 * The stream-delta artifact shows one call of a model at a time. Chunks of another, parallel call are held back until the
 * node of the first one is done; then the artifact restarts with append:false. Calls of tools and their results become
 * internal events, which A2A clients do not see.
 *
 * Chunks of one call do not always have one id: LangChain makes one where the provider sends none. A call is therefore
 * found by its checkpoint namespace (`src`), and by up to two ids: one that LangChain made, one of the provider.
 */
#include "backend/langgraph/graph_int.h"
#include "base/limits.h"
#include "model/fold.h"

/* ---- calls of models ------------------------------------------------------------------------------------------------------ */

/* 0: made by LangChain; 1: the provider's. */
static int id_class(dgm_str id)
{
    return !(dgm_str_starts(id, DGM_STR("run-")) || dgm_str_starts(id, DGM_STR("lc_run-")));
}

static bool has_id(const struct graph_call *c, dgm_str id)
{
    return id.n && dgm_str_eq(c->ids[id_class(id)], id);
}

static void call_free(struct graph_call *c)
{
    dgm_buf_done(&c->text);
    dgm_buf_done(&c->held);
    dgm_buf_done(&c->held_reasoning);
}

void dgm_graph_stream_free(dgm_graph_out *o)
{
    for (struct graph_call *c = o->calls; c; c = c->next)
        call_free(c);
    for (struct graph_tool *t = o->tool_calls; t; t = t->next)
        dgm_buf_done(&t->arguments);
}

/* Room for one more: calls that are over and shown are only needed to recognise repetitions. */
static bool make_room(dgm_graph_out *o)
{
    struct graph_call **at = &o->calls;
    if (o->n_calls < DGM_MAX_GRAPH_CALLS)
        return true;
    while (*at && !((*at)->is_done && (*at)->is_shown && *at != o->current && *at != o->answer))
        at = &(*at)->next;
    if (!*at)
        return false;
    for (struct graph_tool *t = o->tool_calls; t; t = t->next)
        t->call = t->call == *at ? NULL : t->call;
    call_free(*at);
    *at = (*at)->next;
    o->n_calls--;
    return true;
}

static struct graph_call *call_new(dgm_graph_out *o, dgm_str src)
{
    struct graph_call **last = &o->calls;
    if (!make_room(o)) {
        dgm_graph_note(
            o, "more than %d calls of models at the same time: the text of one is not streamed",
            DGM_MAX_GRAPH_CALLS);
        return NULL;
    }
    while (*last)
        last = &(*last)->next;
    struct graph_call *c = *last = dgm_new(o->arena, struct graph_call);
    c->src = dgm_arena_dup(o->arena, src);
    dgm_buf_init(&c->text, DGM_MAX_FINAL_TEXT_BYTES);
    dgm_buf_init(&c->held, DGM_MAX_GRAPH_HELD_BYTES);
    dgm_buf_init(&c->held_reasoning, DGM_MAX_GRAPH_HELD_BYTES);
    o->n_calls++;
    return c;
}

static void call_set_id(dgm_graph_out *o, struct graph_call *c, dgm_str id)
{
    if (id.n && !c->ids[id_class(id)].n)
        c->ids[id_class(id)] = dgm_arena_dup(o->arena, id);
}

/* The call that a chunk belongs to; NULL: it starts one. */
static struct graph_call *find_call(const dgm_graph_out *o, dgm_str src, dgm_str id)
{
    struct graph_call *newest = NULL, *lacks = NULL;
    for (struct graph_call *c = o->calls; c; c = c->next) {
        if (c->is_explicit || !dgm_str_eq(c->src, src))
            continue;
        if (has_id(c, id))
            return c;
        if (c->is_done)
            continue;
        newest = c;
        if (id.n && !c->ids[id_class(id)].n)
            lacks = c;
    }
    return id.n ? lacks : newest;
}

/* ---- tools ------------------------------------------------------------------------------------------------------------------ */

static struct graph_tool *find_tool(const dgm_graph_out *o, dgm_str id)
{
    struct graph_tool *t = id.n ? o->tool_calls : NULL;
    while (t && !dgm_str_eq(t->id, id))
        t = t->next;
    return t;
}

static struct graph_tool *tool_new(dgm_graph_out *o, struct graph_call *call, dgm_str id,
                                   dgm_str name)
{
    struct graph_tool **last = &o->tool_calls;
    if (o->n_tool_calls >= DGM_MAX_LIST_ITEMS)
        return NULL;
    while (*last)
        last = &(*last)->next;
    struct graph_tool *t = *last = dgm_new(o->arena, struct graph_tool);
    t->call = call;
    t->id = dgm_arena_dup(o->arena, id);
    t->name = dgm_arena_dup(o->arena, name);
    dgm_buf_init(&t->arguments, DGM_MAX_RECORD_BYTES);
    o->n_tool_calls++;
    return t;
}

static void tool_start(dgm_graph_out *o, struct graph_tool *t)
{
    if (t->is_started || !t->id.n)
        return;
    t->is_started = true;
    const dgm_json *text = dgm_json_make_string(o->scratch, dgm_buf_str(&t->arguments));
    dgm_graph_emit_internal(o, (dgm_internal){.kind = DGM_INTERNAL_TOOL_START,
                                              .tool_call_id = t->id,
                                              .tool_name = t->name,
                                              .arguments = dgm_graph_arguments(o->scratch, text)});
    dgm_buf_done(&t->arguments);
}

static void tools_start(dgm_graph_out *o, const struct graph_call *call)
{
    for (struct graph_tool *t = o->tool_calls; t; t = t->next) {
        if (t->call == call)
            tool_start(o, t);
    }
}

/* Fragments of a call: id and name come with the first one. */
static void add_fragments(dgm_graph_out *o, struct graph_call *c, const dgm_json *message)
{
    yyjson_val *list = dgm_json_get(message, DGM_STR("tool_call_chunks")), *f;
    size_t i, n;
    yyjson_arr_foreach (list, i, n, f) {
        struct graph_tool *t = o->tool_calls, *found = NULL;
        dgm_str id = dgm_json_str_member(f, "id"), name = dgm_json_str_member(f, "name");
        int64_t index = 0;
        (void)dgm_json_int(dgm_json_get(f, DGM_STR("index")), &index);
        for (; t; t = t->next) {
            if (t->call == c && t->index == index && (!id.n || dgm_str_eq(t->id, id)))
                found = t; /* the newest */
        }
        if (!found && (!id.n || !(found = tool_new(o, c, id, name))))
            continue;
        found->index = index;
        if (!found->name.n)
            found->name = dgm_arena_dup(o->arena, name);
        if (!found->is_started)
            dgm_buf_add_str(&found->arguments, dgm_json_str_member(f, "args"));
    }
}

/* Calls of a complete message. */
static void add_tool_calls(dgm_graph_out *o, struct graph_call *c, const dgm_json *message)
{
    yyjson_val *list = dgm_json_get(message, DGM_STR("tool_calls")), *call;
    size_t i, n;
    yyjson_arr_foreach (list, i, n, call) {
        dgm_str id = dgm_json_str_member(call, "id");
        struct graph_tool *t = find_tool(o, id);
        if (t || !id.n || !(t = tool_new(o, c, id, dgm_json_str_member(call, "name"))))
            continue;
        dgm_json_put(&t->arguments, dgm_json_get(call, DGM_STR("args")));
    }
}

static void tool_complete(dgm_graph_out *o, const dgm_json *message)
{
    dgm_str id = dgm_json_str_member(message, "tool_call_id");
    struct graph_tool *t = find_tool(o, id);
    bool failed = dgm_str_is(dgm_json_str_member(message, "status"), "error");
    dgm_str text = dgm_graph_text(o->scratch, message);
    if (!id.n || (t && t->is_completed))
        return;
    if (!t && !(t = tool_new(o, NULL, id, dgm_json_str_member(message, "name"))))
        return; /* of an earlier run */
    tool_start(o, t);
    t->is_completed = true;
    dgm_graph_emit_internal(
        o, (dgm_internal){.kind = DGM_INTERNAL_TOOL_COMPLETE,
                          .tool_call_id = t->id,
                          .success = failed ? DGM_FALSE : DGM_TRUE,
                          .result = failed ? NULL : dgm_json_make_string(o->scratch, text),
                          .error = failed ? text : (dgm_str){0}});
}

void dgm_graph_show_tools(dgm_graph_out *o, const dgm_json *message)
{
    if (dgm_graph_role_of(message) == DGM_GRAPH_TOOL) {
        tool_complete(o, message);
    } else if (dgm_graph_role_of(message) == DGM_GRAPH_AI) {
        add_tool_calls(o, NULL, message);
        tools_start(o, NULL);
    }
}

/* ---- the artifact ------------------------------------------------------------------------------------------------------------ */

static void emit_delta(dgm_graph_out *o, dgm_str text, bool append, bool last)
{
    dgm_part part = {.kind = DGM_PART_TEXT, .content = text.p ? text : DGM_STR("")};
    dgm_artifact artifact = {.artifact_id = DGM_STR(DGM_STREAM_DELTA_ID),
                             .name = DGM_STR(GRAPH_DELTA_NAME),
                             .parts = {&part, 1}};
    dgm_graph_emit_artifact(o, &artifact, append, last);
    o->delta = last ? DELTA_CLOSED : DELTA_OPEN;
}

static void show_text(dgm_graph_out *o, struct graph_call *c, dgm_str text)
{
    if (!text.n)
        return;
    emit_delta(o, text, c->has_text, false);
    c->has_text = true;
    if (o->answer != c && o->answer)
        dgm_buf_done(&o->answer->text);
    o->answer = c;
}

static void show_reasoning(dgm_graph_out *o, dgm_str text)
{
    if (text.n)
        dgm_graph_emit_internal(o, (dgm_internal){.kind = DGM_INTERNAL_REASONING, .text = text});
}

/* The call becomes the one that is shown. */
static void show_call(dgm_graph_out *o, struct graph_call *c)
{
    o->current = c;
    c->is_shown = true;
    if (!o->restarts_text) /* else it replaces the text of the process that was lost */
        dgm_graph_emit_internal(
            o, (dgm_internal){.kind = DGM_INTERNAL_LLM_CALL, .iteration = {true, o->iteration++}});
    o->restarts_text = false;
    show_reasoning(o, dgm_buf_str(&c->held_reasoning));
    show_text(o, c, dgm_buf_str(&c->held));
    o->held_bytes -= c->held.n + c->held_reasoning.n;
    dgm_buf_done(&c->held);
    dgm_buf_done(&c->held_reasoning);
}

static void advance(dgm_graph_out *o)
{
    while (!o->current || o->current->is_done) {
        struct graph_call *next = o->calls;
        if (o->current)
            tools_start(o, o->current);
        o->current = NULL;
        while (next && next->is_shown)
            next = next->next;
        if (!next)
            return;
        show_call(o, next);
    }
}

static void hold(dgm_graph_out *o, dgm_buf *to, dgm_str text)
{
    if (o->held_bytes + text.n > DGM_MAX_GRAPH_HELD_BYTES) {
        if (!o->warned_held)
            dgm_graph_note(o, "parallel calls of models wrote more than can be held back: the rest "
                              "is not streamed");
        o->warned_held = true;
        return;
    }
    dgm_buf_add_str(to, text);
    o->held_bytes += text.n;
}

/* A piece of a call: shown at once if the call is the current one. */
static void add_piece(dgm_graph_out *o, struct graph_call *c, dgm_str reasoning, dgm_str text)
{
    if (o->current && o->current != c && o->current->is_explicit)
        o->current->is_done = true; /* nothing reports the end of these */
    if (!o->current || o->current->is_done)
        advance(o);
    if (text.n)
        dgm_sum_add(&c->sum, text);
    if (c->text.p ||
        !c->has_text) /* else another call has text since: this one is not the answer */
        dgm_buf_add_str(&c->text, text);
    if (o->current == c) {
        show_reasoning(o, reasoning);
        show_text(o, c, text);
    } else if (!c->is_shown) {
        hold(o, &c->held_reasoning, reasoning);
        hold(o, &c->held, text);
    }
}

void dgm_graph_flush(dgm_graph_out *o)
{
    for (struct graph_call *c = o->calls; c; c = c->next)
        c->is_done = true;
    advance(o);
}

void dgm_graph_close_delta(dgm_graph_out *o)
{
    if (o->delta == DELTA_OPEN)
        emit_delta(o, DGM_STR(""), true, true);
    else if (o->delta == DELTA_MAYBE) /* text of the lost process: the answer replaces it */
        emit_delta(o, DGM_STR(""), false, true);
}

void dgm_graph_forget_text(dgm_graph_out *o)
{
    o->answer = NULL;
    for (struct graph_call *c = o->calls; c; c = c->next) {
        if (!c->is_shown)
            continue;
        dgm_buf_clear(&c->text);
        c->has_text = false;
    }
}

void dgm_graph_drop_text(dgm_graph_out *o)
{
    o->answer = o->current = NULL;
    o->restarts_text = true;
    for (struct graph_call *c = o->calls; c; c = c->next)
        call_free(c);
    o->calls = NULL; /* the same ids may come again */
    o->n_calls = 0;
    o->held_bytes = 0;
    for (struct graph_tool *t = o->tool_calls; t; t = t->next) {
        if (!t->is_started)
            dgm_buf_done(&t->arguments);
        t->call = NULL;
        t->id = t->is_started ? t->id : (dgm_str){0};
        t->is_started = true; /* the model writes its calls again */
    }
}

/* ---- `messages` ---------------------------------------------------------------------------------------------------------------- */

static dgm_str join_ns(dgm_arena *a, const dgm_json *ns)
{
    yyjson_val *item;
    size_t i, n;
    dgm_str joined = DGM_STR("");
    yyjson_arr_foreach (graph_val(ns), i, n, item) {
        if (yyjson_is_str(item))
            joined = i ? dgm_arena_printf(a, "%.*s|%.*s", DGM_P(joined), DGM_P(dgm_json_str(item)))
                       : dgm_json_str(item);
    }
    return joined;
}

static bool is_related(dgm_str a, dgm_str b)
{
    const dgm_str shorter = a.n < b.n ? a : b, longer = a.n < b.n ? b : a;
    return dgm_str_starts(longer, shorter) &&
           (longer.n == shorter.n || (shorter.n && longer.p[shorter.n] == '|'));
}

/* A graph goes on to the next step when all nodes of the step before are done. */
static void end_earlier_steps(dgm_graph_out *o, const struct graph_call *c)
{
    for (struct graph_call *x = o->calls; x; x = x->next) {
        if (x != c && !x->is_explicit && x->step < c->step && dgm_str_eq(x->ns, c->ns))
            x->is_done = true;
    }
}

static struct graph_call *start_call(dgm_graph_out *o, const dgm_json *ns, const dgm_json *data,
                                     dgm_str id)
{
    struct graph_call *c = call_new(o, dgm_json_str_member(data, "src"));
    if (!c)
        return NULL;
    c->ns = dgm_arena_dup(o->arena, join_ns(o->scratch, ns));
    c->node = dgm_arena_dup(o->arena, dgm_json_str_member(data, "node"));
    (void)dgm_json_int(dgm_json_get(data, DGM_STR("step")), &c->step);
    call_set_id(o, c, id);
    end_earlier_steps(o, c);
    return c;
}

static void emit_usage(dgm_graph_out *o, const dgm_json *message)
{
    yyjson_val *usage = dgm_json_get(message, DGM_STR("usage_metadata"));
    if (yyjson_is_obj(usage) && yyjson_obj_size(usage))
        dgm_graph_emit_internal(o, (dgm_internal){.kind = DGM_INTERNAL_USAGE, .value = usage});
}

static void on_ai_chunk(dgm_graph_out *o, const dgm_json *ns, const dgm_json *data,
                        const dgm_json *message)
{
    dgm_str id = dgm_json_str_member(message, "id");
    dgm_str text = dgm_graph_text(o->scratch, message),
            reasoning = dgm_graph_reasoning(o->scratch, message);
    struct graph_call *c = find_call(o, dgm_json_str_member(data, "src"), id);
    if (!c && !(c = start_call(o, ns, data, id)))
        return;
    call_set_id(o, c, id);
    add_piece(o, c, reasoning, text);
    add_fragments(o, c, message);
    emit_usage(o, message);
    if (dgm_str_is(dgm_json_str_member(message, "chunk_position"), "last")) {
        c->is_done = true;
        advance(o);
    }
}

/* Was the text of a complete message streamed already? Nodes wrap the text of a model in messages of their own. */
static struct graph_call *find_streamed(const dgm_graph_out *o, dgm_str src, dgm_str id,
                                        dgm_str text)
{
    dgm_sum sum = {0};
    dgm_sum_add(&sum, text);
    for (struct graph_call *c = o->calls; c; c = c->next) {
        if (has_id(c, id) ||
            (!c->is_explicit && text.n && dgm_sum_eq(&c->sum, &sum) && is_related(c->src, src)))
            return c;
    }
    return NULL;
}

static bool was_emitted(const dgm_graph_out *o, dgm_str id, dgm_str text)
{
    if (id.n && dgm_graph_knows(o, id))
        return true;
    return o->has_emitted && text.n && o->emitted.parts.n &&
           o->emitted.parts.at[0].kind == DGM_PART_TEXT &&
           dgm_str_eq(o->emitted.parts.at[0].content, text);
}

static void on_ai_message(dgm_graph_out *o, const dgm_json *ns, const dgm_json *data,
                          const dgm_json *message)
{
    dgm_str id = dgm_json_str_member(message, "id"), src = dgm_json_str_member(data, "src");
    dgm_str text = dgm_graph_text(o->scratch, message);
    struct graph_call *c = find_streamed(o, src, id, text);
    if (!c && was_emitted(o, id, text))
        return;
    if (!c) {
        if (!(c = start_call(o, ns, data, id)))
            return;
        add_piece(o, c, dgm_graph_reasoning(o->scratch, message), text);
        emit_usage(o, message);
    }
    add_tool_calls(o, c, message);
    bool was_over = c->is_done && c->is_shown && o->current != c;
    c->is_done = true;
    if (was_over)
        tools_start(o, c);
    advance(o);
}

void dgm_graph_on_message(dgm_graph_out *o, const dgm_json *ns, const dgm_json *data)
{
    const dgm_json *message = dgm_json_get(data, DGM_STR("message"));
    struct graph_tool *t;
    switch (dgm_graph_role_of(message)) {
    case DGM_GRAPH_AI:
        if (dgm_graph_is_chunk(message))
            on_ai_chunk(o, ns, data, message);
        else
            on_ai_message(o, ns, data, message);
        break;
    case DGM_GRAPH_TOOL:
        if ((t = find_tool(o, dgm_json_str_member(message, "tool_call_id"))) && t->call)
            t->call->is_done = true; /* the model has written all of its call */
        advance(o);
        if (!dgm_graph_is_chunk(message))
            tool_complete(o, message);
        break;
    case DGM_GRAPH_HUMAN:
    case DGM_GRAPH_OTHER: break;
    }
}

void dgm_graph_on_chunk(dgm_graph_out *o, const dgm_json *message)
{
    dgm_str id = dgm_json_str_member(message, "id");
    struct graph_call *c = NULL;
    for (struct graph_call *x = o->calls; x; x = x->next) {
        if (!x->is_explicit && has_id(x, id))
            return; /* the graph repeats chunks that `messages` had */
        if (x->is_explicit && !x->is_done && (!id.n || !x->ids[1].n || dgm_str_eq(x->ids[1], id)))
            c = x;
        else if (x->is_explicit)
            x->is_done = true;
    }
    if (!c) {
        if (!(c = call_new(o, DGM_STR(""))))
            return;
        c->is_explicit = true;
    }
    if (id.n && !c->ids[1].n)
        c->ids[1] = dgm_arena_dup(o->arena, id);
    add_piece(o, c, dgm_graph_reasoning(o->scratch, message), dgm_graph_text(o->scratch, message));
    if (dgm_str_is(dgm_json_str_member(message, "chunk_position"), "last")) {
        c->is_done = true;
        advance(o);
    }
}

/* ---- `updates` ------------------------------------------------------------------------------------------------------------------- */

/* Is the node the one of this call, or one that the call is inside of? */
static bool is_of_node(dgm_arena *a, const struct graph_call *c, dgm_str ns, dgm_str node)
{
    if (dgm_str_eq(c->ns, ns) && dgm_str_eq(c->node, node))
        return true;
    return dgm_str_starts(c->ns, ns.n ? dgm_arena_printf(a, "%.*s|%.*s:", DGM_P(ns), DGM_P(node))
                                      : dgm_arena_printf(a, "%.*s:", DGM_P(node)));
}

void dgm_graph_on_updates(dgm_graph_out *o, const dgm_json *ns, const dgm_json *data)
{
    yyjson_val *nodes = dgm_json_get(data, DGM_STR("nodes")), *node;
    dgm_str path = join_ns(o->scratch, ns);
    size_t i, n;
    yyjson_arr_foreach (nodes, i, n, node) {
        for (struct graph_call *c = o->calls; c && yyjson_is_str(node); c = c->next)
            c->is_done = c->is_done ||
                         (!c->is_explicit && is_of_node(o->scratch, c, path, dgm_json_str(node)));
    }
    advance(o);
}
