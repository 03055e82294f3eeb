/* app/serve/site.c - from settings to cards and frontends. */
#include "app/serve/site.h"
#include "backend/backend.h"

#include <stdlib.h>

/* ---- cards ---------------------------------------------------------------------------------------------------- */

static dgm_agent_extensions extensions_of(dgm_arena *a, const dgm_config_a2a *c)
{
    dgm_agent_extensions list = {dgm_new_n(a, dgm_agent_extension, c->extensions.n + 1), 0};
    for (; list.n < c->extensions.n; list.n++) {
        const dgm_config_extension *e = &c->extensions.at[list.n];
        list.at[list.n] = (dgm_agent_extension){.uri = e->uri,
                                                .description = e->description,
                                                .required = e->required ? DGM_TRUE : DGM_UNSET,
                                                .params = e->params};
    }
    return list;
}

static dgm_strs key_headers_of(dgm_arena *a, const dgm_config *c, bool *ret_bearer)
{
    dgm_strs list = {dgm_new_n(a, dgm_str, c->tokens.n + 1), 0};
    for (size_t i = 0; i < c->tokens.n; i++) {
        if (c->tokens.at[i].kind == DGM_TOKEN_API_KEY)
            list.at[list.n++] = c->tokens.at[i].header;
        else
            *ret_bearer = true;
    }
    return list;
}

static dgm_str describe_agent(void *core, dgm_str agent, dgm_arena *a)
{
    return dgm_core_describe_agent(core, agent, a);
}

static dgm_code make_cards(dgm_site *s, dgm_site_agent *f, dgm_core *core, const dgm_json *type,
                           dgm_err *err)
{
    const dgm_config *c = s->config;
    const dgm_config_agent *a = f->config;
    dgm_a2a_card_options o = {
        .members = {a->card},
        .describe = describe_agent,
        .describe_user = core,
        .agent = a->id,
        .type = type,
        .path = f == s->first ? DGM_STR("") : f->path,
        .public_url = c->public_url,
        .v10 = a->a2a.versions & DGM_A2A_VERSION_10,
        .v03 = a->a2a.versions & DGM_A2A_VERSION_03,
        .headerless_10 = a->a2a.card_headerless == DGM_CARD_PURE_10,
        .streaming = a->a2a.streaming,
        .no_requirements = !a->a2a.security_requirements,
        .extended = a->card_more && c->tokens.n, /* without tokens no caller is known */
        .extensions = extensions_of(s->arena, &a->a2a),
        .max_age_s = a->a2a.card_max_age_s,
        .made_s = s->made_s,
    };
    o.key_headers = key_headers_of(s->arena, c, &o.bearer);
    dgm_code rc = dgm_a2a_card_new(&o, &f->card, err);
    if (rc || !o.extended)
        return rc;
    dgm_a2a_card_options more = o;
    more.members[0] = a->card_more;
    more.members[1] = a->card;
    return dgm_a2a_card_new(&more, &f->extended, err);
}

/* ---- frontends ---------------------------------------------------------------------------------------------------- */

/* The list in the card; empty: the card has no such member. */
static dgm_strs media_types(dgm_arena *a, const dgm_json *own, const dgm_json *type,
                            const char *name)
{
    yyjson_val *list = dgm_json_get(own, dgm_str_from(name)), *v;
    size_t i, n;
    if (!list)
        list = dgm_json_get(type, dgm_str_from(name));
    dgm_strs types = {dgm_new_n(a, dgm_str, yyjson_arr_size(list) + 1), 0};
    yyjson_arr_foreach (list, i, n, v) {
        types.at[types.n++] = dgm_json_str(v);
    }
    return types;
}

static void make_front(dgm_site *s, dgm_site_agent *f, dgm_core *core, const dgm_json *type)
{
    const dgm_config_a2a *a2a = &f->config->a2a;
    size_t n = a2a->extensions.n;
    dgm_a2a_extension *extensions = dgm_new_n(s->arena, dgm_a2a_extension, n + 1);
    for (size_t i = 0; i < n; i++)
        extensions[i] =
            (dgm_a2a_extension){a2a->extensions.at[i].uri, a2a->extensions.at[i].required};
    dgm_a2a_options o = {
        .agent = f->config->id,
        .errors_1_0_0 = a2a->error_table == DGM_ERROR_TABLE_100,
        .lenient_version = a2a->version_mode == DGM_VERSION_LENIENT,
        .no_10 = !(a2a->versions & DGM_A2A_VERSION_10),
        .no_03 = !(a2a->versions & DGM_A2A_VERSION_03),
        .keep_open_at_question = a2a->stream_at_input_required == DGM_STREAM_OPEN,
        .no_streaming = !a2a->streaming,
        .json_stream_errors = a2a->stream_errors == DGM_STREAM_ERROR_JSON,
        .no_canonical_type = !a2a->canonical_type,
        .rest_media = (dgm_a2a_media)a2a->rest_media_type,
        .blocking_ms = (uint64_t)a2a->blocking_limit_s * 1000,
        .cancel_on_disconnect = s->config->on_disconnect[DGM_FRONTEND_A2A] == DGM_DISCONNECT_CANCEL,
        .grace_ms = (uint64_t)s->config->disconnect_grace_s[DGM_FRONTEND_A2A] * 1000,
        .extensions = extensions,
        .n_extensions = n,
        .tenants = s->config->tenants,
        .card = f->card,
        .extended_card = f->extended,
    };
    if (a2a->media_types == DGM_MEDIA_ENFORCE) {
        o.input_modes = media_types(s->arena, f->config->card, type, "defaultInputModes");
        o.output_modes = media_types(s->arena, f->config->card, type, "defaultOutputModes");
    }
    f->a2a = dgm_a2a_front_new(core, &o);
}

static dgm_turn_leave leave_of(const dgm_config *c, dgm_frontend_kind kind)
{
    return (dgm_turn_leave){c->on_disconnect[kind] == DGM_DISCONNECT_CANCEL,
                            (uint64_t)c->disconnect_grace_s[kind] * 1000};
}

static void make_turns(dgm_site *s, dgm_core *core, const dgm_agents *opened)
{
    dgm_turn_agent *agents = dgm_new_n(s->arena, dgm_turn_agent, s->n_agents);
    dgm_turns_options o = {
        .core = core,
        .agents = agents,
        .n_agents = s->n_agents,
        .public_url = s->config->public_url,
        .leave = {[DGM_LEAVE_AGUI] = leave_of(s->config, DGM_FRONTEND_AGUI),
                  [DGM_LEAVE_CHAT] = leave_of(s->config, DGM_FRONTEND_CHAT),
                  [DGM_LEAVE_RESPONSES] = leave_of(s->config, DGM_FRONTEND_RESPONSES),
                  [DGM_LEAVE_AISDK] = leave_of(s->config, DGM_FRONTEND_AISDK)},
        .agui_interrupts = s->config->agui_questions == DGM_QUESTIONS_INTERRUPT,
        .openai_by_id_only = !s->config->openai_continue_questions};
    for (size_t i = 0; i < s->n_agents; i++) {
        dgm_site_agent *f = &s->agents[i];
        const dgm_agent_card *card = dgm_a2a_card_of(f->card);
        agents[i] = (dgm_turn_agent){
            .id = f->config->id,
            .name = card->name,
            .description = card->description,
            .version = card->version,
            .organization = card->provider ? card->provider->organization : (dgm_str){0},
            .type = dgm_agents_backend(opened, f->config->id)->type,
            .created_s = s->made_s,
            .answer_in_status = f->config->manner.answer_source == DGM_ANSWER_IN_STATUS,
            .gets_history = dgm_agents_backend(opened, f->config->id)->has_threads ||
                            (dgm_agents_backend(opened, f->config->id)->wants_history &&
                             f->config->manner.history.messages > 0),
            .a2a = f->a2a};
        f->turn_agent = &agents[i];
        if (f == s->first)
            o.first = &agents[i];
    }
    s->turns = dgm_turns_new(&o);
}

/* ---- life ------------------------------------------------------------------------------------------------------------ */

static dgm_code make_agent(dgm_site *s, dgm_site_agent *f, dgm_core *core,
                           const dgm_backend *backend, dgm_err *err)
{
    const dgm_json *type =
        backend->card ? dgm_json_parse_trusted(s->arena, dgm_str_from(backend->card)) : NULL;
    dgm_code rc = make_cards(s, f, core, type, err);
    if (!rc)
        make_front(s, f, core, type);
    return rc;
}

static void find_agents(dgm_site *s, const dgm_agents *opened)
{
    const dgm_config_agents *list = &s->config->agents;
    s->agents = dgm_new_n(s->arena, dgm_site_agent, list->n);
    for (size_t i = 0; i < list->n; i++) {
        dgm_site_agent *f = &s->agents[s->n_agents];
        if (!dgm_agents_backend(opened, list->at[i].id))
            continue;
        f->config = &list->at[i];
        f->path = dgm_arena_printf(s->arena, "/agents/%.*s", DGM_P(list->at[i].id));
        if (list->at[i].is_default || !s->first)
            s->first = f;
        s->n_agents++;
    }
}

dgm_code dgm_site_new(dgm_core *core, const dgm_agents *opened, dgm_config *config, int64_t now_s,
                      dgm_site **ret_site, dgm_err *err)
{
    dgm_site *s = dgm_xcalloc(1, sizeof *s);
    dgm_code rc = DGM_OK;
    s->arena = dgm_arena_new();
    s->config = config;
    s->made_s = now_s;
    find_agents(s, opened);
    if (!s->n_agents)
        rc = dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "agents"),
                      "no agent of the configuration is running");
    for (size_t i = 0; !rc && i < s->n_agents; i++)
        rc = make_agent(s, &s->agents[i], core, dgm_agents_backend(opened, s->agents[i].config->id),
                        err);
    if (!rc)
        make_turns(s, core, opened);
    if (rc) {
        s->config = NULL; /* stays the caller's */
        dgm_site_free(s);
        return rc;
    }
    *ret_site = s;
    return DGM_OK;
}

void dgm_site_free(dgm_site *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_agents; i++) {
        dgm_a2a_front_free(s->agents[i].a2a);
        dgm_a2a_card_free(s->agents[i].card);
        dgm_a2a_card_free(s->agents[i].extended);
    }
    dgm_turns_free(s->turns);
    dgm_arena_free(s->arena);
    dgm_config_free(s->config);
    free(s);
}

dgm_site_agent *dgm_site_find(const dgm_site *s, dgm_str id)
{
    if (!id.p)
        return s->first;
    for (size_t i = 0; i < s->n_agents; i++) {
        if (dgm_str_eq(s->agents[i].config->id, id))
            return &s->agents[i];
    }
    return NULL;
}
