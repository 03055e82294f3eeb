/* schema/schema_apply.c - rules that apply other schemas to the same value. */
#include "schema/schema_int.h"

/* ---- references -------------------------------------------------------------------------------- */

DGM_SCHEMA_CHECK(reference)
{
    return dgm_schema_visit_node(run, rule->node, visit->value, visit->at, visit->scope,
                                 visit->seen);
}

/* The anchor of the outermost resource that has it, among those that the check has entered. */
static const dgm_schema_node *find_dynamic(dgm_schema_run *run, const dgm_schema_rule *rule,
                                           const dgm_schema_scope *scope)
{
    const dgm_schema_node *found = rule->node;
    for (; scope; scope = scope->up) {
        const dgm_schema_resource *r = scope->resource;
        if (!dgm_schema_spend(run, 1 + r->n_dynamic))
            break;
        for (size_t i = 0; i < r->n_dynamic; i++) {
            if (dgm_str_eq(r->dynamic[i].name, rule->anchor))
                found = r->dynamic[i].node;
        }
    }
    return found;
}

DGM_SCHEMA_CHECK(dynamic_reference)
{
    const dgm_schema_node *node =
        rule->anchor.p ? find_dynamic(run, rule, visit->scope) : rule->node;
    return dgm_schema_visit_node(run, node, visit->value, visit->at, visit->scope, visit->seen);
}

/* ---- allOf, not, if ---------------------------------------------------------------------------- */

DGM_SCHEMA_CHECK(all_of)
{
    bool is_valid = true;
    for (size_t i = 0; i < rule->n_nodes && (is_valid || dgm_schema_wants_more(run)); i++)
        is_valid &= dgm_schema_visit_node(run, rule->nodes[i], visit->value, visit->at,
                                          visit->scope, visit->seen);
    return is_valid;
}

/* Whether it is valid, without a report. `seen` is extended only if it is. */
static bool is_valid_against(dgm_schema_run *run, const dgm_schema_node *node,
                             const dgm_schema_visit *visit)
{
    dgm_err *mistakes = run->mistakes;
    dgm_schema_seen *seen = visit->seen ? dgm_schema_seen_new(run, visit->value) : NULL;
    run->mistakes = NULL;
    bool is_valid = dgm_schema_visit_node(run, node, visit->value, visit->at, visit->scope, seen);
    run->mistakes = mistakes;
    if (is_valid && seen)
        dgm_schema_seen_merge(visit->seen, seen);
    return is_valid;
}

DGM_SCHEMA_CHECK(negation)
{
    dgm_schema_visit alone = *visit;
    alone.seen = NULL; /* the members that `not` evaluates do not count */
    if (!is_valid_against(run, rule->node, &alone))
        return !run->stop;
    dgm_str got = dgm_schema_quote(run, visit->value);
    return dgm_schema_mistake(run, visit->at, "the value %.*s is excluded by the schema (not)",
                              DGM_P(got));
}

DGM_SCHEMA_CHECK(condition)
{
    bool holds = is_valid_against(run, rule->node, visit);
    const dgm_schema_node *next = holds ? rule->then : rule->otherwise;
    if (run->stop)
        return false;
    return !next ||
           dgm_schema_visit_node(run, next, visit->value, visit->at, visit->scope, visit->seen);
}

/* ---- anyOf, oneOf ------------------------------------------------------------------------------ */

/* Alternatives whose first mistake is in the report. More would not fit into its text. */
#define SHOWN_ALTERNATIVES 4

struct alternatives {
    dgm_err *mistakes; /* the first one of each; NULL: no report */
    size_t n_valid, first, second;
};

static bool try_alternative(dgm_schema_run *run, const dgm_schema_node *node,
                            const dgm_schema_visit *visit, dgm_err *ret_mistake)
{
    dgm_schema_run outer = *run;
    if (!ret_mistake)
        return is_valid_against(run, node, visit);
    dgm_schema_seen *seen = visit->seen ? dgm_schema_seen_new(run, visit->value) : NULL;
    run->mistakes = ret_mistake;
    run->n_mistakes = 0;
    run->max_mistakes = 1;
    bool is_valid = dgm_schema_visit_node(run, node, visit->value, visit->at, visit->scope, seen);
    run->mistakes = outer.mistakes;
    run->n_mistakes = outer.n_mistakes;
    run->max_mistakes = outer.max_mistakes;
    if (is_valid && seen)
        dgm_schema_seen_merge(visit->seen, seen);
    return is_valid;
}

/* All are tried if annotations are collected, and to find a second valid one for oneOf. */
static struct alternatives try_alternatives(dgm_schema_run *run, const dgm_schema_rule *rule,
                                            const dgm_schema_visit *visit, size_t enough)
{
    struct alternatives found = {0};
    if (dgm_schema_wants_more(run) && dgm_schema_spend(run, 16))
        found.mistakes = dgm_new_n(run->arena, dgm_err, SHOWN_ALTERNATIVES);
    for (size_t i = 0; i < rule->n_nodes && found.n_valid < enough && !run->stop; i++) {
        dgm_err *mistake = found.mistakes && i < SHOWN_ALTERNATIVES ? &found.mistakes[i] : NULL;
        if (!try_alternative(run, rule->nodes[i], visit, mistake))
            continue;
        if (found.n_valid == 0)
            found.first = i;
        else if (found.n_valid == 1)
            found.second = i;
        found.n_valid++;
    }
    return found;
}

static bool report_alternatives(dgm_schema_run *run, const dgm_schema_rule *rule,
                                const dgm_schema_visit *visit, const struct alternatives *found)
{
    char here[sizeof found->mistakes->at];
    dgm_str texts[SHOWN_ALTERNATIVES];
    if (!found->mistakes || !dgm_schema_wants_more(run))
        return false;
    if (rule->n_nodes == 1) { /* the mistake itself */
        run->mistakes[run->n_mistakes++] = found->mistakes[0];
        return false;
    }
    dgm_at_text(visit->at, here, sizeof here);
    for (size_t i = 0; i < rule->n_nodes && i < SHOWN_ALTERNATIVES; i++) {
        const dgm_err *e = &found->mistakes[i];
        bool is_here = strcmp(here, e->at) == 0;
        texts[i] = dgm_arena_printf(run->arena, "(%zu) %s%s%.*s", i + 1, is_here ? "" : e->at,
                                    is_here ? "" : ": ", 120, e->msg);
    }
    dgm_str list = dgm_schema_join(run, texts, rule->n_nodes, SHOWN_ALTERNATIVES);
    return dgm_schema_mistake(run, visit->at,
                              "the value does not fit any of %zu alternatives: %.*s", rule->n_nodes,
                              DGM_P(list));
}

DGM_SCHEMA_CHECK(any_of)
{
    struct alternatives found = try_alternatives(run, rule, visit, visit->seen ? SIZE_MAX : 1);
    if (run->stop)
        return false;
    return found.n_valid || report_alternatives(run, rule, visit, &found);
}

DGM_SCHEMA_CHECK(one_of)
{
    struct alternatives found = try_alternatives(run, rule, visit, 2);
    if (run->stop || found.n_valid == 1)
        return !run->stop;
    if (!found.n_valid)
        return report_alternatives(run, rule, visit, &found);
    return dgm_schema_mistake(
        run, visit->at, "the value fits alternatives %zu and %zu, but it must fit exactly one",
        found.first + 1, found.second + 1);
}
