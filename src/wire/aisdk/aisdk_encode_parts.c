/*
 * wire/aisdk/aisdk_encode_parts.c - encodes what is not text: calls, results, progress, artifacts, state, the end of a run.
 *
 * A client that reads tool-input-available runs the tool, unless the chunk is marked as run by the agent. Who runs it
 * is mostly known later: a result arrives, or the run ends with the call pending. So this chunk is delayed until then;
 * the arguments are streamed at once.
 */
#include "base/limits.h"
#include "base/list.h"
#include "wire/aisdk/aisdk_int.h"

typedef struct aisdk_encoder E;

static struct aisdk_call *aisdk_encode_parts_find_call(const E *e, dgm_str id)
{
    size_t *at = dgm_map_get(&e->by_id, id);
    return at ? &e->calls[*at] : NULL;
}

static void begin_call(E *e, const char *type, const struct aisdk_call *c)
{
    dgm_aisdk_begin(e, type);
    dgm_aisdk_put_member(&e->out, "\"toolCallId\"", c->id);
}

/* Tools that only the agent knows have no part type of their own. */
static void put_kind(E *e, const struct aisdk_call *c, bool by_agent)
{
    if (!c->clients)
        dgm_buf_add_lit(&e->out, ",\"dynamic\":true");
    if (by_agent)
        dgm_buf_add_lit(&e->out, ",\"providerExecuted\":true");
}

void dgm_aisdk_start_call(E *e, const dgm_canon_event *event)
{
    if (aisdk_encode_parts_find_call(e, event->call.tool_call_id))
        return;
    dgm_aisdk_next_step(e);
    e->calls = dgm_list_reserve(e->calls, e->n_calls, &e->cap_calls, sizeof *e->calls);
    struct aisdk_call *c = &e->calls[e->n_calls];
    *c = (struct aisdk_call){.id = dgm_arena_dup(e->arena, event->call.tool_call_id),
                             .name = dgm_arena_dup(e->arena, event->call.name),
                             .clients = dgm_map_get(&e->clients, event->call.name) != NULL,
                             .pending = event->call.pending};
    dgm_buf_init(&c->arguments, DGM_MAX_RECORD_BYTES);
    dgm_map_put(&e->by_id, c->id, e->n_calls++);
    if (event->call.is_seen) {
        c->input_sent = true;
        c->is_denied = event->call.is_denied;
        if (c->is_denied) {
            begin_call(e, "tool-output-denied", c);
            dgm_aisdk_send(e);
        }
        return;
    }
    e->n_calls_unsent++;
    begin_call(e, "tool-input-start", c);
    dgm_aisdk_put_member(&e->out, "\"toolName\"", c->name);
    put_kind(e, c, false);
    dgm_aisdk_send(e);
}

void dgm_aisdk_add_arguments(E *e, const dgm_canon_event *event)
{
    struct aisdk_call *c = aisdk_encode_parts_find_call(e, event->call.tool_call_id);
    if (!c || c->input_sent || !event->call.delta.n)
        return;
    dgm_buf_add_str(&c->arguments, event->call.delta);
    if (c->arguments.over && !e->rc)
        e->rc = dgm_fail(e->err, DGM_TOO_LARGE, NULL,
                         "the arguments of \"%.*s\" become longer than the limit record_bytes of "
                         "%zu",
                         (int)(c->id.n < 60 ? c->id.n : 60), c->id.p, DGM_MAX_RECORD_BYTES);
    begin_call(e, "tool-input-delta", c);
    dgm_aisdk_put_member(&e->out, "\"inputTextDelta\"", event->call.delta);
    dgm_aisdk_send(e);
}

bool dgm_aisdk_has_arguments(const E *e, dgm_str call_id)
{
    const struct aisdk_call *c = aisdk_encode_parts_find_call(e, call_id);
    return c && (c->input_sent || c->arguments.n);
}

/* The input is complete, and we know who runs the tool. */
static void tell(E *e, struct aisdk_call *c, bool by_agent)
{
    if (c->input_sent)
        return;
    c->input_sent = true;
    e->n_calls_unsent--;
    begin_call(e, "tool-input-available", c);
    dgm_aisdk_put_member(&e->out, "\"toolName\"", c->name);
    dgm_buf_add_lit(&e->out, ",\"input\":");
    if (!dgm_aisdk_put_input(&e->out, e->scratch, dgm_buf_str(&c->arguments))) {
        begin_call(e, "tool-input-error", c);
        dgm_aisdk_put_member(&e->out, "\"toolName\"", c->name);
        dgm_aisdk_put_member(&e->out, "\"input\"", dgm_buf_str(&c->arguments));
        dgm_aisdk_put_member(&e->out, "\"errorText\"", DGM_STR("The arguments are not JSON"));
    }
    put_kind(e, c, by_agent);
    dgm_aisdk_send(e);
    dgm_buf_done(&c->arguments);
    dgm_buf_init(&c->arguments, DGM_MAX_RECORD_BYTES);
}

void dgm_aisdk_end_call(E *e, const dgm_canon_event *event)
{
    struct aisdk_call *c = aisdk_encode_parts_find_call(e, event->call.tool_call_id);
    if (c && c->pending)
        tell(e, c, false);
}

void dgm_aisdk_result(E *e, const dgm_canon_event *event)
{
    struct aisdk_call *c = aisdk_encode_parts_find_call(e, event->result.tool_call_id);
    if (!c || c->is_denied)
        return; /* of a call in another message: the reader has no part to put it on */
    bool by_agent = !c->pending;
    tell(e, c, by_agent);
    bool failed = yyjson_is_true(dgm_json_get(event->metadata, DGM_STR(DGM_META_ERROR)));
    begin_call(e, failed ? "tool-output-error" : "tool-output-available", c);
    if (failed) {
        dgm_str why = dgm_aisdk_content_text(e->scratch, &event->result.content);
        dgm_aisdk_put_member(&e->out, "\"errorText\"", why.n ? why : DGM_STR("The tool failed"));
    } else {
        dgm_buf_add_lit(&e->out, ",\"output\":");
        dgm_aisdk_put_output(&e->out, &event->result.content, event->result.value);
    }
    put_kind(e, c, by_agent);
    dgm_aisdk_send(e);
    e->after_result = true;
}

void dgm_aisdk_close_calls(E *e, const dgm_strs *pending)
{
    for (size_t i = 0; e->n_calls_unsent && i < e->n_calls; i++) {
        bool by_agent = pending != NULL;
        for (size_t k = 0; by_agent && k < pending->n; k++)
            by_agent = !dgm_str_eq(pending->at[k], e->calls[i].id);
        tell(e, &e->calls[i], by_agent);
    }
}

/* ---- progress and state ---------------------------------------------------------------------------------------- */

void dgm_aisdk_activity(E *e, const dgm_canon_event *event)
{
    e->has_status |= dgm_str_is(event->activity.activity_type, AISDK_A2A_STATUS);
    dgm_buf_clear(&e->out);
    dgm_aisdk_put_activity(&e->out, event->activity.message_id, event->activity.activity_type,
                           event->activity.content);
    e->out.n--; /* the brace */
    dgm_aisdk_send(e);
}

void dgm_aisdk_state(E *e, const dgm_canon_event *event)
{
    bool whole = event->kind == DGM_CANON_STATE_SNAPSHOT;
    dgm_aisdk_begin(e, whole ? AISDK_STATE : AISDK_STATE_DELTA);
    if (whole)
        dgm_buf_add_lit(&e->out, ",\"id\":\"state\"");
    else /* nothing to keep: it says what changed, not what is */
        dgm_buf_add_lit(&e->out, ",\"transient\":true");
    dgm_buf_add_lit(&e->out, ",\"data\":");
    dgm_json_put(&e->out, whole ? event->state.snapshot : event->state_delta.patch);
    dgm_aisdk_send(e);
}

/* ---- artifacts ----------------------------------------------------------------------------------------------- */

/* Files have chunks of their own; what is left is data. */
void dgm_aisdk_artifact(E *e, const dgm_canon_event *event)
{
    const dgm_parts *parts = &event->artifact.artifact->parts;
    for (size_t i = 0; i < parts->n; i++) {
        dgm_buf_clear(&e->out);
        if (!dgm_aisdk_put_artifact_file(&e->out, e->scratch, &parts->at[i]))
            continue;
        e->out.n--;
        dgm_aisdk_send(e);
    }
    dgm_buf_clear(&e->out);
    if (!dgm_aisdk_put_artifact_data(&e->out, e->scratch, event))
        return;
    e->out.n--;
    dgm_aisdk_send(e);
}

void dgm_aisdk_custom(E *e, const dgm_canon_event *event)
{
    if (dgm_str_is(event->custom.name, DGM_NAME_METADATA)) {
        dgm_str why = dgm_json_str_member(event->custom.value, "finish_reason");
        if (dgm_str_is(why, "length"))
            e->finish_reason = "length";
        else if (dgm_str_is(why, "content_filter"))
            e->finish_reason = "content-filter";
        dgm_aisdk_begin(e, "message-metadata");
        dgm_buf_add_lit(&e->out, ",\"messageMetadata\":{\"metadata\":");
        dgm_json_put(&e->out, event->custom.value);
        dgm_buf_add_char(&e->out, '}');
        dgm_aisdk_send(e);
    } else {
        dgm_aisdk_begin(e, AISDK_CUSTOM);
        dgm_buf_add_lit(&e->out, ",\"data\":{\"name\":");
        dgm_json_put_str(&e->out, event->custom.name);
        dgm_buf_add_lit(&e->out, ",\"value\":");
        dgm_json_put(&e->out, event->custom.value);
        dgm_buf_add_char(&e->out, '}');
        dgm_aisdk_send(e);
    }
}

/* ---- how a run ended ------------------------------------------------------------------------------------------- */

static void put_count(dgm_buf *b, const char *name, dgm_opt_long n)
{
    if (!n.set)
        return;
    dgm_buf_printf(b, "%s\"%s\":", b->p[b->n - 1] == '{' ? "" : ",", name);
    dgm_json_put_int(b, n.value);
}

static void put_usage(dgm_buf *b, const dgm_canon_usages *usage)
{
    if (!usage->n)
        return;
    dgm_buf_add_lit(b, ",\"usage\":[");
    for (size_t i = 0; i < usage->n; i++) {
        const dgm_canon_usage *u = &usage->at[i];
        dgm_buf_add_str(b, i ? DGM_STR(",{") : DGM_STR("{"));
        put_count(b, "inputTokens", u->input_tokens);
        put_count(b, "outputTokens", u->output_tokens);
        put_count(b, "totalTokens", u->total_tokens);
        put_count(b, "reasoningTokens", u->reasoning_tokens);
        put_count(b, "cachedInputTokens", u->cached_input_tokens);
        put_count(b, "cacheWriteInputTokens", u->cache_write_input_tokens);
        if (u->model.n) {
            dgm_buf_add_str(b,
                            b->p[b->n - 1] == '{' ? DGM_STR("\"model\":") : DGM_STR(",\"model\":"));
            dgm_json_put_str(b, u->model);
        }
        dgm_buf_add_char(b, '}');
    }
    dgm_buf_add_char(b, ']');
}

static void put_interrupts(dgm_buf *b, const dgm_canon_interrupts *list)
{
    if (!list->n)
        return;
    dgm_buf_add_lit(b, ",\"interrupts\":[");
    for (size_t i = 0; i < list->n; i++) {
        const dgm_canon_interrupt *t = &list->at[i];
        dgm_buf_add_str(b, i ? DGM_STR(",{\"id\":") : DGM_STR("{\"id\":"));
        dgm_json_put_str(b, t->id);
        dgm_aisdk_put_member(b, "\"reason\"", t->reason);
        if (t->message.n)
            dgm_aisdk_put_member(b, "\"message\"", t->message);
        if (t->tool_call_id.n)
            dgm_aisdk_put_member(b, "\"toolCallId\"", t->tool_call_id);
        dgm_buf_add_char(b, '}');
    }
    dgm_buf_add_char(b, ']');
}

/* A status that was shown must not go on saying "working". */
static void last_status(E *e, dgm_str state)
{
    if (!e->has_status)
        return;
    dgm_aisdk_begin(e, AISDK_STATUS);
    dgm_buf_add_lit(&e->out, ",\"id\":\"" AISDK_STATUS_ID "\",\"data\":{\"state\":");
    dgm_json_put_str(&e->out, state);
    dgm_buf_add_char(&e->out, '}');
    dgm_aisdk_send(e);
}

static void finish_step(E *e)
{
    if (!e->started)
        return;
    dgm_aisdk_begin(e, "finish-step");
    dgm_aisdk_send(e);
}

static dgm_str aisdk_encode_parts_state_of(const dgm_canon_outcome *o)
{
    if (o->kind == DGM_CANON_CANCELLED)
        return DGM_STR("canceled");
    if (o->kind == DGM_CANON_INTERRUPT)
        return o->interrupts.n && dgm_str_is(o->interrupts.at[0].reason, "a2a:auth_required")
                   ? DGM_STR("auth-required")
                   : DGM_STR("input-required");
    return o->pending_tool_call_ids.n ? DGM_STR("input-required") : DGM_STR("completed");
}

void dgm_aisdk_finished(E *e, const dgm_canon_event *event)
{
    const dgm_canon_outcome *o = &event->run_finished.outcome;
    dgm_str state = aisdk_encode_parts_state_of(o);
    bool cancelled = o->kind == DGM_CANON_CANCELLED;
    dgm_aisdk_announce_approvals(e, &o->interrupts);
    dgm_aisdk_close_calls(e, &o->pending_tool_call_ids);
    dgm_aisdk_ask_approvals(e, &o->interrupts);
    last_status(e, state);
    finish_step(e);
    dgm_aisdk_begin(e, cancelled ? "message-metadata" : "finish");
    if (!cancelled)
        dgm_aisdk_put_member(&e->out, "\"finishReason\"",
                             o->pending_tool_call_ids.n ? DGM_STR("tool-calls")
                             : e->finish_reason         ? dgm_str_from(e->finish_reason)
                                                        : DGM_STR("stop"));
    dgm_buf_add_lit(&e->out, ",\"messageMetadata\":{\"state\":");
    dgm_json_put_str(&e->out, state);
    put_interrupts(&e->out, &o->interrupts);
    put_usage(&e->out, &event->run_finished.usage);
    dgm_buf_add_char(&e->out, '}');
    dgm_aisdk_send(e);
    if (cancelled) { /* as the SDK's own servers do: nothing behind it */
        dgm_aisdk_begin(e, "abort");
        dgm_aisdk_put_member(&e->out, "\"reason\"", DGM_STR("canceled"));
        dgm_aisdk_send(e);
    }
}

void dgm_aisdk_failed(E *e, dgm_str message, dgm_str code, const dgm_canon_usages *usage)
{
    bool rejected = dgm_str_is(code, "rejected");
    dgm_str state = rejected ? DGM_STR("rejected") : DGM_STR("failed");
    dgm_aisdk_close_calls(e, &(dgm_strs){0});
    last_status(e, state);
    dgm_aisdk_begin(e, "error");
    dgm_aisdk_put_member(&e->out, "\"errorText\"", message);
    dgm_aisdk_send(e);
    finish_step(e);
    dgm_aisdk_begin(e, "finish");
    dgm_buf_add_lit(&e->out, ",\"finishReason\":\"error\",\"messageMetadata\":{\"state\":");
    dgm_json_put_str(&e->out, state);
    if (code.n)
        dgm_aisdk_put_member(&e->out, "\"code\"", code);
    put_usage(&e->out, usage);
    dgm_buf_add_char(&e->out, '}');
    dgm_aisdk_send(e);
}
