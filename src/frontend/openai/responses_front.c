/* frontend/openai/responses_front.c - paths of responses and conversations, and how they are answered. */
#include "frontend/openai/responses_front_int.h"
#include "frontend/words.h"

/* ---- answers ------------------------------------------------------------------------------------------------------- */

void responses_fail(struct responses_op *op, const dgm_err *err)
{
    dgm_err told = *err;
    if (!strcmp(told.at, "/messages")) /* what turns call it */
        memcpy(told.at, "/input", sizeof "/input");
    openai_fail_err(op->x, &told, op->body);
}

void responses_fail_missing(struct responses_op *op, const char *what, dgm_str id)
{
    struct openai_error e = {.http = 404,
                             .type = "invalid_request_error",
                             .message =
                                 dgm_arena_printf(op->arena, "%s with id '%.*s' not found.", what,
                                                  (int)(id.n < 200 ? id.n : 200), id.p)};
    openai_fail(op->x, &e);
}

void responses_respond(struct responses_op *op, dgm_str json)
{
    dgm_http_respond(op->x, 200, DGM_STR("application/json"), NULL, 0, json);
}

bool responses_read_body(struct responses_op *op, dgm_code (*check)(yyjson_val *, dgm_err *))
{
    dgm_err err = {0};
    if (!dgm_turn_body(op->x, &op->body, &err) && !check(op->body, &err))
        return true;
    responses_fail(op, &err);
    return false;
}

/* ---- paths --------------------------------------------------------------------------------------------------------- */

typedef void (*run_fn)(struct responses_op *op);

struct way {
    const char *method, *name;
    run_fn run;
};

static const struct path {
    const char *steps[4]; /* "" is any: an id */
    const char *allow;
    struct way ways[3];
} paths[] = {
    {{"responses"}, "POST", {{"POST", "CreateResponse", responses_create}}},
    {{"responses", ""},
     "GET, HEAD, DELETE",
     {{"GET", "GetResponse", responses_retrieve}, {"DELETE", "DeleteResponse", responses_delete}}},
    {{"responses", "", "cancel"}, "POST", {{"POST", "CancelResponse", responses_cancel}}},
    {{"responses", "", "input_items"},
     "GET, HEAD",
     {{"GET", "ListInputItems", responses_input_items}}},
    {{"conversations"}, "POST", {{"POST", "CreateConversation", conversation_create}}},
    {{"conversations", ""},
     "GET, HEAD, POST, DELETE",
     {{"GET", "GetConversation", conversation_give},
      {"POST", "UpdateConversation", conversation_update},
      {"DELETE", "DeleteConversation", conversation_delete}}},
    {{"conversations", "", "items"},
     "GET, HEAD, POST",
     {{"GET", "ListConversationItems", conversation_list_items},
      {"POST", "AddConversationItems", conversation_add_items}}},
    {{"conversations", "", "items", ""},
     "GET, HEAD, DELETE",
     {{"GET", "GetConversationItem", conversation_give_item},
      {"DELETE", "DeleteConversationItem", conversation_delete_item}}},
};
#define MAX_STEPS 4

/* "/a/b" as its steps; more than there may be: MAX_STEPS + 1. */
static size_t split(dgm_str path, dgm_str steps[MAX_STEPS])
{
    size_t n = 0;
    while (path.n > 1) {
        path = (dgm_str){path.p + 1, path.n - 1}; /* the slash */
        const char *slash = memchr(path.p, '/', path.n);
        dgm_str step = {path.p, slash ? (size_t)(slash - path.p) : path.n};
        path = (dgm_str){path.p + step.n, path.n - step.n};
        if (n == MAX_STEPS)
            return MAX_STEPS + 1;
        steps[n++] = step;
    }
    return n;
}

static bool is_path(const struct path *p, const dgm_str *steps, size_t n)
{
    for (size_t i = 0; i < MAX_STEPS; i++) {
        const char *want = p->steps[i];
        if (i >= n || !want)
            return i >= n && !want;
        if (*want && !dgm_str_eq(steps[i], dgm_str_from(want)))
            return false;
        if (!*want && !steps[i].n)
            return false;
    }
    return true;
}

static const struct way *way_of(const struct path *p, dgm_str method)
{
    if (dgm_str_is(method, "HEAD"))
        method = DGM_STR("GET");
    for (size_t i = 0; i < 3 && p->ways[i].method; i++) {
        if (dgm_str_eq(method, dgm_str_from(p->ways[i].method)))
            return &p->ways[i];
    }
    return NULL;
}

static void run(const dgm_turn_request *q, const struct way *way, const dgm_str *steps, size_t n)
{
    struct responses_op *op = dgm_new(dgm_http_arena(q->x), struct responses_op);
    *op = (struct responses_op){.q = *q,
                                .x = q->x,
                                .arena = dgm_http_arena(q->x),
                                .core = dgm_turns_options_of(q->turns)->core};
    dgm_front_note_kind(q->x, DGM_FRONT_OPENAI, way->name);
    /* what is no percent code is no id of ours either */
    if (n > 1 && !dgm_percent_decode(op->arena, steps[1], false, &op->id))
        op->id = steps[1];
    if (n > 3 && !dgm_percent_decode(op->arena, steps[3], false, &op->item))
        op->item = steps[3];
    way->run(op);
}

bool dgm_responses_take(const dgm_turn_request *q, dgm_str path_below_v1)
{
    dgm_str steps[MAX_STEPS];
    size_t n = split(path_below_v1, steps);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (!is_path(&paths[i], steps, n))
            continue;
        const struct way *way = way_of(&paths[i], dgm_http_request_of(q->x)->method);
        if (way)
            run(q, way, steps, n);
        else
            openai_fail_method(q->x, paths[i].allow);
        return true;
    }
    return false;
}
