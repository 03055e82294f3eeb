/*
 * frontend/turn/turn_once.c - turns of one name begin one after the other.
 *
 * A client that is in doubt sends its request again. Whether the turn is known is asked and answered on several
 * threads, so two copies that come at once would both find that it is not, and run. The second waits here until the
 * first has begun, and then finds it.
 */
#include "base/map.h"
#include "frontend/turn/turn_int.h"

static dgm_turn_once **place_of(dgm_turns *t, dgm_str name)
{
    dgm_turn_once **at =
        &t->state->beginning[dgm_hash(dgm_hash_seed(), name.p, name.n) % BEGINNING_SLOTS];
    while (*at && !dgm_str_eq((*at)->name, name))
        at = &(*at)->next;
    return at;
}

bool dgm_turn_begin(dgm_turns *t, dgm_turn_once *once)
{
    once->next = once->behind = NULL;
    once->last = once;
    once->loop = dgm_loop_current();
    pthread_mutex_lock(&t->state->lock);
    dgm_turn_once **at = place_of(t, once->name), *first = *at;
    if (first)
        first->last = first->last->behind = once;
    else
        *at = once;
    pthread_mutex_unlock(&t->state->lock);
    return !first;
}

void dgm_turn_begun(dgm_turns *t, dgm_turn_once *once)
{
    pthread_mutex_lock(&t->state->lock);
    dgm_turn_once **at = place_of(t, once->name), *then = once->behind;
    *at = then ? then : once->next;
    if (then) {
        then->next = once->next;
        then->last = once->last;
    }
    pthread_mutex_unlock(&t->state->lock);
    if (then)
        dgm_loop_post(then->loop, then->go_on, then->arg);
}
