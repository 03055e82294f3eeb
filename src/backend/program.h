/*
 * backend/program.h - programs that the configuration names: those of exec agents and of exec tools.
 *
 * Which variables of the server's environment a program gets is the rule of net/process.h.
 */
#pragma once

#include "backend/backend.h"
#include "base/buf.h"
#include "net/process.h"

typedef struct dgm_program {
    const char **argv; /* ends with NULL */
    const char *cwd;   /* NULL: ours */
    const char **env;  /* without the variables of a run; ends with NULL */
    size_t n_env;
    dgm_str withheld; /* names of variables that it does not get, for the log of a failure */
} dgm_program;

/* As the settings have it. */
typedef struct dgm_program_settings {
    const dgm_json *command;           /* DGM_SETTING_COMMAND: a text is a line for /bin/sh */
    const dgm_json *env, *inherit_env; /* DGM_SETTING_ENV and DGM_SETTING_NAMES; NULL: none */
    dgm_str cwd;
} dgm_program_settings;

/* Rows for the table of a type whose settings have this member. The row of the command is its own. */
#define DGM_PROGRAM_SETTINGS(T, p)                                                                 \
    {"env", DGM_SETTING_ENV, offsetof(T, p.env), .def = "{}",                                      \
     .about = "environment variables for it: `NAME: value`"},                                      \
        {"inherit_env",                                                                            \
         DGM_SETTING_NAMES,                                                                        \
         offsetof(T, p.inherit_env),                                                               \
         .choices = "all",                                                                         \
         .def = "[]",                                                                              \
         .about =                                                                                  \
             "further variables of the server's environment that are passed to it, or `all`"},     \
    {                                                                                              \
        "cwd", DGM_SETTING_STR, offsetof(T, p.cwd), .def = "the folder of the configuration",      \
                                                    .about = "the folder that it runs in"          \
    }

/* Everything is copied. A program that is missing is found now, not by the first caller: DGM_BAD_PARAMS at `command`.
 * options: NULL is allowed. */
dgm_code dgm_program_open(const dgm_program_settings *settings, const dgm_agent_options *options,
                          dgm_arena *a, dgm_program *ret_program, dgm_err *err);

/* The environment of one run: also DRAGOMAN_TASK_ID and the like. call_key: of a tool call, as DRAGOMAN_CALL_ID; absent: none */
const char **dgm_program_env(const dgm_program *p, const dgm_run_input *in, dgm_str call_key,
                             dgm_arena *a);
/* A key for what a program stores of a context: unique over tenants, principals and agents. */
dgm_str dgm_program_context_key(dgm_arena *a, const dgm_run_input *in);

/* ---- what it writes ---------------------------------------------------------------------------------------- */

/* Bytes to UTF-8: invalid bytes become U+FFFD. A character cut off at the end is kept in `tail` for
 * the next call, unless it is the last. The result is borrowed from bytes or lives in the arena. */
typedef struct dgm_program_tail {
    char p[4];
    size_t n;
} dgm_program_tail;
dgm_str dgm_program_clean_text(dgm_arena *a, dgm_program_tail *tail, dgm_str bytes, bool last);

/* Its last lines on stderr: `b` has no limit of its own. */
void dgm_program_add_error_line(dgm_buf *b, dgm_str line, dgm_line_end end);
dgm_str dgm_program_errors(const dgm_buf *b); /* whole lines, if there are any */
