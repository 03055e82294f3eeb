/*
 * build_task.c - dragoman/model.h: a task is built from structs, written in several formats, and read back.
 *
 *     cc -std=c17 build_task.c $(pkg-config --cflags --libs dragoman) -o build_task
 */
#include <dragoman/document.h>
#include <dragoman/model.h>
#include <stdio.h>
#include <string.h>

static const dgm_json *metadata(dgm_document *d)
{
    const dgm_json *value = NULL;
    dgm_json_builder *b = dgm_json_builder_new(d);
    dgm_json_builder_object(b, NULL);
    dgm_json_builder_string(b, "source", DGM_STR("guide"));
    dgm_json_builder_close(b);
    dgm_json_builder_end(b, &value, NULL);
    return value;
}

static void fill_message(dgm_document *d, dgm_message *m, const char *id, dgm_role role,
                         dgm_str text)
{
    m->message_id = (dgm_str){id, strlen(id)};
    m->context_id = DGM_STR("trip-7");
    m->role = role;
    m->parts.at = dgm_document_alloc(d, sizeof *m->parts.at);
    m->parts.n = 1;
    m->parts.at[0].kind = DGM_PART_TEXT;
    m->parts.at[0].content = text;
}

static void fill_task(dgm_document *d, dgm_task *t)
{
    t->id = DGM_STR("task-1");
    t->context_id = DGM_STR("trip-7");
    t->status.state = DGM_STATE_COMPLETED;
    t->status.timestamp = DGM_STR("2026-01-05T09:30:02Z");
    t->metadata = metadata(d);
    t->history.at = dgm_document_alloc(d, 2 * sizeof *t->history.at);
    t->history.n = 2;
    fill_message(d, &t->history.at[0], "m-1", DGM_ROLE_USER,
                 DGM_STR("Which museum has the tiles?"));
    fill_message(d, &t->history.at[1], "m-2", DGM_ROLE_AGENT,
                 DGM_STR("The Museu Nacional do Azulejo."));
}

static char *encode(const dgm_document *d, dgm_format_id format, dgm_err *err)
{
    const dgm_convert_options options = {
        .size = sizeof options, .to = format, .framing = DGM_FRAMING_LINES};
    char *text = NULL;
    if (dgm_document_encode(d, &options, &text, NULL, err))
        fprintf(stderr, "error at %s: %s\n", dgm_err_pointer(err), dgm_err_message(err));
    return text;
}

int main(void)
{
    static const dgm_format_id formats[] = {DGM_FORMAT_A2A_10, DGM_FORMAT_A2A_03, DGM_FORMAT_CHAT,
                                            DGM_FORMAT_AG_UI};
    dgm_document *d = dgm_document_new();
    dgm_err *err = dgm_err_new();
    fill_task(d, dgm_document_add(d, DGM_OBJECT_TASK));
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char *text = encode(d, formats[i], err);
        if (!text)
            return 1;
        printf("--- %s\n%s", dgm_format_id_name(formats[i]), text);
        dgm_free(text);
    }

    /* and back */
    dgm_convert_options options = {.size = sizeof options};
    dgm_document *again = NULL;
    char *text = encode(d, DGM_FORMAT_A2A_03, err);
    if (!text || dgm_document_decode(&options, text, strlen(text), &again, err))
        return 1;
    const dgm_task *t = dgm_document_object(again, 0);
    printf("--- read again: a %s with %zu messages; its source is %.*s\n",
           dgm_object_kind_name(dgm_document_kind(again, 0)), t->history.n,
           DGM_P(dgm_json_string(dgm_json_member(t->metadata, "source"))));
    dgm_free(text);

    /* structs that are not valid give an error with a JSON pointer */
    dgm_task *wrong = dgm_document_object(d, 0);
    wrong->status.state = (dgm_task_state)77;
    options.to = DGM_FORMAT_A2A_10;
    if (dgm_document_encode(d, &options, &text, NULL, err))
        printf("error at %s: %s\n", dgm_err_pointer(err), dgm_err_message(err));
    dgm_document_free(again);
    dgm_document_free(d);
    dgm_err_free(err);
    return 0;
}
