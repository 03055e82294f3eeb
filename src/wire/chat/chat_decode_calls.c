/*
 * wire/chat/chat_decode_calls.c - tool calls that come in pieces.
 *
 * The call of a piece is found by its index, its id, its name or its place, depending on the server.
 * Arguments are passed on as they come, except for what some servers send twice.
 */
#include "base/limits.h"
#include "base/list.h"
#include "canon/message_content.h"
#include "wire/chat/chat_decode.h"

/* ---- one call -------------------------------------------------------------------------------------------- */

struct piece {
    bool has_index;
    int64_t index;
    dgm_str id, name, arguments;
    yyjson_val *value; /* the call */
    bool is_custom;
};

static struct chat_read_call *by_id(dgm_chat_decoder *d, dgm_str id)
{
    for (size_t i = 0; i < d->n_calls; i++) {
        if (dgm_str_eq(d->calls[i].sent_id, id))
            return &d->calls[i];
    }
    return NULL;
}

static bool is_taken(const dgm_chat_decoder *d, dgm_str id)
{
    for (size_t i = 0; i < d->n_calls; i++) {
        if (d->calls[i].started && dgm_str_eq(d->calls[i].id, id))
            return true;
    }
    return false;
}

/* The newest of that index: some servers give all calls the same. */
static struct chat_read_call *by_index(dgm_chat_decoder *d, int64_t index)
{
    for (size_t i = d->n_calls; i; i--) {
        if (d->calls[i - 1].has_index && d->calls[i - 1].index == index)
            return &d->calls[i - 1];
    }
    return NULL;
}

/* NULL: it begins a new one. */
static struct chat_read_call *chat_decode_find(dgm_chat_decoder *d, const struct piece *p)
{
    struct chat_read_call *c = p->id.n ? by_id(d, p->id) : NULL;
    struct chat_read_call *last = d->n_calls ? &d->calls[d->last_call] : NULL;
    if (p->has_index) {
        if (c && c->has_index && c->index == p->index)
            return c;
        c = by_index(d, p->index);
        bool other = c && c->sent_id.n && p->id.n && !dgm_str_eq(c->sent_id, p->id);
        return other && p->name.n ? NULL : c;
    }
    if (c)
        return c;
    return p->name.n ? NULL : last;
}

static struct chat_read_call *chat_decode_add_call(dgm_chat_decoder *d, const struct piece *p)
{
    if (d->n_calls == DGM_MAX_OPEN_ITEMS) {
        d->rc = dgm_fail(d->err, DGM_TOO_LARGE, NULL,
                         "more tool calls in one answer than the limit open_items of %d",
                         DGM_MAX_OPEN_ITEMS);
        return NULL;
    }
    d->calls = dgm_list_reserve(d->calls, d->n_calls, &d->cap_calls, sizeof *d->calls);
    struct chat_read_call *c = &d->calls[d->n_calls++];
    *c = (struct chat_read_call){.has_index = p->has_index, .index = p->index};
    dgm_buf_init(&c->text, DGM_MAX_RECORD_BYTES);
    return c;
}

/* ---- giving ------------------------------------------------------------------------------------------------- */

static void chat_emit_arguments(dgm_chat_decoder *d, const struct chat_read_call *c, dgm_str text)
{
    dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_ARGS};
    if (!c->started || !text.n)
        return;
    e.call.tool_call_id = c->id;
    e.call.delta = text;
    dgm_chat_out(d, &e);
}

/* For servers that leave ids out, and may have the same id for every completion. */
static dgm_str make_call_id(dgm_chat_decoder *d)
{
    dgm_str id = dgm_mint_id(&d->params.mint, d->arena);
    return dgm_arena_printf(d->arena, "call_%.8s%.4s%.4s", id.p, id.p + 9, id.p + 24);
}

/* As soon as it has a name. What came before the name follows. */
static void maybe_start(dgm_chat_decoder *d, struct chat_read_call *c)
{
    dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_START};
    if (c->started || !c->name.n)
        return;
    c->id = c->sent_id;
    while (!c->id.n || is_taken(d, c->id)) /* some servers number all calls alike */
        c->id = d->params.one_run
                    ? make_call_id(d)
                    : dgm_arena_printf(d->arena, "%.*s-c%zu", DGM_P(d->run_id), ++d->n_ids);
    c->started = true;
    e.call.tool_call_id = c->id;
    e.call.name = c->name;
    e.call.parent_message_id = d->message_id;
    e.call.pending = true;
    dgm_chat_end_reasoning(d);
    dgm_chat_out(d, &e);
    if (!c->holding)
        chat_emit_arguments(d, c, dgm_buf_str(&c->text));
}

/* ---- arguments ---------------------------------------------------------------------------------------------- */

static bool chat_decode_is_json(const dgm_chat_decoder *d, dgm_str text)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    yyjson_val *v;
    (void)d;
    return !dgm_json_read(a, text, DGM_MAX_RECORD_BYTES, "record_bytes", &v, NULL);
}

static dgm_str without(dgm_str text, size_t n)
{
    return (dgm_str){text.p + n, text.n - n};
}

/* Some servers put an empty object before the real one, or say all of it again with every piece. */
static dgm_str unsaid(dgm_chat_decoder *d, struct chat_read_call *c, dgm_str text)
{
    dgm_str said = dgm_buf_str(&c->text);
    if (c->holding) {
        c->holding = false;
        if (text.p[0] == '{')
            dgm_buf_clear(&c->text);
        else
            chat_emit_arguments(d, c, said);
        said = dgm_buf_str(&c->text);
    }
    if (!said.n && dgm_str_starts(text, DGM_STR("{}{")))
        return without(text, 2);
    if (said.n && dgm_str_starts(text, said) && chat_decode_is_json(d, said))
        return without(text, said.n);
    return text;
}

static void chat_decode_add_arguments(dgm_chat_decoder *d, struct chat_read_call *c, dgm_str text)
{
    if (!text.n)
        return;
    text = unsaid(d, c, text);
    bool first = !c->text.n;
    dgm_buf_add_str(&c->text, text);
    if (c->text.over && !d->rc)
        d->rc = dgm_fail(d->err, DGM_TOO_LARGE, NULL,
                         "the arguments of a call become longer than the limit record_bytes of %zu",
                         DGM_MAX_RECORD_BYTES);
    c->holding = first && dgm_str_is(text, "{}");
    if (!c->holding)
        chat_emit_arguments(d, c, text);
}

/* Members that only the server understands. Whoever sends the call back to it sends them, too: Gemini's signature of its
 * thoughts, and the same behind LiteLLM. */
static void chat_decode_read_extra(dgm_chat_decoder *d, struct chat_read_call *c,
                                   const struct piece *p)
{
    static const char *const names[] = {"extra_content", "provider_specific_fields"};
    dgm_extra *x = (dgm_extra *)(uintptr_t)c->extra; /* made here */
    dgm_member found[3];
    size_t n = 0;
    if (p->is_custom && !x)
        found[n++] =
            (dgm_member){DGM_STR("type"), dgm_json_make_string(d->arena, DGM_STR("custom"))};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        yyjson_val *v = dgm_json_non_null(p->value, names[i]);
        if (v && (!x || x->n < 4))
            found[n++] = (dgm_member){dgm_str_from(names[i]), dgm_json_copy(d->arena, v)};
    }
    if (n && !x) {
        c->extra = x = dgm_new(d->arena, dgm_extra);
        x->format = DGM_FORMAT_CHAT;
    }
    for (size_t i = 0; i < n; i++) {
        x->at = dgm_list_grow(d->arena, x->at, x->n, sizeof *x->at);
        x->at[x->n++] = found[i];
    }
}

static void chat_decode_add_piece(dgm_chat_decoder *d, const struct piece *p)
{
    struct chat_read_call *c = chat_decode_find(d, p);
    if (!c && !(c = chat_decode_add_call(d, p)))
        return;
    d->last_call = (size_t)(c - d->calls);
    if (!c->sent_id.n && p->id.n)
        c->sent_id = dgm_arena_dup(d->arena, p->id);
    if (!c->name.n && p->name.n)
        c->name = dgm_arena_dup(d->arena, p->name);
    chat_decode_read_extra(d, c, p);
    maybe_start(d, c);
    chat_decode_add_arguments(d, c, p->arguments);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static dgm_str text_member(yyjson_val *v, const char *key)
{
    yyjson_val *m = dgm_json_get(v, dgm_str_from(key));
    return yyjson_is_str(m) ? dgm_json_str(m) : (dgm_str){0};
}

/* Text; from sloppy servers the object itself. */
static dgm_str arguments_of(dgm_chat_decoder *d, yyjson_val *v)
{
    yyjson_val *m = dgm_json_get(v, DGM_STR("arguments"));
    if (yyjson_is_str(m))
        return dgm_json_str(m);
    return m && !yyjson_is_null(m) ? dgm_content_spaced_json(d->r->arena, m) : (dgm_str){0};
}

static void chat_decode_read_call(dgm_chat_decoder *d, yyjson_val *v, const dgm_at *at)
{
    yyjson_val *index = dgm_json_get(v, DGM_STR("index"));
    yyjson_val *function = dgm_json_get(v, DGM_STR("function"));
    yyjson_val *custom = dgm_json_get(v, DGM_STR("custom"));
    if (!yyjson_is_obj(v)) {
        dgm_chat_bad(d, at, v, "an object (a tool call)");
        return;
    }
    struct piece p = {.id = text_member(v, "id"), .value = v};
    if (index && !yyjson_is_null(index)) {
        p.has_index = dgm_json_int(index, &p.index);
        if (!p.has_index) {
            dgm_chat_bad(d, DGM_AT_LIT(at, "index"), index, "a whole number");
            return;
        }
    }
    if (yyjson_is_obj(function)) {
        p.name = text_member(function, "name");
        p.arguments = arguments_of(d, function);
    } else if (yyjson_is_obj(custom)) {
        p.name = text_member(custom, "name");
        p.arguments = text_member(custom, "input");
        p.is_custom = true;
    } else if (function && !yyjson_is_null(function)) {
        dgm_chat_bad(d, DGM_AT_LIT(at, "function"), function, "an object");
        return;
    }
    chat_decode_add_piece(d, &p);
}

void dgm_chat_read_calls(dgm_chat_decoder *d, yyjson_val *list, const dgm_at *at)
{
    yyjson_val *call;
    size_t i, n;
    if (list && !yyjson_is_arr(list))
        dgm_chat_bad(d, at, list, "a list of tool calls");
    if (!yyjson_is_arr(list))
        return;
    yyjson_arr_foreach (list, i, n, call) {
        if (d->rc)
            return;
        chat_decode_read_call(d, call, DGM_AT_I(at, i));
    }
}

/* It has no id: its result is found by the name, so that is the id of both. */
void dgm_chat_read_legacy_call(dgm_chat_decoder *d, yyjson_val *v, const dgm_at *at)
{
    if (v && !yyjson_is_obj(v))
        dgm_chat_bad(d, at, v, "an object");
    if (!yyjson_is_obj(v) || d->rc)
        return;
    struct piece p = {.name = text_member(v, "name"), .arguments = arguments_of(d, v)};
    p.id = p.name;
    chat_decode_add_piece(d, &p);
}

/* ---- ends --------------------------------------------------------------------------------------------------------- */

bool dgm_chat_is_cut(dgm_chat_decoder *d)
{
    const struct chat_read_call *last = d->n_calls ? &d->calls[d->last_call] : NULL;
    return last && !chat_decode_is_json(d, dgm_buf_str(&last->text));
}

bool dgm_chat_end_calls(dgm_chat_decoder *d)
{
    bool named = true;
    for (size_t i = 0; i < d->n_calls; i++) {
        struct chat_read_call *c = &d->calls[i];
        dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_END, .extra = c->extra};
        named &= c->started;
        if (!c->started)
            continue;
        if (c->holding || !c->text.n)
            chat_emit_arguments(d, c, DGM_STR("{}"));
        e.call.tool_call_id = c->id;
        dgm_chat_out(d, &e);
    }
    return named;
}
