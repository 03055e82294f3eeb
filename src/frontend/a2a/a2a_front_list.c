/*
 * frontend/a2a/a2a_front_list.c - ListTasks.
 *
 * A page token says where the page before ended and for which filters it was made, so that it cannot be
 * taken to another list: TIME.FILTERS.ID, the numbers in hex. It is scoped like every look-up; to guess
 * one gains nothing.
 */
#include "frontend/a2a/a2a_front_int.h"

#include <stdio.h>

#define MAX_PAGE 100
#define DEFAULT_PAGE 50

struct list {
    struct op *op;
    uint64_t filters; /* their hash */
    int32_t page_size;
    bool artifacts;
};

/* ---- tokens -------------------------------------------------------------------------------------------------------- */

static uint64_t hash_str(uint64_t seed, dgm_str s)
{
    return dgm_hash(dgm_hash(seed, &s.n, sizeof s.n), s.p, s.n);
}

static uint64_t hash_filters(const dgm_list_query *q)
{
    int64_t numbers[2] = {q->state.set ? q->state.value : -1, q->status_from_ms};
    uint64_t h = hash_str(1, q->owner.tenant);
    h = hash_str(h, q->owner.principal);
    h = hash_str(h, q->agent);
    h = hash_str(h, q->context_id);
    return dgm_hash(h, numbers, sizeof numbers);
}

static bool read_hex(dgm_str *text, uint64_t *ret)
{
    uint64_t n = 0;
    size_t i = 0;
    for (; i < text->n && text->p[i] != '.'; i++) {
        char c = text->p[i];
        if (i == 16 || !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        n = n << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    if (!i || i == text->n)
        return false;
    *text = (dgm_str){text->p + i + 1, text->n - i - 1};
    *ret = n;
    return true;
}

static bool read_token(dgm_str token, uint64_t filters, dgm_list_query *q)
{
    uint64_t ms, of;
    if (!read_hex(&token, &ms) || !read_hex(&token, &of) || of != filters || !token.n ||
        ms > INT64_MAX)
        return false;
    q->after_status_ms = (int64_t)ms;
    q->after_id = token;
    return true;
}

/* ---- the request ------------------------------------------------------------------------------------------------------ */

static int64_t digits(const char *p, size_t n)
{
    int64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v * 10 + (p[i] - '0');
    return v;
}

/* Of a time as dgm_time_normalise leaves it, 2026-01-02T03:04:05[.fff...]Z; a fraction of a millisecond
 * counts as a whole one, for the filter keeps what is not before it. */
static int64_t unix_ms(dgm_str t)
{
    int64_t year = digits(t.p, 4), month = digits(t.p + 5, 2), day = digits(t.p + 8, 2);
    /* days since 1970 in the Gregorian calendar: years begin in March, so that the odd day is last */
    int64_t y = month > 2 ? year : year - 1, m = month > 2 ? month - 3 : month + 9;
    int64_t days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
    int64_t s =
        days * 86400 + digits(t.p + 11, 2) * 3600 + digits(t.p + 14, 2) * 60 + digits(t.p + 17, 2);
    int64_t ms = 0;
    size_t n = t.n > 21 ? t.n - 21 : 0; /* digits behind the point: "...05.", then 'Z' */
    for (size_t i = 0; i < 3; i++)
        ms = ms * 10 + (i < n ? t.p[20 + i] - '0' : 0);
    for (size_t i = 3; i < n; i++) {
        if (t.p[20 + i] != '0')
            return s * 1000 + ms + 1;
    }
    return s * 1000 + ms;
}

static dgm_code read_query(const struct op *op, const dgm_list_tasks_request *q, struct list *l,
                           dgm_list_query *ret, dgm_err *err)
{
    *ret = (dgm_list_query){.owner = op->owner,
                            .agent = op->front->o.agent,
                            .context_id = q->context_id,
                            .state = q->status};
    if (q->status.set && q->status.value == DGM_STATE_UNKNOWN)
        ret->state.set = false;
    if (q->status_timestamp_after.n)
        ret->status_from_ms = unix_ms(q->status_timestamp_after);
    l->page_size = q->page_size.set ? q->page_size.value : DEFAULT_PAGE;
    l->filters = hash_filters(ret);
    l->artifacts = q->include_artifacts == DGM_TRUE;
    if (l->page_size < 1 || l->page_size > MAX_PAGE)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "pageSize"), "expected 1 to 100");
    ret->page_size = (size_t)l->page_size;
    if (q->page_token.n && !read_token(q->page_token, l->filters, ret))
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "pageToken"),
                        "invalid page token for a list with these filters");
    return DGM_OK;
}

/* ---- the answer ---------------------------------------------------------------------------------------------------------- */

static void put_task(const struct list *l, const dgm_record *r, struct scratch *s)
{
    struct view view = dgm_op_view(l->op);
    dgm_event event;
    dgm_writer w = {.out = &s->out};
    dgm_arena_reset(s->arena);
    if (!dgm_view_event(&view, r, s->arena, &event))
        return;
    if (!l->artifacts)
        event.task->artifacts = (dgm_artifacts){0};
    dgm_frame frame = {.object = {DGM_OBJECT_TASK, event.task}};
    if (s->out.p[s->out.n - 1] != '[')
        dgm_buf_add_char(&s->out, ',');
    view.codec->encode(&w, &frame, NULL);
    if (l->artifacts && !event.task->artifacts.n) { /* asked for, it is there, empty or not */
        s->out.n--;
        dgm_buf_add_lit(&s->out, ",\"artifacts\":[]}");
    }
}

static void a2a_front_list_on_listed(dgm_code code, const dgm_listed *listed, const dgm_err *err,
                                     void *arg)
{
    struct list *l = arg;
    struct op *op = l->op;
    if (code) {
        dgm_op_fail(op, err);
        return;
    }
    struct scratch *s = dgm_front_scratch(op->front);
    dgm_op_put_head(op, &s->out);
    dgm_buf_add_lit(&s->out, "{\"tasks\":[");
    for (size_t i = 0; i < listed->n; i++)
        put_task(l, listed->tasks[i], s);
    dgm_buf_add_lit(&s->out, "],\"nextPageToken\":\"");
    if (listed->more) {
        dgm_buf_printf(&s->out, "%llx.%llx.", (unsigned long long)listed->last_status_ms,
                       (unsigned long long)l->filters);
        dgm_json_put_chars(&s->out, listed->last_id);
    }
    dgm_buf_printf(&s->out, "\",\"pageSize\":%d,\"totalSize\":%zu}", (int)l->page_size,
                   listed->total);
    dgm_op_put_tail(op, &s->out);
    dgm_op_send(op, &s->out);
}

void dgm_op_list(struct op *op, const dgm_list_tasks_request *q)
{
    struct list *l = dgm_new(op->arena, struct list);
    dgm_list_query query;
    dgm_err err = {0};
    l->op = op;
    if (read_query(op, q, l, &query, &err))
        dgm_op_fail(op, &err);
    else
        dgm_core_list(op->front->core, &query, a2a_front_list_on_listed, l);
}
