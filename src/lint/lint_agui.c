/*
 * lint/lint_agui.c - one stream of AG-UI.
 *
 * The order is checked by canon/verify.h, after the decoder has expanded chunk events; all other rules check the
 * event as it was received.
 */
#include "lint/lint_int.h"

#include "canon/verify.h"
#include "wire/agui/agui.h"

#include <stdio.h>
#include <stdlib.h>

struct lint_agui {
    dgm_agui_decoder *decoder;
    dgm_verify *verify;
    struct lint_id thread_id, run_id; /* of the run that is active */
    bool assumed;                     /* it began without RUN_STARTED, which may still come */
};

_Static_assert(LINT_AGUI_NULLS - LINT_AGUI_FIRST == DGM_ORDER_NULLS - DGM_ORDER_FIRST,
               "a row of the table for every rule of verify.h, in its order");

static struct lint_agui *stream_of(dgm_linter *l)
{
    if (!l->agui) {
        l->agui = dgm_xcalloc(1, sizeof *l->agui);
        l->agui->decoder = dgm_agui_decoder_new();
        l->agui->verify = dgm_verify_new();
    }
    return l->agui;
}

/* ---- order ------------------------------------------------------------------------------------------------- */

/* The member that names what a rule is about. */
static const char *place_of(dgm_order_rule rule)
{
    switch (rule) {
    case DGM_ORDER_TEXT_OPEN:
    case DGM_ORDER_TEXT_CLOSED:
    case DGM_ORDER_SPAN:
    case DGM_ORDER_REASONING: return "/messageId";
    case DGM_ORDER_CALL_OPEN:
    case DGM_ORDER_CALL_CLOSED: return "/toolCallId";
    case DGM_ORDER_STEP_OPEN:
    case DGM_ORDER_STEP_CLOSED: return "/stepName";
    case DGM_ORDER_SUBAGENT_START:
    case DGM_ORDER_SUBAGENT_END:
    case DGM_ORDER_OWNER: return "/subagentRunId";
    case DGM_ORDER_FINE:
    case DGM_ORDER_FIRST:
    case DGM_ORDER_AFTER_ERROR:
    case DGM_ORDER_AFTER_FINISH:
    case DGM_ORDER_SECOND_RUN:
    case DGM_ORDER_OPEN_AT_FINISH:
    case DGM_ORDER_NULLS:
    case DGM_ORDER_NO_END: break;
    }
    return "/type";
}

/* Texts only: a tool call may have the same id as a text. */
static void agui_lint_text(dgm_linter *l, const dgm_canon_event *e)
{
    if (e->kind == DGM_CANON_TEXT_MESSAGE_START)
        dgm_lint_text_start(l, e->text.message_id, (dgm_str){0});
    else if (e->kind == DGM_CANON_TEXT_MESSAGE_CONTENT)
        dgm_lint_text_append(l, e->text.message_id, e->text.delta, "/delta");
    else if (e->kind == DGM_CANON_TEXT_MESSAGE_END)
        dgm_lint_text_complete(l, e->text.message_id, "/messageId");
}

/* A stream without RUN_STARTED is reported once, then checked as if the run had started. */
static dgm_order_rule agui_lint_order(struct lint_agui *s, const dgm_canon_event *e, dgm_err *err)
{
    static const dgm_canon_event started = {.kind = DGM_CANON_RUN_STARTED};
    bool late = s->assumed && e->kind == DGM_CANON_RUN_STARTED;
    dgm_order_rule rule = late ? DGM_ORDER_FINE : dgm_verify_feed(s->verify, e, err);
    s->assumed = s->assumed && !late;
    if (rule == DGM_ORDER_FIRST) {
        s->assumed = true;
        dgm_verify_feed(s->verify, &started, NULL);
        dgm_verify_feed(s->verify, e, NULL);
    }
    return rule;
}

static dgm_code agui_lint_expanded(void *arg, const dgm_canon_event *e)
{
    dgm_linter *l = arg;
    dgm_err err = {0};
    dgm_order_rule rule = agui_lint_order(l->agui, e, &err);
    if (rule)
        dgm_lint_report(l, (lint_rule)(LINT_AGUI_FIRST + (rule - DGM_ORDER_FIRST)), place_of(rule),
                        "%s", err.msg);
    agui_lint_text(l, e);
    return DGM_OK;
}

/* ---- runs ---------------------------------------------------------------------------------------------------- */

static void agui_lint_set_id(struct lint_id *to, dgm_str id)
{
    to->n = id.n <= sizeof to->text ? id.n : 0;
    if (to->n)
        memcpy(to->text, id.p, id.n);
}

static void hold_id(dgm_linter *l, const struct lint_id *started, dgm_str ends, const char *at)
{
    if (started->n && !dgm_str_eq((dgm_str){started->text, started->n}, ends))
        dgm_lint_report(l, LINT_CHANGING_IDS, at,
                        "%s is \"%.*s\" here and was \"%.*s\" in RUN_STARTED", at + 1,
                        (int)(ends.n < 60 ? ends.n : 60), ends.p,
                        (int)(started->n < 60 ? started->n : 60), started->text);
}

static bool is_version(dgm_str v)
{
    const char *dot = v.n ? memchr(v.p, '.', v.n) : NULL;
    for (size_t i = 0; i < v.n; i++) {
        if ((v.p[i] < '0' || v.p[i] > '9') && v.p + i != dot)
            return false;
    }
    return dot && dot > v.p && dot < v.p + v.n - 1;
}

static void agui_lint_calls(dgm_linter *l, const dgm_canon_messages *messages)
{
    for (size_t i = 0; i < messages->n; i++) {
        const dgm_canon_calls *calls = &messages->at[i].tool_calls;
        for (size_t k = 0; k < calls->n; k++)
            dgm_lint_add_call(l, calls->at[k].id);
    }
}

static void agui_lint_start(dgm_linter *l, const dgm_canon_event *e)
{
    agui_lint_set_id(&l->agui->thread_id, e->run_started.thread_id);
    agui_lint_set_id(&l->agui->run_id, e->run_started.run_id);
    if (e->run_started.protocol_version.p && !is_version(e->run_started.protocol_version))
        dgm_lint_report(l, LINT_AGUI_VERSION, "/protocolVersion", NULL);
    if (e->run_started.input)
        agui_lint_calls(l, &e->run_started.input->messages);
    l->texts.n = l->texts.pieces = 0;
}

static void agui_lint_finish(dgm_linter *l, const dgm_canon_event *e)
{
    const dgm_canon_interrupts *all = &e->run_finished.outcome.interrupts;
    hold_id(l, &l->agui->thread_id, e->run_finished.thread_id, "/threadId");
    hold_id(l, &l->agui->run_id, e->run_finished.run_id, "/runId");
    struct lint_seen ids = {0};
    for (size_t i = 0; i < all->n; i++) {
        char at[64];
        if (dgm_lint_seen_find(&ids, all->at[i].id)) {
            snprintf(at, sizeof at, "/outcome/interrupts/%zu/id", i);
            dgm_lint_report(l, LINT_AGUI_INTERRUPTS, at, NULL);
        }
        dgm_lint_seen_add(&ids, all->at[i].id);
    }
    dgm_lint_seen_clear(&ids);
}

/* ---- one event -------------------------------------------------------------------------------------------------- */

static bool has_empty_delta(const dgm_canon_event *e)
{
    switch ((int)e->kind) {
    case DGM_CANON_TEXT_MESSAGE_CONTENT:
    case DGM_CANON_REASONING_MESSAGE_CONTENT: return !e->text.delta.n;
    case DGM_CANON_TOOL_CALL_ARGS: return !e->call.delta.n;
    default: return false;
    }
}

static void agui_lint_event(dgm_linter *l, const dgm_canon_event *e)
{
    if (e->kind == DGM_CANON_RUN_STARTED)
        agui_lint_start(l, e);
    else if (e->kind == DGM_CANON_RUN_FINISHED)
        agui_lint_finish(l, e);
    else if (e->kind == DGM_CANON_MESSAGES_SNAPSHOT)
        agui_lint_calls(l, &e->snapshot.messages);
    else if (e->kind == DGM_CANON_TOOL_CALL_START || e->kind == DGM_CANON_TOOL_CALL_CHUNK)
        dgm_lint_add_call(l, e->call.tool_call_id);
    else if (e->kind == DGM_CANON_TOOL_CALL_RESULT && l->where.in_stream)
        dgm_lint_add_result(l, e->result.tool_call_id, "/toolCallId");
    if (has_empty_delta(e))
        dgm_lint_report(l, LINT_AGUI_EMPTY_DELTA, "/delta", NULL);
}

static void agui_lint_request(dgm_linter *l, dgm_reader *r, yyjson_val *v)
{
    dgm_canon_input input;
    if (dgm_agui_read_input(r, v, NULL, &input))
        dgm_lint_report_decoder(l, v, r->err);
    else if (input.protocol_version.p && !is_version(input.protocol_version))
        dgm_lint_report(l, LINT_AGUI_VERSION, "/protocolVersion", NULL);
}

void dgm_lint_agui_value(dgm_linter *l, yyjson_val *v)
{
    struct lint_agui *s = stream_of(l);
    dgm_err err = {0};
    dgm_reader r = {.arena = l->arena, .err = &err};
    dgm_canon_event e;
    dgm_agui_found found;
    dgm_lint_walk_agui(l, v);
    if (!dgm_json_get(v, DGM_STR("type")) && dgm_agui_recognise(v)) {
        agui_lint_request(l, &r, v);
        return;
    }
    if (dgm_agui_read_event(&r, v, NULL, &e, &found)) {
        dgm_lint_report_decoder(l, v, &err);
        return;
    }
    if (found == DGM_AGUI_UNKNOWN) {
        dgm_lint_report(l, LINT_AGUI_UNKNOWN, "/type", NULL);
        return;
    }
    if (found == DGM_AGUI_RETIRED)
        dgm_lint_report(l, LINT_AGUI_RETIRED, "/type", NULL);
    agui_lint_event(l, &e);
    /* it can be read: what the decoder still refuses is a chunk in the wrong place */
    if (l->where.in_stream &&
        dgm_agui_decoder_feed(s->decoder, &r, v, (dgm_canon_sink){agui_lint_expanded, l}))
        dgm_lint_report(l, LINT_AGUI_CHUNK, err.at, "%s", err.msg);
}

void dgm_lint_agui_end(dgm_linter *l)
{
    dgm_err err = {0};
    if (!l->agui)
        return;
    /* *_CHUNK events have no end event, so a text that is still open here is not a fault */
    if (dgm_verify_end(l->agui->verify, &err))
        dgm_lint_report(l, LINT_MISSING_FINAL, "", "%s", err.msg);
    dgm_agui_decoder_free(l->agui->decoder);
    dgm_verify_free(l->agui->verify);
    free(l->agui);
    l->agui = NULL;
}
