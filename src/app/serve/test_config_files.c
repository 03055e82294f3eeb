/*
 * test_config_files.c - tests/config: files and what they come to; and that schema and docs follow the table.
 *
 * good/NAME.yaml has good/NAME.expected, what --check prints of it; the schema accepts it.
 * bad/NAME.yaml has bad/NAME.expected, a line per finding; the schema refuses it if its first line says
 * `# schema: refuses`.
 * After a change on purpose: DGM_CONFIG_UPDATE=1 build-test/src/test_config_files regenerates them.
 */
#include "app/serve/routes.h"
#include "config_int.h"
#include "support/check.h"

#include <dirent.h>
#include <regex.h>
#include <unistd.h>

static bool update;

/* ---- files ------------------------------------------------------------------------------------------- */

/* The tests are run from the root of the tree or from a build folder in it. */
static void go_to_root(void)
{
    for (int i = 0; i < 4 && access("tests/config/good", F_OK) != 0; i++)
        assert_int_equal(chdir(".."), 0);
}

static dgm_str slurp(dgm_arena *a, const char *path)
{
    FILE *f = fopen(path, "rb");
    dgm_buf b;
    char chunk[4096];
    size_t n;
    if (!f)
        return (dgm_str){0};
    dgm_buf_init(&b, SIZE_MAX);
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
        dgm_buf_add(&b, chunk, n);
    fclose(f);
    dgm_str s = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return s;
}

/* The file has this text; or gets it. */
static void check_file(dgm_arena *a, const char *path, dgm_str want)
{
    if (update) {
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        fwrite(want.p, 1, want.n, f);
        fclose(f);
    }
    dgm_str got = slurp(a, path);
    if (!dgm_str_eq(got, want))
        print_error(
            "%s is not what it should be; DGM_CONFIG_UPDATE=1 test_config_files writes it\n", path);
    check_same(got, want);
}

static const char *test_env(const char *name)
{
    return strcmp(name, "SECRET") == 0 ? "s3cret-from-the-environment"
           : strcmp(name, "PORT") == 0 ? "9000"
                                       : NULL;
}

static const char *ext_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot : "";
}

typedef void (*on_file)(dgm_arena *a, const char *path, const char *expected);

static void each_file(const char *folder, on_file fn)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    size_t n = 0;
    assert_non_null(d);
    while ((e = readdir(d))) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        if (strcmp(ext_of(e->d_name), ".yaml") != 0 && strcmp(ext_of(e->d_name), ".json") != 0)
            continue;
        dgm_str path = dgm_arena_printf(a, "%s/%s", folder, e->d_name);
        dgm_str expected = dgm_arena_printf(a, "%s/%.*s.expected", folder,
                                            (int)(ext_of(e->d_name) - e->d_name), e->d_name);
        fn(a, path.p, expected.p);
        n++;
    }
    closedir(d);
    assert_true(n > 0);
}

/* ---- as much of JSON Schema as ours uses --------------------------------------------------------------- */

static bool fits(yyjson_val *root, yyjson_val *schema, yyjson_val *v);

static bool has_type(yyjson_val *v, const char *type)
{
    int64_t n;
    return strcmp(type, "object") == 0    ? yyjson_is_obj(v)
           : strcmp(type, "array") == 0   ? yyjson_is_arr(v)
           : strcmp(type, "string") == 0  ? yyjson_is_str(v)
           : strcmp(type, "null") == 0    ? yyjson_is_null(v)
           : strcmp(type, "boolean") == 0 ? yyjson_is_bool(v)
           : strcmp(type, "number") == 0  ? yyjson_is_raw(v)
           : strcmp(type, "integer") == 0 ? yyjson_is_raw(v) && dgm_json_int(v, &n)
                                          : false;
}

static bool matches(dgm_str text, const char *pattern)
{
    regex_t re;
    char copy[4096];
    assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
    snprintf(copy, sizeof copy, "%.*s", DGM_P(text));
    bool ok = regexec(&re, copy, 0, NULL, 0) == 0;
    regfree(&re);
    return ok;
}

static bool object_fits(yyjson_val *root, yyjson_val *schema, yyjson_val *v)
{
    yyjson_val *properties = yyjson_obj_get(schema, "properties"), *key, *item, *member;
    size_t i, n;
    yyjson_arr_foreach (yyjson_obj_get(schema, "required"), i, n, item) {
        if (!yyjson_obj_getn(v, yyjson_get_str(item), yyjson_get_len(item)))
            return false;
    }
    yyjson_obj_foreach (v, i, n, key, item) {
        member = yyjson_obj_getn(properties, yyjson_get_str(key), yyjson_get_len(key));
        if (yyjson_obj_get(schema, "patternProperties") &&
            dgm_str_starts(dgm_json_str(key), DGM_STR("x-")))
            continue;
        yyjson_val *others = yyjson_obj_get(schema, "additionalProperties");
        if (member                  ? !fits(root, member, item)
            : yyjson_is_obj(others) ? !fits(root, others, item)
                                    : others != NULL)
            return false;
    }
    return true;
}

static bool keyword_fits(yyjson_val *root, yyjson_val *schema, const char *word, yyjson_val *arg,
                         yyjson_val *v)
{
    yyjson_val *item;
    size_t i, n;
    int64_t number, bound;
    bool any = false;
    if (strcmp(word, "$ref") == 0) {
        yyjson_val *target = yyjson_ptr_get(root, yyjson_get_str(arg) + 1);
        assert_non_null(target);
        return fits(root, target, v);
    }
    if (strcmp(word, "anyOf") == 0 || strcmp(word, "enum") == 0) {
        yyjson_arr_foreach (arg, i, n, item)
            any |= word[0] == 'a' ? fits(root, item, v) : dgm_json_equal(item, v);
        return any;
    }
    if (strcmp(word, "type") == 0) {
        if (yyjson_is_str(arg))
            return has_type(v, yyjson_get_str(arg));
        yyjson_arr_foreach (arg, i, n, item)
            any |= has_type(v, yyjson_get_str(item));
        return any;
    }
    if (strcmp(word, "pattern") == 0)
        return !yyjson_is_str(v) || matches(dgm_json_str(v), yyjson_get_str(arg));
    if (strcmp(word, "minimum") == 0 || strcmp(word, "maximum") == 0) {
        if (!yyjson_is_raw(v))
            return true;
        double is = strtod(yyjson_get_raw(v), NULL), limit = strtod(yyjson_get_raw(arg), NULL);
        return word[1] == 'i' ? is >= limit : is <= limit;
    }
    if (strcmp(word, "minItems") == 0 || strcmp(word, "maxItems") == 0) {
        assert_true(dgm_json_int(arg, &bound));
        number = (int64_t)yyjson_arr_size(v);
        return !yyjson_is_arr(v) || (word[1] == 'i' ? number >= bound : number <= bound);
    }
    if (strcmp(word, "items") == 0) {
        yyjson_arr_foreach (v, i, n, item) {
            if (!fits(root, arg, item))
                return false;
        }
        return true;
    }
    if (strcmp(word, "allOf") == 0) {
        yyjson_arr_foreach (arg, i, n, item) {
            if (!fits(root, item, v))
                return false;
        }
        return true;
    }
    if (strcmp(word, "if") == 0)
        return !fits(root, arg, v) || fits(root, yyjson_obj_get(schema, "then"), v);
    if (strcmp(word, "additionalProperties") == 0 && !yyjson_obj_get(schema, "properties"))
        return object_fits(root, schema, v);
    if (strcmp(word, "properties") == 0)
        return object_fits(root, schema, v);
    if (strcmp(word, "required") == 0 || strcmp(word, "additionalProperties") == 0 ||
        strcmp(word, "description") == 0 || strcmp(word, "default") == 0 ||
        strcmp(word, "title") == 0 || strcmp(word, "then") == 0 ||
        strcmp(word, "patternProperties") == 0 || word[0] == '$')
        return true;
    fail_msg("a keyword this test does not know: %s", word);
    return false;
}

static bool fits(yyjson_val *root, yyjson_val *schema, yyjson_val *v)
{
    yyjson_val *key, *arg;
    size_t i, n;
    yyjson_obj_foreach (schema, i, n, key, arg) {
        if (!keyword_fits(root, schema, yyjson_get_str(key), arg, v))
            return false;
    }
    return true;
}

static yyjson_val *schema_of(dgm_arena *a)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_config_put_schema(&b);
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return dgm_json_parse_trusted(a, text);
}

/* As an editor sees it: variables are not replaced. */
static yyjson_val *as_written(dgm_arena *a, const char *path)
{
    dgm_config_findings f = {.arena = a};
    dgm_config_doc *doc = dgm_new(a, dgm_config_doc);
    dgm_config_doc_read(doc, a, slurp(a, path), strcmp(ext_of(path), ".json") == 0, NULL, &f);
    return doc->root;
}

/* ---- the files ----------------------------------------------------------------------------------------- */

static void good_file(dgm_arena *a, const char *path, const char *expected)
{
    dgm_auto(dgm_config_free) dgm_config *c =
        dgm_config_load(&(dgm_config_source){.file = path, .env = test_env});
    yyjson_val *schema = schema_of(a), *doc = as_written(a, path);
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < c->n_findings; i++) {
        dgm_config_finding_put(&b, &c->findings[i]);
        print_error("%.*s\n", (int)b.n, b.p);
    }
    assert_int_equal(c->n_findings, 0);
    dgm_config_put(&b, c);
    check_file(a, expected, dgm_arena_dup(a, dgm_buf_str(&b)));
    dgm_buf_done(&b);
    assert_non_null(doc);
    if (!yyjson_is_null(doc) && !fits(schema, schema, doc))
        fail_msg("the schema refuses %s", path);
}

static void bad_file(dgm_arena *a, const char *path, const char *expected)
{
    dgm_auto(dgm_config_free) dgm_config *c =
        dgm_config_load(&(dgm_config_source){.file = path, .env = test_env});
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < c->n_findings; i++) {
        dgm_buf one;
        dgm_buf_init(&one, SIZE_MAX);
        dgm_config_finding_put(&one, &c->findings[i]);
        dgm_buf_add_str(&b, dgm_buf_str(&one));
        dgm_buf_add_char(&b, '\n');
        dgm_buf_done(&one);
    }
    if (!c->n_errors)
        fail_msg("%s has no errors", path);
    check_file(a, expected, dgm_arena_dup(a, dgm_buf_str(&b)));
    dgm_buf_done(&b);
    if (dgm_str_starts(slurp(a, path), DGM_STR("# schema: refuses"))) {
        yyjson_val *schema = schema_of(a), *doc = as_written(a, path);
        if (fits(schema, schema, doc))
            fail_msg("the schema accepts %s", path);
    }
}

static void good_files_come_to_what_is_expected_and_fit_the_schema(void **state)
{
    (void)state;
    each_file("tests/config/good", good_file);
}

static void bad_files_get_every_finding_at_once(void **state)
{
    (void)state;
    each_file("tests/config/bad", bad_file);
}

static void the_schema_is_shipped_as_the_table_has_it(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_config_put_schema(&b);
    check_file(a, "share/config.schema.json", dgm_arena_dup(a, dgm_buf_str(&b)));
    dgm_buf_done(&b);
}

/* The lines between the line that starts with `mark` and the next "<!-- end -->" are what `put` writes. */
static void check_section(const char *path, const char *mark, void (*put)(dgm_buf *))
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str text = slurp(a, path);
    dgm_buf b;
    const char *from = text.p ? strstr(text.p, mark) : NULL;
    const char *to = from ? strstr(from, "<!-- end -->\n") : NULL;
    from = from ? strchr(from, '\n') : NULL;
    if (!from || !to) {
        fail_msg("%s has lost its marks", path);
        return;
    }
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add(&b, text.p, (size_t)(from + 1 - text.p));
    put(&b);
    dgm_buf_add_str(&b, dgm_str_from(to));
    check_file(a, path, dgm_arena_dup(a, dgm_buf_str(&b)));
    dgm_buf_done(&b);
}

static void the_docs_say_what_the_table_says(void **state)
{
    (void)state;
    check_section("docs/configuration.md", "<!-- begin: made from the table -->",
                  dgm_config_put_docs);
}

static void put_settings_of_exec(dgm_buf *b)
{
    assert_true(dgm_config_put_settings_docs(b, DGM_STR("exec")));
}

static void put_settings_of_a2a(dgm_buf *b)
{
    assert_true(dgm_config_put_settings_docs(b, DGM_STR("a2a")));
}

static void put_settings_of_http(dgm_buf *b)
{
    assert_true(dgm_config_put_settings_docs(b, DGM_STR("http")));
}

static void the_guide_has_the_settings_of_the_types(void **state)
{
    (void)state;
    check_section("docs/agents.md", "<!-- settings of exec: ", put_settings_of_exec);
    check_section("docs/agents/a2a.md", "<!-- settings of a2a: ", put_settings_of_a2a);
    check_section("docs/agents/http.md", "<!-- settings of http: ", put_settings_of_http);
}

static void the_guide_has_the_routes(void **state)
{
    (void)state;
    check_section("docs/operations.md", "<!-- routes: ", dgm_routes_put_markdown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        dgm_test(good_files_come_to_what_is_expected_and_fit_the_schema),
        dgm_test(bad_files_get_every_finding_at_once),
        dgm_test(the_schema_is_shipped_as_the_table_has_it),
        dgm_test(the_docs_say_what_the_table_says),
        dgm_test(the_guide_has_the_settings_of_the_types),
        dgm_test(the_guide_has_the_routes),
    };
    update = getenv("DGM_CONFIG_UPDATE") != NULL;
    go_to_root();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
