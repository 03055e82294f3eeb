/* wire/responses/responses_int.h - what the files of Responses share. */
#pragma once

#include "canon/message_content.h"
#include "wire/responses/responses.h"

extern const char dgm_responses_name[]; /* "openai-responses" */

/* Marks in metadata. */
#define DGM_RESPONSES_CONTEXT "a2a_context_id"
#define DGM_RESPONSES_TASK "a2a_task_id"
#define DGM_RESPONSES_STATE "a2a_task_state"

/* Why a run ended early, in the value of a CUSTOM event "dragoman:metadata": "length", "content_filter". */
#define DGM_RESPONSES_FINISH "finish_reason"

/* A member of extra, if it is ours; NULL. */
const dgm_json *dgm_responses_extra(const dgm_extra *extra, dgm_str name);

/* All members but these (the list ends with NULL), for writing them back; NULL if no other members exist. */
const dgm_extra *dgm_responses_rest(dgm_arena *a, yyjson_val *v, const char *const *known);
void dgm_responses_put_rest(dgm_writer *w, const dgm_extra *extra, const char *const *but);

/* Members of a request that its response repeats, with what the response says if the request has not got them. */
#define DGM_RESPONSES_REPEATED(X)                                                                  \
    X("background", "false")                                                                       \
    X("instructions", "null")                                                                      \
    X("max_output_tokens", "null")                                                                 \
    X("max_tool_calls", "null")                                                                    \
    X("parallel_tool_calls", "true")                                                               \
    X("previous_response_id", "null")                                                              \
    X("conversation", "null")                                                                      \
    X("prompt_cache_key", "null")                                                                  \
    X("reasoning", "{\"effort\":null,\"summary\":null}")                                           \
    X("safety_identifier", "null")                                                                 \
    X("service_tier", "\"default\"")                                                               \
    X("store", "true")                                                                             \
    X("temperature", "1.0")                                                                        \
    X("text", "{\"format\":{\"type\":\"text\"},\"verbosity\":\"medium\"}")                         \
    X("tool_choice", "\"auto\"")                                                                   \
    X("tools", "[]")                                                                               \
    X("top_logprobs", "0")                                                                         \
    X("top_p", "1.0")                                                                              \
    X("presence_penalty", "0.0")                                                                   \
    X("frequency_penalty", "0.0")                                                                  \
    X("truncation", "\"disabled\"")                                                                \
    X("user", "null")
#define DGM_RESPONSES_COUNT(name, value) +1
#define DGM_RESPONSES_N_REPEATED (0 DGM_RESPONSES_REPEATED(DGM_RESPONSES_COUNT))
/* The row of a member; DGM_RESPONSES_N_REPEATED: it is not in the table. */
size_t dgm_responses_repeated_row(dgm_str name);

/* The item id of a canonical one: with that prefix, unless it has it. */
void dgm_responses_put_id(dgm_buf *b, const char *prefix, dgm_str id);

/* msg_SCOPE_TAGn: the id of an item that leads back to its response, resp_SCOPE. */
dgm_str dgm_responses_scoped_id(dgm_arena *a, const char *prefix, dgm_str scope, const char *tag,
                                size_t n);

/* ---- parts of messages (responses_parts.c) ---------------------------------------------------------------- */

/* input_text, input_image, input_file, input_audio; of assistants output_text, refusal. */
dgm_code dgm_responses_read_content(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                    dgm_canon_content *ret);
void dgm_responses_put_content(dgm_writer *w, const dgm_canon_content *c);

/* ---- items (responses_items.c) ------------------------------------------------------------------------------ */

dgm_code dgm_responses_read_items(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                  dgm_canon_messages *ret);
/* on_item is called for each: the number of items is not that of the messages. */
typedef struct dgm_responses_items {
    dgm_writer *w;
    dgm_code (*on_item)(void *arg); /* w->out has one item */
    void *arg;
    dgm_arena *list; /* as lists have them: each has an id, in front; NULL: as requests have them */
    dgm_str id;      /* list: of the item in w->out */
} dgm_responses_items;
dgm_code dgm_responses_write_items(const dgm_canon_messages *messages, dgm_responses_items *to);
/* Would an item of this type be read as a message, a call or a result? */
bool dgm_responses_is_item(const yyjson_val *v);

/* ---- approvals (responses_approval.c) ------------------------------------------------------------------------- */

/* The answers to requests for approval that are new: behind the last item of the agent. */
dgm_canon_resumes dgm_responses_read_approvals(dgm_arena *a, yyjson_val *items);
/* The messages, and items for the decisions in the input's resume unless the messages have them. */
dgm_canon_messages dgm_responses_with_approvals(dgm_arena *a, const dgm_canon_input *in,
                                                dgm_canon_messages messages);

/* ---- requests (responses_request.c) --------------------------------------------------------------------------- */

dgm_code dgm_responses_read_request(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                    dgm_canon_input *ret_input);
dgm_code dgm_responses_write_request(dgm_writer *w, const dgm_canon_input *input,
                                     const dgm_stream_params *params, dgm_err *err);
bool dgm_responses_is_request(const yyjson_val *v);
/* The list of function tools. */
void dgm_responses_put_tools(dgm_writer *w, const dgm_canon_tools *tools, const dgm_json *others);
dgm_code dgm_responses_read_tools(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                  dgm_canon_tools *ret, const dgm_json **ret_others);

/* ---- streams ---------------------------------------------------------------------------------------------------- */

void *dgm_responses_encoder_new(const dgm_stream_params *params, dgm_frame_sink sink);
dgm_code dgm_responses_encoder_feed(void *encoder, const dgm_canon_event *event, dgm_err *err);
dgm_code dgm_responses_encoder_end(void *encoder, dgm_err *err);
void dgm_responses_encoder_free(void *encoder);

void *dgm_responses_decoder_new(const dgm_stream_params *params);
dgm_code dgm_responses_decoder_feed(void *decoder, dgm_reader *r, yyjson_val *v,
                                    dgm_canon_sink sink);
dgm_code dgm_responses_decoder_end(void *decoder, dgm_canon_sink sink, dgm_err *err);
void dgm_responses_decoder_free(void *decoder);
