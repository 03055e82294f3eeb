/*
 * wire/chat/chat_chunks.c - chunks of a chat completion, written straight into the buffer.
 *
 * All chunks of a completion begin alike: that part stays in the buffer. This is the hot path of a stream.
 */
#include "base/limits.h"
#include "wire/chat/chat.h"
#include "wire/chat/chat_encode.h"
#include "json/json.h"

/* ---- what they share ------------------------------------------------------------------------------------ */

static dgm_str chat_chunks_text_of(const dgm_json *v)
{
    return yyjson_is_str((yyjson_val *)(uintptr_t)v) ? dgm_json_str(v) : (dgm_str){0};
}

/* A completion that was read and is written again keeps what only it can say. */
static void put_extra(dgm_chat_encoder *e, const dgm_extra *x)
{
    for (size_t i = 0; x && x->format == DGM_FORMAT_CHAT && i < x->n; i++) {
        if (dgm_str_is(x->at[i].key, "model"))
            continue;
        dgm_buf_add_char(&e->out, ',');
        dgm_json_put_str(&e->out, x->at[i].key);
        dgm_buf_add_char(&e->out, ':');
        dgm_json_put(&e->out, x->at[i].value);
    }
}

static dgm_str model_of(const dgm_chat_encoder *e, const dgm_extra *x)
{
    if (e->model.n)
        return dgm_buf_str(&e->model);
    for (size_t i = 0; x && x->format == DGM_FORMAT_CHAT && i < x->n; i++) {
        dgm_str model = chat_chunks_text_of(x->at[i].value);
        if (dgm_str_is(x->at[i].key, "model") && model.n)
            return model;
    }
    return DGM_STR("dragoman");
}

void dgm_chat_put_top(dgm_chat_encoder *e, const dgm_canon_event *started)
{
    const dgm_extra *extra = started ? started->extra : NULL;
    bool timed = started && started->timestamp.set && started->timestamp.value > 0;
    dgm_buf *b = &e->out;
    dgm_buf_clear(b);
    dgm_buf_add_lit(b, "{\"id\":\"");
    if (!dgm_str_starts(e->run_id, DGM_STR("chatcmpl-")))
        dgm_buf_add_lit(b, "chatcmpl-");
    dgm_json_put_chars(b, e->run_id);
    dgm_buf_add_lit(b, "\",\"object\":\"chat.completion");
    if (!e->params.whole)
        dgm_buf_add_lit(b, ".chunk");
    dgm_buf_add_lit(b, "\",\"created\":");
    dgm_json_put_int(b, (timed ? started->timestamp.value : e->params.now) / 1000);
    dgm_buf_add_lit(b, ",\"model\":");
    dgm_json_put_str(b, model_of(e, extra));
    put_extra(e, extra);
    e->top = b->n;
    dgm_buf_add_lit(b, ",\"choices\":[{\"index\":0,\"delta\":{");
    e->head = b->n;
}

static void end_chunk(dgm_chat_encoder *e)
{
    dgm_buf_add_str(&e->out, e->params.usage ? DGM_STR(",\"usage\":null}") : DGM_STR("}"));
    dgm_chat_emit(e);
}

static void end_delta(dgm_chat_encoder *e)
{
    if (e->params.usage)
        dgm_buf_add_lit(&e->out, "},\"finish_reason\":null}],\"usage\":null}");
    else
        dgm_buf_add_lit(&e->out, "},\"finish_reason\":null}]}");
    dgm_chat_emit(e);
}

/* ---- chunks ------------------------------------------------------------------------------------------------ */

void dgm_chat_chunk_role(dgm_chat_encoder *e)
{
    e->out.n = e->head;
    dgm_buf_add_lit(&e->out, "\"role\":\"assistant\",\"content\":\"\",\"refusal\":null},"
                             "\"finish_reason\":null}]");
    if (e->task_id.n)
        dgm_chat_put_a2a(e, "working");
    end_chunk(e);
}

void dgm_chat_chunk_text(dgm_chat_encoder *e, dgm_str member, bool apart, dgm_str text)
{
    e->out.n = e->head;
    dgm_buf_add_str(&e->out, member);
    if (apart)
        dgm_buf_add_lit(&e->out, "\\n\\n");
    dgm_json_put_chars(&e->out, text);
    dgm_buf_add_char(&e->out, '"');
    end_delta(e);
}

void dgm_chat_put_call(dgm_buf *b, const struct chat_call *c)
{
    dgm_buf_add_lit(b, "\"id\":");
    dgm_json_put_str(b, c->id);
    dgm_buf_add_lit(b, ",\"type\":\"function\",\"function\":{\"name\":");
    dgm_json_put_str(b, c->name);
    dgm_buf_add_lit(b, ",\"arguments\":");
    dgm_json_put_str(b, dgm_buf_str(&c->arguments));
    dgm_buf_add_char(b, '}');
}

void dgm_chat_chunk_call(dgm_chat_encoder *e, const struct chat_call *c)
{
    e->out.n = e->head;
    dgm_buf_add_lit(&e->out, "\"tool_calls\":[{\"index\":");
    dgm_json_put_int(&e->out, (int64_t)c->index);
    dgm_buf_add_char(&e->out, ',');
    dgm_chat_put_call(&e->out, c);
    dgm_buf_add_lit(&e->out, "}]");
    end_delta(e);
}

void dgm_chat_chunk_arguments(dgm_chat_encoder *e, const struct chat_call *c, dgm_str delta)
{
    e->out.n = e->head;
    dgm_buf_add_lit(&e->out, "\"tool_calls\":[{\"index\":");
    dgm_json_put_int(&e->out, (int64_t)c->index);
    dgm_buf_add_lit(&e->out, ",\"function\":{\"arguments\":");
    dgm_json_put_str(&e->out, delta);
    dgm_buf_add_lit(&e->out, "}}]");
    end_delta(e);
}

void dgm_chat_put_a2a(dgm_chat_encoder *e, const char *state)
{
    dgm_buf_add_lit(&e->out, ",\"a2a\":{\"context_id\":");
    dgm_json_put_str(&e->out, e->thread_id);
    dgm_buf_add_lit(&e->out, ",\"task_id\":");
    dgm_json_put_str(&e->out, e->task_id.n ? dgm_buf_str(&e->task_id) : e->run_id);
    dgm_buf_add_lit(&e->out, ",\"state\":\"");
    dgm_buf_add_str(&e->out, dgm_str_from(state));
    dgm_buf_add_lit(&e->out, "\"}");
}

void dgm_chat_chunk_finish(dgm_chat_encoder *e, const char *reason, const char *state)
{
    e->out.n = e->head;
    dgm_chat_put_citations(e);
    dgm_buf_add_lit(&e->out, "},\"finish_reason\":\"");
    dgm_buf_add_str(&e->out, dgm_str_from(reason));
    dgm_buf_add_lit(&e->out, "\"}]");
    if (state)
        dgm_chat_put_a2a(e, state);
    end_chunk(e);
}

void dgm_chat_put_error(dgm_chat_encoder *e, dgm_str message, dgm_str code)
{
    dgm_buf *b = &e->out;
    dgm_buf_clear(b);
    dgm_buf_add_lit(b, "{\"error\":{\"message\":");
    dgm_json_put_str(b, message);
    dgm_buf_add_lit(b, ",\"type\":\"server_error\",\"param\":null,\"code\":");
    if (code.n)
        dgm_json_put_str(b, code);
    else
        dgm_buf_add_lit(b, "null");
    dgm_buf_add_lit(b, "}}");
    dgm_chat_emit(e);
}

/* ---- usage -------------------------------------------------------------------------------------------------- */

static void chat_chunks_add(dgm_opt_long *to, dgm_opt_long n)
{
    if (n.set && n.value >= 0 && n.value <= INT64_MAX / 4 && to->value <= INT64_MAX / 4)
        *to = (dgm_opt_long){true, to->value + n.value};
}

static void put_detail(dgm_buf *b, const char *key, dgm_opt_long n, const char *end)
{
    if (!n.set)
        return;
    dgm_buf_add_str(b, dgm_str_from(key));
    dgm_json_put_int(b, n.value);
    dgm_buf_add_str(b, dgm_str_from(end));
}

bool dgm_chat_put_usage(dgm_buf *b, const dgm_canon_usages *usages)
{
    dgm_canon_usage all = {0};
    for (size_t i = 0; i < usages->n; i++) {
        const dgm_canon_usage *u = &usages->at[i];
        chat_chunks_add(&all.input_tokens, u->input_tokens);
        chat_chunks_add(&all.output_tokens, u->output_tokens);
        chat_chunks_add(&all.total_tokens, u->total_tokens);
        chat_chunks_add(&all.reasoning_tokens, u->reasoning_tokens);
        chat_chunks_add(&all.cached_input_tokens, u->cached_input_tokens);
        chat_chunks_add(&all.cache_write_input_tokens, u->cache_write_input_tokens);
    }
    if (!all.input_tokens.set && !all.output_tokens.set && !all.total_tokens.set)
        return false;
    int64_t sum = all.input_tokens.value + all.output_tokens.value;
    dgm_buf_add_lit(b, ",\"usage\":{\"prompt_tokens\":");
    dgm_json_put_int(b, all.input_tokens.value);
    dgm_buf_add_lit(b, ",\"completion_tokens\":");
    dgm_json_put_int(b, all.output_tokens.value);
    dgm_buf_add_lit(b, ",\"total_tokens\":");
    dgm_json_put_int(b, all.total_tokens.set ? all.total_tokens.value : sum);
    put_detail(b, ",\"prompt_tokens_details\":{\"cached_tokens\":", all.cached_input_tokens, "}");
    put_detail(b, ",\"completion_tokens_details\":{\"reasoning_tokens\":", all.reasoning_tokens,
               "}");
    put_detail(b, ",\"cache_creation_input_tokens\":", all.cache_write_input_tokens, "");
    dgm_buf_add_char(b, '}');
    return true;
}

void dgm_chat_chunk_usage(dgm_chat_encoder *e, const dgm_canon_usages *usages)
{
    e->out.n = e->top;
    dgm_buf_add_lit(&e->out, ",\"choices\":[]");
    if (!dgm_chat_put_usage(&e->out, usages))
        return; /* unknown: zeros would look like a count */
    dgm_buf_add_char(&e->out, '}');
    dgm_chat_emit(e);
}
