/* cli_table_convert.c - the commands that translate: convert, compact, formats. */
#include "cli_table.h"

const dgm_cli_command dgm_cli_convert = {
    .name = "convert",
    .about = "convert messages, tasks, streams, requests and cards to another format",
    .text = "Reads FILEs, or standard input, in one format and writes them in another. Ids, times "
            "and numbers are not changed. `--losses` lists what this input lost because the target "
            "format cannot represent it; on a terminal, one line reports that something was lost. "
            "`dragoman formats FROM TO` lists what an input can lose.\n"
            "\n"
            "The kind of output follows the kind of input: a stream is converted to a stream of "
            "events, a complete response to a response, a request to a request, and messages (or "
            "an A2A task) to messages. If the target format has no such object, the closest one is "
            "written. `--as` overrides this: `--as response` converts a stream to one object.\n"
            "\n"
            "The input is one JSON value, a JSON array, JSON lines (or consecutive values), or "
            "server-sent events; this is detected from its first bytes. One value is converted to "
            "one value, or to an array if it becomes several. An array, or a task that is "
            "converted to `openai-chat`, is a history and is converted to an array. JSON lines and "
            "server-sent events are a stream: each event is written as soon as it is read, as "
            "server-sent events unless `--frame` sets another framing. (The first JSON line is "
            "written when the second arrives, because only then the input is known to be a stream; "
            "with `--frame lines` or `--frame sse` it is written at once.) JSON-RPC envelopes are "
            "copied if the target format has them, and removed otherwise.\n"
            "\n"
            "Several FILEs are converted in order, independently of each other: each single value "
            "is written on a line of its own, streams follow each other. If one FILE fails, the "
            "others are still converted. An error names the file, the line and column, and the "
            "position in the document as a JSON pointer.\n"
            "\n"
            "When the reader of the output closes the pipe, dragoman ends at once and silently, by "
            "SIGPIPE, like `cat`.",
    .options = OPTIONS(
        {.name = "from",
         .letter = 'f',
         .value = "FORMAT",
         .kind = &dgm_cli_sources,
         .about = "format of the input",
         .more = "Default `auto`: detected from the input."},
        {.name = "to",
         .letter = 't',
         .value = "FORMAT",
         .kind = &dgm_cli_formats,
         .required = true,
         .about = "format of the output"},
        {.name = "frame",
         .value = "FRAMING",
         .kind = &dgm_cli_framings,
         .about = "how values are framed in the output",
         .more =
             "`json`: one value for one value, an array for a stream or a history. `array`: always "
             "an array. `lines`: one value on each line. `sse`: server-sent events. Default "
             "`auto`: like the input; streams in the framing that the target format uses."},
        {.name = "as",
         .value = "FORM",
         .kind = &dgm_cli_forms,
         .about = "what comes out",
         .more = "`events`: a stream. `response`: the same as one object (`chat.completion`, "
                 "`response`, a Task). `messages`: a history. `request`: a request that starts a "
                 "run. Default `auto`: the same kind as the input."},
        {.name = "answer-source",
         .value = "WHERE",
         .kind = &dgm_cli_answers,
         .about = "where an A2A agent puts its answer",
         .more = "`status`: texts of the state `working` are the answer. Default `auto`: they are "
                 "progress, unless `canonical_type` marks them as part of the answer."},
        {.name = "no-compact",
         .about = "do not merge streamed chunks",
         .more = "By default a document (an array, a task) that is converted to another format is "
                 "compacted: the chunks of texts and arguments are merged. Streams are never "
                 "compacted."},
        {.name = "object",
         .value = "KIND",
         .kind = &dgm_cli_objects,
         .about = "the type of each input object",
         .more = "Needed only if it cannot be detected from the input."},
        {.name = "seed",
         .value = "TEXT",
         .kind = &dgm_cli_any_text,
         .about = "seed for the ids that are generated where one is missing",
         .more = "The same seed and input give the same ids."},
        {.name = "losses",
         .about = "list on standard error what was lost or changed in this input",
         .more = "One line for each kind of loss: the position of the first one, the member, what "
                 "happened to it, and how often. `AG-UI` before a member means that the name is "
                 "from AG-UI, because the conversion uses AG-UI events internally. The exit status "
                 "does not change."},
        {.name = "losses-json",
         .about = "the same as JSON lines",
         .more = "The members are `file`, `names` (`input`: the names are those of the input "
                 "format; or `ag-ui`), `object`, `member`, `what`, `count`, and if known `line`, "
                 "`column` and `at`, a JSON pointer."},
        {.name = "output",
         .letter = 'o',
         .value = "FILE",
         .kind = &dgm_cli_files,
         .about = "write to FILE instead of standard output",
         .more = "FILE is created or replaced when everything is converted; after an error it is "
                 "unchanged. A FILE that is not a regular file (a pipe, a device) is written "
                 "directly."},
        HELP),
    .arguments = ARGUMENTS({"FILE", &dgm_cli_files, false, true,
                            "the input; without FILE, or with `-`, standard input"}),
    .exits = NOTES(EXIT_0,
                   {"1", "some input was invalid, or something could not be read or written; the "
                         "values converted before the error are on standard output"},
                   EXIT_2),
    .examples = NOTES(
        {"dragoman convert --from a2a-1.0 --to a2a-0.3 message.json",
         "A message for an older client"},
        {"dragoman convert --to openai-chat task.json", "A task's history as chat messages"},
        {"dragoman convert --to ag-ui events.jsonl", "An A2A stream as AG-UI's server-sent events"},
        {"dragoman convert --to ag-ui --as messages events.jsonl",
         "The messages that the stream contains"},
        {"dragoman convert --to openai-chat --losses message.json 2>losses.txt",
         "A chat message, and the members of the A2A message that it cannot represent"},
        {"curl -sN https://agent.example/message:stream -d @request.json | "
         "dragoman convert --to a2a-1.0 --frame lines",
         "A live stream, one event per line, as it arrives"},
        {"echo '{\"role\":\"user\",\"content\":\"Hello\"}' | "
         "dragoman convert -f openai-chat -t a2a-1.0 --seed demo",
         "A chat message as an A2A message, with the same generated id every time"}),
    .page = true,
    .run = dgm_cli_run_convert,
};

const dgm_cli_command dgm_cli_compact = {
    .name = "compact",
    .about = "merge streamed chunks into complete messages",
    .text = "Reads FILEs, or standard input, and writes them in the same format, compacted: the "
            "chunks of a text, of arguments or of reasoning are replaced by the complete value, at "
            "the position of the first chunk. Chunks without a complete value are joined. Complete "
            "values are not changed.\n"
            "\n"
            "The input is held in memory until it ends; its size is limited.",
    .options = OPTIONS({.name = "from",
                        .letter = 'f',
                        .value = "FORMAT",
                        .kind = &dgm_cli_sources,
                        .about = "format of the input, and of the output",
                        .more = "Default `auto`: detected from the input."},
                       {.name = "frame",
                        .value = "FRAMING",
                        .kind = &dgm_cli_framings,
                        .about = "how values are framed in the output",
                        .more = "Same as for `dragoman convert`."},
                       {.name = "output",
                        .letter = 'o',
                        .value = "FILE",
                        .kind = &dgm_cli_files,
                        .about = "write to FILE instead of standard output",
                        .more = "Same as for `dragoman convert`."},
                       HELP),
    .arguments = ARGUMENTS({"FILE", &dgm_cli_files, false, true,
                            "the input; without FILE, or with `-`, standard input"}),
    .exits = NOTES(
        EXIT_0, {"1", "some input was invalid, or something could not be read or written"}, EXIT_2),
    .examples = NOTES({"dragoman compact --frame lines events.jsonl", "A stream without chunks"},
                      {"dragoman convert --to ag-ui-simple events.jsonl | dragoman compact",
                       "Like `compact_events()` of the library"}),
    .page = true,
    .run = dgm_cli_run_compact,
};

const dgm_cli_command dgm_cli_formats_command = {
    .name = "formats",
    .about = "list the formats and what each conversion loses",
    .text = "Every format converts to every other. Without arguments: the formats, and for each "
            "pair how many things a conversion loses or changes. With FROM and TO: a list of these "
            "losses, by object and member. With FROM only: the losses to every format.",
    .options = OPTIONS(
        {.name = "json", .about = "print JSON, for programs"},
        {.name = "markdown", .about = "print the page docs/internals/losses.md: all pairs"}, HELP),
    .arguments = ARGUMENTS({"FROM", &dgm_cli_formats, false, false, "format that is read"},
                           {"TO", &dgm_cli_formats, false, false, "format that is written"}),
    .exits = NOTES(EXIT_0, EXIT_1_OUTPUT, EXIT_2),
    .examples =
        NOTES({"dragoman formats", "The overview"},
              {"dragoman formats a2a-1.0 openai-chat", "What chat messages cannot represent"},
              {"dragoman formats --json a2a-1.0 a2a-0.3", "The same for a program"}),
    .page = true,
    .run = dgm_cli_run_formats,
};
