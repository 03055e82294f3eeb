/* canon/copy.h - events that outlive what they were made of. */
#pragma once

#include "canon/canon.h"

/* A copy in the arena that shares nothing with the event. */
dgm_canon_event dgm_canon_copy_event(dgm_arena *a, const dgm_canon_event *from);
