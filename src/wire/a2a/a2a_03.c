/*
 * wire/a2a/a2a_03.c - the kind-tagged dialect of 0.3's JSON-RPC: the functions of its tables, and those that both
 * dialects of 0.3 share.
 */
#include "wire/a2a/a2a_card_int.h"
#include "json/build.h"

#define DIALECT_03
#include "model/a2a_table.h"

const char dgm_a2a_03_name[] = "a2a-0.3";

/* ---- data that is not an object -------------------------------------------------------------------------- */

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
    /* The mark belongs to the encoding, not to the sender: the other metadata is retained. */
    dgm_json_build b = dgm_json_build_start(r->arena);
    yyjson_obj_iter it = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)part->metadata);
    yyjson_val *key;
    dgm_json_build_object(&b, NULL);
    while ((key = yyjson_obj_iter_next(&it))) {
        if (!dgm_str_is(dgm_json_str(key), DGM_A2A_COMPAT_MARK))
            dgm_json_build_member(&b, dgm_json_str(key), yyjson_obj_iter_get_val(key));
    }
    dgm_json_build_close(&b);
    yyjson_val *metadata = dgm_json_build_end(&b);
    part->metadata = yyjson_obj_size(metadata) ? metadata : NULL;
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
static inline yyjson_val *a2a_03_kind_of(yyjson_val *v)
{
    if (!yyjson_is_obj(v) || unsafe_yyjson_get_len(v) == 0)
        return NULL;
    yyjson_val *first = unsafe_yyjson_get_first(v);
    if (dgm_str_is(dgm_json_str(first), "kind"))
        return first + 1;
    return dgm_json_get(v, DGM_STR("kind"));
}

/* ---- messages, tasks, events ---------------------------------------------------------------------- */

/* Document 002 shows a status message as {role, content}: one text part. */
static dgm_code a2a_03_read_content(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
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
static const dgm_custom content_text = {.read = a2a_03_read_content};

static bool a2a_03_is_blank(const yyjson_val *v)
{
    yyjson_val *it = (yyjson_val *)(uintptr_t)v;
    return !it || yyjson_is_null(it) || (yyjson_is_ctn(it) && unsafe_yyjson_get_len(it) == 0) ||
           (yyjson_is_str(it) && unsafe_yyjson_get_len(it) == 0);
}

bool dgm_a2a_message_is_empty(const dgm_reader *r, const yyjson_val *message)
{
    static const char *const members[] = {"parts", "content", "messageId", "message_id",
                                          "metadata"};
    if (r->strict || !yyjson_is_obj((yyjson_val *)(uintptr_t)message))
        return false;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (!a2a_03_is_blank(dgm_json_get(message, dgm_str_from(members[i]))))
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

/* Only an empty message is without parts. */
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

static const dgm_shape NAME(status_message);
#include "model/a2a_objects.def"

/* ---- parts ------------------------------------------------------------------------------------------ */

#include "wire/a2a/a2a_03_parts.def"

static void write_wrapped_data(dgm_writer *w, const void *part)
{
    dgm_buf_add_lit(w->out, "{\"kind\":\"data\",\"data\":");
    dgm_a2a_put_wrapped(w, part);
    dgm_buf_add_char(w->out, ',');
    dgm_a2a_put_marked_metadata(w, part);
    dgm_buf_add_char(w->out, '}');
}

/* kind is required by the schema and left out by some: then the member that is there tells. */
static const dgm_shape *pick_03_part(dgm_reader *r, yyjson_val *v, const dgm_at *at)
{
    static const struct {
        dgm_str kind;
        const dgm_shape *shape;
    } shapes[] = {{{"text", 4}, &NAME(text_part)},
                  {{"file", 4}, &NAME(file_part)},
                  {{"data", 4}, &NAME(data_part)}};
    yyjson_val *kind = a2a_03_kind_of(v);
    if (yyjson_is_str(kind) && dgm_str_is(dgm_json_str(kind), "text"))
        return &NAME(text_part); /* nearly all of them */
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

/* ---- events ------------------------------------------------------------------------------------------ */

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
    yyjson_val *kind = a2a_03_kind_of(v);
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

/* ---- requests ---------------------------------------------------------------------------------------- */

/* 0.3: a configuration without an id has its task's id; so that id is not written. */
static dgm_code read_push_id(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_push_config *c = object;
    return dgm_read_str(r, v, at, &c->id);
}

static void write_push_id(dgm_writer *w, const dgm_field *f, const void *object)
{
    const dgm_push_config *c = object;
    if (!c->id.p || (c->id.n && dgm_str_eq(c->id, c->task_id)))
        return;
    dgm_put_key(w, f);
    dgm_json_put_str(w->out, c->id);
}
static const dgm_custom push_id = {read_push_id, write_push_id};

static dgm_code fill_push_id(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    dgm_push_config *c = object;
    (void)r;
    (void)v;
    (void)at;
    if (!c->id.n && c->task_id.n)
        c->id = c->task_id;
    return DGM_OK;
}
static const dgm_shape NAME(push_config);

static dgm_code read_push_list(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_push_config_list *list = object;
    return dgm_read_list(r, &NAME(push_config), v, at, &list->configs);
}

static void write_push_list(dgm_writer *w, const void *object)
{
    const dgm_push_config_list *list = object;
    dgm_buf_add_char(w->out, '[');
    for (size_t i = 0; i < list->configs.n; i++) {
        if (i)
            dgm_buf_add_char(w->out, ',');
        dgm_shape_write(w, &NAME(push_config), &list->configs.at[i]);
    }
    dgm_buf_add_char(w->out, ']');
}

/* 0.3 says the opposite: blocking. Absent means wait in both. */
dgm_code dgm_a2a_read_blocking(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_send_configuration *c = object;
    dgm_opt_bool blocking;
    dgm_code rc = dgm_read_bool(r, v, at, &blocking);
    if (!rc)
        c->return_immediately = blocking == DGM_TRUE ? DGM_FALSE : DGM_TRUE;
    return rc;
}

static void write_blocking(dgm_writer *w, const dgm_field *f, const void *object)
{
    const dgm_send_configuration *c = object;
    if (c->return_immediately == DGM_UNSET)
        return;
    dgm_put_key(w, f);
    if (c->return_immediately == DGM_TRUE)
        dgm_buf_add_lit(w->out, "false");
    else
        dgm_buf_add_lit(w->out, "true");
}
static const dgm_custom blocking = {dgm_a2a_read_blocking, write_blocking};

/* Without a configuration id 0.3 means the one whose id is the task's. */
dgm_code dgm_a2a_fill_config_id(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    dgm_task_request *q = object;
    (void)r;
    (void)v;
    (void)at;
    if (!q->config_id.n)
        q->config_id = q->task_id;
    return DGM_OK;
}

#include "wire/a2a/a2a_card.def"
#include "wire/a2a/a2a_requests.def"
