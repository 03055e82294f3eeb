/* frontend/openai/openai_ends.h - how runs end, as both of OpenAI's APIs tell it. */
#pragma once

#include "canon/canon.h"

/* The state that the task has then: "completed", "input-required", ... Of RUN_FINISHED and RUN_ERROR. */
const char *openai_state_of(const dgm_canon_event *end);

/* An agent that waits without saying for what: clients show an answer, and this would be an empty one. */
bool openai_asks_nothing(const dgm_canon_event *event);
/* Says what it did not, before that event. */
dgm_code openai_ask(const dgm_canon_event *end, dgm_canon_sink next);
/* Is this what was said for it? */
bool openai_is_our_question(dgm_str text);
