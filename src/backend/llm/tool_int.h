/*
 * backend/llm/tool_int.h - what the kinds of configured tools share.
 *
 * A call lives in its arena. It has one timer: for its time limit, or to report a failure that was found while it was started.
 */
#pragma once

#include "backend/backend_int.h"
#include "backend/llm/tool.h"
#include "schema/schema.h"

#include <stdatomic.h>

/* Members of every kind of tool. First in its settings. */
typedef struct dgm_tool_settings {
    dgm_str name, description;
    const dgm_json *parameters;
    double timeout;
    int approve, idempotent;
} dgm_tool_settings;

#define DGM_TOOL_TIMEOUT 60
#define DGM_TOOL_SETTINGS(T, m)                                                                    \
    {"name", DGM_SETTING_STR, offsetof(T, m.name), .required = true,                               \
     .about = "the name that the model calls it by: letters, digits, `_` and `-`, at most 64"},    \
        {"description", DGM_SETTING_STR, offsetof(T, m.description), .def = "",                    \
         .about = "what it does and when to use it, for the model"},                               \
        {"parameters", DGM_SETTING_JSON, offsetof(T, m.parameters), .def = "an empty object",      \
         .about = "a JSON Schema (draft 2020-12) of the arguments. A call with other arguments "   \
                  "is not made; its result reports what is wrong"},                                \
        {"timeout",                                                                                \
         DGM_SETTING_NUMBER,                                                                       \
         offsetof(T, m.timeout),                                                                   \
         .min = 0.01,                                                                              \
         .max = 86400,                                                                             \
         .def = "60",                                                                              \
         .about = "seconds that a call may take"},                                                 \
        {"approve",                                                                                \
         DGM_SETTING_CHOICE,                                                                       \
         offsetof(T, m.approve),                                                                   \
         .choices = "false|true",                                                                  \
         .def = "false",                                                                           \
         .about = "`true`: a person must approve every call"},                                     \
    {                                                                                              \
        "idempotent", DGM_SETTING_CHOICE, offsetof(T, m.idempotent),                               \
            .choices = "false|true", .def = "false",                                               \
            .about = "`true`: a call may be repeated after a crash of the server. Its key "        \
                     "is the same then"                                                            \
    }

typedef struct dgm_tool_kind {
    const char *name; /* of the member of an entry */
    const dgm_setting *settings;
    /* Fills t->data, in t->arena, and reads the settings of every tool. */
    dgm_code (*open)(dgm_tool *t, const dgm_json *config, const dgm_agent_options *options,
                     dgm_tool_settings *ret_settings, dgm_err *err);
    /* The arguments are valid. Ends by dgm_tool_finish() or dgm_tool_fail(), later or from inside. */
    void (*start)(dgm_tool_call *c, const dgm_tool_input *input);
    /* Ends by dgm_tool_call_end(). */
    void (*cancel)(dgm_tool_call *c);
    /* c->failure is set: ends by dgm_tool_fail(). */
    void (*on_timeout)(dgm_tool_call *c);
} dgm_tool_kind;

extern const dgm_tool_kind dgm_tool_exec, dgm_tool_http;

struct dgm_tool {
    dgm_tool_info info;
    const dgm_tool_kind *kind;
    dgm_schema *schema;
    double timeout;
    void *data; /* of the kind */
    dgm_arena *arena;
    atomic_size_t refs; /* the owner and the calls */
};

struct dgm_tool_call {
    dgm_tool *tool;
    dgm_arena *arena;
    dgm_loop *loop;
    dgm_tool_handler handler;
    dgm_timer timer;
    dgm_str failure; /* why it failed, for the model */
    dgm_str detail;  /* of it, for the operator */
    bool is_outcome_unknown, is_canceled, is_ended;
    void *data; /* of the kind */
};

/* The texts are in the arena of the call, or literals. */
void dgm_tool_set_failure(dgm_tool_call *c, dgm_str why, bool is_outcome_unknown);
/* Reports c->failure. Later: from inside of a start. */
void dgm_tool_fail(dgm_tool_call *c);
void dgm_tool_fail_later(dgm_tool_call *c);
/* Reports a result of one part. JSON text becomes data if is_json. */
void dgm_tool_finish_text(dgm_tool_call *c, dgm_str text, bool may_be_json);
void dgm_tool_finish(dgm_tool_call *c, dgm_part *part); /* NULL: no output */
/* Frees the call, without a report. */
void dgm_tool_call_end(dgm_tool_call *c);
