/*
 * read_task.c - an A2A object as C structs: read a task, walk through it, write it in another
 * dialect.
 *
 *     cc -std=c17 read_task.c $(pkg-config --cflags --libs dragoman) -o read_task
 */
#include <dragoman/dragoman.h>
#include <stdio.h>
#include <string.h>

static const char text[] =
    "{\"id\": \"task-1\", \"contextId\": \"trip-7\","
    " \"status\": {\"state\": \"TASK_STATE_COMPLETED\", \"timestamp\": "
    "\"2026-01-05T10:30:02+01:00\"},"
    " \"history\": ["
    "   {\"messageId\": \"m-1\", \"role\": \"ROLE_USER\", \"parts\": [{\"text\": \"Which museum "
    "has the tiles?\"}]},"
    "   {\"messageId\": \"m-2\", \"role\": \"ROLE_AGENT\", \"parts\": [{\"text\": \"The Museu "
    "Nacional do Azulejo.\"},"
    "     {\"data\": {\"rating\": 4.70, \"rooms\": 1180591620717411303424}}]}],"
    " \"artifacts\": [{\"artifactId\": \"a-1\", \"name\": \"map\","
    "   \"parts\": [{\"url\": \"https://maps.example/azulejo.png\", \"mediaType\": "
    "\"image/png\"}]}],"
    " \"priority\": 1.0}"; /* not a member of A2A: written back by the same format */

static void show_part(const dgm_part *p)
{
    char *json;
    switch (p->kind) {
    case DGM_PART_TEXT: printf("    text: %.*s\n", DGM_P(p->content)); break;
    case DGM_PART_URL:
        printf("    file: %.*s (%.*s)\n", DGM_P(p->content), DGM_P(p->media_type));
        break;
    case DGM_PART_RAW: printf("    file: %zu characters of base64\n", p->content.n); break;
    case DGM_PART_DATA:
        json = dgm_json_text(p->data);
        printf("    data: %s\n", json); /* numbers are as they came */
        dgm_free(json);
        break;
    case DGM_PART_NONE: break;
    }
}

static void show_task(const dgm_task *t)
{
    printf("task %.*s in %.*s, %s, %.*s\n", DGM_P(t->id), DGM_P(t->context_id),
           dgm_state_is_terminal(t->status.state) ? "over" : "going on",
           DGM_P(t->status.timestamp));
    for (size_t i = 0; i < t->history.n; i++) {
        const dgm_message *m = &t->history.at[i];
        printf("  %s, %.*s\n", m->role == DGM_ROLE_USER ? "user" : "agent", DGM_P(m->message_id));
        for (size_t k = 0; k < m->parts.n; k++)
            show_part(&m->parts.at[k]);
    }
    for (size_t i = 0; i < t->artifacts.n; i++) {
        const dgm_artifact *a = &t->artifacts.at[i];
        printf("  artifact %.*s\n", DGM_P(a->name));
        for (size_t k = 0; k < a->parts.n; k++)
            show_part(&a->parts.at[k]);
    }
}

int main(void)
{
    static const dgm_format_id formats[] = {DGM_FORMAT_A2A_10, DGM_FORMAT_A2A_03};
    dgm_convert_options options = {.size = sizeof options};
    dgm_document *d = NULL;
    dgm_err *err = dgm_err_new();

    if (dgm_document_decode(&options, text, strlen(text), &d, err)) {
        fprintf(stderr, "error at %s: %s\n", dgm_err_pointer(err), dgm_err_message(err));
        return 1;
    }
    printf("this is a %s\n", dgm_object_kind_name(dgm_document_kind(d, 0)));
    if (dgm_document_kind(d, 0) == DGM_OBJECT_TASK)
        show_task(dgm_document_object(d, 0));

    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char *written = NULL;
        options.to = formats[i];
        if (dgm_document_encode(d, &options, &written, NULL, err)) {
            fprintf(stderr, "error at %s: %s\n", dgm_err_pointer(err), dgm_err_message(err));
            dgm_document_free(d);
            return 1;
        }
        printf("%s: %s\n", dgm_format_id_name(formats[i]), written);
        dgm_free(written);
    }
    dgm_document_free(d);
    dgm_err_free(err);
    return 0;
}
