/* config/mcp_servers.c - see mcp_servers.h. */
#include "mcp_servers.h"

#include "net/process.h"

static dgm_str text_of(dgm_arena *a, const yyjson_val *v)
{
    return yyjson_is_str((yyjson_val *)(uintptr_t)v) ? dgm_json_str(v) : dgm_json_text_in(a, v);
}

static const char *const *copy_command(dgm_arena *a, dgm_strs command)
{
    const char **argv = dgm_new_n(a, const char *, command.n + 1);
    for (size_t i = 0; i < command.n; i++)
        argv[i] = dgm_arena_dup(a, command.at[i]).p;
    return argv;
}

static const char *const *make_env(dgm_arena *a, const dgm_config *c, const dgm_config_mcp *m)
{
    yyjson_val *env = (yyjson_val *)(uintptr_t)m->env, *key, *item;
    size_t i, n;
    dgm_process_env_rule rule = {.inherit = m->inherit_env, .secret = c->secret_env};
    const char **own = dgm_new_n(a, const char *, yyjson_obj_size(env) + 1);
    yyjson_obj_foreach (env, i, n, key, item) {
        own[rule.n_own++] =
            dgm_arena_printf(a, "%.*s=%.*s", DGM_P(dgm_json_str(key)), DGM_P(text_of(a, item))).p;
    }
    rule.own = own;
    rule.inherit_all = m->inherit_env.n == 1 && dgm_str_is(m->inherit_env.at[0], "all");
    return dgm_process_env(a, &rule);
}

static void read_headers(dgm_arena *a, const dgm_config_mcp *m, dgm_mcp_config *config)
{
    yyjson_val *headers = (yyjson_val *)(uintptr_t)m->headers, *key, *item;
    size_t i, n;
    dgm_fetch_header *list = dgm_new_n(a, dgm_fetch_header, yyjson_obj_size(headers) + 1);
    yyjson_obj_foreach (headers, i, n, key, item) {
        list[config->n_headers++] = (dgm_fetch_header){dgm_json_str(key), text_of(a, item)};
    }
    config->headers = list;
}

dgm_code dgm_mcp_server_open(const dgm_config *c, const dgm_config_mcp *server,
                             void (*on_log)(void *user, dgm_str line), void *log_user,
                             dgm_mcp **ret_mcp, dgm_err *err)
{
    static const dgm_mcp_share shares[] = {
        [DGM_CONFIG_SHARE_AUTO] = DGM_MCP_SHARE_PRINCIPAL,
        [DGM_CONFIG_SHARE_SERVER] = DGM_MCP_SHARE_SERVER,
        [DGM_CONFIG_SHARE_PRINCIPAL] = DGM_MCP_SHARE_PRINCIPAL,
        [DGM_CONFIG_SHARE_CONTEXT] = DGM_MCP_SHARE_CONTEXT,
    };
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_mcp_config config = {
        .name = server->name,
        .share = shares[server->share],
        .timeout_ms = (uint64_t)server->timeout_s * 1000,
        .client_version = dgm_version(),
        .on_log = on_log,
        .log_user = log_user,
    };
    if (server->command.n) {
        config.argv = copy_command(a, server->command);
        config.env = make_env(a, c, server);
        config.cwd = server->cwd.n ? dgm_arena_dup(a, server->cwd).p : NULL;
    } else {
        config.url = dgm_arena_dup(a, server->url).p;
        config.token = server->secret;
        read_headers(a, server, &config);
    }
    return dgm_mcp_open(&config, ret_mcp, err);
}
