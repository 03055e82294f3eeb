/*
 * frontend/openai/chat_front.c - POST /v1/chat/completions: a request becomes a turn, the turn chunks or one completion.
 *
 * A stream reports everything in its chunks. A completion has a status of its own: 200 for an answer, a question and a
 * refusal, 424 for a run that failed, so that no client starts another run.
 */
#include "base/ids.h"
#include "base/limits.h"
#include "canon/message_content.h"
#include "frontend/openai/openai_errors.h"
#include "frontend/openai/openai_files.h"
#include "frontend/openai/openai_front.h"
#include "frontend/openai/openai_model.h"
#include "frontend/openai/openai_question.h"
#include "frontend/openai/openai_session.h"
#include "wire/chat/chat_codec.h"
#include "wire/chat/chat_messages.h"

/* One request, in its exchange's arena until the turn has begun. */
struct chat {
    dgm_turn_request q;
    yyjson_val *body;
    dgm_str model; /* as the request has it */
    const dgm_turn_agent *agent;
    dgm_canon_input input;
    bool stream, usage;
    dgm_output_form form;
    dgm_str context_id; /* empty: a new conversation */
    bool
        is_found; /* by the question that the request answers: its messages are the conversation's */
    dgm_str question_seed;   /* of a request that names no conversation; empty: it names one */
    dgm_str caller_id;       /* "chatcmpl-..." */
    dgm_str message_id;      /* the caller's Idempotency-Key; empty: none */
    dgm_str ignored;         /* names of what is ignored; empty: nothing */
    const dgm_turn_tap *tap; /* of a replay; NULL: a client */
};

/* ---- the response -------------------------------------------------------------------------------------------------- */

/* Lives as long as the exchange. */
struct answer {
    dgm_http_exchange *x;
    struct openai_links links;
    dgm_output output;
    dgm_str context_id, task_id, ignored;
    struct openai_end end;
    struct openai_question question;
    bool stream, asks; /* asks: it ended with a question */
    dgm_str payload;   /* that is sent when the question is stored */
};

/* ---- events of the turn ---------------------------------------------------------------------------------------------- */

static dgm_code chat_front_on_event(void *arg, const dgm_canon_event *event, dgm_canon_sink next)
{
    struct answer *w = arg;
    dgm_code rc = DGM_OK;
    if (event->kind == DGM_CANON_ARTIFACT) { /* files are links */
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_canon_event linked = dgm_openai_links_put(&w->links, a, event, true);
        return dgm_output_event(&w->output, &linked, next);
    }
    if (dgm_canon_is_terminal(event->kind)) {
        dgm_openai_end_note(w->x, &w->end, event);
        w->asks = w->question.seed.n && w->end.is_question;
        if (w->asks && w->stream)
            dgm_openai_question_keep(&w->question, NULL, NULL);
        if (w->end.lacks_question)
            rc = dgm_openai_ask(&w->output, event, next);
    }
    return rc ? rc : dgm_output_event(&w->output, event, next);
}

static void on_close(void *arg)
{
    struct answer *w = arg;
    dgm_output_done(&w->output);
}

/* ---- answering -------------------------------------------------------------------------------------------------------- */

#define MAX_HEADERS 4

static size_t headers_of(const struct answer *w, dgm_http_header headers[MAX_HEADERS])
{
    size_t n = 0;
    headers[n++] = (dgm_http_header){DGM_STR("X-A2A-Context-Id"), w->context_id};
    if (w->task_id.n) /* a Message answer has no task */
        headers[n++] = (dgm_http_header){DGM_STR("X-A2A-Task-Id"), w->task_id};
    if (w->ignored.n)
        headers[n++] = (dgm_http_header){DGM_STR("x-dragoman-ignored"), w->ignored};
    if (w->end.state && w->task_id.n)
        headers[n++] = (dgm_http_header){DGM_STR("X-A2A-Task-State"), dgm_str_from(w->end.state)};
    return n;
}

static void chat_respond(void *arg);

static void on_whole(void *arg, dgm_str payload)
{
    struct answer *w = arg;
    w->payload = payload;
    if (!w->asks) {
        chat_respond(w);
        return;
    }
    w->payload = dgm_turn_copy(w->x, payload);
    dgm_openai_question_keep(&w->question, chat_respond, w);
}

static void chat_respond(void *arg)
{
    struct answer *w = arg;
    dgm_http_header headers[MAX_HEADERS];
    size_t n = headers_of(w, headers);
    if (!w->end.failed) {
        dgm_http_respond(w->x, 200, DGM_STR("application/json"), headers, n, w->payload);
        return;
    }
    struct openai_error e =
        dgm_openai_error_of_end(dgm_str_from(w->end.code), dgm_str_from(w->end.message));
    dgm_openai_fail_with(w->x, &e, headers, n);
}

/* The agent is at work, or was: not to be asked again. */
static void on_fault(void *arg, const dgm_err *err)
{
    struct answer *w = arg;
    dgm_http_header headers[MAX_HEADERS];
    size_t n = headers_of(w, headers);
    struct openai_error e = dgm_openai_error_of_end(
        err->code == DGM_UPSTREAM_TIMEOUT ? DGM_STR("timeout") : DGM_STR("answer_failed"),
        dgm_str_from(err->msg));
    dgm_openai_fail_with(w->x, &e, headers, n);
}

static void chat_answer(struct chat *c, const dgm_sent *sent)
{
    dgm_http_exchange *x = c->q.x;
    const dgm_turns_options *o = &c->q.turns->o;
    struct answer *w = dgm_http_alloc(x, sizeof *w);
    dgm_http_header headers[MAX_HEADERS];
    *w = (struct answer){.x = x,
                         .context_id = dgm_turn_copy(x, sent->context_id),
                         .task_id = dgm_turn_copy(x, sent->task_id),
                         .ignored = dgm_turn_copy(x, c->ignored),
                         .stream = c->stream};
    w->question = (struct openai_question){
        .turns = c->q.turns,
        .owner = {dgm_turn_copy(x, c->q.owner.tenant), dgm_turn_copy(x, c->q.owner.principal)},
        .agent = c->agent->id,
        .seed = dgm_turn_copy(x, c->question_seed),
        .task_id = w->task_id,
        .turn = sent->turn};
    dgm_openai_links_init(&w->links, &c->q, c->agent->id, sent->task_id);
    dgm_output_init(&w->output, &c->form);
    dgm_front_note_task(x, sent->task_id, sent->turn);
    dgm_turn_output output = {.codec = &dgm_codec_openai_chat,
                              .params = {.usage = c->usage,
                                         .json = c->form.json,
                                         .model = c->model,
                                         .task_id = w->task_id},
                              .thread_id = w->context_id,
                              .run_id = c->caller_id,
                              .as = c->stream ? DGM_OUTPUT_SSE : DGM_OUTPUT_WHOLE,
                              .headers = headers,
                              .n_headers = headers_of(w, headers),
                              .on_event = chat_front_on_event,
                              .on_whole = on_whole,
                              .on_fault = on_fault,
                              .on_release = on_close,
                              .arg = w,
                              .turns = c->q.turns,
                              .owner = c->q.owner,
                              .agent = c->agent->id,
                              .task_id = sent->task_id,
                              .leave = o->leave[DGM_LEAVE_CHAT],
                              .answer_in_status = c->agent->answer_in_status,
                              .turn = sent->is_resend ? 0 : sent->turn,
                              .tap = c->tap};
    dgm_turn_stream(x, &output, sent->log, sent->first_seq);
}

#define PROTOCOL "openai-chat"
#define MAX_IDEMPOTENCY_KEY 255 /* bytes */

/* ---- what is stored with a turn ---------------------------------------------------------------------------------- */

/* The members of the request that its stream depends on. */
static dgm_str chat_note_text(const struct chat *c)
{
    const dgm_output_form *f = &c->form;
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_RECORD_BYTES);
    dgm_buf_add_lit(&b, "{\"model\":");
    dgm_json_put_str(&b, c->model);
    if (c->usage)
        dgm_buf_add_lit(&b, ",\"usage\":true");
    if (f->json) {
        dgm_buf_add_lit(&b, ",\"schema\":");
        dgm_json_put(&b, f->schema);
    }
    if (f->must_call)
        dgm_buf_add_lit(&b, ",\"tools\":[");
    for (size_t i = 0; f->must_call && i < f->n_tools; i++) {
        dgm_buf_add_str(&b, i ? DGM_STR(",{\"name\":") : DGM_STR("{\"name\":"));
        dgm_json_put_str(&b, f->tools[i].name);
        dgm_buf_add_lit(&b, ",\"parameters\":");
        dgm_json_put(&b, f->tools[i].parameters);
        dgm_buf_add_char(&b, '}');
    }
    dgm_buf_add_str(&b, f->must_call ? DGM_STR("]}") : DGM_STR("}"));
    dgm_str text = b.over ? (dgm_str){0} : dgm_arena_dup(dgm_http_arena(c->q.x), dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

/* False: nothing is stored. */
static bool chat_note_read(struct chat *c, dgm_str text)
{
    dgm_arena *a = dgm_http_arena(c->q.x);
    const dgm_json *note = text.n ? dgm_json_parse_trusted(a, text) : NULL;
    yyjson_val *schema = dgm_json_get(note, DGM_STR("schema")), *tool;
    yyjson_val *tools = dgm_json_get(note, DGM_STR("tools"));
    size_t i, n;
    if (!note)
        return false;
    c->model = dgm_json_str_member(note, "model");
    c->usage = yyjson_is_true(dgm_json_get(note, DGM_STR("usage")));
    c->form.json = schema != NULL;
    c->form.schema = yyjson_is_obj(schema) ? schema : NULL;
    c->form.must_call = tools != NULL;
    c->form.tools = dgm_new_n(a, dgm_output_tool, yyjson_arr_size(tools) + 1);
    yyjson_arr_foreach (tools, i, n, tool)
        c->form.tools[c->form.n_tools++] = (dgm_output_tool){dgm_json_str_member(tool, "name"),
                                                             dgm_json_non_null(tool, "parameters")};
    return true;
}

bool dgm_chat_replay(const dgm_turn_replay *replay)
{
    struct chat *c = dgm_new(dgm_http_arena(replay->q->x), struct chat);
    *c = (struct chat){.q = *replay->q,
                       .agent = replay->agent,
                       .stream = true,
                       .caller_id = replay->turn.caller_id,
                       .tap = replay->tap};
    if (!chat_note_read(c, replay->turn.request))
        return false;
    chat_answer(c, &(dgm_sent){.log = replay->log,
                               .first_seq = replay->turn.first_seq,
                               .task_id = replay->task_id,
                               .context_id = replay->context_id,
                               .turn = replay->turn.turn,
                               .is_resend = true});
    return true;
}

/* ---- the turn ---------------------------------------------------------------------------------------------------- */

static void chat_front_fail(struct chat *c, const dgm_err *err)
{
    dgm_openai_fail_err(c->q.x, err, c->body);
}

/* A request that was sent before is answered from the turn it began. */
static void chat_front_on_turn(dgm_code code, const dgm_found_turn *turn, const dgm_err *err,
                               void *arg)
{
    struct chat *c = arg;
    (void)err;
    if (code) {
        struct openai_error gone = dgm_openai_error_of_end(
            DGM_STR("answer_not_kept"), DGM_STR("this request was answered before, and its answer "
                                                "is not kept any more"));
        dgm_openai_fail(c->q.x, &gone);
        return;
    }
    dgm_sent sent = {.log = turn->log,
                     .first_seq = turn->first_seq,
                     .task_id = turn->task_id,
                     .context_id = turn->context_id,
                     .turn = turn->turn,
                     .is_resend = true};
    chat_answer(c, &sent);
}

static void chat_front_on_sent(dgm_code code, const dgm_sent *sent, const dgm_err *err, void *arg)
{
    struct chat *c = arg;
    if (code)
        chat_front_fail(c, err);
    else if (sent->first_seq)
        chat_answer(c, sent);
    else
        dgm_core_find_turn(c->q.turns->o.core, c->q.owner, c->agent->id, DGM_STR(PROTOCOL),
                           c->caller_id, chat_front_on_turn, c);
}

static void chat_ask(void *arg)
{
    static dgm_str json = {"application/json", 16};
    struct chat *c = arg;
    dgm_ask ask = {.x = c->q.x,
                   .turns = c->q.turns,
                   .owner = c->q.owner,
                   .agent = c->agent,
                   .input = &c->input,
                   .context_id = c->context_id,
                   .fork_on_difference = c->context_id.n && !c->is_found,
                   .message_id = c->message_id,
                   .metadata =
                       dgm_openai_metadata(dgm_http_arena(c->q.x), c->body, &c->form, false),
                   .accepted_output_modes = {&json, c->form.json ? 1 : 0},
                   .protocol = DGM_STR(PROTOCOL),
                   .caller_id = c->caller_id,
                   .request = chat_note_text(c),
                   .dedupe = c->message_id.n > 0};
    dgm_turn_ask(&ask, chat_front_on_sent, c);
}

static void chat_on_question(void *arg, dgm_str context_id)
{
    struct chat *c = arg;
    c->context_id = context_id;
    c->is_found = context_id.n > 0;
    chat_ask(c);
}

/* Without a name it may still answer a question. */
static void chat_find_conversation(void *arg)
{
    struct chat *c = arg;
    if (c->context_id.n) {
        chat_ask(c);
        return;
    }
    c->question_seed =
        dgm_openai_question_seed(&c->q, c->agent, c->body, &c->input.messages, c->input.messages.n);
    struct openai_question_search search = {.q = &c->q,
                                            .agent = c->agent,
                                            .body = c->body,
                                            .messages = &c->input.messages,
                                            .protocol = DGM_STR(PROTOCOL),
                                            .caller_id =
                                                c->message_id.n ? c->caller_id : (dgm_str){0},
                                            .on_found = chat_on_question,
                                            .arg = c};
    if (!dgm_openai_question_find(&search))
        chat_ask(c);
}

/* ---- the request -------------------------------------------------------------------------------------------------- */

static bool is_true(yyjson_val *v, const char *name)
{
    return yyjson_is_true(dgm_json_get(v, dgm_str_from(name)));
}

/* One id per request; per Idempotency-Key, if there is one: its answer is the same. */
static dgm_str new_id(dgm_arena *a, dgm_str key)
{
    char uuid[DGM_UUID_CHARS + 1], hex[33];
    size_t n = 0;
    if (key.n)
        return dgm_arena_printf(a, "chatcmpl-%016llx%016llx",
                                (unsigned long long)dgm_hash(1, key.p, key.n),
                                (unsigned long long)dgm_hash(2, key.p, key.n));
    dgm_uuid7(uuid);
    for (size_t i = 0; i < DGM_UUID_CHARS; i++) {
        if (uuid[i] != '-')
            hex[n++] = uuid[i];
    }
    return dgm_arena_printf(a, "chatcmpl-%.*s", (int)n, hex);
}

static dgm_code read_key(struct chat *c, dgm_err *err)
{
    dgm_arena *a = dgm_http_arena(c->q.x);
    dgm_str key = dgm_http_header_of(dgm_http_request_of(c->q.x), DGM_STR("idempotency-key"));
    if (key.n > MAX_IDEMPOTENCY_KEY || dgm_utf8_check(key) != key.n)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "Idempotency-Key: expected at most %d bytes",
                        MAX_IDEMPOTENCY_KEY);
    c->message_id = key;
    c->caller_id = new_id(a, key);
    return DGM_OK;
}

/*
 * The question that we add for an agent without one, and a refusal, which no task has as its answer, are not in the
 * conversation's own history: they must not make it another one.
 */
static void forget_our_words(struct chat *c)
{
    for (size_t i = 0; i < c->input.messages.n; i++) {
        dgm_canon_message *m = &c->input.messages.at[i];
        if (m->role != DGM_CANON_ASSISTANT || m->content.kind != DGM_CANON_CONTENT_TEXT)
            continue;
        dgm_str refusal = dgm_chat_extra_text(m->extra, "refusal");
        if (dgm_openai_is_our_question(m->content.text) ||
            (refusal.n && dgm_str_eq(refusal, m->content.text)))
            m->content.text = DGM_STR("");
    }
}

/* False: it was answered. */
static bool read_settings(struct chat *c)
{
    dgm_err err = {0};
    int64_t n = 1;
    yyjson_val *choices = dgm_json_get(c->body, DGM_STR("n"));
    if (choices && !yyjson_is_null(choices))
        dgm_json_int(choices, &n);
    if (n != 1) {
        dgm_openai_fail_param(c->q.x, n > 1 ? "unsupported_value" : "invalid_value", "n",
                              "n: an agent gives one answer: send 1, or leave it out");
        return false;
    }
    if (dgm_chat_read_output_form(dgm_http_arena(c->q.x), c->body, &c->input.tools, &c->form,
                                  &err)) {
        dgm_openai_fail_err(c->q.x, &err, NULL);
        return false;
    }
    if (c->form.must_call && !dgm_openai_looks_at_tools(c->agent)) {
        dgm_openai_fail_tools(c->q.x, c->form.choice);
        return false;
    }
    c->stream = is_true(c->body, "stream");
    c->usage = is_true(dgm_json_get(c->body, DGM_STR("stream_options")), "include_usage");
    c->ignored = dgm_openai_ignored(dgm_http_arena(c->q.x), c->agent, c->body,
                                    dgm_chat_ignored(dgm_http_arena(c->q.x), c->body));
    return true;
}

static bool find_agent(struct chat *c)
{
    yyjson_val *model = dgm_json_get(c->body, DGM_STR("model"));
    c->model = yyjson_is_str(model) ? dgm_json_str(model) : (dgm_str){0};
    if (!c->model.n && !c->q.agent) {
        dgm_openai_fail_param(c->q.x, "missing_required_parameter", "model",
                              "model: missing: name an agent, /v1/models lists them");
        return false;
    }
    c->agent = openai_model_find(&c->q, c->model);
    if (!c->agent)
        dgm_openai_fail_model(&c->q, c->model);
    else if (!c->model.n)
        c->model = c->agent->id;
    return c->agent;
}

static dgm_code read_messages(struct chat *c, dgm_err *err)
{
    dgm_mint *mint = dgm_new(dgm_http_arena(c->q.x), dgm_mint);
    *mint = dgm_turn_mint();
    dgm_reader r = dgm_turn_reader(c->q.x, mint, err);
    dgm_code rc = dgm_codec_openai_chat.read_request(&r, c->body, NULL, &c->input);
    if (!rc && !c->input.messages.n)
        rc = dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "messages"),
                      "there is nothing in it: send at least one message");
    return rc;
}

static dgm_code read_body(struct chat *c, dgm_err *err)
{
    dgm_code rc = dgm_turn_body(c->q.x, &c->body, err);
    return rc ? rc : dgm_chat_check_request(c->body, err);
}

void dgm_chat_create(const dgm_turn_request *q)
{
    struct chat *c = dgm_new(dgm_http_arena(q->x), struct chat);
    dgm_err err = {0};
    c->q = *q;
    if (read_body(c, &err)) {
        chat_front_fail(c, &err);
        return;
    }
    if (!find_agent(c))
        return;
    if (read_messages(c, &err) || read_key(c, &err) ||
        dgm_openai_session(dgm_http_request_of(q->x), dgm_json_get(c->body, DGM_STR("metadata")),
                           &c->context_id, &err)) {
        chat_front_fail(c, &err);
        return;
    }
    if (!read_settings(c))
        return;
    if (c->context_id.n)
        forget_our_words(c);
    dgm_openai_fetch_files(&(struct openai_fetch){.q = &c->q,
                                                  .messages = c->input.messages,
                                                  .list = "messages",
                                                  .member = "file.file_id",
                                                  .on_done = chat_find_conversation,
                                                  .arg = c});
}
