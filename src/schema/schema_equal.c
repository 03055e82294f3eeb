/* schema/schema_equal.c - equality of JSON values as JSON Schema defines it, and equal items of an array. */
#include "schema/schema_int.h"

#include <stdlib.h>

static bool equal_numbers(dgm_schema_run *run, const yyjson_val *a, const yyjson_val *b)
{
    dgm_str x = dgm_json_str(a), y = dgm_json_str(b);
    if (!dgm_schema_spend(run, (x.n + y.n) / 16))
        return false;
    dgm_schema_number m = dgm_schema_number_read(x), n = dgm_schema_number_read(y);
    return dgm_schema_number_compare(&m, &n) == 0;
}

static bool equal_arrays(dgm_schema_run *run, const yyjson_val *a, const yyjson_val *b)
{
    yyjson_arr_iter other = yyjson_arr_iter_with(dgm_schema_plain(b));
    yyjson_val *item;
    size_t i, n;
    if (yyjson_arr_size(dgm_schema_plain(a)) != yyjson_arr_size(dgm_schema_plain(b)))
        return false;
    yyjson_arr_foreach (dgm_schema_plain(a), i, n, item) {
        if (!dgm_schema_equal(run, item, yyjson_arr_iter_next(&other)))
            return false;
    }
    return true;
}

/* Members in the same order are found at once; others are searched for, and paid for. */
static bool equal_objects(dgm_schema_run *run, const yyjson_val *a, const yyjson_val *b)
{
    yyjson_obj_iter other = yyjson_obj_iter_with(dgm_schema_plain(b));
    yyjson_val *key, *value;
    size_t i, n;
    if (yyjson_obj_size(dgm_schema_plain(a)) != yyjson_obj_size(dgm_schema_plain(b)))
        return false;
    yyjson_obj_foreach (dgm_schema_plain(a), i, n, key, value) {
        size_t before = other.idx;
        yyjson_val *found = yyjson_obj_iter_getn(&other, key->uni.str, unsafe_yyjson_get_len(key));
        if (!dgm_schema_spend(run, other.idx == before + 1 ? 1 : n) || !found ||
            !dgm_schema_equal(run, value, found))
            return false;
    }
    return true;
}

/* The values were read with a limit on their depth, so this recursion has one. */
bool dgm_schema_equal(dgm_schema_run *run, const yyjson_val *a, const yyjson_val *b)
{
    if (!dgm_schema_spend(run, 1) ||
        yyjson_get_type(dgm_schema_plain(a)) != yyjson_get_type(dgm_schema_plain(b)))
        return false;
    switch (yyjson_get_type(dgm_schema_plain(a))) {
    case YYJSON_TYPE_STR: return dgm_str_eq(dgm_json_str(a), dgm_json_str(b));
    case YYJSON_TYPE_RAW: return equal_numbers(run, a, b);
    case YYJSON_TYPE_BOOL:
        return yyjson_get_bool(dgm_schema_plain(a)) == yyjson_get_bool(dgm_schema_plain(b));
    case YYJSON_TYPE_ARR: return equal_arrays(run, a, b);
    case YYJSON_TYPE_OBJ: return equal_objects(run, a, b);
    default: return true;
    }
}

/* ---- equal items ------------------------------------------------------------------------------- */

/* Equal values have equal hashes: numbers by their value, members in any order. */
static uint64_t hash_value(dgm_schema_run *run, const yyjson_val *v, uint64_t seed)
{
    uint64_t h = seed + yyjson_get_type(dgm_schema_plain(v));
    yyjson_val *item, *key;
    size_t i, n;
    if (!dgm_schema_spend(run, 1))
        return 0;
    if (yyjson_is_str(dgm_schema_plain(v)) || yyjson_is_raw(dgm_schema_plain(v))) {
        dgm_str text = dgm_json_str(v);
        dgm_schema_number number = {0};
        if (!dgm_schema_spend(run, text.n / 16))
            return 0;
        if (yyjson_is_str(dgm_schema_plain(v)))
            return dgm_hash(h, text.p, text.n);
        number = dgm_schema_number_read(text);
        return dgm_schema_number_hash(&number, h);
    }
    if (yyjson_is_bool(dgm_schema_plain(v)))
        return h + 1 + yyjson_get_bool(dgm_schema_plain(v));
    if (yyjson_is_arr(dgm_schema_plain(v))) {
        yyjson_arr_foreach (dgm_schema_plain(v), i, n, item)
            h = hash_value(run, item, h);
        return h + n;
    }
    yyjson_obj_foreach (dgm_schema_plain(v), i, n, key, item) {
        uint64_t of_key = dgm_hash(seed, key->uni.str, unsafe_yyjson_get_len(key));
        h += hash_value(run, item, of_key) * 0x9E3779B97F4A7C15u;
    }
    return h;
}

struct hashed {
    uint64_t hash;
    size_t index;
    const yyjson_val *value;
};

static int compare_hashes(const void *x, const void *y)
{
    const struct hashed *a = x, *b = y;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

bool dgm_schema_duplicate(dgm_schema_run *run, const yyjson_val *array, size_t *ret_first,
                          size_t *ret_second)
{
    size_t count = yyjson_arr_size(dgm_schema_plain(array)), i, n;
    yyjson_val *item;
    if (count < 2 || !dgm_schema_spend(run, 8 * count))
        return false;
    struct hashed *items = dgm_new_n(run->arena, struct hashed, count);
    yyjson_arr_foreach (dgm_schema_plain(array), i, n, item)
        items[i] = (struct hashed){hash_value(run, item, dgm_hash_seed()), i, item};
    if (run->stop)
        return false;
    qsort(items, count, sizeof *items, compare_hashes);
    for (i = 1; i < count; i++) {
        if (items[i].hash == items[i - 1].hash &&
            dgm_schema_equal(run, items[i - 1].value, items[i].value)) {
            *ret_first = items[i - 1].index;
            *ret_second = items[i].index;
            return true;
        }
    }
    return false;
}
