/*
 * bare_reader.c - the least that reading a stream can cost: libcurl's easy interface, and a count of the events.
 *
 *   bare_reader URL [SECONDS [TEXT [a2a|chat]]]
 *
 * Sends TEXT ("chunks 100") to the bench agent over JSON-RPC, or to a model over Chat Completions, one stream after the other
 * over one connection, and prints {"events": ..., "streams": ..., "cpu_us_per_event": ...}. Every stream must have the same
 * number of events.
 */
#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define WARM_S 0.5

struct reader {
    size_t events;   /* of this stream */
    char last;       /* byte before this piece */
    size_t expected; /* 0: not known yet */
    size_t all, streams;
    const char *text;
    bool is_chat;
    unsigned message; /* its id: a message that is sent twice is answered once */
};

static size_t on_bytes(char *p, size_t size, size_t n, void *arg)
{
    struct reader *r = arg;
    const char *end = p + size * n;
    for (const char *at = p; at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++) {
        r->events += (at > p ? at[-1] : r->last) == '\n'; /* an empty line ends an event */
    }
    r->last = end[-1];
    return size * n;
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void set_body(CURL *e, struct reader *r)
{
    char body[1000];
    if (r->is_chat) {
        snprintf(body, sizeof body,
                 "{\"model\":\"bench-1\",\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}],"
                 "\"stream\":true}",
                 r->text);
        curl_easy_setopt(e, CURLOPT_COPYPOSTFIELDS, body);
        return;
    }
    snprintf(body, sizeof body,
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendStreamingMessage\",\"params\":{"
             "\"message\":{"
             "\"messageId\":\"bare-%u\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"%s\"}]}}}",
             r->message++, r->text);
    curl_easy_setopt(e, CURLOPT_COPYPOSTFIELDS, body);
}

/* 0: as it should be. */
static int read_streams(CURL *e, struct reader *r, double seconds)
{
    for (double end = seconds_now() + seconds; seconds_now() < end;) {
        r->events = 0;
        r->last = '\0';
        set_body(e, r);
        CURLcode code = curl_easy_perform(e);
        if (code) {
            fprintf(stderr, "bare_reader: %s\n", curl_easy_strerror(code));
            return 1;
        }
        if (r->expected && r->events != r->expected) {
            fprintf(stderr, "bare_reader: a stream has %zu events instead of %zu\n", r->events,
                    r->expected);
            return 1;
        }
        r->expected = r->events;
        r->all += r->events;
        r->streams++;
    }
    return 0;
}

int main(int argc, char **argv)
{
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 4;
    struct reader r = {.text = argc > 3 ? argv[3] : "chunks 100",
                       .is_chat = argc > 4 && strcmp(argv[4], "chat") == 0};
    if (argc < 2)
        return 2;
    CURL *e = curl_easy_init();
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    headers = curl_slist_append(headers, "Accept: text/event-stream");
    headers = curl_slist_append(headers, "A2A-Version: 1.0");
    headers = curl_slist_append(headers, "Expect:");
    curl_easy_setopt(e, CURLOPT_URL, argv[1]);
    curl_easy_setopt(e, CURLOPT_PROXY, "");
    curl_easy_setopt(e, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(e, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, &r);
    if (read_streams(e, &r, WARM_S))
        return 1;
    r.all = r.streams = 0;
    double cpu = cpu_seconds();
    if (read_streams(e, &r, seconds))
        return 1;
    cpu = cpu_seconds() - cpu;
    if (!r.all) {
        fprintf(stderr, "bare_reader: there were no events\n");
        return 1;
    }
    printf("{\"events\": %zu, \"streams\": %zu, \"cpu_us_per_event\": %.4f}\n", r.all, r.streams,
           cpu * 1e6 / (double)r.all);
    curl_slist_free_all(headers);
    curl_easy_cleanup(e);
    return 0;
}
