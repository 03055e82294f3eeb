/*
 * mcp/test_mcp.h - for the tests of the MCP client: a client on a loop of its own whose callbacks become lines of text, and a
 * scripted server over stdio, which is this test program started again with the name of a script.
 */
#pragma once

#include "base/buf.h"
#include "mcp/mcp.h"
#include "support/check.h"

#include <signal.h>
#include <unistd.h>

/* ---- the server ---------------------------------------------------------------------------------------- */

enum {
    RULE_EXIT = 1,     /* the server ends */
    RULE_SILENT = 2,   /* no answer */
    RULE_FLOOD = 4,    /* the answer is repeated without end */
    RULE_LONG = 8,     /* a line of 9 MiB */
    RULE_STAYS = 16,   /* does not end at the end of its input, nor by SIGTERM */
    RULE_ONCE = 32,    /* the next time the rule after it counts */
    RULE_NO_READ = 64, /* it does not read any more */
};

/* The first rule whose `on` occurs in a line answers it. @ID in the answer is the id of the request. */
struct rule {
    const char *on, *answer;
    unsigned how;
};

struct server_script {
    const char *name;
    const struct rule *rules;
    size_t n;
};

static inline void rule_write(const char *answer, const char *line)
{
    const char *id = strstr(line, "\"id\":"), *at;
    int n_id = id ? (int)strspn(id + 5, "0123456789") : 0;
    while ((at = strstr(answer, "@ID"))) {
        fwrite(answer, 1, (size_t)(at - answer), stdout);
        fwrite(id ? id + 5 : "", 1, (size_t)n_id, stdout);
        answer = at + 3;
    }
    fputs(answer, stdout);
    fputc('\n', stdout);
    fflush(stdout);
}

static inline void rule_apply(const struct rule *r, const char *line)
{
    if (r->how & RULE_LONG) {
        for (size_t i = 0; i < 9 << 20; i++)
            putchar('x');
        putchar('\n');
    }
    if (r->how & RULE_STAYS)
        signal(SIGTERM, SIG_IGN);
    if (r->answer && !(r->how & RULE_SILENT))
        rule_write(r->answer, line);
    while (r->how & RULE_FLOOD)
        rule_write(r->answer, line);
    while (r->how & RULE_NO_READ)
        pause();
    if (r->how & RULE_EXIT)
        exit(3);
}

/* Lines that were received are appended to the file named by MCP_LOG. */
static inline int script_main(const struct server_script *s)
{
    char *line = NULL;
    size_t size = 0;
    bool used[32] = {0}, stays = false;
    FILE *log = getenv("MCP_LOG") ? fopen(getenv("MCP_LOG"), "a") : NULL;
    if (log) {
        setvbuf(log, NULL, _IOLBF, 0);
        fprintf(log, "pid %d\n", (int)getpid());
    }
    while (getline(&line, &size, stdin) > 0) {
        if (log)
            fputs(line, log);
        for (size_t i = 0; i < s->n; i++) {
            const struct rule *r = &s->rules[i];
            if (used[i] || !strstr(line, r->on))
                continue;
            used[i] = r->how & RULE_ONCE;
            stays |= r->how & RULE_STAYS;
            rule_apply(r, line);
            break;
        }
    }
    for (; stays; stays = true)
        pause();
    free(line);
    if (log)
        fclose(log);
    return 0;
}

/* First in main(): this process may be a server. */
static inline void script_main_if_named(int argc, char **argv, const struct server_script *scripts,
                                        size_t n)
{
    for (size_t i = 0; i < n && argc > 1; i++) {
        if (strcmp(argv[1], scripts[i].name) == 0)
            exit(script_main(&scripts[i]));
    }
}

/* ---- the client ---------------------------------------------------------------------------------------- */

struct client {
    dgm_loops *loops;
    dgm_loop *loop;
    dgm_mcp *mcp;
    dgm_mcp_config config;
    const char *argv[4];
    char exe[4096];
    uv_sem_t done;
    /* what to do */
    dgm_mcp_call_options call;
    const char *arguments;
    dgm_mcp_action action; /* the answer to every question */
    const char *content;   /* of the answer */
    bool cancels_on_ask;   /* instead of an answer */
    bool cancels_on_progress;
    bool has_no_ask;
    uint64_t cancel_ms; /* 0: never */
    dgm_timer timer;
    dgm_mcp_call *running;
    /* what happened, a line each */
    dgm_buf seen, log;
    char state[4096];
    bool is_unknown;
};

static inline void client_on_log(void *user, dgm_str line)
{
    struct client *c = user;
    dgm_buf_printf(&c->log, "%.*s\n", DGM_P(line));
}

static inline void client_start(struct client *c)
{
    dgm_err err = {0};
    signal(SIGPIPE, SIG_IGN);
    uv_sem_init(&c->done, 0);
    dgm_buf_init(&c->seen, SIZE_MAX);
    dgm_buf_init(&c->log, SIZE_MAX);
    if (!c->config.name.n)
        c->config.name = DGM_STR("files");
    c->config.on_log = client_on_log;
    c->config.log_user = c;
    check_ok(dgm_mcp_open(&c->config, &c->mcp, &err), err);
    check_ok(dgm_loops_new(1, &c->loops, &err), err);
    check_ok(dgm_loops_start(c->loops, &err), err);
    c->loop = dgm_loops_at(c->loops, 0);
}

/* With a server of this program. */
static inline void client_start_script(struct client *c, const char *script)
{
    ssize_t n = readlink("/proc/self/exe", c->exe, sizeof c->exe - 1);
    assert_true(n > 0);
    c->argv[0] = c->exe;
    c->argv[1] = script;
    c->config.argv = c->argv;
    client_start(c);
}

static inline void client_stop(struct client *c)
{
    dgm_mcp_close(c->mcp);
    dgm_loops_free(c->loops);
    uv_sem_destroy(&c->done);
    dgm_buf_done(&c->seen);
    dgm_buf_done(&c->log);
}

static inline void put_error(struct client *c, const dgm_mcp_error *e)
{
    c->is_unknown = e->is_outcome_unknown;
    dgm_buf_printf(&c->seen, "error %lld%s: %.*s\n", (long long)e->rpc_code,
                   e->is_outcome_unknown ? " unknown" : "", DGM_P(e->message));
}

static inline void client_on_tools(void *user, const dgm_mcp_tools *tools,
                                   const dgm_mcp_error *error)
{
    struct client *c = user;
    if (error)
        put_error(c, error);
    for (size_t i = 0; tools && i < tools->n; i++)
        dgm_buf_printf(&c->seen, "%.*s\n", DGM_P(tools->at[i].name));
    uv_sem_post(&c->done);
}

static inline void client_list_there(void *arg)
{
    struct client *c = arg;
    dgm_mcp_list(c->mcp, c->loop, c->call.share_key, (dgm_mcp_tools_handler){client_on_tools, c});
}

static inline void client_list(struct client *c)
{
    dgm_buf_clear(&c->seen);
    dgm_loop_post(c->loop, client_list_there, c);
    uv_sem_wait(&c->done);
}

static inline void put_part(dgm_buf *b, const dgm_part *p)
{
    static const char *const kinds[] = {"none", "text", "raw", "url", "data"};
    dgm_buf_printf(b, "%s %.*s", kinds[p->kind], DGM_P(p->content));
    if (p->data)
        dgm_json_put(b, p->data);
    if (p->media_type.n)
        dgm_buf_printf(b, " (%.*s)", DGM_P(p->media_type));
    if (p->filename.n)
        dgm_buf_printf(b, " %.*s", DGM_P(p->filename));
    dgm_buf_add_char(b, '\n');
}

static inline void client_on_result(void *user, const dgm_mcp_result *r, const dgm_mcp_error *e)
{
    struct client *c = user;
    c->running = NULL;
    if (e)
        put_error(c, e);
    for (size_t i = 0; r && i < r->parts.n; i++)
        put_part(&c->seen, &r->parts.at[i]);
    if (r && r->is_error)
        dgm_buf_add_lit(&c->seen, "is_error\n");
    uv_sem_post(&c->done);
}

static inline void client_cancel_there(void *arg)
{
    struct client *c = arg;
    if (c->running)
        dgm_mcp_call_cancel(c->running);
    c->running = NULL;
    dgm_buf_add_lit(&c->seen, "canceled\n");
    uv_sem_post(&c->done);
}

static inline void client_on_ask(void *user, const dgm_mcp_ask *ask)
{
    struct client *c = user;
    dgm_buf_printf(&c->seen, "ask %s %.*s %.*s", ask->kind == DGM_MCP_ASK_URL ? "url" : "form",
                   DGM_P(ask->message), DGM_P(ask->url));
    if (ask->schema)
        dgm_json_put(&c->seen, ask->schema);
    dgm_buf_add_char(&c->seen, '\n');
    if (c->cancels_on_ask) {
        client_cancel_there(c);
        return;
    }
    dgm_arena *a = dgm_arena_new();
    dgm_mcp_answer(c->running, c->action,
                   c->content ? dgm_json_parse_trusted(a, dgm_str_from(c->content)) : NULL);
    dgm_arena_free(a);
}

static inline void client_on_progress(void *user, const dgm_mcp_progress *p)
{
    struct client *c = user;
    dgm_buf_printf(&c->seen, "progress %g/%g %.*s\n", p->done, p->total, DGM_P(p->message));
    if (c->cancels_on_progress)
        client_cancel_there(c);
}

static inline void client_on_state(void *user, dgm_str state)
{
    struct client *c = user;
    snprintf(c->state, sizeof c->state, "%.*s", DGM_P(state));
    dgm_buf_add_lit(&c->seen, "state\n");
}

static inline void client_call_there(void *arg)
{
    struct client *c = arg;
    dgm_arena *a = dgm_arena_new();
    c->call.arguments = dgm_json_parse_trusted(a, dgm_str_from(c->arguments ? c->arguments : "{}"));
    c->running =
        dgm_mcp_call_start(c->mcp, c->loop, &c->call,
                           (dgm_mcp_call_handler){.on_result = client_on_result,
                                                  .on_ask = c->has_no_ask ? NULL : client_on_ask,
                                                  .on_progress = client_on_progress,
                                                  .on_state = client_on_state,
                                                  .user = c});
    if (c->cancel_ms) {
        dgm_timer_init(c->loop, &c->timer, client_cancel_there, c);
        dgm_timer_start(&c->timer, c->cancel_ms);
    }
    dgm_arena_free(a);
}

static inline void client_call(struct client *c, const char *tool)
{
    dgm_buf_clear(&c->seen);
    c->call.tool = dgm_str_from(tool);
    dgm_loop_post(c->loop, client_call_there, c);
    uv_sem_wait(&c->done);
}

static inline const char *client_seen(struct client *c)
{
    dgm_buf_add_char(&c->seen, '\0');
    c->seen.n--;
    return c->seen.p;
}

static inline const char *client_log(struct client *c)
{
    dgm_buf_add_char(&c->log, '\0');
    c->log.n--;
    return c->log.p;
}

#define check_seen(c, want) check_str((c)->seen, want)
#define check_has(text, want)                                                                      \
    do {                                                                                           \
        if (!strstr(text, want)) {                                                                 \
            print_error("\"%s\" is missing in: %s\n", want, text);                                 \
            _fail(__FILE__, __LINE__);                                                             \
        }                                                                                          \
    } while (0)
