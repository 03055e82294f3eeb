/* app/serve/metrics.c - counters, a histogram, and their text format. */
#include "app/serve/metrics.h"
#include "app/serve/routes.h"
#include "base/limits.h"
#include "store/share.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static const int codes[] = {200, 204, 304, 400, 401, 403, 404,
                            405, 408, 409, 413, 415, 421, 429,
                            431, 500, 501, 502, 503, 504, 0 /* the caller left */,
                            -1};
#define N_CODES (sizeof codes / sizeof *codes) /* the last: any other */

static const double bounds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                0.25,   0.5,   1,      2.5,   5,    10,    30};
#define N_BOUNDS (sizeof bounds / sizeof *bounds)

#define N_ROUTES                                                                                   \
    (DGM_MAX_FRONTENDS + 1) /* by the position of the frontend; behind them: unknown paths */

typedef _Atomic uint64_t counter;

/* Of one loop: only it writes. */
struct row {
    counter requests[N_ROUTES][N_CODES];
    counter took[N_ROUTES][N_BOUNDS + 1];
    counter took_ns[N_ROUTES];
    counter streams, bytes_in, bytes_out;
};

struct dgm_metrics {
    struct row *rows;
    size_t n_rows;
    _Atomic int64_t open_streams;
    counter refused[N_CODES];
    time_t started;
};

dgm_metrics *dgm_metrics_new(size_t n_loops)
{
    dgm_metrics *m = dgm_xcalloc(1, sizeof *m);
    m->n_rows = n_loops;
    m->rows = dgm_xcalloc(n_loops, sizeof *m->rows);
    m->started = time(NULL);
    return m;
}

void dgm_metrics_free(dgm_metrics *m)
{
    if (!m)
        return;
    free(m->rows);
    free(m);
}

_Atomic int64_t *dgm_metrics_streams(dgm_metrics *m)
{
    return &m->open_streams;
}

/* ---- counting ------------------------------------------------------------------------------------------------ */

/* One writer: a plain add, made so that readers see whole numbers. */
static void metrics_add(counter *c, uint64_t n)
{
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static size_t code_index(int status)
{
    size_t i = 0;
    while (i < N_CODES - 1 && codes[i] != status)
        i++;
    return i;
}

void dgm_metrics_count(dgm_metrics *m, size_t loop, const dgm_front_note *note, int status,
                       uint64_t ns, uint64_t bytes_in, uint64_t bytes_out)
{
    struct row *r = &m->rows[loop];
    size_t route = 0;
    while (dgm_frontends[route] && dgm_frontends[route] != note->front)
        route++;
    metrics_add(&r->requests[route][code_index(status)], 1);
    metrics_add(&r->bytes_in, bytes_in);
    metrics_add(&r->bytes_out, bytes_out);
    if (note->is_stream) { /* lasts as long as its task: no matter of latency */
        metrics_add(&r->streams, 1);
        atomic_fetch_sub_explicit(&m->open_streams, 1, memory_order_relaxed);
        return;
    }
    size_t i = 0;
    while (i < N_BOUNDS && (double)ns > bounds[i] * 1e9)
        i++;
    metrics_add(&r->took[route][i], 1);
    metrics_add(&r->took_ns[route], ns);
}

void dgm_metrics_refused(dgm_metrics *m, int status)
{
    atomic_fetch_add_explicit(&m->refused[code_index(status)], 1, memory_order_relaxed);
}

/* ---- telling ---------------------------------------------------------------------------------------------------- */

static void put_about(dgm_buf *b, const char *name, const char *type, const char *about)
{
    dgm_buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, about, name, type);
}

static void put_one(dgm_buf *b, const char *name, const char *type, const char *about, double value)
{
    put_about(b, name, type, about);
    dgm_buf_printf(b, "%s %.17g\n", name, value);
}

#define SUM(m, member)                                                                             \
    __extension__({                                                                                \
        uint64_t sum_ = 0;                                                                         \
        for (size_t row_ = 0; row_ < (m)->n_rows; row_++)                                          \
            sum_ += atomic_load_explicit(&(m)->rows[row_].member, memory_order_relaxed);           \
        sum_;                                                                                      \
    })

static void put_code(dgm_buf *b, size_t i)
{
    if (codes[i] > 0)
        dgm_buf_printf(b, "code=\"%d\"", codes[i]);
    else
        dgm_buf_printf(b, "code=\"%s\"", codes[i] == 0 ? "gone" : "other");
}

static const char *route_name(size_t i)
{
    return dgm_frontends[i] ? dgm_frontends[i]->name : "none";
}

static void put_requests(dgm_metrics *m, dgm_buf *b)
{
    put_about(b, "dragoman_http_requests_total", "counter", "Requests answered.");
    for (size_t k = 0; k < N_ROUTES; k++) {
        for (size_t i = 0; i < N_CODES; i++) {
            uint64_t n = SUM(m, requests[k][i]);
            if (!n)
                continue;
            dgm_buf_printf(b, "dragoman_http_requests_total{route=\"%s\",", route_name(k));
            put_code(b, i);
            dgm_buf_printf(b, "} %llu\n", (unsigned long long)n);
        }
    }
    put_about(b, "dragoman_http_refused_total", "counter",
              "Connections rejected before a complete request was read.");
    for (size_t i = 0; i < N_CODES; i++) {
        if (!m->refused[i])
            continue;
        dgm_buf_add_lit(b, "dragoman_http_refused_total{");
        put_code(b, i);
        dgm_buf_printf(b, "} %llu\n", (unsigned long long)m->refused[i]);
    }
}

static void put_latencies(dgm_metrics *m, dgm_buf *b)
{
    put_about(b, "dragoman_http_request_duration_seconds", "histogram",
              "Time from the complete request to the end of the response, without streams.");
    for (size_t k = 0; k < N_ROUTES; k++) {
        uint64_t n = 0, all = 0;
        for (size_t i = 0; i <= N_BOUNDS; i++)
            all += SUM(m, took[k][i]);
        for (size_t i = 0; all && i < N_BOUNDS; i++) {
            n += SUM(m, took[k][i]);
            dgm_buf_printf(b,
                           "dragoman_http_request_duration_seconds_bucket{route=\"%s\",le=\"%g\"} "
                           "%llu\n",
                           route_name(k), bounds[i], (unsigned long long)n);
        }
        if (all)
            dgm_buf_printf(
                b,
                "dragoman_http_request_duration_seconds_bucket{route=\"%s\",le=\"+Inf\"} %llu\n"
                "dragoman_http_request_duration_seconds_sum{route=\"%s\"} %.9f\n"
                "dragoman_http_request_duration_seconds_count{route=\"%s\"} %llu\n",
                route_name(k), (unsigned long long)all, route_name(k),
                (double)SUM(m, took_ns[k]) / 1e9, route_name(k), (unsigned long long)all);
    }
}

static void put_core(dgm_buf *b, dgm_core *core)
{
    dgm_core_stats c = dgm_core_stats_of(core);
    const char *name, *about;
    uint64_t broken;
#define N(name_, about_, member)                                                                   \
    put_one(b, "dragoman_" name_ "_total", "counter", about_, (double)c.member)
    N("sends", "Messages accepted.", sends);
    N("resends", "Repeated messages that continued an existing turn.", resends);
    N("runs", "Agent executions started.", runs);
    N("messages", "Sends answered with a Message instead of a Task.", messages);
    N("tasks", "Tasks created.", tasks);
    N("records", "Events appended to task logs.", records);
#undef N
    put_one(b, "dragoman_tasks_in_memory", "gauge", "Tasks currently held in memory.",
            (double)c.live);
    put_one(b, "dragoman_runs_running", "gauge", "Agent executions in progress.",
            (double)c.running);
    put_about(b, "dragoman_agent_warnings_total", "counter",
              "Runs in which an agent violated a lint rule, by rule.");
    for (size_t i = 0; dgm_core_rule(core, i, &name, &about, &broken); i++)
        dgm_buf_printf(b, "dragoman_agent_warnings_total{rule=\"%s\"} %llu\n", name,
                       (unsigned long long)broken);
}

/* Of the store: the bounds are those of its commits. */
static void put_histogram(dgm_buf *b, const char *name, const char *about,
                          const uint64_t took[DGM_N_COMMIT_BOUNDS + 1], uint64_t ns)
{
    uint64_t n = 0;
    put_about(b, name, "histogram", about);
    for (size_t i = 0; i < DGM_N_COMMIT_BOUNDS; i++) {
        n += took[i];
        dgm_buf_printf(b, "%s_bucket{le=\"%g\"} %llu\n", name, dgm_store_commit_bounds[i] / 1e6,
                       (unsigned long long)n);
    }
    n += took[DGM_N_COMMIT_BOUNDS];
    dgm_buf_printf(b, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.9f\n%s_count %llu\n", name,
                   (unsigned long long)n, name, (double)ns / 1e9, name, (unsigned long long)n);
}

/* Only if several servers may use the store. */
static void put_replica(dgm_buf *b, const dgm_core_stats *c, const dgm_store_stats *s)
{
    put_one(
        b, "dragoman_replica_lease_seconds_left", "gauge",
        "Time until other servers may take over the tasks of this server. Negative: the lease has "
        "ended.",
        (double)s->lease_left_ms / 1e3);
    put_histogram(
        b, "dragoman_store_wakeup_seconds",
        "Time from the commit of an event on another server to the wake-up of this server.",
        s->wakeup_took, s->wakeup_ns);
    put_one(b, "dragoman_tasks_taken_over_total", "counter",
            "Tasks of dead servers that this server took over, and unfinished tasks that another "
            "server "
            "released.",
            (double)c->taken_over);
    put_one(b, "dragoman_leases_lost_total", "counter",
            "Tasks of this server that another server took over.", (double)c->lost);
    put_one(b, "dragoman_calls_forwarded_total", "counter",
            "Calls that this server sent to the owner of the task.", (double)c->forwarded);
    put_one(b, "dragoman_tasks_followed", "gauge",
            "Tasks whose logs this server reads from the store for its clients.",
            (double)c->followed);
    put_one(b, "dragoman_follower_lag_records", "gauge",
            "Sum of the records that were new in the last read of each followed log.",
            (double)c->lag);
}

static void put_store(dgm_buf *b, dgm_core *core, dgm_store *store)
{
    dgm_store_stats s = dgm_store_stats_of(store);
    dgm_core_stats c = dgm_core_stats_of(core);
    put_histogram(b, "dragoman_store_commit_duration_seconds",
                  "Time of a store transaction, from its start until it is on disk.", s.commit_took,
                  s.commit_ns);
    put_one(b, "dragoman_store_commits_total", "counter", "Commits.", (double)s.commits);
    put_one(b, "dragoman_store_appends_total", "counter", "Appends stored.", (double)s.appends);
    put_one(b, "dragoman_store_records_total", "counter", "Records stored.", (double)s.records);
    put_one(b, "dragoman_store_bytes_total", "counter", "Bytes of stored records.",
            (double)s.bytes);
    put_one(b, "dragoman_store_reads_total", "counter", "Look-ups.", (double)s.reads);
    put_one(b, "dragoman_store_queued", "gauge", "Appends waiting for the store.",
            (double)s.queued);
    if (dgm_store_is_shared(store))
        put_replica(b, &c, &s);
}

size_t dgm_metrics_resident_bytes(void)
{
    unsigned long all, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f)
        return 0;
    if (fscanf(f, "%lu %lu", &all, &resident) != 2)
        resident = 0;
    fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void put_process(const dgm_metrics *m, dgm_buf *b)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    put_one(b, "process_resident_memory_bytes", "gauge", "Memory in use.",
            (double)dgm_metrics_resident_bytes());
    put_one(b, "process_cpu_seconds_total", "counter", "CPU time used, user and system.",
            (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6);
    put_one(b, "process_start_time_seconds", "gauge", "Start time of the process, Unix time.",
            (double)m->started);
    put_about(b, "dragoman_build_info", "gauge", "Version of this Dragoman.");
    dgm_buf_add_lit(b, "dragoman_build_info{version=\"" DGM_VERSION "\"} 1\n");
}

void dgm_metrics_put(dgm_metrics *m, dgm_buf *b, dgm_core *core, dgm_store *store, bool is_ready)
{
    put_requests(m, b);
    put_latencies(m, b);
    put_one(b, "dragoman_streams_open", "gauge", "Open streams.", (double)m->open_streams);
    put_one(b, "dragoman_streams_total", "counter", "Streams ended.", (double)SUM(m, streams));
    put_one(b, "dragoman_http_received_bytes_total", "counter", "Bytes of request bodies.",
            (double)SUM(m, bytes_in));
    put_one(b, "dragoman_http_sent_bytes_total", "counter", "Bytes of response bodies.",
            (double)SUM(m, bytes_out));
    put_core(b, core);
    put_store(b, core, store);
    put_one(b, "dragoman_ready", "gauge", "1 if the server accepts work (same as /readyz), else 0.",
            is_ready);
    put_process(m, b);
}
