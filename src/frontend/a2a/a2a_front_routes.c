/*
 * frontend/a2a/a2a_front_routes.c - paths: which operation, whose, of which version.
 *
 * In this order: what is written out below; 0.3's routes under /v1; 1.0's; 1.0's behind a tenant's name.
 * So /tasks/tasks is the task `tasks`, not the list of a tenant of that name.
 */
#include "frontend/a2a/a2a_front_int.h"

#define MAX_SEGMENTS 5 /* TENANT/tasks/ID/pushNotificationConfigs/ID */

struct segments {
    dgm_str at[MAX_SEGMENTS];
    size_t n;
};

/* False: too many, or one is empty. */
static bool split(dgm_str path, struct segments *ret)
{
    ret->n = 0;
    while (path.n && path.p[0] == '/') {
        dgm_str rest = {path.p + 1, path.n - 1};
        const char *slash = rest.n ? memchr(rest.p, '/', rest.n) : NULL;
        dgm_str segment = {rest.p, slash ? (size_t)(slash - rest.p) : rest.n};
        if (!segment.n || ret->n == MAX_SEGMENTS)
            return false;
        ret->at[ret->n++] = segment;
        path = (dgm_str){rest.p + segment.n, rest.n - segment.n};
    }
    return ret->n && !path.n;
}

/* Takes a verb off the end of a segment; ids may have colons of their own. */
static bool cut_verb(dgm_str *segment, dgm_str verb)
{
    if (segment->n <= verb.n || memcmp(segment->p + segment->n - verb.n, verb.p, verb.n) != 0)
        return false;
    segment->n -= verb.n;
    return true;
}

static bool match_task(const dgm_str *s, size_t n, struct route *r)
{
    r->task_id = s[0];
    if (n == 1) {
        if (cut_verb(&r->task_id, DGM_STR(":cancel")))
            r->on_post = DGM_METHOD_CANCEL;
        else if (cut_verb(&r->task_id, DGM_STR(":subscribe")))
            r->on_get = r->on_post = DGM_METHOD_SUBSCRIBE;
        else
            r->on_get = DGM_METHOD_GET;
        return true;
    }
    if (n == 2 && dgm_str_is(s[1], "subscribe")) { /* what Rust's clients try */
        r->on_get = r->on_post = DGM_METHOD_SUBSCRIBE;
        return true;
    }
    if (!dgm_str_is(s[1], "pushNotificationConfigs") || n > 3)
        return false;
    if (n == 2) {
        r->on_get = DGM_METHOD_PUSH_LIST;
        r->on_post = DGM_METHOD_PUSH_CREATE;
    } else {
        r->config_id = s[2];
        r->on_get = DGM_METHOD_PUSH_GET;
        r->on_delete = DGM_METHOD_PUSH_DELETE;
    }
    return true;
}

static bool match(const dgm_str *s, size_t n, struct route *r)
{
    if (!n)
        return false;
    if (dgm_str_is(s[0], "tasks") && n > 1)
        return match_task(s + 1, n - 1, r);
    if (n > 1)
        return false;
    if (dgm_str_is(s[0], "message:send"))
        r->on_post = DGM_METHOD_SEND;
    else if (dgm_str_is(s[0], "message:stream"))
        r->on_post = DGM_METHOD_STREAM;
    else if (dgm_str_is(s[0], "tasks"))
        r->on_get = DGM_METHOD_LIST;
    else if (r->v03 ? dgm_str_is(s[0], "card") : dgm_str_is(s[0], "extendedAgentCard"))
        r->on_get = DGM_METHOD_EXTENDED_CARD;
    else
        return false;
    return true;
}

static bool is_rpc(dgm_str path)
{
    return dgm_str_is(path, "/") || dgm_str_is(path, "/a2a") || dgm_str_is(path, "/a2a/") ||
           dgm_str_is(path, "/api/a2a") || dgm_str_is(path, "/api/a2a/");
}

/* Words that begin paths of the server's own. */
static bool is_reserved(dgm_str segment)
{
    static const char *const words[] = {"v1",     "a2a",     "api",    "agents",
                                        "ag-ui",  "ai-sdk",  "simple", "healthz",
                                        "readyz", "metrics", "tasks",  ".well-known"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (dgm_str_eq(segment, dgm_str_from(words[i])))
            return true;
    }
    return false;
}

struct route route_of(dgm_str path)
{
    struct route r = {.kind = ROUTE_REST};
    struct segments s;
    if (is_rpc(path))
        return (struct route){.kind = ROUTE_RPC, .on_post = DGM_METHOD_SEND};
    if (dgm_str_is(path, "/.well-known/agent-card.json"))
        return (struct route){.kind = ROUTE_CARD, .on_get = DGM_METHOD_EXTENDED_CARD};
    if (!split(path, &s))
        return (struct route){0};
    if (dgm_str_is(s.at[0], "v1")) {
        r.v03 = true;
        if (match(s.at + 1, s.n - 1, &r))
            return r;
        return (struct route){.v03 = true};
    }
    if (match(s.at, s.n, &r))
        return r;
    r = (struct route){.kind = ROUTE_REST, .tenant = s.at[0]};
    if (!is_reserved(s.at[0]) && match(s.at + 1, s.n - 1, &r))
        return r;
    return (struct route){0};
}

const char *route_allows(const struct route *r)
{
    if (r->kind == ROUTE_NONE)
        return NULL;
    if (r->on_get == DGM_METHOD_SUBSCRIBE)
        return "GET, POST, OPTIONS"; /* no HEAD: a stream has no end to look ahead to */
    if (r->on_get)
        return r->on_post     ? "GET, HEAD, POST, OPTIONS"
               : r->on_delete ? "GET, HEAD, DELETE, OPTIONS"
                              : "GET, HEAD, OPTIONS";
    return "POST, OPTIONS";
}
