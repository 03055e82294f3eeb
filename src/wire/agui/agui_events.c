/*
 * wire/agui/agui_events.c - the 31 events and the artifacts, a table each, and the five retired events.
 */
#include "canon/chunks_to_events.h"
#include "wire/agui/agui_int.h"

#include <stdlib.h>

typedef dgm_canon_event E;

/* ---- members of all -------------------------------------------------------------------------------- */

static dgm_code read_timestamp(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    return dgm_agui_read_long(r, v, at, &((E *)object)->timestamp);
}
static const dgm_custom timestamp_custom = {read_timestamp, dgm_agui_write_long};

/* clang-format off */
#define TYPE(name) DGM_F_CONST("type", name)
#define BASE                                                                                       \
    {DGM_KEY("timestamp", CUSTOM, 0), .at = offsetof(E, timestamp),                                \
     .of = {.custom = &timestamp_custom}},                                                         \
    DGM_F(E, raw_event, "rawEvent", JSON, 0), DGM_F(E, metadata, "metadata", MAP_JSON, 0)
#define BY DGM_F(E, subagent_run_id, "subagentRunId", STR, OPT)
#define EVENT(sym, ...)                                                                            \
    static const dgm_field sym##_fields[] = {TYPE(#sym), __VA_ARGS__, BASE};                       \
    static const dgm_shape sym##_shape = {                                                         \
        .what = #sym " event", .size = sizeof(E), DGM_FIELDS(sym##_fields),                        \
        .extra_at = offsetof(E, extra), .tag_at = DGM_NOWHERE, .proto = true};
/* clang-format on */

#define NEED DGM_REQUIRED
#define ID(member, json) DGM_F(E, member, json, STR, NEED)
#define MAY(member, json) DGM_F(E, member, json, STR, OPT)

/* ---- runs and steps -------------------------------------------------------------------------------- */

static dgm_code read_run_outcome(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_code rc = dgm_agui_read_outcome(r, v, at, &((E *)object)->run_finished.outcome);
    if (!rc && ((E *)object)->run_finished.outcome.kind == DGM_CANON_SUSPENDED)
        ((E *)object)->run_finished.outcome = (dgm_canon_outcome){0}; /* only subagents suspend */
    return rc;
}
static void write_run_outcome(dgm_writer *w, const dgm_field *f, const void *object)
{
    const E *e = object;
    if (!e->run_finished.outcome.kind)
        return;
    dgm_put_key(w, f);
    dgm_agui_put_outcome(w, &e->run_finished.outcome);
}
static const dgm_custom run_outcome = {read_run_outcome, write_run_outcome};

EVENT(RUN_STARTED, ID(run_started.thread_id, "threadId"), ID(run_started.run_id, "runId"),
      MAY(run_started.protocol_version, "protocolVersion"),
      MAY(run_started.parent_run_id, "parentRunId"),
      DGM_F_OF(E, run_started.input, "input", OBJECT, 0, &dgm_agui_input))
EVENT(RUN_FINISHED, ID(run_finished.thread_id, "threadId"), ID(run_finished.run_id, "runId"),
      DGM_F(E, run_finished.result, "result", JSON, 0), DGM_F_CUSTOM("outcome", 0, &run_outcome),
      DGM_F_OF(E, run_finished.usage, "usage", LIST, 0, &dgm_agui_usage))
EVENT(RUN_ERROR, ID(run_error.message, "message"), MAY(run_error.code, "code"),
      DGM_F_OF(E, run_error.usage, "usage", LIST, 0, &dgm_agui_usage))
EVENT(STEP_STARTED, ID(step.name, "stepName"), BY)
EVENT(STEP_FINISHED, ID(step.name, "stepName"), BY)

/* ---- text ------------------------------------------------------------------------------------------- */

static const char *const text_role_names[] = {NULL, "developer", "system", "assistant", "user"};
static const dgm_enum_names text_roles = {
    .what = "role of a text message", .names = text_role_names, .n = 5};
#define ROLE DGM_F_OF(E, text.role, "role", ENUM, 0, &text_roles)

EVENT(TEXT_MESSAGE_START, ID(text.message_id, "messageId"), ROLE, MAY(text.name, "name"), BY)
EVENT(TEXT_MESSAGE_CONTENT, ID(text.message_id, "messageId"), ID(text.delta, "delta"), BY)
EVENT(TEXT_MESSAGE_END, ID(text.message_id, "messageId"), BY)
EVENT(TEXT_MESSAGE_CHUNK, MAY(text.message_id, "messageId"), ROLE, MAY(text.delta, "delta"),
      MAY(text.name, "name"), BY)

/* ---- tools ------------------------------------------------------------------------------------------- */

static dgm_code read_result_content(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    if (yyjson_is_obj(v))
        return dgm_read_wrong(r, v, at, "a string or an array of parts");
    return dgm_agui_read_content(r, v, at, &((E *)object)->result.content);
}
static void write_result_content(dgm_writer *w, const dgm_field *f, const void *object)
{
    const E *e = object;
    dgm_put_key(w, f);
    if (e->result.content.kind == DGM_CANON_CONTENT_ABSENT)
        dgm_buf_add_lit(w->out, "\"\"");
    else
        dgm_agui_put_content(w, &e->result.content);
}
static const dgm_custom result_content = {read_result_content, write_result_content};

static dgm_code read_result_role(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_code rc = dgm_read_str(r, v, at, &((E *)object)->result.role);
    if (!rc && !dgm_str_is(((E *)object)->result.role, "tool"))
        return dgm_fail(r->err, DGM_BAD_PARAMS, at, "the role of a result is \"tool\"");
    return rc;
}
static void write_result_role(dgm_writer *w, const dgm_field *f, const void *object)
{
    if (!((const E *)object)->result.role.n)
        return;
    dgm_put_key(w, f);
    dgm_buf_add_lit(w->out, "\"tool\"");
}
static const dgm_custom result_role = {read_result_role, write_result_role};

EVENT(TOOL_CALL_START, ID(call.tool_call_id, "toolCallId"), ID(call.name, "toolCallName"),
      MAY(call.parent_message_id, "parentMessageId"), BY)
EVENT(TOOL_CALL_ARGS, ID(call.tool_call_id, "toolCallId"), ID(call.delta, "delta"), BY)
EVENT(TOOL_CALL_END, ID(call.tool_call_id, "toolCallId"), BY)
EVENT(TOOL_CALL_CHUNK, MAY(call.tool_call_id, "toolCallId"), MAY(call.name, "toolCallName"),
      MAY(call.parent_message_id, "parentMessageId"), MAY(call.delta, "delta"), BY)
EVENT(TOOL_CALL_RESULT, ID(result.message_id, "messageId"), ID(result.tool_call_id, "toolCallId"),
      DGM_F_CUSTOM("content", NEED, &result_content), DGM_F_CUSTOM("role", 0, &result_role), BY)

/* ---- state, messages, activities ------------------------------------------------------------------------ */

/* Checks only the members that every operation must have; applying the patch checks the rest. */
static dgm_code check_patch(dgm_reader *r, yyjson_val *v, const dgm_at *at)
{
    size_t i, n;
    yyjson_val *op;
    if (!yyjson_is_arr(v))
        return dgm_read_wrong(r, v, at, "an array of JSON Patch operations");
    yyjson_arr_foreach (v, i, n, op) {
        dgm_str path = dgm_json_str_member(op, "path");
        dgm_str name = dgm_json_str_member(op, "op");
        bool sets =
            dgm_str_is(name, "add") || dgm_str_is(name, "replace") || dgm_str_is(name, "test");
        if (!name.p)
            return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_I(at, i),
                            "a JSON Patch operation has a text member op");
        if (!path.p || (path.n && path.p[0] != '/'))
            return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_I(at, i),
                            "a JSON Patch operation has a path that is empty or begins with /");
        if (sets && !dgm_json_get(op, DGM_STR("value")))
            return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_I(at, i),
                            "the JSON Patch operation %.*s has a value", DGM_P(name));
    }
    return DGM_OK;
}
static dgm_code read_state_patch(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    ((E *)object)->state_delta.patch = v;
    return check_patch(r, v, at);
}
static void write_state_patch(dgm_writer *w, const dgm_field *f, const void *object)
{
    dgm_put_key(w, f);
    dgm_json_put(w->out, ((const E *)object)->state_delta.patch);
}
static const dgm_custom state_patch = {read_state_patch, write_state_patch};
static dgm_code read_activity_patch(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    ((E *)object)->activity.patch = v;
    return check_patch(r, v, at);
}
static void write_activity_patch(dgm_writer *w, const dgm_field *f, const void *object)
{
    dgm_put_key(w, f);
    dgm_json_put(w->out, ((const E *)object)->activity.patch);
}
static const dgm_custom activity_patch = {read_activity_patch, write_activity_patch};

static dgm_code read_snapshot(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    return dgm_agui_read_messages(r, v, at, &((E *)object)->snapshot.messages);
}
static void write_snapshot(dgm_writer *w, const dgm_field *f, const void *object)
{
    dgm_put_key(w, f);
    dgm_agui_put_messages(w, &((const E *)object)->snapshot.messages);
}
static const dgm_custom snapshot_messages = {read_snapshot, write_snapshot};

EVENT(STATE_SNAPSHOT, DGM_F(E, state.snapshot, "snapshot", JSON, NEED), BY)
EVENT(STATE_DELTA, DGM_F_CUSTOM("delta", NEED, &state_patch), BY)
EVENT(MESSAGES_SNAPSHOT, DGM_F_CUSTOM("messages", NEED, &snapshot_messages))
EVENT(ACTIVITY_SNAPSHOT, ID(activity.message_id, "messageId"),
      ID(activity.activity_type, "activityType"),
      DGM_F(E, activity.content, "content", MAP_JSON, NEED),
      DGM_F(E, activity.replace, "replace", BOOL, OPT), BY)
EVENT(ACTIVITY_DELTA, ID(activity.message_id, "messageId"),
      ID(activity.activity_type, "activityType"), DGM_F_CUSTOM("patch", NEED, &activity_patch), BY)

/* ---- reasoning ----------------------------------------------------------------------------------------- */

static const char *const reasoning_role_names[DGM_N_CANON_ROLES] = {[DGM_CANON_REASONING] =
                                                                        "reasoning"};
static const dgm_enum_names reasoning_roles = {
    .what = "role of a reasoning message", .names = reasoning_role_names, .n = DGM_N_CANON_ROLES};

EVENT(REASONING_START, ID(text.message_id, "messageId"), BY)
EVENT(REASONING_MESSAGE_START, ID(text.message_id, "messageId"),
      DGM_F_OF(E, text.role, "role", ENUM, NEED, &reasoning_roles), BY)
EVENT(REASONING_MESSAGE_CONTENT, ID(text.message_id, "messageId"), ID(text.delta, "delta"), BY)
EVENT(REASONING_MESSAGE_END, ID(text.message_id, "messageId"), BY)
EVENT(REASONING_MESSAGE_CHUNK, MAY(text.message_id, "messageId"), MAY(text.delta, "delta"), BY)
EVENT(REASONING_END, ID(text.message_id, "messageId"), BY)
EVENT(REASONING_ENCRYPTED_VALUE, ID(encrypted.subtype, "subtype"),
      ID(encrypted.entity_id, "entityId"), ID(encrypted.encrypted_value, "encryptedValue"), BY)

/* ---- subagents, raw, custom ------------------------------------------------------------------------------ */

static dgm_code read_subagent_outcome(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    return dgm_agui_read_outcome(r, v, at, &((E *)object)->subagent.outcome);
}
static void write_subagent_outcome(dgm_writer *w, const dgm_field *f, const void *object)
{
    const E *e = object;
    if (!e->subagent.outcome.kind)
        return;
    dgm_put_key(w, f);
    dgm_agui_put_outcome(w, &e->subagent.outcome);
}
static const dgm_custom subagent_outcome = {read_subagent_outcome, write_subagent_outcome};

EVENT(SUBAGENT_STARTED, ID(subagent_run_id, "subagentRunId"), ID(subagent.name, "name"),
      MAY(subagent.description, "description"),
      MAY(subagent.parent_subagent_run_id, "parentSubagentRunId"),
      MAY(subagent.parent_tool_call_id, "parentToolCallId"),
      MAY(subagent.parent_message_id, "parentMessageId"))
EVENT(SUBAGENT_FINISHED, ID(subagent_run_id, "subagentRunId"),
      DGM_F(E, subagent.result, "result", JSON, 0), DGM_F_CUSTOM("outcome", 0, &subagent_outcome))
EVENT(SUBAGENT_ERROR, ID(subagent_run_id, "subagentRunId"), ID(subagent.message, "message"),
      MAY(subagent.code, "code"))
EVENT(RAW, DGM_F(E, raw.event, "event", JSON, NEED), MAY(raw.source, "source"), BY)
EVENT(CUSTOM, ID(custom.name, "name"), DGM_F(E, custom.value, "value", JSON, NEED), BY)

/* Written as a CUSTOM event; dgm_agui_read_event() turns it back. */
static void write_artifact(dgm_writer *w, const dgm_field *f, const void *object)
{
    dgm_put_key(w, f);
    dgm_canon_put_artifact(w->out, object);
}
static const dgm_custom artifact_value = {NULL, write_artifact};

static const dgm_field artifact_fields[] = {TYPE("CUSTOM"), DGM_F_CONST("name", DGM_NAME_ARTIFACT),
                                            DGM_F_CUSTOM("value", 0, &artifact_value), BY, BASE};
static const dgm_shape artifact_shape = DGM_AGUI_SHAPE(E, "CUSTOM event", artifact_fields);

const dgm_shape *const dgm_agui_event_shapes[DGM_N_CANON_KINDS] = {
#define X(sym) [DGM_CANON_##sym] = &sym##_shape,
    DGM_CANON_KINDS(X)
#undef X
        [DGM_CANON_ARTIFACT] = &artifact_shape,
};

/* ---- retired ------------------------------------------------------------------------------------------- */

static const dgm_custom ignored = {NULL, NULL};

static const dgm_field thinking_fields[] = {DGM_F_CUSTOM("type", 0, &ignored),
                                            DGM_F_CUSTOM("title", 0, &ignored), BASE};
static const dgm_field thinking_text_fields[] = {DGM_F_CUSTOM("type", 0, &ignored),
                                                 DGM_F(E, text.delta, "delta", STR, NEED), BASE};
static const dgm_shape thinking_shape = DGM_AGUI_SHAPE(E, "THINKING event", thinking_fields);
static const dgm_shape thinking_text_shape =
    DGM_AGUI_SHAPE(E, "THINKING_TEXT_MESSAGE_CONTENT event", thinking_text_fields);

static const struct {
    const char *name;
    dgm_canon_kind kind;
    const dgm_shape *shape;
} retired[] = {
    {"THINKING_START", DGM_CANON_REASONING_START, &thinking_shape},
    {"THINKING_END", DGM_CANON_REASONING_END, &thinking_shape},
    {"THINKING_TEXT_MESSAGE_START", DGM_CANON_REASONING_MESSAGE_START, &thinking_shape},
    {"THINKING_TEXT_MESSAGE_CONTENT", DGM_CANON_REASONING_MESSAGE_CONTENT, &thinking_text_shape},
    {"THINKING_TEXT_MESSAGE_END", DGM_CANON_REASONING_MESSAGE_END, &thinking_shape},
};
#define N_RETIRED (sizeof retired / sizeof *retired)

/* ---- reading ------------------------------------------------------------------------------------------- */

static dgm_canon_kind agui_events_kind_of(dgm_str type)
{
    for (int k = 1; k < DGM_N_CANON_KINDS; k++) {
        const dgm_field *f = dgm_agui_event_shapes[k]->fields; /* the first row is the type */
        if (f->tag == type.n && memcmp(f->of.literal, type.p, type.n) == 0)
            return (dgm_canon_kind)k;
    }
    return DGM_CANON_NONE;
}

static void drop_nulls(E *e)
{
    dgm_agui_drop_null(&e->raw_event);
    if (e->kind == DGM_CANON_RUN_FINISHED)
        dgm_agui_drop_null(&e->run_finished.result);
    if (e->kind == DGM_CANON_SUBAGENT_FINISHED)
        dgm_agui_drop_null(&e->subagent.result);
}

static dgm_code check_event(dgm_reader *r, const E *e, const dgm_at *at)
{
    if (e->kind == DGM_CANON_REASONING_ENCRYPTED_VALUE &&
        !dgm_str_is(e->encrypted.subtype, "message") &&
        !dgm_str_is(e->encrypted.subtype, "tool-call"))
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "subtype"),
                        "\"%.*s\" is neither message nor tool-call", DGM_P(e->encrypted.subtype));
    return DGM_OK;
}

dgm_code dgm_agui_read_event(dgm_reader *r, yyjson_val *v, const dgm_at *at, E *ret_event,
                             dgm_agui_found *ret_found)
{
    yyjson_val *type = dgm_json_get(v, DGM_STR("type"));
    dgm_code rc;
    E e = {0};
    r->format = DGM_FORMAT_AG_UI;
    if (!yyjson_is_obj(v))
        return dgm_read_wrong(r, v, at, "an object (event)");
    if (!type)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "type"),
                        "missing: the type of the event");
    if (!yyjson_is_str(type))
        return dgm_read_wrong(r, type, DGM_AT_LIT(at, "type"), "a string");
    *ret_found = DGM_AGUI_EVENT;
    const dgm_shape *shape = NULL;
    if ((e.kind = agui_events_kind_of(dgm_json_str(type))))
        shape = dgm_agui_event_shapes[e.kind];
    for (size_t i = 0; !shape && i < N_RETIRED; i++) {
        if (dgm_str_eq(dgm_str_from(retired[i].name), dgm_json_str(type))) {
            e.kind = retired[i].kind;
            shape = retired[i].shape;
            *ret_found = DGM_AGUI_RETIRED;
        }
    }
    if (!shape) {
        r->n_unknown++;
        *ret_found = DGM_AGUI_UNKNOWN;
        return DGM_OK;
    }
    if ((rc = dgm_shape_read(r, shape, v, at, &e)) || (rc = check_event(r, &e, at)))
        return rc;
    drop_nulls(&e);
    if (e.kind == DGM_CANON_CUSTOM)
        dgm_canon_artifact_from_custom(r->arena, r->mint, &e);
    *ret_event = e;
    return DGM_OK;
}

int dgm_agui_recognise(const yyjson_val *v)
{
    dgm_str type = dgm_json_str_member(v, "type");
    if (type.n && agui_events_kind_of(type))
        return 2;
    for (size_t i = 0; type.n && i < N_RETIRED; i++) {
        if (dgm_str_eq(dgm_str_from(retired[i].name), type))
            return 2;
    }
    return dgm_agui_is_input(v) ? 2 : 0;
}

bool dgm_agui_is_input(const yyjson_val *v)
{
    return dgm_json_str_member(v, "threadId").p && dgm_json_str_member(v, "runId").p &&
           dgm_json_get(v, DGM_STR("messages"));
}

/* ---- the decoder of a stream ----------------------------------------------------------------------------------- */

struct dgm_agui_decoder {
    dgm_chunks *expand;
    unsigned spans, messages; /* retired events that had no id: how many were opened */
};

dgm_agui_decoder *dgm_agui_decoder_new(void)
{
    dgm_agui_decoder *d = dgm_xcalloc(1, sizeof *d);
    d->expand = dgm_chunks_new();
    return d;
}

void dgm_agui_decoder_free(dgm_agui_decoder *d)
{
    if (!d)
        return;
    dgm_chunks_free(d->expand);
    free(d);
}

/* THINKING_* were one at a time, so that they needed no ids. */
static void name_retired(dgm_agui_decoder *d, dgm_arena *a, dgm_canon_event *e)
{
    bool span = e->kind == DGM_CANON_REASONING_START || e->kind == DGM_CANON_REASONING_END;
    e->extra = NULL; /* unknown then, it may have a meaning now */
    if (e->kind == DGM_CANON_REASONING_START)
        d->spans++;
    if (e->kind == DGM_CANON_REASONING_MESSAGE_START) {
        d->messages++;
        e->text.role = DGM_CANON_REASONING;
    }
    e->text.message_id = span ? dgm_arena_printf(a, "thinking-%u", d->spans)
                              : dgm_arena_printf(a, "thinking-message-%u", d->messages);
}

dgm_code dgm_agui_decoder_feed(dgm_agui_decoder *d, dgm_reader *r, yyjson_val *v,
                               dgm_canon_sink sink)
{
    dgm_canon_event e;
    dgm_agui_found found;
    dgm_code rc;
    if ((rc = dgm_agui_read_event(r, v, NULL, &e, &found)) || found == DGM_AGUI_UNKNOWN)
        return rc;
    if (found == DGM_AGUI_RETIRED)
        name_retired(d, r->arena, &e);
    return dgm_chunks_feed(d->expand, &e, sink, r->err);
}

dgm_code dgm_agui_decoder_end(dgm_agui_decoder *d, dgm_canon_sink sink)
{
    return dgm_chunks_end(d->expand, sink);
}
