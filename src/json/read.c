/* json/read.c - parsing with limits, and errors that say where. */
#include "base/limits.h"
#include "json/json.h"

#include <assert.h>
#include <stdio.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

struct reading {
    dgm_arena *arena;
    size_t block; /* of the last allocation: that of the values */
};

static void *alc_malloc(void *ctx, size_t n)
{
    struct reading *r = ctx;
    r->block = n;
    return dgm_arena_alloc_raw(r->arena, n);
}

static void *alc_realloc(void *ctx, void *p, size_t old_n, size_t n)
{
    struct reading *r = ctx;
    r->block = n;
    return dgm_arena_realloc(r->arena, p, old_n, n);
}

static void alc_free(void *ctx, void *p)
{
    (void)ctx;
    (void)p;
}

#define LARGE_BLOCK ((size_t)64 << 10)

/* ---- where in a broken text ------------------------------------------------------------------ */

struct place {
    bool in_array;
    size_t index;
    dgm_str key;
};

/*
 * Walks the text up to pos with no more grammar than strings and brackets have. What it is asked
 * about is broken anyway: it must be safe, and right whenever the text before pos is JSON.
 */
static size_t walk(dgm_str text, size_t pos, struct place *places, size_t max)
{
    size_t depth = 0;
    bool value_next = false; /* behind a colon */
    for (size_t i = 0; i < pos; i++) {
        char c = text.p[i];
        if (c == '"') {
            size_t start = ++i;
            while (i < pos && text.p[i] != '"')
                i += text.p[i] == '\\' ? 2 : 1;
            if (i >= pos)
                break; /* the fault is inside this string */
            if (depth && depth <= max && !places[depth - 1].in_array && !value_next)
                places[depth - 1].key = (dgm_str){text.p + start, i - start};
        } else if (c == '{' || c == '[') {
            if (depth < max)
                places[depth] = (struct place){.in_array = c == '['};
            depth++;
            value_next = false;
        } else if (c == '}' || c == ']') {
            depth -= depth > 0;
            value_next = false;
        } else if (c == ':') {
            value_next = true;
        } else if (c == ',') {
            value_next = false;
            if (depth && depth <= max) {
                places[depth - 1].index++;
                places[depth - 1].key = (dgm_str){0};
            }
        }
    }
    return depth < max ? depth : max;
}

static int hex4(const char *p)
{
    int c = 0;
    for (int i = 0; i < 4; i++) {
        int low = p[i] | 32;
        if (p[i] >= '0' && p[i] <= '9')
            c = c * 16 + (p[i] - '0');
        else if (low >= 'a' && low <= 'f')
            c = c * 16 + (low - 'a' + 10);
        else
            return -1;
    }
    return c;
}

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)((n == 2 ? 0xC0 : n == 3 ? 0xE0 : 0xF0) | c);
    return n;
}

/* A key as it reads without its escapes; of a long one the beginning. */
static dgm_str unescape(dgm_str key, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < key.n && n + 4 <= size; i++) {
        if (key.p[i] != '\\' || i + 1 == key.n) {
            out[n++] = key.p[i];
            continue;
        }
        char c = key.p[++i];
        const char *plain = "b\bf\fn\nr\rt\t", *found = strchr(plain, c);
        int unit = c == 'u' && key.n - i > 4 ? hex4(key.p + i + 1) : -1;
        if (unit < 0) {
            out[n++] = c && found && (found - plain) % 2 == 0 ? found[1] : c;
            continue;
        }
        i += 4;
        uint32_t point = (uint32_t)unit;
        if ((unit & 0xFC00) == 0xD800 && key.n - i > 6 && key.p[i + 1] == '\\') {
            int low = hex4(key.p + i + 3);
            if ((low & 0xFC00) == 0xDC00) {
                point = 0x10000 + ((uint32_t)(unit & 0x3FF) << 10) + (uint32_t)(low & 0x3FF);
                i += 6;
            }
        }
        n += put_utf8(out + n, point);
    }
    return (dgm_str){out, n};
}

void dgm_json_place(dgm_str text, size_t pos, dgm_err *err)
{
    err->line = 1;
    err->column = 1;
    for (size_t i = 0; i < pos; i++) {
        err->column++;
        if (text.p[i] == '\n') {
            err->line++;
            err->column = 1;
        }
    }
}

void dgm_json_locate(dgm_str text, size_t pos, dgm_err *err)
{
    struct place places[DGM_MAX_JSON_DEPTH];
    dgm_at frames[DGM_MAX_JSON_DEPTH];
    char names[8][128]; /* keys with escapes; a ninth in one pointer keeps its escapes */
    size_t n_names = 0;
    if (pos > text.n)
        pos = text.n;
    dgm_json_place(text, pos, err);
    size_t depth = walk(text, pos, places, DGM_MAX_JSON_DEPTH), n = 0;
    for (size_t i = 0; i < depth; i++) {
        if (!places[i].in_array && !places[i].key.p)
            break; /* between two members */
        frames[n] = (dgm_at){.up = n ? &frames[n - 1] : NULL};
        if (places[i].in_array)
            frames[n].i = places[i].index;
        else if (n_names < 8 && memchr(places[i].key.p, '\\', places[i].key.n))
            frames[n].key = unescape(places[i].key, names[n_names++], sizeof *names);
        else
            frames[n].key = places[i].key;
        n++;
    }
    dgm_at_text(n ? &frames[n - 1] : NULL, err->at, sizeof err->at);
}

static dgm_code fail_at(dgm_err *err, dgm_code code, dgm_str text, size_t pos, const char *msg)
{
    dgm_fail(err, code, NULL, "%s", msg);
    if (err)
        dgm_json_locate(text, pos, err);
    return code;
}

/* ---- depth ------------------------------------------------------------------------------------ */

/*
 * Values lie one after another; the end of a container is known from its head. So one pass with a
 * stack of ends finds the first value that is too deep. A container of fewer values than there are levels
 * left is passed over whole: in a long list of small things that is nearly all of it.
 */
bool dgm_json_walk_deeper_than(const yyjson_val *value, size_t limit)
{
    yyjson_val *ends[DGM_MAX_JSON_DEPTH], *v = (yyjson_val *)(uintptr_t)value;
    yyjson_val *last = unsafe_yyjson_get_next(v);
    size_t depth = 0;
    assert(limit <= DGM_MAX_JSON_DEPTH);
    for (; v < last; v++) {
        while (depth && v >= ends[depth - 1])
            depth--;
        if (unsafe_yyjson_is_ctn(v)) {
            yyjson_val *next = unsafe_yyjson_get_next(v);
            if (depth == limit)
                return true;
            if ((size_t)(next - v) <= limit - depth)
                v = next - 1;
            else
                ends[depth++] = next;
        }
    }
    return false;
}

/* Opening ones, in strings too. Every record is counted: 16 bytes at a time. */
static size_t count_brackets(dgm_str text)
{
    size_t n = 0, i = 0;
#ifdef __SSE2__
    const __m128i bit = _mm_set1_epi8(0x20), brace = _mm_set1_epi8('{');
    while (i + 16 <= text.n) {
        size_t end = text.n - i < 255 * 16 ? text.n - 15 : i + 255 * 16; /* a byte per counter */
        __m128i counts = _mm_setzero_si128();
        for (; i < end; i += 16) {
            __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(text.p + i));
            counts = _mm_sub_epi8(counts, _mm_cmpeq_epi8(_mm_or_si128(bytes, bit), brace));
        }
        __m128i sums = _mm_sad_epu8(counts, _mm_setzero_si128());
        n += (size_t)_mm_cvtsi128_si32(sums) + (size_t)_mm_extract_epi16(sums, 4);
    }
#endif
    for (; i < text.n; i++)
        n += (text.p[i] | 0x20) == '{'; /* '[' is '{' without that bit */
    return n;
}

size_t dgm_json_depth_fault(dgm_str text)
{
    size_t depth = 0;
    if (count_brackets(text) <= DGM_MAX_JSON_DEPTH)
        return text.n;
    bool in_string = false;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > DGM_MAX_JSON_DEPTH)
                return i;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return text.n;
}

/* ---- size ------------------------------------------------------------------------------------- */

static bool is_separator(char c)
{
    return c == ',' || c == ':' || c == '[' || c == '{';
}

/* The closing quote of the string that starts at i, or the end of the text. */
static size_t string_end(dgm_str text, size_t i)
{
    const char *quote;
    while (i < text.n && (quote = memchr(text.p + i, '"', text.n - i))) {
        size_t at = (size_t)(quote - text.p), slashes = 0;
        while (slashes < at - i && text.p[at - 1 - slashes] == '\\')
            slashes++;
        if (slashes % 2 == 0)
            return at;
        i = at + 1;
    }
    return text.n;
}

/* Every value but the first one is behind a separator. */
size_t dgm_json_count_values(dgm_str text, size_t most)
{
    size_t n = 1;
    for (size_t i = 0; i < text.n && n <= most; i++) {
        if (text.p[i] != '"') {
            n += is_separator(text.p[i]);
            continue;
        }
        size_t end = string_end(text, i + 1);
        bool is_json = i + 1 < end && (text.p[i + 1] == '[' || text.p[i + 1] == '{');
        for (size_t k = i + 1; is_json && k < end && n <= most; k++)
            n += is_separator(text.p[k]);
        i = end;
    }
    return n;
}

/* ---- reading ---------------------------------------------------------------------------------- */

static __attribute__((noinline, cold)) dgm_code not_json(dgm_str text, yyjson_read_err fault,
                                                         dgm_err *err)
{
    char msg[160];
    /* Behind a point or an exponent yyjson looks one byte too far for the missing digit. */
    if (fault.code == YYJSON_READ_ERROR_INVALID_NUMBER && fault.pos >= 2 &&
        strchr(".eE+-", text.p[fault.pos - 2]))
        fault.pos--;
    snprintf(msg, sizeof msg, "not JSON: %s", fault.msg ? fault.msg : "unknown fault");
    return fail_at(err, DGM_PARSE, text, fault.pos, msg);
}

static __attribute__((noinline, cold)) dgm_code too_deep(dgm_str text, dgm_err *err)
{
    char msg[160];
    snprintf(msg, sizeof msg, "nested deeper than the limit json_depth of %d: flatten the document",
             DGM_MAX_JSON_DEPTH);
    return fail_at(err, DGM_TOO_LARGE, text, dgm_json_depth_fault(text), msg);
}

dgm_code dgm_json_read(dgm_arena *a, dgm_str text, size_t max_bytes, const char *limit_name,
                       yyjson_val **ret_root, dgm_err *err)
{
    if (text.n > max_bytes)
        return dgm_fail(err, DGM_TOO_LARGE, NULL,
                        "%zu bytes of JSON, more than the limit %s of %zu: send less at once",
                        text.n, limit_name, max_bytes);
    if (!text.n)
        return dgm_fail(err, DGM_PARSE, NULL, "expected JSON, got nothing");
    struct reading reading = {.arena = a};
    yyjson_alc alc = {alc_malloc, alc_realloc, alc_free, &reading};
    yyjson_read_err fault = {0};
    yyjson_doc *doc = yyjson_read_opts((char *)(uintptr_t)text.p, text.n, YYJSON_READ_NUMBER_AS_RAW,
                                       &alc, &fault);
    if (!doc)
        return not_json(text, fault, err);
    /* It is made for a value in six bytes; a document of long texts leaves nearly all of it untouched. */
    size_t touched = sizeof *doc + (doc->val_read + 1) * sizeof(yyjson_val);
    if (reading.block > LARGE_BLOCK && reading.block > touched)
        dgm_arena_untouched(a, reading.block - touched);
    if (dgm_json_deeper_than(doc->root, DGM_MAX_JSON_DEPTH))
        return too_deep(text, err);
    *ret_root = doc->root;
    return DGM_OK;
}

yyjson_val *dgm_json_parse_trusted(dgm_arena *a, dgm_str text)
{
    yyjson_val *root = NULL;
    dgm_code rc = dgm_json_read(a, text, SIZE_MAX, "none", &root, NULL);
    assert(rc == DGM_OK);
    (void)rc;
    return root;
}
