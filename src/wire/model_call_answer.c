/*
 * wire/model_call_answer.c - see model_call.h: the answer.
 *
 * The decoders of the formats know what servers do differently. This file reduces their canonical events to text,
 * reasoning, calls and one result. Calls are passed on at the end: until then an error can still follow, and a complete JSON
 * text is not the end of the arguments.
 */
#include "base/limits.h"
#include "base/list.h"
#include "canon/message_content.h"
#include "wire/model_call_int.h"
#include "wire/server_error.h"
#include "json/same_text.h"

#include <stdlib.h>

#define CUT_SHORT "the answer of the model ended in the middle"

struct model_call {
    dgm_str id, name;
    dgm_buf arguments;
    bool is_custom;
    bool has_result; /* the server has made the call itself */
    const dgm_json *extra;
};

/* Texts of one kind: those of another message start with a blank line. */
struct model_text {
    dgm_str id; /* of the message that is open */
    bool has_any, wants_break;
};

struct dgm_model_answer {
    dgm_model_api api;
    const dgm_codec *codec;
    dgm_model_handler handler;
    dgm_mint mint;
    dgm_arena *arena, *scratch;
    dgm_err *err; /* the caller's */
    void *decoder;
    dgm_code rc;
    bool is_over, has_output;
    bool is_half;    /* the last value was not JSON: if no other follows, it is the half of one */
    size_t n_deltas; /* of text, in the value being fed */
    dgm_same_text same; /* the last value, if it was a chunk of text and nothing else */
    dgm_buf same_json;
    struct model_text text, reasoning;
    struct model_call *calls;
    size_t n_calls, cap_calls;
    dgm_str finish_reason;
    dgm_model_opaque opaque;
    dgm_model_result result;
};

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static void model_open_text(dgm_model_answer *m, struct model_text *t, dgm_str id)
{
    if (dgm_str_eq(t->id, id))
        return; /* it goes on */
    t->id = dgm_arena_dup(m->arena, id);
    t->wants_break = t->has_any;
}

static dgm_code model_pass_text(dgm_model_answer *m, struct model_text *t,
                                dgm_code (*on_delta)(void *, dgm_str), dgm_str delta)
{
    dgm_code rc = DGM_OK;
    if (!delta.n)
        return DGM_OK;
    bool wants_break = t->wants_break;
    t->has_any = m->has_output = true;
    t->wants_break = false;
    if (on_delta && wants_break)
        rc = on_delta(m->handler.arg, DGM_STR("\n\n"));
    return rc || !on_delta ? rc : on_delta(m->handler.arg, delta);
}

static dgm_code model_add_reasoning(dgm_model_answer *m, dgm_str delta)
{
    if (m->opaque.keeps_reasoning) {
        if (m->reasoning.wants_break)
            dgm_buf_add_lit(&m->opaque.reasoning, "\n\n");
        dgm_buf_add_str(&m->opaque.reasoning, delta);
    }
    return model_pass_text(m, &m->reasoning, m->handler.on_reasoning, delta);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static struct model_call *model_find_call(dgm_model_answer *m, dgm_str id)
{
    for (size_t i = m->n_calls; i; i--) {
        if (dgm_str_eq(m->calls[i - 1].id, id))
            return &m->calls[i - 1];
    }
    return NULL;
}

/* What the format's decoder adds to the event: the type of the call, and members to send back. */
static void model_read_extra(dgm_model_answer *m, struct model_call *call, const dgm_extra *x)
{
    dgm_member rest[8];
    size_t n = 0;
    for (size_t i = 0; x && i < x->n; i++) {
        if (dgm_str_is(x->at[i].key, "type"))
            call->is_custom = true;
        else if (n < sizeof rest / sizeof *rest)
            rest[n++] = x->at[i];
    }
    if (n)
        call->extra = dgm_json_copy(m->arena, dgm_json_object(m->scratch, rest, n));
}

static dgm_code model_open_call(dgm_model_answer *m, const dgm_canon_event *e)
{
    if (m->n_calls == DGM_MAX_OPEN_ITEMS)
        return dgm_fail(m->err, DGM_TOO_LARGE, NULL, "more calls than the limit open_items of %d",
                        DGM_MAX_OPEN_ITEMS);
    m->calls = dgm_list_reserve(m->calls, m->n_calls, &m->cap_calls, sizeof *m->calls);
    struct model_call *call = &m->calls[m->n_calls++];
    *call = (struct model_call){.id = dgm_arena_dup(m->arena, e->call.tool_call_id),
                                .name = dgm_arena_dup(m->arena, e->call.name)};
    dgm_buf_init(&call->arguments, DGM_MAX_RECORD_BYTES);
    model_read_extra(m, call, e->extra);
    return m->handler.on_call_start ? m->handler.on_call_start(m->handler.arg, call->id, call->name)
                                    : DGM_OK;
}

static dgm_code model_pass_call(dgm_model_answer *m, const struct model_call *from, dgm_str id,
                                dgm_str name, dgm_str arguments)
{
    dgm_model_call call = {id, name, arguments, from->is_custom};
    dgm_model_opaque_add_call(&m->opaque, id, from->is_custom, from->extra);
    m->result.finish = DGM_MODEL_TOOL_CALLS;
    return m->handler.on_call ? m->handler.on_call(m->handler.arg, &call) : DGM_OK;
}

/* Some models put parallel calls into one: {"tool_uses":[{"recipient_name":"functions.NAME","parameters":{}}]}. NULL: this
 * is an ordinary call. */
static yyjson_val *model_wrapped_calls(dgm_model_answer *m, const struct model_call *call)
{
    yyjson_val *v = NULL, *uses, *e;
    size_t i, n;
    if (!dgm_str_is(call->name, "parallel") && !dgm_str_is(call->name, "multi_tool_use.parallel"))
        return NULL;
    if (dgm_json_read(m->scratch, dgm_buf_str(&call->arguments), DGM_MAX_RECORD_BYTES,
                      "record_bytes", &v, NULL))
        return NULL;
    uses = dgm_json_get(v, DGM_STR("tool_uses"));
    yyjson_arr_foreach (uses, i, n, e) {
        if (!dgm_json_str_member(e, "recipient_name").n ||
            !yyjson_is_obj(dgm_json_get(e, DGM_STR("parameters"))))
            return NULL;
    }
    return yyjson_arr_size(uses) && yyjson_arr_size(uses) <= DGM_MAX_OPEN_ITEMS ? uses : NULL;
}

static dgm_code model_pass_wrapped(dgm_model_answer *m, const struct model_call *call,
                                   yyjson_val *uses)
{
    yyjson_val *e;
    size_t i, n;
    yyjson_arr_foreach (uses, i, n, e) {
        dgm_str name = dgm_json_str_member(e, "recipient_name"), id = call->id;
        if (dgm_str_starts(name, DGM_STR("functions.")) && name.n > 10)
            name = (dgm_str){name.p + 10, name.n - 10};
        if (i) /* the results need an id each */
            id = dgm_arena_printf(m->arena, "%.*s-%zu", DGM_P(call->id), i + 1);
        dgm_code rc =
            model_pass_call(m, call, id, name,
                            dgm_json_text_in(m->scratch, dgm_json_get(e, DGM_STR("parameters"))));
        if (rc)
            return rc;
    }
    return DGM_OK;
}

static dgm_code model_pass_calls(dgm_model_answer *m)
{
    dgm_code rc = DGM_OK;
    for (size_t i = 0; !rc && i < m->n_calls; i++) {
        const struct model_call *call = &m->calls[i];
        yyjson_val *uses = call->has_result ? NULL : model_wrapped_calls(m, call);
        if (call->arguments.over)
            return dgm_fail(m->err, DGM_TOO_LARGE, NULL,
                            "the arguments of a call are longer than the limit record_bytes of %zu",
                            DGM_MAX_RECORD_BYTES);
        if (uses)
            rc = model_pass_wrapped(m, call, uses);
        else if (!call->has_result)
            rc =
                model_pass_call(m, call, call->id, call->name,
                                call->arguments.n || call->is_custom ? dgm_buf_str(&call->arguments)
                                                                     : DGM_STR("{}"));
    }
    return rc;
}

/* ---- the end ------------------------------------------------------------------------------------------------------ */

static void model_set_usage(dgm_model_answer *m, const dgm_canon_usages *usage)
{
    if (!usage->n)
        return;
    m->result.usage = usage->at[0];
    m->result.usage.extra = NULL;
    m->result.usage.provider = dgm_arena_dup(m->arena, usage->at[0].provider);
    m->result.usage.model = dgm_arena_dup(m->arena, usage->at[0].model);
    if (usage->at[0].model.n)
        m->result.model = m->result.usage.model;
}

static void model_set_error(dgm_model_answer *m, dgm_str message, dgm_str code)
{
    dgm_model_error *e = &m->result.error;
    m->result.finish = DGM_MODEL_ERROR;
    *e = (dgm_model_error){.message = dgm_arena_dup(m->arena, message),
                           .code = dgm_arena_dup(m->arena, code),
                           .retry_after_ms = -1};
    dgm_model_classify(e);
    if (m->handler.clean_error)
        e->message =
            dgm_arena_dup(m->arena, m->handler.clean_error(m->handler.arg, m->arena, e->message));
    m->is_over = true;
}

static dgm_code model_fail(dgm_model_answer *m, const dgm_canon_event *e)
{
    dgm_str message = e->run_error.message, code = e->run_error.code;
    model_set_usage(m, &e->run_error.usage);
    if (dgm_str_is(code, "incomplete"))
        message = DGM_STR(CUT_SHORT);
    if (dgm_str_is(code, "rejected")) {
        m->result.finish = DGM_MODEL_REFUSAL;
        m->result.refusal = dgm_arena_dup(m->arena, message);
        m->is_over = true;
    } else {
        model_set_error(m, message, code);
    }
    return DGM_OK;
}

static dgm_code model_finish(dgm_model_answer *m, const dgm_canon_event *e)
{
    dgm_code rc;
    model_set_usage(m, &e->run_finished.usage);
    m->is_over = true;
    if (e->run_finished.outcome.kind == DGM_CANON_CANCELLED) {
        model_set_error(m, DGM_STR("the model's server canceled the answer"), DGM_STR("cancelled"));
        return DGM_OK;
    }
    m->result.finish = dgm_str_is(m->finish_reason, "length")           ? DGM_MODEL_LENGTH
                       : dgm_str_is(m->finish_reason, "content_filter") ? DGM_MODEL_CONTENT_FILTER
                                                                        : DGM_MODEL_STOP;
    if ((rc = model_pass_calls(m)))
        m->result.finish = DGM_MODEL_ERROR;
    m->result.opaque = dgm_model_opaque_text(&m->opaque, m->api, m->handler.source, m->arena);
    return rc;
}

/* ---- canonical events --------------------------------------------------------------------------------------------- */

static void model_begin(dgm_model_answer *m, const dgm_canon_event *e)
{
    m->result.id = dgm_arena_dup(m->arena, e->run_started.run_id);
    for (size_t i = 0; e->extra && i < e->extra->n; i++) {
        if (dgm_str_is(e->extra->at[i].key, "model") &&
            yyjson_is_str((yyjson_val *)(uintptr_t)e->extra->at[i].value))
            m->result.model = dgm_arena_dup(m->arena, dgm_json_str(e->extra->at[i].value));
    }
}

static dgm_code model_on_event(void *arg, const dgm_canon_event *e)
{
    dgm_model_answer *m = arg;
    struct model_call *call;
    if (m->is_over)
        return DGM_OK;
    switch ((int)e->kind) {
    case DGM_CANON_RUN_STARTED: model_begin(m, e); return DGM_OK;
    case DGM_CANON_TEXT_MESSAGE_START:
        model_open_text(m, &m->text, e->text.message_id);
        return DGM_OK;
    case DGM_CANON_TEXT_MESSAGE_CONTENT:
        m->n_deltas++;
        return model_pass_text(m, &m->text, m->handler.on_text, e->text.delta);
    case DGM_CANON_REASONING_MESSAGE_START:
        model_open_text(m, &m->reasoning, e->text.message_id);
        return DGM_OK;
    case DGM_CANON_REASONING_MESSAGE_CONTENT: return model_add_reasoning(m, e->text.delta);
    case DGM_CANON_TOOL_CALL_START: return model_open_call(m, e);
    case DGM_CANON_TOOL_CALL_ARGS:
        if ((call = model_find_call(m, e->call.tool_call_id)))
            dgm_buf_add_str(&call->arguments, e->call.delta);
        return DGM_OK;
    case DGM_CANON_TOOL_CALL_END:
        if ((call = model_find_call(m, e->call.tool_call_id)))
            model_read_extra(m, call, e->extra);
        return DGM_OK;
    case DGM_CANON_TOOL_CALL_RESULT:
        if ((call = model_find_call(m, e->result.tool_call_id)))
            call->has_result = true;
        return DGM_OK;
    case DGM_CANON_CUSTOM:
        if (dgm_str_is(e->custom.name, DGM_NAME_METADATA))
            m->finish_reason =
                dgm_arena_dup(m->arena, dgm_json_str_member(e->custom.value, "finish_reason"));
        return DGM_OK;
    case DGM_CANON_RUN_FINISHED: return model_finish(m, e);
    case DGM_CANON_RUN_ERROR: return model_fail(m, e);
    default: return DGM_OK;
    }
}

/* ---- values ---------------------------------------------------------------------------------------------------------- */

/* `event: error` with an object that has no other mark of an error. */
static bool model_is_named_error(const dgm_frames_item *item, const yyjson_val *v)
{
    return dgm_str_is(item->sse_event, "error") && !dgm_json_non_null(v, "error") &&
           !dgm_json_non_null(v, "choices") && !dgm_json_non_null(v, "response");
}

static dgm_code model_feed_value(dgm_model_answer *m, const dgm_frames_item *item, dgm_reader *r,
                                 yyjson_val *v)
{
    if (model_is_named_error(item, v)) {
        dgm_str words = dgm_server_error_in(v);
        model_set_error(m, words.n ? words : DGM_STR("the model's server reported an error"),
                        dgm_json_str_member(v, "code"));
        return DGM_OK;
    }
    if (m->api == DGM_MODEL_RESPONSES)
        dgm_model_opaque_add_items(&m->opaque, v);
    else
        dgm_model_opaque_add_details(&m->opaque, v);
    return m->codec->decoder_feed(m->decoder, r, v, (dgm_canon_sink){model_on_event, m});
}

/* A chunk whose only content is text. It may have opened the text, or ended reasoning: then the next one has nothing to open,
 * and reading it changes nothing in the decoder. */
static bool model_is_text_chunk(const yyjson_val *v)
{
    yyjson_val *root = (yyjson_val *)(uintptr_t)v, *key, *member;
    yyjson_val *choices = dgm_json_get(v, DGM_STR("choices")),
               *choice = yyjson_arr_get_first(choices);
    yyjson_val *delta = dgm_json_get(choice, DGM_STR("delta"));
    size_t i, n;
    yyjson_obj_foreach (root, i, n, key, member) {
        if (member != choices && yyjson_is_ctn(member))
            return false; /* usage, an error, details of reasoning */
    }
    yyjson_obj_foreach (delta, i, n, key, member) {
        dgm_str name = dgm_json_str(key);
        if (!yyjson_is_null(member) && !dgm_str_is(name, "content") && !dgm_str_is(name, "role"))
            return false;
    }
    return yyjson_arr_size(choices) == 1 && !dgm_json_non_null(choice, "finish_reason") &&
           !dgm_json_non_null(choice, "message");
}

/* The next value may be this one with another text. */
static void model_remember_chunk(dgm_model_answer *m, const dgm_frames_item *item,
                                 const yyjson_val *v)
{
    if (m->api != DGM_MODEL_CHAT || m->n_deltas != 1 || item->sse_event.n ||
        item->text.n > DGM_MAX_SAME_BYTES || !model_is_text_chunk(v))
        return;
    const yyjson_val *choice = yyjson_arr_get_first(dgm_json_get(v, DGM_STR("choices")));
    dgm_buf_clear(&m->same_json);
    dgm_buf_add_str(&m->same_json, item->text);
    dgm_same_text_set(&m->same, dgm_buf_str(&m->same_json),
                      dgm_json_str_member(dgm_json_get(choice, DGM_STR("delta")), "content"));
}

/* The answer cannot be used: that is its result. */
static dgm_code model_note_wrong(dgm_model_answer *m, dgm_code rc, const dgm_err *err)
{
    bool is_json = rc != DGM_PARSE;
    if (rc && m->result.finish != DGM_MODEL_ERROR)
        model_set_error(m,
                        rc == DGM_TOO_LARGE
                            ? dgm_arena_printf(m->arena, "the answer of the model is too large: %s",
                                               err ? err->msg : "")
                            : dgm_arena_printf(m->arena, "the answer of the model is not %s%s%s",
                                               is_json ? "of the format " : "JSON",
                                               is_json ? m->codec->name : "", ""),
                        rc == DGM_TOO_LARGE ? DGM_STR("too_large") : DGM_STR("invalid_answer"));
    return m->rc = rc;
}

static dgm_code model_feed_slowly(dgm_model_answer *m, const dgm_frames_item *item, dgm_err *err)
{
    yyjson_val *v;
    dgm_err own = {0};
    dgm_reader r = {.arena = m->scratch, .mint = &m->mint, .drop_unknown = true};
    r.err = m->err = err ? err : &own;
    r.format = m->codec->format;
    m->same = (dgm_same_text){0};
    if (item->done) {
        if (m->codec->decoder_done)
            m->codec->decoder_done(m->decoder);
        return dgm_model_answer_end(m, err);
    }
    m->n_deltas = 0;
    dgm_code rc =
        dgm_json_read(m->scratch, item->text, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, r.err);
    if (!rc)
        rc = model_feed_value(m, item, &r, v);
    else
        m->is_half = rc == DGM_PARSE && !item->alone;
    if (!rc)
        model_remember_chunk(m, item, v);
    model_note_wrong(m, rc, r.err);
    dgm_arena_reset(m->scratch);
    return m->rc;
}

dgm_code dgm_model_answer_feed(dgm_model_answer *m, const dgm_frames_item *item, dgm_err *err)
{
    dgm_str delta;
    m->is_half = false;
    if (m->rc || m->is_over)
        return m->rc;
    if (item->sse_event.n || !dgm_same_text_read(&m->same, item->text, &delta))
        return model_feed_slowly(m, item, err);
    dgm_code rc = model_pass_text(m, &m->text, m->handler.on_text, delta);
    return rc ? model_note_wrong(m, rc, err) : DGM_OK;
}

dgm_code dgm_model_answer_end(dgm_model_answer *m, dgm_err *err)
{
    dgm_err own = {0};
    m->err = err ? err : &own;
    if (m->is_half)
        model_set_error(m, DGM_STR(CUT_SHORT), DGM_STR("incomplete"));
    if (m->rc || m->is_over)
        return m->rc;
    model_note_wrong(
        m, m->codec->decoder_end(m->decoder, (dgm_canon_sink){model_on_event, m}, m->err), m->err);
    dgm_arena_reset(m->scratch);
    if (!m->is_over) /* not one value of the API */
        model_set_error(m, DGM_STR("the model's server sent an empty answer"),
                        DGM_STR("incomplete"));
    return m->rc;
}

/* ---- the handle ------------------------------------------------------------------------------------------------------------ */

dgm_model_answer *dgm_model_answer_new(dgm_model_api api, const dgm_model_handler *handler,
                                       uint64_t seed)
{
    dgm_model_answer *m = dgm_xcalloc(1, sizeof *m);
    m->api = api;
    m->codec = dgm_model_codec(api);
    m->handler = *handler;
    m->mint.seed[0] = seed;
    m->arena = dgm_arena_new_small(1024);
    m->scratch = dgm_arena_new_small(2048);
    m->result.error.retry_after_ms = -1;
    dgm_buf_init(&m->same_json, DGM_MAX_SAME_BYTES);
    dgm_model_opaque_init(&m->opaque);
    m->opaque.keeps_reasoning = handler->keeps_reasoning && api == DGM_MODEL_CHAT;
    dgm_stream_params stream = {.mint = m->mint, .one_run = true};
    m->decoder = m->codec->decoder_new(&stream);
    return m;
}

void dgm_model_answer_free(dgm_model_answer *m)
{
    if (!m)
        return;
    m->codec->decoder_free(m->decoder);
    for (size_t i = 0; i < m->n_calls; i++)
        dgm_buf_done(&m->calls[i].arguments);
    free(m->calls);
    dgm_model_opaque_done(&m->opaque);
    dgm_buf_done(&m->same_json);
    dgm_arena_free(m->arena);
    dgm_arena_free(m->scratch);
    free(m);
}

bool dgm_model_answer_is_over(const dgm_model_answer *m)
{
    return m->is_over;
}

bool dgm_model_answer_has_output(const dgm_model_answer *m)
{
    return m->has_output;
}

const dgm_model_result *dgm_model_answer_result(const dgm_model_answer *m)
{
    return &m->result;
}
