/* app/client/client_task.c - `dragoman task get|list|cancel|subscribe`. */
#include "app/client/client_follow.h"

#define PAGE 50

/* ---- one task ------------------------------------------------------------------------------------------------ */

static dgm_str tenant_of(const peer *p)
{
    return p->is_rest ? (dgm_str){0} : p->tenant; /* REST has it in the path */
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

static bool take_task(const dgm_object *o, dgm_str event_id, void *arg)
{
    struct getting *g = arg;
    dgm_task *task = o->it;
    (void)event_id;
    if (g->s->json)
        return show_json(DGM_OBJECT_TASK, task, true);
    printf("task     ");
    print_text(task->id);
    printf("\ncontext  ");
    print_text(task->context_id);
    printf("\nstate    %s", show_state_name(task->status.state));
    if (task->status.timestamp.n)
        printf(" since %.*s", DGM_P(task->status.timestamp));
    printf("\n\n");
    return show_event(g->s, &(dgm_event){.kind = DGM_EVENT_TASK, .task = task});
}

static int get(peer *p, const char *id)
{
    show s;
    dgm_err err = {0};
    struct getting g = {p, &s};
    dgm_task_request request = {.tenant = tenant_of(p), .task_id = dgm_str_from(id)};
    struct peer_call call = {
        .method = DGM_METHOD_GET, .params = &request, .take = take_task, .arg = &g};
    long history = 0;
    if (!client_number(p->line, "history", 0, INT32_MAX, &history))
        return DGM_CLI_MISUSED;
    request.history_length = (dgm_opt_int){dgm_cli_get(p->line, "history"), (int32_t)history};
    show_init(&s, dgm_cli_get(p->line, "json"));
    s.is_calm = true;
    dgm_code rc = peer_call(p, &call, &err);
    show_end(&s);
    show_done(&s);
    return rc ? peer_complain(p, &err) : DGM_CLI_OK;
}

static int cancel(peer *p, const char *id)
{
    show s;
    dgm_err err = {0};
    struct getting g = {p, &s};
    dgm_task_request request = {.tenant = tenant_of(p), .task_id = dgm_str_from(id)};
    struct peer_call call = {
        .method = DGM_METHOD_CANCEL, .params = &request, .take = take_task, .arg = &g};
    show_init(&s, dgm_cli_get(p->line, "json"));
    s.is_calm = true;
    dgm_code rc = peer_call(p, &call, &err);
    show_end(&s);
    show_done(&s);
    return rc ? peer_complain(p, &err) : DGM_CLI_OK;
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
    show_init(&s, dgm_cli_get(p->line, "json"));
    s.task_id = dgm_str_from(id);
    http_catch_interrupt();
    status = follow_call(&f, DGM_METHOD_SUBSCRIBE, &request, after);
    show_done(&s);
    return status;
}

/* ---- lists --------------------------------------------------------------------------------------------------------- */

struct listing {
    bool json;
    long left; /* LONG_MAX: all */
    dgm_arena *arena;
    dgm_str next;
    bool failed;
};

static bool take_page(const dgm_object *o, dgm_str event_id, void *arg)
{
    struct listing *l = arg;
    const dgm_list_tasks_result *page = o->it;
    (void)event_id;
    for (size_t i = 0; i < page->tasks.n && l->left > 0 && !l->failed; i++, l->left--) {
        const dgm_task *t = &page->tasks.at[i];
        if (l->json) {
            l->failed = !show_json(DGM_OBJECT_TASK, t, false);
            continue;
        }
        print_text(t->id);
        printf("  %-14s  ", show_state_name(t->status.state));
        print_text(t->status.timestamp.n ? t->status.timestamp : DGM_STR("-"));
        printf("  ");
        print_text(t->context_id);
        putchar('\n');
    }
    l->next = dgm_arena_dup(l->arena, page->next_page_token);
    return true;
}

static dgm_opt_int state_of(const char *name)
{
    for (int i = 0; name && i < DGM_N_STATES; i++) {
        if (strcmp(show_state_name((dgm_task_state)i), name) == 0)
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
    if (!client_number(line, "limit", 0, INT32_MAX, &limit))
        return DGM_CLI_MISUSED;
    if (!p->is_v1) {
        dgm_cli_complain("A2A 0.3 has no lists, and %s speaks no newer version", p->address);
        return DGM_CLI_FAILED;
    }
    struct listing l = {
        .json = dgm_cli_get(line, "json"), .left = limit ? limit : INT32_MAX, .arena = p->arena};
    do {
        dgm_list_tasks_request request = {
            .tenant = tenant_of(p),
            .context_id = dgm_str_from(dgm_cli_get(line, "context")),
            .status = state_of(dgm_cli_get(line, "state")),
            .page_size = {true, l.left < PAGE ? (int32_t)l.left : PAGE},
            .page_token = l.next};
        struct peer_call call = {
            .method = DGM_METHOD_LIST, .params = &request, .take = take_page, .arg = &l};
        rc = peer_call(p, &call, &err);
    } while (!rc && l.next.n && l.left > 0 && !l.failed);
    return rc ? peer_complain(p, &err) : DGM_CLI_OK;
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
        return dgm_cli_refuse(line, "%s needs ID: the task", action);
    if (lists && id)
        return dgm_cli_refuse(line, "list takes no ID; --context and --state choose");
    if (!(status = peer_open(&p, line, line->args[1]))) {
        switch (action[0]) { /* one of the table's words: the parser saw to it */
        case 'g': status = get(&p, id); break;
        case 'l': status = list(&p); break;
        case 'c': status = cancel(&p, id); break;
        default: status = subscribe(&p, id); break;
        }
    }
    peer_close(&p);
    return status;
}
