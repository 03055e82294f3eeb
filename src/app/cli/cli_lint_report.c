/*
 * cli_lint_report.c - findings as text, as lines of JSON, as SARIF 2.1.0.
 *
 * All three are written as the findings come: nothing is kept but which rules were explained.
 */
#include "cli_lint.h"

#include <stdlib.h>
#include <string.h>

/* ---- pieces of JSON --------------------------------------------------------------------------------------- */

static void member(const char *name, const char *value)
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
    const dgm_lint_rule *rules;
    dgm_lint_rules(&rules);
    return (size_t)(rule - rules);
}

static void tell_text(dgm_cli_report *r, const dgm_finding *f)
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

static void tell_json(const dgm_cli_report *r, const dgm_finding *f)
{
    putchar('{');
    member("file", r->name);
    putchar(',');
    number("line", f->line);
    putchar(',');
    number("column", f->column);
    putchar(',');
    number("value", f->value);
    putchar(',');
    member("rule", f->rule->id);
    putchar(',');
    member("severity", dgm_severity_name(f->rule->severity));
    putchar(',');
    member("message", f->message);
    putchar(',');
    member("pointer", f->at);
    putchar(',');
    member("fix", f->rule->fix);
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

static void put_text(const char *name, const char *text)
{
    printf("\"%s\":{", name);
    member("text", text);
    putchar('}');
}

static void begin_sarif(void)
{
    const dgm_lint_rule *rules;
    size_t n = dgm_lint_rules(&rules);
    fputs("{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\",\"version\":\"2.1.0\","
          "\"runs\":[{\"tool\":{\"driver\":{\"name\":\"dragoman\",",
          stdout);
    member("version", dgm_version());
    fputs(",\"rules\":[", stdout);
    for (size_t i = 0; i < n; i++) {
        fputs(i ? ",\n{" : "\n{", stdout);
        member("id", rules[i].id);
        putchar(',');
        put_text("shortDescription", rules[i].about);
        putchar(',');
        put_text("help", rules[i].fix);
        fputs(",\"defaultConfiguration\":{", stdout);
        member("level", dgm_severity_name(rules[i].severity));
        fputs("},\"properties\":{", stdout);
        member("protocol", rules[i].of);
        fputs("}}", stdout);
    }
    fputs("]}},\"columnKind\":\"unicodeCodePoints\",\"results\":[", stdout);
}

static void tell_sarif(const dgm_cli_report *r, const dgm_finding *f)
{
    fputs(r->any ? ",\n{" : "\n{", stdout);
    member("ruleId", f->rule->id);
    putchar(',');
    number("ruleIndex", index_of(f->rule));
    putchar(',');
    member("level", dgm_severity_name(f->rule->severity));
    putchar(',');
    put_text("message", f->message);
    fputs(",\"locations\":[{\"physicalLocation\":{\"artifactLocation\":{\"uri\":", stdout);
    put_uri(r->name);
    fputs("},\"region\":{", stdout);
    number("startLine", f->line);
    putchar(',');
    number("startColumn", f->character);
    fputs("}},\"logicalLocations\":[{", stdout);
    member("fullyQualifiedName", f->at);
    fputs(",\"kind\":\"member\"}]}]}", stdout);
}

/* ---- all of them -------------------------------------------------------------------------------------------------- */

static void tell(void *arg, const dgm_finding *f)
{
    dgm_cli_report *r = arg;
    switch (r->form) {
    case DGM_CLI_REPORT_TEXT: tell_text(r, f); break;
    case DGM_CLI_REPORT_JSON: tell_json(r, f); break;
    case DGM_CLI_REPORT_SARIF: tell_sarif(r, f); break;
    }
    r->any = true;
    r->faulty = r->faulty || f->rule->severity == DGM_SEVERITY_ERROR ||
                (r->strict && f->rule->severity == DGM_SEVERITY_WARNING);
}

void dgm_cli_report_begin(dgm_cli_report *r, const dgm_cli_line *line)
{
    const dgm_lint_rule *rules;
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
    r->explained = calloc(dgm_lint_rules(&rules), sizeof *r->explained);
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
    dgm_lint_options o = {.from = r->from, .url = url, .on_finding = tell, .arg = r};
    dgm_linter *l = NULL;
    dgm_err err = {0};
    r->name = name;
    if (dgm_linter_new(&o, &l, &err))
        dgm_cli_complain("%s", err.msg);
    return l;
}
