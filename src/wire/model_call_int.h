/* wire/model_call_int.h - what the files of wire/model_call.h share. */
#pragma once

#include "wire/model_call.h"

const dgm_codec *dgm_model_codec(dgm_model_api api);

/*
 * The values that a server wants back: the object of DGM_META_MODEL.
 *
 *   {"api":"chat","reasoning":"...","details":[...],"calls":[{"id":"c1","index":0,"custom":true,"extra":{"extra_content":{...}}}]}
 *   {"api":"responses","items":[{"type":"reasoning",...},{"message":true,"phase":"..."},{"call":"c1","index":0}],"calls":[...]}
 *
 * `source`, if it is known, is the server that gets them. `items`: encrypted items as they came, and the places of the text and of the calls among them.
 * `index` counts the calls of the turn: it finds a call that was given another id.
 */
typedef struct dgm_model_opaque {
    bool keeps_reasoning;
    dgm_buf reasoning, details, items, calls; /* the last three: elements of lists */
    bool has_encrypted, has_phase;
    size_t n_items, n_call_items, n_calls;
} dgm_model_opaque;

void dgm_model_opaque_init(dgm_model_opaque *o);
void dgm_model_opaque_done(dgm_model_opaque *o);
/* chat: `reasoning_details` of a chunk or a completion. */
void dgm_model_opaque_add_details(dgm_model_opaque *o, const yyjson_val *value);
/* responses: an item that is complete. */
void dgm_model_opaque_add_item(dgm_model_opaque *o, const yyjson_val *item);
/* responses: an event or a response, which may have such items. */
void dgm_model_opaque_add_items(dgm_model_opaque *o, const yyjson_val *value);
/* Each call that is passed on, in order. extra: of the event that started or ended the call; NULL is allowed. */
void dgm_model_opaque_add_call(dgm_model_opaque *o, dgm_str id, bool is_custom,
                               const dgm_json *extra);
/* The object; absent: nothing has to be sent back. */
dgm_str dgm_model_opaque_text(const dgm_model_opaque *o, dgm_model_api api, dgm_str source,
                              dgm_arena *a);

/* Sets is_retryable, is_content_filter and is_too_long from status, code and message. */
void dgm_model_classify(dgm_model_error *e);
