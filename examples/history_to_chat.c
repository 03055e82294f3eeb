/*
 * history_to_chat.c - a history of A2A messages for a model: map, reduce, map.
 *
 *     cc -std=c17 history_to_chat.c $(pkg-config --cflags --libs dragoman) -o history_to_chat
 */
#include <dragoman/dragoman.h>
#include <stdio.h>
#include <string.h>

/* What a memory store has kept, pieces of the stream included. */
static const char history[] =
    "[{\"role\": \"user\", \"parts\": [{\"kind\": \"text\", \"text\": \"What's the weather?\"}]},\n"
    " {\"messageId\": \"m2\", \"role\": \"agent\", \"parts\": [{\"kind\": \"data\", \"data\": "
    "{\"tool_calls\": [{\"call_id\": \"call_abc123\", \"name\": \"get_weather\", \"arguments\": "
    "{\"location\": \"Oakland\"}}]}}], \"metadata\": {\"canonical_type\": "
    "\"ToolCallArgsEvent\"}},\n"
    " {\"messageId\": \"m2\", \"role\": \"agent\", \"parts\": [{\"kind\": \"data\", \"data\": "
    "{\"tool_calls\": [{\"call_id\": \"call_abc123\", \"name\": \"get_weather\", \"arguments\": "
    "{\"unit\": \"F\"}}]}}], \"metadata\": {\"canonical_type\": \"ToolCallStartEvent\"}},\n"
    " {\"role\": \"user\", \"parts\": [{\"kind\": \"data\", \"data\": {\"tool_results\": "
    "[{\"call_id\": \"call_abc123\", \"name\": \"get_weather\", \"output\": \"Sunny, "
    "72°F\"}]}}]}]";

static int fail(const dgm_err *err)
{
    printf("error at %s, line %zu: %s\n", dgm_err_pointer(err), dgm_err_line(err),
           dgm_err_message(err));
    return 1;
}

/* events, then fewer events, then messages; each text is the next one's input */
static int show(const char *text)
{
    char *events = NULL, *compacted = NULL, *chat = NULL;
    size_t n = strlen(text);
    dgm_err *err = dgm_err_new();
    int rc = 0;

    if (dgm_convert_a2a_message_to_agui_event(text, n, DGM_EVENTS_SIMPLE, &events, &n, err) ||
        dgm_compact_events(events, n, &compacted, &n, err) ||
        dgm_convert_agui_event_to_openai_chat(compacted, n, &chat, &n, err))
        rc = fail(err);
    else
        printf("events:    %s\n\ncompacted: %s\n\nmessages:  %s\n\n", events, compacted, chat);
    dgm_free(events);
    dgm_free(compacted);
    dgm_free(chat);
    dgm_err_free(err);
    return rc;
}

int main(void)
{
    int faults = show(history);
    /* the pointer says which message, and what of it */
    faults += show("[{\"role\": \"user\", \"parts\": [{\"kind\": \"text\", \"text\": \"Hi\"}]},\n"
                   " {\"role\": \"agent\", \"parts\": [{\"kind\": \"data\", \"data\": "
                   "{\"tool_calls\": [{\"call_id\": \"call_1\"}]}}]}]");
    return faults == 1 ? 0 : 1;
}
