/* model/form.c - the tables of the record form. */
#include "model/form.h"

const char dgm_form_name[] = "a2a-1.0";

/* ---- enums ---------------------------------------------------------------------------------------- */

static const char *const state_names[DGM_N_STATES] = {
    [DGM_STATE_UNKNOWN] = "TASK_STATE_UNSPECIFIED",
    [DGM_STATE_SUBMITTED] = "TASK_STATE_SUBMITTED",
    [DGM_STATE_WORKING] = "TASK_STATE_WORKING",
    [DGM_STATE_COMPLETED] = "TASK_STATE_COMPLETED",
    [DGM_STATE_FAILED] = "TASK_STATE_FAILED",
    [DGM_STATE_CANCELED] = "TASK_STATE_CANCELED",
    [DGM_STATE_INPUT_REQUIRED] = "TASK_STATE_INPUT_REQUIRED",
    [DGM_STATE_REJECTED] = "TASK_STATE_REJECTED",
    [DGM_STATE_AUTH_REQUIRED] = "TASK_STATE_AUTH_REQUIRED",
};
/* 0.3's proto had two Ls there, and peers mix the versions. */
static const dgm_enum_alias state_aliases[] = {{"TASK_STATE_CANCELLED", DGM_STATE_CANCELED},
                                               {NULL, 0}};
const dgm_enum_names dgm_form_states = {.what = "task state",
                                        .names = state_names,
                                        .n = DGM_N_STATES,
                                        .numbers = true,
                                        .aliases = state_aliases};

static const char *const role_names[] = {"ROLE_UNSPECIFIED", "ROLE_USER", "ROLE_AGENT"};
const dgm_enum_names dgm_form_roles = {
    .what = "role", .names = role_names, .n = 3, .numbers = true};

/* ---- messages ---------------------------------------------------------------------------------------- */

static const dgm_field part_fields[] = {
    DGM_F_ONE(dgm_part, content, "text", STR, DGM_PART_TEXT, NULL),
    DGM_F_ONE(dgm_part, content, "raw", BASE64, DGM_PART_RAW, NULL),
    DGM_F_ONE(dgm_part, content, "url", STR, DGM_PART_URL, NULL),
    DGM_F_ONE(dgm_part, data, "data", JSON, DGM_PART_DATA, NULL),
    DGM_F(dgm_part, metadata, "metadata", MAP_JSON, 0),
    DGM_F(dgm_part, filename, "filename", STR, 0),
    DGM_F(dgm_part, media_type, "mediaType", STR, 0),
};
const dgm_shape dgm_form_part = {
    .what = "part",
    .size = sizeof(dgm_part),
    DGM_FIELDS(part_fields),
    .extra_at = offsetof(dgm_part, extra),
    .tag_at = offsetof(dgm_part, kind),
    .one_required = true,
    .proto = true,
};

static const dgm_field message_fields[] = {
    DGM_F(dgm_message, message_id, "messageId", STR, DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED),
    DGM_F(dgm_message, context_id, "contextId", STR, 0),
    DGM_F(dgm_message, task_id, "taskId", STR, 0),
    DGM_F_OF(dgm_message, role, "role", ENUM, DGM_REQUIRED | DGM_NONEMPTY, &dgm_form_roles),
    DGM_F_OF(dgm_message, parts, "parts", LIST, DGM_REQUIRED | DGM_NONEMPTY, &dgm_form_part),
    DGM_F(dgm_message, metadata, "metadata", MAP_JSON, 0),
    DGM_F(dgm_message, extensions, "extensions", STRS, 0),
    DGM_F(dgm_message, reference_task_ids, "referenceTaskIds", STRS, 0),
};
const dgm_shape dgm_form_message = {
    .what = "message",
    .size = sizeof(dgm_message),
    DGM_FIELDS(message_fields),
    .extra_at = offsetof(dgm_message, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
};

/* ---- tasks --------------------------------------------------------------------------------------------- */

static const dgm_field status_fields[] = {
    /* ProtoJSON writers leave out the default, which is the unknown state. */
    DGM_F_OF(dgm_status, state, "state", ENUM, DGM_REQUIRED | DGM_STRICT, &dgm_form_states),
    DGM_F_OF(dgm_status, message, "message", OBJECT, 0, &dgm_form_message),
    DGM_F(dgm_status, timestamp, "timestamp", TIME, 0),
};
const dgm_shape dgm_form_status = {
    .what = "status",
    .size = sizeof(dgm_status),
    DGM_FIELDS(status_fields),
    .extra_at = offsetof(dgm_status, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
};

static const dgm_field artifact_fields[] = {
    DGM_F(dgm_artifact, artifact_id, "artifactId", STR, DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED),
    DGM_F(dgm_artifact, name, "name", STR, 0),
    DGM_F(dgm_artifact, description, "description", STR, 0),
    /* Agents of other makers close an artifact with an empty chunk: only a strict reader minds. */
    DGM_F_OF(dgm_artifact, parts, "parts", LIST, DGM_REQUIRED | DGM_NONEMPTY | DGM_STRICT,
             &dgm_form_part),
    DGM_F(dgm_artifact, metadata, "metadata", MAP_JSON, 0),
    DGM_F(dgm_artifact, extensions, "extensions", STRS, 0),
};
const dgm_shape dgm_form_artifact = {
    .what = "artifact",
    .size = sizeof(dgm_artifact),
    DGM_FIELDS(artifact_fields),
    .extra_at = offsetof(dgm_artifact, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
};

static const dgm_field task_fields[] = {
    DGM_F(dgm_task, id, "id", STR, DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED),
    DGM_F(dgm_task, context_id, "contextId", STR, 0),
    DGM_F_OF(dgm_task, status, "status", INLINE, DGM_REQUIRED, &dgm_form_status),
    DGM_F_OF(dgm_task, artifacts, "artifacts", LIST, 0, &dgm_form_artifact),
    DGM_F_OF(dgm_task, history, "history", LIST, 0, &dgm_form_message),
    DGM_F(dgm_task, metadata, "metadata", MAP_JSON, 0),
};
const dgm_shape dgm_form_task = {
    .what = "task",
    .size = sizeof(dgm_task),
    DGM_FIELDS(task_fields),
    .extra_at = offsetof(dgm_task, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
};

/* ---- events --------------------------------------------------------------------------------------------- */

static const dgm_field status_update_fields[] = {
    DGM_F(dgm_status_update, task_id, "taskId", STR, DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED),
    DGM_F(dgm_status_update, context_id, "contextId", STR,
          DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED),
    DGM_F_OF(dgm_status_update, status, "status", INLINE, DGM_REQUIRED, &dgm_form_status),
    DGM_F(dgm_status_update, metadata, "metadata", MAP_JSON, 0),
};
const dgm_shape dgm_form_status_update = {
    .what = "status-update",
    .size = sizeof(dgm_status_update),
    DGM_FIELDS(status_update_fields),
    .extra_at = offsetof(dgm_status_update, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
};

static const dgm_field artifact_update_fields[] = {
    DGM_F(dgm_artifact_update, task_id, "taskId", STR, DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED),
    DGM_F(dgm_artifact_update, context_id, "contextId", STR,
          DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED),
    DGM_F_OF(dgm_artifact_update, artifact, "artifact", INLINE, DGM_REQUIRED, &dgm_form_artifact),
    DGM_F(dgm_artifact_update, append, "append", BOOL, 0),
    DGM_F(dgm_artifact_update, last_chunk, "lastChunk", BOOL, 0),
    DGM_F(dgm_artifact_update, metadata, "metadata", MAP_JSON, 0),
};
const dgm_shape dgm_form_artifact_update = {
    .what = "artifact-update",
    .size = sizeof(dgm_artifact_update),
    DGM_FIELDS(artifact_update_fields),
    .extra_at = offsetof(dgm_artifact_update, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
};

static const dgm_field stream_fields[] = {
    DGM_F_ONE(dgm_event, task, "task", OBJECT, DGM_EVENT_TASK, &dgm_form_task),
    DGM_F_ONE(dgm_event, message, "message", OBJECT, DGM_EVENT_MESSAGE, &dgm_form_message),
    DGM_F_ONE(dgm_event, status, "statusUpdate", OBJECT, DGM_EVENT_STATUS, &dgm_form_status_update),
    DGM_F_ONE(dgm_event, artifact, "artifactUpdate", OBJECT, DGM_EVENT_ARTIFACT,
              &dgm_form_artifact_update),
};
const dgm_shape dgm_form_stream_response = {
    .what = "stream response",
    .size = sizeof(dgm_event),
    DGM_FIELDS(stream_fields),
    .extra_at = offsetof(dgm_event, extra),
    .tag_at = offsetof(dgm_event, kind),
    .one_required = true,
    .proto = true,
};
const dgm_shape dgm_form_send_response = {
    .what = "send response",
    .size = sizeof(dgm_event),
    .fields = stream_fields,
    .n_fields = 2, /* task and message */
    .extra_at = offsetof(dgm_event, extra),
    .tag_at = offsetof(dgm_event, kind),
    .one_required = true,
    .proto = true,
};

/* ---- internal events --------------------------------------------------------------------------------------- */

static const char *const internal_names[DGM_N_INTERNAL_KINDS] = {
    [DGM_INTERNAL_LLM_CALL] = "internal:llm-call",
    [DGM_INTERNAL_TOOL_START] = "internal:tool-start",
    [DGM_INTERNAL_TOOL_COMPLETE] = "internal:tool-complete",
    [DGM_INTERNAL_CHECKPOINT] = "internal:checkpoint",
    [DGM_INTERNAL_MESSAGE] = "internal:message",
    [DGM_INTERNAL_REASONING] = "internal:reasoning",
    [DGM_INTERNAL_STATE] = "internal:state",
    [DGM_INTERNAL_STEP] = "internal:step",
    [DGM_INTERNAL_USAGE] = "internal:usage",
    [DGM_INTERNAL_CUSTOM] = "internal:custom",
};
static const dgm_enum_names internal_kinds = {
    .what = "internal event", .names = internal_names, .n = DGM_N_INTERNAL_KINDS};

const char *dgm_internal_kind_name(dgm_internal_kind kind)
{
    return internal_names[kind];
}

static const dgm_field internal_fields[] = {
    DGM_F_OF(dgm_internal, kind, "kind", ENUM, DGM_REQUIRED, &internal_kinds),
    DGM_F(dgm_internal, task_id, "taskId", STR, DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED),
    DGM_F(dgm_internal, iteration, "iteration", OPT_INT, 0),
    DGM_F(dgm_internal, tool_name, "toolName", STR, 0),
    DGM_F(dgm_internal, tool_call_id, "toolCallId", STR, 0),
    DGM_F(dgm_internal, arguments, "arguments", JSON, 0),
    DGM_F(dgm_internal, success, "success", BOOL, 0),
    DGM_F(dgm_internal, result, "result", JSON, 0),
    DGM_F(dgm_internal, error, "error", STR, 0),
    DGM_F_OF(dgm_internal, message, "message", OBJECT, 0, &dgm_form_message),
    DGM_F(dgm_internal, text, "text", STR, 0),
    DGM_F(dgm_internal, name, "name", STR, 0),
    DGM_F(dgm_internal, value, "value", JSON, 0),
    DGM_F(dgm_internal, timestamp, "timestamp", TIME, DGM_REQUIRED),
};

/* Which members each kind needs and may have beyond kind, taskId, timestamp. */
enum member {
    ITERATION = 1,
    TOOL_NAME = 2,
    TOOL_CALL_ID = 4,
    ARGUMENTS = 8,
    SUCCESS = 16,
    RESULT = 32,
    ERROR = 64,
    MESSAGE = 128,
    TEXT = 256,
    NAME = 512,
    VALUE = 1024
};
static const struct {
    unsigned needs, may;
} members_of[DGM_N_INTERNAL_KINDS] = {
    [DGM_INTERNAL_LLM_CALL] = {ITERATION, 0},
    [DGM_INTERNAL_TOOL_START] = {TOOL_NAME | TOOL_CALL_ID, ARGUMENTS},
    [DGM_INTERNAL_TOOL_COMPLETE] = {TOOL_CALL_ID | SUCCESS, RESULT | ERROR},
    [DGM_INTERNAL_CHECKPOINT] = {ITERATION, 0},
    [DGM_INTERNAL_MESSAGE] = {MESSAGE, 0},
    [DGM_INTERNAL_REASONING] = {TEXT, 0},
    [DGM_INTERNAL_STATE] = {VALUE, NAME},
    [DGM_INTERNAL_STEP] = {NAME, SUCCESS},
    [DGM_INTERNAL_USAGE] = {VALUE, 0},
    [DGM_INTERNAL_CUSTOM] = {NAME, VALUE},
};

static unsigned members_set(const dgm_internal *e)
{
    return (e->iteration.set ? ITERATION : 0u) | (e->tool_name.p ? TOOL_NAME : 0u) |
           (e->tool_call_id.p ? TOOL_CALL_ID : 0u) | (e->arguments ? ARGUMENTS : 0u) |
           (e->success ? SUCCESS : 0u) | (e->result ? RESULT : 0u) | (e->error.p ? ERROR : 0u) |
           (e->message ? MESSAGE : 0u) | (e->text.p ? TEXT : 0u) | (e->name.p ? NAME : 0u) |
           (e->value ? VALUE : 0u);
}

static dgm_code check_internal(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    const dgm_internal *e = object;
    unsigned set = members_set(e), needs = members_of[e->kind].needs;
    unsigned wrong = set & ~(needs | members_of[e->kind].may), missing = needs & ~set;
    (void)v;
    if (!wrong && !missing)
        return DGM_OK;
    /* Rows 2 to 12 of internal_fields stand in the order of enum member. */
    dgm_str name = dgm_field_name(&internal_fields[2 + __builtin_ctz(missing ? missing : wrong)]);
    return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT(at, name),
                    missing ? "missing \"%.*s\": %s needs it" : "unknown member \"%.*s\" of %s",
                    DGM_P(name), internal_names[e->kind]);
}

const dgm_shape dgm_form_internal = {
    .what = "internal event",
    .size = sizeof(dgm_internal),
    DGM_FIELDS(internal_fields),
    .extra_at = offsetof(dgm_internal, extra),
    .tag_at = DGM_NOWHERE,
    .after_read = check_internal,
};

/* ---- any event ----------------------------------------------------------------------------------------------- */

dgm_code dgm_form_read_event(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_event *ret_event)
{
    *ret_event = (dgm_event){0};
    if (!dgm_json_get(v, DGM_STR("kind")))
        return dgm_shape_read(r, &dgm_form_stream_response, v, at, ret_event);
    dgm_internal *internal = dgm_new(r->arena, dgm_internal);
    dgm_code rc = dgm_shape_read(r, &dgm_form_internal, v, at, internal);
    if (rc)
        return rc;
    *ret_event = (dgm_event){.kind = DGM_EVENT_INTERNAL, .internal = internal};
    return DGM_OK;
}

void dgm_form_write_event(dgm_writer *w, const dgm_event *event)
{
    if (event->kind == DGM_EVENT_INTERNAL)
        dgm_shape_write(w, &dgm_form_internal, event->internal);
    else
        dgm_shape_write(w, &dgm_form_stream_response, event);
}
