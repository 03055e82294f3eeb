/*
 * app/cli/cli_lint.h - the parts of `dragoman lint` that files and URLs share.
 *
 * cli_lint.c reads files; app/client reads from a server and prints the same report.
 */
#pragma once

#include "cli.h"

typedef enum dgm_cli_report_form {
    DGM_CLI_REPORT_TEXT,
    DGM_CLI_REPORT_JSON, /* a line for each finding */
    DGM_CLI_REPORT_SARIF /* one document, version 2.1.0 */
} dgm_cli_report_form;

/* Findings of all inputs on their way to standard output. */
typedef struct dgm_cli_report {
    dgm_cli_report_form form;
    bool strict;         /* warnings count as errors do */
    const char *name;    /* of the input: a file's, or an address */
    bool *explained;     /* by rule: the text form explains each rule once */
    bool any;            /* a finding was reported */
    bool faulty;         /* one that counts */
    const char *fetched; /* --fetched-from */
    const char *from;    /* --from */
} dgm_cli_report;

void dgm_cli_report_begin(dgm_cli_report *r, const dgm_cli_line *line);
int dgm_cli_report_end(dgm_cli_report *r); /* an exit status */

/* A linter that writes to this report; NULL: an error was printed. name: of the input. */
dgm_linter *dgm_cli_report_linter(dgm_cli_report *r, const char *name, const char *url);

int dgm_cli_run_lint(const dgm_cli_line *line);
