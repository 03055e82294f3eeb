/* app/mcp/mcp_command.c - `dragoman mcp list [SERVER]` and `dragoman mcp call SERVER TOOL [ARGUMENTS]`. */
#include "app/mcp/mcp_command.h"
#include "app/mcp/mcp_work.h"
#include "config/config.h"
#include "config/mcp_servers.h"

#include <string.h>
#include <unistd.h>

struct command {
    const dgm_cli_line *line;
    const dgm_config *config;
    bool is_json, is_verbose;
    size_t n_answers; /* used */
    char typed[4096];
    dgm_buf json; /* the list of all servers */
};

static void command_on_log(void *user, dgm_str text)
{
    struct command *c = user;
    if (c->is_verbose)
        fprintf(stderr, "%.*s\n", DGM_P(text));
}

/* ---- servers ------------------------------------------------------------------------------------------ */

/* NULL: there are errors, which were reported. */
static dgm_config *load_config(const dgm_cli_line *line)
{
    const char *file = dgm_cli_get(line, "config");
    dgm_config *c =
        dgm_config_load(&(dgm_config_source){.file = file ? file : dgm_config_default_file()});
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < c->n_findings; i++) {
        if (c->findings[i].is_warning)
            continue;
        dgm_buf_clear(&b);
        dgm_config_finding_put(&b, &c->findings[i]);
        dgm_cli_complain("%.*s", DGM_P(dgm_buf_str(&b)));
    }
    dgm_buf_done(&b);
    if (!c->n_errors)
        return c;
    dgm_config_free(c);
    return NULL;
}

static bool is_url(const char *name)
{
    return strncmp(name, "http://", 7) == 0 || strncmp(name, "https://", 8) == 0;
}

static const dgm_config_mcp *find_server(const dgm_config *c, const char *name)
{
    for (size_t i = 0; i < c->mcp.n; i++) {
        if (dgm_str_eq(c->mcp.at[i].name, dgm_str_from(name)))
            return &c->mcp.at[i];
    }
    return NULL;
}

/* Opens a server of the configuration, or any URL. */
static bool open_server(struct command *c, const dgm_config_mcp *server, dgm_mcp_work *w)
{
    dgm_mcp *mcp = NULL;
    dgm_err err = {0};
    if (dgm_mcp_server_open(c->config, server, command_on_log, c, &mcp, &err) ||
        dgm_mcp_work_start(w, mcp, &err)) {
        dgm_cli_complain("%.*s: %s%s%s", DGM_P(server->name), err.at, *err.at ? ": " : "", err.msg);
        return false;
    }
    return true;
}

static const dgm_config_mcp *named_server(struct command *c, const char *name,
                                          dgm_config_mcp *of_url)
{
    const dgm_config_mcp *found;
    if (is_url(name)) {
        *of_url = (dgm_config_mcp){.name = DGM_STR("server"),
                                   .url = dgm_str_from(name),
                                   .timeout_s = 60,
                                   .share = DGM_CONFIG_SHARE_SERVER};
        return of_url;
    }
    if (!(found = find_server(c->config, name))) {
        dgm_cli_complain("unknown MCP server '%s': %s", name,
                         c->config->mcp.n ? "`mcp` of the configuration does not list it"
                                          : "the configuration has no `mcp`");
        dgm_cli_hint("a URL works, too: dragoman mcp list https://mcp.example.com/mcp");
    }
    return found;
}

/* ---- list --------------------------------------------------------------------------------------------- */

static void put_tool_json(dgm_buf *b, dgm_str server, const dgm_mcp_tool *t)
{
    dgm_buf_add_lit(b, "{\"server\":");
    dgm_json_put_str(b, server);
    dgm_buf_add_lit(b, ",\"name\":");
    dgm_json_put_str(b, t->name);
    dgm_buf_add_lit(b, ",\"tool\":");
    dgm_json_put_str(b, t->own_name);
    dgm_buf_add_lit(b, ",\"description\":");
    dgm_json_put_str(b, t->description);
    dgm_buf_add_lit(b, ",\"inputSchema\":");
    dgm_json_put(b, t->input_schema);
    dgm_buf_add_char(b, '}');
}

static void print_tool(const dgm_mcp_tool *t)
{
    dgm_str about = t->description.n ? t->description : t->title;
    const char *end = about.n ? memchr(about.p, '\n', about.n) : NULL;
    about.n = end ? (size_t)(end - about.p) : about.n;
    printf("%.*s\n", DGM_P(t->name));
    if (about.n)
        printf("    %.*s\n", DGM_P(about));
}

static bool list_one(struct command *c, const dgm_config_mcp *server)
{
    dgm_mcp_work w = {0};
    if (!open_server(c, server, &w))
        return false;
    bool ok = dgm_mcp_work_list(&w);
    if (!ok)
        dgm_cli_complain("%.*s", DGM_P(w.error.message));
    for (size_t i = 0; i < w.tools.n; i++) {
        if (c->is_json && c->json.n > 1)
            dgm_buf_add_char(&c->json, ',');
        if (c->is_json)
            put_tool_json(&c->json, server->name, &w.tools.at[i]);
        else
            print_tool(&w.tools.at[i]);
    }
    if (ok && !w.tools.n && !c->is_json)
        printf("%.*s has no tools\n", DGM_P(server->name));
    dgm_mcp_work_stop(&w);
    return ok;
}

static int command_list(struct command *c)
{
    const char *name = c->line->n_args > 1 ? c->line->args[1] : NULL;
    dgm_config_mcp of_url;
    const dgm_config_mcp *server;
    bool ok = true;
    if (c->line->n_args > 2)
        return dgm_cli_refuse(c->line, "list has one argument at most: SERVER");
    if (!name && !c->config->mcp.n)
        dgm_cli_hint("the configuration has no `mcp`: see docs/mcp.md");
    dgm_buf_init(&c->json, SIZE_MAX);
    dgm_buf_add_char(&c->json, '[');
    if (name) {
        ok = (server = named_server(c, name, &of_url)) && list_one(c, server);
    } else {
        for (size_t i = 0; i < c->config->mcp.n; i++)
            ok &= list_one(c, &c->config->mcp.at[i]);
    }
    if (c->is_json && (ok || !name))
        printf("%.*s]\n", DGM_P(dgm_buf_str(&c->json)));
    dgm_buf_done(&c->json);
    return ok ? DGM_CLI_OK : DGM_CLI_FAILED;
}

/* ---- call --------------------------------------------------------------------------------------------- */

/* --answer, or a line that is typed; NULL: decline. */
static const char *command_on_ask(void *user, const dgm_mcp_ask *ask)
{
    struct command *c = user;
    const char *answer = dgm_cli_get_nth(c->line, "answer", c->n_answers);
    fprintf(stderr, "The MCP server asks: %.*s\n", DGM_P(ask->message));
    if (ask->kind == DGM_MCP_ASK_URL)
        fprintf(stderr, "Open this page first: %.*s\n", DGM_P(ask->url));
    if (answer) {
        c->n_answers++;
        return answer;
    }
    if (!isatty(0)) {
        fprintf(stderr, "No answer was given (--answer), so it is declined.\n");
        return NULL;
    }
    fprintf(stderr, ask->kind == DGM_MCP_ASK_URL ? "Continue? Enter, or n: "
                                                 : "JSON object, or an empty line to decline: ");
    if (!fgets(c->typed, sizeof c->typed, stdin))
        return NULL;
    c->typed[strcspn(c->typed, "\n")] = '\0';
    if (ask->kind == DGM_MCP_ASK_URL)
        return c->typed[0] == 'n' ? NULL : "{}";
    return c->typed[0] ? c->typed : NULL;
}

static void put_part_json(dgm_buf *b, const dgm_part *p)
{
    static const char *const keys[] = {"text", "text", "raw", "url", "data"};
    dgm_buf_printf(b, "{\"%s\":", keys[p->kind]);
    if (p->kind == DGM_PART_DATA)
        dgm_json_put(b, p->data);
    else
        dgm_json_put_str(b, p->content);
    if (p->media_type.n) {
        dgm_buf_add_lit(b, ",\"mediaType\":");
        dgm_json_put_str(b, p->media_type);
    }
    if (p->filename.n) {
        dgm_buf_add_lit(b, ",\"filename\":");
        dgm_json_put_str(b, p->filename);
    }
    dgm_buf_add_char(b, '}');
}

static void print_result_json(const dgm_mcp_result *r)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"parts\":[");
    for (size_t i = 0; i < r->parts.n; i++) {
        if (i)
            dgm_buf_add_char(&b, ',');
        put_part_json(&b, &r->parts.at[i]);
    }
    dgm_buf_add_char(&b, ']');
    if (r->structured) {
        dgm_buf_add_lit(&b, ",\"structured\":");
        dgm_json_put(&b, r->structured);
    }
    dgm_buf_printf(&b, ",\"isError\":%s}\n", r->is_error ? "true" : "false");
    fwrite(b.p, 1, b.n, stdout);
    dgm_buf_done(&b);
}

static void print_result(const dgm_mcp_result *r)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    for (size_t i = 0; i < r->parts.n; i++) {
        const dgm_part *p = &r->parts.at[i];
        if (p->kind == DGM_PART_RAW)
            printf("[%.*s, %zu bytes]\n", DGM_P(p->media_type.n ? p->media_type : DGM_STR("file")),
                   p->content.n / 4 * 3);
        else if (p->kind == DGM_PART_DATA)
            printf("%s\n", dgm_json_text_in(a, p->data).p);
        else
            printf("%.*s\n", DGM_P(p->content));
    }
}

static int call_tool(struct command *c, dgm_mcp_work *w, const char *tool,
                     const dgm_json *arguments)
{
    w->on_ask = command_on_ask;
    w->user = c;
    w->shows_progress = true;
    if (!dgm_mcp_work_call(w, dgm_str_from(tool), arguments)) {
        dgm_cli_complain("%.*s%s", DGM_P(w->error.message),
                         w->error.is_outcome_unknown ? " (the tool may have run)" : "");
        return DGM_CLI_FAILED;
    }
    if (c->is_json)
        print_result_json(&w->result);
    else
        print_result(&w->result);
    return w->result.is_error ? DGM_CLI_FAILED : DGM_CLI_OK;
}

static int command_call(struct command *c)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    const char *text = c->line->n_args > 3 ? c->line->args[3] : "{}";
    const dgm_config_mcp *server;
    dgm_config_mcp of_url;
    yyjson_val *arguments;
    dgm_mcp_work w = {0};
    dgm_err err = {0};
    if (c->line->n_args < 3)
        return dgm_cli_refuse(c->line, "call needs SERVER and TOOL");
    if (dgm_json_read(a, dgm_str_from(text), DGM_MAX_RECORD_BYTES, "record_bytes", &arguments,
                      &err) ||
        !yyjson_is_obj(arguments))
        return dgm_cli_refuse(c->line, "ARGUMENTS is not a JSON object: %s",
                              *err.msg ? err.msg : text);
    if (!(server = named_server(c, c->line->args[1], &of_url)) || !open_server(c, server, &w))
        return DGM_CLI_FAILED;
    int status = call_tool(c, &w, c->line->args[2], arguments);
    dgm_mcp_work_stop(&w);
    return status;
}

int dgm_mcp_command(const dgm_cli_line *line)
{
    dgm_auto(dgm_config_free) dgm_config *config = load_config(line);
    struct command c = {.line = line,
                        .config = config,
                        .is_json = dgm_cli_get(line, "json"),
                        .is_verbose = dgm_cli_get(line, "verbose")};
    if (!config)
        return DGM_CLI_FAILED;
    return strcmp(line->args[0], "list") == 0 ? command_list(&c) : command_call(&c);
}
