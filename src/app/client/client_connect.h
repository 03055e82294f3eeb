/* app/client/client_connect.h - `dragoman connect`: what is found at an address, and how it was found. */
#pragma once

#include "app/client/client_int.h"

#define MAX_PROBES 24
#define MAX_FINDINGS 8

/* One request and its answer, as far as it was read. */
typedef struct probe {
    const char *what; /* "agent card": what it looks for */
    const char *method, *url;
    long status;        /* 0: there was no answer */
    dgm_str type;       /* content type */
    dgm_str body;       /* of an answer that is not a stream */
    dgm_str event;      /* the data of the first event of a stream */
    bool is_stream;     /* an event stream */
    bool is_ui_stream;  /* with the header of the AI SDK */
    const char *result; /* for people: "found", "404 text/html" */
    dgm_code code;
    dgm_err err;
} probe;

/* In the order of preference. */
typedef enum found_kind {
    FOUND_A2A,
    FOUND_AGUI,
    FOUND_RESPONSES,
    FOUND_CHAT,
    FOUND_AISDK,
    FOUND_NOTHING
} found_kind;

/* An agent that can be connected, with its settings. */
typedef struct finding {
    found_kind kind;
    const char *title; /* "A2A 1.0 and 0.3, agent \"Demo\"" */
    const char *url;   /* of the settings */
    const char *id;
    const char *model;              /* OpenAI's formats; NULL: not known */
    const char *protocol, *binding; /* A2A without a card; NULL: from the card */
    const char *token_header;       /* NULL: the usual one */
    const char *note;               /* a sentence; NULL: none */
    const char *allow;              /* a private address that the card names; NULL: none */
} finding;

typedef struct connection {
    peer p;           /* of client_int.h: options, address, headers; without a card */
    const char *base; /* the address without slashes at its end */
    const char *token_env;
    probe probes[MAX_PROBES];
    size_t n_probes;
    finding findings[MAX_FINDINGS]; /* at most one of a kind */
    size_t n_findings;
    bool is_refused; /* a probe was answered with 401 or 403 */
} connection;

/* ---- probes (client_probe.c) ---------------------------------------------------------------------------------- */

/* Fills c->findings, from harmless requests to those that a server may take for a run. DGM_OK: whatever was found.
 * Otherwise the server cannot be reached. */
dgm_code dgm_connect_probe(connection *c, dgm_err *err);
