/*
 * example_front.c - POST /example/{name}/greeting with a text gets {"name":...,"text":...}.
 *
 * A real frontend reads the request with its codec and starts a turn (dgm_turn_ask); this one only shows the contract
 * of a frontend: its routes, its errors, its struct. The codec is in example_codec.c.
 */
#include "example_front.h"
#include "frontend/words.h"
#include "json/json.h"

/* Errors of the router, and its own: {"problem":"..."}. */
static void example_refuse(const dgm_front_request *q, const dgm_err *err,
                           const dgm_http_header *headers, size_t n)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"problem\":");
    dgm_json_put_str(&b, dgm_str_from(err->msg));
    dgm_buf_add_char(&b, '}');
    dgm_http_respond(q->x, dgm_code_http(err->code, false), DGM_STR("application/json"), headers, n,
                     dgm_buf_str(&b));
    dgm_buf_done(&b);
}

static void example_refuse_method(const dgm_front_request *q, const char *allow)
{
    dgm_http_header header = {DGM_STR("Allow"), dgm_str_from(allow)};
    dgm_http_respond(q->x, 405, DGM_STR("application/json"), &header, 1,
                     DGM_STR("{\"problem\":\"method not allowed\"}"));
}

static void example_handle_greeting(const dgm_front_request *q)
{
    dgm_str name;
    dgm_buf b;
    if (!dgm_percent_decode(dgm_http_arena(q->x), q->params[0], false, &name)) {
        dgm_err err = {0};
        dgm_fail(&err, DGM_BAD_PARAMS, NULL, "invalid percent-encoding in the path");
        example_refuse(q, &err, NULL, 0);
        return;
    }
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"name\":");
    dgm_json_put_str(&b, name);
    dgm_buf_add_lit(&b, ",\"text\":");
    dgm_json_put_str(&b, dgm_http_request_of(q->x)->body);
    dgm_buf_add_char(&b, '}');
    dgm_http_respond(q->x, 200, DGM_STR("application/json"), NULL, 0, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

static const dgm_route example_routes[] = {
    {DGM_ROUTE_POST, "/example/{name}/greeting", "Greet", DGM_ACCESS_CALLER, DGM_BODY_MESSAGES,
     example_handle_greeting, 0, DGM_SCOPE_AGENT},
};
/* "/" because it is the only frontend of the test; in the server A2A has it. */
static const char *const example_prefixes[] = {"/", NULL};

const dgm_frontend dgm_front_example = {.name = "example",
                                        .title = "Example",
                                        .base = "/example",
                                        DGM_ROUTES(example_routes),
                                        .prefixes = example_prefixes,
                                        .refuse = example_refuse,
                                        .refuse_method = example_refuse_method};
