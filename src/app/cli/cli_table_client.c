/*
 * cli_table_client.c - the commands that call an A2A server.
 */
#include "cli_lint.h"
#include "cli_table.h"

static const char *protocol_word(size_t i)
{
    static const char *const words[] = {"1.0", "0.3"};
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const char *binding_word(size_t i)
{
    static const char *const words[] = {"jsonrpc", "rest"};
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const char *task_word(size_t i)
{
    static const char *const words[] = {"get", "list", "cancel", "subscribe"};
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const char *card_word(size_t i)
{
    return i == 0 ? "get" : NULL;
}

static const char *mode_word(size_t i)
{
    static const char *const words[] = {"send", "get", "stream", "hold", "startup"};
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const char *api_word(size_t i)
{
    static const char *const words[] = {"a2a", "ag-ui", "chat", "responses", "ai-sdk"};
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const char *state_word(size_t i)
{
    static const char *const words[] = {"submitted", "working",      "completed",
                                        "failed",    "canceled",     "input-required",
                                        "rejected",  "auth-required"};
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const char *report_word(size_t i)
{
    static const char *const words[] = {"text", "json", "sarif"};
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const char *linted_word(size_t i)
{
    const char *name = i ? dgm_format_id_name(dgm_lint_format_at(i - 1)) : "auto";
    return *name ? name : NULL;
}

static const dgm_cli_kind reports = {"format of findings", report_word, false};
static const dgm_cli_kind linted = {"format", linted_word, false};
static const dgm_cli_kind protocols = {"protocol version", protocol_word, false};
static const dgm_cli_kind bindings = {"binding", binding_word, false};
static const dgm_cli_kind task_actions = {"action", task_word, false};
static const dgm_cli_kind card_actions = {"action", card_word, false};
static const dgm_cli_kind modes = {"mode", mode_word, false};
static const dgm_cli_kind apis = {"API", api_word, false};
static const dgm_cli_kind states = {"state", state_word, false};

/* clang-format off */
#define OF_PEER                                                                                    \
    {.name = "token", .value = "TOKEN", .kind = &dgm_cli_any_text,                                 \
     .about = "send it as `Authorization: Bearer TOKEN`",                                          \
     .more = "Default: the environment variable `DRAGOMAN_TOKEN`, which other users cannot see."}, \
    {.name = "header", .letter = 'H', .value = "HEADER", .kind = &dgm_cli_any_text,                \
     .repeats = true, .about = "send `NAME: VALUE` with every request; may be repeated"},          \
    {.name = "protocol", .value = "VERSION", .kind = &protocols,                                   \
     .about = "use this version of A2A",                                                           \
     .more = "Default: the first one of the card that this program supports."},                    \
    {.name = "binding", .value = "BINDING", .kind = &bindings,                                     \
     .about = "use this binding",                                                                  \
     .more = "With `--protocol` as well, no card is fetched and URL is the endpoint."},            \
    {.name = "ca", .value = "FILE", .kind = &dgm_cli_files,                                        \
     .about = "trust the certificates (PEM) in FILE",                                              \
     .more = "Default: the certificates that this machine trusts."},                               \
    {.name = "proxy", .value = "URL", .kind = &dgm_cli_any_text,                                   \
     .about = "reach the server through this HTTP proxy; empty: through none",                     \
     .more = "Default: `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` of the "            \
             "environment, except for addresses of this machine."},                                \
    {.name = "timeout", .value = "SECONDS", .kind = &dgm_cli_any_text,                             \
     .about = "give up after this time without data",                                              \
     .more = "Default 600."}
#define URL_ROW {"URL", &dgm_cli_any_text, true, false,                                            \
                 "the URL of the agent, or of its card"}
/* clang-format on */

const dgm_cli_command dgm_cli_send = {
    .name = "send",
    .about = "send a message to an agent and show its answer",
    .text =
        "Fetches the agent card, uses a version and binding that it offers (A2A 1.0 or 0.3, "
        "JSON-RPC or HTTP+JSON), and sends TEXT. Without TEXT, `--file` and `--data` it sends "
        "standard input, unless that is a terminal. The text of the answer is streamed to standard "
        "output. Progress is shown on standard error, only if that is a terminal.\n\n"
        "If the agent asks a question, the task stays open, and a line on standard error shows how "
        "to answer. Ctrl-C asks the server to cancel the task and waits for it; a second Ctrl-C "
        "ends the program at once.",
    .options = OPTIONS(
        {.name = "task", .value = "ID", .kind = &dgm_cli_any_text, .about = "continue this task"},
        {.name = "context",
         .value = "ID",
         .kind = &dgm_cli_any_text,
         .about = "continue this conversation"},
        {.name = "file",
         .value = "FILE",
         .kind = &dgm_cli_files,
         .repeats = true,
         .about = "attach FILE; may be repeated"},
        {.name = "data",
         .value = "JSON",
         .kind = &dgm_cli_any_text,
         .repeats = true,
         .about = "attach a JSON value; may be repeated",
         .more = "`@FILE` reads it from there."},
        {.name = "approve",
         .value = "ID",
         .kind = &dgm_cli_any_text,
         .repeats = true,
         .about = "approve the call that the task asks about; may be repeated",
         .more = "`all` approves every open request. Needs `--task`. On a terminal `send` asks "
                 "about each "
                 "request instead."},
        {.name = "reject",
         .value = "ID",
         .kind = &dgm_cli_any_text,
         .repeats = true,
         .about = "reject that call; may be repeated; `all` rejects every open request"},
        {.name = "reason",
         .value = "TEXT",
         .kind = &dgm_cli_any_text,
         .about = "the reason of `--reject`, for the agent"},
        {.name = "no-wait",
         .about = "return as soon as the agent has started",
         .more = "Prints the task's id; `dragoman task get` and `subscribe` show the rest."},
        {.name = "no-stream", .about = "request the complete answer instead of a stream"},
        {.name = "json",
         .about = "print every event as a line of JSON",
         .more = "In the format of A2A 1.0, also if the server uses 0.3."},
        OF_PEER, HELP),
    .arguments = ARGUMENTS(URL_ROW, {"TEXT", &dgm_cli_any_text, false, true,
                                     "the text to send; `-` reads standard input"}),
    .exits = NOTES({"0", "the agent completed the task, answered, or asks a question"},
                   {"1", "the task failed, was rejected or canceled, or the server could not be "
                         "reached or does not support A2A"},
                   EXIT_2),
    .examples =
        NOTES({"dragoman send http://127.0.0.1:8484 help", "What can the demo agent do?"},
              {"echo hello | dragoman send http://127.0.0.1:8484", "Text from standard input"},
              {"dragoman send --json http://127.0.0.1:8484 stream", "Every event"}),
    .page = true,
    .run = dgm_cli_run_outside,
};

const dgm_cli_command dgm_cli_try = {
    .name = "try",
    .about = "run an agent file without a server and show its answer",
    .text = "Runs the agent of FILE (Python or JavaScript) as `dragoman serve FILE` would, sends TEXT, "
            "and prints the answer. Output of the agent's code goes to standard error.\n\n"
            "If the agent asks a question, the next line of standard input is the answer. Without TEXT "
            "every line is a message of one conversation.",
    .options = OPTIONS({.name = "json",
                        .about = "print every event as a line of JSON",
                        .more = "In the format of A2A 1.0; internal events, too."},
                       HELP),
    .arguments = ARGUMENTS({"FILE", &dgm_cli_files, true, false,
                            "`agent.py`, `agent.mjs` or `agent.js`; `FILE:NAME` if it has several agents"},
                           {"TEXT", &dgm_cli_any_text, false, true, "the message"}),
    .exits = NOTES({"0", "the agent completed the task, answered, or asks a question"},
                   {"1", "the task failed or was rejected, or the agent could not be started"}, EXIT_2),
    .examples = NOTES({"dragoman try agent.py hello", "Sends one message"},
                      {"echo hello | dragoman try agent.py", "Lines of standard input are messages"}),
    .page = true,
    .run = dgm_cli_run_outside,
};

const dgm_cli_command dgm_cli_task = {
    .name = "task",
    .about = "get, list, cancel or follow tasks of an agent",
    .text = "`get` prints a task: its state, then its answer. `list` prints one line for each task "
            "that you may see, the newest first: id, state, time of the last change, and the first "
            "words of a message. `cancel` asks the agent to stop. `subscribe` prints the events "
            "that follow, as `dragoman send` does.\n\n"
            "A2A 0.3 has no lists.",
    .options = OPTIONS(
        {.name = "json", .about = "print JSON in the format of A2A 1.0"},
        {.name = "history",
         .value = "N",
         .kind = &dgm_cli_any_text,
         .about = "ask for the last N messages"},
        {.name = "context",
         .value = "ID",
         .kind = &dgm_cli_any_text,
         .about = "`list`: only of this conversation"},
        {.name = "state", .value = "STATE", .kind = &states, .about = "`list`: only in this state"},
        {.name = "limit",
         .value = "N",
         .kind = &dgm_cli_any_text,
         .about = "`list`: at most N",
         .more = "Default 50; 0 is all."},
        {.name = "after",
         .value = "EVENT",
         .kind = &dgm_cli_any_text,
         .about = "`subscribe`: continue after this event id"},
        OF_PEER, HELP),
    .arguments =
        ARGUMENTS({"ACTION", &task_actions, true, false, "`get`, `list`, `cancel` or `subscribe`"},
                  URL_ROW, {"ID", &dgm_cli_any_text, false, false, "the task; not for `list`"}),
    .exits = NOTES(EXIT_0,
                   {"1", "the task was not found, the server could not be reached, or the task "
                         "that was followed did not complete"},
                   EXIT_2),
    .examples = NOTES({"dragoman task list http://127.0.0.1:8484", "The tasks of an agent"},
                      {"dragoman task list --json --state completed http://127.0.0.1:8484",
                       "The same for a program"}),
    .page = true,
    .run = dgm_cli_run_outside,
};

const dgm_cli_command dgm_cli_card = {
    .name = "card",
    .about = "show an agent's card",
    .text = "Fetches an agent card and prints it for a person; `--json` prints it in the format of "
            "A2A 1.0. `--validate` checks it against the rules of A2A and prints every fault.",
    .options = OPTIONS({.name = "json", .about = "print the card as JSON"},
                       {.name = "validate", .about = "check it"}, OF_PEER, HELP),
    .arguments = ARGUMENTS(
        {"ACTION", &card_actions, true, false, "`get`; may be left out", .implied = "get"},
        URL_ROW),
    .exits = NOTES(EXIT_0, {"1", "there is no card, or it has faults"}, EXIT_2),
    .examples = NOTES({"dragoman card http://127.0.0.1:8484", "What can this agent do?"},
                      {"dragoman card --validate http://127.0.0.1:8484", "Is the card correct?"}),
    .page = true,
    .run = dgm_cli_run_outside,
};

const dgm_cli_command dgm_cli_connect = {
    .name = "connect",
    .about = "detect the protocol of an agent and print its configuration",
    .text =
        "Detects which protocol the agent at URL uses, and prints the entry of `dragoman.yaml` "
        "that connects it: A2A 1.0 and 0.3, AG-UI, OpenAI Chat Completions and Responses, the AI "
        "SDK. `dragoman serve` then serves the agent over all protocols.\n\n"
        "The first requests change nothing: they read the agent card, capabilities and models. "
        "Only if these find nothing, it sends an empty JSON object, which servers reject, and at "
        "last a run without messages. If nothing fits, it prints each request with its answer.",
    .options = OPTIONS(
        {.name = "token-env",
         .value = "VARIABLE",
         .kind = &dgm_cli_any_text,
         .about = "the environment variable with the token, sent as `Authorization: Bearer`",
         .more = "Default: `DRAGOMAN_TOKEN`, if it is set. The configuration names the variable."},
        {.name = "header",
         .letter = 'H',
         .value = "HEADER",
         .kind = &dgm_cli_any_text,
         .repeats = true,
         .about = "send `NAME: VALUE` with every request; may be repeated",
         .more = "The configuration has a variable in place of the value."},
        {.name = "ca-file",
         .value = "FILE",
         .kind = &dgm_cli_files,
         .about = "trust the certificates (PEM) in FILE",
         .more = "Default: the certificates that this machine trusts."},
        {.name = "proxy",
         .value = "URL",
         .kind = &dgm_cli_any_text,
         .about = "reach the server through this HTTP proxy; empty: through none",
         .more = "Default: `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` of the "
                 "environment, which `dragoman serve` does not use."},
        {.name = "timeout",
         .value = "SECONDS",
         .kind = &dgm_cli_any_text,
         .about = "give up a request after this time without data",
         .more = "Default 10."},
        {.name = "json", .about = "print the findings and all requests as JSON"}, HELP),
    .arguments =
        ARGUMENTS({"URL", &dgm_cli_any_text, true, false, "the URL of the agent, or of its card"}),
    .exits = NOTES(EXIT_0, {"1", "no agent was found, or the server could not be reached"}, EXIT_2),
    .examples = NOTES({"dragoman connect http://127.0.0.1:8484", "What is at this address?"},
                      {"dragoman connect --json http://127.0.0.1:8484/v1",
                       "The same for a program, with every request"}),
    .page = true,
    .run = dgm_cli_run_outside,
};

const dgm_cli_command dgm_cli_bench = {
    .name = "bench",
    .about = "load a server and measure it",
    .text = "Sends requests over many connections and prints the number of responses per second "
            "and the latency. Every response is checked, not only its status. The requests use A2A "
            "1.0 over JSON-RPC, or the protocol of `--api`, and contain the text of `--text`; the "
            "defaults are for `dragoman serve --agent bench`.\n"
            "\n"
            "`send`: a message and its answer. `get`: GetTask of a task created beforehand. "
            "`stream`: a streamed message; events are counted. `hold`: opens that many streams and "
            "leaves them open. `startup`: runs COMMAND repeatedly and measures the time to the "
            "first response at URL.",
    .options = OPTIONS(
        {.name = "mode",
         .value = "MODE",
         .kind = &modes,
         .about = "what to do",
         .more = "Default `send`."},
        {.name = "api",
         .value = "API",
         .kind = &apis,
         .about = "the protocol of the server at URL",
         .more = "Default `a2a`. `chat` and `responses` are OpenAI's; `ag-ui` and `ai-sdk` have "
                 "only streams."},
        {.name = "model",
         .value = "MODEL",
         .kind = &dgm_cli_any_text,
         .about = "`chat`, `responses`: the model, which is the id of the agent",
         .more = "Default `bench`."},
        {.name = "connections",
         .letter = 'n',
         .value = "N",
         .kind = &dgm_cli_any_text,
         .about = "how many connections",
         .more = "Default 16."},
        {.name = "seconds",
         .value = "SECONDS",
         .kind = &dgm_cli_any_text,
         .about = "how long",
         .more = "Default 5."},
        {.name = "requests",
         .value = "N",
         .kind = &dgm_cli_any_text,
         .about = "stop after N requests instead"},
        {.name = "warmup",
         .value = "SECONDS",
         .kind = &dgm_cli_any_text,
         .about = "run this long before measuring",
         .more = "Default 0."},
        {.name = "rate",
         .value = "N",
         .kind = &dgm_cli_any_text,
         .about = "start at most N requests per second in total"},
        {.name = "text",
         .value = "TEXT",
         .kind = &dgm_cli_any_text,
         .about = "the text of the messages",
         .more = "Default `echo hello`, for streams `chunks 100`, for `get` `chunks 3`, for `hold` "
                 "`hold 3600`."},
        {.name = "expect",
         .value = "TEXT",
         .kind = &dgm_cli_any_text,
         .about = "the expected text of complete answers",
         .more = "Default: the answer of the agent `bench` to that text."},
        {.name = "pid",
         .value = "PID",
         .kind = &dgm_cli_any_text,
         .about = "the server's process: measure its CPU time and memory too"},
        {.name = "json", .about = "print JSON"},
        {.name = "token",
         .value = "TOKEN",
         .kind = &dgm_cli_any_text,
         .about = "send it as `Authorization: Bearer TOKEN`"},
        HELP),
    .arguments = ARGUMENTS(
        {"URL", &dgm_cli_any_text, true, false, "the endpoint; for A2A the JSON-RPC endpoint"},
        {"COMMAND", &dgm_cli_any_text, false, true, "`startup`: the server to start, after `--`"}),
    .exits = NOTES(EXIT_0, {"1", "some responses were wrong, or the server could not be reached"},
                   EXIT_2),
    .examples = NOTES({"dragoman bench --seconds 1 http://127.0.0.1:8484", "Messages a second"},
                      {"dragoman bench --seconds 1 --mode stream --json http://127.0.0.1:8484",
                       "Events per second, for a program"}),
    .page = true,
    .run = dgm_cli_run_outside,
};

const dgm_cli_command dgm_cli_lint = {
    .name = "lint",
    .about = "check streams, tasks, messages, cards or a server for protocol errors",
    .text = "Reads FILEs, or standard input: A2A 1.0 and 0.3 or AG-UI, as a JSON value, an array, "
            "JSON lines or server-sent events. Checks them against the rules of their protocol and "
            "prints every finding: the position, the problem, the name of the rule, and what to do "
            "about it. Invalid JSON is a finding too, and lint continues with the next value.\n"
            "\n"
            "With a URL it fetches the card of that A2A server, sends it a message, reads the "
            "stream of its answer, and checks both.\n"
            "\n"
            "`--rules` lists the rules; docs/lint.md has them in a table.",
    .options = OPTIONS(
        {.name = "format",
         .value = "FORMAT",
         .kind = &reports,
         .about = "how findings are printed",
         .more = "`json`: a line for each. `sarif`: SARIF 2.1.0, for code scanners. Default "
                 "`text`."},
        {.name = "from",
         .letter = 'f',
         .value = "FORMAT",
         .kind = &linted,
         .about = "format of the input",
         .more = "Default `auto`: detected from the input."},
        {.name = "strict", .about = "treat warnings as errors"},
        {.name = "rules", .about = "print the rules and exit"},
        {.name = "markdown", .about = "print the page docs/lint.md: all rules"},
        {.name = "fetched-from",
         .value = "URL",
         .kind = &dgm_cli_any_text,
         .about = "the URL of the card in FILE; it is checked too"},
        {.name = "message",
         .value = "TEXT",
         .kind = &dgm_cli_any_text,
         .about = "URL: the text to send",
         .more = "Default `hello`."},
        OF_PEER, HELP),
    .arguments =
        ARGUMENTS({"FILE", &dgm_cli_files, false, true,
                   "the input; without FILE, or with `-`, standard input; or one http(s) URL"}),
    .exits = NOTES({"0", "no errors were found; with `--strict` no warnings either"},
                   {"1", "errors were found, or something could not be read or reached"}, EXIT_2),
    .examples = NOTES({"dragoman lint task.json", "What is wrong with a task?"},
                      {"dragoman lint --format sarif task.json", "The same for a code scanner"},
                      {"dragoman lint http://127.0.0.1:8484", "Is this server correct?"}),
    .page = true,
    .run = dgm_cli_run_lint,
};
