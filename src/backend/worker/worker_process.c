/*
 * backend/worker/worker_process.c - one process: handshake, heartbeat, faults, restarts, its end.
 *
 *   DOWN ── start ──► STARTING ── handshake ──► READY ── shutdown ──► STOPPING ── it exits, or is killed ──► DOWN
 *                        └────────── fault ───────┴────────► KILLED ── it exits ──► DOWN ── backoff ──► STARTING
 *
 * A process that ends without having been asked to is started again after a time that doubles with every end. After some
 * failed starts in a minute, or if the worker cannot load its code, the agent is unavailable: runs fail at once, until a start succeeds.
 */
#include "backend/worker/worker_int.h"
#include "base/limits.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define BACKOFF_MS 100
#define MAX_BACKOFF_MS 30000
#define STABLE_MS 10000    /* a process that lived so long has not failed at its start */
#define KILL_GRACE_MS 2000 /* from SIGTERM to SIGKILL */
#define RELOAD_MS 30000    /* runs may go on for so long before a reload stops the process */
#define DEAF_MS 1000       /* a process that has closed its channel exits in this time */
#define SUSPECT_MS 200     /* from the end of hang_timeout to the kill */
#define MISSES 3

static uint64_t slot_now(const struct worker_slot *s)
{
    return uv_now(&s->home->uv);
}

static uint64_t slot_number(struct worker_slot *s)
{
    return atomic_fetch_add(&s->pool->n_numbers, 1) + 1;
}

static void slot_stop_timers(struct worker_slot *s)
{
    dgm_timer_stop(&s->start_timer);
    dgm_timer_stop(&s->tick);
    dgm_timer_stop(&s->stop_timer);
}

void dgm_worker_slot_send(struct worker_slot *s, dgm_str line)
{
    if (!s->process || s->state == WORKER_KILLED)
        return;
    dgm_process_send(s->process, line);
    if (dgm_process_channel_backlog(s->process) > DGM_MAX_WORKER_UNREAD_BYTES)
        dgm_worker_slot_kill(s, "it does not read its channel (limit worker_unread_bytes)");
}

/* A request of the server itself. Returns its number. */
static uint64_t slot_request(struct worker_slot *s, const char *method, dgm_str params)
{
    uint64_t number = slot_number(s);
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_printf(&b, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"%s\",\"params\":",
                   (unsigned long long)number, method);
    dgm_buf_add_str(&b, params);
    dgm_buf_add_lit(&b, "}\n");
    dgm_worker_slot_send(s, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return number;
}

/* ---- its end ------------------------------------------------------------------------------------------------------------------ */

static void slot_end_process(struct worker_slot *s)
{
    s->state = WORKER_KILLED;
    dgm_worker_slot_set_info(s, NULL);
    slot_stop_timers(s);
    dgm_worker_queue_end_pause(s);
    dgm_process_kill(s->process);
}

void dgm_worker_slot_kill(struct worker_slot *s, const char *fmt, ...)
{
    va_list args;
    if (s->state == WORKER_KILLED || s->state == WORKER_DOWN)
        return;
    va_start(args, fmt);
    vsnprintf(s->why, sizeof s->why, fmt, args);
    va_end(args);
    dgm_worker_log(s, true, "process %d is stopped: %s", dgm_process_pid(s->process), s->why);
    slot_end_process(s);
}

static void slot_shutdown(struct worker_slot *s)
{
    char params[64];
    int n = snprintf(params, sizeof params, "{\"graceMs\":%llu}",
                     (unsigned long long)s->pool->grace_ms);
    s->is_ending = true;
    s->state = WORKER_STOPPING;
    dgm_worker_slot_set_info(s, NULL);
    s->stop_number = slot_request(s, "shutdown", (dgm_str){params, (size_t)n});
    if (s->state != WORKER_STOPPING)
        return;
    dgm_timer_start(&s->stop_timer, s->pool->grace_ms);
    if (!s->n_runs)
        dgm_process_end_channel(s->process); /* for workers that do not know `shutdown` */
}

void dgm_worker_slot_check_idle(struct worker_slot *s)
{
    bool retires = s->pool->is_retired && !s->n_waiting;
    if (s->state == WORKER_READY && s->n_runs == 0 && (s->wants_reload || retires))
        slot_shutdown(s);
}

static void slot_on_stop_timer(void *arg)
{
    struct worker_slot *s = arg;
    if (s->state == WORKER_STOPPING) {
        dgm_process_end_channel(s->process);
        slot_end_process(s);
    } else if (s->is_deaf) {
        dgm_worker_slot_kill(s, "it has closed its channel");
    } else if (s->state == WORKER_READY && s->wants_reload) {
        slot_shutdown(s);
    }
}

/* How it ended, for a sentence that starts with "it". */
static void slot_describe_end(struct worker_slot *s, dgm_process_exit how)
{
    if (s->why[0])
        return;
    if (how.signal)
        snprintf(s->why, sizeof s->why, "it was killed by signal %d (%s)", how.signal,
                 strsignal(how.signal));
    else
        snprintf(s->why, sizeof s->why, "it ended with exit status %d", how.status);
}

/* Too many of them in the last minute? */
static bool slot_count_failed_start(struct worker_slot *s)
{
    uint64_t now = slot_now(s) + 1; /* 0: none */
    memmove(s->failed_ms, s->failed_ms + 1, sizeof s->failed_ms - sizeof *s->failed_ms);
    s->failed_ms[WORKER_FAILED_STARTS - 1] = now;
    return s->failed_ms[0] && now - s->failed_ms[0] < WORKER_FAILED_MS;
}

static void slot_become_unavailable(struct worker_slot *s)
{
    const char *safe = s->is_load_error
                           ? "the agent's code could not be loaded"
                           : "the agent is unavailable: its worker process does not start";
    if (!s->unavailable)
        dgm_worker_log(s, true, "the agent is unavailable until its worker process starts: %s",
                       s->why);
    s->unavailable = safe;
    dgm_worker_queue_fail_waiting(s, safe, s->why);
}

static void slot_start_again(struct worker_slot *s, bool was_ready)
{
    unsigned n = s->n_ends++ < 20 ? s->n_ends - 1 : 20;
    uint64_t wait = (uint64_t)BACKOFF_MS << n;
    bool is_too_often = !was_ready && slot_count_failed_start(s);
    if (is_too_often || s->is_load_error)
        slot_become_unavailable(s);
    dgm_timer_start(&s->start_timer, wait < MAX_BACKOFF_MS ? wait : MAX_BACKOFF_MS);
}

static void slot_on_exit(void *user, dgm_process_exit how)
{
    struct worker_slot *s = user;
    char safe[400];
    bool was_ready = s->ready_ms != 0;
    bool was_stable = was_ready && slot_now(s) - s->ready_ms > STABLE_MS;
    slot_describe_end(s, how);
    if (!s->is_ending && !s->is_closing && !s->is_load_error)
        dgm_worker_log(s, true, "process ended: %s", s->why);
    s->process = NULL;
    s->state = WORKER_DOWN;
    s->generation++;
    slot_stop_timers(s);
    dgm_worker_queue_end_pause(s);
    dgm_worker_slot_set_info(s, NULL);
    if (s->pool->options.service.close)
        s->pool->options.service.close(s->session);
    snprintf(safe, sizeof safe, "the agent's worker process was lost: %.300s", s->why);
    dgm_worker_queue_lose_sent(s, s->is_closing ? DGM_SHUTTING_DOWN : safe, "");
    dgm_worker_slot_set_alive(s, false);
    if (s->is_closing) {
        dgm_worker_queue_fail_waiting(s, DGM_SHUTTING_DOWN, "");
        return;
    }
    if (was_stable)
        s->n_ends = 0;
    if (!s->is_ending)
        slot_start_again(s, was_ready);
    else if (s->wants_reload || s->n_waiting)
        dgm_worker_slot_start(s);
}

static void slot_on_channel_end(void *user)
{
    struct worker_slot *s = user;
    s->is_deaf = true;
    if (s->state == WORKER_STARTING || s->state == WORKER_READY)
        dgm_timer_start(&s->stop_timer, DEAF_MS); /* its exit status is a better explanation */
}

/* ---- heartbeat ----------------------------------------------------------------------------------------------------------------- */

static void slot_on_tick(void *arg)
{
    struct worker_slot *s = arg;
    uint64_t silent = slot_now(s) - s->line_ms;
    if (s->state != WORKER_READY)
        return;
    if (!s->paused_for && silent > s->pool->hang_ms && !s->is_suspect) {
        s->is_suspect = true; /* its lines may be here, unread, if our own loop was blocked */
        dgm_timer_start(&s->tick, SUSPECT_MS);
        return;
    }
    if (!s->paused_for && silent > s->pool->hang_ms) {
        dgm_worker_slot_kill(s, "it has written nothing for %g seconds (hang_timeout)",
                             (double)s->pool->hang_ms / 1000);
        return;
    }
    if (s->ping_number && !s->paused_for && ++s->n_missed == MISSES)
        dgm_worker_log(s, true, "it does not answer: it gets no new runs until it does");
    if (!s->ping_number)
        s->ping_number = slot_request(s, "ping", DGM_STR("{}"));
    if (s->state == WORKER_READY)
        dgm_timer_start(&s->tick, s->pool->ping_ms);
}

/* ---- its start ------------------------------------------------------------------------------------------------------------------- */

static void slot_send_init(struct worker_slot *s)
{
    const dgm_worker_pool *p = s->pool;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(
        &b, "{\"protocolVersion\":1,\"server\":{\"name\":\"dragoman\",\"version\":\"" DGM_VERSION
            "\"},\"agent\":");
    dgm_json_put_str(&b, p->agent.id.p ? p->agent.id : DGM_STR(""));
    dgm_buf_add_lit(&b, ",\"cwd\":");
    dgm_json_put_str(&b, dgm_str_from(p->options.cwd ? p->options.cwd : "."));
    dgm_buf_printf(&b, ",\"maxLineBytes\":%zu", DGM_WORKER_LINE_BYTES);
    dgm_buf_add_str(&b, p->options.initialize);
    dgm_buf_add_char(&b, '}');
    s->init_number = slot_request(s, "initialize", dgm_buf_str(&b));
    dgm_buf_done(&b);
}

static void slot_start_process(struct worker_slot *s)
{
    const dgm_worker_pool *p = s->pool;
    dgm_err err = {0};
    dgm_process_options options = {.argv = p->options.argv,
                                   .env = p->env,
                                   .cwd = p->options.cwd,
                                   .max_line_bytes = DGM_MAX_WORKER_TAIL_LINE * 2,
                                   .channel_line_bytes = DGM_WORKER_LINE_BYTES,
                                   .grace_ms = KILL_GRACE_MS};
    dgm_process_handler handler = {.on_line = dgm_worker_on_log_line,
                                   .on_error_line = dgm_worker_on_log_line,
                                   .on_exit = slot_on_exit,
                                   .on_channel_line = dgm_worker_on_line,
                                   .on_channel_end = slot_on_channel_end,
                                   .user = s};
    s->ready_ms = 0;
    s->why[0] = '\0';
    s->is_suspect = s->is_load_error = s->is_ending = s->is_deaf = s->wants_reload = false;
    s->n_missed = 0;
    s->n_requests = 0;
    s->init_number = s->ping_number = s->stop_number = 0;
    s->generation++;
    dgm_worker_tail_clear(s);
    if (dgm_process_start(s->home, &options, handler, &s->process, &err)) {
        snprintf(s->why, sizeof s->why, "%.300s", err.msg);
        dgm_worker_log(s, true, "%s", s->why);
        slot_start_again(s, false);
        return;
    }
    s->state = WORKER_STARTING;
    s->line_ms = s->started_ms = slot_now(s);
    dgm_worker_slot_set_alive(s, true);
    s->session =
        p->options.service.open ? p->options.service.open(p->options.service.user, s->home) : NULL;
    dgm_timer_start(&s->start_timer, p->start_ms);
    slot_send_init(s);
}

void dgm_worker_slot_start(struct worker_slot *s)
{
    if (s->state == WORKER_DOWN && !s->start_timer.place && !s->is_closing)
        slot_start_process(s);
}

static void slot_on_start_timer(void *arg)
{
    struct worker_slot *s = arg;
    if (s->state == WORKER_STARTING)
        dgm_worker_slot_kill(s, "it has not answered the handshake within %g seconds",
                             (double)s->pool->start_ms / 1000);
    else
        dgm_worker_slot_start(s);
}

/* ---- the handshake ------------------------------------------------------------------------------------------------------------------ */

static void slot_on_init_error(struct worker_slot *s, const dgm_json *error)
{
    dgm_str message = dgm_json_str_member(error, "message");
    const dgm_json *data = dgm_json_get(error, DGM_STR("data"));
    snprintf(s->why, sizeof s->why, "%.*s", (int)(message.n < 300 ? message.n : 300),
             message.p ? message.p : "the handshake failed");
    s->is_load_error = true;
    dgm_worker_log(s, true, "the agent's code could not be loaded: %s", s->why);
    dgm_worker_log_text(s, true, dgm_json_str_member(data, "traceback"));
    slot_end_process(s);
    slot_become_unavailable(s);
}

static struct worker_info *slot_make_info(struct worker_slot *s, const dgm_json *result)
{
    dgm_arena *a = dgm_arena_new();
    struct worker_info *info = dgm_new(a, struct worker_info);
    const dgm_json *max = dgm_json_get(result, DGM_STR("maxRuns"));
    const dgm_json *can = dgm_json_get(result, DGM_STR("capabilities"));
    int64_t n = 0;
    info->refs = 1;
    info->arena = a;
    info->result = dgm_json_copy(a, result);
    info->can_input = yyjson_is_true(dgm_json_get(can, DGM_STR("input")));
    if (!max || !dgm_json_int(max, &n) || n < 1)
        n = 64;
    info->max_runs = n < DGM_MAX_WORKER_RUNS ? (size_t)n : DGM_MAX_WORKER_RUNS;
    if (s->pool->options.max_runs && s->pool->options.max_runs < info->max_runs)
        info->max_runs = s->pool->options.max_runs;
    return info;
}

static void slot_log_ready(struct worker_slot *s, const dgm_json *result)
{
    const dgm_json *worker = dgm_json_get(result, DGM_STR("worker"));
    dgm_str name = dgm_json_str_member(worker, "name"),
            version = dgm_json_str_member(worker, "version");
    dgm_worker_log(s, false, "process %d is ready after %.1f s (%.*s%s%.*s)",
                   dgm_process_pid(s->process), (double)(slot_now(s) - s->started_ms) / 1000,
                   (int)(name.n < 60 ? name.n : 60), name.n ? name.p : "", version.n ? " " : "",
                   (int)(version.n < 30 ? version.n : 30), version.n ? version.p : "");
}

void dgm_worker_slot_on_init(struct worker_slot *s, const dgm_json *response)
{
    const dgm_json *error = dgm_json_get(response, DGM_STR("error"));
    const dgm_json *result = dgm_json_get(response, DGM_STR("result"));
    const dgm_json *version = dgm_json_get(result, DGM_STR("protocolVersion"));
    int64_t n = 0;
    if (s->state != WORKER_STARTING)
        return;
    if (error) {
        slot_on_init_error(s, error);
        return;
    }
    if (!version || !dgm_json_int(version, &n) || n != 1) {
        dgm_worker_slot_kill(s, "its handshake has protocolVersion %lld, expected 1", (long long)n);
        return;
    }
    struct worker_info *info = slot_make_info(s, result);
    dgm_timer_stop(&s->start_timer);
    s->state = WORKER_READY;
    s->ready_ms = slot_now(s);
    s->max_runs = info->max_runs;
    s->unavailable = NULL;
    slot_log_ready(s, result);
    dgm_worker_slot_set_info(s, info);
    dgm_timer_start(&s->tick, s->pool->ping_ms);
    dgm_worker_queue_ready(s, info);
    dgm_worker_slot_check_idle(s);
}

/* ---- from the pool ---------------------------------------------------------------------------------------------------------------------- */

static void slot_on_loop_stop(void *arg)
{
    struct worker_slot *s = arg;
    s->is_closing = true;
    slot_stop_timers(s);
    dgm_timer_stop(&s->pause_timer);
    if (!s->process) /* else its end follows: net/process kills it */
        dgm_worker_queue_fail_waiting(s, DGM_SHUTTING_DOWN, "");
}

void dgm_worker_slot_open(struct worker_slot *s)
{
    if (s->is_open)
        return;
    s->is_open = true;
    dgm_timer_init(s->home, &s->start_timer, slot_on_start_timer, s);
    dgm_timer_init(s->home, &s->tick, slot_on_tick, s);
    dgm_timer_init(s->home, &s->stop_timer, slot_on_stop_timer, s);
    dgm_timer_init(s->home, &s->pause_timer, dgm_worker_queue_on_pause, s);
    s->stop = (dgm_loop_stop){.fn = slot_on_loop_stop, .arg = s};
    dgm_loop_on_stop(s->home, &s->stop);
    if (s->index == 0 && s->pool->agent.watch)
        dgm_worker_watch_open(s->pool, s->home);
}

void dgm_worker_slot_reload(struct worker_slot *s)
{
    if (!s->is_open || s->is_closing || s->pool->is_retired)
        return;
    s->n_ends = 0;
    memset(s->failed_ms, 0, sizeof s->failed_ms);
    s->unavailable = NULL;
    s->wants_reload = true;
    switch (s->state) {
    case WORKER_DOWN:
        dgm_timer_stop(&s->start_timer);
        dgm_worker_slot_start(s);
        break;
    case WORKER_STARTING:
        s->is_ending = true;
        slot_end_process(s);
        break;
    case WORKER_READY:
        dgm_timer_start(&s->stop_timer, RELOAD_MS);
        dgm_worker_slot_check_idle(s);
        break;
    case WORKER_KILLED: s->is_ending = true; break; /* a new one is started at once */
    case WORKER_STOPPING: break;
    }
}

void dgm_worker_slot_close(struct worker_slot *s)
{
    if (!s->is_open)
        return;
    s->is_closing = true;
    dgm_worker_queue_fail_waiting(s, DGM_SHUTTING_DOWN, "");
    if (s->state == WORKER_READY)
        slot_shutdown(s);
    else if (s->state == WORKER_STARTING)
        slot_end_process(s);
    else if (s->state == WORKER_DOWN)
        slot_stop_timers(s);
}
