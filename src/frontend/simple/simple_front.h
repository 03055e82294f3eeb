/*
 * frontend/simple/simple_front.h - document 000's dialects on the wire.
 *
 *   POST /simple/ag-ui      RunAgentInput in, `ag-ui-simple` events out
 *   POST /simple/responses  a request of Responses in, `responses-simple` events out
 *
 * Server-sent events, or a line of JSON each for who accepts application/x-ndjson or application/jsonl. What the
 * caller sent is streamed too: a row of the document is a message of either side.
 */
#pragma once

#include "frontend/turn/turn.h"

extern const dgm_frontend dgm_front_simple;
