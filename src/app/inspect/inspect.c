/* app/inspect/inspect.c - routes, owners, errors; a task with its turns, opened. */
#include "app/inspect/inspect_int.h"
#include "model/kinds.h"
#include "json/json.h"

/* ---- errors and responses ---------------------------------------------------------------------------------------- */

void dgm_inspect_refuse(const dgm_front_request *q, dgm_code code, const char *why)
{
    dgm_err err = {0};
    dgm_fail(&err, code, NULL, "%s", why);
    q->reporter->refuse(q, &err, NULL, 0);
}

void dgm_inspect_respond(dgm_http_exchange *x, const dgm_buf *json)
{
    static const dgm_http_header header = {{"Cache-Control", 13}, {"no-store", 8}};
    dgm_http_respond(x, 200, DGM_STR("application/json"), &header, 1, dgm_buf_str(json));
}

void dgm_inspect_start_lines(dgm_http_exchange *x, dgm_str content_type)
{
    static const dgm_http_header headers[] = {{{"Cache-Control", 13}, {"no-store", 8}},
                                              {{"X-Accel-Buffering", 17}, {"no", 2}}};
    dgm_front_note_stream(x);
    dgm_http_begin(x, 200, content_type, headers, 2);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

uint64_t dgm_inspect_number(dgm_str s, uint64_t def)
{
    uint64_t n = 0;
    if (!s.n || s.n > 18)
        return def;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return def;
        n = n * 10 + (uint64_t)(s.p[i] - '0');
    }
    return n;
}

bool dgm_inspect_follows(dgm_http_exchange *x)
{
    return !dgm_str_is(dgm_turn_query(x, "follow"), "0");
}

bool dgm_inspect_owner(const dgm_front_request *q, dgm_owner *ret_owner)
{
    dgm_str tenant = dgm_turn_query(q->x, "tenant"), principal = dgm_turn_query(q->x, "principal");
    *ret_owner = q->owner;
    if (!tenant.p && !principal.p)
        return true;
    *ret_owner = (dgm_owner){tenant, principal};
    if (!q->is_operator)
        dgm_inspect_refuse(q, DGM_FORBIDDEN, "only operators may read tasks of other callers");
    return q->is_operator;
}

/* ---- formats ----------------------------------------------------------------------------------------------------- */

const struct inspect_format dgm_inspect_formats[] = {
    {DGM_FORMAT_A2A_10, NULL},
    {DGM_FORMAT_A2A_03, NULL},
    {DGM_FORMAT_AG_UI, "ag-ui"},
    {DGM_FORMAT_CHAT, "openai-chat"},
    {DGM_FORMAT_RESPONSES, "openai-responses"},
    {DGM_FORMAT_AI_SDK, "ai-sdk"},
};
const size_t dgm_inspect_n_formats = sizeof dgm_inspect_formats / sizeof *dgm_inspect_formats;

const struct inspect_format *dgm_inspect_format_of(const dgm_front_request *q, dgm_str name)
{
    for (size_t i = 0; i < dgm_inspect_n_formats; i++) {
        if (dgm_str_eq(name, dgm_str_from(dgm_format_id_name(dgm_inspect_formats[i].id))))
            return &dgm_inspect_formats[i];
    }
    dgm_inspect_refuse(q, DGM_BAD_PARAMS,
                       "unknown format; allowed values: a2a-1.0, a2a-0.3, ag-ui, openai-chat, "
                       "openai-responses, ai-sdk");
    return NULL;
}

bool dgm_inspect_is_replayed(const struct inspect *t, const dgm_task_turn *turn,
                             const struct inspect_format *format)
{
    if (!t->agent)
        return false;
    if (!format->protocol)
        return true;
    if (!dgm_str_eq(turn->protocol, dgm_str_from(format->protocol)))
        return false;
    /* of these two the stream depends on members of the request */
    return (format->id != DGM_FORMAT_CHAT && format->id != DGM_FORMAT_RESPONSES) || turn->request.n;
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

void dgm_inspect_close(struct inspect *t)
{
    dgm_log_unref(dgm_take(t->log));
    dgm_record_unref(dgm_take(t->snapshot));
}

static void inspect_copy_turns(struct inspect *t, const dgm_task_log *task)
{
    t->turns = dgm_new_n(t->arena, dgm_task_turn, task->n_turns + 1);
    for (size_t i = 0; i < task->n_turns; i++) {
        dgm_task_turn *turn = &t->turns[t->n_turns];
        *turn = task->turns[i];
        if (turn->last_seq && turn->last_seq < turn->first_seq)
            continue; /* trimmed */
        turn->protocol = dgm_arena_dup(t->arena, turn->protocol);
        turn->caller_id = dgm_arena_dup(t->arena, turn->caller_id);
        turn->request = dgm_arena_dup(t->arena, turn->request);
        t->n_turns++;
    }
}

/* False: the request names a turn that is not there, and was refused. */
static bool inspect_find_turn(struct inspect *t)
{
    dgm_str number = dgm_turn_query(t->q.x, "turn");
    t->names_turn = number.n > 0;
    t->turn = t->n_turns ? &t->turns[t->n_turns - 1] : NULL;
    if (!t->names_turn)
        return true;
    t->turn = NULL;
    for (size_t i = 0; i < t->n_turns; i++) {
        if (t->turns[i].turn == dgm_inspect_number(number, 0))
            t->turn = &t->turns[i];
    }
    if (!t->turn)
        dgm_inspect_refuse(&t->q, DGM_BAD_PARAMS,
                           "turn: unknown turn of the task, or its records were removed");
    return t->turn;
}

static void inspect_on_task(dgm_code code, const dgm_task_log *task, const dgm_err *err, void *arg)
{
    struct inspect *t = arg;
    const dgm_turns_options *o = &t->q.turns->o;
    if (code) {
        dgm_inspect_refuse(&t->q, code, err->msg);
        return;
    }
    t->agent_id = dgm_arena_dup(t->arena, task->agent);
    t->context_id = dgm_arena_dup(t->arena, task->context_id);
    t->state = task->state;
    for (size_t i = 0; i < o->n_agents; i++) {
        if (dgm_str_eq(o->agents[i].id, t->agent_id))
            t->agent = &o->agents[i];
    }
    inspect_copy_turns(t, task);
    if (!inspect_find_turn(t))
        return;
    t->log = dgm_log_ref(task->log);
    t->after = task->after;
    t->snapshot = task->snapshot ? dgm_record_ref(task->snapshot) : NULL;
    t->on_open(t);
}

void dgm_inspect_open(const dgm_front_request *q, void (*on_open)(struct inspect *t))
{
    dgm_arena *a = dgm_http_arena(q->x);
    struct inspect *t = dgm_new(a, struct inspect);
    *t = (struct inspect){.q = *q, .arena = a, .task_id = q->params[0], .on_open = on_open};
    if (!dgm_inspect_owner(q, &t->q.owner))
        return;
    dgm_front_note_task(q->x, t->task_id, 0);
    dgm_core_read_task(q->turns->o.core, t->q.owner, t->task_id, inspect_on_task, t);
}

/* ---- GET /debug/tasks/{id} --------------------------------------------------------------------------------------- */

static void inspect_put_text(dgm_buf *b, const char *name, dgm_str text)
{
    dgm_buf_printf(b, "\"%s\":", name);
    dgm_json_put_str(b, text);
}

static void inspect_put_turn(const struct inspect *t, const dgm_task_turn *turn, dgm_buf *b)
{
    size_t n = 0;
    dgm_buf_printf(b, "{\"turn\":%u,", turn->turn);
    inspect_put_text(b, "protocol", turn->protocol);
    dgm_buf_add_char(b, ',');
    inspect_put_text(b, "callerId", turn->caller_id);
    dgm_buf_printf(b, ",\"firstSeq\":%llu,\"lastSeq\":", (unsigned long long)turn->first_seq);
    if (turn->last_seq)
        dgm_json_put_int(b, (int64_t)turn->last_seq);
    else
        dgm_buf_add_lit(b, "null");
    dgm_buf_add_lit(b, ",\"replays\":[");
    for (size_t i = 0; i < dgm_inspect_n_formats; i++) {
        if (dgm_inspect_is_replayed(t, turn, &dgm_inspect_formats[i]))
            dgm_buf_printf(b, "%s\"%s\"", n++ ? "," : "",
                           dgm_format_id_name(dgm_inspect_formats[i].id));
    }
    dgm_buf_add_lit(b, "]}");
}

static void inspect_task(struct inspect *t)
{
    uint64_t published = t->log->published;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX); /* the turns of a task are bounded by its log */
    dgm_buf_add_lit(&b, "{\"task\":{");
    inspect_put_text(&b, "id", t->task_id);
    dgm_buf_add_char(&b, ',');
    inspect_put_text(&b, "contextId", t->context_id);
    dgm_buf_add_char(&b, ',');
    inspect_put_text(&b, "agent", t->agent_id);
    dgm_buf_add_char(&b, ',');
    inspect_put_text(&b, "state", dgm_str_from(dgm_state_names[t->state]));
    dgm_buf_printf(&b, "},\"records\":%llu,\"turns\":[", (unsigned long long)published);
    for (size_t i = 0; i < t->n_turns; i++) {
        if (i)
            dgm_buf_add_char(&b, ',');
        inspect_put_turn(t, &t->turns[i], &b);
    }
    dgm_buf_add_lit(&b, "],\"columns\":[");
    for (size_t i = 0; i < dgm_inspect_n_formats; i++) {
        const struct inspect_format *f = &dgm_inspect_formats[i];
        dgm_buf_printf(&b,
                       "%s{\"format\":\"%s\",\"framing\":\"sse\",\"contentType\":"
                       "\"text/event-stream\",\"replay\":%s}",
                       i ? "," : "", dgm_format_id_name(f->id),
                       t->turn && dgm_inspect_is_replayed(t, t->turn, f) ? "true" : "false");
    }
    dgm_buf_add_lit(&b, "]}");
    dgm_inspect_respond(t->q.x, &b);
    dgm_buf_done(&b);
    dgm_inspect_close(t);
}

static void inspect_handle_task(const dgm_front_request *q)
{
    dgm_inspect_open(q, inspect_task);
}

/* ---- GET /debug/me ----------------------------------------------------------------------------------------------- */

static void inspect_handle_me(const dgm_front_request *q)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_printf(&b, "{\"operator\":%s,\"inspect\":%s,\"remote\":%s}",
                   q->is_operator ? "true" : "false", q->may_inspect ? "true" : "false",
                   q->may_call_remote ? "true" : "false");
    dgm_inspect_respond(q->x, &b);
    dgm_buf_done(&b);
}

/* ---- routes ------------------------------------------------------------------------------------------------------ */

static void inspect_refuse_method(const dgm_front_request *q, const char *allow)
{
    dgm_http_header header = {DGM_STR("Allow"), dgm_str_from(allow)};
    dgm_http_respond(q->x, 405, DGM_STR("application/json"), &header, 1, DGM_STR("{}"));
}

/* clang-format off */
#define ROUTE(method, pattern, operation, access, handle) {DGM_ROUTE_##method, "/debug/" pattern, operation, DGM_ACCESS_##access, DGM_BODY_SMALL, handle, 0, DGM_SCOPE_SERVER}
#define BODY(pattern, operation, access, size, handle, mode) {DGM_ROUTE_POST, "/debug/" pattern, operation, DGM_ACCESS_##access, DGM_BODY_##size, handle, mode, DGM_SCOPE_SERVER}
static const dgm_route inspect_routes[] = {
    ROUTE(GET,    "me",                          "InspectMe",       CALLER,    inspect_handle_me),
    ROUTE(GET,    "tasks",                       "InspectTasks",    OPERATOR,  dgm_inspect_live),
    ROUTE(GET,    "tasks/{id}",                  "InspectTask",     INSPECTOR, inspect_handle_task),
    ROUTE(STREAM, "tasks/{id}/records",          "records",         INSPECTOR, dgm_inspect_records),
    ROUTE(STREAM, "tasks/{id}/columns/{format}", "InspectColumn",   INSPECTOR, dgm_inspect_columns),
    ROUTE(GET,    "tasks/{id}/findings",         "InspectFindings", INSPECTOR, dgm_inspect_findings),
    ROUTE(GET,    "tasks/{id}/fold",             "InspectFold",     INSPECTOR, dgm_inspect_folded),
    BODY("streams",                  "InspectStream",         INSPECTOR, STREAM,   dgm_inspect_stream, INSPECT_RECORDS),
    BODY("streams/columns/{format}", "InspectStreamColumn",   INSPECTOR, STREAM,   dgm_inspect_stream, INSPECT_COLUMN),
    BODY("streams/findings",         "InspectStreamFindings", INSPECTOR, STREAM,   dgm_inspect_stream, INSPECT_FINDINGS),
    BODY("streams/fold",             "InspectStreamFold",     INSPECTOR, STREAM,   dgm_inspect_stream, INSPECT_FOLD),
    BODY("remote/card",              "InspectRemoteCard",     OPERATOR,  MESSAGES, dgm_inspect_remote_card, 0),
    BODY("remote/send",              "InspectRemoteSend",     OPERATOR,  MESSAGES, dgm_inspect_remote_send, 0),
};
/* clang-format on */

const dgm_frontend dgm_front_inspect = {.name = "inspect",
                                        DGM_ROUTES(inspect_routes),
                                        .needs_role = true,
                                        .refuse_method = inspect_refuse_method};
