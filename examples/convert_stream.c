/*
 * convert_stream.c - a stream from one format to another, in whatever pieces the bytes come.
 *
 *     cc -std=c17 convert_stream.c $(pkg-config --cflags --libs dragoman) -o convert_stream
 */
#include <dragoman/dragoman.h>
#include <stdio.h>
#include <string.h>

/* What an A2A 0.3 agent sends. Its answer comes in two chunks. */
static const char stream[] =
    "data: {\"kind\":\"status-update\",\"taskId\":\"t1\",\"contextId\":\"c1\","
    "\"status\":{\"state\":\"working\"},\"final\":false}\n\n"
    "data: {\"kind\":\"artifact-update\",\"taskId\":\"t1\",\"contextId\":\"c1\",\"append\":false,"
    "\"artifact\":{\"artifactId\":\"a1\",\"parts\":[{\"kind\":\"text\",\"text\":\"Hello, \"}]}}\n\n"
    ": still there\n\n"
    "data: {\"kind\":\"artifact-update\",\"taskId\":\"t1\",\"contextId\":\"c1\",\"append\":true,"
    "\"lastChunk\":true,"
    "\"artifact\":{\"artifactId\":\"a1\",\"parts\":[{\"kind\":\"text\",\"text\":\"world!\"}]}}\n\n"
    "data: {\"kind\":\"status-update\",\"taskId\":\"t1\",\"contextId\":\"c1\","
    "\"status\":{\"state\":\"completed\"},\"final\":true}\n\n";

/* Takes what is ready; a program would hand it to its socket. */
static void take(dgm_converter *c, size_t fed)
{
    dgm_str ready = dgm_converter_output(c);
    if (!ready.n)
        return;
    printf("after %zu bytes:\n%.*s", fed, (int)ready.n, ready.p);
    dgm_converter_taken(c, ready.n);
}

int main(void)
{
    const dgm_convert_options options = {.from = "a2a-0.3", .to = "a2a-1.0"};
    const size_t total = sizeof stream - 1, piece = 7;
    dgm_converter *c = NULL;
    dgm_err err = {0};

    if (dgm_converter_new(&options, &c, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    for (size_t at = 0; at < total; at += piece) {
        size_t n = total - at < piece ? total - at : piece;
        if (dgm_converter_feed(c, stream + at, n, &err)) {
            take(c, at + n); /* what came before the fault is good */
            fprintf(stderr, "error at %s: %s\n", err.at, err.msg);
            dgm_converter_free(c);
            return 1;
        }
        take(c, at + n);
    }
    if (dgm_converter_end(c, &err)) {
        fprintf(stderr, "error at %s: %s\n", err.at, err.msg);
        dgm_converter_free(c);
        return 1;
    }
    take(c, total);
    dgm_converter_free(c);
    return 0;
}
