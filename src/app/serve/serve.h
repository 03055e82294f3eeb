/*
 * app/serve/serve.h - `dragoman serve`: loops, store, agents and frontends put together.
 */
#pragma once

#include "config/config.h"

/* Runs until SIGTERM or SIGINT. Says what it does on out, what is wrong on err. An exit status. */
int dgm_serve(const dgm_config_source *source, bool only_check, FILE *out, FILE *err);
