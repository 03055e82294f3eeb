/* backend/test_http_agent.h - what the tests of services as agents share: turns, checks, and answers of each format. */
#pragma once

#include "backend/test_fake.h"
#include "backend/test_service.h"

#define D(json) "data: " json "\n\n"

/* ---- helpers --------------------------------------------------------------------------------------------------- */

static char note[256], task_note[256]; /* what agents store, by scope */

static inline void do_remember(dgm_run *run, dgm_run_scope scope, dgm_str text,
                               void (*stored)(void *arg, dgm_code code), void *arg)
{
    (void)run, (void)stored, (void)arg;
    snprintf(scope == DGM_RUN_TASK ? task_note : note, sizeof note, "%.*s", DGM_P(text));
}

static inline void do_recall(dgm_run *run, dgm_run_scope scope,
                             void (*found)(void *arg, dgm_str text), void *arg)
{
    const char *text = scope == DGM_RUN_TASK ? task_note : note;
    (void)run;
    found(arg, *text ? dgm_str_from(text) : (dgm_str){0});
}

static dgm_run_ops noting_ops;

static inline struct fake *open_agent(const char *format, const char *more)
{
    char config[600];
    snprintf(config, sizeof config, "{'url':'%s','format':'%s'%s%s}", service.url, format,
             *more ? "," : "", more);
    note[0] = task_note[0] = '\0';
    return fake_open("http", config, NULL);
}

static inline void start_turn(struct fake *f)
{
    noting_ops = fake_ops;
    noting_ops.remember = do_remember;
    noting_ops.recall = do_recall;
    f->run.ops = &noting_ops;
    fake_run_prepared(f);
}

/* A turn with a text. metadata: JSON with ' for ", or NULL. */
static inline void turn_with(struct fake *f, const char *text, const char *metadata)
{
    fake_prepare(f, "msg-1", text);
    if (metadata)
        f->input.metadata = fake_json(f->arena, metadata);
    start_turn(f);
}

/* A turn whose message is one part of data. */
static inline void turn_with_data(struct fake *f, const char *data, const char *metadata)
{
    fake_prepare(f, "msg-2", "");
    f->part = (dgm_part){.kind = DGM_PART_DATA, .data = fake_json(f->arena, data)};
    if (metadata)
        f->input.metadata = fake_json(f->arena, metadata);
    start_turn(f);
}

static inline void check_body(size_t i, const char *want)
{
    char *text = strdup(want);
    fake_double_quotes(text);
    check_str(dgm_str_from(service_body(i)), text);
    free(text);
}

static inline void check_failed_(struct fake *f, const char *sentence, const char *file, int line)
{
    dgm_str error = {0};
    const dgm_task *task = dgm_fold_task(f->fold);
    if (task && f->state == DGM_STATE_FAILED)
        error = dgm_json_str_member(task->metadata, "error");
    check_bytes_(error.p, error.n, sentence, strlen(sentence), file, line);
    fake_check_(f, file, line);
}
#define check_failed(f, sentence) check_failed_((f), (sentence), __FILE__, __LINE__)

/* ---- answers of each format ------------------------------------------------------------------------------------ */

#define CHUNK(delta, finish)                                                                       \
    D("{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\","         \
      "\"choices\":[{\"index\":0,\"delta\":{" delta "},\"finish_reason\":" finish "}]}")
#define CHAT_STREAM                                                                                \
    CHUNK("\"role\":\"assistant\",\"content\":\"\"", "null")                                       \
    CHUNK("\"content\":\"Hel\"", "null")                                                           \
    CHUNK("\"content\":\"lo\"", "null")                                                            \
    CHUNK("", "\"stop\"")                                                                          \
    D("{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\","         \
      "\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}")                   \
    D("[DONE]")
#define CHAT_WHOLE                                                                                 \
    "{\"id\":\"c1\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"m\",\"choices\":[{"   \
    "\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"Hello\"},\"finish_reason\":"    \
    "\"stop\"}]}"

#define RESPONSE(status, output)                                                                   \
    "{\"id\":\"resp_1\",\"object\":\"response\",\"created_at\":1,\"status\":\"" status             \
    "\",\"model\":\"m\",\"output\":[" output "]}"
#define RESPONSE_MESSAGE                                                                           \
    "{\"type\":\"message\",\"id\":\"msg_1\",\"role\":\"assistant\",\"status\":\"completed\","      \
    "\"content\":[{\"type\":\"output_text\",\"text\":\"Hello\",\"annotations\":[]}]}"
#define RESPONSES_STREAM                                                                           \
    "event: response.created\n" D("{\"type\":\"response.created\",\"response\":" RESPONSE(         \
        "in_progress", "") "}") D("{\"type\":\"response.output_item.added\",\"output_index\":0,"   \
                                  "\"item\":{\"type\":\"message\""                                 \
                                  ",\"id\":\"msg_1\",\"role\":\"assistant\",\"status\":\"in_"      \
                                  "progress\",\"content\":[]}}")                                   \
        D("{\"type\":\"response.output_text.delta\",\"item_id\":\"msg_1\",\"output_index\":0,"     \
          "\"content_index\":0,\"delta\":\"Hel\"}") D("{\"type\":\"response.output_text.delta\","  \
                                                      "\"item_id\":\"msg_1\",\"output_index\":0,"  \
                                                      "\"content_index\":0,\"delta\":\"lo\"}")     \
            D("{\"type\":\"response.output_text.done\",\"item_id\":\"msg_1\",\"output_index\":0,"  \
              "\"content_index\":0,\"text\":\"Hello\"}")                                           \
                D("{\"type\":\"response.output_item.done\",\"output_index\":0,"                    \
                  "\"item\":" RESPONSE_MESSAGE "}")                                                \
                    D("{\"type\":\"response.completed\",\"response\":" RESPONSE(                   \
                        "completed", RESPONSE_MESSAGE) "}")

#define STARTED D("{\"type\":\"RUN_STARTED\",\"threadId\":\"ctx-1\",\"runId\":\"r\"}")
#define FINISHED D("{\"type\":\"RUN_FINISHED\",\"threadId\":\"ctx-1\",\"runId\":\"r\"}")
#define AGUI_TEXT(id, text)                                                                        \
    D("{\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"" id "\",\"role\":\"assistant\"}")         \
    D("{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"" id "\",\"delta\":\"" text "\"}")       \
    D("{\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"" id "\"}")
#define AGUI_STREAM                                                                                \
    STARTED D("{\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"m1\",\"role\":\"assistant\"}")     \
        D("{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m1\",\"delta\":\"Hel\"}")            \
            D("{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m1\",\"delta\":\"lo\"}")         \
                D("{\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"m1\"}") FINISHED
#define AGUI_WHOLE                                                                                 \
    "[{\"type\":\"RUN_STARTED\",\"threadId\":\"ctx-1\",\"runId\":\"r\"},"                          \
    "{\"type\":\"TEXT_MESSAGE_CHUNK\",\"messageId\":\"m1\",\"role\":\"assistant\",\"delta\":"      \
    "\"Hello\"},{\"type\":\"RUN_FINISHED\",\"threadId\":\"ctx-1\",\"runId\":\"r\"}]"

#define AISDK_STREAM                                                                               \
    D("{\"type\":\"start\",\"messageId\":\"a1\"}")                                                 \
    D("{\"type\":\"start-step\"}")                                                                 \
    D("{\"type\":\"text-start\",\"id\":\"t1\"}")                                                   \
    D("{\"type\":\"text-delta\",\"id\":\"t1\",\"delta\":\"Hel\"}")                                 \
    D("{\"type\":\"text-delta\",\"id\":\"t1\",\"delta\":\"lo\"}")                                  \
    D("{\"type\":\"text-end\",\"id\":\"t1\"}")                                                     \
    D("{\"type\":\"finish-step\"}") D("{\"type\":\"finish\"}") D("[DONE]")
#define AISDK_WHOLE                                                                                \
    "{\"id\":\"a1\",\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"text\":\"Hello\"}]}"

#define RPC(result) "{\"jsonrpc\":\"2.0\",\"id\":\"task-1\",\"result\":" result "}"
#define A2A_10_STREAM                                                                              \
    D(RPC("{\"task\":{\"id\":\"T\",\"contextId\":\"ctx-1\",\"status\":{\"state\":"                 \
          "\"TASK_STATE_SUBMITTED\"}}}"))                                                          \
    D(RPC("{\"artifactUpdate\":{\"taskId\":\"T\",\"contextId\":\"ctx-1\",\"artifact\":{"           \
          "\"artifactId\":\"x\",\"parts\":[{\"text\":\"Hel\"}]}}}"))                               \
    D(RPC("{\"artifactUpdate\":{\"taskId\":\"T\",\"contextId\":\"ctx-1\",\"artifact\":{"           \
          "\"artifactId\":\"x\",\"parts\":[{\"text\":\"lo\"}]},\"append\":true,\"lastChunk\":"     \
          "true}}"))                                                                               \
    D(RPC("{\"statusUpdate\":{\"taskId\":\"T\",\"contextId\":\"ctx-1\",\"status\":{\"state\":"     \
          "\"TASK_STATE_COMPLETED\"}}}"))
#define A2A_10_WHOLE                                                                               \
    RPC("{\"task\":{\"id\":\"T\",\"contextId\":\"ctx-1\",\"status\":{\"state\":"                   \
        "\"TASK_STATE_COMPLETED\"},\"artifacts\":[{\"artifactId\":\"x\",\"parts\":[{\"text\":"     \
        "\"Hello\"}]}]}}")
#define A2A_03_STREAM                                                                              \
    D(RPC("{\"kind\":\"task\",\"id\":\"T\",\"contextId\":\"ctx-1\",\"status\":{\"state\":"         \
          "\"submitted\"}}"))                                                                      \
    D(RPC("{\"kind\":\"artifact-update\",\"taskId\":\"T\",\"contextId\":\"ctx-1\",\"artifact\":{"  \
          "\"artifactId\":\"x\",\"parts\":[{\"kind\":\"text\",\"text\":\"Hel\"}]}}"))              \
    D(RPC("{\"kind\":\"artifact-update\",\"taskId\":\"T\",\"contextId\":\"ctx-1\",\"artifact\":{"  \
          "\"artifactId\":\"x\",\"parts\":[{\"kind\":\"text\",\"text\":\"lo\"}]},\"append\":true," \
          "\"lastChunk\":true}"))                                                                  \
    D(RPC("{\"kind\":\"status-update\",\"taskId\":\"T\",\"contextId\":\"ctx-1\",\"status\":{"      \
          "\"state\":\"completed\"},\"final\":true}"))
#define A2A_03_WHOLE                                                                               \
    RPC("{\"kind\":\"message\",\"messageId\":\"q\",\"role\":\"agent\",\"parts\":[{\"kind\":"       \
        "\"text\",\"text\":\"Hello\"}]}")

/* An item of openai-responses. */
#define USER(text)                                                                                 \
    "{'type':'message','role':'user','content':[{'type':'input_text','text':'" text "'}]}"
