/*
 * store/store_frame.c - records as the bytes of a log row.
 *
 *   row     version (1 byte)  checksum of what follows (8)  record ...
 *   record  length (4)  turn (4)  time (8)  kind (1)  state (1)  bytes
 *
 * Numbers are little-endian. A record's seq is the row's plus its place. Databases do not
 * notice a changed byte in a blob; the checksum does.
 */
#include "store/store_frame.h"

#define VERSION 1
#define ROW_HEAD 9
#define RECORD_HEAD 18

static void put_le(unsigned char *p, uint64_t v, int n)
{
    for (int i = 0; i < n; i++)
        p[i] = (unsigned char)(v >> 8 * i);
}

static uint64_t get_le(const unsigned char *p, int n)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

/* One multiplication per 8 bytes; not against malice, and the same on every machine. */
static uint64_t checksum(const unsigned char *p, size_t n)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ n;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word);
#endif
        h = (h ^ word) * 0xd6e8feb86659fd93u;
        h ^= h >> 32;
    }
    h = (h ^ get_le(p, (int)n)) * 0xd6e8feb86659fd93u;
    return h ^ h >> 29;
}

void dgm_frame_add(dgm_buf *row, const dgm_record *r)
{
    static const char row_head[ROW_HEAD] = {VERSION};
    unsigned char head[RECORD_HEAD];
    if (!row->n)
        dgm_buf_add(row, row_head, sizeof row_head);
    put_le(head, r->n, 4);
    put_le(head + 4, r->head.turn, 4);
    put_le(head + 8, (uint64_t)r->head.time, 8);
    head[16] = (unsigned char)r->head.kind;
    head[17] = (unsigned char)r->head.state;
    dgm_buf_add(row, head, sizeof head);
    dgm_buf_add(row, r->bytes, r->n);
}

void dgm_frame_end(dgm_buf *row)
{
    unsigned char *p = (unsigned char *)row->p;
    put_le(p + 1, checksum(p + ROW_HEAD, row->n - ROW_HEAD), 8);
}

bool dgm_frame_open(dgm_str row, uint64_t first_seq, dgm_frame *ret_frame)
{
    const unsigned char *p = (const unsigned char *)row.p;
    if (row.n < ROW_HEAD || p[0] != VERSION ||
        get_le(p + 1, 8) != checksum(p + ROW_HEAD, row.n - ROW_HEAD))
        return false;
    *ret_frame = (dgm_frame){.at = p + ROW_HEAD, .end = p + row.n, .head = {.seq = first_seq - 1}};
    return true;
}

bool dgm_frame_next(dgm_frame *f)
{
    size_t left = (size_t)(f->end - f->at);
    if (left < RECORD_HEAD || left - RECORD_HEAD < get_le(f->at, 4))
        return false;
    f->head.seq++;
    f->head.turn = (uint32_t)get_le(f->at + 4, 4);
    f->head.time = (int64_t)get_le(f->at + 8, 8);
    f->head.kind = (dgm_event_kind)f->at[16];
    f->head.state = (dgm_task_state)f->at[17];
    f->bytes = (dgm_str){(const char *)f->at + RECORD_HEAD, (size_t)get_le(f->at, 4)};
    f->at += RECORD_HEAD + f->bytes.n;
    return true;
}
