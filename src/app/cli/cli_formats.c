/*
 * cli_formats.c - `dragoman formats`: the formats, and what a conversion between them loses.
 *
 * All of it comes from the library; docs/internals/losses.md is the --markdown of it.
 */
#include "cli.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- what the library says ------------------------------------------------------------------------- */

struct losses {
    const dgm_loss **at;
    size_t n;
};

/* Groups the losses by kind of object; within a kind the order is the library's. */
static void group(struct losses *l)
{
    for (size_t i = 1; i < l->n; i++) {
        size_t to = i;
        const dgm_loss *row = l->at[i];
        while (to > 0 && strcmp(l->at[to - 1]->object, row->object) != 0)
            to--;
        if (to == 0)
            continue; /* the first of its kind */
        memmove(l->at + to + 1, l->at + to, (i - to) * sizeof *l->at);
        l->at[to] = row;
    }
}

static size_t count_losses(const char *from, const char *to)
{
    return dgm_format_losses(dgm_format_id_by_name(from), dgm_format_id_by_name(to), NULL, 0);
}

static struct losses losses_of(const char *from, const char *to)
{
    struct losses l = {NULL, count_losses(from, to)};
    if (l.n > 0 && (l.at = calloc(l.n, sizeof *l.at)))
        l.n = dgm_format_losses(dgm_format_id_by_name(from), dgm_format_id_by_name(to), l.at, l.n);
    else
        l.n = 0;
    group(&l);
    return l;
}

static const char *whole(const char *member)
{
    return *member ? member : "(all of it)";
}

/* ---- for a person ------------------------------------------------------------------------------------ */

/* The terminal's width; elsewhere lines stay whole, for grep. */
static size_t line_width(void)
{
    struct winsize w;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col >= 40)
        return w.ws_col;
    return isatty(STDOUT_FILENO) ? 80 : (size_t)-1;
}

static size_t widest_name(size_t n)
{
    size_t widest = 0;
    for (size_t i = 0; i < n; i++) {
        size_t w = strlen(dgm_format_at(i)->name);
        widest = w > widest ? w : widest;
    }
    return widest;
}

/* Columns are numbered, not named: the table must still fit when there are a dozen formats. */
static void overview(size_t n)
{
    int names = (int)widest_name(n);
    size_t width = line_width(), column = (size_t)names + 18;
    printf("    %-*s  JSON-RPC  what it is\n", names, "format");
    for (size_t i = 0; i < n; i++) {
        printf("%2zu  %-*s  %-8s  ", i + 1, names, dgm_format_at(i)->name,
               dgm_format_at(i)->envelopes ? "yes" : "no");
        dgm_cli_wrap(dgm_format_at(i)->about, column, width, stdout);
    }
    fputs("\n"
          "Every format converts to every other. The table shows how many things a conversion from "
          "the format\n"
          "of the row to the format of the column loses or changes:\n"
          "\n",
          stdout);
    printf("    %-*s", names, "");
    for (size_t i = 0; i < n; i++)
        printf(" %4zu", i + 1);
    putchar('\n');
    for (size_t i = 0; i < n; i++) {
        printf("%2zu  %-*s", i + 1, names, dgm_format_at(i)->name);
        for (size_t j = 0; j < n; j++)
            printf(" %4zu", count_losses(dgm_format_at(i)->name, dgm_format_at(j)->name));
        putchar('\n');
    }
    printf("\n"
           "To list them: dragoman formats %s %s\n",
           dgm_format_at(0)->name, dgm_format_at(n - 1)->name);
}

static void pair_for_people(const char *from, const char *to)
{
    struct losses l = losses_of(from, to);
    size_t widest = 0, width = line_width();
    if (l.n == 0)
        printf("%s to %s: nothing is lost.\n", from, to);
    else
        printf("%s to %s loses or changes:\n", from, to);
    for (size_t i = 0; i < l.n; i++) {
        size_t w = dgm_cli_width(whole(l.at[i]->member));
        widest = w > widest ? w : widest;
    }
    if (widest > 40)
        widest = 40; /* a longer member has its line to itself */
    for (size_t i = 0; i < l.n; i++) {
        const char *member = whole(l.at[i]->member);
        size_t w = dgm_cli_width(member);
        if (i == 0 || strcmp(l.at[i]->object, l.at[i - 1]->object) != 0)
            printf("\n  %s\n", l.at[i]->object);
        printf("    %s", member);
        if (w > widest)
            putchar('\n');
        dgm_cli_spaces(w > widest ? widest + 6 : widest + 2 - w, stdout);
        dgm_cli_wrap(l.at[i]->what, widest + 6, width, stdout);
    }
    free(l.at);
}

/* ---- for a program ------------------------------------------------------------------------------------- */

static void cli_formats_member(const char *name, const char *value, const char *end)
{
    printf("\"%s\":", name);
    dgm_cli_json_string(value, stdout);
    fputs(end, stdout);
}

static void pair_as_json(const char *from, const char *to)
{
    struct losses l = losses_of(from, to);
    putchar('{');
    cli_formats_member("from", from, ",");
    cli_formats_member("to", to, ",\"losses\":[");
    for (size_t i = 0; i < l.n; i++) {
        fputs(i ? ",\n{" : "\n{", stdout);
        cli_formats_member("object", l.at[i]->object, ",");
        cli_formats_member("member", l.at[i]->member, ",");
        cli_formats_member("what", l.at[i]->what, ",");
        printf("\"reported\":%s}", l.at[i]->when == DGM_LOSS_NOT_REPORTED ? "false" : "true");
    }
    fputs("]}", stdout);
    free(l.at);
}

static void all_as_json(size_t n, const char *from, const char *to)
{
    bool first = true;
    putchar('{');
    cli_formats_member("version", dgm_version(), ",\n\"formats\":[");
    for (size_t i = 0; i < n; i++) {
        fputs(i ? ",\n{" : "\n{", stdout);
        cli_formats_member("name", dgm_format_at(i)->name, ",");
        cli_formats_member("about", dgm_format_at(i)->about, ",");
        printf("\"envelopes\":%s}", dgm_format_at(i)->envelopes ? "true" : "false");
    }
    fputs("],\n\"conversions\":[", stdout);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            if ((from && strcmp(from, dgm_format_at(i)->name) != 0) ||
                (to && strcmp(to, dgm_format_at(j)->name) != 0))
                continue;
            fputs(first ? "\n" : ",\n", stdout);
            pair_as_json(dgm_format_at(i)->name, dgm_format_at(j)->name);
            first = false;
        }
    }
    fputs("]}\n", stdout);
}

/* ---- for docs/ ------------------------------------------------------------------------------------------ */

static void cell(const char *text)
{
    for (const char *p = text; *p; p++) {
        if (*p == '|')
            putchar('\\');
        putchar(*p);
    }
}

/* What the usual renderers make of a heading. */
static void anchor(const char *first, const char *middle, const char *last)
{
    const char *const words[] = {first, middle, last};
    for (size_t i = 0; i < 3; i++) {
        for (const char *p = words[i]; *p; p++) {
            if (isalnum((unsigned char)*p) || *p == '-' || *p == '_')
                putchar(tolower((unsigned char)*p));
            else if (*p == ' ')
                putchar('-');
        }
    }
}

static void table(struct losses l)
{
    fputs("\n| object | member | what happens to it |\n|---|---|---|\n", stdout);
    for (size_t i = 0; i < l.n; i++) {
        const char *tick = l.at[i]->member[0] ? "`" : "";
        printf("| %s | %s", l.at[i]->object, tick);
        cell(whole(l.at[i]->member));
        printf("%s | ", tick);
        cell(l.at[i]->what);
        fputs(" |\n", stdout);
    }
    free(l.at);
}

/* Does the pair have a conversion of its own? If not, it loses what its decoder and its encoder lose. */
static bool has_own_conversion(const char *from, const char *to)
{
    struct losses pair = losses_of(from, to);
    struct losses read = losses_of(from, NULL), written = losses_of(NULL, to);
    size_t found = 0;
    for (size_t i = 0; i < pair.n; i++) {
        for (size_t j = 0; j < read.n; j++)
            found += pair.at[i] == read.at[j];
        for (size_t j = 0; j < written.n; j++)
            found += pair.at[i] == written.at[j];
    }
    bool own = strcmp(from, to) != 0 && !(found == pair.n && pair.n == read.n + written.n);
    free(pair.at);
    free(read.at);
    free(written.at);
    return own;
}

static void link_to(size_t n, const char *first, const char *middle, const char *last)
{
    if (n == 0) {
        putchar('0');
        return;
    }
    printf("[%zu](#", n);
    anchor(first, middle, last);
    putchar(')');
}

static void pair_cell(const char *from, const char *to)
{
    size_t n = count_losses(from, to);
    putchar(' ');
    if (n == 0) {
        fputs("nothing", stdout);
    } else if (has_own_conversion(from, to)) {
        link_to(n, from, " to ", to);
    } else {
        link_to(count_losses(from, NULL), from, ", read", "");
        fputs(" + ", stdout);
        link_to(count_losses(NULL, to), to, ", written", "");
    }
    fputs(" |", stdout);
}

static void sections(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            if (has_own_conversion(dgm_format_at(i)->name, dgm_format_at(j)->name) &&
                count_losses(dgm_format_at(i)->name, dgm_format_at(j)->name)) {
                printf("\n## %s to %s\n", dgm_format_at(i)->name, dgm_format_at(j)->name);
                table(losses_of(dgm_format_at(i)->name, dgm_format_at(j)->name));
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (count_losses(dgm_format_at(i)->name, NULL)) {
            printf("\n## %s, read\n", dgm_format_at(i)->name);
            table(losses_of(dgm_format_at(i)->name, NULL));
        }
        if (count_losses(NULL, dgm_format_at(i)->name)) {
            printf("\n## %s, written\n", dgm_format_at(i)->name);
            table(losses_of(NULL, dgm_format_at(i)->name));
        }
    }
}

static void all_as_markdown(size_t n)
{
    fputs("# What a conversion loses or changes\n"
          "\n"
          "Generated by `dragoman formats --markdown` from the codecs; do not edit. Members that "
          "are not listed are converted unchanged.\n"
          "Unknown members are written back when a format is converted to itself. Members are JSON "
          "pointers in the names of the format\n"
          "that they are lost from, after the type of an event or the role of a message; `*` "
          "matches any step.\n"
          "\n"
          "Formats other than A2A are translated through AG-UI events. A conversion between two of "
          "them loses what is lost when the\n"
          "first format is read, and what is lost when the second format is written.\n"
          "\n"
          "These are the losses that an input can have. `dragoman convert --losses` lists those of "
          "one input.\n"
          "\n",
          stdout);
    for (size_t i = 0; i < n; i++) {
        printf("- `%s`: ", dgm_format_at(i)->name);
        cell(dgm_format_at(i)->about);
        putchar('\n');
    }
    fputs("\n| from \\ to |", stdout);
    for (size_t i = 0; i < n; i++)
        printf(" %s |", dgm_format_at(i)->name);
    fputs("\n|---|", stdout);
    for (size_t i = 0; i < n; i++)
        fputs("---|", stdout);
    for (size_t i = 0; i < n; i++) {
        printf("\n| %s |", dgm_format_at(i)->name);
        for (size_t j = 0; j < n; j++)
            pair_cell(dgm_format_at(i)->name, dgm_format_at(j)->name);
    }
    putchar('\n');
    sections(n);
}

/* ---- the command ----------------------------------------------------------------------------------------- */

int dgm_cli_run_formats(const dgm_cli_line *line)
{
    size_t n = dgm_format_count();
    const char *from = line->n_args > 0 ? line->args[0] : NULL;
    const char *to = line->n_args > 1 ? line->args[1] : NULL;
    bool json = dgm_cli_get(line, "json"), markdown = dgm_cli_get(line, "markdown");

    if (json && markdown)
        return dgm_cli_refuse(line, "--json or --markdown, not both");
    if (markdown && from)
        return dgm_cli_refuse(line, "--markdown prints all formats and needs no arguments");
    if (json) {
        all_as_json(n, from, to);
    } else if (markdown) {
        all_as_markdown(n);
    } else if (!from) {
        overview(n);
    } else if (to) {
        pair_for_people(from, to);
    } else {
        for (size_t i = 0; i < n; i++) {
            if (i > 0)
                putchar('\n');
            pair_for_people(from, dgm_format_at(i)->name);
        }
    }
    return DGM_CLI_OK;
}

/* ---- convert --losses: what a conversion lost or changed, as text or as JSON lines ----------------------------- */

/* The losses behind canonical events are in AG-UI's names, whatever the formats are. */
static const char *names_note(const dgm_loss_seen *seen)
{
    return seen->canonical ? "AG-UI " : "";
}

static void print_loss(const char *file, const dgm_loss_seen *seen)
{
    const dgm_loss *loss = seen->loss;
    char place[64] = "", times[64] = "once";
    if (seen->line)
        snprintf(place, sizeof place, ":%zu:%zu", seen->line, seen->column);
    if (seen->count > 1)
        snprintf(times, sizeof times, "%zu times", seen->count);
    dgm_cli_complain("%s%s: %s%s%s%s: %s (%s)", file, place, names_note(seen), loss->object,
                     *loss->member ? " " : "", loss->member, loss->what, times);
}

static void json_member(const char *name, const char *value, const char *behind)
{
    fprintf(stderr, "\"%s\":", name);
    dgm_cli_json_string(value, stderr);
    fputs(behind, stderr);
}

static void print_loss_json(const char *file, const dgm_loss_seen *seen)
{
    fputc('{', stderr);
    json_member("file", file, ",");
    json_member("names", seen->canonical ? "ag-ui" : "input", ",");
    json_member("object", seen->loss->object, ",");
    json_member("member", seen->loss->member, ",");
    json_member("what", seen->loss->what, ",");
    fprintf(stderr, "\"count\":%zu", seen->count);
    if (seen->line)
        fprintf(stderr, ",\"line\":%zu,\"column\":%zu", seen->line, seen->column);
    if (seen->at[0]) {
        fputc(',', stderr);
        json_member("at", seen->at, "");
    }
    fputs("}\n", stderr);
}

void dgm_cli_print_losses(const char *file, const dgm_converter *c, bool json)
{
    const dgm_loss_seen *seen;
    for (size_t i = 0; (seen = dgm_converter_loss_at(c, i)); i++) {
        if (json)
            print_loss_json(file, seen);
        else
            print_loss(file, seen);
    }
}
