/*
 * a2a_to_openai.c - one A2A message to Chat Completions messages.
 *
 *     cc -std=c17 a2a_to_openai.c $(pkg-config --cflags --libs dragoman) -o a2a_to_openai
 */
#include <dragoman/dragoman.h>
#include <stdio.h>
#include <string.h>

static int show(const char *text)
{
    dgm_document *document = NULL;
    dgm_openai_messages chat = {0};
    dgm_err *err = dgm_err_new();
    const dgm_convert_options options = {
        .size = sizeof options, .from = DGM_FORMAT_A2A_03, .object = DGM_OBJECT_MESSAGE};

    if (dgm_document_decode(&options, text, strlen(text), &document, err) ||
        dgm_message_to_openai(dgm_document_object(document, 0), &chat, err)) {
        printf("error at %s: %s\n\n", dgm_err_pointer(err), dgm_err_message(err));
        dgm_document_free(document);
        dgm_err_free(err);
        return 1;
    }
    /* in a history the tool messages come first */
    for (size_t i = 0; i < chat.n_tool_messages; i++)
        printf("tool_messages[%zu]: %s\n", i, chat.tool_messages[i]);
    printf("openai_message:   %s\n\n", chat.openai_message ? chat.openai_message : "(none)");

    dgm_openai_messages_done(&chat);
    dgm_document_free(document);
    dgm_err_free(err);
    return 0;
}

int main(void)
{
    int faults = 0;
    faults += show("{\"role\": \"user\", \"parts\": [{\"kind\": \"text\", \"text\": \"What's the "
                   "weather?\"}]}");
    faults +=
        show("{\"role\": \"agent\", \"parts\": [{\"kind\": \"data\", \"data\": {\"tool_calls\": ["
             "{\"call_id\": \"call_abc123\", \"name\": \"get_weather\","
             " \"arguments\": {\"location\": \"Oakland\"}}]}}]}");
    faults +=
        show("{\"role\": \"user\", \"parts\": [{\"kind\": \"data\", \"data\": {\"tool_results\": ["
             "{\"call_id\": \"call_abc123\", \"name\": \"get_weather\","
             " \"output\": \"Sunny, 72°F\"}]}}]}");
    faults += show("{\"role\": \"user\", \"parts\": ["
                   "{\"kind\": \"text\", \"text\": \"And tomorrow?\"},"
                   "{\"kind\": \"data\", \"data\": {\"tool_results\": ["
                   "{\"call_id\": \"call_1\", \"output\": {\"high\": 72.0}}]}}]}");
    /* the fault is named with a JSON pointer */
    faults +=
        show("{\"role\": \"agent\", \"parts\": [{\"kind\": \"data\", \"data\": {\"tool_calls\": ["
             "{\"call_id\": \"call_1\"}]}}]}");
    return faults == 1 ? 0 : 1;
}
