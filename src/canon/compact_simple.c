/* canon/compact_simple.c - document 000's compact_events(). */
#include "base/buf.h"
#include "base/limits.h"
#include "base/map.h"
#include "canon/compact.h"
#include "canon/message_content.h"
#include "json/json.h"

/* ---- a call that is being put together ------------------------------------------------------------------- */

struct call {
    const dgm_simple_event *first; /* piece of it */
    size_t at;                     /* index of the first in the list */
    dgm_member *members;
    size_t n_members;
    dgm_map by_key;
    dgm_buf text;
    bool has_text;
    bool done;     /* it has its Start */
    bool answered; /* a result came: pieces with this id are of another call */
    size_t turn;   /* how many turns came before its first piece */
    size_t start;  /* pieces behind a Start: the place of that Start; else SIZE_MAX */
};

/* Text in chunks that may belong to an End or not. */
struct loose {
    dgm_str message_id;
    dgm_buf text;
    size_t at, chunks;
    size_t source; /* of its first chunk */
};

struct compacting {
    dgm_arena *a;
    const dgm_simple_events *in;
    dgm_simple_events out;
    dgm_map calls_by_id;
    struct call *calls;
    size_t n_calls;
    size_t turn;  /* messages of the user and ends of runs so far */
    dgm_map ends; /* messageId -> place of its last End */
    struct loose *loose;
    size_t n_loose;
    dgm_map loose_by_id;
    dgm_err *err;
};

static bool is_text(const dgm_json *v)
{
    return yyjson_is_str((yyjson_val *)(uintptr_t)v);
}

static void merge(struct compacting *k, struct call *c, const dgm_json *object)
{
    if (!object)
        return;
    yyjson_obj_iter it = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)object);
    yyjson_val *key;
    while ((key = yyjson_obj_iter_next(&it))) {
        size_t *known = dgm_map_get(&c->by_key, dgm_json_str(key));
        size_t i = known ? *known : c->n_members;
        if (!known) {
            c->members = dgm_list_grow(k->a, c->members, c->n_members, sizeof *c->members);
            c->members[c->n_members++].key = dgm_json_str(key);
            dgm_map_put(&c->by_key, c->members[i].key, i);
        }
        c->members[i].value = yyjson_obj_iter_get_val(key);
    }
}

static void compact_simple_add_piece(struct compacting *k, struct call *c,
                                     const dgm_json *arguments)
{
    if (!arguments)
        return;
    if (is_text(arguments)) {
        c->has_text = true;
        dgm_buf_add_str(&c->text, dgm_json_str(arguments));
    } else {
        merge(k, c, arguments);
    }
}

/* An object that a text holds, or NULL. */
static const dgm_json *parsed(struct compacting *k, dgm_str text)
{
    yyjson_val *v;
    return !dgm_json_read(k->a, dgm_arena_dup(k->a, text), DGM_MAX_OBJECT_BYTES, "object_bytes", &v,
                          NULL) &&
                   yyjson_is_obj(v)
               ? v
               : NULL;
}

static bool has_all_keys(const dgm_json *object, const dgm_json *of)
{
    yyjson_obj_iter it = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)of);
    yyjson_val *key;
    while ((key = yyjson_obj_iter_next(&it))) {
        if (!dgm_json_get(object, dgm_json_str(key)))
            return false;
    }
    return true;
}

/* Text upon text: the final one may be all of it, or the last piece. */
static const dgm_json *join_texts(struct compacting *k, struct call *c, const dgm_json *final)
{
    dgm_str said = dgm_buf_str(&c->text), last = dgm_json_str(final);
    const dgm_json *before = parsed(k, said), *whole = parsed(k, last);
    if (whole && (!before || has_all_keys(whole, before)))
        return final;
    if (whole && before) {
        merge(k, c, before);
        merge(k, c, whole);
        return dgm_json_object(k->a, c->members, c->n_members);
    }
    if (!said.n || (last.n && dgm_str_starts(last, said)))
        return final;
    dgm_buf_add_str(&c->text, last);
    return dgm_json_make_string(k->a, dgm_buf_str(&c->text));
}

/* The Start's arguments (NULL if absent) with all that came before. */
static const dgm_json *arguments_with(struct compacting *k, struct call *c, const dgm_json *final)
{
    dgm_str said = dgm_buf_str(&c->text);
    if (!c->n_members && (!final || is_text(final)))
        return final         ? join_texts(k, c, final)
               : c->has_text ? dgm_json_make_string(k->a, said)
                             : dgm_json_parse_trusted(k->a, DGM_STR("{}"));
    if (c->has_text)
        merge(k, c, parsed(k, said));
    merge(k, c, final && is_text(final) ? parsed(k, dgm_json_str(final)) : final);
    return dgm_json_object(k->a, c->members, c->n_members);
}

static struct call *call_of(struct compacting *k, const dgm_simple_event *e)
{
    size_t *at = dgm_map_get(&k->calls_by_id, e->call.id);
    return at ? &k->calls[*at] : NULL;
}

/* A call that is open for pieces: not after its result. Pieces behind a Start are of that Start's turn. */
static bool is_open(const struct compacting *k, const struct call *c)
{
    return c && !c->done && !c->answered && (c->start == SIZE_MAX || c->turn == k->turn);
}

static struct call *compact_simple_add_call(struct compacting *k, const dgm_simple_event *e,
                                            size_t at)
{
    struct call *before = call_of(k, e);
    bool late = before && before->done && !before->answered && before->turn == k->turn;
    size_t start = late ? before->at : SIZE_MAX;
    k->calls = dgm_list_grow(k->a, k->calls, k->n_calls, sizeof *k->calls);
    struct call *c = &k->calls[k->n_calls];
    *c = (struct call){.first = e, .at = at, .turn = k->turn, .start = start};
    dgm_buf_init(&c->text, SIZE_MAX);
    dgm_map_init(&c->by_key);
    dgm_map_put(&k->calls_by_id, e->call.id, k->n_calls++);
    return c;
}

/* ---- texts ------------------------------------------------------------------------------------------------ */

static size_t compact_simple_give(struct compacting *k, const dgm_simple_event *e)
{
    k->out.at = dgm_list_grow(k->a, k->out.at, k->out.n, sizeof *k->out.at);
    k->out.at[k->out.n] = *e;
    return k->out.n++;
}

static void drop_loose(struct compacting *k)
{
    for (size_t i = 0; i < k->n_loose; i++)
        dgm_buf_done(&k->loose[i].text);
    k->n_loose = 0;
    k->loose = NULL;
    dgm_map_done(&k->loose_by_id);
    dgm_map_init(&k->loose_by_id);
}

/* Fills the place of the first chunk, which was kept free for it. */
static void survive(struct compacting *k, const struct loose *from, dgm_str text)
{
    dgm_simple_event e = {
        .kind = DGM_SIMPLE_TEXT_END, .message_id = from->message_id, .source = from->source};
    e.message.role = DGM_CANON_ASSISTANT;
    e.message.content =
        (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT, .text = dgm_arena_dup(k->a, text)};
    k->out.at[from->at] = e;
}

/* Chunks of which no End by their own id is known. Those with an id each, as makers of chunks like to
 * give them, are one text. */
static void keep_loose(struct compacting *k)
{
    bool one = true;
    for (size_t i = 0; i < k->n_loose; i++)
        one &= k->loose[i].chunks == 1;
    dgm_buf all;
    dgm_buf_init(&all, SIZE_MAX);
    for (size_t i = 0; i < k->n_loose; i++) {
        dgm_buf_add_str(&all, dgm_buf_str(&k->loose[i].text));
        if (!one)
            survive(k, &k->loose[i], dgm_buf_str(&k->loose[i].text));
    }
    if (one && k->n_loose)
        survive(k, &k->loose[0], dgm_buf_str(&all));
    dgm_buf_done(&all);
    drop_loose(k);
}

static void on_chunk(struct compacting *k, size_t at)
{
    const dgm_simple_event *e = &k->in->at[at];
    bool named = e->message_id.n > 0;
    size_t *end = named ? dgm_map_get(&k->ends, e->message_id) : NULL;
    if (end && *end > at)
        return; /* its End has the complete text */
    size_t *known = named ? dgm_map_get(&k->loose_by_id, e->message_id) : NULL;
    size_t i = known ? *known : !named && k->n_loose ? k->n_loose - 1 : k->n_loose;
    if (i == k->n_loose) { /* without an id it goes on with what came last */
        if (named)
            dgm_map_put(&k->loose_by_id, e->message_id, i);
        k->loose = dgm_list_grow(k->a, k->loose, k->n_loose, sizeof *k->loose);
        k->loose[k->n_loose++] = (struct loose){.message_id = e->message_id, .source = e->source};
        k->loose[i].at = compact_simple_give(k, &(dgm_simple_event){.kind = DGM_SIMPLE_NONE});
        dgm_buf_init(&k->loose[i].text, SIZE_MAX);
    }
    k->loose[i].chunks++;
    dgm_buf_add_str(&k->loose[i].text, e->delta);
}

/* Does this End have the text of the chunks? Ids are compared if both have one, else the texts. */
static bool covers_loose(const struct compacting *k, const dgm_simple_event *e)
{
    dgm_str text = e->message.content.text;
    bool by_id = true, by_text = true;
    for (size_t i = 0; i < k->n_loose; i++) {
        dgm_str said = dgm_buf_str(&k->loose[i].text);
        by_id &= !e->message_id.n || !k->loose[i].message_id.n;
        if (by_text && dgm_str_starts(text, said))
            text = (dgm_str){text.p + said.n, text.n - said.n};
        else
            by_text = false;
        if (!by_id && !by_text)
            return false;
    }
    return by_id || by_text;
}

/* ---- the list ---------------------------------------------------------------------------------------------- */

static void find_ends(struct compacting *k)
{
    for (size_t i = 0; i < k->in->n; i++) {
        const dgm_simple_event *e = &k->in->at[i];
        if (e->kind == DGM_SIMPLE_TEXT_END && e->message_id.n)
            dgm_map_put(&k->ends, e->message_id, i);
    }
}

static dgm_code not_json(struct compacting *k, dgm_str call_id)
{
    return dgm_fail(k->err, DGM_BAD_PARAMS, NULL,
                    "the pieces of the call \"%.*s\" are not a JSON object, and no final call "
                    "follows: add it, or remove the pieces",
                    (int)(call_id.n < 60 ? call_id.n : 60), call_id.p);
}

/* For a call without a Start: makes one at the position of its first piece. */
static dgm_code finish_call(struct compacting *k, struct call *c)
{
    dgm_simple_event *e = &k->out.at[c->at];
    e->kind = DGM_SIMPLE_CALL_START;
    const dgm_json *all = arguments_with(k, c, NULL);
    if (is_text(all) && !parsed(k, dgm_json_str(all)))
        return not_json(k, e->call.id);
    e->call.arguments = all;
    return DGM_OK;
}

/* Pieces that came behind the Start of their call: the Start is still the final call, so its keys win. A Start
 * whose text is not complete is continued by them. */
static dgm_code finish_late_pieces(struct compacting *k, struct call *c)
{
    dgm_simple_event *start = &k->out.at[c->start];
    const dgm_json *final = start->call.arguments;
    dgm_str text = dgm_buf_str(&c->text);
    k->out.at[c->at].kind = DGM_SIMPLE_NONE;
    if (final && is_text(final)) {
        const dgm_json *whole = parsed(k, dgm_json_str(final));
        if (!whole && !c->n_members) {
            dgm_str all = dgm_arena_join(k->a, dgm_json_str(final), text);
            start->call.arguments = dgm_json_make_string(k->a, all);
            return DGM_OK;
        }
        final = whole;
    }
    if (c->has_text && !parsed(k, text))
        return not_json(k, start->call.id);
    struct call all = {0};
    dgm_map_init(&all.by_key);
    merge(k, &all, final); /* first: the order of its keys; last: their values */
    merge(k, &all, dgm_json_object(k->a, c->members, c->n_members));
    merge(k, &all, c->has_text ? parsed(k, text) : NULL);
    merge(k, &all, final);
    start->call.arguments = dgm_json_object(k->a, all.members, all.n_members);
    dgm_map_done(&all.by_key);
    return DGM_OK;
}

static void on_start(struct compacting *k, const dgm_simple_event *e)
{
    struct call *c = call_of(k, e);
    if (!is_open(k, c)) {
        c = compact_simple_add_call(k, e,
                                    compact_simple_give(k, e)); /* for pieces that may follow */
        c->done = true;
        return;
    }
    dgm_simple_event start = *e;
    if (!start.parent_message_id.n)
        start.parent_message_id = c->first->parent_message_id;
    start.call.arguments = arguments_with(k, c, e->call.arguments);
    k->out.at[c->at] = start;
    c->done = true;
    c->turn = k->turn;
}

static void on_args(struct compacting *k, const dgm_simple_event *e)
{
    struct call *c = call_of(k, e);
    if (!is_open(k, c))
        c = compact_simple_add_call(
            k, e, compact_simple_give(k, e)); /* its place, until there is a Start */
    compact_simple_add_piece(k, c, e->call.arguments);
}

static void on_result(struct compacting *k, const dgm_simple_event *e)
{
    size_t *at = dgm_map_get(&k->calls_by_id, e->tool_call_id);
    if (at)
        k->calls[*at].answered = true;
    compact_simple_give(k, e);
}

static void compact(struct compacting *k)
{
    for (size_t i = 0; i < k->in->n; i++) {
        const dgm_simple_event *e = &k->in->at[i];
        switch (e->kind) {
        case DGM_SIMPLE_TEXT_CHUNK: on_chunk(k, i); break;
        case DGM_SIMPLE_TEXT_END:
            if (covers_loose(k, e))
                drop_loose(k);
            compact_simple_give(k, e);
            break;
        case DGM_SIMPLE_CALL_ARGS: on_args(k, e); break;
        case DGM_SIMPLE_CALL_START: on_start(k, e); break;
        case DGM_SIMPLE_RUN_STARTED:
        case DGM_SIMPLE_RUN_FINISHED:
        case DGM_SIMPLE_RUN_ERROR:
        case DGM_SIMPLE_TEXT_CONTENT: /* a text does not go on behind another's turn */
            keep_loose(k);
            k->turn++;
            compact_simple_give(k, e);
            break;
        case DGM_SIMPLE_CALL_RESULT: on_result(k, e); break;
        case DGM_SIMPLE_STEP_STARTED:
        case DGM_SIMPLE_STEP_FINISHED: compact_simple_give(k, e); break;
        case DGM_SIMPLE_NONE: break;
        }
    }
    keep_loose(k);
}

/* Removes the places that stayed empty. */
static void close_up(dgm_simple_events *list)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        if (list->at[i].kind != DGM_SIMPLE_NONE)
            list->at[n++] = list->at[i];
    }
    list->n = n;
}

dgm_code dgm_compact_simple(dgm_arena *a, const dgm_simple_events *events,
                            dgm_simple_events *ret_events, dgm_err *err)
{
    struct compacting k = {.a = a, .in = events, .err = err};
    dgm_code rc = DGM_OK;
    dgm_map_init(&k.calls_by_id);
    dgm_map_init(&k.ends);
    dgm_map_init(&k.loose_by_id);
    find_ends(&k);
    compact(&k);
    for (size_t i = 0; i < k.n_calls; i++) {
        struct call *c = &k.calls[i];
        if (!rc && !c->done)
            rc = c->start == SIZE_MAX ? finish_call(&k, c) : finish_late_pieces(&k, c);
        dgm_buf_done(&k.calls[i].text);
        dgm_map_done(&k.calls[i].by_key);
    }
    dgm_map_done(&k.calls_by_id);
    dgm_map_done(&k.ends);
    dgm_map_done(&k.loose_by_id);
    close_up(&k.out);
    if (!rc)
        *ret_events = k.out;
    return rc;
}

static dgm_str copy_text(dgm_arena *a, dgm_str s)
{
    return s.p ? dgm_arena_dup(a, s) : (dgm_str){0};
}

static const dgm_json *copy_value(dgm_arena *a, const dgm_json *v)
{
    return v ? dgm_json_copy(a, v) : NULL;
}

dgm_code dgm_simple_append_copy(dgm_arena *a, dgm_simple_events *list, const dgm_simple_event *e,
                                dgm_err *err)
{
    if (dgm_arena_used(a) > DGM_MAX_OUTPUT_BYTES)
        return dgm_fail(err, DGM_TOO_LARGE, NULL,
                        "the events to compact exceed the limit output_bytes of %zu",
                        DGM_MAX_OUTPUT_BYTES);
    list->at = dgm_list_grow(a, list->at, list->n, sizeof *list->at);
    dgm_simple_event *to = &list->at[list->n++];
    *to = (dgm_simple_event){
        .kind = e->kind,
        .thread_id = copy_text(a, e->thread_id),
        .run_id = copy_text(a, e->run_id),
        .step_name = copy_text(a, e->step_name),
        .message_id = copy_text(a, e->message_id),
        .parent_message_id = copy_text(a, e->parent_message_id),
        .delta = copy_text(a, e->delta),
        .tool_call_id = copy_text(a, e->tool_call_id),
        .result = copy_value(a, e->result),
        .error_message = copy_text(a, e->error_message),
        .code = copy_text(a, e->code),
    };
    to->message =
        (dgm_simple_message){.role = e->message.role,
                             .content = {.kind = e->message.content.kind,
                                         .text = copy_text(a, e->message.content.text),
                                         .parts = dgm_canon_copy_parts(a, e->message.content.parts),
                                         .object = copy_value(a, e->message.content.object)}};
    to->call = (dgm_simple_call){.id = copy_text(a, e->call.id),
                                 .name = copy_text(a, e->call.name),
                                 .arguments = copy_value(a, e->call.arguments),
                                 .type = copy_value(a, e->call.type)};
    return DGM_OK;
}
