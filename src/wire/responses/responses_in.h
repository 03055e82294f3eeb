/*
 * wire/responses/responses_in.h - the inside of the decoder.
 *
 * Servers leave out what they like: events of parts, `done` events, even all of them but response.completed.
 * So every event of an item adds the content that is new: deltas, then what `done` has behind
 * them, then the item, then the response. Of texts only length and hash are kept.
 */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "model/reconcile.h"
#include "wire/responses/responses_int.h"

enum responses_in_kind {
    RESPONSES_IN_MESSAGE,
    RESPONSES_IN_REASONING,
    RESPONSES_IN_CALL,
    RESPONSES_IN_MCP, /* a call that comes with its result */
    RESPONSES_IN_OTHER
};

struct responses_in_item {
    enum responses_in_kind kind;
    dgm_str id;       /* canonical; of calls the call's */
    dgm_str wire_id;  /* empty: it has none */
    dgm_str thought;  /* the id of the one that is open */
    bool open;        /* START was given, END was not */
    bool was_started; /* START was emitted at least once */
    bool done, answered;
    bool leads; /* its text begins with a blank line of ours, or goes on with the last one's */
    bool goes_on;
    size_t origin, speaker; /* where it began; of that, who speaks for it */
    unsigned char lead;     /* newlines of it that are still to be left out */
    unsigned parts;         /* of reasoning: begun so far */
    int64_t part;           /* index of the one that is open */
    bool part_open, part_is_content;
    dgm_sum said, said_of_part;
};

struct responses_decoder {
    dgm_arena *arena;
    dgm_mint mint;
    bool fragment;
    bool begun, finished, ours;
    dgm_str run_id, thread_id;
    struct responses_in_item *items;
    size_t n_items, cap_items, last; /* last: the one that was found last */
    dgm_map ids;                     /* of items on the wire, "#n" for indexes */
    dgm_str parent;                  /* of calls */
    bool after_result, said_anything;
    unsigned n_messages, n_made;
    size_t message; /* the item that spoke last; SIZE_MAX: none */
    dgm_map taken;  /* canonical ids in use, behind a letter for their kind */
    dgm_buf refusal;
    size_t refused;                 /* the item with the refusal */
    dgm_canon_interrupts approvals; /* that the response asks for */
    bool has_error;
    dgm_str error_code, error_message;

    /* of this call of feed */
    dgm_reader *r;
    dgm_canon_sink sink;
    dgm_code rc;
};

/* Whatever goes wrong is remembered in rc; from then on nothing is given. */
void dgm_responses_in_out(struct responses_decoder *d, dgm_canon_event *event);

/* The item that an event or a response is about; created if it is new. NULL: rc says why. An id that is not known may be
 * another id of the item with this index: some servers send another one with each event. */
enum responses_in_place {
    RESPONSES_IN_STARTS,   /* output_item.added: another id is another item */
    RESPONSES_IN_GOES_ON,  /* an event: the item is of this kind and not complete */
    RESPONSES_IN_RESPONSE, /* the list of all items: the item is of this kind */
};
struct responses_in_item *dgm_responses_in_find(struct responses_decoder *d, yyjson_val *id,
                                                yyjson_val *index, enum responses_in_kind kind,
                                                enum responses_in_place place);
struct responses_in_item *dgm_responses_in_item(struct responses_decoder *d, yyjson_val *item,
                                                yyjson_val *index, enum responses_in_place place);

/* What of a text is behind its first n bytes. */
static inline dgm_str dgm_responses_in_rest(dgm_str text, size_t n)
{
    return n ? (dgm_str){text.p + n, text.n - n} : text; /* absent text has no address to add to */
}

/* The id, or a made up one where another of that kind has it. */
dgm_str dgm_responses_in_id(struct responses_decoder *d, char kind, dgm_str id);

/* output_item.added: what it is. */
void dgm_responses_in_begin(struct responses_decoder *d, struct responses_in_item *it,
                            yyjson_val *item);
void dgm_responses_in_text(struct responses_decoder *d, struct responses_in_item *it,
                           dgm_str delta);
/* The complete text of the part that is open. */
void dgm_responses_in_whole_part(struct responses_decoder *d, struct responses_in_item *it,
                                 yyjson_val *index, dgm_str text);
void dgm_responses_in_part(struct responses_in_item *it, yyjson_val *index);
void dgm_responses_in_refusal(struct responses_decoder *d, struct responses_in_item *it,
                              dgm_str text, bool whole);
void dgm_responses_in_arguments(struct responses_decoder *d, struct responses_in_item *it,
                                dgm_str text, bool whole);
void dgm_responses_in_reasoning(struct responses_decoder *d, struct responses_in_item *it);
/* A thought: of the summary, or of the reasoning itself. */
void dgm_responses_in_thought(struct responses_decoder *d, struct responses_in_item *it,
                              yyjson_val *index, bool is_content, dgm_str text, bool whole);
/* Complete items: their content that is new. */
void dgm_responses_in_message(struct responses_decoder *d, struct responses_in_item *it,
                              yyjson_val *item);
void dgm_responses_in_call(struct responses_decoder *d, struct responses_in_item *it,
                           yyjson_val *item, bool mcp);
void dgm_responses_in_output(struct responses_decoder *d, yyjson_val *item);
/* output_item.done, or the item in the response: all there is. */
void dgm_responses_in_done(struct responses_decoder *d, struct responses_in_item *it,
                           yyjson_val *item);
void dgm_responses_in_close(struct responses_decoder *d, struct responses_in_item *it);
/* The refusal is emitted as text after all. */
void dgm_responses_in_say_refusal(struct responses_decoder *d);

/* ---- responses_approval.c ----------------------------------------------------------------------------------------- */

/* Notes a request for approval; other items are ignored. */
void dgm_responses_in_approval(struct responses_decoder *d, const yyjson_val *item);

/* ---- responses_in_run.c ------------------------------------------------------------------------------------------- */

/* RUN_STARTED, once. response may be NULL. */
void dgm_responses_in_run(struct responses_decoder *d, yyjson_val *response);
/* The part of its output that is new. */
void dgm_responses_in_items(struct responses_decoder *d, yyjson_val *response);
/* It has ended, one way or the other. */
void dgm_responses_in_end(struct responses_decoder *d, yyjson_val *response, dgm_str status);
void dgm_responses_in_close_all(struct responses_decoder *d);
void dgm_responses_in_fail(struct responses_decoder *d, dgm_str message, dgm_str code,
                           yyjson_val *response);
