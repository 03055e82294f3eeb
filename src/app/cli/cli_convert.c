/*
 * cli_convert.c - `dragoman convert`, `dragoman compact`: feed files to a converter, chunk by chunk.
 *
 * Memory is the converter's own (one event) and one piece of input here, however long the stream.
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One read of a pipe's default size; larger pieces are not faster. */
#define PIECE ((size_t)64 << 10)

/* ---- what went wrong --------------------------------------------------------------------------------- */

/* A fault inside a document is a fault of the document. A fault at its top may have another reason: the wrong
 * format was named or detected. */
static bool near_top(const dgm_err *err)
{
    const char *pointer = dgm_err_pointer(err);
    return !pointer[0] || !strchr(pointer + 1, '/');
}

static void advise(const dgm_convert_options *o, const dgm_err *err)
{
    if (strstr(dgm_err_message(err), "--"))
        return; /* the message already names the option */
    switch (dgm_err_code(err)) {
    case DGM_BAD_REQUEST:
    case DGM_BAD_PARAMS:
    case DGM_NO_SUCH_METHOD:
        if (near_top(err) && o->from)
            dgm_cli_hint("is the input really %s? `--from auto` detects the format",
                         dgm_format_id_name(o->from));
        else if (near_top(err))
            dgm_cli_hint("`--from` names the format, `--object` what the object is");
        break;
    case DGM_UNSUPPORTED_OPERATION:
        dgm_cli_hint("`dragoman formats` lists what %s cannot represent",
                     o->to     ? dgm_format_id_name(o->to)
                     : o->from ? dgm_format_id_name(o->from)
                               : "auto");
        break;
    case DGM_INTERNAL: dgm_cli_hint("this is a fault in dragoman: please report it"); break;
    default: break;
    }
}

/* dragoman: FILE:LINE:COLUMN: what (at /json/pointer) */
static void complain(const char *name, const dgm_convert_options *o, const dgm_err *err)
{
    char where[64] = "";
    const char *pointer = dgm_err_pointer(err);
    size_t line = dgm_err_line(err), column = dgm_err_column(err);
    if (line && column)
        snprintf(where, sizeof where, ":%zu:%zu", line, column);
    else if (line)
        snprintf(where, sizeof where, ":%zu", line);
    if (pointer[0])
        dgm_cli_complain("%s%s: %s (at %s)", name, where, dgm_err_message(err), pointer);
    else
        dgm_cli_complain("%s%s: %s", name, where, dgm_err_message(err));
    advise(o, err);
}

/* ---- one file ----------------------------------------------------------------------------------------- */

enum outcome { CONVERTED, BAD_INPUT, NO_OUTPUT };

/* What to do with losses. */
enum losses { LOSSES_IGNORED, LOSSES_COUNTED, LOSSES_PRINTED, LOSSES_AS_JSON };

/* The state that all files share. */
struct job {
    const dgm_convert_options *options;
    dgm_cli_output out;
    char *piece;
    enum losses losses;
    size_t n_lost; /* kinds of loss, over all files */
};

static enum outcome cli_convert_file(struct job *job, const char *path)
{
    bool is_stdin = strcmp(path, "-") == 0;
    const char *name = is_stdin ? "<stdin>" : path;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        dgm_cli_complain("cannot open %s: %s", path, strerror(errno));
        return BAD_INPUT;
    }
    const dgm_convert_options *o = job->options;
    dgm_cli_output *out = &job->out;
    dgm_converter *c = NULL;
    dgm_err *err = dgm_err_new();
    bool writing = true;
    long n = 1;
    dgm_str ready;
    dgm_code rc = dgm_converter_new(o, &c, err);
    out->empty = true;
    while (rc == DGM_OK && writing && n > 0 && (n = dgm_cli_read(fd, job->piece, PIECE)) >= 0) {
        rc = n ? dgm_converter_feed(c, job->piece, (size_t)n, err) : dgm_converter_end(c, err);
        while ((ready = dgm_converter_output(c)).n > 0) {
            if (!(writing = dgm_cli_output_write(out, ready.p, ready.n)))
                break;
            dgm_converter_consume(c, ready.n);
        }
    }
    if (n < 0)
        dgm_cli_complain("cannot read %s: %s", name, strerror(errno));
    if (c && job->losses != LOSSES_IGNORED)
        job->n_lost += dgm_converter_loss_count(c);
    if (c && job->losses > LOSSES_COUNTED)
        dgm_cli_print_losses(name, c, job->losses == LOSSES_AS_JSON);
    dgm_converter_free(c);
    /* a value ends with its line, also one that broke off: the next file starts on a new one */
    if (writing && !out->empty && out->last != '\n' && o->to != DGM_FORMAT_AG_UI_PROTO)
        writing = dgm_cli_output_write(out, "\n", 1);
    if (rc != DGM_OK)
        complain(name, o, err);
    dgm_err_free(err);
    if (!is_stdin)
        close(fd);
    return !writing ? NO_OUTPUT : rc != DGM_OK || n < 0 ? BAD_INPUT : CONVERTED;
}

/* ---- all of them --------------------------------------------------------------------------------------- */

static int cli_convert_run(const dgm_cli_line *line, dgm_convert_options o, enum losses losses)
{
    enum outcome worst = CONVERTED;
    struct job job = {.options = &o, .piece = malloc(PIECE), .losses = losses};
    static char from_stdin[] = "-", *standard_input[] = {from_stdin};
    char **files = line->n_args ? line->args : standard_input;
    size_t n = line->n_args ? line->n_args : 1;
    const char *frame = dgm_cli_get(line, "frame");

    o.size = sizeof o;
    o.from = dgm_format_id_by_name(dgm_cli_get(line, "from"));
    if (frame)
        o.framing = (dgm_framing)dgm_cli_find_word(&dgm_cli_framings, frame);
    o.losses = losses != LOSSES_IGNORED;
    if (!job.piece) {
        dgm_cli_complain("out of memory");
        return DGM_CLI_FAILED;
    }
    if (!dgm_cli_output_open(&job.out, dgm_cli_get(line, "output"))) {
        free(job.piece);
        return DGM_CLI_FAILED;
    }
    if (!line->n_args && isatty(STDIN_FILENO))
        fputs("dragoman: reading standard input; end it with Ctrl-D\n", stderr);
    for (size_t i = 0; i < n && worst != NO_OUTPUT; i++) {
        enum outcome one = cli_convert_file(&job, files[i]);
        worst = one > worst ? one : worst;
    }
    free(job.piece);
    if (worst == CONVERTED && losses == LOSSES_COUNTED && job.n_lost)
        dgm_cli_hint("%zu kind%s of data lost or changed; `--losses` lists them", job.n_lost,
                     job.n_lost == 1 ? "" : "s");
    if (worst == CONVERTED)
        return dgm_cli_output_commit(&job.out) ? DGM_CLI_OK : DGM_CLI_FAILED;
    dgm_cli_output_abandon(&job.out);
    return DGM_CLI_FAILED;
}

int dgm_cli_run_convert(const dgm_cli_line *line)
{
    const char *object = dgm_cli_get(line, "object"), *answer = dgm_cli_get(line, "answer-source");
    const char *form = dgm_cli_get(line, "as");
    dgm_convert_options o = {
        .to = dgm_format_id_by_name(dgm_cli_get(line, "to")),
        .seed = dgm_cli_get(line, "seed"),
        .as = form ? (dgm_form)dgm_cli_find_word(&dgm_cli_forms, form) : DGM_FORM_NONE,
        .compact = dgm_cli_get(line, "no-compact") ? DGM_COMPACT_NEVER : DGM_COMPACT_DOCUMENTS,
        .status_is_answer = answer && strcmp(answer, "status") == 0,
    };
    if (object)
        o.object = dgm_object_kind_by_name((dgm_str){object, strlen(object)});
    return cli_convert_run(line, o,
                           dgm_cli_get(line, "losses-json") ? LOSSES_AS_JSON
                           : dgm_cli_get(line, "losses")    ? LOSSES_PRINTED
                           : isatty(STDERR_FILENO) /* a person is there to read a line about them */
                               ? LOSSES_COUNTED
                               : LOSSES_IGNORED);
}

int dgm_cli_run_compact(const dgm_cli_line *line)
{
    return cli_convert_run(line, (dgm_convert_options){.compact = DGM_COMPACT_ALWAYS},
                           LOSSES_IGNORED);
}
