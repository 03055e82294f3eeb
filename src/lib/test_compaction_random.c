/*
 * test_compaction_random.c - a history that was streamed is compacted the same way by everything that reads it.
 *
 * Random lists of A2A messages: texts in chunks, with and without an End, several at once; calls whose arguments
 * come before and behind their Start; ids of calls that are used again; messages of the user between them. Map,
 * reduce, map of the documents' functions is compared with `convert` of the array, of a Task with this history,
 * and of what `compact` makes of either. Every text is made of words that occur once, so a lost or repeated text
 * is seen.
 */
#include "base/buf.h"
#include "base/map.h"
#include "support/check.h"
#include "json/json.h"

#include <dragoman/dragoman.h>

#define LISTS 600

static uint64_t seed;

static unsigned roll(unsigned n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

/* ---- a list ---------------------------------------------------------------------------------------------- */

#define MAX_TEXTS 4
#define MAX_CALLS 3

struct list {
    dgm_buf json; /* [message, ...] */
    size_t n;
    unsigned words, ids, results;
    unsigned fixed[400]; /* words that have this order: the user's, and those of complete texts */
    size_t n_fixed;
    struct {
        bool open;
        unsigned id, first, n; /* its words are first .. first + n - 1, each in a chunk */
    } texts[MAX_TEXTS];
    struct {
        bool open, started;
    } calls[MAX_CALLS];
};

static void begin_message(struct list *l, const char *role, unsigned id)
{
    dgm_buf_printf(&l->json, "%s{\"kind\":\"message\",\"messageId\":\"m%u\",\"role\":\"%s\",",
                   l->n++ ? "," : "", id, role);
}

static void add_text(struct list *l, const char *role, unsigned id, const char *text,
                     const char *type)
{
    begin_message(l, role, id);
    dgm_buf_printf(&l->json,
                   "\"parts\":[{\"kind\":\"text\",\"text\":\"%s\"}],\"metadata\":{"
                   "\"canonical_type\":\"%s\"}}",
                   text, type);
}

static void add_user(struct list *l)
{
    char text[32];
    snprintf(text, sizeof text, "w%u.", l->words);
    l->fixed[l->n_fixed++] = l->words++;
    add_text(l, "user", l->ids++, text, "TextMessageContentEvent");
    for (int i = 0; i < MAX_CALLS; i++) /* a later turn may use an id again */
        l->calls[i].open = l->calls[i].open && !l->calls[i].started;
}

/* Chunks of several texts take turns. */
static void add_chunk(struct list *l)
{
    unsigned i = roll(MAX_TEXTS);
    char text[32];
    if (!l->texts[i].open) {
        l->texts[i].open = true;
        l->texts[i].id = l->ids++;
        l->texts[i].n = 0;
        l->texts[i].first = l->words;
        l->words += 40; /* room for its chunks */
    }
    if (l->texts[i].n == 40)
        return;
    snprintf(text, sizeof text, "w%u.", l->texts[i].first + l->texts[i].n++);
    add_text(l, "agent", l->texts[i].id, text, "TextMessageChunkEvent");
}

static void add_end(struct list *l)
{
    unsigned i = roll(MAX_TEXTS);
    dgm_buf text;
    dgm_buf_init(&text, SIZE_MAX);
    if (!l->texts[i].open) { /* one that was never streamed */
        dgm_buf_printf(&text, "w%u.", l->words);
        l->texts[i].id = l->ids++;
        l->fixed[l->n_fixed++] = l->words++;
    } else {
        for (unsigned k = 0; k < l->texts[i].n; k++) {
            dgm_buf_printf(&text, "w%u.", l->texts[i].first + k);
            l->fixed[l->n_fixed++] = l->texts[i].first + k;
        }
        l->texts[i].open = false;
    }
    dgm_buf_add_char(&text, 0);
    add_text(l, "agent", l->texts[i].id, text.p, "TextMessageEndEvent");
    dgm_buf_done(&text);
}

static void add_arguments(struct list *l, unsigned c, bool is_start)
{
    begin_message(l, "agent", l->ids++);
    dgm_buf_printf(&l->json,
                   "\"parts\":[{\"kind\":\"data\",\"data\":{\"tool_calls\":[{\"call_id\":\"c%u\","
                   "\"name\":\"f\",\"arguments\":",
                   c);
    dgm_buf_printf(&l->json, "{\"k%u\":%u,\"k%u\":%u}", roll(3), roll(9), 3 + roll(3), roll(9));
    dgm_buf_printf(&l->json, "}]}}],\"metadata\":{\"canonical_type\":\"%s\"}}",
                   is_start ? "ToolCallStartEvent" : "ToolCallArgsEvent");
}

static void add_call(struct list *l)
{
    unsigned c = roll(MAX_CALLS), what = roll(3);
    if (!l->calls[c].open) {
        l->calls[c].open = true;
        l->calls[c].started = false;
    }
    if (what == 2 && l->calls[c].started) {
        begin_message(l, "user", l->ids++);
        dgm_buf_printf(&l->json,
                       "\"parts\":[{\"kind\":\"data\",\"data\":{\"tool_results\":[{\"call_id\":"
                       "\"c%u\",\"name\":\"f\",\"output\":\"r%u.\"}]}}]}",
                       c, l->results++);
        l->calls[c].open = false;
    } else if (l->calls[c].started || what == 0) {
        add_arguments(l, c, false);
    } else {
        add_arguments(l, c, true);
        l->calls[c].started = true;
    }
}

static void make_list(struct list *l)
{
    *l = (struct list){0};
    dgm_buf_init(&l->json, SIZE_MAX);
    dgm_buf_add_char(&l->json, '[');
    for (unsigned i = 0, n = 1 + roll(30); i < n; i++) {
        switch (roll(8)) {
        case 0: add_user(l); break;
        case 1:
        case 2:
        case 3: add_chunk(l); break;
        case 4: add_end(l); break;
        default: add_call(l); break;
        }
    }
    dgm_buf_add_char(&l->json, ']');
}

/* ---- content ------------------------------------------------------------------------------------------- */

static void flatten_message(dgm_arena *a, yyjson_val *m, dgm_buf *out)
{
    dgm_str role = dgm_json_str(dgm_json_get(m, DGM_STR("role")));
    yyjson_val *content = dgm_json_get(m, DGM_STR("content")), *call;
    dgm_err err = {0};
    size_t i, n;
    if (yyjson_is_str(content) && yyjson_get_len(content)) {
        dgm_str text = dgm_json_str(content);
        dgm_buf_printf(out, "%.*s %.*s\n", DGM_P(role), DGM_P(text));
    }
    yyjson_arr_foreach (dgm_json_get(m, DGM_STR("tool_calls")), i, n, call) {
        yyjson_val *f = dgm_json_get(call, DGM_STR("function")), *arguments;
        dgm_str id = dgm_json_str(dgm_json_get(call, DGM_STR("id")));
        dgm_str text = dgm_json_str(dgm_json_get(f, DGM_STR("arguments")));
        check_ok(dgm_json_read(a, text, SIZE_MAX, "", &arguments, &err), err);
        dgm_buf_printf(out, "call %.*s ", DGM_P(id));
        dgm_json_put(out, arguments);
        dgm_buf_add_char(out, '\n');
    }
}

/* A chat history without what is the format's own: texts, calls, results, in order, one in a line. */
static void flatten(const char *chat, dgm_buf *out)
{
    dgm_arena *a = dgm_arena_new();
    yyjson_val *list, *m;
    size_t i, n;
    dgm_err err = {0};
    check_ok(dgm_json_read(a, dgm_str_from(chat), SIZE_MAX, "", &list, &err), err);
    if (yyjson_is_obj(list)) /* one message of a Task is not a list */
        flatten_message(a, list, out);
    yyjson_arr_foreach (list, i, n, m)
        flatten_message(a, m, out);
    dgm_arena_free(a);
}

static char *convert(const char *from, const char *to, const char *text, dgm_compaction compact)
{
    const dgm_convert_options options = {.size = sizeof options,
                                         .from = dgm_format_id_by_name(from),
                                         .to = dgm_format_id_by_name(to),
                                         .framing = DGM_FRAMING_AUTO,
                                         .compact = compact};
    dgm_err err = {0};
    char *out = NULL;
    size_t n = 0;
    dgm_code rc = dgm_convert(&options, text, strlen(text), &out, &n, &err);
    if (rc)
        print_error("%s -> %s of %s\n", from, to, text);
    check_ok(rc, err);
    return out;
}

/* Moves the results to the end: formats whose results are bound to their call write them right behind it. */
static void results_last(dgm_buf *b)
{
    dgm_buf texts, results;
    dgm_buf_init(&texts, SIZE_MAX);
    dgm_buf_init(&results, SIZE_MAX);
    for (size_t i = 0, n; i < b->n; i += n) {
        dgm_str line = {b->p + i, b->n - i};
        n = (size_t)((const char *)memchr(line.p, '\n', line.n) - line.p) + 1;
        line.n = n;
        dgm_buf_add_str(dgm_str_starts(line, DGM_STR("tool ")) ? &results : &texts, line);
    }
    dgm_buf_clear(b);
    dgm_buf_add_str(b, dgm_buf_str(&texts));
    if (results.n)
        dgm_buf_printf(b, "%zu bytes of results\n", results.n);
    dgm_buf_done(&texts);
    dgm_buf_done(&results);
}

static void check_says(const char *what, char *chat, const dgm_buf *want, const char *in)
{
    dgm_buf got;
    dgm_buf_init(&got, SIZE_MAX);
    flatten(chat, &got);
    if (strncmp(what, "over ", 5) == 0)
        results_last(&got);
    if (got.n != want->n || memcmp(got.p, want->p, got.n) != 0)
        print_error("seed %llu, %s: %s\n", (unsigned long long)seed, what, in);
    check_same(got, *want);
    dgm_buf_done(&got);
    free(chat);
}

static char *by_functions(const char *list)
{
    char *events = NULL, *compact = NULL, *chat = NULL;
    size_t n = 0;
    dgm_err err = {0};
    check_ok(dgm_convert_a2a_message_to_agui_event(list, strlen(list), DGM_EVENTS_SIMPLE, &events,
                                                   &n, &err),
             err);
    check_ok(dgm_compact_events(events, n, &compact, &n, &err), err);
    check_ok(dgm_convert_agui_event_to_openai_chat(compact, n, &chat, &n, &err), err);
    dgm_free(events);
    dgm_free(compact);
    return chat;
}

/* Each word of each text is there once; those that have a fixed order are in it. */
static void check_words(const struct list *l, const dgm_buf *said, const char *in)
{
    char word[32];
    const char *at = said->p;
    for (size_t i = 0; i < l->n_fixed; i++) {
        snprintf(word, sizeof word, "w%u.", l->fixed[i]);
        const char *found = strstr(at, word);
        if (!found)
            print_error("%s is lost, or at another place, in\n%s\nof %s\n", word, said->p, in);
        assert_non_null(found);
        at = found;
    }
    for (unsigned w = 0; w < l->words; w++) {
        snprintf(word, sizeof word, "w%u.", w);
        if (!strstr(in, word))
            continue;
        const char *found = strstr(said->p, word);
        if (!found || strstr(found + 1, word))
            print_error("%s is not there once, in\n%s\nof %s\n", word, said->p, in);
        assert_true(found && !strstr(found + 1, word));
    }
    for (unsigned r = 0; r < l->results; r++) {
        snprintf(word, sizeof word, "tool r%u.\n", r);
        assert_non_null(strstr(said->p, word));
    }
}

static char *task_with(const char *history)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_printf(&b,
                   "{\"kind\":\"task\",\"id\":\"t\",\"contextId\":\"x\",\"status\":{\"state\":"
                   "\"completed\"},\"history\":%s}",
                   history);
    dgm_buf_add_char(&b, 0);
    return dgm_buf_steal(&b, NULL);
}

/* Over another format and back: only the texts and their order are compared. */
static void check_over(const char *format, const char *in, const dgm_buf *want)
{
    char *there = convert("a2a-0.3", format, in, DGM_COMPACT_DOCUMENTS), what[40];
    dgm_buf texts;
    dgm_buf_init(&texts, SIZE_MAX);
    dgm_buf_add_str(&texts, dgm_buf_str(want));
    results_last(&texts);
    snprintf(what, sizeof what, "over %s", format);
    check_says(what, convert(format, "openai-chat", there, DGM_COMPACT_DOCUMENTS), &texts, in);
    dgm_buf_done(&texts);
    free(there);
}

static void everything_compacts_alike(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < LISTS; i++) {
        struct list l;
        dgm_buf want;
        seed = i;
        make_list(&l);
        dgm_buf_add_char(&l.json, 0);
        const char *list = l.json.p;
        char *chat = by_functions(list), *task = task_with(list);
        dgm_buf_init(&want, SIZE_MAX);
        flatten(chat, &want);
        free(chat);
        check_says("the array", convert("a2a-0.3", "openai-chat", list, DGM_COMPACT_DOCUMENTS),
                   &want, list);
        check_says("a Task", convert("a2a-0.3", "openai-chat", task, DGM_COMPACT_DOCUMENTS), &want,
                   list);
        char *compacted = convert("a2a-0.3", "a2a-0.3", list, DGM_COMPACT_ALWAYS);
        assert_null(strstr(compacted, "ChunkEvent"));
        assert_null(strstr(compacted, "ArgsEvent"));
        check_says("compact, then convert",
                   convert("a2a-0.3", "openai-chat", compacted, DGM_COMPACT_NEVER), &want, list);
        free(compacted);
        compacted = convert("a2a-0.3", "a2a-1.0", task, DGM_COMPACT_ALWAYS);
        assert_null(strstr(compacted, "ChunkEvent"));
        check_says("compact of a Task, then convert",
                   convert("a2a-1.0", "openai-chat", compacted, DGM_COMPACT_NEVER), &want, list);
        free(compacted);
        if (want.n) {
            check_over("openai-responses", list, &want);
            check_over("langchain", list, &want);
            check_over("openai-responses", task, &want);
            check_over("langchain", task, &want);
        }
        dgm_buf_add_char(&want, 0);
        check_words(&l, &want, list);
        dgm_buf_done(&want);
        dgm_buf_done(&l.json);
        free(task);
    }
}

DGM_TEST_MAIN(dgm_test_holds(everything_compacts_alike, "R000-33 R000-34 R000-35 R000-36 R000-39"))
