/* app/serve/gate.c - Host, Origin, CORS, tokens. */
#include "app/serve/gate.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>

/* ---- from where? ---------------------------------------------------------------------------------------------- */

static dgm_str without_port(dgm_str host)
{
    const char *end;
    if (host.n && host.p[0] == '[') {
        end = memchr(host.p, ']', host.n);
        return end ? (dgm_str){host.p, (size_t)(end + 1 - host.p)} : host;
    }
    end = host.n ? memchr(host.p, ':', host.n) : NULL;
    return (dgm_str){host.p, end ? (size_t)(end - host.p) : host.n};
}

static bool is_port(dgm_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return s.n <= 5;
}

bool dgm_gate_is_loopback(dgm_str host)
{
    if (!host.n)
        return false;
    dgm_str name = without_port(host);
    dgm_str rest = {host.p + name.n, host.n - name.n};
    if (rest.n && (rest.p[0] != ':' || !is_port((dgm_str){rest.p + 1, rest.n - 1})))
        return false;
    return dgm_str_eq_nocase(name, DGM_STR("localhost")) || dgm_str_is(name, "127.0.0.1") ||
           dgm_str_is(name, "[::1]");
}

/* A name that is listed without a port may come with any. */
static bool is_listed_host(dgm_strs list, dgm_str host)
{
    for (size_t i = 0; i < list.n; i++) {
        if (dgm_str_eq_nocase(list.at[i], host) ||
            dgm_str_eq_nocase(list.at[i], without_port(host)))
            return true;
    }
    return false;
}

static bool is_listed_origin(dgm_strs list, dgm_str origin)
{
    for (size_t i = 0; i < list.n; i++) {
        if (dgm_str_is(list.at[i], "*") || dgm_str_eq_nocase(list.at[i], origin))
            return true;
    }
    return false;
}

/* The host of http://host:port; absent: it is something else ("null", "file://"). */
static dgm_str host_of_origin(dgm_str origin)
{
    size_t skip = dgm_str_starts(origin, DGM_STR("http://"))    ? 7
                  : dgm_str_starts(origin, DGM_STR("https://")) ? 8
                                                                : 0;
    return skip ? (dgm_str){origin.p + skip, origin.n - skip} : (dgm_str){0};
}

/* The page we serve ourselves, wherever that is: its origin is what it asked for. */
static bool is_own_origin(const dgm_config *c, dgm_str origin, dgm_str host)
{
    dgm_str from = host_of_origin(origin);
    dgm_str url = c->public_url;
    while (url.n && url.p[url.n - 1] == '/')
        url.n--;
    return from.n && (dgm_str_eq_nocase(from, host) || (url.n && dgm_str_eq_nocase(origin, url)));
}

static bool is_address(dgm_str host)
{
    unsigned char address[16];
    char text[64];
    dgm_str name = without_port(host);
    bool six = name.n > 2 && name.p[0] == '[' && name.p[name.n - 1] == ']';
    if (six)
        name = (dgm_str){name.p + 1, name.n - 2};
    if (name.n >= sizeof text)
        return false;
    memcpy(text, name.p, name.n);
    text[name.n] = 0;
    return inet_pton(six ? AF_INET6 : AF_INET, text, address) == 1;
}

static bool is_public_host(const dgm_config *c, dgm_str host)
{
    dgm_str own = host_of_origin(c->public_url);
    const char *slash = own.n ? memchr(own.p, '/', own.n) : NULL;
    own.n = slash ? (size_t)(slash - own.p) : own.n;
    return own.n && dgm_str_eq_nocase(without_port(own), without_port(host));
}

/*
 * Without tokens a page that is loaded from a name of its own may make that name resolve to this server (DNS
 * rebinding): then only names that we know are fine. An address is: a page can have it as its host only if it was
 * loaded from here.
 */
const char *dgm_gate_refuses(const dgm_config *c, const dgm_http_request *r)
{
    dgm_str host = dgm_http_header_of(r, DGM_STR("host"));
    dgm_str origin = dgm_http_header_of(r, DGM_STR("origin"));
    bool is_open = !c->is_loopback && !c->hosts.n;
    if (!(is_open && c->tokens.n) && !dgm_gate_is_loopback(host) &&
        !is_listed_host(c->hosts, host) &&
        !(is_open && host.n && (is_address(host) || is_public_host(c, host))))
        return "unknown Host: add it to `hosts` in the configuration if it is a name of this "
               "server";
    if (origin.n && !is_listed_origin(c->cors_origins, origin) && !is_own_origin(c, origin, host) &&
        !dgm_gate_is_loopback(host_of_origin(origin)))
        return "this Origin is not allowed: add it to `cors.origins` in the configuration to allow "
               "it";
    return NULL;
}

/* ---- CORS -------------------------------------------------------------------------------------------------------- */

size_t dgm_gate_cors(const dgm_http_request *r, dgm_http_header *ret_headers)
{
    dgm_str origin = dgm_http_header_of(r, DGM_STR("origin"));
    size_t n = 0;
    if (!origin.n)
        return 0;
    ret_headers[n++] = (dgm_http_header){DGM_STR("Access-Control-Allow-Origin"), origin};
    ret_headers[n++] = (dgm_http_header){
        DGM_STR("Access-Control-Expose-Headers"),
        DGM_STR("A2A-Version, A2A-Extensions, X-A2A-Extensions, ETag, WWW-Authenticate, "
                "X-Request-Id, X-A2A-Context-Id, X-A2A-Task-Id, X-A2A-Task-State, "
                "X-Dragoman-Ignored, X-Dragoman-Turn, X-Should-Retry, Retry-After")};
    ret_headers[n++] = (dgm_http_header){DGM_STR("Vary"), DGM_STR("Origin")};
    return n;
}

bool dgm_gate_is_preflight(const dgm_http_request *r)
{
    return dgm_str_is(r->method, "OPTIONS") && dgm_http_header_of(r, DGM_STR("origin")).n &&
           dgm_http_header_of(r, DGM_STR("access-control-request-method")).n;
}

/* Names of headers and the separators between them. */
static bool is_list_of_names(dgm_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (!c || !strchr("-_., ", c)))
            return false;
    }
    return s.n > 0 && s.n <= 2000;
}

size_t dgm_gate_preflight(dgm_arena *a, const dgm_config *c, const dgm_http_request *r,
                          dgm_http_header *ret_headers)
{
    dgm_str asked = dgm_http_header_of(r, DGM_STR("access-control-request-headers"));
    dgm_str allowed = DGM_STR("Content-Type, Accept, Authorization, A2A-Version, A2A-Extensions, "
                              "X-A2A-Extensions, Last-Event-ID, If-None-Match, X-Request-Id");
    for (size_t i = 0; i < c->tokens.n; i++) {
        const dgm_config_token *t = &c->tokens.at[i];
        if (t->kind == DGM_TOKEN_API_KEY)
            allowed = dgm_arena_printf(a, "%.*s, %.*s", DGM_P(allowed), DGM_P(t->header));
        if (allowed.n > 2000)
            break;
    }
    /* Libraries send many of their own (x-stainless-...). Who may ask at all was decided by its origin. */
    if (is_list_of_names(asked))
        allowed = dgm_arena_printf(a, "%.*s, %.*s", DGM_P(allowed), DGM_P(asked));
    ret_headers[0] = (dgm_http_header){DGM_STR("Access-Control-Allow-Methods"),
                                       DGM_STR("GET, HEAD, POST, DELETE, OPTIONS")};
    ret_headers[1] = (dgm_http_header){DGM_STR("Access-Control-Allow-Headers"), allowed};
    ret_headers[2] = (dgm_http_header){DGM_STR("Access-Control-Max-Age"), DGM_STR("600")};
    return 3;
}

/* ---- as whom? ------------------------------------------------------------------------------------------------------ */

static bool is_secret(dgm_str given, dgm_str secret)
{
    return given.n == secret.n && secret.n && CRYPTO_memcmp(given.p, secret.p, secret.n) == 0;
}

/* Header names come in lower case, the config has them as it likes. */
static dgm_str header_nocase(const dgm_http_request *r, dgm_str name)
{
    for (size_t i = 0; i < r->n_headers; i++) {
        if (dgm_str_eq_nocase(r->headers[i].name, name))
            return r->headers[i].value;
    }
    return (dgm_str){0};
}

static dgm_str bearer_of(const dgm_http_request *r)
{
    dgm_str auth = dgm_http_header_of(r, DGM_STR("authorization"));
    dgm_str scheme = DGM_STR("bearer ");
    if (auth.n <= scheme.n || !dgm_str_eq_nocase((dgm_str){auth.p, scheme.n}, scheme))
        return (dgm_str){0};
    auth = (dgm_str){auth.p + scheme.n, auth.n - scheme.n};
    while (auth.n && auth.p[0] == ' ')
        auth = (dgm_str){auth.p + 1, auth.n - 1};
    return auth;
}

dgm_gate_word dgm_gate_owner(const dgm_config *c, const dgm_http_request *r, dgm_owner *ret_owner,
                             dgm_strs *ret_may_set)
{
    const dgm_config_token *found = NULL;
    bool differ = false;
    *ret_owner = (dgm_owner){DGM_STR(""), DGM_STR("")};
    *ret_may_set = (dgm_strs){0};
    if (!c->tokens.n)
        return DGM_GATE_OPEN;
    dgm_str bearer = bearer_of(r);
    bool sent = dgm_http_header_of(r, DGM_STR("authorization")).n != 0;
    for (size_t i = 0; i < c->tokens.n; i++) {
        const dgm_config_token *t = &c->tokens.at[i];
        bool is_key = t->kind == DGM_TOKEN_API_KEY;
        dgm_str given = is_key ? header_nocase(r, t->header) : bearer;
        sent |= is_key && given.n;
        if (!is_secret(given, t->secret))
            continue;
        differ |= found && (!dgm_str_eq(found->tenant, t->tenant) ||
                            !dgm_str_eq(found->principal, t->principal));
        found = t;
        if (t->may_set_metadata.n)
            *ret_may_set = t->may_set_metadata;
    }
    if (!found || differ)
        return sent ? DGM_GATE_WRONG : DGM_GATE_MISSING;
    *ret_owner = (dgm_owner){found->tenant, found->principal};
    return DGM_GATE_KNOWN;
}

static bool is_sent(const dgm_http_request *r, const dgm_config_token *t)
{
    return is_secret(t->kind == DGM_TOKEN_API_KEY ? header_nocase(r, t->header) : bearer_of(r),
                     t->secret);
}

bool dgm_gate_is_operator(const dgm_config *c, const dgm_http_request *r)
{
    bool found = !c->tokens.n && r->is_loopback;
    for (size_t i = 0; i < c->tokens.n; i++)
        found |= c->tokens.at[i].role == DGM_TOKEN_OPERATOR && is_sent(r, &c->tokens.at[i]);
    return found;
}

dgm_str dgm_gate_challenge(dgm_arena *a, const dgm_config *c, dgm_gate_word why)
{
    dgm_str header = DGM_STR("");
    for (size_t i = 0; i < c->tokens.n; i++) {
        if (c->tokens.at[i].kind == DGM_TOKEN_BEARER)
            return dgm_arena_printf(a, "Bearer realm=\"dragoman\"%s",
                                    why == DGM_GATE_WRONG ? ", error=\"invalid_token\"" : "");
        header = c->tokens.at[i].header;
    }
    return dgm_arena_printf(a, "ApiKey realm=\"dragoman\", header=\"%.*s\"", DGM_P(header));
}
