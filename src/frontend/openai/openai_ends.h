/* frontend/openai/openai_ends.h - how runs end, as both of OpenAI's APIs tell it. */
#pragma once

#include "net/http.h"
#include "wire/output_form.h"

/* How a turn ended: the status and the headers of an answer that is one body. */
struct openai_end {
    const char *state;          /* of the task; NULL: it has not ended */
    bool failed;                /* or was canceled: the answer is an error */
    const char *code, *message; /* why */
    bool is_question;
    /* An agent that waits and does not say for what: clients show an answer, and this would be an empty one. */
    bool lacks_question;
};
/* Of the event that ends the run. Texts live as long as the exchange. */
void openai_end_note(dgm_http_exchange *x, struct openai_end *end, const dgm_canon_event *event);

/* The state that the task has then: "completed", "input-required", ... Of RUN_FINISHED and RUN_ERROR. */
const char *openai_state_of(const dgm_canon_event *end);

/* Emits a question in its place, before that event. */
dgm_code openai_ask(dgm_output *output, const dgm_canon_event *end, dgm_canon_sink next);
/* Is this such a question? */
bool openai_is_our_question(dgm_str text);
dgm_str openai_our_question(bool auth);
