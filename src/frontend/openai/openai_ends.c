/* frontend/openai/openai_ends.c - how runs end, as both of OpenAI's APIs tell it. */
#include "frontend/openai/openai_ends.h"
#include "base/str.h"

#define NEEDS_INPUT "The agent needs more from you before it can go on."
#define NEEDS_CREDENTIALS "The agent needs credentials before it can go on."

static bool needs_credentials(const dgm_canon_outcome *o)
{
    return o->interrupts.n && dgm_str_is(o->interrupts.at[0].reason, "a2a:auth_required");
}

const char *openai_state_of(const dgm_canon_event *end)
{
    const dgm_canon_outcome *o = &end->run_finished.outcome;
    if (end->kind == DGM_CANON_RUN_ERROR)
        return dgm_str_is(end->run_error.code, "rejected")   ? "rejected"
               : dgm_str_is(end->run_error.code, "canceled") ? "canceled"
                                                             : "failed";
    if (o->kind == DGM_CANON_CANCELLED)
        return "canceled";
    if (o->kind == DGM_CANON_INTERRUPT)
        return needs_credentials(o) ? "auth-required" : "input-required";
    return o->pending_tool_call_ids.n ? "input-required" : "completed";
}

void openai_end_note(dgm_http_exchange *x, struct openai_end *end, const dgm_canon_event *e)
{
    const dgm_canon_outcome *o = &e->run_finished.outcome;
    dgm_str code = {0}, message = {0};
    end->state = openai_state_of(e);
    if (e->kind == DGM_CANON_RUN_ERROR && !dgm_str_is(e->run_error.code, "rejected")) {
        end->failed = true;
        code = e->run_error.code;
        message = e->run_error.message;
    } else if (e->kind == DGM_CANON_RUN_FINISHED && o->kind == DGM_CANON_CANCELLED) {
        end->failed = true;
        code = DGM_STR("canceled");
        message = DGM_STR("The task was canceled");
    }
    if (end->failed) {
        end->code = dgm_http_keep_text(x, code);
        end->message = dgm_http_keep_text(x, message);
    }
    end->is_question = e->kind == DGM_CANON_RUN_FINISHED && o->kind == DGM_CANON_INTERRUPT;
    end->lacks_question = end->is_question && o->interrupts.n && !o->interrupts.at[0].message.n;
}

dgm_str openai_our_question(bool auth)
{
    return auth ? DGM_STR(NEEDS_CREDENTIALS) : DGM_STR(NEEDS_INPUT);
}

dgm_code openai_ask(dgm_output *output, const dgm_canon_event *end, dgm_canon_sink next)
{
    return dgm_output_text(output, DGM_STR(DGM_NAME_QUESTION),
                           openai_our_question(needs_credentials(&end->run_finished.outcome)),
                           next);
}

bool openai_is_our_question(dgm_str text)
{
    return dgm_str_is(text, NEEDS_INPUT) || dgm_str_is(text, NEEDS_CREDENTIALS);
}
