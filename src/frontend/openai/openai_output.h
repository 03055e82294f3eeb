/*
 * frontend/openai/openai_output.h - the form that a request wants its answer in.
 *
 *   JSON (response_format, text.format)      data of the agent is the answer, and nothing else is
 *   a call (tool_choice: required, named)    data of the agent is the arguments of that call
 *   usage                                    zeros where the agent reports none
 *
 * Both of OpenAI's APIs put every event of a turn through this before it is encoded. Texts (JSON) and artifacts (both) are
 * held back until the run ends: only then is it known whether the agent produced data. Without data, and for a run that ends
 * with a question or an error, they are emitted unchanged.
 *
 * Of several data parts the last one counts that has every member that the schema requires; if no part has them, the last.
 */
#pragma once

#include "base/buf.h"
#include "canon/canon.h"
#include "json/json.h"

struct openai_output_tool { /* one that may be called */
    dgm_str name;
    dgm_strs required; /* members that its parameters require */
};

struct openai_output {
    dgm_arena *arena;
    bool json;
    dgm_strs required; /* members that the schema requires */
    struct openai_output_tool *tools;
    size_t n_tools; /* 0: no call is required */
    bool is_named;  /* the request names the one tool */
    struct openai_held *held;
    size_t n_held, bytes;
};

/* request: the body of a request of either API. It is not needed afterwards. */
void openai_output_init(struct openai_output *o, const yyjson_val *request);
void openai_output_done(struct openai_output *o); /* may be called twice */

/* For a function that emits events of its own. */
struct openai_output_chain {
    struct openai_output *output;
    dgm_canon_sink next;
};
dgm_canon_sink openai_output_into(struct openai_output_chain *chain);

/* DGM_TOO_LARGE: more is held back than an answer may have. */
dgm_code openai_output_event(struct openai_output *o, const dgm_canon_event *event,
                             dgm_canon_sink next);
