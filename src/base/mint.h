/*
 * base/mint.h - where codecs get the ids they have to make up.
 *
 * Codecs are pure: same bytes and same mint in, same bytes out. A converter seeds the mint from its
 * input, so golden files are stable; a server will seed it from the clock and random bits.
 */
#pragma once

#include "base/arena.h"

typedef struct dgm_mint {
    uint64_t seed[2];
    uint64_t count;
    dgm_str pending; /* stirred in when the first id is asked for: most texts need none */
} dgm_mint;

/* Continues with ids that depend on all that was stirred in so far. */
void dgm_mint_seed(dgm_mint *m, dgm_str bytes);

/* A mint for one text out of a stream: its ids depend on m, on n and on the text, which must live
 * as long as the mint. Costs nothing until an id is asked for. */
dgm_mint dgm_mint_for(const dgm_mint *m, uint64_t n, dgm_str text);

/* A UUID in text form (version 8: made by a rule of our own). */
dgm_str dgm_mint_id(dgm_mint *m, dgm_arena *a);
