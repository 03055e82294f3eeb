/* frontend/turn/test_turn_cut.c - how streams end whose log is over before the task has ended. */
#include "frontend/turn/turn_int.h"
#include "net/test_http.h"
#include "wire/agui/agui_codec.h"
#include "wire/aisdk/aisdk.h"
#include "wire/chat/chat_codec.h"
#include "wire/responses/responses.h"

static dgm_turns *turns;

static const struct {
    const char *path;
    const dgm_codec *codec;
    const char *last; /* of an end that is shown */
} rows[] = {{"/agui", &dgm_codec_agui, "RUN_ERROR"},
            {"/aisdk", &dgm_codec_aisdk, "[DONE]"},
            {"/chat", &dgm_codec_openai_chat, "server_shutdown"},
            {"/responses", &dgm_codec_responses, "response.failed"}};

static void add_record(dgm_log *log, const dgm_event *event)
{
    dgm_record *record;
    dgm_buf scratch;
    dgm_err err = {0};
    dgm_buf_init(&scratch, SIZE_MAX);
    dgm_record_head head = {.seq = log->last + 1, .time = 1, .turn = 1};
    check_ok(dgm_record_new(event, head, &scratch, &record, &err), err);
    dgm_log_append(log, record);
    dgm_log_publish(log, log->last);
    dgm_buf_done(&scratch);
}

static void cut_or_close(void *arg)
{
    dgm_log *log = arg;
    if (log->first_seq == 2) /* /agui/cut ... */
        dgm_log_cut(log);
    else
        dgm_log_close(log, log->published);
    dgm_log_unref(log);
}

static void stream_and_stop(void *user, dgm_http_exchange *x, const dgm_http_request *r)
{
    bool is_cut = r->path.n > 4 && memcmp(r->path.p + r->path.n - 4, "/cut", 4) == 0;
    size_t i = 0;
    (void)user;
    while (!dgm_str_starts(r->path, dgm_str_from(rows[i].path)))
        i++;
    dgm_log *log = dgm_log_new(w.loops, is_cut ? 2 : 1);
    dgm_part part = {.kind = DGM_PART_TEXT, .content = DGM_STR("some text")};
    dgm_task task = {
        .id = DGM_STR("t"), .context_id = DGM_STR("c"), .status.state = DGM_STATE_WORKING};
    dgm_artifact_update update = {.task_id = task.id,
                                  .context_id = task.context_id,
                                  .artifact = {.artifact_id = DGM_STR("a"), .parts = {&part, 1}}};
    add_record(log, &(dgm_event){.kind = DGM_EVENT_TASK, .task = &task});
    add_record(log, &(dgm_event){.kind = DGM_EVENT_ARTIFACT, .artifact = &update});
    dgm_turn_output output = {.codec = rows[i].codec,
                              .params.model = DGM_STR("m"),
                              .as = DGM_OUTPUT_SSE,
                              .turns = turns,
                              .task_id = task.id};
    dgm_turn_stream(x, &output, log, log->first_seq);
    dgm_loop_post(dgm_loop_current(), cut_or_close, log);
}

/* All bytes until the server closes the connection, or the body has ended. */
static void read_stream(const char *path, const char *how, char *text, size_t size)
{
    char request[128];
    size_t n = 0;
    ssize_t k;
    int fd = client();
    snprintf(request, sizeof request, "GET %s%s HTTP/1.1\r\n" HOST "\r\n", path, how);
    say(fd, request);
    while (n < size - 1 && (k = recv(fd, text + n, size - 1 - n, 0)) > 0) {
        n += (size_t)k;
        text[n] = 0;
        if (strstr(text, "\r\n0\r\n\r\n"))
            break;
    }
    text[n] = 0;
    close(fd);
}

static void a_stream_that_is_cut_shows_no_end(void **state)
{
    static char text[65536];
    dgm_err err = {0};
    dgm_http_options o = {.listen = "127.0.0.1:0", .times = patient};
    (void)state;
    turns = dgm_turns_new(&(dgm_turns_options){0});
    check_ok(dgm_loops_new(1, &w.loops, &err), err);
    check_ok(dgm_http_server_new(w.loops, &o, (dgm_http_handler){.on_request = stream_and_stop},
                                 &w.server, &err),
             err);
    check_ok(dgm_http_server_start(w.server, &err), err);
    check_ok(dgm_loops_start(w.loops, &err), err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        read_stream(rows[i].path, "/cut", text, sizeof text);
        assert_non_null(strstr(text, "some text"));
        if (strstr(text, rows[i].last) || strstr(text, "shut") || strstr(text, "\r\n0\r\n\r\n"))
            fail_msg("%s: an end of a task that goes on: %s", rows[i].path, text);
        read_stream(rows[i].path, "/close", text, sizeof text);
        assert_non_null(strstr(text, "some text"));
        if (!strstr(text, rows[i].last) || !strstr(text, "\r\n0\r\n\r\n"))
            fail_msg("%s: no end: %s", rows[i].path, text);
    }
    dgm_loops_free(w.loops);
    dgm_http_server_free(w.server);
    dgm_turns_free(turns);
}

DGM_TEST_MAIN(dgm_test(a_stream_that_is_cut_shows_no_end))
