/* wire/responses/responses_simple_read.c - the decoder of responses-simple: its events to canonical events. */
#include "canon/simple_to_events.h"
#include "wire/responses/responses_simple.h"

#include <stdlib.h>

struct decoder {
    dgm_simple_to_events *to;
    dgm_reader *r;
    dgm_canon_sink sink;
};

void *dgm_responses_simple_decoder_new(const dgm_stream_params *params)
{
    struct decoder *d = dgm_xcalloc(1, sizeof *d);
    d->to = dgm_simple_to_events_new(params->fragment, params->compact, params->mint);
    return d;
}

void dgm_responses_simple_decoder_free(void *decoder)
{
    struct decoder *d = decoder;
    if (!d)
        return;
    dgm_simple_to_events_free(d->to);
    free(d);
}

static dgm_code simple_emit(struct decoder *d, const dgm_simple_event *e)
{
    return dgm_simple_to_events_feed(d->to, d->r->arena, e, d->sink, d->r->err);
}

static dgm_code read_run(struct decoder *d, dgm_simple_kind kind, yyjson_val *data)
{
    dgm_str task = dgm_json_str_member(data, "task_id"),
            context = dgm_json_str_member(data, "context_id");
    dgm_str state = dgm_json_str_member(data, "state");
    yyjson_val *error = dgm_json_get(data, DGM_STR("error"));
    dgm_simple_event e = {.kind = kind, .run_id = task, .thread_id = context};
    if (kind == DGM_SIMPLE_STEP_FINISHED && dgm_str_is(state, "working")) {
        dgm_simple_to_events_set_run(d->to, task, context);
        return DGM_OK; /* a step of many */
    }
    if (kind == DGM_SIMPLE_RUN_FINISHED &&
        (dgm_str_is(state, "canceled") ||
         dgm_str_is(dgm_json_str_member(data, "status"), "cancelled")))
        e = (dgm_simple_event){.kind = DGM_SIMPLE_RUN_ERROR,
                               .run_id = task,
                               .thread_id = context,
                               .code = DGM_STR("canceled")};
    if (kind == DGM_SIMPLE_RUN_ERROR) {
        bool nested = yyjson_is_obj(error);
        e.code = dgm_json_str_member(nested ? error : data, "code");
        e.error_message =
            nested ? dgm_json_str_member(error, "message") : dgm_json_str_member(data, "content");
        if (!e.code.n)
            e.code = state;
    }
    return simple_emit(d, &e);
}

static dgm_code read_calls(struct decoder *d, yyjson_val *calls, const dgm_at *at, dgm_str parent)
{
    size_t i, n;
    yyjson_val *v;
    dgm_code rc;
    yyjson_arr_foreach (calls, i, n, v) {
        yyjson_val *function = dgm_json_get(v, DGM_STR("function"));
        yyjson_val *arguments = dgm_json_get(function, DGM_STR("arguments"));
        const dgm_at *here = DGM_AT_I(at, i);
        dgm_simple_event e = {.kind = dgm_json_get(v, DGM_STR("index")) ? DGM_SIMPLE_CALL_ARGS
                                                                        : DGM_SIMPLE_CALL_START,
                              .parent_message_id = parent};
        e.call.id = dgm_json_str_member(v, "id");
        e.call.name = dgm_json_str_member(function, "name");
        if (!e.call.id.n || !e.call.name.n)
            return dgm_fail(d->r->err, DGM_BAD_PARAMS, here,
                            "a call has an id, and a function with a name");
        if (arguments && !yyjson_is_str(arguments) && !yyjson_is_obj(arguments))
            return dgm_read_wrong(d->r, arguments, DGM_AT_LIT(here, "arguments"),
                                  "an object or its text");
        e.call.arguments = arguments;
        if (!dgm_str_is(dgm_json_str_member(v, "type"), "function"))
            e.call.type = dgm_json_get(v, DGM_STR("type"));
        if (yyjson_is_str(arguments) && e.kind == DGM_SIMPLE_CALL_START)
            e.call.arguments = dgm_content_arguments_value(d->r->arena, dgm_json_str(arguments));
        if ((rc = simple_emit(d, &e)))
            return rc;
    }
    return DGM_OK;
}

static dgm_canon_role role_of(dgm_str name)
{
    if (dgm_str_is(name, "user"))
        return DGM_CANON_USER;
    if (dgm_str_is(name, "system"))
        return DGM_CANON_SYSTEM;
    if (dgm_str_is(name, "tool"))
        return DGM_CANON_TOOL;
    return dgm_str_is(name, "developer") ? DGM_CANON_DEVELOPER : DGM_CANON_ASSISTANT;
}

static dgm_code simple_read_message(struct decoder *d, bool done, yyjson_val *data,
                                    const dgm_at *at)
{
    yyjson_val *content = dgm_json_get(data, DGM_STR("content"));
    yyjson_val *calls = dgm_json_get(data, DGM_STR("tool_calls"));
    dgm_str id = dgm_json_str_member(data, "message_id");
    dgm_canon_role role = role_of(dgm_json_str_member(data, "role"));
    dgm_simple_event e = {.kind = DGM_SIMPLE_TEXT_CONTENT, .message_id = id};
    dgm_code rc;
    if (role == DGM_CANON_TOOL) {
        e = (dgm_simple_event){.kind = DGM_SIMPLE_CALL_RESULT,
                               .tool_call_id = dgm_json_str_member(data, "tool_call_id"),
                               .result = content};
        if (!e.tool_call_id.n)
            return dgm_fail(d->r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "tool_call_id"),
                            "missing: a result needs it");
        return simple_emit(d, &e);
    }
    if (content && !yyjson_is_null(content)) {
        e.message.role = role;
        if ((rc = dgm_responses_read_content(d->r, content, DGM_AT_LIT(at, "content"),
                                             &e.message.content)))
            return rc;
        if (role == DGM_CANON_ASSISTANT)
            e.kind = done ? DGM_SIMPLE_TEXT_END : DGM_SIMPLE_TEXT_CHUNK;
        e.delta = e.message.content.text;
        bool empty = !e.delta.n && e.message.content.kind == DGM_CANON_CONTENT_TEXT;
        if (!(empty && (calls || !done)) && (rc = simple_emit(d, &e)))
            return rc;
    }
    return read_calls(d, calls, DGM_AT_LIT(at, "tool_calls"), id);
}

dgm_simple_kind dgm_responses_simple_kind(dgm_str name)
{
    for (int k = 1; k < DGM_N_SIMPLE_KINDS; k++) {
        if (dgm_str_eq(dgm_str_from(dgm_responses_simple_events[k]), name))
            return (dgm_simple_kind)k;
    }
    return DGM_SIMPLE_NONE;
}

dgm_code dgm_responses_simple_decoder_feed(void *decoder, dgm_reader *r, yyjson_val *v,
                                           dgm_canon_sink sink)
{
    struct decoder *d = decoder;
    yyjson_val *name = dgm_json_get(v, DGM_STR("event")), *data = dgm_json_get(v, DGM_STR("data"));
    dgm_simple_kind kind;
    r->format = DGM_FORMAT_RESPONSES_SIMPLE;
    d->r = r;
    d->sink = sink;
    if (!yyjson_is_obj(v))
        return dgm_read_wrong(r, v, NULL, "an object (event)");
    if (!yyjson_is_str(name))
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "event"),
                        "missing: the type of the event");
    if (!(kind = dgm_responses_simple_kind(dgm_json_str(name)))) {
        r->n_unknown++;
        return DGM_OK;
    }
    if (kind == DGM_SIMPLE_TEXT_CONTENT || kind == DGM_SIMPLE_TEXT_END)
        return simple_read_message(d, kind == DGM_SIMPLE_TEXT_END, data, DGM_AT_LIT(NULL, "data"));
    return read_run(d, kind, data);
}

dgm_code dgm_responses_simple_decoder_end(void *decoder, dgm_canon_sink sink, dgm_err *err)
{
    struct decoder *d = decoder;
    return dgm_simple_to_events_end(d->to, sink, err);
}
