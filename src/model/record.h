/*
 * model/record.h - one entry of a task's log: an event's bytes and a small header.
 *
 * The bytes are the event's A2A 1.0 StreamResponse JSON, or an internal event's JSON. They are the
 * stored row and the payload of an A2A 1.0 frame; every other format decodes them.
 *
 * A record never changes once it is made, so readers on any thread may hold it: each has a reference
 * of its own, the last unref frees. Its encodings in other dialects are stored beside it, so that many
 * readers of one dialect do not encode it many times.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

#include <dragoman/model.h>
#include <stdatomic.h>

typedef struct dgm_record_head {
    uint64_t seq;             /* its place in the log, from 1 */
    int64_t time;             /* when it was appended, in Unix milliseconds */
    uint32_t turn;            /* the exchange within the task it belongs to */
    dgm_event_kind kind : 8;  /* of the event */
    dgm_task_state state : 8; /* of a task or a status-update; UNKNOWN for all others */
} dgm_record_head;

/* What a record is in another dialect. */
typedef struct dgm_payload {
    struct dgm_payload *next;
    unsigned dialect;
    uint32_t n;
    char bytes[]; /* n of them */
} dgm_payload;

typedef struct dgm_record {
    dgm_record_head head;
    _Atomic(dgm_payload *) payloads; /* grows in front; goes with the record */
    struct dgm_record_block *block;  /* that it shares with other records; NULL: none */
    _Atomic uint32_t refs;
    uint32_t n;       /* DGM_MAX_RECORD_BYTES fits */
    uint32_t text_at; /* offset of the text, if dgm_record_new() wrote a plain chunk; else 0 */
    uint32_t text_n;  /* of a plain chunk; UINT32_MAX: the text has escapes */
    bool is_ascii;    /* false: not known */
    bool plain_ids;   /* of a plain chunk: the ids have no escapes */
    char bytes[];     /* n of them, then a NUL */
} dgm_record;

static inline dgm_str dgm_record_bytes(const dgm_record *r)
{
    return (dgm_str){r->bytes, r->n};
}

/*
 * From an event; head's kind and state are taken from it. The record comes with one reference, in
 * one allocation. scratch is where the text is put together: emptied here, its memory kept for the
 * next. Too large an event, or one nested too deeply to be read back, is refused.
 */
dgm_code dgm_record_new(const dgm_event *event, dgm_record_head head, dgm_buf *scratch,
                        dgm_record **ret_record, dgm_err *err);

/*
 * The same for the next chunk of a streamed text: it differs from the record before it only in the text and in append and
 * lastChunk, so the rest is copied. Records of one text share blocks of memory: only the owner of a log calls this, with the
 * newest record. NULL: use dgm_record_new() (another artifact, optional members, a text with
 * escapes). The event's taskId and contextId are not read: they are those of the record before it.
 */
dgm_record *dgm_record_next_chunk(const dgm_record *before, const dgm_event *event,
                                  dgm_record_head head);

/* From what a store kept. The bytes are copied and not looked at before dgm_record_event(). */
dgm_code dgm_record_from_bytes(dgm_record_head head, dgm_str bytes, dgm_record **ret_record,
                               dgm_err *err);

dgm_record *dgm_record_ref(dgm_record *r);
void dgm_record_unref(dgm_record *r); /* NULL is fine */

/* Decodes it. What the event points to lives in the arena, not in the record. A record that cannot
 * be decoded was damaged in the store: DGM_INTERNAL, whatever is wrong with it. */
dgm_code dgm_record_event(const dgm_record *r, dgm_arena *a, dgm_event *ret_event, dgm_err *err);

/*
 * The record in a dialect (a number of the caller's), encoded once for all its readers: `encode` writes it
 * to the end of `out` at the first call, later ones get what was kept. For records that more than one
 * reader wants; from any thread. Two that come first at once both encode, one is kept. A failure of
 * encode's is returned and nothing is kept. What is given lives as long as the record.
 */
typedef dgm_code (*dgm_payload_fn)(const dgm_record *r, dgm_buf *out, void *arg);
dgm_code dgm_record_payload(dgm_record *r, unsigned dialect, dgm_payload_fn encode, void *arg,
                            dgm_str *ret_bytes);

DGM_DEFINE_AUTO(dgm_record, dgm_record_unref)
