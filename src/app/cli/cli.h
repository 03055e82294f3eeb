/*
 * app/cli/cli.h - the command line of the program `dragoman`: one table, and everything that is made from it.
 *
 * cli_table.c describes every command, option, argument, exit status and example. The parser, the
 * help texts, the man pages and the completions are made from that table and name no command: a new
 * command is a row there and a run function. This folder uses the library as any other program would:
 * only <dragoman/...>, libc and POSIX; only main.c includes the server and the client.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <dragoman/dragoman.h>

/* Exit statuses. */
enum { DGM_CLI_OK = 0, DGM_CLI_FAILED = 1, DGM_CLI_MISUSED = 2 };

/* ---- the table ----------------------------------------------------------------------------------- */

/* The values that an argument or option allows: one word of a list, a file name, or any text. */
typedef struct dgm_cli_kind {
    const char *noun;              /* "format": what error messages call it */
    const char *(*word)(size_t i); /* the i-th of its words, NULL after the last; NULL: any text */
    bool file;
} dgm_cli_kind;

/* Texts of the table are plain English in ASCII; `backticks` mark what is typed literally. */

typedef struct dgm_cli_option {
    const char *name;         /* "from": typed --from */
    char letter;              /* 'f': typed -f; 0: none */
    const char *value;        /* what follows it, "FORMAT"; NULL: nothing does */
    const dgm_cli_kind *kind; /* of the value */
    bool required;
    bool repeats;      /* each time adds a value; otherwise the last one counts */
    const char *about; /* a phrase, also for completions */
    const char *more;  /* sentences for help and manual; NULL: none */
} dgm_cli_option;

typedef struct dgm_cli_argument {
    const char *name;
    const dgm_cli_kind *kind;
    bool required;
    bool repeats; /* the last one may */
    const char *about;
    const char *implied; /* of the first: a word that may be left out; NULL: none */
} dgm_cli_argument;

/* An exit status and when it comes; an example and what it shows. */
typedef struct dgm_cli_note {
    const char *head;
    const char *about;
} dgm_cli_note;

typedef struct dgm_cli_line dgm_cli_line;

/* The arrays end with a row of zeros; NULL is an empty one. */
typedef struct dgm_cli_command {
    const char *name;
    const char *about; /* a phrase */
    const char *text;  /* paragraphs with an empty line between them */
    const dgm_cli_option *options;
    const dgm_cli_argument *arguments;
    const dgm_cli_note *exits;
    const dgm_cli_note *examples; /* head: the command line */
    bool hidden;                  /* for the build, not for people */
    bool page;                    /* has a man page of its own, installed by the top meson.build */
    int (*run)(const dgm_cli_line *line);
} dgm_cli_command;

extern const dgm_cli_command dgm_cli_root;              /* `dragoman` itself */
extern const dgm_cli_command *const dgm_cli_commands[]; /* ends with NULL */

extern const dgm_cli_kind dgm_cli_framings; /* in the order of dgm_framing */
extern const dgm_cli_kind dgm_cli_forms;    /* in the order of dgm_form */

extern int (*dgm_cli_outside)(const dgm_cli_line *line); /* set by main() */

/* NULL: no command has that name. */
const dgm_cli_command *dgm_cli_command_find(const char *name);

/* ---- the command line (cli_args.c) --------------------------------------------------------------- */

#define DGM_CLI_MAX_OPTIONS 32 /* of one command; a test looks at the table */
#define DGM_CLI_MAX_VALUES 64  /* of options that repeat, all together */

struct dgm_cli_line {
    const dgm_cli_command *command;
    /* by row of the table: the option's value, "" for a flag; NULL: not given */
    const char *values_by_row[DGM_CLI_MAX_OPTIONS];
    struct {
        const dgm_cli_option *option;
        const char *value;
    } values[DGM_CLI_MAX_VALUES]; /* of options that repeat, in their order */
    size_t n_values;
    char **args;
    size_t n_args;
};

/* What is wrong with a command line, and what to do about it. */
typedef struct dgm_cli_misuse {
    char what[400];
    char hint[400];
} dgm_cli_misuse;

/* Checks everything the table knows. Reorders argv: the line's args are in there. */
bool dgm_cli_parse(int argc, char **argv, dgm_cli_line *ret_line, dgm_cli_misuse *ret_misuse);

/* The value of an option that the command has ("" for a flag); NULL: not given. */
const char *dgm_cli_get(const dgm_cli_line *line, const char *option);

/* The i-th value of an option that repeats; NULL after the last. */
const char *dgm_cli_get_nth(const dgm_cli_line *line, const char *option, size_t i);

/* Which of the kind's words was typed; SIZE_MAX: not one of them. */
size_t dgm_cli_find_word(const dgm_cli_kind *kind, const char *typed);

/* ---- what is made from the table ------------------------------------------------------------------ */

/* One line without its newline. `mark` is written before and after text that is typed literally. */
void dgm_cli_synopsis(const dgm_cli_command *c, const char *mark, FILE *out);
void dgm_cli_help(const dgm_cli_command *c, FILE *out);
void dgm_cli_man(const dgm_cli_command *c, FILE *out);
void dgm_cli_bash(FILE *out);
void dgm_cli_zsh(FILE *out);
void dgm_cli_fish(FILE *out);

/* ---- text (cli_help.c) ------------------------------------------------------------------------------ */

/* Columns a text takes on a terminal. */
size_t dgm_cli_width(const char *text);

/* Writes text, `code` as 'code', broken at blanks so that no line is longer than `width`; lines after
 * the first begin at column `indent`, where the first is taken to begin. Ends with a newline. */
void dgm_cli_wrap(const char *text, size_t indent, size_t width, FILE *out);

void dgm_cli_spaces(size_t n, FILE *out);
void dgm_cli_json_string(const char *text, FILE *out); /* with its quotes */

/* Prints what c lost or changed of the file to standard error (cli_formats.c). */
void dgm_cli_print_losses(const char *file, const dgm_converter *c, bool json);

/* "dragoman: ...", "hint: ..." on standard error, one line, control characters made visible. */
void dgm_cli_complain(const char *fmt, ...) DGM_PRINTF(1, 2);
void dgm_cli_hint(const char *fmt, ...) DGM_PRINTF(1, 2);

/* Complains, points to the help of the command, returns DGM_CLI_MISUSED. */
int dgm_cli_refuse(const dgm_cli_line *line, const char *fmt, ...) DGM_PRINTF(2, 3);

/* ---- bytes in and out (cli_io.c) ---------------------------------------------------------------------- */

/*
 * Where a conversion goes: standard output, or a file that appears under its name when it is
 * complete. Anything but a regular file (a device, a pipe) is written directly.
 */
typedef struct dgm_cli_output {
    int fd;
    const char *name; /* for messages */
    char *target;     /* the file to become; NULL: written directly */
    char *temporary;  /* what it is called until then */
    bool owns_fd;
    bool empty; /* nothing written since the caller set it */
    char last;  /* the byte written last */
} dgm_cli_output;

/* These complain themselves when they return false. path NULL or "-": standard output. */
bool dgm_cli_output_open(dgm_cli_output *o, const char *path);
bool dgm_cli_output_write(dgm_cli_output *o, const char *p, size_t n);
bool dgm_cli_output_commit(dgm_cli_output *o); /* then there is nothing left to abandon */
void dgm_cli_output_abandon(dgm_cli_output *o);

/* read(2) that waits out interruptions and non-blocking descriptors: bytes, 0 at the end, -1. */
long dgm_cli_read(int fd, char *to, size_t n);

/* Ends the way a program does whose reader went away: silently, by SIGPIPE. */
void dgm_cli_end_by_sigpipe(void);

/* ---- the commands ------------------------------------------------------------------------------------- */

int dgm_cli_run_convert(const dgm_cli_line *line);
int dgm_cli_run_compact(const dgm_cli_line *line);
int dgm_cli_run_formats(const dgm_cli_line *line);

/* All of main(). */
int dgm_cli_main(int argc, char **argv);
