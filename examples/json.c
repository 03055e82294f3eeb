/*
 * json.c - dragoman/json.h: builds a JSON value, parses another, and reads the members of both.
 *
 *     cc -std=c17 json.c $(pkg-config --cflags --libs dragoman) -o json
 */
#include <dragoman/document.h>
#include <dragoman/json.h>
#include <stdio.h>
#include <string.h>

static const dgm_json *build(dgm_document *memory, dgm_err *err)
{
    const dgm_json *value = NULL;
    dgm_json_builder *b = dgm_json_builder_new(memory);
    dgm_json_builder_object(b, NULL);
    dgm_json_builder_string(b, "city", DGM_STR("Lisbon"));
    dgm_json_builder_double(b, "celsius", 21.5);
    dgm_json_builder_number(b, "exact", DGM_STR("4.70"));
    dgm_json_builder_bool(b, "sunny", true);
    dgm_json_builder_array(b, "days");
    for (int day = 1; day <= 3; day++)
        dgm_json_builder_int(b, NULL, day);
    dgm_json_builder_close(b);
    dgm_json_builder_null(b, "warning");
    dgm_json_builder_close(b);
    dgm_json_builder_end(b, &value, err); /* value stays NULL if a call was wrong */
    return value;
}

static void show(const dgm_json *value, int depth)
{
    const dgm_json *v = NULL;
    dgm_str key;
    double number;
    bool truth;
    switch (dgm_json_kind_of(value)) {
    case DGM_JSON_KIND_ABSENT: printf("(absent)\n"); break;
    case DGM_JSON_KIND_NULL: printf("null\n"); break;
    case DGM_JSON_KIND_BOOL:
        printf("%s\n", dgm_json_to_bool(value, &truth) && truth ? "yes" : "no");
        break;
    case DGM_JSON_KIND_STRING: printf("text \"%.*s\"\n", DGM_P(dgm_json_string(value))); break;
    case DGM_JSON_KIND_NUMBER:
        printf("number %.*s", DGM_P(dgm_json_number(value)));
        if (dgm_json_to_double(value, &number))
            printf(" = %g", number);
        putchar('\n');
        break;
    case DGM_JSON_KIND_ARRAY:
    case DGM_JSON_KIND_OBJECT:
        printf("%zu values\n", dgm_json_count(value));
        while ((v = dgm_json_iterate(value, v, &key))) {
            printf("%*s%.*s: ", depth * 2 + 2, "", DGM_P(key));
            show(v, depth + 1);
        }
        break;
    }
}

int main(void)
{
    static const char text[] =
        "{\"rooms\": 1180591620717411303424, \"tiles\": [\"blue\", {\"n\": -0}]}";
    dgm_document *memory = dgm_document_new(); /* both values are in its memory */
    dgm_err *err = dgm_err_new();
    const dgm_json *built = build(memory, err), *parsed = NULL;
    if (!built || dgm_json_parse(memory, text, strlen(text), &parsed, err)) {
        fprintf(stderr, "%s\n", dgm_err_message(err));
        return 1;
    }
    show(built, 0);
    show(parsed, 0);
    int64_t second;
    if (dgm_json_to_int64(dgm_json_element(dgm_json_member(built, "days"), 1), &second))
        printf("the second day is %lld\n", (long long)second);
    char *compact = dgm_json_text(built);
    printf("%s\n", compact);
    dgm_free(compact);

    dgm_json_builder *wrong = dgm_json_builder_new(memory);
    dgm_json_builder_array(wrong, NULL);
    dgm_json_builder_int(wrong, "key", 1);
    printf("error: %s\n", dgm_json_builder_end(wrong, &built, err) ? dgm_err_message(err) : "none");
    dgm_err_free(err);
    dgm_document_free(memory);
    return 0;
}
