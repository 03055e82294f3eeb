/*
 * wire/aisdk/aisdk_encode_calls.c - calls and their results.
 *
 * Whoever reads tool-input-available runs the tool, unless it says that the agent does. Which of both it is
 * mostly shows only later: a result comes, or the run ends with the call pending. So the chunk waits for that;
 * the arguments are streamed at once.
 */
#include "base/limits.h"
#include "base/list.h"
#include "wire/aisdk/aisdk_int.h"

typedef struct aisdk_encoder E;

static struct aisdk_call *find_call(const E *e, dgm_str id)
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
    if (find_call(e, event->call.tool_call_id))
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
    e->n_untold++;
    begin_call(e, "tool-input-start", c);
    dgm_aisdk_put_member(&e->out, "\"toolName\"", c->name);
    put_kind(e, c, false);
    dgm_aisdk_send(e);
}

void dgm_aisdk_add_arguments(E *e, const dgm_canon_event *event)
{
    struct aisdk_call *c = find_call(e, event->call.tool_call_id);
    if (!c || c->told || !event->call.delta.n)
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

/* The input is complete, and we know who runs the tool. */
static void tell(E *e, struct aisdk_call *c, bool by_agent)
{
    if (c->told)
        return;
    c->told = true;
    e->n_untold--;
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
    struct aisdk_call *c = find_call(e, event->call.tool_call_id);
    if (c && c->pending)
        tell(e, c, false);
}

void dgm_aisdk_result(E *e, const dgm_canon_event *event)
{
    struct aisdk_call *c = find_call(e, event->result.tool_call_id);
    if (!c)
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
    for (size_t i = 0; e->n_untold && i < e->n_calls; i++) {
        bool by_agent = pending != NULL;
        for (size_t k = 0; by_agent && k < pending->n; k++)
            by_agent = !dgm_str_eq(pending->at[k], e->calls[i].id);
        tell(e, &e->calls[i], by_agent);
    }
}
