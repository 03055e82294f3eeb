/*
 * config_schema.c - the table as a JSON Schema for editors, and as Markdown for people.
 *
 * The schema says what config_read.c holds a file to, as far as a schema can: whatever may come from a
 * variable may also be text with ${...} in it.
 */
#include "config_int.h"

#include <stdio.h>

#define MAX_SHAPES 32
/* A name, not an address: `dragoman schema` prints the schema of the program that reads the file. */
#define DGM_CONFIG_SCHEMA_ID "urn:dragoman:config:" DGM_VERSION

/* Each shape once, in the order they are met. */
typedef struct shapes {
    const dgm_config_shape *at[MAX_SHAPES];
    bool reloads[MAX_SHAPES]; /* a setting of it may be reloaded without the others */
    size_t n;
} shapes;

/* Settings in it are taken over each for itself. */
static bool parts_reload(const dgm_config_row *row)
{
    return row->kind == DGM_CONFIG_OBJECT ||
           (row->kind == DGM_CONFIG_LIST && !(row->flags & DGM_CONFIG_LIVE));
}

static void collect(shapes *s, const dgm_config_shape *shape, bool reloads)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->at[i] == shape)
            return;
    if (s->n == MAX_SHAPES)
        return;
    s->reloads[s->n] = reloads;
    s->at[s->n++] = shape;
    for (const dgm_config_row *row = shape->rows; row->name; row++)
        if (row->of)
            collect(s, row->of, reloads && parts_reload(row));
}

/* ---- JSON Schema -------------------------------------------------------------------------------------------- */

static void config_schema_put_key(dgm_buf *b, const char *key)
{
    if (b->n && b->p[b->n - 1] != '{' && b->p[b->n - 1] != ',')
        dgm_buf_add_char(b, ',');
    dgm_json_put_str(b, dgm_str_from(key));
    dgm_buf_add_char(b, ':');
}

static void config_schema_put_member(dgm_buf *b, const char *key, const char *text)
{
    config_schema_put_key(b, key);
    dgm_json_put_str(b, dgm_str_from(text));
}

static void put_def_ref(dgm_buf *b, const dgm_config_shape *shape)
{
    char ref[80];
    snprintf(ref, sizeof ref, "#/$defs/%s", shape->title);
    config_schema_put_member(b, "$ref", ref);
}

static void put_words(dgm_buf *b, const dgm_config_row *row)
{
    config_schema_put_key(b, "enum");
    dgm_buf_add_char(b, '[');
    for (size_t i = 0; row->values[i]; i++) {
        if (i)
            dgm_buf_add_char(b, ',');
        dgm_json_put_str(b, dgm_str_from(row->values[i]));
        if (row->flags & DGM_CONFIG_NUMBER && dgm_config_is_number(dgm_str_from(row->values[i])))
            dgm_buf_printf(b, ",%s", row->values[i]);
    }
    dgm_buf_add_char(b, ']');
}

/* What one value is, without the braces. */
static void put_text_type(dgm_buf *b, const dgm_config_row *row)
{
    if (row->values) {
        put_words(b, row);
        return;
    }
    if (row->flags & DGM_CONFIG_NUMBER)
        dgm_buf_add_lit(b, "\"type\":[\"string\",\"number\"]");
    else
        config_schema_put_member(b, "type", "string");
    if (row->format && row->format->pattern) {
        char pattern[200];
        bool may_be_empty = row->def && strcmp(row->def, "\"\"") == 0;
        snprintf(pattern, sizeof pattern, "%s|[$][{]%s", row->format->pattern,
                 may_be_empty ? "|^$" : "");
        config_schema_put_member(b, "pattern", pattern);
    }
}

static const dgm_config_row *lead_of(const dgm_config_row *object)
{
    const dgm_config_row *row = object->of->rows;
    while (strcmp(row->name, object->lead) != 0)
        row++;
    return row;
}

static bool env_may_be(const dgm_config_row *row)
{
    return row->kind == DGM_CONFIG_SWITCH || row->kind == DGM_CONFIG_INT || row->values;
}

static void put_type(dgm_buf *b, const dgm_config_row *row)
{
    switch (row->kind) {
    case DGM_CONFIG_SWITCH: dgm_buf_add_lit(b, "\"enum\":[true,false,\"on\",\"off\"]"); break;
    case DGM_CONFIG_INT:
        dgm_buf_printf(b, "\"type\":\"integer\",\"minimum\":%lld,\"maximum\":%lld",
                       (long long)row->min, (long long)row->max);
        break;
    case DGM_CONFIG_TEXT:
    case DGM_CONFIG_NAME: put_text_type(b, row); break;
    case DGM_CONFIG_TEXTS:
    case DGM_CONFIG_NAMES:
        dgm_buf_printf(b, "\"type\":\"array\",\"minItems\":%lld",
                       (long long)(row->kind == DGM_CONFIG_NAMES ? 1 : row->min));
        if (row->max)
            dgm_buf_printf(b, ",\"maxItems\":%lld", (long long)row->max);
        dgm_buf_add_lit(b, ",\"items\":{");
        if (row->values) {
            dgm_buf_add_lit(b, "\"anyOf\":[{");
            put_words(b, row);
            dgm_buf_add_lit(b, "},{\"$ref\":\"#/$defs/variable\"}]");
        } else {
            put_text_type(b, row);
        }
        dgm_buf_add_char(b, '}');
        break;
    case DGM_CONFIG_LIST:
        if (row->lead)
            dgm_buf_add_lit(b, "\"anyOf\":[{");
        dgm_buf_printf(b, "\"type\":\"array\",\"minItems\":%lld,\"maxItems\":%lld,\"items\":{",
                       (long long)row->min, (long long)row->max);
        put_def_ref(b, row->of);
        dgm_buf_add_char(b, '}');
        if (row->lead) {
            dgm_buf_add_lit(b, "},{\"type\":\"object\",\"additionalProperties\":{");
            put_def_ref(b, row->of);
            dgm_buf_add_lit(b, "}}]");
        }
        break;
    case DGM_CONFIG_OBJECT:
        if (row->lead) {
            dgm_buf_add_lit(b, "\"anyOf\":[{");
            put_def_ref(b, row->of);
            dgm_buf_add_lit(b, "},{");
            put_type(b, lead_of(row));
            dgm_buf_add_lit(b, "}]");
            break;
        }
        put_def_ref(b, row->of);
        break;
    case DGM_CONFIG_SHAPED: put_def_ref(b, row->of); break;
    case DGM_CONFIG_JSON: config_schema_put_member(b, "type", "object"); break;
    case DGM_CONFIG_ARRAY: config_schema_put_member(b, "type", "array"); break;
    }
}

void dgm_config_put_property(dgm_buf *b, const dgm_config_row *row)
{
    config_schema_put_key(b, row->name);
    dgm_buf_add_char(b, '{');
    config_schema_put_member(b, "description", row->about);
    if (row->def) {
        config_schema_put_key(b, "default");
        dgm_buf_add_str(b, dgm_str_from(row->def));
    }
    /* null is what an empty `name:` reads as: the default */
    bool env = env_may_be(row) && row->kind != DGM_CONFIG_NAMES;
    bool nullable = !(row->flags & DGM_CONFIG_REQUIRED);
    if (env || nullable) {
        config_schema_put_key(b, "anyOf");
        dgm_buf_add_lit(b, "[{");
        put_type(b, row);
        dgm_buf_add_str(b, env ? DGM_STR("},{\"$ref\":\"#/$defs/variable\"}") : DGM_STR("}"));
        dgm_buf_add_str(b, nullable ? DGM_STR(",{\"type\":\"null\"}]") : DGM_STR("]"));
    } else {
        dgm_buf_add_char(b, ',');
        put_type(b, row);
    }
    dgm_buf_add_char(b, '}');
}

static void put_shape(dgm_buf *b, const dgm_config_shape *shape)
{
    bool comma = false;
    if (shape->about[0])
        config_schema_put_member(b, "description", shape->about);
    config_schema_put_member(b, "type", "object");
    dgm_buf_add_lit(b, ",\"additionalProperties\":false");
    for (const dgm_config_row *row = shape->rows; row->name; row++) {
        if (!(row->flags & DGM_CONFIG_REQUIRED))
            continue;
        if (!comma)
            dgm_buf_add_lit(b, ",\"required\":[");
        else
            dgm_buf_add_char(b, ',');
        comma = true;
        dgm_json_put_str(b, dgm_str_from(row->name));
    }
    if (comma)
        dgm_buf_add_char(b, ']');
    dgm_buf_add_lit(b, ",\"properties\":{");
    for (const dgm_config_row *row = shape->rows; row->name; row++)
        dgm_config_put_property(b, row);
    dgm_buf_add_char(b, '}');
}

void dgm_config_put_schema(dgm_buf *b)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    shapes all = {0};
    dgm_buf s;
    dgm_buf_init(&s, SIZE_MAX);
    collect(&all, &dgm_config_root, true);
    dgm_buf_add_lit(&s, "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\","
                        "\"$id\":\"" DGM_CONFIG_SCHEMA_ID "\",\"title\":\"dragoman.yaml\",");
    dgm_buf_add_lit(&s,
                    "\"$defs\":{\"variable\":{\"description\":\"an environment variable,"
                    " ${NAME} or ${NAME:-default}\",\"type\":\"string\",\"pattern\":\"[$][{]\"}");
    for (size_t i = 1; i < all.n; i++) {
        config_schema_put_key(&s, all.at[i]->title);
        dgm_buf_add_char(&s, '{');
        put_shape(&s, all.at[i]);
        if (all.at[i]->size == sizeof(dgm_config_agent))
            dgm_config_put_settings_rules(&s);
        dgm_buf_add_char(&s, '}');
    }
    dgm_config_put_settings_defs(&s);
    dgm_buf_add_lit(&s, "}");
    put_shape(&s, &dgm_config_root);
    dgm_buf_add_lit(
        &s, ",\"patternProperties\":{\"^x-\":{\"description\":\"the file's own, for anchors\"}}}");
    dgm_config_put_pretty(b, dgm_json_parse_trusted(a, dgm_buf_str(&s)), 0);
    dgm_buf_add_char(b, '\n');
    dgm_buf_done(&s);
}

/* ---- Markdown --------------------------------------------------------------------------------------------------- */

static void put_words_md(dgm_buf *b, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        dgm_buf_printf(b, "%s`%s`", i ? ", " : "", words[i]);
}

static void put_type_md(dgm_buf *b, const dgm_config_row *row)
{
    switch (row->kind) {
    case DGM_CONFIG_SWITCH: dgm_buf_add_lit(b, "`true`, `false`"); break;
    case DGM_CONFIG_INT:
        dgm_buf_printf(b, "%lld to %lld", (long long)row->min, (long long)row->max);
        break;
    case DGM_CONFIG_TEXT:
    case DGM_CONFIG_NAME:
        if (row->values)
            put_words_md(b, row->values);
        else
            dgm_buf_add_str(b, row->format ? dgm_str_from(row->format->want) : DGM_STR("text"));
        break;
    case DGM_CONFIG_TEXTS:
        dgm_buf_printf(b, "list: %s", row->format ? row->format->want : "text");
        break;
    case DGM_CONFIG_NAMES:
        dgm_buf_add_lit(b, "list of ");
        put_words_md(b, row->values);
        break;
    case DGM_CONFIG_LIST:
        dgm_buf_printf(b, "list, see [%s](#", row->of->title);
        for (const char *p = row->of->title; *p; p++)
            dgm_buf_add_char(b, *p == ' ' ? '-' : (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p));
        dgm_buf_add_lit(b, ")");
        break;
    case DGM_CONFIG_OBJECT:
    case DGM_CONFIG_SHAPED:
        dgm_buf_printf(b, "see [%s](#", row->of->title);
        for (const char *p = row->of->title; *p; p++)
            dgm_buf_add_char(b, *p == ' ' ? '-' : (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p));
        dgm_buf_add_lit(b, ")");
        break;
    case DGM_CONFIG_JSON: dgm_buf_add_lit(b, "object"); break;
    case DGM_CONFIG_ARRAY: dgm_buf_add_lit(b, "list"); break;
    }
}

static void put_default_md(dgm_buf *b, const dgm_config_row *row)
{
    if (row->flags & DGM_CONFIG_REQUIRED)
        dgm_buf_add_lit(b, "needed");
    else if (row->def && strcmp(row->def, "\"\"") != 0)
        dgm_buf_printf(b, "`%s`", row->def);
}

static bool is_in_docs(const dgm_config_row *row, bool compat)
{
    return compat == ((row->flags & DGM_CONFIG_COMPAT) != 0);
}

/* The table of one shape; nothing if it has no row of this section. */
static void put_shape_md(dgm_buf *b, const dgm_config_shape *shape, bool reload, bool compat)
{
    size_t n = 0, n_others = 0;
    for (const dgm_config_row *row = shape->rows; row->name; row++) {
        n += is_in_docs(row, compat);
        n_others += !is_in_docs(row, compat);
    }
    if (!n)
        return;
    dgm_buf_printf(b, "### %s%s\n\n", shape->title, compat ? ": compatibility" : "");
    if (shape->about[0] && !compat)
        dgm_buf_printf(b, "%s%s\n\n", shape->about,
                       n_others ? " More: [compatibility switches](#compatibility-switches)." : "");
    dgm_buf_printf(b, "| setting | about | values | default |%s\n|---|---|---|---|%s\n",
                   reload ? " reload |" : "", reload ? "---|" : "");
    for (const dgm_config_row *row = shape->rows; row->name; row++) {
        if (!is_in_docs(row, compat))
            continue;
        dgm_buf_printf(b, "| `%s` | %s | ", row->name, row->about);
        put_type_md(b, row);
        dgm_buf_add_lit(b, " | ");
        put_default_md(b, row);
        dgm_buf_add_lit(b, " |");
        if (reload && parts_reload(row))
            dgm_buf_add_lit(b, " |");
        else if (reload)
            dgm_buf_add_str(b, row->flags & DGM_CONFIG_LIVE ? DGM_STR(" live |")
                                                            : DGM_STR(" restart |"));
        dgm_buf_add_char(b, '\n');
    }
    dgm_buf_add_char(b, '\n');
}

void dgm_config_put_docs(dgm_buf *b)
{
    shapes all = {0};
    collect(&all, &dgm_config_root, true);
    for (size_t i = 0; i < all.n; i++)
        put_shape_md(b, all.at[i], all.reloads[i], false);
    dgm_buf_add_lit(b, "## Compatibility switches\n"
                       "\n"
                       "For clients, agents and test kits that need another behaviour than the "
                       "default. Most servers do not use them.\n"
                       "\n");
    for (size_t i = 0; i < all.n; i++)
        put_shape_md(b, all.at[i], all.reloads[i], true);
    dgm_buf_add_lit(
        b, "## Profiles\n\nA profile is a named list of the settings above. The settings of the"
           " file have priority.\n");
    for (const dgm_config_profile_row *p = dgm_config_profiles; p->name; p++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_buf_printf(b, "\n`%s`: %s\n\n```json\n", p->name, p->about);
        dgm_config_put_pretty(b, dgm_json_parse_trusted(a, dgm_str_from(p->json)), 0);
        dgm_buf_add_lit(b, "\n```\n");
    }
    dgm_buf_add_lit(
        b, "\n## Tenants\n\nThe name of a tenant is the first part of a path. These names are not"
           " allowed (in any case): ");
    put_words_md(b, dgm_config_reserved_tenants);
    dgm_buf_add_lit(b, ".\n");
}
