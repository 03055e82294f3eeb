/* app/serve/routes.c - the list of frontends, and their routes as a table for docs. */
#include "app/serve/routes.h"
#include "app/inspect/inspect.h"
#include "app/serve/pages.h"
#include "frontend/a2a/a2a_front.h"
#include "frontend/agui/agui_front.h"
#include "frontend/aisdk/aisdk_front.h"
#include "frontend/openai/openai_front.h"
#include "frontend/simple/simple_front.h"

const dgm_frontend *const dgm_frontends[] = {&dgm_front_operations,
                                             &dgm_front_a2a_rpc,
                                             &dgm_front_a2a_rest,
                                             &dgm_front_openai,
                                             &dgm_front_agui,
                                             &dgm_front_aisdk,
                                             &dgm_front_simple,
                                             &dgm_front_a2a_card,
                                             &dgm_front_catalog,
                                             &dgm_front_page,
                                             &dgm_front_debug,
                                             &dgm_front_inspect,
                                             NULL};

_Static_assert(sizeof dgm_frontends / sizeof *dgm_frontends <= DGM_MAX_FRONTENDS + 1,
               "DGM_MAX_FRONTENDS");

static void routes_put_row(dgm_buf *out, const dgm_frontend *front, const dgm_route *r)
{
    static const char *const methods[] = {[DGM_ROUTE_GET] = "GET, HEAD",
                                          [DGM_ROUTE_STREAM] = "GET",
                                          [DGM_ROUTE_POST] = "POST",
                                          [DGM_ROUTE_DELETE] = "DELETE"};
    static const char *const access[] = {[DGM_ACCESS_PUBLIC] = "public",
                                         [DGM_ACCESS_CALLER] = "token",
                                         [DGM_ACCESS_OPERATOR] = "operator",
                                         [DGM_ACCESS_INSPECTOR] = "operator; `inspect`"};
    dgm_buf_printf(out, "| %s | `%s` | %s | `%s` | %s | %s |\n", methods[r->method], r->pattern,
                   r->operation ? r->operation : "the method in the body", front->name,
                   access[r->access],
                   r->body == DGM_BODY_SMALL ? "`small_body_bytes`" : "`http_body_bytes`");
}

void dgm_routes_put_markdown(dgm_buf *out)
{
    dgm_buf_add_lit(out, "| method | path | operation | `route` | access | body limit |\n"
                         "|---|---|---|---|---|---|\n");
    for (size_t i = 0; dgm_frontends[i]; i++) {
        for (size_t k = 0; k < dgm_frontends[i]->n_routes; k++)
            routes_put_row(out, dgm_frontends[i], &dgm_frontends[i]->routes[k]);
    }
}
