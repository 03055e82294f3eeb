/*
 * cli_table.c - the table of all commands, options, arguments, exit statuses and examples.
 *
 * --help, the man pages and the completions are made from these rows, and from those of
 * cli_table_convert.c, cli_table_client.c and cli_table_server.c. To add a command: a dgm_cli_command, a line in
 * dgm_cli_commands, a run function. What must stay true is in test_cli.c.
 */
#include "cli_table.h"

#include <string.h>

/* ---- kinds of words ------------------------------------------------------------------------------- */

static const char *format_word(size_t i)
{
    const dgm_format_info *format = dgm_format_at(i);
    return format ? format->name : NULL;
}

static const char *source_word(size_t i)
{
    return i == 0 ? "auto" : format_word(i - 1);
}

static const char *framing_word(size_t i)
{
    static const char *const words[] = {"auto", "json", "array", "lines", "sse"};
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const char *form_word(size_t i)
{
    static const char *const words[] = {"auto", "events", "response", "messages", "request"};
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const char *answer_word(size_t i)
{
    static const char *const words[] = {"auto", "status"};
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const char *object_word(size_t i)
{
    const char *name = dgm_object_kind_name((dgm_object_kind)(i + 1));
    return *name ? name : NULL;
}

static const char *shell_word(size_t i)
{
    static const char *const words[] = {"bash", "zsh", "fish"};
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const char *command_word(size_t i)
{
    for (const dgm_cli_command *const *c = dgm_cli_commands; *c; c++) {
        if (!(*c)->hidden && i-- == 0)
            return (*c)->name;
    }
    return NULL;
}

const dgm_cli_kind dgm_cli_formats = {"format", format_word, false};
const dgm_cli_kind dgm_cli_sources = {"format", source_word, false};
const dgm_cli_kind dgm_cli_framings = {"framing", framing_word, false};
const dgm_cli_kind dgm_cli_forms = {"form", form_word, false};
const dgm_cli_kind dgm_cli_answers = {"source of the answer", answer_word, false};
const dgm_cli_kind dgm_cli_objects = {"kind of object", object_word, false};
const dgm_cli_kind dgm_cli_shells = {"shell", shell_word, false};
const dgm_cli_kind dgm_cli_command_names = {"command", command_word, false};
const dgm_cli_kind dgm_cli_files = {"file", NULL, true};
const dgm_cli_kind dgm_cli_any_text = {"text", NULL, false};

/* ---- the commands --------------------------------------------------------------------------------- */

static int run_help(const dgm_cli_line *line)
{
    dgm_cli_help(line->n_args ? dgm_cli_command_find(line->args[0]) : &dgm_cli_root, stdout);
    return DGM_CLI_OK;
}

static int run_version(const dgm_cli_line *line)
{
    (void)line;
    printf("dragoman %s\n", dgm_version());
    return DGM_CLI_OK;
}

static int run_root(const dgm_cli_line *line)
{
    if (dgm_cli_get(line, "version"))
        return run_version(line);
    dgm_cli_help(&dgm_cli_root, stderr);
    return DGM_CLI_MISUSED;
}

static int run_man(const dgm_cli_line *line)
{
    const char *page = line->n_args ? line->args[0] : "dragoman";
    const dgm_cli_command *c = &dgm_cli_root;
    if (strncmp(page, "dragoman-", 9) == 0)
        page += 9;
    if (strcmp(page, "dragoman") != 0 && !(c = dgm_cli_command_find(page)))
        return dgm_cli_refuse(line, "unknown man page '%s'", page);
    dgm_cli_man(c, stdout);
    return DGM_CLI_OK;
}

static int run_completion(const dgm_cli_line *line)
{
    switch (line->args[0][0]) { /* one of shell_word(): the parser saw to it */
    case 'b': dgm_cli_bash(stdout); break;
    case 'z': dgm_cli_zsh(stdout); break;
    default: dgm_cli_fish(stdout); break;
    }
    return DGM_CLI_OK;
}

const dgm_cli_command dgm_cli_root = {
    .name = "dragoman",
    .about = "let any agent talk to any client",
    .text = "Dragoman connects agents and clients. `dragoman serve` serves agents over A2A 1.0 and "
            "0.3, OpenAI Chat Completions and Responses, AG-UI and the AI SDK. `dragoman send` "
            "talks to "
            "any A2A agent. `dragoman convert` translates between these formats, and `dragoman "
            "formats` lists what a translation loses.",
    .options =
        OPTIONS(HELP, {.name = "version", .letter = 'V', .about = "show the version and exit"}),
    .arguments = ARGUMENTS(
        {"COMMAND", &dgm_cli_command_names, true, false,
         "what to do; `dragoman help COMMAND` explains it"},
        {"ARGUMENT", &dgm_cli_any_text, false, true, "the command's own options and arguments"}),
    .exits = NOTES(
        EXIT_0, {"1", "the input was invalid, or something could not be read or written"}, EXIT_2),
    .examples = NOTES({"dragoman convert --from a2a-1.0 --to a2a-0.3 message.json",
                       "A message for an older client"},
                      {"dragoman formats a2a-1.0 openai-chat", "What that conversion loses"}),
    .run = run_root,
};

static const dgm_cli_command version = {
    .name = "version",
    .about = "show the version",
    .text = "The program and its library have the same version.",
    .options = OPTIONS(HELP),
    .exits = NOTES(EXIT_0, EXIT_1_OUTPUT, EXIT_2),
    .examples = NOTES({"dragoman version", "Show the version"}),
    .run = run_version,
};

static const dgm_cli_command help = {
    .name = "help",
    .about = "show help for one command or for all",
    .text = "`dragoman help COMMAND` and `dragoman COMMAND --help` are the same.",
    .options = OPTIONS(HELP),
    .arguments =
        ARGUMENTS({"COMMAND", &dgm_cli_command_names, false, false, "the command to explain"}),
    .exits = NOTES(EXIT_0, EXIT_1_OUTPUT, EXIT_2),
    .examples = NOTES({"dragoman help convert", "All about convert"}),
    .run = run_help,
};

static const dgm_cli_command man = {
    .name = "__man",
    .about = "print a man page",
    .text = "Prints the man page of dragoman or of one command in roff, for the build to "
            "install.",
    .options = OPTIONS(HELP),
    .arguments = ARGUMENTS({"PAGE", &dgm_cli_any_text, false, false,
                            "`dragoman`, a command, or `dragoman-` and a command"}),
    .exits = NOTES(EXIT_0, EXIT_1_OUTPUT, EXIT_2),
    .examples = NOTES({"dragoman __man convert | man -l -", "Read it without installing"}),
    .hidden = true,
    .run = run_man,
};

static const dgm_cli_command completion = {
    .name = "__completion",
    .about = "print a shell's completion script",
    .text = "Prints the script that completes dragoman's command lines, for the build to "
            "install.",
    .options = OPTIONS(HELP),
    .arguments = ARGUMENTS({"SHELL", &dgm_cli_shells, true, false, "whose script"}),
    .exits = NOTES(EXIT_0, EXIT_1_OUTPUT, EXIT_2),
    .examples = NOTES({"source <(dragoman __completion bash)", "Complete in this shell"}),
    .hidden = true,
    .run = run_completion,
};

/* main() says how: server and client are no part of the library that this folder is built on. */
int (*dgm_cli_outside)(const dgm_cli_line *line);

int dgm_cli_run_outside(const dgm_cli_line *line)
{
    return dgm_cli_outside ? dgm_cli_outside(line) : DGM_CLI_FAILED;
}

const dgm_cli_command *const dgm_cli_commands[] = {
    &dgm_cli_serve,
    &dgm_cli_send,
    &dgm_cli_try,
    &dgm_cli_task,
    &dgm_cli_card,
    &dgm_cli_connect,
    &dgm_cli_init,
    &dgm_cli_schema,
    &dgm_cli_db,
    &dgm_cli_mcp,
    &dgm_cli_bench,
    &dgm_cli_lint,
    &dgm_cli_convert,
    &dgm_cli_compact,
    &dgm_cli_formats_command,
    &version,
    &help,
    &man,
    &completion,
    &dgm_cli_worker,
    &dgm_cli_mcp_demo,
    &dgm_cli_mcp_conformance,
    NULL,
};

const dgm_cli_command *dgm_cli_command_find(const char *name)
{
    for (const dgm_cli_command *const *c = dgm_cli_commands; *c; c++) {
        if (strcmp((*c)->name, name) == 0)
            return *c;
    }
    return NULL;
}
