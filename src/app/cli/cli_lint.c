/*
 * cli_lint.c - `dragoman lint`: files through a linter, piece by piece.
 *
 * A server's address is for app/client, which main() brings along.
 */
#include "cli_lint.h"
#include "cli_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE ((size_t)64 << 10)

static bool is_address(const char *text)
{
    return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
}

static bool lint_fd(int fd, const char *name, dgm_cli_report *r, char *piece)
{
    dgm_linter *l = dgm_cli_report_linter(r, name, r->fetched);
    long n = -1;
    while (l && (n = dgm_cli_read(fd, piece, PIECE)) > 0) {
        dgm_linter_feed(l, piece, (size_t)n);
        fflush(stdout); /* a stream may take its time */
    }
    if (n == 0)
        dgm_linter_end(l);
    else if (l)
        dgm_cli_complain("cannot read %s: %s", name, strerror(errno));
    dgm_linter_free(l);
    return n == 0;
}

static bool lint_file(const char *path, dgm_cli_report *r, char *piece)
{
    if (strcmp(path, "-") == 0)
        return lint_fd(STDIN_FILENO, "<stdin>", r, piece);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        dgm_cli_complain("cannot open %s: %s", path, strerror(errno));
        return false;
    }
    bool read = lint_fd(fd, path, r, piece);
    close(fd);
    return read;
}

static int lint_files(const dgm_cli_line *line)
{
    char dash[] = "-", *no_args[] = {dash}, **paths = line->n_args ? line->args : no_args;
    size_t n = line->n_args ? line->n_args : 1;
    dgm_cli_report r;
    char *piece = malloc(PIECE);
    bool all_read = piece != NULL;
    dgm_cli_report_begin(&r, line);
    for (size_t i = 0; piece && i < n; i++)
        all_read = lint_file(paths[i], &r, piece) && all_read;
    free(piece);
    int status = dgm_cli_report_end(&r);
    return all_read ? status : DGM_CLI_FAILED;
}

int dgm_cli_run_lint(const dgm_cli_line *line)
{
    size_t addresses = 0;
    bool rules = dgm_cli_get(line, "rules"), markdown = dgm_cli_get(line, "markdown");
    for (size_t i = 0; i < line->n_args; i++)
        addresses += is_address(line->args[i]);
    if ((rules || markdown) && line->n_args)
        return dgm_cli_refuse(line, "--%s prints the table and needs no FILE",
                              rules ? "rules" : "markdown");
    if (addresses && line->n_args > 1)
        return dgm_cli_refuse(line, "FILEs or one URL, not both");
    if (markdown) {
        dgm_cli_lint_markdown();
        return DGM_CLI_OK;
    }
    if (rules) {
        dgm_cli_report r;
        dgm_cli_report_begin(&r, line);
        dgm_cli_lint_rules(r.form);
        return DGM_CLI_OK;
    }
    return addresses ? dgm_cli_run_outside(line) : lint_files(line);
}
