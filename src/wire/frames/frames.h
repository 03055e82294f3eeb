/*
 * wire/frames/frames.h - bytes in pieces of any size to the texts of single JSON values.
 *
 *     dgm_frames_feed(&f, bytes, n);
 *     while ((rc = dgm_frames_next(&f, &item, err)) == DGM_OK && item.text.p)
 *         ...
 *     (more bytes, and so on; at the end of input dgm_frames_end(&f) and the same loop once more)
 *
 * The kind of input is detected from its first bytes: server-sent events, or JSON: one value (a top-level
 * array is one), or a stream of values: JSON lines, concatenated values, an RFC 7464 sequence.
 * Nothing is validated here, the parser does that: every byte that is not white space
 * between values becomes part of some text, also invalid bytes.
 */
#pragma once

#include "wire/sse/sse.h"

typedef enum dgm_frames_kind {
    DGM_FRAMES_UNKNOWN, /* nothing but white space so far */
    DGM_FRAMES_JSON,    /* JSON; whether one value or a stream is not known yet */
    DGM_FRAMES_ONE,     /* one JSON value and nothing else */
    DGM_FRAMES_VALUES,  /* a stream of JSON values */
    DGM_FRAMES_SSE      /* a stream of server-sent events */
} dgm_frames_kind;

typedef struct dgm_frames_item {
    dgm_str text;      /* p == NULL: no text yet */
    bool alone;        /* it is the whole input; false: an element of a stream */
    bool guess;        /* a whole line, taken for one value: see dgm_frames_retry */
    bool done;         /* the `[DONE]` that ends OpenAI's streams; text is "[DONE]", not JSON */
    dgm_str sse_id;    /* p == NULL: none */
    dgm_str sse_event; /* p == NULL: none */
    size_t line;       /* 1-based: where text starts in the input */
    size_t column;     /* 1-based, in bytes */
    size_t margin;     /* bytes of the input before each further line of text (`data: `) */
} dgm_frames_item;

/* The state of the scanner within one JSON value; all zero at its start. */
typedef struct dgm_frames_scan {
    size_t depth;
    bool in_string, escaped;
    size_t lines;   /* line ends met in the last piece */
    size_t line_at; /* if any: where in that piece the line behind the last of them starts */
} dgm_frames_scan;

typedef struct dgm_frames {
    /* what was fed; from pos on it is not yet read. base: bytes of the input before in[0] */
    const char *in;
    size_t n, pos, base;
    size_t line, line_at; /* of pos: the line, 1-based, and where in the input it starts */
    dgm_frames_kind kind;
    bool stream_at_once, ended, failed;
    bool
        is_all; /* what is fed is the whole input: set it before, and a value alone needs no copy */
    /* JSON: the value being read, and the first one while it is not known whether it is the only one */
    enum { DGM_FRAMES_BETWEEN, DGM_FRAMES_IN_VALUE, DGM_FRAMES_HOLDING } state;
    enum { DGM_FRAMES_BRACKETS, DGM_FRAMES_STRING, DGM_FRAMES_WORD } shape;
    dgm_frames_scan scan;
    dgm_frames_item item; /* of it; text is set when it is complete */
    dgm_buf hold;         /* what earlier reads brought of it */
    bool returned;        /* it was given out, hold can be dropped */
    size_t line_end;      /* in `in`: just behind the next one; SIZE_MAX: none */
    size_t guess_from;    /* no guesses before this */
    size_t guess_n;       /* length of the last guess */
    char start[8]; /* first bytes that may still become a byte order mark or a field's name */
    size_t start_n;
    dgm_sse sse;
} dgm_frames;

/* stream_at_once: do not hold the first JSON value back until it is clear that another follows:
 * the input is a stream, even when only one value comes, unless that is an array. */
void dgm_frames_init(dgm_frames *f, bool stream_at_once);
void dgm_frames_done(dgm_frames *f);

/* Call it only when dgm_frames_next() needs more input. The bytes are borrowed until then. */
void dgm_frames_feed(dgm_frames *f, const char *bytes, size_t n);
/* End of input. dgm_frames_next() still returns the remaining texts. */
void dgm_frames_end(dgm_frames *f);

/*
 * The next text, borrowed until the next call; text.p == NULL: more input is needed. An empty input
 * has no text. DGM_TOO_LARGE: a single value over object_bytes, a value of a stream over
 * record_bytes, or an error of dgm_sse_next(); reported before more than that is held in memory; err has
 * the line in which the value starts. It is final: every further call returns the same error.
 */
dgm_code dgm_frames_next(dgm_frames *f, dgm_frames_item *ret_item, dgm_err *err);

/*
 * In a stream a line from `{` to `}` is most likely one value, and the parser checks it anyway: such
 * a line is returned as a guess, without a scan for the end of the value. If it does not parse, call
 * this before any other function; dgm_frames_next() then scans the line and returns its values.
 */
void dgm_frames_retry(dgm_frames *f);

/* The kind of input as far as it is known. */
static inline dgm_frames_kind dgm_frames_what(const dgm_frames *f)
{
    return f->kind;
}

/* An error in the item's text (line, column: within that text, or 0) becomes one in the input. */
void dgm_frames_place(const dgm_frames_item *item, dgm_err *err);
