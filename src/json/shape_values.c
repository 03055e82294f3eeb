/* json/shape_values.c - single values: text, numbers, names of enums. */
#include "json/shape.h"

#include <stdio.h>

dgm_code dgm_read_wrong(dgm_reader *r, yyjson_val *v, const dgm_at *at, const char *expected)
{
    return dgm_fail(r->err, DGM_BAD_PARAMS, at, "expected %s, got %s", expected, dgm_json_type(v));
}

dgm_code dgm_read_str(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_str *ret)
{
    if (!yyjson_is_str(v))
        return dgm_read_wrong(r, v, at, "a string");
    *ret = dgm_json_str(v);
    return DGM_OK;
}

dgm_code dgm_read_time(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_str *ret)
{
    if (!yyjson_is_str(v))
        return dgm_read_wrong(r, v, at, "a time like 2026-01-02T03:04:05.678Z");
    if (!dgm_time_normalise(r->arena, dgm_json_str(v), ret))
        return dgm_fail(r->err, DGM_BAD_PARAMS, at,
                        "\"%.*s\" is not a time: write it like 2026-01-02T03:04:05.678Z",
                        (int)(dgm_json_str(v).n < 60 ? dgm_json_str(v).n : 60), dgm_json_str(v).p);
    return DGM_OK;
}

dgm_code dgm_read_base64(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_str *ret)
{
    if (!yyjson_is_str(v))
        return dgm_read_wrong(r, v, at, "base64 text");
    if (!dgm_base64_normalise(r->arena, dgm_json_str(v), ret))
        return dgm_fail(r->err, DGM_BAD_PARAMS, at, "not base64 (RFC 4648)");
    return DGM_OK;
}

dgm_code dgm_read_bool(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_opt_bool *ret)
{
    if (!yyjson_is_bool(v))
        return dgm_read_wrong(r, v, at, "true or false");
    *ret = yyjson_get_bool(v) ? DGM_TRUE : DGM_FALSE;
    return DGM_OK;
}

dgm_code dgm_read_int(dgm_reader *r, yyjson_val *v, const dgm_at *at, int32_t *ret)
{
    int64_t n;
    if (!dgm_json_int(v, &n)) {
        if (yyjson_is_raw(v) || yyjson_is_str(v))
            return dgm_fail(r->err, DGM_BAD_PARAMS, at, "expected a whole number, got %.*s",
                            (int)(dgm_json_str(v).n < 60 ? dgm_json_str(v).n : 60),
                            dgm_json_str(v).p);
        return dgm_read_wrong(r, v, at, "a whole number");
    }
    if (n < INT32_MIN || n > INT32_MAX)
        return dgm_fail(r->err, DGM_BAD_PARAMS, at, "%lld does not fit into 32 bits", (long long)n);
    *ret = (int32_t)n;
    return DGM_OK;
}

static __attribute__((noinline, cold)) dgm_code
no_such_name(dgm_reader *r, const dgm_enum_names *names, dgm_str s, const dgm_at *at)
{
    char all[240];
    size_t n = 0;
    for (int i = 0; i < names->n && n < sizeof all - 40; i++) {
        if (names->names[i])
            n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", n ? ", " : "", names->names[i]);
    }
    return dgm_fail(r->err, DGM_BAD_PARAMS, at, "unknown %s \"%.*s\"; allowed values: %s",
                    names->what, (int)(s.n < 60 ? s.n : 60), s.p, all);
}

dgm_code dgm_read_enum(dgm_reader *r, const dgm_enum_names *names, yyjson_val *v, const dgm_at *at,
                       int *ret)
{
    if (yyjson_is_str(v)) {
        dgm_str s = dgm_json_str(v);
        for (int i = 0; i < names->n; i++) {
            const char *name = names->names[i];
            if (name && strlen(name) == s.n && memcmp(name, s.p, s.n) == 0) {
                *ret = i;
                return DGM_OK;
            }
        }
        for (const dgm_enum_alias *alias = names->aliases; alias && alias->name; alias++) {
            if (dgm_str_eq(dgm_str_from(alias->name), s)) {
                *ret = alias->value;
                return DGM_OK;
            }
        }
        return no_such_name(r, names, s, at);
    }
    int64_t n;
    if (names->numbers && yyjson_is_raw(v) && dgm_json_int(v, &n)) {
        if (n < 0 || n >= names->n)
            return dgm_fail(r->err, DGM_BAD_PARAMS, at, "unknown %s %lld", names->what,
                            (long long)n);
        *ret = (int)n;
        return DGM_OK;
    }
    char expected[80];
    snprintf(expected, sizeof expected, "a %s", names->what);
    return dgm_read_wrong(r, v, at, expected);
}
