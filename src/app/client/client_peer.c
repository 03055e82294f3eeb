/*
 * app/client/client_peer.c - the server: reads its card and chooses an interface.
 */
#include "app/client/client_int.h"
#include "base/limits.h"
#include "wire/a2a/a2a.h"
#include "wire/a2a/a2a_card.h"

#include <stdlib.h>

#define CARD_PATH "/.well-known/agent-card.json"
#define TIMEOUT_S 600

bool dgm_client_number(const dgm_cli_line *line, const char *option, long low, long high, long *to)
{
    const char *text = dgm_cli_get(line, option);
    char *end;
    long value;
    if (!text)
        return true;
    value = strtol(text, &end, 10);
    if (end == text || *end || value < low || value > high) {
        dgm_cli_refuse(line, "--%s %s: expected a number from %ld to %ld", option, text, low, high);
        return false;
    }
    *to = value;
    return true;
}

/* ---- headers --------------------------------------------------------------------------------------------- */

static bool good_header(const char *text)
{
    const char *colon = strchr(text, ':');
    return colon && colon > text && !strpbrk(text, "\r\n");
}

static int collect_headers(peer *p, const char *token)
{
    const dgm_cli_line *line = p->line;
    const char *one;
    size_t n = 0;
    p->headers = dgm_new_n(p->arena, const char *, DGM_CLI_MAX_VALUES + 2);
    if (token && *token) {
        if (strpbrk(token, "\r\n"))
            return dgm_cli_refuse(line, "the token contains a line end");
        p->headers[n++] = dgm_arena_printf(p->arena, "Authorization: Bearer %s", token).p;
    }
    for (size_t i = 0; (one = dgm_cli_get_nth(line, "header", i)); i++) {
        if (!good_header(one))
            return dgm_cli_refuse(line, "--header '%s': expected 'NAME: VALUE'", one);
        p->headers[n++] = one;
    }
    return DGM_CLI_OK;
}

/* ---- the card ---------------------------------------------------------------------------------------------- */

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* The path names one agent of several. The card of the host would be that of another agent. */
static bool names_agent(const char *address)
{
    const char *host = strstr(address, "://");
    return strstr(host + 3, "/agents/");
}

/* The well-known path below URL, and if there is no card, that of its host. */
static const char *card_url(peer *p, bool of_host)
{
    size_t n = strlen(p->address);
    const char *host = strstr(p->address, "://");
    if (ends_in(p->address, ".json"))
        return of_host ? NULL : p->address;
    if (of_host) {
        const char *slash = strchr(host + 3, '/');
        if (!slash || !slash[1] || names_agent(p->address))
            return NULL;
        n = (size_t)(slash - p->address);
    }
    while (n && p->address[n - 1] == '/')
        n--;
    return dgm_arena_printf(p->arena, "%.*s" CARD_PATH, (int)n, p->address).p;
}

static dgm_code get_card(peer *p, const char *url, struct http_answer *answer, dgm_err *err)
{
    const char *version = dgm_cli_get(p->line, "protocol");
    const char *headers[DGM_CLI_MAX_VALUES + 4];
    struct http_request q = {.method = "GET", .url = url, .headers = headers, .follows = true};
    size_t n = 0;
    headers[n++] = "Accept: application/json";
    headers[n++] = dgm_arena_printf(p->arena, "A2A-Version: %s", version ? version : "1.0").p;
    for (size_t i = 0; p->headers[i]; i++)
        headers[n++] = p->headers[i];
    headers[n] = NULL;
    return dgm_client_http_call(p->http, &q, answer, err);
}

static dgm_code read_card(peer *p, dgm_str text, dgm_err *err)
{
    yyjson_val *v;
    dgm_frame frame;
    dgm_mint mint = {{0}, 0, {0}};
    dgm_reader r = {.arena = p->arena, .mint = &mint, .err = err};
    dgm_code rc = dgm_json_read(p->arena, dgm_arena_dup(p->arena, text), DGM_MAX_OBJECT_BYTES,
                                "object_bytes", &v, err);
    if (rc)
        return rc;
    const dgm_codec *codec = dgm_a2a_card_is_03_rest(v) ? &dgm_codec_a2a_03_rest
                             : dgm_a2a_card_is_03(v)    ? &dgm_codec_a2a_03
                                                        : &dgm_codec_a2a_10;
    if ((rc = codec->decode(&r, v, DGM_OBJECT_CARD, false, &frame)))
        return rc;
    p->card_json = v;
    p->card = frame.object.it;
    return DGM_OK;
}

static void hint_credentials(long status)
{
    dgm_cli_hint("%s: --token TOKEN (or DRAGOMAN_TOKEN), or --header 'NAME: VALUE'",
                 status == 403 ? "use credentials that are allowed to do this"
                               : "check your credentials");
}

/* The last response had no card. */
static int no_card(const peer *p, long status, const dgm_peer_error *e)
{
    dgm_str why = e ? e->message : (dgm_str){0};
    dgm_cli_complain("no agent card at %s: HTTP status %ld%s%.*s", p->card_url, status,
                     why.n ? ": " : "", DGM_P(why));
    if (status == 401 || status == 403)
        hint_credentials(status);
    else if (!dgm_str_starts(why, DGM_STR("unknown agent")))
        dgm_cli_hint("use the URL of the card, or the URL of the endpoint with --protocol and "
                     "--binding");
    return DGM_CLI_FAILED;
}

static int fetch_card(peer *p)
{
    struct http_answer answer;
    dgm_err err = {0};
    dgm_code rc;
    dgm_peer_error *refusal = NULL;
    long status = 0;
    for (int of_host = 0; of_host < 2; of_host++) {
        const char *url = card_url(p, of_host);
        if (!url)
            break;
        rc = get_card(p, url, &answer, &err);
        if (!rc && answer.status / 100 == 2) {
            p->card_url = url;
            p->card_is_of_host = of_host;
            if (p->on_card)
                p->on_card(p->on_card_arg, url, dgm_buf_str(&answer.body));
            rc = read_card(p, dgm_buf_str(&answer.body), &err);
            dgm_client_http_response_done(&answer);
            if (!rc)
                return DGM_CLI_OK;
            dgm_cli_complain("%s is not an agent card: %s%s%s", url, err.msg,
                             err.at[0] ? " at " : "", err.at);
            return DGM_CLI_FAILED;
        }
        status = answer.status;
        if (!rc && !of_host)
            refusal = dgm_peer_error_of(p->arena, &dgm_codec_a2a_10, dgm_buf_str(&answer.body));
        dgm_client_http_response_done(&answer);
        if (rc)
            return dgm_peer_report_error(p, &err);
        if (!of_host)
            p->card_url = url;
        if (status != 404 && status != 405)
            break;
    }
    return no_card(p, status, refusal);
}

/* ---- the interface ---------------------------------------------------------------------------------------------- */

/* 1: A2A 1.x, 3: 0.3 and what follows it, 0: neither. */
static int dgm_version_of(dgm_str v)
{
    if (dgm_str_starts(v, DGM_STR("1.")) || dgm_str_is(v, "1"))
        return 1;
    return dgm_str_starts(v, DGM_STR("0.")) && v.n >= 3 && v.p[2] >= '3' ? 3 : v.n ? 0 : 1;
}

static bool speaks(const peer *p, const dgm_agent_interface *i, bool *ret_rest, bool *ret_v1)
{
    const char *protocol = dgm_cli_get(p->line, "protocol"),
               *binding = dgm_cli_get(p->line, "binding");
    bool is_rpc = dgm_str_eq_nocase(i->protocol_binding, DGM_STR("JSONRPC"));
    bool is_rest = dgm_str_eq_nocase(i->protocol_binding, DGM_STR("HTTP+JSON")) ||
                   dgm_str_eq_nocase(i->protocol_binding, DGM_STR("REST"));
    int version = dgm_version_of(i->protocol_version);
    if ((!is_rpc && !is_rest) || !version || !dgm_str_starts(i->url, DGM_STR("http")))
        return false;
    if (protocol && (strcmp(protocol, "1.0") == 0) != (version == 1))
        return false;
    if (binding && (strcmp(binding, "rest") == 0) != is_rest)
        return false;
    *ret_rest = is_rest;
    *ret_v1 = version == 1;
    return true;
}

static void use(peer *p, dgm_str url, dgm_str tenant, bool is_rest, bool is_v1)
{
    p->url = url;
    p->tenant = tenant;
    p->is_rest = is_rest;
    p->is_v1 = is_v1;
    p->codec = is_v1 ? &dgm_codec_a2a_10 : is_rest ? &dgm_codec_a2a_03_rest : &dgm_codec_a2a_03;
}

/* Is it the card of the endpoint that was typed? It lists that address, or the path is the usual one of A2A. */
static bool lists_address(const peer *p)
{
    dgm_str typed = dgm_str_from(p->address);
    while (typed.n && typed.p[typed.n - 1] == '/')
        typed.n--;
    if (typed.n > 4 && memcmp(typed.p + typed.n - 4, "/a2a", 4) == 0)
        return true;
    for (size_t k = 0; k < p->card->interfaces.n; k++) {
        dgm_str url = p->card->interfaces.at[k].url;
        while (url.n && url.p[url.n - 1] == '/')
            url.n--;
        if (dgm_str_eq(url, typed))
            return true;
    }
    return false;
}

/* The first of the card that we speak; of two at one address the newer. */
static bool choose(peer *p)
{
    const dgm_agent_interfaces *all = &p->card->interfaces;
    const dgm_agent_interface *best = NULL;
    bool is_rest = false, is_v1 = false;
    for (size_t k = 0; k < all->n; k++) {
        const dgm_agent_interface *i = &all->at[k];
        bool rest, v1;
        if (!speaks(p, i, &rest, &v1))
            continue;
        if (best && !(v1 && !is_v1 && rest == is_rest && dgm_str_eq(best->url, i->url)))
            continue;
        best = i;
        is_rest = rest;
        is_v1 = v1;
    }
    if (best)
        use(p, best->url, best->tenant, is_rest, is_v1);
    if (best && p->card_is_of_host && !lists_address(p))
        dgm_cli_hint("there is no agent card below %s: using the agent at %.*s, from %s",
                     p->address, DGM_P(best->url), p->card_url);
    return best;
}

static int no_interface(const peer *p)
{
    dgm_buf offers;
    dgm_buf_init(&offers, 2000);
    for (size_t k = 0; k < p->card->interfaces.n; k++) {
        const dgm_agent_interface *i = &p->card->interfaces.at[k];
        dgm_buf_printf(&offers, "%s%.*s %.*s", k ? ", " : "", DGM_P(i->protocol_binding),
                       DGM_P(i->protocol_version));
    }
    dgm_cli_complain("the card at %s has no interface that this program supports%s%s: %.*s",
                     p->card_url, dgm_cli_get(p->line, "protocol") ? " with this --protocol" : "",
                     dgm_cli_get(p->line, "binding") ? " with this --binding" : "",
                     DGM_P(dgm_buf_str(&offers)));
    dgm_cli_hint("supported: JSONRPC and HTTP+JSON, A2A 1.0 and 0.3");
    dgm_buf_done(&offers);
    return DGM_CLI_FAILED;
}

/* ---- public ---------------------------------------------------------------------------------------------------------- */

int dgm_peer_begin(peer *p, const dgm_cli_line *line, const char *url, const char *token,
                   struct http_settings settings)
{
    *p = (peer){.line = line,
                .address = url,
                .arena = dgm_arena_new(),
                .on_card = p->on_card,
                .on_card_arg = p->on_card_arg};
    if (!dgm_client_number(line, "timeout", 1, 86400, &settings.timeout_s))
        return DGM_CLI_MISUSED;
    if (!strstr(url, "://"))
        p->address = dgm_arena_printf(p->arena, "http://%s", url).p;
    if (strncmp(p->address, "http://", 7) != 0 && strncmp(p->address, "https://", 8) != 0)
        return dgm_cli_refuse(line, "%s: expected a URL with http:// or https://", url);
    p->http = dgm_client_http_new(&settings);
    return collect_headers(p, token);
}

static int client_peer_begin(peer *p, const dgm_cli_line *line, const char *url)
{
    const char *token = dgm_cli_get(line, "token");
    return dgm_peer_begin(p, line, url, token ? token : getenv("DRAGOMAN_TOKEN"),
                          (struct http_settings){.timeout_s = TIMEOUT_S,
                                                 .ca_file = dgm_cli_get(line, "ca"),
                                                 .proxy = dgm_cli_get(line, "proxy")});
}

int dgm_peer_open_card(peer *p, const dgm_cli_line *line, const char *url)
{
    int status = client_peer_begin(p, line, url);
    return status ? status : fetch_card(p);
}

int dgm_peer_open(peer *p, const dgm_cli_line *line, const char *url)
{
    const char *protocol = dgm_cli_get(line, "protocol"), *binding = dgm_cli_get(line, "binding");
    int status = client_peer_begin(p, line, url);
    if (status)
        return status;
    if (protocol && binding) {
        use(p, dgm_str_from(p->address), (dgm_str){0}, strcmp(binding, "rest") == 0,
            strcmp(protocol, "1.0") == 0);
        return DGM_CLI_OK;
    }
    if ((status = fetch_card(p)))
        return status;
    return choose(p) ? DGM_CLI_OK : no_interface(p);
}

void dgm_peer_close(peer *p)
{
    dgm_client_http_free(p->http);
    dgm_arena_free(p->arena);
    *p = (peer){0};
}

int dgm_peer_report_error(const peer *p, const dgm_err *err)
{
    if (dgm_client_http_was_interrupted(p->http))
        return DGM_CLI_FAILED; /* whoever did it knows */
    dgm_cli_complain("%s", err->msg);
    switch (err->code) {
    case DGM_UNAUTHENTICATED: hint_credentials(401); break;
    case DGM_FORBIDDEN: hint_credentials(403); break;
    case DGM_TASK_NOT_FOUND:
        dgm_cli_hint("`dragoman task list %s` lists your tasks", p->address);
        break;
    case DGM_VERSION_NOT_SUPPORTED: dgm_cli_hint("--protocol 1.0 or --protocol 0.3"); break;
    case DGM_UNAVAILABLE:
        if (strncmp(err->msg, "cannot reach", 12) == 0)
            dgm_cli_hint("is the server running, and is the address right?");
        if (strncmp(err->msg, "cannot trust", 12) == 0)
            dgm_cli_hint("--ca FILE names the certificate of the authority that signed the "
                         "server's certificate, or the server's certificate itself");
        if (strstr(err->msg, "does not use TLS") && strncmp(p->address, "https://", 8) == 0)
            dgm_cli_hint("try http://%s", p->address + 8);
        if (strstr(err->msg, "redirects to another origin"))
            dgm_cli_hint("use the URL that it redirects to, if you trust it");
        break;
    default: break;
    }
    return DGM_CLI_FAILED;
}
