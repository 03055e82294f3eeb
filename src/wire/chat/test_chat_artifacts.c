/* test_chat_artifacts.c - files and data of agents in a completion, and the task it tells of. */
#include "wire/chat/test_chat_codec.h"

#define TASK                                                                                       \
    "{\"task\":{\"id\":\"t1\",\"contextId\":\"c1\",\"status\":{\"state\":\"TASK_STATE_"            \
    "SUBMITTED\"}}}\n"
#define MAKES(id, part, more)                                                                      \
    "{\"artifactUpdate\":{\"taskId\":\"t1\",\"contextId\":\"c1\",\"artifact\":{\"artifactId\":"    \
    "\"" id "\",\"parts\":[" part "]}" more "}}\n"
#define STATUS(state, message)                                                                     \
    "{\"statusUpdate\":{\"taskId\":\"t1\",\"contextId\":\"c1\",\"status\":{\"state\":\"TASK_"      \
    "STATE_" state "\"" message "}}}\n"
#define SAYS(parts)                                                                                \
    ",\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[" parts "]}"
#define TEXT(t) "{\"text\":\"" t "\"}"
#define DONE STATUS("COMPLETED", "")
#define LINK "{\"url\":\"https://x/r.pdf\",\"filename\":\"r\\u00e9.pdf\"}"
#define PICTURE "{\"url\":\"https://x/a.png\",\"filename\":\"a.png\"}"
#define BYTES "{\"raw\":\"AAAA\",\"filename\":\"a.bin\",\"mediaType\":\"x/y\"}"
#define DATA(n) "{\"data\":{\"n\":" n "}}"

#define ROLE "{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}"
#define CONTENT(t) "{\"content\":\"" t "\"}\n"
#define A2A(state) ",\"a2a\":{\"context_id\":\"c1\",\"task_id\":\"T\",\"state\":\"" state "\"}"
#define WHOLE(message, more)                                                                       \
    "{\"id\":\"chatcmpl-t1\",\"object\":\"chat.completion\",\"created\":1700000000,\"model\":"     \
    "\"m\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\"," message                 \
    "},\"logprobs\":null,\"finish_reason\":\"stop\"}]" more "}\n"
#define OF_A_TASK .task_id = {"T", 1}

static const dgm_stream_params chunks = {0}, whole = {.whole = true},
                               json = {.whole = true, .json = true}, told = {OF_A_TASK},
                               told_whole = {.whole = true, OF_A_TASK};

static void files_are_links_and_data_is_code(void **state)
{
    static const char events[] =
        TASK MAKES("a", LINK "," PICTURE, "") MAKES("b", BYTES "," DATA("1"), "") DONE;
    (void)state;
    check_encode(
        chunks, events,
        ROLE "\n" CONTENT("[ré.pdf](https://x/r.pdf)") CONTENT("\\n\\n![a.png](https://x/a.png)")
            CONTENT("\\n\\n[a.bin (x/y, 3 bytes)]") CONTENT(
                "\\n\\n```json\\n{\\\"n\\\": 1}\\n```") "{},\"finish_reason\":\"stop\"}]}\n");
    check_encode(whole, events,
                 WHOLE("\"content\":\"[ré.pdf](https://x/r.pdf)\\n\\n![a.png](https://x/a.png)"
                       "\\n\\n[a.bin (x/y, 3 bytes)]\\n\\n```json\\n{\\\"n\\\": "
                       "1}\\n```\",\"refusal\":null",
                       ""));
}

static void who_wants_json_gets_it_bare(void **state)
{
    (void)state;
    check_encode(json, TASK MAKES("b", DATA("1"), "") DONE,
                 WHOLE("\"content\":\"{\\\"n\\\": 1}\",\"refusal\":null", ""));
}

static void an_artifact_is_sent_again_only_if_it_changed(void **state)
{
    static const char same[] = TASK MAKES("b", DATA("1"), "") MAKES("b", DATA("1"), "") DONE;
    static const char others[] = TASK MAKES("b", DATA("1"), "")
        MAKES("b", DATA("2"), ",\"append\":true") MAKES("b", DATA("3"), "") DONE;
    (void)state;
    check_encode(
        chunks, same,
        ROLE "\n" CONTENT("```json\\n{\\\"n\\\": 1}\\n```") "{},\"finish_reason\":\"stop\"}]}\n");
    check_encode(
        chunks, others,
        ROLE "\n" CONTENT("```json\\n{\\\"n\\\": 1}\\n```")
            CONTENT("\\n\\n```json\\n{\\\"n\\\": 2}\\n```") CONTENT(
                "\\n\\n```json\\n{\\\"n\\\": 3}\\n```") "{},\"finish_reason\":\"stop\"}]}\n");
    check_encode(json, others,
                 WHOLE("\"content\":\"{\\\"n\\\": 3}\\n\\n{\\\"n\\\": 2}\",\"refusal\":null", ""));
}

#define CITED(start, end)                                                                          \
    "\"annotations\":[{\"type\":\"url_citation\",\"url_citation\":{\"start_index\":" start         \
    ",\"end_index\":" end ",\"url\":\"https://x/r.pdf\",\"title\":\"ré.pdf\"}}]"

static void links_are_cited_at_their_position(void **state)
{
    static const char events[] = TASK MAKES("t", TEXT("Grüße"), "") MAKES("a", LINK, "") DONE;
    (void)state;
    check_encode(told, events,
                 ROLE ",\"finish_reason\":null}]" A2A("working") "}\n" CONTENT("Grüße")
                     CONTENT("\\n\\n[ré.pdf](https://x/r.pdf)") "{" CITED(
                         "7", "32") "},\"finish_reason\":\"stop\"}]" A2A("completed") "}\n");
    check_encode(
        told_whole, events,
        WHOLE("\"content\":\"Grüße\\n\\n[ré.pdf](https://x/r.pdf)\",\"refusal\":null," CITED("7",
                                                                                             "32"),
              A2A("completed")));
}

static void the_task_and_its_state(void **state)
{
    (void)state;
    check_encode(told_whole, TASK STATUS("INPUT_REQUIRED", SAYS(TEXT("Who?"))),
                 WHOLE("\"content\":\"Who?\",\"refusal\":null", A2A("input-required")));
    check_encode(told_whole, TASK STATUS("AUTH_REQUIRED", SAYS(TEXT("Key?"))),
                 WHOLE("\"content\":\"Key?\",\"refusal\":null", A2A("auth-required")));
    check_encode(told_whole, TASK STATUS("REJECTED", SAYS(TEXT("No."))),
                 WHOLE("\"content\":null,\"refusal\":\"No.\"", A2A("rejected")));
    check_encode(
        told,
        TASK STATUS("INPUT_REQUIRED", SAYS("{\"data\":{\"tool_calls\":[{\"call_id\":"
                                           "\"k\",\"name\":\"f\"}]}}")),
        ROLE ",\"finish_reason\":null}]" A2A(
            "working") "}\n"
                       "{\"tool_calls\":[{\"index\":0,\"id\":\"k\",\"type\":\"function\","
                       "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}\n"
                       "{},\"finish_reason\":\"tool_calls\"}]" A2A("input-required") "}\n");
}

DGM_TEST_MAIN(dgm_test(files_are_links_and_data_is_code), dgm_test(who_wants_json_gets_it_bare),
              dgm_test(an_artifact_is_sent_again_only_if_it_changed),
              dgm_test(links_are_cited_at_their_position), dgm_test(the_task_and_its_state))
