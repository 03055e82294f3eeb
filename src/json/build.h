/*
 * json/build.h - builds JSON values without printing and parsing text.
 *
 * Values are written in yyjson's read-only layout, so the result is like any parsed value. It is in the arena.
 *
 *   dgm_json_build b = dgm_json_build_start(a);
 *   dgm_json_build_object(&b, NULL);
 *   dgm_json_build_str(&b, "id", id);
 *   dgm_json_build_array(&b, "tags");
 *   dgm_json_build_lit(&b, NULL, "new");
 *   dgm_json_build_close(&b);
 *   dgm_json_build_close(&b);
 *   yyjson_val *v = dgm_json_build_end(&b);
 *
 * `key` is NULL for the root and in arrays. Keys must outlive the value (literals do); texts are copied.
 */
#pragma once

#include "json/json.h"

typedef struct dgm_json_build {
    dgm_arena *arena;
    yyjson_val *values;
    size_t n, cap;
    size_t open; /* index of the innermost open container; SIZE_MAX: not one is open */
} dgm_json_build;

dgm_json_build dgm_json_build_start(dgm_arena *a);

void dgm_json_build_object(dgm_json_build *b, const char *key); /* opens it */
void dgm_json_build_array(dgm_json_build *b, const char *key);  /* opens it */
void dgm_json_build_close(dgm_json_build *b);                   /* closes the innermost one */

void dgm_json_build_str(dgm_json_build *b, const char *key, dgm_str text);
void dgm_json_build_str_if(dgm_json_build *b, const char *key,
                           dgm_str text); /* nothing if the text is absent */
void dgm_json_build_lit(dgm_json_build *b, const char *key, const char *text); /* not copied */
void dgm_json_build_int(dgm_json_build *b, const char *key, int64_t n);
void dgm_json_build_bool(dgm_json_build *b, const char *key, bool value);
void dgm_json_build_null(dgm_json_build *b, const char *key);

/* A value that exists, copied flat: its texts are shared and must outlive the result. NULL adds nothing. */
void dgm_json_build_value(dgm_json_build *b, const char *key, const yyjson_val *v);
/* The same under a key that is not a C string. The key is not copied. */
void dgm_json_build_member(dgm_json_build *b, dgm_str key, const yyjson_val *v);
/* All members of an object, into the object that is open. */
void dgm_json_build_members_of(dgm_json_build *b, const yyjson_val *object);

/* Every container must be closed. */
yyjson_val *dgm_json_build_end(dgm_json_build *b);
