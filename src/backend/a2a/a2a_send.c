/* backend/a2a/a2a_send.c - the requests to a remote agent, and what is stored about its task. */
#include "backend/a2a/a2a_int.h"

#include "base/limits.h"
#include "model/fold.h"
#include "model/guard.h"

#include <stdio.h>

/* ---- the message ----------------------------------------------------------------------------------------------------------- */

/* The earlier conversation that some frontends put before a message: the agent has its own memory. */
static bool is_transcript(const dgm_part *part)
{
    return part->metadata &&
           dgm_str_is(dgm_json_str_member(part->metadata, DGM_META_PART), "transcript");
}

void dgm_a2a_copy_message(struct a2a_job *j)
{
    const dgm_run_input *in = j->run->input;
    dgm_guard guard = {0};
    dgm_message m = dgm_message_copy(j->arena, in->message);
    if (m.parts.n > 1 && is_transcript(&m.parts.at[0]))
        m.parts = (dgm_parts){m.parts.at + 1, m.parts.n - 1};
    m.metadata = dgm_guard_metadata(&guard, j->arena, m.metadata, true);
    dgm_guard_content(&guard, j->arena, &m.metadata, &m.parts);
    /* Ids of callers are unique only for one caller, and all of ours are one caller there. */
    uint64_t high = dgm_hash(1, in->task_id.p, in->task_id.n),
             low = dgm_hash(2, in->task_id.p, in->task_id.n);
    high = dgm_hash(high, m.message_id.p, m.message_id.n);
    low = dgm_hash(low, m.message_id.p, m.message_id.n);
    j->message_id = dgm_arena_printf(j->arena, "%016llx%016llx", (unsigned long long)high,
                                     (unsigned long long)low);
    m.message_id = j->message_id;
    m.task_id = m.context_id = (dgm_str){0};
    m.reference_task_ids = (dgm_strs){0};
    m.role = DGM_ROLE_USER;
    m.extra = NULL;
    j->message = m;
    if (in->metadata)
        j->metadata =
            dgm_guard_metadata(&guard, j->arena, dgm_json_copy(j->arena, in->metadata), true);
    j->output_modes.at = dgm_new_n(j->arena, dgm_str, in->accepted_output_modes.n);
    for (size_t i = 0; i < in->accepted_output_modes.n; i++)
        j->output_modes.at[j->output_modes.n++] =
            dgm_arena_dup(j->arena, in->accepted_output_modes.at[i]);
}

/* ---- requests -------------------------------------------------------------------------------------------------------------- */

static void request_add(dgm_remote_request *q, const char *name, dgm_str value)
{
    q->headers[q->n_headers++] = (dgm_fetch_header){dgm_str_from(name), value};
}

static void request_headers(const struct a2a_agent *x, const struct a2a_operation *o,
                            dgm_remote_request *q)
{
    const dgm_a2a_peer *p = o->peer;
    bool streams = dgm_a2a_methods[o->method].result == DGM_OBJECT_STREAM_RESPONSE;
    if (q->body.p)
        request_add(q, "Content-Type", DGM_STR("application/json"));
    request_add(q, "Accept",
                streams ? DGM_STR("text/event-stream, application/json")
                        : DGM_STR("application/json"));
    request_add(q, "A2A-Version", p->is_v1 ? DGM_STR("1.0") : DGM_STR("0.3"));
    if (x->set.extensions.n)
        request_add(q, p->is_v1 ? "A2A-Extensions" : "X-A2A-Extensions", x->set.extensions);
    if (o->method == DGM_METHOD_SUBSCRIBE && o->last_event.n)
        request_add(q, "Last-Event-ID", o->last_event);
}

dgm_remote_call *dgm_a2a_call(const struct a2a_agent *x, dgm_run *run,
                              const struct a2a_operation *o, dgm_remote_handler handler,
                              dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_remote_request q = {.max_bytes = o->max_bytes, .answer_timeout = o->answer_timeout};
    dgm_remote_call *call = NULL;
    dgm_buf url, body;
    dgm_code rc = DGM_OK;
    dgm_buf_init(&url, 64 << 10);
    dgm_buf_init(&body, DGM_MAX_OBJECT_BYTES);
    q.method = dgm_a2a_put_route(o->peer, o->method, o->params, &url);
    dgm_buf_add_char(&url, '\0');
    q.url = url.p;
    if (strcmp(q.method, "POST") == 0)
        rc = dgm_a2a_put_body(o->peer, o->method, o->params, a, &body, err);
    if (body.n)
        q.body = dgm_buf_str(&body);
    request_headers(x, o, &q);
    if (!rc)
        call = dgm_remote_start(o->remote, run, &q, handler);
    dgm_buf_done(&url);
    dgm_buf_done(&body);
    return call;
}

/* The params of the operation, in the arena. */
static void *request_params(struct a2a_job *j, dgm_method method, dgm_arena *a)
{
    dgm_str tenant = dgm_a2a_tenant_of(j->peer);
    if (method != DGM_METHOD_SEND && method != DGM_METHOD_STREAM) {
        dgm_task_request *task = dgm_new(a, dgm_task_request);
        *task = (dgm_task_request){.tenant = tenant, .task_id = j->note.task};
        return task;
    }
    dgm_send_request *send = dgm_new(a, dgm_send_request);
    dgm_send_configuration *configuration = dgm_new(a, dgm_send_configuration);
    dgm_message *m = dgm_new(a, dgm_message);
    *m = j->message;
    m->context_id = j->note.context;
    m->task_id = j->continues ? j->note.task : (dgm_str){0};
    configuration->accepted_output_modes = j->output_modes;
    /* the id of the task is needed early: for a cancel, and after a lost connection */
    if (method == DGM_METHOD_SEND)
        configuration->return_immediately = DGM_TRUE;
    *send = (dgm_send_request){
        .tenant = tenant, .message = m, .configuration = configuration, .metadata = j->metadata};
    return send;
}

const char *dgm_a2a_request(struct a2a_job *j, dgm_method method, enum a2a_step step,
                            dgm_remote_handler handler)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    struct a2a_operation o = {.remote = &j->card->remote,
                              .peer = j->peer,
                              .method = method,
                              .params = request_params(j, method, a),
                              .last_event = dgm_buf_str(&j->last_event)};
    j->step = step;
    j->n_items = 0;
    j->is_first = true;
    j->bad = j->peer_error = NULL;
    j->peer_code = DGM_OK;
    j->call = dgm_a2a_call(j->agent, j->run, &o, handler, &err);
    return j->call ? NULL : dgm_arena_dup(j->arena, dgm_str_from(err.msg)).p;
}

const char *dgm_a2a_error_sentence(dgm_arena *a, const dgm_peer_error *e)
{
    char number[40] = "";
    dgm_str text = e->message;
    if (text.n > 300)
        text.n = 300;
    while (text.n < e->message.n && text.n && (text.p[text.n] & 0xc0) == 0x80)
        text.n--; /* not within a character */
    if (e->rpc_code)
        snprintf(number, sizeof number, " (error %d)", e->rpc_code);
    if (!text.n)
        text = e->code ? dgm_str_from(dgm_code_message(e->code)) : DGM_STR("without a message");
    return dgm_arena_printf(a, "the agent's server reported an error: %.*s%s", DGM_P(text), number)
        .p;
}

/* ---- notes --------------------------------------------------------------------------------------------------------------- */

dgm_str dgm_a2a_write_note(dgm_arena *a, const struct a2a_note *note, const dgm_a2a_peer *peer)
{
    const struct {
        dgm_str key, value;
    } members[] = {
        {DGM_STR("\"task\":"), note->task},
        {DGM_STR("\"context\":"), note->context},
        {DGM_STR("\"message\":"), note->message},
        {DGM_STR("\"request\":"), note->request},
        {DGM_STR("\"interface\":"), peer ? peer->url : (dgm_str){0}},
        {DGM_STR("\"binding\":"), !peer           ? (dgm_str){0}
                                  : peer->is_rest ? DGM_STR("rest")
                                                  : DGM_STR("jsonrpc")},
        {DGM_STR("\"protocol\":"), !peer         ? (dgm_str){0}
                                   : peer->is_v1 ? DGM_STR("a2a-1.0")
                                                 : DGM_STR("a2a-0.3")},
    };
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_NOTE_BYTES);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (!members[i].value.n)
            continue;
        dgm_buf_add_char(&b, b.n ? ',' : '{');
        dgm_buf_add_str(&b, members[i].key);
        dgm_json_put_str(&b, members[i].value);
    }
    if (note->request.n) {
        dgm_buf_printf(&b, "%s\"modes\":[", b.n ? "," : "{");
        for (size_t i = 0; i < note->output_modes.n; i++) {
            if (i)
                dgm_buf_add_char(&b, ',');
            dgm_json_put_str(&b, note->output_modes.at[i]);
        }
        dgm_buf_add_char(&b, ']');
    }
    if (note->request.n && note->metadata) {
        dgm_buf_add_lit(&b, ",\"metadata\":");
        dgm_json_put(&b, note->metadata);
    }
    dgm_buf_add_char(&b, '}');
    dgm_str text = b.over ? (dgm_str){0} : dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

struct a2a_note dgm_a2a_read_note(dgm_arena *a, dgm_str text)
{
    yyjson_val *v;
    dgm_err err = {0};
    if (!text.n ||
        dgm_json_read(a, dgm_arena_dup(a, text), DGM_MAX_NOTE_BYTES, "note_bytes", &v, &err))
        return (struct a2a_note){0};
    struct a2a_note note = {.task = dgm_json_str_member(v, "task"),
                            .context = dgm_json_str_member(v, "context"),
                            .message = dgm_json_str_member(v, "message"),
                            .request = dgm_json_str_member(v, "request"),
                            .metadata = dgm_json_get(v, DGM_STR("metadata"))};
    yyjson_val *modes = dgm_json_get(v, DGM_STR("modes")), *mode;
    size_t i, n;
    note.output_modes.at = dgm_new_n(a, dgm_str, yyjson_arr_size(modes));
    yyjson_arr_foreach (modes, i, n, mode)
        note.output_modes.at[note.output_modes.n++] = dgm_json_str(mode);
    return note;
}
