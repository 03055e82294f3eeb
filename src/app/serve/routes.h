/* app/serve/routes.h - all frontends, and the route table that their rows make. */
#pragma once

#include "frontend/route.h"

#define DGM_MAX_FRONTENDS 16

/* NULL-terminated, in the order of the index at /. */
extern const dgm_frontend *const dgm_frontends[];

/* The table as docs/operations.md has it. */
void dgm_routes_put_markdown(dgm_buf *out);
