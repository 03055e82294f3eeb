/*
 * store/sqlite/sqlite_known.c - which message ids may have been taken, without a read.
 *
 * Nearly every message is new, and a read that finds nothing costs more than all the rest of a short
 * task. So the keys that were taken are kept as bits: a Bloom filter, 12 bits a key, six of them looked
 * at; one of some 300 new keys is taken for an old one and costs a read. It grows by further filters,
 * each four times the one before, until all of them together reach the limit; past that nothing is ever
 * unknown again, and every message is looked for.
 *
 * Adding sets bits, a query reads them: relaxed atomics are sufficient. A thread that queries a key after
 * the append with this key was answered has synchronized through a lock, so it sees the bits. Only one
 * thread adds at a time.
 */
#include "sqlite_int.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define PROBES 6
#define BITS_PER_KEY 12
#define FIRST_KEYS ((size_t)16384)

struct filter {
    _Atomic uint64_t *words;
    uint64_t bits;
    size_t left; /* keys that it may still take */
};

struct dgm_known {
    pthread_mutex_t adding;
    struct filter filters[DGM_MAX_KNOWN_FILTERS];
    _Atomic size_t n;      /* filters that are there */
    _Atomic bool complete; /* the database's own are in it */
    _Atomic bool is_full;  /* some are not */
};

uint64_t dgm_scope(dgm_owner owner, dgm_str agent, dgm_str context_id)
{
    const dgm_str texts[] = {owner.tenant, owner.principal, agent, context_id};
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a, with each text's length behind it */
    for (size_t i = 0; i < 4; i++) {
        for (size_t at = 0; at < texts[i].n; at++)
            h = (h ^ (unsigned char)texts[i].p[at]) * 0x100000001b3u;
        h = (h ^ texts[i].n) * 0x100000001b3u;
    }
    return h;
}

dgm_known *dgm_known_new(void)
{
    dgm_known *k = dgm_xcalloc(1, sizeof *k);
    pthread_mutex_init(&k->adding, NULL);
    return k;
}

void dgm_known_free(dgm_known *k)
{
    if (!k)
        return;
    for (size_t i = 0; i < DGM_MAX_KNOWN_FILTERS; i++)
        free(k->filters[i].words);
    pthread_mutex_destroy(&k->adding);
    free(k);
}

/* The filter that takes the next key; NULL: they are full. Its pages come from the kernel when bits are
 * set in them. */
static struct filter *filter_with_room(dgm_known *k)
{
    size_t n = k->n;
    if (n && k->filters[n - 1].left)
        return &k->filters[n - 1];
    if (n == DGM_MAX_KNOWN_FILTERS) {
        k->is_full = true;
        return NULL;
    }
    struct filter *f = &k->filters[n];
    f->left = FIRST_KEYS << 2 * n;
    f->bits = (uint64_t)f->left * BITS_PER_KEY;
    f->words = dgm_xcalloc(f->bits / 64, sizeof *f->words);
    k->n = n + 1; /* seen by others when all of it is there */
    return f;
}

struct key {
    uint64_t at, step;
};

static struct key key_of(dgm_str message_id, uint64_t scope)
{
    uint64_t h = dgm_hash(scope, message_id.p, message_id.n);
    return (struct key){h, (h >> 32 | h << 32) * 0x9e3779b97f4a7c15u | 1};
}

static uint64_t bit_of(const struct filter *f, struct key *key)
{
    uint64_t h = key->at;
    key->at += key->step;
    return (h >> 32) * f->bits >> 32; /* fewer than 2^32 */
}

void dgm_known_add(dgm_known *k, dgm_str message_id, uint64_t scope)
{
    struct key key = key_of(message_id, scope);
    pthread_mutex_lock(&k->adding);
    struct filter *f = filter_with_room(k);
    for (int i = 0; f && i < PROBES; i++) {
        uint64_t bit = bit_of(f, &key);
        uint64_t word = atomic_load_explicit(&f->words[bit / 64], memory_order_relaxed);
        atomic_store_explicit(&f->words[bit / 64], word | (uint64_t)1 << bit % 64,
                              memory_order_relaxed);
    }
    if (f)
        f->left--;
    pthread_mutex_unlock(&k->adding);
}

void dgm_known_is_complete(dgm_known *k)
{
    k->complete = true;
}

bool dgm_known_may_have(const dgm_known *k, dgm_str message_id, uint64_t scope)
{
    struct key key = key_of(message_id, scope);
    if (!k->complete || k->is_full)
        return true;
    for (size_t i = k->n; i-- > 0;) {
        const struct filter *f = &k->filters[i];
        struct key next = key;
        int set = 0;
        while (set < PROBES) {
            uint64_t bit = bit_of(f, &next);
            uint64_t word = atomic_load_explicit(&f->words[bit / 64], memory_order_relaxed);
            if (!(word >> bit % 64 & 1))
                break;
            set++;
        }
        if (set == PROBES)
            return true;
    }
    return false;
}
