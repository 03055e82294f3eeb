/*
 * wire/a2a/a2a_detect.c - the kind of an object, detected from its members; and its dialect.
 *
 * Objects of A2A do not name their type (0.3's kind does, for four of them), so this is a list of
 * members that only one type has, the most specific first. Where two types cannot be distinguished the
 * caller has to say (`--object`).
 */
#include "wire/a2a/a2a_card.h"
#include "wire/a2a/a2a_int.h"

#include <stdio.h>

static bool is_there(const yyjson_val *v, const char *member)
{
    return dgm_json_get(v, dgm_str_from(member)) != NULL;
}

/* A member that is null is read as absent and not written again: it tells nothing. */
static bool has(const yyjson_val *v, const char *camel, const char *snake)
{
    yyjson_val *member = dgm_json_get(v, dgm_str_from(camel));
    if (snake && (!member || yyjson_is_null(member)))
        member = dgm_json_get(v, dgm_str_from(snake));
    return member && !yyjson_is_null(member);
}

static bool is_text(const yyjson_val *v, const char *member)
{
    return yyjson_is_str(dgm_json_get(v, dgm_str_from(member)));
}

static bool is_object(const yyjson_val *v, const char *member)
{
    return yyjson_is_obj(dgm_json_get(v, dgm_str_from(member)));
}

static dgm_str a2a_detect_text_of(const yyjson_val *v, const char *member)
{
    yyjson_val *m = dgm_json_get(v, dgm_str_from(member));
    return yyjson_is_str(m) ? dgm_json_str(m) : (dgm_str){0};
}

static bool is_internal(const yyjson_val *v)
{
    return dgm_str_starts(a2a_detect_text_of(v, "kind"), DGM_STR("internal:"));
}

/* {"message": {...}}: a request when the user speaks, an answer when the agent does. */
static bool is_from_agent(const yyjson_val *message)
{
    dgm_str role = a2a_detect_text_of(message, "role");
    return dgm_str_is(role, "ROLE_AGENT") || dgm_str_is(role, "agent");
}

static dgm_object_kind sent_or_answered(const yyjson_val *v, const char *member)
{
    yyjson_val *message = dgm_json_get(v, dgm_str_from(member));
    if (has(v, "configuration", NULL) || has(v, "tenant", NULL) || has(v, "metadata", NULL) ||
        !is_from_agent(message))
        return DGM_OBJECT_SEND_REQUEST;
    return DGM_OBJECT_STREAM_RESPONSE;
}

/* Nouns and results that are the same in all three dialects, except for wrappers. */
static dgm_object_kind detect_noun(const yyjson_val *v)
{
    if (dgm_a2a_looks_like_card(v))
        return DGM_OBJECT_CARD;
    if (has(v, "artifact", NULL))
        return DGM_OBJECT_ARTIFACT_UPDATE;
    if (has(v, "taskId", "task_id") && is_object(v, "status"))
        return DGM_OBJECT_STATUS_UPDATE;
    if (has(v, "id", NULL) && is_object(v, "status"))
        return DGM_OBJECT_TASK;
    if (has(v, "artifactId", "artifact_id"))
        return DGM_OBJECT_ARTIFACT;
    if (has(v, "role", NULL) || has(v, "messageId", "message_id") || has(v, "parts", NULL))
        return DGM_OBJECT_MESSAGE;
    if (has(v, "state", NULL))
        return DGM_OBJECT_STATUS;
    if (is_object(v, "status"))
        return DGM_OBJECT_TASK; /* without an id: the reader reports it, or generates one */
    if (has(v, "tasks", NULL))
        return DGM_OBJECT_LIST_TASKS_RESPONSE;
    if (has(v, "configs", NULL))
        return DGM_OBJECT_PUSH_CONFIG_LIST;
    return DGM_OBJECT_NONE;
}

static bool is_error_body(const yyjson_val *v)
{
    return is_object(v, "error") ||
           (is_text(v, "message") &&
            (has(v, "code", NULL) || yyjson_obj_size((yyjson_val *)(uintptr_t)v) == 1));
}

static dgm_object_kind as_event(dgm_object_kind kind, bool in_stream)
{
    bool event = kind == DGM_OBJECT_STATUS_UPDATE || kind == DGM_OBJECT_ARTIFACT_UPDATE ||
                 (in_stream && (kind == DGM_OBJECT_TASK || kind == DGM_OBJECT_MESSAGE));
    return event ? DGM_OBJECT_STREAM_RESPONSE : kind;
}

/* ---- 1.0 ------------------------------------------------------------------------------------------------- */

dgm_object_kind dgm_a2a_10_detect(const yyjson_val *v, bool in_stream)
{
    dgm_object_kind kind;
    (void)in_stream; /* 1.0 wraps its events: no guess is needed */
    if (yyjson_is_null((yyjson_val *)(uintptr_t)v) ||
        yyjson_obj_size((yyjson_val *)(uintptr_t)v) == 0)
        return DGM_OBJECT_EMPTY;
    if (is_internal(v))
        return DGM_OBJECT_INTERNAL_EVENT;
    if (is_error_body(v))
        return DGM_OBJECT_ERROR;
    if (has(v, "task", NULL) || has(v, "statusUpdate", "status_update") ||
        has(v, "artifactUpdate", "artifact_update"))
        return DGM_OBJECT_STREAM_RESPONSE;
    if (is_object(v, "message") && !has(v, "state", NULL))
        return sent_or_answered(v, "message");
    if ((kind = detect_noun(v)))
        return kind;
    if (has(v, "url", NULL) && (has(v, "taskId", "task_id") || has(v, "id", NULL) ||
                                has(v, "token", NULL) || has(v, "authentication", NULL)))
        return DGM_OBJECT_PUSH_CONFIG;
    if (has(v, "text", NULL) || has(v, "raw", NULL) || has(v, "url", NULL) || is_there(v, "data"))
        return DGM_OBJECT_PART;
    if (has(v, "taskId", "task_id"))
        return has(v, "id", NULL) ? DGM_OBJECT_PUSH_GET_REQUEST : DGM_OBJECT_PUSH_LIST_REQUEST;
    if (has(v, "id", NULL))
        return has(v, "metadata", NULL) ? DGM_OBJECT_CANCEL_REQUEST : DGM_OBJECT_GET_TASK_REQUEST;
    if (has(v, "contextId", "context_id") || has(v, "pageSize", "page_size") ||
        has(v, "pageToken", "page_token") || has(v, "status", NULL) ||
        has(v, "includeArtifacts", "include_artifacts") ||
        has(v, "statusTimestampAfter", "status_timestamp_after") ||
        has(v, "historyLength", "history_length"))
        return DGM_OBJECT_LIST_TASKS_REQUEST;
    return has(v, "tenant", NULL) ? DGM_OBJECT_EXTENDED_CARD_REQUEST : DGM_OBJECT_NONE;
}

/* ---- 0.3, JSON-RPC ------------------------------------------------------------------------------------------ */

dgm_object_kind dgm_a2a_03_detect(const yyjson_val *v, bool in_stream)
{
    dgm_str kind = a2a_detect_text_of(v, "kind");
    if (yyjson_is_arr((yyjson_val *)(uintptr_t)v))
        return DGM_OBJECT_PUSH_CONFIG_LIST;
    if (yyjson_is_null((yyjson_val *)(uintptr_t)v) ||
        yyjson_obj_size((yyjson_val *)(uintptr_t)v) == 0)
        return DGM_OBJECT_EMPTY;
    if (is_internal(v))
        return DGM_OBJECT_INTERNAL_EVENT;
    if (dgm_str_is(kind, "task"))
        return as_event(DGM_OBJECT_TASK, in_stream);
    if (dgm_str_is(kind, "message"))
        return as_event(DGM_OBJECT_MESSAGE, in_stream);
    if (dgm_str_is(kind, "status-update") || dgm_str_is(kind, "artifact-update"))
        return DGM_OBJECT_STREAM_RESPONSE;
    if (dgm_str_is(kind, "text") || dgm_str_is(kind, "file") || dgm_str_is(kind, "data"))
        return DGM_OBJECT_PART;
    if (is_error_body(v))
        return DGM_OBJECT_ERROR;
    if (is_object(v, "message") && !has(v, "state", NULL))
        return DGM_OBJECT_SEND_REQUEST;
    if (has(v, "pushNotificationConfig", NULL))
        return DGM_OBJECT_PUSH_CONFIG;
    if (has(v, "pushNotificationConfigId", NULL))
        return DGM_OBJECT_PUSH_GET_REQUEST;
    dgm_object_kind noun = detect_noun(v);
    if (noun)
        return as_event(noun, in_stream);
    if (has(v, "text", NULL) || has(v, "file", NULL) || is_there(v, "data"))
        return DGM_OBJECT_PART;
    return has(v, "id", NULL) ? DGM_OBJECT_GET_TASK_REQUEST : DGM_OBJECT_NONE;
}

/* ---- 0.3, REST ------------------------------------------------------------------------------------------------- */

dgm_object_kind dgm_a2a_03_rest_detect(const yyjson_val *v, bool in_stream)
{
    (void)in_stream;
    if (yyjson_is_null((yyjson_val *)(uintptr_t)v) ||
        yyjson_obj_size((yyjson_val *)(uintptr_t)v) == 0)
        return DGM_OBJECT_EMPTY;
    if (is_internal(v))
        return DGM_OBJECT_INTERNAL_EVENT;
    if (is_error_body(v))
        return DGM_OBJECT_ERROR;
    if (has(v, "task", NULL) || has(v, "msg", NULL) || has(v, "statusUpdate", "status_update") ||
        has(v, "artifactUpdate", "artifact_update"))
        return DGM_OBJECT_STREAM_RESPONSE;
    if (is_object(v, "request"))
        return DGM_OBJECT_SEND_REQUEST;
    if (is_object(v, "message") && !has(v, "state", NULL))
        return sent_or_answered(v, "message");
    if (has(v, "pushNotificationConfig", "push_notification_config") || has(v, "config", NULL))
        return DGM_OBJECT_PUSH_CONFIG;
    dgm_object_kind noun = detect_noun(v);
    if (noun)
        return noun;
    if (has(v, "content", NULL))
        return DGM_OBJECT_MESSAGE;
    if (has(v, "text", NULL) || has(v, "file", NULL) || is_there(v, "data"))
        return DGM_OBJECT_PART;
    if (has(v, "parent", NULL))
        return DGM_OBJECT_PUSH_LIST_REQUEST;
    if (is_text(v, "name")) {
        /* tasks/T or tasks/T/pushNotificationConfigs/C */
        dgm_str name = a2a_detect_text_of(v, "name");
        size_t skip = dgm_str_starts(name, DGM_STR("tasks/")) ? 6 : 0;
        return memchr(name.p + skip, '/', name.n - skip) ? DGM_OBJECT_PUSH_GET_REQUEST
                                                         : DGM_OBJECT_GET_TASK_REQUEST;
    }
    return DGM_OBJECT_NONE;
}

/* ---- whose is it? -------------------------------------------------------------------------------------------------- */

#define MANY 16 /* elements of a list are enough */

enum mark { NO_MARK = 0, MARK_10 = 1, MARK_03 = 2, MARK_03_REST = 4 };

static unsigned marks_of_text(dgm_str s)
{
    if (dgm_str_is(s, "TASK_STATE_CANCELLED"))
        return MARK_03_REST;
    if (dgm_str_is(s, "TASK_STATE_CANCELED"))
        return MARK_10;
    if (dgm_str_starts(s, DGM_STR("TASK_STATE_")) || dgm_str_starts(s, DGM_STR("ROLE_")))
        return MARK_10 | MARK_03_REST;
    return NO_MARK;
}

static unsigned marks_of_part(const yyjson_val *p)
{
    if (has(p, "kind", NULL))
        return MARK_03;
    yyjson_val *data = dgm_json_get(p, DGM_STR("data"));
    if (has(p, "raw", NULL) || has(p, "url", NULL) || has(p, "mediaType", "media_type"))
        return MARK_10;
    if (is_object(p, "file"))
        return MARK_03_REST;
    if (yyjson_is_obj(data) && yyjson_obj_size(data) == 1 && is_object(data, "data"))
        return MARK_03_REST;
    return NO_MARK;
}

/* Parts that name their type are of another format: ours are detected from their content, or from their kind. */
static bool is_list_of_others(yyjson_val *list)
{
    return is_text(yyjson_arr_get_first(list), "type");
}

/* One dialect's marks narrow another's: what both agree on is left, if anything is. */
static unsigned narrow(unsigned have, unsigned more)
{
    if (!have || !more)
        return have | more;
    return have & more ? have & more : have;
}

static unsigned marks_of_parts(unsigned marks, yyjson_val *parts)
{
    yyjson_val *part;
    size_t i, n;
    yyjson_arr_foreach (parts, i, n, part) {
        marks = narrow(marks, marks_of_part(part));
        if (i == MANY)
            break;
    }
    return marks;
}

/* Reads the objects that an object can contain, as deep as nouns nest: task > history > message > part. */
static unsigned marks_of(const yyjson_val *v, int depth)
{
    static const char *const inner[] = {
        "task",           "message",         "msg",      "request",
        "status",         "statusUpdate",    "artifact", "status_update",
        "artifactUpdate", "artifact_update", "params",   "result"};
    static const char *const lists[] = {"parts", "content", "history", "artifacts", "tasks"};
    unsigned marks = marks_of_text(a2a_detect_text_of(v, "role"));
    dgm_str state = a2a_detect_text_of(v, "state"), method = a2a_detect_text_of(v, "method");
    yyjson_val *parts = dgm_json_get(v, DGM_STR("parts"));
    yyjson_val *content = dgm_json_get(v, DGM_STR("content"));
    if (!yyjson_is_obj((yyjson_val *)(uintptr_t)v) || depth == 0)
        return NO_MARK;
    marks = narrow(marks, marks_of_text(state));
    if (state.n && !marks_of_text(state))
        marks = narrow(marks, MARK_03);
    /* Chat messages have a role "user" too, but no parts. */
    if ((dgm_str_is(a2a_detect_text_of(v, "role"), "user") && has(v, "parts", NULL) &&
         !is_list_of_others(parts)) ||
        dgm_str_is(a2a_detect_text_of(v, "role"), "agent"))
        marks = narrow(marks, MARK_03);
    if (is_text(v, "kind"))
        marks = narrow(marks, MARK_03);
    if (method.n)
        marks = narrow(marks, memchr(method.p, '/', method.n) ? MARK_03 : MARK_10);
    if ((yyjson_is_arr(content) && !is_list_of_others(content)) || has(v, "msg", NULL))
        marks = narrow(marks, MARK_03_REST);
    if (has(v, "final", NULL) && !is_text(v, "kind"))
        marks = narrow(marks, MARK_03_REST);
    if (has(v, "task", NULL) || has(v, "statusUpdate", "status_update") ||
        has(v, "artifactUpdate", "artifact_update") || has(v, "message_id", NULL))
        marks = narrow(marks, MARK_10 | MARK_03_REST);
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++) {
        yyjson_val *m = dgm_json_get(v, dgm_str_from(inner[i]));
        if (m)
            marks = narrow(marks, marks_of(m, depth - 1));
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        yyjson_val *list = dgm_json_get(v, dgm_str_from(lists[i])), *e;
        size_t j, n;
        if (!yyjson_is_arr(list) || (i < 2 && is_list_of_others(list)))
            continue;
        if (i < 2) {
            marks = marks_of_parts(marks, list);
            continue;
        }
        yyjson_arr_foreach (list, j, n, e) {
            marks = narrow(marks, marks_of(e, depth - 1));
            if (j == MANY)
                break;
        }
    }
    return marks;
}

static unsigned marks_at_top(const yyjson_val *v)
{
    unsigned marks = marks_of(v, 6);
    if (dgm_a2a_looks_like_card(v))
        return !dgm_a2a_card_is_03(v)       ? MARK_10
               : dgm_a2a_card_is_03_rest(v) ? MARK_03_REST
                                            : MARK_03;
    if (has(v, "pushNotificationConfig", NULL))
        return has(v, "name", NULL) || has(v, "parent", NULL) ? MARK_03_REST : MARK_03;
    if (has(v, "pushNotificationConfigId", NULL))
        return MARK_03;
    if (!marks && is_object(v, "error") && !has(v, "jsonrpc", NULL))
        return MARK_10;
    if (!marks && is_text(v, "message") && has(v, "code", NULL))
        return MARK_03_REST;
    if (!marks && dgm_str_starts(a2a_detect_text_of(v, "name"), DGM_STR("tasks/")))
        return MARK_03_REST;
    return marks ? marks : marks_of_part(v);
}

/* The members of a message that its dialect shows in. */
struct message_members {
    yyjson_val *role, *parts, *kind, *message_id;
};

/* Where the value of this member belongs; NULL: messages have the member, but it shows nothing. */
static bool message_member(dgm_str name, struct message_members *m, yyjson_val ***ret)
{
    *ret = NULL;
    switch (name.n) {
    case 4:
        *ret = dgm_str_is(name, "role") ? &m->role : dgm_str_is(name, "kind") ? &m->kind : NULL;
        return *ret;
    case 5: *ret = dgm_str_is(name, "parts") ? &m->parts : NULL; return *ret;
    case 6: return dgm_str_is(name, "taskId");
    case 7: return dgm_str_is(name, "task_id");
    case 8: return dgm_str_is(name, "metadata");
    case 9: return dgm_str_is(name, "messageId") || dgm_str_is(name, "contextId");
    case 10:
        *ret = dgm_str_is(name, "message_id") ? &m->message_id : NULL;
        return *ret || dgm_str_is(name, "context_id") || dgm_str_is(name, "extensions");
    case 16: return dgm_str_is(name, "referenceTaskIds");
    default: return false;
    }
}

/* Is every member one of a message, and each one that counts there once? */
static bool find_message_members(const yyjson_val *v, struct message_members *ret)
{
    yyjson_val *object = (yyjson_val *)(uintptr_t)v, *key, *value, **to;
    size_t i, n;
    *ret = (struct message_members){0};
    if (!yyjson_is_obj(object))
        return false;
    yyjson_obj_foreach (object, i, n, key, value) {
        if (!message_member(dgm_json_str(key), ret, &to) || (to && *to))
            return false;
        if (to)
            *to = value;
    }
    return yyjson_is_str(ret->role) && yyjson_is_arr(ret->parts);
}

/*
 * The marks of a message that has nothing but members of messages, without a search for each member of all other objects.
 * NO_MARK: it is another object, or marks_at_top() must decide. Every dialect detects an object with marks as a message.
 */
static unsigned marks_of_plain_message(const yyjson_val *v)
{
    struct message_members m;
    if (!find_message_members(v, &m) || is_list_of_others(m.parts) ||
        (m.kind && !(yyjson_is_str(m.kind) && dgm_str_is(dgm_json_str(m.kind), "message"))))
        return NO_MARK;
    dgm_str role = dgm_json_str(m.role);
    unsigned marks = marks_of_text(role);
    if (dgm_str_is(role, "user") || dgm_str_is(role, "agent"))
        marks = narrow(marks, MARK_03);
    if (m.kind)
        marks = narrow(marks, MARK_03);
    if (m.message_id && !yyjson_is_null(m.message_id))
        marks = narrow(marks, MARK_10 | MARK_03_REST);
    return marks_of_parts(marks, m.parts);
}

static int a2a_score(const yyjson_val *v, unsigned marks, unsigned mine,
                     dgm_object_kind (*detect)(const yyjson_val *, bool))
{
    if (marks)
        return marks == mine ? 3 : marks & mine ? 2 : 0;
    if (has(v, "role", NULL) && has(v, "content", NULL) && !has(v, "parts", NULL) &&
        !has(v, "messageId", "message_id"))
        return 0; /* all other formats write it so, and A2A does not */
    return detect(v, false) != DGM_OBJECT_NONE || has(v, "jsonrpc", NULL);
}

/* The form of an object depends on whether it is in a stream: see lib/convert_value.c. */
int dgm_a2a_10_recognise(const yyjson_val *v, dgm_form *ret_form)
{
    (void)ret_form;
    return a2a_score(v, marks_at_top(v), MARK_10, dgm_a2a_10_detect);
}

int dgm_a2a_03_recognise(const yyjson_val *v, dgm_form *ret_form)
{
    (void)ret_form;
    return a2a_score(v, marks_at_top(v), MARK_03, dgm_a2a_03_detect);
}

int dgm_a2a_03_rest_recognise(const yyjson_val *v, dgm_form *ret_form)
{
    (void)ret_form;
    return a2a_score(v, marks_at_top(v), MARK_03_REST, dgm_a2a_03_rest_detect);
}

const dgm_codec *dgm_a2a_find_dialect(const yyjson_val *v, dgm_object_kind *ret_kind)
{
    static const struct {
        unsigned mark;
        dgm_object_kind (*detect)(const yyjson_val *, bool);
        const dgm_codec *codec;
    } dialects[] = {{MARK_10, dgm_a2a_10_detect, &dgm_codec_a2a_10},
                    {MARK_03, dgm_a2a_03_detect, &dgm_codec_a2a_03},
                    {MARK_03_REST, dgm_a2a_03_rest_detect, &dgm_codec_a2a_03_rest}};
    unsigned marks = marks_of_plain_message(v);
    const dgm_codec *found = NULL;
    int best = 0;
    *ret_kind = marks ? DGM_OBJECT_MESSAGE : DGM_OBJECT_NONE;
    if (!marks)
        marks = marks_at_top(v);
    for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++) {
        int score = a2a_score(v, marks, dialects[i].mark, dialects[i].detect);
        if (score > best) {
            best = score;
            found = dialects[i].codec;
        }
    }
    return found;
}

/* ---- arrays ------------------------------------------------------------------------------------------------ */

bool dgm_a2a_is_push_list(const yyjson_val *array)
{
    yyjson_val *v = (yyjson_val *)(uintptr_t)array, *e;
    size_t i, n;
    yyjson_arr_foreach (v, i, n, e) {
        if (!is_object(e, "pushNotificationConfig") || dgm_json_get(e, DGM_STR("name")))
            return false;
    }
    return yyjson_arr_size(v) > 0;
}

bool dgm_a2a_is_stream(yyjson_val *array)
{
    yyjson_val *e;
    size_t i, n;
    yyjson_arr_foreach (array, i, n, e) {
        dgm_str kind = a2a_detect_text_of(e, "kind");
        if (dgm_str_is(kind, "status-update") || dgm_str_is(kind, "artifact-update") ||
            dgm_json_get(e, DGM_STR("statusUpdate")) || dgm_json_get(e, DGM_STR("artifactUpdate")))
            return true;
    }
    return false;
}

bool dgm_a2a_has_chunks(yyjson_val *array)
{
    yyjson_val *e;
    size_t i, n;
    yyjson_arr_foreach (array, i, n, e) {
        yyjson_val *inner = dgm_json_get(e, DGM_STR("message"));
        dgm_str type = a2a_detect_text_of(dgm_json_get(inner ? inner : e, DGM_STR("metadata")),
                                          "canonical_type");
        if (dgm_str_is(type, "TextMessageChunkEvent") || dgm_str_is(type, "ToolCallArgsEvent"))
            return true;
    }
    return false;
}

/* ---- objects ----------------------------------------------------------------------------------------------- */

const dgm_message *dgm_a2a_message_in(const dgm_object *o)
{
    const dgm_event *event = o->it;
    if (o->kind == DGM_OBJECT_MESSAGE)
        return o->it;
    return (o->kind == DGM_OBJECT_STREAM_RESPONSE || o->kind == DGM_OBJECT_SEND_RESPONSE) &&
                   event->kind == DGM_EVENT_MESSAGE
               ? event->message
               : NULL;
}

const dgm_task *dgm_a2a_task_in(const dgm_object *o)
{
    const dgm_event *event = o->it;
    if (o->kind == DGM_OBJECT_TASK)
        return o->it;
    return (o->kind == DGM_OBJECT_STREAM_RESPONSE || o->kind == DGM_OBJECT_SEND_RESPONSE) &&
                   event->kind == DGM_EVENT_TASK
               ? event->task
               : NULL;
}

/* ---- pointers of errors ------------------------------------------------------------------------------------ */

/* Replaces `name` in the pointer, if it is there and there is room. */
static void replace_in_pointer(dgm_err *err, const char *name, const char *other)
{
    char *at = strstr(err->at, name);
    size_t n = strlen(name), m = strlen(other), rest = at ? strlen(at + n) + 1 : 0;
    if (!at || (size_t)(at - err->at) + m + rest > sizeof err->at)
        return;
    memmove(at + m, at + n, rest);
    memcpy(at, other, m);
}

void dgm_a2a_name_pointer(const dgm_codec *codec, const dgm_frame *frame, dgm_err *err)
{
    dgm_object_kind kind = frame->object.kind;
    bool event = kind == DGM_OBJECT_STREAM_RESPONSE || kind == DGM_OBJECT_SEND_RESPONSE;
    bool wrapped =
        kind == DGM_OBJECT_SEND_REQUEST || (event && codec != &dgm_codec_a2a_03) || !err->at[0];
    char old[sizeof err->at];
    memcpy(old, err->at, sizeof old);
    const char *rest = wrapped ? old : strchr(old + 1, '/');
    snprintf(err->at, sizeof err->at, "%s%s",
             frame->envelope == DGM_ENVELOPE_REQUEST    ? "/params"
             : frame->envelope == DGM_ENVELOPE_RESPONSE ? "/result"
                                                        : "",
             rest ? rest : "");
    if (codec != &dgm_codec_a2a_03_rest)
        return;
    if (!strstr(err->at, "/artifact"))
        replace_in_pointer(err, "/parts/", "/content/");
    replace_in_pointer(err, "/data/tool_", "/data/data/tool_");
}
