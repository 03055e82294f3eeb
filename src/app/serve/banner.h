/* app/serve/banner.h - what a person reads when the server has started: what to try. */
#pragma once

#include "config/config.h"

/* port 0: a unix socket. */
void dgm_banner_put(FILE *out, const dgm_config *c, int port);
