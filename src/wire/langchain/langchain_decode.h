/* wire/langchain/langchain_decode.h - the inside of the decoder: what its files share. */
#pragma once

#include "canon/reconcile.h"
#include "wire/langchain/langchain_int.h"

struct lc_call {
    dgm_str id;
    size_t owner; /* index in texts */
    int64_t index;
    bool open, answered;
};

/* The text that chunks with one id have sent. */
struct lc_said {
    dgm_str id;
    dgm_str placeholder; /* that of its run, once there was one */
    dgm_str node;        /* of LangGraph, with the task that it runs as */
    bool loose;          /* the id is a placeholder, or ours: another may follow */
    bool done;
    dgm_sum text;
};

typedef struct lc_decoder {
    dgm_arena *arena;
    dgm_mint mint;
    dgm_reader *r;
    dgm_canon_sink sink;
    dgm_code rc;
    dgm_str thread_id, run_id;
    /* the message that chunks add to; n_said == 0: none was begun */
    size_t current;
    bool has_current, text_open;
    dgm_str reasoning; /* the id of the one that is open */
    struct lc_said *said;
    size_t n_said, cap_said;
    struct lc_call *calls;
    size_t n_calls, cap_calls, first_open; /* before it none is */
    dgm_map texts, by_id, by_node;         /* texts by id, calls by id, the last text of a node */
    dgm_canon_usage usage;
    dgm_str error, error_code;
    dgm_canon_interrupts interrupts;
    bool fragment, begun, cancelled;
    unsigned n_made;
} lc_decoder;

/* langchain_decode.c */
void dgm_lc_give(lc_decoder *d, const dgm_canon_event *e);
/* Another message speaks. */
void dgm_lc_leave_current(lc_decoder *d);

/* langchain_decode_who.c: the message that a chunk is a piece of becomes the current one. node: LangGraph's, or
 * absent. */
void dgm_lc_open_current(lc_decoder *d, dgm_str id, dgm_str node);

/* langchain_decode_end.c: how the run went */
void dgm_lc_look_at_end(lc_decoder *d, const yyjson_val *data);
void dgm_lc_read_interrupts(lc_decoder *d, yyjson_val *list);
void dgm_lc_end_run(lc_decoder *d);
