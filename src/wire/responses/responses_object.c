/* wire/responses/responses_object.c - writes items and the response object; see responses_out.h. */
#include "base/limits.h"
#include "wire/responses/responses_out.h"

#define LIT(lit) dgm_buf_add_lit(&e->out, lit)

/* In quotes: it is escaped already. */
static void put_escaped(struct responses_encoder *e, const dgm_buf *text)
{
    dgm_buf_add_char(&e->out, '"');
    dgm_buf_add_str(&e->out, dgm_buf_str(text));
    dgm_buf_add_char(&e->out, '"');
}

/* ---- items ------------------------------------------------------------------------------------------------ */

void dgm_responses_put_text(struct responses_encoder *e, const struct responses_item *it)
{
    bool first = !it->follows;
    dgm_buf_add_char(&e->out, '"');
    for (size_t i = it->first; i != DGM_RESPONSES_NONE; i = e->pieces[i].next) {
        if (!e->pieces[i].text.n)
            continue; /* taken back */
        if (!first)
            LIT("\\n\\n");
        dgm_buf_add_str(&e->out, dgm_buf_str(&e->pieces[i].text));
        first = false;
    }
    dgm_buf_add_char(&e->out, '"');
}

void dgm_responses_put_part(struct responses_encoder *e, const struct responses_item *it,
                            bool empty)
{
    if (it->kind == RESPONSES_REFUSAL)
        LIT("{\"type\":\"refusal\",\"refusal\":");
    else
        LIT("{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":");
    if (empty)
        LIT("\"\"");
    else
        dgm_responses_put_text(e, it);
    dgm_buf_add_char(&e->out, '}');
}

void dgm_responses_put_summary(struct responses_encoder *e, const struct responses_piece *p,
                               bool empty)
{
    LIT("{\"type\":\"summary_text\",\"text\":");
    if (empty)
        LIT("\"\"");
    else
        put_escaped(e, &p->text);
    dgm_buf_add_char(&e->out, '}');
}

static void put_reasoning(struct responses_encoder *e, const struct responses_item *it)
{
    LIT(",\"type\":\"reasoning\",\"summary\":[");
    for (size_t i = it->first; it->status && i != DGM_RESPONSES_NONE; i = e->pieces[i].next) {
        if (i != it->first)
            dgm_buf_add_char(&e->out, ',');
        dgm_responses_put_summary(e, &e->pieces[i], false);
    }
    dgm_buf_add_char(&e->out, ']');
    if (it->encrypted.p) {
        LIT(",\"encrypted_content\":");
        dgm_json_put_str(&e->out, it->encrypted);
    }
}

static void responses_object_put_call(struct responses_encoder *e, const struct responses_item *it)
{
    bool mcp = it->kind == RESPONSES_MCP;
    if (mcp)
        LIT(",\"type\":\"mcp_call\",\"approval_request_id\":null,\"arguments\":");
    else
        LIT(",\"type\":\"function_call\",\"arguments\":");
    if (it->status)
        put_escaped(e, &it->text);
    else
        LIT("\"\"");
    if (mcp) {
        LIT(",\"server_label\":");
        dgm_json_put_str(&e->out, e->model);
        LIT(",\"error\":");
        if (it->failed && it->status)
            put_escaped(e, &it->output);
        else
            LIT("null");
        LIT(",\"output\":");
        if (it->answered && !it->failed && it->status)
            put_escaped(e, &it->output);
        else
            LIT("null");
    } else {
        LIT(",\"call_id\":");
        dgm_json_put_str(&e->out, it->call_id);
    }
    LIT(",\"name\":");
    dgm_json_put_str(&e->out, it->name);
}

/* Not done yet: without what it will hold. */
void dgm_responses_put_item(struct responses_encoder *e, const struct responses_item *it)
{
    if (it->kind == RESPONSES_OTHER) {
        dgm_buf_add_str(&e->out, dgm_buf_str(&it->text));
        return;
    }
    LIT("{\"id\":");
    dgm_json_put_str(&e->out, it->id);
    switch (it->kind) {
    case RESPONSES_OTHER: break;
    case RESPONSES_MESSAGE:
    case RESPONSES_REFUSAL:
        LIT(",\"type\":\"message\",\"role\":\"assistant\",\"content\":[");
        if (it->status)
            dgm_responses_put_part(e, it, false);
        dgm_buf_add_char(&e->out, ']');
        break;
    case RESPONSES_REASONING: put_reasoning(e, it); break;
    case RESPONSES_FUNCTION:
    case RESPONSES_MCP: responses_object_put_call(e, it); break;
    case RESPONSES_IMAGE:
        LIT(",\"type\":\"image_generation_call\",\"result\":");
        if (it->status)
            put_escaped(e, &it->text);
        else
            LIT("null");
        break;
    }
    if (it->kind != RESPONSES_REASONING) { /* which has none while it is made */
        LIT(",\"status\":\"");
        dgm_buf_add_str(&e->out, dgm_str_from(it->status ? it->status : "in_progress"));
        dgm_buf_add_char(&e->out, '"');
    }
    dgm_buf_add_char(&e->out, '}');
}

/* ---- the response: what is always the same ------------------------------------------------------------------ */

static const struct {
    dgm_str name;
    size_t bytes; /* of its text in responses_defaults */
} repeated[] = {
#define X(name, value) {{name, sizeof name - 1}, sizeof ",\"" name "\":" value - 1},
    DGM_RESPONSES_REPEATED(X)
#undef X
};

/* All of them as they are written when the request has not one. */
#define X(name, value) ",\"" name "\":" value
static const char responses_defaults[] = DGM_RESPONSES_REPEATED(X);
#undef X

size_t dgm_responses_repeated_row(dgm_str name)
{
    size_t i = 0;
    while (i < DGM_RESPONSES_N_REPEATED && !dgm_str_eq(repeated[i].name, name))
        i++;
    return i;
}

/* What the response repeats, and where the members come from: a response that was read, else the request. */
struct responses_repeats {
    const dgm_canon_input *input;
    dgm_str parent;
    const dgm_json *rows[DGM_RESPONSES_N_REPEATED];
    const dgm_json *model, *metadata;
    dgm_buf others; /* members of no place of their own, as they are written */
};

static void make_tail(struct responses_encoder *e, const struct responses_repeats *r)
{
    const char *text = responses_defaults,
               *from = text; /* from: defaults that are not written yet */
    dgm_buf b;
    dgm_writer w = {.out = &b, .format = DGM_FORMAT_RESPONSES};
    dgm_buf_init(&b, DGM_MAX_RECORD_BYTES);
    dgm_buf_add_lit(&b, ",\"model\":");
    dgm_json_put_str(&b, e->model);
    for (size_t i = 0; i < DGM_RESPONSES_N_REPEATED; text += repeated[i++].bytes) {
        const dgm_json *v = r->rows[i];
        dgm_str name = repeated[i].name;
        bool tools = r->input && dgm_str_is(name, "tools") && (r->input->tools.n || !v);
        bool parent = !v && r->parent.n && dgm_str_is(name, "previous_response_id");
        if (!v && !tools && !parent)
            continue;
        dgm_buf_add(&b, from, (size_t)(text - from));
        from = text + repeated[i].bytes;
        dgm_buf_add_lit(&b, ",\"");
        dgm_buf_add_str(&b, name);
        dgm_buf_add_lit(&b, "\":");
        if (tools)
            dgm_responses_put_tools(&w, &r->input->tools, v);
        else if (parent)
            dgm_responses_put_id(&b, "resp_", r->parent);
        else
            dgm_json_put(&b, v);
    }
    dgm_buf_add(&b, from, (size_t)(text - from));
    dgm_buf_add_str(&b, dgm_buf_str(&r->others));
    dgm_buf_add_char(&b, '}');
    if ((b.over || r->others.over) && !e->rc)
        e->rc = dgm_fail(e->err, DGM_TOO_LARGE, NULL,
                         "the request members in the response are longer than the limit "
                         "record_bytes of %zu",
                         DGM_MAX_RECORD_BYTES);
    e->tail = dgm_arena_dup(e->arena, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

void dgm_responses_describe(struct responses_encoder *e, const dgm_canon_event *started)
{
    struct responses_repeats r = {0};
    const dgm_extra *sources[2] = {NULL, NULL};
    dgm_buf_init(&r.others, DGM_MAX_RECORD_BYTES);
    dgm_str run_id = started ? started->run_started.run_id : (dgm_str){0};
    e->run_id = run_id.n ? dgm_arena_dup(e->arena, run_id) : dgm_mint_id(&e->params.mint, e->arena);
    e->id = dgm_str_starts(e->run_id, DGM_STR("resp_"))
                ? e->run_id
                : dgm_arena_join(e->arena, DGM_STR("resp_"), e->run_id);
    if (started) {
        e->thread_id = dgm_arena_dup(e->arena, started->run_started.thread_id);
        r.input = started->run_started.input;
        r.parent = started->run_started.parent_run_id;
        sources[0] = started->extra;
        sources[1] = r.input ? r.input->extra : NULL;
    }
    for (size_t k = 0; k < 2; k++) { /* a response that was read comes before its request */
        const dgm_extra *from = sources[k];
        for (size_t i = 0; from && from->format == DGM_FORMAT_RESPONSES && i < from->n; i++) {
            dgm_str name = from->at[i].key;
            size_t row = dgm_responses_repeated_row(name);
            const dgm_json **to = row < DGM_RESPONSES_N_REPEATED ? &r.rows[row]
                                  : dgm_str_is(name, "model")    ? &r.model
                                  : dgm_str_is(name, "metadata") ? &r.metadata
                                                                 : NULL;
            if (to && !*to)
                *to = from->at[i].value;
            if (to || dgm_str_is(name, "stream") || dgm_str_is(name, "input"))
                continue;
            dgm_buf_add_char(&r.others, ',');
            dgm_json_put_str(&r.others, name);
            dgm_buf_add_char(&r.others, ':');
            dgm_json_put(&r.others, from->at[i].value);
        }
    }
    e->created =
        (started && started->timestamp.set ? started->timestamp.value : e->params.now) / 1000;
    e->model = e->params.model.n ? e->params.model
               : yyjson_is_str((yyjson_val *)(uintptr_t)r.model)
                   ? dgm_arena_dup(e->arena, dgm_json_str(r.model))
                   : DGM_STR("dragoman");
    e->metadata = yyjson_is_obj((yyjson_val *)(uintptr_t)r.metadata)
                      ? dgm_json_copy(e->arena, r.metadata)
                      : NULL;
    make_tail(e, &r);
    dgm_buf_done(&r.others);
}

/* ---- the response ----------------------------------------------------------------------------------------------- */

/* Values longer than this are refused by OpenAI's clients. */
#define MAX_METADATA_VALUE 512

static bool is_mark(dgm_str key)
{
    return dgm_str_is(key, DGM_RESPONSES_CONTEXT) || dgm_str_is(key, DGM_RESPONSES_TASK) ||
           dgm_str_is(key, DGM_RESPONSES_STATE);
}

static void put_metadata(struct responses_encoder *e, const char *state)
{
    dgm_str task_id = e->params.task_id.n ? e->params.task_id : e->run_id;
    dgm_str marks[][2] = {{DGM_STR(DGM_RESPONSES_CONTEXT), e->thread_id},
                          {DGM_STR(DGM_RESPONSES_TASK), task_id},
                          {DGM_STR(DGM_RESPONSES_STATE), dgm_str_from(state)}};
    dgm_writer w = {.out = &e->out};
    yyjson_val *key, *value;
    size_t i, n;
    LIT(",\"metadata\":{");
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)e->metadata, i, n, key, value) {
        if (is_mark(dgm_json_str(key)))
            continue;
        dgm_put_comma(&w);
        dgm_json_put_str(&e->out, dgm_json_str(key));
        dgm_buf_add_char(&e->out, ':');
        dgm_json_put(&e->out, value);
    }
    for (i = 0; i < (e->params.no_task ? 1 : 3); i++) {
        if (!marks[i][1].n || marks[i][1].n > MAX_METADATA_VALUE)
            continue;
        dgm_put_comma(&w);
        dgm_json_put_str(&e->out, marks[i][0]);
        dgm_buf_add_char(&e->out, ':');
        dgm_json_put_str(&e->out, marks[i][1]);
    }
    dgm_buf_add_char(&e->out, '}');
}

static void put_usage(struct responses_encoder *e, const dgm_canon_usages *usages)
{
    dgm_canon_usage sum = {0};
    dgm_opt_long *sums[] = {&sum.input_tokens, &sum.output_tokens, &sum.total_tokens,
                            &sum.reasoning_tokens, &sum.cached_input_tokens};
    for (size_t i = 0; usages && i < usages->n; i++) {
        const dgm_canon_usage *u = &usages->at[i];
        dgm_opt_long counts[] = {u->input_tokens, u->output_tokens, u->total_tokens,
                                 u->reasoning_tokens, u->cached_input_tokens};
        for (size_t k = 0; k < 5; k++) {
            if (counts[k].set && counts[k].value >= 0 && counts[k].value < INT64_MAX / 4 &&
                sums[k]->value < INT64_MAX / 4)
                *sums[k] = (dgm_opt_long){true, sums[k]->value + counts[k].value};
        }
    }
    if (!sum.input_tokens.set && !sum.output_tokens.set && !sum.total_tokens.set) {
        LIT(",\"usage\":null"); /* zeros would be a lie */
        return;
    }
    LIT(",\"usage\":{\"input_tokens\":");
    dgm_json_put_int(&e->out, sum.input_tokens.value);
    LIT(",\"input_tokens_details\":{\"cached_tokens\":");
    dgm_json_put_int(&e->out, sum.cached_input_tokens.value);
    LIT("},\"output_tokens\":");
    dgm_json_put_int(&e->out, sum.output_tokens.value);
    LIT(",\"output_tokens_details\":{\"reasoning_tokens\":");
    dgm_json_put_int(&e->out, sum.reasoning_tokens.value);
    LIT("},\"total_tokens\":");
    dgm_json_put_int(&e->out, sum.total_tokens.set
                                  ? sum.total_tokens.value
                                  : sum.input_tokens.value + sum.output_tokens.value);
    dgm_buf_add_char(&e->out, '}');
}

/* code, message, param: flat in the event, and in an object that has a type too. */
static void put_error_members(struct responses_encoder *e, const struct responses_end *end)
{
    LIT("\"code\":");
    dgm_json_put_str(&e->out, end->code);
    LIT(",\"message\":");
    dgm_json_put_str(&e->out, end->message);
    LIT(",\"param\":null");
}

void dgm_responses_put_error(struct responses_encoder *e, const struct responses_end *end)
{
    dgm_buf_add_char(&e->out, ',');
    put_error_members(e, end);
    LIT(",\"error\":{\"type\":\"server_error\",");
    put_error_members(e, end);
    dgm_buf_add_char(&e->out, '}');
}

void dgm_responses_put_response(struct responses_encoder *e, const struct responses_end *end)
{
    bool over = strcmp(end->status, "in_progress") != 0;
    if (!e->tail.p) /* the end of a run whose start was not in it */
        dgm_responses_describe(e, NULL);
    LIT("{\"id\":");
    dgm_json_put_str(&e->out, e->id);
    LIT(",\"object\":\"response\",\"created_at\":");
    dgm_json_put_int(&e->out, e->created);
    LIT(",\"completed_at\":");
    if (over)
        dgm_json_put_int(&e->out, e->completed);
    else
        LIT("null");
    LIT(",\"status\":\"");
    dgm_buf_add_str(&e->out, dgm_str_from(end->status));
    LIT("\",\"error\":");
    if (end->message.p) {
        LIT("{\"type\":\"server_error\",");
        put_error_members(e, end);
        dgm_buf_add_char(&e->out, '}');
    } else {
        LIT("null");
    }
    LIT(",\"incomplete_details\":");
    if (end->reason) {
        LIT("{\"reason\":\"");
        dgm_buf_add_str(&e->out, dgm_str_from(end->reason));
        LIT("\"}");
    } else {
        LIT("null");
    }
    LIT(",\"output\":[");
    for (unsigned i = 0; (over || e->params.whole) && i < e->n_given; i++) {
        if (!over && e->items[e->order[i]].state != RESPONSES_DONE)
            continue;
        if (e->out.p[e->out.n - 1] != '[')
            dgm_buf_add_char(&e->out, ',');
        dgm_responses_put_item(e, &e->items[e->order[i]]);
    }
    dgm_buf_add_char(&e->out, ']');
    put_usage(e, end->usage);
    put_metadata(e, end->state);
    dgm_buf_add_str(&e->out, e->tail);
}
