/*
 * config_yaml.c - YAML or JSON into one JSON document with the places of its values.
 *
 * YAML becomes a tree of nodes first (so that an alias can be written where it is used), then JSON text,
 * then a yyjson document: whoever reads it sees no difference to a JSON file. Plain scalars are typed as
 * in YAML 1.2's core schema, so `on` and `no` are text; numbers keep their text. What is left out on
 * purpose: merge keys, tags, several documents in a file.
 *
 * ${NAME} is replaced behind the parser: a variable can change a value, never the structure.
 */
#include "base/limits.h"
#include "base/map.h"
#include "config_int.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <yaml.h>

typedef struct node node;
struct node {
    enum { SCALAR, SEQUENCE, MAPPING, ALIAS } kind;
    dgm_str text;       /* SCALAR */
    bool plain;         /* SCALAR: neither quotes nor !!str say that it is text */
    bool expanded, env; /* SCALAR: text has its variables replaced; there were some */
    bool open;          /* its end was not met yet: an alias to it would have no end */
    uint32_t line, column;
    node *target;              /* ALIAS */
    node *first, *last, *next; /* of a MAPPING: key, value, key, value */
};

struct anchor {
    dgm_str name;
    node *node;
    struct anchor *next;
};

typedef struct reader {
    dgm_config_doc *doc;
    dgm_arena *arena;
    dgm_config_findings *findings;
    const char *(*env)(const char *name);
    yaml_parser_t yaml;
    struct anchor *anchors; /* the latest first: a name may be given again */
    dgm_buf json;
    dgm_config_mark *marks;
    size_t n_marks, cap_marks;
    bool failed; /* reported already: no document */
} reader;

/* ---- findings ---------------------------------------------------------------------------------------- */

/* A pointer as long as the document nests; the fixed one of dgm_at_text would be cut. */
static dgm_str pointer_of(dgm_arena *a, const dgm_at *at)
{
    char text[256];
    dgm_at_text(at, text, sizeof text);
    return dgm_arena_dup(a, dgm_str_from(text));
}

void dgm_config_find(dgm_config_findings *f, dgm_config_said where, dgm_str todo, const char *what,
                     ...)
{
    char text[400];
    va_list args;
    if (f->n > DGM_MAX_CONFIG_FINDINGS || (f->n == DGM_MAX_CONFIG_FINDINGS && where.is_warning))
        return;
    f->n_errors += !where.is_warning;
    if (f->n == f->cap) {
        size_t cap = f->cap ? 2 * f->cap : 8;
        f->at = dgm_arena_realloc(f->arena, f->at, f->cap * sizeof *f->at, cap * sizeof *f->at);
        f->cap = cap;
    }
    if (f->n == DGM_MAX_CONFIG_FINDINGS) {
        f->at[f->n++] = (dgm_config_finding){
            .file = where.doc ? where.doc->file : (dgm_str){0},
            .pointer = DGM_STR(""),
            .what = DGM_STR("there are more errors than are listed here"),
            .todo = DGM_STR("correct these first, then check again"),
        };
        return;
    }
    va_start(args, what);
    vsnprintf(text, sizeof text, what, args);
    va_end(args);
    f->at[f->n++] = (dgm_config_finding){
        .file = where.doc ? where.doc->file : (dgm_str){0},
        .line = where.line,
        .column = where.column,
        .pointer = pointer_of(f->arena, where.at),
        .what = dgm_arena_dup(f->arena, dgm_str_from(text)),
        .todo = dgm_arena_dup(f->arena, todo),
        .is_warning = where.is_warning,
    };
}

const dgm_config_mark *dgm_config_mark_of(const dgm_config_doc *doc, const yyjson_val *v)
{
    static const dgm_config_mark nowhere;
    if (!doc->marks || !v || v < doc->root || v >= doc->root + doc->n_marks)
        return &nowhere;
    return &doc->marks[v - doc->root];
}

dgm_config_said dgm_config_said_by(const dgm_config_doc *doc, const yyjson_val *v, const dgm_at *at)
{
    const dgm_config_mark *m = dgm_config_mark_of(doc, v);
    return (dgm_config_said){.doc = doc, .line = m->line, .column = m->column, .at = at};
}

const char *dgm_config_type(const yyjson_val *v)
{
    return yyjson_is_str((yyjson_val *)(uintptr_t)v) ? "text" : dgm_json_type(v);
}

static dgm_config_said at_mark(const reader *r, size_t line, size_t column, const dgm_at *at)
{
    return (dgm_config_said){.doc = r->doc, .line = line, .column = column, .at = at};
}

/* Line and column of a byte, in characters. */
static dgm_config_said at_byte(const reader *r, dgm_str text, size_t pos)
{
    size_t line = 1, column = 1;
    for (size_t i = 0; i < pos && i < text.n; i++) {
        if (text.p[i] == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)text.p[i] & 0xC0) != 0x80) {
            column++;
        }
    }
    return at_mark(r, line, column, NULL);
}

/* ---- ${NAME} -------------------------------------------------------------------------------------------- */

static size_t name_length(dgm_str s)
{
    size_t n = 0;
    while (n < s.n && (s.p[n] == '_' || isalpha((unsigned char)s.p[n]) ||
                       (n && isdigit((unsigned char)s.p[n]))))
        n++;
    return n;
}

/* Values of tokens are secret; what is below x-... may be used there by an alias. */
static bool is_secret_place(const dgm_at *at)
{
    while (at && at->up)
        at = at->up;
    return at && at->key.p &&
           (dgm_str_is(at->key, "tokens") || dgm_str_starts(at->key, DGM_STR("x-")));
}

static void store_secret_name(reader *r, dgm_str name)
{
    dgm_config_doc *doc = r->doc;
    if (doc->secret_env.n == doc->secret_env_cap) {
        size_t cap = doc->secret_env_cap ? 2 * doc->secret_env_cap : 8;
        dgm_str *larger = dgm_new_n(r->arena, dgm_str, cap);
        if (doc->secret_env.n)
            memcpy(larger, doc->secret_env.at, doc->secret_env.n * sizeof *larger);
        doc->secret_env.at = larger;
        doc->secret_env_cap = cap;
    }
    doc->secret_env.at[doc->secret_env.n++] = name;
}

/* One ${...} whose `${` begins s. Returns its length, 0 when it was wrong (and reported). */
static size_t expand_one(reader *r, dgm_str s, dgm_config_said where, dgm_buf *out)
{
    const char *end = memchr(s.p, '}', s.n), *value = NULL;
    dgm_str inside = {s.p + 2, end ? (size_t)(end - s.p) - 2 : 0};
    size_t n = name_length(inside);
    dgm_str rest = {inside.p + n, inside.n - n};
    bool has_default = dgm_str_starts(rest, DGM_STR(":-"));
    if (!end || !n || (rest.n && !has_default)) {
        dgm_config_find(r->findings, where,
                        DGM_STR("write ${NAME} or ${NAME:-default}; $${ is a plain ${"),
                        "this ${ does not name a variable");
        return 0;
    }
    dgm_str name = dgm_arena_dup(r->arena, (dgm_str){inside.p, n});
    value = r->env(name.p);
    if (is_secret_place(where.at))
        store_secret_name(r, name);
    if ((!value || !*value) && has_default) {
        dgm_buf_add(out, rest.p + 2, rest.n - 2);
    } else if (!value) {
        dgm_config_find(r->findings, where,
                        dgm_arena_printf(r->arena, "set it, or write ${%s:-default}", name.p),
                        "the environment has no variable %s", name.p);
        return 0;
    } else if (strlen(value) > DGM_MAX_CONFIG_ENV_BYTES) {
        dgm_config_find(r->findings, where, DGM_STR("put it into a file"),
                        "the variable %s is longer than config_env_bytes (%zu)", name.p,
                        (size_t)DGM_MAX_CONFIG_ENV_BYTES);
        return 0;
    } else if (dgm_utf8_check(dgm_str_from(value)) != strlen(value)) {
        dgm_config_find(r->findings, where, DGM_STR("set it to UTF-8 text"),
                        "the variable %s is not UTF-8", name.p);
        return 0;
    } else {
        dgm_buf_add_str(out, dgm_str_from(value));
    }
    return (size_t)(end - s.p) + 1;
}

/* The text with its variables replaced, the same text if it has no variables; absent, and reported, when
 * that cannot be done. */
static dgm_str expand(reader *r, dgm_str s, dgm_config_said where, bool *ret_changed)
{
    bool failed = false;
    dgm_buf out;
    *ret_changed = false;
    if (!r->env || !s.n || !memchr(s.p, '$', s.n))
        return s;
    dgm_buf_init(&out, DGM_MAX_CONFIG_BYTES);
    for (size_t i = 0; i < s.n;) {
        dgm_str rest = {s.p + i, s.n - i};
        if (dgm_str_starts(rest, DGM_STR("$${"))) {
            dgm_buf_add_lit(&out, "${");
            i += 3;
        } else if (dgm_str_starts(rest, DGM_STR("${"))) {
            size_t n = expand_one(r, rest, where, &out);
            *ret_changed = true;
            failed |= n == 0;
            i += n ? n : 2; /* there may be more to tell */
        } else {
            dgm_buf_add_char(&out, s.p[i++]);
        }
    }
    if (out.over) {
        dgm_config_find(r->findings, where, DGM_STR("put it into a file"),
                        "with its variables this is longer than config_bytes (%zu)",
                        (size_t)DGM_MAX_CONFIG_BYTES);
        failed = true;
    }
    s = failed ? (dgm_str){0} : dgm_arena_dup(r->arena, dgm_buf_str(&out));
    dgm_buf_done(&out);
    return s;
}

/* ---- YAML into nodes -------------------------------------------------------------------------------------- */

static void complain_of_syntax(reader *r, dgm_str text)
{
    const yaml_parser_t *y = &r->yaml;
    dgm_str todo = DGM_STR(
        "check that the line above is complete and that lists and maps are indented with spaces");
    if (y->error == YAML_READER_ERROR) {
        dgm_config_find(r->findings, at_byte(r, text, y->problem_offset),
                        DGM_STR("remove it, or write it as an escape in double quotes"), "%s",
                        y->problem ? y->problem : "invalid character");
        return;
    }
    size_t line = y->problem_mark.line, column = y->problem_mark.column;
    const char *p = text.p, *end = text.p + text.n;
    for (size_t l = 0; p < end && l < line; p++)
        l += *p == '\n';
    if (column < (size_t)(end - p) && p[column] == '\t') {
        dgm_config_find(r->findings, at_mark(r, line + 1, column + 1, NULL),
                        DGM_STR("indent with spaces"), "a tab is used for indentation");
        return;
    }
    const char *eol = memchr(p, '\n', (size_t)(end - p));
    dgm_str found = {p, (size_t)((eol ? eol : end) - p)};
    for (; found.n; found.p++, found.n--)
        if (dgm_str_starts(found, DGM_STR("${")) && y->context && strstr(y->context, "flow"))
            todo = DGM_STR("within {...} and [...] put \"${NAME}\" in quotes");
    dgm_config_find(r->findings, at_mark(r, line + 1, column + 1, NULL), todo, "%s%s%s",
                    y->problem ? y->problem : "this is not YAML", y->context ? ", " : "",
                    y->context ? y->context : "");
}

static node *new_node(reader *r, const yaml_event_t *e)
{
    node *n = dgm_new(r->arena, node);
    n->line = (uint32_t)e->start_mark.line + 1;
    n->column = (uint32_t)e->start_mark.column + 1;
    return n;
}

static dgm_config_said at_node(const reader *r, const node *n)
{
    return at_mark(r, n->line, n->column, NULL);
}

static void keep_anchor(reader *r, const yaml_char_t *name, node *n)
{
    struct anchor *a;
    if (!name)
        return;
    a = dgm_new(r->arena, struct anchor);
    a->name = dgm_arena_dup(r->arena, dgm_str_from((const char *)name));
    a->node = n;
    a->next = r->anchors;
    r->anchors = a;
}

/* Tags could make a value something else than it looks: only the one that says "text" is read. */
static void refuse_tag(reader *r, const node *n, const yaml_char_t *tag)
{
    if (tag)
        dgm_config_find(r->findings, at_node(r, n), DGM_STR("leave the tag out"),
                        "the tag %s is not supported", (const char *)tag);
}

static node *scalar(reader *r, const yaml_event_t *e)
{
    const char *tag = (const char *)e->data.scalar.tag;
    node *n = new_node(r, e);
    n->kind = SCALAR;
    n->text = dgm_arena_dup(r->arena,
                            (dgm_str){(const char *)e->data.scalar.value, e->data.scalar.length});
    n->plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (tag && (strcmp(tag, YAML_STR_TAG) == 0 || strcmp(tag, "!") == 0))
        n->plain = false;
    else
        refuse_tag(r, n, e->data.scalar.tag);
    keep_anchor(r, e->data.scalar.anchor, n);
    return n;
}

static node *alias(reader *r, const yaml_event_t *e)
{
    dgm_str name = dgm_str_from((const char *)e->data.alias.anchor);
    struct anchor *a = r->anchors;
    node *n = new_node(r, e);
    while (a && !dgm_str_eq(a->name, name))
        a = a->next;
    n->kind = ALIAS;
    if (a && !a->node->open) {
        n->target = a->node;
        return n;
    }
    r->failed = true;
    dgm_config_find(r->findings, at_node(r, n), DGM_STR("name an anchor (&name) that ends above"),
                    a ? "*%.*s refers to itself" : "unknown anchor &%.*s", DGM_P(name));
    return n;
}

static void add_child(node *parent, node *child)
{
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
}

/* The document as a tree; NULL: empty, or it failed. */
static node *parse(reader *r, dgm_str text)
{
    node *stack[DGM_MAX_CONFIG_DEPTH] = {0}, *root = NULL;
    size_t depth = 0, n_nodes = 0, n_docs = 0;
    for (bool more = true; more && !r->failed;) {
        yaml_event_t e;
        node *n = NULL;
        if (!yaml_parser_parse(&r->yaml, &e)) {
            complain_of_syntax(r, text);
            r->failed = true;
            return NULL;
        }
        switch (e.type) {
        case YAML_STREAM_END_EVENT: more = false; break;
        case YAML_DOCUMENT_START_EVENT:
            if (++n_docs > 1) {
                r->failed = true;
                dgm_config_find(
                    r->findings, at_mark(r, e.start_mark.line + 1, e.start_mark.column + 1, NULL),
                    DGM_STR("use one file for each server"), "a second document starts here");
            }
            break;
        case YAML_SCALAR_EVENT: n = scalar(r, &e); break;
        case YAML_ALIAS_EVENT: n = alias(r, &e); break;
        case YAML_SEQUENCE_START_EVENT:
            n = new_node(r, &e);
            n->kind = SEQUENCE;
            n->open = true;
            refuse_tag(r, n, e.data.sequence_start.tag);
            keep_anchor(r, e.data.sequence_start.anchor, n);
            break;
        case YAML_MAPPING_START_EVENT:
            n = new_node(r, &e);
            n->kind = MAPPING;
            n->open = true;
            refuse_tag(r, n, e.data.mapping_start.tag);
            keep_anchor(r, e.data.mapping_start.anchor, n);
            break;
        case YAML_SEQUENCE_END_EVENT:
        case YAML_MAPPING_END_EVENT:
            if (depth)
                stack[--depth]->open = false;
            break;
        case YAML_NO_EVENT:
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_END_EVENT: break;
        }
        yaml_event_delete(&e);
        if (!n)
            continue;
        if (depth)
            add_child(stack[depth - 1], n);
        else
            root = n;
        if (++n_nodes > DGM_MAX_CONFIG_VALUES) {
            r->failed = true;
            dgm_config_find(r->findings, at_node(r, n), DGM_STR("make it smaller"),
                            "more values than config_values (%d)", DGM_MAX_CONFIG_VALUES);
        } else if (n->open && depth == DGM_MAX_CONFIG_DEPTH) {
            r->failed = true;
            dgm_config_find(r->findings, at_node(r, n), DGM_STR("nest less"),
                            "nests deeper than config_depth (%d)", DGM_MAX_CONFIG_DEPTH);
        } else if (n->open) {
            stack[depth++] = n;
        }
    }
    return r->failed ? NULL : root;
}

/* ---- nodes into JSON ------------------------------------------------------------------------------------------ */

bool dgm_config_is_number(dgm_str s)
{
    size_t i = 0, start;
    i += i < s.n && s.p[i] == '-';
    start = i;
    while (i < s.n && isdigit((unsigned char)s.p[i]))
        i++;
    if (i == start || (s.p[start] == '0' && i > start + 1))
        return false;
    if (i < s.n && s.p[i] == '.') {
        start = ++i;
        while (i < s.n && isdigit((unsigned char)s.p[i]))
            i++;
        if (i == start)
            return false;
    }
    if (i < s.n && (s.p[i] | 32) == 'e') {
        i++;
        i += i < s.n && (s.p[i] == '-' || s.p[i] == '+');
        start = i;
        while (i < s.n && isdigit((unsigned char)s.p[i]))
            i++;
        if (i == start)
            return false;
    }
    return i == s.n;
}

static bool one_of(dgm_str s, const char *const *words)
{
    for (; *words; words++)
        if (dgm_str_eq(s, dgm_str_from(*words)))
            return true;
    return false;
}

static void put_plain(dgm_buf *b, dgm_str s)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", NULL};
    static const char *const falses[] = {"false", "False", "FALSE", NULL};
    if (one_of(s, nulls))
        dgm_buf_add_lit(b, "null");
    else if (one_of(s, trues))
        dgm_buf_add_lit(b, "true");
    else if (one_of(s, falses))
        dgm_buf_add_lit(b, "false");
    else if (dgm_config_is_number(s))
        dgm_buf_add_str(b, s);
    else
        dgm_json_put_str(b, s);
}

static void mark(reader *r, dgm_config_mark m)
{
    if (r->n_marks == r->cap_marks) {
        size_t cap = r->cap_marks ? 2 * r->cap_marks : 64;
        r->marks = dgm_arena_realloc(r->arena, r->marks, r->cap_marks * sizeof m, cap * sizeof m);
        r->cap_marks = cap;
    }
    r->marks[r->n_marks++] = m;
}

static void emit_scalar(reader *r, node *n, const dgm_at *at)
{
    if (!n->expanded) /* once, however many aliases name it */
        n->text = expand(r, n->text, at_mark(r, n->line, n->column, at), &n->env);
    n->expanded = true;
    mark(r, (dgm_config_mark){n->line, n->column, .env = n->env, .plain = n->plain,
                              .broken = !n->text.p});
    if (!n->text.p)
        dgm_buf_add_lit(&r->json, "null");
    else if (n->plain && !n->env)
        put_plain(&r->json, n->text);
    else
        dgm_json_put_str(&r->json, n->text);
}

/* The key of a pair; absent, and reported, when it cannot be a key. */
static dgm_str key_text(reader *r, const node *key, const dgm_at *at)
{
    dgm_config_said where = at_mark(r, key->line, key->column, at);
    const node *n = key->kind == ALIAS ? key->target : key;
    if (n->kind != SCALAR) {
        dgm_config_find(r->findings, where, DGM_STR("keys are text"),
                        "a list or map cannot be a key");
    } else if (n->plain && dgm_str_is(n->text, "<<")) {
        dgm_config_find(r->findings, where,
                        DGM_STR("write the members, or use *name for a complete value"),
                        "merge keys (<<) are not supported");
    } else {
        return n->text;
    }
    return (dgm_str){0};
}

static void emit(reader *r, node *n, size_t depth, const dgm_at *at)
{
    while (n->kind == ALIAS)
        n = n->target;
    if (r->failed)
        return;
    if (r->n_marks > DGM_MAX_CONFIG_VALUES || depth > DGM_MAX_CONFIG_DEPTH || r->json.over) {
        r->failed = true;
        dgm_config_find(
            r->findings, at_mark(r, n->line, n->column, at), DGM_STR("use fewer aliases"),
            depth > DGM_MAX_CONFIG_DEPTH
                ? "with its aliases this nests deeper than config_depth (%d)"
                : "with its aliases this has more values than config_values (%d)",
            depth > DGM_MAX_CONFIG_DEPTH ? DGM_MAX_CONFIG_DEPTH : DGM_MAX_CONFIG_VALUES);
        return;
    }
    if (n->kind == SCALAR) {
        emit_scalar(r, n, at);
        return;
    }
    mark(r, (dgm_config_mark){.line = n->line, .column = n->column});
    dgm_buf_add_char(&r->json, n->kind == MAPPING ? '{' : '[');
    size_t i = 0;
    for (node *c = n->first; c; c = c->next) {
        if (n->kind == SEQUENCE) {
            if (i)
                dgm_buf_add_char(&r->json, ',');
            emit(r, c, depth + 1, DGM_AT_I(at, i));
            i++;
            continue;
        }
        dgm_str key = key_text(r, c, at);
        const node *k = c;
        c = c->next;
        if (!key.p)
            continue;
        if (i++)
            dgm_buf_add_char(&r->json, ',');
        mark(r, (dgm_config_mark){.line = k->line, .column = k->column});
        dgm_json_put_str(&r->json, key);
        dgm_buf_add_char(&r->json, ':');
        emit(r, c, depth + 1, DGM_AT(at, key));
    }
    dgm_buf_add_char(&r->json, n->kind == MAPPING ? '}' : ']');
}

static void read_yaml(reader *r, dgm_str text)
{
    node *root;
    dgm_err err = {0};
    if (!yaml_parser_initialize(&r->yaml)) {
        dgm_config_find(r->findings, at_mark(r, 0, 0, NULL), DGM_STR(""), "out of memory");
        return;
    }
    yaml_parser_set_encoding(&r->yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->yaml, (const unsigned char *)text.p, text.n);
    root = parse(r, text);
    yaml_parser_delete(&r->yaml);
    if (r->failed)
        return;
    dgm_buf_init(&r->json, 8 * DGM_MAX_CONFIG_BYTES); /* escapes: "\u001f" for one byte */
    if (root) {
        emit(r, root, 0, NULL);
    } else {
        mark(r, (dgm_config_mark){.line = 1, .column = 1});
        dgm_buf_add_lit(&r->json, "null");
    }
    if (!r->failed && r->json.over) {
        r->failed = true;
        dgm_config_find(r->findings, at_mark(r, 1, 1, NULL), DGM_STR("make it smaller"),
                        "with its aliases and variables this is longer than 8 times config_bytes");
    }
    dgm_str json = dgm_arena_dup(r->arena, dgm_buf_str(&r->json));
    dgm_buf_done(&r->json);
    if (!r->failed && dgm_json_read(r->arena, json, SIZE_MAX, "config_bytes", &r->doc->root, &err))
        dgm_config_find(r->findings, at_mark(r, 1, 1, NULL), DGM_STR("please report this"),
                        "internal error: invalid JSON after the conversion from YAML: %s", err.msg);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

/* Marks the beginning of every key and value; the text is JSON. */
static void mark_json(reader *r, dgm_str text)
{
    uint32_t line = 1, column = 1;
    for (size_t i = 0; i < text.n; i++, column++) {
        char c = text.p[i];
        bool bare = c == '-' || isalnum((unsigned char)c);
        if (c == '\n') {
            line++;
            column = 0;
        } else if (c == '"' || c == '{' || c == '[' || bare) {
            mark(r, (dgm_config_mark){.line = line, .column = column});
        }
        if (c == '"') {
            for (i++, column++; text.p[i] != '"'; i++) {
                column += ((unsigned char)text.p[i] & 0xC0) != 0x80;
                if (text.p[i] == '\\') {
                    i++;
                    column++;
                }
            }
        } else if (bare) {
            while (i + 1 < text.n && (isalnum((unsigned char)text.p[i + 1]) ||
                                      (text.p[i + 1] && strchr("+-.", text.p[i + 1])))) {
                i++;
                column++;
            }
        }
    }
}

static void read_json(reader *r, dgm_str text)
{
    dgm_err err = {0};
    if (dgm_json_read(r->arena, text, DGM_MAX_CONFIG_BYTES, "config_bytes", &r->doc->root, &err)) {
        dgm_config_find(
            r->findings, at_mark(r, err.line, err.column, NULL),
            DGM_STR(
                "correct it, or rename the file to .yaml to allow comments and trailing commas"),
            "%s", err.msg);
        return;
    }
    if (dgm_json_deeper_than(r->doc->root, DGM_MAX_CONFIG_DEPTH)) {
        dgm_config_find(r->findings, at_mark(r, 1, 1, NULL), DGM_STR("nest less"),
                        "nests deeper than config_depth (%d)", DGM_MAX_CONFIG_DEPTH);
        r->doc->root = NULL;
        return;
    }
    mark_json(r, text);
    if (r->n_marks > DGM_MAX_CONFIG_VALUES) {
        dgm_config_find(r->findings, at_mark(r, 1, 1, NULL), DGM_STR("make it smaller"),
                        "more values than config_values (%d)", DGM_MAX_CONFIG_VALUES);
        r->doc->root = NULL;
    }
}

/* ---- what both need ------------------------------------------------------------------------------------------------ */

/* Doubled keys; and in JSON the variables, which YAML's reader has replaced by now. */
static void config_yaml_finish(reader *r, yyjson_val *v, bool is_json, const dgm_at *at)
{
    yyjson_val *key, *item;
    size_t i, n;
    if (yyjson_is_str(v) && is_json) {
        dgm_config_mark *m = &r->marks[v - r->doc->root];
        dgm_str s = expand(r, dgm_json_str(v), dgm_config_said_by(r->doc, v, at), &m->env);
        m->plain = m->env; /* JSON has no other way to write a number from a variable */
        if (!s.p)
            yyjson_set_null(v);
        else if (s.p != dgm_json_str(v).p)
            yyjson_set_strn(v, s.p, s.n);
        m->broken = !s.p;
    } else if (yyjson_is_arr(v)) {
        yyjson_arr_foreach (v, i, n, item)
            config_yaml_finish(r, item, is_json, DGM_AT_I(at, i));
    } else if (yyjson_is_obj(v)) {
        dgm_map seen;
        dgm_map_init(&seen);
        yyjson_obj_foreach (v, i, n, key, item) {
            dgm_str name = dgm_json_str(key);
            const size_t *before = dgm_map_get(&seen, name);
            if (before)
                dgm_config_find(r->findings, dgm_config_said_by(r->doc, key, DGM_AT(at, name)),
                                DGM_STR("remove one of them"),
                                "\"%.*s\" was set in line %zu already",
                                (int)(name.n < 80 ? name.n : 80), name.p, *before);
            else
                dgm_map_put(&seen, name, dgm_config_mark_of(r->doc, key)->line);
            config_yaml_finish(r, item, is_json, DGM_AT(at, name));
        }
        dgm_map_done(&seen);
    }
}

void dgm_config_doc_read(dgm_config_doc *doc, dgm_arena *a, dgm_str text, bool is_json,
                         const char *(*env)(const char *name), dgm_config_findings *f)
{
    reader r = {.doc = doc, .arena = a, .findings = f, .env = env};
    size_t bad;
    doc->root = NULL;
    if (text.n > DGM_MAX_CONFIG_BYTES) {
        dgm_config_find(f, at_mark(&r, 0, 0, NULL), DGM_STR("make it smaller"),
                        "the file is longer than config_bytes (%zu)", (size_t)DGM_MAX_CONFIG_BYTES);
        return;
    }
    if ((bad = dgm_utf8_check(text)) != text.n) {
        dgm_config_find(f, at_byte(&r, text, bad), DGM_STR("save the file as UTF-8"),
                        "this byte is not UTF-8");
        return;
    }
    if (dgm_str_starts(text, DGM_STR("\xEF\xBB\xBF"))) {
        text.p += 3;
        text.n -= 3;
    }
    if (is_json)
        read_json(&r, text);
    else
        read_yaml(&r, text);
    doc->marks = r.marks;
    doc->n_marks = r.n_marks;
    if (doc->root)
        config_yaml_finish(&r, doc->root, is_json, NULL);
}
