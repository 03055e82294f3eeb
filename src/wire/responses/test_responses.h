/*
 * test_responses.h - what the tests of Responses share: frames of a stream, a checker of their order, a run as
 * lines that can be compared.
 */
#pragma once

#include "base/limits.h"
#include "canon/test_dump.h"
#include "support/check.h"
#include "wire/responses/responses_int.h"

#define MAX_FRAMES 4000

struct frames {
    dgm_arena *a;
    dgm_str names[MAX_FRAMES], texts[MAX_FRAMES];
    yyjson_val *at[MAX_FRAMES];
    size_t n;
};

/* A dgm_frame_sink. */
static inline dgm_code keep_frame(void *arg, dgm_str name, dgm_str payload)
{
    struct frames *f = arg;
    dgm_err err = {0};
    assert_true(f->n < MAX_FRAMES);
    f->names[f->n] = dgm_arena_dup(f->a, name);
    f->texts[f->n] = dgm_arena_dup(f->a, payload);
    check_ok(dgm_json_read(f->a, f->texts[f->n], DGM_MAX_OUTPUT_BYTES, "", &f->at[f->n], &err),
             err);
    f->n++;
    return DGM_OK;
}

static inline dgm_str member(const yyjson_val *v, const char *name)
{
    return dgm_json_str_member(v, name);
}

static inline int64_t number(const yyjson_val *v, const char *name)
{
    int64_t n = -1;
    yyjson_val *m = dgm_json_get(v, dgm_str_from(name));
    return m && dgm_json_int(m, &n) ? n : -1;
}

/* ---- the order of a stream ----------------------------------------------------------------------------------- */

#define MAX_ITEMS 400

struct checked_item {
    yyjson_val *added, *done;
    dgm_buf text; /* deltas */
    bool part_open;
    int64_t parts; /* of a summary */
};

struct order {
    struct checked_item items[MAX_ITEMS];
    size_t n;
    bool corrected; /* a text was taken back: deltas need not be what is done */
};

static inline void broken(const struct frames *f, size_t i, const char *why)
{
    print_error("frame %zu: %s\n", i, why);
    for (size_t k = 0; k <= i && k < f->n; k++)
        print_error("  %.*s\n", DGM_P(f->texts[k]));
    fail();
}

#define HOLD(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond))                                                                               \
            broken(f, i, #cond);                                                                   \
    } while (0)

static inline bool ends_with(dgm_str s, dgm_str end)
{
    return s.n >= end.n && memcmp(s.p + s.n - end.n, end.p, end.n) == 0;
}

static inline struct checked_item *item_at(struct order *o, const struct frames *f, size_t i)
{
    yyjson_val *v = f->at[i];
    int64_t index = number(v, "output_index");
    HOLD(index >= 0 && (size_t)index < o->n);
    struct checked_item *it = &o->items[index];
    HOLD(it->added && !it->done);
    HOLD(dgm_str_eq(member(v, "item_id"), member(it->added, "id")));
    return it;
}

static inline void check_added(struct order *o, const struct frames *f, size_t i)
{
    yyjson_val *v = f->at[i], *item = dgm_json_get(v, DGM_STR("item"));
    HOLD(o->n < MAX_ITEMS);
    HOLD(number(v, "output_index") == (int64_t)o->n);
    HOLD(member(item, "id").n || !dgm_str_is(member(item, "type"), "message"));
    for (size_t k = 0; k < o->n; k++)
        HOLD(!dgm_str_eq(member(o->items[k].added, "id"), member(item, "id")));
    o->items[o->n] = (struct checked_item){.added = item};
    dgm_buf_init(&o->items[o->n++].text, SIZE_MAX);
}

static inline void check_done(struct order *o, const struct frames *f, size_t i)
{
    yyjson_val *v = f->at[i], *item = dgm_json_get(v, DGM_STR("item"));
    int64_t index = number(v, "output_index");
    HOLD(index >= 0 && (size_t)index < o->n && !o->items[index].done);
    HOLD(dgm_str_eq(member(item, "id"), member(o->items[index].added, "id")));
    HOLD(dgm_str_eq(member(item, "type"), member(o->items[index].added, "type")));
    HOLD(!o->items[index].part_open);
    if (dgm_str_is(member(item, "type"), "reasoning"))
        HOLD((int64_t)yyjson_arr_size(dgm_json_get(item, DGM_STR("summary"))) ==
             o->items[index].parts);
    else
        HOLD(!dgm_str_is(member(item, "status"), "in_progress"));
    o->items[index].done = item;
}

/* Events of parts and of what they hold. */
static inline void check_inside(struct order *o, const struct frames *f, size_t i, dgm_str type)
{
    struct checked_item *it = item_at(o, f, i);
    yyjson_val *v = f->at[i], *part = dgm_json_get(v, DGM_STR("part"));
    bool summary = dgm_str_starts(type, DGM_STR("response.reasoning_summary"));
    if (ends_with(type, DGM_STR("part.added"))) {
        HOLD(!it->part_open);
        HOLD(!summary || number(v, "summary_index") == it->parts);
        it->part_open = true;
        it->parts++;
        dgm_buf_clear(&it->text);
    } else if (ends_with(type, DGM_STR("part.done"))) {
        HOLD(it->part_open);
        it->part_open = false;
        dgm_str text = member(part, "refusal").p ? member(part, "refusal") : member(part, "text");
        HOLD(o->corrected || dgm_str_eq(text, dgm_buf_str(&it->text)));
    } else if (ends_with(type, DGM_STR(".delta"))) {
        HOLD(it->part_open || strstr(type.p, "arguments"));
        HOLD(member(v, "delta").n);
        dgm_buf_add_str(&it->text, member(v, "delta"));
    } else if (ends_with(type, DGM_STR("arguments.done"))) {
        HOLD(dgm_str_eq(member(v, "arguments"), dgm_buf_str(&it->text)));
    } else if (ends_with(type, DGM_STR("text.done"))) {
        HOLD(o->corrected || dgm_str_eq(member(v, "text"), dgm_buf_str(&it->text)));
    }
}

static inline void check_end(struct order *o, const struct frames *f, size_t i)
{
    yyjson_val *response = dgm_json_get(f->at[i], DGM_STR("response")), *item;
    yyjson_val *output = dgm_json_get(response, DGM_STR("output"));
    size_t k, n;
    HOLD(yyjson_arr_size(output) == o->n);
    yyjson_arr_foreach (output, k, n, item) {
        HOLD(o->items[k].done);
        HOLD(o->corrected || dgm_json_equal(item, o->items[k].done));
    }
    HOLD(dgm_str_eq(member(response, "id"),
                    member(dgm_json_get(f->at[0], DGM_STR("response")), "id")));
}

/* Sequence numbers, indexes, beginnings and ends, deltas and what is done, the response at the end. */
static inline void check_order(const struct frames *f, bool corrected)
{
    struct order *o = calloc(1, sizeof *o);
    bool over = false, failed = false;
    o->corrected = corrected;
    for (size_t i = 0; i < f->n; i++) {
        dgm_str type = member(f->at[i], "type");
        HOLD(!over);
        HOLD(dgm_str_eq(type, f->names[i]));
        HOLD(number(f->at[i], "sequence_number") == (int64_t)i);
        HOLD((i == 0) == dgm_str_is(type, "response.created"));
        HOLD((i == 1) == dgm_str_is(type, "response.in_progress"));
        if (i < 2)
            continue;
        if (dgm_str_is(type, "response.output_item.added"))
            check_added(o, f, i);
        else if (dgm_str_is(type, "response.output_item.done"))
            check_done(o, f, i);
        else if (dgm_str_is(type, "error"))
            failed = true;
        else if (dgm_json_get(f->at[i], DGM_STR("response")))
            over = true, check_end(o, f, i);
        else
            check_inside(o, f, i, type);
        HOLD(!failed || dgm_str_is(type, "error") || dgm_str_is(type, "response.failed"));
    }
    size_t i = f->n - 1;
    HOLD(over);
    for (size_t k = 0; k < o->n; k++)
        dgm_buf_done(&o->items[k].text);
    free(o);
}
