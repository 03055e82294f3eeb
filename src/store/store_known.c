/*
 * store/store_known.c - which message ids may have been taken, without a read.
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
#include "store/store_known.h"
#include "base/arena.h"
#include "base/limits.h"

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

/* Of the bits of a key: PROBES hashes, each a step behind the one before. */
#define STEP 0x9e3779b97f4a7c15u

void dgm_known_add(dgm_known *k, dgm_str message_id, uint64_t scope)
{
    uint64_t h = dgm_hash(scope, message_id.p, message_id.n), step = (h >> 32 | h << 32) * STEP | 1;
    pthread_mutex_lock(&k->adding);
    size_t n = k->n;
    struct filter *f = n ? &k->filters[n - 1] : NULL; /* that takes it; NULL: they are full */
    if (!f || !f->left)
        f = n < DGM_MAX_KNOWN_FILTERS ? &k->filters[n] : NULL;
    if (!f)
        k->is_full = true;
    if (f && !f->words) { /* its pages come from the kernel when bits are set in them */
        f->left = FIRST_KEYS << 2 * n;
        f->bits = (uint64_t)f->left * BITS_PER_KEY;
        f->words = dgm_xcalloc(f->bits / 64, sizeof *f->words);
        k->n = n + 1; /* seen by others when all of it is there */
    }
    for (int i = 0; f && i < PROBES; i++, h += step) {
        uint64_t bit = (h >> 32) * f->bits >> 32; /* fewer than 2^32 */
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
    uint64_t hash = dgm_hash(scope, message_id.p, message_id.n);
    uint64_t step = (hash >> 32 | hash << 32) * STEP | 1;
    if (!k->complete || k->is_full)
        return true;
    for (size_t i = k->n; i-- > 0;) {
        const struct filter *f = &k->filters[i];
        uint64_t h = hash;
        int set = 0;
        for (; set < PROBES; set++, h += step) {
            uint64_t bit = (h >> 32) * f->bits >> 32;
            uint64_t word = atomic_load_explicit(&f->words[bit / 64], memory_order_relaxed);
            if (!(word >> bit % 64 & 1))
                break;
        }
        if (set == PROBES)
            return true;
    }
    return false;
}
