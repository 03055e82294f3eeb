/* wire/a2a/a2a_losses.h - what is lost between A2A's three spellings. */
#pragma once

#include "wire/a2a/a2a.h"

/* Writes up to max pointers to static rows; returns how many there are. */
size_t dgm_a2a_losses(const dgm_codec *from, const dgm_codec *to, const dgm_loss **ret, size_t max);
