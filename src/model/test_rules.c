/* model/test_rules.c - each rule on an event that breaks it, with the place, and on one that does not. */
#include "model/form.h"
#include "model/rules.h"
#include "support/check.h"

#define IDS "\"taskId\":\"t\",\"contextId\":\"c\""
#define STATUS(more) "{\"statusUpdate\":{" IDS ",\"status\":{" more "}}}"
#define CHUNK(more)                                                                                \
    "{\"artifactUpdate\":{" IDS ",\"artifact\":{\"artifactId\":\"a\",\"parts\":[]}" more "}}"
#define TASK(state)                                                                                \
    "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"" state "\"}}}"
#define SAYS(parts, metadata)                                                                      \
    "\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[" parts                   \
    "],\"metadata\":" metadata "}"
#define WORKING "\"state\":\"TASK_STATE_WORKING\""
#define CALLS "{\"data\":{\"tool_calls\":[{\"call_id\":\"1\",\"name\":\"f\"}]}}"
#define TYPE(type) "{\"canonical_type\":\"" type "\"}"

struct row {
    const char *event;
    dgm_task_state state; /* UNKNOWN: there is no task */
    dgm_fold_artifact artifact;
    int rule;       /* that it breaks, and no other; -1: none */
    const char *at; /* where */
};

static const struct row rows[] = {
    {TASK("TASK_STATE_SUBMITTED"), 0, 0, -1, NULL},
    {TASK("TASK_STATE_WORKING"), DGM_STATE_WORKING, 0, DGM_RULE_SECOND_TASK, ""},
    {TASK("TASK_STATE_COMPLETED"), DGM_STATE_WORKING, 0, -1, NULL},
    {TASK("TASK_STATE_COMPLETED"), DGM_STATE_COMPLETED, 0, -1, NULL},
    {TASK("TASK_STATE_FAILED"), 0, 0, DGM_RULE_FAILED_WITHOUT_ERROR, "/metadata"},
    {"{\"task\":{\"id\":\"other\",\"status\":{" WORKING "}}}", 0, 0, DGM_RULE_CHANGING_IDS, "/id"},
    {"{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"d\",\"status\":{" WORKING "}}}",
     DGM_STATE_WORKING, 0, DGM_RULE_CHANGING_IDS, "/contextId"},
    {STATUS(WORKING), DGM_STATE_COMPLETED, 0, DGM_RULE_AFTER_TERMINAL, ""},
    {STATUS("\"state\":\"TASK_STATE_SUBMITTED\""), DGM_STATE_WORKING, 0, DGM_RULE_TRANSITION,
     "/status/state"},
    {STATUS("\"state\":\"TASK_STATE_SUBMITTED\""), DGM_STATE_SUBMITTED, 0, -1, NULL},
    {"{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"x\"}]}}",
     DGM_STATE_WORKING, 0, DGM_RULE_MESSAGE_IN_TASK, ""},
    {CHUNK(",\"append\":true"), DGM_STATE_WORKING, DGM_ARTIFACT_NEW, DGM_RULE_UNKNOWN_APPEND,
     "/append"},
    {CHUNK(",\"append\":true"), DGM_STATE_WORKING, DGM_ARTIFACT_OPEN, -1, NULL},
    {CHUNK(",\"append\":false"), DGM_STATE_WORKING, DGM_ARTIFACT_NEW, -1, NULL},
    {CHUNK(",\"lastChunk\":true"), DGM_STATE_WORKING, DGM_ARTIFACT_SEALED,
     DGM_RULE_LAST_CHUNK_TWICE, "/lastChunk"},
    {CHUNK(""), DGM_STATE_WORKING, DGM_ARTIFACT_SEALED, DGM_RULE_AFTER_LAST_CHUNK, "/artifact"},
    {STATUS(WORKING "," SAYS("{\"data\":1},{\"text\":\"x\"}", "{}")), DGM_STATE_WORKING, 0,
     DGM_RULE_WORKING_TEXT, "/status/message/parts/1"},
    {STATUS(WORKING "," SAYS("{\"data\":{\"type\":\"status-indicator\"}}", "{}")),
     DGM_STATE_WORKING, 0, -1, NULL},
    {STATUS(WORKING "," SAYS("{\"text\":\"x\"}", TYPE("TextMessageChunkEvent"))), DGM_STATE_WORKING,
     0, -1, NULL},
    {STATUS(WORKING "," SAYS(CALLS, TYPE("ToolCallArgsEvent"))), DGM_STATE_WORKING, 0, -1, NULL},
    {STATUS(WORKING "," SAYS(CALLS, TYPE("TextMessageEndEvent"))), DGM_STATE_WORKING, 0,
     DGM_RULE_CANONICAL_TYPE, "/status/message/metadata/canonical_type"},
};

static void look(const struct row *row)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10, .err = &err};
    dgm_event e;
    assert_int_equal(
        dgm_form_read_event(&r, dgm_json_parse_trusted(a, dgm_str_from(row->event)), NULL, &e),
        DGM_OK);
    dgm_event_view v = {.event = &e,
                        .task_id = DGM_STR("t"),
                        .context_id = DGM_STR("c"),
                        .has_task = row->state != DGM_STATE_UNKNOWN,
                        .state = row->state,
                        .artifact = row->artifact};
    for (int i = 0; i < DGM_N_EVENT_RULES; i++) {
        dgm_err what = {0};
        bool broken = dgm_event_breaks((dgm_event_rule)i, &v, &what);
        if (broken != (i == row->rule) || (broken && strcmp(what.at, row->at) != 0))
            fail_msg("%s: %s is %s (%s at %s)", row->event, dgm_event_rule_id((dgm_event_rule)i),
                     broken ? "broken" : "kept", what.msg, what.at);
        assert_true(!broken || what.msg[0]);
    }
}

static void every_rule_finds_its_fault_and_no_other(void **state)
{
    bool met[DGM_N_EVENT_RULES] = {false};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        look(&rows[i]);
        if (rows[i].rule >= 0)
            met[rows[i].rule] = true;
    }
    for (int i = 0; i < DGM_N_EVENT_RULES; i++)
        assert_true(met[i] || i == DGM_RULE_REQUIRED_MEMBER);
}

static void an_artifact_that_an_agent_made_needs_an_id(void **state)
{
    dgm_artifact_update u = {.task_id = DGM_STR("t")};
    dgm_event e = {.kind = DGM_EVENT_ARTIFACT, .artifact = &u};
    dgm_event_view v = {.event = &e};
    dgm_err what = {0};
    (void)state;
    assert_true(dgm_event_breaks(DGM_RULE_REQUIRED_MEMBER, &v, &what));
    assert_string_equal(what.at, "/artifact/artifactId");
    u.artifact.artifact_id = DGM_STR("a");
    assert_false(dgm_event_breaks(DGM_RULE_REQUIRED_MEMBER, &v, &what));
}

DGM_TEST_MAIN(dgm_test_holds(every_rule_finds_its_fault_and_no_other, "R004-02 R004-14 R004-16"),
              dgm_test(an_artifact_that_an_agent_made_needs_an_id))
