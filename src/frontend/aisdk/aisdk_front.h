/*
 * frontend/aisdk/aisdk_front.h - agents behind the AI SDK's useChat.
 *
 *   POST   /ai-sdk                 a message: a turn on the context of the chat's id, as a UI message stream
 *   GET    /ai-sdk/{chat}/stream   the turn that runs, from its beginning; 204: none does
 *   DELETE /ai-sdk/{chat}/stream   cancels it
 *   POST   /ai-sdk/{chat}/cancel   likewise
 *   GET    /ai-sdk/{chat}/messages the chat as UI messages
 *
 * The SDK takes the body of a refusal for its message, so refusals are sentences: text/plain.
 */
#pragma once

#include "frontend/turn/turn.h"

extern const dgm_frontend dgm_front_aisdk;

/* The stream of a turn that it began. */
void dgm_aisdk_replay(const dgm_turn_replay *replay);
