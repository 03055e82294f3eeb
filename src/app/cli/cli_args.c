/*
 * cli_args.c - checks a command line against the table of commands, and reports what to type instead.
 *
 * --name value, --name=value, -n value, -nvalue; options and arguments in any order; after -- all
 * are arguments; given twice, the last counts unless the table says that it repeats. Long names are
 * not abbreviated: what is unique today would be ambiguous in a script after the next option.
 */
#include "cli.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* ---- the word that was meant ------------------------------------------------------------------- */

#define LONGEST 40 /* longer words are not guessed at */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Letters to insert, delete, replace or swap with a neighbour until a is b. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][LONGEST + 1];
    size_t an = strlen(a), bn = strlen(b);
    if (an > LONGEST || bn > LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= bn; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= an; i++) {
        size_t *row = rows[i % 3], *up = rows[(i + 2) % 3], *upup = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= bn; j++) {
            row[j] = least(up[j] + 1, row[j - 1] + 1);
            row[j] = least(row[j], up[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], upup[j - 2] + 1);
        }
    }
    return rows[an % 3][bn];
}

struct guess {
    const char *typed;
    const char *best;
    size_t distance;
};

static void consider(struct guess *g, const char *word)
{
    size_t n = strlen(g->typed), far;
    if (n == 0)
        return;
    far = distance(g->typed, word);
    if (far > 1 && n > 1 && strncmp(g->typed, word, n) == 0)
        far = 1; /* the beginning of a word is as good as a slip */
    if (far <= (n < 4 ? 1 : n / 3 + 1) && (!g->best || far < g->distance)) {
        g->best = word;
        g->distance = far;
    }
}

/* The word of the kind that was probably meant; NULL: none is near. */
static const char *cli_nearest(const dgm_cli_kind *kind, const char *typed)
{
    struct guess g = {typed, NULL, 0};
    const char *word;
    for (size_t i = 0; kind->word && (word = kind->word(i)); i++)
        consider(&g, word);
    return g.best;
}

/* ---- what is wrong -------------------------------------------------------------------------------- */

static void DGM_PRINTF(2, 3) misuse_set(dgm_cli_misuse *m, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(m->what, sizeof m->what, fmt, args);
    va_end(args);
}

static void DGM_PRINTF(2, 3) advise(dgm_cli_misuse *m, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(m->hint, sizeof m->hint, fmt, args);
    va_end(args);
}

static void advise_help(dgm_cli_misuse *m, const dgm_cli_command *c)
{
    if (c == &dgm_cli_root)
        advise(m, "`dragoman help` lists the commands");
    else
        advise(m, "`dragoman help %s` explains", c->name);
}

#define FEW_WORDS 18 /* as many as there are formats or commands, with room for more */

/* "did you mean ...?" when something is near, all words when they are few, else where they are: for a
 * command, with what they do. */
static void advise_word(dgm_cli_misuse *m, const dgm_cli_command *c, const dgm_cli_kind *kind,
                        const char *typed)
{
    const char *near = cli_nearest(kind, typed), *word;
    size_t n = 0;
    if (near) {
        advise(m, "did you mean '%s'?", near);
        return;
    }
    while (kind->word(n))
        n++;
    if (n > FEW_WORDS || c == &dgm_cli_root) {
        advise_help(m, c);
        return;
    }
    advise(m, "allowed values:");
    for (size_t i = 0; (word = kind->word(i)); i++) {
        size_t len = strlen(m->hint);
        snprintf(m->hint + len, sizeof m->hint - len, "%s %s", i ? "," : "", word);
    }
}

size_t dgm_cli_find_word(const dgm_cli_kind *kind, const char *typed)
{
    const char *word;
    for (size_t i = 0; (word = kind->word(i)); i++) {
        if (strcmp(word, typed) == 0)
            return i;
    }
    return SIZE_MAX;
}

static bool good_word(const dgm_cli_command *c, const dgm_cli_kind *kind, const char *typed,
                      dgm_cli_misuse *m)
{
    if (!kind || !kind->word || dgm_cli_find_word(kind, typed) != SIZE_MAX)
        return true;
    if (strcmp(kind->noun, "action") == 0 && strstr(typed, "://")) {
        misuse_set(m, "%s needs an action before the URL", c->name);
        bool lists = dgm_cli_find_word(kind, "list") != SIZE_MAX;
        advise(m, "dragoman %s %s %s", c->name, lists ? "list" : kind->word(0), typed);
        return false;
    }
    misuse_set(m, "unknown %s '%s'", kind->noun, typed);
    advise_word(m, c, kind, typed);
    return false;
}

/* ---- options ------------------------------------------------------------------------------------- */

static const dgm_cli_option *option_by_name(const dgm_cli_command *c, const char *name, size_t n)
{
    for (const dgm_cli_option *o = c->options; o && o->name; o++) {
        if (strlen(o->name) == n && memcmp(o->name, name, n) == 0)
            return o;
    }
    return NULL;
}

static const dgm_cli_option *option_by_letter(const dgm_cli_command *c, char letter)
{
    for (const dgm_cli_option *o = c->options; o && o->name; o++) {
        if (o->letter == letter)
            return o;
    }
    return NULL;
}

static bool no_such_option(const dgm_cli_command *c, const char *typed, size_t n, dgm_cli_misuse *m)
{
    char name[LONGEST + 1] = "";
    struct guess g = {name, NULL, 0};
    misuse_set(m, "unknown option '%.*s'", (int)n, typed);
    advise_help(m, c);
    if (n < 3 || n - 2 > LONGEST || strncmp(typed, "--", 2) != 0)
        return false;
    memcpy(name, typed + 2, n - 2);
    for (const dgm_cli_option *o = c->options; o && o->name; o++)
        consider(&g, o->name);
    if (g.best) {
        advise(m, "did you mean '--%s'?", g.best);
        return false;
    }
    for (const dgm_cli_command *const *other = dgm_cli_commands; c == &dgm_cli_root && *other;
         other++) {
        if (option_by_name(*other, name, n - 2)) {
            advise(m, "put it after a command: `dragoman %s %.*s`", (*other)->name, (int)n, typed);
            break;
        }
    }
    return false;
}

static bool store_value(dgm_cli_line *line, const dgm_cli_option *o, const char *value,
                        dgm_cli_misuse *m)
{
    if (line->n_values == DGM_CLI_MAX_VALUES) {
        misuse_set(m, "more than %d options that may be repeated", DGM_CLI_MAX_VALUES);
        advise_help(m, line->command);
        return false;
    }
    line->values[line->n_values].option = o;
    line->values[line->n_values++].value = value;
    return true;
}

/* Takes the option in argv[*i], and its value from there or from the next. */
static bool parse_option(dgm_cli_line *line, char **argv, int argc, int *i, dgm_cli_misuse *m)
{
    const dgm_cli_command *c = line->command;
    const char *typed = argv[*i], *value = NULL;
    const dgm_cli_option *o;
    size_t n = strlen(typed);
    if (typed[1] == '-') {
        const char *equals = strchr(typed, '=');
        if (equals) {
            n = (size_t)(equals - typed);
            value = equals + 1;
        }
        o = option_by_name(c, typed + 2, n - 2);
    } else {
        n = 2;
        value = typed[2] ? typed + 2 : NULL;
        o = option_by_letter(c, typed[1]);
    }
    if (!o)
        return no_such_option(c, typed, n, m);
    if (!o->value && value) {
        misuse_set(m, "'%.*s' takes no value", (int)n, typed);
        advise_help(m, c);
        return false;
    }
    if (o->value && !value && *i + 1 < argc)
        value = argv[++*i];
    if (o->value && !value) {
        misuse_set(m, "'%.*s' needs a value", (int)n, typed);
        if (o->kind->word)
            advise_word(m, c, o->kind, "");
        else
            advise(m, "--%s %s: %s", o->name, o->value, o->about);
        return false;
    }
    if (value && !good_word(c, o->kind, value, m))
        return false;
    line->values_by_row[o - c->options] = value ? value : "";
    return !o->repeats || store_value(line, o, value, m);
}

/* ---- arguments ------------------------------------------------------------------------------------ */

/* Are the required options there, and arguments as the table wants them? */
static bool good_line(const dgm_cli_line *line, dgm_cli_misuse *m)
{
    const dgm_cli_command *c = line->command;
    const dgm_cli_argument *a = c->arguments;
    const dgm_cli_kind *missing = NULL;
    for (const dgm_cli_option *o = c->options; !missing && o && o->name; o++) {
        if (o->required && !line->values_by_row[o - c->options]) {
            misuse_set(m, "%s needs --%s %s", c->name, o->name, o->value);
            missing = o->kind;
        }
    }
    for (size_t i = 0; !missing && i < line->n_args; i++) {
        if (!a || !a->name) {
            misuse_set(m, "'%s' is one argument too many", line->args[i]);
            advise_help(m, c);
            return false;
        }
        if (!good_word(c, a->kind, line->args[i], m))
            return false;
        if (!a->repeats)
            a++;
    }
    if (!missing && a && a->name && a->required && !(a->repeats && line->n_args)) {
        misuse_set(m, "%s needs %s", c->name, a->name);
        missing = a->kind;
    }
    if (missing && missing->word)
        advise_word(m, c, missing, "");
    else if (missing)
        advise_help(m, c);
    return !missing;
}

/* ---- public --------------------------------------------------------------------------------------- */

bool dgm_cli_parse(int argc, char **argv, dgm_cli_line *ret_line, dgm_cli_misuse *ret_misuse)
{
    dgm_cli_line line = {.command = &dgm_cli_root};
    bool options_over = false;
    line.args = argv; /* arguments move to the front, never past the word being read */
    for (int i = 1; i < argc; i++) {
        if (!options_over && strcmp(argv[i], "--") == 0) {
            options_over = true;
        } else if (!options_over && argv[i][0] == '-' && argv[i][1]) {
            if (!parse_option(&line, argv, argc, &i, ret_misuse))
                return false;
            if (dgm_cli_get(&line, "help"))
                break; /* with --help, the rest of the line may be invalid */
        } else if (line.command == &dgm_cli_root) {
            const dgm_cli_command *c = dgm_cli_command_find(argv[i]);
            if (!c)
                return good_word(line.command, dgm_cli_root.arguments[0].kind, argv[i], ret_misuse);
            line.command = c;
            memset(line.values_by_row, 0, sizeof line.values_by_row);
        } else {
            line.args[line.n_args++] = argv[i];
        }
    }
    /* `dragoman card URL` is `dragoman card get URL`. There is room: argv also had the program and the command. */
    const dgm_cli_argument *a = line.command->arguments;
    size_t most = 0;
    while (a && a->implied && a[most].name)
        most++;
    if (line.n_args && line.n_args < most && dgm_cli_find_word(a->kind, line.args[0]) == SIZE_MAX) {
        memmove(line.args + 1, line.args, line.n_args++ * sizeof *line.args);
        line.args[0] = (char *)(uintptr_t)a->implied; /* arguments are only read */
    }
    if (!dgm_cli_get(&line, "help") && line.command != &dgm_cli_root &&
        !good_line(&line, ret_misuse))
        return false;
    *ret_line = line;
    return true;
}

const char *dgm_cli_get(const dgm_cli_line *line, const char *option)
{
    const dgm_cli_option *o = option_by_name(line->command, option, strlen(option));
    assert(o);
    return o ? line->values_by_row[o - line->command->options] : NULL;
}

const char *dgm_cli_get_nth(const dgm_cli_line *line, const char *option, size_t i)
{
    const dgm_cli_option *o = option_by_name(line->command, option, strlen(option));
    assert(o && o->repeats);
    for (size_t j = 0; j < line->n_values; j++) {
        if (line->values[j].option == o && i-- == 0)
            return line->values[j].value;
    }
    return NULL;
}

/* ---- the program: parse, run, check that the output was written ------------------------------------------------ */

int dgm_cli_main(int argc, char **argv)
{
    dgm_cli_line line;
    dgm_cli_misuse misuse = {"", ""};
    /* Before anything is opened: no file of ours may get the number of a closed standard descriptor. open() returns the
     * lowest free number, which is this one. The wrong direction, so that using it fails as using a closed one does. */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            _exit(DGM_CLI_FAILED);
    }
    if (!dgm_cli_parse(argc, argv, &line, &misuse)) {
        dgm_cli_complain("%s", misuse.what);
        if (misuse.hint[0])
            dgm_cli_hint("%s", misuse.hint);
        return DGM_CLI_MISUSED;
    }
    int status = DGM_CLI_OK;
    if (dgm_cli_get(&line, "help"))
        dgm_cli_help(line.command, stdout);
    else
        status = line.command->run(&line);
    /* Buffered output may also fail to be written, and a network file reports errors only when it is closed. */
    bool failed = ferror(stdout);
    if (fclose(stdout) == 0 && !failed)
        return status;
    if (errno == EPIPE)
        dgm_cli_end_by_sigpipe();
    if (status == DGM_CLI_OK) {
        dgm_cli_complain("cannot write to standard output: %s", strerror(errno));
        status = DGM_CLI_FAILED;
    }
    return status;
}
