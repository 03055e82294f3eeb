/*
 * lib/target.h - where canonical events, messages and requests become frames of a format.
 *
 * One target is one answer: a stream, a response, a list of messages, or a request. It takes events in
 * order, or instead of them messages, or a request, and makes of each what was asked for.
 */
#pragma once

#include "lib/loss_watch.h"

typedef struct dgm_target_params {
    const dgm_format *to;
    dgm_form form; /* what comes out; the format has it */
    bool fragment; /* no whole run comes in */
    bool alone;    /* A2A: a message stands by itself, it is no event of a stream */
    dgm_mint mint;
    dgm_frame_sink sink;
    dgm_loss_watch *losses; /* NULL: not requested */
} dgm_target_params;

typedef struct dgm_target dgm_target;

dgm_target *dgm_target_new(const dgm_target_params *params);
void dgm_target_free(dgm_target *t); /* NULL is fine */

dgm_code dgm_target_event(dgm_target *t, const dgm_canon_event *event, dgm_err *err);
dgm_code dgm_target_messages(dgm_target *t, const dgm_canon_messages *messages, dgm_err *err);
dgm_code dgm_target_request(dgm_target *t, const dgm_canon_input *input, dgm_err *err);
dgm_code dgm_target_end(dgm_target *t, dgm_err *err);

DGM_DEFINE_AUTO(dgm_target, dgm_target_free)

/* target_a2a.c: the message of a request; everything made lives in the arena. */
typedef struct dgm_send_made {
    dgm_send_request request;
    dgm_message message;
} dgm_send_made;
void dgm_target_send_request(dgm_arena *a, const dgm_canon_input *input, dgm_mint *mint,
                             dgm_send_made *ret_made);
