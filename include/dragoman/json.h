/*
 * dragoman/json.h - JSON values: reading their members, making new ones.
 *
 * A dgm_json cannot be changed. It belongs to the dgm_document in whose memory it was parsed or built. Numbers
 * are stored as their text, so 1.0, -0, 2^70 and 1e400 are written as they were read. Every function accepts
 * NULL as a value: it has kind DGM_JSON_KIND_ABSENT and no content.
 */
#pragma once

#include <dragoman/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef DGM_BUILD
typedef struct yyjson_val dgm_json; /* the library itself */
#else
typedef struct dgm_json dgm_json;
#endif
typedef struct dgm_document dgm_document; /* dragoman/document.h */

/* ---- reading ----------------------------------------------------------------------------------- */

typedef enum dgm_json_kind {
    DGM_JSON_KIND_ABSENT = 0,
    DGM_JSON_KIND_NULL = 1,
    DGM_JSON_KIND_BOOL = 2,
    DGM_JSON_KIND_NUMBER = 3,
    DGM_JSON_KIND_STRING = 4,
    DGM_JSON_KIND_ARRAY = 5,
    DGM_JSON_KIND_OBJECT = 6
} dgm_json_kind;

DGM_API dgm_json_kind dgm_json_kind_of(const dgm_json *value);
/* The text of a string, without quotes and escapes; absent for every other kind. */
DGM_API dgm_str dgm_json_string(const dgm_json *value);
/* The text of a number as it was written; absent for every other kind. */
DGM_API dgm_str dgm_json_number(const dgm_json *value);
/* These return false, and write nothing, if the value has another kind or does not fit. */
DGM_API bool dgm_json_to_bool(const dgm_json *value, bool *ret);
DGM_API bool dgm_json_to_int64(const dgm_json *value, int64_t *ret); /* no fraction, no exponent */
DGM_API bool dgm_json_to_double(const dgm_json *value, double *ret);

/* How many elements or members; 0 for every kind but array and object. */
DGM_API size_t dgm_json_count(const dgm_json *value);
/* A member of an object, an element of an array; NULL: not found. dgm_json_element() is linear in `index`. */
DGM_API const dgm_json *dgm_json_member(const dgm_json *object, const char *key);
DGM_API const dgm_json *dgm_json_element(const dgm_json *array, size_t index);
/*
 * All elements or members in order: previous == NULL returns the first, NULL is returned after the last.
 * ret_key may be NULL; it is absent for elements of arrays.
 */
DGM_API const dgm_json *dgm_json_iterate(const dgm_json *container, const dgm_json *previous,
                                         dgm_str *ret_key);

/* Same values: members in any order, numbers by their text. */
DGM_API bool dgm_json_is_equal(const dgm_json *a, const dgm_json *b);

/* Compact JSON, for dgm_free(). An absent value is written as null. */
DGM_API char *dgm_json_text(const dgm_json *value);

/*
 * A value of a flat list. An array is followed by its n elements, an object by its n members: a key, which is a string,
 * and the value of the member. {"a": [1, true]} is
 *
 *     {DGM_JSON_KIND_OBJECT, 1, NULL}, {DGM_JSON_KIND_STRING, 1, "a"}, {DGM_JSON_KIND_ARRAY, 2, NULL},
 *     {DGM_JSON_KIND_NUMBER, 1, "1"}, {DGM_JSON_KIND_BOOL, 1, NULL}
 */
typedef struct dgm_value {
    dgm_json_kind kind;
    size_t n; /* bytes of `text`, elements, or members; of a boolean 0 or 1 */
    const char
        *text; /* of a string, in UTF-8, or of a number, as in JSON: not checked, and borrowed */
} dgm_value;

/* ---- making ------------------------------------------------------------------------------------ */

/* Parses JSON text into the memory of a document. */
DGM_API dgm_code dgm_json_parse(dgm_document *memory, const char *text, size_t n,
                                const dgm_json **ret_value, dgm_err *err);

/*
 * Builds a value, from the outside to the inside:
 *
 *     dgm_json_builder *b = dgm_json_builder_new(document);
 *     dgm_json_builder_object(b, NULL);
 *     dgm_json_builder_string(b, "city", DGM_STR("Lisbon"));
 *     dgm_json_builder_array(b, "days");
 *     dgm_json_builder_int(b, NULL, 1);
 *     dgm_json_builder_close(b);
 *     dgm_json_builder_close(b);
 *     rc = dgm_json_builder_end(b, &value, err);
 *
 * `key` is NULL for the root and in arrays. Keys and texts are copied. A wrong call (a key in an array, two
 * roots, a text that is not UTF-8) is reported by dgm_json_builder_end(); the calls behind it do nothing.
 * The builder belongs to the document and can be used once.
 */
typedef struct dgm_json_builder dgm_json_builder;

DGM_API dgm_json_builder *dgm_json_builder_new(dgm_document *memory);
DGM_API void dgm_json_builder_object(dgm_json_builder *b, const char *key); /* opens it */
DGM_API void dgm_json_builder_array(dgm_json_builder *b, const char *key);  /* opens it */
DGM_API void dgm_json_builder_close(dgm_json_builder *b); /* closes the innermost one */
DGM_API void dgm_json_builder_string(dgm_json_builder *b, const char *key, dgm_str text);
DGM_API void dgm_json_builder_int(dgm_json_builder *b, const char *key, int64_t number);
/* Not a number and infinity are errors: JSON cannot express them. */
DGM_API void dgm_json_builder_double(dgm_json_builder *b, const char *key, double number);
DGM_API void dgm_json_builder_number(dgm_json_builder *b, const char *key, dgm_str number);
DGM_API void dgm_json_builder_bool(dgm_json_builder *b, const char *key, bool value);
DGM_API void dgm_json_builder_null(dgm_json_builder *b, const char *key);
/* Copies a value; it may be of another document. */
DGM_API void dgm_json_builder_value(dgm_json_builder *b, const char *key, const dgm_json *value);
DGM_API dgm_code dgm_json_builder_end(dgm_json_builder *b, const dgm_json **ret_value,
                                      dgm_err *err);

#ifdef __cplusplus
}
#endif
