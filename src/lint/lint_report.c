/* lint/lint_report.c - makes a finding of a rule and a JSON pointer: finds the line and the column in the input. */
#include "lint/lint_int.h"

#include <stdarg.h>
#include <stdio.h>

/* Unicode characters between two places of a line. */
static size_t characters(dgm_str text, size_t from, size_t to)
{
    size_t n = 0;
    for (size_t i = from; i < to && i < text.n; i++)
        n += ((unsigned char)text.p[i] & 0xC0) != 0x80;
    return n;
}

/* pos is on the line-th line of the text, which begins at line_at. */
static void lint_report_place(dgm_linter *l, size_t pos, size_t line, size_t line_at,
                              dgm_finding *f)
{
    size_t framing = line == 1 ? l->item->column - 1 : l->item->margin;
    dgm_err err = {.line = line, .column = pos - line_at + 1};
    f->character = characters(l->item->text, line_at, pos) + framing + 1;
    dgm_frames_place(l->item, &err);
    f->line = err.line;
    f->column = err.column;
}

/* ---- places in large arrays: every search begins where the last element was found ------------------------ */

static void count_lines(dgm_str text, size_t from, size_t to, size_t *line, size_t *line_at)
{
    for (size_t i = from; i < to && i < text.n; i++) {
        if (text.p[i] == '\n') {
            ++*line;
            *line_at = i + 1;
        }
    }
}

void dgm_lint_first_element(dgm_linter *l)
{
    dgm_str text = l->item->text;
    size_t pos = dgm_json_find(text, "/0");
    l->element.i = l->element.line_at = 0;
    l->element.line = 1;
    l->element.pos = pos;
    count_lines(text, 0, pos, &l->element.line, &l->element.line_at);
}

static void go_to_element(dgm_linter *l)
{
    dgm_str text = l->item->text;
    for (; l->element.i < l->i; l->element.i++) {
        size_t next = dgm_json_next(text, l->element.pos);
        count_lines(text, l->element.pos, next, &l->element.line, &l->element.line_at);
        l->element.pos = next;
    }
}

/* Of the pointer below the value. */
static void find_place(dgm_linter *l, const char *pointer, dgm_finding *f)
{
    dgm_str text = l->item->text;
    size_t line = 1, line_at = 0, from = 0;
    if (l->base[0]) {
        go_to_element(l);
        line = l->element.line;
        line_at = l->element.line_at;
        from = l->element.pos;
    }
    size_t pos = from + dgm_json_find((dgm_str){text.p + from, text.n - from}, pointer);
    count_lines(text, from, pos, &line, &line_at);
    lint_report_place(l, pos, line, line_at, f);
}

/* Ids are cut to fit into a sentence, pointers at a length: a character that was cut through becomes `?`. */
static void mend(char *text)
{
    dgm_str s = dgm_str_from(text);
    for (size_t i; (i = dgm_utf8_check(s)) < s.n;)
        text[i] = '?';
}

static void lint_emit(dgm_linter *l, lint_rule rule, dgm_finding *f)
{
    f->rule = dgm_lint_rule_at(rule);
    f->value = l->n_values;
    l->found[f->rule->severity]++;
    if (l->o.on_finding)
        l->o.on_finding(l->o.arg, f);
}

static void lint_emit_at(dgm_linter *l, lint_rule rule, const char *from, const char *at,
                         const char *fmt, va_list args)
{
    dgm_finding f = {.line = l->line, .column = l->column, .character = l->character};
    char text[sizeof((dgm_err *)0)->msg];
    char pointer[sizeof((dgm_err *)0)->at + sizeof l->base + sizeof l->object];
    if (l->item && l->reported[rule]++ >= DGM_MAX_LINT_FINDINGS) {
        l->reported[rule] = DGM_MAX_LINT_FINDINGS;
        return;
    }
    snprintf(text, sizeof text, "%s", dgm_lint_rule_at(rule)->about);
    if (fmt)
        vsnprintf(text, sizeof text, fmt, args);
    size_t n = (size_t)snprintf(pointer, sizeof pointer, "%s", l->item ? l->base : "");
    snprintf(pointer + n, sizeof pointer - n, "%s%s", from, at);
    if (l->item)
        find_place(l, pointer + n, &f);
    mend(text);
    mend(pointer);
    f.message = text;
    f.at = pointer;
    lint_emit(l, rule, &f);
}

void dgm_lint_report(dgm_linter *l, lint_rule rule, const char *at, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    lint_emit_at(l, rule, "", at, fmt, args);
    va_end(args);
}

void dgm_lint_report_in(dgm_linter *l, lint_rule rule, const char *at, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    lint_emit_at(l, rule, l->object, at, fmt, args);
    va_end(args);
}

void dgm_lint_report_text(dgm_linter *l, lint_rule rule, const dgm_err *err)
{
    dgm_err where = *err;
    dgm_finding f = {.message = where.msg, .at = where.at};
    mend(where.msg);
    mend(where.at); /* the text may be no UTF-8 at all */
    if (!l->item) { /* what could not be read at all: err knows the line */
        f.line = err->line ? err->line : 1;
        f.column = f.character = err->column ? err->column : 1;
    } else {
        size_t line = 1, line_at = 0, pos = 0;
        while (line < where.line && pos < l->item->text.n)
            count_lines(l->item->text, pos, pos + 1, &line, &line_at), pos++;
        pos = line_at + (where.column ? where.column - 1 : 0);
        lint_report_place(l, pos, line, line_at, &f);
    }
    lint_emit(l, rule, &f);
}

/* ---- decoders ------------------------------------------------------------------------------------------ */

/* The value at a pointer; NULL: it is not there. */
static yyjson_val *value_at(yyjson_val *v, const char *pointer)
{
    char key[sizeof((dgm_err *)0)->at];
    while (v && *pointer == '/') {
        size_t n = 0;
        for (pointer++; *pointer && *pointer != '/'; pointer++) {
            bool escaped = *pointer == '~' && (pointer[1] == '0' || pointer[1] == '1');
            key[n++] = !escaped ? *pointer : *++pointer == '1' ? '/' : '~';
        }
        key[n] = 0;
        size_t index = 0;
        for (size_t i = 0; i < n && key[i] >= '0' && key[i] <= '9'; i++)
            index = index * 10 + (size_t)(key[i] - '0');
        v = yyjson_is_arr(v) ? yyjson_arr_get(v, index) : dgm_json_get(v, (dgm_str){key, n});
    }
    return v;
}

static bool is_empty(yyjson_val *v)
{
    return !v || yyjson_is_null(v) || (yyjson_is_str(v) && !unsafe_yyjson_get_len(v)) ||
           (yyjson_is_arr(v) && !unsafe_yyjson_get_len(v));
}

/* A decoder reports the first fault only. If nothing is at its pointer, a member is missing; else its value is wrong. */
void dgm_lint_report_decoder(dgm_linter *l, yyjson_val *v, const dgm_err *err)
{
    lint_rule rule = err->code == DGM_TOO_LARGE                     ? LINT_LIMIT
                     : err->at[0] && is_empty(value_at(v, err->at)) ? LINT_REQUIRED_MEMBER
                                                                    : LINT_WRONG_VALUE;
    dgm_lint_report(l, rule, err->at, "%s", err->msg);
}
