/*
 * lib/values.c - the functions of dragoman/convert.h on flat lists of values.
 *
 * A list becomes yyjson's read-only layout, which has the same order. So the functions read it like a parsed text,
 * without a text. The result is written as text, which is short, and read by values_text.c.
 */
#include "base/limits.h"
#include "lib/functions_int.h"
#include "lib/values_int.h"

#include <stdlib.h>

/* A handle retains so much of its output buffer. */
#define KEEP_BYTES ((size_t)64 << 10)

struct dgm_values {
    dgm_arena *arena;
    dgm_functions_out out;
};

dgm_values *dgm_values_new(void)
{
    dgm_values *v = dgm_xcalloc(1, sizeof *v);
    v->arena = dgm_arena_new();
    dgm_functions_out_init(&v->out);
    return v;
}

void dgm_values_free(dgm_values *v)
{
    if (!v)
        return;
    dgm_buf_done(&v->out.text);
    dgm_arena_free(v->arena);
    free(v);
}

/* ---- from a list to JSON values ------------------------------------------------------------------ */

/* A container whose elements are being read; the lowest one is around the only value. */
struct values_level {
    yyjson_val *head;
    size_t remaining; /* values, keys included */
    bool is_object;
};

struct values_reading {
    struct values_level levels[DGM_MAX_JSON_DEPTH + 1], *in;
    dgm_err *err;
};

static __attribute__((noinline, cold)) dgm_code values_fail(dgm_err *err, const char *what)
{
    return dgm_fail(err, DGM_BAD_PARAMS, NULL, "invalid list of values: %s", what);
}

static __attribute__((noinline, cold)) dgm_code values_too_long(dgm_err *err)
{
    return dgm_fail(err, DGM_TOO_LARGE, NULL,
                    "the values are more than the limit object_bytes of %zu: send less at once",
                    DGM_MAX_OBJECT_BYTES);
}

/* A container: its elements follow. */
static dgm_code values_open(struct values_reading *k, const dgm_value *from, yyjson_val *to)
{
    bool is_object = from->kind == DGM_JSON_KIND_OBJECT;
    if (k->in == &k->levels[DGM_MAX_JSON_DEPTH])
        return dgm_fail(k->err, DGM_TOO_LARGE, NULL,
                        "nested deeper than the limit json_depth of %d: flatten the document",
                        DGM_MAX_JSON_DEPTH);
    if (from->n > DGM_MAX_OBJECT_BYTES / 2) /* at least a value and a comma each */
        return values_too_long(k->err);
    to->tag = (is_object ? YYJSON_TYPE_OBJ : YYJSON_TYPE_ARR) | (uint64_t)from->n << YYJSON_TAG_BIT;
    *++k->in = (struct values_level){to, is_object ? 2 * from->n : from->n, is_object};
    return DGM_OK;
}

/* Any value but a text or a number. */
static __attribute__((noinline)) dgm_code values_read_other(struct values_reading *k,
                                                            const dgm_value *from, yyjson_val *to)
{
    to->uni.u64 = 0;
    switch (from->kind) {
    case DGM_JSON_KIND_ARRAY:
    case DGM_JSON_KIND_OBJECT: return values_open(k, from, to);
    case DGM_JSON_KIND_NULL: to->tag = YYJSON_TYPE_NULL; return DGM_OK;
    case DGM_JSON_KIND_BOOL:
        to->tag = YYJSON_TYPE_BOOL | (from->n ? YYJSON_SUBTYPE_TRUE : YYJSON_SUBTYPE_FALSE);
        return DGM_OK;
    case DGM_JSON_KIND_STRING:
    case DGM_JSON_KIND_NUMBER: return values_fail(k->err, "a string or a number has no text");
    case DGM_JSON_KIND_ABSENT: break;
    }
    return values_fail(k->err, "unknown kind");
}

static dgm_code values_read(dgm_arena *a, const dgm_value *list, size_t n, yyjson_val **ret,
                            dgm_err *err)
{
    struct values_reading k; /* large: not zeroed */
    size_t bytes = n;        /* of the text that the list would be, at least: a separator each */
    dgm_code rc;
    k.in = k.levels;
    k.levels[0] = (struct values_level){NULL, 1, false};
    k.err = err;
    if (n > DGM_MAX_OBJECT_BYTES / 2) /* at least a character and a comma each */
        return values_too_long(err);
    yyjson_val *values = dgm_arena_alloc_raw(a, n * sizeof *values);
    for (size_t i = 0; i < n; i++) {
        const dgm_value *from = &list[i];
        struct values_level *in = k.in;
        if (!in->remaining)
            return values_fail(err, "more than one value");
        bool is_string = from->kind == DGM_JSON_KIND_STRING;
        if (in->is_object && !(in->remaining & 1) && !is_string)
            return values_fail(err, "a key is not a string");
        in->remaining--;
        if ((is_string || from->kind == DGM_JSON_KIND_NUMBER) && from->text) {
            if (from->n > DGM_MAX_OBJECT_BYTES || (bytes += from->n) > DGM_MAX_OBJECT_BYTES)
                return values_too_long(err);
            values[i].tag = (is_string ? YYJSON_TYPE_STR : YYJSON_TYPE_RAW) | (uint64_t)from->n
                                                                                  << YYJSON_TAG_BIT;
            values[i].uni.str = from->text;
        } else if ((rc = values_read_other(&k, from, &values[i]))) {
            return rc;
        }
        for (; !k.in->remaining && k.in > k.levels; k.in--)
            k.in->head->uni.ofs = (size_t)(&values[i + 1] - k.in->head) * sizeof *values;
    }
    if (k.levels[0].remaining || k.in > k.levels)
        return values_fail(err, "it ends in the middle of a value");
    *ret = values;
    return DGM_OK;
}

/* ---- the call ------------------------------------------------------------------------------------------ */

/* flat: for the result; NULL: it is written as text. */
static dgm_code values_run(dgm_values *v, dgm_functions_convert *convert, const dgm_value *values,
                           size_t n, dgm_flat *flat, dgm_err *err)
{
    dgm_functions_in in = {.a = v->arena};
    dgm_code rc;
    dgm_arena_reset(v->arena);
    dgm_functions_out_clear(&v->out);
    dgm_buf_shrink(&v->out.text, KEEP_BYTES);
    if (flat) {
        v->out.flat = flat;
        dgm_flat_add(flat, DGM_JSON_KIND_ARRAY, 0, NULL);
    }
    if ((rc = values_read(v->arena, values, n, &in.root, err)))
        return rc;
    return convert(&in, &v->out, err);
}

/* All values of the result are in the flat list. */
static void values_end_flat(const dgm_functions_out *out, dgm_flat *flat, const dgm_value **ret,
                            size_t *ret_n)
{
    bool one = !out->is_list && out->n_flat == 1, none = !out->is_list && !out->n_flat;
    flat->at[0].n = out->n_flat;
    *ret = one ? flat->at + 1 : flat->at;
    *ret_n = none ? 0 : flat->n - one;
}

static dgm_code values_end_text(dgm_values *v, const dgm_value **ret, size_t *ret_n, dgm_err *err)
{
    dgm_str text;
    dgm_code rc = dgm_functions_out_end(&v->out, &text, err);
    *ret_n = 0;
    if (rc || !text.p)
        return rc;
    char *own = v->out.text.p + (text.p - v->out.text.p);
    if (!dgm_values_parse(v->arena, own, text.n, ret, ret_n))
        return dgm_fail(err, DGM_TOO_LARGE, NULL,
                        "the result nests deeper than the limit json_depth of %d, or a number of "
                        "the input is invalid",
                        DGM_MAX_JSON_DEPTH);
    return DGM_OK;
}

dgm_code dgm_values_convert(dgm_values *v, dgm_function function, const dgm_value *values, size_t n,
                            const dgm_value **ret_values, size_t *ret_n, dgm_err *err)
{
    static dgm_functions_convert *const functions[] = {
        [DGM_FUNCTION_A2A_MESSAGE_TO_AGUI_EVENT] = dgm_functions_a2a_to_simple,
        [DGM_FUNCTION_A2A_MESSAGE_TO_OFFICIAL_EVENT] = dgm_functions_a2a_to_official,
        [DGM_FUNCTION_COMPACT_EVENTS] = dgm_functions_compact,
        [DGM_FUNCTION_AGUI_EVENT_TO_OPENAI_CHAT] = dgm_functions_event_to_chat,
        [DGM_FUNCTION_A2A_MESSAGE_TO_OPENAI] = dgm_functions_message_to_chat,
    };
    dgm_code rc;
    if (!v || !ret_values || !ret_n || (!values && n))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "missing argument");
    if ((unsigned)function >= sizeof functions / sizeof *functions)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "unknown function %d", (int)function);
    dgm_err own; /* large: dgm_fail() sets all of it */
    if (!err)
        err = &own;
    dgm_flat flat = {.arena = v->arena};
    if ((rc = values_run(v, functions[function], values, n, &flat, err)))
        return rc;
    if (!v->out.n) {
        values_end_flat(&v->out, &flat, ret_values, ret_n);
        return DGM_OK;
    }
    /* Some values were written as text, because of a member that flat lists do not have: then all must be. */
    if (v->out.n_flat && (rc = values_run(v, functions[function], values, n, NULL, err)))
        return rc;
    return values_end_text(v, ret_values, ret_n, err);
}
