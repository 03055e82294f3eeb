/*
 * wire/responses/responses_out.h - the inside of the encoder.
 *
 * responses_encode.c begins and ends the response, responses_events.c decides what events become in between;
 * responses_out.c keeps the items and emits the frames of each item, from added to done; responses_object.c writes
 * items and the response.
 *
 * Text is stored escaped, as JSON has it: it is written once with every delta and four times when it is
 * done. The first failure stays in rc; from then on nothing is given.
 */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "wire/responses/responses_int.h"

/* What a frame has room for from the start. Every response has frames of this size; to get there by
 * doubling took longer than to write them. */
#define DGM_RESPONSES_ROOM 4096

#define DGM_RESPONSES_NONE SIZE_MAX

enum responses_kind {
    RESPONSES_MESSAGE,
    RESPONSES_REFUSAL, /* a message that refuses */
    RESPONSES_REASONING,
    RESPONSES_FUNCTION, /* the caller's to run */
    RESPONSES_MCP,      /* the agent's own */
    RESPONSES_IMAGE,
    RESPONSES_OTHER /* an item of somebody else's, as it came */
};

enum responses_state {
    RESPONSES_HELD, /* a call: whose it is shows later; no index yet */
    RESPONSES_OPEN,
    RESPONSES_DONE
};

/* A text of its own: of a message, joined with others of its item by a blank line; of reasoning, a part of
 * its summary. */
struct responses_piece {
    dgm_str id; /* canonical; absent: no event names it */
    size_t item, next;
    size_t earlier; /* the piece with which this text began, if it goes on in another item */
    dgm_buf text;   /* escaped */
    dgm_str prefix; /* of its deltas, up to the sequence number */
    unsigned index; /* of reasoning: in the summary */
    bool ended;
    bool moved; /* the text was replaced; its full new value is in the first piece */
};

struct responses_item {
    enum responses_kind kind;
    enum responses_state state;
    const char *status; /* once it is done */
    dgm_str id;
    unsigned index;
    size_t first, last; /* pieces */
    bool follows;       /* a message that begins with the blank line */
    dgm_str call_id, name;
    dgm_buf text;   /* escaped arguments; of IMAGE base64; of OTHER all of it */
    dgm_buf output; /* escaped; of MCP */
    dgm_str encrypted;
    dgm_str prefix; /* of deltas of arguments */
    bool answered, failed;
    bool alone; /* reasoning of one thought, without a span around it */
};

struct responses_encoder {
    dgm_frame_sink sink;
    dgm_stream_params params; /* texts and mint are copied */
    dgm_arena *arena;         /* of this response */
    dgm_arena *scratch;       /* of this event */
    dgm_buf out;
    dgm_code rc;
    dgm_err *err;

    bool begun, finished;
    const char *early; /* why it ends before its time: the reason of incomplete_details */
    bool implicit;     /* an old peer: calls without an answer are the caller's */
    dgm_str id, run_id, thread_id, model;
    int64_t created, completed; /* seconds */
    dgm_str tail; /* what of the response is always the same: begins with a comma, ends with '}' */
    const dgm_json *metadata; /* of the caller's own */
    dgm_map client_tools;     /* names that the caller can run */
    int64_t sequence;
    unsigned n_given; /* items with an index */
    size_t kept;      /* bytes, against the limit output_bytes */

    struct responses_item *items;
    size_t n_items, cap_items;
    size_t *order; /* items by output_index */
    size_t cap_order;
    struct responses_piece *pieces;
    size_t n_pieces, cap_pieces;
    dgm_map texts, thoughts; /* canonical id -> piece */
    dgm_map calls;           /* canonical id -> item */
    dgm_map spans;           /* likewise; none as long as nothing is thought */
    dgm_map ids;             /* of items, in use */
    size_t current;          /* the piece that spoke last */
    size_t message;          /* the message that can go on; or none */
    size_t said;             /* the last piece of a message */
    dgm_str span;            /* the reasoning that was begun last; or none */
    bool has_message;
    dgm_str progress; /* the last one */
};

/* How a response ends. */
struct responses_end {
    dgm_str event;         /* "response.completed" */
    const char *status;    /* "completed" */
    const char *state;     /* a2a_task_state; NULL: not written */
    dgm_str code, message; /* of a failure */
    const char *reason;    /* incomplete_details */
    const dgm_canon_usages *usage;
};

/* ---- responses_object.c ------------------------------------------------------------------------------------------ */

/* Reads what the run says of itself, prepares what is always the same. */
void dgm_responses_describe(struct responses_encoder *e, const dgm_canon_event *started);
void dgm_responses_put_item(struct responses_encoder *e, const struct responses_item *it);
/* "part" of a message, or of a summary: of this piece, or all pieces of the item. */
void dgm_responses_put_part(struct responses_encoder *e, const struct responses_item *it,
                            bool empty);
void dgm_responses_put_summary(struct responses_encoder *e, const struct responses_piece *p,
                               bool empty);
/* The text of a message, in quotes. */
void dgm_responses_put_text(struct responses_encoder *e, const struct responses_item *it);
void dgm_responses_put_response(struct responses_encoder *e, const struct responses_end *end);
void dgm_responses_put_error(struct responses_encoder *e, const struct responses_end *end);

/* ---- responses_approval.c ------------------------------------------------------------------------------------------ */

/* The items of the interrupts that ask for an approval. */
void dgm_responses_ask_approvals(struct responses_encoder *e, const dgm_canon_outcome *o);

/* ---- responses_out.c ----------------------------------------------------------------------------------------------- */

struct responses_item *dgm_responses_new_item(struct responses_encoder *e,
                                              enum responses_kind kind);
size_t dgm_responses_new_piece(struct responses_encoder *e, dgm_str id);
void dgm_responses_forget(struct responses_encoder *e);

/* A frame: dgm_responses_frame(), members, dgm_responses_emit(). False: nothing is emitted, write nothing. */
bool dgm_responses_frame(struct responses_encoder *e, dgm_str event);
void dgm_responses_emit(struct responses_encoder *e, dgm_str event);
/* Room for so much more, against the limit. */
bool dgm_responses_keep(struct responses_encoder *e, size_t n);

/* output_item.added; gives it its index. */
void dgm_responses_add(struct responses_encoder *e, struct responses_item *it, const char *prefix,
                       dgm_str id);
/* Messages. */
void dgm_responses_say(struct responses_encoder *e, size_t piece, dgm_str text);
void dgm_responses_close_message(struct responses_encoder *e, struct responses_item *it,
                                 const char *status);
void dgm_responses_refuse(struct responses_encoder *e, dgm_str text);
/* Reasoning. */
void dgm_responses_append_reasoning(struct responses_encoder *e, size_t piece, dgm_str text);
void dgm_responses_end_thought(struct responses_encoder *e, size_t piece);
void dgm_responses_close(struct responses_encoder *e, struct responses_item *it,
                         const char *status); /* output_item.done */
/* Calls. */
void dgm_responses_open_call(struct responses_encoder *e, struct responses_item *it);
void dgm_responses_append_arguments(struct responses_encoder *e, struct responses_item *it,
                                    dgm_str text);
void dgm_responses_close_call(struct responses_encoder *e, struct responses_item *it,
                              const char *status);

/* ---- responses_events.c ------------------------------------------------------------------------------------------------ */

/* Everything but the beginning and the end of a run. */
void dgm_responses_within_run(struct responses_encoder *e, const dgm_canon_event *event);
void dgm_responses_close_reasoning(struct responses_encoder *e, struct responses_item *it);
