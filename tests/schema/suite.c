/*
 * suite.c - runs files of the official JSON Schema test suite: each file is a list of schemas with values.
 *
 * usage: schema_suite FILE...      (TAP on stdout)
 */
#include "base/limits.h"
#include "schema/schema.h"

#include <stdio.h>
#include <stdlib.h>

/* Tests that need what we do not do. Everything else has to pass. `test` NULL: all of the group; `group` NULL: all of the file. */
#define REMOTE "remote references are refused"
static const struct {
    const char *file, *group, *test, *reason;
} skipped[] = {
    {"refRemote", NULL, NULL, REMOTE},
    {"dynamicRef", "strict-tree schema, guards against misspelled properties", NULL, REMOTE},
    {"dynamicRef", "tests for implementation dynamic anchor and reference link", NULL, REMOTE},
    {"dynamicRef", "$ref and $dynamicAnchor are independent of order - $defs first", NULL, REMOTE},
    {"dynamicRef", "$ref and $dynamicAnchor are independent of order - $ref first", NULL, REMOTE},
    {"dynamicRef", "$ref to $dynamicRef finds detached $dynamicAnchor", NULL, REMOTE},
    {"cross-draft", "refs to historic drafts are processed as historic drafts", NULL, REMOTE},
    {"vocabulary", "schema that uses custom metaschema with with no validation vocabulary",
     "no validation: invalid number, but it still validates",
     "a remote meta-schema would have to be loaded to know its vocabularies"},
};

static size_t n_tests, n_failed;

static void report(const char *file, dgm_str group, dgm_str test, bool is_ok, const char *skip,
                   const char *reason)
{
    n_tests++;
    n_failed += !is_ok && !skip;
    printf("%sok %zu - %s: %.*s: %.*s%s%s\n", is_ok || skip ? "" : "not ", n_tests, file,
           DGM_P(group), DGM_P(test), skip ? " # SKIP " : "", skip ? skip : "");
    if (!is_ok && !skip)
        printf("# %s\n", reason);
}

static const char *skip_reason(const char *file, dgm_str group, dgm_str test)
{
    for (size_t i = 0; i < sizeof skipped / sizeof *skipped; i++) {
        if (strcmp(skipped[i].file, file) == 0 &&
            (!skipped[i].group || dgm_str_eq(group, dgm_str_from(skipped[i].group))) &&
            (!skipped[i].test || dgm_str_eq(test, dgm_str_from(skipped[i].test))))
            return skipped[i].reason;
    }
    return NULL;
}

static void run_test(const char *file, dgm_str group, const dgm_schema *s, yyjson_val *test)
{
    dgm_err err = {0}, again = {0};
    dgm_schema_mistakes mistakes;
    yyjson_val *data = yyjson_obj_get(test, "data");
    bool want = yyjson_get_bool(yyjson_obj_get(test, "valid"));
    dgm_code rc = dgm_schema_check(s, data, NULL, &err);
    bool is_ok = rc == (want ? DGM_OK : DGM_BAD_PARAMS);
    /* The complete report has the same outcome and says something. */
    is_ok = is_ok && dgm_schema_check(s, data, &mistakes, &again) == rc;
    is_ok = is_ok && (want ? mistakes.n == 0 : mistakes.n > 0 && mistakes.items[0].msg[0]);
    report(file, group, dgm_json_str_member(test, "description"), is_ok, NULL,
           rc ? err.msg : "valid, but expected a mistake");
}

static void run_group(const char *file, yyjson_val *group)
{
    dgm_auto(dgm_schema_free) dgm_schema *s = NULL;
    dgm_str name = dgm_json_str_member(group, "description");
    bool is_remote = skip_reason(file, name, (dgm_str){0}) != NULL;
    dgm_err err = {0};
    yyjson_val *test;
    size_t i, n;
    dgm_code rc = dgm_schema_compile(yyjson_obj_get(group, "schema"), &s, &err);
    if (is_remote)
        report(file, name, DGM_STR("is refused"),
               rc == DGM_BAD_PARAMS && strstr(err.msg, "remote schemas are not loaded"), NULL,
               err.msg);
    yyjson_arr_foreach (yyjson_obj_get(group, "tests"), i, n, test) {
        dgm_str description = dgm_json_str_member(test, "description");
        const char *skip = skip_reason(file, name, description);
        if (s && !skip)
            run_test(file, name, s, test);
        else
            report(file, name, description, false, skip, err.msg);
    }
}

static char *read_file(const char *path, size_t *ret_n)
{
    FILE *f = fopen(path, "rb");
    char *text = dgm_xmalloc((size_t)4 << 20);
    if (!f) {
        perror(path);
        exit(1);
    }
    *ret_n = fread(text, 1, (size_t)4 << 20, f);
    fclose(f);
    return text;
}

static void run_file(const char *path)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    const char *slash = strrchr(path, '/');
    char name[64];
    dgm_err err = {0};
    yyjson_val *root, *group;
    size_t i, n, size;
    char *text = read_file(path, &size);
    snprintf(name, sizeof name, "%s", slash ? slash + 1 : path);
    name[strcspn(name, ".")] = '\0';
    if (dgm_json_read(a, (dgm_str){text, size}, DGM_MAX_OBJECT_BYTES, "object_bytes", &root,
                      &err)) {
        fprintf(stderr, "%s: %s\n", path, err.msg);
        exit(1);
    }
    yyjson_arr_foreach (root, i, n, group)
        run_group(name, group);
    free(text);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        run_file(argv[i]);
    printf("1..%zu\n", n_tests);
    return n_failed || !n_tests;
}
