/*
 * json/write.c - values straight to bytes.
 *
 * Text is UTF-8 already (the reader checked it), so only quotes, backslashes and control characters
 * are escaped; everything else, U+2028 included, is written as it is.
 */
#include "json/json.h"

#include <stdio.h>

#define EACH_BYTE(x) (~(uint64_t)0 / 255 * (x))

/* Does any of the eight bytes need an escape? */
static inline bool needs_escape(uint64_t w)
{
    uint64_t quote = w ^ EACH_BYTE('"'), slash = w ^ EACH_BYTE('\\');
    return ((((w - EACH_BYTE(0x20)) & ~w) | ((quote - EACH_BYTE(1)) & ~quote) |
             ((slash - EACH_BYTE(1)) & ~slash)) &
            EACH_BYTE(0x80)) != 0;
}

static void put_escaped(dgm_buf *b, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    char out[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    size_t n = 2;
    switch (c) {
    case '"':
    case '\\':
        out[1] = (char)c;
        break;
    case '\b':
        out[1] = 'b';
        break;
    case '\t':
        out[1] = 't';
        break;
    case '\n':
        out[1] = 'n';
        break;
    case '\f':
        out[1] = 'f';
        break;
    case '\r':
        out[1] = 'r';
        break;
    default:
        n = 6;
        break;
    }
    dgm_buf_add(b, out, n);
}

void dgm_json_put_chars(dgm_buf *b, dgm_str s)
{
    if (!dgm_buf_room(b, s.n + 8))
        return;
    const char *p = s.p, *end = s.p + s.n;
    char *out = b->p + b->n;
    for (;;) {
        while (end - p >= 8) {
            uint64_t w;
            memcpy(&w, p, 8);
            if (needs_escape(w))
                break;
            memcpy(out, &w, 8);
            p += 8;
            out += 8;
        }
        while (p < end) {
            unsigned char c = (unsigned char)*p;
            if (c < 0x20 || c == '"' || c == '\\')
                break;
            *out++ = *p++;
            if (((uintptr_t)p & 7) == 0 && end - p >= 8)
                break; /* back to whole words */
        }
        b->n = (size_t)(out - b->p);
        if (p == end)
            return;
        unsigned char c = (unsigned char)*p;
        if (c < 0x20 || c == '"' || c == '\\') {
            put_escaped(b, c);
            p++;
            if (!dgm_buf_room(b, (size_t)(end - p) + 8))
                return;
            out = b->p + b->n;
        }
    }
}

void dgm_json_put_str(dgm_buf *b, dgm_str s)
{
    dgm_buf_add_char(b, '"');
    if (s.n)
        dgm_json_put_chars(b, s);
    dgm_buf_add_char(b, '"');
}

void dgm_json_put_int(dgm_buf *b, int64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%lld", (long long)n);
    dgm_buf_add(b, digits, (size_t)len);
}

/* Bounded by DGM_MAX_JSON_DEPTH, which every value read has kept. */
static void put(dgm_buf *b, yyjson_val *v, bool spaced)
{
    switch (unsafe_yyjson_get_type(v)) {
    case YYJSON_TYPE_NULL:
        dgm_buf_add_lit(b, "null");
        break;
    case YYJSON_TYPE_BOOL:
        if (unsafe_yyjson_is_true(v))
            dgm_buf_add_lit(b, "true");
        else
            dgm_buf_add_lit(b, "false");
        break;
    case YYJSON_TYPE_RAW:
        dgm_buf_add(b, v->uni.str, unsafe_yyjson_get_len(v));
        break;
    case YYJSON_TYPE_STR:
        dgm_json_put_str(b, dgm_json_str(v));
        break;
    case YYJSON_TYPE_ARR: {
        size_t n = unsafe_yyjson_get_len(v);
        yyjson_val *e = unsafe_yyjson_get_first(v);
        dgm_buf_add_char(b, '[');
        for (size_t i = 0; i < n; i++) {
            if (i)
                dgm_buf_add(b, ", ", spaced ? 2 : 1);
            put(b, e, spaced);
            e = unsafe_yyjson_get_next(e);
        }
        dgm_buf_add_char(b, ']');
        break;
    }
    case YYJSON_TYPE_OBJ: {
        size_t n = unsafe_yyjson_get_len(v);
        yyjson_val *key = unsafe_yyjson_get_first(v);
        dgm_buf_add_char(b, '{');
        for (size_t i = 0; i < n; i++) {
            if (i)
                dgm_buf_add(b, ", ", spaced ? 2 : 1);
            dgm_json_put_str(b, dgm_json_str(key));
            dgm_buf_add(b, ": ", spaced ? 2 : 1);
            put(b, key + 1, spaced);
            key = unsafe_yyjson_get_next(key + 1);
        }
        dgm_buf_add_char(b, '}');
        break;
    }
    default:
        break;
    }
}

void dgm_json_put(dgm_buf *b, const yyjson_val *v)
{
    if (v)
        put(b, (yyjson_val *)(uintptr_t)v, false);
    else
        dgm_buf_add_lit(b, "null");
}

void dgm_json_put_spaced(dgm_buf *b, const yyjson_val *v)
{
    if (v)
        put(b, (yyjson_val *)(uintptr_t)v, true);
    else
        dgm_buf_add_lit(b, "null");
}
