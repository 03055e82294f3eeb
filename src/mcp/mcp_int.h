/*
 * mcp/mcp_int.h - between the files of the MCP client.
 *
 *   mcp.c           open, close; finds the session of a loop and a share key
 *   mcp_session.c   the life of a session: start, revision, idle time, failure and the pause after it; who waits for it
 *   mcp_start.c     which revision the server speaks: server/discover, then initialize
 *   mcp_request.c   JSON-RPC: requests with their replies; messages that the server sends on its own
 *   mcp_stdio.c     the transport to a program
 *   mcp_http.c      the transport to a URL
 *   mcp_headers.c   HTTP headers that repeat parts of a request
 *   mcp_tools.c     the list of tools: pages, names
 *   mcp_call.c      one call: its rounds, its end
 *   mcp_ask.c       questions of the server
 *   mcp_task.c      calls that became tasks of the server
 *   mcp_result.c    the content of a result as parts
 */
#pragma once

#include "base/buf.h"
#include "base/limits.h"
#include "mcp/mcp.h"
#include "net/process.h"

#include <stdatomic.h>

#define DGM_MCP_MODERN "2026-07-28"
#define DGM_MCP_LEGACY "2025-11-25"

/* JSON-RPC errors of revision 2026-07-28, and one of 2025-11-25. */
enum {
    DGM_MCP_HEADER_MISMATCH = -32020,
    DGM_MCP_MISSING_CAPABILITY = -32021,
    DGM_MCP_UNSUPPORTED_VERSION = -32022,
    DGM_MCP_URL_ELICITATION = -32042,
};

struct dgm_mcp {
    dgm_arena *arena; /* the configuration and this struct */
    dgm_mcp_config config;
    atomic_size_t refs; /* the opener, sessions, and jobs posted by close */
    atomic_bool is_closing;
    pthread_mutex_t lock;                        /* of loops */
    dgm_loop *loops[DGM_MAX_LOOPS];              /* that have sessions */
    struct mcp_session *sessions[DGM_MAX_LOOPS]; /* each list is of its loop alone */
};

void dgm_mcp_unref(dgm_mcp *m);
void dgm_mcp_log(const dgm_mcp *m, const char *fmt, ...) DGM_PRINTF(2, 3);

/* ---- who waits for a session ------------------------------------------------------------------------- */

/* First in a listing and in a call. */
struct mcp_waiter {
    struct mcp_waiter *next;
    struct mcp_session *session; /* NULL: it does not wait */
    /* The session has its tools; or error is not NULL. Not called after dgm_mcp_leave(). */
    void (*on_ready)(struct mcp_waiter *w, const dgm_mcp_error *error);
    bool is_call;    /* counts towards max_calls */
    bool is_refused; /* too many wait */
};

/* ---- tools ------------------------------------------------------------------------------------------- */

/* A parameter that is repeated in an HTTP header. */
struct mcp_param {
    dgm_str header; /* "Mcp-Param-Region" */
    dgm_str *path;  /* names of the members down to it */
    size_t n_path;
};

struct mcp_tool {
    struct mcp_param *params;
    size_t n_params;
};

struct mcp_tool_list {
    dgm_arena *arena;
    dgm_mcp_tools tools;
    dgm_mcp_tool *at;
    struct mcp_tool *more; /* beside at */
    size_t n_pages, n_bytes;
    dgm_str cursor; /* of the page that is read next */
    int64_t ttl_ms; /* < 0: none */
};

/* ---- sessions ---------------------------------------------------------------------------------------- */

/*
 * DOWN -> PROBING (server/discover) -> READY
 *                 `-> INITIALIZING ----^
 * any but DOWN -> CLOSING (the program has not ended yet) -> DOWN
 */
enum mcp_state { MCP_DOWN, MCP_PROBING, MCP_INITIALIZING, MCP_READY, MCP_CLOSING };
enum mcp_tools_state { MCP_TOOLS_NONE, MCP_TOOLS_LOADING, MCP_TOOLS_LOADED };

struct mcp_session {
    struct mcp_session *next;
    dgm_mcp *mcp;
    dgm_loop *loop;
    dgm_str key;
    enum mcp_state state;
    bool is_modern;
    bool is_ended; /* it will not be used again: freed as soon as nothing is open */
    bool is_freeing;
    char version[16]; /* sent with every request */
    int64_t last_id;
    struct mcp_request *requests;
    struct mcp_waiter *waiters, **last_waiter;
    size_t n_waiters, n_refused, n_calls;
    dgm_timer timer; /* what for depends on the state */
    dgm_loop_turn turn;
    dgm_loop_stop stop;
    unsigned n_failures;
    uint64_t retry_at; /* of the loop's clock */
    uint64_t started_at;

    bool has_tools, has_list_changes;
    enum mcp_tools_state tools_state;
    struct mcp_tool_list *tools;   /* NULL: none yet */
    struct mcp_tool_list *loading; /* of which pages are read */
    bool tools_changed;            /* since they were requested */
    bool has_new_tools; /* not served yet: good enough for those who wait, even if changed again */
    uint64_t tools_until; /* of the loop's clock; 0: no end */
    uint64_t tools_version;

    uint64_t second; /* in which n_messages were received */
    size_t n_messages;

    /* a program */
    dgm_process *process;
    size_t n_bad_lines, n_error_lines;
    /* a URL */
    char *url;        /* of the configuration, or where that redirects to */
    char *session_id; /* NULL: none */
    struct mcp_post *posts;
    struct mcp_post *stream; /* a GET, or subscriptions/listen: among posts */
    unsigned n_streams;      /* that were opened */
    dgm_timer stream_timer;
};

struct mcp_session *dgm_mcp_session_find(dgm_mcp *m, dgm_loop *loop, dgm_str key);
void dgm_mcp_session_end(struct mcp_session *s); /* for good: its server is closed */
/* The server did something wrong, or ended: replies to its requests are lost. */
void dgm_mcp_session_fail(struct mcp_session *s, dgm_code code, const char *fmt, ...)
    DGM_PRINTF(3, 4);
void dgm_mcp_session_ready(struct mcp_session *s); /* the revision is known */
void dgm_mcp_session_soon(struct mcp_session *s);  /* looks at who waits, at the end of this turn */
void dgm_mcp_session_exited(struct mcp_session *s);  /* the program has ended, or nothing is open */
void dgm_mcp_session_restart(struct mcp_session *s); /* HTTP: the server forgot its session */
void dgm_mcp_session_worked(struct mcp_session *s);  /* a call was answered: no more pauses */

void dgm_mcp_wait(struct mcp_session *s, struct mcp_waiter *w);
void dgm_mcp_leave(struct mcp_waiter *w);
void dgm_mcp_fail_waiters(struct mcp_session *s, const dgm_mcp_error *error);

/* mcp_start.c */
void dgm_mcp_start(struct mcp_session *s); /* from MCP_DOWN; calls session_ready or session_fail */
void dgm_mcp_start_initialized(
    struct mcp_session *s);                     /* 2025-11-25: the server knows that we are ready */
void dgm_mcp_start_late(struct mcp_session *s); /* no answer in time */

/* ---- requests ---------------------------------------------------------------------------------------- */

/* Lives until on_reply returns. */
struct mcp_reply {
    yyjson_val *result; /* NULL: error */
    yyjson_val *data;   /* of a JSON-RPC error; may be NULL */
    dgm_mcp_error error;
    int status;                /* of HTTP; 0: none */
    bool is_session_forgotten; /* 404 to a request with a session id: it was not handled */
};

struct mcp_request {
    struct mcp_request *next;
    struct mcp_session *session;
    int64_t id;
    const char *method;
    void (*on_reply)(void *user, const struct mcp_reply *reply);
    void *user;
    struct dgm_mcp_call *call; /* that progress and questions belong to; NULL: none */
    struct mcp_post *post;     /* HTTP; NULL: none */
    dgm_timer timer;
};

/* What is sent. Borrowed. */
struct mcp_send {
    const char *method;
    dgm_str params; /* members of the object: "\"name\":\"x\""; may be empty */
    dgm_str name;   /* for the header Mcp-Name; absent: none */
    const dgm_fetch_header *headers;
    size_t n_headers;
    uint64_t timeout_ms; /* 0: the caller has a timer */
    void (*on_reply)(void *user, const struct mcp_reply *reply);
    void *user;
    struct dgm_mcp_call *call;
    bool is_stream; /* subscriptions/listen: stays open */
};

/* on_reply comes later. NULL: it could not be sent, and the session has failed. */
struct mcp_request *dgm_mcp_send(struct mcp_session *s, const struct mcp_send *send);
/* No reply follows. tell: the server is asked to stop. */
void dgm_mcp_request_cancel(struct mcp_request *r, bool notify);
void dgm_mcp_reply(struct mcp_request *r, const struct mcp_reply *reply); /* frees r */
/* Every request ends with this. is_lost: those that were sent may have been handled. */
void dgm_mcp_fail_requests(struct mcp_session *s, dgm_code code, dgm_str message);
void dgm_mcp_notify(struct mcp_session *s, const char *method, dgm_str params);
/* The answer to a request of the server. error_code 0: `value` is the result, else the error's message. */
void dgm_mcp_respond(struct mcp_session *s, const yyjson_val *id, int error_code, dgm_str value);

/* A JSON-RPC message from the server; of: the request on whose stream it came, or NULL. Returns false if it is not one. */
bool dgm_mcp_receive(struct mcp_session *s, dgm_arena *a, dgm_str text, struct mcp_request *of,
                     int status);

/* ---- transports -------------------------------------------------------------------------------------- */

dgm_code dgm_mcp_stdio_start(struct mcp_session *s, dgm_err *err);
void dgm_mcp_stdio_write(struct mcp_session *s, dgm_str message); /* one line, without its end */
void dgm_mcp_stdio_stop(struct mcp_session *s, bool at_once);

/* r NULL: a notification or a response. */
void dgm_mcp_http_post(struct mcp_session *s, struct mcp_request *r, dgm_str message,
                       const struct mcp_send *send);
void dgm_mcp_http_initialized(struct mcp_session *s); /* then dgm_mcp_start_initialized */
void dgm_mcp_http_listen(struct mcp_session *s);      /* 2025-11-25: GET, if the server has it */
void dgm_mcp_http_on_stream_timer(void *session);     /* opens it again */
/* No callback follows. */
void dgm_mcp_http_drop(struct mcp_post *p, bool is_canceled);
void dgm_mcp_http_stop(struct mcp_session *s, bool at_once);

static inline bool dgm_mcp_is_stdio(const struct mcp_session *s)
{
    return s->mcp->config.argv != NULL;
}

/* ---- headers, tools ---------------------------------------------------------------------------------- */

/* A header's value as it is, or in base64 if it could not be sent. In the arena. */
dgm_str dgm_mcp_header_value(dgm_arena *a, dgm_str text);
/* Finds `x-mcp-header` in a schema. DGM_BAD_PARAMS: a rule for it is broken. */
dgm_code dgm_mcp_read_params(dgm_arena *a, const yyjson_val *schema, struct mcp_tool *t,
                             dgm_err *err);
/* The headers of a call. */
size_t dgm_mcp_param_headers(dgm_arena *a, const struct mcp_tool *t, const yyjson_val *arguments,
                             dgm_fetch_header **ret_headers);

void dgm_mcp_load_tools(struct mcp_session *s);
void dgm_mcp_drop_tools(struct mcp_session *s);
bool dgm_mcp_tools_are_fresh(struct mcp_session *s);
/* By name or own name; NULL: unknown. */
const dgm_mcp_tool *dgm_mcp_find_tool(const struct mcp_tool_list *l, dgm_str name,
                                      const struct mcp_tool **ret_more);
/* Names for models: own names without forbidden characters, unique. */
void dgm_mcp_name_tools(dgm_arena *a, dgm_str server, dgm_mcp_tool *tools, size_t n);

/* ---- calls ------------------------------------------------------------------------------------------- */

enum mcp_question_from {
    MCP_FROM_ROUND,   /* inputRequests: answered by the next request */
    MCP_FROM_REQUEST, /* 2025-11-25: a request of the server */
    MCP_FROM_ERROR,   /* 2025-11-25: the call is sent again when all URLs were opened */
};

struct mcp_question {
    struct mcp_question *next;
    enum mcp_question_from from;
    dgm_str key;          /* ROUND */
    const yyjson_val *id; /* REQUEST */
    dgm_mcp_ask ask;
    bool is_shown;
    dgm_mcp_action action;
    dgm_str answer; /* the result as JSON text; absent: not answered yet */
};

struct dgm_mcp_call {
    struct mcp_waiter waiter;
    dgm_mcp *mcp;
    dgm_loop *loop;
    struct mcp_session *session; /* valid while it waits or has a request or polls */
    dgm_arena *arena;            /* the call itself */
    dgm_arena *round;            /* of the last reply and its questions */
    dgm_mcp_call_handler handler;
    dgm_str share_key, tool, call_id, traceparent;
    uint64_t fence;
    const yyjson_val *arguments; /* an object */
    struct mcp_request *request;
    dgm_timer timer; /* how long it may take */
    dgm_timer pause; /* before the next round or poll */
    dgm_loop_turn turn;
    uint64_t timeout_ms;
    size_t n_rounds, n_polls_failed;
    bool counts;       /* in session->n_calls */
    bool was_sent;     /* the server may have run the tool */
    bool was_repeated; /* after a refusal that says that it was not run */
    bool is_freeing;
    /* rounds */
    dgm_str request_state;      /* absent: none. In `round` */
    const yyjson_val *requests; /* inputRequests of this round; NULL: none. In `round` */
    dgm_buf responses;          /* members of inputResponses */
    struct mcp_question *questions, **last_question;
    size_t n_questions;
    bool is_declined; /* one of the URLs of an error was not opened */
    /* tasks */
    dgm_str task_id; /* absent: it is not a task */
    uint64_t poll_ms;
    dgm_strs answered; /* keys of questions of the task; in `arena` */
};

void dgm_mcp_call_finish(dgm_mcp_call *c, const dgm_mcp_result *result, const dgm_mcp_error *error);
void dgm_mcp_call_fail(dgm_mcp_call *c, dgm_code code, bool is_unknown, const char *fmt, ...)
    DGM_PRINTF(4, 5);
void dgm_mcp_call_result(dgm_mcp_call *c, yyjson_val *result); /* of tools/call or a task */
/* A request of this call; progress and questions belong to it. */
void dgm_mcp_call_request(dgm_mcp_call *c, struct mcp_send *send);
bool dgm_mcp_call_replied(dgm_mcp_call *c); /* first in on_reply */
void dgm_mcp_call_again(dgm_mcp_call *c);   /* waits for the session first */
void dgm_mcp_call_alive(dgm_mcp_call *c);   /* a sign of life: the time starts over */
void dgm_mcp_call_progress(dgm_mcp_call *c, const yyjson_val *params);

/* mcp_ask.c */
dgm_code dgm_mcp_read_ask(dgm_arena *a, const yyjson_val *params, dgm_mcp_ask *ret_ask,
                          dgm_err *err);
/* inputRequests: its questions are asked one after the other, then the round goes on. */
void dgm_mcp_ask_round(dgm_mcp_call *c);
void dgm_mcp_ask_request(struct mcp_session *s, struct mcp_request *of, const yyjson_val *id,
                         const yyjson_val *params);
void dgm_mcp_ask_urls(dgm_mcp_call *c, const yyjson_val *data);
void dgm_mcp_ask_turn(dgm_mcp_call *c);   /* the first question was answered */
void dgm_mcp_ask_cancel(dgm_mcp_call *c); /* the call ends: so do its questions */
bool dgm_mcp_ask_is_open(const dgm_mcp_call *c);
void dgm_mcp_emit_state(dgm_mcp_call *c);
/* Continues from the text of on_state. */
dgm_code dgm_mcp_load_state(dgm_mcp_call *c, dgm_str state, dgm_err *err);

/* mcp_task.c */
void dgm_mcp_task_created(dgm_mcp_call *c, const yyjson_val *result);
void dgm_mcp_task_poll(dgm_mcp_call *c);
void dgm_mcp_task_cancel(dgm_mcp_call *c);

/* mcp_result.c */
dgm_code dgm_mcp_read_result(dgm_arena *a, const yyjson_val *result, dgm_mcp_result *ret_result,
                             dgm_err *err);

/* yyjson's readers do not say const. */
static inline yyjson_val *dgm_mcp_plain(const yyjson_val *v)
{
    return (yyjson_val *)(uintptr_t)v;
}
