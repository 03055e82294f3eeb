/* wire/a2a/a2a_encode.h - A2A as the target of canonical events. */
#pragma once

#include "wire/a2a/a2a.h"
#include "wire/canon_codec.h"

/* The encoder, the messages and the requests of a dialect. It has no decoder: A2A's objects are records already. */
const dgm_canon_codec *dgm_a2a_canon_codec(const dgm_codec *codec);
