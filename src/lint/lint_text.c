/*
 * lint/lint_text.c - finds texts that are sent twice.
 *
 * Of every text its length and a running sum are kept. Short texts repeat by chance ("ha", "haha"), so that
 * only those of some length are held against others.
 */
#include "lint/lint_int.h"

/* Long enough to be no chance: two words. */
#define TELLING 8

static uint64_t hash_of(dgm_str id)
{
    return dgm_hash(2, id.p, id.n);
}

static struct lint_text *text_at(struct lint_texts *t, size_t i)
{
    return &t->at[i % DGM_MAX_LINT_TEXTS];
}

static size_t oldest(const struct lint_texts *t)
{
    return t->n > DGM_MAX_LINT_TEXTS ? t->n - DGM_MAX_LINT_TEXTS : 0;
}

static struct lint_text *find(struct lint_texts *t, dgm_str id)
{
    for (size_t i = t->n; i > oldest(t); i--) {
        if (text_at(t, i - 1)->id == hash_of(id))
            return text_at(t, i - 1);
    }
    return NULL;
}

void dgm_lint_text_start(dgm_linter *l, dgm_str id, dgm_str text)
{
    struct lint_text *it = find(&l->texts, id);
    if (!text.n && !it)
        return;
    if (!it)
        it = text_at(&l->texts, l->texts.n++);
    *it = (struct lint_text){.id = hash_of(id), .pieces = 1};
    dgm_sum_add(&it->sum, text);
    l->texts.pieces++;
}

void dgm_lint_text_append(dgm_linter *l, dgm_str id, dgm_str delta, const char *at)
{
    struct lint_text *it = find(&l->texts, id);
    if (!it || !delta.n) {
        if (!it)
            dgm_lint_text_start(l, id, delta);
        return;
    }
    if (it->sum.n >= TELLING && dgm_sum_is_prefix(&it->sum, delta)) {
        dgm_lint_report_in(l, LINT_FINAL_TEXT_AS_DELTA, at, NULL);
        it->sum = (dgm_sum){
            0}; /* from here on, compare with the repeated text: the sender starts again */
    }
    dgm_sum_add(&it->sum, delta);
    it->pieces++;
    l->texts.pieces++;
}

void dgm_lint_text_complete(dgm_linter *l, dgm_str id, const char *at)
{
    const struct lint_text *it = find(&l->texts, id);
    for (size_t i = oldest(&l->texts); it && it->sum.n >= TELLING && i < l->texts.n; i++) {
        const struct lint_text *other = text_at(&l->texts, i);
        if (other->id != it->id && dgm_sum_eq(&other->sum, &it->sum)) {
            dgm_lint_report_in(l, LINT_FINAL_TEXT_TWICE, at, NULL);
            return;
        }
    }
}

/* The authoritative text, held against the last that was streamed. */
void dgm_lint_text_final(dgm_linter *l, dgm_str text, const char *at)
{
    const struct lint_texts *t = &l->texts;
    if (!t->n || !text.n)
        return;
    const dgm_sum *sum = &text_at(&l->texts, t->n - 1)->sum;
    if (sum->n >= TELLING && text.n == 2 * sum->n && dgm_sum_is_prefix(sum, text) &&
        dgm_sum_is_prefix(sum, (dgm_str){text.p + sum->n, sum->n})) {
        dgm_lint_report_in(l, LINT_FINAL_TEXT_TWICE, at,
                           "the final text contains the streamed text twice");
        return;
    }
    /* A document beside a word about it is no answer in pieces: only what was streamed counts. */
    if (t->n == 1 && t->pieces > 1 && !dgm_sum_is_prefix(sum, text))
        dgm_lint_report_in(l, LINT_FINAL_TEXT_DIFFERS, at, NULL);
}
