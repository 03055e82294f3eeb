/*
 * app/load/load.h - `dragoman bench`: loads a server (A2A 1.0 over JSON-RPC, or what clients speak) and measures it.
 *
 * One thread, epoll, requests made beforehand: it has to cost far less than any server it measures.
 */
#pragma once

#include "app/cli/cli.h"

int dgm_load_bench(const dgm_cli_line *line);
