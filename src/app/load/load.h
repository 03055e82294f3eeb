/*
 * app/load/load.h - `dragoman bench`: loads an A2A 1.0 JSON-RPC server and measures it.
 *
 * One thread, epoll, requests made beforehand: it has to cost far less than any server it measures.
 */
#pragma once

#include "app/cli/cli.h"

int dgm_load_bench(const dgm_cli_line *line);
