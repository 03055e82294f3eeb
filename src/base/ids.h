/*
 * base/ids.h - ids that a server gives away: UUIDv7, so that what was made later sorts later.
 *
 * Ids made by one process ascend, also within a millisecond and across threads' clocks going back.
 */
#pragma once

#include "base/arena.h"

#define DGM_UUID_CHARS 36

/* 36 characters and a NUL. */
void dgm_uuid7(char out[DGM_UUID_CHARS + 1]);
dgm_str dgm_uuid7_in(dgm_arena *a);
/* Random, from 1 to 2^63-1: an id that no process, and no copy of a database, has had before. */
int64_t dgm_random_id(void);
