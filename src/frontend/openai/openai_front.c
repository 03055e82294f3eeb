/* frontend/openai/openai_front.c - routes below /v1. */
#include "frontend/openai/openai_front.h"
#include "base/ids.h"
#include "frontend/openai/openai_errors.h"
#include "frontend/openai/openai_files.h"
#include "frontend/openai/openai_model.h"
#include "frontend/openai/responses_front_int.h"

void dgm_openai_name_request(dgm_http_exchange *x)
{
    dgm_front_note *note = *dgm_http_tag(x);
    char uuid[DGM_UUID_CHARS + 1];
    if (dgm_http_header_of(dgm_http_request_of(x), DGM_STR("x-request-id")).n)
        return; /* the response repeats the caller's own request id */
    dgm_http_header *also = dgm_new(dgm_http_arena(x), dgm_http_header);
    dgm_uuid7(uuid);
    *also = (dgm_http_header){
        DGM_STR("x-request-id"),
        dgm_arena_join(dgm_http_arena(x), DGM_STR("req_"), (dgm_str){uuid, DGM_UUID_CHARS})};
    dgm_http_add_headers(x, also, 1);
    if (note)
        note->request = dgm_http_keep_text(x, also->value);
}

static void openai_refuse(const dgm_front_request *q, const dgm_err *err,
                          const dgm_http_header *headers, size_t n)
{
    dgm_openai_name_request(q->x);
    struct openai_error e = dgm_openai_error_of(dgm_http_arena(q->x), err, NULL);
    dgm_openai_fail_with(q->x, &e, headers, n);
}

static void openai_refuse_method(const dgm_front_request *q, const char *allow)
{
    dgm_openai_name_request(q->x);
    dgm_openai_fail_method(q->x, allow);
}

/* ---- routes ----------------------------------------------------------------------------------------------------- */

static void openai_handle_chat(const dgm_front_request *q)
{
    dgm_openai_name_request(q->x);
    dgm_chat_create(q);
}

static void openai_handle_models(const dgm_front_request *q)
{
    dgm_openai_name_request(q->x);
    if (q->params[0].n)
        dgm_openai_model_send(q, q->params[0]);
    else
        dgm_openai_model_list(q);
}

static void openai_handle_file(const dgm_front_request *q)
{
    dgm_openai_name_request(q->x);
    dgm_openai_file_send(q, q->params[0]);
}

/* clang-format off */
#define ROUTE(method, pattern, operation, body, handle) {DGM_ROUTE_##method, pattern, operation, DGM_ACCESS_CALLER, DGM_BODY_##body, handle, 0, DGM_SCOPE_AGENT}
static const dgm_route openai_routes[] = {
    ROUTE(POST,   "/v1/chat/completions",                "chat.completions",       MESSAGES, openai_handle_chat),
    ROUTE(GET,    "/v1/models[/]",                       "models",                 SMALL,    openai_handle_models),
    ROUTE(GET,    "/v1/models/{model...}",               "models",                 SMALL,    openai_handle_models),
    ROUTE(GET,    "/v1/files/{file...}/content",         "files.content",          SMALL,    openai_handle_file),
    ROUTE(POST,   "/v1/responses[/]",                    "CreateResponse",         MESSAGES, dgm_responses_create),
    ROUTE(GET,    "/v1/responses/{response}[/]",         "GetResponse",            SMALL,    dgm_responses_retrieve),
    ROUTE(DELETE, "/v1/responses/{response}[/]",         "DeleteResponse",         SMALL,    dgm_responses_delete),
    ROUTE(POST,   "/v1/responses/{response}/cancel[/]",  "CancelResponse",         SMALL,    dgm_responses_cancel),
    ROUTE(GET,    "/v1/responses/{response}/input_items[/]", "ListInputItems",     SMALL,    dgm_responses_input_items),
    ROUTE(POST,   "/v1/conversations[/]",                "CreateConversation",     MESSAGES, dgm_conversation_create),
    ROUTE(GET,    "/v1/conversations/{conversation}[/]", "GetConversation",        SMALL,    dgm_conversation_get),
    ROUTE(POST,   "/v1/conversations/{conversation}[/]", "UpdateConversation",     SMALL,    dgm_conversation_update),
    ROUTE(DELETE, "/v1/conversations/{conversation}[/]", "DeleteConversation",     SMALL,    dgm_conversation_delete),
    ROUTE(GET,    "/v1/conversations/{conversation}/items[/]", "ListConversationItems", SMALL,    dgm_conversation_list_items),
    ROUTE(POST,   "/v1/conversations/{conversation}/items[/]", "AddConversationItems",  MESSAGES, dgm_conversation_add_items),
    ROUTE(GET,    "/v1/conversations/{conversation}/items/{item}[/]", "GetConversationItem",    SMALL, dgm_conversation_get_item),
    ROUTE(DELETE, "/v1/conversations/{conversation}/items/{item}[/]", "DeleteConversationItem", SMALL, dgm_conversation_delete_item),
};
/* clang-format on */

/* Also unknown paths get OpenAI's errors, because its libraries can read no others. A2A 0.3 over HTTP has some paths
 * below /v1, too. */
static const char *const openai_prefixes[] = {"/v1", NULL};

const dgm_frontend dgm_front_openai = {
    .name = "openai",
    .title = "OpenAI",
    .base = "/v1",
    DGM_ROUTES(openai_routes),
    .prefixes = openai_prefixes,
    .unknown_path = "unknown path; below /v1 there are /chat/completions, /responses, "
                    "/conversations, /models and /files",
    .refuse = openai_refuse,
    .refuse_method = openai_refuse_method};
