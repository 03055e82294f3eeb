/*
 * core/lint_append.c - what an agent should not have emitted: the rules of model/rules.h on every event.
 *
 * Each rule is told of once per run and counted. Nothing is refused here: what the task cannot take its
 * fold refuses, of our own agents, or leaves out, of others.
 */
#include "core/core_int.h"
#include "model/rules.h"

_Static_assert(DGM_N_EVENT_RULES == N_RULES, "N_RULES of core_int.h");

void dgm_core_run_warn(struct run *r, const char *rule, const dgm_err *what)
{
    dgm_core *core = r->shard->core;
    atomic_fetch_add_explicit(&core->warnings, 1, memory_order_relaxed);
    if (core->o.on_warning)
        core->o.on_warning(core->o.user, r->input.task_id, rule, what);
}

static void lint_report(struct run *r, dgm_event_rule rule, const dgm_event_view *v)
{
    dgm_err what = {0};
    dgm_event_breaks(rule, v, &what);
    r->told |= 1u << rule;
    atomic_fetch_add_explicit(&r->shard->core->broken[rule], 1, memory_order_relaxed);
    dgm_core_run_warn(r, dgm_event_rule_id(rule), &what);
}

void dgm_core_run_lint(struct run *r, const dgm_event *e)
{
    dgm_event_view v = {.event = e,
                        .task_id = r->input.task_id,
                        .context_id = r->input.context_id,
                        .has_task = r->live != NULL,
                        .state = r->live ? r->live->task_state : DGM_STATE_SUBMITTED};
    if (r->live && e->kind == DGM_EVENT_ARTIFACT)
        v.artifact = dgm_fold_artifact_of(r->live->fold, e->artifact->artifact.artifact_id);
    for (int i = 0; i < DGM_N_EVENT_RULES; i++) {
        dgm_event_rule rule = (dgm_event_rule)i;
        if (!(r->told >> i & 1) && dgm_event_breaks(rule, &v, NULL))
            lint_report(r, rule, &v);
    }
}

bool dgm_core_rule(dgm_core *core, size_t i, const char **ret_name, const char **ret_about,
                   uint64_t *ret_broken)
{
    if (i >= N_RULES)
        return false;
    *ret_name = dgm_event_rule_id((dgm_event_rule)i);
    *ret_about = dgm_event_rule_about((dgm_event_rule)i);
    *ret_broken = atomic_load_explicit(&core->broken[i], memory_order_relaxed);
    return true;
}
