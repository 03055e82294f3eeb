/*
 * frontend/web/web.h - for people with a browser: a page to talk to the agents, and the catalog of them.
 *
 * The page is part of the program (made from web/ when it is built). It has no rights of its own: it
 * speaks A2A like any other client.
 */
#pragma once

#include "net/http.h"

typedef struct dgm_web_agent {
    dgm_str id;
    dgm_str name, description;
    dgm_str path; /* below the server's address: "", "/agents/x" */
} dgm_web_agent;

/* /.well-known/ai-catalog.json. public_url: the server's address; empty: as the request has it. */
void dgm_web_give_catalog(dgm_http_exchange *x, const dgm_web_agent *agents, size_t n,
                          dgm_str public_url, int64_t made_s);

/* Does a GET or HEAD come from a browser that wants to show something? */
bool dgm_web_wants_page(const dgm_http_request *r);
void dgm_web_give_page(dgm_http_exchange *x);
/* "page.js"; false: there is no such file. */
bool dgm_web_give_file(dgm_http_exchange *x, dgm_str name);
