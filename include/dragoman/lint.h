/*
 * dragoman/lint.h - reports what is wrong with a stream, a task, a message or a card, by the rules of its protocol.
 *
 *     dgm_lint_options o = {.size = sizeof o, .on_finding = print_it};
 *     dgm_linter_new(&o, &l, &err);
 *     while (there are bytes)
 *         dgm_linter_feed(l, bytes, n);
 *     dgm_linter_end(l);
 *
 * Reads A2A (1.0, 0.3, 0.3-rest) and AG-UI in any framing that dgm_convert() reads. Findings are reported as they
 * are found; a finding does not stop the check. Memory is bounded by the largest single value: of streams only ids
 * and hashes are stored, up to a fixed limit.
 */
#pragma once

#include <dragoman/base.h>
#include <dragoman/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dgm_severity {
    DGM_SEVERITY_NOTE = 0,    /* could be better */
    DGM_SEVERITY_WARNING = 1, /* some peers will fail */
    DGM_SEVERITY_ERROR = 2    /* against the protocol */
} dgm_severity;

DGM_API const char *dgm_severity_name(dgm_severity s); /* "note", "warning", "error" */

typedef struct dgm_lint_rule {
    const char *id; /* kebab-case; never changes its meaning */
    dgm_severity severity;
    const char *of;    /* "any", "a2a", "ag-ui" or "card": what it is about */
    const char *about; /* what is wrong, a sentence without its stop */
    const char *fix;   /* what to do, in sentences */
} dgm_lint_rule;

/* All rules, in the order in which they are shown to people. NULL: index is too large. */
DGM_API const dgm_lint_rule *dgm_lint_rule_at(size_t index);
DGM_API size_t dgm_lint_rule_count(void);

typedef struct dgm_finding {
    const dgm_lint_rule *rule;
    const char *message; /* what is wrong here */
    const char *at;      /* JSON pointer into the value, which may be an element of a stream */
    size_t value;        /* 1-based: which value of the input */
    size_t line, column; /* 1-based, in bytes, where the value at the pointer begins */
    size_t character;    /* 1-based, the same column in Unicode characters */
} dgm_finding;

typedef struct dgm_lint_options {
    size_t size; /* sizeof(dgm_lint_options) */
    /* A2A_10, A2A_03, A2A_03_REST or AG_UI; NONE: detected from the input */
    dgm_format_id from;
    /* where the input was fetched from; NULL: unknown, the rules about it are not checked */
    const char *url;
    void (*on_finding)(void *arg, const dgm_finding *finding); /* valid until this returns */
    void *arg;
} dgm_lint_options;

/* The values that `from` may have. NONE: index is too large. */
DGM_API dgm_format_id dgm_lint_format_at(size_t index);

typedef struct dgm_linter dgm_linter;

/* DGM_BAD_REQUEST: a format that has no rules. */
DGM_API dgm_code dgm_linter_new(const dgm_lint_options *options, dgm_linter **ret_linter,
                                dgm_err *err);
DGM_API void dgm_linter_free(dgm_linter *l); /* NULL is allowed */
DGM_API void dgm_linter_feed(dgm_linter *l, const char *bytes, size_t n);
DGM_API void dgm_linter_end(dgm_linter *l); /* end of input: reports what is missing */
/* How many findings of a severity there were. */
DGM_API size_t dgm_linter_count(const dgm_linter *l, dgm_severity s);

#ifdef __cplusplus
}
#endif
