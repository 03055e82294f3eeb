#include "net/out.h"

#include "base/spare.h"

#include <assert.h>
#include <stdlib.h>

/* Most answers fit into one piece. */
#define PIECE_BYTES 1024
/* 8 digits of size, CR, LF; what is not needed goes when the chunk is closed */
#define SIZE_ROOM 10

struct dgm_out_piece {
    dgm_out_piece *next;
    const char *p; /* within data, or borrowed */
    size_t n, cap; /* cap 0: borrowed */
    dgm_loop_fn release, on_dropped;
    void *arg, *owner;
    char data[];
};
#define PIECE_CAP (PIECE_BYTES - sizeof(dgm_out_piece))

/* Adds a piece with room for so many bytes; for 0 one that borrows its bytes. */
static dgm_out_piece *out_add_piece(dgm_out *o, size_t room)
{
    size_t cap = room && room <= PIECE_CAP ? PIECE_CAP : room;
    dgm_out_piece *piece = dgm_spare_alloc(sizeof *piece + cap);
    piece->cap = cap;
    piece->next = NULL;
    piece->p = piece->data;
    piece->n = 0;
    piece->release = piece->on_dropped = NULL;
    *(o->last ? &o->last->next : &o->first) = piece;
    o->last = piece;
    return piece;
}

static void free_piece(dgm_out_piece *piece)
{
    if (piece->release)
        piece->release(piece->arg);
    if (piece->on_dropped)
        piece->on_dropped(piece->owner);
    dgm_spare_free(piece, sizeof *piece + piece->cap);
}

void dgm_out_clear(dgm_out *o)
{
    while (o->first) {
        dgm_out_piece *piece = o->first;
        o->first = piece->next;
        free_piece(piece);
    }
    *o = (dgm_out){0};
}

char *dgm_out_room(dgm_out *o, size_t n)
{
    const dgm_out_piece *last = o->last;
    if (!last || !last->cap || (size_t)(last->data + last->cap - (last->p + last->n)) < n)
        out_add_piece(o, n);
    return (char *)o->last->p + o->last->n;
}

void dgm_out_wrote(dgm_out *o, size_t n)
{
    o->last->n += n;
    o->n += n;
    if (o->chunk)
        o->chunk_n += (uint32_t)n;
}

void dgm_out_add(dgm_out *o, dgm_str bytes)
{
    const dgm_out_piece *last = o->last;
    size_t k = last && last->cap ? (size_t)(last->data + last->cap - (last->p + last->n)) : 0;
    k = k < bytes.n ? k : bytes.n;
    if (k) {
        memcpy((char *)o->last->p + o->last->n, bytes.p, k);
        dgm_out_wrote(o, k);
    }
    if (k < bytes.n) {
        memcpy(dgm_out_room(o, bytes.n - k), bytes.p + k, bytes.n - k);
        dgm_out_wrote(o, bytes.n - k);
    }
}

void dgm_out_share(dgm_out *o, dgm_str bytes, dgm_loop_fn release, void *arg,
                   dgm_loop_fn on_dropped, void *owner)
{
    dgm_out_piece *piece = out_add_piece(o, 0);
    piece->p = bytes.p;
    piece->release = release;
    piece->arg = arg;
    piece->on_dropped = on_dropped;
    piece->owner = owner;
    dgm_out_wrote(o, bytes.n);
}

void dgm_out_open_chunk(dgm_out *o)
{
    if (o->chunk)
        return;
    dgm_out_room(o, SIZE_ROOM);
    o->chunk_at = (uint32_t)o->last->n;
    dgm_out_wrote(o, SIZE_ROOM);
    o->chunk = o->last;
    o->chunk_n = 0;
}

/* The bytes before the size in its piece (the head of the response) move up to it. */
void dgm_out_close_chunk(dgm_out *o)
{
    dgm_out_piece *piece = o->chunk;
    if (!piece)
        return;
    char *front = (char *)piece->p, *end = front + o->chunk_at + SIZE_ROOM, *p = end;
    size_t left = o->chunk_n, spare;
    assert(left > 0 && left <= UINT32_MAX);
    *--p = '\n';
    *--p = '\r';
    for (; left; left >>= 4)
        *--p = "0123456789abcdef"[left & 15];
    spare = (size_t)(p - (front + o->chunk_at));
    memmove(front + spare, front, o->chunk_at);
    piece->p += spare;
    piece->n -= spare;
    o->n -= spare;
    o->chunk = NULL;
    dgm_out_add(o, DGM_STR("\r\n"));
}

size_t dgm_out_front(const dgm_out *o, struct iovec *iov, size_t n)
{
    size_t i = 0;
    assert(!o->chunk);
    for (const dgm_out_piece *piece = o->first; piece && i < n; piece = piece->next)
        if (piece->n)
            iov[i++] = (struct iovec){(void *)piece->p, piece->n};
    return i;
}

void dgm_out_drop(dgm_out *o, size_t n)
{
    assert(n <= o->n);
    o->n -= n;
    while (o->first && n >= o->first->n) {
        dgm_out_piece *piece = o->first;
        n -= piece->n;
        o->first = piece->next;
        if (!o->first)
            o->last = NULL;
        free_piece(piece);
    }
    if (n) {
        o->first->p += n;
        o->first->n -= n;
    }
}
