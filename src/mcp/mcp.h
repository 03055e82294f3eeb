/*
 * mcp/mcp.h - an MCP client: the tools of a server that a configuration names.
 *
 * A server is a program (stdio: one JSON object per line) or a URL (streamable HTTP). Revision 2026-07-28 is tried first;
 * a server that does not know it is initialized with 2025-11-25.
 *
 * Sessions: a session is a child process, or what we know of an HTTP server (its revision, its session id, its tools). It
 * is opened by the first list or call and belongs to the loop on which that was made. Calls on the same loop with the same
 * share key use the same session, so `share: server` on a machine with four loops has up to four child processes. A session
 * that was not used for config.idle_ms is closed. A program that ended is started again by the next list or call, after a
 * pause that doubles with every failure in a row.
 *
 * All functions except open and close are called on the thread of `loop`; callbacks come there, later, never from inside a
 * call. A call that may have reached the server is never sent again by this client: it ends with is_outcome_unknown.
 */
#pragma once

#include "net/client.h"
#include "net/loop.h"
#include "json/json.h"

typedef struct dgm_mcp dgm_mcp;
typedef struct dgm_mcp_listing dgm_mcp_listing; /* a request for the list of tools */
typedef struct dgm_mcp_call dgm_mcp_call;       /* one call of a tool */

/* Who shares a session: the caller builds the share key from it. */
typedef enum dgm_mcp_share {
    DGM_MCP_SHARE_SERVER,    /* everyone: the key is "" */
    DGM_MCP_SHARE_PRINCIPAL, /* the key is tenant and principal */
    DGM_MCP_SHARE_CONTEXT    /* the key is the context's (tenant and principal included) */
} dgm_mcp_share;

/* Everything is copied. 0 in a number: its default. */
typedef struct dgm_mcp_config {
    dgm_str name; /* of the server: see dgm_mcp_is_name */
    /* A program; NULL: url is set. */
    const char *const *argv; /* ends with NULL */
    const char *const *env;  /* "NAME=value", all of it; ends with NULL. NULL: ours */
    const char *cwd;         /* NULL: ours */
    /* Or a server. */
    const char *url;
    const dgm_fetch_header *headers; /* sent with every request */
    size_t n_headers;
    dgm_str token; /* sent as `Authorization: Bearer`; absent: none. Never logged */
    dgm_fetch_tls tls;
    bool is_guarded; /* the URL was not written by the operator: its address is checked */
    dgm_address_ranges allowed;

    dgm_mcp_share share; /* only stored, for dgm_mcp_share_of() */
    uint64_t timeout_ms; /* of a call, without the time that a question waits; 60 s */
    uint64_t start_ms;   /* until the server answers its first request; 30 s */
    uint64_t idle_ms;    /* a session without calls is closed; 5 minutes */
    uint64_t grace_ms;   /* from the end of its input to SIGTERM, and from that to SIGKILL; 2 s */
    uint64_t answer_ms;  /* how long a question may wait for its answer; 1 hour */
    size_t max_calls;    /* of one session at a time; 64. More wait */
    const char *client_version; /* reported to servers; NULL: "0" */
    /* A line for the operator's log: stderr of the program, tools that are left out and why. May be NULL. On any loop. */
    void (*on_log)(void *user, dgm_str line);
    void *log_user;
} dgm_mcp_config;

/* Letters, digits, single `_` and `-` between them, at most 32: so the first `__` of a tool's name ends the server's. */
bool dgm_mcp_is_name(dgm_str name);

/* Checks the configuration; no process is started and no connection made. DGM_BAD_PARAMS: err->at names the member. */
dgm_code dgm_mcp_open(const dgm_mcp_config *config, dgm_mcp **ret_mcp, dgm_err *err);
/* From any thread. Calls and listings end with an error, processes are stopped; the memory is freed when the last one has
 * ended. NULL is allowed. */
void dgm_mcp_close(dgm_mcp *m);

dgm_str dgm_mcp_name(const dgm_mcp *m);
dgm_mcp_share dgm_mcp_share_of(const dgm_mcp *m);

/* ---- errors ------------------------------------------------------------------------------------------ */

typedef struct dgm_mcp_error {
    dgm_code code;
    dgm_str message;  /* for people and models; no credentials, paths or queries */
    int64_t rpc_code; /* of the server's JSON-RPC error; 0: it is not one */
    bool
        is_outcome_unknown; /* the tool may have run, or may still run: do not repeat unless it is idempotent */
} dgm_mcp_error;

/* ---- tools ------------------------------------------------------------------------------------------- */

typedef struct dgm_mcp_tool {
    dgm_str
        name; /* "files__read_file": [A-Za-z0-9_-]{1,64}, unique among the tools of all servers */
    dgm_str own_name;                 /* "read_file": as the server calls it */
    dgm_str title;                    /* may be absent */
    dgm_str description;              /* may be absent */
    const dgm_json *input_schema;     /* an object, never NULL */
    const dgm_json *output_schema;    /* NULL: none */
    bool is_read_only, is_idempotent; /* the server's hints; not to be trusted for safety */
} dgm_mcp_tool;

typedef struct dgm_mcp_tools {
    const dgm_mcp_tool *at;
    size_t n;
    uint64_t version; /* differs from the last list of this session if the list was read again */
} dgm_mcp_tools;

typedef struct dgm_mcp_tools_handler {
    /* The only callback: one of tools and error is NULL. Both live until it returns; the listing is freed then. */
    void (*on_tools)(void *user, const dgm_mcp_tools *tools, const dgm_mcp_error *error);
    void *user;
} dgm_mcp_tools_handler;

/* The list is read from the server once per session, and again after it reported a change or its time to live is over. */
dgm_mcp_listing *dgm_mcp_list(dgm_mcp *m, dgm_loop *loop, dgm_str share_key,
                              dgm_mcp_tools_handler handler);
void dgm_mcp_list_cancel(dgm_mcp_listing *l); /* no callback follows */

/* ---- calls ------------------------------------------------------------------------------------------- */

typedef struct dgm_mcp_result {
    dgm_parts parts; /* text, image, audio and resources of the result */
    const dgm_json *
        structured; /* structuredContent; also the last of parts if no text repeats it. NULL: none */
    bool is_error;  /* the tool failed; parts say why */
} dgm_mcp_result;

typedef enum dgm_mcp_ask_kind {
    DGM_MCP_ASK_FORM, /* -> input-required: the answer is an object of `schema` */
    DGM_MCP_ASK_URL   /* -> auth-required: the user opens `url`; the answer has no content */
} dgm_mcp_ask_kind;

/* A question of the server to the user (elicitation). */
typedef struct dgm_mcp_ask {
    dgm_mcp_ask_kind kind;
    dgm_str message;
    const dgm_json *schema; /* FORM: an object with members of simple types */
    dgm_str url;            /* URL: http or https */
    dgm_str id;             /* of the server; may be absent */
} dgm_mcp_ask;

typedef struct dgm_mcp_progress {
    double done, total; /* total 0: unknown */
    dgm_str message;    /* may be absent */
} dgm_mcp_progress;

/* Everything that is passed lives until the callback returns. */
typedef struct dgm_mcp_call_handler {
    /* The last callback: one of result and error is NULL. The call is freed when it returns. */
    void (*on_result)(void *user, const dgm_mcp_result *result, const dgm_mcp_error *error);
    /* The server asks; dgm_mcp_answer() continues the call. One question at a time. NULL: every question is declined. */
    void (*on_ask)(void *user, const dgm_mcp_ask *ask);
    void (*on_progress)(void *user, const dgm_mcp_progress *progress); /* may be NULL */
    /*
     * A JSON text from which the call can be continued after a restart of this program (dgm_mcp_call_options.state): it
     * has become a task of the server, or it waits for an answer. Comes before the on_ask that it belongs to. A question
     * without such a text is lost with the connection. May be NULL.
     */
    void (*on_state)(void *user, dgm_str state);
    void *user;
} dgm_mcp_call_handler;

typedef struct dgm_mcp_call_options {
    dgm_str share_key;
    dgm_str tool;              /* its name or its own_name */
    const dgm_json *arguments; /* an object; NULL: {} */
    dgm_str call_id;           /* sent as the idempotency key; may be absent */
    uint64_t fence;            /* sent with it, if it is not 0: store/share.h */
    dgm_str traceparent;       /* may be absent */
    dgm_str state;             /* of on_state: continue that call; absent: a new one */
    uint64_t timeout_ms;       /* 0: that of the server */
} dgm_mcp_call_options;

dgm_mcp_call *dgm_mcp_call_start(dgm_mcp *m, dgm_loop *loop, const dgm_mcp_call_options *options,
                                 dgm_mcp_call_handler handler);

typedef enum dgm_mcp_action {
    DGM_MCP_ACCEPT,
    DGM_MCP_DECLINE, /* the user refused */
    DGM_MCP_CANCEL   /* the user did not decide */
} dgm_mcp_action;

/* Answers the open question. content: an object for an accepted form, else NULL. Without an open question: a no-op. */
void dgm_mcp_answer(dgm_mcp_call *c, dgm_mcp_action action, const dgm_json *content);

/* The server is asked to stop. No callback follows; the call is freed. */
void dgm_mcp_call_cancel(dgm_mcp_call *c);
