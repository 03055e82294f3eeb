/*
 * lib/values_text.c - from the text of a result to a flat list of values.
 *
 * The text is one that we wrote: compact, with no other escapes than JSON requires. So it is read in one pass, and in
 * place: texts in the list are borrowed from it, and escapes are replaced in it. Anything else is refused.
 */
#include "base/limits.h"
#include "base/list.h"
#include "lib/values_int.h"
#include "json/copy_clean.h"

#define FIRST_VALUES 32

struct values_list {
    dgm_arena *arena;
    dgm_value *at;
    size_t n, cap;
    char *p, *end; /* of the text that was not read so far */
    size_t open[DGM_MAX_JSON_DEPTH];
    size_t depth;
};

static dgm_value *values_add(struct values_list *l, dgm_json_kind kind, size_t n, const char *text)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : FIRST_VALUES;
        l->at = dgm_arena_realloc(l->arena, l->at, l->cap * sizeof *l->at, cap * sizeof *l->at);
        l->cap = cap;
    }
    dgm_value *v = &l->at[l->n++];
    *v = (dgm_value){kind, n, text};
    return v;
}

static bool values_accept(struct values_list *l, char c)
{
    if (l->p == l->end || *l->p != c)
        return false;
    l->p++;
    return true;
}

/* ---- texts -------------------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The character that the escape at p stands for; sets p behind it. -1: not an escape of ours. */
static int values_unescape(char **p, const char *end)
{
    static const char letters[] = "\"\\bfnrt", characters[] = "\"\\\b\f\n\r\t";
    const char *e = *p;
    if (end - e < 2)
        return -1;
    const char *letter = e[1] ? strchr(letters, e[1]) : NULL;
    if (letter) {
        *p += 2;
        return (unsigned char)characters[letter - letters];
    }
    if (end - e < 6 || e[1] != 'u' || e[2] != '0' || e[3] != '0' || hex_digit(e[4]) < 0 ||
        hex_digit(e[5]) < 0)
        return -1;
    *p += 6;
    return hex_digit(e[4]) << 4 | hex_digit(e[5]);
}

/* Behind the opening quote. */
static bool values_string(struct values_list *l)
{
    char *text = l->p, *to = l->p;
    unsigned high = 0;
    for (;;) {
        size_t clean = dgm_span_clean(l->p, (size_t)(l->end - l->p), &high);
        if (to != l->p)
            memmove(to, l->p, clean);
        to += clean;
        l->p += clean;
        if (l->p == l->end)
            return false;
        if (*l->p == '"')
            break;
        int c = *l->p == '\\' ? values_unescape(&l->p, l->end) : -1;
        if (c < 0)
            return false;
        *to++ = (char)c;
    }
    l->p++;
    values_add(l, DGM_JSON_KIND_STRING, (size_t)(to - text), text);
    return true;
}

static bool values_key(struct values_list *l)
{
    return values_accept(l, '"') && values_string(l) && values_accept(l, ':');
}

/* ---- values --------------------------------------------------------------------------------------------- */

static bool values_literal(struct values_list *l, dgm_str name, dgm_json_kind kind, size_t n)
{
    if ((size_t)(l->end - l->p) < name.n || memcmp(l->p, name.p, name.n) != 0)
        return false;
    l->p += name.n;
    values_add(l, kind, n, NULL);
    return true;
}

static bool values_number(struct values_list *l)
{
    const char *start = l->p;
    while (l->p < l->end && ((*l->p >= '0' && *l->p <= '9') || (*l->p && strchr("+-.eE", *l->p))))
        l->p++;
    values_add(l, DGM_JSON_KIND_NUMBER, (size_t)(l->p - start), start);
    return l->p > start;
}

/* Behind the bracket. An empty container is complete, else its first value follows. */
static bool values_container(struct values_list *l, bool is_object, bool *ret_is_open)
{
    *ret_is_open = !values_accept(l, is_object ? '}' : ']');
    values_add(l, is_object ? DGM_JSON_KIND_OBJECT : DGM_JSON_KIND_ARRAY, *ret_is_open, NULL);
    if (!*ret_is_open)
        return true;
    if (l->depth == DGM_MAX_JSON_DEPTH)
        return false;
    l->open[l->depth++] = l->n - 1;
    return !is_object || values_key(l);
}

static bool values_next(struct values_list *l, bool *ret_is_open)
{
    *ret_is_open = false;
    if (l->p == l->end)
        return false;
    switch (*l->p) {
    case '"': l->p++; return values_string(l);
    case '{':
    case '[': return values_container(l, *l->p++ == '{', ret_is_open);
    case 'n': return values_literal(l, DGM_STR("null"), DGM_JSON_KIND_NULL, 0);
    case 't': return values_literal(l, DGM_STR("true"), DGM_JSON_KIND_BOOL, 1);
    case 'f': return values_literal(l, DGM_STR("false"), DGM_JSON_KIND_BOOL, 0);
    default: return values_number(l);
    }
}

/* Behind a value: closes the containers that end here, and counts the next element. */
static bool values_separator(struct values_list *l)
{
    while (l->depth) {
        dgm_value *in = &l->at[l->open[l->depth - 1]];
        bool is_object = in->kind == DGM_JSON_KIND_OBJECT;
        if (values_accept(l, ',')) {
            in->n++;
            return !is_object || values_key(l);
        }
        if (!values_accept(l, is_object ? '}' : ']'))
            return false;
        l->depth--;
    }
    return true;
}

bool dgm_values_parse(dgm_arena *a, char *text, size_t n, const dgm_value **ret_values,
                      size_t *ret_n)
{
    struct values_list l; /* large: not zeroed */
    bool is_open;
    l.arena = a;
    l.at = NULL;
    l.n = l.cap = l.depth = 0;
    l.p = text;
    l.end = text + n;
    do {
        if (!values_next(&l, &is_open) || (!is_open && !values_separator(&l)))
            return false;
    } while (l.depth);
    *ret_values = l.at;
    *ret_n = l.n;
    return l.p == l.end;
}
