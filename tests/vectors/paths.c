/* vectors/paths.c - the ways to run a conversion: the library with the complete input or in pieces, the program. */
#include "base/err.h"
#include "vectors/run_vectors.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void outcome_done(outcome *o)
{
    free(o->out.p);
    free(o->said.p);
    *o = (outcome){0};
}

static void append(text *t, const char *p, size_t n)
{
    char *grown = realloc(t->p, t->n + n + 1);
    if (!grown)
        die("out of memory");
    memcpy(grown + t->n, p, n);
    t->p = grown;
    t->n += n;
    t->p[t->n] = 0;
}

/* ---- the library -------------------------------------------------------------------------------- */

void run_whole(const job *j, text in, outcome *ret)
{
    *ret = (outcome){.has_err = true};
    char *out = NULL;
    size_t n = 0;
    ret->code = dgm_convert(&j->options, in.p, in.n, &out, &n, &ret->err);
    ret->exit = ret->code != DGM_OK;
    if (!ret->code) {
        append(&ret->out, out, n);
        if (out[n] != 0)
            die("dgm_convert: the text is not terminated");
        dgm_free(out);
    }
}

static uint64_t next(uint64_t *state) /* xorshift64* */
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717u;
}

static void take(dgm_converter *c, size_t most, outcome *ret)
{
    dgm_str ready = dgm_converter_output(c);
    size_t n = ready.n < most ? ready.n : most;
    append(&ret->out, ready.p ? ready.p : "", n);
    dgm_converter_consume(c, n);
}

void run_pieces(const job *j, text in, uint64_t seed, outcome *ret)
{
    *ret = (outcome){.has_err = true};
    dgm_converter *c = NULL;
    uint64_t random = seed * 0x9E3779B97F4A7C15u + 1;
    size_t most = 1u << (seed % 8); /* seed 0: byte by byte */
    if ((ret->code = dgm_converter_new(&j->options, &c, &ret->err)))
        goto end;
    for (size_t at = 0, n; at < in.n && !ret->code; at += n) {
        n = 1 + next(&random) % most;
        if (n > in.n - at)
            n = in.n - at;
        /* A copy of exactly this size: reading beyond a piece is then seen by the sanitizer. */
        char *piece = malloc(n);
        if (!piece)
            die("out of memory");
        memcpy(piece, in.p + at, n);
        ret->code = dgm_converter_feed(c, piece, n, &ret->err);
        free(piece);
        if (next(&random) % 2)
            take(c, next(&random) % 40, ret);
    }
    if (!ret->code)
        ret->code = dgm_converter_end(c, &ret->err);
    take(c, SIZE_MAX, ret);
    dgm_converter_free(c);
end:
    ret->exit = ret->code != DGM_OK;
}

/* ---- the library in a child ----------------------------------------------------------------------- */

struct report { /* what the child tells */
    dgm_code code;
    dgm_err err;
    size_t n_out;
};

static void whole_child(const job *j, source *from, void *ctx, int to)
{
    struct report r = {0};
    static char piece[1 << 16];
    text in = {0};
    char *out = NULL;
    size_t n, room = 0;
    while ((n = from(ctx, piece, sizeof piece))) {
        if (in.n + n > room && !(in.p = realloc(in.p, room = 2 * (in.n + n))))
            die("out of memory");
        memcpy(in.p + in.n, piece, n);
        in.n += n;
    }
    r.code = dgm_convert(&j->options, in.p, in.n, &out, &r.n_out, &r.err);
    dgm_free(out);
    free(in.p);
    _exit(write(to, &r, sizeof r) == sizeof r ? 0 : 3);
}

static void measured_child(const job *j, source *from, void *ctx, int to)
{
    struct report r = {0};
    dgm_converter *c = NULL;
    static char piece[1 << 16];
    size_t n;
    r.code = dgm_converter_new(&j->options, &c, &r.err);
    while (!r.code && (n = from(ctx, piece, sizeof piece))) {
        r.code = dgm_converter_feed(c, piece, n, &r.err);
        dgm_str ready = dgm_converter_output(c);
        r.n_out += ready.n;
        dgm_converter_consume(c, ready.n);
    }
    if (!r.code)
        r.code = dgm_converter_end(c, &r.err);
    if (c)
        r.n_out += dgm_converter_output(c).n;
    dgm_converter_free(c);
    _exit(write(to, &r, sizeof r) == sizeof r ? 0 : 3);
}

static int how_it_ended(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

void run_measured(const job *j, source *from, void *ctx, bool whole, outcome *ret)
{
    int ends[2], status = 0;
    struct rusage used;
    struct report r = {0};
    *ret = (outcome){.has_err = true};
    fflush(NULL);
    if (pipe(ends))
        die("pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid < 0)
        die("fork: %s", strerror(errno));
    if (pid == 0)
        (whole ? whole_child : measured_child)(j, from, ctx, ends[1]);
    close(ends[1]);
    bool told = read(ends[0], &r, sizeof r) == sizeof r;
    close(ends[0]);
    if (wait4(pid, &status, 0, &used) != pid)
        die("wait4: %s", strerror(errno));
    ret->peak_kib = used.ru_maxrss;
    ret->code = r.code;
    ret->err = r.err;
    ret->out.n = r.n_out;
    ret->exit = told && how_it_ended(status) == 0 ? r.code != DGM_OK : 1000 + how_it_ended(status);
}

/* ---- the program ---------------------------------------------------------------------------------- */

static int temporary(void)
{
    char path[] = "/tmp/dragoman-vectors-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        die("mkstemp: %s", strerror(errno));
    unlink(path);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

static text slurp(int fd)
{
    text t = {0};
    char chunk[1 << 16];
    ssize_t n;
    lseek(fd, 0, SEEK_SET);
    append(&t, "", 0);
    while ((n = read(fd, chunk, sizeof chunk)) > 0)
        append(&t, chunk, (size_t)n);
    close(fd);
    return t;
}

static void pour(int to, source *from, void *ctx)
{
    static char chunk[1 << 16];
    size_t n;
    while ((n = from(ctx, chunk, sizeof chunk))) {
        for (size_t at = 0; at < n;) {
            ssize_t wrote = write(to, chunk + at, n - at);
            if (wrote < 0 && errno == EINTR)
                continue;
            if (wrote < 0)
                return; /* it has seen enough */
            at += (size_t)wrote;
        }
    }
}

void run_program(const char *path, const job *j, source *from, void *ctx, bool keep_output,
                 outcome *ret)
{
    const char *argv[40] = {path};
    size_t argc = 1;
    for (size_t i = 0; i < j->argc; i++)
        argv[argc++] = j->argv[i];
    if (j->file)
        argv[argc++] = j->file;

    int in[2] = {-1, -1}, out = keep_output ? temporary() : open("/dev/null", O_WRONLY | O_CLOEXEC);
    int said = temporary(), status = 0;
    struct rusage used;
    pid_t pid;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (!j->file) {
        if (pipe(in))
            die("pipe: %s", strerror(errno));
        fcntl(in[1], F_SETFD, FD_CLOEXEC);
        posix_spawn_file_actions_adddup2(&actions, in[0], 0);
        posix_spawn_file_actions_addclose(&actions, in[0]);
    } else {
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    }
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    posix_spawn_file_actions_adddup2(&actions, said, 2);
    int fault = posix_spawn(&pid, path, &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    if (fault)
        die("%s: %s", path, strerror(fault));
    posix_spawn_file_actions_destroy(&actions);
    if (!j->file) {
        close(in[0]);
        pour(in[1], from, ctx);
        close(in[1]);
    }
    if (wait4(pid, &status, 0, &used) != pid)
        die("wait4: %s", strerror(errno));
    *ret = (outcome){.exit = how_it_ended(status), .peak_kib = used.ru_maxrss};
    if (keep_output)
        ret->out = slurp(out);
    else
        close(out);
    ret->said = slurp(said);
}
