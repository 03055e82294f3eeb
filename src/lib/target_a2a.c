/*
 * lib/target_a2a.c - what begins a run as A2A says it: one message, to one context.
 *
 * A request of the other formats brings the whole conversation; A2A's agent has it already. What is new
 * stands behind the agent's last message, and becomes one message: results first, then what was said.
 */
#include "base/list.h"
#include "canon/events_to_records.h"
#include "lib/target.h"

static size_t first_new(const dgm_canon_messages *messages)
{
    size_t i = messages->n;
    while (i && messages->at[i - 1].role != DGM_CANON_ASSISTANT)
        i--;
    return i < messages->n ? i : messages->n - (messages->n > 0);
}

static void add_parts(dgm_arena *a, dgm_message *to, const dgm_parts *parts)
{
    for (size_t i = 0; i < parts->n; i++) {
        to->parts.at = dgm_list_grow(a, to->parts.at, to->parts.n, sizeof *to->parts.at);
        to->parts.at[to->parts.n++] = parts->at[i];
    }
}

void dgm_target_send_request(dgm_arena *a, const dgm_canon_input *input, dgm_mint *mint,
                             dgm_send_made *ret_made)
{
    dgm_message m = {.role = DGM_ROLE_USER};
    for (size_t i = first_new(&input->messages); i < input->messages.n; i++) {
        dgm_message one;
        if (!dgm_to_message(a, &input->messages.at[i], mint, &one))
            continue;
        m.role = one.role;
        m.message_id = one.message_id; /* the last one's: that is what was sent now */
        m.metadata = one.metadata;
        add_parts(a, &m, &one.parts);
    }
    if (!m.message_id.n)
        m.message_id = dgm_mint_id(mint, a);
    m.context_id = input->thread_id;
    *ret_made = (dgm_send_made){.message = m};
    ret_made->request.message = &ret_made->message;
}
