/* app/cli/main.c - the one place that sees the command line, the server and the client. */
#include "app/admin/admin.h"
#include "app/client/client.h"
#include "app/load/load.h"
#include "app/serve/serve.h"
#include "cli.h"

#include <string.h>

static int serve(const dgm_cli_line *line)
{
    dgm_config_source source = {.file = dgm_cli_get(line, "config"),
                                .listen = dgm_cli_get(line, "listen"),
                                .store = dgm_cli_get(line, "store"),
                                .agent = dgm_cli_get(line, "agent"),
                                .profile = dgm_cli_get(line, "profile"),
                                .insecure = dgm_cli_get(line, "insecure")};
    return dgm_serve(&source, dgm_cli_get(line, "check"), stdout, stderr);
}

static const struct {
    const char *command;
    int (*run)(const dgm_cli_line *line);
} commands[] = {
    {"serve", serve},          {"send", dgm_client_send}, {"task", dgm_client_task},
    {"card", dgm_client_card}, {"db", dgm_admin_db},      {"init", dgm_admin_init},
    {"bench", dgm_load_bench}, {"lint", dgm_client_lint},
};

static int run(const dgm_cli_line *line)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(commands[i].command, line->command->name) == 0)
            return commands[i].run(line);
    }
    return DGM_CLI_FAILED;
}

int main(int argc, char **argv)
{
    dgm_cli_outside = run;
    return dgm_cli_main(argc, argv);
}
