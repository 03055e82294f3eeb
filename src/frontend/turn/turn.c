/* frontend/turn/turn.c - the state that these frontends share, and how they read requests. */
#include "base/ids.h"
#include "base/map.h"
#include "frontend/turn/turn_int.h"
#include "frontend/words.h"

#include <stdlib.h>

#define KEEP_BYTES ((size_t)256 << 10) /* of a loop's buffer, between answers */

dgm_turns *dgm_turns_new(const dgm_turns_options *o)
{
    dgm_turns *t = dgm_xcalloc(1, sizeof *t);
    t->o = *o;
    t->state = dgm_xcalloc(1, sizeof *t->state);
    pthread_mutex_init(&t->state->lock, NULL);
    t->state->unsent = dgm_unsent_new();
    for (size_t i = 0; i < DGM_MAX_LOOPS; i++)
        dgm_buf_init(&t->state->scratch[i].out, DGM_MAX_OUTPUT_BYTES);
    return t;
}

void dgm_turns_free(dgm_turns *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < DGM_MAX_LOOPS; i++) {
        dgm_buf_done(&t->state->scratch[i].out);
        dgm_arena_free(t->state->scratch[i].arena);
    }
    pthread_mutex_destroy(&t->state->lock);
    dgm_unsent_unref(t->state->unsent);
    free(t->state);
    free(t);
}

struct scratch *dgm_turns_scratch(dgm_turns *t)
{
    struct scratch *s = &t->state->scratch[dgm_loop_current()->index];
    dgm_buf_shrink(&s->out, KEEP_BYTES);
    dgm_buf_clear(&s->out);
    s->out.over = false;
    if (!s->arena)
        s->arena = dgm_arena_new();
    return s;
}

/* ---- agents by name -------------------------------------------------------------------------------------------- */

const dgm_turn_agent *dgm_turns_find_agent(const dgm_turns_options *o, dgm_str tenant, dgm_str name)
{
    dgm_str ids[4] = {name};
    size_t n = 1;
    if (dgm_str_starts(name, DGM_STR("a2a/")))
        ids[n++] = (dgm_str){name.p + 4, name.n - 4};
    if (dgm_str_starts(name, DGM_STR("agent:")))
        ids[n++] = (dgm_str){name.p + 6, name.n - 6};
    if (tenant.n && name.n > tenant.n && dgm_str_starts(name, tenant) && name.p[tenant.n] == '/')
        ids[n++] = (dgm_str){name.p + tenant.n + 1, name.n - tenant.n - 1};
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; ids[i].n && k < o->n_agents; k++) {
            if (dgm_str_eq(o->agents[k].id, ids[i]))
                return &o->agents[k];
        }
    }
    return NULL;
}

/* ---- requests ------------------------------------------------------------------------------------------------- */

dgm_code dgm_turn_body(dgm_http_exchange *x, yyjson_val **ret_body, dgm_err *err)
{
    const dgm_http_request *r = dgm_http_request_of(x);
    dgm_str type = dgm_bare_type(dgm_http_header_of(r, DGM_STR("content-type")));
    if (!dgm_str_eq_nocase(type, DGM_STR("application/json")))
        return dgm_fail(err, DGM_CONTENT_TYPE_NOT_SUPPORTED, NULL,
                        "send it as Content-Type: application/json");
    if (!r->body.n)
        return dgm_fail(err, DGM_PARSE, NULL, "the request has no body: send JSON");
    return dgm_json_read(dgm_http_arena(x), r->body, DGM_MAX_HTTP_BODY_BYTES, "http_body_bytes",
                         ret_body, err);
}

dgm_reader dgm_turn_reader(dgm_http_exchange *x, dgm_mint *mint, dgm_err *err)
{
    return (dgm_reader){.arena = dgm_http_arena(x), .mint = mint, .strict = true, .err = err};
}

/* Two of our ids: their bits are the clock's and random ones. */
dgm_mint dgm_turn_mint(void)
{
    dgm_mint m = {{0}, 0, {0}};
    char id[2][DGM_UUID_CHARS + 1];
    dgm_uuid7(id[0]);
    dgm_uuid7(id[1]);
    dgm_mint_seed(&m, (dgm_str){id[0], DGM_UUID_CHARS});
    dgm_mint_seed(&m, (dgm_str){id[1], DGM_UUID_CHARS});
    return m;
}

dgm_str dgm_turn_copy(dgm_http_exchange *x, dgm_str s)
{
    return s.n ? (dgm_str){dgm_http_keep_text(x, s), s.n} : (dgm_str){0};
}

dgm_str dgm_turn_query(dgm_http_exchange *x, const char *name)
{
    return dgm_query_value(dgm_http_arena(x), dgm_http_request_of(x)->query, name);
}

/* ---- turns of one name -------------------------------------------------------------------------------------------- */

/*
 * A client that got no response sends its request again. Whether the turn exists is looked up on several threads, so two
 * copies that arrive at once would both find that it does not, and run. The second waits here until the first has started,
 * and then finds it.
 */
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
