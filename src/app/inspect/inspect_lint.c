/* app/inspect/inspect_lint.c - findings of lint, each with the record that it is about. */
#include "app/inspect/inspect_int.h"
#include "base/limits.h"
#include "base/list.h"
#include "json/json.h"

#include <stdlib.h>

static void lint_on_finding(void *arg, const dgm_finding *f)
{
    struct inspect_lint *l = arg;
    size_t value = f->value && f->value <= l->n ? f->value : l->n;
    if (l->n_findings++ >= DGM_MAX_FINDINGS)
        return;
    dgm_buf_printf(&l->out, "%s{\"seq\":%llu,\"rule\":\"%s\",\"severity\":\"%s\",\"message\":",
                   l->n_findings > 1 ? "," : "",
                   (unsigned long long)(value ? l->seqs[value - 1] : 0), f->rule->id,
                   dgm_severity_name(f->rule->severity));
    dgm_json_put_str(&l->out, dgm_str_from(f->message));
    dgm_buf_add_lit(&l->out, ",\"at\":");
    dgm_json_put_str(&l->out, dgm_str_from(f->at));
    dgm_buf_add_lit(&l->out, ",\"fix\":");
    dgm_json_put_str(&l->out, dgm_str_from(f->rule->fix));
    dgm_buf_add_char(&l->out, '}');
}

void dgm_inspect_lint_start(struct inspect_lint *l, dgm_format_id from)
{
    dgm_lint_options o = {.size = sizeof o, .from = from, .on_finding = lint_on_finding, .arg = l};
    dgm_buf_init(&l->out, SIZE_MAX); /* DGM_MAX_FINDINGS of them */
    dgm_buf_add_lit(&l->out, "{\"findings\":[");
    if (from)
        dgm_linter_new(&o, &l->linter, NULL); /* NULL: the format has no rules */
}

void dgm_inspect_lint_feed(struct inspect_lint *l, uint64_t seq, dgm_str bytes)
{
    if (!l->linter)
        return;
    l->seqs = dgm_list_reserve(l->seqs, l->n, &l->cap, sizeof *l->seqs);
    l->seqs[l->n++] = seq;
    dgm_linter_feed(l->linter, bytes.p, bytes.n);
}

const dgm_buf *dgm_inspect_lint_end(struct inspect_lint *l)
{
    dgm_linter_end(l->linter);
    dgm_buf_printf(&l->out, "],\"truncated\":%s,\"checked\":%s}",
                   l->n_findings > DGM_MAX_FINDINGS ? "true" : "false",
                   l->linter ? "true" : "false");
    return &l->out;
}

void dgm_inspect_lint_done(struct inspect_lint *l)
{
    dgm_linter_free(l->linter);
    free(l->seqs);
    dgm_buf_done(&l->out);
}
