/* test_langgraph_file.c - the graphs of a project as agents. */
#include "config/langgraph_file.h"
#include "support/check.h"

#include <unistd.h>

static char folder[] = "/tmp/dragoman-langgraph-XXXXXX";

static void write_project(const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fwrite(text, 1, strlen(text), f);
    fclose(f);
}

/* The agents, with "F" for the folder. */
static void expect_agents(const char *name, const char *want)
{
    char path[200];
    dgm_buf b, shown;
    dgm_err err = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_init(&shown, SIZE_MAX);
    if (dgm_langgraph_file_put_agents(&b, path, &err)) {
        assert_non_null(strstr(err.msg, want));
        dgm_buf_done(&b);
        return;
    }
    for (size_t i = 0; i < b.n; i++) {
        bool is_folder = b.n - i >= strlen(folder) && memcmp(b.p + i, folder, strlen(folder)) == 0;
        dgm_buf_add_char(&shown, is_folder ? 'F' : b.p[i]);
        i += is_folder ? strlen(folder) - 1 : 0;
    }
    check_str(shown, want);
    dgm_buf_done(&b);
    dgm_buf_done(&shown);
}

static void graphs_of_langgraph_json_are_agents(void **state)
{
    (void)state;
    write_project("langgraph.json",
                  "{\"dependencies\":[\".\"],\"graphs\":{\"agent\":\"./a.py:graph\",\"other\":"
                  "{\"path\":\"./o.py:make\",\"description\":\"Other\"}}}");
    expect_agents("langgraph.json",
                  "[{\"id\":\"agent\",\"type\":\"langgraph\",\"settings\":{\"config\":\"F/"
                  "langgraph.json\",\"graph\":"
                  "\"agent\",\"inherit_env\":\"all\"}},{\"id\":\"other\",\"type\":\"langgraph\","
                  "\"card\":{\"description\":"
                  "\"Other\"},\"settings\":{\"config\":\"F/"
                  "langgraph.json\",\"graph\":\"other\",\"inherit_env\":\"all\"}}]");
}

static void graphs_of_aion_yaml_are_agents(void **state)
{
    (void)state;
    write_project(
        "aion.yaml",
        "aion:\n  agents:\n    first: {path: './a.py:graph', framework: langgraph, name: First}\n"
        "    second: {path: './b.py:x', framework: adk}\n");
    expect_agents("aion.yaml",
                  "[{\"id\":\"first\",\"type\":\"langgraph\",\"card\":{\"name\":\"First\"},"
                  "\"settings\":{\"path\":"
                  "\"./a.py:graph\",\"cwd\":\"F/\",\"graph\":\"first\",\"inherit_env\":\"all\"}}]");
}

static void mistakes_are_explained(void **state)
{
    (void)state;
    expect_agents("missing.json", "cannot read");
    write_project("bad.json", "{\"graphs\":");
    expect_agents("bad.json", "bad.json");
    write_project("empty.json", "{\"graphs\":{}}");
    expect_agents("empty.json", "has no graphs");
    write_project("list.json", "[]");
    expect_agents("list.json", "not an object");
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"langgraph.json", "aion.yaml", "bad.json", "empty.json",
                                        "list.json"};
    char path[200];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {dgm_test(graphs_of_langgraph_json_are_agents),
                                       dgm_test(graphs_of_aion_yaml_are_agents),
                                       dgm_test(mistakes_are_explained)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
