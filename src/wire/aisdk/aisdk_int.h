/* wire/aisdk/aisdk_int.h - declarations that the files of this folder share. */
#pragma once

#include "base/map.h"
#include "wire/aisdk/aisdk.h"

extern const char dgm_aisdk_name[]; /* "ai-sdk" */

/* ---- names that both directions know ------------------------------------------------------------------- */

#define AISDK_STATUS "data-a2a-status" /* progress; one part, replaced each time */
#define AISDK_STATUS_ID "status"
#define AISDK_ARTIFACT "data-a2a-artifact"
#define AISDK_ACTIVITY "data-activity"
#define AISDK_STATE "data-state"
#define AISDK_STATE_DELTA "data-state-delta"
#define AISDK_CUSTOM "data-custom"
#define AISDK_INSTEAD "{\"dragoman\":{\"instead\":true}}"
#define AISDK_A2A_STATUS "a2a-status" /* the type of such an activity */

/* Does its providerMetadata mark it as the replacement of the text before? */
bool dgm_aisdk_is_instead(const yyjson_val *part);
/* "search" of "tool-search"; absent when the type names no tool. */
dgm_str dgm_aisdk_tool_of(dgm_str type);

/* ---- writing pieces -------------------------------------------------------------------------------------- */

void dgm_aisdk_put_member(dgm_buf *b, const char *quoted_key, dgm_str value); /* ,"key":"value" */
/* {"type":"file","mediaType":...,"url":...}; false: a handle that only its provider understands. */
bool dgm_aisdk_put_file(dgm_buf *b, const dgm_canon_part *p);
/* Arguments as a value: the text if it is JSON, {} if it is empty; false: invalid JSON, nothing is written. */
bool dgm_aisdk_put_input(dgm_buf *b, dgm_arena *scratch, dgm_str arguments);
/* A result: the value it was made of, else its text or parts. */
void dgm_aisdk_put_output(dgm_buf *b, const dgm_canon_content *content, const dgm_json *value);
dgm_str dgm_aisdk_content_text(dgm_arena *a, const dgm_canon_content *content);
void dgm_aisdk_put_activity(dgm_buf *b, dgm_str id, dgm_str type, const dgm_json *content);

/* Of an ARTIFACT event: a file for each part that is one, and the other parts as data. False: not written. */
bool dgm_aisdk_put_artifact_file(dgm_buf *b, dgm_arena *scratch, const dgm_part *p);
bool dgm_aisdk_put_artifact_data(dgm_buf *b, dgm_arena *scratch, const dgm_canon_event *event);

/* ---- reading pieces -------------------------------------------------------------------------------------- */

/* {"type":"file",...} as a part. */
dgm_code dgm_aisdk_read_file(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_canon_part *ret);
/* Its replacement in the text of an assistant. */
dgm_str dgm_aisdk_file_text(dgm_arena *a, const dgm_canon_part *p);
/* Progress as it was before it was written as a status part. */
const dgm_json *dgm_aisdk_status_content(dgm_arena *a, yyjson_val *data);

dgm_code dgm_aisdk_read_messages(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                 dgm_canon_messages *ret);
dgm_code dgm_aisdk_write_messages(const dgm_canon_messages *messages,
                                  const dgm_stream_params *params, dgm_frame_sink sink,
                                  dgm_err *err);
bool dgm_aisdk_is_message(const yyjson_val *v);

/* ---- the stream: encoding --------------------------------------------------------------------------------- */

struct aisdk_call {
    dgm_str id, name;
    dgm_buf arguments;
    bool
        clients; /* a tool of the caller's: it has a part type of its own, and is the caller's to run */
    bool pending;    /* it is known to be the caller's to run */
    bool input_sent; /* that its input is complete */
    bool is_denied;  /* by the user: it has no result */
};

/* A text or reasoning that is open. Its id on the wire is the event's, with a suffix if it is a replacement. */
struct aisdk_open {
    dgm_buf wire_id;
    size_t id_n;
    bool reasoning;
};

struct aisdk_encoder {
    dgm_frame_sink sink;
    dgm_err *err;
    dgm_code rc;
    dgm_buf out;
    dgm_arena *arena, *scratch; /* of this run; of this event */
    dgm_arena *names;           /* what stays */
    struct aisdk_open *open;
    size_t n_open, cap_open;
    struct aisdk_call *calls;
    size_t n_calls, cap_calls, n_calls_unsent;
    dgm_map by_id;   /* calls */
    dgm_map clients; /* names of the caller's tools */
    dgm_str task_id; /* empty: the run's */
    bool no_task;    /* the answer is a Message */
    unsigned instead;
    const char *finish_reason; /* the run ended early; NULL: it did not */
    bool started, after_result, has_status, over, fragment;
};

void *dgm_aisdk_encoder_new(const dgm_stream_params *params, dgm_frame_sink sink);
dgm_code dgm_aisdk_encoder_feed(void *encoder, const dgm_canon_event *event, dgm_err *err);
dgm_code dgm_aisdk_encoder_end(void *encoder, dgm_err *err);
void dgm_aisdk_encoder_free(void *encoder);

/* One chunk: begin, members, send. */
void dgm_aisdk_begin(struct aisdk_encoder *e, const char *type);
void dgm_aisdk_send(struct aisdk_encoder *e);
/* Starts the next step: a model call ends when text follows a tool result. */
void dgm_aisdk_next_step(struct aisdk_encoder *e);

void dgm_aisdk_start_call(struct aisdk_encoder *e, const dgm_canon_event *event);
void dgm_aisdk_add_arguments(struct aisdk_encoder *e, const dgm_canon_event *event);
void dgm_aisdk_end_call(struct aisdk_encoder *e, const dgm_canon_event *event);
void dgm_aisdk_result(struct aisdk_encoder *e, const dgm_canon_event *event);
/* The run is over: calls without a result are closed too; pending: the calls that the client must run. */
void dgm_aisdk_close_calls(struct aisdk_encoder *e, const dgm_strs *pending);

bool dgm_aisdk_has_arguments(const struct aisdk_encoder *e, dgm_str call_id);
/* Requests for approval (aisdk_approval.c): their calls, before calls are closed; then the requests. */
void dgm_aisdk_announce_approvals(struct aisdk_encoder *e, const dgm_canon_interrupts *list);
void dgm_aisdk_ask_approvals(struct aisdk_encoder *e, const dgm_canon_interrupts *list);

void dgm_aisdk_activity(struct aisdk_encoder *e, const dgm_canon_event *event);
void dgm_aisdk_artifact(struct aisdk_encoder *e, const dgm_canon_event *event);
void dgm_aisdk_custom(struct aisdk_encoder *e, const dgm_canon_event *event);
void dgm_aisdk_state(struct aisdk_encoder *e, const dgm_canon_event *event);
void dgm_aisdk_finished(struct aisdk_encoder *e, const dgm_canon_event *event);
void dgm_aisdk_failed(struct aisdk_encoder *e, dgm_str message, dgm_str code,
                      const dgm_canon_usages *usage);

/* ---- the stream: decoding --------------------------------------------------------------------------------- */

/* A text or reasoning that is open. */
struct aisdk_reading {
    dgm_str wire_id, id; /* of the chunk; of the event */
    bool reasoning;
};

struct aisdk_read_call {
    dgm_str id, name;
    dgm_str arguments; /* complete; empty: not yet */
    bool has_text, ended, answered, by_agent;
};

struct aisdk_decoder {
    dgm_arena *arena; /* ids */
    dgm_mint mint;
    dgm_canon_sink sink;
    dgm_code rc;
    dgm_reader *r;
    dgm_str thread_id, run_id, parent, error;
    struct aisdk_reading *open;
    size_t n_open, cap_open;
    struct aisdk_read_call *calls;
    size_t n_calls, cap_calls;
    dgm_map by_id, used; /* calls; ids of texts */
    unsigned n_made;
    dgm_canon_interrupts approvals; /* that the message asks for */
    bool fragment, begun, over;
};

void dgm_aisdk_emit(struct aisdk_decoder *d, const dgm_canon_event *e);
dgm_code dgm_aisdk_bad(struct aisdk_decoder *d, const char *key, const char *why);
dgm_str dgm_aisdk_made_id(struct aisdk_decoder *d, char what);

/* what: the type behind "tool-". */
dgm_code dgm_aisdk_call_chunk(struct aisdk_decoder *d, yyjson_val *v, dgm_str what);
void dgm_aisdk_end_calls(struct aisdk_decoder *d);
dgm_code dgm_aisdk_file_chunk(struct aisdk_decoder *d, yyjson_val *v);
void dgm_aisdk_data_chunk(struct aisdk_decoder *d, yyjson_val *v, dgm_str type);

/* Requests for approval (aisdk_approval.c); at the end they are the run's interrupts. */
void dgm_aisdk_approval_chunk(struct aisdk_decoder *d, yyjson_val *v);
void dgm_aisdk_with_approvals(struct aisdk_decoder *d, dgm_canon_interrupts *list);
/* The decisions in the last message of a request. */
dgm_canon_resumes dgm_aisdk_read_approvals(dgm_arena *a, const yyjson_val *request);

void *dgm_aisdk_decoder_new(const dgm_stream_params *params);
dgm_code dgm_aisdk_decoder_feed(void *decoder, dgm_reader *r, yyjson_val *v, dgm_canon_sink sink);
dgm_code dgm_aisdk_decoder_end(void *decoder, dgm_canon_sink sink, dgm_err *err);
void dgm_aisdk_decoder_free(void *decoder);
bool dgm_aisdk_is_chunk(const yyjson_val *v);

/* What gets lost. */
extern const dgm_loss_rows dgm_aisdk_lost_reading, dgm_aisdk_lost_writing;
