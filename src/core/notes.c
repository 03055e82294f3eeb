/*
 * core/notes.c - notes: texts that frontends store without a task, and Message answers that are stored as turns
 * (dgm_send.keep_turn).
 *
 * A stored Message answer is found by protocol and caller_id, in no list of tasks and in no context's history. A note
 * has a size limit, so the text is cut into pieces: the name of the first is the caller_id, the others have that and a
 * number.
 *
 *   text: "1 N1 N2 N3 N4 N5 TIME\n", then agent, context, previous, request, record, of N1 to N5 bytes
 */
#include "core/core_int.h"

#include <stdio.h>
#include <stdlib.h>

/* The answer to one that came too late; never from inside the call. */
struct late {
    dgm_store_done done;
    dgm_on_note_found found;
    void *arg;
};

static void note_refuse(void *arg)
{
    struct late *l = arg;
    dgm_err err = {0};
    dgm_fail(&err, DGM_UNAVAILABLE, NULL, "the server is shutting down");
    if (l->found)
        l->found(err.code, (dgm_str){0}, &err, l->arg);
    else
        l->done(err.code, &err, l->arg);
    free(l);
}

static void refuse_soon(struct late late)
{
    struct late *l = dgm_xmalloc(sizeof *l);
    *l = late;
    dgm_loop_post(dgm_loop_current(), note_refuse, l);
}

void dgm_core_put_note(dgm_core *core, const dgm_note *note, dgm_store_done done, void *arg)
{
    if (core->stopping)
        refuse_soon((struct late){.done = done, .arg = arg});
    else
        dgm_store_put_note(core->o.store, note, done, arg);
}

void dgm_core_get_note(dgm_core *core, dgm_owner owner, dgm_str kind, dgm_str name,
                       dgm_on_note_found found, void *arg)
{
    if (core->stopping)
        refuse_soon((struct late){.found = found, .arg = arg});
    else
        dgm_store_get_note(core->o.store, owner, kind, name, found, arg);
}

/* ---- Message answers --------------------------------------------------------------------------------------------- */

#define PIECE_BYTES (DGM_MAX_NOTE_BYTES / 2)
#define MAX_PIECES 64 /* 32 MiB: a request and a record have 8 MiB each at most */

static dgm_str message_turn_kind(const struct call *c)
{
    return dgm_arena_printf(c->arena, "message-turn/%.*s", DGM_P(c->turn.protocol));
}

static dgm_str name_of_piece(const struct call *c, size_t i)
{
    return i ? dgm_arena_printf(c->arena, "%.*s/%zu", DGM_P(c->turn.caller_id), i)
             : c->turn.caller_id;
}

/* ---- storing ----------------------------------------------------------------------------------------------------- */

struct putting {
    struct call *call;
    size_t open; /* pieces that are not stored yet */
    dgm_code code;
    dgm_err err;
};

static void on_put(dgm_code code, const dgm_err *err, void *arg)
{
    struct putting *p = arg;
    if (code && !p->code) {
        p->code = code;
        p->err = *err;
    }
    if (--p->open)
        return;
    if (p->code)
        dgm_call_refuse(p->call, &p->err);
    else
        dgm_call_answer(p->call);
    free(p);
}

/* Where the next piece ends: between two characters. */
static size_t end_of_piece(dgm_str text, size_t at)
{
    size_t end = at + PIECE_BYTES;
    if (end >= text.n)
        return text.n;
    while (((unsigned char)text.p[end] & 0xC0) == 0x80)
        end--;
    return end;
}

static void put_pieces(struct shard *s, struct call *c, dgm_str text)
{
    int64_t keep_ms = atomic_load(&s->core->retention_ms);
    dgm_note note = {.owner = c->owner,
                     .kind = message_turn_kind(c),
                     .expires_ms = keep_ms ? dgm_loop_unix_ms() + keep_ms : 0};
    struct putting *p = dgm_xcalloc(1, sizeof *p);
    p->call = c;
    for (size_t at = 0; at < text.n; at = end_of_piece(text, at))
        p->open++;
    for (size_t at = 0, i = 0; at < text.n; i++) {
        size_t end = end_of_piece(text, at);
        note.name = name_of_piece(c, i);
        note.text = (dgm_str){text.p + at, end - at};
        dgm_store_put_note(s->core->o.store, &note, on_put, p);
        at = end;
    }
}

void dgm_message_turn_store(struct shard *s, struct call *c, const dgm_record *message)
{
    dgm_str record = dgm_record_bytes(message);
    dgm_str texts[] = {c->agent->id, c->turn.context_id, c->turn.previous, c->turn.request, record};
    dgm_buf b;
    if (s->core->stopping) {
        dgm_call_refuse_with(c, DGM_UNAVAILABLE, "the server is shutting down");
        return;
    }
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_printf(&b, "1 %zu %zu %zu %zu %zu %lld\n", texts[0].n, texts[1].n, texts[2].n,
                   texts[3].n, texts[4].n, (long long)message->head.time);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        dgm_buf_add_str(&b, texts[i]);
    put_pieces(s, c, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

/* ---- finding ------------------------------------------------------------------------------------------------------- */

struct finding {
    struct call *call;
    dgm_buf text;
    size_t n_pieces;
};

static void end_finding(struct finding *f)
{
    dgm_buf_done(&f->text);
    free(f);
}

static void fail_finding(struct finding *f)
{
    dgm_call_refuse_with(f->call, DGM_TASK_NOT_FOUND, "Task not found");
    end_finding(f);
}

/* The numbers of the first line; false: it has another form. */
static bool read_lengths(dgm_str text, size_t n[5], long long *ret_time, size_t *ret_head)
{
    int head = 0;
    const char *line = text.n ? memchr(text.p, '\n', text.n) : NULL;
    char first[200];
    if (!line || (size_t)(line - text.p) >= sizeof first)
        return false;
    memcpy(first, text.p, (size_t)(line - text.p));
    first[line - text.p] = 0;
    *ret_head = (size_t)(line - text.p) + 1;
    return sscanf(first, "1 %zu %zu %zu %zu %zu %lld%n", &n[0], &n[1], &n[2], &n[3], &n[4],
                  ret_time, &head) == 6 &&
           !first[head];
}

/* True: all of it is there. */
static bool read_turn(struct call *c, dgm_str text, dgm_code *ret_code)
{
    size_t n[5], at, all;
    long long time;
    dgm_str texts[5];
    dgm_record *record;
    *ret_code = DGM_TASK_NOT_FOUND;
    if (!read_lengths(text, n, &time, &at))
        return true;
    all = at;
    for (size_t i = 0; i < 5; i++) {
        if (n[i] > MAX_PIECES * PIECE_BYTES)
            return true;
        all += n[i];
    }
    if (text.n < all)
        return false;
    for (size_t i = 0; i < 5; at += n[i++])
        texts[i] = dgm_arena_dup(c->arena, (dgm_str){text.p + at, n[i]});
    const dgm_core_agent *agent = dgm_core_find_agent(c->core, texts[0]);
    dgm_record_head head = {.seq = 1, .time = time, .turn = 1, .kind = DGM_EVENT_MESSAGE};
    if (!agent || (c->agent && c->agent != agent) ||
        dgm_record_from_bytes(head, texts[4], &record, NULL))
        return true;
    c->agent = agent;
    c->turn.context_id = texts[1];
    c->turn.previous = texts[2];
    c->turn.request = texts[3];
    c->turn.number = 1;
    c->turn.first_seq = c->turn.last_seq = 1;
    c->log = dgm_log_new(c->core->o.loops, 1);
    dgm_log_append(c->log, record);
    dgm_log_close(c->log, c->log->last);
    *ret_code = DGM_OK;
    return true;
}

static void get_piece(struct finding *f);

static void on_piece(dgm_code code, dgm_str text, const dgm_err *err, void *arg)
{
    struct finding *f = arg;
    if (code) {
        dgm_call_refuse(f->call, err);
        end_finding(f);
        return;
    }
    if (!text.n) { /* unknown, or expired */
        fail_finding(f);
        return;
    }
    dgm_buf_add_str(&f->text, text);
    f->n_pieces++;
    if (!read_turn(f->call, dgm_buf_str(&f->text), &code)) {
        get_piece(f);
    } else if (code) {
        fail_finding(f);
    } else {
        dgm_call_answer(f->call);
        end_finding(f);
    }
}

static void get_piece(struct finding *f)
{
    struct call *c = f->call;
    if (f->n_pieces == MAX_PIECES || c->core->stopping)
        fail_finding(f);
    else
        dgm_store_get_note(c->core->o.store, c->owner, message_turn_kind(c),
                           name_of_piece(c, f->n_pieces), on_piece, f);
}

void dgm_message_turn_find(struct call *c)
{
    struct finding *f = dgm_xcalloc(1, sizeof *f);
    f->call = c;
    dgm_buf_init(&f->text, SIZE_MAX);
    get_piece(f);
}
