/*
 * loop/llm_ask.c - questions to the caller, and their answers.
 *
 * Nothing runs while the caller is asked. First come approvals, all that are open in one question; then the questions of
 * ask_user, request_auth and of tools, one after the other; then the caller's own tools, all in one. What is asked follows
 * from the states of the calls alone, so a loop that was loaded asks the same.
 */
#include "loop/llm_loop_int.h"

#include "model/approval.h"

#define QUESTION_BYTES ((size_t)16 << 10)

const dgm_llm_builtin dgm_llm_ask_user = {
    .name = "ask_user",
    .description =
        "Asks the user a question and waits for the answer. Use it only if you cannot continue "
        "without the answer.",
    .parameters =
        "{\"type\":\"object\",\"properties\":{\"question\":{\"type\":\"string\",\"description\":"
        "\"The question, as the user reads it\"},\"choices\":{\"type\":\"array\",\"items\":"
        "{\"type\":\"string\"},\"description\":\"Answers to choose from\"},\"schema\":{\"type\":"
        "\"object\",\"description\":\"JSON Schema of a structured answer\"}},\"required\":"
        "[\"question\"]}",
    .kind = DGM_LLM_TOOL_ASK_USER,
};

const dgm_llm_builtin dgm_llm_request_auth = {
    .name = "request_auth",
    .description =
        "Asks the user to sign in or to authorize access elsewhere, and waits. Credentials are "
        "never part of the conversation.",
    .parameters =
        "{\"type\":\"object\",\"properties\":{\"reason\":{\"type\":\"string\",\"description\":"
        "\"What the access is needed for\"},\"url\":{\"type\":\"string\",\"description\":\"The "
        "page to sign in at\"},\"scheme\":{\"type\":\"string\",\"description\":\"The security "
        "scheme, if there is no page\"}},\"required\":[\"reason\"]}",
    .kind = DGM_LLM_TOOL_REQUEST_AUTH,
};

/* ---- what is asked ----------------------------------------------------------------------------------------------- */

static struct llm_call *llm_first_in(dgm_llm_loop *l, enum llm_call_state one,
                                     enum llm_call_state other)
{
    for (size_t i = 0; i < l->n_calls; i++) {
        if (l->calls[i].state == one || l->calls[i].state == other)
            return &l->calls[i];
    }
    return NULL;
}

/* The first of the calls that the next question is about. */
static struct llm_call *llm_open_call(dgm_llm_loop *l)
{
    struct llm_call *c = llm_first_in(l, LLM_CALL_APPROVAL, LLM_CALL_APPROVAL);
    if (!c)
        c = llm_first_in(l, LLM_CALL_QUESTION, LLM_CALL_AUTH);
    return c ? c : llm_first_in(l, LLM_CALL_CALLER, LLM_CALL_CALLER);
}

static bool llm_is_web_url(dgm_str url)
{
    return dgm_str_starts(url, DGM_STR("https://")) || dgm_str_starts(url, DGM_STR("http://"));
}

static bool llm_refuse_question(dgm_llm_loop *l, struct llm_call *c, dgm_str why)
{
    dgm_llm_set_output(l, c, true, why);
    return false;
}

static bool llm_are_choices(yyjson_val *list)
{
    yyjson_val *one;
    size_t i, n;
    yyjson_arr_foreach (list, i, n, one) {
        if (!yyjson_is_str(one))
            return false;
    }
    return yyjson_arr_size(list) > 0 && yyjson_arr_size(list) <= 100;
}

bool dgm_llm_read_question(dgm_llm_loop *l, struct llm_call *c)
{
    const dgm_json *v = c->arguments;
    yyjson_val *choices = dgm_json_get(v, DGM_STR("choices")),
               *schema = dgm_json_get(v, DGM_STR("schema"));
    c->url = dgm_json_str_member(v, "url");
    c->scheme = dgm_json_str_member(v, "scheme");
    c->question = dgm_llm_cut(
        l->turn, dgm_json_str_member(v, c->state == LLM_CALL_AUTH ? "reason" : "question"),
        QUESTION_BYTES);
    c->choices = llm_are_choices(choices) ? choices : NULL;
    c->schema = yyjson_is_obj(schema) ? schema : NULL;
    if (c->state == LLM_CALL_QUESTION)
        return c->question.n || llm_refuse_question(l, c, DGM_STR("The question is missing."));
    if (c->url.n && !llm_is_web_url(c->url))
        return llm_refuse_question(l, c, DGM_STR("The URL must start with https:// or http://."));
    return c->url.n || c->scheme.n ||
           llm_refuse_question(l, c, DGM_STR("Either url or scheme is required."));
}

void dgm_llm_on_question(dgm_llm_loop *l, const dgm_llm_question *q)
{
    struct llm_call *c = dgm_llm_find_call(l, q->call_id);
    if (!c || c->state != LLM_CALL_RUNNING)
        return;
    if (q->url.n && !llm_is_web_url(q->url)) {
        dgm_llm_act(l, (dgm_llm_action){.kind = DGM_LLM_STOP_TOOL, .call_id = c->id});
        dgm_llm_finish_call(
            l, c,
            &(dgm_llm_result){.is_error = true,
                              .text = DGM_STR("The tool sent a URL that is not a web address.")});
        dgm_llm_pump(l);
        return;
    }
    c->from_tool = true;
    c->state = q->url.n ? LLM_CALL_AUTH : LLM_CALL_QUESTION;
    c->question = dgm_arena_dup(l->turn, dgm_llm_cut(l->scratch, q->text, QUESTION_BYTES));
    c->url = dgm_arena_dup(l->turn, q->url);
    c->schema = q->schema ? dgm_json_copy(l->turn, q->schema) : NULL;
    c->asked_state = q->state ? dgm_json_copy(l->turn, q->state) : NULL;
    dgm_llm_pump(l);
}

/* ---- the question as a message ----------------------------------------------------------------------------------- */

static void llm_add_part(dgm_message *m, dgm_part part)
{
    m->parts.at[m->parts.n++] = part;
}

static void llm_add_data(dgm_message *m, const dgm_json *data)
{
    llm_add_part(m, (dgm_part){.kind = DGM_PART_DATA, .data = data});
}

static void llm_ask_approvals(dgm_llm_loop *l, dgm_message *m, enum llm_ask how)
{
    dgm_approval_requests open = {dgm_new_n(l->scratch, dgm_approval_request, l->n_calls), 0};
    for (size_t i = 0; i < l->n_calls; i++) {
        const struct llm_call *c = &l->calls[i];
        if (c->state == LLM_CALL_APPROVAL)
            open.at[open.n++] =
                (dgm_approval_request){.id = c->id, .tool = c->name, .arguments = c->arguments};
    }
    dgm_str text = dgm_approval_question(l->scratch, &open);
    if (how == LLM_ASK_AGAIN)
        text = dgm_arena_join(l->scratch, DGM_STR("The answer was not understood. "), text);
    llm_add_part(m, dgm_llm_text_part(text));
    for (size_t i = 0; i < open.n; i++)
        llm_add_data(m, dgm_approval_request_data(l->scratch, &open.at[i]));
}

/* The choices are in the text, too: not every client shows the data. */
static void llm_ask_question(dgm_llm_loop *l, dgm_message *m, const struct llm_call *c)
{
    dgm_question q = {.text = c->question, .choices = c->choices, .schema = c->schema};
    dgm_str text = c->question;
    yyjson_val *choice;
    size_t i, n;
    yyjson_arr_foreach ((yyjson_val *)(uintptr_t)c->choices, i, n, choice) {
        text = dgm_arena_join(l->scratch, text, DGM_STR("\n- "));
        text = dgm_arena_join(l->scratch, text, dgm_llm_value_text(l->scratch, choice));
    }
    llm_add_part(m, dgm_llm_text_part(text));
    if (c->choices || c->schema)
        llm_add_data(m, dgm_question_data(l->scratch, &q));
}

static void llm_ask_auth(dgm_llm_loop *l, dgm_message *m, const struct llm_call *c)
{
    dgm_auth_request request = {.url = c->url, .scheme = c->scheme, .reason = c->question};
    dgm_str text = c->question.n ? c->question : DGM_STR("Authentication is required.");
    if (c->url.n) {
        text = dgm_arena_join(l->scratch, text, DGM_STR("\n"));
        text = dgm_arena_join(l->scratch, text, c->url);
    }
    llm_add_part(m, dgm_llm_text_part(text));
    llm_add_data(m, dgm_auth_request_data(l->scratch, &request));
}

static void llm_ask_caller(dgm_llm_loop *l, dgm_message *m)
{
    dgm_json_build b = dgm_json_build_start(l->scratch);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_array(&b, DGM_DATA_CALLS);
    for (size_t i = 0; i < l->n_calls; i++) {
        const struct llm_call *c = &l->calls[i];
        if (c->state == LLM_CALL_CALLER)
            dgm_llm_build_call(&b, c);
    }
    dgm_json_build_close(&b);
    dgm_json_build_close(&b);
    llm_add_data(m, dgm_json_build_end(&b));
}

/* The state is saved before the question is shown: an answer finds it. */
bool dgm_llm_ask(dgm_llm_loop *l, enum llm_ask how)
{
    const struct llm_call *c = llm_open_call(l);
    if (!c)
        return false;
    dgm_task_state state =
        c->state == LLM_CALL_AUTH ? DGM_STATE_AUTH_REQUIRED : DGM_STATE_INPUT_REQUIRED;
    l->phase = LLM_WAITING;
    l->questions += how != LLM_ASK_REPEAT;
    l->state = state;
    if (!dgm_llm_save_now(l))
        return true;
    dgm_message m = {.message_id = dgm_llm_id(l, "q", l->questions, -1),
                     .context_id = l->context_id,
                     .task_id = l->task_id,
                     .role = DGM_ROLE_AGENT,
                     .parts = {dgm_new_n(l->scratch, dgm_part, l->n_calls + 1), 0}};
    if (c->state == LLM_CALL_APPROVAL)
        llm_ask_approvals(l, &m, how);
    else if (c->state == LLM_CALL_QUESTION)
        llm_ask_question(l, &m, c);
    else if (c->state == LLM_CALL_AUTH)
        llm_ask_auth(l, &m, c);
    else
        llm_ask_caller(l, &m);
    dgm_llm_emit_status(l, state, &m, NULL);
    dgm_llm_act(l, (dgm_llm_action){.kind = DGM_LLM_END, .state = state});
    return true;
}

/* ---- approvals --------------------------------------------------------------------------------------------------- */

static void llm_reject_call(dgm_llm_loop *l, struct llm_call *c, dgm_str reason)
{
    dgm_str text = DGM_STR("The user rejected this call. The tool was not called.");
    if (reason.n)
        text = dgm_arena_join(l->scratch, dgm_arena_join(l->scratch, text, DGM_STR(" Reason: ")),
                              reason);
    dgm_llm_finish_call(l, c, &(dgm_llm_result){.is_error = true, .text = text});
}

/* False: it is not a decision that counts. */
static bool llm_decide(dgm_llm_loop *l, struct llm_call *c, const dgm_approval *approval,
                       dgm_str text)
{
    dgm_str why = {0};
    if (approval->decision == DGM_UNDECIDED)
        return false;
    if (approval->decision == DGM_REJECTED) {
        bool is_word = dgm_approval_of_text(text) != DGM_UNDECIDED;
        llm_reject_call(l, c, approval->reason.n || is_word ? approval->reason : text);
        return true;
    }
    if (approval->arguments && !dgm_llm_arguments_fit(l, c->name, approval->arguments, &why))
        return false;
    if (approval->arguments && !dgm_json_equal(approval->arguments, c->arguments)) {
        c->arguments = dgm_json_copy(l->turn, approval->arguments);
        c->is_changed = true;
    }
    c->state = LLM_CALL_READY;
    return true;
}

static void llm_answer_approvals(dgm_llm_loop *l, const dgm_message *m)
{
    dgm_str text = dgm_llm_text_of(l->scratch, m);
    bool any = false;
    for (size_t i = 0; i < l->n_calls; i++) {
        struct llm_call *c = &l->calls[i];
        if (c->state != LLM_CALL_APPROVAL)
            continue;
        dgm_approval approval = dgm_message_approval(l->scratch, m, c->id);
        any |= llm_decide(l, c, &approval, text);
    }
    if (any)
        dgm_llm_pump(l);
    else
        dgm_llm_ask(l, LLM_ASK_AGAIN);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

static const dgm_json *llm_first_data(const dgm_message *m)
{
    for (size_t i = 0; i < m->parts.n; i++) {
        if (m->parts.at[i].kind == DGM_PART_DATA)
            return m->parts.at[i].data;
    }
    return NULL;
}

/* The tool continues after a commit: its answer must not be sent twice. */
static void llm_answer_tool(dgm_llm_loop *l, struct llm_call *c, const dgm_message *m)
{
    dgm_str text = dgm_llm_text_of(l->scratch, m);
    const dgm_json *value = llm_first_data(m);
    dgm_str action = dgm_json_str_member(value, "action");
    bool is_auth = c->state == LLM_CALL_AUTH;
    bool is_no = is_auth ? dgm_message_declines(l->scratch, m)
                         : dgm_approval_of_text(text) == DGM_REJECTED && c->schema;
    is_no |= dgm_str_is(action, "decline") || dgm_str_is(action, "cancel");
    c->has_answer = true;
    c->answer = is_no ? DGM_LLM_DECLINED : DGM_LLM_ACCEPTED;
    c->answer_text = is_auth ? DGM_STR("") : dgm_arena_dup(l->turn, text);
    c->answer_value = value && !is_auth ? dgm_json_copy(l->turn, value) : NULL;
    c->state = LLM_CALL_READY;
}

static void llm_answer_user_question(dgm_llm_loop *l, struct llm_call *c, const dgm_message *m)
{
    dgm_str text = dgm_llm_text_of(l->scratch, m);
    for (size_t i = 0; i < m->parts.n; i++) {
        if (m->parts.at[i].kind != DGM_PART_DATA)
            continue;
        if (text.n)
            text = dgm_arena_join(l->scratch, text, DGM_STR("\n"));
        text = dgm_arena_join(l->scratch, text, dgm_json_text_in(l->scratch, m->parts.at[i].data));
    }
    if (!text.n)
        text = DGM_STR("(The user's answer is empty.)");
    dgm_llm_finish_call(l, c, &(dgm_llm_result){.text = text, .parts = m->parts});
}

/* The text of the message may be a credential: the model does not get it. */
static void llm_answer_auth(dgm_llm_loop *l, struct llm_call *c, const dgm_message *m)
{
    bool is_no = dgm_message_declines(l->scratch, m);
    dgm_llm_finish_call(
        l, c,
        &(dgm_llm_result){
            .is_error = is_no,
            .text = is_no ? DGM_STR("The user declined to authenticate.")
                          : DGM_STR("The user has answered the request for authentication. Try "
                                    "again what needed it.")});
}

/* ---- the caller's tools ------------------------------------------------------------------------------------------ */

static size_t llm_read_results(dgm_llm_loop *l, const dgm_part *part)
{
    yyjson_val *list = dgm_json_get(part->data, DGM_STR(DGM_DATA_RESULTS)), *v;
    bool failed = yyjson_is_true(dgm_json_get(part->metadata, DGM_STR(DGM_META_ERROR)));
    size_t i, n, found = 0;
    yyjson_arr_foreach (list, i, n, v) {
        struct llm_call *c = dgm_llm_find_call(l, dgm_json_str_member(v, "call_id"));
        yyjson_val *output = dgm_json_get(v, DGM_STR("output"));
        if (!c || c->state != LLM_CALL_CALLER)
            continue;
        bool is_error = failed || yyjson_is_true(dgm_json_get(v, DGM_STR("is_error")));
        dgm_llm_finish_call(l, c, &(dgm_llm_result){.is_error = is_error, .value = output});
        found++;
    }
    return found;
}

static void llm_answer_calls(dgm_llm_loop *l, const dgm_message *m)
{
    size_t found = 0;
    bool has_results = dgm_message_has(m, DGM_RESULTS);
    for (size_t i = 0; i < m->parts.n; i++) {
        if (m->parts.at[i].kind == DGM_PART_DATA)
            found += llm_read_results(l, &m->parts.at[i]);
    }
    if (has_results && !found) {
        dgm_llm_ask(l, LLM_ASK_AGAIN);
        return;
    }
    for (size_t i = 0; i < l->n_calls && !has_results; i++) {
        if (l->calls[i].state == LLM_CALL_CALLER)
            dgm_llm_finish_call(
                l, &l->calls[i],
                &(dgm_llm_result){
                    .is_error = true,
                    .text = DGM_STR("The user sent a message instead of a result of this tool.")});
    }
    dgm_llm_queue(l, m);
    dgm_llm_pump(l);
}

void dgm_llm_on_answer(dgm_llm_loop *l, const dgm_message *m)
{
    struct llm_call *c = llm_open_call(l);
    l->phase = LLM_TOOLS;
    l->turn_first = l->iteration + 1;
    dgm_buf_clear(&l->answer); /* the text of the next turn */
    l->answer_texts = 0;
    dgm_llm_emit_status(l, DGM_STATE_WORKING, NULL, NULL);
    if (!c) {
        dgm_llm_queue(l, m);
        dgm_llm_pump(l);
    } else if (c->state == LLM_CALL_APPROVAL) {
        llm_answer_approvals(l, m);
    } else if (c->state == LLM_CALL_CALLER) {
        llm_answer_calls(l, m);
    } else {
        if (c->from_tool)
            llm_answer_tool(l, c, m);
        else if (c->state == LLM_CALL_AUTH)
            llm_answer_auth(l, c, m);
        else
            llm_answer_user_question(l, c, m);
        dgm_llm_pump(l);
    }
}
