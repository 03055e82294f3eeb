/*
 * wire/frames/frames_scan.c - where does a value that began with a bracket end?
 *
 * 64 bytes at a time become bit masks, one bit per byte: quotes, backslashes, brackets, line ends.
 * The quotes show which bytes are inside strings, without a branch; only the brackets outside strings
 * are walked, about a dozen in an event of 300 bytes.
 */
#include "frames_int.h"

struct masks {
    uint64_t quotes, backslashes, opens, closes, line_ends;
};

#define BLOCK 64
/* '{' and '[', '}' and ']' differ in this bit only, and no other byte becomes one of them by it */
#define BRACKET_BIT 0x20

/* The bytes that backslashes escape. A block has only a few backslashes, so one by one. */
static inline uint64_t find_escaped(uint64_t backslashes, bool *carry)
{
    uint64_t escaped = *carry;
    *carry = false;
    backslashes &= ~escaped;
    while (backslashes) {
        unsigned i = (unsigned)__builtin_ctzll(backslashes);
        if (i == BLOCK - 1) {
            *carry = true;
            break;
        }
        escaped |= (uint64_t)2 << i;
        backslashes &= ~((uint64_t)3 << i);
    }
    return escaped;
}

static inline void count_lines(dgm_frames_scan *s, uint64_t line_ends, size_t at)
{
    if (line_ends) {
        s->lines += (size_t)__builtin_popcountll(line_ends);
        s->line_at = at + BLOCK - (size_t)__builtin_clzll(line_ends);
    }
}

typedef void (*get_masks)(const char *p, struct masks *m);

static inline __attribute__((always_inline)) size_t
scan_blocks(dgm_frames_scan *s, const char *p, size_t n, bool *ret_ended, get_masks get)
{
    size_t at = 0, depth = s->depth;
    s->lines = 0;
    for (; n - at >= BLOCK; at += BLOCK) {
        struct masks m;
        get(p + at, &m);
        if (m.backslashes || s->escaped)
            m.quotes &= ~find_escaped(m.backslashes, &s->escaped);
        /* Each bit becomes the parity of all up to and including it: set from an opening quote up to, but not
         * including, the closing one. */
        uint64_t strings = m.quotes;
        for (unsigned shift = 1; shift < BLOCK; shift *= 2)
            strings ^= strings << shift;
        strings ^= s->in_string ? ~(uint64_t)0 : 0;
        s->in_string = strings >> (BLOCK - 1);
        uint64_t brackets = (m.opens | m.closes) & ~strings;
        uint64_t broken = m.line_ends & strings;
        broken &= -broken; /* the first; less 1: all before it */
        if (broken)
            brackets &= broken - 1;
        for (; brackets; brackets &= brackets - 1) {
            uint64_t bit = brackets & -brackets;
            depth += m.closes & bit ? (size_t)-1 : 1;
            if (depth == 0) {
                count_lines(s, m.line_ends & (bit - 1), at);
                *ret_ended = true;
                return at + (unsigned)__builtin_ctzll(bit) + 1;
            }
        }
        if (broken) {
            count_lines(s, m.line_ends & (broken - 1), at);
            *ret_ended = true;
            return at + (unsigned)__builtin_ctzll(broken);
        }
        count_lines(s, m.line_ends, at);
    }
    s->depth = depth;
    size_t lines = s->lines, line_at = s->line_at;
    size_t rest = dgm_frames_scan_plain(s, p + at, n - at, ret_ended);
    s->line_at = s->lines ? s->line_at + at : line_at;
    s->lines += lines;
    return at + rest;
}

/* ---- any machine: 8 bytes in a word ------------------------------------------------------------ */

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

static inline uint64_t load_word(const char *p) /* first byte lowest */
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    return w;
}

/* One bit per byte of w that equals c. The sum has bit 7 set in bytes that are not 0; it cannot
 * carry into the next byte. The product gathers bit 0 of each byte in the highest one. */
static inline uint64_t equal_bits(uint64_t w, unsigned char c)
{
    uint64_t x = w ^ EACH(c), low = x & EACH(0x7f);
    uint64_t zero = ~((low + EACH(0x7f)) | x) & EACH(0x80);
    return ((zero >> 7) * UINT64_C(0x0102040810204080)) >> 56;
}

static inline void masks_portable(const char *p, struct masks *m)
{
    *m = (struct masks){0};
    for (unsigned i = 0; i < BLOCK; i += 8) {
        uint64_t w = load_word(p + i), lower = w | EACH(BRACKET_BIT);
        m->quotes |= equal_bits(w, '"') << i;
        m->backslashes |= equal_bits(w, '\\') << i;
        m->opens |= equal_bits(lower, '{') << i;
        m->closes |= equal_bits(lower, '}') << i;
        m->line_ends |= equal_bits(w, '\n') << i;
    }
}

size_t dgm_frames_scan_portable(dgm_frames_scan *s, const char *p, size_t n, bool *ret_ended)
{
    return scan_blocks(s, p, n, ret_ended, masks_portable);
}

/* ---- x86-64: SSE2 is part of it ------------------------------------------------------------------ */

#ifdef __SSE2__
typedef char vec __attribute__((vector_size(16)));

/* One bit per byte of the four vectors that equals ch; pmovmskb gathers the highest bit of each byte. */
static inline uint64_t equal_vecs(vec a, vec b, vec c, vec d, char ch)
{
    vec want = {ch, ch, ch, ch, ch, ch, ch, ch, ch, ch, ch, ch, ch, ch, ch, ch};
    vec equal[4] = {(vec)(a == want), (vec)(b == want), (vec)(c == want), (vec)(d == want)};
    uint64_t bits = 0;
    for (unsigned i = 0; i < 4; i++)
        bits |= (uint64_t)(uint32_t)__builtin_ia32_pmovmskb128(equal[i]) << 16 * i;
    return bits;
}

static inline void masks_sse2(const char *p, struct masks *m)
{
    vec a, b, c, d, bit = {0};
    bit = bit + BRACKET_BIT;
    memcpy(&a, p, sizeof a);
    memcpy(&b, p + 16, sizeof b);
    memcpy(&c, p + 32, sizeof c);
    memcpy(&d, p + 48, sizeof d);
    m->quotes = equal_vecs(a, b, c, d, '"');
    m->backslashes = equal_vecs(a, b, c, d, '\\');
    m->line_ends = equal_vecs(a, b, c, d, '\n');
    m->opens = equal_vecs(a | bit, b | bit, c | bit, d | bit, '{');
    m->closes = equal_vecs(a | bit, b | bit, c | bit, d | bit, '}');
}

size_t dgm_frames_scan_fast(dgm_frames_scan *s, const char *p, size_t n, bool *ret_ended)
{
    return scan_blocks(s, p, n, ret_ended, masks_sse2);
}
#else
size_t dgm_frames_scan_fast(dgm_frames_scan *s, const char *p, size_t n, bool *ret_ended)
{
    return scan_blocks(s, p, n, ret_ended, masks_portable);
}
#endif

/* ---- byte by byte: short pieces, and what the others are held against ---------------------------- */

size_t dgm_frames_scan_plain(dgm_frames_scan *s, const char *p, size_t n, bool *ret_ended)
{
    s->lines = 0;
    *ret_ended = false;
    for (size_t i = 0; i < n; i++) {
        bool escaped = s->escaped;
        s->escaped = false;
        switch (p[i]) {
        case '\n':
            if (s->in_string) {
                *ret_ended = true;
                return i;
            }
            s->lines++;
            s->line_at = i + 1;
            break;
        case '\\': s->escaped = !escaped; break;
        case '"': s->in_string ^= !escaped; break;
        case '{':
        case '[': s->depth += !s->in_string; break;
        case '}':
        case ']':
            if (!s->in_string && --s->depth == 0) {
                *ret_ended = true;
                return i + 1;
            }
            break;
        }
    }
    return n;
}

size_t dgm_frames_scan_string(dgm_frames_scan *s, const char *p, size_t n, bool *ret_ended)
{
    *ret_ended = false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\n' || (p[i] == '"' && !s->escaped)) {
            *ret_ended = true;
            return i + (p[i] == '"');
        }
        s->escaped = p[i] == '\\' && !s->escaped;
    }
    return n;
}
