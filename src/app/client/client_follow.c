/*
 * app/client/client_follow.c - a call whose answer may take long.
 *
 * After a broken stream, or an answer before the task has ended, the task is polled until it has ended or waits for
 * input. Ctrl-C becomes CancelTask.
 */
#include "app/client/client_int.h"

#define POLL_MIN_MS 100
#define POLL_MAX_MS 2000

static bool follow_on_object(const dgm_object *o, dgm_str event_id, void *arg)
{
    struct follow *f = arg;
    dgm_event whole = {.kind = DGM_EVENT_TASK, .any = o->it};
    if (event_id.n)
        f->s->last_event = dgm_arena_dup(f->s->arena, event_id);
    const dgm_event *e = o->kind == DGM_OBJECT_TASK ? &whole : o->it;
    if (!dgm_show_event(f->s, e))
        return false;
    if (e->kind == DGM_EVENT_STATUS && dgm_state_is_terminal(f->s->state))
        return false; /* nothing follows, even if the server keeps the stream open */
    if (f->leaves && dgm_client_can_ask(f->s))
        return false; /* a subscriber decides, too; no message of ours is on its way */
    /* A server may leave the stream open although the task waits for input; then we stop reading. (A task
     * at the start of a stream has the state before our message.) */
    return f->leaves || e->kind != DGM_EVENT_STATUS || !dgm_state_is_interrupted(f->s->state);
}

static void tick(void *arg)
{
    struct follow *f = arg;
    dgm_show_tick(f->s);
}

static dgm_code ask(struct follow *f, dgm_method method, void *params, const char *last_event,
                    dgm_err *err)
{
    struct peer_call call = {.method = method,
                             .params = params,
                             .last_event = last_event,
                             .on_object = follow_on_object,
                             .on_tick = tick,
                             .arg = f};
    return dgm_peer_call(f->p, &call, err);
}

static dgm_task_request request_of(const struct follow *f)
{
    return (dgm_task_request){.tenant = dgm_a2a_tenant_of(&f->p->at), .task_id = f->s->task_id};
}

/* ---- waiting ------------------------------------------------------------------------------------------------- */

static dgm_code wait_for_task(struct follow *f, dgm_err *err)
{
    unsigned pause = POLL_MIN_MS;
    dgm_code rc = DGM_OK;
    while (!rc && f->s->task_id.n && !dgm_show_is_settled(f->s) &&
           !dgm_client_http_was_interrupted(f->p->http)) {
        dgm_task_request get = request_of(f);
        dgm_client_http_pause(f->p->http, pause);
        dgm_show_tick(f->s);
        pause = pause * 2 < POLL_MAX_MS ? pause * 2 : POLL_MAX_MS;
        rc = ask(f, DGM_METHOD_GET, &get, NULL, err);
    }
    return rc;
}

/* ---- canceling ------------------------------------------------------------------------------------------------ */

static int client_follow_cancel(struct follow *f)
{
    dgm_task_request request = request_of(f);
    dgm_err err = {0};
    dgm_show_end(f->s);
    if (f->leaves)
        return DGM_CLI_FAILED;
    if (!f->s->task_id.n) {
        dgm_cli_complain("interrupted before the server returned a task id");
        return DGM_CLI_FAILED;
    }
    dgm_client_http_release_interrupt(f->p->http);
    if (ask(f, DGM_METHOD_CANCEL, &request, NULL, &err))
        dgm_peer_report_error(f->p, &err);
    else if (f->s->state != DGM_STATE_CANCELED)
        dgm_cli_complain("the task was not canceled: it is %s", dgm_show_state_name(f->s->state));
    dgm_show_end(f->s);
    return DGM_CLI_FAILED;
}

/* ---- the end ------------------------------------------------------------------------------------------------------ */

static void print_how_to_continue(const struct follow *f)
{
    const show *s = f->s;
    const char *what = s->state == DGM_STATE_AUTH_REQUIRED ? "requires authentication"
                                                           : "is waiting for your answer";
    if (s->json || dgm_client_can_ask(s))
        return;
    if (s->asked.n) {
        dgm_client_print_requests(s, f->p->address);
        return;
    }
    if (s->sign_in.n)
        dgm_cli_hint("sign in at %.*s", DGM_P(s->sign_in));
    dgm_cli_hint("the agent %s: dragoman send %s --task %.*s TEXT", what, f->p->address,
                 DGM_P(s->task_id));
}

static int client_follow_status_of(const struct follow *f)
{
    const show *s = f->s;
    if (s->is_message || s->state == DGM_STATE_COMPLETED)
        return DGM_CLI_OK;
    if (dgm_state_is_interrupted(s->state)) {
        print_how_to_continue(f);
        return DGM_CLI_OK;
    }
    if (dgm_state_is_terminal(s->state))
        return DGM_CLI_FAILED;
    if (!f->waits && s->task_id.n) {
        if (!s->json)
            printf("%.*s\n", DGM_P(s->task_id));
        return DGM_CLI_OK;
    }
    dgm_cli_complain("the response of the server ended without a task");
    return DGM_CLI_FAILED;
}

int dgm_client_follow(struct follow *f, dgm_method method, void *params, const char *last_event)
{
    dgm_err err = {0}, second = {0};
    dgm_code rc = ask(f, method, params, last_event, &err);
    if (f->waits && !dgm_client_http_was_interrupted(f->p->http) && f->s->task_id.n &&
        !f->s->failed && (!rc || rc == DGM_UNAVAILABLE) && wait_for_task(f, &second) == DGM_OK)
        rc = DGM_OK; /* the stream broke, the task did not */
    if (f->s->failed)
        return DGM_CLI_FAILED; /* main() reports the error of standard output */
    if (dgm_client_http_was_interrupted(f->p->http))
        return client_follow_cancel(f);
    dgm_show_end(f->s);
    return rc ? dgm_peer_report_error(f->p, &err) : client_follow_status_of(f);
}
