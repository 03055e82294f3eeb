/* backend/llm/mock.c - see mock.h: the bytes of an answer. The scripts are in mock_script.c. */
#include "backend/llm/mock_int.h"
#include "base/limits.h"

#include <stdlib.h>

#define HOUR_MS 3600000

struct dgm_mock {
    dgm_arena *arena;
    struct mock_script script;
    bool is_stream, has_usage;
    size_t n_input; /* words of the request, as its tokens */
    size_t next, n_out, n_calls;
    size_t word, part; /* part: of the piece that is being written */
    enum { MOCK_ROLE, MOCK_PIECES, MOCK_USAGE, MOCK_DONE, MOCK_OVER } state;
    dgm_buf out;
};

bool dgm_mock_is(dgm_str s)
{
    return dgm_str_starts(s, DGM_STR("mock:"));
}

/* ---- the stream ------------------------------------------------------------------------------------------------ */

static void mock_put_head(dgm_mock *m)
{
    dgm_buf_add_lit(&m->out, "data: {\"id\":\"mock-1\",\"object\":\"chat.completion.chunk\","
                             "\"created\":1790000000,\"model\":\"mock\",\"choices\":[");
}

static void mock_put_delta(dgm_mock *m, const char *name, dgm_str text)
{
    mock_put_head(m);
    dgm_buf_printf(&m->out, "{\"index\":0,\"delta\":{\"%s\":", name);
    dgm_json_put_str(&m->out, text);
    dgm_buf_add_lit(&m->out, "},\"finish_reason\":null}]}\n\n");
    m->n_out++;
}

/* The next word with the blanks behind it; the position moves on. Empty: there are no more. */
static dgm_str mock_next_word(dgm_str text, size_t *at)
{
    size_t from = *at, i = from;
    while (i < text.n && text.p[i] != ' ' && text.p[i] != '\n')
        i++;
    while (i < text.n && (text.p[i] == ' ' || text.p[i] == '\n'))
        i++;
    *at = i;
    return (dgm_str){text.p + from, i - from};
}

/* A text goes out word by word; true: it is complete. */
static bool mock_put_words(dgm_mock *m, const char *name, dgm_str text)
{
    mock_put_delta(m, name, mock_next_word(text, &m->part));
    return m->part >= text.n;
}

/* A call: id and name, then the arguments in two fragments. */
static bool mock_put_call(dgm_mock *m, const struct mock_piece *p)
{
    size_t half = p->arguments.n / 2;
    mock_put_head(m);
    dgm_buf_printf(&m->out, "{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":%zu,", m->n_calls);
    if (m->part == 0) {
        uint64_t hash = dgm_hash(m->n_input, p->arguments.p, p->arguments.n);
        dgm_buf_printf(&m->out, "\"id\":\"call_%08x%zu\",\"type\":\"function\",", (unsigned)hash,
                       m->n_calls);
        dgm_buf_add_lit(&m->out, "\"function\":{\"name\":");
        dgm_json_put_str(&m->out, p->text);
        dgm_buf_add_lit(&m->out, ",\"arguments\":\"\"}");
    } else {
        dgm_buf_add_lit(&m->out, "\"function\":{\"arguments\":");
        while (half < p->arguments.n && ((unsigned char)p->arguments.p[half] & 0xc0) == 0x80)
            half++;
        dgm_json_put_str(&m->out, m->part == 1
                                      ? (dgm_str){p->arguments.p, half}
                                      : (dgm_str){p->arguments.p + half, p->arguments.n - half});
        dgm_buf_add_char(&m->out, '}');
    }
    dgm_buf_add_lit(&m->out, "}]},\"finish_reason\":null}]}\n\n");
    m->n_out++;
    if (++m->part < 3)
        return false;
    m->n_calls++;
    return true;
}

static void mock_put_finish(dgm_mock *m, dgm_str reason)
{
    mock_put_head(m);
    dgm_buf_add_lit(&m->out, "{\"index\":0,\"delta\":{},\"finish_reason\":");
    dgm_json_put_str(&m->out, reason);
    dgm_buf_add_lit(&m->out, "}]}\n\n");
}

static void mock_put_error(dgm_buf *b, dgm_str text, const char *type, int status)
{
    dgm_buf_add_lit(b, "{\"error\":{\"message\":");
    dgm_json_put_str(b, text);
    dgm_buf_printf(b, ",\"type\":\"%s\",\"param\":null,\"code\":", type);
    if (status)
        dgm_buf_printf(b, "%d}}", status);
    else
        dgm_buf_add_lit(b, "null}}");
}

/* Numbers of words; there is no tokenizer. */
static void mock_put_usage(dgm_mock *m)
{
    dgm_buf_printf(
        &m->out, "\"usage\":{\"prompt_tokens\":%zu,\"completion_tokens\":%zu,\"total_tokens\":%zu}",
        m->n_input, m->n_out, m->n_input + m->n_out);
}

static bool mock_put_piece(dgm_mock *m, const struct mock_piece *p, dgm_mock_step *step)
{
    switch (p->kind) {
    case MOCK_TEXT: return mock_put_words(m, "content", p->text);
    case MOCK_REASONING: return mock_put_words(m, "reasoning_content", p->text);
    case MOCK_REFUSAL: return mock_put_words(m, "refusal", p->text);
    case MOCK_CALL: return mock_put_call(m, p);
    case MOCK_FINISH: mock_put_finish(m, p->text); return true;
    case MOCK_FAIL:
        dgm_buf_add_lit(&m->out, "data: ");
        mock_put_error(&m->out, p->text, "server_error", 0);
        dgm_buf_add_lit(&m->out, "\n\n");
        m->has_usage = false;
        return true;
    case MOCK_CUT:
        step->is_cut = true;
        m->state = MOCK_OVER;
        return true;
    }
    return true;
}

static void mock_put_made_up_word(dgm_mock *m)
{
    static const char *const words[] = {"the ",   "quick ", "brown ", "fox ",
                                        "jumps ", "over ",  "lazy ",  "dogs "};
    mock_put_delta(m, "content", dgm_str_from(words[m->word++ % 8]));
}

static void mock_next_event(dgm_mock *m, dgm_mock_step *step)
{
    const struct mock_script *s = &m->script;
    step->wait_ms = s->wait_ms;
    switch (m->state) {
    case MOCK_ROLE:
        mock_put_head(m);
        dgm_buf_add_lit(&m->out, "{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"
                                 "\"finish_reason\":null}]}\n\n");
        step->wait_ms = s->hangs ? HOUR_MS : 0;
        m->state = MOCK_PIECES;
        return;
    case MOCK_PIECES:
        if (m->word < s->n_words) {
            mock_put_made_up_word(m);
        } else if (mock_put_piece(m, &s->pieces[m->next], step)) {
            m->next++;
            m->part = 0;
        }
        if (m->next == s->n && m->state == MOCK_PIECES)
            m->state = m->has_usage ? MOCK_USAGE : MOCK_DONE;
        return;
    case MOCK_USAGE:
        mock_put_head(m);
        dgm_buf_add_lit(&m->out, "],");
        mock_put_usage(m);
        dgm_buf_add_lit(&m->out, "}\n\n");
        step->wait_ms = 0;
        m->state = MOCK_DONE;
        return;
    case MOCK_DONE:
        dgm_buf_add_lit(&m->out, "data: [DONE]\n\n");
        step->wait_ms = 0;
        step->is_end = true;
        m->state = MOCK_OVER;
        return;
    case MOCK_OVER: step->is_end = true; return;
    }
}

/* ---- the whole answer ------------------------------------------------------------------------------------------------ */

static void mock_put_whole_text(dgm_mock *m, const char *name, enum mock_kind kind)
{
    const struct mock_script *s = &m->script;
    dgm_buf text;
    dgm_buf_init(&text, DGM_MAX_RECORD_BYTES);
    for (size_t i = 0; kind == MOCK_TEXT && i < s->n_words; i++)
        dgm_buf_add_lit(&text, "word ");
    for (size_t i = 0; i < s->n; i++) {
        if (s->pieces[i].kind == kind)
            dgm_buf_add_str(&text, s->pieces[i].text);
    }
    if (text.n || kind == MOCK_TEXT) {
        dgm_buf_printf(&m->out, ",\"%s\":", name);
        dgm_json_put_str(&m->out, dgm_buf_str(&text));
        m->n_out += text.n / 4;
    }
    dgm_buf_done(&text);
}

static void mock_put_whole_calls(dgm_mock *m)
{
    const struct mock_script *s = &m->script;
    for (size_t i = 0; i < s->n; i++) {
        const struct mock_piece *p = &s->pieces[i];
        if (p->kind != MOCK_CALL)
            continue;
        if (m->n_calls)
            dgm_buf_add_char(&m->out, ',');
        else
            dgm_buf_add_lit(&m->out, ",\"tool_calls\":[");
        uint64_t hash = dgm_hash(m->n_input, p->arguments.p, p->arguments.n);
        dgm_buf_printf(&m->out, "{\"id\":\"call_%08x%zu\",\"type\":\"function\",\"function\":{",
                       (unsigned)hash, m->n_calls++);
        dgm_buf_add_lit(&m->out, "\"name\":");
        dgm_json_put_str(&m->out, p->text);
        dgm_buf_add_lit(&m->out, ",\"arguments\":");
        dgm_json_put_str(&m->out, p->arguments);
        dgm_buf_add_lit(&m->out, "}}");
    }
    if (m->n_calls)
        dgm_buf_add_char(&m->out, ']');
}

static void mock_put_whole(dgm_mock *m, dgm_mock_step *step)
{
    const struct mock_script *s = &m->script;
    const struct mock_piece *last = &s->pieces[s->n - 1];
    step->wait_ms = s->hangs ? HOUR_MS : 0;
    step->is_end = true;
    if (last->kind == MOCK_CUT) {
        step->is_end = false;
        step->is_cut = true;
        dgm_buf_add_lit(&m->out, "{\"id\":");
        return;
    }
    if (last->kind == MOCK_FAIL) {
        mock_put_error(&m->out, last->text, "server_error", 0);
        return;
    }
    dgm_buf_add_lit(&m->out, "{\"id\":\"mock-1\",\"object\":\"chat.completion\",\"created\":"
                             "1790000000,\"model\":\"mock\",\"choices\":[{\"index\":0,\"message\":{"
                             "\"role\":\"assistant\"");
    mock_put_whole_text(m, "content", MOCK_TEXT);
    mock_put_whole_text(m, "reasoning_content", MOCK_REASONING);
    mock_put_whole_text(m, "refusal", MOCK_REFUSAL);
    mock_put_whole_calls(m);
    dgm_buf_add_lit(&m->out, "},\"finish_reason\":");
    dgm_json_put_str(&m->out, last->text);
    dgm_buf_add_lit(&m->out, "}],");
    mock_put_usage(m);
    dgm_buf_add_lit(&m->out, "}\n");
}

/* ---- the handle ---------------------------------------------------------------------------------------------------- */

static size_t mock_count_words(dgm_str body)
{
    size_t n = 1;
    for (size_t i = 0; i < body.n; i++)
        n += body.p[i] == ' ';
    return n;
}

dgm_mock *dgm_mock_new(dgm_str body, unsigned attempt)
{
    dgm_mock *m = dgm_xcalloc(1, sizeof *m);
    yyjson_val *request = NULL;
    dgm_err err = {0};
    m->arena = dgm_arena_new_small(1024);
    m->script.arena = m->arena;
    m->n_input = mock_count_words(body);
    dgm_buf_init(&m->out, DGM_MAX_OBJECT_BYTES);
    if (dgm_json_read(m->arena, body, DGM_MAX_OBJECT_BYTES, "object_bytes", &request, &err) ||
        !yyjson_is_arr(dgm_json_get(request, DGM_STR("messages")))) {
        m->script.status = 400;
        m->script.error = DGM_STR("expected the body of a Chat Completions request");
        return m;
    }
    dgm_mock_write_script(&m->script, request, attempt);
    yyjson_val *options = dgm_json_get(request, DGM_STR("stream_options"));
    m->is_stream = !m->script.status && yyjson_is_true(dgm_json_get(request, DGM_STR("stream")));
    m->has_usage = yyjson_is_true(dgm_json_get(options, DGM_STR("include_usage")));
    return m;
}

void dgm_mock_free(dgm_mock *m)
{
    if (!m)
        return;
    dgm_buf_done(&m->out);
    dgm_arena_free(m->arena);
    free(m);
}

int dgm_mock_status(const dgm_mock *m)
{
    return m->script.status ? m->script.status : 200;
}

bool dgm_mock_is_stream(const dgm_mock *m)
{
    return m->is_stream;
}

dgm_str dgm_mock_retry_after(const dgm_mock *m)
{
    return m->script.status == 429 || m->script.status == 503 ? DGM_STR("0") : (dgm_str){0};
}

void dgm_mock_next(dgm_mock *m, dgm_mock_step *ret)
{
    const struct mock_script *s = &m->script;
    *ret = (dgm_mock_step){0};
    dgm_buf_clear(&m->out);
    if (s->status) {
        mock_put_error(&m->out, s->error, s->status == 429 ? "rate_limit_error" : "mock_error",
                       s->status);
        ret->is_end = true;
    } else if (m->is_stream) {
        mock_next_event(m, ret);
    } else {
        mock_put_whole(m, ret);
    }
    ret->bytes = dgm_buf_str(&m->out);
}
