/*
 * lint/lint.c - the linter: splits the input into values and checks each by the rules of its protocol.
 *
 * The arena is reset for each value. The state between values is in the handle and has a limit.
 */
#include "lint/lint_int.h"
#include "lint/lint_rules.h"
#include "wire/a2a/a2a.h"
#include "wire/agui/agui.h"

#include <dragoman/lint.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the protocol and its dialect ------------------------------------------------------------------------------ */

#define N_FORMATS 4

static const lint_format formats[N_FORMATS] = {
    {DGM_FORMAT_A2A_10, &dgm_codec_a2a_10, LINT_10},
    {DGM_FORMAT_A2A_03, &dgm_codec_a2a_03, LINT_03},
    {DGM_FORMAT_A2A_03_REST, &dgm_codec_a2a_03_rest, LINT_03_REST},
    {DGM_FORMAT_AG_UI, NULL, 0},
};
static const lint_format *const agui = &formats[3];

dgm_format_id dgm_lint_format_at(size_t index)
{
    return index < N_FORMATS ? formats[index].id : DGM_FORMAT_NONE;
}

static const lint_format *lint_format_by_id(dgm_format_id id)
{
    for (size_t i = 0; i < N_FORMATS; i++) {
        if (formats[i].id == id)
            return &formats[i];
    }
    return NULL;
}

/* RUN_STARTED, SOME_NEW_EVENT */
static bool is_event_name(dgm_str s)
{
    bool parted = false;
    for (size_t i = 0; i < s.n; i++) {
        if ((s.p[i] < 'A' || s.p[i] > 'Z') && s.p[i] != '_')
            return false;
        parted = parted || s.p[i] == '_';
    }
    return parted;
}

/* `guess` wins a tie. NULL: unknown. */
static const lint_format *lint_format_detect(const yyjson_val *v, const lint_format *guess)
{
    yyjson_val *type = dgm_json_get(v, DGM_STR("type"));
    /* A2A has no `type` where its events begin. Of the formats of AG-UI's kind all events have one. */
    if (dgm_agui_recognise(v) ||
        (yyjson_is_str(type) && (guess == agui || is_event_name(dgm_json_str(type)))))
        return agui;
    const lint_format *best = NULL;
    int best_score = 0;
    dgm_form form;
    for (size_t i = 0; i < N_FORMATS; i++) {
        const lint_format *f = &formats[i];
        int score = f->a2a ? f->a2a->recognise(v, &form) : 0;
        if (score > best_score || (score && score == best_score && f == guess)) {
            best = f;
            best_score = score;
        }
    }
    return best;
}

/* ---- values ------------------------------------------------------------------------------------------------ */

static void lint_check_value(dgm_linter *l, yyjson_val *v)
{
    const lint_format *found = l->requested ? l->requested : lint_format_detect(v, l->format);
    l->object[0] = 0;
    memset(l->reported, 0, sizeof l->reported);
    if (!yyjson_is_obj(v) || !found) {
        dgm_lint_report(l, LINT_UNKNOWN_VALUE, "", NULL);
        return;
    }
    l->format = found;
    if (found->a2a)
        dgm_lint_a2a_value(l, v);
    else
        dgm_lint_agui_value(l, v);
}

/* An array with an update is a recorded stream; any other array is a list of messages, tasks, ... */
static bool holds_events(yyjson_val *array)
{
    yyjson_val *e;
    size_t i, n;
    yyjson_arr_foreach (array, i, n, e) {
        yyjson_val *kind = dgm_json_get(e, DGM_STR("kind"));
        dgm_str name = yyjson_is_str(kind) ? dgm_json_str(kind) : (dgm_str){0};
        if (dgm_json_get(e, DGM_STR("statusUpdate")) ||
            dgm_json_get(e, DGM_STR("artifactUpdate")) || dgm_json_get(e, DGM_STR("result")) ||
            dgm_str_is(name, "status-update") || dgm_str_is(name, "artifact-update") ||
            dgm_agui_recognise(e))
            return true;
    }
    return false;
}

static void lint_check_array(dgm_linter *l, yyjson_val *array)
{
    yyjson_val *e;
    size_t i, n;
    l->where.in_stream = l->where.in_stream || holds_events(array);
    l->where.in_list = true;
    dgm_lint_first_element(l);
    yyjson_arr_foreach (array, i, n, e) {
        snprintf(l->base, sizeof l->base, "/%zu", i);
        l->i = i;
        lint_check_value(l, e);
    }
    l->base[0] = 0;
    l->i = 0;
}

/* ---- texts --------------------------------------------------------------------------------------------------- */

/* False: the guess of the framing was wrong, the item is not one JSON value: dgm_frames_retry(). */
static bool lint_check_item(dgm_linter *l, const dgm_frames_item *item)
{
    dgm_err err = {0};
    yyjson_val *v;
    dgm_arena_reset(l->arena);
    l->item = item;
    memset(l->reported, 0, sizeof l->reported);
    l->where = (lint_where){.in_stream = !item->alone, .in_list = !item->alone};
    if (item->done) {
        l->n_values++;
        dgm_lint_report(l, LINT_DONE_MARKER, "", NULL);
        return true;
    }
    dgm_code rc = dgm_json_read(l->arena, item->text,
                                item->alone ? DGM_MAX_OBJECT_BYTES : DGM_MAX_RECORD_BYTES,
                                item->alone ? "object_bytes" : "record_bytes", &v, &err);
    if (rc == DGM_PARSE && item->guess)
        return false;
    l->n_values++;
    if (rc)
        dgm_lint_report_text(l, rc == DGM_PARSE ? LINT_JSON : LINT_LIMIT, &err);
    else if (yyjson_is_arr(v))
        lint_check_array(l, v);
    else
        lint_check_value(l, v);
    l->line = item->line;
    l->column = item->column;
    l->character = item->column;
    return true;
}

static void lint_check_items(dgm_linter *l)
{
    dgm_frames_item item;
    dgm_err err = {0};
    dgm_code rc = DGM_OK;
    while (!l->over && !(rc = dgm_frames_next(&l->frames, &item, &err)) && item.text.p) {
        if (!lint_check_item(l, &item))
            dgm_frames_retry(&l->frames);
        l->item = NULL;
    }
    if (!rc || l->over)
        return;
    l->over = true; /* the framing has lost its way */
    dgm_lint_report_text(l, LINT_LIMIT, &err);
}

/* ---- the handle ------------------------------------------------------------------------------------------------- */

dgm_code dgm_linter_new(const dgm_lint_options *options, dgm_linter **ret_linter, dgm_err *err)
{
    dgm_lint_options own;
    dgm_code rc = ret_linter ? dgm_options_copy(&own, sizeof own, options, err)
                             : dgm_fail(err, DGM_BAD_PARAMS, NULL, "missing argument: ret_linter");
    if (rc)
        return rc;
    const lint_format *requested = own.from ? lint_format_by_id(own.from) : NULL;
    if (own.from && !requested)
        return dgm_fail(
            err, DGM_BAD_REQUEST, NULL,
            "unknown format \"%s\" for lint; formats: a2a-1.0, a2a-0.3, a2a-0.3-rest, ag-ui",
            dgm_format_id_name(own.from));
    dgm_linter *l = dgm_xcalloc(1, sizeof *l);
    l->o = own;
    l->requested = l->format = requested;
    l->dialects = requested && requested->dialect ? requested->dialect : LINT_ANY_DIALECT;
    l->arena = dgm_arena_new();
    l->line = l->column = l->character = 1;
    dgm_frames_init(&l->frames, false);
    *ret_linter = l;
    return DGM_OK;
}

void dgm_linter_free(dgm_linter *l)
{
    if (!l)
        return;
    l->o.on_finding = NULL;
    dgm_lint_agui_end(l);
    dgm_lint_seen_clear(&l->stream.artifacts);
    dgm_lint_seen_clear(&l->calls);
    dgm_frames_done(&l->frames);
    dgm_arena_free(l->arena);
    free(l);
}

void dgm_linter_feed(dgm_linter *l, const char *bytes, size_t n)
{
    if (!l || !bytes || l->over || !n)
        return;
    dgm_frames_feed(&l->frames, bytes, n);
    lint_check_items(l);
}

void dgm_linter_end(dgm_linter *l)
{
    if (!l)
        return;
    if (!l->over) {
        dgm_frames_end(&l->frames);
        lint_check_items(l);
    }
    if (!l->n_values && !l->over && dgm_frames_what(&l->frames) != DGM_FRAMES_SSE) {
        dgm_err err = {0};
        dgm_fail(&err, DGM_PARSE, NULL, "expected JSON or server-sent events, got nothing");
        dgm_lint_report_text(l, LINT_JSON, &err);
    }
    dgm_lint_agui_end(l);
    dgm_lint_stream_end(l);
    l->over = true;
}

size_t dgm_linter_count(const dgm_linter *l, dgm_severity s)
{
    return l && (size_t)s < sizeof l->found / sizeof *l->found ? l->found[s] : 0;
}

/* ---- the table of rules ---------------------------------------------------------------------------------------- */

static const dgm_lint_rule rules[LINT_N_RULES] = {
#define X(sym, id, severity, of, about, fix) {id, DGM_SEVERITY_##severity, of, about, fix},
    LINT_RULES(X)
#undef X
};

size_t dgm_lint_rule_count(void)
{
    return LINT_N_RULES;
}

const dgm_lint_rule *dgm_lint_rule_at(size_t index)
{
    return index < LINT_N_RULES ? &rules[index] : NULL;
}

const char *dgm_severity_name(dgm_severity s)
{
    static const char *const names[] = {"note", "warning", "error"};
    return (size_t)s < sizeof names / sizeof *names ? names[s] : "";
}
