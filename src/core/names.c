/* core/names.c - what a task is found by, beside its own id: the turns of its callers, the calls it asks for. */
#include "core/core_int.h"
#include "model/calls.h"

#include <stdlib.h>

/* ---- turns ------------------------------------------------------------------------------------------------------ */

/* What most turns are begun by need not be kept with each of them. */
static dgm_str static_protocol_name(dgm_str name)
{
    static const dgm_str known[] = {
        {"a2a", 3}, {"ag-ui", 5}, {"openai-chat", 11}, {"openai-responses", 16}, {"ai-sdk", 6}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (dgm_str_eq(known[i], name))
            return known[i];
    }
    return (dgm_str){0};
}

void dgm_live_add_turn(struct live *l, const struct call *c)
{
    dgm_str protocol = static_protocol_name(c->turn.protocol), none = {"", 0};
    size_t n = c->turn.caller_id.n + c->turn.request.n + c->turn.previous.n +
               (protocol.n ? 0 : c->turn.protocol.n);
    free(l->turns.texts);
    l->turns.texts = NULL;
    l->turns.last = (dgm_turn_row){.turn = l->turns.last.turn,
                                   .first_seq = dgm_log_last(l->log),
                                   .protocol = protocol,
                                   .caller_id = none,
                                   .request = none,
                                   .previous = none};
    if (n) {
        char *at = l->turns.texts = dgm_xmalloc(n);
        l->turns.last.caller_id = dgm_core_copy_text(&at, c->turn.caller_id);
        l->turns.last.request = dgm_core_copy_text(&at, c->turn.request);
        l->turns.last.previous = dgm_core_copy_text(&at, c->turn.previous);
        l->turns.last.protocol = protocol.n ? protocol : dgm_core_copy_text(&at, c->turn.protocol);
    }
    if (l->turns.n == l->turns.cap) {
        l->turns.cap = l->turns.cap ? 2 * l->turns.cap : 1;
        l->turns.items = dgm_xrealloc(l->turns.items, l->turns.cap * sizeof *l->turns.items);
    }
    l->turns.items[l->turns.n++] = (struct turn_at){l->turns.last.first_seq, l->turns.last.turn};
    l->write.turn = true;
}

const struct turn_at *dgm_live_find_turn(const struct live *l, uint32_t turn)
{
    for (size_t i = l->turns.n; i-- > 0;) {
        if (l->turns.items[i].turn == turn)
            return &l->turns.items[i];
    }
    return NULL;
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

/* The calls that a question asks its caller to make: the task is found by them. */
void dgm_live_add_open_calls(struct live *l, const dgm_message *m)
{
    if (!m || !dgm_message_has_calls(m))
        return;
    dgm_arena *a = l->write.open_calls ? l->write.open_calls->arena : dgm_arena_new();
    if (!l->write.open_calls) {
        l->write.open_calls = dgm_new(a, struct open_calls);
        l->write.open_calls->arena = a;
    }
    dgm_strs *all = &l->write.open_calls->ids, ids = dgm_message_call_ids(a, m, DGM_MAX_OPEN_CALLS);
    all->at =
        dgm_arena_realloc(a, all->at, all->n * sizeof(dgm_str), (all->n + ids.n) * sizeof(dgm_str));
    for (size_t i = 0; i < ids.n; i++)
        all->at[all->n++] = dgm_arena_dup(a, ids.at[i]);
}

void dgm_live_clear_open_calls(struct live *l)
{
    if (l->write.open_calls)
        dgm_arena_free(l->write.open_calls->arena); /* it lives in it */
    l->write.open_calls = NULL;
}
