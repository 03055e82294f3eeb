/*
 * test_config_files.c - tests/config: files and what they come to; and that schema and docs follow the table.
 *
 * good/NAME.yaml has good/NAME.expected, what --check prints of it; the schema accepts it.
 * bad/NAME.yaml has bad/NAME.expected, a line per finding; the schema refuses it if its first line says
 * `# schema: refuses`.
 * After a change on purpose: DGM_CONFIG_UPDATE=1 build-test/src/test_config_files regenerates them.
 */
#include "app/serve/routes.h"
#include "config/config_int.h"
#include "schema/schema.h"
#include "support/check.h"

#include <dirent.h>
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

/* ---- the schema ----------------------------------------------------------------------------------------- */

static bool fits_schema(yyjson_val *v, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_auto(dgm_schema_free) dgm_schema *schema = NULL;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_config_put_schema(&b);
    if (dgm_schema_compile(dgm_json_parse_trusted(a, dgm_buf_str(&b)), &schema, err))
        fail_msg("the schema is invalid: %s: %s", err->at, err->msg);
    dgm_buf_done(&b);
    return dgm_schema_check(schema, v, NULL, err) == DGM_OK;
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
    yyjson_val *doc = as_written(a, path);
    dgm_err err = {0};
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
    if (!yyjson_is_null(doc) && !fits_schema(doc, &err))
        fail_msg("the schema refuses %s: %s: %s", path, err.at, err.msg);
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
        dgm_err err = {0};
        if (fits_schema(as_written(a, path), &err))
            fail_msg("the schema accepts %s", path);
        assert_int_equal(err.code, DGM_BAD_PARAMS);
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

static void put_settings_of_langgraph_server(dgm_buf *b)
{
    assert_true(dgm_config_put_settings_docs(b, DGM_STR("langgraph-server")));
}

static void put_settings_of_llm(dgm_buf *b)
{
    assert_true(dgm_config_put_settings_docs(b, DGM_STR("llm")));
}

static void put_settings_of_langgraph(dgm_buf *b)
{
    assert_true(dgm_config_put_settings_docs(b, DGM_STR("langgraph")));
}

static void the_guide_has_the_settings_of_the_types(void **state)
{
    (void)state;
    check_section("docs/agents.md", "<!-- settings of exec: ", put_settings_of_exec);
    check_section("docs/agents/a2a.md", "<!-- settings of a2a: ", put_settings_of_a2a);
    check_section("docs/agents/http.md", "<!-- settings of http: ", put_settings_of_http);
    check_section("docs/agents/llm.md", "<!-- settings of llm: ", put_settings_of_llm);
    check_section("docs/agents/langgraph.md",
                  "<!-- settings of langgraph: ", put_settings_of_langgraph);
    check_section("docs/agents/langgraph-server.md", "<!-- settings of langgraph-server: ",
                  put_settings_of_langgraph_server);
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
