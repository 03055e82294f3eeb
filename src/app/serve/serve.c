/*
 * app/serve/serve.c - putting the server together, and taking it apart in the right order.
 *
 *   config ─► store, loops ─► agents ─► core ─► recovery ─► HTTP ... signal ... drain ─► stop ─► close
 */
#include "app/serve/serve.h"
#include "app/serve/banner.h"
#include "app/serve/metrics.h"
#include "app/serve/pages.h"
#include "app/serve/router.h"
#include "backend/backend.h"
#include "config/engine.h"
#include "store/store.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define AGAIN_MS 1000
#define TICK_S 2 /* how often the main thread checks the store and the memory */
/* Larger blocks are mapped and unmapped one by one, which costs a page fault per 4 KiB: with 1 MiB here, two thirds of the
 * time of a request with 7 MiB were page faults. The heap keeps freed blocks up to this size; serve_until_signal() returns them
 * when the burst is over. glibc's own rule would change the value with every large block that is freed. */
#define MAPPED_BYTES (16 << 20)
/* A process of this size is worth trimming, if it has grown by a quarter since the last time. */
#define TRIM_BYTES ((size_t)48 << 20)
#define IDLE_BYTES ((size_t)8 << 20) /* of requests in progress: with more the burst is not over */
#define STOP_MS 10000                /* what may be left when the drain's own time is up */

struct server {
    const dgm_config_source *source;
    dgm_config *config; /* until the router has it */
    dgm_logger *logger;
    dgm_engine engine;
    dgm_router *router;
    dgm_http_server *http;
    bool store_failed; /* as it was last logged */
    size_t trimmed;    /* resident bytes after the last trim */
    _Atomic int undrained;
};

/* ---- what the core has to say --------------------------------------------------------------------------------- */

static dgm_str or_none(dgm_str s)
{
    return s.p ? s : DGM_STR("");
}

static void on_warning(void *user, dgm_str task_id, const char *rule, const dgm_err *what)
{
    struct server *s = user;
    dgm_logger_says(s->logger, DGM_LOG_WARN, "agent", {"rule", dgm_str_from(rule), 0},
                    {"task", or_none(task_id), 0}, {"what", dgm_str_from(what->msg), 0},
                    {"at", dgm_str_from(what->at), 0});
}

static void on_note(void *user, dgm_str agent, dgm_str task_id, dgm_str line)
{
    struct server *s = user;
    dgm_logger_says(s->logger, DGM_LOG_INFO, "agent", {"agent", agent, 0},
                    {"task", or_none(task_id), 0}, {"note", line, 0});
}

static void on_agent_fault(void *user, dgm_str agent, dgm_str task_id, const dgm_run_fault *fault)
{
    struct server *s = user;
    dgm_logger_says(s->logger, DGM_LOG_WARN, "agent failed", {"agent", agent, 0},
                    {"task", or_none(task_id), 0}, {"why", fault->what, 0},
                    {"detail", or_none(fault->detail), 0}, {"stderr", or_none(fault->output), 0});
}

static void on_trim_failed(void *user, const dgm_err *why)
{
    struct server *s = user;
    dgm_logger_says(s->logger, DGM_LOG_WARN, "old turns could not be removed from the store",
                    {"why", dgm_str_from(why->msg), 0});
}

static void on_mcp_log(void *user, dgm_str line)
{
    struct server *s = user;
    dgm_logger_says(s->logger, DGM_LOG_INFO, "MCP", {"line", line, 0});
}

static void on_agent_log(void *user, dgm_str agent, bool is_fault, dgm_str line)
{
    struct server *s = user;
    dgm_logger_says(s->logger, is_fault ? DGM_LOG_WARN : DGM_LOG_INFO, "agent", {"agent", agent, 0},
                    {"note", line, 0});
}

/* ---- putting together ---------------------------------------------------------------------------------------- */

static void warn_if_others_can_read(struct server *s, dgm_str store)
{
    dgm_str scheme = DGM_STR("sqlite:");
    struct stat st;
    if (!dgm_str_starts(store, scheme) || stat(store.p + scheme.n, &st) != 0 ||
        !(st.st_mode & S_IRWXO))
        return;
    dgm_logger_says(s->logger, DGM_LOG_WARN,
                    "other users can read the database: run chmod o= on it", {"store", store, 0});
}

static dgm_code serve_listen(struct server *s, dgm_err *err)
{
    dgm_code rc = dgm_http_server_listen(s->http, err);
    size_t n = rc ? strlen(err->msg) : 0;
    if (rc)
        snprintf(err->msg + n, sizeof err->msg - n, "%s",
                 strstr(err->msg, strerror(EMFILE)) ? ": raise the limit (ulimit -n)"
                                                    : " (--listen 127.0.0.1:0 uses a free port)");
    return rc;
}

static dgm_code serve_start(struct server *s, dgm_err *err)
{
    dgm_config *c = s->config;
    dgm_code rc;
    dgm_http_options http = {.listen = c->listen.p,
                             .tls_cert = c->tls_cert.n ? c->tls_cert.p : NULL,
                             .tls_key = c->tls_key.n ? c->tls_key.p : NULL,
                             .max_body = (size_t)c->limits.http_body_bytes,
                             .max_connections = (size_t)c->limits.connections,
                             .max_in_flight = (size_t)c->limits.in_flight_bytes};
    dgm_engine_observer observer = {.on_warning = on_warning,
                                    .on_note = on_note,
                                    .on_fault = on_agent_fault,
                                    .on_trim_failed = on_trim_failed,
                                    .on_mcp_log = on_mcp_log,
                                    .on_agent_log = on_agent_log,
                                    .user = s};
    s->logger = dgm_logger_new(STDERR_FILENO, c->log_level, c->log_format);
    if ((rc = dgm_engine_open(&s->engine, c, &observer, err)))
        return rc;
    warn_if_others_can_read(s, c->store);
    s->router = dgm_router_new(&(dgm_router_options){.loops = s->engine.loops,
                                                     .core = s->engine.core,
                                                     .store = s->engine.store,
                                                     .logger = s->logger,
                                                     .agents = s->engine.agents});
    if ((rc = dgm_http_server_new(s->engine.loops, &http, dgm_router_handler(s->router), &s->http,
                                  err)) ||
        (rc = dgm_router_use(s->router, c, err)))
        return rc;
    s->config = NULL;
    /* recovery continues tasks: a server that cannot be reached must not do that */
    if ((rc = serve_listen(s, err)) || (rc = dgm_loops_start(s->engine.loops, err)) ||
        (rc = dgm_engine_recover(&s->engine, err)) || (rc = dgm_http_server_start(s->http, err)))
        return rc;
    dgm_router_set_reason(s->router, NULL);
    return DGM_OK;
}

/* ---- taking apart ------------------------------------------------------------------------------------------------ */

static void stop(struct server *s)
{
    dgm_engine_stop(&s->engine);
    dgm_http_server_free(s->http);
    dgm_core_free(dgm_take(s->engine.core)); /* before the router, whose requests it answers */
    dgm_router_free(s->router);
    dgm_engine_free(&s->engine);
    dgm_logger_free(s->logger);
    dgm_config_free(s->config);
}

static void on_drained(void *arg)
{
    struct server *s = arg;
    atomic_fetch_sub(&s->undrained, 1);
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Another signal to end makes it end at once; not the same one, which may come twice. */
static void drain(struct server *s, const sigset_t *signals)
{
    const struct timespec a_moment = {.tv_nsec = 20 * 1000 * 1000};
    uint64_t ms = (uint64_t)dgm_router_config(s->router)->drain_s * 1000;
    int64_t began = now_ms(), until = began + (int64_t)ms + STOP_MS;
    dgm_logger_say(s->logger, DGM_LOG_INFO, "draining", NULL, 0);
    dgm_router_set_reason(s->router, "it is shutting down");
    s->undrained = 2;
    dgm_http_server_drain(s->http, ms, on_drained, s);
    dgm_engine_drain(&s->engine, ms, on_drained, s);
    while (s->undrained > 0 && now_ms() < until) {
        int sig = sigtimedwait(signals, NULL, &a_moment);
        if (sig == SIGUSR1)
            dgm_debug_log_trace(s->engine.loops, s->logger);
        if ((sig == SIGTERM || sig == SIGINT) && now_ms() - began > AGAIN_MS)
            break;
    }
    dgm_logger_say(s->logger, DGM_LOG_INFO, "stopping", NULL, 0);
}

/* ---- reloading ------------------------------------------------------------------------------------------------------- */

static void log_findings(struct server *s, const dgm_config *c)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < c->n_findings; i++) {
        dgm_buf_clear(&b);
        dgm_config_finding_put(&b, &c->findings[i]);
        dgm_logger_says(s->logger, c->findings[i].is_warning ? DGM_LOG_WARN : DGM_LOG_ERROR,
                        "config", {"what", dgm_buf_str(&b), 0});
    }
    dgm_buf_done(&b);
}

/* How many changes take effect now, and how many need a restart. */
struct reload_counts {
    size_t live, restart;
};

static struct reload_counts log_changes(struct server *s, const dgm_config *from,
                                        const dgm_config *to)
{
    static const char *const events[] = {[DGM_CONFIG_CHANGED] = "setting changed",
                                         [DGM_CONFIG_ADDED] = "agent added",
                                         [DGM_CONFIG_REMOVED] = "agent removed"};
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_config_change *changes;
    size_t n = dgm_config_diff(a, from, to, &changes);
    struct reload_counts counts = {0};
    for (size_t i = 0; i < n; i++) {
        counts.live += changes[i].live;
        counts.restart += !changes[i].live;
        if (changes[i].live)
            dgm_logger_says(s->logger, DGM_LOG_INFO, events[changes[i].action],
                            {"setting", changes[i].pointer, 0});
        else
            dgm_logger_says(s->logger, DGM_LOG_WARN,
                            "setting changed in the file, takes effect after a restart",
                            {"setting", changes[i].pointer, 0});
    }
    return counts;
}

/* The same paths may hold a new certificate. */
static void reload_tls(struct server *s, const dgm_config *c)
{
    dgm_err err = {0};
    if (c->tls_cert.n && dgm_router_config(s->router)->tls_cert.n &&
        dgm_http_server_set_tls(s->http, c->tls_cert.p, c->tls_key.p, &err))
        dgm_logger_says(s->logger, DGM_LOG_ERROR, "the certificate was not replaced",
                        {"why", dgm_str_from(err.msg), 0});
}

/* The listener stays open as it is: would it be less protected than it was? NULL: no. */
static const char *lowers_protection(const dgm_config *running, const dgm_config *c)
{
    if (running->tokens.n && !c->tokens.n)
        return "the new configuration has no tokens, but the listener stays open: restart the "
               "server to serve without tokens";
    if (!c->is_loopback && !c->tokens.n && !running->insecure)
        return "other machines can still reach the listener; changing `insecure` needs a restart";
    return NULL;
}

/* The file again, but with the running values of all settings that need a restart: the checks must be about the
 * listener that there is. */
static dgm_config *load_beside(struct server *s, const dgm_config *running)
{
    dgm_config_source source = *s->source;
    source.listen = running->listen.p;
    source.store = running->store.p;
    source.insecure = running->insecure;
    dgm_config *c = dgm_config_load(&source);
    c->insecure = running->insecure;
    c->loops = running->loops;
    if (!c->tls_cert.n != !running->tls_cert.n) {
        c->tls_cert = dgm_arena_dup(c->arena, running->tls_cert);
        c->tls_key = dgm_arena_dup(c->arena, running->tls_key);
    }
    return c;
}

/* NULL: there is nothing to use, and the log says why. */
static dgm_config *load_again(struct server *s, struct reload_counts *counts)
{
    const dgm_config *running = dgm_router_config(s->router);
    dgm_auto(dgm_config_free) dgm_config *file = dgm_config_load(s->source);
    log_findings(s, file);
    if (file->n_errors) {
        dgm_logger_say(s->logger, DGM_LOG_ERROR, "nothing reloaded: the configuration has errors",
                       NULL, 0);
        return NULL;
    }
    dgm_auto(dgm_config_free) dgm_config *c = load_beside(s, running);
    const char *no = c->n_errors ? NULL : lowers_protection(running, c);
    if (c->n_errors)
        log_findings(s, c);
    if (c->n_errors || no) {
        no = no ? no : "the new configuration does not match the open listener";
        dgm_logger_says(s->logger, DGM_LOG_ERROR, "nothing reloaded", {"why", dgm_str_from(no), 0});
        return NULL;
    }
    reload_tls(s, c);
    *counts = log_changes(s, running, file);
    if (!counts->live) {
        dgm_logger_say(s->logger, counts->restart ? DGM_LOG_WARN : DGM_LOG_INFO,
                       counts->restart ? "nothing reloaded: the changes need a restart"
                                       : "reloaded: the settings are the same",
                       NULL, 0);
        return NULL;
    }
    return dgm_take(c);
}

/* The agents of c are open. */
static dgm_code use_config(struct server *s, dgm_config *c, dgm_err *err)
{
    dgm_code rc = dgm_router_use(s->router, c, err);
    if (rc)
        dgm_agents_undo(s->engine.agents, s->engine.core);
    return rc;
}

static void reload(struct server *s)
{
    struct reload_counts counts;
    dgm_config *c = load_again(s, &counts);
    dgm_err err = {0};
    if (!c)
        return;
    if (dgm_agents_open(s->engine.agents, c, s->engine.core, &err) || use_config(s, c, &err)) {
        dgm_logger_says(s->logger, DGM_LOG_ERROR, "nothing reloaded",
                        {"why", dgm_str_from(err.msg), 0}, {"at", dgm_str_from(err.at), 0});
        dgm_config_free(c);
        return;
    }
    dgm_agents_prepare(s->engine.agents, c, s->engine.loops);
    dgm_core_limits limits = dgm_engine_limits(c);
    dgm_core_set_limits(s->engine.core, &limits);
    dgm_core_keep_for(s->engine.core, c->retention_hours * 3600 * 1000,
                      c->keep_tasks_days * 24 * 3600 * 1000);
    dgm_http_server_set_limits(s->http, (size_t)c->limits.http_body_bytes,
                               (size_t)c->limits.connections, (size_t)c->limits.in_flight_bytes);
    dgm_logger_says(s->logger, DGM_LOG_INFO, "reloaded", {"changed", {0}, (double)counts.live},
                    {"need_restart", {0}, (double)counts.restart}); /* at the level before */
    dgm_logger_set(s->logger, c->log_level, c->log_format);
}

/* ---- now and then ---------------------------------------------------------------------------------------------------- */

/* Callers learn only that the store does not work; the log has the path. */
static void serve_until_signal(struct server *s, const sigset_t *signals)
{
    const struct timespec tick = {.tv_sec = TICK_S};
    int sig;
    do {
        dgm_err why = {0};
        char store[300];
        sig = sigtimedwait(signals, NULL, &tick);
        if (sig == SIGHUP)
            reload(s);
        if (sig == SIGUSR1)
            dgm_debug_log_trace(s->engine.loops, s->logger);
        bool failed = !dgm_store_is_healthy(s->engine.store, &why);
        if (failed != s->store_failed)
            dgm_store_show(dgm_router_config(s->router)->store.p, store, sizeof store);
        if (failed && !s->store_failed)
            dgm_logger_says(s->logger, DGM_LOG_ERROR, "the store failed",
                            {"why", dgm_str_from(why.msg), 0}, {"store", dgm_str_from(store), 0});
        else if (!failed && s->store_failed)
            dgm_logger_says(s->logger, DGM_LOG_INFO, "the store works again",
                            {"store", dgm_str_from(store), 0});
        s->store_failed = failed;
        /* free() returns only the end of a heap to the system: after a burst the rest stays resident. */
        size_t resident = dgm_metrics_resident_bytes();
        if (resident >= TRIM_BYTES && resident >= s->trimmed + s->trimmed / 4 &&
            dgm_http_server_in_flight(s->http) <= IDLE_BYTES) {
            malloc_trim(0);
            s->trimmed = dgm_metrics_resident_bytes();
        }
    } while (sig != SIGTERM && sig != SIGINT);
    drain(s, signals);
}

/* ---- main ---------------------------------------------------------------------------------------------------------------- */

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

static int check_only(dgm_config *c, FILE *out)
{
    int status = c->n_errors ? 1 : 0;
    if (!status) {
        dgm_buf b;
        dgm_buf_init(&b, SIZE_MAX);
        dgm_config_put(&b, c);
        fwrite(b.p, 1, b.n, out);
        dgm_buf_done(&b);
    }
    dgm_config_free(c);
    return status;
}

/* Every thread inherits the mask, so that the signals come to sigwait and nowhere else. */
static void hold_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGHUP);
    sigaddset(signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int dgm_serve(const dgm_config_source *given, bool only_check, FILE *out, FILE *err)
{
    dgm_config_source source = *given;
    struct server s = {.source = &source};
    dgm_err fault = {0};
    sigset_t signals;
    int status = 1;
    mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
    mallopt(M_TRIM_THRESHOLD, MAPPED_BYTES);
    source.check_agent = dgm_agents_check;
    s.config = dgm_config_load(&source);
    say_findings(s.config, err);
    if (s.config->n_errors || only_check)
        return check_only(s.config, out);
    hold_signals(&signals);
    if (serve_start(&s, &fault)) {
        fprintf(err, "dragoman: %s%s%s\n", fault.msg, fault.at[0] ? " at " : "", fault.at);
    } else {
        dgm_banner_put(out, dgm_router_config(s.router), dgm_http_server_port(s.http));
        serve_until_signal(&s, &signals);
        status = 0;
    }
    stop(&s);
    return status;
}
