/*
 * config/config.h - the settings of a server: dragoman.yaml, the environment, the command line.
 *
 * One table (config_table.c) says what may be set: names, types, defaults, ranges, and a sentence
 * about each. Reading, the JSON Schema, docs/configuration.md and what --check prints all walk it.
 *
 * Layers, the later one wins: the table's defaults, the profile, the file, the command line. Objects
 * merge member by member, lists are replaced as a whole. Every mistake is reported, not only the first.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "json/json.h"

/* ---- the settings ----------------------------------------------------------------------------------- */

typedef enum dgm_config_log_level {
    DGM_LOG_ERROR,
    DGM_LOG_WARN,
    DGM_LOG_INFO,
    DGM_LOG_DEBUG
} dgm_config_log_level;
typedef enum dgm_config_log_format { DGM_LOG_TEXT, DGM_LOG_JSON } dgm_config_log_format;

typedef enum dgm_config_token_kind { DGM_TOKEN_BEARER, DGM_TOKEN_API_KEY } dgm_config_token_kind;

/* Who may read the records of a task. */
typedef enum dgm_config_inspect {
    DGM_INSPECT_AUTO, /* owners too if the server listens on loopback */
    DGM_INSPECT_OPERATOR,
    DGM_INSPECT_OWNER
} dgm_config_inspect;
typedef enum dgm_config_role { DGM_TOKEN_CALLER, DGM_TOKEN_OPERATOR } dgm_config_role;

/* Who may call, and as whom. */
typedef struct dgm_config_token {
    dgm_config_token_kind kind;
    dgm_str header;                       /* of an API key; "X-API-Key" unless set */
    dgm_str token, token_env, token_file; /* as given: one of them */
    dgm_str secret;                       /* what it comes to; never printed */
    dgm_str tenant;                       /* may be empty: the one without a name */
    dgm_str principal;
    dgm_strs may_set_metadata; /* prefixes of keys */
    dgm_config_role role;
} dgm_config_token;

typedef struct dgm_config_tokens {
    dgm_config_token *at;
    size_t n;
} dgm_config_tokens;

enum { DGM_A2A_VERSION_10 = 1, DGM_A2A_VERSION_03 = 2 }; /* bits */
typedef enum dgm_error_table { DGM_ERROR_TABLE_101, DGM_ERROR_TABLE_100 } dgm_error_table;
typedef enum dgm_card_headerless { DGM_CARD_HYBRID, DGM_CARD_PURE_10 } dgm_card_headerless;
typedef enum dgm_version_mode { DGM_VERSION_STRICT, DGM_VERSION_LENIENT } dgm_version_mode;
typedef enum dgm_rest_media { DGM_REST_AUTO, DGM_REST_JSON, DGM_REST_A2A } dgm_rest_media;
typedef enum dgm_at_input { DGM_STREAM_CLOSE, DGM_STREAM_OPEN } dgm_at_input;
typedef enum dgm_stream_errors { DGM_STREAM_ERROR_EVENT, DGM_STREAM_ERROR_JSON } dgm_stream_errors;
typedef enum dgm_media_rule { DGM_MEDIA_ENFORCE, DGM_MEDIA_ACCEPT } dgm_media_rule;

typedef struct dgm_config_extension {
    dgm_str uri;
    dgm_str description;
    bool required;
    const dgm_json *params; /* an object, or NULL */
} dgm_config_extension;

typedef struct dgm_config_extensions {
    dgm_config_extension *at;
    size_t n;
} dgm_config_extensions;

/* How A2A is spoken where its texts, its kits and its peers differ. */
typedef struct dgm_config_a2a {
    unsigned versions; /* DGM_A2A_VERSION_... */
    dgm_error_table error_table;
    dgm_card_headerless card_headerless;
    dgm_version_mode version_mode;
    dgm_rest_media rest_media_type;
    dgm_at_input stream_at_input_required;
    int64_t blocking_limit_s;
    bool canonical_type;
    dgm_media_rule media_types;
    bool streaming;
    bool security_requirements;
    dgm_stream_errors stream_errors;
    int64_t card_max_age_s;
    dgm_config_extensions extensions;
} dgm_config_a2a;

/* The values of dgm_reply in backend/backend.h, in its order; then: as the type of the agent does. */
typedef enum dgm_config_reply {
    DGM_CONFIG_REPLY_AUTO,
    DGM_CONFIG_REPLY_MESSAGE,
    DGM_CONFIG_REPLY_TASK,
    DGM_CONFIG_REPLY_DEFAULT
} dgm_config_reply;
typedef enum dgm_final_text { DGM_FINAL_TEXT_FULL, DGM_FINAL_TEXT_OMIT } dgm_final_text;
typedef enum dgm_config_answer { DGM_ANSWER_IN_ARTIFACT, DGM_ANSWER_IN_STATUS } dgm_config_answer;

/* How much of the conversation an agent gets. */
typedef struct dgm_config_history {
    int64_t messages, bytes; /* no messages: no history */
    bool tools;
} dgm_config_history;

/* How an agent answers, whatever its type. */
typedef struct dgm_config_manner {
    dgm_config_reply reply;
    dgm_final_text final_text;
    dgm_config_answer answer_source;
    dgm_str working_message; /* empty: none */
    bool persist_stream_delta;
    bool dedupe;
    dgm_config_history history;
} dgm_config_manner;

typedef struct dgm_config_agent {
    dgm_str id;
    dgm_str type;
    bool is_default;           /* exactly one agent has it */
    dgm_config_manner manner;  /* agent_defaults, and over it what the agent says */
    dgm_config_a2a a2a;        /* a2a of the server, and over it what the agent says */
    const dgm_json *card;      /* members of an A2A 1.0 card, checked; NULL: none given */
    const dgm_json *card_more; /* the same, for callers who are known (extended card); NULL: none */
    const dgm_json *settings;  /* an object for the agent's type to read; NULL: none */
    dgm_str folder;            /* of the file that has it; empty: no file */
} dgm_config_agent;

typedef struct dgm_config_agents {
    dgm_config_agent *at;
    size_t n;
} dgm_config_agents;

/* Who shares a session with an MCP server; auto: principal if there are tokens, else server. */
typedef enum dgm_config_share {
    DGM_CONFIG_SHARE_AUTO,
    DGM_CONFIG_SHARE_SERVER,
    DGM_CONFIG_SHARE_PRINCIPAL,
    DGM_CONFIG_SHARE_CONTEXT
} dgm_config_share;

typedef struct dgm_config_mcp {
    dgm_str name;
    dgm_strs command;     /* or url */
    const dgm_json *env;  /* an object of texts; NULL: none */
    dgm_strs inherit_env; /* names; ["all"]: every variable */
    dgm_str cwd;          /* absent: the folder of the file */
    dgm_str url;
    const dgm_json *headers; /* an object of texts; NULL: none */
    dgm_str token_env;
    dgm_str secret; /* the value of token_env; never printed */
    int64_t timeout_s;
    dgm_config_share share; /* never auto */
} dgm_config_mcp;

typedef struct dgm_config_mcps {
    dgm_config_mcp *at;
    size_t n;
} dgm_config_mcps;

/* What may go on when the connection that began it is gone. */
typedef enum dgm_frontend_kind {
    DGM_FRONTEND_A2A,
    DGM_FRONTEND_AGUI,
    DGM_FRONTEND_CHAT,
    DGM_FRONTEND_RESPONSES,
    DGM_FRONTEND_AISDK,
    DGM_N_FRONTENDS
} dgm_frontend_kind;
typedef enum dgm_on_disconnect { DGM_DISCONNECT_CONTINUE, DGM_DISCONNECT_CANCEL } dgm_on_disconnect;

/* How AG-UI shows a question that is only text. */
typedef enum dgm_agui_questions {
    DGM_QUESTIONS_MESSAGE,
    DGM_QUESTIONS_INTERRUPT
} dgm_agui_questions;

/* How servers with one store are informed of changes. */
typedef enum dgm_config_wakeup { DGM_WAKEUP_NOTIFY, DGM_WAKEUP_POLL } dgm_config_wakeup;

typedef struct dgm_config_limits {
    int64_t http_body_bytes;
    int64_t in_flight_bytes;
    int64_t in_flight_bytes_per_principal;
    int64_t connections; /* per loop */
    int64_t log_bytes;   /* of one task */
    int64_t log_records;
    int64_t queued_messages; /* for a task that is working */
    int64_t subscribers;     /* of one task */
} dgm_config_limits;

/* One thing that is wrong, or (a warning) unwise. */
typedef struct dgm_config_finding {
    dgm_str file;        /* or the option that set it: "--listen" */
    size_t line, column; /* from 1, in characters; 0: not known */
    dgm_str pointer;
    dgm_str what;
    dgm_str todo; /* may be empty */
    bool is_warning;
} dgm_config_finding;

typedef struct dgm_config {
    dgm_str listen;            /* "127.0.0.1:8484", "[::1]:0", "unix:/run/x.sock"; NUL-terminated */
    dgm_str tls_cert, tls_key; /* both or neither; NUL-terminated */
    bool insecure;
    dgm_str public_url; /* what cards say; empty: made from the request's Host */
    dgm_str store;      /* "memory:", "sqlite:PATH", "postgres:CONNINFO"; NUL-terminated */
    int64_t loops;      /* 0: one per core */
    int64_t drain_s;
    dgm_str replica_name; /* empty: host name and port */
    int64_t replica_lease_s;
    dgm_config_wakeup replica_wakeup;
    int64_t retention_hours;
    int64_t keep_tasks_days; /* 0: for ever */
    dgm_config_log_level log_level;
    dgm_config_log_format log_format;
    dgm_strs cors_origins;
    dgm_strs hosts;
    dgm_strs outbound_allow; /* ranges of addresses, checked */
    dgm_strs tenants;        /* those that were named, here or by a token */
    dgm_config_tokens tokens;
    dgm_config_inspect inspect;
    bool inspect_remote;
    dgm_config_limits limits;
    dgm_on_disconnect on_disconnect[DGM_N_FRONTENDS];
    int64_t disconnect_grace_s[DGM_N_FRONTENDS];
    dgm_agui_questions agui_questions;
    bool openai_continue_questions;
    dgm_config_a2a a2a;
    dgm_config_mcps mcp;
    dgm_config_manner agent_defaults;
    dgm_config_agents agents; /* at least one */
    dgm_str profile;          /* already applied: for logs only */

    bool is_loopback;    /* of listen; a unix socket is */
    bool watch;          /* --watch: workers are started again when their files change */
    bool store_is_state; /* store is the default of a server without a file */
    dgm_strs
        secret_env; /* variables that hold tokens or keys of models: programs get them only by name */

    dgm_str file; /* what was read; absent: no file */
    dgm_config_finding *findings;
    size_t n_findings, n_errors; /* with an error nothing may be started from this */
    dgm_arena *arena;            /* all of the above, and the config itself */
} dgm_config;

/* ---- reading -------------------------------------------------------------------------------------------- */

/* Where settings come from. Zero-initialise: then it is the defaults. */
typedef struct dgm_config_source {
    const char *file; /* read as JSON if it ends in .json, else as YAML; NULL: none */
    dgm_str text;     /* if not absent, the content of `file`: nothing is read */

    /* the command line; NULL: not given */
    const char *listen;  /* --listen */
    const char *store;   /* --store */
    const char *agent;   /* --agent TYPE: this one instead of the file's */
    dgm_str agents;      /* FILE: a JSON list of agents instead of the file's; absent: not given */
    const char *profile; /* --profile */
    bool insecure;       /* --insecure */
    bool watch;          /* --watch */

    const char *(*env)(const char *name); /* NULL: getenv */
    bool no_files; /* look at no other file (TLS, tokens): for tests and fuzzing */

    /* Asks an agent's type about its settings: err->at points into them. NULL: not asked. */
    dgm_code (*check_agent)(const dgm_config *config, const dgm_config_agent *agent, void *user,
                            dgm_err *err);
    void *user;
} dgm_config_source;

/* Never NULL: look at n_errors. Findings are in the order of files and lines. */
dgm_config *dgm_config_load(const dgm_config_source *s);
void dgm_config_free(dgm_config *c); /* NULL is fine */
DGM_DEFINE_AUTO(dgm_config, dgm_config_free)

/* May callers read the records of their own tasks? */
static inline bool dgm_config_lets_owners_inspect(const dgm_config *c)
{
    return c->inspect == DGM_INSPECT_OWNER || (c->inspect == DGM_INSPECT_AUTO && c->is_loopback);
}

/* The file that is read if none is named: ./dragoman.yaml; NULL: it does not exist. */
#define DGM_CONFIG_FILE "dragoman.yaml"
const char *dgm_config_default_file(void);

/* Creates the folder of the database if it is the default one for programs without a file. */
dgm_code dgm_config_make_state_folder(const dgm_config *c, dgm_err *err);

/* "FILE:LINE:COL: what, at /pointer: what to do", without a newline. */
void dgm_config_finding_put(dgm_buf *b, const dgm_config_finding *f);

/* ---- reloading -------------------------------------------------------------------------------------------- */

typedef enum dgm_config_action {
    DGM_CONFIG_CHANGED,
    DGM_CONFIG_ADDED, /* an agent; the pointer ends in its id */
    DGM_CONFIG_REMOVED
} dgm_config_action;

/* What differs: a pointer as in the file, and whether a running server can take it over. */
typedef struct dgm_config_change {
    dgm_str pointer;
    bool live;
    dgm_config_action action;
} dgm_config_change;

/* In the arena. Neither config has errors. */
size_t dgm_config_diff(dgm_arena *a, const dgm_config *from, const dgm_config *to,
                       dgm_config_change **ret_changes);

/* ---- what is made from the table ---------------------------------------------------------------------------- */

void dgm_config_put(dgm_buf *b,
                    const dgm_config *c); /* JSON with every setting; secrets are "***" */
/* One agent as JSON: what it is opened with. Its card and its `a2a` are the server's and are not part of it. */
void dgm_config_agent_put(dgm_buf *b, const dgm_config_agent *agent);
void dgm_config_put_schema(dgm_buf *b); /* share/config.schema.json */
void dgm_config_put_docs(dgm_buf *b);   /* the tables of docs/configuration.md */

/* Agent types and profiles that can be named; NULL after the last. */
const char *dgm_config_agent_type(size_t i);
const char *dgm_config_profile(size_t i);
