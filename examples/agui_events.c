/*
 * agui_events.c - dragoman/agui.h: a program emits AG-UI events one by one and sends them as a Chat Completions
 * stream; then a stream of an A2A agent is read as AG-UI events.
 *
 *     cc -std=c17 agui_events.c $(pkg-config --cflags --libs dragoman) -o agui_events
 */
#include <dragoman/agui.h>
#include <dragoman/document.h>
#include <stdio.h>
#include <string.h>

static const dgm_agui_event answer[] = {
    {.type = DGM_AGUI_RUN_STARTED, .thread_id = DGM_STR("trip-7"), .run_id = DGM_STR("run-1")},
    {.type = DGM_AGUI_TEXT_MESSAGE_START,
     .message_id = DGM_STR("m-1"),
     .role = DGM_STR("assistant")},
    {.type = DGM_AGUI_TEXT_MESSAGE_CONTENT,
     .message_id = DGM_STR("m-1"),
     .delta = DGM_STR("Sunny, ")},
    {.type = DGM_AGUI_TEXT_MESSAGE_CONTENT,
     .message_id = DGM_STR("m-1"),
     .delta = DGM_STR("21 degrees.")},
    {.type = DGM_AGUI_TEXT_MESSAGE_END, .message_id = DGM_STR("m-1")},
    {.type = DGM_AGUI_RUN_FINISHED, .thread_id = DGM_STR("trip-7"), .run_id = DGM_STR("run-1")},
};

static const char stream[] =
    "data: "
    "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_"
    "WORKING\"}}}\n\n"
    "data: "
    "{\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":{\"artifactId\":\"a\","
    "\"parts\":[{\"text\":\"Rain.\"}]},\"lastChunk\":true}}\n\n"
    "data: "
    "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_"
    "COMPLETED\"}}}\n\n";

static int send_answer(dgm_err *err)
{
    const dgm_convert_options options = {.size = sizeof options,
                                         .from = DGM_FORMAT_AG_UI,
                                         .to = DGM_FORMAT_CHAT,
                                         .framing = DGM_FRAMING_SSE};
    dgm_converter *c = NULL;
    dgm_code rc = dgm_converter_new(&options, &c, err);
    for (size_t i = 0; !rc && i < sizeof answer / sizeof *answer; i++) {
        if ((rc = dgm_converter_feed_agui(c, &answer[i], err)))
            break;
        dgm_str ready = dgm_converter_output(c); /* what a server would send now */
        fwrite(ready.p, 1, ready.n, stdout);
        dgm_converter_consume(c, ready.n);
    }
    if (!rc && !(rc = dgm_converter_end(c, err)))
        fwrite(dgm_converter_output(c).p, 1, dgm_converter_output(c).n, stdout);
    dgm_converter_free(c);
    return rc;
}

static int read_stream(dgm_err *err)
{
    const dgm_convert_options options = {.size = sizeof options, .to = DGM_FORMAT_AG_UI};
    dgm_document *d = NULL;
    if (dgm_document_decode(&options, stream, strlen(stream), &d, err))
        return 1;
    for (size_t i = 0; i < dgm_document_count(d); i++) {
        const dgm_agui_event *e = dgm_document_agui(d, i);
        printf("%-21s %.*s%.*s\n", dgm_agui_type_name(e->type), DGM_P(e->delta),
               DGM_P(e->step_name));
    }
    dgm_document_free(d);
    return 0;
}

int main(void)
{
    dgm_err *err = dgm_err_new();
    int failed = send_answer(err) || read_stream(err);
    if (failed)
        fprintf(stderr, "error at %s: %s\n", dgm_err_pointer(err), dgm_err_message(err));
    dgm_err_free(err);
    return failed;
}
