/*
 * wire/aisdk/aisdk.h - the AI SDK's UI: the message stream that useChat reads, UI messages, its requests.
 *
 * A stream is one message of the assistant. Text parts only grow: if the final text differs from the streamed
 * one, it is sent as another part with providerMetadata {"dragoman":{"instead":true}}, and the last text part
 * counts. One UI message contains what other formats send as several messages: reasoning, calls with their
 * results and the text after them, in steps.
 */
#pragma once

#include "wire/codec.h"

extern const dgm_codec dgm_codec_aisdk;
