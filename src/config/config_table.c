/*
 * config_table.c - every setting there is, once: name, type, default, range, and a sentence about it.
 *
 * Reading (config_read.c), what --check prints and reloads (config_write.c), the JSON Schema and the
 * tables of docs/configuration.md (config_schema.c) walk these rows. A new setting is a member of a struct
 * in config.h and a row here; `DGM_CONFIG_UPDATE=1 test_config_files` regenerates schema and docs.
 */
#include "base/limits.h"
#include "config_int.h"
#include "mcp/mcp.h"
#include "net/address.h"

#include <arpa/inet.h>
#include <ctype.h>

#define REQUIRED DGM_CONFIG_REQUIRED
#define LIVE DGM_CONFIG_LIVE
#define SECRET DGM_CONFIG_SECRET
#define NUMBER DGM_CONFIG_NUMBER
#define COMPAT DGM_CONFIG_COMPAT
#define MAX_ITEMS 1000 /* of one list: what a person would write */

#define WORDS(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

/* ---- what texts look like ------------------------------------------------------------------------------ */

static bool all(dgm_str s, size_t max, bool (*ok)(unsigned char c))
{
    for (size_t i = 0; i < s.n; i++)
        if (!ok((unsigned char)s.p[i]))
            return false;
    return s.n && s.n <= max;
}

static bool is_name_char(unsigned char c)
{
    return isalnum(c) || c == '.' || c == '_' || c == '-';
}

static bool is_name(dgm_str s)
{
    return all(s, 64, is_name_char) && isalnum((unsigned char)s.p[0]);
}

static bool is_visible_char(unsigned char c)
{
    return c > 0x20 && c < 0x7F;
}

static bool is_visible(dgm_str s)
{
    return all(s, 4096, is_visible_char);
}

static bool is_header_char(unsigned char c)
{
    return isalnum(c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

/* What HTTP itself or the bearer tokens use cannot carry a key as well. */
static bool is_key_header(dgm_str s)
{
    static const char *const taken[] = {"authorization",
                                        "connection",
                                        "content-length",
                                        "content-type",
                                        "cookie",
                                        "expect",
                                        "host",
                                        "origin",
                                        "te",
                                        "trailer",
                                        "transfer-encoding",
                                        "upgrade",
                                        NULL};
    for (size_t i = 0; taken[i]; i++)
        if (dgm_str_eq_nocase(s, dgm_str_from(taken[i])))
            return false;
    return all(s, 64, is_header_char);
}

static bool is_env_char(unsigned char c)
{
    return isalnum(c) || c == '_';
}

static bool is_env_name(dgm_str s)
{
    return all(s, 256, is_env_char) && !isdigit((unsigned char)s.p[0]);
}

static bool is_path(dgm_str s)
{
    return s.n && s.n < 4096 && !memchr(s.p, 0, s.n);
}

static bool is_port(dgm_str s)
{
    size_t port = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (!isdigit((unsigned char)s.p[i]))
            return false;
        port = 10 * port + (size_t)(s.p[i] - '0');
    }
    return s.n && s.n <= 5 && port <= 65535;
}

static bool is_listen(dgm_str s)
{
    char host[64];
    unsigned char address[16];
    const char *colon = NULL;
    if (dgm_str_starts(s, DGM_STR("unix:")))
        return s.n > 5 && s.n < 5 + 108 && !memchr(s.p, 0, s.n); /* sockaddr_un's room */
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == ':')
            colon = s.p + i;
    if (!colon || (size_t)(colon - s.p) >= sizeof host || memchr(s.p, 0, s.n) ||
        !is_port((dgm_str){colon + 1, s.n - (size_t)(colon - s.p) - 1}))
        return false;
    memcpy(host, s.p, (size_t)(colon - s.p));
    host[colon - s.p] = 0;
    if (host[0] == '[') {
        char *end = strchr(host, ']');
        if (!end || end[1])
            return false;
        *end = 0;
        return inet_pton(AF_INET6, host + 1, address) == 1;
    }
    return strcmp(host, "localhost") == 0 || inet_pton(AF_INET, host, address) == 1;
}

static bool is_store(dgm_str s)
{
    return dgm_str_is(s, "memory:") || dgm_str_starts(s, DGM_STR("postgres:")) ||
           (dgm_str_starts(s, DGM_STR("sqlite:")) && is_path((dgm_str){s.p + 7, s.n - 7}));
}

/* A password in a connection string of PostgreSQL: `password=` or `sslpassword=`, or `user:password@` in a URL. libpq reads the
 * string when the store is opened; this is so that no output of ours, of `serve --check` for instance, repeats it. */
bool dgm_config_store_has_secret(dgm_str s)
{
    dgm_str word = DGM_STR("password");
    size_t user = 0, colon = 0; /* where they are in a URL; 0: not yet */
    for (size_t i = 0; i < s.n; i++) {
        if (i + word.n <= s.n && dgm_str_eq_nocase((dgm_str){s.p + i, word.n}, word)) {
            size_t end = i + word.n;
            while (end < s.n && isspace((unsigned char)s.p[end]))
                end++;
            if (end < s.n && s.p[end] == '=')
                return true;
        }
        if (i >= 2 && !user && s.p[i] == '/' && s.p[i - 1] == '/' && s.p[i - 2] == ':')
            user = i + 1;
        else if (user && (s.p[i] == '/' || s.p[i] == '?'))
            user = s.n; /* the user and the hosts are before that */
        else if (user && i > user && s.p[i] == ':' && !colon)
            colon = i;
        else if (user && user < s.n && colon && s.p[i] == '@')
            return true;
    }
    return false;
}

static bool is_web(dgm_str s)
{
    size_t n = dgm_str_starts(s, DGM_STR("https://"))  ? 8
               : dgm_str_starts(s, DGM_STR("http://")) ? 7
                                                       : 0;
    return n && s.n > n && s.p[n] != '/' && is_visible(s);
}

static bool is_origin(dgm_str s)
{
    if (dgm_str_is(s, "*"))
        return true;
    if (!is_web(s))
        return false;
    size_t from = s.p[4] == 's' ? 8 : 7;
    return !memchr(s.p + from, '/', s.n - from);
}

static bool is_host(dgm_str s)
{
    return all(s, 255, is_visible_char) && !memchr(s.p, '/', s.n) && !memchr(s.p, '@', s.n);
}

static bool is_address_range(dgm_str s)
{
    dgm_address_range range;
    return s.n && s.n < 64 && !dgm_address_parse_range(s, &range, NULL);
}

static bool is_uri(dgm_str s)
{
    const char *colon = s.n ? memchr(s.p, ':', s.n) : NULL;
    return colon && colon > s.p && colon + 1 < s.p + s.n && is_visible(s);
}

static bool is_media_type(dgm_str s)
{
    const char *slash = s.n ? memchr(s.p, '/', s.n) : NULL;
    return slash && slash > s.p && slash + 1 < s.p + s.n && s.n <= 255 && s.p[0] != ' ' &&
           !memchr(s.p, ',', s.n) && !memchr(s.p, '\n', s.n);
}

static bool is_not_empty(dgm_str s)
{
    return s.n > 0;
}

static bool is_tenant(dgm_str s)
{
    return is_name(s) && !dgm_config_is_reserved_tenant(s);
}

/* Identity (dragoman:principal) is the server's for every caller: only document 003's keys can be passed on. */
static bool is_metadata_prefix(dgm_str s)
{
    return dgm_str_starts(s, DGM_STR("aion:"));
}

static const dgm_config_format metadata_prefix = {
    "^aion:", "a prefix of metadata keys: `aion:` or a longer one like aion:network",
    is_metadata_prefix};

/* A port alone is on loopback. */
static dgm_str write_out_listen(dgm_arena *a, dgm_str s)
{
    return is_port(s) ? dgm_arena_printf(a, "127.0.0.1:%.*s", DGM_P(s)) : (dgm_str){0};
}

/* ":9000" is everywhere for some programs and an error for others. */
static dgm_str suggest_listen(dgm_arena *a, dgm_str s)
{
    if (s.n < 2 || s.p[0] != ':' || !is_port((dgm_str){s.p + 1, s.n - 1}))
        return (dgm_str){0};
    return dgm_arena_printf(a,
                            "write 127.0.0.1%.*s for this machine only, or 0.0.0.0%.*s for all "
                            "networks (needs tokens)",
                            DGM_P(s), DGM_P(s));
}

static bool has_end(dgm_str s, const char *end)
{
    size_t n = strlen(end);
    return s.n > n && memcmp(s.p + s.n - n, end, n) == 0;
}

static dgm_str write_out_store(dgm_arena *a, dgm_str s)
{
    if (dgm_str_is(s, "memory"))
        return DGM_STR("memory:");
    return s.n && !memchr(s.p, ':', s.n) && is_path(s) &&
                   (has_end(s, ".db") || has_end(s, ".sqlite") || has_end(s, ".sqlite3"))
               ? dgm_arena_printf(a, "sqlite:%.*s", DGM_P(s))
               : (dgm_str){0};
}

static dgm_str suggest_store(dgm_arena *a, dgm_str s)
{
    return s.n && is_path(s) && !memchr(s.p, ':', s.n)
               ? dgm_arena_printf(a, "did you mean sqlite:%.*s?", DGM_P(s))
               : (dgm_str){0};
}

static const dgm_config_format listen_address = {
    "^(unix:.+|localhost:[0-9]+|[0-9.]+:[0-9]+|\\[[0-9A-Fa-f:.]+\\]:[0-9]+|[0-9]+)$",
    "an address and a port like 127.0.0.1:8484, [::1]:8484 or 0.0.0.0:80, or unix:/path/of.sock; a"
    " port alone is on 127.0.0.1",
    is_listen, write_out_listen, suggest_listen};
static const dgm_config_format store_url = {
    "^(memory:?|sqlite:.+|postgres:.*|[^:]+[.](db|sqlite|sqlite3))$",
    "memory:, sqlite:PATH or postgres:CONNINFO; PATH alone if it ends in .db or .sqlite",
    is_store,
    write_out_store,
    suggest_store,
    .is_store = true};
static const dgm_config_format path = {NULL, "the path of a file", is_path, .is_path = true};
static const dgm_config_format web_url = {"^https?://[^/ ]", "a http:// or https:// address",
                                          is_web};
static const dgm_config_format origin = {
    "^([*]|https?://[^/ ]+)$", "an origin like https://app.example.com, without a path", is_origin};
static const dgm_config_format address_range = {
    "^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$",
    "a range of addresses like 10.1.0.0/16 or fd00::/8, whose bits after the prefix are zero, or "
    "one address",
    is_address_range};
static const dgm_config_format host = {"^[^/@ ]+$",
                                       "a host name like agents.example.com, or with"
                                       " :port",
                                       is_host};
static const dgm_config_format name = {
    "^[A-Za-z0-9][A-Za-z0-9._-]*$",
    "letters, digits, dot, dash or underscore, at most 64, a letter or digit first", is_name};
static const dgm_config_format tenant = {
    "^[A-Za-z0-9][A-Za-z0-9._-]*$",
    "a name (letters, digits, dot, dash, underscore, at most 64) that is not one of our paths",
    is_tenant};
static const dgm_config_format secret = {NULL, "visible ASCII without blanks, at most 4096",
                                         is_visible};
static const dgm_config_format env_name = {
    "^[A-Za-z_][A-Za-z0-9_]*$", "the name of an environment variable, without ${}", is_env_name};
static const dgm_config_format key_header = {
    "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", "a header name that HTTP does not use itself", is_key_header};
static const dgm_config_format uri = {"^[^:]+:.", "a URI like https://example.com/ext/v1", is_uri};
static const dgm_config_format media_type = {"^[^/,]+/[^,]+$", "a media type like text/plain",
                                             is_media_type};
static const dgm_config_format mcp_name = {
    "^[A-Za-z0-9]+([_-][A-Za-z0-9]+)*$",
    "letters and digits, with a single dash or underscore between them, at most 32",
    dgm_mcp_is_name};
static const dgm_config_format some_text = {"^.", "some text", is_not_empty};

/* ---- cards: A2A 1.0's own names ------------------------------------------------------------------------- */

static const dgm_config_row skill_rows[] = {
    {"id", DGM_CONFIG_TEXT, .flags = REQUIRED, .format = &some_text, .about = "unique in the card"},
    {"name", DGM_CONFIG_TEXT, .flags = REQUIRED, .format = &some_text, .about = "for people"},
    {"description", DGM_CONFIG_TEXT, .flags = REQUIRED, .about = "what it does"},
    {"tags", DGM_CONFIG_TEXTS, .flags = REQUIRED, .max = MAX_ITEMS,
     .about = "keywords for searching"},
    {"examples", DGM_CONFIG_TEXTS, .max = MAX_ITEMS, .about = "example messages"},
    {"inputModes", DGM_CONFIG_TEXTS, .max = MAX_ITEMS, .format = &media_type,
     .about = "accepted media types, if different from the card's"},
    {"outputModes", DGM_CONFIG_TEXTS, .max = MAX_ITEMS, .format = &media_type,
     .about = "media types of its output, if different from the card's"},
    {"securityRequirements", DGM_CONFIG_ARRAY, .about = "as in A2A 1.0"},
    {0},
};
static const dgm_config_shape skill = {"A skill", "A row of a card's `skills`.", skill_rows};

static const dgm_config_row provider_rows[] = {
    {"organization", DGM_CONFIG_TEXT, .flags = REQUIRED, .format = &some_text,
     .about = "the organization that runs the agent"},
    {"url", DGM_CONFIG_TEXT, .flags = REQUIRED, .format = &web_url, .about = "their web site"},
    {0},
};
static const dgm_config_shape provider = {"A provider", "`provider` of a card.", provider_rows};

static const dgm_config_row card_rows[] = {
    {"name", DGM_CONFIG_TEXT, .format = &some_text, .about = "for people"},
    {"description", DGM_CONFIG_TEXT, .format = &some_text, .about = "what the agent is for"},
    {"version", DGM_CONFIG_TEXT, .flags = NUMBER, .format = &some_text, .about = "of the agent"},
    {"provider", DGM_CONFIG_SHAPED, .of = &provider, .about = "who runs it"},
    {"documentationUrl", DGM_CONFIG_TEXT, .format = &web_url,
     .about = "the URL of its documentation"},
    {"iconUrl", DGM_CONFIG_TEXT, .format = &web_url, .about = "a picture"},
    {"defaultInputModes", DGM_CONFIG_TEXTS, .min = 1, .max = MAX_ITEMS, .format = &media_type,
     .about = "accepted media types"},
    {"defaultOutputModes", DGM_CONFIG_TEXTS, .min = 1, .max = MAX_ITEMS, .format = &media_type,
     .about = "media types of its output"},
    {"skills", DGM_CONFIG_LIST, .max = MAX_ITEMS, .of = &skill, .about = "what it can do"},
    {"securitySchemes", DGM_CONFIG_JSON,
     .about =
         "as in A2A 1.0, for a proxy with further requirements. Default: derived from `tokens`"},
    {"securityRequirements", DGM_CONFIG_ARRAY,
     .about = "as in A2A 1.0. Default: derived from `tokens`"},
    {0},
};
static const dgm_config_shape card = {"A card",
                                      "`card` of an agent, with the member names of A2A 1.0. "
                                      "Missing members come from the agent's type;"
                                      " interfaces and capabilities are set by the server.",
                                      card_rows};

/* ---- A2A --------------------------------------------------------------------------------------------------- */

#define A2A(member) offsetof(dgm_config_a2a, member)

static const dgm_config_row extension_rows[] = {
    {"uri", DGM_CONFIG_TEXT, offsetof(dgm_config_extension, uri), .flags = REQUIRED, .format = &uri,
     .about = "the URI that clients list in `A2A-Extensions`"},
    {"description", DGM_CONFIG_TEXT, offsetof(dgm_config_extension, description), .def = "\"\"",
     .about = "for people"},
    {"required", DGM_CONFIG_SWITCH, offsetof(dgm_config_extension, required), .def = "false",
     .about = "reject requests that do not list it"},
    {"params", DGM_CONFIG_JSON, offsetof(dgm_config_extension, params),
     .about = "parameters that the extension defines"},
    {0},
};
static const dgm_config_shape extension = {"An extension", "A row of `a2a.extensions`.",
                                           extension_rows, sizeof(dgm_config_extension)};

static const dgm_config_row a2a_rows[] = {
    {"versions", DGM_CONFIG_NAMES, A2A(versions), .def = "[\"1.0\",\"0.3\"]",
     .values = WORDS("1.0", "0.3"), .flags = LIVE | NUMBER,
     .about = "versions that are accepted and listed in the card"},
    {"error_table", DGM_CONFIG_NAME, A2A(error_table), .def = "\"1.0.1\"",
     .values = WORDS("1.0.1", "1.0.0"), .flags = LIVE | COMPAT,
     .about = "the version of the specification that defines the HTTP statuses of errors: 1.0.0 "
              "has 409, 415 and 502 where 1.0.1 has 400 and 500"},
    {"card_headerless", DGM_CONFIG_NAME, A2A(card_headerless), .def = "\"hybrid\"",
     .values = WORDS("hybrid", "pure-1.0"), .flags = LIVE | COMPAT,
     .about = "the card for requests without `A2A-Version`: with the members of both versions, or "
              "of 1.0 only"},
    {"version_mode", DGM_CONFIG_NAME, A2A(version_mode), .def = "\"strict\"",
     .values = WORDS("strict", "lenient"), .flags = LIVE | COMPAT,
     .about = "a 1.0 method without `A2A-Version`: rejected, as the specification requires, or "
              "accepted"},
    {"rest_media_type", DGM_CONFIG_NAME, A2A(rest_media_type), .def = "\"auto\"",
     .values = WORDS("auto", "json", "a2a"), .flags = LIVE | COMPAT,
     .about = "media type of REST responses: the one that the caller accepts, always "
              "`application/json`, or always `application/a2a+json`"},
    {"stream_at_input_required", DGM_CONFIG_NAME, A2A(stream_at_input_required), .def = "\"close\"",
     .values = WORDS("close", "open"), .flags = LIVE | COMPAT,
     .about = "close the stream of a send when the agent asks for input. Subscriptions always stay "
              "open"},
    {"blocking_limit_s", DGM_CONFIG_INT, A2A(blocking_limit_s), .def = "300", .min = 1,
     .max = 86400, .flags = LIVE,
     .about = "how long a blocking send waits before it returns the task in its current state"},
    {"canonical_type", DGM_CONFIG_SWITCH, A2A(canonical_type), .def = "true",
     .flags = LIVE | COMPAT,
     .about = "write `metadata.canonical_type` on messages (the conformance kits reject keys in "
              "snake case)"},
    {"media_types", DGM_CONFIG_NAME, A2A(media_types), .def = "\"enforce\"",
     .values = WORDS("enforce", "accept"), .flags = LIVE | COMPAT,
     .about = "parts of a media type that the card does not list: rejected or accepted"},
    {"security_requirements", DGM_CONFIG_SWITCH, A2A(security_requirements), .def = "true",
     .flags = LIVE | COMPAT,
     .about = "`securityRequirements` in the card of a server with tokens; `false` for clients of "
              "a2a-go, which cannot read it"},
    {"streaming", DGM_CONFIG_SWITCH, A2A(streaming), .def = "true", .flags = LIVE | COMPAT,
     .about =
         "offer streams; if off, the card declares no streaming and the operations are rejected"},
    {"stream_errors", DGM_CONFIG_NAME, A2A(stream_errors), .def = "\"event\"",
     .values = WORDS("event", "json"), .flags = LIVE | COMPAT,
     .about = "the response to a streaming call over JSON-RPC 1.0 that is rejected: an event, "
              "which all SDKs read, or JSON, which the conformance kit reads"},
    {"card_max_age_s", DGM_CONFIG_INT, A2A(card_max_age_s), .def = "300", .min = 0, .max = 31536000,
     .flags = LIVE, .about = "`max-age` of the card"},
    {"extensions", DGM_CONFIG_LIST, A2A(extensions), .def = "[]", .max = MAX_ITEMS,
     .of = &extension, .flags = LIVE, .about = "extensions the card lists"},
    {0},
};
static const dgm_config_shape a2a = {
    "A2A",
    "`a2a`: switches for the points where versions of the protocol, conformance kits and clients "
    "differ. Most servers do not need them. An agent may have its own `a2a`; the other members "
    "come from the server.",
    a2a_rows};

/* ---- agents -------------------------------------------------------------------------------------------------- */

static const char *const agent_types[] = {"hello", "demo",  "llm",  "langgraph",
                                          "exec",  "a2a",   "http", "langgraph-server",
                                          "tck",   "bench", NULL};

#define HISTORY(member) offsetof(dgm_config_history, member)

static const dgm_config_row history_rows[] = {
    {"messages", DGM_CONFIG_INT, HISTORY(messages), .def = "50", .min = 0,
     .max = DGM_MAX_AGENT_HISTORY_MESSAGES, .flags = LIVE,
     .about = "the most messages; 0: the agent gets no history"},
    {"bytes", DGM_CONFIG_INT, HISTORY(bytes), .def = "262144", .min = 0,
     .max = DGM_MAX_AGENT_HISTORY_BYTES, .flags = LIVE,
     .about = "the most bytes of these messages, as A2A JSON. A message that does not fit is left "
              "out, with all older ones"},
    {"tools", DGM_CONFIG_SWITCH, HISTORY(tools), .def = "true", .flags = LIVE,
     .about = "include tool calls and their results"},
    {0},
};
static const dgm_config_shape history = {
    "History",
    "`history` of an agent: how much of the conversation of its context it gets with every "
    "message. A number is `messages`. See [memory](memory.md).",
    history_rows};

#define MANNER_ROWS(base)                                                                          \
    {"reply",                                                                                      \
     DGM_CONFIG_NAME,                                                                              \
     (base) + offsetof(dgm_config_manner, reply),                                                  \
     .def = "\"default\"",                                                                         \
     .flags = LIVE,                                                                                \
     .values = WORDS("auto", "message", "task", "default"),                                        \
     .about = "answer with a Message, with a Task, or as the first event of the agent decides "    \
              "(`auto`). `default`: `task` for types that get a history, `auto` for the others"},  \
        {"history",                                                                                \
         DGM_CONFIG_OBJECT,                                                                        \
         (base) + offsetof(dgm_config_manner, history),                                            \
         .of = &history,                                                                           \
         .flags = LIVE,                                                                            \
         .lead = "messages",                                                                       \
         .about = "the conversation that the agent gets with every message; 0: none. "             \
                  "`hello`, `demo`, `tck` and `bench` do not read it"},                            \
        {"final_text",                                                                             \
         DGM_CONFIG_NAME,                                                                          \
         (base) + offsetof(dgm_config_manner, final_text),                                         \
         .def = "\"full\"",                                                                        \
         .flags = LIVE | COMPAT,                                                                   \
         .values = WORDS("full", "omit"),                                                          \
         .about = "repeat the complete text in the status message of `completed`"},                \
        {"answer_source",                                                                          \
         DGM_CONFIG_NAME,                                                                          \
         (base) + offsetof(dgm_config_manner, answer_source),                                      \
         .def = "\"artifact\"",                                                                    \
         .flags = LIVE,                                                                            \
         .values = WORDS("artifact", "status"),                                                    \
         .about = "`status`: text in a working status is the answer, not progress"},               \
        {"working_message",                                                                        \
         DGM_CONFIG_TEXT,                                                                          \
         (base) + offsetof(dgm_config_manner, working_message),                                    \
         .def = "\"\"",                                                                            \
         .flags = LIVE,                                                                            \
         .about = "shown while the agent works, as a status indicator"},                           \
        {"persist_stream_delta",                                                                   \
         DGM_CONFIG_SWITCH,                                                                        \
         (base) + offsetof(dgm_config_manner, persist_stream_delta),                               \
         .def = "false",                                                                           \
         .flags = LIVE | COMPAT,                                                                   \
         .about = "store transitory artifacts (`aion:stream-delta`) in the task"},                 \
    {                                                                                              \
        "dedupe", DGM_CONFIG_SWITCH, (base) + offsetof(dgm_config_manner, dedupe),                 \
            .def = "true", .flags = LIVE | COMPAT,                                                 \
            .about = "a message that is sent again (same `messageId`, same content) continues "    \
                     "its turn instead of starting a new one"                                      \
    }

static const dgm_config_row manner_rows[] = {MANNER_ROWS(0), {0}};
const dgm_config_row *const dgm_config_history_row = &manner_rows[1];
static const dgm_config_shape manner = {
    "Agent defaults", "`agent_defaults`: defaults for the settings of agents.", manner_rows};

#define AGENT(member) offsetof(dgm_config_agent, member)

static const dgm_config_row agent_rows[] = {
    {"id", DGM_CONFIG_TEXT, AGENT(id), .format = &name, .flags = LIVE,
     .about = "its path is `/agents/{id}/`. Default: the name of its type"},
    {"type", DGM_CONFIG_TEXT, AGENT(type), .values = agent_types, .flags = REQUIRED | LIVE,
     .about = "the type of the agent", .unknown_value = "unknown agent type",
     .allowed_values =
         "Types: llm (a language model with tools), exec (run your own program), a2a (an agent "
         "of another server), http (a service that speaks AG-UI or an OpenAI API), langgraph (a "
         "graph of LangGraph), langgraph-server (a graph on a LangGraph server), demo, hello; "
         "for tests bench, tck"},
    {"default", DGM_CONFIG_SWITCH, AGENT(is_default), .def = "false", .flags = LIVE,
     .about = "the agent at `/`. If no agent has it, the first is the default"},
    MANNER_ROWS(AGENT(manner)),
    {"card", DGM_CONFIG_SHAPED, AGENT(card), .of = &card, .flags = LIVE, .about = "the agent card"},
    {"extended_card", DGM_CONFIG_SHAPED, AGENT(card_more), .of = &card, .flags = LIVE,
     .about = "members of the card for callers with a token only. Default: no extended card"},
    {"a2a", DGM_CONFIG_OBJECT, AGENT(a2a), .of = &a2a, .flags = LIVE,
     .about = "like `a2a` of the server, for this agent only"},
    {"settings", DGM_CONFIG_JSON, AGENT(settings), .flags = SECRET | LIVE,
     .about = "the settings of its type: see [agents](agents.md)"},
    {0},
};

static void prepare_agent(const dgm_config *c, void *element)
{
    dgm_config_agent *a = element;
    a->manner = c->agent_defaults;
    a->a2a = c->a2a;
}

static const dgm_config_shape agent = {"An agent", "A row of `agents`.", agent_rows,
                                       sizeof(dgm_config_agent), prepare_agent};

/* ---- MCP servers --------------------------------------------------------------------------------------------- */

#define MCP(member) offsetof(dgm_config_mcp, member)

static const dgm_config_row mcp_rows[] = {
    {"name", DGM_CONFIG_TEXT, MCP(name), .format = &mcp_name,
     .about = "the key of the map. Its tools are named `NAME__TOOL`"},
    {"command", DGM_CONFIG_TEXTS, MCP(command), .max = MAX_ITEMS, .format = &some_text,
     .about = "a program that speaks MCP over stdin and stdout, and its arguments"},
    {"env", DGM_CONFIG_JSON, MCP(env), .flags = SECRET,
     .about = "environment variables for the program: `NAME: value`"},
    {"inherit_env", DGM_CONFIG_TEXTS, MCP(inherit_env), .def = "[]", .max = MAX_ITEMS,
     .format = &env_name,
     .about = "further variables of the server's environment that are passed to it; `[all]`: all "
              "but tokens"},
    {"cwd", DGM_CONFIG_TEXT, MCP(cwd), .format = &path,
     .about = "the folder that it runs in. Default: the folder of the configuration"},
    {"url", DGM_CONFIG_TEXT, MCP(url), .format = &web_url,
     .about = "or: the URL of a server that speaks MCP over streamable HTTP"},
    {"headers", DGM_CONFIG_JSON, MCP(headers), .flags = SECRET,
     .about = "further headers of every request: `Name: value`"},
    {"token_env", DGM_CONFIG_TEXT, MCP(token_env), .format = &env_name,
     .about = "the environment variable that has its bearer token"},
    {"timeout", DGM_CONFIG_INT, MCP(timeout_s), .def = "60", .min = 1, .max = 86400,
     .about = "seconds that a call may take without an answer or a sign of progress"},
    {"share", DGM_CONFIG_NAME, MCP(share), .def = "\"auto\"",
     .values = WORDS("auto", "server", "principal", "context"),
     .about = "who shares a session with it (a process, for a program): all callers, those of one "
              "principal, or those of one context. `auto`: `principal` if there are `tokens`, else "
              "`server`"},
    {0},
};
static const dgm_config_shape mcp = {
    "An MCP server", "An entry of `mcp`: see [MCP](mcp.md). It has either `command` or `url`.",
    mcp_rows, sizeof(dgm_config_mcp)};

/* ---- the server ------------------------------------------------------------------------------------------------ */

#define TOKEN(member) offsetof(dgm_config_token, member)

static const dgm_config_row token_rows[] = {
    {"token", DGM_CONFIG_TEXT, TOKEN(token), .format = &secret, .flags = SECRET,
     .about = "the secret itself"},
    {"token_env", DGM_CONFIG_TEXT, TOKEN(token_env), .format = &env_name,
     .about = "the environment variable that contains it"},
    {"token_file", DGM_CONFIG_TEXT, TOKEN(token_file), .format = &path,
     .about = "the file that contains it (one line)"},
    {"kind", DGM_CONFIG_NAME, TOKEN(kind), .def = "\"bearer\"",
     .values = WORDS("bearer", "api-key"),
     .about = "sent as `Authorization: Bearer`, or in a header of its own"},
    {"header", DGM_CONFIG_TEXT, TOKEN(header), .def = "\"X-API-Key\"", .format = &key_header,
     .about = "where an API key is sent"},
    {"tenant", DGM_CONFIG_TEXT, TOKEN(tenant), .def = "\"\"", .format = &tenant,
     .about = "the tenant of the caller; empty: the tenant without a name"},
    {"principal", DGM_CONFIG_TEXT, TOKEN(principal), .flags = REQUIRED, .format = &some_text,
     .about = "the name of the caller. A caller sees only its own tasks"},
    {"role", DGM_CONFIG_NAME, TOKEN(role), .def = "\"caller\"",
     .values = WORDS("caller", "operator"),
     .about = "`operator`: may also read the paths below `/debug/`"},
    {"may_set_metadata", DGM_CONFIG_TEXTS, TOKEN(may_set_metadata), .def = "[]", .max = MAX_ITEMS,
     .format = &metadata_prefix,
     .about = "prefixes of reserved metadata keys that this caller may send in A2A requests: for a "
              "trusted router in front of the server"},
    {0},
};
static const dgm_config_shape token = {
    "A token", "A row of `tokens`. One of `token`, `token_env` and `token_file` is needed.",
    token_rows, sizeof(dgm_config_token)};

static const dgm_config_row tls_rows[] = {
    {"cert", DGM_CONFIG_TEXT, offsetof(dgm_config, tls_cert), .flags = REQUIRED, .format = &path,
     .about = "certificate chain, PEM"},
    {"key", DGM_CONFIG_TEXT, offsetof(dgm_config, tls_key), .flags = REQUIRED, .format = &path,
     .about = "private key, PEM"},
    {0},
};
static const dgm_config_shape tls = {"TLS", "`tls`: both or neither.", tls_rows};

static const dgm_config_row log_rows[] = {
    {"level", DGM_CONFIG_NAME, offsetof(dgm_config, log_level), .def = "\"info\"",
     .values = WORDS("error", "warn", "info", "debug"), .flags = LIVE,
     .about = "how much is logged"},
    {"format", DGM_CONFIG_NAME, offsetof(dgm_config, log_format), .def = "\"text\"",
     .values = WORDS("text", "json"), .flags = LIVE, .about = "lines for people or for programs"},
    {0},
};
static const dgm_config_shape log_shape = {"Log", "`log`: on standard error.", log_rows};

static const dgm_config_row cors_rows[] = {
    {"origins", DGM_CONFIG_TEXTS, offsetof(dgm_config, cors_origins), .def = "[]", .max = MAX_ITEMS,
     .format = &origin, .flags = LIVE,
     .about = "origins of web pages that may call the server, besides loopback; `*`: all"},
    {0},
};
static const dgm_config_shape cors = {"CORS", "`cors`: for browsers.", cors_rows};

static const dgm_config_row outbound_rows[] = {
    {"allow", DGM_CONFIG_TEXTS, offsetof(dgm_config, outbound_allow), .def = "[]", .max = MAX_ITEMS,
     .format = &address_range, .flags = LIVE,
     .about = "private addresses that they may go to, as ranges or single addresses. Without it "
              "only public addresses"},
    {0},
};
static const dgm_config_shape outbound = {
    "Outbound",
    "`outbound`: requests of the server to URLs that it gets from callers, agents and agent cards. "
    "They may not reach this machine and its private networks, unless `allow` lists the address. "
    "URLs in this file are always allowed.",
    outbound_rows};

#define LIMIT(member) offsetof(dgm_config, limits.member)

static const dgm_config_row limit_rows[] = {
    {"http_body_bytes", DGM_CONFIG_INT, LIMIT(http_body_bytes), .def = "33554432", .min = 1024,
     .max = DGM_MAX_HTTP_BODY_BYTES, .flags = LIVE, .about = "a request's body"},
    {"in_flight_bytes", DGM_CONFIG_INT, LIMIT(in_flight_bytes), .def = "268435456", .min = 1048576,
     .max = 1099511627776, .flags = LIVE,
     .about = "memory for request bodies in progress and the values decoded from them, for the "
              "whole server; requests beyond it get status 503"},
    {"in_flight_bytes_per_principal", DGM_CONFIG_INT, LIMIT(in_flight_bytes_per_principal),
     .def = "134217728", .min = 1048576, .max = 1099511627776, .flags = LIVE,
     .about = "the same for one principal, or (without tokens) for one address beyond loopback; "
              "requests beyond it get status 429"},
    {"connections", DGM_CONFIG_INT, LIMIT(connections), .def = "20000", .min = 1, .max = 1000000,
     .flags = LIVE, .about = "open connections per loop"},
    {"log_bytes", DGM_CONFIG_INT, LIMIT(log_bytes), .def = "268435456", .min = 65536,
     .max = (int64_t)1 << 40, .flags = LIVE,
     .about = "the size of the log of one task; a task that exceeds it fails"},
    {"log_records", DGM_CONFIG_INT, LIMIT(log_records), .def = "1000000", .min = 16,
     .max = 1000000000, .flags = LIVE, .about = "the same, counted in events"},
    {"queued_messages", DGM_CONFIG_INT, LIMIT(queued_messages), .def = "16", .min = 0, .max = 1000,
     .flags = LIVE, .about = "messages that wait for a task that is working"},
    {"subscribers", DGM_CONFIG_INT, LIMIT(subscribers), .def = "10000", .min = 1, .max = 1000000,
     .flags = LIVE, .about = "open streams of one task"},
    {0},
};
static const dgm_config_shape limits = {
    "Limits", "`limits`: sizes that depend on the machine. All others are fixed.", limit_rows};

#define DISCONNECT(kind) (offsetof(dgm_config, on_disconnect) + (kind) * sizeof(dgm_on_disconnect))
#define GRACE(kind) (offsetof(dgm_config, disconnect_grace_s) + (kind) * sizeof(int64_t))
#define ON_DISCONNECT(name_, kind_, def_, about_)                                                  \
    {                                                                                              \
        name_, DGM_CONFIG_NAME, DISCONNECT(kind_),                                                 \
            .def = "\"" def_ "\"", .values = WORDS("continue", "cancel"), .flags = LIVE,           \
            .about = about_                                                                        \
    }
#define GRACE_S(name_, kind_, def_, about_)                                                        \
    {                                                                                              \
        name_, DGM_CONFIG_INT, GRACE(kind_), .def = def_, .min = 0, .max = 86400, .flags = LIVE,   \
                                             .about = about_                                       \
    }

static const dgm_config_row disconnect_rows[] = {
    ON_DISCONNECT("a2a", DGM_FRONTEND_A2A, "continue", "A2A"),
    ON_DISCONNECT("ag-ui", DGM_FRONTEND_AGUI, "cancel", "AG-UI, and its simple dialect"),
    ON_DISCONNECT("chat", DGM_FRONTEND_CHAT, "cancel", "OpenAI Chat Completions"),
    ON_DISCONNECT("responses", DGM_FRONTEND_RESPONSES, "continue",
                  "OpenAI Responses, and its simple dialect"),
    ON_DISCONNECT("ai-sdk", DGM_FRONTEND_AISDK, "continue", "the AI SDK's useChat"),
    {0},
};
static const dgm_config_shape disconnect = {
    "On disconnect",
    "`on_disconnect`: what happens to a run when the connection that started it is closed and no"
    " other client reads it.",
    disconnect_rows};

static const dgm_config_row grace_rows[] = {
    GRACE_S("a2a", DGM_FRONTEND_A2A, "15", "A2A"),
    GRACE_S("ag-ui", DGM_FRONTEND_AGUI, "15", "AG-UI"),
    GRACE_S("chat", DGM_FRONTEND_CHAT, "2", "OpenAI Chat Completions"),
    GRACE_S("responses", DGM_FRONTEND_RESPONSES, "15", "OpenAI Responses"),
    GRACE_S("ai-sdk", DGM_FRONTEND_AISDK, "15", "the AI SDK's useChat"),
    {0},
};
static const dgm_config_shape grace = {
    "Grace", "`disconnect_grace_s`: how long `cancel` waits for a client to reconnect.",
    grace_rows};

#define AT(member) offsetof(dgm_config, member)

static const dgm_config_row agui_rows[] = {
    {"questions", DGM_CONFIG_NAME, AT(agui_questions), .def = "\"message\"",
     .values = WORDS("message", "interrupt"), .flags = LIVE,
     .about =
         "how a run ends with a question that is only text: as a success, with the question as a"
         " message, or with an interrupt. Approvals, structured input and `auth-required` are"
         " always interrupts"},
    {0},
};
static const dgm_config_shape agui = {"AG-UI", "`ag-ui`: details of the AG-UI protocol.",
                                      agui_rows};

static const dgm_config_row openai_rows[] = {
    {"continue_questions", DGM_CONFIG_SWITCH, AT(openai_continue_questions), .def = "true",
     .flags = LIVE,
     .about = "a request without a conversation id continues the task whose question is the last"
              " answer in its messages"},
    {0},
};
static const dgm_config_shape openai = {
    "OpenAI", "`openai`: details of Chat Completions and Responses.", openai_rows};

static const dgm_config_row replica_rows[] = {
    {"name", DGM_CONFIG_TEXT, AT(replica_name), .def = "\"\"",
     .about =
         "the name of this server in the log and in the table of servers. Default: host name and"
         " port"},
    {"lease_s", DGM_CONFIG_INT, AT(replica_lease_s), .def = "10", .min = 1, .max = 3600,
     .about =
         "the lease of a server in seconds. A server that does not extend its lease in this time"
         " is dead, and other servers continue its tasks. It extends the lease three times in"
         " that time"},
    {"wakeup", DGM_CONFIG_NAME, AT(replica_wakeup), .def = "\"notify\"",
     .values = WORDS("notify", "poll"),
     .about =
         "how servers are informed of changes: by LISTEN and NOTIFY, or by reading the tables four"
         " times per second, for poolers and databases without NOTIFY"},
    {0},
};
static const dgm_config_shape replica = {
    "Replica",
    "`replica`: settings of a server that shares one PostgreSQL with other servers. Other stores"
    " ignore them.",
    replica_rows};

/* `a2a` and `agent_defaults` are before `agents`, which start with them. */
static const dgm_config_row root_rows[] = {
    {"profile", DGM_CONFIG_TEXT, AT(profile), .def = "\"\"", .flags = LIVE,
     .about = "a named list of settings; the settings of the file have priority: see Profiles"},
    {"listen", DGM_CONFIG_TEXT, AT(listen), .def = "\"127.0.0.1:8484\"", .format = &listen_address,
     .flags = NUMBER,
     .about = "address and port, or a unix socket. Beyond loopback it needs `tokens`"},
    {"tls", DGM_CONFIG_OBJECT, 0, .of = &tls, .about = "serve HTTPS"},
    {"insecure", DGM_CONFIG_SWITCH, AT(insecure), .def = "false",
     .about = "listen beyond loopback without tokens: every program that can reach the port may do"
              " everything"},
    {"public_url", DGM_CONFIG_TEXT, AT(public_url), .def = "\"\"", .format = &web_url,
     .flags = LIVE,
     .about = "the address of this server for clients, used in cards. Default: from the request"},
    {"hosts", DGM_CONFIG_TEXTS, AT(hosts), .def = "[]", .max = MAX_ITEMS, .format = &host,
     .flags = LIVE,
     .about = "names that `Host` may have, besides those of loopback. When empty: on loopback no "
              "others; beyond it with `tokens` any, without them IP addresses and the name of "
              "`public_url`"},
    {"cors", DGM_CONFIG_OBJECT, 0, .of = &cors, .flags = LIVE, .about = "for browsers"},
    {"store", DGM_CONFIG_TEXT, AT(store), .def = "\"sqlite:dragoman.db\"", .format = &store_url,
     .about = "where tasks are stored. Without a file: see The database"},
    {"replica", DGM_CONFIG_OBJECT, 0, .of = &replica,
     .about = "settings of a server that shares one PostgreSQL with other servers"},
    {"retention_hours", DGM_CONFIG_INT, AT(retention_hours), .def = "24", .min = 1, .max = 876000,
     .flags = LIVE,
     .about =
         "how long a finished turn is stored: its stream can be resumed, and a response (OpenAI"
         " Responses) or run (AG-UI) can be fetched by its id"},
    {"keep_tasks_days", DGM_CONFIG_INT, AT(keep_tasks_days), .def = "0", .min = 0, .max = 36500,
     .flags = LIVE,
     .about = "how long an ended task is stored, with its history and artifacts; 0: without limit"},
    {"loops", DGM_CONFIG_INT, AT(loops), .def = "0", .min = 0, .max = DGM_MAX_LOOPS,
     .about = "number of event loop threads; 0: one per core"},
    {"drain_s", DGM_CONFIG_INT, AT(drain_s), .def = "10", .min = 0, .max = 3600, .flags = LIVE,
     .about = "how long the server waits for open requests when it stops"},
    {"log", DGM_CONFIG_OBJECT, 0, .of = &log_shape, .flags = LIVE, .lead = "level",
     .about = "how much is logged, and how"},
    {"outbound", DGM_CONFIG_OBJECT, 0, .of = &outbound, .flags = LIVE,
     .about = "requests of the server to URLs that others name"},
    {"limits", DGM_CONFIG_OBJECT, 0, .of = &limits, .flags = LIVE, .about = "sizes"},
    {"tenants", DGM_CONFIG_TEXTS, AT(tenants), .def = "[]", .max = MAX_ITEMS, .format = &tenant,
     .flags = LIVE,
     .about =
         "the tenants. If set, tokens may use no others. The names of our paths are not allowed:"
         " see Tenants"},
    {"tokens", DGM_CONFIG_LIST, AT(tokens), .def = "[]", .max = 10000, .of = &token, .flags = LIVE,
     .about = "allowed callers. Without tokens: every caller, on loopback only"},
    {"inspect", DGM_CONFIG_NAME, AT(inspect), .def = "\"auto\"",
     .values = WORDS("auto", "operator", "owner"), .flags = LIVE,
     .about = "callers that may read the stored records of a task, internal ones included: only"
              " operators, or also the owner of the task. `auto`: `owner` on loopback, else"
              " `operator`"},
    {"inspect_remote", DGM_CONFIG_SWITCH, AT(inspect_remote), .def = "false", .flags = LIVE,
     .about = "operators may use the inspector with A2A servers at other addresses. The addresses"
              " must be public, or in `outbound.allow`"},
    {"on_disconnect", DGM_CONFIG_OBJECT, 0, .of = &disconnect, .flags = LIVE,
     .about = "what happens to a run when its client disconnects"},
    {"disconnect_grace_s", DGM_CONFIG_OBJECT, 0, .of = &grace, .flags = LIVE,
     .about = "how long `on_disconnect: cancel` waits first"},
    {"ag-ui", DGM_CONFIG_OBJECT, 0, .of = &agui, .flags = LIVE,
     .about = "details of the AG-UI protocol"},
    {"openai", DGM_CONFIG_OBJECT, 0, .of = &openai, .flags = LIVE,
     .about = "details of OpenAI's two APIs"},
    {"a2a", DGM_CONFIG_OBJECT, AT(a2a), .of = &a2a, .flags = LIVE,
     .about = "details of the A2A protocol"},
    {"mcp", DGM_CONFIG_LIST, AT(mcp), .def = "[]", .max = MAX_ITEMS, .of = &mcp, .lead = "name",
     .about = "MCP servers whose tools agents may use, as a map from names to servers"},
    {"agent_defaults", DGM_CONFIG_OBJECT, AT(agent_defaults), .of = &manner,
     .about = "defaults for all agents"},
    {"agents", DGM_CONFIG_LIST, AT(agents), .def = "[{\"id\":\"demo\",\"type\":\"demo\"}]",
     .min = 1, .max = MAX_ITEMS, .of = &agent, .lead = "id",
     .about = "the agents, as a list or as a map from ids to agents"},
    {0},
};
const dgm_config_shape dgm_config_root = {"The file", "", root_rows, sizeof(dgm_config)};

/* ---- types ---------------------------------------------------------------------------------------------------- */

const char *dgm_config_agent_type(size_t i)
{
    return i < sizeof agent_types / sizeof *agent_types ? agent_types[i] : NULL;
}
