/* model/guard.c - metadata that only the server sets. */
#include "model/guard.h"
#include "model/names.h"
#include "json/json.h"

bool dgm_guard_is_servers(dgm_str key)
{
    return dgm_str_starts(key, DGM_STR("aion:")) || dgm_str_starts(key, DGM_STR(DGM_NAME_PREFIX));
}

static bool guard_removes(const dgm_guard *g, dgm_str key, bool drop_type)
{
    if (drop_type && dgm_str_is(key, "canonical_type"))
        return true;
    if (!dgm_guard_is_servers(key))
        return false;
    for (size_t i = 0; i < g->may_set.n; i++) {
        if (dgm_str_starts(key, g->may_set.at[i]))
            return false;
    }
    return true;
}

const dgm_json *dgm_guard_metadata(dgm_guard *g, dgm_arena *a, const dgm_json *metadata,
                                   bool drop_type)
{
    if (!metadata)
        return NULL;
    yyjson_val *object = (yyjson_val *)(uintptr_t)metadata, *key, *value;
    size_t i, max, n = 0, removed = 0;
    yyjson_obj_foreach (object, i, max, key, value)
        removed += guard_removes(g, dgm_json_str(key), drop_type);
    if (!removed)
        return metadata;
    g->removed += removed;
    dgm_member *members = dgm_new_n(a, dgm_member, yyjson_obj_size(object));
    yyjson_obj_foreach (object, i, max, key, value) {
        if (!guard_removes(g, dgm_json_str(key), drop_type))
            members[n++] = (dgm_member){dgm_json_str(key), value};
    }
    return n ? dgm_json_object(a, members, n) : NULL;
}

void dgm_guard_content(dgm_guard *g, dgm_arena *a, const dgm_json **metadata, dgm_parts *parts)
{
    bool copied = false;
    *metadata = dgm_guard_metadata(g, a, *metadata, false);
    for (size_t i = 0; i < parts->n; i++) {
        const dgm_json *clean = dgm_guard_metadata(g, a, parts->at[i].metadata, false);
        if (clean == parts->at[i].metadata)
            continue;
        if (!copied) {
            dgm_part *copy = dgm_new_n(a, dgm_part, parts->n);
            memcpy(copy, parts->at, parts->n * sizeof *copy);
            parts->at = copy;
            copied = true;
        }
        parts->at[i].metadata = clean;
    }
}

void dgm_guard_task(dgm_guard *g, dgm_arena *a, dgm_task *t)
{
    t->metadata = dgm_guard_metadata(g, a, t->metadata, true);
    if (t->history.n) {
        dgm_message *copy = dgm_new_n(a, dgm_message, t->history.n);
        memcpy(copy, t->history.at, t->history.n * sizeof *copy);
        t->history.at = copy;
    }
    for (size_t i = 0; i < t->history.n; i++)
        dgm_guard_content(g, a, &t->history.at[i].metadata, &t->history.at[i].parts);
    if (t->artifacts.n) {
        dgm_artifact *copy = dgm_new_n(a, dgm_artifact, t->artifacts.n);
        memcpy(copy, t->artifacts.at, t->artifacts.n * sizeof *copy);
        t->artifacts.at = copy;
    }
    for (size_t i = 0; i < t->artifacts.n; i++)
        dgm_guard_content(g, a, &t->artifacts.at[i].metadata, &t->artifacts.at[i].parts);
}
