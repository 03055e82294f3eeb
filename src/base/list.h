/* base/list.h - lists that double when they are full. */
#pragma once

#include "base/arena.h"

/* The list with room for a zeroed item behind its n. It lives in the arena. */
void *dgm_list_grow(dgm_arena *a, void *list, size_t n, size_t size);

/* The same on the heap, not zeroed. */
void *dgm_list_reserve(void *list, size_t n, size_t *cap, size_t size);
