/*
 * cli_table_server.c - the rows of the table about running a server and looking after its files.
 */
#include "cli_table.h"

static const char *db_word(size_t i)
{
    static const char *const words[] = {"check", "backup", "restore", "vacuum", "export"};
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const char *init_word(size_t i)
{
    return i == 0 ? "exec" : NULL;
}

static const dgm_cli_kind db_actions = {"action", db_word, false};
static const dgm_cli_kind init_kinds = {"kind of agent", init_word, false};

const dgm_cli_command dgm_cli_serve = {
    .name = "serve",
    .about = "run the server: agents behind A2A 1.0 and 0.3",
    .text =
        "Serves agents over A2A 1.0 and 0.3, JSON-RPC and HTTP+JSON at one address, with tasks "
        "that survive a restart and streams that can be resumed. Without a configuration it runs "
        "the `demo` agent at 127.0.0.1:8484 and says what to try.\n\n"
        "Settings come from the defaults, the profile, the file and the command line; the later "
        "one wins. Every mistake in the file is told at once, with its line. Addresses that "
        "others can reach are refused without tokens, unless `--insecure` is given.\n\n"
        "SIGTERM and SIGINT stop it: running requests are answered, streams end properly, and "
        "what was acknowledged is in the store.",
    .options =
        OPTIONS({.name = "config",
                 .letter = 'c',
                 .value = "FILE",
                 .kind = &dgm_cli_files,
                 .about = "read the configuration from FILE",
                 .more = "YAML, or JSON if it ends in `.json`."},
                {.name = "listen",
                 .value = "ADDRESS",
                 .kind = &dgm_cli_any_text,
                 .about = "where to listen: `ADDR:PORT` or `unix:PATH`",
                 .more = "Default `127.0.0.1:8484`; port 0 takes a free one."},
                {.name = "store",
                 .value = "URL",
                 .kind = &dgm_cli_any_text,
                 .about = "where tasks are kept: `memory:` or `sqlite:PATH`",
                 .more = "Default `sqlite:dragoman.db`."},
                {.name = "agent",
                 .value = "TYPE",
                 .kind = &dgm_cli_any_text,
                 .about = "run this agent instead of the file's",
                 .more = "`hello`, `demo`, `exec`, `bench`, `tck`."},
                {.name = "profile",
                 .value = "NAME",
                 .kind = &dgm_cli_any_text,
                 .about = "a named list of settings",
                 .more = "`tck` is the one for the conformance kits."},
                {.name = "insecure", .about = "listen to everybody without tokens"},
                {.name = "check", .about = "print the settings it would run with, and exit"}, HELP),
    .exits = NOTES(EXIT_0, {"1", "it could not start, or the configuration is wrong"}, EXIT_2),
    .examples =
        NOTES({"dragoman serve --agent demo --store memory:", "An agent to play with"},
              {"dragoman serve -c dragoman.yaml", "What `dragoman init exec` has made"},
              {"dragoman serve --check --listen 127.0.0.1:9000", "What would it run with?"}),
    .page = true,
    .run = dgm_cli_run_outside,
};

const dgm_cli_command dgm_cli_init = {
    .name = "init",
    .about = "write a first configuration and an agent to change",
    .text = "Writes a commented `dragoman.yaml` and an agent that answers at once into FOLDER "
            "(default: here). Files that are there already are left alone.",
    .options = OPTIONS(HELP),
    .arguments =
        ARGUMENTS({"KIND", &init_kinds, true, false,
                   "`exec`: a program that reads a message and writes lines of JSON"},
                  {"FOLDER", &dgm_cli_files, false, false, "where to; made if it is not there"}),
    .exits = NOTES(EXIT_0, {"1", "something is there already, or could not be written"}, EXIT_2),
    .examples = NOTES({"dragoman init exec my-agent", "Then `cd my-agent` and `dragoman serve`"}),
    .page = true,
    .run = dgm_cli_run_outside,
};

const dgm_cli_command dgm_cli_db = {
    .name = "db",
    .about = "check, back up, restore, shrink or export a database",
    .text =
        "`check` looks at every page and record of a database and names each fault. `backup` "
        "writes a copy to FILE, which must not exist; `restore` puts one in place and keeps what "
        "was there beside it. `vacuum` gives free pages back to the disk. `export` prints one JSON "
        "object a line for every record, by task.\n\n"
        "`check`, `backup` and `export` may run while a server uses the database; `restore` and "
        "`vacuum` want it alone and say who has it.",
    .options = OPTIONS(
        {.name = "database",
         .letter = 'd',
         .value = "PATH",
         .kind = &dgm_cli_files,
         .about = "the database",
         .more = "Default `dragoman.db`, as for `dragoman serve`; `sqlite:PATH` is understood."},
        HELP),
    .arguments = ARGUMENTS(
        {"ACTION", &db_actions, true, false, "`check`, `backup`, `restore`, `vacuum` or `export`"},
        {"FILE", &dgm_cli_files, false, false, "of `backup`: where to; of `restore`: where from"}),
    .exits =
        NOTES(EXIT_0, {"1", "the database has faults, or something could not be done"}, EXIT_2),
    .examples = NOTES({"dragoman db check", "Is all well?"},
                      {"dragoman db backup saved.db", "A copy, also while a server runs"},
                      {"dragoman db export -d dragoman.db", "Every record as a line of JSON"}),
    .page = true,
    .run = dgm_cli_run_outside,
};
