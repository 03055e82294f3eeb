/* test_exec.c - programs as agents: the well-behaved and all the others. */
#include "backend/exec/exec_int.h"
#include "backend/test_fake.h"
#include "base/limits.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- helpers --------------------------------------------------------------------------------------------- */

/* A fake with a shell script for an agent. settings: more of the config, with ' for ". */
static struct fake *exec_open_with(const char *script, const char *settings,
                                   const dgm_agent_options *options)
{
    dgm_buf config;
    dgm_buf_init(&config, SIZE_MAX);
    dgm_buf_add_lit(&config, "{\"command\":");
    dgm_json_put_str(&config, dgm_str_from(script));
    dgm_buf_printf(&config, "%s%s}", *settings ? "," : "", settings);
    dgm_buf_add_char(&config, '\0');
    for (size_t i = config.n - strlen(settings) - 2; i < config.n; i++)
        config.p[i] = (char)(config.p[i] == '\'' ? '"' : config.p[i]);
    struct fake *f = dgm_xcalloc(1, sizeof *f);
    dgm_err err = {0};
    signal(SIGPIPE, SIG_IGN);
    f->config = dgm_arena_new();
    f->backend = &dgm_backend_exec;
    f->foreign = true;
    check_ok(f->backend->open(dgm_json_parse_trusted(
                                  f->config, dgm_arena_dup(f->config, dgm_str_from(config.p))),
                              options, &f->agent, &err),
             err);
    dgm_buf_done(&config);
    check_ok(dgm_loops_new(1, &f->loops, &err), err);
    check_ok(dgm_loops_start(f->loops, &err), err);
    f->fold = dgm_fold_new((dgm_fold_options){.foreign = true});
    uv_sem_init(&f->ended, 0);
    return f;
}

static struct fake *run_json(const char *script)
{
    struct fake *f = exec_open_with(script, "", NULL);
    fake_run(f, "hi");
    return f;
}

static struct fake *run_text(const char *script)
{
    struct fake *f = exec_open_with(script, "'output':'text'", NULL);
    fake_run(f, "hi");
    return f;
}

static void check_has_(const dgm_buf *b, const char *want, const char *file, int line)
{
    dgm_buf copy;
    dgm_buf_init(&copy, SIZE_MAX);
    dgm_buf_add_str(&copy, dgm_buf_str(b));
    dgm_buf_add_char(&copy, '\0');
    bool found = strstr(copy.p, want) != NULL;
    if (!found)
        print_error("\"%s\" is not in: %s\n", want, copy.p);
    dgm_buf_done(&copy);
    if (!found)
        _fail(file, line);
}
#define check_has(b, want) check_has_(&(b), (want), __FILE__, __LINE__)

/* The error that callers get in the Task. */
static void check_error_(struct fake *f, const char *want, const char *file, int line)
{
    const dgm_task *t = dgm_fold_task(f->fold);
    yyjson_val *error = t ? dgm_json_get(t->metadata, DGM_STR("error")) : NULL;
    dgm_str got = error ? dgm_json_str(error) : (dgm_str){0};
    check_bytes_(got.p, got.n, want, strlen(want), file, line);
    assert_int_equal(f->state, DGM_STATE_FAILED);
    assert_string_equal(f->fault, "");
}
#define check_error(f, want) check_error_((f), (want), __FILE__, __LINE__)

#define CHUNK(text, more)                                                                          \
    "{\"artifactUpdate\":{\"artifact\":{\"artifactId\":\"a\",\"parts\":[{\"text\":\"" text         \
    "\"}]}" more "}}"
#define WORKING "{\"statusUpdate\":{\"status\":{\"state\":\"TASK_STATE_WORKING\"}}}"
#define SAY(json) "echo '" json "';"

/* ---- the well-behaved ------------------------------------------------------------------------------------ */

static void events_of_1_0_are_relayed(void **state)
{
    struct fake *f = run_json(SAY(WORKING) SAY(CHUNK("Hello", ""))
                                  SAY(CHUNK(" world", ",\"append\":true,\"lastChunk\":true")) SAY(
                                      "{\"statusUpdate\":{\"status\":{\"state\":\"TASK_STATE_"
                                      "COMPLETED\",\"message\":{\"role\":"
                                      "\"ROLE_AGENT\",\"parts\":[{\"text\":\"Hello world\"}]}}}}"));
    (void)state;
    fake_check(f);
    check_trace(f, "working chunk last completed");
    fake_check_text(f);
    check_str(f->final, "Hello world");
    fake_close(f);
}

static void events_of_0_3_are_relayed(void **state)
{
    struct fake *f =
        run_json(SAY("{\"kind\":\"status-update\",\"status\":{\"state\":\"working\"},"
                     "\"final\":false}")
                     SAY("{\"kind\":\"artifact-update\",\"artifact\":{\"artifactId\":\"art-1\","
                         "\"parts\":[{\"kind\":"
                         "\"text\",\"text\":\"Done!\"}]},\"append\":false,\"lastChunk\":true}")
                         SAY("{\"kind\":\"status-update\",\"status\":{\"state\":"
                             "\"completed\"},\"final\":true}"));
    (void)state;
    fake_check(f);
    check_trace(f, "working last completed");
    fake_check_text(f); /* it did not repeat the text: that was done for it */
    check_str(f->final, "Done!");
    fake_close(f);
}

static void a_message_is_an_answer(void **state)
{
    struct fake *f = run_json(
        SAY("{\"message\":{\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"Hi\"}]}}") SAY(WORKING));
    struct fake *g = run_json(SAY("{\"kind\":\"message\",\"role\":\"agent\",\"parts\":[{\"kind\":"
                                  "\"text\",\"text\":\"Hi\"}]}"));
    (void)state;
    fake_check(f);
    check_trace(f, "message");
    check_str(f->final, "Hi");
    fake_close(f);
    check_trace(g, "message");
    fake_close(g);
}

static void internal_events_are_taken(void **state)
{
    struct fake *f =
        run_json(SAY(WORKING) SAY("{\"kind\":\"internal:llm-call\",\"taskId\":\"x\","
                                  "\"iteration\":1,\"timestamp\":\"2026-01-02T03:04:05Z\"}"));
    (void)state;
    fake_check(f);
    check_trace(f, "working internal completed");
    fake_close(f);
}

static void internal_events_may_leave_ids_and_times_out(void **state)
{
    struct fake *f = run_json(SAY("{\"kind\":\"internal:llm-call\",\"iteration\":1}")
                                  SAY("{\"kind\":\"internal:message\",\"message\":{\"role\":"
                                      "\"ROLE_AGENT\",\"parts\":[{\"text\":\"x\"}]}}"));
    (void)state;
    fake_check(f);
    check_trace(f, "internal internal completed");
    check_has(f->events, "\"iteration\":1,\"timestamp\":\"20");
    fake_close(f);
}

/* The rules of the server compare them with the task's: an invented one would always differ. */
static void ids_that_a_program_leaves_out_are_empty(void **state)
{
    static const struct {
        const char *line, *task_id, *context_id;
    } rows[] = {
        {"{\"statusUpdate\":{\"status\":{\"state\":\"TASK_STATE_WORKING\"}}}", "", ""},
        {"{\"statusUpdate\":{\"taskId\":\"t\",\"status\":{\"state\":\"TASK_STATE_WORKING\"}}}", "t",
         ""},
        {"{\"statusUpdate\":{\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_WORKING\"}}}",
         "", "c"},
        {"{\"status_update\":{\"task_id\":\"t\",\"status\":{\"state\":\"TASK_STATE_WORKING\"}}}",
         "t", ""},
        {"{\"kind\":\"status-update\",\"status\":{\"state\":\"working\"},\"final\":false}", "", ""},
        {"{\"kind\":\"status-update\",\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":"
         "\"working\"},\"final\":false}",
         "t", "c"},
        {"{\"artifactUpdate\":{\"artifact\":{\"artifactId\":\"a\",\"parts\":[{\"text\":\"x\"}]}}}",
         "", ""},
        {"{\"kind\":\"artifact-update\",\"taskId\":\"t\",\"artifact\":{\"artifactId\":\"a\","
         "\"parts\":[{\"kind\":\"text\",\"text\":\"x\"}]}}",
         "t", ""},
        {"{\"task\":{\"status\":{\"state\":\"TASK_STATE_SUBMITTED\"}}}", "", ""},
        {"{\"kind\":\"task\",\"id\":\"t\",\"status\":{\"state\":\"submitted\"}}", "t", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_mint mint = {{1, 2}};
        dgm_event e = {0};
        dgm_err err = {0};
        check_ok(dgm_exec_read_event(a, &mint, 0, dgm_str_from(rows[i].line), &e, &err), err);
        dgm_str task_id = e.kind == DGM_EVENT_TASK     ? e.task->id
                          : e.kind == DGM_EVENT_STATUS ? e.status->task_id
                                                       : e.artifact->task_id;
        dgm_str context_id = e.kind == DGM_EVENT_TASK     ? e.task->context_id
                             : e.kind == DGM_EVENT_STATUS ? e.status->context_id
                                                          : e.artifact->context_id;
        check_bytes_(task_id.p, task_id.n, rows[i].task_id, strlen(rows[i].task_id), __FILE__,
                     __LINE__);
        check_bytes_(context_id.p, context_id.n, rows[i].context_id, strlen(rows[i].context_id),
                     __FILE__, __LINE__);
    }
}

static void exit_0_completes_and_closes_what_is_open(void **state)
{
    struct fake *f = run_json(SAY(CHUNK("a", "")) SAY(CHUNK("b", ",\"append\":true")));
    struct fake *g = run_json("true");
    (void)state;
    fake_check(f);
    check_trace(f, "chunk chunk last completed");
    check_str(f->final, "ab");
    fake_check_text(f);
    fake_close(f);
    check_trace(g, "completed");
    fake_close(g);
}

static void it_gets_message_task_metadata_and_ids(void **state)
{
    struct fake *f =
        exec_open_with("read -r line; printf '%s' \"$line\" | tee /dev/stderr >/dev/null; "
                       "echo \"$DRAGOMAN_TASK_ID $DRAGOMAN_CONTEXT_ID $MORE\" >&2",
                       "'env':{'MORE':'x'}", NULL);
    (void)state;
    fake_run(f, "héllo \"you\"");
    check_has(
        f->notes, /* the key: sha256 of ["","","agent-1","ctx-1"] */
        "stderr: {\"message\":{\"messageId\":\"msg-1\",\"contextId\":\"ctx-1\",\"taskId\":"
        "\"task-1\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"héllo "
        "\\\"you\\\"\"}]},\"task\":null,\"history\":[],\"metadata\":null,\"taskId\":\"task-1\","
        "\"contextId\":\"ctx-1\",\"contextKey\":\"8a38a8989fc3ac5a53e2a10f7b3f410e\","
        "\"tenant\":\"\","
        "\"principal\":\"\",\"acceptedOutputModes\":[]}");
    check_has(f->notes, "task-1 ctx-1 x");
    fake_close(f);
}

/* What a program stores by contextId alone, another principal could ask it for. */
static void it_gets_the_conversation(void **state)
{
    (void)state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_part hi = {.kind = DGM_PART_TEXT, .content = DGM_STR("hi")},
             hello = {.kind = DGM_PART_TEXT, .content = DGM_STR("hello")};
    dgm_message history[] = {
        {.message_id = DGM_STR("1"), .role = DGM_ROLE_USER, .parts = {&hi, 1}},
        {.message_id = DGM_STR("2"), .role = DGM_ROLE_AGENT, .parts = {&hello, 1}}};
    dgm_run_input input = {.message = &history[0], .history = {history, 2}};
    dgm_run run = {.input = &input, .arena = a};
    dgm_buf line;
    dgm_buf_init(&line, 10000);
    dgm_exec_write_input(&run, EXEC_JSON, &line);
    check_has(line,
              ",\"history\":[{\"messageId\":\"1\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":"
              "\"hi\"}]},{\"messageId\":\"2\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":"
              "\"hello\"}]}],\"metadata\":null");
    dgm_buf_clear(&line);
    dgm_exec_write_input(&run, EXEC_TEXT, &line);
    check_str(dgm_buf_str(&line), "hi\n");
    dgm_buf_done(&line);
}

static void it_gets_tenant_and_principal(void **state)
{
    static const struct {
        dgm_str tenant, principal;
        const char *key; /* printf '["acme","alice","agent-1","ctx-1"]' | sha256sum */
    } rows[] = {
        {DGM_STR("acme"), DGM_STR("alice"), "295b380f5cdc5d8f1cf3134032ae1910"},
        {DGM_STR("acme"), DGM_STR("bob"), "98fc1aa0fc09239d8080632a94b309e5"},
        {DGM_STR(""), DGM_STR("alice"), "50ec07f570df3a38b6e8b5ef204e44a8"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char want[200];
        struct fake *f = exec_open_with("echo \"$DRAGOMAN_TENANT $DRAGOMAN_PRINCIPAL "
                                        "$DRAGOMAN_CONTEXT_KEY\" >&2; cat >&2",
                                        "'env':{'DRAGOMAN_PRINCIPAL':'root'}", NULL);
        f->tenant = rows[i].tenant;
        f->principal = rows[i].principal;
        setenv("DRAGOMAN_PRINCIPAL", "root", 1);
        fake_run(f, "hi");
        unsetenv("DRAGOMAN_PRINCIPAL");
        snprintf(want, sizeof want, "stderr: %.*s %.*s %s\n", DGM_P(rows[i].tenant),
                 DGM_P(rows[i].principal), rows[i].key);
        check_has(f->notes, want);
        snprintf(want, sizeof want,
                 "\"contextKey\":\"%s\",\"tenant\":\"%.*s\",\"principal\":\"%.*s\"", rows[i].key,
                 DGM_P(rows[i].tenant), DGM_P(rows[i].principal));
        check_has(f->notes, want);
        fake_close(f);
    }
}

static void check_env_of(const char *settings, const dgm_agent_options *options, const char *want)
{
    struct fake *f = exec_open_with("env | grep -E '^(DGM_|LC_DGM|XDG_DGM|TZ=)' | LC_ALL=C sort",
                                    settings, options);
    fake_run(f, "hi");
    check_str(f->final, want);
    fake_close(f);
}

static void programs_get_no_secrets_of_the_server(void **state)
{
    static dgm_str secret[] = {DGM_STR("DGM_TOKEN"), DGM_STR("TZ")};
    const dgm_agent_options options = {.secret_env = {secret, 2}};
    (void)state;
    setenv("DGM_TOKEN", "s3cret", 1);
    setenv("DGM_OTHER", "x", 1);
    setenv("LC_DGM", "l", 1);
    setenv("XDG_DGM", "d", 1);
    setenv("TZ", "UTC", 1);
    check_env_of("'output':'text'", NULL, "LC_DGM=l\nTZ=UTC\nXDG_DGM=d");
    check_env_of("'output':'text'", &options, "LC_DGM=l\nXDG_DGM=d");
    check_env_of("'output':'text','inherit_env':['DGM_OTHER','NOT_SET']", &options,
                 "DGM_OTHER=x\nLC_DGM=l\nXDG_DGM=d");
    /* all: but for tokens, unless they are named */
    check_env_of("'output':'text','inherit_env':'all'", &options,
                 "DGM_OTHER=x\nLC_DGM=l\nXDG_DGM=d");
    check_env_of("'output':'text','inherit_env':['DGM_TOKEN']", &options,
                 "DGM_TOKEN=s3cret\nLC_DGM=l\nXDG_DGM=d");
    check_env_of("'output':'text','env':{'DGM_OTHER':'y','DGM_PORT':80,'DGM_ON':true}", &options,
                 "DGM_ON=true\nDGM_OTHER=y\nDGM_PORT=80\nLC_DGM=l\nXDG_DGM=d");
    /* a failure names what it did not get, and no value */
    struct fake *f = exec_open_with("exit 3", "", &options);
    fake_run(f, "hi");
    check_has(f->notes, "fault: the agent ended with exit status 3; environment variables that are "
                        "not passed to it: ");
    check_has(f->notes, "DGM_TOKEN");
    check_has(f->notes, "DGM_OTHER");
    dgm_buf_add_char(&f->notes, '\0');
    assert_null(strstr(f->notes.p, "s3cret"));
    assert_null(strstr(f->notes.p, "LC_DGM"));
    fake_close(f);
    unsetenv("DGM_TOKEN");
    unsetenv("DGM_OTHER");
    unsetenv("TZ");
}

static void a_failure_is_one_record_with_the_end_of_stderr(void **state)
{
    struct fake *f = run_json("i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i >&2; done; "
                              "echo 'ValueError: no' >&2; exit 1");
    struct fake *g = run_json("echo hello; sleep 0.1; echo why >&2; exit 1");
    (void)state;
    dgm_buf_add_char(&f->notes, '\0');
    const char *fault = strstr(f->notes.p, "fault: the agent ended with exit status 1; ");
    assert_non_null(fault);
    const char *tail = strstr(fault, "; line ");
    assert_non_null(tail);
    assert_non_null(strstr(tail, "line 3000\nValueError: no\n"));
    assert_true(strlen(tail) > 3900 && strlen(tail) < DGM_MAX_STDERR_TAIL_BYTES + 10);
    assert_null(strstr(fault + 1, "fault: "));
    fake_close(f);
    check_has(g->notes, "fault: line 1 of the agent's output is not JSON (if it writes plain text, "
                        "set output: text); ");
    check_has(g->notes, ", in: hello; ");
    fake_close(g);
}

static void text_comes_as_chunks(void **state)
{
    struct fake *f = run_text("echo one; echo two; echo; echo three");
    struct fake *g = run_text("printf 'no newline'");
    struct fake *h = run_text("true");
    (void)state;
    fake_check(f);
    check_trace(f, "working chunk chunk chunk chunk last completed");
    check_str(f->final, "one\ntwo\n\nthree");
    fake_check_text(f);
    fake_close(f);
    check_str(g->final, "no newline");
    fake_close(g);
    check_trace(h, "completed");
    fake_close(h);
}

static void text_goes_in_and_out(void **state)
{
    struct fake *f = exec_open_with("tr a-z A-Z", "'input':'text','output':'text'", NULL);
    (void)state;
    fake_run(f, "shout\nit");
    fake_check(f);
    check_str(f->final, "SHOUT\nIT");
    fake_close(f);
}

static void files_for_a_program_that_reads_text_are_rejected(void **state)
{
    struct fake *f = exec_open_with("cat", "'input':'text','output':'text'", NULL);
    dgm_part parts[2] = {{.kind = DGM_PART_TEXT, .content = DGM_STR("look")},
                         {.kind = DGM_PART_RAW,
                          .content = DGM_STR("AAAA"),
                          .filename = DGM_STR("x.png"),
                          .media_type = DGM_STR("image/png")}};
    (void)state;
    fake_prepare(f, "msg-1", "look");
    f->message.parts = (dgm_parts){parts, 2};
    dgm_loop_post(f->run.loop, fake_do_start, f);
    uv_sem_wait(&f->ended);
    fake_check(f);
    check_trace(f, "rejected");
    check_str(f->final, "this agent accepts only text, not files: x.png (image/png) was not read");
    fake_close(f);
}

static void it_asks_and_goes_on(void **state)
{
    struct fake *f =
        exec_open_with("read -r line; case $line in *'\"task\":null'*) "
                       "echo "
                       "'{\"statusUpdate\":{\"status\":{\"state\":\"TASK_STATE_INPUT_REQUIRED\","
                       "\"message\":{\"role\":"
                       "\"ROLE_AGENT\",\"parts\":[{\"text\":\"Which?\"}]}}}}';; *) " SAY(
                           CHUNK("That one", ",\"lastChunk\":true")) "esac",
                       "", NULL);
    (void)state;
    fake_run(f, "one");
    fake_check(f);
    check_trace(f, "input-required");
    check_str(f->final, "Which?");
    fake_run(f, "that");
    fake_check(f);
    check_trace(f, "last completed");
    check_str(f->final, "That one");
    fake_close(f);
}

static const char *example(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "examples/agents/%s", name);
    if (access(path, X_OK) != 0) /* run by meson, in the build folder */
        snprintf(path, sizeof path, "../examples/agents/%s", name);
    return path;
}

static void the_examples_work(void **state)
{
    static const struct {
        const char *program, *settings, *text, *ends, *answer;
    } rows[] = {
        {"agent.py", "", "count 3", "working+ chunk chunk last completed", "1 2 3 "},
        {"agent.py", "", "chart", "working artifact artifact chunk last completed",
         "Sales increased 15%."},
        {"agent.py", "", "hello", "message", "You said: hello"},
        {"agent.sh", "'input':'text','output':'text'", "count 3",
         "working chunk chunk chunk last completed", "1\n2\n3"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fake *f = exec_open_with(example(rows[i].program), rows[i].settings, NULL);
        fake_run(f, rows[i].text);
        fake_check(f);
        check_trace(f, rows[i].ends);
        check_str(f->final, rows[i].answer);
        fake_close(f);
    }
}

static void the_python_example_asks_and_goes_on(void **state)
{
    struct fake *f = exec_open_with(example("agent.py"), "", NULL);
    (void)state;
    fake_run(f, "order");
    fake_check(f);
    check_trace(f, "input-required");
    fake_run(f, "with olives");
    fake_check(f);
    assert_int_equal(f->state, DGM_STATE_COMPLETED);
    check_str(f->final, "One pizza with olives, coming up.");
    fake_check_text(f);
    fake_close(f);
}

/* ---- all the others -------------------------------------------------------------------------------------- */

static void an_exit_status_is_a_failure(void **state)
{
    struct fake *f = run_json(SAY(CHUNK("half", "")) "echo why >&2; exit 3");
    (void)state;
    check_error(f, "the agent ended with exit status 3");
    check_trace(f, "chunk last failed");
    check_has(f->notes, "stderr: why");
    fake_check(f);
    fake_close(f);
}

static void a_crash_is_a_failure(void **state)
{
    struct fake *f = run_json("kill -SEGV $$");
    (void)state;
    check_error(f, "the agent was killed by signal 11 (Segmentation fault)");
    fake_close(f);
}

static void a_hang_is_ended(void **state)
{
    struct fake *f = exec_open_with("trap '' TERM; echo x; while :; do sleep 1; done",
                                    "'timeout':0.2,'grace':0.1,'output':'text'", NULL);
    (void)state;
    fake_run(f, "hi");
    check_error(f, "the agent took longer than 0.2 seconds");
    check_trace(f, "working chunk last failed");
    assert_true(f->ms < 30000);
    fake_close(f);
}

static void garbage_is_a_failure(void **state)
{
    static const struct {
        const char *script, *error;
    } rows[] = {
        {"echo hello",
         "line 1 of the agent's output is not JSON (if it writes plain text, set output: text)"},
        {"echo 42", "line 1 of the agent's output is not a JSON object (if it writes plain text, "
                    "set output: text)"},
        {SAY(WORKING) "echo; echo '[]'", "line 3 of the agent's output is not a JSON object (if it "
                                         "writes plain text, set output: text)"},
        {"echo '{}'", "line 1 of the agent's output is not an A2A event"},
        {"echo '{\"kind\":\"nonsense\"}'", "line 1 of the agent's output is not an A2A event"},
        {"printf '\\377\\376\\n'",
         "line 1 of the agent's output is not JSON (if it writes plain text, set output: text)"},
        {"echo '{\"statusUpdate\":{\"status\":{\"state\":\"TASK_STATE_NICE\"}}}'",
         "line 1 of the agent's output is not an A2A event"},
        {"head -c 100000 /dev/urandom; sleep 5", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fake *f = run_json(rows[i].script);
        if (rows[i].error)
            check_error(f, rows[i].error);
        assert_int_equal(f->state, DGM_STATE_FAILED);
        assert_true(f->ms < 30000);
        fake_close(f);
    }
}

static void callers_do_not_get_the_output_of_the_program(void **state)
{
    struct fake *f = run_json("echo 'password=hunter2'; echo password=hunter3 >&2");
    (void)state;
    check_error(
        f, "line 1 of the agent's output is not JSON (if it writes plain text, set output: text)");
    check_has(f->notes, "hunter2"); /* the operator is */
    dgm_buf_add_char(&f->events, '\0');
    assert_null(strstr(f->events.p, "hunter"));
    fake_close(f);
}

static void megabytes_without_a_newline_are_a_failure(void **state)
{
    struct fake *f = run_json("yes | tr -d '\\n'");
    (void)state;
    check_error(f, "the agent wrote a line longer than the limit record_bytes");
    fake_close(f);
}

static void megabytes_of_text_come_in_pieces(void **state)
{
    struct fake *f = run_text("yes é | head -n 300000 | tr -d '\\n'"); /* cut within characters */
    (void)state;
    fake_check(f);
    assert_int_equal(f->state, DGM_STATE_COMPLETED);
    assert_int_equal(f->stream.n, 600000);
    assert_int_equal(dgm_utf8_check(dgm_buf_str(&f->stream)), f->stream.n);
    fake_check_text(f);
    fake_close(f);
}

static void bytes_that_are_no_text_become_text(void **state)
{
    struct fake *f =
        run_text("printf 'a\\377b\\303\\nc\\303'; printf '\\251d'; printf '\\360\\237'");
    (void)state;
    fake_check(f);
    check_str(f->final, "a\xef\xbf\xbd"
                        "b\xef\xbf\xbd\nc\xc3\xa9"
                        "d\xef\xbf\xbd\xef\xbf\xbd");
    fake_close(f);
}

static void a_very_long_answer_is_not_repeated(void **state)
{
    struct fake *f = run_text("yes 0123456789012345678901234567890123456789 | head -c 1100000");
    (void)state;
    fake_check(f);
    assert_int_equal(f->state, DGM_STATE_COMPLETED);
    assert_false(f->has_final);
    fake_close(f);
}

static void input_need_not_be_read(void **state)
{
    struct fake *f = exec_open_with("exec <&-; echo fine", "'output':'text'", NULL);
    char *text = malloc(2000001);
    (void)state;
    memset(text, 'x', 2000000);
    text[2000000] = '\0';
    fake_run(f, text);
    fake_check(f);
    check_str(f->final, "fine");
    free(text);
    fake_close(f);
}

static void grandchildren_hold_nothing_up(void **state)
{
    struct fake *f = run_text("sleep 50 & echo done");
    (void)state;
    fake_check(f);
    check_str(f->final, "done");
    assert_true(f->ms < 30000);
    fake_close(f);
}

static void a_program_that_is_not_there_fails_the_task(void **state)
{
    char path[] = "/tmp/dgm-agent-XXXXXX", config[100];
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, 0755), 0);
    close(fd);
    snprintf(config, sizeof config, "{'command':['%s','x']}", path);
    struct fake *f = fake_open("exec", config, NULL);
    unlink(path); /* at the start it was there: that is checked */
    fake_run(f, "hi");
    check_error(f, "the agent could not be started");
    check_has(f->notes, path);
    fake_close(f);
}

static void a_program_that_is_not_there_is_found_at_the_start(void **state)
{
    static const struct {
        const char *config, *want;
    } rows[] = {
        {"{\"command\":[\"/nowhere/agent\"]}",
         "cannot run the program \"/nowhere/agent\": No such file or directory"},
        {"{\"command\":[\"./agent\"],\"cwd\":\"/etc\"}",
         "cannot run the program \"./agent\" in /etc: No such file or directory"},
        {"{\"command\":[\"passwd\"],\"env\":{\"PATH\":\"/etc\"}}",
         "cannot run the program \"passwd\": it is not executable (chmod +x)"},
        {"{\"command\":\"true\",\"cwd\":\"/nowhere\"}",
         "cannot run \"/bin/sh\" in the folder /nowhere: No such file or directory"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_err err = {0};
        void *agent;
        check_fails(dgm_backend_exec.open(dgm_json_parse_trusted(a, dgm_str_from(rows[i].config)),
                                          NULL, &agent, &err),
                    DGM_BAD_PARAMS, err, "/command");
        assert_string_equal(err.msg, rows[i].want);
    }
}

static void after_its_answer_it_has_to_go(void **state)
{
    struct fake *f = exec_open_with(
        SAY("{\"statusUpdate\":{\"status\":{\"state\":\"TASK_STATE_COMPLETED\"}}}") "sleep 60",
        "'grace':0.1", NULL);
    (void)state;
    fake_run(f, "hi");
    fake_check(f);
    check_trace(f, "completed");
    assert_true(f->ms < 30000);
    fake_close(f);
}

static void cancel_kills_the_group(void **state)
{
    struct fake *f =
        exec_open_with("echo $$; sleep 60 & sleep 60; echo never", "'output':'text'", NULL);
    (void)state;
    f->cancel_at = 2;
    fake_run(f, "hi");
    fake_check(f);
    check_trace(f, "working chunk last canceled");
    assert_true(f->ms < 30000);
    fake_close(f);
}

/* As the core does when the caller of a run without a task disconnects. */
static void cancel_ends_one_that_wrote_nothing(void **state)
{
    struct fake *f = exec_open_with("cat >/dev/null; sleep 60 & sleep 60", "", NULL);
    (void)state;
    f->cancel_ms = 50;
    fake_run(f, "hi");
    fake_check(f);
    check_trace(f, "canceled");
    assert_true(f->ms < 30000);
    fake_close(f);
}

static void cancel_ends_one_that_writes_without_end(void **state)
{
    /* long lines: what the pipe still holds behind the cancel is few of them */
    struct fake *f = exec_open_with("l=$(printf '%01000d' 1); while :; do echo $l; done",
                                    "'output':'text'", NULL);
    (void)state;
    f->cancel_at = 2;
    fake_run(f, "hi");
    fake_check(f);
    assert_int_equal(f->state, DGM_STATE_CANCELED);
    assert_true(f->n_events < 2000);
    assert_true(f->ms < 30000);
    fake_close(f);
}

static void one_that_ignores_cancel_is_killed(void **state)
{
    struct fake *f = exec_open_with("trap '' TERM; echo x; while :; do sleep 1; done",
                                    "'output':'text','grace':0.1", NULL);
    (void)state;
    f->cancel_at = 2;
    fake_run(f, "hi");
    fake_check(f);
    check_trace(f, "working chunk last canceled");
    assert_true(f->ms < 30000);
    fake_close(f);
}

static void it_may_say_goodbye_when_canceled(void **state)
{
    struct fake *f = exec_open_with(
        "trap '"
        "echo {\\\"statusUpdate\\\":{\\\"status\\\":{\\\"state\\\":\\\"TASK_STATE_CANCELED\\\"}}}; "
        "exit 0"
        "' TERM; " SAY(WORKING) "while :; do sleep 0.02; done",
        "'grace':5", NULL);
    (void)state;
    f->cancel_at = 1;
    fake_run(f, "hi");
    fake_check(f);
    check_trace(f, "working canceled");
    fake_close(f);
}

static void it_waits_while_the_log_is_full(void **state)
{
    struct fake *f = exec_open_with("yes | head -n 3000", "'output':'text'", NULL);
    (void)state;
    f->full_for = 20;
    fake_run(f, "hi");
    fake_check(f);
    assert_int_equal(f->stream.n, 3000 * 2 - 1);
    assert_true(f->n_asked_full > 20); /* it looked until there was room */
    fake_close(f);
}

static void only_so_many_run_at_a_time(void **state)
{
    struct fake *f = exec_open_with("true", "'max_processes':1", NULL);
    struct exec *x;
    struct exec_share *other;
    (void)state;
    /* as if another were running */
    memcpy(&x, (char *)f->agent + sizeof(void *), sizeof x); /* struct shaped: inner, agent */
    assert_int_equal(dgm_exec_share_enter(x, &(dgm_run_input){0}, &other), EXEC_ROOM);
    fake_run(f, "hi");
    check_error(f, "the agent is busy, try again later");
    check_has(f->notes, "fault: the agent is busy, try again later; max_processes: 1 of its");
    dgm_exec_share_leave(x, other);
    assert_int_equal(x->n_running, 0);
    assert_null(x->shares);
    fake_close(f);
}

static void one_principal_does_not_get_all_of_them(void **state)
{
    static const dgm_run_input alice = {.principal = DGM_STR("alice")},
                               tenant_alice = {.tenant = DGM_STR("ali"),
                                               .principal = DGM_STR("ce")},
                               anybody = {0};
    struct fake *f = exec_open_with("true", "'max_processes':5", NULL);
    struct fake *g =
        exec_open_with("true", "'max_processes':5,'max_processes_per_principal':1", NULL);
    struct exec *x;
    struct exec_share *shares[5];
    (void)state;
    memcpy(&x, (char *)f->agent + sizeof(void *), sizeof x);
    for (size_t i = 0; i < 3; i++) /* half of five */
        assert_int_equal(dgm_exec_share_enter(x, &alice, &shares[i]), EXEC_ROOM);
    assert_int_equal(dgm_exec_share_enter(x, &alice, &shares[3]), EXEC_CALLER_BUSY);
    f->principal = DGM_STR("alice");
    fake_run(f, "hi");
    check_error(
        f, "too many tasks of yours are running on this agent: wait for one to end, or cancel one");
    check_has(f->notes, "max_processes_per_principal: 3");
    assert_int_equal(dgm_exec_share_enter(x, &tenant_alice, &shares[3]), EXEC_ROOM);
    assert_int_equal(dgm_exec_share_enter(x, &anybody, &shares[4]), EXEC_ROOM);
    struct exec_share *none;
    assert_int_equal(dgm_exec_share_enter(x, &anybody, &none), EXEC_AGENT_BUSY);
    for (size_t i = 0; i < 5; i++)
        dgm_exec_share_leave(x, shares[i]);
    assert_null(x->shares);
    fake_close(f);
    memcpy(&x, (char *)g->agent + sizeof(void *), sizeof x);
    assert_int_equal(x->max_processes_per_principal, 1);
    for (size_t i = 0; i < 5; i++) /* without tokens there are no other principals to share with */
        assert_int_equal(dgm_exec_share_enter(x, &anybody, &shares[i]), EXEC_ROOM);
    for (size_t i = 0; i < 5; i++)
        dgm_exec_share_leave(x, shares[i]);
    fake_close(g);
}

static void much_stderr_is_cut(void **state)
{
    struct fake *f = run_text("yes oops | head -n 100000 >&2; echo ok");
    (void)state;
    check_str(f->final, "ok");
    check_has(f->notes, "limit stderr_lines");
    assert_true(f->notes.n < 10000);
    fake_close(f);
}

/* ---- options and settings ---------------------------------------------------------------------------------- */

static void options_work_for_programs(void **state)
{
    struct fake *f = exec_open_with("echo one; echo two", "'output':'text'",
                                    &(dgm_agent_options){.reply = DGM_REPLY_MESSAGE});
    struct fake *g = exec_open_with("echo one; echo two", "'output':'text'",
                                    &(dgm_agent_options){.omit_final_text = true});
    struct fake *h = exec_open_with(
        "sleep 0.1; echo one", "'output':'text'",
        &(dgm_agent_options){.reply = DGM_REPLY_TASK, .working_message = DGM_STR("Hm")});
    (void)state;
    fake_run(f, "hi");
    fake_check(f);
    check_trace(f, "message");
    check_str(f->final, "one\ntwo");
    fake_close(f);
    fake_run(g, "hi");
    fake_check(g);
    check_trace(g, "working chunk chunk last completed");
    assert_false(g->has_final);
    fake_close(g);
    fake_run(h, "hi");
    fake_check(h);
    check_trace(h, "working+ chunk last completed");
    check_str(h->final, "one");
    fake_close(h);
}

static void mistakes_in_settings_are_pointed_at(void **state)
{
    static const struct {
        const char *config, *at;
    } rows[] = {
        {"{}", "/command"},
        {"{\"command\":[]}", "/command"},
        {"{\"command\":\"\"}", "/command"},
        {"{\"command\":[\"\"]}", "/command/0"},
        {"{\"command\":[\"a\",null]}", "/command/1"},
        {"{\"command\":1}", "/command"},
        {"{\"command\":\"x\",\"env\":[]}", "/env"},
        {"{\"command\":\"x\",\"env\":{\"A\":[]}}", "/env/A"},
        {"{\"command\":\"x\",\"env\":{\"A=\":\"1\"}}", "/env/A="},
        {"{\"command\":\"x\\u0000y\"}", "/command"},
        {"{\"command\":\"x\",\"timeout\":0}", "/timeout"},
        {"{\"command\":\"x\",\"output\":\"xml\"}", "/output"},
        {"{\"command\":\"x\",\"cwd\":5}", "/cwd"},
        {"{\"command\":\"x\",\"inherit_env\":\"some\"}", "/inherit_env"},
        {"{\"command\":\"x\",\"inherit_env\":[\"A=\"]}", "/inherit_env/0"},
        {"{\"command\":\"x\",\"max_processes\":1.5}", "/max_processes"},
        {"{\"comand\":\"x\"}", "/comand"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_err err = {0};
        void *agent;
        check_fails(dgm_backend_exec.open(dgm_json_parse_trusted(a, dgm_str_from(rows[i].config)),
                                          NULL, &agent, &err),
                    DGM_BAD_PARAMS, err, rows[i].at);
    }
}

DGM_TEST_MAIN(
    dgm_test_holds(events_of_1_0_are_relayed, "R002-01"), dgm_test(events_of_0_3_are_relayed),
    dgm_test(a_message_is_an_answer), dgm_test(internal_events_are_taken),
    dgm_test(internal_events_may_leave_ids_and_times_out),
    dgm_test(ids_that_a_program_leaves_out_are_empty),
    dgm_test_holds(exit_0_completes_and_closes_what_is_open, "R002-13 R004-11"),
    dgm_test(it_gets_message_task_metadata_and_ids), dgm_test(it_gets_the_conversation),
    dgm_test(it_gets_tenant_and_principal), dgm_test(programs_get_no_secrets_of_the_server),
    dgm_test(a_failure_is_one_record_with_the_end_of_stderr),
    dgm_test_holds(text_comes_as_chunks, "R002-13 R004-17"), dgm_test(text_goes_in_and_out),
    dgm_test(files_for_a_program_that_reads_text_are_rejected), dgm_test(it_asks_and_goes_on),
    dgm_test_holds(the_examples_work, "R004-17"), dgm_test(the_python_example_asks_and_goes_on),
    dgm_test_holds(an_exit_status_is_a_failure, "R002-10"),
    dgm_test_holds(a_crash_is_a_failure, "R002-10"), dgm_test(a_hang_is_ended),
    dgm_test(garbage_is_a_failure), dgm_test(callers_do_not_get_the_output_of_the_program),
    dgm_test(megabytes_without_a_newline_are_a_failure), dgm_test(megabytes_of_text_come_in_pieces),
    dgm_test(bytes_that_are_no_text_become_text), dgm_test(a_very_long_answer_is_not_repeated),
    dgm_test(input_need_not_be_read), dgm_test(grandchildren_hold_nothing_up),
    dgm_test(a_program_that_is_not_there_fails_the_task),
    dgm_test(a_program_that_is_not_there_is_found_at_the_start),
    dgm_test(after_its_answer_it_has_to_go), dgm_test(cancel_kills_the_group),
    dgm_test(cancel_ends_one_that_wrote_nothing), dgm_test(cancel_ends_one_that_writes_without_end),
    dgm_test(one_that_ignores_cancel_is_killed), dgm_test(it_may_say_goodbye_when_canceled),
    dgm_test(it_waits_while_the_log_is_full), dgm_test(only_so_many_run_at_a_time),
    dgm_test(one_principal_does_not_get_all_of_them), dgm_test(much_stderr_is_cut),
    dgm_test_holds(options_work_for_programs, "R004-07 R004-11"),
    dgm_test(mistakes_in_settings_are_pointed_at))
