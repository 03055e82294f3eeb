/* app/serve/fronts.h - the frontends besides A2A's. */
#pragma once

#include "frontend/turn/turn.h"

/* In the order they are asked; NULL-terminated. */
extern const dgm_turn_front *const dgm_fronts[];
