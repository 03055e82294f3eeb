/* app/load/load.c - `dragoman bench`: what is asked for, and who does it. */
#include "app/load/load_int.h"

#include <limits.h>
#include <stdlib.h>

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
        dgm_cli_refuse(line, "--%s %s: expected a number from %g to %g", option, text, low, high);
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
        dgm_cli_refuse(line, "--mode startup needs COMMAND, the server to start");
        return false;
    }
    if (l->mode != MODE_STARTUP && line->n_args > 1) {
        dgm_cli_refuse(line, "COMMAND is only for --mode startup");
        return false;
    }
    if (l->api != dgm_load_api("a2a") && (l->mode == MODE_GET || l->mode == MODE_HOLD)) {
        dgm_cli_refuse(line, "--mode %s is only for --api a2a", dgm_cli_get(line, "mode"));
        return false;
    }
    if (!l->api->send && l->mode != MODE_STREAM) {
        dgm_cli_refuse(line, "%s supports only streams: --mode stream", l->api->name);
        return false;
    }
    l->command = dgm_xcalloc(line->n_args, sizeof *l->command); /* execvp wants a NULL behind it */
    memcpy(l->command, line->args + 1, (line->n_args - 1) * sizeof *l->command);
    return read_url(line, l);
}

/* ---- the command ---------------------------------------------------------------------------------------- */

static const char *word_of(const dgm_cli_line *line, const char *option, const char *otherwise)
{
    const char *word = dgm_cli_get(line, option);
    return word ? word : otherwise;
}

int dgm_load_bench(const dgm_cli_line *line)
{
    struct load *l = dgm_xcalloc(1, sizeof *l);
    int status = DGM_CLI_MISUSED;
    dgm_buf_init(&l->request, SIZE_MAX);
    l->mode = mode_of(dgm_cli_get(line, "mode"));
    l->text = word_of(line, "text", default_text(l->mode));
    l->api = dgm_load_api(word_of(line, "api", "a2a"));
    l->model = word_of(line, "model", "bench");
    l->expected = dgm_cli_get(line, "expect");
    l->token = dgm_cli_get(line, "token");
    l->url = line->args[0];
    l->json = dgm_cli_get(line, "json");
    l->seconds = 5;
    l->n_connections = 16;
    if (options(line, l)) {
        bool ran = false;
        if (dgm_load_prepare(l))
            ran = l->mode == MODE_STARTUP ? dgm_load_startup(l) : dgm_load_run(l);
        if (ran)
            dgm_load_report(l, stdout);
        if (l->first_error[0])
            dgm_cli_complain("%s", l->first_error);
        status = ran && !l->errors && (l->requests || l->events) ? DGM_CLI_OK : DGM_CLI_FAILED;
    }
    dgm_buf_done(&l->request);
    free(l->command);
    free(l);
    return status;
}
