/* config_write.c - the struct back into JSON by the table, and what differs between two of them. */
#include "config_int.h"

struct any_list {
    const char *at;
    size_t n;
};

static const void *config_write_place(const void *base, const dgm_config_row *row)
{
    return (const char *)base + row->offset;
}

static void put_rows(dgm_buf *b, const dgm_config_shape *shape, const void *base, bool secrets)
{
    bool comma = false;
    dgm_buf_add_char(b, '{');
    for (const dgm_config_row *row = shape->rows; row->name; row++) {
        size_t before = b->n;
        if (comma)
            dgm_buf_add_char(b, ',');
        dgm_json_put_str(b, dgm_str_from(row->name));
        dgm_buf_add_char(b, ':');
        size_t head = b->n;
        dgm_config_put_value(b, row, base, secrets);
        if (b->n == head)
            b->n = before; /* absent */
        else
            comma = true;
    }
    dgm_buf_add_char(b, '}');
}

static void put_strs(dgm_buf *b, const dgm_strs *strs)
{
    dgm_buf_add_char(b, '[');
    for (size_t i = 0; i < strs->n; i++) {
        if (i)
            dgm_buf_add_char(b, ',');
        dgm_json_put_str(b, strs->at[i]);
    }
    dgm_buf_add_char(b, ']');
}

static void put_bits(dgm_buf *b, const dgm_config_row *row, unsigned bits)
{
    bool comma = false;
    dgm_buf_add_char(b, '[');
    for (size_t i = 0; row->values[i]; i++) {
        if (!(bits >> i & 1))
            continue;
        if (comma)
            dgm_buf_add_char(b, ',');
        comma = true;
        dgm_json_put_str(b, dgm_str_from(row->values[i]));
    }
    dgm_buf_add_char(b, ']');
}

/* Writes nothing for what is absent. */
void dgm_config_put_value(dgm_buf *b, const dgm_config_row *row, const void *base, bool secrets)
{
    const void *from = config_write_place(base, row);
    switch (row->kind) {
    case DGM_CONFIG_SWITCH:
        dgm_buf_add_str(b, *(const bool *)from ? DGM_STR("true") : DGM_STR("false"));
        break;
    case DGM_CONFIG_INT: dgm_json_put_int(b, *(const int64_t *)from); break;
    case DGM_CONFIG_TEXT: {
        dgm_str s = *(const dgm_str *)from;
        if (s.p)
            dgm_json_put_str(b, row->flags & DGM_CONFIG_SECRET && !secrets ? DGM_STR("***") : s);
        break;
    }
    case DGM_CONFIG_TEXTS: put_strs(b, from); break;
    case DGM_CONFIG_NAME: dgm_json_put_str(b, dgm_str_from(row->values[*(const int *)from])); break;
    case DGM_CONFIG_NAMES: put_bits(b, row, *(const unsigned *)from); break;
    case DGM_CONFIG_LIST: {
        const struct any_list *list = from;
        dgm_buf_add_char(b, '[');
        for (size_t i = 0; i < list->n; i++) {
            if (i)
                dgm_buf_add_char(b, ',');
            put_rows(b, row->of, list->at + i * row->of->size, secrets);
        }
        dgm_buf_add_char(b, ']');
        break;
    }
    case DGM_CONFIG_OBJECT: {
        size_t before = b->n;
        put_rows(b, row->of, from, secrets);
        if (b->n == before + 2)
            b->n = before; /* tls: {} would not be read */
        break;
    }
    case DGM_CONFIG_SHAPED:
    case DGM_CONFIG_JSON:
    case DGM_CONFIG_ARRAY:
        if (row->flags & DGM_CONFIG_SECRET && !secrets) /* the settings of an agent */
            dgm_config_put_settings(b, base);
        else if (*(const dgm_json *const *)from)
            dgm_json_put(b, *(const dgm_json *const *)from);
        break;
    }
}

/* ---- for people ------------------------------------------------------------------------------------------- */

static bool is_flat(yyjson_val *v)
{
    yyjson_val *item;
    size_t i, n;
    yyjson_arr_foreach (v, i, n, item) {
        if (yyjson_is_ctn(item))
            return false;
    }
    return true;
}

static void put_line(dgm_buf *b, size_t level)
{
    dgm_buf_printf(b, "\n%*s", (int)(2 * level), "");
}

void dgm_config_put_pretty(dgm_buf *b, yyjson_val *v, size_t level)
{
    yyjson_val *key, *item;
    size_t i, n;
    if (yyjson_is_obj(v) && yyjson_obj_size(v)) {
        dgm_buf_add_char(b, '{');
        yyjson_obj_foreach (v, i, n, key, item) {
            if (i)
                dgm_buf_add_char(b, ',');
            put_line(b, level + 1);
            dgm_json_put_str(b, dgm_json_str(key));
            dgm_buf_add_lit(b, ": ");
            dgm_config_put_pretty(b, item, level + 1);
        }
        put_line(b, level);
        dgm_buf_add_char(b, '}');
    } else if (yyjson_is_arr(v) && !is_flat(v)) {
        dgm_buf_add_char(b, '[');
        yyjson_arr_foreach (v, i, n, item) {
            if (i)
                dgm_buf_add_char(b, ',');
            put_line(b, level + 1);
            dgm_config_put_pretty(b, item, level + 1);
        }
        put_line(b, level);
        dgm_buf_add_char(b, ']');
    } else {
        dgm_json_put_spaced(b, v);
    }
}

void dgm_config_put(dgm_buf *b, const dgm_config *c)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_buf compact;
    dgm_buf_init(&compact, SIZE_MAX);
    put_rows(&compact, &dgm_config_root, c, false);
    dgm_config_put_pretty(b, dgm_json_parse_trusted(a, dgm_buf_str(&compact)), 0);
    dgm_buf_add_char(b, '\n');
    dgm_buf_done(&compact);
}

void dgm_config_agent_put(dgm_buf *b, const dgm_config_agent *agent)
{
    const dgm_config_row *list = dgm_config_root.rows;
    bool comma = false;
    while (strcmp(list->name, "agents") != 0)
        list++;
    dgm_buf_add_char(b, '{');
    for (const dgm_config_row *row = list->of->rows; row->name; row++) {
        if (row->kind == DGM_CONFIG_SHAPED || row->kind == DGM_CONFIG_OBJECT ||
            strcmp(row->name, "default") == 0)
            continue;
        dgm_buf_printf(b, "%s\"%s\":", comma ? "," : "", row->name);
        size_t head = b->n;
        dgm_config_put_value(b, row, agent, true);
        if (b->n == head)
            dgm_buf_add_lit(b, "null"); /* absent */
        comma = true;
    }
    dgm_buf_add_char(b, '}');
}

void dgm_config_finding_put(dgm_buf *b, const dgm_config_finding *f)
{
    if (f->file.n)
        dgm_buf_add_str(b, f->file);
    if (f->line)
        dgm_buf_printf(b, ":%zu:%zu", f->line, f->column);
    if (b->n)
        dgm_buf_add_lit(b, ": ");
    if (f->is_warning)
        dgm_buf_add_lit(b, "warning: ");
    dgm_buf_add_str(b, f->what);
    if (f->pointer.n) {
        dgm_buf_add_lit(b, ", at ");
        dgm_buf_add_str(b, f->pointer);
    }
    if (f->todo.n) {
        dgm_buf_add_lit(b, ": ");
        dgm_buf_add_str(b, f->todo);
    }
}

/* ---- what differs ------------------------------------------------------------------------------------------- */

typedef struct differ {
    dgm_arena *arena;
    dgm_config_change *at;
    size_t n, cap;
    dgm_buf one, other;
} differ;

static void changed(differ *d, const dgm_at *at, bool live, dgm_config_action action)
{
    char pointer[256];
    if (d->n == d->cap) {
        size_t cap = d->cap ? 2 * d->cap : 8;
        d->at = dgm_arena_realloc(d->arena, d->at, d->cap * sizeof *d->at, cap * sizeof *d->at);
        d->cap = cap;
    }
    dgm_at_text(at, pointer, sizeof pointer);
    d->at[d->n++] =
        (dgm_config_change){dgm_arena_dup(d->arena, dgm_str_from(pointer)), live, action};
}

static bool same(differ *d, const dgm_config_row *row, const void *from, const void *to)
{
    dgm_buf_clear(&d->one);
    dgm_buf_clear(&d->other);
    dgm_config_put_value(&d->one, row, from, true);
    dgm_config_put_value(&d->other, row, to, true);
    return dgm_str_eq(dgm_buf_str(&d->one), dgm_buf_str(&d->other));
}

static void diff_rows(differ *d, const dgm_config_shape *shape, const void *from, const void *to,
                      const dgm_at *at);

static const dgm_config_agent *agent_by_id(const dgm_config_agents *list, dgm_str id)
{
    for (size_t i = 0; i < list->n; i++)
        if (dgm_str_eq(list->at[i].id, id))
            return &list->at[i];
    return NULL;
}

/* Agents are compared by id: they may be added and removed while the server runs. */
static void diff_agents(differ *d, const dgm_config_shape *agent, const dgm_config_agents *from,
                        const dgm_config_agents *to, const dgm_at *at)
{
    size_t n = d->n;
    for (size_t i = 0; i < from->n; i++)
        if (!agent_by_id(to, from->at[i].id))
            changed(d, DGM_AT(at, from->at[i].id), true, DGM_CONFIG_REMOVED);
    for (size_t i = 0; i < to->n; i++) {
        const dgm_config_agent *before = agent_by_id(from, to->at[i].id);
        if (before)
            diff_rows(d, agent, before, &to->at[i], DGM_AT_I(at, i));
        else
            changed(d, DGM_AT(at, to->at[i].id), true, DGM_CONFIG_ADDED);
    }
    if (d->n == n)
        changed(d, at, true, DGM_CONFIG_CHANGED); /* only their order */
}

static void diff_row(differ *d, const dgm_config_row *row, const void *from, const void *to,
                     const dgm_at *at)
{
    bool live = row->flags & DGM_CONFIG_LIVE;
    if (same(d, row, from, to))
        return;
    if (row->kind == DGM_CONFIG_OBJECT) {
        diff_rows(d, row->of, config_write_place(from, row), config_write_place(to, row), at);
    } else if (strcmp(row->name, "agents") == 0) {
        diff_agents(d, row->of, config_write_place(from, row), config_write_place(to, row), at);
    } else {
        changed(d, at, live, DGM_CONFIG_CHANGED);
    }
}

static void diff_rows(differ *d, const dgm_config_shape *shape, const void *from, const void *to,
                      const dgm_at *at)
{
    for (const dgm_config_row *row = shape->rows; row->name; row++)
        diff_row(d, row, from, to, DGM_AT(at, dgm_str_from(row->name)));
}

/* A token that is named by variable or file may be another one now. */
static bool same_secrets(const dgm_config *from, const dgm_config *to)
{
    for (size_t i = 0; i < from->tokens.n && i < to->tokens.n; i++)
        if (!dgm_str_eq(from->tokens.at[i].secret, to->tokens.at[i].secret))
            return false;
    return true;
}

size_t dgm_config_diff(dgm_arena *a, const dgm_config *from, const dgm_config *to,
                       dgm_config_change **ret_changes)
{
    differ d = {.arena = a};
    dgm_buf_init(&d.one, SIZE_MAX);
    dgm_buf_init(&d.other, SIZE_MAX);
    diff_rows(&d, &dgm_config_root, from, to, NULL);
    if (!same_secrets(from, to)) {
        bool told = false;
        for (size_t i = 0; i < d.n; i++)
            told |= dgm_str_is(d.at[i].pointer, "/tokens");
        if (!told)
            changed(&d, DGM_AT_LIT(NULL, "tokens"), true, DGM_CONFIG_CHANGED);
    }
    dgm_buf_done(&d.one);
    dgm_buf_done(&d.other);
    *ret_changes = d.at;
    return d.n;
}
