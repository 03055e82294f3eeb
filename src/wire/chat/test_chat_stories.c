/*
 * test_chat_stories.c - random agents there and back again; random pieces put together again.
 *
 * What a completion can say comes back: as chunks it says what it says as a whole, and whoever reads either and
 * writes it again writes the same.
 */
#include "base/map.h"
#include "canon/message_content.h"
#include "canon/test_stories.h"
#include "canon/verify.h"
#include "wire/chat/test_chat_codec.h"

/* ---- paths -------------------------------------------------------------------------------------------------- */

static dgm_code put_line(void *arg, dgm_str name, dgm_str payload)
{
    (void)name;
    dgm_buf_add_str(arg, payload);
    dgm_buf_add_char(arg, '\n');
    return DGM_OK;
}

/* Checks the events on their way to the encoder. */
struct telling {
    struct encoding to;
    dgm_buf last; /* id of the text that spoke last */
    dgm_map spoken;
    dgm_arena *a;
    bool taken_back; /* a text, or the order of texts, is not what was streamed */
    size_t n_open;   /* texts; one that starts while another is open is held back in a stream */
    bool interrupted, rejected, spoke;
};

static void speaks(struct telling *t, dgm_str id)
{
    bool same = dgm_str_eq(dgm_buf_str(&t->last), id);
    t->taken_back |= !same && dgm_map_get(&t->spoken, id);
    dgm_map_put(&t->spoken, dgm_arena_dup(t->a, id), 0);
    dgm_buf_clear(&t->last);
    dgm_buf_add_str(&t->last, id);
    t->spoke = true;
}

/* Files and data speak, too; one that is made again may be another. */
static void shows(struct telling *t, const dgm_canon_event *e)
{
    dgm_str name =
        dgm_arena_printf(t->a, "artifact %.*s", DGM_P(e->artifact.artifact->artifact_id));
    t->taken_back |= !e->artifact.append && dgm_map_get(&t->spoken, name);
    dgm_buf_clear(&t->last);
    speaks(t, name);
}

static dgm_code tell(void *arg, const dgm_canon_event *e)
{
    struct telling *t = arg;
    if (e->kind == DGM_CANON_MESSAGES_SNAPSHOT)
        t->taken_back = true;
    t->n_open += e->kind == DGM_CANON_TEXT_MESSAGE_START;
    t->n_open -= e->kind == DGM_CANON_TEXT_MESSAGE_END;
    t->taken_back |= t->n_open > 1;
    if (e->kind == DGM_CANON_RUN_FINISHED)
        t->interrupted |= e->run_finished.outcome.kind == DGM_CANON_INTERRUPT;
    if (e->kind == DGM_CANON_RUN_ERROR)
        t->rejected |= dgm_str_is(e->run_error.code, "rejected");
    if (e->kind == DGM_CANON_TEXT_MESSAGE_CONTENT && e->text.delta.n)
        speaks(t, e->text.message_id);
    if (e->kind == DGM_CANON_ARTIFACT)
        shows(t, e);
    return encode_one(&t->to, e);
}

static void encode_story(const dgm_event *events, size_t n, bool whole, struct telling *t,
                         dgm_buf *out)
{
    dgm_auto(dgm_records_to_events_free) dgm_records_to_events *from =
        dgm_records_to_events_new(&(dgm_records_params){0});
    dgm_stream_params p = {
        .whole = whole, .usage = true, .model = DGM_STR("m"), .now = 1700000000000};
    dgm_canon_sink sink = {tell, t};
    dgm_err err = {0};
    t->n_open = 0;
    t->to.encoder = CHAT->encoder_new(&p, (dgm_frame_sink){put_line, out});
    dgm_code rc = DGM_OK;
    for (size_t i = 0; !rc && i < n; i++)
        rc = dgm_records_to_events_feed(from, &events[i], sink, &err);
    if (!rc)
        check_ok(dgm_records_to_events_end(from, sink, &err), err);
    check_ok(CHAT->encoder_end(t->to.encoder, &err), err);
    CHAT->encoder_free(t->to.encoder);
}

struct again {
    struct encoding to;
    dgm_verify *verify;
};

static dgm_code verify_and_encode(void *arg, const dgm_canon_event *e)
{
    struct again *g = arg;
    dgm_err err = {0};
    if (dgm_verify_feed(g->verify, e, &err) != DGM_ORDER_FINE)
        check_ok(DGM_BAD_PARAMS, err);
    return encode_one(&g->to, e);
}

/* Lines of a completion, read and written again as a whole. */
static void encode_again(const char *lines, dgm_buf *out)
{
    dgm_auto(dgm_verify_free) dgm_verify *verify = dgm_verify_new();
    dgm_stream_params p = {.whole = true, .usage = true, .now = 1700000000000};
    struct again g = {.verify = verify};
    dgm_canon_sink sink = {verify_and_encode, &g};
    dgm_err err = {0};
    size_t unknown = 0;
    g.to.encoder = CHAT->encoder_new(&p, (dgm_frame_sink){put_line, out});
    void *decoder = CHAT->decoder_new(&p);
    check_ok(decode_values(decoder, lines, sink, &err, &unknown), err);
    check_ok(CHAT->decoder_end(decoder, sink, &err), err);
    check_ok(CHAT->encoder_end(g.to.encoder, &err), err);
    CHAT->decoder_free(decoder);
    CHAT->encoder_free(g.to.encoder);
    assert_int_equal(dgm_verify_end(verify, &err), DGM_ORDER_FINE);
    assert_int_equal(unknown, 0);
}

/* ---- there and back ------------------------------------------------------------------------------------------- */

static void stories_come_back(void **state)
{
    size_t same = 0, chunked = 0;
    (void)state;
    for (size_t i = 0; i < 10000; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_event events[12];
        dgm_buf whole, chunks, again;
        struct telling t = {.a = a};
        seed = i;
        size_t n = 1 + roll(12);
        dgm_buf_init(&t.last, SIZE_MAX);
        dgm_map_init(&t.spoken);
        dgm_buf_init(&whole, SIZE_MAX);
        dgm_buf_init(&chunks, SIZE_MAX);
        tell_story(a, events, n);
        encode_story(events, n, true, &t, &whole);
        dgm_map_done(&t.spoken);
        dgm_map_init(&t.spoken);
        encode_story(events, n, false, &t, &chunks);
        /* An interrupt tells ids that only A2A has; a refusal beside an answer becomes part of it. */
        if (!t.interrupted && !(t.rejected && t.spoke)) {
            dgm_buf_add_char(&whole, 0);
            dgm_buf_add_char(&chunks, 0);
            dgm_buf_init(&again, SIZE_MAX);
            encode_again(whole.p, &again);
            check_bytes_(again.p, again.n, whole.p, whole.n - 1, __FILE__, __LINE__);
            same++;
            if (!t.taken_back) {
                dgm_buf_clear(&again);
                encode_again(chunks.p, &again);
                check_bytes_(again.p, again.n, whole.p, whole.n - 1, __FILE__, __LINE__);
                chunked++;
            }
            dgm_buf_done(&again);
        }
        dgm_map_done(&t.spoken);
        dgm_buf_done(&t.last);
        dgm_buf_done(&whole);
        dgm_buf_done(&chunks);
    }
    assert_true(same > 5000 && chunked > 3000);
}

/* ---- pieces ---------------------------------------------------------------------------------------------------- */

/* Texts that are awkward to split. */
static const char *const texts[] = {
    "{\"city\": \"Os\\u006co\", \"q\": \"\\\\\\\"\\ud83d\\ude0a\"}",
    "{\"é\":\"\u20ac\\n\U0001F60A\"}",
    "[1,2,{}]",
    "{\"a\":{\"a\":{\"a\":\"{}\"}}}",
    "\"just text \\\" {}\"",
    "12345678901234567890.50",
};

struct heard {
    dgm_buf arguments[4], text;
    bool ended[4], finished;
};

static dgm_code hear(void *arg, const dgm_canon_event *e)
{
    struct heard *h = arg;
    if (e->kind == DGM_CANON_TEXT_MESSAGE_CONTENT)
        dgm_buf_add_str(&h->text, e->text.delta);
    if (e->kind == DGM_CANON_TOOL_CALL_ARGS)
        dgm_buf_add_str(&h->arguments[e->call.tool_call_id.p[0] - 'a'], e->call.delta);
    if (e->kind == DGM_CANON_TOOL_CALL_END)
        h->ended[e->call.tool_call_id.p[0] - 'a'] = true;
    if (e->kind == DGM_CANON_RUN_FINISHED)
        h->finished = e->run_finished.outcome.pending_tool_call_ids.n > 0;
    return DGM_OK;
}

/* Up to n characters of it, never half of one. */
static dgm_str some(dgm_str *rest, size_t n)
{
    size_t end = 0;
    while (end < rest->n && n--) {
        end++;
        while (end < rest->n && ((unsigned char)rest->p[end] & 0xc0) == 0x80)
            end++;
    }
    dgm_str piece = {rest->p, end};
    *rest = (dgm_str){rest->p + end, rest->n - end};
    return piece;
}

/* One chunk for the next piece of call i, as one or another server would write it. */
static void put_piece(dgm_buf *b, size_t i, dgm_str *rest, bool first, bool indexed,
                      bool last_spoke)
{
    dgm_str piece = some(rest, roll(4));
    dgm_buf_add_lit(b, "{\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{");
    if (!roll(3))
        dgm_buf_add_lit(b, "\"role\":\"assistant\",\"content\":\"ha\",");
    dgm_buf_add_lit(b, "\"tool_calls\":[{");
    if (indexed)
        dgm_buf_printf(b, "\"index\":%zu,", i);
    if (first || !indexed ? !(last_spoke && !first && roll(2)) : !roll(3))
        dgm_buf_printf(b, "\"id\":\"%c\",", (char)('a' + i));
    dgm_buf_add_lit(b, "\"function\":{");
    if (first || (indexed && !roll(4)))
        dgm_buf_printf(b, "\"name\":\"f%zu\",", i);
    dgm_buf_add_lit(b, "\"arguments\":");
    dgm_json_put_str(b, piece);
    dgm_buf_add_lit(b, "}}]}}]}\n");
}

static void check_pieces(size_t n)
{
    dgm_str rest[4], want[4];
    bool begun[4] = {0}, indexed = roll(2);
    size_t left = 0, said = 0, last = n;
    struct heard h = {0};
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_init(&h.text, SIZE_MAX);
    for (size_t i = 0; i < n; i++, left++) {
        rest[i] = want[i] = dgm_str_from(PICK(texts));
        dgm_buf_init(&h.arguments[i], SIZE_MAX);
    }
    while (left) {
        size_t i = roll(n), before = b.n;
        if (begun[i] && !rest[i].n)
            continue;
        put_piece(&b, i, &rest[i], !begun[i], indexed, last == i);
        dgm_buf_add_char(&b, 0);
        said += strstr(b.p + before, "\"content\"") ? 1 : 0;
        b.n--;
        begun[i] = true;
        last = i;
        left -= !rest[i].n;
    }
    dgm_buf_add_lit(&b, "{\"id\":\"x\",\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}");
    dgm_buf_add_char(&b, 0);
    dgm_stream_params p = {0};
    dgm_err err = {0};
    size_t unknown = 0;
    void *decoder = CHAT->decoder_new(&p);
    check_ok(decode_values(decoder, b.p, (dgm_canon_sink){hear, &h}, &err, &unknown), err);
    check_ok(CHAT->decoder_end(decoder, (dgm_canon_sink){hear, &h}, &err), err);
    CHAT->decoder_free(decoder);
    for (size_t i = 0; i < n; i++) {
        check_same(h.arguments[i], want[i]);
        assert_true(h.ended[i]);
        dgm_buf_done(&h.arguments[i]);
    }
    assert_true(h.finished);
    assert_int_equal(h.text.n, 2 * said);
    dgm_buf_done(&h.text);
    dgm_buf_done(&b);
}

static void pieces_of_parallel_calls_find_each_other(void **state)
{
    (void)state;
    for (size_t i = 0; i < 10000; i++) {
        seed = i;
        check_pieces(1 + roll(4));
    }
}

DGM_TEST_MAIN(dgm_test(stories_come_back), dgm_test(pieces_of_parallel_calls_find_each_other))
