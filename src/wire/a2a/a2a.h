/*
 * wire/a2a/a2a.h - A2A in its three JSON dialects.
 *
 * a2a-1.0       ProtoJSON of 1.0: JSON-RPC, REST, push bodies, cards
 * a2a-0.3       the kind-tagged dialect of 0.3's JSON-RPC
 * a2a-0.3-rest  ProtoJSON of 0.3, used by its HTTP+JSON binding
 */
#pragma once

#include "wire/codec.h"

extern const dgm_codec dgm_codec_a2a_10, dgm_codec_a2a_03, dgm_codec_a2a_03_rest;

/* By dgm_method; [DGM_METHOD_NONE] is empty. */
typedef struct dgm_a2a_method {
    const char *v10, *v03;          /* NULL: the version does not have it */
    dgm_object_kind params, result; /* result: of each event, if it streams */
} dgm_a2a_method;
extern const dgm_a2a_method dgm_a2a_methods[];
dgm_method dgm_a2a_find_method(dgm_str name, bool v10);
/* The method of 1.0 that has params of this kind; NULL: none. */
const char *dgm_a2a_method_with(dgm_object_kind params);

/*
 * The dialect that recognises v best; NULL: not one of them does. ret_kind: what v is, for decode(), if that is known
 * already, else DGM_OBJECT_NONE.
 */
const dgm_codec *dgm_a2a_find_dialect(const yyjson_val *v, dgm_object_kind *ret_kind);

/* The message or the task that an object is or holds; NULL: none. */
const dgm_message *dgm_a2a_message_in(const dgm_object *o);
const dgm_task *dgm_a2a_task_in(const dgm_object *o);

/* Does the array contain an update? Then it is a recorded stream, and its tasks and messages are events, too. */
bool dgm_a2a_is_stream(yyjson_val *array);
/* Does it contain chunks of messages? Then only all elements together are complete messages. */
bool dgm_a2a_has_chunks(yyjson_val *array);

/* Changes a pointer into a record (/message/parts/0) to the names and wrappers that the input has in its dialect. */
void dgm_a2a_name_pointer(const dgm_codec *codec, const dgm_frame *frame, dgm_err *err);

/* What is lost from one dialect to another: writes up to max pointers to static rows, returns how many there are. */
size_t dgm_a2a_losses(const dgm_codec *from, const dgm_codec *to, const dgm_loss **ret, size_t max);
