/*
 * wire/chat/chat_codec.h - Chat Completions through canonical events: requests, messages, completions, chunks.
 *
 * Written: a stream as OpenAI's clients want it (role first, one finish_reason, ids and names once), text of
 * several messages joined by a blank line, reasoning and progress as `reasoning_content`. A call reaches the
 * client only if it was not answered: calls that an agent makes by itself would be made again.
 * Read: what servers of many makers send.
 */
#pragma once

#include "wire/codec.h"
#include "wire/output_form.h"
#include "json/check.h"

extern const dgm_codec dgm_codec_openai_chat;

/* What gets lost. */
extern const dgm_loss_rows dgm_chat_lost_reading, dgm_chat_lost_writing;

/* ---- for a server -------------------------------------------------------------------------------------------- */

/* The types of all known members; the number of entries of its lists. */
dgm_code dgm_chat_check_request(yyjson_val *body, dgm_err *err);
extern const dgm_json_rule dgm_chat_rules[];
/* Names of what has no effect, for a response header: members, and tools that are not functions. Empty if all have an effect. */
dgm_str dgm_chat_ignored(dgm_arena *a, yyjson_val *body);
/* response_format, and tool_choice or function_call. tools: the functions of the request. An error points to the member;
 * a call is refused that is not possible. The tools are in the arena. */
dgm_code dgm_chat_read_output_form(dgm_arena *a, yyjson_val *body, const dgm_canon_tools *tools,
                                   dgm_output_form *ret, dgm_err *err);
