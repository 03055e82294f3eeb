/*
 * cli_table_client.c - the rows of the table about talking to A2A servers, anybody's.
 */
#include "cli_table.h"

static const char *mode_word(size_t i)
{
    static const char *const words[] = {"send", "get", "stream", "hold", "startup"};
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const dgm_cli_kind modes = {"mode", mode_word, false};

const dgm_cli_command dgm_cli_bench = {
    .name = "bench",
    .about = "load an A2A server and measure it",
    .text =
        "Sends requests over many connections and prints how many a second were answered and how "
        "long each took. Every answer is checked, not only its status. The server must speak A2A "
        "1.0 over JSON-RPC; its agent gets what `--text` says, and the defaults suit "
        "`dragoman serve --agent bench`.\n\n"
        "`send`: a message and its answer. `get`: GetTask of a task made beforehand. `stream`: a "
        "streamed message; events are counted. `hold`: opens that many streams and keeps them "
        "open. `startup`: runs COMMAND again and again and measures the time to the first answer "
        "at URL.",
    .options = OPTIONS(
        {.name = "mode",
         .value = "MODE",
         .kind = &modes,
         .about = "what to do",
         .more = "Default `send`."},
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
         .about = "begin at most N requests a second, in all"},
        {.name = "text",
         .value = "TEXT",
         .kind = &dgm_cli_any_text,
         .about = "what the messages say",
         .more = "Default `echo hello`, for streams `chunks 100`, for `get` `chunks 3`, for `hold` "
                 "`hold 3600`."},
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
        {"URL", &dgm_cli_any_text, true, false, "the JSON-RPC endpoint"},
        {"COMMAND", &dgm_cli_any_text, false, true, "`startup`: the server to start, after `--`"}),
    .exits =
        NOTES(EXIT_0, {"1", "some answers were wrong, or the server could not be reached"}, EXIT_2),
    .examples = NOTES({"dragoman bench --seconds 1 http://127.0.0.1:8484", "Messages a second"},
                      {"dragoman bench --seconds 1 --mode stream --json http://127.0.0.1:8484",
                       "Events a second, for a program"}),
    .page = true,
    .run = dgm_cli_run_outside,
};
