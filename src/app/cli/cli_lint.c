/*
 * cli_lint.c - `dragoman lint`: checks files, and writes the findings as text, JSON lines or SARIF 2.1.0.
 *
 * A finding is written when it is found; only the rules that were explained are stored. The URL of a server is
 * handled by app/client.
 */
#include "cli_lint.h"
#include "cli_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- findings: JSON members ------------------------------------------------------------------------------- */

static void cli_lint_member(const char *name, const char *value)
{
    printf("\"%s\":", name);
    dgm_cli_json_string(value, stdout);
}

static void number(const char *name, size_t value)
{
    printf("\"%s\":%zu", name, value);
}

/* ---- text ----------------------------------------------------------------------------------------------------- */

/* Text from a document may contain control sequences of a terminal. */
static void put_plain(const char *text)
{
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p, next = (unsigned char)p[1];
        if (c == 0xc2 && next >= 0x80 && next < 0xa0)
            printf("\\x%02x", (unsigned char)*++p); /* C1, by its number */
        else if (c < 0x20 || c == 0x7f)
            printf("\\x%02x", c);
        else
            putchar(*p);
    }
}

static size_t index_of(const dgm_lint_rule *rule)
{
    size_t i = 0;
    while (i < dgm_lint_rule_count() && dgm_lint_rule_at(i) != rule)
        i++;
    return i;
}

static void report_text(dgm_cli_report *r, const dgm_finding *f)
{
    put_plain(r->name);
    printf(":%zu:%zu: %s: ", f->line, f->column, dgm_severity_name(f->rule->severity));
    put_plain(f->message);
    printf(" [%s]", f->rule->id);
    if (f->at[0]) {
        fputs(" at ", stdout);
        put_plain(f->at);
    }
    putchar('\n');
    if (!r->explained[index_of(f->rule)])
        printf("    fix: %s\n", f->rule->fix);
    r->explained[index_of(f->rule)] = true;
}

/* ---- JSON lines ------------------------------------------------------------------------------------------------ */

static void report_json(const dgm_cli_report *r, const dgm_finding *f)
{
    putchar('{');
    cli_lint_member("file", r->name);
    putchar(',');
    number("line", f->line);
    putchar(',');
    number("column", f->column);
    putchar(',');
    number("value", f->value);
    putchar(',');
    cli_lint_member("rule", f->rule->id);
    putchar(',');
    cli_lint_member("severity", dgm_severity_name(f->rule->severity));
    putchar(',');
    cli_lint_member("message", f->message);
    putchar(',');
    cli_lint_member("pointer", f->at);
    putchar(',');
    cli_lint_member("fix", f->rule->fix);
    fputs("}\n", stdout);
}

/* ---- SARIF ------------------------------------------------------------------------------------------------------ */

/* A path as a URI reference; an address is one already. */
static void put_uri(const char *path)
{
    bool address = strstr(path, "://");
    if (strcmp(path, "<stdin>") == 0)
        path = "stdin";
    putchar('"');
    for (const char *p = path; *p; p++) {
        unsigned char c = (unsigned char)*p;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     strchr("-._~/", c) || (address && strchr(":?#[]@!$&'()*+,;=%", c));
        if (plain)
            putchar(c);
        else
            printf("%%%02X", c);
    }
    putchar('"');
}

static void cli_lint_put_text(const char *name, const char *text)
{
    printf("\"%s\":{", name);
    cli_lint_member("text", text);
    putchar('}');
}

static void begin_sarif(void)
{
    const dgm_lint_rule *rule;
    fputs("{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\",\"version\":\"2.1.0\","
          "\"runs\":[{\"tool\":{\"driver\":{\"name\":\"dragoman\",",
          stdout);
    cli_lint_member("version", dgm_version());
    fputs(",\"rules\":[", stdout);
    for (size_t i = 0; (rule = dgm_lint_rule_at(i)); i++) {
        fputs(i ? ",\n{" : "\n{", stdout);
        cli_lint_member("id", rule->id);
        putchar(',');
        cli_lint_put_text("shortDescription", rule->about);
        putchar(',');
        cli_lint_put_text("help", rule->fix);
        fputs(",\"defaultConfiguration\":{", stdout);
        cli_lint_member("level", dgm_severity_name(rule->severity));
        fputs("},\"properties\":{", stdout);
        cli_lint_member("protocol", rule->of);
        fputs("}}", stdout);
    }
    fputs("]}},\"columnKind\":\"unicodeCodePoints\",\"results\":[", stdout);
}

static void report_sarif(const dgm_cli_report *r, const dgm_finding *f)
{
    fputs(r->any ? ",\n{" : "\n{", stdout);
    cli_lint_member("ruleId", f->rule->id);
    putchar(',');
    number("ruleIndex", index_of(f->rule));
    putchar(',');
    cli_lint_member("level", dgm_severity_name(f->rule->severity));
    putchar(',');
    cli_lint_put_text("message", f->message);
    fputs(",\"locations\":[{\"physicalLocation\":{\"artifactLocation\":{\"uri\":", stdout);
    put_uri(r->name);
    fputs("},\"region\":{", stdout);
    number("startLine", f->line);
    putchar(',');
    number("startColumn", f->character);
    fputs("}},\"logicalLocations\":[{", stdout);
    cli_lint_member("fullyQualifiedName", f->at);
    fputs(",\"kind\":\"member\"}]}]}", stdout);
}

/* ---- all of them -------------------------------------------------------------------------------------------------- */

static void report_finding(void *arg, const dgm_finding *f)
{
    dgm_cli_report *r = arg;
    switch (r->form) {
    case DGM_CLI_REPORT_TEXT: report_text(r, f); break;
    case DGM_CLI_REPORT_JSON: report_json(r, f); break;
    case DGM_CLI_REPORT_SARIF: report_sarif(r, f); break;
    }
    r->any = true;
    r->faulty = r->faulty || f->rule->severity == DGM_SEVERITY_ERROR ||
                (r->strict && f->rule->severity == DGM_SEVERITY_WARNING);
}

void dgm_cli_report_begin(dgm_cli_report *r, const dgm_cli_line *line)
{
    const char *form = dgm_cli_get(line, "format");
    *r = (dgm_cli_report){.strict = dgm_cli_get(line, "strict"),
                          .fetched = dgm_cli_get(line, "fetched-from"),
                          .from = dgm_cli_get(line, "from")};
    if (form)
        r->form = form[0] == 'j'   ? DGM_CLI_REPORT_JSON
                  : form[0] == 's' ? DGM_CLI_REPORT_SARIF
                                   : DGM_CLI_REPORT_TEXT;
    if (dgm_cli_get(line, "rules"))
        return;
    r->explained = calloc(dgm_lint_rule_count() + 1, sizeof *r->explained);
    if (!r->explained)
        abort();
    if (r->form == DGM_CLI_REPORT_SARIF)
        begin_sarif();
}

int dgm_cli_report_end(dgm_cli_report *r)
{
    if (r->form == DGM_CLI_REPORT_SARIF)
        fputs("]}]}\n", stdout);
    free(r->explained);
    return r->faulty ? DGM_CLI_FAILED : DGM_CLI_OK;
}

dgm_linter *dgm_cli_report_linter(dgm_cli_report *r, const char *name, const char *url)
{
    dgm_lint_options o = {.size = sizeof o,
                          .from = dgm_format_id_by_name(r->from),
                          .url = url,
                          .on_finding = report_finding,
                          .arg = r};
    dgm_linter *l = NULL;
    dgm_err *err = dgm_err_new();
    r->name = name;
    if (dgm_linter_new(&o, &l, err))
        dgm_cli_complain("%s", dgm_err_message(err));
    dgm_err_free(err);
    return l;
}

/* ---- the table of rules: `dragoman lint --rules` ------------------------------------------------------------- */

static void as_text(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        printf("%s (%s, %s)\n    %s.\n    fix: %s\n", dgm_lint_rule_at(i)->id,
               dgm_severity_name(dgm_lint_rule_at(i)->severity), dgm_lint_rule_at(i)->of,
               dgm_lint_rule_at(i)->about, dgm_lint_rule_at(i)->fix);
    }
}

static void as_json(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *const members[][2] = {
            {"id", dgm_lint_rule_at(i)->id},
            {"severity", dgm_severity_name(dgm_lint_rule_at(i)->severity)},
            {"protocol", dgm_lint_rule_at(i)->of},
            {"about", dgm_lint_rule_at(i)->about},
            {"fix", dgm_lint_rule_at(i)->fix}};
        for (size_t k = 0; k < sizeof members / sizeof *members; k++) {
            printf("%c\"%s\":", k ? ',' : '{', members[k][0]);
            dgm_cli_json_string(members[k][1], stdout);
        }
        fputs("}\n", stdout);
    }
}

static void print_lint_rules(dgm_cli_report_form form)
{
    size_t n = dgm_lint_rule_count();
    if (form == DGM_CLI_REPORT_TEXT)
        as_text(n);
    else
        as_json(n);
}

/* ---- docs/lint.md: `dragoman lint --markdown` ----------------------------------------------------------------- */

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
    size_t n = dgm_lint_rule_count();
    printf("\n## %s\n\n%s\n\n| rule | severity | what is wrong | what to do |\n|---|---|---|---|\n",
           title, about);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(dgm_lint_rule_at(i)->of, of) != 0)
            continue;
        printf("| `%s` | %s | ", dgm_lint_rule_at(i)->id,
               dgm_severity_name(dgm_lint_rule_at(i)->severity));
        cell(dgm_lint_rule_at(i)->about);
        fputs(" | ", stdout);
        cell(dgm_lint_rule_at(i)->fix);
        fputs(" |\n", stdout);
    }
}

static void print_lint_markdown(void)
{
    fputs("# Lint\n"
          "\n"
          "Generated by `dragoman lint --markdown` from the table of rules; do not edit.\n"
          "\n"
          "`dragoman lint` reads streams, tasks, messages, requests and cards of A2A (1.0, 0.3, "
          "0.3-rest) and streams of AG-UI, in any\n"
          "framing that `dragoman convert` reads, and reports what is wrong with them: the rule, "
          "the line and column, the position as a JSON\n"
          "pointer, and what to do. With the URL of an A2A server it fetches the card, sends a "
          "message and checks the stream of the answer.\n"
          "\n"
          "```\n"
          "dragoman lint recorded.sse                  # a recorded stream\n"
          "curl -sN ... | dragoman lint                # a live stream\n"
          "dragoman lint --strict task.json            # warnings are errors, too\n"
          "dragoman lint --format sarif *.jsonl        # for code scanners\n"
          "dragoman lint http://127.0.0.1:8484         # a server: its card, and a stream\n"
          "```\n"
          "\n"
          "- Severities: `error` violates the protocol, `warning` causes problems with some "
          "clients or servers, `note` is a suggestion. The exit\n"
          "  status is 1 if there was an error (`--strict`: or a warning), else 0; 2 if the "
          "command line was wrong.\n"
          "- `--format text`: `FILE:LINE:COLUMN: severity: what [rule] at POINTER`, and at the "
          "first finding of a rule what to do. `json`: a line\n"
          "  for each finding, an object with `file line column value rule severity message "
          "pointer fix`. `sarif`: SARIF 2.1.0.\n"
          "- Invalid JSON is a finding (`json`), and lint continues with the next value. Memory "
          "use depends on the largest value: of a stream\n"
          "  only ids and hashes of texts are stored, of at most 65536 artifacts and calls and 64 "
          "texts; the rules do not check more than\n"
          "  these. At most ten findings of one rule are reported per value.\n"
          "- A single task, message or event is checked by itself. JSON lines, server-sent events "
          "and arrays with events are streams: their order\n"
          "  is checked too. A task after the end of another task starts another stream.\n"
          "- `dragoman serve` checks the events of its agents with the rules for single events, "
          "logs a line per rule and run, and counts them:\n"
          "  `dragoman_agent_warnings_total{rule}`.\n"
          "- The library: `<dragoman/lint.h>`.\n",
          stdout);
    section("any", "All protocols", "For every input.");
    section("a2a", "A2A", "Streams, tasks and messages.");
    section(
        "ag-ui", "AG-UI",
        "The order is the one that the official client checks; chunk events are expanded first.");
    section("card", "Agent cards",
            "In addition to `required-member`, `null-member` and `wrong-value`.");
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

#define PIECE ((size_t)64 << 10)

static bool is_address(const char *text)
{
    return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
}

static bool lint_fd(int fd, const char *name, dgm_cli_report *r, char *piece)
{
    dgm_linter *l = dgm_cli_report_linter(r, name, r->fetched);
    long n = -1;
    while (l && (n = dgm_cli_read(fd, piece, PIECE)) > 0) {
        dgm_linter_feed(l, piece, (size_t)n);
        fflush(stdout); /* a stream may take its time */
    }
    if (n == 0)
        dgm_linter_end(l);
    else if (l)
        dgm_cli_complain("cannot read %s: %s", name, strerror(errno));
    dgm_linter_free(l);
    return n == 0;
}

static bool lint_file(const char *path, dgm_cli_report *r, char *piece)
{
    if (strcmp(path, "-") == 0)
        return lint_fd(STDIN_FILENO, "<stdin>", r, piece);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        dgm_cli_complain("cannot open %s: %s", path, strerror(errno));
        return false;
    }
    bool read = lint_fd(fd, path, r, piece);
    close(fd);
    return read;
}

static int lint_files(const dgm_cli_line *line)
{
    char dash[] = "-", *no_args[] = {dash}, **paths = line->n_args ? line->args : no_args;
    size_t n = line->n_args ? line->n_args : 1;
    dgm_cli_report r;
    char *piece = malloc(PIECE);
    bool all_read = piece != NULL;
    dgm_cli_report_begin(&r, line);
    for (size_t i = 0; piece && i < n; i++)
        all_read = lint_file(paths[i], &r, piece) && all_read;
    free(piece);
    int status = dgm_cli_report_end(&r);
    return all_read ? status : DGM_CLI_FAILED;
}

int dgm_cli_run_lint(const dgm_cli_line *line)
{
    size_t addresses = 0;
    bool rules = dgm_cli_get(line, "rules"), markdown = dgm_cli_get(line, "markdown");
    for (size_t i = 0; i < line->n_args; i++)
        addresses += is_address(line->args[i]);
    if ((rules || markdown) && line->n_args)
        return dgm_cli_refuse(line, "--%s prints the table and needs no FILE",
                              rules ? "rules" : "markdown");
    if (addresses && line->n_args > 1)
        return dgm_cli_refuse(line, "FILEs or one URL, not both");
    if (markdown) {
        print_lint_markdown();
        return DGM_CLI_OK;
    }
    if (rules) {
        dgm_cli_report r;
        dgm_cli_report_begin(&r, line);
        print_lint_rules(r.form);
        return DGM_CLI_OK;
    }
    return addresses ? dgm_cli_run_outside(line) : lint_files(line);
}
