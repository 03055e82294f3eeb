/*
 * wire/responses/responses_in_run.c - reads reasoning, images and unknown items, and how items and the response start and
 * end; see responses_in.h.
 */
#include "base/limits.h"
#include "wire/responses/responses_in.h"

typedef struct responses_in_item item;
typedef struct responses_decoder decoder;

static dgm_str responses_in_run_text_of(const yyjson_val *v, const char *name)
{
    return dgm_json_str_member(v, name);
}

/* ---- reasoning ----------------------------------------------------------------------------------------------- */

static void reasoning_event(decoder *d, dgm_canon_kind kind, dgm_str id, dgm_str delta)
{
    dgm_canon_event e = {.kind = kind};
    e.text.message_id = id;
    e.text.delta = delta;
    if (kind == DGM_CANON_REASONING_MESSAGE_START)
        e.text.role = DGM_CANON_REASONING;
    dgm_responses_in_out(d, &e);
}

static void end_thought(decoder *d, item *it)
{
    if (it->part_open)
        reasoning_event(d, DGM_CANON_REASONING_MESSAGE_END, it->thought, (dgm_str){0});
    it->part_open = false;
}

/* The first thought has the id of all of them. */
static void name_thought(decoder *d, item *it)
{
    dgm_str id =
        it->parts > 1 ? dgm_arena_printf(d->arena, "%.*s-%u", DGM_P(it->id), it->parts) : it->id;
    it->thought = dgm_responses_in_id(d, 'h', id);
}

static void begin_thought(decoder *d, item *it, int64_t index, bool is_content)
{
    if (it->part_open && it->part == index && it->part_is_content == is_content)
        return;
    end_thought(d, it);
    if (!it->open)
        reasoning_event(d, DGM_CANON_REASONING_START, it->id, (dgm_str){0});
    it->open = it->was_started = it->part_open = true;
    it->parts++;
    name_thought(d, it);
    it->part = index;
    it->part_is_content = is_content;
    it->said_of_part = (dgm_sum){0};
    reasoning_event(d, DGM_CANON_REASONING_MESSAGE_START, it->thought, (dgm_str){0});
}

void dgm_responses_in_thought(decoder *d, item *it, yyjson_val *index, bool is_content,
                              dgm_str text, bool whole)
{
    int64_t n = 0;
    if (index && !dgm_json_int(index, &n))
        n = 0;
    dgm_responses_in_reasoning(d, it);
    if (it->kind != RESPONSES_IN_REASONING || !text.n)
        return;
    if (whole && !it->part_open && it->parts)
        return; /* it was over already */
    begin_thought(d, it, n, is_content);
    if (whole && !dgm_sum_is_prefix(&it->said_of_part, text))
        text = (dgm_str){0}; /* thoughts are not taken back */
    else if (whole)
        text = dgm_responses_in_rest(text, it->said_of_part.n);
    if (text.n) {
        dgm_sum_add(&it->said_of_part, text);
        reasoning_event(d, DGM_CANON_REASONING_MESSAGE_CONTENT, it->thought, text);
    }
    if (whole)
        end_thought(d, it);
}

static void thoughts(decoder *d, item *it, yyjson_val *list, bool is_content)
{
    size_t i, n;
    yyjson_val *part;
    yyjson_arr_foreach (list, i, n, part) {
        dgm_str text = dgm_json_str_member(part, "text");
        if (!text.n)
            continue;
        begin_thought(d, it, (int64_t)i, is_content);
        reasoning_event(d, DGM_CANON_REASONING_MESSAGE_CONTENT, it->thought, text);
        end_thought(d, it);
    }
}

static void whole_reasoning(decoder *d, item *it, yyjson_val *v)
{
    dgm_str encrypted = dgm_json_str_member(v, "encrypted_content");
    dgm_responses_in_reasoning(d, it);
    if (it->kind != RESPONSES_IN_REASONING)
        return;
    if (!it->parts) {
        thoughts(d, it, dgm_json_get(v, DGM_STR("summary")), false);
        thoughts(d, it, dgm_json_get(v, DGM_STR("content")), true);
    }
    if (encrypted.n) {
        dgm_canon_event e = {.kind = DGM_CANON_REASONING_ENCRYPTED_VALUE};
        e.encrypted.subtype = DGM_STR("message");
        e.encrypted.entity_id = it->id;
        e.encrypted.encrypted_value = encrypted;
        if (!it->was_started) { /* nothing else: it still needs a message */
            reasoning_event(d, DGM_CANON_REASONING_START, it->id, (dgm_str){0});
            it->parts = 1;
            name_thought(d, it);
            reasoning_event(d, DGM_CANON_REASONING_MESSAGE_START, it->thought, (dgm_str){0});
            it->open = it->was_started = it->part_open = true;
        }
        dgm_responses_in_out(d, &e);
    }
    dgm_responses_in_close(d, it);
}

/* ---- images and strangers ------------------------------------------------------------------------------------- */

static void responses_in_run_custom(decoder *d, dgm_str name, const dgm_json *value)
{
    dgm_canon_event e = {.kind = DGM_CANON_CUSTOM};
    e.custom.name = name;
    e.custom.value = value;
    d->said_anything = true;
    dgm_responses_in_out(d, &e);
}

static void image(decoder *d, yyjson_val *v)
{
    dgm_str result = dgm_json_str_member(v, "result"),
            format = dgm_json_str_member(v, "output_format");
    dgm_str normal;
    if (!result.n || !dgm_base64_normalise(d->r->arena, result, &normal)) {
        responses_in_run_custom(d, DGM_STR(DGM_RESPONSES_ITEM), v);
        return;
    }
    format = format.n ? format : DGM_STR("png");
    dgm_part part = {.kind = DGM_PART_RAW,
                     .content = normal,
                     .media_type = dgm_arena_printf(d->r->arena, "image/%.*s", DGM_P(format))};
    dgm_artifact artifact = {.artifact_id = dgm_json_str_member(v, "id"), .parts = {&part, 1}};
    dgm_canon_event e = {.kind = DGM_CANON_ARTIFACT,
                         .artifact = {.artifact = &artifact, .last_chunk = true}};
    d->said_anything = true;
    dgm_responses_in_out(d, &e);
}

/* ---- the end of items ------------------------------------------------------------------------------------------- */

void dgm_responses_in_close(decoder *d, item *it)
{
    dgm_canon_event e = {.kind = DGM_CANON_TEXT_MESSAGE_END};
    if (!it->open)
        return;
    it->open = false;
    switch (it->kind) {
    case RESPONSES_IN_MESSAGE: e.text.message_id = it->id; break;
    case RESPONSES_IN_CALL:
    case RESPONSES_IN_MCP:
        e.kind = DGM_CANON_TOOL_CALL_END;
        e.call.tool_call_id = it->id;
        break;
    case RESPONSES_IN_REASONING:
        end_thought(d, it);
        e.kind = DGM_CANON_REASONING_END;
        e.text.message_id = it->id;
        break;
    case RESPONSES_IN_OTHER: return;
    }
    dgm_responses_in_out(d, &e);
}

void dgm_responses_in_done(decoder *d, item *it, yyjson_val *v)
{
    dgm_str type = dgm_json_str_member(v, "type");
    bool again = it->done;
    it->done = true;
    if (dgm_str_is(type, "message")) { /* the response may know better than the item did */
        dgm_responses_in_message(d, it, v);
        dgm_responses_in_close(d, it);
    } else if (again) {
        return;
    } else if (dgm_str_is(type, "reasoning")) {
        whole_reasoning(d, it, v);
    } else if (dgm_str_is(type, "function_call") || dgm_str_is(type, "custom_tool_call")) {
        dgm_responses_in_call(d, it, v, false);
    } else if (dgm_str_is(type, "mcp_call")) {
        dgm_responses_in_call(d, it, v, true);
    } else if (dgm_str_is(type, "function_call_output") ||
               dgm_str_is(type, "custom_tool_call_output")) {
        dgm_responses_in_output(d, v);
    } else if (dgm_str_is(type, "image_generation_call")) {
        image(d, v);
    } else if (yyjson_is_obj(v)) {
        dgm_responses_in_approval(d, v);
        responses_in_run_custom(d, DGM_STR(DGM_RESPONSES_ITEM), v);
    }
}

/* ---- the run -------------------------------------------------------------------------------------------------- */

static void set_time(dgm_canon_event *e, const yyjson_val *response, const char *name)
{
    yyjson_val *v = dgm_json_non_null(response, name);
    int64_t n;
    if (yyjson_is_raw(v) && dgm_json_int(v, &n) && n > 0 && n < INT64_MAX / 1000)
        e->timestamp = (dgm_opt_long){true, n * 1000};
}

/* Members of the response that do not describe its progress: an encoder writes them again. */
static const dgm_extra *echo_of(dgm_arena *a, yyjson_val *response)
{
    static const char *const told[] = {"id",     "object",     "created_at", "completed_at",
                                       "status", "error",      "output",     "incomplete_details",
                                       "usage",  "output_text"};
    yyjson_obj_iter it = yyjson_obj_iter_with(response);
    yyjson_val *key;
    dgm_extra *extra = dgm_new(a, dgm_extra);
    extra->format = DGM_FORMAT_RESPONSES;
    extra->at = dgm_new_n(a, dgm_member, yyjson_obj_size(response));
    while ((key = yyjson_obj_iter_next(&it))) {
        bool own = false;
        for (size_t i = 0; i < sizeof told / sizeof *told && !own; i++)
            own = dgm_str_eq(dgm_str_from(told[i]), dgm_json_str(key));
        if (!own && extra->n < DGM_MAX_UNKNOWN_MEMBERS)
            extra->at[extra->n++] = (dgm_member){dgm_json_str(key), yyjson_obj_iter_get_val(key)};
    }
    return extra->n ? extra : NULL;
}

static void reset(decoder *d)
{
    d->n_items = 0;
    d->n_messages = d->n_made = 0;
    d->parent = (dgm_str){0};
    d->message = SIZE_MAX;
    dgm_map_done(&d->taken);
    d->after_result = d->said_anything = d->has_error = d->ours = false;
    d->refused = SIZE_MAX;
    dgm_buf_clear(&d->refusal);
    dgm_map_done(&d->ids);
    d->approvals = (dgm_canon_interrupts){0};
    dgm_arena_reset(d->arena);
}

/* What is in the response names the run; without one its id is made up. */
static void name_run(decoder *d, yyjson_val *response)
{
    yyjson_val *metadata = dgm_json_get(response, DGM_STR("metadata"));
    yyjson_val *conversation = dgm_json_get(response, DGM_STR("conversation"));
    dgm_str task = responses_in_run_text_of(metadata, DGM_RESPONSES_TASK),
            id = responses_in_run_text_of(response, "id");
    dgm_str context = responses_in_run_text_of(metadata, DGM_RESPONSES_CONTEXT);
    if (!context.n)
        context = yyjson_is_str(conversation) ? dgm_json_str(conversation)
                                              : responses_in_run_text_of(conversation, "id");
    d->ours = task.n > 0;
    d->run_id = task.n ? dgm_arena_dup(d->arena, task)
                : id.n ? dgm_arena_dup(d->arena, id)
                       : dgm_mint_id(&d->mint, d->arena);
    d->thread_id = context.n ? dgm_arena_dup(d->arena, context) : d->run_id;
}

void dgm_responses_in_run(decoder *d, yyjson_val *response)
{
    dgm_canon_event e = {.kind = DGM_CANON_RUN_STARTED};
    dgm_canon_input input = {0};
    if (d->begun)
        return;
    reset(d);
    d->begun = true;
    d->finished = false;
    name_run(d, response);
    if (!response && d->fragment)
        return;
    e.run_started.thread_id = d->thread_id;
    e.run_started.run_id = d->run_id;
    e.run_started.protocol_version = DGM_STR(DGM_AGUI_VERSION);
    e.run_started.parent_run_id = responses_in_run_text_of(response, "previous_response_id");
    set_time(&e, response, "created_at");
    if (response)
        e.extra = echo_of(d->r->arena, response);
    yyjson_val *tools = dgm_json_get(response, DGM_STR("tools"));
    const dgm_json *others;
    dgm_err ignored = {0}, *err = d->r->err;
    d->r->err = &ignored; /* an echo is no reason to fail */
    if (yyjson_arr_size(tools) &&
        !dgm_responses_read_tools(d->r, tools, NULL, &input.tools, &others) && input.tools.n) {
        input.thread_id = d->thread_id;
        input.run_id = d->run_id;
        input.protocol_version = e.run_started.protocol_version;
        e.run_started.input = &input;
    }
    d->r->err = err;
    dgm_responses_in_out(d, &e);
}

/* ---- how it ends ------------------------------------------------------------------------------------------------ */

void dgm_responses_in_close_all(decoder *d)
{
    for (size_t i = 0; i < d->n_items; i++)
        dgm_responses_in_close(d, &d->items[i]);
}

static void set_count(dgm_opt_long *to, const yyjson_val *in, const char *name)
{
    yyjson_val *v = dgm_json_non_null(in, name);
    int64_t n;
    if (yyjson_is_raw(v) && dgm_json_int(v, &n) && n >= 0)
        *to = (dgm_opt_long){true, n};
}

static dgm_canon_usages usage_of(decoder *d, yyjson_val *response)
{
    yyjson_val *v = dgm_json_get(response, DGM_STR("usage"));
    dgm_canon_usage *u = dgm_new(d->r->arena, dgm_canon_usage);
    if (!yyjson_is_obj(v))
        return (dgm_canon_usages){0};
    u->model = responses_in_run_text_of(response, "model");
    set_count(&u->input_tokens, v, "input_tokens");
    set_count(&u->output_tokens, v, "output_tokens");
    set_count(&u->total_tokens, v, "total_tokens");
    set_count(&u->cached_input_tokens, dgm_json_get(v, DGM_STR("input_tokens_details")),
              "cached_tokens");
    set_count(&u->reasoning_tokens, dgm_json_get(v, DGM_STR("output_tokens_details")),
              "reasoning_tokens");
    return (dgm_canon_usages){u, 1};
}

void dgm_responses_in_fail(decoder *d, dgm_str message, dgm_str code, yyjson_val *response)
{
    dgm_canon_event e = {.kind = DGM_CANON_RUN_ERROR};
    dgm_responses_in_close_all(d);
    e.run_error.message = message.n ? message : DGM_STR("The response failed");
    e.run_error.code = dgm_str_is(code, "task_failed") ? DGM_STR("failed") : code;
    e.run_error.usage = usage_of(d, response);
    set_time(&e, response, "completed_at");
    d->finished = true;
    d->begun = false;
    dgm_responses_in_out(d, &e);
}

static dgm_strs pending(decoder *d)
{
    dgm_strs ids = {dgm_new_n(d->r->arena, dgm_str, d->n_items), 0};
    for (size_t i = 0; i < d->n_items; i++) {
        const item *it = &d->items[i];
        if (it->kind == RESPONSES_IN_CALL && it->was_started && !it->answered)
            ids.at[ids.n++] = it->id;
    }
    return ids;
}

/* The text of the last message: the question, where one is asked. */
static dgm_str last_text(decoder *d, yyjson_val *response)
{
    yyjson_val *output = dgm_json_get(response, DGM_STR("output")), *v, *part;
    size_t i, n, k, m;
    dgm_str text = {0};
    yyjson_arr_foreach (output, i, n, v) {
        yyjson_arr_foreach (dgm_json_get(v, DGM_STR("content")), k, m, part)
            text = responses_in_run_text_of(part, "text").n ? responses_in_run_text_of(part, "text")
                                                            : text;
    }
    while (d->ours && text.n && text.p[0] == '\n')
        text = (dgm_str){text.p + 1, text.n - 1};
    return text;
}

/* The response ended early. */
static void tell_reason(decoder *d, yyjson_val *response)
{
    dgm_str reason =
        responses_in_run_text_of(dgm_json_get(response, DGM_STR("incomplete_details")), "reason");
    dgm_canon_event e = {.kind = DGM_CANON_CUSTOM};
    if (!reason.n)
        return;
    if (dgm_str_is(reason, "max_output_tokens"))
        reason = DGM_STR("length");
    dgm_member why = {DGM_STR(DGM_RESPONSES_FINISH), dgm_json_make_string(d->r->arena, reason)};
    e.custom.name = DGM_STR(DGM_NAME_METADATA);
    e.custom.value = dgm_json_object(d->r->arena, &why, 1);
    dgm_responses_in_out(d, &e);
}

static void give_finish(decoder *d, yyjson_val *response, bool cancelled)
{
    dgm_canon_event e = {.kind = DGM_CANON_RUN_FINISHED};
    dgm_str state =
        responses_in_run_text_of(dgm_json_get(response, DGM_STR("metadata")), DGM_RESPONSES_STATE);
    dgm_canon_interrupt asked = {.id = d->run_id};
    dgm_responses_in_close_all(d);
    tell_reason(d, response);
    e.run_finished.thread_id = d->thread_id;
    e.run_finished.run_id = d->run_id;
    e.run_finished.usage = usage_of(d, response);
    dgm_strs waiting = pending(d);
    bool auth = dgm_str_is(state, "auth-required");
    if (cancelled) {
        e.run_finished.outcome.kind = DGM_CANON_CANCELLED;
    } else if (waiting.n) {
        e.run_finished.outcome =
            (dgm_canon_outcome){.kind = DGM_CANON_SUCCESS, .pending_tool_call_ids = waiting};
    } else if (d->approvals.n) {
        dgm_str text = dgm_str_is(state, "input-required") ? last_text(d, response) : (dgm_str){0};
        if (text.n && d->approvals.n == 1)
            d->approvals.at[0].message = text;
        e.run_finished.outcome =
            (dgm_canon_outcome){.kind = DGM_CANON_INTERRUPT, .interrupts = d->approvals};
    } else if (auth || dgm_str_is(state, "input-required")) {
        dgm_str text = last_text(d, response);
        asked.reason = auth ? DGM_STR("a2a:auth_required") : DGM_STR("input_required");
        asked.message = text.n ? text : (dgm_str){0};
        e.run_finished.outcome =
            (dgm_canon_outcome){.kind = DGM_CANON_INTERRUPT, .interrupts = {&asked, 1}};
    }
    set_time(&e, response, "completed_at");
    d->finished = true;
    d->begun = false;
    dgm_responses_in_out(d, &e);
}

void dgm_responses_in_items(decoder *d, yyjson_val *response)
{
    size_t i, n;
    yyjson_val *v;
    yyjson_arr_foreach (dgm_json_get(response, DGM_STR("output")), i, n, v) {
        char key[24];
        snprintf(key, sizeof key, "%zu", i);
        yyjson_val *index = dgm_json_parse_trusted(d->r->arena, dgm_str_from(key));
        item *it = dgm_responses_in_item(d, v, index, RESPONSES_IN_RESPONSE);
        if (it)
            dgm_responses_in_done(d, it, v);
    }
}

/* A response that has ended, one way or the other. */
void dgm_responses_in_end(decoder *d, yyjson_val *response, dgm_str status)
{
    yyjson_val *error = dgm_json_get(response, DGM_STR("error"));
    dgm_str state =
        responses_in_run_text_of(dgm_json_get(response, DGM_STR("metadata")), DGM_RESPONSES_STATE);
    dgm_responses_in_run(d, response);
    dgm_responses_in_items(d, response);
    bool refused = d->refusal.n && (!d->said_anything || dgm_str_is(state, "rejected"));
    if (dgm_str_is(status, "failed") || d->has_error) {
        dgm_str message = responses_in_run_text_of(error, "message"),
                code = responses_in_run_text_of(error, "code");
        dgm_responses_in_say_refusal(d);
        dgm_responses_in_fail(d, message.n ? message : d->error_message,
                              code.n ? code : d->error_code, response);
    } else if (refused) {
        dgm_str why = dgm_arena_dup(d->r->arena, dgm_buf_str(&d->refusal));
        dgm_responses_in_fail(d, why, DGM_STR("rejected"), response);
    } else {
        dgm_responses_in_say_refusal(d);
        give_finish(d, response, dgm_str_is(status, "cancelled"));
    }
}
