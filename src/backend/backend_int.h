/*
 * backend/backend_int.h - what the agent types share.
 *
 * A type is written as an `inner`: it answers in the way that is natural to it. What the options say
 * (reply, final_text, working_message) is done around it, by a run of our own between it and the
 * core's: see shaped.c.
 */
#pragma once

#include "backend/backend.h"

#include <stdarg.h>

typedef struct dgm_inner {
    /* options may be NULL */
    dgm_code (*open)(const dgm_json *config, const dgm_agent_options *options, void **ret_agent,
                     dgm_err *err);
    void (*close)(void *agent);
    void (*start)(void *agent, dgm_run *run);
    void (*cancel)(void *agent, dgm_run *run);
    /* May be NULL: messages wait for the next turn. */
    bool (*message)(void *agent, dgm_run *run, const dgm_message *message,
                    const dgm_json *metadata);
    /* See dgm_backend; each may be NULL. */
    void (*prepare)(void *agent, dgm_loops *loops);
    void (*retire)(void *agent, bool wait);
    bool (*resumes)(void *agent);
    dgm_str (*describe)(void *agent, dgm_arena *a);
    /* It may complete without saying the text again (foreign programs do): then that is added. */
    bool lacks_final_text;
    /* It emits no Message: DGM_REPLY_TASK changes nothing. */
    bool has_only_tasks;
} dgm_inner;

dgm_code dgm_shaped_open(const dgm_inner *inner, const dgm_json *config,
                         const dgm_agent_options *options, void **ret_agent, dgm_err *err);
void dgm_shaped_close(void *agent);
void dgm_shaped_start(void *agent, dgm_run *run);
void dgm_shaped_cancel(void *agent, dgm_run *run);
bool dgm_shaped_message(void *agent, dgm_run *run, const dgm_message *message,
                        const dgm_json *metadata);
void dgm_shaped_prepare(void *agent, dgm_loops *loops);
void dgm_shaped_retire(void *agent, bool wait);
bool dgm_shaped_resumes(void *agent);
dgm_str dgm_shaped_describe(void *agent, dgm_arena *a);

/* The rest of a dgm_backend whose inner is called `inner`: put DGM_SHAPED(open_shaped) among its
 * members, and DGM_SHAPED_OPEN(open_shaped, inner) before it. */
#define DGM_SHAPED_OPEN(name, inner_)                                                              \
    static dgm_code name(const dgm_json *config, const dgm_agent_options *options,                 \
                         void **ret_agent, dgm_err *err)                                           \
    {                                                                                              \
        return dgm_shaped_open(&(inner_), config, options, ret_agent, err);                        \
    }
#define DGM_SHAPED(open_)                                                                          \
    .open = (open_), .close = dgm_shaped_close, .start = dgm_shaped_start,                         \
    .cancel = dgm_shaped_cancel, .message = dgm_shaped_message, .prepare = dgm_shaped_prepare,     \
    .retire = dgm_shaped_retire, .resumes = dgm_shaped_resumes, .describe = dgm_shaped_describe

/* ---- parts ---------------------------------------------------------------------------------------------- */

/* The texts, one after the other. Borrowed when there is only one. */
dgm_str dgm_parts_text(dgm_parts parts, dgm_arena *a);
/* A DataPart {type: status-indicator, text, displayAs: loading}. */
dgm_part dgm_status_indicator(dgm_arena *a, dgm_str text);

/* ---- settings ------------------------------------------------------------------------------------------- */

/* Fills the members that are set; others keep their defaults. Texts are borrowed from config. The first
 * mistake is returned. rows may be NULL. */
dgm_code dgm_settings_read(const dgm_json *config, const dgm_setting *rows, void *object,
                           dgm_err *err);

/* What a run that its loop left no time for ends with. */
#define DGM_SHUTTING_DOWN "the server is shutting down"

/* ---- the types ------------------------------------------------------------------------------------------ */

extern const dgm_backend dgm_backend_hello, dgm_backend_demo, dgm_backend_bench, dgm_backend_tck,
    dgm_backend_exec, dgm_backend_a2a, dgm_backend_http, dgm_backend_llm, dgm_backend_langgraph,
    dgm_backend_graph_server;

/* Does text begin with this word, whatever its case? ret_rest: what follows, without spaces. */
bool dgm_text_command(dgm_str text, const char *word, dgm_str *ret_rest);
dgm_str dgm_text_trim(dgm_str text);
