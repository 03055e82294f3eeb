/* canon/verify.c - see verify.h. */
#include "canon/verify.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/map.h"

#include <stdlib.h>

#define MAX_BYTES ((size_t)DGM_MAX_LINT_ITEMS * 256) /* of ids: they are short, mostly */

enum kind { STEP, TEXT, MESSAGE, SPAN, CALL, SUBAGENT, N_KINDS }; /* in the order of rule 13 */

/* "text message", for sentences; the rules for opening twice and for what is not open. */
static const struct {
    const char *what;
    dgm_order_rule open, closed;
} kinds[N_KINDS] = {
    [STEP] = {"step", DGM_ORDER_STEP_OPEN, DGM_ORDER_STEP_CLOSED},
    [TEXT] = {"text message", DGM_ORDER_TEXT_OPEN, DGM_ORDER_TEXT_CLOSED},
    [MESSAGE] = {"reasoning message", DGM_ORDER_REASONING, DGM_ORDER_REASONING},
    [SPAN] = {"reasoning span", DGM_ORDER_SPAN, DGM_ORDER_SPAN},
    [CALL] = {"tool call", DGM_ORDER_CALL_OPEN, DGM_ORDER_CALL_CLOSED},
    [SUBAGENT] = {"subagent", DGM_ORDER_SUBAGENT_START, DGM_ORDER_SUBAGENT_END},
};

struct item {
    dgm_str id, owner;
    enum kind kind;
    bool open;
};

struct dgm_verify {
    dgm_arena *arena; /* of this run */
    struct item *items;
    size_t n, cap;
    dgm_map index; /* kind and id -> item */
    dgm_buf key;   /* the one that is being looked for */
    bool full;     /* too many items are open: this run is not checked any more */
    size_t n_open[N_KINDS];
    enum { BEFORE, RUNNING, FINISHED, ERRED } state;
};

dgm_verify *dgm_verify_new(void)
{
    dgm_verify *v = dgm_xcalloc(1, sizeof *v);
    v->arena = dgm_arena_new();
    dgm_map_init(&v->index);
    dgm_buf_init(&v->key, SIZE_MAX);
    return v;
}

void dgm_verify_free(dgm_verify *v)
{
    if (!v)
        return;
    dgm_map_done(&v->index);
    dgm_buf_done(&v->key);
    dgm_arena_free(v->arena);
    free(v->items);
    free(v);
}

static void verify_forget(dgm_verify *v)
{
    dgm_map_done(&v->index);
    dgm_map_init(&v->index);
    dgm_arena_reset(v->arena);
    v->n = 0;
    v->full = false;
    memset(v->n_open, 0, sizeof v->n_open);
}

/* ---- items --------------------------------------------------------------------------------------------- */

/* The key of a step includes its owner. Valid until the next call. */
static dgm_str key_of(dgm_verify *v, enum kind kind, dgm_str id, dgm_str owner)
{
    dgm_buf_clear(&v->key);
    dgm_buf_add_char(&v->key, (char)('a' + (int)kind));
    if (kind == STEP) {
        dgm_buf_add_str(&v->key, owner);
        dgm_buf_add_char(&v->key, '\n');
    }
    dgm_buf_add_str(&v->key, id);
    return dgm_buf_str(&v->key);
}

static struct item *verify_find(dgm_verify *v, enum kind kind, dgm_str id, dgm_str owner)
{
    size_t *at = dgm_map_get(&v->index, key_of(v, kind, id, owner));
    return at ? &v->items[*at] : NULL;
}

static dgm_order_rule broken(dgm_order_rule rule, const dgm_canon_event *e, dgm_err *err,
                             const char *what, dgm_str id)
{
    dgm_fail(err, DGM_BAD_PARAMS, NULL, "%s: %s%s%.*s%s", dgm_canon_kind_name(e->kind), what,
             id.p ? " \"" : "", (int)(id.n < 60 ? id.n : 60), id.p ? id.p : "", id.p ? "\"" : "");
    return rule;
}

static void verify_keep(dgm_verify *v, struct item i)
{
    v->items = dgm_list_reserve(v->items, v->n, &v->cap, sizeof *v->items);
    i.id = dgm_arena_dup(v->arena, i.id);
    i.owner = dgm_arena_dup(v->arena, i.owner);
    dgm_map_put(&v->index, dgm_arena_dup(v->arena, key_of(v, i.kind, i.id, i.owner)), v->n);
    v->items[v->n++] = i;
}

/* What is closed may be opened again, and only its owner is of use to anybody: a long run forgets it. */
static void forget_closed(dgm_verify *v)
{
    dgm_arena *old = v->arena;
    size_t n = v->n;
    v->arena = dgm_arena_new();
    dgm_map_done(&v->index);
    dgm_map_init(&v->index);
    v->n = 0;
    for (size_t i = 0; i < n; i++) {
        if (v->items[i].open || v->items[i].kind == SUBAGENT)
            verify_keep(v, v->items[i]); /* never behind the one that is read */
    }
    dgm_arena_free(old);
    v->full = 2 * v->n > DGM_MAX_LINT_ITEMS || 2 * dgm_arena_used(v->arena) > MAX_BYTES;
}

static dgm_order_rule open_item(dgm_verify *v, const dgm_canon_event *e, enum kind kind, dgm_str id,
                                dgm_str owner, dgm_err *err)
{
    if (v->full)
        return DGM_ORDER_FINE;
    if (v->n == DGM_MAX_LINT_ITEMS || dgm_arena_used(v->arena) > MAX_BYTES)
        forget_closed(v);
    struct item *i = verify_find(v, kind, id, owner);
    if (i && (i->open || kind == SUBAGENT))
        return broken(kinds[kind].open, e, err, "it is there already:", id);
    if (!i)
        verify_keep(v, (struct item){id, owner, kind, true});
    else if (!dgm_str_eq(i->owner, owner))
        i->owner = dgm_arena_dup(v->arena, owner);
    if (i)
        i->open = true;
    v->n_open[kind]++;
    return DGM_ORDER_FINE;
}

/* An event about an open item; closes: its last. */
static dgm_order_rule use_item(dgm_verify *v, const dgm_canon_event *e, enum kind kind, dgm_str id,
                               bool closes, dgm_err *err)
{
    dgm_str owner = e->subagent_run_id;
    struct item *i = verify_find(v, kind, id, owner);
    if (!i || !i->open)
        return broken(kinds[kind].closed, e, err, "it is not open:", id);
    if (closes) {
        i->open = false;
        v->n_open[kind]--;
    }
    if (kind != SUBAGENT && owner.p && !dgm_str_eq(owner, i->owner))
        return broken(DGM_ORDER_OWNER, e, err, "another subagent opened", id);
    return DGM_ORDER_FINE;
}

/* ---- events -------------------------------------------------------------------------------------------- */

static dgm_order_rule verify_finish(dgm_verify *v, const dgm_canon_event *e, dgm_err *err)
{
    v->state = FINISHED;
    for (int k = 0; k < N_KINDS; k++) {
        for (size_t i = 0; v->n_open[k] && i < v->n; i++) {
            if (v->items[i].open && v->items[i].kind == (enum kind)k)
                return broken(DGM_ORDER_OPEN_AT_FINISH, e, err, "still open:", v->items[i].id);
        }
    }
    return DGM_ORDER_FINE;
}

static dgm_order_rule verify_start_call(dgm_verify *v, const dgm_canon_event *e, dgm_err *err)
{
    dgm_order_rule rule = open_item(v, e, CALL, e->call.tool_call_id, e->subagent_run_id, err);
    struct item *parent = e->call.parent_message_id.p
                              ? verify_find(v, TEXT, e->call.parent_message_id, (dgm_str){0})
                              : NULL;
    if (!rule && parent && e->subagent_run_id.p && !dgm_str_eq(parent->owner, e->subagent_run_id))
        return broken(DGM_ORDER_OWNER, e, err, "another subagent speaks in", parent->id);
    return rule;
}

static dgm_order_rule start_subagent(dgm_verify *v, const dgm_canon_event *e, dgm_err *err)
{
    dgm_str parent = e->subagent.parent_subagent_run_id;
    if (parent.p && !verify_find(v, SUBAGENT, parent, (dgm_str){0}))
        return broken(DGM_ORDER_SUBAGENT_START, e, err, "its parent was not started:", parent);
    return open_item(v, e, SUBAGENT, e->subagent_run_id, (dgm_str){0}, err);
}

static dgm_order_rule within_run(dgm_verify *v, const dgm_canon_event *e, dgm_err *err)
{
    dgm_str who = e->subagent_run_id, message = {0}, call = {0};
    switch (e->kind) {
    case DGM_CANON_RUN_STARTED:
        return broken(DGM_ORDER_SECOND_RUN, e, err, "a run is active", (dgm_str){0});
    case DGM_CANON_RUN_FINISHED: return verify_finish(v, e, err);
    case DGM_CANON_RUN_ERROR: v->state = ERRED; return DGM_ORDER_FINE;
    case DGM_CANON_STEP_STARTED: return open_item(v, e, STEP, e->step.name, who, err);
    case DGM_CANON_STEP_FINISHED: return use_item(v, e, STEP, e->step.name, true, err);
    case DGM_CANON_TEXT_MESSAGE_START:
    case DGM_CANON_TEXT_MESSAGE_CONTENT:
    case DGM_CANON_TEXT_MESSAGE_END:
    case DGM_CANON_REASONING_START:
    case DGM_CANON_REASONING_END:
    case DGM_CANON_REASONING_MESSAGE_START:
    case DGM_CANON_REASONING_MESSAGE_CONTENT:
    case DGM_CANON_REASONING_MESSAGE_END: message = e->text.message_id; break;
    case DGM_CANON_TOOL_CALL_START: return verify_start_call(v, e, err);
    case DGM_CANON_TOOL_CALL_ARGS:
    case DGM_CANON_TOOL_CALL_END: call = e->call.tool_call_id; break;
    case DGM_CANON_SUBAGENT_STARTED: return start_subagent(v, e, err);
    case DGM_CANON_SUBAGENT_FINISHED:
    case DGM_CANON_SUBAGENT_ERROR: return use_item(v, e, SUBAGENT, who, true, err);
    case DGM_CANON_NONE:
    case DGM_CANON_TEXT_MESSAGE_CHUNK:
    case DGM_CANON_TOOL_CALL_CHUNK:
    case DGM_CANON_REASONING_MESSAGE_CHUNK:
    case DGM_CANON_TOOL_CALL_RESULT:
    case DGM_CANON_STATE_SNAPSHOT:
    case DGM_CANON_STATE_DELTA:
    case DGM_CANON_MESSAGES_SNAPSHOT:
    case DGM_CANON_ACTIVITY_SNAPSHOT:
    case DGM_CANON_ACTIVITY_DELTA:
    case DGM_CANON_REASONING_ENCRYPTED_VALUE:
    case DGM_CANON_RAW:
    case DGM_CANON_CUSTOM:
    case DGM_CANON_ARTIFACT: return DGM_ORDER_FINE;
    }
    switch ((int)e->kind) {
    case DGM_CANON_TEXT_MESSAGE_START: return open_item(v, e, TEXT, message, who, err);
    case DGM_CANON_TEXT_MESSAGE_CONTENT: return use_item(v, e, TEXT, message, false, err);
    case DGM_CANON_TEXT_MESSAGE_END: return use_item(v, e, TEXT, message, true, err);
    case DGM_CANON_REASONING_START: return open_item(v, e, SPAN, message, who, err);
    case DGM_CANON_REASONING_END: return use_item(v, e, SPAN, message, true, err);
    case DGM_CANON_REASONING_MESSAGE_START: return open_item(v, e, MESSAGE, message, who, err);
    case DGM_CANON_REASONING_MESSAGE_CONTENT: return use_item(v, e, MESSAGE, message, false, err);
    case DGM_CANON_REASONING_MESSAGE_END: return use_item(v, e, MESSAGE, message, true, err);
    default: return use_item(v, e, CALL, call, e->kind == DGM_CANON_TOOL_CALL_END, err);
    }
}

dgm_order_rule dgm_verify_feed(dgm_verify *v, const dgm_canon_event *e, dgm_err *err)
{
    bool starts = e->kind == DGM_CANON_RUN_STARTED, errs = e->kind == DGM_CANON_RUN_ERROR;
    if (v->state == BEFORE && !starts && !errs)
        return broken(DGM_ORDER_FIRST, e, err, "the first event is RUN_STARTED", (dgm_str){0});
    if (v->state == ERRED && !starts)
        return broken(DGM_ORDER_AFTER_ERROR, e, err, "the run has ended in an error", (dgm_str){0});
    if (v->state == FINISHED && !starts && !errs)
        return broken(DGM_ORDER_AFTER_FINISH, e, err, "the run has finished", (dgm_str){0});
    if (starts && v->state != RUNNING) {
        verify_forget(v);
        v->state = RUNNING;
        return DGM_ORDER_FINE;
    }
    dgm_order_rule rule = within_run(v, e, err);
    return v->full ? DGM_ORDER_FINE : rule;
}

dgm_order_rule dgm_verify_end(dgm_verify *v, dgm_err *err)
{
    if (v->state != RUNNING)
        return DGM_ORDER_FINE;
    dgm_fail(err, DGM_BAD_PARAMS, NULL, "the stream ended without RUN_FINISHED or RUN_ERROR");
    return DGM_ORDER_NO_END;
}
