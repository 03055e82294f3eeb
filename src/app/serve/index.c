/* app/serve/index.c - the text index. */
#include "app/serve/index.h"
#include "base/limits.h"
#include "frontend/cached.h"
#include "frontend/frontend.h"

/* ---- unknown agents ----------------------------------------------------------------------------------------------- */

static dgm_str index_id_of(dgm_str path)
{
    dgm_str prefix = DGM_STR("/agents/");
    dgm_str id = dgm_str_starts(path, prefix) ? (dgm_str){path.p + prefix.n, path.n - prefix.n}
                                              : (dgm_str){0};
    const char *slash = id.n ? memchr(id.p, '/', id.n) : NULL;
    if (slash)
        id.n = (size_t)(slash - id.p);
    if (id.n > DGM_MAX_QUOTED_BYTES)
        id.n = DGM_MAX_QUOTED_BYTES;
    while (dgm_utf8_check(id) != id.n)
        id.n--;
    return id;
}

const char *dgm_index_unknown_agent(const dgm_site *s, dgm_arena *a, dgm_str path)
{
    dgm_str all = DGM_STR("");
    for (size_t i = 0; i < s->n_agents; i++) {
        if (all.n > DGM_MAX_QUOTED_BYTES) {
            all = dgm_arena_printf(a, "%.*s, ... (%zu in all)", DGM_P(all), s->n_agents);
            break;
        }
        all = dgm_arena_printf(a, "%.*s%s%.*s", DGM_P(all), i ? ", " : "",
                               DGM_P(s->agents[i].config->id));
    }
    return dgm_arena_printf(a, "unknown agent '%.*s'; agents on this server: %.*s",
                            DGM_P(index_id_of(path)), DGM_P(all))
        .p;
}

bool dgm_index_is_list(dgm_str path)
{
    return dgm_str_is(path, "/agents") || dgm_str_is(path, "/agents/");
}

/* ---- the index ---------------------------------------------------------------------------------------------------- */

static void index_put_agents(dgm_buf *b, const dgm_site *s, dgm_str address)
{
    int width = 0;
    for (size_t i = 0; i < s->n_agents; i++) {
        int n = (int)s->agents[i].config->id.n;
        width = n > width ? n : width;
    }
    dgm_buf_add_lit(b, "Agents\n");
    for (size_t i = 0; i < s->n_agents; i++) {
        const dgm_site_agent *f = &s->agents[i];
        dgm_str id = f->config->id;
        dgm_buf_printf(b, "  %.*s%*s  %.*s%.*s/%s\n", DGM_P(id), width - (int)id.n, "",
                       DGM_P(address), DGM_P(f->path),
                       f == s->first ? " (default: also at /)" : "");
    }
    dgm_buf_add_char(b, '\n');
}

static void index_put_bases(dgm_buf *b, dgm_str base)
{
    dgm_buf_printf(b,
                   "Base URLs\n"
                   "  A2A     %.*s/\n"
                   "  OpenAI  %.*s/v1\n"
                   "  AG-UI   %.*s/ag-ui\n"
                   "  AI SDK  %.*s/ai-sdk\n"
                   "  card    %.*s/.well-known/agent-card.json\n",
                   DGM_P(base), DGM_P(base), DGM_P(base), DGM_P(base), DGM_P(base));
}

void dgm_index_give(const dgm_site *s, const dgm_site_agent *f, dgm_http_exchange *x)
{
    static const dgm_http_header headers[] = {{{"Cache-Control", 13}, {"no-cache", 8}},
                                              {{"Vary", 4}, {"Accept, Origin", 14}}};
    dgm_arena *a = dgm_http_arena(x);
    const dgm_http_request *q = dgm_http_request_of(x);
    dgm_str address = dgm_front_address(a, q, s->config->public_url);
    bool is_one = f && !dgm_index_is_list(q->path) && q->path.n > 1;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX); /* bounded by the configuration */
    dgm_buf_printf(&b, "Dragoman " DGM_VERSION "\n\n");
    if (!f)
        dgm_buf_printf(&b, "%s\n\n", dgm_index_unknown_agent(s, a, q->path));
    if (is_one)
        dgm_buf_printf(&b, "Agent %.*s\n\n", DGM_P(f->config->id));
    else
        index_put_agents(&b, s, address);
    index_put_bases(&b, is_one ? dgm_arena_printf(a, "%.*s%.*s", DGM_P(address), DGM_P(f->path))
                               : address);
    if (!is_one)
        dgm_buf_add_lit(&b, "\nThe same paths exist below the address of each agent.\n");
    dgm_front_note_kind(x, DGM_FRONT_PAGE, NULL);
    dgm_http_respond(x, f ? 200 : 404, DGM_STR("text/plain; charset=utf-8"), headers,
                     sizeof headers / sizeof *headers, dgm_buf_str(&b));
    dgm_buf_done(&b);
}
