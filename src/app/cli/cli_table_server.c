/*
 * cli_table_server.c - the commands that run a server and manage its files.
 */
#include "cli_table.h"

static const char *db_word(size_t i)
{
    static const char *const words[] = {"check", "backup", "restore", "vacuum", "export", "copy"};
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const char *init_word(size_t i)
{
    static const char *const words[] = {"exec", "python", "node", "langgraph",
                                        "llm",  "a2a",    "http"};
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const char *mcp_word(size_t i)
{
    static const char *const words[] = {"list", "call"};
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const dgm_cli_kind mcp_actions = {"action", mcp_word, false};
static const dgm_cli_kind db_actions = {"action", db_word, false};
static const dgm_cli_kind init_kinds = {"kind of agent", init_word, false};

const dgm_cli_command dgm_cli_serve = {
    .name = "serve",
    .about = "serve agents over A2A, OpenAI, AG-UI and the AI SDK",
    .text =
        "Serves agents at one address over A2A 1.0 and 0.3 (JSON-RPC and HTTP+JSON), OpenAI Chat "
        "Completions and Responses (`/v1`), AG-UI (`/ag-ui`) and the AI SDK (`/ai-sdk`). Tasks "
        "survive a restart and streams can be resumed.\n\n"
        "Without `--config` it reads `./dragoman.yaml` if that file exists. Without a file it runs "
        "the `demo` agent at 127.0.0.1:8484 and prints what to try. Settings come from the "
        "defaults, the profile, the file and the command line; the later one wins. All errors in "
        "the file are reported at once, each with its line. Listening on an address that other "
        "machines can reach needs tokens, or `--insecure`.\n\n"
        "SIGTERM and SIGINT stop it: open requests are answered, streams end properly, and "
        "everything that was acknowledged is stored. SIGHUP reloads the file.\n\n"
        "FILE is an agent in Python or JavaScript (`agent.py`, `agent.mjs`): it is served instead "
        "of the "
        "agents of the configuration.",
    .options = OPTIONS(
        {.name = "config",
         .letter = 'c',
         .value = "FILE",
         .kind = &dgm_cli_files,
         .about = "read the configuration from FILE",
         .more = "YAML, or JSON if it ends in `.json`. Default `./dragoman.yaml`, if it "
                 "exists."},
        {.name = "listen",
         .value = "ADDRESS",
         .kind = &dgm_cli_any_text,
         .about = "where to listen: `ADDR:PORT` or `unix:PATH`",
         .more = "Default `127.0.0.1:8484`. `PORT` alone is on 127.0.0.1. Port 0 uses a "
                 "free one."},
        {.name = "store",
         .value = "URL",
         .kind = &dgm_cli_any_text,
         .about = "where tasks are stored: `memory:`, `sqlite:PATH` or `postgres:CONNINFO`",
         .more = "Default: `dragoman.db` in the folder of the configuration file; without a "
                 "file in `$STATE_DIRECTORY`, else in `$XDG_STATE_HOME/dragoman`, else in "
                 "`~/.local/state/dragoman`."},
        {.name = "agent",
         .value = "TYPE",
         .kind = &dgm_cli_any_text,
         .about = "run this agent instead of the file's",
         .more = "`hello`, `demo`, `exec`, `http`, `bench`, `tck`."},
        {.name = "langgraph",
         .value = "FILE",
         .kind = &dgm_cli_files,
         .about = "serve the graphs of a LangGraph project",
         .more = "FILE is `langgraph.json` or `aion.yaml`: each of its graphs is an agent, the "
                 "first is the "
                 "default. They are served instead of the agents of the configuration."},
        {.name = "profile",
         .value = "NAME",
         .kind = &dgm_cli_any_text,
         .about = "a named list of settings",
         .more = "`tck` is the one for the conformance kits."},
        {.name = "insecure", .about = "allow every address without tokens"},
        {.name = "watch",
         .about = "start workers again when their files change",
         .more =
             "For agents that run in worker processes (`mode: worker`): when a source file in "
             "the agent's folder changes, its process is replaced as soon as it has no run, and "
             "errors of loading are in the log. For development."},
        {.name = "check", .about = "print the settings it would run with, and exit"}, HELP),
    .arguments =
        ARGUMENTS({"FILE", &dgm_cli_files, false, false,
                   "`agent.py`, `agent.mjs` or `agent.js`; `FILE:NAME` if it has several agents"}),
    .exits = NOTES(EXIT_0, {"1", "it could not start, or the configuration is wrong"}, EXIT_2),
    .examples =
        NOTES({"dragoman serve --agent demo --store memory:", "An agent to play with"},
              {"dragoman serve -c dragoman.yaml", "The server that `dragoman init exec` wrote"},
              {"dragoman serve agent.py", "An agent that is a Python file"},
              {"dragoman serve --langgraph langgraph.json", "The graphs of a LangGraph project"},
              {"dragoman serve --check --listen 127.0.0.1:9000", "What would it run with?"}),
    .page = true,
    .run = dgm_cli_run_outside,
};

const dgm_cli_command dgm_cli_init = {
    .name = "init",
    .about = "write a first configuration and an agent to change",
    .text = "Writes a commented `dragoman.yaml`, its JSON Schema for editors, for `exec`, "
            "`python` and `node` a working agent, for `langgraph` a project, into FOLDER (default: "
            "the current folder). Existing files are never "
            "changed.\n\n"
            "`dragoman connect URL` prints the settings of an agent that is already running.",
    .options = OPTIONS(HELP),
    .arguments = ARGUMENTS(
        {"KIND", &init_kinds, true, false,
         "`exec`: a program that reads a message and writes its answer; `python`: an agent as a "
         "Python "
         "function; `node`: an agent as a JavaScript function; `langgraph`: a graph of LangGraph; "
         "`llm`: a language model with tools; `a2a`: an A2A "
         "agent that runs elsewhere; `http`: a service that speaks AG-UI, OpenAI or AI SDK"},
        {"FOLDER", &dgm_cli_files, false, false, "the folder; created if it is missing"}),
    .exits = NOTES(EXIT_0, {"1", "a file exists already, or could not be written"}, EXIT_2),
    .examples = NOTES({"dragoman init exec my-agent",
                       "Then `cd my-agent` and `dragoman serve`, which reads ./dragoman.yaml"},
                      {"dragoman init python my-python-agent", "An agent as a Python function"},
                      {"dragoman init node my-node-agent", "An agent as a JavaScript function"},
                      {"dragoman init langgraph my-graph", "A LangGraph project with a fake model"},
                      {"dragoman init llm my-model", "A language model with tools"},
                      {"dragoman init a2a my-remote", "A server in front of another agent"}),
    .page = true,
    .run = dgm_cli_run_outside,
};

const dgm_cli_command dgm_cli_schema = {
    .name = "schema",
    .about = "print the JSON Schema of dragoman.yaml",
    .text = "Editors use it to complete and check the file: write it to a file and name that file "
            "in the first line of dragoman.yaml, `# yaml-language-server: $schema=FILE`. "
            "`dragoman init` does both.",
    .options = OPTIONS(HELP),
    .exits = NOTES(EXIT_0, EXIT_1_OUTPUT, EXIT_2),
    .examples = NOTES({"dragoman schema > dragoman.schema.json", "The schema as a file"}),
    .page = true,
    .run = dgm_cli_run_outside,
};

const dgm_cli_command dgm_cli_db = {
    .name = "db",
    .about = "check, back up, restore, shrink or export a database",
    .text =
        "`check` reads every page and record of a database and reports each fault. `backup` "
        "writes a copy to FILE, which must not exist. `restore` replaces the database by FILE and "
        "keeps the old one under another name. `vacuum` returns free pages to the disk. `export` "
        "prints one JSON object per line for every record, by task. `copy` copies a "
        "database "
        "to an empty one: from `sqlite:PATH` to `postgres:CONNINFO`, or the reverse.\n\n"
        "`check`, `backup`, `export` and `copy` may run while a server uses the database; data "
        "that it stores later is not in the copy. `restore` and `vacuum` require that no server "
        "uses "
        "the database; the error names the process that does.",
    .options =
        OPTIONS({.name = "database",
                 .letter = 'd',
                 .value = "PATH",
                 .kind = &dgm_cli_files,
                 .about = "the database: PATH or `sqlite:PATH`",
                 .more = "Default: the one that `dragoman serve` would use here (see `--config`)."},
                {.name = "config",
                 .letter = 'c',
                 .value = "FILE",
                 .kind = &dgm_cli_files,
                 .about = "the configuration of the server whose database it is",
                 .more = "Default `./dragoman.yaml`, if it exists."},
                HELP),
    .arguments = ARGUMENTS(
        {"ACTION", &db_actions, true, false,
         "`check`, `backup`, `restore`, `vacuum`, `export` or `copy`"},
        {"FILE", &dgm_cli_files, false, false,
         "`backup`: the new file; `restore`: the backup; `copy`: the database that is read"},
        {"TO", &dgm_cli_files, false, false, "`copy`: the database that is written"}),
    .exits =
        NOTES(EXIT_0, {"1", "the database has faults, or something could not be done"}, EXIT_2),
    .examples = NOTES(
        {"dragoman db check", "Is the database correct?"},
        {"dragoman db backup saved.db", "A copy, also while a server runs"},
        {"dragoman db export -d dragoman.db", "Every record as a line of JSON"},
        {"dragoman db copy sqlite:dragoman.db 'postgres:dbname=dragoman'", "Move to PostgreSQL"}),
    .page = true,
    .run = dgm_cli_run_outside,
};

const dgm_cli_command dgm_cli_mcp = {
    .name = "mcp",
    .about = "list and call the tools of MCP servers",
    .text =
        "`list` prints the tools of an MCP server, or of all servers of the configuration, under "
        "the names that language models get. `call` calls one of them and prints its result.\n\n"
        "SERVER is a name in `mcp` of the configuration, or a URL. A question of the server is "
        "answered by `--answer`, or on a terminal by typing; without an answer it is declined.",
    .options = OPTIONS(
        {.name = "config",
         .letter = 'c',
         .value = "FILE",
         .kind = &dgm_cli_files,
         .about = "the configuration that names the servers",
         .more = "Default `./dragoman.yaml`, if it exists."},
        {.name = "answer",
         .value = "JSON",
         .kind = &dgm_cli_any_text,
         .repeats = true,
         .about = "the answer to the next question of the server",
         .more = "An object with the members of its form; `{}` to open a page."},
        {.name = "json", .about = "print JSON"},
        {.name = "verbose", .letter = 'v', .about = "print what the server writes to its log"},
        HELP),
    .arguments = ARGUMENTS(
        {"ACTION", &mcp_actions, true, false, "`list` or `call`"},
        {"SERVER", &dgm_cli_any_text, false, false, "a name of the configuration, or a URL"},
        {"TOOL", &dgm_cli_any_text, false, false,
         "`call`: the name of the tool, as listed or as the server has it"},
        {"ARGUMENTS", &dgm_cli_any_text, false, false, "`call`: a JSON object; default `{}`"}),
    .exits = NOTES(EXIT_0, {"1", "a server could not be reached, or the tool failed"}, EXIT_2),
    .examples = NOTES({"dragoman mcp list", "The tools of all servers in ./dragoman.yaml"},
                      {"dragoman mcp list https://mcp.example.com/mcp", "Any server"},
                      {"dragoman mcp call files read_file '{\"path\": \"a.txt\"}'",
                       "Calls a tool of the server `files`"}),
    .page = true,
    .run = dgm_cli_run_outside,
};

const dgm_cli_command dgm_cli_worker = {
    .name = "worker",
    .about = "become the worker process of an agent file",
    .text = "For `command` of an agent of `type: exec` with `mode: worker`: `command: [dragoman, "
            "worker, "
            "agent.py]`. Finds the interpreter (the `.venv` of the file's folder, `$VIRTUAL_ENV`, "
            "`python3`; "
            "`node`) and the package `dragoman`, and runs `python -m dragoman.worker FILE`.",
    .options = OPTIONS({.name = "interpreter",
                        .value = "PROGRAM",
                        .kind = &dgm_cli_files,
                        .about = "use this Python or node"},
                       HELP),
    .arguments =
        ARGUMENTS({"FILE", &dgm_cli_files, true, false,
                   "`agent.py`, `agent.mjs` or `agent.js`; `FILE:NAME` if it has several agents"}),
    .exits = NOTES(EXIT_0, {"1", "the interpreter could not be started"}, EXIT_2),
    .examples = NOTES({"dragoman worker agent.py", "Started by the server"}),
    .hidden = true,
    .run = dgm_cli_run_outside,
};

const dgm_cli_command dgm_cli_mcp_demo = {
    .name = "mcp-demo",
    .about = "an MCP server with two tools, over standard input and output",
    .text = "For the first steps with `mcp` of the configuration: `command: [dragoman, mcp-demo]`.",
    .options = OPTIONS(HELP),
    .exits = NOTES(EXIT_0, EXIT_2),
    .examples = NOTES({"dragoman mcp-demo", "Reads requests from standard input, one per line"}),
    .hidden = true,
    .run = dgm_cli_run_outside,
};

const dgm_cli_command dgm_cli_mcp_conformance = {
    .name = "mcp-conformance",
    .about = "the client under test of @modelcontextprotocol/conformance",
    .text = "Lists the tools of the server and calls those that the scenario wants.",
    .options = OPTIONS(HELP),
    .arguments = ARGUMENTS({"URL", &dgm_cli_any_text, true, false, "of the server"}),
    .exits = NOTES(EXIT_0, {"1", "something failed"}, EXIT_2),
    .examples = NOTES(
        {"dragoman mcp-conformance http://127.0.0.1:3000/mcp", "Started by the conformance tests"}),
    .hidden = true,
    .run = dgm_cli_run_outside,
};
