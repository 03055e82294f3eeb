/*
 * wire/frames/frames.c - from bytes to texts of single JSON values.
 *
 *   UNKNOWN ──► SSE                                           dgm_sse does the work
 *      └──► JSON: BETWEEN ──► IN_VALUE ──┬──► BETWEEN         in a stream
 *                                        └──► HOLDING         the first value: is it the only one?
 *
 * A value that is complete in one read is returned as a slice of the caller's bytes; only a value that the
 * end of a read splits is copied to `hold`.
 */
#include "base/err.h"
#include "frames_int.h"

#include <assert.h>

/* A large value should not stay in memory for the rest of a stream of small ones. */
#define KEEP_BYTES ((size_t)64 << 10)

/* As much of the next line as an event of usual length has. */
#define FETCH_AHEAD 384

#define RS '\x1e' /* RFC 7464 puts one before each value */

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* ---- places ---------------------------------------------------------------------------------- */

static inline void skip_space(dgm_frames *f)
{
    while (f->pos < f->n && is_space(f->in[f->pos])) {
        if (f->in[f->pos++] == '\n') {
            f->line++;
            f->line_at = f->base + f->pos;
        }
    }
}

void dgm_frames_place(const dgm_frames_item *item, dgm_err *err)
{
    if (!err->line) {
        err->line = item->line;
        err->column = item->column;
        return;
    }
    err->column += err->line == 1 ? item->column - 1 : item->margin;
    err->line += item->line - 1;
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* May the value be n bytes long? A value that may be the only one has the larger limit. */
static bool fits(const dgm_frames *f, size_t n)
{
    return n <= (f->kind == DGM_FRAMES_JSON ? DGM_MAX_OBJECT_BYTES : DGM_MAX_RECORD_BYTES);
}

static dgm_code too_large(dgm_frames *f, dgm_err *err)
{
    f->failed = true;
    if (f->kind == DGM_FRAMES_JSON)
        dgm_fail(err, DGM_TOO_LARGE, NULL,
                 "a JSON value is longer than the limit object_bytes of %zu: send less at once",
                 DGM_MAX_OBJECT_BYTES);
    else
        dgm_fail(err, DGM_TOO_LARGE, NULL,
                 "a JSON value in a stream is longer than the limit record_bytes of %zu: send less "
                 "in one event",
                 DGM_MAX_RECORD_BYTES);
    if (err) {
        err->line = f->item.line;
        err->column = f->item.column;
    }
    return DGM_TOO_LARGE;
}

/* ---- what is it? ----------------------------------------------------------------------------- */

/* A byte order mark; an event stream starts with one of the others. No JSON text does. */
static const char *const starts[] = {"\xef\xbb\xbf", "data:", "event:", "id:", "retry:", ":"};
#define N_STARTS (sizeof starts / sizeof *starts)

static void start_value(dgm_frames *f, char first)
{
    f->state = DGM_FRAMES_IN_VALUE;
    f->shape = first == '{' || first == '[' ? DGM_FRAMES_BRACKETS
               : first == '"'               ? DGM_FRAMES_STRING
                                            : DGM_FRAMES_WORD;
    f->scan = (dgm_frames_scan){0};
    f->item = (dgm_frames_item){.line = f->line, .column = f->base + f->pos - f->line_at + 1};
}

static void is_sse(dgm_frames *f)
{
    dgm_sse_event none;
    f->kind = DGM_FRAMES_SSE;
    f->item.line = f->line; /* where the events start */
    f->item.column = f->base + f->pos - f->line_at + 1 - f->start_n;
    dgm_sse_feed(&f->sse, f->start, f->start_n);
    dgm_sse_next(&f->sse, &none, NULL); /* no line end: no event, no fault */
    dgm_sse_feed(&f->sse, f->in + f->pos, f->n - f->pos);
    f->pos = f->n;
    if (f->ended)
        dgm_sse_end(&f->sse);
}

/* Reads as many bytes as the detection needs; kind stays UNKNOWN if there are not enough yet. */
static void detect(dgm_frames *f)
{
    bool is_json = false;
    while (f->kind == DGM_FRAMES_UNKNOWN && !is_json && f->pos < f->n) {
        if (!f->start_n) {
            skip_space(f);
            if (f->pos == f->n)
                return;
        }
        f->start[f->start_n++] = f->in[f->pos++];
        size_t i = f->base + f->pos == f->start_n ? 0 : 1;
        while (i < N_STARTS && strncmp(starts[i], f->start, f->start_n) != 0)
            i++;
        bool whole = i < N_STARTS && strlen(starts[i]) == f->start_n;
        if (whole && i == 0) {
            f->start_n = 0;
            f->line_at = f->base + f->pos; /* the mark takes no column */
        } else if (whole) {
            is_sse(f);
        } else if (i == N_STARTS) {
            f->start_n--;
            f->pos--;
            is_json = true;
        }
    }
    if (f->kind != DGM_FRAMES_UNKNOWN || !(is_json || (f->ended && f->start_n)))
        return;
    /* An array is rather a history than the first element of a stream. */
    bool array = f->pos < f->n && f->in[f->pos] == '[';
    f->kind = f->stream_at_once && !array ? DGM_FRAMES_VALUES : DGM_FRAMES_JSON;
    f->state = DGM_FRAMES_BETWEEN;
    if (f->start_n) { /* the bytes in start are the first bytes of a broken value, a word */
        start_value(f, f->start[0]);
        f->item.column -= f->start_n; /* there is no line end among them */
        dgm_buf_add(&f->hold, f->start, f->start_n);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* A value without brackets and quotes: a number, true, or anything at all. */
static size_t scan_word(const char *p, size_t n, bool *ret_ended)
{
    size_t i = 0;
    while (i < n && !is_space(p[i]) && p[i] != RS)
        i++;
    *ret_ended = i < n;
    return i;
}

/* Reads on in the value; sets item.text when it ends. */
static dgm_code read_value(dgm_frames *f, dgm_err *err)
{
    bool ended = false;
    size_t at = f->pos;
    /* the quote a string begins with must not be taken for the one that ends it */
    bool first = f->shape == DGM_FRAMES_STRING && !f->hold.n && f->pos < f->n;
    f->pos += first;
    const char *p = f->in + f->pos;
    size_t n = f->n - f->pos;
    switch (f->shape) {
    case DGM_FRAMES_BRACKETS:
        n = dgm_frames_scan_fast(&f->scan, p, n, &ended);
        if (f->scan.lines) {
            f->line += f->scan.lines;
            f->line_at = f->base + f->pos + f->scan.line_at;
        }
        break;
    case DGM_FRAMES_STRING: n = dgm_frames_scan_string(&f->scan, p, n, &ended); break;
    case DGM_FRAMES_WORD: n = scan_word(p, n, &ended); break;
    }
    f->pos += n;
    n += first;
    if (!fits(f, f->hold.n + n))
        return too_large(f, err);
    if (!ended || f->hold.n)
        dgm_buf_add(&f->hold, f->in + at, n);
    if (!ended && !f->ended)
        return DGM_OK;
    f->item.text = f->hold.n ? dgm_buf_str(&f->hold) : (dgm_str){f->in + at, n};
    f->state = f->kind == DGM_FRAMES_JSON ? DGM_FRAMES_HOLDING : DGM_FRAMES_BETWEEN;
    return DGM_OK;
}

/* Prefetches the next line: it is read when the current line has been converted, which takes about as long as
 * loading it from memory. */
static inline __attribute__((always_inline)) void fetch_ahead(const dgm_frames *f)
{
    if (f->line_end >= f->n || f->n - f->line_end < FETCH_AHEAD)
        return;
    const char *next = f->in + f->line_end;
    __builtin_prefetch(next + 64);
    __builtin_prefetch(next + 128);
    __builtin_prefetch(next + 192);
    __builtin_prefetch(next + 256);
    __builtin_prefetch(next + 320);
}

/* The value starts where we are: is it likely to be all of this line and no more? */
static bool guess_line(dgm_frames *f, dgm_frames_item *ret_item)
{
    const char *p = f->in + f->pos;
    if (f->kind != DGM_FRAMES_VALUES || *p != '{' || f->pos < f->guess_from)
        return false;
    if (f->line_end <= f->pos) { /* once per line, not once per value: many may share a line */
        const char *lf = memchr(p, '\n', f->n - f->pos);
        f->line_end = lf ? (size_t)(lf - f->in) + 1 : SIZE_MAX;
        fetch_ahead(f);
    }
    if (f->line_end == SIZE_MAX)
        return false;
    size_t n = f->line_end - 1 - f->pos;
    n -= p[n - 1] == '\r'; /* p[0] is a bracket, so there is always something left */
    if (p[n - 1] != '}' || !fits(f, n))
        return false;
    ret_item->text = (dgm_str){p, n};
    ret_item->guess = true;
    ret_item->line = f->line;
    ret_item->column = f->base + f->pos - f->line_at + 1;
    f->pos += n;
    f->guess_n = n;
    f->returned = true;
    return true;
}

static dgm_code next_value(dgm_frames *f, dgm_frames_item *ret_item, dgm_err *err)
{
    dgm_code rc;
    if (f->state == DGM_FRAMES_BETWEEN) {
        for (skip_space(f); f->pos < f->n && f->in[f->pos] == RS; skip_space(f)) {
            f->kind = DGM_FRAMES_VALUES;
            f->pos++;
        }
        if (f->pos == f->n || guess_line(f, ret_item))
            return DGM_OK;
        start_value(f, f->in[f->pos]);
    }
    if (f->state == DGM_FRAMES_IN_VALUE) {
        if ((rc = read_value(f, err)))
            return rc;
        if (f->state == DGM_FRAMES_IN_VALUE)
            return DGM_OK;
    }
    if (f->state == DGM_FRAMES_HOLDING) {
        /* The first value is complete. It can be returned when it is known what follows it. */
        skip_space(f);
        if (f->pos == f->n && !f->ended && !f->is_all) {
            if (!f->hold.n) {
                dgm_buf_add_str(&f->hold, f->item.text);
                f->item.text = dgm_buf_str(&f->hold);
            }
            return DGM_OK;
        }
        f->item.alone = f->pos == f->n;
        f->kind = f->item.alone ? DGM_FRAMES_ONE : DGM_FRAMES_VALUES;
        f->state = DGM_FRAMES_BETWEEN;
        if (!f->item.alone && !fits(f, f->item.text.n))
            return too_large(f, err);
    }
    *ret_item = f->item;
    f->returned = true;
    return DGM_OK;
}

void dgm_frames_retry(dgm_frames *f)
{
    assert(f->returned && f->guess_n);
    f->pos -= f->guess_n; /* no line end was passed: line and column are still right */
    /* one wrong guess per line: it costs as much as the line is long */
    f->guess_from = f->line_end;
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool trimmed_is(dgm_str s, dgm_str what)
{
    while (s.n && is_space(s.p[0]))
        s = (dgm_str){s.p + 1, s.n - 1};
    while (s.n && is_space(s.p[s.n - 1]))
        s.n--;
    return dgm_str_eq(s, what);
}

static dgm_code next_event(dgm_frames *f, dgm_frames_item *ret_item, dgm_err *err)
{
    dgm_sse_event e;
    dgm_code rc;
    do {
        if ((rc = dgm_sse_next(&f->sse, &e, err))) {
            if (err)
                err->line += f->item.line - 1;
            return rc;
        }
        if (!e.data.p)
            return DGM_OK;
    } while (is_space(e.data.p[0]) && trimmed_is(e.data, DGM_STR("")));
    *ret_item = (dgm_frames_item){
        .text = e.data,
        .done = e.data.n < 32 && trimmed_is(e.data, DGM_STR("[DONE]")),
        .sse_id = e.id,
        .sse_event = e.event,
        .line = e.line + f->item.line - 1,
        .column = e.column + (e.line == 1 ? f->item.column - 1 : 0),
        .margin = e.column - 1,
    };
    return DGM_OK;
}

/* ---- the handle ------------------------------------------------------------------------------ */

void dgm_frames_init(dgm_frames *f, bool stream_at_once)
{
    *f = (dgm_frames){.in = "", .line = 1, .stream_at_once = stream_at_once};
    dgm_buf_init(&f->hold, DGM_MAX_OBJECT_BYTES);
    dgm_sse_init(&f->sse);
}

void dgm_frames_done(dgm_frames *f)
{
    dgm_buf_done(&f->hold);
    dgm_sse_done(&f->sse);
}

void dgm_frames_feed(dgm_frames *f, const char *bytes, size_t n)
{
    assert(f->pos == f->n && !f->returned && !f->ended);
    if (f->kind == DGM_FRAMES_SSE) {
        dgm_sse_feed(&f->sse, bytes, n);
        return;
    }
    f->base += f->n;
    f->in = n ? bytes : "";
    f->n = n;
    f->pos = f->line_end = f->guess_from = 0;
}

void dgm_frames_end(dgm_frames *f)
{
    f->ended = true;
    if (f->kind == DGM_FRAMES_SSE)
        dgm_sse_end(&f->sse);
}

dgm_code dgm_frames_next(dgm_frames *f, dgm_frames_item *ret_item, dgm_err *err)
{
    *ret_item = (dgm_frames_item){0};
    if (f->failed)
        return too_large(f, err);
    if (f->returned) {
        f->returned = false;
        if (f->hold.n) {
            dgm_buf_clear(&f->hold);
            dgm_buf_shrink(&f->hold, KEEP_BYTES);
        }
    }
    if (f->kind == DGM_FRAMES_UNKNOWN)
        detect(f);
    if (f->kind == DGM_FRAMES_UNKNOWN)
        return DGM_OK;
    return f->kind == DGM_FRAMES_SSE ? next_event(f, ret_item, err) : next_value(f, ret_item, err);
}
