/*
 * app/client/client_ask.c - requests for approval: shown, decided on a terminal, answered.
 *
 * On a terminal each request is a question, and only the words of model/approval.h count. Scripts answer with
 * `dragoman send --task ID --approve ID`.
 */
#include "app/client/client_int.h"
#include "base/ids.h"
#include "base/limits.h"
#include "json/json.h"

#include <signal.h>
#include <unistd.h>

void dgm_client_note_question(show *s, const dgm_status *status)
{
    s->asked = (dgm_approval_requests){0};
    s->sign_in = (dgm_str){0};
    if (!dgm_state_is_interrupted(status->state) || !status->message)
        return;
    dgm_approval_requests found = dgm_message_approval_requests(s->arena, status->message);
    dgm_auth_request auth;
    for (size_t i = 0; i < found.n; i++) { /* the message goes, the arena stays */
        const dgm_json *data = dgm_json_copy(s->arena, found.at[i].data);
        dgm_approval_request_read(data, &found.at[i]);
    }
    s->asked = found;
    if (dgm_message_auth_request(status->message, &auth))
        s->sign_in = dgm_arena_dup(s->arena, auth.url);
}

/* A name of the other server's as JSON: control characters do not reach the terminal. */
static dgm_str quoted_name(dgm_arena *a, dgm_str name)
{
    dgm_str text = dgm_json_text_in(a, dgm_json_make_string(a, name));
    return (dgm_str){text.p + 1, text.n - 2};
}

static dgm_str call_text(dgm_arena *a, const dgm_approval_request *r)
{
    dgm_str name = quoted_name(a, r->tool.n ? r->tool : DGM_STR("unknown"));
    dgm_str arguments = r->arguments ? dgm_json_text_in(a, r->arguments) : (dgm_str){0};
    return dgm_arena_printf(a, "%.*s%s%.*s", DGM_P(name), arguments.n ? " " : "", DGM_P(arguments));
}

void dgm_client_print_requests(const show *s, const char *address)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    for (size_t i = 0; i < s->asked.n; i++) {
        dgm_str id = quoted_name(a, s->asked.at[i].id), call = call_text(a, &s->asked.at[i]);
        dgm_cli_hint("approval %.*s: %.*s", DGM_P(id), DGM_P(call));
    }
    dgm_cli_hint("the agent asks for your approval: dragoman send %s --task %.*s --approve all, or "
                 "--reject all, or the ids above",
                 address, DGM_P(s->task_id));
}

bool dgm_client_can_ask(const show *s)
{
    return s->asked.n && !s->json && s->err_is_tty && isatty(STDIN_FILENO);
}

bool dgm_client_read_line(char *line, size_t room)
{
    struct sigaction now = {.sa_handler = SIG_DFL}, before;
    size_t n = 0;
    char c = 0;
    sigaction(SIGINT, &now,
              &before); /* Ctrl-C at a question ends the program; the task goes on waiting */
    while (c != '\n' && dgm_cli_read(STDIN_FILENO, &c, 1) == 1) {
        if (c != '\n' && n + 1 < room)
            line[n++] = c;
    }
    sigaction(SIGINT, &before, NULL);
    line[n] = 0;
    return c == '\n' || n > 0;
}

static dgm_decision ask_one(const dgm_approval_request *r, dgm_arena *a)
{
    dgm_str call = call_text(a, r);
    char line[64];
    dgm_decision decision = DGM_UNDECIDED;
    while (!decision) {
        fprintf(stderr, "Allow %.*s? [y/n] ", DGM_P(call));
        fflush(stderr);
        if (!dgm_client_read_line(line, sizeof line))
            return DGM_UNDECIDED;
        decision = dgm_approval_of_text(dgm_str_from(line));
    }
    return decision;
}

bool dgm_client_ask(const show *s, dgm_arena *a, dgm_message *ret)
{
    dgm_part *parts = dgm_new_n(a, dgm_part, s->asked.n + 1);
    for (size_t i = 0; i < s->asked.n; i++) {
        dgm_approval x = {.id = s->asked.at[i].id, .decision = ask_one(&s->asked.at[i], a)};
        if (!x.decision) {
            fputc('\n', stderr);
            return false;
        }
        parts[i] = (dgm_part){.kind = DGM_PART_DATA, .data = dgm_approval_data(a, &x)};
    }
    *ret = (dgm_message){.message_id = dgm_uuid7_in(a),
                         .role = DGM_ROLE_USER,
                         .task_id = s->task_id,
                         .context_id = s->context_id,
                         .parts = {parts, s->asked.n}};
    return true;
}

/* ---- options --------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *option;
    dgm_decision decision;
} decisions[] = {{"approve", DGM_APPROVED}, {"reject", DGM_REJECTED}};

size_t dgm_client_decision_parts(const dgm_cli_line *line, dgm_arena *a, dgm_part *parts)
{
    const char *id;
    size_t n = 0;
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; (id = dgm_cli_get_nth(line, decisions[k].option, i)); i++) {
            dgm_approval x = {.id = strcmp(id, "all") ? dgm_str_from(id) : (dgm_str){0},
                              .decision = decisions[k].decision};
            if (x.decision == DGM_REJECTED)
                x.reason = dgm_str_from(dgm_cli_get(line, "reason"));
            parts[n++] = (dgm_part){.kind = DGM_PART_DATA, .data = dgm_approval_data(a, &x)};
        }
    }
    return n;
}
