/* app/serve/router.h - whose request is it, and for which agent and frontend? */
#pragma once

#include "app/serve/config.h"
#include "core/core.h"
#include "net/http.h"

struct router;

dgm_code router_new(dgm_core *core, const dgm_config *config, dgm_store *store,
                    struct router **ret_router, dgm_err *err);
void router_free(struct router *r); /* NULL is fine */
dgm_http_handler router_handler(struct router *r);
/* Cards say where we are: known when we listen. Before that everything but /healthz is 503. */
dgm_code router_set_port(struct router *r, int port, dgm_err *err);
