/*
 * cli.c - main() without the name: parse, run, see that the output arrived.
 */
#include "cli.h"

#include <errno.h>
#include <string.h>

/* What stdio still holds may fail to be written as well, and a network file tells only at close. */
static int finish(int status)
{
    bool failed = ferror(stdout);
    if (fclose(stdout) == 0 && !failed)
        return status;
    if (errno == EPIPE)
        dgm_cli_end_by_sigpipe();
    if (status == DGM_CLI_OK) {
        dgm_cli_complain("cannot write to standard output: %s", strerror(errno));
        status = DGM_CLI_FAILED;
    }
    return status;
}

int dgm_cli_main(int argc, char **argv)
{
    dgm_cli_line line;
    dgm_cli_misuse misuse = {"", ""};
    dgm_cli_guard_descriptors();
    if (!dgm_cli_parse(argc, argv, &line, &misuse)) {
        dgm_cli_complain("%s", misuse.what);
        if (misuse.hint[0])
            dgm_cli_hint("%s", misuse.hint);
        return DGM_CLI_MISUSED;
    }
    if (dgm_cli_get(&line, "help")) {
        dgm_cli_help(line.command, stdout);
        return finish(DGM_CLI_OK);
    }
    return finish(line.command->run(&line));
}
