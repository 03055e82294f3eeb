/*
 * wire/chat/chat_messages.h - chat messages and the messages of canonical requests, each as the other.
 *
 * Members that only chat has are stored in `extra`, tagged with dgm_chat_name. Beside unknown members these
 * are there, under names that cannot be unknown ones:
 *
 *   message   "role": "function"; "refusal": its text
 *   call      "type": "custom", or "function_call" for the legacy way
 *   part      "type": "video_url", or the whole part where its type is not known
 *   source    "detail", "file_id" beside bytes
 */
#pragma once

#include "wire/chat/chat.h"
#include "wire/codec.h"

/* An assistant's `reasoning_content` is a message of its own, before it. Ids are minted if r can. */
dgm_code dgm_chat_read_messages(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                dgm_canon_messages *ret_messages);

/* The other way round; lives in the arena or borrows. */
dgm_chat_messages dgm_chat_from_canon(dgm_arena *a, const dgm_canon_messages *messages);

/* A member of extra that is ours; NULL if absent. */
const dgm_json *dgm_chat_extra(const dgm_extra *x, const char *key);
dgm_str dgm_chat_extra_text(const dgm_extra *x, const char *key);
/* x and one more; NULL value: x. */
const dgm_extra *dgm_chat_with(dgm_arena *a, const dgm_extra *x, const char *key,
                               const dgm_json *value);
const dgm_extra *dgm_chat_without(dgm_arena *a, const dgm_extra *x, const char *key);

/* Requests: the codec's. */
dgm_code dgm_chat_read_request(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                               dgm_canon_input *ret_input);
dgm_code dgm_chat_write_request(dgm_writer *w, const dgm_canon_input *input,
                                const dgm_stream_params *params, dgm_err *err);
