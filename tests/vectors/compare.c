/* vectors/compare.c - comparing by value. */
#include "vectors/compare.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

yyjson_doc *compare_read(const char *text, size_t n, const char **ret_fault)
{
    yyjson_read_err fault = {0};
    yyjson_doc *doc =
        yyjson_read_opts((char *)(uintptr_t)text, n, YYJSON_READ_NUMBER_AS_RAW, NULL, &fault);
    if (!doc && ret_fault)
        *ret_fault = fault.msg ? fault.msg : "empty";
    return doc;
}

void compare_show(yyjson_val *v, char *out, size_t size)
{
    if (!v) {
        snprintf(out, size, "(nothing)");
        return;
    }
    char *text = yyjson_val_write(v, YYJSON_WRITE_NOFLAG, NULL);
    snprintf(out, size, "%.*s%s", (int)(size - 5), text ? text : "(unprintable)",
             text && strlen(text) > size - 5 ? "..." : "");
    free(text);
}

/* ---- pointers --------------------------------------------------------------------------------- */

typedef struct step {
    const struct step *up;
    const char *key; /* NULL: an index */
    size_t n;        /* the key's length, or the index */
} step;

static size_t write_pointer(const compare *c, const step *s, char *out, size_t size)
{
    size_t n = 0;
    if (!s)
        return 0;
    n = write_pointer(c, s->up, out, size);
    if (n + 2 >= size)
        return n;
    out[n++] = '/';
    if (!s->key) {
        n += (size_t)(c->star_index ? snprintf(out + n, size - n, "*")
                                    : snprintf(out + n, size - n, "%zu", s->n));
        return n < size ? n : size - 1;
    }
    for (size_t i = 0; i < s->n && n + 3 < size; i++) {
        if (s->key[i] == '~' || s->key[i] == '/') {
            out[n++] = '~';
            out[n++] = s->key[i] == '~' ? '0' : '1';
        } else {
            out[n++] = s->key[i];
        }
    }
    return n;
}

static void differ(compare *c, const step *at, yyjson_val *got, yyjson_val *want)
{
    char pointer[1024];
    pointer[write_pointer(c, at, pointer, sizeof pointer - 1)] = 0;
    c->n_differences++;
    if (c->on_difference)
        c->on_difference(c->ctx, pointer, got, want);
}

/* ---- holes ------------------------------------------------------------------------------------ */

static bool is_uuid(const char *s, size_t n)
{
    if (n != 36)
        return false;
    for (size_t i = 0; i < n; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? s[i] != '-' : !isxdigit((unsigned char)s[i]))
            return false;
    }
    return true;
}

static bool fits_hole(compare *c, const char *hole, const char *got)
{
    const char *name = hole[5] == ':' ? hole + 5 : NULL;
    for (size_t i = 0; i < c->n_names; i++) {
        bool same_name = name && strcmp(c->names[i], name) == 0;
        bool same_id = strcmp(c->ids[i], got) == 0;
        if (same_name || same_id)
            return same_name && same_id;
    }
    if (c->n_names < sizeof c->ids / sizeof *c->ids) {
        snprintf(c->names[c->n_names], sizeof *c->names, "%s", name ? name : "");
        snprintf(c->ids[c->n_names++], sizeof *c->ids, "%s", got);
    }
    return true;
}

static bool same_text(compare *c, yyjson_val *got, yyjson_val *want)
{
    const char *g = yyjson_get_str(got), *w = yyjson_get_str(want);
    size_t gn = yyjson_get_len(got), wn = yyjson_get_len(want);
    const char *hole = c->holes ? strstr(w, "<uuid") : NULL, *end = hole ? strchr(hole, '>') : NULL;
    if (!end)
        return gn == wn && memcmp(g, w, gn) == 0;
    /* it may be part of a longer string: resp_<uuid> */
    size_t before = (size_t)(hole - w), behind = wn - (size_t)(end + 1 - w);
    char name[64], id[37];
    if (gn != before + 36 + behind || memcmp(g, w, before) != 0 ||
        memcmp(g + before + 36, end + 1, behind) != 0 || !is_uuid(g + before, 36))
        return false;
    snprintf(name, sizeof name, "%.*s", (int)(end + 1 - hole), hole);
    snprintf(id, sizeof id, "%.36s", g + before);
    return fits_hole(c, name, id);
}

/* ---- values ------------------------------------------------------------------------------------ */

static void walk(compare *c, const step *at, yyjson_val *got, yyjson_val *want);

/* The value under the turn-th occurrence of key. */
static yyjson_val *member(yyjson_val *obj, yyjson_val *key, size_t turn)
{
    yyjson_obj_iter it = yyjson_obj_iter_with(obj);
    yyjson_val *k;
    while ((k = yyjson_obj_iter_next(&it))) {
        if (yyjson_get_len(k) == yyjson_get_len(key) &&
            memcmp(yyjson_get_str(k), yyjson_get_str(key), yyjson_get_len(k)) == 0 && turn-- == 0)
            return yyjson_obj_iter_get_val(k);
    }
    return NULL;
}

static size_t turn_of(yyjson_val *obj, yyjson_val *key)
{
    size_t turn = 0;
    yyjson_obj_iter it = yyjson_obj_iter_with(obj);
    yyjson_val *k;
    while ((k = yyjson_obj_iter_next(&it)) && k != key)
        turn += yyjson_get_len(k) == yyjson_get_len(key) &&
                memcmp(yyjson_get_str(k), yyjson_get_str(key), yyjson_get_len(k)) == 0;
    return turn;
}

static void walk_object(compare *c, const step *at, yyjson_val *got, yyjson_val *want)
{
    yyjson_obj_iter it = yyjson_obj_iter_with(want);
    yyjson_val *key;
    while ((key = yyjson_obj_iter_next(&it))) {
        step s = {at, yyjson_get_str(key), yyjson_get_len(key)};
        yyjson_val *w = yyjson_obj_iter_get_val(key), *g = member(got, key, turn_of(want, key));
        if (g)
            walk(c, &s, g, w);
        else
            differ(c, &s, NULL, w);
    }
    it = yyjson_obj_iter_with(got);
    while ((key = yyjson_obj_iter_next(&it))) {
        step s = {at, yyjson_get_str(key), yyjson_get_len(key)};
        if (!member(want, key, turn_of(got, key)))
            differ(c, &s, yyjson_obj_iter_get_val(key), NULL);
    }
}

static void walk_array(compare *c, const step *at, yyjson_val *got, yyjson_val *want)
{
    size_t gn = yyjson_arr_size(got), wn = yyjson_arr_size(want);
    yyjson_arr_iter gi = yyjson_arr_iter_with(got), wi = yyjson_arr_iter_with(want);
    for (size_t i = 0; i < gn || i < wn; i++) {
        step s = {at, NULL, i};
        yyjson_val *g = i < gn ? yyjson_arr_iter_next(&gi) : NULL;
        yyjson_val *w = i < wn ? yyjson_arr_iter_next(&wi) : NULL;
        if (g && w)
            walk(c, &s, g, w);
        else
            differ(c, &s, g, w);
    }
}

static void walk(compare *c, const step *at, yyjson_val *got, yyjson_val *want)
{
    if (yyjson_get_type(got) != yyjson_get_type(want)) {
        differ(c, at, got, want);
        return;
    }
    switch (yyjson_get_type(want)) {
    case YYJSON_TYPE_OBJ: walk_object(c, at, got, want); return;
    case YYJSON_TYPE_ARR: walk_array(c, at, got, want); return;
    case YYJSON_TYPE_STR:
        if (!same_text(c, got, want))
            differ(c, at, got, want);
        return;
    case YYJSON_TYPE_RAW:
        if (strcmp(yyjson_get_raw(got), yyjson_get_raw(want)) != 0)
            differ(c, at, got, want);
        return;
    default:
        if (yyjson_get_subtype(got) != yyjson_get_subtype(want))
            differ(c, at, got, want);
        return;
    }
}

void compare_values(compare *c, yyjson_val *got, yyjson_val *want)
{
    walk(c, NULL, got, want);
}
