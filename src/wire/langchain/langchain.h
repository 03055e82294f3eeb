/*
 * wire/langchain/langchain.h - LangChain's messages as JSON.
 *
 * Read in every form that LangChain writes: stored ({"type":"ai","data":{...}}, messages_to_dict), constructor
 * ({"lc":1,...,"kwargs":{...}}, dumpd), flat (model_dump) and role dicts; with tool calls in LangChain's or
 * OpenAI's shape and content as text or blocks. Written as messages_to_dict does.
 *
 * A stream is one of chunks (AIMessageChunk) and whole messages. The text of a whole message with
 * the id of earlier chunks replaces their text.
 */
#pragma once

#include "wire/codec.h"

extern const dgm_codec dgm_codec_langchain;
