/* lint/lint_rules.c - the table as others see it. */
#include "lint/lint_rules.h"

#include <dragoman/lint.h>

static const dgm_lint_rule rules[LINT_N_RULES] = {
#define X(sym, id, severity, of, about, fix) {id, DGM_SEVERITY_##severity, of, about, fix},
    LINT_RULES(X)
#undef X
};

size_t dgm_lint_rules(const dgm_lint_rule **ret_rules)
{
    *ret_rules = rules;
    return LINT_N_RULES;
}

const char *dgm_severity_name(dgm_severity s)
{
    static const char *const names[DGM_N_SEVERITIES] = {"note", "warning", "error"};
    return names[s];
}
