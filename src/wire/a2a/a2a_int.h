/* wire/a2a/a2a_int.h - what the files of this folder share. */
#pragma once

#include "model/form.h"
#include "wire/a2a/a2a.h"

/* Names of the formats; the one of 1.0 is dgm_form_name. */
extern const char dgm_a2a_03_name[], dgm_a2a_03_rest_name[];

/* a2a_10.c, a2a_03.c, a2a_03_rest.c: a dialect's shape for each kind of object; NULL where it has no such object. */
#define DGM_A2A_N_SHAPES (DGM_OBJECT_EMPTY + 1)
extern const dgm_shape *const dgm_form_shapes[DGM_A2A_N_SHAPES],
    *const dgm_a2a_03_shapes[DGM_A2A_N_SHAPES], *const dgm_a2a_03_rest_shapes[DGM_A2A_N_SHAPES];
extern const dgm_shape dgm_a2a_03_part, dgm_a2a_03_stream_response, dgm_a2a_03_rest_part;
extern const dgm_shape dgm_form_card, dgm_a2a_03_card, dgm_a2a_03_rest_card;

/* 0.3's `final`: any boolean is read, the state decides what is written. */
extern const dgm_custom dgm_a2a_final;

/* Python's REST layer for 0.3 turns "no status message" into an empty one: read as absent. */
bool dgm_a2a_message_is_empty(const dgm_reader *r, const yyjson_val *message);
extern const dgm_shape dgm_a2a_no_message; /* reads nothing */
dgm_code dgm_a2a_drop_empty_message(dgm_reader *r, void *status, yyjson_val *v, const dgm_at *at);

/* 0.3 cannot hold data that is not an object: {"value": x}, marked in the part's metadata. */
#define DGM_A2A_COMPAT_MARK "data_part_compat"
dgm_code dgm_a2a_unwrap_data(dgm_reader *r, void *part, yyjson_val *v, const dgm_at *at);
void dgm_a2a_put_wrapped(dgm_writer *w, const dgm_part *part); /* `{"value":x}` */
void dgm_a2a_put_marked_metadata(dgm_writer *w, const dgm_part *part);

/* Of requests: 0.3's `blocking`, and the push configuration that has its task's id. */
dgm_code dgm_a2a_read_blocking(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object);
dgm_code dgm_a2a_fill_config_id(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at);

/* a2a_error.c */
dgm_code dgm_a2a_read_rpc_error(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                dgm_peer_error *ret);
dgm_code dgm_a2a_read_rest_error(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                 dgm_peer_error *ret);
void dgm_a2a_10_write_rpc_error(dgm_writer *w, const dgm_peer_error *e);
void dgm_a2a_10_write_rest_error(dgm_writer *w, const dgm_peer_error *e);
void dgm_a2a_03_write_error(dgm_writer *w, const dgm_peer_error *e); /* JSON-RPC and REST alike */

/* a2a_detect.c: the kind of an object. NONE if it cannot be detected. in_stream: it is one of a stream. */
dgm_object_kind dgm_a2a_10_detect(const yyjson_val *v, bool in_stream);
dgm_object_kind dgm_a2a_03_detect(const yyjson_val *v, bool in_stream);
dgm_object_kind dgm_a2a_03_rest_detect(const yyjson_val *v, bool in_stream);
int dgm_a2a_10_recognise(const yyjson_val *v, dgm_form *ret_form);
int dgm_a2a_03_recognise(const yyjson_val *v, dgm_form *ret_form);
int dgm_a2a_03_rest_recognise(const yyjson_val *v, dgm_form *ret_form);
bool dgm_a2a_is_push_list(const yyjson_val *array);

/* a2a_encode.c: from canonical events, messages and requests; the members of dgm_codec. */
void *dgm_a2a_encoder_new(const dgm_codec *codec, const dgm_stream_params *params,
                          dgm_frame_sink sink);
dgm_code dgm_a2a_encoder_feed(void *encoder, const dgm_canon_event *event, dgm_err *err);
dgm_code dgm_a2a_encoder_end(void *encoder, dgm_err *err);
void dgm_a2a_encoder_free(void *encoder);
dgm_code dgm_a2a_write_messages(const dgm_codec *codec, const dgm_canon_messages *messages,
                                const dgm_stream_params *params, dgm_frame_sink sink, dgm_err *err);
dgm_code dgm_a2a_write_request(const dgm_codec *codec, dgm_writer *w, const dgm_canon_input *input,
                               const dgm_stream_params *params, dgm_err *err);

/* a2a_losses.c: to canonical events, and from them */
extern const dgm_loss_rows dgm_a2a_lost_reading, dgm_a2a_lost_writing;

/* a2a_codec.c: the table by which a codec reads and writes a kind; NULL where it has none. */
const dgm_shape *dgm_a2a_shape(const dgm_codec *codec, dgm_object_kind kind);
