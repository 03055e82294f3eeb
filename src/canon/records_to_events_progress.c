/*
 * canon/records_to_events_progress.c - what a run shows beside its answer: how it is going, what it thinks, its steps,
 * its state, those who work for it, what it cost.
 */
#include "base/limits.h"
#include "canon/records_to_events_int.h"

/* ---- status texts ------------------------------------------------------------------------------------- */

static void activity(dgm_records_to_events *f, const dgm_json *content)
{
    dgm_canon_event e = {.kind = DGM_CANON_ACTIVITY_SNAPSHOT};
    e.activity.message_id = dgm_arena_printf(f->scratch, "%.*s-status", DGM_P(f->run_id));
    e.activity.activity_type = DGM_STR("a2a-status");
    e.activity.content = content;
    dgm_from_out(f, &e);
}

/* The first report of an agent means that it starts, the second that it is done. */
static void invoke(dgm_records_to_events *f, const dgm_json *agent)
{
    dgm_str name = dgm_json_str_member(agent, "name"), url = dgm_json_str_member(agent, "url");
    dgm_canon_event e = {.kind = DGM_CANON_SUBAGENT_FINISHED};
    for (size_t i = 0; i < f->n_subagents; i++) {
        struct from_subagent *s = &f->subagents[i];
        if (s->open && dgm_str_eq(s->name, name) && dgm_str_eq(s->url, url)) {
            s->open = false;
            e.subagent_run_id = s->run_id;
            dgm_from_out(f, &e);
            return;
        }
    }
    if (f->n_subagents == DGM_MAX_OPEN_ITEMS)
        return;
    f->subagents =
        dgm_list_reserve(f->subagents, f->n_subagents, &f->cap_subagents, sizeof *f->subagents);
    struct from_subagent *s = &f->subagents[f->n_subagents++];
    *s = (struct from_subagent){dgm_arena_dup(f->arena, name), dgm_arena_dup(f->arena, url),
                                dgm_from_id(f, 's'), true};
    e.kind = DGM_CANON_SUBAGENT_STARTED;
    e.subagent_run_id = s->run_id;
    e.subagent.name = s->name.n ? s->name : DGM_STR("agent");
    e.subagent.description = s->url.n ? s->url : (dgm_str){0};
    dgm_from_out(f, &e);
}

void dgm_from_close_subagents(dgm_records_to_events *f)
{
    for (size_t i = 0; i < f->n_subagents; i++) {
        if (!f->subagents[i].open)
            continue;
        f->subagents[i].open = false;
        dgm_canon_event e = {.kind = DGM_CANON_SUBAGENT_FINISHED,
                             .subagent_run_id = f->subagents[i].run_id};
        dgm_from_out(f, &e);
    }
}

static bool is_indicator(const dgm_part *p)
{
    return p->kind == DGM_PART_DATA &&
           dgm_str_is(dgm_json_str_member(p->data, "type"), "status-indicator");
}

static const dgm_json *indicator_of(dgm_records_to_events *f, dgm_str text)
{
    dgm_member members[] = {
        {DGM_STR("type"), dgm_json_make_string(f->scratch, DGM_STR("status-indicator"))},
        {DGM_STR("text"), dgm_json_make_string(f->scratch, text)},
        {DGM_STR("displayAs"), dgm_json_make_string(f->scratch, DGM_STR("loading"))},
    };
    return dgm_json_object(f->scratch, members, 3);
}

void dgm_from_status_progress(dgm_records_to_events *f, const dgm_message *m)
{
    bool others;
    dgm_str text = dgm_content_text(f->scratch, &m->parts, &others);
    if (text.n)
        activity(f, indicator_of(f, text));
    for (size_t i = 0; others && i < m->parts.n; i++) {
        const dgm_part *p = &m->parts.at[i];
        if (!is_indicator(p))
            continue;
        const dgm_json *agent = dgm_json_get(p->data, DGM_STR("agent"));
        if (yyjson_is_obj((yyjson_val *)(uintptr_t)agent))
            invoke(f, agent);
        activity(f, p->data);
    }
}

/* ---- reasoning ------------------------------------------------------------------------------------------- */

static void reasoning_event(dgm_records_to_events *f, dgm_canon_kind kind, dgm_str delta)
{
    dgm_canon_event e = {.kind = kind};
    e.text.message_id = f->reasoning;
    e.text.delta = delta;
    if (kind == DGM_CANON_REASONING_MESSAGE_START)
        e.text.role = DGM_CANON_REASONING;
    dgm_from_out(f, &e);
}

void dgm_from_reasoning(dgm_records_to_events *f, dgm_str text)
{
    if (!text.n)
        return;
    if (!f->reasoning.n) {
        dgm_from_settle_texts(f);
        f->reasoning = dgm_from_id(f, 't');
        reasoning_event(f, DGM_CANON_REASONING_START, (dgm_str){0});
        reasoning_event(f, DGM_CANON_REASONING_MESSAGE_START, (dgm_str){0});
    }
    reasoning_event(f, DGM_CANON_REASONING_MESSAGE_CONTENT, text);
}

void dgm_from_end_reasoning(dgm_records_to_events *f)
{
    if (!f->reasoning.n)
        return;
    reasoning_event(f, DGM_CANON_REASONING_MESSAGE_END, (dgm_str){0});
    reasoning_event(f, DGM_CANON_REASONING_END, (dgm_str){0});
    f->reasoning = (dgm_str){0};
}

/* ---- steps ------------------------------------------------------------------------------------------------- */

void dgm_from_step(dgm_records_to_events *f, dgm_str name, bool begins)
{
    size_t i = 0;
    while (i < f->n_steps && !dgm_str_eq(f->steps[i], name))
        i++;
    if (begins == (i < f->n_steps))
        return; /* open already, or not at all */
    if (begins && f->n_steps == DGM_MAX_OPEN_ITEMS)
        return;
    dgm_canon_event e = {.kind = begins ? DGM_CANON_STEP_STARTED : DGM_CANON_STEP_FINISHED};
    e.step.name = begins ? name : f->steps[i];
    e.step.thread_id = f->thread_id;
    e.step.run_id = f->run_id;
    if (begins) {
        f->steps = dgm_list_reserve(f->steps, f->n_steps, &f->cap_steps, sizeof *f->steps);
        f->steps[f->n_steps++] = dgm_arena_dup(f->arena, name);
    } else {
        f->steps[i] = f->steps[--f->n_steps];
    }
    dgm_from_out(f, &e);
}

/* ---- state --------------------------------------------------------------------------------------------------- */

void dgm_from_state(dgm_records_to_events *f, dgm_str name, const dgm_json *value)
{
    dgm_canon_event e = {.kind = DGM_CANON_STATE_SNAPSHOT};
    if (!name.n) {
        e.state.snapshot = value;
        dgm_from_out(f, &e);
        return;
    }
    /* one member of it: `add` also replaces */
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "[{\"op\":\"add\",\"path\":\"/");
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] == '~' || name.p[i] == '/')
            dgm_buf_add_str(&b, name.p[i] == '~' ? DGM_STR("~0") : DGM_STR("~1"));
        else
            dgm_json_put_chars(&b, (dgm_str){name.p + i, 1});
    }
    dgm_buf_add_lit(&b, "\",\"value\":");
    dgm_json_put(&b, value);
    dgm_buf_add_lit(&b, "}]");
    e.kind = DGM_CANON_STATE_DELTA;
    e.state_delta.patch = dgm_json_parse_trusted(f->scratch, dgm_buf_str(&b));
    dgm_buf_done(&b);
    dgm_from_out(f, &e);
}

/* ---- usage ---------------------------------------------------------------------------------------------------- */

/* The names of each count in AG-UI, OpenAI Responses and Chat Completions. */
static const struct {
    size_t at;
    const char *names[3];
    const char *details[2]; /* the object that holds it, for the two latter */
} counts[] = {
    {offsetof(dgm_canon_usage, input_tokens),
     {"inputTokens", "input_tokens", "prompt_tokens"},
     {NULL, NULL}},
    {offsetof(dgm_canon_usage, output_tokens),
     {"outputTokens", "output_tokens", "completion_tokens"},
     {NULL, NULL}},
    {offsetof(dgm_canon_usage, total_tokens),
     {"totalTokens", "total_tokens", "total_tokens"},
     {NULL, NULL}},
    {offsetof(dgm_canon_usage, reasoning_tokens),
     {"reasoningTokens", "reasoning_tokens", "reasoning_tokens"},
     {"output_tokens_details", "completion_tokens_details"}},
    {offsetof(dgm_canon_usage, cached_input_tokens),
     {"cachedInputTokens", "cached_tokens", "cached_tokens"},
     {"input_tokens_details", "prompt_tokens_details"}},
    {offsetof(dgm_canon_usage, cache_write_input_tokens),
     {"cacheWriteInputTokens", "cache_write_input_tokens", "cache_creation_input_tokens"},
     {NULL, NULL}},
};

static void add_count(const dgm_json *value, size_t row, dgm_canon_usage *u)
{
    dgm_opt_long *to = (dgm_opt_long *)(void *)((char *)u + counts[row].at);
    for (int i = 0; i < 3; i++) {
        const dgm_json *in = value;
        if (i && counts[row].details[i - 1])
            in = dgm_json_get(value, dgm_str_from(counts[row].details[i - 1]));
        const dgm_json *v = dgm_json_get(in, dgm_str_from(counts[row].names[i]));
        int64_t n;
        if (v && dgm_json_int(v, &n) && n >= 0 && n <= INT64_MAX / 4 &&
            to->value <= INT64_MAX / 4) {
            *to = (dgm_opt_long){true, to->value + n};
            return;
        }
    }
}

void dgm_from_usage(dgm_records_to_events *f, const dgm_json *value)
{
    dgm_str provider = dgm_json_str_member(value, "provider"),
            model = dgm_json_str_member(value, "model");
    size_t i = 0;
    while (i < f->usage.n && !(dgm_str_eq(f->usage.at[i].provider, provider) &&
                               dgm_str_eq(f->usage.at[i].model, model)))
        i++;
    if (i == DGM_MAX_OPEN_ITEMS)
        return;
    if (i == f->usage.n) { /* one entry per provider and model */
        f->usage.at = dgm_list_grow(f->arena, f->usage.at, f->usage.n, sizeof *f->usage.at);
        f->usage.n++;
        if (provider.n)
            f->usage.at[i].provider = dgm_arena_dup(f->arena, provider);
        if (model.n)
            f->usage.at[i].model = dgm_arena_dup(f->arena, model);
    }
    for (size_t row = 0; row < sizeof counts / sizeof *counts; row++)
        add_count(value, row, &f->usage.at[i]);
}
