/* app/cli/main.c - the one place that sees both the command line and the server. */
#include "app/serve/serve.h"
#include "cli.h"

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

int main(int argc, char **argv)
{
    dgm_cli_serve = serve;
    return dgm_cli_main(argc, argv);
}
