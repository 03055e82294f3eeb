/*
 * wire/chat/chat_decode.c - chunks of a completion, or all of it, as canonical events.
 *
 * Servers differ: roles that repeat or are missing, null and empty contents, reasoning by four names, a
 * finish_reason beside the last delta, usage anywhere, errors in the middle. What can be understood is; what
 * is of the wrong type is refused with its pointer.
 */
#include "wire/chat/chat_decode.h"
#include "base/limits.h"
#include "wire/chat/chat.h"

#include <stdlib.h>

/* ---- the handle ----------------------------------------------------------------------------------------- */

void *dgm_chat_decoder_new(const dgm_stream_params *params)
{
    dgm_chat_decoder *d = dgm_xcalloc(1, sizeof *d);
    d->params = *params;
    d->arena = dgm_arena_new();
    dgm_buf_init(&d->refusal, DGM_MAX_RECORD_BYTES);
    return d;
}

static void forget_run(dgm_chat_decoder *d)
{
    for (size_t i = 0; i < d->n_calls; i++)
        dgm_buf_done(&d->calls[i].text);
    d->n_calls = d->n_ids = 0;
    dgm_buf_clear(&d->refusal);
    dgm_arena_reset(d->arena);
    d->run_id = d->message_id = d->model = d->reasoning = d->finish = d->state = (dgm_str){0};
    d->begun = d->failed = d->text_open = d->spoke = d->done = d->has_usage = false;
    d->usage = (dgm_canon_usage){0};
}

void dgm_chat_decoder_free(void *decoder)
{
    dgm_chat_decoder *d = decoder;
    if (!d)
        return;
    forget_run(d);
    free(d->calls);
    dgm_buf_done(&d->refusal);
    dgm_arena_free(d->arena);
    free(d);
}

void dgm_chat_out(dgm_chat_decoder *d, const dgm_canon_event *e)
{
    if (!d->rc)
        d->rc = dgm_canon_emit(d->sink, e);
}

void dgm_chat_bad(dgm_chat_decoder *d, const dgm_at *at, yyjson_val *v, const char *expected)
{
    if (!d->rc)
        d->rc = dgm_read_wrong(d->r, v, at, expected);
}

/* ---- members ---------------------------------------------------------------------------------------------- */

/* null is absent, here and below. */
static yyjson_val *chat_decode_member(yyjson_val *v, const char *key)
{
    yyjson_val *m = dgm_json_get(v, dgm_str_from(key));
    return yyjson_is_null(m) ? NULL : m;
}

/* Of another type: absent. */
static dgm_str text_member(yyjson_val *v, const char *key)
{
    yyjson_val *m = dgm_json_get(v, dgm_str_from(key));
    return yyjson_is_str(m) ? dgm_json_str(m) : (dgm_str){0};
}

/* ---- the run -------------------------------------------------------------------------------------------------- */

/* What only a completion says, for whoever writes one again. */
static const dgm_extra *extra_of(dgm_chat_decoder *d, yyjson_val *v)
{
    static const char *const keys[] = {"model", "service_tier", "system_fingerprint"};
    dgm_extra *x = dgm_new(d->arena, dgm_extra);
    *x = (dgm_extra){DGM_FORMAT_CHAT, dgm_new_n(d->arena, dgm_member, 3), 0};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        yyjson_val *m = chat_decode_member(v, keys[i]);
        if (m)
            x->at[x->n++] = (dgm_member){dgm_str_from(keys[i]), m};
    }
    return x->n ? x : NULL;
}

static void chat_decode_begin(dgm_chat_decoder *d, yyjson_val *v)
{
    dgm_str id = text_member(v, "id");
    int64_t created;
    if (d->begun)
        return;
    d->begun = true;
    d->run_id = id.n ? dgm_arena_dup(d->arena, id) : dgm_mint_id(&d->params.mint, d->arena);
    d->message_id = dgm_arena_printf(d->arena, "%.*s-m1", DGM_P(d->run_id));
    d->model = dgm_arena_dup(d->arena, text_member(v, "model"));
    if (d->params.fragment)
        return;
    dgm_canon_event e = {.kind = DGM_CANON_RUN_STARTED, .extra = extra_of(d, v)};
    e.run_started.thread_id = e.run_started.run_id = d->run_id;
    e.run_started.protocol_version = DGM_STR(DGM_AGUI_VERSION);
    yyjson_val *at = dgm_json_get(v, DGM_STR("created"));
    if (at && dgm_json_int(at, &created) && created > 0 && created < INT64_MAX / 1000)
        e.timestamp = (dgm_opt_long){true, created * 1000};
    dgm_chat_out(d, &e);
}

/* Completions one after the other: another id, once the one before has ended. */
static void maybe_begin_anew(dgm_chat_decoder *d, yyjson_val *v)
{
    dgm_str id = text_member(v, "id");
    if (d->params.one_run || !d->begun || !id.n || dgm_str_eq(id, d->run_id) ||
        !(d->finish.n || d->done || d->failed))
        return;
    if (!yyjson_arr_size(chat_decode_member(v, "choices")))
        return;
    if (!d->failed)
        dgm_chat_finish_run(d);
    forget_run(d);
}

/* ---- reasoning and text ----------------------------------------------------------------------------------------- */

static void reasoning_event(dgm_chat_decoder *d, dgm_canon_kind kind, dgm_str delta)
{
    dgm_canon_event e = {.kind = kind};
    e.text.message_id = d->reasoning;
    e.text.delta = delta;
    if (kind == DGM_CANON_REASONING_MESSAGE_START)
        e.text.role = DGM_CANON_REASONING;
    dgm_chat_out(d, &e);
}

void dgm_chat_end_reasoning(dgm_chat_decoder *d)
{
    if (!d->reasoning.n)
        return;
    reasoning_event(d, DGM_CANON_REASONING_MESSAGE_END, (dgm_str){0});
    reasoning_event(d, DGM_CANON_REASONING_END, (dgm_str){0});
    d->reasoning = (dgm_str){0};
}

static void think(dgm_chat_decoder *d, dgm_str text)
{
    if (!text.n)
        return;
    if (!d->reasoning.n) {
        /* a completion has one: what is thought later goes on with it */
        d->reasoning = dgm_arena_printf(d->arena, "%.*s-t1", DGM_P(d->run_id));
        reasoning_event(d, DGM_CANON_REASONING_START, (dgm_str){0});
        reasoning_event(d, DGM_CANON_REASONING_MESSAGE_START, (dgm_str){0});
    }
    reasoning_event(d, DGM_CANON_REASONING_MESSAGE_CONTENT, text);
}

static void chat_decode_say(dgm_chat_decoder *d, dgm_str text, bool whole)
{
    dgm_canon_event e = {.kind = DGM_CANON_TEXT_MESSAGE_START};
    if (!text.n)
        return;
    dgm_chat_end_reasoning(d);
    e.text.message_id = d->message_id;
    bool first = !d->text_open;
    if (first) {
        e.text.role = DGM_CANON_ASSISTANT;
        dgm_chat_out(d, &e);
        e.text.role = DGM_CANON_ROLE_NONE;
        d->text_open = d->spoke = true;
    }
    e.kind = DGM_CANON_TEXT_MESSAGE_CONTENT;
    e.text.delta = text;
    e.text.whole = whole && first;
    dgm_chat_out(d, &e);
    if (!e.text.whole)
        return;
    e = (dgm_canon_event){.kind = DGM_CANON_TEXT_MESSAGE_END};
    e.text.message_id = d->message_id;
    dgm_chat_out(d, &e);
    d->text_open = false;
}

/* ---- content ------------------------------------------------------------------------------------------------------ */

/* Mistral thinks in parts: {"type":"thinking","thinking":[{"type":"text","text":"..."}]}. */
static void read_thinking(dgm_chat_decoder *d, yyjson_val *v)
{
    yyjson_val *e;
    size_t i, n;
    if (yyjson_is_str(v))
        think(d, dgm_json_str(v));
    if (!yyjson_is_arr(v))
        return;
    yyjson_arr_foreach (v, i, n, e)
        think(d, text_member(e, "text"));
}

static void chat_decode_read_content(dgm_chat_decoder *d, yyjson_val *v, const dgm_at *at,
                                     bool whole)
{
    yyjson_val *part;
    size_t i, n;
    if (yyjson_is_str(v)) {
        chat_decode_say(d, dgm_json_str(v), whole);
        return;
    }
    if (v && !yyjson_is_arr(v)) {
        dgm_chat_bad(d, at, v, "text or a list of content parts");
        return;
    }
    if (!v)
        return;
    yyjson_arr_foreach (v, i, n, part) {
        dgm_str type = text_member(part, "type"), text = text_member(part, "text");
        if (dgm_str_is(type, "thinking"))
            read_thinking(d, chat_decode_member(part, "thinking"));
        else if (dgm_str_is(type, "refusal"))
            dgm_buf_add_str(&d->refusal, text_member(part, "refusal"));
        else if (text.p)
            chat_decode_say(d, text, false);
        else
            d->r->n_unknown++;
    }
}

static void read_reasoning(dgm_chat_decoder *d, yyjson_val *v)
{
    static const char *const names[] = {"reasoning_content", "reasoning", "reasoning_text",
                                        "thinking"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        dgm_str text = text_member(v, names[i]);
        if (text.n) { /* some send the same by two names */
            think(d, text);
            return;
        }
    }
}

/* A delta, or a message: the same members. */
static void read_delta(dgm_chat_decoder *d, yyjson_val *v, const dgm_at *at, bool whole)
{
    if (!yyjson_is_obj(v)) {
        dgm_chat_bad(d, at, v, "an object");
        return;
    }
    read_reasoning(d, v);
    chat_decode_read_content(d, chat_decode_member(v, "content"), DGM_AT_LIT(at, "content"), whole);
    dgm_buf_add_str(&d->refusal, text_member(v, "refusal"));
    if (d->refusal.over && !d->rc)
        d->rc = dgm_fail(d->err, DGM_TOO_LARGE, DGM_AT_LIT(at, "refusal"),
                         "the refusal becomes longer than the limit record_bytes of %zu",
                         DGM_MAX_RECORD_BYTES);
    dgm_chat_read_calls(d, chat_decode_member(v, "tool_calls"), DGM_AT_LIT(at, "tool_calls"));
    dgm_chat_read_legacy_call(d, chat_decode_member(v, "function_call"),
                              DGM_AT_LIT(at, "function_call"));
    if (chat_decode_member(v, "audio") || yyjson_arr_size(chat_decode_member(v, "annotations")))
        d->r->n_unknown++;
}

/* ---- choices -------------------------------------------------------------------------------------------------------- */

static void chat_decode_read_choice(dgm_chat_decoder *d, yyjson_val *v, size_t i, const dgm_at *at)
{
    yyjson_val *index = chat_decode_member(v, "index"), *delta = chat_decode_member(v, "delta");
    yyjson_val *message = delta ? NULL : chat_decode_member(v, "message");
    int64_t n = (int64_t)i;
    if (!yyjson_is_obj(v)) {
        dgm_chat_bad(d, at, v, "an object (a choice)");
        return;
    }
    if (index && !dgm_json_int(index, &n)) {
        dgm_chat_bad(d, DGM_AT_LIT(at, "index"), index, "a whole number");
        return;
    }
    if (n != 0) { /* an agent gives one answer: the first */
        d->r->n_unknown++;
        return;
    }
    dgm_str finish = text_member(v, "finish_reason");
    if (delta)
        read_delta(d, delta, DGM_AT_LIT(at, "delta"), false);
    if (message) { /* all at once: nothing is missing, whatever else it leaves out */
        read_delta(d, message, DGM_AT_LIT(at, "message"), true);
        d->done = true;
    }
    if (chat_decode_member(v, "logprobs"))
        d->r->n_unknown++;
    if (finish.n)
        d->finish = dgm_arena_dup(d->arena, finish);
}

static void read_choices(dgm_chat_decoder *d, yyjson_val *v, const dgm_at *at)
{
    yyjson_val *choice;
    size_t i, n;
    if (v && !yyjson_is_arr(v))
        dgm_chat_bad(d, at, v, "a list of choices");
    if (!yyjson_is_arr(v))
        return;
    yyjson_arr_foreach (v, i, n, choice) {
        if (d->rc)
            return;
        chat_decode_read_choice(d, choice, i, DGM_AT_I(at, i));
    }
}

/* ---- errors --------------------------------------------------------------------------------------------------------- */

/* {"error":{"message":...,"code":...}}, {"error":"text"}, {"object":"error","message":...} */
static bool read_error(dgm_chat_decoder *d, yyjson_val *v)
{
    yyjson_val *error = chat_decode_member(v, "error");
    if (!error && !dgm_str_is(text_member(v, "object"), "error"))
        return false;
    yyjson_val *from = yyjson_is_obj(error) ? error : v;
    dgm_str message = yyjson_is_str(error) ? dgm_json_str(error) : text_member(from, "message");
    yyjson_val *code = chat_decode_member(from, "code");
    bool told = yyjson_is_str(code) || yyjson_is_raw(code);
    dgm_str type = text_member(from, "type");
    if (dgm_str_is(type, "server_error")) /* adds nothing: most are */
        type = (dgm_str){0};
    chat_decode_begin(d, v);
    dgm_chat_fail_run(d, message.n ? message : DGM_STR("The server reported an error"),
                      told ? dgm_json_str(code) : type);
    return true;
}

/* ---- the codec's handles ---------------------------------------------------------------------------------------------- */

static void chat_decode_feed(dgm_chat_decoder *d, yyjson_val *v)
{
    yyjson_val *choices = chat_decode_member(v, "choices"), *usage = chat_decode_member(v, "usage");
    dgm_str state;
    if (!usage) /* Groq */
        usage = chat_decode_member(chat_decode_member(v, "x_groq"), "usage");
    maybe_begin_anew(d, v);
    if (!d->failed && yyjson_is_obj(usage)) /* an error may be in the same chunk */
        dgm_chat_read_usage(d, usage);
    if (d->failed || read_error(d, v))
        return;
    if (!choices && !usage) {
        d->r->n_unknown++;
        return;
    }
    /* Azure begins with a chunk that has neither choices nor an id. */
    if (yyjson_arr_size(choices) || (choices && !yyjson_is_arr(choices)))
        chat_decode_begin(d, v);
    read_choices(d, choices, DGM_AT_LIT(NULL, "choices"));
    if ((state = text_member(chat_decode_member(v, "a2a"), "state")).n)
        d->state = dgm_arena_dup(d->arena, state);
}

dgm_code dgm_chat_decoder_feed(void *decoder, dgm_reader *r, yyjson_val *v, dgm_canon_sink sink)
{
    dgm_chat_decoder *d = decoder;
    d->sink = sink;
    d->err = r->err;
    d->r = r;
    if (!yyjson_is_obj(v))
        dgm_chat_bad(d, NULL, v, "an object: a chunk, a completion or an error");
    else if (!d->rc)
        chat_decode_feed(d, v);
    return d->rc;
}

void dgm_chat_decoder_done(void *decoder)
{
    ((dgm_chat_decoder *)decoder)->done = true;
}

dgm_code dgm_chat_decoder_end(void *decoder, dgm_canon_sink sink, dgm_err *err)
{
    dgm_chat_decoder *d = decoder;
    d->sink = sink;
    d->err = err;
    d->r = NULL;
    if (!d->rc && !d->failed && (d->begun || d->has_usage)) {
        chat_decode_begin(d, NULL);
        dgm_chat_finish_run(d);
        d->failed = true; /* nothing more */
    }
    return d->rc;
}
