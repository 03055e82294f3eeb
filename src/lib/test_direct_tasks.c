/* test_direct_tasks.c - tasks and other objects by the direct path, and its losses. */
#include "lib/test_direct.h"

/* ---- tasks --------------------------------------------------------------------------------------------------- */

#define SAID(id, text) "{`messageId`:`" id "`,`role`:`ROLE_AGENT`,`parts`:[{`text`:`" text "`}]}"
#define ASKED "{`messageId`:`u`,`role`:`ROLE_USER`,`parts`:[{`text`:`Hi`}]}"
#define TASK(state, message, history, artifacts)                                                   \
    "{`id`:`t`,`status`:{`state`:`TASK_STATE_" state "`" message "},`history`:[" history           \
    "],`artifacts`:[" artifacts "]}"
#define ARTIFACT(id, text) "{`artifactId`:`" id "`,`parts`:[{`text`:`" text "`}]}"
#define HI "{`role`:`user`,`content`:`Hi`}"

/* clang-format off */
static const struct row tasks[] = {
    {"a history in order", TASK("COMPLETED", "", ASKED "," SAID("a", "Hello"), ""),
     HI "\n" ASSISTANT("Hello")},
    {"the status message comes last",
     TASK("COMPLETED", ",`message`:" SAID("a", "Hello"), ASKED, ""), HI "\n" ASSISTANT("Hello")},
    {"a status message that the history has by its id",
     TASK("COMPLETED", ",`message`:" SAID("a", "Hello!"), ASKED "," SAID("a", "Hello"), ""),
     HI "\n" ASSISTANT("Hello")},
    {"a status message that the history says last",
     TASK("COMPLETED", ",`message`:" SAID("b", "Hello"), ASKED "," SAID("a", "Hello"), ""),
     HI "\n" ASSISTANT("Hello")},
    {"the same words earlier are not the answer",
     TASK("COMPLETED", ",`message`:" SAID("b", "Hello"), SAID("a", "Hello") "," ASKED, ""),
     ASSISTANT("Hello") "\n" HI "\n" ASSISTANT("Hello")},
    {"progress is no message", TASK("WORKING", ",`message`:" SAID("a", "Thinking..."), ASKED, ""),
     HI},
    {"text of a working status that says it is the answer",
     TASK("WORKING",
          ",`message`:{`messageId`:`a`,`role`:`ROLE_AGENT`,`parts`:[{`text`:`Hello`}],"
     "`metadata`:{`canonical_type`:`TextMessageEndEvent`}}",
          ASKED, ""),
     HI "\n" ASSISTANT("Hello")},
    {"a question is a message",
     TASK("INPUT_REQUIRED", ",`message`:" SAID("a", "Which?"), ASKED, ""),
     HI "\n" ASSISTANT("Which?")},
    {"an artifact that nothing else says", TASK("COMPLETED", "", ASKED, ARTIFACT("x", "Hello")),
     HI "\n" ASSISTANT("Hello")},
    {"an artifact that the final message says",
     TASK("COMPLETED", ",`message`:" SAID("a", "Hello"), ASKED, ARTIFACT("x", "Hello")),
     HI "\n" ASSISTANT("Hello")},
    {"an artifact that the history says last",
     TASK("COMPLETED", "", ASKED "," SAID("a", "Hello"), ARTIFACT("x", "Hello")),
     HI "\n" ASSISTANT("Hello")},
    {"artifacts that the final message joins",
     TASK("COMPLETED", ",`message`:" SAID("a", "One\\n\\nTwo three"), ASKED,
          ARTIFACT("x", "One") "," ARTIFACT("y", "Two") "," ARTIFACT("z", " three")),
     HI "\n" ASSISTANT("One\\n\\nTwo three")},
    {"an artifact beside the final message",
     TASK("COMPLETED", ",`message`:" SAID("a", "Done."), ASKED,
          ARTIFACT("x", "Report") ",{`artifactId`:`y`,`parts`:[{`url`:`https://x.test/r.pdf`,`filename`:`r.pdf`}]}"),
     HI "\n" ASSISTANT("Report") "\n" ASSISTANT("[r.pdf](https://x.test/r.pdf)") "\n" ASSISTANT(
         "Done.")},
    {"an artifact without parts", TASK("COMPLETED", "", ASKED, "{`artifactId`:`x`,`parts`:[]}"),
     HI},
    {"chunks in a history give nothing",
     TASK("COMPLETED", "",
          ASKED ",{`messageId`:`c`,`role`:`ROLE_AGENT`,`parts`:[{`text`:`Hel`}],"
     "`metadata`:{`canonical_type`:`TextMessageChunkEvent`}}," SAID("a", "Hello"),
          ""),
     HI "\n" ASSISTANT("Hello")},
};
/* clang-format on */

static void is_a_history(void **state)
{
    const struct row *row = *state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_task t = {0};
    dgm_chat_messages list = {0};
    dgm_err err = {0};
    read_form(a, &dgm_form_task, quoted(a, row->in), &t);
    check_ok(dgm_direct_task_to_chat(a, &t, NULL, true, &list, &err), err);
    check_same(chat_text(a, &list), quoted(a, row->out));
}

static void faults_in_a_task_are_named(void **state)
{
#define BAD "[{`data`:{`tool_calls`:[{`call_id`:`a`}]}}]"
    static const char *const rows[][2] = {
        {TASK("COMPLETED", "", ASKED ",{`role`:`ROLE_AGENT`,`parts`:" BAD "}", ""),
         "/task/history/1/parts/0/data/tool_calls/0/name"},
        {TASK("COMPLETED", ",`message`:{`role`:`ROLE_AGENT`,`parts`:" BAD "}", ASKED, ""),
         "/task/status/message/parts/0/data/tool_calls/0/name"},
        {TASK("COMPLETED", "", ASKED, "{`artifactId`:`x`,`parts`:" BAD "}"),
         "/task/artifacts/0/parts/0/data/tool_calls/0/name"},
    };
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        dgm_task t = {0};
        dgm_event e = {.kind = DGM_EVENT_TASK, .task = &t};
        dgm_frame f = {.object = {DGM_OBJECT_STREAM_RESPONSE, &e}};
        dgm_chat_messages list = {0};
        bool is_list;
        dgm_err err = {0};
        read_form(a, &dgm_form_task, quoted(a, rows[i][0]), &t);
        check_fails(
            dgm_direct_object_to_chat(a, &f, &dgm_codec_a2a_10, true, &list, &is_list, &err),
            DGM_BAD_PARAMS, err, rows[i][1]);
        /* 0.3 has no wrapper; its REST has, and other names */
        check_fails(
            dgm_direct_object_to_chat(a, &f, &dgm_codec_a2a_03, true, &list, &is_list, &err),
            DGM_BAD_PARAMS, err, rows[i][1] + strlen("/task"));
        assert_int_equal(
            dgm_direct_object_to_chat(a, &f, &dgm_codec_a2a_03_rest, true, &list, &is_list, &err),
            DGM_BAD_PARAMS);
        assert_non_null(strstr(err.at, i == 2 ? "/parts/0/data/data/tool_calls/0/name"
                                              : "/content/0/data/data/tool_calls/0/name"));
    }
}

/* 100,000 artifacts against a text of megabytes: linear, or this would take minutes. */
static void many_artifacts_cost_no_more_than_their_size(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    const size_t n = 100000, size = 4 << 20;
    char *text = dgm_arena_alloc(a, size);
    dgm_part answer = {.kind = DGM_PART_TEXT, .content = {memset(text, '\n', size), size}};
    dgm_part part = {.kind = DGM_PART_TEXT, .content = DGM_STR("x")};
    dgm_message final = {.role = DGM_ROLE_AGENT, .parts = {&answer, 1}};
    dgm_task t = {.status = {.state = DGM_STATE_COMPLETED, .message = &final},
                  .artifacts = {dgm_new_n(a, dgm_artifact, n), n}};
    dgm_chat_messages list = {0};
    dgm_err err = {0};
    (void)state;
    for (size_t i = 0; i < n; i++)
        t.artifacts.at[i].parts = (dgm_parts){&part, 1};
    check_ok(dgm_direct_task_to_chat(a, &t, NULL, true, &list, &err), err);
    assert_int_equal(list.n, n + 1);
}

/* ---- other objects --------------------------------------------------------------------------------------------- */

static void only_conversations_become_chat(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_message m = message(a, USER("{`text`:`x`}"));
    dgm_part part = m.parts.at[0];
    dgm_task task = {.history = {&m, 1}};
    dgm_artifact artifact = {.parts = {&part, 1}};
    dgm_event with_message = {.kind = DGM_EVENT_MESSAGE, .message = &m};
    dgm_event with_task = {.kind = DGM_EVENT_TASK, .task = &task};
    dgm_status_update update = {0};
    dgm_event with_status = {.kind = DGM_EVENT_STATUS, .status = &update};
    dgm_send_request request = {.message = &m};
    dgm_agent_card card = {0};
    const struct {
        dgm_object o;
        size_t n;
        bool fails, list;
    } rows[] = {
        {{DGM_OBJECT_MESSAGE, &m}, 1, false, false},
        {{DGM_OBJECT_TASK, &task}, 1, false, true},
        {{DGM_OBJECT_ARTIFACT, &artifact}, 1, false, false},
        {{DGM_OBJECT_SEND_RESPONSE, &with_message}, 1, false, false},
        {{DGM_OBJECT_STREAM_RESPONSE, &with_task}, 1, false, true},
        {{DGM_OBJECT_STREAM_RESPONSE, &with_status}, 0, false, false},
        {{DGM_OBJECT_SEND_REQUEST, &request}, 1, false, false},
        {{DGM_OBJECT_STATUS_UPDATE, &update}, 0, false, false},
        {{DGM_OBJECT_CARD, &card}, 0, true, false},
        {{DGM_OBJECT_PART, &part}, 0, true, false},
    };
    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        dgm_chat_messages list = {0};
        bool is_list;
        dgm_err err = {0};
        dgm_code rc = dgm_direct_object_to_chat(a, &(dgm_frame){.object = rows[i].o},
                                                &dgm_codec_a2a_10, true, &list, &is_list, &err);
        assert_int_equal(rc, rows[i].fails ? DGM_BAD_PARAMS : DGM_OK);
        if (!rc) {
            assert_int_equal(list.n, rows[i].n);
            assert_int_equal(is_list, rows[i].list);
        }
    }
}

static void losses_are_listed_for_every_pair(void **state)
{
    static const char *const a2a[] = {"a2a-1.0", "a2a-0.3", "a2a-0.3-rest"};
    const dgm_loss *rows[80];
    (void)state;
    for (size_t i = 0; i < N(a2a); i++) {
        for (int back = 0; back < 2; back++) {
            const char *from = back ? dgm_chat_name : a2a[i], *to = back ? a2a[i] : dgm_chat_name;
            size_t n = dgm_direct_losses(from, to, rows, N(rows));
            assert_in_range(n, 15, N(rows));
            assert_int_equal(dgm_direct_losses(from, to, NULL, 0), n);
            for (size_t k = 0; k < n; k++) {
                assert_true(rows[k]->object[0] && rows[k]->what[0]);
                for (size_t l = 0; l < k; l++)
                    assert_false(strcmp(rows[k]->object, rows[l]->object) == 0 &&
                                 strcmp(rows[k]->member, rows[l]->member) == 0);
            }
        }
    }
    assert_int_equal(dgm_direct_losses("a2a-1.0", "a2a-0.3", rows, N(rows)), 0);
    /* R000-26, R000-29: what these rows say is named in the list */
    size_t n = dgm_direct_losses("a2a-1.0", dgm_chat_name, rows, N(rows));
    static const char *const members[] = {"/parts/*/data/tool_results/*/name", "/parts/*/data",
                                          "/parts/*/raw", "/parts/*/url"};
    for (size_t i = 0; i < N(members); i++) {
        size_t k = 0;
        while (k < n && strcmp(rows[k]->member, members[i]) != 0)
            k++;
        assert_true(k < n);
    }
}

/* ---- main ------------------------------------------------------------------------------------------------------ */

int main(void)
{
    const struct CMUnitTest functions[] = {
        dgm_test(faults_in_a_task_are_named),
        dgm_test(many_artifacts_cost_no_more_than_their_size),
        dgm_test(only_conversations_become_chat),
        dgm_test_holds(losses_are_listed_for_every_pair, "R000-26 R000-29"),
    };
    struct CMUnitTest tests[N(functions) + N(tasks)];
    static char names[N(tasks)][120];
    size_t n = 0;
    memset(tests, 0, sizeof tests);
    for (size_t i = 0; i < N(functions); i++)
        tests[n++] = functions[i];
    for (size_t i = 0; i < N(tasks); i++) {
        snprintf(names[i], sizeof names[i], "task: %s", tasks[i].name);
        tests[n++] = (struct CMUnitTest)dgm_test_with(names[i], is_a_history, &tasks[i]);
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return _cmocka_run_group_tests("direct_tasks", tests, n, NULL, NULL);
}
