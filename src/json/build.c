/*
 * json/build.c - see build.h.
 *
 * In yyjson's layout a container is followed by its elements, an object by key and value in turn. A container
 * holds the number of its elements and, in uni.ofs, the distance to its next sibling. While a container is open
 * its uni.ofs holds the index of the container around it instead.
 */
#include "json/build.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define FIRST_VALUES 16

dgm_json_build dgm_json_build_start(dgm_arena *a)
{
    return (dgm_json_build){.arena = a, .open = SIZE_MAX};
}

static void build_set_text(yyjson_val *v, yyjson_type type, dgm_str text)
{
    v->tag = type | (uint64_t)text.n << YYJSON_TAG_BIT;
    v->uni.str = text.p ? text.p : "";
}

/* Returns room for n values behind the key, and counts the element in the open container. */
static yyjson_val *build_element(dgm_json_build *b, dgm_str key, size_t n)
{
    n += key.p != NULL;
    if (b->cap - b->n < n) {
        size_t cap = b->cap ? 2 * b->cap : FIRST_VALUES;
        while (cap - b->n < n)
            cap *= 2;
        b->values = dgm_arena_realloc(b->arena, b->values, b->cap * sizeof *b->values,
                                      cap * sizeof *b->values);
        b->cap = cap;
    }
    yyjson_val *v = b->values + b->n;
    b->n += n;
    if (b->open != SIZE_MAX) {
        yyjson_val *parent = &b->values[b->open];
        assert((unsafe_yyjson_get_type(parent) == YYJSON_TYPE_OBJ) == (key.p != NULL));
        parent->tag += (uint64_t)1 << YYJSON_TAG_BIT;
    }
    if (key.p)
        build_set_text(v++, YYJSON_TYPE_STR, key);
    return v;
}

static void build_open(dgm_json_build *b, const char *key, yyjson_type type)
{
    yyjson_val *v = build_element(b, dgm_str_from(key), 1);
    v->tag = type;
    v->uni.ofs = b->open;
    b->open = (size_t)(v - b->values);
}

void dgm_json_build_object(dgm_json_build *b, const char *key)
{
    build_open(b, key, YYJSON_TYPE_OBJ);
}

void dgm_json_build_array(dgm_json_build *b, const char *key)
{
    build_open(b, key, YYJSON_TYPE_ARR);
}

void dgm_json_build_close(dgm_json_build *b)
{
    assert(b->open != SIZE_MAX);
    yyjson_val *v = &b->values[b->open];
    size_t length = b->n - b->open;
    b->open = v->uni.ofs;
    v->uni.ofs = length * sizeof *v;
}

void dgm_json_build_str(dgm_json_build *b, const char *key, dgm_str text)
{
    build_set_text(build_element(b, dgm_str_from(key), 1), YYJSON_TYPE_STR,
                   dgm_arena_dup(b->arena, text));
}

void dgm_json_build_str_if(dgm_json_build *b, const char *key, dgm_str text)
{
    if (text.p)
        dgm_json_build_str(b, key, text);
}

void dgm_json_build_lit(dgm_json_build *b, const char *key, const char *text)
{
    build_set_text(build_element(b, dgm_str_from(key), 1), YYJSON_TYPE_STR, dgm_str_from(text));
}

void dgm_json_build_int(dgm_json_build *b, const char *key, int64_t n)
{
    char text[24];
    int length = snprintf(text, sizeof text, "%lld", (long long)n);
    build_set_text(build_element(b, dgm_str_from(key), 1), YYJSON_TYPE_RAW,
                   dgm_arena_dup(b->arena, (dgm_str){text, (size_t)length}));
}

void dgm_json_build_bool(dgm_json_build *b, const char *key, bool value)
{
    yyjson_val *v = build_element(b, dgm_str_from(key), 1);
    v->tag = YYJSON_TYPE_BOOL | (value ? YYJSON_SUBTYPE_TRUE : YYJSON_SUBTYPE_FALSE);
    v->uni.u64 = 0;
}

void dgm_json_build_null(dgm_json_build *b, const char *key)
{
    yyjson_val *v = build_element(b, dgm_str_from(key), 1);
    v->tag = YYJSON_TYPE_NULL;
    v->uni.u64 = 0;
}

void dgm_json_build_member(dgm_json_build *b, dgm_str key, const yyjson_val *v)
{
    if (!v)
        return;
    size_t n = dgm_json_run(v);
    memcpy(build_element(b, key, n), v, n * sizeof *v);
}

void dgm_json_build_value(dgm_json_build *b, const char *key, const yyjson_val *v)
{
    dgm_json_build_member(b, dgm_str_from(key), v);
}

void dgm_json_build_members_of(dgm_json_build *b, const yyjson_val *object)
{
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)object, i, n, key, value)
        dgm_json_build_member(b, dgm_json_str(key), value);
}

yyjson_val *dgm_json_build_end(dgm_json_build *b)
{
    assert(b->open == SIZE_MAX && b->n);
    return b->values;
}
