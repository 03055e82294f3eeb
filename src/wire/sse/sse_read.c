/*
 * wire/sse/sse_read.c - bytes to events.
 *
 * Complete lines are read in place, from the caller's bytes. Only an event that the end of a read splits is
 * copied: the data so far and the incomplete line, one after the other in `hold`. Each byte is read
 * a fixed number of times, whatever the sizes of reads, lines and events.
 */
#include "base/err.h"
#include "wire/sse/sse.h"

#include <assert.h>

struct dgm_sse_fault {
    const char *what, *limit;
    size_t max;
};

static const struct dgm_sse_fault line_too_long = {"a line", "sse_line_bytes",
                                                   DGM_MAX_SSE_LINE_BYTES};
static const struct dgm_sse_fault event_too_large = {"the data of an event", "record_bytes",
                                                     DGM_MAX_RECORD_BYTES};
static const struct dgm_sse_fault name_too_long = {"the id or name of an event", "id_bytes",
                                                   DGM_MAX_ID_BYTES};

/* A large event should not stay in memory for the rest of a stream of small ones. */
#define KEEP_BYTES ((size_t)64 << 10)

static const char BOM[] = "\xef\xbb\xbf";
#define BOM_BYTES 3u
#define BOM_OVER 4u

static dgm_code sse_report_fault(const dgm_sse *s, dgm_err *err)
{
    dgm_fail(err, DGM_TOO_LARGE, NULL,
             "%s is longer than the limit %s of %zu bytes: send less in one event", s->fault->what,
             s->fault->limit, s->fault->max);
    if (err) {
        err->line = s->line;
        err->column = 1;
    }
    return DGM_TOO_LARGE;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static size_t sse_read_find(const dgm_sse *s, char c)
{
    const char *at = s->pos < s->n ? memchr(s->in + s->pos, c, s->n - s->pos) : NULL;
    return at ? (size_t)(at - s->in) : s->n;
}

/* The line that earlier reads have begun. */
static dgm_str cut_line(const dgm_sse *s)
{
    size_t at = s->held ? s->data.n : 0;
    return (dgm_str){dgm_buf_str(&s->hold).p + at, s->hold.n - at};
}

/* An event's data and the line being read count together, so that what is refused does not depend
 * on where the reads were cut. */
static bool line_fits(dgm_sse *s, size_t line_n)
{
    size_t before = s->has_data ? s->data.n + 1 : 0;
    if (before + line_n <= DGM_MAX_SSE_LINE_BYTES)
        return true;
    s->fault = before ? &event_too_large : &line_too_long;
    return false;
}

/* Copies to hold what is borrowed and would be invalid after this read: the data, then an incomplete line. */
static void hold_data(dgm_sse *s)
{
    if (s->has_data && !s->held) {
        dgm_buf_add_str(&s->hold, s->data);
        s->held = true;
    }
}

static bool hold_cut_line(dgm_sse *s, const char *p, size_t n)
{
    hold_data(s);
    if (!line_fits(s, cut_line(s).n + n))
        return false;
    dgm_buf_add(&s->hold, p, n);
    return true;
}

/* Skips a byte order mark at the start of the input: true when that is decided. */
static bool skip_bom(dgm_sse *s)
{
    while (s->bom < BOM_BYTES && s->pos < s->n && s->in[s->pos] == BOM[s->bom]) {
        s->pos++;
        s->bom++;
    }
    if (s->bom < BOM_BYTES) {
        if (s->pos == s->n && !s->ended)
            return false;
        hold_cut_line(s, BOM, s->bom); /* those bytes were the first of a line after all */
    }
    s->bom = BOM_OVER;
    return true;
}

/* False: the input has no further line end; the rest of it was copied to hold. */
static bool next_line(dgm_sse *s, dgm_str *ret_line)
{
    if (s->skip_lf && s->pos < s->n) {
        s->skip_lf = false;
        s->pos += s->in[s->pos] == '\n';
    }
    if (s->lf < s->pos)
        s->lf = sse_read_find(s, '\n');
    if (s->cr < s->pos)
        s->cr = sse_read_find(s, '\r');
    size_t end = s->lf < s->cr ? s->lf : s->cr;
    *ret_line = (dgm_str){s->in + s->pos, end - s->pos};
    if (end == s->n) {
        if (ret_line->n)
            hold_cut_line(s, ret_line->p, ret_line->n);
        s->pos = s->n;
        return false;
    }
    if (cut_line(s).n) {
        if (!hold_cut_line(s, ret_line->p, ret_line->n))
            return false;
        *ret_line = cut_line(s);
    }
    s->skip_lf = s->in[end] == '\r';
    s->pos = end + 1;
    return line_fits(s, ret_line->n);
}

/* ---- fields ---------------------------------------------------------------------------------- */

static void add_data(dgm_sse *s, dgm_str value)
{
    bool value_in_hold = cut_line(s).n > 0;
    size_t before = s->has_data ? s->data.n + 1 : 0; /* 1: the LF between two lines of data */
    if (before + value.n > DGM_MAX_RECORD_BYTES) {
        s->fault = &event_too_large;
        return;
    }
    if (before && !value_in_hold) {
        hold_data(s);
        dgm_buf_add_char(&s->hold, '\n');
        dgm_buf_add_str(&s->hold, value);
    } else if (value_in_hold) { /* in a cut line, behind a field name: there is room for the LF */
        memmove(s->hold.p + before, value.p, value.n);
        if (before)
            s->hold.p[before - 1] = '\n';
        s->hold.n = before + value.n;
        s->held = true;
    }
    s->data = (dgm_str){value.p, before + value.n}; /* p counts only while borrowed */
    s->has_data = true;
}

static void set_name(dgm_sse *s, dgm_sse_name *name, dgm_str value)
{
    if (value.n > sizeof name->text) {
        s->fault = &name_too_long;
        return;
    }
    if (value.n)
        memcpy(name->text, value.p, value.n);
    name->n = value.n;
    name->set = true;
}

static void set_retry(dgm_sse *s, dgm_str value)
{
    int64_t ms = 0;
    if (!value.n || value.n > 15)
        return;
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] < '0' || value.p[i] > '9')
            return;
        ms = ms * 10 + (value.p[i] - '0');
    }
    s->retry_ms = ms;
}

static void read_field(dgm_sse *s, dgm_str line)
{
    const char *colon = memchr(line.p, ':', line.n);
    dgm_str name = {line.p, colon ? (size_t)(colon - line.p) : line.n};
    dgm_str value = {line.p + line.n, 0};
    if (colon) {
        size_t at = name.n + 1;
        at += at < line.n && line.p[at] == ' ';
        value = (dgm_str){line.p + at, line.n - at};
    }
    if (dgm_str_is(name, "data")) {
        if (!s->has_data) {
            s->data_line = s->line;
            s->data_column = (size_t)(value.p - line.p) + 1;
        }
        add_data(s, value);
    } else if (dgm_str_is(name, "event")) {
        set_name(s, &s->event, value);
        s->event.set = value.n > 0; /* empty means the default, as if there were none */
    } else if (dgm_str_is(name, "id")) {
        if (!value.n || !memchr(value.p, 0, value.n))
            set_name(s, &s->id, value);
    } else if (dgm_str_is(name, "retry")) {
        set_retry(s, value);
    }
}

/* Drops a cut line that has been read, so that hold is the data again, or nothing. */
static void drop_cut_line(dgm_sse *s)
{
    s->hold.n = s->held ? s->data.n : 0;
}

/* ---- events ---------------------------------------------------------------------------------- */

static dgm_str name_text(const dgm_sse_name *name)
{
    return name->set ? (dgm_str){name->text, name->n} : (dgm_str){0};
}

static void forget_event(dgm_sse *s)
{
    s->has_data = s->held = s->returned = false;
    s->data = (dgm_str){0};
    s->event.set = s->id.set = false;
    dgm_buf_clear(&s->hold);
    dgm_buf_shrink(&s->hold, KEEP_BYTES);
}

/* A blank line, or the end: is there an event to return? */
static bool close_event(dgm_sse *s, dgm_sse_event *ret_event)
{
    if (!s->has_data || !s->data.n) {
        forget_event(s);
        return false;
    }
    *ret_event = (dgm_sse_event){
        .data = s->held ? (dgm_str){s->hold.p, s->data.n} : s->data,
        .event = name_text(&s->event),
        .id = name_text(&s->id),
        .line = s->data_line,
        .column = s->data_column,
    };
    s->returned = true;
    return true;
}

/* Fast path: one line of data and the blank line behind it, all in this read. Nothing is left to forget. */
static bool read_usual_event(dgm_sse *s, dgm_sse_event *ret_event)
{
    size_t from = s->pos + 6; /* behind `data: ` */
    if (s->has_data || s->hold.n || s->skip_lf || s->event.set || s->id.set || s->fault ||
        s->bom != BOM_OVER)
        return false;
    if (s->lf < s->pos)
        s->lf = sse_read_find(s, '\n');
    if (s->cr < s->pos)
        s->cr = sse_read_find(s, '\r');
    if (s->lf <= from || s->lf + 1 >= s->n || s->cr < s->lf || s->in[s->lf + 1] != '\n' ||
        memcmp(s->in + s->pos, "data: ", 6) != 0 || s->lf - s->pos > DGM_MAX_SSE_LINE_BYTES ||
        s->lf - from > DGM_MAX_RECORD_BYTES)
        return false;
    *ret_event = (dgm_sse_event){
        .data = {s->in + from, s->lf - from}, .line = s->line, .column = from - s->pos + 1};
    s->pos = s->lf + 2;
    s->line += 2;
    return true;
}

void dgm_sse_init(dgm_sse *s)
{
    *s = (dgm_sse){.in = "", .line = 1, .retry_ms = -1};
    dgm_buf_init(&s->hold, 2 * DGM_MAX_SSE_LINE_BYTES); /* line_fits is what keeps the limits */
}

void dgm_sse_done(dgm_sse *s)
{
    dgm_buf_done(&s->hold);
}

void dgm_sse_feed(dgm_sse *s, const char *bytes, size_t n)
{
    assert(s->pos == s->n && !s->returned && !s->ended);
    s->in = n ? bytes : "";
    s->n = n;
    s->pos = 0;
    s->lf = sse_read_find(s, '\n');
    s->cr = sse_read_find(s, '\r');
}

void dgm_sse_end(dgm_sse *s)
{
    s->ended = true;
}

dgm_code dgm_sse_next(dgm_sse *s, dgm_sse_event *ret_event, dgm_err *err)
{
    dgm_str line;
    if (s->returned)
        forget_event(s);
    if (read_usual_event(s, ret_event))
        return DGM_OK;
    *ret_event = (dgm_sse_event){0};
    if (!s->fault && (s->bom == BOM_OVER || skip_bom(s))) {
        while (!s->fault && next_line(s, &line)) {
            if (!line.n) {
                s->line++;
                if (close_event(s, ret_event))
                    return DGM_OK;
                continue;
            }
            read_field(s, line);
            drop_cut_line(s);
            s->line += !s->fault;
        }
    }
    if (s->fault)
        return sse_report_fault(s, err);
    hold_data(s);
    if (s->ended) {
        if ((line = cut_line(s)).n)
            read_field(s, line);
        drop_cut_line(s);
        if (s->fault)
            return sse_report_fault(s, err);
        close_event(s, ret_event);
    }
    return DGM_OK;
}
