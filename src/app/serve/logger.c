/* app/serve/logger.c - lines, and the thread that writes them. */
#include "app/serve/logger.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define WAITING_BYTES ((size_t)1 << 20) /* some thousand lines */
#define LINE_BYTES ((size_t)16 << 10)
#define FIELD_BYTES ((size_t)4 << 10) /* the end of a program's stderr; escaped it may double */
#define LAST_WORDS_MS 2000
#define GATHER_MS                                                                                  \
    10 /* lines of this time are written at once: a line alone costs as much as a request */

struct dgm_logger {
    int fd;
    _Atomic int level, format;
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t more;
    dgm_buf waiting;
    uint64_t dropped;
    bool ends;
};

/* ---- writing ------------------------------------------------------------------------------------------------ */

/* False: it cannot be written, and the thread is to end. */
static bool write_all(dgm_logger *l, dgm_str text)
{
    while (text.n) {
        struct pollfd p = {.fd = l->fd, .events = POLLOUT};
        int ready = poll(&p, 1, LAST_WORDS_MS);
        if (ready == 0) {
            pthread_mutex_lock(&l->lock);
            bool ends = l->ends;
            pthread_mutex_unlock(&l->lock);
            if (ends)
                return false;
            continue;
        }
        /* in pieces that a pipe takes without waiting, once it takes any */
        ssize_t n = write(l->fd, text.p, text.n < 4096 ? text.n : 4096);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return false;
        if (n > 0)
            text = (dgm_str){text.p + n, text.n - (size_t)n};
    }
    return true;
}

/* Only the end is worth being woken for. */
static void gather(dgm_logger *l)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += GATHER_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    while (!l->ends && pthread_cond_timedwait(&l->more, &l->lock, &until) == 0)
        ;
}

static void *write_lines(void *arg)
{
    dgm_logger *l = arg;
    dgm_buf mine;
    bool ends = false, works = true;
    dgm_buf_init(&mine, SIZE_MAX);
    while (!ends || l->waiting.n) {
        pthread_mutex_lock(&l->lock);
        while (!l->waiting.n && !l->ends)
            pthread_cond_wait(&l->more, &l->lock);
        if (!l->ends)
            gather(l);
        ends = l->ends;
        uint64_t dropped = l->dropped;
        l->dropped = 0;
        dgm_buf swap = l->waiting;
        l->waiting = mine;
        l->waiting.max = SIZE_MAX;
        mine = swap;
        pthread_mutex_unlock(&l->lock);
        if (dropped)
            dgm_buf_printf(
                &mine,
                "dragoman: %llu log lines were dropped because standard error was not read\n",
                (unsigned long long)dropped);
        works = works && write_all(l, dgm_buf_str(&mine));
        dgm_buf_clear(&mine);
        dgm_buf_shrink(&mine, (size_t)64 << 10);
    }
    dgm_buf_done(&mine);
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

dgm_logger *dgm_logger_new(int fd, dgm_config_log_level level, dgm_config_log_format format)
{
    dgm_logger *l = dgm_xcalloc(1, sizeof *l);
    pthread_condattr_t by_clock;
    l->fd = fd;
    l->level = (int)level;
    l->format = (int)format;
    dgm_buf_init(&l->waiting, SIZE_MAX);
    pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_init(&by_clock);
    pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
    pthread_cond_init(&l->more, &by_clock);
    pthread_condattr_destroy(&by_clock);
    pthread_create(&l->thread, NULL, write_lines, l);
    return l;
}

void dgm_logger_free(dgm_logger *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->ends = true;
    pthread_cond_signal(&l->more);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    pthread_cond_destroy(&l->more);
    pthread_mutex_destroy(&l->lock);
    dgm_buf_done(&l->waiting);
    free(l);
}

void dgm_logger_set(dgm_logger *l, dgm_config_log_level level, dgm_config_log_format format)
{
    atomic_store_explicit(&l->level, (int)level, memory_order_relaxed);
    atomic_store_explicit(&l->format, (int)format, memory_order_relaxed);
}

bool dgm_logger_wants(const dgm_logger *l, dgm_config_log_level level)
{
    return (int)level <= atomic_load_explicit(&l->level, memory_order_relaxed);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static const char *const level_names[] = {"error", "warn", "info", "debug"};

/* A line is written for every request: no printf, and the second is formatted once per thread. */
static char *put_digits(char *p, unsigned n, int digits)
{
    for (int i = digits - 1; i >= 0; i--, n /= 10)
        p[i] = (char)('0' + n % 10);
    return p + digits;
}

/* The date changes once a second: each thread keeps its text. */
static void put_time(dgm_buf *b)
{
    static _Thread_local time_t at;
    static _Thread_local char text[] = "0000-00-00T00:00:00.000Z";
    struct timespec now;
    struct tm t;
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec != at) {
        gmtime_r(&now.tv_sec, &t);
        at = now.tv_sec;
        put_digits(text, (unsigned)t.tm_year + 1900, 4);
        put_digits(text + 5, (unsigned)t.tm_mon + 1, 2);
        put_digits(text + 8, (unsigned)t.tm_mday, 2);
        put_digits(text + 11, (unsigned)t.tm_hour, 2);
        put_digits(text + 14, (unsigned)t.tm_min, 2);
        put_digits(text + 17, (unsigned)t.tm_sec, 2);
    }
    put_digits(text + 20, (unsigned)(now.tv_nsec / 1000000), 3);
    dgm_buf_add(b, text, sizeof text - 1);
}

/* Whole, or with three digits behind the point. */
static void put_number(dgm_buf *b, double n)
{
    int64_t thousandths = (int64_t)(n * 1000 + (n < 0 ? -0.5 : 0.5));
    char fraction[4] = ".";
    dgm_json_put_int(b, thousandths / 1000);
    if (thousandths % 1000) {
        put_digits(fraction + 1, (unsigned)llabs(thousandths % 1000), 3);
        dgm_buf_add(b, fraction, 4);
    }
}

static bool is_plain(dgm_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 0x20 || s.p[i] == 0x7F)
            return false;
    return true;
}

/* JSON wants UTF-8, a terminal no control characters: what is neither becomes '?'. Line ends stay: they
 * are escaped, as the value is quoted then. */
static dgm_str clean(dgm_str s, char *room, size_t size)
{
    size_t n = s.n < size ? s.n : size;
    bool whole;
    if (n == s.n && is_plain(s))
        return s;
    whole = dgm_utf8_check(s) == s.n;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        room[i] =
            (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F || (c >= 0x80 && (!whole || n < s.n))
                ? '?'
                : (char)c;
    }
    return (dgm_str){room, n};
}

static bool is_word(dgm_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == ' ' || s.p[i] == '"' || s.p[i] == '=' || s.p[i] == '\n' || s.p[i] == '\t')
            return false;
    return s.n != 0;
}

static void put_words(dgm_buf *b, const char *words)
{
    dgm_buf_add_str(b, dgm_str_from(words));
}

static void put_json(dgm_buf *b, const char *level, const char *what, const dgm_log_field *f,
                     size_t n)
{
    char room[FIELD_BYTES];
    dgm_buf_add_lit(b, "{\"time\":\"");
    put_time(b);
    dgm_buf_add_lit(b, "\",\"level\":\"");
    put_words(b, level);
    dgm_buf_add_lit(b, "\",\"msg\":");
    dgm_json_put_str(b, dgm_str_from(what));
    for (size_t i = 0; i < n; i++) {
        if (f[i].text.p && !f[i].text.n)
            continue;
        dgm_buf_add_lit(b, ",\"");
        put_words(b, f[i].name);
        dgm_buf_add_lit(b, "\":");
        if (f[i].text.p)
            dgm_json_put_str(b, clean(f[i].text, room, sizeof room));
        else
            put_number(b, f[i].number);
    }
    dgm_buf_add_lit(b, "}\n");
}

static void logger_put_text(dgm_buf *b, const char *level, const char *what, const dgm_log_field *f,
                            size_t n)
{
    char room[FIELD_BYTES];
    put_time(b);
    dgm_buf_add_char(b, ' ');
    put_words(b, level);
    dgm_buf_add(b, "     ", 6 - strlen(level)); /* the longest has five letters */
    put_words(b, what);
    for (size_t i = 0; i < n; i++) {
        if (f[i].text.p && !f[i].text.n)
            continue;
        dgm_buf_add_char(b, ' ');
        put_words(b, f[i].name);
        dgm_buf_add_char(b, '=');
        dgm_str text = f[i].text.p ? clean(f[i].text, room, sizeof room) : (dgm_str){0};
        if (!text.p)
            put_number(b, f[i].number);
        else if (is_word(text))
            dgm_buf_add_str(b, text);
        else
            dgm_json_put_str(b, text);
    }
    dgm_buf_add_char(b, '\n');
}

void dgm_logger_say(dgm_logger *l, dgm_config_log_level level, const char *what,
                    const dgm_log_field *fields, size_t n)
{
    char room[LINE_BYTES];
    dgm_buf line = {.p = room, .cap = sizeof room, .max = sizeof room}; /* it cannot grow */
    bool was_empty;
    if (!dgm_logger_wants(l, level))
        return;
    if (atomic_load_explicit(&l->format, memory_order_relaxed) == DGM_LOG_JSON)
        put_json(&line, level_names[level], what, fields, n);
    else
        logger_put_text(&line, level_names[level], what, fields, n);
    if (line.over) { /* half a line is no line of JSON */
        dgm_logger_say(l, level, what, NULL, 0);
        return;
    }
    pthread_mutex_lock(&l->lock);
    was_empty = !l->waiting.n;
    if (l->waiting.n + line.n > WAITING_BYTES)
        l->dropped++;
    else
        dgm_buf_add_str(&l->waiting, dgm_buf_str(&line));
    if (was_empty)
        pthread_cond_signal(&l->more);
    pthread_mutex_unlock(&l->lock);
}
