/*
 * loop/llm_state.c - the state of the agent loop as JSON text.
 *
 * A model call that is under way is saved as one that is to be made; a tool that has started is saved as running, whether its
 * start is durable or not. Texts of the current model call are not saved: the call is made again.
 */
#include "loop/llm_loop_int.h"

#include "model/form.h"

#define STATE_VERSION 1

static const char *const llm_phase_names[] = {
    [LLM_NEW] = "new",     [LLM_MODEL] = "model",     [LLM_RETRY] = "model",
    [LLM_TOOLS] = "tools", [LLM_WAITING] = "waiting", [LLM_OVER] = "over"};
static const char *const llm_call_names[] = {
    [LLM_CALL_READY] = "ready",       [LLM_CALL_STARTED] = "running",
    [LLM_CALL_RUNNING] = "running",   [LLM_CALL_APPROVAL] = "approval",
    [LLM_CALL_QUESTION] = "question", [LLM_CALL_AUTH] = "auth",
    [LLM_CALL_CALLER] = "caller",     [LLM_CALL_DONE] = "done"};
static const char *const llm_kind_names[] = {[DGM_LLM_TOOL_SERVER] = "server",
                                             [DGM_LLM_TOOL_AGENT] = "agent",
                                             [DGM_LLM_TOOL_CALLER] = "caller",
                                             [DGM_LLM_TOOL_ASK_USER] = "ask_user",
                                             [DGM_LLM_TOOL_REQUEST_AUTH] = "request_auth"};

#define N_NAMES(list) (sizeof(list) / sizeof *(list))

/* ---- save -------------------------------------------------------------------------------------------------------- */

static void llm_put_key(dgm_buf *b, const char *key)
{
    if (b->n && b->p[b->n - 1] != '{')
        dgm_buf_add_char(b, ',');
    dgm_json_put_str(b, dgm_str_from(key));
    dgm_buf_add_char(b, ':');
}

static void llm_put_text(dgm_buf *b, const char *key, dgm_str text)
{
    if (!text.n)
        return;
    llm_put_key(b, key);
    dgm_json_put_str(b, text);
}

static void llm_put_int(dgm_buf *b, const char *key, uint64_t n)
{
    if (!n)
        return;
    llm_put_key(b, key);
    dgm_json_put_int(b, (int64_t)n);
}

static void llm_put_flag(dgm_buf *b, const char *key, bool flag)
{
    if (!flag)
        return;
    llm_put_key(b, key);
    dgm_buf_add_lit(b, "true");
}

static void llm_put_value(dgm_buf *b, const char *key, const dgm_json *v)
{
    if (!v)
        return;
    llm_put_key(b, key);
    dgm_json_put(b, v);
}

static void llm_put_messages(dgm_buf *b, const char *key, dgm_messages list)
{
    dgm_writer w = {.out = b, .format = DGM_FORMAT_A2A_10};
    llm_put_key(b, key);
    dgm_buf_add_char(b, '[');
    for (size_t i = 0; i < list.n && !b->over; i++) {
        if (i)
            dgm_buf_add_char(b, ',');
        dgm_shape_write(&w, &dgm_form_message, &list.at[i]);
    }
    dgm_buf_add_char(b, ']');
}

static void llm_put_question(dgm_buf *b, const struct llm_call *c)
{
    llm_put_flag(b, "from_tool", c->from_tool);
    llm_put_text(b, "question", c->question);
    llm_put_text(b, "url", c->url);
    llm_put_text(b, "scheme", c->scheme);
    llm_put_value(b, "choices", c->choices);
    llm_put_value(b, "schema", c->schema);
    llm_put_value(b, "asked_state", c->asked_state);
}

static void llm_put_files(dgm_buf *b, dgm_parts files)
{
    dgm_writer w = {.out = b, .format = DGM_FORMAT_A2A_10};
    if (!files.n)
        return;
    llm_put_key(b, "files");
    dgm_buf_add_char(b, '[');
    for (size_t i = 0; i < files.n && !b->over; i++) {
        if (i)
            dgm_buf_add_char(b, ',');
        dgm_shape_write(&w, &dgm_form_part, &files.at[i]);
    }
    dgm_buf_add_char(b, ']');
}

static void llm_put_call(dgm_buf *b, const struct llm_call *c)
{
    dgm_buf_add_char(b, '{');
    llm_put_text(b, "id", c->id);
    llm_put_text(b, "name", c->name);
    llm_put_text(b, "state", dgm_str_from(llm_call_names[c->state]));
    llm_put_text(b, "kind", dgm_str_from(llm_kind_names[c->kind]));
    llm_put_value(b, "arguments", c->arguments);
    llm_put_flag(b, "is_idempotent", c->is_idempotent);
    llm_put_flag(b, "is_shown", c->is_shown);
    llm_put_flag(b, "is_changed", c->is_changed);
    llm_put_flag(b, "has_start", c->has_start);
    llm_put_int(b, "repeats", c->repeats);
    llm_put_text(b, "agent_name", c->agent_name);
    llm_put_text(b, "agent_url", c->agent_url);
    llm_put_question(b, c);
    llm_put_flag(b, "is_error", c->is_error);
    llm_put_value(b, "output", c->output);
    llm_put_files(b, c->files);
    dgm_buf_add_char(b, '}');
}

static void llm_put_seen(const dgm_llm_loop *l, dgm_buf *b)
{
    size_t n = l->n_seen < LLM_MAX_SEEN ? l->n_seen : LLM_MAX_SEEN;
    llm_put_key(b, "seen");
    dgm_buf_add_char(b, '[');
    for (size_t i = 0; i < n; i++) { /* oldest first */
        if (i)
            dgm_buf_add_char(b, ',');
        dgm_json_put_str(b, l->seen[(l->n_seen - n + i) % LLM_MAX_SEEN]);
    }
    dgm_buf_add_char(b, ']');
}

static void llm_put_counters(const dgm_llm_loop *l, dgm_buf *b)
{
    llm_put_int(b, "iteration", l->iteration);
    llm_put_int(b, "turn_first", l->turn_first);
    llm_put_int(b, "tokens", l->tokens);
    llm_put_int(b, "input_tokens", l->input_tokens);
    llm_put_int(b, "questions", l->questions);
    llm_put_int(b, "answer_texts", l->answer_texts);
    llm_put_int(b, "upstream", l->upstream);
    llm_put_flag(b, "has_output", l->has_output);
    llm_put_flag(b, "was_compacted", l->was_compacted && l->phase != LLM_MODEL);
}

void dgm_llm_loop_save(const dgm_llm_loop *l, dgm_buf *out)
{
    dgm_buf_add_char(out, '{');
    llm_put_int(out, "version", STATE_VERSION);
    llm_put_text(out, "phase", dgm_str_from(llm_phase_names[l->phase]));
    llm_put_text(out, "task_id", l->task_id);
    llm_put_text(out, "context_id", l->context_id);
    llm_put_int(out, "state", l->state);
    llm_put_counters(l, out);
    llm_put_text(out, "answer", dgm_buf_str(&l->answer));
    llm_put_seen(l, out);
    llm_put_messages(out, "messages", l->messages);
    llm_put_messages(out, "queued", l->queued);
    llm_put_key(out, "calls");
    dgm_buf_add_char(out, '[');
    for (size_t i = 0; i < l->n_calls && !out->over; i++) {
        if (i)
            dgm_buf_add_char(out, ',');
        llm_put_call(out, &l->calls[i]);
    }
    dgm_buf_add_lit(out, "]}");
    out->over |= out->n > l->options.limits.state_bytes;
}

/* ---- load -------------------------------------------------------------------------------------------------------- */

static uint64_t llm_get_int(const dgm_json *v, const char *key, uint64_t max)
{
    int64_t n = 0;
    dgm_json_int(dgm_json_get(v, dgm_str_from(key)), &n);
    return n < 0 || (uint64_t)n > max ? 0 : (uint64_t)n;
}

static bool llm_get_flag(const dgm_json *v, const char *key)
{
    return yyjson_is_true(dgm_json_get(v, dgm_str_from(key)));
}

static dgm_str llm_get_text(dgm_arena *a, const dgm_json *v, const char *key)
{
    dgm_str text = dgm_json_str_member(v, key);
    return text.n ? dgm_arena_dup(a, text) : (dgm_str){0};
}

static const dgm_json *llm_get_value(dgm_arena *a, const dgm_json *v, const char *key)
{
    yyjson_val *x = dgm_json_get(v, dgm_str_from(key));
    return x ? dgm_json_copy(a, x) : NULL;
}

/* The last of two equal names counts: RUNNING, not STARTED. */
static bool llm_get_name(const dgm_json *v, const char *key, const char *const *names, size_t n,
                         int *ret)
{
    dgm_str text = dgm_json_str_member(v, key);
    for (size_t i = n; i-- > 0;) {
        if (names[i] && dgm_str_eq(text, dgm_str_from(names[i]))) {
            *ret = (int)i;
            return true;
        }
    }
    return false;
}

static dgm_code llm_invalid_state(const dgm_at *at, dgm_err *err)
{
    return dgm_fail(err, DGM_BAD_PARAMS, at, "invalid saved state of the agent loop");
}

static dgm_code llm_read_messages(dgm_llm_loop *l, const dgm_json *root, const char *key,
                                  dgm_messages *ret, dgm_err *err)
{
    dgm_reader r = {.arena = l->scratch, .format = DGM_FORMAT_A2A_10, .err = err};
    yyjson_val *v = dgm_json_get(root, dgm_str_from(key));
    *ret = (dgm_messages){0};
    return v ? dgm_read_list(&r, &dgm_form_message, v, DGM_AT(NULL, dgm_str_from(key)), ret)
             : DGM_OK;
}

static dgm_code llm_load_files(dgm_llm_loop *l, struct llm_call *c, yyjson_val *v, dgm_err *err)
{
    dgm_reader r = {.arena = l->scratch, .format = DGM_FORMAT_A2A_10, .err = err};
    yyjson_val *files = dgm_json_get(v, DGM_STR("files"));
    dgm_message m = {0};
    dgm_code rc = DGM_OK;
    if (files)
        rc = dgm_read_list(&r, &dgm_form_part, files, DGM_AT_LIT(NULL, "files"), &m.parts);
    if (!rc && m.parts.n)
        c->files = dgm_message_copy(l->turn, &m).parts;
    return rc;
}

static void llm_load_question(dgm_llm_loop *l, struct llm_call *c, const dgm_json *v)
{
    c->from_tool = llm_get_flag(v, "from_tool");
    c->question = llm_get_text(l->turn, v, "question");
    c->url = llm_get_text(l->turn, v, "url");
    c->scheme = llm_get_text(l->turn, v, "scheme");
    c->choices = llm_get_value(l->turn, v, "choices");
    c->schema = llm_get_value(l->turn, v, "schema");
    c->asked_state = llm_get_value(l->turn, v, "asked_state");
}

static dgm_code llm_load_call(dgm_llm_loop *l, struct llm_call *c, yyjson_val *v, const dgm_at *at,
                              dgm_err *err)
{
    int state, kind;
    if (!llm_get_name(v, "state", llm_call_names, N_NAMES(llm_call_names), &state) ||
        !llm_get_name(v, "kind", llm_kind_names, N_NAMES(llm_kind_names), &kind))
        return llm_invalid_state(at, err);
    c->state = (enum llm_call_state)state;
    c->kind = (dgm_llm_tool_kind)kind;
    c->id = llm_get_text(l->turn, v, "id");
    c->name = llm_get_text(l->turn, v, "name");
    c->arguments = llm_get_value(l->turn, v, "arguments");
    c->is_idempotent = llm_get_flag(v, "is_idempotent");
    c->is_shown = llm_get_flag(v, "is_shown");
    c->is_changed = llm_get_flag(v, "is_changed");
    c->has_start = llm_get_flag(v, "has_start");
    c->repeats = (uint8_t)llm_get_int(v, "repeats", LLM_MAX_REPEATS);
    c->agent_name = llm_get_text(l->turn, v, "agent_name");
    c->agent_url = llm_get_text(l->turn, v, "agent_url");
    llm_load_question(l, c, v);
    c->is_error = llm_get_flag(v, "is_error");
    c->output = llm_get_value(l->turn, v, "output");
    if (!c->id.n || !c->arguments || (c->state == LLM_CALL_DONE && !c->output))
        return llm_invalid_state(at, err);
    return llm_load_files(l, c, v, err);
}

static dgm_code llm_load_calls(dgm_llm_loop *l, const dgm_json *root, dgm_err *err)
{
    yyjson_val *list = dgm_json_get(root, DGM_STR("calls")), *v;
    const dgm_at *at = DGM_AT_LIT(NULL, "calls");
    size_t i, n;
    dgm_code rc;
    if (yyjson_arr_size(list) > LLM_MAX_CALLS)
        return llm_invalid_state(at, err);
    l->calls = dgm_new_n(l->turn, struct llm_call, yyjson_arr_size(list));
    yyjson_arr_foreach (list, i, n, v) {
        if ((rc = llm_load_call(l, &l->calls[i], v, DGM_AT_I(at, i), err)))
            return rc;
        l->n_calls++;
    }
    return DGM_OK;
}

static void llm_load_counters(dgm_llm_loop *l, const dgm_json *root)
{
    l->iteration = (uint32_t)llm_get_int(root, "iteration", INT32_MAX - 1);
    l->turn_first = (uint32_t)llm_get_int(root, "turn_first", l->iteration + 1);
    l->tokens = llm_get_int(root, "tokens", INT64_MAX);
    l->input_tokens = llm_get_int(root, "input_tokens", INT64_MAX);
    l->questions = (uint32_t)llm_get_int(root, "questions", INT32_MAX);
    l->answer_texts = (uint32_t)llm_get_int(root, "answer_texts", INT32_MAX);
    l->upstream = (uint32_t)llm_get_int(root, "upstream", l->options.upstreams - 1);
    l->has_output = llm_get_flag(root, "has_output");
    l->was_compacted = llm_get_flag(root, "was_compacted");
}

static dgm_code llm_load_lists(dgm_llm_loop *l, const dgm_json *root, dgm_err *err)
{
    dgm_messages messages, queued;
    yyjson_val *seen = dgm_json_get(root, DGM_STR("seen")), *v;
    size_t i, n;
    dgm_code rc;
    if ((rc = llm_read_messages(l, root, "messages", &messages, err)) ||
        (rc = llm_read_messages(l, root, "queued", &queued, err)))
        return rc;
    for (i = 0; i < messages.n; i++)
        dgm_llm_add_message(l, &messages.at[i]);
    for (i = 0; i < queued.n && i < DGM_MAX_QUEUED_MESSAGES; i++)
        dgm_llm_queue(l, &queued.at[i]);
    yyjson_arr_foreach (seen, i, n, v) {
        if (yyjson_is_str(v) && i < LLM_MAX_SEEN)
            l->seen[l->n_seen++] = dgm_arena_dup(l->arena, dgm_json_str(v));
    }
    return llm_load_calls(l, root, err);
}

static dgm_code llm_load_root(dgm_llm_loop *l, const dgm_json *root, dgm_err *err)
{
    int phase;
    uint64_t state = llm_get_int(root, "state", DGM_STATE_AUTH_REQUIRED);
    if (llm_get_int(root, "version", STATE_VERSION) != STATE_VERSION ||
        !llm_get_name(root, "phase", llm_phase_names, N_NAMES(llm_phase_names), &phase))
        return llm_invalid_state(NULL, err);
    l->phase = phase == LLM_RETRY ? LLM_MODEL : (enum llm_phase)phase;
    l->state = (dgm_task_state)state;
    l->task_id = llm_get_text(l->arena, root, "task_id");
    l->context_id = llm_get_text(l->arena, root, "context_id");
    llm_load_counters(l, root);
    dgm_str answer = dgm_json_str_member(root, "answer");
    dgm_buf_add_str(&l->answer, answer);
    return llm_load_lists(l, root, err);
}

dgm_code dgm_llm_loop_load(dgm_str text, const dgm_llm_options *options, dgm_llm_loop **ret_loop,
                           dgm_err *err)
{
    dgm_auto(dgm_llm_loop_free) dgm_llm_loop *l = dgm_llm_loop_new(options);
    yyjson_val *root;
    dgm_code rc;
    if ((rc = dgm_json_read(l->scratch, dgm_arena_dup(l->scratch, text),
                            l->options.limits.state_bytes, "state_bytes", &root, err)) ||
        (rc = llm_load_root(l, root, err)))
        return rc == DGM_TOO_LARGE ? rc : DGM_BAD_PARAMS;
    dgm_arena_reset(l->scratch);
    l->is_loaded = true;
    *ret_loop = dgm_take(l);
    return DGM_OK;
}
