/*
 * app/load/load_request.c - the request of each API, made once, and what its answers must hold.
 *
 * Bodies are written as they go out, but for `@`: an id of its own for every request, `$`: the text, and `#`: the
 * model, both as JSON strings.
 */
#include "app/load/load_int.h"

#include "json/json.h"

#include <unistd.h>

#define RPC(method, params)                                                                        \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":" params "}"
#define A2A_MESSAGE                                                                                \
    "{\"message\":{\"messageId\":\"@\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":$}]}}"
#define CHAT(more) "{\"model\":#,\"messages\":[{\"role\":\"user\",\"content\":$}]" more "}"
#define RESPONSES(more) "{\"model\":#,\"input\":$" more "}"

static const struct api apis[] = {
    {.name = "a2a",
     .format = "a2a-1.0",
     .send = RPC("SendMessage", A2A_MESSAGE),
     .stream = RPC("SendStreamingMessage", A2A_MESSAGE),
     .answer = "\"result\"",
     .completed = "TASK_STATE_COMPLETED",
     .chunk = "\"artifactUpdate\"",
     .end = "_COMPLETED\""},
    {.name = "ag-ui",
     .format = "ag-ui",
     .stream = "{\"threadId\":\"@\",\"runId\":\"@\",\"state\":{},\"messages\":[{\"id\":\"@\","
               "\"role\":\"user\",\"content\":$}],\"tools\":[],\"context\":[],"
               "\"forwardedProps\":{}}",
     .chunk = "\"TEXT_MESSAGE_CONTENT\"",
     .end = "\"RUN_FINISHED\""},
    {.name = "chat",
     .format = "openai-chat",
     .send = CHAT(""),
     .stream = CHAT(",\"stream\":true"),
     .answer = "\"choices\"",
     .completed = "\"stop\"",
     .chunk = "{\"content\":",
     .end = "[DONE]"},
    {.name = "responses",
     .format = "openai-responses",
     .send = RESPONSES(""),
     .stream = RESPONSES(",\"stream\":true"),
     .answer = "\"output_text\"",
     .completed = "\"completed\"",
     .chunk = "\"response.output_text.delta\"",
     .end = "\"response.completed\""},
    {.name = "ai-sdk",
     .format = "ai-sdk",
     .stream = "{\"id\":\"@\",\"trigger\":\"submit-message\",\"messages\":[{\"id\":\"@\","
               "\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"text\":$}]}]}",
     .chunk = "\"text-delta\"",
     .end = "\"finish\""},
};

const struct api *dgm_load_api(const char *name)
{
    for (size_t i = 0; i < sizeof apis / sizeof *apis; i++) {
        if (strcmp(apis[i].name, name) == 0)
            return &apis[i];
    }
    return &apis[0];
}

/* ---- the request ------------------------------------------------------------------------------------------ */

#define ID_PREFIX "bench-"
#define ID_DIGITS "0000000000000000"

/* Each run has ids of its own: a server that knows them again would not do the work. */
static uint64_t first_id(void)
{
    return (dgm_load_now_ns() << 20) ^ ((uint64_t)getpid() << 44);
}

static void fill(struct load *l, const char *body, dgm_str text, dgm_buf *out)
{
    for (l->n_digits = 0; *body; body++) {
        if (*body == '@') {
            dgm_buf_add_lit(out, ID_PREFIX);
            l->digits_at[l->n_digits++] = out->n;
            dgm_buf_add_lit(out, ID_DIGITS);
        } else if (*body == '$') {
            dgm_json_put_str(out, text);
        } else if (*body == '#') {
            dgm_json_put_str(out, dgm_str_from(l->model));
        } else {
            dgm_buf_add_char(out, *body);
        }
    }
}

static void put_request(struct load *l, const char *body_form, dgm_str text)
{
    dgm_buf body;
    dgm_buf_init(&body, SIZE_MAX);
    fill(l, body_form, text, &body);
    dgm_buf_clear(&l->request);
    dgm_buf_printf(&l->request,
                   "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
                   "Accept: application/json, text/event-stream\r\n",
                   l->path, l->host);
    if (l->api == &apis[0])
        dgm_buf_add_lit(&l->request, "A2A-Version: 1.0\r\n");
    if (l->token)
        dgm_buf_printf(&l->request, "Authorization: Bearer %s\r\n", l->token);
    dgm_buf_printf(&l->request, "Content-Length: %zu\r\n\r\n", body.n);
    for (size_t i = 0; i < l->n_digits; i++)
        l->digits_at[i] += l->request.n;
    dgm_buf_add(&l->request, body.p, body.n);
    dgm_buf_done(&body);
}

/* ---- what must come --------------------------------------------------------------------------------------- */

/* What the agent `bench` promises for such a text. */
static void expect(struct load *l)
{
    const char *said = l->expected;
    unsigned long long n;
    l->want_chunks = UINT64_MAX;
    l->want[0] = l->api->answer;
    if (sscanf(l->text, "chunks %llu", &n) == 1) {
        l->want_chunks = n;
        l->want[1] = l->api->completed;
    } else if (!said && strncmp(l->text, "echo ", 5) == 0) {
        said = l->text;
    }
    if (said) {
        dgm_buf b;
        dgm_buf_init(&b, sizeof l->want_text - 1);
        dgm_json_put_str(&b, dgm_str_from(said));
        snprintf(l->want_text, sizeof l->want_text, "%.*s", DGM_P(dgm_buf_str(&b)));
        dgm_buf_done(&b);
        l->want[1] = l->want_text;
    }
}

/* GetTask needs a task. */
static bool make_task(struct load *l)
{
    dgm_buf body;
    dgm_err err = {0};
    const dgm_convert_options o = {
        .size = sizeof o, .from = DGM_FORMAT_A2A_10, .object = DGM_OBJECT_SEND_RESPONSE};
    dgm_document *d = NULL;
    bool good = false;
    dgm_buf_init(&body, SIZE_MAX);
    put_request(l, l->api->send, dgm_str_from(l->text));
    if (dgm_load_request_once(l, 60000, &body) &&
        !dgm_document_decode(&o, body.p, body.n, &d, &err)) {
        const dgm_event *e = dgm_document_object(d, 0);
        if (dgm_document_kind(d, 0) == DGM_OBJECT_SEND_RESPONSE && e->kind == DGM_EVENT_TASK &&
            e->task->id.n < sizeof l->task_id - 2) {
            snprintf(l->task_id, sizeof l->task_id, "\"%.*s\"", DGM_P(e->task->id));
            put_request(l, RPC("GetTask", "{\"id\":$}"), e->task->id);
            l->want[0] = l->task_id;
            good = true;
        }
    }
    if (!good)
        dgm_load_fail(l, "the message \"%s\" did not create a task", l->text);
    dgm_document_free(d);
    dgm_buf_done(&body);
    return good;
}

bool dgm_load_prepare(struct load *l)
{
    bool streams = l->mode == MODE_STREAM || l->mode == MODE_HOLD;
    l->next_id = first_id();
    expect(l);
    if (l->mode == MODE_GET)
        return make_task(l);
    put_request(l, streams ? l->api->stream : l->api->send, dgm_str_from(l->text));
    return true;
}
