/* app/load/load_report.c - histograms of durations, and the figures, for a person or for a program. */
#include "app/load/load_int.h"

/* Below LOAD_STEPS every value has a place of its own; above, the top 7 bits name one. */
static size_t place_of(uint64_t ns)
{
    if (ns < LOAD_STEPS)
        return (size_t)ns;
    unsigned top = 63u - (unsigned)__builtin_clzll(ns), shift = top - 6;
    size_t i = (size_t)(shift + 1) * LOAD_STEPS + (size_t)((ns >> shift) - LOAD_STEPS);
    size_t last = sizeof((struct hist *)0)->at / sizeof *((struct hist *)0)->at - 1;
    return i < last ? i : last;
}

static uint64_t value_of(size_t i) /* the middle of its place */
{
    if (i < LOAD_STEPS)
        return i;
    unsigned shift = (unsigned)(i / LOAD_STEPS) - 1;
    uint64_t low = (LOAD_STEPS + i % LOAD_STEPS) << shift;
    return low + ((1ull << shift) >> 1);
}

void dgm_load_hist_add(struct hist *h, uint64_t ns)
{
    h->at[place_of(ns)]++;
    h->n++;
    h->sum += (double)ns;
    if (h->n == 1 || ns < h->min)
        h->min = ns;
    if (ns > h->max)
        h->max = ns;
}

uint64_t dgm_load_hist_at(const struct hist *h, double fraction)
{
    uint64_t want = (uint64_t)((double)h->n * fraction), seen = 0;
    for (size_t i = 0; i < sizeof h->at / sizeof *h->at; i++) {
        seen += h->at[i];
        if (seen > want) {
            uint64_t v = value_of(i);
            return v < h->min ? h->min : v > h->max ? h->max : v;
        }
    }
    return h->max;
}

static const char *const names[] = {"send", "get", "stream", "hold", "startup"};

struct figures {
    double seconds, per_s, events_per_s, client_cpu_s, server_cpu_s, per_cpu_s, events_per_cpu_s;
    double cpu_us;     /* of the server, per request */
    double per_stream; /* bytes */
};

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static struct figures figures_of(const struct load *l)
{
    struct figures f = {.seconds = (double)(l->ended_ns - l->began_ns) / 1e9,
                        .client_cpu_s = (double)l->own_cpu / 1e9,
                        .server_cpu_s = (double)l->server_cpu / 1e9};
    f.per_s = ratio((double)l->requests, f.seconds);
    f.events_per_s = ratio((double)l->events, f.seconds);
    f.per_cpu_s = ratio((double)l->requests, f.server_cpu_s);
    f.events_per_cpu_s = ratio((double)l->events, f.server_cpu_s);
    f.cpu_us = ratio(f.server_cpu_s * 1e6, (double)l->requests);
    if (l->mode == MODE_HOLD && l->rss_before >= 0)
        f.per_stream = ratio((double)(l->rss_after - l->rss_before), (double)l->requests);
    return f;
}

static const struct {
    const char *name;
    double fraction;
} percentiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}};

static double us(uint64_t ns)
{
    return (double)ns / 1000;
}

static void report_json(const struct load *l, const struct figures *f, FILE *out)
{
    const struct hist *h = &l->latencies;
    fprintf(out, "{\"mode\":\"%s\",\"text\":", names[l->mode]);
    dgm_cli_json_string(l->text, out);
    fprintf(out,
            ",\"connections\":%zu,\"seconds\":%.3f,\"requests\":%llu,\"errors\":%llu,"
            "\"reconnects\":%llu,\"requests_per_s\":%.1f,\"events\":%llu,\"events_per_s\":%.1f,"
            "\"body_bytes\":%llu,\"client_cpu_s\":%.4f",
            l->n_connections, f->seconds, (unsigned long long)l->requests,
            (unsigned long long)l->errors, (unsigned long long)l->reconnects, f->per_s,
            (unsigned long long)l->events, f->events_per_s, (unsigned long long)l->bytes,
            f->client_cpu_s);
    if (h->n) {
        fprintf(out, ",\"latency_us\":{\"min\":%.1f,\"mean\":%.1f", us(h->min),
                h->sum / (double)h->n / 1000);
        for (size_t i = 0; i < sizeof percentiles / sizeof *percentiles; i++)
            fprintf(out, ",\"%s\":%.1f", percentiles[i].name,
                    us(dgm_load_hist_at(h, percentiles[i].fraction)));
        fprintf(out, ",\"max\":%.1f}", us(h->max));
    }
    if (l->pid)
        fprintf(out,
                ",\"server_cpu_s\":%.4f,\"requests_per_cpu_s\":%.1f,\"events_per_cpu_s\":%.1f,"
                "\"cpu_us_per_request\":%.3f,\"rss_anon_before\":%lld",
                f->server_cpu_s, f->per_cpu_s, f->events_per_cpu_s, f->cpu_us,
                (long long)l->rss_before);
    if (l->pid && l->mode == MODE_HOLD)
        fprintf(out, ",\"rss_anon_after\":%lld,\"bytes_per_stream\":%.0f", (long long)l->rss_after,
                f->per_stream);
    if (l->first_error[0]) {
        fputs(",\"first_error\":", out);
        dgm_cli_json_string(l->first_error, out);
    }
    fputs("}\n", out);
}

static void report_text(const struct load *l, const struct figures *f, FILE *out)
{
    const struct hist *h = &l->latencies;
    fprintf(out, "%-10s %s, \"%s\", %zu connections, %.2f s\n", "mode", names[l->mode], l->text,
            l->n_connections, f->seconds);
    if (l->mode != MODE_HOLD && l->mode != MODE_STARTUP)
        fprintf(out, "%-10s %llu, %.0f per second\n", "requests", (unsigned long long)l->requests,
                f->per_s);
    if (l->mode == MODE_STREAM)
        fprintf(out, "%-10s %llu, %.0f per second\n", "events", (unsigned long long)l->events,
                f->events_per_s);
    if (l->mode == MODE_HOLD)
        fprintf(out, "%-10s %llu open\n", "streams", (unsigned long long)l->requests);
    if (h->n) {
        fprintf(out, "%-10s", l->mode == MODE_STARTUP ? "startup" : "latency");
        fprintf(out, " min %.2f", us(h->min) / 1000);
        for (size_t i = 0; i < sizeof percentiles / sizeof *percentiles; i++)
            fprintf(out, ", %s %.2f", percentiles[i].name,
                    us(dgm_load_hist_at(h, percentiles[i].fraction)) / 1000);
        fprintf(out, ", max %.2f ms\n", us(h->max) / 1000);
    }
    if (l->mode != MODE_STARTUP)
        fprintf(out, "%-10s %.2f s of CPU here", "cost", f->client_cpu_s);
    if (l->pid && l->mode != MODE_STARTUP)
        fprintf(out, ", %.2f s in the server, %.1f us per request", f->server_cpu_s, f->cpu_us);
    if (l->mode != MODE_STARTUP)
        putc('\n', out);
    if (l->pid && l->mode == MODE_HOLD)
        fprintf(out, "%-10s %.1f KiB per stream\n", "memory", f->per_stream / 1024);
    fprintf(out, "%-10s %llu\n", "errors", (unsigned long long)l->errors);
}

void dgm_load_report(const struct load *l, FILE *out)
{
    struct figures f = figures_of(l);
    if (l->json)
        report_json(l, &f, out);
    else
        report_text(l, &f, out);
}
