/*
 * wire/langchain/langchain_decode_who.c - which message is a chunk a piece of?
 *
 * Ids do not tell alone: a stream may carry the provider's and the placeholder of its run. Two placeholders are
 * two runs, and two nodes of LangGraph are two messages, whatever the ids are.
 */
#include "base/list.h"
#include "wire/langchain/langchain_decode.h"

/* Can a chunk with this id, of this node, be a piece of it? */
static bool goes_on(const struct lc_said *s, dgm_str id, dgm_str node)
{
    if (node.n && s->node.n && !dgm_str_eq(node, s->node))
        return false;
    if (!id.n || dgm_str_eq(id, s->id))
        return true;
    if (dgm_lc_is_placeholder(id))
        return !s->placeholder.n || dgm_str_eq(id, s->placeholder);
    return s->loose;
}

static size_t add_said(lc_decoder *d, dgm_str id)
{
    d->said = dgm_list_reserve(d->said, d->n_said, &d->cap_said, sizeof *d->said);
    d->said[d->n_said] =
        (struct lc_said){.id = id.n ? dgm_arena_dup(d->arena, id) : dgm_mint_id(&d->mint, d->arena),
                         .loose = !id.n || dgm_lc_is_placeholder(id)};
    dgm_map_put(&d->texts, d->said[d->n_said].id, d->n_said);
    return d->n_said++;
}

/* The message that a chunk of another than the current one is of. */
static size_t find_said(lc_decoder *d, dgm_str id, dgm_str node)
{
    size_t *known = id.n ? dgm_map_get(&d->texts, id) : NULL;
    if (known)
        return *known;
    known = node.n ? dgm_map_get(&d->by_node, node) : NULL;
    if (known && !d->said[*known].done && goes_on(&d->said[*known], id, node))
        return *known;
    return add_said(d, id);
}

static void note_names(lc_decoder *d, struct lc_said *s, dgm_str id, dgm_str node)
{
    if (!s->placeholder.n && dgm_lc_is_placeholder(id))
        s->placeholder = dgm_str_eq(id, s->id) ? s->id : dgm_arena_dup(d->arena, id);
    if (!node.n)
        return;
    if (!s->node.n)
        s->node = dgm_arena_dup(d->arena, node);
    size_t *last = dgm_map_get(&d->by_node, node);
    if (last)
        *last = d->current;
    else
        dgm_map_put(&d->by_node, s->node, d->current);
}

void dgm_lc_open_current(lc_decoder *d, dgm_str id, dgm_str node)
{
    if (!d->has_current || !goes_on(&d->said[d->current], id, node)) {
        dgm_lc_leave_current(d);
        d->current = find_said(d, id, node);
        d->has_current = true;
    }
    note_names(d, &d->said[d->current], id, node);
}
