/*
 * wire/agui/agui.h - AG-UI on the wire: JSON events, requests, messages.
 *
 * Reading is tolerant: null optionals are absent, snake_case names are read, retired shapes (THINKING_*
 * events, `binary` parts) become what replaced them, unknown events and union members are left out and
 * counted, unknown members are stored in `extra`. A known member with the wrong type is an error. Writing is strict:
 * no nulls where the protocol has none, no empty deltas, integers for integers.
 */
#pragma once

#include "canon/canon.h"
#include "json/shape.h"

extern const char dgm_agui_name[]; /* "ag-ui" */

/* What an older peer (before 1.0) understands: it has no protocolVersion and rejects new events and members. */
typedef struct dgm_agui_peer {
    bool old;
} dgm_agui_peer;

/* ---- single objects ------------------------------------------------------------------------------ */

typedef enum dgm_agui_found {
    DGM_AGUI_EVENT,
    DGM_AGUI_RETIRED, /* an event under its new name; its message id is to be made up */
    DGM_AGUI_UNKNOWN  /* of a type we do not know: ignore it */
} dgm_agui_found;

dgm_code dgm_agui_read_event(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                             dgm_canon_event *ret_event, dgm_agui_found *ret_found);

/* Writes nothing if the peer does not understand the event, or if the event is an empty delta. a: scratch. */
void dgm_agui_write_event(dgm_writer *w, const dgm_canon_event *event, dgm_agui_peer peer,
                          dgm_arena *a);

/* RunAgentInput. */
dgm_code dgm_agui_read_input(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                             dgm_canon_input *ret_input);
void dgm_agui_write_input(dgm_writer *w, const dgm_canon_input *input);

dgm_code dgm_agui_read_message(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                               dgm_canon_message *ret_message);
void dgm_agui_write_message(dgm_writer *w, const dgm_canon_message *message);

/* How likely is it that v is an event or a request of ours? 0: no, 2: shows its marks. */
int dgm_agui_recognise(const yyjson_val *v);
bool dgm_agui_is_input(const yyjson_val *v);

/* ---- a stream ------------------------------------------------------------------------------------ */

/*
 * Reads the events of one stream: retired events get ids, chunk events become START, CONTENT, END.
 * The events are valid until the sink returns.
 */
typedef struct dgm_agui_decoder dgm_agui_decoder;

dgm_agui_decoder *dgm_agui_decoder_new(void);
void dgm_agui_decoder_free(dgm_agui_decoder *d); /* NULL is fine */
dgm_code dgm_agui_decoder_feed(dgm_agui_decoder *d, dgm_reader *r, yyjson_val *v,
                               dgm_canon_sink sink);
/* End of the stream: closes the items that chunk events have opened. */
dgm_code dgm_agui_decoder_end(dgm_agui_decoder *d, dgm_canon_sink sink);

DGM_DEFINE_AUTO(dgm_agui_decoder, dgm_agui_decoder_free)
