/*
 * dragoman/lint.h - what is wrong with a stream, a task, a message or a card, by the rules of its protocol.
 *
 *     dgm_lint_options o = {.on_finding = print_it};
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

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dgm_severity {
    DGM_SEVERITY_NOTE,    /* could be better */
    DGM_SEVERITY_WARNING, /* some peers will stumble */
    DGM_SEVERITY_ERROR    /* against the protocol */
} dgm_severity;
#define DGM_N_SEVERITIES 3

DGM_API const char *dgm_severity_name(dgm_severity s); /* "note", "warning", "error" */

typedef struct dgm_lint_rule {
    const char *id; /* kebab-case; never changes its meaning */
    dgm_severity severity;
    const char *of;    /* "any", "a2a", "ag-ui" or "card": what it is about */
    const char *about; /* what is wrong, a sentence without its stop */
    const char *fix;   /* what to do, in sentences */
} dgm_lint_rule;

/* All rules, in the order they are shown to people. */
DGM_API size_t dgm_lint_rules(const dgm_lint_rule **ret_rules);

typedef struct dgm_finding {
    const dgm_lint_rule *rule;
    const char *message; /* what is wrong here */
    const char *at;      /* JSON pointer into the value, which may be an element of a stream */
    size_t value;        /* 1-based: which value of the input */
    size_t line, column; /* 1-based, in bytes, where the value at the pointer begins */
    size_t character;    /* 1-based, the same column in Unicode characters */
} dgm_finding;

typedef struct dgm_lint_options {
    /* "a2a-1.0", "a2a-0.3", "a2a-0.3-rest" or "ag-ui"; NULL or "auto": detected from the input */
    const char *from;
    /* where the input was fetched from; NULL: unknown, the rules about it are not checked */
    const char *url;
    void (*on_finding)(void *arg, const dgm_finding *finding); /* valid until this returns */
    void *arg;
} dgm_lint_options;

/* The names that `from` may have, without "auto". */
DGM_API size_t dgm_lint_formats(const char *const **ret_names);

typedef struct dgm_linter dgm_linter;

/* DGM_BAD_REQUEST: unknown format. */
DGM_API dgm_code dgm_linter_new(const dgm_lint_options *options, dgm_linter **ret_linter,
                                dgm_err *err);
DGM_API void dgm_linter_free(dgm_linter *l); /* NULL is fine */
DGM_API void dgm_linter_feed(dgm_linter *l, const char *bytes, size_t n);
DGM_API void dgm_linter_end(dgm_linter *l); /* end of input: reports what is missing */
/* How many findings of a severity there were. */
DGM_API size_t dgm_linter_found(const dgm_linter *l, dgm_severity s);

#ifdef __cplusplus
}
#endif
