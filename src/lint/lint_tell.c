/* lint/lint_tell.c - from a rule and a pointer to a finding with a place in the input. */
#include "lint/lint_int.h"

#include <stdarg.h>
#include <stdio.h>

/* Unicode characters between the beginning of the line and byte `pos`. */
static size_t characters_before(dgm_str text, size_t pos)
{
    size_t n = 0;
    for (size_t i = pos < text.n ? pos : text.n; i > 0 && text.p[i - 1] != '\n'; i--)
        n += ((unsigned char)text.p[i - 1] & 0xC0) != 0x80;
    return n;
}

static size_t offset_of(dgm_str text, size_t line, size_t column)
{
    size_t i = 0;
    while (line > 1 && i < text.n)
        line -= text.p[i++] == '\n';
    return i + column - 1;
}

/* err->line and column are those of byte `pos` of the text, and become those of the input. */
static void place(dgm_linter *l, size_t pos, dgm_err *err, dgm_finding *f)
{
    size_t framing = err->line == 1 ? l->item->column - 1 : l->item->margin;
    f->character = characters_before(l->item->text, pos) + framing + 1;
    dgm_frames_place(l->item, err);
    f->line = err->line;
    f->column = err->column;
}

/* Ids are cut to fit into a sentence, pointers at a length: a character that was cut through becomes `?`. */
static void mend(char *text)
{
    dgm_str s = dgm_str_from(text);
    for (size_t i; (i = dgm_utf8_check(s)) < s.n;)
        text[i] = '?';
}

static void give(dgm_linter *l, lint_rule rule, dgm_finding *f)
{
    const dgm_lint_rule *rules;
    dgm_lint_rules(&rules);
    f->rule = &rules[rule];
    f->value = l->n_values;
    l->found[f->rule->severity]++;
    if (l->o.on_finding)
        l->o.on_finding(l->o.arg, f);
}

static void tell(dgm_linter *l, lint_rule rule, const char *from, const char *at, const char *fmt,
                 va_list args)
{
    const dgm_lint_rule *rules;
    dgm_finding f = {.line = l->line, .column = l->column, .character = l->character};
    dgm_err err = {0};
    char pointer[sizeof err.at + sizeof l->base + sizeof l->object], text[sizeof err.msg];
    dgm_lint_rules(&rules);
    snprintf(text, sizeof text, "%s", rules[rule].about);
    if (fmt)
        vsnprintf(text, sizeof text, fmt, args);
    snprintf(pointer, sizeof pointer, "%s%s%s", l->item ? l->base : "", from, at);
    if (l->item) {
        size_t pos = dgm_json_find(l->item->text, pointer);
        dgm_json_place(l->item->text, pos, &err);
        place(l, pos, &err, &f);
    }
    mend(text);
    mend(pointer);
    f.message = text;
    f.at = pointer;
    give(l, rule, &f);
}

void lint_tell(dgm_linter *l, lint_rule rule, const char *at, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    tell(l, rule, "", at, fmt, args);
    va_end(args);
}

void lint_tell_in(dgm_linter *l, lint_rule rule, const char *at, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    tell(l, rule, l->object, at, fmt, args);
    va_end(args);
}

void lint_tell_text(dgm_linter *l, lint_rule rule, const dgm_err *err)
{
    dgm_err where = *err;
    dgm_finding f = {.message = where.msg, .at = where.at};
    mend(where.msg);
    mend(where.at); /* the text may be no UTF-8 at all */
    if (!l->item) { /* what could not be read at all: err knows the line */
        f.line = err->line ? err->line : 1;
        f.column = f.character = err->column ? err->column : 1;
    } else {
        if (!where.line)
            where.line = where.column = 1;
        place(l, offset_of(l->item->text, where.line, where.column), &where, &f);
    }
    give(l, rule, &f);
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

/* Decoders tell the first fault. Where there is nothing, something is missing; else it is wrong. */
void lint_tell_decoder(dgm_linter *l, yyjson_val *v, const dgm_err *err)
{
    lint_rule rule = err->code == DGM_TOO_LARGE                     ? LINT_LIMIT
                     : err->at[0] && is_empty(value_at(v, err->at)) ? LINT_REQUIRED_MEMBER
                                                                    : LINT_WRONG_VALUE;
    lint_tell(l, rule, err->at, "%s", err->msg);
}
