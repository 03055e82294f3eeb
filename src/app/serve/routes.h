/* app/serve/routes.h - all frontends, and the route table that their rows make. */
#pragma once

#include "frontend/route.h"

#define DGM_MAX_FRONTENDS 16

/* NULL-terminated, in the order of the index at /. */
extern const dgm_frontend *const dgm_frontends[];

/* The position in dgm_frontends. */
size_t dgm_frontend_index(const dgm_frontend *front);

/* The table as docs/operations.md has it. */
void dgm_routes_put_markdown(dgm_buf *out);
