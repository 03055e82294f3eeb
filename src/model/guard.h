/*
 * model/guard.h - metadata that only the server sets.
 *
 * Keys that start with `aion:` or `dragoman:` are the server's: routing, identity, and what frontends tell agents
 * about a request. Members with such keys are removed from everything that agents and clients send. A client whose
 * token has `may_set_metadata` keeps those that the token names.
 *
 * Ids are not metadata: an artifact may be called `aion:stream-delta`.
 */
#pragma once

#include "base/arena.h"

#include <dragoman/model.h>

typedef struct dgm_guard {
    dgm_strs may_set; /* prefixes of keys that stay, although they are the server's */
    size_t removed;   /* counts members */
} dgm_guard;

bool dgm_guard_is_servers(dgm_str key);

/* The functions below change copies: what they are given points to is only read. */

/* Without the server's members; the same object if it has none, NULL if nothing remains. drop_type: for Tasks and
 * updates, which never have `canonical_type` either. */
const dgm_json *dgm_guard_metadata(dgm_guard *g, dgm_arena *a, const dgm_json *metadata,
                                   bool drop_type);
/* Of a message or an artifact and its parts. */
void dgm_guard_content(dgm_guard *g, dgm_arena *a, const dgm_json **metadata, dgm_parts *parts);
/* Of a Task: its own, of its history and of its artifacts. Its status is not touched. */
void dgm_guard_task(dgm_guard *g, dgm_arena *a, dgm_task *t);
