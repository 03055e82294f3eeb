/*
 * backend/remote/remote.h - what the types a2a and http share: the settings that say where a service is, and one call to it.
 *
 * A call sends a request and passes on the JSON values of the answer, from a JSON body or an event stream, while the log of
 * the run has room. Whatever goes wrong becomes one sentence that names what happened and where; it never contains a
 * credential.
 */
#pragma once

#include "backend/backend_int.h"
#include "net/client.h"
#include "wire/frames/frames.h"

/* Where a service is and how long it may take. First in the settings of a type, see DGM_REMOTE_SETTINGS. */
typedef struct dgm_remote {
    dgm_str url;
    dgm_str token_env, token_file, token_header; /* one of env and file */
    const dgm_json *headers;
    dgm_str ca_file, client_cert, client_key, proxy;
    double connect_timeout, answer_timeout, silence_timeout, timeout;
    int64_t retries;
    /* The names of the settings in errors; NULL: url, token_env, token_file. */
    const char *url_setting, *token_env_setting, *token_file_setting;
    /* filled by dgm_remote_open */
    dgm_fetch_header *all_headers;   /* also the credential */
    size_t n_headers, n_credentials; /* the credentials are the last ones */
    dgm_address_ranges allowed;      /* private addresses that cards may name */
    bool has_token;
} dgm_remote;

#define DGM_REMOTE_DEFAULTS                                                                        \
    {                                                                                              \
        .connect_timeout = 10, .answer_timeout = 120, .silence_timeout = 300, .timeout = 3600,     \
        .retries = 3                                                                               \
    }

/* Rows for the table of a type whose settings have this member: DGM_REMOTE_SETTINGS, or the groups of it that fit. */
#define DGM_REMOTE_HEADER_SETTINGS(T, r)                                                           \
    {"token_header", DGM_SETTING_STR, offsetof(T, r.token_header), .def = "Authorization",         \
     .about = "the header that the token is sent in; in `Authorization` it follows `Bearer`"},     \
    {                                                                                              \
        "headers", DGM_SETTING_ENV, offsetof(T, r.headers),                                        \
            .def = "{}",                                                                           \
            .about =                                                                               \
                "further headers of every request: `Name: value`. `${NAME}` in a value is an "     \
                "environment variable"                                                             \
    }
#define DGM_REMOTE_TIME_SETTINGS(T, r)                                                             \
    {"connect_timeout",                                                                            \
     DGM_SETTING_NUMBER,                                                                           \
     offsetof(T, r.connect_timeout),                                                               \
     .min = 0.01,                                                                                  \
     .max = 600,                                                                                   \
     .def = "10",                                                                                  \
     .about = "seconds until there must be a connection"},                                         \
        {"answer_timeout",                                                                         \
         DGM_SETTING_NUMBER,                                                                       \
         offsetof(T, r.answer_timeout),                                                            \
         .min = 0.01,                                                                              \
         .max = 86400,                                                                             \
         .def = "120",                                                                             \
         .about = "seconds until it must begin to answer"},                                        \
        {"silence_timeout",                                                                        \
         DGM_SETTING_NUMBER,                                                                       \
         offsetof(T, r.silence_timeout),                                                           \
         .min = 0.01,                                                                              \
         .max = 86400,                                                                             \
         .def = "300",                                                                             \
         .about = "seconds that may pass without a byte of its answer"},                           \
    {                                                                                              \
        "timeout", DGM_SETTING_NUMBER, offsetof(T, r.timeout),                                     \
            .min = 0.01, .max = 604800, .def = "3600",                                             \
            .about = "seconds that one answer may take in all"                                     \
    }
#define DGM_REMOTE_TLS_SETTINGS(T, r)                                                              \
    {"ca_file", DGM_SETTING_STR, offsetof(T, r.ca_file), .def = "the machine's certificates",      \
     .about = "certificates (PEM) to trust instead"},                                              \
        {"client_cert", DGM_SETTING_STR, offsetof(T, r.client_cert), .def = "",                    \
         .about = "a certificate (PEM) that is shown to it"},                                      \
        {"client_key", DGM_SETTING_STR, offsetof(T, r.client_key), .def = "",                      \
         .about = "the key (PEM) of `client_cert`"},                                               \
    {                                                                                              \
        "proxy", DGM_SETTING_STR, offsetof(T, r.proxy),                                            \
            .def = "", .about = "the URL of an HTTP proxy; those of the environment are not used"  \
    }
#define DGM_REMOTE_SETTINGS(T, r)                                                                  \
    {"url", DGM_SETTING_STR, offsetof(T, r.url), .required = true,                                 \
     .about = "where it is: an http or https URL"},                                                \
        {"token_env", DGM_SETTING_STR, offsetof(T, r.token_env), .def = "",                        \
         .about = "the environment variable that has its bearer token or API key"},                \
        DGM_REMOTE_HEADER_SETTINGS(T, r), DGM_REMOTE_TIME_SETTINGS(T, r),                          \
        {"retries",                                                                                \
         DGM_SETTING_INT,                                                                          \
         offsetof(T, r.retries),                                                                   \
         .max = 10,                                                                                \
         .def = "3",                                                                               \
         .about = "how often a request is repeated that was answered with 429 or 503 and a "       \
                  "`Retry-After` of 60 seconds at most"},                                          \
        DGM_REMOTE_TLS_SETTINGS(T, r)

/* After dgm_settings_read: copies the texts into the arena, reads the credential, checks URL and files. options: NULL is
 * allowed. */
dgm_code dgm_remote_open(dgm_remote *r, const dgm_agent_options *options, dgm_arena *a,
                         dgm_err *err);

/* A server's own words about an error: one line, not too long, without a credential of the settings. In the arena. */
dgm_str dgm_remote_clean_error(const dgm_remote *r, dgm_arena *a, dgm_str text);

/* ---- one call ------------------------------------------------------------------------------------------------------- */

typedef struct dgm_remote_call dgm_remote_call;

typedef struct dgm_remote_request {
    const char *method; /* "POST" */
    const char *url;    /* NULL: that of the settings */
    dgm_str body;       /* p == NULL: none */
    dgm_fetch_header headers[8];
    size_t n_headers;
    bool follows; /* a GET: redirects within the origin */
    /* One answer of this size at most is read as JSON; events of a stream have their own limit. 0: DGM_MAX_OBJECT_BYTES */
    size_t max_bytes;
    double answer_timeout; /* 0: that of the settings */
} dgm_remote_request;

typedef struct dgm_remote_end {
    const char *error; /* NULL: the answer is complete. Otherwise a sentence for callers */
    int status;        /* of HTTP; 0: there was no answer */
    dgm_str body;   /* of an answer with an error status, if it is JSON or text; at most 64 KiB */
    bool is_stream; /* the answer was an event stream */
    bool is_cut;    /* the connection was lost, or the answer too slow: what came before counts */
    bool may_be_received; /* the request may have been received, whole */
    dgm_fetch_end end;
} dgm_remote_end;

typedef struct dgm_remote_handler {
    /* One JSON value: the body, or an event. Both are valid until this returns. */
    void (*on_item)(void *user, const dgm_frames_item *item);
    /* The last callback; the call is gone when it returns. Not after dgm_remote_cancel. */
    void (*on_end)(void *user, const dgm_remote_end *end);
    void *user;
    /* The head of the answer, before its values; of repeated requests each one. May be NULL. */
    void (*on_head)(void *user, const dgm_fetch_head *head);
    /* The last event of a stream counts only with the empty line behind it: what is cut off will be sent again. */
    bool complete_events_only;
} dgm_remote_handler;

/* `r` must live as long as the call. Credentials are sent only to the origin of r->url; another origin is checked as an address
 * that the operator did not write. */
dgm_remote_call *dgm_remote_start(const dgm_remote *r, dgm_run *run,
                                  const dgm_remote_request *request, dgm_remote_handler handler);
void dgm_remote_cancel(dgm_remote_call *c); /* no callback follows; also from inside its own */
/* The same when the answer has all that is needed: its end may follow, so that the connection can be used again. */
void dgm_remote_release(dgm_remote_call *c);
