/* frontend/agui/agui_again.c - see agui_again.h. */
#include "frontend/agui/agui_again.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/map.h"
#include "canon/copy.h"

/* ---- life ------------------------------------------------------------------------------------------------------ */

static dgm_canon_messages copy_messages(dgm_arena *a, dgm_canon_messages list)
{
    dgm_canon_event all = {.kind = DGM_CANON_MESSAGES_SNAPSHOT};
    all.snapshot.messages = list;
    return dgm_canon_copy_event(a, &all).snapshot.messages;
}

void dgm_agui_again_init(agui_again *g, const agui_again_params *params)
{
    *g = (agui_again){.params = *params, .arena = dgm_arena_new()};
    g->params.before = copy_messages(g->arena, params->before);
    g->params.held = copy_messages(g->arena, params->held);
    if (params->parent_run_id.n)
        g->params.parent_run_id = dgm_arena_dup(g->arena, params->parent_run_id);
    g->fold = dgm_canon_fold_new(DGM_MAX_SNAPSHOT_BYTES);
}

void dgm_agui_again_done(agui_again *g)
{
    dgm_canon_fold_free(g->fold);
    dgm_arena_free(g->arena);
    g->fold = NULL;
    g->arena = NULL;
}

void dgm_agui_again_release(void *arg)
{
    dgm_agui_again_done(arg);
}

/* ---- what is open ------------------------------------------------------------------------------------------------- */

/* What ends it; NONE: it begins nothing. */
static dgm_canon_kind end_of(dgm_canon_kind kind)
{
    switch ((int)kind) {
    case DGM_CANON_STEP_STARTED: return DGM_CANON_STEP_FINISHED;
    case DGM_CANON_TEXT_MESSAGE_START: return DGM_CANON_TEXT_MESSAGE_END;
    case DGM_CANON_TOOL_CALL_START: return DGM_CANON_TOOL_CALL_END;
    case DGM_CANON_REASONING_START: return DGM_CANON_REASONING_END;
    case DGM_CANON_REASONING_MESSAGE_START: return DGM_CANON_REASONING_MESSAGE_END;
    case DGM_CANON_SUBAGENT_STARTED: return DGM_CANON_SUBAGENT_FINISHED;
    default: return DGM_CANON_NONE;
    }
}

static dgm_str name_of(const dgm_canon_event *e)
{
    switch ((int)e->kind) {
    case DGM_CANON_STEP_STARTED:
    case DGM_CANON_STEP_FINISHED: return e->step.name;
    case DGM_CANON_TOOL_CALL_START:
    case DGM_CANON_TOOL_CALL_END: return e->call.tool_call_id;
    case DGM_CANON_SUBAGENT_STARTED:
    case DGM_CANON_SUBAGENT_FINISHED:
    case DGM_CANON_SUBAGENT_ERROR: return e->subagent_run_id;
    case DGM_CANON_ACTIVITY_SNAPSHOT: return e->activity.message_id;
    default: return e->text.message_id;
    }
}

static void agui_again_add(agui_again *g, agui_events *list, const dgm_canon_event *e)
{
    list->at = dgm_list_grow(g->arena, list->at, list->n, sizeof *list->at);
    list->at[list->n++] = dgm_canon_copy_event(g->arena, e);
}

static void drop(agui_events *list, size_t i)
{
    memmove(list->at + i, list->at + i + 1, (--list->n - i) * sizeof *list->at);
}

static void close_item(agui_again *g, const dgm_canon_event *e)
{
    dgm_canon_kind kind =
        e->kind == DGM_CANON_SUBAGENT_ERROR ? DGM_CANON_SUBAGENT_FINISHED : e->kind;
    for (size_t i = g->open.n; i-- > 0;) {
        const dgm_canon_event *o = &g->open.at[i];
        if (end_of(o->kind) == kind && dgm_str_eq(name_of(o), name_of(e))) {
            drop(&g->open, i);
            return;
        }
    }
}

/* ---- what is kept beside the messages -------------------------------------------------------------------------------- */

/* The new one stands for all that was there of the kind, or of the kind and name. */
static void replace(agui_again *g, const dgm_canon_event *e)
{
    bool state = e->kind == DGM_CANON_STATE_SNAPSHOT;
    for (size_t i = g->kept.n; i-- > 0;) {
        const dgm_canon_event *k = &g->kept.at[i];
        bool same = state ? k->kind == e->kind || k->kind == DGM_CANON_STATE_DELTA
                          : k->kind == e->kind && dgm_str_eq(name_of(k), name_of(e));
        if (same)
            drop(&g->kept, i);
    }
    agui_again_add(g, &g->kept, e);
}

static void agui_again_take(agui_again *g, const dgm_canon_event *e)
{
    dgm_canon_fold_add(g->fold, e);
    switch ((int)e->kind) {
    case DGM_CANON_RUN_STARTED: g->started = dgm_canon_copy_event(g->arena, e); break;
    case DGM_CANON_STATE_SNAPSHOT:
    case DGM_CANON_ACTIVITY_SNAPSHOT: replace(g, e); break;
    case DGM_CANON_STATE_DELTA:
    case DGM_CANON_ACTIVITY_DELTA:
    case DGM_CANON_REASONING_ENCRYPTED_VALUE:
    case DGM_CANON_CUSTOM:
    case DGM_CANON_ARTIFACT: agui_again_add(g, &g->kept, e); break;
    default:
        if (end_of(e->kind))
            agui_again_add(g, &g->open, e);
        else
            close_item(g, e);
    }
}

/* ---- messages ----------------------------------------------------------------------------------------------------------- */

static void put_all(dgm_map *ids, const dgm_canon_messages *list)
{
    for (size_t i = 0; i < list->n; i++)
        dgm_map_put(ids, list->at[i].id, i);
}

/* Activities are no part of it: a client that finds one in a snapshot forgets all others. They are sent as events. */
static void push(dgm_canon_messages *list, const dgm_canon_message *m)
{
    if (m->role != DGM_CANON_ACTIVITY)
        list->at[list->n++] = *m;
}

/* Those from before, as the run has them if it has them, then the run's. */
static dgm_canon_messages merge(agui_again *g)
{
    dgm_canon_messages before = g->params.before, run = {0};
    dgm_map ids, known;
    if (!g->params.only_before)
        run = dgm_canon_fold_messages(g->fold, g->arena);
    dgm_canon_messages all = {dgm_new_n(g->arena, dgm_canon_message, before.n + run.n), 0};
    dgm_map_init(&ids);
    dgm_map_init(&known);
    put_all(&ids, &run);
    put_all(&known, &before);
    for (size_t i = 0; i < before.n; i++) {
        size_t *at = dgm_map_get(&ids, before.at[i].id);
        push(&all, at ? &run.at[*at] : &before.at[i]);
    }
    for (size_t i = 0; i < run.n; i++) {
        if (!dgm_map_get(&known, run.at[i].id))
            push(&all, &run.at[i]);
    }
    dgm_map_done(&ids);
    dgm_map_done(&known);
    return all;
}

static bool has_strangers(const dgm_canon_messages *held, const dgm_canon_messages *all)
{
    dgm_map ids;
    bool found = false;
    dgm_map_init(&ids);
    put_all(&ids, all);
    for (size_t i = 0; i < held->n && !found; i++)
        found = !dgm_map_get(&ids, held->at[i].id);
    dgm_map_done(&ids);
    return found;
}

/* ---- the prelude ---------------------------------------------------------------------------------------------------------- */

static dgm_code emit_all(const agui_events *list, dgm_canon_sink next)
{
    dgm_code rc = DGM_OK;
    for (size_t i = 0; i < list->n && !rc; i++)
        rc = dgm_canon_emit(next, &list->at[i]);
    return rc;
}

static dgm_code emit_messages(agui_again *g, dgm_canon_sink next)
{
    dgm_canon_event e = {.kind = DGM_CANON_MESSAGES_SNAPSHOT};
    dgm_code rc = DGM_OK;
    if (g->params.no_messages)
        return DGM_OK;
    dgm_canon_messages all = merge(g);
    if (has_strangers(&g->params.held, &all))
        rc = dgm_canon_emit(next, &e);
    e.snapshot.messages = all;
    return rc ? rc : dgm_canon_emit(next, &e);
}

static dgm_code emit_prelude(agui_again *g, dgm_canon_sink next)
{
    dgm_code rc;
    g->too_large = dgm_canon_fold_is_over(g->fold);
    if (g->started.kind && (rc = dgm_canon_emit(next, &g->started)))
        return rc;
    if (g->too_large)
        return DGM_TOO_LARGE;
    if ((rc = emit_messages(g, next)) || (rc = emit_all(&g->kept, next)))
        return rc;
    return emit_all(&g->open, next);
}

static dgm_code end_prelude(agui_again *g, dgm_canon_sink next)
{
    if (g->params.parent_run_id.n)
        g->started.run_started.parent_run_id = g->params.parent_run_id;
    dgm_code rc = g->started.kind ? emit_prelude(g, next) : DGM_OK;
    dgm_agui_again_done(g);
    return rc;
}

/* ---- events ----------------------------------------------------------------------------------------------------------------- */

/* Emitted when the prelude failed. */
static dgm_code emit_fault(const dgm_canon_event *event, dgm_canon_sink next)
{
    dgm_canon_event e = *event;
    e.run_error.code = DGM_STR("too_large");
    e.run_error.message =
        DGM_STR("the messages of this run are larger than the limit snapshot_bytes: follow it "
                "from its beginning, or come back with Last-Event-ID");
    return dgm_canon_emit(next, &e);
}

static dgm_code emit_end(const agui_again *g, const dgm_canon_event *event, dgm_canon_sink next,
                         const dgm_canon_event *started)
{
    dgm_canon_event e = {.kind = DGM_CANON_RUN_FINISHED};
    bool is_well = event->kind == DGM_CANON_RUN_FINISHED &&
                   event->run_finished.outcome.kind != DGM_CANON_CANCELLED;
    if (is_well || !g->params.ends_well)
        return dgm_canon_emit(next, event);
    e.run_finished.thread_id = started->run_started.thread_id;
    e.run_finished.run_id = started->run_started.run_id;
    return dgm_canon_emit(next, &e);
}

const dgm_canon_event *dgm_agui_as_message(const dgm_canon_event *event, dgm_canon_event *ret)
{
    const dgm_canon_outcome *o = &event->run_finished.outcome;
    if (event->kind != DGM_CANON_RUN_FINISHED || o->kind != DGM_CANON_INTERRUPT)
        return event;
    for (size_t i = 0; i < o->interrupts.n; i++) {
        if (!o->interrupts.at[i].text_only)
            return event;
    }
    *ret = *event;
    ret->run_finished.outcome = (dgm_canon_outcome){0};
    return ret;
}

dgm_code dgm_agui_again_on_event(void *arg, const dgm_canon_event *event, dgm_canon_sink next)
{
    agui_again *g = arg;
    dgm_canon_event message;
    dgm_code rc;
    if (!g->params.interrupts)
        event = dgm_agui_as_message(event, &message);
    if (!g->arena)
        return g->too_large && event->kind == DGM_CANON_RUN_ERROR ? emit_fault(event, next)
                                                                  : dgm_canon_emit(next, event);
    if (!dgm_canon_is_terminal(event->kind)) {
        agui_again_take(g, event);
        return DGM_OK;
    }
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_canon_event started = dgm_canon_copy_event(a, &g->started);
    if ((rc = end_prelude(g, next)))
        return rc;
    return emit_end(g, event, next, &started);
}

dgm_code dgm_agui_again_on_pause(void *arg, dgm_canon_sink next)
{
    agui_again *g = arg;
    return g->arena ? end_prelude(g, next) : DGM_OK;
}
