/* backend/graph_server/graph_server_request.c - the requests to a LangGraph server, and what is stored about its run. */
#define _GNU_SOURCE /* memmem */
#include "backend/graph_server/graph_server_int.h"

#include "base/limits.h"

#include <ctype.h>
#include <openssl/sha.h>
#include <stdio.h>

/* ---- ids --------------------------------------------------------------------------------------------------------------------- */

/* Fields with their lengths: no other fields have the same bytes. A cryptographic hash, since callers choose contextIds. */
static void digest_of(const dgm_str *fields, size_t n, unsigned char *ret_digest)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < n; i++) {
        dgm_buf_printf(&b, "%zu:", fields[i].n);
        dgm_buf_add_str(&b, fields[i]);
    }
    SHA256((const unsigned char *)b.p, b.n, ret_digest);
    dgm_buf_done(&b);
}

dgm_str dgm_gserver_thread_id(dgm_arena *a, const dgm_run_input *in, int64_t number)
{
    const dgm_str fields[] = {DGM_STR("dragoman thread"),
                              in->tenant,
                              in->principal,
                              in->agent,
                              in->context_id,
                              dgm_arena_printf(a, "%lld", (long long)number)};
    unsigned char d[SHA256_DIGEST_LENGTH];
    digest_of(fields, sizeof fields / sizeof *fields, d);
    d[6] = (unsigned char)((d[6] & 0x0f) | 0x80); /* version 8: made by a rule of our own */
    d[8] = (unsigned char)((d[8] & 0x3f) | 0x80);
    return dgm_arena_printf(
        a, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", d[0], d[1], d[2],
        d[3], d[4], d[5], d[6], d[7], d[8], d[9], d[10], d[11], d[12], d[13], d[14], d[15]);
}

dgm_str dgm_gserver_turn_id(dgm_arena *a, const dgm_run_input *in)
{
    const dgm_str fields[] = {DGM_STR("dragoman turn"), in->task_id, in->message->message_id};
    unsigned char d[SHA256_DIGEST_LENGTH];
    char text[33];
    digest_of(fields, sizeof fields / sizeof *fields, d);
    for (size_t i = 0; i < 16; i++)
        snprintf(text + 2 * i, 3, "%02x", d[i]);
    return dgm_arena_dup(a, dgm_str_from(text));
}

/* ---- bodies ------------------------------------------------------------------------------------------------------------------ */

static void put_member(dgm_buf *b, const char *name, dgm_str value)
{
    dgm_buf_printf(b, ",\"%s\":", name);
    dgm_json_put_str(b, value);
}

/* config and metadata, which runs and commands share. */
static void put_config(const struct gserver_job *j, dgm_buf *b)
{
    const struct gserver_settings *s = &j->agent->set;
    const dgm_json *tools = dgm_graph_tools(j->run->input->message, j->run->input->metadata);
    yyjson_val *key, *value, *own = (yyjson_val *)(uintptr_t)s->configurable;
    size_t i, n, count = 0;
    dgm_buf_add_lit(b, ",\"config\":{");
    if (s->recursion_limit)
        dgm_buf_printf(b, "\"recursion_limit\":%lld,", (long long)s->recursion_limit);
    dgm_buf_add_lit(b, "\"configurable\":{");
    yyjson_obj_foreach (own, i, n, key, value) {
        if (tools && dgm_str_is(dgm_json_str(key), "tools"))
            continue;
        if (count++)
            dgm_buf_add_char(b, ',');
        dgm_json_put_str(b, dgm_json_str(key));
        dgm_buf_add_char(b, ':');
        dgm_json_put(b, value);
    }
    if (tools) {
        dgm_buf_printf(b, "%s\"tools\":", count ? "," : "");
        dgm_json_put(b, tools);
    }
    dgm_buf_add_lit(b, "}},\"metadata\":{\"dragoman_turn\":");
    dgm_json_put_str(b, j->turn);
    put_member(b, "dragoman_task", j->run->input->task_id);
    dgm_buf_add_char(b, '}');
}

static void put_run(const struct gserver_job *j, dgm_buf *b)
{
    dgm_buf_add_lit(b, "{\"assistant_id\":");
    dgm_json_put_str(b, j->agent->set.assistant);
    if (j->plan.kind == DGM_GRAPH_RESUME) {
        dgm_buf_add_lit(b, ",\"command\":{\"resume\":");
        dgm_json_put(b, j->plan.resume);
        if (j->plan.input) {
            dgm_buf_add_lit(b, ",\"update\":");
            dgm_json_put(b, j->plan.input);
        }
        dgm_buf_add_char(b, '}');
    } else {
        dgm_buf_add_lit(b, ",\"input\":");
        dgm_json_put(b, j->plan.kind == DGM_GRAPH_CONTINUE ? NULL : j->plan.input);
    }
    /* `messages-tuple` is what the server calls the stream mode `messages` of a graph */
    dgm_buf_add_lit(b,
                    ",\"stream_mode\":[\"values\",\"messages-tuple\",\"custom\",\"updates\"]"
                    ",\"stream_subgraphs\":true,\"stream_resumable\":true,\"on_disconnect\":"
                    "\"continue\",\"multitask_strategy\":\"enqueue\",\"if_not_exists\":\"create\"");
    put_config(j, b);
    dgm_buf_add_char(b, '}');
}

/* The answers of input.respond: a list, since several questions are answered at once. */
static void put_responses(const struct gserver_job *j, dgm_buf *b)
{
    yyjson_val *key, *value;
    size_t i, n;
    dgm_buf_add_lit(b, "\"responses\":[");
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)j->plan.resume, i, n, key, value) {
        dgm_buf_add_str(b, i ? DGM_STR(",{\"interrupt_id\":") : DGM_STR("{\"interrupt_id\":"));
        dgm_json_put_str(b, dgm_json_str(key));
        dgm_buf_add_lit(b, ",\"namespace\":[],\"response\":");
        dgm_json_put(b, value);
        dgm_buf_add_char(b, '}');
    }
    dgm_buf_add_char(b, ']');
    if (j->plan.input) {
        dgm_buf_add_lit(b, ",\"update\":");
        dgm_json_put(b, j->plan.input);
    }
}

static void put_command(const struct gserver_job *j, dgm_buf *b)
{
    if (j->plan.kind == DGM_GRAPH_RESUME) {
        dgm_buf_add_lit(b, "{\"id\":1,\"method\":\"input.respond\",\"params\":{");
        put_responses(j, b);
    } else {
        dgm_buf_add_lit(b, "{\"id\":1,\"method\":\"run.start\",\"params\":{\"assistant_id\":");
        dgm_json_put_str(b, j->agent->set.assistant);
        dgm_buf_add_lit(b, ",\"multitaskStrategy\":\"enqueue\",\"input\":");
        dgm_json_put(b, j->plan.kind == DGM_GRAPH_CONTINUE ? NULL : j->plan.input);
    }
    put_config(j, b);
    dgm_buf_add_lit(b, "}}");
}

static void put_thread(const struct gserver_job *j, dgm_buf *b)
{
    dgm_buf_add_lit(b, "{\"thread_id\":");
    dgm_json_put_str(b, j->thread);
    dgm_buf_add_lit(b, ",\"if_exists\":\"do_nothing\",\"metadata\":{\"dragoman_context\":");
    dgm_json_put_str(b, j->run->input->context_id);
    dgm_buf_add_lit(b, "}}");
}

static void put_events(const struct gserver_job *j, dgm_buf *b)
{
    const struct gserver_frames *f = &j->frames;
    int64_t since = f->gap_seq > 0     ? f->gap_seq - 1
                    : f->first_seq > 0 ? f->first_seq - 1
                                       : j->since;
    dgm_buf_add_lit(b,
                    "{\"channels\":[\"values\",\"messages\",\"custom\",\"updates\",\"lifecycle\","
                    "\"input\"]");
    if (since > 0)
        dgm_buf_printf(b, ",\"since\":%lld", (long long)since);
    dgm_buf_add_char(b, '}');
}

static void put_sync(const struct gserver_job *j, dgm_buf *b)
{
    dgm_buf_add_lit(b, "{\"values\":{\"messages\":");
    dgm_json_put(b, j->sync);
    dgm_buf_add_lit(b, "}}");
}

/* ---- one request ------------------------------------------------------------------------------------------------------------- */

/* A name in a path. */
static void put_segment(dgm_buf *b, dgm_str text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if ((c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
            (c && strchr("-._~", c)))
            dgm_buf_add_char(b, (char)c);
        else
            dgm_buf_printf(b, "%%%02X", c);
    }
}

static void put_thread_path(const struct gserver_job *j, dgm_buf *url, const char *more)
{
    dgm_buf_add_lit(url, "/threads/");
    put_segment(url, j->thread);
    dgm_buf_add_str(url, dgm_str_from(more));
}

static void put_run_path(const struct gserver_job *j, dgm_buf *url, const char *more)
{
    put_thread_path(j, url, "/runs/");
    put_segment(url, j->note.run);
    dgm_buf_add_str(url, dgm_str_from(more));
}

/* The URL behind that of the server, and the body of a POST. */
static void put_step(const struct gserver_job *j, enum gserver_step step, dgm_buf *url,
                     dgm_buf *body)
{
    switch (step) {
    case GSERVER_ASSISTANT:
        dgm_buf_add_lit(url, "/assistants/search");
        dgm_buf_add_lit(body, "{\"limit\":1,\"graph_id\":");
        dgm_json_put_str(body, j->agent->set.assistant);
        dgm_buf_add_char(body, '}');
        break;
    case GSERVER_SCHEMA:
        dgm_buf_add_lit(url, "/assistants/");
        put_segment(url, j->assistant);
        dgm_buf_add_lit(url, "/schemas");
        break;
    case GSERVER_THREAD:
        dgm_buf_add_lit(url, "/threads");
        put_thread(j, body);
        break;
    case GSERVER_FIND: put_thread_path(j, url, "/runs?limit=20"); break;
    case GSERVER_SEND:
        put_thread_path(j, url, j->is_v2 ? "/commands" : "/runs/stream");
        if (j->is_v2)
            put_command(j, body);
        else
            put_run(j, body);
        break;
    case GSERVER_FOLLOW:
        if (j->is_v2) {
            put_thread_path(j, url, "/stream/events");
            put_events(j, body);
        } else {
            put_run_path(j, url, "/stream");
        }
        break;
    case GSERVER_CHECK: put_run_path(j, url, ""); break;
    case GSERVER_STATE: put_thread_path(j, url, "/state"); break;
    case GSERVER_SYNC:
        put_thread_path(j, url, "/state");
        put_sync(j, body);
        break;
    case GSERVER_CANCEL:
        put_run_path(j, url, "/cancel?wait=0&action=interrupt");
        dgm_buf_add_lit(body, "{}");
        break;
    case GSERVER_RECALL:
    case GSERVER_WAIT:
    case GSERVER_ENDED: break;
    }
}

static void request_add_header(dgm_remote_request *q, const char *name, dgm_str value)
{
    q->headers[q->n_headers++] = (dgm_fetch_header){dgm_str_from(name), value};
}

const char *dgm_gserver_request(struct gserver_job *j, enum gserver_step step,
                                dgm_remote_handler handler, dgm_remote_call **ret_call)
{
    bool streams = step == GSERVER_FOLLOW || (step == GSERVER_SEND && !j->is_v2);
    const char *error = NULL;
    dgm_remote_request q = {.method = "GET"};
    dgm_buf url, body;
    dgm_buf_init(&url, 64 << 10);
    dgm_buf_init(&body, DGM_MAX_OBJECT_BYTES);
    dgm_buf_add_str(&url, j->agent->base);
    put_step(j, step, &url, &body);
    dgm_buf_add_char(&url, '\0');
    q.url = url.p;
    if (body.n) {
        q.method = "POST";
        q.body = dgm_buf_str(&body);
        request_add_header(&q, "Content-Type", DGM_STR("application/json"));
    }
    request_add_header(&q, "Accept",
                       streams ? DGM_STR("text/event-stream, application/json")
                               : DGM_STR("application/json"));
    if (step == GSERVER_FOLLOW && !j->is_v2)
        request_add_header(&q, "Last-Event-ID", dgm_gserver_seen_cursor(&j->frames.seen));
    if (body.over || url.over)
        error = "the message is larger than the limit object_bytes";
    else
        *ret_call = dgm_remote_start(&j->agent->set.remote, j->run, &q, handler);
    dgm_buf_done(&url);
    dgm_buf_done(&body);
    return error;
}

/* ---- answers and notes ------------------------------------------------------------------------------------------------------- */

static int schema_keys(const dgm_json *schema)
{
    yyjson_val *properties = dgm_json_get(schema, DGM_STR("properties"));
    return (dgm_json_get(properties, DGM_STR("messages")) ? GSERVER_HAS_MESSAGES : 0) |
           (dgm_json_get(properties, DGM_STR("a2a_inbox")) ? GSERVER_HAS_INBOX : 0) |
           (dgm_json_get(properties, DGM_STR("a2a_outbox")) ? GSERVER_HAS_OUTBOX : 0);
}

int dgm_gserver_read_schemas(const dgm_json *schemas)
{
    yyjson_val *state = dgm_json_get(schemas, DGM_STR("state_schema"));
    yyjson_val *input = dgm_json_get(schemas, DGM_STR("input_schema"));
    if (!dgm_json_get(state, DGM_STR("properties")) && !dgm_json_get(input, DGM_STR("properties")))
        return 0; /* not every graph has schemas */
    return schema_keys(state) | schema_keys(input) | GSERVER_KNOWN;
}

bool dgm_gserver_is_uuid(dgm_str text)
{
    for (size_t i = 0; i < text.n; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (is_dash ? text.p[i] != '-' : !isxdigit((unsigned char)text.p[i]))
            return false;
    }
    return text.n == 36;
}

dgm_str dgm_gserver_find_run(const dgm_json *runs, dgm_str turn)
{
    yyjson_val *run;
    size_t i, n;
    yyjson_arr_foreach ((yyjson_val *)(uintptr_t)runs, i, n, run) {
        yyjson_val *metadata = dgm_json_get(run, DGM_STR("metadata"));
        if (dgm_str_eq(dgm_json_str_member(metadata, "dragoman_turn"), turn))
            return dgm_json_str_member(run, "run_id");
    }
    return (dgm_str){0};
}

const char *dgm_gserver_find_text(dgm_str text, dgm_str part)
{
    return text.n && part.n ? memmem(text.p, text.n, part.p, part.n) : NULL;
}

dgm_str dgm_gserver_run_of_path(dgm_str path)
{
    const dgm_str runs = DGM_STR("/runs/");
    const char *at = dgm_gserver_find_text(path, runs);
    if (!at)
        return (dgm_str){0};
    at += runs.n;
    size_t n = 0, left = path.n - (size_t)(at - path.p);
    while (n < left && at[n] != '/' && at[n] != '?')
        n++;
    return (dgm_str){at, n};
}

dgm_str dgm_gserver_write_note(dgm_arena *a, const struct gserver_note *note)
{
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_NOTE_BYTES);
    dgm_buf_printf(&b, "{\"v2\":%s", note->is_v2 ? "true" : "false");
    put_member(&b, "run", note->run);
    put_member(&b, "turn", note->turn);
    if (note->resume) {
        dgm_buf_add_lit(&b, ",\"resume\":");
        dgm_json_put(&b, note->resume);
    }
    dgm_buf_add_char(&b, '}');
    dgm_str text = b.over ? (dgm_str){0} : dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

struct gserver_note dgm_gserver_read_note(dgm_arena *a, dgm_str text)
{
    struct gserver_note note = {0};
    yyjson_val *v;
    if (!text.n ||
        dgm_json_read(a, dgm_arena_dup(a, text), DGM_MAX_NOTE_BYTES, "note_bytes", &v, NULL))
        return note;
    note.run = dgm_json_str_member(v, "run");
    note.turn = dgm_json_str_member(v, "turn");
    note.is_v2 = yyjson_is_true(dgm_json_get(v, DGM_STR("v2")));
    note.resume = dgm_json_non_null(v, "resume");
    return note;
}
