/*
 * app/client/client_try.c - `dragoman try FILE TEXT`: runs an agent file without a server and prints its answer.
 *
 * The agent runs as it does in a server, with its worker process, on the loop of libdragoman-agent. Lines of standard input
 * are answers to its questions, and without TEXT messages of the conversation.
 */
#define _GNU_SOURCE /* memmem */
#include "app/client/client_int.h"
#include "base/limits.h"
#include "config/agent_file.h"

#include <dragoman/agent.h>

#include <pthread.h>
#include <string.h>
#include <unistd.h>

struct attempt {
    dgm_agent_loop *loop;
    show show;
    pthread_mutex_t lock; /* of notes */
    dgm_buf notes;        /* lines about the worker process */
    char line[64 << 10]; /* the last one that was typed */
};

/* Lines about the worker process are of interest only if the agent fails. Called from other threads. */
static void try_on_log(void *user, dgm_str line)
{
    struct attempt *t = user;
    pthread_mutex_lock(&t->lock);
    if (memmem(line.p, line.n, ": worker: ", 10)) {
        dgm_buf_add_str(&t->notes, line);
        dgm_buf_add_char(&t->notes, '\n');
    } else {
        fprintf(stderr, "%.*s\n", DGM_P(line));
    }
    pthread_mutex_unlock(&t->lock);
}

static bool try_on_event(void *arg, const dgm_agent_event *e)
{
    struct attempt *t = arg;
    if (!e->is_internal)
        return dgm_show_event(&t->show, e->event);
    if (t->show.json)
        printf("%.*s\n", DGM_P(e->json));
    return true;
}

static bool is_waiting(const struct attempt *t)
{
    return dgm_state_is_interrupted(t->show.state);
}

/* One message, to the open question if there is one. */
static int try_send(struct attempt *t, dgm_str text)
{
    dgm_agent_execute_options o = {.size = sizeof o, .context_id = t->show.context_id};
    dgm_err err = {0};
    if (is_waiting(t))
        o.task_id = t->show.task_id;
    t->show.state = DGM_STATE_UNKNOWN;
    dgm_code rc = dgm_agent_loop_execute(t->loop, text, &o, try_on_event, t, &err);
    dgm_show_end(&t->show);
    if (rc) {
        dgm_cli_complain("%s", err.msg);
        return DGM_CLI_FAILED;
    }
    return t->show.is_message || t->show.state == DGM_STATE_COMPLETED || is_waiting(t)
               ? DGM_CLI_OK
               : DGM_CLI_FAILED;
}

static bool try_read_line(struct attempt *t)
{
    if (t->show.err_is_tty && isatty(STDIN_FILENO)) {
        fputs("> ", stderr);
        fflush(stderr);
    }
    return dgm_client_read_line(t->line, sizeof t->line);
}

/* Texts that are printed belong to one task: the next one starts with none. */
static void forget_texts(struct attempt *t)
{
    show next;
    dgm_show_init(&next, t->show.json);
    next.context_id = dgm_arena_dup(next.arena, t->show.context_id);
    next.printed = t->show.printed;
    dgm_show_done(&t->show);
    t->show = next;
}

/* Answers questions, or goes on with the conversation, until standard input ends. */
static int try_converse(struct attempt *t, bool has_text, int status)
{
    while (status == DGM_CLI_OK && (!has_text || is_waiting(t))) {
        if (!try_read_line(t)) {
            if (is_waiting(t))
                dgm_cli_hint("the agent waits for an answer: type it, or pass it on standard input");
            return status;
        }
        if (!is_waiting(t))
            forget_texts(t);
        status = try_send(t, dgm_str_from(t->line));
    }
    return status;
}

static dgm_str words_of(const dgm_cli_line *line, dgm_buf *b)
{
    for (size_t i = 1; i < line->n_args; i++) {
        if (i > 1)
            dgm_buf_add_char(b, ' ');
        dgm_buf_add_str(b, dgm_str_from(line->args[i]));
    }
    return dgm_buf_str(b);
}

static int try_run(struct attempt *t, const dgm_cli_line *line, dgm_str config)
{
    dgm_agent_loop_options o = {.size = sizeof o, .config = config, .on_log = try_on_log, .log_user = t};
    dgm_err err = {0};
    dgm_buf text;
    int status = DGM_CLI_OK;
    if (dgm_agent_loop_new(&o, &t->loop, &err)) {
        dgm_cli_complain("%s%s%s", err.at, *err.at ? ": " : "", err.msg);
        return DGM_CLI_FAILED;
    }
    dgm_buf_init(&text, DGM_MAX_RECORD_BYTES);
    if (line->n_args > 1)
        status = try_send(t, words_of(line, &text));
    status = try_converse(t, line->n_args > 1, status);
    dgm_buf_done(&text);
    dgm_agent_loop_free(t->loop);
    if (status != DGM_CLI_OK)
        fprintf(stderr, "%.*s", DGM_P(dgm_buf_str(&t->notes)));
    return status;
}

int dgm_client_try(const dgm_cli_line *line)
{
    static struct attempt attempt = {.lock = PTHREAD_MUTEX_INITIALIZER}; /* too large for some stacks */
    dgm_err err = {0};
    dgm_buf config;
    int status;
    dgm_buf_init(&config, SIZE_MAX);
    dgm_buf_add_lit(&config, "{\"agents\":");
    if (dgm_agent_file_put_agents(&config, line->args[0], &err)) {
        dgm_buf_done(&config);
        dgm_cli_complain("%s", err.msg);
        return DGM_CLI_FAILED;
    }
    dgm_buf_add_char(&config, '}');
    dgm_buf_init(&attempt.notes, DGM_MAX_RECORD_BYTES);
    dgm_show_init(&attempt.show, dgm_cli_get(line, "json"));
    status = try_run(&attempt, line, dgm_buf_str(&config));
    dgm_show_done(&attempt.show);
    dgm_buf_done(&attempt.notes);
    dgm_buf_done(&config);
    return status;
}
