/*
 * lib/api_json.c - implements dragoman/json.h: reading JSON values, and a builder that checks its calls.
 */
#include "base/limits.h"
#include "lib/api_int.h"
#include "json/build.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* yyjson's functions want pointers to values that may change; they do not change them. */
static yyjson_val *api_json_plain(const dgm_json *v)
{
    return (yyjson_val *)(uintptr_t)v;
}

/* ---- reading ----------------------------------------------------------------------------------- */

dgm_json_kind dgm_json_kind_of(const dgm_json *value)
{
    switch (yyjson_get_type(api_json_plain(value))) {
    case YYJSON_TYPE_NULL: return DGM_JSON_KIND_NULL;
    case YYJSON_TYPE_BOOL: return DGM_JSON_KIND_BOOL;
    case YYJSON_TYPE_RAW:
    case YYJSON_TYPE_NUM: return DGM_JSON_KIND_NUMBER;
    case YYJSON_TYPE_STR: return DGM_JSON_KIND_STRING;
    case YYJSON_TYPE_ARR: return DGM_JSON_KIND_ARRAY;
    case YYJSON_TYPE_OBJ: return DGM_JSON_KIND_OBJECT;
    default: return DGM_JSON_KIND_ABSENT;
    }
}

dgm_str dgm_json_string(const dgm_json *value)
{
    return yyjson_is_str(api_json_plain(value)) ? dgm_json_str(value) : (dgm_str){0};
}

dgm_str dgm_json_number(const dgm_json *value)
{
    return yyjson_is_raw(api_json_plain(value)) ? dgm_json_str(value) : (dgm_str){0};
}

bool dgm_json_to_bool(const dgm_json *value, bool *ret)
{
    bool is_bool = ret && yyjson_is_bool(api_json_plain(value));
    if (is_bool)
        *ret = yyjson_get_bool(api_json_plain(value));
    return is_bool;
}

bool dgm_json_to_int64(const dgm_json *value, int64_t *ret)
{
    return ret && yyjson_is_raw(api_json_plain(value)) && dgm_json_int(value, ret);
}

bool dgm_json_to_double(const dgm_json *value, double *ret)
{
    char text[64];
    const dgm_str s = dgm_json_number(value);
    if (!ret || !s.n)
        return false;
    /* strtod() depends on the locale and needs a NUL; yyjson's reader does not. */
    char *copy = s.n < sizeof text ? text : dgm_xmalloc(s.n + 1);
    memcpy(copy, s.p, s.n);
    copy[s.n] = 0;
    yyjson_val number;
    yyjson_read_err fault;
    bool good = yyjson_read_number(copy, &number, 0, NULL, &fault) != NULL;
    if (good)
        *ret = yyjson_get_num(&number);
    if (copy != text)
        free(copy);
    return good;
}

size_t dgm_json_count(const dgm_json *value)
{
    return yyjson_is_ctn(api_json_plain(value)) ? unsafe_yyjson_get_len(api_json_plain(value)) : 0;
}

const dgm_json *dgm_json_member(const dgm_json *object, const char *key)
{
    return key ? dgm_json_get(object, dgm_str_from(key)) : NULL;
}

const dgm_json *dgm_json_element(const dgm_json *array, size_t index)
{
    return yyjson_arr_get(api_json_plain(array), index);
}

const dgm_json *dgm_json_iterate(const dgm_json *container, const dgm_json *previous,
                                 dgm_str *ret_key)
{
    if (!yyjson_is_ctn(api_json_plain(container)))
        return NULL;
    const dgm_json *v = previous ? unsafe_yyjson_get_next(api_json_plain(previous)) : container + 1;
    if (v >= unsafe_yyjson_get_next(api_json_plain(container)))
        return NULL;
    bool is_object = yyjson_is_obj(api_json_plain(container));
    if (ret_key)
        *ret_key = is_object ? dgm_json_str(v) : (dgm_str){0};
    return is_object ? v + 1 : v;
}

bool dgm_json_is_equal(const dgm_json *a, const dgm_json *b)
{
    return dgm_json_equal(a, b);
}

char *dgm_json_text(const dgm_json *value)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_json_put(&b, value);
    return dgm_buf_steal(&b, NULL);
}

/* ---- making ------------------------------------------------------------------------------------ */

dgm_code dgm_json_parse(dgm_document *memory, const char *text, size_t n,
                        const dgm_json **ret_value, dgm_err *err)
{
    yyjson_val *v;
    if (!memory || !text || !ret_value)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "missing argument");
    dgm_code rc = dgm_json_read(memory->arena, (dgm_str){text, n}, DGM_MAX_OBJECT_BYTES,
                                "object_bytes", &v, err);
    if (!rc)
        *ret_value = v;
    return rc;
}

struct dgm_json_builder {
    dgm_arena *arena;
    dgm_json_build build;
    size_t depth;
    dgm_err err; /* of the first wrong call */
};

dgm_json_builder *dgm_json_builder_new(dgm_document *memory)
{
    if (!memory)
        return NULL;
    dgm_json_builder *b = dgm_new(memory->arena, dgm_json_builder);
    b->arena = memory->arena;
    b->build = dgm_json_build_start(memory->arena);
    return b;
}

static bool builder_fail(dgm_json_builder *b, const char *what)
{
    dgm_fail(&b->err, DGM_BAD_PARAMS, NULL, "%s", what);
    return false;
}

/* May a value follow here? Copies its key. */
static bool builder_accepts(dgm_json_builder *b, const char **key)
{
    if (!b || b->err.code)
        return false;
    const yyjson_val *parent = b->build.open == SIZE_MAX ? NULL : &b->build.values[b->build.open];
    if (!parent && b->build.n)
        return builder_fail(b, "the value is complete: nothing can follow it");
    if (parent && yyjson_is_obj(api_json_plain(parent)) && !*key)
        return builder_fail(b, "a member of an object needs a key");
    if (*key && !(parent && yyjson_is_obj(api_json_plain(parent))))
        return builder_fail(b, "only a member of an object has a key");
    if (*key && dgm_utf8_check(dgm_str_from(*key)) < strlen(*key))
        return builder_fail(b, "a key is not valid UTF-8");
    if (*key)
        *key = dgm_arena_dup(b->arena, dgm_str_from(*key)).p;
    return true;
}

static bool builder_accepts_container(dgm_json_builder *b, const char **key)
{
    if (!builder_accepts(b, key))
        return false;
    return b->depth++ < DGM_MAX_JSON_DEPTH || builder_fail(b, "the value nests too deep");
}

void dgm_json_builder_object(dgm_json_builder *b, const char *key)
{
    if (builder_accepts_container(b, &key))
        dgm_json_build_object(&b->build, key);
}

void dgm_json_builder_array(dgm_json_builder *b, const char *key)
{
    if (builder_accepts_container(b, &key))
        dgm_json_build_array(&b->build, key);
}

void dgm_json_builder_close(dgm_json_builder *b)
{
    if (!b || b->err.code)
        return;
    if (!b->depth) {
        builder_fail(b, "no object or array is open");
        return;
    }
    b->depth--;
    dgm_json_build_close(&b->build);
}

void dgm_json_builder_string(dgm_json_builder *b, const char *key, dgm_str text)
{
    if (!builder_accepts(b, &key))
        return;
    if (!text.p || dgm_utf8_check(text) < text.n)
        builder_fail(b, text.p ? "a text is not valid UTF-8" : "a text is absent");
    else
        dgm_json_build_str(&b->build, key, text);
}

void dgm_json_builder_int(dgm_json_builder *b, const char *key, int64_t number)
{
    if (builder_accepts(b, &key))
        dgm_json_build_int(&b->build, key, number);
}

void dgm_json_builder_number(dgm_json_builder *b, const char *key, dgm_str number)
{
    yyjson_val *v;
    if (!builder_accepts(b, &key))
        return;
    if (!number.p ||
        dgm_json_read(b->arena, number, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, NULL) ||
        !yyjson_is_raw(v))
        builder_fail(b, "invalid number");
    else
        dgm_json_build_value(&b->build, key, v);
}

void dgm_json_builder_double(dgm_json_builder *b, const char *key, double number)
{
    char text[40];
    if (!isfinite(number)) {
        if (builder_accepts(b, &key))
            builder_fail(b, "invalid number: JSON cannot express infinity and NaN");
        return;
    }
    snprintf(text, sizeof text, "%.17g", number);
    for (char *p = text; *p; p++) {
        if (*p == ',')
            *p = '.'; /* the decimal point of some locales */
    }
    dgm_json_builder_number(b, key, dgm_str_from(text));
}

void dgm_json_builder_bool(dgm_json_builder *b, const char *key, bool value)
{
    if (builder_accepts(b, &key))
        dgm_json_build_bool(&b->build, key, value);
}

void dgm_json_builder_null(dgm_json_builder *b, const char *key)
{
    if (builder_accepts(b, &key))
        dgm_json_build_null(&b->build, key);
}

void dgm_json_builder_value(dgm_json_builder *b, const char *key, const dgm_json *value)
{
    if (!builder_accepts(b, &key))
        return;
    if (!value || dgm_json_deeper_than(value, DGM_MAX_JSON_DEPTH - b->depth))
        builder_fail(b, value ? "the value nests too deep" : "a value is absent");
    else
        dgm_json_build_value(&b->build, key, dgm_json_copy(b->arena, value));
}

dgm_code dgm_json_builder_end(dgm_json_builder *b, const dgm_json **ret_value, dgm_err *err)
{
    if (!b || !ret_value)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "missing argument");
    if (!b->err.code && b->depth)
        builder_fail(b, "an object or array is not closed");
    if (!b->err.code && !b->build.n)
        builder_fail(b, "there is no value");
    if (b->err.code) {
        if (err)
            *err = b->err;
        return b->err.code;
    }
    *ret_value = dgm_json_build_end(&b->build);
    return DGM_OK;
}
