/*
 * frontend/route.h - finds the route of a request.
 *
 * The patterns of all frontends are compiled once into a tree with a node per segment. A match walks the path once,
 * with one hash lookup per segment, and allocates nothing.
 */
#pragma once

#include "frontend/frontend.h"

typedef struct dgm_route_tree dgm_route_tree;

/* fronts: NULL-terminated, borrowed. One of them has the prefix "/": it reports errors at paths that no other one has. A
 * pattern that means two things is a fault of ours (assert). */
dgm_route_tree *dgm_route_tree_new(const dgm_frontend *const *fronts);
void dgm_route_tree_free(dgm_route_tree *t); /* NULL is allowed */

/* Sets the members of the match, and q->path. The strings are parts of `path`. */
void dgm_route_match(const dgm_route_tree *t, dgm_str method, dgm_str path, dgm_front_request *q);
