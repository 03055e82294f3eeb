/* frontend/route.c - the tree of routes: see route.h. */
#include "frontend/route.h"

#include <assert.h>
#include <stdlib.h>

enum { SLOT_TENANT, SLOT_FIRST, N_SLOTS = SLOT_FIRST + 2 };
enum { ROW_GET, ROW_POST, ROW_DELETE, N_ROWS };

struct route_node;

/* A segment of text. */
struct route_edge {
    dgm_str text; /* p NULL: a free slot */
    struct route_node *to;
};

/* A segment with a placeholder, in the order in which they are tried: with text around it, alone, the rest of the path. */
struct route_pattern {
    dgm_str prefix, suffix;
    bool is_rest;
    size_t slot;
    struct route_node *to;
    struct route_pattern *next;
};

struct route_node {
    const dgm_route *rows[N_ROWS];
    const dgm_frontend *fronts[N_ROWS]; /* of the rows */
    const dgm_frontend *owner;          /* answers other methods here */
    const dgm_frontend *unknown;        /* reports unknown paths below; NULL: that of `nearest` */
    const dgm_frontend *nearest; /* `unknown` of this node or of the next one above that has it */
    const char *allow;           /* NULL: no path */
    dgm_access access;           /* the most that a row here needs */
    bool is_server;              /* not below /agents/ID */
    struct route_edge *edges;    /* an open hash table */
    size_t n_edges, mask;
    struct route_pattern *patterns;
};

struct dgm_route_tree {
    dgm_arena *arena;
    struct route_node root;
    struct route_node
        literal; /* its edges are complete paths without placeholders: found in one step */
};

/* ---- segments ---------------------------------------------------------------------------------------------------- */

static struct route_edge *route_slot(struct route_edge *edges, size_t mask, dgm_str text)
{
    const unsigned char *p = (const unsigned char *)text.p;
    size_t hash = text.n ? text.n * 7 + p[0] * 31u + p[text.n - 1] * 5u + p[text.n / 2] : 0;
    size_t i = hash & mask;
    while (edges[i].text.p && !dgm_str_eq(edges[i].text, text))
        i = (i + 1) & mask;
    return &edges[i];
}

static bool route_fits(const struct route_pattern *p, dgm_str s)
{
    return s.n > p->prefix.n + p->suffix.n && memcmp(s.p, p->prefix.p, p->prefix.n) == 0 &&
           memcmp(s.p + s.n - p->suffix.n, p->suffix.p, p->suffix.n) == 0;
}

/* ---- compiling --------------------------------------------------------------------------------------------------- */

/* to: where the edge leads if it is new; NULL: to a new node. */
static struct route_node *route_add_edge(dgm_route_tree *t, struct route_node *node, dgm_str text,
                                         struct route_node *to)
{
    struct route_node *child = node->edges ? route_slot(node->edges, node->mask, text)->to : NULL;
    if (child)
        return child;
    if ((node->n_edges + 1) * 4 > (node->edges ? node->mask + 1 : 0)) { /* few collisions */
        size_t size = node->edges ? (node->mask + 1) * 2 : 4;
        struct route_edge *edges = dgm_new_n(t->arena, struct route_edge, size);
        for (size_t i = 0; node->edges && i <= node->mask; i++) {
            if (node->edges[i].text.p)
                *route_slot(edges, size - 1, node->edges[i].text) = node->edges[i];
        }
        node->edges = edges;
        node->mask = size - 1;
    }
    child = to ? to : dgm_new(t->arena, struct route_node);
    *route_slot(node->edges, node->mask, text) = (struct route_edge){text, child};
    node->n_edges++;
    return child;
}

static int route_rank(const struct route_pattern *p)
{
    return p->is_rest * 2 + !(p->prefix.n + p->suffix.n);
}

static struct route_node *route_add_pattern(dgm_route_tree *t, struct route_node *node,
                                            struct route_pattern p)
{
    struct route_pattern **at = &node->patterns;
    for (; *at && route_rank(*at) <= route_rank(&p); at = &(*at)->next) {
        if ((*at)->is_rest == p.is_rest && dgm_str_eq((*at)->prefix, p.prefix) &&
            dgm_str_eq((*at)->suffix, p.suffix)) {
            assert((*at)->slot == p.slot);
            return (*at)->to;
        }
    }
    struct route_pattern *added = dgm_new(t->arena, struct route_pattern);
    *added = p;
    added->to = dgm_new(t->arena, struct route_node);
    added->next = *at;
    *at = added;
    return added->to;
}

/* The node of a pattern without [/]. */
static struct route_node *route_add_path(dgm_route_tree *t, const char *pattern)
{
    struct route_node *node = &t->root;
    size_t slot = SLOT_FIRST;
    dgm_str rest = dgm_str_from(pattern), whole = rest;
    assert(rest.n && rest.p[0] == '/');
    while (rest.n) {
        rest = (dgm_str){rest.p + 1, rest.n - 1};
        const char *slash = rest.n ? memchr(rest.p, '/', rest.n) : NULL;
        dgm_str text = {rest.p, slash ? (size_t)(slash - rest.p) : rest.n};
        const char *open = text.n ? memchr(text.p, '{', text.n) : NULL;
        if (open) {
            const char *close = memchr(open, '}', text.n);
            struct route_pattern p = {.prefix = {text.p, (size_t)(open - text.p)},
                                      .is_rest = close[-1] == '.'};
            if (p.is_rest) /* takes all that follows */
                text.n = rest.n;
            p.suffix = (dgm_str){close + 1, text.n - (size_t)(close + 1 - text.p)};
            p.slot = strncmp(open, "{tenant}", 8) == 0 ? SLOT_TENANT : slot++;
            assert(p.slot < N_SLOTS);
            node = route_add_pattern(t, node, p);
        } else {
            node = route_add_edge(t, node, text, NULL);
        }
        rest = (dgm_str){rest.p + text.n, rest.n - text.n};
    }
    if (!strchr(pattern, '{'))
        route_add_edge(t, &t->literal, whole, node);
    return node;
}

static void route_set_row(struct route_node *node, const dgm_frontend *front, const dgm_route *row)
{
    size_t i = row->method <= DGM_ROUTE_STREAM ? ROW_GET
               : row->method == DGM_ROUTE_POST ? ROW_POST
                                               : ROW_DELETE;
    assert(!node->rows[i]);
    node->rows[i] = row;
    node->fronts[i] = front;
    node->is_server = row->scope == DGM_SCOPE_SERVER;
    if (row->access > node->access)
        node->access = row->access;
    if ((front->refuse || front->refuse_method) && !node->owner)
        node->owner = front;
}

static void route_add_row(dgm_route_tree *t, const dgm_frontend *front, const dgm_route *row)
{
    dgm_str pattern = dgm_str_from(row->pattern);
    bool either = pattern.n > 3 && memcmp(pattern.p + pattern.n - 3, "[/]", 3) == 0;
    if (!either) {
        route_set_row(route_add_path(t, row->pattern), front, row);
        return;
    }
    dgm_str bare = dgm_arena_printf(t->arena, "%.*s", (int)pattern.n - 3, pattern.p);
    struct route_node *node = route_add_path(t, bare.p);
    route_set_row(node, front, row);
    route_set_row(route_add_edge(t, node, DGM_STR(""), NULL), front, row);
}

static void route_finish_node(dgm_route_tree *t, struct route_node *node,
                              const dgm_frontend *nearest)
{
    node->nearest = node->unknown ? node->unknown : nearest;
    const dgm_route *get = node->rows[ROW_GET];
    const char *names[] = {get ? ", GET" : "", get && get->method == DGM_ROUTE_GET ? ", HEAD" : "",
                           node->rows[ROW_POST] ? ", POST" : "",
                           node->rows[ROW_DELETE] ? ", DELETE" : "",
                           node->owner && node->owner->lists_options ? ", OPTIONS" : ""};
    if (get || node->rows[ROW_POST] || node->rows[ROW_DELETE])
        node->allow = dgm_arena_printf(t->arena, "%s%s%s%s%s", names[0], names[1], names[2],
                                       names[3], names[4])
                          .p +
                      2;
    for (size_t i = 0; node->edges && i <= node->mask; i++) {
        if (node->edges[i].to)
            route_finish_node(t, node->edges[i].to, node->nearest);
    }
    for (struct route_pattern *p = node->patterns; p; p = p->next)
        route_finish_node(t, p->to, node->nearest);
}

dgm_route_tree *dgm_route_tree_new(const dgm_frontend *const *fronts)
{
    dgm_route_tree *t = dgm_xcalloc(1, sizeof *t);
    t->arena = dgm_arena_new();
    for (; *fronts; fronts++) {
        for (size_t i = 0; i < (*fronts)->n_routes; i++)
            route_add_row(t, *fronts, &(*fronts)->routes[i]);
        for (const char *const *p = (*fronts)->prefixes; p && *p; p++) {
            if (strcmp(*p, "/") == 0)
                t->root.unknown = *fronts;
            else
                route_add_path(t, *p)->unknown = *fronts;
        }
    }
    assert(t->root.unknown);
    route_finish_node(t, &t->root, NULL);
    return t;
}

void dgm_route_tree_free(dgm_route_tree *t)
{
    if (!t)
        return;
    dgm_arena_free(t->arena);
    free(t);
}

/* ---- matching ---------------------------------------------------------------------------------------------------- */

/* NULL: unknown path. *ret_unknown: the frontend with the longest prefix of it. */
static const struct route_node *route_walk(const dgm_route_tree *t, dgm_str path, dgm_str *slots,
                                           const dgm_frontend **ret_unknown)
{
    const struct route_node *node =
        t->literal.edges ? route_slot(t->literal.edges, t->literal.mask, path)->to : NULL;
    const char *end = path.p + path.n;
    const char *p = !node && path.n && path.p[0] == '/' ? path.p + 1 : NULL;
    if (!node)
        node = &t->root;
    *ret_unknown = node->nearest;
    while (p) {
        const char *slash = memchr(p, '/', (size_t)(end - p));
        dgm_str text = {p, (size_t)((slash ? slash : end) - p)};
        /* the slash of [/] is the last one */
        const struct route_node *child = (text.n || !slash) && node->edges
                                             ? route_slot(node->edges, node->mask, text)->to
                                             : NULL;
        for (const struct route_pattern *q = node->patterns; q && !child; q = q->next) {
            if (q->is_rest) {
                text.n = (size_t)(end - p);
                slash = NULL;
            }
            if (route_fits(q, text)) {
                slots[q->slot] =
                    (dgm_str){text.p + q->prefix.n, text.n - q->prefix.n - q->suffix.n};
                child = q->to;
            }
        }
        node = child;
        if (node)
            *ret_unknown = node->nearest;
        p = node && slash ? slash + 1 : NULL;
    }
    return node;
}

void dgm_route_match(const dgm_route_tree *t, dgm_str method, dgm_str path, dgm_front_request *q)
{
    static const dgm_str agents = {"/agents/", 8};
    dgm_str slots[N_SLOTS] = {{0}};
    const dgm_frontend *unknown;
    bool is_head = dgm_str_is(method, "HEAD");
    size_t i = is_head || dgm_str_is(method, "GET") ? ROW_GET
               : dgm_str_is(method, "POST")         ? ROW_POST
               : dgm_str_is(method, "DELETE")       ? ROW_DELETE
                                                    : N_ROWS;
    q->path = path;
    q->agent_id = (dgm_str){0};
    if (path.n > agents.n && path.p[1] == 'a' && dgm_str_starts(path, agents)) {
        dgm_str rest = {path.p + agents.n, path.n - agents.n};
        const char *slash = memchr(rest.p, '/', rest.n);
        q->agent_id = (dgm_str){rest.p, slash ? (size_t)(slash - rest.p) : rest.n};
        q->path = slash ? (dgm_str){slash, rest.n - q->agent_id.n} : DGM_STR("/");
    }
    const struct route_node *node = route_walk(t, q->path, slots, &unknown);
    const dgm_route *row = node && node->allow && i < N_ROWS ? node->rows[i] : NULL;
    if (row && is_head && row->method == DGM_ROUTE_STREAM)
        row = NULL;
    bool is_known = row || (node && node->allow && node->owner && node->owner->refuse_method);
    if (!is_known || (q->agent_id.p && node->is_server)) {
        q->route = NULL;
        q->allow = NULL;
        q->front = unknown == t->root.unknown ? NULL : unknown;
        q->reporter = unknown;
        q->access = DGM_ACCESS_CALLER;
        return;
    }
    q->route = row;
    q->allow = node->allow;
    q->front = row ? node->fronts[i] : node->owner;
    q->reporter = q->front->refuse                     ? q->front
                  : node->owner && node->owner->refuse ? node->owner
                                                       : unknown;
    q->access = row ? row->access : node->access;
    q->tenant = slots[SLOT_TENANT];
    q->params[0] = slots[SLOT_FIRST];
    q->params[1] = slots[SLOT_FIRST + 1];
}
