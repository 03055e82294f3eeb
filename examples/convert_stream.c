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
    dgm_converter_consume(c, ready.n);
}

int main(void)
{
    const dgm_convert_options options = {
        .size = sizeof options, .from = DGM_FORMAT_A2A_03, .to = DGM_FORMAT_A2A_10};
    const size_t total = sizeof stream - 1, piece = 7;
    dgm_converter *c = NULL;
    dgm_err *err = dgm_err_new();

    if (dgm_converter_new(&options, &c, err)) {
        fprintf(stderr, "%s\n", dgm_err_message(err));
        return 1;
    }
    for (size_t at = 0; at < total; at += piece) {
        size_t n = total - at < piece ? total - at : piece;
        if (dgm_converter_feed(c, stream + at, n, err)) {
            take(c, at + n); /* what came before the fault is good */
            fprintf(stderr, "error at %s: %s\n", dgm_err_pointer(err), dgm_err_message(err));
            dgm_converter_free(c);
            return 1;
        }
        take(c, at + n);
    }
    if (dgm_converter_end(c, err)) {
        fprintf(stderr, "error at %s: %s\n", dgm_err_pointer(err), dgm_err_message(err));
        dgm_converter_free(c);
        return 1;
    }
    take(c, total);
    dgm_converter_free(c);
    dgm_err_free(err);
    return 0;
}
