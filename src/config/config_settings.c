/*
 * config_settings.c - the settings of agent types: every mistake with its place, the JSON Schema, the docs.
 *
 * What a type may be set to is in the table of its backend (dgm_backend.settings). This file only connects
 * that table with the document that was read.
 */
#include "backend/backend.h"
#include "config_int.h"

#include <stdio.h>

/* ---- mistakes -------------------------------------------------------------------------------------------- */

typedef struct checker {
    dgm_arena *arena;
    dgm_config_findings *findings;
    const dgm_config_doc *doc;
    const dgm_backend *backend;
    const dgm_at *at;     /* of the agent */
    yyjson_val *agent;    /* as it was written */
    yyjson_val *settings; /* likewise; NULL if absent */
} checker;

static const char *setting_name_at(const void *rows, size_t i)
{
    return rows ? ((const dgm_setting *)rows)[i].name : NULL;
}

/* rel, whose first step has nothing above it, below base. */
static const dgm_at *at_below(dgm_arena *a, const dgm_at *base, const dgm_at *rel)
{
    if (!rel)
        return base;
    dgm_at *step = dgm_new(a, dgm_at);
    *step = *rel;
    step->up = at_below(a, base, rel->up);
    return step;
}

/* The value at this place, or the key if wants_key is set. NULL: no value. */
static yyjson_val *value_at(yyjson_val *root, const dgm_at *at, bool wants_key)
{
    yyjson_val *up = at && at->up ? value_at(root, at->up, false) : root, *key, *item;
    size_t i, n;
    if (!at || !up)
        return root;
    if (!at->key.p)
        return yyjson_arr_get(up, at->i);
    if (!wants_key)
        return dgm_json_get(up, at->key);
    yyjson_obj_foreach (up, i, n, key, item) {
        if (dgm_str_eq(dgm_json_str(key), at->key))
            return key;
    }
    return NULL;
}

static dgm_str list_settings(dgm_arena *a, const dgm_backend *b, const dgm_setting *rows)
{
    dgm_buf text;
    bool is_nested = rows != b->settings;
    if (!b->settings)
        return dgm_arena_printf(a, "remove it: agents of type %s have no settings", b->type);
    dgm_buf_init(&text, 1000);
    if (is_nested)
        dgm_buf_add_lit(&text, "allowed settings:");
    else
        dgm_buf_printf(&text, "settings of %s:", b->type);
    for (const dgm_setting *row = rows; row && row->name; row++)
        dgm_buf_printf(&text, "%s %s", row == rows ? "" : ",", row->name);
    if (b->wants_history && !is_nested)
        dgm_buf_add_lit(&text, ", history");
    dgm_str s = dgm_arena_dup(a, dgm_buf_str(&text));
    dgm_buf_done(&text);
    return s;
}

static void on_setting_fault(void *user, const dgm_setting_fault *fault)
{
    checker *c = user;
    const dgm_at *settings_at = DGM_AT_LIT(c->at, "settings");
    dgm_str todo = dgm_str_from(fault->todo);
    yyjson_val *v = !c->settings        ? NULL
                    : fault->is_missing ? value_at(c->settings, fault->at->up, false)
                                        : value_at(c->settings, fault->at, fault->is_unknown);
    if (v && dgm_config_mark_of(c->doc, v)->broken)
        return; /* a variable of it could not be replaced, which was reported */
    if (fault->is_unknown) {
        const char *nearest = dgm_config_nearest(fault->at->key, setting_name_at, fault->rows);
        todo = nearest ? dgm_arena_printf(c->arena, "did you mean \"%s\"?", nearest)
                       : list_settings(c->arena, c->backend, fault->rows);
    }
    if (!v)
        v = c->settings ? c->settings : c->agent;
    dgm_config_find(c->findings,
                    dgm_config_said_by(c->doc, v, at_below(c->arena, settings_at, fault->at)), todo,
                    "%s", fault->what);
}

bool dgm_config_check_settings(const dgm_config_agent *a, const dgm_config_doc *doc,
                               yyjson_val *written, const dgm_at *at, dgm_config_findings *f)
{
    checker c = {.arena = f->arena,
                 .findings = f,
                 .doc = doc,
                 .backend = dgm_backend_by_type(a->type),
                 .at = at,
                 .agent = written,
                 .settings = dgm_json_get(written, DGM_STR("settings"))};
    if (!c.backend)
        return false; /* of an unknown type: that was reported */
    if (c.settings && !yyjson_is_obj(c.settings) && !yyjson_is_null(c.settings))
        return false; /* likewise */
    if (c.settings && yyjson_is_null(c.settings))
        c.settings = NULL;
    return dgm_settings_check(a->settings, c.backend->settings, NULL, on_setting_fault, &c) == 0;
}

/* ---- printing ---------------------------------------------------------------------------------------------- */

static const dgm_setting *setting_of(const dgm_setting *rows, dgm_str name)
{
    for (; rows && rows->name; rows++) {
        if (dgm_str_eq(name, dgm_str_from(rows->name)))
            return rows;
    }
    return NULL;
}

static void put_masked(dgm_buf *b, yyjson_val *env)
{
    yyjson_val *key, *item;
    size_t i, n;
    dgm_buf_add_char(b, '{');
    yyjson_obj_foreach (env, i, n, key, item) {
        if (i)
            dgm_buf_add_char(b, ',');
        dgm_json_put_str(b, dgm_json_str(key));
        dgm_buf_add_lit(b, ":\"***\"");
    }
    dgm_buf_add_char(b, '}');
}

static void put_members(dgm_buf *b, yyjson_val *object, const dgm_setting *rows);

/* row: NULL if there is no such setting. */
static void put_member(dgm_buf *b, yyjson_val *v, const dgm_setting *row)
{
    yyjson_val *item;
    size_t i, n;
    bool is_list = row && (row->kind == DGM_SETTING_LIST || row->kind == DGM_SETTING_VARIANTS);
    if (row && row->kind == DGM_SETTING_ENV && yyjson_is_obj(v)) {
        put_masked(b, v);
    } else if (row && row->of && yyjson_is_obj(v)) {
        put_members(b, v, row->of);
    } else if (is_list && yyjson_is_arr(v)) {
        dgm_buf_add_char(b, '[');
        yyjson_arr_foreach (v, i, n, item) {
            if (i)
                dgm_buf_add_char(b, ',');
            put_member(b, item, row);
        }
        dgm_buf_add_char(b, ']');
    } else {
        dgm_json_put(b, v);
    }
}

static void put_members(dgm_buf *b, yyjson_val *object, const dgm_setting *rows)
{
    yyjson_val *key, *item;
    size_t i, n;
    dgm_buf_add_char(b, '{');
    yyjson_obj_foreach (object, i, n, key, item) {
        if (i)
            dgm_buf_add_char(b, ',');
        dgm_json_put_str(b, dgm_json_str(key));
        dgm_buf_add_char(b, ':');
        put_member(b, item, setting_of(rows, dgm_json_str(key)));
    }
    dgm_buf_add_char(b, '}');
}

void dgm_config_put_settings(dgm_buf *b, const dgm_config_agent *a)
{
    const dgm_backend *backend = dgm_backend_by_type(a->type);
    if (a->settings)
        put_members(b, (yyjson_val *)(uintptr_t)a->settings, backend ? backend->settings : NULL);
}

/* ---- JSON Schema ------------------------------------------------------------------------------------------ */

static void put_choices(dgm_buf *b, const char *choices)
{
    for (const char *p = choices; *p;) {
        size_t n = strcspn(p, "|");
        dgm_json_put_str(b, (dgm_str){p, n});
        p += n;
        if (*p == '|') {
            dgm_buf_add_char(b, ',');
            p++;
        }
    }
}

#define ANY_TEXT "{\"type\":[\"string\",\"number\",\"boolean\"]}"
#define OR_VARIABLE ",{\"$ref\":\"#/$defs/variable\"}"

static void put_settings_object(dgm_buf *b, const dgm_setting *rows, bool wants_history);

/* An entry of a list of alternatives is an object with one member. */
static void put_variants(dgm_buf *b, const dgm_setting *rows)
{
    dgm_buf_add_lit(b, "{\"type\":\"string\"},{\"minProperties\":1,\"maxProperties\":1,");
    put_settings_object(b, rows, false);
    dgm_buf_add_char(b, '}');
}

/* The alternatives of an anyOf. */
static void put_setting_types(dgm_buf *b, const dgm_setting *row)
{
    switch (row->kind) {
    case DGM_SETTING_STR: dgm_buf_add_lit(b, "{\"type\":\"string\"}"); break;
    case DGM_SETTING_NUMBER:
    case DGM_SETTING_INT:
        dgm_buf_printf(b, "{\"type\":\"%s\",\"minimum\":%g,\"maximum\":%g}" OR_VARIABLE,
                       row->kind == DGM_SETTING_INT ? "integer" : "number", row->min, row->max);
        break;
    case DGM_SETTING_CHOICE:
        if (strcmp(row->choices, "false|true") == 0)
            dgm_buf_add_lit(b, "{\"type\":\"boolean\"},");
        dgm_buf_add_lit(b, "{\"enum\":[");
        put_choices(b, row->choices);
        dgm_buf_add_lit(b, "]}" OR_VARIABLE);
        break;
    case DGM_SETTING_COMMAND:
        dgm_buf_add_lit(
            b, "{\"type\":\"string\"},{\"type\":\"array\",\"minItems\":1,\"items\":" ANY_TEXT "}");
        break;
    case DGM_SETTING_ENV:
        dgm_buf_add_lit(b, "{\"type\":\"object\",\"additionalProperties\":" ANY_TEXT "}");
        break;
    case DGM_SETTING_NAMES:
        if (*row->choices) {
            dgm_buf_add_lit(b, "{\"enum\":[");
            put_choices(b, row->choices);
            dgm_buf_add_lit(b, "]},");
        }
        dgm_buf_add_lit(b, "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}" OR_VARIABLE);
        break;
    case DGM_SETTING_OBJECT:
        dgm_buf_add_char(b, '{');
        put_settings_object(b, row->of, false);
        dgm_buf_add_char(b, '}');
        break;
    case DGM_SETTING_LIST:
        dgm_buf_printf(b, "{\"type\":\"array\",\"maxItems\":%g,\"items\":{", row->max);
        put_settings_object(b, row->of, false);
        dgm_buf_add_lit(b, "}}");
        break;
    case DGM_SETTING_VARIANTS:
        dgm_buf_printf(b, "{\"type\":\"array\",\"maxItems\":%g,\"items\":{\"anyOf\":[", row->max);
        put_variants(b, row->of);
        dgm_buf_add_lit(b, "]}}");
        break;
    case DGM_SETTING_JSON: dgm_buf_add_lit(b, "{\"type\":\"object\"}"); break;
    }
}

static void put_setting_property(dgm_buf *b, const dgm_setting *row)
{
    dgm_json_put_str(b, dgm_str_from(row->name));
    dgm_buf_add_lit(b, ":{\"description\":");
    dgm_json_put_str(b, dgm_str_from(row->about));
    dgm_buf_add_lit(b, ",\"anyOf\":[");
    put_setting_types(b, row);
    if (!row->required)
        dgm_buf_add_lit(b, ",{\"type\":\"null\"}");
    dgm_buf_add_lit(b, "]}");
}

static void put_required(dgm_buf *b, const dgm_setting *rows)
{
    bool any = false;
    for (; rows && rows->name; rows++) {
        if (!rows->required)
            continue;
        dgm_buf_add_str(b, any ? DGM_STR(",") : DGM_STR(",\"required\":["));
        dgm_json_put_str(b, dgm_str_from(rows->name));
        any = true;
    }
    if (any)
        dgm_buf_add_char(b, ']');
}

/* The members of a schema, without the braces. */
static void put_settings_object(dgm_buf *b, const dgm_setting *rows, bool wants_history)
{
    dgm_buf_add_lit(b, "\"type\":\"object\",\"additionalProperties\":false");
    put_required(b, rows);
    dgm_buf_add_lit(b, ",\"properties\":{");
    for (const dgm_setting *row = rows; row && row->name; row++) {
        if (row != rows)
            dgm_buf_add_char(b, ',');
        put_setting_property(b, row);
    }
    if (wants_history)
        dgm_config_put_property(b, dgm_config_history_row);
    dgm_buf_add_char(b, '}');
}

void dgm_config_put_settings_defs(dgm_buf *b)
{
    for (size_t i = 0; dgm_backends[i]; i++) {
        dgm_buf_printf(b, ",\"%s settings\":{", dgm_backends[i]->type);
        put_settings_object(b, dgm_backends[i]->settings, dgm_backends[i]->wants_history);
        dgm_buf_add_char(b, '}');
    }
}

static bool has_required(const dgm_setting *rows)
{
    for (; rows && rows->name; rows++) {
        if (rows->required)
            return true;
    }
    return false;
}

void dgm_config_put_settings_rules(dgm_buf *b)
{
    dgm_buf_add_lit(b, ",\"allOf\":[");
    for (size_t i = 0; dgm_backends[i]; i++) {
        bool needed = has_required(dgm_backends[i]->settings);
        dgm_buf_printf(
            b,
            "%s{\"if\":{\"required\":[\"type\"],\"properties\":{\"type\":{\"enum\":[\"%s\"]}}},"
            "\"then\":{%s\"properties\":{\"settings\":{\"anyOf\":[{\"$ref\":\"#/$defs/%s"
            " settings\"}%s]}}}}",
            i ? "," : "", dgm_backends[i]->type, needed ? "\"required\":[\"settings\"]," : "",
            dgm_backends[i]->type, needed ? "" : ",{\"type\":\"null\"}");
    }
    dgm_buf_add_char(b, ']');
}

/* ---- Markdown ------------------------------------------------------------------------------------------------ */

static bool is_value(const char *def) /* and not a sentence */
{
    return !strchr(def, ' ');
}

/* prefix: of the names of nested settings, "limits." */
static void put_docs_rows(dgm_buf *b, const dgm_setting *rows, const char *prefix)
{
    for (const dgm_setting *row = rows; row && row->name; row++) {
        const char *def = row->required ? "required" : row->def ? row->def : "";
        const char *quote = row->required || !row->def || !is_value(def) ? "" : "`";
        char below[200];
        bool is_list = row->kind == DGM_SETTING_LIST || row->kind == DGM_SETTING_VARIANTS;
        dgm_buf_printf(b, "| `%s%s` | %s | %s%s%s |\n", prefix, row->name, row->about, quote, def,
                       quote);
        snprintf(below, sizeof below, "%s%s%s.", prefix, row->name, is_list ? "[]" : "");
        put_docs_rows(b, row->of, below);
    }
}

bool dgm_config_put_settings_docs(dgm_buf *b, dgm_str type)
{
    const dgm_backend *backend = dgm_backend_by_type(type);
    if (!backend || !backend->settings)
        return false;
    dgm_buf_add_lit(b, "| setting | about | default |\n|---|---|---|\n");
    put_docs_rows(b, backend->settings, "");
    if (backend->wants_history)
        dgm_buf_add_lit(b, "| `history` | the same as `history` of the agent: how much of the "
                           "conversation it gets with every message | `50` |\n");
    return true;
}
