/* model/form.c - the shapes of records: A2A 1.0 and internal events. */
#include "model/form.h"
#include "model/stamp.h"
#include "json/copy_clean.h"

#define DIALECT_10
#include "model/a2a_table.h"

const char dgm_form_name[] = "a2a-1.0";

static void write_message(dgm_writer *w, const void *object);
#include "model/a2a_objects.def"

/* ---- messages of one text part ------------------------------------------------------------------------------- */

static const dgm_shape message_by_table = {
    .what = "message",
    .size = sizeof(dgm_message),
    DGM_FIELDS(dgm_form_message_fields),
    .extra_at = offsetof(dgm_message, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
};

/* The text behind its key and what is before the key; NULL: it needs escapes. */
static inline __attribute__((always_inline)) char *put_plain(char *to, const char *key,
                                                             size_t key_n, dgm_str text)
{
    memcpy(to, key, key_n);
    return dgm_copy_clean(to + key_n, text.p, text.n) == text.n ? to + key_n + text.n : NULL;
}
#define PUT_PLAIN(to, key, text) put_plain((to), (key), sizeof(key) - 1, (text))

/* What the table writes, for messages of one text part several times faster: most messages are such, and each is written
 * several times. */
static void write_message(dgm_writer *w, const void *object)
{
    const dgm_message *m = object;
    const dgm_part *part = m->parts.at;
    char *to = NULL;
    if (m->parts.n == 1 && part->kind == DGM_PART_TEXT && !m->extensions.n &&
        !m->reference_task_ids.n && !m->extra && !part->filename.n && !part->media_type.n &&
        !part->metadata && !part->extra && (unsigned)m->role <= DGM_ROLE_AGENT) {
        dgm_str role = dgm_str_from(role_names[m->role]);
        size_t ids = m->message_id.n + m->context_id.n + m->task_id.n;
        if (!dgm_buf_room(w->out, ids + role.n + part->content.n + 128))
            return;
        to = PUT_PLAIN(w->out->p + w->out->n, "{\"messageId\":\"", m->message_id);
        if (to && m->context_id.n)
            to = PUT_PLAIN(to, "\",\"contextId\":\"", m->context_id);
        if (to && m->task_id.n)
            to = PUT_PLAIN(to, "\",\"taskId\":\"", m->task_id);
        if (to)
            to = PUT_PLAIN(to, "\",\"role\":\"", role);
        if (to)
            to = PUT_PLAIN(to, "\",\"parts\":[{\"text\":\"", part->content);
    }
    if (!to) {
        dgm_shape_write(w, &message_by_table, m);
        return;
    }
    w->out->n = (size_t)(to - w->out->p);
    dgm_buf_add_lit(w->out, "\"}]");
    if (m->metadata) {
        dgm_str stamp = dgm_stamp_text(m->metadata);
        dgm_buf_add_lit(w->out, ",\"metadata\":");
        if (stamp.n)
            dgm_buf_add_str(w->out, stamp);
        else
            dgm_json_put(w->out, m->metadata);
    }
    dgm_buf_add_char(w->out, '}');
}

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
    /* Rows 2 to 12 of internal_fields are in the order of enum member. */
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

bool dgm_form_scan_chunk(dgm_reader *r, dgm_str text, dgm_event *ret_event)
{
    static const dgm_str head = {"{\"artifactUpdate\":", 18};
    if (!dgm_str_starts(text, head) || text.p[text.n - 1] != '}')
        return false;
    dgm_str inner = {text.p + head.n, text.n - head.n - 1};
    dgm_artifact_update *update = dgm_new(r->arena, dgm_artifact_update);
    if (!dgm_shape_scan(r, &dgm_form_artifact_update, inner, update))
        return false;
    *ret_event = (dgm_event){.kind = DGM_EVENT_ARTIFACT, .artifact = update};
    return true;
}

void dgm_form_write_event(dgm_writer *w, const dgm_event *event)
{
    if (event->kind == DGM_EVENT_INTERNAL)
        dgm_shape_write(w, &dgm_form_internal, event->internal);
    else
        dgm_shape_write(w, &dgm_form_stream_response, event);
}
