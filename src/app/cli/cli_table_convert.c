/* cli_table_convert.c - the commands that translate: convert, compact, formats. */
#include "cli_table.h"

const dgm_cli_command dgm_cli_convert = {
    .name = "convert",
    .about = "convert messages, tasks, streams, requests and cards to another format",
    .text = "Reads FILEs, or standard input, in one format and writes them in another. Ids, times "
            "and numbers come out as they went in. `--losses` lists what this input lost because "
            "the target has no place for it; on a terminal, one line reports that something was "
            "lost. `dragoman formats FROM TO` lists what an input can lose.\n\n"
            "What comes out is decided by what goes in: a stream gives a stream of events, a "
            "whole response a response, a request a request, and messages (or an A2A task) "
            "messages. A format that has no such thing gives the nearest it has. `--as` says "
            "otherwise: `--as response` makes one object of a stream.\n\n"
            "The input is one JSON value, a JSON array, JSON lines (or values one after the "
            "other), or server-sent events; its first bytes show which. One value gives one "
            "value, or an array where it becomes several. An array, or a task on its way to "
            "`openai-chat`, is a history and gives an array. JSON lines and server-sent "
            "events are a stream: each event is written as soon as it was read, as "
            "server-sent events unless `--frame` says otherwise. (The first of JSON lines waits "
            "for the second, which shows that it is a stream; `--frame lines` or `--frame sse` "
            "says so beforehand.) JSON-RPC envelopes are kept where the target has them, and "
            "taken off where it has none.\n\n"
            "Several FILEs are converted in order, each on its own: single values stand on a "
            "line each, streams follow each other. A FILE that fails does not stop the "
            "others. An error names the file, the line and column, and the place in the "
            "document as a JSON pointer.\n\n"
            "When the reader of the output goes away, dragoman ends at once and silently, by "
            "SIGPIPE, as `cat` does.",
    .options = OPTIONS(
        {.name = "from",
         .letter = 'f',
         .value = "FORMAT",
         .kind = &dgm_cli_sources,
         .about = "format of the input",
         .more = "Default `auto`: told by its shape."},
        {.name = "to",
         .letter = 't',
         .value = "FORMAT",
         .kind = &dgm_cli_formats,
         .required = true,
         .about = "format of the output"},
        {.name = "frame",
         .value = "FRAMING",
         .kind = &dgm_cli_framings,
         .about = "how the output is cut into values",
         .more = "`json`: a value for a value, an array for a stream or a history. `array`: always "
                 "an array. `lines`: one value on each line. `sse`: server-sent events. Default "
                 "`auto`: as the input was, streams in the target's own framing."},
        {.name = "as",
         .value = "FORM",
         .kind = &dgm_cli_forms,
         .about = "what comes out",
         .more = "`events`: a stream. `response`: the same as one object (`chat.completion`, "
                 "`response`, a Task). `messages`: a history. `request`: what begins a run. "
                 "Default `auto`: as the input is."},
        {.name = "answer-source",
         .value = "WHERE",
         .kind = &dgm_cli_answers,
         .about = "where an A2A agent says its answer",
         .more = "`status`: texts of the state `working` are the answer. Default `auto`: they are "
                 "progress, unless their `canonical_type` says otherwise."},
        {.name = "no-compact",
         .about = "keep the pieces of what was streamed",
         .more = "By default a document (an array, a task) on its way to another format is "
                 "compacted: texts and arguments that came in pieces are said at once. Streams "
                 "never are."},
        {.name = "object",
         .value = "KIND",
         .kind = &dgm_cli_objects,
         .about = "what each input object is",
         .more = "Needed only where its shape leaves a doubt."},
        {.name = "seed",
         .value = "TEXT",
         .kind = &dgm_cli_any_text,
         .about = "seed of the ids that are made up where one is missing",
         .more = "The same seed and input give the same ids."},
        {.name = "losses",
         .about = "list on standard error what was lost or changed in this input",
         .more = "One line for each kind of loss: the position of the first one, the member, what "
                 "happened to it, and how often. `AG-UI` before a member means that its name "
                 "is that of AG-UI: the conversion goes through AG-UI's events. The exit status is "
                 "the same as without."},
        {.name = "losses-json",
         .about = "the same as JSON lines",
         .more = "The members are `file`, `names` (`input`: those of the input's format, or "
                 "`ag-ui`), `object`, `member`, `what`, `count`, and where they are known `line`, "
                 "`column` and `at`, a JSON pointer."},
        {.name = "output",
         .letter = 'o',
         .value = "FILE",
         .kind = &dgm_cli_files,
         .about = "write to FILE instead of standard output",
         .more = "FILE appears, or is replaced, when all is converted; after an error it is as it "
                 "was. A FILE that is not a regular file (a pipe, a device) is written directly."},
        HELP),
    .arguments = ARGUMENTS(
        {"FILE", &dgm_cli_files, false, true, "what to read; none, or `-`, is standard input"}),
    .exits = NOTES(EXIT_0,
                   {"1", "some input was bad, or something could not be read or written; what was "
                         "converted before is on standard output"},
                   EXIT_2),
    .examples = NOTES(
        {"dragoman convert --from a2a-1.0 --to a2a-0.3 message.json",
         "A message for an older peer"},
        {"dragoman convert --to openai-chat task.json", "A task's history as chat messages"},
        {"dragoman convert --to ag-ui events.jsonl", "An A2A stream as AG-UI's server-sent events"},
        {"dragoman convert --to ag-ui --as messages events.jsonl",
         "The messages that the stream adds up to"},
        {"dragoman convert --to openai-chat --losses message.json 2>losses.txt",
         "A chat message, and which members of the A2A message it has no place for"},
        {"curl -sN https://agent.example/message:stream -d @request.json | "
         "dragoman convert --to a2a-1.0 --frame lines",
         "A live stream, one event a line, as it comes"},
        {"echo '{\"role\":\"user\",\"content\":\"Hello\"}' | "
         "dragoman convert -f openai-chat -t a2a-1.0 --seed demo",
         "A chat message as an A2A message, with the same made-up id every time"}),
    .page = true,
    .run = dgm_cli_run_convert,
};

const dgm_cli_command dgm_cli_compact = {
    .name = "compact",
    .about = "say at once what was streamed in pieces",
    .text = "Reads FILEs, or standard input, and writes them in their own format, compacted: of "
            "texts, arguments and reasoning that came in pieces only the whole is left, where "
            "its first piece stood. Pieces that nothing completes are joined. What is complete "
            "stays.\n\n"
            "A log is kept in memory until it ends; what it may hold has a limit.",
    .options = OPTIONS({.name = "from",
                        .letter = 'f',
                        .value = "FORMAT",
                        .kind = &dgm_cli_sources,
                        .about = "format of the input, and of the output",
                        .more = "Default `auto`: told by its shape."},
                       {.name = "frame",
                        .value = "FRAMING",
                        .kind = &dgm_cli_framings,
                        .about = "how the output is cut into values",
                        .more = "As for `dragoman convert`."},
                       {.name = "output",
                        .letter = 'o',
                        .value = "FILE",
                        .kind = &dgm_cli_files,
                        .about = "write to FILE instead of standard output",
                        .more = "As for `dragoman convert`."},
                       HELP),
    .arguments = ARGUMENTS(
        {"FILE", &dgm_cli_files, false, true, "what to read; none, or `-`, is standard input"}),
    .exits = NOTES(EXIT_0, {"1", "some input was bad, or something could not be read or written"},
                   EXIT_2),
    .examples =
        NOTES({"dragoman compact --frame lines events.jsonl", "A stream, without its pieces"},
              {"dragoman convert --to ag-ui-simple events.jsonl | dragoman compact",
               "Like `compact_events()` of the library"}),
    .page = true,
    .run = dgm_cli_run_compact,
};

const dgm_cli_command dgm_cli_formats_command = {
    .name = "formats",
    .about = "show the formats, what converts to what, and what is lost",
    .text = "Every format converts to every other. Without arguments: the formats, and for "
            "each pair how many things a conversion loses or changes. With FROM and TO: what "
            "these are, by object and member. With FROM alone: towards every format.",
    .options =
        OPTIONS({.name = "json", .about = "print JSON, for programs"},
                {.name = "markdown", .about = "print the page docs/internals/losses.md: all pairs"}, HELP),
    .arguments = ARGUMENTS({"FROM", &dgm_cli_formats, false, false, "format that is read"},
                           {"TO", &dgm_cli_formats, false, false, "format that is written"}),
    .exits = NOTES(EXIT_0, EXIT_1_OUTPUT, EXIT_2),
    .examples = NOTES({"dragoman formats", "The overview"},
                      {"dragoman formats a2a-1.0 openai-chat", "What chat messages cannot say"},
                      {"dragoman formats --json a2a-1.0 a2a-0.3", "The same for a program"}),
    .page = true,
    .run = dgm_cli_run_formats,
};
