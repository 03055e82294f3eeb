/*
 * backend/llm/llm_tools.c - the tools of a run: those of the settings and of MCP servers, the caller's and the built-in ones;
 * and their calls, which the files for each kind of tool carry out.
 */
#include "backend/llm/llm_tools_int.h"
#include "base/limits.h"
#include "base/list.h"
#include "schema/schema.h"

/* A list of tools that an MCP server was asked for. */
struct llm_listing {
    struct llm_listing *next;
    struct llm_job *job;
    const struct llm_tool_setting *setting;
    dgm_mcp_listing *listing;
};

/* ---- rules ----------------------------------------------------------------------------------------------------------- */

/* Does the list have the tool, or its server? */
static bool names_have(const struct llm_names *names, dgm_str tool,
                       const struct llm_tool_setting *setting)
{
    bool is_mcp = setting && setting->type == LLM_TOOL_MCP;
    for (size_t i = 0; i < names->names.n; i++) {
        if (dgm_str_eq(names->names.at[i], tool) ||
            (is_mcp && dgm_str_eq(names->names.at[i], setting->name)))
            return true;
    }
    return names->all;
}

static const struct llm_tool *find_tool(const struct llm_job *j, dgm_str name)
{
    for (size_t i = 0; i < j->n_tools; i++) {
        if (dgm_str_eq(j->tools[i].definition.name, name))
            return &j->tools[i];
    }
    return NULL;
}

/* Texts are copied. A second tool of the same name is left out: the first one is the server's. */
static struct llm_tool *tools_add(struct llm_job *j, const dgm_canon_tool *definition,
                                  dgm_llm_tool_kind kind, const struct llm_tool_setting *setting)
{
    const struct llm_agent *x = j->agent;
    dgm_str name = dgm_arena_dup(j->arena, definition->name);
    if (find_tool(j, name) || j->n_tools >= DGM_MAX_REQUEST_TOOLS) {
        dgm_run_note(j->run, "the tool %.*s is left out: %s", (int)(name.n < 80 ? name.n : 80),
                     name.p, find_tool(j, name) ? "another one has its name" : "too many tools");
        return NULL;
    }
    j->tools = dgm_list_grow(j->arena, j->tools, j->n_tools, sizeof *j->tools);
    struct llm_tool *t = &j->tools[j->n_tools++];
    bool is_server = kind == DGM_LLM_TOOL_SERVER || kind == DGM_LLM_TOOL_AGENT;
    *t = (struct llm_tool){
        .setting = setting,
        .definition = {.name = name,
                       .description = dgm_arena_dup(j->arena, definition->description),
                       .parameters = definition->parameters
                                         ? dgm_json_copy(j->arena, definition->parameters)
                                         : NULL},
        .rule = {.name = name,
                 .kind = kind,
                 .needs_approval = is_server && names_have(&x->approve, name, setting),
                 .is_forbidden = names_have(&x->forbid, name, setting)}};
    return t;
}

/* ---- which ones -------------------------------------------------------------------------------------------------------- */

static void add_builtin(struct llm_job *j, const dgm_llm_builtin *b)
{
    dgm_canon_tool t = {.name = dgm_str_from(b->name),
                        .description = dgm_str_from(b->description),
                        .parameters =
                            dgm_json_parse_trusted(j->arena, dgm_str_from(b->parameters))};
    tools_add(j, &t, b->kind, NULL);
}

static void add_agent_tool(struct llm_job *j, const struct llm_tool_setting *s)
{
    dgm_canon_tool definition = {
        .name = s->name,
        .description = s->description,
        .parameters = dgm_json_parse_trusted(j->arena, dgm_str_from(dgm_llm_agent_parameters))};
    struct llm_tool *t = tools_add(j, &definition, DGM_LLM_TOOL_AGENT, s);
    if (!t)
        return;
    t->rule.agent_name = s->name;
    t->rule.agent_url = s->type == LLM_TOOL_REMOTE_AGENT ? s->agent : (dgm_str){0};
    /* the core finds the task of a message that is sent again */
    t->rule.is_idempotent = s->type == LLM_TOOL_LOCAL_AGENT;
}

static void add_own_tool(struct llm_job *j, const struct llm_tool_setting *s)
{
    const dgm_tool_info *info = dgm_tool_info_of(s->tool);
    dgm_canon_tool definition = {
        .name = info->name, .description = info->description, .parameters = info->parameters};
    struct llm_tool *t = tools_add(j, &definition, DGM_LLM_TOOL_SERVER, s);
    if (!t)
        return;
    t->rule.needs_approval |= info->needs_approval;
    t->rule.is_idempotent = info->is_idempotent;
}

static void add_caller_tools(struct llm_job *j)
{
    yyjson_val *list = dgm_json_get(j->caller, DGM_STR(DGM_META_TOOLS)), *e;
    size_t i, n;
    yyjson_arr_foreach (list, i, n, e) {
        yyjson_val *inner = dgm_json_get(e, DGM_STR("function")); /* as Chat has it */
        yyjson_val *from = yyjson_is_obj(inner) ? inner : e;
        dgm_canon_tool t = {.name = dgm_json_str_member(from, "name"),
                            .description = dgm_json_str_member(from, "description"),
                            .parameters = dgm_json_get(from, DGM_STR("parameters"))};
        if (t.name.n)
            tools_add(j, &t, DGM_LLM_TOOL_CALLER, NULL);
    }
}

static void add_static_tools(struct llm_job *j)
{
    const struct llm_agent *x = j->agent;
    if (x->ask_user)
        add_builtin(j, &dgm_llm_ask_user);
    if (x->request_auth)
        add_builtin(j, &dgm_llm_request_auth);
    for (size_t i = 0; i < x->n_tools; i++) {
        if (x->tools[i].type == LLM_TOOL_OWN)
            add_own_tool(j, &x->tools[i]);
        else if (x->tools[i].type != LLM_TOOL_MCP)
            add_agent_tool(j, &x->tools[i]);
    }
}

static void tools_found(struct llm_job *j)
{
    void (*on_tools)(struct llm_job *) = dgm_take(j->on_tools);
    add_caller_tools(j);
    on_tools(j);
}

static bool is_wanted(const struct llm_tool_setting *s, const dgm_mcp_tool *t)
{
    yyjson_val *list = (yyjson_val *)(uintptr_t)s->only, *e;
    size_t i, n;
    if (!list)
        return true;
    yyjson_arr_foreach (list, i, n, e) {
        if (dgm_str_eq(dgm_json_str(e), t->own_name) || dgm_str_eq(dgm_json_str(e), t->name))
            return true;
    }
    return false;
}

static void on_listed(void *user, const dgm_mcp_tools *tools, const dgm_mcp_error *error)
{
    struct llm_listing *l = user;
    struct llm_job *j = l->job;
    struct llm_listing **at = &j->listings;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    if (error) /* the others work */
        dgm_run_note(j->run, "the tools of the MCP server %.*s are missing: %.*s",
                     DGM_P(l->setting->name), DGM_P(error->message));
    for (size_t i = 0; tools && i < tools->n; i++) {
        const dgm_mcp_tool *t = &tools->at[i];
        dgm_canon_tool definition = {
            .name = t->name, .description = t->description, .parameters = t->input_schema};
        if (is_wanted(l->setting, t))
            tools_add(j, &definition, DGM_LLM_TOOL_SERVER, l->setting);
    }
    if (!j->listings)
        tools_found(j);
}

void dgm_llm_tools_find(struct llm_job *j, void (*on_tools)(struct llm_job *j))
{
    const struct llm_agent *x = j->agent;
    j->on_tools = on_tools;
    add_static_tools(j);
    for (size_t i = 0; i < x->n_tools; i++) {
        if (x->tools[i].type != LLM_TOOL_MCP || !x->tools[i].mcp)
            continue;
        struct llm_listing *l = dgm_new(j->arena, struct llm_listing);
        l->job = j;
        l->setting = &x->tools[i];
        l->next = j->listings;
        j->listings = l;
        l->listing = dgm_mcp_list(x->tools[i].mcp, j->run->loop,
                                  dgm_llm_mcp_share_key(j, x->tools[i].mcp, j->arena),
                                  (dgm_mcp_tools_handler){on_listed, l});
    }
    if (!j->listings)
        tools_found(j);
}

dgm_llm_tools dgm_llm_tools_rules(struct llm_job *j, dgm_arena *a)
{
    dgm_llm_tool *list = dgm_new_n(a, dgm_llm_tool, j->n_tools + 1);
    for (size_t i = 0; i < j->n_tools; i++)
        list[i] = j->tools[i].rule;
    return (dgm_llm_tools){list, j->n_tools};
}

dgm_canon_tools dgm_llm_tools_definitions(struct llm_job *j, dgm_arena *a)
{
    dgm_canon_tool *list = dgm_new_n(a, dgm_canon_tool, j->n_tools + 1);
    size_t n = 0;
    for (size_t i = 0; i < j->n_tools; i++)
        list[n++] = j->tools[i].definition;
    return (dgm_canon_tools){list, n};
}

/* ---- arguments ------------------------------------------------------------------------------------------------------------ */

/* Tools that callers run are theirs to check. */
bool dgm_llm_tools_check(void *job, dgm_str tool, const dgm_json *arguments, dgm_arena *a,
                         dgm_str *ret_why)
{
    const struct llm_tool *t = find_tool(job, tool);
    dgm_auto(dgm_schema_free) dgm_schema *schema = NULL;
    dgm_schema_mistakes mistakes = {0};
    dgm_err err = {0};
    dgm_buf b;
    if (!t || t->rule.kind == DGM_LLM_TOOL_CALLER || !t->definition.parameters)
        return true;
    if (t->setting && t->setting->type == LLM_TOOL_OWN)
        return dgm_tool_check(t->setting->tool, arguments, a, ret_why);
    if (dgm_schema_compile(t->definition.parameters, &schema, &err)) {
        dgm_run_note(((struct llm_job *)job)->run,
                     "the schema of the tool %.*s cannot be used, its arguments are not checked: "
                     "%s: %s",
                     DGM_P(tool), err.at, err.msg);
        return true;
    }
    dgm_code rc = dgm_schema_check(schema, arguments, &mistakes, &err);
    if (!rc)
        return true;
    dgm_buf_init(&b, 4096);
    dgm_buf_add_lit(&b, "The arguments are invalid. Correct them and call the tool again.\n");
    if (rc == DGM_BAD_PARAMS)
        dgm_schema_explain(&mistakes, &b);
    else
        dgm_buf_printf(&b, "%s", err.msg);
    *ret_why = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return false;
}

/* ---- calls ---------------------------------------------------------------------------------------------------------------- */

static struct llm_tool_call *find_call(struct llm_job *j, dgm_str id)
{
    struct llm_tool_call *c = j->calls;
    while (c && !dgm_str_eq(c->id, id))
        c = c->next;
    return c;
}

static struct llm_tool_call *call_new(struct llm_job *j, const struct llm_tool_setting *setting,
                                      dgm_str id, dgm_str key, dgm_str name)
{
    dgm_arena *a = dgm_arena_new_small(1024);
    struct llm_tool_call *c = dgm_new(a, struct llm_tool_call);
    c->arena = a;
    c->job = j;
    c->agent = j->agent;
    c->setting = setting;
    c->id = dgm_arena_dup(a, id);
    c->key = dgm_arena_dup(a, key);
    c->name = dgm_arena_dup(a, name);
    c->next = j->calls;
    j->calls = c;
    return c;
}

static void call_remove(struct llm_tool_call *c)
{
    struct llm_tool_call **at = &c->job->calls;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
}

static void call_stop(struct llm_tool_call *c)
{
    bool is_stopped = true;
    call_remove(c);
    switch (c->setting->type) {
    case LLM_TOOL_OWN:
        if (c->own)
            dgm_tool_cancel(c->own);
        break;
    case LLM_TOOL_MCP: is_stopped = dgm_llm_mcp_stop(c); break;
    case LLM_TOOL_LOCAL_AGENT:
    case LLM_TOOL_REMOTE_AGENT: dgm_llm_agent_stop(c); break;
    }
    if (is_stopped)
        dgm_arena_free(c->arena);
}

void dgm_llm_tool_finish(struct llm_tool_call *c, const dgm_llm_event *event)
{
    struct llm_job *j = c->job;
    call_remove(c);
    dgm_llm_job_step(j, event); /* it may point into the arena of the call */
    dgm_arena_free(c->arena);
}

/* The loop reads texts and files: data is JSON text for the model. A result of one data part is `value`. */
void dgm_llm_set_result_parts(struct llm_tool_call *c, dgm_parts parts, dgm_llm_result *r)
{
    dgm_part *list = dgm_new_n(c->arena, dgm_part, parts.n + 1);
    if (parts.n == 0) {
        r->text = DGM_STR("");
        return;
    }
    if (parts.n == 1 && parts.at[0].kind == DGM_PART_DATA) {
        r->value = parts.at[0].data;
        return;
    }
    for (size_t i = 0; i < parts.n; i++) {
        list[i] = parts.at[i];
        if (list[i].kind == DGM_PART_DATA)
            list[i] = (dgm_part){.kind = DGM_PART_TEXT,
                                 .content = dgm_json_text_in(c->arena, parts.at[i].data)};
    }
    r->parts = (dgm_parts){list, parts.n};
}

static void own_on_done(void *user, const dgm_tool_result *r)
{
    struct llm_tool_call *c = user;
    dgm_llm_event event = {.kind = DGM_LLM_TOOL_DONE,
                           .result = {.call_id = c->id, .is_error = r->is_error}};
    dgm_llm_set_result_parts(c, r->parts, &event.result);
    if (r->detail.n)
        dgm_run_note(c->job->run, "the tool %.*s: %.*s", DGM_P(c->name), DGM_P(r->detail));
    if (r->is_outcome_unknown)
        event = (dgm_llm_event){.kind = DGM_LLM_TOOL_UNKNOWN, .call_id = c->id};
    dgm_llm_tool_finish(c, &event);
}

static void own_start(struct llm_tool_call *c, const dgm_llm_tool_run *run)
{
    const dgm_run *r = c->job->run;
    dgm_tool_input input = {.call_id = run->call_id,
                            .key = run->key,
                            .arguments = run->arguments,
                            .run = r->input,
                            .traceparent =
                                dgm_run_traceparent(c->arena, r->input->task_id, run->call_id)};
    c->own = dgm_tool_start(c->setting->tool, &input, r->loop, (dgm_tool_handler){own_on_done, c});
}

void dgm_llm_tool_start(struct llm_job *j, const dgm_llm_tool_run *run)
{
    const struct llm_tool *t = find_tool(j, run->name);
    if (!t || !t->setting) {
        dgm_llm_job_tool_failed(j, run->call_id, DGM_STR("there is no tool of this name now"));
        return;
    }
    struct llm_tool_call *c = call_new(j, t->setting, run->call_id, run->key, run->name);
    switch (t->setting->type) {
    case LLM_TOOL_OWN: own_start(c, run); break;
    case LLM_TOOL_MCP: dgm_llm_mcp_start(c, run); break;
    case LLM_TOOL_LOCAL_AGENT:
    case LLM_TOOL_REMOTE_AGENT: dgm_llm_agent_start(c, run); break;
    }
}

void dgm_llm_tool_answer(struct llm_job *j, const dgm_llm_answer *answer)
{
    struct llm_tool_call *c = find_call(j, answer->call_id);
    const struct llm_tool *t = find_tool(j, answer->name);
    if (!c && (c = dgm_llm_mcp_find_parked(j, answer->key))) {
        c->job = j;
        c->next = j->calls;
        j->calls = c;
    }
    if (!c && (!t || !t->setting)) {
        dgm_llm_job_tool_failed(j, answer->call_id, DGM_STR("there is no tool of this name now"));
        return;
    }
    if (!c)
        c = call_new(j, t->setting, answer->call_id, answer->key, answer->name);
    switch (c->setting->type) {
    case LLM_TOOL_OWN: dgm_llm_job_tool_unknown(j, answer->call_id); break; /* they never ask */
    case LLM_TOOL_MCP: dgm_llm_mcp_answer(c, answer); break;
    case LLM_TOOL_LOCAL_AGENT:
    case LLM_TOOL_REMOTE_AGENT: dgm_llm_agent_answer(c, answer); break;
    }
}

void dgm_llm_tool_stop(struct llm_job *j, dgm_str call_id)
{
    struct llm_tool_call *c = find_call(j, call_id);
    if (c)
        call_stop(c);
}

void dgm_llm_tools_stop(struct llm_job *j)
{
    while (j->listings) {
        dgm_mcp_list_cancel(j->listings->listing);
        j->listings = j->listings->next;
    }
    while (j->calls)
        call_stop(j->calls);
    dgm_llm_agents_done(j);
}
