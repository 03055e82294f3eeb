/* app/client/client_task.c - `dragoman task get|list|cancel|subscribe`. */
#include "app/client/client_int.h"
#include "model/kinds.h"

#define PAGE 50

/* ---- one task ------------------------------------------------------------------------------------------------ */

static dgm_str tenant_of(const peer *p)
{
    return dgm_a2a_tenant_of(&p->at); /* REST has it in the path */
}

struct getting {
    peer *p;
    show *s;
};

static void print_text(dgm_str text) /* one line, nothing that a terminal obeys */
{
    for (size_t i = 0; i < text.n; i++)
        putchar((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f ? ' ' : text.p[i]);
}

static bool client_task_on_task(const dgm_object *o, dgm_str event_id, void *arg)
{
    struct getting *g = arg;
    dgm_task *task = o->it;
    (void)event_id;
    if (g->s->json)
        return dgm_show_json(DGM_OBJECT_TASK, task, true);
    printf("task     ");
    print_text(task->id);
    printf("\ncontext  ");
    print_text(task->context_id);
    printf("\nstate    %s", dgm_show_state_name(task->status.state));
    if (task->status.timestamp.n)
        printf(" since %.*s", DGM_P(task->status.timestamp));
    printf("\n\n");
    return dgm_show_event(g->s, &(dgm_event){.kind = DGM_EVENT_TASK, .task = task});
}

static int get(peer *p, const char *id)
{
    show s;
    dgm_err err = {0};
    struct getting g = {p, &s};
    dgm_task_request request = {.tenant = tenant_of(p), .task_id = dgm_str_from(id)};
    struct peer_call call = {
        .method = DGM_METHOD_GET, .params = &request, .on_object = client_task_on_task, .arg = &g};
    long history = 0;
    if (!dgm_client_number(p->line, "history", 0, INT32_MAX, &history))
        return DGM_CLI_MISUSED;
    request.history_length = (dgm_opt_int){dgm_cli_get(p->line, "history"), (int32_t)history};
    dgm_show_init(&s, dgm_cli_get(p->line, "json"));
    s.is_calm = true;
    dgm_code rc = dgm_peer_call(p, &call, &err);
    dgm_show_end(&s);
    dgm_show_done(&s);
    return rc ? dgm_peer_report_error(p, &err) : DGM_CLI_OK;
}

static int client_task_cancel(peer *p, const char *id)
{
    show s;
    dgm_err err = {0};
    struct getting g = {p, &s};
    dgm_task_request request = {.tenant = tenant_of(p), .task_id = dgm_str_from(id)};
    struct peer_call call = {.method = DGM_METHOD_CANCEL,
                             .params = &request,
                             .on_object = client_task_on_task,
                             .arg = &g};
    dgm_show_init(&s, dgm_cli_get(p->line, "json"));
    s.is_calm = true;
    dgm_code rc = dgm_peer_call(p, &call, &err);
    dgm_show_end(&s);
    dgm_show_done(&s);
    return rc ? dgm_peer_report_error(p, &err) : DGM_CLI_OK;
}

static int subscribe(peer *p, const char *id)
{
    show s;
    int status;
    dgm_task_request request = {.tenant = tenant_of(p), .task_id = dgm_str_from(id)};
    struct follow f = {.p = p, .s = &s, .waits = true, .leaves = true};
    const char *after = dgm_cli_get(p->line, "after");
    if (after && strpbrk(after, "\r\n"))
        return dgm_cli_refuse(p->line, "--after: an event id is one line");
    dgm_show_init(&s, dgm_cli_get(p->line, "json"));
    s.task_id = dgm_str_from(id);
    dgm_client_http_catch_interrupt(p->http);
    status = dgm_client_follow(&f, DGM_METHOD_SUBSCRIBE, &request, after);
    status = dgm_client_converse(p, &s, status);
    dgm_show_done(&s);
    return status;
}

/* ---- lists --------------------------------------------------------------------------------------------------------- */

struct listing {
    const peer *p;
    bool json;
    bool has_header;
    size_t n, total; /* printed; that the server has, 0: unknown */
    long left;       /* INT32_MAX: all */
    dgm_arena *arena;
    dgm_str next;
    bool failed;
};

#define PREVIEW                                                                                    \
    60 /* bytes of a message: with an id, a state and a time a line has about 130 columns */
#define PREVIEW_HISTORY 10 /* messages that are read to find one of the user */

static void print_header(struct listing *l)
{
    l->has_header = true;
    if (l->p->card) {
        printf("Tasks of ");
        print_text(l->p->card->name);
        printf(" at %.*s\n", DGM_P(l->p->at.url));
    }
    printf("%-36s  %-14s  %-19s  %s\n", "TASK", "STATE", "CHANGED (UTC)", "MESSAGE");
}

/* The text of the first message of the user, or else of the agent; of a task without history its answer. */
static dgm_str preview_of(const dgm_task *t)
{
    dgm_str found = DGM_STR("");
    for (size_t i = 0; i < t->history.n; i++) {
        const dgm_message *m = &t->history.at[i];
        for (size_t k = 0; k < m->parts.n; k++) {
            const dgm_part *part = &m->parts.at[k];
            if (part->kind != DGM_PART_TEXT || !part->content.n)
                continue;
            if (m->role == DGM_ROLE_USER)
                return part->content;
            found = found.n ? found : part->content;
        }
    }
    return found;
}

static void print_row(const dgm_task *t)
{
    dgm_str text = preview_of(t), time = t->status.timestamp;
    bool is_cut = text.n > PREVIEW;
    char day_and_time[20] = "-";
    if (time.n >= 19) { /* 2026-11-15T20:50:11.123Z */
        memcpy(day_and_time, time.p, 19);
        day_and_time[10] = ' ';
    }
    if (is_cut)
        text.n = PREVIEW;
    while (dgm_utf8_check(text) != text.n)
        text.n--;
    print_text(t->id);
    printf("%*s  %-14s  ", t->id.n < 36 ? (int)(36 - t->id.n) : 0, "",
           dgm_show_state_name(t->status.state));
    print_text(dgm_str_from(day_and_time));
    printf("  ");
    print_text(text);
    printf("%s\n", is_cut ? "..." : "");
}

static bool on_task_page(const dgm_object *o, dgm_str event_id, void *arg)
{
    struct listing *l = arg;
    const dgm_list_tasks_result *page = o->it;
    (void)event_id;
    for (size_t i = 0; i < page->tasks.n && l->left > 0 && !l->failed; i++, l->left--) {
        const dgm_task *t = &page->tasks.at[i];
        if (l->json) {
            l->failed = !dgm_show_json(DGM_OBJECT_TASK, t, false);
            continue;
        }
        if (!l->has_header)
            print_header(l);
        print_row(t);
        l->n++;
    }
    l->total = page->total_size > 0 ? (size_t)page->total_size : 0;
    l->next = dgm_arena_dup(l->arena, page->next_page_token);
    return true;
}

static dgm_opt_int client_task_state_of(const char *name)
{
    for (int i = 0; name && i < DGM_N_STATES; i++) {
        if (strcmp(dgm_show_state_name((dgm_task_state)i), name) == 0)
            return (dgm_opt_int){true, i};
    }
    return (dgm_opt_int){0};
}

static int list(peer *p)
{
    const dgm_cli_line *line = p->line;
    long limit = PAGE;
    dgm_err err = {0};
    dgm_code rc;
    if (!dgm_client_number(line, "limit", 0, INT32_MAX, &limit))
        return DGM_CLI_MISUSED;
    if (!p->at.is_v1) {
        dgm_cli_complain("A2A 0.3 has no lists, and %s has no newer version", p->address);
        return DGM_CLI_FAILED;
    }
    struct listing l = {.p = p,
                        .json = dgm_cli_get(line, "json"),
                        .left = limit ? limit : INT32_MAX,
                        .arena = p->arena};
    long history = l.json ? 0 : PREVIEW_HISTORY;
    if (!dgm_client_number(line, "history", 0, INT32_MAX, &history))
        return DGM_CLI_MISUSED;
    do {
        dgm_list_tasks_request request = {
            .tenant = tenant_of(p),
            .context_id = dgm_str_from(dgm_cli_get(line, "context")),
            .status = client_task_state_of(dgm_cli_get(line, "state")),
            .page_size = {true, l.left < PAGE ? (int32_t)l.left : PAGE},
            .history_length = {dgm_cli_get(line, "history") || !l.json, (int32_t)history},
            .page_token = l.next};
        struct peer_call call = {
            .method = DGM_METHOD_LIST, .params = &request, .on_object = on_task_page, .arg = &l};
        rc = dgm_peer_call(p, &call, &err);
    } while (!rc && l.next.n && l.left > 0 && !l.failed);
    if (!rc && !l.json && l.next.n) {
        if (l.total > l.n)
            dgm_cli_hint("%zu of %zu tasks; --limit 0 lists all", l.n, l.total);
        else
            dgm_cli_hint("the first %zu tasks; --limit 0 lists all", l.n);
    }
    return rc ? dgm_peer_report_error(p, &err) : DGM_CLI_OK;
}

int dgm_client_task(const dgm_cli_line *line)
{
    peer p = {0};
    const char *action = line->args[0], *id = line->n_args > 2 ? line->args[2] : NULL;
    bool lists = strcmp(action, "list") == 0;
    int status;
    if (line->n_args < 2)
        return dgm_cli_refuse(line, "%s needs URL", action);
    if (!lists && !id)
        return dgm_cli_refuse(line, "%s needs the ID of a task", action);
    if (lists && id)
        return dgm_cli_refuse(line, "list needs no ID; --context and --state select tasks");
    if (!(status = dgm_peer_open(&p, line, line->args[1]))) {
        switch (action[0]) { /* one of the table's words: the parser saw to it */
        case 'g': status = get(&p, id); break;
        case 'l': status = list(&p); break;
        case 'c': status = client_task_cancel(&p, id); break;
        default: status = subscribe(&p, id); break;
        }
    }
    dgm_peer_close(&p);
    return status;
}
