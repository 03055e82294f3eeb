/* test_form.c - the record form: every member of every noun and event. JSON is written here with ' for ". */
#include "model/form.h"
#include "support/check.h"

static dgm_str double_quoted(dgm_arena *a, const char *quoted)
{
    dgm_str text = dgm_arena_dup(a, dgm_str_from(quoted));
    for (char *p = (char *)(uintptr_t)text.p; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    return text;
}

static dgm_code read_as(dgm_arena *a, const dgm_shape *s, const char *text, void **ret,
                        dgm_err *err)
{
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10, .err = err};
    *ret = dgm_arena_alloc(a, s->size);
    return dgm_shape_read(&r, s, dgm_json_parse_trusted(a, double_quoted(a, text)), NULL, *ret);
}

/* Read and written, it is the same text, or `want`. */
static void check_form(const dgm_shape *s, const char *text, const char *want)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    void *object;
    dgm_buf b;
    dgm_writer w = {.out = &b, .format = DGM_FORMAT_A2A_10};
    check_ok(read_as(a, s, text, &object, &err), err);
    dgm_buf_init(&b, SIZE_MAX);
    dgm_shape_write(&w, s, object);
    dgm_str wanted = double_quoted(a, want ? want : text);
    check_same(b, wanted);
    dgm_buf_done(&b);
}

static void check_refused(const dgm_shape *s, const char *text, const char *at, const char *says)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    void *object;
    dgm_code rc = read_as(a, s, text, &object, &err);
    if (rc != DGM_BAD_PARAMS || strcmp(err.at, at) != 0 || !strstr(err.msg, says))
        fail_msg("%s: code %d at \"%s\": %s; wanted \"%s\" at \"%s\"", text, rc, err.at, err.msg,
                 says, at);
}

#define PARTS "'parts':[{'text':'x'}]"
#define MSG "{'messageId':'m','role':'ROLE_AGENT'," PARTS "}"
#define FULL_MSG                                                                                   \
    "{'messageId':'m','contextId':'c','taskId':'t','role':'ROLE_USER'," PARTS                      \
    ",'metadata':{'k':1.0},'extensions':['https://"                                                \
    "e'],'referenceTaskIds':['r1','r2'],'unknown':[-0]}"
#define FULL_STATUS                                                                                \
    "{'state':'TASK_STATE_WORKING','message':" FULL_MSG                                            \
    ",'timestamp':'2026-01-02T03:04:05.678Z','unknown':1}"
#define FULL_ARTIFACT                                                                              \
    "{'artifactId':'a','name':'n','description':'d'," PARTS                                        \
    ",'metadata':{},'extensions':['e'],'unknown':null}"

/* ---- nouns ------------------------------------------------------------------------------------------------ */

static void parts_of_every_kind(void **state)
{
    static const char *const rows[] = {
        "{'text':'x'}",
        "{'text':''}",
        "{'text':'a\\u0000b\\n\\\\'}",
        "{'raw':'SGVsbG8=','filename':'f.txt','mediaType':'text/plain'}",
        "{'raw':''}",
        "{'url':'https://x/y','filename':'y','mediaType':'image/png'}",
        "{'data':{'a':[1,2.50,-0,1e400,18446744073709551616]}}",
        "{'data':null}",
        "{'data':7}",
        "{'data':'text'}",
        "{'text':'x','metadata':{'k':{'l':null}},'filename':'f','mediaType':'m','unknown':{}}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_form(&dgm_form_part, rows[i], NULL);
    check_form(&dgm_form_part, "{'raw':'_-8'}", "{'raw':'/+8='}");
    check_form(&dgm_form_part, "{'text':'x','media_type':'m','filename':''}",
               "{'text':'x','mediaType':'m'}");
    check_refused(&dgm_form_part, "{}", "", "exactly one of text, raw, url, data; it has none");
    check_refused(&dgm_form_part, "{'text':'x','url':'y'}", "/url", "second");
    check_refused(&dgm_form_part, "{'raw':'!'}", "/raw", "not base64");
    check_refused(&dgm_form_part, "{'text':'x','metadata':[]}", "/metadata", "expected an object");
}

static void every_member_of_a_message(void **state)
{
    (void)state;
    check_form(&dgm_form_message, FULL_MSG, NULL);
    check_form(&dgm_form_message, MSG, NULL);
    check_form(&dgm_form_message,
               "{'message_id':'m','role':2," PARTS
               ",'reference_task_ids':[],'context_id':'','extensions':null}",
               MSG);
    check_refused(&dgm_form_message, "{'role':'ROLE_USER'," PARTS "}", "/messageId", "missing");
    check_refused(&dgm_form_message, "{'messageId':'','role':'ROLE_USER'," PARTS "}", "/messageId",
                  "empty");
    check_refused(&dgm_form_message, "{'messageId':'m'," PARTS "}", "/role", "missing");
    check_refused(&dgm_form_message, "{'messageId':'m','role':'ROLE_UNSPECIFIED'," PARTS "}",
                  "/role", "empty");
    check_refused(&dgm_form_message, "{'messageId':'m','role':'user'," PARTS "}", "/role",
                  "unknown role \"user\"");
    check_refused(&dgm_form_message, "{'messageId':'m','role':'ROLE_USER'}", "/parts", "missing");
    check_refused(&dgm_form_message, "{'messageId':'m','role':'ROLE_USER','parts':[]}", "/parts",
                  "empty");
    check_refused(&dgm_form_message,
                  "{'messageId':'m','role':'ROLE_USER','parts':[{'text':''},{}]}", "/parts/1",
                  "none");
}

static void every_member_of_a_status_and_every_state(void **state)
{
    static const char *const states[DGM_N_STATES] = {
        "TASK_STATE_UNSPECIFIED",    "TASK_STATE_SUBMITTED", "TASK_STATE_WORKING",
        "TASK_STATE_COMPLETED",      "TASK_STATE_FAILED",    "TASK_STATE_CANCELED",
        "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_REJECTED",  "TASK_STATE_AUTH_REQUIRED"};
    char text[100], number[100];
    (void)state;
    check_form(&dgm_form_status, FULL_STATUS, NULL);
    for (int i = 0; i < DGM_N_STATES; i++) {
        assert_string_equal(dgm_form_states.names[i], states[i]);
        snprintf(text, sizeof text, "{'state':'%s'}", states[i]);
        snprintf(number, sizeof number, "{'state':%d}", i);
        check_form(&dgm_form_status, text, NULL);
        check_form(&dgm_form_status, number, text);
    }
    check_form(&dgm_form_status,
               "{'state':'TASK_STATE_WORKING','timestamp':'2026-01-02T04:04:05+01:00'}",
               "{'state':'TASK_STATE_WORKING','timestamp':'2026-01-02T03:04:05Z'}");
    check_form(&dgm_form_status, "{}",
               "{'state':'TASK_STATE_UNSPECIFIED'}"); /* ProtoJSON's default */
    check_refused(&dgm_form_status, "{'state':'working'}", "/state", "unknown task state");
    check_refused(&dgm_form_status, "{'state':9}", "/state", "unknown task state 9");
    check_refused(&dgm_form_status, "{'state':1,'timestamp':'soon'}", "/timestamp",
                  "is not a time");
    check_refused(&dgm_form_status, "{'state':1,'message':{'messageId':'m'}}", "/message/role",
                  "missing");
}

static void every_member_of_an_artifact(void **state)
{
    (void)state;
    check_form(&dgm_form_artifact, FULL_ARTIFACT, NULL);
    check_form(&dgm_form_artifact, "{'artifactId':'a','parts':[]}",
               NULL); /* a closing chunk of a third-party agent */
    check_refused(&dgm_form_artifact, "{" PARTS "}", "/artifactId", "missing");
    check_refused(&dgm_form_artifact, "{'artifactId':'a'}", "/parts", "missing");
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new(); /* our own agents must send parts */
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10, .err = &err, .strict = true};
    dgm_artifact artifact = {0};
    check_fails(
        dgm_shape_read(&r, &dgm_form_artifact,
                       dgm_json_parse_trusted(a, DGM_STR("{\"artifactId\":\"a\",\"parts\":[]}")),
                       NULL, &artifact),
        DGM_BAD_PARAMS, err, "/parts");
}

static void every_member_of_a_task(void **state)
{
    (void)state;
    check_form(&dgm_form_task,
               "{'id':'t','contextId':'c','status':" FULL_STATUS ",'artifacts':[" FULL_ARTIFACT
               ",{'artifactId':'b'," PARTS "}],"
               "'history':[" FULL_MSG "," MSG "],'metadata':{'a':{'b':[]}},'unknown':'u'}",
               NULL);
    check_form(&dgm_form_task,
               "{'id':'t','status':{'state':'TASK_STATE_SUBMITTED'},'artifacts':[],'history':null}",
               "{'id':'t','status':{'state':'TASK_STATE_SUBMITTED'}}");
    check_refused(&dgm_form_task, "{'status':{'state':1}}", "/id", "missing");
    check_refused(&dgm_form_task, "{'id':'t'}", "/status", "missing");
    check_refused(&dgm_form_task,
                  "{'id':'t','status':{'state':1},'history':[" MSG
                  ",{'messageId':'x','role':1,'parts':[{'text':1}]}]}",
                  "/history/1/parts/0/text", "expected a string");
}

/* ---- events ------------------------------------------------------------------------------------------------ */

static void every_member_of_the_updates(void **state)
{
    (void)state;
    check_form(&dgm_form_status_update,
               "{'taskId':'t','contextId':'c','status':" FULL_STATUS
               ",'metadata':{'error':'x'},'unknown':0}",
               NULL);
    check_refused(&dgm_form_status_update, "{'contextId':'c','status':{'state':1}}", "/taskId",
                  "missing");
    check_refused(&dgm_form_status_update, "{'taskId':'t','status':{'state':1}}", "/contextId",
                  "missing");
    check_refused(&dgm_form_status_update, "{'taskId':'t','contextId':'c'}", "/status", "missing");
    check_form(&dgm_form_artifact_update,
               "{'taskId':'t','contextId':'c','artifact':" FULL_ARTIFACT
               ",'append':true,'lastChunk':true,'metadata':{},'unknown':0}",
               NULL);
    check_form(&dgm_form_artifact_update,
               "{'task_id':'t','context_id':'c','artifact':{'artifact_id':'a'," PARTS
               "},'append':false,'last_chunk':false}",
               "{'taskId':'t','contextId':'c','artifact':{'artifactId':'a'," PARTS "}}");
    check_refused(&dgm_form_artifact_update, "{'taskId':'t','contextId':'c'}", "/artifact",
                  "missing");
    check_refused(&dgm_form_artifact_update,
                  "{'taskId':'t','contextId':'c','artifact':{'artifactId':'a'," PARTS
                  "},'append':'yes'}",
                  "/append", "true or false");
}

static void exactly_one_member_of_a_stream_response(void **state)
{
    (void)state;
    check_form(&dgm_form_stream_response,
               "{'task':{'id':'t','status':{'state':'TASK_STATE_WORKING'}}}", NULL);
    check_form(&dgm_form_stream_response, "{'message':" MSG ",'unknown':1}", NULL);
    check_form(
        &dgm_form_stream_response,
        "{'statusUpdate':{'taskId':'t','contextId':'c','status':{'state':'TASK_STATE_WORKING'}}}",
        NULL);
    check_form(&dgm_form_stream_response,
               "{'artifactUpdate':{'taskId':'t','contextId':'c','artifact':{'artifactId':'a'," PARTS
               "}}}",
               NULL);
    check_form(
        &dgm_form_stream_response,
        "{'status_update':{'taskId':'t','contextId':'c','status':{'state':'TASK_STATE_WORKING'}},'"
        "task':null}",
        "{'statusUpdate':{'taskId':'t','contextId':'c','status':{'state':'TASK_STATE_WORKING'}}}");
    check_refused(&dgm_form_stream_response, "{}", "",
                  "exactly one of task, message, statusUpdate, artifactUpdate; it has none");
    check_refused(&dgm_form_stream_response,
                  "{'message':" MSG ",'task':{'id':'t','status':{'state':1}}}", "/task", "second");
    check_form(&dgm_form_send_response, "{'message':" MSG "}", NULL);
    check_refused(&dgm_form_send_response,
                  "{'statusUpdate':{'taskId':'t','contextId':'c','status':{'state':1}}}", "",
                  "none");
}

static void the_samples_of_document_002(void **state)
{
    /* In the format of 1.0; the vectors test the format of 0.3. */
    static const char *const rows[] = {
        "{'task':{'id':'task-123','contextId':'ctx-456','status':{'state':'TASK_STATE_SUBMITTED','"
        "timestamp':'2025-10-30T10:00:00Z'}}}",
        "{'statusUpdate':{'taskId':'task-123','contextId':'ctx-456','status':{'state':'TASK_STATE_"
        "WORKING','timestamp':'2025-10-30T10:00:01Z'}}}",
        "{'statusUpdate':{'taskId':'task-123','contextId':'ctx-456','status':{'state':'TASK_STATE_"
        "COMPLETED','message':"
        "{'messageId':'m','role':'ROLE_AGENT','parts':[{'text':'Done!'}]},'timestamp':'2025-10-"
        "30T10:00:15Z'}}}",
        "{'statusUpdate':{'taskId':'task-123','contextId':'ctx-456','status':{'state':'TASK_STATE_"
        "FAILED','timestamp':'2025-10-30T10:00:15Z'},"
        "'metadata':{'error':'Connection timeout'}}}",
        "{'artifactUpdate':{'taskId':'task-123','contextId':'ctx-456','artifact':{'artifactId':'"
        "art-1','parts':[{'text':'Based on '}]}}}",
        "{'artifactUpdate':{'taskId':'task-123','contextId':'ctx-456','artifact':{'artifactId':'"
        "art-1','parts':[{'text':'the analysis'}]},'append':true}}",
        "{'artifactUpdate':{'taskId':'task-123','contextId':'ctx-456','artifact':{'artifactId':'"
        "art-1','parts':[{'text':', sales increased 15%'}]},"
        "'append':true,'lastChunk':true}}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_form(&dgm_form_stream_response, rows[i], NULL);
}

/* ---- internal events ---------------------------------------------------------------------------------------- */

#define AT ",'timestamp':'2025-10-30T10:00:00Z'}"

static void the_four_internal_events_of_document_002(void **state)
{
    (void)state;
    check_form(&dgm_form_internal, "{'kind':'internal:llm-call','taskId':'t','iteration':1" AT,
               NULL);
    check_form(&dgm_form_internal,
               "{'kind':'internal:tool-start','taskId':'t','toolName':'n','toolCallId':'i'" AT,
               NULL);
    check_form(&dgm_form_internal,
               "{'kind':'internal:tool-complete','taskId':'t','toolCallId':'i','success':false" AT,
               NULL);
    check_form(&dgm_form_internal, "{'kind':'internal:checkpoint','taskId':'t','iteration':0" AT,
               NULL);
}

static void internal_events_of_our_own(void **state)
{
    static const char *const rows[] = {
        "{'kind':'internal:tool-start','taskId':'t','toolName':'n','toolCallId':'i','arguments':{'"
        "a':1.0}" AT,
        "{'kind':'internal:tool-start','taskId':'t','toolName':'n','toolCallId':'i','arguments':'"
        "text'" AT,
        "{'kind':'internal:tool-complete','taskId':'t','toolCallId':'i','success':true,'result':"
        "null" AT,
        "{'kind':'internal:tool-complete','taskId':'t','toolCallId':'i','success':false,'error':'"
        "no'" AT,
        "{'kind':'internal:message','taskId':'t','message':" FULL_MSG AT,
        "{'kind':'internal:reasoning','taskId':'t','text':'hm'" AT,
        "{'kind':'internal:state','taskId':'t','value':[{}]" AT,
        "{'kind':'internal:state','taskId':'t','name':'n','value':{}" AT,
        "{'kind':'internal:step','taskId':'t','name':'s'" AT,
        "{'kind':'internal:step','taskId':'t','success':true,'name':'s'" AT,
        "{'kind':'internal:usage','taskId':'t','value':{'input':1}" AT,
        "{'kind':'internal:custom','taskId':'t','name':'n'" AT,
        "{'kind':'internal:custom','taskId':'t','name':'n','value':false" AT,
        "{'kind':'internal:checkpoint','taskId':'t','iteration':2,'timestamp':'2025-10-30T10:00:"
        "00Z','unknown':{}}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_form(&dgm_form_internal, rows[i], NULL);
}

/* Every kind with every member: needed, allowed, or refused there. */
static void every_kind_with_every_member(void **state)
{
    static const struct {
        const char *name, *value;
    } members[] = {
        {"iteration", "1"},  {"toolName", "'n'"}, {"toolCallId", "'i'"}, {"arguments", "{}"},
        {"success", "true"}, {"result", "1"},     {"error", "'e'"},      {"message", MSG},
        {"text", "'x'"},     {"name", "'n'"},     {"value", "1"},
    };
    static const struct { /* n: needs, m: may have, -: refuses; in the order above */
        const char *kind, *rules;
    } kinds[DGM_N_INTERNAL_KINDS] = {
        {"llm-call", "n----------"},      {"tool-start", "-nnm-------"},
        {"tool-complete", "--n-nmm----"}, {"checkpoint", "n----------"},
        {"message", "-------n---"},       {"reasoning", "--------n--"},
        {"state", "---------mn"},         {"step", "----m----n-"},
        {"usage", "----------n"},         {"custom", "---------nm"},
    };
    (void)state;
    for (int k = 0; k < DGM_N_INTERNAL_KINDS; k++) {
        char name[60];
        snprintf(name, sizeof name, "internal:%s", kinds[k].kind);
        assert_string_equal(dgm_internal_kind_name((dgm_internal_kind)k), name);
        for (int other = -1; other < 11; other++) {
            /* all that is needed, with or without one more or one less */
            char text[600], at[40];
            int n = snprintf(text, sizeof text, "{'kind':'%s','taskId':'t'", name);
            for (int m = 0; m < 11; m++) {
                if ((kinds[k].rules[m] == 'n') != (m == other))
                    n += snprintf(text + n, sizeof text - (size_t)n, ",'%s':%s", members[m].name,
                                  members[m].value);
            }
            snprintf(text + n, sizeof text - (size_t)n, AT);
            if (other < 0 || kinds[k].rules[other] == 'm') {
                check_form(&dgm_form_internal, text, NULL);
                continue;
            }
            snprintf(at, sizeof at, "/%s", members[other].name);
            check_refused(&dgm_form_internal, text, at,
                          kinds[k].rules[other] == 'n' ? "missing" : "unknown member");
        }
    }
}

static void internal_events_need_task_kind_and_time(void **state)
{
    (void)state;
    check_refused(&dgm_form_internal, "{'kind':'internal:llm-call','iteration':1" AT, "/taskId",
                  "missing");
    check_refused(&dgm_form_internal, "{'kind':'internal:llm-call','taskId':'','iteration':1" AT,
                  "/taskId", "empty");
    check_refused(&dgm_form_internal, "{'kind':'internal:llm-call','taskId':'t','iteration':1}",
                  "/timestamp", "missing");
    check_refused(&dgm_form_internal,
                  "{'kind':'internal:llm-call','taskId':'t','iteration':1,'timestamp':'now'}",
                  "/timestamp", "not a time");
    check_refused(&dgm_form_internal, "{'taskId':'t','iteration':1" AT, "/kind", "missing");
    check_refused(&dgm_form_internal, "{'kind':'internal:nap','taskId':'t'" AT, "/kind",
                  "unknown internal event");
    check_refused(&dgm_form_internal,
                  "{'kind':'internal:llm-call','taskId':'t','iteration':'one'" AT, "/iteration",
                  "whole number");
    check_refused(&dgm_form_internal,
                  "{'kind':'internal:llm-call','taskId':'t','iteration':null" AT, "/iteration",
                  "missing");
}

static void an_event_is_detected_from_its_kind(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10, .err = &err};
    dgm_event event;
    (void)state;
    static const struct {
        const char *text;
        dgm_event_kind kind;
    } rows[] = {
        {"{'task':{'id':'t','status':{'state':1}}}", DGM_EVENT_TASK},
        {"{'message':" MSG "}", DGM_EVENT_MESSAGE},
        {"{'statusUpdate':{'taskId':'t','contextId':'c','status':{'state':1}}}", DGM_EVENT_STATUS},
        {"{'artifactUpdate':{'taskId':'t','contextId':'c','artifact':{'artifactId':'a'," PARTS
         "}}}",
         DGM_EVENT_ARTIFACT},
        {"{'kind':'internal:llm-call','taskId':'t','iteration':1" AT, DGM_EVENT_INTERNAL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_ok(dgm_form_read_event(&r, dgm_json_parse_trusted(a, double_quoted(a, rows[i].text)),
                                     NULL, &event),
                 err);
        assert_int_equal(event.kind, rows[i].kind);
        assert_non_null(event.any);
    }
    check_fails(dgm_form_read_event(&r, dgm_json_parse_trusted(a, DGM_STR("[]")), NULL, &event),
                DGM_BAD_PARAMS, err, "");
    check_fails(dgm_form_read_event(&r, dgm_json_parse_trusted(a, DGM_STR("{}")), NULL, &event),
                DGM_BAD_PARAMS, err, "");
}

/* With every combination of what it may have, and with escapes in each text, which the tables write. */
static void a_plain_message_is_written_like_any_other(void **state)
{
    char text[400];
    (void)state;
    for (unsigned i = 0; i < 128; i++) {
        const char *escape = i & 8 ? "\\n" : "";
        snprintf(
            text, sizeof text,
            "{'messageId':'m%s'%s%s,'role':'%s','parts':[{'text':'a text of more than 16%s'}]%s}",
            i & 16 ? escape : "", i & 1 ? ",'contextId':'c1234567'" : "",
            i & 2 ? ",'taskId':'t'" : "", i & 64 ? "ROLE_USER" : "ROLE_AGENT", i & 32 ? escape : "",
            i & 4 ? ",'metadata':{'k':{'deep':[1]}}" : "");
        check_form(&dgm_form_message, text, NULL);
    }
    check_form(&dgm_form_message, "{'messageId':'m','role':'ROLE_USER','parts':[{'text':''}]}",
               NULL);
}

DGM_TEST_MAIN(dgm_test(a_plain_message_is_written_like_any_other),
              dgm_test_holds(parts_of_every_kind, "R004-01"),
              dgm_test_holds(every_member_of_a_message, "R004-01"),
              dgm_test_holds(every_member_of_a_status_and_every_state, "R002-28 R002-07"),
              dgm_test_holds(every_member_of_an_artifact, "R002-27"),
              dgm_test_holds(every_member_of_a_task, "R002-03"),
              dgm_test_holds(every_member_of_the_updates, "R002-05 R002-11"),
              dgm_test(exactly_one_member_of_a_stream_response),
              dgm_test_holds(the_samples_of_document_002, "R002-12"),
              dgm_test(the_four_internal_events_of_document_002),
              dgm_test(internal_events_of_our_own), dgm_test(every_kind_with_every_member),
              dgm_test(internal_events_need_task_kind_and_time),
              dgm_test(an_event_is_detected_from_its_kind))
