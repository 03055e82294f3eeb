/* app/cli/main.c - main(): the only file that includes the command line, the server and the client. */
#include "app/admin/admin.h"
#include "app/client/client.h"
#include "app/load/load.h"
#include "app/mcp/mcp_command.h"
#include "app/serve/serve.h"
#include "cli.h"
#include "config/agent_file.h"
#include "config/config.h"
#include "config/langgraph_file.h"

#include <string.h>

/* `dragoman serve agent.py` and `--langgraph FILE`: these agents instead of those of the configuration. */
static int serve_files(const dgm_cli_line *line, dgm_config_source *source)
{
    dgm_err err = {0};
    dgm_buf agents;
    int status = DGM_CLI_FAILED;
    dgm_buf_init(&agents, SIZE_MAX);
    const char *graphs = dgm_cli_get(line, "langgraph");
    if (graphs ? dgm_langgraph_file_put_agents(&agents, graphs, &err)
               : dgm_agent_file_put_agents(&agents, line->args[0], &err)) {
        dgm_cli_complain("%s", err.msg);
    } else {
        source->agents = dgm_buf_str(&agents);
        status = dgm_serve(source, dgm_cli_get(line, "check"), stdout, stderr);
    }
    dgm_buf_done(&agents);
    return status;
}

static int serve(const dgm_cli_line *line)
{
    const char *file = dgm_cli_get(line, "config");
    dgm_config_source source = {.file = file ? file : dgm_config_default_file(),
                                .listen = dgm_cli_get(line, "listen"),
                                .store = dgm_cli_get(line, "store"),
                                .agent = dgm_cli_get(line, "agent"),
                                .profile = dgm_cli_get(line, "profile"),
                                .insecure = dgm_cli_get(line, "insecure"),
                                .watch = dgm_cli_get(line, "watch")};
    if (!file && source.file && dgm_cli_get(line, "check"))
        fprintf(stderr, "dragoman: reading ./%s\n", source.file); /* else the banner reports it */
    if (!line->n_args && !dgm_cli_get(line, "langgraph"))
        return dgm_serve(&source, dgm_cli_get(line, "check"), stdout, stderr);
    return serve_files(line, &source);
}

static int schema(const dgm_cli_line *line)
{
    dgm_buf b;
    (void)line;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_config_put_schema(&b);
    fwrite(b.p, 1, b.n, stdout); /* main() checks standard output */
    dgm_buf_done(&b);
    return DGM_CLI_OK;
}

static const struct {
    const char *command;
    int (*run)(const dgm_cli_line *line);
} commands[] = {
    {"serve", serve},
    {"send", dgm_client_send},
    {"task", dgm_client_task},
    {"card", dgm_client_card},
    {"db", dgm_admin_db},
    {"init", dgm_admin_init},
    {"bench", dgm_load_bench},
    {"lint", dgm_client_lint},
    {"schema", schema},
    {"connect", dgm_client_connect},
    {"mcp", dgm_mcp_command},
    {"mcp-conformance", dgm_mcp_conformance},
    {"mcp-demo", dgm_mcp_demo},
    {"try", dgm_client_try},
    {"worker", dgm_admin_worker},
};

static int main_run(const dgm_cli_line *line)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(commands[i].command, line->command->name) == 0)
            return commands[i].run(line);
    }
    return DGM_CLI_FAILED;
}

int main(int argc, char **argv)
{
    dgm_cli_outside = main_run;
    return dgm_cli_main(argc, argv);
}
