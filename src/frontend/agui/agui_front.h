/*
 * frontend/agui/agui_front.h - AG-UI over HTTP, 1.0 and before.
 *
 *   POST /ag-ui                            a run; one that is known by its ids is streamed again
 *   POST /ag-ui/connect                    a thread as it is: its messages, its state, and the run that is going on
 *   GET  /ag-ui/threads/{threadId}/messages  the same messages as JSON
 *   GET  /ag-ui/capabilities               what the agent can do, in AG-UI's words
 *
 * A thread is a context, a run a turn of one of its tasks. Whoever answers an interrupt, or brings the results of
 * calls, goes on with the task that waits.
 */
#pragma once

#include "frontend/turn/turn.h"

extern const dgm_frontend dgm_front_agui;

/* The stream of a run that it began. */
void dgm_agui_replay(const dgm_turn_replay *replay);
