/* test_tool_exec.c - tools that are programs: arguments, environment, results, failures, time limits, cancel. */
#include "backend/test_tool.h"
#include "base/limits.h"

#include <unistd.h>

#define SH(script) "{'exec':{'name':'t','command':['/bin/sh','-c','" script "']}}"

static void arguments_are_on_stdin_and_json_is_data(void **state)
{
    struct tool_test t;
    (void)state;
    tool_run_once(&t, "{'exec':{'name':'echo','command':['cat']}}", "{'city':'Rome','n':[1,2.50]}");
    assert_false(t.is_error);
    assert_int_equal(t.kind, DGM_PART_DATA);
    assert_string_equal(t.text, "{\"city\":\"Rome\",\"n\":[1,2.50]}");
}

static void other_output_is_text(void **state)
{
    struct tool_test t;
    (void)state;
    tool_run_once(&t, SH("echo a sunny day; echo; echo {; printf \\\\\\\\377"), NULL);
    assert_false(t.is_error);
    assert_int_equal(t.kind, DGM_PART_TEXT);
    assert_string_equal(t.text, "a sunny day\n\n{\n\xEF\xBF\xBD");
}

static void no_output_gives_an_empty_result(void **state)
{
    struct tool_test t;
    (void)state;
    tool_run_once(&t, SH("exit 0"), "{}");
    assert_false(t.is_error);
    assert_int_equal(t.n_parts, 0);
}

static void there_is_no_shell(void **state)
{
    struct tool_test t;
    (void)state;
    tool_run_once(&t, "{'exec':{'name':'t','command':['echo','$HOME; ls']}}", NULL);
    assert_string_equal(t.text, "$HOME; ls");
    check_refused("{'exec':{'name':'t','command':'date -u'}}", "/exec/command", "without a shell");
}

static void the_environment_follows_the_rule(void **state)
{
    struct tool_test t;
    (void)state;
    setenv("TOOL_SECRET", "s3cret", 1);
    setenv("TOOL_WANTED", "w", 1);
    setenv("DRAGOMAN_CALL_ID", "not this one", 1);
    tool_run_once(&t,
                  "{'exec':{'name':'t','env':{'OWN':1},'inherit_env':['TOOL_WANTED'],'command':"
                  "['/bin/sh','-c','echo $OWN,$TOOL_WANTED,$TOOL_SECRET,$DRAGOMAN_CALL_ID,"
                  "$DRAGOMAN_TASK_ID,$DRAGOMAN_CONTEXT_ID,$DRAGOMAN_TENANT,$DRAGOMAN_PRINCIPAL']}}",
                  NULL);
    assert_string_equal(t.text, "1,w,,task-1.call-7,task-1,context-1,acme,ann");
}

static void the_environment_has_the_fence_of_a_shared_store(void **state)
{
    static const char entry[] = "{'exec':{'name':'t','command':['/bin/sh','-c','echo "
                                "$DRAGOMAN_CALL_ID,${DRAGOMAN_FENCE-none}']}}";
    struct tool_test t;
    (void)state;
    setenv("DRAGOMAN_FENCE", "99", 1);
    tool_run_once(&t, entry, NULL);
    assert_string_equal(t.text, "task-1.call-7,none");
    tool_test_init(&t);
    t.run.fence = UINT64_C(5000000000);
    tool_test_open(&t, entry, NULL);
    tool_run(&t, NULL);
    tool_test_done(&t);
    assert_string_equal(t.text, "task-1.call-7,5000000000");
    unsetenv("DRAGOMAN_FENCE");
}

static void invalid_arguments_are_reported_and_nothing_runs(void **state)
{
    struct tool_test t;
    char file[] = "/tmp/dgm_tool_XXXXXX", entry[400];
    (void)state;
    close(mkstemp(file));
    snprintf(entry, sizeof entry,
             "{'exec':{'name':'weather','command':['rm','%s'],'parameters':{'type':'object',"
             "'properties':{'city':{'type':'string'}},'required':['city']}}}",
             file);
    tool_run_once(&t, entry, "{'city':1}");
    assert_true(t.is_error);
    assert_false(t.is_outcome_unknown);
    assert_string_equal(t.text,
                        "The arguments of weather are invalid. Correct them and call it again.\n"
                        "/city: expected a string, got a number");
    assert_int_equal(access(file, F_OK), 0);
    tool_run_once(&t, entry, NULL);
    assert_non_null(strstr(t.text, "missing member \"city\""));
    assert_int_equal(unlink(file), 0);
}

static void a_failure_has_the_last_lines(void **state)
{
    struct tool_test t;
    (void)state;
    tool_run_once(&t, SH("echo partial; echo no such city >&2; exit 3"), NULL);
    assert_true(t.is_error);
    assert_false(t.is_outcome_unknown);
    assert_string_equal(t.text, "The tool failed with exit status 3.\nstderr:\nno such city\n"
                                "stdout:\npartial");
    tool_run_once(&t, SH("kill -9 $$"), NULL);
    assert_true(t.is_error);
    assert_non_null(strstr(t.text, "killed by signal 9"));
}

static void too_much_output_is_an_error(void **state)
{
    struct tool_test t;
    (void)state;
    tool_run_once(&t, SH("yes | head -c 100000000"), NULL);
    assert_true(t.is_error);
    assert_non_null(strstr(t.text, "tool_output_bytes"));
}

/* Is a process of this id there? It may be a zombie for a moment: its group is killed before it is reaped. */
static bool is_gone(int pid)
{
    for (int i = 0; i < 200; i++) {
        if (kill(pid, 0) != 0)
            return true;
        usleep(50000);
    }
    return false;
}

/* A program that ignores SIGTERM and has a child; the pid of the child is written to a file. */
static void start_stubborn(struct tool_test *t, const char *file, const char *timeout)
{
    char entry[500];
    tool_test_init(t);
    snprintf(entry, sizeof entry,
             "{'exec':{'name':'t','timeout':%s,'command':['/bin/sh','-c',"
             "'trap \\\"\\\" TERM; sleep 1000 & echo $! > %s.part; mv %s.part %s; wait; wait']}}",
             timeout, file, file, file);
    tool_test_open(t, entry, NULL);
    tool_post_start(t, NULL);
}

static int wait_for_pid(const char *file)
{
    int pid = 0;
    for (int i = 0; i < 400 && !pid; i++) {
        FILE *f = fopen(file, "r");
        if (f) {
            if (fscanf(f, "%d", &pid) != 1)
                pid = 0;
            fclose(f);
        }
        if (!pid)
            usleep(25000);
    }
    assert_true(pid > 0);
    unlink(file);
    return pid;
}

static void the_time_limit_kills_the_group(void **state)
{
    struct tool_test t;
    char file[64];
    (void)state;
    snprintf(file, sizeof file, "/tmp/dgm_tool_limit_%d", getpid());
    start_stubborn(&t, file, "1");
    int pid = wait_for_pid(file);
    uv_sem_wait(&t.done);
    assert_true(t.is_error);
    assert_true(t.is_outcome_unknown);
    assert_non_null(strstr(t.text, "longer than 1 seconds"));
    assert_true(is_gone(pid));
    tool_test_done(&t);
}

static void cancel_kills_the_group_without_a_callback(void **state)
{
    struct tool_test t;
    char file[64];
    (void)state;
    snprintf(file, sizeof file, "/tmp/dgm_tool_cancel_%d", getpid());
    start_stubborn(&t, file, "1000");
    int pid = wait_for_pid(file);
    dgm_loop_post(dgm_loops_at(t.loops, 0), tool_do_cancel, &t);
    uv_sem_wait(&t.done);
    dgm_tool_close(dgm_take(t.tool)); /* the call still has it */
    assert_true(is_gone(pid));
    tool_test_done(&t);
    assert_int_equal(t.n_done, 0);
}

static void start_and_cancel(void *arg)
{
    tool_do_start(arg);
    tool_do_cancel(arg);
}

static void cancel_before_a_failure_is_reported(void **state)
{
    struct tool_test t;
    (void)state;
    tool_test_init(&t);
    tool_test_open(&t, "{'exec':{'name':'t','command':['true'],'parameters':{'required':['a']}}}",
                   NULL);
    t.input = (dgm_tool_input){.run = &t.run};
    dgm_loop_post(dgm_loops_at(t.loops, 0), start_and_cancel, &t);
    uv_sem_wait(&t.done);
    tool_test_done(&t);
    assert_int_equal(t.n_done, 0);
}

static void a_stopping_loop_ends_the_call(void **state)
{
    struct tool_test t;
    (void)state;
    tool_test_init(&t);
    tool_test_open(&t, "{'exec':{'name':'t','command':['sleep','1000']}}", NULL);
    tool_post_start(&t, NULL);
    dgm_loops_stop(t.loops);
    uv_sem_wait(&t.done);
    assert_true(t.is_error);
    assert_true(t.is_outcome_unknown);
    tool_test_done(&t);
}

static void only_so_many_run_at_a_time(void **state)
{
    struct tool_test t;
    (void)state;
    tool_test_init(&t);
    tool_test_open(&t, "{'exec':{'name':'t','max_processes':1,'command':['sleep','1000']}}", NULL);
    tool_post_start(&t, NULL);
    tool_run(&t, NULL); /* the second one */
    assert_string_equal(t.text, "Too many calls of this tool are running. Try again later.");
    dgm_loops_stop(t.loops);
    tool_test_done(&t);
    assert_int_equal(t.n_done, 2);
}

static void the_folder_of_the_configuration_is_used(void **state)
{
    struct tool_test t;
    dgm_agent_options options = {.folder = DGM_STR("/usr")};
    (void)state;
    tool_test_init(&t);
    tool_test_open(&t, "{'exec':{'name':'t','command':['pwd']}}", &options);
    tool_run(&t, NULL);
    assert_string_equal(t.text, "/usr");
    dgm_tool_close(t.tool);
    tool_test_open(&t, "{'exec':{'name':'t','command':['pwd'],'cwd':'bin'}}", &options);
    tool_run(&t, NULL);
    assert_string_equal(t.text, "/usr/bin");
    tool_test_done(&t);
}

static void settings_are_checked(void **state)
{
    struct tool_test t;
    (void)state;
    check_refused("{'python':{}}", "", "Allowed values: exec, http");
    check_refused("{'exec':{'name':'t'}}", "/exec/command", "is missing");
    check_refused("{'exec':{'command':['true']}}", "/exec/name", "is missing");
    check_refused("{'exec':{'name':'a b','command':['true']}}", "/exec/name", "letters, digits");
    check_refused("{'exec':{'name':'t','command':['true'],'comand':1}}", "/exec/comand",
                  "unknown setting");
    check_refused("{'exec':{'name':'t','command':['no-such-program-here']}}", "/exec/command",
                  "no-such-program-here");
    check_refused("{'exec':{'name':'t','command':['true'],'parameters':{'type':'text'}}}",
                  "/exec/parameters/type", "unknown type");
    check_refused("{'exec':{'name':'t','command':['true'],'approve':'maybe'}}", "/exec/approve",
                  "allowed values: false, true");
    tool_test_init(&t);
    tool_test_open(
        &t,
        "{'exec':{'name':'now','description':'the time','command':['date'],'approve':true,"
        "'idempotent':true}}",
        NULL);
    const dgm_tool_info *info = dgm_tool_info_of(t.tool);
    check_str(info->name, "now");
    check_str(info->description, "the time");
    assert_true(info->needs_approval && info->is_idempotent);
    check_str(dgm_json_text_in(t.arena, info->parameters),
              "{\"type\":\"object\",\"properties\":{}}");
    tool_test_done(&t);
}

static void names_are_those_of_openai(void **state)
{
    char longest[66];
    (void)state;
    memset(longest, 'a', sizeof longest);
    assert_true(dgm_tool_is_name(DGM_STR("Get_weather-2")));
    assert_true(dgm_tool_is_name((dgm_str){longest, 64}));
    assert_false(dgm_tool_is_name((dgm_str){longest, 65}));
    assert_false(dgm_tool_is_name(DGM_STR("")));
    assert_false(dgm_tool_is_name(DGM_STR("a.b")));
    assert_false(dgm_tool_is_name(DGM_STR("\xC3\xA4")));
}

DGM_TEST_MAIN(dgm_test(arguments_are_on_stdin_and_json_is_data), dgm_test(other_output_is_text),
              dgm_test(no_output_gives_an_empty_result), dgm_test(there_is_no_shell),
              dgm_test(the_environment_follows_the_rule),
              dgm_test(the_environment_has_the_fence_of_a_shared_store),
              dgm_test(invalid_arguments_are_reported_and_nothing_runs),
              dgm_test(a_failure_has_the_last_lines), dgm_test(too_much_output_is_an_error),
              dgm_test(the_time_limit_kills_the_group),
              dgm_test(cancel_kills_the_group_without_a_callback),
              dgm_test(cancel_before_a_failure_is_reported),
              dgm_test(a_stopping_loop_ends_the_call), dgm_test(only_so_many_run_at_a_time),
              dgm_test(the_folder_of_the_configuration_is_used), dgm_test(settings_are_checked),
              dgm_test(names_are_those_of_openai))
