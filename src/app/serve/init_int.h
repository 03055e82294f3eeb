/* app/serve/init_int.h - texts that the files of `dragoman init` share. */
#pragma once

#include "init.h"

/* The start of every configuration. about: a phrase that ends with a dot. */
#define HEAD(about)                                                                                \
    "# yaml-language-server: $schema=dragoman.schema.json\n"                                       \
    "#\n"                                                                                          \
    "# A Dragoman server with one agent: " about "\n"                                              \
    "#\n"                                                                                          \
    "#   dragoman serve            start it (in this folder)\n"                                    \
    "#   dragoman serve --check    print all settings, or what is wrong\n"                         \
    "#   dragoman schema           print the list of all settings as JSON Schema\n"                \
    "#\n"                                                                                          \
    "# docs/configuration.md describes every setting. Lines that start with # show the "           \
    "defaults.\n"                                                                                  \
    "\n"                                                                                           \
    "# listen: 127.0.0.1:8484      # other addresses (0.0.0.0:8484) need tokens, see below\n"      \
    "# store: sqlite:dragoman.db   # tasks survive a restart; memory: does not store them\n"       \
    "# retention_hours: 24         # how long a finished stream can be resumed\n"                  \
    "# keep_tasks_days: 0          # how long ended tasks are stored; 0: without limit\n"          \
    "\n"                                                                                           \
    "# Allowed callers. Without tokens: every program on this machine.\n"                          \
    "# tokens:\n"                                                                                  \
    "# - {token_env: ANN_TOKEN, principal: ann}\n"                                                 \
    "\n"

extern const dgm_init_file dgm_init_python_files[];    /* init_python.c */
extern const dgm_init_file dgm_init_langgraph_files[]; /* init_langgraph.c */
