/*
 * vectors/run_vectors.c - runs the golden files and prints TAP.
 *
 *     run_vectors [--cli PROGRAM] [--only PREFIX] [--no-big] DIRECTORY
 *
 * README.md beside this file says what a case looks like. Without --cli the library converts, once
 * all at once and a few times in random pieces; with it, the program does.
 */
#include "vectors/run_vectors.h"
#include "vectors/compare.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("Bail out! ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
    exit(3);
}

text read_file(const char *path)
{
    text t = {0};
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st))
        die("%s: %s", path, strerror(errno));
    if (!(t.p = malloc((size_t)st.st_size + 1)))
        die("out of memory");
    t.n = fread(t.p, 1, (size_t)st.st_size, f);
    t.p[t.n] = 0;
    fclose(f);
    return t;
}

/* ---- TAP ------------------------------------------------------------------------------------------ */

static size_t n_tests, n_failed;

void tap(bool ok, const char *name, const char *ids, const char *diagnostics)
{
    n_tests++;
    n_failed += !ok;
    printf("%sok %zu - %s%s%s%s\n", ok ? "" : "not ", n_tests, name, *ids ? " [" : "", ids,
           *ids ? "]" : "");
    for (const char *line = diagnostics; !ok && *line;) {
        size_t n = strcspn(line, "\n");
        printf("# %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    fflush(stdout);
}

size_t tap_end(void)
{
    printf("1..%zu\n", n_tests);
    return n_failed;
}

/* ---- a case --------------------------------------------------------------------------------------- */

/* One file in.FORMAT.EXT, out.FORMAT.EXT or both.FORMAT.EXT. */
typedef struct vector {
    char path[512];
    const char *file; /* the last part of path */
    char format[64];
    char ext[16];
    text bytes;
} vector;

typedef struct vcase {
    const char *name;
    yyjson_doc *doc;
    yyjson_val *root;
    char ids[256];
    int exit;
    vector in[8], out[8];
    size_t n_in, n_out;
    FILE *why; /* diagnostics */
} vcase;

static const char *str_of(yyjson_val *obj, const char *key)
{
    return yyjson_get_str(yyjson_obj_get(obj, key));
}

static void complain(vcase *c, const char *road, const vector *in, const char *to,
                     const char *format, ...) DGM_PRINTF(5, 6);

static void complain(vcase *c, const char *road, const vector *in, const char *to,
                     const char *format, ...)
{
    va_list args;
    fprintf(c->why, "%s -> %s, %s: ", in->file, to, road);
    va_start(args, format);
    vfprintf(c->why, format, args);
    va_end(args);
    fprintf(c->why, "\n");
}

/* ---- comparing ------------------------------------------------------------------------------------- */

typedef struct first_difference {
    size_t n;
    char pointer[512], got[400], want[400];
} first_difference;

static void keep_first(void *ctx, const char *pointer, yyjson_val *got, yyjson_val *want)
{
    first_difference *d = ctx;
    if (d->n++)
        return;
    snprintf(d->pointer, sizeof d->pointer, "%s", pointer);
    compare_show(got, d->got, sizeof d->got);
    compare_show(want, d->want, sizeof d->want);
}

/* Text for a person on one line: what cannot be seen is escaped. */
static const char *visible(const char *p, size_t n, char *out, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < n && at + 8 < size; i++) {
        unsigned char ch = (unsigned char)p[i];
        if (ch == '\n' || ch == '\r')
            at += (size_t)snprintf(out + at, size - at, "\\%c", ch == '\n' ? 'n' : 'r');
        else if (ch < 0x20 || ch == 0x7F)
            at += (size_t)snprintf(out + at, size - at, "\\x%02x", ch);
        else
            out[at++] = (char)ch;
    }
    out[at] = 0;
    return out;
}

static void compare_bytes(vcase *c, const char *road, const vector *in, const vector *out, text got)
{
    size_t i = 0, line = 1, start = 0;
    const text want = out->bytes;
    if (got.n == want.n && (!got.n || memcmp(got.p, want.p, got.n) == 0))
        return;
    for (; i < got.n && i < want.n && got.p[i] == want.p[i]; i++) {
        if (got.p[i] == '\n') {
            line++;
            start = i + 1;
        }
    }
    char g[600], w[600];
    complain(c, road, in, out->file, "bytes differ in line %zu, column %zu", line, i - start + 1);
    fprintf(c->why, "  got  %s\n  want %s\n",
            got.n > start ? visible(got.p + start, got.n - start, g, sizeof g) : "(end)",
            want.n > start ? visible(want.p + start, want.n - start, w, sizeof w) : "(end)");
}

/* label: "" or "line N, " */
static void compare_json(vcase *c, compare *cmp, const char *road, const vector *in,
                         const vector *out, const char *label, text got, text want)
{
    const char *fault = "";
    first_difference first = {0};
    char shown[600];
    yyjson_doc *g = compare_read(got.p ? got.p : "", got.n, &fault);
    yyjson_doc *w = compare_read(want.p, want.n, &fault);
    if (!w) {
        complain(c, road, in, out->file, "%sthe wanted value is not JSON: %s", label, fault);
    } else if (!g) {
        complain(c, road, in, out->file, "%sthe output is not JSON: %s: %s", label, fault,
                 visible(got.p ? got.p : "", got.n, shown, sizeof shown));
    } else {
        cmp->on_difference = keep_first;
        cmp->ctx = &first;
        compare_values(cmp, yyjson_doc_get_root(g), yyjson_doc_get_root(w));
        if (first.n)
            complain(c, road, in, out->file,
                     "%s%zu difference%s, the first at \"%s\"\n  got  %s\n  want %s", label,
                     first.n, first.n > 1 ? "s" : "", first.pointer, first.got, first.want);
    }
    yyjson_doc_free(g);
    yyjson_doc_free(w);
}

static text next_line(text *rest)
{
    const char *end = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;
    text line = {rest->p, end ? (size_t)(end - rest->p) : rest->n};
    size_t skip = line.n + (end != NULL);
    rest->p += skip;
    rest->n -= skip;
    return line;
}

static void compare_lines(vcase *c, const char *road, const vector *in, const vector *out, text got)
{
    text want = out->bytes;
    compare cmp = {.holes = true};
    for (size_t n = 1; got.n || want.n; n++) {
        char label[32];
        snprintf(label, sizeof label, "line %zu, ", n);
        if (!got.n || !want.n) {
            complain(c, road, in, out->file, "%s%s", label,
                     got.n ? "more lines than wanted" : "lines are missing");
            return;
        }
        text g = next_line(&got), w = next_line(&want);
        compare_json(c, &cmp, road, in, out, label, g, w);
    }
}

static void compare_output(vcase *c, const char *road, const vector *in, const vector *out,
                           text got)
{
    compare cmp = {.holes = true};
    if (strcmp(out->ext, "json") == 0)
        compare_json(c, &cmp, road, in, out, "", got, out->bytes);
    else if (strcmp(out->ext, "jsonl") == 0)
        compare_lines(c, road, in, out, got);
    else
        compare_bytes(c, road, in, out, got);
}

/* ---- checking how it went ---------------------------------------------------------------------------- */

static void check_fault(vcase *c, const char *road, const vector *in, const char *to,
                        const outcome *o)
{
    yyjson_val *e = yyjson_obj_get(c->root, "error");
    const char *pointer = str_of(e, "pointer"), *contains = str_of(e, "contains");
    const char *code = str_of(e, "code");
    yyjson_val *line = yyjson_obj_get(e, "line"), *column = yyjson_obj_get(e, "column");
    if (!o->has_err) {
        /* `... at JSON pointer /x: ...`; an empty pointer may go without saying */
        if (pointer && *pointer && (!o->said.p || !strstr(o->said.p, pointer)))
            complain(c, road, in, to, "stderr does not name \"%s\": %s", pointer, o->said.p);
        if (contains && (!o->said.p || !strstr(o->said.p, contains)))
            complain(c, road, in, to, "stderr does not say \"%s\": %s", contains, o->said.p);
        if (o->said.n > 8 && memcmp(o->said.p, "dragoman", 8) != 0)
            complain(c, road, in, to, "stderr does not begin with the program's name: %s",
                     o->said.p);
        return;
    }
    if (pointer && strcmp(pointer, o->err.at) != 0)
        complain(c, road, in, to, "the error points to \"%s\" instead of \"%s\": %s", o->err.at,
                 pointer, o->err.msg);
    if (contains && !strstr(o->err.msg, contains))
        complain(c, road, in, to, "the error does not say \"%s\": %s", contains, o->err.msg);
    if (code && strcmp(code, dgm_code_name(o->code)) != 0)
        complain(c, road, in, to, "the code is %s instead of %s: %s", dgm_code_name(o->code), code,
                 o->err.msg);
    if (o->err.code != o->code)
        complain(c, road, in, to, "%s was returned, the error says %s", dgm_code_name(o->code),
                 dgm_code_name(o->err.code));
    if (line && (int)o->err.line != yyjson_get_int(line))
        complain(c, road, in, to, "line %zu instead of %d: %s", o->err.line, yyjson_get_int(line),
                 o->err.msg);
    if (column && (int)o->err.column != yyjson_get_int(column))
        complain(c, road, in, to, "column %zu instead of %d: %s", o->err.column,
                 yyjson_get_int(column), o->err.msg);
}

/* out: NULL when only the fault counts. */
static bool check_outcome(vcase *c, const char *road, const vector *in, const char *to,
                          const vector *out, const outcome *o)
{
    if (o->exit != c->exit) {
        complain(c, road, in, to, "ended with %d instead of %d%s%s%s%s", o->exit, c->exit,
                 o->exit ? ": " : "",
                 o->has_err  ? o->err.msg
                 : o->said.p ? o->said.p
                             : "",
                 o->has_err && o->exit ? " at " : "", o->has_err ? o->err.at : "");
        return false;
    }
    if (c->exit)
        check_fault(c, road, in, to, o);
    if (out)
        compare_output(c, road, in, out, o->out);
    return true;
}

static void check_same_as_whole(vcase *c, const char *road, const vector *in, const char *to,
                                const outcome *whole, const outcome *o)
{
    char g[400], w[400];
    if (o->code != whole->code || (o->code && strcmp(o->err.at, whole->err.at) != 0)) {
        complain(c, road, in, to, "%s at \"%s\" (%s), but all at once %s at \"%s\" (%s)",
                 dgm_code_name(o->code), o->err.at, o->err.msg, dgm_code_name(whole->code),
                 whole->err.at, whole->err.msg);
        return;
    }
    if (o->code && (o->err.line != whole->err.line || o->err.column != whole->err.column))
        complain(c, road, in, to, "fault in line %zu, column %zu, but all at once %zu, %zu",
                 o->err.line, o->err.column, whole->err.line, whole->err.column);
    if (!o->code &&
        (o->out.n != whole->out.n || (o->out.n && memcmp(o->out.p, whole->out.p, o->out.n) != 0)))
        complain(c, road, in, to, "other bytes than all at once:\n  got  %s\n  want %s",
                 visible(o->out.p, o->out.n, g, sizeof g),
                 visible(whole->out.p, whole->out.n, w, sizeof w));
}

/* ---- running a case ------------------------------------------------------------------------------------ */

static bool is_stream(const char *ext)
{
    return strcmp(ext, "jsonl") == 0 || strcmp(ext, "sse") == 0;
}

static const char *framing_of(const char *ext, const char *in_ext)
{
    if (strcmp(ext, "json") == 0 && is_stream(in_ext))
        return "json";
    return strcmp(ext, "jsonl") == 0 ? "lines" : strcmp(ext, "sse") == 0 ? "sse" : NULL;
}

static dgm_framing framing_by_name(const char *name)
{
    static const char *const names[] = {"auto", "json", "array", "lines", "sse"};
    for (int i = 0; i < 5; i++) {
        if (strcmp(names[i], name) == 0)
            return (dgm_framing)i;
    }
    die("no such framing: %s", name);
}

static dgm_form form_by_name(const char *name)
{
    static const char *const names[] = {"auto", "events", "response", "messages", "request"};
    for (int i = 0; i < 5; i++) {
        if (strcmp(names[i], name) == 0)
            return (dgm_form)i;
    }
    die("no such form: %s", name);
}

static void set_option(job *j, const char *name, const char *value)
{
    if (strcmp(name, "--frame") == 0)
        j->options.framing = framing_by_name(value);
    else if (strcmp(name, "--object") == 0)
        j->options.object = dgm_object_kind_by_name((dgm_str){value, strlen(value)});
    else if (strcmp(name, "--seed") == 0)
        j->options.seed = value;
    else if (strcmp(name, "--from") == 0)
        j->options.from = dgm_format_id_by_name(value);
    else if (strcmp(name, "--to") == 0)
        j->options.to = dgm_format_id_by_name(value);
    else if (strcmp(name, "--as") == 0)
        j->options.as = form_by_name(value);
    else if (strcmp(name, "--answer-source") == 0)
        j->options.status_is_answer = strcmp(value, "status") == 0;
    else if (strcmp(name, "--no-compact") == 0)
        j->options.compact = DGM_COMPACT_NEVER;
    else
        die("case.json: the option %s is not known to the runner", name);
    for (size_t i = 1; i < j->argc; i += 2) {
        if (strcmp(j->argv[i], name) == 0) {
            j->argv[i + 1] = value;
            return;
        }
    }
    j->argv[j->argc++] = name;
    if (*value) /* "": the option takes none */
        j->argv[j->argc++] = value;
}

static job make_job(const vcase *c, const vector *in, const char *to, const char *out_ext)
{
    bool compact = yyjson_get_bool(yyjson_obj_get(c->root, "compact"));
    job j = {.options = {.size = sizeof j.options},
             .argv = {compact ? "compact" : "convert"},
             .argc = 1};
    set_option(&j, "--from", in->format);
    if (compact)
        j.options.compact = DGM_COMPACT_ALWAYS;
    else
        set_option(&j, "--to", to);
    if (framing_of(out_ext, in->ext))
        set_option(&j, "--frame", framing_of(out_ext, in->ext));
    yyjson_val *args = yyjson_obj_get(c->root, "args");
    for (size_t i = 0; i + 1 < yyjson_arr_size(args); i += 2)
        set_option(&j, yyjson_get_str(yyjson_arr_get(args, i)),
                   yyjson_get_str(yyjson_arr_get(args, i + 1)));
    return j;
}

struct cursor {
    text bytes;
    size_t at;
};

static size_t from_text(void *ctx, char *into, size_t size)
{
    struct cursor *c = ctx;
    size_t n = c->bytes.n - c->at < size ? c->bytes.n - c->at : size;
    memcpy(into, c->bytes.p + c->at, n);
    c->at += n;
    return n;
}

static void run_pair(vcase *c, const char *program, const vector *in, const char *to,
                     const vector *out)
{
    job j = make_job(c, in, to, out ? out->ext : "");
    const char *what = out ? out->file : to;
    outcome whole, o;
    if (program) {
        struct cursor cursor = {in->bytes, 0};
        bool piped = is_stream(in->ext);
        j.file = piped ? NULL : in->path;
        run_program(program, &j, from_text, &cursor, true, &o);
        check_outcome(c, "program", in, what, out, &o);
        outcome_done(&o);
        return;
    }
    run_whole(&j, in->bytes, &whole);
    /* What came out before a fault only the handle can tell. */
    check_outcome(c, "whole", in, what, c->exit ? NULL : out, &whole);
    for (uint64_t seed = 0; seed < (in->bytes.n > 16384 ? 2 : 6); seed++) {
        char road[32];
        snprintf(road, sizeof road, "pieces (seed %d)", (int)seed);
        run_pieces(&j, in->bytes, seed, &o);
        check_same_as_whole(c, road, in, what, &whole, &o);
        if (c->exit && out && seed == 0)
            check_outcome(c, road, in, what, out, &o);
        outcome_done(&o);
    }
    outcome_done(&whole);
}

/*
 * Cut anywhere, an input ends well or with an error that says something. The sanitizers watch; a
 * copy of the exact size shows them reads beyond the end.
 */
static size_t n_prefixes, n_silent;

static void run_prefixes(const vcase *c, const vector *in, const char *to)
{
    job j = make_job(c, in, to, "");
    for (size_t n = 0; n < in->bytes.n && in->bytes.n <= 2048; n++) {
        text cut = {malloc(n ? n : 1), n};
        outcome o;
        if (!cut.p)
            die("out of memory");
        memcpy(cut.p, in->bytes.p, n);
        run_whole(&j, cut, &o);
        n_prefixes++;
        n_silent += o.code && (o.err.code != o.code || !*o.err.msg);
        outcome_done(&o);
        free(cut.p);
    }
}

static void read_vector(vector *v, const char *dir, const char *file)
{
    const char *format = strchr(file, '.') + 1, *ext = strrchr(file, '.') + 1;
    if (snprintf(v->path, sizeof v->path, "%s/%s", dir, file) >= (int)sizeof v->path)
        die("%s/%s: the name is too long", dir, file);
    if (ext <= format || (size_t)(ext - format) > sizeof v->format || strlen(ext) >= sizeof v->ext)
        die("%s: not in.FORMAT.EXT, out.FORMAT.EXT or both.FORMAT.EXT", v->path);
    v->file = v->path + strlen(dir) + 1;
    snprintf(v->format, sizeof v->format, "%.*s", (int)(ext - format - 1), format);
    snprintf(v->ext, sizeof v->ext, "%s", ext);
    v->bytes = read_file(v->path);
}

static void read_case(vcase *c, const char *dir, const char *name)
{
    struct dirent **files;
    int n = scandir(dir, &files, NULL, alphasort);
    c->name = name;
    for (int i = 0; i < n; i++) {
        const char *file = files[i]->d_name;
        char path[600];
        if (strcmp(file, "case.json") == 0) {
            snprintf(path, sizeof path, "%s/%s", dir, file);
            text t = read_file(path);
            c->doc = yyjson_read(t.p, t.n, 0);
            free(t.p);
            if (!c->doc)
                die("%s: not JSON", path);
        } else if (strncmp(file, "in.", 3) == 0 && c->n_in < 8) {
            read_vector(&c->in[c->n_in++], dir, file);
        } else if (strncmp(file, "out.", 4) == 0 && c->n_out < 8) {
            read_vector(&c->out[c->n_out++], dir, file);
        } else if (strncmp(file, "both.", 5) == 0 && c->n_in < 8 && c->n_out < 8) {
            read_vector(&c->in[c->n_in++], dir, file);
            read_vector(&c->out[c->n_out++], dir, file);
        } else if (file[0] != '.') {
            die("%s/%s: what is this file?", dir, file);
        }
        free(files[i]);
    }
    free(files);
    c->root = yyjson_doc_get_root(c->doc);
    c->exit = yyjson_get_int(yyjson_obj_get(c->root, "exit"));
    yyjson_val *holds = yyjson_obj_get(c->root, "holds");
    for (size_t i = 0, at = 0; i < yyjson_arr_size(holds); i++)
        at += (size_t)snprintf(c->ids + at, sizeof c->ids - at, "%s%s", i ? " " : "",
                               yyjson_get_str(yyjson_arr_get(holds, i)));
    if (!str_of(c->root, "about") || !c->n_in ||
        (c->n_out ? false : !c->exit || !str_of(c->root, "to")))
        die("%s: a case has an `about`, an input, and an output or (with an error) a `to`", dir);
}

static void run_case(const char *dir, const char *name, const char *program)
{
    vcase c = {0};
    char *why = NULL;
    size_t n_why = 0;
    read_case(&c, dir, name);
    c.why = open_memstream(&why, &n_why);
    for (size_t i = 0; i < c.n_in; i++) {
        if (!c.n_out)
            run_pair(&c, program, &c.in[i], str_of(c.root, "to"), NULL);
        if (!program)
            run_prefixes(&c, &c.in[i], c.n_out ? c.out[0].format : str_of(c.root, "to"));
        for (size_t k = 0; k < c.n_out; k++)
            run_pair(&c, program, &c.in[i], c.out[k].format, &c.out[k]);
    }
    bool ok = ftell(c.why) == 0;
    if (!ok)
        fprintf(c.why, "about: %s\n", str_of(c.root, "about"));
    fclose(c.why);
    tap(ok, name, c.ids, why);
    free(why);
    for (size_t i = 0; i < c.n_in; i++)
        free(c.in[i].bytes.p);
    for (size_t i = 0; i < c.n_out; i++)
        free(c.out[i].bytes.p);
    yyjson_doc_free(c.doc);
}

/* ---- the tree ---------------------------------------------------------------------------------------- */

static int visible_name(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

/* A directory with a case.json is a case, any other a group. */
static void walk(const char *dir, const char *name, const char *only, const char *program)
{
    struct dirent **entries;
    struct stat st;
    char path[512];
    if ((size_t)snprintf(path, sizeof path, "%s/case.json", dir) >= sizeof path)
        die("%s: the name is too long", dir);
    if (stat(path, &st) == 0) {
        if (strncmp(name, only, strlen(only)) == 0)
            run_case(dir, name, program);
        return;
    }
    int n = scandir(dir, &entries, visible_name, alphasort);
    if (n < 0)
        die("%s: %s", dir, strerror(errno));
    for (int i = 0; i < n; i++) {
        char sub[512], sub_name[512];
        if ((size_t)snprintf(sub, sizeof sub, "%s/%s", dir, entries[i]->d_name) >= sizeof sub)
            die("%s: the name is too long", dir);
        snprintf(sub_name, sizeof sub_name, "%s%s%s", name, *name ? "/" : "", entries[i]->d_name);
        if (stat(sub, &st) == 0 && S_ISDIR(st.st_mode))
            walk(sub, sub_name, only, program);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    const char *program = NULL, *only = "", *dir = NULL;
    bool big = true;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--cli") == 0 && i + 1 < argc)
            program = argv[++i];
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only = argv[++i];
        else if (strcmp(argv[i], "--no-big") == 0)
            big = false;
        else
            dir = argv[i];
    }
    if (!dir) {
        fprintf(stderr,
                "usage: run_vectors [--cli PROGRAM] [--only PREFIX] [--no-big] DIRECTORY\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    walk(dir, "", only, program);
    if (!program && n_prefixes) {
        char why[80];
        snprintf(why, sizeof why, "%zu of %zu ended with an empty error message\n", n_silent,
                 n_prefixes);
        tap(n_silent == 0, "every input cut anywhere ends well or with an error", "", why);
    }
    if (big)
        run_big(program, only);
    return tap_end() ? 1 : 0;
}
