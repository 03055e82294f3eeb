/*
 * frontend/frontend.h - the contract of a frontend: one protocol that callers use.
 *
 * A frontend is one struct: its name, its routes, and how it reports errors. The router (app/serve) finds the route of
 * a request from its head (route.h), checks the caller and the size of the body, and calls the route's handler. No
 * frontend knows another one. docs/internals/adding-a-protocol.md has an example.
 *
 * The router also attaches a note to every exchange, for logs and metrics; frontends fill it in. In tests without a
 * router there is no note, and nothing is written.
 */
#pragma once

#include "core/core.h"
#include "net/address.h"
#include "net/http.h"

#include <stdatomic.h>

typedef struct dgm_frontend dgm_frontend;
typedef struct dgm_front_request dgm_front_request;

/* ---- routes ------------------------------------------------------------------------------------------------------ */

typedef enum dgm_route_method {
    DGM_ROUTE_GET,    /* and HEAD */
    DGM_ROUTE_STREAM, /* GET without HEAD: a stream has no length to report */
    DGM_ROUTE_POST,
    DGM_ROUTE_DELETE
} dgm_route_method;

typedef enum dgm_access {
    DGM_ACCESS_PUBLIC,   /* no token is needed */
    DGM_ACCESS_CALLER,   /* a known token, or any caller of a server without tokens */
    DGM_ACCESS_OPERATOR, /* the operator of the server; others get 403 */
    DGM_ACCESS_INSPECTOR /* the operator; callers for their own tasks, if the setting `inspect` allows it */
} dgm_access;

typedef enum dgm_body_limit {
    DGM_BODY_SMALL,    /* DGM_MAX_SMALL_BODY_BYTES: a few members at most */
    DGM_BODY_MESSAGES, /* limits.http_body_bytes: the body has messages */
    DGM_BODY_STREAM    /* the same: many values, which are decoded one by one */
} dgm_body_limit;

typedef enum dgm_route_scope {
    DGM_SCOPE_AGENT,  /* at "/" (the default agent) and below "/agents/ID" */
    DGM_SCOPE_SERVER, /* a path of the server: not below "/agents/ID" */
    DGM_SCOPE_ANY     /* like AGENT, and the handler answers also for an ID that does not exist */
} dgm_route_scope;

/*
 * One row of the route table. Segments of a pattern:
 *
 *   name           this text
 *   {id}           any text that is not empty; {id}:cancel with this text behind it
 *   {id...}        the rest of the path, slashes included; {id...}/content with this text behind it
 *   [/]            at the end: with or without a slash
 *
 * Text wins over placeholders, and there is no way back: where "/tasks" is a route, no tenant of "/{tenant}/..." is
 * called "tasks". A pattern may have {tenant} and two more placeholders.
 */
typedef struct dgm_route {
    dgm_route_method method;
    const char *pattern;   /* below the address of the agent: "/" or "/agents/ID" */
    const char *operation; /* for logs and docs; NULL: the handler sets it */
    dgm_access access;
    dgm_body_limit body;
    void (*handle)(const dgm_front_request *q); /* responds, now or later */
    int op;                                     /* the frontend's own number for the operation */
    dgm_route_scope scope;
} dgm_route;

struct dgm_frontend {
    const char *name;        /* the label `route` of metrics: "openai" */
    const char *title;       /* in the index at /, with `base`; NULL: not listed there */
    const char *base;        /* "/v1" */
    const dgm_route *routes; /* DGM_ROUTES(array) sets both */
    size_t n_routes;
    const char *const
        *prefixes; /* NULL-terminated: unknown paths below these get its errors; NULL: none */
    const char *unknown_path; /* the message then; NULL: the router's */
    bool lists_options;       /* Allow names OPTIONS */
    bool serves_early;        /* also before the first configuration is in use */
    bool is_probe;            /* its requests are logged at debug */
    bool needs_role;          /* its handlers read is_operator and the two below it */
    /* Responds with an error of the router (credentials, origin, unknown path, too large) in the protocol's format. NULL:
     * like the other frontends at this path. */
    void (*refuse)(const dgm_front_request *q, const dgm_err *err, const dgm_http_header *headers,
                   size_t n);
    /* Responds to a method that the path does not have. allow: the value of the header. NULL: such a request is one for
     * an unknown path. */
    void (*refuse_method)(const dgm_front_request *q, const char *allow);
};
#define DGM_ROUTES(array) .routes = (array), .n_routes = sizeof(array) / sizeof *(array)

/* One request, in the exchange's arena. */
struct dgm_front_request {
    dgm_http_exchange *x;
    struct dgm_turns *turns; /* the state that frontends share: turn/turn.h */
    const struct dgm_turn_agent
        *agent;       /* at /agents/ID; NULL: the default, or what the body names */
    dgm_owner owner;  /* the caller */
    dgm_strs may_set; /* prefixes of the server's metadata that the caller's token may set */
    bool any_tenant;  /* the caller may name any tenant (no tokens); else only its own */
    /* Further permissions of the caller; set for frontends with needs_role. */
    bool is_operator;
    bool may_inspect;     /* records of its own tasks; an operator those of every owner */
    bool may_call_remote; /* let the server call other A2A servers for it */
    dgm_address_ranges allowed_addresses; /* of may_call_remote: those that are not public */
    dgm_str path;                         /* below the agent's address */
    /* the match (route.h) */
    const dgm_route *route;       /* NULL: the path or the method is unknown */
    const dgm_frontend *front;    /* of the route, or of the path; NULL: unknown path */
    const dgm_frontend *reporter; /* reports errors at this path; it has `refuse` */
    const char *allow;            /* the methods of the path; NULL: unknown path */
    dgm_access access;
    dgm_str agent_id;  /* from "/agents/ID"; p NULL: none */
    dgm_str tenant;    /* {tenant}; absent: none */
    dgm_str params[2]; /* the other placeholders, in order; not decoded */
};

/* ---- notes ------------------------------------------------------------------------------------------------------- */

/* The tag of an exchange (dgm_http_tag); NULL: it has none. */
typedef struct dgm_front_note {
    const dgm_frontend *front; /* NULL: an unknown path */
    uint32_t turn;             /* 0: none */
    bool is_stream;
    const char *operation;      /* "SendMessage", of a fixed set; NULL: not known */
    const char *task;           /* its id, cut; NULL: none */
    const char *request;        /* an id of the request that the response names; NULL: none */
    _Atomic int64_t *n_streams; /* open ones */
} dgm_front_note;

static inline void dgm_front_note_operation(dgm_http_exchange *x, const char *operation)
{
    dgm_front_note *n = *dgm_http_tag(x);
    if (n)
        n->operation = operation;
}

static inline void dgm_front_note_task(dgm_http_exchange *x, dgm_str id, uint32_t turn)
{
    dgm_front_note *n = *dgm_http_tag(x);
    size_t most = 63;
    if (!n || !id.n)
        return;
    n->task = dgm_http_keep_text(x, (dgm_str){id.p, id.n < most ? id.n : most});
    n->turn = turn;
}

/* The response is a stream. */
static inline void dgm_front_note_stream(dgm_http_exchange *x)
{
    dgm_front_note *n = *dgm_http_tag(x);
    if (!n || n->is_stream)
        return;
    n->is_stream = true;
    if (n->n_streams)
        atomic_fetch_add_explicit(n->n_streams, 1, memory_order_relaxed);
}
