/* backend/graph_server/graph_server_agent.c - graphs that a LangGraph server runs: settings and the type. */
#include "backend/graph_server/graph_server_int.h"

#include "base/limits.h"

#include <pthread.h>

static const char gserver_card[] =
    "{\"name\":\"LangGraph agent\",\"description\":\"A graph on a LangGraph "
    "server.\",\"skills\":[{\"id\":\"answer\",\"name\":\"Answer\",\"description\":\"Answers "
    "messages.\",\"tags\":[\"langgraph\"]}]}";

#define AT(member) offsetof(struct gserver_settings, member)

const dgm_setting dgm_gserver_settings[] = {
    {"url", DGM_SETTING_STR, AT(remote.url), .required = true,
     .about = "where the server is: an http or https URL, as in `http://127.0.0.1:2024`"},
    {"assistant", DGM_SETTING_STR, AT(assistant), .def = "agent",
     .about = "the name of the graph in the server's `langgraph.json`, or the id of an assistant"},
    {"protocol", DGM_SETTING_CHOICE, AT(protocol), .choices = "runs|v2", .def = "runs",
     .about =
         "`runs`: the runs API, which every server has and which carries everything that a graph "
         "emits; `v2`: Protocol v2 where the server offers it, else `runs`"},
    {"token_env", DGM_SETTING_STR, AT(remote.token_env), .def = "",
     .about = "the environment variable that has the API key"},
    {"token_header", DGM_SETTING_STR, AT(remote.token_header), .def = "X-Api-Key",
     .about = "the header that the key is sent in; in `Authorization` it follows `Bearer`"},
    {"headers", DGM_SETTING_ENV, AT(remote.headers), .def = "{}",
     .about = "further headers of every request: `Name: value`. `${NAME}` in a value is an "
              "environment variable"},
    {"recursion_limit", DGM_SETTING_INT, AT(recursion_limit), .max = 1000000, .def = "0",
     .about = "the steps that a run may take; 0: the server's own limit"},
    {"configurable", DGM_SETTING_JSON, AT(configurable), .def = "{}",
     .about = "values for the graph's configuration (`config.configurable`)"},
    {"a2a_dialect", DGM_SETTING_CHOICE, AT(a2a_dialect), .choices = "0.3|1.0", .def = "0.3",
     .about = "the version of A2A in which the graph gets `a2a_inbox`"},
    {"expose_errors", DGM_SETTING_CHOICE, AT(expose_errors), .choices = "false|true",
     .def = "false",
     .about = "`true`: callers see the graph's own error messages, which may contain secrets"},
    {"reconnect_timeout", DGM_SETTING_NUMBER, AT(reconnect_timeout), .max = 86400, .def = "60",
     .about = "seconds for which a lost connection to a run is tried again"},
    DGM_REMOTE_TIME_SETTINGS(struct gserver_settings, remote),
    {"retries", DGM_SETTING_INT, AT(remote.retries), .max = 10, .def = "3",
     .about =
         "how often a request is repeated that was answered with 429 or 503 and a "
         "`Retry-After` of 60 seconds at most, and how often a message whose run was not created"},
    DGM_REMOTE_TLS_SETTINGS(struct gserver_settings, remote),
    {0},
};
#undef AT

static void gserver_close(void *agent)
{
    dgm_arena_free(((struct gserver_agent *)agent)->arena);
}

static dgm_code gserver_open(const dgm_json *config, const dgm_agent_options *options,
                             void **ret_agent, dgm_err *err)
{
    struct gserver_settings s = {
        .remote = DGM_REMOTE_DEFAULTS, .assistant = DGM_STR("agent"), .reconnect_timeout = 60};
    dgm_code rc = dgm_settings_read(config, dgm_gserver_settings, &s, err);
    if (rc)
        return rc;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct gserver_agent *x = dgm_new(a, struct gserver_agent);
    if (!s.remote.token_header.n)
        s.remote.token_header = DGM_STR("X-Api-Key");
    x->arena = a;
    x->set = s;
    x->set.assistant = dgm_arena_dup(a, s.assistant);
    x->set.configurable = s.configurable ? dgm_json_copy(a, s.configurable) : NULL;
    if (!s.assistant.n || s.assistant.n > DGM_MAX_ID_BYTES)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "assistant"),
                        "expected the name of a graph or the id of an assistant");
    if ((rc = dgm_remote_open(&x->set.remote, options, a, err)))
        return rc;
    x->base = x->set.remote.url;
    while (x->base.n && x->base.p[x->base.n - 1] == '/')
        x->base.n--;
    (void)dgm_take(a); /* x lives in it */
    *ret_agent = x;
    return DGM_OK;
}

static const dgm_inner gserver_inner = {
    .open = gserver_open,
    .close = gserver_close,
    .start = dgm_gserver_start,
    .cancel = dgm_gserver_cancel,
    .has_only_tasks = true,
};
DGM_SHAPED_OPEN(gserver_open_shaped, gserver_inner)

const dgm_backend dgm_backend_graph_server = {
    .type = "langgraph-server",
    .settings = dgm_gserver_settings,
    .about = "a graph on a LangGraph server (`langgraph dev`, LangGraph Platform)",
    .can_resume = true,
    .has_threads = true,
    .foreign = true,
    .reply = DGM_REPLY_TASK,
    .card = gserver_card,
    DGM_SHAPED(gserver_open_shaped),
};
