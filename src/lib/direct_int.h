/* lib/direct_int.h - what the files of the direct road share: marks in metadata, kinds of files. */
#pragma once

#include "lib/direct.h"

/*
 * What A2A has no place for, as metadata. Values of DIRECT_PART beside the names of chat parts:
 * "message_refusal" a message's own `refusal`, "other" a chat part of unknown type as it was,
 * "function_call" the legacy way to call, "content" results whose output is a list of chat parts.
 */
#define DIRECT_CANONICAL_TYPE "canonical_type"
#define DIRECT_ROLE "dragoman:role"
#define DIRECT_NAME "dragoman:name"
#define DIRECT_REASONING "dragoman:reasoning_content"
#define DIRECT_PART "dragoman:part"
#define DIRECT_DETAIL "dragoman:detail"
#define DIRECT_FILE_ID "dragoman:file_id"

/* A text member of metadata; absent when there is none, or it is no text. */
dgm_str dgm_direct_mark(const dgm_json *metadata, const char *key);

/* How a message is to be taken. */
typedef struct dgm_direct_how {
    bool trusted;
    dgm_direct_spelling spelling;
} dgm_direct_how;

dgm_code dgm_direct_make(dgm_arena *a, const dgm_message *m, const dgm_at *at, dgm_direct_how how,
                         dgm_direct_pair *ret_pair, dgm_err *err);

/* What a part becomes by itself, without marks. TEXT: its text, JSON text, or a link. */
dgm_chat_part_kind dgm_direct_part_kind(const dgm_part *p, dgm_role role);

/* As the part says, or as its file name or address lets guess; absent when nothing does. */
dgm_str dgm_direct_media_type(const dgm_part *p);
dgm_str dgm_direct_media_type_of_name(dgm_str name);

/* "pdf" for application/pdf; "bin" for what we do not know. */
const char *dgm_direct_extension(dgm_str media_type);

/* OpenAI's name of an audio format, "wav" or "mp3"; absent for every other media type. */
dgm_str dgm_direct_audio_format(dgm_str media_type);

/* Takes a data: URL in base64 apart. The bytes come out as standard base64; media_type may be empty. */
bool dgm_direct_data_url(dgm_arena *a, dgm_str url, dgm_str *ret_media_type, dgm_str *ret_base64);

/* "image/": is the media type one of those? */
bool dgm_direct_media_is(dgm_str media_type, dgm_str prefix);

/* An object in data under one of these names holds calls (of agents) and results. */
#define DIRECT_CALLS "tool_calls"
#define DIRECT_RESULTS "tool_results"
yyjson_val *dgm_direct_member(const dgm_part *p, const char *name); /* NULL for null, too */

/* The list with room for a zeroed item behind its n. Lists live in the arena. */
static inline void *dgm_direct_one_more(dgm_arena *a, void *list, size_t n, size_t size)
{
    if ((n & (n - 1)) == 0) /* full at 0, 1, 2, 4, ...: double */
        list = dgm_arena_realloc(a, list, n * size, (n ? 2 * n : 1) * size);
    memset((char *)list + n * size, 0, size);
    return list;
}
