/*
 * wire/chat/chat.h - messages of OpenAI's Chat Completions, complete ones only.
 *
 * Bytes to structs and back. Reading is tolerant (content absent, null, text or a list; arguments as
 * an object; calls without a type), writing is strict. Unknown members are stored in `extra`
 * and are written back by this format alone. Chunks of a stream are refused.
 */
#pragma once

#include "json/shape.h"

#include <dragoman/convert.h>

extern const char dgm_chat_name[]; /* "openai-chat" */

typedef enum dgm_chat_role {
    DGM_CHAT_ROLE_NONE,
    DGM_CHAT_SYSTEM,
    DGM_CHAT_DEVELOPER,
    DGM_CHAT_USER,
    DGM_CHAT_ASSISTANT,
    DGM_CHAT_TOOL,
    DGM_CHAT_FUNCTION /* legacy: a result, paired with its call by name */
} dgm_chat_role;
#define DGM_N_CHAT_ROLES 7

typedef enum dgm_chat_part_kind {
    DGM_CHAT_PART_OTHER, /* a type we do not know: the whole part is in `value` */
    DGM_CHAT_PART_TEXT,
    DGM_CHAT_PART_IMAGE, /* image_url */
    DGM_CHAT_PART_AUDIO, /* input_audio */
    DGM_CHAT_PART_FILE,
    DGM_CHAT_PART_VIDEO, /* video_url: not OpenAI's, but vLLM's and others' */
    DGM_CHAT_PART_REFUSAL
} dgm_chat_part_kind;
#define DGM_N_CHAT_PART_KINDS 7

typedef struct dgm_chat_part {
    dgm_chat_part_kind kind;
    dgm_str text;      /* text, refusal */
    dgm_str url;       /* image, video: an address or a data: URL */
    dgm_str detail;    /* image: how closely the model should look */
    dgm_str data;      /* audio: base64 */
    dgm_str format;    /* audio: wav or mp3 */
    dgm_str file_data; /* file: a data: URL */
    dgm_str file_id;   /* file: one that the model's server holds */
    dgm_str filename;
    const dgm_json *value;        /* other */
    const dgm_extra *extra;       /* beside `type` */
    const dgm_extra *inner_extra; /* within `image_url`, `file`, ... */
} dgm_chat_part;

typedef struct dgm_chat_parts {
    dgm_chat_part *at;
    size_t n;
} dgm_chat_parts;

typedef enum dgm_chat_content_kind {
    DGM_CHAT_CONTENT_ABSENT,
    DGM_CHAT_CONTENT_NULL,
    DGM_CHAT_CONTENT_TEXT,
    DGM_CHAT_CONTENT_PARTS
} dgm_chat_content_kind;

typedef struct dgm_chat_content {
    dgm_chat_content_kind kind;
    dgm_str text;
    dgm_chat_parts parts;
    const dgm_json *value; /* as it was read; NULL when it was made */
} dgm_chat_content;

typedef enum dgm_chat_call_kind {
    DGM_CHAT_CALL_NONE,
    DGM_CHAT_CALL_FUNCTION,
    DGM_CHAT_CALL_CUSTOM /* a tool that takes free text: `arguments` is its `input` */
} dgm_chat_call_kind;

typedef struct dgm_chat_call {
    dgm_str id;
    dgm_chat_call_kind kind;
    dgm_str name;
    dgm_str arguments; /* text, as the model wrote it: mostly, not always, a JSON object */
    const dgm_extra *extra;
    const dgm_extra *inner_extra; /* within `function` or `custom` */
} dgm_chat_call;

typedef struct dgm_chat_calls {
    dgm_chat_call *at;
    size_t n;
} dgm_chat_calls;

typedef struct dgm_chat_message {
    dgm_chat_role role;
    dgm_str tool_call_id;
    dgm_str name;
    dgm_chat_content content;
    dgm_str refusal;
    dgm_str reasoning_content;
    dgm_chat_calls tool_calls;
    dgm_chat_call *function_call; /* legacy: has no id */
    const dgm_extra *extra;
} dgm_chat_message;

typedef struct dgm_chat_messages {
    dgm_chat_message *at;
    size_t n;
} dgm_chat_messages;

/* The bytes of an audio or file part, as base64, and their media type, which is left as it is if the part does not have it.
 * false: it has no bytes, or they are no base64. */
bool dgm_chat_part_bytes(dgm_arena *a, const dgm_chat_part *p, dgm_str *ret_base64,
                         dgm_str *ret_media_type);

extern const dgm_shape dgm_chat_message_shape, dgm_chat_part_shape;

/* "system", "user", ...; "text", "image_url", ... (NULL for OTHER). */
const char *dgm_chat_role_name(dgm_chat_role role);
const char *dgm_chat_part_name(dgm_chat_part_kind kind);

/*
 * How likely is it that v is ours? 0: no, 1: could be, 2: shows its marks. Messages are, the body of a
 * request {"messages":[...]}, a completion {"choices":[{"message":...}]}, a chunk of one, an error.
 */
int dgm_chat_recognise(const yyjson_val *v);
int dgm_chat_recognise_form(const yyjson_val *v, dgm_form *ret_form);

/* A message, an array of them, a request body or a response body (then its choices' messages, in
 * order). What else a body says is left out. Sets r->format. */
dgm_code dgm_chat_read(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_chat_messages *ret);

/* Is v one message, so that what it becomes is one value and no list? */
bool dgm_chat_is_message(const yyjson_val *v);

/* w->format must be dgm_chat_name for unknown members to be written. */
void dgm_chat_write(dgm_writer *w, const dgm_chat_message *m);
