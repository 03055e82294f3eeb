/*
 * json/write.c - values straight to bytes.
 *
 * Text is UTF-8 already (the reader checked it), so only quotes, backslashes and control characters
 * are escaped; everything else, U+2028 included, is written as it is.
 */
#include "json/copy_clean.h"
#include "json/json.h"

#define ESCAPE_ROOM 6

static inline char *put_escaped(char *out, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    static const char letters[0x20] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    char letter = c < 0x20 ? letters[c] : (char)c;
    out[0] = '\\';
    out[1] = letter;
    if (letter)
        return out + 2;
    out[1] = 'u';
    out[2] = out[3] = '0';
    out[4] = hex[c >> 4];
    out[5] = hex[c & 15];
    return out + 6;
}

void dgm_json_put_chars(dgm_buf *b, dgm_str s)
{
    while (s.n && dgm_buf_room(b, s.n + DGM_COPY_SLACK + ESCAPE_ROOM)) {
        char *out = b->p + b->n;
        size_t clean = dgm_copy_clean(out, s.p, s.n);
        out += clean;
        if (clean < s.n)
            out = put_escaped(out, (unsigned char)s.p[clean++]);
        b->n = (size_t)(out - b->p);
        s = (dgm_str){s.p + clean, s.n - clean};
    }
}

void dgm_json_put_str(dgm_buf *b, dgm_str s)
{
    if (!dgm_buf_room(b, s.n + 2 + DGM_COPY_SLACK))
        return;
    char *out = b->p + b->n;
    *out++ = '"';
    size_t clean = s.n ? dgm_copy_clean(out, s.p, s.n) : 0;
    out += clean;
    if (clean == s.n) {
        *out++ = '"';
        b->n = (size_t)(out - b->p);
        return;
    }
    b->n = (size_t)(out - b->p);
    dgm_json_put_chars(b, (dgm_str){s.p + clean, s.n - clean});
    dgm_buf_add_char(b, '"');
}

void dgm_json_put_int(dgm_buf *b, int64_t n)
{
    char digits[24], *p = digits + sizeof digits; /* ids and times of every record: no printf */
    uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    if (left < 10 && n >= 0) { /* indexes, mostly */
        dgm_buf_add_char(b, (char)('0' + left));
        return;
    }
    do
        *--p = (char)('0' + left % 10);
    while (left /= 10);
    if (n < 0)
        *--p = '-';
    dgm_buf_add(b, p, (size_t)(digits + sizeof digits - p));
}

/* Bounded by DGM_MAX_JSON_DEPTH, which every value read has kept. */
static void put(dgm_buf *b, yyjson_val *v, bool spaced)
{
    switch (unsafe_yyjson_get_type(v)) {
    case YYJSON_TYPE_NULL: dgm_buf_add_lit(b, "null"); break;
    case YYJSON_TYPE_BOOL:
        if (unsafe_yyjson_is_true(v))
            dgm_buf_add_lit(b, "true");
        else
            dgm_buf_add_lit(b, "false");
        break;
    case YYJSON_TYPE_RAW: dgm_buf_add(b, v->uni.str, unsafe_yyjson_get_len(v)); break;
    case YYJSON_TYPE_STR: dgm_json_put_str(b, dgm_json_str(v)); break;
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
    default: break;
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
