/*
 * backend/worker/worker_log.c - lines for the operator's log: what a worker prints, and what happened to it.
 *
 * A worker that prints without end must not fill the log: so many lines of a second are logged, and the rest is counted.
 */
#include "backend/worker/worker_int.h"
#include "base/limits.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_LINE 900 /* of the log; a text of a worker may be longer */

static void log_line(struct worker_slot *s, bool is_fault, dgm_str line)
{
    const dgm_agent_options *o = &s->pool->agent;
    if (o->on_log)
        o->on_log(o->log_user, o->id, is_fault, line);
}

void dgm_worker_log(struct worker_slot *s, bool is_fault, const char *fmt, ...)
{
    char line[MAX_LINE + 100];
    va_list args;
    int start = snprintf(line, sizeof line,
                         s->pool->n_slots > 1 ? "worker %zu: " : "worker: ", s->index + 1);
    va_start(args, fmt);
    int n = vsnprintf(line + start, sizeof line - (size_t)start, fmt, args);
    va_end(args);
    size_t all = (size_t)start + (n > 0 ? (size_t)n : 0);
    log_line(s, is_fault, (dgm_str){line, all < sizeof line ? all : sizeof line - 1});
}

void dgm_worker_log_text(struct worker_slot *s, bool is_fault, dgm_str text)
{
    for (size_t n_lines = 0; text.n && n_lines < DGM_MAX_STDERR_LINES; n_lines++) {
        const char *newline = memchr(text.p, '\n', text.n);
        size_t n = newline ? (size_t)(newline - text.p) : text.n;
        if (n)
            log_line(s, is_fault, (dgm_str){text.p, n < MAX_LINE ? n : MAX_LINE});
        n += newline != NULL;
        text = (dgm_str){text.p + n, text.n - n};
    }
}

static void tail_add(struct worker_slot *s, dgm_str line)
{
    char **at = &s->tail[s->n_tail++ % WORKER_TAIL_LINES];
    size_t n = line.n < DGM_MAX_WORKER_TAIL_LINE ? line.n : DGM_MAX_WORKER_TAIL_LINE;
    free(*at);
    *at = dgm_xmalloc(n + 1);
    memcpy(*at, line.p, n);
    (*at)[n] = '\0';
}

dgm_str dgm_worker_tail(struct worker_slot *s, dgm_arena *a)
{
    dgm_buf b;
    size_t first = s->n_tail > WORKER_TAIL_LINES ? s->n_tail - WORKER_TAIL_LINES : 0;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = first; i < s->n_tail; i++) {
        dgm_buf_add_str(&b, dgm_str_from(s->tail[i % WORKER_TAIL_LINES]));
        dgm_buf_add_char(&b, '\n');
    }
    dgm_str text = dgm_arena_dup(a, dgm_text_trim(dgm_buf_str(&b)));
    dgm_buf_done(&b);
    return text;
}

void dgm_worker_tail_clear(struct worker_slot *s)
{
    for (size_t i = 0; i < WORKER_TAIL_LINES; i++)
        free(dgm_take(s->tail[i]));
    s->n_tail = 0;
}

void dgm_worker_on_log_line(void *slot, dgm_str line, dgm_line_end end)
{
    struct worker_slot *s = slot;
    uint64_t now = uv_now(&s->home->uv);
    (void)end;
    tail_add(s, line);
    if (now - s->log_ms >= 1000) {
        if (s->n_dropped)
            dgm_worker_log(s, true,
                           "%zu lines of its output were not logged (limit worker_log_lines of %d "
                           "per second)",
                           s->n_dropped, DGM_MAX_WORKER_LOG_LINES);
        s->log_ms = now;
        s->n_logged = s->n_dropped = 0;
    }
    if (s->n_logged++ >= DGM_MAX_WORKER_LOG_LINES) {
        s->n_dropped++;
        return;
    }
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_program_tail none = {0};
    if (line.n)
        log_line(s, false,
                 dgm_program_clean_text(
                     a, &none, (dgm_str){line.p, line.n < MAX_LINE ? line.n : MAX_LINE}, true));
}
