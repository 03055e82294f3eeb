/*
 * test_llm_random.c - 10,000 random histories of the agent loop, each driven to a terminal state.
 *
 * The driver here has a store: a list of events and saved states, of which the first `durable` survive the end of the process.
 * Models, tools and callers do anything at any time, and the process ends at any time. After 400 steps they become reasonable,
 * so that the history ends. LLM_HISTORIES sets another number of histories.
 */
#include "base/list.h"
#include "loop/test_llm.h"
#include "model/calls.h"

#define STEPS 400
#define MOST_STEPS 4000

enum { NOW, GET, RM, DESK, PICK, ASK, AUTH, N_TOOLS };
static const dgm_llm_tool tools[N_TOOLS] = {
    [NOW] = {.name = {"now", 3}},
    [GET] = {.name = {"get", 3}, .is_idempotent = true},
    [RM] = {.name = {"rm", 2}, .needs_approval = true},
    [DESK] = {.name = {"desk", 4}, .kind = DGM_LLM_TOOL_AGENT, .agent_name = {"Desk", 4}},
    [PICK] = {.name = {"pick", 4}, .kind = DGM_LLM_TOOL_CALLER},
    [ASK] = {.name = {"ask_user", 8}, .kind = DGM_LLM_TOOL_ASK_USER},
    [AUTH] = {.name = {"request_auth", 12}, .kind = DGM_LLM_TOOL_REQUEST_AUTH},
};

struct record {
    bool is_state;
    dgm_str text;
};

struct running {
    dgm_str id;
    bool is_asking; /* it waits for ANSWER_TOOL */
};

struct world {
    uint64_t seed;
    dgm_arena *arena;
    dgm_llm_options options;
    dgm_llm_loop *loop;
    struct record *log; /* in the arena */
    size_t n_log, durable;
    struct running run[64];
    size_t n_run;
    dgm_strs ran;     /* keys of tools that are not idempotent */
    dgm_strs ran_ids; /* ids of all */
    bool in_model, in_commit, in_wait, has_ended;
    size_t commit_at;
    const dgm_message *turn_message, *first_message;
    int messages, kills, asks, answers, steps, fills, n_calls, unknown;
    dgm_task_state end;
};

static unsigned pick(struct world *w, unsigned n)
{
    w->seed ^= w->seed << 13;
    w->seed ^= w->seed >> 7;
    w->seed ^= w->seed << 17;
    return (unsigned)(w->seed >> 11) % n;
}

static bool chance(struct world *w, unsigned per_thousand)
{
    return w->steps < STEPS && pick(w, 1000) < per_thousand;
}

/* ---- the log ----------------------------------------------------------------------------------------------------- */

static void log_add(struct world *w, bool is_state, dgm_str text)
{
    w->log = dgm_list_grow(w->arena, w->log, w->n_log, sizeof *w->log);
    w->log[w->n_log++] = (struct record){is_state, dgm_arena_dup(w->arena, text)};
}

/* As the core does: a message without an id gets one, an event its time. */
static void log_event(struct world *w, const dgm_event *event)
{
    dgm_buf b;
    dgm_writer out = {.out = &b, .format = DGM_FORMAT_A2A_10};
    dgm_event filled = *event;
    dgm_status_update update;
    dgm_message message;
    dgm_internal internal;
    if (event->kind == DGM_EVENT_INTERNAL) {
        internal = *event->internal;
        internal.timestamp = DGM_STR("2026-01-02T03:04:05Z");
        filled.internal = &internal;
    }
    if (event->kind == DGM_EVENT_STATUS && event->status->status.message &&
        !event->status->status.message->message_id.n) {
        update = *event->status;
        message = *update.status.message;
        message.message_id = dgm_arena_printf(w->arena, "fill-%d", ++w->fills);
        update.status.message = &message;
        filled.status = &update;
    }
    dgm_buf_init(&b, SIZE_MAX);
    dgm_form_write_event(&out, &filled);
    log_add(w, false, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

static void read_record(struct world *w, dgm_arena *a, size_t i, dgm_event *ret_event)
{
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10, .err = &err};
    yyjson_val *v = dgm_json_parse_trusted(a, dgm_arena_dup(a, w->log[i].text));
    check_ok(dgm_form_read_event(&r, v, NULL, ret_event), err);
}

/* The Task of the whole log. Every event must fit, except that an artifact may be restarted. */
static dgm_fold *fold_log(struct world *w)
{
    dgm_fold *fold = dgm_fold_new((dgm_fold_options){0});
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_task task = {
        .id = DGM_STR("t"), .context_id = DGM_STR("c"), .status.state = DGM_STATE_SUBMITTED};
    dgm_event event = {.kind = DGM_EVENT_TASK, .task = &task};
    dgm_err err = {0};
    check_ok(dgm_fold_add(fold, &event, DGM_BY_AGENT, &err), err);
    for (size_t i = 0; i < w->n_log; i++) {
        if (w->log[i].is_state)
            continue;
        read_record(w, a, i, &event);
        check_ok(dgm_fold_add(fold, &event, DGM_BY_AGENT, &err), err);
        dgm_arena_reset(a);
    }
    if (!w->kills)
        assert_int_equal(dgm_fold_n_warnings(fold), 0);
    return fold;
}

static dgm_str last_state(const struct world *w)
{
    for (size_t i = w->n_log; i-- > 0;) {
        if (w->log[i].is_state)
            return w->log[i].text;
    }
    return (dgm_str){0};
}

/* ---- actions ----------------------------------------------------------------------------------------------------- */

static bool is_in(dgm_strs list, dgm_str s)
{
    for (size_t i = 0; i < list.n; i++) {
        if (dgm_str_eq(list.at[i], s))
            return true;
    }
    return false;
}

static void add_str(struct world *w, dgm_strs *list, dgm_str s)
{
    list->at = dgm_list_grow(w->arena, list->at, list->n, sizeof *list->at);
    list->at[list->n++] = dgm_arena_dup(w->arena, s);
}

/* The start of a tool is durable before the tool runs. */
static bool start_is_durable(const struct world *w, dgm_str call_id)
{
    dgm_str mark = dgm_arena_printf(w->arena, "\"toolCallId\":\"%.*s\"", DGM_P(call_id));
    for (size_t i = 0; i < w->durable; i++) {
        if (strstr(w->log[i].text.p, "internal:tool-start") && strstr(w->log[i].text.p, mark.p))
            return true;
    }
    return false;
}

static void on_run(struct world *w, const dgm_llm_tool_run *tool)
{
    assert_true(start_is_durable(w, tool->call_id));
    assert_true(w->n_run < 64);
    if (!dgm_str_is(tool->name, "get")) {
        assert_false(is_in(w->ran, tool->key)); /* never twice */
        assert_false(tool->is_repeated);
        add_str(w, &w->ran, tool->key);
    }
    add_str(w, &w->ran_ids, tool->call_id);
    w->run[w->n_run++] = (struct running){.id = dgm_arena_dup(w->arena, tool->call_id)};
}

static struct running *find_running(struct world *w, dgm_str id)
{
    for (size_t i = 0; i < w->n_run; i++) {
        if (dgm_str_eq(w->run[i].id, id))
            return &w->run[i];
    }
    return NULL;
}

static void stop_running(struct world *w, struct running *r)
{
    *r = w->run[--w->n_run];
}

/* After a kill the driver does not have the call: it is a new one for it. */
static void on_answer_tool(struct world *w, dgm_str id)
{
    struct running *r = find_running(w, id);
    assert_true(++w->answers <= w->asks);
    if (!r)
        w->run[w->n_run++] = (struct running){.id = dgm_arena_dup(w->arena, id)};
    else
        r->is_asking = false;
}

/* Every result that a model reads has its call before it, and every call has one result. */
static void check_pairs(struct world *w, dgm_messages messages)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_strs calls = {0};
    size_t n_results = 0;
    for (size_t i = 0; i < messages.n; i++) {
        dgm_strs ids = dgm_message_call_ids(a, &messages.at[i], 64);
        for (size_t k = 0; k < ids.n; k++)
            assert_false(is_in(calls, ids.at[k]));
        for (size_t k = 0; k < ids.n; k++)
            add_str(w, &calls, ids.at[k]);
        for (size_t k = 0; k < messages.at[i].parts.n; k++) {
            const dgm_part *part = &messages.at[i].parts.at[k];
            yyjson_val *list = part->kind == DGM_PART_DATA
                                   ? dgm_json_get(part->data, DGM_STR(DGM_DATA_RESULTS))
                                   : NULL;
            yyjson_val *result = yyjson_arr_get_first(list);
            assert_true(!result || is_in(calls, dgm_json_str_member(result, "call_id")));
            n_results += result != NULL;
        }
    }
    assert_int_equal(n_results, calls.n);
}

static void on_world_action(void *arg, const dgm_llm_action *x)
{
    struct world *w = arg;
    struct running *r;
    assert_false(w->has_ended); /* nothing follows END in a turn */
    switch (x->kind) {
    case DGM_LLM_EMIT: log_event(w, x->event); break;
    case DGM_LLM_SAVE:
        log_add(w, true, x->text);
        if (w->n_log % 8 == 0)
            check_round_trip(&w->options, x->text);
        break;
    case DGM_LLM_COMMIT:
        assert_false(w->in_commit);
        w->in_commit = true;
        w->commit_at = w->n_log;
        break;
    case DGM_LLM_CALL_MODEL:
        assert_false(w->in_model);
        assert_true(x->model.messages.n > 0);
        check_pairs(w, x->model.messages);
        w->in_model = true;
        w->n_calls = 0;
        break;
    case DGM_LLM_STOP_MODEL:
        assert_true(w->in_model);
        w->in_model = false;
        break;
    case DGM_LLM_RUN_TOOL: on_run(w, &x->tool); break;
    case DGM_LLM_ANSWER_TOOL: on_answer_tool(w, x->answer.call_id); break;
    case DGM_LLM_STOP_TOOL:
        if ((r = find_running(w, x->call_id)))
            stop_running(w, r);
        break;
    case DGM_LLM_WAIT: w->in_wait = true; break;
    case DGM_LLM_NOTE: break;
    case DGM_LLM_END:
        w->has_ended = true;
        w->end = x->state;
        break;
    }
}

static void world_step(struct world *w, dgm_llm_event e)
{
    assert_int_equal(dgm_llm_loop_step(w->loop, &e, (dgm_llm_sink){on_world_action, w}), DGM_OK);
}

/* ---- what happens ------------------------------------------------------------------------------------------------ */

static const dgm_message *world_message(struct world *w, const char *text, const char *data)
{
    return new_message(w->arena, ++w->messages, text, dgm_str_from(data));
}

static void model_calls(struct world *w)
{
    static const char *const names[] = {"now", "get",      "rm",           "desk", "pick",
                                        "now", "ask_user", "request_auth", "none", "get"};
    static const char *const args[] = {
        "{}",
        "{\"question\":\"What?\",\"reason\":\"x\",\"scheme\":\"s\"}",
        "{\"question\":\"W?\",\"reason\":\"x\",\"url\":\"https://x\"}",
        "{\"cut",
        "[]",
        ""};
    static const char *const ids[] = {"", "a", "b", "c", "d"};
    w->n_calls++;
    world_step(w, (dgm_llm_event){.kind = DGM_LLM_MODEL_CALL,
                                  .call = {.id = dgm_str_from(ids[pick(w, 5)]),
                                           .name = dgm_str_from(names[pick(w, 10)]),
                                           .arguments = dgm_str_from(args[pick(w, 6)])}});
}

static void model_ends(struct world *w)
{
    dgm_llm_end end = {.input_tokens = pick(w, 100), .output_tokens = pick(w, 10)};
    if (chance(w, 10))
        end.finish = DGM_LLM_CONTENT_FILTER;
    if (chance(w, 30))
        end.finish = DGM_LLM_LENGTH;
    if (chance(w, 30))
        end.refusal = DGM_STR("No.");
    if (chance(w, 100))
        end.opaque = DGM_STR("{\"x\":1}");
    w->in_model = false;
    world_step(w, (dgm_llm_event){.kind = DGM_LLM_MODEL_END, .end = end});
}

static void model_fails(struct world *w)
{
    dgm_llm_failure f = {.message = DGM_STR("The model is busy."),
                         .is_retryable = pick(w, 4) > 0,
                         .is_too_long = pick(w, 8) == 0,
                         .is_content_filter = pick(w, 20) == 0,
                         .retry_after_ms = pick(w, 5) == 0 ? 100000 : -1};
    w->in_model = false;
    world_step(w, (dgm_llm_event){.kind = DGM_LLM_MODEL_FAILED, .failure = f});
}

static void model_acts(struct world *w)
{
    static const char *const texts[] = {"Hello", " world", "", "\xc3\xa9", "\n\n"};
    unsigned x = pick(w, 100);
    dgm_str text = dgm_str_from(texts[pick(w, 5)]);
    if (w->steps >= STEPS || (x < 35 && (w->n_calls || pick(w, 3) == 0)))
        model_ends(w);
    else if (x < 60)
        world_step(w, (dgm_llm_event){.kind = DGM_LLM_MODEL_TEXT, .text = text});
    else if (x < 65)
        world_step(w, (dgm_llm_event){.kind = DGM_LLM_MODEL_REASONING, .text = text});
    else if (x < 97)
        model_calls(w);
    else
        model_fails(w);
}

static void tool_acts(struct world *w)
{
    struct running *r = &w->run[pick(w, (unsigned)w->n_run)];
    dgm_str id = r->id;
    if (r->is_asking)
        return;
    if (chance(w, 100)) {
        r->is_asking = true;
        w->asks++;
        world_step(w, (dgm_llm_event){
                          .kind = DGM_LLM_TOOL_ASKS,
                          .question = {.call_id = id,
                                       .text = DGM_STR("Name?"),
                                       .url = pick(w, 3) ? (dgm_str){0} : DGM_STR("https://x")}});
        return;
    }
    stop_running(w, r);
    if (chance(w, 50)) {
        w->unknown++;
        world_step(w, (dgm_llm_event){.kind = DGM_LLM_TOOL_UNKNOWN, .call_id = id});
        return;
    }
    world_step(
        w, (dgm_llm_event){
               .kind = DGM_LLM_TOOL_DONE,
               .result = {.call_id = id, .text = DGM_STR("result"), .is_error = pick(w, 5) == 0}});
}

static const dgm_message *random_answer(struct world *w)
{
    static const char *const rows[][2] = {
        {"yes", NULL},
        {"no", NULL},
        {"perhaps", NULL},
        {NULL, "{\"type\":\"approval\",\"id\":\"a\",\"approved\":true}"},
        {NULL, "{\"type\":\"approval\",\"approved\":false,\"reason\":\"x\"}"},
        {"text", "{\"tool_results\":[{\"call_id\":\"a\",\"output\":\"x\"},{\"call_id\":\"b\","
                 "\"output\":{\"n\":1}}]}"},
    };
    unsigned i = w->steps < STEPS ? pick(w, 6) : 0;
    return world_message(w, rows[i][0], rows[i][1]);
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

static void world_resume(struct world *w, const dgm_message *m)
{
    dgm_str state = last_state(w);
    dgm_auto(dgm_fold_free) dgm_fold *fold = fold_log(w);
    dgm_err err = {0};
    dgm_llm_event e = {.kind = state.p ? DGM_LLM_RESUMED : DGM_LLM_START,
                       .start = {.task_id = DGM_STR("t"),
                                 .context_id = DGM_STR("c"),
                                 .message = state.p ? m : w->first_message,
                                 .task = dgm_fold_task(fold)}};
    if (state.p)
        check_ok(dgm_llm_loop_load(state, &w->options, &w->loop, &err), err);
    else
        w->loop = dgm_llm_loop_new(&w->options);
    w->has_ended = false;
    world_step(w, e);
}

static void world_kill(struct world *w)
{
    w->durable += pick(w, (unsigned)(w->n_log - w->durable) + 1);
    w->n_log = w->durable;
    /* dgm_list_grow wants a list that grew to its size */
    struct record *log = NULL;
    for (size_t i = 0; i < w->n_log; i++) {
        log = dgm_list_grow(w->arena, log, i, sizeof *log);
        log[i] = w->log[i];
    }
    w->log = log;
    w->kills++;
    w->n_run = 0;
    w->in_model = w->in_commit = w->in_wait = false;
    dgm_llm_loop_free(w->loop);
    w->loop = NULL;
    dgm_auto(dgm_fold_free) dgm_fold *fold = fold_log(w);
    dgm_task_state state = dgm_fold_state(fold);
    w->has_ended = true;
    w->end = state;
    if (!dgm_state_is_terminal(state) && !dgm_state_is_interrupted(state))
        world_resume(w, w->turn_message);
}

static void world_answer(struct world *w)
{
    const dgm_message *m = random_answer(w);
    w->durable = w->n_log;
    if (chance(w, 100))
        m = w->turn_message; /* again */
    w->turn_message = m;
    if (!w->loop || chance(w, 300)) {
        dgm_llm_loop_free(w->loop);
        w->loop = NULL;
        w->n_run = 0;
        world_resume(w, m);
        return;
    }
    w->has_ended = false;
    world_step(w, (dgm_llm_event){.kind = DGM_LLM_MESSAGE, .message = m});
}

static void world_commits(struct world *w)
{
    w->in_commit = false;
    w->durable = w->durable > w->commit_at ? w->durable : w->commit_at;
    world_step(w, (dgm_llm_event){.kind = DGM_LLM_COMMITTED});
}

static void world_acts(struct world *w)
{
    if (chance(w, 25)) {
        world_kill(w);
    } else if (chance(w, 3)) {
        world_step(w, (dgm_llm_event){.kind = pick(w, 2) ? DGM_LLM_CANCEL : DGM_LLM_TIME_UP});
    } else if (chance(w, 20)) {
        world_step(w, (dgm_llm_event){.kind = DGM_LLM_MESSAGE,
                                      .message = world_message(w, "hurry", NULL)});
    } else if (chance(w, 20)) { /* not expected by anyone */
        world_step(w, (dgm_llm_event){.kind = DGM_LLM_TOOL_DONE,
                                      .result = {.call_id = DGM_STR("zzz"), .text = DGM_STR("x")}});
    } else if (w->in_commit && pick(w, 2)) {
        world_commits(w);
    } else if (w->n_run && pick(w, 2)) {
        tool_acts(w);
    } else if (w->in_wait) {
        w->in_wait = false;
        world_step(w, (dgm_llm_event){.kind = DGM_LLM_TIMER});
    } else if (w->in_model) {
        model_acts(w);
    }
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

struct piece {
    dgm_str id, text;
    bool is_open, is_closed;
    size_t start; /* in the log, of the last append:false */
    int starts;
};

struct summary {
    struct piece pieces[512];
    size_t n, last_question, terminals, last_event;
    dgm_str final_text;
};

static struct piece *piece_of(struct summary *s, dgm_str id)
{
    for (size_t i = 0; i < s->n; i++) {
        if (dgm_str_eq(s->pieces[i].id, id))
            return &s->pieces[i];
    }
    assert_true(s->n < 512);
    s->pieces[s->n] = (struct piece){.id = id};
    return &s->pieces[s->n++];
}

static void check_chunk(struct world *w, struct summary *s, const dgm_artifact_update *u, size_t at)
{
    struct piece *p = piece_of(s, u->artifact.artifact_id);
    dgm_str text = u->artifact.parts.at[0].content;
    if (u->append != DGM_TRUE) {
        assert_true(++p->starts == 1 || w->kills > 0);
        p->start = at;
        p->is_open = true;
        p->is_closed = false;
        p->text = text;
    } else {
        assert_true(p->is_open);
        p->text = dgm_arena_join(w->arena, p->text, text);
    }
    assert_false(p->is_closed);
    p->is_closed = u->last_chunk == DGM_TRUE;
}

static void check_event(struct world *w, struct summary *s, const dgm_event *e, size_t i)
{
    s->last_event = i;
    if (e->kind == DGM_EVENT_ARTIFACT)
        check_chunk(w, s, e->artifact, i);
    if (e->kind != DGM_EVENT_STATUS)
        return;
    dgm_task_state state = e->status->status.state;
    const dgm_message *m = e->status->status.message;
    s->terminals += dgm_state_is_terminal(state);
    if (dgm_state_is_interrupted(state))
        s->last_question = i + 1;
    if (state == DGM_STATE_FAILED || state == DGM_STATE_REJECTED)
        assert_true(m && m->parts.at[0].content.n &&
                    dgm_json_str_member(e->status->metadata, "error").n);
    if (state == DGM_STATE_COMPLETED)
        s->final_text = m ? dgm_arena_dup(w->arena, m->parts.at[0].content) : DGM_STR("");
    if (state == DGM_STATE_WORKING && m)
        assert_int_equal(m->parts.at[0].kind, DGM_PART_DATA); /* progress is not text */
}

/* The final text is the text of the artifacts of the last turn. */
static void check_final_text(struct world *w, const struct summary *s)
{
    dgm_str all = DGM_STR("");
    for (size_t i = 0; i < s->n; i++) {
        const struct piece *p = &s->pieces[i];
        if (p->start < s->last_question || !p->text.n)
            continue;
        if (all.n)
            all = dgm_arena_join(w->arena, all, DGM_STR("\n\n"));
        all = dgm_arena_join(w->arena, all, p->text);
    }
    check_same(s->final_text, all);
}

/* Tools that ran have an end. Without a kill each that was started has one; and an idempotent one ran, or was stopped. */
static void check_tools(struct world *w, dgm_strs started, dgm_strs ended)
{
    for (size_t i = 0; i < w->ran_ids.n; i++)
        assert_true(is_in(ended, w->ran_ids.at[i]));
    for (size_t i = 0; i < started.n && !w->kills; i++) {
        assert_true(is_in(ended, started.at[i]));
        if (w->end == DGM_STATE_COMPLETED)
            assert_true(is_in(w->ran_ids, started.at[i]));
    }
}

/* A result is the tool's own, so it ran. The outcome of an idempotent tool is unknown only after several attempts. */
static void check_complete(struct world *w, const dgm_internal *it, dgm_strs gets)
{
    if (it->success == DGM_TRUE)
        assert_true(is_in(w->ran_ids, it->tool_call_id));
    if (is_in(gets, it->tool_call_id) && dgm_str_starts(it->error, DGM_STR("The outcome")))
        assert_true(w->kills + w->unknown >= 3);
}

static void check_history(struct world *w)
{
    struct summary *s = dgm_new(w->arena, struct summary);
    dgm_strs started = {0}, ended = {0}, gets = {0}, others = {0};
    dgm_auto(dgm_fold_free) dgm_fold *fold = fold_log(w);
    for (size_t i = 0; i < w->n_log; i++) {
        dgm_event e;
        if (w->log[i].is_state)
            continue;
        read_record(w, w->arena, i, &e);
        check_event(w, s, &e, i);
        if (e.kind != DGM_EVENT_INTERNAL)
            continue;
        dgm_str id = e.internal->tool_call_id;
        if (e.internal->kind == DGM_INTERNAL_TOOL_START) {
            add_str(w, &started, id);
            add_str(w, dgm_str_is(e.internal->tool_name, "get") ? &gets : &others, id);
        }
        if (e.internal->kind == DGM_INTERNAL_TOOL_COMPLETE) {
            add_str(w, &ended, id);
            if (!is_in(others, id)) /* ids of a turn that was lost may come again */
                check_complete(w, e.internal, gets);
        }
    }
    assert_int_equal(s->terminals, 1);
    assert_true(dgm_state_is_terminal(dgm_fold_state(fold)));
    assert_int_equal(dgm_fold_state(fold), w->end);
    for (size_t i = 0; i < s->n; i++)
        assert_true(s->pieces[i].is_closed);
    if (w->end == DGM_STATE_COMPLETED)
        check_final_text(w, s);
    check_tools(w, started, ended);
    const dgm_task *task = dgm_fold_task(fold);
    for (size_t i = 0; i < task->artifacts.n; i++) {
        const dgm_artifact *x = &task->artifacts.at[i];
        check_same(piece_of(s, x->artifact_id)->text, x->parts.at[0].content);
    }
}

/* ---- the test ---------------------------------------------------------------------------------------------------- */

static dgm_task_state run_history(uint64_t seed, int *kills)
{
    struct world w = {.seed = (seed + 1) * 0x9e3779b97f4a7c15u, .arena = dgm_arena_new()};
    w.options = (dgm_llm_options){
        .tools = {tools, N_TOOLS},
        .retries = pick(&w, 3),
        .upstreams = 1 + pick(&w, 2),
        .compact_bytes = pick(&w, 4) ? 0 : 2000,
        .limits = {.parallel_tools = 1 + pick(&w, 4), .iterations = 10 + pick(&w, 20)}};
    w.loop = dgm_llm_loop_new(&w.options);
    w.first_message = w.turn_message = world_message(&w, "hi", NULL);
    world_step(&w, (dgm_llm_event){.kind = DGM_LLM_START,
                                   .start = {.task_id = DGM_STR("t"),
                                             .context_id = DGM_STR("c"),
                                             .message = w.first_message}});
    for (; !w.has_ended || !dgm_state_is_terminal(w.end); w.steps++) {
        assert_true(w.steps < MOST_STEPS);
        if (w.has_ended)
            world_answer(&w);
        else
            world_acts(&w);
        if (w.has_ended && dgm_state_is_terminal(w.end) && w.loop && chance(&w, 100))
            world_kill(&w); /* before the last events are durable */
    }
    check_history(&w);
    *kills += w.kills;
    dgm_llm_loop_free(w.loop);
    dgm_arena_free(w.arena);
    return w.end;
}

static int current; /* which one, in a debugger */

static void random_histories_end_well(void **state)
{
    const char *text = getenv("LLM_HISTORIES");
    int n = text ? atoi(text) : 10000, kills = 0;
    int ends[DGM_STATE_AUTH_REQUIRED + 1] = {0};
    (void)state;
    for (int i = 0; i < n; i++) {
        current = i;
        ends[run_history((uint64_t)i, &kills)]++;
    }
    print_message("# %d histories: %d completed, %d failed, %d canceled, %d rejected; %d kills\n",
                  n, ends[DGM_STATE_COMPLETED], ends[DGM_STATE_FAILED], ends[DGM_STATE_CANCELED],
                  ends[DGM_STATE_REJECTED], kills);
    if (n < 1000)
        return;
    assert_true(ends[DGM_STATE_COMPLETED] > n / 4); /* the worlds are not all broken */
    assert_true(ends[DGM_STATE_FAILED] && ends[DGM_STATE_CANCELED] && ends[DGM_STATE_REJECTED]);
    assert_true(kills > n / 10);
}

/* The same events give the same actions. */
static void a_history_is_deterministic(void **state)
{
    int one = 0, two = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++)
        assert_int_equal(run_history(seed, &one), run_history(seed, &two));
    assert_int_equal(one, two);
}

DGM_TEST_MAIN(dgm_test_holds(random_histories_end_well, "R002-13 R002-31"),
              dgm_test(a_history_is_deterministic))
