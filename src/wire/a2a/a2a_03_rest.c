/*
 * wire/a2a/a2a_03_rest.c - nouns and events in the ProtoJSON of 0.3, as its REST binding speaks it.
 *
 * Clients mix the two dialects of 0.3 in practice, so parts with a kind, `parts` for `content` and
 * lower-case roles and states are read here too; only the proto's own spelling is written.
 */
#include "wire/a2a/a2a_int.h"

const char dgm_a2a_03_rest_name[] = "a2a-0.3-rest";

static const char *const state_names[DGM_N_STATES] = {
    [DGM_STATE_UNKNOWN] = "TASK_STATE_UNSPECIFIED",
    [DGM_STATE_SUBMITTED] = "TASK_STATE_SUBMITTED",
    [DGM_STATE_WORKING] = "TASK_STATE_WORKING",
    [DGM_STATE_COMPLETED] = "TASK_STATE_COMPLETED",
    [DGM_STATE_FAILED] = "TASK_STATE_FAILED",
    [DGM_STATE_CANCELED] = "TASK_STATE_CANCELLED", /* two Ls: 1.0 dropped one */
    [DGM_STATE_INPUT_REQUIRED] = "TASK_STATE_INPUT_REQUIRED",
    [DGM_STATE_REJECTED] = "TASK_STATE_REJECTED",
    [DGM_STATE_AUTH_REQUIRED] = "TASK_STATE_AUTH_REQUIRED",
};
static const dgm_enum_alias state_aliases[] = {
    {"TASK_STATE_CANCELED", DGM_STATE_CANCELED},
    {"unknown", DGM_STATE_UNKNOWN},
    {"submitted", DGM_STATE_SUBMITTED},
    {"created", DGM_STATE_SUBMITTED},
    {"working", DGM_STATE_WORKING},
    {"completed", DGM_STATE_COMPLETED},
    {"failed", DGM_STATE_FAILED},
    {"canceled", DGM_STATE_CANCELED},
    {"cancelled", DGM_STATE_CANCELED},
    {"input-required", DGM_STATE_INPUT_REQUIRED},
    {"rejected", DGM_STATE_REJECTED},
    {"auth-required", DGM_STATE_AUTH_REQUIRED},
    {NULL, 0},
};
const dgm_enum_names dgm_a2a_03_rest_states = {.what = "task state",
                                               .names = state_names,
                                               .n = DGM_N_STATES,
                                               .numbers = true,
                                               .aliases = state_aliases};

static const char *const role_names[] = {"ROLE_UNSPECIFIED", "ROLE_USER", "ROLE_AGENT"};
static const dgm_enum_alias role_aliases[] = {
    {"user", DGM_ROLE_USER}, {"agent", DGM_ROLE_AGENT}, {NULL, 0}};
const dgm_enum_names dgm_a2a_03_rest_roles = {
    .what = "role", .names = role_names, .n = 3, .numbers = true, .aliases = role_aliases};

/* `kind` tags of the other dialect: read, and of no consequence. */
static dgm_code read_kind(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_str ignored;
    (void)object;
    return dgm_read_str(r, v, at, &ignored);
}
static const dgm_custom kind_tag = {.read = read_kind};
#define KIND_TAG DGM_F_CUSTOM("kind", DGM_READ_ONLY, &kind_tag)

/* ---- parts ------------------------------------------------------------------------------------------------ */

static const dgm_field file_fields[] = {
    DGM_F_ONE(dgm_part, content, "fileWithUri", STR, DGM_PART_URL, NULL),
    DGM_F_ONE(dgm_part, content, "fileWithBytes", BASE64, DGM_PART_RAW, NULL),
    DGM_F(dgm_part, media_type, "mimeType", STR, 0),
    DGM_F(dgm_part, filename, "name", STR, 0),
};
static const dgm_shape file_shape = {
    .what = "file",
    .size = sizeof(dgm_part),
    DGM_FIELDS(file_fields),
    .extra_at = offsetof(dgm_part, nested_extra),
    .tag_at = offsetof(dgm_part, kind),
    .one_required = true,
    .proto = true,
};

static const dgm_field data_object_fields[] = {
    DGM_F_ONE(dgm_part, data, "data", MAP_JSON, DGM_PART_DATA, NULL),
};
static const dgm_shape data_object = {
    .what = "data part",
    .size = sizeof(dgm_part),
    DGM_FIELDS(data_object_fields),
    .extra_at = offsetof(dgm_part, nested_extra),
    .tag_at = offsetof(dgm_part, kind),
    .one_required = true,
    .proto = true,
};

static const dgm_field text_fields[] = {
    DGM_F_ONE(dgm_part, content, "text", STR, DGM_PART_TEXT, NULL),
    DGM_F(dgm_part, metadata, "metadata", MAP_JSON, 0),
};
static const dgm_field file_part_fields[] = {
    DGM_F_NEST("file", DGM_REQUIRED, &file_shape),
    DGM_F(dgm_part, metadata, "metadata", MAP_JSON, 0),
};
static const dgm_field data_fields[] = {
    DGM_F_NEST("data", DGM_REQUIRED, &data_object),
    DGM_F(dgm_part, metadata, "metadata", MAP_JSON, 0),
};

static void write_wrapped_data(dgm_writer *w, const void *part)
{
    dgm_buf_add_lit(w->out, "{\"data\":{\"data\":");
    dgm_a2a_put_wrapped(w, part);
    dgm_buf_add_lit(w->out, "},");
    dgm_a2a_put_marked_metadata(w, part);
    dgm_buf_add_char(w->out, '}');
}

#define PART_SHAPE(fields_)                                                                        \
    .what = "part", .size = sizeof(dgm_part), DGM_FIELDS(fields_),                                 \
    .extra_at = offsetof(dgm_part, extra), .tag_at = offsetof(dgm_part, kind), .proto = true
static const dgm_shape text_part = {PART_SHAPE(text_fields), .one_required = true};
static const dgm_shape file_part = {PART_SHAPE(file_part_fields)};
static const dgm_shape data_part = {PART_SHAPE(data_fields), .after_read = dgm_a2a_unwrap_data};
static const dgm_shape wrapped_data_part = {PART_SHAPE(data_fields),
                                            .write_instead = write_wrapped_data};

static const dgm_shape *pick_part(dgm_reader *r, yyjson_val *v, const dgm_at *at)
{
    static const struct {
        const char *member;
        const dgm_shape *shape;
    } shapes[] = {{"text", &text_part}, {"file", &file_part}, {"data", &data_part}};
    const dgm_shape *found = NULL;
    if (yyjson_obj_size(v) == 1 && dgm_str_is(dgm_json_str(unsafe_yyjson_get_first(v)), "text"))
        return &text_part; /* nearly all of them */
    if (yyjson_is_str(dgm_json_get(v, DGM_STR("kind"))))
        return dgm_a2a_03_part.pick_read(r, v, at);
    for (size_t i = 0; i < 3; i++) {
        yyjson_val *member = dgm_json_get(v, dgm_str_from(shapes[i].member));
        if (!member || yyjson_is_null(member))
            continue;
        if (found) {
            dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT(at, dgm_str_from(shapes[i].member)),
                     "a part holds exactly one of text, file, data; it has a second one");
            return NULL;
        }
        found = shapes[i].shape;
    }
    return found ? found : &text_part; /* whose reader says what is missing */
}

static dgm_picked pick_part_write(const void *object)
{
    const dgm_part *part = object;
    switch (part->kind) {
    case DGM_PART_RAW:
    case DGM_PART_URL: return (dgm_picked){&file_part, object};
    case DGM_PART_DATA:
        return (dgm_picked){yyjson_is_obj((yyjson_val *)(uintptr_t)part->data) ? &data_part
                                                                               : &wrapped_data_part,
                            object};
    case DGM_PART_NONE:
    case DGM_PART_TEXT: break;
    }
    return (dgm_picked){&text_part, object};
}

const dgm_shape dgm_a2a_03_rest_part = {
    .what = "part",
    .size = sizeof(dgm_part),
    .extra_at = DGM_NOWHERE,
    .tag_at = DGM_NOWHERE,
    .pick_read = pick_part,
    .pick_write = pick_part_write,
};

/* ---- messages ----------------------------------------------------------------------------------------------- */

static const dgm_field message_fields[] = {
    DGM_F(dgm_message, message_id, "messageId", STR, DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED),
    DGM_F(dgm_message, context_id, "contextId", STR, 0),
    DGM_F(dgm_message, task_id, "taskId", STR, 0),
    DGM_F_OF(dgm_message, role, "role", ENUM, DGM_REQUIRED | DGM_NONEMPTY, &dgm_a2a_03_rest_roles),
    DGM_F_OF(dgm_message, parts, "content", LIST, DGM_REQUIRED | DGM_NONEMPTY,
             &dgm_a2a_03_rest_part),
    DGM_F_OF(dgm_message, parts, "parts", LIST, DGM_READ_ONLY, &dgm_a2a_03_rest_part),
    DGM_F(dgm_message, metadata, "metadata", MAP_JSON, 0),
    DGM_F(dgm_message, extensions, "extensions", STRS, 0),
    KIND_TAG,
};
const dgm_shape dgm_a2a_03_rest_message = {
    .what = "message",
    .size = sizeof(dgm_message),
    DGM_FIELDS(message_fields),
    .extra_at = offsetof(dgm_message, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
};

static const dgm_shape *pick_status_message(dgm_reader *r, yyjson_val *v, const dgm_at *at)
{
    (void)at;
    return dgm_a2a_says_nothing(r, v) ? &dgm_a2a_no_message : &dgm_a2a_03_rest_message;
}

static dgm_picked pick_message_write(const void *object)
{
    return (dgm_picked){&dgm_a2a_03_rest_message, object};
}

static const dgm_shape status_message = {
    .what = "message",
    .size = sizeof(dgm_message),
    DGM_FIELDS(message_fields),
    .extra_at = DGM_NOWHERE,
    .tag_at = DGM_NOWHERE,
    .proto = true,
    .pick_read = pick_status_message,
    .pick_write = pick_message_write,
};

/* ---- tasks ---------------------------------------------------------------------------------------------------- */

static const dgm_field status_fields[] = {
    DGM_F_OF(dgm_status, state, "state", ENUM, DGM_REQUIRED | DGM_STRICT, &dgm_a2a_03_rest_states),
    DGM_F_OF(dgm_status, message, "message", OBJECT, 0, &status_message),
    DGM_F_OF(dgm_status, message, "update", OBJECT, DGM_READ_ONLY, &status_message),
    DGM_F(dgm_status, timestamp, "timestamp", TIME, 0),
};
const dgm_shape dgm_a2a_03_rest_status = {
    .what = "status",
    .size = sizeof(dgm_status),
    DGM_FIELDS(status_fields),
    .extra_at = offsetof(dgm_status, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
    .after_read = dgm_a2a_drop_empty_message,
};

static const dgm_field artifact_fields[] = {
    DGM_F(dgm_artifact, artifact_id, "artifactId", STR, DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED),
    DGM_F(dgm_artifact, name, "name", STR, 0),
    DGM_F(dgm_artifact, description, "description", STR, 0),
    DGM_F_OF(dgm_artifact, parts, "parts", LIST, DGM_REQUIRED | DGM_NONEMPTY | DGM_STRICT,
             &dgm_a2a_03_rest_part),
    DGM_F(dgm_artifact, metadata, "metadata", MAP_JSON, 0),
    DGM_F(dgm_artifact, extensions, "extensions", STRS, 0),
};
const dgm_shape dgm_a2a_03_rest_artifact = {
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
    DGM_F_OF(dgm_task, status, "status", INLINE, DGM_REQUIRED, &dgm_a2a_03_rest_status),
    DGM_F_OF(dgm_task, artifacts, "artifacts", LIST, 0, &dgm_a2a_03_rest_artifact),
    DGM_F_OF(dgm_task, history, "history", LIST, 0, &dgm_a2a_03_rest_message),
    DGM_F(dgm_task, metadata, "metadata", MAP_JSON, 0),
    KIND_TAG,
};
const dgm_shape dgm_a2a_03_rest_task = {
    .what = "task",
    .size = sizeof(dgm_task),
    DGM_FIELDS(task_fields),
    .extra_at = offsetof(dgm_task, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
};

/* ---- events ---------------------------------------------------------------------------------------------------- */

static const dgm_field status_update_fields[] = {
    DGM_F(dgm_status_update, task_id, "taskId", STR, DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED),
    DGM_F(dgm_status_update, context_id, "contextId", STR,
          DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED),
    DGM_F_OF(dgm_status_update, status, "status", INLINE, DGM_REQUIRED, &dgm_a2a_03_rest_status),
    /* Written when false too: readers tell the dialect by it, and proto parsers do not mind. */
    DGM_F_CUSTOM("final", 0, &dgm_a2a_final),
    DGM_F(dgm_status_update, metadata, "metadata", MAP_JSON, 0),
    KIND_TAG,
};
const dgm_shape dgm_a2a_03_rest_status_update = {
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
    DGM_F_OF(dgm_artifact_update, artifact, "artifact", INLINE, DGM_REQUIRED,
             &dgm_a2a_03_rest_artifact),
    DGM_F(dgm_artifact_update, append, "append", BOOL, 0),
    DGM_F(dgm_artifact_update, last_chunk, "lastChunk", BOOL, 0),
    DGM_F(dgm_artifact_update, metadata, "metadata", MAP_JSON, 0),
    KIND_TAG,
};
const dgm_shape dgm_a2a_03_rest_artifact_update = {
    .what = "artifact-update",
    .size = sizeof(dgm_artifact_update),
    DGM_FIELDS(artifact_update_fields),
    .extra_at = offsetof(dgm_artifact_update, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
};

static const dgm_field stream_fields[] = {
    DGM_F_ONE(dgm_event, task, "task", OBJECT, DGM_EVENT_TASK, &dgm_a2a_03_rest_task),
    DGM_F_ONE(dgm_event, message, "message", OBJECT, DGM_EVENT_MESSAGE, &dgm_a2a_03_rest_message),
    DGM_F_ONE_READ(dgm_event, message, "msg", OBJECT, DGM_EVENT_MESSAGE, &dgm_a2a_03_rest_message),
    DGM_F_ONE(dgm_event, status, "statusUpdate", OBJECT, DGM_EVENT_STATUS,
              &dgm_a2a_03_rest_status_update),
    DGM_F_ONE(dgm_event, artifact, "artifactUpdate", OBJECT, DGM_EVENT_ARTIFACT,
              &dgm_a2a_03_rest_artifact_update),
};
const dgm_shape dgm_a2a_03_rest_stream_response = {
    .what = "stream response",
    .size = sizeof(dgm_event),
    DGM_FIELDS(stream_fields),
    .extra_at = offsetof(dgm_event, extra),
    .tag_at = offsetof(dgm_event, kind),
    .one_required = true,
    .proto = true,
};
const dgm_shape dgm_a2a_03_rest_send_response = {
    .what = "send response",
    .size = sizeof(dgm_event),
    .fields = stream_fields,
    .n_fields = 3, /* task and message */
    .extra_at = offsetof(dgm_event, extra),
    .tag_at = offsetof(dgm_event, kind),
    .one_required = true,
    .proto = true,
};
