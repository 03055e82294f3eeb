/* wire/langchain/langchain_write.c - canonical messages as messages_to_dict has them. */
#include "base/limits.h"
#include "base/list.h"
#include "wire/langchain/langchain_int.h"

void dgm_lc_put_member(dgm_buf *b, const char *quoted_key, dgm_str value)
{
    if (b->p[b->n - 1] != '{')
        dgm_buf_add_char(b, ',');
    dgm_buf_add_str(b, dgm_str_from(quoted_key));
    dgm_buf_add_char(b, ':');
    dgm_json_put_str(b, value);
}

static dgm_str type_of(dgm_canon_role role)
{
    switch ((int)role) {
    case DGM_CANON_USER: return DGM_STR("human");
    case DGM_CANON_TOOL: return DGM_STR("tool");
    case DGM_CANON_SYSTEM:
    case DGM_CANON_DEVELOPER: return DGM_STR("system");
    default: return DGM_STR("ai");
    }
}

/* ---- calls --------------------------------------------------------------------------------------------------------- */

/* {} for none; false: they are no object, and nothing is written. */
static bool put_arguments(dgm_buf *b, dgm_arena *scratch, dgm_str text)
{
    yyjson_val *v;
    if (!text.n) {
        dgm_buf_add_lit(b, "{}");
        return true;
    }
    if (dgm_json_read(scratch, text, DGM_MAX_RECORD_BYTES, "record_bytes", &v, NULL) ||
        !yyjson_is_obj(v))
        return false;
    dgm_json_put(b, v);
    return true;
}

/* Valid calls, or invalid ones. */
static void put_calls(dgm_buf *b, dgm_arena *scratch, const dgm_canon_calls *calls, bool valid)
{
    dgm_buf_add_str(b, valid ? DGM_STR(",\"tool_calls\":[") : DGM_STR(",\"invalid_tool_calls\":["));
    for (size_t i = 0; i < calls->n; i++) {
        const dgm_canon_call *c = &calls->at[i];
        size_t before = b->n;
        dgm_buf_add_str(b, b->p[b->n - 1] == '[' ? DGM_STR("{\"args\":") : DGM_STR(",{\"args\":"));
        if (put_arguments(b, scratch, c->arguments) != valid) {
            b->n = before;
            continue;
        }
        if (!valid)
            dgm_json_put_str(b, c->arguments);
        dgm_lc_put_member(b, "\"name\"", c->name);
        dgm_lc_put_member(b, "\"id\"", c->id);
        if (valid) {
            dgm_buf_add_lit(b, ",\"type\":\"tool_call\"}");
        } else {
            dgm_lc_put_member(b, "\"error\"", DGM_STR("The arguments are no JSON object"));
            dgm_buf_add_lit(b, ",\"type\":\"invalid_tool_call\"}");
        }
    }
    dgm_buf_add_char(b, ']');
}

/* ---- a message ----------------------------------------------------------------------------------------------------- */

static const dgm_shape rest_shape = {
    .what = "message",
    .size = sizeof(dgm_canon_message),
    .extra_at = offsetof(dgm_canon_message, extra),
    .tag_at = DGM_NOWHERE,
};

/* The members that were stored when this message was read from LangChain. */
static void put_rest(dgm_buf *b, const dgm_canon_message *m)
{
    size_t at = b->n;
    dgm_shape_write(&(dgm_writer){.out = b, .format = DGM_FORMAT_LANGCHAIN}, &rest_shape, m);
    if (b->n > at + 2) {
        b->p[at] = ','; /* members of the object around it */
        b->n--;
    } else {
        b->n = at;
    }
}

static bool has_stored(const dgm_canon_message *m, dgm_str key)
{
    const dgm_extra *x = m->extra;
    for (size_t i = 0; x && x->format == DGM_FORMAT_LANGCHAIN && i < x->n; i++) {
        if (dgm_str_eq(x->at[i].key, key))
            return true;
    }
    return false;
}

void dgm_lc_put_message(dgm_buf *b, dgm_arena *scratch, const dgm_canon_message *m,
                        const dgm_strs *reasoning)
{
    dgm_str type = type_of(m->role);
    dgm_buf_add_char(b, '{');
    dgm_lc_put_member(b, "\"type\"", type);
    dgm_buf_add_lit(b, ",\"data\":{\"content\":");
    dgm_lc_put_content(b, &m->content, reasoning);
    put_rest(b, m);
    if (m->role == DGM_CANON_DEVELOPER && !has_stored(m, DGM_STR("additional_kwargs")))
        dgm_buf_add_lit(b, ",\"additional_kwargs\":{\"__openai_role__\":\"developer\"}");
    dgm_lc_put_member(b, "\"type\"", type);
    if (m->name.n)
        dgm_lc_put_member(b, "\"name\"", m->name);
    if (m->id.n)
        dgm_lc_put_member(b, "\"id\"", m->id);
    if (m->role == DGM_CANON_TOOL) {
        dgm_lc_put_member(b, "\"tool_call_id\"", m->tool_call_id);
        dgm_lc_put_member(b, "\"status\"", m->error.p ? DGM_STR("error") : DGM_STR("success"));
    }
    if (m->tool_calls.n) {
        put_calls(b, scratch, &m->tool_calls, true);
        put_calls(b, scratch, &m->tool_calls, false);
    }
    dgm_buf_add_lit(b, "}}");
}

/* ---- messages ------------------------------------------------------------------------------------------------------ */

struct writing {
    dgm_buf out;
    dgm_arena *scratch;
    dgm_strs reasoning; /* waits for what the assistant says */
    dgm_str reasoning_id;
    dgm_frame_sink sink;
    dgm_err *err;
};

static dgm_code lc_emit_message(struct writing *w, const dgm_canon_message *m)
{
    dgm_buf_clear(&w->out);
    dgm_lc_put_message(&w->out, w->scratch, m, &w->reasoning);
    w->reasoning.n = 0;
    if (w->out.over)
        return dgm_fail(w->err, DGM_TOO_LARGE, NULL,
                        "the message becomes longer than the limit output_bytes of %zu",
                        DGM_MAX_OUTPUT_BYTES);
    return w->sink.on_frame(w->sink.arg, (dgm_str){0}, dgm_buf_str(&w->out));
}

/* Reasoning without a following text becomes a message, too. */
static dgm_code lc_emit_reasoning(struct writing *w)
{
    dgm_canon_message m = {.role = DGM_CANON_ASSISTANT, .id = w->reasoning_id};
    return w->reasoning.n ? lc_emit_message(w, &m) : DGM_OK;
}

static dgm_code write_message(struct writing *w, const dgm_canon_message *m)
{
    dgm_code rc = DGM_OK;
    if (m->role == DGM_CANON_ACTIVITY)
        return DGM_OK;
    if (m->role == DGM_CANON_REASONING) {
        w->reasoning.at =
            dgm_list_grow(w->scratch, w->reasoning.at, w->reasoning.n, sizeof *w->reasoning.at);
        w->reasoning.at[w->reasoning.n++] = m->content.text;
        w->reasoning_id = m->id;
        return DGM_OK;
    }
    if (m->role != DGM_CANON_ASSISTANT)
        rc = lc_emit_reasoning(w);
    return rc ? rc : lc_emit_message(w, m);
}

dgm_code dgm_lc_write_messages(const dgm_canon_messages *messages, const dgm_stream_params *params,
                               dgm_frame_sink sink, dgm_err *err)
{
    struct writing w = {.scratch = dgm_arena_new(), .sink = sink, .err = err};
    dgm_code rc = DGM_OK;
    (void)params;
    dgm_buf_init(&w.out, DGM_MAX_OUTPUT_BYTES);
    for (size_t i = 0; !rc && i < messages->n; i++)
        rc = write_message(&w, &messages->at[i]);
    if (!rc)
        rc = lc_emit_reasoning(&w);
    dgm_buf_done(&w.out);
    dgm_arena_free(w.scratch);
    return rc;
}
