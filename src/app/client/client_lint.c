/*
 * app/client/client_lint.c - `dragoman lint URL`: a server's card, and the stream of an answer, as they come.
 */
#include "app/cli/cli_lint.h"
#include "app/client/client_int.h"
#include "base/ids.h"

struct linting {
    dgm_cli_report report;
    dgm_linter *stream;
};

static void take_card(void *arg, const char *url, dgm_str text)
{
    struct linting *t = arg;
    dgm_linter *l = dgm_cli_report_linter(&t->report, url, url);
    if (!l)
        return;
    dgm_linter_feed(l, text.p, text.n);
    dgm_linter_end(l);
    dgm_linter_free(l);
}

static void take_bytes(void *arg, const char *bytes, size_t n)
{
    struct linting *t = arg;
    dgm_linter_feed(t->stream, bytes, n);
    fflush(stdout); /* a stream may take its time */
}

/* A server may keep the stream open for what others will say to an agent that waits. */
static bool goes_on(const dgm_object *o, dgm_str event_id, void *arg)
{
    const dgm_event *e = o->it;
    (void)event_id;
    (void)arg;
    return o->kind != DGM_OBJECT_STREAM_RESPONSE || e->kind != DGM_EVENT_STATUS ||
           !dgm_state_is_interrupted(e->status->status.state);
}

static int lint_answer(struct linting *t, peer *p)
{
    const char *text = dgm_cli_get(p->line, "message");
    dgm_part part = {.kind = DGM_PART_TEXT, .content = dgm_str_from(text ? text : "hello")};
    dgm_message message = {
        .message_id = dgm_uuid7_in(p->arena), .role = DGM_ROLE_USER, .parts = {&part, 1}};
    dgm_send_request request = {.tenant = p->is_rest ? (dgm_str){0} : p->tenant,
                                .message = &message};
    bool streams = !p->card || p->card->capabilities.streaming == DGM_TRUE;
    struct peer_call call = {.method = streams ? DGM_METHOD_STREAM : DGM_METHOD_SEND,
                             .params = &request,
                             .take = goes_on,
                             .raw = take_bytes,
                             .arg = t};
    dgm_err err = {0};
    t->report.from = p->codec->name; /* what the card has promised */
    t->stream = dgm_cli_report_linter(&t->report, dgm_arena_dup(p->arena, p->url).p, NULL);
    dgm_code rc = t->stream ? dgm_peer_call(p, &call, &err) : DGM_OK;
    if (t->stream && !rc)
        dgm_linter_end(t->stream);
    dgm_linter_free(t->stream);
    return rc ? dgm_peer_report_error(p, &err) : DGM_CLI_OK;
}

int dgm_client_lint(const dgm_cli_line *line)
{
    struct linting t = {.stream = NULL};
    dgm_cli_report_begin(&t.report, line);
    peer p = {.on_card = take_card, .on_card_arg = &t};
    int status = dgm_peer_open(&p, line, line->args[0]);
    if (!status) {
        dgm_client_http_catch_interrupt();
        status = lint_answer(&t, &p);
    }
    dgm_peer_close(&p);
    int found = dgm_cli_report_end(&t.report);
    return status ? status : found;
}
