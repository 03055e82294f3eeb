/*
 * backend/llm/mock_script.c - see mock.h: which script a request has, and what it says.
 *
 * The text of the last user message is a list of steps, joined by `then`. The step is chosen by the number of model turns
 * with calls behind that message: so one message can ask for several rounds of calls.
 */
#include "backend/backend_int.h"
#include "backend/llm/mock_int.h"
#include "base/limits.h"
#include "base/list.h"

#include <stdlib.h>
#include <strings.h>

#define MAX_WORDS 1000000
#define MAX_WAIT_MS 60000
#define SLOW_MS 50

/* ---- the request ------------------------------------------------------------------------------------------------ */

struct mock_request {
    dgm_arena *arena;
    const yyjson_val *request;
    dgm_str text;      /* of the last user message */
    yyjson_val *turns; /* the messages */
    size_t last_user;  /* index of that message */
    size_t n_rounds;   /* turns with calls behind it */
};

/* The content of a message: a text, or the texts of its parts. */
static dgm_str mock_content(dgm_arena *a, const yyjson_val *message)
{
    yyjson_val *content = dgm_json_get(message, DGM_STR("content")), *part;
    dgm_str all = DGM_STR("");
    size_t i, n;
    if (yyjson_is_str(content))
        return dgm_json_str(content);
    yyjson_arr_foreach (content, i, n, part)
        all = dgm_arena_join(a, all, dgm_json_str_member(part, "text"));
    return all;
}

static void mock_read_request(struct mock_request *r)
{
    yyjson_val *m;
    size_t i, n;
    r->turns = dgm_json_get(r->request, DGM_STR("messages"));
    yyjson_arr_foreach (r->turns, i, n, m) {
        dgm_str role = dgm_json_str_member(m, "role");
        if (dgm_str_is(role, "user")) {
            r->text = dgm_text_trim(mock_content(r->arena, m));
            r->last_user = i;
            r->n_rounds = 0;
        } else if (yyjson_arr_size(dgm_json_get(m, DGM_STR("tool_calls")))) {
            r->n_rounds++;
        }
    }
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static void mock_add(struct mock_script *s, enum mock_kind kind, dgm_str text)
{
    if (!text.n && kind != MOCK_FINISH && kind != MOCK_CUT)
        return;
    s->pieces = dgm_list_grow(s->arena, s->pieces, s->n, sizeof *s->pieces);
    s->pieces[s->n++] = (struct mock_piece){kind, text, {0}};
}

static void mock_add_call(struct mock_script *s, dgm_str name, dgm_str arguments)
{
    mock_add(s, MOCK_CALL, name.n ? name : DGM_STR("unnamed"));
    s->pieces[s->n - 1].arguments = arguments.n ? arguments : DGM_STR("{}");
}

static dgm_str mock_object(dgm_arena *a, const char *key, dgm_str value)
{
    dgm_member member = {dgm_str_from(key), dgm_json_make_string(a, value)};
    return dgm_json_text_in(a, dgm_json_object(a, &member, 1));
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Takes the first word off the text. */
static dgm_str mock_word(dgm_str *text)
{
    dgm_str t = dgm_text_trim(*text);
    size_t n = 0;
    while (n < t.n && !is_space(t.p[n]))
        n++;
    *text = dgm_text_trim((dgm_str){t.p + n, t.n - n});
    return (dgm_str){t.p, n};
}

/* A number at the start is taken off; -1: it does not start with a number. */
static long mock_number(dgm_str *text)
{
    dgm_str rest = *text, word = mock_word(&rest);
    long n = 0;
    if (!word.n || word.n > 7)
        return -1;
    for (size_t i = 0; i < word.n; i++) {
        if (word.p[i] < '0' || word.p[i] > '9')
            return -1;
        n = n * 10 + (word.p[i] - '0');
    }
    *text = rest;
    return n;
}

/* The length of the JSON object at the start of the text; 0: it does not start with one. */
static size_t mock_object_length(dgm_str t)
{
    size_t depth = 0;
    bool in_string = false;
    if (!t.n || t.p[0] != '{')
        return 0;
    for (size_t i = 0; i < t.n; i++) {
        char c = t.p[i];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '{' || c == '['))
            depth++;
        else if (!in_string && (c == '}' || c == ']') && --depth == 0)
            return i + 1;
    }
    return 0;
}

/* ---- scripts ----------------------------------------------------------------------------------------------------- */

enum mock_command {
    COMMAND_NONE,
    COMMAND_CALL,
    COMMAND_ASK,
    COMMAND_THINK,
    COMMAND_SLOW,
    COMMAND_ECHO,
    COMMAND_LONG,
    COMMAND_REFUSE,
    COMMAND_FILTER,
    COMMAND_LENGTH,
    COMMAND_JSON,
    COMMAND_ERROR,
    COMMAND_FAIL,
    COMMAND_CUT,
    COMMAND_SILENT,
    COMMAND_HANG,
    COMMAND_FIRST,
};

static const char *const commands[] = {"",     "call",   "ask",    "think",  "slow",  "echo",
                                       "long", "refuse", "filter", "length", "json",  "error",
                                       "fail", "cut",    "silent", "hang",   "first", NULL};

static enum mock_command mock_command_of(dgm_str word)
{
    for (int i = 1; commands[i]; i++) {
        if (dgm_str_eq_nocase(word, dgm_str_from(commands[i])))
            return (enum mock_command)i;
    }
    return COMMAND_NONE;
}

/* The step with this number; ` then ` separates steps if a command follows it. Empty: there are fewer. */
static dgm_str mock_step(dgm_str text, size_t number)
{
    size_t from = 0;
    for (size_t i = 0; i + 6 < text.n; i++) {
        if (strncasecmp(text.p + i, " then ", 6) != 0)
            continue;
        dgm_str rest = {text.p + i + 6, text.n - i - 6}, copy = rest;
        if (!mock_command_of(mock_word(&copy)))
            continue;
        if (number-- == 0)
            return (dgm_str){text.p + from, i - from};
        from = i + 6;
    }
    return number ? (dgm_str){0} : (dgm_str){text.p + from, text.n - from};
}

/* NAME {JSON} call NAME {JSON} ...; anything else ends the list. */
static void mock_script_calls(struct mock_script *s, dgm_str text)
{
    do {
        dgm_str name = mock_word(&text);
        size_t n = mock_object_length(text);
        mock_add_call(s, name, (dgm_str){text.p, n});
        text = (dgm_str){text.p + n, text.n - n};
    } while (mock_command_of(mock_word(&text)) == COMMAND_CALL);
    mock_add(s, MOCK_FINISH, DGM_STR("tool_calls"));
}

static void mock_script_json(struct mock_script *s, const yyjson_val *request, dgm_str text)
{
    yyjson_val *format = dgm_json_get(request, DGM_STR("response_format"));
    yyjson_val *schema =
        dgm_json_get(dgm_json_get(format, DGM_STR("json_schema")), DGM_STR("schema"));
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_RECORD_BYTES);
    if (schema)
        dgm_mock_put_value(&b, schema, DGM_STR(""), text, 0);
    else
        dgm_buf_add_str(&b, mock_object(s->arena, "answer", text));
    mock_add(s, MOCK_TEXT, dgm_arena_dup(s->arena, dgm_buf_str(&b)));
    dgm_buf_done(&b);
}

static void mock_script_error(struct mock_script *s, dgm_str text)
{
    long status = mock_number(&text);
    s->status = status >= 400 && status <= 599 ? (int)status : 500;
    s->error = text.n ? text : DGM_STR("the script asks for this error");
}

static void mock_script_long(struct mock_script *s, dgm_str text)
{
    long n = mock_number(&text);
    s->n_words = n < 0 ? 100 : n > MAX_WORDS ? MAX_WORDS : (size_t)n;
}

static void mock_script_slow(struct mock_script *s, dgm_str text)
{
    long ms = mock_number(&text);
    s->wait_ms = ms < 0 ? SLOW_MS : ms > MAX_WAIT_MS ? MAX_WAIT_MS : (uint32_t)ms;
    mock_add(s, MOCK_TEXT, text.n ? text : DGM_STR("one word at a time"));
}

static void mock_script_length(struct mock_script *s, dgm_str text)
{
    mock_add(s, MOCK_TEXT, text.n ? text : DGM_STR("This text is cut"));
    mock_add(s, MOCK_FINISH, DGM_STR("length"));
}

static void mock_script_cut(struct mock_script *s, dgm_str text)
{
    mock_add(s, MOCK_TEXT, text);
    mock_add(s, MOCK_CUT, (dgm_str){0});
}

static void mock_script_fail(struct mock_script *s, dgm_str text)
{
    mock_add(s, MOCK_TEXT, DGM_STR("I start "));
    mock_add(s, MOCK_FAIL, text.n ? text : DGM_STR("the script asks for this error"));
}

/* What a step says. The pieces may lack their end: then it is `stop`. */
static void mock_script_command(struct mock_script *s, const yyjson_val *request,
                                enum mock_command command, dgm_str text)
{
    switch (command) {
    case COMMAND_CALL: mock_script_calls(s, text); return;
    case COMMAND_ASK:
        mock_add_call(s, DGM_STR("ask_user"), mock_object(s->arena, "question", text));
        mock_add(s, MOCK_FINISH, DGM_STR("tool_calls"));
        return;
    case COMMAND_THINK:
        mock_add(s, MOCK_REASONING, DGM_STR("I think about it. "));
        mock_add(s, MOCK_TEXT, text.n ? text : DGM_STR("I have thought about it."));
        return;
    case COMMAND_SLOW: mock_script_slow(s, text); return;
    case COMMAND_ECHO: mock_add(s, MOCK_TEXT, text); return;
    case COMMAND_LONG: mock_script_long(s, text); return;
    case COMMAND_REFUSE:
        mock_add(s, MOCK_REFUSAL, text.n ? text : DGM_STR("I will not do this."));
        return;
    case COMMAND_FILTER: mock_add(s, MOCK_FINISH, DGM_STR("content_filter")); return;
    case COMMAND_LENGTH: mock_script_length(s, text); return;
    case COMMAND_JSON: mock_script_json(s, request, text); return;
    case COMMAND_ERROR: mock_script_error(s, text); return;
    case COMMAND_FAIL: mock_script_fail(s, text); return;
    case COMMAND_CUT: mock_script_cut(s, text); return;
    case COMMAND_HANG: s->hangs = true; return;
    case COMMAND_NONE:
    case COMMAND_SILENT:
    case COMMAND_FIRST: return;
    }
}

/* ---- without a command -------------------------------------------------------------------------------------------- */

static void mock_script_tool(struct mock_script *s, const yyjson_val *tool, dgm_str text)
{
    yyjson_val *function = dgm_json_get(tool, DGM_STR("function"));
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_RECORD_BYTES);
    dgm_mock_put_value(&b, dgm_json_get(function, DGM_STR("parameters")), DGM_STR(""), text, 0);
    bool is_object = b.n && b.p[0] == '{';
    mock_add_call(s, dgm_json_str_member(function, "name"),
                  is_object ? dgm_arena_dup(s->arena, dgm_buf_str(&b)) : DGM_STR("{}"));
    dgm_buf_done(&b);
    mock_add(s, MOCK_FINISH, DGM_STR("tool_calls"));
}

static bool wants_json(const yyjson_val *request)
{
    dgm_str type = dgm_json_str_member(dgm_json_get(request, DGM_STR("response_format")), "type");
    return dgm_str_is(type, "json_object") || dgm_str_is(type, "json_schema");
}

static void mock_script_plain(struct mock_script *s, const struct mock_request *r)
{
    yyjson_val *tool = dgm_mock_find_tool(dgm_json_get(r->request, DGM_STR("tools")), r->text);
    if (wants_json(r->request))
        mock_script_json(s, r->request, r->text);
    else if (tool)
        mock_script_tool(s, tool, r->text);
    else if (!r->text.n)
        mock_add(s, MOCK_TEXT, DGM_STR("Hello! I am the scripted model."));
    else
        mock_add(s, MOCK_TEXT,
                 dgm_arena_printf(s->arena, "Hello! I am the scripted model. You wrote: %.*s",
                                  DGM_P(r->text)));
}

/* ---- after calls ---------------------------------------------------------------------------------------------------- */

static dgm_str mock_call_name(const struct mock_request *r, dgm_str id)
{
    yyjson_val *m, *call;
    dgm_str name = DGM_STR("a tool");
    size_t i, n, k, max;
    yyjson_arr_foreach (r->turns, i, n, m) {
        yyjson_arr_foreach (dgm_json_get(m, DGM_STR("tool_calls")), k, max, call) {
            if (dgm_str_eq(dgm_json_str_member(call, "id"), id))
                name = dgm_json_str_member(dgm_json_get(call, DGM_STR("function")), "name");
        }
    }
    return name;
}

/* A sentence for each result behind the user's message. */
static void mock_script_results(struct mock_script *s, const struct mock_request *r)
{
    yyjson_val *m;
    size_t i, n;
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_FINAL_TEXT_BYTES);
    yyjson_arr_foreach (r->turns, i, n, m) {
        if (i < r->last_user || !dgm_str_is(dgm_json_str_member(m, "role"), "tool"))
            continue;
        dgm_str name = mock_call_name(r, dgm_json_str_member(m, "tool_call_id"));
        dgm_str result = dgm_text_trim(mock_content(s->arena, m));
        if (b.n)
            dgm_buf_add_char(&b, ' ');
        dgm_buf_printf(&b, "The result of %.*s is: %.*s", DGM_P(name), DGM_P(result));
    }
    mock_add(s, MOCK_TEXT, dgm_arena_dup(s->arena, dgm_buf_str(&b)));
    dgm_buf_done(&b);
}

/* ---- the choice -------------------------------------------------------------------------------------------------------- */

void dgm_mock_write_script(struct mock_script *s, const yyjson_val *request, unsigned attempt)
{
    struct mock_request r = {.arena = s->arena, .request = request, .text = DGM_STR("")};
    mock_read_request(&r);
    dgm_str step = mock_step(r.text, r.n_rounds), rest = step;
    enum mock_command command = mock_command_of(mock_word(&rest));
    if (command == COMMAND_FIRST && attempt) {
        mock_add(s, MOCK_TEXT, dgm_arena_printf(s->arena, "This is attempt %u.", attempt + 1));
    } else {
        if (command == COMMAND_FIRST)
            command = mock_command_of(mock_word(&rest));
        if (command)
            mock_script_command(s, request, command, rest);
        else if (r.n_rounds)
            mock_script_results(s, &r);
        else
            mock_script_plain(s, &r);
    }
    const struct mock_piece *last = s->n ? &s->pieces[s->n - 1] : NULL;
    if (!last || (last->kind != MOCK_FINISH && last->kind != MOCK_FAIL && last->kind != MOCK_CUT))
        mock_add(s, MOCK_FINISH, DGM_STR("stop"));
}
