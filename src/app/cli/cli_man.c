/*
 * cli_man.c - man pages in roff (the man macros), made from the table.
 *
 * No date in them: the same source gives the same page.
 */
#include "cli.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Text as roff: hyphens that can be copied, straight quotes, nothing taken for a request;
 * backticks become bold. */
static void roff(const char *text, FILE *out)
{
    bool bold = false, line_start = true;
    for (const char *p = text; *p; p++) {
        if (line_start && (*p == '.' || *p == '\''))
            fputs("\\&", out);
        line_start = *p == '\n';
        switch (*p) {
        case '\\': fputs("\\e", out); break;
        case '-': fputs("\\-", out); break;
        case '\'': fputs("\\(aq", out); break;
        case '~': fputs("\\(ti", out); break;
        case '^': fputs("\\(ha", out); break;
        case '`':
            bold = !bold;
            fputs(bold ? "\\fB" : "\\fR", out);
            break;
        default: putc(*p, out);
        }
    }
}

static void section(const char *title, FILE *out)
{
    fprintf(out, ".SH %s\n", title);
}

/* .TP, the head, its text */
static void item(const char *head, const char *text, FILE *out)
{
    fputs(".TP\n", out);
    roff(head, out);
    putc('\n', out);
    roff(text, out);
    putc('\n', out);
}

static void title(const dgm_cli_command *c, FILE *out)
{
    fputs(".TH DRAGOMAN", out);
    if (c != &dgm_cli_root) {
        fputs("\\-", out);
        for (const char *p = c->name; *p; p++)
            putc(toupper((unsigned char)*p), out);
    }
    fprintf(out, " 1 \"\" \"dragoman %s\" \"User Commands\"\n", dgm_version());
}

static void description(const dgm_cli_command *c, FILE *out)
{
    section("DESCRIPTION", out);
    for (const char *p = c->text; *p;) {
        const char *end = strstr(p, "\n\n");
        size_t n = end ? (size_t)(end - p) : strlen(p);
        char *one = strndup(p, n);
        if (p != c->text)
            fputs(".PP\n", out);
        if (one)
            roff(one, out);
        putc('\n', out);
        free(one);
        p += end ? n + 2 : n;
    }
}

static void options(const dgm_cli_command *c, FILE *out)
{
    section("OPTIONS", out);
    for (const dgm_cli_option *o = c->options; o && o->name; o++) {
        const char *word;
        fputs(".TP\n", out);
        if (o->letter)
            fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
        fputs("\\fB\\-\\-", out);
        roff(o->name, out);
        fputs("\\fR", out);
        if (o->value)
            fprintf(out, " \\fI%s\\fR", o->value);
        putc('\n', out);
        roff(o->about, out);
        fputs(o->required ? " (required).\n" : ".\n", out);
        if (o->more) {
            roff(o->more, out);
            putc('\n', out);
        }
        for (size_t i = 0; o->kind && o->kind->word && (word = o->kind->word(i)); i++) {
            fputs(i ? ",\n\\fB" : "One of\n\\fB", out);
            roff(word, out);
            fputs("\\fR", out);
            if (!o->kind->word(i + 1))
                fputs(".\n", out);
        }
    }
}

static void arguments(const dgm_cli_command *c, FILE *out)
{
    if (!c->arguments)
        return;
    section("ARGUMENTS", out);
    for (const dgm_cli_argument *a = c->arguments; a->name; a++) {
        fprintf(out, ".TP\n\\fI%s\\fR\n", a->name);
        roff(a->about, out);
        putc('\n', out);
    }
}

static void subcommands(FILE *out)
{
    section("COMMANDS", out);
    for (const dgm_cli_command *const *c = dgm_cli_commands; *c; c++) {
        char head[80];
        snprintf(head, sizeof head, "`%s`", (*c)->name);
        if (!(*c)->hidden)
            item(head, (*c)->about, out);
    }
}

static void examples(const dgm_cli_command *c, FILE *out)
{
    section("EXAMPLES", out);
    for (const dgm_cli_note *e = c->examples; e && e->head; e++) {
        fputs(".PP\n", out);
        roff(e->about, out);
        fputs(":\n.PP\n.RS 4\n.nf\n", out);
        roff(e->head, out);
        fputs("\n.fi\n.RE\n", out);
    }
}

static void see_also(const dgm_cli_command *c, FILE *out)
{
    bool first = true;
    section("SEE ALSO", out);
    if (c != &dgm_cli_root) {
        fputs("\\fBdragoman\\fR(1)", out);
        first = false;
    }
    for (const dgm_cli_command *const *o = dgm_cli_commands; *o; o++) {
        if (!(*o)->page || *o == c)
            continue;
        fputs(first ? "\\fBdragoman\\-" : ",\n\\fBdragoman\\-", out);
        roff((*o)->name, out);
        fputs("\\fR(1)", out);
        first = false;
    }
    putc('\n', out);
}

void dgm_cli_man(const dgm_cli_command *c, FILE *out)
{
    char *usage = NULL;
    size_t n;
    FILE *memory = open_memstream(&usage, &n);
    if (!memory)
        return;
    dgm_cli_synopsis(c, "`", memory);
    fclose(memory);

    title(c, out);
    section("NAME", out);
    fputs(c == &dgm_cli_root ? "dragoman" : "dragoman\\-", out);
    roff(c == &dgm_cli_root ? "" : c->name, out);
    fputs(" \\- ", out);
    roff(c->about, out);
    putc('\n', out);
    section("SYNOPSIS", out);
    roff(usage, out);
    putc('\n', out);
    free(usage);

    description(c, out);
    if (c == &dgm_cli_root)
        subcommands(out);
    options(c, out);
    if (c != &dgm_cli_root)
        arguments(c, out);
    section("EXIT STATUS", out);
    for (const dgm_cli_note *e = c->exits; e && e->head; e++)
        item(e->head, e->about, out);
    examples(c, out);
    see_also(c, out);
}
