/* wire/responses/responses_decode.c - a stream of events, or a response, as canonical events; see responses_in.h. */
#include "base/limits.h"
#include "wire/responses/responses_in.h"

#include <stdlib.h>

typedef struct responses_in_item item;
typedef struct responses_decoder decoder;

void *dgm_responses_decoder_new(const dgm_stream_params *params)
{
    decoder *d = dgm_xcalloc(1, sizeof *d);
    d->arena = dgm_arena_new();
    d->mint = params->mint;
    d->fragment = params->fragment;
    d->refused = SIZE_MAX;
    d->message = SIZE_MAX;
    dgm_map_init(&d->ids);
    dgm_map_init(&d->taken);
    dgm_buf_init(&d->refusal, DGM_MAX_RECORD_BYTES);
    return d;
}

void dgm_responses_decoder_free(void *handle)
{
    decoder *d = handle;
    if (!d)
        return;
    dgm_arena_free(d->arena);
    dgm_map_done(&d->ids);
    dgm_map_done(&d->taken);
    dgm_buf_done(&d->refusal);
    free(d->items);
    free(d);
}

void dgm_responses_in_out(decoder *d, dgm_canon_event *e)
{
    if (!d->rc)
        d->rc = dgm_canon_emit(d->sink, e);
}

static dgm_str responses_decode_text_of(const yyjson_val *v, const char *name)
{
    return dgm_json_str_member(v, name);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

enum what {
    UNKNOWN,
    BEGINS,
    ENDS,
    ITEM_ADDED,
    ITEM_DONE,
    PART,
    TEXT_DELTA,
    TEXT_DONE,
    REFUSAL_DELTA,
    REFUSAL_DONE,
    ARGUMENTS_DELTA,
    ARGUMENTS_DONE,
    SUMMARY_DELTA,
    SUMMARY_DONE,
    REASONING_DELTA,
    REASONING_DONE,
    FAILS,
    SKIPPED /* known; other events have its content, too */
};

static const struct {
    const char *type;
    enum what what;
} events[] = {
    {"response.output_text.delta", TEXT_DELTA},
    {"response.function_call_arguments.delta", ARGUMENTS_DELTA},
    {"response.reasoning_summary_text.delta", SUMMARY_DELTA},
    {"response.reasoning_text.delta", REASONING_DELTA},
    {"response.created", BEGINS},
    {"response.queued", BEGINS},
    {"response.in_progress", BEGINS},
    {"response.completed", ENDS},
    {"response.failed", ENDS},
    {"response.incomplete", ENDS},
    {"response.output_item.added", ITEM_ADDED},
    {"response.output_item.done", ITEM_DONE},
    {"response.content_part.added", PART},
    {"response.content_part.done", SKIPPED},
    {"response.output_text.done", TEXT_DONE},
    {"response.refusal.delta", REFUSAL_DELTA},
    {"response.refusal.done", REFUSAL_DONE},
    {"response.function_call_arguments.done", ARGUMENTS_DONE},
    {"response.mcp_call_arguments.delta", ARGUMENTS_DELTA},
    {"response.mcp_call_arguments.done", ARGUMENTS_DONE},
    {"response.custom_tool_call_input.delta", ARGUMENTS_DELTA},
    {"response.custom_tool_call_input.done", ARGUMENTS_DONE},
    {"response.reasoning_summary_text.done", SUMMARY_DONE},
    {"response.reasoning_text.done", REASONING_DONE},
    {"response.reasoning.delta", REASONING_DELTA}, /* Open Responses */
    {"response.reasoning.done", REASONING_DONE},
    {"response.reasoning_summary_part.added", SKIPPED},
    {"response.reasoning_summary_part.done", SKIPPED},
    {"response.mcp_call.in_progress", SKIPPED},
    {"response.mcp_call.completed", SKIPPED},
    {"response.mcp_call.failed", SKIPPED},
    {"keepalive", SKIPPED},
    {"error", FAILS},
};

static enum what what_is(dgm_str type)
{
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        if (dgm_str_eq(dgm_str_from(events[i].type), type))
            return events[i].what;
    }
    return UNKNOWN;
}

/* The stream is about to end: a failed response may follow, and knows more. */
static void keep_error(decoder *d, yyjson_val *v)
{
    yyjson_val *nested = dgm_json_get(v, DGM_STR("error"));
    dgm_str message = responses_decode_text_of(nested, "message"),
            code = responses_decode_text_of(nested, "code");
    if (!message.n)
        message =
            yyjson_is_str(nested) ? dgm_json_str(nested) : responses_decode_text_of(v, "message");
    if (!code.n)
        code = responses_decode_text_of(v, "code").n ? responses_decode_text_of(v, "code")
                                                     : responses_decode_text_of(nested, "type");
    d->has_error = true;
    d->error_message = dgm_arena_dup(d->arena, message);
    d->error_code = code.n ? dgm_arena_dup(d->arena, code) : (dgm_str){0};
}

/* The kind of item that an event is about. */
static enum responses_in_kind kind_of_event(enum what what)
{
    if (what >= TEXT_DELTA && what <= REFUSAL_DONE)
        return RESPONSES_IN_MESSAGE;
    if (what == ARGUMENTS_DELTA || what == ARGUMENTS_DONE)
        return RESPONSES_IN_CALL;
    return what == PART ? RESPONSES_IN_OTHER : RESPONSES_IN_REASONING;
}

static void item_event(decoder *d, enum what what, yyjson_val *v)
{
    yyjson_val *object = dgm_json_get(v, DGM_STR("item")),
               *index = dgm_json_get(v, DGM_STR("output_index"));
    yyjson_val *part = dgm_json_get(v, DGM_STR("content_index"));
    yyjson_val *summary = dgm_json_get(v, DGM_STR("summary_index"));
    bool of_item = what == ITEM_ADDED || what == ITEM_DONE;
    item *it = of_item ? dgm_responses_in_item(d, object, index,
                                               what == ITEM_ADDED ? RESPONSES_IN_STARTS
                                                                  : RESPONSES_IN_GOES_ON)
                       : dgm_responses_in_find(d, dgm_json_get(v, DGM_STR("item_id")), index,
                                               kind_of_event(what), RESPONSES_IN_GOES_ON);
    if (!it)
        return;
    switch (what) {
    case ITEM_ADDED: dgm_responses_in_begin(d, it, object); break;
    case ITEM_DONE: dgm_responses_in_done(d, it, object); break;
    case PART: dgm_responses_in_part(it, part); break;
    case TEXT_DELTA:
        dgm_responses_in_part(it, part);
        dgm_responses_in_text(d, it, responses_decode_text_of(v, "delta"));
        break;
    case TEXT_DONE:
        dgm_responses_in_whole_part(d, it, part, responses_decode_text_of(v, "text"));
        break;
    case REFUSAL_DELTA:
        dgm_responses_in_refusal(d, it, responses_decode_text_of(v, "delta"), false);
        break;
    case REFUSAL_DONE:
        dgm_responses_in_refusal(d, it, responses_decode_text_of(v, "refusal"), true);
        break;
    case ARGUMENTS_DELTA:
        dgm_responses_in_arguments(d, it, responses_decode_text_of(v, "delta"), false);
        break;
    case ARGUMENTS_DONE: {
        dgm_str text = responses_decode_text_of(v, "arguments");
        dgm_responses_in_arguments(d, it, text.p ? text : responses_decode_text_of(v, "input"),
                                   true);
        break;
    }
    case SUMMARY_DELTA:
        dgm_responses_in_thought(d, it, summary, false, responses_decode_text_of(v, "delta"),
                                 false);
        break;
    case SUMMARY_DONE:
        dgm_responses_in_thought(d, it, summary, false, responses_decode_text_of(v, "text"), true);
        break;
    case REASONING_DELTA:
        dgm_responses_in_thought(d, it, part, true, responses_decode_text_of(v, "delta"), false);
        break;
    case REASONING_DONE:
        dgm_responses_in_thought(d, it, part, true, responses_decode_text_of(v, "text"), true);
        break;
    case UNKNOWN:
    case BEGINS:
    case ENDS:
    case FAILS:
    case SKIPPED: break;
    }
}

/* ---- the handle ---------------------------------------------------------------------------------------------------- */

static dgm_str responses_decode_status_of(yyjson_val *response, dgm_str type)
{
    dgm_str status = responses_decode_text_of(response, "status");
    if (status.n)
        return status;
    return dgm_str_is(type, "response.failed") ? DGM_STR("failed") : DGM_STR("completed");
}

static void whole_response(decoder *d, yyjson_val *v)
{
    dgm_str status = responses_decode_status_of(v, (dgm_str){0});
    if (dgm_str_is(status, "queued") || dgm_str_is(status, "in_progress")) {
        dgm_responses_in_run(d, v);
        dgm_responses_in_items(d, v);
    } else {
        dgm_responses_in_end(d, v, status);
    }
}

dgm_code dgm_responses_decoder_feed(void *handle, dgm_reader *r, yyjson_val *v, dgm_canon_sink sink)
{
    decoder *d = handle;
    dgm_str type = responses_decode_text_of(v, "type");
    yyjson_val *response = dgm_json_get(v, DGM_STR("response"));
    r->format = DGM_FORMAT_RESPONSES;
    d->r = r;
    d->sink = sink;
    if (!yyjson_is_obj(v))
        return dgm_read_wrong(r, v, NULL, "an object (event or response)");
    if (dgm_str_is(responses_decode_text_of(v, "object"), "response")) {
        d->begun = d->begun && !d->finished;
        whole_response(d, v);
        return d->rc;
    }
    bool is_error = !type.n && dgm_json_get(v, DGM_STR("error"));
    enum what what = is_error ? FAILS : what_is(type);
    if (!type.n && !is_error)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "type"),
                        "missing: the type of the event");
    if (what == UNKNOWN)
        r->n_unknown++;
    if (what == UNKNOWN || what == SKIPPED ||
        (d->finished && !dgm_str_is(type, "response.created")))
        return d->rc;
    dgm_responses_in_run(d, response);
    if (what == ENDS)
        dgm_responses_in_end(d, response, responses_decode_status_of(response, type));
    else if (what == FAILS)
        keep_error(d, v);
    else if (what != BEGINS)
        item_event(d, what, v);
    return d->rc;
}

dgm_code dgm_responses_decoder_end(void *handle, dgm_canon_sink sink, dgm_err *err)
{
    decoder *d = handle;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_RESPONSES, .err = err};
    d->r = &r;
    d->sink = sink;
    if (d->rc || d->finished)
        return d->rc;
    if (d->fragment && !d->has_error) {
        dgm_responses_in_say_refusal(d);
        dgm_responses_in_close_all(d);
        return d->rc;
    }
    dgm_responses_in_run(d, NULL);
    dgm_responses_in_say_refusal(d);
    if (d->has_error)
        dgm_responses_in_fail(d, d->error_message, d->error_code, NULL);
    else
        dgm_responses_in_fail(d, DGM_STR("The stream ended before its response did"),
                              DGM_STR("incomplete"), NULL);
    return d->rc;
}
