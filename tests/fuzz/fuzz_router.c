/*
 * fuzz_router.c - any target finds its route or none; what it names lies within it, and what is decoded
 * of it is text. Lines of the input: the target, then Host, Origin and Authorization.
 */
#include "app/serve/gate.h"
#include "app/serve/routes.h"
#include "frontend/a2a/a2a_front_int.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>

static void must(bool holds)
{
    if (!holds)
        abort();
}

static const dgm_config *config(void)
{
    static const char text[] = "tokens:\n"
                               "  - {token: alpha, principal: a}\n"
                               "  - {token: beta, principal: b, tenant: t}\n"
                               "  - {kind: api-key, token: gamma, principal: c}\n"
                               "cors: {origins: ['https://app.example']}\n"
                               "agents: [{id: bench, type: bench}]\n";
    static dgm_config *c;
    if (!c) {
        c = dgm_config_load(&(dgm_config_source){
            .file = "dragoman.yaml", .text = {text, sizeof text - 1}, .no_files = true});
        must(c->n_errors == 0);
    }
    return c;
}

static dgm_str line(dgm_str *rest)
{
    const char *end = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;
    dgm_str l = {rest->p, end ? (size_t)(end - rest->p) : rest->n};
    *rest = (dgm_str){rest->p + l.n + (end != NULL), rest->n - l.n - (end != NULL)};
    return l;
}

static bool is_within(dgm_str part, dgm_str whole)
{
    return !part.n || (part.p >= whole.p && part.p + part.n <= whole.p + whole.n);
}

/* ---- paths and queries ------------------------------------------------------------------------------------ */

/* Every byte as a code: what was decoded comes back. */
static void codes_come_back(dgm_arena *a, dgm_str text)
{
    char *codes = dgm_arena_alloc_raw(a, 3 * text.n + 1);
    dgm_str again;
    for (size_t i = 0; i < text.n; i++) {
        static const char hex[] = "0123456789abcdef";
        unsigned char c = (unsigned char)text.p[i];
        memcpy(codes + 3 * i, (char[]){'%', hex[c >> 4], hex[c & 15]}, 3);
    }
    must(dgm_percent_decode(a, (dgm_str){codes, 3 * text.n}, true, &again));
    must(dgm_str_eq(again, text));
}

static void look_at_path(dgm_arena *a, dgm_str path)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "DELETE", "OPTIONS"};
    static dgm_route_tree *tree;
    dgm_front_request q = {0};
    if (!tree)
        tree = dgm_route_tree_new(dgm_frontends);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        q = (dgm_front_request){0};
        dgm_route_match(tree, dgm_str_from(methods[i]), path, &q);
        must(q.reporter && q.reporter->refuse);
        must(q.allow ? q.front != NULL : !q.route);
    }
    dgm_str parts[] = {q.tenant, q.params[0], q.params[1], q.agent_id};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        dgm_str text;
        must(is_within(parts[i], path));
        if (!dgm_percent_decode(a, parts[i], false, &text))
            continue;
        must(text.n <= parts[i].n && dgm_utf8_check(text) == text.n);
        codes_come_back(a, text);
    }
}

static void look_at_query(dgm_arena *a, dgm_str query)
{
    static const char *const names[] = {"A2A-Version", "tenant", "historyLength", "pageToken", "a"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        must(dgm_query_value(a, query, names[i]).n <= query.n);
}

/* ---- the gate ------------------------------------------------------------------------------------------------ */

static void look_at_headers(dgm_arena *a, const dgm_http_request *r)
{
    dgm_http_header headers[8];
    dgm_owner owner;
    dgm_strs may_set;
    bool said;
    dgm_gate_word word = dgm_gate_owner(config(), r, &owner, &may_set);
    const char *why = dgm_gate_refuses(config(), r);
    must(word != DGM_GATE_OPEN && (!why || *why));
    if (word != DGM_GATE_KNOWN)
        must(dgm_gate_challenge(a, config(), word).n > 0);
    size_t n = dgm_gate_cors(r, headers);
    must(n <= 3 && dgm_gate_preflight(a, config(), r, headers + n) <= 3);
    dgm_gate_is_preflight(r);
    dgm_version_of(r, a, &said);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_arena *a = dgm_arena_new();
    char *copy = dgm_arena_alloc_raw(a, size); /* poisoned behind its end */
    if (size)
        memcpy(copy, data, size);
    dgm_str rest = {copy, size}, target = line(&rest);
    const char *mark = target.n ? memchr(target.p, '?', target.n) : NULL;
    dgm_http_header headers[] = {{DGM_STR("host"), line(&rest)},
                                 {DGM_STR("origin"), line(&rest)},
                                 {DGM_STR("authorization"), line(&rest)},
                                 {DGM_STR("x-api-key"), rest}};
    dgm_http_request r = {.method = DGM_STR("OPTIONS"),
                          .target = target,
                          .path = target,
                          .headers = headers,
                          .n_headers = 4,
                          .body = DGM_STR(""),
                          .is_loopback = size & 1};
    if (mark) {
        r.path.n = (size_t)(mark - target.p);
        r.query = (dgm_str){mark + 1, target.n - r.path.n - 1};
    }
    look_at_path(a, r.path);
    look_at_query(a, r.query);
    look_at_headers(a, &r);
    dgm_arena_free(a);
    return 0;
}
