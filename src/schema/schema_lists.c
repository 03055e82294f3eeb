/* schema/schema_lists.c - rules about the items of arrays and the members of objects. */
#include "schema/schema_int.h"

#include <inttypes.h>

/* ---- items ------------------------------------------------------------------------------------- */

DGM_SCHEMA_CHECK(items)
{
    bool is_valid = true;
    yyjson_val *item;
    size_t i, n;
    yyjson_arr_foreach (dgm_schema_plain(visit->value), i, n, item) {
        const dgm_schema_node *node = i < rule->n_nodes ? rule->nodes[i] : rule->node;
        if (!node || (!is_valid && !dgm_schema_wants_more(run)))
            break;
        is_valid &= dgm_schema_visit_child(run, node, visit, item, DGM_AT_I(visit->at, i));
        dgm_schema_seen_add(visit->seen, i);
    }
    return is_valid;
}

static size_t count_contained(dgm_schema_run *run, const dgm_schema_rule *rule,
                              const dgm_schema_visit *visit)
{
    dgm_err *mistakes = run->mistakes;
    yyjson_val *item;
    size_t i, n, count = 0;
    run->mistakes = NULL;
    yyjson_arr_foreach (dgm_schema_plain(visit->value), i, n, item) {
        if (run->stop)
            break;
        if (dgm_schema_visit_child(run, rule->node, visit, item, DGM_AT_I(visit->at, i))) {
            dgm_schema_seen_add(visit->seen, i);
            count++;
        }
    }
    run->mistakes = mistakes;
    return count;
}

DGM_SCHEMA_CHECK(contains)
{
    size_t count = count_contained(run, rule, visit);
    if (run->stop || (count >= rule->min && count <= rule->max))
        return !run->stop;
    bool is_few = count < rule->min;
    return dgm_schema_mistake(run, visit->at,
                              "expected at %s %" PRIu64
                              " items that fit the schema of `contains`, got %zu",
                              is_few ? "least" : "most", is_few ? rule->min : rule->max, count);
}

DGM_SCHEMA_CHECK(unevaluated_items)
{
    bool is_valid = true;
    yyjson_val *item;
    size_t i, n;
    yyjson_arr_foreach (dgm_schema_plain(visit->value), i, n, item) {
        if (dgm_schema_seen_has(visit->seen, i))
            continue;
        if (!is_valid && !dgm_schema_wants_more(run))
            break;
        is_valid &= dgm_schema_visit_child(run, rule->node, visit, item, DGM_AT_I(visit->at, i));
        dgm_schema_seen_add(visit->seen, i);
    }
    return is_valid;
}

/* ---- members ----------------------------------------------------------------------------------- */

#define SHOWN_NAMES 12 /* of allowed members, in a mistake */

static bool is_false(const dgm_schema_node *node)
{
    return yyjson_is_false(dgm_schema_plain(node->value));
}

static bool report_unknown(dgm_schema_run *run, const dgm_schema_rule *rule,
                           const dgm_schema_visit *visit, dgm_str name)
{
    dgm_str list = dgm_schema_join(run, rule->names, rule->n_nodes, SHOWN_NAMES);
    if (!rule->n_nodes)
        return dgm_schema_mistake(run, visit->at, "unknown member \"%.*s\": no members are allowed",
                                  (int)(name.n < 120 ? name.n : 120), name.p);
    return dgm_schema_mistake(run, visit->at, "unknown member \"%.*s\". Allowed members: %.*s",
                              (int)(name.n < 120 ? name.n : 120), name.p, DGM_P(list));
}

/* A member by its name, by every pattern that its name matches, else as an additional one. */
static bool check_member(dgm_schema_run *run, const dgm_schema_rule *rule,
                         const dgm_schema_visit *visit, dgm_str name, const yyjson_val *v,
                         bool *ret_is_evaluated)
{
    const dgm_at *at = DGM_AT(visit->at, name);
    size_t *index = dgm_map_get(&rule->by_name, name);
    bool is_known = index != NULL, is_valid = true;
    if (index)
        is_valid = dgm_schema_visit_child(run, rule->nodes[*index], visit, v, at);
    for (size_t i = 0; i < rule->n_patterns && !run->stop; i++) {
        if (!dgm_schema_pattern_matches(run, rule->patterns[i], name))
            continue;
        is_known = true;
        is_valid &= dgm_schema_visit_child(run, rule->pattern_nodes[i], visit, v, at);
    }
    *ret_is_evaluated = is_known || rule->node;
    if (is_known || !rule->node)
        return is_valid;
    if (is_false(rule->node) && !rule->n_patterns)
        return report_unknown(run, rule, visit, name);
    return dgm_schema_visit_child(run, rule->node, visit, v, at);
}

DGM_SCHEMA_CHECK(members)
{
    bool is_valid = true, is_evaluated;
    yyjson_val *key, *value;
    size_t i, n;
    yyjson_obj_foreach (dgm_schema_plain(visit->value), i, n, key, value) {
        if (!dgm_schema_spend(run, 1) || (!is_valid && !dgm_schema_wants_more(run)))
            break;
        is_valid &= check_member(run, rule, visit, dgm_json_str(key), value, &is_evaluated);
        if (is_evaluated)
            dgm_schema_seen_add(visit->seen, i);
    }
    return is_valid && !run->stop;
}

DGM_SCHEMA_CHECK(unevaluated_members)
{
    bool is_valid = true;
    yyjson_val *key, *value;
    size_t i, n;
    yyjson_obj_foreach (dgm_schema_plain(visit->value), i, n, key, value) {
        dgm_str name = dgm_json_str(key);
        if (dgm_schema_seen_has(visit->seen, i))
            continue;
        if (!is_valid && !dgm_schema_wants_more(run))
            break;
        if (is_false(rule->node))
            is_valid = dgm_schema_mistake(run, visit->at, "unknown member \"%.*s\"",
                                          (int)(name.n < 120 ? name.n : 120), name.p);
        else
            is_valid &=
                dgm_schema_visit_child(run, rule->node, visit, value, DGM_AT(visit->at, name));
        dgm_schema_seen_add(visit->seen, i);
    }
    return is_valid;
}

DGM_SCHEMA_CHECK(member_names)
{
    bool is_valid = true;
    yyjson_val *key, *value;
    size_t i, n;
    yyjson_obj_foreach (dgm_schema_plain(visit->value), i, n, key, value) {
        if (!is_valid && !dgm_schema_wants_more(run))
            break;
        is_valid &= dgm_schema_visit_child(run, rule->node, visit, key,
                                           DGM_AT(visit->at, dgm_json_str(key)));
    }
    return is_valid;
}

/* ---- required members -------------------------------------------------------------------------- */

static bool has_member(dgm_schema_run *run, const yyjson_val *object, dgm_str name)
{
    return dgm_schema_spend(run, 1 + yyjson_obj_size(dgm_schema_plain(object)) / 8) &&
           dgm_json_get(object, name) != NULL;
}

static bool check_names(dgm_schema_run *run, const yyjson_val *names, const dgm_schema_visit *visit,
                        dgm_str because)
{
    bool is_valid = true;
    yyjson_val *item;
    size_t i, n;
    yyjson_arr_foreach (dgm_schema_plain(names), i, n, item) {
        if ((!is_valid && !dgm_schema_wants_more(run)) || run->stop)
            break;
        if (has_member(run, visit->value, dgm_json_str(item)))
            continue;
        dgm_str name = dgm_schema_quote(run, item);
        is_valid =
            because.p ? dgm_schema_mistake(run, visit->at,
                                           "missing member %.*s, which \"%.*s\" needs", DGM_P(name),
                                           (int)(because.n < 120 ? because.n : 120), because.p)
                      : dgm_schema_mistake(run, visit->at, "missing member %.*s", DGM_P(name));
    }
    return is_valid && !run->stop;
}

DGM_SCHEMA_CHECK(required)
{
    return check_names(run, rule->value, visit, (dgm_str){0});
}

/* Each name has a schema, or a list of names. */
DGM_SCHEMA_CHECK(dependent)
{
    bool is_valid = true;
    for (size_t i = 0; i < rule->n_nodes && (is_valid || dgm_schema_wants_more(run)); i++) {
        if (!has_member(run, visit->value, rule->names[i]))
            continue;
        if (rule->nodes[i])
            is_valid &= dgm_schema_visit_node(run, rule->nodes[i], visit->value, visit->at,
                                              visit->scope, visit->seen);
        else
            is_valid &= check_names(run, rule->lists[i], visit, rule->names[i]);
    }
    return is_valid && !run->stop;
}
