/* model/reconcile.c - see reconcile.h. */
#include "model/reconcile.h"
#include "base/list.h"

#include <stdlib.h>

/* ---- sums ------------------------------------------------------------------------------------------ */

/* For a given sum no two words give the same, for a given word no two sums: what differs stays so, until
 * something else undoes it by chance. */
static inline uint64_t mix(uint64_t sum, const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return ((sum << 29 | sum >> 35) ^ word) * 0x9e3779b97f4a7c15u;
}

/* All whole blocks of the text; returns how many bytes that were. A product takes the machine some steps, but
 * it can have several under way if none needs another's result: hence the lanes. */
static size_t add_blocks(dgm_sum *s, const char *p, size_t n)
{
    uint64_t a = s->lanes[0], b = s->lanes[1], c = s->lanes[2], d = s->lanes[3];
    size_t i = 0;
    for (; n - i >= DGM_SUM_BLOCK; i += DGM_SUM_BLOCK) {
        a = mix(a, p + i);
        b = mix(b, p + i + 8);
        c = mix(c, p + i + 16);
        d = mix(d, p + i + 24);
    }
    s->lanes[0] = a;
    s->lanes[1] = b;
    s->lanes[2] = c;
    s->lanes[3] = d;
    return i;
}

void dgm_sum_add(dgm_sum *s, dgm_str text)
{
    size_t have = s->n % DGM_SUM_BLOCK, room = DGM_SUM_BLOCK - have, used = 0;
    s->n += text.n;
    if (text.n < room) {
        if (text.n)
            memcpy(s->tail + have, text.p, text.n);
        return;
    }
    if (have) {
        memcpy(s->tail + have, text.p, room);
        add_blocks(s, s->tail, DGM_SUM_BLOCK);
        used = room;
    }
    used += add_blocks(s, text.p + used, text.n - used);
    if (text.n > used)
        memcpy(s->tail, text.p + used, text.n - used);
}

bool dgm_sum_eq(const dgm_sum *a, const dgm_sum *b)
{
    return a->n == b->n && memcmp(a->lanes, b->lanes, sizeof a->lanes) == 0 &&
           memcmp(a->tail, b->tail, a->n % DGM_SUM_BLOCK) == 0;
}

bool dgm_sum_is_prefix(const dgm_sum *s, dgm_str text)
{
    if (text.n < s->n)
        return false;
    dgm_sum other = {0};
    dgm_sum_add(&other, (dgm_str){text.p, s->n});
    return dgm_sum_eq(&other, s);
}

#define MAX_BLANKS 8
size_t dgm_sum_end_in(const dgm_sum *s, dgm_str text, size_t at, bool skip_blanks)
{
    for (size_t skipped = 0;; skipped++, at++) {
        if (dgm_sum_is_prefix(s, (dgm_str){text.p + at, text.n - at}))
            return at + s->n;
        if (!skip_blanks || skipped == MAX_BLANKS || at == text.n ||
            !memchr(" \t\r\n", text.p[at], 4))
            return SIZE_MAX;
    }
}

/* ---- texts that the caller has ----------------------------------------------------------------------- */

dgm_text_change dgm_text_compare(dgm_str before, dgm_str all)
{
    if (!dgm_str_starts(all, before))
        return (dgm_text_change){DGM_TEXT_REPLACE, DGM_NO_STREAM, all};
    dgm_str rest = {all.p + before.n, all.n - before.n};
    return (dgm_text_change){rest.n ? DGM_TEXT_APPEND : DGM_TEXT_UNCHANGED, DGM_NO_STREAM, rest};
}

void dgm_status_text_set(dgm_status_text *t, dgm_str whole)
{
    dgm_buf_clear(&t->text);
    dgm_buf_add_str(&t->text, whole);
}

void dgm_status_text_add(dgm_status_text *t, dgm_str piece)
{
    dgm_str before = dgm_buf_str(&t->text);
    dgm_buf all;
    if (!piece.n)
        return;
    if (t->mode == DGM_TEXT_SECOND)
        t->first_n = before.n;
    bool extends = piece.n > before.n && dgm_str_starts(piece, before);
    switch (dgm_text_next_step(&t->mode, before.n, extends)) {
    case DGM_STEP_ADD: dgm_buf_add_str(&t->text, piece); return;
    case DGM_STEP_ADD_REST:
    case DGM_STEP_REPLACE: dgm_status_text_set(t, piece); return;
    case DGM_STEP_TAKE_BACK: /* the first, the second (which starts with it), this */
        dgm_buf_init(&all, t->text.max);
        dgm_buf_add(&all, before.p, t->first_n);
        dgm_buf_add_str(&all, before);
        dgm_buf_add_str(&all, piece);
        dgm_buf_done(&t->text);
        t->text = all;
    }
}

size_t dgm_status_text_begins(const dgm_status_text *t, dgm_str whole)
{
    return dgm_str_starts(whole, dgm_buf_str(&t->text)) ? t->text.n : SIZE_MAX;
}

/* ---- streams ---------------------------------------------------------------------------------------- */

struct stream {
    dgm_sum sum;
    dgm_text_mode mode;
    /* GUESSED: the first text's length, and the second. Later: what was put together of them. */
    size_t first_n;
    dgm_buf kept;
};

struct dgm_reconcile {
    dgm_status_texts status_texts;
    struct stream *streams;
    size_t n, cap;
    size_t first; /* final texts are about those from here on */
    bool is_joined, is_tail;
};

dgm_reconcile *dgm_reconcile_new(dgm_status_texts status_texts)
{
    dgm_reconcile *r = dgm_xcalloc(1, sizeof *r);
    r->status_texts = status_texts;
    return r;
}

void dgm_reconcile_free(dgm_reconcile *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n; i++)
        dgm_buf_done(&r->streams[i].kept);
    free(r->streams);
    free(r);
}

size_t dgm_reconcile_open(dgm_reconcile *r)
{
    static const dgm_text_mode modes[] = {DGM_TEXT_FIRST, DGM_TEXT_DELTAS, DGM_TEXT_CUMULATIVE};
    r->streams = dgm_list_reserve(r->streams, r->n, &r->cap, sizeof *r->streams);
    r->streams[r->n] = (struct stream){.mode = modes[r->status_texts]};
    dgm_buf_init(&r->streams[r->n].kept,
                 SIZE_MAX); /* two texts at most, each within record_bytes */
    return r->n++;
}

/* ---- what is new --------------------------------------------------------------------------------------- */

dgm_text_change dgm_reconcile_delta(dgm_reconcile *r, size_t stream, dgm_str text)
{
    if (!text.n)
        return (dgm_text_change){DGM_TEXT_UNCHANGED, stream, {0}};
    dgm_sum_add(&r->streams[stream].sum, text);
    return (dgm_text_change){DGM_TEXT_APPEND, stream, text};
}

static dgm_text_change instead(struct stream *s, size_t stream, dgm_str text)
{
    s->sum = (dgm_sum){0};
    dgm_sum_add(&s->sum, text);
    return (dgm_text_change){DGM_TEXT_REPLACE, stream, text};
}

dgm_text_change dgm_reconcile_replace(dgm_reconcile *r, size_t stream, dgm_str text)
{
    struct stream *s = &r->streams[stream];
    if (!s->sum.n)
        return dgm_reconcile_delta(r, stream, text);
    return dgm_sum_is_prefix(&s->sum, text)
               ? dgm_reconcile_delta(r, stream, (dgm_str){text.p + s->sum.n, text.n - s->sum.n})
               : instead(s, stream, text);
}

/* ---- status texts ---------------------------------------------------------------------------------------- */

/* They were deltas all along: the first, the second and this. */
static dgm_text_change take_back(struct stream *s, size_t stream, dgm_str text)
{
    dgm_buf all;
    dgm_buf_init(&all, SIZE_MAX);
    dgm_buf_add(&all, s->kept.p, s->first_n);
    dgm_buf_add_str(&all, dgm_buf_str(&s->kept));
    dgm_buf_add_str(&all, text);
    dgm_buf_done(&s->kept);
    s->kept = all;
    return instead(s, stream, dgm_buf_str(&s->kept));
}

dgm_text_change dgm_reconcile_status(dgm_reconcile *r, size_t stream, dgm_str text)
{
    struct stream *s = &r->streams[stream];
    size_t before = s->sum.n;
    if (!text.n)
        return dgm_reconcile_delta(r, stream, text);
    bool extends =
        s->mode != DGM_TEXT_DELTAS && text.n > before && dgm_sum_is_prefix(&s->sum, text);
    dgm_text_step step = dgm_text_next_step(&s->mode, before, extends);
    if (s->mode == DGM_TEXT_GUESSED) {
        s->first_n = before;
        dgm_buf_clear(&s->kept);
        dgm_buf_add_str(&s->kept, text);
    }
    switch (step) {
    case DGM_STEP_ADD: break;
    case DGM_STEP_ADD_REST:
        return dgm_reconcile_delta(r, stream, (dgm_str){text.p + before, text.n - before});
    case DGM_STEP_TAKE_BACK: return take_back(s, stream, text);
    case DGM_STEP_REPLACE: return dgm_reconcile_replace(r, stream, text);
    }
    return dgm_reconcile_delta(r, stream, text);
}

size_t dgm_reconcile_begins(const dgm_reconcile *r, size_t stream, dgm_str text)
{
    const struct stream *s = &r->streams[stream];
    return dgm_sum_is_prefix(&s->sum, text) ? s->sum.n : SIZE_MAX;
}

/* ---- final texts ------------------------------------------------------------------------------------------- */

/*
 * Where the text goes on behind all streams, each as it was sent; 0 when it does not contain them all. Blank space between
 * two is skipped.
 */
static size_t end_of_all(const dgm_reconcile *r, dgm_str text)
{
    size_t at = 0;
    for (size_t i = r->first; i < r->n && at != SIZE_MAX; i++)
        at = dgm_sum_end_in(&r->streams[i].sum, text, at, i != r->first);
    return at == SIZE_MAX ? 0 : at;
}

static bool is_said(const dgm_reconcile *r, dgm_str text)
{
    for (size_t i = r->first; i < r->n; i++) {
        if (r->streams[i].sum.n == text.n && dgm_sum_is_prefix(&r->streams[i].sum, text))
            return true;
    }
    return false;
}

static size_t skip_blanks_back(dgm_str text, size_t at)
{
    for (size_t i = 0; i < MAX_BLANKS && at && memchr(" \t\r\n", text.p[at - 1], 4); i++)
        at--;
    return at;
}

/* Does the text end with all streams, each as it was sent, and does what is in front of them fit? */
static bool ends_with_all(const dgm_reconcile *r, dgm_str text)
{
    size_t end = text.n;
    for (size_t i = r->n; i > r->first; i--) {
        const dgm_sum *sum = &r->streams[i - 1].sum;
        if (i != r->n &&
            (end < sum->n || !dgm_sum_is_prefix(sum, (dgm_str){text.p + end - sum->n, sum->n})))
            end = skip_blanks_back(text, end);
        if (end < sum->n || !dgm_sum_is_prefix(sum, (dgm_str){text.p + end - sum->n, sum->n}))
            return false;
        end -= sum->n;
    }
    return r->is_tail || !end || (end >= 2 && memcmp(text.p + end - 2, "\n\n", 2) == 0);
}

void dgm_reconcile_join(dgm_reconcile *r, bool is_tail)
{
    r->is_joined = true;
    r->is_tail |= is_tail;
}

dgm_text_change dgm_reconcile_final(dgm_reconcile *r, dgm_str text)
{
    size_t last = r->n - 1, end;
    if (!text.n)
        return (dgm_text_change){DGM_TEXT_UNCHANGED, r->n > r->first ? last : DGM_NO_STREAM, {0}};
    if (r->n == r->first)
        return (dgm_text_change){DGM_TEXT_APPEND, DGM_NO_STREAM, text};
    struct stream *s = &r->streams[last];
    if (dgm_sum_is_prefix(&s->sum, text))
        return dgm_reconcile_delta(r, last, (dgm_str){text.p + s->sum.n, text.n - s->sum.n});
    if ((end = end_of_all(r, text)))
        return dgm_reconcile_delta(r, last, (dgm_str){text.p + end, text.n - end});
    if (is_said(r, text) || (r->is_joined && ends_with_all(r, text)))
        return (dgm_text_change){DGM_TEXT_UNCHANGED, last, {0}};
    return instead(s, last, text);
}

void dgm_reconcile_forget(dgm_reconcile *r)
{
    r->first = r->n;
}
