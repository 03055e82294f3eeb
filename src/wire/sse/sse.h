/*
 * wire/sse/sse.h - Server-Sent Events: bytes in pieces of any size to events, and back.
 *
 *     dgm_sse_feed(&s, bytes, n);
 *     while ((rc = dgm_sse_next(&s, &event, err)) == DGM_OK && event.data.p)
 *         ...
 *     (more bytes, and so on; at the end of input dgm_sse_end(&s) and the same loop once more)
 *
 * LF, CRLF and CR end a line, also when CR and LF come in different reads. Comments, unknown fields
 * and events without data are skipped; an event without its blank line at the end of input is still returned.
 * Time is linear in the input, memory is limited to one event, whatever the sizes of the reads.
 */
#pragma once

#include "base/buf.h"
#include "base/limits.h"

typedef struct dgm_sse_event {
    dgm_str data;  /* never empty; p == NULL: no event yet */
    dgm_str event; /* p == NULL: the event names none */
    dgm_str id;    /* of this very event; p == NULL: it has none */
    size_t line;   /* 1-based: the line its data starts in */
    size_t column; /* 1-based, in bytes: where in that line */
} dgm_sse_event;

/* The value of a field so far; a short text that is always copied. */
typedef struct dgm_sse_name {
    bool set;
    size_t n;
    char text[DGM_MAX_ID_BYTES];
} dgm_sse_name;

typedef struct dgm_sse_fault dgm_sse_fault; /* which limit was passed */

typedef struct dgm_sse {
    /* what was fed; from pos on it is not yet read, lf and cr are the next of their kind, or n */
    const char *in;
    size_t n, pos, lf, cr;
    /* The event so far. Its data is borrowed from `in`, or held: then it is the front of hold.
     * The line that the end of a read has split follows it in hold, or is alone there. */
    bool has_data, held, returned;
    dgm_str data;
    dgm_buf hold;
    dgm_sse_name event, id;
    size_t line, data_line, data_column;
    unsigned bom; /* bytes of a byte order mark seen at the start; then BOM_OVER */
    bool skip_lf; /* a CR ended the last line: an LF right behind it belongs to it */
    bool ended;
    const dgm_sse_fault *fault;
    int64_t retry_ms; /* the last `retry:`; -1: not sent */
} dgm_sse;

void dgm_sse_init(dgm_sse *s);
void dgm_sse_done(dgm_sse *s);

/* Call it only when dgm_sse_next() needs more input. The bytes are borrowed until then. */
void dgm_sse_feed(dgm_sse *s, const char *bytes, size_t n);
/* End of input. dgm_sse_next() still returns the remaining events. */
void dgm_sse_end(dgm_sse *s);

/*
 * The next event, borrowed until the next call; data.p == NULL: more input is needed.
 * DGM_TOO_LARGE: a line over sse_line_bytes, data over record_bytes, a name over id_bytes; err has
 * the line. It is final: every further call returns the same error.
 */
dgm_code dgm_sse_next(dgm_sse *s, dgm_sse_event *ret_event, dgm_err *err);

/* The last id that was read, of events without data too: for Last-Event-ID. Empty: none. Borrowed until more is read. */
static inline dgm_str dgm_sse_last_id(const dgm_sse *s)
{
    return (dgm_str){s->id.text, s->id.n};
}

/* ---- writing ----------------------------------------------------------------------------------- */

/* One event. id and event may be absent, and are left out if they contain a line break. Line
 * ends in data, of any kind, start another `data:` line and reach the reader as LF. */
void dgm_sse_put(dgm_buf *b, dgm_str id, dgm_str event, dgm_str data);

/*
 * One event whose data is JSON without line ends, written in place: start, append the JSON to b, end. id, event: one line
 * each; absent: none. Returns where the data starts, for dgm_sse_end_data(). close: the event ends, too; otherwise other
 * fields of it may follow, and an empty line ends it.
 */
size_t dgm_sse_start(dgm_buf *b, dgm_str id, dgm_str event);
void dgm_sse_end_data(dgm_buf *b, size_t data, bool close);

/* The same for JSON that exists already, and not closed: other fields may follow. */
void dgm_sse_put_json(dgm_buf *b, dgm_str event, dgm_str json);

/*
 * Python's line readers also end lines at U+0085, U+2028 and U+2029, inside JSON strings too. Writes
 * those from byte `from` of b on as JSON escapes; for JSON only.
 */
void dgm_sse_escape_line_ends(dgm_buf *b, size_t from);

/* `: text` and a blank line; line ends in it become spaces. */
void dgm_sse_put_comment(dgm_buf *b, dgm_str text);
