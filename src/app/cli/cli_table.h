/*
 * cli_table.h - macros, kinds of words and commands that the files of the table share.
 */
#pragma once

#include "cli.h"

#define OPTIONS(...)                                                                               \
    (const dgm_cli_option[])                                                                       \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }
#define ARGUMENTS(...)                                                                             \
    (const dgm_cli_argument[])                                                                     \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }
#define NOTES(...)                                                                                 \
    (const dgm_cli_note[])                                                                         \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

/* clang-format off */
#define HELP {.name = "help", .letter = 'h', .about = "show this help and exit"}
#define EXIT_0 {"0", "all went well"}
#define EXIT_1_OUTPUT {"1", "the output could not be written"}
#define EXIT_2 {"2", "the command line was wrong; nothing was read or written"}
/* clang-format on */

/* kinds of words, cli_table.c */
extern const dgm_cli_kind dgm_cli_formats, dgm_cli_sources, dgm_cli_objects, dgm_cli_shells,
    dgm_cli_command_names, dgm_cli_files, dgm_cli_any_text, dgm_cli_answers;

/* cli_table_convert.c */
extern const dgm_cli_command dgm_cli_convert, dgm_cli_compact, dgm_cli_formats_command;

/* cli_table_client.c, cli_table_server.c */
extern const dgm_cli_command dgm_cli_send, dgm_cli_try, dgm_cli_task, dgm_cli_card, dgm_cli_connect,
    dgm_cli_bench, dgm_cli_lint;
extern const dgm_cli_command dgm_cli_serve, dgm_cli_db, dgm_cli_init, dgm_cli_schema, dgm_cli_mcp, dgm_cli_worker,
    dgm_cli_mcp_demo, dgm_cli_mcp_conformance;

/* Runs a command of the server or the client, which main() has registered. */
int dgm_cli_run_outside(const dgm_cli_line *line);
