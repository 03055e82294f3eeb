/* test_shaped.c - reply, final_text and working_message, around agents of any kind. */
#include "backend/test_fake.h"
#include "base/limits.h"
#include "support/text_streams.h"

/* ---- an agent that says what a test wants ------------------------------------------------------------------- */

/* Events as JSON, ' for "; "!text" ends the run with an error. */
static const char *const *script;

static dgm_code open_script(const dgm_json *config, const dgm_agent_options *options,
                            void **ret_agent, dgm_err *err)
{
    (void)options;
    (void)config;
    (void)err;
    *ret_agent = NULL;
    return DGM_OK;
}

static void start_script(void *agent, dgm_run *run)
{
    const char *error = NULL;
    (void)agent;
    for (size_t i = 0; script[i] && !error; i++) {
        dgm_event event;
        dgm_err err = {0};
        dgm_mint mint = {0};
        dgm_reader r = {
            .arena = run->arena, .format = DGM_FORMAT_A2A_10, .mint = &mint, .err = &err};
        if (script[i][0] == '!') {
            error = script[i] + 1;
            break;
        }
        if (dgm_form_read_event(&r, fake_json(run->arena, script[i]), NULL, &event) ||
            run->ops->emit(run, &event, &err))
            error = dgm_arena_dup(run->arena, dgm_str_from(err.msg)).p;
    }
    run->ops->end(run, error);
}

static void cancel_script(void *agent, dgm_run *run)
{
    (void)agent;
    (void)run;
}

static const dgm_inner plain = {
    .open = open_script, .start = start_script, .cancel = cancel_script};
static const dgm_inner terse = {
    .open = open_script, .start = start_script, .cancel = cancel_script, .lacks_final_text = true};
static const dgm_inner tasks = {
    .open = open_script, .start = start_script, .cancel = cancel_script, .has_only_tasks = true};
DGM_SHAPED_OPEN(open_plain, plain)
DGM_SHAPED_OPEN(open_tasks, tasks)
DGM_SHAPED_OPEN(open_terse, terse)
static const dgm_backend plain_backend = {.type = "plain", DGM_SHAPED(open_plain)};
static const dgm_backend tasks_backend = {.type = "tasks", DGM_SHAPED(open_tasks)};
static const dgm_backend terse_backend = {.type = "terse", DGM_SHAPED(open_terse)};

static struct fake *open_with(const dgm_backend *backend, dgm_agent_options options)
{
    struct fake *f = fake_open("hello", NULL, NULL);
    dgm_err err = {0};
    f->backend->close(f->agent);
    f->backend = backend;
    check_ok(backend->open(NULL, &options, &f->agent, &err), err);
    return f;
}

static struct fake *say(const dgm_backend *backend, dgm_agent_options options,
                        const char *const *events)
{
    struct fake *f = open_with(backend, options);
    script = events;
    fake_run(f, "hi");
    fake_check(f);
    return f;
}
/* clang-format takes these braces for blocks */
/* clang-format off */
#define SAY(backend, options, ...)                                                                 \
    say((backend), (dgm_agent_options)options, (const char *const[]){__VA_ARGS__, NULL})
#define NONE {0}
#define WITH(...) {__VA_ARGS__}
/* clang-format on */

#define STATUS(state) "{'statusUpdate':{'status':{'state':'TASK_STATE_" state "'}}}"
#define SAYS(state, text)                                                                          \
    "{'statusUpdate':{'status':{'state':'TASK_STATE_" state                                        \
    "','message':{'role':'ROLE_AGENT','parts':[{'text':'" text "'}]}}}}"
#define CHUNK(id, text, more)                                                                      \
    "{'artifactUpdate':{'artifact':{'artifactId':'" id "','parts':[{'text':'" text "'}]}" more "}" \
    "}"
#define APPEND ",'append':true"
#define LAST ",'lastChunk':true"
#define BOTH ",'append':true,'lastChunk':true"
#define MESSAGE "{'message':{'role':'ROLE_AGENT','parts':[{'text':'Hi '},{'text':'you'}]}}"
#define TASK(state) "{'task':{'status':{'state':'TASK_STATE_" state "'},'metadata':{'k':1}}}"
#define INTERNAL "{'kind':'internal:llm-call','iteration':1,'timestamp':'2026-01-02T03:04:05Z'}"
#define DATA                                                                                       \
    "{'artifactUpdate':{'artifact':{'artifactId':'d','parts':[{'data':{'n':1}}]},'lastChunk':"     \
    "true}}"

/* ---- nothing asked for ----------------------------------------------------------------------------------------- */

static void without_options_the_agent_has_the_run_itself(void **state)
{
    struct fake *f =
        SAY(&plain_backend, NONE, STATUS("WORKING"), CHUNK("a", "x", LAST), SAYS("COMPLETED", "x"));
    (void)state;
    check_trace(f, "working last completed");
    assert_null(f->run.agent_data); /* no run of ours between */
    fake_close(f);
    f = SAY(&plain_backend, NONE, MESSAGE);
    check_trace(f, "message");
    fake_close(f);
}

/* ---- reply: task ------------------------------------------------------------------------------------------------- */

static void a_message_becomes_a_task(void **state)
{
    struct fake *f = SAY(&plain_backend, WITH(.reply = DGM_REPLY_TASK), MESSAGE);
    (void)state;
    check_trace(f, "working last completed");
    check_str(f->final, "Hi you");
    fake_check_text(f);
    fake_close(f);
}

static void a_task_stays_one(void **state)
{
    struct fake *f = SAY(&plain_backend, WITH(.reply = DGM_REPLY_TASK), TASK("SUBMITTED"),
                         STATUS("WORKING"), SAYS("COMPLETED", "x"));
    (void)state;
    check_trace(f, "task working completed");
    fake_close(f);
}

static void an_agent_that_has_only_tasks_has_the_run_itself(void **state)
{
    static const dgm_backend *const backends[] = {&plain_backend, &tasks_backend};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct fake *f =
            SAY(backends[i], WITH(.reply = DGM_REPLY_TASK), STATUS("WORKING"), CHUNK("a", "x", ""),
                INTERNAL, CHUNK("a", "y", BOTH), SAYS("COMPLETED", "xy"));
        check_trace(f, "working chunk internal last completed");
        check_str(f->final, "xy");
        fake_check_text(f);
        if (i)
            assert_null(f->run.agent_data); /* no run of ours between */
        fake_close(f);
    }
    struct fake *f = SAY(&tasks_backend, WITH(.reply = DGM_REPLY_TASK, .omit_final_text = true),
                         STATUS("WORKING"), CHUNK("a", "x", LAST), SAYS("COMPLETED", "x"));
    check_trace(f, "working last completed");
    check_str(f->final, "");
    fake_close(f);
}

static void an_answer_to_a_task_is_its_own(void **state)
{
    struct fake *f = SAY(&plain_backend, NONE, SAYS("INPUT_REQUIRED", "Well?"));
    (void)state;
    check_trace(f, "input-required");
    script = (const char *const[]){MESSAGE, NULL};
    fake_run(f, "well");
    fake_check(f);
    check_trace(f, "working last completed");
    check_str(f->final, "Hi you");
    fake_close(f);
}

static void a_task_with_no_final_text(void **state)
{
    struct fake *f =
        SAY(&plain_backend, WITH(.reply = DGM_REPLY_TASK, .omit_final_text = true), MESSAGE);
    (void)state;
    check_trace(f, "working last completed");
    assert_false(f->has_final);
    check_str(f->stream, "Hi you");
    fake_close(f);
}

/* ---- reply: message ------------------------------------------------------------------------------------------------ */

static const struct message_row {
    const char *name;
    const char *events[6];
    const char *text, *has;
} message_rows[] = {
    {"a message stays one", {MESSAGE}, "Hi you", ""},
    {"streamed text becomes one message",
     {STATUS("WORKING"), CHUNK("a", "Hello ", ""), CHUNK("a", "world", BOTH), STATUS("COMPLETED")},
     "Hello world",
     ""},
    {"the final text wins over the stream",
     {CHUNK("a", "Hello ", ""), CHUNK("a", "wrld", BOTH), SAYS("COMPLETED", "Hello world")},
     "Hello world",
     ""},
    {"several texts are set apart",
     {CHUNK("a", "one", LAST), CHUNK("b", "two", LAST), STATUS("COMPLETED")},
     "one\n\ntwo",
     ""},
    {"what was replaced is not told",
     {CHUNK("a", "one", ""), CHUNK("a", "two", LAST), STATUS("COMPLETED")},
     "two",
     ""},
    {"data comes along", {DATA, SAYS("COMPLETED", "done")}, "done", "{\"data\":{\"n\":1}}"},
    {"a question is a message", {SAYS("INPUT_REQUIRED", "Which?")}, "Which?", ""},
    {"progress is not told",
     {SAYS("WORKING", "Thinking"), INTERNAL, SAYS("COMPLETED", "x")},
     "x",
     ""},
    {"an end without a state completes", {CHUNK("a", "x", LAST)}, "x", ""},
    {"an agent that says nothing says nothing", {NULL}, "", ""},
    {"what follows the answer is dropped",
     {SAYS("INPUT_REQUIRED", "Which?"), SAYS("COMPLETED", "x")},
     "Which?",
     ""},
};

static void one_message_comes_of_it(void **state)
{
    const struct message_row *row = *state;
    struct fake *f =
        say(&plain_backend, (dgm_agent_options){.reply = DGM_REPLY_MESSAGE}, row->events);
    check_trace(f, "message");
    check_str(f->final, row->text);
    dgm_buf_add_char(&f->events, '\0');
    assert_non_null(strstr(f->events.p, row->has));
    assert_string_equal(f->error, "");
    fake_close(f);
}

static void a_failure_is_not_a_message(void **state)
{
    struct fake *f =
        SAY(&plain_backend, WITH(.reply = DGM_REPLY_MESSAGE), CHUNK("a", "x", ""), "!it broke");
    (void)state;
    check_trace(f, "(failed)");
    assert_string_equal(f->error, "it broke");
    fake_close(f);
    f = SAY(&plain_backend, WITH(.reply = DGM_REPLY_MESSAGE), CHUNK("a", "x", ""),
            STATUS("CANCELED"));
    check_trace(f, "canceled");
    fake_close(f);
}

static void a_failure_is_an_error_to_the_caller(void **state)
{
    static const struct {
        const char *events[3];
        const char *trace, *error;
    } rows[] = {
        {{CHUNK("a", "x", ""), "!it broke"}, "(refused)", "it broke"},
        {{"{'statusUpdate':{'status':{'state':'TASK_STATE_FAILED'},'metadata':{'error':'no "
          "luck'}}}"},
         "(refused)",
         "no luck"},
        {{SAYS("FAILED", "no luck")}, "(refused)", "no luck"},
        {{STATUS("FAILED")}, "(refused)", "the agent failed"},
        {{SAYS("REJECTED", "no")}, "rejected", ""},
        {{MESSAGE}, "message", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fake *f = open_with(&plain_backend, (dgm_agent_options){.reply = DGM_REPLY_MESSAGE});
        f->can_refuse = true;
        script = rows[i].events;
        fake_run(f, "hi");
        fake_check(f);
        check_trace(f, rows[i].trace);
        assert_string_equal(f->error, rows[i].error);
        assert_int_equal(f->refused, rows[i].error[0] ? DGM_INVALID_AGENT_RESPONSE : DGM_OK);
        fake_close(f);
    }
}

/* ---- working_message ------------------------------------------------------------------------------------------------ */

#define HM .working_message = DGM_STR("Hm \"so\"")
#define HM_JSON                                                                                    \
    "{\"type\":\"status-indicator\",\"text\":\"Hm \\\"so\\\"\",\"displayAs\":\"loading\"}"

static const struct working_row {
    const char *name;
    dgm_reply reply;
    const char *events[6];
    const char *trace, *indicators;
} working_rows[] = {
    {"the first working carries it",
     DGM_REPLY_AUTO,
     {STATUS("WORKING"), STATUS("WORKING"), SAYS("COMPLETED", "x")},
     "working+ working completed",
     HM_JSON},
    {"it is added before the first artifact",
     DGM_REPLY_AUTO,
     {CHUNK("a", "x", LAST), SAYS("COMPLETED", "x")},
     "working+ last completed",
     HM_JSON},
    {"it is added before an internal event",
     DGM_REPLY_AUTO,
     {INTERNAL, SAYS("COMPLETED", "x")},
     "working+ internal completed",
     HM_JSON},
    {"a working status that says something keeps its words",
     DGM_REPLY_AUTO,
     {"{'statusUpdate':{'status':{'state':'TASK_STATE_WORKING','message':{'role':'ROLE_AGENT','"
      "parts':[{"
      "'data':{'x':1}}]}}}}",
      SAYS("COMPLETED", "x")},
     "working+ completed",
     "{\"x\":1}"},
    {"a task event first is no working",
     DGM_REPLY_AUTO,
     {TASK("SUBMITTED"), STATUS("WORKING"), SAYS("COMPLETED", "x")},
     "task working+ completed",
     HM_JSON},
    {"a message needs none", DGM_REPLY_AUTO, {MESSAGE}, "message", ""},
    {"what is over at once needs none", DGM_REPLY_AUTO, {SAYS("REJECTED", "x")}, "rejected", ""},
    {"with a task for certain it comes before all else",
     DGM_REPLY_TASK,
     {SAYS("COMPLETED", "x")},
     "working+ completed",
     HM_JSON},
    {"... and the agent's own first working is no news",
     DGM_REPLY_TASK,
     {STATUS("SUBMITTED"), STATUS("WORKING"), STATUS("WORKING"), SAYS("COMPLETED", "x")},
     "working+ working completed",
     HM_JSON},
    {"... nor does its task event go back to submitted",
     DGM_REPLY_TASK,
     {TASK("SUBMITTED"), STATUS("WORKING"), SAYS("COMPLETED", "x")},
     "working+ task completed",
     HM_JSON},
    {"... and a message becomes a task behind it",
     DGM_REPLY_TASK,
     {MESSAGE},
     "working+ last completed",
     HM_JSON},
    {"a message that is collected has none",
     DGM_REPLY_MESSAGE,
     {STATUS("WORKING"), SAYS("COMPLETED", "x")},
     "message",
     ""},
};

static void the_working_message_is_an_indicator(void **state)
{
    const struct working_row *row = *state;
    struct fake *f = say(&plain_backend, (dgm_agent_options){.reply = row->reply, HM}, row->events);
    check_trace(f, row->trace);
    check_str(f->indicators, row->indicators);
    fake_close(f);
}

/* ---- final_text ------------------------------------------------------------------------------------------------------- */

static const struct final_row {
    const char *name;
    bool omit, is_terse;
    const char *events[6];
    const char *trace, *stream;
    const char *final; /* NULL: no message */
} final_rows[] = {
    {"omit drops what was streamed",
     true,
     false,
     {CHUNK("a", "Hello ", ""), CHUNK("a", "you", BOTH), SAYS("COMPLETED", "Hello you")},
     "chunk last completed",
     "Hello you",
     NULL},
    {"omit keeps what was not streamed, as an artifact",
     true,
     false,
     {STATUS("WORKING"), SAYS("COMPLETED", "Hello you")},
     "working last completed",
     "Hello you",
     NULL},
    {"omit keeps a text that says more",
     true,
     false,
     {CHUNK("a", "Hello", LAST), SAYS("COMPLETED", "Hello you")},
     "last completed",
     "Hello",
     "Hello you"},
    {"omit leaves questions alone",
     true,
     false,
     {CHUNK("a", "Hm", LAST), SAYS("INPUT_REQUIRED", "Hm")},
     "last input-required",
     "Hm",
     "Hm"},
    {"the text is added for those who leave it out",
     false,
     true,
     {CHUNK("a", "Hello ", ""), CHUNK("a", "you", BOTH), STATUS("COMPLETED")},
     "chunk last completed",
     "Hello you",
     "Hello you"},
    {"their own words stay",
     false,
     true,
     {CHUNK("a", "Hello", LAST), SAYS("COMPLETED", "Hello you")},
     "last completed",
     "Hello",
     "Hello you"},
    {"of several texts none is added",
     false,
     true,
     {CHUNK("a", "one", LAST), CHUNK("b", "two", LAST), STATUS("COMPLETED")},
     "last last completed",
     "onetwo",
     NULL},
    {"without a text none is added",
     false,
     true,
     {DATA, STATUS("COMPLETED")},
     "artifact completed",
     "",
     NULL},
    {"those who leave it out may",
     true,
     true,
     {CHUNK("a", "Hello", LAST), STATUS("COMPLETED")},
     "last completed",
     "Hello",
     NULL},
};

static void the_final_text_is_as_asked_for(void **state)
{
    const struct final_row *row = *state;
    struct fake *f = say(row->is_terse ? &terse_backend : &plain_backend,
                         (dgm_agent_options){.omit_final_text = row->omit}, row->events);
    check_trace(f, row->trace);
    check_str(f->stream, row->stream);
    assert_int_equal(f->has_final, row->final != NULL);
    check_str(f->final, row->final ? row->final : "");
    fake_close(f);
}

static void a_text_that_starts_over_is_added_as_it_ends(void **state)
{
    struct fake *f = open_with(&terse_backend, (dgm_agent_options){0});
    (void)state;
    script = (const char *const[]){CHUNK("a", "one", LAST), CHUNK("a", "two", LAST),
                                   STATUS("COMPLETED"), NULL};
    fake_run(f, "hi"); /* an update after the last chunk draws a warning: not checked here */
    check_str(f->final, "two");
    fake_close(f);
}

/* ---- answer_source ----------------------------------------------------------------------------------------------------- */

#define TYPED(text, type)                                                                          \
    "{'statusUpdate':{'status':{'state':'TASK_STATE_WORKING','message':{'role':'ROLE_AGENT','"     \
    "parts':"                                                                                      \
    "[{'text':'" text "'}],'metadata':{'canonical_type':'" type "'}}}}}"

static const struct source_row {
    const char *name;
    bool from_status;
    const char *events[6];
    const char *text;
} source_rows[] = {
    {"text in a working status is no answer",
     false,
     {SAYS("WORKING", "Processing..."), STATUS("COMPLETED")},
     ""},
    {"unless it says so itself",
     false,
     {SAYS("WORKING", "Processing..."), TYPED("Hello", "TextMessageChunkEvent"),
      TYPED(" you", "TextMessageChunkEvent"), STATUS("COMPLETED")},
     "Hello you"},
    {"with answer_source status it is, piece by piece",
     true,
     {STATUS("WORKING"), SAYS("WORKING", "Hello"), SAYS("WORKING", " world"), STATUS("COMPLETED")},
     "Hello world"},
    {"... or all of it each time",
     true,
     {SAYS("WORKING", "Hel"), SAYS("WORKING", "Hello"), SAYS("WORKING", "Hello you"),
      STATUS("COMPLETED")},
     "Hello you"},
    {"... and the final text still wins",
     true,
     {SAYS("WORKING", "Hello"), SAYS("WORKING", " world"), SAYS("COMPLETED", "Hello world!")},
     "Hello world!"},
};

static void the_answer_is_where_answer_source_points(void **state)
{
    const struct source_row *row = *state;
    for (size_t i = 0; i < 2; i++) {
        struct fake *f = open_with(
            &terse_backend, (dgm_agent_options){.reply = i ? DGM_REPLY_MESSAGE : DGM_REPLY_AUTO,
                                                .answer_in_status = row->from_status});
        script = row->events;
        fake_run(f, "hi");
        check_str(f->final, row->text);
        assert_string_equal(f->fault, "");
        fake_close(f);
    }
}

/* The rows of support/text_streams.h: what the server adds to `completed`, or makes one Message of. */
static void the_final_text_is_the_answer(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * N_TEXT_STREAMS; i++) {
        const struct text_stream *row = &text_streams[i / 2];
        struct fake *f =
            open_with(&terse_backend,
                      (dgm_agent_options){.reply = i % 2 ? DGM_REPLY_MESSAGE : DGM_REPLY_AUTO});
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        const char *events[16], *at = row->pieces;
        dgm_str id, text;
        size_t n = 0;
        bool end;
        while (text_stream_next(&at, &end, &id, &text))
            events[n++] =
                dgm_arena_printf(a,
                                 "{'statusUpdate':{'status':{'state':'TASK_STATE_WORKING','message'"
                                 ":{'messageId':'%.*s','role':'ROLE_AGENT','parts':[{'text':'%.*s'"
                                 "}],'metadata':{'canonical_type':'TextMessage%sEvent'}}}}}",
                                 DGM_P(id), DGM_P(text), end ? "End" : "Chunk")
                    .p;
        dgm_buf final;
        dgm_buf_init(&final, SIZE_MAX);
        for (const char *p = row->final; *p; p++)
            dgm_buf_add_str(&final, *p == '\n' ? DGM_STR("\\n") : (dgm_str){p, 1});
        dgm_str said = dgm_buf_str(&final);
        events[n++] = !final.n ? STATUS("COMPLETED")
                               : dgm_arena_printf(a,
                                                  "{'statusUpdate':{'status':{'state':'TASK_STATE_"
                                                  "COMPLETED','message':{'role':'ROLE_AGENT','parts"
                                                  "':[{'text':'%.*s'}]}}}}",
                                                  DGM_P(said))
                                     .p;
        events[n] = NULL;
        dgm_buf_done(&final);
        script = events;
        fake_run(f, "hi");
        if (f->final.n != strlen(row->answer) || memcmp(f->final.p, row->answer, f->final.n) != 0)
            print_error("%s\n", row->name);
        check_str(f->final, row->answer);
        fake_close(f);
    }
}

/* ---- limits -------------------------------------------------------------------------------------------------------------- */

static const dgm_event *huge_event(dgm_arena *a)
{
    char *text = dgm_arena_alloc_raw(a, 1 << 20);
    memset(text, 'x', 1 << 20);
    dgm_artifact_update *u = dgm_new(a, dgm_artifact_update);
    dgm_event *e = dgm_new(a, dgm_event);
    u->artifact.artifact_id = DGM_STR("a");
    u->artifact.parts = (dgm_parts){dgm_new(a, dgm_part), 1};
    u->artifact.parts.at[0] = (dgm_part){.kind = DGM_PART_TEXT, .content = {text, 1 << 20}};
    e->kind = DGM_EVENT_ARTIFACT;
    e->artifact = u;
    return e;
}

static void start_huge(void *agent, dgm_run *run)
{
    dgm_err err = {0};
    const dgm_event *e = huge_event(run->arena);
    dgm_code rc = DGM_OK;
    (void)agent;
    for (size_t i = 0; i < 100 && !rc; i++) {
        e->artifact->append = i ? DGM_TRUE : DGM_FALSE;
        rc = run->ops->emit(run, e, &err);
    }
    run->ops->end(run, rc ? err.msg : NULL);
}

static const dgm_inner huge = {.open = open_script, .start = start_huge, .cancel = cancel_script};
DGM_SHAPED_OPEN(open_huge, huge)

static void a_message_has_its_limit(void **state)
{
    static const dgm_backend huge_backend = {.type = "huge", DGM_SHAPED(open_huge)};
    struct fake *f = open_with(&huge_backend, (dgm_agent_options){.reply = DGM_REPLY_MESSAGE});
    (void)state;
    fake_run(f, "hi");
    check_trace(f, "(failed)");
    assert_non_null(strstr(f->error, "record_bytes"));
    fake_close(f);
}

#define M(i) dgm_test_with(message_rows[i].name, one_message_comes_of_it, &message_rows[i])
#define W(i)                                                                                       \
    dgm_test_with(working_rows[i].name, the_working_message_is_an_indicator, &working_rows[i])
#define A(i)                                                                                       \
    dgm_test_with(source_rows[i].name, the_answer_is_where_answer_source_points, &source_rows[i])
#define F(i) dgm_test_with(final_rows[i].name, the_final_text_is_as_asked_for, &final_rows[i])

DGM_TEST_MAIN(dgm_test_holds(without_options_the_agent_has_the_run_itself, "R004-19"),
              dgm_test_holds(a_message_becomes_a_task, "R004-19"), dgm_test(a_task_stays_one),
              dgm_test(an_agent_that_has_only_tasks_has_the_run_itself),
              dgm_test(an_answer_to_a_task_is_its_own),
              dgm_test_holds(a_task_with_no_final_text, "R004-11"), M(0), M(1), M(2), M(3), M(4),
              M(5), M(6), M(7), M(8), M(9), M(10), dgm_test(a_failure_is_not_a_message),
              dgm_test(a_failure_is_an_error_to_the_caller), W(0), W(1), W(2), W(3), W(4), W(5),
              W(6), W(7), W(8), W(9), W(10), W(11), F(0), F(1), F(2), F(3), F(4), F(5), F(6), F(7),
              F(8), A(0), A(1), A(2), A(3), A(4),
              dgm_test_holds(the_final_text_is_the_answer, "R000-40 R004-11"),
              dgm_test(a_text_that_starts_over_is_added_as_it_ends),
              dgm_test(a_message_has_its_limit))
