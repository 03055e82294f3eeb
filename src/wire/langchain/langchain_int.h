/* wire/langchain/langchain_int.h - declarations that the files of this folder share. */
#pragma once

#include "base/map.h"
#include "wire/langchain/langchain.h"

extern const char dgm_langchain_name[]; /* "langchain" */

/* ---- the outside of a message ---------------------------------------------------------------------------- */

typedef enum lc_kind {
    LC_NONE,
    LC_HUMAN,
    LC_AI,
    LC_SYSTEM,
    LC_DEVELOPER,
    LC_TOOL,
    LC_FUNCTION, /* what tools were before they had ids */
    LC_CHAT,     /* its role is a member */
    LC_REMOVE    /* an order, no message */
} lc_kind;

typedef struct lc_opened {
    lc_kind kind;
    bool chunk;
    yyjson_val *data; /* where its members are */
    const char *key;  /* of what holds them; NULL: the value itself */
    int marks;        /* as for recognise */
} lc_opened;

/* "lc_run--...", "run-...": LangChain's own, until the provider's comes. */
bool dgm_lc_is_placeholder(dgm_str id);

/* false: not a form of LangChain. */
bool dgm_lc_open(const yyjson_val *v, lc_opened *ret);

/* ---- LangGraph ------------------------------------------------------------------------------------------- */

typedef struct lc_element {
    yyjson_val *message; /* NULL: of another mode than `messages` */
    yyjson_val *metadata;
    yyjson_val *interrupts; /* a list of {id, value}; NULL: no interrupts */
    bool in_data;           /* the pair is the member data */
    size_t in_array;        /* or this one of an array; 0: it is the value itself */
} lc_element;

/* false: no element of LangGraph's streams. */
bool dgm_lc_open_element(const yyjson_val *v, lc_element *ret);

/* ---- content ------------------------------------------------------------------------------------------------ */

typedef struct lc_content {
    dgm_canon_parts parts; /* text and files */
    bool has_files;
    dgm_strs reasoning;
    dgm_canon_calls calls; /* of blocks; only for messages that list none */
} lc_content;

dgm_code dgm_lc_read_content(dgm_reader *r, yyjson_val *v, const dgm_at *at, lc_content *ret);
/* Text if there is nothing else, else parts. */
dgm_canon_content dgm_lc_content_of(dgm_arena *a, const lc_content *c);
/* An assistant has only text: files become links. */
dgm_str dgm_lc_answer_of(dgm_arena *a, const lc_content *c);
/* "text", or [blocks]; reasoning is the first block. */
void dgm_lc_put_content(dgm_buf *b, const dgm_canon_content *c, const dgm_strs *reasoning);

/* ---- messages ----------------------------------------------------------------------------------------------- */

/* Appends the messages of one value to the list: none, a message, or reasoning and a message. */
dgm_code dgm_lc_read_message(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                             dgm_canon_messages *list);
dgm_code dgm_lc_read_messages(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                              dgm_canon_messages *ret);
dgm_code dgm_lc_write_messages(const dgm_canon_messages *messages, const dgm_stream_params *params,
                               dgm_frame_sink sink, dgm_err *err);
/* {"type":"ai","data":{...}}; m->tool_calls whose arguments are no JSON object are invalid ones. */
void dgm_lc_put_message(dgm_buf *b, dgm_arena *scratch, const dgm_canon_message *m,
                        const dgm_strs *reasoning);
void dgm_lc_put_member(dgm_buf *b, const char *quoted_key, dgm_str value); /* ,"key":"value" */

/* Adds usage_metadata of a message or chunk. */
void dgm_lc_add_usage(dgm_canon_usage *to, const yyjson_val *data);
/* ,"usage_metadata":{...}, or nothing. */
void dgm_lc_put_usage(dgm_buf *b, const dgm_canon_usages *usage);

/* ---- streams -------------------------------------------------------------------------------------------------- */

void *dgm_lc_decoder_new(const dgm_stream_params *params);
dgm_code dgm_lc_decoder_feed(void *decoder, dgm_reader *r, yyjson_val *v, dgm_canon_sink sink);
dgm_code dgm_lc_decoder_end(void *decoder, dgm_canon_sink sink, dgm_err *err);
void dgm_lc_decoder_free(void *decoder);

void *dgm_lc_encoder_new(const dgm_stream_params *params, dgm_frame_sink sink);
dgm_code dgm_lc_encoder_feed(void *encoder, const dgm_canon_event *event, dgm_err *err);
dgm_code dgm_lc_encoder_end(void *encoder, dgm_err *err);
void dgm_lc_encoder_free(void *encoder);

/* What gets lost. */
extern const dgm_loss_rows dgm_lc_lost_reading, dgm_lc_lost_writing;
