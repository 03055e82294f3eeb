/* app/load/load.c - `dragoman bench`: what is asked for, the request that is sent, the tasks it needs. */
#include "app/load/load_int.h"

#include "json/json.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_CONNECTIONS 60000

/* ---- options -------------------------------------------------------------------------------------------- */

static bool number(const dgm_cli_line *line, const char *option, double low, double high,
                   double *to)
{
    const char *text = dgm_cli_get(line, option);
    char *end;
    double value;
    if (!text)
        return true;
    value = strtod(text, &end);
    if (end == text || *end || !(value >= low && value <= high)) {
        dgm_cli_refuse(line, "--%s %s: not a number from %g to %g", option, text, low, high);
        return false;
    }
    *to = value;
    return true;
}

static enum mode mode_of(const char *word)
{
    static const char *const words[] = {"send", "get", "stream", "hold", "startup"};
    for (int i = 0; word && i < 5; i++) {
        if (strcmp(word, words[i]) == 0)
            return (enum mode)i;
    }
    return MODE_SEND;
}

static const char *default_text(enum mode mode)
{
    switch (mode) {
    case MODE_SEND:
    case MODE_STARTUP: return "echo hello";
    case MODE_GET: return "chunks 3";
    case MODE_STREAM: return "chunks 100";
    case MODE_HOLD: return "hold 3600";
    }
    return "";
}

static bool read_url(const dgm_cli_line *line, struct load *l)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    const char *p = l->url, *host, *slash, *colon;
    int rc;
    if (strncmp(p, "http://", 7) != 0) {
        dgm_cli_refuse(line, "%s: only http:// addresses can be measured", p);
        return false;
    }
    host = p + 7;
    slash = strchr(host, '/');
    snprintf(l->path, sizeof l->path, "%s", slash ? slash : "/");
    snprintf(l->host, sizeof l->host, "%.*s", (int)(slash ? slash - host : (long)strlen(host)),
             host);
    colon = strrchr(l->host, ':');
    snprintf(l->port, sizeof l->port, "%s", colon && !strchr(colon, ']') ? colon + 1 : "80");
    char name[256];
    bool is_bracketed = l->host[0] == '[';
    snprintf(name, sizeof name, "%.*s",
             (int)(is_bracketed ? strcspn(l->host + 1, "]")
                                : (colon ? (size_t)(colon - l->host) : strlen(l->host))),
             l->host + is_bracketed);
    if ((rc = getaddrinfo(name, l->port, &hints, &found))) {
        dgm_cli_complain("cannot find %s: %s", l->host, gai_strerror(rc));
        return false;
    }
    memcpy(&l->to, found->ai_addr, found->ai_addrlen);
    l->to_n = found->ai_addrlen;
    l->family = found->ai_family;
    freeaddrinfo(found);
    return true;
}

static bool options(const dgm_cli_line *line, struct load *l)
{
    double connections = l->n_connections, requests = 0, pid = 0;
    if (!number(line, "connections", 1, MAX_CONNECTIONS, &connections) ||
        !number(line, "seconds", 0.01, 86400, &l->seconds) ||
        !number(line, "requests", 1, 1e12, &requests) ||
        !number(line, "warmup", 0, 3600, &l->warmup) ||
        !number(line, "rate", 0.001, 1e7, &l->rate) || !number(line, "pid", 1, INT_MAX, &pid))
        return false;
    l->n_connections = (size_t)connections;
    l->max_requests = (uint64_t)requests;
    l->pid = (pid_t)pid;
    if (l->mode == MODE_STARTUP && line->n_args < 2) {
        dgm_cli_refuse(line, "--mode startup needs COMMAND: which server to start");
        return false;
    }
    if (l->mode != MODE_STARTUP && line->n_args > 1) {
        dgm_cli_refuse(line, "COMMAND is for --mode startup alone");
        return false;
    }
    l->command = dgm_xcalloc(line->n_args, sizeof *l->command); /* execvp wants a NULL behind it */
    memcpy(l->command, line->args + 1, (line->n_args - 1) * sizeof *l->command);
    return read_url(line, l);
}

/* ---- the request ---------------------------------------------------------------------------------------------- */

#define ID_PREFIX "bench-"
#define ID_DIGITS "0000000000000000"

/* Each run has message ids of its own: a server that knows them again would not do the work. */
static uint64_t first_id(void)
{
    return (now_ns() << 20) ^ ((uint64_t)getpid() << 44);
}

static void put_request(struct load *l, const char *method, dgm_str params)
{
    dgm_buf body;
    dgm_buf_init(&body, SIZE_MAX);
    dgm_buf_printf(&body, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%.*s}",
                   method, DGM_P(params));
    dgm_buf_clear(&l->request);
    dgm_buf_printf(&l->request,
                   "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
                   "Accept: application/json, text/event-stream\r\nA2A-Version: 1.0\r\n",
                   l->path, l->host);
    if (l->token)
        dgm_buf_printf(&l->request, "Authorization: Bearer %s\r\n", l->token);
    dgm_buf_printf(&l->request, "Content-Length: %zu\r\n\r\n", body.n);
    l->digits_at = 0;
    size_t head = l->request.n;
    dgm_buf_add(&l->request, body.p, body.n);
    dgm_buf_add_char(&l->request, '\0');
    l->request.n--;
    const char *id = strstr(l->request.p + head, "\"" ID_PREFIX ID_DIGITS);
    if (id)
        l->digits_at = (size_t)(id - l->request.p) + sizeof ID_PREFIX;
    dgm_buf_done(&body);
}

static void put_message(struct load *l, const char *method)
{
    dgm_buf params;
    dgm_buf_init(&params, SIZE_MAX);
    dgm_buf_add_lit(&params, "{\"message\":{\"messageId\":\"" ID_PREFIX ID_DIGITS
                             "\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":");
    dgm_json_put_str(&params, dgm_str_from(l->text));
    dgm_buf_add_lit(&params, "}]}}");
    put_request(l, method, dgm_buf_str(&params));
    dgm_buf_done(&params);
}

/* What the agent `bench` promises for such a text. */
static void expect(struct load *l)
{
    unsigned long long n;
    l->want_chunks = UINT64_MAX;
    l->want[0] = "\"result\"";
    if (sscanf(l->text, "chunks %llu", &n) == 1) {
        l->want_chunks = n;
        l->want[1] = "TASK_STATE_COMPLETED";
    } else if (strncmp(l->text, "echo ", 5) == 0) {
        dgm_buf b;
        dgm_buf_init(&b, sizeof l->want_text - 1);
        dgm_json_put_str(&b, dgm_str_from(l->text));
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
    dgm_document *d = NULL;
    bool good = false;
    dgm_buf_init(&body, SIZE_MAX);
    put_message(l, "SendMessage");
    if (load_once(l, 60000, &body) &&
        !dgm_document_read("a2a-1.0", DGM_OBJECT_SEND_RESPONSE, body.p, body.n, &d, &err)) {
        const dgm_event *e = dgm_document_get(d);
        if (dgm_document_kind(d) == DGM_OBJECT_SEND_RESPONSE && e->kind == DGM_EVENT_TASK &&
            e->task->id.n < sizeof l->task_id - 2) {
            snprintf(l->task_id, sizeof l->task_id, "\"%.*s\"", DGM_P(e->task->id));
            good = true;
        }
    }
    if (!good)
        load_wrong(l, "\"%s\" made no task", l->text);
    dgm_document_free(d);
    dgm_buf_done(&body);
    return good;
}

static bool prepare(struct load *l)
{
    char params[256];
    expect(l);
    if (l->mode == MODE_GET) {
        if (!make_task(l))
            return false;
        snprintf(params, sizeof params, "{\"id\":%s}", l->task_id);
        put_request(l, "GetTask", dgm_str_from(params));
        l->want[0] = l->task_id;
        return true;
    }
    put_message(l, l->mode == MODE_STREAM || l->mode == MODE_HOLD ? "SendStreamingMessage"
                                                                  : "SendMessage");
    return true;
}

int dgm_load_bench(const dgm_cli_line *line)
{
    struct load *l = dgm_xcalloc(1, sizeof *l);
    int status = DGM_CLI_MISUSED;
    dgm_buf_init(&l->request, SIZE_MAX);
    l->mode = mode_of(dgm_cli_get(line, "mode"));
    l->text = dgm_cli_get(line, "text");
    if (!l->text)
        l->text = default_text(l->mode);
    l->token = dgm_cli_get(line, "token");
    l->url = line->args[0];
    l->json = dgm_cli_get(line, "json");
    l->seconds = 5;
    l->n_connections = 16;
    l->next_id = first_id();
    if (options(line, l)) {
        bool ran = false;
        if (prepare(l))
            ran = l->mode == MODE_STARTUP ? load_startup(l) : load_run(l);
        if (ran)
            load_report(l, stdout);
        if (l->first_error[0])
            dgm_cli_complain("%s", l->first_error);
        status = ran && !l->errors && (l->requests || l->events) ? DGM_CLI_OK : DGM_CLI_FAILED;
    }
    dgm_buf_done(&l->request);
    free(l->command);
    free(l);
    return status;
}
