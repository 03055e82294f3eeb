/*
 * cli_text.c - text for people: columns, quotes, complaints.
 */
#include "cli.h"

#include <stdarg.h>
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

void dgm_cli_plain(const char *text, FILE *out)
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
