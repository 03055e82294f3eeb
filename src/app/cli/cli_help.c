/*
 * cli_help.c - the output of --help, made from the table; columns, quotes and errors for people.
 */
#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- columns -------------------------------------------------------------------------------------- */

static size_t width_of(const char *p, size_t n)
{
    size_t width = 0;
    for (size_t i = 0; i < n; i++)
        width += ((unsigned char)p[i] & 0xc0) != 0x80;
    return width;
}

size_t dgm_cli_width(const char *text)
{
    return width_of(text, strlen(text));
}

static void write_plain(const char *p, size_t n, FILE *out)
{
    for (size_t i = 0; i < n; i++)
        putc(p[i] == '`' ? '\'' : p[i], out);
}

/* `code` as 'code' */
static void cli_plain(const char *text, FILE *out)
{
    write_plain(text, strlen(text), out);
}

void dgm_cli_spaces(size_t n, FILE *out)
{
    while (n--)
        putc(' ', out);
}

void dgm_cli_wrap(const char *text, size_t indent, size_t width, FILE *out)
{
    size_t column = indent;
    for (const char *p = text; *p;) {
        size_t n, w;
        if (*p == ' ') {
            p++;
            continue;
        }
        n = strcspn(p, " ");
        w = width_of(p, n);
        if (column > indent && column + 1 + w > width) {
            putc('\n', out);
            dgm_cli_spaces(indent, out);
            column = indent;
        } else if (column > indent) {
            putc(' ', out);
            column++;
        }
        write_plain(p, n, out);
        column += w;
        p += n;
    }
    putc('\n', out);
}

/* ---- help ------------------------------------------------------------------------------------------------------ */

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
    cli_plain(head, out);
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

/* ---- JSON --------------------------------------------------------------------------------------------- */

void dgm_cli_json_string(const char *text, FILE *out)
{
    putc('"', out);
    for (const char *p = text; *p; p++) {
        if (*p == '"' || *p == '\\')
            fprintf(out, "\\%c", *p);
        else if ((unsigned char)*p < 0x20)
            fprintf(out, "\\u%04x", (unsigned)*p);
        else
            putc(*p, out);
    }
    putc('"', out);
}

/* ---- complaints --------------------------------------------------------------------------------------- */

/* File names and text from a document may contain control characters that a terminal would obey: C0,
 * DEL, and C1 (0xc2 0x80..0x9f in UTF-8). These are shown as \xNN. */
static void DGM_PRINTF(2, 0) say(const char *prefix, const char *fmt, va_list args)
{
    char text[8192], line[4 * sizeof text];
    size_t n = 0;
    vsnprintf(text, sizeof text, fmt, args);
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p, next = (unsigned char)p[1];
        if (c < 0x20 || c == 0x7f || (c == 0xc2 && next >= 0x80 && next < 0xa0))
            n += (size_t)snprintf(line + n, sizeof line - n, "\\x%02x", c);
        else
            line[n++] = *p;
    }
    line[n] = '\0';
    fprintf(stderr, "%s: %s\n", prefix, line);
}

void dgm_cli_complain(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say("dragoman", fmt, args);
    va_end(args);
}

void dgm_cli_hint(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say("hint", fmt, args);
    va_end(args);
}

int dgm_cli_refuse(const dgm_cli_line *line, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say("dragoman", fmt, args);
    va_end(args);
    dgm_cli_hint("`dragoman help %s` explains", line->command->name);
    return DGM_CLI_MISUSED;
}
