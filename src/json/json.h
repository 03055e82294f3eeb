/*
 * json/json.h - yyjson wearing our errors.
 *
 * Documents are read strictly (RFC 8259, valid UTF-8, no lone surrogates), with numbers kept as the
 * text they came as: 1.0, -0, 2^70 and 1e400 leave as they arrived. Values live in the arena.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <dragoman/model.h>
#include <yyjson.h>

/* yyjson's own adds 1 to the first key of an object that is NULL: nothing happens, but clang's UBSan reports it. */
#undef yyjson_obj_foreach
#define yyjson_obj_foreach(obj, idx, max, key, val)                                                \
    for ((idx) = 0, (max) = yyjson_obj_size(obj),                                                  \
        (key) = (max) ? unsafe_yyjson_get_first(obj) : NULL, (val) = (max) ? (key) + 1 : NULL;     \
         (idx) < (max); (idx)++, (key) = unsafe_yyjson_get_next(val), (val) = (key) + 1)

/* max_bytes and limit_name: which limit of base/limits.h this text has to keep. */
dgm_code dgm_json_read(dgm_arena *a, dgm_str text, size_t max_bytes, const char *limit_name,
                       yyjson_val **ret_root, dgm_err *err);

/* Text that we wrote ourselves: asserts that it is JSON. */
yyjson_val *dgm_json_parse_trusted(dgm_arena *a, dgm_str text);

/* How many values a JSON text has, at most; counting ends soon after `most`. Strings that may be JSON themselves
 * (arguments of calls) count with theirs. For a text that is not JSON it is any number. */
size_t dgm_json_count_values(dgm_str text, size_t most);

/* Where a text that is JSON nests deeper than DGM_MAX_JSON_DEPTH: the offset of that bracket, or
 * text.n. What we write must pass too, or it could not be read back. */
size_t dgm_json_depth_fault(dgm_str text);

/* Does it nest deeper than limit (at most DGM_MAX_JSON_DEPTH)? A value alone has depth 0. What has
 * no more values than that cannot be too deep, which spares nearly every event the walk. */
bool dgm_json_walk_deeper_than(const yyjson_val *value, size_t limit);
static inline bool dgm_json_deeper_than(const yyjson_val *value, size_t limit)
{
    return unsafe_yyjson_is_ctn((void *)(uintptr_t)value) &&
           value->uni.ofs > limit * sizeof *value && dgm_json_walk_deeper_than(value, limit);
}

/* Sets line, column and the pointer of the value that contains byte `pos` of a broken text. */
void dgm_json_locate(dgm_str text, size_t pos, dgm_err *err);

/* The other way round: where the value at a pointer starts, or the nearest one above it that is
 * there. The text is JSON. */
size_t dgm_json_find(dgm_str text, const char *pointer);

/* From where an element of an array starts to where the next one does; behind the last: to its bracket. */
size_t dgm_json_next(dgm_str text, size_t pos);

/* Sets line and column of byte `pos`. */
void dgm_json_place(dgm_str text, size_t pos, dgm_err *err);

static inline dgm_str dgm_json_str(const yyjson_val *v) /* of a string or a number */
{
    return (dgm_str){v->uni.str, unsafe_yyjson_get_len((void *)(uintptr_t)v)};
}

/* "a string", "an object", ...: for error messages. */
const char *dgm_json_type(const yyjson_val *v);

/* A member by name; NULL when v is not an object or has no such member. */
yyjson_val *dgm_json_get(const yyjson_val *v, dgm_str key);

/* A member that is neither absent nor null. */
yyjson_val *dgm_json_non_null(const yyjson_val *v, const char *key);

/* The text of a string member. Absent when v is not an object, has no such member, or the member is not a string. */
dgm_str dgm_json_str_member(const yyjson_val *v, const char *key);

/* A number without fraction or exponent, or text holding one (ProtoJSON allows both). */
bool dgm_json_int(const yyjson_val *v, int64_t *ret);

/* Same values: members in any order, numbers by their text. */
bool dgm_json_equal(const yyjson_val *a, const yyjson_val *b);

/* How many yyjson_val it consists of, itself included. */
size_t dgm_json_run(const yyjson_val *v);

/* A copy that shares nothing with the arena v lives in. */
yyjson_val *dgm_json_copy(dgm_arena *a, const yyjson_val *v);

/* A JSON string with a copy of the text. */
yyjson_val *dgm_json_make_string(dgm_arena *a, dgm_str text);

/* An object of these members, in this order. Keys and texts are borrowed, values copied flat. */
yyjson_val *dgm_json_object(dgm_arena *a, const dgm_member *members, size_t n);

/* Would both be written as the same text? Unlike dgm_json_equal the order of members counts, and the
 * time it takes is linear whatever a peer has put in. */
bool dgm_json_same(const yyjson_val *a, const yyjson_val *b);

/* ---- writing ------------------------------------------------------------------------------------ */

void dgm_json_put_str(dgm_buf *b, dgm_str s);   /* quoted and escaped */
void dgm_json_put_chars(dgm_buf *b, dgm_str s); /* escaped, without the quotes */
void dgm_json_put_int(dgm_buf *b, int64_t n);
void dgm_json_put(dgm_buf *b, const yyjson_val *v);        /* compact; NULL writes null */
void dgm_json_put_spaced(dgm_buf *b, const yyjson_val *v); /* ", " and ": ", as Python writes */

/* NUL-terminated compact text in the arena. */
dgm_str dgm_json_text_in(dgm_arena *a, const yyjson_val *v);
