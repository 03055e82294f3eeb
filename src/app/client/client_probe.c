/*
 * app/client/client_probe.c - which protocol an address speaks.
 *
 * First requests that change nothing: GET of cards, lists of models and capabilities, then GetTask of a task that does not
 * exist. Only if these find nothing, POST of an empty object, which a server rejects with a sentence about the members that
 * are missing; these names show the protocol. Last a run without messages: its stream is closed after the first event.
 */
#include "app/client/client_connect.h"
#include "base/limits.h"
#include "wire/a2a/a2a_peer.h"
#include "wire/sse/sse.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <strings.h>

#define CARD_PATH "/.well-known/agent-card.json"
#define OLD_CARD_PATH "/.well-known/agent.json"
#define MAX_STREAM_BYTES ((size_t)1 << 20) /* before the first event */

/* ---- one request ------------------------------------------------------------------------------------------------- */

struct probing {
    connection *c;
    probe *at;
    dgm_sse sse;
    size_t n;
};

static void probe_on_head(const dgm_fetch_head *head, void *arg)
{
    struct probing *t = arg;
    t->at->type = dgm_arena_dup(t->c->p.arena, head->content_type);
    t->at->is_ui_stream = dgm_fetch_header_of(head, "x-vercel-ai-ui-message-stream").n > 0;
}

static bool probe_on_stream(const char *bytes, size_t n, void *arg)
{
    struct probing *t = arg;
    dgm_sse_event e = {0};
    t->n += n;
    dgm_sse_feed(&t->sse, bytes, n);
    if (!dgm_sse_next(&t->sse, &e, NULL) && e.data.p)
        t->at->event = dgm_arena_dup(t->c->p.arena, e.data);
    return !t->at->event.p && t->n < MAX_STREAM_BYTES;
}

static const char *probe_result(connection *c, const probe *at)
{
    if (at->code)
        return dgm_arena_dup(c->p.arena, dgm_str_from(at->err.msg)).p;
    return dgm_arena_printf(c->p.arena, "status %ld, %.*s", at->status,
                            at->type.n ? (int)at->type.n : 15,
                            at->type.n ? at->type.p : "no content type")
        .p;
}

/* json: the body of a POST; NULL: GET. more: a header or NULL. */
static probe *probe_send(connection *c, const char *what, const char *url, const char *json,
                         const char *more)
{
    static probe full;
    if (c->n_probes == MAX_PROBES)
        return &full;
    probe *at = &c->probes[c->n_probes++];
    struct probing t = {.c = c, .at = at};
    struct http_answer answer;
    const char *headers[DGM_CLI_MAX_VALUES + 6];
    size_t n = 0;
    *at = (probe){.what = what, .method = json ? "POST" : "GET", .url = url};
    headers[n++] =
        json ? "Accept: text/event-stream, application/json" : "Accept: application/json";
    if (json)
        headers[n++] = "Content-Type: application/json";
    if (more)
        headers[n++] = more;
    for (size_t i = 0; c->p.headers[i]; i++)
        headers[n++] = c->p.headers[i];
    headers[n] = NULL;
    dgm_sse_init(&t.sse);
    at->code = dgm_client_http_call(c->p.http,
                                    &(struct http_request){.method = at->method,
                                                           .url = url,
                                                           .body = dgm_str_from(json),
                                                           .headers = headers,
                                                           .follows = !json,
                                                           .on_head = probe_on_head,
                                                           .on_stream = probe_on_stream,
                                                           .arg = &t},
                                    &answer, &at->err);
    at->status = answer.status;
    at->is_stream = answer.is_stream;
    at->body = dgm_arena_dup(c->p.arena, dgm_buf_str(&answer.body));
    at->result = probe_result(c, at);
    c->is_refused = c->is_refused || at->status == 401 || at->status == 403;
    dgm_client_http_response_done(&answer);
    dgm_sse_done(&t.sse);
    return at;
}

/* The JSON value of a successful answer; NULL if the answer failed or is not JSON. */
static yyjson_val *probe_json(connection *c, dgm_str text)
{
    yyjson_val *v = NULL;
    dgm_err unread = {0};
    if (!text.n ||
        dgm_json_read(c->p.arena, text, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, &unread))
        return NULL;
    return v;
}

static bool probe_is_ok(const probe *at)
{
    return !at->code && at->status / 100 == 2;
}

/* ---- findings --------------------------------------------------------------------------------------------------------- */

static finding *connect_add(connection *c, probe *at, finding f)
{
    at->result = dgm_arena_printf(c->p.arena, "found: %s", f.title).p;
    for (size_t i = 0; i < c->n_findings; i++) {
        if (c->findings[i].kind == f.kind)
            return &c->findings[i];
    }
    c->findings[c->n_findings] = f;
    return &c->findings[c->n_findings++];
}

/* "My Agent (beta)" -> "my-agent-beta": an id in a configuration. */
static const char *connect_id_of(dgm_arena *a, dgm_str name)
{
    char *id = dgm_arena_alloc(a, 41);
    size_t n = 0;
    for (size_t i = 0; i < name.n && n < 40; i++) {
        unsigned char c = (unsigned char)name.p[i];
        if (isalnum(c) && c < 0x80)
            id[n++] = (char)tolower(c);
        else if (n && id[n - 1] != '-')
            id[n++] = '-';
    }
    while (n && id[n - 1] == '-')
        n--;
    id[n] = '\0';
    return n ? id : "agent";
}

static bool connect_ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static size_t connect_origin_n(const char *url)
{
    return (size_t)(strstr(url, "://") - url) + 3 + strcspn(strstr(url, "://") + 3, "/?#");
}

static const char *connect_origin(connection *c)
{
    return dgm_arena_printf(c->p.arena, "%.*s", (int)connect_origin_n(c->base), c->base).p;
}

static const char *connect_host_id(connection *c)
{
    const char *host = strstr(c->base, "://") + 3;
    return connect_id_of(c->p.arena, (dgm_str){host, strcspn(host, ":/?#")});
}

/* ---- A2A ------------------------------------------------------------------------------------------------------------------ */

static bool connect_is_supported(const dgm_agent_interface *i)
{
    return dgm_str_eq_nocase(i->protocol_binding, DGM_STR("JSONRPC")) ||
           dgm_str_eq_nocase(i->protocol_binding, DGM_STR("HTTP+JSON"));
}

static const char *connect_versions(connection *c, const dgm_agent_card *card)
{
    bool has_1 = false, has_03 = false;
    for (size_t i = 0; i < card->interfaces.n; i++) {
        const dgm_agent_interface *at = &card->interfaces.at[i];
        bool is_03 = dgm_str_starts(at->protocol_version, DGM_STR("0."));
        has_03 = has_03 || (is_03 && connect_is_supported(at));
        has_1 = has_1 || (!is_03 && connect_is_supported(at));
    }
    return dgm_arena_printf(c->p.arena, "A2A %s%s%s", has_1 ? "1.0" : "",
                            has_1 && has_03 ? " and " : "", has_03 ? "0.3" : "")
        .p;
}

static const char *connect_key_header(connection *c, const dgm_agent_card *card)
{
    const char *header = NULL;
    for (size_t i = 0; i < card->security_schemes.n; i++) {
        const dgm_security_scheme *s = &card->security_schemes.at[i];
        if (s->kind == DGM_SCHEME_HTTP || s->kind == DGM_SCHEME_OAUTH2 ||
            s->kind == DGM_SCHEME_OPENID)
            return NULL;
        if (s->kind == DGM_SCHEME_API_KEY && dgm_str_is(s->location, "header"))
            header = dgm_arena_dup(c->p.arena, s->key_name).p;
    }
    return header;
}

/* The URL of the interface that is used, if it is at another origin; NULL: it is not. */
static const char *connect_other_origin(connection *c, const dgm_agent_card *card)
{
    for (size_t i = 0; i < card->interfaces.n; i++) {
        const char *url = dgm_arena_dup(c->p.arena, card->interfaces.at[i].url).p;
        if (connect_is_supported(&card->interfaces.at[i]))
            return strstr(url, "://") && !dgm_url_is_same_origin(c->base, url) ? url : NULL;
    }
    return NULL;
}

/* The host of a URL if it is an address, or the name of this machine, that needs to be allowed. */
static const char *connect_private_address(connection *c, const char *url)
{
    const char *host = strstr(url, "://") + 3;
    bool is_v6 = *host == '[';
    dgm_str text = {host + is_v6, strcspn(host + is_v6, is_v6 ? "]" : ":/?#")};
    if (dgm_str_is(text, "localhost"))
        return "127.0.0.1";
    const char *address = dgm_arena_dup(c->p.arena, text).p;
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    const struct sockaddr *at = inet_pton(AF_INET, address, &v4.sin_addr) == 1     ? (void *)&v4
                                : inet_pton(AF_INET6, address, &v6.sin6_addr) == 1 ? (void *)&v6
                                                                                   : NULL;
    return at && dgm_address_refusal(at, (dgm_address_ranges){0}) ? address : NULL;
}

static const char *connect_card_note(connection *c, const char *other, bool is_of_host)
{
    const char *host =
        is_of_host ? "This is the card of the host: no card was found below the path." : NULL;
    if (!other)
        return host;
    return dgm_arena_printf(c->p.arena,
                            "%s%sThe card names another address, %s. Credentials are not sent "
                            "there, and a private address needs `outbound: {allow: [...]}`.",
                            host ? host : "", host ? " " : "", other)
        .p;
}

static bool connect_add_card(connection *c, probe *at, const char *settings_url, bool is_of_host)
{
    dgm_err err = {0};
    yyjson_val *v = probe_is_ok(at) ? probe_json(c, at->body) : NULL;
    const dgm_agent_card *card = NULL;
    bool is_supported = false;
    if (!yyjson_is_obj(v) || dgm_a2a_read_card(c->p.arena, at->body, NULL, &card, &err)) {
        if (yyjson_is_obj(v))
            at->result =
                dgm_arena_printf(c->p.arena, "JSON that is not an agent card: %s", err.msg).p;
        return false;
    }
    for (size_t i = 0; i < card->interfaces.n; i++)
        is_supported = is_supported || connect_is_supported(&card->interfaces.at[i]);
    if (!is_supported) {
        at->result =
            "an agent card without an interface that this program supports (JSONRPC and HTTP+JSON)";
        return false;
    }
    const char *other = connect_other_origin(c, card);
    connect_add(c, at,
                (finding){.kind = FOUND_A2A,
                          .title = dgm_arena_printf(c->p.arena, "%s, agent \"%.*s\"",
                                                    connect_versions(c, card), DGM_P(card->name))
                                       .p,
                          .url = settings_url,
                          .id = connect_id_of(c->p.arena, card->name),
                          .token_header = connect_key_header(c, card),
                          .note = connect_card_note(c, other, is_of_host),
                          .allow = other ? connect_private_address(c, other) : NULL});
    return true;
}

/* The card of the address, at the path of today or of older servers, then that of its host. */
static void probe_cards(connection *c)
{
    dgm_arena *a = c->p.arena;
    const char *host = connect_origin(c);
    if (connect_ends_in(c->base, ".json")) {
        connect_add_card(c, probe_send(c, "agent card", c->base, NULL, NULL), c->base, false);
        return;
    }
    const char *url = dgm_arena_printf(a, "%s" CARD_PATH, c->base).p;
    if (connect_add_card(c, probe_send(c, "agent card", url, NULL, NULL), c->base, false) ||
        c->probes[0].code)
        return;
    url = dgm_arena_printf(a, "%s" OLD_CARD_PATH, c->base).p;
    if (connect_add_card(c, probe_send(c, "agent card, older path", url, NULL, NULL), url, false))
        return;
    if (strcmp(host, c->base) != 0 && !strstr(c->base, "/agents/")) {
        url = dgm_arena_printf(a, "%s" CARD_PATH, host).p;
        connect_add_card(c, probe_send(c, "agent card of the host", url, NULL, NULL), host, true);
    }
}

/* GetTask of a task that does not exist: an A2A server reports it, with a code of its own. */
static void probe_json_rpc(connection *c)
{
    static const struct {
        const char *version, *header, *protocol, *json;
    } rows[] = {
        {"A2A 1.0", "A2A-Version: 1.0", "a2a-1.0",
         "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\",\"params\":{\"id\":\"dragoman-"
         "connect\"}}"},
        {"A2A 0.3", "A2A-Version: 0.3", "a2a-0.3",
         "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tasks/"
         "get\",\"params\":{\"id\":\"dragoman-connect\"}}"},
    };
    int64_t code = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        probe *at =
            probe_send(c, "a task over JSON-RPC", c->p.address, rows[i].json, rows[i].header);
        yyjson_val *v = probe_json(c, at->body), *error = dgm_json_get(v, DGM_STR("error"));
        if (!dgm_json_get(v, DGM_STR("jsonrpc")))
            return;
        if (!dgm_json_int(dgm_json_get(error, DGM_STR("code")), &code) || code != -32001) {
            at->result = "JSON-RPC, but not this version of A2A";
            continue;
        }
        connect_add(c, at,
                    (finding){.kind = FOUND_A2A,
                              .title = dgm_arena_printf(c->p.arena,
                                                        "%s over JSON-RPC, without an agent card",
                                                        rows[i].version)
                                           .p,
                              .url = c->p.address,
                              .id = connect_host_id(c),
                              .protocol = rows[i].protocol,
                              .binding = "jsonrpc"});
        return;
    }
}

/* ---- AG-UI and OpenAI, without a run ---------------------------------------------------------------------------------------- */

static void connect_add_agui(connection *c, probe *at, dgm_str name)
{
    connect_add(c, at,
                (finding){.kind = FOUND_AGUI,
                          .title = "AG-UI",
                          .url = c->p.address,
                          .id = name.n ? connect_id_of(c->p.arena, name) : connect_host_id(c)});
}

static void probe_capabilities(connection *c)
{
    probe *at = probe_send(c, "capabilities of an AG-UI agent",
                           dgm_arena_printf(c->p.arena, "%s/capabilities", c->base).p, NULL, NULL);
    yyjson_val *v = probe_is_ok(at) ? probe_json(c, at->body) : NULL;
    if (yyjson_is_obj(dgm_json_get(v, DGM_STR("transport"))) ||
        yyjson_is_obj(dgm_json_get(v, DGM_STR("identity"))))
        connect_add_agui(c, at, dgm_json_str_member(dgm_json_get(v, DGM_STR("identity")), "name"));
}

/* The address of OpenAI's API, with /v1: it is known when the address is that of one of its endpoints. */
static const char *connect_openai_base(connection *c)
{
    static const char *const ends[] = {"/chat/completions", "/responses", "/models"};
    for (size_t i = 0; i < 3; i++) {
        if (connect_ends_in(c->base, ends[i]))
            return dgm_arena_printf(c->p.arena, "%.*s", (int)(strlen(c->base) - strlen(ends[i])),
                                    c->base)
                .p;
    }
    return dgm_arena_printf(c->p.arena, connect_ends_in(c->base, "/v1") ? "%s" : "%s/v1", c->base)
        .p;
}

static void connect_add_openai(connection *c, probe *at, dgm_str model)
{
    bool is_responses = connect_ends_in(c->base, "/responses");
    const char *base = connect_openai_base(c);
    connect_add(c, at,
                (finding){.kind = is_responses ? FOUND_RESPONSES : FOUND_CHAT,
                          .title = is_responses ? "OpenAI Responses" : "OpenAI Chat Completions",
                          .url = dgm_arena_printf(c->p.arena, "%s%s", base,
                                                  is_responses ? "/responses" : "/chat/completions")
                                     .p,
                          .id = model.n ? connect_id_of(c->p.arena, model) : connect_host_id(c),
                          .model = model.n ? dgm_arena_dup(c->p.arena, model).p : NULL});
}

static void probe_models(connection *c)
{
    probe *at =
        probe_send(c, "models of an OpenAI API",
                   dgm_arena_printf(c->p.arena, "%s/models", connect_openai_base(c)).p, NULL, NULL);
    yyjson_val *v = probe_is_ok(at) ? probe_json(c, at->body) : NULL,
               *data = dgm_json_get(v, DGM_STR("data"));
    if (yyjson_is_arr(data) && dgm_str_is(dgm_json_str_member(v, "object"), "list"))
        connect_add_openai(c, at, dgm_json_str_member(yyjson_arr_get_first(data), "id"));
}

/* ---- what a POST is answered with -------------------------------------------------------------------------------------------- */

/* The text is in the arena, so a zero byte follows it. */
static bool connect_mentions(dgm_str text, const char *word)
{
    return text.n && strstr(text.p, word);
}

/* By the first event of a stream, or by the members that an error misses. */
static bool connect_classify(connection *c, probe *at)
{
    yyjson_val *event = probe_json(c, at->event);
    dgm_str type = dgm_json_str_member(event, "type"),
            object = dgm_json_str_member(event, "object");
    if (dgm_str_starts(type, DGM_STR("RUN_")))
        connect_add_agui(c, at, (dgm_str){0});
    else if (at->is_ui_stream || dgm_str_is(type, "start"))
        connect_add(c, at,
                    (finding){.kind = FOUND_AISDK,
                              .title = "the AI SDK's UI message stream",
                              .url = c->p.address,
                              .id = connect_host_id(c)});
    else if (dgm_str_starts(type, DGM_STR("response.")) ||
             dgm_str_starts(object, DGM_STR("chat.completion")))
        connect_add_openai(c, at, dgm_json_str_member(event, "model"));
    else if (at->status < 400)
        return false;
    else if (connect_mentions(at->body, "threadId") || connect_mentions(at->body, "thread_id"))
        connect_add_agui(c, at, (dgm_str){0});
    else if (connect_mentions(at->body, "model") &&
             (connect_mentions(at->body, "messages") || connect_mentions(at->body, "input") ||
              connect_mentions(at->body, "param")))
        connect_add_openai(c, at, (dgm_str){0});
    else
        return false;
    return true;
}

/* Would another POST tell more? Not if the address accepts none, or wants credentials. */
static bool connect_accepts_post(const probe *at)
{
    return !at->code && at->status != 404 && at->status != 405 && at->status != 401 &&
           at->status != 403 && at->status < 500;
}

static void probe_posts(connection *c)
{
    static const char *const runs[][2] = {
        {"AG-UI run without messages", "{\"threadId\":\"dragoman-connect\",\"runId\":\"dragoman-"
                                       "connect\",\"state\":{},\"messages\":[],"
                                       "\"tools\":[],\"context\":[],\"forwardedProps\":{}}"},
        {"AI SDK chat without messages",
         "{\"id\":\"dragoman-connect\",\"messages\":[],\"trigger\":\"submit-message\"}"},
    };
    probe *at = probe_send(c, "empty object", c->p.address, "{}", NULL);
    if (connect_classify(c, at))
        return;
    if (dgm_json_get(probe_json(c, at->body), DGM_STR("jsonrpc"))) {
        probe_json_rpc(c);
        return;
    }
    for (size_t i = 0; i < 2 && connect_accepts_post(at); i++) {
        at = probe_send(c, runs[i][0], c->p.address, runs[i][1], NULL);
        if (connect_classify(c, at))
            return;
    }
}

dgm_code dgm_connect_probe(connection *c, dgm_err *err)
{
    probe_cards(c);
    if (c->probes[0].code) {
        *err = c->probes[0].err;
        return c->probes[0].code;
    }
    if (connect_ends_in(c->base, ".json"))
        return DGM_OK;
    probe_capabilities(c);
    probe_models(c);
    if (!c->n_findings)
        probe_posts(c);
    return DGM_OK;
}
