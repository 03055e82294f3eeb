/*
 * stream_to_chat.c - the live stream of an A2A agent as the chunks that clients of Chat Completions read.
 *
 *     cc -std=c17 stream_to_chat.c $(pkg-config --cflags --libs dragoman) -o stream_to_chat
 *     curl -sN http://agent.example/ ... | ./stream_to_chat -
 */
#include <dragoman/dragoman.h>
#include <stdio.h>
#include <string.h>

/* Two chunks of an answer; the final status says all of it again, the client sees it once. */
static const char sample[] =
    "data: {\"task\":{\"id\":\"t1\",\"contextId\":\"c1\",\"status\":{\"state\":\"TASK_STATE_"
    "SUBMITTED\"}}}\n\n"
    "data: {\"artifactUpdate\":{\"taskId\":\"t1\",\"contextId\":\"c1\",\"artifact\":{"
    "\"artifactId\":\"a1\",\"parts\":[{\"text\":\"Hello \"}]}}}\n\n"
    "data: {\"artifactUpdate\":{\"taskId\":\"t1\",\"contextId\":\"c1\",\"append\":true,"
    "\"lastChunk\":true,\"artifact\":{\"artifactId\":\"a1\",\"parts\":[{\"text\":\"world!\"}]}}}"
    "\n\n"
    "data: {\"statusUpdate\":{\"taskId\":\"t1\",\"contextId\":\"c1\",\"status\":{\"state\":"
    "\"TASK_STATE_COMPLETED\",\"message\":{\"messageId\":\"m1\",\"role\":\"ROLE_AGENT\",\"parts\":"
    "[{\"text\":\"Hello world!\"}]}}}}\n\n";

static void take(dgm_converter *c)
{
    dgm_str ready = dgm_converter_output(c);
    fwrite(ready.p, 1, ready.n, stdout);
    fflush(stdout); /* whoever waits for it has it now */
    dgm_converter_consume(c, ready.n);
}

static dgm_code feed_file(dgm_converter *c, FILE *from, dgm_err *err)
{
    char piece[4096];
    size_t n;
    dgm_code rc = DGM_OK;
    while (!rc && (n = fread(piece, 1, sizeof piece, from)) > 0) {
        rc = dgm_converter_feed(c, piece, n, err);
        take(c);
    }
    return rc;
}

int main(int argc, char **argv)
{
    static const char options[] = "{\"from\": \"a2a-1.0\", \"to\": \"openai-chat\"}";
    dgm_converter *c = NULL;
    dgm_err *err = dgm_err_new();
    dgm_code rc = dgm_converter_new_json(options, sizeof options - 1, &c, err);

    if (!rc && argc > 1 && strcmp(argv[1], "-") == 0)
        rc = feed_file(c, stdin, err);
    else if (!rc)
        rc = dgm_converter_feed(c, sample, sizeof sample - 1, err);
    if (!rc)
        rc = dgm_converter_end(c, err);
    if (c)
        take(c); /* what came before a fault is good */
    if (rc)
        fprintf(stderr, "error at %s: %s\n", dgm_err_pointer(err), dgm_err_message(err));
    dgm_converter_free(c);
    dgm_err_free(err);
    return rc ? 1 : 0;
}
