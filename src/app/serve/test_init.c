/* test_init.c - what `dragoman init` writes is a configuration without findings; the agent of `exec` answers. */
#include "backend/backend.h"
#include "config/config.h"
#include "init.h"
#include "support/check.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static const char *path_to(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void in_a_new_folder(const char *name, void (*fn)(const dgm_init_kind *kind))
{
    const dgm_init_kind *kind = dgm_init_kind_find(dgm_str_from(name));
    char made[] = "/tmp/dragoman-init-XXXXXX";
    assert_non_null(mkdtemp(made));
    snprintf(folder, sizeof folder, "%s/x", made);
    assert_non_null(kind);
    fn(kind);
    for (const dgm_init_file *f = kind->files; f->name; f++)
        unlink(path_to(f->name));
    rmdir(folder);
    assert_int_equal(rmdir(made), 0);
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static const char *type_of(const dgm_init_kind *kind)
{
    return kind->type ? kind->type : kind->name;
}

static void check_config(const dgm_init_kind *kind)
{
    dgm_err err = {0};
    check_ok(dgm_init_write(kind, folder, &err), err);
    dgm_auto(dgm_config_free) dgm_config *c =
        dgm_config_load(&(dgm_config_source){.file = path_to("dragoman.yaml")});
    for (size_t i = 0; i < c->n_findings; i++)
        print_error("%s\n", c->findings[i].what.p);
    assert_int_equal(c->n_findings, 0);
    assert_int_equal(c->agents.n, 1);
    check_str(c->agents.at[0].type, type_of(kind));
    if (strcmp(type_of(kind), "exec") == 0) /* the program is found wherever the server is started */
        check_str(dgm_json_str(dgm_json_get(c->agents.at[0].settings, DGM_STR("cwd"))), folder);
}

/* The lines that are comments are correct settings as well: each can be used without its `# `. Ends of lines that
 * explain stay. */
static void check_comments(const dgm_init_kind *kind)
{
    dgm_buf text;
    char line[500];
    dgm_err err = {0};
    check_ok(dgm_init_write(kind, folder, &err), err);
    FILE *f = fopen(path_to("dragoman.yaml"), "r");
    assert_non_null(f);
    dgm_buf_init(&text, SIZE_MAX);
    while (fgets(line, sizeof line, f)) {
        char *hash = strstr(line, "# ");
        bool is_indented = hash && hash > line && strspn(line, " ") == (size_t)(hash - line);
        if (is_indented)
            memmove(hash, hash + 2, strlen(hash + 2) + 1);
        dgm_buf_add_str(&text, dgm_str_from(line));
    }
    fclose(f);
    dgm_auto(dgm_config_free) dgm_config *c = dgm_config_load(&(dgm_config_source){
        .file = "dragoman.yaml", .text = dgm_buf_str(&text), .no_files = true});
    for (size_t i = 0; i < c->n_findings; i++)
        print_error("%zu: %s\n", c->findings[i].line, c->findings[i].what.p);
    assert_int_equal(c->n_errors, 0);
    dgm_buf_done(&text);
}

static void what_it_writes_has_no_findings(void **state)
{
    (void)state;
    for (const dgm_init_kind *k = dgm_init_kinds; k->name; k++) {
        if (!dgm_backend_by_type(dgm_str_from(type_of(k))))
            continue; /* a program without this type */
        in_a_new_folder(k->name, check_config);
        in_a_new_folder(k->name, check_comments);
    }
}

static void check_answer(const dgm_init_kind *kind)
{
    dgm_err err = {0};
    char command[256], line[100] = "";
    check_ok(dgm_init_write(kind, folder, &err), err);
    snprintf(command, sizeof command, "printf 'two\\nlines' | %s", path_to("agent.sh"));
    FILE *p = popen(command, "r"); /* NOLINT: a test of a shell script */
    assert_non_null(p);
    line[fread(line, 1, sizeof line - 1, p)] = 0;
    assert_int_equal(pclose(p), 0);
    assert_string_equal(line, "You wrote: two\nlines\n");
}

static void its_agent_answers(void **state)
{
    (void)state;
    in_a_new_folder("exec", check_answer);
}

static void check_refusal(const dgm_init_kind *kind)
{
    struct stat st;
    for (size_t i = 0; kind->files[i].name; i++) {
        dgm_err err = {0};
        char text[10] = "";
        const char *name = kind->files[i].name;
        mkdir(folder, 0777);
        write_text(path_to(name), "mine");
        assert_int_equal(dgm_init_write(kind, folder, &err), DGM_BAD_PARAMS);
        assert_non_null(strstr(err.msg, name));
        FILE *f = fopen(path_to(name), "r");
        assert_non_null(f);
        assert_int_equal(fread(text, 1, sizeof text, f), 4);
        fclose(f);
        for (size_t j = 0; kind->files[j].name; j++) /* all or none */
            assert_true(i == j || stat(path_to(kind->files[j].name), &st) != 0);
        unlink(path_to(name));
    }
}

static void it_overwrites_nothing(void **state)
{
    (void)state;
    for (const dgm_init_kind *k = dgm_init_kinds; k->name; k++)
        in_a_new_folder(k->name, check_refusal);
}

static void a_folder_that_cannot_be_created_is_reported(void **state)
{
    dgm_err err = {0};
    (void)state;
    assert_int_equal(dgm_init_write(&dgm_init_kinds[0], "/nonexistent/a/b", &err), DGM_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "/nonexistent/a/b"));
    assert_null(dgm_init_kind_find(DGM_STR("exe")));
}

DGM_TEST_MAIN(dgm_test(what_it_writes_has_no_findings), dgm_test(its_agent_answers),
              dgm_test(it_overwrites_nothing),
              dgm_test(a_folder_that_cannot_be_created_is_reported))
