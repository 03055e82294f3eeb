/*
 * test_responses_streams.h - the events of a run, as a text that can be compared: on the way through Responses ids
 * of texts, the borders of what follows one another, and the order of calls may change, nothing else.
 */
#pragma once

#include "model/form.h"
#include "wire/responses/test_responses.h"

#define MAX_TOLD 200

struct told_text {
    dgm_str id;
    dgm_buf text;
    bool open;
};

struct told_call {
    dgm_str id, name, result;
    dgm_buf arguments;
    bool failed;
};

struct told {
    dgm_arena *a;
    bool goes_in;
    bool goes_on; /* a text went on after its end */
    bool tangled; /* and one was withdrawn: Responses does not have their order */
    struct told_text texts[MAX_TOLD], thoughts[MAX_TOLD];
    struct told_call calls[MAX_TOLD];
    size_t n_texts, n_thoughts, n_calls, n_snapshots;
    dgm_str progress;
    dgm_buf end;
};

static inline struct told *told_new(dgm_arena *a)
{
    struct told *t = dgm_new(a, struct told);
    t->a = a;
    dgm_buf_init(&t->end, SIZE_MAX);
    return t;
}

static inline void told_free(struct told *t)
{
    for (size_t i = 0; i < t->n_texts; i++)
        dgm_buf_done(&t->texts[i].text);
    for (size_t i = 0; i < t->n_thoughts; i++)
        dgm_buf_done(&t->thoughts[i].text);
    for (size_t i = 0; i < t->n_calls; i++)
        dgm_buf_done(&t->calls[i].arguments);
    dgm_buf_done(&t->end);
}

static inline struct told_text *told_new_text(struct told *t, struct told_text *list, size_t *n,
                                              dgm_str id)
{
    assert_true(*n < MAX_TOLD);
    list[*n] = (struct told_text){.id = dgm_arena_dup(t->a, id), .open = true};
    dgm_buf_init(&list[*n].text, SIZE_MAX);
    return &list[(*n)++];
}

static inline struct told_text *told_find(struct told_text *list, size_t n, dgm_str id)
{
    while (n--) {
        if (dgm_str_eq(list[n].id, id))
            return &list[n];
    }
    return NULL;
}

static inline struct told_call *told_call_of(struct told *t, dgm_str id)
{
    for (size_t i = 0; i < t->n_calls; i++) {
        if (dgm_str_eq(t->calls[i].id, id))
            return &t->calls[i];
    }
    return NULL;
}

/* The position of a text is that of its first delta. On the way into Responses, a text that continues after other
 * items is placed after them: nothing can be added to an item that is done. */
static inline void told_text(struct told *t, const dgm_canon_event *e)
{
    struct told_text *it = told_find(t->texts, t->n_texts, e->text.message_id);
    bool is_last = it && it == &t->texts[t->n_texts - 1];
    if (e->kind == DGM_CANON_TEXT_MESSAGE_END && it)
        it->open = false;
    if (e->kind != DGM_CANON_TEXT_MESSAGE_CONTENT || !e->text.delta.n)
        return;
    t->goes_on |= it && !it->open;
    t->tangled |= t->goes_on && t->n_snapshots;
    if (!it || (t->goes_in && !it->open && !is_last))
        it = told_new_text(t, t->texts, &t->n_texts, e->text.message_id);
    it->open = true;
    dgm_buf_add_str(&it->text, e->text.delta);
}

static inline void told_snapshot(struct told *t, const dgm_canon_event *e)
{
    t->n_snapshots++;
    t->tangled |= t->goes_on;
    for (size_t i = 0; i < e->snapshot.messages.n; i++) {
        const dgm_canon_message *m = &e->snapshot.messages.at[i];
        bool first = true;
        if (!dgm_str_eq(m->id, e->snapshot.changed))
            continue;
        for (size_t k = 0; k < t->n_texts; k++) {
            if (!dgm_str_eq(t->texts[k].id, m->id))
                continue;
            dgm_buf_clear(&t->texts[k].text);
            if (first)
                dgm_buf_add_str(&t->texts[k].text, m->content.text);
            first = false;
        }
    }
}

static inline void told_tool(struct told *t, const dgm_canon_event *e)
{
    struct told_call *c = told_call_of(
        t, e->kind == DGM_CANON_TOOL_CALL_RESULT ? e->result.tool_call_id : e->call.tool_call_id);
    if (e->kind == DGM_CANON_TOOL_CALL_START && !c) {
        assert_true(t->n_calls < MAX_TOLD);
        c = &t->calls[t->n_calls++];
        *c = (struct told_call){.id = dgm_arena_dup(t->a, e->call.tool_call_id),
                                .name = dgm_arena_dup(t->a, e->call.name)};
        dgm_buf_init(&c->arguments, SIZE_MAX);
    } else if (e->kind == DGM_CANON_TOOL_CALL_ARGS && c) {
        dgm_buf_add_str(&c->arguments, e->call.delta);
    } else if (e->kind == DGM_CANON_TOOL_CALL_RESULT && c && !c->result.p) {
        c->failed = yyjson_is_true(dgm_json_get(e->metadata, DGM_STR("dragoman:error")));
        c->result = dgm_arena_dup(t->a, e->result.content.text);
    }
}

static inline void told_artifact(struct told *t, const dgm_parts *parts)
{
    for (size_t i = 0; i < parts->n; i++) {
        const dgm_part *p = &parts->at[i];
        dgm_buf_add_str(&told_new_text(t, t->texts, &t->n_texts, DGM_STR("-"))->text,
                        p->kind == DGM_PART_DATA ? dgm_content_spaced_json(t->a, p->data)
                                                 : dgm_content_file_text(t->a, p));
    }
}

static inline void told_thought(struct told *t, const dgm_canon_event *e)
{
    struct told_text *it = told_find(t->thoughts, t->n_thoughts, e->text.message_id);
    if (e->kind == DGM_CANON_REASONING_MESSAGE_END && it)
        it->open = false;
    if (e->kind != DGM_CANON_REASONING_MESSAGE_CONTENT || !e->text.delta.n)
        return;
    if (!it || !it->open)
        it = told_new_text(t, t->thoughts, &t->n_thoughts, e->text.message_id);
    dgm_buf_add_str(&it->text, e->text.delta);
}

static inline void told_progress(struct told *t, const dgm_canon_event *e)
{
    dgm_str text = dgm_json_str_member(e->activity.content, "text");
    if (!text.n || dgm_str_eq(text, t->progress))
        return;
    t->progress = dgm_arena_dup(t->a, text);
    struct told_text *it = told_new_text(t, t->thoughts, &t->n_thoughts, DGM_STR("-"));
    it->open = false;
    dgm_buf_add_str(&it->text, text);
}

static inline int by_id(const void *a, const void *b)
{
    const struct told_call *x = a, *y = b;
    return strcmp(x->id.p, y->id.p);
}

static inline void told_end(struct told *t, const dgm_canon_event *e)
{
    bool error = e->kind == DGM_CANON_RUN_ERROR;
    const dgm_canon_usages *usage = error ? &e->run_error.usage : &e->run_finished.usage;
    const dgm_canon_outcome *o = &e->run_finished.outcome;
    int64_t in = 0;
    for (size_t i = 0; i < usage->n; i++)
        in += usage->at[i].input_tokens.value;
    if (error)
        dgm_buf_printf(&t->end, "error %.*s: %.*s", DGM_P(e->run_error.code),
                       DGM_P(e->run_error.message));
    else
        dgm_buf_printf(&t->end, "finished %d", o->kind == DGM_CANON_SUCCESS ? 0 : (int)o->kind);
    for (size_t i = 0; !error && i < o->interrupts.n; i++)
        dgm_buf_printf(&t->end, " %.*s", DGM_P(o->interrupts.at[i].reason));
    dgm_buf_printf(&t->end, " in=%d", (int)in);
    qsort(t->calls, t->n_calls, sizeof *t->calls, by_id);
    for (size_t k = 0; k < t->n_calls; k++) {
        for (size_t i = 0; !error && i < o->pending_tool_call_ids.n; i++) {
            if (dgm_str_eq(o->pending_tool_call_ids.at[i], t->calls[k].id))
                dgm_buf_printf(&t->end, " waits %.*s", DGM_P(t->calls[k].id));
        }
    }
}

/* A dgm_on_canon. */
static inline dgm_code tell_event(void *arg, const dgm_canon_event *e)
{
    struct told *t = arg;
    assert_false(t->end.n > 0);
    if (dgm_canon_is_terminal(e->kind))
        told_end(t, e);
    else if (e->kind >= DGM_CANON_TEXT_MESSAGE_START && e->kind <= DGM_CANON_TEXT_MESSAGE_END)
        told_text(t, e);
    else if (e->kind >= DGM_CANON_TOOL_CALL_START && e->kind <= DGM_CANON_TOOL_CALL_RESULT)
        told_tool(t, e);
    else if (e->kind >= DGM_CANON_REASONING_START && e->kind <= DGM_CANON_REASONING_END)
        told_thought(t, e);
    else if (e->kind == DGM_CANON_MESSAGES_SNAPSHOT)
        told_snapshot(t, e);
    else if (e->kind == DGM_CANON_ACTIVITY_SNAPSHOT)
        told_progress(t, e);
    else if (e->kind == DGM_CANON_ARTIFACT)
        told_artifact(t, &e->artifact.artifact->parts);
    return DGM_OK;
}

/* The whole answer: its texts, with blank lines between them. */
static inline void put_answer(dgm_buf *b, const struct told *t)
{
    for (size_t i = 0; i < t->n_texts; i++) {
        if (b->n && t->texts[i].text.n)
            dgm_buf_add_lit(b, "\n\n");
        dgm_buf_add_str(b, dgm_buf_str(&t->texts[i].text));
    }
}

static inline dgm_str told(struct told *t)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    put_answer(&b, t);
    dgm_buf_add_lit(&b, "\nthoughts:");
    for (size_t i = 0; i < t->n_thoughts; i++)
        dgm_buf_printf(&b, " \"%.*s\"", DGM_P(dgm_buf_str(&t->thoughts[i].text)));
    for (size_t i = 0; i < t->n_calls; i++) {
        const struct told_call *c = &t->calls[i];
        dgm_str arguments = c->arguments.n ? dgm_buf_str(&c->arguments) : DGM_STR("{}");
        dgm_buf_printf(&b, "\n%.*s=%.*s(%.*s)%s%.*s", DGM_P(c->id), DGM_P(c->name),
                       DGM_P(arguments),
                       c->failed     ? "!"
                       : c->result.p ? ":"
                                     : "",
                       DGM_P(c->result));
    }
    dgm_buf_add_lit(&b, "\n");
    dgm_buf_add_str(&b, dgm_buf_str(&t->end));
    dgm_str text = dgm_arena_dup(t->a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

/* ---- paths ------------------------------------------------------------------------------------------------------ */

/* Frames through the decoder. */
static inline void decode_frames(const struct frames *f, struct told *t)
{
    dgm_stream_params p = {0};
    void *d = dgm_codec_responses.decoder_new(&p);
    dgm_canon_sink sink = {tell_event, t};
    dgm_err err = {0};
    for (size_t i = 0; i < f->n; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_reader r = {.arena = a, .err = &err};
        check_ok(dgm_codec_responses.decoder_feed(d, &r, f->at[i], sink), err);
    }
    check_ok(dgm_codec_responses.decoder_end(d, sink, &err), err);
    dgm_codec_responses.decoder_free(d);
}

/* Each event goes to both encoders: of the stream, and of the response as one object. */
struct both_ways {
    struct told *told;
    struct frames *stream, *whole;
    void *encoder[2];
    dgm_err err;
};

static inline void both_open(struct both_ways *b, dgm_arena *a)
{
    dgm_stream_params stream = {.now = 1000}, whole = {.whole = true, .now = 1000};
    *b = (struct both_ways){.told = told_new(a),
                            .stream = dgm_new(a, struct frames),
                            .whole = dgm_new(a, struct frames)};
    b->told->goes_in = true;
    b->stream->a = b->whole->a = a;
    b->encoder[0] =
        dgm_codec_responses.encoder_new(&stream, (dgm_frame_sink){keep_frame, b->stream});
    b->encoder[1] = dgm_codec_responses.encoder_new(&whole, (dgm_frame_sink){keep_frame, b->whole});
}

/* A dgm_on_canon. */
static inline dgm_code both_feed(void *arg, const dgm_canon_event *e)
{
    struct both_ways *b = arg;
    tell_event(b->told, e);
    for (int i = 0; i < 2; i++)
        check_ok(dgm_codec_responses.encoder_feed(b->encoder[i], e, &b->err), b->err);
    return DGM_OK;
}

/* What clients call output_text is the answer. A text that was taken back may leave its blank line in front. */
static inline void check_answer(const struct told *t, yyjson_val *response)
{
    yyjson_val *item, *part;
    size_t i, n, k, m;
    dgm_buf got, want;
    dgm_buf_init(&got, SIZE_MAX);
    dgm_buf_init(&want, SIZE_MAX);
    put_answer(&want, t);
    yyjson_arr_foreach (dgm_json_get(response, DGM_STR("output")), i, n, item) {
        yyjson_arr_foreach (dgm_json_get(item, DGM_STR("content")), k, m, part)
            dgm_buf_add_str(&got, member(part, "text"));
    }
    if (t->n_snapshots && dgm_str_starts(dgm_buf_str(&got), DGM_STR("\n\n")))
        dgm_buf_drop_front(&got, 2);
    if (!t->tangled)
        check_same(got, want);
    dgm_buf_done(&got);
    dgm_buf_done(&want);
}

static inline void check_told(struct told *t, dgm_str want)
{
    dgm_str got = told(t);
    check_same(got, want);
}

/* The order is valid, both have the same content, and both are decoded to the encoded events. */
static inline void both_check(struct both_ways *b, dgm_arena *a)
{
    for (int i = 0; i < 2; i++) {
        check_ok(dgm_codec_responses.encoder_end(b->encoder[i], &b->err), b->err);
        dgm_codec_responses.encoder_free(b->encoder[i]);
    }
    check_order(b->stream, b->told->n_snapshots > 0);
    assert_int_equal(b->whole->n, 1);
    yyjson_val *last = dgm_json_get(b->stream->at[b->stream->n - 1], DGM_STR("response"));
    assert_true(dgm_json_equal(last, b->whole->at[0]));
    check_answer(b->told, last);
    dgm_str want = told(b->told);
    for (int i = 0; i < 2; i++) {
        struct told *again = told_new(a);
        decode_frames(i ? b->whole : b->stream, again);
        if (!b->told->tangled)
            check_told(again, want);
        told_free(again);
    }
    told_free(b->told);
}
