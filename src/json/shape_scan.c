/*
 * json/shape_scan.c - reads text directly into structs, for the events that streams mostly consist of.
 *
 * Nearly every event of a stream is compact JSON with known members, each once, that are strings, booleans or lists of
 * one element. Such an event is read without yyjson. Anything unusual returns false; the caller then falls back to
 * yyjson and dgm_shape_read(), which have the rules and the errors. This file must not accept anything that they
 * reject or read differently: model/test_form_scan.c compares the two.
 */
#include "json/copy_clean.h"
#include "json/shape_int.h"

/* Levels of objects; no event has as many. */
#define MAX_DEPTH 8

/*
 * The text ends with '}'. So as long as the byte before p is no '}' there is one at p, and it is enough to look
 * for the end behind objects, in texts and where several bytes are compared. Functions get p and return where it
 * goes on; NULL: something is not as usual.
 */
struct scan {
    dgm_reader *r;
    const char *end;
    unsigned high; /* not 0: some byte may be no ASCII */
};

static inline const char *shape_scan_take(const struct scan *in, const char *p, const char *bytes,
                                          size_t n)
{
    return (size_t)(in->end - p) >= n && same_bytes(p, bytes, n) ? p + n : NULL;
}

/* ---- text ------------------------------------------------------------------------------------------- */

static inline char unescaped(char c)
{
    switch (c) {
    case '"':
    case '\\':
    case '/': return c;
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return 0; /* \u is for the long way */
    }
}

/* From begin to p nothing is escaped; there something is. */
static const char *unescape(struct scan *in, const char *begin, const char *p, dgm_str *ret)
{
    size_t room = (size_t)(in->end - begin), n = (size_t)(p - begin);
    char *text = dgm_arena_alloc_raw(in->r->arena, room);
    memcpy(text, begin, n);
    while (*p == '\\') { /* more follows: it is not the last byte */
        if (!(text[n++] = unescaped(p[1])))
            return NULL;
        p += 2;
        size_t clean = dgm_span_clean(p, (size_t)(in->end - p), &in->high);
        memcpy(text + n, p, clean);
        n += clean;
        p += clean;
        if (p == in->end)
            return NULL;
    }
    *ret = (dgm_str){text, n};
    dgm_arena_realloc(in->r->arena, text, room, n);
    return *p == '"' ? p + 1 : NULL;
}

static inline const char *read_text(struct scan *in, const char *p, dgm_str *ret)
{
    if (*p != '"')
        return NULL;
    const char *begin = ++p;
    size_t n = dgm_span_clean(p, (size_t)(in->end - p), &in->high);
    p += n;
    if (p == in->end)
        return NULL;
    *ret = (dgm_str){begin, n};
    if (*p == '"')
        return n ? p + 1 : NULL; /* what is empty has rules of its own */
    return *p == '\\' ? unescape(in, begin, p, ret) : NULL;
}

/* ---- objects ---------------------------------------------------------------------------------------- */

static const char *read_object(struct scan *in, const char *p, const dgm_shape *s, char *object,
                               int depth);

/* Of one element. */
static inline const char *read_list(struct scan *in, const char *p, const dgm_shape *s,
                                    struct any_list *ret, int depth)
{
    if (*p != '[')
        return NULL;
    *ret = (struct any_list){dgm_arena_alloc(in->r->arena, s->size), 1};
    p = read_object(in, p + 1, s, ret->at, depth);
    return p && *p == ']' ? p + 1 : NULL;
}

static inline const char *read_bool(struct scan *in, const char *p, dgm_opt_bool *ret)
{
    *ret = *p == 't' ? DGM_TRUE : DGM_FALSE;
    return *p == 't' ? shape_scan_take(in, p, "true", 4) : shape_scan_take(in, p, "false", 5);
}

static inline const char *read_value(struct scan *in, const char *p, const dgm_field *f, void *to,
                                     int depth)
{
    switch ((int)f->kind) {
    case DGM_FIELD_BOOL: return read_bool(in, p, to);
    case DGM_FIELD_OBJECT:
        *(void **)to = dgm_arena_alloc(in->r->arena, f->of.shape->size);
        return read_object(in, p, f->of.shape, *(void **)to, depth);
    case DGM_FIELD_INLINE: return read_object(in, p, f->of.shape, to, depth);
    case DGM_FIELD_LIST: return read_list(in, p, f->of.shape, to, depth);
    default: return NULL;
    }
}

/* Behind the key that begins here, and its row; mostly that is at *f or soon after. */
static inline const char *take_key(const struct scan *in, const char *p, const dgm_shape *s,
                                   const dgm_field **f)
{
    const dgm_field *row = *f, *end = s->fields + s->n_fields;
    for (size_t left = s->n_fields; left > 0; left--, row++) {
        if (row == end)
            row = s->fields;
        const char *value = shape_scan_take(in, p, row->quoted, row->quoted_n);
        if (value) {
            *f = row;
            return value;
        }
    }
    return NULL;
}

static inline bool claim_tag(const dgm_shape *s, const dgm_field *f, char *object)
{
    int *tag = (int *)(void *)(object + s->tag_at);
    if (*tag)
        return false;
    *tag = f->tag;
    return true;
}

static const char *read_object(struct scan *in, const char *p, const dgm_shape *s, char *object,
                               int depth)
{
    const dgm_field *f = s->fields;
    uint64_t seen = 0;
    if (depth == MAX_DEPTH || s->pick_read || s->read_instead || s->after_read || *p != '{')
        return NULL;
    do {
        p = take_key(in, p + 1, s, &f);
        uint64_t bit = p ? (uint64_t)1 << (f - s->fields) : 0;
        if (!p || f->flags & DGM_READ_ONLY || seen & bit ||
            (f->flags & DGM_ONE_OF && !claim_tag(s, f, object)))
            return NULL;
        void *to = object + f->at;
        p = f->kind == DGM_FIELD_STR ? read_text(in, p, to) : read_value(in, p, f, to, depth + 1);
        if (!p)
            return NULL;
        seen |= bit;
        f++;
    } while (*p == ',');
    if (*p != '}' || required_rows(s) & ~seen ||
        (s->one_required && !*(int *)(void *)(object + s->tag_at)))
        return NULL;
    p++;
    return (p < in->end) == (depth > 0) ? p : NULL;
}

bool dgm_shape_scan(dgm_reader *r, const dgm_shape *s, dgm_str text, void *object)
{
    struct scan in = {.r = r, .end = text.p + text.n};
    return text.n && text.n <= DGM_SCAN_MAX_BYTES && in.end[-1] == '}' &&
           read_object(&in, text.p, s, object, 0) && (!in.high || dgm_utf8_check(text) == text.n);
}
