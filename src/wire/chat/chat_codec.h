/*
 * wire/chat/chat_codec.h - Chat Completions through canonical events: requests, messages, completions, chunks.
 *
 * Written: a stream as OpenAI's clients want it (role first, one finish_reason, ids and names once), text of
 * several messages joined by a blank line, reasoning and progress as `reasoning_content`. A call reaches the
 * client only if nobody else answered it: those that an agent makes by itself would be made again.
 * Read: what servers of many makers send.
 */
#pragma once

#include "wire/canon_codec.h"

extern const dgm_canon_codec dgm_codec_openai_chat;

/* What gets lost. */
extern const dgm_loss_rows dgm_chat_lost_reading, dgm_chat_lost_writing;
