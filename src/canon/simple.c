/* canon/simple.c - document 000's events, made of A2A's messages and made into them. */
#include "canon/simple.h"
#include "canon/message_content.h"
#include "json/json.h"

/* ---- names ------------------------------------------------------------------------------------------------ */

static const struct {
    const char *canonical, *type;
} names[DGM_N_SIMPLE_KINDS] = {[DGM_SIMPLE_NONE] = {"", ""},
#define X(sym, canonical, name) [DGM_SIMPLE_##sym] = {canonical, name},
                               DGM_SIMPLE_KINDS(X)
#undef X
};

const char *dgm_simple_canonical_type(dgm_simple_kind kind)
{
    return names[kind].canonical;
}

const char *dgm_simple_type(dgm_simple_kind kind)
{
    return names[kind].type;
}

dgm_simple_kind dgm_simple_by_type(dgm_str type)
{
    for (int k = 1; k < DGM_N_SIMPLE_KINDS; k++) {
        if (dgm_str_eq(dgm_str_from(names[k].type), type))
            return (dgm_simple_kind)k;
    }
    return DGM_SIMPLE_NONE;
}

/* ---- from a message --------------------------------------------------------------------------------------- */

static dgm_simple_event *simple_add(dgm_arena *a, dgm_simple_events *list, dgm_simple_kind kind)
{
    list->at = dgm_list_grow(a, list->at, list->n, sizeof *list->at);
    list->at[list->n].kind = kind;
    return &list->at[list->n++];
}

static void simple_add_content(dgm_arena *a, dgm_simple_events *list, const dgm_message *m,
                               const dgm_content *said)
{
    const dgm_canon_content *c = &said->content;
    bool agent = said->role == DGM_CANON_ASSISTANT;
    if (c->kind == DGM_CANON_CONTENT_ABSENT ||
        (c->kind == DGM_CANON_CONTENT_TEXT && !c->text.n && said->calls.n))
        return;
    bool chunk = agent && said->delta;
    dgm_simple_event *e = simple_add(a, list,
                                     chunk   ? DGM_SIMPLE_TEXT_CHUNK
                                     : agent ? DGM_SIMPLE_TEXT_END
                                             : DGM_SIMPLE_TEXT_CONTENT);
    if (agent)
        e->message_id = m->message_id;
    if (chunk) {
        e->delta = c->text;
        return;
    }
    e->message.role = said->role;
    e->message.content = *c;
}

/* That a call is one of a function is what everybody takes it for. */
static bool is_custom(const dgm_json *type)
{
    return yyjson_is_str((yyjson_val *)(uintptr_t)type) && dgm_str_is(dgm_json_str(type), "custom");
}

static void add_calls(dgm_arena *a, dgm_simple_events *list, const dgm_message *m,
                      const dgm_content *said)
{
    bool alone = !list->n && said->calls.n == 1;
    for (size_t i = 0; i < said->calls.n; i++) {
        dgm_simple_event *e =
            simple_add(a, list, said->delta ? DGM_SIMPLE_CALL_ARGS : DGM_SIMPLE_CALL_START);
        e->call.id = said->calls.at[i].call_id;
        e->call.name = said->calls.at[i].name;
        e->call.arguments = said->calls.at[i].arguments;
        e->nth = i;
        if (is_custom(said->calls.at[i].type))
            e->call.type = said->calls.at[i].type;
        if (!alone)
            e->parent_message_id = m->message_id;
    }
}

static void add_results(dgm_arena *a, dgm_simple_events *list, const dgm_content *said)
{
    for (size_t i = 0; i < said->results.n; i++) {
        dgm_simple_event *e = simple_add(a, list, DGM_SIMPLE_CALL_RESULT);
        e->tool_call_id = said->results.at[i].call_id;
        e->result = said->results.at[i].output ? said->results.at[i].output
                                               : dgm_json_make_string(a, DGM_STR(""));
    }
}

dgm_code dgm_simple_from_message(dgm_arena *a, const dgm_message *m, bool trusted, const dgm_at *at,
                                 dgm_simple_events *ret_events, dgm_err *err)
{
    dgm_simple_events list = {0};
    dgm_content said;
    dgm_code rc;
    if ((rc = dgm_content_read(a, m, trusted, at, &said, err)))
        return rc;
    if (!said.calls.n)
        add_results(a, &list, &said);
    simple_add_content(a, &list, m, &said);
    add_calls(a, &list, m, &said);
    if (said.calls.n) /* results of its own calls follow the calls */
        add_results(a, &list, &said);
    *ret_events = list;
    return DGM_OK;
}

/* ---- into the model ----------------------------------------------------------------------------------------- */

static dgm_part *only_part(dgm_arena *a, dgm_message *m)
{
    m->parts = (dgm_parts){dgm_new(a, dgm_part), 1};
    return m->parts.at;
}

static void simple_put_text(dgm_arena *a, dgm_message *m, dgm_str text)
{
    *only_part(a, m) = (dgm_part){.kind = DGM_PART_TEXT, .content = text.p ? text : DGM_STR("")};
}

static void put_parts(dgm_arena *a, dgm_message *m, const dgm_canon_parts *from)
{
    m->parts = (dgm_parts){dgm_new_n(a, dgm_part, from->n), from->n};
    for (size_t i = 0; i < from->n; i++) {
        const dgm_canon_part *p = &from->at[i];
        dgm_part *to = &m->parts.at[i];
        if (p->kind == DGM_CANON_PART_TEXT) {
            *to = (dgm_part){.kind = DGM_PART_TEXT, .content = p->text};
            continue;
        }
        *to = (dgm_part){.kind =
                             p->source.kind == DGM_CANON_SOURCE_DATA ? DGM_PART_RAW : DGM_PART_URL,
                         .content = p->source.value,
                         .media_type = p->source.mime_type,
                         .filename = dgm_json_str_member(p->metadata, "filename")};
    }
}

/* {"tool_calls":[{"call_id":...,"name":...,"arguments":...}]} */
static const dgm_json *call_data(dgm_arena *a, const dgm_simple_call *call)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"tool_calls\":[{\"call_id\":");
    dgm_json_put_str(&b, call->id);
    dgm_buf_add_lit(&b, ",\"name\":");
    dgm_json_put_str(&b, call->name);
    if (call->arguments) {
        dgm_buf_add_lit(&b, ",\"arguments\":");
        dgm_json_put(&b, call->arguments);
    }
    if (call->type) {
        dgm_buf_add_lit(&b, ",\"type\":");
        dgm_json_put(&b, call->type);
    }
    dgm_buf_add_lit(&b, "}]}");
    const dgm_json *v = dgm_json_parse_trusted(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return v;
}

static const dgm_json *result_data(dgm_arena *a, const dgm_simple_event *e)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"tool_results\":[{\"call_id\":");
    dgm_json_put_str(&b, e->tool_call_id);
    dgm_buf_add_lit(&b, ",\"output\":");
    dgm_json_put(&b, e->result);
    dgm_buf_add_lit(&b, "}]}");
    const dgm_json *v = dgm_json_parse_trusted(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return v;
}

static dgm_message *simple_message_of(dgm_arena *a, const dgm_simple_event *e, dgm_mint *mint)
{
    dgm_message *m = dgm_new(a, dgm_message);
    bool user = e->kind == DGM_SIMPLE_TEXT_CONTENT || e->kind == DGM_SIMPLE_CALL_RESULT;
    bool says = e->kind == DGM_SIMPLE_TEXT_CONTENT || e->kind == DGM_SIMPLE_TEXT_END;
    m->message_id = e->message_id.n          ? e->message_id
                    : e->parent_message_id.n ? e->parent_message_id
                                             : dgm_mint_id(mint, a);
    m->role =
        (says && e->message.role == DGM_CANON_ASSISTANT) || !user ? DGM_ROLE_AGENT : DGM_ROLE_USER;
    dgm_str type = dgm_str_from(dgm_simple_canonical_type(e->kind));
    dgm_member mark = {DGM_STR("canonical_type"), dgm_json_make_string(a, type)};
    m->metadata = dgm_json_object(a, &mark, 1);
    if (says && e->message.content.kind == DGM_CANON_CONTENT_PARTS)
        put_parts(a, m, &e->message.content.parts);
    else if (says)
        simple_put_text(a, m, e->message.content.text);
    else if (e->kind == DGM_SIMPLE_TEXT_CHUNK)
        simple_put_text(a, m, e->delta);
    else
        *only_part(a, m) = (dgm_part){
            .kind = DGM_PART_DATA,
            .data = e->kind == DGM_SIMPLE_CALL_RESULT ? result_data(a, e) : call_data(a, &e->call)};
    return m;
}

/* A step of the agent's own: that of the task is called `working`. */
static dgm_internal *step_of(dgm_arena *a, const dgm_simple_event *e, dgm_simple_run ids)
{
    dgm_internal *step = dgm_new(a, dgm_internal);
    *step = (dgm_internal){.kind = DGM_INTERNAL_STEP,
                           .task_id = ids.run_id,
                           .name = e->step_name,
                           .success = e->kind == DGM_SIMPLE_STEP_FINISHED ? DGM_TRUE : DGM_UNSET};
    return step;
}

static dgm_task_state simple_state_of(const dgm_simple_event *e)
{
    switch (e->kind) {
    case DGM_SIMPLE_STEP_STARTED: return DGM_STATE_WORKING;
    case DGM_SIMPLE_STEP_FINISHED: return DGM_STATE_INPUT_REQUIRED;
    case DGM_SIMPLE_RUN_FINISHED: return DGM_STATE_COMPLETED;
    case DGM_SIMPLE_RUN_ERROR:
        if (dgm_str_is(e->code, "canceled"))
            return DGM_STATE_CANCELED;
        return dgm_str_is(e->code, "rejected") ? DGM_STATE_REJECTED : DGM_STATE_FAILED;
    case DGM_SIMPLE_NONE:
    case DGM_SIMPLE_RUN_STARTED:
    case DGM_SIMPLE_TEXT_CONTENT:
    case DGM_SIMPLE_TEXT_CHUNK:
    case DGM_SIMPLE_TEXT_END:
    case DGM_SIMPLE_CALL_ARGS:
    case DGM_SIMPLE_CALL_START:
    case DGM_SIMPLE_CALL_RESULT: break;
    }
    return DGM_STATE_SUBMITTED;
}

static dgm_status_update *update_of(dgm_arena *a, const dgm_simple_event *e, dgm_simple_run ids,
                                    dgm_mint *mint)
{
    dgm_status_update *u = dgm_new(a, dgm_status_update);
    dgm_str run = e->run_id.n ? e->run_id : ids.run_id;
    dgm_str thread = e->thread_id.n ? e->thread_id : ids.thread_id;
    u->task_id = run.n ? run : dgm_mint_id(mint, a);
    u->context_id = thread.n ? thread : dgm_mint_id(mint, a);
    u->status.state = simple_state_of(e);
    bool refused = u->status.state == DGM_STATE_FAILED || u->status.state == DGM_STATE_REJECTED;
    if (refused && e->error_message.n) {
        dgm_member error = {DGM_STR("error"), dgm_json_make_string(a, e->error_message)};
        u->metadata = dgm_json_object(a, &error, 1);
    }
    return u;
}

void dgm_simple_to_model(dgm_arena *a, const dgm_simple_event *e, dgm_simple_run ids,
                         dgm_mint *mint, dgm_event *ret_event)
{
    switch (e->kind) {
    case DGM_SIMPLE_NONE: *ret_event = (dgm_event){0}; break;
    case DGM_SIMPLE_RUN_STARTED: {
        dgm_task *t = dgm_new(a, dgm_task);
        t->id = e->run_id.n ? e->run_id : dgm_mint_id(mint, a);
        t->context_id = e->thread_id.n ? e->thread_id : dgm_mint_id(mint, a);
        t->status.state = DGM_STATE_SUBMITTED;
        *ret_event = (dgm_event){.kind = DGM_EVENT_TASK, .task = t};
        break;
    }
    case DGM_SIMPLE_STEP_STARTED:
    case DGM_SIMPLE_STEP_FINISHED:
        if (e->step_name.n && !dgm_str_is(e->step_name, "working")) {
            *ret_event = (dgm_event){.kind = DGM_EVENT_INTERNAL, .internal = step_of(a, e, ids)};
            break;
        }
        /* fall through */
    case DGM_SIMPLE_RUN_FINISHED:
    case DGM_SIMPLE_RUN_ERROR:
        *ret_event = (dgm_event){.kind = DGM_EVENT_STATUS, .status = update_of(a, e, ids, mint)};
        break;
    case DGM_SIMPLE_TEXT_CONTENT:
    case DGM_SIMPLE_TEXT_CHUNK:
    case DGM_SIMPLE_TEXT_END:
    case DGM_SIMPLE_CALL_ARGS:
    case DGM_SIMPLE_CALL_START:
    case DGM_SIMPLE_CALL_RESULT:
        *ret_event =
            (dgm_event){.kind = DGM_EVENT_MESSAGE, .message = simple_message_of(a, e, mint)};
        break;
    }
}
