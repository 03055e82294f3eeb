/*
 * schema/schema_compile.c - finds the subschemas of a schema, their URIs and anchors, and resolves references.
 *
 * First a walk over the keywords that contain schemas creates a node per subschema. Then the rules of each node are compiled. A
 * reference by JSON pointer may lead to a value that the walk has not found (the member of an unknown keyword): the walk then
 * continues from there, and the list of nodes grows while it is compiled.
 */
#include "base/limits.h"
#include "base/list.h"
#include "schema/schema_int.h"

#include <stdlib.h>

/* A JSON text with schemas: the schema, and the meta-schema once it is referred to. */
struct document {
    const yyjson_val *root;
    size_t n;          /* values; they are side by side */
    uint32_t *node_of; /* per value: the index of its node plus 1 */
};

struct dgm_schema_build {
    dgm_arena *arena;
    struct document documents[2];
    size_t n_documents;
    dgm_schema_node **nodes;
    size_t n_nodes;
    dgm_map resources; /* URI -> index in resource_list */
    dgm_schema_resource **resource_list;
    size_t n_resources;
    dgm_map anchors; /* URI#anchor -> index of the node */
};

dgm_arena *dgm_schema_build_arena(dgm_schema_build *b)
{
    return b->arena;
}

static uint32_t *node_slot(dgm_schema_build *b, const yyjson_val *v)
{
    for (size_t i = 0; i < b->n_documents; i++) {
        const struct document *d = &b->documents[i];
        if (v >= d->root && v < d->root + d->n)
            return &d->node_of[v - d->root];
    }
    return NULL;
}

const dgm_schema_node *dgm_schema_build_node(dgm_schema_build *b, const yyjson_val *value)
{
    uint32_t *slot = node_slot(b, value);
    return slot && *slot ? b->nodes[*slot - 1] : NULL;
}

/* ---- resources and anchors --------------------------------------------------------------------- */

static dgm_code add_resource(dgm_schema_build *b, dgm_str uri, const yyjson_val *root,
                             const dgm_at *at, dgm_schema_resource **ret_resource, dgm_err *err)
{
    if (dgm_map_get(&b->resources, uri))
        return dgm_fail(err, DGM_BAD_PARAMS, at, "the $id \"%.*s\" is used twice",
                        (int)(uri.n < DGM_MAX_QUOTED_BYTES ? uri.n : DGM_MAX_QUOTED_BYTES), uri.p);
    dgm_schema_resource *r = dgm_new(b->arena, dgm_schema_resource);
    *r = (dgm_schema_resource){.uri = uri, .root = root};
    b->resource_list = dgm_list_grow(b->arena, b->resource_list, b->n_resources, sizeof(void *));
    dgm_map_put(&b->resources, uri, b->n_resources);
    b->resource_list[b->n_resources++] = r;
    *ret_resource = r;
    return DGM_OK;
}

static dgm_code add_anchor(dgm_schema_build *b, dgm_schema_resource *r, dgm_schema_node *node,
                           const char *keyword, dgm_err *err)
{
    const yyjson_val *name = dgm_schema_node_get(node, keyword);
    const dgm_at *at = DGM_AT(node->at, dgm_str_from(keyword));
    if (!name)
        return DGM_OK;
    if (!yyjson_is_str(dgm_schema_plain(name)) || !dgm_json_str(name).n)
        return dgm_fail(err, DGM_BAD_PARAMS, at, "expected a name, got %s", dgm_json_type(name));
    dgm_str text = dgm_json_str(name);
    if (keyword[1] == 'd') {
        r->dynamic = dgm_list_grow(b->arena, r->dynamic, r->n_dynamic, sizeof *r->dynamic);
        r->dynamic[r->n_dynamic++] = (dgm_schema_anchor){text, node};
    }
    dgm_str key = dgm_arena_printf(b->arena, "%.*s#%.*s", DGM_P(r->uri), DGM_P(text));
    if (dgm_map_get(&b->anchors, key))
        return dgm_fail(err, DGM_BAD_PARAMS, at, "the anchor \"%.*s\" is used twice",
                        (int)(text.n < DGM_MAX_QUOTED_BYTES ? text.n : DGM_MAX_QUOTED_BYTES),
                        text.p);
    dgm_map_put(&b->anchors, key, *node_slot(b, node->value) - 1);
    return DGM_OK;
}

/* ---- the walk ---------------------------------------------------------------------------------- */

enum holds { ONE, LIST, MAP };
static const struct {
    const char *name;
    enum holds holds;
} holders[] = {
    {"$defs", MAP},
    {"definitions", MAP},
    {"properties", MAP},
    {"patternProperties", MAP},
    {"dependentSchemas", MAP},
    {"dependencies", MAP},
    {"prefixItems", LIST},
    {"allOf", LIST},
    {"anyOf", LIST},
    {"oneOf", LIST},
    {"items", ONE},
    {"additionalItems", ONE},
    {"contains", ONE},
    {"additionalProperties", ONE},
    {"propertyNames", ONE},
    {"if", ONE},
    {"then", ONE},
    {"else", ONE},
    {"not", ONE},
    {"unevaluatedItems", ONE},
    {"unevaluatedProperties", ONE},
    {"contentSchema", ONE},
};

struct walk {
    dgm_schema_build *b;
    dgm_schema_resource *resource;
    bool is_old;
    dgm_err *err;
};

static dgm_code walk_schema(struct walk w, const yyjson_val *v, const dgm_at *at);

static const dgm_at *at_copy(dgm_schema_build *b, const dgm_at *up, dgm_str key, size_t i)
{
    dgm_at *at = dgm_new(b->arena, dgm_at);
    *at = (dgm_at){up, key, i};
    return at;
}

static dgm_code walk_list(struct walk w, const yyjson_val *list, const dgm_at *at)
{
    yyjson_val *item;
    size_t i, n;
    dgm_code rc;
    if (!yyjson_is_arr(dgm_schema_plain(list)))
        return dgm_fail(w.err, DGM_BAD_PARAMS, at, "expected an array of schemas, got %s",
                        dgm_json_type(list));
    yyjson_arr_foreach (dgm_schema_plain(list), i, n, item) {
        if ((rc = walk_schema(w, item, at_copy(w.b, at, (dgm_str){0}, i))))
            return rc;
    }
    return DGM_OK;
}

static dgm_code walk_map(struct walk w, const yyjson_val *map, const dgm_at *at, bool may_be_names)
{
    yyjson_val *key, *value;
    size_t i, n;
    dgm_code rc;
    if (!yyjson_is_obj(dgm_schema_plain(map)))
        return dgm_fail(w.err, DGM_BAD_PARAMS, at, "expected an object with schemas, got %s",
                        dgm_json_type(map));
    yyjson_obj_foreach (dgm_schema_plain(map), i, n, key, value) {
        if (may_be_names && yyjson_is_arr(value))
            continue;
        if ((rc = walk_schema(w, value, at_copy(w.b, at, dgm_json_str(key), 0))))
            return rc;
    }
    return DGM_OK;
}

static dgm_code walk_members(struct walk w, const dgm_schema_node *node)
{
    for (size_t i = 0; i < sizeof holders / sizeof *holders; i++) {
        const yyjson_val *v = dgm_schema_node_get(node, holders[i].name);
        dgm_code rc = DGM_OK;
        if (!v)
            continue;
        const dgm_at *at = at_copy(w.b, node->at, dgm_str_from(holders[i].name), 0);
        bool is_old_list =
            w.is_old && yyjson_is_arr(dgm_schema_plain(v)) && holders[i].holds == ONE;
        if (holders[i].holds == LIST || is_old_list)
            rc = walk_list(w, v, at);
        else if (holders[i].holds == MAP)
            rc = walk_map(w, v, at, strcmp(holders[i].name, "dependencies") == 0);
        else
            rc = walk_schema(w, v, at);
        if (rc)
            return rc;
    }
    return DGM_OK;
}

/* 2020-12 and what we do not know are read as 2020-12. */
static bool is_old_draft(const yyjson_val *schema, bool otherwise)
{
    dgm_str uri = dgm_json_str_member(schema, "$schema");
    return uri.p ? dgm_str_starts(uri, DGM_STR("http://json-schema.org/draft-0")) ||
                       dgm_str_starts(uri, DGM_STR("https://json-schema.org/draft/2019-09/"))
                 : otherwise;
}

/* The URI of the schema, and a new resource if it has an $id that is not only a fragment. */
static dgm_code walk_id(struct walk *w, const dgm_schema_node *node)
{
    const yyjson_val *id = dgm_schema_node_get(node, "$id");
    const dgm_at *at = DGM_AT_LIT(node->at, "$id");
    if (!id)
        return DGM_OK;
    if (!yyjson_is_str(dgm_schema_plain(id)))
        return dgm_fail(w->err, DGM_BAD_PARAMS, at, "expected a URI, got %s", dgm_json_type(id));
    dgm_str text = dgm_json_str(id);
    if (!text.n || text.p[0] == '#')
        return DGM_OK;
    dgm_str uri = dgm_schema_uri_resolve(w->b->arena, w->resource->uri, text);
    if (w->resource->root == node->value) { /* the root was added under an empty URI */
        w->resource->uri = uri;
        if (!dgm_map_get(&w->b->resources, uri))
            dgm_map_put(&w->b->resources, uri, w->b->n_resources - 1);
        return DGM_OK;
    }
    return add_resource(w->b, uri, node->value, at, &w->resource, w->err);
}

static dgm_code add_node(dgm_schema_build *b, const yyjson_val *v, const dgm_at *at,
                         dgm_schema_node **ret_node, dgm_err *err)
{
    uint32_t *slot = node_slot(b, v);
    if (b->n_nodes >= DGM_MAX_SCHEMA_NODES)
        return dgm_fail(err, DGM_TOO_LARGE, at, "more subschemas than the limit schema_nodes of %d",
                        DGM_MAX_SCHEMA_NODES);
    dgm_schema_node *node = dgm_new(b->arena, dgm_schema_node);
    *node = (dgm_schema_node){.value = v, .at = at};
    b->nodes = dgm_list_grow(b->arena, b->nodes, b->n_nodes, sizeof(void *));
    b->nodes[b->n_nodes++] = node;
    *slot = (uint32_t)b->n_nodes;
    *ret_node = node;
    return DGM_OK;
}

static dgm_code walk_schema(struct walk w, const yyjson_val *v, const dgm_at *at)
{
    dgm_schema_node *node = NULL;
    dgm_code rc;
    if (!yyjson_is_obj(dgm_schema_plain(v)) && !yyjson_is_bool(dgm_schema_plain(v)))
        return dgm_fail(w.err, DGM_BAD_PARAMS, at,
                        "expected a schema (an object or a boolean), got %s", dgm_json_type(v));
    if (dgm_schema_build_node(w.b, v))
        return DGM_OK; /* a reference was here before */
    if ((rc = add_node(w.b, v, at, &node, w.err)) || (rc = walk_id(&w, node)))
        return rc;
    w.is_old = is_old_draft(v, w.is_old);
    node->resource = w.resource;
    node->is_old = w.is_old;
    if (yyjson_is_bool(dgm_schema_plain(v)))
        return DGM_OK;
    if ((rc = add_anchor(w.b, w.resource, node, "$anchor", w.err)) ||
        (rc = add_anchor(w.b, w.resource, node, "$dynamicAnchor", w.err)))
        return rc;
    return walk_members(w, node);
}

static dgm_code add_document(dgm_schema_build *b, const yyjson_val *root, dgm_str uri, dgm_err *err)
{
    struct document *d = &b->documents[b->n_documents++];
    struct walk w = {.b = b, .err = err};
    d->root = root;
    d->n = dgm_json_run(root);
    d->node_of = dgm_new_n(b->arena, uint32_t, d->n);
    dgm_code rc = add_resource(b, uri, root, NULL, &w.resource, err);
    return rc ? rc : walk_schema(w, root, NULL);
}

/* ---- references -------------------------------------------------------------------------------- */

/* A step of a JSON pointer: ~1 is a slash, ~0 a tilde. */
static dgm_str pointer_step(dgm_arena *a, dgm_str step)
{
    char *out = dgm_arena_alloc_raw(a, step.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < step.n; i++) {
        bool is_escape = step.p[i] == '~' && i + 1 < step.n;
        out[n++] = !is_escape ? step.p[i] : step.p[++i] == '1' ? '/' : '~';
    }
    return (dgm_str){out, n};
}

static const yyjson_val *pointer_member(const yyjson_val *v, dgm_str step)
{
    size_t index = 0;
    if (!yyjson_is_arr(dgm_schema_plain(v)))
        return dgm_json_get(v, step);
    for (size_t i = 0; i < step.n; i++) {
        if (step.p[i] < '0' || step.p[i] > '9' || i > 8)
            return NULL;
        index = index * 10 + (size_t)(step.p[i] - '0');
    }
    return step.n ? yyjson_arr_get(dgm_schema_plain(v), index) : NULL;
}

/* Follows a pointer; a value that is not a node yet becomes one, with the URI of the nearest node above it. */
static dgm_code find_by_pointer(dgm_schema_build *b, const dgm_schema_node *root, dgm_str pointer,
                                const dgm_schema_node **ret_node, dgm_err *err)
{
    const yyjson_val *v = root->value;
    const dgm_schema_node *near = root;
    const dgm_at *at = root->at;
    for (size_t i = 0; i < pointer.n;) {
        size_t end = i + 1;
        while (end < pointer.n && pointer.p[end] != '/')
            end++;
        dgm_str step = pointer_step(b->arena, (dgm_str){pointer.p + i + 1, end - i - 1});
        if (!(v = pointer_member(v, step)))
            return DGM_OK;
        at = at_copy(b, at, step, 0);
        near = dgm_schema_build_node(b, v) ? dgm_schema_build_node(b, v) : near;
        i = end;
    }
    struct walk w = {b, (dgm_schema_resource *)(uintptr_t)near->resource, near->is_old, err};
    dgm_code rc = walk_schema(w, v, at);
    if (!rc)
        *ret_node = dgm_schema_build_node(b, v);
    return rc;
}

static dgm_code find_resource(dgm_schema_build *b, dgm_str uri,
                              const dgm_schema_resource **ret_resource, dgm_err *err)
{
    size_t *index = dgm_map_get(&b->resources, uri);
    if (!index && dgm_str_eq(uri, dgm_str_from(dgm_schema_meta_uri)) && b->n_documents == 1) {
        const yyjson_val *meta =
            dgm_json_parse_trusted(b->arena, dgm_str_from(dgm_schema_meta_text));
        dgm_code rc = add_document(b, meta, uri, err);
        if (rc)
            return rc;
        index = dgm_map_get(&b->resources, uri);
    }
    *ret_resource = index ? b->resource_list[*index] : NULL;
    return DGM_OK;
}

static dgm_code find_by_fragment(dgm_schema_build *b, const dgm_schema_resource *r,
                                 dgm_str fragment, const dgm_schema_node **ret_node,
                                 dgm_str *ret_anchor, dgm_err *err)
{
    const dgm_schema_node *root = dgm_schema_build_node(b, r->root);
    if (!fragment.n) {
        *ret_node = root;
        return DGM_OK;
    }
    if (fragment.p[0] == '/')
        return find_by_pointer(b, root, fragment, ret_node, err);
    dgm_str key = dgm_arena_printf(b->arena, "%.*s#%.*s", DGM_P(r->uri), DGM_P(fragment));
    size_t *index = dgm_map_get(&b->anchors, key);
    if (index)
        *ret_node = b->nodes[*index];
    for (size_t i = 0; index && i < r->n_dynamic; i++) {
        if (r->dynamic[i].node == *ret_node && dgm_str_eq(r->dynamic[i].name, fragment))
            *ret_anchor = r->dynamic[i].name;
    }
    return DGM_OK;
}

dgm_code dgm_schema_build_reference(dgm_schema_build *b, const dgm_schema_node *from,
                                    const yyjson_val *ref, const char *keyword,
                                    const dgm_schema_node **ret_node, dgm_str *ret_anchor,
                                    dgm_err *err)
{
    const dgm_at *at = DGM_AT(from->at, dgm_str_from(keyword));
    const dgm_schema_resource *r = NULL;
    dgm_code rc;
    *ret_anchor = (dgm_str){0};
    *ret_node = NULL;
    if (!yyjson_is_str(dgm_schema_plain(ref)))
        return dgm_fail(err, DGM_BAD_PARAMS, at, "expected a URI, got %s", dgm_json_type(ref));
    dgm_str text = dgm_json_str(ref);
    int shown = (int)(text.n < DGM_MAX_QUOTED_BYTES ? text.n : DGM_MAX_QUOTED_BYTES);
    dgm_str uri = dgm_schema_uri_resolve(b->arena, from->resource->uri, text);
    if ((rc = find_resource(b, uri, &r, err)))
        return rc;
    if (!r)
        return dgm_fail(err, DGM_BAD_PARAMS, at,
                        "the reference \"%.*s\" leads out of the schema: remote schemas are not "
                        "loaded. Copy it into $defs",
                        shown, text.p);
    rc = find_by_fragment(b, r, dgm_schema_uri_fragment(b->arena, text), ret_node, ret_anchor, err);
    if (!rc && !*ret_node)
        rc = dgm_fail(err, DGM_BAD_PARAMS, at, "the reference \"%.*s\" leads to no schema", shown,
                      text.p);
    return rc;
}

/* ---- rules ------------------------------------------------------------------------------------- */

static const yyjson_val *first_value(const dgm_schema_node *node, const dgm_schema_keyword *k)
{
    const yyjson_val *v = NULL;
    for (size_t i = 0; i < 4 && k->names[i] && !v; i++)
        v = dgm_schema_node_get(node, k->names[i]);
    return v;
}

static dgm_code compile_node(dgm_schema_build *b, dgm_schema_node *node, dgm_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < dgm_schema_n_keywords; i++)
        n += first_value(node, &dgm_schema_keywords[i]) != NULL;
    node->rules = dgm_new_n(b->arena, dgm_schema_rule, n);
    for (size_t i = 0; i < dgm_schema_n_keywords; i++) {
        const dgm_schema_keyword *k = &dgm_schema_keywords[i];
        const yyjson_val *v = first_value(node, k);
        if (!v)
            continue;
        dgm_schema_rule *rule = &node->rules[node->n_rules];
        *rule = (dgm_schema_rule){.keyword = k, .value = v};
        dgm_code rc = k->compile(b, node, rule, err);
        if (rc)
            return rc;
        node->n_rules++;
        node->has_unevaluated |= k->is_last;
    }
    return DGM_OK;
}

static dgm_code compile_all(dgm_schema_build *b, const yyjson_val *root, dgm_err *err)
{
    dgm_code rc = add_document(b, root, DGM_STR(""), err);
    for (size_t i = 0; !rc && i < b->n_nodes; i++) /* references add nodes */
        rc = compile_node(b, b->nodes[i], err);
    return rc;
}

dgm_code dgm_schema_compile(const dgm_json *schema, dgm_schema **ret_schema, dgm_err *err)
{
    dgm_schema_build b = {0};
    if (dgm_json_run(schema) > DGM_MAX_SCHEMA_VALUES)
        return dgm_fail(err, DGM_TOO_LARGE, NULL,
                        "%zu values, more than the limit schema_values of %d: use a smaller schema",
                        dgm_json_run(schema), DGM_MAX_SCHEMA_VALUES);
    if (dgm_json_deeper_than(schema, DGM_MAX_JSON_DEPTH))
        return dgm_fail(err, DGM_TOO_LARGE, NULL, "nested deeper than the limit json_depth of %d",
                        DGM_MAX_JSON_DEPTH);
    dgm_auto(dgm_schema_free) dgm_schema *s = dgm_xcalloc(1, sizeof *s);
    s->arena = b.arena = dgm_arena_new();
    dgm_code rc = compile_all(&b, dgm_json_copy(b.arena, schema), err);
    dgm_map_done(&b.resources);
    dgm_map_done(&b.anchors);
    if (rc)
        return rc;
    s->root = b.nodes[0];
    *ret_schema = dgm_take(s);
    return DGM_OK;
}

void dgm_schema_free(dgm_schema *s)
{
    if (!s)
        return;
    dgm_arena_free(s->arena);
    free(s);
}
