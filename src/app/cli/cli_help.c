/*
 * cli_help.c - what --help shows, made from the table.
 */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#define WIDTH 80

void dgm_cli_synopsis(const dgm_cli_command *c, const char *mark, FILE *out)
{
    size_t open = 0;
    bool optional = false;
    if (c == &dgm_cli_root)
        fprintf(out, "%sdragoman%s", mark, mark);
    else
        fprintf(out, "%sdragoman %s%s", mark, c->name, mark);
    for (const dgm_cli_option *o = c->options; o && o->name; o++) {
        optional = optional || !o->required;
        if (o->required)
            fprintf(out, " %s--%s%s %s", mark, o->name, mark, o->value);
    }
    if (optional)
        fputs(" [OPTION...]", out);
    for (const dgm_cli_argument *a = c->arguments; a && a->name; a++) {
        fprintf(out, " %s%s%s", a->required ? "" : "[", a->name, a->repeats ? "..." : "");
        open += !a->required;
    }
    while (open--)
        putc(']', out);
}

static void paragraphs(const char *text, FILE *out)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        size_t n = end ? (size_t)(end - text) : strlen(text);
        char *one = strndup(text, n);
        if (one)
            dgm_cli_wrap(one, 0, WIDTH, out);
        putc('\n', out);
        free(one);
        text += end ? n + 2 : n;
    }
}

/* Rows of two columns: heads as they are, texts wrapped beside them. */
static void row(const char *head, const char *text, size_t column, FILE *out)
{
    size_t w = dgm_cli_width(head);
    fputs("  ", out);
    dgm_cli_plain(head, out);
    if (w + 4 > column) {
        putc('\n', out);
        w = 0;
    } else {
        w += 2;
    }
    dgm_cli_spaces(column - w, out);
    dgm_cli_wrap(text, column, WIDTH, out);
}

static void option_head(const dgm_cli_option *o, char *to, size_t max)
{
    char letter[8] = "    ";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(to, max, "%s--%s%s%s", letter, o->name, o->value ? " " : "", o->value ? o->value : "");
}

/* "a phrase. More sentences. One of: x, y, z." */
static char *option_text(const dgm_cli_option *o)
{
    char *text = NULL;
    size_t n;
    const char *word;
    FILE *out = open_memstream(&text, &n);
    if (!out)
        return NULL;
    fputs(o->about, out);
    if (o->required)
        fputs(" (required)", out);
    if (o->more)
        fprintf(out, ". %s", o->more);
    for (size_t i = 0; o->kind && o->kind->word && (word = o->kind->word(i)); i++)
        fprintf(out, "%s%s", i ? ", " : o->more ? " One of: " : ". One of: ", word);
    fclose(out);
    return text;
}

static void options(const dgm_cli_command *c, FILE *out)
{
    char head[80];
    fputs("Options:\n", out);
    for (const dgm_cli_option *o = c->options; o && o->name; o++) {
        char *text = option_text(o);
        option_head(o, head, sizeof head);
        row(head, text ? text : o->about, 25, out);
        free(text);
    }
    putc('\n', out);
}

static void arguments(const dgm_cli_command *c, FILE *out)
{
    if (!c->arguments)
        return;
    fputs("Arguments:\n", out);
    for (const dgm_cli_argument *a = c->arguments; a->name; a++)
        row(a->name, a->about, 12, out);
    putc('\n', out);
}

static void subcommands(FILE *out)
{
    fputs("Commands:\n", out);
    for (const dgm_cli_command *const *c = dgm_cli_commands; *c; c++) {
        if (!(*c)->hidden)
            row((*c)->name, (*c)->about, 12, out);
    }
    putc('\n', out);
}

void dgm_cli_help(const dgm_cli_command *c, FILE *out)
{
    fputs("Usage: ", out);
    dgm_cli_synopsis(c, "", out);
    fputs("\n\n", out);
    paragraphs(c->text, out);
    if (c == &dgm_cli_root)
        subcommands(out);
    options(c, out);
    if (c != &dgm_cli_root)
        arguments(c, out);
    fputs("Exit status:\n", out);
    for (const dgm_cli_note *e = c->exits; e && e->head; e++)
        row(e->head, e->about, 5, out);
    fputs("\nExamples:\n", out);
    for (const dgm_cli_note *e = c->examples; e && e->head; e++)
        fprintf(out, "%s  # %s\n  %s\n", e == c->examples ? "" : "\n", e->about, e->head);
}
