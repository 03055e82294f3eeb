/* lint/lint_seen.c - what a stream has sent so far, in bounded memory: ids (a table of hashes), texts, tool calls. */
#include "base/err.h"
#include "canon/message_content.h"
#include "lint/lint_int.h"

#include <stdlib.h>

static uint64_t seen_hash(dgm_str id)
{
    uint64_t h = dgm_hash(1, id.p, id.n);
    return h ? h : 1;
}

/* The slot that holds it, or the free one where it belongs. */
static struct lint_seen_slot *slot_of(const struct lint_seen *s, uint64_t hash)
{
    size_t i = (size_t)hash & (s->cap - 1);
    while (s->slots[i].hash && s->slots[i].hash != hash)
        i = (i + 1) & (s->cap - 1);
    return &s->slots[i];
}

static void grow(struct lint_seen *s)
{
    struct lint_seen old = *s;
    s->cap = old.cap ? 2 * old.cap : 16;
    s->slots = dgm_xcalloc(s->cap, sizeof *s->slots);
    for (size_t i = 0; i < old.cap; i++) {
        if (old.slots[i].hash)
            *slot_of(s, old.slots[i].hash) = old.slots[i];
    }
    free(old.slots);
}

uint64_t *dgm_lint_seen_find(const struct lint_seen *s, dgm_str id)
{
    if (!s->cap)
        return NULL;
    struct lint_seen_slot *slot = slot_of(s, seen_hash(id));
    return slot->hash ? &slot->value : NULL;
}

uint64_t *dgm_lint_seen_add(struct lint_seen *s, dgm_str id)
{
    uint64_t hash = seen_hash(id), *there = dgm_lint_seen_find(s, id);
    if (there)
        return there;
    if (s->n == DGM_MAX_LINT_ITEMS) {
        s->full = true;
        return NULL;
    }
    if (2 * s->n >= s->cap)
        grow(s);
    struct lint_seen_slot *slot = slot_of(s, hash);
    slot->hash = hash;
    s->n++;
    return &slot->value;
}

void dgm_lint_seen_clear(struct lint_seen *s)
{
    free(s->slots);
    *s = (struct lint_seen){0};
}

/* ---- texts that are sent twice --------------------------------------------------------------------------------- */

/* The length and a hash of each text are stored. Short texts repeat by chance ("ha", "haha"), so only texts of at
 * least this length (about two words) are compared. */
#define LEAST_BYTES 8

static uint64_t text_hash(dgm_str id)
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

static struct lint_text *lint_seen_find(struct lint_texts *t, dgm_str id)
{
    for (size_t i = t->n; i > oldest(t); i--) {
        if (text_at(t, i - 1)->id == text_hash(id))
            return text_at(t, i - 1);
    }
    return NULL;
}

void dgm_lint_text_start(dgm_linter *l, dgm_str id, dgm_str text)
{
    struct lint_text *it = lint_seen_find(&l->texts, id);
    if (!text.n && !it)
        return;
    if (!it)
        it = text_at(&l->texts, l->texts.n++);
    *it = (struct lint_text){.id = text_hash(id), .pieces = 1};
    dgm_sum_add(&it->sum, text);
    l->texts.pieces++;
}

void dgm_lint_text_append(dgm_linter *l, dgm_str id, dgm_str delta, const char *at)
{
    struct lint_text *it = lint_seen_find(&l->texts, id);
    if (!it || !delta.n) {
        if (!it)
            dgm_lint_text_start(l, id, delta);
        return;
    }
    if (it->sum.n >= LEAST_BYTES && dgm_sum_is_prefix(&it->sum, delta)) {
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
    const struct lint_text *it = lint_seen_find(&l->texts, id);
    for (size_t i = oldest(&l->texts); it && it->sum.n >= LEAST_BYTES && i < l->texts.n; i++) {
        const struct lint_text *other = text_at(&l->texts, i);
        if (other->id != it->id && dgm_sum_eq(&other->sum, &it->sum)) {
            dgm_lint_report_in(l, LINT_FINAL_TEXT_TWICE, at, NULL);
            return;
        }
    }
}

/* Compares the final text with the last one that was streamed. */
void dgm_lint_text_final(dgm_linter *l, dgm_str text, const char *at)
{
    const struct lint_texts *t = &l->texts;
    if (!t->n || !text.n)
        return;
    const dgm_sum *sum = &text_at(&l->texts, t->n - 1)->sum;
    if (sum->n >= LEAST_BYTES && text.n == 2 * sum->n && dgm_sum_is_prefix(sum, text) &&
        dgm_sum_is_prefix(sum, (dgm_str){text.p + sum->n, sum->n})) {
        dgm_lint_report_in(l, LINT_FINAL_TEXT_TWICE, at,
                           "the final text contains the streamed text twice");
        return;
    }
    /* An artifact that was sent complete is not a streamed answer: only streamed texts are compared. */
    if (t->n == 1 && t->pieces > 1 && !dgm_sum_is_prefix(sum, text))
        dgm_lint_report_in(l, LINT_FINAL_TEXT_DIFFERS, at, NULL);
}

/* ---- results without a call ------------------------------------------------------------------------------------ */

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

static void lint_check_part(dgm_linter *l, const dgm_message *m, size_t i, const dgm_at *at)
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
            lint_check_part(l, m, i, at);
    }
}
