/* app/client/client_connect.c - `dragoman connect`: prints the configuration for an agent at an address. */
#include "app/client/client_connect.h"

#include <ctype.h>
#include <stdlib.h>

#define TIMEOUT_S 10

static const char *const formats[] = {[FOUND_AGUI] = "ag-ui",
                                      [FOUND_RESPONSES] = "openai-responses",
                                      [FOUND_CHAT] = "openai-chat",
                                      [FOUND_AISDK] = "ai-sdk"};

/* ---- settings ------------------------------------------------------------------------------------------------------ */

struct setting {
    const char *name, *value; /* NULL: it is not set */
};

#define MAX_SETTINGS 10

static size_t connect_settings_of(const connection *c, const finding *f, struct setting *to)
{
    const dgm_cli_line *line = c->p.line;
    const char *proxy = dgm_cli_get(line, "proxy");
    const struct setting all[] = {
        {"url", f->url},
        {"format", f->kind == FOUND_A2A ? NULL : formats[f->kind]},
        {"model", f->model},
        {"card", f->protocol ? "none" : NULL},
        {"protocol", f->protocol},
        {"binding", f->binding},
        {"token_env", c->token_env},
        {"token_header", c->token_env ? f->token_header : NULL},
        {"ca_file", dgm_cli_get(line, "ca-file")},
        {"proxy", proxy && *proxy ? proxy : NULL},
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].value)
            to[n++] = all[i];
    }
    return n;
}

/* The name of a header and a variable for its value, which may be a secret: X-Api-Key, X_API_KEY. */
static void connect_put_header(dgm_buf *b, const char *line)
{
    size_t n = strcspn(line, ":");
    dgm_json_put_str(b, (dgm_str){line, n});
    dgm_buf_add_lit(b, ": \"${");
    for (size_t i = 0; i < n; i++)
        dgm_buf_add_char(b, isalnum((unsigned char)line[i]) ? (char)toupper(line[i]) : '_');
    dgm_buf_add_lit(b, "}\"");
}

static void connect_put_headers(dgm_buf *b, const connection *c)
{
    const char *one;
    dgm_buf_add_char(b, '{');
    for (size_t i = 0; (one = dgm_cli_get_nth(c->p.line, "header", i)); i++) {
        if (i)
            dgm_buf_add_lit(b, ", ");
        connect_put_header(b, one);
    }
    dgm_buf_add_char(b, '}');
}

static const char *connect_type_of(const finding *f)
{
    return f->kind == FOUND_A2A ? "a2a" : "http";
}

/* ---- YAML ------------------------------------------------------------------------------------------------------------ */

/* Text of a server in a comment: one line. */
static void connect_put_comment(dgm_buf *b, const char *text)
{
    dgm_buf_add_lit(b, "# ");
    for (; *text; text++)
        dgm_buf_add_char(b, (unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text);
    dgm_buf_add_char(b, '\n');
}

static void connect_put_agent(dgm_buf *b, const connection *c, const finding *f, const char *before)
{
    struct setting settings[MAX_SETTINGS];
    size_t n = connect_settings_of(c, f, settings);
    dgm_buf_printf(b, "%s- id: %s\n%s  type: %s\n%s  settings:\n", before, f->id, before,
                   connect_type_of(f), before);
    for (size_t i = 0; i < n; i++) {
        dgm_buf_printf(b, "%s    %s: ", before, settings[i].name);
        dgm_json_put_str(b, dgm_str_from(settings[i].value));
        dgm_buf_add_char(b, '\n');
    }
    if (dgm_cli_get_nth(c->p.line, "header", 0)) {
        dgm_buf_printf(b, "%s    headers: ", before);
        connect_put_headers(b, c);
        dgm_buf_add_char(b, '\n');
    }
}

static void connect_put_yaml(dgm_buf *b, const connection *c)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    for (size_t i = 0; i < c->n_findings; i++) {
        const finding *f = &c->findings[i];
        if (i)
            dgm_buf_add_lit(b, "\n# Or, instead of the agent above:\n");
        connect_put_comment(b, dgm_arena_printf(a, "%s speaks %s.", f->url, f->title).p);
        if (f->note)
            connect_put_comment(b, f->note);
        if (f->kind == FOUND_AGUI)
            connect_put_comment(
                b, "If it needs a client older than AG-UI 1.0, write format: ag-ui-0.");
        if (!i)
            dgm_buf_add_lit(b, "agents:\n");
        connect_put_agent(b, c, f, i ? "# " : "");
        if (!i && f->allow)
            dgm_buf_printf(b, "outbound:\n  allow: [\"%s\"] # the address that the card names\n",
                           f->allow);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------ */

static void put_json_member(dgm_buf *b, const char *name, const char *value)
{
    dgm_buf_printf(b, "\"%s\": ", name);
    dgm_json_put_str(b, dgm_str_from(value));
}

static void put_json_finding(dgm_buf *b, const connection *c, const finding *f)
{
    struct setting settings[MAX_SETTINGS];
    size_t n = connect_settings_of(c, f, settings);
    dgm_buf_add_lit(b, "{");
    put_json_member(b, "found", f->title);
    dgm_buf_add_lit(b, ", \"agent\": {");
    put_json_member(b, "id", f->id);
    dgm_buf_add_lit(b, ", ");
    put_json_member(b, "type", connect_type_of(f));
    dgm_buf_add_lit(b, ", \"settings\": {");
    for (size_t i = 0; i < n; i++) {
        if (i)
            dgm_buf_add_lit(b, ", ");
        put_json_member(b, settings[i].name, settings[i].value);
    }
    if (dgm_cli_get_nth(c->p.line, "header", 0)) {
        dgm_buf_add_lit(b, ", \"headers\": ");
        connect_put_headers(b, c);
    }
    dgm_buf_add_lit(b, "}}");
    if (f->allow) {
        dgm_buf_add_lit(b, ", \"outbound\": {\"allow\": [");
        dgm_json_put_str(b, dgm_str_from(f->allow));
        dgm_buf_add_lit(b, "]}");
    }
    dgm_buf_add_char(b, '}');
}

static void connect_put_json(dgm_buf *b, const connection *c)
{
    dgm_buf_add_lit(b, "{");
    put_json_member(b, "url", c->p.address);
    dgm_buf_add_lit(b, ",\n \"findings\": [");
    for (size_t i = 0; i < c->n_findings; i++) {
        dgm_buf_add_str(b, dgm_str_from(i ? ",\n  " : "\n  "));
        put_json_finding(b, c, &c->findings[i]);
    }
    dgm_buf_add_lit(b, "],\n \"requests\": [");
    for (size_t i = 0; i < c->n_probes; i++) {
        const probe *at = &c->probes[i];
        dgm_buf_add_str(b, dgm_str_from(i ? ",\n  {" : "\n  {"));
        put_json_member(b, "for", at->what);
        dgm_buf_add_lit(b, ", ");
        put_json_member(b, "method", at->method);
        dgm_buf_add_lit(b, ", ");
        put_json_member(b, "url", at->url);
        dgm_buf_printf(b, ", \"status\": %ld, ", at->status);
        dgm_buf_add_lit(b, "\"contentType\": ");
        dgm_json_put_str(b, at->type);
        dgm_buf_add_lit(b, ", ");
        put_json_member(b, "result", at->result);
        dgm_buf_add_char(b, '}');
    }
    dgm_buf_add_lit(b, "]}\n");
}

/* ---- nothing fits --------------------------------------------------------------------------------------------------------- */

static bool any_status(const connection *c, long status)
{
    for (size_t i = 0; i < c->n_probes; i++) {
        if (c->probes[i].status == status)
            return true;
    }
    return false;
}

static int report_nothing(const connection *c)
{
    dgm_cli_complain("found no agent at %s. Requests and their answers:", c->p.address);
    for (size_t i = 0; i < c->n_probes; i++) {
        const probe *at = &c->probes[i];
        dgm_cli_complain("  %s: %s %s: %s", at->what, at->method, at->url, at->result);
    }
    if (c->is_refused)
        dgm_cli_hint("it needs credentials: --token-env VARIABLE, or --header 'NAME: VALUE'");
    else if (any_status(c, 405) || any_status(c, 404))
        dgm_cli_hint("use the address of the agent itself, with its path, as in "
                     "http://127.0.0.1:9000/agent");
    else
        dgm_cli_hint(
            "supported: A2A 1.0 and 0.3, AG-UI, OpenAI Chat Completions and Responses, and the "
            "AI SDK; a program can be connected with `dragoman init exec`");
    return DGM_CLI_FAILED;
}

/* ---- the command -------------------------------------------------------------------------------------------------------------- */

static int connect_begin(connection *c, const dgm_cli_line *line)
{
    const char *token = NULL;
    c->token_env = dgm_cli_get(line, "token-env");
    if (!c->token_env && getenv("DRAGOMAN_TOKEN"))
        c->token_env = "DRAGOMAN_TOKEN";
    if (c->token_env && !(token = getenv(c->token_env)))
        return dgm_cli_refuse(line, "--token-env %s: the environment has no variable of this name",
                              c->token_env);
    int status = dgm_peer_begin(&c->p, line, line->args[0], token,
                                (struct http_settings){.timeout_s = TIMEOUT_S,
                                                       .ca_file = dgm_cli_get(line, "ca-file"),
                                                       .proxy = dgm_cli_get(line, "proxy")});
    if (status)
        return status;
    size_t n = strcspn(c->p.address, "?#");
    while (n && c->p.address[n - 1] == '/')
        n--;
    c->base = dgm_arena_printf(c->p.arena, "%.*s", (int)n, c->p.address).p;
    return strstr(c->base, "://") ? DGM_CLI_OK
                                  : dgm_cli_refuse(line, "%s: this URL has no host", c->p.address);
}

static int connect_print(const connection *c)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    if (dgm_cli_get(c->p.line, "json"))
        connect_put_json(&b, c);
    else
        connect_put_yaml(&b, c);
    fwrite(b.p, 1, b.n, stdout); /* main() checks standard output */
    dgm_buf_done(&b);
    return c->n_findings ? DGM_CLI_OK : DGM_CLI_FAILED;
}

static int by_preference(const void *a, const void *b)
{
    return (int)((const finding *)a)->kind - (int)((const finding *)b)->kind;
}

int dgm_client_connect(const dgm_cli_line *line)
{
    connection *c = dgm_xcalloc(1, sizeof *c);
    dgm_err err = {0};
    int status = connect_begin(c, line);
    if (!status && dgm_connect_probe(c, &err))
        status = dgm_peer_report_error(&c->p, &err);
    if (!status) {
        qsort(c->findings, c->n_findings, sizeof *c->findings, by_preference);
        status = c->n_findings || dgm_cli_get(line, "json") ? connect_print(c) : report_nothing(c);
    }
    if (c->p.arena)
        dgm_peer_close(&c->p);
    free(c);
    return status;
}
