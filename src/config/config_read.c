/*
 * config_read.c - documents against the table: fills the struct, and tells everything that is wrong.
 *
 * A value that is wrong leaves the one before it in place, so that one mistake is reported once and values that
 * depend on it can still be checked.
 */
#include "config_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct filler {
    dgm_config *config;
    dgm_arena *arena;
    dgm_config_findings *findings;
    const dgm_config_doc *doc; /* the layer that is being read */
} filler;

static bool fill_value(filler *f, const dgm_config_row *row, yyjson_val *v, void *base,
                       const dgm_at *at);
static void fill_object(filler *f, const dgm_config_shape *shape, yyjson_val *v, void *base,
                        const dgm_at *at);

static void *config_read_place(void *base, const dgm_config_row *row)
{
    return (char *)base + row->offset;
}

static bool wrong(filler *f, yyjson_val *v, const dgm_at *at, dgm_str todo, const char *what)
{
    dgm_config_find(f->findings, dgm_config_said_by(f->doc, v, at), todo, "%s", what);
    return false;
}

static bool wrong_type(filler *f, yyjson_val *v, const dgm_at *at, const char *want, dgm_str todo)
{
    if (!dgm_config_mark_of(f->doc, v)->broken)
        dgm_config_find(f->findings, dgm_config_said_by(f->doc, v, at), todo, "expected %s, got %s",
                        want, dgm_config_type(v));
    return false;
}

/* ---- what was probably meant ---------------------------------------------------------------------------- */

/* How many letters to change, add, drop or swap with their neighbour; case, dash and underscore count
 * nothing. More than 3 is as good as 4. */
static size_t distance(dgm_str a, dgm_str b)
{
    size_t rows[3][66];
    if (a.n > 64 || b.n > 64)
        return 4;
#define LETTER(c) ((c) == '-' ? '_' : tolower((unsigned char)(c)))
    for (size_t j = 0; j <= b.n; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t *now = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            bool same = LETTER(a.p[i - 1]) == LETTER(b.p[j - 1]);
            size_t best = before[j - 1] + !same;
            best = before[j] + 1 < best ? before[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && LETTER(a.p[i - 1]) == LETTER(b.p[j - 2]) &&
                LETTER(a.p[i - 2]) == LETTER(b.p[j - 1]) && earlier[j - 2] + 1 < best)
                best = earlier[j - 2] + 1;
            now[j] = best;
        }
    }
#undef LETTER
    return rows[a.n % 3][b.n];
}

const char *dgm_config_nearest(dgm_str typed, const char *(*name)(const void *names, size_t i),
                               const void *names)
{
    const char *nearest = NULL, *candidate;
    size_t best = 1 + (typed.n > 3) + (typed.n > 7); /* short words are near to everything */
    for (size_t i = 0; (candidate = name(names, i)); i++) {
        size_t d = distance(typed, dgm_str_from(candidate));
        if (d < best || (d == best && !nearest)) {
            best = d;
            nearest = candidate;
        }
    }
    return nearest;
}

static const char *word_at(const void *words, size_t i)
{
    return ((const char *const *)words)[i];
}

static const char *row_name_at(const void *rows, size_t i)
{
    return ((const dgm_config_row *)rows)[i].name;
}

/* Where else a name is known: the title of that object. */
static const char *home_of(const dgm_config_shape *shape, dgm_str name)
{
    const char *home = NULL;
    for (const dgm_config_row *row = shape->rows; row->name && !home; row++) {
        if (dgm_str_eq(name, dgm_str_from(row->name)))
            return shape->title;
        if (row->of)
            home = home_of(row->of, name);
    }
    return home;
}

static dgm_str words_text(dgm_arena *a, const char *const *words)
{
    dgm_buf b;
    dgm_str s;
    dgm_buf_init(&b, 400);
    for (size_t i = 0; words[i]; i++)
        dgm_buf_printf(&b, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
    s = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return s;
}

static void unknown_key(filler *f, const dgm_config_shape *shape, yyjson_val *key, const dgm_at *at)
{
    dgm_str name = dgm_json_str(key), todo;
    const char *nearest = dgm_config_nearest(name, row_name_at, shape->rows), *home;
    if (nearest)
        todo = dgm_arena_printf(f->arena, "did you mean \"%s\"?", nearest);
    else if ((home = home_of(&dgm_config_root, name)))
        todo = dgm_arena_printf(f->arena, "it is a setting of: %s", home);
    else
        todo = DGM_STR("remove it; docs/configuration.md lists the settings");
    dgm_config_find(f->findings, dgm_config_said_by(f->doc, key, DGM_AT(at, name)), todo,
                    "unknown setting \"%.*s\"", (int)(name.n < 80 ? name.n : 80), name.p);
}

/* ---- scalars --------------------------------------------------------------------------------------------- */

/* Text that came from a variable stands for what it looks like. */
static bool is_env_text(const filler *f, yyjson_val *v)
{
    return yyjson_is_str(v) && dgm_config_mark_of(f->doc, v)->env;
}

static bool fill_switch(filler *f, yyjson_val *v, bool *ret, const dgm_at *at)
{
    dgm_str s = yyjson_is_str(v) ? dgm_json_str(v) : DGM_STR("");
    if (yyjson_is_bool(v))
        *ret = yyjson_get_bool(v);
    else if (dgm_str_is(s, "on") || (is_env_text(f, v) && dgm_str_is(s, "true")))
        *ret = true;
    else if (dgm_str_is(s, "off") || (is_env_text(f, v) && dgm_str_is(s, "false")))
        *ret = false;
    else
        return wrong_type(f, v, at, "true or false", DGM_STR("write true, false, on or off"));
    return true;
}

static bool fill_int(filler *f, const dgm_config_row *row, yyjson_val *v, int64_t *ret,
                     const dgm_at *at)
{
    int64_t n;
    dgm_str todo = dgm_arena_printf(f->arena, "write a whole number from %lld to %lld",
                                    (long long)row->min, (long long)row->max);
    if (!yyjson_is_raw(v) && !is_env_text(f, v))
        return wrong_type(f, v, at, "a number", todo);
    if (!dgm_json_int(v, &n))
        return wrong(f, v, at, todo, "not a whole number, or too large");
    if (n < row->min || n > row->max)
        return wrong(f, v, at, todo, "out of range");
    *ret = n;
    return true;
}

/* A path counts from the folder of the file that sets it. */
static dgm_str from_folder(filler *f, dgm_str path)
{
    if (!f->doc->folder.n || !path.n || path.p[0] == '/')
        return path;
    return dgm_arena_printf(f->arena, "%.*s/%.*s", DGM_P(f->doc->folder), DGM_P(path));
}

static dgm_str resolve(filler *f, const dgm_config_format *format, dgm_str s)
{
    dgm_str scheme = DGM_STR("sqlite:");
    if (format && format->is_path)
        return from_folder(f, s);
    if (format && format->is_store && dgm_str_starts(s, scheme))
        return dgm_arena_printf(f->arena, "sqlite:%.*s",
                                DGM_P(from_folder(f, (dgm_str){s.p + scheme.n, s.n - scheme.n})));
    return s;
}

/* "level" for `log.level`; an element of a list is a "value". */
static const char *noun_of(const dgm_config_row *row)
{
    return row->kind == DGM_CONFIG_TEXTS || row->kind == DGM_CONFIG_NAMES ? "value" : row->name;
}

static bool fill_text(filler *f, const dgm_config_row *row, yyjson_val *v, dgm_str *ret,
                      const dgm_at *at)
{
    bool number = (row->flags & DGM_CONFIG_NUMBER) && yyjson_is_raw(v);
    dgm_str s;
    if (!yyjson_is_str(v) && !number)
        return wrong_type(f, v, at, "text", DGM_STR("put it in quotes if it is meant as text"));
    s = dgm_arena_dup(f->arena, dgm_json_str(v));
    if (row->format && row->format->write_out) {
        dgm_str whole = row->format->write_out(f->arena, s);
        s = whole.p ? whole : s;
    }
    if (row->format && !row->format->is(s) &&
        !(s.n == 0 && row->def && strcmp(row->def, "\"\"") == 0)) {
        bool reserved = !(row->flags & DGM_CONFIG_SECRET) && dgm_config_is_reserved_tenant(s) &&
                        strstr(row->format->want, "paths");
        dgm_str todo = dgm_arena_printf(f->arena, "write %s", row->format->want);
        if (row->flags & DGM_CONFIG_SECRET)
            return wrong(f, v, at, todo, "invalid secret");
        if (row->format->is_store && dgm_config_store_has_secret(s))
            return wrong(f, v, at, todo, "invalid store");
        if (reserved)
            return wrong(f, v, at, DGM_STR("choose another name"),
                         "invalid tenant: the name is one of the server's paths");
        dgm_str instead = row->format->suggest ? row->format->suggest(f->arena, s) : (dgm_str){0};
        dgm_config_find(f->findings, dgm_config_said_by(f->doc, v, at), instead.p ? instead : todo,
                        "invalid %s \"%.*s\"", noun_of(row), (int)(s.n < 80 ? s.n : 80), s.p);
        return false;
    }
    *ret = resolve(f, row->format, s);
    return true;
}

/* Index into the row's values; -1, and reported. */
static int word_index(filler *f, const dgm_config_row *row, yyjson_val *v, const dgm_at *at)
{
    bool number = (row->flags & DGM_CONFIG_NUMBER) && yyjson_is_raw(v);
    dgm_str todo = dgm_arena_printf(f->arena, "allowed values: %.*s",
                                    DGM_P(words_text(f->arena, row->values)));
    if (!yyjson_is_str(v) && !number) {
        wrong_type(f, v, at, "text", todo);
        return -1;
    }
    dgm_str s = dgm_json_str(v);
    const char *nearest;
    for (int i = 0; row->values[i]; i++)
        if (dgm_str_eq(s, dgm_str_from(row->values[i])))
            return i;
    if (row->unknown_value) {
        todo = dgm_str_from(row->allowed_values);
        if ((nearest = dgm_config_nearest(s, word_at, row->values)))
            todo =
                dgm_arena_printf(f->arena, "did you mean \"%s\"? %s", nearest, row->allowed_values);
        dgm_config_find(f->findings, dgm_config_said_by(f->doc, v, at), todo, "%s \"%.*s\"",
                        row->unknown_value, (int)(s.n < 80 ? s.n : 80), s.p);
        return -1;
    }
    if ((nearest = dgm_config_nearest(s, word_at, row->values)))
        todo = dgm_arena_printf(f->arena, "did you mean \"%s\"? Allowed values: %.*s", nearest,
                                DGM_P(words_text(f->arena, row->values)));
    dgm_config_find(f->findings, dgm_config_said_by(f->doc, v, at), todo, "unknown %s \"%.*s\"",
                    noun_of(row), (int)(s.n < 80 ? s.n : 80), s.p);
    return -1;
}

/* ---- lists ------------------------------------------------------------------------------------------------- */

static bool is_list(filler *f, const dgm_config_row *row, yyjson_val *v, const dgm_at *at)
{
    size_t n = yyjson_arr_size(v);
    if (!yyjson_is_arr(v) && !(yyjson_is_obj(v) && row->kind == DGM_CONFIG_LIST && row->lead))
        return wrong_type(f, v, at, "a list",
                          DGM_STR("write [a, b], or a line with a dash for each"));
    n = yyjson_is_obj(v) ? yyjson_obj_size(v) : n;
    if (row->max && n > (size_t)row->max) {
        dgm_config_find(f->findings, dgm_config_said_by(f->doc, v, at), DGM_STR("make it shorter"),
                        "more than %lld items", (long long)row->max);
        return false;
    }
    if (n < (size_t)row->min)
        return wrong(f, v, at, DGM_STR("name one, or leave the setting out"), "the list is empty");
    return true;
}

static bool fill_texts(filler *f, const dgm_config_row *row, yyjson_val *v, dgm_strs *ret,
                       const dgm_at *at)
{
    yyjson_val *item;
    size_t i, n;
    bool ok = true;
    dgm_strs strs = {dgm_new_n(f->arena, dgm_str, yyjson_arr_size(v)), 0};
    if (!is_list(f, row, v, at))
        return false;
    yyjson_arr_foreach (v, i, n, item) {
        ok &= fill_text(f, row, item, &strs.at[i], DGM_AT_I(at, i));
    }
    strs.n = n;
    *ret = strs;
    return ok;
}

static bool fill_names(filler *f, const dgm_config_row *row, yyjson_val *v, unsigned *ret,
                       const dgm_at *at)
{
    yyjson_val *item;
    size_t i, n;
    unsigned bits = 0;
    if (!yyjson_is_arr(v) || !yyjson_arr_size(v))
        return wrong_type(f, v, at, "a list that is not empty",
                          dgm_arena_printf(f->arena, "write a list of %.*s",
                                           DGM_P(words_text(f->arena, row->values))));
    yyjson_arr_foreach (v, i, n, item) {
        int word = word_index(f, row, item, DGM_AT_I(at, i));
        if (word < 0)
            return false;
        bits |= 1u << word;
    }
    *ret = bits;
    return true;
}

static void fill_defaults(filler *f, const dgm_config_shape *shape, void *base)
{
    for (const dgm_config_row *row = shape->rows; row->name; row++) {
        if (row->kind == DGM_CONFIG_OBJECT)
            fill_defaults(f, row->of, config_read_place(base, row));
        else if (row->def)
            fill_value(f, row, dgm_json_parse_trusted(f->arena, dgm_str_from(row->def)), base,
                       NULL);
    }
}

/* Every list of structs begins with these two. */
struct any_list {
    char *at;
    size_t n;
};

static yyjson_val *map_key(yyjson_val *map, size_t i)
{
    yyjson_obj_iter it = yyjson_obj_iter_with(map);
    yyjson_val *key = NULL;
    for (size_t k = 0; k <= i; k++)
        key = yyjson_obj_iter_next(&it);
    return key;
}

yyjson_val *dgm_config_item(yyjson_val *list, size_t i)
{
    if (!yyjson_is_obj(list))
        return yyjson_arr_get(list, i);
    return i < yyjson_obj_size(list) ? yyjson_obj_iter_get_val(map_key(list, i)) : NULL;
}

/* A list that is written as a map: the key is one member of the element. */
static void fill_key(filler *f, const dgm_config_row *list, yyjson_val *key, yyjson_val *item,
                     void *element, const dgm_at *at)
{
    const dgm_config_row *row = list->of->rows;
    while (strcmp(row->name, list->lead) != 0)
        row++;
    yyjson_val *twice = dgm_json_get(item, dgm_str_from(list->lead));
    if (twice)
        wrong(f, twice, DGM_AT(at, dgm_str_from(list->lead)),
              dgm_arena_printf(f->arena, "remove it: the key \"%.*s\" is the %s",
                               DGM_P(dgm_json_str(key)), list->lead),
              dgm_arena_printf(f->arena, "the %s is set twice", list->lead).p);
    else
        fill_value(f, row, key, element, at);
}

static bool fill_list(filler *f, const dgm_config_row *row, yyjson_val *v, struct any_list *ret,
                      const dgm_at *at)
{
    static const dgm_config_doc nobody;
    const dgm_config_doc *doc = f->doc;
    yyjson_val *item;
    size_t i, n;
    struct any_list list = {0};
    if (!is_list(f, row, v, at))
        return false;
    n = yyjson_is_obj(v) ? yyjson_obj_size(v) : yyjson_arr_size(v);
    if (row->of->size)
        list.at = dgm_arena_alloc(f->arena, n * row->of->size);
    for (i = 0; i < n; i++) {
        void *element = list.at ? list.at + i * row->of->size : NULL;
        yyjson_val *key = yyjson_is_obj(v) ? map_key(v, i) : NULL;
        const dgm_at *where = key ? DGM_AT(at, dgm_json_str(key)) : DGM_AT_I(at, i);
        item = dgm_config_item(v, i);
        if (element) {
            f->doc = &nobody;
            fill_defaults(f, row->of, element);
            f->doc = doc;
            if (row->of->prepare)
                row->of->prepare(f->config, element);
        }
        if (!yyjson_is_obj(item)) {
            wrong_type(f, item, where, "an object",
                       !key ? DGM_STR("write name: value lines")
                       : dgm_str_is(dgm_str_from(row->name), "mcp")
                           ? DGM_STR("write NAME: {command: [PROGRAM]} or NAME: {url: URL}")
                           : DGM_STR("write ID: {type: TYPE}"));
            continue;
        }
        if (key)
            fill_key(f, row, key, item, element, where);
        fill_object(f, row->of, item, element, where);
    }
    list.n = n; /* also what is wrong has its place: later findings count by it */
    if (ret)
        *ret = list;
    return true;
}

/* ---- JSON that is kept ---------------------------------------------------------------------------------------- */

/* A value that is passed on; its variables are typed by their text if they were without quotes. */
static void put_opaque(filler *f, dgm_buf *b, yyjson_val *v)
{
    yyjson_val *key, *item;
    size_t i, n;
    if (yyjson_is_obj(v)) {
        dgm_buf_add_char(b, '{');
        yyjson_obj_foreach (v, i, n, key, item) {
            if (i)
                dgm_buf_add_char(b, ',');
            dgm_json_put_str(b, dgm_json_str(key));
            dgm_buf_add_char(b, ':');
            put_opaque(f, b, item);
        }
        dgm_buf_add_char(b, '}');
    } else if (yyjson_is_arr(v)) {
        dgm_buf_add_char(b, '[');
        yyjson_arr_foreach (v, i, n, item) {
            if (i)
                dgm_buf_add_char(b, ',');
            put_opaque(f, b, item);
        }
        dgm_buf_add_char(b, ']');
    } else if (is_env_text(f, v) && dgm_config_mark_of(f->doc, v)->plain) {
        dgm_str s = dgm_json_str(v);
        if (dgm_config_is_number(s) || dgm_str_is(s, "true") || dgm_str_is(s, "false"))
            dgm_buf_add_str(b, s);
        else
            dgm_json_put_str(b, s);
    } else {
        dgm_json_put(b, v);
    }
}

/* The members of a checked object, types as the table has them. */
static void put_shaped(filler *f, dgm_buf *b, const dgm_config_shape *shape, yyjson_val *v)
{
    bool comma = false;
    dgm_buf_add_char(b, '{');
    for (const dgm_config_row *row = shape->rows; row->name; row++) {
        yyjson_val *member = dgm_json_get(v, dgm_str_from(row->name)), *item;
        size_t i, n;
        if (!member || yyjson_is_null(member))
            continue;
        if (comma)
            dgm_buf_add_char(b, ',');
        comma = true;
        dgm_json_put_str(b, dgm_str_from(row->name));
        dgm_buf_add_char(b, ':');
        if (row->kind == DGM_CONFIG_SHAPED) {
            put_shaped(f, b, row->of, member);
        } else if (row->kind == DGM_CONFIG_LIST) {
            dgm_buf_add_char(b, '[');
            yyjson_arr_foreach (member, i, n, item) {
                if (i)
                    dgm_buf_add_char(b, ',');
                put_shaped(f, b, row->of, item);
            }
            dgm_buf_add_char(b, ']');
        } else if (row->kind == DGM_CONFIG_TEXT) {
            dgm_json_put_str(b, dgm_json_str(member));
        } else if (row->kind == DGM_CONFIG_TEXTS) {
            dgm_json_put(b, member);
        } else {
            put_opaque(f, b, member);
        }
    }
    dgm_buf_add_char(b, '}');
}

static const dgm_json *config_read_keep(filler *f, const dgm_config_row *row, yyjson_val *v)
{
    dgm_buf b;
    dgm_str text;
    dgm_buf_init(&b, SIZE_MAX); /* v has met its limits */
    if (row->kind == DGM_CONFIG_SHAPED)
        put_shaped(f, &b, row->of, v);
    else
        put_opaque(f, &b, v);
    text = dgm_arena_dup(f->arena, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return dgm_json_parse_trusted(f->arena, text);
}

/* `log: debug` is `log: {level: debug}`. */
static bool fill_lead(filler *f, const dgm_config_row *object, yyjson_val *v, void *base,
                      const dgm_at *at)
{
    const dgm_config_row *row = object->of->rows;
    while (strcmp(row->name, object->lead) != 0)
        row++;
    return fill_value(f, row, v, base, DGM_AT(at, dgm_str_from(row->name)));
}

/* ---- any value ------------------------------------------------------------------------------------------------ */

/* base NULL: only checks; values then go to the sinks. */
static bool fill_value(filler *f, const dgm_config_row *row, yyjson_val *v, void *base,
                       const dgm_at *at)
{
    void *to = base ? config_read_place(base, row) : NULL;
    size_t n_errors = f->findings->n_errors;
    bool bool_sink;
    int64_t int_sink;
    dgm_str str_sink;
    dgm_strs strs_sink;
    unsigned bits_sink;
    int word;
    switch (row->kind) {
    case DGM_CONFIG_SWITCH: return fill_switch(f, v, to ? to : &bool_sink, at);
    case DGM_CONFIG_INT: return fill_int(f, row, v, to ? to : &int_sink, at);
    case DGM_CONFIG_TEXT:
        if (row->values && word_index(f, row, v, at) < 0)
            return false;
        return fill_text(f, row, v, to ? to : &str_sink, at);
    case DGM_CONFIG_TEXTS: return fill_texts(f, row, v, to ? to : &strs_sink, at);
    case DGM_CONFIG_NAME:
        if ((word = word_index(f, row, v, at)) < 0)
            return false;
        if (to)
            *(int *)to = word;
        return true;
    case DGM_CONFIG_NAMES: return fill_names(f, row, v, to ? to : &bits_sink, at);
    case DGM_CONFIG_LIST: return fill_list(f, row, v, to, at);
    case DGM_CONFIG_ARRAY:
        if (!is_list(f, row, v, at))
            return false;
        if (to)
            *(const dgm_json **)to = config_read_keep(f, row, v);
        return true;
    case DGM_CONFIG_OBJECT:
    case DGM_CONFIG_SHAPED:
    case DGM_CONFIG_JSON:
        if (row->kind == DGM_CONFIG_OBJECT && row->lead && !yyjson_is_ctn(v))
            return fill_lead(f, row, v, to, at);
        if (!yyjson_is_obj(v))
            return wrong_type(f, v, at, "an object", DGM_STR("write name: value lines below it"));
        if (row->of)
            fill_object(f, row->of, v, row->kind == DGM_CONFIG_OBJECT ? to : NULL, at);
        if (row->kind != DGM_CONFIG_OBJECT && to && f->findings->n_errors == n_errors)
            *(const dgm_json **)to = config_read_keep(f, row, v);
        return true;
    }
    return false;
}

/* At the top, x-... is the file's own: a place for anchors. */
static void check_keys(filler *f, const dgm_config_shape *shape, yyjson_val *v, const dgm_at *at)
{
    yyjson_val *key, *item;
    size_t i, n;
    yyjson_obj_foreach (v, i, n, key, item) {
        const dgm_config_row *row = shape->rows;
        while (row->name && !dgm_str_eq(dgm_json_str(key), dgm_str_from(row->name)))
            row++;
        if (!row->name && !(!at && dgm_str_starts(dgm_json_str(key), DGM_STR("x-"))))
            unknown_key(f, shape, key, at);
    }
}

/* v is an object. null counts as absent, as an empty `name:` in YAML reads. */
static void fill_object(filler *f, const dgm_config_shape *shape, yyjson_val *v, void *base,
                        const dgm_at *at)
{
    check_keys(f, shape, v, at);
    for (const dgm_config_row *row = shape->rows; row->name; row++) {
        dgm_str name = dgm_str_from(row->name);
        yyjson_val *member = dgm_json_get(v, name);
        if (member && !yyjson_is_null(member))
            fill_value(f, row, member, base, DGM_AT(at, name));
        else if (row->flags & DGM_CONFIG_REQUIRED && !dgm_config_mark_of(f->doc, member)->broken)
            dgm_config_find(f->findings, dgm_config_said_by(f->doc, v, at),
                            dgm_arena_printf(f->arena, "add %s: %s", row->name, row->about),
                            "\"%s\" is missing", row->name);
    }
}

void dgm_config_read_layers(dgm_config *c, dgm_config_doc *const *layers, size_t n,
                            dgm_config_findings *findings)
{
    static const dgm_config_doc nobody;
    filler f = {.config = c, .arena = c->arena, .findings = findings, .doc = &nobody};
    for (size_t i = 0; i < n; i++) {
        f.doc = layers[i];
        if (yyjson_is_obj(layers[i]->root))
            check_keys(&f, &dgm_config_root, layers[i]->root, NULL);
        else if (layers[i]->root && !yyjson_is_null(layers[i]->root))
            wrong_type(&f, layers[i]->root, NULL, "an object",
                       DGM_STR("write name: value lines, see docs/configuration.md"));
    }
    /* Row by row, and within a row layer by layer: what agents begin with is complete before them. */
    for (const dgm_config_row *row = dgm_config_root.rows; row->name; row++) {
        dgm_str name = dgm_str_from(row->name);
        f.doc = &nobody;
        if (row->kind == DGM_CONFIG_OBJECT)
            fill_defaults(&f, row->of, config_read_place(c, row));
        else
            fill_value(&f, row, dgm_json_parse_trusted(c->arena, dgm_str_from(row->def)), c, NULL);
        for (size_t i = 0; i < n; i++) {
            yyjson_val *member = dgm_json_get(layers[i]->root, name);
            f.doc = layers[i];
            if (member && !yyjson_is_null(member))
                fill_value(&f, row, member, c, DGM_AT(NULL, name));
        }
    }
}

bool dgm_config_read_value(dgm_config *c, const dgm_config_doc *doc, const dgm_config_row *row,
                           yyjson_val *v, void *base, const dgm_at *at,
                           dgm_config_findings *findings)
{
    filler f = {.config = c, .arena = c->arena, .findings = findings, .doc = doc};
    size_t n_errors = findings->n_errors;
    return fill_value(&f, row, v, base, at) && findings->n_errors == n_errors;
}
