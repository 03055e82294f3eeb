/*
 * canon/interrupts.h - the question of a task and the interrupts of a run: each is made of the other.
 *
 *   data part of the question (model/approval.h)   interrupt
 *   ───────────────────────────────────────────    ─────────
 *   approval-request, one for each call            one each: reason tool_call (the call is known) or confirmation, the
 *                                                  part's data in metadata.approval, responseSchema {approved, arguments, reason}
 *   question                                       reason input_required, metadata.question, responseSchema of the answer
 *   auth-request                                   reason a2a:auth_required, metadata.auth
 *   interrupts of a graph                          one for all of them, metadata.interrupts
 *
 * The text of the question is the message of the interrupt. An interrupt is named after its task, from the task's second turn
 * on with "-<turn>" behind, and if there are several with ".<number>" behind that.
 */
#pragma once

#include "canon/canon.h"
#include "model/approval.h"

/* Members of an interrupt's metadata. */
#define DGM_INTERRUPT_APPROVAL "approval"
#define DGM_INTERRUPT_QUESTION "question"
#define DGM_INTERRUPT_AUTH "auth"
#define DGM_REASON_AUTH "a2a:auth_required"

/* ---- questions to interrupts ------------------------------------------------------------------------------------------ */

typedef struct dgm_asking {
    const dgm_message *message; /* with its data; may be NULL */
    dgm_task_state state;       /* input-required or auth-required */
    dgm_str id;                 /* of the task */
    uint32_t turn;
    dgm_str text; /* of the message as dgm_message_as_shown() has it */
} dgm_asking;

/* At least one. Lists and texts are in the arena or the message's. */
dgm_canon_interrupts dgm_interrupts_of_question(dgm_arena *a, const dgm_asking *asking);

/* The interrupt that a request for approval is. text: the question; empty: ours. All in the arena. */
dgm_canon_interrupt dgm_interrupt_of_approval(dgm_arena *a, dgm_str id, dgm_str text,
                                              const dgm_approval_request *request);

/* ---- interrupts to questions ------------------------------------------------------------------------------------------ */

/* The data parts of the question. */
dgm_parts dgm_interrupts_parts(dgm_arena *a, const dgm_canon_interrupts *interrupts);
/* Its text: the messages of the interrupts, one per line. */
dgm_str dgm_interrupts_text(dgm_arena *a, const dgm_canon_interrupts *interrupts);
/* Its metadata: that of the first interrupt without those parts; NULL: none. */
const dgm_json *dgm_interrupts_metadata(dgm_arena *a, const dgm_canon_interrupts *interrupts);

/* The request for approval of an interrupt. */
bool dgm_interrupt_approval(const dgm_canon_interrupt *it, dgm_approval_request *ret);
/* Is its message the one that dgm_interrupt_of_approval() makes, and no word of the agent? */
bool dgm_interrupt_is_only_approval(dgm_arena *a, const dgm_canon_interrupt *it);

/* ---- answers ------------------------------------------------------------------------------------------------------------- */

/* The place that an interrupt's name may mean; the task may also be called as `id` itself, in its first turn. */
typedef struct dgm_interrupt_place {
    dgm_str id;      /* without ".<number>" */
    size_t number;   /* 0: there is no number */
    dgm_str task_id; /* empty: the name has no "-<turn>" */
    uint32_t turn;
} dgm_interrupt_place;
dgm_interrupt_place dgm_interrupt_place_of(dgm_str id);

/* The answer of `resume` to the request for approval: {approved, arguments?, reason?}, true, false, or a yes or no word; a
 * dismissed one is not approved. DGM_UNDECIDED: it is something else. */
dgm_approval dgm_approval_of_resume(const dgm_canon_resume *r);
