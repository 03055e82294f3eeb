/* wire/responses/responses_object.c - how the response is spelled; see responses_out.h. */
#include "base/limits.h"
#include "wire/responses/responses_out.h"

#define LIT(lit) dgm_buf_add_lit(&e->out, lit)

static void put_word(struct responses_encoder *e, const char *word)
{
    dgm_buf_add_char(&e->out, '"');
    dgm_buf_add_str(&e->out, dgm_str_from(word));
    dgm_buf_add_char(&e->out, '"');
}

/* ---- the response: what is always the same ------------------------------------------------------------------ */

#define DEFAULTS(X)                                                                                \
    X("background", "false")                                                                       \
    X("instructions", "null")                                                                      \
    X("max_output_tokens", "null")                                                                 \
    X("max_tool_calls", "null")                                                                    \
    X("parallel_tool_calls", "true")                                                               \
    X("previous_response_id", "null")                                                              \
    X("conversation", "null")                                                                      \
    X("prompt_cache_key", "null")                                                                  \
    X("reasoning", "{\"effort\":null,\"summary\":null}")                                           \
    X("safety_identifier", "null")                                                                 \
    X("service_tier", "\"default\"")                                                               \
    X("store", "true")                                                                             \
    X("temperature", "1.0")                                                                        \
    X("text", "{\"format\":{\"type\":\"text\"},\"verbosity\":\"medium\"}")                         \
    X("tool_choice", "\"auto\"")                                                                   \
    X("tools", "[]")                                                                               \
    X("top_logprobs", "0")                                                                         \
    X("top_p", "1.0")                                                                              \
    X("presence_penalty", "0.0")                                                                   \
    X("frequency_penalty", "0.0")                                                                  \
    X("truncation", "\"disabled\"")                                                                \
    X("user", "null")

static const struct {
    const char *name, *value;
} defaults[] = {
#define X(name, value) {name, value},
    DEFAULTS(X)
#undef X
};
#define N_DEFAULTS (sizeof defaults / sizeof *defaults)

/* All of them as they are written when nobody says otherwise. */
#define X(name, value) ",\"" name "\":" value
static const char all_defaults[] = DEFAULTS(X);
#undef X

/* Members that have their own place. */
static bool is_told_elsewhere(dgm_str name)
{
    static const char *const own[] = {"model", "metadata", "stream", "input"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (dgm_str_eq(dgm_str_from(own[i]), name))
            return true;
    }
    for (size_t i = 0; i < N_DEFAULTS; i++) {
        if (dgm_str_eq(dgm_str_from(defaults[i].name), name))
            return true;
    }
    return false;
}

static void put_unknown(dgm_buf *b, const dgm_extra *extra)
{
    for (size_t i = 0; extra && extra->format == DGM_FORMAT_RESPONSES && i < extra->n; i++) {
        if (is_told_elsewhere(extra->at[i].key))
            continue;
        dgm_buf_add_char(b, ',');
        dgm_json_put_str(b, extra->at[i].key);
        dgm_buf_add_char(b, ':');
        dgm_json_put(b, extra->at[i].value);
    }
}

/* What of the request the response repeats: told by a response that was read, or by the request. */
static const dgm_json *echoed(const dgm_canon_event *started, const char *name)
{
    const dgm_canon_input *input = started ? started->run_started.input : NULL;
    const dgm_json *v = NULL;
    if (started)
        v = dgm_responses_extra(started->extra, dgm_str_from(name));
    if (!v && input)
        v = dgm_responses_extra(input->extra, dgm_str_from(name));
    return v;
}

/* Nothing is known of a request: as for every run of an A2A agent. */
static bool repeats_nothing(const dgm_canon_event *started)
{
    return !started || (!started->extra && !started->run_started.input &&
                        !started->run_started.parent_run_id.n);
}

static void put_constant(dgm_buf *b, const dgm_canon_event *started, size_t row)
{
    const dgm_canon_input *input = started ? started->run_started.input : NULL;
    const dgm_json *v = echoed(started, defaults[row].name);
    dgm_str parent = started ? started->run_started.parent_run_id : (dgm_str){0};
    dgm_buf_add_lit(b, ",\"");
    dgm_buf_add_str(b, dgm_str_from(defaults[row].name));
    dgm_buf_add_lit(b, "\":");
    if (v && !strcmp(defaults[row].name, "tools") && input && input->tools.n) {
        dgm_writer w = {.out = b, .format = DGM_FORMAT_RESPONSES};
        dgm_responses_put_tools(&w, &input->tools, v);
    } else if (v) {
        dgm_json_put(b, v);
    } else if (!strcmp(defaults[row].name, "tools") && input) {
        dgm_writer w = {.out = b, .format = DGM_FORMAT_RESPONSES};
        dgm_responses_put_tools(&w, &input->tools, NULL);
    } else if (!strcmp(defaults[row].name, "previous_response_id") && parent.n) {
        dgm_responses_put_id(b, "resp_", parent);
    } else {
        dgm_buf_add_str(b, dgm_str_from(defaults[row].value));
    }
}

static void make_tail(struct responses_encoder *e, const dgm_canon_event *started)
{
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_RECORD_BYTES);
    dgm_buf_add_lit(&b, ",\"model\":");
    dgm_json_put_str(&b, e->model);
    if (repeats_nothing(started))
        dgm_buf_add(&b, all_defaults, sizeof all_defaults - 1);
    for (size_t i = 0; !repeats_nothing(started) && i < N_DEFAULTS; i++)
        put_constant(&b, started, i);
    if (started) {
        put_unknown(&b, started->extra);
        put_unknown(&b, started->run_started.input ? started->run_started.input->extra : NULL);
    }
    dgm_buf_add_char(&b, '}');
    if (b.over && !e->rc)
        e->rc = dgm_fail(e->err, DGM_TOO_LARGE, NULL,
                         "the request members in the response are longer than the limit "
                         "record_bytes of %zu",
                         DGM_MAX_RECORD_BYTES);
    e->tail = dgm_arena_dup(e->arena, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

static dgm_str text_in(dgm_arena *a, const char *prefix, dgm_str id)
{
    return dgm_str_starts(id, dgm_str_from(prefix)) ? dgm_arena_dup(a, id)
                                                    : dgm_arena_join(a, dgm_str_from(prefix), id);
}

static int64_t seconds(const struct responses_encoder *e, const dgm_canon_event *event)
{
    return (event && event->timestamp.set ? event->timestamp.value : e->params.now) / 1000;
}

void dgm_responses_describe(struct responses_encoder *e, const dgm_canon_event *started)
{
    const dgm_json *model = echoed(started, "model"), *metadata = echoed(started, "metadata");
    dgm_str run_id = started ? started->run_started.run_id : (dgm_str){0};
    e->run_id = run_id.n ? dgm_arena_dup(e->arena, run_id) : dgm_mint_id(&e->params.mint, e->arena);
    e->id = text_in(e->arena, "resp_", e->run_id);
    if (started)
        e->thread_id = dgm_arena_dup(e->arena, started->run_started.thread_id);
    e->created = seconds(e, started);
    e->model = e->params.model.n ? e->params.model
               : yyjson_is_str((yyjson_val *)(uintptr_t)model)
                   ? dgm_arena_dup(e->arena, dgm_json_str(model))
                   : DGM_STR("dragoman");
    e->metadata =
        yyjson_is_obj((yyjson_val *)(uintptr_t)metadata) ? dgm_json_copy(e->arena, metadata) : NULL;
    make_tail(e, started);
}

/* ---- the response ----------------------------------------------------------------------------------------------- */

static void put_member(struct responses_encoder *e, dgm_str name)
{
    if (e->out.p[e->out.n - 1] != '{')
        dgm_buf_add_char(&e->out, ',');
    dgm_json_put_str(&e->out, name);
    dgm_buf_add_char(&e->out, ':');
}

/* Values longer than this are refused by OpenAI's clients. */
#define MAX_METADATA_VALUE 512

static void put_mark(struct responses_encoder *e, dgm_str name, dgm_str value)
{
    if (!value.n || value.n > MAX_METADATA_VALUE)
        return;
    put_member(e, name);
    dgm_json_put_str(&e->out, value);
}

static bool is_mark(dgm_str key)
{
    return dgm_str_is(key, DGM_RESPONSES_CONTEXT) || dgm_str_is(key, DGM_RESPONSES_TASK) ||
           dgm_str_is(key, DGM_RESPONSES_STATE);
}

static void put_metadata(struct responses_encoder *e, const char *state)
{
    yyjson_val *key;
    yyjson_obj_iter it = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)e->metadata);
    LIT(",\"metadata\":{");
    while ((key = yyjson_obj_iter_next(&it))) {
        if (is_mark(dgm_json_str(key)))
            continue;
        put_member(e, dgm_json_str(key));
        dgm_json_put(&e->out, yyjson_obj_iter_get_val(key));
    }
    put_mark(e, DGM_STR(DGM_RESPONSES_CONTEXT), e->thread_id);
    if (!e->params.no_task) {
        put_mark(e, DGM_STR(DGM_RESPONSES_TASK),
                 e->params.task_id.n ? e->params.task_id : e->run_id);
        put_mark(e, DGM_STR(DGM_RESPONSES_STATE), dgm_str_from(state));
    }
    dgm_buf_add_char(&e->out, '}');
}

static void add_count(dgm_opt_long *sum, dgm_opt_long count)
{
    if (count.set && count.value >= 0 && count.value < INT64_MAX / 4 && sum->value < INT64_MAX / 4)
        *sum = (dgm_opt_long){true, sum->value + count.value};
}

static void put_usage(struct responses_encoder *e, const dgm_canon_usages *usages)
{
    dgm_canon_usage sum = {0};
    for (size_t i = 0; usages && i < usages->n; i++) {
        const dgm_canon_usage *u = &usages->at[i];
        add_count(&sum.input_tokens, u->input_tokens);
        add_count(&sum.output_tokens, u->output_tokens);
        add_count(&sum.total_tokens, u->total_tokens);
        add_count(&sum.reasoning_tokens, u->reasoning_tokens);
        add_count(&sum.cached_input_tokens, u->cached_input_tokens);
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
    LIT(",\"status\":");
    put_word(e, end->status);
    LIT(",\"error\":");
    if (end->message.p) {
        LIT("{\"type\":\"server_error\",");
        put_error_members(e, end);
        dgm_buf_add_char(&e->out, '}');
    } else {
        LIT("null");
    }
    LIT(",\"incomplete_details\":");
    if (end->reason) {
        LIT("{\"reason\":");
        put_word(e, end->reason);
        dgm_buf_add_char(&e->out, '}');
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
