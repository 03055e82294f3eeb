/* frontend/openai/openai_models.c - GET /v1/models: agents as models, listed. */
#include "frontend/openai/openai_model.h"
#include "frontend/words.h"

static void put_model(dgm_buf *b, const dgm_turn_request *q, const dgm_turn_agent *agent)
{
    dgm_buf_add_lit(b, "{\"id\":");
    dgm_json_put_str(b, agent->id);
    dgm_buf_add_lit(b, ",\"object\":\"model\",\"created\":");
    dgm_json_put_int(b, agent->created_s);
    dgm_buf_add_lit(b, ",\"owned_by\":");
    dgm_json_put_str(b, agent->organization.n ? agent->organization
                        : q->owner.tenant.n   ? q->owner.tenant
                                              : DGM_STR("dragoman"));
    dgm_buf_add_lit(b, ",\"name\":");
    dgm_json_put_str(b, agent->name);
    dgm_buf_add_lit(b, ",\"description\":");
    dgm_json_put_str(b, agent->description);
    dgm_buf_add_char(b, '}');
}

static void answer(dgm_http_exchange *x, dgm_buf *b)
{
    dgm_http_respond(x, 200, DGM_STR("application/json"), NULL, 0, dgm_buf_str(b));
    dgm_buf_done(b);
}

void openai_model_list(const dgm_turn_request *q)
{
    const dgm_turns_options *o = dgm_turns_options_of(q->turns);
    const dgm_turn_agent *list = q->agent ? q->agent : o->agents;
    size_t n = q->agent ? 1 : o->n_agents;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            dgm_buf_add_char(&b, ',');
        put_model(&b, q, &list[i]);
    }
    dgm_buf_add_lit(&b, "]}");
    answer(q->x, &b);
}

void openai_model_give(const dgm_turn_request *q, dgm_str raw_id)
{
    dgm_str id;
    const dgm_turn_agent *agent = NULL;
    if (dgm_percent_decode(dgm_http_arena(q->x), raw_id, false, &id))
        agent = openai_model_named(dgm_turns_options_of(q->turns), q->owner.tenant, id);
    if (!agent || (q->agent && agent != q->agent)) {
        openai_fail_model(q, raw_id);
        return;
    }
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    put_model(&b, q, agent);
    answer(q->x, &b);
}
