/*
 * cli_lint_rules.c - the table of rules: `dragoman lint --rules`, and docs/lint.md (--markdown).
 */
#include "cli_lint.h"

#include <string.h>

/* ---- for a person, for a program --------------------------------------------------------------------------- */

static void as_text(const dgm_lint_rule *rules, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        printf("%s (%s, %s)\n    %s.\n    fix: %s\n", rules[i].id,
               dgm_severity_name(rules[i].severity), rules[i].of, rules[i].about, rules[i].fix);
    }
}

static void as_json(const dgm_lint_rule *rules, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *const members[][2] = {{"id", rules[i].id},
                                          {"severity", dgm_severity_name(rules[i].severity)},
                                          {"protocol", rules[i].of},
                                          {"about", rules[i].about},
                                          {"fix", rules[i].fix}};
        for (size_t k = 0; k < sizeof members / sizeof *members; k++) {
            printf("%c\"%s\":", k ? ',' : '{', members[k][0]);
            dgm_cli_json_string(members[k][1], stdout);
        }
        fputs("}\n", stdout);
    }
}

void dgm_cli_lint_rules(dgm_cli_report_form form)
{
    const dgm_lint_rule *rules;
    size_t n = dgm_lint_rules(&rules);
    if (form == DGM_CLI_REPORT_TEXT)
        as_text(rules, n);
    else
        as_json(rules, n);
}

/* ---- for docs/ ------------------------------------------------------------------------------------------------ */

static void cell(const char *text)
{
    for (const char *p = text; *p; p++) {
        if (*p == '|')
            putchar('\\');
        putchar(*p);
    }
}

static void section(const char *of, const char *title, const char *about)
{
    const dgm_lint_rule *rules;
    size_t n = dgm_lint_rules(&rules);
    printf("\n## %s\n\n%s\n\n| rule | severity | what is wrong | what to do |\n|---|---|---|---|\n",
           title, about);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rules[i].of, of) != 0)
            continue;
        printf("| `%s` | %s | ", rules[i].id, dgm_severity_name(rules[i].severity));
        cell(rules[i].about);
        fputs(" | ", stdout);
        cell(rules[i].fix);
        fputs(" |\n", stdout);
    }
}

void dgm_cli_lint_markdown(void)
{
    fputs(
        "# Lint\n\n"
        "Made by `dragoman lint --markdown` from the table of rules; do not edit.\n\n"
        "`dragoman lint` reads streams, tasks, messages, requests and cards of A2A (1.0, 0.3, "
        "0.3-rest) and streams of AG-UI, in any\nframing that `dragoman convert` reads, and tells "
        "what is wrong with them: the rule, the line and column, the place as a JSON\npointer, "
        "what to do. With the address of an A2A server it fetches the card, sends a message and "
        "reads the stream that comes.\n\n"
        "```\n"
        "dragoman lint recorded.sse                  # a stream that was recorded\n"
        "curl -sN ... | dragoman lint                # one that comes now\n"
        "dragoman lint --strict task.json            # warnings count, too\n"
        "dragoman lint --format sarif *.jsonl        # for code scanners\n"
        "dragoman lint http://127.0.0.1:8484         # a server: its card, and a stream\n"
        "```\n\n"
        "- Severities: `error` is against the protocol, `warning` makes some peers stumble, `note` "
        "could be better. Exit status 1 if there was\n  an error (`--strict`: or a warning), else "
        "0; 2 if the command line was wrong.\n"
        "- `--format text`: `FILE:LINE:COLUMN: severity: what [rule] at POINTER`, and at the "
        "first finding of a rule what to do. `json`: a line\n  for each finding, an object with "
        "`file line column value rule severity message pointer fix`. `sarif`: SARIF 2.1.0.\n"
        "- What is not JSON is a finding (`json`), and lint goes on with the next value. Memory "
        "follows the largest value: of a stream ids and\n  sums of texts are kept, 65536 "
        "artifacts and calls and 64 texts at most; past that the rules about them are silent. Of "
        "one rule ten findings are told per value.\n"
        "- A single task, message or event is judged by itself; JSON lines, server-sent events and "
        "arrays with events are streams, and have an\n  order. A task after the end of another "
        "begins another stream.\n"
        "- `dragoman serve` holds what its agents emit against the rules on single events, logs a "
        "line per rule and run, and counts them:\n  `dragoman_agent_warnings_total{rule}`.\n"
        "- The library: `<dragoman/lint.h>`.\n",
        stdout);
    section("any", "All protocols", "Of every input.");
    section("a2a", "A2A", "Streams, tasks and messages.");
    section("ag-ui", "AG-UI",
            "The order is that which the official client checks; chunks are taken apart before.");
    section("card", "Agent cards", "Beside `required-member`, `null-member` and `wrong-value`.");
}
