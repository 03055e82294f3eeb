/*
 * wire/aisdk/aisdk_write.c - canonical messages as UI messages.
 *
 * All texts, reasoning, calls and results of the assistant between two messages of other roles are one UI message.
 * A result is written into the part of its call, no matter where it is in the list.
 */
#include "base/limits.h"
#include "wire/aisdk/aisdk_int.h"

struct writing {
    const dgm_canon_messages *list;
    dgm_buf out;
    dgm_arena *scratch;
    dgm_map results; /* tool call id -> its first result that is not written yet */
    size_t *next;    /* of a result: the next one with the same id; 0: the last one */
    size_t *call_of; /* of a result: the message that made the call */
    dgm_map calls;   /* ids of calls: a result without one has a part of its own */
    dgm_frame_sink sink;
    dgm_err *err;
    bool step_ended; /* the next part begins another */
};

static bool is_own(const dgm_canon_message *m)
{
    return m->role == DGM_CANON_USER || m->role == DGM_CANON_SYSTEM ||
           m->role == DGM_CANON_DEVELOPER;
}

/* Progress is not written: a history with a "working" status would be wrong. */
static bool is_progress(const dgm_canon_message *m)
{
    return m->role == DGM_CANON_ACTIVITY && dgm_str_is(m->activity_type, AISDK_A2A_STATUS);
}

/* ---- parts --------------------------------------------------------------------------------------------------- */

static void begin_part(struct writing *w)
{
    if (w->out.p[w->out.n - 1] != '[')
        dgm_buf_add_char(&w->out, ',');
}

static void begin_step(struct writing *w)
{
    if (!w->step_ended)
        return;
    w->step_ended = false;
    begin_part(w);
    dgm_buf_add_lit(&w->out, "{\"type\":\"step-start\"}");
}

static void aisdk_write_put_text(struct writing *w, const char *type, dgm_str text)
{
    begin_part(w);
    dgm_buf_add_lit(&w->out, "{\"type\":\"");
    dgm_buf_add_str(&w->out, dgm_str_from(type));
    dgm_buf_add_char(&w->out, '"');
    dgm_aisdk_put_member(&w->out, "\"text\"", text);
    dgm_buf_add_char(&w->out, '}');
}

static void put_content(struct writing *w, const dgm_canon_content *c)
{
    if (c->kind == DGM_CANON_CONTENT_TEXT)
        aisdk_write_put_text(w, "text", c->text);
    for (size_t i = 0; c->kind == DGM_CANON_CONTENT_PARTS && i < c->parts.n; i++) {
        const dgm_canon_part *p = &c->parts.at[i];
        if (p->kind == DGM_CANON_PART_TEXT) {
            aisdk_write_put_text(w, "text", p->text);
        } else if (p->source.kind != DGM_CANON_SOURCE_FILE) {
            begin_part(w);
            dgm_aisdk_put_file(&w->out, p);
        }
    }
}

static void aisdk_write_put_call(struct writing *w, dgm_str id, dgm_str name, dgm_str arguments,
                                 const dgm_canon_message *result)
{
    begin_part(w);
    dgm_buf_add_lit(&w->out, "{\"type\":\"dynamic-tool\"");
    dgm_aisdk_put_member(&w->out, "\"toolName\"", name);
    dgm_aisdk_put_member(&w->out, "\"toolCallId\"", id);
    bool failed = result && result->error.p;
    dgm_aisdk_put_member(&w->out, "\"state\"",
                         failed   ? DGM_STR("output-error")
                         : result ? DGM_STR("output-available")
                                  : DGM_STR("input-available"));
    dgm_buf_add_lit(&w->out, ",\"input\":");
    if (!dgm_aisdk_put_input(&w->out, w->scratch, arguments))
        dgm_json_put_str(&w->out, arguments);
    if (failed) {
        dgm_aisdk_put_member(&w->out, "\"errorText\"", result->error);
    } else if (result) {
        dgm_buf_add_lit(&w->out, ",\"output\":");
        dgm_aisdk_put_output(&w->out, &result->content, NULL);
    }
    dgm_buf_add_char(&w->out, '}');
}

/* The result of a call that this message makes. An id may be used again: then each call has its own result. */
static size_t *find_result(struct writing *w, dgm_str id, size_t message)
{
    size_t *at = dgm_map_get(&w->results, id);
    while (at && w->call_of[*at] < message && w->next[*at])
        *at = w->next[*at];
    return at && (w->call_of[*at] == message || w->call_of[*at] == SIZE_MAX) ? at : NULL;
}

static void put_assistant(struct writing *w, const dgm_canon_message *m)
{
    begin_step(w);
    if (m->content.kind != DGM_CANON_CONTENT_TEXT || m->content.text.n || !m->tool_calls.n)
        put_content(w, &m->content);
    for (size_t i = 0; i < m->tool_calls.n; i++) {
        const dgm_canon_call *c = &m->tool_calls.at[i];
        size_t *at = find_result(w, c->id, (size_t)(m - w->list->at));
        aisdk_write_put_call(w, c->id, c->name, c->arguments, at ? &w->list->at[*at] : NULL);
    }
    w->step_ended = true;
}

/* What comes back from the reader's stream is in one place, wherever it came from. */
static void put_artifact(struct writing *w, const dgm_json *value)
{
    dgm_canon_event e = {.kind = DGM_CANON_CUSTOM,
                         .custom = {.name = DGM_STR(DGM_NAME_ARTIFACT), .value = value}};
    dgm_canon_artifact_from_custom(w->scratch, NULL, &e);
    if (e.kind != DGM_CANON_ARTIFACT)
        return;
    const dgm_parts *parts = &e.artifact.artifact->parts;
    for (size_t i = 0; i < parts->n; i++) {
        dgm_buf part;
        dgm_buf_init(&part, DGM_MAX_OUTPUT_BYTES);
        if (dgm_aisdk_put_artifact_file(&part, w->scratch, &parts->at[i])) {
            begin_part(w);
            dgm_buf_add_str(&w->out, dgm_buf_str(&part));
        }
        dgm_buf_done(&part);
    }
    size_t before = w->out.n;
    begin_part(w);
    if (!dgm_aisdk_put_artifact_data(&w->out, w->scratch, &e))
        w->out.n = before;
}

static void aisdk_write_put_message(struct writing *w, const dgm_canon_message *m)
{
    switch ((int)m->role) {
    case DGM_CANON_REASONING:
        begin_step(w);
        aisdk_write_put_text(w, "reasoning", m->content.text);
        break;
    case DGM_CANON_ACTIVITY:
        if (is_progress(m))
            break;
        if (dgm_str_is(m->activity_type, DGM_NAME_ARTIFACT)) {
            put_artifact(w, m->content.object);
            break;
        }
        begin_part(w);
        if (dgm_str_is(m->activity_type, DGM_AISDK_PART))
            dgm_json_put(&w->out, m->content.object);
        else
            dgm_aisdk_put_activity(&w->out, m->id, m->activity_type, m->content.object);
        break;
    case DGM_CANON_TOOL:
        if (!dgm_map_get(&w->calls, m->tool_call_id)) /* a result without a call in this list */
            aisdk_write_put_call(w, m->tool_call_id, m->name.n ? m->name : DGM_STR("unknown"),
                                 (dgm_str){0}, m);
        break;
    case DGM_CANON_ASSISTANT: put_assistant(w, m); break;
    default: put_content(w, &m->content); break;
    }
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static const dgm_field rest_fields[] = {
    DGM_F(dgm_canon_message, metadata, "metadata", MAP_JSON, 0),
};
static const dgm_shape rest_shape = {
    .what = "UI message",
    .size = sizeof(dgm_canon_message),
    DGM_FIELDS(rest_fields),
    .extra_at = offsetof(dgm_canon_message, extra),
    .tag_at = DGM_NOWHERE,
};

/* Metadata and what was kept of the UI message that this one was. */
static void put_rest(struct writing *w, const dgm_canon_message *m)
{
    size_t at = w->out.n;
    dgm_shape_write(&(dgm_writer){.out = &w->out, .format = DGM_FORMAT_AI_SDK}, &rest_shape, m);
    if (w->out.n > at + 2) {
        w->out.p[at] = ','; /* members of the object around it */
        w->out.n--;
    } else {
        w->out.n = at;
    }
}

static bool has_content(const struct writing *w, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        const dgm_canon_message *m = &w->list->at[i];
        bool is_result = m->role == DGM_CANON_TOOL && dgm_map_get(&w->calls, m->tool_call_id);
        if (!is_result && !is_progress(m))
            return true;
    }
    return false;
}

static dgm_code write_group(struct writing *w, size_t from, size_t to)
{
    const dgm_canon_message *all = w->list->at, *main = &all[from];
    if (!has_content(w, from, to))
        return DGM_OK;
    for (size_t i = from; i < to && main->role != DGM_CANON_ASSISTANT && !is_own(main); i++)
        main = all[i].role == DGM_CANON_ASSISTANT ? &all[i] : main;
    dgm_buf_clear(&w->out);
    dgm_buf_add_lit(&w->out, "{\"id\":");
    dgm_json_put_str(&w->out, main->id);
    dgm_aisdk_put_member(&w->out, "\"role\"",
                         main->role == DGM_CANON_USER ? DGM_STR("user")
                         : is_own(main)               ? DGM_STR("system")
                                                      : DGM_STR("assistant"));
    put_rest(w, main);
    dgm_buf_add_lit(&w->out, ",\"parts\":[");
    w->step_ended = false;
    for (size_t i = from; i < to; i++)
        aisdk_write_put_message(w, &all[i]);
    dgm_buf_add_lit(&w->out, "]}");
    if (w->out.over)
        return dgm_fail(w->err, DGM_TOO_LARGE, NULL,
                        "the message becomes longer than the limit output_bytes of %zu",
                        DGM_MAX_OUTPUT_BYTES);
    return w->sink.on_frame(w->sink.arg, (dgm_str){0}, dgm_buf_str(&w->out));
}

static void index_calls(struct writing *w)
{
    dgm_map last; /* tool call id -> its last result so far */
    dgm_map_init(&last);
    w->next = dgm_new_n(w->scratch, size_t, w->list->n);
    w->call_of = dgm_new_n(w->scratch, size_t, w->list->n);
    for (size_t i = 0; i < w->list->n; i++) {
        const dgm_canon_message *m = &w->list->at[i];
        if (m->role == DGM_CANON_TOOL && m->tool_call_id.p) {
            size_t *call = dgm_map_get(&w->calls, m->tool_call_id);
            size_t *before = dgm_map_get(&last, m->tool_call_id);
            w->call_of[i] = call ? *call : SIZE_MAX;
            if (before)
                w->next[*before] = i;
            else
                dgm_map_put(&w->results, m->tool_call_id, i);
            dgm_map_put(&last, m->tool_call_id, i);
        }
        for (size_t k = 0; k < m->tool_calls.n; k++) {
            if (m->tool_calls.at[k].id.p)
                dgm_map_put(&w->calls, m->tool_calls.at[k].id, i);
        }
    }
    dgm_map_done(&last);
}

dgm_code dgm_aisdk_write_messages(const dgm_canon_messages *messages,
                                  const dgm_stream_params *params, dgm_frame_sink sink,
                                  dgm_err *err)
{
    struct writing w = {.list = messages, .scratch = dgm_arena_new(), .sink = sink, .err = err};
    dgm_code rc = DGM_OK;
    (void)params;
    dgm_buf_init(&w.out, DGM_MAX_OUTPUT_BYTES);
    dgm_map_init(&w.results);
    dgm_map_init(&w.calls);
    index_calls(&w);
    for (size_t i = 0, to; !rc && i < messages->n; i = to) {
        to = i + 1;
        while (!is_own(&messages->at[i]) && to < messages->n && !is_own(&messages->at[to]))
            to++;
        rc = write_group(&w, i, to);
    }
    dgm_map_done(&w.results);
    dgm_map_done(&w.calls);
    dgm_buf_done(&w.out);
    dgm_arena_free(w.scratch);
    return rc;
}
