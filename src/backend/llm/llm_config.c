/* backend/llm/llm_config.c - the settings of an llm agent. */
#include "backend/llm/llm_int.h"
#include "backend/llm/mock.h"
#include "base/limits.h"

#include <ctype.h>
#include <stdio.h>

#define MAX_UPSTREAMS 8
#define MAX_TOOL_SETTINGS 64

struct llm_settings {
    struct llm_upstream first;
    const dgm_json *upstreams, *parameters, *tools, *approve, *forbid;
    dgm_str instructions;
    int64_t max_iterations, max_tokens, parallel_tools, retries, context_tokens;
    double max_time;
    int ask_user, request_auth;
};

/* The settings of a server, for the first one and for those of `upstreams`. */
#define UPSTREAM_SETTINGS(T, u)                                                                    \
    {"base_url", DGM_SETTING_STR, offsetof(T, u.remote.url), .def = "",                            \
     .about = "the URL in front of `/chat/completions` or `/responses`; `mock:` is the scripted "  \
              "model, which needs no server"},                                                     \
        {"api",                                                                                    \
         DGM_SETTING_CHOICE,                                                                       \
         offsetof(T, u.api),                                                                       \
         .choices = "chat|responses",                                                              \
         .def = "chat",                                                                            \
         .about = "the API that it has: Chat Completions or Responses"},                           \
        {"model", DGM_SETTING_STR, offsetof(T, u.model), .def = "",                                \
         .about = "the name of the model"},                                                        \
        {"api_key_env", DGM_SETTING_STR, offsetof(T, u.remote.token_env), .def = "",               \
         .about = "the environment variable that has the key"},                                    \
        {"api_key_file", DGM_SETTING_STR, offsetof(T, u.remote.token_file), .def = "",             \
         .about = "the file whose first line is the key"},                                         \
        {"send_reasoning",                                                                         \
         DGM_SETTING_CHOICE,                                                                       \
         offsetof(T, u.send_reasoning),                                                            \
         .choices = "false|true",                                                                  \
         .def = "false",                                                                           \
         .about = "the reasoning of the model is sent back with its turns, as "                    \
                  "`reasoning_content`: some servers of `chat` require this"},                     \
        DGM_REMOTE_HEADER_SETTINGS(T, u.remote)

#define LIMIT(member) offsetof(struct llm_settings, member)

static const dgm_setting limit_rows[] = {
    {"max_iterations", DGM_SETTING_INT, LIMIT(max_iterations), .min = 1, .max = 1000, .def = "25",
     .about = "calls of the model in one task that may ask for tools"},
    {"max_tokens", DGM_SETTING_INT, LIMIT(max_tokens), .max = 1e12, .def = "no limit",
     .about = "tokens of all model calls of a task, input and output"},
    {"max_time", DGM_SETTING_NUMBER, LIMIT(max_time), .max = 604800, .def = "no limit",
     .about = "seconds that a turn may take; then the task fails"},
    {"parallel_tools", DGM_SETTING_INT, LIMIT(parallel_tools), .min = 1, .max = 64, .def = "4",
     .about = "tools of a task that run at the same time"},
    {0},
};

static const dgm_setting upstream_rows[] = {UPSTREAM_SETTINGS(struct llm_settings, first), {0}};

struct llm_mcp_setting {
    dgm_str server;
    const dgm_json *only;
};

static const dgm_setting mcp_rows[] = {
    {"server", DGM_SETTING_STR, offsetof(struct llm_mcp_setting, server), .required = true,
     .about = "its name in `mcp` of the configuration"},
    {"only", DGM_SETTING_NAMES, offsetof(struct llm_mcp_setting, only), .choices = "",
     .def = "all of them", .about = "names of its tools; the others are not offered to the model"},
    {0},
};

static const dgm_setting tool_rows[] = {
    {"exec", DGM_SETTING_OBJECT, .of = dgm_tool_exec_settings, .def = "",
     .about = "a program: the arguments of the call are JSON on its stdin"},
    {"http", DGM_SETTING_OBJECT, .of = dgm_tool_http_settings, .def = "", .about = "a request"},
    {"mcp", DGM_SETTING_OBJECT, .of = mcp_rows, .def = "", .about = "some tools of an MCP server"},
    {"agent", DGM_SETTING_STR, .def = "",
     .about = "another agent: the id of one of this server, or the URL of an A2A agent"},
    {0},
};

#define AT(member) offsetof(struct llm_settings, member)

const dgm_setting dgm_llm_settings[] = {
    UPSTREAM_SETTINGS(struct llm_settings, first),
    {"instructions", DGM_SETTING_STR, AT(instructions), .def = "",
     .about = "the system prompt of the model"},
    {"parameters", DGM_SETTING_JSON, AT(parameters), .def = "{}",
     .about = "further members of every request: `temperature`, `max_tokens`, `reasoning_effort`, "
              "... A caller that sends its own has priority"},
    {"tools", DGM_SETTING_VARIANTS, AT(tools), .max = MAX_TOOL_SETTINGS, .of = tool_rows,
     .def = "[]",
     .about = "the tools of the model: each entry is the name of an MCP server, whose tools are "
              "all offered, or one of the following"},
    {"approve", DGM_SETTING_NAMES, AT(approve), .choices = "always|never", .def = "never",
     .about = "tools whose calls a person must approve: `always` (all of them), `never`, or a list "
              "of names of tools and MCP servers"},
    {"forbid", DGM_SETTING_NAMES, AT(forbid), .choices = "", .def = "[]",
     .about = "tools and MCP servers that may not be called: a call ends the task as rejected"},
    {"ask_user", DGM_SETTING_CHOICE, AT(ask_user), .choices = "false|true", .def = "false",
     .about = "the model has a tool to ask the user a question: the task is `input-required`"},
    {"request_auth", DGM_SETTING_CHOICE, AT(request_auth), .choices = "false|true", .def = "false",
     .about = "the model has a tool to ask the user to sign in somewhere: the task is "
              "`auth-required`"},
    {"upstreams", DGM_SETTING_LIST, AT(upstreams), .max = MAX_UPSTREAMS, .of = upstream_rows,
     .def = "[]",
     .about = "further servers, tried in order when the one before fails before any text was "
              "shown. Times, certificates and proxy are those of the agent"},
    {"retries", DGM_SETTING_INT, AT(retries), .max = 10, .def = "2",
     .about = "how often a model call is repeated after status 429, 5xx or a broken connection, as "
              "long as no text was shown"},
    {"limits", DGM_SETTING_OBJECT, .of = limit_rows, .def = "{}", .about = "limits of a task"},
    {"context_tokens", DGM_SETTING_INT, AT(context_tokens), .max = 1e9, .def = "never",
     .about = "when a model call has more input tokens, the conversation is replaced by a summary"},
    DGM_REMOTE_TIME_SETTINGS(struct llm_settings, first.remote),
    DGM_REMOTE_TLS_SETTINGS(struct llm_settings, first.remote),
    {0},
};
#undef AT

static yyjson_val *llm_plain(const dgm_json *v) /* yyjson's readers do not say const */
{
    return (yyjson_val *)(uintptr_t)v;
}

/* ---- servers of the model ------------------------------------------------------------------------------------------ */

/* The path follows that of the base; a query (some clouds have one: ?api-version=...) stays at the end. */
static dgm_str url_of_calls(dgm_arena *a, dgm_str base, const char *path)
{
    const char *query = memchr(base.p, '?', base.n);
    dgm_str before = {base.p, query ? (size_t)(query - base.p) : base.n};
    dgm_str rest = {base.p + before.n, base.n - before.n};
    while (before.n && before.p[before.n - 1] == '/')
        before.n--;
    return dgm_arena_printf(a, "%.*s%s%.*s", DGM_P(before), path, DGM_P(rest));
}

static dgm_code open_upstream(struct llm_agent *x, struct llm_upstream *u,
                              const dgm_agent_options *options, dgm_err *err)
{
    dgm_str base = u->remote.url;
    dgm_code rc;
    u->model = dgm_arena_dup(x->arena, u->model);
    u->remote.retries = 0; /* the loop decides */
    u->remote.url_setting = "base_url";
    u->remote.token_env_setting = "api_key_env";
    u->remote.token_file_setting = "api_key_file";
    u->is_mock = dgm_mock_is(base.n ? base : u->model);
    if (u->is_mock && u->api != DGM_MODEL_CHAT)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "api"),
                        "the scripted model has only the API chat");
    if (u->is_mock) {
        u->model = u->model.n ? u->model : DGM_STR("mock");
        return DGM_OK;
    }
    if (!base.n)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "base_url"),
                        "the URL of the model's server is missing (`mock:` needs none)");
    if (!u->model.n)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "model"),
                        "the name of the model is missing");
    if ((rc = dgm_remote_open(&u->remote, options, x->arena, err)))
        return rc;
    u->url = url_of_calls(x->arena, base, dgm_model_api_path((dgm_model_api)u->api));
    u->source = dgm_arena_printf(x->arena, "%.*s %.*s", DGM_P(u->url), DGM_P(u->model));
    return DGM_OK;
}

/* An error in the element of a list: its place is below that of the list. */
static dgm_code below_list(dgm_err *err, const char *list, size_t i)
{
    dgm_err inner = *err;
    snprintf(err->at, sizeof err->at, "/%s/%zu%.200s", list, i, inner.at);
    return err->code;
}

static dgm_code open_upstreams(struct llm_agent *x, const struct llm_settings *s,
                               const dgm_agent_options *options, dgm_err *err)
{
    yyjson_val *item;
    size_t i, n;
    dgm_code rc;
    dgm_err inner = {0};
    x->upstreams =
        dgm_new_n(x->arena, struct llm_upstream, yyjson_arr_size(llm_plain(s->upstreams)) + 1);
    x->upstreams[0] = s->first;
    if ((rc = open_upstream(x, &x->upstreams[x->n_upstreams++], options, err)))
        return rc;
    yyjson_arr_foreach (llm_plain(s->upstreams), i, n, item) {
        struct llm_settings more = {.first = s->first};
        struct llm_upstream *u = &more.first;
        u->model = u->remote.token_env = u->remote.token_file = u->remote.token_header =
            (dgm_str){0};
        u->remote.headers = NULL;
        u->api = DGM_MODEL_CHAT;
        u->send_reasoning = 0;
        if ((rc = dgm_settings_read(item, upstream_rows, &more, &inner)) ||
            (rc = open_upstream(x, u, options, &inner))) {
            if (err)
                *err = inner;
            return err ? below_list(err, "upstreams", i) : rc;
        }
        x->upstreams[x->n_upstreams++] = *u;
    }
    return DGM_OK;
}

/* ---- tools ----------------------------------------------------------------------------------------------------------- */

static struct llm_tool_setting *add_tool(struct llm_agent *x, enum llm_tool_type type)
{
    struct llm_tool_setting *t = &x->tools[x->n_tools++];
    t->type = type;
    return t;
}

static dgm_code add_mcp(struct llm_agent *x, const dgm_agent_options *options, dgm_str name,
                        const dgm_json *only, const dgm_at *at, dgm_err *err)
{
    for (size_t i = 0; options && i < options->n_mcp; i++) {
        if (!dgm_str_eq(options->mcp[i].name, name))
            continue;
        struct llm_tool_setting *t = add_tool(x, LLM_TOOL_MCP);
        t->name = dgm_arena_dup(x->arena, name);
        t->mcp = options->mcp[i].server;
        t->only = only ? dgm_json_copy(x->arena, only) : NULL;
        return DGM_OK;
    }
    return dgm_fail(err, DGM_BAD_PARAMS, at,
                    "unknown MCP server \"%.*s\": `mcp` of the configuration does not list it",
                    (int)(name.n < 80 ? name.n : 80), name.p);
}

/* The name of a tool in OpenAI's APIs: letters, digits, _ and -, at most 64. */
static dgm_str tool_name_of(dgm_arena *a, dgm_str text)
{
    dgm_str name = dgm_arena_dup(a, (dgm_str){text.p, text.n < 64 ? text.n : 64});
    char *p = (char *)(uintptr_t)name.p;
    for (size_t i = 0; i < name.n; i++) {
        if (!isalnum((unsigned char)p[i]) && p[i] != '_' && p[i] != '-')
            p[i] = '_';
    }
    return name;
}

static bool is_web_url(dgm_str s)
{
    return dgm_str_starts(s, DGM_STR("https://")) || dgm_str_starts(s, DGM_STR("http://"));
}

/* An agent of another server is opened as an agent of the type a2a, without further settings. */
static dgm_code add_remote_agent(struct llm_agent *x, const dgm_agent_options *options, dgm_str url,
                                 const dgm_at *at, dgm_err *err)
{
    dgm_member member = {DGM_STR("url"), dgm_json_make_string(x->arena, url)};
    dgm_agent_options plain = {.reply = DGM_REPLY_TASK};
    dgm_err why = {0};
    void *agent;
    dgm_str host = {url.p + (url.p[4] == 's' ? 8 : 7), 0};
    host.n = strcspn(host.p, "/?#:");
    if (options)
        plain.outbound_allow = options->outbound_allow;
    if (dgm_backend_a2a.open(dgm_json_object(x->arena, &member, 1), &plain, &agent, &why))
        return dgm_fail(err, DGM_BAD_PARAMS, at, "%s", why.msg);
    struct llm_tool_setting *t = add_tool(x, LLM_TOOL_REMOTE_AGENT);
    t->remote = agent;
    t->agent = url;
    t->name = tool_name_of(x->arena, host);
    t->description = dgm_arena_printf(
        x->arena, "Sends a message to the agent at %.*s and returns its answer.", DGM_P(host));
    return DGM_OK;
}

static dgm_code add_agent(struct llm_agent *x, const dgm_agent_options *options, dgm_str agent,
                          const dgm_at *at, dgm_err *err)
{
    agent = dgm_arena_dup(x->arena, agent);
    if (is_web_url(agent))
        return add_remote_agent(x, options, agent, at, err);
    for (size_t i = 0; options && i < options->n_peers; i++) {
        const dgm_agent_peer *peer = &options->peers[i];
        if (!dgm_str_eq(peer->id, agent))
            continue;
        struct llm_tool_setting *t = add_tool(x, LLM_TOOL_LOCAL_AGENT);
        t->agent = agent;
        t->name = tool_name_of(x->arena, agent);
        t->description = dgm_arena_printf(
            x->arena, "Sends a message to the agent %.*s and returns its answer.%s%.*s",
            DGM_P(peer->name.n ? peer->name : agent),
            peer->description.n ? " About the agent: " : "", DGM_P(peer->description));
        return DGM_OK;
    }
    return dgm_fail(err, DGM_BAD_PARAMS, at,
                    "unknown agent \"%.*s\": expected the id of an agent of this server, or a URL",
                    (int)(agent.n < 80 ? agent.n : 80), agent.p);
}

/* exec or http */
static dgm_code add_own(struct llm_agent *x, const dgm_agent_options *options, yyjson_val *v,
                        const dgm_at *at, dgm_err *err)
{
    dgm_tool *tool;
    dgm_err inner = {0};
    dgm_code rc = dgm_tool_open(v, options, &tool, &inner);
    if (rc && err) {
        *err = inner;
        snprintf(err->at, sizeof err->at, "/tools/%zu%.200s", at->i, inner.at);
    }
    if (rc)
        return rc;
    struct llm_tool_setting *t = add_tool(x, LLM_TOOL_OWN);
    t->tool = tool;
    t->name = dgm_tool_info_of(tool)->name;
    return DGM_OK;
}

static dgm_code open_tool(struct llm_agent *x, const dgm_agent_options *options, yyjson_val *v,
                          const dgm_at *at, dgm_err *err)
{
    if (yyjson_is_str(v))
        return add_mcp(x, options, dgm_json_str(v), NULL, at, err);
    if (dgm_json_get(v, DGM_STR("exec")) || dgm_json_get(v, DGM_STR("http")))
        return add_own(x, options, v, at, err);
    yyjson_val *mcp = dgm_json_get(v, DGM_STR("mcp"));
    yyjson_val *agent = dgm_json_get(v, DGM_STR("agent"));
    if (agent)
        return add_agent(x, options, dgm_json_str(agent), DGM_AT_LIT(at, "agent"), err);
    struct llm_mcp_setting m = {0};
    dgm_code rc = dgm_settings_read(mcp, mcp_rows, &m, err);
    return rc ? rc
              : add_mcp(x, options, m.server, m.only, DGM_AT_LIT(DGM_AT_LIT(at, "mcp"), "server"),
                        err);
}

static dgm_code check_tool_names(const struct llm_agent *x, dgm_err *err)
{
    for (size_t i = 0; i < x->n_tools; i++) {
        for (size_t k = 0; k < i; k++) {
            if (dgm_str_eq(x->tools[i].name, x->tools[k].name))
                return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_I(DGM_AT_LIT(NULL, "tools"), i),
                                "two tools have the name \"%.*s\"", DGM_P(x->tools[i].name));
        }
    }
    return DGM_OK;
}

static dgm_code open_tools(struct llm_agent *x, const struct llm_settings *s,
                           const dgm_agent_options *options, dgm_err *err)
{
    const dgm_at *list = DGM_AT_LIT(NULL, "tools");
    yyjson_val *item;
    size_t i, n;
    dgm_code rc;
    x->tools =
        dgm_new_n(x->arena, struct llm_tool_setting, yyjson_arr_size(llm_plain(s->tools)) + 1);
    yyjson_arr_foreach (llm_plain(s->tools), i, n, item) {
        if ((rc = open_tool(x, options, item, DGM_AT_I(list, i), err)))
            return rc;
    }
    return check_tool_names(x, err);
}

/* ---- names ------------------------------------------------------------------------------------------------------------- */

static void read_names(struct llm_agent *x, const dgm_json *v, struct llm_names *ret)
{
    yyjson_val *item;
    size_t i, n;
    ret->all = yyjson_is_str(llm_plain(v)) && dgm_str_is(dgm_json_str(v), "always");
    if (!yyjson_is_arr(llm_plain(v)))
        return;
    ret->names.at = dgm_new_n(x->arena, dgm_str, yyjson_arr_size(llm_plain(v)) + 1);
    yyjson_arr_foreach (llm_plain(v), i, n, item)
        ret->names.at[ret->names.n++] = dgm_arena_dup(x->arena, dgm_json_str(item));
}

/* A name of a tool, or of an MCP server. Tools of servers are known only when they are listed: the part in front of `__` is
 * checked. */
static bool is_known_tool(const struct llm_agent *x, dgm_str name)
{
    dgm_str server = name;
    for (size_t i = 0; i + 1 < name.n && server.n == name.n; i++) {
        if (name.p[i] == '_' && name.p[i + 1] == '_')
            server.n = i;
    }
    for (size_t i = 0; i < x->n_tools; i++) {
        bool is_server = x->tools[i].type == LLM_TOOL_MCP;
        if (dgm_str_eq(x->tools[i].name, is_server ? server : name))
            return true;
    }
    return (x->ask_user && dgm_str_eq(name, dgm_str_from(dgm_llm_ask_user.name))) ||
           (x->request_auth && dgm_str_eq(name, dgm_str_from(dgm_llm_request_auth.name)));
}

static dgm_code check_names_of(const struct llm_agent *x, const struct llm_names *names,
                               const char *setting, dgm_err *err)
{
    for (size_t i = 0; i < names->names.n; i++) {
        if (!is_known_tool(x, names->names.at[i]))
            return dgm_fail(
                err, DGM_BAD_PARAMS, DGM_AT_I(DGM_AT(NULL, dgm_str_from(setting)), i),
                "unknown tool \"%.*s\": expected the name of a tool or of an MCP server "
                "in `tools`",
                (int)(names->names.at[i].n < 80 ? names->names.at[i].n : 80), names->names.at[i].p);
    }
    return DGM_OK;
}

/* ---- open and close -------------------------------------------------------------------------------------------------------- */

static void copy_settings(struct llm_agent *x, const struct llm_settings *s)
{
    x->instructions = dgm_arena_dup(x->arena, s->instructions);
    x->parameters = s->parameters ? dgm_json_copy(x->arena, s->parameters) : NULL;
    x->ask_user = s->ask_user;
    x->request_auth = s->request_auth;
    x->max_time = s->max_time;
    x->loop = (dgm_llm_options){.limits = {.iterations = (uint32_t)s->max_iterations,
                                           .parallel_tools = (uint32_t)s->parallel_tools,
                                           .tokens = (uint64_t)s->max_tokens},
                                .retries = (uint32_t)s->retries,
                                .compact_tokens = (uint64_t)s->context_tokens};
}

dgm_code dgm_llm_open(const dgm_json *config, const dgm_agent_options *options, void **ret_agent,
                      dgm_err *err)
{
    struct llm_settings s = {.first.remote = DGM_REMOTE_DEFAULTS, .retries = 2};
    dgm_arena *a = dgm_arena_new();
    struct llm_agent *x = dgm_new(a, struct llm_agent);
    dgm_code rc = dgm_settings_read(config, dgm_llm_settings, &s, err);
    x->arena = a;
    if (!rc)
        copy_settings(x, &s);
    if (rc || (rc = open_upstreams(x, &s, options, err)) ||
        (rc = open_tools(x, &s, options, err))) {
        dgm_llm_close(x);
        return rc;
    }
    x->loop.upstreams = (uint32_t)x->n_upstreams;
    read_names(x, s.approve, &x->approve);
    read_names(x, s.forbid, &x->forbid);
    if ((rc = check_names_of(x, &x->approve, "approve", err)) ||
        (rc = check_names_of(x, &x->forbid, "forbid", err))) {
        dgm_llm_close(x);
        return rc;
    }
    *ret_agent = x;
    return DGM_OK;
}

void dgm_llm_close(void *agent)
{
    struct llm_agent *x = agent;
    for (size_t i = 0; i < x->n_tools; i++) {
        if (x->tools[i].remote)
            dgm_backend_a2a.close(x->tools[i].remote);
        dgm_tool_close(x->tools[i].tool);
    }
    dgm_arena_free(x->arena);
}
