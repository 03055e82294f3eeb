/*
 * model/form.h - the text form of records: A2A 1.0 JSON for the nouns and events, document 002's
 * shape for internal events.
 *
 * A record's bytes are what is stored and what an A2A 1.0 stream carries, so the a2a-1.0 codec uses
 * these same tables.
 */
#pragma once

#include "model/kinds.h"
#include "json/shape.h"

extern const char dgm_form_name[]; /* "a2a-1.0": tags the unknown members of this form */

extern const dgm_shape dgm_form_part, dgm_form_message, dgm_form_status, dgm_form_artifact,
    dgm_form_task, dgm_form_status_update, dgm_form_artifact_update, dgm_form_stream_response,
    dgm_form_send_response, dgm_form_internal;

extern const dgm_enum_names dgm_form_states, dgm_form_roles;

/* The name of an internal event's kind, "internal:llm-call". */
const char *dgm_internal_kind_name(dgm_internal_kind kind);

/* A StreamResponse or an internal event, whichever it is. */
dgm_code dgm_form_read_event(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_event *ret_event);
/* The fast path for a chunk of an artifact, the event that streams mostly consist of: text without a parser, see
 * dgm_shape_scan(). False: it is something else; use dgm_form_read_event(). Strings are borrowed from the text. */
bool dgm_form_scan_chunk(dgm_reader *r, dgm_str text, dgm_event *ret_event);
void dgm_form_write_event(dgm_writer *w, const dgm_event *event);
