/* lint/lint_tools.c - results belong to calls. */
#include "lint/lint_int.h"

#include "base/err.h"
#include "canon/message_content.h"

void dgm_lint_add_call(dgm_linter *l, dgm_str call_id)
{
    dgm_lint_seen_add(&l->calls, call_id);
}

void dgm_lint_add_result(dgm_linter *l, dgm_str call_id, const char *at)
{
    if (dgm_lint_seen_find(&l->calls, call_id) || l->calls.full)
        return;
    dgm_lint_report_in(l, LINT_RESULT_WITHOUT_CALL, at,
                       "a result for \"%.*s\", which is not the id of a call",
                       (int)(call_id.n < 60 ? call_id.n : 60), call_id.p);
}

static void look_at_part(dgm_linter *l, const dgm_message *m, size_t i, const dgm_at *at)
{
    const dgm_part *part = &m->parts.at[i];
    bool rest = l->format->dialect == LINT_03_REST;
    const dgm_at *parts = DGM_AT(at, rest ? DGM_STR("content") : DGM_STR("parts"));
    const dgm_at *outer = DGM_AT_LIT(DGM_AT_I(parts, i), "data");
    const dgm_at *inner = DGM_AT_LIT(outer, "data"); /* where 0.3's proto has it */
    const dgm_at *data = rest ? inner : outer;
    const dgm_at *results = DGM_AT_LIT(data, DGM_DATA_RESULTS);
    dgm_content_tools tools = {{0}, {0}};
    dgm_err err = {0};
    char pointer[sizeof err.at];
    if (!dgm_content_data_member(part, DGM_DATA_CALLS) &&
        !dgm_content_data_member(part, DGM_DATA_RESULTS))
        return;
    if (dgm_content_read_tools(l->arena, part, m->role, data, &tools, &err)) {
        dgm_lint_report_in(l, LINT_WRONG_VALUE, err.at, "%s", err.msg);
        return;
    }
    for (size_t k = 0; k < tools.calls.n; k++)
        dgm_lint_add_call(l, tools.calls.at[k].call_id);
    for (size_t k = 0; k < tools.results.n; k++) {
        dgm_at_text(DGM_AT_I(results, k), pointer, sizeof pointer);
        dgm_lint_add_result(l, tools.results.at[k].call_id, pointer);
    }
}

void dgm_lint_message_tools(dgm_linter *l, const dgm_message *m, const dgm_at *at)
{
    for (size_t i = 0; i < m->parts.n; i++) {
        if (m->parts.at[i].kind == DGM_PART_DATA)
            look_at_part(l, m, i, at);
    }
}
