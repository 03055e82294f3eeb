/* frontend/openai/openai_model.c - agents as models: found by name, listed at GET /v1/models. */
#include "frontend/openai/openai_model.h"
#include "base/limits.h"
#include "frontend/openai/openai_errors.h"
#include "frontend/words.h"
#include "wire/model_call.h"

/* Agents of these types call no tool of a caller and produce no data that could be a call's arguments. */
bool dgm_openai_looks_at_tools(const dgm_turn_agent *agent)
{
    static const char *const blind[] = {"hello", "bench", "tck"};
    for (size_t i = 0; i < sizeof blind / sizeof *blind; i++) {
        if (!strcmp(agent->type, blind[i]))
            return false;
    }
    return true;
}

dgm_str dgm_openai_ignored(dgm_arena *a, const dgm_turn_agent *agent, const yyjson_val *body,
                           dgm_str names)
{
    const dgm_json *passed = strcmp(agent->type, "llm") == 0 ? dgm_model_parameters(a, body) : NULL;
    dgm_buf b;
    if (!passed || !names.n)
        return names;
    dgm_buf_init(&b, names.n);
    for (dgm_str rest = names; rest.n;) {
        const char *comma = memchr(rest.p, ',', rest.n);
        dgm_str name = {rest.p, comma ? (size_t)(comma - rest.p) : rest.n};
        size_t skip = comma ? name.n + 2 : name.n;
        if (!dgm_json_get(passed, name))
            dgm_buf_printf(&b, "%s%.*s", b.n ? ", " : "", DGM_P(name));
        rest = (dgm_str){rest.p + skip, rest.n - skip};
    }
    dgm_str left = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return left;
}

void dgm_openai_fail_tools(dgm_http_exchange *x, const char *param)
{
    dgm_openai_fail_param(x, "unsupported_value", param,
                          "%s: this agent decides itself which tools it calls: send auto or none",
                          param);
}

/* "a, b, c"; the end is left out if there are very many. In the arena. */
static dgm_str model_names(dgm_arena *a, const dgm_turns_options *o)
{
    dgm_str all = DGM_STR("");
    for (size_t i = 0; i < o->n_agents; i++) {
        if (all.n > DGM_MAX_QUOTED_BYTES)
            return dgm_arena_printf(a, "%.*s, ... (GET /v1/models lists all)", DGM_P(all));
        all = dgm_arena_printf(a, "%.*s%s%.*s", DGM_P(all), i ? ", " : "", DGM_P(o->agents[i].id));
    }
    return all;
}

void dgm_openai_fail_model(const dgm_turn_request *q, dgm_str model)
{
    dgm_arena *a = dgm_http_arena(q->x);
    dgm_str names = model_names(a, &q->turns->o);
    if (model.n > DGM_MAX_QUOTED_BYTES)
        model.n = DGM_MAX_QUOTED_BYTES;
    while (dgm_utf8_check(model) != model.n)
        model.n--;
    struct openai_error e = {
        .http = 404,
        .type = "invalid_request_error",
        .code = DGM_STR("model_not_found"),
        .param = DGM_STR("model"),
        .message = dgm_arena_printf(a, "unknown model '%.*s'; models on this server: %.*s",
                                    DGM_P(model), DGM_P(names))};
    dgm_openai_fail(q->x, &e);
}

/* ---- GET /v1/models ------------------------------------------------------------------------------------------------ */

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

void dgm_openai_model_list(const dgm_turn_request *q)
{
    const dgm_turns_options *o = &q->turns->o;
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

void dgm_openai_model_send(const dgm_turn_request *q, dgm_str raw_id)
{
    dgm_str id;
    const dgm_turn_agent *agent = NULL;
    if (dgm_percent_decode(dgm_http_arena(q->x), raw_id, false, &id))
        agent = dgm_turns_find_agent(&q->turns->o, q->owner.tenant, id);
    if (!agent || (q->agent && agent != q->agent)) {
        dgm_openai_fail_model(q, raw_id);
        return;
    }
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    put_model(&b, q, agent);
    answer(q->x, &b);
}
