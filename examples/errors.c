/*
 * errors.c - dragoman/base.h: errors and their parts, and what happens when memory runs out.
 *
 *     cc -std=c17 errors.c $(pkg-config --cflags --libs dragoman) -o errors
 */
#include <dragoman/base.h>
#include <dragoman/convert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_out_of_memory(size_t n)
{
    fprintf(stderr, "no memory for %zu bytes\n", n);
    exit(3);
}

static void try_to_convert(const char *text, dgm_format_id to, dgm_err *err)
{
    const dgm_convert_options options = {
        .size = sizeof options, .from = DGM_FORMAT_A2A_03, .to = to};
    char *out = NULL;
    if (!dgm_convert(&options, text, strlen(text), &out, NULL, err)) {
        printf("converted: %s", out);
        dgm_free(out);
        return;
    }
    printf("code:    %d, %s\n", (int)dgm_err_code(err), dgm_code_name(dgm_err_code(err)));
    printf("message: %s\n", dgm_err_message(err));
    printf("pointer: \"%s\", line %zu, column %zu\n\n", dgm_err_pointer(err), dgm_err_line(err),
           dgm_err_column(err));
}

int main(void)
{
    dgm_oom_set_hook(on_out_of_memory);
    dgm_err *err = dgm_err_new(); /* one object for all calls */
    try_to_convert("{\"role\": \"user\",", DGM_FORMAT_A2A_10, err);
    try_to_convert("{\"kind\": \"message\", \"messageId\": \"m\", \"role\": \"user\",\n"
                   " \"parts\": [{\"kind\": \"text\", \"text\": \"Hi\"}, {\"kind\": \"text\"}]}",
                   DGM_FORMAT_CHAT, err);
    try_to_convert("{}", (dgm_format_id)99, err);
    try_to_convert("{\"kind\": \"message\", \"messageId\": \"m\", \"role\": \"user\","
                   " \"parts\": [{\"kind\": \"text\", \"text\": \"Hi\"}]}",
                   DGM_FORMAT_CHAT, NULL); /* without an error object */
    dgm_err_free(err);
    return 0;
}
