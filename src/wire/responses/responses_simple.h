/* wire/responses/responses_simple.h - what the two files of responses-simple share. */
#pragma once

#include "canon/simple.h"
#include "wire/responses/responses_int.h"

extern const char dgm_responses_simple_name[];
extern const char *const dgm_responses_simple_events[DGM_N_SIMPLE_KINDS]; /* by kind */
/* The first kind of that name; NONE when there is no such. */
dgm_simple_kind dgm_responses_simple_kind(dgm_str name);

void *dgm_responses_simple_decoder_new(const dgm_stream_params *params);
dgm_code dgm_responses_simple_decoder_feed(void *decoder, dgm_reader *r, yyjson_val *v,
                                           dgm_canon_sink sink);
dgm_code dgm_responses_simple_decoder_end(void *decoder, dgm_canon_sink sink, dgm_err *err);
void dgm_responses_simple_decoder_free(void *decoder);

/* What gets lost. */
extern const dgm_loss_rows dgm_responses_simple_lost_reading, dgm_responses_simple_lost_writing;
