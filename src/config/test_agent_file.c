/* test_agent_file.c - an agent that is one file: its language, its settings, its process. */
#define _GNU_SOURCE /* memmem */
#include "config/agent_file.h"
#include "support/check.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void language_is_that_of_the_ending(void **state)
{
    static const struct {
        const char *spec;
        bool good;
        dgm_agent_language language;
        size_t n;
    } cases[] = {
        {"agent.py", true, DGM_AGENT_PYTHON, 8},
        {"a/b.py:main", true, DGM_AGENT_PYTHON, 6},
        {"agent.mjs", true, DGM_AGENT_NODE, 9},
        {"./x.js", true, DGM_AGENT_NODE, 6},
        {"x.cjs:f", true, DGM_AGENT_NODE, 5},
        {"agent", false, 0, 0},
        {".py", false, 0, 0},
        {"agent.rb", false, 0, 0},
        {"agent.py:a/b", false, 0, 0},
        {"C:agent.py", true, DGM_AGENT_PYTHON, 10},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dgm_agent_language language = DGM_AGENT_PYTHON;
        dgm_err err = {0};
        size_t n = 0;
        dgm_code rc = dgm_agent_file_language(cases[i].spec, &language, &n, &err);
        assert_int_equal(rc, cases[i].good ? DGM_OK : DGM_BAD_PARAMS);
        assert_int_equal(dgm_agent_file_is(cases[i].spec), cases[i].good);
        if (rc)
            assert_non_null(strstr(err.msg, "expected .py, .js, .mjs or .cjs"));
        else
            assert_int_equal(n, cases[i].n);
        if (!rc)
            assert_int_equal(language, cases[i].language);
    }
}

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[2][160];
    static int i;
    i = !i;
    snprintf(path[i], sizeof path[i], "%s/%s", folder, name);
    return path[i];
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(path, mode), 0);
}

static int make_folder(void **state)
{
    char made[] = "/tmp/dragoman-file-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(made));
    snprintf(folder, sizeof folder, "%s", made);
    write_file(in_folder("my-agent.py"), "", 0644);
    write_file(in_folder("my agent.mjs"), "", 0644);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(in_folder("my-agent.py"));
    unlink(in_folder("my agent.mjs"));
    unlink(in_folder(".venv/bin/python"));
    rmdir(in_folder(".venv/bin"));
    rmdir(in_folder(".venv"));
    return rmdir(folder);
}

static dgm_str agents_of(const char *spec, dgm_buf *b)
{
    dgm_err err = {0};
    dgm_buf_init(b, SIZE_MAX);
    check_ok(dgm_agent_file_put_agents(b, spec, &err), err);
    return dgm_buf_str(b);
}

static void settings_name_the_file_and_its_folder(void **state)
{
    dgm_buf b;
    char text[300];
    (void)state;
    snprintf(text, sizeof text, "%s:main", in_folder("my-agent.py"));
    dgm_str json = agents_of(text, &b);
    assert_non_null(memmem(json.p, json.n, "\"id\":\"my-agent\"", 15));
    assert_non_null(memmem(json.p, json.n, text, strlen(text)));
    snprintf(text, sizeof text, "\"cwd\":\"%s/\"", folder);
    assert_non_null(memmem(json.p, json.n, text, strlen(text)));
    dgm_buf_done(&b);
    json = agents_of(in_folder("my agent.mjs"), &b); /* a blank is not allowed in an id */
    assert_non_null(memmem(json.p, json.n, "\"id\":\"agent\"", 12));
    dgm_buf_done(&b);
}

static void missing_file_is_reported(void **state)
{
    dgm_buf b;
    dgm_err err = {0};
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    assert_int_equal(dgm_agent_file_put_agents(&b, in_folder("other.py"), &err), DGM_BAD_PARAMS);
    assert_non_null(strstr(err.msg, "other.py"));
    dgm_buf_done(&b);
}

/* The exit status of the process that runs the file. */
static int status_of(const char *spec, const char *interpreter)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        dgm_err err = {0};
        dgm_agent_file_exec(spec, interpreter, &err);
        _exit(strstr(err.msg, "cannot start") ? 98 : 99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void interpreter_of_the_folder_is_used(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in_folder(".venv"), 0755), 0);
    assert_int_equal(mkdir(in_folder(".venv/bin"), 0755), 0);
    write_file(in_folder(".venv/bin/python"),
               "#!/bin/sh\n[ \"$1 $2\" = '-m dragoman.worker' ] && exit 42\n", 0755);
    assert_int_equal(status_of(in_folder("my-agent.py"), NULL), 42);
    assert_int_equal(status_of(in_folder("my-agent.py"), "/nowhere/python"), 98);
    assert_int_equal(status_of("agent.rb", NULL), 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(language_is_that_of_the_ending),
        cmocka_unit_test_setup_teardown(settings_name_the_file_and_its_folder, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(missing_file_is_reported, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(interpreter_of_the_folder_is_used, make_folder,
                                        remove_folder),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
