/*
 * frontend/web/web.h - for people with a browser: a page to talk to the agents, and the catalog of them.
 *
 * The page is part of the program (scripts/build-page makes it of web/). It has no rights of its own: it
 * uses the same addresses as any other client.
 */
#pragma once

#include "net/http.h"

typedef struct dgm_web_agent {
    dgm_str id;
    dgm_str name, description;
    dgm_str path; /* below the server's address: "", "/agents/x" */
} dgm_web_agent;

/* /.well-known/ai-catalog.json. public_url: the server's address; empty: as the request has it. */
void dgm_web_send_catalog(dgm_http_exchange *x, const dgm_web_agent *agents, size_t n,
                          dgm_str public_url, int64_t made_s);

/* Sends the page if a browser made the GET or HEAD (it accepts text/html) and the program has a page. status: 0: 200.
 * False: otherwise; nothing is sent. */
bool dgm_web_send_page(dgm_http_exchange *x, int status);
/* "page-6Q3KZ2AB.js"; false: there is no such file, and nothing is sent. */
bool dgm_web_send_file(dgm_http_exchange *x, dgm_str name);
