/* backend/llm/tool.c - opening, checking and ending: the part that all configured tools share. */
#include "backend/llm/tool_int.h"
#include "base/limits.h"

#include <stdlib.h>

static const dgm_tool_kind *const kinds[] = {&dgm_tool_exec, &dgm_tool_http};

bool dgm_tool_is_name(dgm_str name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool is_letter = (c | 32) >= 'a' && (c | 32) <= 'z';
        if (!is_letter && !(c >= '0' && c <= '9') && c != '_' && c != '-')
            return false;
    }
    return name.n > 0 && name.n <= 64;
}

/* ---- opening --------------------------------------------------------------------------------------------- */

static void tool_unref(dgm_tool *t)
{
    if (atomic_fetch_sub(&t->refs, 1) > 1)
        return;
    dgm_schema_free(t->schema);
    dgm_arena_free(t->arena); /* the tool is in it */
}

static dgm_code read_parameters(dgm_tool *t, const dgm_json *parameters, dgm_err *err)
{
    static const char none[] = "{\"type\":\"object\",\"properties\":{}}";
    const dgm_at *at = DGM_AT_LIT(NULL, "parameters");
    t->info.parameters = parameters ? dgm_json_copy(t->arena, parameters)
                                    : dgm_json_parse_trusted(t->arena, dgm_str_from(none));
    dgm_code rc = dgm_schema_compile(t->info.parameters, &t->schema, err);
    if (rc && err)
        dgm_err_below(at, err);
    return rc;
}

static dgm_code read_common(dgm_tool *t, const dgm_tool_settings *s, dgm_err *err)
{
    if (!dgm_tool_is_name(s->name))
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "name"),
                        "invalid name of a tool: write 1 to 64 letters, digits, _ and -");
    t->info.name = dgm_arena_dup(t->arena, s->name);
    t->info.description = dgm_arena_dup(t->arena, s->description);
    t->info.needs_approval = s->approve;
    t->info.is_idempotent = s->idempotent;
    t->timeout = s->timeout;
    return read_parameters(t, s->parameters, err);
}

static dgm_code tool_open_kind(dgm_tool *t, const dgm_json *config,
                               const dgm_agent_options *options, dgm_err *err)
{
    dgm_tool_settings s = {.timeout = DGM_TOOL_TIMEOUT};
    dgm_code rc = t->kind->open(t, config, options, &s, err);
    if (!rc)
        rc = read_common(t, &s, err);
    if (rc && err)
        dgm_err_below(DGM_AT(NULL, dgm_str_from(t->kind->name)), err);
    return rc;
}

dgm_code dgm_tool_open(const dgm_json *entry, const dgm_agent_options *options, dgm_tool **ret_tool,
                       dgm_err *err)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const dgm_json *config = dgm_json_get(entry, dgm_str_from(kinds[i]->name));
        if (!config)
            continue;
        dgm_arena *a = dgm_arena_new();
        dgm_tool *t = dgm_new(a, dgm_tool);
        t->arena = a;
        t->kind = kinds[i];
        atomic_init(&t->refs, 1);
        dgm_code rc = tool_open_kind(t, config, options, err);
        if (rc)
            tool_unref(t);
        else
            *ret_tool = t;
        return rc;
    }
    return dgm_fail(err, DGM_BAD_PARAMS, NULL, "unknown kind of tool. Allowed values: exec, http");
}

void dgm_tool_close(dgm_tool *t)
{
    if (t)
        tool_unref(t);
}

const dgm_tool_info *dgm_tool_info_of(const dgm_tool *t)
{
    return &t->info;
}

/* ---- arguments ------------------------------------------------------------------------------------------- */

bool dgm_tool_check(const dgm_tool *t, const dgm_json *arguments, dgm_arena *a, dgm_str *ret_why)
{
    dgm_schema_mistakes mistakes;
    dgm_err err = {0};
    dgm_buf b;
    dgm_code rc = dgm_schema_check(t->schema, arguments, &mistakes, &err);
    if (!rc)
        return true;
    dgm_buf_init(&b, (size_t)8 << 10);
    dgm_buf_printf(&b, "The arguments of %.*s are invalid. Correct them and call it again.\n",
                   DGM_P(t->info.name));
    if (rc == DGM_BAD_PARAMS)
        dgm_schema_explain(&mistakes, &b);
    else
        dgm_buf_printf(&b, "%s", err.msg);
    *ret_why = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return false;
}

/* ---- calls ----------------------------------------------------------------------------------------------- */

static void on_call_closed(void *arg)
{
    dgm_tool_call *c = arg;
    dgm_tool *t = c->tool;
    dgm_arena_free(c->arena); /* the call is in it */
    tool_unref(t);
}

void dgm_tool_call_end(dgm_tool_call *c)
{
    c->is_ended = true;
    dgm_timer_close(&c->timer, on_call_closed, c);
}

static void tool_report(dgm_tool_call *c, const dgm_tool_result *result)
{
    if (!c->is_canceled)
        c->handler.on_done(c->handler.user, result);
    dgm_tool_call_end(c);
}

void dgm_tool_set_failure(dgm_tool_call *c, dgm_str why, bool is_outcome_unknown)
{
    if (c->failure.n)
        return; /* the first one is the reason of the others */
    c->failure = why;
    c->is_outcome_unknown = is_outcome_unknown;
}

void dgm_tool_fail(dgm_tool_call *c)
{
    dgm_part part = {.kind = DGM_PART_TEXT, .content = c->failure};
    tool_report(c, &(dgm_tool_result){.parts = {&part, 1},
                                      .is_error = true,
                                      .is_outcome_unknown = c->is_outcome_unknown,
                                      .detail = c->detail});
}

void dgm_tool_fail_later(dgm_tool_call *c)
{
    dgm_timer_start(&c->timer, 0);
}

void dgm_tool_finish(dgm_tool_call *c, dgm_part *part)
{
    tool_report(c, &(dgm_tool_result){.parts = {part, part != NULL}});
}

void dgm_tool_finish_text(dgm_tool_call *c, dgm_str text, bool may_be_json)
{
    dgm_part part = {.kind = DGM_PART_TEXT, .content = text};
    yyjson_val *v;
    if (may_be_json && dgm_json_count_values(text, DGM_MAX_JSON_VALUES) <= DGM_MAX_JSON_VALUES &&
        !dgm_json_read(c->arena, text, DGM_MAX_TOOL_OUTPUT_BYTES, "tool_output_bytes", &v, NULL))
        part = (dgm_part){.kind = DGM_PART_DATA, .data = v};
    dgm_tool_finish(c, text.n ? &part : NULL);
}

static void on_call_timer(void *arg)
{
    dgm_tool_call *c = arg;
    if (c->failure.n) {
        dgm_tool_fail(c);
        return;
    }
    dgm_tool_set_failure(
        c,
        dgm_arena_printf(c->arena,
                         "The tool took longer than %g seconds and was stopped. A part of its work "
                         "may be done.",
                         c->tool->timeout),
        true);
    c->tool->kind->on_timeout(c);
}

dgm_tool_call *dgm_tool_start(dgm_tool *t, const dgm_tool_input *input, dgm_loop *loop,
                              dgm_tool_handler handler)
{
    dgm_arena *a = dgm_arena_new();
    dgm_tool_call *c = dgm_new(a, dgm_tool_call);
    dgm_tool_input in = *input;
    *c = (dgm_tool_call){.tool = t, .arena = a, .loop = loop, .handler = handler};
    atomic_fetch_add(&t->refs, 1);
    dgm_timer_init(loop, &c->timer, on_call_timer, c);
    if (!in.arguments)
        in.arguments = dgm_json_parse_trusted(a, DGM_STR("{}"));
    if (!in.key.n)
        in.key = in.call_id;
    if (!dgm_tool_check(t, in.arguments, a, &c->failure)) {
        dgm_tool_fail_later(c);
        return c;
    }
    dgm_timer_start(&c->timer, (uint64_t)(t->timeout * 1000) + 1);
    t->kind->start(c, &in);
    return c;
}

void dgm_tool_cancel(dgm_tool_call *c)
{
    c->is_canceled = true;
    if (c->data)
        c->tool->kind->cancel(c);
    else /* its failure was about to be reported */
        dgm_tool_call_end(c);
}
