/* backend/settings.c - an agent's settings against the table of its type: every mistake, with its place. */
#include "backend/backend_int.h"

#include <stdio.h>
#include <stdlib.h>

struct check {
    dgm_on_setting_fault on_fault;
    void *user;
    size_t n_faults;
};

static yyjson_val *settings_plain(const dgm_json *v) /* yyjson's readers do not say const */
{
    return (yyjson_val *)(uintptr_t)v;
}

static bool setting_fault(struct check *c, const dgm_at *at, const char *todo, const char *fmt, ...)
    DGM_PRINTF(4, 5);

/* Returns false, for the caller to return. */
static bool setting_fault(struct check *c, const dgm_at *at, const char *todo, const char *fmt, ...)
{
    char what[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    c->n_faults++;
    c->on_fault(c->user, &(dgm_setting_fault){.at = at, .what = what, .todo = todo});
    return false;
}

/* ---- values ----------------------------------------------------------------------------------------------- */

/* A number, true or false: where text is meant, its letters. A variable may look like one. */
static bool is_plain_scalar(const dgm_json *v)
{
    return yyjson_is_num(settings_plain(v)) || yyjson_is_raw(settings_plain(v)) ||
           yyjson_is_bool(settings_plain(v));
}

static bool check_text(struct check *c, const dgm_json *v, const dgm_at *at)
{
    if (!yyjson_is_str(settings_plain(v)))
        return setting_fault(c, at, "put it in quotes if it is meant as text",
                             "expected text, got %s", dgm_json_type(v));
    if (memchr(dgm_json_str(v).p, '\0', dgm_json_str(v).n))
        return setting_fault(c, at, "", "the text contains a NUL byte");
    return true;
}

static bool read_number(struct check *c, const dgm_json *v, const dgm_setting *row,
                        const dgm_at *at, double *ret)
{
    char text[64], todo[100], *end;
    const char *kind = row->kind == DGM_SETTING_INT ? "a whole number" : "a number";
    double number;
    snprintf(todo, sizeof todo, "write %s from %g to %g", kind, row->min, row->max);
    if (yyjson_is_num(settings_plain(v))) {
        number = yyjson_get_num(settings_plain(v));
    } else if ((yyjson_is_raw(settings_plain(v)) || yyjson_is_str(settings_plain(v))) &&
               dgm_json_str(v).n < 60) {
        snprintf(text, sizeof text, "%.*s", DGM_P(dgm_json_str(v)));
        number = strtod(text, &end);
        if (*end || end == text)
            return setting_fault(c, at, todo, "expected %s, got \"%s\"", kind, text);
    } else {
        return setting_fault(c, at, todo, "expected %s, got %s", kind, dgm_json_type(v));
    }
    if (!(number >= row->min && number <= row->max))
        return setting_fault(c, at, todo, "out of range");
    if (row->kind == DGM_SETTING_INT && number != (double)(int64_t)number)
        return setting_fault(c, at, todo, "expected a whole number");
    *ret = number;
    return true;
}

static bool settings_read_choice(struct check *c, const dgm_json *v, const char *choices,
                                 const dgm_at *at, int *ret)
{
    char allowed[100] = "allowed values: ";
    size_t used = strlen(allowed);
    dgm_str text = yyjson_is_str(settings_plain(v)) ? dgm_json_str(v) : (dgm_str){0};
    const char *p = choices;
    if (yyjson_is_bool(settings_plain(v)) && strcmp(choices, "false|true") == 0)
        text = yyjson_get_bool(settings_plain(v)) ? DGM_STR("true") : DGM_STR("false");
    for (int i = 0; *p; i++) {
        size_t n = strcspn(p, "|");
        if (dgm_str_eq(text, (dgm_str){p, n})) {
            *ret = i;
            return true;
        }
        used += (size_t)snprintf(allowed + used, sizeof allowed - used, "%s%.*s", i ? ", " : "",
                                 (int)n, p);
        p += n + (p[n] == '|');
    }
    if (!text.p)
        return setting_fault(c, at, allowed, "expected text, got %s", dgm_json_type(v));
    return setting_fault(c, at, allowed, "invalid value \"%.*s\"", (int)(text.n < 80 ? text.n : 80),
                         text.p);
}

static bool check_command(struct check *c, const dgm_json *v, const dgm_at *at)
{
    static const char todo[] = "write [./agent.py, --option], or one line for the shell";
    yyjson_val *item;
    size_t i, n;
    bool good = true;
    if (yyjson_is_str(settings_plain(v)))
        return check_text(c, v, at) &&
               (dgm_text_trim(dgm_json_str(v)).n || setting_fault(c, at, todo, "it is empty"));
    if (!yyjson_is_arr(settings_plain(v)))
        return setting_fault(c, at, todo, "expected a list or text, got %s", dgm_json_type(v));
    if (yyjson_arr_size(settings_plain(v)) == 0)
        return setting_fault(c, at, todo, "it is empty");
    yyjson_arr_foreach (settings_plain(v), i, n, item) {
        if (is_plain_scalar(item))
            continue;
        good &= check_text(c, item, DGM_AT_I(at, i));
        if (i == 0 && yyjson_is_str(item) && dgm_json_str(item).n == 0)
            good = setting_fault(c, DGM_AT_I(at, 0), todo, "the program has no name");
    }
    return good;
}

static bool check_name(struct check *c, dgm_str name, const dgm_at *at)
{
    if (name.n && !memchr(name.p, '=', name.n) && !memchr(name.p, '\0', name.n))
        return true;
    return setting_fault(c, at, "a name has no = in it", "not a name of an environment variable");
}

static bool check_env(struct check *c, const dgm_json *v, const dgm_at *at)
{
    yyjson_val *key, *item;
    size_t i, n;
    bool good = true;
    if (!yyjson_is_obj(settings_plain(v)))
        return setting_fault(c, at, "write NAME: value lines below it",
                             "expected an object, got %s", dgm_json_type(v));
    yyjson_obj_foreach (settings_plain(v), i, n, key, item) {
        const dgm_at *here = DGM_AT(at, dgm_json_str(key));
        good &= check_name(c, dgm_json_str(key), here);
        good &= is_plain_scalar(item) || check_text(c, item, here);
    }
    return good;
}

/* words: "a|b" */
static bool is_one_of_words(dgm_str text, const char *words)
{
    for (const char *p = words; *p;) {
        size_t n = strcspn(p, "|");
        if (dgm_str_eq(text, (dgm_str){p, n}))
            return true;
        p += n + (p[n] == '|');
    }
    return false;
}

static bool check_names(struct check *c, const dgm_json *v, const char *words, const dgm_at *at)
{
    char todo[100];
    yyjson_val *item;
    size_t i, n;
    bool good = true;
    snprintf(todo, sizeof todo, *words ? "write [NAME, NAME], or %s" : "write [NAME, NAME]%s",
             words);
    for (char *bar = todo; (bar = strchr(bar, '|'));)
        *bar = '/';
    if (yyjson_is_str(settings_plain(v)) && is_one_of_words(dgm_json_str(v), words))
        return true;
    if (!yyjson_is_arr(settings_plain(v)))
        return setting_fault(c, at, todo, "expected a list of names, got %s",
                             yyjson_is_str(settings_plain(v)) ? "text" : dgm_json_type(v));
    yyjson_arr_foreach (settings_plain(v), i, n, item) {
        good &= check_text(c, item, DGM_AT_I(at, i)) &&
                check_name(c, dgm_json_str(item), DGM_AT_I(at, i));
    }
    return good;
}

static void check_object(struct check *c, const dgm_json *v, const dgm_setting *rows,
                         const dgm_at *at, void *object);

static bool check_list_size(struct check *c, const dgm_json *v, const dgm_setting *row,
                            const dgm_at *at)
{
    if (!yyjson_is_arr(settings_plain(v)))
        return setting_fault(c, at, "write a list: [...], or lines that start with -",
                             "expected a list, got %s", dgm_json_type(v));
    if ((double)yyjson_arr_size(settings_plain(v)) > row->max)
        return setting_fault(c, at, "", "more than %g entries", row->max);
    return true;
}

/* "exec, http, agent" */
static const char *list_names(const dgm_setting *rows, char *text, size_t size)
{
    size_t used = 0;
    for (*text = 0; rows->name && used < size; rows++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", rows->name);
    return text;
}

/* An entry of a list of alternatives: a name, or an object with one member. */
static void check_variant(struct check *c, const dgm_json *v, const dgm_setting *row,
                          const dgm_at *at)
{
    char names[200];
    if (yyjson_is_str(settings_plain(v))) {
        check_text(c, v, at);
    } else if (!yyjson_is_obj(settings_plain(v))) {
        setting_fault(c, at, "", "expected a name or an object, got %s", dgm_json_type(v));
    } else if (yyjson_obj_size(settings_plain(v)) != 1) {
        setting_fault(c, at, "start a new entry of the list for each",
                      "expected an object with one of: %s",
                      list_names(row->of, names, sizeof names));
    } else {
        yyjson_obj_iter it = yyjson_obj_iter_with(settings_plain(v));
        yyjson_val *key = yyjson_obj_iter_next(&it), *value = yyjson_obj_iter_get_val(key);
        check_object(c, v, row->of, at, NULL);
        /* `exec:` without settings lacks the required ones */
        for (const dgm_setting *r = row->of; yyjson_is_null(value) && r->name; r++) {
            if (dgm_str_eq(dgm_json_str(key), dgm_str_from(r->name)))
                check_object(c, NULL, r->of, DGM_AT(at, dgm_json_str(key)), NULL);
        }
    }
}

static bool check_list(struct check *c, const dgm_json *v, const dgm_setting *row, const dgm_at *at)
{
    size_t before = c->n_faults, i, n;
    yyjson_val *item;
    if (!check_list_size(c, v, row, at))
        return false;
    yyjson_arr_foreach (settings_plain(v), i, n, item) {
        if (row->kind == DGM_SETTING_VARIANTS)
            check_variant(c, item, row, DGM_AT_I(at, i));
        else
            check_object(c, item, row->of, DGM_AT_I(at, i), NULL);
    }
    return c->n_faults == before;
}

static bool check_json_object(struct check *c, const dgm_json *v, const dgm_at *at)
{
    return yyjson_is_obj(settings_plain(v)) ||
           setting_fault(c, at, "write name: value lines below it", "expected an object, got %s",
                         dgm_json_type(v));
}

static bool check_value(struct check *c, const dgm_json *v, const dgm_setting *row,
                        const dgm_at *at)
{
    switch (row->kind) {
    case DGM_SETTING_COMMAND: return check_command(c, v, at);
    case DGM_SETTING_ENV: return check_env(c, v, at);
    case DGM_SETTING_NAMES: return check_names(c, v, row->choices, at);
    case DGM_SETTING_LIST:
    case DGM_SETTING_VARIANTS: return check_list(c, v, row, at);
    case DGM_SETTING_JSON: return check_json_object(c, v, at);
    case DGM_SETTING_STR:
    case DGM_SETTING_NUMBER:
    case DGM_SETTING_INT:
    case DGM_SETTING_CHOICE:
    case DGM_SETTING_OBJECT: break;
    }
    return false;
}

static void read_setting(struct check *c, const dgm_json *v, const dgm_setting *row,
                         const dgm_at *at, char *object)
{
    double number;
    int choice = 0;
    switch (row->kind) {
    case DGM_SETTING_STR:
        if (check_text(c, v, at) && object)
            *(dgm_str *)(void *)(object + row->at) = dgm_json_str(v);
        break;
    case DGM_SETTING_NUMBER:
        if (read_number(c, v, row, at, &number) && object)
            *(double *)(void *)(object + row->at) = number;
        break;
    case DGM_SETTING_INT:
        if (read_number(c, v, row, at, &number) && object)
            *(int64_t *)(void *)(object + row->at) = (int64_t)number;
        break;
    case DGM_SETTING_CHOICE:
        if (settings_read_choice(c, v, row->choices, at, &choice) && object)
            *(int *)(void *)(object + row->at) = choice;
        break;
    case DGM_SETTING_OBJECT: check_object(c, v, row->of, at, object); break;
    case DGM_SETTING_COMMAND:
    case DGM_SETTING_ENV:
    case DGM_SETTING_NAMES:
    case DGM_SETTING_LIST:
    case DGM_SETTING_VARIANTS:
    case DGM_SETTING_JSON:
        if (check_value(c, v, row, at) && object)
            *(const dgm_json **)(void *)(object + row->at) = v;
        break;
    }
}

/* ---- all of them ------------------------------------------------------------------------------------------- */

static const dgm_setting *settings_row_of(const dgm_setting *rows, dgm_str name)
{
    for (; rows && rows->name; rows++) {
        if (dgm_str_eq(name, dgm_str_from(rows->name)))
            return rows;
    }
    return NULL;
}

static void find_missing(struct check *c, const dgm_json *v, const dgm_setting *rows,
                         const dgm_at *at)
{
    for (const dgm_setting *row = rows; row && row->name; row++) {
        char what[120], todo[300];
        yyjson_val *given = v ? dgm_json_get(v, dgm_str_from(row->name)) : NULL;
        if (!row->required || (given && !yyjson_is_null(given)))
            continue;
        snprintf(what, sizeof what, "\"%s\" is missing", row->name);
        snprintf(todo, sizeof todo, "add %s: %s", row->name, row->about);
        c->n_faults++;
        c->on_fault(c->user, &(dgm_setting_fault){.at = DGM_AT(at, dgm_str_from(row->name)),
                                                  .is_missing = true,
                                                  .what = what,
                                                  .todo = todo});
    }
}

/* v may be NULL: nothing is set. */
static void check_object(struct check *c, const dgm_json *v, const dgm_setting *rows,
                         const dgm_at *at, void *object)
{
    yyjson_val *key, *item;
    size_t i, n;
    if (v && !check_json_object(c, v, at))
        return;
    yyjson_obj_foreach (settings_plain(v), i, n, key, item) {
        dgm_str name = dgm_json_str(key);
        const dgm_at *here = DGM_AT(at, name);
        const dgm_setting *row = settings_row_of(rows, name);
        char what[120];
        if (row) {
            if (!yyjson_is_null(item)) /* what an empty `name:` reads as: the default */
                read_setting(c, item, row, here, object);
            continue;
        }
        snprintf(what, sizeof what, "unknown setting \"%.*s\"", (int)(name.n < 80 ? name.n : 80),
                 name.p);
        c->n_faults++;
        c->on_fault(c->user,
                    &(dgm_setting_fault){
                        .at = here, .is_unknown = true, .rows = rows, .what = what, .todo = ""});
    }
    find_missing(c, v, rows, at);
}

size_t dgm_settings_check(const dgm_json *config, const dgm_setting *rows, void *object,
                          dgm_on_setting_fault on_fault, void *user)
{
    struct check c = {.on_fault = on_fault, .user = user};
    check_object(&c, config, rows, NULL, object);
    return c.n_faults;
}

static void store_first(void *user, const dgm_setting_fault *f)
{
    dgm_err *err = user;
    if (!err->code)
        dgm_fail(err, DGM_BAD_PARAMS, f->at, "%s%s%s", f->what, *f->todo ? ": " : "", f->todo);
}

dgm_code dgm_settings_read(const dgm_json *config, const dgm_setting *rows, void *object,
                           dgm_err *err)
{
    dgm_err first = {0};
    if (!dgm_settings_check(config, rows, object, store_first, &first))
        return DGM_OK;
    if (err)
        *err = first;
    return first.code;
}
