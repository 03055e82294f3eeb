/* wire/agui/agui_simple.c - see agui_simple.h. */
#include "wire/agui/agui_simple.h"
#include "wire/agui/agui_int.h"

const char dgm_agui_simple_name[] = "ag-ui-simple";

typedef dgm_simple_event E;

/* ---- nouns ----------------------------------------------------------------------------------------------- */

static dgm_code agui_simple_read_content(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                         void *object)
{
    if (yyjson_is_obj(v))
        return dgm_read_wrong(r, v, at, "a string or an array of parts");
    return dgm_agui_read_content(r, v, at, &((dgm_simple_message *)object)->content);
}
static void write_content(dgm_writer *w, const dgm_field *f, const void *object)
{
    const dgm_simple_message *m = object;
    dgm_put_key(w, f);
    if (m->content.kind == DGM_CANON_CONTENT_ABSENT)
        dgm_buf_add_lit(w->out, "\"\"");
    else
        dgm_agui_put_content(w, &m->content);
}
static bool simple_flatten_content(dgm_flat *flat, const void *object)
{
    const dgm_canon_content *c = &((const dgm_simple_message *)object)->content;
    if (c->kind != DGM_CANON_CONTENT_TEXT && c->kind != DGM_CANON_CONTENT_ABSENT)
        return false;
    dgm_flat_add_str(flat, c->text);
    return true;
}
static const dgm_custom content = {agui_simple_read_content, write_content, simple_flatten_content};

/* The names that Chat Completions gave to roles, as the document's examples have them. */
static const char *const role_names[] = {NULL, "developer", "system", "assistant", "user"};
static const dgm_enum_names roles = {.what = "role", .names = role_names, .n = 5};

static const dgm_field message_fields[] = {
    DGM_F_OF(dgm_simple_message, role, "role", ENUM, DGM_REQUIRED, &roles),
    DGM_F_CUSTOM("content", DGM_REQUIRED, &content),
};
static const dgm_shape message_shape =
    DGM_AGUI_SHAPE(dgm_simple_message, "message", message_fields);

static dgm_code read_arguments(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    if (!yyjson_is_obj(v) && !yyjson_is_str(v))
        return dgm_read_wrong(r, v, at, "an object or its text");
    ((dgm_simple_call *)object)->arguments = v;
    return DGM_OK;
}
static void write_arguments(dgm_writer *w, const dgm_field *f, const void *object)
{
    const dgm_simple_call *c = object;
    dgm_put_key(w, f);
    if (c->arguments)
        dgm_json_put(w->out, c->arguments);
    else
        dgm_buf_add_lit(w->out, "{}");
}
static bool simple_flatten_arguments(dgm_flat *flat, const void *object)
{
    const dgm_simple_call *c = object;
    if (c->arguments)
        dgm_flat_add_json(flat, c->arguments);
    else
        dgm_flat_add(flat, DGM_JSON_KIND_OBJECT, 0, NULL);
    return true;
}
static const dgm_custom arguments = {read_arguments, write_arguments, simple_flatten_arguments};

static const dgm_field call_fields[] = {
    DGM_F(dgm_simple_call, id, "id", STR, DGM_REQUIRED | DGM_NONEMPTY),
    DGM_F(dgm_simple_call, name, "name", STR, DGM_REQUIRED | DGM_NONEMPTY),
    DGM_F_CUSTOM("arguments", 0, &arguments),
    DGM_F(dgm_simple_call, type, "type", JSON, 0),
};
static const dgm_shape call_shape = DGM_AGUI_SHAPE(dgm_simple_call, "tool call", call_fields);

/* ---- events ---------------------------------------------------------------------------------------------- */

/* clang-format off */
#define EVENT(sym, name, ...)                                                                      \
    static const dgm_field sym##_fields[] = {DGM_F_CONST("type", name), __VA_ARGS__};              \
    static const dgm_shape sym##_shape = DGM_AGUI_SHAPE(E, name " event", sym##_fields);
/* clang-format on */
#define NEED(member, json) DGM_F(E, member, json, STR, DGM_REQUIRED)
#define MAY(member, json) DGM_F(E, member, json, STR, OPT)
#define MESSAGE DGM_F_OF(E, message, "message", INLINE, DGM_REQUIRED, &message_shape)
#define CALL DGM_F_OF(E, call, "toolCall", INLINE, DGM_REQUIRED, &call_shape)

EVENT(RUN_STARTED, "run-started", NEED(thread_id, "threadId"), NEED(run_id, "runId"))
EVENT(STEP_STARTED, "step-started", NEED(step_name, "stepName"))
EVENT(TEXT_CONTENT, "text-message-content", MAY(message_id, "messageId"), MESSAGE)
EVENT(TEXT_CHUNK, "text-message-chunk", MAY(message_id, "messageId"),
      DGM_F_CONST("role", "assistant"), NEED(delta, "delta"))
EVENT(TEXT_END, "text-message-end", MAY(message_id, "messageId"), MESSAGE)
EVENT(CALL_ARGS, "tool-call-args", MAY(parent_message_id, "parentMessageId"), CALL)
EVENT(CALL_START, "tool-call-start", MAY(parent_message_id, "parentMessageId"), CALL)
EVENT(CALL_RESULT, "tool-call-result", NEED(tool_call_id, "toolCallId"),
      DGM_F(E, result, "result", JSON, DGM_REQUIRED))
EVENT(STEP_FINISHED, "step-finished", NEED(step_name, "stepName"))
EVENT(RUN_FINISHED, "run-finished", NEED(thread_id, "threadId"), NEED(run_id, "runId"))
EVENT(RUN_ERROR, "run-error", NEED(error_message, "message"), MAY(code, "code"))

static const dgm_shape *const shapes[DGM_N_SIMPLE_KINDS] = {
#define X(sym, canonical, name) [DGM_SIMPLE_##sym] = &sym##_shape,
    DGM_SIMPLE_KINDS(X)
#undef X
};

dgm_code dgm_agui_simple_read(dgm_reader *r, yyjson_val *v, const dgm_at *at, E *ret_event)
{
    yyjson_val *type = dgm_json_get(v, DGM_STR("type"));
    dgm_code rc;
    E e = {0};
    r->format = DGM_FORMAT_AG_UI_SIMPLE;
    if (!yyjson_is_obj(v))
        return dgm_read_wrong(r, v, at, "an object (event)");
    if (!yyjson_is_str(type))
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "type"),
                        "missing: the type of the event");
    if (!(e.kind = dgm_simple_by_type(dgm_json_str(type))))
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "type"),
                        "\"%.*s\" is not an event of ag-ui-simple%s",
                        (int)(dgm_json_str(type).n < 60 ? dgm_json_str(type).n : 60),
                        dgm_json_str(type).p, dgm_agui_recognise(v) ? ": it is one of ag-ui" : "");
    if ((rc = dgm_shape_read(r, shapes[e.kind], v, at, &e)))
        return rc;
    *ret_event = e;
    return DGM_OK;
}

void dgm_agui_simple_write(dgm_writer *w, const E *event)
{
    if (event->kind)
        dgm_shape_write(w, shapes[event->kind], event);
}

bool dgm_agui_simple_flatten(dgm_flat *flat, const E *event)
{
    return event->kind && dgm_shape_flatten(flat, shapes[event->kind], event);
}

int dgm_agui_simple_recognise(const yyjson_val *v)
{
    return dgm_simple_by_type(dgm_json_str_member(v, "type")) ? 2 : 0;
}
