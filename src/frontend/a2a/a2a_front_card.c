/* frontend/a2a/a2a_front_card.c - to whom which card is told, and how caches may keep it. */
#include "frontend/a2a/a2a_front_card_int.h"
#include "frontend/a2a/a2a_front_int.h"
#include "frontend/cached.h"

void card_give(struct op *op, const dgm_http_request *r)
{
    const dgm_a2a_card *c = op->front->o.card;
    dgm_arena *a = op->arena;
    const dgm_agent_card *card = dgm_a2a_card_for(c, a, r);
    bool said;
    bool is_03 = version_of(r, a, &said) == VERSION_03; /* also of those who say nothing */
    bool both = c->o.v03 && is_03 && (said || !c->o.headerless_10);
    dgm_cached it = {.type = DGM_STR("application/json"),
                     .body = both ? card_hybrid(a, card) : card_text(a, &dgm_codec_a2a_10, card),
                     .cache_control =
                         dgm_arena_printf(a, "public, max-age=%lld", (long long)c->o.max_age_s),
                     .vary = DGM_STR("A2A-Version, Origin"),
                     .modified_s = c->o.made_s};
    dgm_cached_give(op->x, &it);
}

void card_give_extended(struct op *op)
{
    static const dgm_http_header not_kept = {{"Cache-Control", 13}, {"private, no-store", 17}};
    const dgm_agent_card *card =
        dgm_a2a_card_for(op->front->o.extended_card, op->arena, dgm_http_request_of(op->x));
    struct scratch *s = front_scratch(op->front);
    op_put_head(op, &s->out);
    dgm_buf_add_str(&s->out, card_text(op->arena, op->codec, card));
    op_put_tail(op, &s->out);
    op_respond(op, 200, op->rest ? rest_type(op) : DGM_STR("application/json"),
               dgm_buf_str(&s->out), &not_kept, 1);
}
