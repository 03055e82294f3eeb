/*
 * frontend/agui/agui_again.h - a run, streamed to a client that connects in the middle of it.
 *
 *   RUN_STARTED
 *   MESSAGES_SNAPSHOT    the messages before the run, and those of the run so far
 *   state, activities    and what else has no place among messages
 *   STEP_STARTED, ...    what is open: TEXT_MESSAGE_START and the like, without what is in them
 *   ... and from there on everything as it comes
 *
 * A client that has some of the messages, or half of one, ends up with each of them once: those of known ids are
 * replaced, and deltas add to what is there. Pure: events go in, events come out.
 */
#pragma once

#include "canon/events_to_messages.h"

typedef struct agui_again_params {
    /* The messages before the run. */
    dgm_canon_messages before;
    /* What the client says that it has; strangers among it go first, so that the order is right. */
    dgm_canon_messages held;
    bool only_before; /* `before` has the messages of the run, too */
    bool no_messages; /* the client has them all */
    bool ends_well;   /* however the run ended, this telling of it is in order */
    bool interrupts;  /* also for a question that is only text: see agui_as_message */
    dgm_str parent_run_id;
} agui_again_params;

typedef struct agui_events {
    dgm_canon_event *at;
    size_t n;
} agui_events;

/* Its members are agui_again.c's. */
typedef struct agui_again {
    agui_again_params params; /* what it points to is in the arena */
    dgm_arena *arena;         /* NULL: the prelude is over */
    dgm_canon_fold *fold;     /* the messages of the run */
    dgm_canon_event started;
    agui_events open; /* what began and has not ended */
    agui_events kept; /* state, activities and so on */
    bool too_large;
} agui_again;

/* Everything in params is copied. When the prelude is over it holds nothing any more. */
void dgm_agui_again_init(agui_again *g, const agui_again_params *params);
void dgm_agui_again_done(agui_again *g); /* a second call does nothing */

/*
 * A run that ends with a question that is only text ends as a success: the question is a message of the run, and the
 * next message of the user answers it. Clients refuse to send a message while an interrupt is open, so an answer that
 * the user types would never be sent. Returns the event, or *ret in its place.
 */
const dgm_canon_event *dgm_agui_as_message(const dgm_canon_event *event, dgm_canon_event *ret);

/* As dgm_turn_output wants them; arg is an agui_again. */
void dgm_agui_again_release(void *arg);
dgm_code dgm_agui_again_on_event(void *arg, const dgm_canon_event *event, dgm_canon_sink next);
/* All that is there has been given. */
dgm_code dgm_agui_again_on_pause(void *arg, dgm_canon_sink next);
