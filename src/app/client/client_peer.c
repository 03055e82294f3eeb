/*
 * app/client/client_peer.c - the server: reads its card and chooses an interface.
 */
#include "app/client/client_int.h"
#include "base/limits.h"

#include <stdlib.h>

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
        const char *url = dgm_a2a_card_url(p->arena, p->address, (size_t)of_host);
        if (!url)
            break;
        rc = get_card(p, url, &answer, &err);
        if (!rc && answer.status / 100 == 2) {
            p->card_url = url;
            p->card_is_of_host = of_host;
            if (p->on_card)
                p->on_card(p->on_card_arg, url, dgm_buf_str(&answer.body));
            rc = dgm_a2a_read_card(p->arena, dgm_buf_str(&answer.body), &p->card_json, &p->card,
                                   &err);
            dgm_client_http_response_done(&answer);
            if (!rc)
                return DGM_CLI_OK;
            dgm_cli_complain("%s is not an agent card: %s%s%s", url, err.msg,
                             err.at[0] ? " at " : "", err.at);
            return DGM_CLI_FAILED;
        }
        status = answer.status;
        if (!rc && !of_host)
            refusal = dgm_a2a_error_of(p->arena, &dgm_codec_a2a_10, dgm_buf_str(&answer.body));
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

static bool choose(peer *p)
{
    const char *protocol = dgm_cli_get(p->line, "protocol"),
               *binding = dgm_cli_get(p->line, "binding");
    dgm_a2a_version version = !protocol                      ? DGM_A2A_ANY_VERSION
                              : strcmp(protocol, "1.0") == 0 ? DGM_A2A_VERSION_10
                                                             : DGM_A2A_VERSION_03;
    dgm_a2a_binding wanted = !binding                       ? DGM_A2A_ANY_BINDING
                             : strcmp(binding, "rest") == 0 ? DGM_A2A_REST
                                                            : DGM_A2A_JSONRPC;
    if (!dgm_a2a_choose_interface(p->card, version, wanted, &p->at))
        return false;
    if (p->card_is_of_host && !lists_address(p))
        dgm_cli_hint("there is no agent card below %s: using the agent at %.*s, from %s",
                     p->address, DGM_P(p->at.url), p->card_url);
    return true;
}

static int no_interface(const peer *p)
{
    dgm_buf offers;
    dgm_buf_init(&offers, 2000);
    dgm_a2a_list_interfaces(p->card, &offers);
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
        p->at = dgm_a2a_peer_at(dgm_str_from(p->address), (dgm_str){0},
                                strcmp(binding, "rest") == 0, strcmp(protocol, "1.0") == 0);
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
            dgm_cli_hint("--%s FILE names the certificate of the authority that signed the "
                         "server's certificate, or the server's certificate itself",
                         strcmp(p->line->command->name, "connect") == 0 ? "ca-file" : "ca");
        if (strstr(err->msg, "does not use TLS") && strncmp(p->address, "https://", 8) == 0)
            dgm_cli_hint("try http://%s", p->address + 8);
        if (strstr(err->msg, "redirects to another origin"))
            dgm_cli_hint("use the URL that it redirects to, if you trust it");
        break;
    default: break;
    }
    return DGM_CLI_FAILED;
}
