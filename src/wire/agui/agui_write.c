/*
 * wire/agui/agui_write.c - encodes events; leaves out what older peers (before 1.0) reject.
 */
#include "wire/agui/agui_int.h"

typedef dgm_canon_event E;

static bool is_empty_delta(const E *e)
{
    switch ((int)e->kind) {
    case DGM_CANON_TEXT_MESSAGE_CONTENT:
    case DGM_CANON_REASONING_MESSAGE_CONTENT: return !e->text.delta.n;
    case DGM_CANON_TOOL_CALL_ARGS: return !e->call.delta.n;
    default: return false;
    }
}

/* ---- older peers, before 1.0 ----------------------------------------------------------------------------- */

static dgm_str text_of_parts(dgm_arena *a, const dgm_canon_parts *parts)
{
    size_t n = 0;
    for (size_t i = 0; i < parts->n; i++)
        n += parts->at[i].kind == DGM_CANON_PART_TEXT ? parts->at[i].text.n : 0;
    char *p = dgm_arena_alloc(a, n + 1);
    dgm_str text = {p, n};
    for (size_t i = 0; i < parts->n; i++) {
        if (parts->at[i].kind == DGM_CANON_PART_TEXT && parts->at[i].text.n) {
            memcpy(p, parts->at[i].text.p, parts->at[i].text.n);
            p += parts->at[i].text.n;
        }
    }
    return text;
}

/* Their tool results are text, and they know no handles of files. */
static void age_content(dgm_arena *a, dgm_canon_content *c, bool to_text)
{
    if (c->kind != DGM_CANON_CONTENT_PARTS)
        return;
    if (to_text) {
        dgm_str text = text_of_parts(a, &c->parts);
        *c = (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT, .text = text};
        return;
    }
    dgm_canon_parts known = {dgm_new_n(a, dgm_canon_part, c->parts.n), 0};
    for (size_t i = 0; i < c->parts.n; i++) {
        if (c->parts.at[i].source.kind != DGM_CANON_SOURCE_FILE)
            known.at[known.n++] = c->parts.at[i];
    }
    c->parts = known;
}

void dgm_agui_age_messages(dgm_arena *a, dgm_canon_messages *list)
{
    dgm_canon_message *copy = dgm_new_n(a, dgm_canon_message, list->n);
    for (size_t i = 0; i < list->n; i++) {
        copy[i] = list->at[i];
        copy[i].subagent_run_id = (dgm_str){0};
        age_content(a, &copy[i].content, copy[i].role == DGM_CANON_TOOL);
    }
    list->at = copy;
}

static void age_interrupts(dgm_arena *a, dgm_canon_interrupts *list)
{
    dgm_canon_interrupt *copy = dgm_new_n(a, dgm_canon_interrupt, list->n);
    for (size_t i = 0; i < list->n; i++) {
        copy[i] = list->at[i];
        copy[i].subagent_run_id = (dgm_str){0};
    }
    list->at = copy;
}

/* false: nothing of it is for them. */
static bool age(dgm_arena *a, E *e)
{
    switch ((int)e->kind) {
    case DGM_CANON_STEP_STARTED:
    case DGM_CANON_STEP_FINISHED:
        if (e->subagent_run_id.n)
            return false; /* steps have only their name there: two of it would be an error */
        break;
    case DGM_CANON_SUBAGENT_STARTED:
    case DGM_CANON_SUBAGENT_FINISHED:
    case DGM_CANON_SUBAGENT_ERROR: return false;
    case DGM_CANON_RUN_STARTED:
        if (e->run_started.input) {
            dgm_canon_input *input = dgm_new(a, dgm_canon_input);
            *input = *e->run_started.input;
            dgm_agui_age_messages(a, &input->messages);
            e->run_started.input = input;
        }
        break;
    case DGM_CANON_RUN_FINISHED: {
        dgm_canon_outcome *o = &e->run_finished.outcome;
        if (o->kind == DGM_CANON_CANCELLED) {
            dgm_canon_usages usage = e->run_finished.usage;
            *e = (E){.kind = DGM_CANON_RUN_ERROR, .timestamp = e->timestamp};
            e->run_error.message = DGM_STR("The run was cancelled");
            e->run_error.code = DGM_STR("cancelled");
            e->run_error.usage = usage;
        } else if (o->kind == DGM_CANON_SUCCESS) {
            *o = (dgm_canon_outcome){0};
        } else if (o->kind == DGM_CANON_INTERRUPT) {
            age_interrupts(a, &o->interrupts);
        }
        break;
    }
    case DGM_CANON_TOOL_CALL_RESULT: age_content(a, &e->result.content, true); break;
    case DGM_CANON_MESSAGES_SNAPSHOT: dgm_agui_age_messages(a, &e->snapshot.messages); break;
    default: break;
    }
    e->subagent_run_id = (dgm_str){0};
    return true;
}

/* A separate function, so that other events do not pay for the copy. */
static __attribute__((noinline)) void write_aged(dgm_writer *w, const E *event, dgm_arena *a)
{
    E aged = *event;
    if (age(a, &aged))
        dgm_shape_write(w, dgm_agui_event_shapes[aged.kind], &aged);
}

void dgm_agui_write_event(dgm_writer *w, const E *event, dgm_agui_peer peer, dgm_arena *a)
{
    if (event->kind == DGM_CANON_NONE || is_empty_delta(event))
        return;
    if (peer.old)
        write_aged(w, event, a);
    else
        dgm_shape_write(w, dgm_agui_event_shapes[event->kind], event);
}
