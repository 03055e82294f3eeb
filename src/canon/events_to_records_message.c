/* canon/events_to_records_message.c - whole messages of AG-UI as messages of A2A; what a run cost. */
#include "canon/events_to_records_int.h"
#include "json/build.h"

void dgm_to_put_call(dgm_buf *b, dgm_arena *a, dgm_str id, dgm_str name, dgm_str arguments)
{
    dgm_buf_add_lit(b, "{\"call_id\":");
    dgm_json_put_str(b, id);
    dgm_buf_add_lit(b, ",\"name\":");
    dgm_json_put_str(b, name);
    dgm_buf_add_lit(b, ",\"arguments\":");
    dgm_json_put(b, dgm_content_arguments_value(a, arguments.n ? arguments : DGM_STR("{}")));
    dgm_buf_add_char(b, '}');
}

/* ---- parts ---------------------------------------------------------------------------------------------- */

static void to_records_add_part(dgm_arena *a, dgm_message *m, dgm_part part)
{
    m->parts.at = dgm_list_grow(a, m->parts.at, m->parts.n, sizeof *m->parts.at);
    m->parts.at[m->parts.n++] = part;
}

static void to_records_add_text(dgm_arena *a, dgm_message *m, dgm_str text)
{
    to_records_add_part(a, m,
                        (dgm_part){.kind = DGM_PART_TEXT, .content = text.p ? text : DGM_STR("")});
}

static void to_records_add_content(dgm_arena *a, dgm_message *m, const dgm_canon_content *c)
{
    if (c->kind == DGM_CANON_CONTENT_TEXT)
        to_records_add_text(a, m, c->text);
    for (size_t i = 0; c->kind == DGM_CANON_CONTENT_PARTS && i < c->parts.n; i++) {
        const dgm_canon_part *p = &c->parts.at[i];
        if (p->kind == DGM_CANON_PART_TEXT)
            to_records_add_text(a, m, p->text);
        else
            to_records_add_part(
                a, m,
                (dgm_part){.kind = p->source.kind == DGM_CANON_SOURCE_DATA ? DGM_PART_RAW
                                                                           : DGM_PART_URL,
                           .content = p->source.value,
                           .media_type = p->source.mime_type,
                           .filename = dgm_json_str_member(p->metadata, "filename")});
    }
}

static void add_calls(dgm_arena *a, dgm_message *m, const dgm_canon_calls *calls)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"tool_calls\":[");
    for (size_t i = 0; i < calls->n; i++) {
        if (i)
            dgm_buf_add_char(&b, ',');
        dgm_to_put_call(&b, a, calls->at[i].id, calls->at[i].name, calls->at[i].arguments);
    }
    dgm_buf_add_lit(&b, "]}");
    to_records_add_part(
        a, m,
        (dgm_part){.kind = DGM_PART_DATA, .data = dgm_json_parse_trusted(a, dgm_buf_str(&b))});
    dgm_buf_done(&b);
}

static void to_records_add_result(dgm_arena *a, dgm_message *m, const dgm_canon_message *from)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"tool_results\":[{\"call_id\":");
    dgm_json_put_str(&b, from->tool_call_id);
    dgm_buf_add_lit(&b, ",\"output\":");
    dgm_buf text;
    dgm_buf_init(&text, SIZE_MAX);
    dgm_buf_add_str(&text, from->content.text);
    for (size_t i = 0; from->content.kind == DGM_CANON_CONTENT_PARTS && i < from->content.parts.n;
         i++)
        dgm_buf_add_str(&text, from->content.parts.at[i].text);
    dgm_json_put_str(&b, dgm_buf_str(&text));
    dgm_buf_done(&text);
    dgm_buf_add_lit(&b, "}]}");
    to_records_add_part(
        a, m,
        (dgm_part){.kind = DGM_PART_DATA, .data = dgm_json_parse_trusted(a, dgm_buf_str(&b))});
    dgm_buf_done(&b);
}

/* ---- messages ------------------------------------------------------------------------------------------- */

bool dgm_to_message(dgm_arena *a, const dgm_canon_message *from, dgm_mint *mint, dgm_message *ret)
{
    dgm_message m = {.message_id = from->id.n ? from->id : dgm_mint_id(mint, a),
                     .role = DGM_ROLE_USER,
                     .metadata = from->metadata};
    dgm_member mark = {DGM_STR(DGM_META_ROLE), NULL};
    switch (from->role) {
    case DGM_CANON_ROLE_NONE:
    case DGM_CANON_REASONING:
    case DGM_CANON_ACTIVITY: return false;
    case DGM_CANON_SYSTEM:
    case DGM_CANON_DEVELOPER: /* A2A has no such roles: marked, so that the way back restores them */
        mark.value = dgm_json_make_string(a, from->role == DGM_CANON_SYSTEM ? DGM_STR("system")
                                                                            : DGM_STR("developer"));
        m.metadata = dgm_json_object(a, &mark, 1);
        to_records_add_content(a, &m, &from->content);
        break;
    case DGM_CANON_USER: to_records_add_content(a, &m, &from->content); break;
    case DGM_CANON_TOOL: to_records_add_result(a, &m, from); break;
    case DGM_CANON_ASSISTANT:
        m.role = DGM_ROLE_AGENT;
        if (from->content.text.n || !from->tool_calls.n)
            to_records_add_text(a, &m, from->content.text);
        if (from->tool_calls.n)
            add_calls(a, &m, &from->tool_calls);
        break;
    }
    if (!m.parts.n)
        to_records_add_text(a, &m, DGM_STR(""));
    *ret = m;
    return true;
}

size_t dgm_messages_tail(const dgm_canon_messages *messages)
{
    size_t i = messages->n;
    while (i && messages->at[i - 1].role != DGM_CANON_ASSISTANT)
        i--;
    return i;
}

void dgm_messages_to_send(dgm_arena *a, const dgm_canon_messages *messages, dgm_mint *mint,
                          dgm_message *ret_message)
{
    dgm_message m = {.role = DGM_ROLE_USER}, one;
    size_t i = dgm_messages_tail(messages);
    for (i = i < messages->n ? i : messages->n - (i > 0); i < messages->n; i++) {
        if (!dgm_to_message(a, &messages->at[i], mint, &one))
            continue;
        m.role = one.role;
        m.message_id = one.message_id;
        m.metadata = one.metadata;
        for (size_t k = 0; k < one.parts.n; k++) {
            m.parts.at = dgm_list_grow(a, m.parts.at, m.parts.n, sizeof *m.parts.at);
            m.parts.at[m.parts.n++] = one.parts.at[k];
        }
    }
    if (!m.message_id.n)
        m.message_id = dgm_mint_id(mint, a);
    *ret_message = m;
}

/* ---- usage ---------------------------------------------------------------------------------------------- */

const dgm_json *dgm_canon_usage_value(dgm_arena *a, const dgm_canon_usage *u)
{
    static const struct {
        size_t at;
        const char *name;
    } counts[] = {
        {offsetof(dgm_canon_usage, input_tokens), "inputTokens"},
        {offsetof(dgm_canon_usage, output_tokens), "outputTokens"},
        {offsetof(dgm_canon_usage, total_tokens), "totalTokens"},
        {offsetof(dgm_canon_usage, reasoning_tokens), "reasoningTokens"},
        {offsetof(dgm_canon_usage, cached_input_tokens), "cachedInputTokens"},
        {offsetof(dgm_canon_usage, cache_write_input_tokens), "cacheWriteInputTokens"},
    };
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_object(&b, NULL);
    if (u->provider.n)
        dgm_json_build_str(&b, "provider", u->provider);
    if (u->model.n)
        dgm_json_build_str(&b, "model", u->model);
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        const dgm_opt_long *count = (const void *)((const char *)u + counts[k].at);
        if (count->set)
            dgm_json_build_int(&b, counts[k].name, count->value);
    }
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

void dgm_to_usage(dgm_events_to_records *m, const dgm_canon_usages *usages)
{
    for (size_t i = 0; i < usages->n; i++) {
        dgm_internal internal = {.kind = DGM_INTERNAL_USAGE,
                                 .value = dgm_canon_usage_value(m->scratch, &usages->at[i])};
        dgm_to_internal(m, &internal);
    }
}
