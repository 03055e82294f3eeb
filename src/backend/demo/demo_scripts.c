/* backend/demo/demo_scripts.c - what the demo agent can do. */
#include "backend/demo/demo_int.h"

#include <stdio.h>
#include <stdlib.h>

const char dgm_demo_card[] =
    "{\"name\":\"Demo\",\"description\":\"Shows what an A2A agent can do: write "
    "help.\",\"defaultInputModes\":[\"text/plain\",\"application/json\",\"image/png\",\"image/"
    "jpeg\",\"text/csv\",\"application/pdf\",\"*/*\"],\"skills\":[{\"id\":\"demo\",\"name\":\"Demo "
    "scripts\",\"description\":\"Streams text, shows status, makes files and data, asks a "
    "question, asks for credentials, fails, refuses: write help for the "
    "list.\",\"tags\":[\"demo\"],\"examples\":[\"help\",\"stream\",\"status\",\"file\",\"ask\"]}]}";

/* ---- texts ----------------------------------------------------------------------------------------------- */

static dgm_str help_text(const dgm_run *run, dgm_str rest);

static dgm_str you_said(const dgm_run *run, dgm_str rest)
{
    if (rest.n == 0)
        return DGM_STR("You said nothing that I could read. Write `help` to see what I can do.");
    return dgm_arena_printf(run->arena, "You said: %.*s\n\nWrite `help` to see what I can do.",
                            DGM_P(rest));
}

static dgm_str you_answered(const dgm_run *run, dgm_str rest)
{
    return dgm_arena_printf(
        run->arena, "Hello %.*s, nice to meet you. That was all I wanted to know.", DGM_P(rest));
}

/* The number behind the word, within reason. */
static size_t number(dgm_str rest, size_t otherwise, size_t max)
{
    char digits[12];
    snprintf(digits, sizeof digits, "%.*s", (int)(rest.n < 11 ? rest.n : 11), rest.n ? rest.p : "");
    unsigned long n = strtoul(digits, NULL, 10);
    return n == 0 ? otherwise : n < max ? n : max;
}

static dgm_str long_text(const dgm_run *run, dgm_str rest)
{
    static const char line[] = "This is line %06zu of a long text; it goes on for a while yet.\n";
    size_t n = number(rest, 2000, 50000), each = sizeof line - 1 - 5 + 6;
    char *text = dgm_arena_alloc_raw(run->arena, n * each + 1);
    for (size_t i = 0; i < n; i++)
        snprintf(text + i * each, each + 1, line, i + 1);
    return (dgm_str){text, n * each};
}

static dgm_str slow_text(const dgm_run *run, dgm_str rest)
{
    size_t n = number(rest, 10, 600);
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 1; i <= n; i++)
        dgm_buf_printf(&b, "%zu%s", i, i < n ? "... " : ". Done.");
    dgm_str text = dgm_arena_dup(run->arena, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

/* ---- scripts --------------------------------------------------------------------------------------------- */

#define STREAMED                                                                                   \
    "An A2A task is a small story: it is submitted, the agent works, and while it works its "      \
    "answer arrives in pieces, each one an artifact update that adds to the last. When the story " \
    "is over, the completed status repeats it as a whole. The text that you have read by then "    \
    "and the text at the end are the same."

static const struct demo_step one_message[] = {{.op = DEMO_MESSAGE}};

static const struct demo_step stream[] = {
    {.op = DEMO_WORKING},
    {.op = DEMO_TEXT, .wait = 40, .text = STREAMED},
    {.op = DEMO_END},
};

static const struct demo_step echo[] = {
    {.op = DEMO_WORKING},
    {.op = DEMO_TEXT, .wait = 40},
    {.op = DEMO_END},
};

static const struct demo_step status[] = {
    {.op = DEMO_INDICATE, .text = "Reading your message"},
    {.op = DEMO_INDICATE, .wait = 1000, .text = "Looking things up"},
    {.op = DEMO_INDICATE, .wait = 1000, .text = "Comparing what was found"},
    {.op = DEMO_INDICATE, .wait = 1000, .text = "Thinking"},
    {.op = DEMO_INDICATE, .wait = 1000, .text = "Writing the answer"},
    {.op = DEMO_TEXT,
     .wait = 100,
     .text = "That took five seconds. What you saw meanwhile was status, not answer: this is the "
             "answer."},
    {.op = DEMO_END},
};

static const struct demo_step file[] = {
    {.op = DEMO_WORKING},
    {.op = DEMO_FILE,
     .wait = 100,
     /* month,sales / January,100 / February,115 */
     .text = "bW9udGgsc2FsZXMKSmFudWFyeSwxMDAKRmVicnVhcnksMTE1Cg==",
     .name = "sales.csv",
     .media_type = "text/csv"},
    {.op = DEMO_FILE,
     .wait = 100,
     /* one red dot */
     .text =
         "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5E"
         "rkJggg==",
     .name = "dot.png",
     .media_type = "image/png"},
    {.op = DEMO_LINK,
     .wait = 100,
     .text = "https://example.com/report.pdf",
     .name = "report.pdf",
     .media_type = "application/pdf"},
    {.op = DEMO_TEXT, .wait = 40, .text = "Here are a table, a picture and a link to a report."},
    {.op = DEMO_END},
};

static const struct demo_step data[] = {
    {.op = DEMO_WORKING},
    {.op = DEMO_DATA,
     .wait = 100,
     .text = "{\"city\":\"Oakland\",\"temperature\":{\"value\":72,\"unit\":\"°F\"},\"forecast\":["
             "\"sunny\",\"sunny\",\"fog\"],\"sunrise\":null,\"chance_of_rain\":0.05}",
     .name = "weather"},
    {.op = DEMO_TEXT,
     .wait = 40,
     .text = "It is sunny in Oakland, 72°F; the details are in the data."},
    {.op = DEMO_END},
};

static const struct demo_step ask[] = {
    {.op = DEMO_WORKING},
    {.op = DEMO_ASK, .wait = 100, .text = "What is your name?"},
};

static const struct demo_step ask_again[] = {
    {.op = DEMO_WORKING},
    {.op = DEMO_ASK, .wait = 100, .text = "I did not get that. What is your name?"},
};

static const struct demo_step answered[] = {
    {.op = DEMO_WORKING},
    {.op = DEMO_TEXT, .wait = 40},
    {.op = DEMO_END},
};

static const struct demo_step auth[] = {
    {.op = DEMO_WORKING},
    {.op = DEMO_AUTH,
     .wait = 100,
     .text = "This needs credentials. Pretend to have given them, and send any message to go on."},
};

static const struct demo_step authorized[] = {
    {.op = DEMO_WORKING},
    {.op = DEMO_TEXT,
     .wait = 40,
     .text = "Thank you, the credentials are in order. Here is the secret: 42."},
    {.op = DEMO_END},
};

static const struct demo_step fail[] = {
    {.op = DEMO_WORKING},
    {.op = DEMO_FAIL, .wait = 200, .text = "the demo was asked to fail"},
};

static const struct demo_step break_off[] = {
    {.op = DEMO_WORKING},
    {.op = DEMO_BREAK, .wait = 40, .text = STREAMED},
    {.op = DEMO_FAIL, .text = "the demo broke off in the middle, as it was asked to"},
};

static const struct demo_step reject[] = {
    {.op = DEMO_REJECT, .text = "I will not do that: the demo was asked to refuse."},
};

static const struct demo_step long_script[] = {
    {.op = DEMO_WORKING},
    {.op = DEMO_TEXT, .wait = 1, .cut = DEMO_KILOBYTES},
    {.op = DEMO_END},
};

static const struct demo_step unicode[] = {
    {.op = DEMO_WORKING},
    {.op = DEMO_TEXT,
     .wait = 10,
     .cut = DEMO_CHARACTERS,
     .text =
         "Grüße, Ελλάδα, Привет, שלום, مرحبا, नमस्ते, 你好, こんにちは, 안녕하세요; a\u0301 = á; "
         "👩‍👩‍👧‍👦 🏳️‍🌈 🇪🇺 𝒳; quote \" backslash \\ slash / "
         "tab "
         "\t "
         "newline\n"
         "line separator \u2028 next line \xc2\x85 zero width \u200b end."},
    {.op = DEMO_END},
};

static const struct demo_step slow[] = {
    {.op = DEMO_WORKING},
    {.op = DEMO_TEXT, .wait = 1000},
    {.op = DEMO_END},
};

static const struct demo_step listening[] = {
    {.op = DEMO_WORKING},
    {.op = DEMO_INDICATE, .text = "Listening"},
    {.op = DEMO_LISTEN, .wait = 20},
    {.op = DEMO_TEXT, .wait = 10},
    {.op = DEMO_END},
};

static const struct demo_script scripts[] = {
    {"help", "this list, as a Message", one_message, help_text},
    {"message", "one Message with what you wrote, no task", one_message, you_said},
    {"stream", "text in pieces", stream, NULL},
    {"status", "status indicators for five seconds, then the answer; cancel it at any point",
     status, NULL},
    {"file", "files: a table, a picture, a link", file, NULL},
    {"data", "structured data beside the answer", data, NULL},
    {"ask", "asks for your name and continues with your answer", ask, NULL},
    {"auth", "asks for credentials, continues with your next message", auth, NULL},
    {"fail", "fails, with a reason", fail, NULL},
    {"break", "fails in the middle of its answer", break_off, NULL},
    {"reject", "refuses", reject, NULL},
    {"long", "a long text; `long 10000` for that many lines", long_script, long_text},
    {"unicode", "text of many scripts, a character at a time", unicode, NULL},
    {"slow", "one word per second; `slow 60` for that many", slow, slow_text},
    {"listen", "works until you write `done`; messages that you send meanwhile reach it at once",
     listening, NULL},
    {"tools", "looks the weather up with a tool of its own", dgm_demo_tools, NULL},
    {"parallel-tools", "two tools at the same time", dgm_demo_parallel_tools, NULL},
    {"client-tool", "asks you to run the tool `get_weather`, and continues with its result",
     dgm_demo_client_tool, NULL},
    {"state", "shared state: a snapshot, then changes", dgm_demo_state, NULL},
    {"reasoning", "thinks before it answers", dgm_demo_reasoning, NULL},
    {"interrupt", "asks for approval, and continues with yes or no", dgm_demo_interrupt, NULL},
    {"usage", "reports the usage of the answer", dgm_demo_usage, NULL},
    {"subagent", "lets another agent work for it", dgm_demo_subagent, NULL},
    {"files", "lists the files of your message and sends them back", dgm_demo_files,
     dgm_demo_files_text},
    {"", NULL, echo, you_said},
};
#define N_SCRIPTS (sizeof scripts / sizeof *scripts)

/* What goes on after the agent asked. */
static const struct demo_script after_ask = {"", NULL, answered, you_answered};
static const struct demo_script after_nothing = {"", NULL, ask_again, NULL};
static const struct demo_script after_auth = {"", NULL, authorized, NULL};
static const struct demo_script after_tool = {"", NULL, answered, dgm_demo_after_client_tool};
static const struct demo_script after_interrupt = {"", NULL, answered, dgm_demo_after_interrupt};

static const struct demo_script *after_question(const dgm_run *run, dgm_str said)
{
    const dgm_message *question = run->input->task->status.message;
    if (dgm_demo_requested_tool(run->input->task))
        return &after_tool;
    if (question && dgm_str_eq(dgm_parts_text(question->parts, run->arena),
                               dgm_str_from(dgm_demo_interrupt_question)))
        return &after_interrupt;
    return said.n > 0 ? &after_ask : &after_nothing;
}

static dgm_str help_text(const dgm_run *run, dgm_str rest)
{
    dgm_buf b;
    (void)rest;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "Write one of these words:\n\n");
    for (size_t i = 0; i < N_SCRIPTS; i++) {
        if (scripts[i].about)
            dgm_buf_printf(&b, "- `%s`: %s\n", scripts[i].word, scripts[i].about);
    }
    dgm_buf_add_lit(&b, "\n"
                        "Any other text is repeated to you, streamed.");
    dgm_str text = dgm_arena_dup(run->arena, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

const struct demo_script *dgm_demo_script_for(const dgm_run *run, dgm_str text, dgm_str *ret_rest)
{
    const dgm_task *task = run->input->task;
    *ret_rest = dgm_text_trim(text);
    if (task && task->status.state == DGM_STATE_INPUT_REQUIRED)
        return after_question(run, *ret_rest);
    if (task && task->status.state == DGM_STATE_AUTH_REQUIRED)
        return &after_auth;
    for (size_t i = 0; i + 1 < N_SCRIPTS; i++) {
        if (dgm_text_command(text, scripts[i].word, ret_rest))
            return &scripts[i];
    }
    return &scripts[N_SCRIPTS - 1];
}

size_t dgm_demo_chunk(dgm_str text, enum demo_cut cut)
{
    size_t n = 1;
    if (cut == DEMO_WORDS) { /* with the spaces behind it */
        while (n < text.n && !(text.p[n - 1] == ' ' && text.p[n] != ' '))
            n++;
        if (n > 1000) /* no word at all */
            cut = DEMO_KILOBYTES;
    }
    if (cut == DEMO_KILOBYTES)
        n = text.n < 1024 ? text.n : 1024;
    while (n < text.n && ((unsigned char)text.p[n] & 0xc0) == 0x80) /* whole characters only */
        n++;
    return n < text.n ? n : text.n;
}
