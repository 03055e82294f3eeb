/* config/agents.c - the list of opened agents. */
#include "config/agents.h"
#include "config/agent_checkpoints.h"
#include "config/mcp_servers.h"

#include <stdlib.h>

struct opened_agent {
    dgm_core_agent core; /* borrowed by the core until the end */
    dgm_str definition;  /* everything of the configuration that it was opened with, as JSON */
    dgm_arena *arena;    /* of its texts */
    bool is_open;
    bool is_current;  /* no later one has this id */
    bool is_prepared; /* and not retired since */
    unsigned round;   /* of dgm_agents_open */
    struct opened_agent *older;
};

struct dgm_agents {
    struct opened_agent *newest;
    unsigned round;
    /* The MCP servers of the first configuration: a change of them needs a restart. */
    dgm_agent_mcp *mcp;
    size_t n_mcp;
    bool has_mcp;
    dgm_arena *arena; /* of their names */
    void (*on_log)(void *user, dgm_str line);
    void *log_user;
    void (*on_agent_log)(void *user, dgm_str agent, bool is_fault, dgm_str line);
    void *agent_log_user;
    dgm_store *store; /* for checkpoints of graphs; NULL: none */
};

dgm_agents *dgm_agents_new(void (*on_log)(void *user, dgm_str line), void *user)
{
    dgm_agents *s = dgm_xcalloc(1, sizeof *s);
    s->arena = dgm_arena_new();
    s->on_log = on_log;
    s->log_user = user;
    return s;
}

void dgm_agents_set_log(dgm_agents *s,
                        void (*on_agent_log)(void *user, dgm_str agent, bool is_fault,
                                             dgm_str line),
                        void *user)
{
    s->on_agent_log = on_agent_log;
    s->agent_log_user = user;
}

void dgm_agents_set_store(dgm_agents *s, dgm_store *store)
{
    s->store = store;
}

static bool has_agent(const dgm_config *c, dgm_str id)
{
    for (size_t i = 0; c && i < c->agents.n; i++) {
        if (dgm_str_eq(c->agents.at[i].id, id))
            return true;
    }
    return !c;
}

void dgm_agents_prepare(dgm_agents *s, const dgm_config *c, dgm_loops *loops)
{
    for (struct opened_agent *o = s->newest; o; o = o->older) {
        const dgm_backend *b = o->core.backend;
        bool is_used = o->is_open && o->is_current && has_agent(c, o->core.id);
        if (is_used && !o->is_prepared && b->prepare)
            b->prepare(o->core.agent, loops);
        if (!is_used && o->is_prepared && b->retire)
            b->retire(o->core.agent, false);
        o->is_prepared = is_used;
    }
}

void dgm_agents_retire(dgm_agents *s)
{
    for (int wait = 0; wait < 2; wait++) {
        for (struct opened_agent *o = s->newest; o; o = o->older) {
            if (o->is_open && o->core.backend->retire)
                o->core.backend->retire(o->core.agent, wait);
        }
    }
}

void dgm_agents_close_mcp(dgm_agents *s)
{
    for (size_t i = 0; s && i < s->n_mcp; i++)
        dgm_mcp_close(dgm_take(s->mcp[i].server));
}

static dgm_code open_mcp(dgm_agents *s, const dgm_config *c, dgm_err *err)
{
    if (s->has_mcp)
        return DGM_OK;
    s->has_mcp = true;
    s->mcp = dgm_new_n(s->arena, dgm_agent_mcp, c->mcp.n + 1);
    for (size_t i = 0; i < c->mcp.n; i++) {
        dgm_agent_mcp *m = &s->mcp[s->n_mcp++];
        m->name = dgm_arena_dup(s->arena, c->mcp.at[i].name);
        dgm_code rc =
            dgm_mcp_server_open(c, &c->mcp.at[i], s->on_log, s->log_user, &m->server, err);
        if (rc)
            return rc;
    }
    return DGM_OK;
}

static void opened_agent_free(struct opened_agent *o)
{
    if (o->is_open && o->core.backend->close)
        o->core.backend->close(o->core.agent);
    dgm_arena_free(o->arena);
    free(o);
}

/* Frees all that are newer than this one. */
static void drop_until(dgm_agents *s, struct opened_agent *last)
{
    while (s->newest != last) {
        struct opened_agent *o = s->newest;
        s->newest = o->older;
        opened_agent_free(o);
    }
}

void dgm_agents_free(dgm_agents *s)
{
    if (!s)
        return;
    drop_until(s, NULL);
    dgm_agents_close_mcp(s);
    dgm_arena_free(s->arena);
    free(s);
}

static struct opened_agent *current_agent(const dgm_agents *s, dgm_str id)
{
    struct opened_agent *o = s->newest;
    while (o && !(o->is_current && dgm_str_eq(o->core.id, id)))
        o = o->older;
    return o;
}

dgm_code dgm_agents_open_one(const dgm_config_agent *a, const dgm_agent_options *server,
                             const dgm_backend *backend, void **ret_agent, dgm_err *err)
{
    bool is_default = a->manner.reply == DGM_CONFIG_REPLY_DEFAULT;
    dgm_agent_options options = {.id = a->id,
                                 .reply = is_default ? backend->reply : (dgm_reply)a->manner.reply,
                                 .omit_final_text = a->manner.final_text == DGM_FINAL_TEXT_OMIT,
                                 .answer_in_status =
                                     a->manner.answer_source == DGM_ANSWER_IN_STATUS,
                                 .working_message = a->manner.working_message,
                                 .secret_env = server->secret_env,
                                 .outbound_allow = server->outbound_allow,
                                 .folder = a->folder,
                                 .peers = server->peers,
                                 .n_peers = server->n_peers,
                                 .mcp = server->mcp,
                                 .n_mcp = server->n_mcp,
                                 .on_log = server->on_log,
                                 .log_user = server->log_user,
                                 .watch = server->watch,
                                 .checkpoints = server->checkpoints};
    return backend->open(a->settings, &options, ret_agent, err);
}

/* Members of the card that the configuration has; otherwise those of the type's card. */
static dgm_str card_text(dgm_arena *a, const dgm_config_agent *agent, const char *member)
{
    const dgm_backend *backend = dgm_backend_by_type(agent->type);
    dgm_str text = dgm_json_str_member(agent->card, member);
    if (!text.n && backend && backend->card)
        text = dgm_json_str_member(dgm_json_parse_trusted(a, dgm_str_from(backend->card)), member);
    return dgm_arena_dup(a, text);
}

static void add_peers(dgm_arena *a, const dgm_config *c, dgm_agent_options *o)
{
    dgm_agent_peer *peers = dgm_new_n(a, dgm_agent_peer, c->agents.n + 1);
    for (size_t i = 0; i < c->agents.n; i++)
        peers[i] = (dgm_agent_peer){.id = dgm_arena_dup(a, c->agents.at[i].id),
                                    .name = card_text(a, &c->agents.at[i], "name"),
                                    .description = card_text(a, &c->agents.at[i], "description")};
    o->peers = peers;
    o->n_peers = c->agents.n;
}

dgm_address_ranges dgm_agents_allowed_addresses(dgm_arena *a, const dgm_config *c)
{
    dgm_address_range *ranges = dgm_new_n(a, dgm_address_range, c->outbound_allow.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < c->outbound_allow.n; i++) {
        if (c->outbound_allow.at[i].n &&
            !dgm_address_parse_range(c->outbound_allow.at[i], &ranges[n], NULL))
            n++; /* an invalid one was reported */
    }
    return (dgm_address_ranges){ranges, n};
}

dgm_agent_options dgm_agents_server_options(dgm_arena *a, const dgm_config *c)
{
    dgm_strs names = {dgm_new_n(a, dgm_str, c->secret_env.n + 1), c->secret_env.n};
    for (size_t i = 0; i < names.n; i++)
        names.at[i] = dgm_arena_dup(a, c->secret_env.at[i]);
    dgm_agent_options o = {.secret_env = names,
                           .outbound_allow = dgm_agents_allowed_addresses(a, c)};
    add_peers(a, c, &o);
    dgm_agent_mcp *mcp = dgm_new_n(a, dgm_agent_mcp, c->mcp.n + 1);
    for (size_t i = 0; i < c->mcp.n; i++)
        mcp[i].name = dgm_arena_dup(a, c->mcp.at[i].name);
    o.mcp = mcp;
    o.n_mcp = c->mcp.n;
    o.watch = c->watch;
    return o;
}

dgm_code dgm_agents_check(const dgm_config *c, const dgm_config_agent *a, void *user, dgm_err *err)
{
    const dgm_backend *backend = dgm_backend_by_type(a->type);
    void *agent;
    dgm_auto(dgm_arena_free) dgm_arena *arena = dgm_arena_new();
    dgm_agent_options server = dgm_agents_server_options(arena, c);
    dgm_code rc = backend ? dgm_agents_open_one(a, &server, backend, &agent, err) : DGM_OK;
    (void)user;
    if (backend && !rc && backend->close)
        backend->close(agent);
    return rc;
}

/* Adds it to the list; is_current is not set yet. */
static dgm_code open_agent_from(dgm_agents *s, const dgm_config_agent *a, const dgm_config *c,
                                dgm_str definition, dgm_err *err)
{
    struct opened_agent *o = dgm_xcalloc(1, sizeof *o);
    dgm_config_agent copy = *a;
    dgm_code rc = DGM_OK;
    dgm_buf b;
    o->arena = dgm_arena_new();
    o->older = s->newest;
    o->round = s->round;
    s->newest = o;
    o->definition = dgm_arena_dup(o->arena, definition);
    o->core = (dgm_core_agent){.id = dgm_arena_dup(o->arena, a->id),
                               .backend = dgm_backend_by_type(a->type),
                               .dedupe = a->manner.dedupe,
                               .keep_transitory = a->manner.persist_stream_delta};
    if (!o->core.backend)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "unknown agent type \"%.*s\"", DGM_P(a->type));
    o->core.foreign = o->core.backend->foreign;
    if (o->core.backend->wants_history)
        o->core.history = (dgm_history_limits){.messages = (size_t)a->manner.history.messages,
                                               .bytes = (size_t)a->manner.history.bytes,
                                               .tools = a->manner.history.tools};
    copy.manner.working_message = dgm_arena_dup(o->arena, a->manner.working_message);
    if (a->settings) {
        dgm_buf_init(&b, SIZE_MAX); /* bounded by the size of the configuration */
        dgm_json_put(&b, a->settings);
        copy.settings = dgm_json_parse_trusted(o->arena, dgm_arena_dup(o->arena, dgm_buf_str(&b)));
        dgm_buf_done(&b);
    }
    dgm_agent_options server = dgm_agents_server_options(o->arena, c);
    server.mcp = s->mcp;
    server.n_mcp = s->n_mcp;
    server.on_log = s->on_agent_log;
    server.log_user = s->agent_log_user;
    if (s->store)
        server.checkpoints = dgm_agent_checkpoints_new(o->arena, s->store, o->core.id);
    copy.id = o->core.id;
    copy.folder = dgm_arena_dup(o->arena, a->folder);
    rc = dgm_agents_open_one(&copy, &server, o->core.backend, &o->core.agent, err);
    o->is_open = !rc;
    return rc;
}

static dgm_code open_changed(dgm_agents *s, const dgm_config *c, dgm_err *err)
{
    dgm_code rc = DGM_OK;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX); /* bounded by the size of the configuration */
    for (size_t i = 0; !rc && i < c->agents.n; i++) {
        const struct opened_agent *o = current_agent(s, c->agents.at[i].id);
        dgm_buf_clear(&b);
        dgm_config_agent_put(&b, &c->agents.at[i]);
        for (size_t k = 0; k < c->secret_env.n;
             k++) /* a change of tokens changes the environment */
            dgm_json_put_str(&b, c->secret_env.at[k]);
        dgm_buf_add_char(&b, ' ');
        for (size_t k = 0; k < c->outbound_allow.n; k++)
            dgm_json_put_str(&b, c->outbound_allow.at[k]);
        if (!o || !dgm_str_eq(o->definition, dgm_buf_str(&b)))
            rc = open_agent_from(s, &c->agents.at[i], c, dgm_buf_str(&b), err);
    }
    dgm_buf_done(&b);
    return rc;
}

dgm_code dgm_agents_open(dgm_agents *s, const dgm_config *c, dgm_core *core, dgm_err *err)
{
    struct opened_agent *before = s->newest, *o;
    s->round++;
    dgm_code rc = open_mcp(s, c, err);
    if (!rc)
        rc = open_changed(s, c, err);
    if (rc) {
        drop_until(s, before); /* the core does not know them */
        return rc;
    }
    for (o = s->newest; o != before; o = o->older) {
        struct opened_agent *replaced = current_agent(s, o->core.id);
        if (replaced)
            replaced->is_current = false;
        o->is_current = true;
        if (core && (rc = dgm_core_set_agent(core, &o->core, err))) {
            dgm_agents_undo(s, core);
            return rc;
        }
    }
    return DGM_OK;
}

void dgm_agents_add(dgm_agents *s, const dgm_core_agent *agent)
{
    struct opened_agent *o = dgm_xcalloc(1, sizeof *o);
    o->core = *agent;
    o->is_current = true;
    o->older = s->newest;
    s->newest = o;
}

void dgm_agents_undo(dgm_agents *s, dgm_core *core)
{
    for (struct opened_agent *o = s->newest; o && o->round == s->round; o = o->older) {
        struct opened_agent *old = o->older;
        o->is_current = false;
        while (old && !(old->round != s->round && dgm_str_eq(old->core.id, o->core.id)))
            old = old->older;
        if (old) {
            old->is_current = true;
            dgm_core_set_agent(core, &old->core, NULL); /* its slot exists */
        }
    }
}

dgm_core_agent *dgm_agents_list(const dgm_agents *s, const dgm_config *c, size_t *ret_n)
{
    dgm_core_agent *list = dgm_xcalloc(c->agents.n, sizeof *list);
    size_t n = 0;
    for (int pass = 0; pass < 2; pass++) { /* the default first */
        for (size_t i = 0; i < c->agents.n; i++) {
            if (c->agents.at[i].is_default == (pass == 0))
                list[n++] = current_agent(s, c->agents.at[i].id)->core;
        }
    }
    *ret_n = n;
    return list;
}

const dgm_backend *dgm_agents_backend(const dgm_agents *s, dgm_str id)
{
    const struct opened_agent *o = current_agent(s, id);
    return o ? o->core.backend : NULL;
}
