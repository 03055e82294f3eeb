/* frontend/openai/openai_front.c - paths below /v1. */
#include "frontend/openai/openai_front.h"
#include "base/ids.h"
#include "frontend/openai/chat_front_int.h"
#include "frontend/openai/openai_errors.h"
#include "frontend/openai/openai_files.h"
#include "frontend/openai/openai_model.h"

/* What stands behind the prefix; absent: it has another. "/models" is no prefix of "/modelsx". */
static dgm_str below(dgm_str path, dgm_str prefix)
{
    if (!dgm_str_starts(path, prefix) || (path.n > prefix.n && path.p[prefix.n] != '/'))
        return (dgm_str){0};
    return (dgm_str){path.p + prefix.n, path.n - prefix.n};
}

/* The path below /v1. Absent: it is not below /v1, or it belongs to A2A 0.3 over HTTP, which has these names there.
 * Every other path is ours, also an unknown one: OpenAI's libraries can read only OpenAI's errors. */
static dgm_str ours(dgm_str path)
{
    static const char *const a2a[] = {"/message:", "/tasks", "/card"};
    dgm_str rest = below(path, DGM_STR("/v1"));
    for (size_t i = 0; rest.p && i < sizeof a2a / sizeof *a2a; i++) {
        if (dgm_str_starts(rest, dgm_str_from(a2a[i])))
            return (dgm_str){0};
    }
    return rest;
}

static void fail_unknown(dgm_http_exchange *x)
{
    dgm_err err = {0};
    dgm_front_note_kind(x, DGM_FRONT_OPENAI, NULL);
    dgm_fail(&err, DGM_NO_SUCH_METHOD, NULL,
             "unknown path; below /v1 there are /chat/completions, /responses, /conversations, "
             "/models and /files");
    openai_fail_err(x, &err, NULL);
}

/* False: another method, and the caller was told. */
static bool is_method(dgm_http_exchange *x, bool post)
{
    dgm_str method = dgm_http_request_of(x)->method;
    if (post ? dgm_str_is(method, "POST") : dgm_str_is(method, "GET") || dgm_str_is(method, "HEAD"))
        return true;
    openai_fail_method(x, post ? "POST" : "GET, HEAD");
    return false;
}

static void take_models(const dgm_turn_request *q, dgm_str rest)
{
    dgm_front_note_kind(q->x, DGM_FRONT_OPENAI, "models");
    if (!is_method(q->x, false))
        return;
    if (rest.n > 1)
        openai_model_give(q, (dgm_str){rest.p + 1, rest.n - 1});
    else
        openai_model_list(q);
}

/* /ID/content */
static void take_files(const dgm_turn_request *q, dgm_str rest)
{
    dgm_str end = DGM_STR("/content");
    dgm_front_note_kind(q->x, DGM_FRONT_OPENAI, "files.content");
    if (rest.n < end.n + 2 || memcmp(rest.p + rest.n - end.n, end.p, end.n) != 0)
        fail_unknown(q->x);
    else if (is_method(q->x, false))
        openai_file_give(q, (dgm_str){rest.p + 1, rest.n - end.n - 1});
}

static void take_chat(const dgm_turn_request *q, dgm_str rest)
{
    dgm_front_note_kind(q->x, DGM_FRONT_OPENAI, "chat.completions");
    if (!dgm_str_is(rest, "/completions"))
        fail_unknown(q->x);
    else if (is_method(q->x, true))
        chat_take(q);
}

/* OpenAI's libraries show how an answer calls its request, with every error: it is found in the log by that. */
static void name_request(dgm_http_exchange *x)
{
    dgm_front_note *note = dgm_front_note_of(x);
    char uuid[DGM_UUID_CHARS + 1];
    if (dgm_http_header_of(dgm_http_request_of(x), DGM_STR("x-request-id")).n)
        return; /* it is the caller's name that is told */
    dgm_http_header *also = dgm_new(dgm_http_arena(x), dgm_http_header);
    dgm_uuid7(uuid);
    *also = (dgm_http_header){
        DGM_STR("x-request-id"),
        dgm_arena_join(dgm_http_arena(x), DGM_STR("req_"), (dgm_str){uuid, DGM_UUID_CHARS})};
    dgm_http_add_headers(x, also, 1);
    if (note)
        note->request = dgm_http_keep_text(x, also->value);
}

static bool take(const dgm_turn_request *q)
{
    dgm_str path = ours(q->path), rest;
    if (!path.p)
        return false;
    name_request(q->x);
    if ((rest = below(path, DGM_STR("/chat"))).p)
        take_chat(q, rest);
    else if ((rest = below(path, DGM_STR("/models"))).p)
        take_models(q, rest);
    else if ((rest = below(path, DGM_STR("/files"))).p)
        take_files(q, rest);
    else if (!dgm_responses_take(q, path))
        fail_unknown(q->x);
    return true;
}

static bool refuse(dgm_http_exchange *x, dgm_str path, const dgm_err *err,
                   const dgm_http_header *headers, size_t n)
{
    if (!ours(path).p)
        return false;
    dgm_front_note_kind(x, DGM_FRONT_OPENAI, NULL);
    name_request(x);
    struct openai_error e = openai_error_of(dgm_http_arena(x), err, NULL);
    openai_fail_with(x, &e, headers, n);
    return true;
}

const dgm_turn_front dgm_front_openai = {.name = "openai", .take = take, .refuse = refuse};
