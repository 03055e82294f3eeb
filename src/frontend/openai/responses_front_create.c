/*
 * frontend/openai/responses_front_create.c - POST /v1/responses.
 *
 *   body ─► checked ─► references ─► where it goes on ─► the agent is asked ─► events, the whole response, or its state
 */
#include "frontend/openai/openai_question.h"
#include "frontend/openai/responses_front_int.h"

struct creating {
    struct responses_op *op;
    struct responses_asked asked;
    const dgm_turn_agent *agent;
    struct responses_place place;
    yyjson_val *request; /* as it is stored */
    dgm_str request_text;
    dgm_str ignored;
    dgm_canon_input input;
    dgm_turn_resolving approvals; /* answers to requests for approval */
    dgm_str question_seed;        /* of a request that names no conversation; empty: it names one */
};

/* ---- the answer -------------------------------------------------------------------------------------------------------- */

static void responses_front_create_on_sent(dgm_code code, const dgm_sent *sent, const dgm_err *err,
                                           void *arg)
{
    struct creating *c = arg;
    if (code) {
        dgm_responses_fail(c->op, err);
        return;
    }
    struct responses_turn turn = {.id = c->asked.id,
                                  .agent = c->agent->id,
                                  .task_id = sent->task_id,
                                  .context_id = sent->context_id,
                                  .request = c->request,
                                  .form = c->asked.form,
                                  .log = sent->log,
                                  .first_seq = sent->first_seq,
                                  .question_seed = c->question_seed,
                                  .turn = sent->turn};
    dgm_front_note_task(c->op->x, sent->task_id, sent->turn);
    uint32_t began = c->asked.background ? 0 : sent->turn; /* whoever leaves comes back */
    if (c->asked.stream)
        dgm_responses_stream(c->op, &turn, 0, began, c->ignored);
    else if (c->asked.background)
        dgm_responses_send_state(c->op, &turn, c->ignored);
    else
        dgm_responses_wait(c->op, &turn, began, c->ignored);
}

/* ---- what is asked ------------------------------------------------------------------------------------------------------ */

/* What came before goes in front. */
static dgm_code prepend(struct creating *c, dgm_err *err)
{
    dgm_reader r = dgm_turn_reader(c->op->x, NULL, err);
    dgm_canon_messages before = {0}, own = c->input.messages, all;
    dgm_arena *a = c->op->arena;
    dgm_code rc = dgm_codec_responses.read_messages(
        &r, dgm_responses_build_items(a, c->place.items, c->place.n_items, c->asked.scope), NULL,
        &before);
    if (rc)
        return rc;
    all.at = dgm_new_n(a, dgm_canon_message, before.n + 1 + own.n);
    all.n = before.n;
    if (before.n)
        memcpy(all.at, before.at, before.n * sizeof *all.at);
    if (!c->place.has_history) /* it has no answer, but it is not the current question */
        all.at[all.n++] = (dgm_canon_message){.role = DGM_CANON_ASSISTANT};
    if (own.n)
        memcpy(all.at + all.n, own.at, own.n * sizeof *all.at);
    all.n += own.n;
    c->input.messages = all;
    return DGM_OK;
}

static dgm_code read_input(struct creating *c, dgm_err *err)
{
    const dgm_at *input = DGM_AT_LIT(NULL, "input");
    dgm_arena *a = c->op->arena;
    dgm_reader r = dgm_turn_reader(c->op->x, NULL, err); /* every item has an id */
    yyjson_val *part;
    size_t k, n;
    for (size_t i = 0; i < c->asked.n_items; i++) { /* here it is known which item names a file */
        const dgm_at *content = DGM_AT_LIT(DGM_AT_I(input, i), "content");
        yyjson_arr_foreach (dgm_json_get(c->asked.items[i], DGM_STR("content")), k, n, part) {
            struct openai_file file;
            yyjson_val *id = dgm_json_non_null(part, "file_id");
            if (id && !dgm_openai_file_read_id(a, dgm_json_str(id), &file))
                return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(DGM_AT_I(content, k), "file_id"),
                                "unknown file id: send its bytes or a URL");
        }
    }
    c->request = dgm_responses_build_request(a, c->op->body, c->asked.items, c->asked.n_items,
                                             c->asked.scope);
    c->request_text = dgm_json_text_in(a, c->request);
    if (c->request_text.n > DGM_MAX_RECORD_BYTES)
        return dgm_fail(err, DGM_TOO_LARGE, input, "longer than the limit record_bytes of %zu",
                        DGM_MAX_RECORD_BYTES);
    return dgm_codec_responses.read_request(&r, c->request, NULL, &c->input);
}

static void responses_ask(void *arg)
{
    struct creating *c = arg;
    struct responses_op *op = c->op;
    const struct responses_place *place = &c->place;
    dgm_err err = {0};
    static dgm_str json_only[] = {{"application/json", sizeof "application/json" - 1}};
    if (place->n_items && prepend(c, &err)) {
        dgm_responses_fail(op, &err);
        return;
    }
    dgm_ask ask = {.x = op->x,
                   .turns = op->q.turns,
                   .owner = op->q.owner,
                   .agent = c->agent,
                   .input = &c->input,
                   .context_id = place->context_id,
                   .task_id = place->task_id,
                   .context_has_history = place->has_history,
                   .fork_on_difference = place->may_fork,
                   .metadata = dgm_openai_metadata(op->arena, op->body, &c->asked.form, true),
                   .protocol = DGM_STR(RESPONSES_PROTOCOL),
                   .previous = c->asked.previous};
    if (c->asked.form.json)
        ask.accepted_output_modes = (dgm_strs){json_only, 1};
    if (c->asked.store) {
        ask.caller_id = c->asked.id;
        ask.request = c->request_text;
    }
    dgm_turn_ask(&ask, responses_front_create_on_sent, c);
}

static void responses_on_question(void *arg, dgm_str context_id)
{
    struct creating *c = arg;
    c->place.context_id = context_id;
    c->place.has_history = context_id.n > 0;
    responses_ask(c);
}

/* An approval that no task waits for must not look as if it had been heard. */
static void responses_fail_approval(struct creating *c)
{
    dgm_openai_fail_param(c->op->x, "approval_request_not_found", "input",
                          "No open request for approval has this approval_request_id: it was "
                          "answered before, its task has "
                          "ended, or it belongs to another conversation.");
}

static void responses_on_approvals(void *arg)
{
    struct creating *c = arg;
    const dgm_turn_resolving *r = &c->approvals;
    if (!r->task_id.n || (c->place.task_id.n && !dgm_str_eq(c->place.task_id, r->task_id))) {
        responses_fail_approval(c);
        return;
    }
    if (!c->place.context_id.n &&
        !c->asked.previous.n) /* a later question may be answered by its text */
        c->question_seed = dgm_openai_question_seed(&c->op->q, c->agent, c->op->body,
                                                    &c->input.messages, c->input.messages.n);
    c->input.resume = r->resume;
    c->place.task_id = r->task_id;
    c->place.context_id = r->task_context;
    c->place.has_history = true;
    responses_ask(c);
}

/* Without a name it may still answer a question. */
static void responses_find_conversation(void *arg)
{
    struct creating *c = arg;
    if (c->input.resume.n) {
        c->approvals = (dgm_turn_resolving){.arena = c->op->arena,
                                            .core = c->op->core,
                                            .owner = c->op->q.owner,
                                            .agent = c->agent->id,
                                            .context_id = c->place.context_id,
                                            .resume = c->input.resume,
                                            .on_resolved = responses_on_approvals,
                                            .arg = c};
        dgm_turn_resolve(&c->approvals);
        return;
    }
    if (c->place.context_id.n || c->place.task_id.n || c->place.n_items || c->asked.previous.n) {
        responses_ask(c);
        return;
    }
    c->question_seed = dgm_openai_question_seed(&c->op->q, c->agent, c->op->body,
                                                &c->input.messages, c->input.messages.n);
    struct openai_question_search search = {.q = &c->op->q,
                                            .agent = c->agent,
                                            .body = c->op->body,
                                            .messages = &c->input.messages,
                                            .on_found = responses_on_question,
                                            .arg = c};
    if (!dgm_openai_question_find(&search))
        responses_ask(c);
}

static void on_place(void *arg, const struct responses_place *place)
{
    struct creating *c = arg;
    dgm_err err = {0};
    c->place = *place;
    if (read_input(c, &err)) {
        dgm_responses_fail(c->op, &err);
        return;
    }
    dgm_openai_fetch_files(&(struct openai_fetch){.q = &c->op->q,
                                                  .messages = c->input.messages,
                                                  .list = "input",
                                                  .member = "file_id",
                                                  .on_done = responses_find_conversation,
                                                  .arg = c});
}

static void on_resolved(void *arg)
{
    struct creating *c = arg;
    dgm_responses_find_place(c->op, &c->asked, c->agent, on_place, c);
}

void dgm_responses_create(const dgm_front_request *q)
{
    struct responses_op *op = dgm_responses_new_op(q);
    struct creating *c = dgm_new(op->arena, struct creating);
    dgm_err err = {0};
    c->op = op;
    if (!dgm_responses_read_body(op, dgm_responses_request_rules))
        return;
    if (dgm_responses_read_asked(op->arena, op->body, &c->asked, &err)) {
        dgm_responses_fail(op, &err);
        return;
    }
    if (c->asked.previous.n && c->asked.conversation.n) {
        dgm_openai_fail_param(op->x, "mutually_exclusive_parameters", "previous_response_id",
                              "Give either previous_response_id or conversation, not both.");
        return;
    }
    if (!(c->agent = openai_model_find(&op->q, c->asked.model))) {
        dgm_openai_fail_model(&op->q, c->asked.model);
        return;
    }
    if (c->asked.form.must_call && !dgm_openai_looks_at_tools(c->agent)) {
        dgm_openai_fail_tools(op->x, "tool_choice");
        return;
    }
    c->ignored = dgm_openai_ignored(op->arena, c->agent, op->body,
                                    dgm_responses_ignored(op->arena, op->body));
    struct responses_room room = {DGM_MAX_RECORD_BYTES, "record_bytes"};
    dgm_responses_resolve(op, c->asked.items, c->asked.n_items, "input", room, on_resolved, c);
}
