/* wire/a2a/a2a_03.c - nouns and events in the kind-tagged dialect of 0.3's JSON-RPC. */
#include "wire/a2a/a2a_int.h"

const char dgm_a2a_03_name[] = "a2a-0.3";

static const char *const state_names[DGM_N_STATES] = {
    [DGM_STATE_UNKNOWN] = "unknown",
    [DGM_STATE_SUBMITTED] = "submitted",
    [DGM_STATE_WORKING] = "working",
    [DGM_STATE_COMPLETED] = "completed",
    [DGM_STATE_FAILED] = "failed",
    [DGM_STATE_CANCELED] = "canceled",
    [DGM_STATE_INPUT_REQUIRED] = "input-required",
    [DGM_STATE_REJECTED] = "rejected",
    [DGM_STATE_AUTH_REQUIRED] = "auth-required",
};
/* `created` is document 000's word for submitted; two Ls come from peers that mix the dialects. */
static const dgm_enum_alias state_aliases[] = {
    {"created", DGM_STATE_SUBMITTED}, {"cancelled", DGM_STATE_CANCELED}, {NULL, 0}};
const dgm_enum_names dgm_a2a_03_states = {
    .what = "task state", .names = state_names, .n = DGM_N_STATES, .aliases = state_aliases};

static const char *const role_names[] = {NULL, "user", "agent"};
static const dgm_enum_alias role_aliases[] = {{"assistant", DGM_ROLE_AGENT}, {NULL, 0}};
const dgm_enum_names dgm_a2a_03_roles = {
    .what = "role", .names = role_names, .n = 3, .aliases = role_aliases};

/* ---- data that is no object -------------------------------------------------------------------------- */

dgm_code dgm_a2a_unwrap_data(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    dgm_part *part = object;
    (void)v;
    (void)at;
    yyjson_val *mark = dgm_json_get(part->metadata, DGM_STR(DGM_A2A_COMPAT_MARK));
    yyjson_val *value = dgm_json_get(part->data, DGM_STR("value"));
    if (part->kind != DGM_PART_DATA || !yyjson_is_true(mark) || !value || yyjson_is_obj(value) ||
        yyjson_obj_size((yyjson_val *)(uintptr_t)part->data) != 1)
        return DGM_OK;
    part->data = value;
    /* The mark is the wire's, not the sender's: what is left of the metadata goes on. */
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    yyjson_obj_iter it = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)part->metadata);
    yyjson_val *key;
    dgm_buf_add_char(&b, '{');
    while ((key = yyjson_obj_iter_next(&it))) {
        if (dgm_str_is(dgm_json_str(key), DGM_A2A_COMPAT_MARK))
            continue;
        if (b.n > 1)
            dgm_buf_add_char(&b, ',');
        dgm_json_put_str(&b, dgm_json_str(key));
        dgm_buf_add_char(&b, ':');
        dgm_json_put(&b, yyjson_obj_iter_get_val(key));
    }
    dgm_buf_add_char(&b, '}');
    part->metadata = b.n > 2 ? dgm_json_parse_trusted(r->arena, dgm_buf_str(&b)) : NULL;
    dgm_buf_done(&b);
    return DGM_OK;
}

void dgm_a2a_put_wrapped(dgm_writer *w, const dgm_part *part)
{
    dgm_buf_add_lit(w->out, "{\"value\":");
    dgm_json_put(w->out, part->data);
    dgm_buf_add_char(w->out, '}');
}

void dgm_a2a_put_marked_metadata(dgm_writer *w, const dgm_part *part)
{
    dgm_buf_add_lit(w->out, "\"metadata\":{");
    if (part->metadata) {
        yyjson_obj_iter it = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)part->metadata);
        yyjson_val *key;
        while ((key = yyjson_obj_iter_next(&it))) {
            if (dgm_str_is(dgm_json_str(key), DGM_A2A_COMPAT_MARK))
                continue;
            dgm_json_put_str(w->out, dgm_json_str(key));
            dgm_buf_add_char(w->out, ':');
            dgm_json_put(w->out, yyjson_obj_iter_get_val(key));
            dgm_buf_add_char(w->out, ',');
        }
    }
    dgm_buf_add_lit(w->out, "\"" DGM_A2A_COMPAT_MARK "\":true}");
}

/* ---- kinds ------------------------------------------------------------------------------------------- */

/* Mostly the first member: look there before looking everywhere. */
static inline yyjson_val *kind_of(yyjson_val *v)
{
    if (!yyjson_is_obj(v) || unsafe_yyjson_get_len(v) == 0)
        return NULL;
    yyjson_val *first = unsafe_yyjson_get_first(v);
    if (dgm_str_is(dgm_json_str(first), "kind"))
        return first + 1;
    return dgm_json_get(v, DGM_STR("kind"));
}

/* ---- parts --------------------------------------------------------------------------------------------- */

static const dgm_field text_fields[] = {
    DGM_F_CONST("kind", "text"),
    DGM_F_ONE(dgm_part, content, "text", STR, DGM_PART_TEXT, NULL),
    DGM_F(dgm_part, metadata, "metadata", MAP_JSON, 0),
};
static const dgm_field file_fields[] = {
    DGM_F(dgm_part, filename, "name", STR, 0),
    DGM_F(dgm_part, media_type, "mimeType", STR, 0),
    DGM_F_ONE(dgm_part, content, "bytes", BASE64, DGM_PART_RAW, NULL),
    DGM_F_ONE(dgm_part, content, "uri", STR, DGM_PART_URL, NULL),
    /* Spellings in the prose of 0.3 and in peers that mix the dialects. */
    DGM_F_ONE_READ(dgm_part, content, "fileWithBytes", BASE64, DGM_PART_RAW, NULL),
    DGM_F_ONE_READ(dgm_part, content, "data", BASE64, DGM_PART_RAW, NULL),
    DGM_F_ONE_READ(dgm_part, content, "fileWithUri", STR, DGM_PART_URL, NULL),
    DGM_F_ONE_READ(dgm_part, content, "url", STR, DGM_PART_URL, NULL),
};
static const dgm_shape file_shape = {
    .what = "file",
    .size = sizeof(dgm_part),
    DGM_FIELDS(file_fields),
    .extra_at = offsetof(dgm_part, nested_extra),
    .tag_at = offsetof(dgm_part, kind),
    .one_required = true,
};
static const dgm_field file_part_fields[] = {
    DGM_F_CONST("kind", "file"),
    DGM_F_NEST("file", DGM_REQUIRED, &file_shape),
    DGM_F(dgm_part, metadata, "metadata", MAP_JSON, 0),
};
static const dgm_field data_fields[] = {
    DGM_F_CONST("kind", "data"),
    DGM_F_ONE(dgm_part, data, "data", MAP_JSON, DGM_PART_DATA, NULL),
    DGM_F(dgm_part, metadata, "metadata", MAP_JSON, 0),
};

static void write_wrapped_data(dgm_writer *w, const void *part)
{
    dgm_buf_add_lit(w->out, "{\"kind\":\"data\",\"data\":");
    dgm_a2a_put_wrapped(w, part);
    dgm_buf_add_char(w->out, ',');
    dgm_a2a_put_marked_metadata(w, part);
    dgm_buf_add_char(w->out, '}');
}

#define PART_SHAPE(fields_)                                                                        \
    .what = "part", .size = sizeof(dgm_part), DGM_FIELDS(fields_),                                 \
    .extra_at = offsetof(dgm_part, extra), .tag_at = offsetof(dgm_part, kind)
static const dgm_shape text_part = {PART_SHAPE(text_fields), .one_required = true};
static const dgm_shape file_part = {PART_SHAPE(file_part_fields)};
static const dgm_shape data_part = {PART_SHAPE(data_fields), .one_required = true,
                                    .after_read = dgm_a2a_unwrap_data};
static const dgm_shape wrapped_data_part = {PART_SHAPE(data_fields),
                                            .write_instead = write_wrapped_data};

/* kind is required by the schema and left out by some: then the member that is there tells. */
static const dgm_shape *pick_part(dgm_reader *r, yyjson_val *v, const dgm_at *at)
{
    static const struct {
        dgm_str kind;
        const dgm_shape *shape;
    } shapes[] = {{{"text", 4}, &text_part}, {{"file", 4}, &file_part}, {{"data", 4}, &data_part}};
    yyjson_val *kind = kind_of(v);
    if (yyjson_is_str(kind) && dgm_str_is(dgm_json_str(kind), "text"))
        return &text_part; /* nearly all of them */
    if (!yyjson_is_obj(v)) {
        dgm_read_wrong(r, v, at, "an object (part)");
        return NULL;
    }
    if (kind && !yyjson_is_str(kind) && !yyjson_is_null(kind)) {
        dgm_read_wrong(r, kind, DGM_AT_LIT(at, "kind"), "a string");
        return NULL;
    }
    for (size_t i = 0; i < 3; i++) {
        dgm_str name = shapes[i].kind;
        if (yyjson_is_str(kind) ? dgm_str_eq(dgm_json_str(kind), name)
                                : dgm_json_get(v, name) != NULL)
            return shapes[i].shape;
    }
    if (yyjson_is_str(kind))
        dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "kind"),
                 "\"%.*s\" is not a kind of part; allowed values: \"text\", \"file\" or \"data\"",
                 (int)(dgm_json_str(kind).n < 60 ? dgm_json_str(kind).n : 60),
                 dgm_json_str(kind).p);
    else
        dgm_fail(r->err, DGM_BAD_PARAMS, at,
                 "a part holds exactly one of text, file, data; it has none");
    return NULL;
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

const dgm_shape dgm_a2a_03_part = {
    .what = "part",
    .size = sizeof(dgm_part),
    .extra_at = DGM_NOWHERE,
    .tag_at = DGM_NOWHERE,
    .pick_read = pick_part,
    .pick_write = pick_part_write,
};

/* ---- messages ------------------------------------------------------------------------------------------- */

/* Document 002 shows a status message as {role, content}: one text part. */
static dgm_code read_content(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_message *m = object;
    dgm_part *part = dgm_new(r->arena, dgm_part);
    dgm_code rc = dgm_read_str(r, v, at, &part->content);
    if (rc)
        return rc;
    part->kind = DGM_PART_TEXT;
    m->parts = (dgm_parts){part, 1};
    return DGM_OK;
}
static const dgm_custom content = {.read = read_content};

static const dgm_field message_fields[] = {
    DGM_F_CONST("kind", "message"),
    DGM_F(dgm_message, message_id, "messageId", STR, DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED),
    DGM_F(dgm_message, context_id, "contextId", STR, 0),
    DGM_F(dgm_message, task_id, "taskId", STR, 0),
    DGM_F_OF(dgm_message, role, "role", ENUM, DGM_REQUIRED | DGM_NONEMPTY, &dgm_a2a_03_roles),
    DGM_F_OF(dgm_message, parts, "parts", LIST, DGM_REQUIRED | DGM_NONEMPTY, &dgm_a2a_03_part),
    DGM_F(dgm_message, metadata, "metadata", MAP_JSON, 0),
    DGM_F(dgm_message, extensions, "extensions", STRS, 0),
    DGM_F(dgm_message, reference_task_ids, "referenceTaskIds", STRS, 0),
    DGM_F_CUSTOM_FOR(dgm_message, parts, "content", &content),
};
const dgm_shape dgm_a2a_03_message = {
    .what = "message",
    .size = sizeof(dgm_message),
    DGM_FIELDS(message_fields),
    .extra_at = offsetof(dgm_message, extra),
    .tag_at = DGM_NOWHERE,
};

/* ---- status messages that say nothing ------------------------------------------------------------- */

static bool is_blank(const yyjson_val *v)
{
    yyjson_val *it = (yyjson_val *)(uintptr_t)v;
    return !it || yyjson_is_null(it) || (yyjson_is_ctn(it) && unsafe_yyjson_get_len(it) == 0) ||
           (yyjson_is_str(it) && unsafe_yyjson_get_len(it) == 0);
}

bool dgm_a2a_says_nothing(const dgm_reader *r, const yyjson_val *message)
{
    static const char *const members[] = {"parts", "content", "messageId", "message_id",
                                          "metadata"};
    if (r->strict || !yyjson_is_obj((yyjson_val *)(uintptr_t)message))
        return false;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (!is_blank(dgm_json_get(message, dgm_str_from(members[i]))))
            return false;
    }
    return true;
}

static dgm_code read_nothing(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    (void)r;
    (void)v;
    (void)at;
    (void)object;
    return DGM_OK;
}
const dgm_shape dgm_a2a_no_message = {
    .what = "message",
    .size = sizeof(dgm_message),
    .extra_at = DGM_NOWHERE,
    .tag_at = DGM_NOWHERE,
    .read_instead = read_nothing,
};

/* Only a message that says nothing is without parts. */
dgm_code dgm_a2a_drop_empty_message(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    dgm_status *status = object;
    (void)r;
    (void)v;
    (void)at;
    if (status->message && !status->message->parts.n)
        status->message = NULL;
    return DGM_OK;
}

static const dgm_shape *pick_status_message(dgm_reader *r, yyjson_val *v, const dgm_at *at)
{
    (void)at;
    return dgm_a2a_says_nothing(r, v) ? &dgm_a2a_no_message : &dgm_a2a_03_message;
}

static dgm_picked pick_message_write(const void *object)
{
    return (dgm_picked){&dgm_a2a_03_message, object};
}

static const dgm_shape status_message = {
    .what = "message",
    .size = sizeof(dgm_message),
    DGM_FIELDS(message_fields),
    .extra_at = DGM_NOWHERE,
    .tag_at = DGM_NOWHERE,
    .pick_read = pick_status_message,
    .pick_write = pick_message_write,
};

/* ---- tasks ------------------------------------------------------------------------------------------------ */

static const dgm_field status_fields[] = {
    DGM_F_OF(dgm_status, state, "state", ENUM, DGM_REQUIRED, &dgm_a2a_03_states),
    DGM_F_OF(dgm_status, message, "message", OBJECT, 0, &status_message),
    DGM_F(dgm_status, timestamp, "timestamp", TIME, 0),
};
const dgm_shape dgm_a2a_03_status = {
    .what = "status",
    .size = sizeof(dgm_status),
    DGM_FIELDS(status_fields),
    .extra_at = offsetof(dgm_status, extra),
    .tag_at = DGM_NOWHERE,
    .after_read = dgm_a2a_drop_empty_message,
};

static const dgm_field artifact_fields[] = {
    DGM_F(dgm_artifact, artifact_id, "artifactId", STR, DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED),
    DGM_F(dgm_artifact, name, "name", STR, 0),
    DGM_F(dgm_artifact, description, "description", STR, 0),
    DGM_F_OF(dgm_artifact, parts, "parts", LIST, DGM_REQUIRED | DGM_NONEMPTY | DGM_STRICT,
             &dgm_a2a_03_part),
    DGM_F(dgm_artifact, metadata, "metadata", MAP_JSON, 0),
    DGM_F(dgm_artifact, extensions, "extensions", STRS, 0),
};
const dgm_shape dgm_a2a_03_artifact = {
    .what = "artifact",
    .size = sizeof(dgm_artifact),
    DGM_FIELDS(artifact_fields),
    .extra_at = offsetof(dgm_artifact, extra),
    .tag_at = DGM_NOWHERE,
};

static const dgm_field task_fields[] = {
    DGM_F_CONST("kind", "task"),
    DGM_F(dgm_task, id, "id", STR, DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED),
    /* Required by 0.3's schema but not by 1.0: a task that came from there without one has "". */
    DGM_F(dgm_task, context_id, "contextId", STR, DGM_REQUIRED | DGM_MINTED),
    DGM_F_OF(dgm_task, status, "status", INLINE, DGM_REQUIRED, &dgm_a2a_03_status),
    DGM_F_OF(dgm_task, artifacts, "artifacts", LIST, 0, &dgm_a2a_03_artifact),
    DGM_F_OF(dgm_task, history, "history", LIST, 0, &dgm_a2a_03_message),
    DGM_F(dgm_task, metadata, "metadata", MAP_JSON, 0),
};
const dgm_shape dgm_a2a_03_task = {
    .what = "task",
    .size = sizeof(dgm_task),
    DGM_FIELDS(task_fields),
    .extra_at = offsetof(dgm_task, extra),
    .tag_at = DGM_NOWHERE,
};

/* ---- events ------------------------------------------------------------------------------------------------ */

static dgm_code read_final(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_opt_bool ignored;
    (void)object;
    return dgm_read_bool(r, v, at, &ignored);
}

static void write_final(dgm_writer *w, const dgm_field *f, const void *object)
{
    const dgm_status_update *u = object;
    dgm_put_key(w, f);
    if (dgm_state_is_final_03(u->status.state))
        dgm_buf_add_lit(w->out, "true");
    else
        dgm_buf_add_lit(w->out, "false");
}
const dgm_custom dgm_a2a_final = {read_final, write_final};

static const dgm_field status_update_fields[] = {
    DGM_F_CONST("kind", "status-update"),
    DGM_F(dgm_status_update, task_id, "taskId", STR, DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED),
    DGM_F(dgm_status_update, context_id, "contextId", STR,
          DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED),
    DGM_F_OF(dgm_status_update, status, "status", INLINE, DGM_REQUIRED, &dgm_a2a_03_status),
    DGM_F_CUSTOM("final", 0, &dgm_a2a_final),
    DGM_F(dgm_status_update, metadata, "metadata", MAP_JSON, 0),
};
const dgm_shape dgm_a2a_03_status_update = {
    .what = "status-update",
    .size = sizeof(dgm_status_update),
    DGM_FIELDS(status_update_fields),
    .extra_at = offsetof(dgm_status_update, extra),
    .tag_at = DGM_NOWHERE,
};

static const dgm_field artifact_update_fields[] = {
    DGM_F_CONST("kind", "artifact-update"),
    DGM_F(dgm_artifact_update, task_id, "taskId", STR, DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED),
    DGM_F(dgm_artifact_update, context_id, "contextId", STR,
          DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED),
    DGM_F_OF(dgm_artifact_update, artifact, "artifact", INLINE, DGM_REQUIRED, &dgm_a2a_03_artifact),
    DGM_F(dgm_artifact_update, append, "append", BOOL, 0),
    DGM_F(dgm_artifact_update, last_chunk, "lastChunk", BOOL, 0),
    DGM_F(dgm_artifact_update, metadata, "metadata", MAP_JSON, 0),
};
const dgm_shape dgm_a2a_03_artifact_update = {
    .what = "artifact-update",
    .size = sizeof(dgm_artifact_update),
    DGM_FIELDS(artifact_update_fields),
    .extra_at = offsetof(dgm_artifact_update, extra),
    .tag_at = DGM_NOWHERE,
};

/* 0.3 has no wrapper: the kind says which of the four it is. */
static const struct {
    dgm_str kind;
    dgm_event_kind event;
    const dgm_shape *shape;
} events[] = {
    {{"task", 4}, DGM_EVENT_TASK, &dgm_a2a_03_task},
    {{"message", 7}, DGM_EVENT_MESSAGE, &dgm_a2a_03_message},
    {{"status-update", 13}, DGM_EVENT_STATUS, &dgm_a2a_03_status_update},
    {{"artifact-update", 15}, DGM_EVENT_ARTIFACT, &dgm_a2a_03_artifact_update},
};

/* Without a kind, the members that only one of them has. */
static size_t event_by_members(const yyjson_val *v)
{
    if (dgm_json_get(v, DGM_STR("artifact")))
        return 3;
    if (dgm_json_get(v, DGM_STR("taskId")) && dgm_json_get(v, DGM_STR("status")))
        return 2;
    return dgm_json_get(v, DGM_STR("role")) ? 1 : 0;
}

static inline size_t event_by_kind(dgm_str kind)
{
    if (dgm_str_is(kind, "artifact-update"))
        return 3; /* nearly all of them */
    size_t i = 0;
    while (i < 4 && !dgm_str_eq(kind, events[i].kind))
        i++;
    return i;
}

static dgm_code read_event(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_event *event = object;
    yyjson_val *kind = kind_of(v);
    size_t i;
    if (!yyjson_is_obj(v))
        return dgm_read_wrong(r, v, at, "an object (event)");
    if (yyjson_is_str(kind)) {
        if ((i = event_by_kind(dgm_json_str(kind))) == 4)
            return dgm_fail(
                r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "kind"),
                "\"%.*s\" is not a kind of event; allowed values: \"task\", \"message\", "
                "\"status-update\" or \"artifact-update\"",
                (int)(dgm_json_str(kind).n < 60 ? dgm_json_str(kind).n : 60), dgm_json_str(kind).p);
    } else {
        i = event_by_members(v);
    }
    void *it = dgm_arena_alloc(r->arena, events[i].shape->size);
    dgm_code rc = dgm_shape_read(r, events[i].shape, v, at, it);
    if (rc)
        return rc;
    *event = (dgm_event){.kind = events[i].event, .any = it};
    return DGM_OK;
}

static void write_nothing(dgm_writer *w, const void *object)
{
    (void)w;
    (void)object;
}
static const dgm_shape no_event = {.what = "event", .write_instead = write_nothing};

/* The object itself is the event: no wrapper says which it is. */
static dgm_picked pick_event_write(const void *object)
{
    const dgm_event *event = object;
    size_t i = (size_t)event->kind - DGM_EVENT_TASK; /* events[] is in the order of the enum */
    return i < 4 ? (dgm_picked){events[i].shape, event->any} : (dgm_picked){&no_event, event};
}

const dgm_shape dgm_a2a_03_stream_response = {
    .what = "event",
    .size = sizeof(dgm_event),
    .extra_at = DGM_NOWHERE,
    .tag_at = DGM_NOWHERE,
    .read_instead = read_event,
    .pick_write = pick_event_write,
};
