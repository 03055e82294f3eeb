/*
 * roundtrip/test_roundtrip.c - there and back between A2A's dialects, against the declared losses.
 *
 *     test_roundtrip FULL_DIRECTORY VECTORS_DIRECTORY
 *
 * Subjects are the files of full/ (KIND[+label].FORMAT.json, every member filled) and the single
 * values among the golden files. Each goes from its dialect through every other one and back. What
 * then differs must be covered by a row of dgm_format_losses(), and every row must be seen at work: a row
 * that nothing shows is stale.
 */
#include "base/err.h"
#include "vectors/compare.h"

#include <dragoman/document.h>

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const dialects[] = {"a2a-1.0", "a2a-0.3", "a2a-0.3-rest"};
#define N_DIALECTS 3
#define MAX_ROWS 256

/* ---- TAP ------------------------------------------------------------------------------------------ */

static size_t n_tests, n_failed;

static void tap(bool ok, const char *name, const char *diagnostics)
{
    n_tests++;
    n_failed += !ok;
    printf("%sok %zu - %s\n", ok ? "" : "not ", n_tests, name);
    for (const char *line = diagnostics; !ok && *line;) {
        size_t n = strcspn(line, "\n");
        printf("# %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

static _Noreturn void die(const char *format, ...) DGM_PRINTF(1, 2);

static _Noreturn void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("Bail out! ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
    exit(3);
}

/* ---- the declared losses ----------------------------------------------------------------------------- */

typedef struct row {
    const char *from, *to;
    const dgm_loss *loss;
    bool seen;
} row;

static row rows[6 * MAX_ROWS];
static size_t n_rows;

static void read_rows(void)
{
    for (size_t f = 0; f < N_DIALECTS; f++) {
        for (size_t t = 0; t < N_DIALECTS; t++) {
            const dgm_loss *losses[MAX_ROWS];
            size_t n =
                f == t ? 0
                       : dgm_format_losses(dgm_format_id_by_name(dialects[f]),
                                           dgm_format_id_by_name(dialects[t]), losses, MAX_ROWS);
            if (n > MAX_ROWS)
                die("more than %d rows", MAX_ROWS);
            for (size_t i = 0; i < n; i++)
                rows[n_rows++] = (row){dialects[f], dialects[t], losses[i], false};
        }
    }
}

/* "kept, but ...": a warning about what a value means; no value shows it, save an empty one. */
static bool is_note(const dgm_loss *loss)
{
    return strncmp(loss->what, "kept, but", 9) == 0;
}

/* The kind of object in a member of this name, for the kinds that rows are about. */
static const struct {
    const char *name, *kind;
} places[] = {
    {"parts", "part"},
    {"content", "part"},
    {"history", "message"},
    {"message", "message"},
    {"status", "status"},
    {"artifacts", "artifact"},
    {"artifact", "artifact"},
    {"task", "task"},
    {"tasks", "task"},
    {"statusUpdate", "status-update"},
    {"artifactUpdate", "artifact-update"},
    {"configs", "push-config"},
    {"taskPushNotificationConfig", "push-config"},
    {"pushNotificationConfig", "push-config"},
    {"pushNotification", "push-config"},
};

/* Is the object at pointer[0..n) one of this kind? */
static bool is_kind(const char *kind, const char *subject, const char *pointer, size_t n)
{
    if (strcmp(kind, "any") == 0)
        return true;
    if (n == 0) { /* 0.3's JSON-RPC has no wrappers: the event is the object itself */
        bool is_union =
            strcmp(subject, "stream-response") == 0 || strcmp(subject, "send-response") == 0;
        return strcmp(kind, subject) == 0 ||
               (is_union &&
                (strcmp(kind, "message") == 0 || strcmp(kind, "task") == 0 ||
                 strcmp(kind, "status-update") == 0 || strcmp(kind, "artifact-update") == 0));
    }
    if (n > 2 && memcmp(pointer + n - 2, "/*", 2) == 0)
        n -= 2;
    size_t start = n;
    while (start && pointer[start - 1] != '/')
        start--;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (strlen(places[i].name) == n - start &&
            memcmp(places[i].name, pointer + start, n - start) == 0)
            return strcmp(places[i].kind, kind) == 0;
    }
    /* The content of an envelope has the kind of --object or of its method. */
    return n == 7 && (memcmp(pointer, "/params", 7) == 0 || memcmp(pointer, "/result", 7) == 0);
}

/* Does pattern (with * for any step) lead to pointer, or to something around it? */
static bool leads_to(const char *pattern, const char *pointer)
{
    while (*pattern) {
        if (*pointer != '/')
            return false;
        size_t n = strcspn(pattern + 1, "/"), m = strcspn(pointer + 1, "/");
        if (!(n == 1 && pattern[1] == '*') && (n != m || memcmp(pattern + 1, pointer + 1, n) != 0))
            return false;
        pattern += 1 + n;
        pointer += 1 + m;
    }
    return true;
}

/* full/ and the golden files begin the names of unknown members with an x, but for a few. */
static bool names_unknown(const char *pointer)
{
    static const char *const names[] = {"y", "z", "odd", "size", "unknown"};
    const char *last = strrchr(pointer, '/');
    for (size_t i = 0; last && i < sizeof names / sizeof *names; i++) {
        if (strcmp(last + 1, names[i]) == 0)
            return true;
    }
    return last && last[1] == 'x';
}

static bool covers(const dgm_loss *loss, const char *subject, const char *pointer)
{
    if (strcmp(loss->member, "/*") == 0)
        return names_unknown(pointer);
    if (!*loss->member)
        return !*pointer && strcmp(loss->object, subject) == 0;
    for (size_t n = 0;; n += 1 + strcspn(pointer + n + 1, "/")) {
        if (is_kind(loss->object, subject, pointer, n) && leads_to(loss->member, pointer + n))
            return true;
        if (!pointer[n])
            return false;
    }
}

/* ---- one round trip ------------------------------------------------------------------------------------ */

typedef struct subject {
    const char *name;   /* for people */
    const char *kind;   /* the kind of object; "": unknown */
    const char *object; /* --object of the converter; "": it detects the kind */
    const char *format;
    const char *p;
    size_t n;
} subject;

typedef struct trip {
    const subject *s;
    const char *via;
    FILE *why;
    size_t n_uncovered;
} trip;

static void see(void *ctx, const char *pointer, yyjson_val *got, yyjson_val *want)
{
    trip *t = ctx;
    bool covered = false;
    for (size_t i = 0; i < n_rows; i++) {
        row *r = &rows[i];
        bool there = strcmp(r->from, t->s->format) == 0 && strcmp(r->to, t->via) == 0;
        bool back = strcmp(r->from, t->via) == 0 && strcmp(r->to, t->s->format) == 0;
        bool says_so = !is_note(r->loss) || (yyjson_is_arr(want) && !yyjson_arr_size(want));
        if ((there || back) && says_so && covers(r->loss, t->s->kind, pointer)) {
            covered = true;
            r->seen |= there;
        }
    }
    if (covered)
        return;
    char g[200], w[200];
    compare_show(got, g, sizeof g);
    compare_show(want, w, sizeof w);
    t->n_uncovered++;
    fprintf(t->why,
            "%s (%s) through %s: no row says what happens to \"%s\"\n  before %s\n  after  %s\n",
            t->s->name, *t->s->object ? t->s->object : "by its shape", t->via, pointer, w, g);
}

static dgm_code convert(const char *from, const char *to, const char *kind, const char *p, size_t n,
                        char **ret, size_t *ret_n, dgm_err *err)
{
    dgm_convert_options options = {.size = sizeof options,
                                   .from = dgm_format_id_by_name(from),
                                   .to = dgm_format_id_by_name(to),
                                   .object =
                                       dgm_object_kind_by_name((dgm_str){kind, strlen(kind)})};
    return dgm_convert(&options, p, n, ret, ret_n, err);
}

static yyjson_val *only_member(yyjson_val *v, const char **ret_name)
{
    if (yyjson_obj_size(v) != 1)
        return NULL;
    yyjson_obj_iter it = yyjson_obj_iter_with(v);
    yyjson_val *key = yyjson_obj_iter_next(&it);
    *ret_name = yyjson_get_str(key);
    return yyjson_obj_iter_get_val(key);
}

static bool same(yyjson_val *a, yyjson_val *b)
{
    compare c = {0};
    compare_values(&c, a, b);
    return c.n_differences == 0;
}

static bool has_envelopes(const char *format)
{
    size_t n = dgm_format_count();
    for (size_t i = 0; i < n; i++) {
        if (strcmp(dgm_format_at(i)->name, format) == 0)
            return dgm_format_at(i)->envelopes;
    }
    return false;
}

static void compare_trip(trip *t, yyjson_val *before, yyjson_val *after)
{
    static const char *const payloads[] = {"params", "result", "error"};
    compare c = {.on_difference = see, .ctx = t, .star_index = true};
    const char *name = "";
    /* No envelope there: what was inside comes back alone. */
    if (yyjson_obj_get(before, "jsonrpc") && !yyjson_obj_get(after, "jsonrpc") &&
        !has_envelopes(t->via)) {
        see(t, "/jsonrpc", NULL, yyjson_obj_get(before, "jsonrpc"));
        for (size_t i = 0; i < 3; i++) {
            yyjson_val *payload = yyjson_obj_get(before, payloads[i]);
            if (payload && i == 2) /* REST wraps an error where JSON-RPC does not */
                after = yyjson_obj_get(after, "error") ? yyjson_obj_get(after, "error") : after;
            /* REST answers {} where JSON-RPC answers null */
            bool nothing = yyjson_is_null(payload) && yyjson_obj_size(after) == 0;
            if (payload && i < 2 && !nothing)
                compare_values(&c, after, payload);
        }
        return;
    }
    /* No wrapper there: the wrapped comes back bare. */
    yyjson_val *wrapped = only_member(before, &name);
    for (size_t i = 0; wrapped && i < sizeof places / sizeof *places; i++) {
        if (strcmp(places[i].name, name) == 0 && !yyjson_obj_get(after, name) &&
            yyjson_obj_size(after) > 1) {
            char pointer[80];
            subject inner = *t->s;
            trip inside = *t;
            snprintf(pointer, sizeof pointer, "/%s", name);
            see(t, pointer, NULL, wrapped);
            inner.kind = places[i].kind;
            inside.s = &inner;
            c.ctx = &inside;
            compare_values(&c, after, wrapped);
            return;
        }
    }
    compare_values(&c, after, before);
}

/* Files about members that a dialect computes or fills in, whatever was written there. */
static bool is_computed(const char *name)
{
    return strstr(name, "+final") || strstr(name, "+defaults") || strstr(name, "+hybrid");
}

/* normalise: compare with what the dialect itself makes of the subject, not with its text. */
static void run_trip(const subject *s, const char *via, bool normalise, FILE *why)
{
    trip t = {s, via, why, 0};
    dgm_err err = {0};
    char *there = NULL, *back = NULL, *plain = NULL, *again = NULL, *twice = NULL;
    size_t n_there, n_back, n_plain = 0, n_again, n_twice;
    const char *fault = "";
    yyjson_doc *before = NULL, *after = NULL;

    if (convert(s->format, s->format, s->object, s->p, s->n, &plain, &n_plain, &err)) {
        fprintf(why, "%s to itself: %s at \"%s\"\n", s->name, err.msg, err.at);
        return;
    }
    if (!normalise) { /* within one dialect nothing is lost: what is computed aside */
        yyjson_doc *a = compare_read(s->p, s->n, &fault), *b = compare_read(plain, n_plain, &fault);
        if (!a || !b)
            fprintf(why, "%s: not JSON: %s\n", s->name, fault);
        else if (!is_computed(s->name) && !same(yyjson_doc_get_root(a), yyjson_doc_get_root(b)))
            fprintf(why, "%s to itself: another value: %.*s\n", s->name, (int)n_plain, plain);
        yyjson_doc_free(a);
        yyjson_doc_free(b);
    }
    dgm_code rc = convert(s->format, via, s->object, s->p, s->n, &there, &n_there, &err);
    if (rc == DGM_UNSUPPORTED_OPERATION) {
        see(&t, "", NULL, NULL);
        goto done;
    }
    if (rc) {
        fprintf(why, "%s to %s: %s at \"%s\"\n", s->name, via, err.msg, err.at);
        goto done;
    }
    if (convert(via, s->format, s->object, there, n_there, &back, &n_back, &err)) {
        fprintf(why, "%s to %s and back: %s at \"%s\"\n  there it was %.*s\n", s->name, via,
                err.msg, err.at, (int)n_there, there);
        goto done;
    }
    before = normalise ? compare_read(plain, n_plain, &fault) : compare_read(s->p, s->n, &fault);
    after = compare_read(back, n_back, &fault);
    if (!before || !after) {
        fprintf(why, "%s through %s: not JSON: %s\n", s->name, via, fault);
        goto done;
    }
    compare_trip(&t, yyjson_doc_get_root(before), yyjson_doc_get_root(after));
    /* A second round trip changes nothing: losses do not add up. A value without an envelope may
     * need --object, so only if the kind is known. */
    if (*s->object && has_envelopes(via) &&
        !convert(s->format, via, s->object, back, n_back, &again, &n_again, &err)) {
        if (convert(via, s->format, s->object, again, n_again, &twice, &n_twice, &err))
            fprintf(why, "%s through %s twice: %s\n", s->name, via, err.msg);
        else if (n_twice != n_back || memcmp(twice, back, n_back) != 0)
            fprintf(why, "%s through %s twice: another text\n  once  %s\n  twice %s\n", s->name,
                    via, back, twice);
    }
done:
    yyjson_doc_free(before);
    yyjson_doc_free(after);
    dgm_free(there);
    dgm_free(back);
    dgm_free(plain);
    dgm_free(again);
    dgm_free(twice);
}

/* ---- subjects ------------------------------------------------------------------------------------------ */

static char *read_all(const char *path, size_t *ret_n)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &st))
        die("%s: %s", path, strerror(errno));
    char *p = malloc((size_t)st.st_size + 1);
    if (!p)
        die("out of memory");
    *ret_n = fread(p, 1, (size_t)st.st_size, f);
    p[*ret_n] = 0;
    fclose(f);
    return p;
}

/* FORMAT of something.FORMAT.json; NULL when it is not one of the three. */
static const char *format_of(const char *behind)
{
    for (size_t i = 0; i < N_DIALECTS; i++) {
        size_t n = strlen(dialects[i]);
        if (strncmp(behind, dialects[i], n) == 0 && strcmp(behind + n, ".json") == 0)
            return dialects[i];
    }
    return NULL;
}

static int visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static void run_full(const char *dir)
{
    struct dirent **files;
    int n = scandir(dir, &files, visible, alphasort);
    if (n < 0)
        die("%s: %s", dir, strerror(errno));
    for (int i = 0; i < n; i++) {
        const char *file = files[i]->d_name;
        char path[512], kind[64], name[320];
        size_t n_kind = strcspn(file, "+.");
        const char *format = strchr(file, '.') ? format_of(strchr(file, '.') + 1) : NULL;
        snprintf(path, sizeof path, "%s/%s", dir, file);
        snprintf(kind, sizeof kind, "%.*s", (int)n_kind, file);
        if (!format || !dgm_object_kind_by_name((dgm_str){kind, n_kind}))
            die("%s: not KIND[+label].FORMAT.json", path);
        subject s = {.name = file, .kind = kind, .object = kind, .format = format};
        char *text = read_all(path, &s.n);
        s.p = text;
        for (size_t v = 0; v < N_DIALECTS; v++) {
            if (strcmp(dialects[v], format) == 0)
                continue;
            char *why = NULL;
            size_t n_why = 0;
            FILE *w = open_memstream(&why, &n_why);
            run_trip(&s, dialects[v], false, w);
            /* Events also without --object. */
            if (strcmp(kind, "stream-response") == 0) {
                subject by_shape = s;
                by_shape.object = "";
                run_trip(&by_shape, dialects[v], false, w);
            }
            bool ok = ftell(w) == 0;
            fclose(w);
            snprintf(name, sizeof name, "%s through %s", file, dialects[v]);
            tap(ok, name, why);
            free(why);
        }
        free(text);
        free(files[i]);
    }
    free(files);
}

/* ---- the golden files ------------------------------------------------------------------------------------ */

typedef struct reports { /* diagnostics per pair of dialects */
    FILE *why[N_DIALECTS][N_DIALECTS];
    size_t n[N_DIALECTS][N_DIALECTS];
} reports;

static const char *object_of(yyjson_val *args)
{
    const char *kind = "";
    for (size_t i = 0; i + 1 < yyjson_arr_size(args); i += 2) {
        const char *option = yyjson_get_str(yyjson_arr_get(args, i));
        if (strcmp(option, "--object") == 0)
            kind = yyjson_get_str(yyjson_arr_get(args, i + 1));
        else if (strcmp(option, "--seed") != 0)
            return NULL; /* another format or framing: not ours */
    }
    return kind;
}

static void run_vector(const char *dir, const char *name, const char *file, const char *kind,
                       reports *r)
{
    const char *format = format_of(strchr(file, '.') + 1);
    char path[600], label[600];
    if (!format)
        return;
    snprintf(path, sizeof path, "%s/%s", dir, file);
    snprintf(label, sizeof label, "%s/%s", name, file);
    subject s = {.name = label, .kind = kind, .object = kind, .format = format};
    char *text = read_all(path, &s.n);
    s.p = text;
    dgm_document *document = NULL;
    dgm_err err = {0};
    const dgm_convert_options o = {.size = sizeof o, .from = dgm_format_id_by_name(format)};
    if (!*kind && !dgm_document_decode(&o, s.p, s.n, &document, &err))
        s.kind = dgm_object_kind_name(dgm_document_kind(document, 0));
    dgm_document_free(document);
    yyjson_doc *doc = compare_read(s.p, s.n, NULL);
    if (doc && yyjson_is_obj(yyjson_doc_get_root(doc))) {
        for (size_t f = 0; f < N_DIALECTS; f++) {
            for (size_t v = 0; v < N_DIALECTS; v++) {
                if (strcmp(dialects[f], format) == 0 && f != v) {
                    r->n[f][v]++;
                    run_trip(&s, dialects[v], true, r->why[f][v]);
                }
            }
        }
    }
    yyjson_doc_free(doc);
    free(text);
}

static void walk(const char *dir, const char *name, reports *r)
{
    struct dirent **entries;
    struct stat st;
    char path[512];
    size_t n_case;
    int n = scandir(dir, &entries, visible, alphasort);
    if (n < 0)
        die("%s: %s", dir, strerror(errno));
    snprintf(path, sizeof path, "%s/case.json", dir);
    yyjson_doc *doc = NULL;
    const char *kind = NULL;
    if (stat(path, &st) == 0) {
        char *text = read_all(path, &n_case);
        doc = yyjson_read(text, n_case, 0);
        free(text);
        yyjson_val *root = yyjson_doc_get_root(doc);
        kind = yyjson_get_int(yyjson_obj_get(root, "exit"))
                   ? NULL
                   : object_of(yyjson_obj_get(root, "args"));
    }
    for (int i = 0; i < n; i++) {
        const char *file = entries[i]->d_name;
        char sub[512], sub_name[512];
        if ((size_t)snprintf(sub, sizeof sub, "%s/%s", dir, file) >= sizeof sub)
            die("%s: the name is too long", dir);
        snprintf(sub_name, sizeof sub_name, "%s%s%s", name, *name ? "/" : "", file);
        if (stat(sub, &st) == 0 && S_ISDIR(st.st_mode))
            walk(sub, sub_name, r);
        else if (kind && (strncmp(file, "in.", 3) == 0 || strncmp(file, "both.", 5) == 0))
            run_vector(dir, name, file, kind, r);
        free(entries[i]);
    }
    yyjson_doc_free(doc);
    free(entries);
}

static void run_vectors(const char *dir)
{
    reports r = {0};
    char *why[N_DIALECTS][N_DIALECTS];
    size_t n[N_DIALECTS][N_DIALECTS];
    for (size_t f = 0; f < N_DIALECTS; f++) {
        for (size_t v = 0; v < N_DIALECTS; v++)
            r.why[f][v] = open_memstream(&why[f][v], &n[f][v]);
    }
    walk(dir, "", &r);
    for (size_t f = 0; f < N_DIALECTS; f++) {
        for (size_t v = 0; v < N_DIALECTS; v++) {
            bool ok = ftell(r.why[f][v]) == 0 && r.n[f][v] > 0;
            char name[128];
            fclose(r.why[f][v]);
            snprintf(name, sizeof name, "golden files of %s through %s", dialects[f], dialects[v]);
            if (f != v)
                tap(ok, name, r.n[f][v] ? why[f][v] : "there are none\n");
            free(why[f][v]);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: test_roundtrip FULL_DIRECTORY VECTORS_DIRECTORY\n");
        return 2;
    }
    read_rows();
    run_full(argv[1]);
    run_vectors(argv[2]);
    for (size_t i = 0; i < n_rows; i++) {
        const row *r = &rows[i];
        char name[400], why[600];
        if (is_note(r->loss))
            continue;
        snprintf(name, sizeof name, "%s to %s, row %s \"%s\" is seen at work", r->from, r->to,
                 r->loss->object, r->loss->member);
        snprintf(why, sizeof why, "no subject shows it: %s\n", r->loss->what);
        tap(r->seen, name, why);
    }
    printf("1..%zu\n", n_tests);
    return n_failed != 0;
}
