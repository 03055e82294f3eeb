/*
 * app/serve/serve.c - putting the server together, and taking it apart in the right order.
 *
 *   config ─► store, loops ─► agents ─► core ─► recovery ─► HTTP ... signal ... drain ─► stop ─► close
 */
#include "app/serve/serve.h"
#include "app/serve/router.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>

#define LAST_WORDS_MS 2000

struct server {
    dgm_config *config;
    dgm_store *store;
    dgm_loops *loops;
    dgm_core_agent *agents;
    size_t n_agents;
    dgm_core *core;
    struct router *router;
    dgm_http_server *http;
    sem_t done;
    dgm_code code;
    dgm_err err;
};

/* ---- putting together ---------------------------------------------------------------------------------------- */

static dgm_code open_agents(struct server *s, dgm_err *err)
{
    dgm_config *c = s->config;
    s->agents = dgm_xcalloc(c->agents.n, sizeof *s->agents);
    for (size_t pass = 0; pass < 2; pass++) { /* the default first */
        for (size_t i = 0; i < c->agents.n; i++) {
            const dgm_config_agent *a = &c->agents.at[i];
            if (a->is_default != (pass == 0))
                continue;
            dgm_core_agent *agent = &s->agents[s->n_agents];
            dgm_agent_options options = {
                .reply = (dgm_reply)a->manner.reply,
                .omit_final_text = a->manner.final_text == DGM_FINAL_TEXT_OMIT,
                .answer_in_status = a->manner.answer_source == DGM_ANSWER_STATUS,
                .working_message = a->manner.working_message};
            *agent = (dgm_core_agent){.id = a->id,
                                      .backend = dgm_backend_by_type(a->type),
                                      .dedupe = a->manner.dedupe,
                                      .keep_transitory = a->manner.persist_stream_delta};
            if (!agent->backend)
                return dgm_fail(err, DGM_BAD_PARAMS, NULL, "there is no agent type \"%.*s\"",
                                DGM_P(a->type));
            agent->foreign = agent->backend->foreign;
            dgm_code rc = agent->backend->open(a->settings, &options, &agent->agent, err);
            if (rc)
                return rc;
            s->n_agents++;
        }
    }
    return DGM_OK;
}

static void on_recovered(dgm_code code, const dgm_err *err, void *arg)
{
    struct server *s = arg;
    s->code = code;
    if (code)
        s->err = *err;
    sem_post(&s->done);
}

static void recover(void *arg)
{
    struct server *s = arg;
    dgm_core_recover(s->core, on_recovered, s);
}

static dgm_code start(struct server *s, dgm_err *err)
{
    dgm_config *c = s->config;
    dgm_code rc;
    const dgm_core_limits limits = {.log_bytes = (size_t)c->limits.log_bytes,
                                    .log_records = (size_t)c->limits.log_records,
                                    .queued_messages = (size_t)c->limits.queued_messages,
                                    .subscribers = (size_t)c->limits.subscribers};
    dgm_core_options core = {.limits = &limits, .retention_ms = c->retention_hours * 3600 * 1000};
    dgm_http_options http = {.listen = c->listen.p,
                             .tls_cert = c->tls_cert.n ? c->tls_cert.p : NULL,
                             .tls_key = c->tls_key.n ? c->tls_key.p : NULL,
                             .max_body = (size_t)c->limits.http_body_bytes,
                             .max_connections = (size_t)c->limits.connections};
    if ((rc = dgm_store_open(c->store.p, &s->store, err)) ||
        (rc = dgm_loops_new((size_t)c->loops, &s->loops, err)) || (rc = open_agents(s, err)))
        return rc;
    core.loops = s->loops;
    core.store = s->store;
    core.agents = s->agents;
    core.n_agents = s->n_agents;
    if ((rc = dgm_core_new(&core, &s->core, err)) ||
        (rc = router_new(s->core, c, s->store, &s->router, err)) ||
        (rc = dgm_http_server_new(s->loops, &http, router_handler(s->router), &s->http, err)) ||
        (rc = dgm_loops_start(s->loops, err)))
        return rc;
    dgm_loop_post(dgm_loops_at(s->loops, 0), recover, s);
    sem_wait(&s->done);
    if (s->code) {
        *err = s->err;
        return s->code;
    }
    if ((rc = dgm_http_server_start(s->http, err)))
        return rc;
    return router_set_port(s->router, dgm_http_server_port(s->http), err);
}

/* ---- taking apart ------------------------------------------------------------------------------------------------ */

static void stop(struct server *s)
{
    if (s->loops)
        dgm_loops_stop(s->loops);
    if (s->core)
        dgm_core_stop(s->core);
    dgm_store_close(s->store);
    dgm_http_server_free(s->http);
    dgm_loops_free(s->loops); /* what was on its way is answered here */
    dgm_core_free(s->core);
    router_free(s->router);
    for (size_t i = 0; i < s->n_agents; i++) {
        if (s->agents[i].backend->close)
            s->agents[i].backend->close(s->agents[i].agent);
    }
    free(s->agents);
    sem_destroy(&s->done);
}

static void on_drained(void *arg)
{
    struct server *s = arg;
    sem_post(&s->done);
}

static void wait_for_signal(struct server *s, const sigset_t *signals)
{
    int sig;
    uint64_t ms = (uint64_t)s->config->drain_s * 1000;
    sigwait(signals, &sig);
    /* What runs has that long; then its end has to reach those who read. */
    dgm_core_drain(s->core, ms, on_drained, s);
    dgm_http_server_drain(s->http, ms + LAST_WORDS_MS, on_drained, s);
    sem_wait(&s->done);
    sem_wait(&s->done);
}

static void say_findings(const dgm_config *c, FILE *err)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < c->n_findings; i++) {
        dgm_buf_clear(&b);
        dgm_config_finding_put(&b, &c->findings[i]);
        fprintf(err, "dragoman: %.*s\n", DGM_P(dgm_buf_str(&b)));
    }
    dgm_buf_done(&b);
}

static void say_what_to_try(const struct server *s, FILE *out)
{
    const dgm_config *c = s->config;
    const char *host = c->is_loopback ? "127.0.0.1" : "localhost";
    int port = dgm_http_server_port(s->http);
    const char *scheme = c->tls_cert.n ? "https" : "http";
    if (!port) {
        fprintf(out, "listening on %s\n", c->listen.p);
    } else {
        fprintf(out, "listening on %s://%s:%d\n", scheme, host, port);
        fprintf(
            out,
            "\nTry:\n"
            "  curl %s://%s:%d/.well-known/agent-card.json\n"
            "  curl -H 'Content-Type: application/json' -H 'A2A-Version: 1.0' %s://%s:%d/ -d "
            "'{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{\"message\":{"
            "\"messageId\":\"m-1\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"help\"}]}}}'\n",
            scheme, host, port, scheme, host, port);
    }
    fflush(out);
}

int dgm_serve(const dgm_config_source *source, bool only_check, FILE *out, FILE *err)
{
    struct server s = {.config = dgm_config_load(source)};
    dgm_err fault = {0};
    sigset_t signals;
    int status = 1;
    say_findings(s.config, err);
    if (s.config->n_errors || only_check) {
        status = s.config->n_errors ? 1 : 0;
        if (!status) {
            dgm_buf b;
            dgm_buf_init(&b, SIZE_MAX);
            dgm_config_put(&b, s.config);
            fprintf(out, "%.*s\n", DGM_P(dgm_buf_str(&b)));
            dgm_buf_done(&b);
        }
        dgm_config_free(s.config);
        return status;
    }
    /* Every thread inherits the mask, so that the signals come to sigwait and nowhere else. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    sem_init(&s.done, 0, 0);
    if (start(&s, &fault)) {
        fprintf(err, "dragoman: %s%s%s\n", fault.msg, fault.at[0] ? " at " : "", fault.at);
    } else {
        say_what_to_try(&s, out);
        wait_for_signal(&s, &signals);
        status = 0;
    }
    stop(&s);
    dgm_config_free(s.config);
    return status;
}
