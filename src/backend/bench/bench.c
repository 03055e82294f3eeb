/*
 * backend/bench/bench.c - an agent that costs nothing, to measure everything else.
 *
 *   echo ...            one Message with the same text
 *   chunks N ...        submitted, working, N artifact-updates of one short text part, completed
 *   chunks N yield ...  the same with a turn of the event loop between chunks
 *   hold S ...          submitted, working, then silence for S seconds, completed
 *
 * The chunks count: "1 ", "2 ", ... so that a reader can detect a missing one.
 */
#include "backend/backend_int.h"
#include "base/limits.h"

#include <stdlib.h>

static const char card[] =
    "{\"name\":\"Bench\",\"description\":\"Answers as fast as it can, for "
    "measurements.\",\"skills\":["
    "{\"id\":\"bench\",\"name\":\"Bench\",\"description\":\"echo TEXT: a Message with the same "
    "text. "
    "chunks N: a task that streams N chunks. chunks N yield: one per turn of the event loop. hold "
    "S: a task that is silent for S seconds.\",\"tags\":[\"benchmark\"],\"examples\":[\"echo "
    "hi\",\"chunks 100\",\"hold 10\"]}]}";

#define MAX_CHUNKS 1000000 /* 6.9 MB of text: its final text is one record */
#define MAX_HOLD_S 86400
#define FULL_MS 1 /* how soon we look again whether the log has room */

struct bench {
    dgm_run *run;
    dgm_timer timer;
    dgm_loop_stop stop;
    uv_idle_t *idle; /* yield: runs once per turn; NULL: does not */
    uint32_t n, sent;
    bool
        waits; /* has its timer, and ends when the server stops; else it ends within bench_start() */
    int closing;
};

static size_t put_number(char *to, uint32_t n) /* and a space */
{
    size_t len = 1;
    for (uint32_t rest = n; rest >= 10; rest /= 10)
        len++;
    for (size_t i = len; i-- > 0; n /= 10)
        to[i] = (char)('0' + n % 10);
    to[len] = ' ';
    return len + 1;
}

/* ---- the end --------------------------------------------------------------------------------------------- */

static void on_closed(void *arg)
{
    struct bench *b = arg;
    if (--b->closing == 0)
        free(b);
}

static void on_idle_closed(uv_handle_t *h)
{
    struct bench *b = h->data;
    free(h);
    on_closed(b);
}

static void bench_finish(struct bench *b, const char *error)
{
    dgm_run *run = b->run;
    if (b->waits) {
        b->closing = b->idle ? 2 : 1;
        dgm_loop_off_stop(run->loop, &b->stop);
        dgm_timer_close(&b->timer, on_closed, b);
        if (b->idle)
            uv_close((uv_handle_t *)b->idle, on_idle_closed);
    } else {
        free(b);
    }
    run->ops->end(run, error);
}

/* Readers of the text get its last chunk. */
static dgm_code close_text(struct bench *b, dgm_err *err)
{
    if (b->sent == 0 || b->sent == b->n)
        return DGM_OK;
    return dgm_run_chunk(b->run, DGM_STR(DGM_ANSWER_ID), (dgm_str){0}, DGM_STR(""), true, true,
                         err);
}

static void on_stop(void *arg)
{
    dgm_err err = {0};
    close_text(arg, &err);
    bench_finish(arg, DGM_SHUTTING_DOWN);
}

static void bench_cancel(void *agent, dgm_run *run)
{
    struct bench *b = run->agent_data;
    dgm_err err = {0};
    dgm_code rc = close_text(b, &err);
    (void)agent;
    if (!rc)
        rc = dgm_run_status(run, DGM_STATE_CANCELED, (dgm_str){0}, &err);
    bench_finish(b, rc ? err.msg : NULL);
}

/* Once, before it waits for anything. */
static void bench_add_timer(struct bench *b, dgm_loop_fn on_timer)
{
    b->waits = true;
    dgm_timer_init(b->run->loop, &b->timer, on_timer, b);
    b->stop = (dgm_loop_stop){.fn = on_stop, .arg = b};
    dgm_loop_on_stop(b->run->loop, &b->stop);
}

/* ---- chunks ---------------------------------------------------------------------------------------------- */

/* Up to `most` chunks, while there is room; after the last one the end. False: it is over, and b is freed. */
static bool send_chunks(struct bench *b, uint32_t most)
{
    dgm_err err = {0};
    dgm_code rc = DGM_OK;
    char number[12];
    dgm_buf text;
    for (; !rc && most > 0 && b->sent < b->n && !b->run->ops->is_full(b->run); most--) {
        size_t n = put_number(number, ++b->sent);
        rc = dgm_run_chunk(b->run, DGM_STR(DGM_ANSWER_ID), (dgm_str){0}, (dgm_str){number, n},
                           b->sent > 1, b->sent == b->n, &err);
    }
    if (!rc && b->sent < b->n)
        return true;
    if (!rc) { /* the final text has all of them */
        dgm_buf_init(&text, DGM_MAX_RECORD_BYTES);
        for (uint32_t i = 1; i <= b->n && dgm_buf_room(&text, 11); i++)
            text.n += put_number(text.p + text.n, i);
        rc = dgm_run_status(b->run, DGM_STATE_COMPLETED, dgm_buf_str(&text), &err);
        dgm_buf_done(&text);
    }
    bench_finish(b, rc ? err.msg : NULL);
    return false;
}

static void on_room(void *arg)
{
    struct bench *b = arg;
    if (!send_chunks(b, UINT32_MAX))
        return;
    if (!b->waits)
        bench_add_timer(b, on_room);
    dgm_timer_start(&b->timer, FULL_MS);
}

static void bench_on_turn(uv_idle_t *h)
{
    send_chunks(h->data, 1);
}

/* ---- hold ------------------------------------------------------------------------------------------------ */

static void on_held(void *arg)
{
    struct bench *b = arg;
    dgm_err err = {0};
    dgm_code rc = dgm_run_status(b->run, DGM_STATE_COMPLETED, DGM_STR("held"), &err);
    bench_finish(b, rc ? err.msg : NULL);
}

/* ---- what is asked for ----------------------------------------------------------------------------------- */

static bool read_number(dgm_str *text, double max, double *ret)
{
    double number = 0, unit = 1;
    size_t n = 0, points = 0;
    for (; n < text->n && n < 23; n++) {
        char c = text->p[n];
        if (c == '.')
            points++;
        else if (c >= '0' && c <= '9')
            number += points ? (c - '0') * (unit /= 10) : 9 * number + (c - '0');
        else
            break;
    }
    if (n == points || points > 1 || (n < text->n && text->p[n] != ' ' && text->p[n] != '\n'))
        return false;
    *text = dgm_text_trim((dgm_str){text->p + n, text->n - n});
    *ret = number;
    return number <= max;
}

static void bench_start(void *agent, dgm_run *run)
{
    dgm_err err = {0};
    dgm_str text = dgm_run_text(run, run->arena), rest;
    double number;
    dgm_code rc;
    (void)agent;
    bool echo = dgm_text_command(text, "echo", NULL);
    bool chunks =
        !echo && dgm_text_command(text, "chunks", &rest) && read_number(&rest, MAX_CHUNKS, &number);
    bool hold = !echo && !chunks && dgm_text_command(text, "hold", &rest) &&
                read_number(&rest, MAX_HOLD_S, &number);
    if (!chunks && !hold)
        rc = dgm_run_reply(
            run, echo ? text : DGM_STR("echo TEXT | chunks N [yield] | hold SECONDS"), &err);
    else
        rc = dgm_run_status(run, DGM_STATE_WORKING, (dgm_str){0}, &err);
    if (rc || (!chunks && !hold)) {
        run->ops->end(run, rc ? err.msg : NULL);
        return;
    }
    bool yield = chunks && dgm_text_command(rest, "yield", NULL);
    struct bench *b = run->agent_data = dgm_xcalloc(1, sizeof *b);
    b->run = run;
    dgm_run_has_read(run); /* from here on the text of the request is gone */
    if (hold) {
        bench_add_timer(b, on_held);
        dgm_timer_start(&b->timer, (uint64_t)(number * 1000));
        return;
    }
    b->n = (uint32_t)number;
    if (b->n > 0 && yield) {
        bench_add_timer(b, on_room);
        b->idle = dgm_xmalloc(sizeof *b->idle);
        uv_idle_init(&run->loop->uv, b->idle);
        b->idle->data = b;
        uv_idle_start(b->idle, bench_on_turn);
    } else {
        on_room(b);
    }
}

static const dgm_inner inner = {.start = bench_start, .cancel = bench_cancel};
DGM_SHAPED_OPEN(open_shaped, inner)

const dgm_backend dgm_backend_bench = {
    .type = "bench",
    .about = "answers as fast as it can: echo, chunks N, hold S",
    .card = card,
    DGM_SHAPED(open_shaped),
};
