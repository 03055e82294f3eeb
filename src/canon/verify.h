/*
 * canon/verify.h - the order in which events may come, as the official client checks it.
 *
 * One number per rule, for whoever names them: tests and lint. Chunks are to be expanded before. What is open is
 * kept, and of what is closed the last; a run that has more open than lint_items allows is not judged any more.
 */
#pragma once

#include "base/err.h"
#include "canon/canon.h"

typedef enum dgm_order_rule {
    DGM_ORDER_FINE,
    DGM_ORDER_FIRST,          /* the first event is RUN_STARTED or RUN_ERROR */
    DGM_ORDER_AFTER_ERROR,    /* after RUN_ERROR only RUN_STARTED */
    DGM_ORDER_AFTER_FINISH,   /* after RUN_FINISHED only RUN_STARTED or RUN_ERROR */
    DGM_ORDER_SECOND_RUN,     /* no RUN_STARTED within a run */
    DGM_ORDER_TEXT_OPEN,      /* TEXT_MESSAGE_START: the id is not open */
    DGM_ORDER_TEXT_CLOSED,    /* TEXT_MESSAGE_CONTENT, _END: it is */
    DGM_ORDER_CALL_OPEN,      /* TOOL_CALL_START likewise */
    DGM_ORDER_CALL_CLOSED,    /* TOOL_CALL_ARGS, _END */
    DGM_ORDER_STEP_OPEN,      /* STEP_STARTED: (owner, name) is not open */
    DGM_ORDER_STEP_CLOSED,    /* STEP_FINISHED: it is */
    DGM_ORDER_SPAN,           /* REASONING_START, _END */
    DGM_ORDER_REASONING,      /* REASONING_MESSAGE_START, _CONTENT, _END */
    DGM_ORDER_OPEN_AT_FINISH, /* RUN_FINISHED: nothing is open */
    DGM_ORDER_SUBAGENT_START, /* its id is new in this run, its parent known */
    DGM_ORDER_SUBAGENT_END,   /* it is active */
    DGM_ORDER_OWNER,          /* a continuation names no other subagent than its opener */
    DGM_ORDER_NULLS,          /* null members: a matter of reading, never found here */
    DGM_ORDER_NO_END /* the stream ended without a terminal event (the client forgives it) */
} dgm_order_rule;

typedef struct dgm_verify dgm_verify;

dgm_verify *dgm_verify_new(void);
void dgm_verify_free(dgm_verify *v); /* NULL is fine */

/* The rule that this event breaks; err then says how. It counts as having come all the same, as far as
 * that makes sense. */
dgm_order_rule dgm_verify_feed(dgm_verify *v, const dgm_canon_event *event, dgm_err *err);
dgm_order_rule dgm_verify_end(dgm_verify *v, dgm_err *err);

DGM_DEFINE_AUTO(dgm_verify, dgm_verify_free)
