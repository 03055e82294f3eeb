/* model/text_pieces.c - see text_pieces.h. */
#include "model/text_pieces.h"
#include "base/arena.h"
#include "base/limits.h"

#include <stdlib.h>

void dgm_text_pieces_init(dgm_text_pieces *p)
{
    *p = (dgm_text_pieces){.current = SIZE_MAX};
    dgm_buf_init(&p->held_id, SIZE_MAX); /* each within the limit of a record */
    dgm_buf_init(&p->held, SIZE_MAX);
}

void dgm_text_pieces_done(dgm_text_pieces *p)
{
    for (size_t i = 0; i < p->n_open; i++)
        dgm_buf_done(&p->open[i].id);
    free(p->open);
    dgm_buf_done(&p->held_id);
    dgm_buf_done(&p->held);
    dgm_text_pieces_init(p);
}

/* ---- open texts ------------------------------------------------------------------------------------------ */

static size_t text_pieces_find_open(const dgm_text_pieces *p, dgm_str id)
{
    if (!id.n)
        return SIZE_MAX;
    if (p->current < p->n_open && dgm_str_eq(dgm_buf_str(&p->open[p->current].id), id))
        return p->current;
    for (size_t i = 0; i < p->n_open; i++) {
        if (dgm_str_eq(dgm_buf_str(&p->open[i].id), id))
            return i;
    }
    return SIZE_MAX;
}

static void remove_open(dgm_text_pieces *p, size_t at)
{
    dgm_buf_done(&p->open[at].id);
    memmove(p->open + at, p->open + at + 1, (p->n_open - at - 1) * sizeof *p->open);
    p->n_open--;
    p->current = p->n_open ? p->n_open - 1 : SIZE_MAX;
}

static void close_text(dgm_text_pieces *p, dgm_text_sink sink, size_t at)
{
    sink.close(sink.arg, p->open[at].text);
    remove_open(p, at);
}

static size_t open_text(dgm_text_pieces *p, dgm_text_sink sink, dgm_str id)
{
    if (p->n_open == DGM_MAX_OPEN_TEXTS)
        close_text(p, sink, 0);
    if (p->n_open == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 4;
        p->open = dgm_xrealloc(p->open, p->cap * sizeof *p->open);
    }
    struct dgm_open_text *t = &p->open[p->n_open];
    *t = (struct dgm_open_text){.text = sink.open(sink.arg, id)};
    dgm_buf_init(&t->id, SIZE_MAX);
    dgm_buf_add_str(&t->id, id);
    return p->current = p->n_open++;
}

static void text_pieces_add_piece(dgm_text_pieces *p, dgm_text_sink sink, size_t at, dgm_str piece)
{
    p->current = at;
    p->open[at].pieces++;
    sink.add(sink.arg, p->open[at].text, piece);
}

/* ---- the chunk that is held back --------------------------------------------------------------------------- */

static void hold_back(dgm_text_pieces *p, dgm_str id, dgm_str piece)
{
    p->has_held = true;
    dgm_buf_clear(&p->held_id);
    dgm_buf_add_str(&p->held_id, id);
    dgm_buf_clear(&p->held);
    dgm_buf_add_str(&p->held, piece);
}

/* It is more of the text before it. */
static void join_held(dgm_text_pieces *p, dgm_text_sink sink)
{
    p->has_held = false;
    p->ids_differ = true;
    text_pieces_add_piece(p, sink, p->current, dgm_buf_str(&p->held));
}

/* It begins a text of its own. */
static void part_held(dgm_text_pieces *p, dgm_text_sink sink)
{
    p->has_held = false;
    p->ids_repeat = true;
    text_pieces_add_piece(p, sink, open_text(p, sink, dgm_buf_str(&p->held_id)),
                          dgm_buf_str(&p->held));
}

void dgm_text_pieces_flush(dgm_text_pieces *p, dgm_text_sink sink)
{
    if (!p->has_held)
        return;
    bool differ = p->ids_differ;
    join_held(p, sink);
    p->ids_differ = differ; /* nothing has shown it */
}

/* ---- chunks ------------------------------------------------------------------------------------------------ */

void dgm_text_pieces_chunk(dgm_text_pieces *p, dgm_text_sink sink, dgm_str id, dgm_str piece)
{
    size_t at = text_pieces_find_open(p, id);
    if (p->has_held) {
        bool repeats = at != SIZE_MAX || (id.n && dgm_str_eq(id, dgm_buf_str(&p->held_id)));
        if (repeats)
            part_held(p, sink);
        else
            join_held(p, sink);
        at = text_pieces_find_open(p, id);
    }
    if (!p->n_open) {
        at = open_text(p, sink, id);
    } else if (at != SIZE_MAX) {
        p->ids_repeat = true;
    } else if (id.n && p->ids_repeat) {
        at = open_text(p, sink, id);
    } else if (id.n && !p->ids_differ && p->open[p->current].id.n) {
        hold_back(p, id, piece);
        return;
    } else {
        at = p->current;
    }
    text_pieces_add_piece(p, sink, at, piece);
}

/* ---- Ends -------------------------------------------------------------------------------------------------- */

/* The length of what the open texts have, if `whole` begins with all of it, in order; else SIZE_MAX. */
static size_t covered(const dgm_text_pieces *p, dgm_text_sink sink, dgm_str whole)
{
    size_t at = 0;
    for (size_t i = 0; i < p->n_open; i++) {
        size_t n = sink.begins(sink.arg, p->open[i].text, (dgm_str){whole.p + at, whole.n - at});
        if (n == SIZE_MAX)
            return SIZE_MAX;
        at += n;
    }
    return at;
}

static void settle_held(dgm_text_pieces *p, dgm_text_sink sink, dgm_str id, dgm_str whole)
{
    size_t at = text_pieces_find_open(p, id);
    if (dgm_str_eq(id, dgm_buf_str(&p->held_id))) {
        part_held(p, sink);
        return;
    }
    size_t n = at == p->current ? sink.begins(sink.arg, p->open[at].text, whole) : SIZE_MAX;
    bool of_both =
        n != SIZE_MAX && dgm_str_starts((dgm_str){whole.p + n, whole.n - n}, dgm_buf_str(&p->held));
    if (at != SIZE_MAX && !of_both)
        part_held(p, sink);
    else
        join_held(p, sink);
}

void dgm_text_pieces_end(dgm_text_pieces *p, dgm_text_sink sink, dgm_str id, dgm_str whole)
{
    if (p->has_held)
        settle_held(p, sink, id, whole);
    size_t at = text_pieces_find_open(p, id), end;
    bool unnamed = p->n_open == 1 && (!id.n || !p->open[0].id.n);
    if (at == SIZE_MAX && (unnamed || (p->n_open && !whole.n)))
        at = p->current; /* without text it only says that something ends */
    if (at == SIZE_MAX && p->n_open == 1 && covered(p, sink, whole) != SIZE_MAX)
        at = 0;
    if (at != SIZE_MAX) {
        if (whole.n)
            sink.replace(sink.arg, p->open[at].text, whole);
        close_text(p, sink, at);
    } else if (p->n_open && (end = covered(p, sink, whole)) != SIZE_MAX) {
        text_pieces_add_piece(p, sink, p->n_open - 1, (dgm_str){whole.p + end, whole.n - end});
        while (p->n_open)
            close_text(p, sink, p->n_open - 1);
    } else if (whole.n) {
        sink.add_whole(sink.arg, id, whole);
    }
}

void dgm_text_pieces_close(dgm_text_pieces *p, dgm_text_sink sink)
{
    dgm_text_pieces_flush(p, sink);
    while (p->n_open)
        close_text(p, sink, p->n_open - 1);
}

/* ---- cumulative pieces ------------------------------------------------------------------------------------- */

dgm_text_step dgm_text_next_step(dgm_text_mode *mode, size_t before, bool extends)
{
    switch (*mode) {
    case DGM_TEXT_FIRST: *mode = DGM_TEXT_SECOND; break;
    case DGM_TEXT_SECOND:
        *mode = extends && before ? DGM_TEXT_GUESSED : DGM_TEXT_DELTAS;
        return *mode == DGM_TEXT_GUESSED ? DGM_STEP_ADD_REST : DGM_STEP_ADD;
    case DGM_TEXT_GUESSED:
        *mode = extends ? DGM_TEXT_CUMULATIVE : DGM_TEXT_DELTAS;
        return extends ? DGM_STEP_ADD_REST : DGM_STEP_TAKE_BACK;
    case DGM_TEXT_DELTAS: break;
    case DGM_TEXT_CUMULATIVE: return DGM_STEP_REPLACE;
    }
    return DGM_STEP_ADD;
}
