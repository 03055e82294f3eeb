/*
 * wire/output_form.h - the form that a request of OpenAI's APIs wants its answer in.
 *
 *   JSON (response_format, text.format)      data of the agent is the answer, and nothing else is
 *   a call (tool_choice: required, named)    data of the agent is the arguments of that call
 *   usage                                    zeros where the agent reports none
 *
 * Each API reads its own requests (wire/chat, wire/responses). Every event of a turn passes through here before it is
 * encoded. Texts (JSON) and artifacts (both) are held back until the run ends: only then is it known whether the agent
 * produced data. Without data, and for a run that ends with a question or an error, they are emitted unchanged.
 *
 * Of several data parts the last one counts that has every member that the schema requires; if no part has them, the last.
 */
#pragma once

#include "base/buf.h"
#include "canon/canon.h"
#include "json/json.h"

typedef struct dgm_output_tool { /* one that may be called */
    dgm_str name;
    const dgm_json *parameters; /* a JSON schema; NULL: none */
} dgm_output_tool;

/* As a request has it. Borrows from the request. */
typedef struct dgm_output_form {
    bool json;
    const dgm_json *format; /* of json: the member that asks for it */
    const dgm_json *schema; /* of json; NULL: any */
    const char *choice;     /* must_call: the name of the member */
    bool must_call;
    dgm_output_tool *tools; /* must_call: one of these */
    size_t n_tools;
} dgm_output_form;

typedef struct dgm_output {
    dgm_arena *arena;
    bool json;
    dgm_strs required; /* members that the schema requires */
    struct dgm_output_callable *tools;
    size_t n_tools;
    struct dgm_output_held *held;
    size_t n_held, bytes;
} dgm_output;

/* Copies what it needs of the form. */
void dgm_output_init(dgm_output *o, const dgm_output_form *form);
void dgm_output_done(dgm_output *o); /* may be called twice */

/* DGM_TOO_LARGE: more is held back than an answer may have. */
dgm_code dgm_output_event(dgm_output *o, const dgm_canon_event *event, dgm_canon_sink next);
/* A complete text of the assistant, as events. */
dgm_code dgm_output_text(dgm_output *o, dgm_str message_id, dgm_str text, dgm_canon_sink next);
