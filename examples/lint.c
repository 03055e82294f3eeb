/*
 * lint.c - dragoman/lint.h: checks the stream of an A2A agent and prints every finding.
 *
 *     cc -std=c17 lint.c $(pkg-config --cflags --libs dragoman) -o lint
 */
#include <dragoman/lint.h>
#include <stdio.h>
#include <string.h>

static const char stream[] = "data: "
                             "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{"
                             "\"state\":\"TASK_STATE_COMPLETED\"}}}\n\n"
                             "data: "
                             "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"status\":{"
                             "\"state\":\"TASK_STATE_WORKING\"}}}\n\n";

static void on_finding(void *arg, const dgm_finding *f)
{
    const char *name = arg;
    printf("%s:%zu: %s: %s [%s]\n    %s\n", name, f->line, dgm_severity_name(f->rule->severity),
           f->message, f->rule->id, f->rule->fix);
}

int main(void)
{
    static char name[] = "stream.sse";
    const dgm_lint_options options = {
        .size = sizeof options, .from = DGM_FORMAT_A2A_10, .on_finding = on_finding, .arg = name};
    dgm_linter *l = NULL;
    if (dgm_linter_new(&options, &l, NULL))
        return 1;
    for (size_t at = 0, n; at < strlen(stream); at += n) { /* bytes as they arrive */
        n = strlen(stream) - at < 50 ? strlen(stream) - at : 50;
        dgm_linter_feed(l, stream + at, n);
    }
    dgm_linter_end(l);
    printf("%zu errors, %zu warnings\n", dgm_linter_count(l, DGM_SEVERITY_ERROR),
           dgm_linter_count(l, DGM_SEVERITY_WARNING));
    dgm_linter_free(l);
    return 0;
}
