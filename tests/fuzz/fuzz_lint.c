/*
 * fuzz_lint.c - any bytes through every rule.
 *
 * Checked, for the format detected from the input and for each that can be named: no crash, every finding is a complete
 * one (a rule of the table, a sentence and a pointer in UTF-8, a place within the input), they are counted,
 * and the same bytes in pieces give the same findings.
 */
#include "base/buf.h"
#include "fuzz/fuzz.h"

#include <dragoman/lint.h>
#include <stdio.h>
#include <stdlib.h>

struct taken {
    dgm_buf text;
    size_t found[DGM_SEVERITY_ERROR + 1];
    size_t lines; /* of the input */
};

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz_lint: %s\n", what);
    abort();
}

static bool is_text(const char *s)
{
    dgm_str text = dgm_str_from(s);
    return s && dgm_utf8_check(text) == text.n;
}

static void take(void *arg, const dgm_finding *f)
{
    struct taken *t = arg;
    size_t i = 0;
    while (i < dgm_lint_rule_count() && dgm_lint_rule_at(i) != f->rule)
        i++;
    must(i < dgm_lint_rule_count(), "a rule that is not in the table");
    must(is_text(f->message) && f->message[0], "no sentence");
    must(is_text(f->at) && (!f->at[0] || f->at[0] == '/'), "no pointer");
    must(f->line && f->column && f->character && f->line <= t->lines, "no place");
    must(f->character <= f->column, "more characters than bytes");
    t->found[f->rule->severity]++;
    dgm_buf_printf(&t->text, "%zu %zu:%zu:%zu %s %s %s\n", f->value, f->line, f->column,
                   f->character, f->rule->id, f->at, f->message);
}

/* step 0: in one piece */
static void lint(dgm_str in, dgm_format_id from, size_t step, struct taken *t)
{
    dgm_lint_options o = {.size = sizeof o,
                          .from = from,
                          .url = "https://agent.example/.well-known/agent-card.json",
                          .on_finding = take,
                          .arg = t};
    dgm_linter *l;
    *t = (struct taken){.lines = 2};
    for (size_t i = 0; i < in.n; i++)
        t->lines += in.p[i] == '\n' || in.p[i] == '\r';
    dgm_buf_init(&t->text, SIZE_MAX);
    must(dgm_linter_new(&o, &l, NULL) == DGM_OK, "no linter");
    for (size_t at = 0, n; at < in.n; at += n) {
        n = step ? 1 + (at * 7 + step) % 37 : in.n;
        n = n < in.n - at ? n : in.n - at;
        char *copy = malloc(n); /* so that ASan sees what is used too long */
        if (!copy)
            abort();
        memcpy(copy, in.p + at, n);
        dgm_linter_feed(l, copy, n);
        free(copy);
    }
    dgm_linter_end(l);
    for (int s = 0; s <= DGM_SEVERITY_ERROR; s++)
        must(dgm_linter_count(l, (dgm_severity)s) == t->found[s], "counted wrongly");
    dgm_linter_free(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_str in = {(const char *)data, size};
    size_t step = 1 + dgm_hash(1, data, size) % 100;
    for (size_t i = 0; !i || dgm_lint_format_at(i - 1); i++) {
        dgm_format_id from = i ? dgm_lint_format_at(i - 1) : DGM_FORMAT_NONE;
        struct taken whole, pieces;
        lint(in, from, 0, &whole);
        lint(in, from, step, &pieces);
        if (!dgm_str_eq(dgm_buf_str(&whole.text), dgm_buf_str(&pieces.text)))
            fprintf(stderr, "whole:\n%.*s\nin pieces:\n%.*s\n", DGM_P(dgm_buf_str(&whole.text)),
                    DGM_P(dgm_buf_str(&pieces.text)));
        must(dgm_str_eq(dgm_buf_str(&whole.text), dgm_buf_str(&pieces.text)),
             "other findings in pieces");
        dgm_buf_done(&whole.text);
        dgm_buf_done(&pieces.text);
    }
    return 0;
}
