/*
 * wire/aisdk/aisdk.h - the AI SDK's UI: the message stream that useChat reads, UI messages, its requests.
 *
 * A stream tells of one message of the assistant. Text parts only grow: where a text turns out to be another
 * than was streamed, it follows as another part, and the last text part is the one that counts; it says so in
 * its providerMetadata, {"dragoman":{"instead":true}}. A UI message holds what other formats have as several:
 * reasoning, calls with their results, the text behind them, in steps.
 */
#pragma once

#include "wire/codec.h"

extern const dgm_codec dgm_codec_aisdk;
