/*
 * backend/langgraph/langgraph_recover.c - a run whose worker or server was lost: how far did the graph come?
 *
 * The new worker is asked for the state of the thread.
 *
 *   the thread is unknown, or lacks our message       ── the same `run` again
 *   it waits with the interrupts that we answered     ── the same `run` again
 *   it waits with others                              ── the run had ended: the question is reported
 *   nodes are left to run                             ── `run` with input null, once: a graph that ends its process
 *                                                        again and again must not run for ever
 *   nothing is left to run                            ── the run had ended: the answer is made of the state
 */
#include "backend/langgraph/langgraph_int.h"

#include "base/limits.h"

#define STATE_MS 150000 /* longer than a process may take to start */
#define MAX_ATTEMPTS 4
#define MAX_CONTINUED 8 /* restarts of the server in one run */

#define LOST_TEXT "the agent's process ended while it worked"

static bool list_has(const dgm_json *list, dgm_str text)
{
    yyjson_val *item;
    size_t i, n;
    yyjson_arr_foreach ((yyjson_val *)(uintptr_t)list, i, n, item) {
        if (yyjson_is_str(item) && dgm_str_eq(dgm_json_str(item), text))
            return true;
    }
    return false;
}

/* Has the graph got our input? state.messages has the message, or a2a_inbox is ours. */
static bool has_our_input(const struct langgraph_job *j, const dgm_json *state)
{
    dgm_str id = j->run->input->message->message_id;
    const dgm_json *inbox =
        dgm_json_get(dgm_json_get(state, DGM_STR("values")), DGM_STR("a2a_inbox"));
    dgm_str inbox_id = dgm_json_str_member(dgm_json_get(inbox, DGM_STR("message")), "messageId");
    return list_has(dgm_json_get(state, DGM_STR("messageIds")), id) || dgm_str_eq(inbox_id, id);
}

/* Does the thread wait with an interrupt that this run answers? */
static bool waits_for_our_answer(const struct langgraph_job *j, const dgm_json *interrupts)
{
    yyjson_val *it;
    size_t i, n;
    yyjson_arr_foreach ((yyjson_val *)(uintptr_t)interrupts, i, n, it) {
        if (dgm_json_get(j->plan.resume, dgm_json_str_member(it, "id")))
            return true;
    }
    return false;
}

static void run_again(struct langgraph_job *j)
{
    j->continues = j->plan.kind == DGM_GRAPH_CONTINUE;
    dgm_langgraph_send(j);
}

static void continue_once(struct langgraph_job *j)
{
    bool is_worker_loss = j->attempt > 0;
    if (is_worker_loss ? j->has_lost_worker : j->n_continued >= MAX_CONTINUED) {
        dgm_run_report(j->run, &(dgm_run_fault){.what = DGM_STR(LOST_TEXT),
                                                .detail = DGM_STR(
                                                    "it ended again after it had been continued")});
        dgm_langgraph_fail(j, DGM_STATE_FAILED, DGM_STR(LOST_TEXT));
        return;
    }
    j->has_lost_worker = j->has_lost_worker || is_worker_loss;
    j->n_continued++;
    j->continues = true;
    dgm_langgraph_remember(j);
    dgm_langgraph_send(j);
}

static void report_state(struct langgraph_job *j, const dgm_json *state, dgm_str id)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    bool is_in_messages = list_has(dgm_json_get(state, DGM_STR("messageIds")), id);
    dgm_langgraph_finish(j,
                         dgm_graph_result_of_state(a, state, is_in_messages ? id : (dgm_str){0}));
}

static void on_state(void *user, const dgm_json *state, const dgm_worker_fault *fault)
{
    struct langgraph_job *j = user;
    const dgm_json *interrupts = dgm_json_get(state, DGM_STR("interrupts"));
    size_t n_next = yyjson_arr_size(dgm_json_get(state, DGM_STR("next")));
    j->call = NULL;
    if (fault) {
        dgm_run_report(j->run, &(dgm_run_fault){DGM_STR(LOST_TEXT), fault->detail, fault->output});
        dgm_langgraph_fail(j, DGM_STATE_FAILED, DGM_STR(LOST_TEXT));
        return;
    }
    bool exists = yyjson_is_true(dgm_json_get(state, DGM_STR("exists")));
    bool is_input = j->plan.kind == DGM_GRAPH_INPUT;
    if (!exists || (is_input && !has_our_input(j, state)))
        run_again(j);
    else if (!is_input && waits_for_our_answer(j, interrupts))
        run_again(j);
    else if (yyjson_arr_size((yyjson_val *)(uintptr_t)interrupts) || !n_next)
        report_state(j, state, j->run->input->message->message_id);
    else
        continue_once(j);
}

void dgm_langgraph_recover(struct langgraph_job *j)
{
    dgm_buf b;
    if (j->attempt >= MAX_ATTEMPTS) {
        dgm_run_report(j->run, &(dgm_run_fault){.what = DGM_STR(LOST_TEXT)});
        dgm_langgraph_fail(j, DGM_STATE_FAILED, DGM_STR(LOST_TEXT));
        return;
    }
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"agent\":");
    dgm_json_put_str(&b, j->agent->graph);
    dgm_buf_add_lit(&b, ",\"thread\":");
    dgm_json_put_str(&b, j->thread);
    dgm_buf_add_lit(&b, ",\"values\":true}");
    j->call = dgm_worker_call_start(j->agent->pool, j->run->loop, j->thread, "state",
                                    dgm_buf_str(&b), STATE_MS, on_state, j);
    dgm_buf_done(&b);
}
