/* app/client/client_card.c - `dragoman card get`: a card as text, as JSON, or checked; `dragoman lint URL`. */
#include "app/cli/cli_lint.h"
#include "app/client/client_int.h"
#include "base/ids.h"
#include "wire/a2a/a2a_card.h"

/* ---- for a person -------------------------------------------------------------------------------------------- */

static void client_card_plain(dgm_str text)
{
    for (size_t i = 0; i < text.n; i++)
        putchar((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f ? ' ' : text.p[i]);
}

static void row(const char *name, dgm_str text)
{
    if (!text.n)
        return;
    printf("%-14s", name);
    client_card_plain(text);
    putchar('\n');
}

static void words(const char *name, const dgm_strs *list)
{
    if (!list->n)
        return;
    printf("%-14s", name);
    for (size_t i = 0; i < list->n; i++) {
        printf("%s", i ? ", " : "");
        client_card_plain(list->at[i]);
    }
    putchar('\n');
}

static void print_card(const dgm_agent_card *c)
{
    const dgm_agent_capabilities *can = &c->capabilities;
    row("name", c->name);
    row("description", c->description);
    row("version", c->version);
    if (c->provider)
        row("provider", c->provider->organization);
    row("documentation", c->documentation_url);
    printf("%-14sstreaming %s, push notifications %s, extended card %s\n", "capabilities",
           can->streaming == DGM_TRUE ? "yes" : "no",
           can->push_notifications == DGM_TRUE ? "yes" : "no",
           can->extended_agent_card == DGM_TRUE ? "yes" : "no");
    words("input", &c->default_input_modes);
    words("output", &c->default_output_modes);
    for (size_t i = 0; i < c->security_schemes.n; i++)
        row(i ? "" : "security", c->security_schemes.at[i].name);
    printf("\ninterfaces\n");
    for (size_t i = 0; i < c->interfaces.n; i++) {
        const dgm_agent_interface *at = &c->interfaces.at[i];
        printf("  A2A %-4.*s %-10.*s ", DGM_P(at->protocol_version), DGM_P(at->protocol_binding));
        client_card_plain(at->url);
        if (at->tenant.n) {
            printf(" tenant ");
            client_card_plain(at->tenant);
        }
        putchar('\n');
    }
    printf("\nskills\n");
    for (size_t i = 0; i < c->skills.n; i++) {
        const dgm_agent_skill *s = &c->skills.at[i];
        printf("  ");
        client_card_plain(s->name);
        printf(": ");
        client_card_plain(s->description);
        putchar('\n');
    }
}

/* ---- judged ------------------------------------------------------------------------------------------------------ */

struct judge {
    const char *url;
    size_t faults;
};

static void print_card_finding(void *arg, const dgm_finding *f)
{
    struct judge *j = arg;
    if (f->rule->severity == DGM_SEVERITY_NOTE)
        return;
    j->faults++;
    dgm_cli_complain("%s: at %s: %s [%s]", j->url, f->at, f->message, f->rule->id);
}

/* By the rules of `dragoman lint`. */
static void judge_card(void *arg, const char *url, dgm_str text)
{
    struct judge *j = arg;
    dgm_lint_options o = {.size = sizeof o, .url = url, .on_finding = print_card_finding, .arg = j};
    dgm_linter *l;
    j->url = url;
    if (dgm_linter_new(&o, &l, NULL))
        return;
    dgm_linter_feed(l, text.p, text.n);
    dgm_linter_end(l);
    dgm_linter_free(l);
}

int dgm_client_card(const dgm_cli_line *line)
{
    bool validate = dgm_cli_get(line, "validate");
    struct judge j = {.faults = 0};
    peer p = {.on_card = validate ? judge_card : NULL, .on_card_arg = &j};
    int status;
    if (line->n_args < 2)
        return dgm_cli_refuse(line, "get needs URL");
    if (!(status = dgm_peer_open_card(&p, line, line->args[1]))) {
        if (validate && j.faults)
            status = DGM_CLI_FAILED;
        else if (validate)
            printf("%s: a card of A2A %s without faults\n", p.card_url,
                   dgm_a2a_card_is_03(p.card_json) ? "0.3" : "1.0");
        else if (!dgm_cli_get(line, "json"))
            print_card(p.card);
        else if (!dgm_show_json(DGM_OBJECT_CARD, p.card, true))
            status = DGM_CLI_FAILED;
    }
    dgm_peer_close(&p);
    return status;
}

/* ---- `dragoman lint URL`: checks a server's card and the stream of an answer ----------------------------------- */

struct linting {
    dgm_cli_report report;
    dgm_linter *stream;
};

static void lint_read_card(void *arg, const char *url, dgm_str text)
{
    struct linting *t = arg;
    dgm_linter *l = dgm_cli_report_linter(&t->report, url, url);
    if (!l)
        return;
    dgm_linter_feed(l, text.p, text.n);
    dgm_linter_end(l);
    dgm_linter_free(l);
}

static void lint_read_bytes(void *arg, const char *bytes, size_t n)
{
    struct linting *t = arg;
    dgm_linter_feed(t->stream, bytes, n);
    fflush(stdout); /* a stream may take its time */
}

/* A server may leave the stream open while its agent waits for input. */
static bool lint_on_object(const dgm_object *o, dgm_str event_id, void *arg)
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
    dgm_send_request request = {.tenant = dgm_a2a_tenant_of(&p->at), .message = &message};
    bool streams = !p->card || p->card->capabilities.streaming == DGM_TRUE;
    struct peer_call call = {.method = streams ? DGM_METHOD_STREAM : DGM_METHOD_SEND,
                             .params = &request,
                             .on_object = lint_on_object,
                             .raw = lint_read_bytes,
                             .arg = t};
    dgm_err err = {0};
    t->report.from = p->at.codec->name; /* what the card has promised */
    t->stream = dgm_cli_report_linter(&t->report, dgm_arena_dup(p->arena, p->at.url).p, NULL);
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
    peer p = {.on_card = lint_read_card, .on_card_arg = &t};
    int status = dgm_peer_open(&p, line, line->args[0]);
    if (!status) {
        dgm_client_http_catch_interrupt(p.http);
        status = lint_answer(&t, &p);
    }
    dgm_peer_close(&p);
    int found = dgm_cli_report_end(&t.report);
    return status ? status : found;
}
